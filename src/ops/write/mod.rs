//! Writes: append rows to a table, or replace rows by them.
//!
//! A write has two steps, since expressions are bound outside of the core: [`WriteCommand::plan`]
//! determines the table's schema, protocol and metadata and the expressions to bind;
//! [`WriteCommand::run`] writes the files and commits. The rows that a write replaces are
//! determined before its input is read. Files of which all rows match are removed. In the others,
//! the rows that a predicate selects are marked by deletion vectors if the table has them;
//! otherwise the remaining rows are copied, and a table with a change data feed gets change data
//! files, which distinguish the copies from changes.
//!
//! Protocol: "Requirements for Writers", "Append-only Tables", "Change Data Files", "Row Tracking",
//! "Identity Columns". Cost: one pass over the rows; replacing by a predicate reads the files that
//! may match, twice.

mod existing_files;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::commit::finish::{CommitOptions, CommitResult, commit, json_string_list, metric_value};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{CallOption, Error, ErrorCode, Result, invariant};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::expr::BoundExpr;
use crate::ops::create::{
    CreateOptions, GENERATED, TableDefinition, checked_clustering, generated_value_key,
    operation_parameters, schema_column_name, table_definition,
};
use crate::ops::optimize::auto_compact;
use crate::ops::optimize::clustering::clustering_columns_json;
use crate::ops::rewrite::clustering_domain::{CLUSTERING, clustering_domain};
use crate::ops::rewrite::column_path::resolve_column_path;
use crate::ops::rewrite::matched_rows::MatchedRows;
use crate::ops::rewrite::partition_predicate::PartitionSet;
use crate::ops::rewrite::replace_keys::{ReplaceKey, ReplaceKeySet};
use crate::ops::rewrite::row_deletion;
use crate::ops::rewrite::start_state::{
    SaveMode, SchemaMode, TableOrPath, check_catalog, check_changeable, check_writable,
};
use crate::ops::rewrite::target_table::{DataFileOptions, TargetTable, cdc_action};
use crate::ops::rewrite::uncommitted_files::uncommitted_in_folders;
use crate::ops::rewrite::uncommitted_files::{UncommittedFiles, add_action};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::{Action, Add, Cdc, Remove};
use crate::protocol::evolution;
use crate::protocol::features;
use crate::protocol::iceberg;
use crate::protocol::properties;
use crate::protocol::schema::{StringLayout, StructField, StructType};
use crate::protocol::table::{self, TableChangeContext};
use crate::snapshot::Snapshot;
use crate::write::bound_constraints::{self, TableConstraints};
use crate::write::cast::{self, ColumnPositions};
use crate::write::constraints::{IdentityColumn, WriteRules};
use crate::write::external_files::{self, ExternalFileSet};
use crate::write::with_change_feed::write_with_change_data;
use crate::write::{WriteOutput, WriteRequest, WrittenDataFile, write};

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
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE TABLE AS SELECT",
            Self::CreateOrReplace => "CREATE OR REPLACE TABLE AS SELECT",
            Self::Replace => "REPLACE TABLE AS SELECT",
        }
    }
}

impl WriteOptions {
    /// Whether only some rows of the table are replaced.
    fn is_partial(&self) -> bool {
        self.has_predicate || self.dynamic_partitions || !self.keys.is_empty()
    }

    /// The `dataChange` of the files that are added and removed.
    fn changes_rows(&self) -> bool {
        self.data_change.unwrap_or(true)
    }

    /// The definition of a new table.
    fn create_options(&self) -> CreateOptions {
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

/// A validated write that waits for its expressions and its rows.
#[derive(Debug, Clone)]
pub struct WriteCommand {
    destination: TableOrPath,
    options: WriteOptions,
    /// The table after the write.
    target: TargetTable,
    /// Whether the write changes the table's metadata.
    is_changed: bool,
    domains: Vec<DomainMetadata>,
    constraints: TableConstraints,
    /// Identity columns for which the data has no values.
    generated_identities: Vec<IdentityColumn>,
    /// Identity columns for which the data has values.
    explicit_identities: Vec<IdentityColumn>,
    /// The rows to replace, if determined before the rows were written.
    replacement: Option<ReplacementPlan>,
    /// The keys of the data, if only rows with these keys are replaced.
    keys: Option<Arc<Mutex<ReplaceKeySet>>>,
    /// Warnings for the caller.
    warnings: Vec<String>,
}

fn schema_hint() -> String {
    format!(
        "pass {} to add it to the table",
        CallOption::SchemaModeMerge
    )
}

impl WriteCommand {
    /// Determines the table after writing data with this schema. `None` if there is nothing to do.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::SchemaMismatch`] for errors that can be found before any row
    /// is read; [`Error::Unsupported`] for tables that this release cannot write.
    pub fn plan(
        place: TableOrPath,
        data: &StructType,
        options: WriteOptions,
    ) -> Result<Option<Self>> {
        check_options(&options)?;
        let mut warnings = Vec::new();
        let Some(((protocol, metadata, domains), is_changed)) =
            planned_definition(&place, data, &options, &mut warnings)?
        else {
            return Ok(None);
        };
        if is_changed && !options.changes_rows() {
            return Err(Error::invalid(
                "a write with dataChange=false rearranges the rows of an existing table; it cannot create the table or change its schema or properties",
            ));
        }
        let schema = StructType::parse(&metadata.schema_string)?;
        let columns = find_columns(data, &schema, &options)?;
        let lacks = |field: &StructField| {
            let n = schema.fields.position(&field.name);
            n.is_some_and(|n| matches!(columns.positions.get(n), Some(None)))
        };
        let constraints = TableConstraints::of(&protocol, &metadata, &schema, lacks)?;
        let identities = bound_constraints::identities(&protocol, &schema)?;
        let (counted, given): (Vec<IdentityColumn>, Vec<IdentityColumn>) = identities
            .into_iter()
            .partition(|identity| schema.field(&identity.column).is_some_and(lacks));
        // Errors that do not depend on the rows are reported before any row is read.
        check_not_null(&schema, lacks, &constraints, &counted)?;
        if options.dynamic_partitions {
            let mut partition = metadata
                .partition_columns
                .iter()
                .filter_map(|name| schema.field(name));
            partition.try_for_each(|field| {
                field.check_byte_order("replacing partitions of the column")
            })?;
        }
        let keys = replaced_keys(&place, data, &options)?;
        let encoding = options.encoding.clone();
        Ok(Some(Self {
            destination: place,
            options,
            target: TargetTable {
                protocol,
                metadata,
                schema,
                encoding,
            },
            is_changed,
            domains,
            constraints,
            generated_identities: counted,
            explicit_identities: given,
            replacement: None,
            keys,
            warnings,
        }))
    }

    /// The expressions to bind, against [`WriteCommand::schema`].
    #[must_use]
    pub fn table_constraints(&self) -> &TableConstraints {
        &self.constraints
    }

    /// The table's schema after the write.
    #[must_use]
    pub fn schema(&self) -> &StructType {
        &self.target.schema
    }

    /// Writes the rows and commits.
    ///
    /// # Errors
    /// As [`write`] and [`OptimisticTransaction::commit`]. New files are deleted after an error,
    /// unless the outcome of the commit is unknown.
    pub fn run(
        self,
        bound: &TableConstraints,
        rows: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let rules = bound.rules(
            &self.constraints,
            bound_constraints::identities(&self.target.protocol, &self.target.schema)?,
        )?;
        // Progress counts the written rows, not the files that are copied.
        let (progress, cancel) = (cancel.progress().clone(), &cancel.without_progress());
        let change = self.rows_to_replace(bound, cancel)?;
        let mut orphans = UncommittedFiles::new(self.destination.store());
        let request = WriteRequest {
            progress,
            ..self.target.write_request(rules, cancel)?
        };
        // The changes of deletion vectors and of whole files can be derived from the log.
        let marks = self.uses_deletion_vectors(&change);
        let writes_change_data = self.target.has_change_data_feed()
            && (self.keys.is_some() || (!change.matched.partial.is_empty() && !marks));
        let rows = with_key_tracking(rows, self.keys.clone());
        if writes_change_data {
            let both = write_with_change_data(self.destination.store(), &request, rows)?;
            for written in both.iter().flatten() {
                orphans.add(&written.files);
            }
            let [written, inserted] = both;
            return self.finish(
                bound,
                change,
                written?,
                ChangeDataSource::Inserted(inserted?),
                orphans,
                cancel,
            );
        }
        let written = write(self.destination.store(), &request, rows)?;
        orphans.add(&written.files);
        self.finish(
            bound,
            change,
            written,
            ChangeDataSource::DerivedFromLog,
            orphans,
            cancel,
        )
    }

    /// Determines the rows to replace, for another engine that writes. Returns whether the engine
    /// must write change data: the removed rows and the new ones.
    ///
    /// # Errors
    /// Errors of reading the files that may have such rows; [`Error::Unsupported`] if the rows
    /// themselves are needed, [`Error::Invalid`] for values of an identity column that only the
    /// table may generate.
    pub fn plan_replacement(
        &mut self,
        bound: &TableConstraints,
        cancel: &CancellationToken,
    ) -> Result<bool> {
        if self.keys.is_some() {
            return Err(Error::unsupported(
                "another engine cannot replace rows by keys, which needs its rows; write them through the core",
            ));
        }
        self.explicit_identities
            .iter()
            .try_for_each(IdentityColumn::check_given)?;
        let change = self.rows_to_replace(bound, cancel)?;
        let writes_change_data = self.target.has_change_data_feed()
            && !change.matched.partial.is_empty()
            && !self.uses_deletion_vectors(&change);
        self.replacement = Some(ReplacementPlan {
            change,
            writes_change_data,
        });
        Ok(writes_change_data)
    }

    /// The version that is read; `None` if the table does not exist.
    #[must_use]
    pub fn version(&self) -> Option<i64> {
        match &self.destination {
            TableOrPath::Table(snapshot) => Some(snapshot.version()),
            TableOrPath::EmptyPath(..) => None,
        }
    }

    /// Identity columns for which values must be generated.
    #[must_use]
    pub fn generated_identities(&self) -> &[IdentityColumn] {
        &self.generated_identities
    }

    /// Commits the files in a folder of the table as the rows of the write; another engine has
    /// cast, checked and written them. `changes` is the folder with change data, if
    /// [`WriteCommand::plan_replacement`] requires it. Other files in these folders are deleted;
    /// after an error all files in them are deleted, unless the outcome of the commit is unknown.
    ///
    /// # Errors
    /// As [`WriteCommand::run`] and
    /// [`inspect_external_files`](external_files::inspect_external_files); [`Error::Unsupported`]
    /// if the rows themselves are needed.
    pub fn run_folder(
        mut self,
        bound: &TableConstraints,
        folder: &str,
        changes: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let store = Arc::clone(self.destination.store());
        let orphans =
            uncommitted_in_folders(&store, std::iter::once(folder).chain(changes), cancel)?;
        let rules = WriteRules {
            identities: self.generated_identities.clone(),
            ..WriteRules::default()
        };
        let request = self.target.write_request(rules, cancel)?;
        if request.materialize_partition_columns && !request.partition_columns.is_empty() {
            return Err(Error::unsupported(
                "the table's files hold the partition columns, too, which needs its rows; write them through the core",
            ));
        }
        let change = self.take_replacement(changes)?;
        let ExternalFileSet {
            files,
            non_data_files: mut rest,
            identities,
        } = external_files::inspect_external_files(&store, &request, folder, cancel)?;
        let written = WriteOutput {
            rows: files.iter().map(|file| file.num_records).sum(),
            files,
            identities,
        };
        let feed = self.external_change_data(changes, &[], &mut rest, cancel)?;
        let done = self.finish(bound, change, written, feed, orphans, cancel)?;
        // Files that cannot be deleted are left to vacuum.
        let _ = store.delete_batch(&rest);
        Ok(done)
    }

    /// Commits files that other processes wrote with [`crate::write::write`]: rows, and change data
    /// for inserts if [`WriteCommand::plan_replacement`] requires it, in addition to the folder
    /// with other change data. After an error they are deleted, unless the outcome of the commit is
    /// unknown.
    ///
    /// # Errors
    /// As [`WriteCommand::run_folder`].
    pub fn run_written(
        mut self,
        bound: &TableConstraints,
        written: WriteOutput,
        inserted: &[WrittenDataFile],
        changes: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let store = Arc::clone(self.destination.store());
        let mut orphans = uncommitted_in_folders(&store, changes.into_iter(), cancel)?;
        orphans.add(&written.files);
        orphans.add(inserted);
        let mut rest = Vec::new();
        let (change, feed) = (
            self.take_replacement(changes)?,
            self.external_change_data(changes, inserted, &mut rest, cancel)?,
        );
        let done = self.finish(bound, change, written, feed, orphans, cancel)?;
        let _ = store.delete_batch(&rest);
        Ok(done)
    }

    /// The result of [`WriteCommand::plan_replacement`].
    fn take_replacement(&mut self, changes: Option<&str>) -> Result<ReplacedRows> {
        match self.replacement.take() {
            Some(settled) if settled.writes_change_data == changes.is_some() => Ok(settled.change),
            Some(_) => Err(Error::internal(
                "another engine wrote changes where none are wanted, or none where they are",
            )),
            None => Err(Error::internal(
                "a write of another engine is committed before it is settled what it replaces",
            )),
        }
    }

    /// Change data that others wrote: known files, and the files of a folder.
    fn external_change_data(
        &self,
        folder: Option<&str>,
        known: &[WrittenDataFile],
        rest: &mut Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<ChangeDataSource> {
        let (Some(folder), TableOrPath::Table(snapshot)) = (folder, &self.destination) else {
            return Ok(ChangeDataSource::DerivedFromLog);
        };
        let mut told = self
            .target
            .inspect_external_folder(folder, true, snapshot, cancel)?;
        rest.append(&mut told.non_data_files);
        told.files.extend_from_slice(known);
        Ok(ChangeDataSource::ExternalFiles(told.files))
    }

    /// Deletes all files that a write left in folders and that no version references.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn abandon(&self, folders: &[String], cancel: &CancellationToken) -> Result<()> {
        drop(uncommitted_in_folders(
            self.destination.store(),
            folders.iter().map(String::as_str),
            cancel,
        )?);
        Ok(())
    }

    /// Protocol and metadata of the table after the write.
    #[must_use]
    pub fn target(&self) -> (&Protocol, &Metadata) {
        (&self.target.protocol, &self.target.metadata)
    }

    /// Whether the table's data files also hold the partition columns.
    #[must_use]
    pub fn materializes_partition_columns(&self) -> bool {
        self.target.materializes_partition_columns()
    }

    /// Removes the replaced rows after the new files were written, and commits.
    fn finish(
        self,
        bound: &TableConstraints,
        mut change: ReplacedRows,
        written: WriteOutput,
        feed: ChangeDataSource,
        mut orphans: UncommittedFiles,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        if self.options.dynamic_partitions {
            self.replace_partitions(&mut change, &written.files, cancel)?;
        }
        self.replace_by_keys(&mut change, cancel)?;
        let changes = self.change_data_actions(feed, &change, &mut orphans, cancel)?;
        let marks = self.uses_deletion_vectors(&change);
        let (kept, marked) = self.keep_remaining_rows(&mut change, &mut orphans, cancel)?;
        let mut operation = self.operation(bound, &written, &change, &kept, changes.len())?;
        let mut metadata = self.is_changed.then(|| self.target.metadata.clone());
        if !written.identities.is_empty() {
            operation.identity_only = metadata.is_none();
            metadata = Some(self.target.with_high_water_marks(&written.identities));
        }
        let ends = !change.matched.files.is_empty() || marks;
        operation.row_ids_preserved =
            ends.then(|| self.target.tracks_rows() || marks || change.matched.partial.is_empty());
        let adds: Vec<Add> = written
            .files
            .into_iter()
            .chain(kept.files)
            .map(|file| Add {
                data_change: self.options.changes_rows(),
                ..add_action(file, &self.target.metadata)
            })
            .collect();
        let touched = adds
            .iter()
            .map(|add| add.partition_values.clone())
            .collect();
        let transaction = self
            .transaction(&change, &adds, metadata, changes)
            .and_then(|mut transaction| {
                transaction.replace(marked)?;
                Ok(transaction)
            });
        let done = orphans.commit(|| self.commit_or_append(transaction, &adds, &operation, cancel));
        match done {
            Err(error) if error.may_be_committed() => Err(error),
            // If that is not an error, the new rows are no longer needed.
            Err(error) => self
                .destination
                .resolve_create_race(error, self.options.mode),
            Ok(mut done) => {
                done.warnings.splice(0..0, self.warnings.iter().cloned());
                Ok(auto_compact::compact_after_commit(
                    done,
                    &touched,
                    &self.options.commit_options,
                    cancel,
                ))
            }
        }
    }

    /// The change data of a write; writes that of the removed rows if only that of the new rows was
    /// written.
    fn change_data_actions(
        &self,
        feed: ChangeDataSource,
        change: &ReplacedRows,
        orphans: &mut UncommittedFiles,
        cancel: &CancellationToken,
    ) -> Result<Vec<Cdc>> {
        match (feed, &self.destination) {
            (ChangeDataSource::Inserted(inserted), TableOrPath::Table(snapshot)) => {
                let deleted = self.target.write_change_data(
                    snapshot,
                    change
                        .matched
                        .selected_rows()
                        .map(|rows| (rows, "delete", None)),
                    cancel,
                )?;
                orphans.add(&deleted.files);
                Ok(deleted
                    .files
                    .into_iter()
                    .chain(inserted.files)
                    .map(cdc_action)
                    .collect())
            }
            (ChangeDataSource::ExternalFiles(files), _) => {
                Ok(files.into_iter().map(cdc_action).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Keeps the rows of partially replaced files: returns their copies, or the actions for
    /// deletion vectors, whose files are then not removed.
    fn keep_remaining_rows(
        &self,
        change: &mut ReplacedRows,
        orphans: &mut UncommittedFiles,
        cancel: &CancellationToken,
    ) -> Result<(WriteOutput, Vec<Action>)> {
        match &self.destination {
            TableOrPath::Table(snapshot) if self.uses_deletion_vectors(change) => {
                let (whole, partial) = change.matched.split_by_coverage();
                let marked = row_deletion::write_deletion_vectors(
                    snapshot,
                    partial,
                    &change.matched.partial,
                    orphans,
                    cancel,
                )?;
                change.matched.files = whole;
                Ok((WriteOutput::default(), marked.actions))
            }
            _ => {
                let kept = self.copy_remaining_rows(change, cancel)?;
                orphans.add(&kept.files);
                Ok((kept, Vec::new()))
            }
        }
    }

    /// Commits; if another writer created the table first, appends to that table if possible.
    fn commit_or_append(
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

    /// Commits files that another program wrote, and removes others.
    ///
    /// # Errors
    /// As [`WriteCommand::run`]; [`Error::Invalid`] for actions that cannot be right,
    /// [`Error::NotFound`] for a file that does not exist. The files are kept in any case.
    pub fn run_files(
        self,
        bound: &TableConstraints,
        actions: Vec<Action>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let mut adds: Vec<Add> = Vec::new();
        let mut removes: Vec<Remove> = Vec::new();
        for action in actions {
            match action {
                Action::Add(add) => adds.push(add),
                Action::Remove(remove) => removes.push(remove),
                _ => {
                    return Err(Error::invalid(
                        "only `add` and `remove` actions can be committed this way",
                    ));
                }
            }
        }
        existing_files::check_added_files(&self.destination, &self.target, &mut adds, cancel)?;
        let removes = existing_files::removals_of_live_files(&self.destination, removes, cancel)?;
        let change = self.rows_to_replace(bound, cancel)?;
        if !change.matched.partial.is_empty() {
            return Err(Error::invalid(
                "the filter must choose whole partitions: some files hold rows of both kinds",
            ));
        }
        let written = WriteOutput {
            files: Vec::new(),
            rows: 0,
            identities: Vec::new(),
        };
        let mut operation = self.operation(bound, &written, &change, &WriteOutput::default(), 0)?;
        let bytes: i64 = adds.iter().map(|add| add.size).sum();
        let rows: i64 = adds.iter().filter_map(Add::num_records).sum();
        for (key, value) in [
            (self.files_metric(), metric_value(adds.len())),
            ("numOutputRows", metric_value(rows)),
            ("numOutputBytes", metric_value(bytes)),
        ] {
            operation.metrics.insert(key.to_owned(), value);
        }
        let committed = self
            .transaction(
                &change,
                &adds,
                self.is_changed.then(|| self.target.metadata.clone()),
                Vec::new(),
            )
            .and_then(|mut transaction| {
                transaction.read_files(removes.iter().map(|remove| remove.path.as_str()))?;
                transaction.extend(removes.into_iter().map(Action::Remove));
                commit(transaction, operation, &self.options.commit_options, cancel)
            });
        let touched = adds
            .iter()
            .map(|add| add.partition_values.clone())
            .collect();
        match committed {
            Ok(done) => Ok(auto_compact::compact_after_commit(
                done,
                &touched,
                &self.options.commit_options,
                cancel,
            )),
            Err(error) => self
                .destination
                .resolve_create_race(error, self.options.mode),
        }
    }

    fn transaction(
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
    fn files_metric(&self) -> &'static str {
        if self.options.batch.is_some() {
            "numAddedFiles"
        } else {
            "numFiles"
        }
    }

    fn operation(
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

/// The rows to replace, determined before another engine wrote.
#[derive(Debug, Clone)]
struct ReplacementPlan {
    change: ReplacedRows,
    /// Whether the engine must write change data.
    writes_change_data: bool,
}

/// The source of a write's change data.
enum ChangeDataSource {
    /// It is derived from the log.
    DerivedFromLog,
    /// The new rows are in these change data files; those for the removed rows are not written yet.
    Inserted(WriteOutput),
    /// All of it is in these files.
    ExternalFiles(Vec<WrittenDataFile>),
}

/// The rows that a write removes.
#[derive(Debug, Clone, Default)]
struct ReplacedRows {
    /// The removed rows.
    matched: MatchedRows,
    read_dependency: ReadDependency,
}

/// The reads that a write depends on.
#[derive(Debug, Clone, Default)]
enum ReadDependency {
    #[default]
    Nothing,
    All,
    Rows(BoundExpr),
}

impl WriteCommand {
    /// Determines the rows to replace, before anything is written.
    fn rows_to_replace(
        &self,
        bound: &TableConstraints,
        cancel: &CancellationToken,
    ) -> Result<ReplacedRows> {
        let predicate = bound.replaced()?;
        invariant!(
            predicate.is_some() == self.options.has_predicate,
            "the predicate of a replacement was not bound"
        );
        let TableOrPath::Table(snapshot) = &self.destination else {
            return Ok(ReplacedRows::default());
        };
        if self.options.mode != SaveMode::Overwrite
            || self.options.dynamic_partitions
            || self.keys.is_some()
        {
            return Ok(ReplacedRows::default());
        }
        let Some(predicate) = predicate else {
            return Ok(ReplacedRows {
                matched: MatchedRows::of_whole_files(all_live_adds(snapshot, cancel)?),
                read_dependency: ReadDependency::All,
            });
        };
        // Columns that the write adds have no values in existing rows.
        let known = predicate
            .column_names()
            .into_iter()
            .all(|name| snapshot.schema().field(name).is_some());
        if !known {
            return Err(Error::invalid(
                "the predicate names a column that the table does not have yet; replace rows by the columns that are there",
            ));
        }
        let matched = MatchedRows::find_rows(snapshot, Some(&predicate), None, cancel)?;
        if !(matched.partial.is_empty() || self.options.changes_rows()) {
            return Err(Error::invalid(
                "a write with dataChange=false replaces whole files, but some files also have rows that the predicate does not match",
            ));
        }
        Ok(ReplacedRows {
            matched,
            read_dependency: ReadDependency::Rows(predicate),
        })
    }

    /// Removes the files of the partitions that were written.
    fn replace_partitions(
        &self,
        change: &mut ReplacedRows,
        written: &[WrittenDataFile],
        cancel: &CancellationToken,
    ) -> Result<()> {
        let TableOrPath::Table(snapshot) = &self.destination else {
            return Ok(());
        };
        if snapshot.metadata().partition_columns.is_empty() {
            change.matched = MatchedRows::of_whole_files(all_live_adds(snapshot, cancel)?);
            change.read_dependency = ReadDependency::All;
            return Ok(());
        }
        if written.is_empty() {
            return Ok(());
        }
        let partitions = PartitionSet::of(snapshot, written)?;
        change.matched =
            MatchedRows::of_whole_files(matching_live_adds(snapshot, cancel, |batch| {
                partitions.matching_files(batch)
            })?);
        change.read_dependency = partitions
            .predicate()?
            .map_or(ReadDependency::All, ReadDependency::Rows);
        Ok(())
    }

    /// Removes the rows whose keys were written.
    fn replace_by_keys(&self, change: &mut ReplacedRows, cancel: &CancellationToken) -> Result<()> {
        let (TableOrPath::Table(snapshot), Some(keys)) = (&self.destination, &self.keys) else {
            return Ok(());
        };
        let keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        // Without keys no row can be replaced.
        let Some(predicate) = keys.predicate()? else {
            return Ok(());
        };
        *change = ReplacedRows {
            matched: MatchedRows::find_rows(snapshot, Some(&predicate), Some(&keys), cancel)?,
            read_dependency: ReadDependency::Rows(predicate),
        };
        Ok(())
    }

    /// Whether rows are deleted by deletion vectors, so that their files are kept.
    fn uses_deletion_vectors(&self, change: &ReplacedRows) -> bool {
        let keeps_schema = self.options.schema_mode != Some(SchemaMode::Overwrite);
        self.options.has_predicate
            && keeps_schema
            && self.target.has_deletion_vectors()
            && !change.matched.partial.is_empty()
    }

    /// Copies the remaining rows of removed files.
    fn copy_remaining_rows(
        &self,
        change: &ReplacedRows,
        cancel: &CancellationToken,
    ) -> Result<WriteOutput> {
        match &self.destination {
            TableOrPath::Table(snapshot) if !change.matched.partial.is_empty() => self.target.copy(
                snapshot,
                change.matched.remaining_rows(),
                WriteRules::default(),
                None,
                cancel,
            ),
            _ => Ok(WriteOutput::default()),
        }
    }
}

/// The rows; their keys are recorded as they are read.
fn with_key_tracking(
    rows: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    keys: Option<Arc<Mutex<ReplaceKeySet>>>,
) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
    rows.map(move |batch| {
        let batch = batch?;
        if let Some(keys) = &keys {
            keys.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .note(&batch)?;
        }
        Ok(batch)
    })
}

fn check_options(options: &WriteOptions) -> Result<()> {
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

/// The definition of the table after the write, and whether it changes; `None` if there is nothing
/// to do.
fn planned_definition(
    place: &TableOrPath,
    data: &StructType,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<(TableDefinition, bool)>> {
    let planned = match (place, options.mode) {
        (TableOrPath::Table(_), SaveMode::Ignore) => return Ok(None),
        (TableOrPath::Table(_), SaveMode::Error) => return Err(place.table_exists_error()),
        (TableOrPath::Table(snapshot), _) if options.as_select.is_some() => {
            check_writable(snapshot)?;
            check_changeable(snapshot)?;
            let definition = table_definition(data, &options.create_options(), Some(snapshot))?;
            (definition, true)
        }
        (TableOrPath::Table(snapshot), _) => {
            check_writable(snapshot)?;
            if options.mode == SaveMode::Overwrite {
                check_changeable(snapshot)?;
            }
            warn_ignored_properties(snapshot, options, warnings);
            let (protocol, metadata, domains) = evolved_definition(snapshot, data, options)?;
            let is_changed = metadata != *snapshot.metadata() || protocol != *snapshot.protocol();
            ((protocol, metadata, domains), is_changed)
        }
        (TableOrPath::EmptyPath(..), _) => {
            let definition = table_definition(data, &options.create_options(), None)?;
            (definition, true)
        }
    };
    let ((_, metadata, _), _) = &planned;
    check_catalog(place.log(), metadata)?;
    Ok(Some(planned))
}

/// Finds the columns of the data in the table; errors for additional columns have a hint if the
/// write may not add them.
fn find_columns(
    data: &StructType,
    schema: &StructType,
    options: &WriteOptions,
) -> Result<ColumnPositions> {
    ColumnPositions::find(&data.to_arrow(StringLayout::Plain), schema).map_err(
        |error| match error {
            Error::SchemaMismatch {
                what,
                expected,
                found,
                context,
            } if options.schema_mode.is_none()
                && matches!(
                    context.code(),
                    Some(ErrorCode::FieldNotInTable | ErrorCode::FieldCountMismatch)
                ) =>
            {
                Error::SchemaMismatch {
                    what: format!("{what}; {}", schema_hint()),
                    expected,
                    found,
                    context,
                }
            }
            other => other,
        },
    )
}

/// Checks that every NOT NULL column that the data lacks has values from elsewhere: a default, an
/// expression or generated identities.
fn check_not_null(
    schema: &StructType,
    lacks: impl Fn(&StructField) -> bool,
    constraints: &TableConstraints,
    identities: &[IdentityColumn],
) -> Result<()> {
    let filled: FxHashSet<&str> = constraints
        .generated
        .iter()
        .chain(&constraints.defaults)
        .map(|computed| computed.name.as_str())
        .chain(identities.iter().map(|identity| identity.column.as_str()))
        .collect();
    let missing = schema
        .fields
        .iter()
        .find(|field| !field.nullable && lacks(field) && !filled.contains(field.name.as_str()));
    match missing {
        None => Ok(()),
        Some(field) => {
            Err(cast::missing_not_null_error("column", &field.data_type).at_column(&field.name))
        }
    }
}

/// The keys of a write that replaces rows by keys.
fn replaced_keys(
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
                options.encoding.zone()?,
            )?;
            Ok(Some(Arc::new(Mutex::new(keys))))
        }
        _ => Ok(None),
    }
}

/// Warns that options for a new table have no effect on an existing one.
fn warn_ignored_properties(
    snapshot: &Snapshot,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) {
    let metadata = snapshot.metadata();
    let same = |key: &str, value: Option<&String>| {
        value.is_none_or(|value| {
            metadata.configuration.get(key) == Some(value) || key.starts_with(properties::FEATURE)
        })
    };
    let differ: Vec<&str> = options
        .configuration
        .iter()
        .filter(|(key, value)| !same(key, value.as_ref()))
        .map(|(key, _)| key.as_str())
        .collect();
    if !differ.is_empty() {
        warnings.push(format!("`configuration` is for new tables and was not applied to this one ({}); use `alter.set_table_properties`", differ.join(", ")));
    }
}

/// Protocol, metadata and changed domains of an existing table after writing data with this schema.
pub(super) fn evolved_definition(
    snapshot: &Snapshot,
    data: &StructType,
    options: &WriteOptions,
) -> Result<TableDefinition> {
    let partly = options.is_partial();
    let replaces = options.schema_mode == Some(SchemaMode::Overwrite) && !partly;
    if !options.cluster_by.is_empty() && !replaces {
        check_same_clustering(snapshot, &options.cluster_by)?;
    }
    let partition_columns: Option<Vec<String>> = options.partition_by.as_ref().map(|names| {
        let schema = if replaces { data } else { snapshot.schema() };
        names
            .iter()
            .map(|name| schema_column_name(schema, name))
            .collect()
    });
    if let (false, Some(columns)) = (replaces, &partition_columns) {
        check_same_partitioning(snapshot.metadata(), columns)?;
    }
    match options.schema_mode {
        None => Ok(current_definition(snapshot)),
        Some(SchemaMode::Merge) => merged_definition(snapshot, data),
        // Some rows are kept, so the schema must be kept as well; callers that always set the mode
        // lose nothing.
        Some(SchemaMode::Overwrite) if partly => {
            check_same_columns(snapshot.schema(), data)?;
            Ok(current_definition(snapshot))
        }
        Some(SchemaMode::Overwrite) => {
            replaced_definition(snapshot, data, partition_columns, &options.cluster_by)
        }
    }
}

/// Checks that a write names the clustering columns that the table has.
fn check_same_clustering(snapshot: &Snapshot, columns: &[String]) -> Result<()> {
    let now = snapshot
        .non_file_actions()?
        .domains
        .get(CLUSTERING)
        .map(|domain| domain.configuration.clone());
    let paths = columns
        .iter()
        .map(|column| resolve_column_path(snapshot.schema(), column))
        .collect::<Result<Vec<_>>>()?;
    if now != Some(clustering_domain(snapshot.schema(), &paths)?.configuration) {
        return Err(Error::invalid(
            "`cluster_by` is not how the table is clustered; leave it out to write to the table as it is",
        ));
    }
    Ok(())
}

/// Checks that a write names the partition columns that the table has.
fn check_same_partitioning(metadata: &Metadata, columns: &[String]) -> Result<()> {
    if columns != metadata.partition_columns {
        let (expected, found) = (json!(metadata.partition_columns), json!(columns));
        return Err(Error::invalid(format!(
            "Specified table partitioning does not match table partitioning: expected: {expected}, got: {found}; leave {} out, or replace the table with {} and {}",
            CallOption::PartitionBy,
            CallOption::ModeOverwrite,
            CallOption::SchemaModeOverwrite
        ))
        .with_code(
            ErrorCode::PartitioningMismatch,
            &[("expected", &expected), ("found", &found)],
        ));
    }
    Ok(())
}

/// Checks that the data has exactly the columns of the table, with their types.
fn check_same_columns(table: &StructType, data: &StructType) -> Result<()> {
    let same = |field: &StructField| {
        table
            .field(&field.name)
            .is_some_and(|known| known.data_type == field.data_type)
    };
    if data.fields.len() != table.fields.len() || !data.fields.iter().all(same) {
        return Err(Error::invalid(format!(
            "{} replaces the whole table: it cannot go with {}, keys or dynamic partitions",
            CallOption::SchemaModeOverwrite,
            CallOption::Predicate
        ))
        .with_code(ErrorCode::OverwriteSchemaWithPartialOverwrite, &[]));
    }
    Ok(())
}

/// The definition of the table as it is.
fn current_definition(snapshot: &Snapshot) -> TableDefinition {
    (
        snapshot.protocol().clone(),
        snapshot.metadata().clone(),
        Vec::new(),
    )
}

/// The definition after new columns of the data were added.
fn merged_definition(snapshot: &Snapshot, data: &StructType) -> Result<TableDefinition> {
    let (protocol, metadata) = (snapshot.protocol(), snapshot.metadata());
    let widens = features::supported(protocol)
        .iter()
        .any(|name| name.starts_with("typeWidening"))
        && metadata.flag("delta.enableTypeWidening");
    for field in data
        .fields
        .iter()
        .filter(|field| snapshot.schema().field(&field.name).is_none())
    {
        if let Some(key) = generated_value_key(field) {
            let what = if key == GENERATED {
                "Schema evolved fields cannot have generated expressions. Recreate the table to achieve this"
            } else {
                "a column that is added while writing cannot have values made for it"
            };
            return Err(Error::schema_mismatch(
                what,
                format!("no `{key}`"),
                format!("`{}` with it", field.name),
            )
            .at_column(&field.name));
        }
    }
    let merged = evolution::merge(snapshot.schema(), data, widens);
    if merged == *snapshot.schema() {
        return Ok(current_definition(snapshot));
    }
    let (protocol, metadata) = with_schema(protocol, metadata, &merged)?;
    Ok((protocol, metadata, Vec::new()))
}

/// The definition after the schema was replaced by that of the data, and the partitioning and the
/// clustering by those of the write.
fn replaced_definition(
    snapshot: &Snapshot,
    data: &StructType,
    partition_columns: Option<Vec<String>>,
    cluster_by: &[String],
) -> Result<TableDefinition> {
    let (mut protocol, mut metadata) = (snapshot.protocol().clone(), snapshot.metadata().clone());
    metadata.partition_columns = partition_columns.unwrap_or(metadata.partition_columns);
    if !cluster_by.is_empty() {
        if !metadata.partition_columns.is_empty() {
            return Err(Error::invalid("a partitioned table cannot be clustered"));
        }
        protocol = features::with_features(&protocol, &["clustering".to_owned()].into());
    }
    let schema = evolution::replace(snapshot.schema(), data);
    if schema != *snapshot.schema()
        || metadata != *snapshot.metadata()
        || protocol != *snapshot.protocol()
    {
        (protocol, metadata) = with_schema(&protocol, &metadata, &schema)?;
    }
    iceberg::check_partitions(snapshot.metadata(), &metadata)?;
    let domains = clustering_domain_change(snapshot, &metadata, cluster_by)?;
    Ok((protocol, metadata, domains))
}

/// Protocol and metadata after the schema of a table was set.
fn with_schema(
    protocol: &Protocol,
    metadata: &Metadata,
    schema: &StructType,
) -> Result<(Protocol, Metadata)> {
    let mut context = TableChangeContext {
        allow_unknown: true,
        now_ms: now_ms(),
        generate_id: &mut uuid,
    };
    table::set_schema(protocol, metadata, schema, &mut context)
}

/// The clustering after all columns were replaced: that of the write, else an empty list, as
/// delta-spark writes it.
fn clustering_domain_change(
    snapshot: &Snapshot,
    metadata: &Metadata,
    columns: &[String],
) -> Result<Vec<DomainMetadata>> {
    let last = snapshot.non_file_actions()?.domains.get(CLUSTERING);
    if last.is_none() && columns.is_empty() {
        return Ok(Vec::new());
    }
    let schema = StructType::parse(&metadata.schema_string)?;
    let paths = checked_clustering(&schema, columns, metadata)?;
    let new = clustering_domain(&schema, &paths)?;
    Ok(if last == Some(&new) {
        Vec::new()
    } else {
        vec![new]
    })
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
