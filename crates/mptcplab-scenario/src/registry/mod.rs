//! Congestion controls and packet schedulers: names and parameters, checked against the registered declarations.

pub(crate) mod algorithm;
pub(crate) mod parameters;
pub(crate) mod scheduler;
