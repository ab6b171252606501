//! Tests of reading data files: types, evolution, mapping, deletions, damage.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type as P32, Int64Type as P64, Int96, Int96Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::tests::{file_in, file_of, ints, write};
use super::{ColumnMappingMode, FileSpec, ROW_INDEX};
use crate::dv::{DeletionVector, RoaringBitmapArray};
use crate::error::{Error, Result};
use crate::expr::BoundExpr;
use crate::pq::read;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};

/// A column chunk's values and levels.
enum Chunk {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    I96(Vec<[u32; 3]>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<&'static [u8]>),
    Fixed(Vec<&'static [u8]>),
}

/// Values, definition levels, repetition levels.
type Levelled = (Chunk, Option<Vec<i16>>, Option<Vec<i16>>);

/// A file with this schema and these columns.
fn message(schema: &str, chunks: Vec<Levelled>, keys: &[(&str, &str)]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let keys = keys
        .iter()
        .map(|(key, value)| KeyValue::new((*key).to_owned(), Some((*value).to_owned())))
        .collect();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(Some(keys))
        .build();
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (chunk, def, rep) in chunks {
        let mut column = group.next_column().unwrap().unwrap();
        let (def, rep) = (def.as_deref(), rep.as_deref());
        match chunk {
            Chunk::Bool(v) => column.typed::<BoolType>().write_batch(&v, def, rep),
            Chunk::I32(v) => column.typed::<P32>().write_batch(&v, def, rep),
            Chunk::I64(v) => column.typed::<P64>().write_batch(&v, def, rep),
            Chunk::F32(v) => column.typed::<FloatType>().write_batch(&v, def, rep),
            Chunk::F64(v) => column.typed::<DoubleType>().write_batch(&v, def, rep),
            Chunk::I96(v) => {
                let v: Vec<Int96> = v.into_iter().map(|v| Int96::from(v.to_vec())).collect();
                column.typed::<Int96Type>().write_batch(&v, def, rep)
            }
            Chunk::Bytes(v) => {
                let v: Vec<ByteArray> =
                    v.into_iter().map(|v| ByteArray::from(v.to_vec())).collect();
                column.typed::<ByteArrayType>().write_batch(&v, def, rep)
            }
            Chunk::Fixed(v) => {
                let v: Vec<FixedLenByteArray> = v
                    .into_iter()
                    .map(|v| ByteArray::from(v.to_vec()).into())
                    .collect();
                column
                    .typed::<FixedLenByteArrayType>()
                    .write_batch(&v, def, rep)
            }
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    out
}

fn fields(schema: &str) -> Vec<StructField> {
    StructType::parse(&format!(r#"{{"type":"struct","fields":[{schema}]}}"#))
        .unwrap()
        .fields
        .to_vec()
}

fn field(name: &str, data_type: &str) -> StructField {
    StructField::new(
        name,
        DataType::from_json(&serde_json::from_str(data_type).unwrap_or_else(|_| data_type.into()))
            .unwrap(),
        true,
    )
}

fn all(spec: FileSpec) -> Result<RecordBatch> {
    let batches = read(spec.clone(), &Arc::default()).collect::<Result<Vec<_>>>()?;
    let schema = batches
        .first()
        .map_or_else(|| Arc::new(spec.schema()), RecordBatch::schema);
    Ok(concat_batches(&schema, &batches).unwrap())
}

fn spec(bytes: &[u8], columns: Vec<StructField>) -> FileSpec {
    FileSpec {
        layout: StringLayout::Plain,
        ..FileSpec::new(file_of(bytes), columns)
    }
}

/// One value of a one-column file as the table's type.
fn one(physical: &str, chunk: Chunk, data_type: &str) -> Result<ArrayRef> {
    let bytes = message(
        &format!("message m {{ required {physical}; }}"),
        vec![(chunk, None, None)],
        &[],
    );
    let batch = all(spec(&bytes, vec![field("c", data_type)]))?;
    assert_eq!(
        batch.schema().field(0).data_type(),
        &field("c", data_type)
            .data_type
            .to_arrow(StringLayout::Plain)
    );
    Ok(Arc::clone(batch.column(0)))
}

fn shown(array: &ArrayRef) -> String {
    // Arrow shows zones only as offsets.
    let array = match array.as_primitive_opt::<TimestampMicrosecondType>() {
        Some(time) if time.timezone().is_some() => Arc::new(time.clone().with_timezone("+00:00")),
        _ => Arc::clone(array),
    };
    arrow_cast::display::array_value_to_string(&array, 0).unwrap()
}

#[test]
fn the_protocols_table_of_type_mappings() {
    let day_one = [0, 0, 2_440_589];
    let cases: Vec<(&str, Chunk, &str, &str)> = vec![
        ("boolean c", Chunk::Bool(vec![true]), "boolean", "true"),
        (
            "int32 c (INTEGER(8,true))",
            Chunk::I32(vec![-5]),
            "byte",
            "-5",
        ),
        (
            "int32 c (INTEGER(16,true))",
            Chunk::I32(vec![-500]),
            "short",
            "-500",
        ),
        (
            "int32 c (INTEGER(32,true))",
            Chunk::I32(vec![-50_000]),
            "integer",
            "-50000",
        ),
        ("int32 c", Chunk::I32(vec![7]), "integer", "7"),
        (
            "int64 c (INTEGER(64,true))",
            Chunk::I64(vec![1 << 40]),
            "long",
            "1099511627776",
        ),
        (
            "int32 c (DATE)",
            Chunk::I32(vec![19_000]),
            "date",
            "2022-01-08",
        ),
        (
            "int96 c",
            Chunk::I96(vec![day_one]),
            "timestamp",
            "1970-01-02T00:00:00Z",
        ),
        (
            "int64 c (TIMESTAMP(MICROS,true))",
            Chunk::I64(vec![1]),
            "timestamp",
            "1970-01-01T00:00:00.000001Z",
        ),
        (
            "int96 c",
            Chunk::I96(vec![day_one]),
            "timestamp_ntz",
            "1970-01-02T00:00:00",
        ),
        (
            "int64 c (TIMESTAMP(MICROS,false))",
            Chunk::I64(vec![1]),
            "timestamp_ntz",
            "1970-01-01T00:00:00.000001",
        ),
        ("float c", Chunk::F32(vec![1.5]), "float", "1.5"),
        ("double c", Chunk::F64(vec![2.5]), "double", "2.5"),
        (
            "int32 c (DECIMAL(9,2))",
            Chunk::I32(vec![-12345]),
            "decimal(9,2)",
            "-123.45",
        ),
        (
            "int64 c (DECIMAL(18,2))",
            Chunk::I64(vec![12345]),
            "decimal(18,2)",
            "123.45",
        ),
        (
            "fixed_len_byte_array(9) c (DECIMAL(20,2))",
            Chunk::Fixed(vec![&[255, 255, 255, 255, 255, 255, 255, 255, 0]]),
            "decimal(20,2)",
            "-2.56",
        ),
        (
            "byte_array c (UTF8)",
            Chunk::Bytes(vec!["grün".as_bytes()]),
            "string",
            "grün",
        ),
        (
            "byte_array c",
            Chunk::Bytes(vec![&[0, 255]]),
            "binary",
            "00ff",
        ),
    ];
    for (physical, chunk, data_type, expected) in cases {
        let found = one(physical, chunk, data_type)
            .unwrap_or_else(|e| panic!("{physical} as {data_type}: {e}"));
        assert_eq!(shown(&found), expected, "{physical} as {data_type}");
    }
}

#[test]
fn other_writers_encodings_of_the_same_types_are_read() {
    let cases: Vec<(&str, Chunk, &str, &str)> = vec![
        ("int32 c", Chunk::I32(vec![-5]), "byte", "-5"),
        ("int32 c", Chunk::I32(vec![500]), "short", "500"),
        ("int32 c", Chunk::I32(vec![19_000]), "date", "2022-01-08"),
        (
            "int32 c (INTEGER(8,false))",
            Chunk::I32(vec![200]),
            "short",
            "200",
        ),
        (
            "int32 c (INTEGER(32,false))",
            Chunk::I32(vec![-1]),
            "long",
            "4294967295",
        ),
        (
            "int64 c (INTEGER(64,false))",
            Chunk::I64(vec![7]),
            "long",
            "7",
        ),
        (
            "byte_array c",
            Chunk::Bytes(vec![b"plain"]),
            "string",
            "plain",
        ),
        (
            "byte_array c (ENUM)",
            Chunk::Bytes(vec![b"e"]),
            "string",
            "e",
        ),
        (
            "byte_array c (JSON)",
            Chunk::Bytes(vec![b"{}"]),
            "string",
            "{}",
        ),
        (
            "byte_array c (UTF8)",
            Chunk::Bytes(vec![b"a"]),
            "binary",
            "61",
        ),
        (
            "fixed_len_byte_array(2) c",
            Chunk::Fixed(vec![&[1, 2]]),
            "binary",
            "0102",
        ),
        (
            "int64 c (TIMESTAMP(MILLIS,true))",
            Chunk::I64(vec![-1]),
            "timestamp",
            "1969-12-31T23:59:59.999Z",
        ),
        (
            "int64 c (TIMESTAMP(NANOS,true))",
            Chunk::I64(vec![-1]),
            "timestamp",
            "1969-12-31T23:59:59.999999Z",
        ),
        (
            "int64 c (TIMESTAMP(NANOS,false))",
            Chunk::I64(vec![1999]),
            "timestamp_ntz",
            "1970-01-01T00:00:00.000001",
        ),
        (
            "int64 c (TIMESTAMP(MICROS,false))",
            Chunk::I64(vec![1]),
            "timestamp",
            "1970-01-01T00:00:00.000001Z",
        ),
        (
            "int64 c (TIMESTAMP(MICROS,true))",
            Chunk::I64(vec![1]),
            "timestamp_ntz",
            "1970-01-01T00:00:00.000001",
        ),
        (
            "byte_array c (DECIMAL(10,2))",
            Chunk::Bytes(vec![&[255, 0]]),
            "decimal(10,2)",
            "-2.56",
        ),
        (
            "fixed_len_byte_array(17) c (DECIMAL(38,0))",
            Chunk::Fixed(vec![&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]]),
            "decimal(38,0)",
            "256",
        ),
    ];
    for (physical, chunk, data_type, expected) in cases {
        let found = one(physical, chunk, data_type)
            .unwrap_or_else(|e| panic!("{physical} as {data_type}: {e}"));
        assert_eq!(shown(&found), expected, "{physical} as {data_type}");
    }
}

#[test]
fn widened_types_are_read_from_older_files() {
    let cases: Vec<(&str, Chunk, &str, &str)> = vec![
        (
            "int32 c (INTEGER(8,true))",
            Chunk::I32(vec![-5]),
            "short",
            "-5",
        ),
        (
            "int32 c (INTEGER(8,true))",
            Chunk::I32(vec![-5]),
            "integer",
            "-5",
        ),
        (
            "int32 c (INTEGER(16,true))",
            Chunk::I32(vec![-5]),
            "long",
            "-5",
        ),
        ("int32 c", Chunk::I32(vec![-5]), "long", "-5"),
        ("int32 c", Chunk::I32(vec![-5]), "double", "-5.0"),
        (
            "int32 c (INTEGER(16,true))",
            Chunk::I32(vec![-5]),
            "double",
            "-5.0",
        ),
        ("float c", Chunk::F32(vec![0.5]), "double", "0.5"),
        (
            "int32 c (DATE)",
            Chunk::I32(vec![-1]),
            "timestamp_ntz",
            "1969-12-31T00:00:00",
        ),
        (
            "int32 c (DECIMAL(5,2))",
            Chunk::I32(vec![12345]),
            "decimal(10,2)",
            "123.45",
        ),
        (
            "int32 c (DECIMAL(5,2))",
            Chunk::I32(vec![12345]),
            "decimal(10,4)",
            "123.4500",
        ),
        ("int32 c", Chunk::I32(vec![-5]), "decimal(10,0)", "-5"),
        (
            "int32 c (INTEGER(8,true))",
            Chunk::I32(vec![-5]),
            "decimal(12,2)",
            "-5.00",
        ),
        ("int64 c", Chunk::I64(vec![-5]), "decimal(21,1)", "-5.0"),
    ];
    for (physical, chunk, data_type, expected) in cases {
        let found = one(physical, chunk, data_type)
            .unwrap_or_else(|e| panic!("{physical} as {data_type}: {e}"));
        assert_eq!(shown(&found), expected, "{physical} as {data_type}");
    }
}

#[test]
fn types_that_do_not_fit_are_a_schema_mismatch_that_names_all() {
    let cases: Vec<(&str, Chunk, &str, &str)> = vec![
        (
            "byte_array c (UTF8)",
            Chunk::Bytes(vec![b"a"]),
            "integer",
            "string",
        ),
        ("int64 c", Chunk::I64(vec![1]), "integer", "long"),
        ("int64 c", Chunk::I64(vec![1]), "string", "long"),
        ("int64 c", Chunk::I64(vec![1]), "double", "long"),
        ("int64 c", Chunk::I64(vec![1]), "timestamp", "long"),
        ("double c", Chunk::F64(vec![1.0]), "float", "double"),
        ("int32 c (DATE)", Chunk::I32(vec![1]), "timestamp", "date"),
        (
            "int32 c (DECIMAL(9,2))",
            Chunk::I32(vec![1]),
            "decimal(9,1)",
            "decimal(9,2)",
        ),
        (
            "int32 c (DECIMAL(9,2))",
            Chunk::I32(vec![1]),
            "decimal(9,3)",
            "decimal(9,2)",
        ),
        ("int32 c", Chunk::I32(vec![1]), "decimal(9,0)", "integer"),
        ("int64 c", Chunk::I64(vec![1]), "decimal(19,0)", "long"),
        (
            "int64 c",
            Chunk::I64(vec![1]),
            r#"{"type":"array","elementType":"long","containsNull":true}"#,
            "long",
        ),
        (
            "fixed_len_byte_array(2) c (FLOAT16)",
            Chunk::Fixed(vec![&[0, 60]]),
            "float",
            "float16",
        ),
        (
            "int32 c (TIME(MILLIS,true))",
            Chunk::I32(vec![1]),
            "integer",
            "time32",
        ),
    ];
    for (physical, chunk, data_type, found) in cases {
        match one(physical, chunk, data_type) {
            Err(Error::SchemaMismatch {
                expected,
                found: said,
                context: place,
                ..
            }) => {
                assert_eq!(expected, field("c", data_type).data_type.to_string());
                assert!(said.starts_with(found), "{said}");
                assert_eq!(
                    (place.column.as_deref(), place.file.as_deref()),
                    (Some("c"), Some("f.parquet"))
                );
            }
            other => panic!("{physical} as {data_type}: {other:?}"),
        }
    }
}

#[test]
fn narrower_integers_are_checked_by_value() {
    for (physical, value, data_type) in [
        ("int32 c", 128, "byte"),
        ("int32 c", 1 << 16, "short"),
        ("int32 c (INTEGER(32,false))", -1, "integer"),
    ] {
        let error = one(physical, Chunk::I32(vec![value]), data_type).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. }) && error.to_string().contains("`c`"),
            "{error}"
        );
    }
    assert!(matches!(
        one("byte_array c", Chunk::Bytes(vec![&[0xff]]), "string"),
        Err(Error::Corrupt { .. })
    ));
}

#[test]
fn int96_beyond_the_range_of_nanoseconds_does_not_overflow() {
    // 0001-01-01 and 9999-12-31T23:59:59.999999: Julian days 1721426 and 5373484.
    let nanos = 86_399_999_999_000_u64;
    let values = vec![
        [0, 0, 1_721_426],
        [nanos as u32, (nanos >> 32) as u32, 5_373_484],
    ];
    let found = one("int96 c", Chunk::I96(values), "timestamp").unwrap();
    let found = found.as_primitive::<TimestampMicrosecondType>();
    assert_eq!(
        (found.value(0), found.value(1)),
        (-62_135_596_800_000_000, 253_402_300_799_999_999)
    );
}

#[test]
fn missing_columns_are_null_and_others_keep_their_order() {
    let bytes = message(
        "message m { required int32 a; required int32 b; }",
        vec![
            (Chunk::I32(vec![1, 2]), None, None),
            (Chunk::I32(vec![3, 4]), None, None),
        ],
        &[],
    );
    let mut missing = field("new", "string");
    missing.nullable = false;
    let columns = vec![
        field("b", "integer"),
        missing,
        field("v", "void"),
        field("a", "long"),
        field("s", r#"{"type":"struct","fields":[]}"#),
    ];
    let batch = all(spec(&bytes, columns)).unwrap();
    assert_eq!(
        batch
            .schema()
            .fields()
            .iter()
            .map(|f| f.name().as_str())
            .collect::<Vec<_>>(),
        ["b", "new", "v", "a", "s"]
    );
    assert_eq!(
        batch.column(0).as_primitive::<Int32Type>().values(),
        &[3, 4]
    );
    assert_eq!(batch.column(1).null_count(), 2);
    assert!(
        batch.schema().field(1).is_nullable(),
        "NOT NULL gives way to what is there"
    );
    assert_eq!(
        batch.column(3).as_primitive::<Int64Type>().values(),
        &[1, 2]
    );
    assert_eq!(batch.column(4).null_count(), 2);
}

#[test]
fn names_match_without_case_only_where_no_exact_one_is() {
    let two = |names: [&str; 2]| {
        message(
            &format!(
                "message m {{ required int32 {}; required int32 {}; }}",
                names[0], names[1]
            ),
            vec![
                (Chunk::I32(vec![1]), None, None),
                (Chunk::I32(vec![2]), None, None),
            ],
            &[],
        )
    };
    let value = |bytes: &[u8]| {
        all(spec(bytes, vec![field("Ab", "integer")]))
            .map(|batch| batch.column(0).as_primitive::<Int32Type>().value(0))
    };
    assert_eq!(value(&two(["aB", "c"])).unwrap(), 1);
    assert_eq!(value(&two(["ab", "Ab"])).unwrap(), 2);
    let error = value(&two(["ab", "AB"])).unwrap_err();
    assert!(
        error.to_string().contains("differ from `Ab` only in case"),
        "{error}"
    );
}

#[test]
fn mapped_columns_are_found_by_physical_name_or_by_id() {
    let schema = r#"{"name":"x","type":"integer","nullable":true,"metadata":{"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"col-1"}},
        {"name":"s","type":{"type":"struct","fields":[{"name":"y","type":"integer","nullable":true,"metadata":{"delta.columnMapping.id":4,"delta.columnMapping.physicalName":"col-4"}}]},
         "nullable":true,"metadata":{"delta.columnMapping.id":3,"delta.columnMapping.physicalName":"col-3"}}"#;
    let bytes = message(
        "message m { required int32 x = 9; required int32 col-1 = 1; required int32 other = 2; required group col-3 = 3 { required int32 col-4 = 5; required int32 z = 4; } }",
        (1..=5).map(|n| (Chunk::I32(vec![n]), None, None)).collect(),
        &[],
    );
    let values = |mapping| {
        let batch = all(FileSpec {
            mapping,
            ..spec(&bytes, fields(schema))
        })
        .unwrap();
        let y = batch
            .column_by_name("s")
            .unwrap()
            .as_struct_opt()
            .filter(|s| s.null_count() == 0)
            .map(|s| Arc::clone(s.column(0)));
        let of = |array: &ArrayRef| {
            (array.null_count() == 0).then(|| array.as_primitive::<Int32Type>().value(0))
        };
        (
            of(batch.column_by_name("x").unwrap()),
            y.and_then(|y| of(&y)),
        )
    };
    assert_eq!(values(ColumnMappingMode::Name), (Some(2), Some(4)));
    assert_eq!(values(ColumnMappingMode::Id), (Some(3), Some(5)));
    assert_eq!(values(ColumnMappingMode::None), (Some(1), None));
    let bare = message(
        "message m { required int32 x; }",
        vec![(Chunk::I32(vec![1]), None, None)],
        &[],
    );
    let error = all(FileSpec {
        mapping: ColumnMappingMode::Id,
        ..spec(&bare, fields(schema))
    })
    .unwrap_err();
    assert!(error.to_string().contains("no field ids"), "{error}");
}

#[test]
fn raw_columns_come_by_their_own_names_and_may_be_absent() {
    let bytes = message(
        "message m { required int64 _row_id; }",
        vec![(Chunk::I64(vec![5]), None, None)],
        &[],
    );
    let batch = all(FileSpec {
        mapping: ColumnMappingMode::Name,
        row_index: true,
        raw_columns: vec![
            ("_row_id".to_owned(), DataType::Long),
            ("_none".to_owned(), DataType::Long),
        ],
        ..spec(&bytes, vec![field("a", "long")])
    })
    .unwrap();
    assert_eq!(
        batch
            .schema()
            .fields()
            .iter()
            .map(|f| f.name().as_str())
            .collect::<Vec<_>>(),
        ["a", ROW_INDEX, "_row_id", "_none"]
    );
    assert_eq!(batch.column(2).as_primitive::<Int64Type>().value(0), 5);
    assert_eq!(
        (batch.column(0).null_count(), batch.column(3).null_count()),
        (1, 1)
    );
}

const LONGS: &str = r#"{"type":"array","elementType":"integer","containsNull":true}"#;

#[test]
fn lists_of_every_legacy_form_are_lists() {
    // Rows: [1, 2], [], null, [3]
    let three = (
        Chunk::I32(vec![1, 2, 3]),
        Some(vec![3, 3, 1, 0, 3]),
        Some(vec![0, 1, 0, 0, 0]),
    );
    let two = || {
        (
            Chunk::I32(vec![1, 2, 3]),
            Some(vec![2, 2, 1, 0, 2]),
            Some(vec![0, 1, 0, 0, 0]),
        )
    };
    let cases = [
        (
            "optional group c (LIST) { repeated group list { optional int32 element; } }",
            three,
        ),
        ("optional group c (LIST) { repeated int32 element; }", two()),
        ("optional group c (LIST) { repeated int32 array; }", two()),
        (
            "optional group c (LIST) { repeated group bag { required int32 array_element; } }",
            two(),
        ),
    ];
    for (physical, chunk) in cases {
        let bytes = message(&format!("message m {{ {physical} }}"), vec![chunk], &[]);
        let batch = all(spec(&bytes, vec![field("c", LONGS)]))
            .unwrap_or_else(|e| panic!("{physical}: {e}"));
        assert_eq!(
            batch.schema().field(0).data_type(),
            &field("c", LONGS).data_type.to_arrow(StringLayout::Plain)
        );
        let list = batch.column(0).as_list::<i32>();
        assert_eq!(list.value_offsets(), &[0, 2, 2, 2, 3], "{physical}");
        assert_eq!((list.is_null(1), list.is_null(2)), (false, true));
        assert_eq!(
            list.values().as_primitive::<Int32Type>().values(),
            &[1, 2, 3]
        );
    }
    let bytes = message(
        "message m { repeated int32 c; }",
        vec![(Chunk::I32(vec![1, 2]), Some(vec![1, 1]), Some(vec![0, 1]))],
        &[],
    );
    assert_eq!(
        all(spec(&bytes, vec![field("c", LONGS)]))
            .unwrap()
            .column(0)
            .as_list::<i32>()
            .value_length(0),
        2
    );
}

#[test]
fn two_level_lists_of_structs_survive_the_choice_of_one_field() {
    let wanted = r#"{"type":"array","elementType":{"type":"struct","fields":[{"name":"b","type":"integer","nullable":true,"metadata":{}}]},"containsNull":true}"#;
    let levels = || (Some(vec![2, 2]), Some(vec![0, 1]));
    for physical in [
        "optional group c (LIST) { repeated group element { required int32 a; required int32 b; } }",
        "optional group c (LIST) { repeated group array { required int32 a; required int32 b; } }",
    ] {
        let ((d1, r1), (d2, r2)) = (levels(), levels());
        let bytes = message(
            &format!("message m {{ {physical} }}"),
            vec![
                (Chunk::I32(vec![1, 2]), d1, r1),
                (Chunk::I32(vec![3, 4]), d2, r2),
            ],
            &[],
        );
        let batch = all(spec(&bytes, vec![field("c", wanted)])).unwrap();
        assert_eq!(
            batch
                .column(0)
                .as_list::<i32>()
                .values()
                .as_struct()
                .column(0)
                .as_primitive::<Int32Type>()
                .values(),
            &[3, 4]
        );
    }
}

#[test]
fn maps_of_every_legacy_form_are_maps() {
    let wanted = r#"{"type":"map","keyType":"string","valueType":"long","valueContainsNull":true}"#;
    for physical in [
        "optional group c (MAP) { repeated group key_value { required byte_array key (UTF8); optional int32 value; } }",
        "optional group c (MAP_KEY_VALUE) { repeated group map { required byte_array key (UTF8); optional int32 value; } }",
        "optional group c (MAP) { repeated group map (MAP_KEY_VALUE) { required byte_array k; optional int32 v; } }",
    ] {
        // {"a": 1, "b": null}, null, {}
        let bytes = message(
            &format!("message m {{ {physical} }}"),
            vec![
                (
                    Chunk::Bytes(vec![b"a", b"b"]),
                    Some(vec![2, 2, 0, 1]),
                    Some(vec![0, 1, 0, 0]),
                ),
                (
                    Chunk::I32(vec![1]),
                    Some(vec![3, 2, 0, 1]),
                    Some(vec![0, 1, 0, 0]),
                ),
            ],
            &[],
        );
        let batch = all(spec(&bytes, vec![field("c", wanted)]))
            .unwrap_or_else(|e| panic!("{physical}: {e}"));
        let map = batch.column(0).as_map();
        assert_eq!(map.value_offsets(), &[0, 2, 2, 2], "{physical}");
        assert!(map.is_null(1) && !map.is_null(2));
        assert_eq!(
            map.keys()
                .as_string::<i32>()
                .iter()
                .flatten()
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(
            map.values()
                .as_primitive::<Int64Type>()
                .iter()
                .collect::<Vec<_>>(),
            [Some(1), None]
        );
    }
}

#[test]
fn nested_fields_evolve_like_columns() {
    let wanted = r#"{"type":"struct","fields":[
        {"name":"new","type":"string","nullable":true,"metadata":{}},
        {"name":"b","type":"long","nullable":true,"metadata":{}},
        {"name":"inner","type":{"type":"struct","fields":[{"name":"gone","type":"double","nullable":true,"metadata":{}}]},"nullable":true,"metadata":{}}]}"#;
    let bytes = message(
        "message m { optional group c { required int32 a; required int32 b; optional group inner { required int32 x; required int32 y; } } }",
        vec![
            (Chunk::I32(vec![1, 2]), Some(vec![1, 1, 0]), None),
            (Chunk::I32(vec![3, 4]), Some(vec![1, 1, 0]), None),
            (Chunk::I32(vec![5]), Some(vec![2, 1, 0]), None),
            (Chunk::I32(vec![6]), Some(vec![2, 1, 0]), None),
        ],
        &[],
    );
    let batch = all(spec(&bytes, vec![field("c", wanted)])).unwrap();
    let c = batch.column(0).as_struct();
    assert_eq!(
        c.nulls().unwrap().iter().collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(c.column(0).null_count(), 3);
    assert_eq!(
        c.column(1).as_primitive::<Int64Type>().values()[..2],
        [3, 4]
    );
    let inner = c.column(2).as_struct();
    assert_eq!(
        inner.nulls().unwrap().iter().collect::<Vec<_>>(),
        [true, false, false],
        "a struct is not null because its fields are missing"
    );
    assert_eq!(inner.column(0).null_count(), 3);
}

#[test]
fn an_odd_column_does_not_spoil_the_others() {
    let bytes = message(
        "message m { required int32 a; required fixed_len_byte_array(12) odd (INTERVAL); required int64 t (TIME(MICROS,true)); }",
        vec![
            (Chunk::I32(vec![1]), None, None),
            (Chunk::Fixed(vec![&[0; 12]]), None, None),
            (Chunk::I64(vec![1]), None, None),
        ],
        &[],
    );
    assert_eq!(
        all(spec(&bytes, vec![field("a", "integer")]))
            .unwrap()
            .num_rows(),
        1
    );
}

#[test]
fn files_of_old_spark_versions_are_rebased() {
    let chunks = || {
        vec![
            (Chunk::I32(vec![-171_500]), None, None),
            (Chunk::I64(vec![-171_500 * 86_400_000_000]), None, None),
            (Chunk::I96(vec![[0, 0, 2_440_588 - 171_500]]), None, None),
            (Chunk::I64(vec![-171_500 * 86_400_000_000]), None, None),
        ]
    };
    let schema = "message m { required int32 d (DATE); required int64 t (TIMESTAMP(MICROS,true)); required int96 i; required int64 n (TIMESTAMP(MICROS,false)); }";
    let columns = || {
        vec![
            field("d", "date"),
            field("t", "timestamp"),
            field("i", "timestamp"),
            field("n", "timestamp_ntz"),
        ]
    };
    let shifts = |keys: &[(&str, &str)]| {
        let batch = all(spec(&message(schema, chunks(), keys), columns())).unwrap();
        let micros = |n: usize| {
            (batch
                .column(n)
                .as_primitive::<TimestampMicrosecondType>()
                .value(0)
                / 86_400_000_000
                + 171_500) as i32
        };
        (
            batch.column(0).as_primitive::<Date32Type>().value(0) + 171_500,
            micros(1),
            micros(2),
            micros(3),
        )
    };
    assert_eq!(shifts(&[]), (0, 0, 0, 0));
    assert_eq!(
        shifts(&[("org.apache.spark.version", "3.5.0")]),
        (0, 0, 0, 0)
    );
    assert_eq!(
        shifts(&[("org.apache.spark.version", "2.4.8")]),
        (-10, -10, -10, 0)
    );
    assert_eq!(
        shifts(&[("org.apache.spark.version", "3.0.1")]),
        (0, 0, -10, 0)
    );
    assert_eq!(
        shifts(&[
            ("org.apache.spark.version", "3.5.0"),
            ("org.apache.spark.legacyDateTime", "")
        ]),
        (-10, -10, 0, 0)
    );
    assert_eq!(
        shifts(&[
            ("org.apache.spark.version", "3.5.0"),
            ("org.apache.spark.legacyINT96", "")
        ]),
        (0, 0, -10, 0)
    );
    assert_eq!(
        shifts(&[("org.apache.spark.legacyDateTime", "")]),
        (0, 0, 0, 0)
    );
}

#[test]
fn files_that_spark_wrote_in_the_old_calendar_read_as_spark_reads_them() {
    // Written and read by Spark 4.2 with `datetimeRebaseModeInWrite` and `int96RebaseModeInWrite`
    // LEGACY, in four zones.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parquet");
    let expected: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("legacy.json")).unwrap()).unwrap();
    let expected = expected.as_object().unwrap();
    assert_eq!(expected.len(), 8);
    for (name, values) in expected {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let batch = all(spec(
            &bytes,
            vec![field("d", "date"), field("t", "timestamp")],
        ))
        .unwrap();
        let numbers = |key: &str| {
            values[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_i64().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            batch
                .column(0)
                .as_primitive::<Date32Type>()
                .values()
                .iter()
                .map(|day| i64::from(*day))
                .collect::<Vec<_>>(),
            numbers("days"),
            "{name}"
        );
        assert_eq!(
            batch
                .column(1)
                .as_primitive::<TimestampMicrosecondType>()
                .values()
                .to_vec(),
            numbers("micros"),
            "{name}"
        );
    }
}

/// A filter from the binder's JSON.
fn filter(expr: serde_json::Value) -> Option<Arc<BoundExpr>> {
    Some(Arc::new(
        BoundExpr::from_json(
            &serde_json::json!({"expr": expr, "ansi": true, "zone": "UTC"}).to_string(),
        )
        .unwrap(),
    ))
}

fn column(name: &str, data_type: &str) -> serde_json::Value {
    serde_json::json!({"column":{"path":name.split('.').collect::<Vec<_>>(),"data_type":data_type}})
}

fn literal(value: impl Into<serde_json::Value>, data_type: &str) -> serde_json::Value {
    serde_json::json!({"literal":{"value":value.into(),"data_type":data_type}})
}

fn call(name: &str, args: Vec<serde_json::Value>) -> serde_json::Value {
    serde_json::json!({"call":{"function":name,"arguments":args,"data_type":"boolean"}})
}

/// `count` rows in groups of `group` and pages of `page`.
fn grouped(count: i64, group: usize, page: usize) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_data_page_row_count_limit(page)
        .set_write_batch_size(page)
        .set_compression(Compression::SNAPPY)
        .build();
    write(&ints(count), Some(properties))
}

#[test]
fn deleted_rows_are_left_out_at_their_positions() {
    let bytes = grouped(10_000, 1000, 100);
    let deleted: Vec<u64> = (0..10_000)
        .filter(|n| n % 7 == 3 || (2000..5000).contains(n))
        .collect();
    let kept: Vec<i64> = (0..10_000)
        .filter(|n| !deleted.contains(&(*n as u64)))
        .collect();
    let vector = Arc::new(DeletionVector::from(
        RoaringBitmapArray::from_ascending(deleted).unwrap(),
    ));
    for batch_rows in [1, 13, 1000, 100_000] {
        for columns in [vec![field("n", "long")], vec![]] {
            let counted = columns.is_empty();
            let batch = all(FileSpec {
                deleted: Some(Arc::clone(&vector)),
                row_index: true,
                batch_rows,
                ..spec(&bytes, columns)
            })
            .unwrap();
            let index = batch
                .column_by_name(ROW_INDEX)
                .unwrap()
                .as_primitive::<Int64Type>();
            assert_eq!(index.values(), &kept[..]);
            if !counted {
                assert_eq!(
                    batch.column(0).as_primitive::<Int64Type>().values(),
                    &kept[..]
                );
            }
        }
    }
}

#[test]
fn a_range_of_bytes_takes_the_row_groups_that_begin_in_it() {
    let bytes = grouped(10_000, 1000, 100);
    let size = bytes.len() as u64;
    let mut seen = Vec::new();
    for range in [0..size / 3, size / 3..size / 2, size / 2..size] {
        let batch = all(FileSpec {
            range: Some(range),
            ..spec(&bytes, vec![field("n", "long")])
        })
        .unwrap();
        seen.extend(
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .copied(),
        );
    }
    assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn local_files_are_read_by_windows() {
    let text: StringArray = (0..60_000)
        .map(|n| {
            Some(format!(
                "{:x}",
                (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ))
        })
        .collect();
    let batch = RecordBatch::try_from_iter([
        (
            "n",
            Arc::new((0..60_000).collect::<Int64Array>()) as ArrayRef,
        ),
        ("s", Arc::new(text)),
    ])
    .unwrap();
    for page in [10, 1000, 50_000] {
        let properties = WriterProperties::builder()
            .set_data_page_row_count_limit(page)
            .set_write_batch_size(page)
            .set_dictionary_enabled(false)
            .build();
        let bytes = write(&batch, Some(properties));
        let file = file_in("file:///", &bytes);
        let found = all(FileSpec {
            layout: StringLayout::Plain,
            ..FileSpec::new(file, vec![field("n", "long"), field("s", "string")])
        })
        .unwrap();
        assert_eq!(found.columns(), batch.columns());
    }
}

#[test]
fn flipped_bytes_under_a_page_checksum_are_found() {
    // Written by pyarrow with `write_page_checksum=True`.
    let bytes = include_bytes!("../../tests/data/parquet/checksummed.parquet");
    let columns = || vec![field("n", "long"), field("s", "string")];
    let whole = all(spec(bytes, columns())).unwrap();
    let footer = bytes.len()
        - 8
        - u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let mut found = 0;
    for at in 4..footer {
        let mut bad = bytes.to_vec();
        bad[at] ^= 0x10;
        match all(spec(&bad, columns())) {
            // A flip in a page's header may leave its values unchanged.
            Ok(batch) => assert_eq!(batch, whole, "at {at}"),
            Err(error) => {
                assert!(
                    matches!(error, Error::Corrupt { .. } | Error::Unsupported { .. })
                        && error.to_string().contains("f.parquet"),
                    "{error}"
                );
                found += usize::from(error.to_string().contains("checksum"));
            }
        }
    }
    assert!(found > 100, "{found}");
}

#[test]
fn every_flipped_byte_is_an_error_or_rows_but_never_a_panic() {
    let text: StringArray = (0..50)
        .map(|n| Some(["a", "longer than twelve bytes"][n % 2]))
        .collect();
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new((0..50).collect::<Int64Array>()) as ArrayRef),
        ("s", Arc::new(text)),
    ])
    .unwrap();
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
    ] {
        let bytes = write(
            &batch,
            Some(
                WriterProperties::builder()
                    .set_compression(compression)
                    .build(),
            ),
        );
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                let _ = all(spec(&bad, vec![field("n", "long"), field("s", "string")]));
            }
        }
    }
}

/// Checks that reading is refused, with `text` and the file's name in the message.
fn refused(bytes: &[u8], data_type: &str, text: &str) {
    for url in ["memory:///", "file:///"] {
        let error = all(FileSpec::new(
            file_in(url, bytes),
            vec![field("c", data_type)],
        ))
        .unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { .. } | Error::Resource { .. })
                && error.to_string().contains(text)
                && error.to_string().contains("f.parquet"),
            "{error}"
        );
    }
}

#[test]
fn pages_that_expand_beyond_the_memory_limit_are_refused() {
    let long = "x".repeat(10 << 20);
    let batch = RecordBatch::try_from_iter([(
        "c",
        Arc::new(StringArray::from(vec![long.as_str()])) as ArrayRef,
    )])
    .unwrap();
    let zstd = || {
        WriterProperties::builder()
            .set_compression(Compression::ZSTD(Default::default()))
            .set_statistics_enabled(EnabledStatistics::None)
    };
    let bomb = write(&batch, Some(zstd().set_dictionary_enabled(false).build()));
    assert!(bomb.len() < 4096, "{}", bomb.len());
    refused(&bomb, "string", "DELTAFAST_MEMORY_LIMIT");
    let bomb = write(
        &batch,
        Some(zstd().set_dictionary_page_size_limit(1 << 30).build()),
    );
    refused(&bomb, "string", "DELTAFAST_MEMORY_LIMIT");
    // The same size is accepted if the bytes exist.
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from((state >> 57) as u8)
    };
    let noise: String = (0..10 << 20).map(|_| next()).collect();
    let batch = RecordBatch::try_from_iter([(
        "c",
        Arc::new(StringArray::from(vec![noise.as_str()])) as ArrayRef,
    )])
    .unwrap();
    let honest = write(&batch, Some(zstd().set_dictionary_enabled(false).build()));
    assert_eq!(
        all(spec(&honest, vec![field("c", "string")]))
            .unwrap()
            .column(0)
            .as_string::<i32>()
            .value(0),
        noise
    );
}

#[test]
fn pages_of_every_codec_are_read_and_damage_in_them_is_found() {
    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};
    use parquet::file::properties::WriterVersion;
    let text: StringArray = (0..5000)
        .map(|n| (n % 7 != 0).then(|| format!("value {}", n % 900)))
        .collect();
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("n", Arc::new((0..5000).collect::<Int64Array>()), false),
        ("s", Arc::new(text), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ];
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder()
                .set_compression(codec)
                .set_writer_version(version)
                .set_data_page_row_count_limit(700)
                .set_write_batch_size(100);
            let bytes = write(&batch, Some(properties.build()));
            let columns = || vec![field("n", "long"), field("s", "string")];
            for url in ["memory:///", "file:///"] {
                let read = |spec| {
                    all(FileSpec {
                        layout: StringLayout::Plain,
                        ..spec
                    })
                };
                assert_eq!(
                    read(FileSpec::new(file_in(url, &bytes), columns()))
                        .unwrap()
                        .columns(),
                    batch.columns(),
                    "{codec}"
                );
                // Skipped pages, and a dictionary that is needed after its page was skipped.
                let late = filter(call("=", vec![column("n", "long"), literal(4321, "long")]));
                let found = read(FileSpec {
                    filter: late,
                    filter_rows: true,
                    ..FileSpec::new(file_in(url, &bytes), columns())
                })
                .unwrap();
                assert_eq!(found.columns(), batch.slice(4321, 1).columns(), "{codec}");
            }
            for at in (4..bytes.len()).step_by(37) {
                let mut bad = bytes.clone();
                bad[at] ^= 0x55;
                let _ = all(spec(&bad, columns()));
            }
        }
    }
}

#[test]
fn a_gzip_page_that_holds_more_than_it_says_is_not_inflated_further() {
    // Written by hand: one page, PLAIN, whose header announces 100 bytes and whose gzip stream
    // holds 32 MiB.
    let long = "z".repeat(32 << 20);
    let batch = RecordBatch::try_from_iter([(
        "c",
        Arc::new(StringArray::from(vec![long.as_str()])) as ArrayRef,
    )])
    .unwrap();
    for codec in [
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ] {
        let properties = WriterProperties::builder()
            .set_compression(codec)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None);
        let mut bytes = write(&batch, Some(properties.build()));
        // type 0, then the uncompressed size as a zigzag varint of four bytes, which 100 can be
        // written as, too.
        assert_eq!(bytes[4..7], [0x15, 0x00, 0x15]);
        let length = bytes[7..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let mut small = [0x80; 5];
        small[0] = 0xc8;
        small[1] = 0x81;
        small[length - 1] = 0;
        bytes[7..7 + length].copy_from_slice(&small[..length]);
        refused(&bytes, "string", "expands to more bytes than the 100");
    }
}

#[test]
fn lists_that_expand_beyond_the_memory_limit_are_refused() {
    let values = 2 << 20;
    let mut rep = vec![1; values];
    rep[0] = 0;
    let bomb = message(
        "message m { optional group c (LIST) { repeated group list { required int32 element; } } }",
        vec![(
            Chunk::I32(vec![7; values]),
            Some(vec![2; values]),
            Some(rep),
        )],
        &[],
    );
    assert!(bomb.len() < 16 << 10, "{}", bomb.len());
    refused(&bomb, LONGS, "DELTAFAST_MEMORY_LIMIT");
    // As many elements in lists of a few are decoded batch by batch.
    let rep: Vec<i16> = (0..values).map(|n| i16::from(n % 8 > 0)).collect();
    let honest = message(
        "message m { optional group c (LIST) { repeated group list { required int32 element; } } }",
        vec![(
            Chunk::I32(vec![7; values]),
            Some(vec![2; values]),
            Some(rep),
        )],
        &[],
    );
    let rows = all(spec(&honest, vec![field("c", LONGS)])).unwrap();
    assert_eq!(rows.num_rows(), values / 8);
}

#[test]
fn a_repeated_string_is_cut_into_batches() {
    let long = "y".repeat(1 << 20);
    let text: StringArray = (0..300).map(|_| Some(long.as_str())).collect();
    let batch = RecordBatch::try_from_iter([("c", Arc::new(text) as ArrayRef)]).unwrap();
    let bytes = write(
        &batch,
        Some(
            WriterProperties::builder()
                .set_dictionary_page_size_limit(1 << 30)
                .build(),
        ),
    );
    let batches: Vec<RecordBatch> = read(spec(&bytes, vec![field("c", "string")]), &Arc::default())
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
        300
    );
    assert!(batches.iter().all(|batch| batch.num_rows() <= 128));
}

#[test]
fn a_row_group_that_ends_early_is_an_error() {
    let bytes = message(
        "message m { required int32 a; required int32 b; }",
        vec![
            (Chunk::I32(vec![1, 2]), None, None),
            (Chunk::I32(vec![3, 4]), None, None),
        ],
        &[],
    );
    // The footer's number of rows, zigzag 4, is changed to 6: once for the file, once for the row
    // group.
    let mut bad = bytes.clone();
    let footer = bytes.len()
        - 8
        - u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    for at in footer..bytes.len() - 8 {
        if bad[at - 1] == 0x16 && bad[at] == 4 {
            bad[at] = 6;
        }
    }
    let error = all(spec(&bad, vec![field("a", "integer")])).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn text_in_both_layouts_is_the_same() {
    let text: StringArray = (0..1000)
        .map(|n| (n % 5 != 0).then(|| format!("value number {n}")))
        .collect();
    let batch = RecordBatch::try_from_iter_with_nullable([("s", Arc::new(text) as ArrayRef, true)])
        .unwrap();
    let bytes = write(&batch, None);
    for (data_type, layout) in [
        ("string", StringLayout::Plain),
        ("string", StringLayout::View),
        ("binary", StringLayout::Plain),
        ("binary", StringLayout::View),
    ] {
        let found = all(FileSpec {
            layout,
            ..spec(&bytes, vec![field("s", data_type)])
        })
        .unwrap();
        assert_eq!(
            found.schema().field(0).data_type(),
            &field("s", data_type).data_type.to_arrow(layout)
        );
        let plain = arrow_cast::cast(found.column(0), &arrow_schema::DataType::Utf8).unwrap();
        assert_eq!(&plain, batch.column(0));
    }
}

#[test]
fn a_missing_data_file_is_not_found_as_such() {
    let store = Arc::new(crate::store::LocalStore::new(std::path::PathBuf::from(
        "/nonexistent-directory",
    )));
    let file = crate::store::StoreObject {
        store,
        path: "gone.parquet".to_owned(),
        size: Some(100),
    };
    let error = all(FileSpec::new(file, vec![])).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NotFound {
                kind: crate::error::NotFoundKind::DataFile,
                ..
            }
        ) && error.to_string().contains("gone.parquet"),
        "{error}"
    );
}

#[test]
fn variants_pass_and_shredded_ones_are_put_together() {
    use parquet::variant::{Variant, VariantArray, shred_variant};
    let values: VariantArray = [
        Some(Variant::from(42_i64)),
        None,
        Some(Variant::from("text")),
        Some(Variant::Null),
    ]
    .into_iter()
    .collect();
    let shredded = shred_variant(&values, &arrow_schema::DataType::Int64).unwrap();
    for array in [&values, &shredded] {
        let schema = Arc::new(arrow_schema::Schema::new(vec![array.field("v")]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(array.inner().clone())]).unwrap();
        for layout in [StringLayout::Plain, StringLayout::View] {
            let found = all(FileSpec {
                layout,
                ..spec(&write(&batch, None), vec![field("v", "variant")])
            })
            .unwrap();
            assert_eq!(
                found.schema().field(0).data_type(),
                &DataType::Variant.to_arrow(layout)
            );
            let found = VariantArray::try_new(found.column(0)).unwrap();
            assert!(found.is_null(1));
            assert_eq!(
                (found.value(0), found.value(2), found.value(3)),
                (Variant::from(42_i64), Variant::from("text"), Variant::Null)
            );
        }
    }
}

/// A store that records the reads.
#[derive(Debug)]
struct Watched(
    crate::dv::tests::Memory,
    std::sync::Mutex<Vec<std::ops::Range<u64>>>,
    std::sync::atomic::AtomicUsize,
);

impl crate::store::Store for Watched {
    fn url(&self) -> &str {
        self.0.url()
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<crate::store::ObjectMeta>> {
        self.0.list_from(dir, after)
    }

    fn head(&self, path: &str) -> Result<crate::store::ObjectMeta> {
        self.0.head(path)
    }

    fn get(
        &self,
        path: &str,
    ) -> crate::store::PendingResult<(bytes::Bytes, crate::store::ObjectMeta)> {
        self.0.get(path)
    }

    fn get_ranges(
        &self,
        path: &str,
        ranges: Vec<std::ops::Range<u64>>,
    ) -> crate::store::PendingResult<Vec<bytes::Bytes>> {
        self.1.lock().unwrap().extend(ranges.iter().cloned());
        self.2.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.get_ranges(path, ranges)
    }
}

/// Many rows, groups and pages: `id` ascends, `key` is scattered, `text` is long and has nulls.
fn searched(bloom: bool, index: bool) -> (RecordBatch, Vec<u8>) {
    let rows = 200_000_u64;
    let id: Int64Array = (0..rows as i64).collect();
    let key: Int64Array = (0..rows)
        .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64 * 2)
        .collect();
    let text: StringArray = (0..rows)
        .map(|n| {
            (n % 11 != 0).then(|| {
                format!(
                    "{:032x}",
                    u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
                )
            })
        })
        .collect();
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("id", Arc::new(id), false),
        ("key", Arc::new(key), false),
        ("text", Arc::new(text), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(60_000))
        .set_data_page_row_count_limit(1000)
        .set_write_batch_size(500)
        .set_dictionary_enabled(false)
        .set_bloom_filter_enabled(bloom)
        .set_offset_index_disabled(!index)
        .set_statistics_enabled(if index {
            EnabledStatistics::Page
        } else {
            EnabledStatistics::Chunk
        })
        .build();
    let bytes = write(&batch, Some(properties));
    (batch, bytes)
}

/// The result of reading with a filter, and the number of bytes that were read.
fn filtered(
    url: &'static str,
    bytes: &[u8],
    spec: impl FnOnce(FileSpec) -> FileSpec,
) -> (RecordBatch, u64) {
    let store = Arc::new(Watched(
        crate::dv::tests::Memory {
            url,
            bytes: bytes::Bytes::copy_from_slice(bytes),
        },
        std::sync::Mutex::default(),
        Default::default(),
    ));
    let file = crate::store::StoreObject {
        store: store.clone(),
        path: "f.parquet".to_owned(),
        size: Some(bytes.len() as u64),
    };
    let columns = vec![
        field("id", "long"),
        field("key", "long"),
        field("text", "string"),
    ];
    let batch = all(spec(FileSpec {
        layout: StringLayout::Plain,
        filter_rows: true,
        ..FileSpec::new(file, columns)
    }))
    .unwrap();
    let read = store
        .1
        .lock()
        .unwrap()
        .iter()
        .map(|range| range.end - range.start)
        .sum();
    (batch, read)
}

#[test]
fn a_point_filter_reads_little_and_finds_its_row() {
    let (batch, bytes) = searched(false, true);
    let point = || {
        filter(call(
            "=",
            vec![column("id", "long"), literal(123_456, "long")],
        ))
    };
    for url in ["memory:///", "file:///"] {
        let (found, read) = filtered(url, &bytes, |spec| FileSpec {
            filter: point(),
            row_index: true,
            ..spec
        });
        assert_eq!(
            found
                .column_by_name(ROW_INDEX)
                .unwrap()
                .as_primitive::<Int64Type>()
                .values(),
            &[123_456]
        );
        assert_eq!(&found.columns()[..3], batch.slice(123_456, 1).columns());
        assert!(
            read < bytes.len() as u64 / 10,
            "{url}: {read} of {}",
            bytes.len()
        );
        let (found, _) = filtered(url, &bytes, |spec| FileSpec {
            filter: point(),
            columns: vec![field("text", "string")],
            filter_columns: vec![field("id", "long")],
            ..spec
        });
        assert_eq!(
            found.columns(),
            &[Arc::clone(batch.slice(123_456, 1).column(2))]
        );
    }
}

#[test]
fn without_row_filtering_a_filter_only_prunes() {
    let (_, bytes) = searched(false, true);
    let point = filter(call(
        "=",
        vec![column("id", "long"), literal(123_456, "long")],
    ));
    let (found, _) = filtered("memory:///", &bytes, |spec| FileSpec {
        filter: point,
        filter_rows: false,
        ..spec
    });
    assert!(
        (1..=1000).contains(&found.num_rows())
            && found
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .contains(&123_456)
    );
}

#[test]
fn bloom_filters_rule_out_row_groups() {
    // Even keys only: an odd one is within all bounds and in no row.
    let absent = || {
        filter(call(
            "=",
            vec![column("key", "long"), literal(8_388_607, "long")],
        ))
    };
    let list = || {
        filter(
            serde_json::json!({"in_list":{"argument":column("key", "long"),"values":[1, 3, 8_388_607]}}),
        )
    };
    let (_, without) = searched(false, true);
    let (_, with) = searched(true, true);
    for (bytes, most) in [(&without, u64::MAX), (&with, without.len() as u64 / 3)] {
        for filter in [absent(), list()] {
            let (found, read) = filtered("memory:///", bytes, |spec| FileSpec { filter, ..spec });
            assert_eq!(found.num_rows(), 0);
            assert!(read < most, "{read}");
        }
    }
}

#[test]
fn filters_of_all_selectivities_equal_brute_force() {
    let (batch, indexed) = searched(true, true);
    let (_, bare) = searched(false, false);
    let id = batch.column(0).as_primitive::<Int64Type>();
    let key = batch.column(1).as_primitive::<Int64Type>();
    let text = batch.column(2).as_string::<i32>();
    let less =
        |name: &str, value: i64| call("<", vec![column(name, "long"), literal(value, "long")]);
    let deleted = Arc::new(DeletionVector::from(
        RoaringBitmapArray::from_ascending(
            (0..200_000).filter(|n| n % 3 == 0 || (70_000..130_000).contains(n)),
        )
        .unwrap(),
    ));
    type Check<'a> = Box<dyn Fn(usize) -> bool + 'a>;
    let cases: Vec<(serde_json::Value, Check<'_>)> = vec![
        (less("key", 100), Box::new(|n| key.value(n) < 100)),
        (less("key", 200_000), Box::new(|n| key.value(n) < 200_000)),
        (
            less("key", 20_000_000),
            Box::new(|n| key.value(n) < 20_000_000),
        ),
        (less("key", i64::MAX), Box::new(|_| true)),
        (less("key", 0), Box::new(|_| false)),
        (less("id", 65_000), Box::new(|n| id.value(n) < 65_000)),
        (
            call(
                "and",
                vec![less("id", 150_000), call("not", vec![less("id", 149_000)])],
            ),
            Box::new(|n| (149_000..150_000).contains(&id.value(n))),
        ),
        (
            call("and", vec![less("id", 150_000), less("key", 1_000_000)]),
            Box::new(|n| id.value(n) < 150_000 && key.value(n) < 1_000_000),
        ),
        (
            call("isnull", vec![column("text", "string")]),
            Box::new(|n| text.is_null(n)),
        ),
        (
            call(
                "startswith",
                vec![column("text", "string"), literal("00", "string")],
            ),
            Box::new(|n| text.is_valid(n) && text.value(n).starts_with("00")),
        ),
        (
            call(
                "or",
                vec![
                    less("id", 10),
                    call("=", vec![column("p", "string"), literal("no", "string")]),
                ],
            ),
            Box::new(|n| id.value(n) < 10),
        ),
        (
            call("=", vec![column("p", "string"), literal("yes", "string")]),
            Box::new(|_| true),
        ),
    ];
    for (expr, check) in &cases {
        for deleted in [None, Some(&deleted)] {
            let wanted: Vec<usize> = (0..200_000)
                .filter(|n| check(*n) && deleted.is_none_or(|d| !d.positions().contains(*n as u64)))
                .collect();
            for (url, batch_rows, bytes) in [
                ("memory:///", 8192, &indexed),
                ("file:///", 32 << 10, &indexed),
                ("file:///", 1000, &bare),
            ] {
                for columns in [vec!["id", "key", "text"], vec!["text"], vec![]] {
                    let typed = |names: &[&str]| {
                        names
                            .iter()
                            .map(|name| {
                                field(name, if *name == "text" { "string" } else { "long" })
                            })
                            .collect::<Vec<_>>()
                    };
                    let others: Vec<&str> = ["id", "key", "text"]
                        .into_iter()
                        .filter(|name| !columns.contains(name))
                        .collect();
                    let (found, _) = filtered(url, bytes, |spec| FileSpec {
                        filter: filter(expr.clone()),
                        columns: typed(&columns),
                        filter_columns: typed(&others),
                        constants: vec![("p".to_owned(), Arc::new(StringArray::from(vec!["yes"])))],
                        deleted: deleted.cloned(),
                        row_index: true,
                        raw_columns: vec![("key".to_owned(), DataType::Long)],
                        batch_rows,
                        ..spec
                    });
                    let index: Vec<usize> = found
                        .column_by_name(ROW_INDEX)
                        .unwrap()
                        .as_primitive::<Int64Type>()
                        .values()
                        .iter()
                        .map(|n| *n as usize)
                        .collect();
                    assert_eq!(index, wanted, "{expr} {columns:?}");
                    for name in columns {
                        let expected = arrow_select::take::take(
                            batch.column_by_name(name).unwrap(),
                            &Int64Array::from_iter_values(wanted.iter().map(|n| *n as i64)),
                            None,
                        );
                        assert_eq!(
                            found.column_by_name(name).unwrap(),
                            &expected.unwrap(),
                            "{expr} {name}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn statistics_of_columns_that_are_converted_still_prune_rightly() {
    let bytes = message(
        "message m { required int32 a (INTEGER(8,true)); required int64 t (TIMESTAMP(MILLIS,true)); optional group s { optional int32 x; } }",
        vec![
            (Chunk::I32(vec![5, 7]), None, None),
            (Chunk::I64(vec![1000, 2000]), None, None),
            (Chunk::I32(vec![1]), Some(vec![2, 0]), None),
        ],
        &[],
    );
    let structure = r#"{"type":"struct","fields":[{"name":"x","type":"long","nullable":true,"metadata":{}},{"name":"gone","type":"long","nullable":true,"metadata":{}}]}"#;
    let columns = || {
        vec![
            field("a", "long"),
            field("t", "timestamp"),
            field("s", structure),
            field("missing", "string"),
        ]
    };
    let rows = |expr| {
        all(FileSpec {
            filter: filter(expr),
            filter_rows: true,
            ..spec(&bytes, columns())
        })
        .unwrap()
        .num_rows()
    };
    let equal = |name: &str, value: i64, data_type: &str| {
        call(
            "=",
            vec![column(name, data_type), literal(value, data_type)],
        )
    };
    assert_eq!(rows(equal("a", 7, "long")), 1);
    assert_eq!(rows(equal("a", 8, "long")), 0);
    assert_eq!(rows(equal("t", 2_000_000, "timestamp")), 1);
    assert_eq!(rows(equal("t", 2000, "timestamp")), 0);
    assert_eq!(rows(equal("s.x", 1, "long")), 1);
    assert_eq!(rows(equal("s.gone", 1, "long")), 0);
    assert_eq!(rows(call("isnull", vec![column("s.x", "long")])), 1);
    assert_eq!(rows(call("isnull", vec![column("missing", "string")])), 2);
    assert_eq!(
        rows(call("isnotnull", vec![column("missing", "string")])),
        0
    );
}

/// The calls of `get_ranges` that reading takes.
fn requests(bytes: &[u8], spec: impl FnOnce(FileSpec) -> FileSpec) -> usize {
    let store = Arc::new(Watched(
        crate::dv::tests::Memory {
            url: "memory:///",
            bytes: bytes::Bytes::copy_from_slice(bytes),
        },
        std::sync::Mutex::default(),
        Default::default(),
    ));
    let file = crate::store::StoreObject {
        store: store.clone(),
        path: "f.parquet".to_owned(),
        size: Some(bytes.len() as u64),
    };
    all(spec(FileSpec {
        filter_rows: true,
        ..FileSpec::new(
            file,
            vec![
                field("id", "long"),
                field("key", "long"),
                field("text", "string"),
            ],
        )
    }))
    .unwrap();
    store.2.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn requests_to_a_remote_store_are_few() {
    let (batch, large) = searched(false, true);
    let small = write(&batch.slice(0, 500), None);
    assert_eq!(
        requests(&small, |spec| spec),
        1,
        "a small file is in the bytes read for its footer"
    );
    assert_eq!(
        requests(&large, |spec| spec),
        1 + 4,
        "the footer and each row group"
    );
    let point = filter(call(
        "=",
        vec![column("id", "long"), literal(123_456, "long")],
    ));
    // Footer, the page index unless it came with the footer, the filter's page, the other columns'
    // pages.
    assert!(
        requests(&large, |spec| FileSpec {
            filter: point,
            ..spec
        }) <= 4
    );
}
