//! One direction of a link: rate, delay, queue, loss and schedule.

use super::aqm::aqm;
use super::impairments::{self, loss, reorder};
use super::queue::DraftQueue;
use super::schedule::{inherited_schedule, own_schedule};
use crate::document::{Item, Res, Table};
use crate::error::join;
use crate::files::{Files, mean_rate_bps};
use crate::format::{DEFAULT_OVERHEAD_BYTES, REVERSE, TRACE_OVERHEAD_BYTES};
use mptcplab_model::link::{Aqm, DeliveryTrace, LinkConfig, QueueLimit};

/// The configuration of one direction, and its queue as written.
pub(super) type Direction = (LinkConfig, DraftQueue);

/// The direction from `from` to `to`.
pub(super) fn forward(table: &Table<'_>, files: &mut Files<'_>) -> Res<Direction> {
    direction(table, None, false, files)
}

/// The direction from `to` to `from`; `None` with `reverse = false`.
pub(super) fn backward(
    table: &Table<'_>,
    forward: &LinkConfig,
    files: &mut Files<'_>,
) -> Res<Option<Direction>> {
    let both = table.item("loss_both")?;
    let loss_both = both.boolean()?;
    let Some(item) = table.get("reverse") else {
        let defaults = Table::empty(&REVERSE, join(&table.path, "reverse"), table.origin);
        return direction(&defaults, Some(forward), loss_both, files).map(Some);
    };
    if item.is_table() {
        let reverse = item.table(&REVERSE)?;
        if let (true, Some(loss)) = (loss_both, reverse.get("loss")) {
            return Err(loss
                .error("a loss of its own, but the link has loss_both")
                .hint("remove one of them"));
        }
        return direction(&reverse, Some(forward), loss_both, files).map(Some);
    }
    match item.boolean()? {
        false if loss_both => Err(both
            .error("true, but there is no way back (reverse = false)")
            .hint("remove one of them")),
        false => Ok(None),
        true => Err(item
            .error("true says nothing")
            .hint("leave reverse out for the usual way back, or write { rate = \"1 Mbit/s\" }")),
    }
}

/// One direction. A reverse direction inherits from `forward`; with `loss_both` it also inherits the random loss.
fn direction(
    table: &Table<'_>,
    forward: Option<&LinkConfig>,
    loss_both: bool,
    files: &mut Files<'_>,
) -> Res<Direction> {
    let trace = table.optional("trace", |item| files.trace(item))?;
    let rate_bps = match (table.get("rate"), &trace) {
        (Some(rate), Some(_)) => {
            return Err(rate
                .error("a rate and a trace at once")
                .hint("the trace gives the rate; remove one of them"));
        }
        (Some(rate), None) => positive_rate(&rate)?,
        (None, Some(trace)) => mean_rate_bps(trace),
        (None, None) => match forward {
            Some(forward) if forward.trace.is_none() => forward.rate_bps,
            Some(_) => {
                let error = table.missing("rate");
                return Err(error.hint("the forward direction follows a trace; write reverse = { rate = \"10 Mbit/s\" } or { trace = \"FILE\" }"));
            }
            None => return Err(table.missing("rate")),
        },
    };
    let delay_ns = match (table.get("delay"), forward) {
        (None, Some(forward)) => forward.delay_ns,
        _ => impairments::delay_ns(&table.item("delay")?)?,
    };
    let overhead_bytes = match (table.get("overhead"), forward) {
        (Some(item), _) => item.size_in(0..=1000)?,
        (None, Some(forward))
            if forward.overhead_bytes != default_overhead_bytes(&forward.trace) =>
        {
            forward.overhead_bytes
        }
        (None, _) => default_overhead_bytes(&trace),
    };
    let written = own_schedule(table, trace.is_some(), files)?;
    let schedule = match (written, forward) {
        (Some(changes), _) => changes,
        (None, Some(forward)) => inherited_schedule(table, forward, loss_both),
        (None, None) => Vec::new(),
    };
    let aqm = aqm(&table.item("aqm")?)?;
    let ecn = table.item("ecn")?;
    if ecn.boolean()? && aqm == Aqm::DropTail {
        return Err(ecn
            .error("a drop-tail queue never marks packets")
            .hint("add aqm = \"red\", \"codel\" or \"fq-codel\""));
    }
    let config = LinkConfig {
        rate_bps,
        delay_ns,
        overhead_bytes,
        queue: QueueLimit::Unlimited,
        aqm,
        ecn: ecn.boolean()?,
        loss: match (table.get("loss"), forward) {
            (None, Some(forward)) if loss_both => forward.loss,
            _ => loss(&table.item("loss")?)?,
        },
        reorder: table.optional("reorder", reorder)?.flatten(),
        schedule,
        trace,
    };
    Ok((config, DraftQueue::new(&table.item("queue")?)?))
}

fn default_overhead_bytes(trace: &Option<DeliveryTrace>) -> u32 {
    match trace {
        Some(_) => TRACE_OVERHEAD_BYTES,
        None => DEFAULT_OVERHEAD_BYTES,
    }
}

fn positive_rate(item: &Item<'_>) -> Res<u64> {
    match item.rate()? {
        0 => Err(item.wrong("lets nothing through").hint(
            "a link needs a rate; schedule = [{ at = \"10 s\", up = false }] makes an outage",
        )),
        rate => Ok(rate),
    }
}
