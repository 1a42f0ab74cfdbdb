// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * COUPLED: fully coupled increase and decrease
 *
 * Idea: the total window behaves exactly as one Reno window; each congestion event
 *   takes its cut from the subflow that saw it. All traffic moves to the least
 *   congested paths, and with equally congested ones it flaps between them.
 * Equations: congestion avoidance w_r += 1/W per acknowledged packet, W = sum w_k;
 *   congestion event ssthresh_r = max(w_r - W/2, 1).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: none to choose.
 * Deviations: the papers print no floor; the window stays at 1 packet so that the
 *   path is still probed.
 * On one path: Reno.
 * Good at: taking one TCP's share of a bottleneck, however many subflows cross it
 *   (scenarios/fidelity/shared-bottleneck.toml).
 * Bad at: filling two private, equal paths: its losses push it from one to the other
 *   (scenarios/disjoint-paths-aggregate.toml).
 * Reference: Kelly and Voice 2005, doi:10.1145/1064413.1064415; Wischik et al., NSDI 2011
 */
#include "cc.h"

#define COUPLED_FLOOR 1u	/* packets, with several subflows */

static u64 coupled_inc_q40(struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return cc_reno_inc_q40(sk);
	return cc_div(CC_ONE_Q40, cc_total_window(&set));
}

/* w - W/2, without going below the floor: most subflows have less than half of W. */
static u32 coupled_decreased(u32 w, u64 total)
{
	u64 cut = total / 2;

	return w > cut + COUPLED_FLOOR ? (u32)(w - cut) : COUPLED_FLOOR;
}

static void coupled_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)coupled_inc_q40(sk));
}

static u32 coupled_ssthresh(struct sock *sk)
{
	struct cc_set set;

	if (!cc_coupling_set_for_loss(sk, &set))
		return cc_halved(sk, CC_RENO_FLOOR);
	return coupled_decreased(set.w[set.self], cc_total_window(&set));
}

CC_COUPLED(coupled);
CC_REGISTER(coupled,
	    .ssthresh = coupled_ssthresh,
	    .cong_avoid = coupled_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
