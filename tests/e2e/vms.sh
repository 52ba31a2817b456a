#!/bin/bash
# VMs by the operator: a cloud whose spec enables what they take, VMs by the openstack command on every node of the
# cluster, the contract of the simulated OpenStack, a change that leaves hypervisors alone, removal that waits for VMs and leaves
# nothing on a node.
# On a cluster of dev/k8s/up.sh only; dev/up is run on it unless it has a cloud without VMs. One with VMs goes before.
# dev/test: tier real
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-demo.sh
. "$HERE/lib-demo.sh"

NS=openstack
RELEASE=2026.2
# shellcheck source=tests/e2e/lib-vms.sh
. "$HERE/lib-vms.sh"
# shellcheck source=tests/e2e/lib-shop.sh
. "$HERE/lib-shop.sh"

clean_up() {
  no_way_outside
  shop_cleans_up
  k delete pod client --ignore-not-found --wait=false >/dev/null || true
  unlabelled >/dev/null || true
}
unlabelled() { kubectl label nodes --all openstack-compute-node- vms-gateway-; }

a_cloud() {
  ! k get nova nova || { no_cloud && unlabelled; } || return
  kubectl get openstack default || KUPENSTACK_VMS=no "$HERE/../../dev/up"
}
images() {
  local archive
  archive=$("$HERE/../../images/build.sh" "compute-$RELEASE" | cut -f 3)
  "$HERE/../../dev/k8s/import.sh" "$archive"
}

patch() { kubectl patch openstack default --type merge -p "{\"spec\": {\"services\": $1}}"; }
ready() { kubectl wait --for=condition=Ready openstack/default --timeout=900s; }

# No node has the label yet. This kind of cluster has no kernel module and no virtualisation, a second card between the
# nodes, one way outside. What is wrong with this is found out one after the other.
enabled() {
  patch '{"rabbitmq": {"enabled": true}, "placement": {"enabled": true}, "neutron": {"enabled": true},
    "ovn": {"enabled": true, "datapath": "userspace", "tunnelInterface": "eth77", "gatewayNodes": {"vms-gateway": "yes"}},
    "libvirt": {"enabled": true}, "nova": {"enabled": true, "virtType": "kvm"}}'
}
no_hypervisor() { says libvirt 'no node that takes pods has the label openstack-compute-node=enabled'; }
no_card() { says ovn 'has no network card eth77, which network.interface.tunnel names (tunnelInterface of the OVN object)'; }
no_kvm() { in_node 1 test -e /dev/kvm || within 900 says nova 'has no /dev/kvm'; }
labelled() {
  kubectl label node node1 vms-gateway=yes
  kubectl label nodes --all openstack-compute-node=enabled
}

revisions() { k get rabbitmqs,placements,ovns,neutrons,libvirts,novas -o 'jsonpath={range .items[*]}{.kind} {.status.revision}{"\n"}{end}'; }
# A change of what hypervisors read, which their pods do not read before somebody deletes them.
changed() {
  local before nodes
  before=$(compute_pods)
  nodes=$(running_nodes | wc -l)
  patch '{"nova": {"conf": {"DEFAULT": {"block_device_allocate_retries": 61}}}}' || return
  within 300 says nova "$nodes of $nodes pods of DaemonSet nova-compute run an earlier version" || return
  ready && is "$before" compute_pods
}
# The machine is outside of the Kubernetes cluster.
exposed() {
  local url
  url="http://$(node_ip 1)"
  kubectl patch openstack default --type merge -p "{\"spec\": {\"networking\": {\"expose\": {\"type\": \"nodePort\", \"url\": \"$url:{port}\"}}}}" || return
  within 60 not kubectl wait --for=condition=Ready openstack/default --timeout=0 >/dev/null
  ready && is "$url:30774/v2.1" k get nova nova -o 'jsonpath={.status.publicEndpoints.nova}'
}
# Every public endpoint of the catalogue answers the machine; 300 is a list of versions.
catalogue_answers() {
  local url urls
  urls=$(in_client 'openstack endpoint list --interface public -f value -c URL') || return
  [ "$(wc -l <<<"$urls")" = 5 ] || { echo "$urls" && return 1; }
  for url in $urls; do
    curl -sS -m 20 -o /dev/null -w "%{http_code} $url\n" "$url" | grep -E '^(200|300|401) ' || return
  done
}
console_answers() { curl -sSf -m 20 -o /dev/null "$(k get nova nova -o 'jsonpath={.status.publicEndpoints.console}')"; }

switched_off() { patch '{"nova": {"enabled": false}}' && within 60 is InUse reason nova; }
gone() { k wait --for=delete "$1/$1" --timeout=180s; }

removed() { kubectl delete openstack default --timeout=300s && is '' k get daemonsets,deployments,statefulsets -l release_group -o name; }

main() {
  local nodes before
  nodes=$(running_nodes | wc -l)
  [ "$nodes" != 0 ] || die "this test needs the local cluster"
  DISK=$("$HERE/../../images/build.sh" vm | cut -f 3)
  trap clean_up EXIT
  exec 3>&1
  ok "a cloud without VMs" a_cloud
  ok "images of hypervisors" images
  ok "what VMs take is enabled" enabled
  ok "that no node is to have VMs is told" within 300 no_hypervisor
  ok "nodes get the label" labelled
  ok "a card that nodes have not got is told" within 300 no_card
  ok "another one" patch '{"ovn": {"tunnelInterface": "eth1"}}'
  ok "that nodes can't virtualise is told" no_kvm
  ok "then not" patch '{"nova": {"virtType": "qemu"}}'
  ok "all services are ready" ready
  # as long as nobody has made anything that everybody sees
  ok "the simulated OpenStack answers as this cloud does" "$HERE/contract.sh"
  check_vms
  check_shop_opens
  before=$(revisions)
  ok "VMs outlive all pods of their nodes at once" survive
  ok "and the cloud is well again" ready
  ok "for which nothing was rolled out" is "$before" revisions
  ok "a change replaces no pod of a hypervisor, which is told" changed
  ok "until that is asked for, and then one by one" replaced_on_demand
  ok "the VM has not noticed" answers
  ok "the cloud is exposed" exposed
  ok "the public endpoints in the catalogue answer from outside" catalogue_answers
  ok "so does the proxy to consoles" console_answers
  check_shop_closes
  ok "LP 2150668: Nova is not removed while there are VMs" switched_off
  ok "whose VMs answer" answers
  ok "VMs are deleted" servers_gone
  ok "then it goes" gone nova
  ok "the cloud is removed" removed
  ok "nothing is left on the nodes" is "" left_on_nodes
  finish
}

main "$@"
