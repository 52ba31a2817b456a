#!/bin/bash
# enter.sh WORK LOWER UPPER SOURCE DOWNLOADS COMMAND...: the inner half of in_tree, in fresh namespaces.
set -euo pipefail
work=$1 lower=$2 upper=$3 source=$4 downloads=$5 root=$1/root
shift 5

mount -t overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$work/overlay,redirect_dir=off,metacopy=off" overlay "$root"
mkdir -p "$root"/var/cache/apt/archives "$root"/var/lib/apt/lists
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$source" "$root/mnt"
mount --bind "$downloads" "$root/srv"
mount --bind "$downloads/archives" "$root/var/cache/apt/archives"
mount --bind "$downloads/lists" "$root/var/lib/apt/lists"

# Read-only, or a package's trigger could write to this machine's own files.
show() {
  [[ -e $1 ]] || return 0
  mount --bind "$1" "$root$2"
  mount -o remount,bind,ro "$root$2"
}
show /etc/resolv.conf /etc/resolv.conf
show /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
cp "$work/apt.conf" "$root/tmp/apt.conf"
cp "$work/sources.list" "$root/etc/apt/sources.list"

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
export DEBIAN_FRONTEND=noninteractive APT_CONFIG=/tmp/apt.conf
export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt
exec chroot "$root" "$@"
