//! SCTP associations with concurrent multipath transfer.

use super::context::{Context, Settings, refuse_fields};
use super::subflows::subflows;
use super::traffic;
use super::transport::{check_segment_count, rcv_buffer};
use crate::document::{Res, Table};
use crate::format::{SCTP_KEYS, SUBFLOW, TCP_FIELDS, UDP_FIELDS};
use crate::run::{RcvBuffer, SctpFlow, Traffic};

/// MTU 1500 without IP header (20), SCTP common header (12) and DATA chunk header (16; RFC 9260 section 3).
const SCTP_MSS_BYTES: u32 = 1452;

pub(super) fn resolve(
    context: &Context<'_>,
    table: &Table<'_>,
    copy: Option<u64>,
) -> Res<SctpFlow> {
    refuse_fields(table, UDP_FIELDS, "SCTP")?;
    refuse_tcp_settings(table)?;
    let destinations = subflows(context, table, copy)?;
    let settings = Settings {
        flow: table.clone(),
        common: &[],
    };
    let mss_bytes = match settings.get("mss") {
        Some(item) => item.size_in(64..=8900)?,
        None => SCTP_MSS_BYTES,
    };
    for destination in &destinations {
        check_segment_count(context, table, destination, mss_bytes)?;
    }
    let buffer = settings.item("rcv_buffer")?;
    let rcv_buffer = rcv_buffer(&buffer, mss_bytes)?;
    if let RcvBuffer::Auto { .. } = rcv_buffer {
        return Err(buffer
            .error("an SCTP flow's receive buffer does not grow")
            .hint("write a size, or \"unlimited\""));
    }
    let traffic = table.item("traffic")?;
    Ok(SctpFlow {
        destinations,
        traffic: match traffic::of(&traffic, 0)? {
            kind @ (Traffic::Bulk | Traffic::Size { .. }) => kind,
            Traffic::OnOff { .. }
            | Traffic::Transfers(_)
            | Traffic::Video(_)
            | Traffic::Requests(_) => {
                return Err(traffic
                    .error("an SCTP flow is bulk or has a size")
                    .hint("write \"bulk\" or { size = \"10 MB\" }"));
            }
        },
        rcv_buffer,
        mss_bytes,
    })
}

/// Refuses settings of TCP and MPTCP flows that SCTP flows do not have.
fn refuse_tcp_settings(table: &Table<'_>) -> Res<()> {
    let tcp_only = |key: &str| TCP_FIELDS.iter().any(|f| f.key == key) && !SCTP_KEYS.contains(&key);
    for entry in table.entries {
        let hint = match entry.key.as_str() {
            "cc" | "scheduler" => "SCTP has its own; remove it",
            "path_manager" | "subflows_per_path" => "all its paths are used; write paths = [...]",
            key if tcp_only(key) => "it is a setting of TCP and MPTCP flows; remove it",
            _ => continue,
        };
        let message = format!("an SCTP flow has no {}", entry.key);
        return Err(table.key_error(entry, message).hint(hint));
    }
    let Some(list) = table.get("subflows") else {
        return Ok(());
    };
    for item in list.list()? {
        let subflow = item.table(&SUBFLOW)?;
        for key in ["start", "stop", "backup", "priority"] {
            if let Some(item) = subflow.get(key) {
                return Err(item
                    .error(format!("a destination of an SCTP flow has no {key}"))
                    .hint("all its paths are used from the beginning to the end"));
            }
        }
    }
    Ok(())
}
