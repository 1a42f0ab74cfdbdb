// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Template for a coupled algorithm: Reno weighted by the packets between losses
 *
 * Idea: an example to copy, with everything that a coupled algorithm may need: a
 *   coupling set, state that its siblings see, a parameter, and a floor. Each subflow
 *   is a Reno flow whose increase is weighted by its share of the connection's packets
 *   between losses, so that traffic moves to the paths that lose least.
 * Equations: l_r = packets acknowledged between the last two losses or since the last
 *   one, whichever is more; s_r = max(l_r/sum l_k, least_share). Congestion avoidance
 *   w_r += s_r^2/w_r per acknowledged packet; congestion event ssthresh_r =
 *   max(w_r/2, 1).
 * States: slow start (w < ssthresh), congestion avoidance, both per subflow.
 * Parameters' source: least_share is our choice; it keeps every path probed. The square
 *   makes n equal subflows together as aggressive as one TCP, since the window is
 *   proportional to the square root of the increase.
 * Deviations: none.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Bad at: filling private paths, of which it uses less than Reno
 *   (scenarios/dolia-scenario-1.toml).
 * Reference: none; the packets between losses are those of OLIA
 *   (draft-khalili-mptcp-congestion-control-05, section 3)
 */
#include "cc.h"

CC_PARAMS(template_coupled,
	  CC_PARAM(least_share, .initial = 0.0625, .min = 0.0625, .max = 1, .scale = CC_ONE_Q16,
		   .help = "least share of the increase that a path gets (s_r)"));

#define TEMPLATE_COUPLED_FLOOR 1u	/* packets, with several subflows */

/* What siblings read. */
struct template_coupled_interval {
	u32 l1; /* packets acknowledged between the last two losses */
	u32 l2; /* packets acknowledged since the last loss */
};

struct template_coupled {
	struct template_coupled_interval interval; /* first, since it is shared */
	u32 events;				   /* congestion events so far */
};
CC_STATE(template_coupled);
CC_SHARED(template_coupled, interval);
CC_FIELDS(template_coupled,
	  CC_FIELD(template_coupled, interval.l1, "l1", .unit = "packets"),
	  CC_FIELD(template_coupled, interval.l2, "l2", .unit = "packets"),
	  CC_FIELD(template_coupled, events, "events", .unit = "congestion events"));

/* l_r, at least 1: a divisor. */
static u32 template_coupled_length(struct template_coupled_interval interval)
{
	return cc_max(cc_max(interval.l1, interval.l2), 1u);
}

/* sum l_k, at most 2^35. */
static u64 template_coupled_total(const struct sock *sk, const struct cc_set *set)
{
	u64 sum = 0;

	cc_for_each(k, 0, set) {
		u32 length = template_coupled_length(template_coupled_shared(sk, set, k));

		sum = cc_hide_from_verifier64(sum + length);
	}
	return sum;
}

/* s_r, at most 2^16 in Q16: l_r < 2^32, so the dividend is < 2^48. */
static u32 template_coupled_share_q16(u32 length, u64 total, u32 least_q16)
{
	return cc_max((u32)cc_div(cc_shl((u64)length, 16), total), least_q16);
}

/* s_r^2/w_r in Q40: s_r^2 is <= 2^32 in Q32, so the dividend is <= 2^40. */
static u64 template_coupled_inc_q40(u32 share_q16, u32 w)
{
	return cc_div(cc_shl(cc_mul(share_q16, share_q16), 8), w);
}

static u64 template_coupled_growth_q40(struct sock *sk)
{
	u32 least_q16 = template_coupled_params(sk)->least_share;
	struct cc_set set;
	u32 length;

	if (!cc_coupling_set(sk, &set))
		return cc_reno_inc_q40(sk);
	length = template_coupled_length(template_coupled_state(sk)->interval);
	return template_coupled_inc_q40(template_coupled_share_q16(length,
								   template_coupled_total(sk, &set),
								   least_q16),
					set.w[set.self]);
}

static void template_coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)template_coupled_growth_q40(sk));
}

static void template_coupled_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct template_coupled_interval *interval = &template_coupled_state(sk)->interval;

	/* Up to 2^32 - 1. */
	interval->l2 += cc_min(sample->pkts_acked, ~interval->l2);
}

static u32 template_coupled_ssthresh(struct sock *sk)
{
	struct template_coupled *state = template_coupled_state(sk);

	state->interval.l1 = state->interval.l2;
	state->interval.l2 = 0;
	state->events++;
	return cc_coupled_halved(sk, TEMPLATE_COUPLED_FLOOR);
}

CC_REGISTER(template_coupled,
	    .ssthresh = template_coupled_ssthresh,
	    .cong_avoid = template_coupled_cong_avoid,
	    .pkts_acked = template_coupled_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
