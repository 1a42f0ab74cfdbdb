# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts of this folder: where packages are built, for which processor, and what makes a build
# reproducible.

# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"

WORK=$PWD/target/packaging
DIST=$PWD/dist
# Tools in an environment of their own; a second build in another place takes those of the first.
TOOLS=${MPTCPLAB_PACKAGING_TOOLS:-$WORK/tools}
VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# The processor that packages are for, as Rust and the kernel call it, and as Debian does.
ARCH=${ARCH:-x86_64}
case $ARCH in
x86_64) DEBIAN_ARCH=amd64 ;;
aarch64) DEBIAN_ARCH=arm64 ;;
*) fail "packages are not built for this processor: ARCH=$ARCH" "ARCH=x86_64 or ARCH=aarch64" ;;
esac

# The time in packages is that of the last commit and not that of the build.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

# The program without libraries, the notices of all that is in it, and the Debian package of both.
PROGRAM=$DIST/mptcplab-kernel-$VERSION-linux-$ARCH
NOTICES=$PROGRAM.copyright
PACKAGE=$DIST/mptcplab-kernel_${VERSION}_$DEBIAN_ARCH.deb

# the_wheel: the wheel for ARCH in dist/, or a pattern that matches nothing.
the_wheel() { echo "$DIST"/mptcplab-"$VERSION"-*_"$ARCH".whl; }

# What builds, packs and checks.
tools() {
	local stamp=$TOOLS/.stamp
	if [ "$(cat "$stamp" 2>/dev/null)" = "$(cat packaging/requirements.txt)" ]; then return; fi
	say "installing what compiles, packs and checks packages (100 MB)"
	"${PYTHON:-python3}" -m venv --clear "$TOOLS"
	"$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check -r packaging/requirements.txt
	cp packaging/requirements.txt "$stamp"
}

need_x86_64() {
	if [ "$(uname -m)" != x86_64 ]; then
		fail "packages are built on x86-64 only, and this machine is $(uname -m)" "make setup compiles mptcplab for this machine"
	fi
}

# foreign: whether packages are for another processor than this machine's.
foreign() { [ "$ARCH" != "$(uname -m)" ]; }

# native: refuses packages that cannot be installed on this machine.
native() {
	if foreign; then fail "packages for $ARCH cannot be installed here, because this machine is $(uname -m)" "make cross-check ARCH=$ARCH"; fi
}

# emulator: puts the program that runs programs for ARCH into EMULATOR, which is empty where this machine does so itself.
emulator() {
	EMULATOR=()
	if ! foreign; then return; fi
	local name
	for name in "qemu-$ARCH-static" "qemu-$ARCH"; do
		if have "$name"; then
			EMULATOR=("$name")
			return
		fi
	done
	fail "no program qemu-$ARCH, which runs programs for $ARCH" "as root: apt-get install -y qemu-user"
}

# size FILE: such as 3.6MB.
size() { stat --format=%s "$1" | numfmt --to=si --round=nearest --format=%.1f --suffix=B; }

# milliseconds_to_start COMMAND...: the median of eleven calls.
milliseconds_to_start() {
	local begin
	for _ in {1..11}; do
		begin=${EPOCHREALTIME/./}
		"$@" >/dev/null
		printf '%s\n' $(((${EPOCHREALTIME/./} - begin + 500) / 1000))
	done | sort -n | sed -n 6p
}
