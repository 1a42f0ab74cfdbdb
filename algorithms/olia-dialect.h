/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * OLIA's increase in both dialects, for every algorithm that has them. What the dialect
 * mptcp-0.95 changes is in olia.c. Its products wrap at 2^64, as they do in that kernel.
 */
#ifndef MPTCPLAB_OLIA_DIALECT_H
#define MPTCPLAB_OLIA_DIALECT_H

#include "dialect.h"
#include "olia.h"

#define OLIA_PACKET_Q10 1023 /* growth that makes a packet, in 1/1024 */

/* What the dialect keeps of a subflow. */
struct olia_dialect {
	s32 credit_q10; /* growth that is not a packet yet */
	u32 uncounted;	/* packets acknowledged since the last cong_avoid, as in a recovery */
};

/* Bytes between losses, and the square of the RTT in eighths of us: (8 t)^2 <= 2^58. */
struct olia_dialect_quality {
	u64 bytes;
	u64 rtt2;
};

/* Sequence numbers count bytes there, in 32 bits. Siblings count with our MSS. */
CC_INLINE struct olia_dialect_quality olia_dialect_quality(const struct sock *sk,
							   const struct cc_set *set, u32 k)
{
	u64 eighths = 8 * (u64)set->t[k];

	return (struct olia_dialect_quality){
		.bytes = (u32)(olia_length(sk, set, k) * tcp_sk(sk)->mss_cache),
		.rtt2 = cc_hide_from_verifier64(cc_mul(eighths, eighths)),
	};
}

/* From the newest subflow on; of equal ones the last counts. */
CC_INLINE struct olia_dialect_quality olia_dialect_best(const struct sock *sk,
							const struct cc_set *set)
{
	struct olia_dialect_quality best = { .bytes = 0, .rtt2 = 1 };

	cc_for_each(i, 0, set) {
		struct olia_dialect_quality q =
			olia_dialect_quality(sk, set, cc_index(set->n - 1 - i));
		bool better = q.bytes * best.rtt2 >= best.bytes * q.rtt2;

		best.bytes = cc_hide_from_verifier64(better ? q.bytes : best.bytes);
		best.rtt2 = cc_hide_from_verifier64(better ? q.rtt2 : best.rtt2);
	}
	return best;
}

CC_INLINE void olia_dialect_find_sets(const struct sock *sk, const struct cc_set *set,
				      struct olia_sets *sets)
{
	struct olia_dialect_quality best = olia_dialect_best(sk, set);
	u32 w_max = 0;

	*sets = (struct olia_sets){ 0 };
	cc_for_each(k, 0, set)
		w_max = cc_hide_from_verifier(cc_max(w_max, set->w[k]));
	cc_for_each(k, 0, set) {
		struct olia_dialect_quality q = olia_dialect_quality(sk, set, k);
		bool max = set->w[k] == w_max;
		bool collected = !max && q.bytes * best.rtt2 == best.bytes * q.rtt2;

		sets->n_max = cc_hide_from_verifier(sets->n_max + max);
		sets->n_collected = cc_hide_from_verifier(sets->n_collected + collected);
		if (cc_is_self(set, k)) {
			sets->self_max = cc_hide_from_verifier(max);
			sets->self_collected = cc_hide_from_verifier(collected);
		}
	}
}

/* (1 + sum of w_k tau_r/tau_k in Q10)^2; each term is <= 2^56. */
CC_INLINE u64 olia_dialect_rate(const struct cc_set *set)
{
	u64 rate = 1;

	cc_for_each(k, 0, set)
		rate += cc_div(cc_mul((u64)set->w[k] << 10, set->t[set->self]), set->t[k]);
	return rate * rate;
}

/* What an ACK adds, in 1/1024 packet: as that kernel's int, which keeps the lower 32 bits. */
CC_INLINE u32 olia_dialect_step_q10(const struct sock *sk, const struct cc_set *set)
{
	u64 rate = olia_dialect_rate(set);
	u32 w = cc_window(sk);
	struct olia_sets sets;
	u64 first, den = 1;

	olia_dialect_find_sets(sk, set, &sets);
	if (sets.self_collected)
		den = (u64)set->n * sets.n_collected;
	else if (sets.self_max && sets.n_collected)
		den = (u64)set->n * sets.n_max;
	den = cc_hide_from_verifier64(den);
	first = den * ((u64)w << 10) * ((u64)w << 10);
	den = cc_max(den * w * rate, 1ull);
	if (sets.self_collected)
		return (u32)cc_div((first + rate) << 10, den);
	if (!sets.self_max || !sets.n_collected)
		return (u32)cc_div(first << 10, den);
	if (first < rate)
		return -(u32)cc_div((rate - first) << 10, den);
	return (u32)cc_div((first - rate) << 10, den);
}

CC_INLINE void olia_dialect_grow(struct sock *sk, const struct cc_set *set, u32 acked,
				 struct olia_dialect *own)
{
	u32 step_q10 = acked * olia_dialect_step_q10(sk, set);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	own->credit_q10 = (s32)((u32)own->credit_q10 + step_q10);
	if (own->credit_q10 >= OLIA_PACKET_Q10)
		cc_set_window(sk, cwnd + 1, 0);
	else if (own->credit_q10 <= -OLIA_PACKET_Q10)
		cc_set_window(sk, cwnd - 1, 0);
	else
		return;
	own->credit_q10 = 0;
}

/* ---- both dialects ---- */

CC_INLINE void olia_any_grow(struct sock *sk, u32 acked, u32 metric, bool spec,
			     struct olia_dialect *own)
{
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		cc_grow_per_packet(sk, acked, (s64)cc_reno_inc_q40(sk));
	else if (spec)
		cc_grow_per_packet(sk, acked, olia_coupled_inc_q40(sk, &set, metric));
	else
		olia_dialect_grow(sk, &set, acked, own);
}

/* Hook cong_avoid. */
CC_INLINE void olia_any_cong_avoid(struct sock *sk, u32 acked, u32 metric, bool spec,
				   struct olia_interval *interval, struct olia_dialect *own)
{
	olia_count(interval, own->uncounted);
	own->uncounted = 0;
	acked = spec ? cc_acked_after_slow_start(sk, acked) : dialect_acked(sk, acked);
	if (acked)
		olia_any_grow(sk, acked, metric, spec, own);
}

/* Hook pkts_acked: in the dialect it is cong_avoid that counts. */
CC_INLINE void olia_any_count(struct olia_interval *interval, struct olia_dialect *own, u32 acked,
			      bool spec)
{
	if (spec)
		olia_count(interval, acked);
	else
		own->uncounted += cc_min(acked, OLIA_COUNT_MAX - own->uncounted);
}

/* A loss; in the dialect only if something was acknowledged since the last one. */
CC_INLINE void olia_any_count_loss(struct olia_interval *interval, bool spec)
{
	if (spec || interval->l2)
		olia_count_loss(interval);
}

#endif
