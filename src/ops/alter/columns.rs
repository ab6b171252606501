//! ADD, DROP, RENAME, REPLACE and moves of columns.

use super::alter_command::{AlterCommand, AlteredTable, CHANGE_COLUMN, field_json, json_string};
use super::replace_columns;
use super::schema_edit::{is_within, move_field, transform_column_list, transform_field};
use super::table_change::{SchemaJson, given_columns};
use crate::commit::CommitOperation;
use crate::commit::finish::json_string_list;
use crate::error::{Error, ErrorCode, Result};
use crate::file_writer::bound_constraints::{self};
use crate::ops::alter::column_use::ColumnChange;
use crate::ops::create::{GENERATED, generated_value_key};
use crate::ops::rewrite::column_path::resolve_column_path;
use crate::protocol::action::Metadata;
use crate::protocol::evolution;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::properties::STATS_COLUMNS;
use crate::protocol::schema::{DataType, StructField, StructType};
use serde_json::{Value, json};

/// The new position of a column as recorded in the log.
fn position_clause(after: Option<&str>) -> String {
    after.map_or_else(|| "FIRST".to_owned(), |after| format!("AFTER {after}"))
}

/// Refuses a new column whose values would have to be generated for existing rows.
fn check_no_generated_value(field: &StructField) -> Result<()> {
    let Some(key) = generated_value_key(field) else {
        return Ok(());
    };
    let what = if key == GENERATED {
        "New columns cannot be a generated column:".to_owned()
    } else {
        format!("a column cannot be added with `{key}`:")
    };
    Err(Error::invalid(format!(
        "{what} the rows that are there would need values; add it without"
    ))
    .with_code(ErrorCode::AddedColumnWithValues, &[("column", &field.name)])
    .at_column(&field.name))
}

/// The metadata without dropped columns in the list of columns with statistics.
fn without_stats_columns(metadata: &Metadata, dropped: &[Vec<String>]) -> Metadata {
    let mut metadata = metadata.clone();
    if let Some(list) = metadata.configuration.get_mut(STATS_COLUMNS) {
        *list = transform_column_list(list, &|path| {
            (!dropped.iter().any(|dropped| is_within(&path, dropped))).then_some(path)
        });
    }
    metadata
}

/// Calls `visit` for every column or field that `added` adds to a schema, with its path.
fn new_fields(
    schema: &StructType,
    added: &StructType,
    prefix: &str,
    visit: &mut dyn FnMut(&str, &StructField),
) {
    for field in &added.fields {
        let old = schema.field(&field.name);
        let path = format!("{prefix}{}", old.map_or(&field.name, |old| &old.name));
        match old {
            Some(old) => new_fields_within(&old.data_type, &field.data_type, &path, visit),
            None => visit(&path, field),
        }
    }
}

/// The same for a type within a column.
fn new_fields_within(
    old: &DataType,
    added: &DataType,
    path: &str,
    visit: &mut dyn FnMut(&str, &StructField),
) {
    match (old, added) {
        (DataType::Struct(old), DataType::Struct(added)) => {
            new_fields(old, added, &format!("{path}."), visit);
        }
        (DataType::Array(old), DataType::Array(added)) => {
            new_fields_within(
                &old.element,
                &added.element,
                &format!("{path}.element"),
                visit,
            );
        }
        (DataType::Map(old), DataType::Map(added)) => {
            new_fields_within(&old.key, &added.key, &format!("{path}.key"), visit);
            new_fields_within(&old.value, &added.value, &format!("{path}.value"), visit);
        }
        _ => {}
    }
}

impl AlterCommand<'_> {
    pub(super) fn add_columns(
        &self,
        fields: &SchemaJson,
        positions: &[(String, Option<String>)],
    ) -> Result<AlteredTable> {
        let added = given_columns(fields)?;
        let schema = self.schema;
        for field in &added.fields {
            check_no_generated_value(field)?;
            if !field.nullable {
                return Err(Error::invalid(
                    "a new column must be nullable: the rows that are there have no value for it",
                )
                .with_code(ErrorCode::AddedColumnNotNull, &[("column", &field.name)])
                .at_column(&field.name));
            }
            let old = schema.field(&field.name);
            let grows = old.is_some_and(|old| {
                let one = |field: &StructField| StructType {
                    fields: vec![StructField {
                        name: old.name.clone(),
                        ..field.clone()
                    }]
                    .into(),
                };
                evolution::merge(&one(old), &one(field), false) != one(old)
            });
            if old.is_some() && !grows {
                return Err(Error::invalid(format!(
                    "the table has a column `{}` already",
                    field.name
                ))
                .with_code(ErrorCode::ColumnExists, &[("column", &field.name)])
                .at_column(&field.name));
            }
        }
        let mut said = Vec::new();
        new_fields(schema, &added, "", &mut |path, field| {
            let place = positions
                .iter()
                .find(|(column, _)| column.eq_ignore_ascii_case(path))
                .map(|(_, after)| position_clause(after.as_deref()));
            let mut one = json!({"column": field_json(path, field)});
            if let (Some(place), Some(one)) = (place, one.as_object_mut()) {
                one.insert("position".to_owned(), place.into());
            }
            said.push(one);
        });
        let mut merged = evolution::merge(schema, &added, false);
        for (column, after) in positions {
            merged = move_field(
                &merged,
                &resolve_column_path(&merged, column)?,
                after.as_deref(),
            )?;
        }
        self.with_schema(
            self.old_metadata,
            &merged,
            CommitOperation::with_parameters(
                "ADD COLUMNS",
                [("columns", json_string(&json!(said)))],
            ),
        )
    }

    pub(super) fn move_column(&self, column: &str, after: Option<&str>) -> Result<AlteredTable> {
        let path = self.path(column)?;
        let mut said = Value::Null;
        let schema = transform_field(
            &move_field(self.schema, &path, after)?,
            &path,
            &mut |field| {
                said = field_json(&path.join("."), field);
                Ok(Some(field.clone()))
            },
        )?;
        let parameters = [
            ("column", json_string(&said)),
            ("position", Value::from(position_clause(after))),
        ];
        self.with_schema(
            self.old_metadata,
            &schema,
            CommitOperation::with_parameters(CHANGE_COLUMN, parameters),
        )
    }

    fn check_column_mapping(&self, change: ColumnChange) -> Result<()> {
        if features::column_mapping(self.protocol, self.old_metadata)? == ColumnMapping::None {
            return Err(Error::invalid(format!(
                "columns can be {change} where the table maps columns; set `delta.columnMapping.mode` to `name` first"
            ))
            .with_code(change.needs_mapping_code(), &[]));
        }
        Ok(())
    }

    pub(super) fn drop_columns(&self, columns: &[String]) -> Result<AlteredTable> {
        self.check_column_mapping(ColumnChange::Drop)?;
        let mut schema = self.schema.clone();
        let (mut paths, mut dropped) = (Vec::new(), Vec::new());
        for column in columns {
            let path = self.field_path(column, ColumnChange::Drop)?;
            self.check_unreferenced(&path, ColumnChange::Drop, true)?;
            schema = transform_field(&schema, &path, &mut |_| Ok(None))?;
            paths.push(path.join("."));
            dropped.push(path);
        }
        if schema.fields.is_empty() {
            return Err(Error::invalid("a table must keep at least one column")
                .with_code(ErrorCode::LastColumnDropped, &[]));
        }
        let metadata = without_stats_columns(self.old_metadata, &dropped);
        self.with_schema(
            &metadata,
            &schema,
            CommitOperation::with_parameters(
                "DROP COLUMNS",
                [("columns", json_string_list(&paths))],
            ),
        )
    }

    pub(super) fn rename_column(&self, column: &str, name: &str) -> Result<AlteredTable> {
        self.check_column_mapping(ColumnChange::Rename)?;
        let path = self.field_path(column, ColumnChange::Rename)?;
        self.check_unreferenced(&path, ColumnChange::Rename, false)?;
        let mut metadata = self.old_metadata.clone();
        if path.len() == 1 {
            for partition in metadata
                .partition_columns
                .iter_mut()
                .filter(|partition| path.first() == Some(*partition))
            {
                name.clone_into(partition);
            }
        }
        let mut new_path = path.clone();
        if let Some(last) = new_path.last_mut() {
            name.clone_into(last);
        }
        if let Some(list) = metadata.configuration.get_mut(STATS_COLUMNS) {
            let renamed = |named: Vec<String>| {
                new_path
                    .iter()
                    .chain(named.get(path.len()..).unwrap_or_default())
                    .cloned()
                    .collect()
            };
            *list = transform_column_list(list, &|named| {
                Some(if is_within(&named, &path) {
                    renamed(named)
                } else {
                    named
                })
            });
        }
        let schema = transform_field(self.schema, &path, &mut |field| {
            Ok(Some(StructField {
                name: name.to_owned(),
                ..field.clone()
            }))
        })?;
        let parameters = [
            ("oldColumnPath", Value::from(path.join("."))),
            ("newColumnPath", Value::from(new_path.join("."))),
        ];
        self.with_schema(
            &metadata,
            &schema,
            CommitOperation::with_parameters("RENAME COLUMN", parameters),
        )
    }

    pub(super) fn replace_columns(&self, fields: &SchemaJson) -> Result<AlteredTable> {
        if !bound_constraints::identities(self.protocol, self.schema)?.is_empty() {
            return Err(Error::invalid(
                "REPLACE COLUMNS is not possible for a table with identity columns; use ADD COLUMNS, DROP COLUMNS and ALTER COLUMN",
            )
            .with_code(ErrorCode::ReplaceColumnsWithIdentity, &[]));
        }
        let columns = given_columns(fields)?;
        let metadata = self.old_metadata;
        let mapped = features::column_mapping(self.protocol, metadata)? != ColumnMapping::None;
        let can_widen = |from: &DataType, to: &DataType| self.widens() && self.can_widen(from, to);
        let mut replacement = replace_columns::ColumnReplacement::new(mapped, &can_widen);
        let schema = replacement.replace_struct(self.schema, &columns, &[])?;
        for path in &replacement.dropped {
            self.check_unreferenced(path, ColumnChange::Drop, true)?;
        }
        for path in &replacement.retyped {
            self.check_unreferenced(path, ColumnChange::Retype, false)?;
        }
        for field in &columns.fields {
            if self.schema.field(&field.name).is_none() {
                check_no_generated_value(field)?;
            }
        }
        let said: Vec<Value> = columns
            .fields
            .iter()
            .map(|field| field_json(&field.name, field))
            .collect();
        self.with_schema(
            &without_stats_columns(metadata, &replacement.dropped),
            &schema,
            CommitOperation::with_parameters(
                "REPLACE COLUMNS",
                [("columns", json_string(&json!(said)))],
            ),
        )
    }
}
