#!/bin/bash
# Start the hypervisor's agent once what it talks to on its node is there.
set -euo pipefail

mkdir -p /var/lib/nova/instances /var/lib/nova/tmp
if [[ -v SSH_UID ]]; then
  # Others bring disks here, as this user.
  chown "$SSH_UID" /var/lib/nova/instances
  python3 /scripts/ssh-keys.py
fi

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
  [[ -s /var/lib/nova/compute_id ]] || python3 /scripts/identity.py
fi
exec python3 /scripts/serve.py --config-file /etc/nova/nova.conf
