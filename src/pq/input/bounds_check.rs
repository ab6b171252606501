//! Drops footer statistics that cannot be true before they are used.
//!
//! Statistics prune row groups, find the actions of a checkpoint and become the log's statistics of
//! a converted file. A lower bound above the upper one, a bound whose size differs from that of the
//! column's values, or more nulls than values prove an error of the writer or the disk: such a
//! column counts as one without statistics, so its rows are read instead of being skipped.
//!
//! Cost: one pass over the footer's bytes and one comparison for each chunk; nothing is copied
//! unless something is dropped.

use std::cmp::Ordering;

use parquet::basic::{SortOrder, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescriptor;

use crate::error::Result;
use crate::pq::decoder_errors::decode_error;
use crate::pq::input::header_check::missized_bound_columns;

/// Bytes of a value of `physical`, if the type has a fixed size.
pub(in crate::pq) fn value_size(physical: Physical) -> Option<u64> {
    match physical {
        Physical::BOOLEAN => Some(1),
        Physical::INT32 | Physical::FLOAT => Some(4),
        Physical::INT64 | Physical::DOUBLE => Some(8),
        Physical::INT96 => Some(12),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => None,
    }
}

/// The defect in the statistics of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatisticsFault {
    Bounds,
    Counts,
}

/// `metadata` without invalid statistics; it was decoded from `bytes`.
pub(in crate::pq) fn drop_invalid_statistics(
    metadata: ParquetMetaData,
    bytes: &[u8],
) -> Result<ParquetMetaData> {
    let schema = metadata.file_metadata().schema_descr();
    let missized = missized_bound_columns(bytes, |leaf| {
        schema
            .columns()
            .get(leaf)
            .and_then(|column| value_size(column.physical_type()))
    })
    .unwrap_or_default();
    let mut faults: Vec<(usize, usize, StatisticsFault)> = missized
        .into_iter()
        .map(|(group, leaf)| (group, leaf, StatisticsFault::Bounds))
        .collect();
    for (n, group) in metadata.row_groups().iter().enumerate() {
        faults.extend(
            group
                .columns()
                .iter()
                .enumerate()
                .filter_map(|(leaf, column)| Some((n, leaf, statistics_fault(column)?))),
        );
    }
    if faults.is_empty() {
        return Ok(metadata);
    }
    let mut builder = metadata.into_builder();
    let mut groups = builder.take_row_groups();
    for (n, leaf, fault) in faults {
        let Some(slot) = groups.get_mut(n) else {
            continue;
        };
        let mut group = slot.clone().into_builder();
        let mut columns = group.take_columns();
        if let Some(column) = columns.get_mut(leaf) {
            let nulls = column
                .statistics()
                .and_then(Statistics::null_count_opt)
                .filter(|_| fault == StatisticsFault::Bounds);
            let bare = without_bounds(column.column_type(), nulls);
            *column = column
                .clone()
                .into_builder()
                .set_statistics(bare)
                .build()
                .map_err(decode_error)?;
        }
        *slot = group
            .set_column_metadata(columns)
            .build()
            .map_err(decode_error)?;
    }
    Ok(builder.set_row_groups(groups).build())
}

fn without_bounds(physical: Physical, nulls: Option<u64>) -> Statistics {
    match physical {
        Physical::BOOLEAN => ValueStatistics::<bool>::new(None, None, None, nulls, false).into(),
        Physical::INT32 => ValueStatistics::<i32>::new(None, None, None, nulls, false).into(),
        Physical::INT64 => ValueStatistics::<i64>::new(None, None, None, nulls, false).into(),
        Physical::INT96 => {
            ValueStatistics::<parquet::data_type::Int96>::new(None, None, None, nulls, false).into()
        }
        Physical::FLOAT => ValueStatistics::<f32>::new(None, None, None, nulls, false).into(),
        Physical::DOUBLE => ValueStatistics::<f64>::new(None, None, None, nulls, false).into(),
        Physical::BYTE_ARRAY => {
            ValueStatistics::<parquet::data_type::ByteArray>::new(None, None, None, nulls, false)
                .into()
        }
        Physical::FIXED_LEN_BYTE_ARRAY => {
            ValueStatistics::<parquet::data_type::FixedLenByteArray>::new(
                None, None, None, nulls, false,
            )
            .into()
        }
    }
}

fn statistics_fault(column: &ColumnChunkMetaData) -> Option<StatisticsFault> {
    let statistics = column.statistics()?;
    let values = u64::try_from(column.num_values()).unwrap_or(0);
    let has_bounds = statistics.min_bytes_opt().is_some() || statistics.max_bytes_opt().is_some();
    match statistics.null_count_opt() {
        Some(nulls) if nulls > values || (nulls == values && has_bounds && values > 0) => {
            return Some(StatisticsFault::Counts);
        }
        _ => {}
    }
    is_crossed(statistics, column.column_descr()).then_some(StatisticsFault::Bounds)
}

/// Whether the lower bound is above the upper one, or is not a valid bound.
fn is_crossed(statistics: &Statistics, column: &ColumnDescriptor) -> bool {
    fn above<T: PartialOrd>(min: Option<&T>, max: Option<&T>) -> bool {
        min.zip(max).is_some_and(|(min, max)| min > max)
    }
    let order = column.sort_order();
    let signed = matches!(order, SortOrder::SIGNED);
    let unsigned = matches!(order, SortOrder::UNSIGNED);
    match statistics {
        Statistics::Boolean(s) => above(s.min_opt(), s.max_opt()),
        Statistics::Int32(s) if signed => above(s.min_opt(), s.max_opt()),
        Statistics::Int64(s) if signed => above(s.min_opt(), s.max_opt()),
        Statistics::Int32(s) if unsigned => above(
            s.min_opt().map(|n| n.cast_unsigned()).as_ref(),
            s.max_opt().map(|n| n.cast_unsigned()).as_ref(),
        ),
        Statistics::Int64(s) if unsigned => above(
            s.min_opt().map(|n| n.cast_unsigned()).as_ref(),
            s.max_opt().map(|n| n.cast_unsigned()).as_ref(),
        ),
        // The format says to ignore bounds that are `NaN`.
        Statistics::Float(s) => {
            above(s.min_opt(), s.max_opt())
                || [s.min_opt(), s.max_opt()]
                    .into_iter()
                    .flatten()
                    .any(|bound| bound.is_nan())
        }
        Statistics::Double(s) => {
            above(s.min_opt(), s.max_opt())
                || [s.min_opt(), s.max_opt()]
                    .into_iter()
                    .flatten()
                    .any(|bound| bound.is_nan())
        }
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
            let Some((min, max)) = statistics.min_bytes_opt().zip(statistics.max_bytes_opt())
            else {
                return false;
            };
            match order {
                // Old writers compared these as signed numbers, and readers ignore such bounds.
                _ if statistics.is_min_max_deprecated() => false,
                SortOrder::UNSIGNED => min > max,
                SortOrder::SIGNED
                    if column.logical_type_ref() == Some(&parquet::basic::LogicalType::Float16) =>
                {
                    false
                }
                SortOrder::SIGNED => compare_signed_bytes(min, max).is_gt(),
                _ => false,
            }
        }
        Statistics::Int32(_) | Statistics::Int64(_) | Statistics::Int96(_) => false,
    }
}

/// Compares numbers in two's complement, the highest byte first.
fn compare_signed_bytes(a: &[u8], b: &[u8]) -> Ordering {
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    match (is_negative(a), is_negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (negative, _) => {
            let filler = if negative { 0xff } else { 0 };
            let length = a.len().max(b.len());
            let wide = |bytes: &[u8]| {
                std::iter::repeat_n(filler, length - bytes.len())
                    .chain(bytes.iter().copied())
                    .collect::<Vec<u8>>()
            };
            wide(a).cmp(&wide(b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_compare_as_numbers() {
        let numbers: [i32; 9] = [i32::MIN, -70_000, -129, -128, -1, 0, 1, 127, 70_000];
        let short = |n: i32| {
            let bytes = n.to_be_bytes();
            let skip = (0..3)
                .take_while(|at| {
                    bytes[*at] == if n < 0 { 0xff } else { 0 }
                        && (bytes[at + 1] & 0x80 != 0) == (n < 0)
                })
                .count();
            bytes[skip..].to_vec()
        };
        for a in numbers {
            for b in numbers {
                assert_eq!(
                    compare_signed_bytes(&short(a), &b.to_be_bytes()),
                    a.cmp(&b),
                    "{a} {b}"
                );
            }
        }
    }
}
