//! Memory budget of batches: array sizes as if every value were copied, batches cut to a budget,
//! release of pages.
//!
//! Views of one dictionary entry cost nothing however often it is repeated; the first copy into
//! offsets and bytes does. A file of a few kilobytes can repeat a long string a million times, so
//! batches are cut *before* anything is copied.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

/// The most bytes of a value that is stored inline in its view.
const INLINE: u64 = 12;

/// Bytes of all strings and byte strings in `columns`, at any depth; short ones may count as the
/// longest such ones.
pub(in crate::pq) fn string_bytes(columns: &[ArrayRef]) -> u64 {
    columns.iter().map(array_string_bytes).sum()
}

/// Bytes of the longest string in `columns` that is in a view; at any depth of structs, lists and
/// maps.
pub(in crate::pq) fn longest_string(columns: &[ArrayRef]) -> u64 {
    let longest = |views: &[u128]| views.iter().map(|view| u64::from(*view as u32)).max();
    let of_array = |array: &ArrayRef| match array.data_type() {
        DataType::Utf8View => longest(array.as_string_view().views()).unwrap_or(0),
        DataType::BinaryView => longest(array.as_binary_view().views()).unwrap_or(0),
        DataType::Struct(_) => longest_string(array.as_struct().columns()),
        DataType::List(_) => longest_string(&[Arc::clone(array.as_list::<i32>().values())]),
        DataType::Map(_, _) => longest_string(array.as_map().entries().columns()),
        _ => 0,
    };
    columns.iter().map(of_array).max().unwrap_or(0)
}

fn array_string_bytes(array: &ArrayRef) -> u64 {
    // The lowest quarter of a view is its length; that of a null is zero or harmless. Without a
    // buffer all are short, and views are not touched again.
    let lengths = |views: &[u128], buffers: &[Buffer]| match buffers {
        [] => views.len() as u64 * INLINE,
        _ => views.iter().map(|view| u64::from(*view as u32)).sum(),
    };
    match array.data_type() {
        DataType::Utf8View => lengths(
            array.as_string_view().views(),
            array.as_string_view().data_buffers(),
        ),
        DataType::BinaryView => lengths(
            array.as_binary_view().views(),
            array.as_binary_view().data_buffers(),
        ),
        DataType::Utf8 => offsets_length(array.as_string::<i32>().value_offsets()),
        DataType::Binary => offsets_length(array.as_binary::<i32>().value_offsets()),
        DataType::Struct(_) => string_bytes(array.as_struct().columns()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            sliced_string_bytes(list.values(), list.value_offsets())
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            map.entries()
                .columns()
                .iter()
                .map(|column| sliced_string_bytes(column, map.offsets()))
                .sum()
        }
        _ => 0,
    }
}

fn offsets_length(offsets: &[i32]) -> u64 {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => {
            u64::try_from(i64::from(*last) - i64::from(*first)).unwrap_or(0)
        }
        _ => 0,
    }
}

fn sliced_string_bytes(values: &ArrayRef, offsets: &[i32]) -> u64 {
    let from = offsets
        .first()
        .and_then(|n| usize::try_from(*n).ok())
        .unwrap_or(0);
    let count = usize::try_from(offsets_length(offsets)).unwrap_or(0);
    array_string_bytes(&values.slice(
        from.min(values.len()),
        count.min(values.len().saturating_sub(from)),
    ))
}

/// Bytes of unused strings that may be kept alive, however little of them is used.
const SLACK: usize = 64 << 10;

/// Copies the strings that remain after a filter out of their pages, where the pages that they keep
/// alive are much larger.
pub(in crate::pq) fn compact_batch(batch: RecordBatch) -> RecordBatch {
    let columns: Vec<ArrayRef> = batch
        .columns()
        .iter()
        .map(|column| compact_array(column).unwrap_or_else(|| Arc::clone(column)))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options).unwrap_or(batch)
}

/// The array without its unused bytes; `None` where that saves little. Lists are not compacted.
fn compact_array(array: &ArrayRef) -> Option<ArrayRef> {
    let wasteful = |buffers: &[Buffer], used: usize| {
        buffers.iter().map(Buffer::len).sum::<usize>() > used * 2 + SLACK
    };
    match array.data_type() {
        DataType::Utf8View => {
            let views = array.as_string_view();
            wasteful(views.data_buffers(), views.total_buffer_bytes_used())
                .then(|| Arc::new(views.gc()) as ArrayRef)
        }
        DataType::BinaryView => {
            let views = array.as_binary_view();
            wasteful(views.data_buffers(), views.total_buffer_bytes_used())
                .then(|| Arc::new(views.gc()) as ArrayRef)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let mut any = false;
            let columns = structs.columns().iter().map(|column| {
                let compact = compact_array(column);
                any |= compact.is_some();
                compact.unwrap_or_else(|| Arc::clone(column))
            });
            let columns: Vec<ArrayRef> = columns.collect();
            if !any {
                return None;
            }
            StructArray::try_new(fields.clone(), columns, structs.nulls().cloned())
                .ok()
                .map(|structs| Arc::new(structs) as ArrayRef)
        }
        _ => None,
    }
}

/// Cuts `batch`, which holds `text` bytes, into halves until each holds at most `limit` or a single
/// row.
pub(in crate::pq) fn split_by_bytes(
    batch: RecordBatch,
    text: u64,
    limit: u64,
    out: &mut VecDeque<RecordBatch>,
) {
    if text <= limit || batch.num_rows() <= 1 {
        out.push_back(batch);
        return;
    }
    let half = batch.num_rows() / 2;
    for part in [
        batch.slice(0, half),
        batch.slice(half, batch.num_rows() - half),
    ] {
        let text = string_bytes(part.columns());
        split_by_bytes(part, text, limit, out);
    }
}
