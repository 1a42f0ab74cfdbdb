// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Westwood+: Reno that falls back to what the path delivered
 *
 * Idea: estimate the bandwidth that the flow gets from the rate of its ACKs. At a
 *   congestion event keep the window that this bandwidth fills without a queue,
 *   instead of half: a random loss on a path without a queue then costs nothing.
 *   On several subflows each runs alone.
 * Equations: once per RTT, b = packets delivered/time, bw_ns = (7 bw_ns + b)/8, bw =
 *   (7 bw + bw_ns)/8; the first b sets both. Congestion avoidance w += 1/w per
 *   acknowledged packet; congestion event ssthresh = max(bw rtt_min, 2), which becomes
 *   the window.
 * States: slow start (w < ssthresh), congestion avoidance.
 * Parameters' source: Grieco and Mascolo 2004, section 2; the filter's 7/8 as in Linux.
 * Deviations: an RTT is the smoothed one, and may be shorter than the 50 ms that Linux
 *   waits at least. The smallest RTT never expires (Linux: at a timeout). The
 *   first ACK only starts the clock, so that the handshake does not count as a round.
 *   As in Linux, an event raises a window that is smaller than bw rtt_min.
 * On one path: itself.
 * Good at: paths with random loss, where it gets more than Reno
 *   (scenarios/random-loss-link.toml).
 * Bad at: fairness: subflows are uncoupled and take a share each, or more
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Grieco and Mascolo 2004, doi:10.1145/997150.997155
 */
#include "cc.h"

struct westwood {
	u64 begin_us;	     /* when the interval began */
	u64 bw_ns_q40;	     /* filtered once, packets/us; 0: no sample yet */
	u64 bw_q40;	     /* filtered twice, packets/us */
	u32 begin_delivered; /* packets, when the interval began */
	u32 min_rtt_us;	     /* smallest RTT so far */
	u8 begun;	     /* 1: an interval is being measured */
};
CC_STATE(westwood);
CC_UNCOUPLED(westwood);
CC_FIELDS(westwood,
	  CC_FIELD(westwood, bw_q40, "bandwidth", .num = 1000000, .den = 1ull << 40, .unit = "packets/s"),
	  CC_FIELD(westwood, min_rtt_us, "rtt_min", .den = 1000000, .unit = "s"));

/* packets/us in Q40: packets <= 2^20, so <= 2^60. */
static u64 westwood_rate_q40(u32 packets, u64 us)
{
	return cc_div(cc_shl((u64)cc_min(packets, CC_WINDOW_MAX), 40), cc_max(us, 1ull));
}

/* (7 old + sample)/8: both are <= 2^60, and so is the result. */
static u64 westwood_filtered(u64 old, u64 sample)
{
	return cc_add(cc_mul(old, 7), sample) / 8;
}

static void westwood_filter(struct westwood *state, u64 rate_q40)
{
	if (!state->bw_ns_q40) {
		state->bw_ns_q40 = rate_q40;
		state->bw_q40 = rate_q40;
		return;
	}
	state->bw_ns_q40 = westwood_filtered(state->bw_ns_q40, rate_q40);
	state->bw_q40 = westwood_filtered(state->bw_q40, state->bw_ns_q40);
}

/* bw rtt_min, packets. bw is shifted down to 38 bits, rtt <= 2^26: the product is < 2^64. */
static u32 westwood_bdp(u64 bw_q40, u32 rtt_us)
{
	u32 bits = cc_bits(bw_q40);
	u32 s = bits > 38 ? bits - 38 : 0;
	u64 packets = cc_mul(bw_q40 >> s, rtt_us) >> (40 - s);

	return (u32)cc_min(packets, (u64)CC_WINDOW_MAX);
}

static void westwood_begin_interval(struct sock *sk)
{
	struct westwood *state = westwood_state(sk);

	state->begun = 1;
	state->begin_us = cc_now_us(sk);
	state->begin_delivered = tcp_sk(sk)->delivered;
}

static void westwood_measure(struct sock *sk)
{
	struct westwood *state = westwood_state(sk);
	u64 elapsed_us = cc_now_us(sk) - state->begin_us;
	u32 packets = tcp_sk(sk)->delivered - state->begin_delivered;

	if (!cc_srtt_us(sk) || elapsed_us < cc_srtt_us(sk))
		return;
	westwood_filter(state, westwood_rate_q40(packets, elapsed_us));
	westwood_begin_interval(sk);
}

static void westwood_init(struct sock *sk)
{
	westwood_state(sk)->min_rtt_us = CC_RTT_MAX_US;
}

static void westwood_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *state = westwood_state(sk);

	if (sample->rtt_us >= 0)
		state->min_rtt_us = cc_min(state->min_rtt_us, cc_max((u32)sample->rtt_us, 1u));
	if (state->begun)
		westwood_measure(sk);
	else
		westwood_begin_interval(sk);
}

/* Before the first sample the bandwidth is 0 and the floor remains, as in Linux. */
static u32 westwood_ssthresh(struct sock *sk)
{
	const struct westwood *state = westwood_state(sk);

	return cc_max(westwood_bdp(state->bw_q40, state->min_rtt_us), CC_RENO_FLOOR);
}

CC_REGISTER(westwood,
	    .init = westwood_init,
	    .ssthresh = westwood_ssthresh,
	    .cong_avoid = cc_reno_cong_avoid,
	    .pkts_acked = westwood_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
