//! Maintenance commands that do not read rows, one file for each.
//!
//! `vacuum` deletes files that no version within the retention requires, `restore` returns to an
//! older version, `repair` removes missing files from the log, `convert` creates a table from
//! Parquet files, `clone` creates a table that shares another one's files. Each command makes a
//! plan and then executes it; a dry run returns the same plan.
//!
//! Operation names, parameters and metrics in `commitInfo` are those of delta-spark.
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
