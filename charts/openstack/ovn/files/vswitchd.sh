#!/bin/bash
# Say which bridges there are, then run the switch, which makes them.
set -euo pipefail
# shellcheck source=charts/openstack/ovn/files/lib.sh
. /scripts/lib.sh

bridge() {
  echo "bridge $1"
  vsctl --may-exist add-br "$1" -- set bridge "$1" "datapath_type=$DATAPATH" "${@:2}"
}

# port BRIDGE CARD VALUE FIELD
port() {
  need_card "${@:2}"
  vsctl --may-exist add-port "$1" "$2"
}

# restored FLOWS: give the switch these beside it, for it waits for them, and so must not wait in vain.
restored() {
  within 5 is_up && bash <<<"$1" || echo "no flows restored" >&2
  vsctl remove open . other_config flow-restore-wait
  rm -rf "$saved_flows"
}
is_up() { ovs-ofctl --timeout=1 -O OpenFlow14 dump-tlv-map "$INTEGRATION_BRIDGE" &>/dev/null; }
within() {
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    ((SECONDS < end)) && sleep 0.05 || return
  done
}

# Flows of a switch that ended in good order. They are used once: those of one that crashed later would be old.
flows=$(cat "$saved_flows/restore" 2>/dev/null) || true
rm -f "$saved_flows/restore"

until vsctl init 2>/dev/null; do sleep 0.2; done # its database is another pod
if [[ $DATAPATH == system && ! -e /sys/module/openvswitch ]] && ! modprobe openvswitch; then
  echo "the kernel of node $NODE_NAME has no module openvswitch: load it, or set conf.ovn_bridge_datapath_type to netdev" \
    "(datapath of the OVN object to userspace)" >&2
  exit 1
fi

bridge "$INTEGRATION_BRIDGE" fail_mode=secure
for mapping in ${BRIDGE_MAPPINGS//,/ }; do bridge "${mapping#*:}" fail_mode=standalone; done
for pair in $BRIDGE_CARDS; do
  bridge "${pair%%=*}" fail_mode=standalone
  port "${pair%%=*}" "${pair#*=}" "conf.auto_bridge_add.${pair%%=*}" "externalInterfaces.${pair%%=*}"
done
if tunnel_has_bridge; then
  need_card "$TUNNEL_CARD" network.interface.tunnel tunnelInterface
  # Noted before the card is taken, so that it is known after a restart in the middle.
  address=$(address_of "$TUNNEL_CARD")
  bridge "$tunnel_bridge" fail_mode=standalone
  [[ -z $address ]] || vsctl br-set-external-id "$tunnel_bridge" address "$address"
  port "$tunnel_bridge" "$TUNNEL_CARD" network.interface.tunnel tunnelInterface
fi
if [[ -n $flows ]]; then
  vsctl set open . other_config:flow-restore-wait=true
  restored "$flows" &
else
  vsctl remove open . other_config flow-restore-wait
fi
exec ovs-vswitchd "$switch" --pidfile=/run/openvswitch/ovs-vswitchd.pid --unixctl=/run/openvswitch/ovs-vswitchd.ctl
