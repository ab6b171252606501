//! The rows that a write replaces: files that are removed whole, and the rows that remain in others.

use super::replacement::{ChangeDataSource, ReadDependency, ReplacedRows};
use super::write_command::WriteCommand;
use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::error::{Error, Result, invariant};
use crate::exec::CancellationToken;
use crate::file_writer::bound_constraints::TableConstraints;
use crate::file_writer::constraints::WriteRules;
use crate::file_writer::{WriteOutput, WrittenDataFile};
use crate::ops::rewrite::matched_rows::MatchedRows;
use crate::ops::rewrite::partition_predicate::PartitionSet;
use crate::ops::rewrite::row_deletion;
use crate::ops::rewrite::start_state::{SaveMode, SchemaMode, TableOrPath};
use crate::ops::rewrite::target_table::cdc_action;
use crate::ops::rewrite::uncommitted_files::UncommittedFiles;
use crate::protocol::commit_line::{Action, Cdc};
use std::sync::PoisonError;

impl WriteCommand {
    /// The result of [`WriteCommand::plan_replacement`].
    pub(super) fn take_replacement(&mut self, changes: Option<&str>) -> Result<ReplacedRows> {
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
    pub(super) fn external_change_data(
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
        Ok(ChangeDataSource::EngineFiles(told.files))
    }

    /// The change data of a write; writes that of the removed rows if only that of the new rows was
    /// written.
    pub(super) fn change_data_actions(
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
            (ChangeDataSource::EngineFiles(files), _) => {
                Ok(files.into_iter().map(cdc_action).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Keeps the rows of partially replaced files: returns their copies, or the actions for
    /// deletion vectors, whose files are then not removed.
    pub(super) fn keep_remaining_rows(
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

    /// Determines the rows to replace, before anything is written.
    pub(super) fn rows_to_replace(
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
    pub(super) fn replace_partitions(
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
    pub(super) fn replace_by_keys(
        &self,
        change: &mut ReplacedRows,
        cancel: &CancellationToken,
    ) -> Result<()> {
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
    pub(super) fn uses_deletion_vectors(&self, change: &ReplacedRows) -> bool {
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
