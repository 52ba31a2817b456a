#!/bin/bash
# build.sh: OpenTofu and its OpenStack provider, for tests of the simulated OpenStack. They are on nobody's PATH and in no
# image. Takes about five minutes of CPU time once, then nothing until an input changes. Prints the folder with both.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$HERE/../../../../../dev/lib.sh"
# shellcheck source=dev/k8s/go.sh
. "$HERE/../../../../../dev/k8s/go.sh"

# Each has a module of its own: what one replaces or excludes is not for the other.
PROVIDER=github.com/terraform-provider-openstack/terraform-provider-openstack/v3

# program FOLDER PACKAGE NAME: into the current folder.
program() {
  local into=$PWD
  (cd "$HERE/$1" && ensure_go . && go build -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$into/$3" "$2")
}

build() {
  export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
  step "OpenTofu and its OpenStack provider, for tests"
  program provider "$PROVIDER" terraform-provider-openstack
  program tofu github.com/opentofu/opentofu/cmd/tofu tofu
}

built_once opentofu "$HERE"/{build.sh,{tofu,provider}/go.{mod,sum}}
echo "$BUILT"
