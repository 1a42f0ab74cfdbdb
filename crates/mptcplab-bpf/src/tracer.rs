//! The per-ACK tracer: records what the kernel's TCP does in chosen network namespaces, without changing it.
//!
//! `bpf/tracer.bpf.c` reads a socket of the watched namespaces whenever a segment arrives, something is retransmitted, or
//! a state changes. It counts in the kernel, so that a lost record does not falsify the counters, and writes records into
//! a ring buffer without waking its reader: call [`Tracer::poll`] every 10 to 20 ms.
//!
//! A record shows the socket before the segment that caused it is processed. Only IPv4 is supported. An end that closed its
//! direction before its data was acknowledged is recorded at events only ([`Sample::has_unseen_acks`]).

mod error;
mod kernel;
mod ring;
mod sample;
mod stats;

pub use error::TracerError;
pub use sample::{Counters, Event, Sample, SampleKind, SocketKey};
pub use stats::ProgramStats;

use crate::{libbpf, program};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use ring::Ring;
use sample::{SOCKET_BYTES, from_socket};
use stats::RunTime;

/// How the tracer is loaded.
#[derive(Debug, Clone)]
pub struct TracerConfig<'a> {
    /// Size of the ring buffer in bytes: a power of two, at least a page. A record takes [`RECORD_BYTES`].
    pub ring_bytes: usize,
    /// Sockets that can be tracked at a time, including closed ones until [`Tracer::forget`].
    pub sockets: u32,
    /// Cookies of the namespaces to watch from the start.
    pub cookies: &'a [u64],
    /// Write a record of every ACK into the ring instead of events only. The counters are the same either way.
    pub every_ack: bool,
    /// Measure the programs' run time ([`Tracer::run_stats`]); needs CAP_SYS_ADMIN and slows all eBPF of the host.
    pub run_stats: bool,
}

impl Default for TracerConfig<'_> {
    fn default() -> Self {
        Self {
            ring_bytes: 16 << 20,
            sockets: 8192,
            cookies: &[],
            every_ack: true,
            run_stats: false,
        }
    }
}

/// Bytes of the ring buffer that one record takes, its header included.
pub const RECORD_BYTES: usize = size_of::<Sample>() + 8;

/// The tracer in the kernel. It is unloaded when this is dropped or the process dies.
#[derive(Debug)]
pub struct Tracer {
    ring: Ring,
    namespaces: MapHandle,
    sockets: MapHandle,
    totals: MapHandle,
    run_time: Option<RunTime>,
    links: Vec<Link>,
    object: Object,
}

impl Tracer {
    /// Loads and attaches the tracer.
    ///
    /// # Errors
    /// Missing BTF, an old kernel, missing capabilities, an invalid size, or a refusal by the kernel.
    pub fn start(config: &TracerConfig<'_>) -> Result<Self, TracerError> {
        check_ring(config.ring_bytes)?;
        crate::system::check()?;
        let arguments = kernel::retransmit_arguments()?;
        let run_time = config.run_stats.then(RunTime::begin).transpose()?;
        let mut object = libbpf::with_log("the tracer", || {
            let mut open = ObjectBuilder::default().open_memory(program("tracer"))?;
            configure(&mut open, config, arguments)?;
            open.load()
        })?;
        let namespaces = map(&object, "namespaces")?;
        let sockets = map(&object, "sockets")?;
        check_layout(&sockets)?;
        let mut tracer = Self {
            ring: Ring::new(&map(&object, "records")?, config.ring_bytes)?,
            namespaces,
            sockets,
            totals: map(&object, ".bss")?,
            run_time,
            links: attach(&mut object)?,
            object,
        };
        for &cookie in config.cookies {
            tracer.watch(cookie)?;
        }
        Ok(tracer)
    }

    /// Tracks the sockets of the namespace with this cookie (`SO_NETNS_COOKIE`) from now on.
    ///
    /// # Errors
    /// The tracer already watches 1024 namespaces.
    pub fn watch(&mut self, cookie: u64) -> Result<(), TracerError> {
        self.namespaces
            .update(&cookie.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(|source| TracerError::map("watch a namespace", source))
    }

    /// Stops tracking the namespace and removes the entries of its sockets.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn forget(&mut self, cookie: u64) -> Result<(), TracerError> {
        let refused = |source| TracerError::map("forget a namespace", source);
        match self.namespaces.delete(&cookie.to_ne_bytes()) {
            Err(e) if e.kind() != libbpf_rs::ErrorKind::NotFound => return Err(refused(e)),
            _ => {}
        }
        let keys: Vec<Vec<u8>> = self.sockets.keys().collect();
        for key in keys.iter().filter(|key| key[..8] == cookie.to_ne_bytes()) {
            self.sockets.delete(key).map_err(refused)?;
        }
        Ok(())
    }

    /// Removes the entry of a socket, if it is closed.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn forget_closed(&self, key: &SocketKey) -> Result<(), TracerError> {
        let is_closed = self.latest(key)?.is_some_and(|one| one.is_closed());
        if is_closed {
            self.sockets
                .delete(&key.to_bytes())
                .map_err(|source| TracerError::map("forget a socket", source))?;
        }
        Ok(())
    }

    /// Passes all records that are in the ring now to `each`, oldest first. Returns their number.
    ///
    /// Records of one socket are in the order of their time; those of different sockets may be a few microseconds off.
    pub fn poll(&mut self, each: &mut dyn FnMut(&Sample)) -> usize {
        self.ring.drain(each)
    }

    /// Number of records that were lost because the ring was full.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn lost(&self) -> Result<u64, TracerError> {
        self.total(0)
    }

    /// How often a socket could not be tracked because [`TracerConfig::sockets`] was too small; a socket counts every time
    /// the tracer would have read it.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn untracked(&self) -> Result<u64, TracerError> {
        self.total(1)
    }

    /// Changes of the congestion state, and timeouts that repeat another, that no tracepoint reported, detected the next
    /// time the socket was read (a repeated timeout only since Linux 6.7).
    ///
    /// The counters include them (the wait of a timeout is then a little too long), and their event comes late, with the
    /// next record. Observed on Linux 6.18 for about one timer in a thousand while the processors were overloaded threefold.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn unseen_states(&self) -> Result<u64, TracerError> {
        self.total(2)
    }

    fn total(&self, index: usize) -> Result<u64, TracerError> {
        let bytes = self
            .totals
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|source| TracerError::map("read the tracer's totals", source))?
            .and_then(|value| value.get(index * 8..index * 8 + 8)?.try_into().ok())
            .ok_or(TracerError::Layout {
                what: "totals",
                found: 0,
            })?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// The last state of the socket with its counters, also after it closed.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn latest(&self, key: &SocketKey) -> Result<Option<Sample>, TracerError> {
        let value = self
            .sockets
            .lookup(&key.to_bytes(), MapFlags::ANY)
            .map_err(|source| TracerError::map("look up a socket", source))?;
        Ok(value.and_then(|bytes| from_socket(&bytes)))
    }

    /// The socket's cumulative counters; while it is active, two of them may differ by one ACK.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn counters(&self, key: &SocketKey) -> Result<Option<Counters>, TracerError> {
        Ok(self.latest(key)?.map(|sample| sample.counters))
    }

    /// Every tracked socket, including closed ones, in the order of their keys.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn sockets(&self) -> Result<Vec<Sample>, TracerError> {
        let mut found = Vec::new();
        for key in self.sockets.keys() {
            let value = self
                .sockets
                .lookup(&key, MapFlags::ANY)
                .map_err(|source| TracerError::map("read the sockets", source))?;
            found.extend(value.and_then(|bytes| from_socket(&bytes)));
        }
        found.sort_by_key(Sample::key);
        Ok(found)
    }

    /// Run-time statistics of each program; run times are zero without [`TracerConfig::run_stats`].
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn run_stats(&self) -> Result<Vec<ProgramStats>, TracerError> {
        stats::read(&self.object)
    }

    /// Runs of the programs that the kernel skipped because one interrupted another on the same processor. After a skipped
    /// run the next RTT sample of that socket is a mixture of two, so check this before relying on single samples.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn missed(&self) -> Result<u64, TracerError> {
        Ok(self.run_stats()?.iter().map(|p| p.missed).sum())
    }

    /// Whether run times are measured.
    #[must_use]
    pub fn has_run_stats(&self) -> bool {
        self.run_time.is_some()
    }

    /// Stops tracing: there are no further records, but the maps can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

fn check_ring(bytes: usize) -> Result<(), TracerError> {
    let fits = bytes.is_power_of_two() && bytes >= ring::page_bytes() && bytes <= 1 << 30;
    if fits {
        Ok(())
    } else {
        Err(TracerError::RingSize { bytes })
    }
}

/// `every_ack` and `retransmit_has_error` are the first two bytes of the constants, as declared.
fn configure(
    open: &mut OpenObject,
    config: &TracerConfig<'_>,
    retransmit_arguments: usize,
) -> libbpf_rs::Result<()> {
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "records" => map.set_max_entries(config.ring_bytes as u32)?,
            "sockets" => map.set_max_entries(config.sockets)?,
            _ if name.ends_with(".rodata") => {
                let missing = || libbpf_rs::Error::from_raw_os_error(libc::EINVAL);
                let constants = map.initial_value_mut().ok_or_else(missing)?;
                constants[0] = config.every_ack.into();
                constants[1] = u8::from(retransmit_arguments > 2);
            }
            _ => {}
        }
    }
    Ok(())
}

fn attach(object: &mut Object) -> Result<Vec<Link>, TracerError> {
    let attached = libbpf::with_log("to attach the tracer", || {
        object.progs_mut().map(|program| program.attach()).collect()
    })?;
    Ok(attached)
}

fn map(object: &Object, name: &'static str) -> Result<MapHandle, TracerError> {
    let found = object
        .maps()
        .find(|map| map.name().to_string_lossy().ends_with(name))
        .ok_or(TracerError::Layout {
            what: name,
            found: 0,
        })?;
    MapHandle::try_from(&found).map_err(|source| TracerError::map("open a map", source))
}

fn check_layout(sockets: &MapHandle) -> Result<(), TracerError> {
    let found = sockets.value_size() as usize;
    if found == SOCKET_BYTES {
        Ok(())
    } else {
        Err(TracerError::Layout {
            what: "sockets",
            found,
        })
    }
}

#[cfg(test)]
mod tests;
