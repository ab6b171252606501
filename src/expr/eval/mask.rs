//! Masks of rows from boolean arrays, and values put back at the rows of a mask.

use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};

use super::error::EvalResult;

/// The rows where a boolean is true, without nulls.
pub(crate) fn is_true(array: &BooleanArray) -> BooleanArray {
    match array.nulls() {
        None => array.clone(),
        Some(nulls) => BooleanArray::new(array.values() & nulls.inner(), None),
    }
}

/// The rows where a boolean is false, without nulls.
pub(crate) fn is_false(array: &BooleanArray) -> BooleanArray {
    let not = !array.values();
    match array.nulls() {
        None => BooleanArray::new(not, None),
        Some(nulls) => BooleanArray::new(&not & nulls.inner(), None),
    }
}

pub(crate) fn negated(mask: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!mask.values(), None)
}

/// `array`, which has one value for each true bit of `mask`, spread over the length of `mask` with
/// nulls elsewhere.
pub(crate) fn scatter(array: &ArrayRef, mask: &BooleanArray) -> EvalResult {
    let mut next = 0_u64;
    let indices: UInt64Array = mask
        .values()
        .iter()
        .map(|set| {
            set.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    Ok(arrow_select::take::take(array, &indices, None)?)
}
