//! New values of columns and of fields within them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StructArray};
use arrow_cast::cast;
use arrow_schema::{Field, Fields};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::expr::BoundTree;
use crate::expr::eval::child;
use crate::file_writer::cast as fit;
use crate::file_writer::cast_values::CastRule;
use crate::protocol::schema::{DataType, StringLayout};

/// A value as the caller bound it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuePlan {
    /// The column, and the field in it.
    pub path: Vec<String>,
    /// The bound expression.
    pub tree: BoundTree,
}

/// A struct column with new values for one field; null structs become structs whose other fields
/// are null.
pub(in crate::ops) fn with_field(
    array: &ArrayRef,
    data_type: &DataType,
    path: &[String],
    value: &ArrayRef,
    rule: CastRule,
) -> Result<ArrayRef> {
    let (DataType::Struct(fields), Some(from), Some((name, rest))) =
        (data_type, array.as_struct_opt(), path.split_first())
    else {
        return Err(Error::internal(
            "a field is assigned in something that is not a struct",
        ));
    };
    let mut arrays = Vec::with_capacity(fields.fields.len());
    for field in &fields.fields {
        let now =
            child(from, &field.name).ok_or_else(|| Error::internal("a struct lacks a field"))?;
        let plain = field.data_type.to_arrow(StringLayout::Plain);
        let new = match (field.name == *name, rest.is_empty()) {
            (false, _) => now,
            (true, true) => fit::value(value, &field.data_type, name, rule)?,
            (true, false) => with_field(&now, &field.data_type, rest, value, rule)?,
        };
        arrays.push(if *new.data_type() == plain {
            new
        } else {
            cast(&new, &plain)?
        });
    }
    let fields: Fields = fields
        .fields
        .iter()
        .zip(&arrays)
        .map(|(field, array)| Arc::new(Field::new(&field.name, array.data_type().clone(), true)))
        .collect();
    Ok(Arc::new(StructArray::try_new_with_length(
        fields,
        arrays,
        None,
        array.len(),
    )?))
}
