/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel structures that the tracer reads, with only the fields that it reads. Every access is relocated at
 * load time (CO-RE), by name, so neither the order nor the offsets below mean anything: one object serves all kernels.
 * A field that some kernel lacks is guarded by bpf_core_field_exists() where it is used. The width of a bit-field is
 * the kernel's choice as well: bit-fields are read with BPF_CORE_READ_BITFIELD only.
 */
#ifndef MPTCPLAB_TRACER_KERNEL_H
#define MPTCPLAB_TRACER_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct net {
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct tcp_congestion_ops {
	void (*cong_control)(void);
	char name[16];
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;
	const struct tcp_congestion_ops *icsk_ca_ops;
	void *icsk_ulp_data;
	__u8 icsk_ca_state : 5;
	__u8 icsk_retransmits;
	__u8 icsk_pending;
	__u8 icsk_backoff;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_wnd;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 retrans_out;
	__u32 packets_out;
	__u32 tlp_high_seq;
	__u32 rttvar_us;
	__u32 mdev_us;
	__u32 srtt_us;
	struct minmax rtt_min;
	__u32 lost;
	__u32 snd_ssthresh;
	__u32 data_segs_out;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 delivered;
	__u32 delivered_ce;
	__u64 delivered_mstamp;
	__u64 bytes_acked;
	__u8 tlp_retrans : 1;
	__u32 prior_cwnd;
	__u32 prior_ssthresh;
	__u32 high_seq;
	__u32 undo_marker;
	int undo_retrans;
	__u32 dsack_dups;
	__u32 total_retrans;
	/* Since Linux 6.7. */
	__u16 total_rto;
	bool is_mptcp;
};

struct tcp_skb_cb {
	__u8 tcp_flags;
};

struct sk_buff {
	char cb[48];
};

struct mptcp_sock {
	__u32 token;
};

struct mptcp_subflow_context {
	__s16 local_id;
	__u8 remote_id;
	__u32 subflow_id;
	struct sock *tcp_sock;
	struct sock *conn;
};

#pragma clang attribute pop

enum {
	KERNEL_AF_INET = 2,
	KERNEL_AF_INET6 = 10,
	KERNEL_IPPROTO_TCP = 6,
};

/* enum tcp_ca_state */
enum {
	CA_OPEN = 0,
	CA_DISORDER = 1,
	CA_CWR = 2,
	CA_RECOVERY = 3,
	CA_LOSS = 4,
};

/* Values of sk->sk_state. */
enum {
	STATE_ESTABLISHED = 1,
	STATE_SYN_SENT = 2,
	STATE_CLOSE = 7,
};

enum {
	/* icsk_pending: the timer that runs is the tail loss probe's. */
	PENDING_LOSS_PROBE = 5,
	/* ECN-Echo in the low byte of tcp_skb_cb.tcp_flags. */
	FLAG_ECE = 0x40,
	/* snd_ssthresh of a socket that never reduced. */
	INFINITE_SSTHRESH = 0x7fffffff,
};

/* rtt_min of a socket that has no sample. */
#define NO_RTT 0xffffffff

#endif
