/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * LIA's increase (RFC 6356 eq. 1 and 2), for every algorithm that uses it. They differ
 * in the decrease, which is not here.
 */
#ifndef MPTCPLAB_LIA_H
#define MPTCPLAB_LIA_H

#include "cc.h"

/* max(w_k/tau_k^2)/(sum w_k/tau_k)^2 as w_b/S^2: the same for all subflows, before the cap. */
CC_INLINE u64 lia_step_q40(const struct cc_set *set)
{
	u32 best = cc_best_path(set);

	return cc_over_square_q40(set->w[best], cc_ratio_sum_q16(set, best));
}

/* Per acknowledged packet: min(alpha/W, 1/w_r), and 1/w_r on one path. */
CC_INLINE u64 lia_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return reno_q40;
	return cc_min(lia_step_q40(&set), reno_q40);
}

#endif
