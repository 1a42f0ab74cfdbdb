//! Schedulers where random subflows seldom come: equal round-trip times and queues, stale subflows, and backups beside them.

use mptcplab_model::link::rng::Rng;
use mptcplab_model::sched::linger::{BURST_BYTES, Queue, linger};
use mptcplab_model::sched::minrtt::minrtt;
use mptcplab_model::sched::{
    Assignment, Kind, Path, Scheduler, SchedulerConfig, Segments, SendQueue, must_penalise,
};

#[derive(Debug, Clone, Copy)]
struct Sub {
    established: bool,
    usable: bool,
    backup: bool,
    stale: bool,
    full: bool,
    queued: u32,
    window: u32,
    srtt_us8: u32,
    rate: u64,
}

const SUB: Sub = Sub {
    established: true,
    usable: true,
    backup: false,
    stale: false,
    full: false,
    queued: 0,
    window: 10,
    srtt_us8: 8000,
    rate: 1_000_000,
};

impl Path for Sub {
    fn is_usable(&self) -> bool {
        self.usable
    }
    fn is_backup(&self) -> bool {
        self.backup
    }
    fn in_loss(&self) -> bool {
        false
    }
    fn is_open(&self) -> bool {
        true
    }
    fn waits_for_pacing(&self) -> bool {
        false
    }
    fn cwnd(&self) -> u32 {
        self.window
    }
    fn inflight(&self) -> u32 {
        if self.full { self.window } else { 0 }
    }
    fn queued(&self) -> u32 {
        self.queued
    }
    fn ssthresh(&self) -> u32 {
        5
    }
    fn srtt_us8(&self) -> u32 {
        self.srtt_us8
    }
    fn rttvar_us8(&self) -> u32 {
        0
    }
    fn rtt_us8(&self) -> u32 {
        self.srtt_us8
    }
    fn min_rtt_us8(&self) -> u32 {
        self.srtt_us8
    }
    fn is_established(&self) -> bool {
        self.established
    }
    fn unacked_pkts(&self) -> u32 {
        self.queued
    }
    fn pacing_bytes_per_s(&self) -> u64 {
        self.rate
    }
    fn carries(&self, _dsn: u32) -> bool {
        false
    }
}

impl Queue for Sub {
    fn is_usable(&self) -> bool {
        self.usable
    }
    fn is_backup(&self) -> bool {
        self.backup
    }
    fn queued_bytes(&self) -> u64 {
        u64::from(self.queued) * 1000
    }
    fn pacing_bytes_per_s(&self) -> u64 {
        self.rate
    }
    fn has_send_memory(&self) -> bool {
        true
    }
    fn is_stale(&self) -> bool {
        self.stale
    }
}

fn linger_picks(subs: &[Sub]) -> Option<usize> {
    linger(subs, &mut [0; 8], u64::MAX).map(|(pick, _)| pick)
}

#[test]
fn of_equally_fast_subflows_minrtt_takes_the_first() {
    assert_eq!(minrtt(&[SUB, SUB, SUB]), Some(0));
    let slow = Sub {
        srtt_us8: 9000,
        ..SUB
    };
    assert_eq!(minrtt(&[slow, SUB, SUB]), Some(1));
}

/// Whichever scheduler it is: a backup takes what both regular subflows carry already, and if it carries it as well, all may.
#[test]
fn what_was_carried_goes_to_who_has_not_carried_it() {
    let backup = Sub {
        backup: true,
        ..SUB
    };
    let gone = Sub {
        usable: false,
        ..SUB
    };
    let subs = [SUB, gone, SUB, backup];
    for kind in [Kind::MinRtt, Kind::RoundRobin, Kind::Ecf, Kind::DelayVar] {
        let scheduler = Scheduler::new(&SchedulerConfig::new(kind));
        for (carried, pick) in [
            (&[0][..], Some(2)),
            (&[2], Some(0)),
            (&[0, 2], Some(3)),
            (&[0, 2, 3], Some(0)),
        ] {
            let again = scheduler.pick_for_reinjection(&subs, |i| carried.contains(&i));
            assert_eq!(again, pick, "{kind:?}, carried by {carried:?}");
        }
        let full = Sub { full: true, ..SUB };
        let again = scheduler.pick_for_reinjection(&[SUB, full], |i| i == 0);
        assert_eq!(again, None, "{kind:?} waits for the one that is busy");
        assert_eq!(scheduler.pick_for_reinjection(&[gone], |_| false), None);
    }
}

#[test]
fn of_equally_long_queues_linger_takes_the_first() {
    assert_eq!(linger_picks(&[SUB, SUB]), Some(0));
    let full = Sub { queued: 5, ..SUB };
    // 5000 bytes at 1 MB/s and 10,000 at 2 MB/s are gone at the same time.
    let fast = Sub {
        queued: 10,
        rate: 2_000_000,
        ..SUB
    };
    assert_eq!(linger_picks(&[full, fast]), Some(0));
    assert_eq!(linger_picks(&[fast, full]), Some(0));
    let less = Sub { queued: 9, ..fast };
    assert_eq!(linger_picks(&[full, less]), Some(1));
}

/// Linux `mptcp_subflow_get_send`: a backup only if no regular subflow is usable and not stale.
#[test]
fn linger_takes_a_backup_only_beside_regular_subflows_that_cannot_be_used() {
    let backup = Sub {
        backup: true,
        ..SUB
    };
    let busy = Sub { queued: 100, ..SUB };
    let stale = Sub { stale: true, ..SUB };
    let gone = Sub {
        usable: false,
        ..SUB
    };
    assert_eq!(linger_picks(&[backup, busy]), Some(1));
    assert_eq!(linger_picks(&[backup, stale]), Some(0));
    assert_eq!(linger_picks(&[backup, gone]), Some(0));
    assert_eq!(linger_picks(&[gone, stale, backup]), Some(2));
    assert_eq!(linger_picks(&[stale, gone]), None);
    let stale_backup = Sub {
        stale: true,
        ..backup
    };
    assert_eq!(linger_picks(&[stale_backup, stale]), None);
    assert_eq!(linger_picks(&[stale_backup, busy]), Some(1));
}

/// The average pacing rate is that of the bytes in the queue at the former average and of the burst at the present rate.
#[test]
fn linger_moves_the_average_rate_by_the_burst() {
    let mut average = [500_000, 0];
    let sub = Sub { queued: 20, ..SUB };
    let busy = Sub {
        queued: 1000,
        ..SUB
    };
    let found = linger(&[sub, busy], &mut average, 30_000);
    assert_eq!(found, Some((0, 30_000)));
    // (500 kB/s * 20 kB + 1 MB/s * 30 kB) / 50 kB; a subflow that was not picked begins at its rate.
    assert_eq!(average, [800_000, 1_000_000]);
    assert_eq!(
        linger(&[sub, busy], &mut average, u64::MAX),
        Some((0, BURST_BYTES))
    );
}

/// Of 1400 bytes in a segment, chunks of 32,728 bytes end after 24, 47, 71, 94 and 117 segments.
const CHUNKS: SendQueue = SendQueue {
    now_ns: 0,
    una: 0,
    next: 0,
    written: 10_000,
    window_end: 20_000,
    mss: 1400,
};

/// The scheduler of a connection whose application waits for room, after the subflows' send buffers have followed their windows.
fn with_buffers(subs: &[Sub]) -> Scheduler {
    let mut scheduler = Scheduler::new(&SchedulerConfig::new(Kind::Linger));
    for _ in 0..2 {
        scheduler.buffer_end(subs, &CHUNKS);
    }
    for (i, sub) in subs.iter().enumerate() {
        scheduler.note_pushed(i, sub, CHUNKS.mss);
    }
    scheduler
}

/// Linux `__subflow_push_pending`: after each chunk it looks whether the burst is complete, or the send buffer full, which
/// holds 2 * 10 * (2048 + 256) bytes for a window of 10.
#[test]
fn a_burst_of_linger_ends_with_a_chunk() {
    let given = |sub, next| {
        let subs = [sub, Sub { queued: 60, ..SUB }];
        let mut scheduler = with_buffers(&subs);
        let queue = SendQueue { next, ..CHUNKS };
        scheduler.buffer_end(&subs, &queue);
        scheduler.pick(&subs, &queue).map(|a| a.segments)
    };
    let segments = |queued, next| given(Sub { queued, ..SUB }, next);
    // Two chunks of 32,728 bytes are the first to reach 65,428, also where they begin in 46 segments of 1400, which do not.
    assert_eq!(segments(0, 0), Some(Segments::New(47)));
    let large = |next| given(Sub { window: 100, ..SUB }, next);
    assert_eq!(large(71), Some(Segments::New(46)));
    // 10 segments and 24 fill 46,080 bytes; so do 17 and 24 that follow them.
    assert_eq!(segments(10, 0), Some(Segments::New(24)));
    assert_eq!(segments(0, 30), Some(Segments::New(41)));
    assert_eq!(segments(33, 0), None);
    // Ten of the queue are sent, in buffers of two: 960 bytes more for each buffer, so that seven and a chunk are enough.
    assert_eq!(segments(7, 0), Some(Segments::New(47)));
    let sent = Sub {
        queued: 7,
        full: true,
        ..SUB
    };
    assert_eq!(given(sent, 0), Some(Segments::New(24)));
    // At 4.2 MB/s a buffer has two segments as well, at 4.4 MB/s three.
    for (rate, burst) in [(4_200_000, 24), (4_400_000, 47)] {
        let found = given(Sub { rate, ..sent }, 0);
        assert_eq!(found, Some(Segments::New(burst)), "{rate}");
    }
}

/// Linux `mptcp_sendmsg` and `sk_stream_is_writeable`: 4096 bytes and twice 46,080 for the subflows.
#[test]
fn the_application_writes_chunks_until_the_buffer_is_full_and_waits_for_a_third() {
    let mut scheduler = Scheduler::new(&SchedulerConfig::new(Kind::Linger));
    let mut end = |una, next, written| {
        let queue = SendQueue {
            una,
            next,
            written,
            ..CHUNKS
        };
        scheduler.buffer_end(&[SUB, SUB], &queue)
    };
    // 65,800 bytes leave room to begin a third chunk.
    assert_eq!(end(0, 0, 10_000), 71);
    // 71,400 of 96,256 bytes, and 63,000.
    assert_eq!(end(20, 47, 10_000), 71);
    assert_eq!(end(26, 47, 10_000), 117);
    // The application stops, and writes again.
    assert_eq!(end(110, 111, 111), 111);
    assert_eq!(end(111, 111, 120), 120);
}

/// Linux `tcp_should_expand_sndbuf`: buffers for windows of 100 and 75 packets are 460,800 and 345,600 bytes, at first 46,080.
#[test]
fn a_send_buffer_grows_while_the_application_waits_and_the_window_is_not_full() {
    let slow = Sub { window: 75, ..SUB };
    let fast = Sub { window: 100, ..SUB };
    let full = Sub { full: true, ..slow };
    let queue = |una| SendQueue {
        una,
        next: una,
        written: 10_000,
        ..CHUNKS
    };
    // Segments that are written beyond those that are acknowledged.
    let room =
        |scheduler: &mut Scheduler, una| scheduler.buffer_end(&[slow, fast], &queue(una)) - una;
    let mut scheduler = Scheduler::new(&SchedulerConfig::new(Kind::Linger));
    // The application has just written, and nobody has woken it up since.
    assert_eq!(room(&mut scheduler, 0), 71);
    scheduler.note_pushed(0, &slow, 1400);
    assert_eq!(room(&mut scheduler, 0), 71);
    // Now it waits. One subflow fills its window, the other does not.
    scheduler.note_pushed(0, &full, 1400);
    scheduler.note_pushed(1, &fast, 1400);
    assert_eq!(room(&mut scheduler, 0), 375);
    assert_eq!(room(&mut scheduler, 0), 375);
    scheduler.note_pushed(0, &slow, 1400);
    assert_eq!(room(&mut scheduler, 0), 585);
    // A third is free: it writes again, and no buffer grows before the next ACK.
    assert_eq!(room(&mut scheduler, 200), 595);
    scheduler.note_pushed(1, &Sub { window: 300, ..SUB }, 1400);
    assert_eq!(room(&mut scheduler, 200), 595);
}

/// Linux `__mptcp_sync_sndbuf`: what a removed subflow's buffer held is not there any more. Windows of 100 and 10 packets have
/// room for 460,800 and 46,080 bytes.
#[test]
fn the_buffer_of_a_removed_subflow_goes_with_it() {
    let large = Sub { window: 100, ..SUB };
    let mut scheduler = with_buffers(&[large, SUB]);
    let removed = Sub {
        established: false,
        usable: false,
        ..large
    };
    let queue = SendQueue {
        written: 10_000,
        ..CHUNKS
    };
    let mut end = |subs: &[Sub], una| {
        scheduler.buffer_end(
            subs,
            &SendQueue {
                una,
                next: una,
                ..queue
            },
        )
    };
    // 511 kB and 50 kB, each up to the end of a chunk.
    assert_eq!(end(&[large, SUB], 0), 375);
    let (una, end) = (1000, end(&[removed, SUB], 1000));
    assert_eq!(end - una, 52);
}

/// ECF (Lim et al. 2017, algorithm 1): the last segments of a file wait for the fast subflow; a long backlog does not.
#[test]
fn the_end_of_a_file_waits_for_the_fast_subflow() {
    let fast = Sub { full: true, ..SUB };
    let slow = Sub {
        srtt_us8: 17_000,
        ..SUB
    };
    let pick = |written| {
        let queue = SendQueue {
            now_ns: 0,
            una: 95,
            next: 100,
            written,
            window_end: 10_000,
            mss: 1400,
        };
        Scheduler::new(&SchedulerConfig::new(Kind::Ecf)).pick(&[fast, slow], &queue)
    };
    let segments = Segments::New(1);
    // 1 + 10/10 round trips of the fast subflow are 16 ms, 1 + 12/10 are 17.6 ms; one of the slow subflow is 17 ms.
    assert_eq!(pick(110), None);
    assert_eq!(
        pick(112),
        Some(Assignment {
            subflow: 1,
            segments
        })
    );
}

#[test]
fn a_subflow_is_penalised_for_a_faster_one_and_not_for_one_that_is_as_fast() {
    let slower = Sub {
        srtt_us8: 8001,
        ..SUB
    };
    assert!(must_penalise(&[SUB, slower], 0, 1));
    assert!(!must_penalise(&[slower, SUB], 0, 1));
    assert!(!must_penalise(&[SUB, SUB], 0, 1));
    assert!(!must_penalise(&[SUB, slower], 1, 1));
}

#[test]
fn thresholds_that_a_scheduler_orders_are_compared() {
    let blest = SchedulerConfig::new(Kind::Blest);
    assert_eq!(blest.check(), Ok(()));
    let equal = blest.with("min_lambda", 1200).with("max_lambda", 1200);
    assert_eq!(equal.check(), Ok(()));
    let (wrong, why) = equal.with("min_lambda", 1201).check().unwrap_err();
    assert_eq!(wrong, "min_lambda");
    assert_eq!(why, "1.201 is more than max_lambda, 1.2");
    assert_eq!(SchedulerConfig::new(Kind::RoundRobin).check(), Ok(()));
}

/// Where only one subflow has room, one scheduler is asked and the other is told; they must not differ afterwards.
#[test]
fn a_scheduler_that_takes_any_room_need_not_be_asked_about_the_only_choice() {
    let queue = SendQueue {
        now_ns: 0,
        una: 0,
        next: 100,
        written: 10_000,
        window_end: 10_000,
        mss: 1400,
    };
    let round_robin = SchedulerConfig::new(Kind::RoundRobin);
    for config in [
        SchedulerConfig::new(Kind::MinRtt),
        round_robin,
        round_robin.with("num_segments", 3),
    ] {
        let (mut asked, mut told) = (Scheduler::new(&config), Scheduler::new(&config));
        assert!(asked.takes_any_room);
        let mut rng = Rng::new(5, 0, "test", "only choice");
        let mut counts = [0; 4];
        for _ in 0..5000 {
            let subs: Vec<Sub> = (0..3_u32)
                .map(|i| Sub {
                    full: rng.below(3) > 0,
                    srtt_us8: 8000 + 160 * i,
                    ..SUB
                })
                .collect();
            let room: Vec<usize> = (0..3).filter(|&i| !subs[i].full).collect();
            counts[room.len()] += 1;
            if let [subflow] = room[..] {
                let segments = Segments::New(1);
                for _ in 0..rng.below(8) {
                    let picked = asked.pick(&subs, &queue);
                    assert_eq!(picked, Some(Assignment { subflow, segments }));
                    told.note_only_choice(subflow);
                }
            } else {
                let picked = asked.pick(&subs, &queue);
                assert_eq!(picked, told.pick(&subs, &queue), "{config}: {room:?}");
                assert_eq!(picked.is_none(), room.is_empty());
            }
        }
        assert!(counts.iter().all(|&n| n > 100), "{counts:?}");
    }
    let waits = round_robin.with("cwnd_limited", 0);
    assert!(!Scheduler::new(&waits).takes_any_room);
}
