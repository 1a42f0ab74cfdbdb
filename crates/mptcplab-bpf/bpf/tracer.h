/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data that the tracer's programs share with user space: the record of the ring buffer, which is also the first part
 * of a value in the map of sockets. src/tracer/sample.rs declares the same layout in Rust, and the loader compares the
 * sizes.
 */
#ifndef MPTCPLAB_TRACER_H
#define MPTCPLAB_TRACER_H

#include <linux/types.h>

/* Which tracepoint wrote the record. */
enum trc_kind {
	TRC_ACK = 0,
	TRC_RETRANSMIT = 1,
	TRC_CA_STATE = 2,
	TRC_TCP_STATE = 3,
};

/* The events of a record; several may be set. */
enum trc_flag {
	TRC_NEW_RTT = 1 << 0,
	TRC_LOSS_EVENT = 1 << 1,
	TRC_RECOVERY_ENDED = 1 << 2,
	TRC_RTO = 1 << 3,
	TRC_ECN_EVENT = 1 << 4,
	TRC_LOCAL_EVENT = 1 << 5,
	TRC_UNDO = 1 << 6,
	TRC_TLP_SENT = 1 << 7,
	TRC_ESTABLISHED = 1 << 8,
	TRC_CLOSED = 1 << 9,
	TRC_MPTCP = 1 << 10,
	TRC_PARTIAL = 1 << 11,
	TRC_UNSEEN_ACKS = 1 << 12,
};

/* Flags that make a record an event, which goes into the ring even when samples of ACKs do not. */
#define TRC_EVENTS                                                                                                     \
	(TRC_LOSS_EVENT | TRC_RECOVERY_ENDED | TRC_RTO | TRC_ECN_EVENT | TRC_LOCAL_EVENT | TRC_UNDO | TRC_TLP_SENT |   \
	 TRC_ESTABLISHED | TRC_CLOSED)

/* A socket: both ends of a connection are different sockets, with local and remote exchanged. */
struct trc_key {
	__u64 cookie;
	__be32 local_addr;
	__be32 remote_addr;
	__u16 local_port;
	__u16 remote_port;
	__u32 zero;
};

/* Cumulative, counted in the kernel, so that a lost record loses nothing. */
struct trc_counters {
	__u64 rtt_sum_us;
	__u64 rtt_count;
	__u64 loss_events;
	__u64 ecn_events;
	__u64 local_events;
	__u64 rto_count;
	__u64 rto_wait_ns;
	__u64 undo_count;
	__u64 tlp_count;
	__u64 acks;
};

struct trc_sample {
	__u64 t_ns;
	struct trc_key key;
	__u8 kind;
	__u8 ca_state;
	__u8 tcp_state;
	__u8 from;
	__u32 flags;
	__u32 token;
	__u32 subflow_id;
	__u8 local_id;
	__u8 remote_id;
	__u8 retransmits;
	__u8 backoff;
	__u32 pacing_status;
	__u32 cwnd;
	__u32 settled_cwnd;
	__u32 prior_cwnd;
	__u32 ssthresh;
	__u32 srtt_us;
	__u32 rtt_us;
	__u32 min_rtt_us;
	__u32 mdev_us;
	__u32 rttvar_us;
	__u32 rto_jiffies;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 mss_bytes;
	__u32 snd_wnd;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 lost;
	__u32 total_retrans;
	__u32 data_segs_out;
	__u32 base_delivered;
	__u32 base_retrans;
	__u32 zero;
	__u64 bytes_acked;
	__u64 pacing_rate;
	__u64 handshake_ns;
	struct trc_counters counters;
	char cc[16];
};

/* State that the programs need from one observation of a socket to the next. */
struct trc_memory {
	__u64 ack_ns;
	__u64 progress_ns;
	__u64 cc_ops;
	__u32 una;
	__u32 srtt;
	__u32 mdev;
	__u32 undo_marker;
	__s32 undo_retrans;
	__u32 prior_ssthresh;
	__u32 dsack_dups;
	__u32 tlp_high_seq;
	/* Every ACK is seen: the socket has been established at every observation so far. */
	__u8 live;
	/* The ACK that is being processed carried ECN-Echo. */
	__u8 echo;
	/* How often the MPTCP connection was looked up. */
	__u8 lookups;
	/* The congestion state that the last tracepoint entered. */
	__u8 ca_state;
	/*
	 * The events of the present observation. Volatile, because the verifier knows on every path what a local variable holds,
	 * and follows all combinations of events one by one.
	 */
	volatile __u16 flags;
	/* The kernel's count of timeouts when the socket was first observed. */
	__u16 base_rto;
};

struct trc_socket {
	struct trc_sample sample;
	struct trc_memory memory;
};

/* Counted over all sockets. */
struct trc_totals {
	__u64 lost_records;
	__u64 untracked;
	__u64 unseen_states;
};

#endif
