//! TCP and MPTCP connections.

use super::context::{Context, Settings, refuse_fields};
use super::subflows::subflows;
use super::traffic;
use super::transport::{check_segment_count, rcv_buffer};
use crate::document::{Item, Res, Table};
use crate::error::{Diagnostic, join};
use crate::format::UDP_FIELDS;
use crate::headers::Dss;
use crate::jitter::MAX_NS as MAX_DELAY_NS;
use crate::registry;
use crate::run::{
    CcConfig, CompSack, Growth, LossRecovery, RcvBuffer, Scheduler, SchedulerKind, Subflow,
    TcpFlow, TcpOptions, Traffic,
};

/// Payload of a full segment: MTU 1500 without IP and TCP headers (40), timestamps (12; RFC 7323 section 3.2) and, with
/// MPTCP, a DSS option of 32-bit numbers (20; RFC 8684 section 3.3). That of upstream Linux takes four bytes more.
const TCP_MSS_BYTES: u32 = 1448;

const MPTCP_MSS_BYTES: u32 = 1428;

pub(super) fn resolve(
    context: &Context<'_>,
    table: &Table<'_>,
    transport: Option<&Item<'_>>,
    copy: Option<u64>,
) -> Res<TcpFlow> {
    refuse_fields(table, UDP_FIELDS, "TCP")?;
    let subflows = subflows(context, table, copy)?;
    let managed = table.get("path_manager");
    let several = subflows.len() > 1 || managed.is_some();
    let mptcp = transport.map_or(several, |item| item.is("mptcp"));
    if let (false, Some(item)) = (mptcp, managed) {
        return Err(item
            .error("a TCP flow has no path manager")
            .hint("remove it, or write transport = \"mptcp\""));
    }
    if let (false, Some(item)) = (mptcp || subflows.len() == 1, transport) {
        return Err(item
            .error(format!(
                "TCP uses one path, but there are {}",
                subflows.len()
            ))
            .hint("write transport = \"mptcp\", or keep one path"));
    }
    let settings = Settings {
        flow: table.clone(),
        common: context.common,
    };
    let mss_bytes = match settings.get("mss") {
        Some(item) => item.size_in(64..=8900)?,
        None if mptcp => MPTCP_MSS_BYTES,
        None => TCP_MSS_BYTES,
    };
    for subflow in &subflows {
        check_segment_count(context, table, subflow, mss_bytes)?;
    }
    let traffic = traffic::of(&table.item("traffic")?, nominal_bps(context, &subflows))?;
    if let Traffic::Transfers(_) = traffic {
        refuse_subflow_times(table, &subflows)?;
    }
    let like = like(&settings)?;
    let flow = TcpFlow {
        mptcp,
        cc: cc(context, table)?,
        scheduler: scheduler(context, table, mptcp)?.or(like.scheduler.filter(|_| mptcp)),
        subflows,
        traffic,
        rcv_buffer: receive_buffer(&settings, &like, mptcp, mss_bytes)?,
        mss_bytes,
        options: options(&settings, &like)?,
    };
    check_recovery(&settings, &flow)?;
    Ok(flow)
}

/// The flow's own buffer or the kernel's. That of an MPTCP connection grows and is announced as the kernel's is.
fn receive_buffer(
    settings: &Settings<'_>,
    like: &Like,
    mptcp: bool,
    mss_bytes: u32,
) -> Res<RcvBuffer> {
    let buffer = match (settings.get("rcv_buffer"), like.rcv_buffer) {
        (None, Some(buffer)) => buffer,
        _ => rcv_buffer(&settings.item("rcv_buffer")?, mss_bytes)?,
    };
    Ok(match buffer {
        RcvBuffer::Auto { max_bytes, .. } if mptcp => RcvBuffer::Auto {
            max_bytes,
            growth: like.growth,
        },
        RcvBuffer::Fixed(bytes) if mptcp && like.growth == Growth::Linux7_3 => {
            RcvBuffer::FixedMemory(bytes)
        }
        buffer => buffer,
    })
}

/// Refuses Tahoe, Reno and NewReno recovery with an algorithm that controls its own rate, because both set the window.
fn check_recovery(settings: &Settings<'_>, flow: &TcpFlow) -> Res<()> {
    let rate_based =
        mptcplab_cc::find(&flow.cc.name).is_some_and(mptcplab_cc::Algorithm::has_cong_control);
    if !rate_based || flow.options.recovery == LossRecovery::Sack {
        return Ok(());
    }
    let item = settings.item("recovery")?;
    Err(item
        .wrong(format!(
            "sets the window, and so does {}, which controls its own rate",
            flow.cc.name
        ))
        .hint("use \"sack\", or a congestion control that only answers losses"))
}

fn cc(context: &Context<'_>, table: &Table<'_>) -> Res<CcConfig> {
    if let Some(item) = table.get("cc") {
        return registry::algorithm::resolve(&item);
    }
    match context.top.get("cc") {
        Some(item) => {
            context.used_cc.set(true);
            registry::algorithm::resolve(&item)
        }
        None => Err(Diagnostic::new(
            table.origin,
            join(&table.path, "cc"),
            "missing: neither the flow nor the scenario names a congestion control",
        )
        .hint("add cc = \"lia\" to the flow, or at the top of the file for all flows")),
    }
}

/// Linux's default of `tcp_rmem[2]`, the largest automatic receive buffer, since 6.16.
const LINUX_RMEM_MAX_BYTES: u64 = 32 << 20;
/// Linux's default of `net.ipv4.tcp_syn_linear_timeouts`, since 6.5 (ccce324dabfe).
const LINUX_LINEAR_SYN_TIMEOUTS: u32 = 4;

/// What a kernel does where the scenario says nothing.
#[derive(Default)]
struct Like {
    scheduler: Option<Scheduler>,
    tso: Option<bool>,
    comp_sack: Option<CompSack>,
    linear_syn_timeouts: u32,
    dss: Dss,
    rcv_buffer: Option<RcvBuffer>,
    growth: Growth,
}

fn like(settings: &Settings<'_>) -> Res<Like> {
    let item = settings.item("like")?;
    if item.is("none") {
        return Ok(Like::default());
    }
    let (growth, comp_sack) = if item.is("linux-6.18") {
        (Growth::Linux6_18, CompSack::Linux4_18)
    } else if item.is("linux-7.3") {
        (Growth::Linux7_3, CompSack::Linux6_19)
    } else {
        return Err(item.wrong("is not a kernel that the simulator can behave as"));
    };
    Ok(Like {
        scheduler: Some(Scheduler::new(SchedulerKind::Linger)),
        tso: Some(true),
        comp_sack: Some(comp_sack),
        linear_syn_timeouts: LINUX_LINEAR_SYN_TIMEOUTS,
        dss: Dss::Linux,
        rcv_buffer: Some(RcvBuffer::Auto {
            max_bytes: LINUX_RMEM_MAX_BYTES,
            growth: Growth::default(),
        }),
        growth,
    })
}

fn scheduler(context: &Context<'_>, table: &Table<'_>, mptcp: bool) -> Res<Option<Scheduler>> {
    let item = match table.get("scheduler") {
        Some(item) if !mptcp => {
            return Err(item
                .error("a TCP flow has no packet scheduler")
                .hint("remove it, or write transport = \"mptcp\""));
        }
        Some(item) => item,
        None => {
            context
                .used_scheduler
                .set(context.used_scheduler.get() || mptcp);
            match context.top.get("scheduler") {
                Some(item) => item,
                None => return Ok(None),
            }
        }
    };
    registry::scheduler::resolve(&item).map(Some)
}

/// The lowest rate on the first path at the beginning of the run.
fn nominal_bps(context: &Context<'_>, subflows: &[Subflow]) -> u64 {
    let links = subflows.first().map_or(&[][..], |first| &first.path);
    let rates = links
        .iter()
        .map(|&link| context.network.links[link].config.rate_bps);
    rates.min().unwrap_or(0)
}

/// Refuses start and stop times of subflows: every transfer opens all its subflows when it begins.
fn refuse_subflow_times(table: &Table<'_>, subflows: &[Subflow]) -> Res<()> {
    let timed =
        |s: &&Subflow| s.start_ns.is_some() || s.stop_ns.is_some() || !s.priorities.is_empty();
    match subflows.iter().find(timed) {
        None => Ok(()),
        Some(subflow) => Err(table
            .error(
                "subflows",
                format!(
                    "subflow {} has a time, but every transfer opens its own subflows",
                    subflow.name
                ),
            )
            .hint("remove start and stop of the subflow")),
    }
}

fn recovery(settings: &Settings<'_>) -> Res<LossRecovery> {
    let item = settings.item("recovery")?;
    let found = LossRecovery::ALL.into_iter().find(|r| item.is(r.name()));
    found.ok_or_else(|| item.wrong("is not a loss recovery"))
}

fn send_jitter_ns(settings: &Settings<'_>) -> Res<Option<u64>> {
    let item = settings.item("send_jitter")?;
    if item.is("auto") {
        return Ok(None);
    }
    short(&item).map(Some)
}

/// A delay before a packet is sent.
fn short(item: &Item<'_>) -> Res<u64> {
    match item.duration()? {
        ns if ns <= MAX_DELAY_NS => Ok(ns),
        _ => Err(item.wrong("is out of range").hint("at most \"1 s\"")),
    }
}

fn options(settings: &Settings<'_>, like: &Like) -> Res<TcpOptions> {
    let flag = |key| settings.item(key)?.boolean();
    let given = |key| settings.get(key).map(|i| i.boolean()).transpose();
    let unless = |key, word| match settings.item(key)? {
        item if item.is(word) => Ok(None),
        item => item.packets().map(Some),
    };
    let stale_after = settings.get("stale_after").map(|i| i.int()).transpose()?;
    Ok(TcpOptions {
        initial_cwnd_pkts: settings.item("initial_cwnd")?.packets()?,
        initial_ssthresh_pkts: unless("initial_ssthresh", "infinite")?,
        ecn: flag("ecn")?,
        recovery: recovery(settings)?,
        pacing: flag("pacing")?,
        slow_start_after_idle: flag("slow_start_after_idle")?,
        reinject: flag("reinject")?,
        // At most 255, by its type.
        stale_after: stale_after.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        send_jitter_ns: send_jitter_ns(settings)?,
        host_delay_ns: short(&settings.item("host_delay")?)?,
        tso: given("tso")?.or(like.tso),
        nagle: flag("nagle")?,
        comp_sack: match given("comp_sack")? {
            Some(false) => Some(CompSack::Off),
            Some(true) => like.comp_sack.or(Some(CompSack::Linux6_19)),
            None => like.comp_sack,
        },
        linear_syn_timeouts: like.linear_syn_timeouts,
        dss: like.dss,
        cwnd_clamp_pkts: unless("cwnd_clamp", "none")?,
    })
}
