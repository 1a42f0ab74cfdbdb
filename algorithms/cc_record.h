/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One call of a hook in the kernel, as record mode logs it: all that the hook could read,
 * and all that it may have changed. crates/mptcplab-cc/src/replay.rs has the same layout.
 */
#ifndef MPTCPLAB_CC_RECORD_H
#define MPTCPLAB_CC_RECORD_H

/* Hooks by number, in the order of mptcplab_cc::replay::Op. */
enum cc_op {
	CC_INIT,
	CC_RELEASE,
	CC_SSTHRESH,
	CC_CONG_AVOID,
	CC_SET_STATE,
	CC_CWND_EVENT,
	CC_PKTS_ACKED,
	CC_UNDO_CWND,
	CC_CONG_CONTROL,
};

struct cc_before {
	struct CC_TCP_SOCK tp;
	u64 state[CC_STATE_WORDS];
	s64 credit_q40;
	u32 credit_cwnd;
	u32 reserved;
	u64 args[3]; /* in the order of the hook's parameters, samples member by member */
	struct CC_RATE_SAMPLE rate; /* of cong_control */
	struct cc_conn conn;
};

struct cc_after {
	u64 result; /* of ssthresh and undo_cwnd */
	u64 sk_pacing_rate;
	u64 state[CC_STATE_WORDS];
	s64 credit_q40;
	u32 credit_cwnd;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 sk_pacing_status;
	u32 reserved;
	struct cc_slot slot; /* as published for the siblings */
};

struct cc_record {
	u64 key; /* the connection */
	u32 op;
	u32 slot;
	struct cc_before before;
	struct cc_after after;
};

_Static_assert(sizeof(struct cc_record) == 952, "mptcplab_cc::replay has the same layout");

#endif
