//! Shared by the tests of the algorithms: a seeded generator, random connections, and events in an engine's order.

use mptcplab_cc::{AckSample, Algorithm, CaState, Conn, Sock, find};

/// The algorithms whose rules are known, so that exact bounds hold; a new algorithm's rule may have others.
pub(crate) const SPECIFIED: &[&str] = &[
    "reno",
    "cubic",
    "ewtcp",
    "coupled",
    "semicoupled",
    "lia",
    "olia",
    "balia",
    "wvegas",
    "vegas",
    "westwood",
    "template",
    "template-coupled",
    "lia-subset",
    "dlia",
    "dolia",
    "adw-balia",
    "mcompound",
    "group-lia",
];

/// Random connections per law.
pub(crate) fn instances() -> usize {
    scale("MPTCPLAB_LAW_INSTANCES", 20_000)
}

/// How much of a test to run: the value of an environment variable, or the default.
pub(crate) fn scale(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Err(_) => default,
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}: {text}, wanted a number such as {default}")),
    }
}

/// Splitmix64: small, seeded, the same everywhere.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Log-uniform integer in lo..=hi.
    pub(crate) fn log(&mut self, lo: f64, hi: f64) -> u32 {
        ((lo.ln() + self.unit() * (hi.ln() - lo.ln())).exp() as u32).clamp(lo as u32, hi as u32)
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// Windows, RTTs and loss intervals of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// Packets.
    pub w: Vec<u32>,
    /// Smoothed RTTs, µs.
    pub t: Vec<u32>,
    /// Packets between losses (OLIA's l1, l2).
    pub l: Vec<(u32, u32)>,
    /// The acting path.
    pub r: usize,
}

impl Paths {
    /// Up to 10^5 packets and 0.1 ms to 2 s.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        Self::within(rng, 1e5, 100.0, 2e6)
    }

    /// The whole arithmetic range: 2^20 packets, 1 µs to 67 s.
    pub(crate) fn extreme(rng: &mut Rng) -> Self {
        let mut paths = Self::within(rng, 1_048_576.0, 1.0, 67_108_864.0);
        for w in &mut paths.w {
            if rng.chance(0.1) {
                *w = rng.pick(&[1, 1 << 20]);
            }
        }
        for t in &mut paths.t {
            if rng.chance(0.1) {
                *t = rng.pick(&[1, 1 << 26]);
            }
        }
        paths
    }

    fn within(rng: &mut Rng, w_max: f64, t_min: f64, t_max: f64) -> Self {
        let n = rng.pick(&[1, 2, 2, 3, 4, 8]);
        let mut w: Vec<u32> = (0..n).map(|_| rng.log(1.0, w_max)).collect();
        let mut t: Vec<u32> = (0..n).map(|_| rng.log(t_min, t_max)).collect();
        let mut l: Vec<(u32, u32)> = (0..n)
            .map(|_| (rng.log(1.0, 1e9) - 1, rng.log(1.0, 1e9) - 1))
            .collect();
        if rng.chance(0.2) {
            w = vec![w[0]; n];
        }
        if rng.chance(0.2) {
            t = vec![t[0]; n];
        }
        if rng.chance(0.2) {
            l = vec![l[0]; n];
        }
        Self {
            w,
            t,
            l,
            r: rng.below(n),
        }
    }

    pub(crate) fn n(&self) -> usize {
        self.w.len()
    }

    /// Rates w/tau, packets per µs.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.w
            .iter()
            .zip(&self.t)
            .map(|(&w, &t)| f64::from(w) / f64::from(t))
            .collect()
    }

    /// Index of the largest w/tau^2, decided exactly.
    pub(crate) fn best(&self) -> usize {
        let key = |i: usize, j: usize| u128::from(self.w[i]) * u128::from(self.t[j]).pow(2);
        (1..self.n()).fold(0, |b, i| if key(i, b) > key(b, i) { i } else { b })
    }
}

/// A connection whose events are played by hand.
pub(crate) struct Bench {
    pub conn: Conn,
    pub socks: Vec<Sock>,
}

impl Bench {
    /// Established subflows in congestion avoidance.
    pub(crate) fn new(name: &str, params: &[(&str, u64)], paths: &Paths) -> Self {
        let mut bench = Self {
            conn: Conn::new(),
            socks: Vec::new(),
        };
        for i in 0..paths.n() {
            bench.add(name, params, paths.w[i], paths.t[i]);
            let (l1, l2) = paths.l[i];
            let sock = &mut bench.socks[i];
            sock.set_field(&mut bench.conn, "l1", f64::from(l1));
            sock.set_field(&mut bench.conn, "l2", f64::from(l2));
        }
        bench
    }

    pub(crate) fn add(&mut self, name: &str, params: &[(&str, u64)], cwnd: u32, srtt_us: u32) {
        let algorithm: &'static Algorithm = find(name).expect("a registered algorithm");
        let params: Vec<(String, u64)> = params.iter().map(|&(k, v)| (k.to_owned(), v)).collect();
        let mut sock = Sock::new(algorithm, &params, false).expect("valid parameters");
        sock.tp.snd_cwnd = cwnd;
        sock.tp.snd_ssthresh = 1;
        sock.tp.srtt_us = srtt_us << 3;
        sock.tp.is_cwnd_limited = true;
        sock.init(&mut self.conn, self.socks.len() as u32);
        self.socks.push(sock);
    }

    /// Growth that one acknowledged packet gives on path r, packets; changes nothing.
    pub(crate) fn increase(&mut self, r: usize) -> f64 {
        let saved = self.socks[r].clone();
        let sock = &mut self.socks[r];
        sock.cong_avoid(&mut self.conn, 1, 1);
        let whole = f64::from(sock.tp.snd_cwnd) - f64::from(saved.tp.snd_cwnd);
        let growth = whole + (sock.credit() - saved.credit());
        *sock = saved;
        sock.publish(&mut self.conn);
        growth
    }

    pub(crate) fn increases(&mut self) -> Vec<f64> {
        (0..self.socks.len()).map(|r| self.increase(r)).collect()
    }

    /// One acknowledged packet.
    pub(crate) fn ack(&mut self, r: usize) {
        let sock = &mut self.socks[r];
        sock.pkts_acked(
            &mut self.conn,
            &AckSample {
                pkts_acked: 1,
                rtt_us: -1,
                in_flight: 0,
            },
        );
        sock.cong_avoid(&mut self.conn, 1, 1);
    }

    /// A fast recovery, entered and left.
    pub(crate) fn lose(&mut self, r: usize) {
        let sock = &mut self.socks[r];
        sock.tp.prior_cwnd = sock.tp.snd_cwnd;
        sock.tp.snd_ssthresh = sock.ssthresh(&mut self.conn);
        sock.set_state(&mut self.conn, CaState::Recovery);
        sock.tp.snd_cwnd = sock.tp.snd_cwnd.min(sock.tp.snd_ssthresh);
        sock.set_state(&mut self.conn, CaState::Open);
    }

    /// What a loss on path r would set ssthresh to.
    pub(crate) fn ssthresh_after_loss(&mut self, r: usize) -> u32 {
        let saved = self.socks[r].clone();
        let ssthresh = self.socks[r].ssthresh(&mut self.conn);
        self.socks[r] = saved;
        self.socks[r].publish(&mut self.conn);
        ssthresh
    }
}
