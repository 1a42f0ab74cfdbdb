// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * EWTCP: equally weighted TCP
 *
 * Idea: each of n subflows runs Reno with its increase scaled down by the same
 *   weight, so that together they weigh less than n TCPs. Traffic does not move
 *   away from congested paths.
 * Equations: congestion avoidance w_r += a/w_r per acknowledged packet, with
 *   a = 1/sqrt(n) (weight sqrt, as printed), a = 1/n^2 (weight fair) or a number;
 *   congestion event ssthresh_r = max(w_r/2, 1). n is the size of the coupling set.
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: a = 1/sqrt(n) is printed in the NSDI'11 paper; a = 1/n^2
 *   follows from its stated aim. With an increase of a/w the equilibrium window
 *   is sqrt(2a/p), so n equal subflows are worth one TCP only if a = 1/n^2.
 * Deviations: none.
 * On one path: Reno.
 * Good at: a fair share of a bottleneck, with weight fair
 *   (scenarios/fidelity/shared-bottleneck.toml).
 * Bad at: unequal private paths, where it then gets a little less than uncoupled Reno
 *   (scenarios/dolia-scenario-1.toml); it moves nothing to the better one.
 * Reference: Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011
 */
#include "cc.h"

#define EWTCP_SQRT 0	/* weight 1/sqrt(n) */
#define EWTCP_FAIR 1	/* weight 1/n^2 */
/* Raw values above the two names are the weight itself, in Q16. */
CC_PARAMS(ewtcp,
	  CC_PARAM(weight, .initial = EWTCP_SQRT, .max = 1, .scale = CC_ONE_Q16, .names = "sqrt|fair",
		   .help = "weight a of each subflow: 1/sqrt(n) as printed, 1/n^2, or a number for any n"));

#define EWTCP_FLOOR 1u	/* packets, with several subflows */

/* 2^40/sqrt(n), rounded, for n = 1..8. */
static const u64 ewtcp_sqrt_weight_q40[CC_MAX_SUBFLOWS] = {
	1099511627776, 777472127994, 634803334274, 549755813888,
	491716548352,  448873742385, 415576332960, 388736063997,
};

/* A weight that is given as a number is at most 1, 2^16 in Q16. */
static u64 ewtcp_weight_q40(u32 n, u32 weight)
{
	if (weight == EWTCP_SQRT)
		return ewtcp_sqrt_weight_q40[(n - 1) & (CC_MAX_SUBFLOWS - 1)];
	if (weight == EWTCP_FAIR)
		return cc_div(CC_ONE_Q40, n * n);
	return cc_shl((u64)weight, 24);
}

static u64 ewtcp_inc_q40(struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return cc_reno_inc_q40(sk);
	return cc_div(ewtcp_weight_q40(set.n, ewtcp_params(sk)->weight), set.w[set.self]);
}

static void ewtcp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)ewtcp_inc_q40(sk));
}

static u32 ewtcp_ssthresh(struct sock *sk)
{
	return cc_coupled_halved(sk, EWTCP_FLOOR);
}

CC_COUPLED(ewtcp);
CC_REGISTER(ewtcp,
	    .ssthresh = ewtcp_ssthresh,
	    .cong_avoid = ewtcp_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
