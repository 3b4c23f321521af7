# common.sh: for tests/guests/*/run, which are called with BUILD and a folder of their own in it, in the project's root.
#
# A run prints what it does, and a line "pass: ..." for each thing it has shown; it exits with 0, or with 77 behind "skip: why".
# SPDX-License-Identifier: ISC
# shellcheck shell=bash
set -u
build=$1 work=$2
cache=$build/guests/packages # what was downloaded, for all guests
mkdir -p "$cache"

pass() { echo "pass: $*"; }
skip() { echo "skip: $*"; exit 77; }
fail() { echo "fail: $*"; exit 1; }

# Downloads Debian packages and unpacks them under $cache/GROUP, unless that was done before.  Nothing is installed.
packages() { # GROUP PACKAGE...
	local root=$cache/$1 deb
	shift
	[ "$(cat "$root.done" 2>/dev/null)" = "$*" ] && return 0
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
	rm -rf "$root" "$root.debs" "$root.done"
	mkdir -p "$root" "$root.debs"
	echo "downloading $*"
	(cd "$root.debs" && apt_quiet download "$@") || return 1
	for deb in "$root.debs"/*.deb; do
		case $deb in
		*/linux-image-*) # 400 MB, of which the kernel and the modules of Xen, of virtio's network and of virtio's folders are needed
			dpkg --fsys-tarfile "$deb" |
				tar x -C "$root" --wildcards './boot/vmlinuz-*' './lib/modules/*/kernel/drivers/xen/*' './lib/modules/*/kernel/drivers/virtio/*' \
					'./lib/modules/*/kernel/*/failover.ko' './lib/modules/*/kernel/drivers/net/*_failover.ko' './lib/modules/*/kernel/drivers/net/virtio_net.ko' \
					'./lib/modules/*/kernel/fs/netfs/*' './lib/modules/*/kernel/fs/fscache/*' './lib/modules/*/kernel/*/9p/*' || return 1
			;;
		*) dpkg -x "$deb" "$root" || return 1 ;;
		esac
	done
	rm -rf "$root.debs"
	echo "$*" >"$root.done"
}

apt_options=()
apt_quiet() { apt-get -qq "${apt_options[@]}" -o Acquire::Retries=2 -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"; }
# Lists of our own, where this machine's are old, or were thrown away.
private_lists() {
	[ ${#apt_options[@]} = 0 ] || return 1
	mkdir -p "$cache/lists/partial" "$cache/archives/partial"
	apt_options=(-o "Dir::State::lists=$cache/lists" -o "Dir::Cache=$cache/archives")
	apt_quiet update
}
# With this machine's lists, or else with ours.
with_lists() { "$@" || { private_lists && "$@"; }; }

# The kernel that linux-image-amd64 stands for, today.
kernel_packages() {
	local name
	name=$(apt-cache "${apt_options[@]}" depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-/ {print $2; exit}')
	[ -n "$name" ] && packages linux "$name"
}

# Sets kernel to the folder that has one with its modules, or skips.
find_kernel() {
	kernel=$cache/linux
	[ -f "$kernel.done" ] || with_lists kernel_packages || skip 'a kernel cannot be downloaded'
}

# QEMU, and what of it this machine lacks.
qemu_packages() {
	local missing
	missing=$(apt-get "${apt_options[@]}" install -s --no-install-recommends qemu-system-x86 2>/dev/null | awk '/^Inst/ {print $2}')
	# shellcheck disable=SC2086 # a list of words
	[ -n "$missing" ] && packages qemu $missing
}

# Sets qemu to the words that start qemu-system-x86_64: this machine's, or a downloaded one; false if none is to be had.
find_qemu() {
	qemu=(qemu-system-x86_64)
	command -v qemu-system-x86_64 >/dev/null && return 0
	exec {lock}>"$cache/qemu.lock"
	flock "$lock"
	local root=$cache/qemu
	[ -f "$root.done" ] || with_lists qemu_packages || { exec {lock}>&-; return 1; }
	exec {lock}>&-
	qemu=(env "LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu"
		"$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios")
}

modules=()
# A system in a folder: $busybox, $modules, its first process, programs with the libraries they need.
system() { # FOLDER INIT PROGRAM...
	local root=$1 init=$2 file
	shift 2
	rm -rf "$root"
	mkdir -p "$root"/{bin,lib,lib64,modules,dev,proc,sys,run,tmp,etc,data,boot,var/lib/xen,var/lib/xenstored,var/log/xen/console}
	chmod 1777 "$root/tmp"
	ln -s ../run "$root/var/run"
	ln -s ../run/lock "$root/var/lock"
	cp "$busybox" "$root/bin/busybox"
	"$busybox" --list | while read -r file; do ln -s busybox "$root/bin/$file"; done 2>/dev/null
	[ ${#modules[@]} = 0 ] || cp "${modules[@]}" "$root/modules/"
	cp "$init" "$root/init"
	echo 'user:x:1000:1000::/:/bin/sh' >"$root/etc/passwd"
	for file; do rm -f "$root/bin/${file##*/}" && strip -o "$root/bin/${file##*/}" "$file" 2>/dev/null || cp "$file" "$root/bin/"; done
	ldd "$@" | awk '$3 ~ /^\// {print $3}' | sort -u | while read -r file; do
		strip -o "$root/lib/${file##*/}" "$file" 2>/dev/null || cp -L "$file" "$root/lib/"
	done
	# xl loads it when a thread ends: ldd does not know.
	cp -L /lib/x86_64-linux-gnu/libgcc_s.so.1 "$root/lib/"
	cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
}
archive() { (cd "$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$2"; }
