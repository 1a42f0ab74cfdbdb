#!/usr/bin/env bash
# A full reproduction of all papers, compared with what is committed: `make papers-check`, before every release. Results
# that are stored below results/reproduce are taken from there if nothing that they depend on changed.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PAGES=$(mktemp -d)
trap 'rm -rf "$PAGES"' EXIT

same_pages() {
	local page differ=0
	for page in "$PAGES"/*.md "$PAGES"/*.json; do
		diff -u "docs/papers/$(basename "$page")" "$page" || differ=1
	done
	return "$differ"
}

check "Verdicts are the expected ones, and reasons fit" "$BIN/mptcplab" reproduce all --docs "$PAGES"
check "The pages below docs/papers have these numbers" same_pages
check "The README has these numbers" "$BIN/mptcplab" docs --check

conclude "mptcplab reproduce all --accept takes the verdicts over; make papers writes the pages"
