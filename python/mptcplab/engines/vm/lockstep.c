/*
 * Keeps QEMU's main loop and the thread of its virtual processor in step. It is preloaded into QEMU (LD_PRELOAD).
 *
 * With `-icount shift=0,sleep=off` the machine's time is the number of instructions that the virtual processor has
 * executed, and the main loop advances it while the processor is idle. The host decides, though, when the main loop
 * gets the big lock (BQL) while the processor is running: it then runs timers of devices some instructions earlier or
 * later, and two runs differ. Here the main loop continues from waiting for events only while the processor's thread
 * waits on a condition variable, and it has not been woken. Main loop and processor then alternate: an idle processor,
 * one turn of the main loop, which may wake it, and the processor until it is idle again. Timers that expire while it
 * runs are run by its own thread, at exactly their instruction (icount_handle_deadline() in
 * accel/tcg/tcg-accel-ops-icount.c).
 *
 * Most of these turns only advance the time to the next timer and run it, thousands of times per second of the machine.
 * The processor's thread does that itself, with the functions that the main loop would call, and saves the switches
 * between two threads. Every MAIN_LOOP_EACHth time, and if there is more to do, it is the main loop's turn. A QEMU that
 * does not export these functions leaves every turn to the main loop.
 *
 * It also changes the machine's memory as QEMU maps it, so that snapshots which differ little share one file (prepared.py).
 *
 * QEMU names the thread "CPU 0/TCG" or "ALL CPUs/TCG" with `-name debug-threads=on`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROCESSOR_SUFFIX "/TCG"
/* Idle times of the processor from one turn of the main loop to the next; devices may have left work for it. */
#define MAIN_LOOP_EACH 256
/* QEMUClockType and QEMU_TIMER_ATTR_ALL of include/qemu/timer.h. */
#define VIRTUAL_CLOCK 1
#define ANY_TIMER (-1)

static int (*real_cond_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_cond_broadcast)(pthread_cond_t *);
static int (*real_cond_signal)(pthread_cond_t *);
static int (*real_setname)(pthread_t, const char *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static ssize_t (*real_write)(int, const void *, size_t);

/* 1 from when the processor is woken until it waits again; 0 before it exists. */
static atomic_int running;
/* What the processor waits on. */
static _Atomic(pthread_cond_t *) halted_on;
/* The big lock, which the processor's thread gives up while it waits. */
static _Atomic(pthread_mutex_t *) big_lock;

static __thread int is_processor;
static __thread int is_main;
/* Descriptors on which threads other than the main loop wait, such as the one that QEMU starts for its monitor. */
#define MOST_FILES 256
static atomic_char others[MOST_FILES];
/* The processor's thread is advancing the time. */
static __thread int is_warping;

/* QEMU's own functions. */
static struct {
	void (*start_warp)(void);
	bool (*run_timers)(int clock);
	int64_t (*deadline_ns)(int clock, int attributes);
	void *(*processor)(int index);
	bool (*is_stopped)(void *processor);
} qemu;

static void *find(const char *name)
{
	/* glibc has two versions of the condition variables, and dlsym() may find the old one. */
	void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

	if (!found)
		found = dlsym(RTLD_NEXT, name);
	if (!found)
		abort();
	return found;
}

/* The program's first thread, which becomes the main loop, runs this before it starts others. */
__attribute__((constructor)) static void start(void)
{
	real_cond_wait = find("pthread_cond_wait");
	real_cond_broadcast = find("pthread_cond_broadcast");
	real_cond_signal = find("pthread_cond_signal");
	real_setname = find("pthread_setname_np");
	real_ppoll = find("ppoll");
	real_poll = find("poll");
	real_write = find("write");
	qemu.start_warp = dlsym(RTLD_DEFAULT, "icount_start_warp_timer");
	qemu.run_timers = dlsym(RTLD_DEFAULT, "qemu_clock_run_timers");
	qemu.deadline_ns = dlsym(RTLD_DEFAULT, "qemu_clock_deadline_ns_all");
	qemu.processor = dlsym(RTLD_DEFAULT, "qemu_get_cpu");
	qemu.is_stopped = dlsym(RTLD_DEFAULT, "cpu_is_stopped");
	is_main = 1;
	/* Programs that QEMU starts do without. */
	unsetenv("LD_PRELOAD");
}

/* The changes, if there are any, are in the memory. */
static bool is_changed;

/* Whether a descriptor is the file of the machine's memory. */
static bool is_memory(int fd)
{
	const char *path = getenv("MPTCPLAB_VM_MEMORY");
	struct stat one, other;

	return path && fd >= 0 && !stat(path, &one) && !fstat(fd, &other) &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void refuse(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	exit(1);
}

/* Reads changes into the memory: for each the offset, the length and the bytes. The last one has no bytes. */
static void apply(const char *path, char *memory, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t place[2];
	ssize_t length;

	if (fd < 0)
		refuse(path, "cannot be opened");
	while ((length = read(fd, place, sizeof(place))) == sizeof(place)) {
		if (place[0] > size || place[1] > size - place[0])
			refuse(path, "changes more than the machine's memory");
		if (!place[1]) {
			close(fd);
			is_changed = true;
			return;
		}
		for (uint64_t done = 0; done < place[1]; done += (uint64_t)length) {
			length = read(fd, memory + place[0] + done, place[1] - done);
			if (length <= 0)
				refuse(path, "ends too early");
		}
	}
	refuse(path, "ends too early");
}

/* QEMU maps the memory before it starts a thread for the processor. */
void *mmap64(void *address, size_t length, int protection, int flags, int fd, off64_t offset)
{
	static void *(*real_mmap)(void *, size_t, int, int, int, off64_t);
	const char *changes = getenv("MPTCPLAB_VM_CHANGES");
	void *mapped;

	if (!real_mmap)
		real_mmap = find("mmap64");
	mapped = real_mmap(address, length, protection, flags, fd, offset);
	if (changes && mapped != MAP_FAILED && offset == 0 && is_memory(fd))
		apply(changes, mapped, length);
	return mapped;
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	size_t length = strlen(name), suffix = strlen(PROCESSOR_SUFFIX);

	if (pthread_equal(thread, pthread_self()) && length >= suffix &&
	    !strcmp(name + length - suffix, PROCESSOR_SUFFIX)) {
		is_processor = 1;
		if (getenv("MPTCPLAB_VM_CHANGES") && !is_changed)
			refuse(getenv("MPTCPLAB_VM_CHANGES"), "was not applied to the memory");
	}
	return real_setname(thread, name);
}

/*
 * Does what the main loop does in its turn (main_loop_wait() in util/main-loop.c), in the processor's thread, which is
 * idle and holds the big lock. Returns 0 if it is the main loop's turn.
 */
static int idle_alone(const pthread_cond_t *condition)
{
	static const pthread_cond_t *first;
	static unsigned int count;

	/* The first thing that the thread waits for is that its processor starts: the same as when it is idle. */
	if (!first)
		first = condition;
	if (condition != first || !qemu.start_warp || !qemu.run_timers || !qemu.deadline_ns ||
	    !qemu.processor || !qemu.is_stopped)
		return 0;
	if (qemu.is_stopped(qemu.processor(0)) || ++count % MAIN_LOOP_EACH == 0 ||
	    qemu.deadline_ns(VIRTUAL_CLOCK, ANY_TIMER) < 0)
		return 0;
	is_warping = 1;
	qemu.start_warp();
	is_warping = 0;
	qemu.run_timers(VIRTUAL_CLOCK);
	return 1;
}

/*
 * When the time has advanced, QEMU wakes all threads that wait for events, because they might have timers
 * (qemu_clock_notify() in util/qemu-timer.c). None of them has any in this clock.
 */
ssize_t write(int fd, const void *bytes, size_t count)
{
	int wakes_other =
		fd >= 0 && fd < MOST_FILES && atomic_load(&others[fd]) && count == sizeof(uint64_t);

	return is_processor && (is_warping || wakes_other) ? (ssize_t)count
							   : real_write(fd, bytes, count);
}

/*
 * The processor's thread calls this with the big lock, so that the main loop cannot act before it really waits. Its
 * callers ask again whether there is something to do.
 */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int result;

	if (!is_processor)
		return real_cond_wait(condition, mutex);
	if (idle_alone(condition))
		return 0;
	atomic_store(&halted_on, condition);
	atomic_store(&big_lock, mutex);
	atomic_store(&running, 0);
	syscall(SYS_futex, &running, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	result = real_cond_wait(condition, mutex);
	atomic_store(&running, 1);
	return result;
}

/* The main loop wakes the processor with the big lock held: from then on, it is that thread's turn. */
static void woken(pthread_cond_t *condition)
{
	if (is_main && condition == atomic_load(&halted_on))
		atomic_store(&running, 1);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	woken(condition);
	return real_cond_broadcast(condition);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	woken(condition);
	return real_cond_signal(condition);
}

/*
 * Waits until it is the main loop's turn. Whoever waits for events with the big lock held, as QEMU does while it ends,
 * keeps the processor from running anyway.
 */
static void gate(void)
{
	pthread_mutex_t *lock = atomic_load(&big_lock);

	if (!is_main || !lock || lock->__data.__owner == getpid())
		return;
	while (atomic_load(&running))
		syscall(SYS_futex, &running, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void remember(const struct pollfd *fds, nfds_t count)
{
	if (is_main)
		return;
	for (nfds_t index = 0; index < count; index++)
		if (fds[index].fd >= 0 && fds[index].fd < MOST_FILES)
			atomic_store(&others[fds[index].fd], 1);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	int result;

	remember(fds, count);
	result = real_ppoll(fds, count, timeout, mask);

	gate();
	return result;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int result;

	remember(fds, count);
	result = real_poll(fds, count, timeout_ms);

	gate();
	return result;
}
