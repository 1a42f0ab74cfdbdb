#!/usr/bin/env bash
# lint.sh [--but-cargo]: formatting and lints of all languages; changes nothing. `make format` mends formatting. With
# --but-cargo, what compiles the workspace is left out.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Every C file of the native build, and every header by itself, with one compiler. The hooks have the kernel's signatures,
# so not every parameter is used; what a header defines is used where it is included. The eBPF build has its own flags in
# crates/mptcplab-bpf/build.rs, and compiles with clang.
compile_c() {
	local compiler=$1 file
	local flags=(-std=gnu11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter -fno-strict-aliasing -Ialgorithms)
	if ! have "$compiler"; then
		say "SKIPPED: $compiler is not installed"
		return
	fi
	for file in algorithms/*.c crates/mptcplab-cc/native/*.c; do
		"$compiler" "${flags[@]}" -c -o /dev/null "$file" || return
		"$compiler" "${flags[@]}" -DCC_CHECKED -c -o /dev/null "$file" || return
	done
	for file in algorithms/*.h; do
		case $file in */cc_*.h) continue ;; esac # parts of cc.h
		"$compiler" "${flags[@]}" -Wno-unused-function -fsyntax-only -x c -include "$file" /dev/null || return
	done
}

without_kernel

# rustfmt does not find the modules that the list of schedulers declares.
check "Formatting of Rust" cargo fmt --all --check -- crates/mptcplab-model/src/sched/*.rs
check "Formatting of Python" "$BIN/ruff" format --check --quiet examples python site tests
check "Formatting of C" "$BIN/clang-format" --dry-run --Werror algorithms/*.[ch] crates/mptcplab-cc/native/*.[ch] \
	crates/mptcplab-bpf/bpf/*.[ch] python/mptcplab/engines/vm/*.c
check "Warnings of gcc" compile_c gcc
check "Warnings of clang" compile_c clang
check "Lints of Python" "$BIN/ruff" check --quiet examples python site tests
check "Width of prose" "$BIN/python" scripts/prose.py
check "Types of Python" "$BIN/mypy" --cache-dir target/mypy --no-error-summary
check "Imports of Python" "$BIN/lint-imports" --no-logo --cache-dir target/import-linter
if [ "${1:-}" != --but-cargo ]; then
	check "Lints of Rust" clippy
	check "Oldest Rust" scripts/oldest-rust.sh
fi

conclude "make format mends formatting"
