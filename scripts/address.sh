#!/usr/bin/env bash
# Writes the public address of the repository into the files that name it: `make address`, once before the first
# release. It is that of the remote `origin`, or ADDRESS=https://...
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

NEW=$(mktemp -d)
trap 'rm -rf "$NEW"' EXIT

main() {
	local file
	address=$(public "${ADDRESS:-$(git remote get-url origin 2>/dev/null)}")
	change pyproject.toml '^\[project\.scripts\]$' project_urls
	change CITATION.cff '^version: ' repository_code
	change README.md 'git clone [^ ].* mptcplab' clone_command
	# All of them, or none.
	for file in pyproject.toml CITATION.cff README.md; do
		cat "$NEW/$file" >"$file"
		say "$file: $address"
	done
}

# public URL: the address for the web of a remote; SSH's leads to the same place on most servers.
public() {
	local found
	found=$(sed -E -e 's|^(ssh://)?git@([^:/]+)[:/]|https://\2/|' -e 's|(\.git)?/*$||' <<<"$1")
	if ! [[ $found =~ ^https://[A-Za-z0-9.-]+/[A-Za-z0-9._~/-]+$ ]]; then
		fail "not a public address: '$1'" "make address ADDRESS=https://SERVER/OWNER/mptcplab"
	fi
	printf '%s' "$found"
}

# change FILE PATTERN EDIT: a new version of a file that has a line of this pattern.
change() {
	if ! grep -qE "$2" "$1"; then fail "$1 has no line '$2', where the address belongs" "git diff $1"; fi
	"$3" <"$1" >"$NEW/$1"
}

project_urls() {
	sed -e '/^\[project\.urls\]$/,/^$/d' -e "s|^\[project\.scripts\]$|[project.urls]\nRepository = \"$address\"\n\n&|"
}

repository_code() { sed -e '/^repository-code: /d' -e "s|^version: .*|&\nrepository-code: $address|"; }

clone_command() {
	sed -E "0,/git clone [^ ].* mptcplab/s#git clone (<[^>]*>|[^ ]+) mptcplab#git clone $address mptcplab#"
}

main "$@"
