#!/usr/bin/env bash
# Installs the wheel of dist/ into an empty environment and uses it there, away from the repository and without a compiler.
# As root it also loads an algorithm into the kernel. usage: packaging/wheel_check.sh [WHEEL]
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

main() {
	WHEEL=$(realpath "${1:-$(echo "$DIST"/mptcplab-"$VERSION"-*.whl)}")
	[ -f "$WHEEL" ] || fail "no such wheel: $WHEEL" "make wheel"
	PLACE=$(mktemp -d)
	trap 'rm -rf "$PLACE"' EXIT
	cp "$WHEEL" "$PLACE"
	check "Install" install_as_the_page_says
	mkdir "$PLACE/work"
	check "Version" installed --version
	check "A scenario, with a report" installed run dolia-scenario-1 --cc lia,olia --reps 2 --duration "20 s"
	check "The report is there" test -s "$PLACE/work/results/dolia-scenario-1/report.html"
	check "A paper" installed reproduce kim2021 --quick
	if [ "$(id -u)" -eq 0 ] && [ -e /sys/kernel/btf/vmlinux ]; then
		check "An algorithm in the kernel" unshare --mount bash -c \
			"mount -t bpf bpf /sys/fs/bpf && $(declare -f load_and_unload) && load_and_unload '$PLACE/mptcp/bin/mptcplab'"
	else
		say "SKIPPED: cc load, which needs root and a kernel with BTF"
	fi
	conclude "the output of each is above"
}

# The first block of docs/first-steps.md, in a folder with the wheel.
install_as_the_page_says() {
	local commands
	commands=$(sed -n '/^```sh$/,/^```$/p' docs/first-steps.md | sed '1d; /^```$/,$d')
	printf '%s\n' "$commands"
	(cd "$PLACE" && PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 bash -euc "$commands")
}

# installed WORD...: the command, with nothing in PATH but the system's programs and no compiler among them.
installed() {
	mkdir -p "$PLACE/bin"
	(cd "$PLACE/work" && env -i HOME="$PLACE/work" PATH="$PLACE/bin" "$PLACE/mptcp/bin/mptcplab" "$@")
}

load_and_unload() {
	"$1" cc load reno --pin && "$1" cc list | grep -q lab_reno && "$1" cc unload reno
}

main "$@"
