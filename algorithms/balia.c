// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BALIA: balanced linked adaptation
 *
 * Idea: a point between LIA and OLIA that keeps the balance of friendliness,
 *   responsiveness and window oscillation; found from a fluid model.
 * Equations: x = w/tau, alpha_r = max x/x_r. Congestion avoidance, per
 *   acknowledged packet, w_r += x_r/(tau_r (sum x)^2) (1 + alpha_r)/2 (4 + alpha_r)/5
 *   = (x_r + m)(4 x_r + m)/(10 w_r (sum x)^2) with m = max x; congestion event
 *   ssthresh_r = max(w_r - (w_r/2) min(alpha_r, 3/2), 1).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: draft-walid-mptcp-congestion-control-04.
 * Deviations: alpha is a real number in the decrease. Dialect mptcp-0.95 rounds it
 *   down, so that the decrease is w/2 or 3w/4 and never between, with w/2 rounded
 *   down first; its rates are whole bytes per second, shifted right by 5 until the
 *   largest is at most 2^25. A packet is added at the ACK after as many as its whole
 *   (sum x)^2 10 w_r/((x_r + m)(4 x_r + m)), and an ACK in slow start counts there only.
 *   That kernel keeps both results until a window or state changes; the dialect does
 *   not. The specification's increase is capped at 1/w_r, which only rounding can exceed.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck, and more of a worse path
 *   than OLIA (scenarios/shared-bottleneck-fairness.toml,
 *   scenarios/dolia-scenario-1.toml).
 * Bad at: the worse of two private, lossy paths: it gets less of it than uncoupled Reno
 *   (scenarios/dolia-scenario-1.toml).
 * Reference: Peng et al. 2016, doi:10.1109/TNET.2014.2379698; draft-walid-mptcp-congestion-control-04
 */
#include "balia-dialect.h"

CC_PARAMS(balia,
	  CC_DIALECT);

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	balia_any_cong_avoid(sk, acked, CC_IS_SPEC(balia, sk));
}

static u32 balia_ssthresh(struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set_for_loss(sk, &set))
		return cc_halved(sk, CC_RENO_FLOOR);
	return balia_any_decreased(sk, &set, CC_IS_SPEC(balia, sk));
}

CC_COUPLED(balia);
CC_REGISTER(balia,
	    .ssthresh = balia_ssthresh,
	    .cong_avoid = balia_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
