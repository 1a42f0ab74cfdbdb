# shellcheck shell=bash
# Sourced by the scripts that compile for packages, with another C library than that of this machine.
#
# zig compiles the C files and links. It comes from PyPI and brings C libraries: musl, for a program without libraries, and
# the symbols of each version of glibc, for what is to run on older systems than this one. libelf and zlib are compiled from
# the sources in the crate libbpf-sys, so that nothing of this system becomes part of a package.

# One place for the caches of cargo and zig, whatever the package.
BUILD=$PWD/target/packaging/cargo
export ZIG_GLOBAL_CACHE_DIR=$PWD/target/packaging/zig

# compile TARGET GLIBC ARGUMENT...: calls cargo-zigbuild for a target of Rust. GLIBC is the oldest version on which the
# result runs, or empty where TARGET has musl. The first argument is `zigbuild` (as cargo build), or `rustc` (as cargo rustc).
compile() {
	local target=$1 glibc=$2 command=$3 libraries flags
	shift 3
	libraries=$(libraries "$target" "$glibc")
	local cargo_home=${CARGO_HOME:-$HOME/.cargo}
	local prefixes="-ffile-prefix-map=$PWD=/mptcplab -ffile-prefix-map=$cargo_home=/cargo"
	flags="--remap-path-prefix=$PWD=/mptcplab --remap-path-prefix=$cargo_home=/cargo"
	PATH=$TOOLS/bin:$PATH env \
		CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols \
		"CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_RUSTFLAGS=$flags" \
		"CFLAGS_${target//-/_}=$prefixes" \
		LIBBPF_SYS_LIBRARY_PATH="$libraries" LIBBPF_SYS_EXTRA_CFLAGS="-I$libraries/include" \
		PYO3_BUILD_EXTENSION_MODULE=1 PYO3_NO_PYTHON=1 \
		cargo-zigbuild "$command" --quiet --release --locked --target "$target${glibc:+.$glibc}" --target-dir "$BUILD" "$@"
}

# libraries TARGET GLIBC: prints the folder of libelf.a, libz.a and their headers, which it makes where it is not there.
libraries() {
	local target=$1 glibc=$2 triple sources place
	sources=$(cargo metadata --format-version 1 --locked | "${PYTHON:-python3}" -c '
import json, pathlib, sys
print(*(pathlib.Path(one["manifest_path"]).parent for one in json.load(sys.stdin)["packages"] if one["name"] == "libbpf-sys"))')
	triple=${target/-unknown/}${glibc:+.$glibc}
	place=$BUILD/libraries/$(basename "$sources")/$triple
	if [ ! -d "$place" ]; then
		say "compiling libelf and zlib for $target"
		rm -rf "$place.new" && mkdir -p "$place.new/include"
		archive libelf "$place.new" "$sources" "$triple" "$sources"/elfutils/libelf/*.c
		archive libz "$place.new" "$sources" "$triple" "$sources"/zlib/*.c
		cp "$sources"/elfutils/libelf/{libelf,gelf,nlist,elf}.h "$sources"/zlib/{zlib,zconf}.h "$place.new/include"
		mv "$place.new" "$place"
	fi
	printf '%s' "$place"
}

# archive NAME PLACE SOURCES TRIPLE FILE...: compiles the files and puts them into PLACE/NAME.a, with the same bytes each time.
archive() {
	local name=$1 place=$2 sources=$3 triple=$4 objects
	shift 4
	objects=$place/$name
	mkdir -p "$objects"
	# What elfutils' configure would find on each of these systems.
	cat >"$objects/config.h" <<-CONFIG
		#define _GNU_SOURCE 1
		#define HAVE_CONFIG_H 1
		#define HAVE_DECL_MEMRCHR 1
		#define HAVE_DECL_POWEROF2 1
		#define HAVE_DECL_REALLOCARRAY 1
		#define HAVE_ERR_H 1
		#define HAVE_FALLTHROUGH 1
		#define HAVE_MREMAP 1
		#define HAVE_VISIBILITY 1
		#define USE_ZLIB 1
		#include <eu-config.h>
	CONFIG
	[ "$name" = libelf ] || printf '#define HAVE_UNISTD_H 1\n#define HAVE_STDARG_H 1\n' >"$objects/config.h"
	printf '%s\n' "$@" | (
		cd "$objects"
		xargs -P "$(nproc)" -I FILE "$TOOLS/bin/python" -m ziglang cc -target "$triple" -O2 -g0 -fPIC -w -DNDEBUG \
			-include config.h -I. -I"$sources/elfutils/lib" -I"$sources/elfutils/libelf" -I"$sources/zlib" \
			"-ffile-prefix-map=$sources=/libbpf-sys" -c FILE
	)
	"$TOOLS/bin/python" -m ziglang ar crsD "$place/$name.a" "$objects"/*.o
	rm -rf "$objects"
}

# requirements TARGET: says what is missing to compile for it.
requirements() {
	local missing=()
	need_x86_64
	if ! "${MPTCPLAB_CLANG:-clang}" --version >/dev/null 2>&1; then missing+=(clang); fi
	has_header bpf/bpf_helpers.h || missing+=(libbpf-dev)
	have pkg-config || missing+=(pkg-config)
	have make || missing+=(make)
	if [ ${#missing[@]} -gt 0 ]; then fail "missing packages: ${missing[*]}" "as root: apt-get install -y ${missing[*]}"; fi
	if ! compgen -G "$(rustc --print target-libdir --target "$1")/libstd-*.rlib" >/dev/null; then
		fail "this Rust does not compile for $1: it has no standard library for it" "rustup target add $1"
	fi
	tools
}

# notices OUT program|wheel TARGET CRATE...: writes the notices of what was compiled.
notices() {
	local out=$1 kind=$2 target=$3 zig
	shift 3
	zig=$("$TOOLS/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')
	"${PYTHON:-python3}" packaging/notices.py "$out" "$kind" "$target" "$zig" "$@"
}
