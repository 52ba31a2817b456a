#!/bin/bash
# A service that is switched off and on; a cloud that is deleted and declared anew: on the volumes it left it finds its
# data, on empty ones it starts from nothing, and in both cases what users declared is made true again.
# Needs dev/up's example cloud and demo.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"

EXAMPLE=$HERE/../../examples/openstack.yaml

delete_cloud() { kubectl delete openstack default --timeout=120s; }
declare_cloud() { kubectl apply -f "$EXAMPLE"; }
cloud_ready() { kubectl wait --for=condition=Ready openstack/default --timeout=240s; }
no_workloads() { kubectl -n openstack wait --for=delete pod -l release_group --timeout=90s; }
image_ready() { kubectl -n demo wait --for=condition=Ready image.kupenstack.io/image-sample --timeout=120s; }
image_id() { kubectl -n demo get image.kupenstack.io image-sample -o 'jsonpath={.status.id}'; }
project_id() { kubectl get namespace demo -o 'jsonpath={.metadata.annotations.kupenstack\.io/project-id}'; }
namespace_is_free() { is "" kubectl get namespace demo -o 'jsonpath={.metadata.finalizers}'; }
active() { is active env OS_CLOUD=demo openstack image show "$1" -f value -c status; }

pods_of_others() {
  kubectl -n openstack get pods -l 'application in (mariadb,memcached,keystone),component in (api,server)' \
    -o 'jsonpath={.items[*].metadata.uid}'
}
switch_glance() { kubectl patch openstack default --type merge -p "{\"spec\":{\"services\":{\"glance\":{\"enabled\":$1}}}}"; }
no_glance() {
  kubectl -n openstack wait --for=delete glance/glance --timeout=90s &&
    kubectl -n openstack wait --for=delete pod -l release_group=glance --timeout=90s
}
glance_ready() {
  kubectl -n openstack wait --for=create glance/glance --timeout=30s &&
    kubectl -n openstack wait --for=condition=Ready glance/glance --timeout=120s
}

# One service switched off and on: it finds its data, and no other is touched.
glance_off_and_on() {
  local image=$1 others
  others=$(pods_of_others)
  ok "Glance is switched off" switch_glance false
  ok "and goes" no_glance
  ok "infra-operator 577: Keystone's part of the database is there" openstack token issue -f value -c expires
  ok "the cloud is Ready without it" cloud_ready
  ok "Glance is switched on" switch_glance true
  ok "and is Ready" glance_ready
  ok "it finds its data" active "$image"
  ok "snap-openstack 2159042: no pod of another service was touched" is "$others" pods_of_others
}

main() {
  local image project
  image=$(image_id)
  project=$(project_id)
  glance_off_and_on "$image"
  ok "the cloud goes" delete_cloud
  ok "and holds no namespace back" within 20 namespace_is_free
  ok "its pods end" no_workloads
  ok "its volumes stay" kubectl -n openstack get pvc data-mariadb-0 glance-images
  ok "it is declared anew" declare_cloud
  ok "and is Ready" cloud_ready
  ok "the demo's Image is Ready" image_ready
  ok "as the same image" is "$image" image_id
  ok "active in Glance" active "$image"
  ok "in the same project" is "$project" project_id

  ok "the cloud goes again" delete_cloud
  ok "its pods end" no_workloads
  ok "its volumes are deleted" kubectl -n openstack delete pvc --all --timeout=60s
  ok "it is declared anew" declare_cloud
  ok "and is Ready" cloud_ready
  ok "the demo's Image is made anew" image_ready
  ok "active in Glance" active "$(image_id)"
  finish
}

main
