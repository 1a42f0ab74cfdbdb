#!/usr/bin/env bash
# Instructions per packet-hop of workloads W1 to W5, as the difference of two run lengths under callgrind: the same numbers
# whatever else the machine does, so CI can hold them. The runs are short, and W3 has 3 of its 100 links, which share nothing.
# usage: benches/gate.sh [--note], which also adds the numbers to benches/history.csv
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    echo "bench-gate: not run, valgrind is not installed (apt install valgrind)"
    exit 0
fi
cargo build --quiet --release --locked -p mptcplab-bench --bin speed
speed=${CARGO_TARGET_DIR:-target}/release/speed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count FILE DURATION [key=value ...] prints "instructions hops" of a run
count() {
    local file=$1 duration=$2 refs hops
    shift 2
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$speed" "scenarios/bench/$file" \
        "duration=$duration" "warmup=0 s" sample=off "$@" >"$work/out" 2>"$work/err" || {
        echo "error: $speed failed in $file" >&2
        grep -v '^==' "$work/err" >&2
        exit 2
    }
    refs=$(sed -n 's/.*I *refs: *//p' "$work/err" | tr -d ,)
    hops=$(sed -n 's/.*hops=\([0-9]*\).*/\1/p' "$work/out")
    echo "$refs $hops"
}

counts=()
failed=0

# check NAME LIMIT FILE SHORT LONG [key=value ...]
check() {
    local name=$1 limit=$2 file=$3 short=$4 long=$5 first last per_hop
    shift 5
    first=$(count "$file" "$short" "$@")
    last=$(count "$file" "$long" "$@")
    per_hop=$(((${last% *} - ${first% *}) / (${last#* } - ${first#* })))
    counts+=("$per_hop")
    echo "bench-gate: $name takes $per_hop instructions per packet-hop (limit $limit)"
    if ((per_hop > limit)); then
        echo "error: the simulator's fast path has grown: $name takes $per_hop instructions per packet-hop" >&2
        failed=1
    fi
}

check W1 368 w1-one-reno.toml "4 s" "8 s"
check W2 433 w2-two-bottlenecks.toml "4 s" "8 s"
check W3 426 w3-thousand-flows.toml "2 s" "3 s" links.neck.count=3 flows.tcp.count=30
check W4 354 w4-ten-gigabit.toml "500 ms" "600 ms"
check W5 1160 w5-upstream-linux.toml "4 s" "8 s"
if [[ ${1:-} == --note ]]; then
    printf '%s,%s,%s\n' "$(git log -1 --format=%cs,%h)" "$(IFS=,; echo "${counts[*]}")" "" | sed 's/,$//' >>benches/history.csv
fi
if ((failed)); then
    echo >&2
    echo "hint: compare callgrind profiles of this and the previous commit (benches/gate.sh says how to run it)" >&2
    exit 1
fi
