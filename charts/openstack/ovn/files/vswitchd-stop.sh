#!/bin/bash
# Leave behind what is to be done with packets: the switch in its place begins with that, and the VMs of the node need not wait until the
# controller, which looks every few seconds for a switch that has gone, has told it all anew.
set -euo pipefail
# shellcheck source=charts/openstack/ovn/files/lib.sh
. /scripts/lib.sh
rm -rf "$saved_flows"
vsctl br-exists "$INTEGRATION_BRIDGE" || exit 0 # the node is clean, and stays so
mkdir "$saved_flows"
# one that hangs, and is ended for that, tells nothing
TMPDIR=$saved_flows timeout 5 /usr/share/openvswitch/scripts/ovs-save save-flows "$INTEGRATION_BRIDGE" >"$saved_flows/restore.new"
mv "$saved_flows/restore.new" "$saved_flows/restore"
