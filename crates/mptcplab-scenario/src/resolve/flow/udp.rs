//! UDP streams.

use super::context::{Context, refuse_fields};
use super::subflows::check_ends;
use super::{path, traffic};
use crate::document::{Res, Table};
use crate::error::{Diagnostic, join};
use crate::format::{DEFAULT_UDP_PACKET_BYTES, TCP_FIELDS};
use crate::run::{Traffic, UdpFlow};

pub(super) fn resolve(context: &Context<'_>, table: &Table<'_>, copy: Option<u64>) -> Res<UdpFlow> {
    refuse_fields(table, TCP_FIELDS, "UDP")?;
    for key in [
        "cc",
        "scheduler",
        "subflows",
        "paths",
        "path_manager",
        "subflows_per_path",
    ] {
        if let Some(item) = table.get(key) {
            return Err(item
                .error(format!("a UDP flow has no {key}"))
                .hint("it has one path = [...] and a rate"));
        }
    }
    let Some(path) = table.get("path") else {
        return Err(table.missing("path"));
    };
    let links = path::resolve(context.network, &path, copy)?;
    check_ends(context, table, &path, &links)?;
    let Some(rate) = table.get("rate") else {
        return Err(table.missing("rate"));
    };
    let rate_bps = match rate.rate()? {
        0 => {
            return Err(rate.wrong("sends nothing").hint("write \"1 Mbit/s\""));
        }
        rate => rate,
    };
    let traffic = table.item("traffic")?;
    let on_off = match traffic::of(&traffic, 0)? {
        Traffic::Bulk => None,
        Traffic::OnOff { on, off } => Some((on, off)),
        Traffic::Size { .. } | Traffic::Transfers(_) => {
            let error = Diagnostic::new(
                traffic.value.origin,
                join(&traffic.path, "size"),
                "a UDP flow has no size",
            );
            return Err(error.hint("set stop, or on and off"));
        }
        Traffic::Video(_) => {
            return Err(traffic
                .error("a UDP flow has no video")
                .hint("a video measures its throughput over TCP or MPTCP"));
        }
        Traffic::Requests(_) => {
            return Err(traffic
                .error("a UDP flow has no connection for requests or messages")
                .hint(
                    "write transport = \"tcp\" or \"mptcp\" without rate and packet, or on and off",
                ));
        }
    };
    let packet_bytes = table.optional("packet", |item| item.size_in(28..=9000))?;
    Ok(UdpFlow {
        rate_bps,
        packet_bytes: packet_bytes.unwrap_or(DEFAULT_UDP_PACKET_BYTES),
        path: links,
        on_off,
    })
}
