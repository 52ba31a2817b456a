#!/bin/bash
# build.sh [NAME...]: build images into the cache; prints one line "NAME<TAB>REF<TAB>PATH" for each. See README.md.
set -euo pipefail
shopt -s inherit_errexit
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
source "$HERE/lib.sh"
source "$HERE/layers.sh"

KEEP=2 # variants of one image or layer that stay in the cache

SYSTEM_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# layers_of IMAGE: from the bottom up. A runtime unpacks a shared layer once, but only if all below it is shared too.
layers_of() {
  case $1 in
    infra) echo base infra entrypoint ;;
    openstack-*) echo base "venv:${1#openstack-}" openstack entrypoint ;;
    compute-*) echo base "venv:${1#compute-}" compute entrypoint ;;
    operator) echo base operator_tools operator ;;
    files) echo files ;;
    *) say "there is no image named $1" && return 2 ;;
  esac
}

settings_of() {
  case $1 in
    openstack-* | compute-*) echo --env "PATH=/opt/openstack/bin:$SYSTEM_PATH" --env LANG=C.UTF-8 --env PYTHONUNBUFFERED=1 --env PYTHONWARNINGS=ignore ;;
    operator) echo --env "PATH=$SYSTEM_PATH" --env LANG=C.UTF-8 --env HOME=/tmp --user 65532:65532 ;;
    files) echo --env PATH=/bin --user 65534:65534 ;;
    *) echo --env "PATH=$SYSTEM_PATH" --env LANG=C.UTF-8 --env PYTHONUNBUFFERED=1 ;;
  esac
}

# ref_of IMAGE KEY
ref_of() {
  case $1 in
    openstack-* | compute-*) echo "kupenstack.local/${1%%-*}:${1#*-}" ;;
    operator) echo "kupenstack.local/operator:$2" ;;
    vm) echo - ;; # a disk, nothing to import into a runtime
    *) echo "kupenstack.local/$1:dev" ;;
  esac
}

# path_of IMAGE KEY
path_of() {
  case $1 in
    vm) echo "$STORE/vm-$2.qcow2" ;;
    *) echo "$STORE/$1-$2.tar" ;;
  esac
}

image_key() {
  local part parts
  [[ $1 != vm ]] || { layer_key vm && return; }
  parts=$(layers_of "$1")
  {
    for part in $parts; do layer_key "$part" || return; done
    settings_of "$1"
    declare -f write_image ref_of
  } | short_hash
}

# write_image IMAGE KEY OUT
write_image() {
  local part settings tars=()
  [[ $1 != vm ]] || { make_vm "$3" && return; }
  read -ra settings < <(settings_of "$1")
  for part in $(layers_of "$1"); do
    layer "$part"
    tars+=("$LAYER")
  done
  "$HERE/mkimage.py" image "$3" "$(ref_of "$1" "$2")" "${settings[@]}" "${tars[@]}"
}

# image IMAGE: build it unless the store has it. Sets IMAGE, its path, and KEY.
image() {
  local key path part started=$SECONDS
  key=$(image_key "$1")
  path=$(path_of "$1" "$key")
  if [[ ! -e $path ]]; then
    open_store
    part=$WORK/${path##*/}
    write_image "$1" "$key" "$part"
    mv "$part" "$path"
    keep_newest "$STORE/$1" "${path##*.}"
    say "$1: done in $((SECONDS - started)) s, $(($(stat -c %s "$path") >> 20)) MB"
  fi
  touch "$path"
  KEY=$key IMAGE=$path
}

# open_store: before the first write. One builder at a time; what an interrupted one left behind goes.
open_store() {
  [[ -z ${WORK:-} ]] || return 0
  [[ $EUID == 0 ]] || { say "building needs root" && return 1; }
  mkdir -p "$LAYERS" "$DOWNLOADS"
  exec 9> "$STORE/lock"
  flock 9
  rm -rf "$STORE"/work.*
  WORK=$(mktemp -d "$STORE/work.XXXXXX")
  trap 'rm -rf --one-file-system "$WORK"' EXIT
  trap 'exit 130' INT TERM
  command -v mmdebstrap > /dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends mmdebstrap; } >&2
  apt_settings
}

# keep_newest PREFIX EXTENSION: of the files PREFIX-KEY.EXTENSION, all but the latest used few go.
keep_newest() {
  local old
  find "${1%/*}" -maxdepth 1 -name "${1##*/}-????????????.$2" -printf '%T@ %p\n' | sort -rn | tail -n "+$((KEEP + 1))" |
    while read -r _ old; do rm -f "$old" "$old.sha256"; done
}

[[ $# -gt 0 ]] || set -- infra openstack-2026.2 operator files vm
for name; do
  [[ $name != operator ]] || find_operator
  image "$name"
  printf '%s\t%s\t%s\n' "$name" "$(ref_of "$name" "$KEY")" "$IMAGE"
done
