//! The provenance of this extension. It is constant for a build, so that traces can be compared byte for byte.

/// Version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Facts about the build: (name, value).
pub(crate) const FACTS: [(&str, &str); 6] = [
    ("version", VERSION),
    ("revision", env!("MPTCPLAB_REVISION")),
    ("rustc", env!("MPTCPLAB_RUSTC")),
    ("target", env!("MPTCPLAB_TARGET")),
    ("profile", env!("MPTCPLAB_PROFILE")),
    ("engine", env!("MPTCPLAB_ENGINE")),
];

/// One line for the column `build` of the trace.
pub(crate) const LINE: &str = env!("MPTCPLAB_BUILD");
