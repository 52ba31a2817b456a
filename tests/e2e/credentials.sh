#!/bin/bash
# Credentials are made once: whoever re-applies or restarts the operator, tokens stay good, Secrets stay as they are to
# the byte, and nobody sets a password in Keystone again. The same over rollouts: requests.sh. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"

EXAMPLE=$HERE/../../examples/openstack.yaml
URL=http://keystone.$CLOUD.svc.cluster.local:5000/v3

# By its answer to a stranger's question, not by the client's own log-in.
token_is_good() {
  kubectl -n dev-files exec -i deployment/openstack-client -- python3 -c "
import sys, urllib.request
token = sys.stdin.read().strip()
headers = {'X-Auth-Token': token, 'X-Subject-Token': token}
urllib.request.urlopen(urllib.request.Request('$URL/auth/tokens', headers=headers))
urllib.request.urlopen(urllib.request.Request('http://glance.$CLOUD.svc.cluster.local:9292/v2/images', headers=headers))" <<<"$1"
}

# A digest: what is secret must not be printed when it differs.
secrets() {
  kc get secrets -l 'kupenstack.io/credentials' -o 'jsonpath={range .items[*]}{.metadata.name} {.data}{"\n"}{end}' |
    while read -r name data; do echo "$name $(sha256sum <<<"$data")"; done
}

passes() { operator_metrics cloud | awk '/^kupenstack_reconcile_seconds_count.*"keystone"/ {print $2}'; }
more_passes_than() { [ "$(passes)" -gt "$1" ]; }

reapply() {
  local i service before
  for i in {1..10}; do
    before=$(passes)
    kubectl apply -f "$EXAMPLE" || return
    kubectl annotate openstack default "e2e/touched=$i" --overwrite || return
    for service in "${SERVICES[@]}"; do kc annotate "$service" "$service" "e2e/touched=$i" --overwrite || return; done
    within 10 more_passes_than "$before" || return
  done
}

untouch() {
  local service
  kubectl annotate openstack default e2e/touched-
  for service in "${SERVICES[@]}"; do kc annotate "$service" "$service" e2e/touched-; done
}

restart_three_times() { restart_operator && restart_operator && restart_operator; }

# as_before WHEN: what must be so whatever happened.
as_before() {
  ok "$1: Secrets are the same (openstack-helm 959251)" is "$SECRETS" secrets
  ok "$1: a token from before is good (understack 1193)" token_is_good "$TOKEN"
  ok "$1: no password was set (openstack-helm 28de5c471)" is "$PASSWORDS" passwords
  ok "$1: nothing was revoked (understack f4b81e80)" is "$REVOCATIONS" revocations
}

main() {
  ok "the cloud is Ready" settled 240
  TOKEN=$(openstack token issue -f value -c id)
  SECRETS=$(secrets)
  PASSWORDS=$(passwords)
  REVOCATIONS=$(revocations)
  ok "there are passwords" test -n "$PASSWORDS"
  ok "ten times applied again, each time looked at" reapply
  as_before "applied again"
  ok "three restarts of the operator" restart_three_times
  as_before "restarted"
  untouch >/dev/null
  finish
}

main
