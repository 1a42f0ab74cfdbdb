//! Packet schedulers, checked against their declarations.

use super::parameters::{self, Form};
use crate::document::{Item, Res};
use crate::error::{Diagnostic, join, unknown_name};
use crate::run::Scheduler;

const FORM: Form = Form {
    one: "a scheduler",
    which: "it says which scheduler",
    name: "\"minrtt\"",
    call: "\"minrtt(penalise=false)\"",
    table: "{ name = \"minrtt\", penalise = false }",
};

/// The names of a scheduler's parameters.
pub(crate) fn parameters(name: &str) -> Vec<&'static str> {
    mptcplab_model::sched::find(name).map_or_else(Vec::new, |found| {
        found.params.iter().map(|spec| spec.name).collect()
    })
}

/// The scheduler that a value names.
pub(crate) fn resolve(item: &Item<'_>) -> Res<Scheduler> {
    let written = parameters::read(item, &FORM)?;
    let Some(declaration) = mptcplab_model::sched::find(&written.name) else {
        let names = mptcplab_model::sched::declarations().iter().map(|d| d.name);
        let (message, hint) = unknown_name("scheduler", &written.name, names);
        return Err(
            Diagnostic::new(written.name_value.origin, &item.path, message).maybe_hint(hint),
        );
    };
    let given = parameters::check(
        item,
        declaration.name,
        &declaration.params,
        written.parameters,
    )?;
    let chosen = given
        .iter()
        .fold(Scheduler::from(declaration), |choice, (name, raw)| {
            choice.with(name, *raw)
        });
    chosen.check().map_err(|(name, message)| {
        Diagnostic::new(item.value.origin, join(&item.path, name), message)
            .hint("lower min_lambda or raise max_lambda")
    })?;
    Ok(chosen)
}
