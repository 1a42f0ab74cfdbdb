// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The part of the native engine that needs cc.h: it publishes a subflow's slot after each
 * hook, and states the layout that the Rust side is checked against.
 */
#include "cc.h"

/* Writes the acting subflow's slot of the connection's table. */
void mptcplab_cc_publish(const struct sock *sk);
void mptcplab_cc_publish(const struct sock *sk)
{
	struct cc_slot *slot = &sk->conn->slot[sk->slot];
	u32 i, words = sk->algorithm->shared_words;

	/* First what has a byte: the compiler takes it for a pointer to anything. */
	slot->state = sk->tp.ca_state;
	slot->window_rtt = (u64)cc_effective_window(sk) << 32 | cc_srtt_us(sk);
	slot->ssthresh = sk->tp.snd_ssthresh;
	slot->min_rtt_us = sk->tp.min_rtt_us;
	for (i = 0; i < words; i++)
		slot->words[i] = sk->priv.state[i];
}

s64 mptcplab_cc_credit_q40(const struct sock *sk);
s64 mptcplab_cc_credit_q40(const struct sock *sk)
{
	return cc_credit_q40(sk);
}

/* Whether this build aborts on a broken range. */
extern const u32 mptcplab_cc_checked;
#ifdef CC_CHECKED
const u32 mptcplab_cc_checked = 1;
#else
const u32 mptcplab_cc_checked = 0;
#endif

/* Sizes and offsets, in the order of the Rust test that reads them. */
extern const u64 mptcplab_cc_layout[];
const u64 mptcplab_cc_layout[] = {
	sizeof(struct tcp_sock),
	offsetof(struct tcp_sock, snd_cwnd),
	offsetof(struct tcp_sock, srtt_us),
	offsetof(struct tcp_sock, snd_nxt),
	offsetof(struct tcp_sock, sk_pacing_status),
	offsetof(struct tcp_sock, is_cwnd_limited),
	offsetof(struct tcp_sock, ca_state),
	sizeof(struct sock),
	offsetof(struct sock, priv.state),
	offsetof(struct sock, priv.credit_q40),
	offsetof(struct sock, conn),
	offsetof(struct sock, params),
	offsetof(struct sock, slot),
	sizeof(struct cc_conn),
	sizeof(struct cc_slot),
	offsetof(struct cc_slot, words),
	sizeof(struct cc_algorithm),
	offsetof(struct cc_algorithm, ops),
	sizeof(struct cc_param),
	sizeof(struct cc_field),
	sizeof(struct ack_sample),
	sizeof(struct rate_sample),
	offsetof(struct rate_sample, is_ack_delayed),
};
