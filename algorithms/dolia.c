// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * D-OLIA: dynamic opportunistic linked increases
 *
 * Idea: OLIA's increase with a decrease that looks at the delay first. A loss while
 *   the RTT is high means congestion and halves the window; one while it is low is
 *   taken for chance, and costs what D-LIA's factor says.
 * Equations: increase as OLIA. Every RTT sample updates RTTmin and RTTmax; after more
 *   than two samples and a period, RTTmid = (RTTmin + RTTmax)/2 and both restart
 *   at this sample. Congestion event: ssthresh_r = max(w_r/2, 1) if RTT > RTTmid and
 *   RTT > RTT at the last loss; else beta as in D-LIA (gamma = min(w_prev/w_r, 1),
 *   beta = 0.25 gamma + 0.75 beta_prev within its limits) and max(beta w_r, 1).
 *   Either way w_prev = the reduced window; beta_prev changes with beta only.
 * States: slow start, congestion avoidance, both per subflow; whether a path is
 *   congested is decided at each of its losses.
 * Parameters' source: algorithms 1 and 2 of the paper; period 0.5 s.
 * Deviations: units are not printed (RTTmin starts at 9999, RTT at the last loss at 1)
 *   and read as milliseconds. The text wants more than three ACKs, algorithm 1 more
 *   than two: this file follows the algorithm. Algorithm 2 prints no test of the state; the
 *   text has it. RTT is the last raw sample, the smoothed one before the first. The
 *   text takes w_prev before the reduction (gamma = "text"), algorithm 2 after it.
 *   Windows are compared in whole packets, and paths by l/tau^2, as in OLIA. An undone
 *   reduction restores the window only. In dialect mptcp-0.95 the increase and the count
 *   of l are those of OLIA's; the decrease is the same.
 * On one path: Reno.
 * Good at: lossy private paths, where it gives up less at a chance loss than OLIA
 *   (scenarios/dolia-scenario-1.toml).
 * Bad at: short queues: as it cuts less, it keeps more packets queued than OLIA
 *   (scenarios/disjoint-paths-aggregate.toml).
 * Reference: Lubna et al. 2022, "D-OLIA: a hybrid MPTCP congestion control algorithm", algorithms 1 and 2
 */
#include "dynamic.h"
#include "olia-dialect.h"

CC_PARAMS(dolia,
	  DYNAMIC_PARAMS,
	  CC_PARAM(period_ms, .initial = 500, .min = 1, .max = 60000,
		   .help = "ms between two updates of the middle of the RTT's range (paper: 500)"),
	  CC_DIALECT);

#define DOLIA_RTT_MIN_US 9999000u	/* RTTmin before the first sample (algorithm 1) */
#define DOLIA_RTT_LAST_US 1000u		/* RTT at a loss before the first (algorithm 2) */
#define DOLIA_SAMPLES 2u		/* more samples than this make a period's range */

struct dolia {
	struct olia_interval interval; /* shared */
	struct dynamic last;	       /* factor and window of the last loss */
	u64 updated_us;		       /* the middle may be updated after this time */
	u32 samples;		       /* of this period */
	u32 rtt_us;		       /* last sample, 0: none */
	u32 rtt_min_us;		       /* of this period */
	u32 rtt_max_us;		       /* of this period */
	u32 rtt_mid_us;		       /* middle of the last period's range */
	u32 rtt_last_us;	       /* RTT at the last loss */
	struct olia_dialect dialect;
};
CC_STATE(dolia);
CC_SHARED(dolia, interval);
CC_FIELDS(dolia,
	  CC_FIELD(dolia, interval.l1, "l1", .unit = "packets"),
	  CC_FIELD(dolia, interval.l2, "l2", .unit = "packets"),
	  DYNAMIC_FIELDS(dolia, last),
	  CC_FIELD(dolia, updated_us, "t_upd", .den = 1000000, .unit = "s"),
	  CC_FIELD(dolia, samples, "n_ack", .unit = "samples"),
	  CC_FIELD(dolia, rtt_us, "rtt_cur", .den = 1000000, .unit = "s"),
	  CC_FIELD(dolia, rtt_min_us, "rtt_min", .den = 1000000, .unit = "s"),
	  CC_FIELD(dolia, rtt_max_us, "rtt_max", .den = 1000000, .unit = "s"),
	  CC_FIELD(dolia, rtt_mid_us, "rtt_mid", .den = 1000000, .unit = "s"),
	  CC_FIELD(dolia, rtt_last_us, "rtt_prev_loss", .den = 1000000, .unit = "s"));

static void dolia_init(struct sock *sk)
{
	struct dolia *state = dolia_state(sk);

	dynamic_init(&state->last);
	state->rtt_min_us = DOLIA_RTT_MIN_US;
	state->rtt_last_us = DOLIA_RTT_LAST_US;
}

static void dolia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	olia_any_cong_avoid(sk, acked, OLIA_RATE, CC_IS_SPEC(dolia, sk), &dolia_state(sk)->interval,
			    &dolia_state(sk)->dialect);
}

/* Algorithm 1: the range of RTTs, and its middle once per period. RTTs are < 2^31: no overflow. */
static void dolia_probe(struct dolia *state, u32 rtt_us, u64 now_us, u64 period_us)
{
	state->rtt_us = rtt_us;
	state->rtt_min_us = cc_min(state->rtt_min_us, rtt_us);
	state->rtt_max_us = cc_max(state->rtt_max_us, rtt_us);
	state->samples++;
	if (state->samples <= DOLIA_SAMPLES || now_us <= state->updated_us)
		return;
	state->rtt_mid_us = (state->rtt_min_us + state->rtt_max_us) / 2;
	state->rtt_min_us = rtt_us;
	state->rtt_max_us = rtt_us;
	state->samples = 1;
	state->updated_us = now_us + period_us;
}

static void dolia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct dolia *state = dolia_state(sk);

	if (sample->rtt_us >= 0)
		dolia_probe(state, (u32)sample->rtt_us, cc_now_us(sk),
			    cc_mul(dolia_params(sk)->period_ms, 1000));
	olia_any_count(&state->interval, &state->dialect, sample->pkts_acked,
		       CC_IS_SPEC(dolia, sk));
}

/* Whether the RTT at this loss says that the path is congested; records that RTT. */
static bool dolia_is_congested(struct sock *sk)
{
	struct dolia *state = dolia_state(sk);
	u32 rtt_us = state->rtt_us ? state->rtt_us : cc_srtt_us(sk);
	bool congested = rtt_us > state->rtt_mid_us && rtt_us > state->rtt_last_us;

	state->rtt_last_us = rtt_us;
	return congested;
}

static u32 dolia_ssthresh(struct sock *sk)
{
	struct dynamic_limits limits = DYNAMIC_LIMITS(sk, dolia);
	struct dolia *state = dolia_state(sk);
	bool congested = dolia_is_congested(sk);
	struct cc_set set;

	olia_any_count_loss(&state->interval, CC_IS_SPEC(dolia, sk));
	if (!cc_coupling_set(sk, &set))
		return dynamic_alone(sk, &state->last, limits.gamma);
	if (congested)
		return dynamic_halved(sk, &state->last, limits.gamma);
	return dynamic_decreased(sk, &state->last, limits);
}

CC_REGISTER(dolia,
	    .init = dolia_init,
	    .ssthresh = dolia_ssthresh,
	    .cong_avoid = dolia_cong_avoid,
	    .pkts_acked = dolia_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
