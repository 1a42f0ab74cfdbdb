//! The destination of a retransmission is the one with the largest ssthresh (RTX-SSTHRESH: Iyengar, Amer, Stewart 2006,
//! section 4.3; draft-tuexen-tsvwg-sctp-multipath). New data are sent to all destinations in turn (`next_destination` in mptcplab-model).

/// A destination, as the choice for a retransmission sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Timeouts since data sent there were last acknowledged.
    pub(crate) timeouts: u32,
    pub(crate) ssthresh: u32,
    pub(crate) cwnd: u32,
    pub(crate) has_room: bool,
}

/// Where a retransmission goes: the largest ssthresh; ties go to the largest cwnd, then to the first. Destinations whose
/// timeouts are unanswered are not tried while another one answers (RFC 9260 section 6.4.1): the data that hold up all
/// others would wait for the next timeout there. `needs_room`: the packet is bound by cwnd; a full destination passes it
/// on to the next best.
pub(crate) fn retransmission_destination(
    candidates: impl Iterator<Item = Candidate> + Clone,
    needs_room: bool,
) -> Option<usize> {
    let some_answer = candidates.clone().any(|c| c.timeouts == 0);
    candidates
        .enumerate()
        .filter(|(_, c)| c.timeouts == 0 || !some_answer)
        .filter(|(_, c)| c.has_room || !needs_room)
        .max_by_key(|(i, c)| (c.ssthresh, c.cwnd, std::cmp::Reverse(*i)))
        .map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retransmission_takes_the_largest_ssthresh_that_answers() {
        let at = |timeouts, ssthresh, cwnd, has_room| Candidate {
            timeouts,
            ssthresh,
            cwnd,
            has_room,
        };
        let all = [
            at(0, 6000, 9000, true),
            at(0, 12_000, 1500, false),
            at(0, 6000, 10_500, true),
            at(1, 90_000, 1500, true),
        ];
        let choose = |c: &[Candidate], room| retransmission_destination(c.iter().copied(), room);
        assert_eq!(choose(&all, false), Some(1));
        assert_eq!(choose(&all, true), Some(2), "a tie goes to the larger cwnd");
        assert_eq!(
            choose(&[all[0], all[0]], true),
            Some(0),
            "then to the first"
        );
        assert_eq!(choose(&all[1..2], true), None);
        assert_eq!(choose(&[all[1], all[3]], true), None, "it rather waits");
        assert_eq!(choose(&all[3..], true), Some(0), "none answers");
    }
}
