// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reno: additive increase, multiplicative decrease (RFC 5681)
 *
 * Idea: probe for capacity by one packet per round trip and give half of the
 *   window back at each congestion event. On several subflows each runs alone
 *   ("uncoupled"), so n subflows through one bottleneck take n shares.
 * Equations: congestion avoidance w += 1/w per acknowledged packet; congestion
 *   event ssthresh = max(w/2, 2).
 * States: slow start (w < ssthresh), congestion avoidance.
 * Parameters' source: RFC 5681 sections 3.1 and 3.2.
 * Deviations: the decrease uses cwnd, not FlightSize, as Linux does (they agree
 *   when the flow is limited by its window).
 * On one path: itself.
 * Good at: filling two private paths, each as one TCP would
 *   (scenarios/dolia-scenario-1.toml).
 * Bad at: fairness: two subflows through one bottleneck take two shares of it
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Reference: RFC 5681, https://www.rfc-editor.org/rfc/rfc5681
 */
#include "cc.h"

CC_UNCOUPLED(reno);
CC_REGISTER(reno,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = cc_reno_cong_avoid,
	    .undo_cwnd = cc_reno_undo_cwnd);
