//! The file as it was written: a tree of values with their places, the changes of the command line, and typed access to
//! tables by their declarations.

pub(crate) mod overrides;
mod table;
mod unsupported;
mod value;

pub use overrides::Overrides;
pub(crate) use table::{Item, Res, Table, example};
pub use unsupported::unsupported_setting;
pub(crate) use value::{Entry, Kind, Value, parse_document};
