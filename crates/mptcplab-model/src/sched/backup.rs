//! Backup subflows only when no regular one is usable (RFC 8684 section 3.3.8), and nothing else.

use super::declare::{Declaration, SchedulerConfig};
use super::minrtt::MinRtt;
use super::path::Path;
use super::schedule::{Assignment, Schedule, SendQueue};

/// The scheduler has no state.
pub struct Backup;

impl Schedule for Backup {
    fn declaration() -> Declaration {
        Declaration {
            name: "backup",
            title: "lowest smoothed RTT first; backup subflows only when no regular subflow is usable",
            sections: vec![
                (
                    "Idea",
                    "Subflows with the B bit (backup = true) carry data only while no regular subflow is usable. Of \
                     the regular subflows, or else of the backup subflows, the one with the lowest smoothed RTT is \
                     used first. Every scheduler here respects the B bit; this one adds nothing to that rule.",
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
    fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        MinRtt.pick(subflows, queue)
    }
}
