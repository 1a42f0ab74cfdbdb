//! What the build has: algorithms, schedulers, and the columns of the tables in the order in which a chunk has them.

use mptcplab_cc::Algorithm;
use mptcplab_model::sched::{Declaration, SchedulerConfig};
use mptcplab_trace::{Tables, Values};
use serde_json::{Value, json};

/// The facts that a page needs.
#[must_use]
pub fn catalog() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "build": env!("MPTCPLAB_BUILD"),
        "engine": env!("MPTCPLAB_ENGINE"),
        "algorithms": mptcplab_cc::algorithms().iter().map(algorithm).collect::<Value>(),
        "schedulers": mptcplab_model::sched::declarations().iter().map(scheduler).collect::<Value>(),
        "tables": tables(),
    })
}

fn algorithm(algorithm: &Algorithm) -> Value {
    json!({
        "name": algorithm.name(),
        "title": algorithm.title(),
        "coupled": algorithm.coupled(),
        "source": algorithm.source(),
    })
}

fn scheduler(scheduler: &Declaration) -> Value {
    let default = SchedulerConfig::new(mptcplab_sim::DEFAULT_SCHEDULER);
    json!({
        "name": scheduler.name,
        "title": scheduler.title,
        "default": scheduler.name == default.name(),
    })
}

fn tables() -> Value {
    let empty = Tables::default();
    let views = empty.views();
    let table = views.iter().map(|view| {
        let columns = view.columns.iter().zip(&view.values);
        let columns = columns.map(|(column, values)| {
            json!({
                "name": column.name,
                "type": type_name(*values),
                "unit": column.unit,
                "doc": column.doc,
                // As text, because the largest numbers are beyond those of JavaScript.
                "null": column.null.map(|null| null.value.to_string()),
            })
        });
        json!({ "name": view.name, "columns": columns.collect::<Value>() })
    });
    table.collect()
}

fn type_name(values: Values<'_>) -> &'static str {
    match values {
        Values::U8(_) => "u8",
        Values::U32(_) => "u32",
        Values::U64(_) => "u64",
        Values::I32(_) => "i32",
    }
}
