// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ADW-BALIA: adaptive decrease window for BALIA
 *
 * Idea: subflows that share a bottleneck see the same queue, so their RTTs vary over
 *   spans of the same size. While the spans are alike, the decrease is BALIA's; the more
 *   they differ, the more likely the bottlenecks are disjoint, where BALIA's decrease by
 *   half to three quarters gives away too much, and the less is cut.
 * Equations: increase as BALIA. Congestion event on r: span_r = RTTmax - RTTmin since
 *   its last loss, m = mean of the set's spans, A = (3/8) A + (5/8) m (first A = m), hi
 *   and lo the set's largest and smallest span.
 *   Level 0 if A >= 0.9 hi and A <= 1.1 lo: ssthresh_r = w_r - (w_r/2) min(alpha_r, 3/2);
 *   level 1 if A >= 0.8 hi and A <= 1.2 lo: w_r - (w_r/2) 0.75; else level 2:
 *   w_r - (w_r/2) 0.5. At least 1.
 * States: slow start, congestion avoidance, both per subflow; every loss decides on the
 *   level again.
 * Parameters' source: section 3.2 of the paper; its figure 5 is missing in the text.
 * Deviations: partly a reconstruction, since the flowchart could not be read. The bounds
 *   "within 10 % of the highest and lowest" and "twice the range" are read as the tests
 *   above, on spans rather than on RTTs; a compensation takes the place of BALIA's factor
 *   min(alpha, 3/2); the flowchart's max() is the window's floor. A is one value of the
 *   connection, which the subflow with the last loss stores: when that subflow closes, A
 *   is what it was at the last loss of another. A path without a loss counts with its
 *   span so far, one without a sample with 0. A is rounded down to 1/32 us. In dialect
 *   mptcp-0.95 the increase and the decrease of level 0 are those of BALIA's; the
 *   compensations cut a window in whole packets whose half is rounded down first.
 * On one path: Reno; span and A are still updated.
 * Good at: private paths with random loss, where it gets more than BALIA
 *   (scenarios/random-loss-link.toml).
 * Bad at: fairness where a few flows keep the queue small: its spans differ by chance,
 *   and it takes a quarter more than a TCP (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Electronics 2021, "Adaptive decrease window for BALIA (ADW-BALIA)", sections 3.1 and 3.2
 */
#include "balia-dialect.h"

#define ADW_ONE 1000u	/* 1.0 of every parameter: the bounds are exact decimals */
CC_PARAMS(adw_balia,
	  CC_PARAM(level0_low, .initial = 0.9, .min = 0.001, .max = 1, .scale = ADW_ONE,
		   .help = "A at least this part of the largest span, for BALIA's decrease (paper: 0.9)"),
	  CC_PARAM(level0_high, .initial = 1.1, .min = 1, .max = 10, .scale = ADW_ONE,
		   .help = "A at most this part of the smallest span, for BALIA's decrease (paper: 1.1)"),
	  CC_PARAM(level1_low, .initial = 0.8, .min = 0.001, .max = 1, .scale = ADW_ONE,
		   .help = "A at least this part of the largest span, for compensation 1 (paper: 0.8)"),
	  CC_PARAM(level1_high, .initial = 1.2, .min = 1, .max = 10, .scale = ADW_ONE,
		   .help = "A at most this part of the smallest span, for compensation 1 (paper: 1.2)"),
	  CC_PARAM(compensation1, .initial = 0.75, .max = 1.5, .scale = ADW_ONE,
		   .help = "level 1: the loss takes half of this part of the window (paper: 0.75)"),
	  CC_PARAM(compensation2, .initial = 0.5, .max = 1.5, .scale = ADW_ONE,
		   .help = "level 2: the loss takes half of this part of the window (paper: 0.5)"),
	  CC_PARAM(weight, .initial = 0.625, .min = 0.001, .max = 1, .scale = ADW_ONE,
		   .help = "weight of the newest mean of the spans in A (paper: 5/8)"),
	  CC_DIALECT);

#define ADW_NONE 0xffffffffu	/* no value yet */

/* What siblings compare. */
struct adw_shared {
	u32 rtt_min_us; /* since the last loss, or ADW_NONE */
	u32 rtt_max_us; /* likewise */
	u32 span_us;	/* between the last two losses, or ADW_NONE */
	u32 reserved;
	struct cc_conn_value average; /* A, us in Q5 */
};

struct adw_balia {
	struct adw_shared shared;
};
CC_STATE(adw_balia);
CC_SHARED(adw_balia, shared);

#define ADW_AVERAGE_WORD (offsetof(struct adw_shared, average) / sizeof(u64))

CC_FIELDS(adw_balia,
	  CC_FIELD(adw_balia, shared.rtt_min_us, "rtt_min", .den = 1000000, .unit = "s"),
	  CC_FIELD(adw_balia, shared.rtt_max_us, "rtt_max", .den = 1000000, .unit = "s"),
	  CC_FIELD(adw_balia, shared.span_us, "span", .den = 1000000, .unit = "s"),
	  CC_FIELD(adw_balia, shared.average.value, "average", .den = 32000000, .unit = "s"),
	  CC_FIELD(adw_balia, shared.average.change, "changes", .unit = "losses"));

/* The spans of the coupling set, or of the acting subflow if it is alone. */
struct adw_spans {
	u64 sum_us;  /* of all spans */
	u32 n;	     /* their number */
	u32 high_us; /* largest */
	u32 low_us;  /* smallest */
};

static void adw_restart_span(struct adw_shared *shared)
{
	shared->rtt_min_us = ADW_NONE;
	shared->rtt_max_us = ADW_NONE;
}

static void adw_balia_init(struct sock *sk)
{
	struct adw_shared *shared = &adw_balia_state(sk)->shared;

	adw_restart_span(shared);
	shared->span_us = ADW_NONE;
}

static void adw_balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	balia_any_cong_avoid(sk, acked, CC_IS_SPEC(adw_balia, sk));
}

static void adw_balia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct adw_shared *shared = &adw_balia_state(sk)->shared;
	u32 rtt_us;

	if (sample->rtt_us < 0)
		return;
	rtt_us = cc_min((u32)sample->rtt_us, CC_RTT_MAX_US);
	shared->rtt_min_us = cc_min(shared->rtt_min_us, rtt_us);
	shared->rtt_max_us =
		shared->rtt_max_us == ADW_NONE ? rtt_us : cc_max(shared->rtt_max_us, rtt_us);
}

/* ---- spans ---- */

static u32 adw_span_so_far_us(const struct adw_shared *shared)
{
	return shared->rtt_max_us == ADW_NONE ? 0 : shared->rtt_max_us - shared->rtt_min_us;
}

static u32 adw_span_us(const struct sock *sk, const struct cc_set *set, u32 k)
{
	struct adw_shared shared = adw_balia_shared(sk, set, k);

	return cc_hide_from_verifier(shared.span_us == ADW_NONE ? adw_span_so_far_us(&shared)
								: shared.span_us);
}

/* A loss completes the span of its subflow, and a new one begins. */
static void adw_complete_span(struct adw_shared *shared)
{
	if (shared->rtt_max_us == ADW_NONE)
		return;
	shared->span_us = adw_span_so_far_us(shared);
	adw_restart_span(shared);
}

static struct adw_spans adw_own_span(const struct adw_shared *shared)
{
	u32 span_us = shared->span_us == ADW_NONE ? 0 : shared->span_us;

	return (struct adw_spans){ span_us, 1, span_us, span_us };
}

static struct adw_spans adw_set_spans(const struct sock *sk, const struct cc_set *set)
{
	struct adw_spans spans = { .n = set->n, .low_us = ADW_NONE };

	cc_for_each(k, 0, set) {
		u32 span_us = adw_span_us(sk, set, k);

		spans.sum_us = cc_hide_from_verifier64(spans.sum_us + span_us);
		spans.high_us = cc_hide_from_verifier(cc_max(spans.high_us, span_us));
		spans.low_us = cc_hide_from_verifier(cc_min(spans.low_us, span_us));
	}
	return spans;
}

/* ---- the connection's average ---- */

/* A = (1 - weight) A + weight m: spans <= 2^26 us, so m and A are <= 2^31, the sum <= 2^41. */
static u32 adw_averaged_q5(struct cc_conn_value average, u32 mean_q5, u32 weight)
{
	if (!average.change)
		return mean_q5;
	return (u32)cc_div(cc_add(cc_mul(average.value, ADW_ONE - weight), cc_mul(mean_q5, weight)),
			   ADW_ONE);
}

/* Updates A with the spans. */
static u32 adw_update_average_q5(struct sock *sk, const struct adw_spans *spans)
{
	struct cc_conn_value average = cc_conn_value(sk, ADW_AVERAGE_WORD);
	u32 mean_q5 = (u32)cc_div(cc_shl(spans->sum_us, 5), spans->n);

	average.value = adw_averaged_q5(average, mean_q5, adw_balia_params(sk)->weight);
	average.change++;
	adw_balia_state(sk)->shared.average = average;
	return average.value;
}

/* ---- decrease ---- */

/* low hi <= A <= high lo: A <= 2^31 times 1000, spans <= 2^31 in Q5 times 10^4. */
static bool adw_is_within(u32 average_q5, const struct adw_spans *spans, u32 low, u32 high)
{
	u64 average = cc_mul(average_q5, ADW_ONE);

	return average >= cc_mul(cc_shl(spans->high_us, 5), low) &&
	       average <= cc_mul(cc_shl(spans->low_us, 5), high);
}

/* w - (w/2) compensation, with the window's fraction: w < 2^37 in Q16. */
static u32 adw_compensated_exactly(struct sock *sk, u32 compensation)
{
	u64 w_q16 = cc_window_q16(sk);
	u64 cut_q16 = cc_div(cc_mul(w_q16, compensation), 2 * ADW_ONE);

	return cc_ssthresh_of_q16(sk, cc_max(w_q16 - cut_q16, (u64)BALIA_FLOOR << 16));
}

static u32 adw_compensated(struct sock *sk, u32 compensation)
{
	u32 w = cc_window(sk);

	if (CC_IS_SPEC(adw_balia, sk))
		return adw_compensated_exactly(sk, compensation);
	return cc_max(w - (u32)cc_div(cc_mul(w / 2, compensation), ADW_ONE), BALIA_FLOOR);
}

static u32 adw_decreased(struct sock *sk, const struct cc_set *set, u32 average_q5,
			 const struct adw_spans *spans)
{
	if (adw_is_within(average_q5, spans, adw_balia_params(sk)->level0_low,
			  adw_balia_params(sk)->level0_high))
		return balia_any_decreased(sk, set, CC_IS_SPEC(adw_balia, sk));
	if (adw_is_within(average_q5, spans, adw_balia_params(sk)->level1_low,
			  adw_balia_params(sk)->level1_high))
		return adw_compensated(sk, adw_balia_params(sk)->compensation1);
	return adw_compensated(sk, adw_balia_params(sk)->compensation2);
}

static u32 adw_balia_ssthresh(struct sock *sk)
{
	struct adw_shared *shared = &adw_balia_state(sk)->shared;
	struct adw_spans spans;
	struct cc_set set;
	bool coupled;
	u32 average_q5;

	adw_complete_span(shared);
	coupled = cc_coupling_set_for_loss(sk, &set);
	spans = coupled ? adw_set_spans(sk, &set) : adw_own_span(shared);
	average_q5 = adw_update_average_q5(sk, &spans);
	if (!coupled)
		return cc_halved(sk, CC_RENO_FLOOR);
	return adw_decreased(sk, &set, average_q5, &spans);
}

CC_REGISTER(adw_balia,
	    .init = adw_balia_init,
	    .ssthresh = adw_balia_ssthresh,
	    .cong_avoid = adw_balia_cong_avoid,
	    .pkts_acked = adw_balia_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
