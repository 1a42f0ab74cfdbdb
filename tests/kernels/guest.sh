#!/bin/sh
# The tests of the kernel engine inside a virtual machine. tests/kernels/run.py starts it there as a job, with busybox,
# two-paths.toml and `algorithms`, the list of all algorithms, beside it.
#
#   guest.sh checks                    the doctor, loading and unloading all algorithms, a run that is killed
#   guest.sh transfers ALGORITHM...    a transfer with each
#
# Every step writes a directory in /out with its exit code (`status`), `stdout`, `stderr`, and what it left behind in
# the system (`left`, empty if all is well). Transfers also write their trace (`trace`). The results are judged
# outside, by verdict.py.

JOB=/job
STEP_LIMIT_S=60
# A congestion control is removed after its last socket was closed.
SETTLE_S=5

# step NAME COMMAND...
step() {
	name=$1
	shift
	mkdir -p "/out/$name"
	# On the console, so that the report of a crash says what went before.
	echo "<4>test: $name" >/dev/kmsg
	timeout -k 5 "$STEP_LIMIT_S" "$@" >"/out/$name/stdout" 2>"/out/$name/stderr"
	status=$?
	if [ "$status" -eq 143 ] || [ "$status" -eq 137 ]; then
		echo "stopped: it did not end within $STEP_LIMIT_S s" >>"/out/$name/stderr"
	fi
	echo "$status" >"/out/$name/status"
	left_behind >"/out/$name/left"
	state >/tmp/state
}

# What a run could leave behind: names of congestion controls, network devices, pins, processes.
state() {
	tr ' ' '\n' </proc/sys/net/ipv4/tcp_available_congestion_control | sed 's/^/congestion control: /'
	find /sys/class/net -mindepth 1 | sed 's/^/network device: /'
	find /sys/fs/bpf ! -type d | sed 's/^/pin: /'
	pidof mptcplab-kernel | sed 's/^/process: mptcplab-kernel, pid /'
}

left_behind() {
	waited=0
	while ! state | cmp -s - /tmp/state && [ "$waited" -lt "$SETTLE_S" ]; do
		sleep 1
		waited=$((waited + 1))
	done
	state | grep -vxFf /tmp/state
}

transfer() {
	mptcplab-kernel run --in-machine --scenario "$JOB/two-paths.toml" --overrides "{\"cc\":[\"$1\"]}" --out "$2"
}

# Loads all algorithms at once, checks that they are registered, and unloads them.
round_trip() {
	algorithms=$(cat "$JOB/algorithms")
	# shellcheck disable=SC2086 # one word per algorithm
	mptcplab-kernel cc load $algorithms --pin || return
	mptcplab-kernel cc list >/tmp/list || return
	for algorithm in $algorithms; do
		# Linux limits the name of a congestion control to 15 characters; a longer one is cut.
		name=$(printf 'lab_%s' "$algorithm" | tr - _ | cut -c 1-15)
		if ! grep -qw "$name" /proc/sys/net/ipv4/tcp_available_congestion_control; then
			echo "not registered after cc load: $name" >&2
			return 1
		fi
		if ! grep -qw "$name" /tmp/list; then
			echo "not in cc list: $name" >&2
			return 1
		fi
	done
	mptcplab-kernel cc unload --all
}

# Kills a run in the middle of its transfer. Kernels before 6.4 keep the algorithms that it loaded; the next run
# unloads them.
killed() {
	transfer lia /tmp/killed &
	sleep 3
	kill -KILL $!
	transfer reno /tmp/after
}

case $1 in
transfer | round_trip | killed)
	"$@"
	exit
	;;
esac

# The machine has no other programs. This script calls itself, as a program.
$JOB/busybox --install -s /bin
export PATH=/bin HOME=/tmp
state >/tmp/state
case $1 in
checks)
	step doctor mptcplab-kernel doctor
	step cc "$0" round_trip
	step killed "$0" killed
	# Since the boot.
	dmesg >/out/dmesg
	;;
transfers)
	shift
	for algorithm; do step "run-$algorithm" "$0" transfer "$algorithm" "/out/run-$algorithm/trace"; done
	;;
esac
