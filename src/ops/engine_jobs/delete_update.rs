//! DELETE and UPDATE whose rows another engine finds and writes: commits a version from row bitmaps
//! and folders of files.
//!
//! The engine is given the requirements ([`EngineDmlJob::requirements`]), passes the positions of
//! the matching rows ([`EngineDmlJob::find_rows`]), and writes new rows into folders of the
//! table. [`EngineDmlJob::run`] commits: either with deletion vectors made from the bitmaps, or
//! with the removal of the files that were copied. Actions, metrics and conflict checks are those
//! of [`crate::ops::dml::delete_update`].
//!
//! Protocol: as [`crate::ops::dml::delete_update`]. Cost: 20 bytes for each 64 rows of a file that
//! contain a marked one; a footer for each new file.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType as Arrow;
use serde::{Deserialize, Serialize};

use crate::commit::finish::{CommitOptions, CommitResult};
use crate::dv::RoaringBitmapArray;
use crate::error::{Error, Result, invariant};
use crate::exec::CancellationToken;
use crate::file_writer::WriteOutput;
use crate::file_writer::bound_constraints::NamedExpression;
use crate::file_writer::constraints::WriteRules;
use crate::ops::dml::delete_update::{DmlActions, DmlContext};
use crate::ops::rewrite::matched_rows::MatchedRows;
use crate::ops::rewrite::row_deletion::{self, DeletionVectorUpdate};
use crate::ops::rewrite::start_state::check_changeable;
use crate::ops::rewrite::target_table::{DataFileOptions, TRACKED, TargetTable};
use crate::ops::rewrite::uncommitted_files::uncommitted_in_folders;
use crate::process::RaceOnce;
use crate::protocol::commit_line::Add;
use crate::snapshot::Snapshot;

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DmlKind {
    /// Rows are deleted.
    Delete,
    /// Rows get new values.
    Update,
}

/// What an engine must know of a table whose rows it changes.
#[derive(Debug, Clone, Serialize)]
#[allow(clippy::struct_excessive_bools)]
pub struct TableRequirements {
    /// Whether rows are matched by partition values alone, so that none has to be searched.
    pub selects_whole_files: bool,
    /// Whether rows are deleted by deletion vectors.
    pub uses_deletion_vectors: bool,
    /// Whether change data files are written.
    pub writes_change_data: bool,
    /// Whether data files contain the partition columns.
    pub materializes_partition_columns: bool,
    /// The names in files of the columns for a row's id and commit version, if row tracking keeps
    /// them.
    pub row_tracking_columns: Vec<String>,
}

impl TableRequirements {
    pub(in crate::ops) fn of(
        target: &TargetTable,
        snapshot: &Snapshot,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let request = target.write_request(WriteRules::default(), cancel)?;
        let keeps = target.tracks_rows() && snapshot.protocol().has_writer_feature("rowTracking");
        let tracked = TRACKED.iter().filter(|_| keeps).map(|(_, property)| {
            let name = target.metadata.configuration.get(*property).cloned();
            name.ok_or_else(|| {
                Error::corrupt(format!("the table tracks rows and has no `{property}`"))
            })
        });
        Ok(Self {
            selects_whole_files: false,
            uses_deletion_vectors: target.has_deletion_vectors(),
            writes_change_data: target.has_change_data_feed(),
            materializes_partition_columns: request.materialize_partition_columns
                && !request.partition_columns.is_empty(),
            row_tracking_columns: tracked.collect::<Result<_>>()?,
        })
    }
}

/// A summary of the matched rows.
#[derive(Debug, Clone, Serialize)]
pub struct MatchedRowsSummary {
    /// Their number, if known.
    pub rows: Option<u64>,
    /// Whether there is a file with remaining rows.
    pub has_partial_files: bool,
    /// Paths of the files without remaining rows.
    pub emptied_files: Vec<String>,
}

/// A DELETE or an UPDATE in progress.
#[derive(Debug)]
pub struct EngineDmlJob {
    snapshot: Snapshot,
    kind: DmlKind,
    predicate: Option<NamedExpression>,
    commit_options: CommitOptions,
    started: Instant,
    matched_rows: Option<(MatchedRows, Duration)>,
}

impl EngineDmlJob {
    /// A job without matched rows so far.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an append-only table, [`Error::Unsupported`] for one that this
    /// release cannot write.
    pub fn new(
        snapshot: &Snapshot,
        kind: DmlKind,
        predicate: Option<NamedExpression>,
        commit_options: CommitOptions,
    ) -> Result<Self> {
        check_changeable(snapshot)?;
        Ok(Self {
            snapshot: snapshot.clone(),
            kind,
            predicate,
            commit_options,
            started: Instant::now(),
            matched_rows: None,
        })
    }

    fn dml_context<'a>(&'a self, cancel: &'a CancellationToken) -> Result<DmlContext<'a>> {
        let mut work = DmlContext::new(
            &self.snapshot,
            self.predicate.as_ref(),
            NO_ENCODING.get_or_make(DataFileOptions::default),
            &self.commit_options,
            cancel,
        )?;
        work.started = self.started;
        Ok(work)
    }

    /// The requirements for the engine.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a table with contradicting metadata.
    pub fn requirements(&self, cancel: &CancellationToken) -> Result<TableRequirements> {
        let predicate = self
            .predicate
            .as_ref()
            .map(NamedExpression::bound)
            .transpose()?;
        let target = TargetTable::of(&self.snapshot, DataFileOptions::default());
        Ok(TableRequirements {
            selects_whole_files: MatchedRows::is_partition_only(&self.snapshot, predicate.as_ref()),
            ..TableRequirements::of(&target, &self.snapshot, cancel)?
        })
    }

    /// Sets the matched rows: `files` are the paths of their files, by the file numbers in the
    /// bitmaps. Without bitmaps the rows are matched by partition values.
    ///
    /// # Errors
    /// [`Error::Internal`] for invalid bitmaps, and for files that the version does not have.
    pub fn find_rows(
        &mut self,
        marks: Option<impl Iterator<Item = Result<RecordBatch>>>,
        files: &BTreeMap<i32, String>,
        cancel: &CancellationToken,
    ) -> Result<MatchedRowsSummary> {
        let matched = match marks {
            Some(marks) => {
                let rows = RowBitmaps::read(marks, files, cancel)?.of(|_| true)?;
                MatchedRows::from_external_rows(&self.snapshot, rows, cancel)?
            }
            None => self.dml_context(cancel)?.find()?,
        };
        let (whole, partial) = matched.split_by_coverage();
        let found = MatchedRowsSummary {
            rows: matched.rows,
            has_partial_files: !partial.is_empty(),
            emptied_files: whole.into_iter().map(|add| add.path).collect(),
        };
        self.matched_rows = Some((matched, self.started.elapsed()));
        Ok(found)
    }

    /// Commits. `rows` is the folder with new rows: remaining rows of copied files, and updated
    /// rows; `changes` is the folder with change data. After an error both are deleted, unless the
    /// outcome of the commit is unknown.
    ///
    /// # Errors
    /// As [`crate::ops::delete`] and
    /// [`inspect_external_files`](engine_files::inspect_external_files).
    pub fn run(
        mut self,
        rows: Option<&str>,
        changes: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<CommitResult> {
        let mut orphans = uncommitted_in_folders(
            self.snapshot.stores().root(),
            rows.into_iter().chain(changes),
            cancel,
        )?;
        let (matched, scanned) = self
            .matched_rows
            .take()
            .ok_or_else(|| Error::internal("a job is committed before its rows are found"))?;
        let work = self.dml_context(cancel)?;
        let snapshot = &self.snapshot;
        let is_update = self.kind == DmlKind::Update;
        let mut outcome = DmlActions::default();
        outcome.rows = matched.rows;
        outcome.counts_deletion_vectors = !is_update || matched.rows_scanned;
        let mut rest = Vec::new();
        let mut adopted = |folder: Option<&str>, is_feed: bool| -> Result<WriteOutput> {
            let Some(folder) = folder else {
                return Ok(WriteOutput::default());
            };
            let found = work
                .target
                .inspect_external_folder(folder, is_feed, snapshot, cancel)?;
            rest.extend(found.non_data_files);
            Ok(WriteOutput {
                rows: found.files.iter().map(|file| file.num_records).sum(),
                files: found.files,
                identities: Vec::new(),
            })
        };
        let (written, told) = (adopted(rows, false)?, adopted(changes, true)?);
        outcome.add_change_data(told, &mut orphans);
        if work.target.has_deletion_vectors() {
            let (whole, partial) = matched.split_by_coverage();
            outcome.add_files(written, &work.target.metadata, &mut orphans);
            outcome.remove_files(&whole);
            let ends = (
                partial.len() as u64,
                partial.iter().map(|add| add.size).sum::<i64>(),
            );
            let marked = row_deletion::write_deletion_vectors(
                snapshot,
                partial,
                &matched.partial,
                &mut orphans,
                cancel,
            )?;
            // An UPDATE counts every file that it changes, a DELETE those that are removed.
            outcome.add_deletion_vectors(if is_update {
                DeletionVectorUpdate {
                    removed_files: ends.0,
                    removed_bytes: ends.1,
                    ..marked
                }
            } else {
                marked
            });
        } else {
            outcome.copied = if is_update {
                matched
                    .rows
                    .map_or(0, |rows| written.rows.saturating_sub(rows))
            } else {
                written.rows
            };
            outcome.add_files(written, &work.target.metadata, &mut orphans);
            outcome.remove_files(&matched.files);
        }
        let (name, figure) = if is_update {
            ("UPDATE", "numUpdatedRows")
        } else {
            ("DELETE", "numDeletedRows")
        };
        let done = work.commit(name, figure, outcome, scanned, orphans)?;
        // Files that cannot be deleted are left to vacuum.
        let _ = snapshot.stores().root().delete_batch(&rest);
        Ok(done)
    }
}

static NO_ENCODING: RaceOnce<DataFileOptions> = RaceOnce::new();

/// Deletes files in folders of another engine that no version references.
///
/// # Errors
/// Errors of the store.
pub fn delete_uncommitted(
    snapshot: &Snapshot,
    folders: &[String],
    cancel: &CancellationToken,
) -> Result<()> {
    drop(uncommitted_in_folders(
        snapshot.stores().root(),
        folders.iter().map(String::as_str),
        cancel,
    )?);
    Ok(())
}

/// Positions of rows that another engine found.
#[derive(Debug)]
pub(in crate::ops) struct RowBitmaps {
    files: Vec<String>,
    /// (kind, number of the file in the list, number of the word, its bits), ascending.
    words: Vec<(i64, usize, u64, u64)>,
}

impl RowBitmaps {
    /// Reads batches of `file`, `word` and `bits`: bit n of a word is row 64 * word + n. If there
    /// are several kinds of marks, `kind` is the kind.
    pub(in crate::ops) fn read(
        marks: impl Iterator<Item = Result<RecordBatch>>,
        files: &BTreeMap<i32, String>,
        cancel: &CancellationToken,
    ) -> Result<Self> {
        let places: HashMap<i64, usize> = files
            .keys()
            .enumerate()
            .map(|(place, number)| (i64::from(*number), place))
            .collect();
        let mut words = Vec::new();
        for batch in marks {
            cancel.check()?;
            let batch = batch?;
            let column = |name: &str| -> Result<Option<Vec<i64>>> {
                let Some(array) = batch.column_by_name(name) else {
                    return Ok(None);
                };
                invariant!(
                    array.null_count() == 0
                        && (array.as_primitive_opt::<Int32Type>().is_some()
                            || array.as_primitive_opt::<Int64Type>().is_some()),
                    "`{name}` of the marks of rows is not a number"
                );
                Ok(Some(
                    cast(array, &Arrow::Int64)?
                        .as_primitive::<Int64Type>()
                        .values()
                        .to_vec(),
                ))
            };
            let needed = |name: &str| {
                column(name)?
                    .ok_or_else(|| Error::internal(format!("the marks of rows have no `{name}`")))
            };
            let (file, word, bits) = (needed("file")?, needed("word")?, needed("bits")?);
            let kinds = column("kind")?.unwrap_or_else(|| vec![0; file.len()]);
            for (((kind, file), word), bits) in kinds.into_iter().zip(file).zip(word).zip(bits) {
                let place = places
                    .get(&file)
                    .ok_or_else(|| Error::internal("a mark is of a file that there is not"))?;
                let word =
                    u64::try_from(word).map_err(|_| Error::internal("a mark is of no row"))?;
                words.push((kind, *place, word, bits.cast_unsigned()));
            }
        }
        words.sort_unstable();
        Ok(Self {
            files: files.values().cloned().collect(),
            words,
        })
    }

    /// The rows of the kinds that `choose` selects, by the paths of their files.
    pub(in crate::ops) fn of(
        &self,
        choose: impl Fn(i64) -> bool,
    ) -> Result<HashMap<String, RoaringBitmapArray>> {
        let mut by_file: BTreeMap<usize, BTreeMap<u64, u64>> = BTreeMap::new();
        for (_, file, word, bits) in self.words.iter().filter(|(kind, ..)| choose(*kind)) {
            *by_file.entry(*file).or_default().entry(*word).or_default() |= bits;
        }
        let mut out = HashMap::new();
        for (file, words) in by_file {
            let rows = words.into_iter().flat_map(|(word, bits)| {
                (0..64)
                    .filter(move |bit| bits >> bit & 1 == 1)
                    .map(move |bit| word * 64 + bit)
            });
            let positions = RoaringBitmapArray::from_ascending(rows)?;
            if !positions.is_empty() {
                let path = self
                    .files
                    .get(file)
                    .ok_or_else(|| Error::internal("a mark is of a file that there is not"))?;
                out.insert(path.clone(), positions);
            }
        }
        Ok(out)
    }

    /// The number of marked rows by kind.
    pub(in crate::ops) fn row_counts_by_kind(&self) -> BTreeMap<i64, u64> {
        let mut out = BTreeMap::new();
        for (kind, .., bits) in &self.words {
            *out.entry(*kind).or_default() += u64::from(bits.count_ones());
        }
        out
    }
}

/// The number of rows of a file that are not deleted by its deletion vector.
pub(in crate::ops) fn live_row_count(snapshot: &Snapshot, add: &Add) -> Result<u64> {
    let rows = row_deletion::physical_row_count(snapshot, add)?;
    Ok(rows.saturating_sub(row_deletion::deleted_row_count(add)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int32Array, Int64Array};

    use std::sync::Arc;

    use super::*;

    #[test]
    fn marks_are_rows_by_file_and_kind() {
        let files: BTreeMap<i32, String> = [(7, "a".to_owned()), (9, "b".to_owned())].into();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("file", Arc::new(Int32Array::from(vec![9, 7, 9]))),
            ("word", Arc::new(Int64Array::from(vec![1, 0, 0]))),
            ("bits", Arc::new(Int64Array::from(vec![0b101, i64::MIN, 1]))),
            ("kind", Arc::new(Int32Array::from(vec![1, 1, 2]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let marks = RowBitmaps::read(
            std::iter::once(Ok(batch)),
            &files,
            &CancellationToken::default(),
        )
        .unwrap();
        let rows = |found: &HashMap<String, RoaringBitmapArray>, path: &str| {
            found.get(path).map(|rows| rows.iter().collect::<Vec<_>>())
        };
        let all = marks.of(|_| true).unwrap();
        assert_eq!(
            (rows(&all, "a"), rows(&all, "b")),
            (Some(vec![63]), Some(vec![0, 64, 66]))
        );
        let some = marks.of(|kind| kind == 2).unwrap();
        assert_eq!((rows(&some, "a"), rows(&some, "b")), (None, Some(vec![0])));
        assert_eq!(marks.row_counts_by_kind(), [(1, 3), (2, 1)].into());
    }
}
