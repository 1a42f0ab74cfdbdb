//! Damaged scenarios never cause a panic: they are refused with a place and a hint, or they are valid.

use mptcplab_scenario::Overrides;
use std::path::Path;

/// SplitMix64 with a fixed seed, so that every test run does the same damage.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Texts that damage inserts: pieces of the format, extreme numbers, unusual characters.
const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "9",
    "99999999999999999999",
    "0.5",
    "1e9",
    "nan",
    "true",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "=",
    ".",
    "\n",
    "#",
    "~",
    "{}",
    "-{}",
    "\u{b5}",
    "\u{1f980}",
    "\\u0000",
    " ms",
    " s",
    " h",
    " Mbit/s",
    " Gbit/s",
    " packets",
    " BDP",
    " %",
    "uniform(0 s, 1 s)",
    "uniform(",
    "(weight=fair)",
    "[\"1 BDP\", \"2 BDP\"]",
    "[[\"a\"]]",
    "count = 10000\n",
    "count = 3\n",
    "repetitions = 400\n",
    "reverse = false\n",
    "schedule = [{ at = \"1 s\", up = false }]\n",
    "transport = \"udp\"\n",
    "trace = \"good.trace\"\n",
    "loss = { gilbert_elliott = { p = \"1 %\", r = \"9 %\" } }\n",
    "reorder = { probability = \"3 %\", delay = \"uniform(0 ms, 4 ms)\" }\n",
    "2024-01-01",
    "inf",
    "0x10",
    "\"\"\"",
];

fn texts(folders: &[&str]) -> Vec<String> {
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder of scenarios"));
    let mut paths: Vec<_> = files
        .map(|e| e.expect("a readable folder").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("a text file"))
        .collect()
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn damage(random: &mut Random, text: &mut String, other: &str) {
    let a = boundary(text, random.below(text.len() + 1));
    let b = boundary(text, (a + random.below(12)).min(text.len()));
    match random.below(6) {
        0 => text.replace_range(a..b, ""),
        1 => text.insert_str(a, PIECES[random.below(PIECES.len())]),
        2 => text.replace_range(a..b, PIECES[random.below(PIECES.len())]),
        3 => swap_lines(random, text),
        4 => {
            let lines: Vec<&str> = other.lines().collect();
            let line = lines
                .get(random.below(lines.len()))
                .copied()
                .unwrap_or_default();
            text.insert_str(boundary(text, a), &format!("\n{line}\n"));
        }
        _ => replace_value(random, text),
    }
}

fn swap_lines(random: &mut Random, text: &mut String) {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.len() > 1 {
        let (a, b) = (random.below(lines.len()), random.below(lines.len()));
        lines.swap(a, b);
        *text = lines.join("\n");
    }
}

/// Gives a key another value, so that the text is still TOML.
fn replace_value(random: &mut Random, text: &mut String) {
    const VALUES: &[&str] = &[
        "\"0 bit/s\"",
        "\"400 Gbit/s\"",
        "\"1 bit/s\"",
        "\"24 h\"",
        "\"0 ms\"",
        "\"1 ns\"",
        "\"1000000 BDP\"",
        "\"0.000001 BDP\"",
        "\"100 %\"",
        "5",
        "[]",
        "{}",
        "[\"1 Mbit/s\", \"2 Mbit/s\"]",
        "\"a\"",
        "false",
        "\"uniform(0 s, 1 ns)\"",
        "\"1 B\"",
        "[{ at = \"0 s\", rate = \"0 bit/s\" }]",
        "\"lia(\"",
        "\"S\"",
        "10000",
    ];
    let keys: Vec<usize> = text.match_indices(" = ").map(|(at, _)| at + 3).collect();
    if let Some(&start) = keys.get(random.below(keys.len())) {
        let end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        text.replace_range(start..end, VALUES[random.below(VALUES.len())]);
    }
}

fn is_valid(text: &str, overrides: &Overrides) -> bool {
    crate::any_text::is_valid(text, Some(Path::new("tests/bad")), overrides)
}

#[test]
fn damaged_scenarios_are_refused_or_valid() {
    let good = texts(&["../../scenarios", "../../scenarios/bench"]);
    let bad = texts(&["tests/bad"]);
    let mut random = Random(2026);
    let mut valid = 0;
    for _ in 0..10_000 {
        let mut text = good[random.below(good.len())].clone();
        let other = &bad[random.below(bad.len())];
        for _ in 0..=random.below(3) {
            damage(&mut random, &mut text, other);
        }
        valid += u32::from(is_valid(&text, &Overrides::default()));
    }
    // If no text were valid, or all of them, the damage would test nothing.
    assert!((250..9_750).contains(&valid), "{valid}");
}

#[test]
fn damaged_overrides_are_refused_or_valid() {
    const KEYS: &[&str] = &[
        "links.B1.queue",
        "links.B1",
        "links",
        "flows.mp.paths.0.1",
        "flows.mp.cc",
        "tcp.mss",
        "tcp",
        "links.B1.reverse.loss",
        "links.B1.schedule.0.at",
        "",
        ".",
        "duration",
        "a.b.c",
        "flows.mp.traffic.size",
        "name",
    ];
    let text = std::fs::read_to_string("../../scenarios/dolia-scenario-1.toml").expect("the demo");
    let mut random = Random(7);
    for _ in 0..3_000 {
        let mut value = String::new();
        for _ in 0..=random.below(2) {
            value.push_str(PIECES[random.below(PIECES.len())]);
        }
        let set = vec![(KEYS[random.below(KEYS.len())].to_string(), value)];
        is_valid(
            &text,
            &Overrides {
                set,
                ..Overrides::default()
            },
        );
    }
}

#[test]
fn hostile_sizes_are_refused_quickly() {
    let deep = format!("a = {}", "[".repeat(100_000));
    let wide = "x = 1\n".repeat(150_000);
    let long_axis = format!("duration = [{}]", "\"1 s\", ".repeat(100_000));
    let keys: String = (0..60_000).map(|i| format!("k{i} = {i}\n")).collect();
    let long_line = format!("nodes = [{}]", "\"n\", ".repeat(200_000));
    let huge = "#".repeat(2 << 20);
    for text in [deep, wide, long_axis, keys, long_line, huge] {
        let started = std::time::Instant::now();
        assert!(!is_valid(&text, &Overrides::default()));
        assert!(started.elapsed().as_secs() < 5);
    }
}
