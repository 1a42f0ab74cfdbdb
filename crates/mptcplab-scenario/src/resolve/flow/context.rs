//! Data and checks that all kinds of flows share.

use crate::document::{Entry, Item, Res, Table};
use crate::format::{FLOW, Field, TCP};
use crate::resolve::network::Network;
use crate::units::display;
use std::cell::Cell;

/// The parts of a scenario that its flows depend on.
pub(super) struct Context<'a> {
    pub(super) top: &'a Table<'a>,
    pub(super) network: &'a Network,
    pub(super) duration_ns: u64,
    pub(super) common: &'a [Entry],
    /// Whether a flow uses the scenario's `cc` and `scheduler`.
    pub(super) used_cc: Cell<bool>,
    pub(super) used_scheduler: Cell<bool>,
}

/// The settings of a flow, with the scenario's common settings as defaults.
pub(super) struct Settings<'a> {
    pub(super) flow: Table<'a>,
    pub(super) common: &'a [Entry],
}

impl<'a> Settings<'a> {
    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        self.flow.get(key).or_else(|| {
            let common = Table {
                spec: &TCP,
                entries: self.common,
                path: "tcp".into(),
                origin: self.flow.origin,
            };
            common.get(key)
        })
    }

    pub(super) fn item(&self, key: &str) -> Res<Item<'a>> {
        debug_assert!(FLOW.field(key).is_some());
        self.get(key).map_or_else(|| self.flow.item(key), Ok)
    }
}

pub(super) fn stop_ns(item: &Item<'_>, start_ns: u64, what: &str) -> Res<u64> {
    match item.duration()? {
        ns if ns > start_ns => Ok(ns),
        _ => Err(item
            .wrong(format!(
                "is not after the {what} at {}",
                display::time(start_ns)
            ))
            .hint("write a later time")),
    }
}

/// Refuses keys of another transport protocol.
pub(super) fn refuse_fields(table: &Table<'_>, fields: &[Field], transport: &str) -> Res<()> {
    let foreign = |e: &&Entry| fields.iter().any(|f| f.key == e.key);
    let Some(entry) = table.entries.iter().find(foreign) else {
        return Ok(());
    };
    let article = if transport == "SCTP" { "an" } else { "a" };
    let message = format!("{article} {transport} flow has no {}", entry.key);
    Err(table.key_error(entry, message).hint(match transport {
        "UDP" => "it is a setting of TCP and MPTCP flows; remove it",
        _ => "it is a setting of flows with transport = \"udp\"",
    }))
}
