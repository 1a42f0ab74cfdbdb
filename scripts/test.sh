#!/usr/bin/env bash
# Everything that must pass before a change is accepted: `make test`, and CI. All checks run, so that one
# call shows all that fails.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

SKIPS=$(mktemp)
trap 'rm -f "$SKIPS"' EXIT

check "Formatting and lints" scripts/lint.sh
without_kernel
check "Rust tests" cargo test --workspace "${WITHOUT_KERNEL[@]}" "${WITH_KERNEL[@]}" --locked -- --show-output
# Python tests run virtual machines where they can.
scripts/vm/packages.sh || say "SKIPPED: tests of the engine vm, for this reason"
# One process runs all tests of a file, because they share what the file made first.
check "Python tests" "$BIN/python" -m pytest --numprocesses auto --dist loadfile --durations 15 -m "not kernel"
# A kernel that shares the processor with simulations is late.
check "Python tests on this machine's kernel" "$BIN/python" -m pytest -m kernel tests/python
check "The kernel engine on Debian's oldest and newest kernel" "$BIN/python" tests/kernels/run.py --optional
# Instructions per packet-hop, counted by callgrind: repeatable where time is not.
if grep -q '^bench-gate:' Makefile; then
	check "Speed: instructions per packet-hop" make --no-print-directory bench-gate
fi

printf '\n' >&2
"$BIN/python" scripts/skips.py count "$SKIPS"
conclude "the output of each is above; one alone is quicker: make lint, cargo test -p CRATE, pytest"
