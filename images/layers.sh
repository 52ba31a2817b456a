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
