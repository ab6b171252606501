//! What a write replaces: the plan, the rows, and where its change data comes from.

use super::write_options::WriteOptions;
use crate::error::Result;
use crate::expr::BoundExpr;
use crate::file_writer::{WriteOutput, WrittenDataFile};
use crate::ops::rewrite::matched_rows::MatchedRows;
use crate::ops::rewrite::replace_keys::ReplaceKeySet;
use crate::ops::rewrite::start_state::TableOrPath;
use crate::protocol::schema::StructType;
use std::sync::{Arc, Mutex};

/// The rows to replace, determined before another engine wrote.
#[derive(Debug, Clone)]
pub(super) struct ReplacementPlan {
    pub(super) change: ReplacedRows,
    /// Whether the engine must write change data.
    pub(super) writes_change_data: bool,
}

/// The source of a write's change data.
pub(super) enum ChangeDataSource {
    /// It is derived from the log.
    DerivedFromLog,
    /// The new rows are in these change data files; those for the removed rows are not written yet.
    Inserted(WriteOutput),
    /// All of it is in these files.
    EngineFiles(Vec<WrittenDataFile>),
}

/// The rows that a write removes.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplacedRows {
    /// The removed rows.
    pub(super) matched: MatchedRows,
    pub(super) read_dependency: ReadDependency,
}

/// The keys of a write that replaces rows by keys.
pub(super) fn replaced_keys(
    place: &TableOrPath,
    data: &StructType,
    options: &WriteOptions,
) -> Result<Option<Arc<Mutex<ReplaceKeySet>>>> {
    match place {
        TableOrPath::Table(snapshot) if !options.keys.is_empty() => {
            let keys = ReplaceKeySet::new(
                options.keys.clone(),
                snapshot.schema(),
                data,
                snapshot.options().zone,
                options.encoding.cast_rule()?,
            )?;
            Ok(Some(Arc::new(Mutex::new(keys))))
        }
        _ => Ok(None),
    }
}

/// The reads that a write depends on.
#[derive(Debug, Clone, Default)]
pub(super) enum ReadDependency {
    #[default]
    Nothing,
    All,
    Rows(BoundExpr),
}
