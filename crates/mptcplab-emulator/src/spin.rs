//! Decides when to spin on the clock instead of sleeping.
//!
//! Spinning makes releases punctual, but the kernel throttles a real-time thread that hardly ever sleeps for tens of
//! milliseconds at a time, so that other threads can run. The thread therefore spins only while its running time, work
//! included, stays within a share of all time.

/// The bucket's depth: credit saved in idle times is at most what accrues in this time, and so is debt. It is long enough
/// for a burst of releases and far below the second over which the kernel limits a real-time thread's share.
const WINDOW_NS: i64 = 20_000_000;

/// A token bucket of running time.
#[derive(Debug)]
pub(crate) struct Spin {
    /// How long before a release to stop sleeping; 0 while spinning is disabled.
    ahead_ns: u64,
    /// The same while spinning is enabled.
    enabled_ns: u64,
    percent: u64,
    /// Largest credit, and largest debt.
    limit_ns: i64,
    credit_ns: i64,
    refilled_ns: u64,
    spun_ns: u64,
}

impl Spin {
    /// The bucket is full at the time `now_ns`.
    pub(crate) fn new(ahead_ns: u64, percent: u8, now_ns: u64) -> Self {
        let limit_ns = WINDOW_NS * i64::from(percent) / 100;
        let ahead_ns = if percent == 0 { 0 } else { ahead_ns };
        Self {
            ahead_ns,
            enabled_ns: ahead_ns,
            percent: u64::from(percent),
            limit_ns,
            credit_ns: limit_ns,
            refilled_ns: now_ns,
            spun_ns: 0,
        }
    }

    /// Enables or disables spinning.
    pub(crate) fn enable(&mut self, enabled: bool) {
        self.ahead_ns = if enabled { self.enabled_ns } else { 0 };
    }

    /// How long before a release it spins.
    pub(crate) fn ahead_ns(&self) -> u64 {
        self.ahead_ns
    }

    /// How long to sleep when the next release is due in `wait_ns`: 0 to spin at once, less than `wait_ns` to spin later,
    /// or all of `wait_ns` where there is no credit.
    pub(crate) fn sleep_ns(&mut self, wait_ns: u64, now_ns: u64) -> u64 {
        self.refill(now_ns);
        let needed_ns = self.ahead_ns.min(wait_ns);
        if self.credit_ns <= 0 || wait_ns > self.ahead_ns && (self.credit_ns as u64) < needed_ns {
            return wait_ns;
        }
        wait_ns.saturating_sub(self.ahead_ns)
    }

    fn refill(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.refilled_ns);
        let earned_ns =
            (since_ns as u128 * u128::from(self.percent) / 100).min(u128::from(u32::MAX));
        self.refilled_ns = self.refilled_ns.max(now_ns);
        self.credit_ns = (self.credit_ns + earned_ns as i64).min(self.limit_ns);
    }

    /// Takes `ns` of work from the credit.
    pub(crate) fn worked(&mut self, ns: u64) {
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        self.credit_ns = self.credit_ns.saturating_sub(ns).max(-self.limit_ns);
    }

    /// Takes `ns` of spinning from the credit.
    pub(crate) fn spun(&mut self, ns: u64) {
        self.worked(ns);
        self.spun_ns += ns;
    }

    /// Total time spent spinning.
    pub(crate) fn spun_ns(&self) -> u64 {
        self.spun_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A release every `period_ns`, each with `work_ns` of work, for a second, looking every 2 us when spinning: the
    /// time worked and the time spun.
    fn simulate(spin: &mut Spin, period_ns: u64, work_ns: u64) -> (u64, u64) {
        let (mut now, mut worked) = (0, 0);
        while now < SECOND {
            let due = now + period_ns;
            now += work_ns;
            worked += work_ns;
            spin.worked(work_ns);
            while now < due {
                let sleep_ns = spin.sleep_ns(due - now, now);
                let step_ns = if sleep_ns == 0 { 2_000 } else { sleep_ns };
                now += step_ns;
                if sleep_ns == 0 {
                    spin.spun(step_ns);
                }
            }
        }
        (worked, spin.spun_ns())
    }

    #[test]
    fn spinning_and_work_together_keep_to_the_share() {
        // Would spin for 60 of every 80 us: 75 %, with 10 % of work.
        let (worked, spun) = simulate(&mut Spin::new(60_000, 40, 0), 80_000, 8_000);
        // 40 % of a second, and what was saved up at the start: 40 % of 20 ms.
        assert!(
            (395_000_000..=409_000_000).contains(&(worked + spun)),
            "{worked} {spun}"
        );
    }

    #[test]
    fn a_thread_that_works_all_the_time_it_may_does_not_spin() {
        let (_, spun) = simulate(&mut Spin::new(60_000, 40, 0), 100_000, 41_000);
        // What was saved up at the start, and no more.
        assert!(spun <= 10_000_000, "{spun}");
    }

    #[test]
    fn a_thread_with_little_to_do_spins_before_every_release() {
        // 60 us before each of 500 releases.
        let (_, spun) = simulate(&mut Spin::new(60_000, 50, 0), 2_000_000, 10_000);
        assert_eq!(spun, 30_000_000);
    }

    #[test]
    fn it_does_not_spin_while_it_is_not_allowed_to() {
        let mut spin = Spin::new(60_000, 50, 0);
        spin.enable(false);
        assert_eq!((spin.sleep_ns(60_000, 0), spin.ahead_ns()), (60_000, 0));
        spin.enable(true);
        assert_eq!((spin.sleep_ns(60_000, 0), spin.ahead_ns()), (0, 60_000));
    }

    #[test]
    fn a_share_of_zero_means_never() {
        assert_eq!(Spin::new(60_000, 0, 5).sleep_ns(30_000, SECOND), 30_000);
        assert_eq!(Spin::new(0, 50, 5).sleep_ns(30_000, SECOND), 30_000);
    }

    #[test]
    fn it_sleeps_until_shortly_before_the_release() {
        let mut spin = Spin::new(60_000, 50, 0);
        assert_eq!(spin.sleep_ns(1_000_000, 0), 940_000);
        assert_eq!(spin.sleep_ns(60_000, 940_000), 0);
        assert_eq!(spin.sleep_ns(u64::MAX, 1_000_000), u64::MAX - 60_000);
    }
}
