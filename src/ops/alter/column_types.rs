//! Changes of a column's type, nullability and metadata, and identity columns in step with their values.

use super::alter_command::{AlterCommand, AlteredTable, CHANGE_COLUMN, field_json, json_string};
use super::schema_edit::{field_depth, transform_field};
use super::table_change::TableChange;
use crate::commit::CommitOperation;
use crate::error::{Error, ErrorCode, Result, invariant, shown};
use crate::expr::{BoundExpr, Expr, Function};
use crate::file_writer::bound_constraints::{self};
use crate::ops::alter::column_use::ColumnChange;
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::evolution;
use crate::protocol::features::{self};
use crate::protocol::iceberg::enabled_iceberg_compat;
use crate::protocol::schema::{DECLARED_TYPE, DataType, StringLayout, StructField, StructType};
use crate::scan::{self, ScanRequest};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use serde_json::{Map, Value, json};

/// Whether Spark casts every value of the type without a loss of range, although files of the one
/// cannot be read as the other.
fn is_upcast(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match to {
        T::String => from.is_primitive(),
        T::Float | T::Double => {
            matches!(from, T::Byte | T::Short | T::Integer | T::Long | T::Float)
        }
        _ => false,
    }
}

fn not_identity(column: &str) -> Error {
    Error::invalid(
        "the column is not an identity column, so there is nothing to bring in step with its values",
    )
    .with_code(ErrorCode::NotAnIdentityColumn, &[("column", &column)])
    .at_column(column)
}

/// Whether two types differ only in comments and the like, and in what may be null.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.fields.len() == b.fields.len()
                && a.fields.iter().zip(&b.fields).all(|(a, b)| {
                    a.name.to_lowercase() == b.name.to_lowercase()
                        && same_type(&a.data_type, &b.data_type)
                })
        }
        (DataType::Array(a), DataType::Array(b)) => same_type(&a.element, &b.element),
        (DataType::Map(a), DataType::Map(b)) => {
            same_type(&a.key, &b.key) && same_type(&a.value, &b.value)
        }
        (a, b) => a == b,
    }
}

/// Sets the length of a string column; it can only become larger.
fn set_length(field: &mut StructField, length: Option<&str>) -> Result<()> {
    /// The type and its length.
    fn parsed(text: &str) -> Option<(&str, u64)> {
        let (name, rest) = text.split_once('(')?;
        Some((name, rest.strip_suffix(')')?.trim().parse().ok()?))
    }
    let old = field.metadata.get(DECLARED_TYPE).and_then(Value::as_str);
    let grows = match (old.and_then(parsed), length.and_then(parsed)) {
        _ if old == length => true,
        (Some(_), None) => length.is_none(),
        (Some((_, old)), Some(("varchar", new))) => old <= new,
        _ => false,
    };
    if !grows {
        let (from, to) = (old.unwrap_or("string"), shown(length.unwrap_or("string")));
        return Err(Error::invalid(format!(
            "the type {from} cannot become {to}: existing values may be longer"
        ))
        .with_code(
            ErrorCode::UnsupportedTypeChange,
            &[("column", &field.name), ("from", &from), ("to", &to)],
        ));
    }
    match length {
        Some(length) => {
            _ = field
                .metadata
                .insert(DECLARED_TYPE.to_owned(), length.into());
        }
        None => _ = field.metadata.remove(DECLARED_TYPE),
    }
    Ok(())
}

/// Adds what is recorded of the change of a column to what is recorded of previous changes.
fn record_column_change(said: &mut Vec<Map<String, Value>>, mut parameters: Map<String, Value>) {
    let column = parameters.remove("column").unwrap_or_default();
    let column = serde_json::from_str(column.as_str().unwrap_or_default());
    let mut entry: Map<String, Value> = column.unwrap_or_default();
    entry.append(&mut parameters);
    match said
        .last_mut()
        .filter(|last| last.get("name") == entry.get("name"))
    {
        Some(last) => last.append(&mut entry),
        None => said.push(entry),
    }
}

impl AlterCommand<'_> {
    pub(super) fn change_columns(&self, changes: &[TableChange]) -> Result<AlteredTable> {
        let (mut protocol, mut metadata, mut reads_all, mut said) = (
            self.protocol.clone(),
            self.old_metadata.clone(),
            false,
            Vec::new(),
        );
        for change in changes {
            let schema = StructType::parse(&metadata.schema_string)?;
            let step = AlterCommand {
                protocol: &protocol,
                old_metadata: &metadata,
                schema: &schema,
                ..*self
            }
            .apply(change)?;
            invariant!(
                step.operation.name == CHANGE_COLUMN,
                "{} is not a change of a column",
                step.operation.name
            );
            record_column_change(&mut said, step.operation.parameters);
            reads_all |= step.reads_all;
            (protocol, metadata) = (step.protocol, step.metadata);
        }
        let operation = match <[Map<String, Value>; 1]>::try_from(said) {
            Ok([mut column]) => {
                let position = column.remove("position").unwrap_or_default();
                let column = json_string(&Value::Object(column));
                let parameters = [("column", column), ("position", position)];
                CommitOperation::with_parameters(CHANGE_COLUMN, parameters)
            }
            Err(columns) => CommitOperation::with_parameters(
                "CHANGE COLUMNS",
                [("columns", json_string(&json!(columns)))],
            ),
        };
        Ok(AlteredTable {
            protocol,
            reads_all,
            ..self.metadata(metadata, operation)
        })
    }

    pub(super) fn sync_identity(&self, column: &str) -> Result<AlteredTable> {
        let (path, schema) = (self.path(column)?, self.schema);
        let [name] = path.as_slice() else {
            return Err(not_identity(column));
        };
        let identities = bound_constraints::identities(self.protocol, schema)?;
        let (Some(identity), Some(field)) = (
            identities
                .into_iter()
                .find(|identity| identity.column == *name),
            schema.field(name),
        ) else {
            return Err(not_identity(name));
        };
        let request = ScanRequest {
            columns: Some(vec![name.clone()]),
            layout: StringLayout::Plain,
            cancel: self.cancel.clone(),
            ..ScanRequest::default()
        };
        let mut last: Option<i64> = None;
        for batch in scan::scan(self.snapshot, &request)?.batches {
            let batch = batch?;
            let values = batch
                .columns()
                .first()
                .and_then(|column| column.as_primitive_opt::<Int64Type>());
            for value in values.into_iter().flatten().flatten() {
                last = Some(last.map_or(value, |last| {
                    if identity.step > 0 {
                        last.max(value)
                    } else {
                        last.min(value)
                    }
                }));
            }
        }
        let said = field_json(name, field);
        let mark = last.and_then(|last| bound_constraints::advanced_high_water_mark(field, last));
        let schema = mark.map_or_else(
            || schema.clone(),
            |mark| bound_constraints::with_high_water_marks(schema, &[(name.clone(), mark)]),
        );
        let altered = self.with_schema(
            self.old_metadata,
            &schema,
            CommitOperation::with_parameters(CHANGE_COLUMN, [("column", json_string(&said))]),
        )?;
        Ok(AlteredTable {
            reads_all: true,
            ..altered
        })
    }

    /// Whether the table widens types.
    pub(super) fn widens(&self) -> bool {
        features::supported(self.protocol)
            .iter()
            .any(|name| name.starts_with("typeWidening"))
            && self.old_metadata.flag("delta.enableTypeWidening")
    }

    /// Whether the files allow one type to become the other.
    pub(super) fn can_widen(&self, from: &DataType, to: &DataType) -> bool {
        evolution::can_widen(from, to)
            && (enabled_iceberg_compat(self.old_metadata).is_none()
                || evolution::widens_in_iceberg(from, to))
    }

    pub(super) fn change_type(
        &self,
        column: &str,
        to: &DataType,
        length: Option<&str>,
    ) -> Result<AlteredTable> {
        let path = self.path(column)?;
        let (mut said, mut widened_from) = (Value::Null, None);
        let mut schema = transform_field(self.schema, &path, &mut |field| {
            let mut out = field.clone();
            if *to == DataType::String && field.data_type == DataType::String {
                set_length(&mut out, length).map_err(|error| error.at_column(column))?;
            } else if !same_type(&field.data_type, to) {
                self.check_widening(&path, column, &field.data_type, to)?;
                widened_from = Some(field.data_type.clone());
                out.data_type = to.clone();
            }
            said = field_json(&path.join("."), &out);
            Ok(Some(out))
        })?;
        if let Some(from) = widened_from {
            let (field, part) = path.split_at(field_depth(self.schema, &path));
            schema = transform_field(&schema, field, &mut |field| {
                let mut out = field.clone();
                evolution::record_type_change(&mut out, &from, to, &part.join("."));
                Ok(Some(out))
            })?;
        }
        self.with_schema(
            self.old_metadata,
            &schema,
            CommitOperation::with_parameters(CHANGE_COLUMN, [("column", json_string(&said))]),
        )
    }

    /// Refuses a change of a type that needs other files.
    fn check_widening(
        &self,
        path: &[String],
        column: &str,
        from: &DataType,
        to: &DataType,
    ) -> Result<()> {
        let nested_code = match to {
            DataType::Struct(_) => Some(ErrorCode::StructTypeReplaced),
            DataType::Array(_) => Some(ErrorCode::ArrayTypeReplaced),
            DataType::Map(_) => Some(ErrorCode::MapTypeReplaced),
            _ => None,
        };
        if let Some(code) = nested_code {
            return Err(Error::invalid(format!(
                "the type {from} cannot become {to} as a whole; change its fields, `{column}.element`, `{column}.key` or `{column}.value`"
            ))
            .with_code(code, &[("column", &column)])
            .at_column(column));
        }
        if !self.can_widen(from, to) {
            return Err(Error::invalid(format!(
                "the type {from} cannot become {to} without rewriting files"
            ))
            .with_code(
                if is_upcast(from, to) {
                    ErrorCode::UpcastNeedsRewrite
                } else {
                    ErrorCode::UnsupportedTypeChange
                },
                &[("column", &column), ("from", from), ("to", to)],
            )
            .at_column(column));
        }
        if !self.widens() {
            return Err(Error::invalid("a type can be changed where the table widens types; set `delta.enableTypeWidening` to `true` first").with_code(ErrorCode::TypeWideningDisabled, &[("column", &column)]).at_column(column));
        }
        self.check_unreferenced(path, ColumnChange::Retype, false)?;
        Ok(())
    }

    pub(super) fn set_nullable(&self, column: &str, nullable: bool) -> Result<AlteredTable> {
        let path = self.path(column)?;
        let mut said = Value::Null;
        let schema = transform_field(self.schema, &path, &mut |field| {
            let out = StructField {
                nullable,
                ..field.clone()
            };
            said = field_json(&path.join("."), &out);
            Ok(Some(out))
        })?;
        let mut altered = self.with_schema(
            self.old_metadata,
            &schema,
            CommitOperation::with_parameters(CHANGE_COLUMN, [("column", json_string(&said))]),
        )?;
        if !nullable && altered.metadata != *self.old_metadata {
            let [name] = path.as_slice() else {
                return Err(Error::unsupported(
                    "only a column, not a field within one, can be made NOT NULL later",
                )
                .at_column(column));
            };
            let data_type = self
                .schema
                .field(name)
                .map_or(DataType::Void, |field| field.data_type.clone());
            let column = Expr::Column {
                path: path.clone(),
                data_type,
            };
            let null = BoundExpr {
                expr: Expr::call(Function::IsNull, vec![column], DataType::Boolean)?,
                ansi: true,
                zone: TimeZoneSpec::UTC,
            };
            if let Some(row) = self.first_row(&null)? {
                return Err(Error::constraint_violated(
                    "NOT NULL",
                    format!("the column `{name}` is null in a row that is there: {row}"),
                )
                .at_column(name));
            }
            altered.reads_all = true;
        }
        Ok(altered)
    }

    pub(super) fn set_column_metadata(
        &self,
        column: &str,
        metadata: &Map<String, Value>,
    ) -> Result<AlteredTable> {
        let path = self.path(column)?;
        if let Some(key) = metadata.keys().find(|key| {
            key.starts_with("delta.") || *key == "__COLLATIONS" || *key == DECLARED_TYPE
        }) {
            return Err(Error::invalid(format!(
                "the key `{}` of a column's metadata is the protocol's",
                shown(key)
            ))
            .at_column(column));
        }
        let mut said = Value::Null;
        let schema = transform_field(self.schema, &path, &mut |field| {
            let mut out = field.clone();
            for (key, value) in metadata {
                match value {
                    Value::Null => _ = out.metadata.remove(key),
                    value => _ = out.metadata.insert(key.clone(), value.clone()),
                }
            }
            said = field_json(&path.join("."), &out);
            Ok(Some(out))
        })?;
        self.with_schema(
            self.old_metadata,
            &schema,
            CommitOperation::with_parameters(CHANGE_COLUMN, [("column", json_string(&said))]),
        )
    }
}
