//! Sampled tables as those see them who write them: the declarations of the columns with their borrowed values.

use crate::schema::Column;
#[cfg(feature = "parquet")]
use std::ops::Range;

/// One table with its columns in order.
#[derive(Debug, Clone)]
pub struct TableView<'a> {
    pub name: &'static str,
    pub columns: &'static [Column],
    pub values: Vec<Values<'a>>,
}

#[cfg(feature = "parquet")]
impl TableView<'_> {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.values.first().map_or(0, Values::len)
    }

    /// Some rows of the table.
    pub(crate) fn slice(&self, rows: Range<usize>) -> Self {
        let values = self.values.iter();
        Self {
            values: values.map(|values| values.slice(rows.clone())).collect(),
            ..*self
        }
    }
}

/// All values of one column, borrowed from its table.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// A small code (state, kind).
    U8(&'a [u8]),
    /// A gauge or an index.
    U32(&'a [u32]),
    /// A time or a counter.
    U64(&'a [u64]),
    /// An index that may be -1 for "none".
    I32(&'a [i32]),
}

macro_rules! values_from {
    ($($ty:ty => $variant:ident),*) => {
        $(impl<'a> From<&'a Vec<$ty>> for Values<'a> {
            fn from(column: &'a Vec<$ty>) -> Self { Self::$variant(column) }
        })*
    };
}
values_from!(u8 => U8, u32 => U32, u64 => U64, i32 => I32);

impl Values<'_> {
    #[cfg(feature = "parquet")]
    fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Self::U8(v) => Self::U8(&v[rows]),
            Self::U32(v) => Self::U32(&v[rows]),
            Self::U64(v) => Self::U64(&v[rows]),
            Self::I32(v) => Self::I32(&v[rows]),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I32(v) => v.len(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An index or a code; only called for columns of indices and codes.
    #[cfg(feature = "parquet")]
    pub(crate) fn get(&self, row: usize) -> i64 {
        match self {
            Self::U8(v) => v[row].into(),
            Self::U32(v) => v[row].into(),
            Self::U64(v) => v[row] as i64,
            Self::I32(v) => v[row].into(),
        }
    }
}
