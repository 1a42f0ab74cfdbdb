/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The native half of the contract: the socket and its accessors when an algorithm is
 * compiled into the simulator. Only cc.h includes this file; cc_bpf.h provides the same
 * names over the kernel's own structures.
 *
 * Members carry the kernel's names and units, with these differences:
 *  - sequence numbers (snd_una, snd_nxt, the argument `ack`) count packets;
 *  - tcp_mstamp and lsndtime_us are microseconds of simulated time;
 *  - members that are bit-fields or lie elsewhere in the kernel are plain members here,
 *    so algorithms reach them through the accessors only.
 */
#ifndef MPTCPLAB_CC_NATIVE_H
#define MPTCPLAB_CC_NATIVE_H

#define CC_TCP_SOCK tcp_sock
#define CC_RATE_SAMPLE rate_sample
#include "cc_types.h"

struct ack_sample {
	u32 pkts_acked; /* packets newly acknowledged */
	s32 rtt_us;	/* us, negative: no sample */
	u32 in_flight;	/* packets in flight when the newest acked one was sent */
};

struct cc_algorithm;

/* What icsk_ca_priv holds in the kernel. */
struct cc_priv {
	u64 state[CC_STATE_WORDS]; /* the algorithm's own */
	s64 credit_q40;		   /* fraction of a packet, valid while snd_cwnd is credit_cwnd */
	u64 inverse_q40;	   /* 1/inverse_cwnd, cached */
	u32 credit_cwnd;	   /* packets */
	u32 inverse_cwnd;	   /* packets */
};

struct sock {
	struct tcp_sock tp;
	struct cc_priv priv;
	struct cc_conn *conn; /* valid during a hook of a coupled algorithm */
	const struct cc_algorithm *algorithm;
	u32 params[CC_MAX_PARAMS];
	u8 slot;
	u8 growth_per_ack;
	u8 backups_wanted;  /* bit i: the subflow in slot i should become a backup */
	const void *engine; /* the engine's own, opaque to algorithms */
};

/* ---- registration ---- */

#define CC_MAX_FIELDS 12 /* members of a state in CC_FIELDS */

/* A parameter; its raw value, which the algorithm reads, is the declared value times `scale`. */
struct cc_param {
	const char *name;
	double initial, min, max;
	u32 scale;	   /* raw value of 1.0; 0 means 1: the parameter is an integer */
	const char *names; /* "a|b|c": names of the raw values from the smallest on */
	const char *help;
};

/* A member of the state that tests and traces may read: raw * num / den. */
struct cc_field {
	const char *name;
	u32 offset, size;
	u64 num, den; /* 0 means 1 */
	const char *unit;
};

struct cc_algorithm {
	const char *name;
	u32 coupled;
	u32 shared_words;
	const struct cc_param *params; /* ends with an entry without a name */
	const struct cc_field *fields; /* ends with an entry without a name */
	struct cc_hooks ops;
};

#define CC_PARAM_ENTRY_(name_, ...) { .name = #name_, __VA_ARGS__ },
#define CC_PARAM_TABLE_(alg, ...)                                                       \
	static const struct cc_param cc_params_##alg[CC_MAX_PARAMS + 1] = {             \
		CC_FOR_EACH_(CC_PARAM_ENTRY_, __VA_ARGS__)                              \
	}

#define CC_FIELD(alg, member, name_, ...)                                               \
	{                                                                               \
		.name = name_,                                                          \
		.offset = offsetof(struct alg, member),                                 \
		.size = sizeof(((struct alg *)0)->member),                              \
		__VA_ARGS__                                                             \
	}
#define CC_FIELDS(alg, ...) \
	static const struct cc_field cc_fields_##alg[CC_MAX_FIELDS + 1] = { __VA_ARGS__ }

/* The two tables are declared again: one that the file does not define is all zeros. */
#define CC_REGISTER(alg, ...)                                                           \
	static const struct cc_param cc_params_##alg[CC_MAX_PARAMS + 1];                \
	static const struct cc_field cc_fields_##alg[CC_MAX_FIELDS + 1];                \
	extern const struct cc_algorithm cc_algorithm_##alg;                            \
	const struct cc_algorithm cc_algorithm_##alg = {                                \
		.name = #alg,                                                           \
		.coupled = alg##_is_coupled,                                            \
		.shared_words = alg##_shared_words,                                     \
		.params = cc_params_##alg,                                              \
		.fields = cc_fields_##alg,                                              \
		.ops = { __VA_ARGS__ },                                                 \
	}

/* ---- accessors ---- */

CC_INLINE struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)&sk->tp;
}

CC_INLINE struct cc_priv *cc_priv(const struct sock *sk)
{
	return (struct cc_priv *)&sk->priv;
}

#define CC_PARAMS_QUALIFIER const
CC_INLINE const u32 *cc_params(const struct sock *sk)
{
	return sk->params;
}

CC_INLINE bool cc_is_cwnd_limited_bit(const struct sock *sk)
{
	return sk->tp.is_cwnd_limited;
}

CC_INLINE u8 cc_ca_state(const struct sock *sk)
{
	return sk->tp.ca_state;
}

/* Smallest RTT of late, us; ~0 before the first sample. */
CC_INLINE u32 cc_min_rtt_us(const struct sock *sk)
{
	return sk->tp.min_rtt_us;
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

/* Asks the engine to pace the socket at its pacing rate; for the hook init. */
CC_INLINE void cc_request_pacing(struct sock *sk)
{
	sk->tp.sk_pacing_status = 1;
}

/* Asks the engine to let the subflow in this slot carry data only when no other can. */
CC_INLINE void cc_request_backup(struct sock *sk, u32 slot)
{
	sk->backups_wanted |= 1u << slot;
}

CC_INLINE u32 cc_own_slot(const struct sock *sk)
{
	return sk->slot;
}

/* There is no verifier here: see cc_bpf.h. */
CC_INLINE u32 cc_hide_from_verifier(u32 x)
{
	return x;
}

CC_INLINE u32 cc_index(u32 k)
{
	return k;
}

/*
 * A set whose members are still to come, and the clearing of what is beyond member n, which
 * only rules on one path may read: clearing all of it takes longer than reading the table.
 */
#define cc_clear(set) ((set)->self = (set)->n = 0)
#define cc_clear_rest(set, n)                                                           \
	({                                                                              \
		for (u32 i_ = (n); i_ < CC_MAX_SUBFLOWS; i_++)                          \
			(set)->w[i_] = (set)->t[i_] = (set)->slot[i_] = 0;              \
	})

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
	return sk->priv.state[i];
}

/* Whether congestion avoidance counts ACKs instead of the packets that they acknowledge. */
CC_INLINE bool cc_grows_per_ack(const struct sock *sk)
{
	return sk->growth_per_ack;
}

/* 1/w in Q40, rounded up; cached while the window stays, which saves a division per ACK. */
CC_INLINE u64 cc_inverse_q40(struct sock *sk, u32 w)
{
	struct cc_priv *priv = cc_priv(sk);

	if (priv->inverse_cwnd != w) {
		priv->inverse_cwnd = w;
		priv->inverse_q40 = cc_div((1ull << 40) + w - 1, w);
	}
	return priv->inverse_q40;
}

#endif
