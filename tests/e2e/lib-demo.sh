# shellcheck shell=bash
# What the scripts about the cloud and the VM of dev/up share. Sourced after lib.sh, never run.

E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$E2E/../../dev/lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$E2E/../../dev/k8s/cluster.sh"

DEMO=demo # the namespace of the VM

# up: dev/up with all that VMs take, on the nodes that there are.
up() { KUPENSTACK_VMS=yes KUPENSTACK_NODES=$(running_nodes | wc -l) "$E2E/../../dev/up"; }
demo() { kubectl -n "$DEMO" "$@"; }
openstack() { "$E2E/../../dev/bin/openstack" "$@"; }
