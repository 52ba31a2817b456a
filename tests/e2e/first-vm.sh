#!/bin/bash
# A cloud with a VM that answers, by dev/up alone, and the page "Your first VM" as printed; then it all goes and leaves nothing
# on a node. On a cluster of dev/k8s/up.sh only.
# dev/test: tier real
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-demo.sh
. "$HERE/lib-demo.sh"
# shellcheck source=tests/e2e/lib-docs.sh
. "$HERE/lib-docs.sh"
# shellcheck disable=SC2034 # for lib-vms.sh
NS=openstack RELEASE=2026.2
# shellcheck source=tests/e2e/lib-vms.sh
. "$HERE/lib-vms.sh"

clean_up() {
  no_way_outside
  kubectl label nodes --all openstack-compute-node- vms-gateway- >/dev/null || true
}

vms_again() { "$HERE/../../dev/vms" 2>&1; }
up_again() { prints 'says: hello from my first VM' vms_again; }
demo_goes() { kubectl delete namespace demo --timeout=180s; }
offers_go() { kubectl delete -f "$HERE/../../examples/first-vm/offers.yaml" --timeout=60s; }
removed() { kubectl delete openstack default --timeout=300s; }

main() {
  trap clean_up EXIT
  exec 3>&1
  ok "dev/up ends with a VM that answers" up
  ok "and again" up_again
  run_page first-vm
  ok "the demo goes" demo_goes
  ok "what was offered goes" offers_go
  ok "nodes are cleaned" clean_nodes
  ok "the cloud is removed" removed
  ok "nothing is left on the nodes" is "" left_on_nodes
  finish
}

main "$@"
