//! CUBIC in the simulator, ACK by ACK, against RFC 9438 computed here in floating point.
//!
//! The reference sees what the trace shows of each ACK (time, packets acknowledged, smoothed RTT) and of each loss
//! (when), and never the window inside an epoch.

use crate::common::{Measured, simulate_one};
use mptcplab_trace::EventKind;

/// RFC 9438: C (section 5.1), beta_cubic (4.6), alpha_cubic (4.3), fast convergence (4.7).
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
const CONVERGED: f64 = (1.0 + BETA) / 2.0;

/// `SubflowRow::state` of a sender that may grow its window.
const OPEN: u8 = 2;

/// ACKs in bursts on a link that is never full; a queue that fills, so that the RTT changes; small windows and many
/// losses, where Reno's estimate decides. Losses end epochs below and above the last maximum.
const SCENARIO: &str = r#"
duration = "300 s"
sample = "10 s"
per_ack = true
cc = "cubic"
[links.bunched]
from = "S"
to = "D"
rate = "1 Gbit/s"
delay = "40 ms"
loss = "0.005 %"
[links.queue]
from = "S"
to = "D"
rate = "40 Mbit/s"
delay = "50 ms"
queue = "1 BDP"
loss = "0.002 %"
[links.short]
from = "S"
to = "D"
rate = "200 Mbit/s"
delay = "8 ms"
loss = "0.3 %"
[flows.bunched]
path = ["bunched"]
[flows.queue]
path = ["queue"]
[flows.short]
path = ["short"]
"#;

/// One ACK as the trace shows it; the state and window are those after it.
struct Ack {
    t_ns: u64,
    open: bool,
    cwnd: f64,
    acked: f64,
    srtt_s: f64,
}

fn acks(run: &Measured, flow: u32) -> Vec<Ack> {
    let t = &run.outcome.tables.subflow;
    let rows: Vec<usize> = (0..t.len()).filter(|&i| t.flow[i] == flow).collect();
    let mut before = 0;
    let mut found = Vec::with_capacity(rows.len());
    for i in rows {
        found.push(Ack {
            t_ns: t.t_ns[i],
            open: t.state[i] == OPEN,
            cwnd: f64::from(t.cwnd_pkts[i]),
            acked: (t.acked_pkts[i] - before) as f64,
            srtt_s: f64::from(t.srtt_us[i]) * 1e-6,
        });
        before = t.acked_pkts[i];
    }
    found
}

/// Times of loss events; the scenario must have no other kind of reduction.
fn losses(run: &Measured, flow: u32) -> Vec<u64> {
    let e = &run.outcome.tables.event;
    let mut times = Vec::new();
    for i in (0..e.len()).filter(|&i| e.flow[i] == flow as i32) {
        let kind = e.kind[i];
        for other in [EventKind::RtoFired, EventKind::Undo, EventKind::EcnEvent] {
            assert_ne!(kind, other as u8, "{other:?} at {} ns", e.t_ns[i]);
        }
        if kind == EventKind::LossEvent as u8 {
            times.push(e.t_ns[i]);
        }
    }
    times
}

/// Congestion avoidance after a loss.
struct Epoch {
    w: f64,
    w_max: f64,
    k: f64,
    w_est: f64,
    /// Window before the loss.
    prior: f64,
    seconds: f64,
    /// Whether W_cubic, or W_est, ever decided.
    used: [bool; 2],
}

impl Epoch {
    fn new(prior: f64, w_max: f64) -> Self {
        let w = BETA * prior;
        Self {
            w,
            w_max,
            k: ((w_max - w) / C).cbrt(),
            w_est: w,
            prior,
            seconds: 0.0,
            used: [false; 2],
        }
    }

    fn curve(&self, t: f64) -> f64 {
        C * (t - self.k).powi(3) + self.w_max
    }

    /// Sections 4.2 to 4.5.
    fn ack(&mut self, since_last_s: f64, acked: f64, srtt_s: f64) {
        self.seconds += since_last_s;
        let alpha = if self.w_est < self.prior { ALPHA } else { 1.0 };
        self.w_est += alpha * acked / self.w;
        let curved = self.curve(self.seconds) >= self.w_est;
        self.used[usize::from(!curved)] = true;
        if curved {
            let target = self
                .curve(self.seconds + srtt_s)
                .clamp(self.w, 1.5 * self.w);
            self.w += acked * (target - self.w) / self.w;
        } else {
            self.w = self.w.max(self.w_est);
        }
    }
}

/// What W_max may be after a loss at `prior`; two values where prior and last maximum are too close for the whole
/// packets of a trace to tell.
fn maxima(prior: f64, former: &[f64]) -> Vec<f64> {
    let below = former.is_empty() || former.iter().any(|m| prior < m + 1.0);
    let reached = former.is_empty() || former.iter().any(|m| prior > m - 1.0);
    [(reached, prior), (below, CONVERGED * prior)]
        .into_iter()
        .filter(|&(possible, _)| possible)
        .map(|(_, m)| m)
        .collect()
}

#[derive(Default)]
struct Compared {
    epochs: usize,
    worst: f64,
    /// Epochs in which W_cubic, W_est, and both decided.
    curve: usize,
    estimate: usize,
    both: usize,
    /// Epochs after fast convergence, and without.
    converged: [usize; 2],
}

fn compare(run: &Measured, flow: u32) -> Compared {
    let (acks, losses) = (acks(run, flow), losses(run, flow));
    let mut found = Compared::default();
    let mut former = Vec::new();
    let mut model: Option<Epoch> = None;
    for pair in losses.windows(2) {
        let first = acks.partition_point(|a| a.t_ns < pair[0]);
        let last = acks.partition_point(|a| a.t_ns < pair[1]);
        // The trace shows whole packets; the fraction is what the reference says.
        let whole = acks[first - 1].cwnd;
        let prior = model
            .take()
            .map_or(whole + 0.5, |e| e.w.clamp(whole, whole + 1.0));
        former = maxima(prior, &former);
        let open: Vec<&Ack> = acks[first..last].iter().filter(|a| a.open).collect();
        if former.len() != 1 || open.len() < 2 {
            continue;
        }
        let mut epoch = Epoch::new(prior, former[0]);
        for step in open.windows(2) {
            epoch.ack(
                (step[1].t_ns - step[0].t_ns) as f64 * 1e-9,
                step[1].acked,
                step[1].srtt_s,
            );
            let outside = (step[1].cwnd - epoch.w)
                .max(epoch.w - step[1].cwnd - 1.0)
                .max(0.0);
            found.worst = found.worst.max(outside);
        }
        found.epochs += 1;
        found.curve += usize::from(epoch.used == [true, false]);
        found.estimate += usize::from(epoch.used == [false, true]);
        found.both += usize::from(epoch.used == [true, true]);
        found.converged[usize::from(former[0] < prior)] += 1;
        model = Some(epoch);
    }
    found
}

#[test]
fn the_window_follows_rfc_9438_between_losses_within_a_packet() {
    let run = simulate_one(SCENARIO, &[]);
    let mut decided = [0; 3];
    for (flow, name) in [(0, "bunched"), (1, "queue"), (2, "short")] {
        let c = compare(&run, flow);
        println!(
            "{name:<8} {} epochs (curve {}, estimate {}, both {}; without and with fast convergence {:?}), {:.3} packets",
            c.epochs, c.curve, c.estimate, c.both, c.converged, c.worst
        );
        assert!(c.worst <= 1.0, "{name}: {} packets off", c.worst);
        assert!(
            c.converged.iter().all(|&n| n >= 5),
            "{name}: {:?}",
            c.converged
        );
        for (sum, n) in decided.iter_mut().zip([c.curve, c.estimate, c.both]) {
            *sum += n;
        }
    }
    assert!(
        decided.iter().all(|&n| n >= 5),
        "curve, estimate, both: {decided:?}"
    );
}

#[test]
fn another_curve_is_told_apart() {
    for wrong in [
        "{ name = \"cubic\", c = 0.44 }",
        "{ name = \"cubic\", beta = 0.69 }",
    ] {
        let run = simulate_one(SCENARIO, &[("cc", wrong), ("duration", "60 s")]);
        let worst = (0..2)
            .map(|flow| compare(&run, flow).worst)
            .fold(0.0, f64::max);
        assert!(worst > 2.0, "{wrong}: only {worst} packets off");
    }
}

/// A timeout says that the path may have changed: HyStart measures its round-trip time anew. The longer path is filled again.
#[test]
fn a_longer_path_after_a_timeout_does_not_end_slow_start() {
    let text = r#"
duration = "16 s"
sample = "10 ms"
[links.L]
from = "S"
to = "D"
rate = "100 Mbit/s"
delay = "5 ms"
queue = "300 packets"
schedule = [{ at = "5 s", loss = "100 %" }, { at = "6 s", loss = "0 %", delay = "50 ms" }]
[flows.f]
transport = "tcp"
cc = "cubic"
path = ["L"]
"#;
    let run = simulate_one(text, &[("tcp.send_jitter", "0 s")]);
    let ssthresh = run.at("f", 0, 6500.0, |t| &t.ssthresh_pkts);
    let cwnd = run.at("f", 0, 11_000.0, |t| &t.cwnd_pkts);
    assert!(cwnd > ssthresh / 2, "{cwnd} of {ssthresh}");
}
