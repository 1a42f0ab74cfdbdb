#!/usr/bin/env bash
# Makes .venv with the package and its compiled engines, and says what it does.
#
#   scripts/setup.sh run    what `mptcplab run` needs
#   scripts/setup.sh dev    the same, and what the tests and checks need
#
# Debian packages are installed by root only; everybody else gets the command to type. Rust is never
# installed. A second call with nothing changed takes a moment. The kernel engine needs more packages than the
# simulator; where they are missing, the simulator is built all the same. With ENGINES=sim in the environment,
# the simulator is all that is built; with PROFILE=demo it is compiled in less time and runs more slowly, unless
# there is one that was compiled as usual.
#
# What takes time runs side by side: cargo compiles both engines in one call, so that what they share is compiled once and
# their link-time optimisation, which uses one core each, runs at the same time; pip installs meanwhile.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MODE=${1:-run}
PYTHON=${PYTHON:-python3}
ENGINES=${ENGINES:-sim,kernel}
PROFILE=${PROFILE:-release}
MIN_RUST=1.85
MIN_PYTHON=3.11
# Where the package looks for the kernel engine's program, and for the reason why there is none and what to do.
KERNEL_PROGRAM=python/mptcplab/_bin/mptcplab-kernel
KERNEL_REASON=python/mptcplab/_bin/not-built.txt
KERNEL_STAMP=$VENV/.stamp-kernel

main() {
	case $MODE in
	run | dev) ;;
	*) fail "unknown mode: $MODE" "write scripts/setup.sh run, or scripts/setup.sh dev" ;;
	esac
	case $ENGINES in
	sim | sim,kernel) ;;
	*) fail "unknown engines: ENGINES=$ENGINES" "make setup ENGINES=sim, or make setup for the kernel engine as well" ;;
	esac
	case $PROFILE in
	release) ;;
	demo) if [ "$ENGINES" != sim ]; then fail "PROFILE=demo is for the simulator only" "write ENGINES=sim beside it"; fi ;;
	*) fail "unknown profile: PROFILE=$PROFILE" "leave it out; make demo sets PROFILE=demo" ;;
	esac
	debian_packages
	check_python
	check_rust
	kernel_requirements
	start_compiling
	python_environment
	browser
	oldest_rust
	finish_compiling
	install_engine
	install_package
	install_kernel_engine
	walk
	drafts
}

# --- Debian packages -------------------------------------------------------------------------------

debian_packages() {
	local missing=()
	if ! compiles_c; then missing+=(gcc libc6-dev); fi
	if ! have "$PYTHON"; then missing+=(python3); fi
	if ! has_venv; then missing+=(python3-venv); fi
	if ! have git; then missing+=(git); fi
	# The instruction gate of the benchmarks counts with callgrind.
	if [ "$MODE" = dev ] && ! have valgrind; then missing+=(valgrind); fi
	if [ ${#missing[@]} -eq 0 ]; then return; fi

	local install="apt-get install -y ${missing[*]}"
	if ! have apt-get; then
		fail "missing on this system: ${missing[*]} (names of Debian packages)" \
			"install them with the system's package manager, then try again"
	fi
	if [ "$(id -u)" -ne 0 ]; then
		fail "missing Debian packages: ${missing[*]}" "sudo $install"
	fi
	if ! install_packages "${missing[@]}"; then
		fail "apt-get could not install: ${missing[*]}" "the last lines of its output are above"
	fi
}

# install_packages PACKAGE...: as root; shows the end of what apt-get says if it fails.
install_packages() {
	say "installing Debian packages: $*"
	export DEBIAN_FRONTEND=noninteractive
	local log result=0
	log=$(mktemp)
	if ! { apt-get update && apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		result=1
	fi
	rm -f "$log"
	return $result
}

# A compiler without libc's headers is of no use, so this compiles something.
compiles_c() {
	have cc && printf '#include <stdint.h>\nint main(void) { return 0; }\n' | cc -x c -o /dev/null - 2>/dev/null
}

has_venv() { have "$PYTHON" && "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; }

# --- Toolchains ------------------------------------------------------------------------------------

# at_least HAVE WANT: compares versions.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

check_python() {
	local version
	version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	if ! at_least "$version" "$MIN_PYTHON"; then
		fail "Python $version is too old: mptcplab needs $MIN_PYTHON or newer" \
			"name a newer one, for example: make PYTHON=python3.12 setup"
	fi
}

check_rust() {
	local version get
	get="install a current Rust with rustup, then try again:
        Ubuntu 24.04, Debian 13 and newer:  apt-get install rustup && rustup default stable
        Debian 12 (its rustc is too old):   follow the instructions of rustup.rs
      and check with: cargo --version (at least $MIN_RUST)"
	if ! have cargo; then fail "Rust is missing: no cargo in PATH" "$get"; fi
	if ! version=$(cargo --version 2>/dev/null | awk '{ print $2 }') || [ -z "$version" ]; then
		fail "cargo is there but does not run: $(command -v cargo)" "$get"
	fi
	if ! at_least "$version" "$MIN_RUST"; then
		fail "Rust $version is too old: mptcplab needs $MIN_RUST or newer" "$get"
	fi
	if [ "$MODE" = dev ] && ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
		fail "rustfmt or clippy is missing" "rustup component add rustfmt clippy"
	fi
}

# --- Python environment ----------------------------------------------------------------------------

# changed STAMP FINGERPRINT: whether STAMP does not hold FINGERPRINT.
changed() { [ "$(cat "$1" 2>/dev/null)" != "$2" ]; }

python_environment() {
	local wanted fingerprint stamp=$VENV/.stamp-$MODE
	wanted=$("$PYTHON" -c 'import sys; print(sys.version, sys.base_prefix)')
	fingerprint=$(printf '%s\n' "$wanted" "$PWD" | cat - pyproject.toml | sha256sum)
	if [ ! -x "$BIN/python" ] || changed "$VENV/.stamp-python" "$wanted $PWD"; then
		say "making a Python environment in .venv"
		"$PYTHON" -m venv --clear "$VENV"
		printf '%s\n' "$wanted $PWD" >"$VENV/.stamp-python"
	fi
	if ! changed "$stamp" "$fingerprint"; then return; fi
	say "installing Python packages into .venv"
	requirements "$MODE" | "$BIN/python" -m pip install --quiet --disable-pip-version-check -r /dev/stdin
	printf '%s\n' "$fingerprint" >"$stamp"
}

# What pyproject.toml asks for; the build backend comes along because it writes the package's metadata.
requirements() {
	"$PYTHON" - "$1" <<'PYTHON'
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
extra = project["optional-dependencies"]["dev"] if sys.argv[1] == "dev" else []
print("\n".join(settings["build-system"]["requires"] + project["dependencies"] + extra))
PYTHON
}

# The package as .venv sees it: the files in python/, without a copy. Only its metadata are installed.
install_package() {
	local stamp=$VENV/.stamp-package fingerprint
	fingerprint=$(cat pyproject.toml Cargo.toml scripts/editable.py | sha256sum)
	if ! changed "$stamp" "$fingerprint"; then return; fi
	"$BIN/python" scripts/editable.py
	printf '%s\n' "$fingerprint" >"$stamp"
}

# --- Compiling -------------------------------------------------------------------------------------

# Crates that have to be compiled, the process that does it, and when it began.
PACKAGES=()
COMPILER=
COMPILER_START=0

# Starts cargo in the background for whatever is not up to date.
start_compiling() {
	local names=
	ENGINE_FINGERPRINT=$(engine_fingerprint "$PROFILE")
	if ! engine_is_current; then
		PACKAGES+=(mptcplab-py)
		names="the simulator"
	fi
	if [ -z "$KERNEL_MISSING" ] && ! kernel_engine_is_current; then
		KERNEL_FINGERPRINT=$(kernel_fingerprint)
		PACKAGES+=(mptcplab-kernel)
		names+="${names:+ and }the kernel engine"
		# An earlier reason is none while this goes on.
		rm -f "$KERNEL_REASON"
	fi
	if [ ${#PACKAGES[@]} -eq 0 ]; then return; fi
	say "compiling $names (the first time takes some minutes)"
	COMPILER_START=$SECONDS
	compile "${PACKAGES[@]}" &
	COMPILER=$!
	trap 'kill "$COMPILER" 2>/dev/null || true' EXIT
}

# compile PACKAGE...: becomes cargo, which shows what it compiles if this is a terminal. The extension is for every Python
# from the oldest one on (abi3), so that its build needs to know none.
compile() {
	local quiet=(--quiet)
	if [ -t 2 ]; then quiet=(); fi
	export PYO3_BUILD_EXTENSION_MODULE=1 PYO3_NO_PYTHON=1
	exec cargo build --profile "$PROFILE" --locked --keep-going "${quiet[@]}" "${@/#/--package=}"
}

# Waits for cargo. If it fails, each engine is compiled again by itself, so that one can be used without the other.
finish_compiling() {
	if [ -z "$COMPILER" ]; then return; fi
	local result=0
	while kill -0 "$COMPILER" 2>/dev/null; do
		sleep 1
		still_compiling
	done
	wait "$COMPILER" || result=$?
	trap - EXIT
	if [ $result -eq 0 ]; then return; fi
	if [ ${#PACKAGES[@]} -gt 1 ]; then say "compiling each engine by itself, to see which of them fails"; fi
	local package
	for package in "${PACKAGES[@]}"; do
		(compile "$package") || FAILED_PACKAGES+=" $package "
	done
}

# Where cargo shows nothing, a line every half minute says that it is still at work.
still_compiling() {
	local elapsed=$((SECONDS - COMPILER_START))
	if [ ! -t 2 ] && [ $elapsed -ge $((LAST_WORD + 30)) ]; then
		LAST_WORD=$elapsed
		say "still compiling after $elapsed s"
	fi
}
LAST_WORD=0
FAILED_PACKAGES=

compiled() { [[ " ${PACKAGES[*]} " == *" $1 "* && $FAILED_PACKAGES != *" $1 "* ]]; }
does_not_compile() { [[ $FAILED_PACKAGES == *" $1 "* ]]; }

# put FILE PLACE: a program or library that is in use cannot be overwritten, but its name can be given to another.
put() {
	mkdir -p "$(dirname "$2")"
	cp "${CARGO_TARGET_DIR:-target}/$PROFILE/$1" "$2.new"
	mv -f "$2.new" "$2"
}

# --- The simulator ---------------------------------------------------------------------------------

ENGINE_LIBRARY=python/mptcplab/_core.abi3.so
ENGINE_STAMP=$VENV/.stamp-engine
ENGINE_FINGERPRINT=

install_engine() {
	if does_not_compile mptcplab-py; then
		fail "the simulator does not compile" "the cause is above, where it says error: and names a source file"
	fi
	if ! compiled mptcplab-py; then return; fi
	put lib_core.so "$ENGINE_LIBRARY"
	printf '%s\n' "$ENGINE_FINGERPRINT" >"$ENGINE_STAMP"
	if [ "$PROFILE" = demo ]; then
		say "the simulator is compiled for a quick start; make setup compiles a faster one"
	fi
}

# Whether what is there is what was asked for; what `make setup` compiles serves the demo as well.
engine_is_current() {
	[ -e "$ENGINE_LIBRARY" ] || return 1
	! changed "$ENGINE_STAMP" "$ENGINE_FINGERPRINT" || ! changed "$ENGINE_STAMP" "$(engine_fingerprint release)"
}

engine_fingerprint() {
	{
		printf '%s\n' "$1"
		engine_sources
	} | sha256sum
}

engine_sources() {
	sources crates/mptcplab-py "${SHARED[@]}" algorithms
}

# Crates that both engines are made of.
SHARED=(crates/mptcplab-build crates/mptcplab-cc crates/mptcplab-prefetch crates/mptcplab-model crates/mptcplab-scenario
	crates/mptcplab-trace crates/mptcplab-sim)

# sources PATH...: what decides whether these have to be compiled again.
sources() {
	find "$@" Cargo.toml Cargo.lock -type f -not -path '*/tests/*' -not -path '*/benches/*' -printf '%p %T@ %s\n' | sort
	cargo --version
}

# The walk that two scenarios of papers/zuhairi2022 read: its seed determines every byte, so it is not stored.
walk() {
	local out=papers/zuhairi2022/walk stamp=$VENV/.stamp-walk
	local options="--reps 15 --seed 1 --duration-s 36 --phase-s 40 --phase-step-s 4"
	if ! changed "$stamp" "$options" && [ -f "$out/wifi-14.csv" ]; then return; fi
	# shellcheck disable=SC2086 # The options are several words.
	"$BIN/mptcplab" walk --out "$out" $options >/dev/null
	printf '%s\n' "$options" >"$stamp"
}

# --- The kernel engine -----------------------------------------------------------------------------

KERNEL_FINGERPRINT=
# Why the kernel engine is not to be compiled, in a line, and what to do about it in another; empty if it is.
KERNEL_MISSING=

# Says before anything is compiled whether the kernel engine will be part of it, and installs what it needs.
kernel_requirements() {
	if [ "$ENGINES" = sim ]; then
		KERNEL_MISSING="only the simulator was asked for"$'\n'"make setup"
		return
	fi
	local missing
	missing=$(kernel_packages)
	if [ -n "$missing" ] && have apt-get && [ "$(id -u)" -eq 0 ] && [ -z "${MPTCPLAB_CLANG:-}" ]; then
		# Words of a list of our own.
		# shellcheck disable=SC2086
		install_packages $missing || say "apt-get could not install: $missing"
		missing=$(kernel_packages)
	fi
	if [ -n "$missing" ]; then
		KERNEL_MISSING="missing packages: $missing"$'\n'"as root: apt-get install -y $missing, then: make setup"
	fi
}

install_kernel_engine() {
	if [ -n "$KERNEL_MISSING" ]; then
		if [ "$ENGINES" = sim ] && kernel_engine_is_current; then return; fi
		no_kernel_engine "${KERNEL_MISSING%%$'\n'*}" "${KERNEL_MISSING#*$'\n'}"
	elif does_not_compile mptcplab-kernel; then
		if [ "$MODE" = dev ]; then
			fail "the kernel engine does not compile" "the cause is above, where it says error: and names a source file"
		fi
		no_kernel_engine "it does not compile on this machine" "make setup, which shows the cause where it says error:"
	elif compiled mptcplab-kernel; then
		put mptcplab-kernel "$KERNEL_PROGRAM"
		printf '%s\n' "$KERNEL_FINGERPRINT" >"$KERNEL_STAMP"
	fi
}

kernel_engine_is_current() {
	[ -x "$KERNEL_PROGRAM" ] && ! changed "$KERNEL_STAMP" "$(kernel_fingerprint)"
}

kernel_fingerprint() {
	(kernel_sources && "${MPTCPLAB_CLANG:-clang}" --version 2>&1) | sha256sum
}

kernel_sources() {
	sources crates/mptcplab-net crates/mptcplab-emulator crates/mptcplab-bpf crates/mptcplab-doctor crates/mptcplab-kernel \
		"${SHARED[@]}" algorithms
}

# no_kernel_engine REASON REMEDY: what that costs, here and whenever somebody asks for the engine.
no_kernel_engine() {
	mkdir -p "$(dirname "$KERNEL_REASON")"
	rm -f "$KERNEL_PROGRAM" "$KERNEL_STAMP"
	printf '%s\n' "$1" "$2" >"$KERNEL_REASON"
	say "the kernel engine is not built: $1"
	say "    the simulator works; --engine kernel, mptcplab doctor and mptcplab cc do not"
	say "    to build it: $2"
}

# --- Browser ---------------------------------------------------------------------------------------

# Tests of pages run in chromium, and are skipped without it.
browser() {
	if [ "$MODE" != dev ] || have chromium; then return; fi
	local how="as root: apt-get install -y --no-install-recommends chromium"
	if have apt-get && [ "$(id -u)" -eq 0 ] && install_packages chromium && have chromium; then return; fi
	say "SKIPPED: tests of pages in a browser, because there is no chromium ($how)"
}

# --- The oldest Rust -------------------------------------------------------------------------------

# `make lint` compiles everything with it (scripts/oldest-rust.sh): a distribution's Rust may be as old.
oldest_rust() {
	if [ "$MODE" != dev ] || ! have rustup || rustup run "$MIN_RUST" rustc --version >/dev/null 2>&1; then return; fi
	say "installing Rust $MIN_RUST beside this one, with which everything has to compile"
	if ! rustup toolchain install "$MIN_RUST" --profile minimal >/dev/null 2>&1; then
		say "SKIPPED: compiling with Rust $MIN_RUST, because rustup could not install it"
	fi
}

# --- Drafts ----------------------------------------------------------------------------------------

# Algorithms whose header comment is not complete. This is said on every call, also where nothing was compiled.
drafts() {
	"$BIN/python" - <<'PYTHON' >&2
import mptcplab

for algorithm in mptcplab.algorithms():
    if algorithm["incomplete"]:
        print(f"-- WARNING: algorithms/{algorithm['name']}.c: the header comment is not complete, and the tests fail")
        print(f"--     {algorithm['incomplete']}")
PYTHON
}

main
