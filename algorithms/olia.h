/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * OLIA's increase, and the packets between losses by which it ranks paths
 * (draft-khalili-mptcp-congestion-control-05 section 3), for every algorithm that uses
 * them. Such an algorithm shares a struct olia_interval with its siblings (CC_SHARED).
 */
#ifndef MPTCPLAB_OLIA_H
#define MPTCPLAB_OLIA_H

#include "cc.h"

#define OLIA_RATE 0		/* quality of a path: l/rtt^2 */
#define OLIA_FLOOR 1u		/* packets, with several subflows (draft section 3) */
#define OLIA_COUNT_MAX 0xffffffffu	/* packets; counting stops here */

/* What siblings read. */
struct olia_interval {
	u32 l1; /* packets acknowledged between the last two losses */
	u32 l2; /* packets acknowledged since the last loss */
};

CC_INLINE void olia_count(struct olia_interval *interval, u32 acked)
{
	interval->l2 += cc_min(acked, OLIA_COUNT_MAX - interval->l2);
}

CC_INLINE void olia_count_loss(struct olia_interval *interval)
{
	interval->l1 = interval->l2;
	interval->l2 = 0;
}

/* Sizes of the sets, and whether the acting subflow is in them. */
struct olia_sets {
	u32 n_max;	     /* |M| */
	u32 n_collected;     /* |C| */
	bool self_max;	     /* r in M */
	bool self_collected; /* r in C */
};

CC_INLINE u32 olia_length(const struct sock *sk, const struct cc_set *set, u32 k)
{
	struct olia_interval interval = cc_shared(struct olia_interval, sk, set, k);

	return cc_hide_from_verifier(cc_max(interval.l1, interval.l2));
}

/* Compares the quality of two paths exactly: l < 2^32, so l^2 < 2^64; t <= 2^26. */
CC_INLINE int olia_compare(u32 metric, u32 l_i, u32 t_i, u32 l_j, u32 t_j)
{
	if (metric == OLIA_RATE)
		return cc_cmp_per_rtt2(l_i, t_i, l_j, t_j);
	return cc_cmp96(cc_mul96(cc_mul(l_i, l_i), t_j), cc_mul96(cc_mul(l_j, l_j), t_i));
}

/* Compares the quality of two members. */
CC_INLINE int olia_compare_paths(const struct sock *sk, const struct cc_set *set, u32 metric, u32 i,
				 u32 j)
{
	return olia_compare(metric, olia_length(sk, set, i), set->t[i], olia_length(sk, set, j),
			    set->t[j]);
}

CC_INLINE void olia_find_sets(const struct sock *sk, const struct cc_set *set, u32 metric,
			      struct olia_sets *sets)
{
	u32 best = 0, w_max = set->w[0];

	cc_for_each(k, 1, set) {
		w_max = cc_hide_from_verifier(cc_max(w_max, set->w[k]));
		best = cc_index(olia_compare_paths(sk, set, metric, k, best) > 0 ? k : best);
	}
	*sets = (struct olia_sets){ 0 };
	cc_for_each(k, 0, set) {
		bool max = set->w[k] == w_max;
		bool collected = !max && olia_compare_paths(sk, set, metric, k, best) == 0;

		sets->n_max = cc_hide_from_verifier(sets->n_max + max);
		sets->n_collected = cc_hide_from_verifier(sets->n_collected + collected);
		/* Hidden, or the verifier follows each pair of answers by itself. */
		if (cc_is_self(set, k)) {
			sets->self_max = cc_hide_from_verifier(max);
			sets->self_collected = cc_hide_from_verifier(collected);
		}
	}
}

/* alpha_r/w_r in Q40: n, |C| and |M| are at most 8, w <= 2^20. */
CC_INLINE s64 olia_alpha_over_w_q40(const struct olia_sets *sets, u32 n, u32 w)
{
	if (sets->self_collected)
		return (s64)cc_div(CC_ONE_Q40, cc_mul(n * sets->n_collected, w));
	if (sets->self_max && sets->n_collected)
		return -(s64)cc_div(CC_ONE_Q40, cc_mul(n * sets->n_max, w));
	return 0;
}

/* Per acknowledged packet, with paths ranked by `metric`. */
CC_INLINE s64 olia_coupled_inc_q40(struct sock *sk, const struct cc_set *set, u32 metric)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	u32 w = set->w[set->self];
	struct olia_sets sets;
	u64 first;

	first = cc_min(cc_over_square_q40(w, cc_ratio_sum_q16(set, set->self)), reno_q40);
	first = cc_hide_from_verifier64(first);
	olia_find_sets(sk, set, metric, &sets);
	return (s64)first + olia_alpha_over_w_q40(&sets, set->n, w);
}

#endif
