#!/bin/bash
# The local cluster itself: names, Services, logs, limits, and volumes that outlive pods and nodes.
# It kills a node, so it runs on a cluster of dev/k8s/up.sh only.
# dev/test: alone
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"
# shellcheck source=dev/lib.sh
. "$HERE/../../dev/lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$HERE/../../dev/k8s/cluster.sh"

NS=e2e-cluster
k() { kubectl -n "$NS" "$@"; }

apply() { k apply -f "$HERE/cluster.yaml"; }
web_from_client() { k exec client -- curl -sf --max-time 2 "http://$1/"; }
writer_log() { k logs writer | tail -n 1; }

recreate_writer() {
  k delete pod writer --wait
  apply
  k wait --for=condition=Ready pod/writer --timeout=60s
}

restart_node() {
  local node
  node=$(k get pod writer -o 'jsonpath={.spec.nodeName}')
  kill -KILL "$(node_init "${node#node}")"
  "$K8S/up.sh"
}

# The status of before the restart stays until the kubelet has looked; a container restart shows that it has.
runs_again() {
  is 1 k get pod writer -o 'jsonpath={.status.containerStatuses[0].restartCount}' &&
    k wait --for=condition=Ready pod/writer --timeout=1s
}

oom_killed() {
  is OOMKilled k get pod greedy -o 'jsonpath={.status.containerStatuses[0].state.terminated.reason}'
}

volume_folder() { k get pvc data -o 'jsonpath={.spec.volumeName}'; }

main() {
  local volume
  [ -n "$(running_nodes)" ] || die "this test needs the local cluster"
  kubectl delete namespace "$NS" --ignore-not-found --wait >/dev/null
  kubectl create namespace "$NS" >/dev/null
  k wait --for=create serviceaccount/default --timeout=30s >/dev/null

  ok "apply Deployment, Service, claim and pods" apply
  ok "Deployment with two replicas" k rollout status deployment/web --timeout=60s
  ok "client pod is Ready" k wait --for=condition=Ready pod/client --timeout=60s
  ok "Service by its short name" within 20 web_from_client web
  ok "Service by its full name" within 20 web_from_client "web.$NS.svc.cluster.local"
  ok "logs" is "first start" k logs client
  ok "memory limit ends a pod" within 30 oom_killed
  ok "pod without root writes to a claim (fsGroup)" k wait --for=condition=Ready pod/writer --timeout=60s
  ok "it ran as the user it asked for" is "uid 12345, starts 1" writer_log
  ok "pod made anew" recreate_writer
  ok "its data is there" is "uid 12345, starts 2" writer_log
  ok "node killed and started again" restart_node
  ok "pod runs again by itself" within 60 runs_again
  ok "its data is still there" is "uid 12345, starts 3" writer_log
  ok "Services work again" within 30 web_from_client web
  volume=$DATA/volumes/$(volume_folder)
  ok "the claim is a folder of the machine" test -s "$volume/starts"
  ok "namespace goes" kubectl delete namespace "$NS" --timeout=120s
  ok "the claim's folder goes with it" within 30 test ! -e "$volume"
  finish
}

main
