// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * BBR: bottleneck bandwidth and round-trip propagation time (version 1)
 *
 * Idea: measure what the path can carry and send that, instead of filling the queue
 *   until packets are lost. BtlBw is the largest recent delivery rate, RTprop the smallest
 *   round-trip time; pacing at BtlBw with about one BDP in flight keeps the link busy and
 *   the queue short. The two cannot be measured at once, so states alternate.
 * Equations: BtlBw = max of delivered/interval over 10 rounds; RTprop = min RTT over 10 s;
 *   pacing rate = g BtlBw; window = G BtlBw RTprop + 3 bursts, at least 4. STARTUP: g = G =
 *   2/ln 2. DRAIN: g = ln 2/2. PROBE_BW: G = 2, g = 5/4, 3/4, 1, 1, 1, 1, 1, 1 in turn, a phase
 *   per RTprop. PROBE_RTT: G = 1, window 4. A loss only limits the first round of recovery
 *   to what is delivered; after a timeout the window grows from one packet to the same
 *   window again.
 * States: STARTUP until three rounds brought less than 25 % more bandwidth, DRAIN until one
 *   BDP is in flight, PROBE_BW from then on; PROBE_RTT for 200 ms and a round when RTprop is
 *   10 s old.
 * Parameters' source: draft-cardwell-iccrg-bbr-congestion-control-00; policers: Linux.
 * Deviations: an RTT equal to RTprop does not renew it (Linux since 2021; the draft's
 *   "less or equal" would never probe on a path whose queue BBR keeps empty). Samples taken
 *   in PROBE_RTT are recognised by a mark of the algorithm's own, since not every Linux
 *   lets eBPF mark the socket. The first phase of PROBE_BW comes from a hash of clock, slot and
 *   sequence number instead of a random number, so that every build takes the same one.
 *   Linux' allowance for aggregated ACKs and its look at the departure times of packets
 *   that wait in a qdisc are left out: both are newer than the publication.
 * On one path: itself (it knows nothing of other subflows).
 * Good at: paths that lose packets at random, which it fills all the same
 *   (scenarios/random-loss-link.toml).
 * Bad at: fairness: it leaves a Reno flow at the same bottleneck next to nothing
 *   (scenarios/shared-bottleneck-fairness.toml).
 * Reference: Cardwell et al. 2016, doi:10.1145/3009824; draft-cardwell-iccrg-bbr-congestion-control-00
 */
#include "bbr.h"

CC_FIELDS(bbr,
	  CC_FIELD(bbr, bw.max[0], "bw", .num = BBR_USEC_PER_SEC, .den = BW_UNIT,
		   .unit = "packets/s"),
	  CC_FIELD(bbr, bw.latest, "delivery", .num = BBR_USEC_PER_SEC, .den = BW_UNIT,
		   .unit = "packets/s"),
	  CC_FIELD(bbr, min_rtt_us, "min_rtt", .den = BBR_USEC_PER_SEC, .unit = "s"),
	  CC_FIELD(bbr, mode, "mode", .unit = "1"),
	  CC_FIELD(bbr, cycle_idx, "cycle_idx", .unit = "1"),
	  CC_FIELD(bbr, full_bw_cnt, "full_bw_cnt", .unit = "1"));

static void bbr_init(struct sock *sk)
{
	bbr_init_sock(sk);
}

static void bbr_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	bbr_update_model(sk, rs);
	bbr_control(sk, rs, bbr_bw(bbr_state(sk)));
}

static u32 bbr_ssthresh(struct sock *sk)
{
	return bbr_save_window(sk);
}

static u32 bbr_undo_cwnd(struct sock *sk)
{
	return bbr_undo(sk);
}

static void bbr_set_state(struct sock *sk, u8 new_state)
{
	bbr_on_state(sk, new_state);
}

static void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		bbr_on_tx_start(sk, bbr_bw(bbr_state(sk)));
}

CC_UNCOUPLED(bbr);
CC_REGISTER(bbr,
	    .init = bbr_init,
	    .ssthresh = bbr_ssthresh,
	    .cong_control = bbr_cong_control,
	    .set_state = bbr_set_state,
	    .cwnd_event = bbr_cwnd_event,
	    .undo_cwnd = bbr_undo_cwnd);
