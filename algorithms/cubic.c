// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * CUBIC: a cubic function of the time since the last congestion event
 *
 * Idea: return quickly to the window of the last congestion event, stay near it,
 *   then probe beyond, independently of the RTT; where Reno would be faster, be
 *   like Reno. On several subflows each runs alone ("uncoupled").
 * Equations: RFC 9438. W_cubic(t) = C (t - K)^3 + W_max (eq. 1), K = cbrt((W_max -
 *   w_0)/C) (eq. 2); W_est += a/w per acknowledged packet (eq. 4), a = 3(1 - b)/(1 + b),
 *   and 1 once W_est has reached the window before the last reduction. If W_cubic(t) <
 *   W_est the window is W_est, else it moves to W_cubic(t + rtt), between w and 1.5 w,
 *   in one RTT. Congestion event: W_max = w, or w (1 + b)/2 if w < W_max (fast
 *   convergence); ssthresh = max(b w, 2).
 * States: slow start (with HyStart), congestion avoidance: concave up to W_max,
 *   convex beyond.
 * Parameters' source: C = 0.4 and b = 0.7 from RFC 9438 section 4.6; HyStart's
 *   thresholds as in Linux.
 * Deviations: HyStart is the original one (Ha and Rhee 2011) as in Linux: it ends
 *   slow start instead of slowing it down as RFC 9406 does. Its ACK train does not allow for
 *   bursts of segmentation offload. The decrease uses cwnd, as Linux. Linux also grows by
 *   at least a twentieth per RTT until the first loss, and forgets W_max in a timeout.
 * On one path: itself.
 * Good at: long fast private paths, which it fills sooner than Reno
 *   (scenarios/kernel-dialects.toml).
 * Bad at: fairness: two subflows through one bottleneck take more than twice what a
 *   Reno flow gets (scenarios/fidelity/shared-bottleneck.toml).
 * Reference: RFC 9438, https://www.rfc-editor.org/rfc/rfc9438; Ha and Rhee 2011, doi:10.1016/j.comnet.2011.01.014
 */
#include "cc.h"

#define CUBIC_ONE_Q10 1024u			/* 1.0 of beta, of which Linux keeps 717 parts */

CC_PARAMS(cubic,
	  CC_PARAM(c, .initial = 0.4, .min = 0.01, .max = 4, .scale = 1 << 20,
		   .help = "C, how fast the window grows, packets/s^3 (RFC 9438: 0.4)"),
	  CC_PARAM(beta, .initial = 0.7, .min = 0.5, .max = 0.9, .scale = CUBIC_ONE_Q10,
		   .help = "fraction of the window kept at a congestion event (RFC 9438: 0.7)"),
	  CC_PARAM(fast_convergence, .initial = 1, .max = 1, .names = "off|on",
		   .help = "give up more when the last maximum was not reached"),
	  CC_PARAM(hystart, .initial = 1, .max = 1, .names = "off|on",
		   .help = "leave slow start when the delay grows or an ACK train is long"),
	  CC_PARAM(hystart_low_window, .initial = 16, .min = 2, .max = 65535,
		   .help = "window below which HyStart does nothing, packets"),
	  CC_PARAM(hystart_ack_delta_us, .initial = 2000, .min = 1, .max = 1000000,
		   .help = "largest gap within an ACK train, us"));

#define CUBIC_SPAN_Q14 ((1u << 21) - 1)		/* 128 s: the curve is flat beyond, arithmetic only */
#define CUBIC_MAX_ELAPSED_US (256 * 1000000ull)
#define HYSTART_MIN_SAMPLES 8u			/* RTT samples before the delay test */
#define HYSTART_DELAY_MIN_US 4000u		/* least delay that ends slow start (Linux) */
#define HYSTART_DELAY_MAX_US 16000u		/* largest delay that is needed to end it (Linux) */
#define HYSTART_SETTLE_US 1000000u		/* no delay samples this soon after a reduction */
#define CUBIC_NO_RTT 0xffffffffu		/* before the first sample */

struct cubic {
	u64 epoch_us;	    /* start of the congestion avoidance epoch */
	u64 last_ack_us;    /* last ACK seen in congestion avoidance */
	u64 w_est_q40;	    /* the window of Reno */
	u64 round_start_us; /* HyStart: start of the round */
	u64 train_us;	    /* HyStart: last ACK of the train */
	u32 w_max_q10;	    /* packets */
	u32 prior_q10;	    /* packets before the last reduction */
	u32 k_q14;	    /* s until W_max is reached */
	u32 round_end;	    /* HyStart: the round ends when this is acknowledged */
	u32 round_rtt_us;   /* HyStart: smallest RTT of this round */
	u32 min_rtt_us;	    /* HyStart: smallest RTT seen */
	u8 in_epoch;	    /* 1: epoch_us, w_max_q10 and k_q14 describe a curve */
	u8 reduced;	    /* the epoch follows a fast recovery */
	u8 samples;	    /* HyStart: RTT samples of this round */
	u8 found;	    /* HyStart: slow start was ended */
};
CC_STATE(cubic);
CC_UNCOUPLED(cubic);
CC_FIELDS(cubic,
	  CC_FIELD(cubic, w_max_q10, "w_max", .den = 1024, .unit = "packets"),
	  CC_FIELD(cubic, k_q14, "k", .den = 1 << 14, .unit = "s"),
	  CC_FIELD(cubic, found, "hystart_found", .unit = "1"));

/* ---- model: the window curve ---- */

/*
 * C d^3 in Q10 packets. d <= 2^21 in Q14: d^2 is <= 2^28 in Q14 after the shift, d^3
 * <= 2^35; times C <= 2^22 in Q20 is <= 2^57 in Q34.
 */
static u64 cubic_offset_q10(u32 d_q14, u32 c_q20)
{
	u64 d = cc_min(d_q14, CUBIC_SPAN_Q14);
	u64 d2 = cc_mul(d, d) >> 14;
	u64 d3 = cc_mul(d2, d) >> 14;

	return cc_mul(d3, c_q20) >> 24;
}

/* K: the cube root of distance/C, found bit by bit on the curve, so that it starts at w_0. */
static u32 cubic_k_q14(u64 distance_q10, u32 c_q20)
{
	u32 k = 0;
	u32 bit;

	for (bit = 1u << 20; bit; bit >>= 1)
		k = cc_hide_from_verifier(cubic_offset_q10(k | bit, c_q20) <= distance_q10 ? k | bit
											   : k);
	return k;
}

static u64 cubic_window_q10(const struct cubic *state, u32 t_q14, u32 c_q20)
{
	u64 offset;

	if (t_q14 >= state->k_q14)
		return state->w_max_q10 + cubic_offset_q10(t_q14 - state->k_q14, c_q20);
	offset = cubic_offset_q10(state->k_q14 - t_q14, c_q20);
	return state->w_max_q10 - cc_min(offset, (u64)state->w_max_q10);
}

/* us <= 2^28, so the product is < 2^43. */
static u32 cubic_time_q14(u64 us)
{
	return (u32)(cc_mul(cc_min(us, CUBIC_MAX_ELAPSED_US), 1u << 14) / 1000000);
}

/* The increase that is as aggressive as Reno with a decrease of b: 3 (1 - b)/(1 + b), in Q16. */
static u64 cubic_reno_alpha_q16(u32 beta_q10)
{
	return cc_div(cc_mul(3 * (CUBIC_ONE_Q10 - beta_q10), CC_ONE_Q16), CUBIC_ONE_Q10 + beta_q10);
}

/* W_est grows by a/w per packet: a <= 1, so (a << 34)/w is <= 2^40; acked <= 2^16. */
static void cubic_grow_estimate(struct cubic *state, u64 w_q10, u32 acked, u32 beta_q10)
{
	u64 alpha_q16 = CC_ONE_Q16;

	if (!state->prior_q10 || state->w_est_q40 >> 30 < state->prior_q10)
		alpha_q16 = cubic_reno_alpha_q16(beta_q10);
	state->w_est_q40 += cc_mul(acked, cc_div(cc_shl(alpha_q16, 34), w_q10));
	state->w_est_q40 = cc_min(state->w_est_q40, (u64)CC_WINDOW_MAX << 40);
}

/* ---- the epoch ---- */

static u64 cubic_own_q10(const struct sock *sk)
{
	return (u64)cc_window(sk) << 10 | (u64)(cc_credit_q40(sk) >> 30);
}

static void cubic_begin_epoch(struct sock *sk, u64 w_q10)
{
	struct cubic *state = cubic_state(sk);

	state->in_epoch = 1;
	state->epoch_us = cc_now_us(sk);
	state->w_est_q40 = w_q10 << 30;
	state->k_q14 = 0;
	if (state->reduced && state->w_max_q10 > w_q10)
		state->k_q14 = cubic_k_q14(state->w_max_q10 - w_q10, cubic_params(sk)->c);
	else
		state->w_max_q10 = (u32)w_q10;
	state->reduced = 0;
}

/* Time in which the application sent nothing does not move the curve. */
static void cubic_skip_time(struct cubic *state, u64 now_us, u64 idle_us)
{
	if (state->in_epoch)
		state->epoch_us = cc_min(state->epoch_us + idle_us, now_us);
	state->last_ack_us = now_us;
}

/* Growth towards the target, a fraction (target - w)/w <= 1/2 of a packet per packet. */
static u64 cubic_inc_q40(const struct sock *sk, u64 w_q10, u64 elapsed_us)
{
	const struct cubic *state = cubic_state((struct sock *)sk);
	u64 target_q10 = cubic_window_q10(state, cubic_time_q14(elapsed_us + cc_srtt_us(sk)),
					  cubic_params(sk)->c);

	target_q10 = cc_clamp(target_q10, w_q10, w_q10 + w_q10 / 2);
	return cc_div(cc_shl(target_q10 - w_q10, 34), w_q10) << 6;
}

static void cubic_avoid_congestion(struct sock *sk, u32 acked)
{
	struct cubic *state = cubic_state(sk);
	u64 w_q10 = cubic_own_q10(sk);
	u64 elapsed_us, curve_q10;

	if (!state->in_epoch)
		cubic_begin_epoch(sk, w_q10);
	state->last_ack_us = cc_now_us(sk);
	elapsed_us = cc_now_us(sk) - state->epoch_us;
	cubic_grow_estimate(state, w_q10, acked, cubic_params(sk)->beta);
	curve_q10 = cubic_window_q10(state, cubic_time_q14(elapsed_us), cubic_params(sk)->c);
	if (curve_q10 >= state->w_est_q40 >> 30)
		cc_grow_per_packet(sk, acked, cubic_inc_q40(sk, w_q10, elapsed_us));
	else if (state->w_est_q40 >> 30 > w_q10)
		cc_set_window(sk, (u32)(state->w_est_q40 >> 40),
			      state->w_est_q40 & (CC_ONE_Q40 - 1));
}

/* ---- HyStart ---- */

static void hystart_begin_round(struct sock *sk)
{
	struct cubic *state = cubic_state(sk);

	state->round_start_us = cc_now_us(sk);
	state->train_us = cc_now_us(sk);
	state->round_end = tcp_sk(sk)->snd_nxt;
	state->round_rtt_us = CUBIC_NO_RTT;
	state->samples = 0;
}

/* Closely spaced ACKs for half a round trip (a whole one if paced): the pipe is full. */
static bool hystart_long_train(struct sock *sk)
{
	struct cubic *state = cubic_state(sk);
	u64 now_us = cc_now_us(sk);
	u32 limit_us = cc_is_paced(sk) ? state->min_rtt_us : state->min_rtt_us / 2;

	if (now_us - state->train_us > cubic_params(sk)->hystart_ack_delta_us)
		return false;
	state->train_us = now_us;
	return now_us - state->round_start_us > limit_us;
}

/* The smallest RTT of a round has grown by an eighth, at least 4 ms and at most 16 ms. */
static bool hystart_longer_delay(struct cubic *state, u32 rtt_us)
{
	u32 margin_us = cc_clamp(state->min_rtt_us / 8, HYSTART_DELAY_MIN_US, HYSTART_DELAY_MAX_US);

	state->round_rtt_us = cc_min(state->round_rtt_us, rtt_us);
	if (state->samples < HYSTART_MIN_SAMPLES) {
		state->samples++;
		return false;
	}
	return state->round_rtt_us > state->min_rtt_us + margin_us;
}

static void hystart_update(struct sock *sk, u32 rtt_us)
{
	struct cubic *state = cubic_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	bool full;

	if (cc_after(tp->snd_una, state->round_end))
		hystart_begin_round(sk);
	if (tp->snd_cwnd < cubic_params(sk)->hystart_low_window)
		return;
	full = hystart_long_train(sk);
	full |= hystart_longer_delay(state, rtt_us);
	if (full) {
		state->found = 1;
		tp->snd_ssthresh = tp->snd_cwnd;
	}
}

/* ---- hooks ---- */

static void cubic_init(struct sock *sk)
{
	cubic_state(sk)->min_rtt_us = CUBIC_NO_RTT;
	hystart_begin_round(sk);
}

static void cubic_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct cubic *state = cubic_state(sk);
	u32 rtt_us;

	if (sample->rtt_us < 0)
		return;
	if (state->in_epoch && cc_now_us(sk) - state->epoch_us < HYSTART_SETTLE_US)
		return;
	rtt_us = cc_clamp((u32)sample->rtt_us, 1u, CC_RTT_MAX_US);
	state->min_rtt_us = cc_min(state->min_rtt_us, rtt_us);
	if (cubic_params(sk)->hystart && !state->found && cc_in_slow_start(sk))
		hystart_update(sk, rtt_us);
}

static void cubic_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cubic *state = cubic_state(sk);
	u64 now_us = cc_now_us(sk);

	if (!cc_is_cwnd_limited(sk)) {
		cubic_skip_time(state, now_us, now_us - state->last_ack_us);
		return;
	}
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cubic_avoid_congestion(sk, acked);
}

/*
 * b w: w <= 2^30 in Q10, b < 2^10 in Q10. The fraction is kept for when the engine sets
 * this window: at small windows the curve would otherwise start from a part of a packet less.
 */
static u32 cubic_ssthresh(struct sock *sk)
{
	struct cubic *state = cubic_state(sk);
	u32 beta_q10 = cubic_params(sk)->beta;
	u64 w_q10 = cubic_own_q10(sk);
	u64 reduced_q20 = cc_mul(w_q10, beta_q10);
	u64 peak_q10 = w_q10;

	if (cubic_params(sk)->fast_convergence && w_q10 < state->w_max_q10)
		peak_q10 = cc_mul(w_q10, CUBIC_ONE_Q10 + beta_q10) >> 11;
	state->w_max_q10 = (u32)peak_q10;
	state->prior_q10 = (u32)w_q10;
	state->in_epoch = 0;
	state->reduced = 1;
	cc_set_credit(sk, (u32)(reduced_q20 >> 20), (reduced_q20 & ((1u << 20) - 1)) << 20);
	return cc_max((u32)(reduced_q20 >> 20), CC_RENO_FLOOR);
}

static void cubic_set_state(struct sock *sk, u8 new_state)
{
	struct cubic *state = cubic_state(sk);

	if (new_state != TCP_CA_Loss)
		return;
	state->in_epoch = 0;
	state->reduced = 0;
	state->found = 0;
	/* The path may have changed. */
	state->min_rtt_us = CUBIC_NO_RTT;
	cc_set_credit(sk, 0, 0);
	hystart_begin_round(sk);
}

static void cubic_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	u64 now_us = cc_now_us(sk);

	if (event == CA_EVENT_TX_START && cc_last_send_us(sk) < now_us)
		cubic_skip_time(cubic_state(sk), now_us, now_us - cc_last_send_us(sk));
}

CC_REGISTER(cubic,
	    .init = cubic_init,
	    .ssthresh = cubic_ssthresh,
	    .cong_avoid = cubic_cong_avoid,
	    .set_state = cubic_set_state,
	    .cwnd_event = cubic_cwnd_event,
	    .pkts_acked = cubic_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
