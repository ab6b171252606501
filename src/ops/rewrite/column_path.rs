//! Columns by the text that names them: `a`, `a.b` for the field `b` of `a`, and `` `a.b`.c `` where a
//! name itself has dots.

use crate::error::{Error, ErrorCode, Result, shown};
use crate::expr::identifier;
use crate::protocol::properties;
use crate::protocol::schema::{DataType, StructType};

/// The parts of a column's path, spelled as in a schema. Names are found whatever their case and,
/// if only one column fits, without the quotes of names with dots; the elements of lists and maps
/// are `element`, `key` and `value`.
///
/// # Errors
/// [`Error::Invalid`] if there is no such column, or if several have the name.
pub(in crate::ops) fn resolve_column_path(
    schema: &StructType,
    column: &str,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    find_paths(schema, column, &mut Vec::new(), &mut found);
    if found.is_empty()
        && column.contains('`')
        && let Some([path]) = properties::columns(column).as_deref()
    {
        found.extend(path_of_parts(schema, path));
    }
    let refused = |code: ErrorCode, what: String| {
        Err(Error::invalid(what)
            .with_code(code, &[("column", &column)])
            .at_column(column))
    };
    match found.as_slice() {
        [path] => Ok(path.clone()),
        [] => refused(
            ErrorCode::ColumnNotFound,
            format!("the table has no column `{}`", shown(column)),
        ),
        several => {
            let paths: Vec<String> = several
                .iter()
                .map(|path| quoted_column_path(path))
                .collect();
            refused(
                ErrorCode::AmbiguousColumn,
                format!(
                    "`{}` is the name of several columns; write one of {}",
                    shown(column),
                    paths.join(", ")
                ),
            )
        }
    }
}

/// The path of a column as text, with backquotes where [`resolve_column_path`] needs them.
pub(in crate::ops) fn quoted_column_path(path: &[String]) -> String {
    let names: Vec<String> = path
        .iter()
        .map(|name| identifier(name).into_owned())
        .collect();
    names.join(".")
}

/// All paths that a text without quotes names.
fn find_paths(
    schema: &StructType,
    text: &str,
    parent: &mut Vec<String>,
    out: &mut Vec<Vec<String>>,
) {
    let ends = text
        .match_indices('.')
        .map(|(dot, _)| dot)
        .chain([text.len()]);
    for end in ends {
        let Some(field) = text.get(..end).and_then(|name| schema.field(name)) else {
            continue;
        };
        parent.push(field.name.clone());
        match text.get(end + 1..) {
            None => out.push(parent.clone()),
            Some(rest) => find_within(&field.data_type, rest, parent, out),
        }
        parent.pop();
    }
}

fn find_within(
    data_type: &DataType,
    text: &str,
    parent: &mut Vec<String>,
    out: &mut Vec<Vec<String>>,
) {
    if let DataType::Struct(inner) = data_type {
        return find_paths(inner, text, parent, out);
    }
    let (head, rest) = text
        .split_once('.')
        .map_or((text, None), |(head, rest)| (head, Some(rest)));
    let Some((name, inner)) = part_of(data_type, head) else {
        return;
    };
    parent.push(name.to_owned());
    match rest {
        None => out.push(parent.clone()),
        Some(rest) => find_within(inner, rest, parent, out),
    }
    parent.pop();
}

/// The part of a list or map of this name.
fn part_of<'a>(data_type: &'a DataType, name: &str) -> Option<(&'static str, &'a DataType)> {
    let parts = match data_type {
        DataType::Array(array) => vec![("element", &array.element)],
        DataType::Map(map) => vec![("key", &map.key), ("value", &map.value)],
        _ => Vec::new(),
    };
    parts
        .into_iter()
        .find(|(part, _)| part.eq_ignore_ascii_case(name))
}

/// The path with these parts.
fn path_of_parts(schema: &StructType, parts: &[String]) -> Option<Vec<String>> {
    let (first, rest) = parts.split_first()?;
    let field = schema.field(first)?;
    let (mut path, mut data_type) = (vec![field.name.clone()], &field.data_type);
    for part in rest {
        let name = if let DataType::Struct(inner) = data_type {
            let field = inner.field(part)?;
            data_type = &field.data_type;
            field.name.as_str()
        } else {
            let (name, inner) = part_of(data_type, part)?;
            data_type = inner;
            name
        };
        path.push(name.to_owned());
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> StructType {
        let field = |name: &str, data_type: &str| {
            format!(r#"{{"name":"{name}","type":{data_type},"nullable":true,"metadata":{{}}}}"#)
        };
        let inner =
            |fields: &[String]| format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(","));
        let long = r#""long""#;
        let map =
            r#"{"type":"map","keyType":"string","valueType":"long","valueContainsNull":true}"#;
        let text = inner(&[
            field("a", &inner(&[field("b", long), field("c.d", long)])),
            field("a.b", long),
            field(".", long),
            field("x`y", long),
            field("M", map),
            field("e.f", &inner(&[field("g", long)])),
        ]);
        StructType::parse(&text).unwrap()
    }

    #[test]
    fn a_column_is_found_by_each_text_that_names_it() {
        for (text, path) in [
            ("A", vec!["a"]),
            ("a.c.d", vec!["a", "c.d"]),
            ("`a.b`", vec!["a.b"]),
            ("`a`.`b`", vec!["a", "b"]),
            (".", vec!["."]),
            ("x`y", vec!["x`y"]),
            ("`x``y`", vec!["x`y"]),
            ("m.VALUE", vec!["M", "value"]),
            ("e.f.g", vec!["e.f", "g"]),
            ("`e.f`.g", vec!["e.f", "g"]),
        ] {
            assert_eq!(
                resolve_column_path(&schema(), text).unwrap(),
                path,
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_that_names_several_columns_or_none_is_refused() {
        let refusal = |text: &str| {
            resolve_column_path(&schema(), text)
                .unwrap_err()
                .to_string()
        };
        assert!(
            refusal("a.b").contains("write one of a.b, `a.b`"),
            "{}",
            refusal("a.b")
        );
        for text in ["", "..", "a.", "m.element", "`a", "`a`.`x`", "a.b.c"] {
            assert!(refusal(text).contains("no column"), "{text}");
        }
    }
}
