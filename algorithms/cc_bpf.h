/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The eBPF half of the contract: the same names as cc_native.h over the kernel's own
 * structures. Only cc.h includes this file, when it is compiled for eBPF as part of
 * crates/mptcplab-bpf/bpf/glue.c.
 *
 * Structures list only the members that are used; the loader finds them by name in the
 * running kernel's BTF (CO-RE), so one object serves all kernels. Bit-fields are read
 * with BPF_CORE_READ_BITFIELD, since a plain access would use this header's mask.
 */
#ifndef MPTCPLAB_CC_BPF_H
#define MPTCPLAB_CC_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define CC_TCP_SOCK cc_tcp_copy
#define CC_RATE_SAMPLE cc_rate_copy
#include "cc_types.h"

/* ---- the kernel's structures ---- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	unsigned long sk_pacing_rate;	  /* bytes/s */
	unsigned long sk_max_pacing_rate; /* bytes/s, what the application allows */
	u32 sk_pacing_status;		  /* enum sk_pacing */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u8 icsk_ca_state : 5;
	void *icsk_ulp_data;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp;
	u32 lsndtime; /* jiffies */
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 srtt_us;
	u32 mdev_us;
	u32 rttvar_us;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 snd_una;
	u32 snd_nxt;
	u32 mss_cache;
	u32 delivered;
	u32 lost;
	u32 app_limited;
	struct minmax rtt_min;
	u8 is_cwnd_limited : 1;
	bool is_mptcp;
};

struct mptcp_subflow_context {
	struct sock *conn;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
};

#pragma clang attribute pop

/* ---- private state: icsk_ca_priv ---- */

/* Thirteen words: ten for the algorithm, three for this file and the glue. */
struct cc_priv {
	u64 state[CC_STATE_WORDS];
	s64 credit_q40;	 /* fraction of a packet, valid while snd_cwnd is credit_cwnd */
	u32 credit_cwnd; /* packets */
	u32 place;	 /* CC_PLACED | index of the connection << 3 | slot; 0: no table */
	u64 reserved;
};

#define CC_PLACED (1u << 31)
#define CC_INDEX_MAX ((1u << 28) - 1)

_Static_assert(sizeof(struct cc_priv) == 13 * sizeof(u64),
	       "private state is what icsk_ca_priv offers");

CC_INLINE struct inet_connection_sock *cc_icsk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

CC_INLINE struct cc_priv *cc_priv(const struct sock *sk)
{
	return (struct cc_priv *)cc_icsk(sk)->icsk_ca_priv;
}

/* ---- what the loader sets before it loads ---- */

struct cc_config {
	u32 params[CC_MAX_PARAMS]; /* raw values in the order of CC_PARAMS */
	u32 growth_per_ack;	   /* congestion avoidance counts ACKs, not packets */
	u32 connection_mask;	   /* room for connections, minus one: 2^n - 1 */
	u32 hz;			   /* jiffies per second */
	u32 pacing;		   /* pace every socket */
	u32 object[2];		   /* digest of the object file, for user space alone */
};
const volatile struct cc_config cc_config SEC(".rodata.config");

/* Times that an algorithm wanted a subflow to become a backup; apart from the glue's counters. */
u64 cc_backups_wanted SEC(".bss.backups");

#define CC_PACING_NEEDED 1 /* enum sk_pacing */

/* ---- connections ---- */

/* One connection; `lock` guards everything but the slots, each of which only its subflow writes. */
struct cc_entry {
	struct bpf_spin_lock lock;
	u32 used;			 /* bit i: slot i is taken */
	u64 key;			 /* the kernel's address of the connection; 0: free */
	u64 last_us[CC_MAX_SUBFLOWS];	 /* when a slot was last published */
	u64 checked_us[CC_MAX_SUBFLOWS]; /* when it last looked for silent siblings */
	struct cc_conn conn;
};

/* max_entries is set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cc_entry);
} cc_entries SEC(".maps");

CC_INLINE struct cc_entry *cc_entry(const struct sock *sk)
{
	u32 place = cc_priv(sk)->place;
	u32 index = place >> 3 & CC_INDEX_MAX;

	if (!(place & CC_PLACED))
		return NULL;
	return bpf_map_lookup_elem(&cc_entries, &index);
}

#ifdef CC_RECORD
#include "cc_record.h"

/*
 * While calls are recorded, a hook reads the table and the clock from the record itself,
 * since siblings and time go on meanwhile. One record per slot, and one writer: its
 * subflow, under its own lock.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cc_record);
} cc_calls SEC(".maps");

/* NULL on plain TCP. */
CC_INLINE struct cc_record *cc_call(const struct sock *sk)
{
	u32 place = cc_priv(sk)->place;
	u32 index = place & ~CC_PLACED;

	return place & CC_PLACED ? bpf_map_lookup_elem(&cc_calls, &index) : NULL;
}
#endif

/* ---- registration ---- */

/* Defaults, ranges and names are in the native build; the loader passes raw values. */
#define CC_PARAM_TABLE_(alg, ...) _Static_assert(1, "")
#define CC_FIELDS(alg, ...) _Static_assert(1, "")

#define CC_REGISTER(alg, ...)                                                           \
	enum { cc_is_coupled = alg##_is_coupled, cc_shared_words = alg##_shared_words };\
	static const struct cc_hooks cc_hooks = { __VA_ARGS__ }

/*
 * Every function from here to the end of the algorithm file is inlined into the program
 * that calls it, since a call costs time on every ACK. The glue pops the attribute.
 */
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)

/* ---- accessors ---- */

CC_INLINE struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

#define CC_PARAMS_QUALIFIER const volatile
CC_INLINE const volatile u32 *cc_params(const struct sock *sk)
{
	return cc_config.params;
}

CC_INLINE bool cc_is_cwnd_limited_bit(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(tcp_sk(sk), is_cwnd_limited);
}

CC_INLINE u8 cc_ca_state(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(cc_icsk(sk), icsk_ca_state);
}

CC_INLINE u32 cc_min_rtt_us(const struct sock *sk)
{
	return tcp_sk(sk)->rtt_min.s[0].v;
}

/* The kernel keeps this time in jiffies. */
CC_INLINE u64 cc_read_last_send_us(const struct sock *sk)
{
	u32 ago = (u32)bpf_jiffies64() - tcp_sk(sk)->lsndtime;

	return tcp_sk(sk)->tcp_mstamp - (u64)ago * 1000000 / (cc_config.hz ? cc_config.hz : 1);
}

CC_INLINE u64 cc_last_send_us(const struct sock *sk)
{
#ifdef CC_RECORD
	struct cc_record *call = cc_call(sk);

	return call ? call->before.tp.lsndtime_us : cc_read_last_send_us(sk);
#else
	return cc_read_last_send_us(sk);
#endif
}

CC_INLINE bool cc_is_paced(const struct sock *sk)
{
	return sk->sk_pacing_status != 0;
}

CC_INLINE u64 cc_pacing_rate(const struct sock *sk)
{
	return sk->sk_pacing_rate;
}

CC_INLINE void cc_set_pacing_rate(struct sock *sk, u64 bytes_per_s)
{
	u64 most = sk->sk_max_pacing_rate;

	sk->sk_pacing_rate = bytes_per_s < most ? bytes_per_s : most;
}

/* The kernel's own timer paces, unless a qdisc does. */
CC_INLINE void cc_request_pacing(struct sock *sk)
{
	if (!sk->sk_pacing_status)
		sk->sk_pacing_status = CC_PACING_NEEDED;
}

/* No hook can do this in the kernel: the requests are counted, and the loader reports them. */
CC_INLINE void cc_request_backup(struct sock *sk, u32 slot)
{
	__sync_fetch_and_add(&cc_backups_wanted, 1);
}

CC_INLINE u32 cc_own_slot(const struct sock *sk)
{
	return cc_priv(sk)->place & (CC_MAX_SUBFLOWS - 1);
}

/*
 * The same value, about which the verifier knows nothing: it does not track four bytes in
 * the upper half of a stack word. For what a loop computes step by step, such as a count,
 * an index or a maximum: two ways through the code that differ only in such a value then
 * look alike to the verifier, which otherwise follows each of them to the end.
 */
CC_INLINE u32 cc_hide_from_verifier(u32 x)
{
	u64 hidden, value = x;

	/* In assembly, since the compiler would move the variable into a half that is tracked. */
	__asm__ volatile("*(u32 *)(%[hidden] + 4) = %[value]\n\t"
			 "%[value] = *(u32 *)(%[hidden] + 4)"
			 : [value] "+r"(value)
			 : [hidden] "r"(&hidden));
	return value;
}

/* An index into the coupling set that is computed at run time. */
CC_INLINE u32 cc_index(u32 k)
{
	return cc_hide_from_verifier(k) & (CC_MAX_SUBFLOWS - 1);
}

/* The verifier wants every word of the stack written that a loop with its bound may read. */
#define cc_clear(set) (*(set) = (__typeof__(*(set))){ 0 })
#define cc_clear_rest(set, n) ((void)(n))

/*
 * Calls step(0..times-1, context), of which the verifier follows only one call: for nested
 * loops. `context` is on the stack, `step` returns 0.
 */
CC_INLINE void cc_repeat(u32 times, long (*step)(u32 i, void *context), void *context)
{
	bpf_loop(times, step, context, 0);
}

/* The connection's table; NULL on plain TCP. */
CC_INLINE const struct cc_conn *cc_table(const struct sock *sk)
{
#ifdef CC_RECORD
	struct cc_record *call = cc_call(sk);

	return call ? &call->before.conn : NULL;
#else
	struct cc_entry *entry = cc_entry(sk);

	return entry ? &entry->conn : NULL;
#endif
}

/* The masks change no value; they prove the bounds to the verifier. */
CC_INLINE u64 cc_slot_word(const struct cc_conn *conn, u32 slot, u32 i)
{
	return conn->slot[slot & (CC_MAX_SUBFLOWS - 1)].words[i & (CC_SHARED_WORDS - 1)];
}

CC_INLINE u64 cc_own_word(const struct sock *sk, u32 i)
{
	u64 word = cc_priv(sk)->state[i & (CC_SHARED_WORDS - 1)];

	/* Or the compiler merges this load with that of cc_slot_word, which the verifier refuses. */
	__asm__ volatile("" : "+r"(word));
	return word;
}

CC_INLINE bool cc_grows_per_ack(const struct sock *sk)
{
	return cc_config.growth_per_ack;
}

/* 1/w in Q40, rounded up. */
CC_INLINE u64 cc_inverse_q40(struct sock *sk, u32 w)
{
	return cc_div((1ull << 40) + w - 1, w);
}

#endif
