//! The evaluation of a tree: nodes, arguments in their order, and what is lazy by row.
//!
//! AND, OR and the functions that choose (IF, CASE, COALESCE) are three-valued and evaluate only rows that are undecided when
//! the rest can fail, or when few rows are undecided; otherwise kernels combine whole columns.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::array_layout::plain;
use super::columnar_value::{ColumnarValue, reserve_rows};
use super::dispatch::call_function;
use super::error::{EvalError, EvalResult};
use super::eval_context::EvalContext;
use super::function_call::FunctionCall;
use super::mask::{is_false, is_true, negated, scatter};
use super::{budget, cast, set_membership};
use crate::error::{Error, shown};
use crate::expr::function::Function;
use crate::expr::tree::Expr;
use crate::protocol::schema::{DataType, StringLayout};

impl EvalError {
    /// The error with the expression that raised it.
    pub(super) fn named(self, expr: &Expr) -> Self {
        match self {
            Self::Value(fault) => Self::Error(fault.into_error(Some(expr))),
            Self::TooLarge {
                what: None,
                of_constants,
            } => Self::TooLarge {
                what: Some(expression_summary(expr)),
                of_constants,
            },
            other => other,
        }
    }

    /// The error, with the expression that raised it.
    pub(super) fn at(self, expr: &Expr) -> Error {
        match self.named(expr) {
            Self::Value(fault) => fault.into_error(None),
            Self::TooLarge { .. } => Error::invalid(format!(
                "the values are too large, in `{}`",
                shown(&expr.to_string())
            )),
            Self::Error(error) => error,
        }
    }
}

/// An expression, shortened for a message that says more.
pub(super) fn expression_summary(expr: &Expr) -> String {
    const LENGTH: usize = 100;
    let text = expr.to_string();
    let cut: String = text.chars().take(LENGTH).collect();
    shown(&if cut.len() < text.len() {
        format!("{cut}...")
    } else {
        cut
    })
}

/// Evaluates a node.
pub(crate) fn evaluate(expr: &Expr, rows: &EvalContext<'_>) -> EvalResult<ColumnarValue> {
    match expr {
        // The batch has the column already.
        Expr::Column { path, data_type } => Ok(ColumnarValue::column(
            rows.column(path, data_type)
                .map_err(|fault| fault.named(expr))?,
        )),
        _ => budget::node(
            || compute(expr, rows),
            |value| (budget::size(value.array.as_ref()), value.scalar),
        )
        .map_err(|fault| fault.named(expr)),
    }
}

fn compute(expr: &Expr, rows: &EvalContext<'_>) -> EvalResult<ColumnarValue> {
    match expr {
        Expr::Column { path, data_type } => {
            Ok(ColumnarValue::column(rows.column(path, data_type)?))
        }
        Expr::Literal { value, data_type } => Ok(ColumnarValue {
            array: value.to_array(data_type)?,
            scalar: true,
        }),
        Expr::InList { arg, set, .. } => {
            let operand = evaluate(arg, rows)?;
            let array = set_membership::contains(set, &operand.array)?;
            Ok(ColumnarValue {
                array: Arc::new(array),
                scalar: operand.scalar,
            })
        }
        Expr::Cast { arg, to, mode } => {
            let operand = evaluate(arg, rows)?;
            let array = budget::function(operand.scalar, || {
                cast::cast(&operand.array, arg.data_type(), to, *mode, &rows.zone)
            })?;
            Ok(ColumnarValue {
                array,
                scalar: operand.scalar,
            })
        }
        Expr::Call {
            function,
            args,
            data_type,
        } => match function {
            Function::And | Function::Or => junction(args, rows, *function == Function::And),
            Function::If | Function::Case | Function::Coalesce => {
                evaluate_conditional(*function, args, data_type, rows)
            }
            _ => {
                let operands = arguments(*function, args, rows)?;
                let scalar = operands.iter().all(|o| o.scalar);
                let call = FunctionCall {
                    function: *function,
                    args,
                    operands: &operands,
                    result: data_type,
                    rows: if scalar { 1 } else { rows.len() },
                    settings: rows,
                };
                let array = budget::function(scalar, || call_function(&call))?;
                Ok(ColumnarValue { array, scalar })
            }
        },
    }
}

/// Evaluates arguments in Spark's order: from the left, but the divisor before the dividend and
/// LOCATE's start first. A null-intolerant function ignores the arguments after a null, so these
/// are not evaluated for such rows when they can fail.
fn arguments(
    function: Function,
    args: &[Expr],
    rows: &EvalContext<'_>,
) -> EvalResult<Vec<ColumnarValue>> {
    let last_first = match function {
        Function::Divide
        | Function::IntegralDivide
        | Function::Remainder
        | Function::PositiveModulo => true,
        Function::Locate => args.len() == 3,
        _ => false,
    };
    let (first, last) = args.split_at(args.len() - usize::from(last_first));
    let mut out: Vec<ColumnarValue> = Vec::with_capacity(args.len());
    for arg in last.iter().chain(first) {
        let operand = if is_null_intolerant(function) && arg.can_fail(rows.ansi) {
            evaluate_null_intolerant(&out, arg, rows)?
        } else {
            evaluate(arg, rows)?
        };
        out.push(operand);
    }
    if last_first {
        out.rotate_left(1);
    }
    Ok(out)
}

/// Evaluates an argument for the rows where those before it are not null.
fn evaluate_null_intolerant(
    before: &[ColumnarValue],
    arg: &Expr,
    rows: &EvalContext<'_>,
) -> EvalResult<ColumnarValue> {
    let null = || ColumnarValue {
        array: arrow_array::new_null_array(&arg.data_type().to_arrow(StringLayout::Plain), 1),
        scalar: true,
    };
    if before.iter().any(|o| o.scalar && o.array.is_null(0)) {
        return Ok(null());
    }
    let nulls = before.iter().filter(|o| !o.scalar).fold(None, |nulls, o| {
        NullBuffer::union(nulls.as_ref(), o.array.logical_nulls().as_ref())
    });
    let Some(nulls) = nulls.filter(|n| n.null_count() > 0) else {
        return evaluate(arg, rows);
    };
    let mask = BooleanArray::new(nulls.into_inner(), None);
    let selected = rows.select(&mask, [arg])?;
    if selected.len() == 0 {
        return Ok(null());
    }
    let operand = evaluate(arg, &selected)?;
    if operand.scalar {
        Ok(operand)
    } else {
        Ok(ColumnarValue::column(scatter(&operand.array, &mask)?))
    }
}

/// Whether the function is null-intolerant: once an argument is null the result is null, whatever
/// the others (LOCATE with a null start is 0).
pub(crate) fn is_null_intolerant(function: Function) -> bool {
    use Function as F;
    !matches!(
        function,
        F::IsNull
            | F::IsNotNull
            | F::IsNan
            | F::EqualNullSafe
            | F::Greatest
            | F::Least
            | F::ConcatWs
            | F::MakeArray
            | F::MakeMap
            | F::NamedStruct
    )
}

/// When fewer than one row in this many is undecided, only those rows are evaluated.
const WORTH_SELECTING: usize = 8;

/// AND (`conjunction`) or OR of any number of arguments.
pub(crate) fn junction(
    args: &[Expr],
    rows: &EvalContext<'_>,
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
    /// The value where it is not null itself.
    IfNotNull(&'a Expr),
    /// The value for all remaining rows.
    Else(&'a Expr),
}

/// IF, CASE and COALESCE.
pub(crate) fn evaluate_conditional(
    function: Function,
    args: &[Expr],
    result: &DataType,
    rows: &EvalContext<'_>,
) -> EvalResult<ColumnarValue> {
    let mut ways = Vec::with_capacity(args.len());
    match (function, args) {
        (Function::If, [condition, yes, no]) => {
            ways.extend([CaseBranch::When(condition, yes), CaseBranch::Else(no)]);
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
    rows: &EvalContext<'_>,
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
        reserve_rows([&yes, &chosen], holds.len())?;
        chosen = ColumnarValue::column(arrow_select::zip::zip(&holds, &yes, &chosen)?);
    }
    Ok(chosen)
}

/// Evaluates each branch only for the rows that use it.
fn evaluate_lazily(
    ways: &[CaseBranch<'_>],
    result: &DataType,
    rows: &EvalContext<'_>,
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
            CaseBranch::When(a, b) => [Some(*a), Some(*b)],
            CaseBranch::IfNotNull(a) | CaseBranch::Else(a) => [Some(*a), None],
        })
        .flatten()
}
