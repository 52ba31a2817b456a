#!/bin/bash
# Quotas, as an admin and a user meet them: a ResourceQuota becomes a limit that Glance enforces, an Image over it waits
# with Glance's words and goes on when it is raised. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"

NS=e2e-quotas
FILES=http://files.dev-files.svc.cluster.local

k() { kubectl -n "$NS" "$@"; }

# quota VALUE: of images.
quota() {
  k apply -f - <<YAML
apiVersion: v1
kind: ResourceQuota
metadata: {name: openstack}
spec: {hard: {kupenstack.io/images: "$1"}}
YAML
}

image() {
  k apply -f - <<YAML
apiVersion: kupenstack.io/v1
kind: Image
metadata: {name: tiny}
spec: {src: "$FILES/tiny.qcow2", format: raw}
YAML
}

project() { kubectl get namespace "$NS" -o 'jsonpath={.metadata.annotations.kupenstack\.io/project-id}'; }

# limited VALUE: what Keystone allows the project; nothing is no limit of its own.
limited() { is "$1" openstack limit list --project "$(project)" --resource-name image_count_total -f value -c 'Resource Limit'; }

waits_for_quota() {
  k wait image.kupenstack.io/tiny --for='jsonpath={.status.conditions[?(@.type=="Ready")].reason}=QuotaExceeded' --timeout=60s &&
    k get image.kupenstack.io tiny -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}' | grep -F 'over limit of 0'
}

main() {
  kubectl delete namespace "$NS" --ignore-not-found --wait >/dev/null
  kubectl create namespace "$NS" >/dev/null
  ok "a ResourceQuota of no image at all" quota 0
  ok "is the project's limit in Keystone" within 60 limited 0
  ok "an Image over it" image
  ok "waits, with Glance's words" waits_for_quota
  ok "the quota is raised" quota 1
  ok "and the Image goes on by itself" k wait image.kupenstack.io/tiny --for=condition=Ready --timeout=60s
  ok "the limit is what is declared now" limited 1
  ok "the quota is lowered to 0 again" quota 0
  ok "which Keystone takes, too" within 30 limited 0
  ok "and the Image stays" k wait image.kupenstack.io/tiny --for=condition=Ready --timeout=5s
  ok "the ResourceQuota is deleted" k delete resourcequota openstack
  ok "and the limit with it" within 30 limited ""
  ok "the namespace goes" kubectl delete namespace "$NS" --timeout=120s
  finish
}

main
