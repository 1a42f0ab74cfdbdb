// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * EWTCP: equally weighted TCP
 *
 * Idea: each of n subflows runs Reno with its increase scaled down by the same
 *   weight, so that together they weigh less than n TCPs. Traffic does not move
 *   away from congested paths.
 * Equations: congestion avoidance w_r += a/w_r per acknowledged packet, with
 *   a = 1/sqrt(n) (variant sqrt, as printed) or a = 1/n^2 (variant fair);
 *   congestion event ssthresh_r = max(w_r/2, 1). n is the size of the coupling set.
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: a = 1/sqrt(n) is printed in the NSDI'11 paper; a = 1/n^2
 *   follows from its stated aim. With an increase of a/w the equilibrium window
 *   is sqrt(2a/p), so n equal subflows are worth one TCP only if a = 1/n^2.
 * Deviations: none.
 * On one path: Reno.
 * Reference: Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011
 */
#include "cc.h"

#define EWTCP_SQRT 0
#define EWTCP_PARAMS(P) \
	P(variant, EWTCP_SQRT, 0, 1, 1, CC_NAMES("sqrt|fair"), "weight a: 1/sqrt(n) as printed, or 1/n^2")
CC_PARAMS(ewtcp, EWTCP_PARAMS);

#define EWTCP_FLOOR 1u	/* packets, with several subflows */

/* 2^40/sqrt(n), rounded, for n = 1..8. */
static const u64 ewtcp_sqrt_weight_q40[CC_MAX_SUBFLOWS] = {
	1099511627776, 777472127994, 634803334274, 549755813888,
	491716548352,  448873742385, 415576332960, 388736063997,
};

static u64 ewtcp_weight_q40(u32 n, u32 variant)
{
	if (variant == EWTCP_SQRT)
		return ewtcp_sqrt_weight_q40[(n - 1) & (CC_MAX_SUBFLOWS - 1)];
	return cc_div(CC_ONE_Q40, n * n);
}

static u64 ewtcp_inc_q40(struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return cc_reno_inc_q40(sk);
	return cc_div(ewtcp_weight_q40(set.n, CC_PARAM(sk, ewtcp, variant)), set.w[set.self]);
}

CC_GROWTH(ewtcp, ewtcp_inc_q40);

CC_HOOK(u32, ewtcp_ssthresh, struct sock *sk)
{
	return cc_coupled_halved(sk, EWTCP_FLOOR);
}

CC_RENO_UNDO(ewtcp);

CC_REGISTER(ewtcp, CC_COUPLED(0),
	    .ssthresh = CC_OP(ewtcp_ssthresh),
	    .cong_avoid = CC_OP(ewtcp_cong_avoid),
	    .undo_cwnd = CC_OP(ewtcp_undo_cwnd));
