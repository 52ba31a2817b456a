#!/bin/bash
# The simulated OpenStack of the tests is held to what the services of the cluster's cloud answer now: Keystone and Glance,
# and Nova and Neutron where it has them. The calls make a project and what is in it, and remove them.
# With KUPENSTACK_CONTRACT_RECORD=yes what they answer is written down.
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

# Services that a cloud may have, by what they are in its catalogue; a port each.
declare -A SERVICES_BY_TYPE=([image]=glance [compute]=nova-api [network]=neutron)
declare -A PORTS=([glance]=9292 [nova-api]=8774 [neutron]=9696)

has() { kc get service "$1" >/dev/null 2>&1; }

address() { sed -nE '1s|^Forwarding from ([0-9.:]+) .*|http://\1|p' "$WORK/$1"; }

# The administrator's file, with the addresses that this machine reaches.
clouds_yaml() {
  local type overrides=
  for type in "${!SERVICES_BY_TYPE[@]}"; do
    [ ! -e "$WORK/${SERVICES_BY_TYPE[$type]}" ] ||
      overrides+="\\1${type}_endpoint_override: $(address "${SERVICES_BY_TYPE[$type]}")\\n"
  done
  kc get secret openstack-admin -o 'jsonpath={.data.clouds\.yaml}' | base64 -d |
    sed -E "s|^( *)auth_url: .*|\1auth_url: $(address keystone)/v3|; s|^( *)region_name:|$overrides&|" >"$WORK/clouds.yaml"
  grep -q "auth_url: http://127.0.0.1" "$WORK/clouds.yaml" && grep -q "override: http://127.0.0.1" "$WORK/clouds.yaml"
}

contract() {
  RUST_BACKTRACE=0 KUPENSTACK_CONTRACT_CLOUDS=$WORK/clouds.yaml \
    cargo test --quiet --locked --workspace --test sim real_cloud -- --ignored >"$WORK/contract.log" 2>&1 || {
    grep -A99 "panicked at" "$WORK/contract.log" >&2
    return 1
  }
  grep -q '^test result: ok. 1 passed' "$WORK/contract.log"
}

main() {
  local service
  umask 077
  ensure_rust
  ok "keystone is reached" forward keystone 5000
  for service in "${SERVICES_BY_TYPE[@]}"; do
    ! has "$service" || ok "$service is reached" forward "$service" "${PORTS[$service]}"
  done
  ok "the administrator's credentials" clouds_yaml
  ok "the simulation answers as these services do" contract
  finish
}

main
