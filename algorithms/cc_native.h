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
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define CC_MAX_SUBFLOWS 8
#define CC_MAX_PARAMS 8
#define CC_SHARED_WORDS 4
/* icsk_ca_priv has 13 words; the glue needs three of them in the kernel. */
#define CC_STATE_WORDS 10

#define CC_INLINE static inline __attribute__((unused))

enum tcp_ca_state {
	TCP_CA_Open,
	TCP_CA_Disorder,
	TCP_CA_CWR,
	TCP_CA_Recovery,
	TCP_CA_Loss,
};

enum tcp_ca_event {
	CA_EVENT_TX_START,     /* first transmit with nothing in flight */
	CA_EVENT_CWND_RESTART, /* cwnd was reduced after an idle period */
	CA_EVENT_COMPLETE_CWR, /* end of a congestion window reduction */
	CA_EVENT_LOSS,	       /* retransmission timeout */
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

struct tcp_sock {
	u64 tcp_mstamp;	      /* us, time of the event being processed */
	u64 lsndtime_us;      /* us, last time data was sent */
	u64 sk_pacing_rate;   /* bytes/s */
	u32 snd_cwnd;	      /* packets */
	u32 snd_ssthresh;     /* packets */
	u32 snd_cwnd_cnt;     /* packets */
	u32 snd_cwnd_clamp;   /* packets */
	u32 prior_cwnd;	      /* packets, before the last reduction */
	u32 prior_ssthresh;   /* packets */
	u32 srtt_us;	      /* us << 3, 0 before the first sample */
	u32 mdev_us;	      /* us << 2 */
	u32 rttvar_us;	      /* us << 2 */
	u32 min_rtt_us;	      /* us, ~0 before the first sample */
	u32 packets_out;      /* packets */
	u32 sacked_out;	      /* packets */
	u32 lost_out;	      /* packets */
	u32 retrans_out;      /* packets */
	u32 max_packets_out;  /* packets, most in flight in the last round */
	u32 snd_una;	      /* packets */
	u32 snd_nxt;	      /* packets */
	u32 mss_cache;	      /* bytes */
	u32 delivered;	      /* packets */
	u32 lost;	      /* packets */
	u32 app_limited;      /* 0, or application-limited until this is delivered */
	u32 sk_pacing_status; /* 0 = not paced */
	bool is_cwnd_limited;
	u8 ca_state; /* enum tcp_ca_state */
};

struct ack_sample {
	u32 pkts_acked; /* packets newly acknowledged */
	s32 rtt_us;	/* us, negative: no sample */
	u32 in_flight;	/* packets in flight when the newest acked one was sent */
};

struct rate_sample {
	u64 prior_mstamp;    /* us */
	u32 prior_delivered; /* packets */
	s32 delivered;	     /* packets over interval_us, negative: no sample */
	s64 interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	s64 rtt_us;	     /* us, negative: no sample */
	s32 losses;	     /* packets marked lost by this ACK */
	u32 acked_sacked;    /* packets newly (s)acked by this ACK */
	u32 prior_in_flight; /* packets */
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
};

/* One subflow as its siblings see it. */
struct cc_slot {
	u64 window_rtt; /* effective window << 32 | srtt in us (0: no sample) */
	u32 ssthresh;
	u32 min_rtt_us;
	u8 state;
	u8 usable;
	u8 reserved[6];
	u64 words[CC_SHARED_WORDS];
};

/* The table of one connection. */
struct cc_conn {
	u32 n_slots; /* highest slot ever used, plus one */
	u32 reserved;
	struct cc_slot slot[CC_MAX_SUBFLOWS];
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
	const void *engine; /* the engine's own, opaque to algorithms */
};

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
};

/* A parameter: `values` names the values min..max of an enumeration, "a|b|c". */
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
	struct tcp_congestion_ops ops;
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

#endif
