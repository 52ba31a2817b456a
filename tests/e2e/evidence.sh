#!/bin/bash
# What is wrong is said where it is declared: within two minutes the Glance object names the Job or Deployment's pod, the
# last line of its log and what it probably comes from. What serves goes on meanwhile. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"

LIMIT=120
MESSAGE='jsonpath={.status.conditions[?(@.type=="Ready")].message}{"\n"}'
SECRET=e2e-wrong-secret # a password that must not be told
NOBODY=192.0.2.1        # an address for documentation: nobody answers there

glance() { patch_cloud "{\"spec\":{\"services\":{\"glance\":$1}}}"; }
connection() { glance "{\"conf\":{\"database\":{\"connection\":\"mysql+pymysql://glance:$SECRET@$1/glance\"}}}"; }

# Keystone changes meanwhile: one service's failure holds up no other.
no_answer_and_a_change() {
  no_answer && patch_cloud '{"spec":{"services":{"keystone":{"conf":{"token":{"expiration":43100}}}}}}'
}
keystone_changed() { kc exec deployment/keystone-api -- grep -qx 'expiration = 43100' /etc/keystone/keystone.conf; }
keystone_is_ready() {
  kc wait keystone/keystone --for='jsonpath={.spec.conf.token.expiration}=43100' --timeout=20s &&
    kc wait keystone/keystone --for=condition=Ready --timeout=120s && keystone_changed
}

# Ways to break it; each also takes the one before it back.
no_answer() { connection "$NOBODY"; }
wrong_password() { connection mariadb; }
no_image() { glance '{"conf":null,"images":{"glance_db_sync":"kupenstack.local/openstack:none"}}'; }
bad_value() { glance '{"images":null,"conf":{"database":{"max_retries":"many"}}}'; }
no_node() { glance '{"conf":null,"nodeSelector":{"e2e":"nowhere"}}'; }

# says PATTERN...: the message comes to have all of these, within the limit.
says() {
  local line pattern last
  while read -r line; do
    last=$line
    for pattern; do grep -Eq -- "$pattern" <<<"$line" || continue 2; done
    echo "$line" >&2
    not grep -F "$SECRET" <<<"$line"
    return
  done < <(exec timeout "$LIMIT" kubectl -n "$CLOUD" get glance glance --watch -o "$MESSAGE")
  echo "after $LIMIT s it says: $last"
  return 1
}

# told NAME BREAK PATTERN...: what BREAK declares is told with these; shows how long it took and what was said.
told() {
  local start
  start=$(date +%s%3N)
  ok "$1" "$2"
  ok "is told within $LIMIT s" says "${@:3}"
  printf '     %d s: %s\n' $((($(date +%s%3N) - start) / 1000)) "$(kc get glance glance -o "$MESSAGE")"
}

glance_pods() { running_pods | grep ^glance; }

main() {
  local pods
  ok "the cloud is Ready" settled 240
  pods=$(glance_pods)
  told "atmosphere 1452: the database does not answer the sync" no_answer_and_a_change \
    'Job glance-db-sync' 'Pod glance-db-sync-' "says: .*(OperationalError|DBConnectionError|SQL connection failed)" 'probably the database is unreachable'
  ok "Strimzi 9654: Keystone's change arrives all the same" keystone_is_ready
  told "atmosphere 151: the database refuses the sync's password" wrong_password \
    'Job glance-db-sync' 'Pod glance-db-sync-' 'says: .*Access denied' 'probably a wrong password'
  told "an image that does not exist" no_image \
    'Job glance-db-sync' 'Pod glance-db-sync-' '(ErrImagePull|ImagePullBackOff)' "probably the image can't be pulled"
  told "an option with an impossible value" bad_value \
    'Job glance-db-sync' 'Pod glance-db-sync-' 'says: .*ConfigFileValueError' 'probably an option'
  told "a node that does not exist" no_node \
    'Pod glance-' 'probably no node has the labels'
  ok "what served was not touched" is "$pods" glance_pods
  ok "as it was" change '{"spec":{"services":null}}'
  ok "and it still was not touched" is "$pods" glance_pods
  finish
}

main
