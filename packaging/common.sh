# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts of this folder: where packages are built, and what makes a build reproducible.

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

WORK=$PWD/target/packaging
DIST=$PWD/dist
TOOLS=$WORK/tools
VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
MACHINE=$(uname -m)

# The time in packages is that of the last commit and not that of the build.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

need_x86_64() {
	if [ "$MACHINE" != x86_64 ]; then
		fail "packages are built for x86-64 only, and this machine is $MACHINE" \
			"make setup compiles mptcplab for this machine"
	fi
}
