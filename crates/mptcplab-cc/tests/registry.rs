//! The registry that the build script writes, and parameters by name.

use crate::support::{Bench, Paths};
use mptcplab_cc::{Conn, ParamError, Sock, algorithms, find};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_folder_is_the_registry() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../algorithms");
    let files: BTreeSet<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|x| x == "c"))
        .map(|p| p.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let registered: Vec<&str> = algorithms().iter().map(|a| a.name()).collect();
    assert_eq!(
        registered,
        files.iter().map(String::as_str).collect::<Vec<_>>()
    );
    assert!(find("template").is_some() && find("Template").is_none() && find("cc").is_none());
}

#[test]
fn every_algorithm_documents_itself_and_has_what_the_kernel_demands() {
    for algorithm in algorithms() {
        let headings: Vec<&str> = algorithm.sections().iter().map(|(h, _)| *h).collect();
        let wanted = [
            "Idea",
            "Equations",
            "States",
            "Parameters' source",
            "Deviations",
            "On one path",
            "Good at",
            "Bad at",
            "Reference",
        ];
        let name = algorithm.name();
        assert_eq!(algorithm.incomplete(), None, "header comment of {name}");
        assert_eq!(headings, wanted, "{name}");
        assert_eq!(algorithm.missing_hook(), None, "{name}");
        assert!(
            algorithm
                .sections()
                .iter()
                .all(|(_, text)| !text.is_empty()),
            "{}",
            algorithm.name()
        );
        assert!(
            !algorithm.title().is_empty() && algorithm.title().len() < 80,
            "{}",
            algorithm.title()
        );
        for param in algorithm.params() {
            assert!(
                (param.min..=param.max).contains(&param.default),
                "{param:?}"
            );
            assert!(param.scale > 0 && param.doc.len() > 10, "{param:?}");
            let text = param.format(param.default);
            assert_eq!(
                algorithm.parse_param(param.name, &text),
                Ok(param.default),
                "{param:?} {text}"
            );
        }
    }
}

#[test]
fn what_an_algorithm_is_good_and_bad_at_names_a_scenario_that_shows_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for algorithm in algorithms() {
        let claims = algorithm
            .sections()
            .iter()
            .filter(|(heading, _)| ["Good at", "Bad at"].contains(heading));
        for (heading, text) in claims {
            let scenarios: Vec<&str> = text
                .split(|c: char| c.is_whitespace() || "(),;".contains(c))
                .filter(|word| word.starts_with("scenarios/"))
                .map(|word| word.trim_end_matches('.'))
                .collect();
            let name = algorithm.name();
            assert!(!scenarios.is_empty(), "{name}: {heading}: no scenario");
            for scenario in scenarios {
                assert!(
                    root.join(scenario).is_file(),
                    "{name}: {heading}: no {scenario}"
                );
            }
        }
    }
}

#[test]
fn coupled_means_that_siblings_matter() {
    let alone = Paths {
        w: vec![40],
        t: vec![20_000],
        l: vec![(7, 3)],
        r: 0,
    };
    let joined = Paths {
        w: vec![40, 25],
        t: vec![20_000, 31_000],
        l: vec![(7, 3), (90, 1)],
        r: 0,
    };
    for algorithm in algorithms() {
        let name = algorithm.name();
        let differs =
            Bench::new(name, &[], &alone).increase(0) != Bench::new(name, &[], &joined).increase(0);
        // wVegas couples the packets it may queue, not the growth of one ACK; group-LIA couples only subflows that it
        // found at one bottleneck; a rate-based rule has no such growth.
        let grows = !["wvegas", "group-lia"].contains(&name) && !algorithm.has_cong_control();
        assert_eq!(differs, algorithm.coupled() && grows, "{name}");
    }
}

#[test]
fn parameters_change_the_rule_and_are_checked() {
    let p = Paths {
        w: vec![40, 25],
        t: vec![20_000, 31_000],
        l: vec![(7, 3), (90, 1)],
        r: 0,
    };
    let sqrt = Bench::new("ewtcp", &[], &p).increase(0);
    let fair = Bench::new("ewtcp", &[("weight", 1)], &p).increase(0);
    assert!((sqrt - 1.0 / 40.0 / 2f64.sqrt()).abs() < 1e-6 && (fair - 1.0 / 160.0).abs() < 1e-6);

    let ewtcp = find("ewtcp").unwrap();
    assert_eq!(ewtcp.parse_param("weight", "fair"), Ok(1));
    // A number is taken as it is; the raw values of the names cannot be written as numbers.
    let quarter = ewtcp.parse_param("weight", "0.25").unwrap();
    let given = Bench::new("ewtcp", &[("weight", quarter)], &p).increase(0);
    assert!((given - 1.0 / 160.0).abs() < 1e-6 && quarter == 16_384);
    assert!(
        ewtcp.parse_param("weight", "0").is_err() && ewtcp.parse_param("weight", "1.01").is_err()
    );
    let error = ewtcp.parse_param("weight", "fare").unwrap_err().to_string();
    assert_eq!(
        error,
        "parameter weight of ewtcp: fare (wanted one of these names or a number: sqrt, fair, or 0.00003 to 1)"
    );
    let error = ewtcp.parse_param("wieght", "fair").unwrap_err().to_string();
    assert_eq!(error, "ewtcp has no parameter wieght (it has: weight)");

    let cubic = find("cubic").unwrap();
    assert_eq!(cubic.parse_param("beta", "0.7"), Ok(717));
    assert_eq!(
        cubic.parse_param("beta", "1.7").unwrap_err().to_string(),
        "parameter beta of cubic: 1.7 (wanted a number from 0.5 to 0.9)"
    );
    let too_large = Sock::new(cubic, &[("c".to_owned(), u64::MAX)], false).unwrap_err();
    assert!(
        matches!(too_large, ParamError::BadValue { .. }),
        "{too_large}"
    );
    assert!(Sock::new(find("reno").unwrap(), &[("c".to_owned(), 1)], false).is_err());
}

#[test]
fn growth_per_ack_halves_reno_under_stretch_acks_but_not_slow_start() {
    let grow = |per_ack: bool, ssthresh: u32| {
        let mut conn = Conn::new();
        let mut sock = Sock::new(find("reno").unwrap(), &[], per_ack).unwrap();
        sock.tp.snd_cwnd = 16;
        sock.tp.snd_ssthresh = ssthresh;
        sock.tp.is_cwnd_limited = true;
        sock.init(&mut conn, 0);
        for _ in 0..8 {
            sock.cong_avoid(&mut conn, 0, 2);
        }
        sock.window()
    };
    assert!(
        (grow(false, 16) - 17.0).abs() < 1e-6,
        "16 packets acknowledged at 16 are one more"
    );
    assert!(
        (grow(true, 16) - 16.5).abs() < 1e-6,
        "8 ACKs at 16 are half a packet"
    );
    assert_eq!((grow(false, 1000), grow(true, 1000)), (32.0, 32.0));
}

#[test]
fn a_window_in_recovery_counts_with_its_threshold_and_an_idle_one_with_its_flight() {
    let p = Paths {
        w: vec![40, 60],
        t: vec![20_000, 20_000],
        l: vec![(0, 0); 2],
        r: 0,
    };
    let mut bench = Bench::new("coupled", &[], &p);
    let after = |bench: &mut Bench| (1.0 / bench.increase(0)).round();
    assert_eq!(after(&mut bench), 100.0);
    let sibling = &mut bench.socks[1];
    sibling.tp.snd_ssthresh = 33;
    sibling.set_state(&mut bench.conn, mptcplab_cc::CaState::Recovery);
    assert_eq!(after(&mut bench), 73.0);
    let sibling = &mut bench.socks[1];
    sibling.set_state(&mut bench.conn, mptcplab_cc::CaState::Open);
    sibling.tp.app_limited = 1;
    (
        sibling.tp.packets_out,
        sibling.tp.sacked_out,
        sibling.tp.lost_out,
        sibling.tp.retrans_out,
    ) = (30, 7, 5, 2);
    sibling.publish(&mut bench.conn);
    assert_eq!(after(&mut bench), 60.0);
    bench.socks[1].release(&mut bench.conn);
    assert_eq!(after(&mut bench), 40.0);
}
