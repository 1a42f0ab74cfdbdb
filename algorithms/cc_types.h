/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Types that cc_native.h, cc_bpf.h and cc_record.h have in common: integers, sizes,
 * the kernel's enumerations, the hooks, the table of a connection. Only cc_native.h
 * and cc_bpf.h include this file.
 */
#ifndef MPTCPLAB_CC_TYPES_H
#define MPTCPLAB_CC_TYPES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#define CC_MAX_SUBFLOWS 8 /* of a connection */
#define CC_MAX_PARAMS 8	  /* of an algorithm */
#define CC_SHARED_WORDS 4 /* of a state that siblings see */
/* icsk_ca_priv has 13 words, of which the eBPF build needs three for itself. */
#define CC_STATE_WORDS 10

#define CC_INLINE static inline __attribute__((unused))
#define CC_ALIGNED __attribute__((aligned(8)))

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

struct sock;
struct ack_sample;
struct rate_sample;

/* The hooks that an algorithm may have, under the names of struct tcp_congestion_ops. */
struct cc_hooks {
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

/*
 * The TCP state that hooks see. Natively this is struct tcp_sock itself; in the
 * kernel it is the copy that record mode makes.
 */
struct CC_TCP_SOCK {
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
	u32 snd_una;	      /* packets; bytes in the kernel */
	u32 snd_nxt;	      /* packets; bytes in the kernel */
	u32 mss_cache;	      /* bytes */
	u32 delivered;	      /* packets */
	u32 lost;	      /* packets */
	u32 app_limited;      /* 0, or application-limited until this is delivered */
	u32 sk_pacing_status; /* 0 = not paced */
	bool is_cwnd_limited;
	u8 ca_state; /* enum tcp_ca_state */
};

/*
 * The delivery rate sample of an ACK. Natively this is struct rate_sample itself; in the
 * kernel it is the copy that record mode makes.
 */
struct CC_RATE_SAMPLE {
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

#endif
