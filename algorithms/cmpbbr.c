// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * C-MPBBR: coupled multipath BBR
 *
 * Idea: BBR on every subflow, and subflows that share a bottleneck share its bandwidth.
 *   Behind one bottleneck all of them measure about the same, so those that do divide what
 *   they measured by their number. A subflow that adds nothing becomes a backup.
 * Equations: c = number of subflows (r included) with |bw_k - bw_r| <= 20 % of bw_r, counted
 *   once per gain cycle. N = c if c > 1 and the count before it was > 1; the count before if
 *   c = 1 and that was > 1; else 1. In PROBE_BW's phases 2..7 pacing and window follow
 *   bw_r/N; elsewhere, and above all while probing, bw_r. If 0.6 max bw_k is more than all
 *   subflows deliver together, five times in a row and with N = 1, the subflow with the
 *   lowest bandwidth becomes a backup.
 * States: BBR's.
 * Parameters' source: the authors' implementation and the abstract of the paper.
 * Deviations: counted once, by the first ACK after phase 3 began (the authors' module counts
 *   at every ACK of phase 3, so that "twice in a row" always holds). The weakest subflow
 *   becomes a backup instead of being closed; eBPF can only report that it should (parameter
 *   `benefit`). BBR's deviations apply.
 * On one path: BBR, sample by sample.
 * Good at: paths that lose packets at random, which it fills all the same
 *   (scenarios/random-loss-link.toml).
 * Bad at: fairness: beside a Reno flow, its subflows together take twice as much as
 *   that flow (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Mahmud, Lubna, Song, Cho 2020, IEEE Access 8
 */
#include "bbr.h"

CC_PARAMS(cmpbbr,
	  CC_PARAM(similar, .initial = 20, .min = 1, .max = 100,
		   .help = "percent by which bandwidths behind one bottleneck may differ (authors: 20)"),
	  CC_PARAM(gain_lost, .initial = 40, .max = 100,
		   .help = "percent below the best path's bandwidth that the sum may fall (authors: 40)"),
	  CC_PARAM(strikes, .initial = 5, .min = 1, .max = 100,
		   .help = "times in a row that several paths add nothing before one leaves (authors: 5)"),
	  CC_PARAM(benefit, .initial = 1, .max = 1, .names = "off|on",
		   .help = "whether a subflow that adds nothing becomes a backup"));

#define CMPBBR_COUNT_PHASE 3u	/* phase of the gain cycle in which subflows are counted */
#define CMPBBR_FULL_PHASES 2u	/* phases that use the whole bandwidth: probing and draining */

struct cmpbbr {
	struct bbr bbr;
	u8 sharing; /* N */
	u8 last;    /* the previous count */
	u8 strikes; /* times in a row that several paths added nothing */
	u8 due;	    /* 1: the phase has begun in which subflows are counted */
};
CC_STATE(cmpbbr);
CC_SHARED(cmpbbr, bbr.bw);
CC_FIELDS(cmpbbr,
	  CC_FIELD(cmpbbr, bbr.bw.max[0], "bw", .num = BBR_USEC_PER_SEC, .den = BW_UNIT,
		   .unit = "packets/s"),
	  CC_FIELD(cmpbbr, bbr.bw.latest, "delivery", .num = BBR_USEC_PER_SEC, .den = BW_UNIT,
		   .unit = "packets/s"),
	  CC_FIELD(cmpbbr, bbr.min_rtt_us, "min_rtt", .den = BBR_USEC_PER_SEC, .unit = "s"),
	  CC_FIELD(cmpbbr, bbr.mode, "mode", .unit = "1"),
	  CC_FIELD(cmpbbr, bbr.cycle_idx, "cycle_idx", .unit = "1"),
	  CC_FIELD(cmpbbr, bbr.full_bw_cnt, "full_bw_cnt", .unit = "1"),
	  CC_FIELD(cmpbbr, sharing, "N", .unit = "subflows"),
	  CC_FIELD(cmpbbr, last, "last", .unit = "subflows"),
	  CC_FIELD(cmpbbr, strikes, "count", .unit = "1"));

/* Statistics over the subflows that have measured a bandwidth. */
struct cmpbbr_paths {
	u64 active;    /* their number */
	u64 similar;   /* those with about the acting subflow's bandwidth */
	u64 best;      /* Q24: largest bandwidth */
	u64 lowest;    /* Q24: smallest bandwidth << 3 | its slot */
	u64 delivered; /* Q24: sum of the delivery rates, <= 2^35 */
};

#define CMPBBR_NONE (~0ull >> 1)	/* larger than any bandwidth << 3 */

/*
 * 1 or 0. The statistics are computed without branches, since older verifiers would follow
 * every branch of every subflow, and the whole model after it.
 */
static u64 cmpbbr_is_negative(u64 x)
{
	return cc_hide_from_verifier64(x) >> 63;
}

/* a, b < 2^63. */
static u64 cmpbbr_min(u64 a, u64 b)
{
	return b + ((a - b) & (0 - cmpbbr_is_negative(a - b)));
}

/* |a - own| <= percent of own, both sides < 2^39: 1 or 0. */
static u64 cmpbbr_is_similar(u64 a, u64 own, u32 percent)
{
	u64 negative = cmpbbr_is_negative(a - own);
	u64 diff = ((a - own) ^ (0 - negative)) + negative;

	return 1 - cmpbbr_is_negative(cc_mul(own, percent) - cc_mul(diff, 100));
}

static void cmpbbr_count_path(struct cmpbbr_paths *paths, u64 bw, u64 rate, u32 slot, u64 similar)
{
	u64 some = cmpbbr_is_negative(0 - bw);

	paths->active += some;
	paths->similar += some & similar;
	paths->best = paths->best + bw - cmpbbr_min(paths->best, bw);
	paths->lowest = cmpbbr_min(paths->lowest, (bw << 3 | slot) | ((some - 1) >> 1));
	paths->delivered += cc_mul(some, rate);
}

static void cmpbbr_collect(struct sock *sk, struct cmpbbr_paths *paths)
{
	u32 percent = cmpbbr_params(sk)->similar;
	u64 own = bbr_max_bw(bbr_state(sk));
	struct cc_set set;

	*paths = (struct cmpbbr_paths){ .lowest = CMPBBR_NONE };
	if (!cc_coupling_set(sk, &set)) {
		cmpbbr_count_path(paths, own, bbr_state(sk)->bw.latest, cc_own_slot(sk), 1);
		return;
	}
	cc_for_each(k, 0, &set) {
		struct bbr_rates bw = cmpbbr_shared(sk, &set, k);

		cmpbbr_count_path(paths, bw.max[0], bw.latest, set.slot[k],
				  cmpbbr_is_similar(bw.max[0], own, percent));
	}
}

/* N: two counts in a row are needed, and one miss is forgiven. */
static u32 cmpbbr_sharing(u32 count, u32 last)
{
	if (last <= 1 || !count)
		return 1;
	return count > 1 ? count : last;
}

/* best (1 - lost) > sum of what is delivered, both < 2^42. */
static bool cmpbbr_adds_nothing(const struct cmpbbr_paths *paths, u32 lost_percent)
{
	return paths->active >= 2 && paths->best != paths->lowest >> 3 &&
	       cc_mul(paths->best, 100 - lost_percent) > cc_mul(paths->delivered, 100);
}

static void cmpbbr_check_benefit(struct sock *sk, const struct cmpbbr_paths *paths)
{
	struct cmpbbr *state = cmpbbr_state(sk);
	u32 limit = cmpbbr_params(sk)->strikes;

	if (state->sharing >= 2 || !cmpbbr_adds_nothing(paths, cmpbbr_params(sk)->gain_lost)) {
		state->strikes = 0;
		return;
	}
	state->strikes = (u8)cc_min(state->strikes + 1u, limit);
	if (state->strikes >= limit && cmpbbr_params(sk)->benefit)
		cc_request_backup(sk, (u32)paths->lowest & (CC_MAX_SUBFLOWS - 1));
}

/* Once per gain cycle. */
static void cmpbbr_count(struct sock *sk)
{
	struct cmpbbr *state = cmpbbr_state(sk);
	struct cmpbbr_paths paths;

	cmpbbr_collect(sk, &paths);
	state->sharing = (u8)cmpbbr_sharing((u32)paths.similar, state->last);
	state->last = (u8)cc_max(paths.similar, 1ull);
	cmpbbr_check_benefit(sk, &paths);
}

/* The bandwidth to use: all of it while probing, else the share of this subflow. */
static u32 cmpbbr_bw(struct sock *sk)
{
	const struct cmpbbr *state = cmpbbr_state(sk);
	u32 bw = bbr_bw(&state->bbr);

	if (state->bbr.mode != BBR_PROBE_BW || state->bbr.cycle_idx < CMPBBR_FULL_PHASES)
		return bw;
	return (u32)cc_div(bw, cc_max(state->sharing, (u8)1));
}

static bool cmpbbr_counts_now(const struct bbr *bbr)
{
	return bbr->mode == BBR_PROBE_BW && bbr->cycle_idx == CMPBBR_COUNT_PHASE;
}

static void cmpbbr_init(struct sock *sk)
{
	cmpbbr_state(sk)->sharing = 1;
	cmpbbr_state(sk)->last = 1;
	bbr_init_sock(sk);
}

static void cmpbbr_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct cmpbbr *state = cmpbbr_state(sk);
	bool before = cmpbbr_counts_now(&state->bbr);

	/* Before the model with its many branches, as the verifier follows the loop for each of them. */
	if (state->due)
		cmpbbr_count(sk);
	bbr_update_model(sk, rs);
	state->due = !before && cmpbbr_counts_now(&state->bbr);
	bbr_control(sk, rs, cmpbbr_bw(sk));
}

static u32 cmpbbr_ssthresh(struct sock *sk)
{
	return bbr_save_window(sk);
}

static u32 cmpbbr_undo_cwnd(struct sock *sk)
{
	return bbr_undo(sk);
}

static void cmpbbr_set_state(struct sock *sk, u8 new_state)
{
	bbr_on_state(sk, new_state);
}

static void cmpbbr_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		bbr_on_tx_start(sk, cmpbbr_bw(sk));
}

CC_REGISTER(cmpbbr,
	    .init = cmpbbr_init,
	    .ssthresh = cmpbbr_ssthresh,
	    .cong_control = cmpbbr_cong_control,
	    .set_state = cmpbbr_set_state,
	    .cwnd_event = cmpbbr_cwnd_event,
	    .undo_cwnd = cmpbbr_undo_cwnd);
