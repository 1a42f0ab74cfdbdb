#!/usr/bin/env bash
# Checks that the working tree is a release, builds its packages, and says what to push. Pushes nothing itself.
# The version is that of Cargo.toml.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../packaging/common.sh"

TAG=v$VERSION

main() {
	check "Nothing is uncommitted" test -z "$(git status --porcelain)"
	check "The branch is main" test "$(git branch --show-current)" = main
	check "The tag $TAG is new" no_such_tag
	check "One version in all files" same_version
	check "The changelog has a date for it" grep -qE "^## ${VERSION//./\\.} - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md
	check "The public address of the repository is in all files" addresses
	conclude "mend what failed and commit it, then: make release"
	if [ "${1:-}" = quick ]; then return; fi
	check "All tests" scripts/test.sh
	check "Verdicts and numbers of the papers" scripts/papers-check.sh
	check "Wheel" packaging/wheel.sh
	check "The wheel installs and works" packaging/wheel_check.sh
	check "The wheel on Debian 13, without a compiler" env SUITE=trixie packaging/wheel_check.sh
	check "The kernel program without libraries" packaging/static.sh
	check "Its Debian package" packaging/deb.sh
	check "The package installs and works" packaging/deb_check.sh
	check "The package on Debian 13" env SUITE=trixie packaging/deb_check.sh
	check "A second build has the same bytes" packaging/static_check.sh
	check "Bills of materials" packaging/sbom.sh
	export ARCH=aarch64
	check "Wheel for 64-bit ARM" packaging/wheel.sh
	check "The kernel program for 64-bit ARM" packaging/static.sh
	check "Its Debian package for 64-bit ARM" packaging/deb.sh
	check "The packages for 64-bit ARM in an emulator, with the same bytes" packaging/cross_check.sh
	check "Bills of materials for 64-bit ARM" packaging/sbom.sh
	conclude "mend what failed and commit it, then: make release"
	(cd "$DIST" && sha256sum -- *"$VERSION"* >SHA256SUMS)
	cat <<TEXT

$TAG is ready. To publish it:

    git tag --annotate $TAG --message "mptcplab $VERSION"
    git push origin main $TAG

Attach to the release: the files of dist/, whose digests are in dist/SHA256SUMS.
TEXT
}

no_such_tag() { ! git rev-parse --quiet --verify "refs/tags/$TAG" >/dev/null; }

# Formats that cannot ask Cargo.toml.
same_version() {
	grep -qx "version: $VERSION" CITATION.cff || { say "CITATION.cff has another version than $VERSION"; return 1; }
	grep -q "\"version\": \"$VERSION\"" .zenodo.json || { say ".zenodo.json has another version than $VERSION"; return 1; }
}

# Only a person knows where the repository is public. Nothing in the repository can tell, so that what is missing is named.
addresses() {
	local address place missing=()
	address=$(sed -n '/^\[project.urls\]/,/^\[/s/^Repository = "\(https:.*\)"$/\1/p' pyproject.toml)
	[ -n "$address" ] || missing+=('pyproject.toml, before [project.scripts]: [project.urls] and below it Repository = "https://..."')
	place=${address:-https://...}
	grep -qxF "repository-code: ${address:-?}" CITATION.cff || missing+=("CITATION.cff, after version: repository-code: $place")
	grep -qF "git clone ${address:-?} " README.md ||
		missing+=("README.md:$(grep -n -m 1 'git clone' README.md | cut -d : -f 1): git clone $place mptcplab")
	if [ ${#missing[@]} -eq 0 ]; then return; fi
	say "it is missing here; make address writes it, after ADDRESS=https://... or else as that of origin:"
	printf '       %s\n' "${missing[@]}" >&2
	return 1
}

main "$@"
