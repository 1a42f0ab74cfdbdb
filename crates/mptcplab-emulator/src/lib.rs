//! The link model in real time: moves IP packets between TUN devices as the simulator's links would.
//!
//! [`start`] takes *ports* (TUN devices, by file descriptor), directed *links*, address *pairs* with the links that their
//! packets pass, and a *clock*, and runs one thread that reads packets from the ports, passes them through the links of
//! their way ([`mptcplab_model::link::Link`]), and writes each into the port where its last link ends. Rates, delays, queues, losses, AQM, schedules, delivery traces and
//! reordering are implemented in the link model, which the simulator also uses; nothing of them is implemented here.
//!
//! ```text
//! let setup = Setup {
//!     clock: Clock::starting_now(),            // schedules of links run on it
//!     ports: vec![Port { name, fd }, ...],     // TUNs: IFF_TUN | IFF_NO_PI, no VNET_HDR, up, txqueuelen 5000
//!     links: vec![LinkSetup { name, from: Some(0), to: None, config, rng }, ...],
//!     pairs: vec![Pair { source, destination, links: vec![0, 2] }, ...],
//!     options: Options::default(),
//! };
//! let emulator = mptcplab_emulator::start(setup)?;
//! let sample = emulator.sample()?;             // counters of links and address pairs, changes of links
//! let report = emulator.stop()?;               // lateness, totals, scheduling class
//! let verdict = report.judge(&Bound::default(), &paths);
//! ```
//!
//! # Time
//!
//! Times are nanoseconds since the clock's zero, on `CLOCK_MONOTONIC`; times before zero count as 0. A packet arrives
//! when it is read from its port. Its release is due when the link says, and its *lateness* is the time from then until
//! just before the `write` that passes it to the destination's kernel. The write itself is not included: the receiving
//! host's protocol processing runs inside a TUN's `write`, up to and including the ACK that it sends. The duration of
//! writes is reported separately, and the packets behind a slow write count it as their lateness. A late release does
//! not delay later ones: they are due when the link model says, regardless of earlier releases.
//!
//! From one link into the next a packet goes at exactly the time at which it is due, even if the thread does so later: it
//! wakes only when a packet may reach a port, and catches up before it passes on a packet that it has read.
//!
//! A packet that is read late cannot be detected, because a TUN gives no timestamps. The report contains what can be
//! measured instead: how late the thread woke from sleeps with a timeout (packets wake it in the same way), and the
//! longest time in which it did not poll its ports.
//!
//! # Privileges
//!
//! The emulator needs none beyond its descriptors. Real-time priority keeps releases punctual on a busy machine. It
//! needs CAP_SYS_NICE in the initial user namespace or RLIMIT_RTPRIO; raising that limit needs CAP_SYS_RESOURCE, which
//! root of a container may lack. A privileged process can give the priority to the running thread of another process:
//! the emulator's owner sends it [`Emulator::thread_id`], it calls [`grant_real_time`], and the owner calls
//! [`Emulator::refresh_scheduling`].
//!
//! # The end
//!
//! The emulator ends with [`Emulator::stop`], when the [`Emulator`] is dropped, or with an error: a port that was closed
//! or went down, or a panic. After an error every call returns that error, which names the port.
#![deny(unsafe_code)]

mod buffer;
mod clock;
mod command;
mod engine;
mod error;
mod handle;
mod header;
mod histogram;
mod pairs;
mod report;
mod rest;
mod sample;
mod setup;
mod spin;
#[allow(unsafe_code)]
mod sys;
#[cfg(feature = "testbed")]
pub mod testbed;

pub use clock::Clock;
pub use error::Error;
pub use handle::{Emulator, grant_real_time, start};
pub use histogram::Summary;
pub use report::{Bound, LinkReport, LogEntry, PortReport, Report, Scheduling, Verdict};
pub use sample::{LinkChange, PairStats, Sample};
pub use setup::{LinkSetup, Options, Pair, Port, Setup};
