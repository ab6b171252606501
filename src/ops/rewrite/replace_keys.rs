//! Replacing rows by keys: selects the rows whose keys are among the keys of the data that replaces
//! them.
//!
//! The keys are collected while the data is read, and kept until it is written: memory is that of
//! the distinct keys.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType as Arrow;
use serde::Deserialize;

use crate::error::{Error, ErrorCode, Result};
use crate::expr::{BoundExpr, Expr, Function, Scalar};
use crate::file_writer::cast::ColumnPositions;
use crate::file_writer::cast_values::CastRule;
use crate::ops::rewrite::partition_predicate::{NAMED, combine_exprs};
use crate::parse::mask;
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};

/// A column of the table that must equal one of the data.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaceKey {
    /// The table's column.
    pub target: String,
    /// The data's column.
    pub source: String,
    /// Whether null equals null; otherwise a row with a null matches nothing.
    #[serde(default)]
    pub null_safe: bool,
    /// Whether the table's column has exactly this name, not another case of it.
    #[serde(default)]
    pub exact_target: bool,
    /// Whether the data's column has exactly this name.
    #[serde(default)]
    pub exact_source: bool,
}

impl std::fmt::Display for ReplaceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |name: &str| name.replace('`', "``");
        write!(
            f,
            "target.`{}` {} source.`{}`",
            quoted(&self.target),
            if self.null_safe { "<=>" } else { "=" },
            quoted(&self.source)
        )
    }
}

/// The keys of some data.
#[derive(Debug)]
pub(in crate::ops) struct ReplaceKeySet {
    keys: Vec<ReplaceKey>,
    /// The table's columns, with the data's names.
    fields: Vec<StructField>,
    converter: RowConverter,
    key_rows: HashSet<Box<[u8]>>,
    domains: Vec<KeyDomain>,
    zone: TimeZoneSpec,
    /// How the data is cast to the table's types.
    data_rule: CastRule,
}

/// The values of one column: all of them if they are few, and their bounds.
#[derive(Debug)]
pub(in crate::ops) struct KeyDomain {
    converter: RowConverter,
    /// All values, if they are few.
    values: Option<Vec<Scalar>>,
    value_rows: HashSet<Box<[u8]>>,
    min_value: Option<(Box<[u8]>, Scalar)>,
    max_value: Option<(Box<[u8]>, Scalar)>,
    has_null: bool,
}

impl ReplaceKeySet {
    /// An empty set.
    ///
    /// # Errors
    /// [`Error::Invalid`] for columns that do not exist or cannot be compared.
    pub(in crate::ops) fn new(
        mut keys: Vec<ReplaceKey>,
        table: &StructType,
        data: &StructType,
        zone: TimeZoneSpec,
        data_rule: CastRule,
    ) -> Result<Self> {
        let mut fields = Vec::with_capacity(keys.len());
        for key in &mut keys {
            let is_named =
                |field: &&StructField, name: &str, exact: bool| !exact || field.name == name;
            let field = table.field(&key.target);
            let Some(field) = field.filter(|of| is_named(of, &key.target, key.exact_target)) else {
                return Err(Error::invalid(format!(
                    "rows are replaced by `{}`, which is not a column of the table",
                    key.target
                ))
                .with_code(
                    ErrorCode::ReplacementColumnNotFound,
                    &[("column", &key.target)],
                )
                .at_column(&key.target));
            };
            let own = data.field(&key.source);
            let Some(own) = own.filter(|of| is_named(of, &key.source, key.exact_source)) else {
                return Err(Error::invalid(format!(
                    "rows are replaced by `{}`, which the data does not have",
                    key.source
                ))
                .with_code(
                    ErrorCode::ReplacementColumnNotFound,
                    &[("column", &key.source)],
                )
                .at_column(&key.source));
            };
            if matches!(
                field.data_type,
                DataType::Struct(_)
                    | DataType::Array(_)
                    | DataType::Map(_)
                    | DataType::Variant
                    | DataType::Void
            ) {
                return Err(Error::invalid(format!(
                    "rows cannot be replaced by a column of type {}",
                    field.data_type
                ))
                .at_column(&key.target));
            }
            field.check_byte_order("replacing rows by the column")?;
            // Names are compared case-insensitively; from here on they are spelled as in the
            // schema.
            key.target.clone_from(&field.name);
            fields.push(StructField {
                name: own.name.clone(),
                ..field.clone()
            });
        }
        let sorted =
            |field: &StructField| SortField::new(field.data_type.to_arrow(StringLayout::Plain));
        let spans = fields
            .iter()
            .map(|field| KeyDomain::new(&field.data_type))
            .collect::<Result<_>>()?;
        let converter = RowConverter::new(fields.iter().map(sorted).collect())?;
        Ok(Self {
            keys,
            fields,
            converter,
            key_rows: HashSet::new(),
            domains: spans,
            zone,
            data_rule,
        })
    }

    /// Adds the keys of a batch of the data.
    pub(in crate::ops) fn note(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |field: &StructField| {
            let (one, alone) = (
                StructType {
                    fields: vec![field.clone()].into(),
                },
                batch.project(&[batch.schema_ref().index_of(&field.name)?])?,
            );
            let cast = ColumnPositions::find(alone.schema_ref(), &one)?.cast(
                &alone,
                &one,
                self.data_rule,
            )?;
            cast.into_iter()
                .next()
                .flatten()
                .ok_or_else(|| Error::internal("a key is missing"))
        };
        let columns = self.fields.iter().map(column).collect::<Result<Vec<_>>>()?;
        let columns = self.comparable(&columns)?;
        let usable = self.usable(&columns, batch.num_rows());
        let rows = self.converter.convert_columns(&columns)?;
        for (n, row) in rows.iter().enumerate() {
            if usable.value(n) && !self.key_rows.contains(row.as_ref()) {
                self.key_rows.insert(row.as_ref().into());
            }
        }
        for (span, column) in self.domains.iter_mut().zip(&columns) {
            span.note(column, &usable)?;
        }
        Ok(())
    }

    /// The table's key columns.
    pub(in crate::ops) fn columns(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.target.clone()).collect()
    }

    /// The rows of the table whose keys are in the set; the columns of the batch are
    /// [`Self::columns`] and any others.
    pub(in crate::ops) fn matching_rows(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let columns =
            self.comparable(batch.columns().get(..self.fields.len()).unwrap_or_default())?;
        let usable = self.usable(&columns, batch.num_rows());
        let rows = self.converter.convert_columns(&columns)?;
        Ok(mask(
            rows.iter()
                .enumerate()
                .map(|(n, row)| usable.value(n) && self.key_rows.contains(row.as_ref()))
                .collect(),
        ))
    }

    /// True for every row of the table whose key is in the set, and possibly for others; `None` if
    /// the set is empty.
    pub(in crate::ops) fn predicate(&self) -> Result<Option<BoundExpr>> {
        if self.key_rows.is_empty() {
            return Ok(None);
        }
        let mut all = vec![Expr::boolean(Some(true))];
        for ((key, field), span) in self.keys.iter().zip(&self.fields).zip(&self.domains) {
            let column = Expr::Column {
                path: vec![key.target.clone()],
                data_type: field.data_type.clone(),
            };
            all.extend(span.predicate(&column)?);
        }
        Ok(Some(BoundExpr {
            expr: combine_exprs(Function::And, all)?,
            ansi: true,
            zone: self.zone,
        }))
    }

    /// Columns of exactly the table's types, in which equal values have equal bytes: there are two
    /// zeros and many NaNs.
    fn comparable(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        columns
            .iter()
            .zip(&self.fields)
            .map(|(column, field)| comparable(column, &field.data_type))
            .collect()
    }

    /// Rows that can be equal to a row of the table.
    fn usable(&self, columns: &[ArrayRef], rows: usize) -> BooleanArray {
        let strict: Vec<&ArrayRef> = columns
            .iter()
            .zip(&self.keys)
            .filter(|(_, key)| !key.null_safe)
            .map(|(column, _)| column)
            .collect();
        mask(
            (0..rows)
                .map(|n| strict.iter().all(|column| column.is_valid(n)))
                .collect(),
        )
    }
}

/// A column of exactly a type, in which equal values have equal bytes.
pub(in crate::ops) fn comparable(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let column = cast(column, &data_type.to_arrow(StringLayout::Plain))?;
    Ok(match column.data_type() {
        Arrow::Float32 => Arc::new(
            column
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }),
        ),
        Arrow::Float64 => Arc::new(
            column
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }),
        ),
        _ => column,
    })
}

impl KeyDomain {
    /// An empty domain.
    pub(in crate::ops) fn new(data_type: &DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(
            data_type.to_arrow(StringLayout::Plain),
        )])?;
        Ok(Self {
            converter,
            values: Some(Vec::new()),
            value_rows: HashSet::new(),
            min_value: None,
            max_value: None,
            has_null: false,
        })
    }

    /// Drops the individual values, if there are others between the bounds.
    pub(in crate::ops) fn discard_values(&mut self) {
        self.values = None;
    }

    /// Adds the values of usable rows of a column made by [`comparable`].
    pub(in crate::ops) fn note(&mut self, column: &ArrayRef, usable: &BooleanArray) -> Result<()> {
        let rows = self
            .converter
            .convert_columns(std::slice::from_ref(column))?;
        let scalar = |n: usize| {
            Scalar::of(column, n).ok_or_else(|| Error::internal("a key is not a scalar"))
        };
        let mut least: Option<(&[u8], usize)> = None;
        let mut greatest = least;
        for (n, row) in rows.iter().enumerate().filter(|(n, _)| usable.value(*n)) {
            if column.is_null(n) {
                self.has_null = true;
                continue;
            }
            let row: &[u8] = row.data();
            if least.is_none_or(|(least, _)| row < least) {
                least = Some((row, n));
            }
            if greatest.is_none_or(|(greatest, _)| row > greatest) {
                greatest = Some((row, n));
            }
            if let Some(values) = &mut self.values
                && !self.value_rows.contains(row)
            {
                self.value_rows.insert(row.into());
                values.push(scalar(n)?);
                if values.len() > NAMED {
                    (self.values, self.value_rows) = (None, HashSet::new());
                }
            }
        }
        if let Some((row, n)) = least.filter(|(row, _)| {
            self.min_value
                .as_ref()
                .is_none_or(|(least, _)| *row < least.as_ref())
        }) {
            self.min_value = Some((row.into(), scalar(n)?));
        }
        if let Some((row, n)) = greatest.filter(|(row, _)| {
            self.max_value
                .as_ref()
                .is_none_or(|(greatest, _)| *row > greatest.as_ref())
        }) {
            self.max_value = Some((row.into(), scalar(n)?));
        }
        Ok(())
    }

    /// True where `expr`, which has the column's type, has one of the values, and possibly
    /// elsewhere.
    pub(in crate::ops) fn predicate(&self, expr: &Expr) -> Result<Option<Expr>> {
        let data_type = expr.data_type();
        // Writers differ in how they order NaN and the zeros in statistics.
        if matches!(data_type, DataType::Float | DataType::Double) {
            return Ok(None);
        }
        let compare = |function: Function, value: Scalar| {
            Expr::call(
                function,
                vec![
                    expr.clone(),
                    Expr::Literal {
                        value,
                        data_type: data_type.clone(),
                    },
                ],
                DataType::Boolean,
            )
        };
        let mut any = Vec::new();
        match (&self.values, &self.min_value, &self.max_value) {
            (Some(values), ..) if values.len() > 1 => {
                any.push(Expr::in_list(expr.clone(), values.clone())?);
            }
            (Some(values), ..) => {
                for value in values {
                    any.push(compare(Function::Equal, value.clone())?);
                }
            }
            (None, Some((_, least)), Some((_, greatest))) => {
                let both = vec![
                    compare(Function::GreaterEqual, least.clone())?,
                    compare(Function::LessEqual, greatest.clone())?,
                ];
                any.push(combine_exprs(Function::And, both)?);
            }
            _ => return Ok(None),
        }
        if self.has_null {
            any.push(compare(Function::EqualNullSafe, Scalar::Null)?);
        }
        combine_exprs(Function::Or, any).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int32Array, Int64Array, StringArray};

    fn table() -> StructType {
        StructType::parse(
            r#"{"type":"struct","fields":[{"name":"Id","type":"long"},{"name":"s","type":"string"},{"name":"x","type":"double"},
            {"name":"l","type":{"type":"array","elementType":"long","containsNull":true}}]}"#,
        )
        .unwrap()
    }

    fn keys(pairs: &[(&str, &str, bool)]) -> Result<ReplaceKeySet> {
        let data =
            StructType::parse(r#"{"type":"struct","fields":[{"name":"id","type":"integer"},{"name":"s","type":"string"},{"name":"x","type":"double"}]}"#)
                .unwrap();
        let key = |(target, source, null_safe): &(&str, &str, bool)| ReplaceKey {
            target: (*target).into(),
            source: (*source).into(),
            null_safe: *null_safe,
            exact_target: false,
            exact_source: false,
        };
        ReplaceKeySet::new(
            pairs.iter().map(key).collect(),
            &table(),
            &data,
            TimeZoneSpec::UTC,
            CastRule::default(),
        )
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns
                .into_iter()
                .map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    fn chosen(keys: &ReplaceKeySet, columns: Vec<(&str, ArrayRef)>) -> Vec<bool> {
        keys.matching_rows(&batch(columns))
            .unwrap()
            .iter()
            .map(|row| row == Some(true))
            .collect()
    }

    #[test]
    fn null_equals_null_only_where_that_was_asked() {
        for null_safe in [false, true] {
            let mut keys = keys(&[("Id", "id", false), ("s", "s", null_safe)]).unwrap();
            assert!(keys.predicate().unwrap().is_none());
            let ids: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None]));
            keys.note(&batch(vec![
                ("id", ids),
                (
                    "s",
                    Arc::new(StringArray::from(vec![Some("a"), None, Some("c")])),
                ),
            ]))
            .unwrap();
            let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(1)]));
            let texts: ArrayRef = Arc::new(StringArray::from(vec![
                Some("a"),
                None,
                Some("c"),
                Some("c"),
            ]));
            assert_eq!(
                chosen(
                    &keys,
                    vec![("Id", Arc::clone(&ids)), ("s", Arc::clone(&texts))]
                ),
                [true, null_safe, false, false]
            );
            let rows = batch(vec![("Id", ids), ("s", texts)]);
            let found = keys
                .predicate()
                .unwrap()
                .unwrap()
                .filter_mask(&rows)
                .unwrap();
            let found: Vec<bool> = found.iter().map(|row| row == Some(true)).collect();
            assert_eq!(found[..2], [true, null_safe], "what is chosen is found");
        }
    }

    #[test]
    fn zeros_and_nans_are_one() {
        let mut keys = keys(&[("x", "x", false)]).unwrap();
        keys.note(&batch(vec![(
            "x",
            Arc::new(Float64Array::from(vec![-0.0, f64::NAN])),
        )]))
        .unwrap();
        assert_eq!(
            chosen(
                &keys,
                vec![("x", Arc::new(Float64Array::from(vec![0.0, -f64::NAN, 1.0])))]
            ),
            [true, true, false]
        );
    }

    #[test]
    fn many_keys_become_a_span() {
        let mut keys = keys(&[("Id", "id", false)]).unwrap();
        keys.note(&batch(vec![(
            "id",
            Arc::new(Int32Array::from_iter_values((0..3000).map(|n| n * 2))),
        )]))
        .unwrap();
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![-1, 0, 3, 5998, 5999]));
        assert_eq!(
            chosen(&keys, vec![("Id", Arc::clone(&ids))]),
            [false, true, false, true, false]
        );
        let found = keys
            .predicate()
            .unwrap()
            .unwrap()
            .filter_mask(&batch(vec![("Id", ids)]))
            .unwrap();
        assert_eq!(
            found
                .iter()
                .map(|row| row == Some(true))
                .collect::<Vec<_>>(),
            [false, true, true, true, false]
        );
    }

    #[test]
    fn columns_that_cannot_be_keys_are_named() {
        for (pair, expected) in [
            (("nope", "id", false), "not a column of the table"),
            (("Id", "nope", false), "the data does not have"),
            (("l", "id", false), "array"),
        ] {
            let error = keys(&[pair]).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
