//! The options of a write, and which of them exclude each other.

use crate::commit::finish::CommitOptions;
use crate::error::{CallOption, Error, ErrorCode, Result, invariant};
use crate::ops::create::CreateOptions;
use crate::ops::rewrite::replace_keys::ReplaceKey;
use crate::ops::rewrite::start_state::{SaveMode, SchemaMode};
use crate::ops::rewrite::target_table::DataFileOptions;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Options of a write.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteOptions {
    /// What to do if the table exists.
    pub mode: SaveMode,
    /// Partition columns of a new table; for an existing table they must be its own, unless its
    /// schema is replaced.
    pub partition_by: Option<Vec<String>>,
    /// Clustering columns of a new table.
    pub cluster_by: Vec<String>,
    /// Name of a new table.
    pub name: Option<String>,
    /// Description of a new table.
    pub description: Option<String>,
    /// Properties of a new table.
    pub configuration: BTreeMap<String, Option<String>>,
    /// Whether unknown `delta.` properties may be set.
    pub allow_unknown: bool,
    /// How the data may change the schema; not at all if `None`.
    pub schema_mode: Option<SchemaMode>,
    /// Whether only the rows that match a predicate are replaced; the predicate is bound later.
    pub has_predicate: bool,
    /// Whether only the partitions are replaced that the data contains.
    pub dynamic_partitions: bool,
    /// Replace only the rows that equal a row of the data in these columns; all rows if empty.
    pub keys: Vec<ReplaceKey>,
    /// The statement that creates or replaces a table from a query, if any; an existing table is
    /// replaced including its definition.
    pub as_select: Option<AsSelect>,
    /// Whether the write changes the rows of the table. `Some(false)`: it replaces files by others
    /// with the same rows, so that streams and change data feeds skip the version (`dataChange` of
    /// the log).
    pub data_change: Option<bool>,
    /// The micro-batch of a streaming query that is written.
    pub batch: Option<StreamingBatch>,
    /// How files are made.
    pub encoding: DataFileOptions,
    /// How it is committed.
    pub commit_options: CommitOptions,
}

/// A micro-batch of a streaming query.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamingBatch {
    /// The id of the streaming query.
    pub query_id: String,
    /// The number of the batch.
    pub epoch_id: i64,
}

/// A statement that creates a table from a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsSelect {
    /// `CREATE TABLE`.
    Create,
    /// `CREATE OR REPLACE TABLE`.
    CreateOrReplace,
    /// `REPLACE TABLE`.
    Replace,
}

impl AsSelect {
    /// The name in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE TABLE AS SELECT",
            Self::CreateOrReplace => "CREATE OR REPLACE TABLE AS SELECT",
            Self::Replace => "REPLACE TABLE AS SELECT",
        }
    }
}

impl WriteOptions {
    /// Whether only some rows of the table are replaced.
    pub(super) fn is_partial(&self) -> bool {
        self.has_predicate || self.dynamic_partitions || !self.keys.is_empty()
    }

    /// The `dataChange` of the files that are added and removed.
    pub(super) fn changes_rows(&self) -> bool {
        self.data_change.unwrap_or(true)
    }

    /// The definition of a new table.
    pub(super) fn create_options(&self) -> CreateOptions {
        CreateOptions {
            mode: self.mode,
            partition_by: self.partition_by.clone().unwrap_or_default(),
            cluster_by: self.cluster_by.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            configuration: self.configuration.clone(),
            allow_unknown: self.allow_unknown,
            commit_options: CommitOptions::default(),
        }
    }
}

pub(super) fn check_options(options: &WriteOptions) -> Result<()> {
    if options.schema_mode == Some(SchemaMode::Overwrite) && options.mode == SaveMode::Append {
        return Err(Error::invalid(format!(
            "{} replaces the table's schema, which {} cannot; use {}",
            CallOption::SchemaModeOverwrite,
            CallOption::ModeAppend,
            CallOption::ModeOverwrite
        ))
        .with_code(ErrorCode::SchemaModeNeedsOverwrite, &[]));
    }
    let partly = options.is_partial();
    if partly && options.mode != SaveMode::Overwrite {
        let chosen_by: &[CallOption] = if options.has_predicate {
            &[CallOption::Predicate]
        } else if options.dynamic_partitions {
            &[CallOption::PartitionOverwriteMode]
        } else {
            &[CallOption::ReplaceUsing, CallOption::ReplaceOn]
        };
        let names: Vec<String> = chosen_by.iter().map(ToString::to_string).collect();
        return Err(Error::invalid(format!(
            "{} says which rows are replaced and needs {}",
            names.join(" or "),
            CallOption::ModeOverwrite
        ))
        .with_code(ErrorCode::ReplacementNeedsOverwrite, &[]));
    }
    if [
        options.has_predicate,
        options.dynamic_partitions,
        !options.keys.is_empty(),
    ]
    .into_iter()
    .filter(|given| *given)
    .count()
        > 1
    {
        return Err(Error::invalid(format!(
            "give one of {}, {}, {} and {}: each says which rows are replaced",
            CallOption::Predicate,
            CallOption::PartitionOverwriteModeDynamic,
            CallOption::ReplaceUsing,
            CallOption::ReplaceOn
        ))
        .with_code(ErrorCode::ReplacementsExclude, &[]));
    }
    if !options.keys.is_empty() && !options.changes_rows() {
        return Err(Error::invalid(format!(
            "{} and {} change rows; {} is for writes that only rearrange them",
            CallOption::ReplaceUsing,
            CallOption::ReplaceOn,
            CallOption::DataChangeFalse
        )));
    }
    invariant!(
        options.as_select.is_none() || !(partly || options.schema_mode.is_some()),
        "a table that is made of a query replaces all of an old one"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let options = |edit: &dyn Fn(&mut WriteOptions)| {
            let mut options = WriteOptions {
                mode: SaveMode::Overwrite,
                ..WriteOptions::default()
            };
            edit(&mut options);
            check_options(&options).map_err(|e| e.to_string())
        };
        assert!(options(&|_| {}).is_ok());
        let refused: [&dyn Fn(&mut WriteOptions); 3] = [
            &|o| (o.mode, o.schema_mode) = (SaveMode::Append, Some(SchemaMode::Overwrite)),
            &|o| (o.mode, o.has_predicate) = (SaveMode::Append, true),
            &|o| {
                (o.has_predicate, o.dynamic_partitions) = (true, true);
            },
        ];
        for edit in refused {
            assert!(options(edit).is_err());
        }
    }
}
