#!/bin/bash
# VMs without the operator, as docs/compute-by-hand.md tells it: all charts by helm, VMs by the openstack command, on every
# node of the cluster; VMs that outlive the pods of their node; removal that leaves nothing on a node.
# On a cluster of dev/k8s/up.sh only, with the images infra, openstack and compute on its nodes. RELEASE is OpenStack's.
# dev/test: tier real
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=dev/lib.sh
. "$HERE/../../dev/lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/../../dev/k8s/cluster.sh"
# shellcheck source=tests/e2e/lib-vms.sh
. "$HERE/lib-vms.sh"

CHARTS=$HERE/../../charts/openstack
NS=${NAMESPACE:-vms-by-hand}
RELEASE=${RELEASE:-2026.1} # vms.sh has the other
WORK=$(mktemp -d)
SERVICES=(mariadb memcached rabbitmq keystone glance placement ovn neutron libvirt nova)

clean_up() {
  no_way_outside
  kubectl delete namespace "$NS" --ignore-not-found --wait >/dev/null || true
  kubectl label nodes --all openstack-compute-node- vms-by-hand-gateway- >/dev/null || true
  rm -rf "$WORK"
}

# Values of this kind of cluster: no kernel module, no virtualisation, a second card between the nodes, one way outside.
values() {
  "$CHARTS/make-values.sh" "$WORK/passwords.yaml"
  cat >"$WORK/ovn.yaml" <<'YAML'
conf: {ovn_bridge_datapath_type: netdev}
network: {interface: {tunnel: eth1}}
labels: {ovn_controller_gw: {node_selector_key: vms-by-hand-gateway, node_selector_value: "yes"}}
YAML
  cat >"$WORK/nova.yaml" <<'YAML'
conf: {nova: {libvirt: {virt_type: qemu}}}
YAML
  for chart in "${SERVICES[@]}"; do
    [ -e "$WORK/$chart.yaml" ] || echo '{}' >"$WORK/$chart.yaml"
    # Every image of a task names its release.
    sed -n "s#^    \([a-z_]*\): kupenstack.local/\(openstack\|compute\):.*#\1=kupenstack.local/\2:$RELEASE#p" "$CHARTS/$chart/values.yaml" >"$WORK/$chart.tags"
  done
  kubectl create namespace "$NS"
  kubectl label nodes --all openstack-compute-node=enabled
  kubectl label node node1 vms-by-hand-gateway=yes
}

apply() {
  local chart=$1 tags=()
  mapfile -t tags < <(sed 's/^/--set=images.tags./' "$WORK/$chart.tags")
  helm upgrade --install "$chart" "$CHARTS/$chart" -n "$NS" -f "$WORK/passwords.yaml" -f "$WORK/$chart.yaml" "${tags[@]}"
}

# Databases and what needs no job first; then the services, whose jobs wait for what they need.
install_all() {
  local chart
  for chart in mariadb memcached rabbitmq ovn libvirt keystone glance placement neutron nova; do apply "$chart" || return; done
}

workloads() { k get pods -l 'component,!job-name,!batch.kubernetes.io/job-name' -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
unchanged_upgrade() {
  local before chart
  before=$(workloads)
  for chart in "${SERVICES[@]}"; do apply "$chart" || return; done
  is "$before" workloads
}

refused_while_there_are_vms() { not k exec "$(k get pods -l application=libvirt --field-selector spec.nodeName=node1 -o name)" -- bash /scripts/clean-node.sh; }

compute_pod() { k get pods -l application=nova,component=compute --field-selector "spec.nodeName=node$1" -o name; }
ids() { in_client 'openstack hypervisor list -f value -c "Hypervisor Hostname" -c ID | sort'; }
# lose_identity N: node N is as one that was set up anew under its name.
lose_identity() {
  local pod
  pod=$(compute_pod "$1") && in_node "$1" rm /var/lib/nova/compute_id && k delete "$pod"
}
not_without_vms() { lose_identity 1 && within 120 k_says 'has lost what Nova knows it by, and in Nova there are'; }
k_says() { k logs "$(compute_pod 1)" --tail=5 2>/dev/null | grep -F "$1" || k logs "$(compute_pod 1)" --previous --tail=5 2>/dev/null | grep -F "$1"; }
given_by_hand() {
  local id
  id=$(ids | awk '$2 == "node1" {print $1}') && in_node 1 sh -c "printf %s '$id' >/var/lib/nova/compute_id" && k delete "$(compute_pod 1)" &&
    within 120 all_hypervisors
}
given_back() {
  local before
  before=$(ids) && lose_identity 1 && within 120 nodes_ready && within 120 all_hypervisors && is "$before" ids && within 60 services_up
}

uninstall() {
  local i
  for ((i = ${#SERVICES[@]} - 1; i >= 0; i--)); do helm uninstall "${SERVICES[i]}" -n "$NS" || return; done
  k wait --for=delete pod -l 'component' --field-selector status.phase=Running --timeout=180s
}

main() {
  local nodes
  nodes=$(running_nodes | wc -l)
  [ "$nodes" != 0 ] || die "this test needs the local cluster"
  DISK=$("$HERE/../../images/build.sh" vm | cut -f 3)
  trap clean_up EXIT
  exec 3>&1
  ok "namespace, values, labels" values
  ok "helm install of all charts" install_all
  ok "everything is rolled out" rolled_out
  check_vms
  ok "VMs outlive all pods of their nodes at once" survive
  ok "and are still controlled" reboot_hard
  ok "all services of Nova are up" within 60 services_up
  ok "an unchanged upgrade replaces no pod" unchanged_upgrade
  ok "nodes with VMs are not cleaned" refused_while_there_are_vms
  ok "a node that has lost its identity has no hypervisor while it has VMs" not_without_vms
  ok "but one that is given it" given_by_hand
  ok "VMs are deleted" servers_gone
  ok "without them it gets it back" given_back
  ok "nodes are cleaned" clean_nodes
  ok "helm uninstall" uninstall
  ok "nothing is left on the nodes" is "" left_on_nodes
  finish
}

main "$@"
