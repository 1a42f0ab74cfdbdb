// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * group-LIA: linked increases inside a bottleneck
 *
 * Idea: only subflows that share a bottleneck have to share one TCP's part of it. The
 *   RTTs of a subflow over half a minute (how skewed, how variable, how often they swing,
 *   how many packets are lost) show which subflows share a queue, and LIA couples these
 *   and no others. A subflow at a bottleneck of its own is a TCP.
 * Equations: congestion avoidance as LIA (RFC 6356 eq. 1 and 2) with sums and maximum
 *   over the group of r; congestion event ssthresh_r = max(w_r/2, 2). Every T = 350 ms,
 *   over the last M = 30 and N = 50 intervals: mean_delay = E_M(E_T); skew_est = sum of
 *   (samples below - above mean_delay)/samples; var_est = sum |sample - E_T(previous)|
 *   /samples; freq_est = crossings of mean_delay by more than 0.7 var_est/N; pkt_loss =
 *   lost/sent. At a bottleneck: skew_est < c_s, or < c_h and already at one, or pkt_loss
 *   > p_l. Those are grouped by the gaps between neighbours in sorted order, one key after
 *   the other: freq_est p_f, var_est p_mad (of the higher), skew_est p_s, pkt_loss p_d (of
 *   the higher, where it exceeds p_l).
 * States: slow start, congestion avoidance, both per subflow. In no group (not at a
 *   bottleneck, or fewer than 2M intervals seen), alone in one, or in one with others.
 * Parameters' source: RFC 8382 and the last draft before it, of which p_l is.
 * Deviations: delays are RTTs, since one-way delays would need the receiver's
 *   timestamps, so queues on the way back also count. A subflow has no room for rings of M
 *   and N intervals: sums forget one part in M (pkt_loss: in N) per interval instead of
 *   dropping the oldest, and mean_delay is an average of that weight; the crossings of N
 *   intervals are kept one by one. Each subflow has intervals of its own and groups
 *   itself when one ends, so two are coupled as soon as both say so. An interval without
 *   a sample does not count.
 * On one path: Reno.
 * Good at: private paths, each of which it uses as a TCP would
 *   (scenarios/dolia-scenario-1.toml).
 * Bad at: the first half minute: until the groups are known, subflows through one
 *   bottleneck take a share each (scenarios/shared-bottleneck-fairness.toml).
 * Reference: RFC 8382; Ferlin et al. 2016, doi:10.1109/INFOCOM.2016.7524537
 */
#include "lia.h"

#define GROUP_ONE 10000u	/* 1.0 of parameters and shared statistics: exact decimals */
CC_PARAMS(group_lia,
	  CC_PARAM(interval_ms, .initial = 350, .min = 10, .max = 10000,
		   .help = "ms of an interval (RFC 8382: T = 350)"),
	  CC_PARAM(c_s, .initial = 0.1, .max = 1, .scale = GROUP_ONE,
		   .help = "skewness below which a path is at a bottleneck (RFC 8382: 0.1)"),
	  CC_PARAM(c_h, .initial = 0.3, .max = 1, .scale = GROUP_ONE,
		   .help = "skewness below which it stays at one (RFC 8382: 0.3)"),
	  CC_PARAM(p_l, .initial = 0.1, .max = 1, .scale = GROUP_ONE,
		   .help = "part of packets lost above which a path is at a bottleneck (draft: 0.1)"),
	  CC_PARAM(p_f, .initial = 0.1, .max = 1, .scale = GROUP_ONE,
		   .help = "difference of frequencies that separates groups (RFC 8382: 0.1)"),
	  CC_PARAM(p_mad, .initial = 0.1, .max = 1, .scale = GROUP_ONE,
		   .help = "difference of variabilities, as a part of the higher one, that does (RFC 8382: 0.1)"),
	  CC_PARAM(p_s, .initial = 0.15, .max = 1, .scale = GROUP_ONE,
		   .help = "difference of skewnesses that does (RFC 8382: 0.15)"),
	  CC_PARAM(p_d, .initial = 0.1, .max = 1, .scale = GROUP_ONE,
		   .help = "difference of losses, as a part of the higher one, that does (RFC 8382: 0.1)"));

#define GROUP_M 30u		/* intervals of the means (RFC 8382: M) */
#define GROUP_N 50u		/* intervals of crossings and losses (RFC 8382: N) */
#define GROUP_P_V 7u		/* tenths of var_est that make a crossing significant (RFC 8382: p_v) */
#define GROUP_SETTLED (2 * GROUP_M) /* intervals before anything is decided */
#define GROUP_COUNT_MAX (1u << 18)  /* samples, packets per interval: sums fit their 32 bits */
#define GROUP_NONE 0xffu	/* in no group */

/* What siblings see: statistics in 10^-4, computed at the end of each interval. */
struct group_summary {
	u16 skew1;	   /* skew_est + 1 */
	u16 freq;	   /* freq_est */
	u16 loss;	   /* pkt_loss */
	u8 group;	   /* slot of the group's first member, or GROUP_NONE */
	u8 bottleneck;	   /* 1: at a bottleneck */
	u32 var_q4;	   /* var_est, us in Q4 */
	u32 mean_delay_q4; /* us in Q4; of no use to siblings, but it fills the word */
};

struct group_lia {
	struct group_summary summary;
	/* The current interval. */
	u64 rtt_sum_us;	      /* of the samples */
	u64 deviation_sum_us; /* |sample - mean_us| */
	u32 samples;	      /* RTT samples */
	u32 low;	      /* 2 for each sample below mean_delay, 1 for each that equals it */
	u32 start_us;	      /* when it began */
	u32 mean_us;	      /* of the interval before, 0: none */
	u32 lost;	      /* tp->lost when the interval began */
	u32 delivered;	      /* tp->delivered when it began */
	/* Sums over past intervals, Q8, which decay by one part in M or N per interval. */
	u32 low_sum;		 /* of low */
	u32 samples_sum;	 /* of samples */
	u32 lost_sum;		 /* packets lost */
	u32 sent_sum;		 /* packets lost or delivered */
	u64 crossings : GROUP_N; /* bit i: significant i intervals ago */
	u64 side : 2;		 /* of mean_delay at the last crossing */
	u64 intervals : 12;	 /* up to GROUP_SETTLED */
};
CC_STATE(group_lia);
CC_SHARED(group_lia, summary);
CC_FIELDS(group_lia,
	  CC_FIELD(group_lia, summary.skew1, "skew_plus_1", .den = GROUP_ONE, .unit = "1"),
	  CC_FIELD(group_lia, summary.freq, "freq", .den = GROUP_ONE, .unit = "1"),
	  CC_FIELD(group_lia, summary.loss, "loss", .den = GROUP_ONE, .unit = "1"),
	  CC_FIELD(group_lia, summary.group, "group", .unit = "slot"),
	  CC_FIELD(group_lia, summary.bottleneck, "pb", .unit = "1"),
	  CC_FIELD(group_lia, summary.var_q4, "var", .den = 16000000, .unit = "s"));

/* ---- increase ---- */

/*
 * Zeroes the windows of other groups, which then add nothing to a sum and are never the best
 * path. False when the acting subflow is in no group, or alone in one.
 */
static bool group_restrict(struct sock *sk, struct cc_set *set)
{
	u8 own = group_lia_state(sk)->summary.group;
	u32 members = 0;

	if (own == GROUP_NONE)
		return false;
	cc_for_each(k, 0, set) {
		u32 other = group_lia_shared(sk, set, k).group ^ own;
		/* 1 for 0, 0 for 1..255: a comparison would be a branch. */
		u32 member = 1 - ((other + 255) >> 8);

		set->w[k] = cc_hide_from_verifier(set->w[k] * member);
		members = cc_hide_from_verifier(members + member);
	}
	return members > 1;
}

static u64 group_lia_inc_q40(struct sock *sk)
{
	u64 reno_q40 = cc_reno_inc_q40(sk);
	struct cc_set set;

	if (!cc_coupling_set(sk, &set) || !group_restrict(sk, &set))
		return reno_q40;
	return cc_min(lia_step_q40(&set), reno_q40);
}

static void group_lia_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	acked = cc_acked_after_slow_start(sk, acked);
	if (acked)
		cc_grow_per_packet(sk, acked, (s64)group_lia_inc_q40(sk));
}

/* ---- statistics ---- */

/* A sum over about `memory` intervals: sum <= memory 2^27 < 2^32, for 30 intervals of 2^19. */
static u32 group_decay(u32 sum_q8, u32 memory, u32 count)
{
	return sum_q8 - sum_q8 / memory + (count << 8);
}

/* part/whole in 10^-4: part < 2^32. */
static u32 group_part(u32 part, u32 whole)
{
	return whole ? (u32)cc_div(cc_mul(part, GROUP_ONE), whole) : 0;
}

static void group_sample(struct group_lia *state, u32 rtt_us)
{
	u64 rtt_q4 = (u64)rtt_us << 4;

	if (state->samples >= GROUP_COUNT_MAX)
		return;
	state->samples++;
	state->rtt_sum_us += rtt_us;
	if (!state->mean_us)
		state->mean_us = rtt_us;
	state->deviation_sum_us += cc_max(rtt_us, state->mean_us) - cc_min(rtt_us, state->mean_us);
	if (!state->summary.mean_delay_q4)
		state->summary.mean_delay_q4 = (u32)rtt_q4;
	state->low +=
		rtt_q4 < state->summary.mean_delay_q4 ? 2 : rtt_q4 == state->summary.mean_delay_q4;
}

/* Whether the mean has crossed mean_delay by more than p_v var_est since the last crossing. */
static bool group_crosses(struct group_lia *state, u32 mean_us)
{
	u64 mean_q4 = (u64)mean_us << 4;
	u64 margin_q4 = cc_div(cc_mul(state->summary.var_q4, GROUP_P_V), 10);
	u32 side = mean_q4 > state->summary.mean_delay_q4 + margin_q4	? 1
		   : mean_q4 + margin_q4 < state->summary.mean_delay_q4 ? 2
									: 0;
	bool crosses = side && state->side && side != state->side;

	if (side)
		state->side = side;
	return crosses;
}

/* Samples below 2^18 of below 2^26 us. */
static void group_take_delays(struct group_lia *state)
{
	u32 mean_us = (u32)cc_div(state->rtt_sum_us, state->samples);
	u32 before = state->samples_sum - state->samples_sum / GROUP_M;
	u32 weight = cc_min((u32)state->intervals + 1, GROUP_M);
	bool crosses = group_crosses(state, mean_us);

	state->low_sum = group_decay(state->low_sum, GROUP_M, state->low);
	state->samples_sum = group_decay(state->samples_sum, GROUP_M, state->samples);
	state->summary.skew1 = group_part(state->low_sum, state->samples_sum);
	/* The past var_est is weighted with its samples: 2^30 times 2^32, and 2^44 in Q12. */
	state->summary.var_q4 = (u32)cc_div(cc_add(cc_mul(state->summary.var_q4, before),
						   cc_shl(state->deviation_sum_us, 12)),
					    state->samples_sum);
	state->crossings = state->crossings << 1 | crosses;
	state->summary.freq = 0;
	for (u32 i = 0; i < GROUP_N; i++)
		state->summary.freq += (state->crossings >> i & 1) * (GROUP_ONE / GROUP_N);
	state->summary.mean_delay_q4 =
		(u32)cc_div(cc_add(cc_mul(state->summary.mean_delay_q4, weight - 1),
				   (u64)mean_us << 4),
			    weight);
	state->mean_us = mean_us;
}

static void group_take_losses(const struct sock *sk, struct group_lia *state)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 lost = cc_min(tp->lost - state->lost, GROUP_COUNT_MAX / 2);
	u32 delivered = cc_min(tp->delivered - state->delivered, GROUP_COUNT_MAX / 2);

	state->lost_sum = group_decay(state->lost_sum, GROUP_N, lost);
	state->sent_sum = group_decay(state->sent_sum, GROUP_N, lost + delivered);
	state->summary.loss = group_part(state->lost_sum, state->sent_sum);
}

/* ---- groups ---- */

static void group_decide_bottleneck(struct sock *sk)
{
	struct group_summary *summary = &group_lia_state(sk)->summary;
	u32 skew1 = summary->skew1;
	bool was = summary->bottleneck;

	summary->bottleneck = skew1 < GROUP_ONE + group_lia_params(sk)->c_s ||
			      (was && skew1 < GROUP_ONE + group_lia_params(sk)->c_h) ||
			      summary->loss > group_lia_params(sk)->p_l;
}

/*
 * The code from here on has no branches, since the verifier would follow both ways of each,
 * for every member, pass and key: a condition is 0 or 1 in a hidden word.
 */

/* a < b, both below 2^63. */
static u64 group_less(u64 a, u64 b)
{
	return cc_hide_from_verifier((u32)((a - b) >> 63));
}

static u64 group_pick(u64 truth, u64 yes, u64 no)
{
	return no ^ ((yes ^ no) & (0 - truth));
}

/* What the members of the set have published. */
struct group_members {
	u32 freq[CC_MAX_SUBFLOWS];
	u32 var_q4[CC_MAX_SUBFLOWS];
	u32 skew1[CC_MAX_SUBFLOWS];
	u32 loss[CC_MAX_SUBFLOWS];
	u32 self CC_ALIGNED;
	u32 at_bottleneck CC_ALIGNED; /* bit k: member k is */
};

/* A key that separates members into groups, and when two neighbours stay together. */
struct group_rule {
	u32 *values; /* of the members */
	u64 gap;     /* closer than this */
	u64 part;    /* closer than this part of the higher one, 10^-4 */
	u64 exempt;  /* the higher one is not above this */
};

/* Statistics are below 2^32, so that the products are below 2^46. */
static u64 group_is_near(const struct group_rule *rule, u64 a, u64 b)
{
	u64 a_is_less = group_less(a, b);
	u64 high = group_pick(a_is_less, b, a);
	u64 distance = high - group_pick(a_is_less, a, b);

	return group_less(distance, 1) | (1 ^ group_less(rule->exempt, high)) |
	       group_less(distance, rule->gap) |
	       group_less(cc_mul(distance, GROUP_ONE), cc_mul(high, rule->part));
}

static u64 group_value(const struct group_rule *rule, u32 k)
{
	return rule->values[k & (CC_MAX_SUBFLOWS - 1)];
}

/* The members that a chain of near neighbours connects with the acting subflow. */
struct group_chain {
	struct group_rule rule;
	u64 low; /* values that the chain spans */
	u64 high;
	u32 members CC_ALIGNED;
	u32 chain CC_ALIGNED;
};

/* Adds one member if it is near what the chain spans: the nearest are its ends. */
static long group_extend(u32 step, void *context)
{
	struct group_chain *c = context;
	u32 k = step & (CC_MAX_SUBFLOWS - 1);
	u64 value = group_value(&c->rule, k);
	u64 below = group_less(value, c->low), above = group_less(c->high, value);
	u64 within = (1 ^ below) & (1 ^ above);
	u64 near = within | group_is_near(&c->rule, value, c->low) |
		   group_is_near(&c->rule, value, c->high);
	u64 joins = near & (c->members >> k & 1);

	c->chain |= (u32)joins << k;
	c->low = group_pick(joins & below, value, c->low);
	c->high = group_pick(joins & above, value, c->high);
	return 0;
}

/* Each pass over the members except the last adds one, so as many passes are enough. */
static u32 group_split(const struct group_members *set, u32 members, struct group_rule rule)
{
	struct group_chain c = { .rule = rule, .members = members };

	c.low = group_value(&rule, cc_index(set->self));
	c.high = c.low;
	cc_repeat(CC_MAX_SUBFLOWS * CC_MAX_SUBFLOWS, group_extend, &c);
	return c.chain;
}

/* The indices are hidden, so that the verifier need not follow the arrays' members one by one. */
static void group_read(const struct sock *sk, const struct cc_set *set, struct group_members *all)
{
	*all = (struct group_members){ .self = cc_index(set->self) };
	cc_for_each(k, 0, set) {
		struct group_summary summary = group_lia_shared(sk, set, k);
		u32 at = cc_index(k);

		all->freq[at] = summary.freq;
		all->var_q4[at] = summary.var_q4;
		all->skew1[at] = summary.skew1;
		all->loss[at] = summary.loss;
		all->at_bottleneck =
			cc_hide_from_verifier(all->at_bottleneck | (summary.bottleneck & 1u) << k);
	}
}

/* The slot of the first member of the acting subflow's group. */
static u32 group_find(const struct sock *sk, const struct cc_set *set)
{
	struct group_members all;
	u32 members, first = GROUP_NONE;

	group_read(sk, set, &all);
	members = group_split(&all, all.at_bottleneck,
			      (struct group_rule){ .values = all.freq,
						   .gap = group_lia_params(sk)->p_f });
	members = group_split(&all, members,
			      (struct group_rule){ .values = all.var_q4,
						   .part = group_lia_params(sk)->p_mad });
	members = group_split(&all, members,
			      (struct group_rule){ .values = all.skew1,
						   .gap = group_lia_params(sk)->p_s });
	members = group_split(&all, members,
			      (struct group_rule){ .values = all.loss,
						   .part = group_lia_params(sk)->p_d,
						   .exempt = group_lia_params(sk)->p_l });
	cc_for_each(k, 0, set)
		first = cc_hide_from_verifier(members >> k & 1 ? cc_min(first, set->slot[k])
							       : first);
	return first;
}

static void group_decide(struct sock *sk)
{
	struct group_lia *state = group_lia_state(sk);
	struct cc_set set;

	state->summary.group = GROUP_NONE;
	if (state->intervals < GROUP_SETTLED)
		return;
	group_decide_bottleneck(sk);
	if (state->summary.bottleneck)
		state->summary.group =
			cc_coupling_set(sk, &set) ? group_find(sk, &set) : cc_own_slot(sk);
}

/* ---- intervals ---- */

static void group_begin_interval(const struct sock *sk, struct group_lia *state)
{
	state->start_us = (u32)cc_now_us(sk);
	state->rtt_sum_us = 0;
	state->deviation_sum_us = 0;
	state->samples = 0;
	state->low = 0;
	state->lost = tcp_sk(sk)->lost;
	state->delivered = tcp_sk(sk)->delivered;
}

static void group_end_interval(struct sock *sk)
{
	struct group_lia *state = group_lia_state(sk);

	if (state->samples) {
		group_take_delays(state);
		group_take_losses(sk, state);
		if (state->intervals < GROUP_SETTLED)
			state->intervals++;
	}
	group_decide(sk);
	group_begin_interval(sk, state);
}

static void group_lia_init(struct sock *sk)
{
	struct group_lia *state = group_lia_state(sk);

	state->summary.group = GROUP_NONE;
	group_begin_interval(sk, state);
}

static void group_lia_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct group_lia *state = group_lia_state(sk);
	u32 elapsed_us = (u32)cc_now_us(sk) - state->start_us;

	if (elapsed_us >= group_lia_params(sk)->interval_ms * 1000)
		group_end_interval(sk);
	if (sample->rtt_us >= 0)
		group_sample(state, cc_clamp((u32)sample->rtt_us, 1u, CC_RTT_MAX_US));
}

CC_REGISTER(group_lia,
	    .init = group_lia_init,
	    .ssthresh = cc_reno_ssthresh,
	    .cong_avoid = group_lia_cong_avoid,
	    .pkts_acked = group_lia_pkts_acked,
	    .undo_cwnd = cc_reno_undo_cwnd);
