//! Edits of one field at any depth of a schema.

use crate::error::{Error, ErrorCode, Result, shown};
use crate::protocol::properties;
use crate::protocol::schema::{ArrayType, DataType, MapType, StructField, StructType};
use std::sync::Arc;

/// How many parts of a path lead to its last column or field; the others are elements, keys and
/// values within it.
pub(super) fn field_depth(schema: &StructType, path: &[String]) -> usize {
    fn within(data_type: &DataType, path: &[String]) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let (is_field, inner) = match data_type {
            DataType::Struct(inner) => (true, &inner.field(first)?.data_type),
            DataType::Array(array) => (false, &array.element),
            DataType::Map(map) if first == "key" => (false, &map.key),
            DataType::Map(map) => (false, &map.value),
            _ => return None,
        };
        match within(inner, rest) {
            Some(depth) => Some(depth + 1),
            None => is_field.then_some(1),
        }
    }
    path.split_first()
        .and_then(|(first, rest)| Some((&schema.field(first)?.data_type, rest)))
        .map_or(0, |(data_type, rest)| {
            1 + within(data_type, rest).unwrap_or(0)
        })
}

/// The schema with one column or field moved after another one of the same struct, or to the first
/// position.
pub(super) fn move_field(
    schema: &StructType,
    path: &[String],
    after: Option<&str>,
) -> Result<StructType> {
    let Some((name, parents)) = path.split_last() else {
        return Ok(schema.clone());
    };
    if parents.is_empty() {
        return move_within_struct(schema, name, after);
    }
    let lacking = || {
        Error::invalid("only columns and fields of structs have a place").at_column(path.join("."))
    };
    transform_field(schema, parents, &mut |parent| match &parent.data_type {
        DataType::Struct(inner) => Ok(Some(StructField {
            data_type: DataType::Struct(Arc::new(move_within_struct(inner, name, after)?)),
            ..parent.clone()
        })),
        _ => Err(lacking()),
    })
}

/// The same within one struct.
fn move_within_struct(schema: &StructType, name: &str, after: Option<&str>) -> Result<StructType> {
    let Some(from) = schema.fields.position(name) else {
        return Ok(schema.clone());
    };
    let mut fields = Vec::from(schema.fields.clone());
    let field = fields.remove(from);
    let to = match after {
        None => 0,
        Some(after) => {
            let sibling = fields
                .iter()
                .position(|field| field.name.to_lowercase() == after.to_lowercase());
            let sibling = sibling.ok_or_else(|| {
                Error::invalid(format!(
                    "there is no `{}` that it could stand behind",
                    shown(after)
                ))
                .with_code(ErrorCode::SiblingNotFound, &[("column", &after)])
                .at_column(name)
            })?;
            sibling + 1
        }
    };
    fields.insert(to, field);
    Ok(StructType {
        fields: fields.into(),
    })
}

/// Edits a field; `None` removes it.
type FieldTransform<'a> = &'a mut dyn FnMut(&StructField) -> Result<Option<StructField>>;

/// The schema with one field edited.
pub(super) fn transform_field(
    schema: &StructType,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<StructType> {
    let Some((name, rest)) = path.split_first() else {
        return Ok(schema.clone());
    };
    let mut fields = Vec::with_capacity(schema.fields.len());
    for field in &schema.fields {
        if field.name != *name {
            fields.push(field.clone());
        } else if rest.is_empty() {
            fields.extend(edit(field)?);
        } else {
            fields.push(StructField {
                data_type: transform_data_type(&field.data_type, rest, edit)?,
                ..field.clone()
            });
        }
    }
    Ok(StructType {
        fields: fields.into(),
    })
}

fn transform_data_type(
    data_type: &DataType,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<DataType> {
    let mut part = |name: &str, data_type: &DataType, nullable: bool| {
        transform_part(name, data_type, nullable, path, edit)
    };
    Ok(match (data_type, path.first().map(String::as_str)) {
        (DataType::Struct(inner), _) => {
            let inner = transform_field(inner, path, edit)?;
            if inner.fields.is_empty() {
                return Err(Error::invalid(
                    "a struct must keep at least one field; drop the struct instead",
                )
                .with_code(ErrorCode::LastColumnDropped, &[]));
            }
            DataType::Struct(Arc::new(inner))
        }
        (DataType::Array(array), _) => {
            let (element, contains_null) = part("element", &array.element, array.contains_null)?;
            DataType::Array(Arc::new(ArrayType {
                element,
                contains_null,
            }))
        }
        (DataType::Map(map), Some("key")) => {
            let (key, nullable) = part("key", &map.key, false)?;
            if nullable {
                return Err(Error::invalid("the keys of a map are never null"));
            }
            DataType::Map(Arc::new(MapType {
                key,
                ..map.as_ref().clone()
            }))
        }
        (DataType::Map(map), _) => {
            let (value, value_contains_null) = part("value", &map.value, map.value_contains_null)?;
            DataType::Map(Arc::new(MapType {
                value,
                value_contains_null,
                ..map.as_ref().clone()
            }))
        }
        (other, _) => other.clone(),
    })
}

/// Edits an element, key or value as a field that has its type and no metadata; or what is within
/// it. Returns its type, and whether it may be null.
fn transform_part(
    name: &str,
    data_type: &DataType,
    nullable: bool,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<(DataType, bool)> {
    let rest = path.get(1..).unwrap_or_default();
    if !rest.is_empty() {
        return Ok((transform_data_type(data_type, rest, edit)?, nullable));
    }
    match edit(&StructField::new(name, data_type.clone(), nullable))? {
        Some(out) if out.metadata.is_empty() => Ok((out.data_type, out.nullable)),
        Some(out) => {
            let key = out.metadata.keys().next().map_or("", String::as_str);
            let error = Error::invalid(format!(
                "the {name}s of a {} cannot have `{}`, only columns and fields can; set it for the column",
                if name == "element" { "list" } else { "map" },
                shown(key)
            ));
            Err(if key == "comment" {
                error.with_code(ErrorCode::CommentOnElement, &[])
            } else {
                error
            })
        }
        None => Err(Error::invalid(format!("an {name} cannot be dropped"))),
    }
}

/// Whether a path is that of a column or of a part of it, compared case-insensitively.
pub(super) fn is_within(path: &[String], column: &[String]) -> bool {
    path.len() >= column.len()
        && path
            .iter()
            .zip(column)
            .all(|(a, b)| a.to_lowercase() == b.to_lowercase())
}

/// A list of column paths, each edited by `edit`.
pub(super) fn transform_column_list(
    list: &str,
    edit: &dyn Fn(Vec<String>) -> Option<Vec<String>>,
) -> String {
    let Some(paths) = properties::columns(list) else {
        return list.to_owned();
    };
    let plain = |part: &String| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let spelled = |part: &String| {
        if plain(part) {
            part.clone()
        } else {
            format!("`{}`", part.replace('`', "``"))
        }
    };
    let path = |path: Vec<String>| path.iter().map(spelled).collect::<Vec<_>>().join(".");
    paths
        .into_iter()
        .filter_map(edit)
        .map(path)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_edited_at_any_depth() {
        let schema = StructType::parse(
            r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"l","type":{"type":"array","elementType":{"type":"map","keyType":"string",
            "valueType":{"type":"struct","fields":[{"name":"x","type":"long"},{"name":"y","type":"date"}]}}}}]}"#,
        )
        .unwrap();
        let path: Vec<String> = ["l", "element", "value", "x"].map(str::to_owned).into();
        let renamed = transform_field(&schema, &path, &mut |field| {
            Ok(Some(StructField {
                name: "z".to_owned(),
                ..field.clone()
            }))
        })
        .unwrap();
        assert_eq!(
            renamed.fields[1].data_type.to_string(),
            "array<map<string,struct<z:long,y:date>>>"
        );
        let dropped = transform_field(&schema, &path, &mut |_| Ok(None)).unwrap();
        assert_eq!(
            dropped.fields[1].data_type.to_string(),
            "array<map<string,struct<y:date>>>"
        );
        let last: Vec<String> = ["l", "element", "value", "y"].map(str::to_owned).into();
        assert!(
            transform_field(&dropped, &last, &mut |_| Ok(None))
                .unwrap_err()
                .to_string()
                .contains("at least one field")
        );
    }

    #[test]
    fn lists_of_columns_are_edited_path_by_path() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let without = |list: &str, column: &str| {
            transform_column_list(list, &|named| {
                (!is_within(&named, &path(column))).then_some(named)
            })
        };
        assert_eq!(without("a, S.x,`odd name`,s.y.z", "s"), "a,`odd name`");
        assert_eq!(
            (without("s,a", "s.x"), without("A", "a")),
            ("s,a".to_owned(), String::new())
        );
        assert_eq!(
            transform_column_list("a,b", &|named| Some(if named == path("a") {
                path("has space")
            } else {
                named
            })),
            "`has space`,b"
        );
    }
}
