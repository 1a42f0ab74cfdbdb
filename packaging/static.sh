#!/usr/bin/env bash
# Builds dist/mptcplab-kernel-VERSION-linux-x86_64: the program of the kernel engine without libraries. It runs on every
# Linux of this processor, with the commands `doctor`, `cc` and `run`, and the eBPF objects inside.
#
# The C library in it is glibc, from the system on which it is built, because libelf comes
# as an archive of the same system. The bytes depend on the sources, the compilers and the archives, and not on the place
# of the repository or the time; `make static-check` builds twice and compares.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TARGET=x86_64-unknown-linux-gnu
BUILD=target/static
ARCHIVES=$PWD/$BUILD/archives
PROGRAM=$DIST/mptcplab-kernel-$VERSION-linux-x86_64

main() {
	need_x86_64
	local missing
	missing=$(kernel_packages)
	if [ -n "$missing" ]; then fail "missing packages: $missing" "as root: apt-get install -y $missing"; fi
	archives
	say "compiling the program without libraries (some minutes)"
	compile
	mkdir -p "$DIST"
	cp "$BUILD/$TARGET/release/mptcplab-kernel" "$PROGRAM.new"
	mv -f "$PROGRAM.new" "$PROGRAM"
	if ldd "$PROGRAM" 2>/dev/null | grep -q '=>'; then fail "not static: $PROGRAM" "the libraries are: $(ldd "$PROGRAM")"; fi
	say "built: $PROGRAM ($(stat --format=%s "$PROGRAM" | numfmt --to=si)B)"
}

# libelf and zlib alone in a folder, so that the libbpf of the system is not taken for the one in the crate.
archives() {
	local name file
	rm -rf "$ARCHIVES" && mkdir -p "$ARCHIVES"
	for name in libelf libz; do
		file=$(cc -print-file-name="$name.a")
		if [ ! -f "$file" ]; then fail "not found: $name.a" "install the packages libelf-dev and zlib1g-dev"; fi
		cp "$file" "$ARCHIVES/"
	done
}

compile() {
	local cargo_home=${CARGO_HOME:-$HOME/.cargo}
	local prefixes="-ffile-prefix-map=$PWD=/mptcplab -ffile-prefix-map=$cargo_home=/cargo"
	env CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols \
		LIBBPF_SYS_LIBRARY_PATH="$ARCHIVES" CFLAGS="${CFLAGS:-} $prefixes" \
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Ctarget-feature=+crt-static \
			--remap-path-prefix=$PWD=/mptcplab --remap-path-prefix=$cargo_home=/cargo" \
		cargo build --quiet --release --locked --target "$TARGET" --target-dir "$BUILD" \
		--package mptcplab-kernel --features static
}

main
