//! The event loop of one part of a topology: it takes the next event and passes it to the connection, the SCTP association or
//! the UDP source that it belongs to.

use super::sample_clock::SampleClock;
use super::transfer_pool::TransferPool;
use crate::app::udp::UdpSource;
use crate::app::{App, Kind as AppKind};
use crate::control::{Caller, SimError};
use crate::mptcp::connection::Connection;
use crate::net::event::{TimerEntry, TimerKind, Timers};
use crate::net::packet::{Kind, Packet};
use crate::net::record::Recorder;
use crate::net::{Net, World};
use crate::sctp::Association;
use crate::tcp::subflow::Subflow;
use mptcplab_trace::EventKind;

/// Events between looks at the caller's control block.
const CONTROL_EVERY: u64 = 1 << 16;

/// The subflow that a route belongs to: index of the connection, and of the subflow within it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) conn: u32,
    pub(crate) subflow: u32,
}

pub(crate) struct Engine<'a> {
    pub(crate) world: World,
    /// The applications and their connections; the index is the connection's.
    pub(crate) apps: Vec<App>,
    /// For every route of a TCP subflow.
    pub(crate) owners: Vec<Owner>,
    pub(crate) sctp: Vec<Association>,
    /// Association and destination of the routes that follow those of TCP.
    pub(crate) destinations: Vec<(u32, u32)>,
    pub(crate) udp: Vec<UdpSource>,
    /// Index of the first route that is not TCP's.
    pub(crate) first_non_tcp: usize,
    pub(crate) pools: Vec<TransferPool<'a>>,
    /// Connections from this one on have no rows of their own: the back directions of others, then slots of pools.
    pub(crate) reported_conns: usize,
    /// Connections and routes from these on are slots of pools.
    pub(crate) fixed_conns: usize,
    pub(crate) fixed_routes: usize,
    /// For every route of a slot, the timestamp tick at which its transfer began: older packets belong to an earlier one.
    pub(crate) slot_ticks: Vec<u32>,
    /// Why the run cannot go on.
    pub(crate) failure: Option<SimError>,
    /// Global index of every link, and how many of its schedule's changes were logged.
    pub(crate) link_ids: Vec<(u32, usize)>,
    pub(crate) has_schedules: bool,
    pub(crate) per_ack: bool,
    /// Links have schedules, or connections come and go: most runs have neither, and one flag covers both.
    checks_links: bool,
    /// See `prefetch.rs`.
    pub(super) fetches: bool,
    /// Every ACK has a row, or connections come and go.
    checks_acks: bool,
    /// Events so far, as of the last look at the caller's control block, and how many are left until the next one.
    events: u64,
    until_control: u64,
    /// Those among them that are not the delivery of a packet by a direct link.
    other_events: u64,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(net: Net) -> Self {
        Self {
            world: World {
                now: 0,
                net,
                timers: Timers::new(),
                rec: Recorder::new(),
            },
            apps: Vec::new(),
            owners: Vec::new(),
            sctp: Vec::new(),
            destinations: Vec::new(),
            udp: Vec::new(),
            first_non_tcp: 0,
            pools: Vec::new(),
            reported_conns: 0,
            fixed_conns: 0,
            fixed_routes: 0,
            slot_ticks: Vec::new(),
            failure: None,
            link_ids: Vec::new(),
            has_schedules: false,
            per_ack: false,
            checks_links: false,
            fetches: false,
            checks_acks: false,
            events: 0,
            until_control: CONTROL_EVERY,
            other_events: 0,
        }
    }

    /// Arm the timers that start everything, for a run of `end_ns`.
    pub(crate) fn start(&mut self, end_ns: u64) {
        let has_slots = !self.pools.is_empty();
        self.checks_links = self.has_schedules || has_slots;
        self.fetches = self.has_many_connections();
        if self.checks_links {
            self.world.net.check_all();
        }
        if self.fetches {
            self.world.net.fetch_for_all();
            self.use_large_pages();
        }
        if !self.checks_links {
            self.look_ahead(end_ns);
        }
        self.checks_acks = self.per_ack || has_slots;
        self.world.timers.reserve(self.world.net.routes());
        for app in &mut self.apps {
            app.start(&mut self.world);
        }
        for association in &mut self.sctp {
            association.start(&mut self.world);
        }
        for (i, source) in self.udp.iter_mut().enumerate() {
            let at = source.start_ns();
            self.world
                .timers
                .set(&mut source.timer, at, TimerKind::Udp, i as u32);
        }
        for (i, pool) in self.pools.iter_mut().enumerate() {
            let at = pool.start_ns();
            self.world
                .timers
                .set(&mut pool.timer, at, TimerKind::Transfer, i as u32);
        }
    }

    fn look_ahead(&mut self, end_ns: u64) {
        let senders = || self.apps.iter().flat_map(|app| &app.conn.subflows);
        let knows: Vec<bool> = senders().map(|s| s.sender.holds_back()).collect();
        let begins = self.world.net.look_ahead(&knows, end_ns);
        let subflows = self.apps.iter_mut().flat_map(|app| &mut app.conn.subflows);
        for (subflow, begins) in subflows.zip(begins) {
            subflow.sender.jitter.is_sent_ahead = begins;
        }
    }

    /// Run up to and including `end`.
    pub(crate) fn run(
        &mut self,
        end: u64,
        clock: &mut SampleClock,
        caller: &mut Caller<'_>,
    ) -> Result<(), SimError> {
        let mut reported = 0;
        self.world.timers.hold_after(clock.next().min(end));
        loop {
            let (link_at, link) = self.world.net.first();
            if link_at <= self.world.timers.bound() {
                self.world.now = link_at;
                self.on_link(link);
            } else if !self.step_other((link_at, link), end, clock, caller)? {
                break;
            }
            self.until_control -= 1;
            if self.until_control == 0 {
                self.events += CONTROL_EVERY;
                self.until_control = CONTROL_EVERY;
                caller.report(self.world.now - reported)?;
                caller.offer(&mut self.world.rec.tables)?;
                reported = self.world.now;
            }
        }
        self.world.now = end;
        self.count_events(end);
        self.record_unfinished();
        caller.report(end - reported)?;
        if cfg!(debug_assertions) {
            self.world.net.check_conservation(end);
        }
        Ok(())
    }

    /// The next event is a timer's, or comes after a sample or after the end. Returns false if it is after the end.
    #[inline(never)]
    fn step_other(
        &mut self,
        (link_at, link): (u64, usize),
        end: u64,
        clock: &mut SampleClock,
        caller: &mut Caller<'_>,
    ) -> Result<bool, SimError> {
        let timer_at = self.world.timers.first();
        let at = link_at.min(timer_at);
        if at > clock.next() {
            self.sample_until(at.min(end + 1), clock);
            self.world.timers.hold_after(clock.next().min(end));
            caller.offer(&mut self.world.rec.tables)?;
        }
        if at > end {
            return Ok(false);
        }
        self.world.now = at;
        if link_at <= timer_at {
            self.on_link_indirect(link);
            return Ok(true);
        }
        self.other_events += 1;
        self.on_timer();
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(true),
        }
    }

    /// Events so far.
    pub(crate) fn events(&self) -> u64 {
        self.events + CONTROL_EVERY - self.until_control
    }

    /// Count events and hops at the end as if every delivery and every release had been an event.
    fn count_events(&mut self, end: u64) {
        self.world.net.crossed += self.events() - self.other_events;
        (self.events, self.until_control) = (self.events(), CONTROL_EVERY);
        self.events -= self.world.net.merge_events();
        self.events += self.world.net.count_forwarded(end);
        let subflows = self.apps.iter().flat_map(|app| &app.conn.subflows);
        self.events += subflows.map(|s| s.sender.jitter.releases).sum::<u64>();
    }

    #[inline(always)]
    fn on_link(&mut self, link: usize) {
        match self.world.net.take_direct(link) {
            Some(packet) => self.deliver(packet),
            None => self.on_link_indirect(link),
        }
    }

    /// Handle an event of a link that takes more than delivering a packet.
    // Not inlined, so that the compiler optimises the loop for the other links.
    #[inline(never)]
    fn on_link_indirect(&mut self, link: usize) {
        if self.fetches && self.on_link_fetching(link) {
            return;
        }
        self.other_events += 1;
        let mut packet = self.world.net.step(self.world.now, link);
        if self.checks_links {
            packet = self.check_link_event(link, packet);
        }
        if let Some(packet) = packet {
            self.deliver(packet);
        }
    }

    /// Fetch ahead, and deliver the packet if that is all that the event takes. Returns whether it is.
    #[inline(never)]
    fn on_link_fetching(&mut self, link: usize) -> bool {
        self.fetch_ahead(link);
        let Some(packet) = self.world.net.take_fetched(link) else {
            return false;
        };
        self.deliver(packet);
        true
    }

    /// Log changes by a link's schedule, and drop a packet whose connection has ended. Returns the packet that is to be
    /// delivered.
    fn check_link_event(&mut self, link: usize, packet: Option<Packet>) -> Option<Packet> {
        if self.has_schedules {
            self.log_changes(link);
        }
        let packet = packet?;
        if self.is_stale(&packet) {
            self.world.net.release(&packet);
            return None;
        }
        Some(packet)
    }

    fn log_changes(&mut self, link: usize) {
        let applied = self.world.net.changes_applied(link);
        let (id, logged) = &mut self.link_ids[link];
        while *logged < applied {
            self.world
                .rec
                .link_event(self.world.now, EventKind::LinkChanged, *id, *logged as u64);
            *logged += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn deliver(&mut self, packet: Packet) {
        // Two comparisons for nearly all packets instead of a jump table.
        match packet.kind() {
            Kind::Data => self.on_data(packet),
            Kind::Ack => self.on_ack(packet),
            _ => self.deliver_other(packet),
        }
    }

    // By value, as all functions from here on that are not inlined: a reference would keep the packet of the functions that are
    // inlined in memory.
    #[inline(never)]
    fn deliver_other(&mut self, packet: Packet) {
        match packet.kind() {
            Kind::Data | Kind::Ack => {}
            Kind::Other | Kind::OtherBack => self.deliver_without_tcp(&packet),
            Kind::Syn | Kind::JoinAck => self.on_handshake_request(&packet),
            Kind::SynAck | Kind::JoinDone => self.on_handshake_reply(&packet),
        }
    }

    /// Routes are numbered in this order: TCP subflows, slots for more of them, SCTP destinations, UDP streams.
    fn deliver_without_tcp(&mut self, packet: &Packet) {
        let route = packet.subflow() - self.first_non_tcp;
        let Some(&(a, d)) = self.destinations.get(route) else {
            self.udp[route - self.destinations.len()].received += 1;
            return;
        };
        let association = &mut self.sctp[a as usize];
        let is_ack = association.on_packet(&mut self.world, d as usize, packet);
        if is_ack && self.per_ack {
            association.sample_destinations(&mut self.world);
        }
    }

    /// The owner of a route and its connection.
    #[inline]
    fn owner(&mut self, route: usize) -> (Owner, &mut Connection, &mut World) {
        let owner = self.owners[route];
        let conn = &mut self.apps[owner.conn as usize].conn;
        (owner, conn, &mut self.world)
    }

    #[inline(always)]
    fn on_data(&mut self, packet: Packet) {
        let (owner, conn, cx) = self.owner(packet.subflow());
        if conn.on_data(cx, owner.subflow as usize, packet) {
            self.on_complete(owner.conn as usize);
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, packet: Packet) {
        let (owner, conn, cx) = self.owner(packet.subflow());
        let counts = conn.on_ack(cx, owner.subflow as usize, packet);
        if counts && self.checks_acks {
            self.after_ack(owner);
        }
    }

    /// A row per ACK, and the end of transfers.
    #[inline(never)]
    fn after_ack(&mut self, owner: Owner) {
        let (c, k) = (owner.conn as usize, owner.subflow as usize);
        if c >= self.fixed_conns {
            if self.apps[c].conn.tx.is_delivered() {
                self.end_transfer(c);
            }
        } else if self.per_ack && c < self.reported_conns {
            self.sample_subflow(c, k);
        }
    }

    fn on_handshake_request(&mut self, packet: &Packet) {
        let (owner, conn, cx) = self.owner(packet.subflow());
        conn.on_handshake_request(cx, owner.subflow as usize, packet);
        if packet.kind() == Kind::JoinAck {
            self.open_back(owner.conn as usize, owner.subflow as usize);
        }
    }

    fn on_handshake_reply(&mut self, packet: &Packet) {
        let (owner, conn, cx) = self.owner(packet.subflow());
        if conn.on_handshake_reply(cx, owner.subflow as usize, packet) {
            self.apps[owner.conn as usize].on_open(&mut self.world);
        }
    }

    /// All that an application wrote is at the receiver.
    #[inline(never)]
    fn on_complete(&mut self, c: usize) {
        match self.apps[c].kind {
            AppKind::Requests(_) => self.on_messages(c, c),
            AppKind::Back { of } => self.on_messages(of as usize, c),
            _ => {
                self.apps[c].on_complete(&mut self.world);
                self.repeat_transfer(c);
            }
        }
    }

    #[inline(never)]
    pub(crate) fn on_timer(&mut self) {
        if let Some(subflow) = self.world.timers.first_jitter() {
            return self.on_send_jitter(subflow);
        }
        let Some(entry) = self.world.timers.pop() else {
            return;
        };
        if self.fetches {
            self.fetch_for_timers();
        }
        let i = entry.2 as usize;
        let cx = &mut self.world;
        match entry.1 {
            TimerKind::Lifecycle
            | TimerKind::Retransmit
            | TimerKind::Pace
            | TimerKind::DelayedAck => self.on_subflow_timer(entry),
            // Came first.
            TimerKind::SendJitter => {}
            TimerKind::App | TimerKind::Priority | TimerKind::DataRtx | TimerKind::Read => {
                self.on_connection_timer(entry);
            }
            TimerKind::Association | TimerKind::Destination | TimerKind::DelayedSack => {
                self.on_sctp_timer(entry);
            }
            TimerKind::Udp if cx.timers.fires(&mut self.udp[i].timer, entry) => {
                let flow = self.udp[i].flow;
                if self.udp[i].on_timer(cx, entry.2) {
                    cx.rec.flow_event(cx.now, EventKind::FlowStarted, flow, 0);
                }
            }
            TimerKind::Transfer if cx.timers.fires(&mut self.pools[i].timer, entry) => {
                self.on_pool(i);
            }
            TimerKind::Udp | TimerKind::Transfer => {}
        }
    }

    fn on_subflow_timer(&mut self, entry: TimerEntry) {
        let (owner, conn, cx) = self.owner(entry.2 as usize);
        let k = owner.subflow as usize;
        let Subflow { sender, receiver } = &mut conn.subflows[k];
        let timer = match entry.1 {
            TimerKind::Lifecycle => &mut sender.lifecycle.timer,
            TimerKind::Retransmit => &mut sender.rtx.timer,
            TimerKind::Pace => &mut sender.pacing.timer,
            _ => &mut receiver.timer,
        };
        if !cx.timers.fires(timer, entry) {
            return;
        }
        match entry.1 {
            TimerKind::Lifecycle => conn.on_lifecycle(cx, k),
            TimerKind::Retransmit => conn.on_retransmit(cx, k),
            TimerKind::Pace => conn.on_pace(cx, k),
            _ => conn.on_delayed_ack(cx, k),
        }
    }

    /// A packet that was held back leaves, which happens for every one where links are shared.
    #[inline]
    fn on_send_jitter(&mut self, subflow: u32) {
        let (owner, conn, cx) = self.owner(subflow as usize);
        let sender = &mut conn.subflows[owner.subflow as usize].sender;
        sender.release_jittered(cx);
    }

    fn on_connection_timer(&mut self, entry: TimerEntry) {
        let (app, cx) = (&mut self.apps[entry.2 as usize], &mut self.world);
        if entry.1 > TimerKind::SendJitter {
            // Packets that leave now come before those that this timer sends.
            cx.net.settle(cx.now);
        }
        let conn = &mut app.conn;
        match entry.1 {
            TimerKind::App if cx.timers.fires(&mut app.timer, entry) => {
                if matches!(app.kind, AppKind::Requests(_)) {
                    self.on_requests_timer(entry.2 as usize);
                } else {
                    app.on_timer(cx);
                }
            }
            TimerKind::Priority if cx.timers.fires(&mut conn.tx.priority_timer, entry) => {
                conn.on_priority(cx);
            }
            TimerKind::Read if cx.timers.fires(&mut conn.read_timer, entry) => conn.on_read(cx),
            TimerKind::DataRtx => {
                let rtx = conn.tx.data_rtx.as_mut();
                if rtx.is_some_and(|rtx| cx.timers.fires(&mut rtx.timer, entry)) {
                    conn.on_data_rtx(cx);
                }
            }
            _ => {}
        }
    }

    fn on_sctp_timer(&mut self, entry: TimerEntry) {
        let (_, kind, index) = entry;
        let (a, d) = match kind {
            TimerKind::Destination => self.destinations[index as usize - self.first_non_tcp],
            _ => (index, 0),
        };
        let (association, cx) = (&mut self.sctp[a as usize], &mut self.world);
        let d = d as usize;
        match kind {
            TimerKind::Association if cx.timers.fires(&mut association.timer, entry) => {
                association.on_app_timer(cx);
            }
            TimerKind::Destination if cx.timers.fires(association.destination_timer(d), entry) => {
                association.on_destination_timer(cx, d);
            }
            TimerKind::DelayedSack if cx.timers.fires(association.sack_timer(), entry) => {
                association.send_sack(cx);
            }
            _ => {}
        }
    }

    /// The run is over: what was not complete is recorded as such.
    fn record_unfinished(&mut self) {
        for c in 0..self.apps.len() {
            if !self.is_free(c) {
                self.apps[c].record_unfinished(&mut self.world);
                self.record_open_requests(c);
            }
        }
        for association in &self.sctp {
            association.record_unfinished(&mut self.world);
        }
    }
}
