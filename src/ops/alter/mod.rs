//! ALTER TABLE: changes of the table's definition: columns, constraints, properties, features.
//!
//! Columns are identified by their path, parts joined with dots; elements of lists and maps are
//! `element`, `key` and `value`. Columns that a constraint or a generated column uses, and
//! partition and clustering columns, cannot be dropped, renamed or changed in type. As everywhere,
//! the expressions are given in bound form.
//!
//! Protocol: "Change Metadata", "Column Mapping", "Type Widening", "CHECK Constraints", "Table
//! Features", "Clustered Table". Cost: a commit; a constraint or NOT NULL reads the rows once, or
//! fewer if statistics suffice.

mod column_use;
pub(super) mod drop_feature;
pub(super) mod feature_usage;
pub(super) mod multi_commit;
mod replace_columns;
pub(super) mod row_id_backfill;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::commit::finish::{CommitOptions, CommitResult, commit, json_string_list};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{CallOption, Error, ErrorCode, Result, invariant, shown};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::expr::{BoundExpr, Expr, Function};
use crate::log::MaintenanceOperation;
use crate::ops::alter::column_use::{ColumnChange, ColumnReference, ColumnUser, column_references};
use crate::ops::create::{GENERATED, checked_clustering, generated_value_key};
use crate::ops::rewrite::clustering_domain::{clustering_columns, clustering_domain};
use crate::ops::rewrite::column_path::{quoted_column_path, resolve_column_path};
use crate::ops::rewrite::iceberg_compatibility;
use crate::ops::rewrite::partition_predicate;
use crate::ops::rewrite::start_state::check_writable;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::commit_line::Action;
use crate::protocol::evolution;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::iceberg::{ATOMIC, enabled_iceberg_compat, property_of};
use crate::protocol::properties::{self, CONSTRAINTS, FEATURE, STATS_COLUMNS};
use crate::protocol::schema::{
    ArrayType, DECLARED_TYPE, DataType, MapType, StringLayout, StructField, StructType,
};
use crate::protocol::table::{self, TableChangeContext};
use crate::scan::{self, ScanRequest};
use crate::snapshot::Snapshot;
use crate::write::bound_constraints::{self, NamedExpression, TableConstraints};
use crate::write::constraints::row_text;

/// A change of a table's definition.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TableChange {
    /// Adds columns, or fields of struct columns.
    AddColumns {
        /// The columns, as in a schema.
        fields: SchemaJson,
        /// The positions of columns that are not added at the end, in this order: the column's
        /// path, and the name of the column or field after which it is placed; `None` for the first
        /// position.
        #[serde(default)]
        positions: Vec<(String, Option<String>)>,
    },
    /// Moves a column or field among its siblings.
    MoveColumn {
        /// Its path.
        column: String,
        /// The sibling after which it is placed; `None` for the first position.
        after: Option<String>,
    },
    /// Sets the next value of an identity column after the existing values.
    SyncIdentity {
        /// Its name.
        column: String,
    },
    /// Gives the table these columns: reorders and drops existing ones, adds the others.
    ReplaceColumns {
        /// The columns, as in a schema; for existing ones, the comment and the type count.
        fields: SchemaJson,
    },
    /// Drops columns or fields; their values remain in the files.
    DropColumns {
        /// Their paths.
        columns: Vec<String>,
    },
    /// Renames a column or field.
    RenameColumn {
        /// Its path.
        column: String,
        /// The last part of the new path.
        name: String,
    },
    /// Widens the type of a column, field, element, key or value.
    ChangeType {
        /// Its path.
        column: String,
        /// The new type, as in a schema.
        data_type: Value,
        /// The new length of a string, such as `varchar(10)`; `None` for any length.
        #[serde(default)]
        length: Option<String>,
    },
    /// Sets whether a column, field, element or value may be null.
    SetNullable {
        /// Its path.
        column: String,
        /// Whether it may be null.
        nullable: bool,
    },
    /// Several changes of columns, each applied to the result of the previous ones.
    ChangeColumns {
        /// Changes of columns. Successive changes of the same column are recorded as one.
        changes: Vec<TableChange>,
    },
    /// Sets keys of a column's metadata; keys with null are removed.
    SetColumnMetadata {
        /// Its path.
        column: String,
        /// The keys.
        metadata: Map<String, Value>,
    },
    /// Adds CHECK constraints, which all rows must satisfy.
    AddConstraints {
        /// Names and bound expressions.
        constraints: Vec<NamedExpression>,
    },
    /// Drops a CHECK constraint.
    DropConstraint {
        /// Its name.
        name: String,
        /// Whether a missing constraint is not an error.
        if_exists: bool,
    },
    /// Sets properties and enables the features that they require.
    SetProperties {
        /// Keys and values.
        properties: BTreeMap<String, String>,
        /// Whether unknown `delta.` keys may be set.
        allow_unknown: bool,
    },
    /// Enables a version of Iceberg compatibility; existing files are not rewritten here.
    UpgradeUniform {
        /// The version.
        version: u64,
    },
    /// Unsets properties; features remain.
    UnsetProperties {
        /// Their keys.
        keys: Vec<String>,
        /// Whether missing properties are not an error.
        if_exists: bool,
    },
    /// Sets the table's name.
    SetName {
        /// The new name.
        name: String,
    },
    /// Sets the table's description.
    SetDescription {
        /// The new description.
        description: String,
    },
    /// Adds table features.
    AddFeatures {
        /// Their names.
        names: Vec<String>,
        /// Whether the protocol versions may be raised for them.
        allow_versions: bool,
    },
    /// Sets or removes the configuration of a user domain.
    SetDomain {
        /// Its name.
        domain: String,
        /// Any string; `None` to remove it.
        configuration: Option<String>,
    },
    /// Sets the clustering columns; an empty list ends clustering.
    ClusterBy {
        /// Their paths.
        columns: Vec<String>,
    },
}

impl TableChange {
    /// Whether the change is refused for columns that constraints or generated columns use.
    ///
    /// The other changes do not need the bound expressions, so that a constraint that cannot be
    /// bound can be dropped.
    #[must_use]
    pub fn reads_references(&self) -> bool {
        matches!(
            self,
            Self::DropColumns { .. }
                | Self::RenameColumn { .. }
                | Self::ReplaceColumns { .. }
                | Self::ChangeType { .. }
                | Self::ChangeColumns { .. }
        )
    }
}

/// A schema as JSON.
pub type SchemaJson = Value;

/// The state of the table before and after the change.
struct AlteredTable {
    protocol: Protocol,
    metadata: Metadata,
    domains: Vec<DomainMetadata>,
    operation: CommitOperation,
    /// Whether all rows were read.
    reads_all: bool,
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
const CHANGE_COLUMN: &str = "CHANGE COLUMN";

/// The property that enables row tracking.
const ROW_TRACKING: &str = "delta.enableRowTracking";

fn json_string(value: &Value) -> Value {
    Value::String(value.to_string())
}

fn field_json(path: &str, field: &StructField) -> Value {
    let data_type = match &field.data_type {
        DataType::Struct(_) => "struct".into(),
        DataType::Array(_) => "array".into(),
        DataType::Map(_) => "map".into(),
        other => other.to_json(),
    };
    json!({"name": path, "type": data_type, "nullable": field.nullable, "metadata": field.metadata})
}

struct AlterCommand<'a> {
    snapshot: &'a Snapshot,
    /// The snapshot's protocol, or the protocol after the previous changes.
    protocol: &'a Protocol,
    old_metadata: &'a Metadata,
    schema: &'a StructType,
    /// The expressions that use columns.
    column_references: &'a [ColumnReference],
    cancel: &'a CancellationToken,
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

    fn apply(&self, change: &TableChange) -> Result<AlteredTable> {
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

    fn set_domain(&self, domain: &str, configuration: Option<&str>) -> Result<AlteredTable> {
        if domain.is_empty() || domain.starts_with("delta.") {
            return Err(Error::invalid(format!(
                "the domain `{domain}` cannot be set or removed by users; names that begin with `delta.` are the protocol's"
            )));
        }
        let name = if configuration.is_some() {
            "SET DOMAIN METADATA"
        } else {
            "REMOVE DOMAIN METADATA"
        };
        let action = match configuration {
            Some(text) => Some(DomainMetadata {
                domain: domain.to_owned(),
                configuration: text.to_owned(),
                removed: false,
            }),
            None => self
                .snapshot
                .non_file_actions()?
                .domains
                .get(domain)
                .map(|last| DomainMetadata {
                    removed: true,
                    ..last.clone()
                }),
        };
        let altered = self.metadata(
            self.old_metadata.clone(),
            CommitOperation::with_parameters(name, [("domain", domain.into())]),
        );
        Ok(AlteredTable {
            domains: action.into_iter().collect(),
            ..altered
        })
    }

    fn metadata(&self, metadata: Metadata, operation: CommitOperation) -> AlteredTable {
        AlteredTable {
            protocol: self.protocol.clone(),
            metadata,
            domains: Vec::new(),
            operation,
            reads_all: false,
        }
    }

    fn with_schema(
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

    fn with_properties(
        &self,
        properties: &BTreeMap<String, String>,
        allow_unknown: bool,
        operation: CommitOperation,
    ) -> Result<AlteredTable> {
        let altered = self.with_unchecked_properties(properties, allow_unknown, operation)?;
        let reads_all =
            iceberg_compatibility::check_files(self.snapshot, &altered.metadata, self.cancel)?;
        Ok(AlteredTable {
            reads_all,
            ..altered
        })
    }

    /// The same without a check of the existing files.
    fn with_unchecked_properties(
        &self,
        properties: &BTreeMap<String, String>,
        allow_unknown: bool,
        operation: CommitOperation,
    ) -> Result<AlteredTable> {
        let (snapshot, mut context) = (
            self.snapshot,
            TableChangeContext {
                allow_unknown,
                now_ms: now_ms(),
                generate_id: &mut uuid,
            },
        );
        if let Some(key) = properties
            .keys()
            .find(|key| key.to_ascii_lowercase().starts_with(CONSTRAINTS))
        {
            return Err(Error::invalid(format!(
                "`{}` is not a property to set: add the constraint, so that the rows are checked",
                shown(key)
            )));
        }
        let (protocol, metadata) = table::set_properties(
            snapshot.protocol(),
            snapshot.metadata(),
            properties,
            &mut context,
        )?;
        if protocol.has_writer_feature("catalogManaged")
            && !snapshot.protocol().has_writer_feature("catalogManaged")
        {
            return Err(Error::unsupported_feature(
                "catalogManaged",
                "a table is given to a catalog by the catalog, not by a property",
            ));
        }
        Ok(AlteredTable {
            protocol,
            ..self.metadata(metadata, operation)
        })
    }

    fn upgrade_uniform(&self, version: u64) -> Result<AlteredTable> {
        let (snapshot, metadata) = (self.snapshot, self.old_metadata);
        snapshot.check_maintenance(MaintenanceOperation::Optimize)?;
        let Some(key) = property_of(version) else {
            return Err(Error::unsupported(format!(
                "there is no ICEBERG_COMPAT_VERSION {version} that deltafast writes: 1 and 2 are supported"
            )));
        };
        let old = enabled_iceberg_compat(metadata);
        let mut properties: BTreeMap<String, String> = BTreeMap::new();
        if old.is_none_or(|(_, old)| old != version) {
            let mut set =
                |key: &str, value: &str| _ = properties.insert(key.to_owned(), value.to_owned());
            set(key, "true");
            set("delta.enableDeletionVectors", "false");
            if let Some((old, _)) = old {
                set(old, "false");
            }
            if features::column_mapping(snapshot.protocol(), metadata)? == ColumnMapping::None {
                set("delta.columnMapping.mode", "name");
            }
        }
        let said = CommitOperation::with_parameters(
            "REORG TABLE UPGRADE UNIFORM",
            [("properties", json_string(&json!(properties)))],
        );
        if properties.is_empty() {
            return Ok(self.metadata(metadata.clone(), said));
        }
        // Files are not rewritten for version 1, so the existing ones must be compatible.
        let mut altered = if version == 1 {
            self.with_properties(&properties, true, said)?
        } else {
            self.with_unchecked_properties(&properties, true, said)?
        };
        altered
            .metadata
            .configuration
            .insert(ATOMIC.to_owned(), "true".to_owned());
        Ok(altered)
    }

    fn add_columns(
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

    fn move_column(&self, column: &str, after: Option<&str>) -> Result<AlteredTable> {
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

    fn change_columns(&self, changes: &[TableChange]) -> Result<AlteredTable> {
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

    fn sync_identity(&self, column: &str) -> Result<AlteredTable> {
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

    /// The parts of a column's path, spelled as in the schema.
    fn path(&self, column: &str) -> Result<Vec<String>> {
        resolve_column_path(self.schema, column)
    }

    /// The same for a column or field, which elements, keys and values are not.
    fn field_path(&self, column: &str, change: ColumnChange) -> Result<Vec<String>> {
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
    fn check_unreferenced(
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

    fn check_column_mapping(&self, change: ColumnChange) -> Result<()> {
        if features::column_mapping(self.protocol, self.old_metadata)? == ColumnMapping::None {
            return Err(Error::invalid(format!(
                "columns can be {change} where the table maps columns; set `delta.columnMapping.mode` to `name` first"
            ))
            .with_code(change.needs_mapping_code(), &[]));
        }
        Ok(())
    }

    fn drop_columns(&self, columns: &[String]) -> Result<AlteredTable> {
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

    fn rename_column(&self, column: &str, name: &str) -> Result<AlteredTable> {
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

    fn replace_columns(&self, fields: &SchemaJson) -> Result<AlteredTable> {
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

    /// Whether the table widens types.
    fn widens(&self) -> bool {
        features::supported(self.protocol)
            .iter()
            .any(|name| name.starts_with("typeWidening"))
            && self.old_metadata.flag("delta.enableTypeWidening")
    }

    /// Whether the files allow one type to become the other.
    fn can_widen(&self, from: &DataType, to: &DataType) -> bool {
        evolution::can_widen(from, to)
            && (enabled_iceberg_compat(self.old_metadata).is_none()
                || evolution::widens_in_iceberg(from, to))
    }

    fn change_type(
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

    fn set_nullable(&self, column: &str, nullable: bool) -> Result<AlteredTable> {
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

    fn set_column_metadata(
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

    /// The values of a row for which a predicate is true, if there is one.
    fn first_row(&self, predicate: &BoundExpr) -> Result<Option<String>> {
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

    fn add_constraints(&self, constraints: &[NamedExpression]) -> Result<AlteredTable> {
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
                        &[
                            ("constraint", &constraint.name),
                            ("expression", &constraint.sql),
                        ],
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

    fn drop_constraint(&self, name: &str, if_exists: bool) -> Result<AlteredTable> {
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

    fn add_features(&self, names: &[String], allow_versions: bool) -> Result<AlteredTable> {
        let properties = names
            .iter()
            .map(|name| (format!("{FEATURE}{name}"), "supported".to_owned()))
            .collect();
        let altered = self.with_properties(
            &properties,
            false,
            CommitOperation::with_parameters("ADD FEATURE", [("name", json_string_list(names))]),
        )?;
        let (old, new) = (self.protocol, &altered.protocol);
        if !allow_versions
            && (old.min_reader_version, old.min_writer_version)
                != (new.min_reader_version, new.min_writer_version)
        {
            return Err(Error::invalid(format!(
                "the feature needs the protocol ({}, {}), the table has ({}, {}); pass {} to raise it",
                new.min_reader_version,
                new.min_writer_version,
                old.min_reader_version,
                old.min_writer_version,
                CallOption::AllowProtocolVersionsIncrease
            ))
            .with_code(
                ErrorCode::ProtocolUpgradeNeeded,
                &[
                    ("reader_version", &new.min_reader_version),
                    ("writer_version", &new.min_writer_version),
                    ("table_reader_version", &old.min_reader_version),
                    ("table_writer_version", &old.min_writer_version),
                ],
            ));
        }
        Ok(altered)
    }

    fn cluster_by(&self, columns: &[String]) -> Result<AlteredTable> {
        let (snapshot, metadata) = (self.snapshot, self.old_metadata);
        if !metadata.partition_columns.is_empty() {
            return Err(Error::invalid("a partitioned table cannot be clustered"));
        }
        let old = clustering_columns(self.snapshot)?;
        let new = checked_clustering(snapshot.schema(), columns, metadata)?;
        let protocol = if columns.is_empty() {
            snapshot.protocol().clone()
        } else {
            features::with_features(snapshot.protocol(), &["clustering".to_owned()].into())
        };
        let listed = |paths: &[Vec<String>]| {
            let names: Vec<String> = paths.iter().map(|path| quoted_column_path(path)).collect();
            Value::from(names.join(","))
        };
        let parameters = [
            ("oldClusteringColumns", listed(&old)),
            ("newClusteringColumns", listed(&new)),
        ];
        let domains = if old == new {
            Vec::new()
        } else {
            vec![clustering_domain(snapshot.schema(), &new)?]
        };
        Ok(AlteredTable {
            protocol,
            domains,
            ..self.metadata(
                metadata.clone(),
                CommitOperation::with_parameters("CLUSTER BY", parameters),
            )
        })
    }
}

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

/// The new position of a column as recorded in the log.
fn position_clause(after: Option<&str>) -> String {
    after.map_or_else(|| "FIRST".to_owned(), |after| format!("AFTER {after}"))
}

/// How many parts of a path lead to its last column or field; the others are elements, keys and
/// values within it.
fn field_depth(schema: &StructType, path: &[String]) -> usize {
    fn within(data_type: &DataType, path: &[String]) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let (is_field, inner) = match data_type {
            DataType::Struct(inner) => (true, &inner.field(first)?.data_type),
            DataType::Array(array) => (false, &array.element),
            DataType::Map(map) if first == "key" => (false, &map.key),
            DataType::Map(map) => (false, &map.value),
            _ => return None,
        };
        match within(inner, rest) {
            Some(depth) => Some(depth + 1),
            None => is_field.then_some(1),
        }
    }
    path.split_first()
        .and_then(|(first, rest)| Some((&schema.field(first)?.data_type, rest)))
        .map_or(0, |(data_type, rest)| {
            1 + within(data_type, rest).unwrap_or(0)
        })
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

/// The columns that a caller gives.
fn given_columns(fields: &SchemaJson) -> Result<StructType> {
    StructType::parse(&fields.to_string()).map_err(|error| Error::invalid(error.to_string()))
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

/// The schema with one column or field moved after another one of the same struct, or to the first
/// position.
fn move_field(schema: &StructType, path: &[String], after: Option<&str>) -> Result<StructType> {
    let Some((name, parents)) = path.split_last() else {
        return Ok(schema.clone());
    };
    if parents.is_empty() {
        return move_within_struct(schema, name, after);
    }
    let lacking = || {
        Error::invalid("only columns and fields of structs have a place").at_column(path.join("."))
    };
    transform_field(schema, parents, &mut |parent| match &parent.data_type {
        DataType::Struct(inner) => Ok(Some(StructField {
            data_type: DataType::Struct(Arc::new(move_within_struct(inner, name, after)?)),
            ..parent.clone()
        })),
        _ => Err(lacking()),
    })
}

/// The same within one struct.
fn move_within_struct(schema: &StructType, name: &str, after: Option<&str>) -> Result<StructType> {
    let Some(from) = schema.fields.position(name) else {
        return Ok(schema.clone());
    };
    let mut fields = Vec::from(schema.fields.clone());
    let field = fields.remove(from);
    let to = match after {
        None => 0,
        Some(after) => {
            let sibling = fields
                .iter()
                .position(|field| field.name.to_lowercase() == after.to_lowercase());
            let sibling = sibling.ok_or_else(|| {
                Error::invalid(format!(
                    "there is no `{}` that it could stand behind",
                    shown(after)
                ))
                .with_code(ErrorCode::SiblingNotFound, &[("column", &after)])
                .at_column(name)
            })?;
            sibling + 1
        }
    };
    fields.insert(to, field);
    Ok(StructType {
        fields: fields.into(),
    })
}

/// Edits a field; `None` removes it.
type FieldTransform<'a> = &'a mut dyn FnMut(&StructField) -> Result<Option<StructField>>;

/// The schema with one field edited.
fn transform_field(
    schema: &StructType,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<StructType> {
    let Some((name, rest)) = path.split_first() else {
        return Ok(schema.clone());
    };
    let mut fields = Vec::with_capacity(schema.fields.len());
    for field in &schema.fields {
        if field.name != *name {
            fields.push(field.clone());
        } else if rest.is_empty() {
            fields.extend(edit(field)?);
        } else {
            fields.push(StructField {
                data_type: transform_data_type(&field.data_type, rest, edit)?,
                ..field.clone()
            });
        }
    }
    Ok(StructType {
        fields: fields.into(),
    })
}

fn transform_data_type(
    data_type: &DataType,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<DataType> {
    let mut part = |name: &str, data_type: &DataType, nullable: bool| {
        transform_part(name, data_type, nullable, path, edit)
    };
    Ok(match (data_type, path.first().map(String::as_str)) {
        (DataType::Struct(inner), _) => {
            let inner = transform_field(inner, path, edit)?;
            if inner.fields.is_empty() {
                return Err(Error::invalid(
                    "a struct must keep at least one field; drop the struct instead",
                )
                .with_code(ErrorCode::LastColumnDropped, &[]));
            }
            DataType::Struct(Arc::new(inner))
        }
        (DataType::Array(array), _) => {
            let (element, contains_null) = part("element", &array.element, array.contains_null)?;
            DataType::Array(Arc::new(ArrayType {
                element,
                contains_null,
            }))
        }
        (DataType::Map(map), Some("key")) => {
            let (key, nullable) = part("key", &map.key, false)?;
            if nullable {
                return Err(Error::invalid("the keys of a map are never null"));
            }
            DataType::Map(Arc::new(MapType {
                key,
                ..map.as_ref().clone()
            }))
        }
        (DataType::Map(map), _) => {
            let (value, value_contains_null) = part("value", &map.value, map.value_contains_null)?;
            DataType::Map(Arc::new(MapType {
                value,
                value_contains_null,
                ..map.as_ref().clone()
            }))
        }
        (other, _) => other.clone(),
    })
}

/// Edits an element, key or value as a field that has its type and no metadata; or what is within
/// it. Returns its type, and whether it may be null.
fn transform_part(
    name: &str,
    data_type: &DataType,
    nullable: bool,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<(DataType, bool)> {
    let rest = path.get(1..).unwrap_or_default();
    if !rest.is_empty() {
        return Ok((transform_data_type(data_type, rest, edit)?, nullable));
    }
    match edit(&StructField::new(name, data_type.clone(), nullable))? {
        Some(out) if out.metadata.is_empty() => Ok((out.data_type, out.nullable)),
        Some(out) => {
            let key = out.metadata.keys().next().map_or("", String::as_str);
            let error = Error::invalid(format!(
                "the {name}s of a {} cannot have `{}`, only columns and fields can; set it for the column",
                if name == "element" { "list" } else { "map" },
                shown(key)
            ));
            Err(if key == "comment" {
                error.with_code(ErrorCode::CommentOnElement, &[])
            } else {
                error
            })
        }
        None => Err(Error::invalid(format!("an {name} cannot be dropped"))),
    }
}

/// Whether a path is that of a column or of a part of it, compared case-insensitively.
fn is_within(path: &[String], column: &[String]) -> bool {
    path.len() >= column.len()
        && path
            .iter()
            .zip(column)
            .all(|(a, b)| a.to_lowercase() == b.to_lowercase())
}

/// A list of column paths, each edited by `edit`.
fn transform_column_list(list: &str, edit: &dyn Fn(Vec<String>) -> Option<Vec<String>>) -> String {
    let Some(paths) = properties::columns(list) else {
        return list.to_owned();
    };
    let plain = |part: &String| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let spelled = |part: &String| {
        if plain(part) {
            part.clone()
        } else {
            format!("`{}`", part.replace('`', "``"))
        }
    };
    let path = |path: Vec<String>| path.iter().map(spelled).collect::<Vec<_>>().join(".");
    paths
        .into_iter()
        .filter_map(edit)
        .map(path)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_edited_at_any_depth() {
        let schema = StructType::parse(
            r#"{"type":"struct","fields":[{"name":"a","type":"long"},{"name":"l","type":{"type":"array","elementType":{"type":"map","keyType":"string",
            "valueType":{"type":"struct","fields":[{"name":"x","type":"long"},{"name":"y","type":"date"}]}}}}]}"#,
        )
        .unwrap();
        let path: Vec<String> = ["l", "element", "value", "x"].map(str::to_owned).into();
        let renamed = transform_field(&schema, &path, &mut |field| {
            Ok(Some(StructField {
                name: "z".to_owned(),
                ..field.clone()
            }))
        })
        .unwrap();
        assert_eq!(
            renamed.fields[1].data_type.to_string(),
            "array<map<string,struct<z:long,y:date>>>"
        );
        let dropped = transform_field(&schema, &path, &mut |_| Ok(None)).unwrap();
        assert_eq!(
            dropped.fields[1].data_type.to_string(),
            "array<map<string,struct<y:date>>>"
        );
        let last: Vec<String> = ["l", "element", "value", "y"].map(str::to_owned).into();
        assert!(
            transform_field(&dropped, &last, &mut |_| Ok(None))
                .unwrap_err()
                .to_string()
                .contains("at least one field")
        );
    }

    #[test]
    fn lists_of_columns_are_edited_path_by_path() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let without = |list: &str, column: &str| {
            transform_column_list(list, &|named| {
                (!is_within(&named, &path(column))).then_some(named)
            })
        };
        assert_eq!(without("a, S.x,`odd name`,s.y.z", "s"), "a,`odd name`");
        assert_eq!(
            (without("s,a", "s.x"), without("A", "a")),
            ("s,a".to_owned(), String::new())
        );
        assert_eq!(
            transform_column_list("a,b", &|named| Some(if named == path("a") {
                path("has space")
            } else {
                named
            })),
            "`has space`,b"
        );
    }
}
