//! The algorithms in `algorithms/` at the time when this crate was built, and those that were added since, with their
//! parameters and fields.

use crate::ffi;
use std::ffi::{CStr, c_char};
use std::ops::RangeInclusive;
use std::sync::{OnceLock, PoisonError, RwLock};

/// The oldest kernel that the eBPF build of every algorithm loads on, as `make test-kernels` shows with it and the
/// newest.
pub const OLDEST_KERNEL: (u32, u32) = (6, 1);

/// An algorithm as the build script writes it, or as it was compiled at run time.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) sections: &'static [(&'static str, &'static str)],
    pub(crate) incomplete: Option<&'static str>,
    pub(crate) source: &'static str,
    pub(crate) file: Option<(&'static str, &'static str)>,
    pub(crate) raw: *const ffi::RawAlgorithm,
}

/// Algorithms that were added at run time, the newest last.
static ADDED: RwLock<Vec<&'static Algorithm>> = RwLock::new(Vec::new());

/// A congestion control algorithm: one C file of `algorithms/`, or one that [`crate::load`] has compiled.
#[derive(Debug)]
pub struct Algorithm {
    name: &'static str,
    title: &'static str,
    sections: &'static [(&'static str, &'static str)],
    incomplete: Option<&'static str>,
    source: &'static str,
    file: Option<(&'static str, &'static str)>,
    params: Vec<ParamSpec>,
    fields: Vec<FieldSpec>,
    pub(crate) raw: &'static ffi::RawAlgorithm,
}

/// A parameter that an algorithm declares with `CC_PARAMS`.
///
/// Values are raw integers; `scale` is the raw value of 1.0 (1 for plain integers, 65536 for Q16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamSpec {
    /// Name, as written in a scenario.
    pub name: &'static str,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    /// Raw value of 1.0.
    pub scale: u64,
    /// Names of the first values of the range with their raw values; what lies above them is numbers.
    pub values: Vec<(&'static str, u64)>,
    /// One sentence with unit and source.
    pub doc: &'static str,
}

/// A parameter with an unknown name or a bad value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No such parameter.
    #[error("{algorithm} has no parameter {name} (it has: {known})")]
    Unknown {
        algorithm: String,
        name: String,
        /// Parameters that exist, separated by commas, or `none`.
        known: String,
    },
    /// The value does not fit.
    #[error("parameter {name} of {algorithm}: {value} (wanted {wanted})")]
    BadValue {
        algorithm: String,
        name: String,
        value: String,
        /// The values that can be written.
        wanted: String,
    },
}

/// A member of an algorithm's per-subflow state that test vectors may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    pub name: &'static str,
    /// Unit of the value that [`crate::Sock::field`] returns.
    pub unit: &'static str,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) num: u64,
    pub(crate) den: u64,
}

/// The algorithms of the build, sorted by name.
pub fn algorithms() -> &'static [Algorithm] {
    static ALL: OnceLock<Vec<Algorithm>> = OnceLock::new();
    ALL.get_or_init(load)
}

/// The algorithms that were added at run time, sorted by name.
pub fn added() -> Vec<&'static Algorithm> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The algorithm of this name.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    let all = algorithms();
    match all.binary_search_by(|a| a.name.cmp(name)) {
        Ok(i) => Some(&all[i]),
        Err(_) => added().into_iter().find(|a| a.name == name),
    }
}

/// Adds an algorithm, in place of an earlier one of its name.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn add(algorithm: Algorithm) -> &'static Algorithm {
    let algorithm: &'static Algorithm = Box::leak(Box::new(algorithm));
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    match added.binary_search_by(|a| a.name.cmp(algorithm.name)) {
        Ok(i) => added[i] = algorithm,
        Err(i) => added.insert(i, algorithm),
    }
    algorithm
}

impl Algorithm {
    pub(crate) fn new(source: Source) -> Self {
        // SAFETY: the pointer is to the immutable static object of CC_REGISTER, in this program or in a library that is
        // never closed.
        let raw: &'static ffi::RawAlgorithm = unsafe { &*source.raw };
        // SAFETY: `name` is a string literal of CC_REGISTER.
        let registered = unsafe { string(raw.name) };
        assert_eq!(
            registered.replace('_', "-"),
            source.name,
            "CC_REGISTER must use the file's name"
        );
        Self {
            name: source.name,
            title: source.title,
            sections: source.sections,
            incomplete: source.incomplete,
            source: source.source,
            file: source.file,
            params: load_params(raw),
            fields: load_fields(raw),
            raw,
        }
    }

    /// Name: the stem of the C file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line for tables.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// The header comment: (heading, text), in the fixed order of `algorithms/template.c`.
    pub fn sections(&self) -> &'static [(&'static str, &'static str)] {
        self.sections
    }

    /// What the header comment lacks, if it lacks something: the file is a draft then.
    pub fn incomplete(&self) -> Option<&'static str> {
        self.incomplete
    }

    /// A digest of its C file and of all headers of the folder that the file can reach in any build. It changes with any of
    /// these, and with nothing else.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// Path and text of the C file that it was compiled from at run time; `None` for one of the build.
    pub fn file(&self) -> Option<(&'static str, &'static str)> {
        self.file
    }

    /// Whether it reads its siblings through the connection's table.
    #[inline]
    pub fn coupled(&self) -> bool {
        self.raw.coupled != 0
    }

    /// Whether it is rate-based: `cong_control` handles the whole ACK, instead of `cong_avoid`.
    #[inline]
    pub fn has_cong_control(&self) -> bool {
        self.raw.ops.cong_control.is_some()
    }

    /// The first hook that Linux demands and that it lacks; algorithms from files that lack one are refused.
    pub fn missing_hook(&self) -> Option<&'static str> {
        self.raw.ops.missing()
    }

    /// Whether it has the hook `pkts_acked`.
    #[inline]
    pub fn has_pkts_acked(&self) -> bool {
        self.raw.ops.pkts_acked.is_some()
    }

    /// Whether it has the hook `set_state`.
    pub fn has_set_state(&self) -> bool {
        self.raw.ops.set_state.is_some()
    }

    /// Whether it has the hook `cwnd_event`.
    #[inline]
    pub fn has_cwnd_event(&self) -> bool {
        self.raw.ops.cwnd_event.is_some()
    }

    pub fn params(&self) -> &[ParamSpec] {
        &self.params
    }

    /// Parameter of this name.
    ///
    /// # Errors
    /// [`ParamError::Unknown`] naming the parameters that exist.
    pub fn param(&self, name: &str) -> Result<&ParamSpec, ParamError> {
        self.params
            .iter()
            .find(|p| p.name == name)
            .ok_or_else(|| ParamError::Unknown {
                algorithm: self.name.to_owned(),
                name: name.to_owned(),
                known: match self.params.as_slice() {
                    [] => "none".to_owned(),
                    some => some.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                },
            })
    }

    /// The raw value of a parameter written as text: one of its names or a decimal number.
    ///
    /// # Errors
    /// [`ParamError`] naming the values that can be written.
    pub fn parse_param(&self, name: &str, text: &str) -> Result<u64, ParamError> {
        let spec = self.param(name)?;
        spec.parse(text)
            .ok_or_else(|| self.bad_value(spec, text.to_owned()))
    }

    /// The raw values of all parameters in the order of [`Self::params`], the given ones and the others' defaults.
    ///
    /// # Errors
    /// [`ParamError`] for a parameter that does not exist or a value out of its range.
    pub fn raw_params(
        &self,
        given: &[(String, u64)],
    ) -> Result<[u32; ffi::MAX_PARAMS], ParamError> {
        let mut values = [0u32; ffi::MAX_PARAMS];
        for (value, spec) in values.iter_mut().zip(self.params()) {
            *value = self.check_param(spec.name, spec.default)?.1;
        }
        for (name, raw) in given {
            let (index, value) = self.check_param(name, *raw)?;
            values[index] = value;
        }
        Ok(values)
    }

    /// Members of the per-subflow state that may be read by name.
    pub fn fields(&self) -> &[FieldSpec] {
        &self.fields
    }

    /// Checks a raw value.
    pub(crate) fn check_param(&self, name: &str, raw: u64) -> Result<(usize, u32), ParamError> {
        let spec = self.param(name)?;
        let index = self.params.iter().position(|p| p.name == name).unwrap_or(0);
        match u32::try_from(raw) {
            Ok(value) if (spec.min..=spec.max).contains(&raw) => Ok((index, value)),
            _ => Err(self.bad_value(spec, spec.format(raw))),
        }
    }

    fn bad_value(&self, spec: &ParamSpec, value: String) -> ParamError {
        ParamError::BadValue {
            algorithm: self.name.to_owned(),
            name: spec.name.to_owned(),
            value,
            wanted: spec.wanted(),
        }
    }
}

impl ParamSpec {
    /// A raw value as a person writes it.
    pub fn format(&self, raw: u64) -> String {
        if let Some((name, _)) = self.values.iter().find(|(_, v)| *v == raw) {
            return (*name).to_owned();
        }
        decimal(raw, self.scale)
    }

    /// The values that can be written: `sqrt, fair`, or `0.5 to 0.9`, or both.
    pub fn range(&self) -> String {
        let names: Vec<&str> = self.values.iter().map(|(name, _)| *name).collect();
        let numbers = self.numbers();
        let numbers = self.has_numbers().then(|| {
            format!(
                "{} to {}",
                self.format(*numbers.start()),
                self.format(*numbers.end())
            )
        });
        match (names.as_slice(), numbers) {
            ([], numbers) => numbers.unwrap_or_default(),
            (names, None) => names.join(", "),
            (names, Some(numbers)) => format!("{}, or {numbers}", names.join(", ")),
        }
    }

    /// [`Self::range`] with its kind, for an error.
    pub fn wanted(&self) -> String {
        let kind = if self.values.is_empty() {
            "a number from"
        } else if !self.has_numbers() {
            "one of:"
        } else {
            "one of these names or a number:"
        };
        format!("{kind} {}", self.range())
    }

    /// Whether some of its values are written as numbers.
    pub fn has_numbers(&self) -> bool {
        !self.numbers().is_empty()
    }

    /// Raw values that are written as numbers.
    fn numbers(&self) -> RangeInclusive<u64> {
        self.min + self.values.len() as u64..=self.max
    }

    /// The raw value of what a person writes, one of the names or a decimal number; `None` if it does not fit.
    pub fn parse(&self, text: &str) -> Option<u64> {
        let named = self.values.iter().find(|(name, _)| *name == text);
        let number = || parse_scaled(text, self.scale).filter(|raw| self.numbers().contains(raw));
        named.map(|&(_, raw)| raw).or_else(number)
    }
}

/// The shortest decimal number that is read as this raw value; nine digits tell any scale's values apart.
fn decimal(raw: u64, scale: u64) -> String {
    let rounded = |digits: u32| {
        let power = 10u128.pow(digits);
        let scaled = (u128::from(raw) * power + u128::from(scale) / 2) / u128::from(scale);
        match digits {
            0 => scaled.to_string(),
            _ => format!(
                "{}.{:0width$}",
                scaled / power,
                scaled % power,
                width = digits as usize
            ),
        }
    };
    (0..9)
        .map(rounded)
        .find(|text| parse_scaled(text, scale) == Some(raw))
        .unwrap_or_else(|| rounded(9))
}

/// `12`, `0.5`: a decimal number times `scale`, rounded to the nearest raw value.
fn parse_scaled(text: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 12 {
        return None;
    }
    if scale == 1 && !fraction.is_empty() {
        return None;
    }
    let power = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let all: u128 = u128::from(whole.parse::<u64>().ok()?) * power
        + format!("0{fraction}").parse::<u128>().ok()?;
    u64::try_from((all * u128::from(scale) + power / 2) / power).ok()
}

fn load() -> Vec<Algorithm> {
    let sources: Vec<Source> = Vec::from(include!(concat!(env!("OUT_DIR"), "/registry.rs")));
    sources.into_iter().map(Algorithm::new).collect()
}

fn load_params(raw: &'static ffi::RawAlgorithm) -> Vec<ParamSpec> {
    // SAFETY: cc.h declares the table with one entry more than it can have parameters, so the last has no name.
    let table = unsafe { terminated(raw.params, |p| p.name.is_null()) };
    table
        .iter()
        .map(|p| {
            // SAFETY: the strings are literals of CC_PARAMS; `names` may be null.
            let (name, help, names) = unsafe {
                (
                    string(p.name),
                    string(p.help),
                    (!p.names.is_null()).then(|| string(p.names)),
                )
            };
            let scale = p.scale.max(1);
            let raw = |value: f64| (value * f64::from(scale)).round() as u64;
            ParamSpec {
                name,
                default: raw(p.initial),
                min: raw(p.min),
                max: raw(p.max),
                scale: scale.into(),
                values: names.map_or_else(Vec::new, |n| n.split('|').zip(raw(p.min)..).collect()),
                doc: help,
            }
        })
        .collect()
}

fn load_fields(raw: &'static ffi::RawAlgorithm) -> Vec<FieldSpec> {
    // SAFETY: cc.h declares the table with one entry more than it can have members, so the last has no name.
    let table = unsafe { terminated(raw.fields, |f| f.name.is_null()) };
    table
        .iter()
        .map(|f| FieldSpec {
            // SAFETY: the strings are literals of CC_FIELDS.
            name: unsafe { string(f.name) },
            // SAFETY: as above.
            unit: unsafe { string(f.unit) },
            offset: f.offset as usize,
            size: f.size as usize,
            num: f.num.max(1),
            den: f.den.max(1),
        })
        .collect()
}

/// The entries before the terminator.
///
/// # Safety
/// `first` points to an immutable static array with an entry for which `end` holds.
unsafe fn terminated<T>(first: *const T, end: impl Fn(&T) -> bool) -> &'static [T] {
    let mut n = 0;
    // SAFETY: the array goes on at least to its terminator.
    while !end(unsafe { &*first.add(n) }) {
        n += 1;
    }
    // SAFETY: the n entries before the terminator were all read.
    unsafe { std::slice::from_raw_parts(first, n) }
}

/// # Safety
/// `s` is a static NUL-terminated string of ASCII.
unsafe fn string(s: *const c_char) -> &'static str {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(s) }
        .to_str()
        .unwrap_or("(not ASCII)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_numbers_round_to_the_nearest_raw_value() {
        assert_eq!(parse_scaled("0.25", 65536), Some(16384));
        assert_eq!(parse_scaled("12", 1), Some(12));
        assert_eq!(parse_scaled("0.4", 1 << 20), Some(419_430));
        for bad in ["", ".5", "-1", "1e3", "0x10", "1.5.2", " 1"] {
            assert_eq!(parse_scaled(bad, 65536), None, "{bad}");
        }
        assert_eq!(parse_scaled("1.5", 1), None);
        assert_eq!(parse_scaled("99999999999999999999", 65536), None);
    }
    #[test]
    fn a_raw_value_is_written_as_short_as_it_can_be_read_back() {
        for (raw, scale, text) in [
            (12, 1, "12"),
            (45_875, 65_536, "0.7"),
            (58_982, 65_536, "0.9"),
            (2, 65_536, "0.00003"),
            (65_536, 65_536, "1"),
            (419_430, 1 << 20, "0.4"),
            (u64::from(u32::MAX), 1 << 20, "4095.999999"),
        ] {
            assert_eq!(decimal(raw, scale), text);
        }
        for raw in 0..70_000 {
            assert_eq!(parse_scaled(&decimal(raw, 65_536), 65_536), Some(raw));
        }
    }
}
