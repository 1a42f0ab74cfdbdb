#!/usr/bin/env bash
# Writes dist/mptcplab-VERSION-python.cdx.json: the bill of materials (CycloneDX) of the packages that `make setup` installs
# into .venv. Those of Rust are in Cargo.lock.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

main() {
	[ -x "$TOOLS/bin/cyclonedx-py" ] || fail "cyclonedx-py is missing: $TOOLS" "make wheel installs it"
	local out=$DIST/mptcplab-$VERSION-python.cdx.json
	"$TOOLS/bin/cyclonedx-py" environment --pyproject pyproject.toml --output-reproducible --output-format JSON \
		--output-file "$out" "$BIN/python"
	say "built: $out"
}

main
