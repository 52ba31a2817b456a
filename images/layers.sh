# Every layer: inputs_NAME prints what its key depends on, make_NAME OUT [ARG] writes its tar. Sourced by build.sh.
# shellcheck shell=bash

inputs_base() { :; }
make_base() {
  local sources
  apt_network > "$WORK/apt-network"
  readarray -t sources < <(debian_sources)
  quietly base unshare --mount --propagation private \
    bash "$HERE/base/make.sh" "$WORK/base.new" "$SUITE" "$WORK/apt-network" "${sources[@]}"
  pack "$WORK/base.new" "$1"
}

inputs_infra() { digest_of infra; }
make_infra() { installed infra "$1"; }

# The program every service pod waits with. It is on top, so that a change to it costs no rebuild of what is below.
inputs_entrypoint() { digest_of base/kubernetes_entrypoint.py; }
make_entrypoint() {
  install -Dm755 "$HERE/base/kubernetes_entrypoint.py" "$WORK/entrypoint/usr/local/bin/kubernetes-entrypoint"
  pack "$WORK/entrypoint" "$1"
}

inputs_openstack() { digest_of openstack/install.sh; }
make_openstack() { installed openstack "$1"; }

# One virtual environment with every service of a release, from its lock.
inputs_venv() { digest_of openstack/venv.sh "openstack/lock-$1.txt"; }
make_venv() {
  in_tree "venv-$2" openstack bash -euo pipefail /mnt/venv.sh "/mnt/lock-$2.txt"
  pack "$UPPER" "$1" --path opt/openstack
}

# The disk of the test VM; the only thing here that is no container layer.
inputs_vm() { digest_of vm; }
make_vm() {
  in_tree vm vm bash -euo pipefail /mnt/make.sh
  mv "$UPPER/root/tiny.qcow2" "$1"
}

# A web server for VM images and other fixtures: one static program and what it serves.
inputs_files() { layer_key vm && digest_of files; }
make_files() {
  local root=$WORK/files www=$WORK/files/www
  in_tree files files bash -euo pipefail /mnt/install.sh
  install -Dm755 "$UPPER/usr/bin/busybox" "$root/bin/busybox"
  install -dm755 "$www"
  image vm
  install -m644 "$IMAGE" "$www/tiny.qcow2"
  install -m644 /dev/null "$www/empty.img"
  (cd "$www" && sha256sum empty.img tiny.qcow2 > sha256sums)
  pack "$root" "$1"
}

inputs_operator_tools() { digest_of operator/install.sh; }
make_operator_tools() { installed operator "$1"; }
