//! Which files a predicate may match, by their statistics and partition values.

use super::evaluator;
use super::outcomes::PredicateOutcomes;
use super::statistics::PruningStatistics;
use crate::error::{Error, Result};
use crate::expr::{BoundExpr, Expr, Function};
use crate::protocol::schema::DataType;
use arrow_array::BooleanArray;

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

pub(super) fn outcomes(
    predicate: &BoundExpr,
    facts: &dyn PruningStatistics,
) -> Result<PredicateOutcomes> {
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
