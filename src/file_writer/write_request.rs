//! What to write and how, and what was written.

use super::cast_values::CastRule;
use super::constraints::WriteRules;
use crate::exec::{CancellationToken, ProgressCounter};
use crate::pq::{ColumnMappingMode, WriterProperties};
use crate::protocol::schema::StructType;
use std::collections::BTreeMap;

/// The default size in bytes after which the next file is begun: that of the `deltalake` package.
pub const TARGET_FILE_SIZE: u64 = 100 << 20;

/// The default memory of a write.
const MEMORY: u64 = 1 << 30;

/// The default number of open files.
const OPEN_FILES: usize = 256;

/// The table, the options and the rules of a write.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// The table's schema, partition columns included.
    pub schema: StructType,
    /// The partition columns, by their logical names.
    pub partition_columns: Vec<String>,
    /// How columns are named in files and in the log.
    pub mapping: ColumnMappingMode,
    /// The table's properties.
    pub properties: BTreeMap<String, String>,
    /// Whether files contain the partition columns.
    pub materialize_partition_columns: bool,
    /// How files are encoded.
    pub writer_properties: WriterProperties,
    /// The size in bytes after which the next file is begun.
    pub target_file_size: u64,
    /// The number of rows of each of a partition's files, regardless of their size; if empty, only
    /// the size counts.
    pub file_rows: Vec<usize>,
    /// The maximum number of rows of any other file, regardless of its size.
    pub most_rows: Option<usize>,
    /// The maximum number of files that are written at the same time.
    pub max_open_files: usize,
    /// Whether rows of further partitions are buffered instead of creating more files.
    pub gather_partitions: bool,
    /// Bytes of memory for rows that are not written yet.
    pub memory: u64,
    /// How values are cast to the table's types.
    pub cast_rule: CastRule,
    /// Whether the files are change data: with another directory and other names, and without
    /// statistics.
    pub change_data: bool,
    /// Columns of the schema that are in the files but not the table's: change types, row ids.
    pub hidden: Vec<String>,
    /// The constraints of the table.
    pub rules: WriteRules,
    /// Stops the work.
    pub cancel: CancellationToken,
    /// Counts the written rows.
    pub progress: ProgressCounter,
}

impl WriteRequest {
    /// A write of rows of `schema` with default options.
    #[must_use]
    pub fn new(schema: StructType) -> Self {
        Self {
            schema,
            partition_columns: Vec::new(),
            mapping: ColumnMappingMode::None,
            properties: BTreeMap::new(),
            materialize_partition_columns: false,
            writer_properties: WriterProperties::default(),
            target_file_size: TARGET_FILE_SIZE,
            file_rows: Vec::new(),
            most_rows: None,
            max_open_files: OPEN_FILES,
            gather_partitions: false,
            memory: MEMORY,
            cast_rule: CastRule::default(),
            change_data: false,
            hidden: Vec::new(),
            rules: WriteRules::default(),
            cancel: CancellationToken::default(),
            progress: ProgressCounter::default(),
        }
    }
}

/// A data file that was written, with the values for its `add` action.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenDataFile {
    /// Path relative to the table, URI-encoded as in the log.
    pub path: String,
    /// Values of the partition columns by their names in the log, in their order; `None` is null.
    pub partition_values: Vec<(String, Option<String>)>,
    /// The size in bytes.
    pub size: u64,
    /// Milliseconds since the epoch.
    pub modified_ms: i64,
    /// The number of rows.
    pub num_records: u64,
    /// Statistics as JSON; none for change data.
    pub stats: Option<String>,
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WriteOutput {
    /// The files, in the order in which they were begun.
    pub files: Vec<WrittenDataFile>,
    /// The total number of rows.
    pub rows: u64,
    /// The last generated value of each identity column.
    pub identities: Vec<(String, i64)>,
}
