//! Random loss on arrival.

use crate::link::Loss;
use crate::link::rng::{Probability, Rng};

/// A loss process with its state and its stream. The number of draws per packet is fixed, so that the draw of the n-th packet
/// does not depend on what happened to the others.
#[derive(Debug, Clone)]
pub(crate) struct LossProcess {
    kind: Kind,
    rng: Rng,
    /// Drawn ahead: so many packets are not lost, and then one is, or it has not been drawn.
    spared: u64,
    then_lost: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    None,
    Bernoulli(Probability),
    /// Boxed to keep the common kinds small.
    GilbertElliott(Box<Markov>),
}

/// Gilbert-Elliott: two states with a loss probability each (Elliott 1963).
#[derive(Debug, Clone)]
struct Markov {
    bad: bool,
    /// Probability of leaving the state, by state (good, bad).
    leave: [Probability; 2],
    /// Probability of loss, by state.
    loss: [Probability; 2],
}

impl LossProcess {
    pub(crate) fn new(loss: Loss, rng: Rng) -> Self {
        let mut process = Self {
            kind: Kind::None,
            rng,
            spared: 0,
            then_lost: false,
        };
        process.change(loss);
        process
    }

    /// Other parameters from now on; a Gilbert-Elliott process stays in its state. Nothing has been drawn ahead.
    pub(crate) fn change(&mut self, loss: Loss) {
        let bad = matches!(&self.kind, Kind::GilbertElliott(markov) if markov.bad);
        self.kind = match loss {
            Loss::None => Kind::None,
            Loss::Bernoulli { p } => Kind::Bernoulli(Probability::new(p)),
            Loss::GilbertElliott {
                p,
                r,
                loss_good,
                loss_bad,
            } => Kind::GilbertElliott(Box::new(Markov {
                bad,
                leave: [p, r].map(Probability::new),
                loss: [loss_good, loss_bad].map(Probability::new),
            })),
        };
    }

    /// Whether the packet that arrives now is lost.
    #[inline]
    pub(crate) fn is_lost(&mut self) -> bool {
        if self.spared > 0 {
            self.spared -= 1;
            return false;
        }
        if self.then_lost {
            self.then_lost = false;
            return true;
        }
        self.kind.draw(&mut self.rng)
    }

    /// How many of the next packets, at most `most`, are not lost. They have arrived with this call.
    #[inline]
    pub(crate) fn pass(&mut self, most: u64) -> u64 {
        if let Kind::None = self.kind {
            return most;
        }
        // In registers while it draws.
        let (mut rng, mut spared) = (self.rng.clone(), self.spared);
        while spared < most && !self.then_lost {
            self.then_lost = self.kind.draw(&mut rng);
            spared += u64::from(!self.then_lost);
        }
        (self.rng, self.spared) = (rng, spared);
        let passed = self.spared.min(most);
        self.spared -= passed;
        passed
    }
}

impl Kind {
    #[inline]
    fn draw(&mut self, rng: &mut Rng) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(p) => rng.chance(*p),
            Self::GilbertElliott(markov) => markov.is_lost(rng),
        }
    }
}

impl Markov {
    #[inline(never)]
    fn is_lost(&mut self, rng: &mut Rng) -> bool {
        self.bad ^= rng.chance(self.leave[usize::from(self.bad)]);
        rng.chance(self.loss[usize::from(self.bad)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(loss: Loss, n: usize) -> Vec<bool> {
        let mut process = LossProcess::new(loss, Rng::new(11, 0, "test", "loss"));
        (0..n).map(|_| process.is_lost()).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64
    }

    #[test]
    fn bernoulli_loses_its_share() {
        for p in [0.001, 0.02, 0.5] {
            let n = 500_000;
            let sigma = (p * (1.0 - p) / n as f64).sqrt();
            let got = share(&lost(Loss::Bernoulli { p }, n));
            assert!((got - p).abs() < 4.0 * sigma, "p = {p}, got {got}");
        }
        assert_eq!(share(&lost(Loss::Bernoulli { p: 0.0 }, 1000)), 0.0);
        assert_eq!(share(&lost(Loss::Bernoulli { p: 1.0 }, 1000)), 1.0);
        assert_eq!(share(&lost(Loss::None, 1000)), 0.0);
    }

    #[test]
    fn packets_that_pass_together_are_those_that_would_pass_one_by_one() {
        let bursts = Loss::GilbertElliott {
            p: 0.05,
            r: 0.3,
            loss_good: 0.01,
            loss_bad: 0.6,
        };
        for loss in [Loss::None, Loss::Bernoulli { p: 0.08 }, bursts] {
            let one_by_one = lost(loss, 20_000);
            let mut process = LossProcess::new(loss, Rng::new(11, 0, "test", "loss"));
            let (mut together, mut most) = (Vec::new(), 0);
            while together.len() < one_by_one.len() {
                together.push(process.is_lost());
                let passed = process.pass(most);
                assert!(passed <= most);
                together.extend((0..passed).map(|_| false));
                most = (most + 5) % 23;
            }
            together.truncate(one_by_one.len());
            assert_eq!(together, one_by_one);
        }
    }

    #[test]
    fn gilbert_elliott_loses_its_stationary_share_in_bursts() {
        // Share of time in the bad state p / (p + r) = 0.01 / 0.21; loss 0.8 there, 0.002 in the good state:
        // (0.01 * 0.8 + 0.2 * 0.002) / 0.21 = 0.04.
        let lost = lost(
            Loss::GilbertElliott {
                p: 0.01,
                r: 0.2,
                loss_good: 0.002,
                loss_bad: 0.8,
            },
            1_000_000,
        );
        assert!((share(&lost) - 0.04).abs() < 0.0015, "{}", share(&lost));
        // A loss follows a loss with nearly (1 - r) * 0.8 = 0.64, far above the mean.
        let pairs = lost.windows(2).filter(|w| w[0]).collect::<Vec<_>>();
        let again = pairs.iter().filter(|w| w[1]).count() as f64 / pairs.len() as f64;
        assert!((0.55..0.70).contains(&again), "{again}");
    }

    #[test]
    fn transition_comes_before_loss() {
        // The first packet moves to the bad state and is lost there, the second moves back and is not.
        let loss = Loss::GilbertElliott {
            p: 1.0,
            r: 1.0,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        assert_eq!(lost(loss, 4), [true, false, true, false]);
    }

    #[test]
    fn change_keeps_the_state() {
        let model = |p, r| Loss::GilbertElliott {
            p,
            r,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let mut process = LossProcess::new(model(1.0, 0.0), Rng::new(1, 0, "test", "change"));
        assert!(process.is_lost());
        process.change(model(0.0, 0.0));
        assert!(process.is_lost(), "still in the bad state");
        process.change(Loss::None);
        assert!(!process.is_lost());
    }
}
