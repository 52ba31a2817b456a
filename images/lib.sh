# Root file systems and layers: sourced by build.sh. Part of every layer's key, so a change here rebuilds all.
# shellcheck shell=bash

SUITE=trixie
# Debian's packages are not pinned one by one: this date says which state of the suite the images were made for.
# Move it forward to build with newer packages. No file in a layer is newer than it.
PACKAGES_OF=2026-11-27
SOURCE_DATE_EPOCH=$(date -u -d "$PACKAGES_OF" +%s)
export SOURCE_DATE_EPOCH

STORE=${KUPENSTACK_CACHE:-$HOME/.cache/kupenstack}/images
LAYERS=$STORE/layers
DOWNLOADS=$STORE/downloads # packages as downloaded: only makes rebuilding cheap

# What a build leaves in a tree and no image needs.
LEFTOVERS=('proc/*' 'sys/*' 'dev/*' 'run/*' 'tmp/*' 'mnt/*' 'srv/*' 'root/*' 'var/cache/*' 'var/lib/apt/lists/*'
  'etc/apt/sources.list'
  'var/log/apt/*' 'var/log/*.log' 'var/lib/dpkg/*-old' 'etc/*-' 'usr/share/doc/*' 'usr/share/man/*'
  'usr/share/info/*' 'usr/share/locale/*' 'usr/share/lintian/*')

say() { printf '%s images: %s\n' "$(date +%T)" "$*" >&2; }

# digest_of FILE-OR-DIR...: 12 digits that change when a name below images/ or a byte does.
digest_of() {
  (cd "$HERE" && find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | short_hash
}

short_hash() { sha256sum | cut -c1-12; }

# debian_sources: the package sources of this machine with the suite's name put in: its mirror serves the images too.
debian_sources() {
  local codename site release
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016 # apt's own variables
  apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u |
    while read -r site release; do
      [[ $release != "$codename"* ]] || echo "deb $site $SUITE${release#"$codename"} main"
    done
}

# apt_settings: how this machine's apt gets packages, as the files that trees are given while they are built.
apt_settings() {
  debian_sources > "$WORK/sources.list"
  if [[ ! -s $WORK/sources.list ]]; then
    apt-get update -q >&2 # a fresh machine has no lists yet
    debian_sources > "$WORK/sources.list"
  fi
  [[ -s $WORK/sources.list ]] || { say "apt of this machine knows no Debian packages" && return 1; }
  { apt-config dump | grep -iE '^Acquire::https?::' || true; } > "$WORK/apt.conf"
}

# quietly LOG COMMAND...: what builders print matters only when they fail.
quietly() {
  mkdir -p "$STORE/logs"
  "${@:2}" > "$STORE/logs/$1.log" 2>&1 && return
  tail -n 40 "$STORE/logs/$1.log" >&2
  say "$1 failed; all of its output is in $STORE/logs/$1.log"
  return 1
}

# in_tree NAME SOURCE COMMAND...: run COMMAND as root of the base tree, what it changes going to the tree UPPER, which
# is set. Mounts and processes live in namespaces of their own and end with the command. images/SOURCE is seen at /mnt,
# the downloads at /srv; names, trusted certificates and the proxy are this machine's.
in_tree() {
  base_tree
  UPPER=$WORK/$1.upper
  mkdir -p "$UPPER" "$WORK/overlay" "$WORK/root" "$DOWNLOADS"/{archives/partial,lists/partial}
  quietly "$1" unshare --mount --pid --fork --kill-child --propagation private -- \
    bash "$HERE/enter.sh" "$WORK" "$TREE" "$UPPER" "$HERE/$2" "$DOWNLOADS" "${@:3}"
}

# pack TREE OUT [OPTION...]: the layer of a tree.
pack() {
  local exclude=()
  for pattern in "${LEFTOVERS[@]}"; do exclude+=(--exclude "$pattern"); done
  "$HERE/mkimage.py" layer "$2" "$1" --newest "$SOURCE_DATE_EPOCH" "${exclude[@]}" "${@:3}"
}

# layer NAME[:ARG]: build the layer unless the store has it. Sets LAYER, its tar.
layer() {
  local name=${1%%:*} arg=${1#"${1%%:*}"} tar part started=$SECONDS
  arg=${arg#:}
  tar=$LAYERS/$name${arg:+-$arg}-$(layer_key "$1").tar
  if [[ ! -e $tar ]]; then
    say "layer $1: building"
    part=$WORK/${tar##*/}
    "make_$name" "$part" "$arg"
    mv "$part.sha256" "$tar.sha256"
    mv "$part" "$tar"
    keep_newest "$LAYERS/$name${arg:+-$arg}" tar
    say "layer $1: done in $((SECONDS - started)) s, $(($(stat -c %s "$tar") >> 20)) MB"
  fi
  touch "$tar"
  LAYER=$tar
}

# layer_key NAME[:ARG]: a hash of the layer's recipe and inputs, and of the base, which every recipe builds on.
layer_key() {
  local name=${1%%:*} arg=${1#"${1%%:*}"}
  { digest_of lib.sh enter.sh mkimage.py base/make.sh && declare -f make_base "make_$name" && "inputs_$name" "${arg#:}"; } | short_hash
}

# base_tree: unpack the base layer once per run. Sets TREE.
base_tree() {
  TREE=$WORK/base
  [[ ! -d $TREE ]] || return 0
  layer base
  mkdir "$TREE.part"
  tar -xpf "$LAYER" -C "$TREE.part" --numeric-owner
  mv "$TREE.part" "$TREE"
}

# installed NAME SOURCE OUT: what images/SOURCE/install.sh changes in the base, as a layer.
installed() {
  in_tree "$1" "$2" bash /mnt/install.sh
  pack "$UPPER" "$3"
}
