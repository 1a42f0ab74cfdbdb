#!/usr/bin/env bash
# Everything that must pass before a change is accepted: `make test`, and CI.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

scripts/lint.sh

section "Rust tests"
cargo test --workspace --locked

section "Python tests"
"$BIN/python" -m pytest

section "All checks passed"
