#!/bin/bash
# No failed request during change: 20 requests per second to Keystone and Glance with two replicas each, none repeated,
# while configuration, scale and the operator change, and while a change fails. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"

configure() { # configure TOKEN-EXPIRATION LIMIT
  change "{\"spec\":{\"services\":{
    \"keystone\":{\"conf\":{\"token\":{\"expiration\":$1}}},
    \"glance\":{\"conf\":{\"DEFAULT\":{\"limit_param_default\":$2}}}}}}"
}

scale() {
  local number
  for number; do replicas "$number" || return; done
}

main() {
  trap 'stop_load >/dev/null 2>&1' EXIT
  ok "two replicas of each API" replicas 2
  ok "20 requests per second" start_load
  under_load "at rest" sleep 10
  under_load "both configurations change" configure 43100 26
  under_load "scale 2 to 1 to 3 to 1 to 2" scale 1 3 1 2
  ok "as it was" change '{"spec":{"services":null}}'
  finish
}

main
