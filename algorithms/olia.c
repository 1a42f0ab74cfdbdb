// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * OLIA: opportunistic linked increases
 *
 * Idea: an optimal (Kelly-Voice) increase, plus a term that moves window from the
 *   paths with the largest windows to the best paths that do not have one yet. The
 *   quality of a path is the number of packets between its losses.
 * Equations: per acknowledged packet w_r += (w_r/tau_r^2)/(sum w_k/tau_k)^2 + alpha_r/w_r.
 *   l_k = packets acknowledged between the last two losses or since the last one,
 *   whichever is more; B = argmax l_k/tau_k^2; M = argmax w_k; C = B without M.
 *   alpha_r = 1/(n |C|) for r in C; -1/(n |M|) for r in M when C is not empty; else 0.
 *   Congestion event: ssthresh_r = max(w_r/2, 1).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: draft-khalili-mptcp-congestion-control-05, section 3.
 * Deviations: the draft prints the quality as l^2/tau but derives it from the rate
 *   sqrt(2l)/tau, whose order is that of l/tau^2: metric `rate` (default, and the
 *   kernel's) or `draft`. "Set ssthresh to 1" is read as the minimum of ssthresh.
 *   Windows are compared in whole packets, so that ties exist.
 * On one path: Reno.
 * Reference: Khalili et al. 2013, doi:10.1109/TNET.2013.2274462; draft-khalili-mptcp-congestion-control-05
 */
#include "cc.h"

#define OLIA_RATE 0
#define OLIA_PARAMS(P)                                                                  \
	P(metric, OLIA_RATE, 0, 1, 1, CC_NAMES("rate|draft"),                           \
	  "quality of a path: l/rtt^2, or l^2/rtt as the draft prints")
CC_PARAMS(olia, OLIA_PARAMS);

#define OLIA_FLOOR 1u		/* packets, with several subflows (draft section 3) */
#define OLIA_COUNT_MAX 0xffffffffu

/* The two counters are the subflow's shared word: siblings rank the paths by them. */
struct olia {
	u32 l1; /* packets acknowledged between the last two losses */
	u32 l2; /* packets acknowledged since the last loss */
};
CC_STATE(olia);
CC_FIELDS(olia, CC_FIELD(olia, l1, "l1", 1, 1, "packets"), CC_FIELD(olia, l2, "l2", 1, 1, "packets"));

/* Sizes of the sets, and where the acting subflow is. */
struct olia_sets {
	u32 n_max;	     /* |M| */
	u32 n_collected;     /* |C| */
	bool self_max;	     /* r in M */
	bool self_collected; /* r in C */
};

static u32 olia_interval(const struct sock *sk, const struct cc_set *set, u32 k)
{
	union {
		u64 word;
		struct olia counters;
	} shared = { .word = cc_shared_word(sk, set, k, 0) };

	return cc_max(shared.counters.l1, shared.counters.l2);
}

/* Compares the quality of two paths exactly: l < 2^32, so l^2 < 2^64; t <= 2^26. */
static int olia_compare(u32 metric, u32 l_i, u32 t_i, u32 l_j, u32 t_j)
{
	if (metric == OLIA_RATE)
		return cc_cmp_per_rtt2(l_i, t_i, l_j, t_j);
	return cc_cmp96(cc_mul96(cc_mul(l_i, l_i), t_j), cc_mul96(cc_mul(l_j, l_j), t_i));
}

static void olia_find_sets(const struct sock *sk, const struct cc_set *set, struct olia_sets *sets)
{
	u32 metric = CC_PARAM(sk, olia, metric);
	u32 l[CC_MAX_SUBFLOWS];
	u32 k, best = 0, w_max = 0;

	for (k = 0; k < CC_MAX_SUBFLOWS && k < set->n; k++) {
		l[k] = olia_interval(sk, set, k);
		w_max = cc_max(w_max, set->w[k]);
		if (olia_compare(metric, l[k], set->t[k], l[best], set->t[best]) > 0)
			best = k;
	}
	*sets = (struct olia_sets){ 0 };
	for (k = 0; k < CC_MAX_SUBFLOWS && k < set->n; k++) {
		bool self = k == set->self;

		if (set->w[k] == w_max) {
			sets->n_max++;
			sets->self_max |= self;
		} else if (olia_compare(metric, l[k], set->t[k], l[best], set->t[best]) == 0) {
			sets->n_collected++;
			sets->self_collected |= self;
		}
	}
}

/* alpha_r/w_r in Q40: n, |C| and |M| are at most 8, w <= 2^20. */
static s64 olia_shift_q40(const struct olia_sets *sets, u32 n, u32 w)
{
	if (sets->self_collected)
		return (s64)cc_div(CC_ONE_Q40, cc_mul(n * sets->n_collected, w));
	if (sets->self_max && sets->n_collected)
		return -(s64)cc_div(CC_ONE_Q40, cc_mul(n * sets->n_max, w));
	return 0;
}

static s64 olia_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct olia_sets sets;
	struct cc_set set;
	u64 first;
	u32 w;

	if (!cc_coupling_set(sk, &set))
		return (s64)reno_q40;
	w = set.w[set.self];
	first = cc_min(cc_over_square_q40(w, cc_ratio_sum_q16(&set, set.self)), reno_q40);
	olia_find_sets(sk, &set, &sets);
	return (s64)first + olia_shift_q40(&sets, set.n, w);
}

CC_GROWTH(olia, olia_inc_q40);

CC_HOOK(void, olia_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct olia *state = olia_state(sk);

	state->l2 += cc_min(sample->pkts_acked, OLIA_COUNT_MAX - state->l2);
}

CC_HOOK(u32, olia_ssthresh, struct sock *sk)
{
	struct olia *state = olia_state(sk);

	state->l1 = state->l2;
	state->l2 = 0;
	return cc_coupled_halved(sk, OLIA_FLOOR);
}

CC_RENO_UNDO(olia);

CC_REGISTER(olia, CC_COUPLED(1),
	    .ssthresh = CC_OP(olia_ssthresh),
	    .cong_avoid = CC_OP(olia_cong_avoid),
	    .pkts_acked = CC_OP(olia_pkts_acked),
	    .undo_cwnd = CC_OP(olia_undo_cwnd));
