// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * LIA: linked increases
 *
 * Idea: all subflows share one increase, chosen so that the whole connection is as
 *   fast as one TCP on its best path, and no subflow is faster than a TCP would be
 *   on its own path.
 * Equations: RFC 6356 eq. 1 and 2: congestion avoidance w_r += min(alpha/W, 1/w_r)
 *   per acknowledged packet, with alpha/W = max(w_k/tau_k^2)/(sum w_k/tau_k)^2;
 *   congestion event ssthresh_r = max(w_r/2, 2). Computed as w_b/S^2 with
 *   b = argmax w/tau^2 and S = sum w_k tau_b/tau_k, which is the same.
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: none to choose.
 * Deviations: alpha is exact at every ACK. Dialect mptcp-0.95 has one alpha of
 *   max(floor(2^12 w_b/S^2), 1) and grows by a packet per max(2^12/alpha, w_r) ACKs:
 *   too slow by 1.7 on two paths of 600 packets, too fast by 2.9 on two of 3000, and
 *   Reno from 4096 packets on. Its b has the largest floor(w 2^32/(8 tau)^2), the last
 *   subflow in a tie, and all are 0 when tau > 8.2 ms sqrt(w). That kernel refreshes
 *   alpha only when a window or state changes, and counts the window of a subflow in
 *   recovery as it is; the dialect does neither.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Bad at: private paths with random loss, where it gets half of what uncoupled Reno
 *   gets (scenarios/random-loss-link.toml).
 * Reference: RFC 6356, https://www.rfc-editor.org/rfc/rfc6356
 */
#include "dialect.h"
#include "lia.h"

CC_PARAMS(lia,
	  CC_DIALECT);

/* ---- dialect mptcp-0.95 ---- */

#define LIA_ALPHA_ONE (1u << 12)

/* w/tau^2 as in that kernel, whose RTTs are in eighths of us: (8 t)^2 <= 2^58. */
static u64 lia_quality(u32 w, u32 t)
{
	u64 eighths = 8 * (u64)t;

	return cc_div((u64)w << 32, cc_mul(eighths, eighths));
}

static u32 lia_last_best(const struct cc_set *set)
{
	u32 best = 0;

	cc_for_each(k, 1, set)
		best = lia_quality(set->w[k], set->t[k]) >= lia_quality(set->w[best], set->t[best])
			       ? cc_index(k)
			       : best;
	return best;
}

/* ACKs per packet of growth: alpha is 1..2^12, as w_b/S^2 <= 1. */
static u64 lia_acks(const struct cc_set *set)
{
	u32 best = lia_last_best(set);
	u64 alpha = cc_over_square_q40(set->w[best], cc_ratio_sum_q16(set, best)) >> 28;

	return cc_max(cc_div(LIA_ALPHA_ONE, cc_max(alpha, 1ull)), (u64)set->w[set->self]);
}

/* Rounded up, so that this number of ACKs makes a whole packet. */
static u64 lia_dialect_inc_q40(struct sock *sk)
{
	struct cc_set set;
	u64 acks;

	if (!cc_coupling_set(sk, &set))
		return cc_reno_inc_q40(sk);
	acks = lia_acks(&set);
	return cc_div(CC_ONE_Q40 + acks - 1, acks);
}

/* ---- hooks ---- */

static u64 lia_growth_q40(struct sock *sk)
{
	return CC_IS_SPEC(lia, sk) ? lia_inc_q40(sk) : lia_dialect_inc_q40(sk);
}

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)lia_growth_q40(sk));
}

CC_COUPLED(lia);
CC_REGISTER(lia,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = lia_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
