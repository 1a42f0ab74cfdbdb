// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wVegas: weighted Vegas
 *
 * Idea: Vegas on every subflow: keep a few packets queued, and react to queueing
 *   delay before packets are lost. The packets a subflow may queue are its share,
 *   by rate, of a total for the connection, so that traffic moves to the paths
 *   with less queueing.
 * Equations: once per round, diff = w (rtt - base)/rtt with the mean RTT of the
 *   round and the smallest RTT seen. If diff >= alpha, the rate w/rtt is recorded
 *   and alpha_r = max(2, total_alpha rate_r/sum rate_k). Then w -= 1 if diff > alpha,
 *   w += 1 if diff < alpha. If the queueing delay reaches twice its smallest value
 *   since the last drain, w = w base/(2 rtt). Slow start ends when diff > gamma,
 *   with w = min(w, w base/rtt + 1). Congestion event ssthresh = max(w/2, 2).
 * States: slow start, congestion avoidance; a round with at most two RTT samples
 *   behaves as Reno's.
 * Parameters' source: draft-xu-mptcp-congestion-control-05, section 4.
 * Deviations: diff and alpha keep their fractions (the kernel rounds both down).
 *   Leaving slow start also cuts the window (kernel; the draft only sets ssthresh).
 *   A drain needs a positive queueing delay (the kernel drains at 0 = 2 x 0).
 * On one path: Vegas with alpha = beta = total_alpha, not Reno.
 * Reference: Cao, Xu, Fu 2012, doi:10.1109/ICNP.2012.6459978; draft-xu-mptcp-congestion-control-05
 */
#include "cc.h"

#define WVEGAS_PARAMS(P)                                                                \
	P(total_alpha, 10, 2, 1000, 1, CC_NUMBER,                                       \
	  "packets that the whole connection may keep queued (draft: 10)")              \
	P(min_alpha, 2, 1, 1000, 1, CC_NUMBER,                                          \
	  "least packets that a subflow may keep queued, and the first value (draft: 2)") \
	P(gamma, 1, 1, 1000, 1, CC_NUMBER,                                              \
	  "queued packets that end slow start (Vegas: 1)")
CC_PARAMS(wvegas, WVEGAS_PARAMS);

#define WVEGAS_FLOOR 2u		/* packets, as Vegas */
#define WVEGAS_MIN_SAMPLES 3u	/* RTT samples that make a round count */
#define WVEGAS_ONE_Q16 (1u << 16)
#define WVEGAS_NO_RTT 0xffffffffu

struct wvegas {
	u64 rate_q40;	/* packets/us at the last update of alpha; shared */
	u64 rtt_sum_us; /* RTT samples of this round */
	u32 rtt_count;
	u32 round_end;	   /* the round ends when this sequence number is acknowledged */
	u32 base_us;	   /* smallest RTT seen */
	u32 qdelay_us;	   /* smallest queueing delay since the last drain, 0: none yet */
	u32 alpha_q16;	   /* packets this subflow may keep queued */
	u32 weight_q16;	   /* share of total_alpha */
	u32 threshold;	   /* the ssthresh that this algorithm set, packets */
	u32 threshold_q16; /* its fraction */
};
CC_STATE(wvegas);
CC_FIELDS(wvegas,
	  CC_FIELD(wvegas, rate_q40, "rate", 1000000, 1ull << 40, "packets/s"),
	  CC_FIELD(wvegas, base_us, "base", 1, 1000000, "s"),
	  CC_FIELD(wvegas, qdelay_us, "qdelay", 1, 1000000, "s"),
	  CC_FIELD(wvegas, alpha_q16, "alpha", 1, WVEGAS_ONE_Q16, "packets"),
	  CC_FIELD(wvegas, weight_q16, "weight", 1, WVEGAS_ONE_Q16, "1"));

/* What one round measured. */
struct wvegas_round {
	u64 w_q16;   /* window with its fraction, < 2^37 */
	u32 rtt_us;  /* mean, base..2^26 */
	u32 base_us; /* 1..2^26 */
};

/* diff * rtt = w (rtt - base), Q16: < 2^63. Compared with packets * rtt to avoid a division. */
static u64 wvegas_queued_by_rtt_q16(const struct wvegas_round *round)
{
	return cc_mul(round->w_q16, round->rtt_us - round->base_us);
}

/* w/rtt in packets/us, Q40: w < 2^37 in Q16, so the dividend is < 2^61. */
static u64 wvegas_rate_q40(const struct wvegas_round *round)
{
	return cc_div(cc_shl(round->w_q16, 24), round->rtt_us);
}

/* w base/rtt in Q16: < 2^63 before the division. */
static u64 wvegas_unqueued_q16(const struct wvegas_round *round)
{
	return cc_div(cc_mul(round->w_q16, round->base_us), round->rtt_us);
}

/* own/sum in Q16: both are shifted until sum < 2^32. */
static u32 wvegas_share_q16(u64 own_q40, u64 sum_q40)
{
	u32 bits = cc_bits(sum_q40);
	u32 s = bits > 32 ? bits - 32 : 0;
	u64 sum = cc_max(sum_q40 >> s, 1ull);

	return (u32)cc_div(cc_shl(own_q40 >> s, 16), sum);
}

/* The recorded rates of the others: seven of at most 2^61. */
static u64 wvegas_other_rates_q40(const struct sock *sk)
{
	struct cc_set set;
	u64 sum = 0;
	u32 k;

	cc_coupling_set(sk, &set);
	for (k = 0; k < CC_MAX_SUBFLOWS && k < set.n; k++)
		if (set.slot[k] != sk->slot)
			sum = cc_add(sum, cc_shared_word(sk, &set, k, 0));
	return sum;
}

static void wvegas_update_alpha(struct sock *sk, const struct wvegas_round *round)
{
	struct wvegas *state = wvegas_state(sk);
	u64 share;

	state->rate_q40 = wvegas_rate_q40(round);
	state->weight_q16 = wvegas_share_q16(state->rate_q40,
					     cc_add(state->rate_q40, wvegas_other_rates_q40(sk)));
	share = cc_mul(state->weight_q16, CC_PARAM(sk, wvegas, total_alpha));
	state->alpha_q16 = (u32)cc_max(share, (u64)CC_PARAM(sk, wvegas, min_alpha) << 16);
}

static u64 wvegas_window_q16(const struct sock *sk)
{
	return (u64)cc_window(sk) << 16 | (u64)(cc_credit_q40(sk) >> 24);
}

/*
 * ssthresh with its fraction, as long as nobody else has set it: windows move by one packet
 * per round, so a part of a packet decides whether slow start is over.
 */
static u64 wvegas_threshold_q16(struct sock *sk)
{
	const struct wvegas *state = wvegas_state(sk);
	u32 ssthresh = tcp_sk(sk)->snd_ssthresh;

	return ((u64)ssthresh << 16) + (state->threshold == ssthresh ? state->threshold_q16 : 0);
}

/* Returns the whole packets, at least the floor, and remembers the rest. */
static u32 wvegas_keep_threshold(struct sock *sk, u64 threshold_q16)
{
	struct wvegas *state = wvegas_state(sk);

	threshold_q16 = cc_max(threshold_q16, (u64)WVEGAS_FLOOR << 16);
	state->threshold = (u32)(threshold_q16 >> 16);
	state->threshold_q16 = threshold_q16 & (WVEGAS_ONE_Q16 - 1);
	return state->threshold;
}

static bool wvegas_in_slow_start(struct sock *sk)
{
	return wvegas_window_q16(sk) < wvegas_threshold_q16(sk);
}

/* ssthresh below the window, so that slow start does not undo the decision. */
static void wvegas_leave_slow_start(struct sock *sk, u64 w_q16)
{
	u64 below_q16 = cc_min(wvegas_threshold_q16(sk), w_q16 - WVEGAS_ONE_Q16);

	tcp_sk(sk)->snd_ssthresh = wvegas_keep_threshold(sk, below_q16);
}

static void wvegas_set_window(struct sock *sk, u64 w_q16)
{
	w_q16 = cc_max(w_q16, (u64)WVEGAS_FLOOR << 16);
	cc_set_window(sk, (u32)(w_q16 >> 16), (w_q16 & (WVEGAS_ONE_Q16 - 1)) << 24);
}

/* True when the queue ended slow start. */
static bool wvegas_slow_start_exit(struct sock *sk, const struct wvegas_round *round)
{
	u64 w_q16;

	if (wvegas_queued_by_rtt_q16(round) <=
	    cc_mul((u64)CC_PARAM(sk, wvegas, gamma) << 16, round->rtt_us))
		return false;
	w_q16 = cc_min(round->w_q16, wvegas_unqueued_q16(round) + WVEGAS_ONE_Q16);
	w_q16 = cc_max(w_q16, (u64)WVEGAS_FLOOR << 16);
	wvegas_leave_slow_start(sk, w_q16);
	wvegas_set_window(sk, w_q16);
	return true;
}

/* Empties the path's queue when the queueing delay has doubled, to see the base RTT again. */
static u64 wvegas_drained_q16(struct wvegas *state, const struct wvegas_round *round, u64 w_q16)
{
	u32 qdelay = round->rtt_us - round->base_us;
	struct wvegas_round now = *round;

	if (!state->qdelay_us || qdelay < state->qdelay_us)
		state->qdelay_us = qdelay;
	if (!qdelay || qdelay / 2 < state->qdelay_us)
		return w_q16;
	state->qdelay_us = 0;
	now.w_q16 = w_q16;
	return wvegas_unqueued_q16(&now) / 2;
}

static void wvegas_avoid_congestion(struct sock *sk, const struct wvegas_round *round)
{
	struct wvegas *state = wvegas_state(sk);
	u64 queued = wvegas_queued_by_rtt_q16(round);
	u64 w_q16 = round->w_q16;
	u64 allowed;

	if (queued >= cc_mul(state->alpha_q16, round->rtt_us))
		wvegas_update_alpha(sk, round);
	allowed = cc_mul(state->alpha_q16, round->rtt_us);
	if (queued > allowed) {
		w_q16 -= WVEGAS_ONE_Q16;
		wvegas_leave_slow_start(sk, cc_max(w_q16, (u64)WVEGAS_ONE_Q16));
	} else if (queued < allowed && cc_is_cwnd_limited(sk)) {
		w_q16 += WVEGAS_ONE_Q16;
	}
	wvegas_set_window(sk, wvegas_drained_q16(state, round, w_q16));
}

/* Growth on an ACK that decides nothing: slow start only. acked <= 2^16. */
static void wvegas_slow_start(struct sock *sk, u32 acked)
{
	u64 w_q16 = wvegas_window_q16(sk) + ((u64)cc_min(acked, CC_ACKED_MAX) << 16);

	if (!wvegas_in_slow_start(sk) || !cc_is_cwnd_limited(sk))
		return;
	w_q16 = cc_min(w_q16, wvegas_threshold_q16(sk));
	cc_set_window(sk, (u32)(w_q16 >> 16), (w_q16 & (WVEGAS_ONE_Q16 - 1)) << 24);
}

static void wvegas_begin_round(struct sock *sk)
{
	struct wvegas *state = wvegas_state(sk);

	state->round_end = tcp_sk(sk)->snd_nxt;
	state->rtt_sum_us = 0;
	state->rtt_count = 0;
}

static void wvegas_end_round(struct sock *sk, u32 acked)
{
	struct wvegas *state = wvegas_state(sk);
	struct wvegas_round round = { .w_q16 = wvegas_window_q16(sk) };

	if (state->rtt_count < WVEGAS_MIN_SAMPLES) {
		if (wvegas_in_slow_start(sk))
			wvegas_slow_start(sk, acked);
		else if (cc_is_cwnd_limited(sk))
			cc_grow_q40(sk, CC_ONE_Q40);
		return;
	}
	round.base_us = cc_clamp(state->base_us, 1u, CC_RTT_MAX_US);
	round.rtt_us = (u32)cc_min(cc_div(state->rtt_sum_us, state->rtt_count), (u64)CC_RTT_MAX_US);
	round.rtt_us = cc_max(round.rtt_us, round.base_us);
	if (!wvegas_in_slow_start(sk))
		wvegas_avoid_congestion(sk, &round);
	else if (!wvegas_slow_start_exit(sk, &round))
		wvegas_slow_start(sk, acked);
}

static void wvegas_forget_rates(struct sock *sk)
{
	struct wvegas *state = wvegas_state(sk);

	state->rate_q40 = 0;
	state->qdelay_us = 0;
	state->weight_q16 = WVEGAS_ONE_Q16;
	state->alpha_q16 = CC_PARAM(sk, wvegas, min_alpha) << 16;
}

static void wvegas_forget_all(struct sock *sk)
{
	wvegas_forget_rates(sk);
	wvegas_state(sk)->base_us = WVEGAS_NO_RTT;
	wvegas_begin_round(sk);
}

CC_HOOK(void, wvegas_init, struct sock *sk)
{
	wvegas_forget_all(sk);
}

CC_HOOK(void, wvegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *state = wvegas_state(sk);
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	rtt = cc_clamp((u32)sample->rtt_us, 1u, CC_RTT_MAX_US);
	state->base_us = cc_min(state->base_us, rtt);
	state->rtt_sum_us = cc_add(state->rtt_sum_us, rtt);
	state->rtt_count++;
}

CC_HOOK(void, wvegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	if (cc_before(ack, wvegas_state(sk)->round_end)) {
		wvegas_slow_start(sk, acked);
		return;
	}
	wvegas_end_round(sk, acked);
	wvegas_begin_round(sk);
}

/* Half the window; its fraction is kept for when the engine sets this window. */
CC_HOOK(u32, wvegas_ssthresh, struct sock *sk)
{
	u64 half_q16 = wvegas_window_q16(sk) / 2;

	wvegas_forget_rates(sk);
	cc_set_credit(sk, (u32)(half_q16 >> 16), (half_q16 & (WVEGAS_ONE_Q16 - 1)) << 24);
	return wvegas_keep_threshold(sk, half_q16);
}

CC_HOOK(void, wvegas_set_state, struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Open)
		wvegas_begin_round(sk);
	else if (new_state == TCP_CA_Loss)
		cc_set_credit(sk, 0, 0);
}

CC_HOOK(void, wvegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		wvegas_forget_all(sk);
}

CC_RENO_UNDO(wvegas);

CC_REGISTER(wvegas, CC_COUPLED(1),
	    .init = CC_OP(wvegas_init),
	    .ssthresh = CC_OP(wvegas_ssthresh),
	    .cong_avoid = CC_OP(wvegas_cong_avoid),
	    .set_state = CC_OP(wvegas_set_state),
	    .cwnd_event = CC_OP(wvegas_cwnd_event),
	    .pkts_acked = CC_OP(wvegas_pkts_acked),
	    .undo_cwnd = CC_OP(wvegas_undo_cwnd));
