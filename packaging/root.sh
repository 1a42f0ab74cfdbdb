# shellcheck shell=bash
# Sourced by the checks of packages: a copy of a system, in which a package is installed without changing this one.
#
# SUITE names a release of Debian, such as trixie, whose smallest system debootstrap makes once and keeps. Without it, the
# copy is of this system. Needs root.

ROOTS=${XDG_CACHE_HOME:-$HOME/.cache}/mptcplab/roots
# What the checks use beside the package.
IN_ROOT=ca-certificates,python3,python3-venv,systemd

# in_a_copy SCRIPT: calls the script again with the argument `inside`, in namespaces that vanish with it.
in_a_copy() {
	if [ "$(id -u)" -ne 0 ]; then fail "a copy of a system is made as root" "sudo make ${0##*/}"; fi
	if [ -n "${SUITE:-}" ]; then root_of_suite; fi
	exec unshare --mount --pid --fork --kill-child "$BASH" "$@"
}

# Makes the system of SUITE, or says why there is none, which is no fault of the package.
root_of_suite() {
	local root=$ROOTS/$SUITE mirror log
	if [ -d "$root" ]; then return; fi
	have debootstrap || fail "debootstrap is missing" "as root: apt-get install -y debootstrap"
	if [ ! -e "/usr/share/debootstrap/scripts/$SUITE" ]; then
		fail "debootstrap knows no release of Debian with that name: SUITE=$SUITE" "SUITE=trixie, for example"
	fi
	mirror=$(debian_mirror)
	mkdir -p "$ROOTS"
	log=$(mktemp)
	say "making a system of $SUITE in $root"
	rm -rf "$root.new"
	if [ -z "$mirror" ] || ! debootstrap --variant=minbase --include="$IN_ROOT" "$SUITE" "$root.new" "$mirror" >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		rm -rf "$log" "$root.new"
		say "SKIPPED: the check on $SUITE, because debootstrap cannot make that system here${mirror:+; its last words are above}"
		exit 0
	fi
	rm -rf "$log" "$root.new/var/cache/apt/archives"/*.deb
	mv "$root.new" "$root"
}

# copy: puts the path of a new copy into COPY. What is written to it is in memory. Call it `inside` only.
copy() {
	COPY=$(mktemp -d)
	mount -t tmpfs copy "$COPY"
	mkdir "$COPY/upper" "$COPY/work" "$COPY/root"
	mount -t overlay overlay -o "lowerdir=${SUITE:+$ROOTS}/${SUITE:-},upperdir=$COPY/upper,workdir=$COPY/work" "$COPY/root"
	COPY=$COPY/root
	mount -t proc proc "$COPY/proc"
	mount --rbind /sys "$COPY/sys"
	mount --rbind /dev "$COPY/dev"
	mount -t tmpfs run "$COPY/run"
	mkdir -p "$COPY/etc/ssl/certs"
	local file
	# How this system reaches others.
	for file in /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
		if [ -n "${SUITE:-}" ] && [ -f "$file" ]; then cp "$file" "$COPY$file"; fi
	done
}

inside() { chroot "$COPY" "$@"; }
