//! Declarations of schedulers: name, parameters and documentation. The scenario format, the commands and the reference pages are
//! generated from them.

use mptcplab_cc::ParamSpec;
use std::fmt;

/// Name, parameters and documentation of a scheduler.
#[derive(Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line for tables.
    pub title: &'static str,
    /// (Heading, text), as in the header of an algorithm.
    pub sections: Vec<(&'static str, &'static str)>,
    /// Parameters, at most [`MAX_PARAMS`].
    pub params: Vec<ParamSpec>,
    /// Two parameters of which the first must not exceed the second.
    pub ordered: Option<(&'static str, &'static str)>,
}

/// Most parameters of a scheduler.
pub const MAX_PARAMS: usize = 6;

/// A scheduler with the values of its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerConfig {
    declaration: &'static Declaration,
    values: [u64; MAX_PARAMS],
}

/// With every parameter at its default.
impl From<&'static Declaration> for SchedulerConfig {
    fn from(declaration: &'static Declaration) -> Self {
        let mut values = [0; MAX_PARAMS];
        for (value, spec) in values.iter_mut().zip(&declaration.params) {
            *value = spec.default;
        }
        Self {
            declaration,
            values,
        }
    }
}

impl SchedulerConfig {
    /// Name in scenario files.
    pub fn name(&self) -> &'static str {
        self.declaration.name
    }

    /// The declaration of the scheduler.
    pub fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    /// With another raw value of a parameter.
    ///
    /// # Panics
    /// If the scheduler has no such parameter or the value is out of range: a scenario's values are checked before.
    #[must_use]
    pub fn with(mut self, name: &str, raw: u64) -> Self {
        let index = self.index(name);
        let spec = &self.declaration.params[index];
        assert!((spec.min..=spec.max).contains(&raw), "{name} = {raw}");
        self.values[index] = raw;
        self
    }

    /// Whether the values agree with each other.
    ///
    /// # Errors
    /// The parameter that is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let Some((low, high)) = self.declaration.ordered else {
            return Ok(());
        };
        if self.raw(low) <= self.raw(high) {
            return Ok(());
        }
        let shown = |name: &str| {
            let index = self.index(name);
            self.declaration.params[index].format(self.values[index])
        };
        let message = format!("{} is more than {high}, {}", shown(low), shown(high));
        Err((low, message))
    }

    /// Raw value of a parameter.
    ///
    /// # Panics
    /// If the scheduler does not declare it.
    pub fn raw(&self, name: &str) -> u32 {
        // A test checks that declared maxima fit 32 bits.
        self.values[self.index(name)] as u32
    }

    /// Whether a parameter is true.
    ///
    /// # Panics
    /// If the scheduler does not declare it.
    pub fn is_set(&self, name: &str) -> bool {
        self.raw(name) != 0
    }

    fn index(&self, name: &str) -> usize {
        let params = &self.declaration.params;
        params
            .iter()
            .position(|p| p.name == name)
            .unwrap_or_else(|| panic!("{} has no parameter {name}", self.name()))
    }
}

/// As a scenario would write it: the name, and in brackets the parameters that differ from their default.
impl fmt::Display for SchedulerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params = self.declaration.params.iter().zip(self.values);
        let changed: Vec<String> = params
            .filter(|(spec, raw)| *raw != spec.default)
            .map(|(spec, raw)| format!("{}={}", spec.name, spec.format(raw)))
            .collect();
        f.write_str(self.name())?;
        if changed.is_empty() {
            return Ok(());
        }
        write!(f, "({})", changed.join(", "))
    }
}

/// A parameter that is true or false.
pub(super) fn switch(name: &'static str, default: bool, doc: &'static str) -> ParamSpec {
    ParamSpec {
        name,
        default: u64::from(default),
        min: 0,
        max: 1,
        scale: 1,
        values: vec![("false", 0), ("true", 1)],
        doc,
    }
}

/// A parameter that is a number; raw values are `scale` times those of a scenario.
pub(super) fn number(
    name: &'static str,
    (default, min, max): (u64, u64, u64),
    scale: u64,
    doc: &'static str,
) -> ParamSpec {
    ParamSpec {
        name,
        default,
        min,
        max,
        scale,
        values: Vec::new(),
        doc,
    }
}
