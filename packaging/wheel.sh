#!/usr/bin/env bash
# Builds dist/mptcplab-VERSION-cp311-abi3-manylinux_*_x86_64.whl, which contains all that a user needs: the simulator,
# the program of the kernel engine, scenarios, papers and the sources of the algorithms. Needs `make setup` before.
#
# auditwheel reads from the symbols of the extension which version of glibc the wheel needs, and names it after that:
# the older the system on which it is built, the more systems can use it.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

EXTENSION=python/mptcplab/_core.abi3.so
PROGRAM=python/mptcplab/_bin/mptcplab-kernel

main() {
	need_x86_64
	local file
	for file in "$EXTENSION" "$PROGRAM"; do
		[ -e "$file" ] || fail "not built: $file" "make setup, which says why if it does not build it"
	done
	tools
	rm -rf "$WORK/bare" && mkdir -p "$WORK/bare" "$DIST"
	for file in "$EXTENSION" "$PROGRAM"; do
		strip --strip-all -o "$WORK/$(basename "$file")" "$file"
	done
	"$TOOLS/bin/python" packaging/make_wheel.py \
		"$WORK/$(basename "$EXTENSION")" "$WORK/$(basename "$PROGRAM")" "$WORK/bare"
	rm -f "$DIST/mptcplab-$VERSION"-*.whl
	# libelf stays the system's: iproute2, which the kernel engine needs, brings it.
	if ! PATH=$TOOLS/bin:$PATH auditwheel repair --exclude libelf.so.1 --wheel-dir "$DIST" \
		"$WORK"/bare/*.whl >"$WORK/audit.txt" 2>&1; then
		cat "$WORK/audit.txt" >&2
		fail "the wheel cannot be used on other systems" "auditwheel's reasons are above"
	fi
	local wheel
	wheel=$(echo "$DIST"/mptcplab-"$VERSION"-*.whl)
	say "built: $wheel ($(stat --format=%s "$wheel" | numfmt --to=si)B)"
}

# Tools in an environment of their own.
tools() {
	local stamp=$TOOLS/.stamp
	if [ "$(cat "$stamp" 2>/dev/null)" = "$(cat packaging/requirements.txt)" ]; then return; fi
	say "installing what packs and checks wheels"
	"${PYTHON:-python3}" -m venv --clear "$TOOLS"
	"$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check -r packaging/requirements.txt
	cp packaging/requirements.txt "$stamp"
}

main
