//! Validation of a new or changed schema, and assignment of the ids and physical names of column
//! mapping.
//!
//! Protocol: "Column Mapping", "Schema Serialization Format", "Writer Requirements for
//! IcebergCompatV2" (nested ids). Cost: a walk over the schema.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde_json::{Map, Value};

use super::properties::{self, STATS_COLUMNS};
use super::schema::{ArrayType, DataType, MapType, StructField, StructType};
use crate::error::{Error, ErrorCode, Result, shown};

/// Columns of the change data feed.
const CHANGE_COLUMNS: &[&str] = &["_change_type", "_commit_version", "_commit_timestamp"];
const ID: &str = "delta.columnMapping.id";
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
const NESTED_IDS: &str = "delta.columnMapping.nested.ids";

/// Calls `visit` for every struct in a type, the outer before the inner, with the path to it.
fn structs(
    data_type: &DataType,
    path: &mut Vec<String>,
    visit: &mut dyn FnMut(&StructType, &[String]) -> Result<()>,
) -> Result<()> {
    match data_type {
        DataType::Struct(inner) => {
            visit(inner, path)?;
            for field in &inner.fields {
                path.push(field.name.clone());
                structs(&field.data_type, path, visit)?;
                path.pop();
            }
            Ok(())
        }
        DataType::Array(array) => structs(&array.element, path, visit),
        DataType::Map(map) => {
            structs(&map.key, path, visit)?;
            structs(&map.value, path, visit)
        }
        _ => Ok(()),
    }
}

/// Calls `visit` for every field of a schema, nested ones included.
pub fn for_each_field(schema: &StructType, visit: &mut dyn FnMut(&StructField)) {
    let whole = DataType::Struct(Arc::new(schema.clone()));
    // The visitor never fails.
    let _ = structs(&whole, &mut Vec::new(), &mut |parent, _| {
        parent.fields.iter().for_each(&mut *visit);
        Ok(())
    });
}

/// The schema without the metadata keys for which `drops` is true, nested fields included.
#[must_use]
pub fn without_metadata(schema: &StructType, drops: &dyn Fn(&str) -> bool) -> StructType {
    fn within(data_type: &DataType, drops: &dyn Fn(&str) -> bool) -> DataType {
        match data_type {
            DataType::Struct(inner) => DataType::Struct(Arc::new(without_metadata(inner, drops))),
            DataType::Array(array) => DataType::Array(Arc::new(ArrayType {
                element: within(&array.element, drops),
                ..array.as_ref().clone()
            })),
            DataType::Map(map) => DataType::Map(Arc::new(MapType {
                key: within(&map.key, drops),
                value: within(&map.value, drops),
                ..map.as_ref().clone()
            })),
            other => other.clone(),
        }
    }
    let field = |field: &StructField| {
        let mut out = StructField {
            data_type: within(&field.data_type, drops),
            ..field.clone()
        };
        out.metadata.retain(|key, _| !drops(key));
        out
    };
    StructType {
        fields: schema.fields.iter().map(field).collect(),
    }
}

/// Whether a key of a field's metadata belongs to column mapping.
#[must_use]
pub fn is_mapping(key: &str) -> bool {
    key.starts_with("delta.columnMapping.") || key.starts_with("parquet.field.")
}

/// Whether any type within the schema satisfies `test`.
#[must_use]
pub fn any_type(schema: &StructType, test: &dyn Fn(&DataType) -> bool) -> bool {
    fn within(data_type: &DataType, test: &dyn Fn(&DataType) -> bool) -> bool {
        test(data_type)
            || match data_type {
                DataType::Struct(inner) => inner.fields.iter().any(|f| within(&f.data_type, test)),
                DataType::Array(array) => within(&array.element, test),
                DataType::Map(map) => within(&map.key, test) || within(&map.value, test),
                _ => false,
            }
    }
    schema.fields.iter().any(|f| within(&f.data_type, test))
}

/// Checks the schema of a new or changed table.
///
/// # Errors
/// [`Error::Invalid`] names the column and what to do.
pub fn check(schema: &StructType, partition_columns: &[String], change_feed: bool) -> Result<()> {
    let whole = DataType::Struct(Arc::new(schema.clone()));
    structs(&whole, &mut Vec::new(), &mut |parent, path| {
        let mut seen = FxHashSet::default();
        for field in &parent.fields {
            let full = || {
                path.iter()
                    .map(String::as_str)
                    .chain([field.name.as_str()])
                    .collect::<Vec<_>>()
                    .join(".")
            };
            if field.name.is_empty() {
                return Err(Error::invalid(format!(
                    "a column's name is empty{}",
                    if path.is_empty() {
                        String::new()
                    } else {
                        format!(" in `{}`", path.join("."))
                    }
                )));
            }
            if !seen.insert(field.name.to_lowercase()) {
                return Err(Error::invalid(format!(
                    "the column `{}` occurs twice; names are compared without case",
                    full()
                ))
                .with_code(ErrorCode::DuplicateColumn, &[("column", &full())])
                .at_column(full()));
            }
        }
        Ok(())
    })?;
    if change_feed
        && let Some(field) = schema.fields.iter().find(|f| {
            CHANGE_COLUMNS
                .iter()
                .any(|c| c.eq_ignore_ascii_case(&f.name))
        })
    {
        return Err(Error::invalid(format!(
            "a table with a change data feed cannot have a column `{}`; rename it or leave the feed off",
            field.name
        )));
    }
    check_partitioning(schema, partition_columns)
}

fn check_partitioning(schema: &StructType, partition_columns: &[String]) -> Result<()> {
    for (n, name) in partition_columns.iter().enumerate() {
        let Some(field) = schema.fields.iter().find(|f| f.name == *name) else {
            return Err(Error::invalid(format!(
                "the partition column `{}` is not in the schema",
                shown(name)
            ))
            .with_code(ErrorCode::PartitionColumnNotFound, &[("column", name)])
            .at_column(name));
        };
        if partition_columns.iter().take(n).any(|other| other == name) {
            return Err(
                Error::invalid(format!("the partition column `{name}` is named twice"))
                    .at_column(name),
            );
        }
        if field.metadata.contains_key("delta.identity.start") {
            return Err(Error::invalid(format!("a table cannot be partitioned by the identity column `{name}`; cluster by it instead"))
                .with_code(ErrorCode::PartitionedByIdentityColumn, &[("column", name)])
                .at_column(name));
        }
        if !field.data_type.is_primitive()
            || matches!(field.data_type, DataType::Void | DataType::Spark(_))
        {
            return Err(Error::invalid(format!(
                "a table cannot be partitioned by `{name}` of type {}",
                field.data_type
            ))
            .with_code(
                ErrorCode::InvalidPartitionColumnType,
                &[("column", name), ("data_type", &field.data_type)],
            )
            .at_column(name));
        }
    }
    if !schema.fields.is_empty() && partition_columns.len() == schema.fields.len() {
        return Err(Error::invalid(
            "a table cannot be partitioned by all of its columns; leave at least one for the data files",
        )
        .with_code(ErrorCode::PartitionedByAllColumns, &[]));
    }
    Ok(())
}

/// Checks the columns that `delta.dataSkippingStatsColumns` names, as delta-spark does: they are in
/// the schema, are not partition columns, have a type with bounds unless they are fields of another
/// column, and are named once.
///
/// # Errors
/// [`Error::Invalid`] names the column.
pub fn check_stats_columns(
    list: &str,
    schema: &StructType,
    partition_columns: &[String],
) -> Result<()> {
    let refuse = |path: &[String], what: &str| {
        let name = path.join(".");
        Err(Error::invalid(format!(
            "`{STATS_COLUMNS}` names `{}`, {what}; name other columns or unset the property",
            shown(&name)
        ))
        .at_column(name))
    };
    let paths = properties::columns(list).ok_or_else(|| {
        Error::invalid(format!(
            "`{STATS_COLUMNS}` is `{}`, which is not a list of columns",
            shown(list)
        ))
    })?;
    let mut named = FxHashSet::default();
    for path in &paths {
        let Some(field) = field_at(schema, path) else {
            return refuse(path, "which is not in the schema");
        };
        let is_column = path.len() == 1;
        if is_column && partition_columns.contains(&field.name) {
            return refuse(path, "a partition column, which has no statistics");
        }
        let without_bounds = |of: &DataType| {
            let spark = matches!(of, DataType::Void | DataType::Spark(_));
            spark
                || matches!(
                    of,
                    DataType::Array(_) | DataType::Map(_) | DataType::Boolean | DataType::Binary
                )
        };
        if is_column && without_bounds(&field.data_type) {
            return refuse(
                path,
                &format!("a column of type {}, which has no bounds", field.data_type),
            );
        }
        let mut leaves = Vec::new();
        leaves_of(&field.data_type, path.clone(), &mut leaves);
        for leaf in leaves {
            if !named.insert(leaf.clone()) {
                return refuse(&leaf, "more than once");
            }
        }
    }
    Ok(())
}

/// The field at a path, elements of lists and maps included.
fn field_at<'a>(schema: &'a StructType, path: &[String]) -> Option<&'a StructField> {
    let (name, mut rest) = path.split_first()?;
    let field = schema.field(name)?;
    let mut data_type = &field.data_type;
    loop {
        let Some(next) = rest.first() else {
            return Some(field);
        };
        data_type = match data_type {
            DataType::Struct(inner) => return field_at(inner, rest),
            DataType::Array(of) if next.eq_ignore_ascii_case("element") => &of.element,
            DataType::Map(of) if next.eq_ignore_ascii_case("key") => &of.key,
            DataType::Map(of) if next.eq_ignore_ascii_case("value") => &of.value,
            _ => return None,
        };
        rest = rest.get(1..)?;
    }
}

/// Paths of the leaf columns of a column.
fn leaves_of(data_type: &DataType, path: Vec<String>, out: &mut Vec<Vec<String>>) {
    match data_type {
        DataType::Struct(inner) => {
            for field in &inner.fields {
                leaves_of(
                    &field.data_type,
                    [path.as_slice(), std::slice::from_ref(&field.name)].concat(),
                    out,
                );
            }
        }
        _ => out.push(path),
    }
}

/// The highest column id in use, those of nested elements included; 0 for none.
#[must_use]
pub fn max_column_id(schema: &StructType) -> i64 {
    let mut max = 0;
    for_each_field(schema, &mut |field| {
        let nested = field.metadata.get(NESTED_IDS).and_then(Value::as_object);
        let ids = field
            .metadata
            .get(ID)
            .into_iter()
            .chain(nested.into_iter().flat_map(Map::values));
        max = ids.filter_map(Value::as_i64).fold(max, i64::max);
    });
    max
}

/// Assigns column mapping ids and names to fields without them.
pub struct ColumnMappingAssigner<'a> {
    /// The highest id assigned so far; raised for each new one.
    pub max_id: i64,
    /// Whether the physical name is the logical one: the table already has files with that name.
    pub keep_names: bool,
    /// Whether elements of arrays and maps get ids too, as IcebergCompatV2 requires.
    pub nested: bool,
    /// A globally unique string.
    pub generate_id: &'a mut dyn FnMut() -> String,
}

impl ColumnMappingAssigner<'_> {
    /// The schema with an id and a physical name for every field; existing ones stay.
    pub fn schema(&mut self, schema: &StructType) -> StructType {
        StructType {
            fields: schema.fields.iter().map(|f| self.field(f)).collect(),
        }
    }

    fn next(&mut self) -> Value {
        self.max_id += 1;
        Value::from(self.max_id)
    }

    fn field(&mut self, field: &StructField) -> StructField {
        let mut out = field.clone();
        if !out.metadata.contains_key(ID) {
            out.metadata.insert(ID.to_owned(), self.next());
        }
        if !out.metadata.contains_key(PHYSICAL_NAME) {
            let name = if self.keep_names {
                field.name.clone()
            } else {
                format!("col-{}", (self.generate_id)())
            };
            out.metadata
                .insert(PHYSICAL_NAME.to_owned(), Value::String(name));
        }
        out.data_type = self.data_type(&field.data_type);
        if self.nested {
            let mut ids = out
                .metadata
                .get(NESTED_IDS)
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            let prefix = out.physical_name().to_owned();
            self.elements(&out.data_type, &prefix, &mut ids);
            if !ids.is_empty() {
                out.metadata
                    .insert(NESTED_IDS.to_owned(), Value::Object(ids));
            }
        }
        out
    }

    fn data_type(&mut self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Struct(inner) => DataType::Struct(Arc::new(self.schema(inner))),
            DataType::Array(array) => DataType::Array(Arc::new(ArrayType {
                element: self.data_type(&array.element),
                contains_null: array.contains_null,
            })),
            DataType::Map(map) => {
                let (key, value) = (self.data_type(&map.key), self.data_type(&map.value));
                DataType::Map(Arc::new(MapType {
                    key,
                    value,
                    value_contains_null: map.value_contains_null,
                }))
            }
            other => other.clone(),
        }
    }

    /// Ids of the elements of arrays and maps below the nearest field, by their path in Parquet.
    fn elements(&mut self, data_type: &DataType, prefix: &str, ids: &mut Map<String, Value>) {
        let mut part = |this: &mut Self, name: &str, inner: &DataType| {
            let path = format!("{prefix}.{name}");
            if !ids.contains_key(&path) {
                ids.insert(path.clone(), this.next());
            }
            this.elements(inner, &path, ids);
        };
        match data_type {
            DataType::Array(array) => part(self, "element", &array.element),
            DataType::Map(map) => {
                part(self, "key", &map.key);
                part(self, "value", &map.value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_fields_are_left_out_at_any_depth() {
        let schema = StructType::parse(
            r#"{"type":"struct","fields":[{"name":"l","metadata":{"delta.columnMapping.id":1,"comment":"c"},"type":{"type":"array","elementType":
            {"type":"map","keyType":"string","valueType":{"type":"struct","fields":[{"name":"x","type":"long","metadata":
            {"delta.columnMapping.physicalName":"p","parquet.field.nested.ids":{}}}]}}}}]}"#,
        )
        .unwrap();
        let plain = without_metadata(&schema, &is_mapping);
        let mut keys = Vec::new();
        for_each_field(&plain, &mut |field| {
            keys.push((
                field.name.clone(),
                field.metadata.keys().cloned().collect::<Vec<_>>(),
            ));
        });
        assert_eq!(
            keys,
            [
                ("l".to_owned(), vec!["comment".to_owned()]),
                ("x".to_owned(), vec![])
            ]
        );
    }

    fn schema(fields: &[(&str, &str)]) -> StructType {
        StructType {
            fields: fields
                .iter()
                .map(|(name, data_type)| {
                    StructField::new(*name, DataType::from_name(data_type).unwrap(), true)
                })
                .collect(),
        }
    }

    #[test]
    fn bad_names_and_partitionings_are_refused_by_column() {
        let check = |fields: &[(&str, &str)], partition: &[&str]| {
            let partition: Vec<String> = partition.iter().map(ToString::to_string).collect();
            super::check(&schema(fields), &partition, true).map_err(|e| e.to_string())
        };
        assert!(check(&[("a", "long"), ("p", "date")], &["p"]).is_ok());
        assert!(check(&[("a b", "long")], &[]).is_ok());
        assert!(
            check(&[("a", "long"), ("A", "long")], &[])
                .unwrap_err()
                .contains("twice")
        );
        assert!(check(&[("", "long")], &[]).unwrap_err().contains("empty"));
        assert!(
            check(&[("_Change_Type", "long")], &[])
                .unwrap_err()
                .contains("_Change_Type")
        );
        assert!(
            check(&[("a", "long")], &["a"])
                .unwrap_err()
                .contains("all of its columns")
        );
        assert!(
            check(&[("a", "long")], &["b"])
                .unwrap_err()
                .contains("not in the schema")
        );
        assert!(
            check(&[("a", "long"), ("v", "variant")], &["v"])
                .unwrap_err()
                .contains("variant")
        );
        assert!(
            check(&[("a", "long"), ("b", "long"), ("c", "long")], &["b", "b"])
                .unwrap_err()
                .contains("twice")
        );
    }

    #[test]
    fn columns_with_statistics_are_checked_as_by_delta_spark() {
        let schema = StructType::parse(
            r#"{"type":"struct","fields":[{"name":"id","type":"long"},{"name":"p","type":"long"},{"name":"b","type":"boolean"},
            {"name":"n","type":"binary"},{"name":"v","type":"variant"},{"name":"l","type":{"type":"array","elementType":"long","containsNull":true}},
            {"name":"s","type":{"type":"struct","fields":[{"name":"x","type":"long"},{"name":"b","type":"boolean"},
            {"name":"l","type":{"type":"array","elementType":"long","containsNull":true}}]}}]}"#,
        )
        .unwrap();
        let check = |list: &str| {
            check_stats_columns(list, &schema, &["p".to_owned()]).map_err(|error| error.to_string())
        };
        for list in [
            "id",
            "ID",
            "id,ID",
            "s",
            "S.X",
            "s.x,s.b,s.l",
            "v",
            "`id`",
            "",
            "l.element",
        ] {
            assert_eq!(check(list), Ok(()), "{list}");
        }
        for (list, what) in [
            ("nope", "`nope`, which is not in the schema"),
            ("id,s.nope", "`s.nope`, which is not in the schema"),
            ("p", "`p`, a partition column"),
            ("l", "`l`, a column of type array<long>"),
            ("b", "of type boolean"),
            ("n", "of type binary"),
            ("id,id", "`id`, more than once"),
            ("s,s.x", "`s.x`, more than once"),
            ("id,", "is not a list of columns"),
        ] {
            assert!(
                check(list).unwrap_err().contains(what),
                "{list}: {:?}",
                check(list)
            );
        }
    }

    #[test]
    fn ids_only_grow_and_names_stay() {
        let nested = r#"{"type":"struct","fields":[
            {"name":"a","type":"long","nullable":true,"metadata":{"delta.columnMapping.id":7,"delta.columnMapping.physicalName":"x"}},
            {"name":"b","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"c","type":{"type":"map","keyType":"string","valueType":"long","valueContainsNull":true},"nullable":true,"metadata":{}}]},"containsNull":true},"nullable":true,"metadata":{}}]}"#;
        let schema = StructType::parse(nested).unwrap();
        let mut n = 0;
        let mut unique = || {
            n += 1;
            n.to_string()
        };
        let mut assign = ColumnMappingAssigner {
            max_id: max_column_id(&schema),
            keep_names: false,
            nested: true,
            generate_id: &mut unique,
        };
        let assigned = assign.schema(&schema);
        assert_eq!(assign.max_id, max_column_id(&assigned));
        assert_eq!(
            (
                assigned.fields[0].physical_name(),
                assigned.fields[0].field_id()
            ),
            ("x", Some(7))
        );
        assert_eq!(
            (
                assigned.fields[1].physical_name(),
                assigned.fields[1].field_id()
            ),
            ("col-1", Some(8))
        );
        let mut found = Vec::new();
        for_each_field(&assigned, &mut |f| {
            found.push((
                f.name.clone(),
                f.metadata.get(NESTED_IDS).map(ToString::to_string),
            ));
        });
        assert_eq!(found[1].1.as_deref(), Some(r#"{"col-1.element":12}"#));
        assert_eq!(
            found[2].1.as_deref(),
            Some(r#"{"col-2.key":10,"col-2.value":11}"#)
        );
        // A second time nothing changes.
        let mut unique = || unreachable!();
        let again = ColumnMappingAssigner {
            max_id: 12,
            keep_names: false,
            nested: true,
            generate_id: &mut unique,
        }
        .schema(&assigned);
        assert_eq!(again, assigned);
    }
}
