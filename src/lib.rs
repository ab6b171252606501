//! deltafast: Delta Lake tables of any size, opened, queried, changed and maintained.
//!
//! # The way of the data, reading
//!
//! A table is a folder of Parquet files and a log that says which of them are alive. Reading goes
//! one way through the modules, and each imports only those before it:
//!
//! 1. [`store`] gives bytes by path: local files, object stores, whatever Python brings.
//! 2. [`log`] lists `_delta_log` and chooses the files that make up a version: a checkpoint, the
//!    commits after it.
//! 3. [`parse`] turns commits (JSON) and checkpoints (Parquet, by [`pq`]) into one columnar shape,
//!    no struct an action.
//! 4. [`reconcile`] lets the newest action of each file win and streams what is alive.
//! 5. [`snapshot`] holds a version: protocol and metadata at once, files when asked for.
//!    [`history`] knows its past.
//! 6. [`scan`] prunes the files by a predicate ([`expr`] is the tree, [`prune`] reads it over
//!    statistics), reads their rows ([`pq`] decodes, [`dv`] leaves out deleted ones), and reads
//!    changes between versions.
//!
//! # The way of the data, writing
//!
//! [`write`](mod@write) casts and checks batches, splits them by partition and has [`pq`] encode
//! them, column beside column, into new data files with their statistics.
//!
//! [`commit`] makes a version out of what a transaction read and wants: a new file in the log, if
//! nobody was there first. [`commit::finish`] ends each operation: its commit, then the maintenance
//! that is due. [`manifest`] lists live files for readers without Delta.
//!
//! What a version needs to be read is kept short by [`checkpoint`]: checkpoints, version checksums,
//! log compaction, cleanup.
//!
//! [`ops`] has the operations end to end, from a caller's request to files and a version.
//!
//! Beside the way: [`protocol`] has the nouns of the format and does no input or output; [`exec`]
//! has the threads; [`error`] the only error type. `py` is the Python extension and decides
//! nothing.
//!
//! # Rules of the house
//!
//! - Every byte that comes from a table is hostile: sizes are checked before they are believed,
//!   nesting is bounded, nothing panics, and an error names file, version and line.
//! - Checkpoints, compactions, checksums, the hint and statistics are hints: when they are damaged
//!   and the commits are there, the answer is right all the same.
//! - Memory is bounded by what is in flight, not by the table.

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
pub mod write;

#[cfg(feature = "python")]
mod py;
