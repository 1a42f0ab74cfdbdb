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
 * Deviations: alpha is a real number in the decrease. Dialect mptcp-0.95 rounds it
 *   down, so that the decrease is w/2 or 3w/4 and never between, with w/2 rounded
 *   down first; its rates are whole bytes per second, shifted right by 5 until the
 *   largest is at most 2^25. That kernel keeps both results until a window or state
 *   changes; the dialect does not. The increase is capped at 1/w_r, which only
 *   rounding can exceed.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck, and more of a worse path
 *   than OLIA (scenarios/shared-bottleneck-fairness.toml,
 *   scenarios/dolia-scenario-1.toml).
 * Bad at: the worse of two private, lossy paths: it gets less of it than uncoupled Reno
 *   (scenarios/dolia-scenario-1.toml).
 * Reference: Peng et al. 2016, doi:10.1109/TNET.2014.2379698; draft-walid-mptcp-congestion-control-04
 */
#include "balia.h"
#include "dialect.h"

CC_PARAMS(balia,
	  CC_DIALECT);

/* ---- dialect mptcp-0.95 ---- */

#define BALIA_RATE_MAX (1u << 25)	/* bytes/s */
#define BALIA_RATE_SHIFT 5		/* bits by which that kernel scales rates down */
#define BALIA_RATE_SHIFTS 8u		/* 2^25 << 40 is above any rate */
#define BALIA_SEGMENT_MAX (1u << 16)	/* bytes; arithmetic range */

/* The rates as that kernel rounds them, bytes/s. */
struct balia_rates {
	u64 own; /* of the acting subflow */
	u64 max; /* at least 1 */
	u64 sum; /* over the set */
};

/* w <= 2^20, mss <= 2^16, 10^6 < 2^20: the product is < 2^56. Siblings count with our MSS. */
static u64 balia_rate(const struct sock *sk, const struct cc_set *set, u32 k)
{
	u64 bytes = cc_mul(set->w[k], cc_min(tcp_sk(sk)->mss_cache, BALIA_SEGMENT_MAX));

	return cc_div(cc_mul(bytes, 1000000), set->t[k]);
}

static u32 balia_shift(u64 max)
{
	u32 shift = 0;

	for (u32 i = 0; i < BALIA_RATE_SHIFTS; i++)
		shift = cc_hide_from_verifier(
			max >> (shift & 63) > BALIA_RATE_MAX ? shift + BALIA_RATE_SHIFT : shift);
	return shift & 63;
}

static struct balia_rates balia_rates(const struct sock *sk, const struct cc_set *set)
{
	struct balia_rates rates = { 0 };
	u64 max = 1;
	u32 shift;

	cc_for_each(k, 0, set)
		max = cc_max(max, balia_rate(sk, set, k));
	shift = balia_shift(max);
	rates.max = max >> shift;
	rates.own = balia_rate(sk, set, set->self) >> shift;
	cc_for_each(k, 0, set)
		rates.sum += balia_rate(sk, set, k) >> shift;
	return rates;
}

/* x <= m <= 2^25, so x/m is <= 1 in Q17 and the sum of eight <= 2^20, as without the dialect. */
static u64 balia_dialect_inc_q40(struct sock *sk)
{
	struct balia_rates rates;
	struct cc_set set;
	u64 own, sum;

	if (!cc_coupling_set(sk, &set))
		return cc_reno_inc_q40(sk);
	rates = balia_rates(sk, &set);
	own = cc_div(cc_shl(rates.own, 17), rates.max);
	sum = cc_max(cc_div(cc_shl(rates.sum, 17), rates.max), (u64)BALIA_ONE);
	return cc_min(balia_inc_of_rates_q40(own, sum, set.w[set.self]), cc_reno_inc_q40(sk));
}

/* alpha is 1, or 3/2 from 2 on, after the cap; this also covers an own rate shifted to 0. */
static u32 balia_dialect_decreased(const struct sock *sk, const struct cc_set *set)
{
	struct balia_rates rates = balia_rates(sk, set);
	u32 half = set->w[set->self] / 2;
	u32 cut = rates.max >= 2 * rates.own ? half * 3 / 2 : half;

	return cc_max(set->w[set->self] - cut, BALIA_FLOOR);
}

/* ---- hooks ---- */

static u64 balia_growth_q40(struct sock *sk)
{
	return CC_IS_SPEC(balia, sk) ? balia_inc_q40(sk) : balia_dialect_inc_q40(sk);
}

static void balia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)balia_growth_q40(sk));
}

static u32 balia_ssthresh(struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set_for_loss(sk, &set))
		return cc_halved(sk, CC_RENO_FLOOR);
	return CC_IS_SPEC(balia, sk) ? balia_decreased(&set) : balia_dialect_decreased(sk, &set);
}

CC_COUPLED(balia);
CC_REGISTER(balia,
	    .ssthresh = balia_ssthresh,
	    .cong_avoid = balia_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
