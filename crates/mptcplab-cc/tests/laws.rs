//! Laws that the rules obey on random connections, through the hooks: the papers' formulas, bounds, symmetries.
//!
//! Integer tolerance: an increase may be off by 4e-4 of Reno's step 1/w, a decrease by a packet.

use crate::support::{Bench, Paths, Rng, SPECIFIED, instances};

const STEP: f64 = 4e-4;
/// BALIA's bound up to 2^20 packets is 2n 2^-17 + 2^-10.
const STEP_EXTREME: f64 = 1.2e-3;
const COUPLED: [&str; 12] = [
    "ewtcp",
    "coupled",
    "semicoupled",
    "lia",
    "lia-subset",
    "dlia",
    "mcompound",
    "olia",
    "dolia",
    "balia",
    "adw-balia",
    "template-coupled",
];

fn assert_near(got: f64, wanted: f64, tolerance: f64, context: &dyn std::fmt::Debug) {
    assert!(
        (got - wanted).abs() <= tolerance,
        "got {got}, wanted {wanted} within {tolerance}: {context:?}"
    );
}

fn lia(p: &Paths) -> f64 {
    let x: f64 = p.rates().iter().sum();
    let b = p.best();
    let shared = f64::from(p.w[b]) / f64::from(p.t[b]).powi(2) / (x * x);
    shared.min(1.0 / f64::from(p.w[p.r]))
}

/// The smallest step over every set of paths that contains r.
fn lia_subset(p: &Paths) -> f64 {
    let rates = p.rates();
    let steps = (1u32..1 << p.n())
        .filter(|set| set >> p.r & 1 == 1)
        .map(|set| {
            let members = || (0..p.n()).filter(move |k| set >> k & 1 == 1);
            let best = members()
                .map(|k| f64::from(p.w[k]) / f64::from(p.t[k]).powi(2))
                .fold(0.0, f64::max);
            best / members().map(|k| rates[k]).sum::<f64>().powi(2)
        });
    steps.fold(f64::INFINITY, f64::min)
}

/// OLIA's sets, decided in exact arithmetic: alpha of every path.
fn olia_alphas(p: &Paths) -> Vec<f64> {
    let l: Vec<u128> = p.l.iter().map(|&(a, b)| u128::from(a.max(b))).collect();
    let key = |i: usize, j: usize| l[i] * u128::from(p.t[j]).pow(2);
    let best = (1..p.n()).fold(0, |b, i| if key(i, b) > key(b, i) { i } else { b });
    let w_max = p.w.iter().max().copied().unwrap_or(0);
    let is_max = |i: usize| p.w[i] == w_max;
    let collected: Vec<bool> = (0..p.n())
        .map(|i| !is_max(i) && key(i, best) == key(best, i))
        .collect();
    let n_collected = collected.iter().filter(|c| **c).count();
    let n_max = (0..p.n()).filter(|i| is_max(*i)).count();
    let n = p.n() as f64;
    (0..p.n())
        .map(|i| match (n_collected, collected[i], is_max(i)) {
            (0, ..) => 0.0,
            (c, true, _) => 1.0 / (n * c as f64),
            (_, _, true) => -1.0 / (n * n_max as f64),
            _ => 0.0,
        })
        .collect()
}

fn olia_first(p: &Paths, r: usize) -> f64 {
    let x: f64 = p.rates().iter().sum();
    f64::from(p.w[r]) / f64::from(p.t[r]).powi(2) / (x * x)
}

fn balia(p: &Paths) -> f64 {
    let rates = p.rates();
    let (x, sum) = (rates[p.r], rates.iter().sum::<f64>());
    let alpha = rates.iter().copied().fold(0.0, f64::max) / x;
    x / (f64::from(p.t[p.r]) * sum * sum) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

fn template_share(p: &Paths) -> f64 {
    let length = |&(a, b): &(u32, u32)| f64::from(a.max(b).max(1));
    let sum: f64 = p.l.iter().map(length).sum();
    (length(&p.l[p.r]) / sum).max(1.0 / 16.0)
}

fn total(p: &Paths) -> f64 {
    p.w.iter().map(|&w| f64::from(w)).sum()
}

fn formula(name: &str, p: &Paths) -> f64 {
    let reno = 1.0 / f64::from(p.w[p.r]);
    if p.n() == 1 {
        return reno;
    }
    match name {
        "ewtcp" => reno / (p.n() as f64).sqrt(),
        "coupled" | "semicoupled" => 1.0 / total(p),
        // mCompound has no delay window before its first round ends.
        "lia" | "dlia" | "mcompound" => lia(p),
        "lia-subset" => lia_subset(p),
        "olia" | "dolia" => olia_first(p, p.r) + olia_alphas(p)[p.r] * reno,
        "balia" | "adw-balia" => balia(p),
        "template-coupled" => template_share(p).powi(2) * reno,
        other => panic!("no formula for {other}"),
    }
}

#[test]
fn increases_follow_the_papers_formulas_over_the_whole_range() {
    let mut rng = Rng(1);
    for i in 0..instances() {
        let extreme = i % 3 == 0;
        let p = if extreme {
            Paths::extreme(&mut rng)
        } else {
            Paths::random(&mut rng)
        };
        let step = if extreme { STEP_EXTREME } else { STEP };
        for name in COUPLED {
            let got = Bench::new(name, &[], &p).increase(p.r);
            assert_near(
                got,
                formula(name, &p),
                step / f64::from(p.w[p.r]),
                &(name, &p),
            );
        }
    }
}

#[test]
fn order_of_subflows_and_unit_of_time_do_not_matter() {
    let mut rng = Rng(2);
    for _ in 0..instances() {
        let p = Paths::random(&mut rng);
        let (n, shift) = (p.n(), rng.below(8));
        let rotated = Paths {
            w: (0..n).map(|i| p.w[(i + shift) % n]).collect(),
            t: (0..n).map(|i| p.t[(i + shift) % n]).collect(),
            l: (0..n).map(|i| p.l[(i + shift) % n]).collect(),
            r: (p.r + n - shift % n) % n,
        };
        let slower = Paths {
            t: p.t.iter().map(|t| t * 7).collect(),
            ..p.clone()
        };
        let larger = Paths {
            w: p.w.iter().map(|w| w * 3).collect(),
            ..p.clone()
        };
        for name in COUPLED {
            let got = Bench::new(name, &[], &p).increase(p.r);
            let tolerance = 2.0 * STEP / f64::from(p.w[p.r]);
            assert_near(
                Bench::new(name, &[], &rotated).increase(rotated.r),
                got,
                tolerance,
                &(name, &p, shift),
            );
            assert_near(
                Bench::new(name, &[], &slower).increase(p.r),
                got,
                tolerance,
                &(name, &p),
            );
            assert_near(
                3.0 * Bench::new(name, &[], &larger).increase(p.r),
                got,
                tolerance,
                &(name, &p),
            );
        }
    }
}

#[test]
fn a_sibling_that_cannot_send_or_has_no_sample_changes_nothing() {
    let mut rng = Rng(3);
    for i in 0..instances() {
        let p = Paths::random(&mut rng);
        if p.n() == 8 {
            continue;
        }
        for name in COUPLED {
            let mut bench = Bench::new(name, &[], &p);
            let before = (bench.increase(p.r), bench.ssthresh_after_loss(p.r));
            let unusable = i % 2 == 0;
            bench.add(
                name,
                &[],
                rng.log(1.0, 1e5),
                if unusable { 31_000 } else { 0 },
            );
            bench.socks[p.n()].set_usable(&mut bench.conn, !unusable);
            assert_eq!(
                (bench.increase(p.r), bench.ssthresh_after_loss(p.r)),
                before,
                "{name} {p:?}"
            );
        }
    }
}

#[test]
fn one_subflow_is_reno() {
    let mut rng = Rng(4);
    for _ in 0..instances() {
        let w = rng.log(1.0, 1e6);
        let p = Paths {
            w: vec![w],
            t: vec![rng.log(100.0, 2e6)],
            l: vec![(5, 9)],
            r: 0,
        };
        let reno = Bench::new("reno", &[], &p).increase(0);
        assert_near(reno, 1.0 / f64::from(w), 1e-12, &p);
        for name in COUPLED {
            let mut bench = Bench::new(name, &[], &p);
            assert_eq!(bench.increase(0), reno, "{name} {p:?}");
            assert_eq!(bench.ssthresh_after_loss(0), (w / 2).max(2), "{name} {p:?}");
        }
    }
}

#[test]
fn alone_no_threshold_is_below_two_packets() {
    // A rate-based rule leaves the threshold as it is.
    let with_threshold = mptcplab_cc::algorithms()
        .iter()
        .filter(|a| !a.has_cong_control());
    for algorithm in with_threshold {
        for w in 1..=4 {
            let p = Paths {
                w: vec![w],
                t: vec![20_000],
                l: vec![(5, 9)],
                r: 0,
            };
            let ssthresh = Bench::new(algorithm.name(), &[], &p).ssthresh_after_loss(0);
            let specified = SPECIFIED.contains(&algorithm.name());
            let kept = 2..=if specified { 2 } else { w.max(2) };
            assert!(
                kept.contains(&ssthresh),
                "{} at {w}: {ssthresh}",
                algorithm.name()
            );
        }
    }
}

#[test]
fn increases_stay_within_their_bounds() {
    let mut rng = Rng(5);
    for _ in 0..instances() {
        let p = Paths::extreme(&mut rng);
        let (n, w) = (p.n() as f64, f64::from(p.w[p.r]));
        for name in COUPLED {
            let inc = Bench::new(name, &[], &p).increase(p.r);
            let reno = (1.0 + 1e-6) / w;
            if ["olia", "dolia"].contains(&name) {
                assert!(
                    inc >= -reno / n && inc <= reno * (1.0 + 1.0 / n),
                    "{inc} {p:?}"
                );
            } else {
                assert!(inc > 0.0 && inc <= reno, "{name} {inc} {p:?}");
            }
        }
    }
}

#[test]
fn a_loss_keeps_the_share_that_the_rule_promises() {
    let mut rng = Rng(6);
    for _ in 0..instances() {
        let p = Paths::extreme(&mut rng);
        let w = p.w[p.r];
        for name in COUPLED {
            let floor = if p.n() == 1 || ["lia", "lia-subset"].contains(&name) {
                2
            } else {
                1
            };
            let ssthresh = Bench::new(name, &[], &p).ssthresh_after_loss(p.r);
            let least = match name {
                "coupled" => floor,
                "balia" | "adw-balia" => (w / 4).max(floor),
                _ => (w / 2).max(floor),
            };
            // D-LIA and D-OLIA compare the first loss with a window of one packet, so they halve.
            assert!(ssthresh >= least, "{name} {ssthresh} {p:?}");
            assert!(
                ssthresh <= (w / 2 + 1).max(floor),
                "{name} {ssthresh} {p:?}"
            );
            let mut bench = Bench::new(name, &[], &p);
            bench.lose(p.r);
            assert!(
                bench.socks[p.r].tp.snd_cwnd <= w,
                "a loss raised the window: {name} {p:?}"
            );
        }
    }
}

#[test]
fn lia_is_never_faster_than_tcp_on_the_best_path() {
    let mut rng = Rng(7);
    for _ in 0..instances() {
        let p = Paths::random(&mut rng);
        let n = p.n() as f64;
        let increases = Bench::new("lia", &[], &p).increases();
        let speed: f64 = increases.iter().zip(p.rates()).map(|(d, x)| d * x).sum();
        assert!(speed <= (1.0 + STEP) / f64::from(p.t[p.best()]), "{p:?}");
        let best = f64::from(p.w[p.best()]);
        let largest = f64::from(*p.w.iter().max().unwrap());
        for inc in increases {
            assert!(
                inc <= (1.0 + STEP) / best && inc >= (1.0 - STEP) / (n * n * largest),
                "{inc} {p:?}"
            );
        }
    }
}

#[test]
fn olia_moves_window_without_making_any() {
    let mut rng = Rng(8);
    for _ in 0..instances() {
        let p = Paths::random(&mut rng);
        if p.n() == 1 {
            continue;
        }
        let increases = Bench::new("olia", &[], &p).increases();
        let alphas = olia_alphas(&p);
        let mut sum = 0.0;
        for r in 0..p.n() {
            let w = f64::from(p.w[r]);
            let alpha = w * (increases[r] - olia_first(&p, r).min(1.0 / w));
            // At one packet a negative increase is cut off at zero.
            if p.w[r] > 1 || alphas[r] >= 0.0 {
                assert_near(alpha, alphas[r], STEP, &(r, &p));
            }
            sum += alphas[r];
        }
        assert_near(sum, 0.0, 1e-9, &p);
    }
}

#[test]
fn balia_halves_the_fastest_path_and_bounds_the_sum_at_equal_rtts() {
    let mut rng = Rng(9);
    for _ in 0..instances() {
        let p = Paths::random(&mut rng);
        let n = p.n() as f64;
        let rates = p.rates();
        let fastest = (0..p.n())
            .max_by(|&a, &b| rates[a].total_cmp(&rates[b]))
            .unwrap();
        let mut bench = Bench::new("balia", &[], &p);
        let kept = bench.ssthresh_after_loss(fastest);
        let half = p.w[fastest] / 2;
        assert!(
            (half..=half + 1).contains(&kept) || kept <= 2,
            "{kept} {p:?}"
        );
        let equal = Paths {
            t: vec![p.t[0]; p.n()],
            ..p.clone()
        };
        let increases = Bench::new("balia", &[], &equal).increases();
        let sum: f64 = increases
            .iter()
            .zip(&equal.w)
            .map(|(d, &w)| d * f64::from(w))
            .sum();
        assert!(sum <= 1.0 + 0.1 * (n - 1.0) + n * STEP, "{sum} {equal:?}");
    }
}

#[test]
fn equal_paths_get_equal_parts_of_one_tcp() {
    let mut rng = Rng(10);
    for _ in 0..instances() / 4 {
        let n = rng.pick(&[2, 3, 4, 8]);
        let (w, t, l) = (rng.log(2.0, 1e5), rng.log(100.0, 2e6), rng.log(1.0, 1e6));
        let p = Paths {
            w: vec![w; n],
            t: vec![t; n],
            l: vec![(l, 0); n],
            r: rng.below(n),
        };
        let (n, w) = (n as f64, f64::from(w));
        for (name, wanted) in [
            ("lia", 1.0 / (n * n * w)),
            ("olia", 1.0 / (n * n * w)),
            ("balia", 1.0 / (n * n * w)),
            ("coupled", 1.0 / (n * w)),
            ("ewtcp", n.powf(-0.5) / w),
        ] {
            assert_near(
                Bench::new(name, &[], &p).increase(p.r),
                wanted,
                STEP / w,
                &(name, &p),
            );
        }
        assert_near(
            Bench::new("ewtcp", &[("weight", 1)], &p).increase(p.r),
            1.0 / (n * n * w),
            STEP / w,
            &p,
        );
    }
}

#[test]
fn the_total_of_coupled_follows_one_reno_window() {
    let mut rng = Rng(11);
    for _ in 0..200 {
        let n = rng.pick(&[2, 3, 5]);
        let w: Vec<u32> = (0..n).map(|_| rng.log(150.0, 300.0)).collect();
        let p = Paths {
            t: (0..n).map(|_| rng.log(1e3, 1e5)).collect(),
            l: vec![(0, 0); n],
            r: 0,
            w,
        };
        let mut bench = Bench::new("coupled", &[], &p);
        let mut reno = total(&p);
        let acks = |bench: &mut Bench, rng: &mut Rng, reno: &mut f64| {
            for _ in 0..3000 {
                bench.ack(rng.below(n));
                *reno += 1.0 / *reno;
            }
        };
        acks(&mut bench, &mut rng, &mut reno);
        let widest = (0..n).max_by_key(|&k| bench.socks[k].tp.snd_cwnd).unwrap();
        if u64::from(bench.socks[widest].tp.snd_cwnd) * 2 > reno as u64 + 2 {
            bench.lose(widest);
            reno /= 2.0;
        }
        acks(&mut bench, &mut rng, &mut reno);
        let sum: f64 = bench.socks.iter().map(mptcplab_cc::Sock::window).sum();
        // Fractions of a packet are dropped at the loss, and siblings are seen in whole packets.
        assert_near(sum, reno, 2.5, &p);
    }
}

#[test]
fn wvegas_shares_add_up_to_the_total() {
    let mut rng = Rng(12);
    for _ in 0..2000 {
        let n = rng.pick(&[2, 3, 4]);
        let t: Vec<u32> = (0..n).map(|_| rng.log(1e4, 1e5)).collect();
        // Windows that give every subflow a similar rate, so that none is held at the minimum.
        let w: Vec<u32> = t.iter().map(|t| t / 100 + rng.log(1.0, 5.0)).collect();
        let p = Paths {
            w,
            t,
            l: vec![(0, 0); n],
            r: 0,
        };
        let mut bench = Bench::new("wvegas", &[("total_alpha", 20)], &p);
        for _pass in 0..2 {
            for r in 0..n {
                let sock = &mut bench.socks[r];
                let rtt_us = (p.t[r] * 2) as i32;
                sock.set_field(&mut bench.conn, "base", f64::from(p.t[r]) * 1e-6);
                for _ in 0..3 {
                    let sample = mptcplab_cc::AckSample {
                        pkts_acked: 1,
                        rtt_us,
                        in_flight: 1,
                    };
                    sock.pkts_acked(&mut bench.conn, &sample);
                }
                sock.tp.snd_cwnd = p.w[r];
                sock.cong_avoid(&mut bench.conn, sock.tp.snd_nxt, 1);
            }
        }
        let alphas: Vec<f64> = bench
            .socks
            .iter()
            .map(|s| s.field("alpha").unwrap())
            .collect();
        assert!(alphas.iter().all(|a| *a > 2.0), "{alphas:?} {p:?}");
        assert_near(alphas.iter().sum(), 20.0, 0.02, &(alphas, p));
    }
}
