//! Rust errors as Python exceptions: one base class and one subclass per kind.

use crate::sweep::SweepError;
use mptcplab_cc::LoadError;
use mptcplab_trace::parquet::TraceError;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};

create_exception!(
    mptcplab._core,
    MptcplabError,
    PyException,
    "Base of all errors of mptcplab. The text is `what failed: value`, in most cases followed by `hint: what to do`."
);
create_exception!(
    mptcplab._core,
    ScenarioError,
    MptcplabError,
    "The input is wrong: a scenario, an override, a file of vectors."
);
create_exception!(
    mptcplab._core,
    EngineError,
    MptcplabError,
    "A run could not be finished."
);
create_exception!(
    mptcplab._core,
    OutputError,
    MptcplabError,
    "The output cannot be put where it was asked for."
);

/// An error in the user's input.
pub(crate) fn scenario(error: impl std::fmt::Display) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

/// An algorithm's file that cannot be used, or a machine on which it cannot be compiled.
pub(crate) fn algorithm(error: &LoadError) -> PyErr {
    match error {
        LoadError::NoCompiler { .. } | LoadError::Directory { .. } => {
            EngineError::new_err(error.to_string())
        }
        _ => ScenarioError::new_err(error.to_string()),
    }
}

impl From<SweepError> for PyErr {
    fn from(error: SweepError) -> Self {
        match &error {
            SweepError::Cancelled => PyKeyboardInterrupt::new_err(()),
            SweepError::Trace(trace) => OutputError::new_err(format!("{trace}{}", hint(trace))),
            SweepError::Engine { .. } | SweepError::Panic { .. } => {
                EngineError::new_err(error.to_string())
            }
        }
    }
}

fn hint(error: &TraceError) -> &'static str {
    match error {
        TraceError::Exists(_) => {
            "\n\nhint: name a directory that does not exist, or remove this one"
        }
        TraceError::Busy(_) => "\n\nhint: wait until it has ended, or name another directory",
        TraceError::Foreign { .. } => {
            "\n\nhint: move that file elsewhere; the directory is for unfinished runs"
        }
        TraceError::NotOurs { .. } => {
            "\n\nhint: find out who made it and remove it, or name another directory"
        }
        TraceError::OtherColumns { .. } => {
            "\n\nhint: run its scenario again with this version, or use the version that wrote it"
        }
        TraceError::Read { .. } => "\n\nhint: give directories with the tables of a trace",
        TraceError::NoName { .. } | TraceError::Order { .. } => {
            "\n\nhint: this is a bug of mptcplab; please report it with the scenario, its seed and this message"
        }
        TraceError::Io { .. } | TraceError::Parquet { .. } => {
            "\n\nhint: make room there, or name another directory; temporary ones are below $TMPDIR"
        }
    }
}
