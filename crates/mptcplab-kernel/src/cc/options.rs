//! The options of `cc load`, which `cc persist` writes into its unit.

use super::{algorithm, kernel_name};
use crate::failure::Failure;
use mptcplab_bpf::Options;
use mptcplab_cc::Algorithm;
use mptcplab_scenario::Profile;

const DEFAULT_CONNECTIONS: u32 = 4096;

/// Options for loading algorithms.
#[derive(Debug, clap::Args)]
pub(super) struct LoadOptions {
    /// Set a parameter; NAME.KEY=VALUE if several algorithms are loaded. May be repeated.
    #[arg(long = "param", value_name = "[NAME.]KEY=VALUE")]
    params: Vec<String>,
    /// How congestion avoidance counts, as in a scenario: acknowledged packets (rfc, linux-acked), ACKs for coupled algorithms
    /// (linux-legacy), or ACKs for all (linux-pre4). It does not change when the receiver sends ACKs.
    #[arg(long, value_name = "NAME", value_parser = profile, default_value = "linux-acked")]
    profile: Profile,
    /// Number of connections that can be coupled at a time, per algorithm (1200 to 2400 bytes each).
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONNECTIONS, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    connections: u32,
}

fn profile(name: &str) -> Result<Profile, String> {
    let found = Profile::ALL.into_iter().find(|p| p.name() == name);
    found.ok_or_else(|| format!("one of: {}", Profile::ALL.map(Profile::name).join(", ")))
}

/// An algorithm and how to load it.
pub(super) type Planned = (&'static Algorithm, Options);

impl LoadOptions {
    /// How to load each algorithm, with all parameters checked.
    pub(super) fn plan(&self, chosen: &[&'static Algorithm]) -> Result<Vec<Planned>, Failure> {
        let mut plan: Vec<Planned> = chosen
            .iter()
            .map(|&algorithm| (algorithm, self.options(algorithm)))
            .collect();
        for param in &self.params {
            let (index, key, value) = assignment(chosen, param)?;
            let (algorithm, options) = &mut plan[index];
            let raw = algorithm
                .parse_param(key, value)
                .map_err(|e| Failure::new(e.to_string()))?;
            if options.params.iter().any(|(known, _)| known == key) {
                return Err(Failure::new(format!(
                    "parameter {key} of {} is given twice",
                    algorithm.name()
                )));
            }
            options.params.push((key.to_owned(), raw));
        }
        Ok(plan)
    }

    fn options(&self, algorithm: &Algorithm) -> Options {
        Options {
            connections: self.connections,
            growth_per_ack: self.profile.growth_per_ack(algorithm.coupled()),
            ..Options::named(kernel_name(algorithm))
        }
    }

    /// The options as arguments of a command line.
    pub(super) fn arguments(&self, plan: &[Planned]) -> Vec<String> {
        let mut words = Vec::new();
        for (algorithm, options) in plan {
            for spec in algorithm.params() {
                let given = options.params.iter().find(|(key, _)| key == spec.name);
                if let Some((key, raw)) = given {
                    let value = spec.format(*raw);
                    words.push(format!("--param={}.{key}={value}", algorithm.name()));
                }
            }
        }
        words.push(format!("--profile={}", self.profile.name()));
        words.push(format!("--connections={}", self.connections));
        words
    }
}

/// Parses `[NAME.]KEY=VALUE`: index of the algorithm, key and value.
fn assignment<'a>(
    chosen: &[&'static Algorithm],
    param: &'a str,
) -> Result<(usize, &'a str, &'a str), Failure> {
    let bad = |hint: &str| Failure::new(format!("--param {param}")).hint(hint);
    let Some((key, value)) = param.split_once('=') else {
        return Err(bad("write KEY=VALUE, such as weight=fair"));
    };
    match key.split_once('.') {
        Some((name, key)) => {
            let owner = algorithm(name)?.name();
            let index = chosen.iter().position(|a| a.name() == owner);
            index
                .map(|index| (index, key, value))
                .ok_or_else(|| bad(&format!("{owner} is not among the algorithms to load")))
        }
        None if chosen.len() == 1 => Ok((0, key, value)),
        None => Err(bad("name the algorithm too, such as ewtcp.weight=fair")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use mptcplab_bpf::loader::MIN_BYTES_PER_CONNECTION;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        setting: LoadOptions,
    }

    fn chosen(names: &[&str]) -> Vec<&'static Algorithm> {
        names
            .iter()
            .map(|name| mptcplab_cc::find(name).unwrap())
            .collect()
    }

    fn setting(words: &[&str]) -> LoadOptions {
        Line::try_parse_from(std::iter::once(&"load").chain(words))
            .unwrap()
            .setting
    }

    /// It named the least, which a number that is a power of two takes.
    #[test]
    fn the_help_says_how_many_bytes_a_connection_takes() {
        let line = Line::command();
        let option = line.get_arguments().find(|a| a.get_id() == "connections");
        let help = option.unwrap().get_help().unwrap().to_string();
        let (least, most) = (MIN_BYTES_PER_CONNECTION, 2 * MIN_BYTES_PER_CONNECTION);
        assert!(
            help.contains(&format!("({least} to {most} bytes each)")),
            "{help}"
        );
    }

    #[test]
    fn a_parameter_finds_its_algorithm() {
        let both = chosen(&["lia", "ewtcp"]);
        for param in ["ewtcp.weight=fair", "lab_ewtcp.weight=fair"] {
            assert_eq!(assignment(&both, param).unwrap(), (1, "weight", "fair"));
        }
        assert_eq!(
            assignment(&both[1..], "weight=fair").unwrap(),
            (0, "weight", "fair")
        );
        for (bad, what) in [
            ("weight=fair", "name the algorithm"),
            ("ewtcp.weight", "KEY=VALUE"),
            ("olia.metric=rate", "not among"),
            ("nobody.metric=rate", "no algorithm \"nobody\""),
        ] {
            let error = assignment(&both, bad).unwrap_err().to_string();
            assert!(error.contains(what), "{bad}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_loaded_says_what_can() {
        let ewtcp = chosen(&["ewtcp"]);
        for (param, wanted) in [
            (
                "weight=1.5",
                "weight of ewtcp: 1.5 (wanted one of these names or a number: sqrt, fair, or 0.00003 to 1)",
            ),
            ("wait=fair", "ewtcp has no parameter wait (it has: weight)"),
        ] {
            let error = setting(&["--param", param]).plan(&ewtcp).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        }
        let twice = setting(&["--param", "weight=fair", "--param", "weight=sqrt"]);
        assert!(
            twice
                .plan(&ewtcp)
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
        let error = Line::try_parse_from(["load", "--profile", "linux"]).unwrap_err();
        assert!(
            error.to_string().contains("linux-legacy, linux-pre4"),
            "{error}"
        );
    }

    #[test]
    fn a_profile_decides_what_each_algorithm_counts() {
        let both = chosen(&["cubic", "olia"]);
        for (name, wanted) in [
            ("rfc", [false, false]),
            ("linux-acked", [false, false]),
            ("linux-legacy", [false, true]),
            ("linux-pre4", [true, true]),
        ] {
            let plan = setting(&["--profile", name]).plan(&both).unwrap();
            let counts: Vec<bool> = plan.iter().map(|(_, o)| o.growth_per_ack).collect();
            assert_eq!(counts, wanted, "{name}");
        }
        let default = setting(&[]).plan(&both).unwrap();
        assert!(default.iter().all(|(_, options)| !options.growth_per_ack));
    }

    #[test]
    fn its_words_say_the_same_again() {
        let both = chosen(&["ewtcp", "cubic"]);
        let first = setting(&[
            "--param",
            "cubic.beta=0.8",
            "--param",
            "ewtcp.weight=0.25",
            "--profile",
            "linux-legacy",
            "--connections",
            "33",
        ]);
        let plan = first.plan(&both).unwrap();
        let words = first.arguments(&plan);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(
            words,
            [
                "--param=ewtcp.weight=0.25",
                "--param=cubic.beta=0.8",
                "--profile=linux-legacy",
                "--connections=33"
            ]
        );
        let again = setting(&words).plan(&both).unwrap();
        for ((_, one), (_, other)) in plan.iter().zip(&again) {
            assert_eq!(one.params, other.params);
            assert_eq!(
                (one.growth_per_ack, one.connections),
                (other.growth_per_ack, other.connections)
            );
        }
    }
}
