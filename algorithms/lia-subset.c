// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * LIA-subset: linked increases over every set of paths
 *
 * Idea: LIA limits the whole connection; this rule limits every set of its paths in
 *   the same way. No set of subflows is faster than one TCP on the best path among
 *   them, so the connection harms nobody at a bottleneck that only some of its paths
 *   share.
 * Equations: congestion avoidance, per acknowledged packet, w_r += the minimum of
 *   max_S(w_k/tau_k^2)/(sum_S w_k/tau_k)^2 over all sets S of subflows that contain
 *   r; S = {r} gives 1/w_r. Congestion event ssthresh_r = max(w_r/2, 2).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: none to choose.
 * Deviations: the thesis prints the minimum over all sets; those without r say
 *   nothing about r, so S contains r as in the NSDI'11 paper. Not all 2^n sets are
 *   visited: with s the best path of S, every path that is no better than s only
 *   adds to the denominator, so the minimum is among the sets {k: k no better than s}
 *   for those s that are no worse than r.
 * On one path: Reno. With two it is LIA.
 * Good at: taking no more than one TCP at a shared bottleneck
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Bad at: private paths with random loss, where it gets half of what uncoupled Reno
 *   gets (scenarios/random-loss-link.toml).
 * Reference: Wischik et al., NSDI 2011, section 2.5 and appendix
 */
#include "cc.h"

/* w_i/tau_i^2 >= w_j/tau_j^2, exactly. */
static bool lia_subset_no_worse(const struct cc_set *set, u32 i, u32 j)
{
	return cc_cmp_per_rtt2(set->w[i], set->t[i], set->w[j], set->t[j]) >= 0;
}

/* The step of the set {k: k no better than s}, whose best path is s. */
static u64 lia_subset_step_q40(const struct cc_set *set, u32 s)
{
	u64 sum = 0;

	cc_for_each(k, 0, set) {
		u64 ratio = lia_subset_no_worse(set, s, k) ? cc_ratio_q16(set, k, s) : 0;

		sum = cc_hide_from_verifier64(cc_add(sum, ratio));
	}
	return cc_over_square_q40(set->w[s], sum);
}

static u64 lia_subset_inc_q40(struct sock *sk)
{
	u64 least_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return least_q40;
	cc_for_each(s, 0, &set) {
		if (lia_subset_no_worse(&set, s, cc_index(set.self)))
			least_q40 = cc_min(least_q40, lia_subset_step_q40(&set, s));
		least_q40 = cc_hide_from_verifier64(least_q40);
	}
	return least_q40;
}

static void lia_subset_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)lia_subset_inc_q40(sk));
}

CC_COUPLED(lia_subset);
CC_REGISTER(lia_subset,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = lia_subset_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
