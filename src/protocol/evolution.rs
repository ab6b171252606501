//! Schema evolution: (table's schema, schema of the data) -> the schema that holds both. Pure;
//! append, overwrite and merge share it.
//!
//! Names are compared without case and keep the table's spelling. The table's types stay, since
//! data is cast to them; new fields come after existing ones, at every depth. A field takes a wider
//! type only where the table allows type widening.
//!
//! Protocol: "Schema Serialization Format", "Type Widening", "Writer Requirements for Type
//! Widening". Cost: a walk over both schemas.

use std::sync::Arc;

use arrow_schema::{DataType as Arrow, Field, Fields, Schema};
use serde_json::{Value, json};

use super::action::Protocol;
use super::features;
use super::schema::{ArrayType, DataType, MapType, StructField, StructType};
use super::schema_change;
use crate::error::{Error, Result, shown};

/// Field metadata that lists the types a column had.
pub const TYPE_CHANGES: &str = "delta.typeChanges";

/// The table schema for Arrow data. Unsigned integers become the signed type of their width, as in
/// the `deltalake` package: their values are checked when they are written.
///
/// # Errors
/// [`Error::Invalid`] names the column whose type Delta does not have.
pub fn from_arrow_schema(schema: &Schema) -> Result<StructType> {
    let field = |field: &Arc<Field>| {
        let settled = to_delta_field(field);
        let Some(DataType::Struct(one)) =
            DataType::from_arrow(&Arrow::Struct(vec![settled].into()))
        else {
            return Err(Error::invalid(format!(
                "Delta has no type for Arrow's {}; cast the column before writing it",
                field.data_type()
            ))
            .at_column(field.name()));
        };
        one.fields
            .first()
            .cloned()
            .ok_or_else(|| Error::internal("a struct of one field has none"))
    };
    Ok(StructType {
        fields: schema.fields().iter().map(field).collect::<Result<_>>()?,
    })
}

fn to_delta_field(field: &Field) -> Field {
    field
        .clone()
        .with_data_type(to_delta_type(field.data_type()))
}

/// The Delta type for an Arrow type without an exact counterpart in Delta.
fn to_delta_type(data_type: &Arrow) -> Arrow {
    let part = |field: &Field| Arc::new(to_delta_field(field));
    match data_type {
        Arrow::UInt8 => Arrow::Int8,
        Arrow::UInt16 => Arrow::Int16,
        Arrow::UInt32 => Arrow::Int32,
        Arrow::UInt64 => Arrow::Int64,
        Arrow::Float16 => Arrow::Float32,
        Arrow::Date64 => Arrow::Date32,
        // Delta has no type for more digits.
        Arrow::Decimal256(precision, scale) if *precision <= 38 => {
            Arrow::Decimal128(*precision, *scale)
        }
        Arrow::Dictionary(_, value) => to_delta_type(value),
        Arrow::RunEndEncoded(_, values) => to_delta_type(values.data_type()),
        Arrow::Struct(fields) => Arrow::Struct(fields.iter().map(|f| part(f)).collect::<Fields>()),
        Arrow::List(f)
        | Arrow::LargeList(f)
        | Arrow::ListView(f)
        | Arrow::LargeListView(f)
        | Arrow::FixedSizeList(f, _) => Arrow::List(part(f)),
        Arrow::Map(entries, sorted) => Arrow::Map(part(entries), *sorted),
        other => other.clone(),
    }
}

/// The table's schema with the additional fields of the data. `widens` says whether the table may
/// take wider types.
#[must_use]
pub fn merge(table: &StructType, data: &StructType, widens: bool) -> StructType {
    let mut fields: Vec<StructField> = table
        .fields
        .iter()
        .map(|field| match data.field(&field.name) {
            Some(new) => merge_field(field, &new.data_type, widens),
            None => field.clone(),
        })
        .collect();
    fields.extend(
        data.fields
            .iter()
            .filter(|field| table.field(&field.name).is_none())
            .map(added_field),
    );
    StructType {
        fields: fields.into(),
    }
}

/// A field that is added to a table: its older rows have no value, so it is nullable at every
/// depth.
fn added_field(field: &StructField) -> StructField {
    StructField {
        nullable: true,
        data_type: nullable(&field.data_type),
        ..field.clone()
    }
}

fn nullable(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(inner) => DataType::Struct(Arc::new(StructType {
            fields: inner.fields.iter().map(added_field).collect(),
        })),
        DataType::Array(array) => DataType::Array(Arc::new(ArrayType {
            element: nullable(&array.element),
            contains_null: true,
        })),
        DataType::Map(map) => DataType::Map(Arc::new(MapType {
            key: nullable(&map.key),
            value: nullable(&map.value),
            value_contains_null: true,
        })),
        other => other.clone(),
    }
}

fn merge_field(field: &StructField, data: &DataType, widens: bool) -> StructField {
    let mut changes = Vec::new();
    let data_type = merge_type(
        &field.data_type,
        data,
        widens,
        &mut Vec::new(),
        &mut changes,
    );
    let mut out = StructField {
        data_type,
        ..field.clone()
    };
    for (from, to, path) in changes {
        record_type_change(&mut out, &from, &to, &path);
    }
    out
}

/// Records that the type of a field, or of its element at `path`, was widened.
pub fn record_type_change(field: &mut StructField, from: &DataType, to: &DataType, path: &str) {
    let mut change = json!({"fromType": from.to_string(), "toType": to.to_string()});
    if let (false, Some(change)) = (path.is_empty(), change.as_object_mut()) {
        change.insert("fieldPath".to_owned(), path.into());
    }
    match field
        .metadata
        .get_mut(TYPE_CHANGES)
        .and_then(Value::as_array_mut)
    {
        Some(list) => list.push(change),
        None => {
            field
                .metadata
                .insert(TYPE_CHANGES.to_owned(), json!([change]));
        }
    }
}

type TypeChangeList = Vec<(DataType, DataType, String)>;

fn merge_type(
    table: &DataType,
    data: &DataType,
    widens: bool,
    path: &mut Vec<&'static str>,
    changes: &mut TypeChangeList,
) -> DataType {
    let mut part = |name: &'static str, table: &DataType, data: &DataType| {
        path.push(name);
        let out = merge_type(table, data, widens, path, changes);
        path.pop();
        out
    };
    match (table, data) {
        (DataType::Void, other) => nullable(other),
        (DataType::Struct(a), DataType::Struct(b)) => {
            DataType::Struct(Arc::new(merge(a, b, widens)))
        }
        (DataType::Array(a), DataType::Array(b)) => DataType::Array(Arc::new(ArrayType {
            element: part("element", &a.element, &b.element),
            contains_null: a.contains_null,
        })),
        (DataType::Map(a), DataType::Map(b)) => DataType::Map(Arc::new(MapType {
            key: part("key", &a.key, &b.key),
            value: part("value", &a.value, &b.value),
            value_contains_null: a.value_contains_null,
        })),
        (from, to) if widens && is_implicit_widening(from, to) => {
            changes.push((from.clone(), to.clone(), path.join(".")));
            to.clone()
        }
        (same, _) => same.clone(),
    }
}

/// Whether a type may be widened to the other one automatically by schema evolution.
fn is_implicit_widening(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Byte, DataType::Short | DataType::Integer | DataType::Long)
        | (DataType::Short, DataType::Integer | DataType::Long)
        | (DataType::Integer, DataType::Long)
        | (DataType::Float, DataType::Double)
        | (DataType::Date, DataType::TimestampNtz) => true,
        (DataType::Decimal(p, s), DataType::Decimal(p2, s2)) => {
            (p, s) != (p2, s2)
                && s2 >= s
                && i16::from(*p2) - i16::from(*p) >= i16::from(*s2) - i16::from(*s)
        }
        _ => false,
    }
}

/// Whether the protocol allows a column to change from one type to the other without rewriting its
/// files.
#[must_use]
pub fn can_widen(from: &DataType, to: &DataType) -> bool {
    let digits = match from {
        DataType::Byte | DataType::Short | DataType::Integer => 10,
        DataType::Long => 20,
        _ => 0,
    };
    match (from, to) {
        (DataType::Byte | DataType::Short | DataType::Integer, DataType::Double) => true,
        (_, DataType::Decimal(p, s)) if digits > 0 => i16::from(*p) - i16::from(*s) >= digits,
        _ => is_implicit_widening(from, to),
    }
}

/// Checks that every type change in a schema is one of the protocol's: readers must refuse a table
/// with any other, whatever types its files have.
///
/// # Errors
/// [`Error::Unsupported`] names the column and the change; [`Error::Corrupt`] for an entry that
/// cannot be read.
pub fn check_changes(protocol: &Protocol, schema: &StructType) -> Result<()> {
    let supported = features::supported(protocol);
    let Some(feature) = ["typeWidening", "typeWidening-preview"]
        .into_iter()
        .find(|name| supported.contains(*name))
    else {
        return Ok(());
    };
    let mut found = Ok(());
    schema_change::for_each_field(schema, &mut |field| {
        if let (Ok(()), Some(changes)) = (&found, field.metadata.get(TYPE_CHANGES)) {
            found =
                check_field_changes(feature, changes).map_err(|error| error.at_column(&field.name));
        }
    });
    found
}

fn check_field_changes(feature: &str, changes: &Value) -> Result<()> {
    let Some(changes) = changes.as_array() else {
        return Err(Error::corrupt(format!("`{TYPE_CHANGES}` is not a list")));
    };
    for change in changes {
        let side = |key: &str| change.get(key).and_then(Value::as_str);
        let (Some(from), Some(to)) = (side("fromType"), side("toType")) else {
            return Err(Error::corrupt(format!(
                "an entry of `{TYPE_CHANGES}` has no `fromType` or no `toType`"
            )));
        };
        let known = DataType::from_name(from)
            .ok()
            .zip(DataType::from_name(to).ok());
        if known.is_none_or(|(from, to)| from != to && !can_widen(&from, &to)) {
            return Err(Error::unsupported_feature(
                feature,
                format!(
                    "the type was changed from {} to {}, which deltafast cannot read; upgrade deltafast, or rewrite the column with the engine that changed it",
                    shown(from),
                    shown(to)
                ),
            ));
        }
    }
    Ok(())
}

/// Whether Iceberg also supports the change from one type to the other.
#[must_use]
pub fn widens_in_iceberg(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Byte, DataType::Short | DataType::Integer | DataType::Long)
        | (DataType::Short, DataType::Integer | DataType::Long)
        | (DataType::Integer, DataType::Long)
        | (DataType::Float, DataType::Double) => true,
        (DataType::Decimal(_, a), DataType::Decimal(_, b)) => a == b,
        _ => false,
    }
}

/// The schema of data that replaces a table's data: columns that keep name and type keep the
/// table's metadata (ids, physical names, comments).
#[must_use]
pub fn replace(table: &StructType, data: &StructType) -> StructType {
    let field = |new: &StructField| match table.field(&new.name) {
        Some(old) if old.data_type == new.data_type => StructField {
            metadata: old.metadata.clone(),
            ..new.clone()
        },
        _ => new.clone(),
    };
    StructType {
        fields: data.fields.iter().map(field).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::table::base_protocol;

    fn schema(text: &str) -> StructType {
        StructType::parse(text).unwrap()
    }

    fn fields(list: &[(&str, DataType)]) -> StructType {
        StructType {
            fields: list
                .iter()
                .map(|(name, data_type)| StructField::new(*name, data_type.clone(), true))
                .collect(),
        }
    }

    #[test]
    fn new_fields_come_last_at_every_depth_and_can_be_null() {
        let inner = |list: &[(&str, DataType)]| DataType::Struct(Arc::new(fields(list)));
        let table = fields(&[
            ("A", DataType::Long),
            ("s", inner(&[("x", DataType::Long)])),
        ]);
        let mut data = fields(&[
            (
                "s",
                inner(&[("y", DataType::Date), ("X", DataType::Integer)]),
            ),
            ("b", DataType::String),
            ("a", DataType::Integer),
        ]);
        data.fields[1].nullable = false;
        let merged = merge(&table, &data, false);
        let expected = fields(&[
            ("A", DataType::Long),
            ("s", inner(&[("x", DataType::Long), ("y", DataType::Date)])),
            ("b", DataType::String),
        ]);
        assert_eq!(merged, expected);
    }

    #[test]
    fn void_takes_any_type_and_nothing_else_changes() {
        let table = fields(&[("v", DataType::Void), ("i", DataType::Integer)]);
        let data = fields(&[("v", DataType::Date), ("i", DataType::Long)]);
        assert_eq!(
            merge(&table, &data, false),
            fields(&[("v", DataType::Date), ("i", DataType::Integer)])
        );
        assert_eq!(
            merge(&table, &fields(&[("i", DataType::Void)]), true),
            table
        );
    }

    #[test]
    fn wider_types_are_noted_at_the_nearest_field() {
        let table = schema(
            r#"{"type":"struct","fields":[{"name":"a","type":"integer","nullable":true,"metadata":{}},
            {"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"short","containsNull":true},"valueContainsNull":true},"nullable":true,"metadata":{}}]}"#,
        );
        let array = DataType::Array(Arc::new(ArrayType {
            element: DataType::Long,
            contains_null: true,
        }));
        let map = DataType::Map(Arc::new(MapType {
            key: DataType::String,
            value: array,
            value_contains_null: true,
        }));
        let merged = merge(
            &table,
            &fields(&[("a", DataType::Long), ("m", map.clone())]),
            true,
        );
        assert_eq!(
            merged.fields[0].metadata[TYPE_CHANGES].to_string(),
            r#"[{"fromType":"integer","toType":"long"}]"#
        );
        assert_eq!(merged.fields[1].data_type, map);
        assert_eq!(
            merged.fields[1].metadata[TYPE_CHANGES].to_string(),
            r#"[{"fieldPath":"value.element","fromType":"short","toType":"long"}]"#
        );
        assert_eq!(
            merge(&merged, &fields(&[("a", DataType::Integer)]), true),
            merged
        );
    }

    #[test]
    fn widening_keeps_every_value() {
        let decimal = DataType::Decimal;
        for (from, to, by_itself, possible) in [
            (DataType::Byte, DataType::Long, true, true),
            (DataType::Long, DataType::Integer, false, false),
            (DataType::Integer, DataType::Double, false, true),
            (DataType::Long, DataType::Double, false, false),
            (decimal(5, 2), decimal(7, 4), true, true),
            (decimal(5, 2), decimal(6, 4), false, false),
            (DataType::Integer, decimal(10, 0), false, true),
            (DataType::Integer, decimal(10, 1), false, false),
            (DataType::Date, DataType::TimestampNtz, true, true),
            (DataType::Date, DataType::Timestamp, false, false),
        ] {
            assert_eq!(
                (is_implicit_widening(&from, &to), can_widen(&from, &to)),
                (by_itself, possible),
                "{from} {to}"
            );
        }
    }

    #[test]
    fn changes_that_cannot_be_read_are_refused_where_the_feature_is_supported() {
        let with = |changes: &str| {
            schema(&format!(
                r#"{{"type":"struct","fields":[{{"name":"v","type":"long","metadata":{{"{TYPE_CHANGES}":{changes}}}}}]}}"#
            ))
        };
        let check = |changes: &str, feature: &str| {
            let protocol = features::with_features(&base_protocol(), &[feature.to_owned()].into());
            check_changes(&protocol, &with(changes)).map_err(|error| error.to_string())
        };
        for changes in [
            "[]",
            r#"[{"fromType":"integer","toType":"long"}]"#,
            r#"[{"fromType":"long","toType":"long"}]"#,
        ] {
            assert_eq!(check(changes, "typeWidening"), Ok(()), "{changes}");
        }
        let unknown =
            r#"[{"fromType":"integer","toType":"long"},{"fromType":"string","toType":"long"}]"#;
        for feature in ["typeWidening", "typeWidening-preview"] {
            let message = check(unknown, feature).unwrap_err();
            assert!(
                message.contains("from string to long") && message.contains("column `v`"),
                "{message}"
            );
        }
        assert_eq!(check(unknown, "appendOnly"), Ok(()));
        for (changes, what) in [
            (
                r#"[{"fromType":"tiny","toType":"huge"}]"#,
                "from tiny to huge",
            ),
            (r#"[{"toType":"long"}]"#, "no `fromType`"),
            ("7", "not a list"),
        ] {
            assert!(
                check(changes, "typeWidening").unwrap_err().contains(what),
                "{changes}"
            );
        }
    }

    #[test]
    fn arrow_types_settle_on_deltas() {
        let list = Arrow::LargeList(Arc::new(Field::new("item", Arrow::UInt16, true)));
        let dictionary = Arrow::Dictionary(Box::new(Arrow::Int8), Box::new(Arrow::Utf8View));
        let arrow = Schema::new(vec![
            Field::new("l", list, true),
            Field::new("d", dictionary, false),
            Field::new("t", Arrow::Date64, true),
        ]);
        let types: Vec<String> = from_arrow_schema(&arrow)
            .unwrap()
            .fields
            .iter()
            .map(|f| f.data_type.to_string())
            .collect();
        assert_eq!(types, ["array<short>", "string", "date"]);
        let odd = Schema::new(vec![Field::new(
            "x",
            Arrow::Duration(arrow_schema::TimeUnit::Second),
            true,
        )]);
        assert!(
            from_arrow_schema(&odd)
                .unwrap_err()
                .to_string()
                .contains("column `x`")
        );
    }

    #[test]
    fn replaced_columns_keep_their_metadata_with_their_type() {
        let table = schema(
            r#"{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{"comment":"c"}},{"name":"b","type":"long","nullable":true,"metadata":{"comment":"d"}}]}"#,
        );
        let replaced = replace(
            &table,
            &fields(&[("b", DataType::String), ("A", DataType::Long)]),
        );
        assert!(replaced.fields[0].metadata.is_empty());
        assert_eq!(
            (
                replaced.fields[1].name.as_str(),
                replaced.fields[1].metadata["comment"].as_str()
            ),
            ("A", Some("c"))
        );
    }
}
