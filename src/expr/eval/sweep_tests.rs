//! Every function and every cast over edge values of every type that it accepts: no panic, the
//! declared type, and the same value whether a row is evaluated alone, in a batch, or from
//! constants.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::Field;

use crate::expr::function::Function;
use crate::expr::scalar::Scalar;
use crate::expr::tree::{BoundExpr, CastMode, Expr};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StringLayout};

fn parse(json: &str) -> DataType {
    DataType::from_json(&serde_json::from_str(json).unwrap()).unwrap()
}

/// One column of edge values for each type, named by its place in the list.
fn columns() -> Vec<(DataType, ArrayRef)> {
    let mut found = numbers();
    found.extend(others());
    found
}

/// Edge values of `integer`.
fn ints() -> Int32Array {
    Int32Array::from(vec![
        Some(0),
        Some(1),
        Some(-1),
        Some(7),
        Some(i32::MAX),
        Some(i32::MIN),
        None,
    ])
}

fn numbers() -> Vec<(DataType, ArrayRef)> {
    vec![
        (
            DataType::Byte,
            Arc::new(Int8Array::from(vec![
                Some(0),
                Some(1),
                Some(-1),
                Some(5),
                Some(i8::MAX),
                Some(i8::MIN),
                None,
            ])),
        ),
        (
            DataType::Short,
            Arc::new(Int16Array::from(vec![
                Some(0),
                Some(1),
                Some(-1),
                Some(5),
                Some(i16::MAX),
                Some(i16::MIN),
                None,
            ])),
        ),
        (DataType::Integer, Arc::new(ints())),
        (
            DataType::Long,
            Arc::new(Int64Array::from(vec![
                Some(0),
                Some(1),
                Some(-1),
                Some(9),
                Some(i64::MAX),
                Some(i64::MIN),
                None,
            ])),
        ),
        (
            DataType::Float,
            Arc::new(Float32Array::from(vec![
                Some(-0.0),
                Some(1.5),
                Some(f32::NAN),
                Some(f32::INFINITY),
                Some(f32::MAX),
                Some(1e-45),
                None,
            ])),
        ),
        (
            DataType::Double,
            Arc::new(Float64Array::from(vec![
                Some(-0.0),
                Some(2.5),
                Some(f64::NAN),
                Some(f64::NEG_INFINITY),
                Some(f64::MAX),
                Some(5e-324),
                None,
            ])),
        ),
        (
            DataType::Decimal(10, 2),
            Arc::new(
                Decimal128Array::from(vec![
                    Some(0),
                    Some(150),
                    Some(-1),
                    Some(9_999_999_999),
                    Some(-9_999_999_999),
                    Some(333),
                    None,
                ])
                .with_precision_and_scale(10, 2)
                .unwrap(),
            ),
        ),
        (
            DataType::Decimal(38, 18),
            Arc::new(
                // The last two are outside the type, as a hostile file may have them.
                Decimal128Array::from(vec![
                    Some(0),
                    Some(1),
                    Some(10_i128.pow(38) - 1),
                    Some(1 - 10_i128.pow(38)),
                    Some(i128::MAX),
                    Some(i128::MIN),
                    None,
                ])
                .with_precision_and_scale(38, 18)
                .unwrap(),
            ),
        ),
    ]
}

fn others() -> Vec<(DataType, ArrayRef)> {
    let micros = vec![
        Some(0),
        Some(-1),
        Some(1_710_055_800_000_000),
        Some(253_402_300_799_999_999),
        Some(i64::MAX),
        Some(i64::MIN),
        None,
    ];
    let texts = vec![
        Some(""),
        Some("a b"),
        Some("12"),
        Some("2024-03-10 02:30:00"),
        Some("ß日"),
        Some("%_\\"),
        None,
    ];
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(vec![
        Some(vec![]),
        Some(vec![Some(1)]),
        Some(vec![None, Some(7)]),
        None,
        Some(vec![Some(i32::MAX); 3]),
        Some(vec![None]),
        Some(vec![Some(0), Some(1)]),
    ]);
    let list_type = parse(r#"{"type":"array","elementType":"integer","containsNull":true}"#);
    let lists = arrow_cast::cast(&lists, &list_type.to_arrow(StringLayout::Plain)).unwrap();
    let parts = StructArray::new(
        vec![Field::new("x", arrow_schema::DataType::Int32, true)].into(),
        vec![Arc::new(ints())],
        Some(vec![true, true, false, true, true, true, true].into()),
    );
    vec![
        (
            DataType::Boolean,
            Arc::new(BooleanArray::from(vec![
                Some(true),
                Some(false),
                None,
                Some(true),
                Some(false),
                None,
                Some(true),
            ])),
        ),
        (
            DataType::String,
            Arc::new(StringViewArray::from(texts.clone())),
        ),
        (
            DataType::Binary,
            Arc::new(BinaryArray::from(
                texts
                    .iter()
                    .map(|t| t.map(str::as_bytes))
                    .collect::<Vec<_>>(),
            )),
        ),
        (
            DataType::Date,
            Arc::new(Date32Array::from(vec![
                Some(0),
                Some(-1),
                Some(19_792),
                Some(2_932_896),
                Some(i32::MAX),
                Some(i32::MIN),
                None,
            ])),
        ),
        (
            DataType::Timestamp,
            Arc::new(TimestampMicrosecondArray::from(micros.clone()).with_timezone("UTC")),
        ),
        (
            DataType::TimestampNtz,
            Arc::new(TimestampMicrosecondArray::from(micros)),
        ),
        (DataType::Void, Arc::new(arrow_array::NullArray::new(7))),
        (list_type, lists),
        (
            parse(
                r#"{"type":"struct","fields":[{"name":"x","type":"integer","nullable":true,"metadata":{}}]}"#,
            ),
            Arc::new(parts),
        ),
    ]
}

fn batch(columns: &[(DataType, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns
            .iter()
            .enumerate()
            .map(|(n, (_, array))| (format!("c{n}"), array.clone(), true)),
    )
    .unwrap()
}

fn column(n: usize, columns: &[(DataType, ArrayRef)]) -> Expr {
    Expr::Column {
        path: vec![format!("c{n}")],
        data_type: columns[n].0.clone(),
    }
}

/// Evaluates in both ANSI modes and two zones and compares batch and rows.
fn check(expr: &Expr, batch: &RecordBatch) {
    for (ansi, zone) in [(true, "America/New_York"), (false, "UTC")] {
        let bound = BoundExpr {
            expr: expr.clone(),
            ansi,
            zone: TimeZoneSpec::parse(zone).unwrap(),
        };
        let whole = bound.evaluate(batch);
        let rows: Vec<_> = (0..batch.num_rows())
            .map(|row| bound.evaluate(&batch.slice(row, 1)))
            .collect();
        match whole {
            Ok(array) => {
                assert_eq!(array.len(), batch.num_rows(), "{bound}");
                assert_eq!(
                    *array.data_type(),
                    bound.data_type().to_arrow(StringLayout::Plain),
                    "{bound}"
                );
                for (n, row) in rows.into_iter().enumerate() {
                    let row = row.unwrap_or_else(|e| panic!("{bound}: row {n} fails alone: {e}"));
                    assert_eq!(
                        format!("{:?}", array.slice(n, 1)),
                        format!("{row:?}"),
                        "{bound}, row {n}"
                    );
                }
            }
            Err(error) => assert!(
                rows.iter().any(Result::is_err),
                "{bound} fails only as a batch: {error}"
            ),
        }
    }
}

#[test]
fn every_function_takes_edge_values_of_every_type_that_it_accepts() {
    let columns = columns();
    let batch = batch(&columns);
    let types: Vec<&DataType> = columns.iter().map(|(t, _)| t).collect();
    let count = types.len();
    let mut tried = 0;
    for function in Function::ALL {
        let mut shapes: Vec<Vec<usize>> = (0..count).map(|a| vec![a]).collect();
        shapes.extend((0..count * count).map(|n| vec![n / count, n % count]));
        shapes.extend(
            (0..count * count * count)
                .map(|n| vec![n / count / count, n / count % count, n % count]),
        );
        for shape in shapes {
            let given: Vec<&DataType> = shape.iter().map(|n| types[*n]).collect();
            for result in &types {
                if !function.accepts(&given, result) {
                    continue;
                }
                let args: Vec<Expr> = shape.iter().map(|n| column(*n, &columns)).collect();
                // Patterns and names must be literals, so those columns are replaced.
                let literal = |text: &str| Expr::Literal {
                    value: Scalar::Text(text.into()),
                    data_type: DataType::String,
                };
                let mut args = args;
                let text = match function {
                    Function::RLike => Some("a|[0-9]$"),
                    Function::DateFormat | Function::FromUnixtime => {
                        Some("yyyy-MM-dd'T'HH:mm:ss.SSS")
                    }
                    Function::GetField => Some("x"),
                    Function::Like => Some("!"),
                    _ => None,
                };
                if let (Some(text), Some(last)) = (text, args.last_mut())
                    && (shape.len() == 3 || *function != Function::Like)
                    && (shape.len() > 1)
                {
                    *last = literal(text);
                }
                if matches!(function, Function::Round | Function::BankersRound) && args.len() > 1 {
                    args[1] = Expr::Literal {
                        value: Scalar::Long(-1),
                        data_type: DataType::Integer,
                    };
                }
                if matches!(
                    function,
                    Function::Repeat | Function::LeftPad | Function::RightPad
                ) {
                    // A small length, because these could produce two billion characters.
                    args[1] = Expr::Literal {
                        value: Scalar::Long(5),
                        data_type: DataType::Integer,
                    };
                }
                if let Ok(expr) = Expr::call(*function, args, (*result).clone()) {
                    tried += 1;
                    check(&expr, &batch);
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn every_cast_takes_edge_values() {
    let columns = columns();
    let batch = batch(&columns);
    let targets = [
        DataType::Decimal(38, 0),
        DataType::Decimal(38, 38),
        DataType::Decimal(5, 2),
        DataType::Decimal(1, 0),
    ];
    for n in 0..columns.len() {
        for to in columns.iter().map(|(t, _)| t).chain(&targets) {
            for mode in [CastMode::Ansi, CastMode::Legacy, CastMode::Try] {
                if let Ok(expr) = Expr::cast(column(n, &columns), to.clone(), mode) {
                    check(&expr, &batch);
                }
            }
        }
    }
}

#[test]
fn constants_have_the_value_that_columns_have() {
    let seven = || Expr::Literal {
        value: Scalar::Long(7),
        data_type: DataType::Integer,
    };
    let columns = columns();
    let batch = batch(&columns);
    for function in [
        Function::Add,
        Function::Subtract,
        Function::Multiply,
        Function::Remainder,
        Function::PositiveModulo,
        Function::BitXor,
    ] {
        let sides = [
            vec![column(2, &columns), seven()],
            vec![seven(), column(2, &columns)],
            vec![seven(), seven()],
        ];
        for args in sides {
            check(
                &Expr::call(function, args, DataType::Integer).unwrap(),
                &batch,
            );
        }
    }
    let constant = BoundExpr {
        expr: Expr::call(Function::Add, vec![seven(), seven()], DataType::Integer).unwrap(),
        ansi: true,
        zone: TimeZoneSpec::UTC,
    };
    let sums = constant.evaluate(&batch).unwrap();
    assert_eq!(
        sums.as_primitive::<arrow_array::types::Int32Type>()
            .values()
            .to_vec(),
        vec![14; 7]
    );
}
