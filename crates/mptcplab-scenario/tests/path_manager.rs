//! The subflows that a path manager opens, and changes of priority.

use mptcplab_scenario::{Overrides, PriorityChange, Run, Sweep, Transport, describe, parse};

const S: u64 = 1_000_000_000;

/// A server with two uplinks, a core of two nodes that three links join, and a phone with two interfaces. `shortcut`
/// has no reverse direction; `detour` is a link longer than what it avoids.
fn sweep(flow: &str) -> Sweep {
    let mut text = "duration = \"40 s\"\ncc = \"lia\"\n".to_string();
    let links = [
        ("isp1", "server", "core", 5, ""),
        ("isp2", "server", "core", 6, ""),
        ("slow", "core", "edge", 9, ""),
        ("quick", "core", "edge", 3, ""),
        ("twin", "core", "edge", 3, ""),
        ("detour-a", "core", "ring", 1, ""),
        ("detour-b", "ring", "edge", 1, ""),
        ("wifi", "edge", "phone", 2, ""),
        ("lte", "core", "phone", 20, ""),
        ("shortcut", "server", "phone", 1, "reverse = false"),
    ];
    for (i, (name, from, to, delay, more)) in links.iter().enumerate() {
        text += &format!(
            "[links.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{} Mbit/s\"\ndelay = \"{delay} ms\"\n{more}\n",
            10 + i
        );
    }
    text += &format!("[flows.f]\n{flow}\n");
    parse(&text, "x.toml", None, &Overrides::default()).unwrap_or_else(|e| panic!("error: {e}"))
}

/// The paths of the subflows, and whether the flow uses MPTCP.
fn paths(run: &Run) -> (Vec<String>, bool) {
    let Transport::Tcp(tcp) = &run.flows[0].transport else {
        panic!("UDP")
    };
    let names: Vec<&str> = tcp.subflows.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["sf1", "sf2", "sf3", "sf4", "sf5", "sf6", "sf7", "sf8"][..names.len()]
    );
    let written = |links: &[usize]| {
        let names: Vec<&str> = links.iter().map(|&l| run.links[l].name.as_str()).collect();
        names.join(" ")
    };
    for subflow in &tcp.subflows {
        let back: Vec<String> = subflow
            .path
            .iter()
            .rev()
            .map(|&l| format!("{}~", run.links[l].name).replace("~~", ""))
            .collect();
        assert_eq!(written(&subflow.reverse), back.join(" "));
    }
    let paths = tcp.subflows.iter().map(|s| written(&s.path)).collect();
    (paths, tcp.mptcp)
}

const ENDS: &str = "from = \"server\"\nto = \"phone\"\n";
const MESH: [&str; 4] = ["isp1 quick wifi", "isp1 lte", "isp2 quick wifi", "isp2 lte"];

#[test]
fn a_full_mesh_has_the_shortest_path_of_each_pair_of_interfaces() {
    let full = sweep(&format!("{ENDS}path_manager = \"fullmesh\""));
    assert_eq!(paths(&full.runs[0]), (MESH.map(str::to_owned).into(), true));
    let back = sweep("from = \"phone\"\nto = \"server\"\npath_manager = \"fullmesh\"");
    let expected = [
        "wifi~ quick~ isp1~",
        "wifi~ quick~ isp2~",
        "lte~ isp1~",
        "lte~ isp2~",
    ];
    assert_eq!(
        paths(&back.runs[0]),
        (expected.map(str::to_owned).into(), true)
    );
    let direct = sweep("from = \"core\"\nto = \"edge\"\npath_manager = \"fullmesh\"");
    // Also over the phone, which has another interface: nothing says that it does not forward.
    let expected = ["slow", "quick", "twin", "detour-a detour-b", "lte wifi~"];
    let (found, _) = paths(&direct.runs[0]);
    assert_eq!(found, expected);
}

#[test]
fn other_managers_take_the_first_path() {
    let run = |more: &str| paths(&sweep(&format!("{ENDS}{more}")).runs[0]);
    assert_eq!(
        run("path_manager = \"default\""),
        (vec![MESH[0].into()], true)
    );
    assert_eq!(
        run("path_manager = \"ndiffports\""),
        (vec![MESH[0].into(); 2], true)
    );
    assert_eq!(
        run("path_manager = \"ndiffports\"\nsubflows_per_path = 5"),
        (vec![MESH[0].into(); 5], true)
    );
    let twice: Vec<String> = MESH.iter().chain(&MESH).map(|p| p.to_string()).collect();
    assert_eq!(
        run("path_manager = \"fullmesh\"\nsubflows_per_path = 2"),
        (twice, true)
    );
}

#[test]
fn managers_choose_among_the_paths_that_are_written() {
    let all = sweep(
        "paths = [[\"isp2\", \"lte\"], [\"isp1\", \"slow\", \"wifi\"]]\n\
         path_manager = [\"fullmesh\", \"default\", \"ndiffports\"]",
    );
    let found: Vec<_> = all.runs.iter().map(|run| paths(run).0).collect();
    let (lte, wifi) = ("isp2 lte".to_owned(), "isp1 slow wifi".to_owned());
    assert_eq!(
        found,
        [
            vec![lte.clone(), wifi.clone()],
            vec![lte.clone()],
            vec![lte.clone(); 2]
        ]
    );
    let double = sweep(
        "paths = [[\"isp2\", \"lte\"], [\"isp1\", \"slow\", \"wifi\"]]\nsubflows_per_path = 2",
    );
    assert_eq!(
        paths(&double.runs[0]).0,
        [lte.clone(), wifi.clone(), lte.clone(), wifi]
    );
    let (one, mptcp) = paths(&sweep("path = [\"isp2\", \"lte\"]").runs[0]);
    assert_eq!((one, mptcp), (vec![lte], false));
}

#[test]
fn a_subflow_changes_its_priority_at_its_times() {
    let sweep = sweep(
        "subflows = [{ path = [\"isp1\", \"lte\"], priority = [{ at = \"5 s\", backup = true }, { at = \"7 s\", backup = false }] }, \
         { path = [\"isp2\", \"lte\"], backup = true }]",
    );
    let change = |at, backup| PriorityChange {
        at_ns: at * S,
        backup,
    };
    let subflows = sweep.runs[0].flows[0].subflows();
    assert_eq!(subflows[0].priorities, [change(5, true), change(7, false)]);
    assert_eq!(subflows[1].priorities, []);
    let text = describe(&sweep);
    assert!(text.contains("backup from 5 s, regular from 7 s"), "{text}");
}
