//! The columns of a table's data files: converts a logical schema to the Arrow schema that is
//! encoded, with physical names and field ids.
//!
//! Protocol: "Column Mapping", "Writer Requirements for Column Mapping", "IcebergCompatV2",
//! "Primitive Types" (`void`).

use std::sync::Arc;

use arrow_schema::{DataType as Arrow, Field, Fields, Schema, SchemaRef};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::pq::ColumnMappingMode;
use crate::protocol::schema::{DataType, StringLayout, StructField, StructType};

/// Arrow's key for a Parquet field id.
const FIELD_ID: &str = "PARQUET:field_id";

/// The name of a field in the files.
#[must_use]
pub fn file_name(field: &StructField, mapping: ColumnMappingMode) -> &str {
    if mapping == ColumnMappingMode::None {
        &field.name
    } else {
        field.physical_name()
    }
}

/// The Arrow schema of files with the columns `written`; the columns in `hidden` do not belong to
/// the table and have no ids.
///
/// # Errors
/// [`Error::Unsupported`] for a `void` column that cannot be left out, [`Error::Corrupt`] for a
/// column without its id.
pub fn file_schema(
    written: &StructType,
    mapping: ColumnMappingMode,
    hidden: &[String],
) -> Result<SchemaRef> {
    let own = |field: &&StructField| !matches!(field.data_type, DataType::Void);
    let mapping_of = |field: &StructField| {
        if hidden.contains(&field.name) {
            ColumnMappingMode::None
        } else {
            mapping
        }
    };
    let fields = written
        .fields
        .iter()
        .filter(own)
        .map(|field| file_field(field, mapping_of(field)).map(Arc::new))
        .collect::<Result<Fields>>()?;
    if fields.is_empty() {
        return Err(Error::unsupported(
            "a table without a column that data files can hold cannot be written",
        ));
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn fields(of: &StructType, mapping: ColumnMappingMode) -> Result<Fields> {
    of.fields
        .iter()
        .filter(|field| !matches!(field.data_type, DataType::Void))
        .map(|field| file_field(field, mapping).map(Arc::new))
        .collect()
}

fn file_field(field: &StructField, mapping: ColumnMappingMode) -> Result<Field> {
    let name = file_name(field, mapping);
    let nested = ["delta.columnMapping.nested.ids", "parquet.field.nested.ids"]
        .iter()
        .find_map(|key| field.metadata.get(*key))
        .and_then(Value::as_object);
    let data_type =
        data_type(&field.data_type, mapping, name, nested).map_err(|e| e.at_column(&field.name))?;
    // Keeps the extension type of a variant.
    let out = field
        .to_arrow(StringLayout::Plain)
        .with_name(name)
        .with_data_type(data_type);
    match (mapping, field.field_id()) {
        (ColumnMappingMode::None, _) => Ok(out),
        (_, Some(id)) => Ok(with_id(out, i64::from(id))),
        (_, None) => Err(Error::corrupt(
            "the table maps columns, but a column has no `delta.columnMapping.id`",
        )
        .at_column(&field.name)),
    }
}

fn with_id(field: Field, id: i64) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(FIELD_ID.to_owned(), id.to_string());
    field.with_metadata(metadata)
}

/// The type of a field or of a part of one; `path` is the key in `nested` for the id of its
/// elements.
fn data_type(
    of: &DataType,
    mapping: ColumnMappingMode,
    path: &str,
    nested: Option<&Map<String, Value>>,
) -> Result<Arrow> {
    let part = |name: &str, of: &DataType, nullable: bool| -> Result<Arc<Field>> {
        if matches!(of, DataType::Void) {
            return Err(Error::unsupported(
                "a `void` inside of a list or map cannot be written",
            ));
        }
        let path = format!("{path}.{name}");
        let inner = data_type(of, mapping, &path, nested)?;
        let field = StructField::new(name, of.clone(), nullable)
            .to_arrow(StringLayout::Plain)
            .with_data_type(inner);
        Ok(Arc::new(
            match nested
                .and_then(|ids| ids.get(&path))
                .and_then(Value::as_i64)
            {
                Some(id) if mapping != ColumnMappingMode::None => with_id(field, id),
                _ => field,
            },
        ))
    };
    Ok(match of {
        DataType::Struct(inner) => {
            let fields = fields(inner, mapping)?;
            if fields.is_empty() {
                return Err(Error::unsupported(
                    "a struct without a field that data files can hold cannot be written",
                ));
            }
            Arrow::Struct(fields)
        }
        DataType::Array(of) => Arrow::List(part("element", &of.element, of.contains_null)?),
        DataType::Map(of) => {
            let entries: Fields = vec![
                part("key", &of.key, false)?,
                part("value", &of.value, of.value_contains_null)?,
            ]
            .into();
            Arrow::Map(
                Arc::new(Field::new("key_value", Arrow::Struct(entries), false)),
                false,
            )
        }
        DataType::Variant => Arrow::Struct(variant_fields()),
        DataType::Spark(_) => return Err(unwritable_type(of)),
        other => other.to_arrow(StringLayout::Plain),
    })
}

fn unwritable_type(of: &DataType) -> Error {
    Error::unsupported(format!(
        "deltafast reads columns of type {of} but does not write them; drop the column to write the table"
    ))
}

/// Refuses columns that deltafast cannot write, before any row is read.
///
/// # Errors
/// [`Error::Unsupported`] names the column.
pub fn check_written(schema: &StructType) -> Result<()> {
    fn find_unwritable_type(of: &DataType) -> Option<&DataType> {
        match of {
            DataType::Spark(_) => Some(of),
            DataType::Struct(inner) => inner
                .fields
                .iter()
                .find_map(|field| find_unwritable_type(&field.data_type)),
            DataType::Array(of) => find_unwritable_type(&of.element),
            DataType::Map(of) => {
                find_unwritable_type(&of.key).or_else(|| find_unwritable_type(&of.value))
            }
            _ => None,
        }
    }
    schema.fields.iter().try_for_each(|field| {
        find_unwritable_type(&field.data_type)
            .map_or(Ok(()), |of| Err(unwritable_type(of).at_column(&field.name)))
    })
}

/// The fields of an unshredded variant: neither is nullable, which delta-spark requires.
pub(super) fn variant_fields() -> Fields {
    vec![
        Field::new("metadata", Arrow::Binary, false),
        Field::new("value", Arrow::Binary, false),
    ]
    .into()
}

/// The path of a column in the files: `a.b`, or the name of a column that contains dots itself.
#[must_use]
pub fn find(table: &StructType, name: &str, mapping: ColumnMappingMode) -> Option<Vec<String>> {
    if let Some(field) = table.field(name) {
        return Some(vec![file_name(field, mapping).to_owned()]);
    }
    let mut cuts = name
        .char_indices()
        .filter(|(_, c)| *c == '.')
        .map(|(n, _)| n);
    cuts.find_map(|n| {
        let (head, rest) = (name.get(..n)?, name.get(n + 1..)?);
        let field = table.field(head)?;
        let DataType::Struct(inner) = &field.data_type else {
            return None;
        };
        let mut path = find(inner, rest, mapping)?;
        path.insert(0, file_name(field, mapping).to_owned());
        Some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped() -> StructType {
        StructType::parse(
            r#"{"type":"struct","fields":[
            {"name":"a.x","type":"string","nullable":false,"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}},
            {"name":"s","type":{"type":"struct","fields":[
                {"name":"l","type":{"type":"array","elementType":{"type":"array","elementType":"long","containsNull":true},"containsNull":true},"nullable":true,
                 "metadata":{"delta.columnMapping.id":3,"delta.columnMapping.physicalName":"col-3","delta.columnMapping.nested.ids":{"col-3.element":7,"col-3.element.element":8}}},
                {"name":"v","type":"void","nullable":true,"metadata":{}}]},"nullable":true,
             "metadata":{"delta.columnMapping.id":2,"delta.columnMapping.physicalName":"col-2"}}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn physical_names_and_ids_reach_every_level() {
        let schema = file_schema(&mapped(), ColumnMappingMode::Id, &[]).unwrap();
        assert_eq!(
            (
                schema.field(0).name().as_str(),
                schema.field(0).is_nullable(),
                &schema.field(0).metadata()[FIELD_ID]
            ),
            ("col-1", false, &"1".to_owned())
        );
        let Arrow::Struct(inner) = schema.field(1).data_type() else {
            panic!("no struct")
        };
        assert_eq!(inner.len(), 1, "void is left out");
        let Arrow::List(outer) = inner[0].data_type() else {
            panic!("no list")
        };
        let Arrow::List(element) = outer.data_type() else {
            panic!("no list")
        };
        assert_eq!(
            (
                outer.metadata()[FIELD_ID].as_str(),
                element.metadata()[FIELD_ID].as_str()
            ),
            ("7", "8")
        );
        assert_eq!(
            find(&mapped(), "S.l", ColumnMappingMode::Name),
            Some(vec!["col-2".to_owned(), "col-3".to_owned()])
        );
        assert_eq!(
            find(&mapped(), "a.x", ColumnMappingMode::Name),
            Some(vec!["col-1".to_owned()])
        );
        assert_eq!(find(&mapped(), "a", ColumnMappingMode::Name), None);
    }

    #[test]
    fn a_void_that_cannot_be_left_out_is_refused() {
        for text in [
            r#"{"type":"struct","fields":[{"name":"v","type":"void"}]}"#,
            r#"{"type":"struct","fields":[{"name":"s","type":{"type":"struct","fields":[{"name":"v","type":"void"}]}}]}"#,
            r#"{"type":"struct","fields":[{"name":"l","type":{"type":"array","elementType":"void","containsNull":true}}]}"#,
        ] {
            let error = file_schema(
                &StructType::parse(text).unwrap(),
                ColumnMappingMode::None,
                &[],
            )
            .unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
    }
}
