#!/usr/bin/env bash
# Fetches Debian's Rust for WebAssembly where the installed Rust has no such target and rustup cannot add it.
#
# The packages of Debian 13 are downloaded and verified by this system's apt, with sources, lists and caches of its own, and
# unpacked below ~/.cache/mptcplab/wasm-rust. Their programs run on any Debian of this processor, because they bring their own C
# library. Nothing is installed and root is not needed.
# shellcheck source=scripts/playground/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The compiler with the libraries for this machine (build scripts) and for the browser, the linker, and what they load.
PACKAGES=(rustc libstd-rust-dev libstd-rust-dev-wasm32 lld-19
	libc6 libgcc-s1 libstdc++6 zlib1g libzstd1 libxml2 liblzma5 libedit2 libffi8 libtinfo6 libbsd0 libmd0 libz3-4 libgmp10 libllvm19)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

main() {
	local done=$RUST_CACHE/$RUST_SUITE
	if [ -x "$done/rustc" ]; then
		say "Debian's Rust for WebAssembly is there: $done"
		return
	fi
	if ! have apt-get || [ ! -f "$KEYRING" ] || [ "$(dpkg --print-architecture)" != amd64 ]; then
		fail "Debian's Rust comes through Debian's apt, on amd64" "with rustup: rustup target add $TARGET"
	fi
	mkdir -p "$RUST_CACHE"
	WORK=$(mktemp -d "$RUST_CACHE/fetching.XXXXXX")
	trap 'rm -rf "$WORK"' EXIT
	sources
	say "fetching Debian's Rust for WebAssembly (200 MB)"
	fetch
	wrappers "$WORK/tree" "$done"
	rm -rf "$done"
	mv "$WORK/tree" "$done"
	"$done/rustc" --version
}

# Sources of our own: the suite, from the mirror that this system uses.
sources() {
	local mirror
	mirror=$(debian_mirror)
	if [ -z "$mirror" ]; then
		fail "this system's apt has no mirror of Debian" "on other systems, with rustup: rustup target add $TARGET"
	fi
	mkdir -p "$WORK"/state/lists/partial "$WORK"/cache/archives/partial "$WORK"/debs
	: >"$WORK/status"
	printf 'deb [arch=amd64 signed-by=%s] %s %s main\n' "$KEYRING" "$mirror" "$RUST_SUITE" >"$WORK/sources.list"
	cat >"$WORK/apt.conf" <<-CONF
		Dir::Etc::sourcelist "$WORK/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$WORK/state";
		Dir::State::status "$WORK/status";
		Dir::Cache "$WORK/cache";
		APT::Architecture "amd64";
		Acquire::Languages "none";
		Acquire::Retries "3";
		APT::Sandbox::User "";
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
	CONF
}

fetch() {
	local library deb
	apt_here apt-get -o APT::Update::Error-Mode=any update
	# The compiler's own library has the compiler's version in its name.
	library=$(apt-cache -c "$WORK/apt.conf" depends libstd-rust-dev | sed -n 's/.*Depends: \(libstd-rust-[0-9.]*\)$/\1/p')
	(cd "$WORK/debs" && apt_here apt-get download "${PACKAGES[@]}" "$library")
	for deb in "$WORK"/debs/*.deb; do
		# Only one of the targets of libstd-rust-dev-wasm32 is needed.
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$(tree)" --exclude='*/rustlib/wasm32-wasip*' --exclude='./usr/share/*'
	done
}

tree() { mkdir -p "$WORK/tree" && printf '%s' "$WORK/tree"; }

# apt_here COMMAND...: runs apt with our own configuration; shows its output if it fails.
apt_here() {
	local program=$1
	shift
	if ! "$program" -c "$WORK/apt.conf" "$@" >"$WORK/log" 2>&1; then
		tail -n 20 "$WORK/log" >&2
		fail "apt failed: $program $*" "the last lines of its output are above"
	fi
}

# wrappers TREE PLACE: commands that start the programs with the C library of the tree, once it is at its place.
wrappers() {
	local tree=$1 libraries="$2/usr/lib/x86_64-linux-gnu"
	local run="exec '$libraries/ld-linux-x86-64.so.2' --library-path '$libraries'"
	printf "#!/bin/sh\n%s '%s' --sysroot '%s' \"\$@\"\n" "$run" "$2/usr/bin/rustc" "$2/usr" >"$tree/rustc"
	printf "#!/bin/sh\n%s '%s' \"\$@\"\n" "$run" "$2/usr/lib/llvm-19/bin/wasm-ld" >"$tree/wasm-ld"
	chmod +x "$tree/rustc" "$tree/wasm-ld"
}

main
