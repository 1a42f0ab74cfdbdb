#!/usr/bin/env bash
# Makes the part of an initramfs that all kernels share: busybox, init, a job, and programs with their libraries.
#
#   scripts/vm/initramfs.sh OUT JOB [PROGRAM...]
#
# OUT is the file to write. JOB is a directory that becomes /job; init runs its executable `main`. Each PROGRAM is
# copied to /bin. The file is not compressed, because the emulated processor would take longer to decompress it than
# to read it.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

OUT=${1:?file to write}
JOB=${2:?directory of the job}
PROGRAMS=("${@:3}")

main() {
	local root program
	root=$(mktemp -d)
	# shellcheck disable=SC2064 # expand the directory now
	trap "rm -rf '$root'" EXIT
	mkdir "$root/bin" "$root/job"
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp scripts/vm/init "$root/init"
	cp scripts/vm/send "$root/bin/send"
	cp -R "$JOB/." "$root/job"
	for program in "${PROGRAMS[@]}"; do
		cp "$program" "$root/bin/"
		# Symbols would fill the machine's memory. Scripts cannot be stripped.
		strip --strip-debug "$root/bin/$(basename "$program")" 2>/dev/null || true
		libraries "$program" "$root"
	done
	(cd "$root" && find . | sort | cpio --quiet -o -H newc -R 0:0) >"$OUT"
}

# libraries PROGRAM ROOT: copies the shared libraries to the paths where the program expects them.
libraries() {
	local file
	if ldd "$1" 2>/dev/null | grep -q 'not found'; then
		fail "a shared library of $1 is missing: $(ldd "$1" | grep -m1 'not found')" "build the program again"
	fi
	while read -r file; do
		mkdir -p "$2$(dirname "$file")"
		cp -L "$file" "$2$file"
	done < <(ldd "$1" 2>/dev/null | grep -o '/[^ ]*')
}

main
