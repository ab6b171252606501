//! A write from the plan to the commit.

use super::existing_files;
use super::replacement::{ChangeDataSource, ReplacedRows, ReplacementPlan, replaced_keys};
use super::table_definition::{check_not_null, find_columns, planned_definition};
use super::write_options::{WriteOptions, check_options};
use crate::commit::finish::{CommitResult, commit, metric_value};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::file_writer::bound_constraints::{self, TableConstraints};
use crate::file_writer::constraints::{IdentityColumn, WriteRules};
use crate::file_writer::engine_files::{self, EngineFileSet};
use crate::file_writer::with_change_feed::write_with_change_data;
use crate::file_writer::{WriteOutput, WriteRequest, WrittenDataFile, write};
use crate::ops::optimize::auto_compact;
use crate::ops::rewrite::replace_keys::ReplaceKeySet;
use crate::ops::rewrite::start_state::TableOrPath;
use crate::ops::rewrite::target_table::TargetTable;
use crate::ops::rewrite::uncommitted_files::uncommitted_in_folders;
use crate::ops::rewrite::uncommitted_files::{UncommittedFiles, add_action};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::{Action, Add, Remove};
use crate::protocol::schema::{StructField, StructType};
use arrow_array::RecordBatch;
use std::sync::{Arc, Mutex, PoisonError};

/// A validated write that waits for its expressions and its rows.
#[derive(Debug, Clone)]
pub struct WriteCommand {
    pub(super) destination: TableOrPath,
    pub(super) options: WriteOptions,
    /// The table after the write.
    pub(super) target: TargetTable,
    /// Whether the write changes the table's metadata.
    pub(super) is_changed: bool,
    pub(super) domains: Vec<DomainMetadata>,
    constraints: TableConstraints,
    /// Identity columns for which the data has no values.
    generated_identities: Vec<IdentityColumn>,
    /// Identity columns for which the data has values.
    explicit_identities: Vec<IdentityColumn>,
    /// The rows to replace, if determined before the rows were written.
    pub(super) replacement: Option<ReplacementPlan>,
    /// The keys of the data, if only rows with these keys are replaced.
    pub(super) keys: Option<Arc<Mutex<ReplaceKeySet>>>,
    /// Warnings for the caller.
    warnings: Vec<String>,
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
    /// [`inspect_external_files`](engine_files::inspect_external_files); [`Error::Unsupported`]
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
        let EngineFileSet {
            files,
            non_data_files: mut rest,
            identities,
        } = engine_files::inspect_external_files(&store, &request, folder, cancel)?;
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

    /// Commits files that other processes wrote with [`crate::file_writer::write`]: rows, and change data
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
}
