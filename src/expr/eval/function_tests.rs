//! Functions and casts on constants: the value as Spark's text, `NULL`, or the condition of the
//! error.

use std::sync::Arc;

use arrow_array::{Int32Array, RecordBatch};
use arrow_schema::{DataType as Arrow, Field, Schema};

use crate::expr::tree::{BoundExpr, CastMode, Expr};
use crate::protocol::schema::DataType;

fn lit(value: &str, data_type: &str) -> String {
    format!(r#"{{"literal":{{"value":{value},"data_type":"{data_type}"}}}}"#)
}

fn text(value: &str) -> String {
    lit(&serde_json::to_string(value).unwrap(), "string")
}

fn int(value: i64) -> String {
    lit(&value.to_string(), "integer")
}

fn long(value: i64) -> String {
    lit(&value.to_string(), "long")
}

fn double(value: &str) -> String {
    lit(value, "double")
}

fn decimal(value: &str, precision: u8, scale: u8) -> String {
    lit(
        &format!("\"{value}\""),
        &format!("decimal({precision},{scale})"),
    )
}

fn call(function: &str, args: &[String], data_type: &str) -> String {
    format!(
        r#"{{"call":{{"function":"{function}","arguments":[{}],"data_type":"{data_type}"}}}}"#,
        args.join(",")
    )
}

fn cast(arg: &str, to: &str, mode: &str) -> String {
    format!(r#"{{"cast":{{"argument":{arg},"data_type":"{to}","mode":"{mode}"}}}}"#)
}

fn date(value: &str) -> String {
    cast(&text(value), "date", "ansi")
}

fn timestamp(value: &str) -> String {
    cast(&text(value), "timestamp", "ansi")
}

/// The string form of a value, or the condition of the error that it raises.
fn shown_in(expr: &str, ansi: bool, zone: &str) -> String {
    let batch = RecordBatch::try_new(
        Arc::new(Schema::new(vec![Field::new("n", Arrow::Int32, true)])),
        vec![Arc::new(Int32Array::from(vec![1]))],
    )
    .unwrap();
    let bound = BoundExpr::from_json(&format!(
        r#"{{"expr":{expr},"ansi":{ansi},"zone":"{zone}"}}"#
    ))
    .unwrap();
    // Evaluated on its own first, so that not only the expression wrapped below is tested.
    if let Err(error) = bound.evaluate(&batch) {
        let message = error.to_string();
        return message
            .split_once(']')
            .map_or(message.clone(), |(condition, _)| {
                condition.trim_start_matches('[').to_owned()
            });
    }
    let shown =
        bound.with(Expr::cast(bound.expr.clone(), DataType::String, CastMode::Ansi).unwrap());
    let array = shown.evaluate(&batch).unwrap();
    arrow_array::cast::AsArray::as_string::<i32>(&array)
        .iter()
        .next()
        .flatten()
        .unwrap_or("NULL")
        .to_owned()
}

fn shown(expr: &str) -> String {
    shown_in(expr, true, "UTC")
}

#[test]
fn integers_raise_or_wrap_around() {
    let max = int(i64::from(i32::MAX));
    let sum = call("+", &[max.clone(), int(1)], "integer");
    assert_eq!(shown(&sum), "ARITHMETIC_OVERFLOW");
    assert_eq!(shown_in(&sum, false, "UTC"), "-2147483648");
    assert_eq!(
        shown(&call("negative", &[int(i64::from(i32::MIN))], "integer")),
        "ARITHMETIC_OVERFLOW"
    );
    assert_eq!(
        shown(&call("div", &[long(i64::MIN), long(-1)], "long")),
        "ARITHMETIC_OVERFLOW"
    );
    assert_eq!(
        shown_in(
            &call("div", &[long(i64::MIN), long(-1)], "long"),
            false,
            "UTC"
        ),
        i64::MIN.to_string()
    );
    assert_eq!(shown(&call("%", &[int(-7), int(3)], "integer")), "-1");
    assert_eq!(shown(&call("pmod", &[int(-7), int(3)], "integer")), "2");
    assert_eq!(shown(&call("pmod", &[int(-7), int(-3)], "integer")), "-1");
    assert_eq!(
        shown(&call("shiftright", &[int(-8), int(33)], "integer")),
        "-4"
    );
}

#[test]
fn division_by_zero_raises_or_is_null() {
    let quotient = call("/", &[double("1.0"), double("-0.0")], "double");
    assert_eq!(shown(&quotient), "DIVIDE_BY_ZERO");
    assert_eq!(shown_in(&quotient, false, "UTC"), "NULL");
    assert_eq!(
        shown(&call("%", &[int(1), int(0)], "integer")),
        "REMAINDER_BY_ZERO"
    );
    // The divisor is evaluated first.
    assert_eq!(
        shown(&call(
            "/",
            &[lit("null", "double"), double("0.0")],
            "double"
        )),
        "NULL"
    );
}

#[test]
fn decimals_have_the_precision_of_their_result() {
    let (a, b) = (decimal("12.34", 10, 2), decimal("3.0000", 10, 4));
    assert_eq!(
        shown(&call("+", &[a.clone(), b.clone()], "decimal(13,4)")),
        "15.3400"
    );
    assert_eq!(
        shown(&call("*", &[a.clone(), b.clone()], "decimal(21,6)")),
        "37.020000"
    );
    assert_eq!(
        shown(&call("/", &[a.clone(), b.clone()], "decimal(25,13)")),
        "4.1133333333333"
    );
    assert_eq!(
        shown(&call("%", &[a.clone(), b.clone()], "decimal(10,4)")),
        "0.3400"
    );
    assert_eq!(shown(&call("div", &[a, b], "long")), "4");
    let big = decimal(&"9".repeat(38), 38, 0);
    assert_eq!(
        shown(&call("+", &[big.clone(), big.clone()], "decimal(38,0)")),
        "NUMERIC_VALUE_OUT_OF_RANGE"
    );
    assert_eq!(
        shown_in(
            &call("*", &[big.clone(), big], "decimal(38,0)"),
            false,
            "UTC"
        ),
        "NULL"
    );
    // A product is rounded to 38 digits before it is rounded to its scale.
    let long = decimal("0.00000000000000000000000000000000000005", 38, 38);
    assert_eq!(
        shown(&call("*", &[long, decimal("0.1", 2, 1)], "decimal(38,38)")),
        format!("0.{}1", "0".repeat(37))
    );
}

#[test]
fn numbers_are_rounded_as_they_are_written() {
    for (function, value, places, wanted) in [
        ("round", "2.5", 0, "3.0"),
        ("bround", "2.5", 0, "2.0"),
        ("round", "-2.5", 0, "-3.0"),
        ("round", "1.005", 2, "1.01"),
        ("round", "1234.5", -2, "1200.0"),
        ("round", "0.4", 0, "0.0"),
        ("round", "\"NaN\"", 1, "NaN"),
        ("round", "9.99", 1, "10.0"),
    ] {
        assert_eq!(
            shown(&call(function, &[double(value), int(places)], "double")),
            wanted,
            "{function}({value}, {places})"
        );
    }
    assert_eq!(
        shown(&call("round", &[int(2_147_483_647), int(-1)], "integer")),
        "ARITHMETIC_OVERFLOW"
    );
    assert_eq!(
        shown(&call(
            "round",
            &[decimal("-12.345", 5, 3), int(2)],
            "decimal(5,2)"
        )),
        "-12.35"
    );
    assert_eq!(
        shown(&call(
            "round",
            &[decimal("155.00", 5, 2), int(-1)],
            "decimal(4,0)"
        )),
        "160"
    );
    assert_eq!(
        shown(&call("floor", &[decimal("-1.5", 3, 1)], "decimal(3,0)")),
        "-2"
    );
    assert_eq!(shown(&call("ceil", &[double("1.1")], "long")), "2");
    assert_eq!(shown(&call("floor", &[double("\"NaN\"")], "long")), "0");
}

#[test]
fn text_is_measured_in_code_points() {
    let s = || text("aé日𝒜");
    assert_eq!(shown(&call("length", &[s()], "integer")), "4");
    assert_eq!(shown(&call("octet_length", &[s()], "integer")), "10");
    for (position, length, wanted) in [
        (0, 2, "aé"),
        (1, 2, "aé"),
        (-2, 1, "日"),
        (-9, 6, "a"),
        (3, 99, "日𝒜"),
        (9, 1, ""),
        (2, -1, ""),
    ] {
        assert_eq!(
            shown(&call(
                "substring",
                &[s(), int(position), int(length)],
                "string"
            )),
            wanted
        );
    }
    assert_eq!(shown(&call("reverse", &[s()], "string")), "𝒜日éa");
    assert_eq!(
        shown(&call("lpad", &[s(), int(7), text("xy")], "string")),
        "xyxaé日𝒜"
    );
    assert_eq!(
        shown(&call("rpad", &[s(), int(2), text("xy")], "string")),
        "aé"
    );
    assert_eq!(shown(&call("instr", &[s(), text("日")], "integer")), "3");
    assert_eq!(
        shown(&call(
            "locate",
            &[text("a"), text("banana"), int(3)],
            "integer"
        )),
        "4"
    );
    assert_eq!(
        shown(&call(
            "locate",
            &[text("a"), text("banana"), lit("null", "integer")],
            "integer"
        )),
        "0"
    );
    assert_eq!(shown(&call("right", &[s(), int(2)], "string")), "日𝒜");
}

#[test]
fn text_functions_follow_spark_at_their_edges() {
    assert_eq!(shown(&call("trim", &[text(" \ta ")], "string")), "\ta");
    assert_eq!(
        shown(&call("ltrim", &[text("xyxa"), text("yx")], "string")),
        "a"
    );
    assert_eq!(
        shown(&call("upper", &[text("straße")], "string")),
        "STRASSE"
    );
    assert_eq!(shown(&call("lower", &[text("ΑΣ")], "string")), "ας");
    assert_eq!(
        shown(&call("initcap", &[text("ab-cd  ßX ΑΣ")], "string")),
        "Ab-cd  Ssx Ας"
    );
    assert_eq!(
        shown(&call(
            "replace",
            &[text("aaa"), text(""), text("b")],
            "string"
        )),
        "aaa"
    );
    assert_eq!(
        shown(&call(
            "concat_ws",
            &[text(","), text("a"), lit("null", "string"), text("b")],
            "string"
        )),
        "a,b"
    );
    assert_eq!(
        shown(&call(
            "concat",
            &[text("a"), lit("null", "string")],
            "string"
        )),
        "NULL"
    );
    assert_eq!(
        shown(&call(
            "split_part",
            &[text("a.b.c"), text("."), int(-1)],
            "string"
        )),
        "c"
    );
    assert_eq!(
        shown(&call(
            "split_part",
            &[text("a.b.c"), text("."), int(9)],
            "string"
        )),
        ""
    );
    assert_eq!(
        shown(&call(
            "split_part",
            &[text("a"), text("."), int(0)],
            "string"
        )),
        "INVALID_INDEX_OF_ZERO"
    );
    assert_eq!(
        shown(&call("hex", &[long(-1)], "string")),
        "FFFFFFFFFFFFFFFF"
    );
    assert_eq!(
        shown(&call(
            "hex",
            &[call("unhex", &[text("414")], "binary")],
            "string"
        )),
        "0414"
    );
    assert_eq!(shown(&call("unhex", &[text("4G")], "binary")), "NULL");
    assert_eq!(shown(&call("repeat", &[text("ab"), int(-1)], "string")), "");
}

#[test]
fn regular_expressions_are_javas() {
    let matches = |value: &str, pattern: &str| {
        shown(&call("rlike", &[text(value), text(pattern)], "boolean")) == "true"
    };
    assert!(matches("xabcx", "b"));
    assert!(matches("a1", r"^\w\d$") && !matches("a١", r"\d"));
    // `$` also matches before a final line terminator, and the dot excludes more line terminators
    // than `\n`.
    assert!(matches("a\n", "a$") && !matches("a\nb", "a$") && !matches("a\u{2028}b", "a.b"));
    assert!(matches("a\u{0b}", r"\s$"));
}

#[test]
fn text_is_cast_as_spark_casts_it() {
    for (value, to, wanted) in [
        (" 12 ", "integer", "12"),
        ("1.5", "integer", "CAST_INVALID_INPUT"),
        ("128", "byte", "CAST_INVALID_INPUT"),
        ("1e3", "double", "1000.0"),
        ("x", "double", "CAST_INVALID_INPUT"),
        ("1.005", "decimal(10,2)", "1.01"),
        ("1e9", "decimal(10,2)", "NUMERIC_VALUE_OUT_OF_RANGE"),
        (" Yes", "boolean", "true"),
        ("2", "boolean", "CAST_INVALID_INPUT"),
        ("2024-3-1", "date", "2024-03-01"),
        ("2024-02-30", "date", "CAST_INVALID_INPUT"),
        ("2024-03-10 1:2", "timestamp_ntz", "2024-03-10 01:02:00"),
    ] {
        assert_eq!(
            shown(&cast(&text(value), to, "ansi")),
            wanted,
            "{value} as {to}"
        );
        let null = if wanted.starts_with(|c: char| c.is_ascii_uppercase()) {
            "NULL"
        } else {
            wanted
        };
        assert_eq!(
            shown(&cast(&text(value), to, "try")),
            null,
            "{value} as {to}"
        );
    }
    assert_eq!(shown(&cast(&text("1.5"), "integer", "legacy")), "1");
    assert!(shown(&timestamp("12:30")).contains("add a date"));
}

#[test]
fn numbers_are_cast_as_spark_casts_them() {
    for (value, to, ansi, legacy) in [
        (decimal("2.99", 3, 2), "integer", "2", "2"),
        (decimal("-2.99", 3, 2), "long", "-2", "-2"),
        (double("2.9"), "integer", "2", "2"),
        (double("300.0"), "byte", "CAST_OVERFLOW", "44"),
        (
            double("1e20"),
            "long",
            "CAST_OVERFLOW",
            "9223372036854775807",
        ),
        (double("\"NaN\""), "integer", "CAST_OVERFLOW", "0"),
        (int(300), "byte", "CAST_OVERFLOW", "44"),
        (
            int(123_456),
            "decimal(5,0)",
            "NUMERIC_VALUE_OUT_OF_RANGE",
            "NULL",
        ),
        (double("0.125"), "decimal(4,2)", "0.13", "0.13"),
        (double("1e7"), "string", "1.0E7", "1.0E7"),
        (double("\"NaN\""), "boolean", "true", "true"),
        (int(2), "boolean", "true", "true"),
        (
            int(1),
            "timestamp",
            "1970-01-01 00:00:01",
            "1970-01-01 00:00:01",
        ),
        (decimal("0.0000001", 8, 7), "string", "0.0000001", "1E-7"),
    ] {
        assert_eq!(shown(&cast(&value, to, "ansi")), ansi, "{value} as {to}");
        let shown = shown(&cast(&value, to, "legacy"));
        assert_eq!(shown, legacy, "{value} as {to}");
    }
}

#[test]
fn times_are_cast_in_the_zone() {
    let zone = "America/New_York";
    let ts = || timestamp("2024-03-10 04:30:00Z");
    assert_eq!(shown_in(&ts(), true, zone), "2024-03-09 23:30:00");
    assert_eq!(
        shown_in(&cast(&ts(), "date", "ansi"), true, zone),
        "2024-03-09"
    );
    assert_eq!(
        shown_in(&cast(&ts(), "timestamp_ntz", "ansi"), true, zone),
        "2024-03-09 23:30:00"
    );
    // 02:30 does not exist on that day.
    assert_eq!(
        shown_in(&timestamp("2024-03-10 02:30:00"), true, zone),
        "2024-03-10 03:30:00"
    );
    assert_eq!(
        shown_in(&cast(&date("2024-03-10"), "timestamp", "ansi"), true, zone),
        "2024-03-10 00:00:00"
    );
    assert_eq!(
        shown(&cast(&timestamp("1969-12-31 23:59:59.5"), "long", "ansi")),
        "-1"
    );
    assert_eq!(
        shown(&cast(
            &timestamp("1970-01-01 00:00:00.25"),
            "double",
            "ansi"
        )),
        "0.25"
    );
}

#[test]
fn date_functions_follow_the_calendar() {
    let of = |function: &str, value: &str| shown(&call(function, &[date(value)], "integer"));
    assert_eq!(of("dayofweek", "2024-03-10"), "1");
    assert_eq!(of("weekday", "2024-03-10"), "6");
    assert_eq!(of("weekofyear", "2021-01-03"), "53");
    assert_eq!(of("dayofyear", "2024-12-31"), "366");
    assert_eq!(of("quarter", "2024-04-01"), "2");
    assert_eq!(
        shown(&call("add_months", &[date("2024-01-31"), int(1)], "date")),
        "2024-02-29"
    );
    assert_eq!(
        shown(&call("last_day", &[date("2023-02-10")], "date")),
        "2023-02-28"
    );
    assert_eq!(
        shown(&call("next_day", &[date("2024-03-10"), text("su")], "date")),
        "2024-03-17"
    );
    assert_eq!(
        shown(&call("next_day", &[date("2024-03-10"), text("x")], "date")),
        "ILLEGAL_DAY_OF_WEEK"
    );
    assert_eq!(
        shown(&call(
            "trunc",
            &[date("2024-05-17"), text("quarter")],
            "date"
        )),
        "2024-04-01"
    );
    assert_eq!(
        shown(&call("trunc", &[date("2024-05-17"), text("day")], "date")),
        "NULL"
    );
    assert_eq!(
        shown(&call(
            "datediff",
            &[date("2024-03-01"), date("2024-02-01")],
            "integer"
        )),
        "29"
    );
    assert_eq!(
        shown(&call("make_date", &[int(2023), int(2), int(29)], "date")),
        "DATETIME_FIELD_OUT_OF_BOUNDS"
    );
    let between = call(
        "months_between",
        &[
            timestamp("2024-03-31 00:00:00"),
            timestamp("2024-01-15 12:00:00"),
            lit("true", "boolean"),
        ],
        "double",
    );
    assert_eq!(shown(&between), "2.5");
}

#[test]
fn timestamps_keep_their_offset_through_arithmetic() {
    let zone = "America/New_York";
    // The second 01:30 of the night in which clocks go back.
    let second = || timestamp("2024-11-03 06:30:00Z");
    let micros = |expr: String| shown_in(&call("unix_micros", &[expr], "long"), true, zone);
    assert_eq!(
        micros(call("date_trunc", &[text("HOUR"), second()], "timestamp")),
        "1730613600000000"
    );
    assert_eq!(
        micros(call(
            "timestamp_add_months",
            &[second(), int(0)],
            "timestamp"
        )),
        "1730615400000000"
    );
    let day = lit("86400000000", "long");
    assert_eq!(
        shown_in(
            &call(
                "timestamp_add_micros",
                &[timestamp("2024-03-09 12:00:00"), day],
                "timestamp"
            ),
            true,
            zone
        ),
        "2024-03-10 12:00:00"
    );
    assert_eq!(
        shown(&call(
            "unix_timestamp",
            &[timestamp("1969-12-31 23:59:59.5")],
            "long"
        )),
        "0"
    );
    assert_eq!(
        shown(&call(
            "timestamp_seconds",
            &[decimal("1.5", 2, 1)],
            "timestamp"
        )),
        "1970-01-01 00:00:01.5"
    );
    assert_eq!(
        shown(&call("timestamp_seconds", &[long(i64::MAX)], "timestamp")),
        "ARITHMETIC_OVERFLOW"
    );
}

#[test]
fn datetime_patterns_are_javas() {
    let format = |pattern: &str| {
        shown_in(
            &call(
                "date_format",
                &[timestamp("2024-03-05 16:07:09.012345"), text(pattern)],
                "string",
            ),
            true,
            "America/New_York",
        )
    };
    assert_eq!(
        format("yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
        "2024-03-05T16:07:09.012-05:00"
    );
    assert_eq!(
        format("yy M d, EEE EEEE MMM MMMM D a h k K"),
        "24 3 5, Tue Tuesday Mar March 65 PM 4 16 4"
    );
    assert_eq!(format("''yyyy'' QQ Z"), "'2024' 01 -0500");
    let refused = call(
        "date_format",
        &[timestamp("2024-03-05 16:07:09"), text("w")],
        "string",
    );
    assert!(
        BoundExpr::from_json(&format!(r#"{{"expr":{refused},"ansi":true,"zone":"UTC"}}"#))
            .unwrap_err()
            .to_string()
            .contains("`w`")
    );
}

#[test]
fn doubles_take_the_functions_of_strict_math() {
    assert_eq!(
        shown(&call("exp", &[double("1.0")], "double")),
        "2.7182818284590455"
    );
    assert_eq!(shown(&call("ln", &[double("0.0")], "double")), "NULL");
    assert_eq!(shown(&call("sqrt", &[double("-1.0")], "double")), "NaN");
    assert_eq!(
        shown(&call("pow", &[double("1.0"), double("\"NaN\"")], "double")),
        "NaN"
    );
    assert_eq!(
        shown(&call(
            "greatest",
            &[double("1.0"), double("\"NaN\""), lit("null", "double")],
            "double"
        )),
        "NaN"
    );
}
