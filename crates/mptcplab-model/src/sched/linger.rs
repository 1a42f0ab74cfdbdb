//! Upstream Linux' default: the subflow whose queued data would be gone first at its pacing rate (algorithms.md 7.7).

/// Largest burst that a subflow gets before the next decision (Linux `MPTCP_SEND_BURST_SIZE`).
pub const BURST_BYTES: u64 = 65_428;

/// What the scheduler sees of a subflow's socket: not its window, but what waits in its send queue.
pub trait Queue {
    /// Established, fourth ACK seen, not failed.
    fn is_usable(&self) -> bool;
    /// Only for when no regular subflow is usable.
    fn is_backup(&self) -> bool;
    /// Bytes in the send queue: given to the subflow and not acknowledged.
    fn queued_bytes(&self) -> u64;
    /// The socket's pacing rate in bytes/s; 0 before the first RTT sample.
    fn pacing_bytes_per_s(&self) -> u64;
    /// The send buffer has room.
    fn has_send_memory(&self) -> bool;
    /// Data had to be sent again on another subflow, and this one has not moved since.
    fn is_stale(&self) -> bool;
}

/// Pick a subflow, and how many bytes it gets before the next pick: at most `room_bytes`, what the receive window admits.
/// `average` has every subflow's average pacing rate; those of new subflows are set, that of the picked one is moved.
pub fn linger<P: Queue>(paths: &[P], average: &mut [u64], room_bytes: u64) -> Option<(usize, u64)> {
    let takes_part = |p: &P| p.is_usable() && !p.is_stale();
    let backups = !paths.iter().any(|p| takes_part(p) && !p.is_backup());
    let mut best: Option<(usize, u128, u128)> = None;
    for (i, path) in paths.iter().enumerate().filter(|(_, p)| takes_part(p)) {
        if average[i] == 0 {
            average[i] = path.pacing_bytes_per_s();
        }
        let (queued, pace) = (u128::from(path.queued_bytes()), u128::from(average[i]));
        // queued / pace < best queued / best pace, without rounding.
        let sooner = best.is_none_or(|(_, q, p)| queued * p < q * pace);
        if path.is_backup() == backups && pace > 0 && sooner {
            best = Some((i, queued, pace));
        }
    }
    let (i, queued, pace) = best?;
    if !paths[i].has_send_memory() {
        return None;
    }
    let burst = BURST_BYTES.min(room_bytes);
    if burst > 0 {
        let (burst, now) = (u128::from(burst), u128::from(paths[i].pacing_bytes_per_s()));
        // A mean of two rates lies between them.
        average[i] = ((pace * queued + now * burst) / (queued + burst)) as u64;
    }
    Some((i, burst))
}
