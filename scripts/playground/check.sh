#!/usr/bin/env bash
# Builds the playground and runs its tests, of which none may be skipped here.
# shellcheck source=scripts/playground/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rust_for_wasm || scripts/playground/debian-rust.sh
scripts/playground/build.sh
MPTCPLAB_PLAYGROUND=required "$BIN/python" -m pytest -p no:xdist tests/python/test_playground.py
