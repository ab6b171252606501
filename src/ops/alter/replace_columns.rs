//! REPLACE COLUMNS: the schema of a table with the columns of a list. Pure.
//!
//! Existing columns keep spelling, metadata and, if none is given, the comment. They take the order
//! of the list; the same holds for the fields of structs at every depth.
//!
//! Protocol: "Schema Serialization Format", "Column Mapping", "Type Widening". Cost: a walk over
//! both schemas.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::error::{Error, ErrorCode, Result, shown};
use crate::protocol::evolution;
use crate::protocol::schema::{
    ArrayType, DECLARED_TYPE, DataType, MapType, StructField, StructType,
};

/// Field metadata with a comment.
const COMMENT: &str = "comment";

/// A replacement of columns, and what it does to existing ones.
pub(super) struct ColumnReplacement<'a> {
    /// Whether columns can be dropped.
    mapped: bool,
    /// Whether one type can become the other.
    can_widen: &'a dyn Fn(&DataType, &DataType) -> bool,
    /// Paths of dropped columns and fields.
    pub dropped: Vec<Vec<String>>,
    /// Paths of columns, fields, elements, keys and values with a wider type.
    pub retyped: Vec<Vec<String>>,
}

/// Type changes within a column: the types, and the path within the column.
type TypeChanges = Vec<(DataType, DataType, Vec<String>)>;

impl<'a> ColumnReplacement<'a> {
    pub(super) fn new(mapped: bool, can_widen: &'a dyn Fn(&DataType, &DataType) -> bool) -> Self {
        Self {
            mapped,
            can_widen,
            dropped: Vec::new(),
            retyped: Vec::new(),
        }
    }

    /// The struct at `path` with the fields of `new`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a change that existing rows and files do not allow.
    pub(super) fn replace_struct(
        &mut self,
        old: &StructType,
        new: &StructType,
        path: &[String],
    ) -> Result<StructType> {
        let at = |name: &str| [path, &[name.to_owned()]].concat();
        let (mut fields, mut added) = (Vec::new(), Vec::new());
        for field in &new.fields {
            let known = old.field(&field.name);
            let path = at(known.map_or(&field.name, |known| &known.name));
            if !field.nullable && known.is_none_or(|known| known.nullable) {
                return Err(refused(
                    &format!(
                        "make `{}` NOT NULL: existing rows may be null",
                        path.join(".")
                    ),
                    "leave NOT NULL out",
                ));
            }
            if let Some(known) = known {
                fields.push(self.replace_field(known, field, &path)?);
            } else {
                added.push(path.join("."));
                fields.push(field.clone());
            }
        }
        let names: FxHashSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        let dropped: Vec<Vec<String>> = old
            .fields
            .iter()
            .filter(|old| !names.contains(old.name.as_str()))
            .map(|old| at(&old.name))
            .collect();
        self.check_dropped(&dropped, &added)?;
        if fields.is_empty() {
            return Err(
                Error::invalid("a table or struct must keep at least one column or field")
                    .with_code(ErrorCode::LastColumnDropped, &[]),
            );
        }
        self.dropped.extend(dropped);
        Ok(StructType {
            fields: fields.into(),
        })
    }

    fn check_dropped(&self, dropped: &[Vec<String>], added: &[String]) -> Result<()> {
        let Some(first) = dropped.first() else {
            return Ok(());
        };
        let first = first.join(".");
        if let Some(added) = added.first() {
            return Err(refused(
                &format!(
                    "drop `{first}` and add `{}`, which is not distinguished from a new name",
                    shown(added)
                ),
                "use RENAME COLUMN, or DROP COLUMNS and ADD COLUMNS",
            ));
        }
        if !self.mapped {
            return Err(refused(
                &format!("drop `{first}` where the table does not map columns"),
                "set `delta.columnMapping.mode` to `name` first, or list the column",
            ));
        }
        Ok(())
    }

    fn replace_field(
        &mut self,
        old: &StructField,
        new: &StructField,
        path: &[String],
    ) -> Result<StructField> {
        let length = new.metadata.get(DECLARED_TYPE);
        if length.is_some() && length != old.metadata.get(DECLARED_TYPE) {
            return Err(refused(
                &format!("change the length of `{}`", path.join(".")),
                "use ALTER COLUMN .. TYPE",
            ));
        }
        let mut changes = TypeChanges::new();
        let mut part = Vec::new();
        let data_type = self.replace_type(
            &old.data_type,
            &new.data_type,
            path,
            &mut part,
            &mut changes,
        )?;
        let mut out = StructField {
            data_type,
            nullable: new.nullable,
            ..old.clone()
        };
        if let Some(comment) = new.metadata.get(COMMENT) {
            out.metadata.insert(COMMENT.to_owned(), comment.clone());
        }
        for (from, to, part) in changes {
            evolution::record_type_change(&mut out, &from, &to, &part.join("."));
        }
        Ok(out)
    }

    /// The type at `part` within the column or field at `path`.
    fn replace_type(
        &mut self,
        old: &DataType,
        new: &DataType,
        path: &[String],
        part: &mut Vec<String>,
        changes: &mut TypeChanges,
    ) -> Result<DataType> {
        let mut within = |name: &str, old: &DataType, new: &DataType| {
            part.push(name.to_owned());
            let out = self.replace_type(old, new, path, part, changes);
            part.pop();
            out
        };
        match (old, new) {
            (DataType::Struct(old), DataType::Struct(new)) => {
                let path = [path, part.as_slice()].concat();
                let inner = self.replace_struct(old, new, &path)?;
                Ok(DataType::Struct(Arc::new(inner)))
            }
            (DataType::Array(old), DataType::Array(new)) => {
                Ok(DataType::Array(Arc::new(ArrayType {
                    element: within("element", &old.element, &new.element)?,
                    contains_null: old.contains_null,
                })))
            }
            (DataType::Map(old), DataType::Map(new)) => Ok(DataType::Map(Arc::new(MapType {
                key: within("key", &old.key, &new.key)?,
                value: within("value", &old.value, &new.value)?,
                value_contains_null: old.value_contains_null,
            }))),
            (old, new) if old == new => Ok(old.clone()),
            (old, new) => {
                let path = [path, part.as_slice()].concat();
                if !(self.can_widen)(old, new) {
                    return Err(refused(
                        &format!(
                            "change the type of `{}` from {old} to {new}",
                            path.join(".")
                        ),
                        "types can only be widened, where `delta.enableTypeWidening` is `true`",
                    ));
                }
                self.retyped.push(path);
                changes.push((old.clone(), new.clone(), part.clone()));
                Ok(new.clone())
            }
        }
    }
}

fn refused(what: &str, hint: &str) -> Error {
    Error::invalid(format!("REPLACE COLUMNS cannot {what}; {hint}"))
        .with_code(ErrorCode::ReplaceColumnsUnsupported, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(fields: &str) -> StructType {
        StructType::parse(&format!(r#"{{"type":"struct","fields":[{fields}]}}"#)).unwrap()
    }

    fn replaced(old: &str, new: &str, mapped: bool) -> Result<String> {
        let mut replacement = ColumnReplacement::new(mapped, &evolution::can_widen);
        let out = replacement.replace_struct(&schema(old), &schema(new), &[])?;
        let paths = |paths: &[Vec<String>]| {
            let paths: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
            paths.join(",")
        };
        Ok(format!(
            "{} -{} ~{}",
            out.to_json(),
            paths(&replacement.dropped),
            paths(&replacement.retyped)
        ))
    }

    const OLD: &str = r#"{"name":"Id","type":"integer","nullable":false,"metadata":{"k":1}},
        {"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"x","type":"short"},{"name":"y","type":"date"}]},"containsNull":true},"metadata":{"comment":"c"}}"#;

    #[test]
    fn existing_columns_keep_name_and_metadata() {
        let new = r#"{"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"X","type":"long","metadata":{"comment":"wide"}}]},"containsNull":true}},
            {"name":"ID","type":"integer"}"#;
        let found = replaced(OLD, new, true).unwrap();
        let expected = schema(
            r#"{"name":"l","type":{"type":"array","elementType":{"type":"struct","fields":[{"name":"x","type":"long","metadata":{"comment":"wide","delta.typeChanges":[{"fromType":"short","toType":"long"}]}}]},"containsNull":true},"metadata":{"comment":"c"}},
            {"name":"Id","type":"integer","metadata":{"k":1}}"#,
        );
        assert_eq!(
            found,
            format!("{} -l.element.y ~l.element.x", expected.to_json())
        );
    }

    #[test]
    fn what_rows_and_files_do_not_allow_is_refused() {
        let id = r#"{"name":"id","type":"integer"}"#;
        for (new, mapped, message) in [
            (id, false, "drop `l` where the table does not map columns"),
            (
                r#"{"name":"id","type":"integer"},{"name":"n","type":"date"}"#,
                true,
                "drop `l` and add `n`",
            ),
            (
                r#"{"name":"id","type":"string"}"#,
                true,
                "change the type of `Id` from integer to string",
            ),
            ("", true, "at least one column"),
        ] {
            let error = replaced(OLD, new, mapped).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let tight = r#"{"name":"id","type":"integer","nullable":false}"#;
        assert!(
            replaced(id, tight, true)
                .unwrap_err()
                .to_string()
                .contains("make `id` NOT NULL")
        );
        assert!(replaced(tight, id, true).is_ok());
    }
}
