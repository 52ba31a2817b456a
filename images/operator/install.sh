#!/bin/bash
# What the operator runs besides helm: qemu-img, to look into VM images and convert them. Runs inside the tree.
set -euo pipefail

apt-get update -q
apt-get install -qy --no-install-recommends qemu-utils
rm /usr/bin/qemu-{io,nbd,storage-daemon}
qemu-img --version
