// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * delayvar: LIA that holds its window while the delay varies
 *
 * Idea: a subflow whose RTT has risen well above its minimum does not grow, and a loss
 *   on a subflow whose RTT has not risen is not taken for full congestion. This is the
 *   window part of a scheduling approach; its choice of subflows is the scheduler of
 *   the same name.
 * Equations: mu = (rtt - rtt_min)/rtt_min of the latest RTT sample; stable means mu <=
 *   threshold (algorithm 1, "alphaThresh"). Congestion avoidance: no growth unless
 *   stable; stable, eq. 3.2 and 3.3 with the denominator squared, which is LIA.
 *   Congestion event: ssthresh = max(b w, 2), b = 1/2 if unstable, else max(1/2, 1/(1 + mu)).
 * States: slow start as usual; congestion avoidance, stable or unstable.
 * Parameters' source: the paper leaves the threshold open; 0.5 is a choice. decrease =
 *   halved leaves the adaptive fast retransmit out, which the paper does not define.
 * Deviations: mu, the threshold and the adaptive fast retransmit are undefined in the
 *   paper; this is one complete reading. A timeout uses the same b, since the hook cannot
 *   tell the two apart; the window restarts at 1, as in Reno. rtt_min is the smallest
 *   sample of the subflow's life, so a subflow that moves to a longer path stays
 *   unstable and does not grow.
 * On one path: Reno while stable; it stops growing when the queue holds threshold x
 *   the propagation delay.
 * Good at: paths with random loss and a short queue, where it gets more than LIA
 *   (scenarios/random-loss-link.toml).
 * Bad at: long queues: it stops growing as soon as the delay varies, and gets less than
 *   a TCP beside one (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Kushwah and Kumar 2024, Scalable Computing: Practice and Experience
 */
#include "lia.h"

#define DELAYVAR_ONE 1000u /* 1.0 of the threshold */

enum {
	DELAYVAR_EASED,
	DELAYVAR_HALVED
};

CC_PARAMS(delayvar,
	  CC_PARAM(threshold, .initial = 0.5, .max = 100, .scale = DELAYVAR_ONE,
		   .help = "largest variation (rtt - rtt_min)/rtt_min of a stable subflow"),
	  CC_PARAM(decrease, .max = DELAYVAR_HALVED, .names = "eased|halved",
		   .help = "window of a stable subflow after a loss: w/(1 + mu), or half as in LIA"));

#define DELAYVAR_FLOOR 2u /* packets, as Reno */

struct delayvar {
	u32 rtt_us; /* latest sample, 0: none yet */
	u32 min_us; /* smallest sample */
};
CC_STATE(delayvar);
CC_COUPLED(delayvar);
CC_FIELDS(delayvar, CC_FIELD(delayvar, rtt_us, "rtt", .den = 1000000, .unit = "s"),
	  CC_FIELD(delayvar, min_us, "rtt_min", .den = 1000000, .unit = "s"));

/* mu <= threshold. RTTs <= 2^26, the threshold < 2^17: both sides < 2^43. */
static bool delayvar_is_stable(struct sock *sk)
{
	const struct delayvar *state = delayvar_state(sk);

	return cc_mul(state->rtt_us - state->min_us, DELAYVAR_ONE) <=
	       cc_mul(delayvar_params(sk)->threshold, state->min_us);
}

static u64 delayvar_inc_q40(struct sock *sk)
{
	return delayvar_is_stable(sk) ? lia_inc_q40(sk) : 0;
}

/* w/(1 + mu) = w rtt_min/rtt: < 2^46 before the division. */
static u32 delayvar_eased(struct sock *sk)
{
	const struct delayvar *state = delayvar_state(sk);

	if (!state->rtt_us)
		return 0;
	return (u32)cc_div(cc_mul(cc_window(sk), state->min_us), state->rtt_us);
}

static void delayvar_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)delayvar_inc_q40(sk));
}

static void delayvar_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct delayvar *state = delayvar_state(sk);

	if (sample->rtt_us < 0)
		return;
	state->rtt_us = cc_clamp((u32)sample->rtt_us, 1u, CC_RTT_MAX_US);
	state->min_us = state->min_us ? cc_min(state->min_us, state->rtt_us) : state->rtt_us;
}

static u32 delayvar_ssthresh(struct sock *sk)
{
	u32 halved = cc_halved(sk, DELAYVAR_FLOOR);

	if (delayvar_params(sk)->decrease == DELAYVAR_HALVED || !delayvar_is_stable(sk))
		return halved;
	return cc_max(halved, delayvar_eased(sk));
}

CC_REGISTER(delayvar,
	    .ssthresh = delayvar_ssthresh,
	    .cong_avoid = delayvar_cong_avoid,
	    .pkts_acked = delayvar_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
