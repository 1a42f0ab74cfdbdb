#!/usr/bin/env bash
# Instructions per packet-hop of workload W1, as the difference of two run lengths under callgrind: the same
# number whatever else the machine does, so CI can hold it. usage: benches/gate.sh [LIMIT]
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${1:-455}

if ! command -v valgrind >/dev/null; then
    echo "bench-gate: not run, valgrind is not installed (apt install valgrind)"
    exit 0
fi
cargo build --quiet --release --locked -p mptcplab-bench --bin speed
speed=${CARGO_TARGET_DIR:-target}/release/speed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# prints "instructions hops" of a run of $1 simulated seconds
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$speed" \
        scenarios/bench/w1-one-reno.toml "duration=$1 s" "warmup=0 s" sample=off >"$work/out" 2>"$work/err"
    local refs hops
    refs=$(sed -n 's/.*I *refs: *//p' "$work/err" | tr -d ,)
    hops=$(sed -n 's/.*hops=\([0-9]*\).*/\1/p' "$work/out")
    echo "$refs $hops"
}

read -r refs_short hops_short < <(count 4)
read -r refs_long hops_long < <(count 8)
per_hop=$(((refs_long - refs_short) / (hops_long - hops_short)))
echo "bench-gate: W1 takes $per_hop instructions per packet-hop (limit $limit)"
if ((per_hop > limit)); then
    echo "error: the simulator's fast path has grown: $per_hop instructions per packet-hop" >&2
    echo >&2
    echo "hint: compare callgrind profiles of this and the previous commit (benches/gate.sh says how to run it)" >&2
    exit 1
fi
