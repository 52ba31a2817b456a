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

# in_use FOLDER: mounted upon in any namespace of the machine. Removing it would take it from a node of another cluster,
# without a word: the kernel lets go of what is mounted in other namespaces.
in_use() { grep -qsF " $1 " /proc/[0-9]*/mountinfo; }

# Only the empty folders that nodes had to make on the machine, deepest first; the last cluster that uses one removes it.
remove_mount_points() {
  local folder
  [ -e "$MOUNT_POINTS" ] || return 0
  sort -ru "$MOUNT_POINTS" | while read -r folder; do
    if in_use "$folder"; then
      echo "$folder"
    else
      rmdir --ignore-fail-on-non-empty "$folder" 2>/dev/null || true
    fi
  done >"$MOUNT_POINTS.left"
  mv "$MOUNT_POINTS.left" "$MOUNT_POINTS"
  [ -s "$MOUNT_POINTS" ] || rm "$MOUNT_POINTS"
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
