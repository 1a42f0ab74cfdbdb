#!/usr/bin/env bash
# Builds dist/mptcplab-kernel-VERSION-linux-ARCH: the program of the kernel engine without libraries. It runs on every
# Linux of this processor, with the commands `doctor`, `cc` and `run`, and the eBPF objects inside. The file .copyright
# beside it has the notices that whoever distributes it has to distribute with it.
#
# The C library in it is musl. Nothing of the system becomes part of the program but what its compilers make of the
# sources; `make static-check` builds twice and compares the bytes.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=packaging/compile.sh
source packaging/compile.sh

TARGET=$ARCH-unknown-linux-musl

main() {
	requirements "$TARGET"
	say "compiling the program without libraries (some minutes)"
	# zig links a program without libraries for one address unless asked.
	compile "$TARGET" "" rustc --package mptcplab-kernel --features static -- -Clink-arg=-pie
	mkdir -p "$DIST"
	cp "$BUILD/$TARGET/release/mptcplab-kernel" "$PROGRAM.new"
	mv -f "$PROGRAM.new" "$PROGRAM"
	if readelf --dynamic --wide "$PROGRAM" | grep NEEDED >&2; then
		fail "not static: $PROGRAM" "the libraries that it needs are above"
	fi
	if ! readelf --file-header "$PROGRAM" | grep -q 'Type: *DYN'; then
		fail "not for any address: $PROGRAM" "the linker did not make a position-independent program"
	fi
	notices "$NOTICES" program "$TARGET" mptcplab-kernel
	say "built: $PROGRAM ($(size "$PROGRAM"))"
}

main
