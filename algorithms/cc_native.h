/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The native home of the contract: types, registration and accessors when an
 * algorithm is compiled into the simulator. Only cc.h includes it.
 *
 * Every name here is what an algorithm file may use; another home (eBPF)
 * provides the same names over the kernel's own structures. Fields carry the
 * kernel's names and units. Differences from the kernel:
 *  - sequence numbers (snd_una, snd_nxt, the `ack` argument) count packets;
 *  - tcp_mstamp and lsndtime_us are microseconds of simulated time;
 *  - bit-fields and fields that live elsewhere in the kernel are plain members
 *    here, so algorithms reach them through the cc_ accessors only.
 */
#ifndef MPTCPLAB_CC_NATIVE_H
#define MPTCPLAB_CC_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define CC_TCP_SOCK tcp_sock
#define CC_RATE_SAMPLE rate_sample
#include "cc_types.h"

struct ack_sample {
	u32 pkts_acked; /* packets newly acknowledged */
	s32 rtt_us;	/* us, negative: no sample */
	u32 in_flight;	/* packets in flight when the newest acked one was sent */
};

struct cc_algorithm;

struct sock {
	struct tcp_sock tp;
	u64 state[CC_STATE_WORDS]; /* the algorithm's own */
	s64 credit_q40;		   /* fraction of a packet, valid for credit_cwnd */
	u64 reno_inc_q40;	   /* 1/reno_cwnd, kept to save a division per ACK */
	u32 credit_cwnd;
	u32 reno_cwnd;
	struct cc_conn *conn; /* valid during a hook of a coupled algorithm */
	const struct cc_algorithm *algorithm;
	u32 params[CC_MAX_PARAMS];
	u8 slot;
	u8 growth_per_ack;
	u8 backups_wanted;  /* bit i: the subflow in slot i is to become a backup */
	const void *engine; /* the engine's own, opaque to algorithms */
};

/* A parameter: `values` names the values from min on, "a|b|c"; what lies above them is numbers. */
struct cc_param {
	const char *name;
	u64 initial, min, max;
	u64 scale; /* the raw value of 1.0 */
	const char *values;
	const char *doc;
};

/* A member of the state that tests and traces may see: raw * num / den. */
struct cc_field {
	const char *name;
	u32 offset, size;
	u64 num, den;
	const char *unit;
};

struct cc_algorithm {
	const char *name;
	u32 coupled;
	u32 shared_words;
	const struct cc_param *params;
	const struct cc_field *fields;
	struct cc_hooks ops;
};

/*
 * Arithmetic on u64 whose range the caller has stated. Checked builds (debug
 * and tests) stop on an overflow; release builds and eBPF compute.
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

/* ---- registration: what an algorithm file uses, in the order of its sections ---- */

#define CC_NUMBER NULL
#define CC_NAMES(names) names
#define CC_PARAM_MEMBER_(name_, initial_, min_, max_, scale_, values_, doc_) u32 name_;
#define CC_PARAM_ENTRY_(name_, initial_, min_, max_, scale_, values_, doc_) \
	{ #name_, initial_, min_, max_, scale_, values_, doc_ },
/* X-macro P(name, default, min, max, scale, CC_NUMBER or CC_NAMES("a|b"), "doc"). */
#define CC_PARAMS(alg, LIST)                                                            \
	struct alg##_params { LIST(CC_PARAM_MEMBER_) };                                 \
	_Static_assert(sizeof(struct alg##_params) <= CC_MAX_PARAMS * sizeof(u32),      \
		       "too many parameters");                                          \
	const struct cc_param cc_params_##alg[] = { LIST(CC_PARAM_ENTRY_) { 0 } }
#define CC_PARAM(sk, alg, member) (((const struct alg##_params *)(sk)->params)->member)

/* Declares `struct alg *alg_state(sk)` for `struct alg`, defined above it. */
#define CC_STATE(alg)                                                                   \
	_Static_assert(sizeof(struct alg) <= CC_STATE_WORDS * sizeof(u64),              \
		       "state does not fit icsk_ca_priv");                              \
	CC_INLINE struct alg *alg##_state(struct sock *sk)                              \
	{                                                                               \
		return (struct alg *)sk->state;                                         \
	}                                                                               \
	_Static_assert(_Alignof(struct alg) <= _Alignof(u64), "state is over-aligned")

/* Members that vectors and traces may name: CC_FIELD(alg, member, "name", num, den, "unit"). */
#define CC_FIELD(alg, member, name_, num_, den_, unit_) \
	{ name_, offsetof(struct alg, member), sizeof(((struct alg *)0)->member), num_, den_, unit_ }
#define CC_FIELDS(alg, ...) const struct cc_field cc_fields_##alg[] = { __VA_ARGS__, { 0 } }

#define CC_HOOK(ret, name, ...) static ret name(__VA_ARGS__)
#define CC_OP(fn) fn

#define CC_UNCOUPLED 0, 0
/* Coupled, publishing the first `words` u64 of the state to the siblings. */
#define CC_COUPLED(words) 1, words
#define CC_REGISTER_(alg, coupled_, words_, ...)                                        \
	extern const struct cc_param cc_params_##alg[] __attribute__((weak));           \
	extern const struct cc_field cc_fields_##alg[] __attribute__((weak));           \
	_Static_assert((words_) <= CC_SHARED_WORDS, "too many shared words");           \
	extern const struct cc_algorithm cc_algorithm_##alg;                            \
	const struct cc_algorithm cc_algorithm_##alg = {                                \
		.name = #alg,                                                           \
		.coupled = coupled_,                                                    \
		.shared_words = words_,                                                 \
		.params = cc_params_##alg,                                              \
		.fields = cc_fields_##alg,                                              \
		.ops = { __VA_ARGS__ },                                                 \
	}
#define CC_REGISTER(alg, kind, ...) CC_REGISTER_(alg, kind, __VA_ARGS__)

/* ---- accessors: what the homes keep in different places ---- */

CC_INLINE struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)&sk->tp;
}

CC_INLINE bool cc_is_cwnd_limited_bit(const struct sock *sk)
{
	return sk->tp.is_cwnd_limited;
}

CC_INLINE u8 cc_ca_state(const struct sock *sk)
{
	return sk->tp.ca_state;
}

CC_INLINE u32 cc_min_rtt_us(const struct sock *sk)
{
	return sk->tp.min_rtt_us;
}

CC_INLINE u64 cc_now_us(const struct sock *sk)
{
	return sk->tp.tcp_mstamp;
}

/* When data was last sent, us. */
CC_INLINE u64 cc_last_send_us(const struct sock *sk)
{
	return sk->tp.lsndtime_us;
}

CC_INLINE bool cc_is_paced(const struct sock *sk)
{
	return sk->tp.sk_pacing_status != 0;
}

/* bytes/s */
CC_INLINE u64 cc_pacing_rate(const struct sock *sk)
{
	return sk->tp.sk_pacing_rate;
}

CC_INLINE void cc_set_pacing_rate(struct sock *sk, u64 bytes_per_s)
{
	sk->tp.sk_pacing_rate = bytes_per_s;
}

/* The socket is to be paced at its rate: for init. */
CC_INLINE void cc_request_pacing(struct sock *sk)
{
	sk->tp.sk_pacing_status = 1;
}

/* The subflow in this slot is to carry data only when no other can: the engine sees to it. */
CC_INLINE void cc_request_backup(struct sock *sk, u32 slot)
{
	sk->backups_wanted |= 1u << slot;
}

CC_INLINE u32 cc_own_slot(const struct sock *sk)
{
	return sk->slot;
}

/* What a loop chooses step by step, and so an index into the set: see the eBPF home. */
CC_INLINE u32 cc_forget(u32 x)
{
	return x;
}

CC_INLINE u32 cc_index(u32 k)
{
	return k;
}

/* Calls step(0..times-1, context). */
CC_INLINE void cc_repeat(u32 times, long (*step)(u32 i, void *context), void *context)
{
	for (u32 i = 0; i < times; i++)
		step(i, context);
}

/* The connection's table. */
__attribute__((returns_nonnull)) CC_INLINE const struct cc_conn *cc_table(const struct sock *sk)
{
	return sk->conn;
}

/* Shared word `i` of another slot. */
CC_INLINE u64 cc_slot_word(const struct cc_conn *conn, u32 slot, u32 i)
{
	return conn->slot[slot].words[i];
}

/* Shared word `i` of the acting subflow. */
CC_INLINE u64 cc_own_word(const struct sock *sk, u32 i)
{
	return sk->state[i];
}

CC_INLINE bool cc_grows_per_ack(const struct sock *sk)
{
	return sk->growth_per_ack;
}

/* Fraction of a packet above snd_cwnd, as long as nobody else has set snd_cwnd. */
CC_INLINE s64 cc_kept_credit_q40(const struct sock *sk)
{
	return sk->credit_q40;
}

CC_INLINE u32 cc_kept_credit_cwnd(const struct sock *sk)
{
	return sk->credit_cwnd;
}

CC_INLINE void cc_keep_credit(struct sock *sk, u32 cwnd, s64 credit_q40)
{
	sk->credit_cwnd = cwnd;
	sk->credit_q40 = credit_q40;
}

/*
 * 1/w in Q40, rounded up. Kept while the window stays, which saves a division
 * per ACK.
 */
CC_INLINE u64 cc_inverse_q40(struct sock *sk, u32 w)
{
	if (sk->reno_cwnd != w) {
		sk->reno_cwnd = w;
		sk->reno_inc_q40 = cc_div((1ull << 40) + w - 1, w);
	}
	return sk->reno_inc_q40;
}

#endif
