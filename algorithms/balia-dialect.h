/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BALIA's increase and decrease in both dialects, for every algorithm that has them.
 * What the dialect mptcp-0.95 changes is in balia.c.
 */
#ifndef MPTCPLAB_BALIA_DIALECT_H
#define MPTCPLAB_BALIA_DIALECT_H

#include "balia.h"
#include "dialect.h"

#define BALIA_RATE_MAX (1u << 25)	/* bytes/s */
#define BALIA_RATE_SHIFT 5		/* bits by which that kernel scales rates down */
#define BALIA_RATE_SHIFTS 8u		/* 2^25 << 40 is above any rate */
#define BALIA_SEGMENT_MAX (1u << 16)	/* bytes; arithmetic range */
#define BALIA_ACKS_MAX 0x7fffffffull	/* that kernel's int */

/* The rates as that kernel rounds them, bytes/s. */
struct balia_rates {
	u64 own; /* of the acting subflow */
	u64 max; /* at least 1 */
	u64 sum; /* over the set */
};

/* w <= 2^20, mss <= 2^16, 10^6 < 2^20: the product is < 2^56. Siblings count with our MSS. */
CC_INLINE u64 balia_rate(const struct sock *sk, const struct cc_set *set, u32 k)
{
	u64 bytes = cc_mul(set->w[k], cc_min(tcp_sk(sk)->mss_cache, BALIA_SEGMENT_MAX));

	return cc_div(cc_mul(bytes, 1000000), set->t[k]);
}

CC_INLINE u32 balia_shift(u64 max)
{
	u32 shift = 0;

	for (u32 i = 0; i < BALIA_RATE_SHIFTS; i++)
		shift = cc_hide_from_verifier(
			max >> (shift & 63) > BALIA_RATE_MAX ? shift + BALIA_RATE_SHIFT : shift);
	return shift & 63;
}

CC_INLINE u64 balia_max_rate(const struct sock *sk, const struct cc_set *set)
{
	u64 max = 1;

	cc_for_each(k, 0, set)
		max = cc_max(max, balia_rate(sk, set, k));
	return max;
}

CC_INLINE struct balia_rates balia_rates(const struct sock *sk, const struct cc_set *set)
{
	struct balia_rates rates = { .max = balia_max_rate(sk, set) };
	u32 shift = balia_shift(rates.max);

	rates.max >>= shift;
	rates.own = balia_rate(sk, set, set->self) >> shift;
	cc_for_each(k, 0, set)
		rates.sum += balia_rate(sk, set, k) >> shift;
	return rates;
}

/*
 * ACKs per packet of growth. sum <= 8 m and m <= 2^25, so 10 sum^2 <= 2^60; the first
 * quotient is <= 2^35, and w <= 2^20. A quotient of 0 stands for w, as there.
 */
CC_INLINE u32 balia_dialect_acks(const struct sock *sk, const struct cc_set *set)
{
	struct balia_rates rates = balia_rates(sk, set);
	u32 w = cc_window(sk);
	u64 acks = cc_div(cc_mul(10, cc_mul(rates.sum, rates.sum)), rates.own + rates.max);

	acks = cc_min(cc_div(cc_mul(acks, w), 4 * rates.own + rates.max), BALIA_ACKS_MAX);
	return acks ? (u32)acks : w;
}

/* alpha is a whole number before the cap at 3/2, so the cut is half or three quarters. */
CC_INLINE u32 balia_dialect_decreased(const struct sock *sk, const struct cc_set *set)
{
	u32 half = set->w[set->self] / 2;
	u64 own = balia_rate(sk, set, set->self);
	u32 cut = balia_max_rate(sk, set) >= 2 * own ? half * 3 / 2 : half;

	return cc_max(set->w[set->self] - cut, BALIA_FLOOR);
}

/* ---- both dialects ---- */

/* ACKs in congestion avoidance, and Reno on one path. */
CC_INLINE void balia_dialect_grow(struct sock *sk, u32 acked)
{
	struct cc_set set;

	if (cc_coupling_set(sk, &set))
		dialect_grow(sk, acked, balia_dialect_acks(sk, &set));
	else
		cc_grow_per_packet(sk, acked, (s64)cc_reno_inc_q40(sk));
}

/* Hook cong_avoid. */
CC_INLINE void balia_any_cong_avoid(struct sock *sk, u32 acked, bool spec)
{
	acked = spec ? cc_acked_after_slow_start(sk, acked) : dialect_acked(sk, acked);
	if (!acked)
		return;
	if (spec)
		cc_grow_per_packet(sk, acked, (s64)balia_inc_q40(sk));
	else
		balia_dialect_grow(sk, acked);
}

CC_INLINE u32 balia_any_decreased(const struct sock *sk, const struct cc_set *set, bool spec)
{
	return spec ? balia_decreased(set) : balia_dialect_decreased(sk, set);
}

#endif
