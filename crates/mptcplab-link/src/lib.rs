//! The link model shared by the simulator and the kernel engine's emulator.
mod config;
pub use config::*;
