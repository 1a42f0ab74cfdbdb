//! Reference data of the build as JSON: algorithms and schedulers with their parameters, results of test vectors, columns
//! of the trace.

use mptcplab_cc::vectors::{AlgorithmReport, Deviation, Failure, Report};
use mptcplab_cc::{Algorithm, FieldSpec, OLDEST_KERNEL, ParamSpec};
use mptcplab_model::sched::{Declaration, SchedulerConfig};
use mptcplab_trace::parquet::{FILES, schemas};
use serde_json::{Map, Value, json};

pub(crate) fn algorithms() -> Value {
    mptcplab_cc::algorithms().iter().map(algorithm).collect()
}

pub(crate) fn schedulers() -> Value {
    mptcplab_model::sched::declarations()
        .iter()
        .map(scheduler)
        .collect()
}

fn scheduler(scheduler: &Declaration) -> Value {
    json!({
        "name": scheduler.name,
        "title": scheduler.title,
        "default": scheduler.name == SchedulerConfig::new(mptcplab_sim::DEFAULT_SCHEDULER).name(),
        "sections": sections(&scheduler.sections),
        "params": scheduler.params.iter().map(param).collect::<Value>(),
    })
}

fn sections(sections: &[(&str, &str)]) -> Value {
    let sections = sections.iter();
    sections
        .map(|(name, text)| json!({"name": name, "text": text}))
        .collect()
}

fn algorithm(algorithm: &Algorithm) -> Value {
    json!({
        "name": algorithm.name(),
        "title": algorithm.title(),
        "coupled": algorithm.coupled(),
        "oldest_kernel": format!("{}.{}", OLDEST_KERNEL.0, OLDEST_KERNEL.1),
        "source": algorithm.source(),
        "sections": sections(algorithm.sections()),
        "incomplete": algorithm.incomplete(),
        "params": algorithm.params().iter().map(param).collect::<Value>(),
        "fields": algorithm.fields().iter().map(field).collect::<Value>(),
    })
}

/// Raw integers with `scale`, the raw value of 1.0, and the default and the range as a scenario would write them.
fn param(param: &ParamSpec) -> Value {
    let values = param
        .values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).into()));
    json!({
        "name": param.name,
        "default": param.default,
        "min": param.min,
        "max": param.max,
        "scale": param.scale,
        "values": values.collect::<Map<_, _>>(),
        "default_text": param.format(param.default),
        "range": param.range(),
        "doc": param.doc,
    })
}

fn field(field: &FieldSpec) -> Value {
    json!({"name": field.name, "unit": field.unit})
}

pub(crate) fn vectors(report: &Report) -> Value {
    let (passed, failed, skipped) = report.totals();
    json!({
        "passed": passed,
        "failed": failed,
        "skipped": skipped,
        "algorithms": report.algorithms.iter().map(vectors_of).collect::<Value>(),
    })
}

fn vectors_of(algorithm: &AlgorithmReport) -> Value {
    let failure = |failure: &Failure| {
        let deviations = failure.deviations.iter().map(deviation);
        json!({"id": failure.id, "deviations": deviations.collect::<Value>()})
    };
    json!({
        "name": algorithm.name,
        "passed": algorithm.passed,
        "failed": algorithm.failures.len(),
        "skipped": algorithm.skipped,
        "skip_reason": algorithm.skip_reason,
        "worst": algorithm.worst.as_ref().map(deviation),
        "failures": algorithm.failures.iter().map(failure).collect::<Value>(),
    })
}

/// `ratio` is the difference divided by the tolerance. JSON has no infinity, so any difference under a tolerance of zero
/// becomes the largest finite number.
fn deviation(deviation: &Deviation) -> Value {
    json!({
        "id": deviation.id,
        "what": deviation.what,
        "got": deviation.got,
        "expected": deviation.expected,
        "tolerance": deviation.tolerance,
        "ratio": deviation.ratio().min(f64::MAX),
    })
}

pub(crate) fn trace_schema() -> Value {
    let tables = std::iter::zip(schemas(), FILES).map(|((name, schema), file)| {
        let columns = schema.fields().iter().map(|field| {
            json!({
                "name": field.name(),
                "type": field.data_type().to_string(),
                "nullable": field.is_nullable(),
                "unit": field.metadata().get("unit"),
                "doc": field.metadata().get("doc"),
            })
        });
        json!({"name": name, "file": file, "columns": columns.collect::<Value>()})
    });
    json!({ "tables": tables.collect::<Value>() })
}
