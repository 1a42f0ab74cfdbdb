//! What a page gets: chunks that hold the simulator's samples, and messages as on the command line.

use mptcplab_sim::Control;
use mptcplab_trace::{Tables, Values};
use mptcplab_wasm::{catalog::catalog, chunk, session};
use serde_json::{Value, json};

/// Two subflows and a TCP flow; the second link follows a file.
const SCENARIO: &str = r#"
duration = "20 s"
warmup = "1 s"
cc = ["lia", "reno"]
[links.A]
from = "S"
to = "D"
rate = "8 Mbit/s"
delay = "6 ms"
queue = "40 packets"
loss = "0.5 %"
[links.B]
from = "S"
to = "D"
rate = "3 Mbit/s"
delay = "17 ms"
queue = "25 packets"
schedule_file = "walk/b.csv"
[flows.mp]
paths = [["A"], ["B"]]
[flows.tcp]
path = ["A"]
cc = "cubic"
"#;

fn request(text: &str) -> String {
    let files = json!({"walk/b.csv": "at_ms,rate_bps\n2000,1000000\n"});
    json!({"name": "page.toml", "text": text, "files": files}).to_string()
}

/// Reads a chunk as the page does: by the types of the catalog.
fn append(bytes: &[u8], columns: &mut [Vec<u8>]) {
    let catalog = catalog();
    let tables = catalog["tables"].as_array().unwrap();
    let rows: Vec<usize> = (0..tables.len())
        .map(|i| u32::from_le_bytes(bytes[4 * i..][..4].try_into().unwrap()) as usize)
        .collect();
    let mut at = (4 * tables.len()).next_multiple_of(8);
    let mut column = 0;
    for (table, rows) in tables.iter().zip(rows) {
        for declared in table["columns"].as_array().unwrap() {
            let size = match declared["type"].as_str().unwrap() {
                "u8" => 1,
                "u32" | "i32" => 4,
                _ => 8,
            };
            columns[column].extend(&bytes[at..at + size * rows]);
            at += (size * rows).next_multiple_of(8);
            column += 1;
        }
    }
    assert_eq!(at, bytes.len());
}

fn plain(tables: &Tables) -> Vec<Vec<u8>> {
    let views = tables.views();
    let values = views.iter().flat_map(|view| &view.values);
    let bytes = values.map(|values| match values {
        Values::U8(v) => v.to_vec(),
        Values::U32(v) => v.iter().flat_map(|n| n.to_le_bytes()).collect(),
        Values::U64(v) => v.iter().flat_map(|n| n.to_le_bytes()).collect(),
        Values::I32(v) => v.iter().flat_map(|n| n.to_le_bytes()).collect(),
    });
    bytes.collect()
}

#[test]
fn chunks_together_are_the_samples_of_the_simulator() {
    let sweep = session::open(&request(SCENARIO)).unwrap();
    let run = session::run_of(&sweep, 1).unwrap();
    let expected = mptcplab_sim::simulate(run, &Control::default()).unwrap();
    let mut columns = vec![Vec::new(); plain(&expected.tables).len()];
    let mut chunks = 0;
    let totals = session::simulate(run, &mut |bytes| {
        append(bytes, &mut columns);
        chunks += 1;
        true
    })
    .unwrap();
    // 2000 samples of two flows, three subflows and four directed links, in chunks of 8192 rows, and the rest.
    assert_eq!(chunks, 3);
    assert!(columns == plain(&expected.tables));
    assert_eq!(totals["packet_hops"], expected.packet_hops);
    assert_eq!(totals["subflow_cc"], json!([["reno", "reno"], ["cubic"]]));
}

#[test]
fn a_run_stops_when_the_page_says_so() {
    let text = SCENARIO.replace("20 s", "60 s");
    let sweep = session::open(&request(&text)).unwrap();
    let mut chunks = 0;
    let stopped = session::simulate(session::run_of(&sweep, 0).unwrap(), &mut |_| {
        chunks += 1;
        chunks < 3
    });
    assert_eq!((stopped, chunks), (Err("cancelled".to_owned()), 3));
}

#[test]
fn the_plan_names_the_runs_of_every_combination() {
    let sweep = session::open(&request(SCENARIO)).unwrap();
    let plan = session::plan(&sweep);
    let runs: Vec<&Value> = plan["combinations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["runs"])
        .collect();
    assert_eq!(runs, [&json!([0]), &json!([1])]);
    assert_eq!(
        session::run_of(&sweep, 2).unwrap_err(),
        "run 2: the scenario has 2 runs"
    );
}

#[test]
fn mistakes_are_named_as_on_the_command_line() {
    let misspelt = session::open(&request(&SCENARIO.replace("queue =", "qeue ="))).unwrap_err();
    assert!(
        misspelt.contains("page.toml:10:1: links.A.qeue: "),
        "{misspelt}"
    );
    assert!(misspelt.contains("hint: "), "{misspelt}");
    let other = session::open(&request(&SCENARIO.replace("b.csv", "c.csv"))).unwrap_err();
    assert!(other.contains("walk/c.csv: no such file"), "{other}");
    assert!(
        session::open("{")
            .unwrap_err()
            .starts_with("the page's request: ")
    );
}

#[test]
fn an_empty_chunk_has_no_rows_but_all_its_parts() {
    let mut bytes = vec![7; 3];
    chunk::encode(&Tables::default(), &mut bytes);
    assert_eq!(bytes, [0; 24]);
}
