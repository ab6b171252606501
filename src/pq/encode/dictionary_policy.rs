//! Whether dictionary encoding pays for a column, estimated from a sample of its rows.
//!
//! The encoder fills a dictionary until it is too large and only then continues without it: for
//! values that hardly repeat most of its time went into hashing, and in files of some ten thousand
//! rows the dictionary was larger than the values alone. The number of distinct values is estimated
//! from those among the first rows, as if values came in random order; sorted values look more
//! repetitive than they are and keep their dictionary.
//!
//! Cost: one hash for each row of the sample, once per write.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType as Arrow;
use parquet::file::properties::DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT;
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::hash::BuildHasher;

/// Rows in the sample.
const SAMPLE: usize = 16 << 10;
/// Fewer rows are not conclusive.
const LEAST: usize = 1 << 10;
/// Rows of a small file: with more of them a dictionary that pays here pays more, or grows beyond
/// its limit.
const ROWS: f64 = (128 << 10) as f64;
/// The greatest ratio of encoded to plain size at which a dictionary pays.
const WORTH: f64 = 0.8;

/// For each leaf of the column whether to make a dictionary, in the order of the file.
pub(in crate::pq) fn leaf_dictionary_choices(array: &ArrayRef, out: &mut Vec<bool>) {
    match array.data_type() {
        Arrow::Struct(_) => array
            .as_struct()
            .columns()
            .iter()
            .for_each(|child| leaf_dictionary_choices(child, out)),
        Arrow::List(_) => leaf_dictionary_choices(array.as_list::<i32>().values(), out),
        Arrow::Map(..) => array
            .as_map()
            .entries()
            .columns()
            .iter()
            .for_each(|child| leaf_dictionary_choices(child, out)),
        _ => out.push(dictionary_pays(array)),
    }
}

fn dictionary_pays(array: &ArrayRef) -> bool {
    let array = array.slice(0, array.len().min(SAMPLE));
    let Some((rows, distinct, bytes)) = sample_counts(&array).filter(|(rows, ..)| *rows >= LEAST)
    else {
        return true;
    };
    #[allow(clippy::cast_precision_loss)]
    let (rows, distinct, bytes) = (rows as f64, distinct as f64, bytes as f64);
    let width = bytes / rows;
    let distinct = expected_distinct(estimated_distinct(rows, distinct), ROWS);
    let dictionary = distinct * width;
    let codes = ROWS * distinct.max(2.0).log2().ceil() / 8.0;
    #[allow(clippy::cast_precision_loss)]
    let fits = dictionary <= DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT as f64;
    fits && dictionary + codes < WORTH * ROWS * width
}

/// Number of values, number of distinct values, and bytes of all values in plain encoding; `None`
/// for types whose distinct values are not counted here.
fn sample_counts(array: &ArrayRef) -> Option<(usize, usize, usize)> {
    let hasher = FxBuildHasher;
    let mut seen: FxHashSet<u64> = FxHashSet::default();
    let (mut rows, mut bytes) = (0, 0);
    let mut see = |value: &[u8], length: usize| {
        rows += 1;
        bytes += value.len() + length;
        seen.insert(hasher.hash_one(value));
    };
    // Strings are prefixed with their length.
    match array.data_type() {
        Arrow::Utf8 => array
            .as_string::<i32>()
            .iter()
            .flatten()
            .for_each(|text| see(text.as_bytes(), 4)),
        Arrow::LargeUtf8 => array
            .as_string::<i64>()
            .iter()
            .flatten()
            .for_each(|text| see(text.as_bytes(), 4)),
        Arrow::Utf8View => array
            .as_string_view()
            .iter()
            .flatten()
            .for_each(|text| see(text.as_bytes(), 4)),
        Arrow::Binary => array
            .as_binary::<i32>()
            .iter()
            .flatten()
            .for_each(|value| see(value, 4)),
        Arrow::LargeBinary => array
            .as_binary::<i64>()
            .iter()
            .flatten()
            .for_each(|value| see(value, 4)),
        Arrow::BinaryView => array
            .as_binary_view()
            .iter()
            .flatten()
            .for_each(|value| see(value, 4)),
        other => {
            let width = other.primitive_width()?;
            let data = array.to_data();
            let values = data
                .buffers()
                .first()?
                .as_slice()
                .get(data.offset() * width..)?;
            values
                .chunks_exact(width)
                .take(array.len())
                .enumerate()
                .filter(|(row, _)| array.is_valid(*row))
                .for_each(|(_, value)| see(value, 0));
        }
    }
    Some((rows, seen.len(), bytes))
}

/// Estimates the number of distinct values from a sample's rows and distinct values.
fn estimated_distinct(rows: f64, distinct: f64) -> f64 {
    let (mut low, mut high) = (distinct, 1e12);
    if expected_distinct(high, rows) <= distinct {
        return high;
    }
    // The expectation grows with the population.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if expected_distinct(middle, rows) < distinct {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The expected number of distinct values in a number of rows, if all values are equally frequent.
fn expected_distinct(population: f64, rows: f64) -> f64 {
    -population * (-rows / population).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int32Array, Int64Array, ListArray, StringArray};
    use std::sync::Arc;

    /// Numbers as if at random.
    fn scattered(n: i64) -> i64 {
        let mixed = |n: i64| (n ^ (n >> 29)).wrapping_mul(0x5851_f42d_4c95_7f2d);
        (mixed(mixed(n + 1)) >> 20).abs()
    }

    fn of(array: impl Array + 'static) -> bool {
        let mut out = Vec::new();
        leaf_dictionary_choices(&(Arc::new(array) as ArrayRef), &mut out);
        assert_eq!(out.len(), 1);
        out[0]
    }

    #[test]
    fn values_that_hardly_repeat_get_none() {
        assert!(!of(Int64Array::from_iter_values(0..20_000)));
        assert!(!of(Float64Array::from_iter_values(
            (0..20_000).map(|n| f64::from(n) / 3.0)
        )));
        assert!(!of(StringArray::from_iter_values(
            (0..20_000).map(|n| format!("key {}", scattered(n) % 1_000_000))
        )));
        assert!(!of(Int64Array::from_iter_values(
            (0..50_000).map(scattered)
        )
        .slice(30_000, 20_000)));
    }

    #[test]
    fn values_that_repeat_get_one() {
        assert!(of(Int64Array::from_iter_values(
            (0..20_000).map(|n| scattered(n) % 1000)
        )));
        assert!(of(StringArray::from_iter_values((0..20_000).map(
            |n| format!("some longer name {}", scattered(n) % 20_000)
        ))));
        assert!(
            of(Int32Array::from(vec![None; 20_000])),
            "nothing is known of nulls"
        );
        assert!(
            of(Int64Array::from_iter_values(0..1000)),
            "nor of a few rows"
        );
    }

    #[test]
    fn leaves_are_those_of_the_file() {
        let list = ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(
            (0..20_000).map(|n| Some(vec![Some(n)])),
        );
        assert!(!of(list));
    }
}
