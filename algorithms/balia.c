// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BALIA: balanced linked adaptation
 *
 * Idea: a point between LIA and OLIA that keeps the balance of friendliness,
 *   responsiveness and window oscillation; found from a fluid model.
 * Equations: x = w/tau, alpha_r = max x/x_r. Congestion avoidance, per
 *   acknowledged packet, w_r += x_r/(tau_r (sum x)^2) (1 + alpha_r)/2 (4 + alpha_r)/5
 *   = (x_r + m)(4 x_r + m)/(10 w_r (sum x)^2) with m = max x; congestion event
 *   ssthresh_r = max(w_r - (w_r/2) min(alpha_r, 3/2), 1).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: draft-walid-mptcp-congestion-control-04.
 * Deviations: alpha is a real number in the decrease; the out-of-tree kernel
 *   rounds it down, so that it only ever cuts by 1/2 or 3/4. The increase is capped
 *   at 1/w_r, which only rounding can exceed.
 * On one path: Reno.
 * Reference: Peng et al. 2016, doi:10.1109/TNET.2014.2379698; draft-walid-mptcp-congestion-control-04
 */
#include "cc.h"

#define BALIA_FLOOR 1u	/* packets, with several subflows (draft section 4) */
#define BALIA_ONE (1u << 17)

/* The member with the largest rate w/t, compared exactly: w t <= 2^46. */
static u32 balia_fastest(const struct cc_set *set)
{
	u32 k, b = 0;

	for (k = 1; k < CC_MAX_SUBFLOWS && k < set->n; k++)
		if (cc_mul(set->w[k], set->t[b]) > cc_mul(set->w[b], set->t[k]))
			b = k;
	return b;
}

/* x_k/x_b <= 1 in Q17: the dividend is <= 2^63. */
static u64 balia_rate_q17(const struct cc_set *set, u32 k, u32 b)
{
	if (k == b)
		return BALIA_ONE;
	return cc_div(cc_shl(cc_mul(set->w[k], set->t[b]), 17), cc_mul(set->w[b], set->t[k]));
}

/*
 * With u = x/m in Q17 and U = sum u: (1 + u_r)(1 + 4 u_r) <= 10 is A in Q34;
 * A << 25 <= 2^63; U <= 2^20, so U^2 <= 2^40; the quotient is <= 10 in Q25.
 */
static u64 balia_coupled_inc_q40(const struct cc_set *set)
{
	u32 k, b = balia_fastest(set);
	u64 sum = 0, own = 0, a, q;

	for (k = 0; k < CC_MAX_SUBFLOWS && k < set->n; k++) {
		u64 rate = balia_rate_q17(set, k, b);

		if (k == set->self)
			own = rate;
		sum += rate;
	}
	a = cc_mul(BALIA_ONE + own, BALIA_ONE + 4 * own);
	q = cc_div(cc_shl(a, 25), cc_mul(sum, sum));
	return cc_div(cc_shl(q, 15), 10 * set->w[set->self]);
}

static u64 balia_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return reno_q40;
	return cc_min(balia_coupled_inc_q40(&set), reno_q40);
}

/* (w_r/2) min(alpha_r, 3/2) = min(w_b t_r/(2 t_b), 3 w_r/4); w t <= 2^46. */
static u32 balia_decreased(const struct cc_set *set)
{
	u32 b = balia_fastest(set);
	u32 r = set->self;
	u64 cut = cc_div(cc_mul(set->w[b], set->t[r]), 2 * set->t[b]);

	cut = cc_min(cut, (u64)(3 * set->w[r] / 4));
	return cc_max(set->w[r] - (u32)cut, BALIA_FLOOR);
}

CC_GROWTH(balia, balia_inc_q40);

CC_HOOK(u32, balia_ssthresh, struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set_for_loss(sk, &set))
		return cc_halved(sk, CC_FLOOR_SINGLE);
	return balia_decreased(&set);
}

CC_RENO_UNDO(balia);

CC_REGISTER(balia, CC_COUPLED(0),
	    .ssthresh = CC_OP(balia_ssthresh),
	    .cong_avoid = CC_OP(balia_cong_avoid),
	    .undo_cwnd = CC_OP(balia_undo_cwnd));
