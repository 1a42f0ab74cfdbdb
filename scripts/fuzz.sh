#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: runs fuzz targets, all by default. Targets of Rust run under libFuzzer where a nightly Rust
# and cargo-fuzz are installed; new inputs are then kept in fuzz/corpus-found/, those that fail in fuzz/artifacts/.
# Elsewhere fuzz/tests/replay.rs changes the inputs of the corpus without looking at what they reach. Targets of Python
# are those tests of tests/python/test_fuzz.py that hypothesis feeds.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PYTHON=(predicates claims paper)
HINT="the input that failed is in fuzz/artifacts/TARGET, or named in the output"

# What the linker optimises across crates takes minutes per target and finds nothing.
export CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

main() {
	local seconds=$1 target
	shift
	if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then fail "not a number of seconds: $seconds" "make fuzz SECONDS=600"; fi
	local known targets
	mapfile -t known < <(sed -n 's/^name = "\(.*\)"$/\1/p' fuzz/Cargo.toml | tail -n +2)
	known+=("${PYTHON[@]}")
	targets=("$@")
	if [ $# -eq 0 ]; then targets=("${known[@]}"); fi
	for target in "${targets[@]}"; do
		if ! contains "$target" "${known[@]}"; then fail "no fuzz target: $target" "one of ${known[*]}"; fi
	done
	local has_fuzzer=yes
	if ! cargo +nightly --version >/dev/null 2>&1 || ! cargo fuzz --version >/dev/null 2>&1; then
		has_fuzzer=
		say "libFuzzer needs a nightly Rust and cargo-fuzz; the corpus is changed at random instead"
		say "    rustup toolchain install nightly --profile minimal && cargo install cargo-fuzz --locked"
	fi
	for target in "${targets[@]}"; do
		if contains "$target" "${PYTHON[@]}"; then
			check "Fuzzing $target" hypothesis "$target" "$seconds"
		elif [ -n "$has_fuzzer" ]; then
			libfuzzer "$target" "$seconds"
		else
			replay "$target" "$seconds"
		fi
	done
	conclude "$HINT"
}

contains() {
	local word=$1 other
	shift
	for other in "$@"; do if [ "$other" = "$word" ]; then return 0; fi; done
	return 1
}

# features_of TARGET: puts what a target needs into FEATURES; fails if that is not installed.
FEATURES=()
features_of() {
	FEATURES=()
	if [ "$1" != tracer ]; then return; fi
	# Its crate needs the packages of the kernel engine.
	local missing
	missing=$(kernel_packages)
	if [ -n "$missing" ]; then
		say "SKIPPED: the target tracer, because packages are missing: $missing"
		return 1
	fi
	FEATURES=(--features kernel)
}

libfuzzer() {
	local target=$1 options=(-max_total_time="$2" -max_len=8192 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1)
	features_of "$target" || return 0
	mkdir -p "fuzz/corpus-found/$target"
	check "Fuzzing $target" cargo +nightly fuzz run "${FEATURES[@]}" "$target" \
		"fuzz/corpus-found/$target" "fuzz/corpus/$target" -- "${options[@]}"
}

replay() {
	features_of "$1" || return 0
	MPTCPLAB_FUZZ_TARGET=$1 MPTCPLAB_FUZZ_SECONDS=$2 check "Fuzzing $1" \
		cargo test --quiet --release --locked -p mptcplab-fuzz "${FEATURES[@]}"
}

# hypothesis TARGET SECONDS: new examples until the time is over.
hypothesis() {
	local name until=$((SECONDS + $2)) rounds=0
	case $1 in
		predicates) name=test_a_damaged_predicate ;;
		claims) name='test_a_damaged_file and claims' ;;
		paper) name='test_a_damaged_file and paper.toml' ;;
	esac
	while [ "$SECONDS" -lt "$until" ]; do
		MPTCPLAB_FUZZ_EXAMPLES=500 "$BIN/python" -m pytest -q -p no:cacheprovider --hypothesis-seed=$((RANDOM * 32768 + RANDOM)) \
			tests/python/test_fuzz.py -k "$name" || return
		rounds=$((rounds + 1))
	done
	say "$((rounds * 500)) examples"
}

main "$@"
