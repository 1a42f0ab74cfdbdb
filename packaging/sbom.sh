#!/usr/bin/env bash
# Writes the bills of materials (CycloneDX) beside the packages in dist/: what was compiled into the wheel and into the
# program without libraries, and what pip installs with the wheel today.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

main() {
	local wheel
	wheel=$(the_wheel)
	if [ ! -f "$wheel" ] || [ ! -f "$PROGRAM" ]; then fail "there are no packages in $DIST" "make wheel deb"; fi
	tools
	compiled "${wheel%.whl}.cdx.json" mptcplab "$ARCH-unknown-linux-gnu" mptcplab-py mptcplab-kernel
	compiled "$PROGRAM.cdx.json" mptcplab-kernel "$ARCH-unknown-linux-musl" "musl@$(musl):MIT" mptcplab-kernel
	# Wheels for all processors depend on the same packages, and pip installs one for this.
	if ! foreign; then installed "$wheel" "$DIST/mptcplab-$VERSION-python.cdx.json"; fi
}

# The version of the musl that zig brings.
musl() { sed -n 's/#define VERSION "\(.*\)"/\1/p' "$TOOLS"/lib/python*/site-packages/ziglang/lib/libc/musl/src/internal/version.h; }

# compiled OUT NAME TARGET WHAT...: as sbom.py takes it.
compiled() {
	"${PYTHON:-python3}" packaging/sbom.py "$@"
	"$TOOLS/bin/python" - "$1" <<-'PYTHON'
		import sys
		from pathlib import Path

		from cyclonedx.schema import SchemaVersion
		from cyclonedx.validation.json import JsonStrictValidator

		flaw = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(sys.argv[1]).read_text())
		if flaw is not None:
		    sys.exit(f"error: not a bill of materials: {sys.argv[1]}\n\nhint: {flaw}")
	PYTHON
	say "built: $1"
}

# installed WHEEL OUT: in an empty environment, because .venv has what developers need as well.
installed() {
	local place
	place=$(mktemp -d)
	"${PYTHON:-python3}" -m venv "$place/venv"
	"$place/venv/bin/pip" --disable-pip-version-check --quiet install "$1"
	"$TOOLS/bin/cyclonedx-py" environment --pyproject pyproject.toml --output-reproducible --output-format JSON \
		--output-file "$2" "$place/venv/bin/python"
	rm -rf "$place"
	say "built: $2"
}

main
