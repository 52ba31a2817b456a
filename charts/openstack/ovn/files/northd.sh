#!/bin/bash
# The translator between the databases. Of several one works, the others wait.
set -euo pipefail
# shellcheck source=charts/openstack/ovn/files/lib.sh
. /scripts/lib.sh

# shellcheck disable=SC2086 # host and port
exec ovn-northd --ovnnb-db="$(database $OVN_NB)" --ovnsb-db="$(database $OVN_SB)" --unixctl=/run/ovn/northd.ctl
