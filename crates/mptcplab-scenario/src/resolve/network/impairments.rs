//! Delay, random loss and reordering.

use crate::document::{Item, Res, Table, Value};
use crate::error::join;
use crate::format::{GILBERT_ELLIOTT, REORDER};
use mptcplab_model::link::{Loss, Reorder};

/// Largest propagation delay: an hour. A larger one is probably in another unit.
const MAX_DELAY_NS: u64 = 3_600_000_000_000;

pub(super) fn delay_ns(item: &Item<'_>) -> Res<u64> {
    match item.duration()? {
        ns if ns <= MAX_DELAY_NS => Ok(ns),
        _ => Err(item.wrong("is out of range").hint("a delay is at most 1 h")),
    }
}

pub(super) fn loss(item: &Item<'_>) -> Res<Loss> {
    if !item.is_table() {
        return Ok(match item.percent()? {
            0.0 => Loss::None,
            p => Loss::Bernoulli { p },
        });
    }
    let table = Table {
        spec: &GILBERT_ELLIOTT,
        entries: item
            .value
            .get("gilbert_elliott")
            .and_then(Value::as_table)
            .unwrap_or_default(),
        path: join(&item.path, "gilbert_elliott"),
        origin: item.key_origin,
    };
    let percent = |key| table.item(key)?.percent();
    Ok(Loss::GilbertElliott {
        p: percent("p")?,
        r: percent("r")?,
        loss_good: percent("loss_good")?,
        loss_bad: percent("loss_bad")?,
    })
}

/// `None` if the probability is 0, because such a link reorders nothing.
pub(super) fn reorder(item: &Item<'_>) -> Res<Option<Reorder>> {
    let table = item.table(&REORDER)?;
    let probability = table.item("probability")?.percent()?;
    let delay = table.item("delay")?;
    let (min_extra_delay_ns, max_extra_delay_ns) = delay.span()?;
    if max_extra_delay_ns == 0 {
        return Err(delay
            .wrong("holds up nothing")
            .hint("write how much longer a chosen packet takes, e.g. \"5 ms\""));
    }
    if max_extra_delay_ns > MAX_DELAY_NS {
        return Err(delay
            .wrong("is out of range")
            .hint("a delay is at most 1 h"));
    }
    Ok((probability > 0.0).then_some(Reorder {
        probability,
        min_extra_delay_ns,
        max_extra_delay_ns,
    }))
}
