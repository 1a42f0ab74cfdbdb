// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * mCompound: Compound TCP on several paths
 *
 * Idea: the window is the sum of a loss window, which the paths couple as LIA does, and
 *   a delay window, which fills a path quickly as long as it has no queue, in
 *   proportion to the path's part of the connection's rate, and gives way to the queue.
 * Equations: w = c + d. Congestion avoidance, per acknowledged packet, c += LIA's
 *   increase for the windows w. Once per round, with base the smallest RTT and rtt the
 *   round's mean, diff = w (rtt - base)/rtt: d += s max(0.125 w^0.75 - 1, 0) with
 *   s = x_r/sum x_k, x = w/tau, if diff < gamma; else d = max(d - diff, 0). Congestion
 *   event: c' = min(c, max(c/2, 1)), d = max(w/2 - c', 0). Timeout: c = 1, d = 0.
 * States: slow start (c only, d = 0), congestion avoidance, both per subflow.
 * Parameters' source: gamma 30, alpha 0.125, k 0.75, beta 0.5, zeta 1 of Compound TCP.
 * Deviations: a reconstruction: only the abstract of the paper was available ("extends
 *   Compound TCP"), so the loss window's coupling and the delay window's share are
 *   assumptions. d grows by w^k; Compound TCP's draft prints d^k, with which d could never
 *   leave 0. gamma is constant; its tuning within [5, 30] is left out. The socket's
 *   cwnd and ssthresh are those of w, so that recovery goes to c' + d and not to c'; when
 *   the queue takes d back, ssthresh follows w down, so that slow start does not fill it
 *   again. After an idle period d = 0 and w, which the socket reduces, is c.
 * On one path: Compound TCP, not Reno; a loss halves w.
 * Good at: long fast private paths: the delay window soon fills them
 *   (scenarios/kernel-dialects.toml).
 * Bad at: fairness: with its delay window it takes a tenth more than a TCP at a shared
 *   bottleneck (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Ha et al. 2014, "mCompound"; Tan et al. 2006, doi:10.1109/INFOCOM.2006.188
 */
#include "lia.h"
#include "rounds.h"

CC_PARAMS(mcompound,
	  CC_PARAM(gamma, .initial = 30, .min = 1, .max = 1000,
		   .help = "queued packets from which on the delay window gives way (Compound TCP: 30)"));

#define MCOMPOUND_FLOOR 1u	/* packets, with several subflows */

struct mcompound {
	struct cc_rounds rounds;
	u64 delay_window_q16; /* d, at most the window */
	u64 prior_window_q16; /* d before the last reduction */
	u32 loss_threshold;   /* packets, of c alone: for a timeout */
	u32 gamma;	      /* packets, the parameter */
};
CC_STATE(mcompound);
CC_COUPLED(mcompound);
CC_FIELDS(mcompound,
	  CC_FIELD(mcompound, delay_window_q16, "d", .den = CC_ONE_Q16, .unit = "packets"),
	  CC_FIELD(mcompound, rounds.base_us, "base", .den = 1000000, .unit = "s"),
	  CC_FIELD(mcompound, gamma, "gamma", .unit = "packets"));

/* ---- the model ---- */

/* The square root, rounded down, bit by bit. */
static u64 mcompound_sqrt(u64 x)
{
	u64 root = 0, rest = x;

	for (u32 bit = 32; bit > 0; bit--) {
		u64 step = 1ull << (2 * (bit - 1));
		u64 tried = root + step;
		bool fits = rest >= tried;

		rest = cc_hide_from_verifier64(rest - (fits ? tried : 0));
		root = cc_hide_from_verifier64((root >> 1) + (fits ? step : 0));
	}
	return root;
}

/*
 * w^(3/4) = sqrt(w) sqrt(sqrt(w)) in Q16: w < 2^37 in Q16, so the first root is < 2^31 in
 * Q20 and the second < 2^32 in Q26.
 */
static u64 mcompound_power_q16(u64 w_q16)
{
	u64 root_q20 = mcompound_sqrt(cc_shl(w_q16, 24));
	u64 fourth_q26 = mcompound_sqrt(cc_shl(root_q20, 32));

	return cc_mul(root_q20, fourth_q26) >> 30;
}

/* max(0.125 w^0.75 - 1, 0) in Q16: < 2^30. */
static u64 mcompound_gain_q16(u64 w_q16)
{
	u64 power_q16 = mcompound_power_q16(w_q16) >> 3;

	return power_q16 > CC_ONE_Q16 ? power_q16 - CC_ONE_Q16 : 0;
}

/* x_r/sum x_k in Q27 as w_r/sum(w_k tau_r/tau_k), which is at most 1; 1 on one path. */
static u64 mcompound_share_q27(const struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return 1 << 27;
	return cc_div(cc_shl((u64)set.w[set.self], 43), cc_ratio_sum_q16(&set, set.self));
}

/* ---- the two windows ---- */

/* d, which leaves c at least a packet of a window that the engine may have cut since. */
static u64 mcompound_delay_q16(struct sock *sk)
{
	u64 most_q16 = cc_window_q16(sk) - CC_ONE_Q16;

	return cc_min(mcompound_state(sk)->delay_window_q16, most_q16);
}

/* A path without a queue: d grows by the path's share of Compound TCP's gain. */
static void mcompound_fill(struct sock *sk, const struct cc_round *round)
{
	u64 more_q16 = cc_mul(mcompound_share_q27(sk), mcompound_gain_q16(round->w_q16)) >> 27;
	u64 before_q16 = cc_window_q16(sk);

	if (!cc_is_cwnd_limited(sk))
		return;
	cc_set_window_q16(sk, before_q16 + more_q16);
	/* As much as the clamp allowed. */
	more_q16 = cc_max(cc_window_q16(sk), before_q16) - before_q16;
	mcompound_state(sk)->delay_window_q16 = mcompound_delay_q16(sk) + more_q16;
}

/* A path with a queue: d shrinks by the packets that are queued. */
static void mcompound_drain(struct sock *sk, const struct cc_round *round, u64 queued_q16)
{
	u64 delay_q16 = mcompound_delay_q16(sk);
	u64 less_q16 = cc_min(queued_q16, delay_q16);
	struct tcp_sock *tp = tcp_sk(sk);

	mcompound_state(sk)->delay_window_q16 = delay_q16 - less_q16;
	cc_set_window_q16(sk, round->w_q16 - less_q16);
	tp->snd_ssthresh = cc_min(tp->snd_ssthresh, tp->snd_cwnd);
}

/* ---- rounds ---- */

static void mcompound_end_round(struct sock *sk)
{
	struct mcompound *state = mcompound_state(sk);
	struct cc_round round;
	u64 queued_q16;

	if (cc_in_slow_start(sk) || !cc_round_measured(sk, &state->rounds, &round))
		return;
	queued_q16 = cc_div(cc_queued_by_rtt_q16(&round), round.rtt_us);
	if (queued_q16 < cc_shl((u64)state->gamma, 16))
		mcompound_fill(sk, &round);
	else
		mcompound_drain(sk, &round, queued_q16);
}

/* ---- hooks ---- */

static void mcompound_reset(struct sock *sk)
{
	struct mcompound *state = mcompound_state(sk);

	state->delay_window_q16 = 0;
	cc_round_restart(sk, &state->rounds);
}

static void mcompound_init(struct sock *sk)
{
	mcompound_reset(sk);
	mcompound_state(sk)->gamma = mcompound_params(sk)->gamma;
}

static void mcompound_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	cc_round_sample(&mcompound_state(sk)->rounds, sample);
}

static void mcompound_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	bool ends = !cc_before(ack, mcompound_state(sk)->rounds.end);

	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)lia_inc_q40(sk));
	if (!ends)
		return;
	mcompound_end_round(sk);
	cc_round_begin(sk, &mcompound_state(sk)->rounds);
}

/* The window after the loss is c' + d, whose fraction counts when the engine sets it. */
static u32 mcompound_ssthresh(struct sock *sk)
{
	struct mcompound *state = mcompound_state(sk);
	u64 w_q16 = cc_window_q16(sk);
	u64 delay_q16 = mcompound_delay_q16(sk);
	u64 loss_q16 = w_q16 - delay_q16;
	struct cc_set set;
	u32 floor = cc_coupling_set(sk, &set) ? MCOMPOUND_FLOOR : CC_RENO_FLOOR;
	u64 threshold_q16 = cc_max(loss_q16 / 2, (u64)floor << 16);

	loss_q16 = cc_min(loss_q16, threshold_q16);
	state->loss_threshold = (u32)(threshold_q16 >> 16);
	state->prior_window_q16 = delay_q16;
	state->delay_window_q16 = cc_max(w_q16 / 2, loss_q16) - loss_q16;
	w_q16 = cc_max(loss_q16 + state->delay_window_q16, (u64)floor << 16);
	return cc_ssthresh_of_q16(sk, w_q16);
}

/* After a timeout there is no delay window, and slow start ends where c alone would be. */
static void mcompound_after_timeout(struct sock *sk)
{
	struct mcompound *state = mcompound_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	state->delay_window_q16 = 0;
	if (state->loss_threshold)
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, state->loss_threshold);
	cc_set_credit(sk, 0, 0);
}

static void mcompound_set_state(struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Open)
		cc_round_begin(sk, &mcompound_state(sk)->rounds);
	else if (new_state == TCP_CA_Loss)
		mcompound_after_timeout(sk);
}

static void mcompound_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		mcompound_reset(sk);
}

static u32 mcompound_undo_cwnd(struct sock *sk)
{
	struct mcompound *state = mcompound_state(sk);

	state->delay_window_q16 = state->prior_window_q16;
	return cc_max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

CC_REGISTER(mcompound,
	    .init = mcompound_init,
	    .ssthresh = mcompound_ssthresh,
	    .cong_avoid = mcompound_cong_avoid,
	    .set_state = mcompound_set_state,
	    .cwnd_event = mcompound_cwnd_event,
	    .pkts_acked = mcompound_pkts_acked,
	    .undo_cwnd = mcompound_undo_cwnd);
