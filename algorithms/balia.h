/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BALIA's increase and decrease (draft-walid-mptcp-congestion-control-04), for every
 * algorithm that uses one of them.
 */
#ifndef MPTCPLAB_BALIA_H
#define MPTCPLAB_BALIA_H

#include "cc.h"

#define BALIA_FLOOR 1u	/* packets, with several subflows (draft section 4) */
#define BALIA_ONE (1u << 17)

/* The member with the largest rate w/t, compared exactly: w t <= 2^46. */
CC_INLINE u32 balia_fastest(const struct cc_set *set)
{
	u32 b = 0;

	cc_for_each(k, 1, set)
		b = cc_mul(set->w[k], set->t[b]) > cc_mul(set->w[b], set->t[k]) ? cc_index(k) : b;
	return b;
}

/* x_k/x_b <= 1 in Q17: the dividend is <= 2^63. */
CC_INLINE u64 balia_rate_q17(const struct cc_set *set, u32 k, u32 b)
{
	/* Also for b itself, see cc_ratio_q16. */
	return cc_div(cc_shl(cc_mul(set->w[k], set->t[b]), 17), cc_mul(set->w[b], set->t[k]));
}

/*
 * With u = x/m in Q17 and U = sum u: (1 + u_r)(1 + 4 u_r) <= 10 is A in Q34;
 * A << 25 <= 2^63; U <= 2^20, so U^2 <= 2^40; the quotient is <= 10 in Q25.
 */
CC_INLINE u64 balia_inc_of_rates_q40(u64 own_q17, u64 sum_q17, u32 w)
{
	u64 a = cc_mul(BALIA_ONE + own_q17, BALIA_ONE + 4 * own_q17);
	u64 q = cc_div(cc_shl(a, 25), cc_mul(sum_q17, sum_q17));

	return cc_div(cc_shl(q, 15), 10 * w);
}

CC_INLINE u64 balia_coupled_inc_q40(const struct cc_set *set)
{
	u32 b = balia_fastest(set);
	u64 sum = 0, own = 0;

	cc_for_each(k, 0, set) {
		u64 rate = balia_rate_q17(set, k, b);

		if (cc_is_self(set, k))
			own = rate;
		sum += rate;
	}
	return balia_inc_of_rates_q40(own, sum, set->w[set->self]);
}

CC_INLINE u64 balia_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return reno_q40;
	return cc_min(balia_coupled_inc_q40(&set), reno_q40);
}

/* (w_r/2) min(alpha_r, 3/2) = min(w_b t_r/(2 t_b), 3 w_r/4); w t <= 2^46. */
CC_INLINE u32 balia_decreased(const struct cc_set *set)
{
	u32 b = balia_fastest(set);
	u32 r = set->self;
	u64 cut = cc_div(cc_mul(set->w[b], set->t[r]), 2 * set->t[b]);

	cut = cc_min(cut, (u64)(3 * set->w[r] / 4));
	return cc_max(set->w[r] - (u32)cut, BALIA_FLOOR);
}

#endif
