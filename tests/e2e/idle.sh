#!/bin/bash
# An unchanged cloud costs nothing: no write, no helm, no restart, while nothing happens and while the operator restarts.
# KUPENSTACK_LONG=yes watches for ten minutes instead of one. Needs dev/up's example cloud and demo, and nobody beside it.
# dev/test: alone
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"
# shellcheck source=dev/lib.sh
. "$HERE/../../dev/lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/../../dev/k8s/cluster.sh"

SPAN=60
[ "${KUPENSTACK_LONG:-}" != yes ] || SPAN=600
WORK=$(mktemp -d)

# Every object of every kind, but what Kubernetes itself writes to without end, and the operator's own pods.
all_objects() {
  local kinds
  kinds=$(kubectl api-resources --verbs=list -o name | grep -vE '^(events|leases|nodes|componentstatuses)(\.|$)' | paste -sd ,)
  kubectl get "$kinds" --all-namespaces \
    -o 'jsonpath={range .items[*]}{.metadata.namespace} {.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}' |
    grep -v "^$OPERATOR " | sort -u
}

unchanged() { all_objects | diff "$WORK/objects" -; }

# The API server's own account of what the operator wrote since line FROM of it.
writes_since() {
  tail -n "+$(($1 + 1))" "$AUDIT_LOG" | grep -F "\"system:serviceaccount:$OPERATOR:" |
    grep -vE '"resource":"(events|leases)"|dryRun=All' | grep -oE '"verb":"[a-z]+"|"requestURI":"[^"]*"' || true
}

audit_lines() { wc -l <"$AUDIT_LOG"; }

# Each of the two that work renews its lease every 2 s; those that stand by write nothing.
lease_writes_are_few() {
  local writes
  writes=$(tail -n "+$(($1 + 1))" "$AUDIT_LOG" | grep -F "\"system:serviceaccount:$OPERATOR:" | grep -c '"resource":"leases"')
  echo "$writes writes of leases in $SPAN s"
  [ "$writes" -gt 0 ] && [ "$writes" -le "$((SPAN + SPAN / 5))" ]
}

# Requests that change something in OpenStack.
openstack_writes() {
  operator_metrics resources | awk '/^kupenstack_openstack_requests_total.*method="(PUT|PATCH|DELETE)"/ {n += $2} END {print n + 0}'
}

watch_idle() {
  local line ticks writes pods
  line=$(audit_lines)
  ticks=$(helm_ticks)
  writes=$(openstack_writes)
  pods=$(running_pods)
  all_objects >"$WORK/objects"
  ok "nobody does anything for $SPAN s" sleep "$SPAN"
  ok "$(wc -l <"$WORK/objects") objects: none was written" unchanged
  ok "the operator wrote nothing" is "" writes_since "$line"
  ok "but its leases, as often as it has to" lease_writes_are_few "$line"
  ok "it changed nothing in OpenStack" is "$writes" openstack_writes
  ok "no helm ran" is "$ticks" helm_ticks
  ok "no pod restarted" is "$pods" running_pods
}

# Case 14: the operator restarts, and nothing is written.
watch_restart() {
  local line pods
  line=$(audit_lines)
  pods=$(running_pods)
  ok "the operator restarts and looks at everything" restart_operator
  ok "infra-operator 580: no object was written" unchanged
  ok "the operator wrote nothing" is "" writes_since "$line"
  ok "it changed nothing in OpenStack" is 0 openstack_writes
  ok "no helm ran" is 0 helm_ticks
  ok "no pod restarted" is "$pods" running_pods
}

main() {
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  ok "the cloud is Ready" settled 240
  ok "every controller has looked" within 60 has_looked
  watch_idle
  watch_restart
  rm -rf "$WORK"
  finish
}

main
