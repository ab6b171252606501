//! TABLE: a table's operations end to end: what a caller asks for -> data files and one version.
//!
//! An operation checks first whatever can be refused, writes files, commits. What it wrote is
//! deleted again when it fails, unless nobody knows whether the version was made.
//!
//! Protocol: "Requirements for Writers" and the sections that the modules name. Cost: that of the
//! files, one commit, and a checkpoint now and then.

mod alter;
mod auto_compact;
mod change;
mod clauses;
mod clustering;
mod create;
mod curved;
mod drop_feature;
mod files;
mod iceberg;
mod job;
mod join;
mod keys;
mod matched;
mod merge;
mod merge_job;
mod narrow;
mod optimize;
mod optimize_job;
mod predicate;
mod purge;
mod rerun;
mod rewrite;
mod row_ids;
mod spool;
mod steps;
mod target;
mod traces;
mod vectors;
mod write;

use std::sync::Arc;

use serde_json::Value;

pub use alter::{Change, alter};
pub use change::{ChangeOptions, delete, update};
pub use clauses::{ClausePlan, Deed, ValuePlan};
pub use clustering::{ClusteringFigures, FileFigures};
pub use create::{CreateOptions, create};
pub use drop_feature::drop_feature;
pub use job::{ChangeJob, JobFound, JobOutlook, Verb, abandon};
pub use keys::Key;
pub use merge::{EqualityPlan, Joining, Merge, MergeOptions, MergePlan, Tried};
pub use merge_job::{MergeJob, MergeOutlook, SourceFacts};
pub use optimize::{OptimizeOptions, Optimized, Sizes, Task, optimize};
pub use optimize_job::{OptimizeJob, OptimizeOutlook};
pub use target::Encoding;
pub use write::{Mode, SchemaMode, Write, WriteOptions};

use crate::command::Done;
use crate::commit::Transaction;
use crate::error::{Conflict, Error, Missing, Result, ResultExt};
use crate::log::Log;
use crate::protocol::action::{DomainMetadata, Protocol};
use crate::protocol::schema::{DataType, StructType};
use crate::protocol::{evolution, features};
use crate::snapshot::{ReadOptions, Snapshot};
use crate::store::Store;

/// Where an operation works: on a version of a table, or where there is none.
#[derive(Debug, Clone)]
pub enum Place {
    /// A version that was read.
    Table(Snapshot),
    /// A log without commits.
    Nothing(Log, ReadOptions),
}

impl Place {
    /// The newest version of the table, or nothing.
    ///
    /// # Errors
    /// As [`Snapshot::open`], but for a missing table.
    pub fn open(log: Log, options: ReadOptions) -> Result<Self> {
        match Snapshot::open(log.clone(), None, options) {
            Ok(snapshot) => Ok(Self::Table(snapshot)),
            Err(Error::NotFound {
                kind: Missing::Table,
                ..
            }) => {
                log.check_location()?;
                Ok(Self::Nothing(log, options))
            }
            Err(error) => Err(error),
        }
    }

    /// The table's store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        match self {
            Self::Table(snapshot) => snapshot.stores().root(),
            Self::Nothing(log, _) => log.stores().root(),
        }
    }

    fn transaction(&self) -> Result<Transaction> {
        match self {
            Self::Table(snapshot) => Ok(Transaction::new(snapshot)),
            Self::Nothing(log, options) => Transaction::create(log.clone(), *options).map_err(|error| match error {
                // The same as if it had come a moment later, between here and the commit.
                Error::Invalid { .. } => Error::commit_failed(
                    Conflict::ProtocolChanged,
                    format!("another writer made a table at {} meanwhile; nothing was committed, run the operation again", self.store().url()),
                ),
                other => other,
            }),
        }
    }

    /// What it comes to that another writer made the table that an operation wanted to make: what
    /// it would have come to a moment later.
    fn overtaken(&self, error: Error, mode: Mode) -> Result<Done> {
        let (Self::Nothing(log, options), Error::CommitFailed { .. }) = (self, &error) else {
            return Err(error);
        };
        match (mode, Self::open(log.clone(), *options)?) {
            (Mode::Ignore, Self::Table(snapshot)) => Ok(Done::unchanged(&snapshot)),
            (Mode::Error, Self::Table(_)) => Err(self.exists()),
            _ => Err(error),
        }
    }

    fn exists(&self) -> Error {
        Error::invalid(format!(
            "there is a table at {} already; use the mode `append`, `overwrite` or `ignore`",
            self.store().url()
        ))
    }
}

/// Refuses tables that this release cannot write, before anything is written.
fn check_writable(snapshot: &Snapshot) -> Result<()> {
    let protocol: &Protocol = snapshot.protocol();
    features::check_writable(protocol)
        .at_file(snapshot.stores().root().url())
        .at_version(snapshot.version())?;
    evolution::check_changes(protocol, snapshot.schema())?;
    if protocol.has_writer_feature("catalogManaged") && snapshot.log().catalog().is_none() {
        return Err(Error::unsupported_feature(
            "catalogManaged",
            "the table's commits are managed by a catalog; open it with a `committer` to commit through it, or nobody else will see the commit",
        ));
    }
    Ok(())
}

/// Refuses tables whose rows cannot be changed or deleted.
fn check_changeable(snapshot: &Snapshot) -> Result<()> {
    check_writable(snapshot)?;
    if features::supported(snapshot.protocol()).contains("appendOnly")
        && snapshot.metadata().flag("delta.appendOnly")
    {
        return Err(Error::invalid(
            "the table is append-only (`delta.appendOnly`): rows can be added, not changed or deleted",
        ));
    }
    Ok(())
}

/// The domain of clustering columns.
const CLUSTERING: &str = "delta.clustering";

/// The domain that names the columns by which a table is clustered.
fn clustering_domain(schema: &StructType, columns: &[String]) -> Result<DomainMetadata> {
    let path = |name: &String| {
        let mut fields = schema;
        let mut out = Vec::new();
        for part in name.split('.') {
            let field = fields.field(part).filter(|field| field.name == part);
            let field = field.ok_or_else(|| {
                Error::invalid(format!(
                    "the clustering column `{name}` is not in the schema"
                ))
                .at_column(name)
            })?;
            out.push(field.physical_name().to_owned());
            static EMPTY: StructType = StructType { fields: Vec::new() };
            fields = if let DataType::Struct(inner) = &field.data_type {
                inner
            } else {
                &EMPTY
            };
        }
        Ok(out)
    };
    let paths = columns.iter().map(path).collect::<Result<Vec<_>>>()?;
    let configuration =
        serde_json::json!({"clusteringColumns": paths, "domainName": CLUSTERING}).to_string();
    Ok(DomainMetadata {
        domain: CLUSTERING.to_owned(),
        configuration,
        removed: false,
    })
}

/// Logical paths of the clustering columns.
fn clustering_columns(snapshot: &Snapshot) -> Result<Vec<Vec<String>>> {
    let Some(domain) = snapshot.sets()?.domains.get(CLUSTERING) else {
        return Ok(Vec::new());
    };
    let parsed: Value = serde_json::from_str(&domain.configuration)
        .map_err(|e| Error::corrupt(format!("the domain `{CLUSTERING}` is no JSON: {e}")))?;
    let columns = parsed
        .get("clusteringColumns")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let logical = |path: &Value| {
        let mut schema = snapshot.schema().clone();
        let mut out = Vec::new();
        for part in path
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let field = schema
                .fields
                .iter()
                .find(|field| snapshot.physical_name(field) == part)?
                .clone();
            out.push(field.name.clone());
            schema = match &field.data_type {
                DataType::Struct(inner) => inner.as_ref().clone(),
                _ => StructType::default(),
            };
        }
        Some(out)
    };
    Ok(columns.iter().filter_map(logical).collect())
}

/// A random id.
fn unique() -> String {
    crate::exec::uuid()
}

fn now_ms() -> i64 {
    use crate::exec::{Env, SystemEnv};
    SystemEnv.now_ms()
}
