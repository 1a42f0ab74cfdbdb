#!/usr/bin/env bash
# Builds dist/mptcplab-kernel_VERSION_ARCH.deb of the program that `make static` built: the program, a unit that loads an
# algorithm at boot, the man page and completions for bash.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

TREE=$WORK/deb
INSTALLED=/usr/sbin/mptcplab-kernel

main() {
	need_x86_64
	have dpkg-deb || fail "dpkg-deb is missing" "a package of Debian is built on Debian or Ubuntu, or where dpkg is installed"
	if [ ! -x "$PROGRAM" ] || [ ! -f "$NOTICES" ]; then fail "not built: $PROGRAM" "make static ARCH=$ARCH"; fi
	emulator
	rm -rf "$TREE" && mkdir -p "$DIST"
	install -D -m 755 "$PROGRAM" "$TREE$INSTALLED"
	pages
	unit
	copyright
	control
	# The times of all files, so that the same program gives the same package.
	find "$TREE" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group --build -Zxz "$TREE" "$PACKAGE" >/dev/null
	say "built: $PACKAGE ($(size "$PACKAGE"))"
}

pages() {
	local written=$WORK/deb-pages share=$TREE/usr/share
	"${PYTHON:-python3}" packaging/kernel_pages.py "$written" "${EMULATOR[@]}" "$PROGRAM"
	install -D -m 644 "$written/mptcplab-kernel.bash" "$share/bash-completion/completions/mptcplab-kernel"
	install -D -m 644 "$written/mptcplab-kernel.8" "$share/man/man8/mptcplab-kernel.8"
	gzip -9n "$share/man/man8/mptcplab-kernel.8"
}

# The unit of `cc persist`, for the algorithm that the name of the instance says.
unit() {
	local file=$TREE/usr/lib/systemd/system/mptcplab-cc@.service
	mkdir -p "$(dirname "$file")"
	"${EMULATOR[@]}" "$PROGRAM" cc persist --print olia | sed \
		-e "1s/.*/# systemctl enable --now mptcplab-cc@olia.service loads the algorithm olia now and at every boot./" \
		-e "s|\"$PROGRAM\"|$INSTALLED|" -e 's/olia$/%i/; s/(olia)/(%i)/' >"$file"
	chmod 644 "$file"
	if [ "$(grep -c '%i' "$file")" -ne 3 ] || grep -q "$PROGRAM" "$file"; then
		fail "the unit of cc persist has another form than this script knows" "see $file"
	fi
}

copyright() { install -D -m 644 "$NOTICES" "$TREE/usr/share/doc/mptcplab-kernel/copyright"; }

control() {
	mkdir -p "$TREE/DEBIAN"
	cat >"$TREE/DEBIAN/control" <<-CONTROL
		Package: mptcplab-kernel
		Version: $VERSION
		Architecture: $DEBIAN_ARCH
		Maintainer: The mptcplab authors
		Installed-Size: $(du --apparent-size --summarize --block-size=1K "$TREE" | cut -f 1)
		Section: net
		Priority: optional
		Recommends: iproute2
		Suggests: mptcpize
		Description: Coupled congestion control for Multipath TCP, as eBPF
		 Loads congestion control algorithms such as LIA, OLIA and BALIA into an
		 unmodified kernel from 6.1 on, checks what a machine lacks for them, and
		 runs experiments on its kernel. The program needs no libraries.
	CONTROL
	install -m 755 packaging/debian/* "$TREE/DEBIAN"
}

main
