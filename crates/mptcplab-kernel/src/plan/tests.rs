//! Plans and unsupported settings of small scenarios.

use super::*;
use mptcplab_scenario::{Overrides, parse};
use std::collections::{BTreeMap, BTreeSet};

const NETWORK: &str = r#"
duration = "10 s"
cc = "reno"
[links.a]
from = "S"
to = "R"
rate = "20 Mbit/s"
delay = "3 ms"
[links.b]
from = "R"
to = "D"
rate = "12 Mbit/s"
delay = "4 ms"
[links.c]
from = "S"
to = "D"
rate = "6 Mbit/s"
delay = "11 ms"
reverse = false
[links.back]
from = "D"
to = "S"
rate = "9 Mbit/s"
delay = "2 ms"
reverse = false
"#;

fn run(flows: &str) -> Run {
    with(flows, &[])
}

fn with(flows: &str, set: &[(&str, &str)]) -> Run {
    let set = set
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    let overrides = Overrides {
        set,
        ..Overrides::default()
    };
    let sweep = parse(&format!("{NETWORK}{flows}"), "test.toml", None, &overrides);
    sweep.expect("a good scenario").runs.remove(0)
}

/// The way to an address from a node of the plan.
fn way(plan: &Plan, from: usize, to: Ipv4Addr) -> &Way {
    let mut ways = plan.ways.iter().filter(|way| way.destination == to);
    let way = ways.next().expect("a way");
    assert_eq!((ways.next(), way.node), (None, from));
    way
}

#[test]
fn every_subflow_has_addresses_of_its_own_and_ways_along_its_paths() {
    let run = run(r#"
[flows.mp]
subflows = [
  { path = ["a", "b"] },
  { path = ["a", "b"], name = "again" },
  { path = ["c"], reverse = ["back"], name = "oneway" },
]
[flows.up]
transport = "tcp"
path = ["b~", "a~"]
[flows.noise]
transport = "udp"
path = ["c"]
rate = "1 Mbit/s"
"#);
    let plan = Plan::new(&run);
    let mut seen = BTreeSet::new();
    for (flow, planned) in run.flows.iter().zip(&plan.flows) {
        for (index, ends) in planned.subflows.iter().enumerate() {
            assert!(
                seen.insert(ends.source) && seen.insert(ends.destination),
                "{ends:?} is there twice"
            );
            let there = way(&plan, planned.from, ends.destination);
            assert_eq!(
                (there.links.as_slice(), there.source),
                (paths(flow)[index], ends.source)
            );
            if let Some(subflow) = flow.subflows().get(index) {
                let back = way(&plan, planned.to, ends.source);
                assert_eq!(
                    (&back.links, back.source),
                    (&subflow.reverse, ends.destination)
                );
            }
            assert!(plan.nodes[planned.from].addresses.contains(&ends.source));
            assert!(plan.nodes[planned.to].addresses.contains(&ends.destination));
        }
    }
    let ports: BTreeSet<u16> = plan.flows.iter().map(|flow| flow.port).collect();
    assert_eq!((seen.len(), ports.len()), (10, 3));
}

#[test]
fn the_paths_of_all_flows_come_before_the_return_paths() {
    let run = run(r#"
[flows.mp]
subflows = [{ path = ["a", "b"] }, { path = ["c"], reverse = ["back"] }]
[flows.noise]
transport = "udp"
path = ["c"]
rate = "1 Mbit/s"
[flows.up]
transport = "tcp"
path = ["b~"]
"#);
    let plan = Plan::new(&run);
    let destinations: Vec<Ipv4Addr> = plan.ways.iter().map(|way| way.destination).collect();
    let ends: Vec<Endpoints> = plan
        .flows
        .iter()
        .flat_map(|flow| flow.subflows.clone())
        .collect();
    let there = ends.iter().map(|ends| ends.destination);
    // A UDP flow has no way back.
    let back = [0, 1, 3].map(|at: usize| ends[at].source);
    assert_eq!(destinations, there.chain(back).collect::<Vec<_>>());
}

#[test]
fn only_where_ways_begin_or_end_there_are_namespaces_and_devices() {
    let run = run("[flows.mp]\npaths = [[\"a\", \"b\"]]\n");
    let plan = Plan::new(&run);
    let names: Vec<&str> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["S", "D"]);
    let position = |name: &str| {
        let found = run.links.iter().position(|link| link.name == name);
        found.expect("a link")
    };
    let devices: Vec<(String, &str)> = plan
        .ports
        .iter()
        .map(|port| (port.name.clone(), plan.nodes[port.node].name.as_str()))
        .collect();
    let device = |link: &str, node| (format!("link{}", position(link)), node);
    assert_eq!(devices, [device("a", "S"), device("b~", "D")]);
    // A duplex link is one device at each end.
    let at = |ports: &[Option<usize>], name: &str| ports[position(name)];
    assert_eq!(
        ["a", "b", "b~", "a~"].map(|name| (at(&plan.entries, name), at(&plan.exits, name))),
        [
            (Some(0), None),
            (None, Some(1)),
            (Some(1), None),
            (None, Some(0))
        ]
    );
}

#[test]
fn a_link_into_a_node_that_nothing_leaves_gets_an_exit_of_its_own() {
    let text = r#"
duration = "1 s"
[links.only]
from = "S"
to = "D"
rate = "1 Mbit/s"
delay = "1 ms"
reverse = false
[flows.noise]
transport = "udp"
path = ["only"]
rate = "1 Mbit/s"
"#;
    let run = parse(text, "test.toml", None, &Overrides::default())
        .expect("good")
        .runs
        .remove(0);
    let plan = Plan::new(&run);
    let exit = &plan.ports[plan.exits[0].expect("an exit")];
    assert_eq!(
        (plan.ports.len(), exit.node, exit.name.as_str()),
        (2, 1, "exit0")
    );
}

#[test]
fn routes_at_the_ends_carry_what_tcp_is_to_know() {
    let run = with(
        "[flows.mp]\npaths = [[\"a\", \"b\"]]\ntransport = \"mptcp\"\n[flows.tcp]\npath = [\"a\", \"b\"]\n",
        &[
            ("profile", "rfc"),
            ("flows.mp.mss", "1000 bytes"),
            ("flows.mp.initial_cwnd", "3 packets"),
            ("flows.mp.ecn", "true"),
        ],
    );
    let plan = Plan::new(&run);
    let metrics = |to: Ipv4Addr, node: usize| way(&plan, node, to).metrics;
    let (mp, tcp) = (&plan.flows[0], &plan.flows[1]);
    let forward = Metrics {
        mtu: Some(1_076),
        initial_cwnd: Some(3),
        quick_ack: false,
        ecn: true,
    };
    assert_eq!(metrics(mp.subflows[0].destination, mp.from), forward);
    let backward = Metrics {
        mtu: Some(1_076),
        initial_cwnd: None,
        quick_ack: true,
        ecn: true,
    };
    assert_eq!(metrics(mp.subflows[0].source, mp.to), backward);
    assert_eq!(
        metrics(tcp.subflows[0].destination, tcp.from),
        Metrics {
            mtu: Some(1_500),
            ..Metrics::default()
        }
    );
}

#[test]
fn algorithms_differ_by_parameters_and_by_how_they_count() {
    let run = with(
        "[flows.one]\npath = [\"a\"]\n[flows.two]\npath = [\"a\"]\n[flows.three]\npath = [\"a\"]\npacing = true\n\
         [flows.four]\npath = [\"a\"]\ncc = \"lia\"\n[flows.five]\npath = [\"a\"]\ncc = \"kernel:cubic\"\n",
        &[("profile", "linux-legacy")],
    );
    let plan = Plan::new(&run);
    let of: Vec<usize> = plan
        .flows
        .iter()
        .filter_map(|flow| flow.algorithm)
        .collect();
    assert_eq!(of, [0, 0, 1, 2, 3]);
    let about: Vec<(&str, bool, bool, u32)> = plan
        .algorithms
        .iter()
        .map(|one| {
            (
                one.choice.name.as_str(),
                one.growth_per_ack,
                one.pacing,
                one.connections,
            )
        })
        .collect();
    let expected = [
        ("reno", false, false, 2),
        ("reno", false, true, 1),
        ("lia", true, false, 1),
        ("kernel:cubic", false, false, 1),
    ];
    assert_eq!(about, expected);
}

#[test]
fn a_flow_of_many_transfers_has_room_for_many_connections() {
    let web = |n: usize| {
        let flow = |i| {
            format!(
                "[flows.web{i}]\npath = [\"a\"]\n\
                 traffic = {{ size = \"9 kB\", arrivals = \"5 / s\" }}\n"
            )
        };
        let all: String = (0..n).map(flow).collect();
        Plan::new(&run(&format!("{all}[flows.long]\npath = [\"a\", \"b\"]\n")))
    };
    let plan = web(1);
    let rooms: Vec<_> = plan
        .flows
        .iter()
        .map(|f| (f.connection_per_transfer, f.max_connections))
        .collect();
    assert_eq!(rooms, [(true, 1024), (false, 1)]);
    assert_eq!(plan.algorithms[0].connections, 1025);
    // 8192 for all of them.
    assert_eq!(web(20).flows[3].max_connections, 409);
}

#[test]
fn receive_buffers_become_settings_of_the_nodes_where_flows_end() {
    let run = run("[flows.one]\npath = [\"a\"]\nrcv_buffer = \"160 kB\"\n\
         [flows.two]\npath = [\"a\", \"b\"]\nrcv_buffer = { auto = \"6 MB\" }\n");
    let plan = Plan::new(&run);
    let buffers: BTreeMap<&str, Option<Buffer>> = plan
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.receive_buffer))
        .collect();
    // A segment of 1448 bytes is in 2304 bytes of memory, which is 160 of 256 parts.
    assert_eq!(
        buffers["R"],
        Some(Buffer {
            default: 256_000,
            max: 256_000
        })
    );
    assert_eq!(
        buffers["D"],
        Some(Buffer {
            default: 131_072,
            max: 6_000_000
        })
    );
    assert_eq!(buffers["S"], None);
}

/// A segment of 1000 bytes takes as much memory as one of 1448, one of 500 bytes 1280: 111 and 100 of 256 parts.
#[test]
fn short_segments_need_more_memory_for_the_same_window() {
    for (mss, memory) in [
        ("1000", 65_536 * 256 / 111 + 1),
        ("500", 65_536 * 256 / 100 + 1),
    ] {
        let text = format!(
            "[flows.one]\npath = [\"a\"]\nmss = \"{mss} bytes\"\nrcv_buffer = \"65536 bytes\"\n"
        );
        let plan = Plan::new(&run(&text));
        let found = plan.nodes.iter().find_map(|node| node.receive_buffer);
        assert_eq!(found.map(|buffer| buffer.max), Some(memory), "{mss}");
    }
}

/// First key and message of everything refused.
fn refused(run: &Run) -> Vec<(String, String)> {
    unsupported_settings(run)
        .into_iter()
        .map(|setting| (setting.keys[0].clone(), setting.message))
        .collect()
}

const MP: &str = "[flows.mp]\npaths = [[\"a\", \"b\"], [\"c\"]]\ntransport = \"mptcp\"\n";

fn two() -> String {
    MP.replace(
        "[[\"a\", \"b\"], [\"c\"]]",
        "[[\"a\", \"b\"], [\"a\", \"b\"]]",
    )
}

#[test]
fn what_a_kernel_can_do_is_not_refused() {
    let good = [
        ("scheduler", "linger"),
        ("profile", "linux-legacy"),
        ("cc", "kernel:cubic"),
        ("flows.mp.ecn", "true"),
        ("flows.mp.mss", "500 bytes"),
        ("flows.mp.rcv_buffer", "1 MB"),
        ("flows.mp.slow_start_after_idle", "false"),
        ("flows.mp.tso", "true"),
        ("flows.mp.nagle", "false"),
        ("flows.mp.comp_sack", "true"),
        ("flows.mp.traffic", "{ on = \"1 s\", off = \"1 s\" }"),
        (
            "flows.mp.traffic",
            "{ size = \"20 kB\", arrivals = \"30 / s\" }",
        ),
        ("flows.mp.traffic", "video"),
    ];
    for (key, value) in good {
        assert_eq!(
            refused(&with(&two(), &[(key, value)])),
            [],
            "{key} = {value}"
        );
    }
}

#[test]
fn an_sctp_association_is_refused_as_linux_has_no_concurrent_multipath_transfer() {
    let flows = two() + "[flows.t]\ntransport = \"tcp\"\npath = [\"a\", \"b\"]\n";
    let run = with(&flows, &[("flows.mp.transport", "cmt-sctp")]);
    let refused = refused(&run);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].0, "flows.mp.transport");
    assert!(refused[0].1.contains("no CMT"), "{refused:?}");
}

#[test]
fn each_thing_that_a_kernel_cannot_do_is_refused_by_its_key() {
    let bad = [
        (
            "scheduler",
            "minrtt",
            "flows.mp.scheduler",
            "\"minrtt\": the kernel has only one packet scheduler",
        ),
        (
            "flows.mp.scheduler",
            "roundrobin",
            "flows.mp.scheduler",
            "\"roundrobin\"",
        ),
        (
            "flows.mp.initial_ssthresh",
            "20 packets",
            "flows.mp.initial_ssthresh",
            "20 packets",
        ),
        (
            "flows.mp.cwnd_clamp",
            "30 packets",
            "flows.mp.cwnd_clamp",
            "30 packets",
        ),
        ("flows.mp.reinject", "false", "flows.mp.reinject", "false"),
        ("flows.mp.tso", "false", "flows.mp.tso", "false"),
        ("flows.mp.comp_sack", "false", "flows.mp.comp_sack", "false"),
        (
            "flows.mp.recovery",
            "newreno",
            "flows.mp.recovery",
            "\"newreno\"",
        ),
        (
            "flows.mp.send_jitter",
            "150 us",
            "flows.mp.send_jitter",
            "150 us",
        ),
        (
            "flows.mp.host_delay",
            "13 us",
            "flows.mp.host_delay",
            "13 us",
        ),
        (
            "flows.mp.rcv_buffer",
            "700 MB",
            "flows.mp.rcv_buffer",
            "more than the kernel can count",
        ),
        ("sample", "100 us", "sample", "100 us is too short"),
        ("links.a.rate", "5 Gbit/s", "", ""),
    ];
    for (key, value, refused_key, text) in bad {
        let found = refused(&with(&two(), &[(key, value)]));
        if refused_key.is_empty() {
            // A fast link before a slow one carries little.
            assert_eq!(found, [], "{key} = {value}");
            continue;
        }
        let [(found_key, message)] = found.as_slice() else {
            panic!("{key} = {value}: {found:?}")
        };
        assert_eq!(found_key, refused_key);
        assert!(message.contains(text), "{message}");
    }
}

#[test]
fn the_kernel_s_own_algorithms_are_what_they_are() {
    let run = with(
        &two(),
        &[
            ("cc", "kernel:reno"),
            ("profile", "linux-pre4"),
            ("flows.mp.pacing", "true"),
        ],
    );
    let keys: Vec<String> = refused(&run).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["flows.mp.pacing", "flows.mp.profile"]);
}

#[test]
fn what_the_emulator_cannot_carry_is_refused() {
    let run = with(
        &two(),
        &[("links.a.rate", "2 Gbit/s"), ("links.b.rate", "2 Gbit/s")],
    );
    let found = refused(&run);
    let [(key, message)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(key, "links");
    assert!(message.contains("% of a processor"), "{message}");
}

#[test]
fn tcp_and_mptcp_may_end_at_one_host_although_their_buffers_grow_differently() {
    let flows = "[tcp]\nlike = \"linux-7.3\"\n[flows.one]\npath = [\"a\", \"b\"]\n\
                 [flows.mp]\nsubflows = [{ path = [\"a\", \"b\"], name = \"sf1\" }, \
                 { path = [\"c\"], reverse = [\"back\"], name = \"sf2\" }]\n";
    let run = run(flows);
    let growths: Vec<_> = run
        .flows
        .iter()
        .filter_map(tcp)
        .map(|t| t.rcv_buffer)
        .collect();
    assert_ne!(growths[0], growths[1]);
    assert_eq!(refused(&run), []);
}

#[test]
fn settings_that_a_host_has_once_cannot_differ_between_its_flows() {
    let flows = "[flows.one]\npath = [\"a\"]\nrcv_buffer = \"1 MB\"\n\
                 [flows.two]\npath = [\"a\"]\nslow_start_after_idle = false\n";
    let found = refused(&run(flows));
    let keys: Vec<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        ["flows.two.rcv_buffer", "flows.two.slow_start_after_idle"]
    );
    let segments = "[flows.one]\npath = [\"a\"]\nrcv_buffer = \"1 MB\"\n\
                    [flows.two]\npath = [\"a\"]\nrcv_buffer = \"1 MB\"\nmss = \"1000 bytes\"\n";
    assert_eq!(refused(&run(segments))[0].0, "flows.two.rcv_buffer");
    assert!(
        found[0].1.contains("flows one and two end at node \"R\""),
        "{}",
        found[0].1
    );
}

#[test]
fn too_much_of_anything_is_refused() {
    let text = r#"
duration = "10 s"
cc = "reno"
[links.leg]
count = 70
from = "s-{}"
to = "D"
rate = "1 Mbit/s"
delay = "1 ms"
[flows.f]
count = 300
path = ["leg-{}"]
"#;
    let run = parse(text, "test.toml", None, &Overrides::default())
        .expect("good")
        .runs
        .remove(0);
    let found = refused(&run);
    let about: Vec<&str> = found
        .iter()
        .map(|(_, message)| message.split(';').next().unwrap_or_default())
        .collect();
    let expected = [
        "71 nodes where flows begin or end",
        "140 directed links (a link and its return direction are two)",
        "300 flows",
    ];
    assert_eq!(about, expected);
}

#[test]
fn a_flow_with_a_count_is_named_without_its_number() {
    let run = run("[flows.f]\ncount = 2\npath = [\"a\"]\nsend_jitter = \"1 ms\"\n");
    let found = unsupported_settings(&run);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[1].keys[..3],
        [
            "flows.f-2.send_jitter",
            "flows.f.send_jitter",
            "tcp.send_jitter"
        ]
    );
}
