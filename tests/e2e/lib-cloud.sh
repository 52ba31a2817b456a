# shellcheck shell=bash
# What those scripts share that change the example cloud of dev/up. Sourced after lib.sh, never run.

CLOUD=openstack # its namespace
SERVICES=(mariadb memcached keystone glance)
API_PODS='application in (keystone,glance),component=api'
ENDING='{range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name}{"\n"}{end}'

kc() { kubectl -n "$CLOUD" "$@"; }

patch_cloud() { kubectl patch openstack default --type merge -p "$1"; }

# settled SECONDS: what is declared now has reached every service, and each is Ready with it.
settled() {
  local service generation
  generation=$(kubectl get openstack default -o 'jsonpath={.metadata.generation}')
  kubectl wait openstack/default --for="jsonpath={.status.observedGeneration}=$generation" --timeout="$1s" || return
  for service in "${SERVICES[@]}"; do
    kc wait "$service/$service" --for=condition=Ready --timeout="$1s" || return
  done
  kubectl wait openstack/default --for=condition=Ready --timeout="$1s"
}

# Pods that end still serve for their pause.
pods_have_ended() {
  local pod
  for pod in $(kc get pods -l "$API_PODS" -o "jsonpath=$ENDING"); do
    kc wait --for=delete "pod/$pod" --timeout=120s || return
  done
}

# change JSON: declare it and wait until it is so, without the pods of before.
change() { patch_cloud "$1" && settled 240 && pods_have_ended; }

# replicas NUMBER: of both APIs.
replicas() {
  change "{\"spec\":{\"services\":{\"keystone\":{\"replicas\":{\"api\":$1}},\"glance\":{\"replicas\":{\"api\":$1}}}}}"
}

in_load() { kc exec e2e-load -- python3 /scripts/load.py "$@"; }

start_load() {
  stop_load || return
  kc create configmap e2e-load --from-file "$HERE/load.py" || return
  kc apply -f "$HERE/load.yaml" || return
  kc wait pod/e2e-load --for=condition=Ready --timeout=60s
}

stop_load() {
  local image
  kc delete pod/e2e-load configmap/e2e-load --ignore-not-found --wait || return
  openstack image list --name load -f value -c ID | while read -r image; do openstack image delete "$image" || return; done
}

# under_load NAME COMMAND...: two checks: that the command succeeds, and that meanwhile no request failed.
under_load() {
  local name=$1 from account requests failed slowest
  shift
  from=$(in_load now)
  ok "$name" "$@"
  # What a change breaks may show a moment later.
  sleep 2
  account=$(in_load account "$from" "$(in_load now)")
  read -r requests failed slowest <<<"${account%%$'\n'*}"
  ok "$name: $requests requests, $failed failed, slowest $slowest ms" no_failure "$account"
}

no_failure() {
  tail -n +2 <<<"$1"
  [[ $1 =~ ^[1-9][0-9]*\ 0\  ]]
}

# operator_metrics cloud|resources: of the replica that works.
operator_metrics() {
  local pod
  pod=$(operator_pod "$1") && kubectl get --raw "/api/v1/namespaces/$OPERATOR/pods/$pod:8080/proxy/metrics"
}

# Every controller has made a pass: what an operator would do wrong it does when it first looks at everything.
has_looked() {
  [ "$(operator_metrics cloud | grep -c '^kupenstack_reconcile_seconds_count')" -ge 5 ] &&
    [ "$(operator_metrics resources | grep -c '^kupenstack_reconcile_seconds_count')" -ge 2 ]
}

operator_is_back() { kubectl -n "$OPERATOR" rollout status deployment --timeout=90s && within 60 has_looked; }
restart_operator() { kubectl -n "$OPERATOR" delete pods --all --wait && operator_is_back; }

# Ticks of processor time of the ended children of the operator: no helm ran while it stays, for none is that cheap.
helm_ticks() {
  local pod
  pod=$(operator_pod cloud) && kubectl -n "$OPERATOR" exec "$pod" -- cat /proc/1/stat | awk '{print $16 + $17}'
}

# What a write by anybody would change: the version, or the generation where a status tells of the load too.
cloud_objects() {
  kc get jobs,configmaps,secrets,services,pvc \
    -o 'jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}'
  kc get deployments,replicasets,statefulsets,openstacks,mariadbs,memcacheds,keystones,glances \
    -o 'jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation}{"\n"}{end}'
}

# Pods as they run: a restart of any of them would change this.
running_pods() {
  kc get pods -l 'release_group,component in (api,server)' --field-selector status.phase=Running \
    -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}' | sort
}

database() { kc exec mariadb-0 -- mariadb --skip-column-names --execute "$1" keystone; }
# Every password that Keystone has, by when it was set.
passwords() { database 'SELECT id, local_user_id, created_at_int, SHA2(password_hash, 256) FROM password ORDER BY id'; }
revocations() { database 'SELECT COUNT(*) FROM revocation_event'; }
