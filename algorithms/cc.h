/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between a congestion control algorithm and its engine: an algorithm
 * sees nothing else. docs/algorithm-contract.md introduces it. A rule that only some
 * algorithms share is in a header of its own that includes this one, such as lia.h.
 *
 * Integers only; every loop is bounded by CC_MAX_SUBFLOWS or by the bits of a word; no
 * division by an unchecked value. Windows are packets, at most 2^20 in arithmetic; times
 * are microseconds, at most 2^26 in arithmetic (67 s); "_q40" means a fixed-point number
 * scaled by 2^40.
 */
#ifndef MPTCPLAB_CC_H
#define MPTCPLAB_CC_H

/*
 * Arithmetic on u64 whose range the caller has stated. Checked builds (native, debug and
 * tests) abort on an overflow; the other builds just compute.
 */
#ifdef CC_CHECKED
_Noreturn void mptcplab_cc_assert_failed(const char *expr, const char *file, int line);
#define CC_ASSERT(cond) \
	((cond) ? (void)0 : mptcplab_cc_assert_failed(#cond, __FILE__, __LINE__))
#define cc_mul(a, b) ({ u64 r_; \
	CC_ASSERT(!__builtin_mul_overflow((u64)(a), (u64)(b), &r_)); r_; })
#define cc_add(a, b) ({ u64 r_; \
	CC_ASSERT(!__builtin_add_overflow((u64)(a), (u64)(b), &r_)); r_; })
#define cc_shl(a, s) ({ u64 a_ = (a); u32 s_ = (s); \
	CC_ASSERT(s_ < 64 && ((a_ << s_) >> s_) == a_); a_ << s_; })
#define cc_div(a, b) ({ u64 b_ = (b); CC_ASSERT(b_ != 0); (u64)(a) / b_; })
#else
#define CC_ASSERT(cond) ((void)0)
#define cc_mul(a, b) ((u64)(a) * (u64)(b))
#define cc_add(a, b) ((u64)(a) + (u64)(b))
#define cc_shl(a, s) ((u64)(a) << (s))
#define cc_div(a, b) ((u64)(a) / (u64)(b))
#endif

/* macro(list) for each of up to nine lists in parentheses: one more than CC_MAX_PARAMS. */
#define CC_FOR_EACH_1_(macro, list) macro list
#define CC_FOR_EACH_2_(macro, list, ...) macro list CC_FOR_EACH_1_(macro, __VA_ARGS__)
#define CC_FOR_EACH_3_(macro, list, ...) macro list CC_FOR_EACH_2_(macro, __VA_ARGS__)
#define CC_FOR_EACH_4_(macro, list, ...) macro list CC_FOR_EACH_3_(macro, __VA_ARGS__)
#define CC_FOR_EACH_5_(macro, list, ...) macro list CC_FOR_EACH_4_(macro, __VA_ARGS__)
#define CC_FOR_EACH_6_(macro, list, ...) macro list CC_FOR_EACH_5_(macro, __VA_ARGS__)
#define CC_FOR_EACH_7_(macro, list, ...) macro list CC_FOR_EACH_6_(macro, __VA_ARGS__)
#define CC_FOR_EACH_8_(macro, list, ...) macro list CC_FOR_EACH_7_(macro, __VA_ARGS__)
#define CC_FOR_EACH_9_(macro, list, ...) macro list CC_FOR_EACH_8_(macro, __VA_ARGS__)
#define CC_NINTH_(a, b, c, d, e, f, g, h, i, ninth, ...) ninth
#define CC_FOR_EACH_(macro, ...)                                                        \
	CC_NINTH_(__VA_ARGS__, CC_FOR_EACH_9_, CC_FOR_EACH_8_, CC_FOR_EACH_7_,          \
		  CC_FOR_EACH_6_, CC_FOR_EACH_5_, CC_FOR_EACH_4_, CC_FOR_EACH_3_,       \
		  CC_FOR_EACH_2_, CC_FOR_EACH_1_, 0)(macro, __VA_ARGS__)

#ifdef __bpf__
#include "cc_bpf.h"
#else
#include "cc_native.h"
#endif

#define CC_WINDOW_MAX (1u << 20)	/* packets; arithmetic range, not a limit on cwnd */
#define CC_RTT_MAX_US (1u << 26)	/* us; arithmetic range */
#define CC_ACKED_MAX (1u << 16)		/* packets per ACK; arithmetic range */
#define CC_ONE_Q40 (1ull << 40)		/* one packet of credit */
#define CC_ONE_Q16 (1u << 16)		/* 1.0 of most parameters */
#define CC_INFINITE_SSTHRESH 0x7fffffffu /* snd_ssthresh before the first loss, as in Linux */

/* ---- declarations of an algorithm ---- */

/*
 * Parameters, at most CC_MAX_PARAMS, which the algorithm reads as mine_params(sk)->gain:
 *
 * CC_PARAMS(mine,
 *	     CC_PARAM(gain, .initial = 0.5, .min = 0.1, .max = 4, .scale = CC_ONE_Q16,
 *		      .help = "what it is, with its unit and source"),
 *	     CC_PARAM(capped, .initial = 1, .max = 1, .names = "off|on", .help = "..."));
 *
 * The algorithm sees an integer, the value times `scale` (1 unless given). `min` is 0
 * unless given. `names` are names of the smallest values, separated by '|'.
 */
#define CC_PARAM(...) (__VA_ARGS__)
#define CC_PARAM_MEMBER_(name_, ...) u32 name_;
#define CC_PARAMS(alg, ...)                                                             \
	struct alg##_params { CC_FOR_EACH_(CC_PARAM_MEMBER_, __VA_ARGS__) };            \
	_Static_assert(sizeof(struct alg##_params) <= CC_MAX_PARAMS * sizeof(u32),      \
		       "too many parameters");                                          \
	CC_INLINE CC_PARAMS_QUALIFIER struct alg##_params *alg##_params(                \
		const struct sock *sk)                                                  \
	{                                                                               \
		return (CC_PARAMS_QUALIFIER struct alg##_params *)cc_params(sk);        \
	}                                                                               \
	CC_PARAM_TABLE_(alg, __VA_ARGS__)

/* The state of a subflow, `struct alg`, all zeros at first: alg_state(sk) returns it. */
#define CC_STATE(alg)                                                                   \
	_Static_assert(sizeof(struct alg) <= CC_STATE_WORDS * sizeof(u64),              \
		       "state does not fit icsk_ca_priv");                              \
	_Static_assert(_Alignof(struct alg) <= _Alignof(u64), "state is over-aligned"); \
	CC_INLINE struct alg *alg##_state(struct sock *sk)                              \
	{                                                                               \
		return (struct alg *)cc_priv(sk)->state;                                \
	}                                                                               \
	_Static_assert(1, "")

/*
 * Members of the state that `mptcplab algorithms` lists and test vectors may read:
 * CC_FIELDS(mine, CC_FIELD(mine, rtt_us, "rtt", .den = 1000000, .unit = "s"), ...);
 * The value is the member times `num` over `den`, both 1 unless given.
 */

/* An algorithm has exactly one of these three. It sees nothing of its siblings: */
#define CC_UNCOUPLED(alg) enum { alg##_is_coupled = 0, alg##_shared_words = 0 }

/* It sees the coupling set, struct cc_set. */
#define CC_COUPLED(alg) enum { alg##_is_coupled = 1, alg##_shared_words = 0 }

/*
 * It also sees the first member of its siblings' state, a multiple of eight bytes:
 * alg_shared(sk, set, k) returns that of member k of the set.
 */
#define CC_SHARED(alg, member)                                                          \
	enum {                                                                          \
		alg##_is_coupled = 1,                                                   \
		alg##_shared_words = sizeof(CC_TYPE_OF(alg, member)) / sizeof(u64),     \
	};                                                                              \
	_Static_assert(offsetof(struct alg, member) == 0, "not the first member");      \
	_Static_assert(sizeof(CC_TYPE_OF(alg, member)) % sizeof(u64) == 0,              \
		       "shared state is not a multiple of eight bytes");                \
	_Static_assert(sizeof(CC_TYPE_OF(alg, member)) / sizeof(u64) <= CC_SHARED_WORDS, \
		       "too much shared state");                                        \
	CC_INLINE CC_TYPE_OF(alg, member) alg##_shared(const struct sock *sk,           \
						       const struct cc_set *set, u32 k) \
	{                                                                               \
		return cc_shared(CC_TYPE_OF(alg, member), sk, set, k);                  \
	}                                                                               \
	_Static_assert(1, "")
#define CC_TYPE_OF(alg, member) __typeof__(((struct alg *)0)->member)

/*
 * The file ends with CC_REGISTER(mine, .ssthresh = mine_ssthresh, ...), the members of
 * struct cc_hooks. Every algorithm needs ssthresh, undo_cwnd, and either cong_avoid or
 * cong_control.
 */

/* ---- arithmetic ---- */

#define cc_min(a, b) ({ __typeof__(a) a_ = (a); __typeof__(a) b_ = (b); a_ < b_ ? a_ : b_; })
#define cc_max(a, b) ({ __typeof__(a) a_ = (a); __typeof__(a) b_ = (b); a_ > b_ ? a_ : b_; })
#define cc_clamp(x, lo, hi) cc_min(cc_max(x, lo), hi)

/* Sequence numbers wrap: a < b when the distance from a to b is positive. */
CC_INLINE bool cc_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

CC_INLINE bool cc_after(u32 a, u32 b)
{
	return cc_before(b, a);
}

/* Number of bits of x: 0 for 0, 64 for 2^63. A binary search, since eBPF has no clz. */
CC_INLINE u32 cc_bits(u64 x)
{
	u32 n = 0;

	if (x >> 32) {
		n += 32;
		x >>= 32;
	}
	if (x >> 16) {
		n += 16;
		x >>= 16;
	}
	if (x >> 8) {
		n += 8;
		x >>= 8;
	}
	if (x >> 4) {
		n += 4;
		x >>= 4;
	}
	if (x >> 2) {
		n += 2;
		x >>= 2;
	}
	if (x >> 1) {
		n += 1;
		x >>= 1;
	}
	return cc_hide_from_verifier(n + (u32)x);
}

/* A 96-bit product as a pair that compares like a number. */
struct cc_u96 {
	u64 high; /* bits 32..95 */
	u32 low;  /* bits 0..31 */
};

/* Exact for every a < 2^64, b < 2^32: high <= 2^32 * 2^32. */
CC_INLINE struct cc_u96 cc_mul96(u64 a, u32 b)
{
	u64 low = cc_mul(a & 0xffffffffu, b);
	struct cc_u96 r = {
		.high = cc_add(cc_mul(a >> 32, b), low >> 32),
		.low = (u32)low,
	};

	return r;
}

/* -1, 0 or 1 as a is less than, equal to or greater than b. */
CC_INLINE int cc_cmp96(struct cc_u96 a, struct cc_u96 b)
{
	if (a.high != b.high)
		return a.high < b.high ? -1 : 1;
	if (a.low != b.low)
		return a.low < b.low ? -1 : 1;
	return 0;
}

/*
 * Compares v_i/t_i^2 with v_j/t_j^2 exactly, as v_i t_j^2 with v_j t_i^2.
 * t <= 2^26, so t^2 <= 2^52.
 */
CC_INLINE int cc_cmp_per_rtt2(u32 v_i, u32 t_i, u32 v_j, u32 t_j)
{
	/* Windows below 2^20 and RTTs below 2^22 us (4 s), so nearly always: v t^2 < 2^64. */
	if (!((v_i | v_j) >> 20) && !((t_i | t_j) >> 22)) {
		u64 i = cc_mul(cc_mul(t_j, t_j), v_i);
		u64 j = cc_mul(cc_mul(t_i, t_i), v_j);

		return i < j ? -1 : i > j;
	}
	return cc_cmp96(cc_mul96(cc_mul(t_j, t_j), v_i), cc_mul96(cc_mul(t_i, t_i), v_j));
}

/*
 * Whether v_i/t_i^2 is larger than v_j/t_j^2. Without branches where the products fit, since
 * which path is better changes too often for a branch to be predicted.
 */
CC_INLINE bool cc_exceeds_per_rtt2(u32 v_i, u32 t_i, u32 v_j, u32 t_j)
{
	if (!((v_i | v_j) >> 20) && !((t_i | t_j) >> 22))
		return cc_mul(cc_mul(t_j, t_j), v_i) > cc_mul(cc_mul(t_i, t_i), v_j);
	return cc_cmp_per_rtt2(v_i, t_i, v_j, t_j) > 0;
}

/* cc_hide_from_verifier for 64 bits. */
CC_INLINE u64 cc_hide_from_verifier64(u64 x)
{
	return (u64)cc_hide_from_verifier(x >> 32) << 32 | cc_hide_from_verifier((u32)x);
}

/* ---- the socket ---- */

/* Time of the event that is being processed, us. */
CC_INLINE u64 cc_now_us(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

CC_INLINE bool cc_in_slow_start(const struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd < tcp_sk(sk)->snd_ssthresh;
}

CC_INLINE bool cc_is_recovery(u32 state)
{
	return state == TCP_CA_Recovery || state == TCP_CA_CWR;
}

CC_INLINE bool cc_in_recovery(const struct sock *sk)
{
	return cc_is_recovery(cc_ca_state(sk));
}

/* Linux' tcp_is_cwnd_limited: slow start may grow up to twice what was in flight. */
CC_INLINE bool cc_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (cc_is_cwnd_limited_bit(sk))
		return true;
	return cc_in_slow_start(sk) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

CC_INLINE u32 cc_packets_in_flight(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* Smoothed RTT, us; 0 before the first sample. */
CC_INLINE u32 cc_srtt_us(const struct sock *sk)
{
	u32 srtt = tcp_sk(sk)->srtt_us;

	return srtt ? cc_clamp(srtt >> 3, 1u, CC_RTT_MAX_US) : 0;
}

/* The window in whole packets, 1..2^20: for what a congestion event reduces. */
CC_INLINE u32 cc_window(const struct sock *sk)
{
	return cc_clamp(tcp_sk(sk)->snd_cwnd, 1u, CC_WINDOW_MAX);
}

/* ssthresh during fast recovery, in which cwnd may be inflated, otherwise cwnd. */
CC_INLINE u32 cc_deflated_window(const struct sock *sk, u32 state)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (cc_is_recovery(state) && tp->snd_ssthresh < CC_INFINITE_SSTHRESH)
		return tp->snd_ssthresh;
	return tp->snd_cwnd;
}

/*
 * The window that counts in coupled sums (RFC 6356 section 3): ssthresh during fast
 * recovery, and no more than what is in flight while application-limited. `state` is the
 * state of the socket, which the engine may be about to set.
 */
CC_INLINE u32 cc_effective_window_in(const struct sock *sk, u32 state)
{
	u32 w = cc_deflated_window(sk, state);

	if (tcp_sk(sk)->app_limited)
		w = cc_min(w, cc_packets_in_flight(sk));
	return cc_clamp(w, 1u, CC_WINDOW_MAX);
}

/* For increases: what the subflow really uses of its window, 1..2^20. */
CC_INLINE u32 cc_effective_window(const struct sock *sk)
{
	return cc_effective_window_in(sk, cc_ca_state(sk));
}

/* ---- the fraction of a packet that a window has earned ---- */

/* Fraction of a packet above snd_cwnd; 0 if the engine has set snd_cwnd meanwhile. */
CC_INLINE s64 cc_credit_q40(const struct sock *sk)
{
	const struct cc_priv *priv = cc_priv(sk);

	return priv->credit_cwnd == tcp_sk(sk)->snd_cwnd ? priv->credit_q40 : 0;
}

/* Says which fraction belongs to the window `packets`, which the engine will set. */
CC_INLINE void cc_set_credit(struct sock *sk, u32 packets, u64 fraction_q40)
{
	struct cc_priv *priv = cc_priv(sk);

	priv->credit_cwnd = packets;
	priv->credit_q40 = (s64)fraction_q40;
}

CC_INLINE void cc_set_window(struct sock *sk, u32 packets, u64 fraction_q40)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = cc_clamp(packets, 1u, tp->snd_cwnd_clamp);

	tp->snd_cwnd = cwnd;
	cc_set_credit(sk, cwnd, cwnd == packets ? fraction_q40 : 0);
}

/* The window with its fraction, in Q16, < 2^37: for rules that set the window themselves. */
CC_INLINE u64 cc_window_q16(const struct sock *sk)
{
	return (u64)cc_window(sk) << 16 | (u64)(cc_credit_q40(sk) >> 24);
}

CC_INLINE void cc_set_window_q16(struct sock *sk, u64 w_q16)
{
	cc_set_window(sk, (u32)(w_q16 >> 16), (w_q16 & (CC_ONE_Q16 - 1)) << 24);
}

/* The whole packets of a threshold. Its fraction counts when the engine sets the window to it. */
CC_INLINE u32 cc_ssthresh_of_q16(struct sock *sk, u64 w_q16)
{
	cc_set_credit(sk, (u32)(w_q16 >> 16), (w_q16 & (CC_ONE_Q16 - 1)) << 24);
	return (u32)(w_q16 >> 16);
}

/* ---- increase ---- */

/*
 * Adds a signed number of packets in Q40: whole packets to snd_cwnd, the rest to the
 * fraction. |delta| <= 2^16 packets * 2^40 = 2^56, |credit| < 2^40.
 */
CC_INLINE void cc_grow_q40(struct sock *sk, s64 delta_q40)
{
	s64 credit = cc_credit_q40(sk) + delta_q40;
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u64 owed;

	/* Most ACKs earn less than a packet and leave the window as it is. */
	if ((u64)credit < CC_ONE_Q40 && cwnd - 1 < tcp_sk(sk)->snd_cwnd_clamp) {
		cc_set_credit(sk, cwnd, credit);
		return;
	}
	if (credit >= 0) {
		cwnd = cc_min(cwnd + (u32)(credit >> 40), tcp_sk(sk)->snd_cwnd_clamp);
		cc_set_window(sk, cwnd, credit & (CC_ONE_Q40 - 1));
		return;
	}
	owed = ((u64)-credit + CC_ONE_Q40 - 1) >> 40;
	if (owed >= cwnd)
		cc_set_window(sk, 1, 0);
	else
		cc_set_window(sk, cwnd - (u32)owed, credit + (s64)(owed << 40));
}

/* Adds inc_q40 per acknowledged packet: |inc| <= 2^46, acked <= 2^16. */
CC_INLINE void cc_grow_per_packet(struct sock *sk, u32 acked, s64 inc_q40)
{
	CC_ASSERT(acked <= CC_ACKED_MAX);
	CC_ASSERT(inc_q40 >= -(1ll << 46) && inc_q40 <= 1ll << 46);
	cc_grow_q40(sk, (s64)acked * inc_q40);
}

/*
 * Slow start: one packet per packet acknowledged, up to ssthresh. Returns what is
 * left of `acked` for congestion avoidance.
 */
CC_INLINE u32 cc_slow_start(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	u32 grown = cc_min(acked, room);

	tp->snd_cwnd = cc_min(tp->snd_cwnd + grown, tp->snd_cwnd_clamp);
	return acked - grown;
}

/* What counts as acknowledged in congestion avoidance: packets, or ACKs if the socket says so. */
CC_INLINE u32 cc_ca_acked(const struct sock *sk, u32 acked)
{
	/* Hidden, or the verifier follows all the rest once for each range that it may have. */
	return cc_hide_from_verifier(cc_grows_per_ack(sk) ? cc_min(acked, 1u)
							  : cc_min(acked, CC_ACKED_MAX));
}

/*
 * How cong_avoid begins in every loss-based rule: no growth unless the window was used,
 * slow start first. Returns the packets that congestion avoidance may count.
 */
CC_INLINE u32 cc_acked_after_slow_start(struct sock *sk, u32 acked)
{
	if (!cc_is_cwnd_limited(sk))
		return 0;
	if (cc_in_slow_start(sk))
		acked = cc_slow_start(sk, acked);
	return cc_ca_acked(sk, acked);
}

/* ---- Reno (RFC 5681), which most rules fall back to on one path ---- */

#define CC_RENO_FLOOR 2u	/* packets: ssthresh is at least two segments (RFC 5681 eq. 4) */

/*
 * Growth per acknowledged packet, 1/w. Rounded up, so that w packets make exactly one
 * packet of window, as in Linux.
 */
CC_INLINE u64 cc_uncoupled_inc_q40(struct sock *sk)
{
	u32 w = cc_deflated_window(sk, cc_ca_state(sk));

	return cc_inverse_q40(sk, cc_clamp(w, 1u, CC_WINDOW_MAX));
}

/*
 * The same as a term of a coupled rule, in which w is the effective window. Where nothing
 * is coupled, w is the window: a flow that the application limits grows no faster.
 */
CC_INLINE u64 cc_reno_inc_q40(struct sock *sk)
{
	const struct cc_conn *conn;

	if (tcp_sk(sk)->app_limited) {
		conn = cc_table(sk);
		if (!conn || conn->n_slots < 2)
			return cc_uncoupled_inc_q40(sk);
	}
	return cc_inverse_q40(sk, cc_effective_window(sk));
}

CC_INLINE u32 cc_halved(const struct sock *sk, u32 floor)
{
	return cc_max(tcp_sk(sk)->snd_cwnd / 2, floor);
}

/* Hook cong_avoid. */
CC_INLINE void cc_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)cc_uncoupled_inc_q40(sk));
}

/* Hook ssthresh. */
CC_INLINE u32 cc_reno_ssthresh(struct sock *sk)
{
	return cc_halved(sk, CC_RENO_FLOOR);
}

/* Hook undo_cwnd: back to the window before the reduction, unless it has grown past it. */
CC_INLINE u32 cc_reno_undo_cwnd(struct sock *sk)
{
	return cc_max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

/* ---- coupling ---- */

/* The coupling set: the connection's established, usable subflows that have an RTT sample. */
struct cc_set {
	const struct cc_conn *conn;
	/* Aligned, since the verifier tracks the bounds only of what has eight bytes for itself. */
	u32 self CC_ALIGNED; /* index of the acting subflow in the arrays */
	u32 n CC_ALIGNED;    /* members */
	/* What is beyond member n has no value where the set is coupled, and is 0 otherwise. */
	u32 w[CC_MAX_SUBFLOWS] CC_ALIGNED; /* effective windows, 1..2^20 packets */
	u32 t[CC_MAX_SUBFLOWS];		   /* smoothed RTTs, 1..2^26 us */
	u32 slot[CC_MAX_SUBFLOWS];	   /* in the connection's table */
};

/* for (k = first; ...) over the arrays; n is hidden, or the verifier follows each n by itself. */
#define cc_for_each(k, first, set)                                                      \
	for (u32 n_ = cc_hide_from_verifier((set)->n), k = (first);                     \
	     k < CC_MAX_SUBFLOWS && k < n_; k++)

/* Whether entry k is the acting subflow. */
CC_INLINE bool cc_is_self(const struct cc_set *set, u32 k)
{
	return k == cc_hide_from_verifier(set->self);
}

/*
 * Reads the table once. False when the single-path rule applies: fewer than two
 * subflows in the set, or the acting one not in it.
 */
CC_INLINE bool cc_coupling_set(const struct sock *sk, struct cc_set *set)
{
	const struct cc_conn *conn = cc_table(sk);
	u32 own = cc_own_slot(sk);
	u32 i, at, self = 0, member = 0, n = 0;
	u64 own_wt;

	cc_clear(set);
	set->conn = conn;
	if (!conn || conn->n_slots < 2) {
		cc_clear_rest(set, 0);
		return false;
	}
	/* Hidden, or the verifier follows every way to compute it through the whole loop. */
	own_wt = cc_hide_from_verifier64((u64)cc_effective_window(sk) << 32 | cc_srtt_us(sk));
	for (i = 0; i < CC_MAX_SUBFLOWS && i < conn->n_slots; i++) {
		const struct cc_slot *slot = &conn->slot[i];
		/* As values: a branch on whose ACK this is could not be predicted. */
		bool is_own = i == cc_hide_from_verifier(own);
		u64 wt = is_own ? own_wt : slot->window_rtt;

		if (!slot->usable || !(u32)wt)
			continue;
		at = n & (CC_MAX_SUBFLOWS - 1);
		set->w[at] = wt >> 32;
		set->t[at] = (u32)wt;
		set->slot[at] = i;
		self = cc_hide_from_verifier(is_own ? n : self);
		member = cc_hide_from_verifier(member | is_own);
		n = cc_hide_from_verifier(n + 1);
	}
	set->self = cc_index(self);
	set->n = n;
	if (member && n > 1)
		return true;
	cc_clear_rest(set, n);
	return false;
}

/* For a decrease: the acting subflow counts with its actual window. */
CC_INLINE bool cc_coupling_set_for_loss(const struct sock *sk, struct cc_set *set)
{
	bool coupled = cc_coupling_set(sk, set);

	if (coupled)
		set->w[set->self] = cc_window(sk);
	return coupled;
}

/* Half the window, at least `floor` with several subflows and Reno's floor with one. */
CC_INLINE u32 cc_coupled_halved(const struct sock *sk, u32 floor)
{
	struct cc_set set;

	return cc_halved(sk, cc_coupling_set(sk, &set) ? floor : CC_RENO_FLOOR);
}

/* Shared word `i` of member k; the acting subflow's comes from its own state. */
CC_INLINE u64 cc_shared_word(const struct sock *sk, const struct cc_set *set, u32 k, u32 i)
{
	u32 slot = set->slot[k];

	return slot == cc_own_slot(sk) ? cc_own_word(sk, i) : cc_slot_word(set->conn, slot, i);
}

/* What member k shares, as `type`: for headers. A file uses alg_shared() of CC_SHARED. */
#define cc_shared(type, sk, set, k)                                                     \
	({                                                                              \
		union {                                                                 \
			type value;                                                     \
			u64 words[sizeof(type) / sizeof(u64)];                          \
		} shared_;                                                              \
		for (u32 i_ = 0; i_ < sizeof(type) / sizeof(u64); i_++)                 \
			shared_.words[i_] = cc_shared_word(sk, set, k, i_);             \
		shared_.value;                                                          \
	})

/*
 * A value of the whole connection, which any subflow may change. A subflow writes only its
 * own slot, so each change is shared by the subflow that made it, with the number of the
 * change: the value with the highest number is the current one.
 */
struct cc_conn_value {
	u32 change; /* 0: never changed */
	u32 value;
};

/* The current value; `word` is where a struct cc_conn_value is among the shared words. */
CC_INLINE struct cc_conn_value cc_conn_value(const struct sock *sk, u32 word)
{
	union {
		u64 word;
		struct cc_conn_value latest;
	} other, found = { .word = cc_own_word(sk, word) };
	const struct cc_conn *conn = cc_table(sk);
	u32 i;

	if (!conn)
		return found.latest;
	for (i = 0; i < CC_MAX_SUBFLOWS && i < conn->n_slots; i++) {
		other.word = i == cc_own_slot(sk) ? 0 : cc_slot_word(conn, i, word);
		found.word = cc_hide_from_verifier64(
			other.latest.change > found.latest.change ? other.word : found.word);
	}
	return found.latest;
}

/* Sum of the set's windows, at most 2^23 packets. */
CC_INLINE u64 cc_total_window(const struct cc_set *set)
{
	u64 sum = 0;

	cc_for_each(k, 0, set)
		sum += set->w[k];
	return sum;
}

/* The member with the largest w/t^2, the lowest one on a tie. */
CC_INLINE u32 cc_best_path(const struct cc_set *set)
{
	u32 best = 0;

	cc_for_each(k, 1, set)
		best = cc_exceeds_per_rtt2(set->w[k], set->t[k], set->w[best], set->t[best])
			       ? cc_index(k)
			       : best;
	return best;
}

/* w_k t_ref/t_k in Q16: w t <= 2^46, so the numerator is <= 2^62; capped at 2^58. */
CC_INLINE u64 cc_ratio_q16(const struct cc_set *set, u32 k, u32 ref)
{
	/* Also for equal RTTs: a division costs less than a branch that cannot be predicted. */
	u64 ratio = cc_div(cc_shl(cc_mul(set->w[k], set->t[ref]), 16), set->t[k]);

	return cc_hide_from_verifier64(cc_min(ratio, 1ull << 58));
}

/* Sum of w_k t_ref/t_k in Q16: eight terms, so <= 2^61. */
CC_INLINE u64 cc_ratio_sum_q16(const struct cc_set *set, u32 ref)
{
	u64 sum = 0;

	cc_for_each(k, 0, set)
		sum = cc_add(sum, cc_ratio_q16(set, k, ref));
	return sum;
}

/*
 * w/S^2 in Q40, S in Q16 and S >= w (it contains w's own term). S is shifted down
 * to 31 bits: then (w << 43)/S is at most 2^(27+s), and no step overflows.
 */
CC_INLINE u64 cc_over_square_q40(u32 w, u64 sum_q16)
{
	u32 s = sum_q16 >> 31 ? cc_bits(sum_q16) - 31 : 0;
	u64 sum = sum_q16 >> s;
	u64 q = cc_div(cc_shl((u64)w, 43), sum);

	q = 2 * s <= 29 ? cc_shl(q, 29 - 2 * s) : q >> (2 * s - 29);
	return cc_div(q, sum);
}

#endif
