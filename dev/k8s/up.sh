#!/bin/bash
# up.sh: start the local cluster, or what is missing of it, and wait until it works.
# KUPENSTACK_NODES (those that there are, or 1): how many nodes. KUPENSTACK_CLUSTER (0): which of several clusters of this machine.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$HERE/../lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/cluster.sh"

known_nodes() {
  local dir n=0
  for dir in "$DATA"/node*/; do [ ! -d "$dir" ] || n=$((n + 1)); done
  echo $((n > 0 ? n : 1))
}

NODES=${KUPENSTACK_NODES:-$(known_nodes)}

# bridge NAME [ADDRESS]
bridge() {
  [ ! -d "/sys/class/net/$1" ] || return 0
  ip link add "$1" type bridge
  [ -z "${2:-}" ] || ip addr add "$2" dev "$1"
  ip link set "$1" up
}

kernel_modules() {
  [ -d /proc/sys/net/bridge ] || modprobe -q br_netfilter || say "no br_netfilter: pods can't reach Services of their own node's pods"
  grep -qw overlay /proc/filesystems || modprobe -q overlay || die "the kernel has no overlay file system"
}

has_own_network() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

# detached COMMAND...: in a session of its own, without any descriptor of this script's callers: a node that kept a lock
# or a pipe would hold it as long as it lives.
detached() {
  local fd
  for fd in "/proc/$BASHPID/fd"/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || eval "exec $fd>&-"
  done
  exec setsid "$@"
}

start_node() {
  local n=$1 outer
  rm -f "$DATA/node$n.pid"
  # A killed node's cgroups would hold up the kubelet: it looks for the end of each container in them, 3 s long.
  remove_cgroups "$n"
  KUPENSTACK_STATE=$STATE KUPENSTACK_CACHE=$CACHE KUPENSTACK_CLUSTER=$CLUSTER \
    detached unshare --mount --pid --fork --kill-child --uts --ipc --net --mount-proc \
    "$HERE/node.sh" "$n" "$STATE" </dev/null >>"$DATA/log/node$n.log" 2>&1 &
  outer=$!
  echo "$outer" >"$DATA/node$n.pid"
  wait_for 10 "node$n's process" node_init "$n"
  wait_for 10 "node$n's network namespace" has_own_network "$(node_init "$n")"
}

# The kernel removes a killed node's link some time after the node.
link_gone() { [ ! -e "/sys/class/net/$1" ] || ip link del "$1"; }

# plug N CARD BRIDGE: a network card of the node, on a bridge of the machine.
plug() {
  local link=$3n$1
  wait_for 10 "the end of the link $link" link_gone "$link"
  ip link add "$link" type veth peer name "$2" netns "$(node_init "$1")"
  ip link set "$link" master "$3" up
}

has_card() { in_node "$1" ip link show "$2" >/dev/null 2>&1; }

connect_node() {
  local n=$1
  if ! has_card "$n" eth1; then
    plug "$n" eth1 "$TUNNEL_BRIDGE"
    in_node "$n" ip addr add "$TUNNEL_NET.$((n + 1))/24" dev eth1
    in_node "$n" ip link set eth1 up
  fi
  # The node takes its address when it sees this card.
  has_card "$n" eth0 && return
  plug "$n" eth0 "$BRIDGE"
  wait_for 10 "node$n's address" has_address "$n"
}

# The machine and each node know where each node's pods are.
routes() {
  local n other
  ip route replace "$SERVICE_NET.0/16" via "$API_IP"
  for n in $1; do
    ip route replace "$POD_NET.$n.0/24" via "$(node_ip "$n")"
    for other in $1; do
      [ "$other" = "$n" ] ||
        in_node "$n" ip route replace "$POD_NET.$other.0/24" via "$(node_ip "$other")"
    done
  done
}

api_ready() { kubectl_local get --raw /readyz; }
containerd_ready() { in_node "$1" ctr version; }
has_address() { in_node "$1" ip route get "$NODE_NET.1"; }

# node_ready N TIME: a restarted node's stored condition says Ready until somebody corrects it, so only a heartbeat of
# the kubelet that started at TIME or later counts.
node_ready() {
  local state
  state=$(kubectl_local get node "node$1" -o \
    'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end}') &&
    [[ $state == "True "* && ${state#True } > $2 ]]
}

dns_ready() { curl -sf --max-time 1 --noproxy '*' "http://$DNS_IP:9153/metrics"; }

addons() {
  sed "s/@DNS_IP@/$DNS_IP/" "$HERE"/addons/*.yaml | kubectl_local apply --server-side -f - >/dev/null
}

prepare() {
  local n nodes=()
  mkdir -p "$DATA/log"
  for n in $(seq 1 "$NODES"); do nodes+=("node$n=$(node_ip "$n")"); done
  "$HERE/pki.sh" "${nodes[@]}"
  install -m 600 "$PKI/admin.kubeconfig" "$LOCAL_KUBECONFIG"
  kernel_modules
  bridge "$BRIDGE" "$NODE_NET.1/24"
  bridge "$TUNNEL_BRIDGE"
  ulimit -n "$(ulimit -Hn)"
}

main() {
  local n running since started=" "
  need_root
  PATH=$PATH:/usr/sbin:/sbin
  "$HERE/build.sh" >/dev/null
  mkdir -p "$STATE"
  exec 9>"$STATE/lock"
  flock 9
  prepare
  since=$(date -u +%FT%T)
  for n in $(seq 1 "$NODES"); do
    node_init "$n" >/dev/null && continue
    step "starting node$n"
    start_node "$n"
    started+="$n "
  done
  running=$(running_nodes)
  for n in $running; do connect_node "$n"; done
  routes "$running"
  for n in $running; do wait_for 60 "node$n's containerd" containerd_ready "$n"; done
  "$HERE/import.sh" "$K8S_DIR"/images/*.tar
  wait_for 120 "the API server" api_ready
  [ "$started" = " " ] || step "API server ready"
  addons
  for n in $running; do
    case $started in
      *" $n "*) wait_for 120 "node$n" node_ready "$n" "$since" ;;
      *) wait_for 120 "node$n" node_ready "$n" "" ;;
    esac
  done
  kubectl_local label node node1 node-role.kubernetes.io/control-plane= --overwrite >/dev/null
  [ "$started" = " " ] || step "nodes ready"
  kubectl_local -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null
  wait_for 60 "DNS" dns_ready
  step "cluster ready: $(wc -w <<<"$running") node(s), KUBECONFIG=$LOCAL_KUBECONFIG"
}

main
