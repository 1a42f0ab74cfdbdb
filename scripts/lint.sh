#!/usr/bin/env bash
# Formatting and lints of all languages; changes nothing. `make format` mends formatting.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

without_kernel

check "Formatting of Rust" cargo fmt --all --check
check "Formatting of Python" "$BIN/ruff" format --check --quiet python tests
check "Formatting of C" "$BIN/clang-format" --dry-run --Werror algorithms/*.[ch] crates/mptcplab-cc/native/*.[ch] \
	crates/mptcplab-bpf/bpf/*.[ch]
check "Lints of Python" "$BIN/ruff" check --quiet python tests
check "Imports of Python" "$BIN/lint-imports" --no-logo --cache-dir target/import-linter
check "Lints of Rust" cargo clippy --workspace "${WITHOUT_KERNEL[@]}" --all-targets --locked --quiet -- -D warnings

conclude "make format mends formatting"
