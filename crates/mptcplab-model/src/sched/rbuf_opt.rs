//! The receive-buffer optimisation of the multipath-tcp.org kernels (Raiciu et al., How Hard Can It Be?, NSDI 2012, section
//! 4.2), which minrtt, BLEST and ECF have in common. When the shared receive window blocks, the segment that everything waits
//! for is sent again on a faster subflow (opportunistic retransmission), and the subflows that hold it are slowed down
//! (penalisation).

use super::declare::{SchedulerConfig, switch};
use super::path::{MAX_SUBFLOWS, Path};
use mptcplab_cc::ParamSpec;

/// The least slow start threshold that a penalty leaves.
const MIN_SSTHRESH: u32 = 2;
/// A window up to which a holder never counts as quick enough.
const TINY_CWND: u32 = 4;
/// No segment has this number.
const NONE: u32 = u32::MAX;

/// The parameters that switch these rules.
pub(super) fn params(penalise: bool) -> Vec<ParamSpec> {
    vec![
        switch(
            "opportunistic",
            true,
            "When the shared receive window is full, send the first unacknowledged segment again on a faster subflow.",
        ),
        switch(
            "penalise",
            penalise,
            "When the shared receive window is full, halve the windows of the slower subflows that carry the first \
             unacknowledged segment, at most once per RTT of the faster subflow.",
        ),
        ParamSpec {
            name: "holders",
            default: 0,
            min: 0,
            max: 1,
            scale: 1,
            values: vec![("all", 0), ("first", 1)],
            doc: "Which subflows to penalise: all that carry the segment, or only the first one, as in older kernels.",
        },
    ]
}

/// State of the optimisation for one connection.
pub struct RbufOpt {
    opportunistic: bool,
    penalise: bool,
    /// Only the first holder is penalised, as in older kernels.
    first_only: bool,
    /// When others were last penalised in favour of each subflow.
    penalised_ns: [Option<u64>; MAX_SUBFLOWS],
    /// The segment that everything waits for, and which subflows carry it: bit i for subflow i.
    head: u32,
    holders: u8,
}

impl RbufOpt {
    /// `None` where the parameters switch everything off.
    pub(super) fn new(config: &SchedulerConfig) -> Option<Self> {
        let this = Self {
            opportunistic: config.is_set("opportunistic"),
            penalise: config.is_set("penalise"),
            first_only: config.is_set("holders"),
            penalised_ns: [None; MAX_SUBFLOWS],
            head: NONE,
            holders: 0,
        };
        (this.opportunistic || this.penalise).then_some(this)
    }

    /// Note which subflows carry the segment that everything waits for.
    pub fn find_holders<P: Path>(&mut self, subflows: &[P], head: u32) {
        if self.head == head {
            return;
        }
        self.head = head;
        self.holders = 0;
        for (i, subflow) in subflows.iter().enumerate() {
            self.holders |= u8::from(subflow.carries(head)) << i;
        }
    }

    /// A segment was given to one more subflow.
    pub fn note_sent(&mut self, dsn: u32, subflow: usize) {
        if self.head == dsn {
            self.holders |= 1 << subflow;
        }
    }

    /// Whether `fast` shall send the blocking segment.
    pub fn retransmits<P: Path>(&self, subflows: &[P], fast: usize) -> bool {
        self.opportunistic && may_retransmit(subflows, fast, self.holding())
    }

    /// The subflows to penalise in favour of `fast`, bit i for subflow i; at most once per RTT of `fast`.
    pub fn penalised<P: Path>(&mut self, subflows: &[P], fast: usize, now_ns: u64) -> u8 {
        let rtt_ns = subflows[fast].srtt_ns();
        let is_due = self.penalised_ns[fast].is_none_or(|last| now_ns - last >= rtt_ns);
        if !self.penalise || !is_due {
            return 0;
        }
        let most = if self.first_only { 1 } else { MAX_SUBFLOWS };
        let slow = self.holding().take(most);
        let mask = slow
            .filter(|&h| must_penalise(subflows, fast, h))
            .fold(0, |mask, h| mask | 1 << h);
        if mask != 0 {
            self.penalised_ns[fast] = Some(now_ns);
        }
        mask
    }

    fn holding(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let holders = self.holders;
        (0..MAX_SUBFLOWS).filter(move |i| holders & (1 << i) != 0)
    }
}

/// Whether subflow `fast`, which has room, shall send the blocking segment, which `holders` carry, in this order.
pub fn may_retransmit<P: Path>(
    paths: &[P],
    fast: usize,
    holders: impl IntoIterator<Item = usize> + Clone,
) -> bool {
    if holders.clone().into_iter().any(|h| h == fast) {
        return false;
    }
    let srtt_fast = u64::from(paths[fast].srtt_us8());
    let mut go = false;
    for h in holders {
        if paths[h].cwnd() <= TINY_CWND {
            return true;
        }
        if 4 * srtt_fast >= u64::from(paths[h].srtt_us8()) {
            return false;
        }
        go = true;
    }
    go
}

/// Whether `holder`, which carries the blocking segment, is penalised for the sake of `fast`.
pub fn must_penalise<P: Path>(paths: &[P], fast: usize, holder: usize) -> bool {
    let h = &paths[holder];
    holder != fast && paths[fast].srtt_us8() < h.srtt_us8() && h.is_open() && !h.in_loss()
}

/// Window and threshold after a penalty; in slow start the threshold stays.
pub fn penalised_window(cwnd: u32, ssthresh: u32) -> (u32, u32) {
    let halved = if cwnd >= ssthresh {
        (ssthresh / 2).max(MIN_SSTHRESH)
    } else {
        ssthresh
    };
    ((cwnd / 2).max(1), halved)
}
