#!/usr/bin/env bash
# Installs the wheel of dist/ into an empty environment and uses it there, away from the repository and without a compiler.
# With SUITE=trixie this is in a copy of the smallest system of that release of Debian, which needs root. As root it also
# loads an algorithm into the kernel.
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=packaging/root.sh
source packaging/root.sh

main() {
	native
	WHEEL=$(the_wheel)
	[ -f "$WHEEL" ] || fail "no such wheel: $WHEEL" "make wheel"
	if [ -n "${SUITE:-}" ] && [ "${1:-}" != inside ]; then in_a_copy "${BASH_SOURCE[0]}" inside; fi
	place
	check "No compiler is there" no_compiler
	check "Download what the wheel depends on" download
	local began=$SECONDS to_report
	processor_s
	local before=$PROCESSOR_S
	check "Install" install_as_the_page_says
	check "A scenario, with a report" installed run dolia-scenario-1
	processor_s
	to_report="$((SECONDS - began)) s, in which it kept processors busy for $((PROCESSOR_S - before)) s"
	check "The report is there" here test -s work/results/dolia-scenario-1/report.html
	check "Version" installed --version
	check "It has the notices of what is compiled into it" notices
	check "A paper" installed reproduce kim2021 --quick
	if [ "$(id -u)" -eq 0 ] && [ -e /sys/kernel/btf/vmlinux ]; then
		check "An algorithm in the kernel" unshare --mount bash -c \
			"$(declare -f here load_and_unload); $(declare -p PLACE ROOT); load_and_unload"
	else
		say "SKIPPED: cc load, which needs root and a kernel with BTF"
	fi
	say "the wheel has $(size "$WHEEL"); from the downloaded wheel to the report it took $to_report"
	say "mptcplab --version takes $(milliseconds_to_start installed --version) ms"
	conclude "the output of each is above"
}

# PLACE is the folder for all of this as the commands see it, and ROOT the system in which they run.
place() {
	if [ -n "${SUITE:-}" ]; then
		copy
		ROOT=$COPY PLACE=/check
	else
		ROOT=/ PLACE=$(mktemp -d)
		trap 'rm -rf "$PLACE"' EXIT
	fi
	mkdir -p "$ROOT$PLACE"/{bin,work,downloads}
	cp "$WHEEL" "$ROOT$PLACE"
}

# here COMMAND...: in the folder, in the system.
here() {
	if [ "$ROOT" = / ]; then
		env --chdir="$PLACE" "$@"
	else
		chroot "$ROOT" /usr/bin/env --chdir="$PLACE" "$@"
	fi
}

# On a system of SUITE there must be none. Elsewhere the commands find none, because PATH leads nowhere.
no_compiler() {
	if [ -z "${SUITE:-}" ]; then return; fi
	! here sh -c 'command -v cc || command -v gcc || command -v clang || command -v rustc || command -v cargo'
}

download() {
	here python3 -m venv loader
	here sh -c 'loader/bin/pip --disable-pip-version-check download --quiet --dest downloads mptcplab-*.whl'
}

# The first block of docs/first-steps.md, in a folder with the wheel. What it depends on was downloaded.
install_as_the_page_says() {
	local commands
	commands=$(sed -n '/^```sh$/,/^```$/p' docs/first-steps.md | sed '1d; /^```$/,$d')
	printf '%s\n' "$commands"
	here env PIP_NO_INDEX=1 PIP_FIND_LINKS="$PLACE/downloads" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 bash -euc "$commands"
}

# packaging/notices.py ends the build where one is missing; here, the installed wheel has to have them.
notices() {
	local folder file part
	folder=$(compgen -G "${ROOT%/}$PLACE/mptcp/lib/python3*/site-packages/mptcplab-$VERSION.dist-info")
	file=$folder/licenses/NOTICES
	grep -qx "License-File: NOTICES" "$folder/METADATA" || return 1
	for part in libbpf elfutils zlib glibc/ libunwind/ rust/library pyo3- algorithms/; do
		if ! grep -Eq "^(Files:)? .*$part" "$file"; then
			say "no notice of: $part"
			return 1
		fi
	done
	grep -q "GNU LESSER GENERAL PUBLIC LICENSE" "$file"
}

# installed WORD...: the command, with nothing in PATH.
installed() { here env -i --chdir="$PLACE/work" HOME="$PLACE/work" PATH="$PLACE/bin" "$PLACE/mptcp/bin/mptcplab" "$@"; }

# processor_s: puts the seconds on a processor of all that this shell has called into PROCESSOR_S. A subshell has its own.
processor_s() {
	local file
	file=$(mktemp)
	times >"$file"
	PROCESSOR_S=$(awk -F '[ms ]' 'NR == 2 { print int(60 * $1 + $2 + 60 * $4 + $5) }' "$file")
	rm "$file"
}

load_and_unload() {
	local program=$PLACE/mptcp/bin/mptcplab
	mount -t bpf bpf "${ROOT%/}/sys/fs/bpf"
	here "$program" cc load reno --pin && here "$program" cc list | grep -q lab_reno && here "$program" cc unload reno
}

main "$@"
