# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts: where we are, and how they speak. What they say goes to stderr.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=$PWD/.venv
BIN=$VENV/bin

say() { printf '%s\n' "-- $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# fail MESSAGE [HINT]: the form of every error message of the project, and its exit code.
fail() {
	printf 'error: %s\n' "$1" >&2
	if [ $# -gt 1 ]; then printf '\nhint: %s\n' "$2" >&2; fi
	exit 2
}

FAILED=()

# check NAME COMMAND...: runs a check, says how long it took, and remembers its name if it fails.
check() {
	local name=$1 start=$SECONDS
	shift
	printf '\n== %s ==\n' "$name" >&2
	if "$@"; then
		say "$name: passed in $((SECONDS - start)) s"
	else
		say "$name: FAILED after $((SECONDS - start)) s"
		FAILED+=("$name")
	fi
}

# conclude [HINT]: exits with an error that names the checks that failed, if any did.
conclude() {
	if [ ${#FAILED[@]} -gt 0 ]; then
		local names
		names=$(printf ', %s' "${FAILED[@]}")
		printf '\n' >&2
		fail "failed: ${names:2}" "$@"
	fi
}
