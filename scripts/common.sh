# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts: where we are, and how they speak. Progress goes to stderr.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=$PWD/.venv
BIN=$VENV/bin

section() { printf '\n== %s ==\n' "$*" >&2; }
say() { printf '%s\n' "-- $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# fail MESSAGE [HINT]: the form of every error message of the project, and its exit code.
fail() {
	printf 'error: %s\n' "$1" >&2
	if [ $# -gt 1 ]; then printf '\nhint: %s\n' "$2" >&2; fi
	exit 2
}
