# shellcheck shell=bash disable=SC2034
# What the scripts of dev/ share: folders, progress lines, packages, content hashes. Sourced, never run.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Built things, keyed by the content of their inputs: safe to keep, safe to delete.
CACHE=${KUPENSTACK_CACHE:-${HOME:-/root}/.cache/kupenstack}
# The running cluster and its data.
STATE=${KUPENSTACK_STATE:-/var/tmp/kupenstack}
# One clock for an entry point and all the scripts it calls.
export KUPENSTACK_T0=${KUPENSTACK_T0:-$(date +%s%3N)}

elapsed() {
  local ms=$(($(date +%s%3N) - KUPENSTACK_T0))
  printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100))
}

# Progress goes to stderr: stdout belongs to results.
step() { printf '[%7s s] %s\n' "$(elapsed)" "$*" >&2; }
say() { printf '[%7s s]   %s\n' "$(elapsed)" "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

need_root() {
  [ "$(id -u)" = 0 ] || die "$(basename "$0") needs root: it makes network namespaces, mounts and cgroups"
}

have() { command -v "$1" >/dev/null 2>&1; }

# install_packages PACKAGE...: Debian packages, never at the price of removing another one.
install_packages() {
  [ $# -gt 0 ] || return 0
  have apt-get || die "these Debian packages are needed, and there is no apt-get here: $*"
  need_root
  say "installing Debian packages: $*"
  apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
    --no-install-recommends --no-remove "$@" >/dev/null
}

# need_commands COMMAND-OR-FILE=PACKAGE...: install the packages whose program or file is missing. These are
# looked for rather than packages, so that another vendor's runc or containerd is left alone.
need_commands() {
  local pair missing=()
  for pair in "$@"; do
    have "${pair%%=*}" || [ -e "${pair%%=*}" ] || missing+=("${pair#*=}")
  done
  install_packages ${missing[@]+"${missing[@]}"}
}

# content_hash TEXT-OR-FILE...: 12 hex digits over the files' content (and names) and the other words.
content_hash() {
  local arg
  for arg in "$@"; do
    if [ -f "$arg" ]; then
      printf '%s ' "${arg#"$REPO"/}"
      sha256sum <"$arg"
    else
      printf '%s\n' "$arg"
    fi
  done | sha256sum | cut -c1-12
}

# wait_for SECONDS WHAT COMMAND...: look until the command succeeds, for conditions that nothing announces.
wait_for() {
  local limit=$1 what=$2 end
  shift 2
  end=$(($(date +%s) + limit))
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || die "$what: not within $limit s"
    sleep 0.1
  done
}

# ensure_rust: a cargo that can follow rust-toolchain.toml.
ensure_rust() {
  have cargo && return 0
  if [ -x "${HOME:-/root}/.cargo/bin/cargo" ]; then
    PATH=${HOME:-/root}/.cargo/bin:$PATH
    return 0
  fi
  need_commands gcc=gcc
  apt-cache show rustup >/dev/null 2>&1 || apt-get update -qq >&2
  apt-cache show rustup >/dev/null 2>&1 ||
    die "Rust is missing and this Debian has no package rustup; install it from https://rustup.rs and run again"
  install_packages rustup libc6-dev
  (cd "$REPO" && rustup toolchain install >&2)
}
