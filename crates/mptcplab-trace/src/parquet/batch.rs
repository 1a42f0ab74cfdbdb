//! Tables of numbers to Arrow record batches: indices become names, codes become words, and values that stand for the
//! absence of one become null.

use super::error::TraceError;
use crate::run_table::{RunRecord, RunValue};
use crate::schema::{Column, EventKind, EventTable, SUBFLOW_STATES, Tables};
use crate::view::{TableView, Values};
use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The rows in the order in which they are written. Samples of one flow, subflow or link stand together, in time order,
/// because then neighbours differ little and delta encoding makes them small.
fn row_order(table: &TableView<'_>) -> Vec<u32> {
    let rows = table.len();
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if table.name == EventTable::NAME {
        return order;
    }
    let mut places = vec![0_u64; rows];
    for (column, values) in table.columns.iter().zip(&table.values) {
        if matches!(
            meaning(column),
            Meaning::Flow | Meaning::Subflow | Meaning::Link
        ) {
            for (row, place) in places.iter_mut().enumerate() {
                *place = *place << 32 | values.get(row) as u64;
            }
        }
    }
    order.sort_by_key(|&row| places[row as usize]);
    order
}

/// What the numbers of a column stand for.
#[derive(Clone, Copy)]
enum Meaning {
    /// They are the values.
    Number,
    Flow,
    /// The name depends on the flow in the column before.
    Subflow,
    Link,
    State,
    Kind,
}

fn meaning(column: &Column) -> Meaning {
    match column.name {
        "flow" => Meaning::Flow,
        "subflow" => Meaning::Subflow,
        "link" => Meaning::Link,
        "state" => Meaning::State,
        "kind" => Meaning::Kind,
        _ => Meaning::Number,
    }
}

/// The tables as they are on disk, in the order of the files: `run`, `flow`, `subflow`, `link`, `event`, `transfer`, `request`.
#[must_use]
pub fn schemas() -> [(&'static str, SchemaRef); 7] {
    // Made once: with all their texts, schemas cost as much as some thousand rows.
    static SCHEMAS: LazyLock<[(&str, SchemaRef); 7]> = LazyLock::new(make_schemas);
    SCHEMAS.clone()
}

fn make_schemas() -> [(&'static str, SchemaRef); 7] {
    let empty = Tables::default();
    let [flow, subflow, link, event, transfer, request] = empty
        .views()
        .map(|table| (table.name, sampled_schema(&table)));
    let run = ("run", run_schema());
    [run, flow, subflow, link, event, transfer, request]
}

fn sampled_schema(table: &TableView<'_>) -> SchemaRef {
    let run = field(&RunRecord::COLUMNS[0], DataType::UInt32, false);
    let fields = table
        .columns
        .iter()
        .zip(&table.values)
        .map(|(column, values)| {
            let number = match values {
                Values::U8(_) => DataType::UInt8,
                Values::U32(_) | Values::I32(_) => DataType::UInt32,
                Values::U64(_) => DataType::UInt64,
            };
            match meaning(column) {
                Meaning::Number => field(column, number, column.null.is_some()),
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

/// The schema of the first column of every table.
pub(super) fn run_number_schema() -> SchemaRef {
    let run = field(&RunRecord::COLUMNS[0], DataType::UInt32, false);
    Arc::new(Schema::new(vec![run]))
}

fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

fn run_schema() -> SchemaRef {
    let example = RunRecord::default();
    let fields = std::iter::zip(RunRecord::COLUMNS, example.values());
    let fields = fields.map(|(column, value)| match value {
        RunValue::U32(_) => field(column, DataType::UInt32, false),
        RunValue::U64(_) => field(column, DataType::UInt64, false),
        RunValue::OptionalU64(_) => field(column, DataType::UInt64, true),
        RunValue::Text(_) => field(column, DataType::Utf8, false),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn field(column: &Column, data_type: DataType, nullable: bool) -> Field {
    Field::new(column.name, data_type, nullable).with_metadata(HashMap::from([
        ("unit".into(), column.unit.into()),
        ("doc".into(), doc_on_disk(column)),
    ]))
}

/// The declaration documents the numbers in memory; on disk there are names, words and nulls.
fn doc_on_disk(column: &Column) -> String {
    match meaning(column) {
        Meaning::Flow => "name of the flow".into(),
        Meaning::Subflow => "name of the subflow".into(),
        Meaning::Link => "name of the directed link".into(),
        Meaning::State => SUBFLOW_STATES.join(", "),
        Meaning::Kind => EventKind::ALL.map(|(_, name)| name).join(", "),
        Meaning::Number => match column.null {
            Some(null) => format!("{}; null {}", column.doc, null.when),
            None => column.doc.into(),
        },
    }
}

/// The `run` table of several runs.
pub(super) fn run_batch(records: &[RunRecord]) -> RecordBatch {
    let rows: Vec<Vec<RunValue<'_>>> = records.iter().map(RunRecord::values).collect();
    let schema = run_schema();
    let columns = schema.fields().iter().enumerate().map(|(index, field)| {
        let values = rows.iter().map(|row| row[index]);
        run_array(field.data_type(), values)
    });
    let columns = columns.collect();
    // Invariant: the schema and the values are made from the same declaration.
    RecordBatch::try_new(schema, columns).expect("run columns match their schema")
}

fn run_array<'a>(data_type: &DataType, values: impl Iterator<Item = RunValue<'a>>) -> ArrayRef {
    let number = |value: RunValue<'_>| match value {
        RunValue::U32(number) => Some(number.into()),
        RunValue::U64(number) => Some(number),
        RunValue::OptionalU64(number) => number,
        RunValue::Text(_) => None,
    };
    match data_type {
        DataType::UInt32 => {
            let values = values.map(number).map(|n| n.map(|n| n as u32));
            Arc::new(UInt32Array::from_iter(values))
        }
        DataType::UInt64 => Arc::new(UInt64Array::from_iter(values.map(number))),
        _ => Arc::new(StringArray::from_iter_values(values.map(
            |value| match value {
                RunValue::Text(text) => text,
                _ => "",
            },
        ))),
    }
}

/// Dictionaries of one run.
pub(super) struct Names {
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
    /// The names behind a column; `None` for a column of numbers.
    fn dictionary(&self, meaning: Meaning) -> Option<&StringArray> {
        match meaning {
            Meaning::Number => None,
            Meaning::Flow => Some(&self.flow),
            Meaning::Subflow => Some(&self.subflow),
            Meaning::Link => Some(&self.link),
            Meaning::State => Some(&self.state),
            Meaning::Kind => Some(&self.kind),
        }
    }

    pub(super) fn new(record: &RunRecord) -> Self {
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

    /// The rows of a table as they are on disk.
    pub(super) fn sampled_batch(
        &self,
        table: &TableView<'_>,
        schema: SchemaRef,
    ) -> Result<RecordBatch, TraceError> {
        let order = row_order(table);
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from_value(self.run, order.len()))];
        let mut previous = None;
        for (column, values) in table.columns.iter().zip(&table.values) {
            let meaning = meaning(column);
            if let Some(dictionary) = self.dictionary(meaning) {
                let flows: Option<Values<'_>> = previous;
                let key = |row: usize, value: usize| match meaning {
                    Meaning::Subflow => {
                        let flow = usize::try_from(flows?.get(row)).ok()?;
                        self.subflow_keys.get(flow)?.get(value).copied()
                    }
                    _ => within(value, dictionary),
                };
                let keys = keys(values, &order, key).map_err(|row| TraceError::NoName {
                    run: self.run,
                    table: table.name,
                    column: column.name,
                    row,
                    value: values.get(row),
                })?;
                // Invariant: `keys` only returns positions inside the dictionary.
                let array =
                    DictionaryArray::<UInt32Type>::try_new(keys, Arc::new(dictionary.clone()));
                arrays.push(Arc::new(array.expect("keys are inside their dictionary")));
            } else {
                arrays.push(numbers(values, &order, column.null.map(|null| null.value)));
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
    order: &[u32],
    key: impl Fn(usize, usize) -> Option<u32>,
) -> Result<UInt32Array, usize> {
    let mut has_null = false;
    let keys: Vec<u32> = order
        .iter()
        .map(|&row| match values.get(row as usize) {
            -1 => {
                has_null = true;
                Ok(0)
            }
            value => usize::try_from(value)
                .ok()
                .and_then(|value| key(row as usize, value))
                .ok_or(row as usize),
        })
        .collect::<Result<_, _>>()?;
    let nulls = has_null.then(|| nulls(order, |row| values.get(row) != -1));
    Ok(UInt32Array::new(keys.into(), nulls))
}

fn within(value: usize, dictionary: &StringArray) -> Option<u32> {
    use arrow_array::Array as _;
    (value < dictionary.len()).then_some(value as u32)
}

fn nulls(order: &[u32], is_valid: impl Fn(usize) -> bool) -> NullBuffer {
    NullBuffer::new(BooleanBuffer::collect_bool(order.len(), |at| {
        is_valid(order[at] as usize)
    }))
}

fn numbers(values: &Values<'_>, order: &[u32], null: Option<u64>) -> ArrayRef {
    match values {
        Values::U8(v) => primitive::<UInt8Type>(v, order, null),
        Values::U32(v) => primitive::<UInt32Type>(v, order, null),
        Values::U64(v) => primitive::<UInt64Type>(v, order, null),
        Values::I32(v) => primitive::<Int32Type>(v, order, None),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: &[T::Native],
    order: &[u32],
    null: Option<u64>,
) -> ArrayRef
where
    u64: TryFrom<T::Native>,
{
    let is_null = |value: T::Native, null: u64| u64::try_from(value).ok() == Some(null);
    // Most columns have no null. Looking at all values without a branch is quicker than writing down which are null.
    let has = |null| {
        values
            .iter()
            .fold(false, |has, &value| has | is_null(value, null))
    };
    let nulls = null
        .filter(|&null| has(null))
        .map(|null| nulls(order, |row| !is_null(values[row], null)));
    let ordered: Vec<T::Native> = order.iter().map(|&row| values[row as usize]).collect();
    Arc::new(PrimitiveArray::<T>::new(ordered.into(), nulls))
}
