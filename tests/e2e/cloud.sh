#!/bin/bash
# The cloud of dev/up as its admin and its users see it: services, catalogue, projects, images, and that an operator
# that comes and goes changes nothing. Needs dev/up's example cloud and demo.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"

NS=e2e-cloud
FILES=http://files.dev-files.svc.cluster.local
READY='jsonpath={.status.conditions[?(@.type=="Ready")].status}'
REASON='jsonpath={.status.conditions[?(@.type=="Ready")].reason}'

k() { kubectl -n "$NS" "$@"; }
as_project() { OS_CLOUD=$NS openstack "$@"; }
in_client() { kubectl -n dev-files exec deployment/openstack-client -- "$@"; }

annotation() { kubectl get namespace "$1" -o "jsonpath={.metadata.annotations.kupenstack\.io/$2}"; }
image_id() { k get image.kupenstack.io "$1" -o 'jsonpath={.status.id}'; }
wait_ready() { k wait --for=condition=Ready "$1" --timeout="${2:-120}s"; }

catalogue() { openstack endpoint list -f value -c 'Service Name' -c Interface | sort | paste -sd ,; }

has_project() { [ -n "$(annotation "$1" project-id)" ]; }
project_of_namespace() { is "$(annotation "$1" project-id)" openstack project show "$1" -f value -c id; }
no_project() { not openstack project show "$1"; }
roles_of_project() {
  openstack role assignment list --project "$NS" --names -f value -c Role | sort | paste -sd ,
}

# image NAME FORMAT [CHECKSUM]
image() {
  k apply -f - <<YAML
apiVersion: kupenstack.io/v1
kind: Image
metadata: {name: $1}
spec:
  src: $FILES/tiny.qcow2
  format: $2
  ${3:+checksum: "$3"}
YAML
}

file_digest() { in_client python3 -c "
import urllib.request
lines = urllib.request.urlopen('$FILES/sha256sums').read().decode().splitlines()
print(next(line.split()[0] for line in lines if line.endswith('tiny.qcow2')))"; }

# The bytes that Glance hands out, through the project's own user.
stored_digest() { as_project image save "$1" | sha256sum | cut -d ' ' -f 1; }
shown() { as_project image show "$1" -f value -c "$2"; }

# The size of the disk, which a qcow2 file has in its header.
disk_size() { in_client python3 -c "
import urllib.request
print(int.from_bytes(urllib.request.urlopen('$FILES/tiny.qcow2').read(32)[24:], 'big'))"; }

names_visible_to() { OS_CLOUD=$1 openstack image list -f value -c Name | sort | paste -sd ,; }
refused() { is ChecksumMismatch k get image.kupenstack.io wrong -o "$REASON"; }
nothing_stored_for() { is "" as_project image list --name "$1" --status active -f value -c ID; }
gone_from_glance() { not openstack image show "$1"; }

# Generations say whether a spec was written, resource versions whether anything was.
objects() {
  kubectl -n openstack get deployments,statefulsets,jobs,configmaps,secrets,services,mariadbs,memcacheds,keystones,glances \
    -o 'jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}'
  kubectl get openstacks,images.kupenstack.io -A -o 'jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}'
  kubectl -n openstack get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}'
}

restarted_operator_writes_nothing() {
  local before=$1
  kubectl -n "$OPERATOR" delete pods --all --wait || return
  kubectl -n "$OPERATOR" rollout status deployment --timeout=60s || return
  within 60 operator_pod cloud && within 60 operator_pod resources || return
  # What it would do wrong it does when it first looks at everything, within seconds of holding the lease.
  sleep 10
  objects | diff "$before" -
}

services() {
  local kind
  ok "OpenStack is Ready" kubectl wait --for=condition=Ready openstacks.cluster.kupenstack.io/default --timeout=5s
  for kind in mariadb memcached keystone glance; do
    ok "$kind is Ready" is True kubectl -n openstack get "$kind" "$kind" -o "$READY"
  done
  ok "a token for the admin" openstack token issue -f value -c expires
  ok "the catalogue has what answers" is "glance admin,glance internal,glance public,keystone admin,keystone internal,keystone public" catalogue
}

projects() {
  ok "a namespace" kubectl create namespace "$NS"
  ok "becomes a project" within 30 has_project "$NS"
  ok "of its own name" project_of_namespace "$NS"
  ok "with a user that is no admin" is member,reader roles_of_project
  ok "that can log in" as_project token issue -f value -c project_id
  ok "the demo's image is not seen there" is "" names_visible_to "$NS"
}

images() {
  local digest id
  digest=$(file_digest)
  ok "an Image, its checksum declared" image disk qcow2 "sha256:$digest"
  ok "becomes active" wait_ready image.kupenstack.io/disk
  id=$(image_id disk)
  ok "in Glance too" is active shown "$id" status
  ok "with the file's bytes" is "$digest" stored_digest "$id"
  ok "an Image in another format" image raw raw
  ok "becomes active, converted" wait_ready image.kupenstack.io/raw
  ok "as the whole disk" is "$(disk_size)" shown "$(image_id raw)" size
  ok "the project sees both" is disk,raw names_visible_to "$NS"
  ok "an Image with a wrong checksum" image wrong qcow2 "sha256:$(printf '0%.0s' {1..64})"
  ok "is refused, and says why" within 60 refused
  ok "and has no data in Glance" nothing_stored_for wrong
  ok "a deleted Image" k delete image.kupenstack.io disk --timeout=60s
  ok "is gone from Glance" gone_from_glance "$id"
}

main() {
  local before id
  kubectl delete namespace "$NS" --ignore-not-found --wait >/dev/null
  services
  projects
  images

  before=$(mktemp)
  objects >"$before"
  ok "an operator that restarts writes nothing" restarted_operator_writes_nothing "$before"
  rm -f "$before"

  id=$(image_id raw)
  ok "a deleted namespace goes" kubectl delete namespace "$NS" --timeout=120s
  ok "with its images" gone_from_glance "$id"
  ok "and its project" no_project "$NS"
  finish
}

main
