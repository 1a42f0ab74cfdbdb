//! Backup subflows only when no regular one is usable (RFC 8684 section 3.3.8), and nothing else.

use super::declare::{Declaration, SchedulerConfig};
use super::minrtt::minrtt;
use super::path::Path;
use super::schedule::{Assignment, Schedule, SendQueue};

/// The scheduler has no state.
pub struct Backup;

impl Schedule for Backup {
    fn declaration() -> Declaration {
        Declaration {
            name: "backup",
            title: "regular subflows; backup subflows only when no regular one is usable",
            sections: vec![
                (
                    "Idea",
                    "Subflows with the B bit (backup = true) carry data only while no regular subflow is usable; within the \
                     class in use the lowest smoothed RTT is first. Every scheduler here respects the B bit; this is that \
                     rule with nothing added.",
                ),
                ("Reference", "RFC 8684 sections 3.3.8 and 3.2."),
            ],
            params: Vec::new(),
            ordered: None,
        }
    }

    fn new(_config: &SchedulerConfig) -> Self {
        Self
    }

    #[inline]
    fn pick<P: Path>(&mut self, subflows: &[P], _queue: &SendQueue) -> Option<Assignment> {
        minrtt(subflows).map(Assignment::one)
    }
}
