//! deltafast: Delta Lake tables of any size: opening, queries, changes and maintenance.
//!
//! # Data flow: reading
//!
//! A table is a folder of Parquet files and a log that lists the live ones. Data flows through the
//! modules in one direction, and each imports only those before it:
//!
//! 1. [`store`] reads bytes by path: local files, object stores, file systems that Python provides.
//! 2. [`log`] lists `_delta_log` and chooses the files that make up a version: a checkpoint and the
//!    commits after it.
//! 3. [`parse`] turns commits (JSON) and checkpoints (Parquet, read by [`pq`]) into one columnar
//!    form, without a struct per action.
//! 4. [`reconcile`] keeps the newest action of each file and streams the live files.
//! 5. [`snapshot`] holds a version: protocol and metadata at once, files on request. [`history`]
//!    reads earlier versions.
//! 6. [`scan`] prunes the files by a predicate ([`expr`] is the tree, [`prune`] evaluates it over
//!    statistics), reads their rows ([`pq`] decodes, [`dv`] excludes deleted ones), and reads
//!    changes between versions.
//!
//! # Data flow: writing
//!
//! [`write`](mod@write) casts and checks batches, splits them by partition and has [`pq`] encode
//! them, columns in parallel, into new data files with statistics.
//!
//! [`commit`] makes a version from a transaction's reads and actions: a new file in the log, by
//! put-if-absent. [`commit::finish`] ends each operation: its commit, then the maintenance that is
//! due. [`manifest`] lists live files for readers without Delta.
//!
//! [`checkpoint`] limits the files needed to read a version: checkpoints, version checksums, log
//! compaction, cleanup.
//!
//! [`ops`] has the operations end to end, from a caller's request to files and a version.
//!
//! Modules that all others use: [`protocol`] has the types of the format and does no input or
//! output; [`exec`] has the threads; [`error`] the only error type. `py` is the Python extension
//! and contains no logic.
//!
//! # Example
//!
//! A version of a table, and the files that it consists of:
//!
//! ```
//! use std::sync::Arc;
//!
//! use deltafast::exec::CancellationToken;
//! use deltafast::log::DeltaLog;
//! use deltafast::parse::FileActionProjection;
//! use deltafast::parse::checkpoint::FileActionKind;
//! use deltafast::snapshot::{ReadOptions, Snapshot};
//! use deltafast::store::{ExternalPaths, StorageOptions, TableStores, open};
//!
//! # let folder = std::env::temp_dir().join(format!("deltafast-example-{}", std::process::id()));
//! # std::fs::create_dir_all(folder.join("_delta_log"))?;
//! let commit = concat!(
//!     r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#, "\n",
//!     r#"{"metaData":{"id":"0","format":{"provider":"parquet","options":{}},"schemaString":"#,
//!     r#""{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{}}}"#, "\n",
//!     r#"{"add":{"path":"a.parquet","partitionValues":{},"size":1,"modificationTime":0,"#,
//!     r#""dataChange":true}}"#, "\n",
//! );
//! std::fs::write(folder.join("_delta_log/00000000000000000000.json"), commit)?;
//!
//! let options = StorageOptions::new();
//! let root = open(&folder.display().to_string(), &options)?;
//! let stores = TableStores::new(root, options, ExternalPaths::Refused);
//! let log = DeltaLog::new(Arc::new(stores), Vec::new())?;
//! let snapshot = Snapshot::open(log, None, ReadOptions::default())?;
//! assert_eq!(snapshot.version(), 0);
//!
//! let mut files = 0;
//! let columns = FileActionProjection::default();
//! for batch in snapshot.files(FileActionKind::Adds, columns, &CancellationToken::default())? {
//!     files += batch?.len();
//! }
//! assert_eq!(files, 1);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Design rules
//!
//! - Every byte of a table is untrusted: sizes are checked before they are used, nesting is
//!   bounded, nothing panics, and an error names file, version and line.
//! - Checkpoints, compactions, checksums, the hint and statistics are hints: when they are damaged
//!   and the commits exist, the answer is still right.
//! - Memory is bounded by what is in flight, not by the table.

#![cfg_attr(
    test,
    allow(clippy::too_many_lines, reason = "a test is read from top to bottom")
)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]
#![deny(clippy::undocumented_unsafe_blocks)]

pub mod checkpoint;
pub mod commit;
pub mod dv;
pub mod error;
pub mod exec;
pub mod expr;
pub mod file_writer;
pub mod history;
pub mod log;
pub mod manifest;
pub mod ops;
pub mod parse;
pub mod pq;
pub mod process;
pub mod protocol;
pub mod prune;
pub mod reconcile;
pub mod scan;
pub mod snapshot;
pub mod store;

#[cfg(feature = "python")]
mod py;

// The tests of the crate from outside run with its unit tests, so that it is compiled once for
// both. As a target of their own, which lints compile, they see what is public only.
#[cfg(all(test, feature = "testing"))]
extern crate self as deltafast;
#[cfg(all(test, feature = "testing"))]
#[path = "../tests/rust/main.rs"]
mod outside_tests;
