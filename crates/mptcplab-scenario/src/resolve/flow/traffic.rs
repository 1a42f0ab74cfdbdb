//! The traffic of an application: the table `traffic`.

use super::requests;
use crate::document::{Item, Res, Table};
use crate::error::Diagnostic;
use crate::format::{ARRIVAL_LEVELS, LEVEL, SIZE_LAW, TRAFFIC, VIDEO, VIDEO_LADDER_BPS};
use crate::run::{
    ArrivalRate, Arrivals, DurationDistribution, SizeDistribution, Traffic, Transfers, Video,
};
use crate::units::display;

/// Share of the nominal rate that a video expects before its first measurement, 4/10 (an assumption of this lab).
const FIRST_ESTIMATE: (u64, u64) = (4, 10);
/// Shortest period and level. Without a bound, periods of length zero would alternate forever at one instant.
const LEAST_NS: u64 = 1_000_000;

/// The traffic of a flow. `nominal_bps` is the rate of its path, from which a video makes its first estimate.
pub(super) fn of(item: &Item<'_>, nominal_bps: u64) -> Res<Traffic> {
    if item.is("video") {
        let table = Table::empty(&VIDEO, item.path.clone(), item.key_origin);
        return video(&table, nominal_bps).map(Traffic::Video);
    }
    if !item.is_table() {
        return Ok(Traffic::Bulk);
    }
    let table = item.table(&TRAFFIC)?;
    let keys: Vec<&str> = TRAFFIC
        .fields()
        .map(|f| f.key)
        .filter(|key| table.get(key).is_some())
        .collect();
    match keys.as_slice() {
        ["size"] => once(&table),
        ["size", "arrivals"] => {
            let levels = poisson(&table.item("arrivals")?)?;
            transfers(&table, Arrivals::Poisson { levels })
        }
        ["size", "gap"] | ["size", "gap", "repeat"] => {
            let count = table.optional("repeat", Item::int)?;
            let gap = table.item("gap")?.period()?;
            transfers(&table, Arrivals::Repeat { gap, count })
        }
        ["on", "off"] => Ok(Traffic::OnOff {
            on: period(&table.item("on")?)?,
            off: period(&table.item("off")?)?,
        }),
        ["video"] => video(&table.item("video")?.table(&VIDEO)?, nominal_bps).map(Traffic::Video),
        ["requests"] => requests::requests(&table.item("requests")?).map(Traffic::Requests),
        ["messages"] => requests::messages(&table.item("messages")?).map(Traffic::Requests),
        [_, .., alone @ ("requests" | "messages")] => {
            let message = format!("{alone} does not go together with {}", keys[0]);
            Err(table.error(alone, message).hint("keep one of them"))
        }
        _ => Err(
            Diagnostic::new(item.key_origin, &item.path, incomplete(&keys)).hint(
                "write { size = \"10 MB\" }, { size = \"200 kB\", arrivals = \"10 / s\" }, \
                 { size = \"1 MB\", gap = \"1 s\" }, { on = \"5 s\", off = \"1 s\" }, { video = {} }, \
                 { requests = { response = \"30 kB\", think = \"1 s\" } } or \
                 { messages = { size = \"100 bytes\", interval = \"50 ms\" } }",
            ),
        ),
    }
}

fn incomplete(keys: &[&str]) -> String {
    match keys {
        [] => "an empty table describes no traffic".into(),
        keys => format!("{} alone describes no traffic", keys.join(" and ")),
    }
}

fn once(table: &Table<'_>) -> Res<Traffic> {
    let item = table.item("size")?;
    match size(&item)? {
        SizeDistribution::Fixed { bytes } => Ok(Traffic::Size { bytes }),
        _ => Err(item
            .error("one transfer has a fixed size")
            .hint("write \"10 MB\", or add arrivals or gap for transfers of random size")),
    }
}

fn transfers(table: &Table<'_>, arrivals: Arrivals) -> Res<Traffic> {
    let size = size(&table.item("size")?)?;
    Ok(Traffic::Transfers(Transfers { size, arrivals }))
}

pub(super) fn size(item: &Item<'_>) -> Res<SizeDistribution> {
    if !item.is_table() {
        return positive(item).map(|bytes| SizeDistribution::Fixed { bytes });
    }
    let table = item.table(&SIZE_LAW)?;
    let mean_bytes = positive(&table.item("mean")?)?;
    let most = table.item("most")?;
    let max_bytes = positive(&most)?;
    if max_bytes < mean_bytes {
        return Err(most
            .wrong("is less than the mean")
            .hint("write a larger size"));
    }
    if table.item("law")?.is("exponential") {
        if let Some(shape) = table.get("shape") {
            return Err(shape
                .error("an exponential law has no shape")
                .hint("remove it, or write law = \"pareto\""));
        }
        return Ok(SizeDistribution::Exponential {
            mean_bytes,
            max_bytes,
        });
    }
    Ok(SizeDistribution::Pareto {
        mean_bytes,
        shape: table.item("shape")?.number()?,
        max_bytes,
    })
}

fn positive(item: &Item<'_>) -> Res<u64> {
    match item.size()? {
        0 => Err(item
            .wrong("is nothing to send")
            .hint("write a size above 0, such as \"10 kB\"")),
        bytes => Ok(bytes),
    }
}

/// The rate of a Poisson process over time.
pub(super) fn poisson(item: &Item<'_>) -> Res<Vec<ArrivalRate>> {
    let levels = if item.is_table() {
        let table = item.table(&ARRIVAL_LEVELS)?;
        let levels = table.item("levels")?;
        let items = levels.list()?;
        items.iter().map(level).collect::<Res<Vec<_>>>()?
    } else {
        vec![ArrivalRate {
            per_1000_min: item.arrivals()?,
            lasts_ns: u64::MAX,
        }]
    };
    if levels.iter().all(|level| level.per_1000_min == 0) {
        return Err(item.error("nothing ever arrives").hint("write \"10 / s\""));
    }
    Ok(levels)
}

fn level(item: &Item<'_>) -> Res<ArrivalRate> {
    let table = item.table(&LEVEL)?;
    let lasts = table.item("lasts")?;
    let lasts_ns = lasts.duration()?;
    if lasts_ns < LEAST_NS {
        return Err(lasts
            .wrong("is too short a level")
            .hint("at least \"1 ms\""));
    }
    Ok(ArrivalRate {
        per_1000_min: table.item("rate")?.arrivals()?,
        lasts_ns,
    })
}

fn video(table: &Table<'_>, nominal_bps: u64) -> Res<Video> {
    let ladder_bps = ladder(table)?;
    let (chunk, buffer) = (table.item("chunk")?, table.item("buffer")?);
    let (chunk_ns, buffer_ns) = (chunk.duration()?, buffer.duration()?);
    if chunk_ns < LEAST_NS {
        return Err(chunk
            .wrong("is too short a chunk")
            .hint("at least \"1 ms\""));
    }
    if buffer_ns < chunk_ns {
        return Err(buffer
            .wrong("does not hold a chunk")
            .hint("write a longer time"));
    }
    let first_estimate_bps = table
        .optional("first_estimate", Item::rate)?
        .unwrap_or(nominal_bps / FIRST_ESTIMATE.1 * FIRST_ESTIMATE.0);
    Ok(Video {
        ladder_bps,
        chunk_ns,
        buffer_ns,
        safety: table.item("safety")?.number()?,
        weight: table.item("weight")?.number()?,
        first_estimate_bps,
    })
}

/// The encoding rates up to `max_rate`, in increasing order.
fn ladder(table: &Table<'_>) -> Res<Vec<u64>> {
    let mut ladder = match table.get("ladder") {
        Some(item) => item
            .list()?
            .iter()
            .map(Item::rate)
            .collect::<Res<Vec<_>>>()?,
        None => VIDEO_LADDER_BPS.to_vec(),
    };
    ladder.sort_unstable();
    ladder.dedup();
    let max_rate = table.item("max_rate")?;
    let max_bps = max_rate.rate()?;
    let is_empty = ladder.is_empty();
    ladder.retain(|&bps| bps <= max_bps);
    match (ladder.first(), table.get("ladder")) {
        (None, Some(given)) if is_empty => Err(given
            .error("an empty list: a video needs rates")
            .hint("write [\"500 kbit/s\", \"1 Mbit/s\"]")),
        (None, Some(given)) => Err(given
            .error(format!(
                "no rate is as low as max_rate, {}",
                display::rate(max_bps)
            ))
            .hint("add lower rates, or raise max_rate")),
        (None, None) => Err(max_rate
            .error("no rate of the ladder is as low as this")
            .hint("raise max_rate, or add lower rates to the ladder")),
        (Some(0), _) => Err(table
            .error("ladder", "a rate of 0 encodes nothing")
            .hint("write [\"500 kbit/s\", \"1 Mbit/s\"]")),
        (Some(_), _) => Ok(ladder),
    }
}

/// A period of at least a millisecond, or one of random length that may be as long.
pub(super) fn period(item: &Item<'_>) -> Res<DurationDistribution> {
    let span = item.period()?;
    let longest_ns = match span {
        DurationDistribution::Fixed(ns) => ns,
        DurationDistribution::Uniform { hi_ns, .. } => hi_ns,
        DurationDistribution::Exponential { mean_ns } => mean_ns,
    };
    match longest_ns {
        ns if ns < LEAST_NS => Err(item
            .wrong("is too short a period")
            .hint("at least \"1 ms\"")),
        _ => Ok(span),
    }
}
