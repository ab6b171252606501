use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema};
use proptest::prelude::*;

use arrow_array::BooleanArray;

use super::may_match::outcomes;
use super::*;
use crate::error::Result;
use crate::expr::scalar::compare_doubles;
use crate::expr::{BoundExpr, Expr, Function};
use crate::expr::{CastMode, Scalar};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::DataType;

/// The files for all of whose rows the predicate is certainly true.
fn always_matches(predicate: &BoundExpr, facts: &dyn PruningStatistics) -> Result<BooleanArray> {
    let outcomes = outcomes(predicate, facts)?;
    Ok(BooleanArray::new(
        !&(&outcomes.may_be_false | &outcomes.may_be_null),
        None,
    ))
}

#[derive(Default)]
struct Known {
    rows: usize,
    min: BTreeMap<String, ArrayRef>,
    max: BTreeMap<String, ArrayRef>,
    nulls: BTreeMap<String, Int64Array>,
    records: Option<Int64Array>,
    partitions: BTreeMap<String, ArrayRef>,
}

impl PruningStatistics for Known {
    fn rows(&self) -> usize {
        self.rows
    }
    fn min(&self, path: &[String]) -> Option<ArrayRef> {
        self.min.get(&path.join(".")).cloned()
    }
    fn max(&self, path: &[String]) -> Option<ArrayRef> {
        self.max.get(&path.join(".")).cloned()
    }
    fn null_count(&self, path: &[String]) -> Option<Int64Array> {
        self.nulls.get(&path.join(".")).cloned()
    }
    fn num_records(&self) -> Option<Int64Array> {
        self.records.clone()
    }
    fn partition(&self, path: &[String]) -> Option<ArrayRef> {
        self.partitions.get(&path.join(".")).cloned()
    }
}

fn col(name: &str, data_type: DataType) -> Expr {
    Expr::Column {
        path: name.split('.').map(str::to_owned).collect(),
        data_type,
    }
}

fn lit(value: Scalar, data_type: DataType) -> Expr {
    Expr::Literal { value, data_type }
}

fn int(value: i64) -> Expr {
    lit(Scalar::Long(value), DataType::Integer)
}

fn text(value: &str) -> Expr {
    lit(Scalar::Text(value.into()), DataType::String)
}

fn call(function: Function, args: Vec<Expr>) -> Expr {
    Expr::call(function, args, DataType::Boolean).unwrap()
}

fn bound(expr: Expr) -> BoundExpr {
    BoundExpr {
        expr,
        ansi: true,
        zone: TimeZoneSpec::UTC,
    }
}

fn kept(expr: Expr, facts: &Known) -> Vec<bool> {
    may_match(&bound(expr), facts)
        .unwrap()
        .values()
        .iter()
        .collect()
}

fn sure(expr: Expr, facts: &Known) -> Vec<bool> {
    always_matches(&bound(expr), facts)
        .unwrap()
        .values()
        .iter()
        .collect()
}

/// Four files of column `i`: [1, 5], [5, 9], all null, nothing known.
fn four() -> Known {
    let mut known = Known {
        rows: 4,
        records: Some(Int64Array::from(vec![Some(10), Some(10), Some(10), None])),
        ..Known::default()
    };
    known.min.insert(
        "i".into(),
        Arc::new(Int32Array::from(vec![Some(1), Some(5), None, None])),
    );
    known.max.insert(
        "i".into(),
        Arc::new(Int32Array::from(vec![Some(5), Some(9), None, None])),
    );
    known.nulls.insert(
        "i".into(),
        Int64Array::from(vec![Some(0), Some(3), Some(10), None]),
    );
    known
}

fn i() -> Expr {
    col("i", DataType::Integer)
}

#[test]
fn files_outside_the_bounds_are_dropped_and_unknown_ones_kept() {
    use Function as F;
    let facts = four();
    for (function, value, expected) in [
        (F::Equal, 3, [true, false, false, true]),
        (F::Equal, 5, [true, true, false, true]),
        (F::Equal, 10, [false, false, false, true]),
        (F::Less, 1, [false, false, false, true]),
        (F::LessEqual, 1, [true, false, false, true]),
        (F::Greater, 5, [false, true, false, true]),
        (F::GreaterEqual, 9, [false, true, false, true]),
    ] {
        assert_eq!(
            kept(call(function, vec![i(), int(value)]), &facts),
            expected,
            "{function:?} {value}"
        );
        // The literal on the other side.
        let mirrored = match function {
            F::Less => F::Greater,
            F::LessEqual => F::GreaterEqual,
            F::Greater => F::Less,
            F::GreaterEqual => F::LessEqual,
            other => other,
        };
        assert_eq!(
            kept(call(mirrored, vec![int(value), i()]), &facts),
            expected,
            "{value} {function:?}"
        );
    }
}

#[test]
fn not_is_three_valued() {
    use Function as F;
    let facts = four();
    let not = |e: Expr| call(F::Not, vec![e]);
    assert_eq!(
        kept(not(call(F::Less, vec![i(), int(6)])), &facts),
        [false, true, false, true]
    );
    assert_eq!(
        kept(not(call(F::IsNull, vec![i()])), &facts),
        [true, true, false, true]
    );
    assert_eq!(
        kept(call(F::IsNull, vec![i()]), &facts),
        [false, true, true, true]
    );
    // not (i < 6 or i is null)
    let either = call(
        F::Or,
        vec![call(F::Less, vec![i(), int(6)]), call(F::IsNull, vec![i()])],
    );
    assert_eq!(kept(not(either), &facts), [false, true, false, true]);
    assert_eq!(
        kept(
            not(Expr::in_list(i(), vec![Scalar::Long(1), Scalar::Null]).unwrap()),
            &facts
        ),
        [false; 4]
    );
}

#[test]
fn certain_needs_all_rows_and_no_nulls() {
    use Function as F;
    let facts = four();
    assert_eq!(
        sure(call(F::Less, vec![i(), int(6)]), &facts),
        [true, false, false, false]
    );
    assert_eq!(
        sure(call(F::GreaterEqual, vec![i(), int(5)]), &facts),
        [false, false, false, false]
    );
    assert_eq!(
        sure(call(F::IsNull, vec![i()]), &facts),
        [false, false, true, false]
    );
    assert_eq!(
        sure(call(F::IsNotNull, vec![i()]), &facts),
        [true, false, false, false]
    );
    assert_eq!(
        sure(
            call(
                F::EqualNullSafe,
                vec![i(), lit(Scalar::Null, DataType::Integer)]
            ),
            &facts
        ),
        [false, false, true, false]
    );
}

#[test]
fn a_long_list_excludes_the_files_that_each_of_its_values_excludes() {
    let bounds = |shift: i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter(
            (0..300).map(|n| (n % 7 != 3).then_some(n * 40 + shift * (n % 5) * 9)),
        ))
    };
    let mut known = Known {
        rows: 300,
        ..Known::default()
    };
    known.min.insert("i".into(), bounds(0));
    known.max.insert("i".into(), bounds(1));
    let i = || col("i", DataType::Integer);
    // Out of order, with duplicates, in the gaps between the bounds and within them.
    let values: Vec<Scalar> = (0..2000)
        .map(|n| Scalar::Long(n * 7919 % 13_000 - 500))
        .collect();
    let list = kept(Expr::in_list(i(), values.clone()).unwrap(), &known);
    let each: Vec<Vec<bool>> = values
        .iter()
        .map(|value| {
            kept(
                call(
                    Function::Equal,
                    vec![i(), lit(value.clone(), DataType::Integer)],
                ),
                &known,
            )
        })
        .collect();
    let any: Vec<bool> = (0..300).map(|n| each.iter().any(|one| one[n])).collect();
    assert_eq!(list, any);
    assert!(list.contains(&true) && list.contains(&false));
}

#[test]
fn lists_are_searched_within_the_bounds() {
    let facts = four();
    let list = |values: &[i64]| {
        Expr::in_list(i(), values.iter().map(|v| Scalar::Long(*v)).collect()).unwrap()
    };
    assert_eq!(kept(list(&[0, 3, 20]), &facts), [true, false, false, true]);
    assert_eq!(
        kept(list(&[0, 10, 20]), &facts),
        [false, false, false, true]
    );
    let many: Vec<i64> = (100..200).chain([7]).collect();
    assert_eq!(kept(list(&many), &facts), [false, true, false, true]);
}

#[test]
fn partition_values_are_exact_whatever_the_function() {
    let mut facts = four();
    facts.partitions.insert(
        "p".into(),
        Arc::new(StringArray::from(vec![
            Some("ab"),
            Some("cd"),
            None,
            Some("ax"),
        ])),
    );
    let p = || col("p", DataType::String);
    assert_eq!(
        kept(call(Function::Contains, vec![p(), text("a")]), &facts),
        [true, false, false, true]
    );
    assert_eq!(
        kept(
            call(
                Function::Not,
                vec![call(Function::Contains, vec![p(), text("a")])]
            ),
            &facts
        ),
        [false, true, false, false]
    );
    assert_eq!(
        sure(call(Function::Contains, vec![p(), text("a")]), &facts),
        [true, false, false, true]
    );
    // An error of some partition value makes every outcome possible.
    let cast = Expr::cast(p(), DataType::Integer, CastMode::Ansi).unwrap();
    assert_eq!(
        kept(call(Function::Equal, vec![cast, int(1)]), &facts),
        [true; 4]
    );
    let mixed = call(
        Function::And,
        vec![
            call(Function::Equal, vec![p(), text("ab")]),
            call(Function::Less, vec![i(), int(3)]),
        ],
    );
    assert_eq!(kept(mixed.clone(), &facts), [true, false, false, false]);
    let (of_partitions, rest) = partition_only(&bound(mixed), &["p".to_owned()]);
    assert_eq!(of_partitions.unwrap().to_string(), "p = 'ab'");
    assert_eq!(rest.unwrap().to_string(), "i < 3");
}

#[test]
fn nan_hides_behind_a_maximum() {
    let mut facts = Known {
        rows: 2,
        ..Known::default()
    };
    facts.min.insert(
        "d".into(),
        Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
    );
    facts.max.insert(
        "d".into(),
        Arc::new(Float64Array::from(vec![2.0, f64::NAN])),
    );
    let d = || col("d", DataType::Double);
    let number = |v: f64| lit(Scalar::Double(v), DataType::Double);
    assert_eq!(
        kept(call(Function::Greater, vec![d(), number(5.0)]), &facts),
        [true, true]
    );
    assert_eq!(
        kept(call(Function::Equal, vec![d(), number(5.0)]), &facts),
        [false, true]
    );
    assert_eq!(
        kept(call(Function::Equal, vec![d(), number(f64::NAN)]), &facts),
        [true, true]
    );
    assert_eq!(
        kept(call(Function::Less, vec![d(), number(1.0)]), &facts),
        [false, true]
    );
    assert_eq!(
        kept(
            call(
                Function::Not,
                vec![call(Function::LessEqual, vec![d(), number(2.0)])]
            ),
            &facts
        ),
        [true, true]
    );
}

#[test]
fn cut_statistics_bound_what_was_cut() {
    let long = "x".repeat(32);
    let mut facts = Known {
        rows: 3,
        ..Known::default()
    };
    facts.min.insert(
        "s".into(),
        Arc::new(StringArray::from(vec![long.as_str(), "b", "b"])),
    );
    facts.max.insert(
        "s".into(),
        Arc::new(StringArray::from(vec![
            long.clone(),
            format!("{long}\u{fffd}"),
            "c".to_owned(),
        ])),
    );
    facts.min.insert(
        "t".into(),
        Arc::new(TimestampMicrosecondArray::from(vec![1_000_000, 0, 0]).with_timezone("UTC")),
    );
    facts.max.insert(
        "t".into(),
        Arc::new(TimestampMicrosecondArray::from(vec![1_500_000, 0, 0]).with_timezone("UTC")),
    );
    let s = || col("s", DataType::String);
    assert_eq!(
        kept(
            call(Function::Equal, vec![s(), text(&format!("{long}yz"))]),
            &facts
        ),
        [true, true, false]
    );
    assert_eq!(
        kept(call(Function::Equal, vec![s(), text("y")]), &facts),
        [false, false, false]
    );
    assert_eq!(
        kept(call(Function::Greater, vec![s(), text("c")]), &facts),
        [true, true, false]
    );
    assert_eq!(
        kept(call(Function::StartsWith, vec![s(), text("xx")]), &facts),
        [true, true, false]
    );
    assert_eq!(
        kept(call(Function::Like, vec![s(), text("c%d")]), &facts),
        [false, true, true]
    );
    assert_eq!(
        kept(call(Function::Like, vec![s(), text("y%")]), &facts),
        [false, false, false]
    );
    // A truncated minimum that equals a truncated maximum proves nothing.
    assert_eq!(
        sure(call(Function::Equal, vec![s(), text(&long)]), &facts),
        [false, false, false]
    );
    let t = || col("t", DataType::Timestamp);
    let micros = |v: i64| lit(Scalar::Long(v), DataType::Timestamp);
    assert!(kept(call(Function::Equal, vec![t(), micros(1_500_999)]), &facts)[0]);
    assert!(!kept(call(Function::Equal, vec![t(), micros(1_502_000)]), &facts)[0]);
    assert!(!kept(call(Function::Less, vec![t(), micros(1_000_000)]), &facts)[0]);
}

#[test]
fn casts_that_keep_the_order_keep_the_bounds() {
    let mut facts = four();
    facts.min.insert(
        "t".into(),
        Arc::new(
            TimestampMicrosecondArray::from(vec![0, 90_000_000_000, 0, 0]).with_timezone("UTC"),
        ),
    );
    facts.max.insert(
        "t".into(),
        Arc::new(
            TimestampMicrosecondArray::from(vec![1_000_000, 91_000_000_000, 0, 0])
                .with_timezone("UTC"),
        ),
    );
    let long = Expr::cast(i(), DataType::Long, CastMode::Ansi).unwrap();
    assert_eq!(
        kept(
            call(
                Function::Greater,
                vec![long, lit(Scalar::Long(6), DataType::Long)]
            ),
            &facts
        ),
        [false, true, false, true]
    );
    let day = |d: i64| lit(Scalar::Long(d), DataType::Date);
    let date = || {
        Expr::cast(
            col("t", DataType::Timestamp),
            DataType::Date,
            CastMode::Ansi,
        )
        .unwrap()
    };
    assert_eq!(
        kept(call(Function::Equal, vec![date(), day(0)]), &facts)[..2],
        [true, false]
    );
    assert_eq!(
        kept(call(Function::Equal, vec![date(), day(1)]), &facts)[..2],
        [false, true]
    );
    let year = Expr::call(Function::Year, vec![date()], DataType::Integer);
    if let Ok(year) = year {
        assert_eq!(
            kept(call(Function::Equal, vec![year, int(1971)]), &facts)[..2],
            [false, false]
        );
    }
    // Strings have another order than the numbers that they represent.
    let shown = Expr::cast(i(), DataType::String, CastMode::Ansi).unwrap();
    assert_eq!(
        kept(call(Function::Equal, vec![shown, text("7")]), &facts),
        [true, true, false, true]
    );
}

#[test]
fn functions_that_keep_the_order_keep_the_bounds() {
    let mut facts = four();
    facts.min.insert(
        "t".into(),
        Arc::new(
            TimestampMicrosecondArray::from(vec![0, 90_000_000_000, 0, 0]).with_timezone("UTC"),
        ),
    );
    facts.max.insert(
        "t".into(),
        Arc::new(
            TimestampMicrosecondArray::from(vec![1_000_000, 91_000_000_000, 0, 0])
                .with_timezone("UTC"),
        ),
    );
    let twice = Expr::call(Function::Multiply, vec![i(), int(2)], DataType::Integer).unwrap();
    assert_eq!(
        kept(call(Function::Equal, vec![twice, int(14)]), &facts),
        [false, true, false, true]
    );
    let moved = Expr::call(Function::Subtract, vec![i(), int(1)], DataType::Integer).unwrap();
    assert_eq!(
        kept(call(Function::Less, vec![moved, int(1)]), &facts),
        [true, false, false, true]
    );
    let mirrored = Expr::call(Function::Subtract, vec![int(1), i()], DataType::Integer).unwrap();
    assert_eq!(
        kept(call(Function::Less, vec![mirrored, int(-100)]), &facts),
        [true, true, false, true]
    );
    let day = |unit: &str| {
        Expr::call(
            Function::DateTrunc,
            vec![text(unit), col("t", DataType::Timestamp)],
            DataType::Timestamp,
        )
        .unwrap()
    };
    let midnight = lit(Scalar::Long(86_400_000_000), DataType::Timestamp);
    assert_eq!(
        kept(
            call(Function::Equal, vec![day("DAY"), midnight.clone()]),
            &facts
        )[..2],
        [false, true]
    );
    assert_eq!(
        kept(call(Function::IsNull, vec![day("bogus")]), &facts)[..2],
        [true, true]
    );
    // Without ANSI errors sums wrap around.
    let sum = Expr::call(Function::Add, vec![i(), int(1)], DataType::Integer).unwrap();
    let wrapping = BoundExpr {
        expr: call(Function::Less, vec![sum, int(0)]),
        ansi: false,
        zone: TimeZoneSpec::UTC,
    };
    assert_eq!(
        may_match(&wrapping, &facts)
            .unwrap()
            .values()
            .iter()
            .collect::<Vec<_>>(),
        [true, true, false, true]
    );
}

#[test]
fn nested_fields_are_found_by_their_path() {
    let mut facts = Known {
        rows: 2,
        ..Known::default()
    };
    facts
        .min
        .insert("st.x".into(), Arc::new(Int32Array::from(vec![1, 7])));
    facts
        .max
        .insert("st.x".into(), Arc::new(Int32Array::from(vec![2, 8])));
    assert_eq!(
        kept(
            call(
                Function::Equal,
                vec![col("st.x", DataType::Integer), int(7)]
            ),
            &facts
        ),
        [false, true]
    );
}

#[test]
fn facts_of_another_type_or_length_are_ignored() {
    let mut facts = Known {
        rows: 2,
        ..Known::default()
    };
    facts
        .min
        .insert("i".into(), Arc::new(StringArray::from(vec!["a", "b"])));
    facts
        .max
        .insert("i".into(), Arc::new(Int32Array::from(vec![1])));
    facts.nulls.insert("i".into(), Int64Array::from(vec![1]));
    assert_eq!(
        kept(call(Function::Equal, vec![i(), int(7)]), &facts),
        [true, true]
    );
}

/// A row of the property tests.
type Row = (Option<i32>, Option<f64>, Option<String>, Option<i64>);

const LONG: &str = "pppppppppppppppppppppppppppppppp";

fn strings() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        "[a-c]{0,2}",
        Just(LONG.to_owned()),
        Just(format!("{LONG}q")),
        Just(format!("{LONG}\u{1f600}")),
        Just("\u{1f600}".to_owned())
    ]
}

fn row() -> impl Strategy<Value = Row> + Clone {
    let double = prop_oneof![
        Just(f64::NAN),
        Just(-0.0),
        Just(0.0),
        Just(f64::INFINITY),
        (-3..4).prop_map(f64::from)
    ];
    let string = strings();
    let micros = prop_oneof![
        -3_000_i64..3_000,
        1_710_054_000_000_000_i64 - 5_000_000..1_710_054_000_000_000 + 5_000_000,
        1_730_610_000_000_000_i64..1_730_617_200_000_000
    ];
    (
        prop::option::weighted(0.8, -3..4),
        prop::option::weighted(0.8, double),
        prop::option::weighted(0.8, string),
        prop::option::weighted(0.8, micros),
    )
}

/// A file: its rows, the value of its partition column, and the damage to its statistics.
type Made = (Vec<Row>, Option<i32>, u8);

fn batch(rows: &[Row], partition: Option<i32>) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "i",
            Arc::new(rows.iter().map(|r| r.0).collect::<Int32Array>()),
        ),
        (
            "d",
            Arc::new(rows.iter().map(|r| r.1).collect::<Float64Array>()),
        ),
        (
            "s",
            Arc::new(rows.iter().map(|r| r.2.clone()).collect::<StringArray>()),
        ),
        (
            "t",
            Arc::new(
                rows.iter()
                    .map(|r| r.3)
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
        ),
        (
            "p",
            Arc::new(rows.iter().map(|_| partition).collect::<Int32Array>()),
        ),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns.into_iter().map(|(_, array)| array).collect(),
    )
    .unwrap()
}

fn facts(files: &[Made]) -> Known {
    let mut known = Known {
        rows: files.len(),
        ..Known::default()
    };
    let spoilt = |n: usize, bit: u8| files[n].2 & (1 << bit) != 0;
    let wide = |n: usize| spoilt(n, 0);
    let column = |pick: &dyn Fn(&Row) -> bool| -> Int64Array {
        files
            .iter()
            .enumerate()
            .map(|(n, f)| (!spoilt(n, 1)).then(|| f.0.iter().filter(|r| pick(r)).count() as i64))
            .collect()
    };
    known.nulls.insert("i".into(), column(&|r| r.0.is_none()));
    known.nulls.insert("d".into(), column(&|r| r.1.is_none()));
    known.nulls.insert("s".into(), column(&|r| r.2.is_none()));
    known.nulls.insert("t".into(), column(&|r| r.3.is_none()));
    known.records = Some(
        files
            .iter()
            .enumerate()
            .map(|(n, f)| (!spoilt(n, 2)).then_some(f.0.len() as i64))
            .collect(),
    );
    let bounds = |lowest: bool| {
        let has = |n: usize| !spoilt(n, if lowest { 3 } else { 4 });
        let ints: Int32Array = (0..files.len())
            .map(|n| {
                let values = files[n].0.iter().filter_map(|r| r.0);
                let value = if lowest { values.min() } else { values.max() };
                value.filter(|_| has(n)).map(|v| {
                    v + if !wide(n) {
                        0
                    } else if lowest {
                        -1
                    } else {
                        1
                    }
                })
            })
            .collect();
        let doubles: Float64Array = (0..files.len())
            .map(|n| {
                let values = files[n]
                    .0
                    .iter()
                    .filter_map(|r| r.1)
                    .filter(|v| !v.is_nan());
                let value = if lowest {
                    values.min_by(|a, b| compare_doubles(*a, *b))
                } else {
                    values.max_by(|a, b| compare_doubles(*a, *b))
                };
                value.filter(|_| has(n))
            })
            .collect();
        let strings: StringArray = (0..files.len())
            .map(|n| {
                let values = files[n].0.iter().filter_map(|r| r.2.clone());
                let value = if lowest { values.min() } else { values.max() };
                value.filter(|_| has(n)).map(|v| {
                    let cut: String = v.chars().take(32).collect();
                    if cut == v || lowest || spoilt(n, 5) {
                        cut
                    } else {
                        cut + if spoilt(n, 6) {
                            "\u{fffd}"
                        } else {
                            "\u{10ffff}"
                        }
                    }
                })
            })
            .collect();
        let times: TimestampMicrosecondArray = (0..files.len())
            .map(|n| {
                let values = files[n].0.iter().filter_map(|r| r.3);
                let value = if lowest { values.min() } else { values.max() };
                value.filter(|_| has(n)).map(|v| v.div_euclid(1000) * 1000)
            })
            .collect();
        let out: Vec<(String, ArrayRef)> = vec![
            ("i".into(), Arc::new(ints)),
            ("d".into(), Arc::new(doubles)),
            ("s".into(), Arc::new(strings)),
            ("t".into(), Arc::new(times.with_timezone("UTC"))),
        ];
        out.into_iter().collect::<BTreeMap<_, _>>()
    };
    known.min = bounds(true);
    known.max = bounds(false);
    known.partitions.insert(
        "p".into(),
        Arc::new(files.iter().map(|f| f.1).collect::<Int32Array>()),
    );
    known
}

fn comparison() -> impl Strategy<Value = Function> {
    use Function as F;
    prop_oneof![
        Just(F::Equal),
        Just(F::EqualNullSafe),
        Just(F::Less),
        Just(F::LessEqual),
        Just(F::Greater),
        Just(F::GreaterEqual)
    ]
}

fn integers() -> impl Strategy<Value = Option<i64>> + Clone {
    prop::option::weighted(0.9, -4_i64..5)
}

fn int_literal(value: Option<i64>) -> Expr {
    lit(value.map_or(Scalar::Null, Scalar::Long), DataType::Integer)
}

fn micros() -> impl Strategy<Value = i64> {
    row().prop_map(|r| r.3.unwrap_or(0))
}

fn date(e: Expr) -> Expr {
    Expr::cast(e, DataType::Date, CastMode::Ansi).unwrap()
}

fn t() -> Expr {
    col("t", DataType::Timestamp)
}

/// Comparisons of results of functions.
fn computed() -> impl Strategy<Value = Expr> {
    prop_oneof![
        (
            comparison(),
            integers().prop_map(int_literal),
            -3..4_i64,
            prop_oneof![
                Just(Function::Add),
                Just(Function::Subtract),
                Just(Function::Multiply)
            ],
            any::<bool>()
        )
            .prop_map(|(f, v, n, op, swap)| {
                let sides = if swap {
                    vec![int(n), i()]
                } else {
                    vec![i(), int(n)]
                };
                call(
                    f,
                    vec![Expr::call(op, sides, DataType::Integer).unwrap(), v],
                )
            }),
        (
            comparison(),
            micros(),
            prop_oneof![Just("DAY"), Just("HOUR"), Just("x")]
        )
            .prop_map(move |(f, v, unit)| {
                let cut = Expr::call(
                    Function::DateTrunc,
                    vec![text(unit), t()],
                    DataType::Timestamp,
                )
                .unwrap();
                call(
                    f,
                    vec![
                        cut,
                        lit(
                            Scalar::Long(v.div_euclid(3_600_000_000) * 3_600_000_000),
                            DataType::Timestamp,
                        ),
                    ],
                )
            }),
        (comparison(), 1968..2026_i64).prop_map(move |(f, y)| {
            call(
                f,
                vec![
                    Expr::call(Function::Year, vec![date(t())], DataType::Integer).unwrap(),
                    int(y),
                ],
            )
        }),
    ]
}

/// Comparisons of columns.
fn compared() -> impl Strategy<Value = Expr> {
    let double = prop_oneof![
        Just(f64::NAN),
        Just(0.0),
        Just(-0.0),
        (-4..5).prop_map(f64::from)
    ];
    let string = strings();
    let wider = |e: Expr| Expr::cast(e, DataType::Double, CastMode::Ansi).unwrap();
    let ntz = |e: Expr| Expr::cast(e, DataType::TimestampNtz, CastMode::Ansi).unwrap();
    prop_oneof![
        (
            comparison(),
            prop_oneof![Just("i"), Just("p")],
            integers().prop_map(int_literal)
        )
            .prop_map(|(f, c, v)| call(f, vec![col(c, DataType::Integer), v])),
        (comparison(), integers().prop_map(int_literal)).prop_map(|(f, v)| call(f, vec![v, i()])),
        comparison().prop_map(|f| call(f, vec![i(), col("p", DataType::Integer)])),
        (comparison(), double.clone()).prop_map(|(f, v)| call(
            f,
            vec![
                col("d", DataType::Double),
                lit(Scalar::Double(v), DataType::Double)
            ]
        )),
        (comparison(), double).prop_map(move |(f, v)| call(
            f,
            vec![wider(i()), lit(Scalar::Double(v), DataType::Double)]
        )),
        comparison().prop_map(move |f| call(f, vec![wider(i()), col("d", DataType::Double)])),
        (comparison(), string.clone())
            .prop_map(|(f, v)| call(f, vec![col("s", DataType::String), text(&v)])),
        (
            prop_oneof![Just("%"), Just("_"), Just("%a")],
            string.clone()
        )
            .prop_map(|(tail, v)| call(
                Function::Like,
                vec![col("s", DataType::String), text(&(v + tail))]
            )),
        string.clone().prop_map(|v| call(
            Function::StartsWith,
            vec![col("s", DataType::String), text(&v)]
        )),
        string.prop_map(|v| call(
            Function::Contains,
            vec![col("s", DataType::String), text(&v)]
        )),
        (comparison(), micros())
            .prop_map(move |(f, v)| call(f, vec![t(), lit(Scalar::Long(v), DataType::Timestamp)])),
        (comparison(), micros()).prop_map(move |(f, v)| call(
            f,
            vec![
                date(t()),
                lit(Scalar::Long(v.div_euclid(86_400_000_000)), DataType::Date)
            ]
        )),
        (comparison(), micros()).prop_map(move |(f, v)| call(
            f,
            vec![
                ntz(t()),
                lit(Scalar::Long(v - 4 * 3_600_000_000), DataType::TimestampNtz)
            ]
        )),
        prop::collection::vec(integers(), 1..12).prop_map(|v| Expr::in_list(
            i(),
            v.into_iter()
                .map(|v| v.map_or(Scalar::Null, Scalar::Long))
                .collect()
        )
        .unwrap()),
        prop::collection::vec(row().prop_map(|r| r.2), 1..4).prop_map(|v| Expr::in_list(
            col("s", DataType::String),
            v.into_iter()
                .map(|v| v.map_or(Scalar::Null, |v| Scalar::Text(v.into())))
                .collect()
        )
        .unwrap()),
        prop_oneof![Just("i"), Just("p")]
            .prop_map(|c| call(Function::IsNull, vec![col(c, DataType::Integer)])),
        Just(call(Function::IsNotNull, vec![col("s", DataType::String)])),
        Just(call(Function::IsNan, vec![col("d", DataType::Double)])),
    ]
}

fn leaf() -> impl Strategy<Value = Expr> {
    // By their numbers of kinds, so that all kinds are equally frequent.
    prop_oneof![3 => computed(), 18 => compared()]
}

fn predicate() -> impl Strategy<Value = Expr> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|args| call(Function::And, args)),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|args| call(Function::Or, args)),
            inner.prop_map(|arg| call(Function::Not, vec![arg])),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_file_with_a_matching_row_is_dropped_and_certain_files_match_in_every_row(
        files in prop::collection::vec((prop::collection::vec(row(), 1..5), prop::option::weighted(0.8, -3..4), 0..128_u8), 1..6),
        expr in predicate(),
        zone in prop_oneof![Just("UTC"), Just("America/New_York"), Just("+05:30")],
    ) {
        let bound = BoundExpr { expr, ansi: true, zone: TimeZoneSpec::parse(zone).unwrap() };
        let known = facts(&files);
        let (kept, sure) = (may_match(&bound, &known).unwrap(), always_matches(&bound, &known).unwrap());
        for (n, file) in files.iter().enumerate() {
            let matching = bound.filter_mask(&batch(&file.0, file.1)).unwrap().true_count();
            prop_assert!(kept.value(n) || matching == 0, "{bound} drops file {n} with {matching} matching rows");
            prop_assert!(!sure.value(n) || matching == file.0.len(), "{bound} is not true for all of file {n}");
        }
    }
}

#[test]
fn dates_are_bounded_as_numbers_are() {
    let mut facts = Known {
        rows: 2,
        ..Known::default()
    };
    facts
        .min
        .insert("a".into(), Arc::new(Date32Array::from(vec![0, 100])));
    facts
        .max
        .insert("a".into(), Arc::new(Date32Array::from(vec![50, 200])));
    let after = call(
        Function::Greater,
        vec![
            col("a", DataType::Date),
            lit(Scalar::Long(60), DataType::Date),
        ],
    );
    assert_eq!(kept(after, &facts), [false, true]);
}
