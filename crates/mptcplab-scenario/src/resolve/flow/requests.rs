//! Requests with responses, and messages, on one lasting connection: the tables `requests` and `messages` of `traffic`.

use super::traffic::{period, poisson, size};
use crate::document::{Item, Res, Table};
use crate::format::{MESSAGES, REQUESTS};
use crate::run::{RequestKind, RequestTimes, Requests};

pub(super) fn requests(item: &Item<'_>) -> Res<Requests> {
    let table = item.table(&REQUESTS)?;
    let times = times(item, &table, "think", |think| {
        think.period().map(RequestTimes::Think)
    })?;
    Ok(Requests {
        kind: RequestKind::Requests,
        size: size(&table.item("request")?)?,
        answer: Some(size(&table.item("response")?)?),
        times,
        count: table.optional("repeat", Item::int)?,
        bound_ns: table.optional("bound", bound)?,
    })
}

pub(super) fn messages(item: &Item<'_>) -> Res<Requests> {
    let table = item.table(&MESSAGES)?;
    let times = times(item, &table, "interval", |interval| {
        period(interval).map(RequestTimes::Interval)
    })?;
    Ok(Requests {
        kind: RequestKind::Messages,
        size: size(&table.item("size")?)?,
        answer: table.optional("answer", size)?,
        times,
        count: table.optional("repeat", Item::int)?,
        bound_ns: Some(bound(&table.item("bound")?)?),
    })
}

/// When requests or messages are sent: at the times that `key` gives, or at random.
fn times(
    item: &Item<'_>,
    table: &Table<'_>,
    key: &str,
    of: impl FnOnce(&Item<'_>) -> Res<RequestTimes>,
) -> Res<RequestTimes> {
    let hint = |what: &str| format!("{what} {key} = \"1 s\" or arrivals = \"10 / s\"");
    match (table.get(key), table.get("arrivals")) {
        (Some(_), Some(arrivals)) => Err(arrivals
            .error(format!("{key} also says when they are sent"))
            .hint(hint("keep one of"))),
        (Some(given), None) => of(&given),
        (None, Some(arrivals)) => poisson(&arrivals).map(|levels| RequestTimes::Poisson { levels }),
        (None, None) => Err(item
            .error(format!(
                "neither {key} nor arrivals says when they are sent"
            ))
            .hint(hint("add"))),
    }
}

fn bound(item: &Item<'_>) -> Res<u64> {
    match item.duration()? {
        0 => Err(item
            .wrong("makes all of them late")
            .hint("write \"100 ms\"")),
        ns => Ok(ns),
    }
}
