/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decrease of D-LIA and D-OLIA: how much of the window is left after a loss depends
 * on how much of the window before the last loss had been regained. When the decrease
 * applies is not here, since the two differ in that.
 */
#ifndef MPTCPLAB_DYNAMIC_H
#define MPTCPLAB_DYNAMIC_H

#include "cc.h"

#define DYNAMIC_ONE 1000u	/* 1.0 of the limits, which are exact decimals */
#define DYNAMIC_ONE_Q30 (1u << 30)
#define DYNAMIC_FLOOR 1u	/* packets, with several subflows (algorithm 2) */
#define DYNAMIC_AFTER 0		/* gamma from the window after the last reduction */

/* The limits' ranges do not overlap, so that any two of their values are in order. */
#define DYNAMIC_PARAMS \
	CC_PARAM(beta_min, .initial = 0.5, .min = 0.25, .max = 0.7, .scale = DYNAMIC_ONE, \
		   .help = "least part of the window that a loss keeps (paper: 0.5)"), \
	CC_PARAM(beta_max, .initial = 0.9, .min = 0.7, .max = 0.95, .scale = DYNAMIC_ONE, \
		   .help = "largest part of the window that a loss keeps (paper: 0.9)"), \
	CC_PARAM(gamma, .initial = DYNAMIC_AFTER, .max = 1, .names = "algorithm|text", \
		   .help = "window that a loss is compared with: the last one after its reduction " \
			   "(algorithm 2), or before it (running text)")

struct dynamic_limits {
	u32 min;
	u32 max;
	u32 gamma;
};
#define DYNAMIC_LIMITS(sk, alg)                                                         \
	((struct dynamic_limits){ .min = alg##_params(sk)->beta_min,                   \
				  .max = alg##_params(sk)->beta_max,                   \
				  .gamma = alg##_params(sk)->gamma })

struct dynamic {
	u64 cwnd_q16; /* packets, the window of the last loss that the next is compared with */
	u32 beta_q30; /* beta', the last factor */
	u32 reserved;
};
#define DYNAMIC_FIELDS(alg, member)                                                     \
	CC_FIELD(alg, member.beta_q30, "beta_prev", .den = DYNAMIC_ONE_Q30, .unit = "1"),           \
		CC_FIELD(alg, member.cwnd_q16, "cwnd_prev", .den = 65536, .unit = "packets")

CC_INLINE void dynamic_init(struct dynamic *last)
{
	*last = (struct dynamic){ .beta_q30 = DYNAMIC_ONE_Q30 / 2, .cwnd_q16 = 1 << 16 };
}

/* A limit in Q30, rounded to its inside: the dividend is < 2^40. */
CC_INLINE u64 dynamic_least_q30(u32 min)
{
	return cc_div(cc_shl((u64)min, 30) + DYNAMIC_ONE - 1, DYNAMIC_ONE);
}

CC_INLINE u64 dynamic_most_q30(u32 max)
{
	return cc_div(cc_shl((u64)max, 30), DYNAMIC_ONE);
}

/* gamma = min(w_prev/w, 1) in Q30. Below 1, w_prev < w < 2^37 in Q16; the quotient has 26 bits. */
CC_INLINE u64 dynamic_gamma_q30(u64 before_q16, u64 w_q16)
{
	if (before_q16 >= w_q16)
		return DYNAMIC_ONE_Q30;
	return cc_min(cc_shl(cc_div(cc_shl(before_q16, 26), w_q16), 4), (u64)DYNAMIC_ONE_Q30);
}

/* beta = (gamma + 3 beta')/4 within its limits. */
CC_INLINE u32 dynamic_beta_q30(const struct dynamic *last, u64 w_q16, struct dynamic_limits limits)
{
	u64 beta_q30 = (dynamic_gamma_q30(last->cwnd_q16, w_q16) + 3ull * last->beta_q30) >> 2;

	return (u32)cc_clamp(beta_q30, dynamic_least_q30(limits.min), dynamic_most_q30(limits.max));
}

/* Records the window of this loss for the next one. The floor never raises the window. */
CC_INLINE u32 dynamic_reduce(struct sock *sk, struct dynamic *last, u64 reduced_q16, u32 gamma)
{
	u64 w_q16 = cc_window_q16(sk);

	last->cwnd_q16 = gamma == DYNAMIC_AFTER ? cc_min(w_q16, reduced_q16) : w_q16;
	return cc_ssthresh_of_q16(sk, reduced_q16);
}

/* Half the window; beta' stays. */
CC_INLINE u32 dynamic_halved(struct sock *sk, struct dynamic *last, u32 gamma)
{
	u64 half_q16 = cc_window_q16(sk) / 2;

	return dynamic_reduce(sk, last, cc_max(half_q16, (u64)DYNAMIC_FLOOR << 16), gamma);
}

/* On one path: Reno's half, without a fraction. */
CC_INLINE u32 dynamic_alone(struct sock *sk, struct dynamic *last, u32 gamma)
{
	u32 half = cc_halved(sk, CC_RENO_FLOOR);

	last->cwnd_q16 = (u64)(gamma == DYNAMIC_AFTER ? cc_min(half, cc_window(sk)) : cc_window(sk))
			 << 16;
	return half;
}

/* beta times the window, with its fraction: beta <= 2^30, w < 2^37 in Q16 and 2^33 in Q12. */
CC_INLINE u32 dynamic_decreased(struct sock *sk, struct dynamic *last, struct dynamic_limits limits)
{
	u64 w_q16 = cc_window_q16(sk);
	u64 kept_q16;

	last->beta_q30 = dynamic_beta_q30(last, w_q16, limits);
	kept_q16 = cc_mul(last->beta_q30, w_q16 >> 4) >> 26;
	return dynamic_reduce(sk, last, cc_max(kept_q16, (u64)DYNAMIC_FLOOR << 16), limits.gamma);
}

#endif
