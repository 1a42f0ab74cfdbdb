# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of the playground: where the parts of its build are.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

TARGET=wasm32-unknown-unknown
PLAYGROUND=build/playground
# Debian's Rust for the browser, which debian-rust.sh fetches.
RUST_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/mptcplab/wasm-rust
RUST_SUITE=trixie

# rust_for_wasm: puts the compiler's environment into RUST_ENV; fails where there is none.
RUST_ENV=()
rust_for_wasm() {
	local libraries
	libraries=$(rustc --print target-libdir --target "$TARGET" 2>/dev/null || true)
	if compgen -G "$libraries/libstd-*.rlib" >/dev/null; then return; fi
	if [ ! -x "$RUST_CACHE/$RUST_SUITE/rustc" ]; then return 1; fi
	RUST_ENV=(
		"RUSTC=$RUST_CACHE/$RUST_SUITE/rustc"
		"CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$RUST_CACHE/$RUST_SUITE/wasm-ld"
	)
}
