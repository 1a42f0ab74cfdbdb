//! The per-ACK tracer: what the kernel's TCP does in chosen network namespaces, without changing it.
//!
//! `bpf/tracer.bpf.c` looks at every socket of the watched namespaces whenever a segment arrives, something is
//! retransmitted, or a state changes. It counts in the kernel, so that a lost record loses nothing, and writes records
//! into a ring buffer that never wakes anybody: call [`Tracer::poll`] every 10 to 20 ms.
//!
//! A record shows the socket before the segment that caused it is processed. IPv4 only. An end that closed its direction
//! before its data was acknowledged is seen at events only ([`Sample::has_unseen_acks`]).

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
    /// Sockets that can be followed at a time, closed ones included until [`Tracer::forget`].
    pub sockets: u32,
    /// Cookies of the namespaces to watch from the start.
    pub cookies: &'a [u64],
    /// Put a record of every ACK into the ring; otherwise of events only. Counters are the same either way.
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

/// The tracer in the kernel. It goes when this is dropped or the process dies.
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
    /// Load and attach.
    ///
    /// # Errors
    /// No BTF, an old kernel, missing capabilities, a bad size, or what the kernel refused.
    pub fn start(config: &TracerConfig<'_>) -> Result<Self, TracerError> {
        check_ring(config.ring_bytes)?;
        crate::system::check()?;
        let arguments = kernel::retransmit_arguments()?;
        let run_time = config.run_stats.then(RunTime::begin).transpose()?;
        let mut object = libbpf::attempt("the tracer", || {
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

    /// Follow the sockets of the namespace with this cookie (`SO_NETNS_COOKIE`) from now on.
    ///
    /// # Errors
    /// More than 1024 namespaces.
    pub fn watch(&mut self, cookie: u64) -> Result<(), TracerError> {
        self.namespaces
            .update(&cookie.to_ne_bytes(), &[1], MapFlags::ANY)
            .map_err(|source| TracerError::map("watch a namespace", source))
    }

    /// Stop following the namespace and drop what is known of its sockets.
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

    /// Drop what is known of a socket, if it is closed.
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

    /// Hand over all records that are in the ring now, oldest first. Returns how many.
    ///
    /// Records of one socket are in the order of their time; those of different sockets may be a few microseconds off.
    pub fn poll(&mut self, each: &mut dyn FnMut(&Sample)) -> usize {
        self.ring.drain(each)
    }

    /// Records that did not fit into the ring so far.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn lost(&self) -> Result<u64, TracerError> {
        self.total(0)
    }

    /// Sockets that were not followed because [`TracerConfig::sockets`] was too small, once per look at them.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn untracked(&self) -> Result<u64, TracerError> {
        self.total(1)
    }

    /// Changes of the congestion state that no tracepoint announced, found at the next look at the socket.
    ///
    /// Counters have them (a timeout's wait is then a little long), and their event comes with the next record, late.
    /// Seen on 6.18 for about one timer in a thousand while the processors were overloaded threefold.
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

    /// The socket as it was last seen, with its counters; also after it closed.
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

    /// The socket's cumulative counters; while it is busy two of them may be one ACK apart.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn counters(&self, key: &SocketKey) -> Result<Option<Counters>, TracerError> {
        Ok(self.latest(key)?.map(|sample| sample.counters))
    }

    /// Every socket that is followed, closed ones included, in the order of their keys.
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

    /// What each program cost; run times are zero unless [`TracerConfig::run_stats`].
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn run_stats(&self) -> Result<Vec<ProgramStats>, TracerError> {
        stats::read(&self.object)
    }

    /// Looks that the kernel skipped because one interrupted another on the same processor. After a skipped look the
    /// next RTT sample of its socket is a blend of two; see this before trusting single samples.
    ///
    /// # Errors
    /// The kernel refused to read it.
    pub fn missed(&self) -> Result<u64, TracerError> {
        Ok(self.run_stats()?.iter().map(|p| p.missed).sum())
    }

    /// Whether run times are measured.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.run_time.is_some()
    }

    /// Stop tracing but keep what is known: no more records come, the maps can still be read.
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
    let attached = libbpf::attempt("to attach the tracer", || {
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
