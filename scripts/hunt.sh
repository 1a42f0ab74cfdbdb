#!/usr/bin/env bash
# The hunts of docs/hunt: `make hunt`. Each takes a minute or two of two processors.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

HUNTS=(
	"reno takes-more"
	"lia harms"
	"olia slow-reaction"
	"wvegas slow-reaction"
	"bbr starves"
	"lia blocking"
)

for hunt in "${HUNTS[@]}"; do
	read -r cc property <<<"$hunt"
	say "$cc, $property"
	"$BIN/mptcplab" hunt "$cc" --property "$property" --evaluations 300 --out docs/hunt
done
