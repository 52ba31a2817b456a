#!/bin/bash
# import.sh ARCHIVE...: put image archives (OCI layout) into every running node that has not got the same content.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

# "NAME DIGEST" of an archive's image. The index names its content by digest, so the (large) archive need not be
# read; it is the archive's second entry, and tar stops there.
describe() {
  tar -xO --occurrence=1 -f "$1" index.json | python3 -c '
import json, sys
for m in json.load(sys.stdin)["manifests"]:
    print(m["annotations"]["io.containerd.image.name"], m["digest"])'
}

node_images() { in_node "$1" ctr -n k8s.io images ls | awk '{print $1, $3}'; }

import_into() {
  local n=$1 archive image
  shift
  for archive in "$@"; do
    image=$(describe "$archive")
    grep -qxF "$image" <<<"$(node_images "$n")" && continue
    say "node$n: importing ${image%% *}"
    in_node "$n" ctr -n k8s.io images import "$archive" >/dev/null
  done
}

main() {
  local nodes n imports=() one
  need_root
  nodes=$(running_nodes)
  [ -n "$nodes" ] || die "no node is running"
  for n in $nodes; do
    import_into "$n" "$@" &
    imports+=($!)
  done
  for one in "${imports[@]}"; do wait "$one"; done
}

main "$@"
