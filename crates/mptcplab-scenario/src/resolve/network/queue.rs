//! Queue sizes, which may depend on the paths over a link.

use crate::document::{Item, Res};
use crate::error::{Diagnostic, Origin};
use crate::files::MTU_BYTES;
use crate::format::TRACE_OVERHEAD_BYTES;
use crate::run::{Flow, Link, largest_base_rtts_ns};
use crate::units::QueueSize;
use mptcplab_model::link::QueueLimit;

/// A full packet without layer-2 overhead.
const FULL_PACKET_BYTES: u64 = 1500;

/// A queue whose size may still depend on the paths over its link.
#[derive(Clone)]
pub(super) struct DraftQueue {
    /// `None`: unlimited.
    size: Option<QueueSize>,
    /// Place, key and text of the value, for errors.
    origin: Origin,
    key: String,
    written: String,
}

impl DraftQueue {
    pub(super) fn new(item: &Item<'_>) -> Res<Self> {
        Ok(Self {
            size: match item.is("unlimited") {
                true => None,
                false => Some(item.queue()?),
            },
            origin: item.value.origin,
            key: item.path.clone(),
            written: item.value.quoted(),
        })
    }
}

/// Converts queue sizes given as time or BDP to packets or bytes.
pub(super) fn resolve(links: &mut [Link], drafts: &[DraftQueue], flows: &[Flow]) -> Res<()> {
    let base_rtts = largest_base_rtts_ns(links, flows);
    for ((link, draft), base_rtt_ns) in links.iter_mut().zip(drafts).zip(base_rtts) {
        link.config.queue = limit(link, draft, base_rtt_ns)?;
    }
    Ok(())
}

fn limit(link: &Link, draft: &DraftQueue, base_rtt_ns: Option<u64>) -> Res<QueueLimit> {
    let config = &link.config;
    let frame_bytes = FULL_PACKET_BYTES + u64::from(config.overhead_bytes);
    let written = &draft.written;
    let error = |message: String| Diagnostic::new(draft.origin, &draft.key, message);
    let bytes = match draft.size {
        None => return Ok(QueueLimit::Unlimited),
        Some(QueueSize::Fixed(QueueLimit::Bytes(bytes))) => bytes,
        Some(QueueSize::Fixed(limit)) => return Ok(limit),
        Some(QueueSize::Bdp(factor)) => {
            let base_rtt_ns = base_rtt_ns.ok_or_else(|| {
                error(format!(
                    "{written}, but no TCP path crosses \"{}\", so it has no RTT",
                    link.name
                ))
                .hint("write the size in packets, e.g. \"100 packets\"")
            })?;
            let packets = factor.packets(config.rate_bps, base_rtt_ns, frame_bytes);
            let packets = packets.and_then(|p| u32::try_from(p).ok());
            return packets.map(QueueLimit::Packets).ok_or_else(|| {
                error(format!("{written} is more than 4 billion packets"))
                    .hint("lower rate, delay or factor")
            });
        }
        Some(QueueSize::Nanoseconds(ns)) => {
            let bits_times_ns = u128::from(config.rate_bps) * u128::from(ns);
            u64::try_from(bits_times_ns.div_ceil(8_000_000_000)).unwrap_or(u64::MAX)
        }
    };
    match bytes >= frame_bytes {
        true => Ok(QueueLimit::Bytes(bytes)),
        false => Err(error(format!(
            "{written} is {bytes} bytes, less than one full packet ({frame_bytes} bytes)"
        ))
        .hint("a queue holds at least one packet")),
    }
}

const _: () = assert!(
    MTU_BYTES == FULL_PACKET_BYTES + TRACE_OVERHEAD_BYTES as u64,
    "an opportunity of a trace lets exactly one full packet leave"
);
