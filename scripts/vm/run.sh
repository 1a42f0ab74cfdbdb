#!/usr/bin/env bash
# Runs a program as root on another kernel, for example to find out what that kernel accepts.
#
#   scripts/vm/run.sh SUITE [--with FILE]... PROGRAM [ARGUMENT...]
#
#   scripts/vm/run.sh bookworm target/debug/deps/mptcplab_bpf-0123456789abcdef --nocapture
#   scripts/vm/run.sh bookworm --with lia.bpf.o bpftool -d prog loadall lia.bpf.o /sys/fs/bpf/lia
#
# SUITE is a Debian suite, whose cloud kernel is booted. PROGRAM and every FILE are copied into the machine, to the
# directory in which the program starts. The output and the exit code are those of the program. If the machine does
# not finish, its console is printed and the exit code is 3.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

LIMIT_S=${LIMIT_S:-300}

main() {
	local suite=$1 files=() program work
	shift
	while [ "$1" = --with ]; do
		files+=("$2")
		shift 2
	done
	program=$(command -v "$1") || fail "no such program: $1" "give its path, or install it"
	shift
	scripts/vm/packages.sh
	work=$(mktemp -d)
	# shellcheck disable=SC2064 # expand the directory now
	trap "rm -rf '$work'" EXIT
	mkdir "$work/job"
	if [ ${#files[@]} -gt 0 ]; then cp "${files[@]}" "$work/job/"; fi
	job "/bin/$(basename "$program")" "$@" >"$work/job/main"
	chmod +x "$work/job/main"
	scripts/vm/initramfs.sh "$work/initramfs" "$work/job" "$program"
	scripts/vm/boot.sh "$(scripts/vm/kernel.sh "$suite")" "$work/initramfs" "$work" "$LIMIT_S" || true
	if ! tar -x --ignore-zeros -C "$work" -f "$work/out.tar" status output 2>/dev/null; then
		cat "$work/console" "$work/qemu.log" >&2
		exit 3
	fi
	cat "$work/output"
	exit "$(cat "$work/status")"
}

# job PROGRAM ARGUMENT...: the script that the machine runs.
job() {
	printf '#!/bin/sh\ncd /job\n'
	printf '%q ' "$@"
	printf '>/out/output 2>&1\necho $? >/out/status\nsend status output\n'
}

main "$@"
