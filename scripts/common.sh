# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts: where we are, and how they speak. What they say goes to stderr.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=$PWD/.venv
BIN=$VENV/bin

# A file in which everything that is skipped is noted; only a whole test run has one.
SKIPS=

say() {
	printf '%s\n' "-- $*" >&2
	if [ -n "$SKIPS" ] && [[ $1 == SKIPPED* ]]; then printf '%s\n' "-- $*" >>"$SKIPS"; fi
}
have() { command -v "$1" >/dev/null 2>&1; }

# fail MESSAGE [HINT]: the form of every error message of the project, and its exit code.
fail() {
	printf 'error: %s\n' "$1" >&2
	if [ $# -gt 1 ]; then printf '\nhint: %s\n' "$2" >&2; fi
	exit 2
}

# debian_mirror: the mirror of Debian that this system's apt uses, or nothing.
debian_mirror() {
	# shellcheck disable=SC2016 # apt replaces these.
	apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)|$(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
		awk -F '|' '$1 == "Debian" && $3 == "main" && $2 !~ /security/ && !found { print $2; found = 1 }'
}

# --- The kernel engine -----------------------------------------------------------------------------
# It needs more than the simulator: a compiler for eBPF, and the libraries that load what it makes.

# Crates that do not build without those.
KERNEL_CRATES=(mptcplab-bpf mptcplab-doctor mptcplab-kernel)

# kernel_packages: the Debian packages that are missing to build the kernel engine, separated by spaces.
kernel_packages() {
	local missing=()
	if ! "${MPTCPLAB_CLANG:-clang}" --version >/dev/null 2>&1; then missing+=(clang); fi
	has_header bpf/bpf_helpers.h || missing+=(libbpf-dev)
	has_header gelf.h || missing+=(libelf-dev)
	has_header zlib.h || missing+=(zlib1g-dev)
	have pkg-config || missing+=(pkg-config)
	have make || missing+=(make)
	printf '%s' "${missing[*]}"
}

has_header() { printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | cc -E -o /dev/null - 2>/dev/null; }

# without_kernel: says loudly that the kernel engine is left out, and puts the options for cargo into WITHOUT_KERNEL. Where it
# is not, WITH_KERNEL has those for what needs its packages.
WITHOUT_KERNEL=() WITH_KERNEL=()
without_kernel() {
	local missing
	missing=$(kernel_packages)
	if [ -z "$missing" ]; then
		WITH_KERNEL=(--features mptcplab-fuzz/kernel)
		return
	fi
	say "SKIPPED: the kernel engine (${KERNEL_CRATES[*]}), because packages are missing: $missing"
	WITHOUT_KERNEL=("${KERNEL_CRATES[@]/#/--exclude=}")
}

# clippy: lints of Rust, after `without_kernel`.
clippy() {
	cargo clippy --workspace "${WITHOUT_KERNEL[@]}" "${WITH_KERNEL[@]}" --all-targets --locked --quiet -- -D warnings
}

FAILED=()

# check NAME COMMAND...: runs a check, says how long it took (TOOK seconds if that is set), and remembers its name if it fails.
check() {
	local name=$1 start=$SECONDS code=0
	shift
	printf '\n== %s ==\n' "$name" >&2
	recorded "$@" || code=$?
	local took=${TOOK:-$((SECONDS - start))}
	if [ "$code" = 0 ]; then
		say "$name: passed in $took s"
	else
		say "$name: FAILED after $took s, with $(free_disk) free in $PWD and ${TMPDIR:-/tmp}"
		FAILED+=("$name")
	fi
}

BESIDE=() BESIDE_PIDS=() BESIDE_FOLDER=

# beside NAME COMMAND...: begins a check that leaves the processors to the others, for `rejoin`.
beside() {
	local name=$1
	shift
	if [ -z "$BESIDE_FOLDER" ]; then BESIDE_FOLDER=$(mktemp -d); fi
	# A process group of its own, with which all that it starts can be ended.
	set -m
	timed "$BESIDE_FOLDER/${#BESIDE[@]}" "$@" </dev/null >"$BESIDE_FOLDER/${#BESIDE[@]}" 2>&1 &
	set +m
	BESIDE_PIDS+=($!)
	BESIDE+=("$name")
}

# timed OUTPUT COMMAND...: runs a command with the lowest priority, and notes beside its output how many seconds it took. Ends
# the shell that it runs in.
timed() {
	local output=$1
	shift
	# shellcheck disable=SC2064 # The time and the name of now.
	trap "echo \$((SECONDS - $SECONDS)) >'$output.seconds'" EXIT
	renice -n 19 "$BASHPID" >/dev/null
	"$@"
	exit
}

# rejoin: waits for all checks that were begun with `beside`, and shows their output.
rejoin() {
	local i code
	for i in "${!BESIDE[@]}"; do
		code=0
		wait "${BESIDE_PIDS[i]}" || code=$?
		TOOK=$(cat "$BESIDE_FOLDER/$i.seconds" 2>/dev/null || echo "?") check "${BESIDE[i]}, meanwhile" ended "$BESIDE_FOLDER/$i" "$code"
	done
	rm -rf "$BESIDE_FOLDER"
	BESIDE=() BESIDE_PIDS=() BESIDE_FOLDER=
}

# ended OUTPUT CODE: what a check that has ended said.
ended() {
	cat "$1"
	return "$2"
}

# stop_beside: ends what still runs beside a script that ends early.
stop_beside() {
	if [ ${#BESIDE_PIDS[@]} -gt 0 ]; then kill -- "${BESIDE_PIDS[@]/#/-}" 2>/dev/null || true; fi
	if [ -n "$BESIDE_FOLDER" ]; then rm -rf "$BESIDE_FOLDER"; fi
}

# recorded COMMAND...: runs a command, and notes what its output says was skipped.
recorded() {
	if [ -z "$SKIPS" ]; then "$@"; else "$@" 2>&1 | "$BIN/python" scripts/skips.py record "$SKIPS"; fi
}

# free_disk: what is free where things are built, and where tests keep their files.
free_disk() { df --output=avail --block-size=M . "${TMPDIR:-/tmp}" | tail -n 2 | tr -d ' ' | paste -sd '/'; }

# conclude [HINT]: exits with an error that names the checks that failed, if any did.
conclude() {
	if [ ${#FAILED[@]} -gt 0 ]; then
		local names
		names=$(printf ', %s' "${FAILED[@]}")
		printf '\n' >&2
		fail "failed: ${names:2}" "$@"
	fi
}
