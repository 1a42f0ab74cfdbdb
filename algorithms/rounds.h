/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For delay-based algorithms: rounds of one window with their RTT samples, and the packets
 * that a window keeps queued, diff = w (rtt - base)/rtt (Brakmo and Peterson 1995, section
 * 3.2). The decisions are the algorithms'.
 */
#ifndef MPTCPLAB_ROUNDS_H
#define MPTCPLAB_ROUNDS_H

#include "cc.h"

#define CC_NO_RTT 0xffffffffu /* before the first sample */
#define CC_ROUND_SAMPLES 3u /* RTT samples that make a round count */

/* The current round; it ends when all packets sent before it are acknowledged. */
struct cc_rounds {
	u64 rtt_sum_us; /* samples of this round */
	u32 rtt_count;
	u32 end;     /* sequence number */
	u32 base_us; /* smallest RTT seen, CC_NO_RTT before the first */
};

CC_INLINE void cc_round_begin(const struct sock *sk, struct cc_rounds *rounds)
{
	rounds->end = tcp_sk(sk)->snd_nxt;
	rounds->rtt_sum_us = 0;
	rounds->rtt_count = 0;
}

/* Also resets the base RTT, to measure it again. */
CC_INLINE void cc_round_restart(const struct sock *sk, struct cc_rounds *rounds)
{
	rounds->base_us = CC_NO_RTT;
	cc_round_begin(sk, rounds);
}

CC_INLINE void cc_round_sample(struct cc_rounds *rounds, const struct ack_sample *sample)
{
	u32 rtt_us;

	if (sample->rtt_us < 0)
		return;
	rtt_us = cc_clamp((u32)sample->rtt_us, 1u, CC_RTT_MAX_US);
	rounds->base_us = cc_min(rounds->base_us, rtt_us);
	rounds->rtt_sum_us = cc_add(rounds->rtt_sum_us, rtt_us);
	rounds->rtt_count++;
}

/* The measurements of a finished round. */
struct cc_round {
	u64 w_q16;   /* window with its fraction, < 2^37 */
	u32 rtt_us;  /* mean, base..2^26 */
	u32 base_us; /* 1..2^26 */
};

/* False when the round had too few samples. */
CC_INLINE bool cc_round_measured(const struct sock *sk, const struct cc_rounds *rounds,
				 struct cc_round *round)
{
	u64 mean_us;

	if (rounds->rtt_count < CC_ROUND_SAMPLES)
		return false;
	mean_us = cc_div(rounds->rtt_sum_us, rounds->rtt_count);
	round->w_q16 = cc_window_q16(sk);
	round->base_us = cc_clamp(rounds->base_us, 1u, CC_RTT_MAX_US);
	round->rtt_us = cc_max((u32)cc_min(mean_us, (u64)CC_RTT_MAX_US), round->base_us);
	return true;
}

/* diff * rtt = w (rtt - base), Q16: < 2^63. Compared with packets * rtt to avoid a division. */
CC_INLINE u64 cc_queued_by_rtt_q16(const struct cc_round *round)
{
	return cc_mul(round->w_q16, round->rtt_us - round->base_us);
}

/* packets * rtt in Q16, to be compared with the above: packets < 2^16, so < 2^58. */
CC_INLINE u64 cc_packets_by_rtt_q16(u32 packets, const struct cc_round *round)
{
	return cc_mul((u64)packets << 16, round->rtt_us);
}

/* w base/rtt in Q16, the window that would queue nothing: < 2^63 before the division. */
CC_INLINE u64 cc_unqueued_q16(const struct cc_round *round)
{
	return cc_div(cc_mul(round->w_q16, round->base_us), round->rtt_us);
}

#endif
