#!/bin/bash
# Before the chart is removed: take from the node what outlives the pods. Ends with 3 and does nothing while there are VMs. To be
# run in the pod of openvswitch-vswitchd, or one like it. What runs there makes it anew at its next start.
set -euo pipefail
# shellcheck source=charts/openstack/ovn/files/lib.sh
. /scripts/lib.sh

plugged=$(vsctl --bare --columns=external_ids list interface)
if [[ $plugged == *vm-uuid=* ]]; then
  echo "there are VMs on this node" >&2
  exit 3
fi

controller=/run/ovn/ovn-controller.ctl # it would make its bridge again
[[ ! -S $controller ]] || ovn-appctl --timeout=5 -t "$controller" debug/pause
address=
if tunnel_has_bridge; then address=$(vsctl br-get-external-id "$tunnel_bridge" address 2>/dev/null || true); fi
for bridge in $(vsctl list-br); do
  echo "bridge $bridge goes"
  ovs-vsctl --db="$switch" --timeout=20 --if-exists del-br "$bridge"
done
[[ -z $address ]] || ip addr replace "$address" dev "$TUNNEL_CARD"
vsctl emer-reset
find /etc/openvswitch -mindepth 1 -delete
