// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * OLIA: opportunistic linked increases
 *
 * Idea: an optimal (Kelly-Voice) increase, plus a term that moves window from the
 *   paths with the largest windows to the best paths that do not have one yet. The
 *   quality of a path is the number of packets between its losses.
 * Equations: per acknowledged packet w_r += (w_r/tau_r^2)/(sum w_k/tau_k)^2 + alpha_r/w_r.
 *   l_k = packets acknowledged between the last two losses or since the last one,
 *   whichever is more; B = argmax l_k/tau_k^2; M = argmax w_k; C = B without M.
 *   alpha_r = 1/(n |C|) for r in C; -1/(n |M|) for r in M when C is not empty; else 0.
 *   Congestion event: ssthresh_r = max(w_r/2, 1).
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: draft-khalili-mptcp-congestion-control-05, section 3.
 * Deviations: the draft prints the quality as l^2/tau but derives it from the rate
 *   sqrt(2l)/tau, whose order is that of l/tau^2: metric `rate` (default, and the
 *   kernel's) or `draft`. "Set ssthresh to 1" is read as the minimum of ssthresh.
 *   Windows are compared in whole packets, so that ties exist. Dialect mptcp-0.95
 *   rounds the increase of an ACK down to 1/1024 packet, so that two equal paths stop
 *   growing above 256 packets each; a packet is due at 1023 of them, the rest is
 *   dropped; l rotates only if something was acknowledged since; floor 2. That
 *   kernel's overflows (from 16,000 packets on) are not imitated.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Bad at: the worse of two private, lossy paths, of which it uses less than LIA and
 *   BALIA (scenarios/dolia-scenario-1.toml).
 * Reference: Khalili et al. 2013, doi:10.1109/TNET.2013.2274462; draft-khalili-mptcp-congestion-control-05
 */
#include "dialect.h"
#include "olia.h"

CC_PARAMS(olia,
	  CC_PARAM(metric, .initial = OLIA_RATE, .max = 1, .names = "rate|draft",
		   .help = "quality of a path: l/rtt^2, or l^2/rtt as the draft prints"),
	  CC_DIALECT);

struct olia {
	struct olia_interval interval;
	s32 credit_q10; /* dialect: growth that is not a packet yet */
};
CC_STATE(olia);
CC_SHARED(olia, interval);
CC_FIELDS(olia, CC_FIELD(olia, interval.l1, "l1", .unit = "packets"),
	  CC_FIELD(olia, interval.l2, "l2", .unit = "packets"));

/* ---- dialect mptcp-0.95 ---- */

#define OLIA_PACKET_Q10 1023	/* growth that makes a packet, in 1/1024 */
#define OLIA_ROUNDING_Q40 2	/* what two truncated divisions may lack of a whole 1/1024 */

/* |inc| <= 1.5 packets and acked <= 2^16, so the sum is < 2^28. */
static void olia_grow_q10(struct sock *sk, u32 acked, s64 inc_q40)
{
	struct olia *state = olia_state(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u64 size_q40 = (u64)(inc_q40 < 0 ? -inc_q40 : inc_q40) + OLIA_ROUNDING_Q40;
	s32 step_q10 = (s32)(acked * (u32)(size_q40 >> 30));

	state->credit_q10 += inc_q40 < 0 ? -step_q10 : step_q10;
	if (state->credit_q10 >= OLIA_PACKET_Q10)
		cc_set_window(sk, cwnd + 1, 0);
	else if (state->credit_q10 <= -OLIA_PACKET_Q10)
		cc_set_window(sk, cwnd - 1, 0);
	else
		return;
	state->credit_q10 = 0;
}

/* ---- hooks ---- */

static void olia_grow(struct sock *sk, u32 acked)
{
	struct cc_set set;
	s64 inc_q40;

	if (!cc_coupling_set(sk, &set)) {
		cc_grow_per_packet(sk, acked, (s64)cc_reno_inc_q40(sk));
		return;
	}
	inc_q40 = olia_coupled_inc_q40(sk, &set, olia_params(sk)->metric);
	if (CC_IS_SPEC(olia, sk))
		cc_grow_per_packet(sk, acked, inc_q40);
	else
		olia_grow_q10(sk, acked, inc_q40);
}

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		olia_grow(sk, acked);
}

static void olia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	olia_count(&olia_state(sk)->interval, sample->pkts_acked);
}

static u32 olia_ssthresh(struct sock *sk)
{
	struct olia_interval *interval = &olia_state(sk)->interval;
	bool spec = CC_IS_SPEC(olia, sk);

	if (spec || interval->l2)
		olia_count_loss(interval);
	return cc_coupled_halved(sk, spec ? OLIA_FLOOR : CC_RENO_FLOOR);
}

CC_REGISTER(olia,
	    .ssthresh = olia_ssthresh,
	    .cong_avoid = olia_cong_avoid,
	    .pkts_acked = olia_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
