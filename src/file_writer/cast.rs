//! Casts batches to exactly the table's types without loss, or returns an error with the column,
//! the expected and the actual type.
//!
//! Columns and fields are matched by name, case-insensitively and in any order. The caller adds
//! missing columns, missing fields become null, columns that the table lacks are refused. Values
//! must survive (see `cast_values`). Strings and binary values keep their layout
//! (views, large offsets), which the encoder accepts.
//!
//! Cost: none for columns with the right type; one pass over each other column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType as Arrow, Field, Fields, Schema};
use rustc_hash::FxHashMap;

use crate::error::{Error, ErrorCode, Result};
use crate::file_writer::cast_values::{CastRule, FieldPath, cast_value};
use crate::file_writer::file_schema::variant_fields;
use crate::protocol::schema::{
    ArrayType, DataType, MapType, StringLayout, StructField, StructType,
};

/// The positions of the table's columns in batches of one schema.
#[derive(Debug, Clone)]
pub struct ColumnPositions {
    /// For each column of the table its position in the batch.
    pub positions: Vec<Option<usize>>,
}

impl ColumnPositions {
    /// Finds the table's columns.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for columns that the table does not have, and for duplicates.
    pub fn find(batch: &Schema, table: &StructType) -> Result<Self> {
        Ok(Self {
            positions: column_positions(batch.fields(), &table.fields, "")?,
        })
    }

    /// The table's columns of a batch; `None` for missing ones.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] for types that cannot be cast, [`Error::Invalid`] for values that
    /// do not fit; both name the column.
    pub fn cast(
        &self,
        batch: &RecordBatch,
        table: &StructType,
        rule: CastRule,
    ) -> Result<Vec<Option<ArrayRef>>> {
        let column = |(field, place): (&StructField, &Option<usize>)| {
            let Some(array) = place.and_then(|n| batch.columns().get(n)) else {
                return Ok(None);
            };
            array_of(
                array,
                &field.data_type,
                &FieldPath::Column(&field.name),
                rule,
            )
            .map(Some)
        };
        table
            .fields
            .iter()
            .zip(&self.positions)
            .map(column)
            .collect()
    }
}

/// For each field of the table its position among the given ones.
fn column_positions(
    found: &Fields,
    table: &[StructField],
    path: &str,
) -> Result<Vec<Option<usize>>> {
    let mut used = vec![false; found.len()];
    let mut out = Vec::with_capacity(table.len());
    // The first column of each name, and of each name in lower case.
    let mut exact: FxHashMap<&str, usize> = FxHashMap::default();
    let mut alike: FxHashMap<String, usize> = FxHashMap::default();
    for (n, field) in found.iter().enumerate() {
        exact.entry(field.name()).or_insert(n);
        alike.entry(field.name().to_lowercase()).or_insert(n);
    }
    for field in table {
        let place = exact
            .get(field.name.as_str())
            .or_else(|| alike.get(&field.name.to_lowercase()))
            .copied();
        if let Some(used) = place.and_then(|n| used.get_mut(n)) {
            *used = true;
        }
        out.push(place);
    }
    for (n, field) in found.iter().enumerate() {
        if used.get(n) == Some(&false) {
            let name = format!("{path}{}", field.name());
            let twice = table
                .iter()
                .any(|f| f.name.to_lowercase() == field.name().to_lowercase());
            let columns: Vec<&str> = table.iter().map(|f| f.name.as_str()).collect();
            let expected = format!("columns {}", columns.join(", "));
            let mismatch =
                |what: &str| Error::schema_mismatch(what, expected.as_str(), format!("`{name}`"));
            let parameters: [(&'static str, &dyn std::fmt::Display); 2] =
                [("expected", &expected), ("found", &name)];
            let error = if twice {
                mismatch("the data has a column twice (names are compared without case)")
                    .with_code(ErrorCode::DuplicateColumnInData, &[("column", &name)])
            } else if path.is_empty() && found.len() != table.len() {
                mismatch("Cannot cast schema, number of fields does not match: the data has a column that the table does not have")
                    .with_code(ErrorCode::FieldCountMismatch, &parameters)
            } else {
                mismatch("the data has a column that the table does not have")
                    .with_code(ErrorCode::FieldNotInTable, &parameters)
            };
            return Err(error.at_column(name));
        }
    }
    Ok(out)
}

/// The error for data without a column or field that is NOT NULL: `what` says which of both.
pub fn missing_not_null_error(what: &str, data_type: &DataType) -> Error {
    Error::schema_mismatch(
        format!("the data lacks a {what} that is NOT NULL"),
        data_type.to_string(),
        "nothing",
    )
    .with_code(ErrorCode::NotNullColumnMissing, &[])
}

/// One column as the table's type, see [`ColumnPositions::cast`].
///
/// # Errors
/// As [`ColumnPositions::cast`].
pub fn value(array: &ArrayRef, to: &DataType, name: &str, rule: CastRule) -> Result<ArrayRef> {
    array_of(array, to, &FieldPath::Column(name), rule)
}

/// `array` as the table's type.
fn array_of(
    array: &ArrayRef,
    to: &DataType,
    path: &FieldPath<'_>,
    rule: CastRule,
) -> Result<ArrayRef> {
    let found = array.data_type();
    let packed = match found {
        Arrow::Dictionary(_, value) => Some(value.as_ref()),
        Arrow::RunEndEncoded(_, values) => Some(values.data_type()),
        _ => None,
    };
    if let Some(value) = packed {
        let plain = cast(array, value).map_err(|e| path.value(e, to, found))?;
        return array_of(&plain, to, path, rule);
    }
    if matches!(found, Arrow::Null) {
        return Ok(new_null_array(
            &to.to_arrow(StringLayout::Plain),
            array.len(),
        ));
    }
    match to {
        DataType::Void => void(array, to, path),
        DataType::Struct(to) => structure(array, to, path, rule),
        DataType::Array(to) => list(array, to, path, rule),
        DataType::Map(to) => map(array, to, path, rule),
        DataType::Variant => variant(array, path),
        _ => cast_value(array, to, path, rule),
    }
}

fn void(array: &ArrayRef, to: &DataType, path: &FieldPath<'_>) -> Result<ArrayRef> {
    if array.logical_null_count() < array.len() {
        return Err(path.mismatch(to, array.data_type()));
    }
    Ok(new_null_array(&Arrow::Null, array.len()))
}

fn structure(
    array: &ArrayRef,
    to: &StructType,
    path: &FieldPath<'_>,
    rule: CastRule,
) -> Result<ArrayRef> {
    let Some(from) = array.as_struct_opt() else {
        return Err(path.mismatch(&DataType::Struct(Arc::new(to.clone())), array.data_type()));
    };
    let places = column_positions(
        from.fields(),
        &to.fields,
        &format!("{}.", path.dotted_path()),
    )?;
    let (fields, arrays) = to
        .fields
        .iter()
        .zip(places)
        .map(|(field, place)| {
            let inner = FieldPath::Field(path, &field.name);
            let array = match place.and_then(|n| from.columns().get(n)) {
                Some(child) => array_of(child, &field.data_type, &inner, rule)?,
                None if field.nullable => {
                    new_null_array(&field.data_type.to_arrow(StringLayout::Plain), from.len())
                }
                None => {
                    return Err(missing_not_null_error("field", &field.data_type)
                        .at_column(inner.dotted_path()));
                }
            };
            Ok((field_of(&field.name, &array), array))
        })
        .collect::<Result<(Vec<Field>, Vec<ArrayRef>)>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.into(),
        arrays,
        from.nulls().cloned(),
        from.len(),
    )?))
}

/// The field for an array. Nullability is checked against the table's schema, not the array's.
fn field_of(name: &str, array: &ArrayRef) -> Field {
    Field::new(name, array.data_type().clone(), true)
}

fn list(
    array: &ArrayRef,
    to: &ArrayType,
    path: &FieldPath<'_>,
    rule: CastRule,
) -> Result<ArrayRef> {
    let element = match array.data_type() {
        Arrow::List(field)
        | Arrow::LargeList(field)
        | Arrow::ListView(field)
        | Arrow::LargeListView(field)
        | Arrow::FixedSizeList(field, _) => field,
        found => return Err(path.mismatch(&DataType::Array(Arc::new(to.clone())), found)),
    };
    let plain = cast(array, &Arrow::List(Arc::clone(element)))
        .map_err(|e| path.value(e, &DataType::Array(Arc::new(to.clone())), array.data_type()))?;
    let from = plain
        .as_list_opt::<i32>()
        .ok_or_else(|| Error::internal("an array is not a list"))?;
    let (offsets, from_at, length) = trimmed(from.offsets());
    let rule = rule.without_rows();
    let values = array_of(
        &from.values().slice(from_at, length),
        &to.element,
        &FieldPath::Field(path, "element"),
        rule,
    )?;
    let field = Arc::new(field_of("element", &values));
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        values,
        from.nulls().cloned(),
    )?))
}

/// Offsets that begin at 0, and the range of values that they referred to: a slice of a large array
/// includes all its values.
fn trimmed(offsets: &OffsetBuffer<i32>) -> (OffsetBuffer<i32>, usize, usize) {
    let (first, last) = (offsets.first(), offsets.last());
    let from = usize::try_from(first).unwrap_or(0);
    let length = usize::try_from(last - first).unwrap_or(0);
    if first == 0 {
        return (offsets.clone(), from, length);
    }
    (
        OffsetBuffer::new(
            offsets
                .iter()
                .map(|offset| offset - first)
                .collect::<Vec<_>>()
                .into(),
        ),
        from,
        length,
    )
}

fn map(array: &ArrayRef, to: &MapType, path: &FieldPath<'_>, rule: CastRule) -> Result<ArrayRef> {
    let Some(from) = array.as_map_opt() else {
        return Err(path.mismatch(&DataType::Map(Arc::new(to.clone())), array.data_type()));
    };
    let (offsets, from_at, length) = trimmed(from.offsets());
    let rule = rule.without_rows();
    let keys = array_of(
        &from.keys().slice(from_at, length),
        &to.key,
        &FieldPath::Field(path, "key"),
        rule,
    )?;
    let values = array_of(
        &from.values().slice(from_at, length),
        &to.value,
        &FieldPath::Field(path, "value"),
        rule,
    )?;
    // Arrow's maps never have null keys, but not every producer ensures it; entries of a null map
    // do not count.
    if keys.logical_null_count() > 0 {
        return Err(Error::invalid("a map has a null key").at_column(path.dotted_path()));
    }
    map_of(offsets, keys, values, from.nulls())
}

/// A variant is given as its two fields, in any order and layout, and returned in the protocol's
/// layout.
fn variant(array: &ArrayRef, path: &FieldPath<'_>) -> Result<ArrayRef> {
    let Some(from) = array.as_struct_opt() else {
        return Err(path.mismatch(&DataType::Variant, array.data_type()));
    };
    if from.column_by_name("typed_value").is_some() {
        return Err(Error::unsupported(
            "a shredded variant cannot be written; put it together first",
        )
        .at_column(path.dotted_path()));
    }
    let part = |name: &str| {
        let part = from.column_by_name(name).filter(|part| {
            matches!(
                part.data_type(),
                Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView | Arrow::FixedSizeBinary(_)
            )
        });
        let part = part.ok_or_else(|| path.mismatch(&DataType::Variant, array.data_type()))?;
        Ok::<ArrayRef, Error>(cast(part, &Arrow::Binary)?)
    };
    let (metadata, value) = (part("metadata")?, part("value")?);
    let missing = |part: &ArrayRef| {
        part.nulls().is_some_and(|nulls| {
            nulls.null_count() > 0 && !from.nulls().is_some_and(|above| above.contains(nulls))
        })
    };
    if missing(&metadata) || missing(&value) {
        return Err(
            Error::invalid("a variant has no metadata or no value").at_column(path.dotted_path())
        );
    }
    Ok(Arc::new(StructArray::try_new(
        variant_fields(),
        vec![metadata, value],
        from.nulls().cloned(),
    )?))
}

/// `array` without the fields that files leave out because their type is `void`.
///
/// # Errors
/// [`Error::Internal`] for an array of another type.
pub(super) fn without_void_fields(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if !has_void_field(data_type) {
        return Ok(Arc::clone(array));
    }
    let wrong = || Error::internal("an array is not of the type it was cast to");
    Ok(match data_type {
        DataType::Struct(of) => {
            let from = array.as_struct_opt().ok_or_else(wrong)?;
            let kept = of
                .fields
                .iter()
                .zip(from.columns())
                .filter(|(field, _)| field.data_type != DataType::Void);
            let (fields, arrays) = kept
                .map(|(field, array)| {
                    without_void_fields(array, &field.data_type)
                        .map(|array| (field_of(&field.name, &array), array))
                })
                .collect::<Result<(Vec<Field>, Vec<ArrayRef>)>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.into(),
                arrays,
                from.nulls().cloned(),
                from.len(),
            )?)
        }
        DataType::Array(of) => {
            let from = array.as_list_opt::<i32>().ok_or_else(wrong)?;
            let values = without_void_fields(from.values(), &of.element)?;
            Arc::new(ListArray::try_new(
                Arc::new(field_of("element", &values)),
                from.offsets().clone(),
                values,
                from.nulls().cloned(),
            )?)
        }
        DataType::Map(of) => {
            let from = array.as_map_opt().ok_or_else(wrong)?;
            let (keys, values) = (
                without_void_fields(from.keys(), &of.key)?,
                without_void_fields(from.values(), &of.value)?,
            );
            map_of(from.offsets().clone(), keys, values, from.nulls())?
        }
        _ => Arc::clone(array),
    })
}

fn has_void_field(data_type: &DataType) -> bool {
    match data_type {
        DataType::Void => true,
        DataType::Struct(of) => of
            .fields
            .iter()
            .any(|field| has_void_field(&field.data_type)),
        DataType::Array(of) => has_void_field(&of.element),
        DataType::Map(of) => has_void_field(&of.key) || has_void_field(&of.value),
        _ => false,
    }
}

/// A map, with its entries named as in the protocol.
fn map_of(
    offsets: OffsetBuffer<i32>,
    keys: ArrayRef,
    values: ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let fields: Fields = vec![
        Field::new("key", keys.data_type().clone(), false),
        field_of("value", &values),
    ]
    .into();
    let entries = Arc::new(Field::new(
        "key_value",
        Arrow::Struct(fields.clone()),
        false,
    ));
    let pairs = StructArray::try_new(fields, vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        entries,
        offsets,
        pairs,
        nulls.cloned(),
        false,
    )?))
}

/// `array` with copies of strings and binary values in place of views into other buffers.
///
/// # Errors
/// [`Error::Invalid`] for more than 2 GiB of strings.
pub(super) fn without_views(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        Arrow::Utf8View => cast(array, &Arrow::Utf8)?,
        Arrow::BinaryView => cast(array, &Arrow::Binary)?,
        Arrow::Struct(fields) => {
            let from = array.as_struct();
            let arrays = from
                .columns()
                .iter()
                .map(without_views)
                .collect::<Result<Vec<_>>>()?;
            let fields: Fields = fields
                .iter()
                .zip(&arrays)
                .map(|(field, array)| {
                    field
                        .as_ref()
                        .clone()
                        .with_data_type(array.data_type().clone())
                })
                .collect();
            Arc::new(StructArray::try_new_with_length(
                fields,
                arrays,
                from.nulls().cloned(),
                from.len(),
            )?)
        }
        Arrow::List(_) => {
            let from = array.as_list::<i32>();
            let values = without_views(from.values())?;
            Arc::new(ListArray::try_new(
                Arc::new(field_of("element", &values)),
                from.offsets().clone(),
                values,
                from.nulls().cloned(),
            )?)
        }
        Arrow::Map(..) => {
            let from = array.as_map();
            map_of(
                from.offsets().clone(),
                without_views(from.keys())?,
                without_views(from.values())?,
                from.nulls(),
            )?
        }
        _ => Arc::clone(array),
    })
}
