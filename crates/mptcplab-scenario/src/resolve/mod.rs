//! Resolves one combination of axis values to a run: fills in every default and checks every number against the network.

mod flow;
mod network;

use crate::document::{Item, Res, Table, Value};
use crate::files::Files;
use crate::run::{Profile, Run};

/// Resolves a document without axes. `id`, `rep` and `axes` are left for the caller.
pub(crate) fn run(root: &Value, files: &mut Files<'_>) -> Res<Run> {
    let top = Table::root(root);
    let duration = top.item("duration")?;
    let duration_ns = duration.duration()?;
    if duration_ns == 0 {
        return Err(duration.wrong("is no time at all").hint("write \"60 s\""));
    }
    let warmup = top.item("warmup")?;
    let warmup_ns = warmup.duration()?;
    if warmup_ns >= duration_ns {
        let duration = duration.value.quoted();
        return Err(warmup
            .wrong(format!("is not shorter than the duration, {duration}"))
            .hint("shorten warmup or lengthen duration; metrics use what lies between"));
    }
    let mut network = network::network(&top, files)?;
    let flows = flow::flows(&top, &network, duration_ns)?;
    network.resolve_queues(&flows)?;
    Ok(Run {
        id: 0,
        axes: Vec::new(),
        rep: 0,
        seed: top.item("seed")?.int()?,
        duration_ns,
        warmup_ns,
        sample_ns: sample(&top.item("sample")?)?,
        per_ack: top.item("per_ack")?.boolean()?,
        profile: profile(&top.item("profile")?)?,
        nodes: network.nodes.into(),
        links: network.links.into(),
        flows: flows.into(),
    })
}

/// Number of runs of each combination of axis values.
pub(crate) fn repetitions(root: &Value) -> Res<u64> {
    Table::root(root).item("repetitions")?.int()
}

/// Shortest sampling interval. At a shorter one there would be more samples than packets.
const MIN_SAMPLE_NS: u64 = 10_000;

fn sample(item: &Item<'_>) -> Res<Option<u64>> {
    if item.is("off") {
        return Ok(None);
    }
    match item.duration()? {
        ns if ns >= MIN_SAMPLE_NS => Ok(Some(ns)),
        _ => Err(item
            .wrong("is too short an interval")
            .hint("at least \"10 us\"; per_ack = true records every ACK")),
    }
}

fn profile(item: &Item<'_>) -> Res<Profile> {
    let found = Profile::ALL.into_iter().find(|p| item.is(p.name()));
    found.ok_or_else(|| item.wrong("is not a profile"))
}
