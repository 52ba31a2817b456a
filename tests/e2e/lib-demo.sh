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
# no_cloud: what `up` has made goes, with its data.
no_cloud() {
  kubectl get openstack default || return 0
  kubectl delete namespace "$DEMO" --ignore-not-found --timeout=180s &&
    kubectl delete -f "$E2E/../../examples/first-vm/offers.yaml" --ignore-not-found --timeout=120s &&
    kubectl delete openstack default --timeout=300s && kubectl delete namespace openstack --timeout=300s
}

# vm_is_asked: five times a second, until ASKING is ended; sets ASKING. Answers are kept in the folder WORK.
vm_is_asked() {
  local ip
  ip=$(demo get floatingip web.public -o 'jsonpath={.status.address}') || return
  within 60 ping -c 1 -W 1 "$ip" || return
  ping -i 0.2 -W 1 -O "$ip" >"$WORK/ping" &
  ASKING=$!
}
# lost_at_most N: ends the asking; of its questions no more than so many had no answer. It says to 3 how many.
lost_at_most() {
  local asked lost
  kill -INT "$ASKING"
  wait "$ASKING" || true
  read -r asked lost < <(awk '/packets transmitted/ {print $1, $1 - $4}' "$WORK/ping")
  echo "     $lost of $asked had no answer" >&3
  # the last one may be on its way
  [ "$asked" -ge 10 ] && [ "$lost" -le $(($1 + 1)) ]
}
