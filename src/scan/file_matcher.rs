//! Evaluation of predicates on files that are in no plan: the adds of another writer's commit.

use arrow_array::BooleanArray;

use super::columns::{LeafColumns, leaves};
use super::plan::{PlanBatch, keep, projected_columns};
use crate::error::Result;
use crate::expr::BoundExpr;
use crate::parse::{FileActionProjection, FileBatch};
use crate::snapshot::Snapshot;

/// Predicates over the columns of a snapshot's table.
#[derive(Debug, Clone)]
pub struct FileMatcher {
    snapshot: Snapshot,
    predicates: Vec<BoundExpr>,
    leaves: LeafColumns,
}

impl FileMatcher {
    /// A matcher for predicates that are bound to the snapshot's schema.
    #[must_use]
    pub fn new(snapshot: &Snapshot, predicates: Vec<BoundExpr>) -> Self {
        let leaves = leaves(snapshot).below(predicates.iter().flat_map(BoundExpr::columns));
        Self {
            snapshot: snapshot.clone(),
            predicates,
            leaves,
        }
    }

    /// The columns of file actions that [`FileMatcher::first_match`] needs.
    #[must_use]
    pub fn required_columns(&self) -> FileActionProjection {
        projected_columns(&self.snapshot, &self.leaves, self.with_stats())
    }

    fn with_stats(&self) -> bool {
        !self.leaves.logical.is_empty()
    }

    /// Which of these files may hold a row for which the first predicate is true; all if there is
    /// no predicate.
    ///
    /// # Errors
    /// [`crate::error::Error::Corrupt`] for partition values that are not of their type.
    pub fn matching(&self, files: &FileBatch) -> Result<BooleanArray> {
        let Some(predicate) = self.predicates.first() else {
            return Ok(BooleanArray::from(vec![true; files.len()]));
        };
        let batch = PlanBatch::new(
            &self.snapshot,
            files.clone(),
            &self.leaves,
            self.with_stats(),
        )?;
        keep(&self.snapshot, predicate, &self.leaves, &batch)
    }

    /// The first of these files that may hold a row for which one of the predicates is true.
    ///
    /// # Errors
    /// [`crate::error::Error::Corrupt`] for partition values that are not of their type.
    pub fn first_match(&self, files: &FileBatch) -> Result<Option<usize>> {
        let batch = PlanBatch::new(
            &self.snapshot,
            files.clone(),
            &self.leaves,
            self.with_stats(),
        )?;
        let mut first: Option<usize> = None;
        for predicate in &self.predicates {
            let kept = keep(&self.snapshot, predicate, &self.leaves, &batch)?;
            let found = kept.values().set_indices().next();
            first = [first, found].into_iter().flatten().min();
        }
        Ok(first)
    }
}
