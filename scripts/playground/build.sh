#!/usr/bin/env bash
# Builds the playground, one HTML file that needs no server: build/playground/index.html.
#
# Needed are a Rust that compiles for WebAssembly, clang for the algorithms, and Node.js with npm for the page. What is
# missing is named with the way to get it, and nothing else of mptcplab needs it.
# shellcheck source=scripts/playground/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

main() {
	if ! rust_for_wasm; then
		fail "this Rust does not compile for WebAssembly: the target $TARGET is missing" \
			"with rustup:           rustup target add $TARGET
      on Debian, without it: scripts/playground/debian-rust.sh (200 MB from Debian's archive, below $RUST_CACHE)"
	fi
	if ! clang --print-targets 2>/dev/null | grep -q wasm32; then
		fail "clang is missing, or cannot compile for WebAssembly" "install the package clang"
	fi
	if ! have node || ! have npm; then
		fail "Node.js with npm is missing" "install the packages nodejs and npm (Node.js 18 or newer)"
	fi
	say "compiling the simulator for WebAssembly (the first time takes some minutes)"
	# Without the debug information of other builds, and with what every browser of the last years has.
	env "${RUST_ENV[@]}" CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols \
		CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-Ctarget-feature=+bulk-memory,+nontrapping-fptoint,+sign-ext" \
		cargo build --quiet --release --locked --target "$TARGET" --target-dir target/wasm -p mptcplab-wasm
	say "making the page"
	(
		cd playground
		if ! cmp -s package-lock.json node_modules/.for-lock; then
			npm ci --ignore-scripts --silent
			cp package-lock.json node_modules/.for-lock
		fi
		node build.mjs "../target/wasm/$TARGET/release/mptcplab_wasm.wasm" "../$PLAYGROUND"
	)
	say "open $PLAYGROUND/index.html in a browser; it needs no server"
}

main
