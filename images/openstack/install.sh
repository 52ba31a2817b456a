#!/bin/bash
# What the control plane runs besides Python: neutron's OVN driver calls ovsdb-client, and nova's console proxy serves
# noVNC's pages. Runs inside the tree.
set -euo pipefail

apt-get update -q
apt-get install -qy --no-install-recommends openvswitch-common
ovsdb-client --version

# The pages alone: the package depends on a proxy and an interpreter of its own.
cd /tmp
apt-get download -q novnc
dpkg-deb -x novnc_*.deb novnc
mkdir -p /usr/share/novnc
cp -r novnc/usr/share/novnc/. /usr/share/novnc/
test -f /usr/share/novnc/vnc_lite.html
