//! The settings of a scenario that this engine does not support. No setting is ignored silently: the error names the
//! key, the value and the reason.

use super::ways::header_bytes;
use super::{Buffer, address, capacity, paths, receive_buffer, tcp};
use mptcplab_scenario::{
    CMT_SCTP, CompSack, Flow, Growth, LossRecovery, Profile, RcvBuffer, Run, SchedulerKind,
    TcpFlow, Transport,
};
use std::collections::BTreeMap;

/// A setting that this engine does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnsupportedSetting {
    /// The keys under which the setting may be written in the scenario, the most specific one first.
    pub(crate) keys: Vec<String>,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Most nodes where flows begin or end: each is a namespace, and one thread serves all their devices.
const MAX_HOSTS: usize = 64;
/// Most directed links: the same thread looks at each of them for every packet.
const MAX_LINKS: usize = 128;
/// Most flows: each has two threads.
const MAX_FLOWS: usize = 256;
/// Share of a processor that the emulator may need; the rest is reserved for bursts and for punctual releases.
const MAX_LOAD: f64 = 0.75;
/// Shortest interval between samples: each queries the kernel about every subflow.
const MIN_SAMPLE_NS: u64 = 1_000_000;
/// Receive buffers are signed 32-bit numbers in the kernel.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

/// All settings of a run that this engine does not support.
pub(crate) fn unsupported_settings(run: &Run) -> Vec<UnsupportedSetting> {
    let mut found = Vec::new();
    size(run, &mut found);
    for flow in run.flows.iter() {
        match &flow.transport {
            Transport::Tcp(tcp) => options(run, flow, tcp, &mut found),
            Transport::Sctp(_) => found.push(unsupported(
                keys(flow, "transport"),
                format!(
                    "\"{CMT_SCTP}\": Linux's SCTP cannot send over several paths at once (it has no CMT)"
                ),
                SIMULATE,
            )),
            Transport::Udp(_) => {}
        }
    }
    shared_settings(run, &mut found);
    found
}

fn unsupported(
    keys: Vec<String>,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> UnsupportedSetting {
    UnsupportedSetting {
        keys,
        message: message.into(),
        hint: hint.into(),
    }
}

/// The keys under which a setting of a flow may be written.
fn keys(flow: &Flow, key: &str) -> Vec<String> {
    let mut names = vec![flow.name.as_str()];
    // A flow with a count is written once, without its number.
    if let Some((stem, number)) = flow.name.rsplit_once('-') {
        if number.bytes().all(|b| b.is_ascii_digit()) {
            names.push(stem);
        }
    }
    let mut keys: Vec<String> = names
        .iter()
        .map(|name| format!("flows.{name}.{key}"))
        .collect();
    keys.push(format!("tcp.{key}"));
    keys.push(key.to_owned());
    keys.extend(names.iter().map(|name| format!("flows.{name}")));
    keys
}

const SIMULATE: &str = "the simulator runs it: leave --engine kernel out";

fn size(run: &Run, found: &mut Vec<UnsupportedSetting>) {
    let mut bound = |key: &str, count: usize, max: usize, what: &str| {
        if count > max {
            let message = format!("{count} {what}; the kernel engine supports at most {max}");
            found.push(unsupported(vec![key.into()], message, SIMULATE));
        }
    };
    bound(
        "nodes",
        super::hosts(run).len(),
        MAX_HOSTS,
        "nodes where flows begin or end",
    );
    bound(
        "links",
        run.links.len(),
        MAX_LINKS,
        "directed links (a link and its return direction are two)",
    );
    bound("flows", run.flows.len(), MAX_FLOWS, "flows");
    let subflows = run.flows.iter().map(|flow| paths(flow).len()).sum();
    bound("flows", subflows, address::MAX_ADDRESSES, "subflows");
    if let Some(sample_ns) = run.sample_ns.filter(|ns| *ns < MIN_SAMPLE_NS) {
        let message = format!(
            "{} us is too short an interval: each sample queries the kernel about every subflow",
            sample_ns / 1000
        );
        found.push(unsupported(
            vec!["sample".into()],
            message,
            "use at least \"1 ms\"; per_ack = true records every ACK",
        ));
    }
    let load = capacity::emulator_load(run);
    if load > MAX_LOAD {
        let message = format!(
            "the flows could keep the links so busy that moving their packets takes {:.0} % of a processor; \
             the links are punctual up to {:.0} %",
            load * 100.0,
            MAX_LOAD * 100.0
        );
        let hint = "reduce the rates (to about 600 Mbit/s in total), or simulate it";
        found.push(unsupported(vec!["links".into()], message, hint));
    }
}

fn options(run: &Run, flow: &Flow, tcp: &TcpFlow, found: &mut Vec<UnsupportedSetting>) {
    let mut no = |key: &str, message: String, hint: &str| {
        found.push(unsupported(keys(flow, key), message, hint))
    };
    let options = &tcp.options;
    if let Some(scheduler) = tcp
        .scheduler
        .filter(|s| tcp.mptcp && s.kind() != SchedulerKind::Linger)
    {
        let message = format!(
            "\"{scheduler}\": the kernel has only one packet scheduler, which is called \"linger\" here, and accepts no other from eBPF",
        );
        no(
            "scheduler",
            message,
            "leave scheduler out, or write --set scheduler=linger",
        );
    }
    if let Some(packets) = options.initial_ssthresh_pkts {
        let message = format!(
            "{packets} packets: the kernel takes the initial ssthresh only from earlier connections"
        );
        no("initial_ssthresh", message, "leave it out (infinite)");
    }
    if let Some(packets) = options.cwnd_clamp_pkts {
        let message = format!(
            "{packets} packets: the kernel takes a limit of the window only from earlier connections"
        );
        no(
            "cwnd_clamp",
            message,
            "leave it out; rcv_buffer limits the data in flight",
        );
    }
    if options.recovery != LossRecovery::Sack {
        let message = format!(
            "\"{}\": the kernel recovers with SACK and RACK and offers no other recovery",
            options.recovery.name()
        );
        no("recovery", message, SIMULATE);
    }
    if tcp.mptcp && !options.reinject {
        no(
            "reinject",
            "false: the kernel's MPTCP always reinjects".into(),
            "leave it out",
        );
    }
    if options.tso == Some(false) {
        no(
            "tso",
            "false: the kernel's TCP always sends groups of segments (TSO)".into(),
            "leave it out",
        );
    }
    if options.comp_sack == Some(CompSack::Off) {
        no(
            "comp_sack",
            "false: the kernel compresses ACKs while segments are missing".into(),
            "leave it out",
        );
    }
    if let Some(ns) = options.send_jitter_ns.filter(|&ns| ns > 0) {
        let message = format!(
            "{} us: a real kernel has its own jitter, to which none can be added",
            ns / 1000
        );
        no(
            "send_jitter",
            message,
            "leave it out, write --set 'tcp.send_jitter=0 s' (or set it in the flow), or simulate it",
        );
    }
    if options.host_delay_ns > 0 {
        let message = format!(
            "{} us: real hosts take time of their own, to which none can be added",
            options.host_delay_ns / 1000
        );
        no("host_delay", message, "leave it out, or simulate it");
    }
    // The MTU of a route is at most that of its device.
    let largest = super::DEVICE_MTU - header_bytes(tcp.mptcp);
    if tcp.mss_bytes > largest {
        no(
            "mss",
            format!("{} bytes exceed the MTU of the devices", tcp.mss_bytes),
            &format!("use at most {largest} bytes"),
        );
    }
    let Buffer { max, .. } = receive_buffer(tcp);
    if max > MAX_BUFFER_BYTES {
        let message = format!("{max} bytes of memory are more than the kernel can count");
        no(
            "rcv_buffer",
            message,
            "use at most 600 MB, or \"unlimited\"",
        );
    }
    if options.pacing && tcp.mptcp && tcp.cc.kernel_name().is_some() {
        let message = format!("true: the kernel cannot pace MPTCP under {}", tcp.cc.name);
        no(
            "pacing",
            message,
            "use an algorithm of mptcplab, such as olia",
        );
    }
    if run.profile == Profile::LinuxPre4 && tcp.cc.kernel_name().is_some() {
        let message = format!(
            "linux-pre4: {} belongs to the running kernel, which counts acknowledged segments",
            tcp.cc.name
        );
        no(
            "profile",
            message,
            "use an algorithm of mptcplab, such as olia, or another profile",
        );
    }
}

/// Whether two flows ask for different receive buffers, or for buffers whose memory differs by more than an eighth. How a
/// buffer grows and is announced is not asked for: in one kernel, it depends on whether the connection is MPTCP or TCP.
fn differ(one: &TcpFlow, other: &TcpFlow) -> bool {
    let asked = |tcp: &TcpFlow| match tcp.rcv_buffer {
        RcvBuffer::Auto { max_bytes, .. } => RcvBuffer::Auto {
            max_bytes,
            growth: Growth::default(),
        },
        RcvBuffer::FixedMemory(bytes) => RcvBuffer::Fixed(bytes),
        buffer => buffer,
    };
    let (a, b) = (receive_buffer(one).max, receive_buffer(other).max);
    asked(one) != asked(other) || 8 * a.abs_diff(b) > a.max(b)
}

/// Refuses different values of settings that a namespace has only once.
fn shared_settings(run: &Run, found: &mut Vec<UnsupportedSetting>) {
    let mut buffers: BTreeMap<usize, (&str, &TcpFlow)> = BTreeMap::new();
    let mut idles: BTreeMap<usize, (&str, bool)> = BTreeMap::new();
    let mut stales: BTreeMap<usize, (&str, Option<u32>)> = BTreeMap::new();
    for flow in run.flows.iter() {
        let Some(tcp) = tcp(flow) else { continue };
        let [from, to] = super::ends(run, flow);
        let (other, first) = *buffers.entry(to).or_insert((&flow.name, tcp));
        if differ(first, tcp) {
            let message = format!(
                "flows {other} and {} end at node \"{}\" with different receive buffers (in memory, for segments of {} and {} bytes); \
                 a kernel has one setting per host",
                flow.name, run.nodes[to], first.mss_bytes, tcp.mss_bytes
            );
            found.push(unsupported(
                keys(flow, "rcv_buffer"),
                message,
                "use the same value for both, or let them end at different nodes",
            ));
        }
        let idle = tcp.options.slow_start_after_idle;
        let (other, before) = *idles.entry(from).or_insert((&flow.name, idle));
        if before != idle {
            let message = format!(
                "flows {other} and {} begin at node \"{}\" with different values; a kernel has one setting per host",
                flow.name, run.nodes[from]
            );
            let hint = "use the same value for both, or let them begin at different nodes";
            found.push(unsupported(
                keys(flow, "slow_start_after_idle"),
                message,
                hint,
            ));
        }
        if !tcp.mptcp {
            continue;
        }
        let stale = tcp.options.stale_after;
        let (other, before) = *stales.entry(from).or_insert((&flow.name, stale));
        if before != stale {
            let message = format!(
                "flows {other} and {} begin at node \"{}\" with different values; a kernel has one setting per host",
                flow.name, run.nodes[from]
            );
            let hint = "use the same value for both, or let them begin at different nodes";
            found.push(unsupported(keys(flow, "stale_after"), message, hint));
        }
    }
}
