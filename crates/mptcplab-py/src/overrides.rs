//! Overrides as the Python side sends them: a JSON object of what is changed, and nothing else.

use crate::errors;
use mptcplab_scenario::Overrides;
use pyo3::PyResult;

pub(crate) fn from_json(json: &str) -> PyResult<Overrides> {
    Overrides::from_json(json).map_err(errors::scenario)
}
