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
 *   max(floor(2^12 w_b/S^2), 1) and adds a packet at the ACK after max(2^12/alpha, w_r):
 *   too slow by 1.7 on two paths of 600 packets, too fast by 2.9 on two of 3000, and
 *   Reno from 4096 packets on. Its b has the largest floor(w 2^32/(8 tau)^2), the oldest
 *   subflow in a tie, and all are 0 when tau > 8.2 ms sqrt(w). An ACK in slow start
 *   counts there only. That kernel refreshes alpha only when a window or state changes,
 *   and counts the window of a subflow in recovery as it is; the dialect does neither.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Bad at: private paths with random loss, where it gets half of what uncoupled Reno
 *   gets (scenarios/random-loss-link.toml).
 * Reference: RFC 6356, https://www.rfc-editor.org/rfc/rfc6356
 */
#include "lia-dialect.h"

CC_PARAMS(lia,
	  CC_DIALECT);

static void lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	lia_any_cong_avoid(sk, acked, CC_IS_SPEC(lia, sk));
}

CC_COUPLED(lia);
CC_REGISTER(lia,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = lia_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
