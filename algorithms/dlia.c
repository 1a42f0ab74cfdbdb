// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * D-LIA: dynamic linked increases
 *
 * Idea: LIA's increase with a decrease that depends on how far apart losses are. A
 *   path whose losses come soon after one another has not won much window back and
 *   gives up little; one that has grown for long gives up nearly half.
 * Equations: increase as LIA (RFC 6356 eq. 1 and 2). Congestion event
 *   gamma = min(w_prev/w_r, 1), beta = 0.25 gamma + 0.75 beta_prev within
 *   [beta_min, beta_max], ssthresh_r = max(beta w_r, 1); then beta_prev = beta and
 *   w_prev = the reduced window. At first beta_prev = 0.5 and w_prev = 1.
 * States: slow start, congestion avoidance, both per subflow.
 * Parameters' source: algorithm 2 of the D-OLIA paper, which attributes it to D-LIA.
 * Deviations: a reconstruction: only the abstract of the D-LIA paper was available, so
 *   the rule is what the D-OLIA paper says about it. That paper's text takes w_prev
 *   before the reduction (gamma = "text"), with which a steady sawtooth has gamma = 1
 *   and ends at beta_max; its algorithm 2, the default, takes it after. A timeout counts
 *   as a loss. An undone reduction restores the window, not beta_prev and w_prev. In
 *   dialect mptcp-0.95 the increase is that of LIA's; the decrease is the same.
 * On one path: Reno, since a single subflow must not be more aggressive than TCP;
 *   w_prev is still recorded.
 * Good at: private paths with random loss, where it gets more than LIA
 *   (scenarios/random-loss-link.toml).
 * Bad at: fairness: at a bottleneck where losses come often it takes more than one TCP
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Lubna et al. 2020, "D-LIA"; Lubna et al. 2022, "D-OLIA", algorithm 2
 */
#include "dynamic.h"
#include "lia-dialect.h"

CC_PARAMS(dlia, DYNAMIC_PARAMS, CC_DIALECT);

struct dlia {
	struct dynamic last; /* factor and window of the last loss */
};
CC_STATE(dlia);
CC_COUPLED(dlia);
CC_FIELDS(dlia, DYNAMIC_FIELDS(dlia, last));

static void dlia_init(struct sock *sk)
{
	dynamic_init(&dlia_state(sk)->last);
}

static void dlia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	lia_any_cong_avoid(sk, acked, CC_IS_SPEC(dlia, sk));
}

static u32 dlia_ssthresh(struct sock *sk)
{
	struct dynamic_limits limits = DYNAMIC_LIMITS(sk, dlia);
	struct dynamic *last = &dlia_state(sk)->last;
	struct cc_set set;

	if (!cc_coupling_set(sk, &set))
		return dynamic_alone(sk, last, limits.gamma);
	return dynamic_decreased(sk, last, limits);
}

CC_REGISTER(dlia,
	    .init = dlia_init,
	    .ssthresh = dlia_ssthresh,
	    .cong_avoid = dlia_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
