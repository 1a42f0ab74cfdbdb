//! How tables are encoded depends on how long they will be there.

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// What a trace is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For people: small files, with checksums, on the disk when the trace is finished.
    Keep,
    /// For measurements at once: files that cost little time to write and to read.
    Scratch,
}

impl Purpose {
    /// Settings of one file, chosen for speed by `benches/write.rs`: delta encoding suits counters and gauges alike and leaves
    /// little for a compressor; a dictionary only pays where few values repeat.
    pub(super) fn properties(self, schema: &arrow_schema::Schema) -> WriterProperties {
        let (compression, integers) = match self {
            Self::Keep => (Compression::LZ4_RAW, Encoding::DELTA_BINARY_PACKED),
            Self::Scratch => (Compression::UNCOMPRESSED, Encoding::PLAIN),
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
                properties.set_column_encoding(path.clone(), integers)
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
}
