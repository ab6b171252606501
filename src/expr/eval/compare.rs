//! Comparisons in Spark's order, and the functions built on them: GREATEST, LEAST, NULLIF, ISNAN.
//!
//! Arrow's kernels order doubles by their bits (`-0.0 < 0.0`, negative `NaN` first), so floats are
//! compared here; kernels compare everything else. Nested values are compared element by element,
//! nulls first, as in Spark's arrays and structs.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType as Arrow;

use crate::error::Error;
use crate::expr::eval::array_layout::plain;
use crate::expr::eval::columnar_value::{ColumnarValue, reserve_rows};
use crate::expr::eval::error::{EvalResult, unexpected};
use crate::expr::eval::function_call::FunctionCall;
use crate::expr::eval::mask::is_true;
use crate::expr::eval::value::pack;
use crate::expr::function::Function;
use crate::expr::scalar::compare_doubles;

/// `=`, `<=>`, `<`, `<=`, `>`, `>=`.
pub(crate) fn call(call: &FunctionCall<'_>) -> EvalResult {
    let (a, b) = (call.arg(0)?, call.arg(1)?);
    Ok(Arc::new(compare(call.function, a, b, call.rows)?))
}

/// Whether an ordering satisfies a comparison.
fn holds(function: Function, ordering: Ordering) -> bool {
    match function {
        Function::Less => ordering.is_lt(),
        Function::LessEqual => ordering.is_le(),
        Function::Greater => ordering.is_gt(),
        Function::GreaterEqual => ordering.is_ge(),
        _ => ordering.is_eq(),
    }
}

/// Compares two columns of the same type.
pub(crate) fn compare(
    function: Function,
    a: &ColumnarValue,
    b: &ColumnarValue,
    rows: usize,
) -> EvalResult<BooleanArray> {
    match a.array.data_type() {
        Arrow::Float64 => return floats::<Float64Type>(function, a, b, rows, |v| v),
        Arrow::Float32 => return floats::<Float32Type>(function, a, b, rows, f64::from),
        Arrow::Null => {
            let nulls = if function == Function::EqualNullSafe {
                BooleanArray::new(BooleanBuffer::new_set(rows), None)
            } else {
                BooleanArray::new_null(rows)
            };
            return Ok(nulls);
        }
        found if found.is_nested() => return nested(function, a, b, rows),
        _ => {}
    }
    let (a, b) = aligned(a, b)?;
    // Two scalars are compared as two arrays of one row.
    let (a, b) = if a.scalar && b.scalar {
        (
            ColumnarValue::column(a.array),
            ColumnarValue::column(b.array),
        )
    } else {
        (a, b)
    };
    let kernel = match function {
        Function::Less => arrow_ord::cmp::lt,
        Function::LessEqual => arrow_ord::cmp::lt_eq,
        Function::Greater => arrow_ord::cmp::gt,
        Function::GreaterEqual => arrow_ord::cmp::gt_eq,
        Function::EqualNullSafe => arrow_ord::cmp::not_distinct,
        _ => arrow_ord::cmp::eq,
    };
    Ok(kernel(&a, &b)?)
}

/// The operands in the same layout: the kernels do not mix `Utf8` and `Utf8View`. A scalar is
/// converted to the column's layout.
fn aligned(a: &ColumnarValue, b: &ColumnarValue) -> EvalResult<(ColumnarValue, ColumnarValue)> {
    if a.array.data_type() == b.array.data_type() {
        return Ok((a.clone(), b.clone()));
    }
    if a.scalar {
        let array = arrow_cast::cast(&a.array, b.array.data_type())?;
        return Ok((
            ColumnarValue {
                array,
                scalar: true,
            },
            b.clone(),
        ));
    }
    let array = arrow_cast::cast(&b.array, a.array.data_type())?;
    Ok((
        a.clone(),
        ColumnarValue {
            array,
            scalar: b.scalar,
        },
    ))
}

/// The nulls of a null-intolerant function: null where any argument is.
pub(crate) fn joint_nulls(operands: &[&ColumnarValue], rows: usize) -> Option<NullBuffer> {
    let mut out: Option<NullBuffer> = None;
    for operand in operands {
        if operand.scalar {
            if operand.array.is_null(0) {
                return Some(NullBuffer::new_null(rows));
            }
        } else {
            out = NullBuffer::union(out.as_ref(), operand.array.logical_nulls().as_ref());
        }
    }
    out
}

fn floats<T: ArrowPrimitiveType>(
    function: Function,
    a: &ColumnarValue,
    b: &ColumnarValue,
    rows: usize,
    wide: impl Fn(T::Native) -> f64 + Copy,
) -> EvalResult<BooleanArray> {
    let bits = match function {
        Function::Less => float_bits::<T>(a, b, rows, wide, |x, y| {
            (x < y) | (y.is_nan() & !x.is_nan())
        }),
        Function::LessEqual => float_bits::<T>(a, b, rows, wide, |x, y| (x <= y) | y.is_nan()),
        Function::Greater => float_bits::<T>(a, b, rows, wide, |x, y| {
            (x > y) | (x.is_nan() & !y.is_nan())
        }),
        Function::GreaterEqual => float_bits::<T>(a, b, rows, wide, |x, y| (x >= y) | x.is_nan()),
        _ => float_bits::<T>(a, b, rows, wide, |x, y| {
            (x == y) | (x.is_nan() & y.is_nan())
        }),
    }?;
    if function == Function::EqualNullSafe {
        let valid = |operand: &ColumnarValue| match operand.scalar {
            true if operand.array.is_null(0) => BooleanBuffer::new_unset(rows),
            true => BooleanBuffer::new_set(rows),
            false => operand
                .array
                .nulls()
                .map_or_else(|| BooleanBuffer::new_set(rows), |n| n.inner().clone()),
        };
        let (va, vb) = (valid(a), valid(b));
        let both = &va & &vb;
        let neither = !&(&va | &vb);
        return Ok(BooleanArray::new(&(&bits & &both) | &neither, None));
    }
    Ok(BooleanArray::new(bits, joint_nulls(&[a, b], rows)))
}

fn float_bits<T: ArrowPrimitiveType>(
    a: &ColumnarValue,
    b: &ColumnarValue,
    rows: usize,
    wide: impl Fn(T::Native) -> f64 + Copy,
    test: impl Fn(f64, f64) -> bool,
) -> EvalResult<BooleanBuffer> {
    let (x, y): (&PrimitiveArray<T>, &PrimitiveArray<T>) = (a.primitive()?, b.primitive()?);
    Ok(match (a.scalar, b.scalar) {
        (false, true) => {
            let right = wide(y.value(0));
            pack(x.values(), |v| test(wide(v), right))
        }
        (true, false) => {
            let left = wide(x.value(0));
            pack(y.values(), |v| test(left, wide(v)))
        }
        _ => BooleanBuffer::collect_bool(rows.min(x.len()).min(y.len()), |row| {
            test(wide(x.value(row)), wide(y.value(row)))
        }),
    })
}

/// Compares two rows of two arrays.
pub(crate) type RowComparator = Box<dyn Fn(usize, usize) -> Ordering>;

/// A comparator in Spark's order in which null comes first and equals null.
pub(crate) fn comparator(a: &ArrayRef, b: &ArrayRef) -> EvalResult<RowComparator> {
    let inner: RowComparator = match (a.data_type(), b.data_type()) {
        (Arrow::Float64, Arrow::Float64) => {
            let (x, y) = (
                a.as_primitive::<Float64Type>().clone(),
                b.as_primitive::<Float64Type>().clone(),
            );
            Box::new(move |i, j| compare_doubles(x.value(i), y.value(j)))
        }
        (Arrow::Float32, Arrow::Float32) => {
            let (x, y) = (
                a.as_primitive::<Float32Type>().clone(),
                b.as_primitive::<Float32Type>().clone(),
            );
            Box::new(move |i, j| compare_doubles(f64::from(x.value(i)), f64::from(y.value(j))))
        }
        (Arrow::Null, Arrow::Null) => return Ok(Box::new(|_, _| Ordering::Equal)),
        (Arrow::List(_), Arrow::List(_)) => {
            let (x, y) = (a.as_list::<i32>().clone(), b.as_list::<i32>().clone());
            let element = comparator(x.values(), y.values())?;
            Box::new(move |i, j| {
                let range = |offsets: &[i32], n: usize| {
                    let at = |k: usize| {
                        offsets
                            .get(k)
                            .copied()
                            .and_then(|o| usize::try_from(o).ok())
                            .unwrap_or(0)
                    };
                    at(n)..at(n + 1)
                };
                let (left, right) = (range(x.value_offsets(), i), range(y.value_offsets(), j));
                let by_length = left.len().cmp(&right.len());
                left.zip(right)
                    .map(|(p, q)| element(p, q))
                    .find(|o| o.is_ne())
                    .unwrap_or(by_length)
            })
        }
        (Arrow::Struct(_), Arrow::Struct(_)) => {
            let (x, y) = (a.as_struct(), b.as_struct());
            let fields = x
                .columns()
                .iter()
                .zip(y.columns())
                .map(|(p, q)| comparator(p, q))
                .collect::<EvalResult<Vec<_>>>()?;
            Box::new(move |i, j| {
                fields
                    .iter()
                    .map(|f| f(i, j))
                    .find(|o| o.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
        }
        (p, q) if p == q && !p.is_nested() => {
            arrow_ord::ord::make_comparator(a, b, arrow_schema::SortOptions::default())?
        }
        (_, q) => return Err(unexpected(q)),
    };
    let (na, nb) = (a.logical_nulls(), b.logical_nulls());
    Ok(Box::new(move |i, j| {
        let null =
            |nulls: &Option<NullBuffer>, n: usize| nulls.as_ref().is_some_and(|v| v.is_null(n));
        match (null(&na, i), null(&nb, j)) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => inner(i, j),
        }
    }))
}

fn nested(
    function: Function,
    a: &ColumnarValue,
    b: &ColumnarValue,
    rows: usize,
) -> EvalResult<BooleanArray> {
    let order = comparator(&a.array, &b.array)?;
    let bits =
        BooleanBuffer::collect_bool(rows, |row| holds(function, order(a.row(row), b.row(row))));
    let nulls = if function == Function::EqualNullSafe {
        None
    } else {
        joint_nulls(&[a, b], rows)
    };
    Ok(BooleanArray::new(bits, nulls))
}

/// ISNAN: false for null.
pub(crate) fn is_nan(call: &FunctionCall<'_>) -> EvalResult {
    let array = &call.arg(0)?.array;
    let bits: BooleanBuffer = match array.data_type() {
        Arrow::Float64 => array
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .map(|v| v.is_nan())
            .collect(),
        Arrow::Float32 => array
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .map(|v| v.is_nan())
            .collect(),
        other => return Err(unexpected(other)),
    };
    Ok(Arc::new(is_true(&BooleanArray::new(
        bits,
        array.nulls().cloned(),
    ))))
}

/// GREATEST and LEAST: nulls are ignored.
pub(crate) fn extreme(call: &FunctionCall<'_>) -> EvalResult {
    let mut best: Option<ColumnarValue> = None;
    for n in 0..call.operands.len() {
        let operand = call.arg(n)?;
        let next = ColumnarValue {
            array: plain(&operand.array, call.result)?,
            scalar: operand.scalar,
        };
        best = Some(match best {
            None => next,
            Some(best) => {
                let order = comparator(&next.array, &best.array)?;
                let replaces = BooleanBuffer::collect_bool(call.rows, |row| {
                    let (i, j) = (next.row(row), best.row(row));
                    if next.array.is_null(i) {
                        false
                    } else if best.array.is_null(j) {
                        true
                    } else {
                        let ordering = order(i, j);
                        if call.function == Function::Greatest {
                            ordering.is_gt()
                        } else {
                            ordering.is_lt()
                        }
                    }
                });
                reserve_rows([&next, &best], call.rows)?;
                ColumnarValue::column(arrow_select::zip::zip(
                    &BooleanArray::new(replaces, None),
                    &next,
                    &best,
                )?)
            }
        });
    }
    best.ok_or_else(|| Error::internal("GREATEST or LEAST without arguments"))?
        .into_array(call.rows)
}
