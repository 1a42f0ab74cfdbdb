// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Template: additive increase, multiplicative decrease with free constants
 *
 * Idea: the smallest complete algorithm, as an example to copy. It adds a constant
 *   number of packets per round trip and multiplies the window by a constant at each
 *   congestion event; with its defaults it is Reno.
 * Equations: congestion avoidance w += a/w per acknowledged packet; congestion
 *   event ssthresh = max(b w, 2).
 * States: slow start (w < ssthresh), congestion avoidance.
 * Parameters' source: a = 1 and b = 1/2 are Reno's (RFC 5681).
 * Deviations: none.
 * On one path: itself (it knows nothing of other subflows).
 * Good at: private paths, which it fills as Reno does
 *   (scenarios/dolia-scenario-1.toml).
 * Bad at: fairness: its subflows are uncoupled
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Chiu and Jain 1989, doi:10.1016/0169-7552(89)90019-6
 */
#include "cc.h"

CC_PARAMS(template,
	  CC_PARAM(increase, .initial = 1, .min = 1.0 / 1024, .max = 64, .scale = CC_ONE_Q16,
		   .help = "packets added per round trip in congestion avoidance (a)"),
	  CC_PARAM(decrease, .initial = 0.5, .min = 0.1, .max = 0.95, .scale = CC_ONE_Q16,
		   .help = "fraction of the window kept at a congestion event (b)"));

struct template {
	u32 events; /* congestion events so far */
};
CC_STATE(template);
CC_UNCOUPLED(template);
CC_FIELDS(template, CC_FIELD(template, events, "events", .unit = "congestion events"));

/* a/w in Q40: a <= 2^22 in Q16, so the dividend is <= 2^46. */
static u64 template_inc_q40(u32 w, u32 a_q16)
{
	return cc_div(cc_shl((u64)a_q16, 24), w);
}

/* b w: b < 2^16 in Q16, w <= 2^20. */
static u32 template_decreased(u32 w, u32 b_q16)
{
	return cc_max((u32)(cc_mul(w, b_q16) >> 16), CC_RENO_FLOOR);
}

static void template_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked,
				   template_inc_q40(cc_window(sk), template_params(sk)->increase));
}

static u32 template_ssthresh(struct sock *sk)
{
	template_state(sk)->events++;
	return template_decreased(cc_window(sk), template_params(sk)->decrease);
}

CC_REGISTER(template,
	    .ssthresh = template_ssthresh,
	    .cong_avoid = template_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
