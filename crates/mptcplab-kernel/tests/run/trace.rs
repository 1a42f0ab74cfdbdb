//! A trace read back from its files.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// All tables, as text or numbers by column.
pub(crate) struct Trace {
    tables: BTreeMap<&'static str, Table>,
}

/// One table.
#[derive(Default)]
pub(crate) struct Table {
    rows: usize,
    numbers: BTreeMap<String, Vec<Option<u64>>>,
    texts: BTreeMap<String, Vec<Option<String>>>,
}

impl Trace {
    /// The traces of all runs in a directory, one after the other.
    pub(crate) fn open(dir: &Path) -> Self {
        let mut runs: Vec<_> = std::fs::read_dir(dir)
            .unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        runs.sort();
        let mut tables = BTreeMap::new();
        for run in &runs {
            let requests = run.join("request.parquet").exists().then_some("request");
            let names = ["run", "flow", "subflow", "link", "event", "transfer"];
            for name in names.into_iter().chain(requests) {
                let table: &mut Table = tables.entry(name).or_default();
                table.read(&run.join(format!("{name}.parquet")));
            }
        }
        Self { tables }
    }

    fn table(&self, name: &str) -> &Table {
        &self.tables[name]
    }

    /// The first run.
    pub(crate) fn run(&self) -> Row<'_> {
        Row {
            table: self.table("run"),
            row: 0,
        }
    }

    /// Status and reason of every run.
    pub(crate) fn statuses(&self) -> Vec<(String, String)> {
        let run = self.table("run");
        (0..run.rows)
            .map(|row| (run.text("status", row), run.text("status_reason", row)))
            .collect()
    }

    /// What every run recorded about its machine.
    pub(crate) fn hosts(&self) -> Vec<serde_json::Value> {
        let run = self.table("run");
        (0..run.rows)
            .map(|row| serde_json::from_str(&run.text("host", row)).expect("JSON"))
            .collect()
    }

    /// Whether the emulation of the first run was as fast as its links. Otherwise times are later by milliseconds.
    pub(crate) fn is_on_time(&self) -> bool {
        self.statuses()[0].0 == "complete"
    }

    /// Rows of a table.
    pub(crate) fn count(&self, table: &str) -> usize {
        self.table(table).rows
    }

    /// Rows of a table at a time.
    pub(crate) fn rows(&self, table: &str, t_ns: u64) -> usize {
        self.table(table).numbers["t_ns"]
            .iter()
            .filter(|&&t| t == Some(t_ns))
            .count()
    }

    /// A flow's counter at a time.
    #[track_caller]
    pub(crate) fn flow(&self, flow: &str, t_ns: u64, column: &str) -> u64 {
        let table = self.table("flow");
        let row = table
            .find(&[("flow", flow)], t_ns)
            .unwrap_or_else(|| panic!("no row of {flow} at {t_ns} ns"));
        table.number(column, row)
    }

    /// A flow's counter in its last row up to a time.
    pub(crate) fn last_flow(&self, flow: &str, t_ns: u64, column: &str) -> u64 {
        let table = self.table("flow");
        let rows = (0..table.rows).filter(|&row| table.is(&[("flow", flow)], row));
        let row = rows
            .filter(|&row| table.number("t_ns", row) <= t_ns)
            .max_by_key(|&row| table.number("t_ns", row));
        table.number(column, row.expect("a row"))
    }

    /// A subflow's counter at a time.
    #[track_caller]
    pub(crate) fn subflow(&self, flow: &str, subflow: &str, t_ns: u64, column: &str) -> u64 {
        let table = self.table("subflow");
        let row = table.find(&[("flow", flow), ("subflow", subflow)], t_ns);
        table.number(
            column,
            row.unwrap_or_else(|| panic!("no row of {flow}/{subflow} at {t_ns} ns")),
        )
    }

    /// A subflow's state in its last row up to a time.
    pub(crate) fn state(&self, flow: &str, subflow: &str, t_ns: u64) -> String {
        self.table("subflow")
            .text("state", self.last_row(flow, subflow, t_ns))
    }

    /// A subflow's counter in its last row up to a time.
    pub(crate) fn last_subflow(&self, flow: &str, subflow: &str, t_ns: u64, column: &str) -> u64 {
        self.table("subflow")
            .number(column, self.last_row(flow, subflow, t_ns))
    }

    /// Rows of the table of transfers of a flow, by their number.
    pub(crate) fn transfers(&self, flow: &str) -> BTreeMap<u64, Transfer> {
        let table = self.table("transfer");
        let mine = (0..table.rows).filter(|&row| table.is(&[("flow", flow)], row));
        let read = |row: usize| {
            let optional = |column: &str| table.numbers[column][row];
            let transfer = Transfer {
                t_ns: table.number("t_ns", row),
                bytes: table.number("bytes", row),
                media_bps: optional("media_bps"),
                first_byte_ns: optional("first_byte_ns"),
                completion_ns: optional("completion_ns"),
                resent_pkts: optional("resent_pkts"),
                stall_ns: optional("stall_ns"),
            };
            (table.number("transfer", row), transfer)
        };
        let rows: Vec<_> = mine.map(read).collect();
        let count = rows.len();
        let by_number: BTreeMap<_, _> = rows.into_iter().collect();
        assert_eq!(by_number.len(), count, "{flow}: a transfer has two rows");
        by_number
    }

    /// Rows of the table of requests of a flow, by their number.
    pub(crate) fn requests(&self, flow: &str) -> BTreeMap<u64, Request> {
        let table = self.table("request");
        let mine = (0..table.rows).filter(|&row| table.is(&[("flow", flow)], row));
        let read = |row: usize| {
            let optional = |column: &str| table.numbers[column][row];
            let request = Request {
                t_ns: table.number("t_ns", row),
                request_bytes: table.number("request_bytes", row),
                response_bytes: optional("response_bytes"),
                first_byte_ns: optional("first_byte_ns"),
                completion_ns: optional("completion_ns"),
            };
            (table.number("request", row), request)
        };
        let rows: Vec<_> = mine.map(read).collect();
        let count = rows.len();
        let by_number: BTreeMap<_, _> = rows.into_iter().collect();
        assert_eq!(by_number.len(), count, "{flow}: a request has two rows");
        by_number
    }

    fn last_row(&self, flow: &str, subflow: &str, t_ns: u64) -> usize {
        let table = self.table("subflow");
        let row = (0..table.rows)
            .filter(|&row| {
                table.is(&[("flow", flow), ("subflow", subflow)], row)
                    && table.number("t_ns", row) <= t_ns
            })
            .max_by_key(|&row| table.number("t_ns", row));
        row.expect("a row")
    }

    /// Times of a subflow's rows, in file order.
    pub(crate) fn subflow_times(&self, flow: &str, subflow: &str) -> Vec<u64> {
        let table = self.table("subflow");
        let mine =
            (0..table.rows).filter(|&row| table.is(&[("flow", flow), ("subflow", subflow)], row));
        mine.map(|row| table.number("t_ns", row)).collect()
    }

    /// Rows of a subflow.
    pub(crate) fn subflow_rows(&self, flow: &str, subflow: &str) -> usize {
        self.subflow_times(flow, subflow).len()
    }

    fn event_times(&self, wanted: &[(&str, &str)]) -> Vec<u64> {
        let table = self.table("event");
        (0..table.rows)
            .filter(|&row| table.is(wanted, row))
            .map(|row| table.number("t_ns", row))
            .collect()
    }

    /// How many events of a kind a flow or one of its subflows had.
    pub(crate) fn events(&self, kind: &str, flow: &str, subflow: Option<&str>) -> usize {
        let mut wanted = vec![("kind", kind), ("flow", flow)];
        wanted.extend(subflow.map(|name| ("subflow", name)));
        self.event_times(&wanted).len()
    }

    /// How many events of a kind a link had.
    pub(crate) fn events_of_link(&self, kind: &str, link: &str) -> usize {
        self.event_times(&[("kind", kind), ("link", link)]).len()
    }

    /// When a subflow first had an event of a kind.
    pub(crate) fn first_event(&self, kind: &str, flow: &str, subflow: &str) -> Option<u64> {
        self.event_times(&[("kind", kind), ("flow", flow), ("subflow", subflow)])
            .into_iter()
            .min()
    }
}

/// A row of the table of transfers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) t_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) media_bps: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) completion_ns: Option<u64>,
    pub(crate) resent_pkts: Option<u64>,
    pub(crate) stall_ns: Option<u64>,
}

/// A row of the table of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) t_ns: u64,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: Option<u64>,
    pub(crate) first_byte_ns: Option<u64>,
    pub(crate) completion_ns: Option<u64>,
}

/// One row.
pub(crate) struct Row<'a> {
    table: &'a Table,
    row: usize,
}

impl Row<'_> {
    pub(crate) fn text(&self, column: &str) -> String {
        self.table.text(column, self.row)
    }
}

impl Table {
    fn read(&mut self, path: &Path) {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .expect("a Parquet file")
            .build()
            .expect("a reader");
        for batch in reader {
            self.add(&batch.expect("rows"));
        }
    }

    fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows();
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let name = field.name().clone();
            match column.data_type() {
                DataType::UInt64 => self
                    .numbers
                    .entry(name)
                    .or_default()
                    .extend(column.as_primitive::<UInt64Type>()),
                DataType::UInt32 => {
                    let values = column
                        .as_primitive::<UInt32Type>()
                        .iter()
                        .map(|value| value.map(u64::from));
                    self.numbers.entry(name).or_default().extend(values);
                }
                _ => self.texts.entry(name).or_default().extend(texts(column)),
            }
        }
    }

    fn text(&self, column: &str, row: usize) -> String {
        self.texts[column][row].clone().unwrap_or_default()
    }

    #[track_caller]
    fn number(&self, column: &str, row: usize) -> u64 {
        self.numbers[column][row].unwrap_or_else(|| panic!("{column} is null in row {row}"))
    }

    fn is(&self, wanted: &[(&str, &str)], row: usize) -> bool {
        wanted
            .iter()
            .all(|(column, value)| self.texts[*column][row].as_deref() == Some(value))
    }

    fn find(&self, wanted: &[(&str, &str)], t_ns: u64) -> Option<usize> {
        (0..self.rows).find(|&row| self.numbers["t_ns"][row] == Some(t_ns) && self.is(wanted, row))
    }
}

/// Words, whether they are in a dictionary or not.
fn texts(column: &ArrayRef) -> Vec<Option<String>> {
    let plain = cast(column, &DataType::Utf8).expect("text");
    plain
        .as_string::<i32>()
        .iter()
        .map(|text| text.map(str::to_owned))
        .collect()
}
