//! Tables of numbers to Arrow record batches with names, words and nulls.

use super::TraceError;
use crate::{
    Column, EventKind, EventTable, FlowTable, LinkTable, NOT_MEASURED, RUN_COLUMNS, RunRecord,
    SUBFLOW_STATES, SubflowTable, Tables, TransferTable, Values,
};
use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::Arc;

/// Linux' TCP_INFINITE_SSTHRESH.
const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

/// One sampled table, borrowed.
struct Part<'a> {
    name: &'static str,
    columns: &'static [Column],
    values: Vec<Values<'a>>,
}

impl Part<'_> {
    /// The rows in the order in which they are written: samples of one flow, subflow or link stand together
    /// (in time order), because then neighbours differ little and delta encoding makes them small.
    fn order(&self) -> Vec<usize> {
        let rows = self.values.first().map_or(0, Values::len);
        let mut order: Vec<usize> = (0..rows).collect();
        if self.name == EventTable::NAME {
            return order;
        }
        for (column, values) in self.columns.iter().zip(&self.values).rev() {
            if matches!(
                meaning(self.name, column),
                Meaning::Flow | Meaning::Subflow | Meaning::Link
            ) {
                order.sort_by_key(|&row| values.get(row));
            }
        }
        order
    }
}

fn parts(tables: &Tables) -> [Part<'_>; 5] {
    [
        Part {
            name: FlowTable::NAME,
            columns: FlowTable::COLUMNS,
            values: tables.flow.values(),
        },
        Part {
            name: SubflowTable::NAME,
            columns: SubflowTable::COLUMNS,
            values: tables.subflow.values(),
        },
        Part {
            name: LinkTable::NAME,
            columns: LinkTable::COLUMNS,
            values: tables.link.values(),
        },
        Part {
            name: EventTable::NAME,
            columns: EventTable::COLUMNS,
            values: tables.event.values(),
        },
        Part {
            name: TransferTable::NAME,
            columns: TransferTable::COLUMNS,
            values: tables.transfer.values(),
        },
    ]
}

/// What a column's numbers stand for.
#[derive(Clone, Copy)]
enum Meaning {
    /// Themselves.
    Number,
    /// Themselves, except this value, which means "none".
    NumberOrNull(u64),
    Flow,
    /// The name depends on the flow in the column before.
    Subflow,
    Link,
    State,
    Kind,
}

/// Columns of the flow table that an engine may be unable to measure.
const MAYBE_UNMEASURED: [&str; 10] = [
    "ooo_bytes",
    "rcv_window_bytes",
    "reinjected_pkts",
    "duplicate_pkts",
    "blocked_ns",
    "ooo_pkts",
    "ooo_delay_sum_ns",
    "ooo_delay_max_ns",
    "reorder_depth_sum_pkts",
    "reorder_depth_max_pkts",
];

/// Counters of the subflow table that an engine may have no notion of.
const MAYBE_MEANINGLESS: [&str; 4] = ["ecn_events", "rto_count", "rto_wait_ns", "undo_count"];

fn meaning(table: &str, column: &Column) -> Meaning {
    match (table, column.name) {
        (_, "flow") => Meaning::Flow,
        (_, "subflow") => Meaning::Subflow,
        (_, "link") => Meaning::Link,
        ("subflow", "state") => Meaning::State,
        ("event", "kind") => Meaning::Kind,
        ("flow", name) if MAYBE_UNMEASURED.contains(&name) => Meaning::NumberOrNull(NOT_MEASURED),
        ("subflow", name) if MAYBE_MEANINGLESS.contains(&name) => {
            Meaning::NumberOrNull(NOT_MEASURED)
        }
        ("transfer", "first_byte_ns" | "completion_ns" | "resent_pkts" | "stall_ns") => {
            Meaning::NumberOrNull(NOT_MEASURED)
        }
        ("transfer", "media_bps") => Meaning::NumberOrNull(0),
        (_, "ssthresh_pkts") => Meaning::NumberOrNull(INFINITE_SSTHRESH),
        (_, "pacing_bps" | "srtt_us" | "rtt_us" | "min_rtt_us" | "rto_us") => {
            Meaning::NumberOrNull(0)
        }
        _ => Meaning::Number,
    }
}

/// The tables as they are on disk, in file order: `run`, `flow`, `subflow`, `link`, `event`, `transfer`.
#[must_use]
pub fn schemas() -> [(&'static str, SchemaRef); 6] {
    let empty = Tables::default();
    let [flow, subflow, link, event, transfer] =
        parts(&empty).map(|part| (part.name, sampled_schema(&part)));
    [("run", run_schema()), flow, subflow, link, event, transfer]
}

fn sampled_schema(part: &Part<'_>) -> SchemaRef {
    let run = field(&RUN_COLUMNS[0], DataType::UInt32, false);
    let fields = part
        .columns
        .iter()
        .zip(&part.values)
        .map(|(column, values)| {
            let number = match values {
                Values::U8(_) => DataType::UInt8,
                Values::U32(_) | Values::I32(_) => DataType::UInt32,
                Values::U64(_) => DataType::UInt64,
            };
            match meaning(part.name, column) {
                Meaning::Number => field(column, number, false),
                Meaning::NumberOrNull(_) => field(column, number, true),
                Meaning::Flow | Meaning::Subflow | Meaning::Link => {
                    field(column, words(), matches!(values, Values::I32(_)))
                }
                Meaning::State | Meaning::Kind => field(column, words(), false),
            }
        });
    Arc::new(Schema::new(
        std::iter::once(run).chain(fields).collect::<Vec<_>>(),
    ))
}

fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

fn run_schema() -> SchemaRef {
    let fields = RUN_COLUMNS.iter().map(|column| match column.name {
        "run" | "rep" => field(column, DataType::UInt32, false),
        "seed" | "duration_ns" | "warmup_ns" | "events" | "packet_hops" => {
            field(column, DataType::UInt64, false)
        }
        "sample_ns" => field(column, DataType::UInt64, true),
        _ => field(column, DataType::Utf8, false),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn field(column: &Column, data_type: DataType, nullable: bool) -> Field {
    Field::new(column.name, data_type, nullable).with_metadata(HashMap::from([
        ("unit".into(), column.unit.into()),
        ("doc".into(), doc_on_disk(column)),
    ]))
}

/// The schema documents the numbers in memory; on disk they are names, words and nulls.
fn doc_on_disk(column: &Column) -> String {
    match column.name {
        "flow" => "name of the flow".into(),
        "subflow" => "name of the subflow".into(),
        "link" => "name of the directed link".into(),
        "state" => SUBFLOW_STATES.join(", "),
        "kind" => EventKind::ALL.map(|(_, name)| name).join(", "),
        "ssthresh_pkts" => "slow start threshold; null when infinite".into(),
        "pacing_bps" => "pacing rate; null when not pacing".into(),
        name if MAYBE_UNMEASURED.contains(&name) => {
            format!("{}; null where the engine cannot measure it", column.doc)
        }
        "rto_us" => format!("{}; null where the engine has none", column.doc),
        name if MAYBE_MEANINGLESS.contains(&name) => {
            format!("{}; null where the engine has none", column.doc)
        }
        "media_bps" => {
            "rate at which a chunk of a video is encoded; null for everything else".into()
        }
        "first_byte_ns" => format!("{}; null if it never came", column.doc),
        "completion_ns" => format!("{}; null if the run ended before", column.doc),
        "resent_pkts" => format!("{}; null where the engine cannot measure it", column.doc),
        "stall_ns" => format!("{}; null for what is no video", column.doc),
        "srtt_us" | "rtt_us" | "min_rtt_us" => {
            format!(
                "{}; null before the first sample",
                column.doc.split(';').next().unwrap_or(column.doc)
            )
        }
        _ => column.doc.into(),
    }
}

/// All tables of one run as they are on disk, in the order of [`schemas`].
///
/// # Errors
/// [`TraceError::NoName`] when a table holds an index or a code without a name.
pub fn record_batches(record: &RunRecord, tables: &Tables) -> Result<[RecordBatch; 6], TraceError> {
    let [
        _,
        flow_schema,
        subflow_schema,
        link_schema,
        event_schema,
        transfer_schema,
    ] = schemas().map(|(_, schema)| schema);
    let [flow, subflow, link, event, transfer] = parts(tables);
    let names = Names::new(record);
    Ok([
        run_batch(std::slice::from_ref(record)),
        names.sampled_batch(&flow, flow_schema)?,
        names.sampled_batch(&subflow, subflow_schema)?,
        names.sampled_batch(&link, link_schema)?,
        names.sampled_batch(&event, event_schema)?,
        names.sampled_batch(&transfer, transfer_schema)?,
    ])
}

/// The `run` table of several runs.
pub(super) fn run_batch(records: &[RunRecord]) -> RecordBatch {
    let text = |get: fn(&RunRecord) -> &String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(records.iter().map(get)))
    };
    let u32s = |get: fn(&RunRecord) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(records.iter().map(get)))
    };
    let u64s = |get: fn(&RunRecord) -> Option<u64>| -> ArrayRef {
        Arc::new(UInt64Array::from_iter(records.iter().map(get)))
    };
    let columns = vec![
        u32s(|r| r.run),
        text(|r| &r.engine),
        text(|r| &r.engine_version),
        text(|r| &r.build),
        text(|r| &r.scenario),
        text(|r| &r.title),
        text(|r| &r.cc),
        text(|r| &r.profile),
        text(|r| &r.axes),
        u32s(|r| r.rep),
        u64s(|r| Some(r.seed)),
        u64s(|r| Some(r.duration_ns)),
        u64s(|r| Some(r.warmup_ns)),
        u64s(|r| r.sample_ns),
        text(|r| &r.scenario_toml),
        text(|r| &r.resolved),
        text(|r| &r.subflow_cc),
        text(|r| &r.scheduler),
        Arc::new(StringArray::from_iter_values(
            records.iter().map(|r| r.status.name()),
        )),
        text(|r| &r.status_reason),
        text(|r| &r.host),
        u64s(|r| Some(r.events)),
        u64s(|r| Some(r.packet_hops)),
    ];
    // Invariant: RUN_COLUMNS, run_schema and this list are in one order; the tests build a batch.
    RecordBatch::try_new(run_schema(), columns).expect("run columns match their schema")
}

/// Dictionaries of one run.
struct Names {
    run: u32,
    flow: StringArray,
    /// Distinct subflow names of all flows.
    subflow: StringArray,
    /// `subflow_keys[flow][subflow]` is a position in `subflow`.
    subflow_keys: Vec<Vec<u32>>,
    link: StringArray,
    state: StringArray,
    kind: StringArray,
}

impl Names {
    fn new(record: &RunRecord) -> Self {
        let mut distinct: Vec<&str> = record
            .subflow_names
            .iter()
            .flatten()
            .map(String::as_str)
            .collect();
        distinct.sort_unstable();
        distinct.dedup();
        let key = |name: &String| distinct.partition_point(|other| *other < name.as_str()) as u32;
        Self {
            run: record.run,
            flow: record.flow_names.iter().map(Some).collect(),
            subflow_keys: record
                .subflow_names
                .iter()
                .map(|names| names.iter().map(key).collect())
                .collect(),
            subflow: distinct.into_iter().map(Some).collect(),
            link: record.link_names.iter().map(Some).collect(),
            state: SUBFLOW_STATES.into_iter().map(Some).collect(),
            kind: EventKind::ALL.iter().map(|(_, name)| Some(*name)).collect(),
        }
    }

    fn sampled_batch(&self, part: &Part<'_>, schema: SchemaRef) -> Result<RecordBatch, TraceError> {
        let order = part.order();
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from_value(self.run, order.len()))];
        let mut previous = None;
        for (column, values) in part.columns.iter().zip(&part.values) {
            let names = match meaning(part.name, column) {
                Meaning::Number => {
                    arrays.push(numbers(values, &order, None));
                    None
                }
                Meaning::NumberOrNull(null) => {
                    arrays.push(numbers(values, &order, Some(null)));
                    None
                }
                Meaning::Flow => Some((
                    &self.flow,
                    keys(values, &order, |_, v| within(v, &self.flow)),
                )),
                Meaning::Link => Some((
                    &self.link,
                    keys(values, &order, |_, v| within(v, &self.link)),
                )),
                Meaning::State => Some((
                    &self.state,
                    keys(values, &order, |_, v| within(v, &self.state)),
                )),
                Meaning::Kind => Some((
                    &self.kind,
                    keys(values, &order, |_, v| within(v, &self.kind)),
                )),
                Meaning::Subflow => {
                    let flows: Option<Values<'_>> = previous;
                    let key = |row: usize, v: usize| {
                        let flow = usize::try_from(flows?.get(row)).ok()?;
                        self.subflow_keys.get(flow)?.get(v).copied()
                    };
                    Some((&self.subflow, keys(values, &order, key)))
                }
            };
            if let Some((dictionary, keys)) = names {
                let keys = keys.map_err(|row| TraceError::NoName {
                    run: self.run,
                    table: part.name,
                    column: column.name,
                    row,
                    value: values.get(row),
                })?;
                // Invariant: `keys` only returns positions inside the dictionary.
                let array =
                    DictionaryArray::<UInt32Type>::try_new(keys, Arc::new(dictionary.clone()));
                arrays.push(Arc::new(array.expect("keys are inside their dictionary")));
            }
            previous = Some(*values);
        }
        // Invariant: the schema is made from the same declarations; `push` keeps all columns equally long.
        Ok(RecordBatch::try_new(schema, arrays).expect("columns match their schema"))
    }
}

/// Dictionary keys of a column; -1 becomes null. The error is the row whose value has no key.
fn keys(
    values: &Values<'_>,
    order: &[usize],
    key: impl Fn(usize, usize) -> Option<u32>,
) -> Result<UInt32Array, usize> {
    let mut has_null = false;
    let keys: Vec<u32> = order
        .iter()
        .map(|&row| match values.get(row) {
            -1 => {
                has_null = true;
                Ok(0)
            }
            value => usize::try_from(value)
                .ok()
                .and_then(|value| key(row, value))
                .ok_or(row),
        })
        .collect::<Result<_, _>>()?;
    let nulls = has_null.then(|| nulls(order, |row| values.get(row) != -1));
    Ok(UInt32Array::new(keys.into(), nulls))
}

fn within(value: usize, dictionary: &StringArray) -> Option<u32> {
    use arrow_array::Array as _;
    (value < dictionary.len()).then_some(value as u32)
}

fn nulls(order: &[usize], is_valid: impl Fn(usize) -> bool) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::collect_bool(order.len(), |at| {
        is_valid(order[at])
    }))
}

fn numbers(values: &Values<'_>, order: &[usize], null: Option<u64>) -> ArrayRef {
    match values {
        Values::U8(v) => primitive::<UInt8Type>(v, order, null),
        Values::U32(v) => primitive::<UInt32Type>(v, order, null),
        Values::U64(v) => primitive::<UInt64Type>(v, order, null),
        Values::I32(v) => primitive::<arrow_array::types::Int32Type>(v, order, None),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[T::Native],
    order: &[usize],
    null: Option<u64>,
) -> ArrayRef
where
    u64: TryFrom<T::Native>,
{
    let nulls = null.map(|null| nulls(order, |row| u64::try_from(values[row]).ok() != Some(null)));
    let ordered: Vec<T::Native> = order.iter().map(|&row| values[row]).collect();
    Arc::new(PrimitiveArray::<T>::new(ordered.into(), nulls))
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I32(v) => v.len(),
        }
    }

    /// An index or a code; only called for columns that hold such.
    fn get(&self, row: usize) -> i64 {
        match self {
            Self::U8(v) => v[row].into(),
            Self::U32(v) => v[row].into(),
            Self::U64(v) => v[row] as i64,
            Self::I32(v) => v[row].into(),
        }
    }
}
