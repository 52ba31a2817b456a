#!/bin/bash
# The simulated OpenStack of the tests is held to what the services of dev/up's example cloud answer now. The calls make a
# project, a user and an image of their own, and remove them.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"
# shellcheck source=dev/lib.sh
. "$HERE/../../dev/lib.sh"

WORK=$(mktemp -d)
FORWARDS=()
trap 'kill "${FORWARDS[@]}" 2>/dev/null || true; rm -rf "$WORK"' EXIT

# forward SERVICE PORT: reach a Service on a free port of this machine, which is printed into $WORK/SERVICE.
forward() {
  kubectl -n "$CLOUD" port-forward --address 127.0.0.1 "service/$1" ":$2" >"$WORK/$1" 2>"$WORK/$1.log" &
  FORWARDS+=($!)
  within 30 grep -q Forwarding "$WORK/$1"
}

address() { sed -nE '1s|^Forwarding from ([0-9.:]+) .*|http://\1|p' "$WORK/$1"; }

# The administrator's file, with the addresses that this machine reaches.
clouds_yaml() {
  kc get secret openstack-admin -o 'jsonpath={.data.clouds\.yaml}' | base64 -d |
    sed -E "s|^( *)auth_url: .*|\1auth_url: $(address keystone)/v3|; s|^( *)region_name:|\1image_endpoint_override: $(address glance)\n&|" \
      >"$WORK/clouds.yaml"
  grep -q "auth_url: http://127.0.0.1" "$WORK/clouds.yaml" && grep -q "override: http://127.0.0.1" "$WORK/clouds.yaml"
}

contract() {
  RUST_BACKTRACE=0 KUPENSTACK_CONTRACT_CLOUDS=$WORK/clouds.yaml \
    cargo test --quiet --locked --workspace --test sim real_cloud -- --ignored >"$WORK/contract.log" 2>&1 || {
    grep -A9 "panicked at" "$WORK/contract.log" >&2
    return 1
  }
  grep -q '^test result: ok. 1 passed' "$WORK/contract.log"
}

main() {
  umask 077
  ensure_rust
  ok "Keystone is reached" forward keystone 5000
  ok "Glance is reached" forward glance 9292
  ok "the administrator's credentials" clouds_yaml
  ok "the simulation answers as these services do" contract
  finish
}

main
