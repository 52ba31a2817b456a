#!/bin/bash
# The test VM's disk, /root/tiny.qcow2: Debian's cloud kernel and a busybox initramfs on FAT, booted by syslinux.
# Runs inside the tree.
set -euo pipefail

drivers=(virtio_pci virtio_net virtio_blk virtio_rng button evdev)
kernel=/root/kernel initrd=/root/initrd

apt-get update -q
apt-get install -qy --no-install-recommends busybox-static cpio dosfstools kmod mtools qemu-utils syslinux syslinux-common xz-utils
cd /root
apt-get download "$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*-cloud-amd64\)$/\1/p')"
dpkg -x linux-image-*.deb "$kernel"
version=$(ls "$kernel"/usr/lib/modules)
ln -s usr/lib "$kernel/lib"
depmod -b "$kernel" "$version"

mkdir -p "$initrd"/{bin,dev,etc,modules,proc,sys,tmp,www}
cp /usr/bin/busybox "$initrd/bin/"
busybox --list | grep -vx busybox | xargs -I{} ln -s busybox "$initrd/bin/{}"
install -m 755 /mnt/init /mnt/udhcpc.sh "$initrd/"
for driver in "${drivers[@]}"; do modprobe -d "$kernel" -S "$version" --show-depends "$driver"; done |
  awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r module; do
  name=${module##*/}
  case $module in
    *.xz) xz -dc "$module" > "$initrd/modules/${name%.xz}" ;;
    *) cp "$module" "$initrd/modules/$name" ;;
  esac
  echo "${name%.xz}" >> "$initrd/modules/list"
done
cat "$initrd/modules/list"

# Same inputs, same bytes: fixed times, names in order, fixed ids.
find "$initrd" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
(cd "$initrd" && find . | LC_ALL=C sort | cpio -o -H newc --reproducible --quiet) | gzip -9n > initrd.gz
cp "$kernel/boot/vmlinuz-$version" vmlinuz
cp /mnt/syslinux.cfg syslinux.cfg

touch -d "@$SOURCE_DATE_EPOCH" vmlinuz initrd.gz syslinux.cfg
mkfs.vfat --invariant -C disk.raw 32768
mcopy -m -i disk.raw vmlinuz initrd.gz syslinux.cfg ::
syslinux --install disk.raw
qemu-img convert -c -O qcow2 disk.raw tiny.qcow2
