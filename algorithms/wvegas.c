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
 * Deviations: diff and alpha have fractions. Leaving slow start also cuts the window
 *   (kernel; the draft only sets ssthresh). A drain needs a positive queueing delay.
 *   Dialect mptcp-0.95 rounds diff, alpha and windows down, which leaves a gap of one
 *   packet between growing and shrinking; a drain needs no queueing delay. Its rounds end
 *   at an ACK after their end. Each then sets ssthresh to max(ssthresh, 3w/4), so that
 *   slow start fills the path again after a drain. Outside Open and in rounds with at most
 *   two samples it grows as Reno, and each return to Open forgets rate, alpha, weight and
 *   smallest queueing delay. It grows even if the window is not used.
 * On one path: Vegas with alpha = beta = total_alpha, not Reno.
 * Good at: short queues: the RTT stays near that of the empty path
 *   (scenarios/dolia-scenario-1.toml).
 * Bad at: filling paths: it drains them so often that it uses 82 % of two private ones
 *   (scenarios/disjoint-paths-aggregate.toml; 33 % where nothing delays packets at random:
 *   tcp.send_jitter = "0 s"), and beside a Reno flow it gets a sixth of what that flow gets
 *   (scenarios/fidelity/shared-bottleneck.toml).
 * Reference: Cao, Xu, Fu 2012, doi:10.1109/ICNP.2012.6459978; draft-xu-mptcp-congestion-control-05
 */
#include "dialect.h"
#include "rounds.h"

CC_PARAMS(wvegas,
	  CC_PARAM(total_alpha, .initial = 10, .min = 2, .max = 1000,
		   .help = "packets that the whole connection may keep queued (draft: 10)"),
	  CC_PARAM(min_alpha, .initial = 2, .min = 1, .max = 1000,
		   .help = "least packets that a subflow may keep queued, and the first value (draft: 2)"),
	  CC_PARAM(gamma, .initial = 1, .min = 1, .max = 1000,
		   .help = "queued packets that end slow start (Vegas: 1)"),
	  CC_DIALECT);

#define WVEGAS_FLOOR 2u /* packets, as Vegas */

/* What siblings read. */
struct wvegas_shared {
	u64 rate_q40;  /* packets/us at the last update of alpha */
	u32 unsampled; /* dialect: 1 from the end of a round to the next RTT sample */
	u32 reserved;
};

struct wvegas {
	struct wvegas_shared shared;
	struct cc_rounds rounds;
	u32 qdelay_us;	   /* smallest queueing delay since the last drain, 0: none yet */
	u32 alpha_q16;	   /* packets this subflow may keep queued */
	u32 weight_q16;	   /* share of total_alpha */
	u32 threshold;	   /* the ssthresh that this algorithm set, packets */
	u32 threshold_q16; /* its fraction */
};
CC_STATE(wvegas);
CC_SHARED(wvegas, shared);
CC_FIELDS(wvegas,
	  CC_FIELD(wvegas, shared.rate_q40, "rate", .num = 1000000, .den = 1ull << 40, .unit = "packets/s"),
	  CC_FIELD(wvegas, rounds.base_us, "base", .den = 1000000, .unit = "s"),
	  CC_FIELD(wvegas, qdelay_us, "qdelay", .den = 1000000, .unit = "s"),
	  CC_FIELD(wvegas, alpha_q16, "alpha", .den = CC_ONE_Q16, .unit = "packets"),
	  CC_FIELD(wvegas, weight_q16, "weight", .den = CC_ONE_Q16, .unit = "1"));

/* w/rtt in packets/us, Q40: w < 2^37 in Q16, so the dividend is < 2^61. */
static u64 wvegas_rate_q40(const struct cc_round *round)
{
	return cc_div(cc_shl(round->w_q16, 24), round->rtt_us);
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

	cc_coupling_set(sk, &set);
	cc_for_each(k, 0, &set)
		if (set.slot[k] != cc_own_slot(sk))
			sum = cc_add(sum, wvegas_shared(sk, &set, k).rate_q40);
	return sum;
}

static void wvegas_update_alpha(struct sock *sk, const struct cc_round *round)
{
	struct wvegas *state = wvegas_state(sk);
	u64 share;

	state->shared.rate_q40 = wvegas_rate_q40(round);
	state->weight_q16 =
		wvegas_share_q16(state->shared.rate_q40,
				 cc_add(state->shared.rate_q40, wvegas_other_rates_q40(sk)));
	share = cc_mul(state->weight_q16, wvegas_params(sk)->total_alpha);
	state->alpha_q16 = (u32)cc_max(share, (u64)wvegas_params(sk)->min_alpha << 16);
}

/*
 * ssthresh with its fraction, unless the engine has set it since: windows change by one
 * packet per round, so a fraction decides whether slow start is over.
 */
static u64 wvegas_threshold_q16(struct sock *sk)
{
	const struct wvegas *state = wvegas_state(sk);
	u32 ssthresh = tcp_sk(sk)->snd_ssthresh;

	return ((u64)ssthresh << 16) + (state->threshold == ssthresh ? state->threshold_q16 : 0);
}

/* Returns the whole packets, at least the floor, and records the fraction. */
static u32 wvegas_set_threshold(struct sock *sk, u64 threshold_q16)
{
	struct wvegas *state = wvegas_state(sk);

	threshold_q16 = cc_max(threshold_q16, (u64)WVEGAS_FLOOR << 16);
	state->threshold = (u32)(threshold_q16 >> 16);
	state->threshold_q16 = threshold_q16 & (CC_ONE_Q16 - 1);
	return state->threshold;
}

static bool wvegas_in_slow_start(struct sock *sk)
{
	return cc_window_q16(sk) < wvegas_threshold_q16(sk);
}

/* ssthresh below the window, so that slow start does not undo the decision. */
static void wvegas_leave_slow_start(struct sock *sk, u64 w_q16)
{
	u64 below_q16 = cc_min(wvegas_threshold_q16(sk), w_q16 - CC_ONE_Q16);

	tcp_sk(sk)->snd_ssthresh = wvegas_set_threshold(sk, below_q16);
}

static void wvegas_set_window(struct sock *sk, u64 w_q16)
{
	cc_set_window_q16(sk, cc_max(w_q16, (u64)WVEGAS_FLOOR << 16));
}

/* True when the queue ended slow start. */
static bool wvegas_slow_start_exit(struct sock *sk, const struct cc_round *round)
{
	u64 w_q16;

	if (cc_queued_by_rtt_q16(round) <= cc_packets_by_rtt_q16(wvegas_params(sk)->gamma, round))
		return false;
	w_q16 = cc_min(round->w_q16, cc_unqueued_q16(round) + CC_ONE_Q16);
	w_q16 = cc_max(w_q16, (u64)WVEGAS_FLOOR << 16);
	wvegas_leave_slow_start(sk, w_q16);
	wvegas_set_window(sk, w_q16);
	return true;
}

/* Drains the queue when the queueing delay has doubled, to measure the base RTT again. */
static u64 wvegas_drained_q16(struct sock *sk, const struct cc_round *round, u64 w_q16)
{
	struct wvegas *state = wvegas_state(sk);
	u32 qdelay = round->rtt_us - round->base_us;
	struct cc_round now = *round;

	if (!state->qdelay_us || qdelay < state->qdelay_us)
		state->qdelay_us = qdelay;
	if (!qdelay || qdelay / 2 < state->qdelay_us)
		return w_q16;
	state->qdelay_us = 0;
	now.w_q16 = w_q16;
	return cc_unqueued_q16(&now) / 2;
}

static void wvegas_avoid_congestion(struct sock *sk, const struct cc_round *round)
{
	struct wvegas *state = wvegas_state(sk);
	u64 queued = cc_queued_by_rtt_q16(round);
	u64 w_q16 = round->w_q16;
	u64 allowed;

	if (queued >= cc_mul(state->alpha_q16, round->rtt_us))
		wvegas_update_alpha(sk, round);
	allowed = cc_mul(state->alpha_q16, round->rtt_us);
	if (queued > allowed) {
		w_q16 -= CC_ONE_Q16;
		wvegas_leave_slow_start(sk, cc_max(w_q16, (u64)CC_ONE_Q16));
	} else if (queued < allowed && cc_is_cwnd_limited(sk)) {
		w_q16 += CC_ONE_Q16;
	}
	wvegas_set_window(sk, wvegas_drained_q16(sk, round, w_q16));
}

/* Growth on an ACK that decides nothing: slow start only. acked <= 2^16. */
static void wvegas_slow_start(struct sock *sk, u32 acked)
{
	u64 w_q16 = cc_window_q16(sk) + ((u64)cc_min(acked, CC_ACKED_MAX) << 16);

	if (!wvegas_in_slow_start(sk) || !cc_is_cwnd_limited(sk))
		return;
	cc_set_window_q16(sk, cc_min(w_q16, wvegas_threshold_q16(sk)));
}

static void wvegas_end_round(struct sock *sk, u32 acked)
{
	/* Initialised, or the verifier may find a read of it on a path where it was not set. */
	struct cc_round round = { 0 };

	if (!cc_round_measured(sk, &wvegas_state(sk)->rounds, &round)) {
		if (wvegas_in_slow_start(sk))
			wvegas_slow_start(sk, acked);
		else if (cc_is_cwnd_limited(sk))
			cc_grow_q40(sk, CC_ONE_Q40);
		return;
	}
	if (!wvegas_in_slow_start(sk))
		wvegas_avoid_congestion(sk, &round);
	else if (!wvegas_slow_start_exit(sk, &round))
		wvegas_slow_start(sk, acked);
}

static void wvegas_reset_rates(struct sock *sk)
{
	struct wvegas *state = wvegas_state(sk);

	state->shared.rate_q40 = 0;
	state->qdelay_us = 0;
	state->weight_q16 = CC_ONE_Q16;
	state->alpha_q16 = wvegas_params(sk)->min_alpha << 16;
}

static void wvegas_spec_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct cc_rounds *rounds = &wvegas_state(sk)->rounds;

	if (cc_before(ack, rounds->end)) {
		wvegas_slow_start(sk, acked);
		return;
	}
	wvegas_end_round(sk, acked);
	cc_round_begin(sk, rounds);
}

/* ---- dialect mptcp-0.95 ---- */

/* Sums of a round are 32 bits there; each sample counts one us more. */
struct wvegas_round {
	u32 rtt_us;
	u32 base_us;
};

static u64 wvegas_rate_q16(u64 rate_q40)
{
	return rate_q40 >> 24;
}

/* Rates of the subflows that have a sample in their round: eight of at most 2^36. */
static u64 wvegas_rates_q16(const struct sock *sk)
{
	u64 sum = wvegas_rate_q16(wvegas_state((struct sock *)sk)->shared.rate_q40);
	struct cc_set set;

	cc_coupling_set(sk, &set);
	cc_for_each(k, 0, &set) {
		struct wvegas_shared shared = wvegas_shared(sk, &set, k);

		if (set.slot[k] != cc_own_slot(sk) && !shared.unsampled)
			sum += wvegas_rate_q16(shared.rate_q40);
	}
	return sum;
}

/* The weight stays as it is while the own rate, w/rtt in Q16, is rounded down to 0. */
static void wvegas_dialect_update_alpha(struct sock *sk, const struct wvegas_round *round)
{
	struct wvegas *state = wvegas_state(sk);
	u64 rate_q16 = cc_div((u64)cc_window(sk) << 16, round->rtt_us);
	u64 alpha;

	state->shared.rate_q40 = cc_shl(rate_q16, 24);
	if (rate_q16)
		state->weight_q16 = (u32)cc_div(cc_shl(rate_q16, 16), wvegas_rates_q16(sk));
	alpha = cc_mul(state->weight_q16, wvegas_params(sk)->total_alpha) >> 16;
	state->alpha_q16 = (u32)cc_max(alpha, (u64)wvegas_params(sk)->min_alpha) << 16;
}

/* The window w after a drain, if one is due. */
static u32 wvegas_dialect_drained(struct wvegas *state, const struct wvegas_round *round, u32 w)
{
	u32 qdelay = round->rtt_us - round->base_us;
	u64 kept_q16;

	if (!state->qdelay_us || qdelay < state->qdelay_us)
		state->qdelay_us = qdelay;
	if (qdelay < 2 * state->qdelay_us)
		return w;
	state->qdelay_us = 0;
	kept_q16 = cc_div((u64)round->base_us << 16, 2 * (u64)round->rtt_us);
	return (u32)(cc_mul(w, (u32)kept_q16) >> 16);
}

static u32 wvegas_dialect_avoid_congestion(struct sock *sk, const struct wvegas_round *round,
					   u32 queued)
{
	struct wvegas *state = wvegas_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 w = cc_window(sk);

	if (queued >= state->alpha_q16 >> 16)
		wvegas_dialect_update_alpha(sk, round);
	if (queued > state->alpha_q16 >> 16) {
		w--;
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, w);
	} else if (queued < state->alpha_q16 >> 16) {
		w++;
	}
	return wvegas_dialect_drained(state, round, w);
}

/* At the end of a measured round; w <= 2^20 and rtt < 2^32, so no product exceeds 2^52. */
static void wvegas_dialect_decide(struct sock *sk, const struct wvegas_round *round, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 w = cc_window(sk);
	u32 queued = (u32)cc_div(cc_mul(w, round->rtt_us - round->base_us), round->rtt_us);

	if (!cc_in_slow_start(sk)) {
		w = wvegas_dialect_avoid_congestion(sk, round, queued);
	} else if (queued > wvegas_params(sk)->gamma) {
		w = cc_min(w, (u32)cc_div(cc_mul(w, round->base_us), round->rtt_us) + 1);
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, w);
	} else {
		cc_slow_start(sk, cc_min(acked, CC_ACKED_MAX));
		w = cc_window(sk);
	}
	cc_set_window(sk, cc_max(w, WVEGAS_FLOOR), 0);
	tp->snd_ssthresh = cc_max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

static void wvegas_dialect_end_round(struct sock *sk, u32 acked)
{
	const struct cc_rounds *rounds = &wvegas_state(sk)->rounds;
	struct wvegas_round round = { .base_us = rounds->base_us + 1 };

	if (rounds->rtt_count < CC_ROUND_SAMPLES) {
		dialect_reno(sk, acked);
		return;
	}
	round.rtt_us =
		(u32)cc_div((u32)(rounds->rtt_sum_us + rounds->rtt_count), rounds->rtt_count);
	round.rtt_us = cc_max(round.rtt_us, 1u);
	wvegas_dialect_decide(sk, &round, acked);
}

static void wvegas_dialect_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct wvegas *state = wvegas_state(sk);

	if (cc_ca_state(sk) != TCP_CA_Open) {
		dialect_reno(sk, acked);
	} else if (cc_after(ack, state->rounds.end)) {
		wvegas_dialect_end_round(sk, acked);
		cc_round_begin(sk, &state->rounds);
		state->shared.unsampled = 1;
	} else if (cc_in_slow_start(sk)) {
		cc_slow_start(sk, cc_min(acked, CC_ACKED_MAX));
	}
}

static void wvegas_dialect_set_state(struct sock *sk, u8 new_state)
{
	struct wvegas *state = wvegas_state(sk);

	if (new_state != TCP_CA_Open)
		return;
	wvegas_reset_rates(sk);
	cc_round_begin(sk, &state->rounds);
	state->shared.unsampled = 1;
}

/* ---- hooks ---- */

static void wvegas_reset(struct sock *sk)
{
	wvegas_reset_rates(sk);
	cc_round_restart(sk, &wvegas_state(sk)->rounds);
}

static void wvegas_init(struct sock *sk)
{
	wvegas_reset(sk);
}

static void wvegas_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct wvegas *state = wvegas_state(sk);

	cc_round_sample(&state->rounds, sample);
	if (sample->rtt_us >= 0)
		state->shared.unsampled = 0;
}

static void wvegas_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	if (CC_IS_SPEC(wvegas, sk))
		wvegas_spec_cong_avoid(sk, ack, acked);
	else
		wvegas_dialect_cong_avoid(sk, ack, acked);
}

/* Half the window, whose fraction counts when the engine sets this window. */
static u32 wvegas_ssthresh(struct sock *sk)
{
	u64 half_q16 = cc_window_q16(sk) / 2;

	if (!CC_IS_SPEC(wvegas, sk))
		return cc_reno_ssthresh(sk);
	wvegas_reset_rates(sk);
	cc_ssthresh_of_q16(sk, half_q16);
	return wvegas_set_threshold(sk, half_q16);
}

static void wvegas_set_state(struct sock *sk, u8 new_state)
{
	if (!CC_IS_SPEC(wvegas, sk))
		wvegas_dialect_set_state(sk, new_state);
	else if (new_state == TCP_CA_Open)
		cc_round_begin(sk, &wvegas_state(sk)->rounds);
	else if (new_state == TCP_CA_Loss)
		cc_set_credit(sk, 0, 0);
}

static void wvegas_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART)
		wvegas_reset(sk);
	else if (event == CA_EVENT_LOSS && !CC_IS_SPEC(wvegas, sk))
		wvegas_state(sk)->shared.rate_q40 = 0;
}

CC_REGISTER(wvegas,
	    .init = wvegas_init,
	    .ssthresh = wvegas_ssthresh,
	    .cong_avoid = wvegas_cong_avoid,
	    .set_state = wvegas_set_state,
	    .cwnd_event = wvegas_cwnd_event,
	    .pkts_acked = wvegas_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
