#!/bin/bash
# build.sh: Helm 3, for tests of what Helm 3 and 4 make of each other's releases. It is on nobody's PATH and in no image.
# Takes about three minutes of CPU time once, then nothing until an input changes. Prints the program.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$HERE/../../lib.sh"
# shellcheck source=dev/k8s/go.sh
. "$HERE/../go.sh"

build() {
  local into=$PWD version
  cd "$HERE"
  ensure_go .
  export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
  version=$(go list -m -f '{{.Version}}' helm.sh/helm/v3)
  step "Helm $version, for tests"
  go build -gcflags=all=-dwarf=false -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$version" \
    -o "$into/bin/helm3" helm.sh/helm/v3/cmd/helm
}

# A key of its own: nothing of Kubernetes is built anew for it, nor it for anything of Kubernetes.
built_once helm3 "$HERE"/{go.mod,go.sum,build.sh}
echo "$BUILT/bin/helm3"
