#!/bin/bash
# A cloud with a VM goes to the next release: the VM is asked five times a second meanwhile, its hypervisor is replaced when that
# is asked for, and both releases boot VMs. On a cluster of dev/k8s/up.sh only; the cloud that it has goes,
# with its database, and the one of this test stays.
# dev/test: tier real
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-demo.sh
. "$HERE/lib-demo.sh"
# shellcheck disable=SC2034 # for lib-vms.sh
NS=openstack RELEASE=2026.2
# shellcheck source=tests/e2e/lib-vms.sh
. "$HERE/lib-vms.sh"

WORK=$(mktemp -d)

clean_up() {
  jobs -p | xargs -r kill 2>/dev/null || true
  demo delete vm later --ignore-not-found --wait=false >/dev/null 2>&1 || true
  rm -rf "$WORK"
}

up_of() { KUPENSTACK_RELEASE=$1 up; }
vm_id() { demo get vm web -o 'jsonpath={.status.id}'; }
is_of() { is "$1" k get nova nova -o 'jsonpath={.status.release}'; }
asked_all_along() { vm_is_asked && up_of 2026.2; }
an_earlier_one_runs() { says nova 'earlier version'; }
later() {
  demo apply -f - <<YAML || return
apiVersion: kupenstack.io/v1
kind: VirtualMachine
metadata: {name: later}
spec: {clusterImage: tiny, flavor: tiny, networks: [{network: frontend}]}
YAML
  demo wait vm/later --for=condition=Ready --timeout=300s
}

main() {
  local id
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  need_commands ping=iputils-ping
  trap clean_up EXIT
  exec 3>&1
  # the database of a later release is of no use to an earlier one
  ok "no cloud" no_cloud
  ok "a cloud of 2026.1 with a VM that answers" up_of 2026.1
  ok "it is of that release" is_of 2026.1
  id=$(vm_id)
  ok "it becomes one of 2026.2" asked_all_along
  ok "and is of that release" is_of 2026.2
  ok "the VM has not noticed" lost_at_most 0
  ok "and is the same" is "$id" vm_id
  ok "its hypervisor is of the release before" an_earlier_one_runs
  ok "until that is asked for" replaced_on_demand
  ok "the VM is still the same" is "$id" vm_id
  ok "there is room for another" later
  finish
}

main "$@"
