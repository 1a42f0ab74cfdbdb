//! Samples as bytes for typed arrays: the number of rows of each table, then all columns in the order of their declaration.
//!
//! Every number is little-endian. The numbers of rows are `u32`. They and each column are filled up with zeros to a multiple of
//! eight bytes, so that a column of a chunk that begins at such an address is aligned for its type.

use mptcplab_trace::{Tables, Values};

/// Bytes to which each part is filled up.
const ALIGNMENT: usize = 8;

/// Replaces the content of `bytes` with the rows of all tables.
pub fn encode(tables: &Tables, bytes: &mut Vec<u8>) {
    bytes.clear();
    let views = tables.views();
    for view in &views {
        let rows = view.values.first().map_or(0, Values::len);
        // Invariant: a chunk has some thousand rows; the largest number of rows in memory is far below 2^32.
        bytes.extend(u32::try_from(rows).unwrap_or(u32::MAX).to_le_bytes());
    }
    fill_up(bytes);
    for values in views.iter().flat_map(|view| &view.values) {
        column(*values, bytes);
        fill_up(bytes);
    }
}

fn column(values: Values<'_>, bytes: &mut Vec<u8>) {
    match values {
        Values::U8(v) => bytes.extend(v),
        Values::U32(v) => bytes.extend(v.iter().flat_map(|n| n.to_le_bytes())),
        Values::U64(v) => bytes.extend(v.iter().flat_map(|n| n.to_le_bytes())),
        Values::I32(v) => bytes.extend(v.iter().flat_map(|n| n.to_le_bytes())),
    }
}

fn fill_up(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
}
