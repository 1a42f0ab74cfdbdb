//! Changes of links from files, and random loss in both directions.

use mptcplab_model::link::{Change, Loss};
use mptcplab_scenario::{Overrides, Sweep, parse};

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
