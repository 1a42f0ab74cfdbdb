// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A slow disk and a clock that jumps, for processes that load this library with LD_PRELOAD.
 *
 * CHAOS_SLOW_US: what writes, renames and so on wait at most, in microseconds. CHAOS_CLOCK_S: how far the time of day
 * jumps forward or back at most, in seconds, at every hundredth call on average. CHAOS_SEED: of the random numbers.
 * Real disks and the machine's clock are not touched, because other programs use them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint64_t slow_us, jump_s;
static _Atomic uint64_t state;
static _Atomic int64_t offset_s;

__attribute__((constructor)) static void read_settings(void)
{
	const char *slow = getenv("CHAOS_SLOW_US"), *jump = getenv("CHAOS_CLOCK_S"), *seed = getenv("CHAOS_SEED");

	slow_us = slow ? strtoull(slow, NULL, 10) : 0;
	jump_s = jump ? strtoull(jump, NULL, 10) : 0;
	state = (seed ? strtoull(seed, NULL, 10) : 0) + 1;
}

/* SplitMix64. */
static uint64_t next(void)
{
	uint64_t z = atomic_fetch_add(&state, 0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static void be_slow(void)
{
	if (slow_us) {
		uint64_t ns = next() % (slow_us * 1000);
		struct timespec wait = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

		nanosleep(&wait, NULL);
	}
}

#define SLOW(type, name, parameters, ...)                                                                              \
	type name parameters                                                                                           \
	{                                                                                                              \
		static type(*real) parameters;                                                                         \
		if (!real)                                                                                             \
			real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                            \
		be_slow();                                                                                             \
		return real(__VA_ARGS__);                                                                              \
	}

/* Pipes are written to as well; what waits for them waits a little longer. */
SLOW(ssize_t, write, (int fd, const void *data, size_t size), fd, data, size)
SLOW(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), fd, data, size, at)
SLOW(ssize_t, writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
SLOW(int, fsync, (int fd), fd)
SLOW(int, fdatasync, (int fd), fd)
SLOW(int, ftruncate64, (int fd, off64_t size), fd, size)
SLOW(int, rename, (const char *from, const char *to), from, to)
SLOW(int, renameat, (int at, const char *from, int into, const char *to), at, from, into, to)
SLOW(int, unlink, (const char *path), path)
SLOW(int, unlinkat, (int at, const char *path, int flags), at, path, flags)
SLOW(int, rmdir, (const char *path), path)
SLOW(int, mkdir, (const char *path, mode_t mode), path, mode)

static int64_t jumped(void)
{
	if (jump_s && next() % 100 == 0)
		offset_s = (int64_t)(next() % (2 * jump_s)) - (int64_t)jump_s;
	return offset_s;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*real)(clockid_t, struct timespec *);
	int code;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	code = real(clock, now);
	if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += jumped();
	return code;
}

time_t time(time_t *into)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec exact;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &exact);
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}
