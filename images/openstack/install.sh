#!/bin/bash
# What the services run besides Python: neutron's OVN driver calls ovsdb-client. Runs inside the tree.
set -euo pipefail

apt-get update -q
apt-get install -qy --no-install-recommends openvswitch-common
ovsdb-client --version
