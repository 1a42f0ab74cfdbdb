#!/usr/bin/env bash
# Builds the site and its playground and uses them in Chromium; none of the tests may be skipped here.
# shellcheck source=scripts/playground/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/playground/common.sh"

rust_for_wasm || scripts/playground/debian-rust.sh
scripts/site.sh
MPTCPLAB_SITE=required "$BIN/python" -m pytest -p no:xdist tests/python/test_site.py
