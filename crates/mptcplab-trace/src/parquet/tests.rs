//! Tables that are written and read back, and the life of a trace directory.

use super::batch::{Names, run_batch};
use super::encode::encoded_tables;
use super::{FILES, KeptRuns, Part, ScratchRuns, TraceError, TraceWriter, merge, schemas};
use crate::{
    EventKind, EventRow, FlowRow, LinkRow, MOST_ROWS_PER_GROUP, NOT_MEASURED, RequestRow,
    RequestTable, RunRecord, SUBFLOW_STATES, SubflowRow, Tables, TransferRow,
};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{UInt32Type, UInt64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Two flows with subflows of the same name at different positions.
fn record(run: u32) -> RunRecord {
    RunRecord {
        run,
        cc: ["lia", "olia", "balia"][run as usize % 3].into(),
        rep: run * 2 + 1,
        seed: 1 << 40,
        duration_ns: 30_000_000_000 + u64::from(run),
        sample_ns: (run != 1).then_some(10_000_000),
        flow_names: vec!["mp".into(), "tcp".into()],
        subflow_names: vec![vec!["wifi".into(), "lte".into()], vec!["lte".into()]],
        link_names: vec!["B1".into(), "B1~".into(), "B2".into()],
        ..RunRecord::default()
    }
}

fn subflow(t_ns: u64, flow: u32, subflow: u32) -> SubflowRow {
    let unit = u64::from(10 * flow + subflow + 1);
    SubflowRow {
        t_ns,
        flow,
        subflow,
        state: (2 + flow + subflow) as u8,
        cwnd_pkts: 10 + unit as u32,
        ssthresh_pkts: 100 + unit as u32,
        inflight_pkts: 5 + unit as u32,
        srtt_us: 14_000 + unit as u32,
        rtt_us: 15_000 + unit as u32,
        min_rtt_us: 13_000 + unit as u32,
        rto_us: 200_000 + unit as u32,
        pacing_bps: 1_000_000 * unit,
        rtt_sum_us: 17 * unit,
        rtt_count: 19 * unit,
        sent_pkts: 23 * unit,
        retx_pkts: 29 * unit,
        acked_pkts: 31 * unit,
        lost_pkts: 37 * unit,
        loss_events: 41 * unit,
        ecn_events: 43 * unit,
        rto_count: 47 * unit,
        rto_wait_ns: 53 * unit,
        undo_count: 59 * unit,
        rx_pkts: 61 * unit,
        rx_wire_bytes: 67 * unit,
        rx_payload_bytes: 71 * unit,
    }
}

fn tables(run: u32) -> Tables {
    let mut tables = Tables::default();
    for sample in 0..40 + u64::from(run) {
        let t_ns = sample * 10_000_000;
        for (flow, index) in [(0, 0), (0, 1), (1, 0)] {
            tables.subflow.push(SubflowRow {
                cwnd_pkts: 10 + sample as u32 * (1 + flow + 2 * index) + run,
                ..subflow(t_ns, flow, index)
            });
        }
        for link in 0..3 {
            tables.link.push(LinkRow {
                t_ns,
                link,
                queue_pkts: 3 * link + 1,
                queue_bytes: 1514 * u64::from(link),
                arrived_pkts: sample * (5 + u64::from(link)),
                dropped_random_pkts: sample,
                dropped_queue_pkts: 2 * sample,
                marked_pkts: 3 * sample,
                departed_pkts: 4 * sample,
                departed_bytes: 5 * sample,
                queue_delay_sum_ns: 6 * sample,
                queue_delay_max_ns: 7 * sample,
            });
        }
    }
    // The rows of a flow are adjacent on disk.
    for (flow, media_bps, completion_ns) in [(1, 6_000, NOT_MEASURED), (0, 0, 71)] {
        tables.transfer.push(TransferRow {
            t_ns: 3,
            flow,
            transfer: 5,
            bytes: 17,
            media_bps,
            first_byte_ns: 13,
            completion_ns,
            resent_pkts: if flow == 1 { NOT_MEASURED } else { 0 },
            stall_ns: if flow == 1 { 0 } else { NOT_MEASURED },
        });
    }
    for (flow, response_bytes, completion_ns) in [(1, 0, 83), (0, 41, NOT_MEASURED)] {
        tables.request.push(RequestRow {
            t_ns: 7,
            flow,
            request: 6,
            request_bytes: 19,
            response_bytes,
            first_byte_ns: 53,
            completion_ns,
        });
    }
    tables.event.push(EventRow {
        t_ns: 5,
        kind: EventKind::RtoFired as u8,
        flow: 1,
        subflow: 0,
        link: -1,
        value: 3,
    });
    tables.event.push(EventRow {
        t_ns: 9,
        kind: EventKind::LinkChanged as u8,
        flow: -1,
        subflow: -1,
        link: 2,
        value: 4,
    });
    tables
}

/// The text of a dictionary-encoded column; null is "-".
fn words(batch: &RecordBatch, column: &str) -> Vec<String> {
    let array = batch
        .column_by_name(column)
        .expect("the column")
        .as_dictionary::<UInt32Type>();
    let values = array.values().as_string::<i32>();
    let word =
        |key: Option<u32>| key.map_or("-".into(), |key| values.value(key as usize).to_owned());
    array.keys().iter().map(word).collect()
}

fn u64s(batch: &RecordBatch, column: &str) -> Vec<Option<u64>> {
    batch
        .column_by_name(column)
        .expect("the column")
        .as_primitive::<UInt64Type>()
        .iter()
        .collect()
}

fn u32s(batch: &RecordBatch, column: &str) -> Vec<Option<u32>> {
    batch
        .column_by_name(column)
        .expect("the column")
        .as_primitive::<UInt32Type>()
        .iter()
        .collect()
}

/// Every value of a column of any type, over all batches.
fn text(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let value = |batch: &RecordBatch| -> Vec<String> {
        let array = batch.column_by_name(column).expect("the column");
        if array.as_any_dictionary_opt().is_some() {
            return words(batch, column);
        }
        if let Some(strings) = array.as_string_opt::<i32>() {
            return strings.iter().map(|value| format!("{value:?}")).collect();
        }
        match array.as_primitive_opt::<UInt64Type>() {
            Some(_) => u64s(batch, column)
                .iter()
                .map(|value| format!("{value:?}"))
                .collect(),
            None => u32s(batch, column)
                .iter()
                .map(|value| format!("{value:?}"))
                .collect(),
        }
    };
    batches.iter().flat_map(value).collect()
}

/// All tables of one run as they are on disk, in the order of [`schemas`].
fn record_batches(record: &RunRecord, tables: &Tables) -> Result<[RecordBatch; 7], TraceError> {
    let names = Names::new(record);
    let mut batches = vec![run_batch(std::slice::from_ref(record))];
    for (table, schema) in encoded_tables(tables) {
        batches.push(names.sampled_batch(&table, schema)?);
    }
    Ok(batches.try_into().expect("all tables"))
}

fn write(dir: &Path, runs: impl IntoIterator<Item = u32>) {
    let mut writer = TraceWriter::create(dir).expect("a new directory");
    let encoder = writer.encoder();
    for run in runs {
        let encoded = encoder
            .encode(&record(run), &tables(run))
            .expect("valid tables");
        writer.append(encoded).expect("disk space");
    }
    writer.finish().expect("disk space");
}

fn read(dir: &Path, file: &str) -> Vec<RecordBatch> {
    let file = File::open(dir.join(file)).expect("the file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    reader
        .expect("a Parquet file")
        .collect::<Result<_, _>>()
        .expect("whole batches")
}

fn names(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .collect();
    names.sort();
    names
}

#[test]
fn codes_are_positions_in_their_lists() {
    for (position, (kind, _)) in EventKind::ALL.iter().enumerate() {
        assert_eq!(*kind as usize, position);
    }
    assert_eq!(
        (SUBFLOW_STATES[0], SUBFLOW_STATES[2], SUBFLOW_STATES[6]),
        ("closed", "open", "loss")
    );
}

#[test]
fn indices_become_names_and_codes_words() {
    let [_, _, subflow, link, event, transfer, request] =
        record_batches(&record(2), &tables(2)).expect("valid tables");
    // 42 samples of each, together.
    let firsts = |batch, column| {
        words(batch, column)
            .into_iter()
            .step_by(42)
            .collect::<Vec<_>>()
    };
    assert_eq!(firsts(&subflow, "flow"), ["mp", "mp", "tcp"]);
    assert_eq!(firsts(&subflow, "subflow"), ["wifi", "lte", "lte"]);
    assert_eq!(firsts(&subflow, "state"), ["open", "disorder", "disorder"]);
    assert_eq!(firsts(&link, "link"), ["B1", "B1~", "B2"]);
    assert_eq!(words(&event, "kind"), ["rto_fired", "link_changed"]);
    assert_eq!(words(&event, "flow"), ["tcp", "-"]);
    assert_eq!(words(&event, "subflow"), ["lte", "-"]);
    assert_eq!(words(&event, "link"), ["-", "B2"]);
    assert_eq!(u32s(&event, "run"), [Some(2), Some(2)]);
    assert_eq!(words(&transfer, "flow"), ["mp", "tcp"]);
    assert_eq!(u64s(&transfer, "completion_ns"), [Some(71), None]);
    assert_eq!(u64s(&transfer, "media_bps"), [None, Some(6_000)]);
    assert_eq!(u64s(&transfer, "stall_ns"), [None, Some(0)]);
    assert_eq!(u64s(&transfer, "resent_pkts"), [Some(0), None]);
    assert_eq!(words(&request, "flow"), ["mp", "tcp"]);
    assert_eq!(u64s(&request, "response_bytes"), [Some(41), None]);
    assert_eq!(u64s(&request, "completion_ns"), [None, Some(83)]);
}

/// Tables are filled in time order and written subflow by subflow; all columns are reordered alike.
#[test]
fn samples_of_one_subflow_stand_together_in_time_order() {
    let [_, _, batch, ..] = record_batches(&record(1), &tables(1)).expect("valid tables");
    let row = |(flow, index): (u32, u32), sample: u32| {
        (
            Some(u64::from(sample) * 10_000_000),
            Some(11 + sample * (1 + flow + 2 * index)),
        )
    };
    let expected: Vec<_> = [(0, 0), (0, 1), (1, 0)]
        .into_iter()
        .flat_map(|who| (0..41).map(move |sample| row(who, sample)))
        .collect();
    let written: Vec<_> = std::iter::zip(u64s(&batch, "t_ns"), u32s(&batch, "cwnd_pkts")).collect();
    assert_eq!(written, expected);
}

#[test]
fn values_that_mean_none_become_null() {
    let mut tables = Tables::default();
    tables.subflow.push(SubflowRow {
        ssthresh_pkts: 0x7fff_ffff,
        srtt_us: 0,
        rtt_us: 0,
        min_rtt_us: 0,
        pacing_bps: 0,
        rto_wait_ns: 0,
        rto_us: 0,
        rto_count: NOT_MEASURED,
        ..subflow(0, 0, 1)
    });
    tables.subflow.push(subflow(1, 1, 0));
    let [_, _, batch, ..] = record_batches(&record(0), &tables).expect("valid tables");
    assert_eq!(u32s(&batch, "ssthresh_pkts"), [None, Some(111)]);
    assert_eq!(u32s(&batch, "srtt_us"), [None, Some(14_011)]);
    assert_eq!(u32s(&batch, "rtt_us"), [None, Some(15_011)]);
    assert_eq!(u32s(&batch, "min_rtt_us"), [None, Some(13_011)]);
    assert_eq!(u64s(&batch, "pacing_bps"), [None, Some(11_000_000)]);
    // Quantities that an engine does not have are null.
    assert_eq!(u32s(&batch, "rto_us"), [None, Some(200_011)]);
    assert_eq!(u64s(&batch, "rto_count"), [None, Some(517)]);
    // A counter of zero is a measurement, so it is not null.
    assert_eq!(u64s(&batch, "rto_wait_ns"), [Some(0), Some(583)]);
}

#[test]
fn an_index_without_a_name_is_an_error_with_its_place() {
    let mut broken = tables(0);
    // Flow 1 ("tcp") has only one subflow.
    broken.subflow.push(subflow(7, 1, 1));
    let error =
        record_batches(&record(4), &broken).expect_err("subflow 1 of flow 1 does not exist");
    assert_eq!(
        error.to_string(),
        "run 4: table subflow, row 120: subflow 1 has no name"
    );
    let mut broken = tables(0);
    broken.link.link[5] = 3;
    assert!(matches!(
        record_batches(&record(0), &broken),
        Err(TraceError::NoName {
            table: "link",
            column: "link",
            row: 5,
            value: 3,
            ..
        })
    ));
}

#[test]
fn the_row_of_an_index_without_a_name_is_counted_from_the_beginning_of_the_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = TraceWriter::create(&dir.path().join("trace")).expect("a new directory");
    let encoder = writer.encoder();
    for bad in [3, MOST_ROWS_PER_GROUP as u64 + 5] {
        let mut encoding = encoder.start(&record(2));
        let mut tables = Tables::default();
        let mut failed = None;
        for sample in 0..MOST_ROWS_PER_GROUP as u64 + 7 {
            tables
                .subflow
                .push(subflow(sample, 1, u32::from(sample == bad)));
            failed = failed.or(encoding.write(&mut tables).err());
        }
        let failed = failed.or_else(|| encoding.finish(&record(2), &tables).err());
        let place = format!("run 2: table subflow, row {bad}: subflow 1 has no name");
        assert_eq!(failed.expect("no name").to_string(), place);
    }
}

#[test]
fn files_hold_what_the_batches_hold_and_say_what_columns_mean() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("trace");
    write(&out, [0, 1]);
    for (index, file) in FILES.iter().enumerate() {
        let written = [0, 1].map(|run| {
            record_batches(&record(run), &tables(run)).expect("valid tables")[index].clone()
        });
        let read = read(&out, file);
        for field in schemas()[index].1.fields() {
            assert_eq!(
                text(&read, field.name()),
                text(&written, field.name()),
                "{file}: {}",
                field.name()
            );
        }
        for batch in read {
            assert_eq!(
                batch.schema(),
                schemas()[index].1,
                "{file}: types, units and documentation survive"
            );
        }
    }
    let schema = read(&out, "subflow.parquet")[0].schema();
    assert_eq!(
        schema
            .field_with_name("rto_wait_ns")
            .expect("the column")
            .metadata()["unit"],
        "ns"
    );
}

#[test]
fn bytes_do_not_depend_on_the_order_in_which_runs_finish() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (one, many) = (dir.path().join("one"), dir.path().join("many"));
    write(&one, 0..5);
    let mut writer = TraceWriter::create(&many).expect("a new directory");
    let encoder = writer.encoder();
    let mut runs: Vec<_> = std::thread::scope(|scope| {
        let start = |run| {
            (
                run,
                scope.spawn({
                    let encoder = &encoder;
                    move || encoder.encode(&record(run), &tables(run))
                }),
            )
        };
        let threads: Vec<_> = (0..5).rev().map(start).collect();
        threads
            .into_iter()
            .map(|(run, t)| (run, t.join().expect("no panic").expect("valid tables")))
            .collect()
    });
    runs.sort_by_key(|(run, _)| *run);
    for (_, run) in runs {
        writer.append(run).expect("disk space");
    }
    writer.finish().expect("disk space");
    for file in FILES {
        assert_eq!(
            fs::read(one.join(file)).expect("a file"),
            fs::read(many.join(file)).expect("a file"),
            "{file}"
        );
    }
}

#[test]
fn more_runs_than_a_row_group_of_the_run_table_are_all_there() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("trace");
    let mut writer = TraceWriter::create(&out).expect("a new directory");
    let encoder = writer.encoder();
    for run in 0..600 {
        writer
            .append(
                encoder
                    .encode(&record(run), &Tables::default())
                    .expect("valid"),
            )
            .expect("disk space");
    }
    writer.finish().expect("disk space");
    let runs: Vec<_> = read(&out, "run.parquet")
        .iter()
        .flat_map(|batch| u32s(batch, "run"))
        .collect();
    assert_eq!(runs, (0..600).map(Some).collect::<Vec<_>>());
    assert!(read(&out, "flow.parquet").is_empty(), "no samples, no rows");
    assert_eq!(row_groups(&out, "run.parquet"), [256, 256, 88]);
}

/// Traces without requests are what they were before there were any.
#[test]
fn the_file_of_requests_exists_only_if_there_are_any() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (without, with) = (dir.path().join("without"), dir.path().join("with"));
    let mut writer = TraceWriter::create(&without).expect("a new directory");
    let none = Tables {
        request: RequestTable::default(),
        ..tables(3)
    };
    let encoded = writer.encoder().encode(&record(3), &none);
    writer
        .append(encoded.expect("valid tables"))
        .expect("disk space");
    writer.finish().expect("disk space");
    write(&with, [5]);
    let file = FILES[FILES.len() - 1];
    assert!(!without.join(file).exists() && with.join(file).exists());
    let out = dir.path().join("merged");
    merge([part(&without, 3), part(&with, 5)], &out).expect("whole traces");
    assert_eq!(text(&read(&out, file), "run"), ["Some(1)", "Some(1)"]);
}

#[test]
fn a_trace_that_is_not_finished_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut writer = TraceWriter::create(&dir.path().join("trace")).expect("a new directory");
    let encoded = writer
        .encoder()
        .encode(&record(0), &tables(0))
        .expect("valid tables");
    writer.append(encoded).expect("disk space");
    assert_eq!(names(dir.path()), [dir.path().join("trace.partial")]);
    drop(writer);
    assert!(names(dir.path()).is_empty());
}

#[test]
fn results_are_never_overwritten_and_an_empty_directory_is_welcome() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("trace");
    fs::create_dir(&out).expect("a directory");
    write(&out, [3]);
    assert!(matches!(TraceWriter::create(&out), Err(TraceError::Exists(path)) if path == out));
    assert_eq!(names(dir.path()), std::slice::from_ref(&out));
    // The tables with that of requests, and their checksums.
    assert_eq!(names(&out).len(), FILES.len() + 1);
}

#[test]
fn what_a_killed_run_left_is_replaced_but_a_foreign_file_is_not_touched() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (out, partial) = (dir.path().join("trace"), dir.path().join("trace.partial"));
    fs::create_dir(&partial).expect("a directory");
    fs::write(partial.join("link.parquet"), "half").expect("a file");
    write(&out, [1]);
    assert_eq!(names(dir.path()), [out]);

    let (out, partial) = (dir.path().join("other"), dir.path().join("other.partial"));
    fs::create_dir(&partial).expect("a directory");
    fs::write(partial.join("thesis.tex"), "years").expect("a file");
    assert!(
        matches!(TraceWriter::create(&out), Err(TraceError::Foreign { file, .. }) if file.ends_with("thesis.tex"))
    );
    assert!(partial.join("thesis.tex").exists());
}

/// What was written would go to the target of the link, and what is stale there would be removed.
#[test]
fn a_directory_of_unfinished_files_that_somebody_else_made_is_not_used() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (out, partial) = (dir.path().join("trace"), dir.path().join("trace.partial"));
    let target = dir.path().join("elsewhere");
    fs::create_dir(&target).expect("a directory");
    fs::write(target.join("run.parquet"), "a result").expect("a file");
    std::os::unix::fs::symlink(&target, &partial).expect("a link");
    let why = |result: Result<TraceWriter, TraceError>| match result {
        Err(TraceError::NotOurs { why, .. }) => why,
        _ => panic!("it was used"),
    };
    assert!(why(TraceWriter::create(&out)).starts_with("is not a directory"));
    assert!(target.join("run.parquet").exists());
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED, NOT TESTED: a directory of another user needs root");
        return;
    }
    fs::remove_file(&partial).expect("a link");
    fs::create_dir(&partial).expect("a directory");
    std::os::unix::fs::chown(&partial, Some(4242), None).expect("root");
    assert_eq!(
        why(TraceWriter::create(&out)),
        "was made by user 4242, and this is user 0"
    );
}

#[test]
fn two_writers_do_not_share_a_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = dir.path().join("trace");
    let first = TraceWriter::create(&out).expect("a new directory");
    assert!(matches!(TraceWriter::create(&out), Err(TraceError::Busy(path)) if path == out));
    first.finish().expect("the first writer is not disturbed");
    // The tables without that of requests, and their checksums.
    assert_eq!(names(&out).len(), FILES.len());
}

#[test]
fn runs_out_of_order_are_refused() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut writer = TraceWriter::create(&dir.path().join("trace")).expect("a new directory");
    let encoder = writer.encoder();
    let mut append = |run| {
        writer.append(
            encoder
                .encode(&record(run), &tables(run))
                .expect("valid tables"),
        )
    };
    append(4).expect("the first run");
    assert!(matches!(
        append(4),
        Err(TraceError::Order { run: 4, last: 4 })
    ));
    assert!(matches!(
        append(2),
        Err(TraceError::Order { run: 2, last: 4 })
    ));
}

#[test]
fn flow_rows_keep_their_columns_apart() {
    let mut tables = Tables::default();
    tables.flow.push(FlowRow {
        t_ns: 1,
        flow: 1,
        delivered_bytes: 2,
        sent_bytes: 3,
        ooo_bytes: 4,
        rcv_window_bytes: 5,
        reinjected_pkts: 6,
        duplicate_pkts: 7,
        blocked_ns: 8,
        ooo_pkts: 9,
        ooo_delay_sum_ns: 10,
        ooo_delay_max_ns: 11,
        reorder_depth_sum_pkts: 12,
        reorder_depth_max_pkts: 13,
    });
    let [run, flow, ..] = record_batches(&record(1), &tables).expect("valid tables");
    let columns = [
        "t_ns",
        "delivered_bytes",
        "sent_bytes",
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
    let expected = (1..=13).map(|value| vec![Some(value)]).collect::<Vec<_>>();
    assert_eq!(columns.map(|column| u64s(&flow, column)).to_vec(), expected);
    assert_eq!(words(&flow, "flow"), ["tcp"]);
    assert_eq!(
        (
            u32s(&run, "rep"),
            u64s(&run, "seed"),
            u64s(&run, "sample_ns")
        ),
        (vec![Some(3)], vec![Some(1 << 40)], vec![None])
    );
}

fn part(dir: &Path, run: u32) -> Part {
    Part {
        dir: dir.to_owned(),
        run,
        texts: BTreeMap::new(),
    }
}

/// A run with more rows in `subflow` than a row group that several runs share, in pieces.
fn long(encoder: &super::Encoder, run: u32) -> super::EncodedRun {
    let mut encoding = encoder.start(&record(run));
    let mut tables = Tables::default();
    for piece in 0..3 {
        for sample in 0..6_000 + u64::from(run) {
            tables.subflow.push(subflow(piece * 10_000 + sample, 1, 0));
        }
        tables.append(&mut Tables {
            link: self::tables(run).link,
            ..Tables::default()
        });
        encoding.write(&mut tables).expect("valid tables");
    }
    encoding
        .finish(&record(run), &tables)
        .expect("valid tables")
}

/// Short runs and, among the first, two long ones.
fn mixed(encoder: &super::Encoder, run: u32) -> super::EncodedRun {
    match run {
        2 | 3 => long(encoder, run),
        _ => encoder
            .encode(&record(run), &tables(run))
            .expect("valid tables"),
    }
}

fn write_mixed(dir: &Path, runs: impl IntoIterator<Item = u32>) {
    let mut writer = TraceWriter::create(dir).expect("a new directory");
    let encoder = writer.encoder();
    for run in runs {
        writer.append(mixed(&encoder, run)).expect("disk space");
    }
    writer.finish().expect("disk space");
}

fn assert_same_bytes(one: &Path, other: &Path) {
    for file in FILES {
        let bytes = |of: &Path| fs::read(of.join(file)).expect("a file");
        assert!(bytes(one) == bytes(other), "{file} differs");
    }
}

/// In all columns but `except`.
fn assert_same_rows(one: &Path, other: &Path, except: &str) {
    for (file, (_, schema)) in FILES.into_iter().zip(schemas()) {
        let (one, other) = (read(one, file), read(other, file));
        for field in schema.fields() {
            if field.name() != except {
                assert_eq!(text(&one, field.name()), text(&other, field.name()));
            }
        }
    }
}

fn row_groups(dir: &Path, file: &str) -> Vec<i64> {
    let file = File::open(dir.join(file)).expect("the file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file");
    let groups = reader.metadata().row_groups().iter();
    groups.map(|group| group.num_rows()).collect()
}

#[test]
fn short_runs_share_row_groups_and_cost_little() {
    let dir = tempfile::tempdir().expect("a directory");
    let size = |runs: u32| {
        let out = dir.path().join(runs.to_string());
        let mut writer = TraceWriter::create(&out).expect("a new directory");
        let encoder = writer.encoder();
        for run in 0..runs {
            let mut tables = Tables::default();
            for sample in 0..3 {
                tables.subflow.push(subflow(sample, 1, 0));
            }
            let run = encoder.encode(&record(run), &tables).expect("valid tables");
            writer.append(run).expect("disk space");
        }
        writer.finish().expect("disk space");
        let sizes = FILES.map(|file| fs::metadata(out.join(file)).map_or(0, |file| file.len()));
        sizes.iter().sum::<u64>()
    };
    let (few, many) = (size(100), size(5_700));
    // Three rows each: 5,462 runs fill a group.
    assert_eq!(
        row_groups(&dir.path().join("5700"), "subflow.parquet"),
        [16_386, 714]
    );
    let each = (many - few) / 5_600;
    assert!(each < 100, "{each} bytes per run");
}

#[test]
fn a_long_run_has_a_row_group_of_its_own_between_short_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("trace");
    write_mixed(&out, 0..5);
    // 40 samples of three subflows, and one more for each run; a long run has three pieces of 6,000.
    assert_eq!(
        row_groups(&out, "subflow.parquet"),
        [120 + 123, 18_006, 18_009, 132]
    );
    let runs = text(&read(&out, "subflow.parquet"), "run");
    let of = |run: &str| runs.iter().filter(|one| *one == run).count();
    assert_eq!(
        ["Some(0)", "Some(1)", "Some(2)", "Some(3)", "Some(4)"].map(of),
        [120, 123, 18_006, 18_009, 132]
    );
    assert!(runs.is_sorted());
}

#[test]
fn joined_traces_have_the_bytes_of_one_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let parts: Vec<Part> = (0..7)
        .map(|run| {
            let path = dir.path().join(format!("run-{run}"));
            write_mixed(&path, [run]);
            part(&path, run)
        })
        .collect();
    let (whole, joined) = (dir.path().join("whole"), dir.path().join("joined"));
    write_mixed(&whole, 0..7);
    merge(parts, &joined).expect("a trace");
    assert_same_bytes(&whole, &joined);
}

#[test]
fn runs_of_larger_traces_in_another_order_have_the_bytes_of_one_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let (odd, even) = (dir.path().join("odd"), dir.path().join("even"));
    write_mixed(&odd, [1, 3, 5]);
    write_mixed(&even, [0, 2, 4]);
    let (whole, joined) = (dir.path().join("whole"), dir.path().join("joined"));
    write_mixed(&whole, 0..6);
    let of = |run: u32| part(if run % 2 == 1 { &odd } else { &even }, run);
    merge((0..6).map(of), &joined).expect("a trace");
    assert_same_bytes(&whole, &joined);
}

/// A run with more rows than a row group may have, of three subflows, in pieces of so many samples; a short one before it.
fn write_very_long(dir: &Path, samples: u64, piece: u64) {
    let mut writer = TraceWriter::create(dir).expect("a new directory");
    let encoder = writer.encoder();
    writer.append(mixed(&encoder, 0)).expect("disk space");
    let mut encoding = encoder.start(&record(1));
    let mut tables = Tables::default();
    for begin in (0..samples).step_by(piece as usize) {
        for sample in begin..samples.min(begin + piece) {
            for (flow, k) in [(0, 0), (0, 1), (1, 0)] {
                tables.subflow.push(subflow(sample, flow, k));
            }
        }
        encoding.write(&mut tables).expect("valid tables");
        assert!(tables.len() < MOST_ROWS_PER_GROUP);
    }
    let run = encoding.finish(&record(1), &tables);
    writer
        .append(run.expect("valid tables"))
        .expect("disk space");
    writer.finish().expect("disk space");
}

#[test]
fn row_groups_of_a_very_long_run_do_not_depend_on_its_pieces_and_are_copied() {
    let dir = tempfile::tempdir().expect("a directory");
    let most = MOST_ROWS_PER_GROUP;
    let path = |name: &str| dir.path().join(name);
    let (once, pieces, joined) = (path("once"), path("pieces"), path("joined"));
    // Two full groups and seven rows. The pieces end before, within and after a second group.
    let samples = 43_693;
    write_very_long(&once, samples, samples);
    write_very_long(&pieces, samples, 9_001);
    merge([part(&pieces, 0), part(&pieces, 1)], &joined).expect("a trace");
    let groups = row_groups(&once, "subflow.parquet");
    assert_eq!(groups, [120, most as i64, most as i64, 7]);
    assert_same_bytes(&once, &pieces);
    assert_same_bytes(&once, &joined);
}

#[test]
fn row_groups_end_where_they_are_full_whatever_other_tables_have() {
    let dir = tempfile::tempdir().expect("a directory");
    let most = MOST_ROWS_PER_GROUP;
    for rows in [most - 1, most, most + 1, 2 * most] {
        let out = dir.path().join(rows.to_string());
        let mut writer = TraceWriter::create(&out).expect("a new directory");
        let mut tables = tables(1);
        let (few, links) = (tables.subflow.len(), tables.link.len());
        for sample in 0..rows - few {
            tables
                .subflow
                .push(subflow(1_000_000 + sample as u64, 1, 0));
        }
        let run = writer.encoder().encode(&record(1), &tables);
        writer
            .append(run.expect("valid tables"))
            .expect("disk space");
        writer.finish().expect("disk space");
        let expected = match rows.checked_sub(most) {
            None | Some(0) => vec![rows as i64],
            Some(rest) => vec![most as i64, rest as i64],
        };
        assert_eq!(row_groups(&out, "subflow.parquet"), expected);
        assert_eq!(row_groups(&out, "link.parquet"), [links as i64]);
    }
}

#[test]
fn rows_of_a_row_group_stand_together_by_subflow_in_the_order_of_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let most = MOST_ROWS_PER_GROUP;
    let out = dir.path().join("trace");
    write_very_long(&out, 43_693, 7_919);
    let batches = read(&out, "subflow.parquet");
    let column = |name: &str| text(&batches, name).split_off(120);
    let (flows, subflows) = (column("flow"), column("subflow"));
    let times: Vec<u64> = batches
        .iter()
        .flat_map(|batch| batch["t_ns"].as_primitive::<UInt64Type>().values().to_vec())
        .skip(120)
        .collect();
    assert_eq!(times.len(), 2 * most + 7);
    for first in [0, most, 2 * most] {
        let rows = first..times.len().min(first + most);
        let kinds = rows.clone().map(|row| (&flows[row], &subflows[row]));
        let mut kinds: Vec<_> = kinds.collect();
        kinds.dedup();
        assert_eq!(kinds.len(), 3, "each subflow's rows stand together");
        let in_time = |row: usize| {
            let is_other = (&flows[row], &subflows[row]) != (&flows[row - 1], &subflows[row - 1]);
            is_other || times[row] > times[row - 1]
        };
        assert!(rows.clone().skip(1).all(in_time));
        // Groups are cut by time.
        let latest = rows.map(|row| times[row]).max();
        let next = times
            .get(first + most..)
            .and_then(|after| after.iter().min());
        assert!(next.is_none_or(|next| Some(*next) >= latest));
    }
}

#[test]
fn joined_traces_are_numbered_in_order_and_take_other_texts() {
    let dir = tempfile::tempdir().expect("a directory");
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    write(&first, [4, 7]);
    write(&second, [2]);
    let mut parts = [part(&first, 7), part(&first, 4), part(&second, 2)];
    parts[2].texts = [("engine", "vm:bookworm"), ("status", "invalid")]
        .map(|(column, text)| (column.to_owned(), text.to_owned()))
        .into();
    let joined = dir.path().join("joined");
    merge(parts.clone(), &joined).expect("a trace");
    let runs = read(&joined, "run.parquet");
    assert_eq!(text(&runs, "run"), ["Some(0)", "Some(1)", "Some(2)"]);
    assert_eq!(text(&runs, "rep"), ["Some(15)", "Some(9)", "Some(5)"]);
    assert_eq!(
        text(&runs, "status"),
        [
            "Some(\"complete\")",
            "Some(\"complete\")",
            "Some(\"invalid\")"
        ]
    );
    assert_eq!(text(&runs, "engine")[2], "Some(\"vm:bookworm\")");
    // The subflows of a run have 40 samples and one more per number, three subflows each.
    let samples = text(&read(&joined, "subflow.parquet"), "run");
    let of = |run: &str| samples.iter().filter(|sample| *sample == run).count();
    assert_eq!(
        [of("Some(0)"), of("Some(1)"), of("Some(2)")],
        [47 * 3, 44 * 3, 42 * 3]
    );
    let never = dir.path().join("never");
    parts[0].texts.insert("colour".into(), "red".into());
    let failed = merge(parts.clone(), &never).expect_err("no such column");
    assert!(failed.to_string().contains("colour"), "{failed}");
    parts[0] = part(&first, 5);
    let failed = merge(parts, &never).expect_err("no such run");
    assert!(failed.to_string().contains("there is no run 5"), "{failed}");
    assert!(!never.exists());
}

/// Until runs shared row groups, each had its own in every table, and the run table had fewer columns.
fn write_former_layout(dir: &Path, runs: &[u32], without: &str) {
    fs::create_dir(dir).expect("a new directory");
    for (index, file) in FILES.iter().enumerate() {
        let batches = runs.iter().map(|&run| {
            let batch =
                record_batches(&record(run), &tables(run)).expect("valid tables")[index].clone();
            let fields = batch.schema();
            let columns =
                (0..fields.fields().len()).filter(|&at| fields.field(at).name() != without);
            batch
                .project(&columns.collect::<Vec<_>>())
                .expect("columns")
        });
        let batches: Vec<_> = batches.collect();
        let file = File::create(dir.join(file)).expect("a file");
        let mut writer = ArrowWriter::try_new(file, batches[0].schema(), None).expect("a writer");
        for batch in &batches {
            writer.write(batch).expect("disk space");
            writer.flush().expect("disk space");
        }
        writer.close().expect("disk space");
    }
}

#[test]
fn traces_of_the_former_layout_are_joined_to_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let (former, now) = (dir.path().join("former"), dir.path().join("now"));
    write_former_layout(&former, &[0, 1, 2], "host");
    write(&now, [0, 1, 2]);
    assert_eq!(row_groups(&former, "subflow.parquet").len(), 3);
    let joined = dir.path().join("joined");
    merge((0..3).map(|run| part(&former, run)), &joined).expect("a trace");
    assert_same_bytes(&now, &joined);
}

#[test]
fn traces_with_other_columns_are_refused_with_the_name_of_the_column() {
    let dir = tempfile::tempdir().expect("a directory");
    let former = dir.path().join("former");
    write_former_layout(&former, &[0], "rto_count");
    let failed = merge([part(&former, 0)], &dir.path().join("joined")).expect_err("a column");
    let text = failed.to_string();
    assert!(
        text.contains("subflow.parquet was written by another version")
            && text.contains("rto_count"),
        "{text}"
    );
}

#[test]
fn finished_runs_are_kept_in_traces_that_are_numbered_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let kept = dir.path().join("kept");
    let mut runs = KeptRuns::open(&kept).expect("a directory");
    let encoder = runs.encoder();
    for run in [5, 2, 3] {
        runs.push(mixed(&encoder, run)).expect("disk space");
    }
    assert!(names(&kept).is_empty(), "they wait for each other");
    runs.write().expect("disk space");
    runs.write().expect("nothing to do");
    drop(runs);
    let mut runs = KeptRuns::open(&kept).expect("a directory");
    runs.push(mixed(&encoder, 4)).expect("disk space");
    runs.write().expect("disk space");
    assert_eq!(names(&kept), [kept.join("000001"), kept.join("000002")]);
    let first = kept.join("000001");
    let numbers = text(&read(&first, "run.parquet"), "run");
    assert_eq!(numbers, ["Some(2)", "Some(3)", "Some(5)"]);
    let sums = fs::read_to_string(first.join("checksums.json")).expect("checksums");
    assert_eq!(sums.matches("parquet").count(), FILES.len());
    let (whole, joined) = (dir.path().join("whole"), dir.path().join("joined"));
    write_mixed(&whole, 2..6);
    let from = [
        (&first, 2),
        (&first, 3),
        (&kept.join("000002"), 4),
        (&first, 5),
    ];
    merge(from.map(|(dir, run)| part(dir, run)), &joined).expect("a trace");
    // The joined trace is numbered from 0, and otherwise the same.
    assert_same_rows(&whole, &joined, "run");
}

#[test]
fn a_trace_to_be_read_once_has_the_rows_of_one_that_is_kept_and_no_checksums() {
    let dir = tempfile::tempdir().expect("a directory");
    let (kept, scratch) = (dir.path().join("kept"), dir.path().join("scratch"));
    write_mixed(&kept, 0..4);
    let mut runs = ScratchRuns::create(&scratch).expect("a trace");
    let encoder = runs.encoder();
    // In the order in which they finish.
    for run in [2, 0, 3, 1] {
        runs.push(mixed(&encoder, run)).expect("disk space");
    }
    assert!(!scratch.exists(), "it is not complete");
    runs.finish().expect("disk space");
    assert_same_rows(&kept, &scratch, "");
    assert!(!names(&scratch).contains(&scratch.join("checksums.json")));
    assert!(names(&kept).contains(&kept.join("checksums.json")));
}
