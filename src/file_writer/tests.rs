//! Whole writes: what is written is what is read back, and its statistics are true.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, MapArray, PrimitiveArray,
    RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType as Arrow, Field, Schema};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;

use super::{WriteOutput, WriteRequest, WrittenDataFile, write};
use crate::error::{Error, Result};
use crate::expr::{BoundExpr, Scalar};
use crate::file_writer::constraints::{
    ComputedColumn, ConditionKind, IdentityColumn, RowCondition,
};
use crate::parse::StatsColumn;
use crate::parse::stats::{self, StatsLeafColumn};
use crate::pq::read;
use crate::pq::{ColumnMappingMode, FileSpec, FooterCache};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::data_path;
use crate::protocol::schema::{DataType, StringLayout, StructType};
use crate::store::{StorageOptions, Store, StoreObject, open};

/// A directory that is deleted at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("deltafast-write-{}", crate::exec::uuid())))
    }

    fn store(&self) -> Arc<dyn Store> {
        open(&self.0.to_string_lossy(), &StorageOptions::default()).unwrap()
    }

    /// Every file below, relative, sorted.
    fn files(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    out.push(
                        path.strip_prefix(&self.0)
                            .unwrap()
                            .to_string_lossy()
                            .into_owned(),
                    );
                }
            }
        }
        out.sort();
        out
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn table(fields: &str) -> StructType {
    StructType::parse(&format!(r#"{{"type":"struct","fields":[{fields}]}}"#)).unwrap()
}

fn put(folder: &Folder, request: &WriteRequest, batches: Vec<RecordBatch>) -> Result<WriteOutput> {
    write(&folder.store(), request, batches.into_iter().map(Ok))
}

/// The rows of a file, read with those of the table's columns that it contains.
fn rows(folder: &Folder, request: &WriteRequest, file: &WrittenDataFile) -> RecordBatch {
    let held = |name: &String| {
        request.materialize_partition_columns || !request.partition_columns.contains(name)
    };
    let columns: Vec<_> = request
        .schema
        .fields
        .iter()
        .filter(|field| held(&field.name))
        .cloned()
        .collect();
    let path = data_path::canonical(&file.path).unwrap().into_owned();
    let mut spec = FileSpec::new(
        StoreObject {
            store: folder.store(),
            path,
            size: Some(file.size),
        },
        columns.clone(),
    );
    (spec.layout, spec.mapping) = (StringLayout::Plain, request.mapping);
    let batches: Vec<RecordBatch> = read(spec, &Arc::new(FooterCache::new(0)))
        .collect::<Result<_>>()
        .unwrap();
    let schema = StructType {
        fields: columns.into(),
    }
    .to_arrow(StringLayout::Plain);
    concat_batches(&schema, &batches).unwrap()
}

fn ints(name: &str, values: impl IntoIterator<Item = i64>) -> RecordBatch {
    RecordBatch::try_from_iter([(
        name,
        Arc::new(values.into_iter().collect::<Int64Array>()) as ArrayRef,
    )])
    .unwrap()
}

/// The JSON of a column in an expression.
fn column(name: &str, data_type: &str) -> String {
    format!(r#"{{"column":{{"path":["{name}"],"data_type":"{data_type}"}}}}"#)
}

// ---- property: any schema, any rows
// -----------------------------------------------------------------------------------

/// Draws values from a seed, so that schemas and rows need no strategies of their own.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit.max(1)
    }

    fn nulls(&mut self, rows: usize, nullable: bool) -> Option<NullBuffer> {
        let share = if nullable {
            [0, 0, 3, 9, 10][self.below(5) as usize]
        } else {
            0
        };
        (share > 0).then(|| {
            (0..rows)
                .map(|_| self.below(10) >= share)
                .collect::<Vec<bool>>()
                .into()
        })
    }

    fn data_type(&mut self, depth: u32) -> DataType {
        let names = [
            "byte",
            "short",
            "integer",
            "long",
            "float",
            "double",
            "boolean",
            "string",
            "binary",
            "date",
            "timestamp",
            "timestamp_ntz",
            "decimal(7,2)",
            "decimal(18,0)",
            "decimal(38,10)",
        ];
        let kinds = if depth == 0 {
            names.len() as u64
        } else {
            names.len() as u64 + 6
        };
        let kind = self.below(kinds) as usize;
        if let Some(name) = names.get(kind) {
            return DataType::from_name(name).unwrap();
        }
        let nullable = self.below(2) == 0;
        let inner = self.data_type(depth - 1);
        let json = match kind % 3 {
            0 => {
                serde_json::json!({"type": "array", "elementType": inner.to_json(), "containsNull": nullable})
            }
            1 => {
                serde_json::json!({"type": "map", "keyType": "string", "valueType": inner.to_json(), "valueContainsNull": nullable})
            }
            _ => {
                let other = self.data_type(depth - 1);
                serde_json::json!({"type": "struct", "fields": [
                    {"name": "x", "type": inner.to_json(), "nullable": nullable, "metadata": {}}, {"name": "Y", "type": other.to_json(), "nullable": true, "metadata": {}}]})
            }
        };
        DataType::from_json(&json).unwrap()
    }

    fn number(&mut self) -> i64 {
        match self.below(6) {
            0 => 0,
            1 => i64::MAX,
            2 => i64::MIN,
            3 => self.below(100) as i64 - 50,
            _ => self.next() as i64,
        }
    }

    fn text(&mut self) -> String {
        let letters = [
            'a',
            'Z',
            '\u{7f}',
            'é',
            '\u{fffd}',
            '\u{10ffff}',
            '"',
            '\\',
            '\n',
        ];
        let length = [0, 1, 5, 33, 40, 90][self.below(6) as usize];
        let few = self.below(letters.len() as u64) + 1;
        (0..length)
            .map(|_| letters[self.below(few) as usize])
            .collect()
    }

    fn primitive<T: ArrowPrimitiveType>(
        &mut self,
        rows: usize,
        nulls: Option<NullBuffer>,
        draw: impl Fn(&mut Self) -> T::Native,
    ) -> PrimitiveArray<T> {
        PrimitiveArray::new(
            (0..rows).map(|_| draw(self)).collect::<Vec<_>>().into(),
            nulls,
        )
    }

    fn array(&mut self, of: &DataType, rows: usize, nullable: bool) -> ArrayRef {
        let nulls = self.nulls(rows, nullable);
        let typed = |array: ArrayRef| -> ArrayRef {
            arrow_array::make_array(
                array
                    .to_data()
                    .into_builder()
                    .data_type(of.to_arrow(StringLayout::Plain))
                    .build()
                    .unwrap(),
            )
        };
        match of {
            DataType::Byte => {
                Arc::new(self.primitive::<Int8Type>(rows, nulls, |d| d.number() as i8))
            }
            DataType::Short => {
                Arc::new(self.primitive::<Int16Type>(rows, nulls, |d| d.number() as i16))
            }
            DataType::Integer => {
                Arc::new(self.primitive::<Int32Type>(rows, nulls, |d| d.number() as i32))
            }
            DataType::Long => Arc::new(self.primitive::<Int64Type>(rows, nulls, Self::number)),
            DataType::Float => Arc::new(self.primitive::<Float32Type>(rows, nulls, |d| {
                [0.0, -0.0, f32::NAN, f32::INFINITY, 1.5e-3, -7.25][d.below(6) as usize]
            })),
            DataType::Double => Arc::new(self.primitive::<Float64Type>(rows, nulls, |d| {
                [
                    0.0,
                    -0.0,
                    f64::NAN,
                    f64::NEG_INFINITY,
                    0.1,
                    1e300,
                    d.number() as f64,
                ][d.below(7) as usize]
            })),
            DataType::Boolean => Arc::new(BooleanArray::new(
                (0..rows)
                    .map(|_| self.below(2) == 0)
                    .collect::<Vec<_>>()
                    .into(),
                nulls,
            )),
            DataType::Date => {
                Arc::new(self.primitive::<Date32Type>(rows, nulls, |d| {
                    d.below(5_000_000) as i32 - 1_500_000
                }))
            }
            DataType::Timestamp | DataType::TimestampNtz => typed(Arc::new(
                self.primitive::<TimestampMicrosecondType>(rows, nulls, |d| {
                    d.number() / [1, 1000, 1_000_000][d.below(3) as usize]
                }),
            )),
            DataType::Decimal(precision, _) => {
                let limit = 10_i128.pow(u32::from(*precision));
                typed(Arc::new(self.primitive::<Decimal128Type>(
                    rows,
                    nulls,
                    |d| (i128::from(d.number()) * i128::from(d.number())) % limit,
                )))
            }
            DataType::String => {
                let mut out = StringBuilder::new();
                (0..rows).for_each(|n| {
                    if nulls.as_ref().is_some_and(|nulls| nulls.is_null(n)) {
                        out.append_null();
                    } else {
                        out.append_value(self.text());
                    }
                });
                Arc::new(out.finish())
            }
            DataType::Binary => {
                let mut out = BinaryBuilder::new();
                (0..rows).for_each(|n| {
                    if nulls.as_ref().is_some_and(|nulls| nulls.is_null(n)) {
                        out.append_null();
                    } else {
                        out.append_value(self.text());
                    }
                });
                Arc::new(out.finish())
            }
            DataType::Struct(inner) => {
                let arrays = inner
                    .fields
                    .iter()
                    .map(|field| self.array(&field.data_type, rows, field.nullable))
                    .collect();
                Arc::new(StructArray::new(
                    inner.arrow_fields(StringLayout::Plain),
                    arrays,
                    nulls,
                ))
            }
            DataType::Array(_) | DataType::Map(_) => {
                let lengths: Vec<usize> = (0..rows).map(|_| self.below(4) as usize).collect();
                let count = lengths.iter().sum();
                let offsets = OffsetBuffer::from_lengths(lengths);
                match (of, of.to_arrow(StringLayout::Plain)) {
                    (DataType::Array(inner), Arrow::List(field)) => Arc::new(ListArray::new(
                        field,
                        offsets,
                        self.array(&inner.element, count, inner.contains_null),
                        nulls,
                    )),
                    (DataType::Map(inner), Arrow::Map(field, _)) => {
                        let Arrow::Struct(fields) = field.data_type() else {
                            unreachable!()
                        };
                        let pairs = StructArray::new(
                            fields.clone(),
                            vec![
                                self.array(&inner.key, count, false),
                                self.array(&inner.value, count, inner.value_contains_null),
                            ],
                            None,
                        );
                        Arc::new(MapArray::new(field, offsets, pairs, nulls, false))
                    }
                    _ => unreachable!(),
                }
            }
            other => unreachable!("{other}"),
        }
    }
}

/// A leaf that has statistics: path, type, one value per row.
type Values = (Vec<String>, DataType, Vec<Option<Scalar>>);

fn leaves(
    path: &[String],
    of: &DataType,
    array: &ArrayRef,
    above: Option<&NullBuffer>,
    out: &mut Vec<Values>,
) {
    if let DataType::Struct(inner) = of {
        let nulls = NullBuffer::union(above, array.nulls());
        for (field, array) in inner.fields.iter().zip(array.as_struct().columns()) {
            leaves(
                &[path, std::slice::from_ref(&field.name)].concat(),
                &field.data_type,
                array,
                nulls.as_ref(),
                out,
            );
        }
        return;
    }
    let value = |row: usize| -> Option<Scalar> {
        if above.is_some_and(|nulls| nulls.is_null(row)) || array.is_null(row) {
            return None;
        }
        Some(match of {
            DataType::Byte => Scalar::Long(array.as_primitive::<Int8Type>().value(row).into()),
            DataType::Short => Scalar::Long(array.as_primitive::<Int16Type>().value(row).into()),
            DataType::Integer => Scalar::Long(array.as_primitive::<Int32Type>().value(row).into()),
            DataType::Long => Scalar::Long(array.as_primitive::<Int64Type>().value(row)),
            DataType::Date => Scalar::Long(array.as_primitive::<Date32Type>().value(row).into()),
            DataType::Timestamp | DataType::TimestampNtz => {
                Scalar::Long(array.as_primitive::<TimestampMicrosecondType>().value(row))
            }
            DataType::Float => {
                Scalar::Double(array.as_primitive::<Float32Type>().value(row).into())
            }
            DataType::Double => Scalar::Double(array.as_primitive::<Float64Type>().value(row)),
            DataType::Decimal(..) => {
                Scalar::Decimal(array.as_primitive::<Decimal128Type>().value(row))
            }
            DataType::String => Scalar::Text(array.as_string::<i32>().value(row).into()),
            _ => Scalar::Boolean(true),
        })
    };
    out.push((
        path.to_vec(),
        of.clone(),
        (0..array.len()).map(value).collect(),
    ));
}

/// Checks the statistics of a file against its rows.
fn check_stats(batch: &RecordBatch, schema: &StructType, text: &str) {
    let mut all = Vec::new();
    for (field, array) in schema.fields.iter().zip(batch.columns()) {
        leaves(
            std::slice::from_ref(&field.name),
            &field.data_type,
            array,
            None,
            &mut all,
        );
    }
    let asked: Vec<StatsLeafColumn> = all
        .iter()
        .map(|(path, of, _)| StatsLeafColumn {
            path: path.clone(),
            data_type: of.clone(),
            bounds: stats::has_bounds(of),
        })
        .collect();
    let found = stats::parse(
        &StatsColumn::Json(std::iter::once(Some(text)).collect()),
        &asked,
        TimeZoneSpec::UTC,
    )
    .unwrap();
    assert_eq!(found.num_records.value(0), batch.num_rows() as i64);
    assert!(found.tight_bounds.value(0));
    for ((path, of, values), found) in all.iter().zip(&found.leaves) {
        assert_eq!(
            found.null_count.value(0),
            values.iter().filter(|v| v.is_none()).count() as i64,
            "{path:?} in {text}"
        );
        let min = values.iter().flatten().min_by(|a, b| a.compare(b).unwrap());
        let max = values.iter().flatten().max_by(|a, b| a.compare(b).unwrap());
        for (wanted, found, lower) in [(min, &found.min, true), (max, &found.max, false)] {
            let Some(found) = found.as_ref() else {
                continue;
            };
            let mut seen = Vec::new();
            leaves(path, of, found, None, &mut seen);
            let found = seen[0].2[0].clone();
            let outside = |days: i64| !(-719_162..=2_932_896).contains(&days);
            let expected = match (of, wanted) {
                (_, None) => None,
                (DataType::Date, Some(Scalar::Long(v))) if outside(*v) => None,
                (DataType::Timestamp | DataType::TimestampNtz, Some(Scalar::Long(v))) => {
                    let ms = if lower {
                        v.div_euclid(1000)
                    } else {
                        -((-i128::from(*v)).div_euclid(1000)) as i64
                    };
                    (!outside(ms.div_euclid(86_400_000))).then(|| Scalar::Long(ms * 1000))
                }
                (DataType::String, Some(Scalar::Text(v))) if v.chars().count() > 32 => {
                    if let Some(found) = &found {
                        let order = found.compare(&Scalar::Text(v.clone())).unwrap();
                        assert!(
                            if lower {
                                order != Ordering::Greater
                            } else {
                                order != Ordering::Less
                            },
                            "{path:?}: {found:?} is not a bound of {v:?}"
                        );
                    }
                    continue;
                }
                (_, Some(value)) => Some(value.clone()),
            };
            let same = match (&expected, &found) {
                (Some(a), Some(b)) => a.compare(b) == Some(Ordering::Equal),
                (a, b) => a.is_none() && b.is_none(),
            };
            assert!(
                same,
                "{path:?} {of}: expected {expected:?}, found {found:?} in {text}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn what_is_written_is_read_back_with_true_statistics(seed in 1_u64.., rows_in in 0_usize..900, cuts in 1_usize..4, group in 1_usize..400, small in any::<bool>()) {
        let mut draw = Draw(seed);
        let mut schema = StructType::default();
        for n in 0..=draw.below(5) {
            let data_type = draw.data_type(2);
            let nullable = draw.below(3) > 0;
            schema.fields.push(crate::protocol::schema::StructField::new(format!("c{n}"), data_type, nullable));
        }
        let mut batches = Vec::new();
        for _ in 0..cuts {
            let arrays: Vec<ArrayRef> = schema.fields.iter().map(|field| draw.array(&field.data_type, rows_in, field.nullable)).collect();
            batches.push(RecordBatch::try_new(schema.to_arrow(StringLayout::Plain), arrays).unwrap());
        }
        let folder = Folder::new();
        let mut request = WriteRequest::new(schema.clone());
        request.writer_properties.max_row_group_size = Some(group);
        request.target_file_size = if small { 4000 } else { 1 << 30 };
        let written = put(&folder, &request, batches.clone()).unwrap();
        prop_assert_eq!(written.rows, (rows_in * cuts) as u64);
        let mut all = Vec::new();
        for file in &written.files {
            let batch = rows(&folder, &request, file);
            prop_assert_eq!(batch.num_rows() as u64, file.num_records);
            check_stats(&batch, &schema, file.stats.as_ref().unwrap());
            all.push(batch);
        }
        prop_assert_eq!(folder.files().len(), written.files.len());
        let arrow = schema.to_arrow(StringLayout::Plain);
        let (given, found) = (concat_batches(&arrow, &batches).unwrap(), concat_batches(&arrow, &all).unwrap());
        for (field, (a, b)) in schema.fields.iter().zip(given.columns().iter().zip(found.columns())) {
            prop_assert!(a.to_data() == b.to_data(), "{}: {:?} and {:?}", field.data_type, a, b);
        }
    }
}

// ---- files
// ------------------------------------------------------------------------------------------------------------

#[test]
fn files_end_at_the_target_size() {
    let folder = Folder::new();
    let mut request = WriteRequest::new(table(r#"{"name":"n","type":"long"}"#));
    request.target_file_size = 1 << 20;
    request.properties.insert(
        "delta.parquet.compression.codec".to_owned(),
        "none".to_owned(),
    );
    // Numbers without repetition, so that the encoded size is about that of the array: 8 MB.
    let batches: Vec<RecordBatch> = (0..16)
        .map(|b| ints("n", (0..1 << 16).map(|n| (b << 40) + n * 7_919_777)))
        .collect();
    let written = put(&folder, &request, batches).unwrap();
    assert!(
        (6..=12).contains(&written.files.len()),
        "{} files",
        written.files.len()
    );
    for file in &written.files[..written.files.len() - 1] {
        assert!((700_000..2_000_000).contains(&file.size), "{}", file.size);
    }
    let next: Vec<i64> = written
        .files
        .iter()
        .flat_map(|file| {
            rows(&folder, &request, file)
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(next.len(), 1 << 20);
    assert_eq!(
        (next[0], next[(1 << 16) + 1]),
        (0, (1 << 40) + 7_919_777),
        "rows keep their order"
    );
    for (n, file) in written.files.iter().enumerate() {
        assert!(
            file.path.starts_with(&format!("part-{n:05}-")) && file.path.ends_with("-c000.parquet"),
            "{}",
            file.path
        );
    }
}

#[test]
fn gathered_partitions_have_one_file_each() {
    let fields =
        r#"{"name":"p","type":"integer"},{"name":"v","type":"long"},{"name":"s","type":"string"}"#;
    for (gather, memory) in [(false, 100_000), (true, 1 << 30), (true, 100_000)] {
        let folder = Folder::new();
        let mut request = WriteRequest::new(table(fields));
        request.partition_columns = vec!["p".to_owned()];
        (
            request.max_open_files,
            request.gather_partitions,
            request.memory,
        ) = (4, gather, memory);
        let batch = |from: i64| {
            let values = || (0..1000).map(move |n| from + n);
            let columns: Vec<(&str, ArrayRef)> = vec![
                ("v", Arc::new(values().collect::<Int64Array>())),
                (
                    "p",
                    Arc::new(
                        values()
                            .map(|v| Some(v as i32 * 7 % 25))
                            .collect::<Int32Array>(),
                    ),
                ),
                (
                    "s",
                    Arc::new(
                        values()
                            .map(|v| (v % 3 > 0).then(|| format!("text {v}")))
                            .collect::<StringViewArray>(),
                    ),
                ),
            ];
            RecordBatch::try_from_iter_with_nullable(
                columns
                    .into_iter()
                    .map(|(name, column)| (name, column, true)),
            )
            .unwrap()
        };
        let written = put(
            &folder,
            &request,
            (0..20).map(|n| batch(n * 1000)).collect(),
        )
        .unwrap();
        assert_eq!(written.rows, 20_000);
        assert_eq!(
            written.files.len() == 25,
            gather,
            "{} files",
            written.files.len()
        );
        let mut all = 0;
        for file in &written.files {
            let read = rows(&folder, &request, file);
            let values = read.column(0).as_primitive::<Int64Type>().values().to_vec();
            assert!(
                !gather || values.is_sorted(),
                "rows of a partition keep their order"
            );
            assert!(
                values
                    .iter()
                    .all(|v| Some((v * 7 % 25).to_string()) == file.partition_values[0].1)
            );
            let texts = read.column(1).as_string::<i32>();
            assert!(
                values
                    .iter()
                    .zip(texts)
                    .all(|(v, text)| text == (v % 3 > 0).then(|| format!("text {v}")).as_deref())
            );
            all += values.len();
        }
        assert_eq!(all, 20_000);
    }
}

#[test]
fn partitions_of_every_type_get_their_rows() {
    let folder = Folder::new();
    let fields = r#"{"name":"p","type":"integer"},{"name":"s","type":"string"},{"name":"t","type":"timestamp"},{"name":"v","type":"long"}"#;
    let mut request = WriteRequest::new(table(fields));
    request.partition_columns = vec!["s".to_owned(), "p".to_owned(), "t".to_owned()];
    // Fewer open files than partitions, so that partitions have several files.
    request.max_open_files = 3;
    let count = 40_000_i64;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("V", Arc::new((0..count).collect::<Int64Array>())),
        (
            "p",
            Arc::new(
                (0..count)
                    .map(|n| (n % 5 > 0).then_some(n as i32 % 5))
                    .collect::<Int32Array>(),
            ),
        ),
        (
            "s",
            Arc::new(
                (0..count)
                    .map(|n| [Some("a/ü"), Some(""), None][n as usize % 3])
                    .collect::<StringViewArray>(),
            ),
        ),
        (
            "t",
            Arc::new(
                (0..count)
                    .map(|n| Some(n / 20_000 * 1_500_000))
                    .collect::<PrimitiveArray<TimestampMicrosecondType>>()
                    .with_timezone("+02:00"),
            ),
        ),
    ];
    let written = put(
        &folder,
        &request,
        vec![RecordBatch::try_from_iter(columns).unwrap()],
    )
    .unwrap();
    let mut seen = 0;
    let mut partitions = std::collections::BTreeSet::new();
    for file in &written.files {
        let names: Vec<&str> = file
            .partition_values
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["s", "p", "t"]);
        let values: Vec<Option<&str>> = file
            .partition_values
            .iter()
            .map(|(_, value)| value.as_deref())
            .collect();
        partitions.insert(format!("{values:?}"));
        for v in rows(&folder, &request, file)
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
        {
            let p = (v % 5 > 0).then(|| (v % 5).to_string());
            let s = (v % 3 == 0).then_some("a/ü");
            let t = ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:01.500000Z"]
                [*v as usize / 20_000];
            assert_eq!(values, [s, p.as_deref(), Some(t)], "row {v}");
            seen += 1;
        }
        let stats: serde_json::Value = serde_json::from_str(file.stats.as_ref().unwrap()).unwrap();
        assert_eq!(stats["nullCount"], serde_json::json!({"v": 0}));
    }
    assert_eq!((seen, partitions.len()), (count as usize, 20));
    assert!(
        folder
            .files()
            .iter()
            .any(|path| path.starts_with("s=a%2Fü/p=1/t=1970-01-01T00%3A00%3A00.000000Z/part-")),
        "{:?}",
        folder.files()
    );
}

#[test]
fn little_memory_makes_small_row_groups_and_no_deadlock() {
    let folder = Folder::new();
    let mut request = WriteRequest::new(table(
        r#"{"name":"p","type":"long"},{"name":"s","type":"string"}"#,
    ));
    request.partition_columns = vec!["p".to_owned()];
    request.memory = 1 << 20;
    let batches: Vec<RecordBatch> = (0..20)
        .map(|b| {
            let p = Arc::new((0..5000).map(|n| n % 50).collect::<Int64Array>()) as ArrayRef;
            let s = Arc::new(
                (0..5000)
                    .map(|n| Some(format!("{:064}", b * 5000 + n)))
                    .collect::<StringArray>(),
            ) as ArrayRef;
            RecordBatch::try_from_iter([("p", p), ("s", s)]).unwrap()
        })
        .collect();
    let written = put(&folder, &request, batches).unwrap();
    assert_eq!(
        written
            .files
            .iter()
            .map(|file| file.num_records)
            .sum::<u64>(),
        100_000
    );
    assert!(written.files.len() >= 50);
}

#[test]
fn random_prefixes_and_change_data_have_their_directories() {
    let folder = Folder::new();
    let mut request = WriteRequest::new(table(
        r#"{"name":"n","type":"long"},{"name":"p","type":"long"}"#,
    ));
    request.partition_columns = vec!["p".to_owned()];
    request
        .properties
        .insert("delta.randomizeFilePrefixes".to_owned(), "true".to_owned());
    let batch = || {
        let column = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        RecordBatch::try_from_iter([("n", column()), ("p", column())]).unwrap()
    };
    let path = put(&folder, &request, vec![batch()])
        .unwrap()
        .files
        .remove(0)
        .path;
    assert!(
        path.as_bytes()[2] == b'/'
            && path[3..].starts_with("part-00000-")
            && path.ends_with(".zstd.parquet"),
        "{path}"
    );
    request.properties.clear();
    request.change_data = true;
    let file = put(&folder, &request, vec![batch()])
        .unwrap()
        .files
        .remove(0);
    assert!(
        file.path.starts_with("_change_data/p=1/cdc-00000-") && file.stats.is_none(),
        "{file:?}"
    );
}

#[test]
fn mapped_columns_have_physical_names_everywhere() {
    let folder = Folder::new();
    let field = |name: &str, data_type: &str, id: i64| {
        format!(
            r#"{{"name":"{name}","type":{data_type},"metadata":{{"delta.columnMapping.id":{id},"delta.columnMapping.physicalName":"col-{id}"}}}}"#
        )
    };
    let inner = format!(
        r#"{{"type":"struct","fields":[{}]}}"#,
        field("x", "\"long\"", 3)
    );
    let mut request = WriteRequest::new(table(
        &[
            field("part", "\"string\"", 1),
            field("s", &inner, 2),
            field("odd, name", "\"long\"", 4),
        ]
        .join(","),
    ));
    (request.mapping, request.partition_columns) = (ColumnMappingMode::Id, vec!["part".to_owned()]);
    request.properties.insert(
        "delta.dataSkippingStatsColumns".to_owned(),
        "s.x".to_owned(),
    );
    let x = Arc::new(Int64Array::from(vec![5, 7])) as ArrayRef;
    let s = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("X", Arrow::Int64, true)),
        x,
    )])) as ArrayRef;
    let part = Arc::new(StringArray::from(vec!["a", "a"])) as ArrayRef;
    let odd = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
    let given = RecordBatch::try_from_iter([("odd, name", odd), ("s", s), ("part", part)]).unwrap();
    let written = put(&folder, &request, vec![given]).unwrap();
    let file = &written.files[0];
    assert!(file.path.starts_with("col-1=a/"), "{}", file.path);
    assert_eq!(
        file.partition_values,
        [("col-1".to_owned(), Some("a".to_owned()))]
    );
    assert_eq!(
        file.stats.as_deref().unwrap(),
        r#"{"numRecords":2,"minValues":{"col-2":{"col-3":5}},"maxValues":{"col-2":{"col-3":7}},"nullCount":{"col-2":{"col-3":0}},"tightBounds":true}"#
    );
    let back = rows(&folder, &request, file);
    assert_eq!(back.column(1).as_primitive::<Int64Type>().values(), &[1, 2]);
    request.materialize_partition_columns = true;
    let given =
        RecordBatch::try_from_iter([("part", Arc::new(StringArray::from(vec!["b"])) as ArrayRef)])
            .unwrap();
    let file = put(&folder, &request, vec![given]).unwrap().files.remove(0);
    let back = rows(&folder, &request, &file);
    assert_eq!(
        (
            back.num_columns(),
            back.column(0).as_string::<i32>().value(0)
        ),
        (3, "b"),
        "materialised, the other columns null"
    );
}

// ---- failure
// ----------------------------------------------------------------------------------------------------------

#[test]
fn a_write_that_fails_leaves_nothing() {
    let folder = Folder::new();
    let mut request = WriteRequest::new(table(r#"{"name":"n","type":"long"}"#));
    request.target_file_size = 100_000;
    let good = || (0..20).map(|b| Ok(ints("n", (0..50_000).map(|n| n * (b + 7_919_777)))));
    let error = write(
        &folder.store(),
        &request,
        good().chain(std::iter::once(Err(Error::invalid("the source broke")))),
    )
    .unwrap_err();
    assert!(error.to_string().contains("the source broke"));
    assert_eq!(folder.files(), Vec::<String>::new());

    request.cancel = crate::exec::CancellationToken::default();
    let cancel = request.cancel.clone();
    let stopping = good().enumerate().map(move |(n, batch)| {
        if n == 15 {
            cancel.cancel();
        }
        batch
    });
    assert!(matches!(
        write(&folder.store(), &request, stopping),
        Err(Error::Cancelled)
    ));
    assert_eq!(folder.files(), Vec::<String>::new());
}

#[test]
fn a_store_that_cannot_be_written_is_one_clear_error() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let blocked = folder.0.join("file");
    std::fs::write(&blocked, "x").unwrap();
    let store = open(&blocked.to_string_lossy(), &StorageOptions::default()).unwrap();
    let request = WriteRequest::new(table(r#"{"name":"n","type":"long"}"#));
    let error = write(&store, &request, std::iter::once(Ok(ints("n", 0..10)))).unwrap_err();
    assert!(
        matches!(error, Error::Storage { .. }) && error.to_string().contains("cannot write"),
        "{error}"
    );
}

#[test]
fn null_in_a_not_null_field_is_named_with_its_row() {
    let folder = Folder::new();
    let fields = r#"{"name":"s","type":{"type":"struct","fields":[{"name":"l","type":{"type":"array","elementType":"long","containsNull":false},"nullable":true}]},"nullable":true}"#;
    let request = WriteRequest::new(table(fields));
    let with = |values: Vec<Option<i64>>, valid: Vec<bool>| {
        let values = Arc::new(Int64Array::from(values)) as ArrayRef;
        let list = ListArray::new(
            Arc::new(Field::new("item", Arrow::Int64, true)),
            OffsetBuffer::from_lengths([1, 1, 2]),
            values,
            None,
        );
        let field = Field::new("l", list.data_type().clone(), true);
        let s = StructArray::new(vec![field].into(), vec![Arc::new(list)], Some(valid.into()));
        RecordBatch::try_from_iter([("s", Arc::new(s) as ArrayRef)]).unwrap()
    };
    let error = put(
        &folder,
        &request,
        vec![with(vec![Some(1), Some(2), Some(3), None], vec![true; 3])],
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`s.l.element` is NOT NULL and null in row 3"),
        "{error}"
    );
    // A null within a null struct does not count.
    let written = put(
        &folder,
        &request,
        vec![with(
            vec![Some(1), None, Some(3), Some(4)],
            vec![true, false, true],
        )],
    )
    .unwrap();
    let back = rows(&folder, &request, &written.files[0]);
    assert!(back.column(0).is_null(1) && back.column(0).null_count() == 1);
}

// ---- rules
// ------------------------------------------------------------------------------------------------------------

fn literal(value: &str, data_type: &str) -> String {
    format!(r#"{{"literal":{{"value":{value},"data_type":"{data_type}"}}}}"#)
}

fn call(function: &str, args: &[String], data_type: &str) -> String {
    format!(
        r#"{{"call":{{"function":"{function}","arguments":[{}],"data_type":"{data_type}"}}}}"#,
        args.join(",")
    )
}

fn tree(node: &str) -> BoundExpr {
    BoundExpr::from_json(&format!(r#"{{"expr":{node},"ansi":true,"zone":"UTC"}}"#)).unwrap()
}

#[test]
fn a_check_that_is_null_is_violated_like_one_that_is_false() {
    let folder = Folder::new();
    let mut request = WriteRequest::new(table(r#"{"name":"n","type":"long"}"#));
    let expr = tree(&call(
        ">",
        &[column("n", "long"), literal("0", "long")],
        "boolean",
    ));
    request.rules.checks.push(RowCondition {
        kind: ConditionKind::Check {
            name: "positive".to_owned(),
        },
        sql: "n > 0".to_owned(),
        expr,
    });
    assert_eq!(
        put(&folder, &request, vec![ints("n", 1..5)]).unwrap().rows,
        4
    );
    let nulls = RecordBatch::try_from_iter([(
        "n",
        Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef,
    )])
    .unwrap();
    for (batch, value) in [(ints("n", [3, -7]), "n = -7"), (nulls, "n = NULL")] {
        let error = put(&folder, &request, vec![ints("n", 1..5), batch]).unwrap_err();
        assert!(
            matches!(&error, Error::ConstraintViolated { constraint, .. } if constraint == "positive")
        );
        assert!(
            error.to_string().contains(&format!(
                "`positive` (n > 0) does not hold for row 6: {value}"
            )),
            "{error}"
        );
    }
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn missing_columns_are_computed_and_given_ones_are_checked() {
    let folder = Folder::new();
    let mut request = WriteRequest::new(table(
        r#"{"name":"n","type":"long"},{"name":"g","type":"long"},{"name":"d","type":"string","nullable":false},{"name":"i","type":"long","nullable":false}"#,
    ));
    request.rules.generated.push(ComputedColumn {
        column: "g".to_owned(),
        expr: tree(&call(
            "+",
            &[column("n", "long"), literal("1", "long")],
            "long",
        )),
    });
    request.rules.defaults.push(ComputedColumn {
        column: "d".to_owned(),
        expr: tree(&literal("\"x\"", "string")),
    });
    request.rules.identities.push(IdentityColumn {
        column: "i".to_owned(),
        next: 100,
        step: -10,
        allow_explicit: false,
    });
    let written = put(&folder, &request, vec![ints("n", 0..100_000)]).unwrap();
    assert_eq!(written.identities, [("i".to_owned(), 100 - 10 * 99_999)]);
    let back = rows(&folder, &request, &written.files[0]);
    let row = 70_000;
    let long = |n: usize| back.column(n).as_primitive::<Int64Type>().value(row);
    assert_eq!(
        (
            long(0),
            long(1),
            back.column(2).as_string::<i32>().value(row),
            long(3)
        ),
        (70_000, 70_001, "x", 100 - 700_000)
    );

    let with = |name: &str, values: Vec<Option<i64>>| {
        RecordBatch::try_from_iter([
            (
                "n",
                Arc::new(Int64Array::from(vec![Some(1), None])) as ArrayRef,
            ),
            (name, Arc::new(Int64Array::from(values)) as ArrayRef),
        ])
        .unwrap()
    };
    assert_eq!(
        put(&folder, &request, vec![with("g", vec![Some(2), None])])
            .unwrap()
            .rows,
        2
    );
    let error = put(&folder, &request, vec![with("g", vec![Some(2), Some(1)])]).unwrap_err();
    assert!(
        error.to_string().contains("`g` is 1 in row 2") && error.to_string().contains("n = NULL"),
        "{error}"
    );
    let error = put(&folder, &request, vec![with("I", vec![Some(2), Some(1)])]).unwrap_err();
    assert!(error.to_string().contains("GENERATED ALWAYS"), "{error}");
    request.rules.identities[0].next = i64::MIN + 5;
    let error = put(&folder, &request, vec![ints("n", 0..10)]).unwrap_err();
    assert!(error.to_string().contains("end of its numbers"), "{error}");
    request.rules.identities.clear();
    let error = put(&folder, &request, vec![ints("n", 0..10)]).unwrap_err();
    assert!(
        matches!(error, Error::SchemaMismatch { .. }) && error.to_string().contains("column `i`"),
        "{error}"
    );
}

// ---- casts
// ------------------------------------------------------------------------------------------------------------

fn cast_one(data_type: &str, array: ArrayRef) -> Result<ArrayRef> {
    let table = table(&format!(r#"{{"name":"c","type":{data_type}}}"#));
    let batch = RecordBatch::try_from_iter([("C", array)]).unwrap();
    let columns = super::cast::ColumnPositions::find(&batch.schema(), &table)?;
    Ok(columns
        .cast(
            &batch,
            &table,
            super::cast_values::CastRule::default().at_row(0),
        )?
        .remove(0)
        .unwrap())
}

/// Casts a column to `long`.
fn long(array: ArrayRef) -> Result<Vec<Option<i64>>> {
    cast_one("\"long\"", array).map(|a| a.as_primitive::<Int64Type>().iter().collect())
}

#[test]
fn numbers_are_cast_without_a_loss_or_refused() {
    use arrow_array::{Int8Array, UInt64Array};
    assert_eq!(
        long(Arc::new(UInt64Array::from(vec![Some(7), None]))).unwrap(),
        [Some(7), None]
    );
    assert!(long(Arc::new(UInt64Array::from(vec![u64::MAX]))).is_err());
    assert_eq!(
        cast_one("\"byte\"", Arc::new(Int64Array::from(vec![-128])))
            .unwrap()
            .as_ref(),
        &Int8Array::from(vec![-128]) as &dyn Array
    );
    assert!(cast_one("\"byte\"", Arc::new(Int64Array::from(vec![128]))).is_err());
    assert!(
        cast_one(
            "\"double\"",
            Arc::new(Int64Array::from(vec![(1 << 53) + 1]))
        )
        .is_err()
    );
    assert!(
        cast_one(
            "\"double\"",
            Arc::new(Int64Array::from(vec![Some(1 << 53), None]))
        )
        .is_ok()
    );
    assert!(
        cast_one(
            "\"float\"",
            Arc::new(PrimitiveArray::<Float64Type>::from(vec![0.1]))
        )
        .is_err()
    );
    assert!(
        cast_one(
            "\"float\"",
            Arc::new(PrimitiveArray::<Float64Type>::from(vec![
                Some(0.5),
                None,
                Some(f64::NAN)
            ]))
        )
        .is_ok()
    );
    let doubles = |values: Vec<Option<f64>>| {
        long(Arc::new(PrimitiveArray::<Float64Type>::from(values))).map_err(|e| e.to_string())
    };
    assert_eq!(
        doubles(vec![Some(1.0), Some(-0.0), None]),
        Ok(vec![Some(1), Some(0), None])
    );
    let error = doubles(vec![None, Some(1.5)]).unwrap_err();
    assert!(
        error.contains("in row 2: 1.5: expected long, found Float64 (column `c`)"),
        "{error}"
    );
    for lost in [f64::NAN, f64::INFINITY, 1e30] {
        assert!(doubles(vec![Some(lost)]).is_err(), "{lost}");
    }
    let text = cast_one("\"long\"", Arc::new(StringArray::from(vec!["1"])));
    assert!(
        text.unwrap_err()
            .to_string()
            .contains("expected long, found Utf8 (column `c`)")
    );
}

#[test]
fn days_are_cast_to_midnights_and_back() {
    use arrow_array::Date32Array;
    let instants = cast_one("\"timestamp\"", Arc::new(Date32Array::from(vec![1]))).unwrap();
    assert_eq!(
        instants.as_primitive::<TimestampMicrosecondType>().values(),
        &[86_400_000_000]
    );
    let days = cast_one("\"date\"", instants).unwrap();
    assert_eq!(days.as_primitive::<Date32Type>().values(), &[1]);
    let noon = PrimitiveArray::<TimestampMicrosecondType>::from(vec![43_200_000_000]);
    let error = cast_one("\"date\"", Arc::new(noon)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("a date has a time of day in row 1"),
        "{error}"
    );
}

#[test]
fn decimals_and_timestamps_are_cast_without_a_loss_or_refused() {
    use arrow_array::TimestampNanosecondArray;
    let decimal = |precision, scale, values: Vec<i128>| {
        Arc::new(
            PrimitiveArray::<Decimal128Type>::from(values)
                .with_precision_and_scale(precision, scale)
                .unwrap(),
        ) as ArrayRef
    };
    let cast_decimal = |array| {
        cast_one("\"decimal(5,2)\"", array)
            .map(|a| a.as_primitive::<Decimal128Type>().values().to_vec())
    };
    assert_eq!(cast_decimal(decimal(20, 4, vec![12_300])).unwrap(), [123]);
    assert_eq!(cast_decimal(decimal(3, 0, vec![-999])).unwrap(), [-99_900]);
    assert_eq!(
        cast_decimal(Arc::new(Int64Array::from(vec![999]))).unwrap(),
        [99_900]
    );
    for bad in [
        decimal(20, 4, vec![12_301]),
        decimal(20, 0, vec![1000]),
        Arc::new(Int64Array::from(vec![1000])) as ArrayRef,
    ] {
        assert!(cast_decimal(bad).is_err());
    }

    let micros = |array: ArrayRef| {
        cast_one("\"timestamp\"", array).map(|a| {
            a.as_primitive::<TimestampMicrosecondType>()
                .values()
                .to_vec()
        })
    };
    assert_eq!(
        micros(Arc::new(
            TimestampNanosecondArray::from(vec![-5000]).with_timezone("Asia/Tokyo")
        ))
        .unwrap(),
        [-5]
    );
    assert!(
        micros(Arc::new(
            TimestampNanosecondArray::from(vec![5001]).with_timezone("UTC")
        ))
        .unwrap_err()
        .to_string()
        .contains("nanoseconds")
    );
    assert_eq!(
        micros(Arc::new(TimestampNanosecondArray::from(vec![5000]))).unwrap(),
        [5],
        "a wall clock in the zone of the request"
    );
    assert!(
        cast_one(
            "\"timestamp_ntz\"",
            Arc::new(TimestampNanosecondArray::from(vec![5000]).with_timezone("UTC"))
        )
        .is_err()
    );
}

#[test]
fn encodings_and_lists_are_cast_without_a_loss_or_refused() {
    use arrow_array::{DictionaryArray, Int8Array, LargeListArray, RunArray};
    let words: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    assert_eq!(
        cast_one("\"string\"", Arc::new(words))
            .unwrap()
            .as_string::<i32>()
            .iter()
            .collect::<Vec<_>>(),
        [Some("a"), None, Some("a")]
    );
    let runs = RunArray::<Int32Type>::try_new(
        &Int32Array::from(vec![2, 3]),
        &Int64Array::from(vec![5, 6]),
    )
    .unwrap();
    assert_eq!(long(Arc::new(runs)).unwrap(), [Some(5), Some(5), Some(6)]);

    let values = Arc::new(Int32Array::from(vec![1, 2, 300])) as ArrayRef;
    let list = LargeListArray::new(
        Arc::new(Field::new("item", Arrow::Int32, true)),
        OffsetBuffer::from_lengths([2, 1]),
        values,
        None,
    );
    let bytes = r#"{"type":"array","elementType":"byte","containsNull":true}"#;
    assert!(
        cast_one(bytes, Arc::new(list.clone()))
            .unwrap_err()
            .to_string()
            .contains("`c.element`")
    );
    // Values outside of a slice are not checked.
    assert_eq!(
        cast_one(bytes, Arc::new(list.slice(0, 1)))
            .unwrap()
            .as_list::<i32>()
            .value(0)
            .as_ref(),
        &Int8Array::from(vec![1, 2]) as &dyn Array
    );
    assert_eq!(
        cast_one("\"string\"", Arc::new(arrow_array::NullArray::new(3)))
            .unwrap()
            .null_count(),
        3
    );
}

#[test]
fn columns_are_found_without_case_and_strange_ones_are_refused() {
    let table = table(
        r#"{"name":"Id","type":"long"},{"name":"s","type":{"type":"struct","fields":[{"name":"x","type":"long"}]}}"#,
    );
    let find = |names: &[&str]| {
        let fields: Vec<Field> = names
            .iter()
            .map(|name| Field::new(*name, Arrow::Int64, true))
            .collect();
        super::cast::ColumnPositions::find(&Schema::new(fields), &table)
            .map(|columns| columns.positions)
    };
    assert_eq!(find(&["S", "iD"]).unwrap(), [Some(1), Some(0)]);
    assert_eq!(find(&["s"]).unwrap(), [None, Some(0)]);
    assert!(
        find(&["id", "other"])
            .unwrap_err()
            .to_string()
            .contains("`other`")
    );
    assert!(
        find(&["id", "ID"])
            .unwrap_err()
            .to_string()
            .contains("twice")
    );
}
