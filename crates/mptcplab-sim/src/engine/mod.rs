//! The event loop of one part of a topology.

pub(crate) mod assemble;
pub(crate) mod partition;
pub(crate) mod sample;
mod transfers;

use crate::app::udp::UdpSource;
use crate::app::video::VideoApp;
use crate::app::{self, App};
use crate::engine::sample::SampleClock;
use crate::engine::transfers::Pool;
use crate::mptcp::connection::{Connection, Trouble};
use crate::net::event::{NEVER, TimerKind, Timers};
use crate::net::packet::{Header, Kind, Packet};
use crate::net::record::Recorder;
use crate::net::{Net, World};
use crate::sctp::Association;
use crate::tcp::handshake;
use crate::tcp::receiver::{AckPolicy, Receiver};
use crate::tcp::sender::{Phase, Sender};
use crate::{Caller, SimError};
use mptcplab_model::link::rng::Rng;
use mptcplab_trace::EventKind;

/// Events between looks at the caller's control block.
const CONTROL_EVERY: u64 = 1 << 16;

pub(crate) struct Engine<'a> {
    pub(crate) world: World,
    pub(crate) conns: Vec<Connection>,
    pub(crate) senders: Vec<Sender>,
    pub(crate) receivers: Vec<Receiver>,
    pub(crate) sctp: Vec<Association>,
    /// Association and destination of the routes that follow those of the senders.
    pub(crate) destinations: Vec<(u32, u32)>,
    pub(crate) udp: Vec<UdpSource>,
    /// Index of the first route that is not TCP's.
    pub(crate) first_other: usize,
    pub(crate) pools: Vec<Pool<'a>>,
    pub(crate) videos: Vec<VideoApp>,
    /// Connections and senders from these on are slots of pools.
    pub(crate) fixed_conns: usize,
    pub(crate) fixed_senders: usize,
    /// Of every slot's senders: older packets, by the timestamp's tick, are those of another transfer.
    pub(crate) born: Vec<u32>,
    /// Why the run cannot go on.
    pub(crate) failure: Option<SimError>,
    /// Random stream of every connection's application.
    pub(crate) app_rng: Vec<Rng>,
    /// Global index of every link, and how many of its schedule's changes were logged.
    pub(crate) link_ids: Vec<(u32, usize)>,
    pub(crate) has_schedules: bool,
    pub(crate) per_ack: bool,
    /// Links have schedules, or connections come and go: two things that most runs do without and one question answers.
    watches_links: bool,
    /// Every ACK has a row, or connections come and go.
    watches_acks: bool,
    pub(crate) events: u64,
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
            conns: Vec::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
            sctp: Vec::new(),
            destinations: Vec::new(),
            udp: Vec::new(),
            first_other: 0,
            pools: Vec::new(),
            videos: Vec::new(),
            fixed_conns: 0,
            fixed_senders: 0,
            born: Vec::new(),
            failure: None,
            app_rng: Vec::new(),
            link_ids: Vec::new(),
            has_schedules: false,
            per_ack: false,
            watches_links: false,
            watches_acks: false,
            events: 0,
        }
    }

    /// Arm the timers that start everything.
    pub(crate) fn start(&mut self) {
        let has_slots = !self.pools.is_empty();
        self.watches_links = self.has_schedules || has_slots;
        self.watches_acks = self.per_ack || has_slots;
        for (i, conn) in self.conns.iter_mut().enumerate() {
            self.world
                .timers
                .set(&mut conn.timer, conn.start_ns, TimerKind::App, i as u32);
            conn.arm_priority(&mut self.world, i as u32);
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

    /// Run up to and including `end`.
    pub(crate) fn run(
        &mut self,
        end: u64,
        clock: &mut SampleClock,
        caller: &mut Caller<'_>,
    ) -> Result<(), SimError> {
        let mut reported = 0;
        let mut sample_at = clock.next();
        loop {
            let (link_at, link) = self.world.net.first();
            let timer_at = self.world.timers.first();
            let at = link_at.min(timer_at);
            if at > sample_at {
                self.sample_until(at.min(end + 1), clock);
                sample_at = clock.next();
                caller.offer(&mut self.world.rec.tables)?;
            }
            if at > end {
                break;
            }
            self.world.now = at;
            self.events += 1;
            if link_at <= timer_at {
                self.on_link(link);
            } else {
                self.on_timer();
                if let Some(failure) = self.failure.take() {
                    return Err(failure);
                }
            }
            if self.events % CONTROL_EVERY == 0 {
                caller.report(self.world.now - reported)?;
                caller.offer(&mut self.world.rec.tables)?;
                reported = self.world.now;
            }
        }
        self.world.now = end;
        self.record_unfinished();
        caller.report(end - reported)?;
        if cfg!(debug_assertions) {
            self.world.net.check_conservation(end);
        }
        Ok(())
    }

    #[inline(always)]
    fn on_link(&mut self, link: usize) {
        let mut packet = Packet::new(Kind::Data, 0, 0, Header::default());
        let mut arrived = self.world.net.step(self.world.now, link, &mut packet);
        if self.watches_links {
            arrived = self.watch_link(link, arrived, &packet);
        }
        if arrived {
            self.deliver(&packet);
        }
    }

    /// Log what a link's schedule did, and let go of packets whose connection is over. Returns whether one is to be
    /// delivered.
    #[inline(never)]
    fn watch_link(&mut self, link: usize, arrived: bool, packet: &Packet) -> bool {
        if self.has_schedules {
            self.log_changes(link);
        }
        let stale = arrived && self.is_stale(packet);
        if stale {
            self.world.net.release(packet);
        }
        arrived && !stale
    }

    fn log_changes(&mut self, link: usize) {
        let applied = self.world.net.links_mut()[link].changes_applied();
        let (id, logged) = &mut self.link_ids[link];
        while *logged < applied {
            self.world
                .rec
                .link_event(self.world.now, EventKind::LinkChanged, *id, *logged as u64);
            *logged += 1;
        }
    }

    #[inline]
    fn deliver(&mut self, packet: &Packet) {
        // Two comparisons for nearly all packets instead of a jump table.
        match packet.kind() {
            Kind::Data => self.on_data(packet),
            Kind::Ack => self.on_ack(packet),
            _ => self.deliver_other(packet),
        }
    }

    #[inline(never)]
    fn deliver_other(&mut self, packet: &Packet) {
        match packet.kind() {
            Kind::Data | Kind::Ack => {}
            Kind::Other | Kind::OtherBack => self.deliver_without_tcp(packet),
            Kind::Syn | Kind::JoinAck => self.on_handshake_request(packet),
            Kind::SynAck | Kind::JoinDone => self.on_handshake_reply(packet),
        }
    }

    /// Routes are numbered in this order: TCP subflows, slots for more of them, SCTP destinations, UDP streams.
    fn deliver_without_tcp(&mut self, packet: &Packet) {
        let route = packet.subflow() - self.first_other;
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

    #[inline]
    fn on_data(&mut self, packet: &Packet) {
        let i = packet.subflow();
        let receiver = &mut self.receivers[i];
        let conn = &mut self.conns[receiver.config.conn as usize];
        let cx = &mut self.world;
        if receiver.overflows(packet.seq()) {
            let ack = receiver.make_ack(cx, conn.rx.next(), conn.rx.advertised());
            cx.net.send_on(receiver.config.entry as usize, cx.now, ack);
        }
        let policy = receiver.on_data(packet, cx.now);
        let is_complete = conn.rx.on_data(cx, conn.flow, packet.dsn());
        if conn.rx.tunes() {
            conn.rx.tune(cx.now, self.senders[i].sock.tp.srtt_us);
        }
        if policy == AckPolicy::Now {
            let ack = receiver.make_ack(cx, conn.rx.next(), conn.rx.advertised());
            cx.net.send_on(receiver.config.entry as usize, cx.now, ack);
        } else if policy == AckPolicy::Later {
            receiver.delay_ack(cx);
        } else {
            receiver.hold_ack(cx);
        }
        let c = receiver.config.conn as usize;
        if conn.answers_push {
            self.read_soon(c);
        }
        if is_complete {
            self.on_complete(c);
        }
    }

    /// Data came that the application can read to the end, and PSH asks for an ACK then.
    #[inline(never)]
    fn read_soon(&mut self, c: usize) {
        let conn = &mut self.conns[c];
        let mut receivers = self.receivers[conn.subflows.clone()].iter();
        if conn.rx.is_read() && receivers.any(Receiver::is_pushed) {
            conn.read_soon(&mut self.world, c as u32);
        }
    }

    /// The application reads: what PSH asks for on any subflow is acknowledged if that was everything (`tcp_cleanup_rbuf`,
    /// `mptcp_cleanup_rbuf`).
    #[inline(never)]
    fn on_read(&mut self, c: usize) {
        if !self.conns[c].rx.is_read() {
            return;
        }
        for i in self.conns[c].subflows.clone() {
            if self.receivers[i].is_pushed() {
                self.send_delayed_ack(i);
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, packet: &Packet) {
        let i = packet.subflow();
        let sender = &mut self.senders[i];
        if sender.phase != Phase::Established {
            self.world.net.sacks.release(packet.sack());
            return;
        }
        let c = sender.conn as usize;
        let conn = &mut self.conns[c];
        let cx = &mut self.world;
        conn.on_data_ack(packet.dsn(), packet.wnd());
        if sender.on_ack(cx, &mut conn.cc, packet) {
            conn.push(cx, &mut self.senders, i);
        } else {
            self.push_after_recovery(c, i);
        }
        if self.watches_acks {
            self.watch_ack(c, i);
        }
    }

    /// After an ACK that was not routine: the subflow may be another for the connection than before.
    #[inline(never)]
    fn push_after_recovery(&mut self, c: usize, i: usize) {
        let (conn, cx) = (&mut self.conns[c], &mut self.world);
        let sender = &mut self.senders[i];
        let demoted = sender.sock.take_backups_wanted();
        if demoted != 0 {
            conn.make_backups(cx, &mut self.senders, demoted);
        }
        let sender = &mut self.senders[i];
        if sender.failed && sender.retransmits == 0 {
            sender.failed = false;
            sender.log(cx, EventKind::SubflowRecovered, 0_u64);
            conn.update_backups(&mut self.senders);
        }
        let sender = &self.senders[i];
        let hold = sender.recovery.frto_hold;
        let before = sender.sock.tp.snd_nxt;
        conn.push(cx, &mut self.senders, i);
        if hold {
            let sent_new = self.senders[i].sock.tp.snd_nxt != before;
            self.senders[i].finish_frto_probe(cx, sent_new);
        }
    }

    /// A row per ACK, and the end of transfers.
    #[inline(never)]
    fn watch_ack(&mut self, c: usize, i: usize) {
        if self.per_ack && i < self.fixed_senders {
            self.sample_subflow(i);
        }
        if c >= self.fixed_conns && self.conns[c].is_delivered() {
            self.end_transfer(c);
        }
    }

    fn joins(&self, i: usize) -> bool {
        self.conns[self.senders[i].conn as usize].opener != i
    }

    fn on_handshake_request(&mut self, packet: &Packet) {
        let i = packet.subflow();
        let config = &self.senders[i].config;
        let (mptcp, ack_header) = (config.mptcp, config.ack_header);
        self.receivers[i].on_handshake(packet.kind(), self.world.now);
        if let Some(reply) = handshake::answer(packet, mptcp, self.joins(i), ack_header) {
            self.world.net.send(self.world.now, reply);
        }
    }

    fn on_handshake_reply(&mut self, packet: &Packet) {
        let i = packet.subflow();
        let joins = self.joins(i);
        let sender = &mut self.senders[i];
        let ready = match packet.kind() {
            Kind::SynAck => sender.on_syn_ack(&mut self.world, packet, joins),
            _ => sender.phase == Phase::JoinSent,
        };
        if !ready {
            return;
        }
        let c = sender.conn as usize;
        let slot = (i - self.conns[c].subflows.start) as u32;
        self.senders[i].establish(&mut self.world, &mut self.conns[c], slot);
        self.conns[c].update_backups(&mut self.senders);
        if !joins {
            self.schedule_joins(c);
            if let App::Video { video } = self.conns[c].app {
                self.on_video_open(video as usize);
            }
        }
        self.conns[c].push(&mut self.world, &mut self.senders, i);
    }

    /// The connection is established: its further subflows may open.
    fn schedule_joins(&mut self, c: usize) {
        for i in self.conns[c].subflows.clone() {
            if self.senders[i].phase == Phase::Closed {
                self.schedule_opening(i);
            }
        }
    }

    fn schedule_opening(&mut self, i: usize) {
        let sender = &mut self.senders[i];
        let at = sender.open_ns.max(self.world.now);
        self.world
            .timers
            .set(&mut sender.lifecycle, at, TimerKind::Lifecycle, i as u32);
    }

    #[inline(never)]
    fn on_timer(&mut self) {
        let Some((at, kind, index)) = self.world.timers.pop() else {
            return;
        };
        let i = index as usize;
        let timers = &mut self.world.timers;
        let fires = match kind {
            TimerKind::App => timers.fires(&mut self.conns[i].timer, at, kind, index),
            TimerKind::Lifecycle => timers.fires(&mut self.senders[i].lifecycle, at, kind, index),
            TimerKind::Retransmit => timers.fires(&mut self.senders[i].timer, at, kind, index),
            TimerKind::Pace => timers.fires(&mut self.senders[i].pace_timer, at, kind, index),
            TimerKind::Jitter => timers.fires(&mut self.senders[i].jitter_timer, at, kind, index),
            TimerKind::DelayedAck => timers.fires(&mut self.receivers[i].timer, at, kind, index),
            TimerKind::Udp => timers.fires(&mut self.udp[i].timer, at, kind, index),
            TimerKind::Association => timers.fires(&mut self.sctp[i].timer, at, kind, index),
            TimerKind::Destination => {
                let (a, d) = self.destinations[i - self.first_other];
                let timer = self.sctp[a as usize].destination_timer(d as usize);
                timers.fires(timer, at, kind, index)
            }
            TimerKind::DelayedSack => timers.fires(self.sctp[i].sack_timer(), at, kind, index),
            TimerKind::Priority => timers.fires(&mut self.conns[i].priority_timer, at, kind, index),
            TimerKind::Read => timers.fires(&mut self.conns[i].read_timer, at, kind, index),
            TimerKind::Transfer => timers.fires(&mut self.pools[i].timer, at, kind, index),
            TimerKind::Resend => self.conns[i]
                .resend
                .as_mut()
                .is_some_and(|resend| timers.fires(&mut resend.timer, at, kind, index)),
        };
        if !fires {
            return;
        }
        match kind {
            TimerKind::App => self.on_app(i),
            TimerKind::Lifecycle => self.on_lifecycle(i),
            TimerKind::Retransmit => self.on_retransmit(i),
            TimerKind::Pace => {
                self.senders[i].paced_out = false;
                let c = self.senders[i].conn as usize;
                self.senders[i].retransmit_lost(&mut self.world);
                self.conns[c].push(&mut self.world, &mut self.senders, i);
            }
            TimerKind::Jitter => self.senders[i].release_held(&mut self.world),
            TimerKind::DelayedAck => {
                self.receivers[i].miss_second();
                self.send_delayed_ack(i);
            }
            TimerKind::Association => self.sctp[i].on_app_timer(&mut self.world),
            TimerKind::Destination => {
                let (a, d) = self.destinations[i - self.first_other];
                self.sctp[a as usize].on_destination_timer(&mut self.world, d as usize);
            }
            TimerKind::DelayedSack => self.sctp[i].send_sack(&mut self.world),
            TimerKind::Priority => self.on_priority(i),
            TimerKind::Udp => {
                let flow = self.udp[i].flow;
                if self.udp[i].on_timer(&mut self.world, index) {
                    self.world
                        .rec
                        .flow_event(self.world.now, EventKind::FlowStarted, flow, 0);
                }
            }
            TimerKind::Transfer => self.on_pool(i),
            TimerKind::Resend => self.on_resend(i),
            TimerKind::Read => self.on_read(i),
        }
    }

    fn on_app(&mut self, c: usize) {
        let first = self.conns[c].subflows.start;
        let opening =
            self.senders[first].phase == Phase::Closed && self.world.now < self.conns[c].stop_ns;
        app::on_app_timer(
            &mut self.world,
            &mut self.conns[c],
            c as u32,
            &mut self.app_rng[c],
        );
        if let App::Video { video } = self.conns[c].app {
            self.on_request(video as usize);
        }
        if opening {
            self.world.rec.flow_event(
                self.world.now,
                EventKind::FlowStarted,
                self.conns[c].flow,
                0,
            );
            self.open(first);
        }
        self.conns[c].push(&mut self.world, &mut self.senders, first);
    }

    pub(crate) fn open(&mut self, i: usize) {
        let joins = self.joins(i);
        self.senders[i].open(&mut self.world, joins);
        let stop = self.senders[i].remove_ns;
        if stop != NEVER {
            self.world.timers.set(
                &mut self.senders[i].lifecycle,
                stop,
                TimerKind::Lifecycle,
                i as u32,
            );
        }
    }

    fn on_lifecycle(&mut self, i: usize) {
        let sender = &mut self.senders[i];
        if self.world.now >= sender.remove_ns {
            let c = sender.conn as usize;
            let never_opened = sender.phase != Phase::Established && self.conns[c].opener == i;
            self.conns[c].reinject_from(sender, Trouble::Removed);
            sender.remove(&mut self.world, &mut self.conns[c]);
            self.conns[c].update_backups(&mut self.senders);
            if never_opened {
                self.pass_on_opening(c);
            }
            self.conns[c].push(&mut self.world, &mut self.senders, i);
        } else if sender.phase == Phase::Closed {
            self.open(i);
        }
    }

    fn on_priority(&mut self, c: usize) {
        let conn = &mut self.conns[c];
        conn.change_priorities(&mut self.world, &mut self.senders);
        conn.arm_priority(&mut self.world, c as u32);
        conn.push(&mut self.world, &mut self.senders, conn.opener);
    }

    fn on_resend(&mut self, c: usize) {
        let conn = &mut self.conns[c];
        conn.resend(&mut self.world, &mut self.senders);
        conn.push(&mut self.world, &mut self.senders, conn.opener);
    }

    /// The subflow that was to open the connection is gone: the next one opens it instead.
    fn pass_on_opening(&mut self, c: usize) {
        let mut candidates = self.conns[c].subflows.clone();
        if let Some(next) = candidates.find(|&k| self.senders[k].phase == Phase::Closed) {
            self.conns[c].opener = next;
            self.schedule_opening(next);
        }
    }

    fn on_retransmit(&mut self, i: usize) {
        let joins = self.joins(i);
        let sender = &mut self.senders[i];
        let c = sender.conn as usize;
        match sender.phase {
            Phase::SynSent | Phase::JoinSent => sender.retry_handshake(&mut self.world, joins),
            Phase::Established => {
                let timed_out = sender.on_timer(&mut self.world, &mut self.conns[c].cc);
                if sender.recovery.probe_due {
                    let sent_new = self.conns[c].push_probe(&mut self.world, &mut self.senders[i]);
                    self.senders[i].finish_probe(&mut self.world, sent_new);
                }
                if timed_out {
                    self.conns[c].note_timeout(&mut self.world, &mut self.senders, i);
                }
                self.conns[c].push(&mut self.world, &mut self.senders, i);
            }
            Phase::Closed | Phase::Removed => {}
        }
    }

    fn send_delayed_ack(&mut self, i: usize) {
        let conn = &self.conns[self.senders[i].conn as usize];
        let (next, window) = (conn.rx.next(), conn.rx.advertised());
        let ack = self.receivers[i].make_ack(&mut self.world, next, window);
        self.world.net.send(self.world.now, ack);
    }
}
