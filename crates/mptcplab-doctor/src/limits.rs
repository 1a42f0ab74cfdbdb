//! The limits of MPTCP's path manager that the doctor recommends, and the commands that set them.
//!
//! Linux accepts limits up to 8 (`MPTCP_PM_ADDR_MAX` in net/mptcp/pm_netlink.c of Linux 6.1). They count what a
//! connection has beyond its first subflow, and an algorithm couples eight subflows with the first among them.

use mptcplab_cc::MAX_SUBFLOWS;

/// Subflows beyond the first, if an algorithm couples all of a connection.
pub(crate) const COUPLED: u32 = MAX_SUBFLOWS as u32 - 1;

/// Raises both limits of this host.
pub(crate) fn raise() -> String {
    format!("ip mptcp limits set subflows {COUPLED} add_addr_accepted {COUPLED}")
}

/// Raises both limits where those of the peer count as well.
pub(crate) fn raise_on_both() -> String {
    format!("{}    # {ON_BOTH}", raise())
}

/// Lowers the limit of subflows to what an algorithm couples.
pub(crate) fn lower_on_both() -> String {
    format!("ip mptcp limits set subflows {COUPLED}    # beyond the first, {ON_BOTH}")
}

const ON_BOTH: &str = "on both hosts; applies to new connections";

#[cfg(test)]
mod tests {
    use super::*;

    /// Some remedies set a limit of 8, with which the ninth subflow of a connection is not coupled.
    #[test]
    fn the_guide_for_operators_sets_the_limits_that_the_doctor_recommends() {
        let guide = include_str!("../../../docs/operators.md");
        let set: Vec<&str> = guide
            .lines()
            .filter_map(|line| Some(line.split_once("mptcp limits set ")?.1))
            .map(|rest| rest.split(';').next().unwrap_or(rest))
            .collect();
        assert!(set.len() >= 2, "{set:?}");
        for limits in set {
            assert_eq!(raise(), format!("ip mptcp limits set {limits}"));
        }
        assert_eq!(
            raise(),
            "ip mptcp limits set subflows 7 add_addr_accepted 7"
        );
    }
}
