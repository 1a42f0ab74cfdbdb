//! Errors of kernel interfaces, which name the call, its arguments and a remedy.

use std::fmt;
use std::io;

/// Shorthand for results of this crate.
pub type Result<T, E = NetError> = std::result::Result<T, E>;

/// A refusal by the kernel, an answer that this crate does not understand, or an invalid argument.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The kernel refused a call.
    #[error("{what}: {source}{}", Explained(.message))]
    Kernel {
        /// What was tried, with its arguments.
        what: String,
        source: io::Error,
        /// The kernel's own explanation, where it gave one.
        message: Option<String>,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The kernel's answer does not have the expected form.
    #[error("{what}: the kernel's answer cannot be decoded: {detail}")]
    Malformed {
        what: String,
        /// What is wrong with the answer.
        detail: String,
    },
    /// An argument that this crate refuses before it asks the kernel.
    #[error("{what}: {value}: {expected}")]
    Invalid {
        /// Which argument of which call.
        what: String,
        value: String,
        /// What is expected instead.
        expected: String,
    },
    /// The connection is plain TCP, from its beginning or after a fallback, so it has no subflows.
    #[error("{what}: the connection is plain TCP, not MPTCP")]
    Fallback { what: String },
    /// The set of subflows changed each time while it was read.
    #[error(
        "{what}: the connection's subflows changed during each of {tries} attempts to read them"
    )]
    Unsteady { what: String, tries: u32 },
}

impl NetError {
    pub(crate) fn kernel(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Kernel {
            what: what.into(),
            source: source.into(),
            message: None,
            hint: None,
        }
    }

    pub(crate) fn malformed(what: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self::Malformed {
            what: what.into(),
            detail: detail.to_string(),
        }
    }

    pub(crate) fn invalid(
        what: impl Into<String>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Invalid {
            what: what.into(),
            value: value.to_string(),
            expected: expected.into(),
        }
    }

    /// Adds what to do about it, unless a better hint is there already.
    pub(crate) fn with_hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Kernel { hint, .. } = &mut self {
            hint.get_or_insert_with(|| text.into());
        }
        self
    }

    /// What to do about it, for the `hint:` line under the message.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Kernel { hint, .. } => hint.as_deref(),
            Self::Fallback { .. } => Some(
                "check that both sockets use MPTCP and that net.mptcp.enabled is 1 on both sides",
            ),
            _ => None,
        }
    }

    /// The error number of a refused call, such as `libc::EPERM`.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// Displays the kernel's explanation in parentheses, or nothing.
struct Explained<'a>(&'a Option<String>);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(text) => write!(f, " (the kernel says: {text})"),
            None => Ok(()),
        }
    }
}
