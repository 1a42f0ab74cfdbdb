//! Every target over its corpus and over some seconds of mutations, the same in each run. `MPTCPLAB_FUZZ_SECONDS` makes it
//! longer, and then goes on to other mutations.

use mptcplab_fuzz::mutate::mutated;
use mptcplab_fuzz::{TARGETS, Target};
use mptcplab_model::link::rng::Rng;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Mutations per target: as many as take about half a second.
const MUTATIONS: [(&str, usize); 8] = [
    ("link_files", 3_000),
    ("overrides", 10_000),
    ("replay_records", 20_000),
    ("scenario", 4_000),
    ("simulation", 100),
    ("tracer", 50_000),
    ("traces", 300),
    ("vectors", 3_000),
];

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 3, "{} has no inputs", folder.display());
    let read = |path| fs::read(path).expect("a file of the corpus");
    paths.iter().map(read).collect()
}

fn fuzz(name: &str, target: Target) {
    let corpus = corpus(name);
    for input in &corpus {
        target(input);
    }
    let seconds = std::env::var("MPTCPLAB_FUZZ_SECONDS").ok();
    let longer = seconds.map(|text| Duration::from_secs(text.parse().expect("seconds")));
    let count = MUTATIONS
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a number of mutations")
        .1;
    let start = Instant::now();
    for number in 0.. {
        let is_enough = longer.map_or(number >= count, |time| start.elapsed() >= time);
        if is_enough {
            break;
        }
        let mut random = Rng::new(number as u64, 0, "fuzz", name);
        let input = mutated(&mut random, &corpus);
        let run = std::panic::catch_unwind(|| target(&input));
        if run.is_err() {
            let place = std::env::temp_dir().join(format!("fuzz-{name}-{number}"));
            fs::write(&place, &input).expect("a file for the input");
            panic!(
                "{name}: mutation {number} fails; its input is {}",
                place.display()
            );
        }
    }
}

#[test]
fn no_target_fails_on_its_corpus_and_on_mutations_of_it() {
    let only = std::env::var("MPTCPLAB_FUZZ_TARGET").ok();
    std::thread::scope(|scope| {
        for &(name, target) in TARGETS {
            if only.as_deref().is_none_or(|only| only == name) {
                scope.spawn(move || fuzz(name, target));
            }
        }
    });
}
