// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns an algorithm file, which the build names in CC_ALGORITHM, into a congestion
 * control of the kernel: one program per operation of tcp_congestion_ops, which calls
 * the file's hook; a slot for each subflow in the table of its connection; publishing
 * what siblings see.
 *
 * Sockets without MPTCP have no table, so there a coupled algorithm does what its file
 * says for one path. No list of the kernel is walked.
 */
#include CC_ALGORITHM
#pragma clang attribute pop

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TCP_CONG_NON_RESTRICTED 1
#define PROBES 32			/* entries tried for a connection */
#define IDLE_US 1000000ull		/* a subflow is idle after this time */
#define IDLE_RTTS 4			/* plus this many smoothed RTTs without a hook */
#define IDLE_CHECK_US 250000ull		/* time between two checks for idle siblings */

/* Sockets that run uncoupled: the table is full, or their connection has CC_MAX_SUBFLOWS others. */
u64 cc_unplaced;

/* ---- the table: a place for every subflow ---- */

/* The connection's identity: its kernel address. 0 on plain TCP. */
static __always_inline u64 connection_key(const struct sock *sk)
{
	struct mptcp_subflow_context *subflow;

	if (!bpf_core_field_exists(struct tcp_sock, is_mptcp) || !tcp_sk(sk)->is_mptcp)
		return 0;
	subflow = cc_icsk(sk)->icsk_ulp_data;
	return subflow ? (u64)BPF_CORE_READ(subflow, conn) : 0;
}

static __always_inline u32 lowest_free(u32 used)
{
	u32 i, slot = CC_MAX_SUBFLOWS;

	for (i = CC_MAX_SUBFLOWS; i > 0; i--)
		slot = used & 1u << (i - 1) ? slot : i - 1;
	return slot;
}

#define NOT_ITS_ENTRY CC_MAX_SUBFLOWS
#define ITS_ENTRY_IS_FULL (CC_MAX_SUBFLOWS + 1)

/* Takes a slot if the entry is the connection's, or if it is free and free_ones says so. */
static __always_inline u32 take_slot(struct cc_entry *entry, u64 key, bool free_ones)
{
	u32 slot = NOT_ITS_ENTRY;

	bpf_spin_lock(&entry->lock);
	if (entry->key == key || (free_ones && !entry->key)) {
		slot = lowest_free(entry->used);
		if (slot >= CC_MAX_SUBFLOWS) {
			slot = ITS_ENTRY_IS_FULL;
		} else {
			if (!entry->key)
				entry->conn.n_slots = 0;
			entry->key = key;
			entry->used |= 1u << slot;
			if (entry->conn.n_slots <= slot)
				entry->conn.n_slots = slot + 1;
		}
	}
	bpf_spin_unlock(&entry->lock);
	return slot;
}

static __always_inline void clear_slot(struct cc_slot *slot, bool usable)
{
	u32 i;

	/* Without an RTT it is in no coupling set before its first ACK. */
	slot->window_rtt = 0;
	slot->ssthresh = 0;
	slot->min_rtt_us = 0;
	slot->state = 0;
	for (i = 0; i < CC_SHARED_WORDS; i++)
		slot->words[i] = 0;
	slot->usable = usable;
}

struct search {
	u64 key;
	u32 hash;
	u32 place;
	bool free_ones;
	bool ended;
};

static long try_entry(u32 probe, struct search *search)
{
	u32 index = (search->hash + probe) & cc_config.connection_mask & CC_INDEX_MAX;
	struct cc_entry *entry = bpf_map_lookup_elem(&cc_entries, &index);
	u32 slot;

	if (!entry)
		return 1;
	slot = take_slot(entry, search->key, search->free_ones);
	if (slot == NOT_ITS_ENTRY)
		return 0;
	/* Also if it is full: in a second entry, a subflow would not be coupled with those in the first one. */
	search->ended = true;
	if (slot >= CC_MAX_SUBFLOWS)
		return 1;
	clear_slot(&entry->conn.slot[slot & (CC_MAX_SUBFLOWS - 1)], true);
	search->place = CC_PLACED | index << 3 | slot;
	return 1;
}

/* A place in the connection's entry, or in a free one if it has none. 0: no room. */
static __always_inline u32 find_place(u64 key)
{
	struct search search = { .key = key, .hash = (key * 0x9e3779b97f4a7c15ull) >> 32 };

	bpf_loop(PROBES, try_entry, &search, 0);
	if (!search.ended) {
		search.free_ones = true;
		bpf_loop(PROBES, try_entry, &search, 0);
	}
	return search.place;
}

static __always_inline void leave_place(struct sock *sk)
{
	struct cc_entry *entry = cc_entry(sk);
	u32 slot = cc_own_slot(sk);

	if (!entry)
		return;
	clear_slot(&entry->conn.slot[slot], false);
	bpf_spin_lock(&entry->lock);
	entry->used &= ~(1u << slot);
	if (!entry->used)
		entry->key = 0;
	bpf_spin_unlock(&entry->lock);
	cc_priv(sk)->place = 0;
}

/* ---- what siblings see ---- */

/*
 * The kernel calls no hook of a subflow that carries nothing (a backup, a path that is
 * down), so its siblings remove it from the set. It returns with its next ACK.
 */
static __always_inline void exclude_idle_siblings(struct cc_entry *entry, u32 own, u64 now_us)
{
	u32 i;

	for (i = 0; i < CC_MAX_SUBFLOWS; i++) {
		struct cc_slot *slot = &entry->conn.slot[i];
		u64 srtt_us = (u32)slot->window_rtt;
		s64 idle_us = (s64)(now_us - entry->last_us[i]);

		if (i != own && idle_us > (s64)(IDLE_US + IDLE_RTTS * srtt_us))
			slot->usable = false;
	}
}

static __always_inline void publish(struct sock *sk, u32 state)
{
	struct cc_entry *entry = cc_is_coupled ? cc_entry(sk) : NULL;
	u32 i, own = cc_own_slot(sk);
	u64 now_us = cc_now_us(sk);
	struct cc_slot *slot;

	if (!entry)
		return;
	slot = &entry->conn.slot[own];
	slot->window_rtt = (u64)cc_effective_window_in(sk, state) << 32 | cc_srtt_us(sk);
	slot->ssthresh = tcp_sk(sk)->snd_ssthresh;
	slot->min_rtt_us = cc_min_rtt_us(sk);
	slot->state = state;
	slot->usable = true;
	for (i = 0; i < cc_shared_words; i++)
		slot->words[i] = cc_priv(sk)->state[i];
	entry->last_us[own] = now_us;
	if (now_us - entry->checked_us[own] > IDLE_CHECK_US) {
		entry->checked_us[own] = now_us;
		exclude_idle_siblings(entry, own, now_us);
	}
}

/* ---- record mode ---- */

#ifdef CC_RECORD
/* Calls that the ring buffer had no room for. */
u64 cc_unrecorded;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 << 20);
} cc_records SEC(".maps");

static __always_inline void copy_tcp(const struct sock *sk, struct cc_tcp_copy *to)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	to->tcp_mstamp = tp->tcp_mstamp;
	to->lsndtime_us = cc_read_last_send_us(sk);
	to->sk_pacing_rate = sk->sk_pacing_rate;
	to->snd_cwnd = tp->snd_cwnd;
	to->snd_ssthresh = tp->snd_ssthresh;
	to->snd_cwnd_cnt = tp->snd_cwnd_cnt;
	to->snd_cwnd_clamp = tp->snd_cwnd_clamp;
	to->prior_cwnd = tp->prior_cwnd;
	to->prior_ssthresh = tp->prior_ssthresh;
	to->srtt_us = tp->srtt_us;
	to->mdev_us = tp->mdev_us;
	to->rttvar_us = tp->rttvar_us;
	to->min_rtt_us = cc_min_rtt_us(sk);
	to->packets_out = tp->packets_out;
	to->sacked_out = tp->sacked_out;
	to->lost_out = tp->lost_out;
	to->retrans_out = tp->retrans_out;
	to->max_packets_out = tp->max_packets_out;
	to->snd_una = tp->snd_una;
	to->snd_nxt = tp->snd_nxt;
	to->mss_cache = tp->mss_cache;
	to->delivered = tp->delivered;
	to->lost = tp->lost;
	to->app_limited = tp->app_limited;
	to->sk_pacing_status = sk->sk_pacing_status;
	to->is_cwnd_limited = cc_is_cwnd_limited_bit(sk);
	to->ca_state = cc_ca_state(sk);
}

static __always_inline void copy_rate(const struct rate_sample *rs, struct cc_rate_copy *to)
{
	to->prior_mstamp = rs->prior_mstamp;
	to->prior_delivered = rs->prior_delivered;
	to->delivered = rs->delivered;
	to->interval_us = rs->interval_us;
	to->snd_interval_us = rs->snd_interval_us;
	to->rcv_interval_us = rs->rcv_interval_us;
	to->rtt_us = rs->rtt_us;
	to->losses = rs->losses;
	to->acked_sacked = rs->acked_sacked;
	to->prior_in_flight = rs->prior_in_flight;
	to->is_app_limited = rs->is_app_limited;
	to->is_retrans = rs->is_retrans;
	to->is_ack_delayed = rs->is_ack_delayed;
}

static __always_inline void copy_state(const struct sock *sk, u64 *state)
{
	u32 i;

	for (i = 0; i < CC_STATE_WORDS; i++)
		state[i] = cc_priv(sk)->state[i];
}

static __always_inline void record_begin(struct sock *sk, u32 op, u64 a, u64 b, u64 c)
{
	struct cc_entry *entry = cc_entry(sk);
	struct cc_record *call = cc_call(sk);

	if (!entry || !call)
		return;
	call->key = entry->key;
	call->op = op;
	call->slot = cc_own_slot(sk);
	call->before.conn = entry->conn;
	copy_tcp(sk, &call->before.tp);
	copy_state(sk, call->before.state);
	call->before.credit_q40 = cc_priv(sk)->credit_q40;
	call->before.credit_cwnd = cc_priv(sk)->credit_cwnd;
	call->before.args[0] = a;
	call->before.args[1] = b;
	call->before.args[2] = c;
}

static __always_inline void record_rate(struct sock *sk, const struct rate_sample *rs)
{
	struct cc_record *call = cc_call(sk);

	if (call)
		copy_rate(rs, &call->before.rate);
}

static __always_inline void record_end(struct sock *sk, u64 result)
{
	struct cc_entry *entry = cc_entry(sk);
	struct cc_record *call = cc_call(sk);

	if (!entry || !call)
		return;
	call->after.result = result;
	call->after.sk_pacing_rate = sk->sk_pacing_rate;
	copy_state(sk, call->after.state);
	call->after.credit_q40 = cc_priv(sk)->credit_q40;
	call->after.credit_cwnd = cc_priv(sk)->credit_cwnd;
	call->after.snd_cwnd = tcp_sk(sk)->snd_cwnd;
	call->after.snd_ssthresh = tcp_sk(sk)->snd_ssthresh;
	call->after.snd_cwnd_cnt = tcp_sk(sk)->snd_cwnd_cnt;
	call->after.sk_pacing_status = sk->sk_pacing_status;
	call->after.slot = entry->conn.slot[cc_own_slot(sk)];
	if (bpf_ringbuf_output(&cc_records, call, sizeof(*call), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&cc_unrecorded, 1);
}

#define RECORD_BEGIN(sk, op, a, b, c) record_begin(sk, op, a, b, c)
#define RECORD_RATE(sk, rs) record_rate(sk, rs)
#define RECORD_END(sk, result) record_end(sk, result)
/* Recorded calls read the copy in the table, so uncoupled algorithms also have one. */
#define HAS_TABLE true
#else
#define RECORD_BEGIN(sk, op, a, b, c) ((void)0)
#define RECORD_RATE(sk, rs) ((void)0)
#define RECORD_END(sk, result) ((void)0)
#define HAS_TABLE cc_is_coupled
#endif

/* ---- the operations ---- */

static __always_inline void take_place(struct sock *sk)
{
	u64 key = HAS_TABLE ? connection_key(sk) : 0;
	struct cc_priv *priv = cc_priv(sk);
	struct cc_entry *entry;

	priv->place = key ? find_place(key) : 0;
	if (key && !priv->place)
		__sync_fetch_and_add(&cc_unplaced, 1);
	entry = cc_entry(sk);
	if (entry)
		entry->last_us[cc_own_slot(sk)] = cc_now_us(sk);
}

SEC("struct_ops")
void cc_init(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct cc_priv *priv = cc_priv(sk);
	u32 i;

	for (i = 0; i < CC_STATE_WORDS; i++)
		priv->state[i] = 0;
	cc_set_credit(sk, 0, 0);
	take_place(sk);
	if (cc_config.pacing)
		sk->sk_pacing_status = CC_PACING_NEEDED;
	RECORD_BEGIN(sk, CC_INIT, 0, 0, 0);
	if (cc_hooks.init)
		cc_hooks.init(sk);
	RECORD_END(sk, 0);
}

SEC("struct_ops")
void cc_release(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	RECORD_BEGIN(sk, CC_RELEASE, 0, 0, 0);
	if (cc_hooks.release)
		cc_hooks.release(sk);
	RECORD_END(sk, 0);
	leave_place(sk);
}

SEC("struct_ops")
u32 cc_ssthresh(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 ssthresh;

	RECORD_BEGIN(sk, CC_SSTHRESH, 0, 0, 0);
	ssthresh = cc_hooks.ssthresh(sk);
	publish(sk, cc_ca_state(sk));
	RECORD_END(sk, ssthresh);
	return ssthresh;
}

SEC("struct_ops")
void cc_cong_avoid(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 ack = ctx[1], acked = ctx[2];

	if (!cc_hooks.cong_avoid)
		return;
	RECORD_BEGIN(sk, CC_CONG_AVOID, ack, acked, 0);
	cc_hooks.cong_avoid(sk, ack, acked);
	publish(sk, cc_ca_state(sk));
	RECORD_END(sk, 0);
}

static __always_inline void control(struct sock *sk, u32 ack, int flag,
				    const struct rate_sample *rs)
{
	if (!cc_hooks.cong_control)
		return;
	RECORD_BEGIN(sk, CC_CONG_CONTROL, ack, (u64)(s64)flag, 0);
	RECORD_RATE(sk, rs);
	cc_hooks.cong_control(sk, ack, flag, rs);
	publish(sk, cc_ca_state(sk));
	RECORD_END(sk, 0);
}

SEC("struct_ops")
void cc_control(unsigned long long *ctx)
{
	control((struct sock *)ctx[0], ctx[1], ctx[2], (const struct rate_sample *)ctx[3]);
}

/* Kernels before 6.10 pass the socket and the sample only. */
SEC("struct_ops")
void cc_control_old(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];

	control(sk, tcp_sk(sk)->snd_una, 0, (const struct rate_sample *)ctx[1]);
}

SEC("struct_ops")
void cc_set_state(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u8 state = ctx[1];

	RECORD_BEGIN(sk, CC_SET_STATE, state, 0, 0);
	if (cc_hooks.set_state)
		cc_hooks.set_state(sk, state);
	publish(sk, state);
	RECORD_END(sk, 0);
}

static __always_inline void cwnd_event(struct sock *sk, u32 event)
{
	if (!cc_hooks.cwnd_event)
		return;
	RECORD_BEGIN(sk, CC_CWND_EVENT, event, 0, 0);
	cc_hooks.cwnd_event(sk, event);
	publish(sk, cc_ca_state(sk));
	RECORD_END(sk, 0);
}

SEC("struct_ops")
void cc_cwnd_event(unsigned long long *ctx)
{
	cwnd_event((struct sock *)ctx[0], ctx[1]);
}

/* Newer kernels have an operation of its own for the most frequent event. */
SEC("struct_ops")
void cc_tx_start(unsigned long long *ctx)
{
	cwnd_event((struct sock *)ctx[0], CA_EVENT_TX_START);
}

SEC("struct_ops")
void cc_pkts_acked(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	const struct ack_sample *sample = (const struct ack_sample *)ctx[1];

	if (!cc_hooks.pkts_acked)
		return;
	RECORD_BEGIN(sk, CC_PKTS_ACKED, sample->pkts_acked, (u64)(s64)sample->rtt_us,
		     sample->in_flight);
	cc_hooks.pkts_acked(sk, sample);
	publish(sk, cc_ca_state(sk));
	RECORD_END(sk, 0);
}

SEC("struct_ops")
u32 cc_undo_cwnd(unsigned long long *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	u32 cwnd;

	RECORD_BEGIN(sk, CC_UNDO_CWND, 0, 0, 0);
	cwnd = cc_hooks.undo_cwnd(sk);
	publish(sk, cc_ca_state(sk));
	RECORD_END(sk, cwnd);
	return cwnd;
}

/*
 * The members are found in the kernel's structure by name. The loader clears what
 * the algorithm or the kernel does not have, moves cong_control_old's program to
 * cong_control where that is the kernel's way, and sets the name.
 */
struct tcp_congestion_ops {
	void (*init)(unsigned long long *ctx);
	void (*release)(unsigned long long *ctx);
	u32 (*ssthresh)(unsigned long long *ctx);
	void (*cong_avoid)(unsigned long long *ctx);
	void (*set_state)(unsigned long long *ctx);
	void (*cwnd_event)(unsigned long long *ctx);
	void (*cwnd_event_tx_start)(unsigned long long *ctx);
	void (*pkts_acked)(unsigned long long *ctx);
	u32 (*undo_cwnd)(unsigned long long *ctx);
	void (*cong_control)(unsigned long long *ctx);
	void (*cong_control_old)(unsigned long long *ctx);
	u32 flags;
	char name[16];
};

SEC(".struct_ops.link")
struct tcp_congestion_ops cc_ops = {
	.init = cc_init,
	.release = cc_release,
	.ssthresh = cc_ssthresh,
	.cong_avoid = cc_cong_avoid,
	.set_state = cc_set_state,
	.cwnd_event = cc_cwnd_event,
	.cwnd_event_tx_start = cc_tx_start,
	.pkts_acked = cc_pkts_acked,
	.undo_cwnd = cc_undo_cwnd,
	.cong_control = cc_control,
	.cong_control_old = cc_control_old,
	.flags = TCP_CONG_NON_RESTRICTED,
};
