//! Casts of constants while an expression is bound, so that pruning has plain values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use serde_json::Value;

use crate::error::Result;
use crate::expr::scalar::{Scalar, array_of};
use crate::expr::text::number::{DecimalDigits, java_trim};
use crate::expr::tree::{BoundExpr, CastMode, Expr};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StringLayout};

/// Casts constants as `try_cast` does: null for a value that the type cannot hold. A value that is
/// cast is the same with and without ANSI mode. With `exact` it is null, too, if the type does not
/// have exactly this value: 1.5 as an integer.
///
/// # Errors
/// [`Error::Invalid`](crate::error::Error::Invalid) if a value is not of the source's type;
/// [`Error::Unsupported`](crate::error::Error::Unsupported) for types between which there is no
/// cast, and for a time without a date, whose value depends on the day.
pub fn cast_constants(
    values: &[Value],
    source: &DataType,
    target: &DataType,
    zone: TimeZoneSpec,
    exact: bool,
) -> Result<Vec<Value>> {
    // A small decimal is written as 1E-7 or as 0.0000001, which the mode decides.
    let depends_on_mode = matches!((source, target), (DataType::Decimal(..), DataType::String));
    if values.is_empty() || depends_on_mode {
        return Ok(vec![Value::Null; values.len()]);
    }
    let constants = values
        .iter()
        .map(|value| Scalar::from_json(value, source))
        .collect::<Result<Vec<_>>>()?;
    let results = cast_array(array_of(&constants, source)?, source, target, zone)?;
    let originals = match source {
        _ if !exact => None,
        // Of text, the same number can be written in several ways.
        DataType::String => None,
        _ => Some(cast_array(Arc::clone(&results), target, source, zone)?),
    };
    let is_exact = |row: usize, constant: &Scalar| match (&originals, constant) {
        (Some(originals), _) => Scalar::of(originals, row)
            .and_then(|original| original.compare(constant))
            .is_some_and(Ordering::is_eq),
        (None, Scalar::Text(text)) => !exact || is_exact_text(text, target),
        (None, _) => true,
    };
    let results =
        constants
            .iter()
            .enumerate()
            .map(|(row, constant)| match Scalar::of(&results, row) {
                Some(value) if is_exact(row, constant) => value.to_json(target),
                _ => Value::Null,
            });
    Ok(results.collect())
}

/// Whether text has no digits that the type rounds away.
fn is_exact_text(text: &str, target: &DataType) -> bool {
    match target {
        DataType::Decimal(_, scale) => {
            DecimalDigits::parse(java_trim(text)).is_some_and(|digits| digits.fits_scale(*scale))
        }
        _ => true,
    }
}

fn cast_array(
    values: ArrayRef,
    source: &DataType,
    target: &DataType,
    zone: TimeZoneSpec,
) -> Result<ArrayRef> {
    let column = Expr::Column {
        path: vec!["value".to_owned()],
        data_type: source.clone(),
    };
    let cast = BoundExpr {
        expr: Expr::cast(column, target.clone(), CastMode::Try)?,
        ansi: true,
        zone,
    };
    let field = Field::new("value", source.to_arrow(StringLayout::Plain), true);
    let schema = Arc::new(Schema::new(vec![field]));
    cast.evaluate(&RecordBatch::try_new(schema, vec![values])?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cast(value: Value, source: &DataType, target: &DataType, exact: bool) -> Result<Value> {
        let values = cast_constants(&[value], source, target, TimeZoneSpec::UTC, exact)?;
        Ok(values[0].clone())
    }

    fn cast_text(text: &str, target: &DataType) -> Value {
        cast(json!(text), &DataType::String, target, false).unwrap()
    }

    #[test]
    fn text_is_cast_as_spark_casts_it() {
        assert_eq!(cast_text(" 2024-02-29 ", &DataType::Date), 19_782);
        assert_eq!(cast_text("2023-02-29", &DataType::Date), Value::Null);
        assert_eq!(cast_text("1.555", &DataType::Decimal(10, 2)), "1.56");
        assert_eq!(cast_text("nan", &DataType::Double), "NaN");
        assert_eq!(cast_text("yes", &DataType::Boolean), true);
        assert_eq!(cast_text("a", &DataType::Binary), "61");
    }

    #[test]
    fn an_exact_cast_loses_nothing() {
        use DataType as T;
        for (value, source, target, expected) in [
            (json!(1.5), T::Double, T::Integer, Value::Null),
            (json!(2.0), T::Double, T::Integer, json!(2)),
            (json!("NaN"), T::Double, T::Float, json!("NaN")),
            (json!(0.1), T::Double, T::Float, Value::Null),
            (json!("1.555"), T::String, T::Decimal(10, 2), Value::Null),
            (json!("1.550"), T::String, T::Decimal(10, 2), json!("1.55")),
            (
                json!("2.50"),
                T::Decimal(3, 2),
                T::Decimal(2, 1),
                json!("2.5"),
            ),
            (
                json!("2.55"),
                T::Decimal(3, 2),
                T::Decimal(2, 1),
                Value::Null,
            ),
            (json!((1_i64 << 53) + 1), T::Long, T::Double, Value::Null),
        ] {
            assert_eq!(cast(value, &source, &target, true).unwrap(), expected);
        }
    }

    #[test]
    fn a_time_of_today_is_not_a_constant() {
        assert!(
            cast(
                json!("12:30"),
                &DataType::String,
                &DataType::Timestamp,
                false
            )
            .is_err()
        );
    }
}
