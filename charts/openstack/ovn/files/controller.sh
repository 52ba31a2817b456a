#!/bin/bash
# Tell the switch who this node is and where the southbound database is, then run the controller.
set -euo pipefail
# shellcheck source=charts/openstack/ovn/files/lib.sh
. /scripts/lib.sh

# up DEVICE: bridges appear once the switch runs.
up() { until ip link set "$1" up 2>/dev/null; do sleep 0.2; done; }

# Sets ENCAP_IP, the address that other nodes send packets for this one to.
encap_ip() {
  local address
  ENCAP_IP=$NODE_IP
  [[ $TUNNEL_CARD ]] || return 0
  need_card "$TUNNEL_CARD" network.interface.tunnel tunnelInterface
  if tunnel_has_bridge; then
    up "$tunnel_bridge"
    address=$(vsctl br-get-external-id "$tunnel_bridge" address)
    ip addr flush dev "$TUNNEL_CARD"
    ip link set "$TUNNEL_CARD" up
    [[ -z $address ]] || ip addr replace "$address" dev "$tunnel_bridge"
  else
    address=$(address_of "$TUNNEL_CARD")
  fi
  if [[ -z $address ]]; then
    echo "the network card $TUNNEL_CARD of node $NODE_NAME, which network.interface.tunnel names (tunnelInterface of" \
      "the OVN object), has no address: give it one, or name another card" >&2
    exit 1
  fi
  ENCAP_IP=${address%/*}
}

until vsctl init 2>/dev/null; do sleep 0.2; done # the switch's database is another pod
# shellcheck disable=SC2086 # host and port
southbound=$(database $OVN_SB)
encap_ip
for mapping in ${BRIDGE_MAPPINGS//,/ }; do up "${mapping#*:}"; done

# The node's name is its identity: it stays the same whatever is lost on the node.
vsctl set open . "external-ids:system-id=$NODE_NAME" "external-ids:hostname=$NODE_NAME" \
  "external-ids:ovn-remote=$southbound" "external-ids:ovn-encap-type=$ENCAPSULATION" "external-ids:ovn-encap-ip=$ENCAP_IP" \
  "external-ids:ovn-bridge=$INTEGRATION_BRIDGE" "external-ids:ovn-bridge-datapath-type=$DATAPATH"
for key in ovn-bridge-mappings="$BRIDGE_MAPPINGS" ovn-cms-options="$CMS_OPTIONS"; do
  if [[ ${key#*=} ]]; then
    vsctl set open . "external-ids:${key%%=*}=\"${key#*=}\""
  else
    vsctl remove open . external-ids "${key%%=*}"
  fi
done

# ovn-controller ends with a fault on a database that has no row SB_Global yet, which `init` makes.
until ovn-sbctl --timeout=5 --db="$southbound" init; do sleep 1; done
exec ovn-controller "$switch" --unixctl=/run/ovn/ovn-controller.ctl
