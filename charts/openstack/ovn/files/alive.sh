#!/bin/bash
# Does the controller answer, and is its node still called by its own name? Under another one it quarrels with its former record about
# the address of the tunnels, for ever and at full speed; what starts in its place says the name anew.
set -euo pipefail
# shellcheck source=charts/openstack/ovn/files/lib.sh
. /scripts/lib.sh
ovn-appctl --timeout=5 -t /run/ovn/ovn-controller.ctl version >/dev/null
name=$(vsctl get open . external-ids:system-id) || exit 0 # the switch's database is another pod, which may be away
[[ ${name//\"/} == "$NODE_NAME" ]] || {
  echo "this node is $NODE_NAME and calls itself $name"
  exit 1
}
