//! Encoding options of files, under the names of the `deltalake` package: compression, pages,
//! encodings, bloom filters.

use std::collections::BTreeMap;

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{
    BloomFilterProperties as ParquetBloom, EnabledStatistics, WriterProperties as Parquet,
    WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;
use serde::Deserialize;

use crate::error::{Error, Result, shown};

/// Settings of the Parquet writer; an absent setting has the writer's default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriterProperties {
    /// Bytes of a data page at most.
    pub data_page_size_limit: Option<usize>,
    /// Bytes of a dictionary page at most; a column with more distinct values is written without a
    /// dictionary.
    pub dictionary_page_size_limit: Option<usize>,
    /// Rows of a data page at most.
    pub data_page_row_count_limit: Option<usize>,
    /// Rows encoded at a time.
    pub write_batch_size: Option<usize>,
    /// Rows of a row group at most (1,048,576).
    pub max_row_group_size: Option<usize>,
    /// `ZSTD(3)`, `SNAPPY`, `GZIP(6)`, `BROTLI(1)`, `LZ4`, `LZ4_RAW`, `UNCOMPRESSED`; the level
    /// may be left out.
    pub compression: Option<String>,
    /// Bytes of strings that bounds in the footer and the page index keep (64). Bounds in the
    /// footer keep more where the table's own statistics need it.
    pub statistics_truncate_length: Option<usize>,
    /// For all columns.
    pub default_column_properties: Option<ColumnProperties>,
    /// By column; a nested field is named with dots.
    pub column_properties: Option<BTreeMap<String, Option<ColumnProperties>>>,
    /// Whether files have data pages of version 2 and the encodings of that version.
    #[serde(skip)]
    pub has_v2_pages: bool,
}

/// Settings of one column.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnProperties {
    /// Whether dictionary encoding is tried.
    pub dictionary_enabled: Option<bool>,
    /// `NONE`, `CHUNK` or `PAGE`: the statistics inside of the file. Those of the table do not
    /// depend on it.
    pub statistics_enabled: Option<String>,
    /// A bloom filter.
    pub bloom_filter_properties: Option<BloomFilterProperties>,
    /// Encoding of values that are not in a dictionary.
    pub encoding: Option<String>,
}

/// Settings of a bloom filter.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BloomFilterProperties {
    /// Whether there is one.
    pub set_bloom_filter_enabled: Option<bool>,
    /// Share of false positives.
    pub fpp: Option<f64>,
    /// Distinct values to expect.
    pub ndv: Option<u64>,
}

/// Default number of rows of a row group.
const GROUP_ROWS: usize = 1 << 20;
/// Default number of bytes of strings that bounds keep.
const TRUNCATE: usize = 64;

impl WriterProperties {
    /// Rows of a row group at most.
    #[must_use]
    pub fn group_rows(&self) -> usize {
        self.max_row_group_size.unwrap_or(GROUP_ROWS).max(1)
    }

    /// The properties for the `parquet` crate. `leaves` are the paths of the file's leaves, `named`
    /// finds those that a key of `column_properties` refers to, `bounds` selects the leaves whose
    /// bounds the footer must have, with at least `keep` bytes, `repeats` those for which a
    /// dictionary is tried unless the properties decide.
    pub(in crate::pq) fn build(
        &self,
        compression: Compression,
        leaves: &[ColumnPath],
        named: impl Fn(&str) -> Vec<usize>,
        bounds: impl Fn(usize) -> bool,
        keep: usize,
        repeats: impl Fn(usize) -> bool,
    ) -> Result<Parquet> {
        let truncate = self.statistics_truncate_length.unwrap_or(TRUNCATE).max(1);
        let mut out = Parquet::builder()
            .set_created_by(concat!("deltafast version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_max_row_group_row_count(None)
            .set_max_row_group_bytes(None)
            .set_compression(compression)
            .set_writer_version(if self.has_v2_pages {
                WriterVersion::PARQUET_2_0
            } else {
                WriterVersion::PARQUET_1_0
            })
            .set_column_index_truncate_length(Some(truncate))
            .set_statistics_truncate_length(Some(truncate.max(keep)));
        if let Some(bytes) = self.data_page_size_limit {
            out = out.set_data_page_size_limit(positive("data_page_size_limit", bytes)?);
        }
        if let Some(bytes) = self.dictionary_page_size_limit {
            out = out.set_dictionary_page_size_limit(bytes);
        }
        if let Some(rows) = self.data_page_row_count_limit {
            out = out.set_data_page_row_count_limit(positive("data_page_row_count_limit", rows)?);
        }
        if let Some(rows) = self.write_batch_size {
            out = out.set_write_batch_size(positive("write_batch_size", rows)?);
        }
        positive("max_row_group_size", self.group_rows())?;
        for path in leaves
            .iter()
            .enumerate()
            .filter(|(n, _)| !repeats(*n))
            .map(|(_, path)| path)
        {
            out = out.set_column_dictionary_enabled(path.clone(), false);
        }
        if let Some(default) = &self.default_column_properties {
            for path in leaves {
                out = default.apply(out, path)?;
            }
        }
        for (name, properties) in self.column_properties.iter().flatten() {
            let found = named(name);
            if found.is_empty() {
                return Err(Error::invalid(
                    "`column_properties` name a column that the table does not have",
                )
                .at_column(name));
            }
            for path in found.into_iter().filter_map(|leaf| leaves.get(leaf)) {
                if let Some(properties) = properties {
                    out = properties.apply(out, path).map_err(|e| e.at_column(name))?;
                }
            }
        }
        let built = out.build();
        let mut out = built.clone().into_builder();
        for (n, path) in leaves.iter().enumerate() {
            if bounds(n) && built.statistics_enabled(path) == EnabledStatistics::None {
                out = out.set_column_statistics_enabled(path.clone(), EnabledStatistics::Chunk);
            }
        }
        Ok(out.build())
    }
}

fn positive(name: &str, value: usize) -> Result<usize> {
    if value == 0 {
        Err(Error::invalid(format!("`{name}` must be at least 1")))
    } else {
        Ok(value)
    }
}

impl ColumnProperties {
    fn apply(
        &self,
        mut out: WriterPropertiesBuilder,
        path: &ColumnPath,
    ) -> Result<WriterPropertiesBuilder> {
        if let Some(enabled) = self.dictionary_enabled {
            out = out.set_column_dictionary_enabled(path.clone(), enabled);
        }
        if let Some(text) = &self.statistics_enabled {
            let level = match text.to_ascii_uppercase().as_str() {
                "NONE" => EnabledStatistics::None,
                "CHUNK" => EnabledStatistics::Chunk,
                "PAGE" => EnabledStatistics::Page,
                _ => {
                    return Err(Error::invalid(format!(
                        "`statistics_enabled` is `{}`; it can be NONE, CHUNK or PAGE",
                        shown(text)
                    )));
                }
            };
            out = out.set_column_statistics_enabled(path.clone(), level);
        }
        if let Some(bloom) = &self.bloom_filter_properties {
            out = bloom.apply(out, path)?;
        }
        if let Some(text) = &self.encoding {
            let encoding = match text.to_ascii_uppercase().as_str() {
                "PLAIN" => Encoding::PLAIN,
                "RLE" => Encoding::RLE,
                "DELTA_BINARY_PACKED" => Encoding::DELTA_BINARY_PACKED,
                "DELTA_LENGTH_BYTE_ARRAY" => Encoding::DELTA_LENGTH_BYTE_ARRAY,
                "DELTA_BYTE_ARRAY" => Encoding::DELTA_BYTE_ARRAY,
                "BYTE_STREAM_SPLIT" => Encoding::BYTE_STREAM_SPLIT,
                _ => {
                    return Err(Error::invalid(format!(
                        "`encoding` is `{}`; it can be PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY or BYTE_STREAM_SPLIT",
                        shown(text)
                    )));
                }
            };
            out = out.set_column_encoding(path.clone(), encoding);
        }
        Ok(out)
    }
}

impl BloomFilterProperties {
    fn apply(
        &self,
        mut out: WriterPropertiesBuilder,
        path: &ColumnPath,
    ) -> Result<WriterPropertiesBuilder> {
        if let Some(fpp) = self.fpp
            && !(fpp > 0.0 && fpp < 1.0)
        {
            return Err(Error::invalid(
                "`fpp` of a bloom filter must lie between 0 and 1",
            ));
        }
        if let Some(enabled) = self.set_bloom_filter_enabled {
            out = out.set_column_bloom_filter_enabled(path.clone(), enabled);
        }
        if self.set_bloom_filter_enabled != Some(false)
            && (self.fpp.is_some() || self.ndv.is_some())
        {
            let mut bloom = ParquetBloom::builder();
            if let Some(fpp) = self.fpp {
                bloom = bloom.with_fpp(fpp);
            }
            if let Some(ndv) = self.ndv {
                bloom = bloom.with_max_ndv(ndv);
            }
            let bloom = bloom
                .try_build()
                .map_err(|e| Error::invalid(format!("a bloom filter cannot be made so: {e}")))?;
            out = out.set_column_bloom_filter_properties(path.clone(), bloom);
        }
        Ok(out)
    }
}

/// A codec with its level, and its suffix in file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParquetCompression {
    pub(in crate::pq) compression: Compression,
    /// The part of a file's name before `.parquet`, with its dot; empty without compression.
    pub suffix: &'static str,
}

impl ParquetCompression {
    /// Reads `zstd`, `ZSTD(3)`, `snappy`, `gzip`, `none` and so on, in any case.
    ///
    /// # Errors
    /// [`Error::Invalid`] names the codec or its level.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "`{}` is not a compression codec; it can be ZSTD, SNAPPY, GZIP, BROTLI, LZ4, LZ4_RAW or UNCOMPRESSED",
                shown(text)
            ))
        };
        let upper = text.trim().to_ascii_uppercase();
        let (name, level) = match upper.split_once('(') {
            Some((name, rest)) => (
                name.trim(),
                Some(
                    rest.strip_suffix(')')
                        .and_then(|level| level.trim().parse::<i32>().ok())
                        .ok_or_else(wrong)?,
                ),
            ),
            None => (upper.as_str(), None),
        };
        let (name, suffix, default) = match name {
            "ZSTD" => ("ZSTD", ".zstd", Some(1)),
            "SNAPPY" => ("SNAPPY", ".snappy", None),
            "GZIP" => ("GZIP", ".gz", Some(6)),
            "BROTLI" => ("BROTLI", ".br", Some(1)),
            "LZ4" => ("LZ4", ".lz4hadoop", None),
            "LZ4_RAW" | "LZ4RAW" => ("LZ4_RAW", ".lz4raw", None),
            "UNCOMPRESSED" | "NONE" => ("UNCOMPRESSED", "", None),
            _ => return Err(wrong()),
        };
        let text = match level.or(default) {
            Some(level) => format!("{name}({level})"),
            None => name.to_owned(),
        };
        let compression = text
            .parse()
            .map_err(|e| Error::invalid(format!("the compression `{text}` cannot be used: {e}")))?;
        Ok(Self {
            compression,
            suffix,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_read_with_and_without_level() {
        let suffix = |text: &str| ParquetCompression::parse(text).map(|codec| codec.suffix);
        for (text, expected) in [
            ("zstd", ".zstd"),
            ("ZSTD(7)", ".zstd"),
            ("Snappy", ".snappy"),
            ("none", ""),
            ("gzip", ".gz"),
            ("lz4_raw", ".lz4raw"),
        ] {
            assert_eq!(suffix(text).unwrap(), expected, "{text}");
        }
        for text in ["", "zip", "ZSTD(99)", "ZSTD(", "SNAPPY(1)", "ZSTD(x)"] {
            assert!(matches!(suffix(text), Err(Error::Invalid { .. })), "{text}");
        }
    }

    #[test]
    fn settings_reach_their_columns() {
        let properties: WriterProperties = serde_json::from_str(
            r#"{"column_properties": {"a": {"statistics_enabled": "NONE", "bloom_filter_properties": {"set_bloom_filter_enabled": true, "fpp": 0.1}}},
                "default_column_properties": {"dictionary_enabled": false}}"#,
        )
        .unwrap();
        let leaves = [ColumnPath::from("a"), ColumnPath::from("b")];
        let built = properties
            .build(
                Compression::SNAPPY,
                &leaves,
                |_| vec![0],
                |_| false,
                10,
                |_| true,
            )
            .unwrap();
        assert_eq!(
            built.statistics_enabled(&leaves[0]),
            EnabledStatistics::None
        );
        assert!(
            built.bloom_filter_properties(&leaves[0]).is_some()
                && built.bloom_filter_properties(&leaves[1]).is_none()
        );
        assert!(!built.dictionary_enabled(&leaves[1]));
        let built = properties
            .build(
                Compression::SNAPPY,
                &leaves,
                |_| vec![0],
                |_| true,
                300,
                |_| true,
            )
            .unwrap();
        assert_eq!(
            (
                built.statistics_enabled(&leaves[0]),
                built.statistics_truncate_length()
            ),
            (EnabledStatistics::Chunk, Some(300))
        );
        assert!(
            properties
                .build(
                    Compression::SNAPPY,
                    &leaves,
                    |_| vec![],
                    |_| true,
                    0,
                    |_| true
                )
                .unwrap_err()
                .to_string()
                .contains("column `a`")
        );
        assert!(serde_json::from_str::<WriterProperties>(r#"{"page_size": 1}"#).is_err());
    }

    #[test]
    fn a_dictionary_is_made_where_it_pays_or_was_asked_for() {
        let properties: WriterProperties =
            serde_json::from_str(r#"{"column_properties": {"a": {"dictionary_enabled": true}}}"#)
                .unwrap();
        let leaves = [
            ColumnPath::from("a"),
            ColumnPath::from("b"),
            ColumnPath::from("c"),
        ];
        let built = properties
            .build(
                Compression::SNAPPY,
                &leaves,
                |_| vec![0],
                |_| false,
                10,
                |n| n == 2,
            )
            .unwrap();
        assert_eq!(
            leaves.map(|leaf| built.dictionary_enabled(&leaf)),
            [true, false, true]
        );
    }
}
