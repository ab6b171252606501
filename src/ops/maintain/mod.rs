//! MAINTAIN: commands that keep a table in order without looking into its rows, a file for each.
//!
//! `vacuum` deletes files that no version in the time of retention needs, `restore` brings an older
//! version back, `repair` takes files out of the log that are not there, `convert` makes a table of
//! Parquet files, `clone` makes one that shares another's files. Each plans first and then does
//! what the plan says; those that have a dry run give the same plan there.
//!
//! Names of operations, their parameters and figures in `commitInfo` are delta-spark's.
//!
//! Protocol: "Requirements for Writers", "Vacuum Protocol Check", "Deletion Vectors". Cost: the
//! keys of the table's files in memory, a few dozen bytes each.

mod clone;
mod commit_command;
mod convert;
mod data_files;
mod repair;
mod restore;
mod vacuum;

pub use clone::{CloneOptions, CloneResult, clone};
pub use convert::{ConvertOptions, ConvertResult, convert};
pub use repair::{RepairOptions, RepairResult, repair};
pub use restore::{RestoreOptions, RestoreResult, restore};
pub use vacuum::{FileInventory, VacuumOptions, VacuumResult, vacuum};
