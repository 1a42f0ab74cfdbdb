//! Active queue management and its parameters.

use crate::document::{Item, Res, Table};
use crate::error::{Diagnostic, join};
use crate::format::{AQM, CODEL_FIELDS, FQ_FIELDS, Field, RED_FIELDS};
use mptcplab_model::link::Aqm;

pub(super) fn aqm(item: &Item<'_>) -> Res<Aqm> {
    let (name, table) = match item.is_table() {
        true => {
            let table = item.table(&AQM)?;
            (table.item("name")?.text()?.to_string(), table)
        }
        false => (
            item.text()?.to_string(),
            Table::empty(&AQM, item.path.clone(), item.key_origin),
        ),
    };
    match name.as_str() {
        "red" => {
            refuse_other_parameters(&table, &name, &[RED_FIELDS])?;
            red(&table)
        }
        "codel" => {
            refuse_other_parameters(&table, &name, &[CODEL_FIELDS])?;
            let (target_ns, interval_ns) = codel(&table)?;
            Ok(Aqm::Codel {
                target_ns,
                interval_ns,
            })
        }
        "fq-codel" => {
            refuse_other_parameters(&table, &name, &[CODEL_FIELDS, FQ_FIELDS])?;
            let (target_ns, interval_ns) = codel(&table)?;
            Ok(Aqm::FqCodel {
                target_ns,
                interval_ns,
                flows: u32::try_from(table.item("flows")?.int()?)
                    .map_err(|_| table.error("flows", "too many"))?,
                quantum_bytes: table.item("quantum")?.size_in(64..=1_000_000)?,
            })
        }
        _ => refuse_other_parameters(&table, &name, &[]).map(|()| Aqm::DropTail),
    }
}

/// Refuses parameters of other queue managements.
fn refuse_other_parameters(table: &Table<'_>, name: &str, groups: &[&[Field]]) -> Res<()> {
    let own: Vec<&str> = groups
        .iter()
        .flat_map(|g| g.iter())
        .map(|f| f.key)
        .collect();
    match table
        .entries
        .iter()
        .find(|e| e.key != "name" && !own.contains(&e.key.as_str()))
    {
        None => Ok(()),
        Some(entry) => {
            let error = Diagnostic::new(
                entry.key_origin,
                join(&table.path, &entry.key),
                format!("\"{name}\" has no such parameter"),
            );
            Err(match own.is_empty() {
                true => error.hint(format!("\"{name}\" has no parameters")),
                false => error.hint(format!("parameters of \"{name}\": {}", own.join(", "))),
            })
        }
    }
}

fn red(table: &Table<'_>) -> Res<Aqm> {
    let (min, max) = (table.item("min")?, table.item("max")?);
    let (min_pkts, max_pkts) = (min.packets()?, max.packets()?);
    if min_pkts >= max_pkts {
        let message = format!(
            "{} is not more than min, {}",
            max.value.quoted(),
            min.value.quoted()
        );
        return Err(table
            .error("max", message)
            .hint("max is usually three times min"));
    }
    Ok(Aqm::Red {
        min_pkts: f64::from(min_pkts),
        max_pkts: f64::from(max_pkts),
        max_p: table.item("max_p")?.percent()?,
        weight: table.item("weight")?.fraction()?,
    })
}

fn codel(table: &Table<'_>) -> Res<(u64, u64)> {
    let (target, interval) = (table.item("target")?, table.item("interval")?);
    let (target_ns, interval_ns) = (target.duration()?, interval.duration()?);
    if target_ns == 0 || target_ns >= interval_ns {
        let message = format!(
            "{} is not between 0 and the interval, {}",
            target.value.quoted(),
            interval.value.quoted()
        );
        return Err(table
            .error("target", message)
            .hint("the target is usually a twentieth of the interval"));
    }
    Ok((target_ns, interval_ns))
}
