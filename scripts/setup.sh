#!/usr/bin/env bash
# Makes .venv with the package and its compiled engines, and says what it does.
#
#   scripts/setup.sh run    what `mptcplab run` needs
#   scripts/setup.sh dev    the same, and what the tests and checks need
#
# Debian packages are installed by root only; everybody else gets the command to type. Rust is never
# installed. A second call with nothing changed takes a moment. The kernel engine needs more packages than the
# simulator; where they are missing, the simulator is built all the same. With ENGINES=sim in the environment,
# the simulator is all that is built.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MODE=${1:-run}
PYTHON=${PYTHON:-python3}
ENGINES=${ENGINES:-sim,kernel}
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
	debian_packages
	check_python
	check_rust
	python_environment
	engine
	walk
	kernel_engine
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

# What pyproject.toml asks for; maturin comes along because it builds the engine.
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

# --- The simulator ---------------------------------------------------------------------------------

engine() {
	local fingerprint stamp=$VENV/.stamp-engine
	fingerprint=$(engine_sources | sha256sum)
	if ! changed "$stamp" "$fingerprint" && compgen -G 'python/mptcplab/_core*.so' >/dev/null; then return; fi
	say "compiling the simulator (the first time takes some minutes)"
	# On a terminal cargo shows what it compiles. Another active environment would get the package instead.
	local quiet=(--quiet)
	if [ -t 2 ]; then quiet=(); fi
	if ! env -u CONDA_PREFIX VIRTUAL_ENV="$VENV" PIP_QUIET=1 "$BIN/maturin" develop --release "${quiet[@]}"; then
		fail "the simulator does not compile" "the cause is above, where it says error: and names a source file"
	fi
	printf '%s\n' "$fingerprint" >"$stamp"
}

engine_sources() {
	sources crates/mptcplab-py "${SHARED[@]}" algorithms pyproject.toml
}

# Crates that both engines are made of.
SHARED=(crates/mptcplab-build crates/mptcplab-cc crates/mptcplab-model crates/mptcplab-scenario
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

kernel_engine() {
	if [ "$ENGINES" = sim ]; then
		if ! kernel_engine_is_current; then
			no_kernel_engine "setup left it out (ENGINES=sim)" "make setup"
		fi
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
		no_kernel_engine "missing packages: $missing" "as root: apt-get install -y $missing, then: make setup"
		return
	fi
	compile_kernel_engine
}

compile_kernel_engine() {
	if kernel_engine_is_current; then return; fi
	local fingerprint
	fingerprint=$(kernel_fingerprint)
	say "compiling the kernel engine (the first time takes some minutes)"
	# An earlier reason is none while this goes on.
	rm -f "$KERNEL_REASON"
	local quiet=(--quiet)
	if [ -t 2 ]; then quiet=(); fi
	if ! cargo build --release --locked "${quiet[@]}" -p mptcplab-kernel; then
		if [ "$MODE" = dev ]; then
			fail "the kernel engine does not compile" "the cause is above, where it says error: and names a source file"
		fi
		no_kernel_engine "it does not compile on this machine" "make setup, which shows the cause where it says error:"
		return
	fi
	mkdir -p "$(dirname "$KERNEL_PROGRAM")"
	# A program that runs cannot be overwritten, but its name can be given to another.
	cp "${CARGO_TARGET_DIR:-target}/release/mptcplab-kernel" "$KERNEL_PROGRAM.new"
	mv -f "$KERNEL_PROGRAM.new" "$KERNEL_PROGRAM"
	printf '%s\n' "$fingerprint" >"$KERNEL_STAMP"
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
