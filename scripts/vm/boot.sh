#!/usr/bin/env bash
# Boots a kernel with an initramfs in QEMU, and waits until the virtual machine powers off.
#
#   scripts/vm/boot.sh KERNEL INITRAMFS OUT SECONDS
#
# KERNEL is a directory made by kernel.sh, INITRAMFS a file made by initramfs.sh. The directory OUT receives
#   console   the output of the kernel and init
#   out.tar   the archives that the job sent, one after the other (tar --ignore-zeros)
#   qemu.log  the output of QEMU
#   initrd    the whole initramfs
# The exit code is 0 if the machine powered off (also after a panic) and 124 if it did not within SECONDS; otherwise
# QEMU failed.
#
# The processor is emulated, because KVM is not available on every host. Its time is counted in instructions: each
# takes one nanosecond of the machine's time, and idle time is skipped. Measurements inside the machine therefore do
# not depend on the speed and load of the host, and waiting takes no time.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

KERNEL=${1:?directory of the kernel}
INITRAMFS=${2:?initramfs}
OUT=${3:?directory for the results}
LIMIT_S=${4:?time limit in seconds}

MEMORY=512M
# A serious fault stops the machine at once (`oops=panic`, `panic=-1`), so that it is not overlooked.
COMMAND_LINE="console=ttyS0 loglevel=5 oops=panic panic=-1 mitigations=off random.trust_cpu=on"

mkdir -p "$OUT"
# The kernel unpacks concatenated archives one after the other.
cat "$INITRAMFS" "$KERNEL/modules.cpio" >"$OUT/initrd"
exec timeout --kill-after=5 "$LIMIT_S" qemu-system-x86_64 \
	-machine q35 -cpu max -accel tcg -icount shift=0,sleep=off -rtc clock=vm -m "$MEMORY" \
	-nodefaults -display none -no-reboot \
	-serial "file:$OUT/console" -serial "file:$OUT/out.tar" \
	-kernel "$KERNEL/vmlinuz" -initrd "$OUT/initrd" -append "$COMMAND_LINE" \
	>"$OUT/qemu.log" 2>&1 </dev/null
