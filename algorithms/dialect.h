/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A parameter that chooses between the rule of the specification and the variant of it
 * that the out-of-tree kernel (multipath-tcp.org, 0.91 to 0.95) has, so that a testbed
 * that ran that kernel can be imitated; and how windows grow there. Each file says what
 * its dialect changes. The facts are from that kernel's net/mptcp/mptcp_coupled.c,
 * mptcp_olia.c, mptcp_balia.c and mptcp_wvegas.c.
 */
#ifndef MPTCPLAB_DIALECT_H
#define MPTCPLAB_DIALECT_H

#include "cc.h"

#define CC_DIALECT_SPEC 0 /* the source's rule */
/* One of the CC_PARAMS. */
#define CC_DIALECT \
	CC_PARAM(dialect, .initial = CC_DIALECT_SPEC, .max = 1, .names = "spec|mptcp-0.95", \
		   .help = "the source's rule, or that of the out-of-tree kernel up to 0.95")

#define CC_IS_SPEC(alg, sk) (alg##_params(sk)->dialect == CC_DIALECT_SPEC)

/*
 * How that kernel's coupled rules begin: as cc_acked_after_slow_start, but an ACK in slow
 * start counts there only, even if it ends slow start.
 */
CC_INLINE u32 dialect_acked(struct sock *sk, u32 acked)
{
	if (!cc_is_cwnd_limited(sk))
		return 0;
	if (!cc_in_slow_start(sk))
		return cc_ca_acked(sk, acked);
	cc_slow_start(sk, acked);
	return 0;
}

/* The window and the counter of ACKs towards its next packet, of which n are wanted. */
CC_INLINE void dialect_set_window(struct sock *sk, u32 cwnd, u32 count, u32 n)
{
	u64 each_q40 = cc_div(CC_ONE_Q40 + n - 1, n);

	tcp_sk(sk)->snd_cwnd_cnt = count;
	/* Only traces see this fraction: count <= n, so the product is <= 2^40 + n. */
	cc_set_window(sk, cwnd, cc_min(cc_mul(count, each_q40), CC_ONE_Q40 - 1));
}

/*
 * The coupled rules' growth: the counter goes up to n, 1..2^31-1, and the ACK after that
 * adds the packet, so that n + 1 ACKs make one.
 */
CC_INLINE void dialect_grow(struct sock *sk, u32 acked, u32 n)
{
	u64 count = (u64)cc_min(tcp_sk(sk)->snd_cwnd_cnt, n) + acked;
	u32 grown = (u32)cc_div(count, (u64)n + 1);

	dialect_set_window(sk, tcp_sk(sk)->snd_cwnd + grown,
			   (u32)(count - cc_mul(grown, (u64)n + 1)), n);
}

/* Reno as Linux has had it since 3.19 (tcp_cong_avoid_ai): w packets make one, and all count. */
CC_INLINE void dialect_reno(struct sock *sk, u32 acked)
{
	u32 w, count, grown;

	if (!cc_is_cwnd_limited(sk))
		return;
	acked = cc_min(acked, CC_ACKED_MAX);
	if (cc_in_slow_start(sk))
		acked = cc_slow_start(sk, acked);
	if (!acked)
		return;
	w = cc_window(sk);
	grown = tcp_sk(sk)->snd_cwnd_cnt >= w;
	count = (grown ? 0 : tcp_sk(sk)->snd_cwnd_cnt) + acked;
	dialect_set_window(sk, tcp_sk(sk)->snd_cwnd + grown + (u32)cc_div(count, w), count % w, w);
}

#endif
