//! CMT-SCTP's sender: the destinations of an association in turn (Iyengar, Amer and Stewart, IEEE/ACM ToN 2006).

/// The next destination in cyclic order that has room, if the receiver admits a chunk. `next` is whose turn it is, and
/// moves on behind the one that was chosen.
pub fn next_destination(
    next: &mut usize,
    count: usize,
    admitted: bool,
    has_room: impl Fn(usize) -> bool,
) -> Option<usize> {
    if !admitted {
        return None;
    }
    let chosen = (0..count)
        .map(|step| (*next + step) % count)
        .find(|&i| has_room(i))?;
    *next = (chosen + 1) % count;
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_skip_full_destinations_and_stop_at_a_closed_window() {
        let mut next = 1;
        let room = |i: usize| i != 2;
        let mut pick = |admitted| next_destination(&mut next, 4, admitted, room);
        assert_eq!(pick(true), Some(1));
        assert_eq!(pick(true), Some(3));
        assert_eq!(pick(false), None);
        assert_eq!(pick(true), Some(0));
        assert_eq!(next_destination(&mut next, 4, true, |_| false), None);
        assert_eq!(next, 1);
    }
}
