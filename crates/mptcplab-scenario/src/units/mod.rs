//! Numbers with units: how scenarios write them, and how messages show them.

mod decimal;
mod dimension;
pub(crate) mod display;
mod meant;
mod percent;
mod quantity;
mod queue;
mod span;

#[cfg(test)]
mod tests;

pub(crate) use dimension::{ARRIVALS, DURATION, LONG_DURATION, PACKETS, RATE, SIZE, UnitError};
pub use dimension::{duration_ns, rate_bps};
pub(crate) use percent::percent;
pub(crate) use quantity::Quantity;
pub(crate) use queue::{QueueSize, queue};
pub(crate) use span::{period, span};
