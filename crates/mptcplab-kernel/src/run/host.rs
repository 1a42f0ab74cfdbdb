//! The `host` column of the trace: the machine, its load, and the lateness of emulator and samples.

use super::algorithms::Algorithms;
use super::rows::Rows;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::protocol::{RunReport, Traffic};
use mptcplab_bpf::tracer::Tracer;
use mptcplab_emulator::Report;
use nix::sys::utsname::uname;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Facts about the machine and the tracer during one run.
#[derive(Debug, Default)]
pub(super) struct HostRecord {
    load_before: String,
    load_after: String,
    records: u64,
    lost: u64,
    untracked: u64,
    missed: u64,
    local_events: u64,
    /// Why there is no report from the lab.
    pub(super) lab_failure: Option<String>,
}

impl HostRecord {
    pub(super) fn begin() -> Self {
        Self {
            load_before: load_average(),
            ..Self::default()
        }
    }

    pub(super) fn end(&mut self) {
        self.load_after = load_average();
    }

    pub(super) fn tracer(&mut self, tracer: &Tracer, rows: &Rows) -> Result<(), Failure> {
        self.records = rows.records;
        self.local_events = rows.local_events;
        self.lost = tracer.lost()?;
        self.untracked = tracer.untracked()?;
        self.missed = tracer.missed()?;
        Ok(())
    }

    /// Describes sockets that were not tracked, if there were any.
    pub(super) fn untracked(&self) -> Option<String> {
        (self.untracked > 0).then(|| {
            format!(
                "the tracer's table had no room for some sockets ({} times)",
                self.untracked
            )
        })
    }

    /// Describes records of the tracer that were lost, if there were any.
    pub(super) fn lost(&self) -> Option<String> {
        (self.lost > 0).then(|| {
            format!(
                "{} records of the tracer were lost, because they were not read in time",
                self.lost
            )
        })
    }

    pub(super) fn to_json(
        &self,
        plan: &Plan,
        algorithms: &Algorithms,
        report: Option<&RunReport>,
        traffic: Traffic,
    ) -> Value {
        let system = uname().ok();
        let text = |get: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
            system
                .as_ref()
                .map(|system| get(system).to_string_lossy().into_owned())
        };
        let names = plan
            .algorithms
            .iter()
            .zip(&algorithms.names)
            .map(|(plan, kernel)| {
                json!({
                    "cc": plan.choice.name,
                    "kernel_name": kernel,
                    "growth_per_ack": plan.growth_per_ack,
                    "pacing": plan.pacing,
                })
            });
        json!({
            "kernel": text(|s| s.release()),
            "kernel_version": text(|s| s.version()),
            "machine": text(|s| s.machine()),
            "processors": std::thread::available_parallelism().map(usize::from).ok(),
            "load_average": { "before": self.load_before, "after": self.load_after },
            "tcp_mem_pages": tcp_memory(),
            "traffic": match traffic { Traffic::Own => "own", Traffic::Iperf3 => "iperf3" },
            "algorithms": names.collect::<Vec<_>>(),
            "trace": {
                "records": self.records,
                "lost": self.lost,
                "untracked": self.untracked,
                "missed": self.missed,
                "local_events": self.local_events,
            },
            "samples": report.map(|report| json!({
                "late_max_ns": report.sample_late_ns,
                "edge_late_max_ns": report.edge_late_ns,
                "skipped": report.samples_skipped,
                "udp_late_max_ns": report.udp_late_ns,
                "transfer_late_max_ns": report.transfer_late_ns,
                "ended_ns": report.ended_ns,
            })),
            "sysctls": report.map(|report| report.sysctls.iter().cloned().collect::<BTreeMap<_, _>>()),
            "emulator": report.and_then(|report| report.emulator.as_ref()).map(emulator),
        })
    }
}

fn emulator(report: &Report) -> Value {
    let links = report.links.iter().map(|link| {
        let late = &link.lateness;
        json!({
            "link": link.name,
            "released_pkts": link.released_pkts,
            "late_p50_ns": late.p50_ns,
            "late_p99_ns": late.p99_ns,
            "late_max_ns": late.max_ns,
            "answers": link.answers.count,
            "answer_p1_ns": link.answers.p1_ns,
            "answer_p50_ns": link.answers.p50_ns,
            "answer_p99_ns": link.answers.p99_ns,
        })
    });
    json!({
        "scheduling": report.scheduling.to_string(),
        "spin_ns": report.spin_ns,
        "cpu_ns": report.cpu_ns,
        "wakeup_p99_ns": report.wakeups.p99_ns,
        "worst_busy_ns": report.worst_busy_ns,
        "links": links.collect::<Vec<_>>(),
    })
}

/// The bounds of the memory of all TCP sockets together, which belong to the machine (the sysctl net.ipv4.tcp_mem).
fn tcp_memory() -> Option<Vec<u64>> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").ok()?;
    let pages = text.split_whitespace();
    pages.map(|pages| pages.parse().ok()).collect()
}

/// The first three numbers of /proc/loadavg.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ")
}
