//! Time and size of writing a sweep's traces: `cargo bench -p mptcplab-trace --features parquet`.
//!
//! The tables have the size of the demo's (300 s at 10 ms, two subflows, eight directed links), and their numbers change
//! like those of a simulation, so that encodings are measured on realistic data.

use mptcplab_trace::parquet::TraceWriter;
use mptcplab_trace::{FlowRow, LinkRow, RunRecord, SubflowRow, Tables};
use std::time::Instant;

const RUNS: u32 = 30;
const SAMPLES: u64 = 30_000;
const LINKS: u32 = 8;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let tables = tables();
    let mut writer = TraceWriter::create(&dir.path().join("trace")).expect("an empty directory");
    let (encoder, mut encode_s, mut append_s) = (writer.encoder(), 0.0, 0.0);
    for run in 0..RUNS {
        let start = Instant::now();
        let encoded = encoder.encode(&record(run), &tables).expect("valid tables");
        encode_s += start.elapsed().as_secs_f64();
        let start = Instant::now();
        writer.append(encoded).expect("disk space");
        append_s += start.elapsed().as_secs_f64();
    }
    writer.finish().expect("disk space");
    let rows = u64::from(RUNS) * SAMPLES * u64::from(1 + 2 + LINKS);
    println!("{rows} rows: encode {encode_s:.2} s, append {append_s:.2} s, on one core");
    let mut files: Vec<_> = std::fs::read_dir(dir.path().join("trace"))
        .expect("the trace")
        .map(|file| file.expect("a file"))
        .collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        let bytes = file.metadata().expect("metadata").len();
        println!(
            "{:>16} {:8.1} MB",
            file.file_name().to_string_lossy(),
            bytes as f64 / 1e6
        );
    }
}

fn record(run: u32) -> RunRecord {
    RunRecord {
        run,
        cc: "lia".into(),
        flow_names: vec!["mp".into()],
        subflow_names: vec![vec!["sf1".into(), "sf2".into()]],
        link_names: (0..LINKS).map(|link| format!("L{link}")).collect(),
        ..RunRecord::default()
    }
}

/// A fixed pseudo-random sequence.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn tables() -> Tables {
    let mut noise = Noise(7);
    let mut tables = Tables::default();
    let mut delivered = 0;
    let mut sent = [0u64; 2];
    let mut link_pkts = [0u64; LINKS as usize];
    for sample in 0..SAMPLES {
        let t_ns = sample * 10_000_000;
        delivered += 1428 * noise.below(20);
        tables.flow.push(FlowRow {
            t_ns,
            flow: 0,
            delivered_bytes: delivered,
            sent_bytes: delivered + 1428 * noise.below(50),
            ooo_bytes: 1428 * noise.below(10),
            rcv_window_bytes: 6_000_000,
            reinjected_pkts: sample / 10_000,
            duplicate_pkts: sample / 9_000,
            blocked_ns: 0,
            ooo_pkts: sample / 3,
            ooo_delay_sum_ns: sample * 70_001,
            ooo_delay_max_ns: noise.below(90_000_000),
            reorder_depth_sum_pkts: sample * 2,
            reorder_depth_max_pkts: noise.below(40),
        });
        for subflow in 0..2 {
            let pkts = &mut sent[subflow as usize];
            *pkts += noise.below(12 - 4 * u64::from(subflow));
            tables
                .subflow
                .push(subflow_row(t_ns, subflow, *pkts, &mut noise));
        }
        for link in 0..LINKS {
            let pkts = &mut link_pkts[link as usize];
            *pkts += noise.below(10 + u64::from(link));
            tables.link.push(link_row(t_ns, link, *pkts, &mut noise));
        }
    }
    tables
}

fn subflow_row(t_ns: u64, subflow: u32, pkts: u64, noise: &mut Noise) -> SubflowRow {
    let srtt = 14_000 + 10_000 * subflow + noise.below(3_000) as u32;
    SubflowRow {
        t_ns,
        flow: 0,
        subflow,
        state: 2 + (noise.below(30) / 29) as u8,
        cwnd_pkts: 20 + (t_ns / 100_000_000 % 40) as u32,
        ssthresh_pkts: 20 + (t_ns / 3_000_000_000) as u32,
        inflight_pkts: 20 + noise.below(20) as u32,
        srtt_us: srtt,
        rtt_us: srtt + noise.below(900) as u32,
        min_rtt_us: 14_000 + 10_000 * subflow,
        rto_us: 200_000 + srtt,
        pacing_bps: 0,
        rtt_sum_us: pkts * u64::from(srtt) / 2,
        rtt_count: pkts / 2,
        sent_pkts: pkts,
        retx_pkts: pkts / 900,
        acked_pkts: pkts.saturating_sub(20),
        lost_pkts: pkts / 1000,
        loss_events: pkts / 1100,
        ecn_events: 0,
        rto_count: 0,
        rto_wait_ns: 0,
        undo_count: 0,
        rx_pkts: pkts.saturating_sub(10),
        rx_wire_bytes: pkts.saturating_sub(10) * 1514,
        rx_payload_bytes: pkts.saturating_sub(10) * 1428,
    }
}

fn link_row(t_ns: u64, link: u32, pkts: u64, noise: &mut Noise) -> LinkRow {
    let queue = noise.below(4 + u64::from(link));
    LinkRow {
        t_ns,
        link,
        queue_pkts: queue as u32,
        queue_bytes: queue * 1514,
        arrived_pkts: pkts + queue,
        dropped_random_pkts: pkts / 1000,
        dropped_queue_pkts: 0,
        marked_pkts: 0,
        departed_pkts: pkts,
        departed_bytes: pkts * 1514,
        queue_delay_sum_ns: pkts * 1_211_200,
        queue_delay_max_ns: queue * 1_211_200,
    }
}
