//! What the caller bound of a MERGE: its options, condition and clauses.

use crate::commit::finish::{CommitOptions, json_string_list};
use crate::error::{Error, Result};
use crate::expr::{BoundExpr, BoundTree};
use crate::file_writer::bound_constraints::TableConstraints;
use crate::ops::merge::clauses::{ClauseAction, ClausePlan, MergeClause};
use crate::ops::merge::join_keys::JoinEquality;
use crate::ops::rewrite::target_table::DataFileOptions;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Options of a merge.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MergeOptions {
    /// How new files are made.
    pub encoding: DataFileOptions,
    /// How it is committed.
    pub commit_options: CommitOptions,
    /// Bytes of the source to keep in memory.
    pub max_spill_size: Option<u64>,
    /// The maximum size of temporary files in bytes.
    pub max_temp_directory_size: Option<u64>,
    /// The maximum number of retries on the newest version after another writer changed rows that
    /// were read.
    pub max_conflict_retries: u32,
}

/// The bound expressions of a merge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergePlan {
    /// The condition, as written by the caller.
    pub on: String,
    /// Its equalities between an expression of the table and one of the source.
    pub equalities: Vec<EqualityPlan>,
    /// Its conjuncts over the table's columns only.
    pub target_only: Option<BoundTree>,
    /// Its conjuncts over the source's columns only.
    pub source_only: Option<BoundTree>,
    /// The remaining conjuncts, over the structs `target` and `source`.
    pub residual: Option<BoundTree>,
    /// Clauses for matched rows, over these structs.
    pub matched: Vec<ClausePlan>,
    /// Clauses for rows of the source that match no row of the table, over the source's columns.
    pub not_matched: Vec<ClausePlan>,
    /// Clauses for rows of the table that no row of the source matches, over the table's columns.
    pub by_source: Vec<ClausePlan>,
    /// The table's constraints.
    pub constraints: TableConstraints,
}

/// An equality of a [`MergePlan`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EqualityPlan {
    /// Expression over the table's columns.
    pub target: BoundTree,
    /// Expression over the source's columns.
    pub source: BoundTree,
    /// Whether null equals null.
    pub null_safe: bool,
}

impl MergePlan {
    pub(in crate::ops) fn equalities(&self) -> Result<Vec<JoinEquality>> {
        let equality = |plan: &EqualityPlan| {
            Ok(JoinEquality {
                target: BoundExpr::new(&plan.target)?,
                source: BoundExpr::new(&plan.source)?,
                null_safe: plan.null_safe,
            })
        };
        self.equalities.iter().map(equality).collect()
    }

    /// The parameters in `commitInfo`.
    pub(in crate::ops) fn parameters(&self) -> Value {
        let clauses = |plans: &[ClausePlan]| {
            let one = |plan: &ClausePlan| {
                let mut out = Map::new();
                out.extend(plan.condition.as_ref().map(|condition| {
                    ("predicate".to_owned(), Value::from(condition.sql.as_str()))
                }));
                out.insert("actionType".to_owned(), plan.action.name().into());
                Value::Object(out)
            };
            Value::String(Value::Array(plans.iter().map(one).collect()).to_string())
        };
        json!({
            "predicate": json_string_list(std::slice::from_ref(&self.on)),
            "matchedPredicates": clauses(&self.matched),
            "notMatchedPredicates": clauses(&self.not_matched),
            "notMatchedBySourcePredicates": clauses(&self.by_source),
        })
    }
}

#[derive(Debug, Clone)]
pub(in crate::ops) struct MergeClauses {
    pub matched: Vec<MergeClause>,
    pub not_matched: Vec<MergeClause>,
    pub by_source: Vec<MergeClause>,
}

impl MergeClauses {
    pub(in crate::ops) fn of(plan: &MergePlan) -> Result<Self> {
        let out = Self {
            matched: MergeClause::of(&plan.matched)?,
            not_matched: MergeClause::of(&plan.not_matched)?,
            by_source: MergeClause::of(&plan.by_source)?,
        };
        if out.matched.is_empty() && out.not_matched.is_empty() && out.by_source.is_empty() {
            return Err(Error::invalid("a MERGE needs at least one WHEN clause"));
        }
        Ok(out)
    }

    /// Whether existing rows may change.
    pub(in crate::ops) fn changes_existing_rows(&self) -> bool {
        !self.matched.is_empty() || !self.by_source.is_empty()
    }

    /// Whether the result does not depend on which of several source rows matches a row of the
    /// table.
    pub(in crate::ops) fn allows_multiple_matches(&self) -> bool {
        matches!(
            self.matched.as_slice(),
            [MergeClause {
                clause_action: ClauseAction::Delete,
                condition: None,
                ..
            }]
        ) || self.matched.is_empty()
    }
}
