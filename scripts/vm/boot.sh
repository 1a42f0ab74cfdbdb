#!/usr/bin/env bash
# Boots a kernel with an initramfs in QEMU, and waits until the machine switches itself off.
#
#   scripts/vm/boot.sh KERNEL INITRAMFS OUT SECONDS
#
# KERNEL is a directory made by kernel.sh, INITRAMFS a file made by initramfs.sh. Into the directory OUT go
#   console   what the kernel and init said
#   out.tar   what the job sent, archive after archive (tar --ignore-zeros)
#   qemu.log  what QEMU said
#   initrd    the whole initramfs
# Exit code: 0, the machine switched itself off (also after a panic); 124, it did not within SECONDS; else QEMU failed.
#
# The processor is emulated, since not every machine may use KVM, and counts instructions: one is one nanosecond of the
# machine's time, and idle time passes at once. So what a test measures inside does not depend on how fast or busy the
# host is, and waiting costs nothing.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

KERNEL=${1:?directory of the kernel}
INITRAMFS=${2:?initramfs}
OUT=${3:?directory for the results}
LIMIT_S=${4:?time limit in seconds}

MEMORY=512M
# A serious fault stops the machine at once (`oops=panic`, `panic=-1`), so that it can't be overlooked.
COMMAND_LINE="console=ttyS0 loglevel=5 oops=panic panic=-1 mitigations=off random.trust_cpu=on"

mkdir -p "$OUT"
# The kernel reads one archive after the other.
cat "$INITRAMFS" "$KERNEL/modules.cpio" >"$OUT/initrd"
exec timeout --kill-after=5 "$LIMIT_S" qemu-system-x86_64 \
	-machine q35 -cpu max -accel tcg -icount shift=0,sleep=off -rtc clock=vm -m "$MEMORY" \
	-nodefaults -display none -no-reboot \
	-serial "file:$OUT/console" -serial "file:$OUT/out.tar" \
	-kernel "$KERNEL/vmlinuz" -initrd "$OUT/initrd" -append "$COMMAND_LINE" \
	>"$OUT/qemu.log" 2>&1 </dev/null
