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
 * Deviations: alpha is exact at every ACK. The out-of-tree kernel rounds it to a
 *   whole number of ACKs and refreshes it rarely, and is too slow or too fast by
 *   factors of 2 to 3 on some paths; this is the RFC.
 * On one path: Reno.
 * Reference: RFC 6356, https://www.rfc-editor.org/rfc/rfc6356
 */
#include "cc.h"

static u64 lia_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;
	u32 best;

	if (!cc_coupling_set(sk, &set))
		return reno_q40;
	best = cc_best_path(&set);
	return cc_min(cc_over_square_q40(set.w[best], cc_ratio_sum_q16(&set, best)), reno_q40);
}

CC_GROWTH(lia, lia_inc_q40);

CC_HOOK(u32, lia_ssthresh, struct sock *sk)
{
	return cc_halved(sk, CC_FLOOR_SINGLE);
}

CC_RENO_UNDO(lia);

CC_REGISTER(lia, CC_COUPLED(0),
	    .ssthresh = CC_OP(lia_ssthresh),
	    .cong_avoid = CC_OP(lia_cong_avoid),
	    .undo_cwnd = CC_OP(lia_undo_cwnd));
