/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LIA's increase in both dialects, for every algorithm that has them. What the dialect
 * mptcp-0.95 changes is in lia.c.
 */
#ifndef MPTCPLAB_LIA_DIALECT_H
#define MPTCPLAB_LIA_DIALECT_H

#include "dialect.h"
#include "lia.h"

#define LIA_ALPHA_ONE (1u << 12)

/* w/tau^2 as in that kernel, whose RTTs are in eighths of us: (8 t)^2 <= 2^58. */
CC_INLINE u64 lia_dialect_quality(u32 w, u32 t)
{
	u64 eighths = 8 * (u64)t;

	return cc_div((u64)w << 32, cc_mul(eighths, eighths));
}

/* That kernel goes through its list from the newest subflow on and keeps the last best one. */
CC_INLINE u32 lia_dialect_best(const struct cc_set *set)
{
	u32 best = 0;

	cc_for_each(k, 1, set)
		best = lia_dialect_quality(set->w[k], set->t[k]) >
				       lia_dialect_quality(set->w[best], set->t[best])
			       ? cc_index(k)
			       : best;
	return best;
}

/* Sum of w_k tau_ref/tau_k in Q10, each term rounded down: eight of at most 2^56. */
CC_INLINE u64 lia_dialect_sum_q10(const struct cc_set *set, u32 ref)
{
	u64 sum = 0;

	cc_for_each(k, 0, set)
		sum += cc_div(cc_mul((u64)set->w[k] << 10, set->t[ref]), set->t[k]);
	return sum;
}

/* alpha, 1..2^12 unless the square wraps, as it does there from 2^32 on. */
CC_INLINE u64 lia_dialect_alpha(const struct cc_set *set)
{
	u32 best = lia_dialect_best(set);
	u64 sum = lia_dialect_sum_q10(set, best);
	u64 square = cc_max(sum * sum, 1ull);

	return cc_max(cc_div((u64)set->w[best] << 32, square), 1ull);
}

/* ACKs per packet of growth, 1..2^20. */
CC_INLINE u32 lia_dialect_acks(const struct cc_set *set)
{
	u64 acks = cc_div(LIA_ALPHA_ONE, lia_dialect_alpha(set));

	return cc_max((u32)acks, set->w[set->self]);
}

/* ACKs in congestion avoidance, and Reno on one path. */
CC_INLINE void lia_dialect_grow(struct sock *sk, u32 acked)
{
	struct cc_set set;

	if (cc_coupling_set(sk, &set))
		dialect_grow(sk, acked, lia_dialect_acks(&set));
	else
		cc_grow_per_packet(sk, acked, (s64)cc_reno_inc_q40(sk));
}

/* Hook cong_avoid, with the source's rule or that of the out-of-tree kernel. */
CC_INLINE void lia_any_cong_avoid(struct sock *sk, u32 acked, bool spec)
{
	acked = spec ? cc_acked_after_slow_start(sk, acked) : dialect_acked(sk, acked);
	if (!acked)
		return;
	if (spec)
		cc_grow_per_packet(sk, acked, (s64)lia_inc_q40(sk));
	else
		lia_dialect_grow(sk, acked);
}

#endif
