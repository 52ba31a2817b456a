#!/bin/bash
# build.sh: Helm 3, for tests of what Helm 3 and 4 make of each other's releases. It is on nobody's PATH and in no image.
# Takes about three minutes of CPU time once, then nothing until an input changes. Prints the program.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$HERE/../../lib.sh"
# shellcheck source=dev/k8s/go.sh
. "$HERE/../go.sh"

# A key of its own: nothing of Kubernetes is built anew for it, nor it for anything of Kubernetes.
DIR=$CACHE/helm3/$(content_hash "$HERE/go.mod" "$HERE/go.sum" "$HERE/build.sh")
PROGRAM=$DIR/bin/helm3

build() {
  local part=$DIR.part version
  rm -rf "$part"
  mkdir -p "$part/bin"
  ensure_go "$HERE"
  cd "$HERE"
  export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
  version=$(go list -m -f '{{.Version}}' helm.sh/helm/v3)
  step "Helm $version, for tests"
  go build -gcflags=all=-dwarf=false -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$version" \
    -o "$part/bin/helm3" helm.sh/helm/v3/cmd/helm
  # The folder appears under its name only when it is complete. Those that nobody used for a day go.
  mv "$part" "$DIR"
  find "$CACHE/helm3" -mindepth 1 -maxdepth 1 -type d -mtime +0 -exec rm -rf {} +
}

main() {
  if [ ! -x "$PROGRAM" ]; then
    need_commands flock=util-linux
    mkdir -p "$CACHE/helm3"
    exec 9>"$CACHE/helm3/lock"
    flock 9
    [ -x "$PROGRAM" ] || (build) >&2
  fi
  touch "$DIR"
  echo "$PROGRAM"
}

main
