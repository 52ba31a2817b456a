#!/bin/bash
# Wrong input, as a user meets it: what can never work is refused by the API server, what turns out wrong later is a
# condition; both name the field and the remedy, and nothing is left in Glance or on the operator's disk.
# Needs dev/up's example cloud.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib.sh
. "$HERE/lib.sh"

NS=e2e-wrong
FILES=http://files.dev-files.svc.cluster.local
MESSAGE='jsonpath={.status.conditions[?(@.type=="Ready")].message}'

k() { kubectl -n "$NS" "$@"; }

# refused PATTERN COMMAND...: the command fails and its message has the pattern.
refused() {
  local pattern=$1 message
  shift
  if message=$("$@" 2>&1); then
    echo "was accepted: $message"
    return 1
  fi
  grep -E -- "$pattern" <<<"$message" || { echo "$message" && return 1; }
}

# image NAME SRC FORMAT [CHECKSUM]
image() {
  k apply -f - <<YAML
apiVersion: kupenstack.io/v1
kind: Image
metadata: {name: $1}
spec:
  src: "$2"
  format: $3
  ${4:+checksum: "$4"}
YAML
}

openstack_named() {
  kubectl create -f - <<YAML
apiVersion: cluster.kupenstack.io/v1
kind: OpenStack
metadata: {name: $1}
spec: {release: "2026.2"}
YAML
}

patch_cloud() { kubectl patch openstack default --type merge -p "$@"; }

refused_at_once() {
  ok "a second OpenStack is refused, and why" refused "must be 'default'" openstack_named second
  ok "a release that is none is refused, naming the field" refused 'spec.release' patch_cloud '{"spec":{"release":"newest"}}'
  ok "a release that does not exist is refused, naming those that do" refused 'spec.release.*2026\.2' \
    patch_cloud '{"spec":{"release":"2019.1"}}'
  ok "an option that would break the file is refused, naming it" refused 'spec.services.keystone.conf.DEFAULT.a=b' \
    patch_cloud '{"spec":{"services":{"keystone":{"conf":{"DEFAULT":{"a=b":1}}}}}}'
  ok "a URL that is none is refused, naming the field" refused 'spec.src: ' image port http://a.example:99999/i raw
  ok "replicas below zero are refused, naming the field" refused 'spec.services.keystone.replicas.api.*greater than or equal to 0' \
    patch_cloud '{"spec":{"services":{"keystone":{"replicas":{"api":-1}}}}}'
  ok "another region is refused" refused 'region can.t be changed' patch_cloud '{"spec":{"region":"elsewhere"}}'
  ok "another namespace is refused" refused 'move to another namespace' patch_cloud '{"spec":{"namespace":"elsewhere"}}'
  ok "an unknown format is refused, naming those that exist" refused 'supported values:.*"qcow2"' image format "$FILES/tiny.qcow2" cow
  ok "a file URL is refused, naming the field" refused 'spec.src' image file file:///etc/passwd raw
  ok "a checksum that is none is refused, naming the field" refused 'spec.checksum' image sum "$FILES/tiny.qcow2" raw md5:123
  ok "a field that does not exist is refused" refused 'unknown field "spec.sorce"' k create --validate=strict -f - <<YAML
apiVersion: kupenstack.io/v1
kind: Image
metadata: {name: unknown}
spec: {src: "$FILES/tiny.qcow2", format: raw, sorce: x}
YAML
}

# stalls NAME REASON FIELD: the Image becomes Stalled with this reason, and its message names the field.
stalls() {
  k wait --for="jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=$2" "image.kupenstack.io/$1" --timeout=60s &&
    k wait --for=condition=Stalled "image.kupenstack.io/$1" --timeout=5s &&
    k get image.kupenstack.io "$1" -o "$MESSAGE" | grep -F -- "$3"
}

nothing_in_glance() { is "" env OS_CLOUD="$NS" openstack image list -f value -c ID; }
nothing_on_disk() {
  local pod
  pod=$(operator_pod resources) && is "" kubectl -n "$OPERATOR" exec "$pod" -- find /var/lib/kupenstack -type f
}

turns_out_wrong() {
  ok "an Image whose file does not exist" image missing "$FILES/no-such-file.img" raw
  ok "stalls, naming spec.src" stalls missing SourceNotFound spec.src
  ok "an Image from the API server, which the operator reaches and users need not" image inner https://kubernetes.default.svc/version raw
  ok "stalls, naming spec.src and who can allow it" stalls inner ForbiddenAddress "imageSources.allow"
  ok "an Image from a server with a certificate nobody knows" image tls "https://kupenstack-webhook.$OPERATOR.svc/disk.img" raw
  ok "stalls, naming spec.src" stalls tls TLSVerificationFailed spec.src
  ok "an Image with another checksum" image sum "$FILES/tiny.qcow2" raw "sha256:$(printf '0%.0s' {1..64})"
  ok "stalls, naming spec.checksum" stalls sum ChecksumMismatch spec.checksum
  ok "an Image whose file is empty" image empty "$FILES/empty.img" raw
  ok "stalls, naming spec.src" stalls empty SourceEmpty spec.src
  ok "an Image whose file is no disk" image text "$FILES/sha256sums" raw
  ok "stalls, naming spec.src" stalls text UnsupportedFormat spec.src
  ok "nothing of them is in Glance" nothing_in_glance
  ok "nothing of them is on the operator's disk" nothing_on_disk
}

# A release of the right form that does not exist is known only to the operator, whose webhook may not have answered when
# it was written. It does not ask about what the operator's own accounts write.
unknown_release() {
  local before
  before=$(kubectl -n openstack get pods -o name | sort)
  ok "an unknown release gets past the webhook" patch_cloud '{"spec":{"release":"2019.1"}}' \
    --as=system:serviceaccount:kupenstack-system:kupenstack-cloud
  ok "and stalls, naming the field" kubectl wait --for=condition=Stalled openstack/default --timeout=30s
  ok "and those that exist" refused '2026\.2' sh -c "kubectl get openstack default -o '$MESSAGE' >&2; exit 1"
  ok "back to the known one" patch_cloud '{"spec":{"release":"2026.2"}}'
  ok "all is Ready again" kubectl wait --for=condition=Ready openstack/default --timeout=30s
  ok "and no pod was touched" is "$before" sh -c 'kubectl -n openstack get pods -o name | sort'
}

main() {
  kubectl delete namespace "$NS" --ignore-not-found --wait >/dev/null
  kubectl create namespace "$NS" >/dev/null
  refused_at_once
  turns_out_wrong
  unknown_release
  ok "the namespace goes, wrong Images and all" kubectl delete namespace "$NS" --timeout=120s
  finish
}

main
