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
 *   growing at 256 packets each; a packet is due at 1023 of them, the rest is
 *   dropped; an ACK in slow start counts there only; l rotates only if something was
 *   acknowledged since; floor 2. Its metric is always `rate`, with l in bytes and tau in
 *   eighths of us, and l tau^2 wraps at 2^64: from 20,000 packets on at 100 ms, from 200
 *   on at 1 s. So do windows above 10,000 packets. Paths that are best or not are then
 *   confused. What a recovery acknowledges counts in l only after it.
 * On one path: Reno.
 * Good at: taking no more than one TCP at a shared bottleneck
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Bad at: the worse of two private, lossy paths, of which it uses less than LIA and
 *   BALIA (scenarios/dolia-scenario-1.toml).
 * Reference: Khalili et al. 2013, doi:10.1109/TNET.2013.2274462; draft-khalili-mptcp-congestion-control-05
 */
#include "olia-dialect.h"

CC_PARAMS(olia,
	  CC_PARAM(metric, .initial = OLIA_RATE, .max = 1, .names = "rate|draft",
		   .help = "quality of a path: l/rtt^2, or l^2/rtt as the draft prints"),
	  CC_DIALECT);

struct olia {
	struct olia_interval interval;
	struct olia_dialect dialect;
};
CC_STATE(olia);
CC_SHARED(olia, interval);
CC_FIELDS(olia, CC_FIELD(olia, interval.l1, "l1", .unit = "packets"),
	  CC_FIELD(olia, interval.l2, "l2", .unit = "packets"));

static void olia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	olia_any_cong_avoid(sk, acked, olia_params(sk)->metric, CC_IS_SPEC(olia, sk),
			    &olia_state(sk)->interval, &olia_state(sk)->dialect);
}

static void olia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct olia *state = olia_state(sk);

	olia_any_count(&state->interval, &state->dialect, sample->pkts_acked, CC_IS_SPEC(olia, sk));
}

static u32 olia_ssthresh(struct sock *sk)
{
	bool spec = CC_IS_SPEC(olia, sk);

	olia_any_count_loss(&olia_state(sk)->interval, spec);
	return cc_coupled_halved(sk, spec ? OLIA_FLOOR : CC_RENO_FLOOR);
}

CC_REGISTER(olia,
	    .ssthresh = olia_ssthresh,
	    .cong_avoid = olia_cong_avoid,
	    .pkts_acked = olia_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
