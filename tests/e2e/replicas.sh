#!/bin/bash
# Two replicas of the operator: one works, and when it ends, however it does, the other takes over; the cloud does not
# notice. Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=tests/e2e/lib-cloud.sh
. "$HERE/lib-cloud.sh"

ACCOUNTS=(cloud resources)

pods() { kubectl -n "$OPERATOR" get pods -l "app.kubernetes.io/component=$1" --field-selector status.phase=Running -o name; }
two_pods() { [ "$(pods "$1" | wc -l)" = 2 ]; }

# leaders ACCOUNT: the pods that say of themselves that they work.
leaders() {
  local pod metrics
  for pod in $(pods "$1"); do
    metrics=$(kubectl get --raw "/api/v1/namespaces/$OPERATOR/pods/${pod#pod/}:8080/proxy/metrics") || return
    if grep -qx "kupenstack_leader{lease=\"kupenstack-$1\"} 1" <<<"$metrics"; then echo "${pod#pod/}"; fi
  done
}

led_by_another_than() {
  local pod
  pod=$(operator_pod "$1") && [ "$pod" != "$2" ]
}

# another_leads ACCOUNT SECONDS DELETE-FLAG...: the pod that works is deleted; another one works within the time.
another_leads() {
  local pod
  pod=$(operator_pod "$1") || return
  kubectl -n "$OPERATOR" delete pod "$pod" --wait=false "${@:3}" || return
  within "$2" led_by_another_than "$1" "$pod"
}

# The holder writes it again before anybody else may.
lease_comes_back() {
  local pod
  pod=$(operator_pod "$1") || return
  kubectl -n "$OPERATOR" delete lease "kupenstack-$1" || return
  within 5 is "$pod" operator_pod "$1" && sleep 20 && is "$pod" operator_pod "$1"
}

replicas_of() {
  ok "$1: two pods are ready" within 60 two_pods "$1"
  ok "$1: the one that the lease names says that it works" is "$(operator_pod "$1")" leaders "$1"
  ok "$1: a deleted lease is written again by its holder" lease_comes_back "$1"
  # what is under way may take up to 20 s
  ok "$1: its pod is deleted, another works" another_leads "$1" 25
  ok "$1: two pods again" within 60 two_pods "$1"
  ok "$1: its pod is killed, another works when the lease has expired" another_leads "$1" 30 --force --grace-period=0
  ok "$1: two pods again" within 60 two_pods "$1"
}

main() {
  local account pods objects
  ok "the cloud is Ready" settled 240
  pods=$(running_pods)
  objects=$(cloud_objects)
  for account in "${ACCOUNTS[@]}"; do replicas_of "$account"; done
  ok "every controller has looked" within 60 has_looked
  ok "no pod of the cloud restarted" is "$pods" running_pods
  ok "no object of the cloud was written" is "$objects" cloud_objects
  finish
}

main
