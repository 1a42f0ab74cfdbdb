//! A subflow as schedulers see it.

/// Most subflows of a connection.
pub const MAX_SUBFLOWS: usize = mptcplab_cc::MAX_SUBFLOWS;

/// Slow start threshold of a subflow that has not left its first slow start, as in Linux.
pub const INFINITE_SSTHRESH: u32 = mptcplab_cc::INFINITE_SSTHRESH;

/// A subflow as a scheduler sees it. Windows are packets; RTTs are eighths of a microsecond, as Linux keeps them.
pub trait Path {
    /// Established, fourth ACK seen, not failed.
    fn is_usable(&self) -> bool;
    /// Only for when no regular subflow is usable.
    fn is_backup(&self) -> bool;
    /// Recovering from a timeout.
    fn in_loss(&self) -> bool;
    /// Nothing lost, nothing out of order: congestion state Open.
    fn is_open(&self) -> bool;
    /// Pacing forbids to send now.
    fn waits_for_pacing(&self) -> bool;
    fn cwnd(&self) -> u32;
    /// Packets in the network.
    fn inflight(&self) -> u32;
    /// Packets given to the subflow that it has not sent yet.
    fn queued(&self) -> u32;
    /// Slow start threshold, or [`INFINITE_SSTHRESH`].
    fn ssthresh(&self) -> u32;
    /// Smoothed RTT; 0 before the first sample.
    fn srtt_us8(&self) -> u32;
    /// Mean deviation of the RTT (RFC 6298 RTTVAR, without a floor).
    fn rttvar_us8(&self) -> u32;
    /// Latest RTT sample.
    fn rtt_us8(&self) -> u32;
    /// Lowest RTT.
    fn min_rtt_us8(&self) -> u32;
    /// The handshake is complete and the subflow has not been removed; it may have failed all the same.
    fn is_established(&self) -> bool;
    /// Packets given to the subflow and not acknowledged, sent or not.
    fn unacked_pkts(&self) -> u32;
    /// The socket's pacing rate in bytes/s; 0 before the first RTT sample.
    fn pacing_bytes_per_s(&self) -> u64;
    /// Whether a data sequence number is in flight on the subflow.
    fn carries(&self, dsn: u32) -> bool;

    /// Smoothed RTT in whole microseconds, as nanoseconds.
    #[inline]
    fn srtt_ns(&self) -> u64 {
        u64::from(self.srtt_us8() >> 3) * 1000
    }

    /// Packets that the congestion window still admits.
    #[inline]
    fn free(&self) -> u32 {
        self.cwnd().saturating_sub(self.inflight())
    }

    /// May carry a new segment right now.
    #[inline]
    fn is_available(&self) -> bool {
        let free = self.free();
        self.is_usable()
            && !self.in_loss()
            && free > 0
            && self.queued() <= free
            && !self.waits_for_pacing()
    }
}

/// Whether backup subflows may be used: no regular one is usable (RFC 8684 section 3.3.8).
#[inline]
pub fn only_backups<P: Path>(paths: &[P]) -> bool {
    !paths.iter().any(|p| !p.is_backup() && p.is_usable()) && paths.iter().any(P::is_backup)
}

/// The usable subflow of the class in use with the lowest smoothed RTT, whether it has room or not.
pub fn fastest<P: Path>(paths: &[P]) -> Option<usize> {
    let backups = only_backups(paths);
    let in_use = |i: &usize| paths[*i].is_backup() == backups && paths[*i].is_usable();
    (0..paths.len())
        .filter(in_use)
        .min_by_key(|&i| (paths[i].srtt_us8(), i))
}

/// The available subflow with the lowest smoothed RTT among those that `admit` lets through.
#[inline]
pub fn lowest_rtt<P: Path>(paths: &[P], admit: impl Fn(usize) -> bool) -> Option<usize> {
    let mut best = None;
    for (i, path) in paths.iter().enumerate() {
        if admit(i) && path.is_available() {
            let srtt = path.srtt_us8();
            if best.is_none_or(|(_, lowest)| srtt < lowest) {
                best = Some((i, srtt));
            }
        }
    }
    best.map(|b| b.0)
}

/// The subflows for a segment that some have `carried`: regular ones that have not, backups if there are none, and if every
/// usable subflow has carried it, that is forgotten. A subflow that is only busy is waited for. `None`: no subflow is usable.
pub fn may_carry_again<P: Path>(
    paths: &[P],
    carried: impl Fn(usize) -> bool,
) -> Option<impl Fn(usize) -> bool> {
    let admits = move |backup: bool, fresh: bool, i: usize| {
        paths[i].is_backup() == backup && !(fresh && carried(i))
    };
    let classes = [(false, true), (true, true), (false, false), (true, false)];
    let (backup, fresh) = classes.into_iter().find(|&(backup, fresh)| {
        (0..paths.len()).any(|i| paths[i].is_usable() && admits(backup, fresh, i))
    })?;
    Some(move |i| admits(backup, fresh, i))
}
