use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow_schema::{Field, Schema};
use proptest::prelude::*;

use crate::error::Error;
use crate::expr::tree::BoundExpr;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
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

fn bind(expr: &str) -> BoundExpr {
    BoundExpr::from_json(&format!(
        r#"{{"expr": {expr}, "ansi": true, "zone": "UTC"}}"#
    ))
    .unwrap()
}

fn sample() -> RecordBatch {
    batch(vec![
        (
            "i",
            Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(4)])),
        ),
        (
            "s",
            Arc::new(StringViewArray::from(vec![
                Some("1"),
                Some("x"),
                Some("y"),
                None,
            ])),
        ),
        (
            "d",
            Arc::new(Float64Array::from(vec![
                Some(-0.0),
                Some(f64::NAN),
                Some(-f64::NAN),
                None,
            ])),
        ),
    ])
}

const I: &str = r#"{"column":{"path":["i"],"data_type":"integer"}}"#;
const S: &str = r#"{"column":{"path":["s"],"data_type":"string"}}"#;
const D: &str = r#"{"column":{"path":["d"],"data_type":"double"}}"#;

fn lit(value: &str, data_type: &str) -> String {
    format!(r#"{{"literal":{{"value":{value},"data_type":"{data_type}"}}}}"#)
}

fn call(function: &str, args: &[&str], data_type: &str) -> String {
    format!(
        r#"{{"call":{{"function":"{function}","arguments":[{}],"data_type":"{data_type}"}}}}"#,
        args.join(",")
    )
}

fn cast(arg: &str, to: &str) -> String {
    format!(r#"{{"cast":{{"argument":{arg},"data_type":"{to}","mode":"ansi"}}}}"#)
}

fn truths(bound: &BoundExpr, batch: &RecordBatch) -> Vec<Option<bool>> {
    bound.evaluate(batch).unwrap().as_boolean().iter().collect()
}

#[test]
fn an_error_does_not_surface_where_the_left_side_decides() {
    let number = cast(S, "integer");
    let positive = call(">", &[&number, &lit("0", "integer")], "boolean");
    let is_one = call("=", &[I, &lit("1", "integer")], "boolean");
    let guarded = call("and", &[&is_one, &positive], "boolean");
    // Row 2 has a null on the left, which does not decide the result, so its string is parsed: an
    // error.
    let error = bind(&guarded).evaluate(&sample()).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
    assert!(
        error.to_string().contains("'y'") && error.to_string().contains("CAST(s AS INT)"),
        "{error}"
    );
    let two = sample().slice(0, 2);
    assert_eq!(truths(&bind(&guarded), &two), [Some(true), Some(false)]);
    let otherwise = call(
        "or",
        &[&call("not", &[&is_one], "boolean"), &positive],
        "boolean",
    );
    assert_eq!(truths(&bind(&otherwise), &two), [Some(true), Some(true)]);
}

#[test]
fn branches_are_evaluated_only_for_their_rows() {
    let number = cast(S, "integer");
    let is_one = call("<=>", &[I, &lit("1", "integer")], "boolean");
    let chosen = bind(&call(
        "if",
        &[&is_one, &number, &lit("-1", "integer")],
        "integer",
    ))
    .evaluate(&sample())
    .unwrap();
    assert_eq!(
        chosen.as_primitive::<Int32Type>().values().to_vec(),
        [1, -1, -1, -1]
    );
    let by_case = bind(&call(
        "case",
        &[
            &call("isnull", &[I], "boolean"),
            &lit("7", "integer"),
            &is_one,
            &number,
        ],
        "integer",
    ))
    .evaluate(&sample())
    .unwrap();
    assert_eq!(
        by_case
            .as_primitive::<Int32Type>()
            .iter()
            .collect::<Vec<_>>(),
        [Some(1), None, Some(7), None]
    );
    let first = bind(&call(
        "coalesce",
        &[I, &lit("3", "integer"), &number],
        "integer",
    ))
    .evaluate(&sample())
    .unwrap();
    assert_eq!(
        first.as_primitive::<Int32Type>().values().to_vec(),
        [1, 2, 3, 4]
    );
}

#[test]
fn a_constant_error_needs_a_row() {
    let bad = bind(&cast(&lit("\"x\"", "string"), "integer"));
    assert_eq!(bad.evaluate(&sample().slice(0, 0)).unwrap().len(), 0);
    assert!(bad.evaluate(&sample()).is_err());
}

#[test]
fn a_local_time_beyond_the_range_of_timestamps_raises_in_every_mode() {
    let times = batch(vec![(
        "t",
        Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX])) as ArrayRef,
    )]);
    for mode in ["ansi", "legacy", "try"] {
        let tree = format!(
            r#"{{"cast":{{"argument":{{"column":{{"path":["t"],"data_type":"timestamp_ntz"}}}},"data_type":"timestamp","mode":"{mode}"}}}}"#
        );
        let bound = BoundExpr::from_json(&format!(
            r#"{{"expr": {tree}, "ansi": true, "zone": "-08:00"}}"#
        ))
        .unwrap();
        assert!(bound.expr.can_fail(true), "{mode}");
        assert!(
            bound
                .evaluate(&times)
                .unwrap_err()
                .to_string()
                .contains("DATETIME_OVERFLOW"),
            "{mode}"
        );
    }
}

#[test]
fn doubles_compare_as_spark_compares_them() {
    let batch = sample();
    assert_eq!(
        truths(
            &bind(&call("=", &[D, &lit("0.0", "double")], "boolean")),
            &batch
        ),
        [Some(true), Some(false), Some(false), None]
    );
    assert_eq!(
        truths(
            &bind(&call(">", &[D, &lit("\"Infinity\"", "double")], "boolean")),
            &batch
        ),
        [Some(false), Some(true), Some(true), None]
    );
    assert_eq!(
        truths(
            &bind(&call("<=>", &[D, &lit("\"NaN\"", "double")], "boolean")),
            &batch
        ),
        [Some(false), Some(true), Some(true), Some(false)]
    );
    let list = format!(r#"{{"in_list":{{"argument":{D},"values":["NaN",0.0,null]}}}}"#);
    assert_eq!(
        truths(&bind(&list), &batch),
        [Some(true), Some(true), Some(true), None]
    );
    assert_eq!(
        truths(&bind(&call("isnan", &[D], "boolean")), &batch),
        [Some(false), Some(true), Some(true), Some(false)]
    );
}

#[test]
fn lists_with_null_are_three_valued() {
    let list = format!(r#"{{"in_list":{{"argument":{I},"values":[1,null]}}}}"#);
    assert_eq!(
        truths(&bind(&list), &sample()),
        [Some(true), None, None, None]
    );
    let long: Vec<String> = (2..40).map(|n| n.to_string()).collect();
    let list = format!(
        r#"{{"in_list":{{"argument":{I},"values":[{}]}}}}"#,
        long.join(",")
    );
    assert_eq!(
        truths(&bind(&list), &sample()),
        [Some(false), Some(true), None, Some(true)]
    );
}

#[test]
fn columns_are_taken_in_any_layout() {
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("a"), None, Some("b")].into_iter().collect();
    let inner = StructArray::new(
        vec![Field::new("x", arrow_schema::DataType::Int32, true)].into(),
        vec![Arc::new(Int32Array::from(vec![1, 2, 3]))],
        Some(vec![true, false, true].into()),
    );
    let batch = batch(vec![
        ("s", Arc::new(dictionary)),
        ("st", Arc::new(inner)),
        (
            "t",
            Arc::new(TimestampMillisecondArray::from(vec![1, 2, 3]).with_timezone("+00:00")),
        ),
    ]);
    assert_eq!(
        truths(
            &bind(&call("=", &[S, &lit("\"b\"", "string")], "boolean")),
            &batch
        ),
        [Some(false), None, Some(true)]
    );
    let x = r#"{"column":{"path":["st","x"],"data_type":"integer"}}"#;
    assert_eq!(
        truths(
            &bind(&call(">", &[x, &lit("1", "integer")], "boolean")),
            &batch
        ),
        [Some(false), None, Some(true)]
    );
    let t = r#"{"column":{"path":["t"],"data_type":"timestamp"}}"#;
    assert_eq!(
        truths(
            &bind(&call("=", &[t, &lit("2000", "timestamp")], "boolean")),
            &batch
        ),
        [Some(false), Some(true), Some(false)]
    );
    let gone = r#"{"column":{"path":["st","y"],"data_type":"integer"}}"#;
    assert!(matches!(
        bind(gone).evaluate(&batch),
        Err(Error::SchemaMismatch { .. })
    ));
    assert!(matches!(
        bind(S).evaluate(&sample().project(&[0]).unwrap()),
        Err(Error::SchemaMismatch { .. })
    ));
}

#[test]
fn a_mask_counts_null_as_false() {
    let mask = bind(&call(">", &[I, &lit("1", "integer")], "boolean"))
        .filter_mask(&sample())
        .unwrap();
    assert_eq!(mask, BooleanArray::from(vec![false, true, false, true]));
    assert_eq!(
        bind(&lit("true", "boolean"))
            .filter_mask(&sample())
            .unwrap()
            .true_count(),
        4
    );
    assert_eq!(
        bind(&lit("null", "boolean"))
            .filter_mask(&sample())
            .unwrap()
            .true_count(),
        0
    );
    assert!(matches!(
        bind(I).filter_mask(&sample()),
        Err(Error::Invalid { .. })
    ));
}

#[test]
fn like_knows_wildcards_and_escapes() {
    let texts = batch(vec![(
        "s",
        Arc::new(StringArray::from(vec![
            "abc", "a%c", "", "äbc", "aXbXc", "abab",
        ])),
    )]);
    let like = |pattern: &str, escape: Option<&str>| {
        let pattern = lit(&serde_json::to_string(pattern).unwrap(), "string");
        let escape = escape.map(|e| lit(&serde_json::to_string(e).unwrap(), "string"));
        let args: Vec<&str> = [S, pattern.as_str()]
            .into_iter()
            .chain(escape.as_deref())
            .collect();
        bind(&call("like", &args, "boolean"))
            .filter_mask(&texts)
            .unwrap()
            .values()
            .iter()
            .map(u8::from)
            .collect::<Vec<u8>>()
    };
    assert_eq!(like("a%", None), [1, 1, 0, 0, 1, 1]);
    assert_eq!(like("%c", None), [1, 1, 0, 1, 1, 0]);
    assert_eq!(like("%b%", None), [1, 0, 0, 1, 1, 1]);
    assert_eq!(like("_b%", None), [1, 0, 0, 1, 0, 1]);
    assert_eq!(like("a%b%c", None), [1, 0, 0, 0, 1, 0]);
    assert_eq!(like("%_b_%_", None), [0, 0, 0, 0, 1, 1]);
    assert_eq!(like("a\\%c", None), [0, 1, 0, 0, 0, 0]);
    assert_eq!(like("a!%c", Some("!")), [0, 1, 0, 0, 0, 0]);
    assert_eq!(like("", None), [0, 0, 1, 0, 0, 0]);
    assert_eq!(like("%", None), [1; 6]);
    assert_eq!(like("%ab", None), [0, 0, 0, 0, 0, 1]);
    let bad = call("like", &[S, &lit("\"a\\\\b\"", "string")], "boolean");
    assert!(matches!(
        BoundExpr::from_json(&format!(
            r#"{{"expr": {bad}, "ansi": true, "zone": "UTC"}}"#
        )),
        Err(Error::Invalid { .. })
    ));
}

#[test]
fn what_the_core_lacks_is_refused_by_name() {
    let refused = |expr: &str, name: &str| {
        let error = BoundExpr::from_json(&format!(
            r#"{{"expr": {expr}, "ansi": true, "zone": "UTC"}}"#
        ))
        .unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }) && error.to_string().contains(name),
            "{error}"
        );
    };
    refused(&call("levenshtein", &[S, S], "integer"), "levenshtein");
    refused(&call("+", &[I, S], "integer"), "+");
    refused(
        &call("rlike", &[S, &lit(r#""(?=a)""#, "string")], "boolean"),
        "(?=a)",
    );
    refused(
        &call("rlike", &[S, &lit(r#""a++""#, "string")], "boolean"),
        "possessive",
    );
    refused(&cast(D, "binary"), "binary");
    refused(
        r#"{"column":{"path":["g"],"data_type":"geometry"}}"#,
        "geometry",
    );
}

#[test]
fn malformed_trees_are_errors() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"expr": 1}"#,
        r#"{"expr": {"nothing":{}}, "ansi": true, "zone": "UTC"}"#,
        r#"{"expr": {"column":{"path":[],"data_type":"long"}}, "ansi": true, "zone": "UTC"}"#,
        r#"{"expr": {"literal":{"value":1}}, "ansi": true, "zone": "UTC"}"#,
    ] {
        assert!(
            matches!(BoundExpr::from_json(text), Err(Error::Invalid { .. })),
            "{text}"
        );
    }
    let deep = format!(
        r#"{{"expr": {}{}{}, "ansi": true, "zone": "UTC"}}"#,
        r#"{"call":{"function":"not","data_type":"boolean","arguments":["#.repeat(100_000),
        lit("true", "boolean"),
        "]}}".repeat(100_000)
    );
    assert!(matches!(
        BoundExpr::from_json(&deep),
        Err(Error::Invalid { .. })
    ));
    let zone = r#"{"expr": {"literal":{"value":1,"data_type":"long"}}, "ansi": true, "zone": "Mars/Olympus"}"#;
    assert!(
        BoundExpr::from_json(zone)
            .unwrap_err()
            .to_string()
            .contains("Mars/Olympus")
    );
}

#[test]
fn expressions_are_shown_as_spark_sql() {
    let compare = call(
        "=",
        &[
            &call("+", &[I, &lit("1", "integer")], "integer"),
            &lit("2", "integer"),
        ],
        "boolean",
    );
    let list = format!(r#"{{"in_list":{{"argument":{S},"values":["it's",null]}}}}"#);
    let both = call(
        "and",
        &[
            &compare,
            &call(
                "and",
                &[
                    &call("not", &[&list], "boolean"),
                    &call("isnull", &[D], "boolean"),
                ],
                "boolean",
            ),
        ],
        "boolean",
    );
    let shown = BoundExpr::from_json(&format!(
        r#"{{"expr": {both}, "ansi": true, "zone": "UTC"}}"#
    ))
    .unwrap()
    .to_string();
    assert_eq!(
        shown,
        r"((i + 1) = 2) AND (NOT (s IN ('it\'s', NULL))) AND (d IS NULL)"
    );
}

proptest! {
    #[test]
    fn remainders_by_one_number_are_those_of_the_processor(
        values in prop::collection::vec(prop_oneof![any::<i64>(), -9..9_i64, 0..i64::from(u32::MAX), Just(i64::MIN)], 1..40),
        by in prop_oneof![any::<i64>(), -9..9_i64, (i64::from(u32::MAX) - 9)..(i64::from(u32::MAX) + 9), Just(i64::MIN)],
    ) {
        prop_assume!(by != 0);
        let longs = call("%", &[r#"{"column":{"path":["n"],"data_type":"long"}}"#, &lit(&by.to_string(), "long")], "long");
        let rests = bind(&longs).evaluate(&batch(vec![("n", Arc::new(Int64Array::from(values.clone())))])).unwrap();
        prop_assert_eq!(rests.as_primitive::<Int64Type>().values().to_vec(), values.iter().map(|v| v.wrapping_rem(by)).collect::<Vec<_>>());

        let (small, by) = (values.iter().map(|v| *v as i32).collect::<Vec<_>>(), by as i32);
        prop_assume!(by != 0);
        let ints = call("%", &[r#"{"column":{"path":["n"],"data_type":"integer"}}"#, &lit(&by.to_string(), "integer")], "integer");
        let rests = bind(&ints).evaluate(&batch(vec![("n", Arc::new(Int32Array::from(small.clone())))])).unwrap();
        prop_assert_eq!(rests.as_primitive::<Int32Type>().values().to_vec(), small.iter().map(|v| v.wrapping_rem(by)).collect::<Vec<_>>());
    }
}
