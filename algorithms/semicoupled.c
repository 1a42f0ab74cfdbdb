// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SEMICOUPLED: coupled increase, uncoupled decrease
 *
 * Idea: a compromise between EWTCP and COUPLED. Less congested paths get more of
 *   the window, but the others keep enough to notice when they become better.
 * Equations: congestion avoidance w_r += min(a/W, 1/w_r) per acknowledged packet,
 *   W = sum w_k; congestion event ssthresh_r = max(w_r/2, 1). In equilibrium
 *   w_r = sqrt(2a) (1/p_r)/sqrt(sum 1/p_k).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: a is "a constant" in the NSDI'11 paper; 1 is the value of
 *   its examples. The total equals one TCP for equal loss rates only if a = 1/n.
 * Deviations: none.
 * On one path: Reno.
 * Good at: keeping both of two unequal paths in use (scenarios/dolia-scenario-1.toml).
 * Bad at: fairness: with a = 1, two subflows take about 1.3 shares of a bottleneck
 *   (scenarios/fidelity/shared-bottleneck.toml).
 * Reference: Wischik et al., NSDI 2011, section 2.4
 */
#include "cc.h"

CC_PARAMS(semicoupled,
	  CC_PARAM(a, .initial = 1, .min = 1.0 / 1024, .max = 64, .scale = CC_ONE_Q16,
		   .help = "aggressiveness a of the increase a/W"));

#define SEMICOUPLED_FLOOR 1u	/* packets, with several subflows */

/* a/W in Q40: a <= 2^22 in Q16, so the dividend is <= 2^46. */
static u64 semicoupled_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return reno_q40;
	return cc_min(cc_div(cc_shl((u64)semicoupled_params(sk)->a, 24), cc_total_window(&set)),
		      reno_q40);
}

static void semicoupled_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)semicoupled_inc_q40(sk));
}

static u32 semicoupled_ssthresh(struct sock *sk)
{
	return cc_coupled_halved(sk, SEMICOUPLED_FLOOR);
}

CC_COUPLED(semicoupled);
CC_REGISTER(semicoupled,
	    .ssthresh = semicoupled_ssthresh,
	    .cong_avoid = semicoupled_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
