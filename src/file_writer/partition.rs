//! Splitting rows by partition: groups of rows, their partition values as in the log, and the
//! directories.
//!
//! Protocol: "Partition Value Serialization". Null and the empty string are one partition, since
//! they are the same in the log. Cost: one hash per row over the columns' row format.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType as Arrow;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::expr::text::{datetime, number};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::partition_value::{self, HIVE_NULL};
use crate::protocol::schema::{DataType, StringLayout, StructField};

/// The values of a partition, in the order of the partition columns; `None` is null.
pub type PartitionTuple = Vec<Option<String>>;

/// The partitions of a write, by number.
#[derive(Debug, Default)]
pub struct PartitionRegistry {
    known: Mutex<PartitionNumbers>,
}

#[derive(Debug, Default)]
struct PartitionNumbers {
    numbers: FxHashMap<PartitionTuple, usize>,
    all: Vec<Arc<PartitionTuple>>,
}

/// A run of rows of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRun {
    /// The partition's number.
    pub partition: usize,
    /// The first row.
    pub start: usize,
    /// How many.
    pub length: usize,
}

impl PartitionRegistry {
    /// The number of the partition with these values.
    pub(super) fn number(&self, values: PartitionTuple) -> usize {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(&values) {
            return *number;
        }
        let number = known.all.len();
        known.all.push(Arc::new(values.clone()));
        known.numbers.insert(values, number);
        number
    }

    /// The values of a partition.
    #[must_use]
    pub fn values(&self, number: usize) -> Arc<PartitionTuple> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.all.get(number).cloned().unwrap_or_default()
    }

    /// Groups rows by partition: the order of the rows (`None`: unchanged) and the runs in that
    /// order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for values that cannot be stored in the log.
    pub fn split(
        &self,
        columns: &[(&StructField, ArrayRef)],
        rows: usize,
    ) -> Result<(Option<UInt32Array>, Vec<PartitionRun>)> {
        if columns.is_empty() {
            return Ok((
                None,
                vec![PartitionRun {
                    partition: self.number(Vec::new()),
                    start: 0,
                    length: rows,
                }],
            ));
        }
        let plain = columns
            .iter()
            .map(|(field, array)| Ok(cast(array, &field.data_type.to_arrow(StringLayout::Plain))?))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let converter = RowConverter::new(
            plain
                .iter()
                .map(|array| SortField::new(array.data_type().clone()))
                .collect(),
        )?;
        let keys = converter.convert_columns(&plain)?;
        let mut codes: FxHashMap<&[u8], u32> = FxHashMap::default();
        let mut firsts: Vec<usize> = Vec::new();
        let mut of_rows: Vec<u32> = Vec::with_capacity(rows);
        let mut last: Option<(&[u8], u32)> = None;
        let all: Vec<_> = keys.iter().collect();
        for (row, key) in all.iter().enumerate() {
            let key: &[u8] = key.as_ref();
            let code = match last {
                Some((same, code)) if same == key => code,
                _ => *codes.entry(key).or_insert_with(|| {
                    firsts.push(row);
                    u32::try_from(firsts.len() - 1).unwrap_or(u32::MAX)
                }),
            };
            last = Some((key, code));
            of_rows.push(code);
        }
        // Different values of the columns may be one partition of the log.
        let numbers = firsts
            .iter()
            .map(|row| {
                let values = columns.iter().zip(&plain).map(|((field, _), array)| {
                    value(array, &field.data_type, *row)
                        .and_then(check_not_hive_null)
                        .map_err(|e| e.at_column(&field.name))
                });
                Ok(self.number(values.collect::<Result<_>>()?))
            })
            .collect::<Result<Vec<usize>>>()?;
        if let [one] = numbers.as_slice() {
            return Ok((
                None,
                vec![PartitionRun {
                    partition: *one,
                    start: 0,
                    length: rows,
                }],
            ));
        }
        // Counting sort by code: rows of one partition keep their order.
        let mut starts = vec![0_usize; firsts.len() + 1];
        for code in &of_rows {
            if let Some(count) = starts.get_mut(*code as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let runs = numbers
            .iter()
            .zip(starts.windows(2))
            .filter_map(|(number, window)| match window {
                [from, to] => Some(PartitionRun {
                    partition: *number,
                    start: *from,
                    length: to - from,
                }),
                _ => None,
            })
            .collect();
        let mut order = vec![0_u32; rows];
        for (row, code) in of_rows.iter().enumerate() {
            if let Some(next) = starts.get_mut(*code as usize) {
                if let Some(slot) = order.get_mut(*next) {
                    *slot = u32::try_from(row).unwrap_or(u32::MAX);
                }
                *next += 1;
            }
        }
        Ok((Some(UInt32Array::from(order)), runs))
    }
}

/// A partition value as in the log; null if the log has no other representation. `zone` is the time
/// zone for timestamps without an offset.
///
/// # Errors
/// [`Error::Corrupt`] for a string that is invalid for the type.
pub fn canonical(
    text: Option<&str>,
    data_type: &DataType,
    zone: TimeZoneSpec,
) -> Result<Option<String>> {
    let parsed = partition_value::parse(&std::iter::once(text).collect(), data_type, zone)?;
    value(
        &cast(&parsed, &data_type.to_arrow(StringLayout::Plain))?,
        data_type,
        0,
    )
}

/// One value as in the log.
fn value(array: &ArrayRef, data_type: &DataType, row: usize) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    let mut out = String::new();
    match (data_type, array.data_type()) {
        (DataType::Byte, _) => out = array.as_primitive::<Int8Type>().value(row).to_string(),
        (DataType::Short, _) => out = array.as_primitive::<Int16Type>().value(row).to_string(),
        (DataType::Integer, _) => out = array.as_primitive::<Int32Type>().value(row).to_string(),
        (DataType::Long, _) => out = array.as_primitive::<Int64Type>().value(row).to_string(),
        (DataType::Float, _) => {
            number::write_float(&mut out, array.as_primitive::<Float32Type>().value(row));
        }
        (DataType::Double, _) => {
            number::write_double(&mut out, array.as_primitive::<Float64Type>().value(row));
        }
        (DataType::Decimal(_, scale), _) => number::write_decimal(
            &mut out,
            array.as_primitive::<Decimal128Type>().value(row),
            *scale,
        ),
        (DataType::Boolean, _) => out = array.as_boolean().value(row).to_string(),
        (DataType::Date, _) => datetime::write_date(
            &mut out,
            i64::from(array.as_primitive::<Date32Type>().value(row)),
        ),
        (DataType::Timestamp, _) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            datetime::write_timestamp(&mut out, micros.div_euclid(1_000_000) * 1_000_000);
            out = format!(
                "{}.{:06}Z",
                out.replacen(' ', "T", 1),
                micros.rem_euclid(1_000_000)
            );
        }
        (DataType::TimestampNtz, _) => datetime::write_timestamp(
            &mut out,
            array.as_primitive::<TimestampMicrosecondType>().value(row),
        ),
        (DataType::String, Arrow::Utf8) => array.as_string::<i32>().value(row).clone_into(&mut out),
        (DataType::Binary, Arrow::Binary) => {
            let bytes = array.as_binary::<i32>().value(row);
            let text = std::str::from_utf8(bytes).map_err(|_| {
                Error::unsupported("a binary partition value that is not UTF-8 cannot be written")
            })?;
            text.clone_into(&mut out);
        }
        (other, _) => {
            return Err(Error::invalid(format!(
                "a column of type {other} cannot be a partition column"
            )));
        }
    }
    Ok((!out.is_empty()).then_some(out))
}

/// A partition value to write, unless it is the text that stands for null in Hive's layout: readers
/// of the folder's name, and delta-rs when it writes, make it null. Values that are in the log
/// already are read as they stand; this check is for new rows and files only.
///
/// # Errors
/// [`Error::Invalid`] for that text.
pub fn check_not_hive_null(value: Option<String>) -> Result<Option<String>> {
    if value.as_deref() == Some(HIVE_NULL) {
        return Err(Error::invalid(format!(
            "the partition value `{HIVE_NULL}` cannot be written: this text stands for null in the names of partition folders; write null or another text"
        )));
    }
    Ok(value)
}

/// The maximum length of a directory name in bytes that every file system supports.
const NAME_BYTES: usize = 255;

/// The directories of a partition, each with a trailing `/`, named as by Hive and Spark; empty if a
/// name would be too long, since the names have no meaning: the values are in the log.
#[must_use]
pub fn directory(columns: &[String], values: &PartitionTuple) -> String {
    let parts: Vec<String> = columns
        .iter()
        .zip(values)
        .map(|(name, value)| {
            format!(
                "{}={}",
                escaped(name),
                escaped(value.as_deref().unwrap_or(HIVE_NULL))
            )
        })
        .collect();
    if parts.iter().any(|part| part.len() > NAME_BYTES) {
        return String::new();
    }
    parts.iter().map(|part| format!("{part}/")).collect()
}

/// A string with the special characters of paths replaced by `%XX`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '['
            | ']'
            | '^'
            | '\x00'..='\x1f'
            | '\x7f' => {
                let _ = write!(out, "%{:02X}", c as u32);
            }
            c => out.push(c),
        }
    }
    // Some file systems remove a dot or a space at the end of a name.
    match out.pop() {
        Some('.') => out.push_str("%2E"),
        Some(' ') => out.push_str("%20"),
        Some(c) => out.push(c),
        None => {}
    }
    out
}

/// Characters that are not encoded in the paths of the log.
const IN_LOG: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'/')
    .remove(b'=')
    .remove(b'+')
    .remove(b'@')
    .remove(b'$')
    .remove(b'&')
    .remove(b',')
    .remove(b';')
    .remove(b':');

/// A path as in the log: URI-encoded.
#[must_use]
pub fn log_path(path: &str) -> String {
    utf8_percent_encode(path, IN_LOG).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{data_path, partition_value};
    use arrow_array::{
        BinaryArray, Float64Array, Int32Array, StringArray, StringViewArray,
        TimestampMicrosecondArray,
    };
    use proptest::prelude::*;

    fn field(name: &str, data_type: &str) -> StructField {
        StructField::new(name, DataType::from_name(data_type).unwrap(), true)
    }

    #[test]
    fn rows_are_grouped_in_their_order() {
        let (a, b) = (field("a", "integer"), field("b", "string"));
        let columns = [
            (
                &a,
                Arc::new(Int32Array::from(vec![
                    Some(2),
                    Some(1),
                    Some(2),
                    None,
                    Some(2),
                ])) as ArrayRef,
            ),
            (
                &b,
                Arc::new(StringArray::from(vec![
                    Some("x"),
                    Some("x"),
                    Some("x"),
                    Some(""),
                    Some("y"),
                ])) as ArrayRef,
            ),
        ];
        let partitions = PartitionRegistry::default();
        let (order, runs) = partitions.split(&columns, 5).unwrap();
        let order = order.unwrap();
        let groups: Vec<(PartitionTuple, Vec<u32>)> = runs
            .iter()
            .map(|run| {
                (
                    partitions.values(run.partition).as_ref().clone(),
                    order.values()[run.start..run.start + run.length].to_vec(),
                )
            })
            .collect();
        let text = |t: &str| Some(t.to_owned());
        assert_eq!(
            groups,
            [
                (vec![text("2"), text("x")], vec![0, 2]),
                (vec![text("1"), text("x")], vec![1]),
                (vec![None, None], vec![3]),
                (vec![text("2"), text("y")], vec![4])
            ]
        );
        let (order, runs) = partitions
            .split(
                &[(&a, Arc::new(Int32Array::from(vec![7, 7])) as ArrayRef)],
                2,
            )
            .unwrap();
        assert!(order.is_none() && runs.len() == 1);
    }

    #[test]
    fn the_text_that_stands_for_null_in_folder_names_is_refused() {
        let kinds: [(&str, ArrayRef); 2] = [
            (
                "string",
                Arc::new(StringArray::from(vec![Some("a"), None, Some(HIVE_NULL)])),
            ),
            (
                "binary",
                Arc::new(BinaryArray::from(vec![HIVE_NULL.as_bytes()])),
            ),
        ];
        for (name, array) in kinds {
            let field = field("p", name);
            let rows = array.len();
            let error = PartitionRegistry::default()
                .split(&[(&field, array)], rows)
                .unwrap_err();
            assert!(
                matches!(error, Error::Invalid { .. }) && error.to_string().contains(HIVE_NULL),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn values_of_every_type_are_read_back() {
        use arrow_array::{Date32Array, Decimal128Array};
        let cases: Vec<(&str, ArrayRef, &str)> = vec![
            ("integer", Arc::new(Int32Array::from(vec![-7])), "-7"),
            ("double", Arc::new(Float64Array::from(vec![10.0])), "10.0"),
            (
                "double",
                Arc::new(Float64Array::from(vec![f64::NAN])),
                "NaN",
            ),
            ("double", Arc::new(Float64Array::from(vec![1e-9])), "1.0E-9"),
            ("date", Arc::new(Date32Array::from(vec![-1])), "1969-12-31"),
            (
                "timestamp",
                Arc::new(TimestampMicrosecondArray::from(vec![-1]).with_timezone("UTC")),
                "1969-12-31T23:59:59.999999Z",
            ),
            (
                "timestamp",
                Arc::new(TimestampMicrosecondArray::from(vec![0]).with_timezone("UTC")),
                "1970-01-01T00:00:00.000000Z",
            ),
            (
                "timestamp_ntz",
                Arc::new(TimestampMicrosecondArray::from(vec![1_500_000])),
                "1970-01-01 00:00:01.5",
            ),
            (
                "decimal(12,5)",
                Arc::new(
                    Decimal128Array::from(vec![4])
                        .with_precision_and_scale(12, 5)
                        .unwrap(),
                ),
                "0.00004",
            ),
            (
                "boolean",
                Arc::new(arrow_array::BooleanArray::from(vec![true])),
                "true",
            ),
            (
                "string",
                Arc::new(StringArray::from(vec!["ü /=%"])),
                "ü /=%",
            ),
            (
                "binary",
                Arc::new(BinaryArray::from(vec!["\u{1}\u{2}".as_bytes()])),
                "\u{1}\u{2}",
            ),
        ];
        for (name, array, expected) in cases {
            let data_type = DataType::from_name(name).unwrap();
            let text = value(&array, &data_type, 0).unwrap();
            assert_eq!(text.as_deref(), Some(expected), "{name}");
            let read = partition_value::parse(
                &std::iter::once(text.as_deref()).collect::<StringViewArray>(),
                &data_type,
                crate::protocol::calendar::TimeZoneSpec::UTC,
            )
            .unwrap();
            assert_eq!(format!("{read:?}"), format!("{array:?}"), "{name}");
        }
        let raw: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\xff"[..]]));
        assert!(matches!(
            value(&raw, &DataType::Binary, 0),
            Err(Error::Unsupported { .. })
        ));
    }

    #[test]
    fn directories_are_those_of_spark() {
        let columns = ["a b".to_owned(), "t".to_owned()];
        let values = vec![Some("x/y=%é.".to_owned()), None];
        assert_eq!(
            directory(&columns, &values),
            "a b=x%2Fy%3D%25é%2E/t=__HIVE_DEFAULT_PARTITION__/"
        );
        assert_eq!(directory(&columns, &vec![Some("x".repeat(300)), None]), "");
        assert_eq!(
            log_path("c2=+ %3D%250/p.parquet"),
            "c2=+%20%253D%25250/p.parquet"
        );
    }

    proptest! {
        #[test]
        fn paths_of_the_log_are_read_back(value in "\\PC{0,40}|[\u{1}-\u{7f}]{0,20}") {
            let path = format!("{}part-0.parquet", directory(&["p".to_owned()], &vec![Some(value)]));
            let in_log = log_path(&path);
            let read = data_path::canonical(&in_log).unwrap();
            prop_assert_eq!(read.as_ref(), path.as_str());
        }
    }
}
