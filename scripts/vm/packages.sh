#!/usr/bin/env bash
# Makes sure that the Debian packages that the virtual machines need are installed. As root it installs missing ones;
# other users get the command to run.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

# Executables, and the packages that contain them.
NEEDED=(
	qemu-system-x86_64:qemu-system-x86
	zstd:zstd
)

main() {
	on_debian
	local missing=()
	for pair in "${NEEDED[@]}"; do
		if ! have "${pair%%:*}"; then missing+=("${pair#*:}"); fi
	done
	if ! static_busybox; then missing+=(busybox-static); fi
	if [ ! -f /usr/share/keyrings/debian-archive-keyring.gpg ]; then missing+=(debian-archive-keyring); fi
	if [ ${#missing[@]} -gt 0 ]; then install_packages "${missing[@]}"; fi
}

# The kernels come from Debian's archive through this system's apt, and the engine is built for this processor.
on_debian() {
	local system architecture
	system=$(. /etc/os-release && printf '%s' "${ID:-unknown}")
	if [ "$system" != debian ] || ! have apt-get; then
		fail "the kernel matrix needs Debian, because its kernels come from Debian's archive; this is: $system" \
			"run it on Debian 12 or newer, a container of it will do; all other tests run here: make test"
	fi
	architecture=$(dpkg --print-architecture)
	if [ "$architecture" != amd64 ]; then
		fail "the kernel matrix is made for amd64 only; this is: $architecture" \
			"run it on an amd64 machine; all other tests run here: make test"
	fi
}

# Debian's package busybox is linked dynamically and would not run in a minimal initramfs.
static_busybox() { have busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; }

install_packages() {
	if [ "$(id -u)" -ne 0 ]; then
		fail "missing Debian packages: $*" "sudo apt-get install -y --no-install-recommends $*"
	fi
	say "installing Debian packages: $*"
	local log
	log=$(mktemp)
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update && apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		fail "apt-get could not install: $*" "the last lines of its output are above"
	fi
	rm -f "$log"
}

main
