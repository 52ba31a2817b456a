#!/bin/bash
# What VMs stand on fails: parts of a node are replaced or killed while a VM is asked five times a second, the broker and the
# database die while a VM boots and while Nova is being installed, a node calls itself otherwise. Nobody lends a hand.
# On a cluster of dev/k8s/up.sh only; dev/up is run on it, and its cloud stays.
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
  demo delete vm boots --ignore-not-found --wait=false >/dev/null 2>&1 || true
  k delete pod client --ignore-not-found --wait=false >/dev/null 2>&1 || true
  rm -rf "$WORK"
}

pod_on_node() { k get pods -l "application=$1,component=$2" --field-selector spec.nodeName=node1 -o name; }

# replaced APPLICATION COMPONENT LOST: its pod on the VM's node ends and another one comes.
replaced() {
  local pod
  pod=$(pod_on_node "$1" "$2") && vm_is_asked || return
  k delete "$pod" --wait=true && within 300 nodes_ready || return
  lost_at_most "$3"
}

# process POD PROGRAM: its process on this machine. In its own container it may be the first, which nothing kills from within.
process() {
  local uid pid
  uid=$(k get "$1" -o 'jsonpath={.metadata.uid}') || return
  for pid in $(pgrep -x "$2"); do
    if grep -q -e "$uid" -e "${uid//-/_}" "/proc/$pid/cgroup"; then echo "$pid" && return; fi
  done
  return 1
}

# killed APPLICATION COMPONENT PROGRAM LOST: the program dies, and is there again in the same pod.
killed() {
  local pod pid before
  pod=$(pod_on_node "$1" "$2") && pid=$(process "$pod" "$3") && vm_is_asked || return
  before=$(restarts "$pod")
  kill -KILL "$pid" || return
  within 120 started_again "$pod" "$before" && within 300 nodes_ready || return
  lost_at_most "$4"
}
restarts() { k get "$1" -o 'jsonpath={.status.containerStatuses[*].restartCount}'; }
started_again() { [ "$(restarts "$1")" != "$2" ]; }

# What Nova knows a node by.
hypervisor_identity() { openstack hypervisor list -f value -c ID -c 'Hypervisor Hostname' -c State; }
services_identity() { openstack compute service list --service nova-compute -f value -c ID -c Host; }

chassis() {
  k exec ovn-ovsdb-sb-0 -- ovn-sbctl --timeout=5 --db=tcp:127.0.0.1:6642 --bare --columns name,hostname list Chassis | awk NF | paste - - | sort
}
called_otherwise() {
  local pod before
  pod=$(pod_on_node ovn controller-gw)
  before=$(restarts "$pod")
  k exec "$pod" -- ovs-vsctl --no-wait set open . external-ids:system-id=stranger || return
  within 180 started_again "$pod" "$before"
}

# boots WHILE...: a VM comes up, though something happens as soon as Nova has begun with it. What Nova has forgotten then is made anew
# after ten minutes.
boots() {
  demo apply -f - <<'YAML' || return
apiVersion: kupenstack.io/v1
kind: VirtualMachine
metadata: {name: boots}
spec: {clusterImage: tiny, flavor: tiny, networks: [{network: frontend}]}
YAML
  demo wait vm/boots --for=jsonpath='{.status.phase}'=Building --timeout=60s && "$@" || return
  demo wait vm/boots --for=condition=Ready --timeout=900s
}
# Those that wait at them are connected to the broker as before.
answers_are_lost() {
  local queue queues
  queues=$(k exec rabbitmq-0 -- rabbitmqctl -q list_queues -p nova name | grep '^reply_') || return
  for queue in $queues; do k exec rabbitmq-0 -- rabbitmqctl -q delete_queue -p nova "$queue" || return; done
}
one_server() { is 1 servers_named boots; }
servers_named() { openstack server list --all-projects --name "^$1\$" -f value -c ID | wc -l; }
boots_goes() { demo delete vm boots --timeout=180s && is 0 servers_named boots; }
dies() { k delete pod "$1" --force --grace-period=0 --wait=true; }
ready() { kubectl wait --for=condition=Ready openstack/default --timeout=900s; }

enable_nova() { kubectl patch openstack default --type merge -p "{\"spec\": {\"services\": {\"nova\": {\"enabled\": $1}}}}"; }
demo_goes() { kubectl delete namespace "$DEMO" --timeout=180s; }
nova_goes() { enable_nova false && k wait --for=delete nova/nova --timeout=180s; }
# The job that makes the cells is the one that the database leaves.
installed_without_database() {
  enable_nova true || return
  within 300 job_runs nova-db-sync && dies mariadb-0 || return
  sleep 1 && within 60 not kubectl wait --for=condition=Ready openstack/default --timeout=0 >/dev/null
  ready
}
job_runs() { [ "$(k get pods -l "application=nova,component=db-sync" -o 'jsonpath={.items[*].status.phase}')" = Running ]; }
cells() { k exec deployment/nova-conductor -- nova-manage cell_v2 list_cells 2>/dev/null | grep -c ' cell[0-9] '; }

main() {
  local hypervisor service chassis
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  need_commands ping=iputils-ping
  trap clean_up EXIT
  exec 3>&1
  ok "a cloud with a VM that answers" up
  hypervisor=$(hypervisor_identity)
  service=$(services_identity)
  chassis=$(chassis)
  ok "nova-compute is replaced, which the VM does not notice" replaced nova compute 0
  ok "libvirt too" replaced libvirt libvirt 0
  ok "the metadata agent too" replaced neutron ovn-metadata-agent 0
  ok "ovn-controller is replaced: at most a second" replaced ovn controller-gw 5
  ok "ovn-controller is killed: at most a second" killed ovn controller-gw ovn-controller 5
  ok "Open vSwitch is replaced: at most two seconds" replaced ovn openvswitch-vswitchd 10
  ok "nova-compute is killed" killed nova compute nova-compute 0
  ok "Nova knows the node as before" within 90 is "$hypervisor" hypervisor_identity
  ok "and by the same record" is "$service" services_identity
  ok "a node that calls itself otherwise" called_otherwise
  ok "is called by its name again" within 60 is "$chassis" chassis
  ok "the broker dies while a VM boots" boots dies rabbitmq-0
  ok "there is one server" one_server
  ok "and none when the VM goes" boots_goes
  ok "the database dies while a VM boots" boots dies mariadb-0
  ok "there is one server" one_server
  ok "and none when the VM goes" boots_goes
  ok "genestack 695, cubecos 1301: queues of answers vanish while a VM boots" boots answers_are_lost
  ok "there is one server" one_server
  ok "and none when the VM goes" boots_goes
  ok "the cloud is well again" ready
  ok "the demo goes" demo_goes
  ok "Nova goes" nova_goes
  ok "the database dies while Nova is being installed" installed_without_database
  ok "there are as many cells as there are to be" is 2 cells
  ok "and VMs" up
  finish
}

main "$@"
