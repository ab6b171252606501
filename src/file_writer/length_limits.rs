//! The length limits of strings declared as `char(n)` and `varchar(n)`, at any depth of a column.
//!
//! Spark stores the declared type in the metadata of the column, for example
//! `struct<a:varchar(3)>`, and the values as strings. As for Spark's `length`, lengths are counted
//! in characters.
//!
//! Cost: a comparison per value; characters are only counted for strings with more bytes than the
//! limit.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::DataType as Arrow;
use serde_json::Value;

use crate::error::{Error, Result, shown};
use crate::protocol::schema::{DECLARED_TYPE, DataType, StructField};

/// The maximum depth of declared types.
const MOST_DEPTH: usize = 100;

/// The length limit of a column, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LengthLimit {
    /// The maximum number of characters, and the declared type.
    Text(usize, String),
    /// The limits of fields.
    Struct(Vec<(String, LengthLimit)>),
    /// The limit of a list's elements.
    List(Box<LengthLimit>),
    /// The limits of a map's keys and values.
    Map(Option<Box<LengthLimit>>, Option<Box<LengthLimit>>),
}

/// The limits of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnLengths {
    /// The column.
    pub column: String,
    /// Its limits.
    pub limit: LengthLimit,
}

/// A string that is too long.
pub(super) struct LengthViolation {
    /// The path to it.
    pub path: String,
    /// Its limit.
    pub limit: String,
    /// Its number of characters.
    pub found: usize,
    /// The row of the first such string.
    pub row: usize,
    /// The number of rows with such a string.
    pub rows: usize,
}

impl ColumnLengths {
    /// The limits of a column.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a declared type that cannot be parsed.
    pub fn of(field: &StructField) -> Result<Vec<Self>> {
        Ok(of_field(field)?
            .into_iter()
            .map(|limit| Self {
                column: field.name.clone(),
                limit,
            })
            .collect())
    }

    /// The condition in Spark SQL, for engines that check it themselves.
    #[must_use]
    pub fn sql(&self) -> String {
        sql(&self.limit, &quoted(&self.column), 0)
    }

    /// The first string of the column that is too long.
    pub(super) fn first_too_long(&self, array: &ArrayRef) -> Option<LengthViolation> {
        too_long(&self.limit, array, &self.column, None, &|row| row)
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn sql(limit: &LengthLimit, value: &str, depth: usize) -> String {
    let all = |of: &LengthLimit, values: &str| {
        let variable = format!("x{depth}");
        format!(
            "({value} IS NULL OR forall({values}, {variable} -> {}))",
            sql(of, &variable, depth + 1)
        )
    };
    match limit {
        LengthLimit::Text(most, _) => format!("({value} IS NULL OR length({value}) <= {most})"),
        LengthLimit::Struct(fields) => {
            let each = fields
                .iter()
                .map(|(name, of)| sql(of, &format!("{value}.{}", quoted(name)), depth));
            each.collect::<Vec<_>>().join(" AND ")
        }
        LengthLimit::List(of) => all(of, value),
        LengthLimit::Map(keys, values) => {
            let keys = keys
                .as_ref()
                .map(|of| all(of, &format!("map_keys({value})")));
            let values = values
                .as_ref()
                .map(|of| all(of, &format!("map_values({value})")));
            keys.into_iter()
                .chain(values)
                .collect::<Vec<_>>()
                .join(" AND ")
        }
    }
}

fn of_field(field: &StructField) -> Result<Vec<LengthLimit>> {
    let mut out = of_type(&field.data_type)?;
    if let Some(declared) = field.metadata.get(DECLARED_TYPE).and_then(Value::as_str) {
        let corrupt = || {
            Error::corrupt(format!(
                "the declared type `{}` cannot be read",
                shown(declared)
            ))
            .at_column(&field.name)
        };
        let mut rest = declared.trim();
        let limit = declared_type(&mut rest, 0).ok_or_else(corrupt)?;
        if !rest.is_empty() {
            return Err(corrupt());
        }
        out.extend(limit);
    }
    Ok(out)
}

/// The limits of fields within a type, which are declared in their own metadata.
fn of_type(data_type: &DataType) -> Result<Vec<LengthLimit>> {
    let mut out = Vec::new();
    match data_type {
        DataType::Struct(inner) => {
            for field in &inner.fields {
                out.extend(
                    of_field(field)?
                        .into_iter()
                        .map(|limit| LengthLimit::Struct(vec![(field.name.clone(), limit)])),
                );
            }
        }
        DataType::Array(of) => out.extend(
            of_type(&of.element)?
                .into_iter()
                .map(|limit| LengthLimit::List(Box::new(limit))),
        ),
        DataType::Map(of) => {
            out.extend(
                of_type(&of.key)?
                    .into_iter()
                    .map(|limit| LengthLimit::Map(Some(Box::new(limit)), None)),
            );
            out.extend(
                of_type(&of.value)?
                    .into_iter()
                    .map(|limit| LengthLimit::Map(None, Some(Box::new(limit)))),
            );
        }
        _ => {}
    }
    Ok(out)
}

/// Parses a type at the start of a string. The outer `None` is for a string that is not a type, the
/// inner one for a type without limits.
#[allow(clippy::option_option)]
fn declared_type(rest: &mut &str, depth: usize) -> Option<Option<LengthLimit>> {
    if depth > MOST_DEPTH {
        return None;
    }
    if accept(rest, "array<") {
        let of = declared_type(rest, depth + 1)?;
        return accept(rest, ">").then(|| of.map(|of| LengthLimit::List(Box::new(of))));
    }
    if accept(rest, "map<") {
        let key = declared_type(rest, depth + 1)?;
        if !accept(rest, ",") {
            return None;
        }
        let value = declared_type(rest, depth + 1)?;
        let limits = key.is_some() || value.is_some();
        return accept(rest, ">")
            .then(|| limits.then(|| LengthLimit::Map(key.map(Box::new), value.map(Box::new))));
    }
    if accept(rest, "struct<") {
        let mut fields = Vec::new();
        while !accept(rest, ">") {
            let name = field_name(rest)?;
            fields.extend(declared_type(rest, depth + 1)?.map(|of| (name, of)));
            accept(rest, ",");
        }
        return Some((!fields.is_empty()).then_some(LengthLimit::Struct(fields)));
    }
    // Parameters in parentheses may contain commas.
    let mut open = 0_usize;
    let ends = |c: char| {
        open = if c == '(' {
            open + 1
        } else {
            open.saturating_sub(usize::from(c == ')'))
        };
        open == 0 && matches!(c, ',' | '>' | '<' | ':')
    };
    let end = rest.find(ends).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(end);
    *rest = behind;
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let Some(inner) = lower
        .strip_prefix("varchar(")
        .or_else(|| lower.strip_prefix("char("))
    else {
        return Some(None);
    };
    let most = inner.strip_suffix(')')?.trim().parse().ok()?;
    Some(Some(LengthLimit::Text(most, name.to_owned())))
}

fn accept(rest: &mut &str, word: &str) -> bool {
    let text = rest.trim_start();
    let found = text
        .get(..word.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(word));
    if found {
        *rest = text.get(word.len()..).unwrap_or_default();
    }
    found
}

/// A field's name and the following colon.
fn field_name(rest: &mut &str) -> Option<String> {
    let text = rest.trim_start();
    let mut name = String::new();
    if let Some(inner) = text.strip_prefix('`') {
        let mut chars = inner.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '`' if chars.next_if(|(_, next)| *next == '`').is_some() => name.push('`'),
                '`' => {
                    *rest = inner.get(at + 1..)?;
                    return accept(rest, ":").then_some(name);
                }
                c => name.push(c),
            }
        }
        return None;
    }
    let (plain, behind) = text.split_once(':')?;
    *rest = behind;
    Some(plain.to_owned())
}

/// `parent` is the validity of the parent values; `row_of` gives the row of an element.
fn too_long(
    limit: &LengthLimit,
    array: &ArrayRef,
    path: &str,
    parent: Option<&NullBuffer>,
    row_of: &dyn Fn(usize) -> usize,
) -> Option<LengthViolation> {
    match limit {
        LengthLimit::Text(most, name) => {
            let text: &dyn Fn(usize) -> Option<usize> = match array.data_type() {
                Arrow::Utf8 => &|n| characters(array.as_string::<i32>().value(n), *most),
                Arrow::LargeUtf8 => &|n| characters(array.as_string::<i64>().value(n), *most),
                Arrow::Utf8View => &|n| characters(array.as_string_view().value(n), *most),
                _ => return None,
            };
            let broken = |n: usize| {
                if array.is_valid(n) && parent.is_none_or(|parent| parent.is_valid(n)) {
                    text(n)
                } else {
                    None
                }
            };
            let (first, found) = (0..array.len()).find_map(|n| Some((n, broken(n)?)))?;
            let mut rows: Vec<usize> = (first..array.len())
                .filter(|n| broken(*n).is_some())
                .map(row_of)
                .collect();
            rows.dedup();
            Some(LengthViolation {
                path: path.to_owned(),
                limit: name.clone(),
                found,
                row: row_of(first),
                rows: rows.len(),
            })
        }
        LengthLimit::Struct(limits) => {
            let array = array.as_struct_opt()?;
            let valid = NullBuffer::union(parent, array.nulls());
            limits.iter().find_map(|(name, limit)| {
                let mut children = array.fields().iter().zip(array.columns());
                let (field, child) =
                    children.find(|(field, _)| field.name().eq_ignore_ascii_case(name))?;
                too_long(
                    limit,
                    child,
                    &format!("{path}.{}", field.name()),
                    valid.as_ref(),
                    row_of,
                )
            })
        }
        LengthLimit::List(limit) => {
            let array = array.as_list_opt::<i32>()?;
            let valid = NullBuffer::union(parent, array.nulls());
            let (above, owner) = elements(array.offsets(), array.values().len(), valid.as_ref());
            too_long(
                limit,
                array.values(),
                &format!("{path}.element"),
                above.as_ref(),
                &|element| row_of(owner(element)),
            )
        }
        LengthLimit::Map(keys, values) => {
            let array = array.as_map_opt()?;
            let valid = NullBuffer::union(parent, array.nulls());
            let (above, owner) = elements(array.offsets(), array.keys().len(), valid.as_ref());
            let row = |element: usize| row_of(owner(element));
            let part = |limit: &Option<Box<LengthLimit>>, name: &str, array: &ArrayRef| {
                too_long(
                    limit.as_deref()?,
                    array,
                    &format!("{path}.{name}"),
                    above.as_ref(),
                    &row,
                )
            };
            part(keys, "key", array.keys()).or_else(|| part(values, "value", array.values()))
        }
    }
}

/// The number of characters of a string if it exceeds the maximum.
fn characters(text: &str, most: usize) -> Option<usize> {
    (text.len() > most)
        .then(|| text.chars().count())
        .filter(|count| *count > most)
}

/// Which of `count` elements belong to a list that is valid, and the list of each element.
pub(super) fn elements<'a>(
    offsets: &'a OffsetBuffer<i32>,
    count: usize,
    valid: Option<&NullBuffer>,
) -> (Option<NullBuffer>, impl Fn(usize) -> usize + 'a) {
    let at = |n: usize| usize::try_from(offsets.get(n).copied().unwrap_or(0)).unwrap_or(0);
    let lists = offsets.len().saturating_sub(1);
    let (first, last) = (at(0), at(lists));
    let mut seen = BooleanBufferBuilder::new(count);
    seen.append_n(first, false);
    for list in 0..lists {
        seen.append_n(
            at(list + 1) - at(list),
            valid.is_none_or(|valid| valid.is_valid(list)),
        );
    }
    seen.append_n(count.saturating_sub(last), false);
    let all = valid.is_none_or(|valid| valid.null_count() == 0) && first == 0 && last == count;
    let above = (!all).then(|| NullBuffer::new(seen.finish()));
    (above, move |element| {
        offsets
            .partition_point(|offset| usize::try_from(*offset).unwrap_or(0) <= element)
            .saturating_sub(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(declared: &str) -> Result<Vec<LengthLimit>> {
        let mut field = StructField::new("c", DataType::String, true);
        field
            .metadata
            .insert(DECLARED_TYPE.to_owned(), declared.into());
        of_field(&field)
    }

    #[test]
    fn declared_types_are_read_at_any_depth() {
        let text = |most: usize, name: &str| LengthLimit::Text(most, name.to_owned());
        assert_eq!(limits("varchar(3)").unwrap(), [text(3, "varchar(3)")]);
        let list = LengthLimit::List(Box::new(text(2, "CHAR( 2 )")));
        let map = LengthLimit::Map(None, Some(Box::new(list)));
        let whole = LengthLimit::Struct(vec![
            ("odd:`name".to_owned(), text(1, "char(1)")),
            ("m".to_owned(), map),
        ]);
        let declared = "struct<`odd:``name`:char(1),d:decimal(10,2),s:string collate UNICODE, m:map<int,array<CHAR( 2 )>>,e:struct<>>";
        assert_eq!(limits(declared).unwrap(), [whole]);
        assert!(limits("struct<a:int,t:timestamp_ntz>").unwrap().is_empty());
        for wrong in [
            "",
            "varchar(x)",
            "array<varchar(3)",
            "map<int>",
            "struct<a>",
            "varchar(3)>",
            "struct<`a:int>",
            &"array<".repeat(100_000),
        ] {
            assert!(limits(wrong).unwrap_err().is_corrupt(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_conditions_in_sql() {
        let one = |declared: &str| {
            ColumnLengths {
                column: "c d".to_owned(),
                limit: limits(declared).unwrap().remove(0),
            }
            .sql()
        };
        assert_eq!(one("varchar(3)"), "(`c d` IS NULL OR length(`c d`) <= 3)");
        assert_eq!(
            one("struct<a:char(1),l:array<map<varchar(2),int>>>"),
            "(`c d`.`a` IS NULL OR length(`c d`.`a`) <= 1) AND (`c d`.`l` IS NULL OR forall(`c d`.`l`, x0 -> (x0 IS NULL OR \
             forall(map_keys(x0), x1 -> (x1 IS NULL OR length(x1) <= 2)))))"
        );
    }
}
