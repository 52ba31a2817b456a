#!/bin/bash
# make.sh TREE SUITE SETTINGS: the smallest Debian with what every image needs. SETTINGS has apt.conf and sources.list.
set -euo pipefail
tree=$1 suite=$2 settings=$3

slim=()
for unused in doc man info locale lintian; do slim+=(--dpkgopt="path-exclude=/usr/share/$unused/*"); done
mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,curl,python3 \
  --aptopt="$settings/apt.conf" "${slim[@]}" "$suite" "$tree" "$settings/sources.list"

cd "$tree"
# No daemon of a package may start while images are built.
printf '#!/bin/sh\nexit 101\n' > usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
# Nothing of the building machine may stay.
: > etc/resolv.conf
echo localhost > etc/hostname
rm -f etc/apt/apt.conf.d/99mmdebstrap etc/apt/sources.list.d/* var/lib/dbus/machine-id
: > etc/machine-id
# Times are cut to one date when a layer is packed: byte code that trusts them would be compiled anew at every start.
chroot . sh -c 'python3 -m compileall -qf --invalidation-mode unchecked-hash /usr/lib/python3*'
