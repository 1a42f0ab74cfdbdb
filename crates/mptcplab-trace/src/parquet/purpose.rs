//! How tables are encoded depends on how long they will be there.

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// Columns that are the same in most rows as in the one before: counters of rare events, and what is usually zero. As they are,
/// their long runs of equal numbers leave the compressor little to do, and need no delta encoding.
const RARELY_CHANGING: [&str; 16] = [
    "rcv_window_bytes",
    "reinjected_pkts",
    "duplicate_pkts",
    "blocked_ns",
    "ssthresh_pkts",
    "min_rtt_us",
    "retx_pkts",
    "lost_pkts",
    "loss_events",
    "ecn_events",
    "rto_count",
    "rto_wait_ns",
    "undo_count",
    "dropped_random_pkts",
    "dropped_queue_pkts",
    "marked_pkts",
];

/// What a trace is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For people: small files, with checksums, on the disk when the trace is finished.
    Keep,
    /// For measurements at once: files that cost little time to write and to read.
    Scratch,
}

impl Purpose {
    /// Settings of one file, chosen for speed by `benches/write.rs`: delta encoding suits counters and gauges alike, and what
    /// it leaves is half as long when it is compressed; a dictionary only pays where few values repeat.
    pub(super) fn properties(self, schema: &arrow_schema::Schema) -> WriterProperties {
        let compression = match self {
            Self::Keep => Compression::LZ4_RAW,
            Self::Scratch => Compression::UNCOMPRESSED,
        };
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("mptcplab ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true);
        for field in schema.fields() {
            let path = ColumnPath::from(field.name().as_str());
            properties = if field.data_type().is_integer() {
                properties.set_column_encoding(path.clone(), self.encoding(field.name()))
            } else {
                properties.set_column_dictionary_enabled(path.clone(), true)
            };
            // Readers skip row groups by these two.
            if matches!(field.name().as_str(), "run" | "t_ns") {
                properties =
                    properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
            }
        }
        properties.build()
    }

    /// How a column of numbers is encoded.
    fn encoding(self, column: &str) -> Encoding {
        if self == Self::Scratch || RARELY_CHANGING.contains(&column) {
            Encoding::PLAIN
        } else {
            Encoding::DELTA_BINARY_PACKED
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet::schemas;

    #[test]
    fn only_numbers_that_rarely_change_are_kept_as_they_are() {
        let schemas = schemas().map(|(_, schema)| schema);
        let mut fields = schemas.iter().flat_map(|schema| schema.fields());
        for name in RARELY_CHANGING {
            let field = fields.clone().find(|field| field.name() == name);
            assert!(
                field.is_some_and(|field| field.data_type().is_integer()),
                "{name}"
            );
        }
        let is_plain = |name: &str| Purpose::Keep.encoding(name) == Encoding::PLAIN;
        assert!(is_plain("undo_count") && !is_plain("cwnd_pkts") && !is_plain("t_ns"));
        assert!(fields.all(|field| Purpose::Scratch.encoding(field.name()) == Encoding::PLAIN));
    }
}
