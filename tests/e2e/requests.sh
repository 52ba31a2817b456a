#!/bin/bash
# No failed request during change: 20 requests per second to Keystone and Glance with two replicas each, none repeated,
# while configuration, scale and the operator change, and while a change fails. Needs dev/up's example cloud.
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
OPERATOR_CHART=$HERE/../../charts/kupenstack

services() { change "{\"spec\":{\"services\":{\"keystone\":$1,\"glance\":$2}}}"; }

new_options() { services '{"conf":{"token":{"expiration":43100}}}' '{"conf":{"DEFAULT":{"limit_param_default":26}}}'; }

# kubectl itself and not a function around it: it has to be what is killed, and to hold nobody's output open.
watch_conditions() {
  kubectl -n openstack get keystone keystone --watch \
    -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Available")].status}{"\n"}' \
    >"$WORK/conditions" 2>"$WORK/watch.log" &
  WATCH=$!
}

# states FIELD: one after the other, without repetitions.
states() { cut -d ' ' -f "$1" "$WORK/conditions" | uniq | paste -sd ' '; }

# No pod of the new version may be there before the database is of the new version.
synced_before_pods() {
  local synced first
  synced=$(kc get job "$1-db-sync" -o 'jsonpath={.status.completionTime}')
  first=$(kc get pods -l "application=$1,component=api" -o 'jsonpath={range .items[*]}{.metadata.creationTimestamp}{"\n"}{end}' | sort | head -n 1)
  echo "synced at $synced, first pod at $first"
  [ -n "$synced" ] && [ -n "$first" ] && [[ ! $synced > $first ]]
}

configuration_changes() {
  watch_conditions
  under_load "both configurations change" new_options
  kill "$WATCH"
  ok "openstack-operator 1966: Ready goes once and comes once" is "True False True" states 1
  ok "openstack-operator 1966: Available stays" is True states 2
  ok "nova's hooks in OpenStack-Helm: Keystone's new pods begin after its sync" synced_before_pods keystone
  ok "nova's hooks in OpenStack-Helm: Glance's new pods begin after its sync" synced_before_pods glance
}

# Neither starts with these: Keystone's web server finds no program, Glance no store. Their jobs know nothing of it.
WRONG='{"spec":{"services":{
  "keystone":{"values":{"conf":{"keystone_api_uwsgi":{"uwsgi":{"wsgi-file":"/none"}}}}},
  "glance":{"conf":{"glance_store":{"default_backend":"none"}}}}}}'
without_wrong() { services '{"values":null}' '{"conf":{"glance_store":null}}'; }

taken_back() {
  local service
  for service in keystone glance; do
    kc wait "$service/$service" --for='jsonpath={.status.conditions[?(@.type=="Ready")].reason}=RolledBack' --timeout=300s || return
  done
  pods_have_ended
}

fail() { patch_cloud "$WRONG" && taken_back; }

says_what_failed() {
  kc get "$1" "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}' | grep -E "Pod $1-api-"
}

changes_fail() {
  local pods
  pods=$(running_pods)
  under_load "both changes fail and are taken back" fail
  ok "Keystone says which pod failed" says_what_failed keystone
  ok "Glance says which pod failed" says_what_failed glance
  ok "Keystone is Available meanwhile" kc wait keystone/keystone --for=condition=Available --timeout=1s
  under_load "the wrong options are taken out" without_wrong
  ok "no pod that serves was replaced" is "$pods" running_pods
}

newest_key() {
  kc get secret keystone-fernet-keys -o 'go-template={{range $key, $_ := .data}}{{println $key}}{{end}}' | sort -n | tail -n 1
}
newer_key_than() { [ "$(newest_key)" -gt "$1" ]; }

pods_have_key() {
  local pod
  for pod in $(kc get pods -l application=keystone,component=api -o name); do
    kc exec "$pod" -- test -e "/var/lib/keystone/fernet-keys/$1" || return
  done
}

rotate() {
  local before
  before=$(newest_key)
  kc annotate secret keystone-fernet-keys kupenstack.io/rotated-at=2020-01-01T00:00:00Z --overwrite || return
  # Keys are looked at when they are due; this makes the operator look now.
  kc annotate keystone keystone e2e/touched=rotation --overwrite || return
  within 30 newer_key_than "$before" && within 150 pods_have_key "$((before + 1))"
}

keys_rotate() {
  local pods
  pods=$(running_pods)
  under_load "genestack 1682: token keys rotate" rotate
  ok "no pod restarted for it" is "$pods" running_pods
  kc annotate keystone keystone e2e/touched- >/dev/null
}

upgrade_operator() {
  helm upgrade kupenstack "$OPERATOR_CHART" -n "$OPERATOR" --reuse-values "$@" && operator_is_back
}

operator_image() {
  kubectl -n "$OPERATOR" get deployment kupenstack-cloud -o 'jsonpath={.spec.template.spec.containers[0].image}'
}

# The same image by another name is another version, as far as Kubernetes knows.
name_image() {
  local n
  for n in $(running_nodes); do in_node "$n" ctr -n k8s.io images tag --force "$1" "$2" || return; done
}

# CloudNativePG 5950, 7727: an operator's upgrade must not restart workloads unannounced.
operator_upgrades() {
  local image pods objects
  image=$(operator_image)
  pods=$(running_pods)
  objects=$(cloud_objects)
  under_load "the operator's settings change" upgrade_operator --set log=debug
  if [ -n "$(running_nodes)" ]; then
    ok "another tag of its image" name_image "$image" "${image%:*}:e2e"
    under_load "the operator's image changes" upgrade_operator --set image.tag=e2e
  fi
  ok "CloudNativePG 5950: no pod of the cloud restarted" is "$pods" running_pods
  ok "CloudNativePG 7727: no object of the cloud was written" is "$objects" cloud_objects
  ok "the operator as it was" upgrade_operator --set log= --set "image.tag=${image##*:}"
}

# Also those that were under way between two changes.
all_of_it() {
  local account
  account=$(in_load account 0 "$(in_load now)")
  ok "in all: requests, failures, slowest in ms: ${account%%$'\n'*}" no_failure "$account"
}

main() {
  local passwords revocations
  trap 'stop_load >/dev/null 2>&1' EXIT
  ok "two replicas of each API" replicas 2
  ok "20 requests per second" start_load
  passwords=$(passwords)
  revocations=$(revocations)
  configuration_changes
  changes_fail
  operator_upgrades
  keys_rotate
  under_load "scale 2 to 1" replicas 1
  under_load "scale 1 to 3" replicas 3
  under_load "scale 3 to 1, and all as it was" change '{"spec":{"services":null}}'
  all_of_it
  ok "openstack-helm 28de5c471: no password was set over all that" is "$passwords" passwords
  ok "understack f4b81e80: nothing was revoked" is "$revocations" revocations
  rm -rf "$WORK"
  finish
}

main
