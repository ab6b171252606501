//! The changes of ALTER TABLE as the caller requests them.

use crate::error::{Error, Result};
use crate::file_writer::bound_constraints::NamedExpression;
use crate::protocol::schema::StructType;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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

/// The columns that a caller gives.
pub(super) fn given_columns(fields: &SchemaJson) -> Result<StructType> {
    StructType::parse(&fields.to_string()).map_err(Error::into_invalid)
}
