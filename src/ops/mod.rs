//! Operations on tables from end to end: from a request to data files and one version.
//!
//! An operation first checks the request, then writes files, then commits. If it fails, the files
//! that it wrote are deleted, unless the outcome of the commit is unknown.
//!
//! Protocol: "Requirements for Writers" and the sections that the modules name. Cost: writing the
//! files, one commit, and occasionally a checkpoint.

mod alter;
mod create;
mod dml;
mod engine_jobs;
pub mod maintain;
mod merge;
mod optimize;
mod rewrite;
mod write;

pub use alter::alter_command::alter;
pub use alter::drop_feature::drop_feature;
pub use alter::table_change::TableChange;
pub use create::{CreateOptions, create};
pub use dml::delete_update::{DmlOptions, delete, update};
pub use engine_jobs::delete_update::{
    DmlKind, EngineDmlJob, MatchedRowsSummary, TableRequirements, delete_uncommitted,
};
pub use engine_jobs::merge::{EngineMergeJob, MergeRequirements, SourceStatistics};
pub use engine_jobs::optimize::{EngineOptimizeJob, OptimizeRequirements};
pub use merge::clauses::{ClauseAction, ClausePlan};
pub use merge::merge_command::MergeCommand;
pub use merge::merge_join::{MergeAttempt, MergeJoin};
pub use merge::merge_plan::{EqualityPlan, MergeOptions, MergePlan};
pub use optimize::clustering::{ClusteringMetrics, FileMetrics};
pub use optimize::optimize_options::{FileSizes, OptimizeOptions, OptimizeResult, OptimizeTask};
pub use optimize::optimize_run::optimize;
pub use rewrite::column_values::ValuePlan;
pub use rewrite::replace_keys::ReplaceKey;
pub use rewrite::start_state::{SaveMode, SchemaMode, TableOrPath};
pub use rewrite::target_table::DataFileOptions;
pub use write::write_command::WriteCommand;
pub use write::write_options::WriteOptions;
