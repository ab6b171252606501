//! PRUNE: the expression tree evaluated over statistics. (tree, statistics of files) -> which files
//! may hold matching rows.
//!
//! For every file the possible outcomes of its rows are three bits (true, false, null), each a
//! superset of the real outcomes. NOT swaps the first two, AND and OR combine them, and bounds
//! decide every leaf; `may_match` reads the first bit. So pruning needs no rewriting of NOT, and an
//! unknown part can only make the answer less selective. The evaluator itself computes expressions of partition values alone exactly.
//!
//! Statistics may be absent, null, wide or truncated; all of that means "unknown", never an error:
//! statistics are hints. A file is dropped only when its bounds prove that it has no matching rows.
//!
//! Rejected: rewriting a predicate into another predicate over `min`/`max` columns, as the other
//! implementations do: it has to treat NOT, null and `NaN` case by case.
//!
//! Protocol: "Per-file Statistics", "Partition Value Serialization". Cost: a few kernels per leaf
//! over as many rows as files.

use arrow_array::BooleanArray;

use crate::error::{Error, Result};
use crate::expr::{BoundExpr, Expr, Function};
use crate::protocol::schema::DataType;

mod evaluator;
mod outcomes;
mod range;
mod statistics;

pub use statistics::PruningStatistics;

use outcomes::PredicateOutcomes;

#[cfg(test)]
mod tests;

/// The files that may hold a row for which the predicate is true.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{ArrayRef, Int64Array};
/// use deltafast::expr::{BoundExpr, Expr, Function, Scalar};
/// use deltafast::protocol::calendar::TimeZoneSpec;
/// use deltafast::protocol::schema::DataType;
/// use deltafast::prune::{PruningStatistics, may_match};
///
/// /// Two files, with ids from 0 to 9 and from 10 to 19.
/// struct TwoFiles;
///
/// impl PruningStatistics for TwoFiles {
///     fn rows(&self) -> usize {
///         2
///     }
///     fn min(&self, _: &[String]) -> Option<ArrayRef> {
///         Some(Arc::new(Int64Array::from(vec![0, 10])))
///     }
///     fn max(&self, _: &[String]) -> Option<ArrayRef> {
///         Some(Arc::new(Int64Array::from(vec![9, 19])))
///     }
///     fn null_count(&self, _: &[String]) -> Option<Int64Array> {
///         None
///     }
///     fn num_records(&self) -> Option<Int64Array> {
///         None
///     }
///     fn partition(&self, _: &[String]) -> Option<ArrayRef> {
///         None
///     }
/// }
///
/// let id = Expr::Column { path: vec!["id".into()], data_type: DataType::Long };
/// let limit = Expr::Literal { value: Scalar::Long(12), data_type: DataType::Long };
/// let expr = Expr::call(Function::Greater, vec![id, limit], DataType::Boolean)?;
/// let predicate = BoundExpr { expr, ansi: true, zone: TimeZoneSpec::UTC };
/// assert_eq!(may_match(&predicate, &TwoFiles)?.iter().collect::<Vec<_>>(), [Some(false), Some(true)]);
/// # Ok::<(), deltafast::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Invalid`] if the expression is not a predicate; never because of the statistics.
pub fn may_match(predicate: &BoundExpr, facts: &dyn PruningStatistics) -> Result<BooleanArray> {
    Ok(BooleanArray::new(
        outcomes(predicate, facts)?.may_be_true,
        None,
    ))
}

fn outcomes(predicate: &BoundExpr, facts: &dyn PruningStatistics) -> Result<PredicateOutcomes> {
    if !matches!(predicate.data_type(), DataType::Boolean | DataType::Void) {
        return Err(Error::invalid(format!(
            "a filter must be true or false, but `{predicate}` is of type {}",
            predicate.data_type()
        )));
    }
    Ok(evaluator::PruningEvaluator::new(predicate, facts).predicate(&predicate.expr))
}

/// Splits a predicate at its top-level ANDs into the part that depends only on partition columns
/// and the rest.
#[must_use]
pub fn partition_only(
    predicate: &BoundExpr,
    partition_columns: &[String],
) -> (Option<BoundExpr>, Option<BoundExpr>) {
    let conjuncts = match &predicate.expr {
        Expr::Call {
            function: Function::And,
            args,
            ..
        } => args.clone(),
        other => vec![other.clone()],
    };
    let (of_partitions, rest): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(|expr| {
        let mut columns = std::collections::BTreeSet::new();
        expr.collect_columns(&mut columns);
        !columns.is_empty()
            && columns.iter().all(|path| {
                path.first()
                    .is_some_and(|name| partition_columns.contains(name))
            })
    });
    (
        conjunction(predicate, of_partitions),
        conjunction(predicate, rest),
    )
}

fn conjunction(predicate: &BoundExpr, mut args: Vec<Expr>) -> Option<BoundExpr> {
    let expr = match args.len() {
        0 => return None,
        1 => args.pop()?,
        _ => Expr::Call {
            function: Function::And,
            args,
            data_type: DataType::Boolean,
        },
    };
    Some(predicate.with(expr))
}
