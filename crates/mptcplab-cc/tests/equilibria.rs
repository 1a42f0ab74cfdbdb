//! Equilibrium windows: the fluid limit of each rule, with increases and decreases taken from the hooks.

use crate::support::{Bench, Paths};

/// The windows in equilibrium under loss rates `p`: w_r += x_r (inc_r - p_r dec_r) until they no longer change.
fn settle(name: &str, params: &[(&str, u64)], p: &[f64], t: &[u32]) -> Vec<f64> {
    let mut w: Vec<f64> = p.iter().map(|p| (2.0 / p).sqrt() / 2.0).collect();
    let n = w.len();
    for step in 0..6000 {
        let paths = Paths {
            w: w.iter().map(|w| w.round().max(1.0) as u32).collect(),
            t: t.to_vec(),
            l: vec![(0, 0); n],
            r: 0,
        };
        let mut bench = Bench::new(name, params, &paths);
        // Relative steps that shrink: the drift of a window, divided by its increase alone.
        let gain = 0.3 / (1.0 + f64::from(step) / 300.0);
        for r in 0..n {
            let up = bench.increase(r);
            let down = p[r] * (f64::from(paths.w[r]) - f64::from(bench.ssthresh_after_loss(r)));
            w[r] *= 1.0 + gain * (up - down) / (up + down);
        }
    }
    w
}

fn assert_close(got: f64, wanted: f64, what: &str) {
    assert!(
        (got / wanted - 1.0).abs() < 0.01,
        "{what}: {got}, wanted {wanted}"
    );
}

#[test]
fn lia_is_as_fast_as_one_tcp_on_the_best_path() {
    for (p, t) in [
        (vec![2e-8, 2e-8], vec![20_000, 20_000]),
        (vec![2e-8, 5e-8, 9e-8], vec![31_000, 12_000, 47_000]),
    ] {
        let w = settle("lia", &[], &p, &t);
        let tcp: Vec<f64> = p.iter().map(|p| (2.0 / p).sqrt()).collect();
        let rate: f64 = w.iter().zip(&t).map(|(w, t)| w / f64::from(*t)).sum();
        let best = tcp
            .iter()
            .zip(&t)
            .map(|(w, t)| w / f64::from(*t))
            .fold(0.0, f64::max);
        assert_close(rate, best, "total rate");
        for (w, tcp) in w.iter().zip(&tcp) {
            assert!(
                *w <= tcp * 1.01,
                "a subflow is faster than a TCP: {w} > {tcp}"
            );
        }
    }
}

#[test]
fn ewtcp_weighs_what_its_weight_says() {
    for n in [2usize, 4] {
        let p = 2e-8;
        let tcp = (2.0f64 / p).sqrt();
        let sum = |params: &[(&str, u64)]| -> f64 {
            settle("ewtcp", params, &vec![p; n], &vec![17_000; n])
                .iter()
                .sum()
        };
        assert_close(sum(&[("weight", 1)]), tcp, "fair");
        assert_close(sum(&[("weight", 0)]), tcp * (n as f64).powf(0.75), "sqrt");
    }
}

#[test]
fn semicoupled_splits_by_loss_rate() {
    // Loss rates 1 : 1 : 5 give 45.5 %, 45.5 % and 9.1 % (NSDI 2011, section 2.4).
    let p = [1e-8, 1e-8, 5e-8];
    let w = settle("semicoupled", &[], &p, &[20_000, 33_000, 11_000]);
    let inverse: f64 = p.iter().map(|p| 1.0 / p).sum();
    for (w, p) in w.iter().zip(&p) {
        assert_close(*w, 2f64.sqrt() / p / inverse.sqrt(), "window");
    }
}
