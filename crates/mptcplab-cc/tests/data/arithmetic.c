// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Arithmetic: no algorithm, but a way to call functions of cc.h
 *
 * Idea: ssthresh calls the function with the number in snd_una. Its arguments are in
 *   packets_out, sacked_out, lost_out and retrans_out, and its result is the threshold.
 * Equations: none.
 * States: none.
 * Parameters' source: none.
 * Deviations: none.
 * On one path: nothing.
 * Good at: nothing (scenarios/dolia-scenario-1.toml).
 * Bad at: everything (scenarios/shared-bottleneck-fairness.toml).
 * Reference: none
 */
#include "cc.h"

CC_UNCOUPLED(arithmetic);

static u32 arithmetic_ssthresh(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 a = tp->packets_out, b = tp->sacked_out, c = tp->lost_out, d = tp->retrans_out;

	switch (tp->snd_una) {
	case 0:
		return cc_bits((u64)a << 32 | b);
	case 1:
		return (u32)(cc_cmp_per_rtt2(a, b, c, d) + 1);
	case 2:
		return cc_exceeds_per_rtt2(a, b, c, d);
	case 3:
		cc_grow_q40(sk, (s64)((u64)a << 32 | b));
		return tp->snd_cwnd;
	}
	return 0;
}

CC_REGISTER(arithmetic,
	    .ssthresh = arithmetic_ssthresh,
	    .cong_avoid = cc_reno_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
