# shellcheck shell=bash
# The Go that a module asks for. Sourced after lib.sh.

# ensure_go FOLDER: a Go that can build the module there (1.21 and later fetch the version it asks for by themselves).
ensure_go() {
  [ -x /usr/local/go/bin/go ] && PATH=$PATH:/usr/local/go/bin
  need_commands go=golang-go
  local minor
  minor=$(go env GOVERSION | sed 's/^go1\.\([0-9]*\).*/\1/')
  if [ "$minor" -ge 21 ]; then export GOTOOLCHAIN=auto; else fetch_go "$1"; fi
}

# fetch_go FOLDER: an older Go fetches a newer one as the module it is, and puts it on PATH.
fetch_go() {
  local version module dir
  version=$(sed -n 's/^toolchain \(go[0-9.]*\)$/\1/p; s/^go \([0-9.]*\)$/go\1/p' "$1/go.mod" | tail -n 1)
  module=golang.org/toolchain@v0.0.1-$version.$(go env GOOS)-$(go env GOARCH)
  say "fetching $version with $(go env GOVERSION)"
  dir=$(cd / && go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -n "$dir" ] || die "could not fetch $module"
  # The module cache is read-only and keeps no execute bits.
  chmod -R u+w "$dir" && chmod -R a+x "$dir/bin" "$dir/pkg/tool"
  export PATH=$dir/bin:$PATH GOTOOLCHAIN=local
}

# built_once NAME FILE...: what the function build makes of these files in the current folder, in a folder of the cache that
# is named by their content. Sets BUILT to it.
built_once() {
  local name=$1 lock
  shift
  BUILT=$CACHE/$name/$(content_hash "$@")
  if [ ! -d "$BUILT" ]; then
    need_commands flock=util-linux
    mkdir -p "$CACHE/$name"
    exec {lock}>"$CACHE/$name/lock"
    flock "$lock"
    [ -d "$BUILT" ] || (build_anew "$name") >&2
    exec {lock}>&-
  fi
  touch "$BUILT"
}

# The folder appears under its name only when it is complete. Those that nobody used for a day go.
build_anew() {
  rm -rf "$BUILT.part"
  mkdir "$BUILT.part"
  cd "$BUILT.part" || exit
  build
  mv "$BUILT.part" "$BUILT"
  find "$CACHE/$1" -mindepth 1 -maxdepth 1 -type d -mtime +0 -exec rm -rf {} +
}
