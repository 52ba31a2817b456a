#!/bin/bash
# node.sh N STATE: process 1 of node N, started by up.sh in mount, pid, net, uts and ipc namespaces of its own.
# Everything a node changes (mounts, sysctls, firewall rules, addresses) lives and ends with these namespaces.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=dev/k8s/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

N=$1
NAME=node$N
IP=$(node_ip "$N")
ROOT=$DATA/$NAME # what this node has in place of the machine's folders
CGROUP=/$CGROUP_PREFIX-$NAME
ETCD=http://127.0.0.1:2379
export PATH=$BIN:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# own_folder PATH: give the node a PATH of its own, kept over restarts.
own_folder() {
  mkdir -p "$ROOT$1"
  if [ ! -d "$1" ]; then
    # An empty mount point has to be made on the machine; down.sh removes those that are listed.
    mkdir -p "$1"
    echo "$1" >>"$MOUNT_POINTS"
  fi
  mount --bind "$ROOT$1" "$1"
  mount --make-rshared "$1"
}

# own_file PATH: put standard input over the machine's file PATH, for this node only.
own_file() {
  local target copy=$ROOT/files$1
  mkdir -p "${copy%/*}"
  cat >"$copy"
  target=$(readlink -m "$1")
  if [ ! -e "$target" ]; then # a link into /run, which is empty here
    mkdir -p "${target%/*}"
    : >"$target"
  fi
  mount --bind "$copy" "$target"
}

private_files() {
  local path sysctl
  mount --make-rshared /
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/lock /run/netns
  for path in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log/pods /var/log/containers /etc/cni /etc/containerd /opt/cni \
    /var/lib/libvirt /var/lib/nova /var/lib/openvswitch; do
    own_folder "$path"
  done
  printf '127.0.0.1 localhost\n%s %s\n' "$IP" "$NAME" | own_file /etc/hosts
  own_file /etc/resolv.conf </dev/null
  # The kubelet sets these for the whole machine: it gets files of its own instead.
  for sysctl in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    # shellcheck disable=SC2094 # it is read before it is covered
    own_file "/proc/sys/$sysctl" <"/proc/sys/$sysctl"
  done
}

network() {
  ip link set lo up
  until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done # up.sh moves it in
  ip addr add "$IP/24" dev eth0
  ip link set eth0 up
  ip route add default via "$NODE_NET.1"
  sysctl -qw net.ipv4.ip_forward=1
  [ ! -d /proc/sys/net/bridge ] || sysctl -qw net.bridge.bridge-nf-call-iptables=1
}

cgroup() {
  local hierarchy setting
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then # cgroup v2: one hierarchy, and the kubelet enables what it needs
    mkdir -p "/sys/fs/cgroup$CGROUP"
    return
  fi
  for hierarchy in /sys/fs/cgroup/*/; do
    mkdir -p "$hierarchy$CGROUP"
    for setting in cpuset.cpus cpuset.mems; do
      [ ! -e "$hierarchy/$setting" ] || cat "$hierarchy/$setting" >"$hierarchy$CGROUP/$setting"
    done
  done
}

# run COMMAND...: keep a program running; its log is named after it.
run() {
  local log=$DATA/log/$NAME-$1.log
  (
    set +e
    while :; do
      "$@" >>"$log" 2>&1 </dev/null
      echo "$(date -Is) $1 ended: $?" >>"$log"
      sleep 1 # the pace of restarts when it fails at once
    done
  ) &
}

api_ready() {
  curl -sf --max-time 2 --cacert "$PKI/ca.crt" --cert "$PKI/$NAME.crt" --key "$PKI/$NAME.key" "https://$API_IP:6443/readyz" >/dev/null
}

# after_api COMMAND...: run it once the API server is ready.
after_api() {
  (
    set +e
    until api_ready; do sleep 0.1; done
    run "$@"
    wait
  ) &
}

# What pods with an account of their own write, one line per request: proof that an operator writes nothing.
audit_policy() {
  cat <<END
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
- {level: Metadata, userGroups: ["system:serviceaccounts"], verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
END
}

start_api_server() {
  audit_policy >"$DATA/audit.yaml"
  # Nothing here has to outlive a power cut, so etcd need not wait for the disk.
  run etcd --name "$NAME" --data-dir "$DATA/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster "$NAME=http://127.0.0.1:2380"
  run kube-apiserver --etcd-servers "$ETCD" --advertise-address "$IP" --service-cluster-ip-range "$SERVICE_NET.0/16" \
    --allow-privileged --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$PKI/ca.crt" --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" \
    --kubelet-certificate-authority "$PKI/ca.crt" --kubelet-preferred-address-types InternalIP \
    --kubelet-client-certificate "$PKI/apiserver-kubelet.crt" --kubelet-client-key "$PKI/apiserver-kubelet.key" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$PKI/sa.pub" --service-account-signing-key-file "$PKI/sa.key" \
    --requestheader-client-ca-file "$PKI/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --audit-policy-file "$DATA/audit.yaml" --audit-log-path "$AUDIT_LOG" --audit-log-maxsize 50 --audit-log-maxbackup 1 \
    --proxy-client-cert-file "$PKI/front-proxy.crt" --proxy-client-key-file "$PKI/front-proxy.key" --profiling=false
}

start_control_plane() {
  local manager=$PKI/kube-controller-manager.kubeconfig scheduler=$PKI/kube-scheduler.kubeconfig
  mkdir -p "$DATA/etcd" "$DATA/volumes"
  chmod 700 "$DATA/etcd"
  start_api_server
  after_api kube-controller-manager --kubeconfig "$manager" \
    --authentication-kubeconfig "$manager" --authorization-kubeconfig "$manager" \
    --leader-elect=false --use-service-account-credentials --bind-address 127.0.0.1 --profiling=false \
    --root-ca-file "$PKI/ca.crt" --service-account-private-key-file "$PKI/sa.key" \
    --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key" \
    --service-cluster-ip-range "$SERVICE_NET.0/16"
  after_api kube-scheduler --kubeconfig "$scheduler" \
    --authentication-kubeconfig "$scheduler" --authorization-kubeconfig "$scheduler" \
    --leader-elect=false --bind-address 127.0.0.1 --profiling=false
  after_api local-provisioner --kubeconfig "$PKI/local-provisioner.kubeconfig" --root "$DATA/volumes"
}

start_containerd() {
  local oom=false
  # Without CAP_SYS_RESOURCE (bit 24) runc may not lower a process's oom_score_adj, and every pod would fail.
  (((0x$(awk '/^CapEff/ {print $2}' /proc/self/status) >> 24 & 1) == 1)) || oom=true
  cat >/etc/containerd/config.toml <<END
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "kupenstack.local/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = $oom
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
END
  mkdir -p /etc/cni/net.d
  cat >/etc/cni/net.d/10-bridge.conflist <<END
{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$POD_NET.$N.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
  run containerd --config /etc/containerd/config.toml
}

start_kubelet() {
  # Images can't be pulled again here, so none is ever collected; eviction limits are absolute because a large disk
  # with a reserve may be below the usual percentages and yet have plenty of room.
  cat >"$ROOT/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: $CGROUP
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: $IP
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/$NAME.crt
tlsPrivateKeyFile: $PKI/$NAME.key
clusterDomain: cluster.local
clusterDNS: [$DNS_IP]
resolvConf: /etc/resolv.conf
evictionHard: {memory.available: 100Mi, nodefs.available: 1Gi, imagefs.available: 1Gi}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxPods: 250
serializeImagePulls: false
nodeStatusUpdateFrequency: 5s
END
  after_api kubelet --config "$ROOT/kubelet.yaml" --kubeconfig "$PKI/$NAME.kubeconfig" \
    --node-ip "$IP" --hostname-override "$NAME" --root-dir /var/lib/kubelet
}

start_kube_proxy() {
  # Conntrack's limits belong to the machine: zero leaves them alone.
  cat >"$ROOT/kube-proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $PKI/kube-proxy.kubeconfig}
clusterCIDR: $POD_NET.0.0/16
hostnameOverride: $NAME
nodeIPOverride: [$IP]
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 100ms}
END
  after_api kube-proxy --config "$ROOT/kube-proxy.yaml"
}

main() {
  hostname "$NAME"
  private_files
  network
  cgroup
  [ "$N" != 1 ] || start_control_plane
  start_containerd
  start_kubelet
  start_kube_proxy
  wait # for ever; meanwhile the shell reaps whatever the node's programs leave behind
}

main
