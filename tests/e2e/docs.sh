#!/bin/bash
# The commands of the task pages, as printed: every block marked `sh`, page by page and in order. A page leaves nothing
# behind. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-docs.sh
. "$HERE/lib-docs.sh"

main() {
  local page
  for page in getting-started configure; do run_page "$page"; done
  finish
}

main
