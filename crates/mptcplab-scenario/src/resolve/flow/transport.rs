//! Settings that TCP and SCTP have in common.

use super::context::Context;
use crate::document::{Item, Res, Table};
use crate::error::{Diagnostic, join};
use crate::run::{Growth, RcvBuffer, Subflow};

/// Segments are counted in 32 bits and compared by signed difference.
const MAX_SEGMENTS: u128 = 1 << 31;

pub(super) fn check_segment_count(
    context: &Context<'_>,
    table: &Table<'_>,
    subflow: &Subflow,
    mss_bytes: u32,
) -> Res<()> {
    let fastest = |&link: &usize| {
        let config = &context.network.links[link].config;
        let later = config
            .schedule
            .iter()
            .filter_map(|change| change.rate_bps)
            .max();
        config.rate_bps.max(later.unwrap_or(0))
    };
    let Some(rate_bps) = subflow.path.iter().map(fastest).min() else {
        return Ok(());
    };
    let bits = u128::from(rate_bps) * u128::from(context.duration_ns) / 1_000_000_000;
    match bits / (8 * u128::from(mss_bytes)) < MAX_SEGMENTS {
        true => Ok(()),
        false => Err(Diagnostic::new(
            table.origin,
            &table.path,
            format!(
                "subflow {} could carry more than 2^31 segments in this run",
                subflow.name
            ),
        )
        .hint("shorten duration, lower the rate or raise mss")),
    }
}

pub(super) fn rcv_buffer(item: &Item<'_>, mss_bytes: u32) -> Res<RcvBuffer> {
    let at_least_two = |item: &Item<'_>| match item.size()? {
        bytes if bytes >= 2 * u64::from(mss_bytes) => Ok(bytes),
        _ => Err(item
            .wrong("does not hold two segments")
            .hint(format!("at least \"{} bytes\"", 2 * mss_bytes))),
    };
    if item.is("unlimited") {
        return Ok(RcvBuffer::Unlimited);
    }
    if !item.is_table() {
        return at_least_two(item).map(RcvBuffer::Fixed);
    }
    let auto = Item {
        value: std::borrow::Cow::Borrowed(item.value.get("auto").unwrap_or(&item.value)),
        key_origin: item.key_origin,
        path: join(&item.path, "auto"),
    };
    at_least_two(&auto).map(|max_bytes| RcvBuffer::Auto {
        max_bytes,
        growth: Growth::default(),
    })
}
