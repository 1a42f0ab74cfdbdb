//! The provenance of this program, with the same facts as in the simulator's traces.

/// Version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The `build` column of the trace.
pub(crate) const LINE: &str = env!("MPTCPLAB_BUILD");
