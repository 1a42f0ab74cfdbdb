//! The row of a link from the counters of the link model, the same for every engine that uses the model.

use crate::schema::LinkRow;
use mptcplab_model::link::LinkStats;

impl LinkRow {
    /// `link` is the index of the link in the run's link list.
    #[inline]
    #[must_use]
    pub fn new(t_ns: u64, link: u32, stats: &LinkStats) -> Self {
        Self {
            t_ns,
            link,
            queue_pkts: stats.queue_pkts,
            queue_bytes: stats.queue_bytes,
            arrived_pkts: stats.arrived_pkts,
            dropped_random_pkts: stats.dropped_random_pkts,
            dropped_queue_pkts: stats.dropped_queue_pkts,
            marked_pkts: stats.marked_pkts,
            departed_pkts: stats.departed_pkts,
            departed_bytes: stats.departed_bytes,
            queue_delay_sum_ns: stats.queue_delay_sum_ns,
            queue_delay_max_ns: stats.queue_delay_max_ns,
        }
    }
}
