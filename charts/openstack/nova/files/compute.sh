#!/bin/bash
# Start the hypervisor's agent once what it talks to on its node is there.
set -euo pipefail

libvirt=/run/libvirt/libvirt-sock

if [[ $DRIVER == libvirt.* ]]; then
  if [[ $VIRT_TYPE == kvm && ! -e /dev/kvm ]]; then
    echo "node $OS_DEFAULT__HOST has no /dev/kvm: its processors can't virtualise, or it is a VM that may not." \
      "Set conf.nova.libvirt.virt_type to qemu (virtType of the Nova object), or take the node's label away" >&2
    exit 1
  fi
  until [[ -S $libvirt ]]; do
    echo "waiting for libvirt on this node"
    sleep 2
  done
fi
mkdir -p /var/lib/nova/instances /var/lib/nova/tmp
exec nova-compute --config-file /etc/nova/nova.conf
