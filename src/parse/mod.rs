//! PARSE: log files -> [`FileBatch`], the columnar form of file actions, and the other actions.
//!
//! `json_lines` reads files, `commit` parses JSON lines, `checkpoint` reads Parquet and V2
//! manifests, `stats` turns statistics into typed columns.

mod batch;
pub mod checkpoint;
pub mod commit;
mod cursor;
pub(crate) mod json_lines;
pub mod stats;
mod views;

pub use batch::{DvColumns, FileActionProjection, FileBatch, StatsColumn, mask, validity};
