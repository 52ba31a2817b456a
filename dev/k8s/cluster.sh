# shellcheck shell=bash disable=SC2034
# Names, addresses and look-ups of the local cluster. Sourced after lib.sh.

# Several clusters may run on one machine: each has a number, a state folder and networks of its own.
CLUSTER=${KUPENSTACK_CLUSTER:-0}
[[ $CLUSTER =~ ^[0-9]$ ]] || die "KUPENSTACK_CLUSTER is a digit, not '$CLUSTER'"
BRIDGE=kupenstack$CLUSTER
TUNNEL_BRIDGE=${BRIDGE}t             # between the nodes' second cards, for the networks of VMs
NODE_NET=10.88.$CLUSTER              # the machine is .1, node N is .N+1
TUNNEL_NET=10.89.$CLUSTER            # node N is .N+1
POD_NET=10.$((244 + CLUSTER))        # node N's pods are in .N.0/24
SERVICE_NET=10.$((96 + CLUSTER)).0
DNS_IP=$SERVICE_NET.10
API_IP=$NODE_NET.2
CGROUP_PREFIX=kupenstack$CLUSTER
DATA=$STATE/data
PKI=$DATA/pki
MOUNT_POINTS=/var/tmp/kupenstack.mount-points # empty folders that nodes of any cluster had to make on the machine
AUDIT_LOG=$DATA/log/audit.log        # writes of pods, one JSON object a line
LOCAL_KUBECONFIG=$STATE/kubeconfig

K8S=$REPO/dev/k8s
# The key covers every input of build.sh, so a path under K8S_DIR never changes its content.
K8S_KEY=$(content_hash "$K8S/go.mod" "$K8S/go.sum" "$K8S"/kubebox/*.go "$K8S"/coredns/*.go \
  "$K8S/build.sh" "$K8S/go.sh" "$K8S/mkimage.py" "$K8S/pause.c")
K8S_DIR=$CACHE/k8s/$K8S_KEY
BIN=$K8S_DIR/bin
TOOLS=$K8S_DIR/tools

node_ip() { echo "$NODE_NET.$(($1 + 1))"; }

# node_init N: the machine's pid of node N's process 1; fails when the node is not running.
node_init() {
  local outer inner
  outer=$(cat "$DATA/node$1.pid" 2>/dev/null) || return 1
  inner=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null) || return 1
  inner=${inner%% *}
  # A recycled pid of another program must never be taken for the node.
  [ -n "$inner" ] && grep -qzxF "$STATE" "/proc/$inner/cmdline" && echo "$inner"
}

running_nodes() {
  local file n
  for file in "$DATA"/node*.pid; do
    n=${file##*/node}
    n=${n%.pid}
    if [ -e "$file" ] && node_init "$n" >/dev/null; then echo "$n"; fi
  done
}

# in_node N COMMAND...: run in the node's mount and network namespaces.
in_node() {
  local init
  init=$(node_init "$1") || die "node$1 is not running"
  shift
  nsenter --target "$init" --mount --net "$@"
}

# remove_cgroups N: those of a node that has ended.
remove_cgroups() {
  local root
  for root in /sys/fs/cgroup/"$CGROUP_PREFIX-node$1" /sys/fs/cgroup/*/"$CGROUP_PREFIX-node$1"; do
    [ -d "$root" ] || continue
    wait_for 10 "the end of the processes in $root" find "$root" -depth -type d -exec rmdir {} +
  done
}

kubectl_local() { "$BIN/kubectl" --kubeconfig "$LOCAL_KUBECONFIG" "$@"; }

OUTSIDE=172.24.4 # network of the floating IPs, on a cloud with VMs

# lead_outside: this machine becomes the router of that network, which node 1 leads to; the other nodes and their pods find it there
# too. The way ends with the cluster. A router that is reached by a card does not see the switch go, and forgets nobody's address
# then; this one would, for a second.
lead_outside() {
  local n
  in_node 1 ip link set br-ex up || return
  in_node 1 sh -c 'f=/proc/sys/net/ipv4/conf/br-ex/arp_evict_nocarrier; [ ! -e "$f" ] || echo 0 >"$f"' || return
  in_node 1 ip addr replace "$OUTSIDE.1/24" dev br-ex
  for n in $(running_nodes); do
    [ "$n" = 1 ] || in_node "$n" ip route replace "$OUTSIDE.0/24" via "$(node_ip 1)" || return
  done
  ip route replace "$OUTSIDE.0/24" via "$(node_ip 1)"
}
