#!/usr/bin/env bash
# The hunts of docs/hunt: `make hunt`. Each takes two processors some minutes.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Algorithm and property: what papers say of these algorithms, which no hunt is told.
HUNTS=(
	"olia slow-reaction"
	"lia blocking"
	"bbr gets-less"
	"wvegas slow-reaction"
	"reno takes-more"
	"lia harms"
)

for hunt in "${HUNTS[@]}"; do
	read -r cc property <<<"$hunt"
	say "$cc, $property"
	"$BIN/mptcplab" hunt "$cc" --property "$property" --evaluations 300 --out docs/hunt
done
