//! Overrides as the Python side sends them: a JSON object of what is changed, and nothing else.

use crate::errors;
use mptcplab_scenario::Overrides;
use pyo3::PyResult;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    cc: Option<Vec<String>>,
    reps: Option<u32>,
    seed: Option<u64>,
    profile: Option<Vec<String>>,
    duration: Option<String>,
    set: Vec<(String, String)>,
}

pub(crate) fn from_json(json: &str) -> PyResult<Overrides> {
    let given: Given = serde_json::from_str(json)
        .map_err(|error| errors::scenario(format!("overrides: {error}: {json}")))?;
    let Given {
        cc,
        reps,
        seed,
        profile,
        duration,
        set,
    } = given;
    Ok(Overrides {
        cc,
        reps,
        seed,
        profile,
        duration,
        set,
    })
}
