//! Compares group-LIA's compact statistics with those of RFC 8382, which keeps a ring of intervals, and their decisions.

use crate::support::{Bench, Paths, Rng};
use mptcplab_cc::AckSample;
use std::collections::VecDeque;

/// RFC 8382: intervals of the means, and of crossings and losses.
const M: usize = 30;
const N: usize = 50;
const INTERVAL_US: u64 = 350_000;
/// Time between two ACKs of a subflow.
const STEP_US: u64 = 10_000;

/// One interval of a flow: delays in microseconds.
#[derive(Clone, Default)]
struct Interval {
    delays: Vec<f64>,
    /// Samples below the mean less samples above it.
    skew: f64,
    deviation: f64,
    crossed: bool,
    lost: f64,
}

/// The statistics of RFC 8382 over the last M and N intervals.
#[derive(Default)]
struct Reference {
    past: VecDeque<Interval>,
    now: Interval,
    mean_delay: f64,
    last_mean: f64,
    side: f64,
}

impl Reference {
    fn sample(&mut self, delay: f64) {
        if self.mean_delay > 0.0 {
            self.now.skew += f64::from(u8::from(delay < self.mean_delay));
            self.now.skew -= f64::from(u8::from(delay > self.mean_delay));
            self.now.deviation += (delay - self.last_mean).abs();
        }
        self.now.delays.push(delay);
    }

    fn end_interval(&mut self) {
        let n = self.now.delays.len() as f64;
        let mean = self.now.delays.iter().sum::<f64>() / n;
        let beyond = (mean - self.mean_delay).abs() > 0.7 * self.var();
        if beyond && self.mean_delay > 0.0 {
            let side = (mean - self.mean_delay).signum();
            self.now.crossed = self.side * side < 0.0;
            self.side = side;
        }
        self.past.push_front(std::mem::take(&mut self.now));
        self.past.truncate(N);
        let means = self
            .past
            .iter()
            .take(M)
            .map(|i| i.delays.iter().sum::<f64>() / i.delays.len() as f64);
        self.mean_delay = means.sum::<f64>() / self.past.len().min(M) as f64;
        self.last_mean = mean;
    }

    fn over(&self, intervals: usize, what: impl Fn(&Interval) -> f64) -> f64 {
        self.past.iter().take(intervals).map(what).sum()
    }

    fn skew(&self) -> f64 {
        self.over(M, |i| i.skew) / self.over(M, |i| i.delays.len() as f64)
    }

    fn var(&self) -> f64 {
        self.over(M, |i| i.deviation) / self.over(M, |i| i.delays.len() as f64).max(1.0)
    }

    fn freq(&self) -> f64 {
        self.over(N, |i| f64::from(u8::from(i.crossed))) / N as f64
    }

    fn loss(&self) -> f64 {
        let lost = self.over(N, |i| i.lost);
        lost / (lost + self.over(N, |i| i.delays.len() as f64))
    }

    fn at_bottleneck(&self) -> bool {
        self.skew() < 0.1 || self.loss() > 0.1
    }

    fn shares_with(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64, part: f64| (a - b).abs() < part * a.max(b);
        self.at_bottleneck()
            && other.at_bottleneck()
            && (self.freq() - other.freq()).abs() < 0.1
            && near(self.var(), other.var(), 0.1)
            && (self.skew() - other.skew()).abs() < 0.15
    }
}

/// A queue that fills as TCP fills it and loses a packet when it is full.
struct Queue {
    period_us: f64,
    deepest_us: f64,
}

impl Queue {
    /// Delay, and whether the queue has just been emptied.
    fn at(&self, us: u64) -> (f64, bool) {
        let phase = us as f64 % self.period_us;
        let drop = phase < STEP_US as f64;
        (self.deepest_us * (0.3 + 0.7 * phase / self.period_us), drop)
    }
}

/// Two subflows whose ACKs come at the same times, through these queues, with noise of their own.
fn observe(queues: [&Queue; 2], seconds: u64, seed: u64) -> (Bench, [Reference; 2]) {
    let mut rng = Rng(seed);
    let base = [30_000.0, 47_000.0];
    let paths = Paths {
        w: vec![40, 25],
        t: vec![40_000, 60_000],
        l: vec![(0, 0); 2],
        r: 0,
    };
    let mut bench = Bench::new("group-lia", &[], &paths);
    let mut references = [Reference::default(), Reference::default()];
    for us in (0..seconds * 1_000_000).step_by(STEP_US as usize) {
        for k in 0..2 {
            let (queued, lost) = queues[k].at(us);
            let delay = (base[k] + queued + rng.unit() * 1_000.0).round();
            let sock = &mut bench.socks[k];
            sock.tp.tcp_mstamp = us;
            if us > 0 && us % INTERVAL_US == 0 {
                references[k].end_interval();
            }
            references[k].sample(delay);
            references[k].now.lost += f64::from(u8::from(lost));
            let acked = AckSample {
                pkts_acked: 1,
                rtt_us: delay as i32,
                in_flight: 1,
            };
            sock.pkts_acked(&mut bench.conn, &acked);
            sock.tp.delivered += 1;
            sock.tp.lost += u32::from(lost);
        }
    }
    (bench, references)
}

fn near(got: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!(
        (got - wanted).abs() <= tolerance,
        "{what}: {got}, wanted {wanted}"
    );
}

#[test]
fn sums_that_forget_agree_with_rings_of_intervals_and_decide_the_same() {
    let (mut shared, mut disjoint) = (0, 0);
    for seed in 0..24 {
        let mut rng = Rng(seed + 100);
        let one = Queue {
            period_us: 1.1e6 + 2.0e6 * rng.unit(),
            deepest_us: 15e3 + 20e3 * rng.unit(),
        };
        let two = Queue {
            period_us: one.period_us * 1.37,
            deepest_us: one.deepest_us * 1.6,
        };
        let second = if seed % 2 == 0 { &one } else { &two };
        let (bench, references) = observe([&one, second], 70, seed);
        for (sock, wanted) in bench.socks.iter().zip(&references) {
            let field = |name| sock.field(name).unwrap();
            // Closer than what separates groups: c_s and p_f of 0.1, p_mad of 10 %. A sawtooth has no skewness at
            // all: what is measured comes from the part by which the memory is longer than whole periods.
            near(field("skew_plus_1") - 1.0, wanted.skew(), 0.1, "skewness");
            near(field("var") * 1e6 / wanted.var(), 1.0, 0.1, "variability");
            near(field("freq"), wanted.freq(), 0.061, "frequency");
            near(field("loss") / wanted.loss(), 1.0, 0.2, "loss");
            assert_eq!(field("pb"), f64::from(u8::from(wanted.at_bottleneck())));
        }
        let group = |k: usize| bench.socks[k].field("group").unwrap();
        let together = group(0) == group(1);
        assert_eq!(
            together,
            references[0].shares_with(&references[1]),
            "{seed}"
        );
        assert_eq!(together, seed % 2 == 0, "{seed}");
        shared += usize::from(together);
        disjoint += usize::from(!together);
    }
    assert_eq!((shared, disjoint), (12, 12));
}

#[test]
fn nothing_is_decided_before_sixty_intervals() {
    let queue = Queue {
        period_us: 1.7e6,
        deepest_us: 30e3,
    };
    // 60 intervals of 350 ms end at 21 s.
    for (seconds, decided) in [(20, false), (22, true)] {
        let (bench, _) = observe([&queue, &queue], seconds, 5);
        for sock in &bench.socks {
            assert_eq!(sock.field("group") == Some(0.0), decided, "{seconds} s");
            assert_eq!(sock.field("group") == Some(255.0), !decided, "{seconds} s");
        }
    }
}

/// One subflow with intervals of 10 ms, and these parameters in 10^-4.
fn short_intervals(c_s: u64, c_h: u64, p_l: u64) -> Bench {
    let params = [
        ("interval_ms", 10),
        ("c_s", c_s),
        ("c_h", c_h),
        ("p_l", p_l),
    ];
    let paths = Paths {
        w: vec![40],
        t: vec![40_000],
        l: vec![(0, 0)],
        r: 0,
    };
    Bench::new("group-lia", &params, &paths)
}

fn sample(bench: &mut Bench, rtt_us: i32) {
    let acked = AckSample {
        pkts_acked: 1,
        rtt_us,
        in_flight: 1,
    };
    bench.socks[0].pkts_acked(&mut bench.conn, &acked);
}

/// Ends the interval, and begins the next one with a sample.
fn interval(bench: &mut Bench, rtt_us: i32) {
    bench.socks[0].tp.tcp_mstamp += 10_000;
    sample(bench, rtt_us);
}

fn statistic(bench: &Bench, name: &str) -> f64 {
    bench.socks[0].field(name).unwrap()
}

/// RFC 8382 section 3.3.1: skew_est < c_s, skew_est < c_h of a flow at a bottleneck, pkt_loss > p_l. Where all delays
/// are the mean and nothing is lost, both estimates are exactly 0.
#[test]
fn statistics_exactly_at_their_thresholds_are_no_bottleneck() {
    for (c_s, c_h, first, later) in [(0, 0, 0.0, 0.0), (1, 0, 1.0, 1.0), (0, 1, 0.0, 1.0)] {
        let mut bench = short_intervals(c_s, c_h, 0);
        (0..60).for_each(|_| interval(&mut bench, 40_000));
        assert_eq!(statistic(&bench, "skew_plus_1"), 1.0);
        assert_eq!(statistic(&bench, "pb"), 0.0, "59 intervals decide nothing");
        interval(&mut bench, 40_000);
        assert_eq!(statistic(&bench, "pb"), first, "{c_s} {c_h}");
        bench.socks[0].set_field(&mut bench.conn, "pb", 1.0);
        interval(&mut bench, 40_000);
        assert_eq!(statistic(&bench, "pb"), later, "{c_s} {c_h}");
    }
}

/// RFC 8382 section 3.2.4: a mean that is not more than p_v var_est away from mean_delay is on neither side of it.
#[test]
fn a_mean_without_a_deviation_is_on_no_side() {
    for (first, second) in [(30_000, 50_000), (50_000, 30_000)] {
        let mut bench = short_intervals(0, 0, 0);
        (0..4).for_each(|_| interval(&mut bench, 40_000));
        interval(&mut bench, first);
        interval(&mut bench, second);
        assert_eq!(statistic(&bench, "freq"), 0.0, "from no side to {first}");
        interval(&mut bench, second);
        assert_eq!(statistic(&bench, "freq"), 0.02, "{first} to {second}");
    }
}

/// So that the sums fit their 32 bits.
#[test]
fn an_interval_counts_limited_numbers_of_packets_and_samples() {
    for (lost, delivered) in [(1 << 17, 1_000_000), (1_000_000, 1 << 17)] {
        let mut bench = short_intervals(0, 0, 0);
        interval(&mut bench, 40_000);
        bench.socks[0].tp.lost += lost;
        bench.socks[0].tp.delivered += delivered;
        interval(&mut bench, 40_000);
        assert_eq!(statistic(&bench, "loss"), 0.5, "{lost} {delivered}");
    }
    // The sample after 2^18 equal ones does not count.
    let mut bench = short_intervals(0, 0, 0);
    interval(&mut bench, 40_000);
    (1..1 << 18).for_each(|_| sample(&mut bench, 40_000));
    sample(&mut bench, 900_000);
    interval(&mut bench, 40_000);
    assert_eq!(statistic(&bench, "skew_plus_1"), 1.0);
    assert_eq!(statistic(&bench, "var"), 0.0);
}

#[test]
fn an_interval_without_an_rtt_does_not_count_but_one_that_rounds_to_zero_is_an_rtt() {
    for (rtt_us, skew_plus_1) in [(-1, 0.0), (0, 1.0)] {
        let mut bench = short_intervals(0, 0, 0);
        interval(&mut bench, rtt_us);
        interval(&mut bench, rtt_us);
        assert_eq!(statistic(&bench, "skew_plus_1"), skew_plus_1, "{rtt_us}");
    }
}
