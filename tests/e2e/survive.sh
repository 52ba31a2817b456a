#!/bin/bash
# Parts die in the middle of a change: a job's pod, the API server, the database's pod. The change arrives all the same,
# each pod is replaced once, and what the objects say is true. Needs dev/up's example cloud on a cluster of dev/k8s/up.sh.
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

WORK=$(mktemp -d)
POD_FILE=$WORK/pod
SYNC_PODS=application=keystone,component=db-sync
KEYSTONE_PODS=application=keystone,component=api
POD='{.metadata.name} {.status.phase}{"\n"}'

# first_unknown NAMES: of the pods in the watch on standard input the first that runs and is none of these.
first_unknown() {
  local name phase
  while read -r name phase; do
    [ "$phase" != Running ] || [[ " $1 " == *" $name "* ]] || break
  done
  echo "$name" >"$POD_FILE"
}

names() { kc get pods -l "$1" -o 'jsonpath={.items[*].metadata.name}'; }

# next_pod SELECTOR [KNOWN]: watch for the next pod that begins to run, after those that are there now or are KNOWN; sets
# WATCH, which ends when POD_FILE has its name.
next_pod() {
  local known=${2-$(names "$1")}
  first_unknown "$known" < <(exec timeout 120 kubectl -n "$CLOUD" get pods -l "$1" --watch -o "jsonpath=$POD") &
  WATCH=$!
}

declare_change() { # a new number each time, so that every one is a change
  NUMBER=$((NUMBER + 1))
  patch_cloud "{\"spec\":{\"services\":{\"keystone\":{\"conf\":{\"token\":{\"expiration\":$NUMBER}}}}}}"
}
NUMBER=43100

ANSWERS=(openstack token issue -f value -c expires)

generation() { kc get deployment keystone-api -o 'jsonpath={.metadata.generation}'; }
# Those that were there before have restarted no more, those that are new not at all.
no_restart() {
  is "" awk 'NR == FNR {before[$2] = $3; next} $3 != before[$2] + 0 {print $1, $3}' "$WORK/pods" <(running_pods)
}
# From the pods' own file, as nothing else proves it.
serves_the_change() { kc exec deployment/keystone-api -- grep -qx "expiration = $NUMBER" /etc/keystone/keystone.conf; }
new_pods() { comm -13 <(cut -d ' ' -f 1 "$WORK/pods") <(running_pods | cut -d ' ' -f 1) | wc -l; }
keystone_jobs() { kc get jobs -l application=keystone -o name | wc -l; }
# By the API server's account; a line of it may die with the server.
no_job_made_twice() {
  [ "$(tail -n "+$((AUDITED + 1))" "$AUDIT_LOG" | grep '"verb":"create"' | grep '"resource":"jobs"' | grep -c '"code":201')" -le "$(keystone_jobs)" ]
}
no_copies() { is "" kc get secrets,configmaps -l kupenstack.io/plan -o name; }

# Kills, each at its moment in a change.
kill_job_pod() {
  next_pod "$SYNC_PODS"
  declare_change || return
  wait "$WATCH"
  kc delete pod "$(cat "$POD_FILE")" --force --grace-period=0 --wait=false
}

api_server() { pgrep -f "^kube-apiserver .*--advertise-address $(node_ip 1) "; }
api_server_is_back() { within 60 kubectl get --raw /readyz; }
kill_api_server() {
  local pid
  pid=$(api_server) || return
  kill -KILL "$pid"
  api_server_is_back && not kill -0 "$pid"
}

# In one change: while a job runs, and again while pods are replaced.
kill_api_server_twice() {
  local known
  known=$(names "$KEYSTONE_PODS")
  next_pod "$SYNC_PODS"
  declare_change || return
  wait "$WATCH"
  kill_api_server || return
  next_pod "$KEYSTONE_PODS" "$known"
  wait "$WATCH"
  kill_api_server
}

# The change is the one back to how it was.
kill_database() {
  next_pod "$SYNC_PODS"
  NUMBER=43200
  patch_cloud '{"spec":{"services":null}}' || return
  wait "$WATCH"
  kc delete pod mariadb-0 --force --grace-period=0 --wait=false
}

# arrives NAME REPLACED: the change is there, and REPLACED pods were replaced for it, once.
arrives() {
  ok "$1: all is Ready" settled 240
  ok "$1: the change is served" serves_the_change
  ok "$1: one rollout" is "$((GENERATION + 1))" generation
  ok "$1: one new pod of each that was to be replaced" is "$2" new_pods
  ok "$1: no container restarted" no_restart
  ok "$1: no job was made twice" no_job_made_twice
  ok "$1: nothing is left of the jobs" no_copies
  ok "$1: its pods have ended" pods_have_ended
  ok "$1: it answers" "${ANSWERS[@]}"
}

# dies NAME REPLACED KILL...
dies() {
  running_pods >"$WORK/pods"
  AUDITED=$(wc -l <"$AUDIT_LOG")
  GENERATION=$(generation)
  ok "$1" "${@:3}"
  arrives "$1" "$2"
}

main() {
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  ok "the cloud is Ready" settled 240
  dies "a job's pod killed" 1 kill_job_pod
  # Nodes route to a Service's new pods when their own watch is there again. An API server that has just started forbids
  # everything for a moment, and their next attempt may come a minute later. The operator has no part in it.
  ANSWERS=(within 120 "${ANSWERS[@]}")
  dies "the API server killed twice" 1 kill_api_server_twice
  ANSWERS=("${ANSWERS[@]:2}")
  dies "the database's pod killed while a job runs" 1 kill_database
  rm -rf "$WORK"
  finish
}

main
