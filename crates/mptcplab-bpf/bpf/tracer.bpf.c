// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tracer: observes the TCP sockets of watched network namespaces whenever a segment arrives, something is
 * retransmitted, or a state changes; it updates cumulative counters per socket and writes records to a ring buffer.
 *
 * tcp_probe fires before the segment is processed and the other tracepoints fire inside that processing, all under the
 * socket's lock. So between two observations of an established socket there is at most one ACK, and its effect follows
 * exactly from the difference:
 *
 * - RTT sample: the kernel smooths srtt' = srtt + (m - srtt / 8) in units of 1/8 us, so m = srtt' - srtt + srtt / 8
 *   to the microsecond. A sample that equals srtt shows as a change of mdev, which decays by a quarter then.
 * - Progress: snd_una moved, at the time of the last tcp_probe.
 * - Undo: undo_marker went to zero while prior_ssthresh is set. Everything else that clears the marker clears both.
 *   An ACK that also begins the next episode sets the marker again: see undone_before_entry().
 * - Tail loss probe: tlp_high_seq is new.
 *
 * Limits: tcp_probe is silent outside ESTABLISHED, so of an end that closed its direction before its data was
 * acknowledged, later RTT samples and times of progress are not seen (TRC_UNSEEN_ACKS). IPv4 only.
 */
#include "tracer_kernel.h"
#include "tracer.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading; the verifier removes the branches that are not taken. */
const volatile bool every_ack = true;
/* The tracepoint tcp_retransmit_skb has a third argument, the error of sending. */
const volatile bool retransmit_has_error = false;

struct trc_totals totals;

/* Observations in which the MPTCP connection of a subflow is looked up; each costs four probe reads. */
#define MAX_LOOKUPS 32

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u8);
} namespaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct trc_key);
	__type(value, struct trc_socket);
} sockets SEC(".maps");

/* When the SYN was sent. The local port is not known at that time, so the key is the socket's address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} handshakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} records SEC(".maps");

static const struct trc_socket no_socket;

static __always_inline bool is_after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

/* Whether the socket is TCP in a watched namespace. Other sockets cost no more than this. */
static __always_inline bool is_watched(const struct sock *sk, __u64 *cookie)
{
	*cookie = sk->__sk_common.skc_net.net->net_cookie;
	return bpf_map_lookup_elem(&namespaces, cookie) && sk->sk_protocol == KERNEL_IPPROTO_TCP;
}

/* An IPv4 connection, including one that an IPv6 socket accepted. */
static __always_inline bool is_ipv4(const struct sock *sk)
{
	const struct sock_common *c = &sk->__sk_common;

	if (c->skc_family == KERNEL_AF_INET)
		return true;
	return c->skc_family == KERNEL_AF_INET6 && !c->skc_v6_daddr.in6_u.u6_addr32[0] &&
	       !c->skc_v6_daddr.in6_u.u6_addr32[1] &&
	       c->skc_v6_daddr.in6_u.u6_addr32[2] == bpf_htonl(0xffff);
}

static __always_inline void make_key(struct trc_key *key, const struct tcp_sock *tp, __u64 cookie)
{
	const struct inet_sock *inet = &tp->inet_conn.icsk_inet;

	key->cookie = cookie;
	key->local_addr = inet->sk.__sk_common.skc_rcv_saddr;
	key->remote_addr = inet->sk.__sk_common.skc_daddr;
	/* skc_num is zero again when the socket closes; inet_sport stays. */
	key->local_port = bpf_ntohs(inet->inet_sport);
	key->remote_port = bpf_ntohs(inet->sk.__sk_common.skc_dport);
	key->zero = 0;
}

static __always_inline __u8 ca_state_of(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
}

static __always_inline void note(struct trc_socket *s, __u16 flag)
{
	s->memory.flags |= flag;
}

static __always_inline void count_rtt(struct trc_socket *s, __u32 rtt_us)
{
	s->sample.rtt_us = rtt_us;
	s->sample.counters.rtt_sum_us += rtt_us;
	s->sample.counters.rtt_count++;
}

/* The RTT sample since the last observation, if any. Exact while every ACK is seen; see the head of this file. */
static __always_inline void rtt_sample(struct trc_socket *s, const struct tcp_sock *tp)
{
	struct trc_memory *m = &s->memory;
	__u32 srtt = tp->srtt_us, mdev = tp->mdev_us;
	bool changed = srtt != m->srtt || mdev != m->mdev;
	/* A deviation below 4 does not decay; then only progress shows a sample. */
	bool silent = srtt && mdev < 4 && tp->snd_una != m->una;

	if (m->live && (changed || silent)) {
		count_rtt(s, m->srtt ? srtt - m->srtt + (m->srtt >> 3) : srtt >> 3);
		note(s, TRC_NEW_RTT);
	}
	m->srtt = srtt;
	m->mdev = mdev;
}

/* The state that decides whether there was an undo. */
static __always_inline void save_undo_state(struct trc_memory *m, const struct tcp_sock *tp)
{
	m->undo_marker = tp->undo_marker;
	m->undo_retrans = tp->undo_retrans;
	m->prior_ssthresh = tp->prior_ssthresh;
	m->dsack_dups = tp->dsack_dups;
}

/*
 * Whether the ACK that begins an episode first undid the previous one, outside of recovery, where only duplicate SACKs
 * do that: those of this ACK covered all retransmissions that were in doubt, and the window that is reduced now is
 * not below the one from before the previous reduction.
 */
static __always_inline bool undone_before_entry(const struct trc_socket *s,
						const struct tcp_sock *tp)
{
	const struct trc_memory *m = &s->memory;

	if (!m->undo_marker || !m->prior_ssthresh || m->echo || m->undo_retrans <= 0)
		return false;
	return tp->dsack_dups - m->dsack_dups >= (__u32)m->undo_retrans &&
	       tp->prior_cwnd >= s->sample.prior_cwnd;
}

/* Loss is also entered when the path's MTU shrank; only a timeout sets the window to what is in flight plus one. */
static __always_inline void enter_loss(struct trc_socket *s, const struct tcp_sock *tp, __u64 now)
{
	__u32 inflight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;

	if (!tp->undo_marker && !tp->prior_ssthresh && tp->snd_cwnd != inflight + 1)
		return;
	s->sample.counters.rto_count++;
	s->sample.counters.rto_wait_ns += now - s->memory.progress_ns;
	note(s, TRC_RTO);
}

/* A reduction that began in CWR continues in recovery and is not counted again. */
static __always_inline void enter_recovery(struct trc_socket *s, __u8 from)
{
	if (from == CA_CWR || from == CA_RECOVERY)
		return;
	s->sample.counters.loss_events++;
	note(s, TRC_LOSS_EVENT);
}

/*
 * The socket is in a state that no tracepoint announced. Seen on 6.18 for some timers on a very busy machine, where
 * no program is called at all and no miss is counted. The episode is counted late, so its wait is a little too long.
 */
static __always_inline void catch_up(struct trc_socket *s, const struct tcp_sock *tp)
{
	__u8 from = s->memory.ca_state, state = ca_state_of(tp);

	if (from == state)
		return;
	__sync_fetch_and_add(&totals.unseen_states, 1);
	s->memory.ca_state = state;
	if (state == CA_RECOVERY)
		enter_recovery(s, from);
	else if (state == CA_LOSS)
		enter_loss(s, tp, bpf_ktime_get_ns());
}

/*
 * A timeout that repeats another changes no state, so an unannounced one shows only in the kernel's own count. The
 * kernel counts after it enters loss: its count is ahead of ours only if the tracepoint was missed.
 */
static __always_inline void catch_up_timeouts(struct trc_socket *s, const struct tcp_sock *tp)
{
	struct trc_counters *c = &s->sample.counters;
	__s16 missed;

	if (!bpf_core_field_exists(tp->total_rto))
		return;
	missed = (__u16)(tp->total_rto - s->memory.base_rto - c->rto_count);
	if (missed <= 0)
		return;
	__sync_fetch_and_add(&totals.unseen_states, missed);
	c->rto_count += missed;
	c->rto_wait_ns += bpf_ktime_get_ns() - s->memory.progress_ns;
	note(s, TRC_RTO);
}

/* Everything that follows from comparing the socket with the last observation of it. */
static __always_inline void observe(struct trc_socket *s, const struct tcp_sock *tp)
{
	struct trc_memory *m = &s->memory;
	__u32 una = tp->snd_una, undo = tp->undo_marker, tlp = tp->tlp_high_seq;

	m->flags = 0;
	catch_up(s, tp);
	catch_up_timeouts(s, tp);
	rtt_sample(s, tp);
	if (una != m->una) {
		m->progress_ns = m->live ? m->ack_ns : tp->delivered_mstamp * 1000;
		if (!m->live)
			s->sample.flags |= TRC_UNSEEN_ACKS;
		m->una = una;
	}
	if (m->undo_marker && !undo && tp->prior_ssthresh) {
		s->sample.counters.undo_count++;
		note(s, TRC_UNDO);
	}
	save_undo_state(m, tp);
	if (tlp && tlp != m->tlp_high_seq) {
		s->sample.counters.tlp_count++;
		note(s, TRC_TLP_SENT);
	}
	m->tlp_high_seq = tlp;
}

/* The algorithm that the socket really runs; read again when it changes. */
static __always_inline void read_algorithm(struct trc_socket *s, const struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;

	if (s->memory.cc_ops == (__u64)ops)
		return;
	s->memory.cc_ops = (__u64)ops;
	bpf_probe_read_kernel(s->sample.cc, sizeof(s->sample.cc), &ops->name);
}

/* The MPTCP connection of the subflow, which may not be known yet when the subflow is established. */
static __always_inline void read_connection(struct trc_socket *s, const struct tcp_sock *tp)
{
	const struct mptcp_subflow_context *subflow;
	const struct mptcp_sock *conn;

	if (!bpf_core_type_exists(struct mptcp_subflow_context))
		return;
	if (!tp->is_mptcp || s->sample.token || s->memory.lookups >= MAX_LOOKUPS)
		return;
	s->memory.lookups++;
	subflow = tp->inet_conn.icsk_ulp_data;
	if (!subflow)
		return;
	conn = (const struct mptcp_sock *)BPF_CORE_READ(subflow, conn);
	if (!conn)
		return;
	s->sample.token = BPF_CORE_READ(conn, token);
	s->sample.local_id = BPF_CORE_READ_BITFIELD_PROBED(subflow, local_id);
	s->sample.remote_id = BPF_CORE_READ(subflow, remote_id);
	if (bpf_core_field_exists(subflow->subflow_id))
		s->sample.subflow_id = BPF_CORE_READ(subflow, subflow_id);
}

/* The socket's gauges and the kernel's own counters. */
static __always_inline void read_gauges(struct trc_sample *r, const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = &tp->inet_conn;
	const struct sock *sk = &icsk->icsk_inet.sk;

	r->retransmits = icsk->icsk_retransmits;
	r->backoff = icsk->icsk_backoff;
	r->pacing_status = sk->sk_pacing_status;
	r->pacing_rate = sk->sk_pacing_rate;
	r->cwnd = tp->snd_cwnd;
	r->settled_cwnd = r->cwnd;
	r->prior_cwnd = tp->prior_cwnd;
	r->ssthresh = tp->snd_ssthresh;
	r->srtt_us = tp->srtt_us >> 3;
	r->min_rtt_us = tp->rtt_min.s[0].v;
	if (r->min_rtt_us == NO_RTT)
		r->min_rtt_us = 0;
	r->mdev_us = tp->mdev_us >> 2;
	r->rttvar_us = tp->rttvar_us;
	r->rto_jiffies = icsk->icsk_rto;
	r->packets_out = tp->packets_out;
	r->sacked_out = tp->sacked_out;
	r->lost_out = tp->lost_out;
	r->retrans_out = tp->retrans_out;
	r->mss_bytes = tp->mss_cache;
	r->snd_wnd = tp->snd_wnd;
	r->snd_una = tp->snd_una;
	r->snd_nxt = tp->snd_nxt;
	r->delivered = tp->delivered;
	r->delivered_ce = tp->delivered_ce;
	r->lost = tp->lost;
	r->total_retrans = tp->total_retrans;
	r->data_segs_out = tp->data_segs_out;
	r->bytes_acked = tp->bytes_acked;
}

/* Updates the record, with the events of this moment and the lasting flags of the socket. */
static __always_inline void update(struct trc_socket *s, const struct tcp_sock *tp, __u64 now,
				   __u8 kind)
{
	__u32 lasting = s->sample.flags & (TRC_PARTIAL | TRC_UNSEEN_ACKS);

	read_algorithm(s, tp);
	read_connection(s, tp);
	read_gauges(&s->sample, tp);
	s->sample.t_ns = now;
	s->sample.kind = kind;
	s->sample.ca_state = ca_state_of(tp);
	s->sample.tcp_state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
	s->sample.from = 0;
	s->sample.flags = lasting | s->memory.flags | (tp->is_mptcp ? TRC_MPTCP : 0);
}

/* No wake-up: user space polls every 10 to 20 ms, which is ten times cheaper. */
static __always_inline void emit(struct trc_socket *s)
{
	if (bpf_ringbuf_output(&records, &s->sample, sizeof(s->sample), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&totals.lost_records, 1);
}

/* Begins to follow a socket. Counters start with their values after the handshake. */
static __always_inline struct trc_socket *follow(const struct trc_key *key,
						 const struct tcp_sock *tp, __u64 now)
{
	struct trc_socket *s;

	bpf_map_update_elem(&sockets, key, &no_socket, BPF_ANY);
	s = bpf_map_lookup_elem(&sockets, key);
	if (!s) {
		__sync_fetch_and_add(&totals.untracked, 1);
		return 0;
	}
	s->sample.key = *key;
	s->sample.base_delivered = tp->delivered;
	s->sample.base_retrans = tp->total_retrans;
	s->memory.ack_ns = now;
	s->memory.progress_ns = now;
	s->memory.una = tp->snd_una;
	s->memory.srtt = tp->srtt_us;
	s->memory.mdev = tp->mdev_us;
	s->memory.ca_state = ca_state_of(tp);
	if (bpf_core_field_exists(tp->total_rto))
		s->memory.base_rto = tp->total_rto;
	save_undo_state(&s->memory, tp);
	s->memory.tlp_high_seq = tp->tlp_high_seq;
	s->memory.live = 1;
	return s;
}

/* ECN-Echo of the segment that is being processed. */
static __always_inline bool has_echo(const struct sk_buff *skb)
{
	const char *cb = skb->cb;

	return *(const __u8 *)(cb + bpf_core_field_offset(struct tcp_skb_cb, tcp_flags)) & FLAG_ECE;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(trc_ack, struct sock *sk, const struct sk_buff *skb)
{
	struct trc_socket *s;
	struct tcp_sock *tp;
	struct trc_key key;
	__u16 flags;
	__u64 now;

	if (!is_watched(sk, &key.cookie))
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	/* An end that never sent data only acknowledges, so there is nothing to trace. */
	if (!tp || !tp->data_segs_out)
		return 0;
	make_key(&key, tp, key.cookie);
	now = bpf_ktime_get_ns();
	s = bpf_map_lookup_elem(&sockets, &key);
	if (!s) {
		if (!is_ipv4(sk))
			return 0;
		s = follow(&key, tp, now);
		if (!s)
			return 0;
		s->sample.flags = TRC_PARTIAL;
	}
	observe(s, tp);
	s->memory.ack_ns = now;
	s->memory.echo = has_echo(skb);
	s->sample.counters.acks += tp->packets_out != 0;
	update(s, tp, now, TRC_ACK);
	flags = s->memory.flags;
	/* An ACK that finds nothing in flight is of no interest, but the sample of the one before may be. */
	if ((flags & TRC_EVENTS) || (every_ack && (tp->packets_out || (flags & TRC_NEW_RTT))))
		emit(s);
	return 0;
}

/* The socket's entry, for tracepoints at which only followed sockets matter. */
static __always_inline struct trc_socket *followed(const struct sock *sk, struct tcp_sock **tp)
{
	struct trc_key key;

	if (!is_watched(sk, &key.cookie))
		return 0;
	*tp = bpf_skc_to_tcp_sock((void *)sk);
	if (!*tp)
		return 0;
	make_key(&key, *tp, key.cookie);
	return bpf_map_lookup_elem(&sockets, &key);
}

SEC("tp_btf/tcp_retransmit_skb")
int trc_retransmit(unsigned long long *ctx)
{
	const struct sock *sk = (const struct sock *)ctx[0];
	struct trc_socket *s;
	struct tcp_sock *tp;

	if (retransmit_has_error && (int)ctx[2])
		return 0;
	s = followed(sk, &tp);
	if (!s)
		return 0;
	observe(s, tp);
	/* Only the tail loss probe retransmits before recovery; the kernel sets tlp_high_seq right afterwards. */
	if (tp->inet_conn.icsk_pending == PENDING_LOSS_PROBE && ca_state_of(tp) < CA_RECOVERY &&
	    !tp->tlp_high_seq) {
		s->memory.tlp_high_seq = tp->snd_nxt;
		s->sample.counters.tlp_count++;
		note(s, TRC_TLP_SENT);
	}
	update(s, tp, bpf_ktime_get_ns(), TRC_RETRANSMIT);
	emit(s);
	return 0;
}

/* Why the window is reduced without recovery: a tail loss probe that repaired a loss, an ECN echo, or a full queue of
 * this host. `probe` is tlp_high_seq before this ACK.
 */
static __always_inline void enter_cwr(struct trc_socket *s, const struct tcp_sock *tp, __u32 probe)
{
	if (probe && is_after(tp->snd_una, probe) && BPF_CORE_READ_BITFIELD(tp, tlp_retrans)) {
		s->sample.counters.loss_events++;
		note(s, TRC_LOSS_EVENT);
	} else if (s->memory.echo) {
		s->sample.counters.ecn_events++;
		note(s, TRC_ECN_EVENT);
	} else {
		s->sample.counters.local_events++;
		note(s, TRC_LOCAL_EVENT);
	}
}

/* All data of the episode is acknowledged; an episode that an undo cut short does not count as ended. */
static __always_inline void leave(struct trc_socket *s, const struct tcp_sock *tp, __u8 from)
{
	bool is_undone = s->memory.flags & TRC_UNDO;

	if (from == CA_RECOVERY ? !is_after(tp->high_seq, tp->snd_una) : !is_undone)
		note(s, TRC_RECOVERY_ENDED);
}

/* The window after the reduction that ends here: the kernel sets it after this tracepoint. */
static __always_inline __u32 reduced_window(const struct tcp_sock *tp, __u8 from)
{
	bool reduced =
		from == CA_RECOVERY && tp->undo_marker && tp->snd_ssthresh < INFINITE_SSTHRESH;

	return reduced && !tp->inet_conn.icsk_ca_ops->cong_control ? tp->snd_ssthresh
								   : tp->snd_cwnd;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(trc_ca_state, struct sock *sk, const __u8 state)
{
	struct trc_socket *s;
	struct tcp_sock *tp;
	bool undone;
	__u32 probe;
	__u64 now;
	__u8 from;

	s = followed(sk, &tp);
	if (!s)
		return 0;
	now = bpf_ktime_get_ns();
	from = ca_state_of(tp);
	probe = s->memory.tlp_high_seq;
	undone = state >= CA_RECOVERY && from < CA_CWR && undone_before_entry(s, tp);
	observe(s, tp);
	if (undone) {
		s->sample.counters.undo_count++;
		note(s, TRC_UNDO);
	}
	if (state == CA_RECOVERY)
		enter_recovery(s, from);
	else if (state == CA_CWR)
		enter_cwr(s, tp, probe);
	else if (state == CA_LOSS)
		enter_loss(s, tp, now);
	else if (from >= CA_RECOVERY)
		leave(s, tp, from);
	update(s, tp, now, TRC_CA_STATE);
	s->sample.ca_state = state;
	s->sample.from = from;
	s->memory.ca_state = state;
	if (s->memory.flags & TRC_RECOVERY_ENDED)
		s->sample.settled_cwnd = reduced_window(tp, from);
	emit(s);
	return 0;
}

/* Duration of the handshake that this end began; removed whether or not it succeeded. */
static __always_inline __u64 end_handshake(const struct sock *sk, __u64 now)
{
	__u64 address = (__u64)sk;
	__u64 *sent = bpf_map_lookup_elem(&handshakes, &address);
	__u64 took;

	if (!sent)
		return 0;
	took = now - *sent;
	bpf_map_delete_elem(&handshakes, &address);
	return took;
}

static __always_inline struct trc_socket *
establish(const struct sock *sk, const struct tcp_sock *tp, const struct trc_key *key, __u64 now)
{
	struct trc_socket *s = is_ipv4(sk) ? follow(key, tp, now) : 0;

	if (!s)
		return 0;
	note(s, TRC_ESTABLISHED);
	if (tp->srtt_us) {
		count_rtt(s, tp->srtt_us >> 3);
		note(s, TRC_NEW_RTT);
	}
	return s;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(trc_tcp_state, const struct sock *sk, const int from, const int state)
{
	struct trc_socket *s;
	struct tcp_sock *tp;
	struct trc_key key;
	__u64 now, took = 0;

	if (!is_watched(sk, &key.cookie))
		return 0;
	now = bpf_ktime_get_ns();
	if (state == STATE_SYN_SENT) {
		__u64 address = (__u64)sk;

		bpf_map_update_elem(&handshakes, &address, &now, BPF_ANY);
		return 0;
	}
	tp = bpf_skc_to_tcp_sock((void *)sk);
	if (!tp)
		return 0;
	make_key(&key, tp, key.cookie);
	if (from == STATE_SYN_SENT)
		took = end_handshake(sk, now);
	if (state == STATE_ESTABLISHED) {
		s = establish(sk, tp, &key, now);
		if (s)
			s->sample.handshake_ns = took;
	} else {
		s = bpf_map_lookup_elem(&sockets, &key);
		if (s)
			observe(s, tp);
	}
	if (!s)
		return 0;
	s->memory.live = state == STATE_ESTABLISHED;
	if (state == STATE_CLOSE)
		note(s, TRC_CLOSED);
	update(s, tp, now, TRC_TCP_STATE);
	s->sample.tcp_state = state;
	s->sample.from = from;
	emit(s);
	return 0;
}
