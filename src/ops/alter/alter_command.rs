//! ALTER TABLE: the table after one change, and its commit.
//!
//! A change gives the new metadata, protocol and domains; [`alter`] commits them. Changes that files
//! contradict (NOT NULL, CHECK constraints) read the rows first.

use super::row_id_backfill;
use super::schema_edit::field_depth;
use super::table_change::TableChange;
use crate::commit::finish::{CommitOptions, CommitResult, commit, json_string_list};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::file_writer::bound_constraints::TableConstraints;
use crate::ops::alter::column_use::{ColumnChange, ColumnReference, ColumnUser, column_references};
use crate::ops::rewrite::clustering_domain::clustering_columns;
use crate::ops::rewrite::column_path::resolve_column_path;
use crate::ops::rewrite::start_state::check_writable;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::Action;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::table::{self, TableChangeContext};
use crate::snapshot::Snapshot;
use serde_json::{Value, json};

/// The state of the table before and after the change.
pub(super) struct AlteredTable {
    pub(super) protocol: Protocol,
    pub(super) metadata: Metadata,
    pub(super) domains: Vec<DomainMetadata>,
    pub(super) operation: CommitOperation,
    /// Whether all rows were read.
    pub(super) reads_all: bool,
}

/// Changes a table. `bound` are its current constraints, bound to its schema if the change
/// [reads references](TableChange::reads_references).
///
/// # Errors
/// [`Error::Invalid`] for a change that is not possible, with the reason;
/// [`Error::ConstraintViolated`] for a constraint that rows violate; [`Error::Unsupported`]; as
/// [`OptimisticTransaction::commit`].
pub fn alter(
    snapshot: &Snapshot,
    change: &TableChange,
    bound: &TableConstraints,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    check_writable(snapshot)?;
    let uses = if change.reads_references() {
        column_references(snapshot, bound)?
    } else {
        Vec::new()
    };
    let mut altered = AlterCommand::of(snapshot, &uses, cancel).apply(change)?;
    let filled;
    let snapshot = if altered.metadata.flag(ROW_TRACKING) && !snapshot.metadata().flag(ROW_TRACKING)
    {
        filled = row_id_backfill::backfill(snapshot, &altered.protocol, commit_options, cancel)?;
        if filled.version() != snapshot.version() {
            altered = AlterCommand::of(&filled, &uses, cancel).apply(change)?;
        }
        &filled
    } else {
        snapshot
    };
    let new_protocol = altered.protocol != *snapshot.protocol();
    let new_metadata = altered.metadata != *snapshot.metadata();
    // Adding a feature by name always commits a version, as in Spark, where it sets a property.
    let always = matches!(change, TableChange::AddFeatures { .. });
    if !always && !new_protocol && !new_metadata && altered.domains.is_empty() {
        return Ok(CommitResult::unchanged(snapshot));
    }
    let mut transaction = OptimisticTransaction::new(snapshot);
    if altered.reads_all {
        transaction.read_whole_table();
    }
    if new_protocol {
        transaction.push(Action::Protocol(altered.protocol));
    }
    if new_metadata {
        transaction.push(Action::MetaData(Box::new(altered.metadata)));
    }
    transaction.extend(altered.domains.into_iter().map(Action::DomainMetadata));
    commit(transaction, altered.operation, commit_options, cancel)
}

/// The operation name for a change of one column.
pub(super) const CHANGE_COLUMN: &str = "CHANGE COLUMN";

/// The property that enables row tracking.
const ROW_TRACKING: &str = "delta.enableRowTracking";

pub(super) fn json_string(value: &Value) -> Value {
    Value::String(value.to_string())
}

pub(super) fn field_json(path: &str, field: &StructField) -> Value {
    let data_type = match &field.data_type {
        DataType::Struct(_) => "struct".into(),
        DataType::Array(_) => "array".into(),
        DataType::Map(_) => "map".into(),
        other => other.to_json(),
    };
    json!({"name": path, "type": data_type, "nullable": field.nullable, "metadata": field.metadata})
}

pub(super) struct AlterCommand<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// The snapshot's protocol, or the protocol after the previous changes.
    pub(super) protocol: &'a Protocol,
    pub(super) old_metadata: &'a Metadata,
    pub(super) schema: &'a StructType,
    /// The expressions that use columns.
    pub(super) column_references: &'a [ColumnReference],
    pub(super) cancel: &'a CancellationToken,
}

impl<'a> AlterCommand<'a> {
    fn of(
        snapshot: &'a Snapshot,
        column_references: &'a [ColumnReference],
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            snapshot,
            protocol: snapshot.protocol(),
            old_metadata: snapshot.metadata(),
            schema: snapshot.schema(),
            column_references,
            cancel,
        }
    }

    pub(super) fn apply(&self, change: &TableChange) -> Result<AlteredTable> {
        let snapshot = self.snapshot;
        match change {
            TableChange::AddColumns { fields, positions } => self.add_columns(fields, positions),
            TableChange::MoveColumn { column, after } => self.move_column(column, after.as_deref()),
            TableChange::SyncIdentity { column } => self.sync_identity(column),
            TableChange::ReplaceColumns { fields } => self.replace_columns(fields),
            TableChange::DropColumns { columns } => self.drop_columns(columns),
            TableChange::RenameColumn { column, name } => self.rename_column(column, name),
            TableChange::ChangeType {
                column,
                data_type,
                length,
            } => self.change_type(column, &DataType::from_json(data_type)?, length.as_deref()),
            TableChange::SetNullable { column, nullable } => self.set_nullable(column, *nullable),
            TableChange::ChangeColumns { changes } => self.change_columns(changes),
            TableChange::SetColumnMetadata { column, metadata } => {
                self.set_column_metadata(column, metadata)
            }
            TableChange::AddConstraints { constraints } => self.add_constraints(constraints),
            TableChange::DropConstraint { name, if_exists } => {
                self.drop_constraint(name, *if_exists)
            }
            TableChange::SetProperties {
                properties,
                allow_unknown,
            } => {
                let said = json!(properties);
                self.with_properties(
                    properties,
                    *allow_unknown,
                    CommitOperation::with_parameters(
                        "SET TBLPROPERTIES",
                        [("properties", json_string(&said))],
                    ),
                )
            }
            TableChange::UpgradeUniform { version } => self.upgrade_uniform(*version),
            TableChange::UnsetProperties { keys, if_exists } => {
                let metadata = table::unset_properties(snapshot.metadata(), keys, *if_exists)?;
                let parameters = [
                    ("properties", json_string_list(keys)),
                    ("ifExists", Value::Bool(*if_exists)),
                ];
                Ok(self.metadata(
                    metadata,
                    CommitOperation::with_parameters("UNSET TBLPROPERTIES", parameters),
                ))
            }
            TableChange::SetName { name } => {
                let metadata = Metadata {
                    name: Some(name.clone()),
                    ..snapshot.metadata().clone()
                };
                Ok(self.metadata(
                    metadata,
                    CommitOperation::with_parameters(
                        "UPDATE TABLE METADATA",
                        [("metadataUpdate", json_string(&json!({"name": name})))],
                    ),
                ))
            }
            TableChange::SetDescription { description } => {
                let metadata = Metadata {
                    description: Some(description.clone()),
                    ..snapshot.metadata().clone()
                };
                Ok(self.metadata(
                    metadata,
                    CommitOperation::with_parameters(
                        "UPDATE TABLE METADATA",
                        [(
                            "metadataUpdate",
                            json_string(&json!({"description": description})),
                        )],
                    ),
                ))
            }
            TableChange::AddFeatures {
                names,
                allow_versions,
            } => self.add_features(names, *allow_versions),
            TableChange::ClusterBy { columns } => self.cluster_by(columns),
            TableChange::SetDomain {
                domain,
                configuration,
            } => self.set_domain(domain, configuration.as_deref()),
        }
    }

    pub(super) fn metadata(&self, metadata: Metadata, operation: CommitOperation) -> AlteredTable {
        AlteredTable {
            protocol: self.protocol.clone(),
            metadata,
            domains: Vec::new(),
            operation,
            reads_all: false,
        }
    }

    pub(super) fn with_schema(
        &self,
        metadata: &Metadata,
        schema: &StructType,
        operation: CommitOperation,
    ) -> Result<AlteredTable> {
        let mut context = TableChangeContext {
            allow_unknown: true,
            now_ms: now_ms(),
            generate_id: &mut uuid,
        };
        let (protocol, metadata) =
            table::set_schema(self.protocol, metadata, schema, &mut context)?;
        Ok(AlteredTable {
            protocol,
            ..self.metadata(metadata, operation)
        })
    }

    /// The parts of a column's path, spelled as in the schema.
    pub(super) fn path(&self, column: &str) -> Result<Vec<String>> {
        resolve_column_path(self.schema, column)
    }

    /// The same for a column or field, which elements, keys and values are not.
    pub(super) fn field_path(&self, column: &str, change: ColumnChange) -> Result<Vec<String>> {
        let path = self.path(column)?;
        if field_depth(self.schema, &path) < path.len() {
            return Err(Error::invalid(format!(
                "only columns and fields of structs can be {change}, not the elements of a list, nor the keys or values of a map"
            ))
            .with_code(change.of_elements_code(), &[("column", &column)])
            .at_column(column));
        }
        Ok(path)
    }

    /// Refuses a change of a column that is used elsewhere.
    pub(super) fn check_unreferenced(
        &self,
        path: &[String],
        change: ColumnChange,
        partition_too: bool,
    ) -> Result<()> {
        let column = path.join(".");
        let refuse = |user: &ColumnUser| Err(user.refuse(&column, change));
        for reference in self.column_references {
            if reference
                .expr
                .columns()
                .into_iter()
                .any(|used| used.starts_with(path) || path.starts_with(used))
            {
                return refuse(&reference.user);
            }
        }
        let metadata = self.old_metadata;
        if partition_too
            && path.len() == 1
            && metadata
                .partition_columns
                .iter()
                .any(|name| path.first() == Some(name))
        {
            return refuse(&ColumnUser::Partitioning);
        }
        if partition_too
            && clustering_columns(self.snapshot)?
                .iter()
                .any(|used| used.starts_with(path))
        {
            return refuse(&ColumnUser::Clustering);
        }
        Ok(())
    }
}
