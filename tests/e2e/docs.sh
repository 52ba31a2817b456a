#!/bin/bash
# The commands of the task pages, as printed: every block marked `sh`, page by page and in order. A page leaves nothing
# behind. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
REPO=$(cd "$HERE/../.." && pwd)
PAGES=(getting-started configure)
BLOCKS=$(mktemp -d)

# blocks PAGE: one file per block, named by the line it begins at.
blocks() {
  awk -v folder="$BLOCKS" -v page="$1" '
    /^```sh$/ {file = sprintf("%s/%s:%04d", folder, page, NR); next}
    /^```$/ {if (file) close(file); file = ""}
    file {print > file}
  ' "$REPO/docs/$1.md"
}

# A page's commands are meant for the repository's folder, after each other, in one shell's environment.
as_printed() { (cd "$REPO" && bash -euo pipefail "$1"); }

main() {
  local page block
  for page in "${PAGES[@]}"; do
    blocks "$page"
    ok "docs/$page.md has commands to run" test -e "$(find "$BLOCKS" -name "$page:*" -print -quit)"
    for block in "$BLOCKS/$page":*; do
      ok "docs/${block##*/} $(head -n 1 "$block")" as_printed "$block"
    done
  done
  rm -rf "$BLOCKS"
  finish
}

main
