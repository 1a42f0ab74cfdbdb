#!/usr/bin/env bash
# Everything that must pass before a change is accepted: `make test`. All checks run, so that one call shows all that
# fails.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

SKIPS=$(mktemp)
trap 'rm -f "$SKIPS"; stop_beside' EXIT

# One after the other: on two processors, several compilers at once would gain nothing. clippy comes last, because it locks
# the directory that the Rust tests need when they begin.
rust_lints() {
	local code=0
	scripts/oldest-rust.sh || code=$?
	clippy || code=$?
	return "$code"
}

check "Formatting and lints" scripts/lint.sh --but-cargo
without_kernel
tests=(cargo test --workspace "${WITHOUT_KERNEL[@]}" "${WITH_KERNEL[@]}" --locked)
check "Compilation of the Rust tests" "${tests[@]}" --no-run
# For most of their time the tests wait for the network, so that the processors have time for what takes no notice of load:
# callgrind, which counts instructions, and compilers.
beside "Speed: instructions per packet-hop" make --no-print-directory bench-gate
beside "The oldest Rust, and lints of Rust" rust_lints
check "Rust tests" "${tests[@]}" -- --show-output
rejoin
# Python tests run virtual machines where they can.
scripts/vm/packages.sh || say "SKIPPED: tests of the engine vm, for this reason"
# One process runs all tests of a file, because they share what the file made first.
check "Python tests" "$BIN/python" -m pytest --numprocesses auto --dist loadfile --durations 15 -m "not kernel and not machines"
# `make test-kernels` has the newest one as well, which is not far from that of this machine. The time in a virtual machine
# does not depend on the host.
beside "The kernel engine on Debian's oldest kernel" "$BIN/python" tests/kernels/run.py --optional bookworm
# Not beside simulations: a kernel that has to wait for a processor is late.
check "Python tests on this machine's kernel" "$BIN/python" -m pytest -m kernel tests/python
rejoin
printf '\n' >&2
"$BIN/python" scripts/skips.py count "$SKIPS"
conclude "the output of each is above; one alone is quicker: make lint, cargo test -p CRATE, pytest"
