#!/usr/bin/env bash
# Builds dist/mptcplab-VERSION-cp311-abi3-manylinux_2_28_ARCH.whl, which contains all that a user needs: the simulator,
# the program of the kernel engine, scenarios, papers and the sources of the algorithms. Needs `make setup` before.
#
# Both are linked for glibc 2.28, and auditwheel checks that they need nothing else that a system might not have.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=packaging/compile.sh
source packaging/compile.sh

TARGET=$ARCH-unknown-linux-gnu
GLIBC=2.28
PLATFORM=manylinux_${GLIBC/./_}_$ARCH

main() {
	requirements "$TARGET"
	say "compiling both engines for glibc $GLIBC (some minutes)"
	compile "$TARGET" "$GLIBC" zigbuild --package mptcplab-py --package mptcplab-kernel --features mptcplab-kernel/static
	rm -rf "$WORK/bare" && mkdir -p "$WORK/bare" "$DIST"
	notices "$WORK/notices" wheel "$TARGET" mptcplab-py mptcplab-kernel
	"$TOOLS/bin/python" packaging/make_wheel.py "$ARCH" \
		"$BUILD/$TARGET/release/lib_core.so" "$BUILD/$TARGET/release/mptcplab-kernel" "$WORK/notices" "$WORK/bare"
	rm -f "$(the_wheel)"
	if ! PATH=$TOOLS/bin:$PATH "$TOOLS/bin/python" packaging/audit.py "$ARCH" repair --only-plat --plat "$PLATFORM" --wheel-dir "$DIST" \
		"$WORK"/bare/*.whl >"$WORK/audit.txt" 2>&1; then
		cat "$WORK/audit.txt" >&2
		fail "the wheel cannot be used on other systems" "auditwheel's reasons are above"
	fi
	local wheel
	wheel=$(the_wheel)
	say "built: $wheel ($(size "$wheel"))"
}

main
