# shellcheck shell=bash
# The commands of a task page, as printed: every block marked `sh`, in order. Sourced after lib.sh, never run.

PAGES_OF=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# blocks PAGE FOLDER: one file per block, named by the line it begins at.
blocks() {
  awk -v folder="$2" -v page="$1" '
    /^```sh$/ {file = sprintf("%s/%s:%04d", folder, page, NR); next}
    /^```$/ {if (file) close(file); file = ""}
    file {print > file}
  ' "$PAGES_OF/docs/$1.md"
}

# A page's commands are meant for the repository's folder, after each other, in one shell's environment.
as_printed() { (cd "$PAGES_OF" && bash -euo pipefail "$1"); }

# run_page PAGE: each block is a check.
run_page() {
  local folder block
  folder=$(mktemp -d)
  blocks "$1" "$folder"
  ok "docs/$1.md has commands to run" test -e "$(find "$folder" -name "$1:*" -print -quit)"
  for block in "$folder/$1":*; do
    ok "docs/${block##*/} $(head -n 1 "$block")" as_printed "$block"
  done
  rm -rf "$folder"
}
