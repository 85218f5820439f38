#!/bin/sh
# Makes, in the folder $1, what a virtual machine for tests boots from: vmlinuz, initrd.gz, disk.img, key.
# Debian with systemd and its cloud kernel; two spare files become volumes of the device mapper at boot.
set -eu
out=$1
suite=bookworm
work=$out/work
root=$work/root
mkdir -p "$work"
cd "$work"

# The mirror that this machine's own apt uses.
mirror() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' |
        awk -v suite="$suite" '$2 == suite && $3 == "main" && $4 == "Packages" { print $1; exit }'
}
uri=$(mirror)
[ -n "$uri" ] || { echo "no mirror of Debian $suite in this machine's apt sources" >&2; exit 1; }
apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 || apt-get update -q

debootstrap --variant=minbase --include=systemd,systemd-sysv,udev,dbus,openssh-server,iproute2,iptables,iputils-ping,procps,kmod,dmsetup,util-linux,e2fsprogs,adjtimex,systemd-timesyncd \
    "$suite" "$root" "$uri" >debootstrap.log 2>&1 || { tail -n 20 debootstrap.log >&2; exit 1; }

kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
apt-get download -q "$kernel" >/dev/null
dpkg-deb -x "$kernel"_*.deb kernel
version=$(ls kernel/lib/modules)
mkdir -p "$root/usr/lib/modules"
cp -a "kernel/lib/modules/$version" "$root/usr/lib/modules/"
chroot "$root" depmod "$version"

ssh-keygen -q -t ed25519 -N '' -C '' -f "$out/key"
mkdir -m 700 -p "$root/root/.ssh"
cp "$out/key.pub" "$root/root/.ssh/authorized_keys"
printf 'UseDNS no\nUsePAM no\nMaxSessions 50\n' >"$root/etc/ssh/sshd_config.d/rackrift.conf"
: >"$root/etc/machine-id"
echo 'LABEL=root / ext4 defaults,noatime 0 1' >"$root/etc/fstab"
# A device's name is the kernel's, and what makes noise or sets the clock by itself is off.
for unit in apt-daily.timer apt-daily-upgrade.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service \
    adjtimex.service getty@tty1.service serial-getty@ttyS0.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

cat >"$root/usr/local/sbin/rackrift-boot" <<'BOOT'
#!/bin/sh
for word in $(cat /proc/cmdline); do
    case $word in
    rr.ip=*) ip addr add "${word#rr.ip=}" dev eth0 ;;
    rr.name=*) echo "${word#rr.name=}" >/proc/sys/kernel/hostname ;;
    esac
done
ip link set eth0 up
[ -e /var/lib/volume.img ] || truncate -s 64M /var/lib/volume.img
dmsetup create data --table "0 131072 linear $(losetup -f --show /var/lib/volume.img) 0"
BOOT
chmod 755 "$root/usr/local/sbin/rackrift-boot"
cat >"$root/etc/systemd/system/rackrift-boot.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=systemd-udev-settle.service local-fs.target
Wants=systemd-udev-settle.service
Before=ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/rackrift-boot
[Install]
WantedBy=multi-user.target
UNIT
cat >"$root/etc/systemd/system/sleeper.service" <<'UNIT'
[Service]
ExecStart=/usr/local/bin/sleeper infinity
Restart=always
RestartSec=200ms
[Install]
WantedBy=multi-user.target
UNIT
cp "$root/bin/sleep" "$root/usr/local/bin/sleeper"
chroot "$root" systemctl enable -q rackrift-boot.service sleeper.service systemd-timesyncd.service
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*

# The cloud kernel has ext4 built in, and its disk and network as modules.
mkdir -p initrd/bin initrd/m initrd/proc initrd/sys initrd/dev initrd/root
cp /bin/busybox initrd/bin/
for tool in sh mount insmod sleep switch_root; do ln -s busybox "initrd/bin/$tool"; done
order="virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk failover net_failover virtio_net"
for module in $order; do
    find "kernel/lib/modules/$version" -name "$module.ko" -exec cp {} initrd/m/ \;
done
cat >initrd/init <<INIT
#!/bin/sh
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t sysfs sys /sys
for m in $order; do [ -e /m/\$m.ko ] && insmod /m/\$m.ko; done
n=0
while [ ! -b /dev/vda ] && [ \$n -lt 100 ]; do sleep 0.1; n=\$((n + 1)); done
mount -o ro /dev/vda /root
mount --move /dev /root/dev
exec switch_root /root /sbin/init
INIT
chmod 755 initrd/init
(cd initrd && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$out/initrd.gz"
cp "kernel/boot/vmlinuz-$version" "$out/vmlinuz"
mke2fs -q -t ext4 -L root -d "$root" "$out/disk.img" 1536M
cd "$out"
rm -rf "$work"
