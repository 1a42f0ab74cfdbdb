//! The parameters of traffic, with explicit units: start times, transfers, requests and messages, random durations and sizes,
//! video.

/// Transfers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfers {
    /// How large they are.
    pub size: SizeDistribution,
    /// When they begin.
    pub arrivals: Arrivals,
}

/// The distribution of a size. Random sizes are drawn from the flow's stream and are at least one byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeDistribution {
    Fixed {
        /// Application bytes.
        bytes: u64,
    },
    Exponential {
        mean_bytes: u64,
        /// Larger sizes are cut to this.
        max_bytes: u64,
    },
    /// Pareto: P(size > x) = (min / x)^shape from `min` = mean (shape - 1) / shape on.
    Pareto {
        mean_bytes: u64,
        /// Exponent of the tail, above 1.
        shape: f64,
        /// Larger sizes are cut to this.
        max_bytes: u64,
    },
}

/// When transfers begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrivals {
    /// A Poisson process, whatever became of earlier transfers.
    Poisson {
        /// The rate over time: a cycle that begins at the flow's start and is repeated.
        levels: Vec<ArrivalRate>,
    },
    /// One after the other: the first at the flow's start, the next so long after the one before was complete.
    Repeat {
        /// Pause in between.
        gap: DurationDistribution,
        /// How many; `None`: until the flow stops.
        count: Option<u64>,
    },
}

/// The rate of a Poisson process during a part of its cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalRate {
    /// Arrivals in 1000 minutes.
    pub per_1000_min: u64,
    /// How long it lasts; `u64::MAX` means for ever.
    pub lasts_ns: u64,
}

/// Requests and their responses, or messages, over one lasting connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    pub kind: RequestKind,
    /// What is sent first: the request or the message.
    pub size: SizeDistribution,
    /// What the other end answers; `None` only for messages.
    pub answer: Option<SizeDistribution>,
    /// When they are sent.
    pub times: RequestTimes,
    /// How many; `None`: until the flow stops.
    pub count: Option<u64>,
    /// A response or a delivery later than this is late.
    pub bound_ns: Option<u64>,
}

/// Which end of a flow sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// The receiver requests, and the sender responds.
    Requests,
    /// The sender sends messages, and the receiver may answer.
    Messages,
}

/// When requests or messages are sent, from the time at which the connection is established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestTimes {
    /// The first one at once, each further one so long after the response to the one before.
    Think(DurationDistribution),
    /// The first one at once, each further one so long after the one before.
    Interval(DurationDistribution),
    /// A Poisson process.
    Poisson {
        /// The rate over time: a cycle that begins at the flow's start and is repeated.
        levels: Vec<ArrivalRate>,
    },
}

/// Adaptive video over one connection (docs/reference/scenario-format.md, `dash`).
#[derive(Debug, Clone, PartialEq)]
pub struct Video {
    /// Rates at which every chunk is encoded, in bit/s, lowest first.
    pub ladder_bps: Vec<u64>,
    /// Playing time of a chunk.
    pub chunk_ns: u64,
    /// The next chunk is requested when the buffer has room for it.
    pub buffer_ns: u64,
    /// Share of the estimated throughput that the encoding may need.
    pub safety: f64,
    /// Weight of the newest chunk in the estimate.
    pub weight: f64,
    /// The estimate before the first chunk, in bit/s.
    pub first_estimate_bps: u64,
}

/// The distribution of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationDistribution {
    Fixed(u64),
    /// Uniform in `[lo_ns, hi_ns)`, drawn from the flow's stream.
    Uniform {
        lo_ns: u64,
        hi_ns: u64,
    },
    /// Exponential, drawn from the flow's stream.
    Exponential {
        mean_ns: u64,
    },
}

/// A start time, fixed or drawn from the flow's own stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartTime {
    At(u64),
    /// Uniform in `[lo_ns, hi_ns)`.
    Uniform {
        lo_ns: u64,
        hi_ns: u64,
    },
}
