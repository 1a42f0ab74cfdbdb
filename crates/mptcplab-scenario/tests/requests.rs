//! Requests with responses and messages: what the tables mean, with their defaults, and as JSON and text.

use mptcplab_scenario::{
    ArrivalRate, DurationDistribution, Overrides, RequestKind, RequestTimes, Requests,
    SizeDistribution, Sweep, Traffic, Transport, describe, parse, run_json,
};
use serde_json::json;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn sweep(traffic: &str) -> Sweep {
    let text = format!(
        "duration = \"40 s\"\ncc = \"reno\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"12 Mbit/s\"\ndelay = \"7 ms\"\n\
         [flows.f]\npath = [\"a\"]\ntraffic = {traffic}\n"
    );
    parse(&text, "x.toml", None, &Overrides::default()).unwrap_or_else(|e| panic!("error: {e}"))
}

fn requests(traffic: &str) -> Requests {
    match &sweep(traffic).runs[0].flows[0].transport {
        Transport::Tcp(tcp) => match &tcp.traffic {
            Traffic::Requests(requests) => requests.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn fixed(bytes: u64) -> SizeDistribution {
    SizeDistribution::Fixed { bytes }
}

#[test]
fn requests_have_sizes_both_ways_and_times() {
    let think = requests("{ requests = { response = \"30 kB\", think = \"2 s\" } }");
    let expected = Requests {
        kind: RequestKind::Requests,
        size: fixed(400),
        answer: Some(fixed(30_000)),
        times: RequestTimes::Think(DurationDistribution::Fixed(2 * S)),
        count: None,
        bound_ns: None,
    };
    assert_eq!(think, expected);
    let open = requests(
        "{ requests = { response = { law = \"exponential\", mean = \"5 kB\", most = \"60 kB\" }, request = \"70 bytes\", \
         arrivals = \"6 / min\", repeat = 8, bound = \"250 ms\" } }",
    );
    let level = ArrivalRate {
        per_1000_min: 6_000,
        lasts_ns: u64::MAX,
    };
    let expected = Requests {
        size: fixed(70),
        answer: Some(SizeDistribution::Exponential {
            mean_bytes: 5_000,
            max_bytes: 60_000,
        }),
        times: RequestTimes::Poisson {
            levels: vec![level],
        },
        count: Some(8),
        bound_ns: Some(250 * MS),
        ..think
    };
    assert_eq!(open, expected);
}

#[test]
fn messages_are_answered_or_not_and_late_after_a_tenth_of_a_second() {
    let game =
        requests("{ messages = { size = \"90 bytes\", interval = \"exponential(33 ms)\" } }");
    let expected = Requests {
        kind: RequestKind::Messages,
        size: fixed(90),
        answer: None,
        times: RequestTimes::Interval(DurationDistribution::Exponential { mean_ns: 33 * MS }),
        count: None,
        bound_ns: Some(100 * MS),
    };
    assert_eq!(game, expected);
    let echo = "{ messages = { size = \"90 bytes\", answer = \"120 bytes\", interval = \"9 ms\", bound = \"40 ms\" } }";
    let echo = requests(echo);
    assert_eq!(
        (echo.answer, echo.bound_ns),
        (Some(fixed(120)), Some(40 * MS))
    );
}

#[test]
fn json_and_text_say_what_is_sent_and_when() {
    let of = |traffic: &str| {
        let sweep = sweep(traffic);
        let json = run_json(&sweep.runs[0], None);
        (json["flows"][0]["traffic"].clone(), describe(&sweep))
    };
    let (json, text) = of(
        "{ requests = { response = \"30 kB\", think = \"2 s\", repeat = 5, bound = \"90 ms\" } }",
    );
    let expected = json!({ "requests": {
        "request": 400, "response": 30_000, "think_ns": 2 * S, "count": 5, "bound_ns": 90 * MS,
    }});
    assert_eq!(json, expected);
    let words = "requests of 400 bytes, responses of 30 kB, one after the other, think time 2 s, 5 in all, late after 90 ms";
    assert!(text.contains(words), "{text}");
    let (json, text) = of("{ messages = { size = \"90 bytes\", arrivals = \"7 / s\" } }");
    let expected = json!({ "messages": {
        "size": 90, "answer": null, "arrivals": { "levels": [{ "per_s": 7.0, "lasts_ns": null }] },
        "count": null, "bound_ns": 100 * MS,
    }});
    assert_eq!(json, expected);
    assert!(
        text.contains("messages of 90 bytes, at 7 / s, late after 100 ms"),
        "{text}"
    );
}

#[test]
fn sizes_and_times_are_axes_of_a_sweep() {
    let sweep =
        sweep("{ requests = { response = [\"3 kB\", \"50 kB\"], think = [\"1 s\", \"2 s\"] } }");
    assert_eq!(sweep.runs.len(), 4);
    assert_eq!(sweep.runs[0].axes[0].0, "flows.f.traffic.requests.response");
}
