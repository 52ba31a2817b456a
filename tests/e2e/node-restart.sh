#!/bin/bash
# A node dies and comes back: the cloud comes back by itself with all it held, and nobody makes anything anew.
# On a cluster of dev/k8s/up.sh only, with dev/up's example cloud and demo.
# dev/test: alone
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=dev/lib.sh
. "$HERE/../../dev/lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/../../dev/k8s/cluster.sh"

kill_and_start() {
  local n
  for n in $(running_nodes); do kill -KILL "$(node_init "$n")"; done
  "$K8S/up.sh"
}

# A restarted node's pods have old conditions until the kubelet has looked; an answer is not out of date.
token() { openstack token issue -f value -c id; }
image_id() { kubectl -n demo get image.kupenstack.io image-sample -o 'jsonpath={.status.id}'; }
stored_digest() { OS_CLOUD=demo openstack image save "$(image_id)" | sha256sum; }
projects() { openstack project list -f value -c ID -c Name | sort; }
revisions() { kubectl -n openstack get mariadbs,memcacheds,keystones,glances -o 'jsonpath={range .items[*]}{.kind} {.status.revision}{"\n"}{end}'; }

main() {
  local digest projects revisions
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  digest=$(stored_digest)
  projects=$(projects)
  revisions=$(revisions)
  ok "all nodes killed and started again" kill_and_start
  ok "Keystone answers again" within 180 token
  ok "its projects are there" is "$projects" projects
  ok "the image's bytes are there" within 120 is "$digest" stored_digest
  ok "OpenStack is Ready" kubectl wait --for=condition=Ready openstacks.cluster.kupenstack.io/default --timeout=120s
  ok "nothing was rolled out anew" is "$revisions" revisions
  finish
}

main
