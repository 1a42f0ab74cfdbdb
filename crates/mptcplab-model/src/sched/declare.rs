//! Which schedulers there are, with their parameters and what a person should know of them. The scenario format, the
//! commands and the reference pages take everything from here.

use mptcplab_cc::ParamSpec;
use std::fmt;
use std::sync::OnceLock;

/// A scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lowest smoothed RTT.
    MinRtt,
    /// In turn.
    RoundRobin,
    /// Everything on every subflow.
    Redundant,
    /// Regular subflows, then backups.
    Backup,
    /// Blocking estimation.
    Blest,
    /// Earliest completion.
    Ecf,
    /// Least time to flush what is queued.
    Linger,
    /// Least variation of the delay.
    DelayVar,
}

/// What there is to say about a scheduler.
#[derive(Debug)]
pub struct Declaration {
    /// Which.
    pub kind: Kind,
    /// Name in scenario files.
    pub name: &'static str,
    /// One line for tables.
    pub title: &'static str,
    /// (Heading, text), as in the header of an algorithm.
    pub sections: Vec<(&'static str, &'static str)>,
    /// Parameters, at most [`MAX_PARAMS`].
    pub params: Vec<ParamSpec>,
}

/// Most parameters of a scheduler.
pub const MAX_PARAMS: usize = 6;

/// A scheduler with the values of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    kind: Kind,
    values: [u64; MAX_PARAMS],
}

impl Choice {
    /// With every parameter at its default.
    pub fn new(kind: Kind) -> Self {
        let mut values = [0; MAX_PARAMS];
        for (value, spec) in values.iter_mut().zip(&declaration(kind).params) {
            *value = spec.default;
        }
        Self { kind, values }
    }

    /// Which scheduler.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Name in scenario files.
    pub fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// What there is to say about it.
    pub fn declaration(&self) -> &'static Declaration {
        declaration(self.kind)
    }

    /// With another raw value of a parameter, which must exist and be in range.
    ///
    /// # Panics
    /// Where it is not: values of people are checked before.
    #[must_use]
    pub fn with(mut self, name: &str, raw: u64) -> Self {
        let index = self.index(name);
        let spec = &self.declaration().params[index];
        assert!((spec.min..=spec.max).contains(&raw), "{name} = {raw}");
        self.values[index] = raw;
        self
    }

    /// What no parameter shows by itself: whether they go together.
    ///
    /// # Errors
    /// The parameter that is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.kind != Kind::Blest || self.raw("min_lambda") <= self.raw("max_lambda") {
            return Ok(());
        }
        let shown = |name: &str| {
            let index = self.index(name);
            self.declaration().params[index].format(self.values[index])
        };
        let (min, max) = (shown("min_lambda"), shown("max_lambda"));
        Err((
            "min_lambda",
            format!("{min} is more than max_lambda, {max}"),
        ))
    }

    /// Raw value of a parameter that the scheduler declares.
    ///
    /// # Panics
    /// If it does not.
    pub fn raw(&self, name: &str) -> u32 {
        // Declared maxima fit 32 bits; a test holds them to it.
        self.values[self.index(name)] as u32
    }

    /// Whether a parameter that the scheduler declares is true.
    ///
    /// # Panics
    /// If it does not declare it.
    pub fn is_set(&self, name: &str) -> bool {
        self.raw(name) != 0
    }

    fn index(&self, name: &str) -> usize {
        let declaration = self.declaration();
        declaration
            .params
            .iter()
            .position(|p| p.name == name)
            .unwrap_or_else(|| panic!("{} has no parameter {name}", declaration.name))
    }
}

/// As a scenario would write it: the name, and in brackets the parameters that differ from their default.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.declaration().params.iter().zip(self.values);
        let changed: Vec<String> = params
            .filter(|(spec, raw)| *raw != spec.default)
            .map(|(spec, raw)| format!("{}={}", spec.name, spec.format(raw)))
            .collect();
        f.write_str(self.name())?;
        if changed.is_empty() {
            return Ok(());
        }
        write!(f, "({})", changed.join(", "))
    }
}

/// All schedulers, in the order in which they are listed.
pub fn declarations() -> &'static [Declaration] {
    static ALL: OnceLock<Vec<Declaration>> = OnceLock::new();
    ALL.get_or_init(|| {
        vec![
            minrtt(),
            roundrobin(),
            redundant(),
            backup(),
            blest(),
            ecf(),
            linger(),
            delayvar(),
        ]
    })
}

/// The scheduler of this name.
pub fn find(name: &str) -> Option<&'static Declaration> {
    declarations().iter().find(|d| d.name == name)
}

fn declaration(kind: Kind) -> &'static Declaration {
    // The list is in the order of the enumeration; a test holds it to that.
    &declarations()[kind as usize]
}

fn truth(name: &'static str, default: bool, doc: &'static str) -> ParamSpec {
    ParamSpec {
        name,
        default: u64::from(default),
        min: 0,
        max: 1,
        scale: 1,
        values: vec![("false", 0), ("true", 1)],
        doc,
    }
}

fn number(
    name: &'static str,
    (default, min, max): (u64, u64, u64),
    scale: u64,
    doc: &'static str,
) -> ParamSpec {
    ParamSpec {
        name,
        default,
        min,
        max,
        scale,
        values: Vec::new(),
        doc,
    }
}

/// What a scheduler does when the receive window blocks.
fn repair(penalise: bool) -> Vec<ParamSpec> {
    vec![
        truth(
            "opportunistic",
            true,
            "When the shared receive window blocks, send the segment that everything waits for again on a faster subflow.",
        ),
        truth(
            "penalise",
            penalise,
            "When the shared receive window blocks, halve the window of slower subflows that hold that segment, at most once per RTT of the faster one.",
        ),
        ParamSpec {
            name: "holders",
            default: 0,
            min: 0,
            max: 1,
            scale: 1,
            values: vec![("all", 0), ("first", 1)],
            doc: "Whom to penalise: all subflows that hold the segment, or the first one only, as older kernels did.",
        },
    ]
}

fn minrtt() -> Declaration {
    Declaration {
        kind: Kind::MinRtt,
        name: "minrtt",
        title: "lowest smoothed RTT first, with opportunistic retransmission and penalisation",
        sections: vec![
            (
                "Idea",
                "A segment goes to the subflow with the lowest smoothed RTT whose window has room. When the shared \
                 receive window blocks, the segment that everything waits for is sent again on a faster subflow, and \
                 the slower ones that hold it are slowed down.",
            ),
            (
                "Rules",
                "Penalty: cwnd = max(cwnd/2, 1), and outside slow start ssthresh = max(ssthresh/2, 2), once per srtt of the \
                 fast subflow f, for holders h with srtt_h > srtt_f in state Open. Retransmission on f unless f holds \
                 the segment or 4 srtt_f >= srtt_h; a holder with cwnd <= 4 always counts as slow.",
            ),
            (
                "Deviations",
                "No send buffer is modelled, so only the receive window makes it act. minrtt(opportunistic=false, \
                 penalise=false) is the plain rule.",
            ),
            (
                "Reference",
                "The default of the multipath-tcp.org kernels; Raiciu et al., How Hard Can It Be?, NSDI 2012, section 4.2.",
            ),
        ],
        params: repair(true),
    }
}

fn roundrobin() -> Declaration {
    Declaration {
        kind: Kind::RoundRobin,
        name: "roundrobin",
        title: "one subflow after the other",
        sections: vec![
            (
                "Idea",
                "Every subflow sends num_segments segments, then it is the next one's turn. With cwnd_limited subflows \
                 without room are passed over; without it the one whose turn it is is waited for, so that all carry \
                 the same amount and the slowest sets the pace.",
            ),
            (
                "Deviations",
                "The lowest index begins a round; the kernel begins with the last of its list. Backups take part only when \
                 no regular subflow is usable.",
            ),
            (
                "Reference",
                "mptcp_rr of the multipath-tcp.org kernels, sysctls num_segments and cwnd_limited.",
            ),
        ],
        params: vec![
            number(
                "num_segments",
                (1, 1, 255),
                1,
                "Segments that a subflow sends in a row.",
            ),
            truth(
                "cwnd_limited",
                true,
                "Whether to pass over subflows whose window is full instead of waiting for them.",
            ),
        ],
    }
}

fn redundant() -> Declaration {
    Declaration {
        kind: Kind::Redundant,
        name: "redundant",
        title: "the same data on every subflow: latency for capacity",
        sections: vec![
            (
                "Idea",
                "Every regular subflow sends, at its own pace, the oldest segment that is not acknowledged at connection \
                 level and that it has not sent yet. The first copy to arrive counts, so a loss or a slow path costs \
                 nothing as long as another subflow delivers.",
            ),
            (
                "Deviations",
                "Backups do not replicate: where only they are usable, one of them sends. A subflow repairs its own \
                 losses, also of data that another one has delivered meanwhile, as TCP must.",
            ),
            (
                "Reference",
                "mptcp_redundant of the multipath-tcp.org kernels (0.94 and later); Frömmgen et al., ICC 2016.",
            ),
        ],
        params: Vec::new(),
    }
}

fn backup() -> Declaration {
    Declaration {
        kind: Kind::Backup,
        name: "backup",
        title: "regular subflows; backup subflows only when no regular one is usable",
        sections: vec![
            (
                "Idea",
                "Subflows with the B bit (backup = true) carry data only while no regular subflow is usable; within the \
                 class in use the lowest smoothed RTT is first. Every scheduler here respects the B bit; this is that \
                 rule with nothing added.",
            ),
            ("Reference", "RFC 8684 sections 3.3.8 and 3.2."),
        ],
        params: Vec::new(),
    }
}

fn blest() -> Declaration {
    let mut params = repair(false);
    params.push(number(
        "lambda",
        (1200, 0, 10_000),
        1000,
        "Initial factor on what the fast subflow is expected to send.",
    ));
    params.push(number(
        "min_lambda",
        (1000, 0, 10_000),
        1000,
        "Lower bound of the factor as it adapts.",
    ));
    params.push(number(
        "max_lambda",
        (1300, 0, 10_000),
        1000,
        "Upper bound of the factor as it adapts; at least min_lambda.",
    ));
    Declaration {
        kind: Kind::Blest,
        name: "blest",
        title: "leaves a slow subflow alone if it would block the window of the fast one",
        sections: vec![
            (
                "Idea",
                "Before a slower subflow gets a segment, estimate what the fastest one will send until that segment is \
                 acknowledged. If it would not fit the shared window beside what the slow subflow holds, wait.",
            ),
            (
                "Rules",
                "T = time that s holds the segment: max(srtt_s, interpolation of its least and largest srtt by \
                 (inflight+1)/cwnd); k = floor(T/rtt_f) + 1 rounds; packets of f: cwnd (2^k - 1) in initial slow start, \
                 else (max(cwnd, ssthresh+1) + (k-1)/2) k. Wait if packets mss lambda > window - segment - (inflight_s + \
                 queued_s) mss. lambda moves by +0.04 after an opportunistic retransmission and by -0.01 otherwise, at \
                 most once per least srtt of s.",
            ),
            (
                "Deviations",
                "The kernel's form, in exact integers. An idle backup never counts as the fastest subflow: it would be \
                 waited for in vain.",
            ),
            (
                "Reference",
                "Ferlin et al., BLEST: Blocking Estimation-Based MPTCP Scheduler for Heterogeneous Networks, IFIP \
                 Networking 2016; mptcp_blest of the multipath-tcp.org kernels (retransmits, does not penalise).",
            ),
        ],
        params,
    }
}

fn ecf() -> Declaration {
    let mut params = repair(true);
    params.push(number(
        "beta",
        (250, 0, 10_000),
        1000,
        "Hysteresis: once waiting, the fast subflow may be later by this part.",
    ));
    Declaration {
        kind: Kind::Ecf,
        name: "ecf",
        title: "leaves a slow subflow alone if the fast one would be done earlier",
        sections: vec![
            (
                "Idea",
                "With a backlog of k segments: if waiting for the fastest subflow f completes them before the slower \
                 one s would, wait.",
            ),
            (
                "Rules",
                "n = 1 + max(k/cwnd_f, 1), delta = max(rttvar_f, rttvar_s). If n srtt_f < (1 + waiting beta)(srtt_s + \
                 delta): wait if max(k/cwnd_s, 1) srtt_s >= 2 srtt_f + delta, else use s; otherwise stop waiting and \
                 use s.",
            ),
            (
                "Deviations",
                "rttvar is the measured mean deviation; the kernel's has a floor of 200 ms. An idle backup never counts \
                 as the fastest subflow. The backlog is what a send buffer of twice the windows would hold: that of a bulk \
                 transfer is endless, and ECF would never wait.",
            ),
            (
                "Reference",
                "Lim et al., ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, CoNEXT 2017; mptcp_ecf of the \
                 multipath-tcp.org kernels (retransmits and penalises as its default).",
            ),
        ],
        params,
    }
}

fn linger() -> Declaration {
    Declaration {
        kind: Kind::Linger,
        name: "linger",
        title: "upstream Linux: the subflow whose queued data leave first",
        sections: vec![
            (
                "Idea",
                "The subflow whose send queue would be empty first at its average pacing rate gets the next burst of up \
                 to 64 kB, ahead of its congestion window, as far as its send buffer takes it.",
            ),
            (
                "Rules",
                "Least queued/avg_pacing; burst = min(65428, window) bytes; avg_pacing = (avg_pacing queued + pacing \
                 burst)/(queued + burst). No pick while that subflow's send buffer, or the connection's, is full.",
            ),
            (
                "Deviations",
                "Send buffers are sized from the windows as the kernel sizes them, in payload; the kernel also counts the \
                 memory around it. The burst goes whole to the subflow that has room when it is picked.",
            ),
            (
                "Reference",
                "Linux net/mptcp/protocol.c, mptcp_subflow_get_send.",
            ),
        ],
        params: Vec::new(),
    }
}

fn delayvar() -> Declaration {
    Declaration {
        kind: Kind::DelayVar,
        name: "delayvar",
        title: "subflows with a steady delay first",
        sections: vec![
            (
                "Idea",
                "A subflow is stable while its RTT is within a threshold of its least one. Stable subflows come first, \
                 within a class the one with the largest cwnd/RTT; an unstable one is not used where a stable one \
                 would get the backlog through earlier. A lost segment is also sent on the first available subflow.",
            ),
            (
                "Rules",
                "mu = (rtt - rtt_min)/rtt_min, stable: mu <= threshold. Wait if rtt_s ceil(backlog/cwnd_s) + rtt_s/2 < \
                 rtt_u/2 for a stable s and an unstable pick u.",
            ),
            (
                "Deviations",
                "The paper leaves mu, the threshold and its adaptive fast retransmit undefined; this is the complete \
                 reading of the specification. The paper's window rule is the congestion control `delayvar`; take both \
                 to run the paper: cc = \"delayvar\", scheduler = \"delayvar\". The backlog is bounded as ECF's.",
            ),
            (
                "Reference",
                "Kushwah and Kumar, A new path scheduling approach for MPTCP, SCPE 2024.",
            ),
        ],
        params: vec![
            number(
                "threshold",
                (500, 0, 100_000),
                1000,
                "Largest variation (rtt - rtt_min)/rtt_min of a stable subflow.",
            ),
            truth(
                "copy_losses",
                true,
                "Send a segment that fast retransmit repairs also on the first available subflow.",
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declaration_is_where_it_is_looked_for_and_its_numbers_fit() {
        for (i, d) in declarations().iter().enumerate() {
            assert_eq!(d.kind as usize, i, "{}", d.name);
            assert!(d.params.len() <= MAX_PARAMS, "{}", d.name);
            for p in &d.params {
                assert!(
                    (p.min..=p.max).contains(&p.default),
                    "{}.{}",
                    d.name,
                    p.name
                );
                assert!(p.max <= u64::from(u32::MAX), "{}.{}", d.name, p.name);
            }
        }
    }

    #[test]
    fn a_choice_reads_as_it_is_written() {
        let minrtt = Choice::new(Kind::MinRtt);
        assert_eq!(minrtt.to_string(), "minrtt");
        let plain = minrtt.with("opportunistic", 0).with("penalise", 0);
        assert_eq!(
            plain.to_string(),
            "minrtt(opportunistic=false, penalise=false)"
        );
        let blest = Choice::new(Kind::Blest).with("lambda", 1050);
        assert_eq!(blest.to_string(), "blest(lambda=1.05)");
        assert!(blest.is_set("opportunistic") && !blest.is_set("penalise"));
    }
}
