//! The JSON layout of vector files, parsed into types.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const SCHEMA: &str = "mptcplab-vectors-1";

/// The parts of a file that are used; vectors stay unparsed until something runs them.
#[derive(Debug, Deserialize)]
pub(super) struct File {
    schema: String,
    pub(super) algorithms: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    pub(super) schedulers: BTreeMap<String, Vec<Value>>,
}

/// One vector of a kind that runs here.
#[derive(Debug, Deserialize)]
pub(super) struct Vector {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) paths: Vec<PathState>,
    #[serde(default)]
    pub(super) r: usize,
    #[serde(default = "one")]
    pub(super) acked: u32,
    pub(super) rtt: Option<f64>,
    pub(super) now: Option<f64>,
    /// RTT samples of a round.
    #[serde(default = "three")]
    pub(super) cnt: u32,
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    #[serde(default)]
    ops: Vec<Vec<Value>>,
    #[serde(skip)]
    pub(super) steps: Vec<Op>,
    pub(super) expect: Expect,
    pub(super) int_tol_pkts: Option<f64>,
}

/// State of a path before the event.
#[derive(Debug, Deserialize)]
pub(super) struct PathState {
    pub(super) cwnd: f64,
    /// Seconds; 0 before the first sample.
    pub(super) srtt: f64,
    /// The same in microseconds.
    pub(super) srtt_us: Option<u32>,
    /// Packets; none = infinite.
    pub(super) ssthresh: Option<f64>,
    #[serde(default = "yes")]
    pub(super) usable: bool,
    #[serde(default)]
    pub(super) in_recovery: bool,
    #[serde(default)]
    pub(super) app_limited: bool,
    pub(super) flight: Option<f64>,
    /// The algorithm's own state, by name.
    #[serde(default)]
    pub(super) st: BTreeMap<String, Option<f64>>,
}

/// A number, or one per path (sequences).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum PerPath {
    One(Option<f64>),
    All(Vec<Option<f64>>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Expect {
    pub(super) inc_per_pkt: Option<f64>,
    pub(super) delta: Option<f64>,
    pub(super) cwnd: PerPath,
    pub(super) ssthresh: Option<PerPath>,
    #[serde(default)]
    pub(super) st: BTreeMap<String, Option<f64>>,
    #[serde(default)]
    pub(super) after_each_op: Vec<Vec<f64>>,
}

/// One step of a sequence. Times in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    Ack {
        r: usize,
        acked: u32,
        rtt: Option<f64>,
        now: Option<f64>,
        cwnd_limited: bool,
    },
    Acks {
        order: Vec<usize>,
        count: usize,
    },
    TimedAcks {
        r: usize,
        count: u32,
        start: f64,
        step: f64,
        rtt: f64,
    },
    Loss {
        r: usize,
    },
    Rto {
        r: usize,
    },
    Srtt {
        r: usize,
        srtt: f64,
    },
    Round {
        r: usize,
        rtt: f64,
        samples: u32,
        times: u32,
    },
    Usable {
        r: usize,
        usable: bool,
    },
    /// The bottleneck group of a path; none: in no group.
    Group {
        r: usize,
        group: Option<u32>,
    },
}

/// A vector of kind `sbd`: what was measured on every flow, and which of them share a bottleneck.
#[derive(Debug, Deserialize)]
pub(super) struct Bottlenecks {
    pub(super) id: String,
    pub(super) flows: Vec<Measured>,
    pub(super) expect: Grouping,
}

/// Statistics of RFC 8382 for one flow.
#[derive(Debug, Deserialize)]
pub(super) struct Measured {
    pub(super) skew: f64,
    pub(super) var: f64,
    pub(super) freq: f64,
    pub(super) loss: f64,
    /// Was at a bottleneck before.
    pub(super) pb: bool,
}

/// Flows by index: those at one bottleneck together, and which are at one at all.
#[derive(Debug, Deserialize)]
pub(super) struct Grouping {
    pub(super) groups: Vec<Vec<usize>>,
    pub(super) pb: Vec<bool>,
}

impl Bottlenecks {
    pub(super) fn from_value(value: &Value) -> Result<Self, String> {
        let vector = Self::deserialize(value).map_err(|e| e.to_string())?;
        let flows = vector.flows.len();
        if flows == 0 || flows > crate::MAX_SUBFLOWS {
            return Err(format!(
                "{flows} flows, wanted 1 to {}",
                crate::MAX_SUBFLOWS
            ));
        }
        if vector.expect.pb.len() != flows {
            return Err(format!(
                "expect.pb of {} flows, there are {flows}",
                vector.expect.pb.len()
            ));
        }
        match vector.expect.groups.iter().flatten().find(|k| **k >= flows) {
            Some(k) => Err(format!("expect.groups: {k}, but there are {flows} flows")),
            None => Ok(vector),
        }
    }
}

fn one() -> u32 {
    1
}

fn three() -> u32 {
    3
}

fn yes() -> bool {
    true
}

pub(super) fn parse(text: &str) -> Result<File, String> {
    // Otherwise an array would be taken for the fields of a file in their order.
    if !text.trim_start().starts_with('{') {
        return Err(format!("wanted an object with \"schema\": {SCHEMA:?}"));
    }
    let file: File = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if file.schema != SCHEMA {
        return Err(format!("schema {:?}, wanted {SCHEMA:?}", file.schema));
    }
    Ok(file)
}

pub(super) fn kind(value: &Value) -> Result<&str, String> {
    value
        .get("kind")
        .and_then(Value::as_str)
        .ok_or_else(|| "no \"kind\"".into())
}

impl Vector {
    pub(super) fn from_value(value: &Value) -> Result<Self, String> {
        let mut vector = Self::deserialize(value).map_err(|e| e.to_string())?;
        let paths = vector.paths.len();
        if paths == 0 || paths > crate::MAX_SUBFLOWS {
            return Err(format!(
                "{paths} paths, wanted 1 to {}",
                crate::MAX_SUBFLOWS
            ));
        }
        if vector.r >= paths {
            return Err(format!("r = {}, but there are {paths} paths", vector.r));
        }
        for (i, path) in vector.paths.iter().enumerate() {
            path.check().map_err(|what| format!("paths[{i}]: {what}"))?;
        }
        let ops = std::mem::take(&mut vector.ops);
        for (i, op) in ops.iter().enumerate() {
            let op = Op::from_values(op, paths).map_err(|what| format!("ops[{i}]: {what}"))?;
            vector.steps.push(op);
        }
        Ok(vector)
    }
}

impl PathState {
    fn check(&self) -> Result<(), String> {
        let window = 1.0..=f64::from(u32::MAX >> 1);
        if !window.contains(&self.cwnd) {
            return Err(format!("cwnd {}, wanted at least 1", self.cwnd));
        }
        if !(0.0..=67.0).contains(&self.srtt) {
            return Err(format!("srtt {} s, wanted 0 to 67", self.srtt));
        }
        match self.ssthresh {
            Some(s) if !(0.0..=*window.end()).contains(&s) => Err(format!("ssthresh {s}")),
            _ => Ok(()),
        }
    }

    pub(super) fn srtt_us(&self) -> u32 {
        self.srtt_us.unwrap_or_else(|| micros(self.srtt) as u32)
    }
}

/// Seconds to microseconds, to the nearest.
pub(super) fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

impl Op {
    fn from_values(values: &[Value], paths: usize) -> Result<Self, String> {
        let args = Args { values, paths };
        let name = values
            .first()
            .and_then(Value::as_str)
            .ok_or("no operation name")?;
        Ok(match name {
            "ack" => Self::parse_ack(&args)?,
            "acks" => Self::Acks {
                order: args.paths_at(1)?,
                count: args.count(2)? as usize,
            },
            "tacks" => Self::TimedAcks {
                r: args.path(1)?,
                count: args.count(2)?,
                start: args.number(3)?,
                step: args.number(4)?,
                rtt: args.number(5)?,
            },
            "loss" => Self::Loss { r: args.path(1)? },
            "rto" => Self::Rto { r: args.path(1)? },
            "srtt" => Self::Srtt {
                r: args.path(1)?,
                srtt: args.number(2)?,
            },
            "round" => Self::Round {
                r: args.path(1)?,
                rtt: args.number(2)?,
                samples: if values.len() > 3 {
                    args.count(3)?
                } else {
                    three()
                },
                times: 1,
            },
            "rounds" => Self::Round {
                r: args.path(1)?,
                rtt: args.number(2)?,
                samples: three(),
                times: args.count(3)?,
            },
            "usable" => Self::Usable {
                r: args.path(1)?,
                usable: args
                    .at(2)?
                    .as_bool()
                    .ok_or_else(|| args.bad(2, "true or false"))?,
            },
            "group" => Self::Group {
                r: args.path(1)?,
                group: match args.at(2)? {
                    Value::Null => None,
                    _ => Some(args.count(2)?),
                },
            },
            other => return Err(format!("unknown operation {other:?}")),
        })
    }

    fn parse_ack(args: &Args<'_>) -> Result<Self, String> {
        let options = args.values.get(3);
        let option = |key: &str| options.and_then(|o| o.get(key));
        Ok(Self::Ack {
            r: args.path(1)?,
            acked: args.count(2)?,
            rtt: option("rtt").and_then(Value::as_f64),
            now: option("now").and_then(Value::as_f64),
            cwnd_limited: option("cwnd_limited")
                .and_then(Value::as_bool)
                .unwrap_or(true),
        })
    }
}

/// The arguments of an operation, with errors that say which one is wrong.
struct Args<'a> {
    values: &'a [Value],
    paths: usize,
}

impl Args<'_> {
    fn at(&self, i: usize) -> Result<&Value, String> {
        self.values
            .get(i)
            .ok_or_else(|| format!("argument {i} is missing"))
    }

    fn bad(&self, i: usize, wanted: &str) -> String {
        format!("argument {i}: {}, wanted {wanted}", self.values[i])
    }

    fn number(&self, i: usize) -> Result<f64, String> {
        let value = self.at(i)?.as_f64().filter(|x| x.is_finite() && *x >= 0.0);
        value.ok_or_else(|| self.bad(i, "a number, not negative"))
    }

    fn count(&self, i: usize) -> Result<u32, String> {
        // The reference writes counts as 3 or 3.0.
        let value = self
            .at(i)?
            .as_f64()
            .filter(|x| x.fract() == 0.0 && (0.0..=1e7).contains(x));
        value
            .map(|x| x as u32)
            .ok_or_else(|| self.bad(i, "a count up to 10^7"))
    }

    fn path(&self, i: usize) -> Result<usize, String> {
        self.path_index(self.at(i)?)
            .ok_or_else(|| self.bad(i, "the index of a path"))
    }

    fn paths_at(&self, i: usize) -> Result<Vec<usize>, String> {
        let list = self.at(i)?.as_array().filter(|a| !a.is_empty());
        let list = list.and_then(|a| a.iter().map(|v| self.path_index(v)).collect());
        list.ok_or_else(|| self.bad(i, "a list of indices of paths"))
    }

    fn path_index(&self, value: &Value) -> Option<usize> {
        value
            .as_u64()
            .map(|n| n as usize)
            .filter(|n| *n < self.paths)
    }
}
