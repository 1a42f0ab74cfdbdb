//! The link model on the clock: moves IP packets between TUN devices as the simulator's links would.
//!
//! [`start`] takes *ports* (TUN devices, by file descriptor), directed *links* from port to port, and a *clock*, and
//! runs one thread that reads packets from the ports, gives them to [`mptcplab_model::link::Link`] and writes each into its
//! link's destination port when the link says so. Rates, delays, queues, losses, AQM, schedules, delivery traces and
//! reordering are the link crate's: nothing of them is here, and the simulator runs the same code.
//!
//! ```text
//! let setup = Setup {
//!     clock: Clock::starting_now(),            // schedules of links run on it
//!     ports: vec![Port { name, fd }, ...],     // TUNs: IFF_TUN | IFF_NO_PI, no VNET_HDR, up, txqueuelen 5000
//!     links: vec![LinkSetup { name, from: 0, to: 1, config, rng }, ...],
//!     pairs: vec![Pair { source, destination, first_link: 0, last_link: 2 }, ...],
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
//! Times are nanoseconds since the clock's zero, on `CLOCK_MONOTONIC`; before zero they count as 0. The arrival of a
//! packet is when it was read from its port. Its release is due when the link says, and its *lateness* is the time from
//! then until just before the `write` that hands it to the destination's kernel. The write itself is not part of it: in
//! a TUN's `write` the receiving host's protocol processing runs, up to and including the ACK that it sends. How long
//! writes take is reported on its own, and the packets behind a slow write count it as their lateness. A late release
//! does not delay later ones: they are due when the link model says, not relative to what came before.
//!
//! That a packet was read late cannot be seen: a TUN gives no timestamps. What can be seen is reported: how late the
//! thread woke when it had asked to wake at a time (it is woken by packets in the same way), and the longest time
//! that it did not look at its ports.
//!
//! # Privileges
//!
//! None are needed but those of the descriptors. Real-time priority makes releases punctual on a machine that has other
//! things to do. It needs CAP_SYS_NICE (not that of a user namespace) or RLIMIT_RTPRIO; raising that limit needs
//! CAP_SYS_RESOURCE, which root of a container may lack. A privileged process can give the priority to the running
//! thread of another: the emulator's owner tells it [`Emulator::thread_id`], it calls [`grant_real_time`], and the
//! owner calls [`Emulator::look_at_scheduling`].
//!
//! # What ends it
//!
//! [`Emulator::stop`], dropping the [`Emulator`], or an error: a port that was closed or went down, or a panic. After
//! an error every call gives that error, which names the port.
#![deny(unsafe_code)]

mod buffer;
mod clock;
mod engine;
mod error;
mod handle;
mod header;
mod histogram;
mod pairs;
mod report;
mod setup;
mod spin;
#[allow(unsafe_code)]
mod sys;
#[cfg(feature = "testbed")]
pub mod testbed;

pub use clock::Clock;
pub use error::Error;
pub use handle::{Emulator, LinkChange, PairStats, Sample, grant_real_time, start};
pub use histogram::Summary;
pub use report::{Bound, LinkReport, LogEntry, PortReport, Report, Scheduling, Verdict};
pub use setup::{LinkSetup, Options, Pair, Port, Setup};
