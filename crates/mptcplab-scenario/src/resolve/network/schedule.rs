//! Scheduled changes of a link.

use super::impairments::{delay_ns, loss};
use crate::document::{Item, Res, Table};
use crate::error::Diagnostic;
use crate::files::Files;
use crate::format::CHANGE;
use mptcplab_model::link::{Change, LinkConfig};

/// The changes of a direction in the scenario or in a file; `None` if it has none of its own.
pub(super) fn own_schedule(
    table: &Table<'_>,
    follows_trace: bool,
    files: &mut Files<'_>,
) -> Res<Option<Vec<Change>>> {
    match (table.get("schedule"), table.get("schedule_file")) {
        (Some(_), Some(file)) => Err(file
            .error("a schedule and a file of one")
            .hint("keep one of schedule and schedule_file")),
        (Some(item), None) => schedule(&item, follows_trace).map(Some),
        (None, Some(file)) => {
            let changes = files.schedule(&file)?;
            match follows_trace && changes.iter().any(|change| change.rate_bps.is_some()) {
                true => Err(file
                    .wrong("changes the rate, but the link follows a trace")
                    .hint("only delay, loss and up can change here")),
                false => Ok(Some(changes)),
            }
        }
        (None, None) => Ok(None),
    }
}

fn schedule(item: &Item<'_>, follows_trace: bool) -> Res<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for entry in item.list()? {
        let table = entry.table(&CHANGE)?;
        let at = table.item("at")?;
        let at_ns = at.duration()?;
        if changes.last().is_some_and(|earlier| earlier.at_ns > at_ns) {
            return Err(at
                .wrong("is before the change above it")
                .hint("write changes in time order"));
        }
        let rate = table.get("rate");
        if let (Some(rate), true) = (&rate, follows_trace) {
            return Err(rate
                .error("a rate, but the link follows a trace")
                .hint("only delay, loss and up can change here"));
        }
        let change = Change {
            at_ns,
            rate_bps: rate.map(|i| i.rate()).transpose()?,
            delay_ns: table.optional("delay", delay_ns)?,
            loss: table.optional("loss", loss)?,
            up: table.optional("up", Item::boolean)?,
        };
        if changes_nothing(&change) {
            let error = Diagnostic::new(entry.value.origin, &entry.path, "a change of nothing");
            return Err(error.hint("add rate, delay, loss or up"));
        }
        changes.push(change);
    }
    Ok(changes)
}

fn changes_nothing(change: &Change) -> bool {
    change.rate_bps.is_none()
        && change.delay_ns.is_none()
        && change.loss.is_none()
        && change.up.is_none()
}

/// The changes of the forward direction that also apply to the reverse one. Properties that the reverse direction sets
/// itself do not change, and neither does random loss unless the link has `loss_both`.
pub(super) fn inherited_schedule(
    reverse: &Table<'_>,
    forward: &LinkConfig,
    loss_both: bool,
) -> Vec<Change> {
    let own_rate = reverse.get("rate").is_some() || reverse.get("trace").is_some();
    let own_delay = reverse.get("delay").is_some();
    let changes = forward.schedule.iter().map(|change| Change {
        at_ns: change.at_ns,
        rate_bps: change.rate_bps.filter(|_| !own_rate),
        delay_ns: change.delay_ns.filter(|_| !own_delay),
        loss: change.loss.filter(|_| loss_both),
        up: change.up,
    });
    changes.filter(|change| !changes_nothing(change)).collect()
}
