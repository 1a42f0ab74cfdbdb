#!/usr/bin/env bash
# Installs the package of dist/ into a copy of this system, or of SUITE, uses it there, and removes it again. Needs root.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=packaging/root.sh
source packaging/root.sh

main() {
	local started
	native
	[ -f "$PACKAGE" ] || fail "no such package: $PACKAGE" "make deb"
	if [ "${1:-}" != inside ]; then in_a_copy "${BASH_SOURCE[0]}" inside; fi
	copy
	as_with_systemd
	check "Before, the package is not installed" absent
	check "Install" inside dpkg --install /package.deb
	check "What is installed has not been changed" inside dpkg --verify mptcplab-kernel
	check "The copyright file has the notices of what is linked" notices
	check "The program starts" inside mptcplab-kernel --version
	started=$(milliseconds_to_start inside mptcplab-kernel --version)
	check "It needs no library" static
	check "The man page has no mistakes" man_page
	check "The help offers no C files, which the program refuses" no_c_files
	check "bash completes commands and options" completes
	check "The unit has no mistakes" unit
	check "doctor answers" doctor
	check "An algorithm can be loaded and unloaded" algorithm
	check "A scenario runs on this kernel" scenario
	check "The unit can be enabled" enabled
	check "Remove" inside dpkg --purge mptcplab-kernel
	check "Nothing is left" absent
	check "Install, enable and remove where systemd does not run" without_systemd
	check "Nothing is left there either" absent
	say "the package has $(size "$PACKAGE"), the program starts in $started ms"
	conclude "the output of each is above"
}

# As where systemd runs: the package's scripts call systemctl, which changes only links in a copy.
as_with_systemd() {
	mkdir -p "$COPY/run/systemd/system"
	cp "$PACKAGE" "$COPY/package.deb"
}

# Only what the package would add is looked for, and what enables its unit.
absent() {
	local file
	if inside dpkg --status mptcplab-kernel >/dev/null 2>&1; then return 1; fi
	if compgen -G "$COPY/etc/systemd/system/*.wants/mptcplab-cc@*" >&2; then return 1; fi
	dpkg-deb --fsys-tarfile "$PACKAGE" | tar --list | grep -v '/$' | while read -r file; do
		if [ -e "$COPY/$file" ]; then
			say "there: $file"
			return 1
		fi
	done
}

# packaging/notices.py ends the build where one is missing; here, the package has to have them.
notices() {
	local file=$COPY/usr/share/doc/mptcplab-kernel/copyright part
	cmp "$NOTICES" "$file"
	for part in libbpf elfutils zlib musl/ rust/library algorithms/; do
		if ! grep -Eq "^(Files:)? .*$part" "$file"; then
			say "no notice of: $part"
			return 1
		fi
	done
	grep -q "Redistribution and use in source and binary forms" "$file" && grep -q "GNU LESSER GENERAL PUBLIC LICENSE" "$file"
}

static() { ! readelf --dynamic --wide "$COPY/usr/sbin/mptcplab-kernel" | grep NEEDED; }

man_page() {
	local found
	if ! have groff; then
		say "SKIPPED: groff is not installed"
		return
	fi
	found=$(gzip -dc "$COPY/usr/share/man/man8/mptcplab-kernel.8.gz" | groff -man -Tutf8 -ww 2>&1 >/dev/null)
	printf '%s' "$found"
	[ -z "$found" ]
}

no_c_files() {
	if inside mptcplab-kernel cc load --help | grep "C file"; then return 1; fi
	if gzip -dc "$COPY/usr/share/man/man8/mptcplab-kernel.8.gz" | grep "C file"; then return 1; fi
	# The program's exit code would be that of the pipe.
	{ inside mptcplab-kernel cc load ./mine.c 2>&1 || true; } | grep "linked without libraries"
}

completes() {
	local found
	found=$(inside bash -c '
		source /usr/share/bash-completion/completions/mptcplab-kernel
		COMP_WORDS=(mptcplab-kernel cc lo) COMP_CWORD=2; _mptcplab_kernel; echo "${COMPREPLY[@]}"
		COMP_WORDS=(mptcplab-kernel cc load olia --pi) COMP_CWORD=4; _mptcplab_kernel; echo "${COMPREPLY[@]}"')
	printf '%s\n' "$found"
	[ "$found" = $'load\n--pin' ]
}

unit() {
	grep ExecStart "$COPY/usr/lib/systemd/system/mptcplab-cc@.service"
	if ! have systemd-analyze; then
		say "SKIPPED: systemd is not installed"
		return
	fi
	inside systemd-analyze verify mptcplab-cc@olia.service
}

# A process of the run is shut in, without any file of the system. The kernel refuses that in a copy of a root, so that the
# installed program is started from outside.
scenario() {
	if [ ! -e /sys/kernel/btf/vmlinux ]; then
		say "SKIPPED: run, which needs a kernel with BTF"
		return
	fi
	cat >"$COPY/two-paths.toml" <<-TOML
		duration = "2 s"
		cc = "olia"
		links.A = { from = "S", to = "D", rate = "8 Mbit/s", delay = "6 ms", queue = "40 packets" }
		links.B = { from = "S", to = "D", rate = "3 Mbit/s", delay = "17 ms", queue = "25 packets" }
		flows.mp = { paths = [["A"], ["B"]] }
	TOML
	"$COPY/usr/sbin/mptcplab-kernel" run --scenario "$COPY/two-paths.toml" --out "$COPY/trace"
	[ -s "$COPY/trace/000001/run.parquet" ]
}

enabled() {
	inside systemctl enable mptcplab-cc@olia.service
	[ -L "$COPY/etc/systemd/system/multi-user.target.wants/mptcplab-cc@olia.service" ]
}

without_systemd() {
	rm -r "$COPY/run/systemd" && inside dpkg --install /package.deb && enabled && inside dpkg --purge mptcplab-kernel
}

# What this machine lacks is said, and is no mistake of the package.
doctor() {
	local result=0
	inside mptcplab-kernel doctor --json >"$COPY/doctor.json" || result=$?
	[ $result -le 1 ] && grep -q '"findings"' "$COPY/doctor.json"
}

algorithm() {
	if [ ! -e /sys/kernel/btf/vmlinux ]; then
		say "SKIPPED: cc load, which needs a kernel with BTF"
		return
	fi
	mount -t bpf bpf "$COPY/sys/fs/bpf"
	# As the unit calls it.
	inside mptcplab-kernel cc load --pin --profile=linux-acked --connections=4096 olia
	inside mptcplab-kernel cc list | grep lab_olia
	inside mptcplab-kernel cc unload olia
}

main "$@"
