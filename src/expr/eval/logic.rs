//! AND, OR and the conditional functions: three-valued and lazy by row.
//!
//! Rows whose result is known are not evaluated further when the other operands can fail, or when
//! few rows remain; otherwise kernels combine whole columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;

use crate::error::Error;
use crate::expr::eval::{
    ColumnarValue, EvalContext, EvalResult, budget, evaluate, is_false, is_true, negated, plain,
    scatter,
};
use crate::expr::function::Function;
use crate::expr::tree::Expr;
use crate::protocol::schema::DataType;

/// When fewer than one row in this many is undecided, only those rows are evaluated.
const WORTH_SELECTING: usize = 8;

/// AND (`conjunction`) or OR of any number of arguments.
pub(crate) fn junction(
    args: &[Expr],
    rows: &EvalContext,
    conjunction: bool,
) -> EvalResult<ColumnarValue> {
    let (first, rest) = args
        .split_first()
        .ok_or_else(|| Error::internal("AND or OR without arguments"))?;
    let mut so_far = evaluate(first, rows)?;
    for arg in rest {
        let known = so_far.booleans()?;
        // False decides an AND, true an OR.
        let decided = if conjunction {
            is_false(known)
        } else {
            is_true(known)
        };
        let count = decided.true_count();
        if count == decided.len() {
            break;
        }
        if so_far.scalar {
            let next = evaluate(arg, rows)?;
            so_far = combine(so_far, next, rows.len(), conjunction)?;
            continue;
        }
        let left = decided.len() - count;
        if count > 0 && (arg.can_fail(rows.ansi) || left * WORTH_SELECTING < decided.len()) {
            let open = negated(&decided);
            let selected = rows.select(&open, [arg])?;
            let next = evaluate(arg, &selected)?.into_array(selected.len())?;
            let next = ColumnarValue::column(scatter(&next, &open)?);
            // Null where the row was decided: `false AND null` is false and `true OR null` is true,
            // so the result is the same.
            so_far = combine(so_far, next, rows.len(), conjunction)?;
        } else {
            let next = evaluate(arg, rows)?;
            so_far = combine(so_far, next, rows.len(), conjunction)?;
        }
    }
    Ok(so_far)
}

fn combine(
    a: ColumnarValue,
    b: ColumnarValue,
    rows: usize,
    conjunction: bool,
) -> EvalResult<ColumnarValue> {
    let scalar = a.scalar && b.scalar;
    let rows = if scalar { 1 } else { rows };
    let (a, b) = (
        ColumnarValue::column(a.into_array(rows)?),
        ColumnarValue::column(b.into_array(rows)?),
    );
    let kernel = if conjunction {
        arrow_arith::boolean::and_kleene
    } else {
        arrow_arith::boolean::or_kleene
    };
    Ok(ColumnarValue {
        array: Arc::new(kernel(a.booleans()?, b.booleans()?)?),
        scalar,
    })
}

/// One branch: its value is used for the rows where its condition holds.
enum CaseBranch<'a> {
    /// The value where a predicate is true.
    When(&'a Expr, &'a Expr),
    /// The value where another one is not null.
    WhenNotNull(&'a Expr, &'a Expr),
    /// The value where it is not null itself.
    IfNotNull(&'a Expr),
    /// The value for all remaining rows.
    Else(&'a Expr),
}

/// IF, CASE, COALESCE and NVL2.
pub(crate) fn evaluate_conditional(
    function: Function,
    args: &[Expr],
    result: &DataType,
    rows: &EvalContext,
) -> EvalResult<ColumnarValue> {
    let mut ways = Vec::with_capacity(args.len());
    match (function, args) {
        (Function::If, [condition, yes, no]) => {
            ways.extend([CaseBranch::When(condition, yes), CaseBranch::Else(no)]);
        }
        (Function::Nvl2, [tested, yes, no]) => {
            ways.extend([CaseBranch::WhenNotNull(tested, yes), CaseBranch::Else(no)]);
        }
        (Function::Coalesce, [values @ .., last]) => {
            ways.extend(values.iter().map(CaseBranch::IfNotNull));
            ways.push(CaseBranch::Else(last));
        }
        _ => {
            for pair in args.chunks(2) {
                match pair {
                    [condition, value] => ways.push(CaseBranch::When(condition, value)),
                    rest => ways.extend(rest.iter().map(CaseBranch::Else)),
                }
            }
        }
    }
    if args.iter().any(|arg| arg.can_fail(rows.ansi)) {
        evaluate_lazily(&ways, result, rows)
    } else {
        evaluate_eagerly(&ways, result, rows)
    }
}

fn nulls(result: &DataType, rows: usize) -> ArrayRef {
    arrow_array::new_null_array(
        &result.to_arrow(crate::protocol::schema::StringLayout::Plain),
        rows,
    )
}

fn not_null(operand: &ColumnarValue) -> EvalResult<ColumnarValue> {
    Ok(ColumnarValue {
        array: Arc::new(arrow_arith::boolean::is_not_null(&operand.array)?),
        scalar: operand.scalar,
    })
}

/// Evaluates every branch for all rows and combines them, from the last branch to the first.
fn evaluate_eagerly(
    ways: &[CaseBranch<'_>],
    result: &DataType,
    rows: &EvalContext,
) -> EvalResult<ColumnarValue> {
    let value = |expr: &Expr| -> EvalResult<ColumnarValue> {
        let operand = evaluate(expr, rows)?;
        Ok(ColumnarValue {
            array: plain(&operand.array, result)?,
            scalar: operand.scalar,
        })
    };
    let mut chosen = ColumnarValue {
        array: nulls(result, 1),
        scalar: true,
    };
    for way in ways.iter().rev() {
        let (mask, yes) = match way {
            CaseBranch::Else(expr) => {
                chosen = value(expr)?;
                continue;
            }
            CaseBranch::When(condition, expr) => (evaluate(condition, rows)?, value(expr)?),
            CaseBranch::WhenNotNull(tested, expr) => {
                (not_null(&evaluate(tested, rows)?)?, value(expr)?)
            }
            CaseBranch::IfNotNull(expr) => {
                let yes = value(expr)?;
                (not_null(&yes)?, yes)
            }
        };
        let holds = is_true(mask.booleans()?);
        if mask.scalar || holds.true_count() == 0 || holds.false_count() == 0 {
            if holds.true_count() > 0 {
                chosen = yes;
            }
            continue;
        }
        budget::reserve_rows([&yes, &chosen], holds.len())?;
        chosen = ColumnarValue::column(arrow_select::zip::zip(&holds, &yes, &chosen)?);
    }
    Ok(chosen)
}

/// Evaluates each branch only for the rows that use it.
fn evaluate_lazily(
    ways: &[CaseBranch<'_>],
    result: &DataType,
    rows: &EvalContext,
) -> EvalResult<ColumnarValue> {
    // The location of each row's value: an array and an index in it. Array 0 is the null for rows
    // without a branch.
    let mut values: Vec<ArrayRef> = vec![nulls(result, 1)];
    let mut places = vec![(0_usize, 0_usize); rows.len()];
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut current = rows.clone();
    for (n, way) in ways.iter().enumerate() {
        if left.is_empty() {
            break;
        }
        let (holds, value) = match way {
            CaseBranch::Else(expr) => (
                BooleanArray::new(BooleanBuffer::new_set(left.len()), None),
                *expr,
            ),
            CaseBranch::When(condition, expr) => {
                let holds = evaluate(condition, &current)?.into_array(left.len())?;
                (is_true(ColumnarValue::column(holds).booleans()?), *expr)
            }
            CaseBranch::WhenNotNull(tested, expr) => {
                let holds = not_null(&evaluate(tested, &current)?)?.into_array(left.len())?;
                (is_true(ColumnarValue::column(holds).booleans()?), *expr)
            }
            CaseBranch::IfNotNull(expr) => {
                // The value itself is the condition: keep what was computed.
                let array = plain(&evaluate(expr, &current)?.into_array(left.len())?, result)?;
                let mut still = Vec::new();
                for (index, row) in left.iter().enumerate() {
                    if array.is_null(index) {
                        still.push(*row);
                    } else if let Some(place) = places.get_mut(*row) {
                        *place = (values.len(), index);
                    }
                }
                let open = arrow_arith::boolean::is_null(&array)?;
                values.push(array);
                current = current.select(&open, exprs(ways, n + 1))?;
                left = still;
                continue;
            }
        };
        if holds.true_count() > 0 {
            let selected = current.select(&holds, [value])?;
            values.push(plain(
                &evaluate(value, &selected)?.into_array(selected.len())?,
                result,
            )?);
        }
        let (mut still, mut index) = (Vec::new(), 0);
        for (row, taken) in left.iter().zip(holds.values().iter()) {
            if taken {
                if let Some(place) = places.get_mut(*row) {
                    *place = (values.len() - 1, index);
                }
                index += 1;
            } else {
                still.push(*row);
            }
        }
        if !still.is_empty() {
            current = current.select(&negated(&holds), exprs(ways, n + 1))?;
        }
        left = still;
    }
    let arrays: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::column(arrow_select::interleave::interleave(
        &arrays, &places,
    )?))
}

fn exprs<'a>(ways: &'a [CaseBranch<'a>], from: usize) -> impl Iterator<Item = &'a Expr> {
    ways.iter()
        .skip(from)
        .flat_map(|way| match way {
            CaseBranch::When(a, b) | CaseBranch::WhenNotNull(a, b) => [Some(*a), Some(*b)],
            CaseBranch::IfNotNull(a) | CaseBranch::Else(a) => [Some(*a), None],
        })
        .flatten()
}
