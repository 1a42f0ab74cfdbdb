//! UDP flows: a constant rate, with or without pauses, and no feedback.

use super::context::Context;
use super::payload_pattern::PayloadPattern;
use super::periods::Periods;
use super::stream::PATIENCE;
use mptcplab_scenario::UdpFlow;
use mptcplab_trace::EventKind;
use std::io::ErrorKind;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::atomic::Ordering;

/// Size of IP and UDP headers.
const HEADER_BYTES: u32 = 28;
/// Size of the packet number in front of the data; a shorter payload has none.
const NUMBER_BYTES: usize = 8;
/// Largest UDP payload.
const MAX_PACKET_BYTES: usize = 65_536;

/// The sending thread of a flow.
pub(crate) fn send(context: &Context, udp: &UdpFlow) {
    if context.begin().is_none() {
        return;
    }
    if let Err(error) = send_all(context, udp) {
        return context.reporter.end_run(format!(
            "flow {}: its data cannot be sent: {error}",
            context.flow.name
        ));
    }
    context.stop();
}

fn send_all(context: &Context, udp: &UdpFlow) -> std::io::Result<()> {
    let ends = context.plan.subflows[0];
    let socket = UdpSocket::bind(SocketAddrV4::new(ends.source, 0))?;
    socket.connect(SocketAddrV4::new(ends.destination, context.plan.port))?;
    let mut number = 0;
    let mut pace = Pace::new(udp, context.plan.overhead_bytes);
    for (begin, end) in Periods::new(
        udp.on_off,
        context.rng.clone(),
        context.start_ns,
        context.stop_ns,
    ) {
        let mut due = begin;
        while due < end {
            if !context.shared.sleep_until(due) {
                return Ok(());
            }
            let late = context.shared.clock.now_ns().saturating_sub(due);
            context.state.late_ns.fetch_max(late, Ordering::Relaxed);
            let payload = payload(&context.pattern, number, payload_bytes(udp));
            socket.send(&payload)?;
            number += 1;
            context
                .state
                .sent
                .fetch_add(payload.len() as u64, Ordering::Relaxed);
            due += pace.interval_ns();
        }
    }
    Ok(())
}

/// Computes the time between packets such that the mean rate is exact.
struct Pace {
    scaled_bits: u128,
    rate_bps: u128,
    remainder: u128,
}

impl Pace {
    fn new(udp: &UdpFlow, overhead_bytes: u32) -> Self {
        let bits = u128::from(udp.packet_bytes + overhead_bytes) * 8;
        Self {
            scaled_bits: bits * 1_000_000_000,
            rate_bps: udp.rate_bps.into(),
            remainder: 0,
        }
    }

    fn interval_ns(&mut self) -> u64 {
        let scaled = self.scaled_bits + self.remainder;
        self.remainder = scaled % self.rate_bps;
        u64::try_from(scaled / self.rate_bps).unwrap_or(u64::MAX)
    }
}

fn payload_bytes(udp: &UdpFlow) -> usize {
    udp.packet_bytes.saturating_sub(HEADER_BYTES) as usize
}

/// A payload: the packet's number, and the data that belong to it.
fn payload(pattern: &PayloadPattern, number: u64, length: usize) -> Vec<u8> {
    let mut payload: Vec<u8> = number.to_le_bytes().into_iter().take(length).collect();
    let mut position = number.wrapping_mul(length as u64);
    while payload.len() < length {
        let data = pattern.from(position);
        let more = data.len().min(length - payload.len());
        payload.extend_from_slice(&data[..more]);
        position += more as u64;
    }
    payload
}

/// The receiving thread of a flow: counts and checks the packets that arrive.
pub(crate) fn receive(context: &Context, socket: &UdpSocket) {
    if let Err(error) = receive_all(context, socket) {
        let reason = format!("flow {}: {error}", context.flow.name);
        match error.kind() {
            ErrorKind::InvalidData => context.reporter.invalidate(reason),
            _ => context.reporter.end_run(reason),
        }
    }
}

fn receive_all(context: &Context, socket: &UdpSocket) -> std::io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; MAX_PACKET_BYTES];
    let mut delivered = 0;
    let mut is_first = true;
    while !context.shared.is_stopped() {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        if std::mem::take(&mut is_first) {
            context.reporter.event(
                context.shared.clock.now_ns(),
                EventKind::FirstByte,
                context.index,
                0,
            );
        }
        check(&context.pattern, &buffer[..length])?;
        delivered += length as u64;
        context.state.delivered.store(delivered, Ordering::Release);
    }
    Ok(())
}

fn check(pattern: &PayloadPattern, data: &[u8]) -> std::io::Result<()> {
    let Some((number, rest)) = data.split_first_chunk::<NUMBER_BYTES>() else {
        return Ok(());
    };
    let number = u64::from_le_bytes(*number);
    let position = number.wrapping_mul(data.len() as u64);
    pattern.check(position, rest).map_err(|wrong| {
        let what = format!(
            "packet {number} arrived with wrong data at byte {}",
            wrong.position - position
        );
        std::io::Error::new(ErrorKind::InvalidData, what)
    })
}
