# Every layer: inputs_NAME prints what its key depends on, make_NAME OUT [ARG] writes its tar. Sourced by build.sh.
# shellcheck shell=bash

inputs_base() { :; }
make_base() {
  quietly base unshare --mount --propagation private \
    bash "$HERE/base/make.sh" "$WORK/base.new" "$SUITE" "$WORK"
  pack "$WORK/base.new" "$1"
}

inputs_infra() { digest_of infra; }
make_infra() { installed infra infra "$1"; }

# The program every service pod waits with. It is on top, so that a change to it costs no rebuild of what is below.
inputs_entrypoint() { digest_of base/kubernetes_entrypoint.py; }
make_entrypoint() {
  install -Dm755 "$HERE/base/kubernetes_entrypoint.py" "$WORK/entrypoint/usr/local/bin/kubernetes-entrypoint"
  pack "$WORK/entrypoint" "$1"
}

inputs_openstack() { digest_of openstack/install.sh; }
make_openstack() { installed openstack openstack "$1"; }

inputs_compute() { digest_of compute; }
make_compute() { installed compute compute "$1"; }

# One virtual environment with every service of a release, from its lock.
inputs_venv() { digest_of openstack/venv.sh "openstack/lock-$1.txt"; }
make_venv() {
  in_tree "venv-$2" openstack bash /mnt/venv.sh "/mnt/lock-$2.txt"
  pack "$UPPER" "$1" --path opt/openstack
}

# The disk of the test VM; the only thing here that is no container layer.
inputs_vm() { digest_of vm; }
make_vm() {
  in_tree vm vm bash /mnt/make.sh
  mv "$UPPER/root/tiny.qcow2" "$1"
}

# A web server for VM images and other fixtures: one static program and what it serves.
inputs_files() { layer_key vm && digest_of files; }
make_files() {
  local root=$WORK/files www=$WORK/files/www
  in_tree files files bash /mnt/install.sh
  install -Dm755 "$UPPER/usr/bin/busybox" "$root/bin/busybox"
  install -dm755 "$www"
  image vm
  install -m644 "$IMAGE" "$www/tiny.qcow2"
  install -m644 /dev/null "$www/empty.img"
  (cd "$www" && sha256sum empty.img tiny.qcow2 > sha256sums)
  pack "$root" "$1"
}

inputs_operator_tools() { digest_of operator/install.sh; }
make_operator_tools() { installed operator_tools operator "$1"; }

# The operator's program, helm and the charts. find_operator must have been called.
inputs_operator() {
  sha256sum < "$OPERATOR" && sha256sum < "$HELM"
  (cd "$HERE/../charts/openstack" && find -L . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
  digest_of operator/check.sh
}
make_operator() {
  local chart bin=$WORK/operator.upper/usr/local/bin charts=$WORK/operator.upper/usr/share/kupenstack/charts
  mkdir -p "$bin" "$charts"
  strip -o "$bin/kupenstack" "$OPERATOR"
  install -m755 "$HELM" "$bin/helm"
  # -L: a chart links to the library chart beside it, and each must be whole where it lies alone.
  for chart in "$HERE"/../charts/openstack/*/templates; do cp -rL "${chart%/templates}" "$charts/"; done
  rm -r "$charts/toolkit"
  in_tree operator operator bash /mnt/check.sh
  pack "$UPPER" "$1"
}

# find_operator: build the operator's program. Sets OPERATOR and HELM, the files.
find_operator() {
  local profile=${KUPENSTACK_PROFILE:-dev} cache=${STORE%/*}
  HELM=${HELM_BIN:-$(find "$cache"/k8s/*/bin/helm -printf '%T@ %p\n' 2> /dev/null | sort -rn | sed -n '1s/^[^ ]* //p')}
  [[ -x $HELM ]] || { say "no helm: set HELM_BIN" && return 1; }
  OPERATOR=$cache/target/${profile/#dev/debug}/kupenstack
  (cd "$HERE/.." && CARGO_TARGET_DIR=$cache/target cargo build --quiet --profile "$profile" -p kupenstack >&2)
}
