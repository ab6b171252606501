//! Memory limit of an evaluation: a table's constraints come from its authors, who may be hostile,
//! and a few rows of `repeat(s, 200000)` are larger than any memory.
//!
//! Rows are evaluated in pieces (`in_pieces`). A piece whose values exceed its limit is divided,
//! down to one row, which has a larger limit of its own; beyond that limit the row has no value,
//! and the error names the expression. A value computed from constants alone is shared by all rows
//! and counts against the limit of a row.
//!
//! The count covers the values that are alive: a node's arguments are released when it has its
//! value (`node`). Functions whose value can be larger than their arguments reserve its bytes first
//! (`reserve`, `room`). The count is kept per thread, as an evaluation does not change threads.

use std::cell::Cell;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType as Arrow;

use crate::error::{Error, ErrorCode};
use crate::exec;
use crate::expr::eval::error::{EvalError, EvalResult};

/// Bytes that a piece of more than one row may hold, unless the process's budget is small.
const PIECE: u64 = 128 << 20;
/// Bytes that one row may hold, unless the process's budget is small.
const ROW: u64 = 1 << 30;
/// Neither limit is less than this, however small the budget.
const LEAST: u64 = 8 << 20;

/// The remaining bytes for values of rows, and for values of constants.
#[derive(Debug, Clone, Copy)]
struct RemainingBytes {
    rows: u64,
    constants: u64,
    /// Whether the function that runs now has only constant arguments.
    constant: bool,
}

const UNBOUNDED: RemainingBytes = RemainingBytes {
    rows: u64::MAX,
    constants: u64::MAX,
    constant: false,
};

thread_local! {
    static LEFT: Cell<RemainingBytes> = const { Cell::new(UNBOUNDED) };
}

/// Limits of the bytes of a piece, of a row, and of the values of all rows of a batch.
#[derive(Debug, Clone, Copy)]
pub struct EvaluationLimits {
    /// Bytes of more than one row that are evaluated at once.
    pub piece: u64,
    /// Bytes of one row.
    pub row: u64,
    /// Bytes of the values of a batch.
    pub whole: u64,
}

impl EvaluationLimits {
    /// The limits of the process, from its memory limit.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a `DELTAFAST_MEMORY_LIMIT` that is not a number of bytes.
    pub fn of_process() -> Result<Self, Error> {
        let budget = exec::memory_limit()?;
        // Offsets of string arrays end at 2 GiB.
        Ok(Self {
            piece: (budget / 8).clamp(LEAST, PIECE),
            row: (budget / 2).clamp(LEAST, ROW),
            whole: (budget / 2).clamp(PIECE, i32::MAX as u64),
        })
    }
}

/// Evaluates `rows` rows piece by piece: `evaluate` receives the first row and the number of rows
/// of each piece.
pub(crate) fn in_pieces<T>(
    rows: usize,
    limits: EvaluationLimits,
    mut evaluate: impl FnMut(usize, usize) -> EvalResult<T>,
) -> EvalResult<Vec<T>> {
    let (mut from, mut size, mut out) = (0, rows, Vec::new());
    while from < rows {
        let length = size.min(rows - from);
        let limit = if length == 1 {
            limits.row
        } else {
            limits.piece
        };
        match within(
            RemainingBytes {
                rows: limit,
                constants: limits.row,
                constant: false,
            },
            || evaluate(from, length),
        ) {
            Ok(value) => {
                out.push(value);
                from += length;
            }
            Err(EvalError::TooLarge {
                of_constants: false,
                ..
            }) if length > 1 => size = length / 2,
            Err(EvalError::TooLarge { what, .. }) => {
                let of = what.map_or_else(String::new, |what| format!(" that `{what}` has"));
                let limit = limits.row >> 20;
                return Err(EvalError::value(
                    ErrorCode::MemoryExhausted,
                    format!(
                        "the values{of} for one row take more than the {limit} MiB that a row may take; make them smaller, or raise DELTAFAST_MEMORY_LIMIT"
                    ),
                ));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(out)
}

fn within<T>(left: RemainingBytes, work: impl FnOnce() -> T) -> T {
    struct RestoreOnDrop(RemainingBytes);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            LEFT.set(self.0);
        }
    }
    let _restore = RestoreOnDrop(LEFT.replace(left));
    work()
}

/// Runs a node: the bytes of its arguments are released when it has its value, which is counted
/// instead. `size_of` returns the bytes of the value and whether it is a constant.
pub(crate) fn node<T>(
    evaluate: impl FnOnce() -> EvalResult<T>,
    size_of: impl FnOnce(&T) -> (u64, bool),
) -> EvalResult<T> {
    let before = LEFT.get();
    let value = evaluate()?;
    let (bytes, of_constants) = size_of(&value);
    let mut after = before;
    let left = if of_constants {
        &mut after.constants
    } else {
        &mut after.rows
    };
    *left = left.checked_sub(bytes).ok_or(EvalError::TooLarge {
        what: None,
        of_constants,
    })?;
    LEFT.set(after);
    Ok(value)
}

/// Runs the function of a node, whose arguments are constants or not.
pub(crate) fn function(of_constants: bool, run: impl FnOnce() -> EvalResult) -> EvalResult {
    let outer = LEFT.get();
    LEFT.set(RemainingBytes {
        constant: of_constants,
        ..outer
    });
    let result = run();
    LEFT.set(RemainingBytes {
        constant: outer.constant,
        ..LEFT.get()
    });
    result
}

/// The remaining bytes for a value.
pub(crate) fn room() -> u64 {
    let left = LEFT.get();
    if left.constant {
        left.constants
    } else {
        left.rows
    }
}

/// Checks that a value of this many bytes fits; they are counted once the value exists.
pub(crate) fn reserve(bytes: u64) -> EvalResult<()> {
    if bytes <= room() {
        Ok(())
    } else {
        Err(too_large())
    }
}

/// A value does not fit.
pub(crate) fn too_large() -> EvalError {
    EvalError::TooLarge {
        what: None,
        of_constants: LEFT.get().constant,
    }
}

/// The bytes of an array's own values, not of buffers that it shares.
pub(crate) fn size(array: &dyn Array) -> u64 {
    fn span<O: Into<i64> + Copy>(offsets: &[O]) -> u64 {
        let ends = offsets
            .first()
            .zip(offsets.last())
            .map_or(0, |(first, last)| (*last).into() - (*first).into());
        u64::try_from(ends).unwrap_or(0) + size_of_val(offsets) as u64
    }
    let range = |offsets: &[i32], values: &ArrayRef| {
        let at = |offset: Option<&i32>| {
            offset
                .and_then(|offset| usize::try_from(*offset).ok())
                .unwrap_or(0)
        };
        let (start, end) = (at(offsets.first()), at(offsets.last()));
        let entries = values.len().min(end).saturating_sub(start);
        size_of_val(offsets) as u64
            + if entries == 0 {
                0
            } else {
                size(values.slice(start, entries).as_ref())
            }
    };
    let rows = array.len() as u64;
    match array.data_type() {
        Arrow::Null => 0,
        Arrow::Boolean => rows / 8,
        Arrow::Utf8 => span(array.as_string::<i32>().value_offsets()),
        Arrow::LargeUtf8 => span(array.as_string::<i64>().value_offsets()),
        Arrow::Binary => span(array.as_binary::<i32>().value_offsets()),
        Arrow::LargeBinary => span(array.as_binary::<i64>().value_offsets()),
        Arrow::Utf8View => array
            .as_string_view()
            .views()
            .iter()
            .map(|view| 16 + u64::from(*view as u32))
            .sum(),
        Arrow::BinaryView => array
            .as_binary_view()
            .views()
            .iter()
            .map(|view| 16 + u64::from(*view as u32))
            .sum(),
        Arrow::List(_) => range(
            array.as_list::<i32>().value_offsets(),
            array.as_list::<i32>().values(),
        ),
        Arrow::Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            range(map.value_offsets(), &entries)
        }
        Arrow::Struct(_) => array
            .as_struct()
            .columns()
            .iter()
            .map(|column| size(column.as_ref()))
            .sum(),
        Arrow::Dictionary(_, _) => array.as_any_dictionary_opt().map_or(0, |dictionary| {
            let values = dictionary.values();
            let lengths: Vec<u64> = (0..values.len())
                .map(|n| size(values.slice(n, 1).as_ref()))
                .collect();
            if lengths.is_empty() {
                0
            } else {
                dictionary
                    .normalized_keys()
                    .into_iter()
                    .filter_map(|key| lengths.get(key))
                    .sum()
            }
        }),
        other => other
            .primitive_width()
            .map_or(0, |width| rows * width as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        DictionaryArray, Int32Array, ListArray, StringArray, StringViewArray, types::Int32Type,
    };

    use super::*;
    use crate::expr::eval::columnar_value::ColumnarValue;

    fn node(evaluate: impl FnOnce() -> EvalResult<ColumnarValue>) -> EvalResult<ColumnarValue> {
        super::node(evaluate, |value| (size(value.array.as_ref()), value.scalar))
    }

    #[test]
    fn the_size_is_that_of_the_values_of_a_slice() {
        let texts: StringArray = ["abc", "defgh", "", "i"].into_iter().map(Some).collect();
        assert_eq!(size(&texts), 9 + 5 * 4);
        assert_eq!(size(&texts.slice(1, 2)), 5 + 3 * 4);
        assert_eq!(size(&Int32Array::from(vec![1, 2, 3]).slice(1, 2)), 8);
        let views: StringViewArray = ["abc", "a text that is longer than a view"]
            .into_iter()
            .map(Some)
            .collect();
        assert_eq!(size(&views), 32 + 3 + 33);
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![Some(3)]),
        ]);
        assert_eq!(size(&list.slice(2, 1)), 8 + 4);
        let words: DictionaryArray<Int32Type> =
            ["long word", "b", "long word"].into_iter().collect();
        assert_eq!(size(&words), 2 * (9 + 8) + 1 + 8);
    }

    #[test]
    fn a_piece_that_is_too_large_is_divided_down_to_one_row() {
        let limits = EvaluationLimits {
            piece: 100,
            row: 1000,
            whole: 5000,
        };
        let mut asked = Vec::new();
        // Row n takes 10 n bytes.
        let pieces = in_pieces(20, limits, |from, length| {
            asked.push(length);
            reserve((from..from + length).map(|row| 10 * row as u64).sum())?;
            Ok((from, length))
        });
        let pieces = pieces.unwrap();
        assert_eq!(pieces.iter().map(|(_, length)| length).sum::<usize>(), 20);
        assert!(
            pieces
                .iter()
                .zip(pieces.iter().skip(1))
                .all(|(a, b)| a.0 + a.1 == b.0)
        );
        assert!(
            pieces.last().is_some_and(|(_, length)| *length == 1),
            "{asked:?}"
        );
        let error = in_pieces(200, limits, |from, length| {
            reserve((from..from + length).map(|row| 10 * row as u64).sum())
        })
        .unwrap_err();
        assert!(
            matches!(&error, EvalError::Value(fault) if fault.code == ErrorCode::MemoryExhausted),
            "{error:?}"
        );
        assert_eq!(room(), u64::MAX);
    }

    #[test]
    fn arguments_are_free_again_when_a_node_has_its_value() {
        let operand = |bytes: usize| {
            ColumnarValue::column(
                Arc::new(StringArray::from(vec!["x".repeat(bytes - 8)])) as ArrayRef
            )
        };
        within(
            RemainingBytes {
                rows: 100,
                constants: 100,
                constant: false,
            },
            || {
                node(|| {
                    node(|| Ok(operand(60))).unwrap();
                    assert_eq!(room(), 40);
                    assert!(node(|| Ok(operand(60))).is_err());
                    Ok(operand(10))
                })
                .unwrap();
                assert_eq!(room(), 90);
            },
        );
    }
}
