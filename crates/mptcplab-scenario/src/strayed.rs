//! Keys that are known, but in another table than the one in which they stand.

use crate::error::Origin;
use crate::format::{FLOW, Field, LINK, SCENARIO, TCP, TableSpec, Type};

/// A table in which many keys can stand.
struct Place {
    spec: &'static TableSpec,
    /// Whose keys they are, and where that is in a file.
    in_file: &'static str,
    /// What comes before the key in an override.
    path: &'static str,
}

static PLACES: [Place; 4] = [
    Place {
        spec: &SCENARIO,
        in_file: "of the scenario, before the first [table]",
        path: "",
    },
    Place {
        spec: &LINK,
        in_file: "of a link, in [links.NAME]",
        path: "links.NAME.",
    },
    Place {
        spec: &TCP,
        in_file: "of all flows, in [tcp]",
        path: "tcp.",
    },
    Place {
        spec: &FLOW,
        in_file: "of a flow, in [flows.NAME]",
        path: "flows.NAME.",
    },
];

/// The hint about a key that `spec` does not have, if it belongs elsewhere. Tables within these have keys of their own, such as
/// `size` and `arrivals`, for which a key of a link is rarely meant.
pub(crate) fn strayed(key: &str, spec: &TableSpec, origin: Origin) -> Option<String> {
    if !PLACES.iter().any(|place| std::ptr::eq(place.spec, spec)) {
        return None;
    }
    let has = |place: &&Place| place.spec.field(key).is_some_and(is_setting);
    let places = PLACES.iter().filter(has);
    let texts: Vec<String> = match origin {
        Origin::CommandLine => places.map(|place| format!("{}{key}", place.path)).collect(),
        _ => places.map(|place| place.in_file.to_owned()).collect(),
    };
    if texts.is_empty() {
        return None;
    }
    let texts = texts.join(", or ");
    Some(match origin {
        Origin::CommandLine => format!("write the key path {texts}"),
        _ => format!("\"{key}\" is a key {texts}"),
    })
}

/// Neither a table, which stands by itself, nor a name or a description: those are words for other things as well.
fn is_setting(field: &Field) -> bool {
    !matches!(
        field.ty,
        Type::Text | Type::Name | Type::Table(_) | Type::Tables(_) | Type::Map(_)
    )
}
