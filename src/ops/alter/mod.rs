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

pub(super) mod drop_feature;
pub(super) mod feature_usage;
pub(super) mod multi_commit;
pub(super) mod row_id_backfill;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::create::{GENERATED, check_clustering, generated_value_key};
use crate::commit::finish::{CommitOptions, CommitResult, commit, json_string_list};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::{Error, Result, invariant, shown};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::expr::{BoundExpr, Expr, Function};
use crate::log::MaintenanceOperation;
use crate::ops::access::check_writable;
use crate::ops::clustering_domain::{clustering_columns, clustering_domain};
use crate::ops::optimize::iceberg;
use crate::ops::partition_predicate;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::commit_line::Action;
use crate::protocol::evolution;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::iceberg::{ATOMIC, enabled_iceberg_compat, property_of};
use crate::protocol::properties::{self, CONSTRAINTS, FEATURE, STATS_COLUMNS};
use crate::protocol::schema::{
    ArrayType, DataType, MapType, StringLayout, StructField, StructType,
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
    /// Widens the type of a column or field.
    ChangeType {
        /// Its path.
        column: String,
        /// The new type, as in a schema.
        data_type: Value,
    },
    /// Sets whether a column or field may be null.
    SetNullable {
        /// Its path.
        column: String,
        /// Whether it may be null.
        nullable: bool,
    },
    /// Several changes of columns, each applied to the result of the previous ones.
    ChangeColumns {
        /// The changes that one `CHANGE COLUMN` makes to a column.
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

/// Changes a table. `bound` are its current constraints, bound to its schema.
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
    let asked = TableConstraints::of(
        snapshot.protocol(),
        snapshot.metadata(),
        snapshot.schema(),
        |_| false,
    )?;
    let rules = TableConstraints {
        predicate: None,
        ..bound.clone()
    }
    .rules(&asked, Vec::new())?;
    let mut uses: Vec<(String, BoundExpr)> = rules
        .checks
        .into_iter()
        .map(|check| (format!("the constraint `{}`", check.name), check.expr))
        .collect();
    uses.extend(
        rules
            .generated
            .into_iter()
            .map(|rule| (format!("the generated column `{}`", rule.column), rule.expr)),
    );
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
    json!({"name": path, "type": field.data_type.to_json(), "nullable": field.nullable, "metadata": field.metadata})
}

struct AlterCommand<'a> {
    snapshot: &'a Snapshot,
    /// The snapshot's protocol, or the protocol after the previous changes.
    protocol: &'a Protocol,
    old_metadata: &'a Metadata,
    schema: &'a StructType,
    /// The expressions that use columns.
    column_references: &'a [(String, BoundExpr)],
    cancel: &'a CancellationToken,
}

impl<'a> AlterCommand<'a> {
    fn of(
        snapshot: &'a Snapshot,
        uses: &'a [(String, BoundExpr)],
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            snapshot,
            protocol: snapshot.protocol(),
            old_metadata: snapshot.metadata(),
            schema: snapshot.schema(),
            column_references: uses,
            cancel,
        }
    }

    fn apply(&self, change: &TableChange) -> Result<AlteredTable> {
        let snapshot = self.snapshot;
        match change {
            TableChange::AddColumns { fields, positions } => self.add_columns(fields, positions),
            TableChange::MoveColumn { column, after } => self.move_column(column, after.as_deref()),
            TableChange::SyncIdentity { column } => self.sync_identity(column),
            TableChange::DropColumns { columns } => self.drop_columns(columns),
            TableChange::RenameColumn { column, name } => self.rename_column(column, name),
            TableChange::ChangeType { column, data_type } => {
                self.change_type(column, &DataType::from_json(data_type)?)
            }
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
        let reads_all = iceberg::check_files(self.snapshot, &altered.metadata, self.cancel)?;
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
        let added = StructType::parse(&fields.to_string())?;
        let schema = self.schema;
        for field in &added.fields {
            if let Some(key) = generated_value_key(field) {
                let what = if key == GENERATED {
                    "New columns cannot be a generated column:".to_owned()
                } else {
                    format!("a column cannot be added with `{key}`:")
                };
                return Err(Error::invalid(format!(
                    "{what} the rows that are there would need values; add it without"
                ))
                .at_column(&field.name));
            }
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
                    }],
                };
                evolution::merge(&one(old), &one(field), false) != one(old)
            });
            if old.is_some() && !grows {
                return Err(Error::invalid(format!(
                    "the table has a column `{}` already",
                    field.name
                ))
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
            let mut parameters = step.operation.parameters;
            if let Some(column) = parameters.get_mut("column") {
                *column =
                    serde_json::from_str(column.as_str().unwrap_or_default()).unwrap_or_default();
            }
            said.push(Value::Object(parameters));
            reads_all |= step.reads_all;
            (protocol, metadata) = (step.protocol, step.metadata);
        }
        Ok(AlteredTable {
            protocol,
            reads_all,
            ..self.metadata(
                metadata,
                CommitOperation::with_parameters(
                    "CHANGE COLUMNS",
                    [("columns", json_string(&json!(said)))],
                ),
            )
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

    /// Refuses a change of a column that is used elsewhere.
    fn check_unreferenced(&self, path: &[String], what: &str, partition_too: bool) -> Result<()> {
        let shown_path = path.join(".");
        let refuse = |by: &str| {
            Err(Error::invalid(format!(
                "the column `{shown_path}` cannot be {what}: {by} uses it"
            ))
            .at_column(&shown_path))
        };
        for (by, expr) in self.column_references {
            if expr
                .columns()
                .into_iter()
                .any(|used| used.starts_with(path) || path.starts_with(used))
            {
                return refuse(by);
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
            return refuse("the table's partitioning");
        }
        if partition_too
            && clustering_columns(self.snapshot)?
                .iter()
                .any(|used| used.starts_with(path))
        {
            return refuse("the table's clustering");
        }
        Ok(())
    }

    fn check_column_mapping(&self, what: &str) -> Result<()> {
        if features::column_mapping(self.protocol, self.old_metadata)? == ColumnMapping::None {
            return Err(Error::invalid(format!(
                "columns can be {what} where the table maps columns; set `delta.columnMapping.mode` to `name` first"
            )));
        }
        Ok(())
    }

    fn drop_columns(&self, columns: &[String]) -> Result<AlteredTable> {
        self.check_column_mapping("dropped")?;
        let mut schema = self.schema.clone();
        let (mut paths, mut dropped) = (Vec::new(), Vec::new());
        for column in columns {
            let path = self.path(column)?;
            self.check_unreferenced(&path, "dropped", true)?;
            schema = transform_field(&schema, &path, &mut |_| Ok(None))?;
            paths.push(path.join("."));
            dropped.push(path);
        }
        if schema.fields.is_empty() {
            return Err(Error::invalid("a table must keep at least one column"));
        }
        let mut metadata = self.old_metadata.clone();
        if let Some(list) = metadata.configuration.get_mut(STATS_COLUMNS) {
            *list = transform_column_list(list, &|path| {
                (!dropped.iter().any(|dropped| is_within(&path, dropped))).then_some(path)
            });
        }
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
        self.check_column_mapping("renamed")?;
        let path = self.path(column)?;
        self.check_unreferenced(&path, "renamed", false)?;
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

    fn change_type(&self, column: &str, to: &DataType) -> Result<AlteredTable> {
        let path = self.path(column)?;
        let metadata = self.old_metadata;
        let widens = features::supported(self.protocol)
            .iter()
            .any(|name| name.starts_with("typeWidening"))
            && metadata.flag("delta.enableTypeWidening");
        if !widens {
            return Err(Error::invalid("a type can be changed where the table widens types; set `delta.enableTypeWidening` to `true` first").at_column(column));
        }
        self.check_unreferenced(&path, "given another type", false)?;
        let iceberg = enabled_iceberg_compat(metadata).is_some();
        let mut changed = None;
        let schema = transform_field(self.schema, &path, &mut |field| {
            if field.data_type == *to {
                return Ok(Some(field.clone()));
            }
            if !evolution::can_widen(&field.data_type, to)
                || (iceberg && !evolution::widens_in_iceberg(&field.data_type, to))
            {
                return Err(Error::invalid(format!(
                    "the type {} cannot become {to} without rewriting files",
                    field.data_type
                ))
                .at_column(column));
            }
            let mut out = StructField {
                data_type: to.clone(),
                ..field.clone()
            };
            evolution::record_type_change(&mut out, &field.data_type, to, "");
            changed = Some(out.clone());
            Ok(Some(out))
        })?;
        let said = changed
            .map(|field| field_json(&path.join("."), &field))
            .unwrap_or_default();
        self.with_schema(
            metadata,
            &schema,
            CommitOperation::with_parameters(CHANGE_COLUMN, [("column", json_string(&said))]),
        )
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
            key.starts_with("delta.")
                || *key == "__COLLATIONS"
                || *key == "__CHAR_VARCHAR_TYPE_STRING"
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
                )));
            }
            let expr = constraint.bound()?;
            if let Some(row) = self.first_row(&partition_predicate::not_true(&expr)?)? {
                let what = format!(
                    "the constraint `{}` ({}) does not hold for a row that is there: {row}",
                    constraint.name, constraint.sql
                );
                return Err(Error::constraint_violated(&constraint.name, what));
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
            return Err(Error::invalid(format!(
                "the table has no constraint `{}`",
                shown(name)
            )));
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
                "the feature needs the protocol ({}, {}), the table has ({}, {}); pass allow_protocol_versions_increase=True to raise it",
                new.min_reader_version,
                new.min_writer_version,
                old.min_reader_version,
                old.min_writer_version
            )));
        }
        Ok(altered)
    }

    fn cluster_by(&self, columns: &[String]) -> Result<AlteredTable> {
        let (snapshot, metadata) = (self.snapshot, self.old_metadata);
        if !metadata.partition_columns.is_empty() {
            return Err(Error::invalid("a partitioned table cannot be clustered"));
        }
        let old: Vec<String> = clustering_columns(self.snapshot)?
            .iter()
            .map(|path| path.join("."))
            .collect();
        let protocol = if columns.is_empty() {
            snapshot.protocol().clone()
        } else {
            check_clustering(snapshot.schema(), columns, metadata)?;
            features::with_features(snapshot.protocol(), &["clustering".to_owned()].into())
        };
        let domains = if old == *columns {
            Vec::new()
        } else {
            vec![clustering_domain(snapshot.schema(), columns)?]
        };
        let parameters = [
            ("oldClusteringColumns", Value::from(old.join(","))),
            ("newClusteringColumns", Value::from(columns.join(","))),
        ];
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

/// The parts of a column's path, spelled as in a schema.
fn resolve_column_path(schema: &StructType, column: &str) -> Result<Vec<String>> {
    fn within(data_type: &DataType, rest: &str) -> Option<Vec<String>> {
        match data_type {
            DataType::Struct(inner) => find(inner, rest),
            DataType::Array(array) => part(rest, &[("element", &array.element)]),
            DataType::Map(map) => part(rest, &[("key", &map.key), ("value", &map.value)]),
            _ => None,
        }
    }
    fn part(path: &str, parts: &[(&str, &DataType)]) -> Option<Vec<String>> {
        let (head, rest) = path.split_once('.')?;
        let (name, data_type) = parts
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(head))?;
        let mut out = within(data_type, rest)?;
        out.insert(0, (*name).to_owned());
        Some(out)
    }
    fn find(schema: &StructType, path: &str) -> Option<Vec<String>> {
        if let Some(field) = schema.field(path) {
            return Some(vec![field.name.clone()]);
        }
        path.match_indices('.').find_map(|(dot, _)| {
            let field = schema.field(path.get(..dot)?)?;
            let mut out = within(&field.data_type, path.get(dot + 1..)?)?;
            out.insert(0, field.name.clone());
            Some(out)
        })
    }
    find(schema, column).ok_or_else(|| {
        Error::invalid(format!("the table has no column `{}`", shown(column))).at_column(column)
    })
}

fn not_identity(column: &str) -> Error {
    Error::invalid(
        "the column is not an identity column, so there is nothing to bring in step with its values",
    )
    .at_column(column)
}

/// The new position of a column as recorded in the log.
fn position_clause(after: Option<&str>) -> String {
    after.map_or_else(|| "FIRST".to_owned(), |after| format!("AFTER {after}"))
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
        match (old.map(|old| &old.data_type), &field.data_type) {
            (Some(DataType::Struct(old)), DataType::Struct(new)) => {
                new_fields(old, new, &format!("{path}."), visit);
            }
            _ => visit(&path, field),
        }
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
    let mut fields = schema.fields.clone();
    let Some(from) = fields.iter().position(|field| field.name == name) else {
        return Ok(schema.clone());
    };
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
                .at_column(name)
            })?;
            sibling + 1
        }
    };
    fields.insert(to, field);
    Ok(StructType { fields })
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
    Ok(StructType { fields })
}

fn transform_data_type(
    data_type: &DataType,
    path: &[String],
    edit: FieldTransform<'_>,
) -> Result<DataType> {
    let rest = path.get(1..).unwrap_or_default();
    Ok(match (data_type, path.first().map(String::as_str)) {
        (DataType::Struct(inner), _) => {
            let inner = transform_field(inner, path, edit)?;
            if inner.fields.is_empty() {
                return Err(Error::invalid(
                    "a struct must keep at least one field; drop the struct instead",
                ));
            }
            DataType::Struct(Arc::new(inner))
        }
        (DataType::Array(array), _) => DataType::Array(Arc::new(ArrayType {
            element: transform_data_type(&array.element, rest, edit)?,
            ..array.as_ref().clone()
        })),
        (DataType::Map(map), Some("key")) => DataType::Map(Arc::new(MapType {
            key: transform_data_type(&map.key, rest, edit)?,
            ..map.as_ref().clone()
        })),
        (DataType::Map(map), _) => DataType::Map(Arc::new(MapType {
            value: transform_data_type(&map.value, rest, edit)?,
            ..map.as_ref().clone()
        })),
        (other, _) => other.clone(),
    })
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
