//! The configuration of an emulator.

use crate::clock::Clock;
use crate::error::Error;
use mptcplab_model::link::LinkConfig;
use mptcplab_model::link::rng::Rng;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// Everything that [`start`](crate::start) needs. Links, ports and pairs keep their order in samples and reports.
#[derive(Debug)]
pub struct Setup {
    /// The run's clock, for the schedules of links and all times in samples and reports.
    pub clock: Clock,
    /// The devices between which packets move.
    pub ports: Vec<Port>,
    /// Directed links. A port feeds at most one link; several links may end at a port.
    pub links: Vec<LinkSetup>,
    /// Address pairs whose packets go from link to link and whose data packets are counted.
    pub pairs: Vec<Pair>,
    /// How the thread runs.
    pub options: Options,
}

/// A TUN device (`IFF_TUN | IFF_NO_PI`, without `IFF_VNET_HDR`), or another descriptor of which each `read` gives one
/// IP packet and each `write` takes one. The emulator makes it non-blocking and closes it at the end.
#[derive(Debug)]
pub struct Port {
    /// For messages and the report.
    pub name: String,
    pub fd: OwnedFd,
}

/// A directed link.
#[derive(Debug, Clone)]
pub struct LinkSetup {
    /// For messages and the report.
    pub name: String,
    /// Index of the port whose packets enter the link; `None` if packets enter it only from other links.
    pub from: Option<usize>,
    /// Index of the port into which the link delivers; `None` if its packets only enter other links.
    pub to: Option<usize>,
    pub config: LinkConfig,
    /// The link's random stream; with the simulator's stream for the same link, the same packets are lost.
    pub rng: Rng,
}

/// An address pair and the way of its packets. Its data packets are counted: TCP segments with payload, and UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Indices of the links that its packets pass, in order, none twice. They count as sent when they arrive at the first
    /// and as received when the last delivers them into its port. From every other link they enter the next one at once:
    /// there is no host between two links. Packets without a pair pass one link; where that has no port, they are dropped.
    pub links: Vec<usize>,
}

/// How the emulator's thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Real-time priority (`SCHED_FIFO`, 1 to 99) to ask for. It needs CAP_SYS_NICE or RLIMIT_RTPRIO of at least this;
    /// the report says what was granted. `None`: not to ask.
    pub priority: Option<u8>,
    /// How long before a release the thread stops sleeping and spins on the clock, if it has real-time priority; a sleep
    /// alone ends 15 to 30 us late. 0: never.
    pub spin_ns: u64,
    /// Largest share of time, in percent, that the thread may run, work included, while it spins: the kernel throttles a
    /// real-time thread that leaves a processor no time for others for tens of milliseconds at a time.
    pub spin_percent: u8,
    /// Ask the kernel to keep the whole process in memory (`mlockall`); the report says whether it does.
    pub lock_memory: bool,
    /// Record the arrivals and releases of this many packets in the report's log; 0 for none. For tests.
    pub log_entries: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            priority: Some(10),
            spin_ns: 60_000,
            spin_percent: 50,
            lock_memory: false,
            log_entries: 0,
        }
    }
}

impl Setup {
    /// The link that each port feeds; an error if the set-up is inconsistent.
    pub(crate) fn routes(&self) -> Result<Vec<Option<usize>>, Error> {
        let mut routes = vec![None; self.ports.len()];
        for (index, link) in self.links.iter().enumerate() {
            let what = || format!("link {:?}", link.name);
            for (end, port) in [("from", link.from), ("to", link.to)] {
                port.map_or(Ok(()), |port| {
                    within(what, end, "port", port, self.ports.len())
                })?;
            }
            let Some(from) = link.from else { continue };
            if let Some(other) = routes[from].replace(index) {
                let other = &self.links[other].name;
                let port = &self.ports[from].name;
                let why =
                    format!("port {port:?} already feeds link {other:?}; a port feeds one link");
                return Err(Error::Setup { what: what(), why });
            }
        }
        self.check_pairs()?;
        self.options.check()?;
        Ok(routes)
    }

    fn check_pairs(&self) -> Result<(), Error> {
        for (index, pair) in self.pairs.iter().enumerate() {
            let what = || format!("pair {} to {}", pair.source, pair.destination);
            self.check_way(what, &pair.links)?;
            let same = |other: &&Pair| {
                (other.source, other.destination) == (pair.source, pair.destination)
            };
            if self.pairs[..index].iter().any(|other| same(&other)) {
                let why = "is there twice; its packets would count for one of them only".to_owned();
                return Err(Error::Setup { what: what(), why });
            }
        }
        Ok(())
    }

    /// Checks that a pair's way begins and ends at ports and passes no link twice.
    fn check_way(&self, what: impl Fn() -> String, way: &[usize]) -> Result<(), Error> {
        let bad = |why: String| Err(Error::Setup { what: what(), why });
        for (hop, &link) in way.iter().enumerate() {
            let count = self.links.len();
            if link >= count {
                return bad(format!("passes link {link}, but there are {count} links"));
            }
            if way[..hop].contains(&link) {
                return bad(format!("passes link {:?} twice", self.links[link].name));
            }
        }
        let (Some(&first), Some(&last)) = (way.first(), way.last()) else {
            return bad("passes no link".to_owned());
        };
        for (end, link, port) in [
            ("begins", first, self.links[first].from),
            ("ends", last, self.links[last].to),
        ] {
            if port.is_none() {
                let name = &self.links[link].name;
                return bad(format!("{end} with link {name:?}, which has no port there"));
            }
        }
        Ok(())
    }
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let bad = |what: &str, why: String| {
            let what = what.to_owned();
            Err(Error::Setup { what, why })
        };
        match (self.priority, self.spin_percent) {
            (Some(priority), _) if !(1..=99).contains(&priority) => bad(
                "priority",
                format!("{priority} is not a real-time priority: use 1 to 99"),
            ),
            (_, percent) if percent > 90 => bad(
                "spin_percent",
                format!("{percent} leaves the processor too little time: use at most 90"),
            ),
            _ => Ok(()),
        }
    }
}

/// Checks that an index in the set-up exists.
fn within(
    what: impl Fn() -> String,
    end: &str,
    kind: &str,
    index: usize,
    count: usize,
) -> Result<(), Error> {
    if index < count {
        return Ok(());
    }
    let why = format!("its {end} {kind} has index {index}, but there are {count} {kind}s");
    Err(Error::Setup { what: what(), why })
}
