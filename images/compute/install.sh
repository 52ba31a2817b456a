#!/bin/bash
# What runs on a hypervisor and in the network's databases besides Python: libvirt and QEMU, Open vSwitch, OVN, the
# metadata agent's proxy. Runs inside the tree.
set -euo pipefail

apt-get update -q
apt-get install -qy --no-install-recommends \
  libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils python3-libvirt genisoimage \
  openvswitch-switch ovn-central ovn-host \
  haproxy iproute2 iptables procps openssh-client openssh-server

# Who hypervisors bring disks to each other as: Nova's number in the charts. "*" is no password, where "!" is locked.
useradd --uid 42424 --user-group --home-dir / --no-create-home --shell /bin/bash --password '*' nova
rm /etc/ssh/ssh_host_*

# Everything here is told its configuration; data and identities are made per node and cloud.
rm -rf /etc/libvirt/qemu/* /var/lib/libvirt/* /var/lib/openvswitch/* /var/lib/ovn/* /etc/openvswitch/* /etc/haproxy

# Programs that nothing here calls.
(cd /usr/bin && rm qemu-io qemu-nbd qemu-storage-daemon qemu-system-i386)

# Debian's binding of libvirt is for this very Python: the virtual environment of the services sees it, and nothing else
# of Debian's.
system=/usr/lib/python3/dist-packages
site=/opt/openstack/lib/$(basename "$(readlink -f /usr/bin/python3)")/site-packages
mkdir -p "$site"
for file in "$system"/libvirt*.py "$system"/libvirtmod*.so; do ln -s "$file" "$site/"; done

libvirtd --version
qemu-system-x86_64 --version
qemu-img --version
ovs-vswitchd --version
ovn-controller --version
ovn-northd --version
haproxy -v
/usr/sbin/sshd -V
PYTHONPATH=$site python3 -c 'import libvirt; print("python3-libvirt", libvirt.getVersion())'
