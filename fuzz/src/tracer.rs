//! Records of the kernel's tracer.

use mptcplab_bpf::tracer::Sample;
use std::hint::black_box;

/// A record as it comes from the ring buffer.
pub fn tracer(bytes: &[u8]) {
    let Some(sample) = Sample::from_bytes(bytes) else {
        assert!(bytes.len() != size_of::<Sample>());
        return;
    };
    black_box((sample.key(), sample.kind(), sample.events().count()));
    black_box((
        sample.inflight_pkts(),
        sample.acked_pkts(),
        sample.retx_pkts(),
    ));
    black_box((
        sample.kernel_delivered(),
        sample.kernel_retrans(),
        sample.rto_us(),
    ));
    black_box((
        sample.armed_rto_us(),
        sample.pacing_bps(),
        sample.subflow_state(),
    ));
    assert!(sample.congestion_control().len() <= 3 * 16);
}
