#!/bin/bash
# A node with a VM dies: as soon as somebody says so, the VM comes on another node at its address; when the node is back, it is used again.
# Then it is taken away for good: nothing is left of it in Nova and Neutron, and a machine that comes under its name is a new host.
# On a cluster of dev/k8s/up.sh; dev/up is run on it, its cloud stays, and so does a third node: none of the cloud's controllers are there,
# which could not be anywhere else while their volumes are of another node.
# dev/test: tier real
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-demo.sh
. "$HERE/lib-demo.sh"

N=3
DEAD=node$N
TAINT=node.kubernetes.io/out-of-service
LABEL=example.com/doomed

clean_up() {
  kubectl taint node "$DEAD" "$TAINT-" >/dev/null 2>&1 || true
  kubectl label node --all "$LABEL-" >/dev/null 2>&1 || true
  demo delete vm doomed another --ignore-not-found --wait=false >/dev/null 2>&1 || true
}

status() { demo get vm doomed -o "jsonpath={.status.$1}"; }
address() { status 'addresses[*]'; }
host() { openstack server show "$(status id)" -f value -c OS-EXT-SRV-ATTR:host; }
compute() { openstack compute service list --service nova-compute --host "$DEAD" -f value -c Status -c State; }
ready_now() { demo wait vm/doomed --for=condition=Ready --timeout=0 >/dev/null; }

one_more_node() { KUPENSTACK_VMS=yes KUPENSTACK_NODES=$N "$E2E/../../dev/up" && within 180 is 'enabled up' compute >/dev/null; }

# vm_on_the_doomed NAME
vm_on_the_doomed() {
  kubectl label node "$DEAD" "$LABEL=yes" || return
  demo apply -f - <<YAML || return
apiVersion: kupenstack.io/v1
kind: VirtualMachine
metadata: {name: $1}
spec: {clusterImage: tiny, flavor: tiny, networks: [{network: frontend}], nodeSelector: {$LABEL: "yes"}}
YAML
  demo wait "vm/$1" --for=condition=Ready --timeout=300s && is "$DEAD" demo get vm "$1" -o 'jsonpath={.status.node}'
}

# A selector has it there; as it is changed afterwards, it does not keep it there.
on_the_doomed() { vm_on_the_doomed doomed && is "$DEAD" host && kubectl label node --all --overwrite "$LABEL=yes"; }
node_dies() { kill -KILL "$(node_init "$N")" && kubectl wait "node/$DEAD" --for=condition=Ready=Unknown --timeout=120s; }
vm_is_left_alone() { ready_now && is "$1" status id; }
said_to_be_off() { kubectl taint node "$DEAD" "$TAINT=nodeshutdown:NoExecute"; }
elsewhere() { within 300 is_elsewhere "$1" && is "$2" address && is_not_on_the_dead; }
is_not_on_the_dead() { local on && on=$(host) && [ "$on" ] && [ "$on" != "$DEAD" ]; }
is_elsewhere() { ready_now && [ "$(status id)" != "$1" ]; }
node_is_back() { "$K8S/up.sh" && kubectl taint node "$DEAD" "$TAINT-"; }
# One that can't be looked for is no proof that there is none.
no_agent_there() { is '' agents; }
agents() { openstack network agent list --host "$DEAD" -f value -c ID; }
no_host_there() { is '' compute && is '' hypervisor; }
hypervisor() { openstack hypervisor list -f value -c "Hypervisor Hostname" | awk -v host="$DEAD" '$1 == host'; }
taken_away() { kill -KILL "$(node_init "$N")" && kubectl delete node "$DEAD"; }
new_machine() { "$K8S/up.sh" && one_more_node; }
no_guest_there() {
  local found=0
  in_node "$N" pgrep -f 'qemu-system.* -name guest=' || found=$?
  [ "$found" = 1 ]
}

main() {
  local id address
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  trap clean_up EXIT
  ok "a cloud with a VM that answers" up
  ok "one more node" one_more_node
  ok "a VM on it" on_the_doomed
  id=$(status id)
  address=$(address)
  ok "the node dies" node_dies
  ok "and does not answer, which is no reason to have the VM twice" vm_is_left_alone "$id"
  ok "it is said to be off" said_to_be_off
  ok "Nova is told" within 60 is 'disabled down' compute
  ok "the VM is on another node, at its address" elsewhere "$id" "$address"
  id=$(status id)
  ok "the node is back" node_is_back
  ok "and used again" within 300 is 'enabled up' compute
  ok "without a second guest" no_guest_there
  ok "the VM stays" vm_is_left_alone "$id"
  ok "the node is taken away for good" taken_away
  ok "Nova forgets it (nova-operator 620)" within 240 no_host_there
  ok "Neutron forgets it (atmosphere 567)" no_agent_there
  ok "a new machine comes under its name" new_machine
  ok "it gets a VM" vm_on_the_doomed another
  finish
}

main "$@"
