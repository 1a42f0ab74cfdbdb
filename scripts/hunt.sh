#!/usr/bin/env bash
# The hunts of docs/hunt: `make hunt`. Each takes two processors some minutes.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Algorithm, property and evaluations: what papers say of these algorithms, which no hunt is told.
HUNTS=(
	"olia slow-reaction 300"
	"lia blocking 300"
	"bbr loses-share 300"
	"wvegas slow-reaction 300"
	"reno takes-more 300"
	"lia harms 300"
)

for hunt in "${HUNTS[@]}"; do
	read -r cc property evaluations <<<"$hunt"
	say "$cc, $property"
	"$BIN/mptcplab" hunt "$cc" --property "$property" --evaluations "$evaluations" --out docs/hunt
done
