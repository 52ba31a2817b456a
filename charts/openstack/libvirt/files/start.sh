#!/bin/bash
# Start libvirtd such that VMs outlive it. Two things end a VM with its pod: the pod's process namespace, hence hostPID,
# and the pod's control groups, which this script leaves; VMs inherit where it went.
set -euo pipefail

vms=kupenstack-vms # beside the group `kubepods`

# enter GROUP: move this process there; a new group of the hierarchy cpuset is unusable until it has processors.
enter() {
  local setting
  mkdir -p "$1"
  for setting in cpuset.cpus cpuset.mems; do
    [[ ! -e $1/$setting || $(<"$1/$setting") ]] || cat "${1%/*}/$setting" >"$1/$setting"
  done
  echo $$ >"$1/cgroup.procs"
}

# Groups of the pod are below `kubepods`; what is before it in a path is the node's own group, nothing on most.
leave_the_pod() {
  local line controllers path root mine
  mapfile -t mine </proc/self/cgroup # at once: it changes with every move
  for line in "${mine[@]}"; do
    IFS=: read -r _ controllers path <<<"$line"
    root=/sys/fs/cgroup/${controllers#name=}
    [[ $controllers ]] || root=/sys/fs/cgroup/unified
    if [[ -d $root && $path == */kubepods* ]]; then
      enter "$root${path%%/kubepods*}/$vms"
    elif [[ ! $controllers && -e /sys/fs/cgroup/cgroup.controllers ]]; then
      # The one hierarchy of version 2, where a container sees itself at the root.
      enter "/sys/fs/cgroup/$vms"
    fi
  done
}

# Nodes made from one template may share the UUID of their board and the machine-id; migration refuses such twins.
own_uuid() {
  local file=/var/lib/libvirt/host_uuid
  [[ -s $file ]] || cat /proc/sys/kernel/random/uuid >"$file"
  cat "$file"
}

# Definitions of VMs are kept on the node beside their data.
mkdir -p /var/lib/libvirt/definitions /var/log/libvirt/qemu
ln -sfn /var/lib/libvirt/definitions /etc/libvirt/qemu
install -m 600 /given/qemu.conf /etc/libvirt/qemu.conf
{
  cat /given/libvirtd.conf
  echo "host_uuid = \"$(own_uuid)\""
  grep -q '^listen_addr' /given/libvirtd.conf || echo "listen_addr = \"$NODE_IP\""
} >/etc/libvirt/libvirtd.conf

leave_the_pod
rm -f /run/libvirtd.pid /run/libvirt/libvirtd.pid
if grep -qE '^listen_t(cp|ls) = 1' /given/libvirtd.conf; then set -- --listen; fi
exec libvirtd --pid-file /run/libvirt/libvirtd.pid "$@"
