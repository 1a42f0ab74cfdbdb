/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BBR version 1, for bbr.c and for algorithms that build on it:
 *
 *	bbr_update_model() updates, on each ACK, a model of the path, bw (BtlBw, the
 *	largest delivery rate) and min_rtt_us (RTprop, the smallest RTT), and the state
 *	that measures it.
 *	bbr_control() sets the pacing rate and the window that follow from the model and
 *	from the bandwidth that the caller wants to use, usually bbr_bw().
 *
 * It couples nothing. Written from draft-cardwell-iccrg-bbr-congestion-control-00 (numbers
 * in parentheses are its sections); names of members, functions and constants are those of
 * Linux' net/ipv4/tcp_bbr.c where both have the same.
 */
#ifndef MPTCPLAB_BBR_H
#define MPTCPLAB_BBR_H

#include "cc.h"

#define BW_SCALE 24			/* bandwidths are packets/us, Q24 */
#define BW_UNIT (1u << BW_SCALE)
#define BBR_SCALE 8			/* gains are Q8 */
#define BBR_UNIT (1u << BBR_SCALE)

#define BBR_BW_RTTS 10u			/* window of the bandwidth's max filter, rounds (4.1.1.3) */
#define BBR_MIN_RTT_WIN_MS 10000u	/* window of the RTT's min filter, ms (4.1.2.3) */
#define BBR_PROBE_RTT_MODE_MS 200u	/* least time in PROBE_RTT, ms (4.3.5) */
#define BBR_HIGH_GAIN 739u		/* 2/ln(2), rounded up: doubles the rate per round (4.3.2) */
#define BBR_DRAIN_GAIN 88u		/* its inverse, rounded down (4.3.3) */
#define BBR_CWND_GAIN 512u		/* 2 BDP while probing bandwidth (4.2.3) */
#define BBR_CYCLE_LEN 8u		/* phases of the gain cycle (4.3.4.1) */
#define BBR_CYCLE_UP 0u			/* the phase that sends at 1.25 */
#define BBR_CYCLE_DOWN 1u		/* the phase that sends at 0.75; all others send at 1 */
#define BBR_FULL_BW_CNT 3u		/* rounds without 25 % more bandwidth: full pipe (4.3.2.2) */
#define BBR_CWND_MIN_TARGET 4u		/* packets (4.2.3.2) */
#define BBR_PACING_PERCENT 99u		/* of the rate is paced, so that queues drain (Linux) */
#define BBR_INITIAL_WINDOW 10u		/* packets, before the first RTT sample (RFC 6928) */
#define BBR_INITIAL_RTT_US 1000u	/* us, for the first pacing rate (4.2.1) */
#define BBR_TSO_MAX_BYTES 65536u	/* largest burst of a sender (4.2.2) */
#define BBR_TSO_SHIFT 10		/* a burst is about 1 ms of the rate: 2^-10 s (Linux) */
#define BBR_MIN_TSO_RATE 150000u	/* bytes/s = 1.2 Mbit/s: below it, bursts of one packet */
#define BBR_USEC_PER_SEC 1000000u
#define BBR_NO_RTT 0xffffffffu		/* min_rtt_us before the first sample */

/*
 * Long-term ("lt") bandwidth, for policers (Linux; not in the draft): two intervals with
 * much loss and about the same rate make that rate the bandwidth.
 */
#define BBR_LT_INTVL_MIN_RTTS 4u	/* least rounds of an interval */
#define BBR_LT_INTVL_MAX_RTTS 16u	/* most rounds of an interval */
#define BBR_LT_LOSS_THRESH 50u		/* packets lost of 256 that make an interval count */
#define BBR_LT_BW_RATIO 32u		/* of 256: rates that differ by less are the same, */
#define BBR_LT_BW_DIFF 500u		/* as are rates that differ by so many bytes/s */
#define BBR_LT_BW_MAX_RTTS 48u		/* rounds of using lt_bw before probing again */
#define BBR_LT_INTVL_MAX_MS (1u << 22)	/* ms; arithmetic range */

enum bbr_mode {
	BBR_STARTUP,
	BBR_DRAIN,
	BBR_PROBE_BW,
	BBR_PROBE_RTT,
};

/* Delivery rates, Q24, of the kind that siblings may read. */
struct bbr_rates {
	u32 max[3]; /* max filter: BtlBw, and the two that follow when it is too old */
	u32 latest; /* rate of the latest sample */
};

struct bbr {
	struct bbr_rates bw;
	u16 bw_rtt_cnt[3];	/* rtt_cnt at bw.max[] */
	u16 rtt_cnt;		/* packet-timed rounds so far, modulo 2^16 */
	u32 next_rtt_delivered; /* tp->delivered at the end of the round */
	u32 min_rtt_us;		/* RTprop, us, or BBR_NO_RTT */
	u32 min_rtt_stamp;	/* when min_rtt_us was measured, ms */
	union {
		u32 cycle_mstamp;	  /* PROBE_BW: start of the phase, us */
		u32 probe_rtt_done_stamp; /* PROBE_RTT: its end, ms; 0: not yet known */
	};
	u32 prior_cwnd;		      /* packets, before recovery or PROBE_RTT */
	u32 full_bw;		      /* Q24: bandwidth when it last grew by 25 % */
	u32 probe_rtt_delivered;      /* what was sent before this delivery was sent in PROBE_RTT */
	u32 lt_bw;		      /* Q24: rate of the latest lossy interval, 0: none */
	u32 lt_last_delivered;	      /* start of the long-term interval: tp->delivered */
	u32 lt_last_lost;	      /* start of the long-term interval: tp->lost */
	u32 lt_last_stamp;	      /* start of the long-term interval, ms */
	u8 mode;		      /* enum bbr_mode */
	u8 cycle_idx;		      /* phase of the gain cycle */
	u8 full_bw_cnt;		      /* rounds without 25 % more bandwidth */
	u8 lt_rtt_cnt;		      /* rounds of the long-term interval, or of using lt_bw */
	u32 prev_ca_state : 3;	      /* enum tcp_ca_state at the previous ACK */
	u32 packet_conservation : 1;  /* first round of recovery: send what was delivered */
	u32 idle_restart : 1;	      /* restarting after idle */
	u32 probe_rtt_round_done : 1; /* a whole round was spent in PROBE_RTT */
	u32 after_probe_rtt : 1;      /* probe_rtt_delivered is valid */
	u32 has_seen_rtt : 1;	      /* the pacing rate was set from an RTT sample */
	u32 lt_is_sampling : 1;	      /* a long-term interval is being measured */
	u32 lt_use_bw : 1;	      /* lt_bw is the bandwidth */
};
CC_STATE(bbr);

/* What bbr_update_model() derives from one ACK. */
struct bbr_ack {
	bool round_start;
	bool limited; /* the rate sample may be below what the path could carry */
	u32 flight;   /* packets in flight after it */
};

/* ---- equations ---- */

/* delivered/interval: < 2^31 packets, so the dividend is < 2^55. */
static u32 bbr_rate(u32 delivered, u64 interval_us)
{
	return (u32)cc_min(cc_div(cc_shl((u64)delivered, BW_SCALE), interval_us), (u64)0xffffffffu);
}

/* gain * bw in bytes/s. bw < 2^32, MSS <= 2^16, gain < 2^10: bytes/us in Q24 are < 2^50. */
static u64 bbr_bytes_per_s(const struct sock *sk, u32 bw, u32 gain)
{
	u64 bytes_q24 = cc_mul(bw, cc_min(tcp_sk(sk)->mss_cache, 1u << 16));

	bytes_q24 = cc_mul(bytes_q24, gain) >> BBR_SCALE;
	/* Whole bytes and their fraction apart: each product is < 2^46. */
	return cc_mul(bytes_q24 >> BW_SCALE, BBR_USEC_PER_SEC) +
	       (cc_mul(bytes_q24 & (BW_UNIT - 1), BBR_USEC_PER_SEC) >> BW_SCALE);
}

/* gain * bw * RTprop, packets, rounded up. */
static u32 bbr_bdp(const struct bbr *bbr, u32 bw, u32 gain)
{
	u64 packets_q24;

	if (bbr->min_rtt_us == BBR_NO_RTT)
		return BBR_INITIAL_WINDOW;
	/* RTprop <= 2^26 us: < 2^58. No window is 2^29 packets, which leaves room for the gain. */
	packets_q24 = cc_min(cc_mul(bw, bbr->min_rtt_us), 1ull << (29 + BW_SCALE));
	packets_q24 = cc_mul(packets_q24, gain) >> BBR_SCALE;
	return (u32)(cc_add(packets_q24, BW_UNIT - 1) >> BW_SCALE);
}

/* Packets that a sender with segmentation offload sends in one burst (4.2.2). */
static u32 bbr_tso_segs_goal(const struct sock *sk)
{
	u64 rate = cc_pacing_rate(sk);
	u64 bytes = cc_min(rate >> BBR_TSO_SHIFT, (u64)BBR_TSO_MAX_BYTES);
	u32 packets = (u32)cc_div(bytes, cc_max(tcp_sk(sk)->mss_cache, 1u));

	return cc_max(packets, rate < BBR_MIN_TSO_RATE ? 1u : 2u);
}

/* Packets in flight that keep the path busy: the BDP and three bursts, rounded up to even. */
static u32 bbr_inflight(const struct sock *sk, const struct bbr *bbr, u32 bw, u32 gain)
{
	u32 packets = bbr_bdp(bbr, bw, gain) + 3 * bbr_tso_segs_goal(sk);

	packets = (packets + 1) & ~1u;
	/* Or probing would change nothing where the BDP is small. */
	if (bbr->mode == BBR_PROBE_BW && bbr->cycle_idx == BBR_CYCLE_UP)
		packets += 2;
	return packets;
}

static bool bbr_full_bw_reached(const struct bbr *bbr)
{
	return bbr->full_bw_cnt >= BBR_FULL_BW_CNT;
}

static u32 bbr_pacing_gain(const struct bbr *bbr)
{
	if (bbr->mode == BBR_STARTUP)
		return BBR_HIGH_GAIN;
	if (bbr->mode == BBR_DRAIN)
		return BBR_DRAIN_GAIN;
	if (bbr->mode == BBR_PROBE_RTT || bbr->lt_use_bw)
		return BBR_UNIT;
	if (bbr->cycle_idx == BBR_CYCLE_UP)
		return BBR_UNIT * 5 / 4;
	return bbr->cycle_idx == BBR_CYCLE_DOWN ? BBR_UNIT * 3 / 4 : BBR_UNIT;
}

static u32 bbr_cwnd_gain(const struct bbr *bbr)
{
	if (bbr->mode == BBR_PROBE_BW)
		return BBR_CWND_GAIN;
	return bbr->mode == BBR_PROBE_RTT ? BBR_UNIT : BBR_HIGH_GAIN;
}

static u32 bbr_max_bw(const struct bbr *bbr)
{
	return bbr->bw.max[0];
}

/* The estimated bandwidth of the path. */
static u32 bbr_bw(const struct bbr *bbr)
{
	return bbr->lt_use_bw ? bbr->lt_bw : bbr_max_bw(bbr);
}

static u32 bbr_now_ms(const struct sock *sk)
{
	return (u32)cc_div(cc_now_us(sk), 1000u);
}

/* ---- changes of state ---- */

static void bbr_set_cycle_idx(struct sock *sk, u32 phase)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->cycle_idx = phase & (BBR_CYCLE_LEN - 1);
	bbr->cycle_mstamp = (u32)cc_now_us(sk);
}

/*
 * A random phase, but not the one that sends less (4.3.4.2), so that flows that start
 * together do not probe together. A hash of what differs between them serves as the random
 * number, since it is the same in every build.
 */
static void bbr_reset_probe_bw_mode(struct sock *sk)
{
	u64 hash = (cc_now_us(sk) << 3 | cc_own_slot(sk)) ^ (u64)tcp_sk(sk)->snd_nxt << 32;
	u32 phase = (u32)(hash * 0x9e3779b97f4a7c15ull >> 32) % (BBR_CYCLE_LEN - 1);

	bbr_state(sk)->mode = BBR_PROBE_BW;
	bbr_set_cycle_idx(sk, phase < BBR_CYCLE_DOWN ? phase : phase + 1);
}

static void bbr_exit_probe_rtt(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	bbr->min_rtt_stamp = bbr_now_ms(sk);
	tp->snd_cwnd = cc_min(cc_max(tp->snd_cwnd, bbr->prior_cwnd), tp->snd_cwnd_clamp);
	if (bbr_full_bw_reached(bbr))
		bbr_reset_probe_bw_mode(sk);
	else
		bbr->mode = BBR_STARTUP;
}

static void bbr_check_probe_rtt_done(struct sock *sk)
{
	const struct bbr *bbr = bbr_state(sk);

	if (bbr->probe_rtt_done_stamp && cc_after(bbr_now_ms(sk), bbr->probe_rtt_done_stamp))
		bbr_exit_probe_rtt(sk);
}

/* The window to return to: the largest since recovery or PROBE_RTT began. */
static void bbr_save_cwnd(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (bbr->prev_ca_state < TCP_CA_Recovery && bbr->mode != BBR_PROBE_RTT)
		bbr->prior_cwnd = cwnd;
	else
		bbr->prior_cwnd = cc_max(bbr->prior_cwnd, cwnd);
}

/* ---- long-term bandwidth ---- */

static void bbr_reset_lt_bw_sampling_interval(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->lt_last_stamp = bbr_now_ms(sk);
	bbr->lt_last_delivered = tcp_sk(sk)->delivered;
	bbr->lt_last_lost = tcp_sk(sk)->lost;
	bbr->lt_rtt_cnt = 0;
}

static void bbr_reset_lt_bw_sampling(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->lt_bw = 0;
	bbr->lt_use_bw = 0;
	bbr->lt_is_sampling = 0;
	bbr_reset_lt_bw_sampling_interval(sk);
}

static void bbr_lt_bw_interval_done(struct sock *sk, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);
	u32 before = bbr->lt_bw;
	u32 diff = bw > before ? bw - before : before - bw;

	if (before && (cc_mul(diff, BBR_UNIT) <= cc_mul(before, BBR_LT_BW_RATIO) ||
		       bbr_bytes_per_s(sk, diff, BBR_UNIT) <= BBR_LT_BW_DIFF)) {
		bbr->lt_bw = (u32)(((u64)bw + before) >> 1);
		bbr->lt_use_bw = 1;
		bbr->lt_rtt_cnt = 0;
		return;
	}
	bbr->lt_bw = bw;
	bbr_reset_lt_bw_sampling_interval(sk);
}

/* A token-bucket policer passes everything for a while, then drops all above its rate. */
static void bbr_lt_bw_sampling(struct sock *sk, u32 losses, const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);
	u32 delivered, lost, ms;

	if (bbr->lt_use_bw) {
		if (bbr->mode == BBR_PROBE_BW && ack->round_start &&
		    ++bbr->lt_rtt_cnt >= BBR_LT_BW_MAX_RTTS) {
			bbr_reset_lt_bw_sampling(sk);
			bbr_reset_probe_bw_mode(sk);
		}
		return;
	}
	if (!bbr->lt_is_sampling) {
		if (!losses)
			return;
		bbr_reset_lt_bw_sampling_interval(sk);
		bbr->lt_is_sampling = 1;
	}
	bbr->lt_rtt_cnt += ack->round_start;
	if (ack->limited || bbr->lt_rtt_cnt > BBR_LT_INTVL_MAX_RTTS) {
		bbr_reset_lt_bw_sampling(sk);
		return;
	}
	if (bbr->lt_rtt_cnt < BBR_LT_INTVL_MIN_RTTS || !losses)
		return;
	lost = tcp_sk(sk)->lost - bbr->lt_last_lost;
	delivered = tcp_sk(sk)->delivered - bbr->lt_last_delivered;
	if (!delivered || cc_mul(lost, 256) < cc_mul(delivered, BBR_LT_LOSS_THRESH))
		return;
	ms = bbr_now_ms(sk) - bbr->lt_last_stamp;
	if (ms > BBR_LT_INTVL_MAX_MS)
		bbr_reset_lt_bw_sampling(sk);
	else if (ms)
		bbr_lt_bw_interval_done(sk, bbr_rate(delivered & 0x7fffffffu, cc_mul(ms, 1000)));
}

/* ---- bandwidth: BtlBw (4.1.1) ---- */

/* Age of an entry of the max filter, rounds. */
static u32 bbr_minmax_age(const struct bbr *bbr, u32 i)
{
	return (u16)(bbr->rtt_cnt - bbr->bw_rtt_cnt[i]);
}

/* Entry `i` and those after it become this sample. */
static void bbr_minmax_set(struct bbr *bbr, u32 i, u32 bw)
{
	for (; i < 3; i++) {
		bbr->bw.max[i] = bw;
		bbr->bw_rtt_cnt[i] = bbr->rtt_cnt;
	}
}

/* The largest is too old: the next two move up, and the sample becomes the last. */
static void bbr_minmax_shift(struct bbr *bbr, u32 bw)
{
	bbr->bw.max[0] = bbr->bw.max[1];
	bbr->bw_rtt_cnt[0] = bbr->bw_rtt_cnt[1];
	bbr->bw.max[1] = bbr->bw.max[2];
	bbr->bw_rtt_cnt[1] = bbr->bw_rtt_cnt[2];
	bbr_minmax_set(bbr, 2, bw);
}

/*
 * A windowed max filter over the last rounds (Nichols, Linux lib/win_minmax.c): the largest
 * sample, the largest after it, and the largest after that.
 */
static void bbr_minmax_update(struct bbr *bbr, u32 bw)
{
	if (bw >= bbr->bw.max[0] || bbr_minmax_age(bbr, 2) > BBR_BW_RTTS) {
		bbr_minmax_set(bbr, 0, bw);
		return;
	}
	if (bw >= bbr->bw.max[1])
		bbr_minmax_set(bbr, 1, bw);
	else if (bw >= bbr->bw.max[2])
		bbr_minmax_set(bbr, 2, bw);
	if (bbr_minmax_age(bbr, 0) > BBR_BW_RTTS) {
		bbr_minmax_shift(bbr, bw);
		if (bbr_minmax_age(bbr, 0) > BBR_BW_RTTS)
			bbr_minmax_shift(bbr, bw);
	} else if (bbr->bw_rtt_cnt[1] == bbr->bw_rtt_cnt[0] &&
		   bbr_minmax_age(bbr, 0) > BBR_BW_RTTS / 4) {
		/* A quarter of the window has passed without a second choice: take one. */
		bbr_minmax_set(bbr, 1, bw);
	} else if (bbr->bw_rtt_cnt[2] == bbr->bw_rtt_cnt[1] &&
		   bbr_minmax_age(bbr, 0) > BBR_BW_RTTS / 2) {
		bbr_minmax_set(bbr, 2, bw);
	}
}

/* Samples of packets that were sent during PROBE_RTT say nothing about the path either. */
static bool bbr_is_limited(struct bbr *bbr, const struct rate_sample *rs)
{
	if (bbr->after_probe_rtt && cc_after(rs->prior_delivered, bbr->probe_rtt_delivered))
		bbr->after_probe_rtt = 0;
	return rs->is_app_limited || bbr->after_probe_rtt;
}

static void bbr_update_bw(struct sock *sk, const struct rate_sample *rs, struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);

	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	ack->limited = bbr_is_limited(bbr, rs);
	if (!cc_before(rs->prior_delivered, bbr->next_rtt_delivered)) {
		bbr->next_rtt_delivered = tcp_sk(sk)->delivered;
		bbr->rtt_cnt++;
		bbr->packet_conservation = 0;
		ack->round_start = true;
	}
	bbr_lt_bw_sampling(sk, cc_max(rs->losses, 0), ack);
	bbr->bw.latest = bbr_rate((u32)rs->delivered, (u64)rs->interval_us);
	if (!ack->limited || bbr->bw.latest >= bbr_max_bw(bbr))
		bbr_minmax_update(bbr, bbr->bw.latest);
}

/* ---- the gain cycle (4.3.4), leaving STARTUP and DRAIN (4.3.2, 4.3.3) ---- */

static bool bbr_is_next_cycle_phase(const struct sock *sk, const struct bbr *bbr,
				    const struct rate_sample *rs)
{
	bool long_enough = (u32)cc_now_us(sk) - bbr->cycle_mstamp > bbr->min_rtt_us;
	u32 gain = bbr_pacing_gain(bbr);

	if (gain == BBR_UNIT)
		return long_enough;
	if (gain > BBR_UNIT)
		return long_enough &&
		       (rs->losses > 0 ||
			rs->prior_in_flight >= bbr_inflight(sk, bbr, bbr_max_bw(bbr), gain));
	return long_enough ||
	       rs->prior_in_flight <= bbr_inflight(sk, bbr, bbr_max_bw(bbr), BBR_UNIT);
}

static void bbr_check_full_bw_reached(struct bbr *bbr, const struct bbr_ack *ack)
{
	if (bbr_full_bw_reached(bbr) || !ack->round_start || ack->limited)
		return;
	if (cc_mul(bbr_max_bw(bbr), 4) >= cc_mul(bbr->full_bw, 5)) {
		bbr->full_bw = bbr_max_bw(bbr);
		bbr->full_bw_cnt = 0;
	} else {
		bbr->full_bw_cnt++;
	}
}

static void bbr_check_drain(struct sock *sk, const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);

	if (bbr->mode == BBR_STARTUP && bbr_full_bw_reached(bbr))
		bbr->mode = BBR_DRAIN;
	if (bbr->mode == BBR_DRAIN &&
	    ack->flight <= bbr_inflight(sk, bbr, bbr_max_bw(bbr), BBR_UNIT))
		bbr_reset_probe_bw_mode(sk);
}

static void bbr_update_state(struct sock *sk, const struct rate_sample *rs,
			     const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);

	if (bbr->mode == BBR_PROBE_BW && bbr_is_next_cycle_phase(sk, bbr, rs))
		bbr_set_cycle_idx(sk, bbr->cycle_idx + 1);
	bbr_check_full_bw_reached(bbr, ack);
	bbr_check_drain(sk, ack);
}

/* ---- smallest RTT: RTprop (4.1.2), and PROBE_RTT (4.3.5) ---- */

static void bbr_update_probe_rtt(struct sock *sk, const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);
	u32 delivered = tcp_sk(sk)->delivered;

	bbr->probe_rtt_delivered = delivered + ack->flight;
	bbr->after_probe_rtt = 1;
	if (bbr->probe_rtt_done_stamp) {
		bbr->probe_rtt_round_done |= ack->round_start;
		if (bbr->probe_rtt_round_done)
			bbr_check_probe_rtt_done(sk);
	} else if (ack->flight <= BBR_CWND_MIN_TARGET) {
		/* 0 would say that the end is not known. */
		bbr->probe_rtt_done_stamp = cc_max(bbr_now_ms(sk) + BBR_PROBE_RTT_MODE_MS, 1u);
		bbr->probe_rtt_round_done = 0;
		bbr->next_rtt_delivered = delivered;
	}
}

static void bbr_update_min_rtt(struct sock *sk, const struct rate_sample *rs,
			       const struct bbr_ack *ack)
{
	struct bbr *bbr = bbr_state(sk);
	u32 now_ms = bbr_now_ms(sk);
	bool expired = cc_after(now_ms, bbr->min_rtt_stamp + BBR_MIN_RTT_WIN_MS);

	if (rs->rtt_us >= 0) {
		u32 rtt_us = (u32)cc_clamp((u64)rs->rtt_us, 1ull, (u64)CC_RTT_MAX_US);

		if (rtt_us < bbr->min_rtt_us || (expired && !rs->is_ack_delayed)) {
			bbr->min_rtt_us = rtt_us;
			bbr->min_rtt_stamp = now_ms;
		}
	}
	if (expired && !bbr->idle_restart && bbr->mode != BBR_PROBE_RTT) {
		bbr->mode = BBR_PROBE_RTT;
		bbr_save_cwnd(sk);
		bbr->probe_rtt_done_stamp = 0;
	}
	if (bbr->mode == BBR_PROBE_RTT)
		bbr_update_probe_rtt(sk, ack);
	/* The restart after idle is over once something was delivered. */
	if (rs->delivered > 0)
		bbr->idle_restart = 0;
}

/* Updates the model and the state from one ACK. */
static void bbr_update_model(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr_ack ack = { .flight = cc_packets_in_flight(sk) };

	bbr_update_bw(sk, rs, &ack);
	bbr_update_state(sk, rs, &ack);
	bbr_update_min_rtt(sk, rs, &ack);
}

/* ---- control (4.2) ---- */

static u64 bbr_pacing_rate(const struct sock *sk, u32 bw, u32 gain)
{
	/* < 2^47 bytes/s. */
	return cc_div(cc_mul(bbr_bytes_per_s(sk, bw, gain), BBR_PACING_PERCENT), 100u);
}

/* Before there is a bandwidth: the initial window per RTT (4.2.1). */
static void bbr_init_pacing_rate_from_rtt(struct sock *sk)
{
	u32 srtt_us = cc_srtt_us(sk);
	u32 bw = bbr_rate(cc_window(sk), srtt_us ? srtt_us : BBR_INITIAL_RTT_US);

	if (srtt_us)
		bbr_state(sk)->has_seen_rtt = 1;
	cc_set_pacing_rate(sk, bbr_pacing_rate(sk, bw, BBR_HIGH_GAIN));
}

static void bbr_set_pacing_rate(struct sock *sk, u32 bw, u32 gain)
{
	u64 rate = bbr_pacing_rate(sk, bw, gain);

	if (!bbr_state(sk)->has_seen_rtt && cc_srtt_us(sk))
		bbr_init_pacing_rate_from_rtt(sk);
	/* While the pipe fills, a low sample does not slow it down. */
	if (bbr_full_bw_reached(bbr_state(sk)) || rate > cc_pacing_rate(sk))
		cc_set_pacing_rate(sk, rate);
}

/*
 * Recovery (4.2.3.4): for one round no more is sent than was delivered, and afterwards the
 * window is what it was before. Returns the window to go on from, which is final while
 * packet_conservation is set.
 */
static u32 bbr_cwnd_to_recover_or_restore(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = bbr_state(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 state = cc_ca_state(sk);
	u32 sent_or_acked = cc_packets_in_flight(sk) + rs->acked_sacked;

	if (rs->losses > 0)
		cwnd = cwnd > (u32)rs->losses ? cwnd - (u32)rs->losses : 1;
	if (state == TCP_CA_Recovery && bbr->prev_ca_state != TCP_CA_Recovery) {
		bbr->packet_conservation = 1;
		bbr->next_rtt_delivered = tcp_sk(sk)->delivered;
		cwnd = sent_or_acked;
	} else if (state < TCP_CA_Recovery && bbr->prev_ca_state >= TCP_CA_Recovery) {
		bbr->packet_conservation = 0;
		cwnd = cc_max(cwnd, bbr->prior_cwnd);
	}
	bbr->prev_ca_state = state;
	return bbr->packet_conservation ? cc_max(cwnd, sent_or_acked) : cwnd;
}

static u32 bbr_target_cwnd(struct sock *sk, const struct rate_sample *rs, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);
	u32 cwnd = bbr_cwnd_to_recover_or_restore(sk, rs);
	u32 target;

	if (bbr->packet_conservation)
		return cwnd;
	target = bbr_inflight(sk, bbr, bw, bbr_cwnd_gain(bbr));
	if (bbr_full_bw_reached(bbr))
		cwnd = cc_min(cwnd + rs->acked_sacked, target);
	else if (cwnd < target || tcp_sk(sk)->delivered < BBR_INITIAL_WINDOW)
		cwnd += rs->acked_sacked;
	return cc_max(cwnd, BBR_CWND_MIN_TARGET);
}

/* Sets the pacing rate and the window for the bandwidth `bw`. */
static void bbr_control(struct sock *sk, const struct rate_sample *rs, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd;

	bbr_set_pacing_rate(sk, bw, bbr_pacing_gain(bbr));
	if (rs->acked_sacked)
		cwnd = bbr_target_cwnd(sk, rs, bw);
	if (bbr->mode == BBR_PROBE_RTT)
		cwnd = cc_min(cwnd, BBR_CWND_MIN_TARGET);
	tp->snd_cwnd = cc_clamp(cwnd, 1u, tp->snd_cwnd_clamp);
}

/* ---- the other hooks, for the algorithms to call ---- */

static void bbr_init_sock(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->min_rtt_us = cc_min_rtt_us(sk);
	if (bbr->min_rtt_us != BBR_NO_RTT)
		bbr->min_rtt_us = cc_clamp(bbr->min_rtt_us, 1u, CC_RTT_MAX_US);
	bbr->min_rtt_stamp = bbr_now_ms(sk);
	bbr->next_rtt_delivered = tcp_sk(sk)->delivered;
	bbr_reset_lt_bw_sampling(sk);
	bbr_init_pacing_rate_from_rtt(sk);
	cc_request_pacing(sk);
}

/* BBR has no threshold; it only saves the window that recovery will reduce. */
static u32 bbr_save_window(struct sock *sk)
{
	bbr_save_cwnd(sk);
	return tcp_sk(sk)->snd_ssthresh;
}

/* Nothing was lost, so the rounds since then say nothing about a full pipe. */
static u32 bbr_undo(struct sock *sk)
{
	struct bbr *bbr = bbr_state(sk);

	bbr->full_bw = 0;
	if (!bbr_full_bw_reached(bbr))
		bbr->full_bw_cnt = 0;
	bbr_reset_lt_bw_sampling(sk);
	return tcp_sk(sk)->snd_cwnd;
}

static void bbr_on_state(struct sock *sk, u32 state)
{
	struct bbr *bbr = bbr_state(sk);
	struct bbr_ack timeout = { .round_start = true };

	if (state != TCP_CA_Loss)
		return;
	bbr->prev_ca_state = TCP_CA_Loss;
	bbr->full_bw = 0;
	bbr_lt_bw_sampling(sk, 1, &timeout);
}

/* Restarting after idle: paced at the known bandwidth, without a burst (4.2.1). */
static void bbr_on_tx_start(struct sock *sk, u32 bw)
{
	struct bbr *bbr = bbr_state(sk);

	if (!tcp_sk(sk)->app_limited)
		return;
	bbr->idle_restart = 1;
	if (bbr->mode == BBR_PROBE_BW)
		bbr_set_pacing_rate(sk, bw, BBR_UNIT);
	else if (bbr->mode == BBR_PROBE_RTT)
		bbr_check_probe_rtt_done(sk);
}

#endif
