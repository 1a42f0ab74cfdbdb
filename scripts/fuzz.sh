#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: runs fuzz targets under libFuzzer, all by default. New inputs are kept in
# fuzz/corpus-found/, those that fail in fuzz/artifacts/.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo +nightly --version >/dev/null 2>&1 ||
	fail "fuzzing needs a nightly Rust" "rustup toolchain install nightly --profile minimal"
cargo fuzz --version >/dev/null 2>&1 || fail "fuzzing needs cargo-fuzz" "cargo install cargo-fuzz --locked"

# What the linker optimises across crates takes minutes per target and finds nothing.
export CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

seconds=$1
shift
missing=$(kernel_packages)
if [ $# -eq 0 ]; then mapfile -t targets < <(cargo +nightly fuzz list); else targets=("$@"); fi
for target in "${targets[@]}"; do
	features=()
	if [ "$target" = tracer ]; then
		# Its crate needs the packages of the kernel engine.
		if [ -n "$missing" ]; then
			say "SKIPPED: the target tracer, because packages are missing: $missing"
			continue
		fi
		features=(--features kernel)
	fi
	mkdir -p "fuzz/corpus-found/$target"
	options=(-max_total_time="$seconds" -max_len=8192 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1)
	check "Fuzzing $target" cargo +nightly fuzz run "${features[@]}" "$target" \
		"fuzz/corpus-found/$target" "fuzz/corpus/$target" -- "${options[@]}"
done

conclude "the input that failed is in fuzz/artifacts/TARGET; cargo +nightly fuzz run TARGET FILE repeats it"
