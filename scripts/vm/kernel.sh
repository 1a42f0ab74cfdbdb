#!/usr/bin/env bash
# Fetches the current cloud kernel of a Debian suite and prints the directory that contains it:
#
#   vmlinuz       the kernel
#   modules.cpio  the modules that the tests need, decompressed, as a part of an initramfs
#   release       the output of `uname -r`
#   packages      names, versions and digests of the Debian packages
#
#   scripts/vm/kernel.sh bookworm-backports
#
# apt downloads and verifies the packages with separate sources, lists and caches. The system's configuration is read
# (for the mirror and settings such as a proxy) but never changed. Downloads are stored in ~/.cache/mptcplab and
# refreshed once a day.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

SUITE=${1:?a Debian suite, such as bookworm}
# Modules by name. One that is built into the kernel is skipped; one that does not exist is an error.
MODULES=(tun veth inet_diag tcp_diag mptcp_diag tcp_bbr)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
LISTS_LAST_MINUTES=1440

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/mptcplab/kernels
APT=$CACHE/apt/$SUITE
KERNEL=$CACHE/$SUITE

main() {
	mkdir -p "$APT/state/lists/partial" "$APT/cache/archives/partial"
	# Two concurrent calls would write the same files.
	exec 9>"$APT/lock"
	flock 9
	if refresh; then
		fetch_kernel
	elif [ -f "$KERNEL/packages" ]; then
		say "$SUITE: apt cannot reach a mirror; using the kernel downloaded before: $(cat "$KERNEL/release")"
	else
		tail -n 20 "$APT/log" >&2
		fail "apt cannot read the suite $SUITE from this system's Debian mirrors" \
			"its last lines are above; a suite has a name such as bookworm-backports, and not every mirror has all of them"
	fi
	printf '%s\n' "$KERNEL"
}

# --- apt with separate directories -----------------------------------------------------------------

# refresh: makes sure that today's package lists are present, from the first mirror that has the suite.
refresh() {
	: >"$APT/log"
	if [ -n "$(find "$APT/state/lists" -maxdepth 1 -name '*InRelease' -mmin "-$LISTS_LAST_MINUTES")" ]; then return; fi
	local mirror
	while read -r mirror; do
		settings "$mirror"
		if apt_get -o APT::Update::Error-Mode=any update >>"$APT/log" 2>&1; then
			# apt sets the time of the mirror's file.
			find "$APT/state/lists" -maxdepth 1 -name '*InRelease' -exec touch {} +
			return
		fi
	done < <(mirrors)
	return 1
}

# mirrors: prints the system's package mirrors, those first that apt recognises as Debian's.
mirrors() {
	local codename
	codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
		awk -F'|' -v codename="$codename" \
			'$4 == "main" && ($3 == codename || $3 == "stable" || $3 == "testing" || $3 == "unstable" || $3 == "sid") {
				print ($1 == "Debian" ? 0 : 1), $2
			}' | sort -su | cut -d' ' -f2-
}

# settings MIRROR: writes a configuration with which apt does not touch the system's directories.
settings() {
	: >"$APT/status"
	printf 'deb [arch=amd64 signed-by=%s] %s %s main\n' "$KEYRING" "$1" "$SUITE" >"$APT/sources.list"
	cat >"$APT/apt.conf" <<-SETTINGS
		Dir::Etc::sourcelist "$APT/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::State "$APT/state";
		Dir::State::status "$APT/status";
		Dir::Cache "$APT/cache";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::Retries "3";
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
	SETTINGS
}

apt_get() { timeout 300 apt-get -c "$APT/apt.conf" "$@"; }
apt_cache() { apt-cache -c "$APT/apt.conf" "$@"; }

# --- the kernel --------------------------------------------------------------------------------------

fetch_kernel() {
	local names fingerprint
	mapfile -t names < <(kernel_packages)
	if [ ${#names[@]} -eq 0 ]; then
		fail "the suite $SUITE has no package linux-image-cloud-amd64" "name another suite"
	fi
	fingerprint=$(apt_cache show --no-all-versions "${names[@]}" | grep -E '^(Package|Version|SHA256): ')
	# The list of modules also determines the content of the directory.
	fingerprint+=$'\n'"Modules: ${MODULES[*]}"
	if [ "$(cat "$KERNEL/packages" 2>/dev/null)" = "$fingerprint" ]; then return; fi
	say "$SUITE: fetching ${names[0]}"
	local work
	work=$(mktemp -d "$CACHE/$SUITE.XXXXXX")
	# shellcheck disable=SC2064 # expand the directory now
	trap "rm -rf '$work'" EXIT
	download "$work" "${names[@]}"
	unpack "$work"
	printf '%s\n' "$fingerprint" >"$work/kernel/packages"
	rm -rf "$KERNEL"
	mv "$work/kernel" "$KERNEL"
}

# kernel_packages: the dependencies of linux-image-cloud-amd64: the package with the kernel, or the packages into
# which it is split.
kernel_packages() {
	apt_cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
		linux-image-cloud-amd64 2>/dev/null |
		grep -E '^linux-(image|base|binary|modules)-[0-9].*-cloud-amd64$' | sort -u
}

# download DIRECTORY PACKAGE...: downloads packages, which apt verifies with the signed lists.
download() {
	local directory=$1
	shift
	if ! (cd "$directory" && apt_get download "$@") >>"$APT/log" 2>&1; then
		tail -n 20 "$APT/log" >&2
		fail "apt cannot download: $*" "the last lines of its output are above"
	fi
}

unpack() {
	local work=$1 archive release vmlinuz
	for archive in "$work"/*.deb; do dpkg-deb -x "$archive" "$work/root"; done
	# Newer packages install everything in /usr/lib/modules.
	if [ -d "$work/root/lib/modules" ]; then
		mkdir -p "$work/root/usr/lib"
		mv "$work/root/lib/modules" "$work/root/usr/lib/"
	fi
	release=$(ls "$work/root/usr/lib/modules")
	vmlinuz=$work/root/boot/vmlinuz-$release
	if [ ! -f "$vmlinuz" ]; then vmlinuz=$work/root/usr/lib/modules/$release/vmlinuz; fi
	mkdir -p "$work/kernel"
	cp "$vmlinuz" "$work/kernel/vmlinuz"
	printf '%s\n' "$release" >"$work/kernel/release"
	pack_modules "$work/root/usr" "$release" "$work/initramfs"
	(cd "$work/initramfs" && find . | sort | cpio --quiet -o -H newc -R 0:0) >"$work/kernel/modules.cpio"
}

# pack_modules FROM RELEASE TO: copies MODULES and their dependencies, decompresses and indexes them.
pack_modules() {
	local from=$1/lib/modules/$2 to=$3/lib/modules/$2 name file
	mkdir -p "$to"
	cp "$from"/modules.{builtin,order} "$to"
	decompress "$from"
	busybox depmod -b "$1" "$2"
	for name in "${MODULES[@]}"; do
		if grep -q "/$name\.ko$" "$from/modules.builtin"; then continue; fi
		if ! grep -q "/$name\.ko:" "$from/modules.dep"; then
			fail "the kernel $2 has no module $name" "the packages' content may have changed; see scripts/vm/kernel.sh"
		fi
		# A line of modules.dep contains the module, a colon, and all its dependencies.
		while read -r file; do
			mkdir -p "$to/$(dirname "$file")"
			cp "$from/$file" "$to/$file"
		done < <(grep "/$name\.ko:" "$from/modules.dep" | tr -s ': ' '\n')
	done
	busybox depmod -b "$3" "$2"
}

# decompress DIRECTORY: decompresses modules, because busybox cannot load compressed ones.
decompress() {
	find "$1" -name '*.ko.xz' -exec xz --decompress --threads=0 {} +
	find "$1" -name '*.ko.zst' -exec zstd --quiet --decompress --rm {} +
}

main
