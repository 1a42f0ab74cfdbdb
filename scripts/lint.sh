#!/usr/bin/env bash
# Formatting and lints of all languages; changes nothing. `make format` mends formatting.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

section "Formatting"
say "cargo fmt --check"
cargo fmt --all --check
say "ruff format --check"
"$BIN/ruff" format --check --quiet python tests
say "clang-format (algorithms/)"
"$BIN/clang-format" --dry-run --Werror algorithms/*.c algorithms/*.h

section "Lints"
say "ruff check"
"$BIN/ruff" check --quiet python tests
say "cargo clippy"
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
