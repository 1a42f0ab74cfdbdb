//! The meaning of scenarios: defaults, inheritance, sweeps, resolved numbers.

use mptcplab_model::link::{Aqm, Change, Loss, QueueLimit, Reorder};
use mptcplab_scenario::{
    ArrivalRate, Arrivals, CcConfig, CompSack, Dss, DurationDistribution, Flow, Growth,
    LossRecovery, Overrides, Profile, RcvBuffer, Run, Scheduler, SchedulerKind, SizeDistribution,
    StartTime, Sweep, TcpFlow, TcpOptions, Traffic, Transfers, Transport, UdpFlow, Video, describe,
    parse, run_json, sweep_json,
};
use std::fmt::Write;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn sweep_with(text: &str, overrides: &Overrides) -> Sweep {
    let folder = std::path::Path::new("tests/bad");
    parse(text, "some/where/my scenario.toml", Some(folder), overrides)
        .unwrap_or_else(|e| panic!("error: {e}"))
}

fn sweep(text: &str) -> Sweep {
    sweep_with(text, &Overrides::default())
}

/// The run of a link `a` (S to D, 12 Mbit/s, 7 ms) with additional keys, and of a flow `f` with its keys.
fn one(link: &str, flow: &str) -> Run {
    let text = format!(
        "duration = \"40 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"12 Mbit/s\"\ndelay = \"7 ms\"\n{link}\n\
         [links.b]\nfrom = \"S\"\nto = \"D\"\nrate = \"3 Mbit/s\"\ndelay = \"11 ms\"\n[flows.f]\n{flow}\n"
    );
    let sweep = sweep(&text);
    assert_eq!(sweep.runs.len(), 1);
    sweep.runs[0].clone()
}

fn tcp(flow: &Flow) -> &TcpFlow {
    match &flow.transport {
        Transport::Tcp(tcp) => tcp,
        Transport::Sctp(_) | Transport::Udp(_) => panic!("{} is not TCP", flow.name),
    }
}

fn udp(flow: &Flow) -> &UdpFlow {
    match &flow.transport {
        Transport::Udp(udp) => udp,
        Transport::Tcp(_) | Transport::Sctp(_) => panic!("{} is not UDP", flow.name),
    }
}

const PLAIN: &str = "cc = \"reno\"\npath = [\"a\"]";

#[test]
fn what_is_not_written_follows_linux_and_the_spec() {
    let sweep = sweep(&format!(
        "duration = \"40 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"1 Mbit/s\"\ndelay = \"7 ms\"\n[flows.f]\n{PLAIN}\n"
    ));
    assert_eq!(
        (
            sweep.name.as_str(),
            sweep.title.as_str(),
            sweep.source.as_str()
        ),
        ("my-scenario", "my-scenario", "")
    );
    let run = &sweep.runs[0];
    assert_eq!(
        (run.seed, run.rep, run.warmup_ns, run.sample_ns, run.per_ack),
        (1, 0, 0, Some(10 * MS), false)
    );
    assert_eq!(run.profile, Profile::LinuxAcked);
    let config = &run.links[0].config;
    assert_eq!(
        (config.overhead_bytes, config.queue),
        (14, QueueLimit::Packets(1000))
    );
    assert_eq!(
        (config.aqm, config.ecn, config.loss),
        (Aqm::DropTail, false, Loss::None)
    );
    assert_eq!(run.links[1].config, *config);
    assert_eq!(
        (run.links[1].from, run.links[1].to),
        (run.links[0].to, run.links[0].from)
    );
    let flow = &run.flows[0];
    assert_eq!((flow.start, flow.stop_ns), (StartTime::At(0), None));
    let flow = tcp(flow);
    assert_eq!(
        (flow.mptcp, flow.mss_bytes, flow.traffic.clone()),
        (false, 1448, Traffic::Bulk)
    );
    assert_eq!(
        (flow.rcv_buffer, flow.scheduler),
        (RcvBuffer::Unlimited, None)
    );
    let expected = TcpOptions {
        initial_cwnd_pkts: 10,
        initial_ssthresh_pkts: None,
        ecn: false,
        recovery: LossRecovery::Sack,
        pacing: false,
        slow_start_after_idle: true,
        reinject: true,
        stale_after: None,
        send_jitter_ns: None,
        host_delay_ns: 0,
        tso: None,
        nagle: true,
        comp_sack: None,
        linear_syn_timeouts: 0,
        dss: Dss::Short,
        cwnd_clamp_pkts: None,
    };
    assert_eq!(flow.options, expected);
}

const BOTH: &str = "subflows = [{ path = [\"a\"] }, { path = [\"b\"] }]";

/// Flows like a kernel's: the name, the path or both paths, and other settings of each.
fn like_a_kernel(kernel: &str, flows: &[(&str, &str, &str)]) -> Sweep {
    let mut text = format!(
        "duration = \"40 s\"\ncc = \"reno\"\n[tcp]\nlike = \"{kernel}\"\n\
         [links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"1 Mbit/s\"\ndelay = \"7 ms\"\n\
         [links.b]\nfrom = \"S\"\nto = \"D\"\nrate = \"2 Mbit/s\"\ndelay = \"9 ms\"\n"
    );
    for (name, paths, settings) in flows {
        writeln!(text, "[flows.{name}]\n{paths}\n{settings}").unwrap();
    }
    sweep(&text)
}

#[test]
fn a_kernel_to_be_like_decides_what_a_flow_leaves_open() {
    let sweep = like_a_kernel(
        "linux-6.18",
        &[
            ("all", BOTH, ""),
            (
                "some",
                BOTH,
                "tso = false\nscheduler = \"ecf\"\nrcv_buffer = \"90 kB\"",
            ),
            ("tcp", "path = [\"b\"]", "comp_sack = false"),
            ("none", BOTH, "like = \"none\""),
        ],
    );
    let found = sweep.runs[0].flows.iter().map(|flow| {
        let (tcp, options) = (tcp(flow), tcp(flow).options);
        let scheduler = tcp.scheduler.map(|scheduler| scheduler.to_string());
        (
            flow.name.as_str(),
            scheduler,
            options.tso,
            options.comp_sack,
            options.linear_syn_timeouts,
            tcp.rcv_buffer,
        )
    });
    let linger = Some("linger".to_owned());
    let automatic = RcvBuffer::Auto {
        max_bytes: 33_554_432,
        growth: Growth::Linux6_18,
    };
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            (
                "all",
                linger,
                Some(true),
                Some(CompSack::Linux4_18),
                4,
                automatic
            ),
            (
                "some",
                Some("ecf".to_owned()),
                Some(false),
                Some(CompSack::Linux4_18),
                4,
                RcvBuffer::Fixed(90_000)
            ),
            ("tcp", None, Some(true), Some(CompSack::Off), 4, automatic),
            ("none", None, None, None, 0, RcvBuffer::Unlimited),
        ]
    );
}

/// Packet captures of Linux 6.18 show these sizes, and one SACK block in every ACK of MPTCP.
#[test]
fn the_kernel_to_be_like_decides_the_length_of_the_options_of_mptcp() {
    let sweep = like_a_kernel(
        "linux-6.18",
        &[
            ("all", BOTH, ""),
            ("tcp", "path = [\"b\"]", ""),
            ("none", BOTH, "like = \"none\""),
        ],
    );
    let flows = sweep.runs[0].flows.iter().map(tcp);
    let found = flows.map(|t| (t.data_header_bytes(), t.ack_bytes(), t.sack_blocks()));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [(76, 64, 1), (52, 52, 3), (72, 60, 2)]
    );
    let json = run_json(&sweep.runs[0], None);
    let names = [0, 1, 2].map(|flow| json["flows"][flow]["dss"].as_str());
    assert_eq!(names, [Some("linux"), None, None]);
}

#[test]
fn the_kernel_to_be_like_decides_how_the_buffer_of_a_connection_grows_and_is_announced() {
    let sweep = like_a_kernel(
        "linux-7.3",
        &[
            ("all", BOTH, ""),
            ("own", BOTH, "rcv_buffer = { auto = \"3 MB\" }"),
            ("tcp", "path = [\"b\"]", ""),
            ("old", BOTH, "like = \"linux-6.18\""),
            ("fixed", BOTH, "rcv_buffer = \"80 kB\""),
            ("fixed_tcp", "path = [\"b\"]", "rcv_buffer = \"70 kB\""),
            (
                "fixed_old",
                BOTH,
                "rcv_buffer = \"60 kB\"\nlike = \"linux-6.18\"",
            ),
        ],
    );
    let flows = sweep.runs[0].flows.iter();
    let found: Vec<_> = flows.map(|flow| tcp(flow).rcv_buffer).collect();
    let buffer = |max_bytes, growth| RcvBuffer::Auto { max_bytes, growth };
    assert_eq!(
        found,
        [
            buffer(33_554_432, Growth::Linux7_3),
            buffer(3_000_000, Growth::Linux7_3),
            // Linux' TCP has not changed.
            buffer(33_554_432, Growth::Linux6_18),
            buffer(33_554_432, Growth::Linux6_18),
            RcvBuffer::FixedMemory(80_000),
            RcvBuffer::Fixed(70_000),
            RcvBuffer::Fixed(60_000),
        ]
    );
}

#[test]
fn a_flow_overrules_the_common_tcp_settings() {
    let text = "duration = \"40 s\"\ncc = \"reno\"\n[tcp]\nmss = \"1000 bytes\"\npacing = true\ninitial_cwnd = \"4 packets\"\n\
                rcv_buffer = { auto = \"3 MB\" }\nsend_jitter = \"100 us\"\nhost_delay = \"17 us\"\nrecovery = \"tahoe\"\n\
                [links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"1 Mbit/s\"\ndelay = \"7 ms\"\n\
                [flows.f]\npath = [\"a\"]\ninitial_cwnd = \"6 packets\"\nrcv_buffer = \"90 kB\"\ncwnd_clamp = \"70 packets\"\n\
                initial_ssthresh = \"50 packets\"\nrecovery = \"newreno\"\n[flows.g]\npath = [\"a\"]\npacing = false\n";
    let run = &sweep(text).runs[0];
    let (f, g) = (tcp(&run.flows[0]), tcp(&run.flows[1]));
    assert_eq!((f.mss_bytes, g.mss_bytes), (1000, 1000));
    assert_eq!((f.options.pacing, g.options.pacing), (true, false));
    assert_eq!(
        (f.options.initial_cwnd_pkts, g.options.initial_cwnd_pkts),
        (6, 4)
    );
    assert_eq!(
        (f.rcv_buffer, g.rcv_buffer),
        (
            RcvBuffer::Fixed(90_000),
            RcvBuffer::Auto {
                max_bytes: 3_000_000,
                growth: Growth::Linux6_18,
            }
        )
    );
    assert_eq!(
        (f.options.cwnd_clamp_pkts, f.options.initial_ssthresh_pkts),
        (Some(70), Some(50))
    );
    assert_eq!(
        (g.options.send_jitter_ns, g.options.host_delay_ns),
        (Some(100_000), 17_000)
    );
    assert_eq!(
        (f.options.recovery, g.options.recovery),
        (LossRecovery::NewReno, LossRecovery::Tahoe)
    );
}

#[test]
fn by_default_packets_wait_for_up_to_ten_packet_times_of_the_subflows_own_path() {
    // A full packet has 1500 bytes, and 14 more on Ethernet. On `slow` it takes 12.112 ms, of which the RTT allows 20 ms.
    // Behind `fast`, `wide` decides with 38 bytes more: 1538 x 8 / 10 Mbit/s = 1.2304 ms, and its RTT allows more than
    // ten times that. The RTT of `near` allows not even one packet time, which is 6.056 ms; later rates do not count.
    let links = "[links.slow]\nfrom = \"S\"\nto = \"D\"\nrate = \"1 Mbit/s\"\ndelay = \"80 ms\"\n\
                 [links.fast]\nfrom = \"S\"\nto = \"M\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
                 [links.wide]\nfrom = \"M\"\nto = \"D\"\nrate = \"10 Mbit/s\"\ndelay = \"59 ms\"\noverhead = \"38 bytes\"\n\
                 [links.near]\nfrom = \"S\"\nto = \"D\"\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n\
                 schedule = [{ at = \"2 s\", rate = \"1 Mbit/s\" }]\n";
    let flows = "[flows.mp]\npaths = [[\"slow\"], [\"fast\", \"wide\"], [\"near\"]]\n\
                 [flows.one]\npath = [\"fast\"]\n[flows.off]\npath = [\"slow\"]\nsend_jitter = \"0 s\"\n\
                 [flows.own]\npath = [\"wide\"]\nsend_jitter = \"70 us\"\n";
    let run = &sweep(&format!(
        "duration = \"40 s\"\ncc = \"reno\"\n{links}{flows}"
    ))
    .runs[0];
    let jitter_ns = |flow: usize| {
        let flow = tcp(&run.flows[flow]);
        let of = |subflow| run.send_jitter_ns(flow, subflow);
        flow.subflows.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(jitter_ns(0), [20_000_000, 12_304_000, 6_056_000]);
    assert_eq!(jitter_ns(1), [121_120]);
    assert_eq!(jitter_ns(2), [0]);
    assert_eq!(jitter_ns(3), [70_000]);
}

#[test]
fn a_reverse_direction_takes_over_what_it_does_not_set() {
    let forward = "loss = \"2 %\"\nqueue = \"30 packets\"\noverhead = \"38 bytes\"\n\
                   schedule = [{ at = \"3 s\", rate = \"6 Mbit/s\", loss = \"5 %\" }, { at = \"4 s\", loss = \"1 %\" }, \
                   { at = \"9 s\", delay = \"8 ms\", up = false }]";
    let changes = |run: &Run| run.links[1].config.schedule.clone();
    let change = |at_s: u64| Change {
        at_ns: at_s * S,
        rate_bps: None,
        delay_ns: None,
        loss: None,
        up: None,
    };

    let plain = one(forward, PLAIN);
    let back = &plain.links[1].config;
    assert_eq!(
        (back.rate_bps, back.delay_ns, back.overhead_bytes),
        (12_000_000, 7 * MS, 38)
    );
    assert_eq!(
        (back.loss, back.queue),
        (Loss::None, QueueLimit::Packets(1000))
    );
    let rate_change = Change {
        rate_bps: Some(6_000_000),
        ..change(3)
    };
    let down = Change {
        delay_ns: Some(8 * MS),
        up: Some(false),
        ..change(9)
    };
    assert_eq!(changes(&plain), [rate_change, down.clone()]);

    let own_rate = one(
        &format!("{forward}\nreverse = {{ rate = \"900 kbit/s\", loss = \"3 %\" }}"),
        PLAIN,
    );
    assert_eq!(own_rate.links[1].config.rate_bps, 900_000);
    assert_eq!(own_rate.links[1].config.loss, Loss::Bernoulli { p: 0.03 });
    assert_eq!(changes(&own_rate), [down]);

    let own_schedule = one(
        &format!("{forward}\nreverse = {{ schedule = [{{ at = \"2 s\", up = true }}] }}"),
        PLAIN,
    );
    assert_eq!(
        changes(&own_schedule),
        [Change {
            up: Some(true),
            ..change(2)
        }]
    );
}

#[test]
fn one_bdp_uses_the_largest_base_rtt_of_the_paths() {
    let text = "duration = \"40 s\"\ncc = \"reno\"\n\
                [links.in]\nfrom = \"S\"\nto = \"M\"\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"1 BDP\"\n\
                [links.near]\nfrom = \"M\"\nto = \"D\"\nrate = \"50 Mbit/s\"\ndelay = \"2 ms\"\nqueue = \"0.5 BDP\"\n\
                [links.far]\nfrom = \"M\"\nto = \"D\"\nrate = \"50 Mbit/s\"\ndelay = \"45 ms\"\n\
                [flows.near]\npath = [\"in\", \"near\"]\n[flows.far]\npath = [\"in\", \"far\"]\n\
                [flows.udp]\ntransport = \"udp\"\nrate = \"1 Mbit/s\"\npath = [\"near\"]\n";
    let run = &sweep(text).runs[0];
    // 10 Mbit/s x 2 x (5 + 45) ms = 1 Mbit = 82.6 frames of 1514 bytes.
    assert_eq!(run.links[0].config.queue, QueueLimit::Packets(83));
    // 0.5 x 50 Mbit/s x 2 x (5 + 2) ms = 350 kbit = 28.9 frames.
    assert_eq!(run.links[2].config.queue, QueueLimit::Packets(29));
    let rtts = run.largest_base_rtts_ns();
    assert_eq!(
        rtts[..4],
        [Some(100 * MS), Some(100 * MS), Some(14 * MS), Some(14 * MS)]
    );
}

#[test]
fn a_queue_in_time_is_what_drains_in_it() {
    let run = one(
        "queue = \"50 ms\"\nreverse = { rate = \"8 Mbit/s\", queue = \"20 ms\" }",
        PLAIN,
    );
    assert_eq!(run.links[0].config.queue, QueueLimit::Bytes(75_000));
    assert_eq!(run.links[1].config.queue, QueueLimit::Bytes(20_000));
    let run = one("queue = \"unlimited\"", PLAIN);
    assert_eq!(run.links[0].config.queue, QueueLimit::Unlimited);
}

#[test]
fn queue_management_has_the_defaults_of_its_source() {
    let aqm = |text: &str| one(text, PLAIN).links[0].config.aqm;
    assert_eq!(
        aqm("aqm = \"codel\""),
        Aqm::Codel {
            target_ns: 5 * MS,
            interval_ns: 100 * MS
        }
    );
    let fq = Aqm::FqCodel {
        target_ns: 7 * MS,
        interval_ns: 100 * MS,
        flows: 32,
        quantum_bytes: 1514,
    };
    assert_eq!(
        aqm("aqm = { name = \"fq-codel\", target = \"7 ms\", flows = 32 }"),
        fq
    );
    let red = Aqm::Red {
        min_pkts: 5.0,
        max_pkts: 40.0,
        max_p: 0.02,
        weight: 0.002,
    };
    assert_eq!(
        aqm("aqm = { name = \"red\", max = \"40 packets\", max_p = \"2 %\" }"),
        red
    );
    assert!(one("aqm = \"red\"\necn = true", PLAIN).links[0].config.ecn);
}

#[test]
fn bursty_loss_has_four_probabilities() {
    let run = one(
        "loss = { gilbert_elliott = { p = \"0.2 %\", r = \"25 %\", loss_bad = \"60 %\" } }",
        PLAIN,
    );
    assert_eq!(
        run.links[0].config.loss,
        Loss::GilbertElliott {
            p: 0.002,
            r: 0.25,
            loss_good: 0.0,
            loss_bad: 0.6
        }
    );
}

#[test]
fn a_trace_gives_the_rate() {
    let text = "duration = \"40 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\ntrace = \"good.trace\"\ndelay = \"7 ms\"\n\
                reverse = { rate = \"2 Mbit/s\" }\n[flows.f]\ncc = \"reno\"\npath = [\"a\"]\n";
    let run = &sweep(text).runs[0];
    let trace = run.links[0].config.trace.as_ref().expect("a trace");
    assert_eq!(
        (trace.period_ns, &*trace.opportunities_ns),
        (8 * MS, &[MS, 3 * MS, 3 * MS, 8 * MS][..])
    );
    // Four opportunities of 1504 bytes in 8 ms.
    assert_eq!(run.links[0].config.rate_bps, 4 * 1504 * 8 * 125);
    assert_eq!(
        (
            run.links[1].config.rate_bps,
            run.links[1].config.trace.is_none()
        ),
        (2_000_000, true)
    );
}

#[test]
fn a_full_packet_needs_one_opportunity_of_a_trace() {
    let overheads = |forward: &str, back: &str| {
        let text = format!(
            "duration = \"40 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\ndelay = \"7 ms\"\n{forward}\n\
             reverse = {{ {back} }}\n[flows.f]\n{PLAIN}\n"
        );
        let run = &sweep(&text).runs[0];
        [0, 1].map(|l| run.links[l].config.overhead_bytes)
    };
    let traced = "trace = \"good.trace\"";
    let rated = "rate = \"3 Mbit/s\"";
    assert_eq!(overheads(traced, traced), [4, 4]);
    assert_eq!(overheads(traced, rated), [4, 14]);
    assert_eq!(overheads(rated, traced), [14, 4]);
    let twenty = "overhead = \"20 bytes\"";
    assert_eq!(overheads(&format!("{traced}\n{twenty}"), rated), [20, 20]);
    assert_eq!(overheads(&format!("{rated}\n{twenty}"), traced), [20, 20]);
    assert_eq!(overheads(traced, &format!("{traced}, {twenty}")), [4, 20]);
}

#[test]
fn each_direction_may_hold_up_packets() {
    let reorder = |probability, min_extra_delay_ns, max_extra_delay_ns| {
        Some(Reorder {
            probability,
            min_extra_delay_ns,
            max_extra_delay_ns,
        })
    };
    let fixed = "reorder = { probability = \"2 %\", delay = \"5 ms\" }";
    let jitter =
        "reorder = { reorder = { probability = \"100 %\", delay = \"uniform(0 ms, 3 ms)\" } }";
    let run = one(
        &format!("{fixed}\n{}", jitter.replacen("reorder", "reverse", 1)),
        PLAIN,
    );
    let [there, back, other] = [0, 1, 2].map(|l| run.links[l].config.reorder);
    assert_eq!(there, reorder(0.02, 5 * MS, 5 * MS));
    assert_eq!(back, reorder(1.0, 0, 3 * MS));
    assert_eq!(other, None);
    let json = run_json(&run, Some(SchedulerKind::MinRtt));
    assert_eq!(json["links"][0]["reorder"]["probability"], 0.02);
    assert_eq!(json["links"][1]["reorder"]["max_extra_delay_ns"], 3 * MS);
    assert!(json["links"][2]["reorder"].is_null());
    // The reverse direction inherits neither reordering nor loss.
    let run = one(fixed, PLAIN);
    assert_eq!(run.links[1].config.reorder, None);
    // An axis may begin without reordering.
    let swept = "reorder = { probability = [\"0 %\", \"7 %\"], delay = \"4 ms\" }";
    let text = format!(
        "duration = \"40 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"9 Mbit/s\"\ndelay = \"7 ms\"\n{swept}\n[flows.f]\n{PLAIN}\n"
    );
    let sweep = sweep(&text);
    let of = |run: &Run| run.links[0].config.reorder;
    assert_eq!(
        [of(&sweep.runs[0]), of(&sweep.runs[1])],
        [None, reorder(0.07, 4 * MS, 4 * MS)]
    );
    assert!(
        describe(&sweep_with(
            &text.replace("[\"0 %\", \"7 %\"]", "\"7 %\""),
            &Overrides::default()
        ))
        .contains("7 % 4 ms late")
    );
}

#[test]
fn subflows_may_have_their_own_way_back_and_times() {
    let run = one(
        "",
        "cc = \"lia\"\nscheduler = \"roundrobin\"\nsubflows = [{ path = [\"a\"] }, { name = \"late\", path = [\"b\"], reverse = [\"a~\"], \
         start = \"3 s\", stop = \"8 s\", backup = true }]",
    );
    let flow = tcp(&run.flows[0]);
    assert_eq!(
        (flow.mptcp, flow.scheduler),
        (true, Some(Scheduler::new(SchedulerKind::RoundRobin)))
    );
    let [first, second] = flow.subflows.as_slice() else {
        panic!("two subflows")
    };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("sf1", "late"));
    assert_eq!((&first.path[..], &first.reverse[..]), (&[0][..], &[1][..]));
    assert_eq!(
        (&second.path[..], &second.reverse[..]),
        (&[2][..], &[1][..])
    );
    assert_eq!(
        (second.start_ns, second.stop_ns, second.backup),
        (Some(3 * S), Some(8 * S), true)
    );
    assert_eq!(
        (run.base_rtt_ns(first), run.base_rtt_ns(second)),
        (14 * MS, 18 * MS)
    );
}

#[test]
fn a_link_is_used_backwards_with_a_tilde() {
    let run = one(
        "",
        "cc = \"reno\"\nfrom = \"D\"\nto = \"S\"\npath = [\"b~\"]",
    );
    let subflow = &tcp(&run.flows[0]).subflows[0];
    assert_eq!(
        (&subflow.path[..], &subflow.reverse[..]),
        (&[3][..], &[2][..])
    );
}

#[test]
fn simplex_links_serve_flows_with_another_way_back() {
    let run = one(
        "reverse = false",
        "cc = \"reno\"\nsubflows = [{ path = [\"a\"], reverse = [\"b~\"] }]",
    );
    let names: Vec<_> = run.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "b~"]);
    assert!(!tcp(&run.flows[0]).mptcp);
}

#[test]
fn transport_follows_the_number_of_paths_unless_said() {
    let mptcp = |flow: &str| tcp(&one("", flow).flows[0]).mptcp;
    assert!(!mptcp("cc = \"lia\"\npaths = [[\"a\"]]"));
    assert!(mptcp("cc = \"lia\"\npaths = [[\"a\"], [\"b\"]]"));
    assert!(mptcp("cc = \"lia\"\ntransport = \"mptcp\"\npath = [\"a\"]"));
}

#[test]
fn an_sctp_association_has_destinations_and_settings_of_its_own() {
    let text = "transport = \"cmt-sctp\"\nsubflows = [{ name = \"x\", path = [\"a\"] }, { path = [\"b\"] }]";
    let run = one(
        "",
        &format!("{text}\n[tcp]\nmss = \"700 B\"\nrcv_buffer = \"9 kB\""),
    );
    let Transport::Sctp(sctp) = &run.flows[0].transport else {
        panic!("not SCTP");
    };
    // [tcp] does not apply to SCTP.
    assert_eq!(
        (sctp.mss_bytes, sctp.rcv_buffer),
        (1452, RcvBuffer::Unlimited)
    );
    assert_eq!(sctp.traffic, Traffic::Bulk);
    let names: Vec<&str> = run.flows[0]
        .subflows()
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(names, ["x", "sf2"]);
    let json = run_json(&run, None);
    let flow = &json["flows"][0];
    assert_eq!(flow["transport"], "cmt-sctp");
    assert_eq!(flow["cc"]["text"], "cmt-sctp");
    assert_eq!(flow["subflows"][1]["base_rtt_ns"], 22 * MS);
    let own = one(
        "",
        "transport = \"cmt-sctp\"\npath = [\"b\"]\nmss = \"1000 B\"\nrcv_buffer = \"64 kB\"\ntraffic = { size = \"3 MB\" }",
    );
    let Transport::Sctp(sctp) = &own.flows[0].transport else {
        panic!("not SCTP");
    };
    assert_eq!(
        (sctp.mss_bytes, sctp.rcv_buffer),
        (1000, RcvBuffer::Fixed(64_000))
    );
    assert_eq!(sctp.traffic, Traffic::Size { bytes: 3_000_000 });
}

#[test]
fn traffic_and_times_are_taken_over() {
    let run = one(
        "",
        "cc = \"reno\"\npath = [\"a\"]\nstart = \"uniform(1 s, 2 s)\"\nstop = \"9 s\"\ntraffic = { on = \"3 s\", off = \"uniform(20 ms, 1 s)\" }",
    );
    assert_eq!(
        (run.flows[0].start, run.flows[0].stop_ns),
        (
            StartTime::Uniform {
                lo_ns: S,
                hi_ns: 2 * S
            },
            Some(9 * S)
        )
    );
    let expected = Traffic::OnOff {
        on: DurationDistribution::Fixed(3 * S),
        off: DurationDistribution::Uniform {
            lo_ns: 20 * MS,
            hi_ns: S,
        },
    };
    assert_eq!(tcp(&run.flows[0]).traffic, expected);
    let exponential =
        "cc = \"reno\"\npath = [\"a\"]\ntraffic = { on = \"exponential(10 ms)\", off = \"7 ms\" }";
    let expected = Traffic::OnOff {
        on: DurationDistribution::Exponential { mean_ns: 10 * MS },
        off: DurationDistribution::Fixed(7 * MS),
    };
    assert_eq!(tcp(&one("", exponential).flows[0]).traffic, expected);
    let run = one(
        "",
        "cc = \"reno\"\npath = [\"a\"]\ntraffic = { size = \"5 MiB\" }",
    );
    assert_eq!(tcp(&run.flows[0]).traffic, Traffic::Size { bytes: 5 << 20 });
    let run = one(
        "",
        "transport = \"udp\"\npath = [\"b\"]\nrate = \"2 Mbit/s\"\npacket = \"600 bytes\"\nstart = \"4 s\"",
    );
    let flow = udp(&run.flows[0]);
    assert_eq!(
        (
            flow.rate_bps,
            flow.packet_bytes,
            &flow.path[..],
            flow.on_off
        ),
        (2_000_000, 600, &[2][..], None)
    );
}

#[test]
fn copies_are_numbered_and_share_copied_links_in_turn() {
    let text = "duration = \"40 s\"\n[links.neck]\ncount = 3\nfrom = \"s-{}\"\nto = \"d-{}\"\nrate = \"5 Mbit/s\"\ndelay = \"9 ms\"\n\
                [flows.f]\ncount = 5\ncc = \"reno\"\npath = [\"neck-{}\"]\n";
    let run = &sweep(text).runs[0];
    assert_eq!(run.nodes[..], ["s-1", "d-1", "s-2", "d-2", "s-3", "d-3"]);
    let used: Vec<(&str, &str)> = run
        .flows
        .iter()
        .map(|flow| {
            (
                flow.name.as_str(),
                run.links[tcp(flow).subflows[0].path[0]].name.as_str(),
            )
        })
        .collect();
    assert_eq!(
        used,
        [
            ("f-1", "neck-1"),
            ("f-2", "neck-2"),
            ("f-3", "neck-3"),
            ("f-4", "neck-1"),
            ("f-5", "neck-2")
        ]
    );
}

const SWEPT: &str = "duration = \"40 s\"\nrepetitions = 2\nprofile = [\"rfc\", \"linux-pre4\"]\n\
                     [links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"12 Mbit/s\"\ndelay = \"7 ms\"\nqueue = [\"1 BDP\", \"50 packets\", \"10 ms\"]\n\
                     [flows.f]\npath = [\"a\"]\ncc = { name = \"ewtcp\", weight = [\"fair\", \"sqrt\"] }\n";

#[test]
fn lists_are_axes_in_file_order_and_repetitions_run_fastest() {
    let sweep = sweep(SWEPT);
    let keys: Vec<_> = sweep.axes.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["profile", "links.a.queue", "flows.f.cc.weight"]);
    assert_eq!(sweep.axes[1].1, ["1 BDP", "50 packets", "10 ms"]);
    assert_eq!(sweep.runs.len(), 2 * 3 * 2 * 2);
    for (i, run) in sweep.runs.iter().enumerate() {
        assert_eq!(run.id as usize, i);
        assert_eq!(run.rep as usize, i % 2);
        assert_eq!(run.axes[2].1, ["fair", "sqrt"][i / 2 % 2]);
        assert_eq!(run.axes[1].1, ["1 BDP", "50 packets", "10 ms"][i / 4 % 3]);
        assert_eq!(run.axes[0].1, ["rfc", "linux-pre4"][i / 12]);
        assert_eq!(run.profile, [Profile::Rfc, Profile::LinuxPre4][i / 12]);
        // 12 Mbit/s x 14 ms = 13.9 frames; 12 Mbit/s x 10 ms = 15000 bytes.
        let queue = [
            QueueLimit::Packets(14),
            QueueLimit::Packets(50),
            QueueLimit::Bytes(15_000),
        ][i / 4 % 3];
        assert_eq!(run.links[0].config.queue, queue);
        let weight = u64::from(i / 2 % 2 == 0);
        let cc = CcConfig {
            name: "ewtcp".into(),
            params: vec![("weight".into(), weight)],
        };
        assert_eq!(tcp(&run.flows[0]).cc, cc);
    }
}

#[test]
fn an_algorithm_with_parameters_may_be_written_as_a_call() {
    let table = one(
        "",
        "cc = { name = \"ewtcp\", weight = \"fair\" }\npath = [\"a\"]",
    );
    let call = one("", "cc = \"ewtcp(weight=fair)\"\npath = [\"a\"]");
    assert_eq!(tcp(&table.flows[0]).cc, tcp(&call.flows[0]).cc);
    assert_eq!(tcp(&call.flows[0]).cc.params, [("weight".to_string(), 1)]);
}

#[test]
fn overrides_replace_and_add() {
    let overrides = Overrides {
        reps: Some(3),
        seed: Some(77),
        profile: Some(vec!["linux-legacy".into()]),
        duration: Some("12 s".into()),
        set: vec![
            ("links.a.queue".into(), "2 BDP".into()),
            ("links.a.loss".into(), "[\"1 %\", \"4 %\"]".into()),
            ("links.a.reverse.rate".into(), "750 kbit/s".into()),
            ("flows.f.cc".into(), "ewtcp(weight=sqrt)".into()),
            ("tcp.pacing".into(), "true".into()),
        ],
        ..Overrides::default()
    };
    let sweep = sweep_with(SWEPT, &overrides);
    assert_eq!(
        sweep.axes,
        [(
            "links.a.loss".to_string(),
            vec!["1 %".to_string(), "4 %".to_string()]
        )]
    );
    assert_eq!(sweep.runs.len(), 6);
    let run = &sweep.runs[4];
    assert_eq!(
        (run.seed, run.rep, run.duration_ns, run.profile),
        (77, 1, 12 * S, Profile::LinuxLegacy)
    );
    assert_eq!(run.links[0].config.loss, Loss::Bernoulli { p: 0.04 });
    assert_eq!(run.links[0].config.queue, QueueLimit::Packets(28));
    assert_eq!(run.links[1].config.rate_bps, 750_000);
    assert!(tcp(&run.flows[0]).options.pacing);
    assert_eq!(tcp(&run.flows[0]).cc.params, [("weight".to_string(), 0)]);
    assert_eq!(sweep.text, SWEPT);
}

/// A name was no place for a parameter: only a table in the file was.
#[test]
fn a_parameter_is_set_and_swept_by_its_key_path_where_a_name_is_written() {
    let text = "duration = \"9 s\"\ncc = \"lia\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"3 Mbit/s\"\n\
                delay = \"4 ms\"\naqm = \"red\"\n[flows.f]\npath = [\"a\"]\n\
                [flows.g]\npath = [\"a\"]\ncc = \"ewtcp(weight=sqrt)\"\n";
    let swept = sweep_with(
        text,
        &Overrides {
            cc: Some(vec!["ewtcp".into()]),
            set: vec![("cc.weight".into(), "[\"sqrt\", \"fair\"]".into())],
            ..Overrides::default()
        },
    );
    let weights = |flow: usize| -> Vec<_> {
        let runs = swept.runs.iter();
        runs.map(|run| tcp(&run.flows[flow]).cc.params.clone())
            .collect()
    };
    let weight = |raw: u64| vec![("weight".to_string(), raw)];
    assert_eq!(swept.axes[0].0, "cc.weight");
    assert_eq!(weights(0), [weight(0), weight(1)]);
    assert_eq!(weights(1), [weight(0), weight(0)]);
    // A list of one name is this name, and what is in parentheses stays unless it is set.
    let set = sweep_with(
        text,
        &Overrides {
            set: vec![
                ("cc".into(), "[\"ewtcp(weight=sqrt)\"]".into()),
                ("cc.weight".into(), "fair".into()),
                ("flows.g.cc.weight".into(), "fair".into()),
                ("links.a.aqm.max_p".into(), "7 %".into()),
            ],
            ..Overrides::default()
        },
    );
    assert!(set.axes.is_empty());
    for flow in set.runs[0].flows.iter() {
        assert_eq!(tcp(flow).cc.params, weight(1));
    }
    let aqm = &set.runs[0].links[0].config.aqm;
    assert!(
        matches!(aqm, Aqm::Red { max_p, .. } if (max_p - 0.07).abs() < 1e-12),
        "{aqm:?}"
    );
}

#[test]
fn an_override_without_a_value_takes_the_key_out() {
    let text = "duration = \"9 s\"\ncc = \"lia\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"3 Mbit/s\"\n\
                delay = \"4 ms\"\nloss = \"2 %\"\n[flows.f]\npath = [\"a\"]\n[flows.g]\npath = [\"a\"]\ncc = \"cubic\"\n";
    let without = |keys: &[&str]| {
        let set = keys.iter().map(|key| (key.to_string(), String::new()));
        let overrides = Overrides {
            set: set.collect(),
            ..Overrides::default()
        };
        sweep_with(text, &overrides).runs.remove(0)
    };
    let run = without(&["links.a.loss", "flows.g.cc"]);
    assert_eq!(run.links[0].config.loss, Loss::None);
    assert_eq!(tcp(&run.flows[1]).cc.name, "lia");
    // Overrides are applied in order, so a later one sees that the key was removed.
    let overrides = Overrides {
        set: vec![
            ("flows.f.path".into(), String::new()),
            ("flows.f.paths".into(), "[[\"a\"], [\"a\"]]".into()),
        ],
        ..Overrides::default()
    };
    assert_eq!(
        tcp(&sweep_with(text, &overrides).runs[0].flows[0])
            .subflows
            .len(),
        2
    );
}

#[test]
fn the_record_names_links_and_has_units() {
    let sweep = sweep(SWEPT);
    let run = run_json(&sweep.runs[5], None);
    assert_eq!(run["run"], 5);
    assert_eq!(run["rep"], 1);
    assert_eq!(run["axes"]["links.a.queue"], "50 packets");
    assert_eq!(run["links"][0]["name"], "a");
    assert_eq!(run["links"][0]["queue"]["packets"], 50);
    assert_eq!(run["links"][1]["from"], "D");
    assert_eq!(run["flows"][0]["subflows"][0]["reverse"][0], "a~");
    assert_eq!(run["flows"][0]["subflows"][0]["base_rtt_ns"], 14_000_000);
    assert_eq!(run["flows"][0]["cc"]["text"], "ewtcp(weight=fair)");
    let all = sweep_json(&sweep);
    assert_eq!(all["combinations"].as_array().map(Vec::len), Some(12));
    assert_eq!(all["combinations"][11]["runs"], serde_json::json!([22, 23]));
}

#[test]
fn an_algorithm_of_the_kernel_s_own_is_kept_by_its_name() {
    let text = "duration = \"9 s\"\n[links.a]\nfrom = \"S\"\nto = \"D\"\nrate = \"3 Mbit/s\"\ndelay = \"4 ms\"\n\
                [flows.f]\ncc = { name = \"kernel:bbr\" }\npath = [\"a\"]\n[flows.g]\ncc = \"reno\"\npath = [\"a\"]\n";
    let sweep = parse(text, "x.toml", None, &Overrides::default()).expect("good");
    let choices: Vec<_> = sweep.runs[0]
        .flows
        .iter()
        .map(|flow| (tcp(flow).cc.name.as_str(), tcp(flow).cc.kernel_name()))
        .collect();
    assert_eq!(choices, [("kernel:bbr", Some("bbr")), ("reno", None)]);
}

#[test]
fn transfers_have_a_law_of_sizes_and_one_of_times() {
    let traffic = |written: &str| {
        let run = one(
            "",
            &format!("cc = \"reno\"\npath = [\"a\"]\ntraffic = {written}"),
        );
        tcp(&run.flows[0]).traffic.clone()
    };
    let level = |per_1000_min, lasts_ns| ArrivalRate {
        per_1000_min,
        lasts_ns,
    };
    let pareto = SizeDistribution::Pareto {
        mean_bytes: 200_000,
        shape: 1.5,
        max_bytes: 1_000_000_000,
    };
    let written = "{ size = { law = \"pareto\", mean = \"200 kB\" }, arrivals = \"0.25 / s\" }";
    let levels = vec![level(15_000, u64::MAX)];
    let expected = Transfers {
        size: pareto,
        arrivals: Arrivals::Poisson { levels },
    };
    assert_eq!(traffic(written), Traffic::Transfers(expected));
    let written = "{ size = { law = \"exponential\", mean = \"3 kB\", most = \"4 kB\" }, \
                   arrivals = { levels = [{ rate = \"10 / s\", lasts = \"60 s\" }, { rate = \"7 / min\", lasts = \"20 s\" }] } }";
    let expected = Transfers {
        size: SizeDistribution::Exponential {
            mean_bytes: 3000,
            max_bytes: 4000,
        },
        arrivals: Arrivals::Poisson {
            levels: vec![level(600_000, 60 * S), level(7_000, 20 * S)],
        },
    };
    assert_eq!(traffic(written), Traffic::Transfers(expected));
    let expected = Transfers {
        size: SizeDistribution::Fixed { bytes: 5000 },
        arrivals: Arrivals::Repeat {
            gap: DurationDistribution::Fixed(S),
            count: Some(9),
        },
    };
    let written = "{ size = \"5 kB\", gap = \"1 s\", repeat = 9 }";
    assert_eq!(traffic(written), Traffic::Transfers(expected));
}

#[test]
fn a_video_has_the_lab_s_defaults() {
    let video = |written: &str| {
        let run = one(
            "",
            &format!("cc = \"reno\"\npath = [\"a\"]\ntraffic = {written}"),
        );
        let nominal = run.links[0].config.rate_bps;
        match tcp(&run.flows[0]).traffic.clone() {
            Traffic::Video(video) => (video, nominal),
            other => panic!("{other:?}"),
        }
    };
    let (short, nominal) = video("\"video\"");
    let expected = Video {
        ladder_bps: vec![100_000, 250_000, 500_000, 1_000_000, 2_500_000],
        chunk_ns: 5 * S,
        buffer_ns: 30 * S,
        safety: 0.8,
        weight: 0.3,
        first_estimate_bps: nominal * 4 / 10,
    };
    assert_eq!(short, expected);
    assert_eq!(video("{ video = {} }").0, expected);
    let (own, _) = video(
        "{ video = { ladder = [\"9 Mbit/s\", \"2 Mbit/s\"], max_rate = \"1 Gbit/s\", first_estimate = \"3 Mbit/s\" } }",
    );
    assert_eq!(own.ladder_bps, [2_000_000, 9_000_000]);
    assert_eq!(own.first_estimate_bps, 3_000_000);
}
