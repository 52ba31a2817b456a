#!/bin/bash
# Text in single quotes is for the shell in the client pod.
# shellcheck disable=SC2016
#
# The OpenStack charts without the operator, as docs/charts-by-hand.md tells it: a token, an image, pods that come and
# go, upgrades that change nothing, upgrades that change something, removal, return. In a namespace of its own.
# dev/test: beside others
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"

CHARTS=$HERE/../../charts/openstack
NS=${NAMESPACE:-by-hand}
WORK=$(mktemp -d)
VALUES=$WORK/values.yaml

k() { kubectl -n "$NS" "$@"; }
openstack() { k exec client -- openstack "$@"; }
in_client() { k exec client -- bash -c "$1"; }

clean_up() {
  kubectl delete namespace "$NS" --ignore-not-found --wait >/dev/null
  rm -rf "$WORK"
}

namespace() {
  kubectl delete namespace "$NS" --ignore-not-found --wait
  # The strictest standard: a pod that wants more than it needs does not start. And no project of a cloud beside it.
  kubectl create -f - <<YAML
apiVersion: v1
kind: Namespace
metadata:
  name: $NS
  labels: {pod-security.kubernetes.io/enforce: restricted}
  annotations: {kupenstack.io/project: ignore}
YAML
}

install() { helm install "$1" "$CHARTS/$1" -n "$NS" -f "$VALUES"; }
upgrade() { helm upgrade "$1" "$CHARTS/$1" -n "$NS" -f "$VALUES" "${@:2}"; }
ready() { k rollout status "$1" --timeout=180s; }

# Not in a pipe, as in `prints`.
mariadb_log_has() { grep -qi "$1" <<<"$(k logs mariadb-0)"; }
# The first start takes two seconds; this ends it in the middle.
cut_first_start_short() {
  within 120 mariadb_log_has 'preparing the data folder' || return
  k delete pod mariadb-0 --force --grace-period=0
  k wait --for=create pod/mariadb-0 --timeout=60s
}

client() {
  k apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsUser: 42424, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: client
      image: kupenstack.local/openstack:2026.2
      command: [sleep, infinity]
      env: [{name: HOME, value: /tmp}]
      envFrom: [{secretRef: {name: keystone-keystone-admin}}]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
YAML
  k wait --for=condition=Ready pod/client --timeout=60s
}

token() {
  in_client 'openstack token issue -f value -c id > /tmp/token && grep -q ^gAAAA /tmp/token'
}

catalogue() {
  local lines
  lines=$(openstack endpoint list -f value -c Region -c "Service Name" -c Interface -c URL | sort)
  is "$(for interface in admin internal public; do
    echo "default glance $interface http://glance.$NS.svc.cluster.local:9292"
    echo "default keystone $interface http://keystone.$NS.svc.cluster.local:5000/v3"
  done | sort)" echo "$lines"
}

upload() {
  in_client 'head -c 5000000 /dev/urandom > /tmp/disk &&
    openstack image create --file /tmp/disk --disk-format raw --container-format bare probe -f value -c id > /tmp/id'
  is active openstack image show probe -f value -c status
}

# Without a length, in chunks, as a program that pipes an image does.
upload_chunked() {
  in_client 'set -e -o pipefail
    url=http://glance:9292/v2/images auth="X-Auth-Token: $(cat /tmp/token)"
    id=$(curl -sf -H "$auth" -H "Content-Type: application/json" \
      -d "{\"name\": \"piped\", \"disk_format\": \"raw\", \"container_format\": \"bare\"}" $url |
      python3 -c "import json, sys; print(json.load(sys.stdin)[\"id\"])")
    cat /tmp/disk | curl -sf -X PUT -H "$auth" -H "Content-Type: application/octet-stream" -T - $url/$id/file
    curl -sf -H "$auth" $url/$id/file | cmp - /tmp/disk'
}

same_bytes() {
  in_client 'curl -sf -H "X-Auth-Token: $(cat /tmp/token)" "http://glance:9292/v2/images/$(cat /tmp/id)/file" | cmp - /tmp/disk'
}

workload_pods() { k get pods -l 'component in (api, server)' -o name | sort; }
pod_ids() { k get pods -l 'component in (api, server)' -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
restarts() { k get pods -o 'jsonpath={range .items[*]}{.status.containerStatuses[*].restartCount}{"\n"}{end}' | tr ' ' '\n' | sort -u; }

unprivileged() {
  local pod status
  for pod in $(workload_pods); do
    status=$(k exec "$pod" -- grep -E '^(Uid|CapEff|NoNewPrivs):' /proc/1/status)
    grep -Eq '^Uid:[[:space:]]+(100|42424)[[:space:]]' <<<"$status" || return
    grep -Eq '^CapEff:[[:space:]]+0+$' <<<"$status" || return
    grep -Eq '^NoNewPrivs:[[:space:]]+1$' <<<"$status" || return
    # No account of the Kubernetes API, and nothing but volumes to write to.
    k exec "$pod" -- sh -c '! ls /var/run/secrets/kubernetes.io 2>/dev/null && ! touch /etc/probe 2>/dev/null' || return
  done
}

# Passwords are in Secrets and nowhere else.
no_secret_elsewhere() {
  local objects password
  objects=$(k get pods,deployments,statefulsets,jobs,configmaps,events -o yaml)
  while read -r password; do
    ! grep -qF -- "$password" <<<"$objects" || return
  done < <(grep -o '"[^"]*"' "$VALUES" | tr -d '"')
}

job_log() { k logs "job/$1" -c "${1#*-}" --tail=1; }

unchanged_upgrade() {
  local before after
  before=$(pod_ids; k get secret keystone-fernet-keys keystone-credential-keys -o 'jsonpath={.items[*].metadata.resourceVersion}')
  for chart in mariadb memcached keystone glance; do upgrade "$chart" || return; done
  after=$(pod_ids; k get secret keystone-fernet-keys keystone-credential-keys -o 'jsonpath={.items[*].metadata.resourceVersion}')
  is "$before" echo "$after"
}

# Ask without pause while the pod is replaced; the client's file tells the failures.
watch_keystone() {
  in_client 'rm -f /tmp/stop; n=0; failed=0
    until [ -e /tmp/stop ]; do
      n=$((n + 1)); [ "$(curl -s -o /dev/null -w "%{http_code}" -m 5 http://keystone:5000/v3)" = 200 ] || failed=$((failed + 1))
    done; echo "$n $failed"' >"$WORK/watch"
}

change_under_load() {
  local watcher old
  old=$(k get pods -l application=keystone,component=api -o name)
  watch_keystone &
  watcher=$!
  upgrade keystone --set conf.keystone.token.expiration=3600
  ready deployment/keystone-api
  k wait --for=delete "$old" --timeout=90s
  in_client 'touch /tmp/stop'
  wait "$watcher"
  cat "$WORK/watch"
  [[ $(cat "$WORK/watch") =~ ^[1-9][0-9]+\ 0$ ]]
}

etc_secrets() { k get secrets -l kupenstack.io/config=keystone -o name | wc -l; }

# What a workload says of itself may still be of the pod that has gone: its successor is asked.
replace() { # replace POD-SELECTOR WORKLOAD
  k delete pod -l "$1" --wait && within 180 k wait --for=condition=Ready pod -l "$1" --timeout=10s && ready "$2"
}

ended_cleanly() { within 30 mariadb_log_has 'ready for connections' && not mariadb_log_has 'crash recovery'; }

uninstall() {
  for chart in glance keystone memcached mariadb; do helm uninstall "$chart" -n "$NS" || return; done
  k wait --for=delete pod -l 'component in (api, server)' --timeout=180s
}

leftovers() {
  k get deployments,statefulsets,services,poddisruptionbudgets,serviceaccounts,roles,rolebindings,pvc,secrets -o name |
    grep -vE '/(default|kube-root-ca.crt)$|-(etc|bin)-[0-9a-f]{8}$|sh.helm' | sort
}
KEPT='persistentvolumeclaim/data-mariadb-0
persistentvolumeclaim/glance-images
secret/keystone-credential-keys
secret/keystone-fernet-keys'

check_fresh() {
  ok "values file with random passwords" "$CHARTS/make-values.sh" "$VALUES"
  ok "helm install mariadb" install mariadb
  ok "mariadb killed in the middle of its first start" cut_first_start_short
  ok "helm install memcached" install memcached
  ok "mariadb is ready all the same" ready statefulset/mariadb
  ok "helm install keystone" install keystone
  ok "keystone is ready" ready deployment/keystone-api
  ok "helm install glance" install glance
  ok "glance is ready" ready deployment/glance-api
  ok "no container had to be restarted" is 0 restarts
  ok "a client pod" client
}

check_use() {
  ok "a token" token
  ok "the catalogue: one endpoint per service and interface" catalogue
  ok "an image is uploaded and active" upload
  ok "an upload in chunks" upload_chunked
  ok "the image has the same bytes" same_bytes
  ok "pods have no rights, no API account, no writable root" unprivileged
  ok "no password outside Secrets" no_secret_elsewhere
}

install_all() {
  for chart in mariadb memcached keystone glance; do install "$chart" || return; done
  ready deployment/glance-api
}

check_removal() {
  ok "helm uninstall" uninstall
  ok "volumes and keys are kept, nothing else" is "$KEPT" leftovers
  ok "an install with the same values" install_all
  ok "the token from before is good again" same_bytes
  ok "the password is the same" token
}

check_changes() {
  ok "an unchanged upgrade replaces no pod and no key" unchanged_upgrade
  ok "repeated jobs have nothing to do: keystone-db-init" is "database keystone: nothing to do" job_log keystone-db-init
  ok "repeated jobs have nothing to do: keystone-fernet-setup" is "secret keystone-fernet-keys: nothing to do" job_log keystone-fernet-setup
  ok "repeated jobs have nothing to do: glance-ks-register" is "catalogue glance: nothing to do" job_log glance-ks-register
  ok "the token from before is still good" same_bytes
  ok "a changed option replaces keystone's pod without a failed request" change_under_load
  ok "the former configuration is kept for the pods of a rollback" is 2 etc_secrets
  ok "mariadb's pod is replaced" replace application=mariadb,component=server statefulset/mariadb
  ok "it had ended in good order" ended_cleanly
  ok "glance's pod is replaced" replace application=glance,component=api deployment/glance-api
  ok "a token again" token
  ok "the image is still there" is active openstack image show probe -f value -c status
  ok "with the same bytes" same_bytes
}

main() {
  trap clean_up EXIT
  ok "a namespace under the restricted standard" namespace
  check_fresh
  check_use
  check_changes
  check_removal
  finish
}

main "$@"
