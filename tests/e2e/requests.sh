#!/bin/bash
# No failed request during change: 20 requests per second to Keystone and Glance with two replicas each, none repeated,
# while configuration, scale and the operator change, and while a change fails. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"
# shellcheck source=dev/lib.sh
. "$HERE/../../dev/lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/../../dev/k8s/cluster.sh"
OPERATOR_CHART=$HERE/../../charts/kupenstack

configure() { # configure TOKEN-EXPIRATION LIMIT
  change "{\"spec\":{\"services\":{
    \"keystone\":{\"conf\":{\"token\":{\"expiration\":$1}}},
    \"glance\":{\"conf\":{\"DEFAULT\":{\"limit_param_default\":$2}}}}}}"
}

scale() {
  local number
  for number; do replicas "$number" || return; done
}

upgrade_operator() {
  helm upgrade kupenstack "$OPERATOR_CHART" -n "$OPERATOR" --reuse-values "$@" && operator_is_back
}

operator_image() {
  kubectl -n "$OPERATOR" get deployment kupenstack-cloud -o 'jsonpath={.spec.template.spec.containers[0].image}'
}

# The same image by another name is another version, as far as Kubernetes knows.
name_image() {
  local n
  for n in $(running_nodes); do in_node "$n" ctr -n k8s.io images tag --force "$1" "$2" || return; done
}

# CloudNativePG 5950, 7727: an operator's upgrade must not restart workloads unannounced.
operator_upgrades() {
  local image pods objects
  image=$(operator_image)
  pods=$(running_pods)
  objects=$(cloud_objects)
  under_load "the operator's settings change" upgrade_operator --set log=debug
  if [ -n "$(running_nodes)" ]; then
    ok "another tag of its image" name_image "$image" "${image%:*}:e2e"
    under_load "the operator's image changes" upgrade_operator --set image.tag=e2e
  fi
  ok "CloudNativePG 5950: no pod of the cloud restarted" is "$pods" running_pods
  ok "CloudNativePG 7727: no object of the cloud was written" is "$objects" cloud_objects
  ok "the operator as it was" upgrade_operator --set log= --set "image.tag=${image##*:}"
}

main() {
  trap 'stop_load >/dev/null 2>&1' EXIT
  ok "two replicas of each API" replicas 2
  ok "20 requests per second" start_load
  under_load "at rest" sleep 10
  under_load "both configurations change" configure 43100 26
  under_load "scale 2 to 1 to 3 to 1 to 2" scale 1 3 1 2
  operator_upgrades
  ok "as it was" change '{"spec":{"services":null}}'
  finish
}

main
