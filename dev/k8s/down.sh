#!/bin/bash
# down.sh [--wipe]: stop the local cluster; with --wipe remove its data too. Leaves nothing behind on the machine.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$HERE/../lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/cluster.sh"

gone() { [ ! -e "/proc/$1" ]; }

# Ending process 1 of the node's pid namespace ends every process in it.
stop_node() {
  local init outer
  init=$(node_init "$1")
  outer=$(cat "$DATA/node$1.pid")
  kill -KILL "$init"
  wait_for 30 "the end of node$1" gone "$outer"
}

# Only the empty folders that a node had to make on the machine, deepest first.
remove_mount_points() {
  [ -e "$DATA/mount-points" ] || return 0
  sort -ru "$DATA/mount-points" | xargs -r rmdir --ignore-fail-on-non-empty 2>/dev/null || true
  rm -f "$DATA/mount-points"
}

main() {
  local n file bridge
  need_root
  PATH=$PATH:/usr/sbin:/sbin
  [ -d "$STATE" ] || return 0
  exec 9>"$STATE/lock"
  flock 9
  for n in $(running_nodes); do
    step "stopping node$n"
    stop_node "$n"
  done
  for file in "$DATA"/node*.pid; do # killed ones too
    [ -e "$file" ] || continue
    n=${file##*/node}
    remove_cgroups "${n%.pid}"
    rm -f "$file"
  done
  for bridge in "$BRIDGE" "$TUNNEL_BRIDGE"; do
    [ ! -d "/sys/class/net/$bridge" ] || ip link del "$bridge"
  done
  remove_mount_points
  if [ "${1:-}" = --wipe ]; then
    grep -q " $DATA/" /proc/self/mountinfo && die "something is still mounted below $DATA"
    rm -rf "$DATA" "$LOCAL_KUBECONFIG" "$STATE/lock"
    rmdir --ignore-fail-on-non-empty "$STATE"
  fi
}

main "$@"
