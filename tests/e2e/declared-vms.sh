#!/bin/bash
# What a VM's manifest can say about nodes, about other VMs, about networks and about being ready, on a real Nova and Neutron.
# On a cluster of dev/k8s/up.sh only; dev/up is run on it, and its cloud stays.
# dev/test: tier real
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-demo.sh
. "$HERE/lib-demo.sh"

LABEL=example.com/disk
VMS=(picky one two stays again)

clean_up() {
  demo delete vm "${VMS[@]}" --ignore-not-found --wait=false >/dev/null 2>&1 || true
  demo delete network,subnet back --ignore-not-found --wait=false >/dev/null 2>&1 || true
  kubectl label nodes --all "$LABEL-" >/dev/null 2>&1 || true
}

# declare_vm NAME SPEC: a VM like the demo's; SPEC in YAML's flow style says what else it has.
declare_vm() {
  demo apply -f - <<YAML
apiVersion: kupenstack.io/v1
kind: VirtualMachine
metadata: {name: $1}
spec: {clusterImage: tiny, flavor: tiny, networks: [{network: frontend}]$2}
YAML
}
patch() { demo patch vm "$1" --type merge -p "{\"spec\": $2}"; }
status() { demo get vm "$1" -o "jsonpath={.status.$2}"; }
ready() { demo wait "vm/$1" --for=condition=Ready --timeout=300s; }
says() { demo wait "vm/$1" --timeout=120s --for="jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=$2"; }
message() { demo get vm "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'; }

waits_for_a_node() { declare_vm picky ", nodeSelector: {$LABEL: ssd}" && says picky NoNode && prints "$LABEL=ssd" message picky; }
# Lists show on which node a VM is, and the next one comes soon.
gets_a_node() { kubectl label node node1 "$LABEL=ssd" && ready picky && within 30 is node1 status picky node; }
aggregates() { openstack aggregate list --long -f value -c Name -c Properties; }
private_flavors() { openstack flavor list --private -f value -c Name; }
out_of_date() { kubectl label node node1 "$LABEL-" && demo wait vm/picky --for=condition=UpToDate=False --timeout=60s; }
up_to_date() { kubectl label node node1 "$LABEL=ssd" && within 60 is '' status picky 'conditions[?(@.type=="UpToDate")].status'; }
# The label is on the other node then, to which Nova brings the VM with its disk.
moves() {
  local id
  id=$(status picky id)
  kubectl label node node1 "$LABEL-" && kubectl label node node2 "$LABEL=nvme" &&
    patch picky "{\"nodeSelector\": {\"$LABEL\": \"nvme\"}}" && within 60 not ready_now picky && ready picky &&
    within 30 is node2 status picky node && is "$id" status picky id && is '' status picky restarts
}
is_anywhere() { patch picky '{"nodeSelector": null}' && within 30 not ready_now picky && ready picky; }
lines() { "$@" | grep -c . || true; }
ready_now() { demo wait "vm/$1" --for=condition=Ready --timeout=0; }
goes() { demo delete vm "$@" --timeout=180s; }

APART=', antiAffinity: {group: web}'
# Where there is a node for each, they are apart; where there is not, the second one waits and says for what.
apart() {
  declare_vm one "$APART" && ready one && declare_vm two "$APART" || return
  if [ "$(running_nodes | wc -l)" -gt 1 ]; then
    ready two && [ "$(status one node)" != "$(status two node)" ]
  else
    # it says so until it is tried again, the first time at once
    within 120 prints 'group web takes a node with room for each of its 2 VMs' message two
  fi
}
takes_its_place() { goes one && ready two; }
server_groups() { openstack server group list --all-projects -f value -c Name; }

# Neutron's port, the VM's status and Nova's view of it.
another_network() {
  demo apply -f - <<'YAML'
apiVersion: kupenstack.io/v1
kind: Network
metadata: {name: back}
spec: {}
---
apiVersion: kupenstack.io/v1
kind: Subnet
metadata: {name: back}
spec: {network: back, cidr: 10.78.0.0/24}
YAML
}
connected() {
  another_network && patch two '{"networks": [{"network": "frontend"}, {"network": "back"}]}' && within 120 has_addresses 2
}
has_addresses() {
  ready_now two && [ "$(status two 'addresses[*]' | wc -w)" = "$1" ] || return
  [ "$(openstack port list --server "$(status two id)" -f value -c ID | wc -l)" = "$1" ]
}
disconnected() {
  patch two '{"networks": [{"network": "frontend"}]}' && within 120 has_addresses 1 &&
    demo wait port.kupenstack.io/two.back --for=delete --timeout=60s
}

# A server that its object leaves there, and that another object takes over. It has to go on as it is.
stays() {
  declare_vm stays ', deletionPolicy: Retain' && ready stays || return
  SERVER=$(status stays id)
  LAUNCHED=$(openstack server show "$SERVER" -f value -c OS-SRV-USG:launched_at)
  goes stays && prints ACTIVE server_is && demo wait port.kupenstack.io/stays.frontend --for=condition=Ready --timeout=0
}
server_is() { openstack server show "$SERVER" -f value -c status; }
launched() { openstack server show "$SERVER" -f value -c OS-SRV-USG:launched_at; }
is_taken_over() {
  demo apply -f - <<'YAML' || return
apiVersion: kupenstack.io/v1
kind: VirtualMachine
metadata: {name: again}
spec: {adopt: {name: stays}}
YAML
  ready again && is "$SERVER" status again id && is Running status again phase && is "$LAUNCHED" launched
}
# By hand, which an adopted one without powerState may be.
may_be_stopped() { openstack server stop "$SERVER" && within 120 is Stopped status again phase && ready_now again; }
is_started() { patch again '{"powerState": "Running"}' && within 120 is Running status again phase && ready again; }
goes_when_asked() {
  patch again '{"deletionPolicy": "Delete"}' && goes again && demo delete port.kupenstack.io stays.frontend --timeout=60s &&
    not server_is
}

answers() { patch web '{"readinessProbe": {"httpGet": {"port": 80, "path": "/hello.txt"}, "periodSeconds": 2}}' && within 30 observed web && ready web; }
observed() { [ "$(demo get vm "$1" -o 'jsonpath={.metadata.generation}')" = "$(status "$1" observedGeneration)" ]; }
does_not_answer() {
  patch web '{"readinessProbe": {"httpGet": null, "tcpSocket": {"port": 81}}}' && says web NotAnswering && is Running status web phase
}
need_not_answer() { patch web '{"readinessProbe": null}' && within 30 observed web && ready web; }

main() {
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  trap clean_up EXIT
  ok "a cloud with a VM that answers" up
  ok "a VM waits for a node with its labels, and names them" waits_for_a_node
  ok "a label makes room" gets_a_node
  ok "by one aggregate" is 1 lines aggregates
  ok "and one flavor" is 1 lines private_flavors
  ok "a label that goes moves nothing, which is told" out_of_date
  ok "until it comes again" up_to_date
  [ "$(running_nodes | wc -l)" = 1 ] || ok "another selector brings it to another node" moves
  ok "a selector that goes resizes the VM" is_anywhere
  ok "of which no aggregate is left" within 60 is '' aggregates
  ok "and no flavor" within 60 is '' private_flavors
  ok "it goes" goes picky
  ok "VMs of a group are apart" apart
  ok "one takes the other's place" takes_its_place
  ok "a network is connected while it runs" connected
  ok "and disconnected" disconnected
  ok "it goes" goes two
  ok "and their group with it" within 60 is '' server_groups
  ok "a VM that is deleted with Retain leaves its server and its port" stays
  ok "another object takes the server over, which goes on" is_taken_over
  ok "it may be stopped by others" may_be_stopped
  ok "until it is to run" is_started
  ok "and goes when that is asked for" goes_when_asked
  ok "a VM that answers is ready" answers
  ok "one that does not is not" does_not_answer
  ok "one that need not is" need_not_answer
  finish
}

main "$@"
