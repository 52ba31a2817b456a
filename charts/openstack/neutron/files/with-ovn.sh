#!/bin/bash
# with-ovn.sh COMMAND...: run it with the addresses of OVN's databases. Neutron hands them on to programs that know
# nothing of the cluster's names.
set -euo pipefail

# address HOST PORT
address() {
  local found
  until found=$(getent ahostsv4 "$1" | awk 'NR == 1 {print $1}') && [[ $found ]]; do
    echo "waiting for the name $1" >&2
    sleep 1
  done
  echo "tcp:$found:$2"
}

# shellcheck disable=SC2086 # host and port
OS_OVN__OVN_NB_CONNECTION=$(address $OVN_NB) OS_OVN__OVN_SB_CONNECTION=$(address $OVN_SB)
export OS_OVN__OVN_NB_CONNECTION OS_OVN__OVN_SB_CONNECTION
exec "$@"
