//! Properties of all schedulers, and of each by itself, over random subflows.

use mptcplab_model::sched::blest::{SrttRange, Window, blest};
use mptcplab_model::sched::delayvar::delayvar;
use mptcplab_model::sched::ecf::ecf;
use mptcplab_model::sched::linger::{Queue, linger};
use mptcplab_model::sched::minrtt::minrtt;
use mptcplab_model::sched::redundant::redundant;
use mptcplab_model::sched::roundrobin::roundrobin;
use mptcplab_model::sched::{
    INFINITE_SSTHRESH, Kind, Path, Scheduler, SchedulerConfig, may_retransmit, must_penalise,
    only_backups, penalised_window,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Sub {
    usable: bool,
    backup: bool,
    loss: bool,
    paced_out: bool,
    cwnd: u32,
    inflight: u32,
    queued: u32,
    ssthresh: u32,
    srtt_us8: u32,
    rttvar_us8: u32,
    rtt_us8: u32,
    min_rtt_us8: u32,
}

impl Path for Sub {
    fn is_usable(&self) -> bool {
        self.usable
    }
    fn is_backup(&self) -> bool {
        self.backup
    }
    fn in_loss(&self) -> bool {
        self.loss
    }
    fn is_open(&self) -> bool {
        !self.loss
    }
    fn waits_for_pacing(&self) -> bool {
        self.paced_out
    }
    fn cwnd(&self) -> u32 {
        self.cwnd
    }
    fn inflight(&self) -> u32 {
        self.inflight
    }
    fn queued(&self) -> u32 {
        self.queued
    }
    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }
    fn srtt_us8(&self) -> u32 {
        self.srtt_us8
    }
    fn rttvar_us8(&self) -> u32 {
        self.rttvar_us8
    }
    fn rtt_us8(&self) -> u32 {
        self.rtt_us8
    }
    fn min_rtt_us8(&self) -> u32 {
        self.min_rtt_us8
    }
    fn is_established(&self) -> bool {
        self.usable
    }
    fn unacked_pkts(&self) -> u32 {
        self.inflight + self.queued
    }
    fn pacing_bytes_per_s(&self) -> u64 {
        Queue::pacing_bytes_per_s(self)
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
        u64::from(self.inflight + self.queued) * 1428
    }
    fn pacing_bytes_per_s(&self) -> u64 {
        u64::from(self.cwnd) * 1428 * 9_600_000 / u64::from(self.srtt_us8)
    }
    fn has_send_memory(&self) -> bool {
        self.inflight + self.queued < 2 * self.cwnd.max(10)
    }
    fn is_stale(&self) -> bool {
        false
    }
}

prop_compose! {
    fn sub()(
        state in prop_oneof![12 => Just(0u8), 1 => Just(1), 1 => Just(2), 1 => Just(3)],
        backup in prop::bool::weighted(0.25),
        cwnd in 1u32..200,
        fill in 0u32..=100,
        queued in prop_oneof![5 => Just(0u32), 1 => 1u32..40],
        ssthresh in prop_oneof![Just(INFINITE_SSTHRESH), 2u32..300],
        srtt_us8 in 800u32..8_000_000,
        rttvar_us8 in 8u32..800_000,
        above_percent in 0u32..300,
        min_rtt_us8 in 800u32..4_000_000,
    ) -> Sub {
        Sub {
            usable: state != 1,
            backup,
            loss: state == 2,
            paced_out: state == 3,
            cwnd,
            inflight: (cwnd + 3) * fill / 100,
            queued,
            ssthresh,
            srtt_us8,
            rttvar_us8,
            rtt_us8: min_rtt_us8 + min_rtt_us8 / 100 * above_percent,
            min_rtt_us8,
        }
    }
}

fn subs() -> impl Strategy<Value = Vec<Sub>> {
    prop::collection::vec(sub(), 1..=8)
}

fn ranges(subs: &[Sub]) -> Vec<SrttRange> {
    let around = |s: &Sub| SrttRange::NONE.with(s.srtt_us8 / 2).with(s.srtt_us8 * 2);
    subs.iter().map(around).collect()
}

/// Available, and no backup while a regular subflow is usable.
fn may_be_picked(subs: &[Sub], pick: usize) -> bool {
    subs[pick].is_available() && subs[pick].backup == only_backups(subs)
}

fn window(bytes: u64) -> Window {
    Window {
        bytes,
        mss: 1428,
        segment: 1428,
    }
}

/// The pick of minRTT for a segment that some subflows have carried.
fn minrtt_again(subs: &[Sub], carried: impl Fn(usize) -> bool) -> Option<usize> {
    Scheduler::new(&SchedulerConfig::new(Kind::MinRtt)).pick_for_reinjection(subs, carried)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_pick_is_available_and_no_backup_while_a_regular_subflow_is_usable(
        subs in subs(), bytes in 1428u64..3_000_000, backlog in 1u32..500, waiting: bool, burst in 1u32..5,
    ) {
        let mut quota = vec![0; subs.len()];
        let mut memory = waiting;
        let picks = [
            minrtt(&subs),
            minrtt_again(&subs, |_| false),
            blest(&subs, &ranges(&subs), &window(bytes), 1200),
            ecf(&subs, backlog, &mut memory, 250),
            delayvar(&subs, 500, backlog),
        ];
        for pick in picks.into_iter().flatten() {
            prop_assert!(may_be_picked(&subs, pick), "{pick} of {subs:?}");
        }
        // Round robin does not look at what is queued, linger not at the window: both assign ahead.
        for limited in [true, false] {
            if let Some(pick) = roundrobin(&subs, &mut quota, burst, limited) {
                prop_assert!(subs[pick].usable && !subs[pick].loss && subs[pick].free() > 0);
                prop_assert_eq!(subs[pick].backup, only_backups(&subs));
            }
        }
        if let Some((pick, given)) = linger(&subs, &mut vec![0; subs.len()], bytes) {
            prop_assert!(subs[pick].usable && subs[pick].has_send_memory());
            prop_assert_eq!(subs[pick].backup, only_backups(&subs));
            prop_assert!((1..=bytes.min(65_428)).contains(&given));
        }
    }

    #[test]
    fn minrtt_picks_the_lowest_srtt_of_its_class(subs in subs()) {
        let candidates = (0..subs.len()).filter(|&i| may_be_picked(&subs, i));
        let wanted = candidates.min_by_key(|&i| (subs[i].srtt_us8, i));
        prop_assert_eq!(minrtt(&subs), wanted);
        prop_assert_eq!(minrtt_again(&subs, |_| false), wanted);
        // Carried by everyone is carried by none.
        prop_assert_eq!(minrtt_again(&subs, |_| true), wanted);
    }

    #[test]
    fn a_segment_goes_to_one_that_has_not_carried_it(subs in subs(), mask: u8) {
        let carried = |i: usize| mask & (1 << i) != 0;
        if let Some(pick) = minrtt_again(&subs, carried) {
            let fresh = (0..subs.len()).any(|i| subs[i].usable && !carried(i));
            prop_assert!(!fresh || !carried(pick));
        }
    }

    #[test]
    fn blest_and_ecf_take_the_pick_of_minrtt_or_wait(
        subs in subs(), bytes in 1428u64..3_000_000, backlog in 1u32..500, waiting: bool, lambda in 0u32..3000,
    ) {
        let pick = minrtt(&subs);
        let chosen = blest(&subs, &ranges(&subs), &window(bytes), lambda);
        prop_assert!(chosen.is_none() || chosen == pick);
        let mut memory = waiting;
        let chosen = ecf(&subs, backlog, &mut memory, 250);
        prop_assert!(chosen.is_none() || chosen == pick);
        // It waits only with the intention to wait.
        prop_assert!(chosen == pick || memory);
    }

    #[test]
    fn blest_with_an_unlimited_window_is_minrtt(subs in subs(), lambda in 0u32..3000) {
        let unlimited = window(u64::MAX);
        prop_assert_eq!(blest(&subs, &ranges(&subs), &unlimited, lambda), minrtt(&subs));
    }

    #[test]
    fn who_waits_has_a_better_subflow_to_wait_for(subs in subs(), bytes in 0u64..200_000, backlog in 1u32..500) {
        let pick = minrtt(&subs);
        let waits = [
            blest(&subs, &ranges(&subs), &window(bytes), 1200),
            ecf(&subs, backlog, &mut false, 250),
        ];
        if let Some(pick) = pick.filter(|_| waits.contains(&None)) {
            let better = |s: &Sub| s.usable && s.backup == only_backups(&subs) && s.srtt_us8 <= subs[pick].srtt_us8;
            prop_assert!((0..subs.len()).any(|i| i != pick && better(&subs[i]) && !subs[i].is_available()));
        }
        if delayvar(&subs, 500, backlog).is_none() && pick.is_some() {
            prop_assert!(subs.iter().any(|s| s.usable && !s.is_available()));
        }
    }

    #[test]
    fn round_robin_gives_everyone_the_same(subs in subs(), burst in 1u32..5) {
        let mut quota = vec![0; subs.len()];
        let backups = only_backups(&subs);
        let takes_part = |s: &Sub| s.usable && !s.loss && !s.paced_out && s.backup == backups && s.free() > 0;
        let members: Vec<usize> = (0..subs.len()).filter(|&i| takes_part(&subs[i])).collect();
        let mut sent = vec![0; subs.len()];
        for _ in 0..3 * burst as usize * members.len() {
            sent[roundrobin(&subs, &mut quota, burst, true).unwrap()] += 1;
        }
        for i in members {
            prop_assert_eq!(sent[i], 3 * burst);
        }
    }

    #[test]
    fn redundant_sends_each_segment_once_on_each_regular_subflow(
        subs in subs(), head in 0u32..50, n in 0u32..20,
    ) {
        let tail = head + n;
        let mut next = vec![0; subs.len()];
        let mut sent = vec![Vec::new(); subs.len()];
        for _ in 0..n + 1 {
            for &(i, segment) in redundant(&subs, &mut next, head, tail).iter() {
                prop_assert!(may_be_picked(&subs, i));
                sent[i].push(segment);
            }
        }
        let all: Vec<u32> = (head..tail).collect();
        for (i, sent) in sent.iter().enumerate() {
            let regular = may_be_picked(&subs, i) && !subs[i].backup;
            if regular {
                prop_assert_eq!(sent, &all);
            } else if !subs[i].backup {
                prop_assert!(sent.is_empty());
            }
        }
        prop_assert!(sent.iter().zip(&subs).filter(|(sent, s)| s.backup && !sent.is_empty()).count() <= 1);
    }

    #[test]
    fn repair_hurts_slower_subflows_only(subs in subs(), mask: u8, fast in 0usize..8) {
        let fast = fast % subs.len();
        let holders = (0..subs.len()).filter(|i| mask & (1 << i) != 0);
        if may_retransmit(&subs, fast, holders.clone()) {
            prop_assert!(!holders.clone().any(|h| h == fast) && holders.clone().count() > 0);
        }
        for h in holders.filter(|&h| must_penalise(&subs, fast, h)) {
            prop_assert!(subs[h].srtt_us8 > subs[fast].srtt_us8);
            let (cwnd, ssthresh) = penalised_window(subs[h].cwnd, subs[h].ssthresh);
            prop_assert!(cwnd >= 1 && cwnd <= subs[h].cwnd && ssthresh >= 2 && ssthresh <= subs[h].ssthresh);
        }
    }
}
