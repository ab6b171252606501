//! The commit of a write: its transaction and what the log records of the operation.

use super::replacement::{ReadDependency, ReplacedRows};
use super::write_command::WriteCommand;
use super::write_options::AsSelect;
use crate::commit::finish::{CommitResult, commit, json_string_list, metric_value};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::file_writer::bound_constraints::{self, TableConstraints};
use crate::file_writer::{WriteOutput, WrittenDataFile};
use crate::ops::create::operation_parameters;
use crate::ops::optimize::clustering::clustering_columns_json;
use crate::ops::rewrite::start_state::{SaveMode, TableOrPath};
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Action, Add, Cdc};
use serde_json::{Map, Value};

impl WriteCommand {
    /// Commits; if another writer created the table first, appends to that table if possible.
    pub(super) fn commit_or_append(
        &self,
        transaction: Result<OptimisticTransaction>,
        adds: &[Add],
        operation: &CommitOperation,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let committed = transaction.and_then(|transaction| {
            commit(
                transaction,
                operation.clone(),
                &self.options.commit_options,
                cancel,
            )
        });
        match committed {
            Err(error) if self.can_append_after_race(&error) => {
                self.append_after_race(error, adds, operation, cancel)
            }
            other => other,
        }
    }

    pub(super) fn transaction(
        &self,
        change: &ReplacedRows,
        adds: &[Add],
        metadata: Option<Metadata>,
        changes: Vec<Cdc>,
    ) -> Result<OptimisticTransaction> {
        let mut transaction = self.destination.transaction()?;
        match &change.read_dependency {
            ReadDependency::Nothing => {}
            ReadDependency::All => transaction.read_whole_table(),
            ReadDependency::Rows(predicate) => transaction.read_rows(predicate.clone()),
        }
        transaction.read_files(change.matched.files.iter().map(|add| add.path.as_str()))?;
        if self.is_changed {
            transaction.push(Action::Protocol(self.target.protocol.clone()));
        }
        transaction.extend(metadata.map(|metadata| Action::MetaData(Box::new(metadata))));
        transaction.extend(self.domains.iter().cloned().map(Action::DomainMetadata));
        let now = now_ms();
        transaction.extend(
            change
                .matched
                .files
                .iter()
                .map(|add| Action::Remove(add.to_remove(now, self.options.changes_rows()))),
        );
        transaction.extend(adds.iter().cloned().map(Action::Add));
        transaction.extend(changes.into_iter().map(Action::Cdc));
        Ok(transaction)
    }

    /// Whether another writer created the table that this append would have created.
    fn can_append_after_race(&self, error: &Error) -> bool {
        matches!(self.destination, TableOrPath::EmptyPath(..))
            && self.options.mode == SaveMode::Append
            && matches!(error, Error::CommitFailed { .. })
    }

    /// Appends to the table that another writer created in the meantime, if it has the same
    /// definition.
    fn append_after_race(
        &self,
        error: Error,
        adds: &[Add],
        operation: &CommitOperation,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let TableOrPath::EmptyPath(log, options) = &self.destination else {
            return Err(error);
        };
        let TableOrPath::Table(snapshot) = TableOrPath::open(log.clone(), *options)? else {
            return Err(error);
        };
        let same = snapshot.schema() == &self.target.schema
            && snapshot.metadata().partition_columns == self.target.metadata.partition_columns
            && snapshot.metadata().configuration == self.target.metadata.configuration
            && snapshot.protocol() == &self.target.protocol
            && bound_constraints::identities(&self.target.protocol, &self.target.schema)?
                .is_empty();
        if !same {
            return Err(error);
        }
        let mut transaction = OptimisticTransaction::new(&snapshot);
        transaction.extend(adds.iter().cloned().map(Action::Add));
        commit(
            transaction,
            operation.clone(),
            &self.options.commit_options,
            cancel,
        )
    }

    /// The metric for the number of new files, which delta-spark names differently for streaming
    /// batches and other writes.
    pub(super) fn files_metric(&self) -> &'static str {
        if self.options.batch.is_some() {
            "numAddedFiles"
        } else {
            "numFiles"
        }
    }

    pub(super) fn operation(
        &self,
        bound: &TableConstraints,
        written: &WriteOutput,
        change: &ReplacedRows,
        kept: &WriteOutput,
        changes: usize,
    ) -> Result<CommitOperation> {
        let mut operation =
            CommitOperation::new(self.options.as_select.map_or("WRITE", AsSelect::name));
        let mut parameters = Map::new();
        if let Some(batch) = &self.options.batch {
            "STREAMING UPDATE".clone_into(&mut operation.name);
            let mode = if self.options.mode == SaveMode::Overwrite {
                "Complete"
            } else {
                "Append"
            };
            parameters.insert("outputMode".to_owned(), mode.into());
            parameters.insert("queryId".to_owned(), batch.query_id.as_str().into());
            parameters.insert("epochId".to_owned(), batch.epoch_id.to_string().into());
        } else if self.options.as_select.is_some() {
            parameters = operation_parameters(&self.target.metadata, &self.options.cluster_by)?;
        } else {
            parameters.insert("mode".to_owned(), self.options.mode.name().into());
            parameters.insert(
                "partitionBy".to_owned(),
                json_string_list(&self.target.metadata.partition_columns),
            );
        }
        if !self.options.cluster_by.is_empty()
            && (matches!(self.destination, TableOrPath::EmptyPath(..)) || !self.domains.is_empty())
        {
            parameters.insert(
                "clusterBy".to_owned(),
                clustering_columns_json(&self.target.metadata, &self.options.cluster_by)?,
            );
        }
        if let Some(predicate) = &bound.predicate {
            parameters.insert("predicate".to_owned(), predicate.sql.as_str().into());
        }
        if self.options.dynamic_partitions {
            parameters.insert("isDynamicPartitionOverwrite".to_owned(), Value::Bool(true));
        }
        if !self.options.keys.is_empty() {
            parameters.insert(
                "replaceOn".to_owned(),
                self.options
                    .keys
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" AND ")
                    .into(),
            );
        }
        operation.parameters = parameters;
        let bytes = |files: &[WrittenDataFile]| files.iter().map(|file| file.size).sum::<u64>();
        let mut metrics = Map::new();
        let mut set = |key: &str, value: Value| metrics.insert(key.to_owned(), value);
        set(
            self.files_metric(),
            metric_value(written.files.len() + kept.files.len()),
        );
        set("numOutputRows", metric_value(written.rows + kept.rows));
        set(
            "numOutputBytes",
            metric_value(bytes(&written.files) + bytes(&kept.files)),
        );
        if self.options.mode == SaveMode::Overwrite || self.options.batch.is_some() {
            set("numRemovedFiles", metric_value(change.matched.files.len()));
        }
        if self.options.mode == SaveMode::Overwrite && self.options.batch.is_none() {
            set(
                "numRemovedBytes",
                metric_value(change.matched.files.iter().map(|add| add.size).sum::<i64>()),
            );
        }
        if let Some(rows) = change
            .matched
            .rows
            .filter(|_| change.matched.rows_scanned || self.options.has_predicate)
        {
            set("numDeletedRows", metric_value(rows));
            set("numCopiedRows", metric_value(kept.rows));
            set("numAddedChangeFiles", metric_value(changes));
        }
        operation.metrics = metrics;
        Ok(operation)
    }
}
