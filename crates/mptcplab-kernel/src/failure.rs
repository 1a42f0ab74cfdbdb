//! The error that the program prints: what failed, and what to do.

use std::fmt;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `what failed: value`.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// Exit code of the process.
    pub(crate) code: u8,
}

/// Exit code of an error.
pub(crate) const ERROR: u8 = 2;
/// Exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            code: ERROR,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Converts errors whose text already includes their hint, if they have one.
macro_rules! plain {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self { Self::new(error.to_string()) }
        })*
    };
}
plain!(
    mptcplab_scenario::Error,
    mptcplab_emulator::Error,
    mptcplab_bpf::LoadError,
    mptcplab_cc::LoadError,
    mptcplab_bpf::tracer::TracerError,
    mptcplab_trace::parquet::TraceError
);

/// Converts errors that provide their hint separately.
macro_rules! hinted {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let hint = error.hint().map(str::to_owned);
                Self { hint, ..Self::new(error.to_string()) }
            }
        })*
    };
}
hinted!(mptcplab_net::NetError, mptcplab_doctor::Error);
