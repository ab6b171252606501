//! CHECK constraints of a table.

use super::alter_command::{AlterCommand, AlteredTable, json_string};
use crate::commit::CommitOperation;
use crate::error::{Error, ErrorCode, Result, shown};
use crate::expr::BoundExpr;
use crate::file_writer::bound_constraints::NamedExpression;
use crate::file_writer::constraints::row_text;
use crate::ops::rewrite::partition_predicate;
use crate::protocol::properties::CONSTRAINTS;
use crate::protocol::schema::StringLayout;
use crate::protocol::table::{self};
use crate::scan::{self, ScanRequest};
use serde_json::{Value, json};

impl AlterCommand<'_> {
    /// The values of a row for which a predicate is true, if there is one.
    pub(super) fn first_row(&self, predicate: &BoundExpr) -> Result<Option<String>> {
        let mut columns: Vec<String> = predicate
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        columns.dedup();
        let request = ScanRequest {
            columns: Some(columns),
            predicate: Some(predicate.clone()),
            limit: Some(1),
            layout: StringLayout::Plain,
            cancel: self.cancel.clone(),
            ..ScanRequest::default()
        };
        for batch in scan::scan(self.snapshot, &request)?.batches {
            let batch = batch?;
            if batch.num_rows() > 0 {
                return Ok(Some(row_text(&batch, 0)));
            }
        }
        Ok(None)
    }

    pub(super) fn add_constraints(&self, constraints: &[NamedExpression]) -> Result<AlteredTable> {
        let mut metadata = self.old_metadata.clone();
        for constraint in constraints {
            let key = format!("{CONSTRAINTS}{}", constraint.name);
            if constraint.name.is_empty()
                || metadata
                    .configuration
                    .keys()
                    .any(|known| known.eq_ignore_ascii_case(&key))
            {
                return Err(Error::invalid(format!(
                    "the constraint `{}` is there already, or has no name",
                    constraint.name
                ))
                .with_code(
                    ErrorCode::ConstraintExists,
                    &[("constraint", &constraint.name)],
                ));
            }
            let expr = constraint.bound()?;
            if let Some(row) = self.first_row(&partition_predicate::not_true(&expr)?)? {
                let what = format!(
                    "the constraint `{}` ({}) does not hold for a row that is there: {row}",
                    constraint.name, constraint.sql
                );
                return Err(
                    Error::constraint_violated(&constraint.name, what).with_code(
                        ErrorCode::NewCheckViolated,
                        &[("expression", &constraint.sql)],
                    ),
                );
            }
            metadata.configuration.insert(key, constraint.sql.clone());
        }
        let parameters: Vec<(&'static str, Value)> = match constraints {
            [one] => vec![
                ("name", one.name.as_str().into()),
                ("expr", one.sql.as_str().into()),
            ],
            many => {
                let list: Vec<Value> = many
                    .iter()
                    .map(|one| json!({"name": one.name, "expr": one.sql}))
                    .collect();
                vec![("constraints", json_string(&json!(list)))]
            }
        };
        let protocol = table::sufficient(self.protocol, &metadata, self.schema)?;
        Ok(AlteredTable {
            protocol,
            reads_all: true,
            ..self.metadata(
                metadata,
                CommitOperation::with_parameters("ADD CONSTRAINT", parameters),
            )
        })
    }

    pub(super) fn drop_constraint(&self, name: &str, if_exists: bool) -> Result<AlteredTable> {
        let mut metadata = self.old_metadata.clone();
        let key = format!("{CONSTRAINTS}{name}");
        let before = metadata.configuration.len();
        metadata
            .configuration
            .retain(|known, _| !known.eq_ignore_ascii_case(&key));
        if metadata.configuration.len() == before && !if_exists {
            return Err(
                Error::invalid(format!("the table has no constraint `{}`", shown(name)))
                    .with_code(ErrorCode::ConstraintNotFound, &[("constraint", &name)]),
            );
        }
        Ok(self.metadata(
            metadata,
            CommitOperation::with_parameters("DROP CONSTRAINT", [("constraint", name.into())]),
        ))
    }
}
