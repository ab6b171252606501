//! TABLE: a table's operations end to end: what a caller asks for -> data files and one version.
//!
//! An operation checks first whatever can be refused, writes files, commits. What it wrote is
//! deleted again when it fails, unless nobody knows whether the version was made.
//!
//! Protocol: "Requirements for Writers" and the sections that the modules name. Cost: that of the
//! files, one commit, and a checkpoint now and then.

mod access;
mod alter;
mod clustering_domain;
mod create;
mod dml;
mod external;
pub mod maintain;
mod merge;
mod optimize;
mod orphans;
mod partition_predicate;
mod target;
mod write;

pub use access::{SaveMode, SchemaMode, TableOrPath};
pub use alter::drop_feature::drop_feature;
pub use alter::{TableChange, alter};
pub use create::{CreateOptions, create};
pub use dml::delete_update::{DmlOptions, delete, update};
pub use external::delete_update::{
    DmlKind, ExternalDmlJob, MatchedRowsSummary, TableRequirements, delete_uncommitted,
};
pub use external::merge::{ExternalMergeJob, MergeRequirements, SourceStatistics};
pub use external::optimize::{ExternalOptimizeJob, OptimizeRequirements};
pub use merge::clauses::{ClauseAction, ClausePlan, ValuePlan};
pub use merge::{EqualityPlan, MergeAttempt, MergeCommand, MergeJoin, MergeOptions, MergePlan};
pub use optimize::clustering::{ClusteringMetrics, FileMetrics};
pub use optimize::{FileSizes, OptimizeOptions, OptimizeResult, OptimizeTask, optimize};
pub use target::DataFileOptions;
pub use write::replace_keys::ReplaceKey;
pub use write::{WriteCommand, WriteOptions};
