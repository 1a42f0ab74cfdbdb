// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Vegas: keep a few packets in the queue, measured by delay
 *
 * Idea: the round-trip time above its smallest value tells how many packets the
 *   flow keeps queued. Grow while there are too few to fill the path, shrink while
 *   there are too many, so that nothing has to be lost. On several subflows each
 *   runs alone.
 * Equations: once per round, diff = w (rtt - base)/rtt with the mean RTT of the
 *   round and the smallest RTT seen. Congestion avoidance: w += 1 if diff < alpha,
 *   w -= 1 if diff > beta, never below 2. Slow start ends when diff > gamma, with
 *   w = min(w, w base/rtt + 1) and ssthresh = w - 1. Congestion event ssthresh =
 *   max(w/2, 2).
 * States: slow start, congestion avoidance; a round with at most two RTT samples
 *   behaves as Reno's.
 * Parameters' source: alpha = 2, beta = 4, gamma = 1 packets: Brakmo and Peterson
 *   1995, sections 3.2 and 3.3, and Linux.
 * Deviations: slow start grows in every round, as in Linux; slow_start = other is
 *   the paper's. The round counts with its mean RTT, as in the paper (Linux: with its
 *   smallest). Losses are found and repaired by the sender's TCP, not by the paper's
 *   finer timer. The base RTT is measured anew after a timeout, and after an idle period
 *   that reduces the window (Linux: not after a timeout, but after every idle period).
 *   The window grows only while it is used (Linux: always).
 * On one path: itself.
 * Good at: short queues: the RTT stays near that of the empty path
 *   (scenarios/dolia-scenario-1.toml).
 * Bad at: competing with a loss-based flow, which fills the queue that Vegas leaves
 *   empty (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Brakmo and Peterson 1995, doi:10.1109/49.464716
 */
#include "rounds.h"

CC_PARAMS(vegas,
	  CC_PARAM(alpha, .initial = 2, .min = 1, .max = 1000,
		   .help = "queued packets below which the window grows"),
	  CC_PARAM(beta, .initial = 4, .min = 1, .max = 1000,
		   .help = "queued packets above which the window shrinks"),
	  CC_PARAM(gamma, .initial = 1, .min = 1, .max = 1000,
		   .help = "queued packets that end slow start"),
	  CC_PARAM(slow_start, .initial = 0, .max = 1, .names = "every|other",
		   .help = "rounds in which slow start grows (Linux: every, the paper: every other one)"));

#define VEGAS_FLOOR 2u /* packets, as Linux */

struct vegas {
	struct cc_rounds rounds;
	u8 rests; /* 1: slow start does not grow in this round */
};
CC_STATE(vegas);
CC_UNCOUPLED(vegas);
CC_FIELDS(vegas, CC_FIELD(vegas, rounds.base_us, "base", .den = 1000000, .unit = "s"));

/* ssthresh below the window, so that slow start does not undo the decision. */
static void vegas_leave_slow_start(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = cc_max(cc_min(tp->snd_ssthresh, tp->snd_cwnd - 1), VEGAS_FLOOR);
}

static void vegas_shrink(struct sock *sk, u64 w_q16)
{
	cc_set_window_q16(sk, cc_max(w_q16, (u64)VEGAS_FLOOR << 16));
	vegas_leave_slow_start(sk);
}

/* Slow start on an ACK that decides nothing. */
static void vegas_slow_start(struct sock *sk, u32 acked)
{
	if (cc_is_cwnd_limited(sk) && !vegas_state(sk)->rests)
		cc_slow_start(sk, acked);
}

/* A round of Reno: the growth of all its ACKs together. */
static void vegas_reno_round(struct sock *sk, u32 acked)
{
	if (cc_in_slow_start(sk))
		vegas_slow_start(sk, acked);
	else if (cc_is_cwnd_limited(sk))
		cc_grow_q40(sk, CC_ONE_Q40);
}

static void vegas_end_slow_start_round(struct sock *sk, const struct cc_round *round, u32 acked)
{
	u32 gamma = vegas_params(sk)->gamma;

	if (cc_queued_by_rtt_q16(round) <= cc_packets_by_rtt_q16(gamma, round))
		vegas_slow_start(sk, acked);
	else
		vegas_shrink(sk, cc_min(round->w_q16, cc_unqueued_q16(round) + CC_ONE_Q16));
}

static void vegas_avoid_congestion(struct sock *sk, const struct cc_round *round)
{
	u64 queued = cc_queued_by_rtt_q16(round);

	if (queued > cc_packets_by_rtt_q16(vegas_params(sk)->beta, round))
		vegas_shrink(sk, round->w_q16 - CC_ONE_Q16);
	else if (queued < cc_packets_by_rtt_q16(vegas_params(sk)->alpha, round) &&
		 cc_is_cwnd_limited(sk))
		cc_grow_q40(sk, CC_ONE_Q40);
}

static void vegas_end_round(struct sock *sk, u32 acked)
{
	struct vegas *state = vegas_state(sk);
	struct cc_round round;

	if (!cc_round_measured(sk, &state->rounds, &round))
		vegas_reno_round(sk, acked);
	else if (cc_in_slow_start(sk))
		vegas_end_slow_start_round(sk, &round, acked);
	else
		vegas_avoid_congestion(sk, &round);
	state->rests = vegas_params(sk)->slow_start && !state->rests;
}

static void vegas_init(struct sock *sk)
{
	cc_round_restart(sk, &vegas_state(sk)->rounds);
}

static void vegas_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	cc_round_sample(&vegas_state(sk)->rounds, sample);
}

static void vegas_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cc_rounds *rounds = &vegas_state(sk)->rounds;

	if (!cc_before(ack, rounds->end)) {
		vegas_end_round(sk, acked);
		cc_round_begin(sk, rounds);
	} else if (cc_in_slow_start(sk)) {
		vegas_slow_start(sk, acked);
	}
}

/* Packets sent before the state changed say nothing about the window after it. */
static void vegas_set_state(struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Loss)
		cc_round_restart(sk, &vegas_state(sk)->rounds);
	else if (new_state == TCP_CA_Open)
		cc_round_begin(sk, &vegas_state(sk)->rounds);
}

static void vegas_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		cc_round_restart(sk, &vegas_state(sk)->rounds);
}

CC_REGISTER(vegas,
	    .init = vegas_init,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = vegas_cong_avoid,
	    .set_state = vegas_set_state,
	    .cwnd_event = vegas_cwnd_event,
	    .pkts_acked = vegas_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
