/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The machinery of BBR version 1, for bbr.c and for what builds on it: a model of the path
 * (BtlBw, the largest delivery rate, and RTprop, the smallest RTT), the states that measure
 * it, and the pacing rate and window that follow from it. It couples nothing, and leaves the
 * choice of the bandwidth to use to its caller: bbr_update_model, then bbr_control.
 *
 * Written from draft-cardwell-iccrg-bbr-congestion-control-00 ("the draft"); sections are its.
 */
#ifndef MPTCPLAB_BBR_H
#define MPTCPLAB_BBR_H

#include "cc.h"

#define BBR_BW_SHIFT 24			/* bandwidths are packets/us, Q24 */
#define BBR_BW_ONE (1u << BBR_BW_SHIFT)
#define BBR_BW_ROUNDS 10u		/* round trips: window of the max filter (4.1.1.3) */
#define BBR_GAIN_SHIFT 8		/* gains are Q8 */
#define BBR_GAIN_ONE (1u << BBR_GAIN_SHIFT)
#define BBR_GAIN_STARTUP 739u		/* 2/ln(2), rounded up: doubles the rate per round (4.3.2) */
#define BBR_GAIN_DRAIN 88u		/* its inverse, rounded down (4.3.3) */
#define BBR_GAIN_CWND 512u		/* 2 BDP while probing bandwidth (4.2.3) */
#define BBR_GAIN_MAX (1u << 10)		/* arithmetic range */
#define BBR_PHASES 8u			/* phases of the gain cycle (4.3.4.1) */
#define BBR_PHASE_UP 0u			/* sends at 1.25 */
#define BBR_PHASE_DOWN 1u		/* sends at 0.75; all others at 1 */
#define BBR_FULL_ROUNDS 3u		/* rounds without 25 % more bandwidth fill the pipe (4.3.2.2) */
#define BBR_RTPROP_MS 10000u		/* ms: an RTprop is believed this long (4.1.2.3) */
#define BBR_PROBE_RTT_MS 200u		/* ms: least stay in PROBE_RTT (4.3.5) */
#define BBR_MIN_WINDOW 4u		/* packets (4.2.3.2) */
#define BBR_INITIAL_WINDOW 10u		/* packets, before the first RTT sample (RFC 6928) */
#define BBR_INITIAL_RTT_US 1000u	/* us, for the first pacing rate (4.2.1) */
#define BBR_MARGIN_PERCENT 99u		/* paced this much of the rate, so that queues drain */
#define BBR_USEC_PER_SEC 1000000u
#define BBR_NO_RTT 0xffffffffu
#define BBR_QUANTUM_MAX 65536u		/* bytes: largest burst of a sender (4.2.2) */
#define BBR_QUANTUM_SHIFT 10		/* a burst is about 1 ms of the rate: 2^-10 s */
#define BBR_SLOW_RATE 150000u		/* bytes/s = 1.2 Mbit/s: below it, bursts of one packet */

/* Policers: two intervals with much loss and the same rate make that rate the bandwidth. */
#define BBR_POLICED_ROUNDS_MIN 4u	/* rounds of an interval, at least... */
#define BBR_POLICED_ROUNDS_MAX 16u	/* ...and at most */
#define BBR_POLICED_LOSS 50u		/* of 256 packets lost */
#define BBR_POLICED_RATIO 32u		/* of 256: rates this near are the same, */
#define BBR_POLICED_DIFF 500u		/* as are those that differ by so many bytes/s */
#define BBR_POLICED_USE_ROUNDS 48u	/* rounds after which it is tried without */
#define BBR_POLICED_INTERVAL_MAX_MS (1u << 22)

enum bbr_mode {
	BBR_STARTUP,
	BBR_DRAIN,
	BBR_PROBE_BW,
	BBR_PROBE_RTT,
};

struct bbr {
	u32 bw[3];	 /* Q24: BtlBw and the next two of the max filter; shared with siblings */
	u32 rate;	 /* Q24: the latest delivery rate; shared with siblings */
	u16 bw_round[3]; /* rounds of bw[] */
	u16 round;	 /* round trips, modulo 2^16 */
	u32 round_end;	 /* the round ends when a packet sent after this delivery is acknowledged */
	u32 min_rtt_us;	 /* RTprop */
	u32 min_rtt_ms;	 /* when it was measured */
	u32 stamp; /* PROBE_BW: begin of the phase, us; PROBE_RTT: its end, ms, 0 if not known */
	u32 prior_cwnd;	   /* packets, before recovery or PROBE_RTT */
	u32 full_bw;	   /* Q24: bandwidth when it last grew by 25 % */
	u32 probe_rtt_end; /* samples of packets sent up to this delivery were taken in PROBE_RTT */
	u32 policed_bw;	   /* Q24: rate of the latest interval with much loss, 0: none */
	u32 interval_delivered;
	u32 interval_lost;
	u32 interval_ms;
	u8 mode;	    /* enum bbr_mode */
	u8 phase;	    /* of the gain cycle */
	u8 full_rounds;	    /* rounds without growth; BBR_FULL_ROUNDS: the pipe is full */
	u8 interval_rounds; /* rounds of this interval, or of the use of policed_bw */
	u32 prev_state : 3; /* enum tcp_ca_state at the latest ACK */
	u32 conserves : 1;  /* first round of recovery: sends what was delivered */
	u32 idle_restart : 1;
	u32 probe_rtt_round : 1; /* a whole round was spent in PROBE_RTT */
	u32 probed_rtt : 1;	 /* probe_rtt_end is valid */
	u32 has_rtt : 1;	 /* the first pacing rate had an RTT to go by */
	u32 in_interval : 1;	 /* an interval with loss is being measured */
	u32 policed : 1;	 /* policed_bw is used */
};
CC_STATE(bbr);

/* What one ACK says, beside its rate sample. */
struct bbr_ack {
	bool starts_round;
	bool limited; /* the sample may be less than what the path could do */
	u32 flight;   /* packets in the network after it */
};

/* ---- the model's equations ---- */

/* delivered/interval: < 2^31 packets, so the dividend is < 2^55. */
static u32 bbr_rate(u32 delivered, u64 interval_us)
{
	return (u32)cc_min(cc_div(cc_shl((u64)delivered, BBR_BW_SHIFT), interval_us),
			   (u64)0xffffffffu);
}

/* gain * bw in bytes/s. bw < 2^32, MSS <= 2^16, gain < 2^10: bytes/us in Q24 are < 2^50. */
static u64 bbr_bytes_per_s(const struct sock *sk, u32 bw, u32 gain)
{
	u64 bytes_q24 = cc_mul(bw, cc_min(tcp_sk(sk)->mss_cache, 1u << 16));

	bytes_q24 = cc_mul(bytes_q24, gain) >> BBR_GAIN_SHIFT;
	/* Whole bytes and their fraction apart: each product is < 2^46. */
	return cc_mul(bytes_q24 >> BBR_BW_SHIFT, BBR_USEC_PER_SEC) +
	       (cc_mul(bytes_q24 & (BBR_BW_ONE - 1), BBR_USEC_PER_SEC) >> BBR_BW_SHIFT);
}

/* gain * bw * RTprop, packets, rounded up. */
static u32 bbr_bdp(const struct bbr *bbr, u32 bw, u32 gain)
{
	u64 packets_q24;

	if (bbr->min_rtt_us == BBR_NO_RTT)
		return BBR_INITIAL_WINDOW;
	/* RTprop <= 2^26 us: < 2^58. No window is 2^29 packets, which leaves room for the gain. */
	packets_q24 = cc_min(cc_mul(bw, bbr->min_rtt_us), 1ull << (29 + BBR_BW_SHIFT));
	packets_q24 = cc_mul(packets_q24, gain) >> BBR_GAIN_SHIFT;
	return (u32)(cc_add(packets_q24, BBR_BW_ONE - 1) >> BBR_BW_SHIFT);
}

/* Packets that a sender with segmentation offload sends at once (4.2.2). */
static u32 bbr_quantum(const struct sock *sk)
{
	u64 rate = cc_pacing_rate(sk);
	u64 bytes = cc_min(rate >> BBR_QUANTUM_SHIFT, (u64)BBR_QUANTUM_MAX);
	u32 packets = (u32)cc_div(bytes, cc_max(tcp_sk(sk)->mss_cache, 1u));

	return cc_max(packets, rate < BBR_SLOW_RATE ? 1u : 2u);
}

/* The data in flight that keeps the path busy: three bursts more than the BDP, an even number. */
static u32 bbr_inflight(const struct sock *sk, const struct bbr *bbr, u32 bw, u32 gain)
{
	u32 packets = bbr_bdp(bbr, bw, gain) + 3 * bbr_quantum(sk);

	packets = (packets + 1) & ~1u;
	/* So that probing gets through where the BDP is small. */
	if (bbr->mode == BBR_PROBE_BW && bbr->phase == BBR_PHASE_UP)
		packets += 2;
	return packets;
}

static bool bbr_is_full(const struct bbr *bbr)
{
	return bbr->full_rounds >= BBR_FULL_ROUNDS;
}

static u32 bbr_pacing_gain(const struct bbr *bbr)
{
	if (bbr->mode == BBR_STARTUP)
		return BBR_GAIN_STARTUP;
	if (bbr->mode == BBR_DRAIN)
		return BBR_GAIN_DRAIN;
	if (bbr->mode == BBR_PROBE_RTT || bbr->policed)
		return BBR_GAIN_ONE;
	if (bbr->phase == BBR_PHASE_UP)
		return BBR_GAIN_ONE * 5 / 4;
	return bbr->phase == BBR_PHASE_DOWN ? BBR_GAIN_ONE * 3 / 4 : BBR_GAIN_ONE;
}

static u32 bbr_cwnd_gain(const struct bbr *bbr)
{
	if (bbr->mode == BBR_PROBE_BW)
		return BBR_GAIN_CWND;
	return bbr->mode == BBR_PROBE_RTT ? BBR_GAIN_ONE : BBR_GAIN_STARTUP;
}

/* The bandwidth that the path is believed to have. */
static u32 bbr_bw(const struct bbr *bbr)
{
	return bbr->policed ? bbr->policed_bw : bbr->bw[0];
}

static u32 bbr_now_ms(const struct sock *sk)
{
	return (u32)cc_div(cc_now_us(sk), 1000u);
}

/* ---- states ---- */

static void bbr_enter_phase(struct sock *sk, u32 phase)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->phase = phase & (BBR_PHASES - 1);
	bbr->stamp = (u32)cc_now_us(sk);
}

/*
 * Any phase but the one that sends less, by chance (4.3.4.2): flows that start together are
 * not to probe together. A hash of what differs between them, the same in every build.
 */
static void bbr_enter_probe_bw(struct sock *sk)
{
	u64 hash = (cc_now_us(sk) << 3 | cc_own_slot(sk)) ^ (u64)tcp_sk(sk)->snd_nxt << 32;
	u32 phase = (u32)(hash * 0x9e3779b97f4a7c15ull >> 32) % (BBR_PHASES - 1);

	bbr_state(sk)->mode = BBR_PROBE_BW;
	bbr_enter_phase(sk, phase < BBR_PHASE_DOWN ? phase : phase + 1);
}

static void bbr_leave_probe_rtt(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	bbr->min_rtt_ms = bbr_now_ms(sk);
	tp->snd_cwnd = cc_min(cc_max(tp->snd_cwnd, bbr->prior_cwnd), tp->snd_cwnd_clamp);
	if (bbr_is_full(bbr))
		bbr_enter_probe_bw(sk);
	else
		bbr->mode = BBR_STARTUP;
}

static void bbr_check_probe_rtt_done(struct sock *sk)
{
	const struct bbr *bbr = bbr_state(sk);

	if (bbr->stamp && cc_after(bbr_now_ms(sk), bbr->stamp))
		bbr_leave_probe_rtt(sk);
}

/* The window to come back to: the largest since recovery or PROBE_RTT began. */
static void bbr_save_cwnd(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (bbr->prev_state < TCP_CA_Recovery && bbr->mode != BBR_PROBE_RTT)
		bbr->prior_cwnd = cwnd;
	else
		bbr->prior_cwnd = cc_max(bbr->prior_cwnd, cwnd);
}

/* ---- policers ---- */

static void bbr_begin_interval(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->interval_ms = bbr_now_ms(sk);
	bbr->interval_delivered = tcp_sk(sk)->delivered;
	bbr->interval_lost = tcp_sk(sk)->lost;
	bbr->interval_rounds = 0;
}

static void bbr_forget_policer(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->policed_bw = 0;
	bbr->policed = 0;
	bbr->in_interval = 0;
	bbr_begin_interval(sk);
}

static void bbr_end_interval(struct sock *sk, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);
	u32 before = bbr->policed_bw;
	u32 diff = bw > before ? bw - before : before - bw;

	if (before && (cc_mul(diff, BBR_GAIN_ONE) <= cc_mul(before, BBR_POLICED_RATIO) ||
		       bbr_bytes_per_s(sk, diff, BBR_GAIN_ONE) <= BBR_POLICED_DIFF)) {
		bbr->policed_bw = (u32)(((u64)bw + before) >> 1);
		bbr->policed = 1;
		bbr->interval_rounds = 0;
		return;
	}
	bbr->policed_bw = bw;
	bbr_begin_interval(sk);
}

/* A token bucket passes everything for a while, then drops all above its rate. */
static void bbr_measure_policer(struct sock *sk, u32 losses, const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);
	u32 delivered, lost, ms;

	if (bbr->policed) {
		if (bbr->mode == BBR_PROBE_BW && ack->starts_round &&
		    ++bbr->interval_rounds >= BBR_POLICED_USE_ROUNDS) {
			bbr_forget_policer(sk);
			bbr_enter_probe_bw(sk);
		}
		return;
	}
	if (!bbr->in_interval) {
		if (!losses)
			return;
		bbr_begin_interval(sk);
		bbr->in_interval = 1;
	}
	bbr->interval_rounds += ack->starts_round;
	if (ack->limited || bbr->interval_rounds > BBR_POLICED_ROUNDS_MAX) {
		bbr_forget_policer(sk);
		return;
	}
	if (bbr->interval_rounds < BBR_POLICED_ROUNDS_MIN || !losses)
		return;
	lost = tcp_sk(sk)->lost - bbr->interval_lost;
	delivered = tcp_sk(sk)->delivered - bbr->interval_delivered;
	if (!delivered || cc_mul(lost, 256) < cc_mul(delivered, BBR_POLICED_LOSS))
		return;
	ms = bbr_now_ms(sk) - bbr->interval_ms;
	if (ms > BBR_POLICED_INTERVAL_MAX_MS)
		bbr_forget_policer(sk);
	else if (ms)
		bbr_end_interval(sk, bbr_rate(delivered & 0x7fffffffu, cc_mul(ms, 1000)));
}

/* ---- BtlBw (4.1.1) ---- */

/* Age of a member of the max filter, rounds. */
static u32 bbr_bw_age(const struct bbr *bbr, u32 i)
{
	return (u16)(bbr->round - bbr->bw_round[i]);
}

/* Member `i` and those behind it become this sample. */
static void bbr_put_bw(struct bbr *bbr, u32 i, u32 bw)
{
	for (; i < 3; i++) {
		bbr->bw[i] = bw;
		bbr->bw_round[i] = bbr->round;
	}
}

/* The largest is too old: the next two move up, the sample follows them. */
static void bbr_shift_bw(struct bbr *bbr, u32 bw)
{
	bbr->bw[0] = bbr->bw[1];
	bbr->bw_round[0] = bbr->bw_round[1];
	bbr->bw[1] = bbr->bw[2];
	bbr->bw_round[1] = bbr->bw_round[2];
	bbr_put_bw(bbr, 2, bw);
}

/*
 * The largest value of the last rounds in three samples (Nichols' windowed filter): the
 * largest, the largest after it, and the largest after that.
 */
static void bbr_filter_bw(struct bbr *bbr, u32 bw)
{
	if (bw >= bbr->bw[0] || bbr_bw_age(bbr, 2) > BBR_BW_ROUNDS) {
		bbr_put_bw(bbr, 0, bw);
		return;
	}
	if (bw >= bbr->bw[1])
		bbr_put_bw(bbr, 1, bw);
	else if (bw >= bbr->bw[2])
		bbr_put_bw(bbr, 2, bw);
	if (bbr_bw_age(bbr, 0) > BBR_BW_ROUNDS) {
		bbr_shift_bw(bbr, bw);
		if (bbr_bw_age(bbr, 0) > BBR_BW_ROUNDS)
			bbr_shift_bw(bbr, bw);
	} else if (bbr->bw_round[1] == bbr->bw_round[0] && bbr_bw_age(bbr, 0) > BBR_BW_ROUNDS / 4) {
		/* A quarter of the window has gone by without a second choice: take one. */
		bbr_put_bw(bbr, 1, bw);
	} else if (bbr->bw_round[2] == bbr->bw_round[1] && bbr_bw_age(bbr, 0) > BBR_BW_ROUNDS / 2) {
		bbr_put_bw(bbr, 2, bw);
	}
}

/* Samples of packets that were sent during PROBE_RTT say nothing about the path. */
static bool bbr_is_limited(struct bbr *bbr, const struct rate_sample *rs)
{
	if (bbr->probed_rtt && cc_after(rs->prior_delivered, bbr->probe_rtt_end))
		bbr->probed_rtt = 0;
	return rs->is_app_limited || bbr->probed_rtt;
}

static void bbr_update_bw(struct sock *sk, const struct rate_sample *rs, struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);

	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	ack->limited = bbr_is_limited(bbr, rs);
	if (!cc_before(rs->prior_delivered, bbr->round_end)) {
		bbr->round_end = tcp_sk(sk)->delivered;
		bbr->round++;
		bbr->conserves = 0;
		ack->starts_round = true;
	}
	bbr_measure_policer(sk, cc_max(rs->losses, 0), ack);
	bbr->rate = bbr_rate((u32)rs->delivered, (u64)rs->interval_us);
	if (!ack->limited || bbr->rate >= bbr->bw[0])
		bbr_filter_bw(bbr, bbr->rate);
}

/* ---- the gain cycle (4.3.4), leaving STARTUP and DRAIN (4.3.2, 4.3.3) ---- */

static bool bbr_phase_is_over(const struct sock *sk, const struct bbr *bbr,
			      const struct rate_sample *rs)
{
	bool long_enough = (u32)cc_now_us(sk) - bbr->stamp > bbr->min_rtt_us;
	u32 gain = bbr_pacing_gain(bbr);

	if (gain == BBR_GAIN_ONE)
		return long_enough;
	if (gain > BBR_GAIN_ONE)
		return long_enough &&
		       (rs->losses > 0 ||
			rs->prior_in_flight >= bbr_inflight(sk, bbr, bbr->bw[0], gain));
	return long_enough ||
	       rs->prior_in_flight <= bbr_inflight(sk, bbr, bbr->bw[0], BBR_GAIN_ONE);
}

static void bbr_check_full_pipe(struct bbr *bbr, const struct bbr_ack *ack)
{
	if (bbr_is_full(bbr) || !ack->starts_round || ack->limited)
		return;
	if (cc_mul(bbr->bw[0], 4) >= cc_mul(bbr->full_bw, 5)) {
		bbr->full_bw = bbr->bw[0];
		bbr->full_rounds = 0;
	} else {
		bbr->full_rounds++;
	}
}

static void bbr_update_state(struct sock *sk, const struct rate_sample *rs,
			     const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);

	if (bbr->mode == BBR_PROBE_BW && bbr_phase_is_over(sk, bbr, rs))
		bbr_enter_phase(sk, bbr->phase + 1);
	bbr_check_full_pipe(bbr, ack);
	if (bbr->mode == BBR_STARTUP && bbr_is_full(bbr))
		bbr->mode = BBR_DRAIN;
	if (bbr->mode == BBR_DRAIN &&
	    ack->flight <= bbr_inflight(sk, bbr, bbr->bw[0], BBR_GAIN_ONE))
		bbr_enter_probe_bw(sk);
}

/* ---- RTprop (4.1.2) and PROBE_RTT (4.3.5) ---- */

static void bbr_stay_in_probe_rtt(struct sock *sk, const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);
	u32 delivered = tcp_sk(sk)->delivered;

	bbr->probe_rtt_end = delivered + ack->flight;
	bbr->probed_rtt = 1;
	if (bbr->stamp) {
		bbr->probe_rtt_round |= ack->starts_round;
		if (bbr->probe_rtt_round)
			bbr_check_probe_rtt_done(sk);
	} else if (ack->flight <= BBR_MIN_WINDOW) {
		/* 0 would say that the end is not known. */
		bbr->stamp = cc_max(bbr_now_ms(sk) + BBR_PROBE_RTT_MS, 1u);
		bbr->probe_rtt_round = 0;
		bbr->round_end = delivered;
	}
}

static void bbr_update_rtprop(struct sock *sk, const struct rate_sample *rs,
			      const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);
	u32 now_ms = bbr_now_ms(sk);
	bool expired = cc_after(now_ms, bbr->min_rtt_ms + BBR_RTPROP_MS);

	if (rs->rtt_us >= 0) {
		u32 rtt_us = (u32)cc_clamp((u64)rs->rtt_us, 1ull, (u64)CC_RTT_MAX_US);

		if (rtt_us < bbr->min_rtt_us || (expired && !rs->is_ack_delayed)) {
			bbr->min_rtt_us = rtt_us;
			bbr->min_rtt_ms = now_ms;
		}
	}
	if (expired && !bbr->idle_restart && bbr->mode != BBR_PROBE_RTT) {
		bbr->mode = BBR_PROBE_RTT;
		bbr_save_cwnd(sk);
		bbr->stamp = 0;
	}
	if (bbr->mode == BBR_PROBE_RTT)
		bbr_stay_in_probe_rtt(sk, ack);
	/* Back from being idle once something was delivered. */
	if (rs->delivered > 0)
		bbr->idle_restart = 0;
}

/* What an ACK says about the path, and the state that follows from it. */
static void bbr_update_model(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr_ack ack = { .flight = cc_packets_in_flight(sk) };

	bbr_update_bw(sk, rs, &ack);
	bbr_update_state(sk, rs, &ack);
	bbr_update_rtprop(sk, rs, &ack);
}

/* ---- control (4.2) ---- */

static u64 bbr_pacing_rate(const struct sock *sk, u32 bw, u32 gain)
{
	/* < 2^47 bytes/s. */
	return cc_div(cc_mul(bbr_bytes_per_s(sk, bw, gain), BBR_MARGIN_PERCENT), 100u);
}

/* Before there is a bandwidth: the initial window per RTT (4.2.1). */
static void bbr_start_pacing(struct sock *sk)
{
	u32 srtt_us = cc_srtt_us(sk);
	u32 bw = bbr_rate(cc_window(sk), srtt_us ? srtt_us : BBR_INITIAL_RTT_US);

	if (srtt_us)
		bbr_state(sk)->has_rtt = 1;
	cc_set_pacing_rate(sk, bbr_pacing_rate(sk, bw, BBR_GAIN_STARTUP));
}

static void bbr_set_pacing(struct sock *sk, u32 bw, u32 gain)
{
	u64 rate = bbr_pacing_rate(sk, bw, gain);

	if (!bbr_state(sk)->has_rtt && cc_srtt_us(sk))
		bbr_start_pacing(sk);
	/* While the pipe fills, a low sample does not slow it down. */
	if (bbr_is_full(bbr_state(sk)) || rate > cc_pacing_rate(sk))
		cc_set_pacing_rate(sk, rate);
}

/*
 * Recovery (4.2.3.4): for a round no more is sent than was delivered; then back to the window
 * before it. Returns the window to go on from; `conserves` says that it is the window.
 */
static u32 bbr_recovery_window(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = bbr_state(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 state = cc_ca_state(sk);
	u32 sent_or_acked = cc_packets_in_flight(sk) + rs->acked_sacked;

	if (rs->losses > 0)
		cwnd = cwnd > (u32)rs->losses ? cwnd - (u32)rs->losses : 1;
	if (state == TCP_CA_Recovery && bbr->prev_state != TCP_CA_Recovery) {
		bbr->conserves = 1;
		bbr->round_end = tcp_sk(sk)->delivered;
		cwnd = sent_or_acked;
	} else if (state < TCP_CA_Recovery && bbr->prev_state >= TCP_CA_Recovery) {
		bbr->conserves = 0;
		cwnd = cc_max(cwnd, bbr->prior_cwnd);
	}
	bbr->prev_state = state;
	return bbr->conserves ? cc_max(cwnd, sent_or_acked) : cwnd;
}

static u32 bbr_next_window(struct sock *sk, const struct rate_sample *rs, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);
	u32 cwnd = bbr_recovery_window(sk, rs);
	u32 target;

	if (bbr->conserves)
		return cwnd;
	target = bbr_inflight(sk, bbr, bw, bbr_cwnd_gain(bbr));
	if (bbr_is_full(bbr))
		cwnd = cc_min(cwnd + rs->acked_sacked, target);
	else if (cwnd < target || tcp_sk(sk)->delivered < BBR_INITIAL_WINDOW)
		cwnd += rs->acked_sacked;
	return cc_max(cwnd, BBR_MIN_WINDOW);
}

/* Pace and bound the data in flight, given the bandwidth to use. */
static void bbr_control(struct sock *sk, const struct rate_sample *rs, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	bbr_set_pacing(sk, bw, bbr_pacing_gain(bbr));
	if (rs->acked_sacked)
		cwnd = bbr_next_window(sk, rs, bw);
	if (bbr->mode == BBR_PROBE_RTT)
		cwnd = cc_min(cwnd, BBR_MIN_WINDOW);
	tp->snd_cwnd = cc_clamp(cwnd, 1u, tp->snd_cwnd_clamp);
}

/* ---- the other hooks ---- */

static void bbr_start(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->min_rtt_us = cc_min_rtt_us(sk);
	if (bbr->min_rtt_us != BBR_NO_RTT)
		bbr->min_rtt_us = cc_clamp(bbr->min_rtt_us, 1u, CC_RTT_MAX_US);
	bbr->min_rtt_ms = bbr_now_ms(sk);
	bbr->round_end = tcp_sk(sk)->delivered;
	bbr_forget_policer(sk);
	bbr_start_pacing(sk);
	cc_request_pacing(sk);
}

/* No threshold: BBR only has to remember the window that recovery will take away. */
static u32 bbr_remember_window(struct sock *sk)
{
	bbr_save_cwnd(sk);
	return tcp_sk(sk)->snd_ssthresh;
}

/* The loss was none: what slowed down the growth meanwhile does not count. */
static u32 bbr_undo_loss(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->full_bw = 0;
	if (!bbr_is_full(bbr))
		bbr->full_rounds = 0;
	bbr_forget_policer(sk);
	return tcp_sk(sk)->snd_cwnd;
}

static void bbr_note_state(struct sock *sk, u32 state)
{
	struct bbr *bbr = bbr_state(sk);
	struct bbr_ack timeout = { .starts_round = true };

	if (state != TCP_CA_Loss)
		return;
	bbr->prev_state = TCP_CA_Loss;
	bbr->full_bw = 0;
	bbr_measure_policer(sk, 1, &timeout);
}

/* Sending again after a pause: at the known bandwidth, not with a burst (4.2.1). */
static void bbr_restart(struct sock *sk, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);

	if (!tcp_sk(sk)->app_limited)
		return;
	bbr->idle_restart = 1;
	if (bbr->mode == BBR_PROBE_BW)
		bbr_set_pacing(sk, bw, BBR_GAIN_ONE);
	else if (bbr->mode == BBR_PROBE_RTT)
		bbr_check_probe_rtt_done(sk);
}

#endif
