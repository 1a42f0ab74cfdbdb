//! Changes of links from files, and random loss in both directions.

use mptcplab_model::link::{Change, Loss};
use mptcplab_scenario::{FileSource, Overrides, Sweep, parse, parse_with};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn sweep(link: &str) -> Sweep {
    let text = format!(
        "duration = \"4 s\"\nrepetitions = 2\ncc = \"reno\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"12 Mbit/s\"\ndelay = \"7 ms\"\n{link}\n\
         [flows.f]\npath = [\"a\"]\n"
    );
    let folder = std::path::Path::new("tests/bad");
    parse(&text, "x.toml", Some(folder), &Overrides::default())
        .unwrap_or_else(|e| panic!("error: {e}"))
}

fn at(ms: u64) -> Change {
    Change {
        at_ns: ms * MS,
        rate_bps: None,
        delay_ns: None,
        loss: None,
        up: None,
    }
}

#[test]
fn every_repetition_has_its_own_file_where_its_number_is_in_the_name() {
    let sweep = sweep("schedule_file = \"walk-{rep}.csv\"");
    assert_eq!(sweep.files, ["walk-0.csv", "walk-1.csv"]);
    let [first, second] = [0, 1].map(|rep: usize| {
        let run = &sweep.runs[rep];
        assert_eq!((run.rep as usize, run.id as usize), (rep, rep));
        run.links[0].config.schedule.clone()
    });
    let rate = |ms, rate_bps| Change {
        rate_bps: Some(rate_bps),
        ..at(ms)
    };
    let expected = [
        Change {
            loss: Some(Loss::Bernoulli { p: 0.0005 }),
            ..rate(0, 11_000_000)
        },
        rate(300, 0),
        Change {
            loss: Some(Loss::None),
            ..rate(600, 5_000_000)
        },
    ];
    assert_eq!(first, expected);
    let delay = |ms, us: u64| Change {
        delay_ns: Some(us * 1000),
        ..at(ms)
    };
    assert_eq!(second, [delay(0, 12_000), delay(900, 4500)]);
}

#[test]
fn the_way_back_takes_over_a_file_as_it_does_a_schedule() {
    let back = |more: &str| {
        let sweep = sweep(&format!("schedule_file = \"walk-0.csv\"\n{more}"));
        let config = &sweep.runs[0].links[1].config;
        (config.loss, config.schedule.clone())
    };
    let rate = |ms, rate_bps| Change {
        rate_bps: Some(rate_bps),
        ..at(ms)
    };
    let rates = [rate(0, 11_000_000), rate(300, 0), rate(600, 5_000_000)];
    assert_eq!(back(""), (Loss::None, rates.into()));
    assert_eq!(
        back("reverse = { rate = \"1 Mbit/s\" }"),
        (Loss::None, Vec::new())
    );
    let losses = [
        Change {
            loss: Some(Loss::Bernoulli { p: 0.0005 }),
            ..at(0)
        },
        Change {
            loss: Some(Loss::None),
            ..at(600)
        },
    ];
    assert_eq!(
        back("loss = \"3 %\"\nloss_both = true\nreverse = { rate = \"1 Mbit/s\" }"),
        (Loss::Bernoulli { p: 0.03 }, losses.into())
    );
}

/// The text of a scenario whose link follows `walk/{rep}.csv`.
const WALK: &str = "duration = \"4 s\"\nrepetitions = 2\ncc = \"reno\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"12 Mbit/s\"\n\
    delay = \"7 ms\"\nschedule_file = \"walk/{rep}.csv\"\n[flows.f]\npath = [\"a\"]\n";

fn walk(texts: &[(&str, &str)]) -> Result<Sweep, String> {
    let owned = |(name, text): &(&str, &str)| (String::from(*name), String::from(*text));
    let texts: BTreeMap<String, String> = texts.iter().map(owned).collect();
    parse_with(
        WALK,
        "x.toml",
        FileSource::Texts(&texts),
        &Overrides::default(),
    )
    .map_err(|e| e.to_string())
}

#[test]
fn files_may_be_texts_in_memory() {
    let files = [
        ("walk/0.csv", "at_ms,rate_bps\n900,3000000\n"),
        ("walk/1.csv", "at_ms,rate_bps\n1100,5000000\n"),
    ];
    let sweep = walk(&files).unwrap();
    let first = |run: usize| sweep.runs[run].links[0].config.schedule.last().cloned();
    assert_eq!(
        first(0),
        Some(Change {
            rate_bps: Some(3_000_000),
            ..at(900)
        })
    );
    assert_eq!(
        first(1),
        Some(Change {
            rate_bps: Some(5_000_000),
            ..at(1100)
        })
    );
    assert_eq!(sweep.files, ["walk/0.csv", "walk/1.csv"]);
}

/// As editors on Windows and spreadsheets write it.
#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let files = [
        ("walk/0.csv", "\u{feff}at_ms,rate_bps\n900,3000000\n"),
        ("walk/1.csv", "at_ms,rate_bps\n1100,5000000\n"),
    ];
    let sweep = walk(&files).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sweep.runs[0].links[0].config.schedule[0].at_ns, 900 * MS);
}

#[test]
fn a_text_that_is_missing_or_wrong_is_named() {
    let missing = walk(&[("walk/0.csv", "at_ms,rate_bps\n900,3000000\n")]).unwrap_err();
    assert!(
        missing.contains("cannot be read: walk/1.csv: no such file"),
        "{missing}"
    );
    assert!(
        missing.contains("the files here are: walk/0.csv"),
        "{missing}"
    );
    let wrong = walk(&[("walk/0.csv", "at_ms,rate_bps\n900,fast\n")]).unwrap_err();
    assert!(wrong.contains("walk/0.csv:2: "), "{wrong}");
}
