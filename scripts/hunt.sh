#!/usr/bin/env bash
# The hunts of docs/hunt: `make hunt`. Each takes two processors some minutes.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Algorithm, property, evaluations and seed: what papers say of these algorithms, which no hunt is told.
HUNTS=(
	"olia slow-reaction 300 1"
	"lia blocking 300 2"
	"bbr loses-share 300 1"
	"wvegas slow-reaction 300 1"
	"reno takes-more 300 1"
	"lia harms 300 1"
)

for hunt in "${HUNTS[@]}"; do
	read -r cc property evaluations seed <<<"$hunt"
	say "$cc, $property"
	"$BIN/mptcplab" hunt "$cc" --property "$property" --evaluations "$evaluations" --seed "$seed" --out docs/hunt
done
