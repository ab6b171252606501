//! Pairs of matching rows, and the clause that applies to each pair.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;

use crate::dv::RoaringBitmapArray;
use crate::error::{Error, ErrorCode, Result, invariant};
use crate::exec::CancellationToken;
use crate::expr::{BoundExpr, Function};
use crate::ops::merge::clauses::{
    BY_SOURCE, MergeClause, MergeRowAction, NO_ROW, SOURCE, TARGET, assign_clauses, exprs,
    join_rows, project_columns, required_columns,
};
use crate::ops::merge::merge_join::MergeJoin;
use crate::ops::merge::row_pairs::{PAIRS, position, row_locations, sort_by_row};
use crate::ops::rewrite::partition_predicate::combine_exprs;
use crate::parse::mask;
use crate::scan::{self, PositionSelection, ScanRequest};

/// A pair for which the residual condition is not true.
const DROPPED: u8 = 255;

/// The conditions that decide which clause applies to a pair, and the columns that they need.
struct PairConditions<'a> {
    join: &'a MergeJoin,
    residual: Option<&'a BoundExpr>,
    /// Names of columns of the table.
    target_columns: BTreeSet<String>,
    /// Positions of columns of the source.
    source_columns: Vec<usize>,
}

impl PairConditions<'_> {
    /// Assigns clauses to pairs; `target` has the row of the table of each pair.
    fn assign(&self, target: &RecordBatch, pairs: &mut [MergeRowAction]) -> Result<()> {
        let join = self.join;
        let sources: Vec<u32> = pairs.iter().map(|entry| entry.source).collect();
        let source = join.source_buffer.take(&sources, &self.source_columns)?;
        let mut rows = join_rows(target, &source)?;
        let mut held: Option<BooleanArray> = None;
        if let Some(residual) = self.residual {
            let found = residual.filter_mask(&rows)?;
            rows = filter_record_batch(&rows, &found)?;
            held = Some(found);
        }
        let mut taken = assign_clauses(&join.clauses.matched, &rows)?.into_iter();
        for (n, entry) in pairs.iter_mut().enumerate() {
            entry.clause_number = match &held {
                Some(held) if !held.value(n) => DROPPED,
                _ => taken.next().unwrap_or(0),
            };
        }
        Ok(())
    }

    /// Assigns clauses without reading the table, whose columns no condition needs.
    fn assign_by_source_rows(
        &self,
        entries: &mut [Vec<MergeRowAction>],
        cancel: &CancellationToken,
    ) -> Result<()> {
        let schema: SchemaRef = Arc::new(Schema::empty());
        for pairs in entries
            .iter_mut()
            .flat_map(|entries| entries.chunks_mut(PAIRS))
        {
            cancel.check()?;
            let options = RecordBatchOptions::new().with_row_count(Some(pairs.len()));
            let target =
                RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options)?;
            self.assign(&target, pairs)?;
        }
        Ok(())
    }

    /// Reads the matched rows of the table and assigns clauses to their pairs.
    fn assign_by_both_rows(
        &self,
        entries: &mut [Vec<MergeRowAction>],
        cancel: &CancellationToken,
    ) -> Result<()> {
        let join = self.join;
        let chosen = PositionSelection::Only(Arc::new(join.positions(entries, |_| true)?));
        let columns: Vec<String> = self.target_columns.iter().cloned().collect();
        let request = join.scan(columns, Some(chosen), cancel);
        for batch in scan::scan(&join.merge.snapshot, &request)?.batches {
            let batch = batch?;
            let (file, index) = row_locations(&batch)?;
            let file = file.as_primitive::<Int32Type>().values().first().copied();
            let index = index.as_primitive::<Int64Type>().values();
            let (Some(entries), Some(first), Some(last)) = (
                file.and_then(|file| entries.get_mut(usize::try_from(file).ok()?)),
                index.first(),
                index.last(),
            ) else {
                continue;
            };
            let from = entries.partition_point(|entry| i64::from(entry.row) < *first);
            let to = entries.partition_point(|entry| i64::from(entry.row) <= *last);
            let target = project_columns(&batch, &self.target_columns)?;
            let mut at = 0_usize;
            for pairs in entries
                .get_mut(from..to)
                .unwrap_or_default()
                .chunks_mut(PAIRS)
            {
                let rows = find_pair_rows(pairs, index, &mut at)?;
                self.assign(
                    &take_record_batch(&target, &UInt32Array::from(rows))?,
                    pairs,
                )?;
            }
        }
        Ok(())
    }
}

/// Finds the row of each pair in a batch with these positions in the file, from row `at` on, which
/// moves to the row of the last pair.
fn find_pair_rows(pairs: &[MergeRowAction], index: &[i64], at: &mut usize) -> Result<Vec<u32>> {
    let mut rows = Vec::with_capacity(pairs.len());
    for entry in pairs {
        while index
            .get(*at)
            .is_some_and(|index| *index < i64::from(entry.row))
        {
            *at += 1;
        }
        invariant!(
            index.get(*at) == Some(&i64::from(entry.row)),
            "a matched row is not where it was"
        );
        rows.push(*at as u32);
    }
    Ok(rows)
}

impl MergeJoin {
    /// The pairs of rows for which the residual condition is true, if there are no keys to join.
    pub(super) fn nested_loop_join(
        &self,
        entries: &mut [Vec<MergeRowAction>],
        cancel: &CancellationToken,
    ) -> Result<()> {
        const MOST: usize = 1 << 28;
        let columns: Vec<String> = required_columns(self.residual.iter(), TARGET)
            .into_iter()
            .collect();
        let of_source = required_columns(self.residual.iter(), SOURCE);
        let request = ScanRequest {
            predicate: self.target_predicate.clone(),
            ..self.scan(columns.clone(), None, cancel)
        };
        let (places_of_source, mut found) = (self.source_column_positions(&of_source), 0_usize);
        for batch in scan::scan(&self.merge.snapshot, &request)?.batches {
            let batch = batch?;
            let (file, index) = row_locations(&batch)?;
            let file = file.as_primitive::<Int32Type>().values().first().copied();
            let index = index.as_primitive::<Int64Type>();
            let target = batch.project(&(0..columns.len()).collect::<Vec<_>>())?;
            let Some(out) = file.and_then(|file| entries.get_mut(usize::try_from(file).ok()?))
            else {
                continue;
            };
            for n in 0..self.source_buffer.batches() {
                cancel.check()?;
                let whole = self.source_buffer.batch(n, None)?;
                let eligible: Vec<u32> = match &self.source_only {
                    None => (0..whole.num_rows() as u32).collect(),
                    Some(predicate) => predicate
                        .filter_mask(&whole)?
                        .values()
                        .set_indices()
                        .map(|row| row as u32)
                        .collect(),
                };
                let source = whole.project(&places_of_source)?;
                let step = (PAIRS / eligible.len().max(1)).max(1);
                for from in (0..target.num_rows()).step_by(step) {
                    let rows = from..(from + step).min(target.num_rows());
                    let left: Vec<u32> = rows
                        .clone()
                        .flat_map(|row| std::iter::repeat_n(row as u32, eligible.len()))
                        .collect();
                    let right: Vec<u32> = rows.flat_map(|_| eligible.iter().copied()).collect();
                    let held = match &self.residual {
                        None => mask(vec![true; left.len()]),
                        Some(residual) => {
                            let target =
                                take_record_batch(&target, &UInt32Array::from(left.clone()))?;
                            let source =
                                take_record_batch(&source, &UInt32Array::from(right.clone()))?;
                            residual.filter_mask(&join_rows(&target, &source)?)?
                        }
                    };
                    for pair in held.values().set_indices() {
                        let (Some(left), Some(right)) = (left.get(pair), right.get(pair)) else {
                            continue;
                        };
                        out.push(MergeRowAction {
                            row: position(index.value(*left as usize))?,
                            source: self.source_buffer.start(n) + right,
                            clause_number: 0,
                        });
                        found += 1;
                    }
                    if found > MOST {
                        return Err(Error::unsupported(
                            "the condition of the MERGE matches more than 268 million pairs of rows; give it an equality of a column of the target and one of the source",
                        ));
                    }
                }
            }
        }
        sort_by_row(entries)
    }

    pub(super) fn source_column_positions(&self, names: &BTreeSet<String>) -> Vec<usize> {
        names
            .iter()
            .filter_map(|name| self.merge.source.fields.position(name))
            .collect()
    }

    /// Drops pairs for which the residual condition is not true; assigns clauses to the others.
    pub(super) fn assign_matched_clauses(
        &self,
        entries: &mut [Vec<MergeRowAction>],
        cancel: &CancellationToken,
    ) -> Result<()> {
        let residual = self.residual.as_ref().filter(|_| self.key.is_some());
        let conditions = exprs(&self.clauses.matched, false);
        let used: Vec<&BoundExpr> = residual.into_iter().chain(conditions).collect();
        if used.is_empty() {
            let action = u8::from(!self.clauses.matched.is_empty());
            entries
                .iter_mut()
                .flatten()
                .for_each(|entry| entry.clause_number = action);
            return Ok(());
        }
        let conditions = PairConditions {
            join: self,
            residual,
            target_columns: required_columns(used.iter().copied(), TARGET),
            source_columns: self
                .source_column_positions(&required_columns(used.iter().copied(), SOURCE)),
        };
        if conditions.target_columns.is_empty() {
            conditions.assign_by_source_rows(entries, cancel)?;
        } else {
            conditions.assign_by_both_rows(entries, cancel)?;
        }
        for entries in entries {
            entries.retain(|entry| entry.clause_number != DROPPED);
        }
        Ok(())
    }

    /// The positions of rows for which `choose` is true, by path of the file.
    pub(super) fn positions(
        &self,
        entries: &[Vec<MergeRowAction>],
        choose: impl Fn(&MergeRowAction) -> bool,
    ) -> Result<HashMap<String, RoaringBitmapArray>> {
        let mut out = HashMap::new();
        for (add, entries) in self.files.iter().zip(entries) {
            let mut last = None;
            let chosen = entries
                .iter()
                .filter(|entry| choose(entry))
                .map(|entry| entry.row);
            let rows = RoaringBitmapArray::from_ascending(
                chosen
                    .filter(|row| last.replace(*row) != Some(*row))
                    .map(u64::from),
            )?;
            if !rows.is_empty() {
                out.insert(add.path.clone(), rows);
            }
        }
        Ok(out)
    }

    /// Reduces the pairs to one for each row of the table.
    pub(super) fn resolve_multiple_matches(
        &self,
        entries: &mut [Vec<MergeRowAction>],
    ) -> Result<()> {
        let takes_many = self.clauses.allows_multiple_matches();
        for (add, entries) in self.files.iter().zip(entries) {
            if entries
                .windows(2)
                .all(|pair| matches!(pair, [one, next] if one.row != next.row))
            {
                continue;
            }
            let mut kept: Vec<MergeRowAction> = Vec::with_capacity(entries.len());
            for entry in entries.iter() {
                match kept.last_mut().filter(|last| last.row == entry.row) {
                    None => kept.push(*entry),
                    Some(_) if entry.clause_number == 0 || takes_many => {}
                    Some(last) if last.clause_number == 0 => *last = *entry,
                    Some(_) => {
                        return Err(Error::invalid(format!(
                            "several rows of the source match row {} of `{}`, and a clause takes more than one of them (duplicate relevant WHEN MATCHED rows): \
                             which one counts is not said; make the source's keys unique, or the clauses' conditions narrower",
                            entry.row, add.path
                        ))
                        .with_code(
                            ErrorCode::MultipleSourceRowsMatched,
                            &[("file", &add.path), ("row", &entry.row)],
                        ));
                    }
                }
            }
            *entries = kept;
        }
        Ok(())
    }

    /// Adds the rows that no row of the source matches and that a clause applies to.
    pub(super) fn assign_by_source_clauses(
        &self,
        entries: &mut [Vec<MergeRowAction>],
        cancel: &CancellationToken,
    ) -> Result<()> {
        let clauses = &self.clauses.by_source;
        if clauses.is_empty() {
            return Ok(());
        }
        let mut names: Vec<String> = exprs(clauses, false)
            .flat_map(BoundExpr::column_names)
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut any = clauses
            .iter()
            .map(|clause| clause.condition.as_ref())
            .collect::<Option<Vec<_>>>();
        let predicate = match any
            .as_mut()
            .and_then(|any| any.first().copied().map(|first| (first, any)))
        {
            None => None,
            Some((first, any)) => Some(first.with(combine_exprs(
                Function::Or,
                any.iter().map(|bound| bound.expr.clone()).collect(),
            )?)),
        };
        // Used for pruning only: the predicate could fail for rows that are matched.
        let request = ScanRequest {
            predicate,
            filter_rows: false,
            ..self.scan(names.clone(), None, cancel)
        };
        let columns: Vec<usize> = (0..names.len()).collect();
        let mut more: Vec<Vec<MergeRowAction>> = vec![Vec::new(); entries.len()];
        for batch in scan::scan(&self.merge.snapshot, &request)?.batches {
            let batch = batch?;
            let (file, index) = row_locations(&batch)?;
            let file = file
                .as_primitive::<Int32Type>()
                .values()
                .first()
                .and_then(|file| usize::try_from(*file).ok());
            let index = index.as_primitive::<Int64Type>().values();
            let Some((known, out)) =
                file.and_then(|file| Some((entries.get(file)?, more.get_mut(file)?)))
            else {
                continue;
            };
            let mut at = index.first().map_or(0, |first| {
                known.partition_point(|entry| i64::from(entry.row) < *first)
            });
            let open = index.iter().map(|row| {
                while known
                    .get(at)
                    .is_some_and(|entry| i64::from(entry.row) < *row)
                {
                    at += 1;
                }
                known
                    .get(at)
                    .is_none_or(|entry| i64::from(entry.row) != *row)
            });
            let open: Vec<bool> = open.collect();
            let rows: Vec<i64> = index
                .iter()
                .zip(&open)
                .filter(|(_, open)| **open)
                .map(|(row, _)| *row)
                .collect();
            let batch = filter_record_batch(&batch.project(&columns)?, &mask(open))?;
            for (row, taken) in rows.into_iter().zip(assign_clauses(clauses, &batch)?) {
                if taken > 0 {
                    out.push(MergeRowAction {
                        row: position(row)?,
                        source: NO_ROW,
                        clause_number: BY_SOURCE + taken - 1,
                    });
                }
            }
        }
        for (entries, more) in entries.iter_mut().zip(more) {
            entries.extend(more);
            entries.sort_unstable_by_key(|entry| entry.row);
        }
        Ok(())
    }

    /// The clause of an entry.
    pub(super) fn clause(&self, action: u8) -> Option<&MergeClause> {
        if action >= BY_SOURCE {
            self.clauses.by_source.get(usize::from(action - BY_SOURCE))
        } else {
            self.clauses
                .matched
                .get(usize::from(action).checked_sub(1)?)
        }
    }
}
