//! Active queue management and its parameters.

use crate::document::{Entry, Item, Res, Table};
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
    let own: &[&[Field]] = match name.as_str() {
        "red" => &[RED_FIELDS],
        "codel" => &[CODEL_FIELDS],
        "fq-codel" => &[CODEL_FIELDS, FQ_FIELDS],
        _ => &[],
    };
    refuse_other_parameters(&table, &name, own)?;
    match name.as_str() {
        "red" => red(&table),
        "codel" => {
            let (target_ns, interval_ns) = codel(&table)?;
            Ok(Aqm::Codel {
                target_ns,
                interval_ns,
            })
        }
        "fq-codel" => {
            let (target_ns, interval_ns) = codel(&table)?;
            Ok(Aqm::FqCodel {
                target_ns,
                interval_ns,
                flows: u32::try_from(table.item("flows")?.int()?)
                    .map_err(|_| table.error("flows", "too many"))?,
                quantum_bytes: table.item("quantum")?.size_in(64..=1_000_000)?,
            })
        }
        _ => Ok(Aqm::DropTail),
    }
}

/// Refuses parameters of other queue managements.
fn refuse_other_parameters(table: &Table<'_>, name: &str, groups: &[&[Field]]) -> Res<()> {
    let fields = groups.iter().flat_map(|group| group.iter());
    let own: Vec<&str> = fields.map(|f| f.key).collect();
    let foreign = |e: &&Entry| e.key != "name" && !own.contains(&e.key.as_str());
    let Some(entry) = table.entries.iter().find(foreign) else {
        return Ok(());
    };
    let hint = match own.is_empty() {
        true => format!("\"{name}\" has no parameters"),
        false => format!("parameters of \"{name}\": {}", own.join(", ")),
    };
    Err(table
        .key_error(entry, format!("\"{name}\" has no such parameter"))
        .hint(hint))
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
        weight: table.item("weight")?.number()?,
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
