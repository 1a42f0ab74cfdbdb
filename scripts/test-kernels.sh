#!/usr/bin/env bash
# Tests the kernel engine on several kernels: `make test-kernels`. Boots Debian's kernels in QEMU; in each virtual
# machine it loads every algorithm and makes one MPTCP transfer with each. Prints a table; the exit code is 1 if
# anything failed.
#
#   scripts/test-kernels.sh             the oldest and the newest kernel of the matrix
#   scripts/test-kernels.sh --all       all of them
#   scripts/test-kernels.sh SUITE...    the cloud kernels of these Debian suites, for example bookworm-backports or sid
#   scripts/test-kernels.sh --optional  the default ones; succeeds and says why if this system cannot boot them
#
# Needs Debian on amd64 and a network connection to download kernels (about 100 MB, stored in ~/.cache/mptcplab). Root
# is only needed to install packages, and KVM is not needed. The results of the machines stay in target/test-kernels.
# MPTCPLAB_KERNEL names an existing program of the engine; without it the engine is compiled.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Oldest first. Debian 12 has 6.1, its backports have 6.12 (as Debian 13 does), and those of Debian 13 the newest.
MATRIX=(bookworm bookworm-backports trixie-backports)
# A machine usually takes about a minute; busy or slow hosts get ten times that.
MACHINE_LIMIT_S=600

TARGET=${CARGO_TARGET_DIR:-target}
OUT=$TARGET/test-kernels
# Maps the process id of a machine to its suite.
RUNNING=()

main() {
	local suites=("${MATRIX[0]}" "${MATRIX[-1]}") reason
	case ${1:-} in
	'') ;;
	--optional)
		if ! reason=$(machinery "${suites[@]}" 2>&1 >/dev/null); then
			printf '%s\n\nSKIPPED: the kernel engine was not tested on other kernels, for this reason\n' "$reason" >&2
			return
		fi
		;;
	--all) suites=("${MATRIX[@]}") ;;
	-*) fail "unknown option: $1" "scripts/test-kernels.sh [--optional | --all | SUITE...]" ;;
	*) suites=("$@") ;;
	esac
	machinery "${suites[@]}" >/dev/null
	if [ ! -x "$BIN/python" ]; then fail "there is no Python environment in .venv" "make dev"; fi
	mkdir -p "$TARGET"
	exec 8>"$OUT.lock"
	flock --nonblock 8 || fail "another scripts/test-kernels.sh is running" "wait for it: it uses $OUT"
	rm -rf "$OUT"
	compile
	prepare_job
	run_machines "${suites[@]}"
	"$BIN/python" tests/kernels/verdict.py "$OUT/job/algorithms" "${suites[@]/#/$OUT/}"
}

# machinery SUITE...: prepares QEMU and the kernels; prints the directories of the kernels.
machinery() {
	local suite
	scripts/vm/packages.sh || return
	for suite in "$@"; do scripts/vm/kernel.sh "$suite" || return; done
}

compile() {
	ENGINE=${MPTCPLAB_KERNEL:-$TARGET/release/mptcplab-kernel}
	if [ -n "${MPTCPLAB_KERNEL:-}" ]; then
		if [ ! -x "$ENGINE" ]; then fail "MPTCPLAB_KERNEL: no such program: $ENGINE" "unset it, and make setup"; fi
		return
	fi
	say "compiling the kernel engine"
	cargo build --quiet --release --locked -p mptcplab-kernel
}

# The directory that becomes /job inside the machines.
prepare_job() {
	mkdir -p "$OUT/job"
	cp tests/kernels/guest.sh "$OUT/job/main"
	cp tests/kernels/two-paths.toml "$OUT/job/"
	# As the build does, every C file of the folder is an algorithm.
	find algorithms -name '*.c' -exec basename {} .c \; | sort >"$OUT/job/algorithms"
	scripts/vm/initramfs.sh "$OUT/initramfs" "$OUT/job" "$ENGINE"
}

# run_machines SUITE...: runs as many machines at a time as there are processors, because each needs one.
run_machines() {
	local suite kernel
	say "booting: $*"
	# Background processes do not receive Ctrl-C.
	trap stop_machines EXIT
	for suite in "$@"; do
		if [ ${#RUNNING[@]} -ge "$(nproc)" ]; then wait_for_one; fi
		kernel=$(scripts/vm/kernel.sh "$suite")
		mkdir -p "$OUT/$suite"
		printf '%s\n' "$suite" >"$OUT/$suite/suite"
		scripts/vm/boot.sh "$kernel" "$OUT/initramfs" "$OUT/$suite" "$MACHINE_LIMIT_S" &
		RUNNING[$!]=$suite
	done
	while [ ${#RUNNING[@]} -gt 0 ]; do wait_for_one; done
}

wait_for_one() {
	local pid suite status=0
	wait -n -p pid "${!RUNNING[@]}" || status=$?
	suite=${RUNNING[$pid]}
	unset "RUNNING[$pid]"
	printf '%s\n' "$status" >"$OUT/$suite/exit"
	say "$suite: the machine ended after $SECONDS s"
}

stop_machines() {
	if [ ${#RUNNING[@]} -gt 0 ]; then kill "${!RUNNING[@]}" 2>/dev/null || true; fi
}

main "$@"
