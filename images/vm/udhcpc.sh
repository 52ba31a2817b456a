#!/bin/sh
# shellcheck disable=SC2154,SC2086
# udhcpc calls this with what the DHCP server said in variables.
case $1 in bound | renew) ;; *) exit 0 ;; esac

ip addr flush dev "$interface"
ip addr add "$ip/${mask:-24}" dev "$interface"
[ -z "$mtu" ] || ip link set "$interface" mtu "$mtu"

# Routes sent by option 121 come in pairs of destination and gateway; the metadata address is among them.
set -- $staticroutes
while [ $# -ge 2 ]; do
  case $1 in 0.0.0.0 | 0.0.0.0/0) destination=default ;; *) destination=$1 ;; esac
  ip route add "$destination" via "$2" dev "$interface" 2> /dev/null || ip route add "$destination" dev "$interface"
  shift 2
done
ip route | grep -q ^default || [ -z "$router" ] || ip route add default via "${router%% *}"

for server in $dns; do echo "nameserver $server"; done > /etc/resolv.conf
