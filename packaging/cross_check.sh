#!/usr/bin/env bash
# Runs the packages for ARCH, another processor than this machine's, in an emulator (qemu-user): the program without
# libraries, and the wheel with Debian's Python for that processor. The simulator has to write the same bytes there as
# here. The emulator passes system calls to this machine's kernel, so that nothing is loaded into a kernel for ARCH.
# Needs root, because debootstrap does.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=packaging/root.sh
source packaging/root.sh

SUITE=${SUITE:-trixie}
# Losses, windows of four algorithms and all that the trace has of them.
SCENARIO=(run dolia-scenario-1 --cc "lia,olia,balia,cubic" --reps 2 --duration "30 s" --no-report)
# What pip may install on a system of SUITE: wheels for the glibc of manylinux_2_28 and of older ones.
PLATFORMS=()
for platform in manylinux_2_{28..17} manylinux2014; do PLATFORMS+=(--platform "${platform}_$ARCH"); done

main() {
	foreign || fail "this machine runs packages for $ARCH itself" "make cross-check ARCH=aarch64"
	WHEEL=$(the_wheel)
	if [ ! -f "$WHEEL" ] || [ ! -f "$PROGRAM" ]; then fail "there are no packages for $ARCH in $DIST" "make wheel static deb ARCH=$ARCH"; fi
	emulator
	tools
	foreign_root
	PLACE=$(mktemp -d)
	trap 'rm -rf "$PLACE"' EXIT
	check "The program is for $ARCH" is_for_arch "$PROGRAM"
	check "The program starts" "${EMULATOR[@]}" "$PROGRAM" --version
	check "doctor answers" doctor
	check "The machine side of the engine vm says why it is not there" no_guest
	if [ -f "$PACKAGE" ]; then check "The Debian package is for $DEBIAN_ARCH" package; fi
	check "Install the wheel" install_wheel
	check "mptcplab --version" mptcplab --version
	check "A scenario" mptcplab "${SCENARIO[@]}" --out "$PLACE/there"
	check "The same scenario on this machine" "$BIN/mptcplab" "${SCENARIO[@]}" --out "$PLACE/here"
	check "The same bytes" same_bytes
	conclude "the output of each is above"
}

# Debian's smallest system with Python for ARCH in TREE. It is unpacked but not set up, because Python alone is called.
foreign_root() {
	local mirror deb
	TREE=$ROOTS/$SUITE-$DEBIAN_ARCH
	if [ -d "$TREE" ]; then return; fi
	if [ "$(id -u)" -ne 0 ]; then fail "a system for $ARCH is made as root" "sudo make cross-check ARCH=$ARCH"; fi
	have debootstrap || fail "debootstrap is missing" "as root: apt-get install -y debootstrap"
	mirror=$(debian_mirror)
	if [ -z "$mirror" ]; then fail "apt knows no mirror of Debian" "run it on Debian"; fi
	mkdir -p "$ROOTS"
	rm -rf "$TREE.new"
	say "unpacking Python for $ARCH into $TREE"
	debootstrap --foreign --arch="$DEBIAN_ARCH" --variant=minbase --include=python3,libstdc++6 "$SUITE" "$TREE.new" "$mirror" >&2
	for deb in "$TREE.new"/var/cache/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar --extract --keep-directory-symlink --directory "$TREE.new"
	done
	rm -rf "$TREE.new"/var/cache/apt/archives/*.deb
	mv "$TREE.new" "$TREE"
}

is_for_arch() { readelf --file-header "$1" | grep -i "Machine:.*$ARCH"; }

# What it finds is about this machine's kernel and does not matter here.
doctor() {
	local result=0
	"${EMULATOR[@]}" "$PROGRAM" doctor --json >"$PLACE/doctor.json" || result=$?
	[ $result -le 1 ] && grep -q '"findings"' "$PLACE/doctor.json"
}

no_guest() {
	local result=0
	"${EMULATOR[@]}" "$PROGRAM" guest 2>"$PLACE/guest.txt" || result=$?
	cat "$PLACE/guest.txt"
	[ $result -eq 2 ] && grep -q "x86-64 only, and this program is for $ARCH" "$PLACE/guest.txt"
}

package() {
	[ "$(dpkg-deb --field "$PACKAGE" Architecture)" = "$DEBIAN_ARCH" ] || return 1
	dpkg-deb --fsys-tarfile "$PACKAGE" | tar --extract --to-stdout ./usr/sbin/mptcplab-kernel | cmp - "$PROGRAM"
}

install_wheel() {
	local python
	python=$(cd "$TREE/usr/lib" && compgen -G 'python3.*' | head -n 1)
	"$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check --target "$PLACE/site" --only-binary=:all: \
		--python-version "${python#python}" "${PLATFORMS[@]}" "$WHEEL"
}

mptcplab() {
	PYTHONPATH=$PLACE/site "${EMULATOR[@]}" -L "$TREE" "$TREE/usr/bin/python3" -m mptcplab "$@"
}

# `run.parquet` names the build, which is another one. All other tables are compared.
same_bytes() {
	local table tables=0
	for table in "$PLACE"/here/*.parquet; do
		if [ "$(basename "$table")" = run.parquet ]; then continue; fi
		cmp "$table" "$PLACE/there/$(basename "$table")" || return 1
		tables=$((tables + 1))
	done
	say "tables with the same bytes: $tables"
	[ $tables -ge 3 ]
}

main
