//! MPTCP packet schedulers. Each is one file: its declaration, its decision and the state that it keeps.
//!
//! A new scheduler is a file with a type that implements [`Schedule`], and a line in the list below. An engine implements
//! [`Path`] for its subflows and asks a [`Scheduler`]; the test vectors implement it for numbers from a file. Nothing here
//! sends or reads a clock. Arithmetic is in integers and exact: where a rule compares quotients, both sides are multiplied
//! out. The one exception, in `delayvar.rs`, says why.

mod cmt_rr;
mod declare;
mod path;
mod rbuf_opt;
mod schedule;
pub mod vectors;

pub use cmt_rr::next_destination;
pub use declare::{Declaration, MAX_PARAMS, SchedulerConfig};
pub use path::{
    INFINITE_SSTHRESH, MAX_SUBFLOWS, Path, fastest, lowest_rtt, may_carry_again, only_backups,
};
pub use rbuf_opt::{RbufOpt, may_retransmit, must_penalise, penalised_window};
pub use schedule::{Assignment, DSN_MAX, Schedule, Segments, SendQueue, SubflowList};

use std::sync::OnceLock;

/// Declares the modules, and what goes through all of them.
macro_rules! schedulers {
    ($($module:ident: $Name:ident,)*) => {
        $(
            pub mod $module;
        )*

        /// The schedulers, in the order in which they are listed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $(
                #[doc = concat!("The scheduler of `", stringify!($module), ".rs`.")]
                $Name,
            )*
        }

        const KINDS: &[Kind] = &[$(Kind::$Name,)*];

        /// All schedulers, in the order in which they are listed.
        pub fn declarations() -> &'static [Declaration] {
            static ALL: OnceLock<Vec<Declaration>> = OnceLock::new();
            ALL.get_or_init(|| vec![$($module::$Name::declaration(),)*])
        }

        enum State {
            $($Name($module::$Name),)*
        }

        impl Scheduler {
            /// The scheduler of a new connection.
            pub fn new(config: &SchedulerConfig) -> Self {
                match config.kind() {
                    $(Kind::$Name => {
                        type This = $module::$Name;
                        let this = This::new(config);
                        Self {
                            rbuf_opt: This::rbuf_opt(config),
                            sends_copies: This::SENDS_COPIES,
                            copies_losses: this.copies_losses(),
                            is_upstream: This::IS_UPSTREAM,
                            takes_any_room: this.takes_any_room(),
                            state: State::$Name(this),
                        }
                    })*
                }
            }

            /// [`Schedule::buffer_end`].
            #[inline]
            pub fn buffer_end<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> u32 {
                match &mut self.state {
                    $(State::$Name(this) => this.buffer_end(subflows, queue),)*
                }
            }

            /// [`Schedule::note_pushed`].
            #[inline]
            pub fn note_pushed<P: Path>(&mut self, index: usize, subflow: &P, mss: u16) {
                match &mut self.state {
                    $(State::$Name(this) => this.note_pushed(index, subflow, mss),)*
                }
            }

            #[inline(never)]
            fn pick_any<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
                match &mut self.state {
                    $(State::$Name(this) => this.pick(subflows, queue),)*
                }
            }

            /// The subflow for a segment that some subflows have `carried`, of those that [`may_carry_again`].
            pub fn pick_for_reinjection<P: Path>(
                &self,
                subflows: &[P],
                carried: impl Fn(usize) -> bool,
            ) -> Option<usize> {
                let admit = may_carry_again(subflows, carried)?;
                match &self.state {
                    $(State::$Name(this) => this.pick_for_reinjection(subflows, &admit),)*
                }
            }

            /// [`Schedule::note_rbuf_retransmission`].
            pub fn note_rbuf_retransmission(&mut self) {
                match &mut self.state {
                    $(State::$Name(this) => this.note_rbuf_retransmission(),)*
                }
            }
        }
    };
}

schedulers! {
    minrtt: MinRtt,
    roundrobin: RoundRobin,
    redundant: Redundant,
    backup: Backup,
    blest: Blest,
    ecf: Ecf,
    linger: Linger,
    delayvar: DelayVar,
}

/// The scheduler of one connection.
pub struct Scheduler {
    state: State,
    /// [`Schedule::rbuf_opt`].
    pub rbuf_opt: Option<RbufOpt>,
    /// [`Schedule::SENDS_COPIES`].
    pub sends_copies: bool,
    /// [`Schedule::copies_losses`].
    pub copies_losses: bool,
    /// [`Schedule::IS_UPSTREAM`].
    pub is_upstream: bool,
    /// [`Schedule::takes_any_room`].
    pub takes_any_room: bool,
}

impl Scheduler {
    /// The subflow for the next segments, or `None` to wait.
    #[inline]
    pub fn pick<P: Path>(&mut self, subflows: &[P], queue: &SendQueue) -> Option<Assignment> {
        match &mut self.state {
            // The default, in the path of every packet.
            State::MinRtt(this) => this.pick(subflows, queue),
            _ => self.pick_any(subflows, queue),
        }
    }

    /// [`Schedule::note_only_choice`].
    #[inline]
    pub fn note_only_choice(&mut self, subflow: usize) {
        if let State::RoundRobin(this) = &mut self.state {
            this.note_only_choice(subflow);
        }
    }
}

/// The scheduler of this name.
pub fn find(name: &str) -> Option<&'static Declaration> {
    declarations().iter().find(|d| d.name == name)
}

impl SchedulerConfig {
    /// With every parameter at its default.
    pub fn new(kind: Kind) -> Self {
        Self::from(&declarations()[kind as usize])
    }

    pub fn kind(&self) -> Kind {
        let same = |d: &Declaration| d.name == self.name();
        let index = declarations().iter().position(same);
        // Every declaration comes from the list.
        KINDS[index.unwrap_or_else(|| panic!("{} is not in the list", self.name()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declaration_is_found_and_its_numbers_fit() {
        for (i, d) in declarations().iter().enumerate() {
            assert_eq!(SchedulerConfig::from(d).kind() as usize, i, "{}", d.name);
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
    fn a_configuration_reads_as_it_is_written() {
        let minrtt = SchedulerConfig::new(Kind::MinRtt);
        assert_eq!(minrtt.to_string(), "minrtt");
        let plain = minrtt.with("opportunistic", 0).with("penalise", 0);
        assert_eq!(
            plain.to_string(),
            "minrtt(opportunistic=false, penalise=false)"
        );
        let blest = SchedulerConfig::new(Kind::Blest).with("lambda", 1050);
        assert_eq!(blest.to_string(), "blest(lambda=1.05)");
        assert!(blest.is_set("opportunistic") && !blest.is_set("penalise"));
    }
}
