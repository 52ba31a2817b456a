#!/bin/bash
# pki.sh NODE=ADDRESS...: the cluster's certificates and kubeconfigs (EC P-256). Makes only what is missing.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

authority() {
  key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 3650 -out "$1.crt" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
}

# certificate NAME AUTHORITY SUBJECT [ALTERNATIVE-NAMES]
certificate() {
  key "$1"
  openssl req -new -key "$1.key" -subj "$3" |
    openssl x509 -req -CA "$2.crt" -CAkey "$2.key" -set_serial "0x$(openssl rand -hex 8)" -days 3650 -out "$1.crt" \
      -extfile <(
        echo "keyUsage=critical,digitalSignature"
        echo "extendedKeyUsage=serverAuth,clientAuth"
        [ -z "${4:-}" ] || echo "subjectAltName=$4"
      ) 2>/dev/null
}

kubeconfig() {
  cat >"$1.kubeconfig" <<END
apiVersion: v1
kind: Config
clusters: [{name: kupenstack-local, cluster: {server: "https://$API_IP:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: kupenstack-local, context: {cluster: kupenstack-local, user: $1}}]
current-context: kupenstack-local
END
}

# identity NAME SUBJECT [ALTERNATIVE-NAMES]: a client of the API server
identity() {
  certificate "$1" ca "$2" "${3:-}"
  kubeconfig "$1"
}

control_plane() {
  local names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local
  authority ca
  authority front-proxy-ca
  key sa
  openssl ec -in sa.key -pubout -out sa.pub 2>/dev/null
  certificate apiserver ca /CN=kube-apiserver "$names,DNS:localhost,IP:127.0.0.1,IP:$API_IP,IP:$SERVICE_NET.1"
  certificate apiserver-kubelet ca /O=system:masters/CN=kube-apiserver-kubelet-client
  certificate front-proxy front-proxy-ca /CN=front-proxy-client
  identity kube-controller-manager /CN=system:kube-controller-manager
  identity kube-scheduler /CN=system:kube-scheduler
  identity kube-proxy /CN=system:kube-proxy
  identity local-provisioner /CN=local-provisioner
  # Made last: its presence says that all of the above is there.
  identity admin /O=system:masters/CN=admin
}

main() {
  local node name
  umask 077
  mkdir -p "$PKI"
  cd "$PKI"
  [ -e admin.kubeconfig ] || control_plane
  for node in "$@"; do
    name=${node%%=*}
    [ -e "$name.kubeconfig" ] || identity "$name" "/O=system:nodes/CN=system:node:$name" "DNS:$name,IP:${node#*=}"
  done
}

main "$@"
