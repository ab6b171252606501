//! The SQL of constraints and generated columns in the log, as far as it can be judged without
//! parsing: which names stand in double quotes.
//!
//! Spark reads a string there and delta-rs a column. As long as the table has no such column, only
//! one of both readings is possible, so that a new column must not have the name.
//!
//! Protocol: "CHECK Constraints", "Generated Columns". Cost: a scan of the expressions where a
//! commit adds columns.

use std::str::Chars;

use serde_json::Value;

use super::action::Metadata;
use super::properties::CONSTRAINTS;
use super::schema::StructType;
use crate::error::{Error, Result, shown};

const GENERATION: &str = "delta.generationExpression";

/// Checks that no column of the new metadata that the old metadata lacks has a name that stands in
/// double quotes in a constraint or a generated column.
///
/// # Errors
/// [`Error::Invalid`] names the column and the expression.
pub(crate) fn check_new_columns(old: &Metadata, new: &Metadata, schema: &StructType) -> Result<()> {
    let expressions = quoting_expressions(new, schema);
    if expressions.is_empty() {
        return Ok(());
    }
    let old_schema = StructType::parse(&old.schema_string)?;
    let new_columns = schema
        .fields
        .iter()
        .filter(|field| old_schema.fields.iter().all(|old| old.name != field.name));
    for field in new_columns {
        for (what, sql, remedy) in &expressions {
            if double_quoted(sql).contains(&field.name) {
                return Err(Error::invalid(format!(
                    "the name `{}` stands in double quotes in {what} ({}), where Spark reads a string and delta-rs a column; {remedy}",
                    field.name,
                    shown(sql)
                ))
                .at_column(&field.name));
            }
        }
    }
    Ok(())
}

/// The expressions with double quotes: what each is, its SQL, and how to have a column of the name.
fn quoting_expressions<'a>(
    metadata: &'a Metadata,
    schema: &'a StructType,
) -> Vec<(String, &'a str, &'static str)> {
    let checks = metadata.configuration.iter().filter_map(|(key, sql)| {
        let name = key.strip_prefix(CONSTRAINTS)?;
        let remedy =
            "drop the constraint and add it again with the string in single quotes or the name in backquotes";
        Some((format!("the constraint `{name}`"), sql.as_str(), remedy))
    });
    let generated = schema.fields.iter().filter_map(|field| {
        let sql = field.metadata.get(GENERATION).and_then(Value::as_str)?;
        let what = format!("the generated column `{}`", field.name);
        Some((what, sql, "choose another name"))
    });
    checks
        .chain(generated)
        .filter(|(_, sql, _)| sql.contains('"'))
        .collect()
}

/// The contents of double quotes in SQL, outside of strings, names in backquotes and comments.
fn double_quoted(sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut chars = sql.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => out.push(quoted_text(&mut chars, '"', true)),
            '\'' => {
                quoted_text(&mut chars, '\'', true);
            }
            '`' => {
                quoted_text(&mut chars, '`', false);
            }
            '-' if chars.as_str().starts_with('-') => {
                chars.find(|char| matches!(char, '\n' | '\r'));
            }
            '/' if chars.as_str().starts_with('*') => {
                let comment = chars.as_str();
                let end = comment.find("*/").map_or(comment.len(), |at| at + 2);
                chars = comment.get(end..).unwrap_or_default().chars();
            }
            _ => {}
        }
    }
    out
}

/// The text up to the closing quote, which is doubled within it; the quote is consumed.
fn quoted_text(chars: &mut Chars<'_>, quote: char, has_escapes: bool) -> String {
    let mut text = String::new();
    while let Some(char) = chars.next() {
        if char == quote {
            if !chars.as_str().starts_with(quote) {
                break;
            }
            chars.next();
        } else if char == '\\' && has_escapes {
            text.extend(chars.next());
            continue;
        }
        text.push(char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_double_quotes_outside_of_strings_names_and_comments_count() {
        for (sql, expected) in [
            (r#"name <> "deleted""#, vec!["deleted"]),
            (
                r#""a b" > 1 AND "c""d" = "e\"f""#,
                vec!["a b", "c\"d", "e\"f"],
            ),
            (r#"name <> '"x"' AND `"y"` = '\'"z"'"#, vec![]),
            ("a > 1 -- \"x\"\n AND \"y\" > 2", vec!["y"]),
            (r#"a /* "x" */ > "y" - "z" / 2"#, vec!["y", "z"]),
            (r#"a = 'it''s "x"' AND "open"#, vec!["open"]),
        ] {
            assert_eq!(double_quoted(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_new_column_must_not_have_a_name_in_double_quotes() {
        let schema = |names: &[&str]| {
            let fields: Vec<Value> = names
                .iter()
                .map(|name| {
                    serde_json::json!({"name": name, "type": "string", "nullable": true, "metadata": {}})
                })
                .collect();
            serde_json::json!({"type": "struct", "fields": fields}).to_string()
        };
        let metadata = |names: &[&str]| -> Metadata {
            let constraints = serde_json::json!({"delta.constraints.c": "name <> \"deleted\""});
            serde_json::from_value(serde_json::json!({
                "id": "t", "schemaString": schema(names), "configuration": constraints
            }))
            .unwrap()
        };
        let check = |before: &[&str], after: &[&str]| {
            let schema = StructType::parse(&schema(after)).unwrap();
            check_new_columns(&metadata(before), &metadata(after), &schema)
        };
        assert!(check(&["name"], &["name", "other"]).is_ok());
        assert!(check(&["name", "deleted"], &["name", "deleted"]).is_ok());
        let error = check(&["name"], &["name", "deleted"]).unwrap_err();
        assert!(error.to_string().contains("drop the constraint"), "{error}");
    }
}
