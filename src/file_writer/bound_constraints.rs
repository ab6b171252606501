//! The constraints that a table places on its rows: the SQL expressions of the log that a caller
//! must bind, and the rules made from the bound expressions. SQL is never parsed here; a constraint
//! without a bound expression is an error and is never ignored.
//!
//! A constraint applies only if the protocol supports its feature.
//!
//! Protocol: "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns",
//! "Identity Columns".

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::length_limits::ColumnLengths;
use crate::error::{Error, ErrorCode, Result, invariant, shown};
use crate::expr::{BoundExpr, BoundTree};
use crate::file_writer::constraints::{
    ComputedColumn, ConditionKind, IdentityColumn, RowCondition, WriteRules,
};
use crate::protocol::action::{FormatSpecification, Metadata, Protocol};
use crate::protocol::features;
use crate::protocol::properties::CONSTRAINTS;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::table::base_protocol;

/// A name (of a constraint or a column) with an SQL expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedExpression {
    /// The constraint's or the column's name.
    pub name: String,
    /// Spark SQL over the table's columns.
    pub sql: String,
    /// The expression that the caller bound; for a column of exactly its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<BoundTree>,
}

impl NamedExpression {
    fn new(name: impl Into<String>, sql: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            sql: sql.into(),
            tree: None,
        }
    }

    /// The expression.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for one that the core does not support, [`Error::Internal`] if it was
    /// not bound.
    pub fn bound(&self) -> Result<BoundExpr> {
        let tree = self.tree.as_ref().ok_or_else(|| {
            Error::internal(format!("the expression of `{}` was not bound", self.name))
        })?;
        BoundExpr::new(tree)
    }
}

/// The expressions to bind for a write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableConstraints {
    /// CHECK constraints and invariants.
    pub checks: Vec<NamedExpression>,
    /// Generated columns.
    pub generated: Vec<NamedExpression>,
    /// Defaults of columns that the data lacks.
    pub defaults: Vec<NamedExpression>,
    /// The predicate for the rows that a write replaces, if any.
    pub predicate: Option<NamedExpression>,
    /// Limits of `char(n)` and `varchar(n)`, for engines that check rows themselves; not to be
    /// bound.
    pub lengths: Vec<NamedExpression>,
    /// The same for the core.
    #[serde(skip)]
    pub(crate) limits: Vec<ColumnLengths>,
}

/// Features whose constraints are expressions.
const EXPRESSED: &[&str] = &[
    "checkConstraints",
    "invariants",
    "generatedColumns",
    "allowColumnDefaults",
];

/// The string in a field's metadata for a key.
fn metadata_string<'a>(field: &'a StructField, key: &str) -> Option<&'a str> {
    field.metadata.get(key).and_then(Value::as_str)
}

impl TableConstraints {
    /// The constraints of a table; defaults only for the columns that the data lacks according to
    /// `lacks`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an invariant or a declared type that cannot be parsed;
    /// [`Error::Unsupported`] for an invariant within a list or map.
    pub fn of(
        protocol: &Protocol,
        metadata: &Metadata,
        schema: &StructType,
        lacks: impl Fn(&StructField) -> bool,
    ) -> Result<Self> {
        let supported = features::supported(protocol);
        let mut out = Self::default();
        if supported.contains("checkConstraints") {
            let named = metadata
                .configuration
                .iter()
                .filter_map(|(key, sql)| Some((key.strip_prefix(CONSTRAINTS)?, sql)));
            out.checks
                .extend(named.map(|(name, sql)| NamedExpression::new(name, sql)));
        }
        if supported.contains("invariants") {
            invariants(schema, &mut Vec::new(), &mut out.checks)?;
        }
        for field in &schema.fields {
            out.limits.extend(ColumnLengths::of(field)?);
            if supported.contains("generatedColumns")
                && let Some(sql) = metadata_string(field, "delta.generationExpression")
            {
                out.generated.push(NamedExpression::new(&field.name, sql));
            } else if supported.contains("allowColumnDefaults")
                && lacks(field)
                && let Some(sql) = metadata_string(field, "CURRENT_DEFAULT")
            {
                out.defaults.push(NamedExpression::new(&field.name, sql));
            }
        }
        out.lengths = out
            .limits
            .iter()
            .map(|limit| NamedExpression::new(format!("length of {}", limit.column), limit.sql()))
            .collect();
        Ok(out)
    }

    /// The constraints of a new table with this schema and these properties, including defaults of
    /// all columns, so that its expressions can be checked before it is created.
    ///
    /// # Errors
    /// As [`TableConstraints::of`].
    pub fn for_new_table(
        schema: &StructType,
        configuration: BTreeMap<String, String>,
    ) -> Result<Self> {
        let every = features::with_features(
            &base_protocol(),
            &EXPRESSED.iter().map(ToString::to_string).collect(),
        );
        let metadata = Metadata {
            id: String::new(),
            name: None,
            description: None,
            format: FormatSpecification::default(),
            schema_string: String::new(),
            partition_columns: Vec::new(),
            configuration,
            created_time: None,
        };
        Self::of(&every, &metadata, schema, |_| true)
    }

    /// The rules, after everything in `asked` was bound.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for expressions that the core does not support, [`Error::Invalid`]
    /// for a generated column that depends on another one, [`Error::Internal`] if an expression is
    /// missing.
    pub fn rules(&self, asked: &Self, identities: Vec<IdentityColumn>) -> Result<WriteRules> {
        let same = |a: &[NamedExpression], b: &[NamedExpression]| {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| (&a.name, &a.sql) == (&b.name, &b.sql))
        };
        invariant!(
            same(&self.checks, &asked.checks)
                && same(&self.generated, &asked.generated)
                && same(&self.defaults, &asked.defaults),
            "the bound expressions are not those of the table's constraints"
        );
        let computed = |list: &[NamedExpression]| {
            let bound = |demand: &NamedExpression| {
                Ok(ComputedColumn {
                    column: demand.name.clone(),
                    expr: demand.bound().map_err(|e| e.at_column(&demand.name))?,
                })
            };
            list.iter().map(bound).collect::<Result<Vec<_>>>()
        };
        let generated = computed(&self.generated)?;
        let names: BTreeSet<&str> = generated.iter().map(|rule| rule.column.as_str()).collect();
        if let Some((rule, base)) = generated.iter().find_map(|rule| {
            Some((
                rule,
                rule.expr
                    .column_names()
                    .into_iter()
                    .find(|name| names.contains(name))?,
            ))
        }) {
            return Err(Error::invalid(format!(
                "the generated column `{}` is made from `{base}`, which is generated itself",
                rule.column
            ))
            .with_code(
                ErrorCode::InvalidGenerationExpression,
                &[("column", &rule.column), ("expression", &base)],
            )
            .at_column(&rule.column));
        }
        let condition = |kind: ConditionKind, named: &NamedExpression| {
            Ok(RowCondition {
                kind,
                sql: named.sql.clone(),
                expr: named.bound()?,
            })
        };
        let mut checks = self
            .checks
            .iter()
            .map(|check| {
                let name = check.name.clone();
                condition(ConditionKind::Check { name }, check)
            })
            .collect::<Result<Vec<_>>>()?;
        if let Some(predicate) = &self.predicate {
            checks.push(condition(ConditionKind::Replacement, predicate)?);
        }
        Ok(WriteRules {
            checks,
            defaults: computed(&self.defaults)?,
            generated,
            identities,
            lengths: asked.limits.clone(),
        })
    }

    /// The predicate for the rows to replace.
    ///
    /// # Errors
    /// As [`TableConstraints::rules`].
    pub fn replaced(&self) -> Result<Option<BoundExpr>> {
        self.predicate
            .as_ref()
            .map(NamedExpression::bound)
            .transpose()
    }
}

fn invariants(
    schema: &StructType,
    path: &mut Vec<String>,
    out: &mut Vec<NamedExpression>,
) -> Result<()> {
    fn any(data_type: &DataType) -> bool {
        match data_type {
            DataType::Struct(inner) => inner
                .fields
                .iter()
                .any(|f| f.metadata.contains_key("delta.invariants") || any(&f.data_type)),
            DataType::Array(array) => any(&array.element),
            DataType::Map(map) => any(&map.key) || any(&map.value),
            _ => false,
        }
    }
    for field in &schema.fields {
        path.push(field.name.clone());
        if let Some(raw) = metadata_string(field, "delta.invariants") {
            let parsed: Option<Value> = serde_json::from_str(raw).ok();
            let sql = parsed
                .as_ref()
                .and_then(|value| value.get("expression")?.get("expression")?.as_str());
            let sql = sql.ok_or_else(|| {
                Error::corrupt(format!("the invariant `{}` cannot be read", shown(raw)))
                    .at_column(path.join("."))
            })?;
            out.push(NamedExpression::new(path.join("."), sql));
        }
        match &field.data_type {
            DataType::Struct(inner) => invariants(inner, path, out)?,
            other if any(other) => {
                return Err(Error::unsupported_feature(
                    "invariants",
                    "an invariant within a list or map cannot be checked",
                )
                .at_column(path.join(".")));
            }
            _ => {}
        }
        path.pop();
    }
    Ok(())
}

const START: &str = "delta.identity.start";
const STEP: &str = "delta.identity.step";
const MARK: &str = "delta.identity.highWaterMark";
const EXPLICIT: &str = "delta.identity.allowExplicitInsert";

/// The identity columns of a table, each with its next value.
///
/// # Errors
/// [`Error::Corrupt`] for invalid settings.
pub fn identities(protocol: &Protocol, schema: &StructType) -> Result<Vec<IdentityColumn>> {
    if !features::supported(protocol).contains("identityColumns") {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for field in schema
        .fields
        .iter()
        .filter(|field| field.metadata.contains_key(START))
    {
        let number = |key: &str| identity_number(field, key);
        let (Some(start), Some(step)) = (number(START)?, number(STEP)?.filter(|step| *step != 0))
        else {
            return Err(
                Error::corrupt("an identity column has no start or no step").at_column(&field.name)
            );
        };
        let next = match number(MARK)? {
            None => start,
            Some(mark) => mark.checked_add(step).ok_or_else(|| {
                Error::invalid("the identity column has come to the end of its numbers")
                    .at_column(&field.name)
            })?,
        };
        let allow_explicit = field
            .metadata
            .get(EXPLICIT)
            .and_then(Value::as_bool)
            .unwrap_or(false);
        out.push(IdentityColumn {
            column: field.name.clone(),
            next,
            step,
            allow_explicit,
        });
    }
    Ok(out)
}

/// A number in the settings of an identity column; `None` if it is not set.
///
/// # Errors
/// [`Error::Corrupt`] for another value: read as a missing mark it would start the column again,
/// with numbers that it already has.
pub fn identity_number(field: &StructField, key: &str) -> Result<Option<i64>> {
    match field.metadata.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            Error::corrupt(format!(
                "`{key}` of an identity column is {}, not a whole number of 64 bits",
                shown(&value.to_string())
            ))
            .at_column(&field.name)
        }),
    }
}

/// The high-water mark of an identity column after a value was inserted that the column did not
/// generate: its first own value that is not before the inserted one. `None` if the mark is
/// unchanged: the inserted value is before the first one, or before the mark.
#[must_use]
pub fn advanced_high_water_mark(field: &StructField, value: i64) -> Option<i64> {
    let number = |key: &str| {
        field
            .metadata
            .get(key)
            .and_then(Value::as_i64)
            .map(i128::from)
    };
    let (start, step) = (number(START)?, number(STEP).filter(|step| *step != 0)?);
    let beyond = (i128::from(value) - start) * step.signum();
    if beyond < 0 {
        return None;
    }
    let steps = (beyond + step.abs() - 1) / step.abs();
    let mark = start + steps * step;
    let is_news = number(MARK).is_none_or(|old| (mark - old) * step.signum() > 0);
    is_news.then(|| i64::try_from(mark).ok()).flatten()
}

/// The schema with the last generated values of identity columns.
#[must_use]
pub fn with_high_water_marks(schema: &StructType, marks: &[(String, i64)]) -> StructType {
    let mut out = schema.clone();
    for field in &mut out.fields {
        if let Some((_, last)) = marks.iter().find(|(column, _)| *column == field.name) {
            field.metadata.insert(MARK.to_owned(), (*last).into());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::features::with_features;

    fn field(name: &str, metadata: &Value) -> StructField {
        StructField {
            metadata: metadata.as_object().unwrap().clone(),
            ..StructField::new(name, DataType::Long, true)
        }
    }

    fn metadata(configuration: &[(&str, &str)]) -> Metadata {
        serde_json::from_value(serde_json::json!({
            "id": "t", "schemaString": "", "configuration": configuration.iter().copied().collect::<std::collections::BTreeMap<_, _>>()
        }))
        .unwrap()
    }

    fn supporting(names: &[&str]) -> Protocol {
        with_features(
            &base_protocol(),
            &names.iter().map(ToString::to_string).collect(),
        )
    }

    fn table() -> StructType {
        let invariant =
            serde_json::json!({"delta.invariants": r#"{"expression":{"expression":"a > 1"}}"#});
        let inner = StructType {
            fields: vec![field("b", &invariant)].into(),
        };
        StructType {
            fields: vec![
                field("a", &invariant),
                StructField::new("s", DataType::Struct(inner.into()), true),
                field(
                    "g",
                    &serde_json::json!({"delta.generationExpression": "a + 1"}),
                ),
                field("d", &serde_json::json!({"CURRENT_DEFAULT": "7"})),
                field("e", &serde_json::json!({"CURRENT_DEFAULT": "8"})),
                field(
                    "v",
                    &serde_json::json!({"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
                ),
            ]
            .into(),
        }
    }

    #[test]
    fn demands_are_those_of_supported_features() {
        let constraint = metadata(&[("delta.constraints.c", "a < 9"), ("other", "x")]);
        let all = TableConstraints::of(
            &supporting(&[
                "checkConstraints",
                "generatedColumns",
                "allowColumnDefaults",
            ]),
            &constraint,
            &table(),
            |f| f.name == "d",
        )
        .unwrap();
        let names = |list: &[NamedExpression]| {
            list.iter()
                .map(|d| format!("{}: {}", d.name, d.sql))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&all.checks), ["c: a < 9", "a: a > 1", "s.b: a > 1"]);
        assert_eq!(
            names(&all.lengths),
            ["length of v: (`v` IS NULL OR length(`v`) <= 3)"]
        );
        assert_eq!(
            (names(&all.generated), names(&all.defaults)),
            (vec!["g: a + 1".to_owned()], vec!["d: 7".to_owned()])
        );
        let few = TableConstraints::of(&base_protocol(), &constraint, &table(), |_| true).unwrap();
        assert_eq!(
            (
                few.checks.len(),
                few.generated.len(),
                few.defaults.len(),
                few.lengths.len()
            ),
            (2, 0, 0, 1)
        );
    }

    #[test]
    fn a_demand_that_was_not_bound_is_no_rule() {
        let asked = TableConstraints {
            checks: vec![NamedExpression::new("c", "a < 9")],
            ..TableConstraints::default()
        };
        assert!(
            TableConstraints::default()
                .rules(&asked, Vec::new())
                .unwrap_err()
                .to_string()
                .contains("not those of the table")
        );
        assert!(
            asked
                .rules(&asked, Vec::new())
                .unwrap_err()
                .to_string()
                .contains("not bound")
        );
    }

    #[test]
    fn identity_columns_go_on_after_their_mark() {
        let fresh = serde_json::json!({START: 5, STEP: -2, EXPLICIT: true});
        let used = serde_json::json!({START: 5, STEP: 10, MARK: 25});
        let schema = StructType {
            fields: vec![field("a", &fresh), field("b", &used)].into(),
        };
        let found = identities(&supporting(&["identityColumns"]), &schema).unwrap();
        let facts: Vec<_> = found
            .iter()
            .map(|i| (i.next, i.step, i.allow_explicit))
            .collect();
        assert_eq!(facts, [(5, -2, true), (35, 10, false)]);
        assert!(identities(&base_protocol(), &schema).unwrap().is_empty());
        assert_eq!(
            [4, 5, 6, 7, 0].map(|value| advanced_high_water_mark(&schema.fields[0], value)),
            [Some(3), Some(5), None, None, Some(-1)]
        );
        assert_eq!(
            [24, 25, 26, 35, 36, i64::MAX]
                .map(|value| advanced_high_water_mark(&schema.fields[1], value)),
            [None, None, Some(35), Some(35), Some(45), None]
        );
        let marked = with_high_water_marks(&schema, &[("b".to_owned(), 45)]);
        assert_eq!(
            identities(&supporting(&["identityColumns"]), &marked).unwrap()[1].next,
            55
        );
    }
}
