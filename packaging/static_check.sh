#!/usr/bin/env bash
# Builds the program without libraries and its Debian package a second time, from a clone in another place, and compares
# the bytes with those of dist/. What is not committed is not in the clone.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

main() {
	local files=("$(basename "$PROGRAM")" "$(basename "$NOTICES")" "$(basename "$PACKAGE")") file
	if [ -n "$(git status --porcelain)" ]; then fail "there are changes that are not committed" "git commit, then make static deb"; fi
	for file in "${files[@]}"; do
		[ -f "$DIST/$file" ] || fail "not built: $DIST/$file" "make static deb"
	done
	PLACE=$(mktemp -d /var/tmp/mptcplab-second-build.XXXXXX)
	trap 'rm -rf "$PLACE"' EXIT
	export MPTCPLAB_PACKAGING_TOOLS=$TOOLS
	git clone --quiet --no-hardlinks . "$PLACE/clone"
	check "A second build" "$PLACE/clone/packaging/static.sh"
	check "A second package" "$PLACE/clone/packaging/deb.sh"
	for file in "${files[@]}"; do
		check "The same bytes: $file" cmp "$DIST/$file" "$PLACE/clone/dist/$file"
	done
	(cd "$DIST" && sha256sum "${files[@]}")
	conclude "diffoscope shows what differs"
}

main
