# shellcheck shell=bash disable=SC2034
# What the scripts of the switch share. Sourced, never run.

switch=unix:/run/openvswitch/db.sock
# Where a switch leaves its flows for the one in its place. A node that starts anew has none.
saved_flows=/run/openvswitch/flows

# Settings in the switch's database, which the switch itself need not run for.
vsctl() { ovs-vsctl --db="$switch" --no-wait --timeout=10 "$@"; }

# database HOST PORT: as an address. OVN's programs ask name servers by themselves, and know nothing of the cluster's names.
database() {
  local address
  until address=$(getent ahostsv4 "$1" | awk 'NR == 1 {print $1}') && [[ $address ]]; do
    echo "waiting for the name $1" >&2
    sleep 1
  done
  echo "tcp:$address:$2"
}

# address_of CARD: its first address, with the length of its network.
address_of() { ip -4 -oneline addr show dev "$1" scope global 2>/dev/null | awk 'NR == 1 {print $4}'; }

# need_card CARD VALUE FIELD: the value of the chart that names it, and the field of the operator's object.
need_card() {
  [[ ! -e /sys/class/net/$1 ]] || return 0
  echo "node $NODE_NAME has no network card $1, which $2 names ($3 of the OVN object): correct that, or take the node's label away" >&2
  exit 1
}

# The bridge that the tunnels' card goes into: the switch in user space sends a tunnel only through a bridge of its own.
tunnel_bridge=br-tunnel
tunnel_has_bridge() { [[ $TUNNEL_CARD && $DATAPATH == netdev ]]; }
