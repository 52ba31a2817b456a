#!/bin/bash
# build.sh: all that the local cluster runs: Debian packages, Kubernetes and its tools from source, its images.
# Takes about twelve minutes of CPU time once, then nothing until an input changes. Prints the folder.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$HERE/../lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/cluster.sh"
# shellcheck source=dev/k8s/go.sh
. "$HERE/go.sh"

APPLETS="etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl local-provisioner"

build_binaries() {
  local out=$1 kube minor helm version=k8s.io/component-base/version small=-gcflags=all=-dwarf=false
  cd "$HERE"
  export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
  kube=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  helm=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)
  # A module build has no version stamp of its own; the date is fixed, for a build that can be repeated.
  minor=${kube#v1.}
  local stamp="-s -w -X $version.gitVersion=$kube -X $version.gitMajor=1 -X $version.gitMinor=${minor%%.*}"
  stamp+=" -X $version.gitTreeState=clean -X $version.gitCommit=local -X $version.buildDate=2026-01-01T00:00:00Z"
  step "Kubernetes $kube, etcd (one binary; the long step)"
  go build "$small" -ldflags "$stamp" -o "$out/kubebox" ./kubebox
  step "CoreDNS"
  go build "$small" -ldflags "-s -w" -o "$out/coredns" ./coredns
  step "Helm $helm"
  go build "$small" -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$helm" -o "$out/helm" helm.sh/helm/v4/cmd/helm
  local applet
  for applet in $APPLETS; do ln -s kubebox "$out/$applet"; done
  # What goes on a person's PATH; a kubelet has no place there.
  for applet in kubectl helm; do ln -s "../bin/$applet" "$out/../tools/$applet"; done
}

build_images() {
  local bin=$1 out=$2 work=$3 applet links=()
  gcc -Os -static -s -o "$work/pause" "$HERE/pause.c"
  "$HERE/mkimage.py" "$out/pause.tar" kupenstack.local/pause:1 --entrypoint /pause "$work/pause=/pause"
  "$HERE/mkimage.py" "$out/coredns.tar" kupenstack.local/coredns:1 --entrypoint /coredns "$bin/coredns=/coredns"
  # A shell for tests. The statically linked busybox crashes when it looks up a name, so curl comes with it.
  for applet in $(busybox --list); do
    [ "$applet" = busybox ] || links+=(--link "/bin/$applet=busybox")
  done
  "$HERE/mkimage.py" "$out/busybox.tar" kupenstack.local/busybox:1 --folder /tmp:1777 "${links[@]}" \
    --program /usr/bin/curl "$(command -v busybox)=/bin/busybox"
}

build() {
  local part=$K8S_DIR.part
  rm -rf "$part"
  mkdir -p "$part/bin" "$part/tools" "$part/images" "$part/work"
  ensure_go "$HERE"
  (build_binaries "$part/bin")
  step "images of the cluster itself"
  build_images "$part/bin" "$part/images" "$part/work"
  rm -rf "$part/work"
  # The folder appears under its name only when it is complete.
  mv "$part" "$K8S_DIR"
  remove_old
}

# in_use DIR: processes come and go while find looks, so only what it found counts, not its result.
in_use() { [ -n "$(find /proc/[0-9]*/exe -lname "$1/*" 2>/dev/null)" ]; }

# remove_old: all but the three builds used last, and what a running node needs.
remove_old() {
  local dir
  find "$CACHE/k8s" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d ' ' -f 2 |
    while read -r dir; do
      in_use "$dir" || rm -rf "$dir"
    done
}

main() {
  PATH=$PATH:/usr/sbin:/sbin
  need_commands containerd=containerd runc=runc /usr/lib/cni/bridge=containernetworking-plugins \
    iptables=iptables nft=nftables conntrack=conntrack busybox=busybox-static curl=curl openssl=openssl \
    gcc=gcc /usr/include/signal.h=libc6-dev python3=python3 ip=iproute2 nsenter=util-linux flock=util-linux
  if [ ! -d "$K8S_DIR" ]; then
    mkdir -p "$CACHE/k8s"
    exec 9>"$CACHE/k8s/lock"
    flock 9
    [ -d "$K8S_DIR" ] || build
  fi
  touch "$K8S_DIR"
  echo "$K8S_DIR"
}

main
