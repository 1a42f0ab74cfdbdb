//! Loads a run's algorithms into the kernel, under names that are unique to the run.

use crate::failure::Failure;
use crate::plan::{AlgorithmPlan, UnsupportedSetting};
use mptcplab_bpf::registered::RUN_PREFIX;
use mptcplab_bpf::{LoadError, Loaded, Options};
use mptcplab_scenario::Run;
use std::collections::BTreeSet;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Number of names to try; other runs on this machine may use some.
const TRIES: u32 = 64;

/// The loaded algorithms of a run. They are unloaded when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Algorithms {
    /// The names for TCP_CONGESTION, in the order of the plan's algorithms.
    pub(super) names: Vec<String>,
    loaded: Vec<Loaded>,
}

impl Algorithms {
    pub(super) fn load(plans: &[AlgorithmPlan]) -> Result<Self, Failure> {
        let mut all = Self::default();
        for (index, plan) in plans.iter().enumerate() {
            if let Some(name) = plan.choice.kernel_name() {
                all.names.push(name.to_owned());
                continue;
            }
            let loaded = load(plan, index)?;
            all.names.push(loaded.kernel_name().to_owned());
            all.loaded.push(loaded);
        }
        Ok(all)
    }

    /// The scenario's name of an algorithm with this kernel-visible name.
    pub(super) fn scenario_name(&self, plans: &[AlgorithmPlan], kernel: &str) -> String {
        let index = self.names.iter().position(|name| name == kernel);
        index.map_or_else(
            || kernel.to_owned(),
            |index| plans[index].choice.name.clone(),
        )
    }

    /// Number of subflows that found their algorithm's table full and ran uncoupled.
    pub(super) fn unplaced(&self) -> u64 {
        self.loaded.iter().map(Loaded::unplaced).sum()
    }

    /// How often an algorithm wanted a subflow to become a backup, which eBPF cannot do.
    pub(super) fn backups_wanted(&self) -> u64 {
        self.loaded.iter().map(Loaded::backups_wanted).sum()
    }
}

fn load(plan: &AlgorithmPlan, index: usize) -> Result<Loaded, Failure> {
    let Some(algorithm) = mptcplab_cc::find(&plan.choice.name) else {
        return Err(Failure::new(format!("no algorithm {:?}", plan.choice.name)));
    };
    let mut refused = None;
    for attempt in 0..TRIES {
        let options = Options {
            kernel_name: name(std::process::id(), index, attempt),
            params: plan.choice.params.clone(),
            growth_per_ack: plan.growth_per_ack,
            // The loader makes the table twice as large, which is enough where both ends run the algorithm.
            connections: plan.connections,
            pacing: plan.pacing,
            record: false,
        };
        match mptcplab_bpf::load(algorithm, &options) {
            Err(error @ LoadError::NameTaken { .. }) => refused = Some(error),
            other => return Ok(other?),
        }
    }
    Err(refused.map_or_else(|| Failure::new("no name is free"), Failure::from))
}

/// A name that is probably unused: names of congestion controls are global to the machine and have at most 15 bytes.
fn name(process: u32, index: usize, attempt: u32) -> String {
    let hash = (process.wrapping_mul(40_503)).wrapping_add(attempt.wrapping_mul(7_919)) & 0xffff;
    format!("{RUN_PREFIX}{hash:04x}_{index}")
}

/// Refuses the kernel's own algorithms (`kernel:NAME`) that this kernel does not have.
pub(super) fn unknown(runs: &[Run]) -> Result<Vec<UnsupportedSetting>, Failure> {
    let mut wanted: BTreeSet<(&str, &str)> = BTreeSet::new();
    for flow in runs.iter().flat_map(|run| run.flows.iter()) {
        if let Some(name) = crate::plan::tcp(flow).and_then(|tcp| tcp.cc.kernel_name()) {
            wanted.insert((&flow.name, name));
        }
    }
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let available = std::fs::read_to_string(AVAILABLE)
        .map_err(|error| Failure::new(format!("cannot read {AVAILABLE}: {error}")))?;
    // Algorithms of other runs may disappear at any time.
    let known: Vec<&str> = available
        .split_whitespace()
        .filter(|name| !name.starts_with(RUN_PREFIX))
        .collect();
    let missing = wanted.into_iter().filter(|(_, name)| !known.contains(name));
    Ok(missing
        .map(|(flow, name)| UnsupportedSetting {
            keys: vec![format!("flows.{flow}.cc"), "cc".into()],
            message: format!("\"kernel:{name}\": this kernel has no such algorithm"),
            hint: format!(
                "available are: {}; if there is a module for it, load it: modprobe tcp_{name}",
                known.join(", ")
            ),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        let names: BTreeSet<String> = (0..TRIES)
            .flat_map(|attempt| (0..20).map(move |index| name(4_194_304, index, attempt)))
            .collect();
        assert_eq!(names.len(), 20 * TRIES as usize);
        assert!(
            names
                .iter()
                .all(|name| name.len() <= 15 && name.starts_with("mpl_"))
        );
        assert_ne!(name(1_000, 0, 0), name(1_001, 0, 0));
    }
}
