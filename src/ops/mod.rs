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

pub use access::{Mode, Place, SchemaMode};
pub use alter::drop_feature::drop_feature;
pub use alter::{Change, alter};
pub use create::{CreateOptions, create};
pub use dml::delete_update::{ChangeOptions, delete, update};
pub use external::delete_update::{ChangeJob, JobFound, JobOutlook, Verb, abandon};
pub use external::merge::{MergeJob, MergeOutlook, SourceFacts};
pub use external::optimize::{OptimizeJob, OptimizeOutlook};
pub use merge::clauses::{ClausePlan, Deed, ValuePlan};
pub use merge::{EqualityPlan, Joining, Merge, MergeOptions, MergePlan, Tried};
pub use optimize::clustering::{ClusteringFigures, FileFigures};
pub use optimize::{OptimizeOptions, Optimized, Sizes, Task, optimize};
pub use target::Encoding;
pub use write::replace_keys::Key;
pub use write::{Write, WriteOptions};
