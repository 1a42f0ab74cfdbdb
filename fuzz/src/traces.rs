//! The tables of a trace, which a user may have got from somebody else.

use mptcplab_scenario::Overrides;
use mptcplab_sim::{Control, simulate};
use mptcplab_trace::parquet::{Part, TraceWriter, merge};
use mptcplab_trace::{EngineInfo, RunRecord};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

const SCENARIO: &str = "duration = \"200 ms\"\nsample = \"50 ms\"\ncc = \"reno\"\n[links.one]\nfrom = \"S\"\nto = \"D\"\n\
    rate = \"2 Mbit/s\"\ndelay = \"3 ms\"\nqueue = \"9 packets\"\n[flows.f]\npath = [\"one\"]\n";

/// The tables of a good trace, by file name.
fn good() -> &'static BTreeMap<String, Vec<u8>> {
    static GOOD: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let out = folder.path().join("trace");
        write(&out);
        let files = std::fs::read_dir(&out).expect("a trace");
        let read = |path: std::path::PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            (
                name.expect("a name").to_owned(),
                std::fs::read(&path).expect("a table"),
            )
        };
        files
            .map(|file| read(file.expect("a table").path()))
            .collect()
    })
}

fn write(out: &Path) {
    let sweep = mptcplab_scenario::parse(SCENARIO, "any.toml", None, &Overrides::default())
        .expect("a valid scenario");
    let run = &sweep.runs[0];
    let outcome = simulate(run, &Control::default()).expect("a run");
    let engine = EngineInfo {
        name: "sim",
        version: "0",
        build: "fuzz",
        scheduler: None,
        subflow_cc: &outcome.subflow_cc,
        events: outcome.events,
        packet_hops: outcome.packet_hops,
    };
    let mut writer = TraceWriter::create(out).expect("a trace");
    let record = RunRecord::new(&sweep, run, &engine);
    let encoded = writer
        .encoder()
        .encode(&record, &outcome.tables)
        .expect("a run");
    writer.append(encoded).expect("a run");
    writer.finish().expect("a trace");
}

/// The first byte chooses the table of a good trace that the others replace. A byte above the number of tables changes
/// single bytes of it: (position, new value) from three bytes each.
pub fn traces(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let tables = good();
    let chosen = usize::from(choice) % tables.len();
    let is_patch = usize::from(choice) >= tables.len();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let dir = folder.path().join("part");
    std::fs::create_dir(&dir).expect("a directory");
    for (index, (name, content)) in tables.iter().enumerate() {
        let content = match (index == chosen, is_patch) {
            (false, _) => content.clone(),
            (true, true) => patched(content, rest),
            (true, false) => rest.to_vec(),
        };
        std::fs::write(dir.join(name), content).expect("a table");
    }
    let part = |dir: &Path| Part {
        dir: dir.to_owned(),
        run: 0,
        texts: BTreeMap::new(),
    };
    let out = folder.path().join("out");
    match merge([part(&dir)], &out) {
        Ok(()) => {
            let again = merge([part(&out)], &folder.path().join("again"));
            assert!(again.is_ok(), "what was written cannot be read: {again:?}");
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(!out.exists(), "an incomplete trace is left");
        }
    }
}

fn patched(content: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    for change in changes.chunks_exact(3) {
        let at = usize::from(change[0]) << 8 | usize::from(change[1]);
        let length = content.len();
        if let Some(byte) = content.get_mut(at % length.max(1)) {
            *byte = change[2];
        }
    }
    content
}
