//! The definition of the table after a write: merged or replaced schema, partitioning, clustering.

use super::write_options::WriteOptions;
use crate::error::{CallOption, Error, ErrorCode, Result};
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::file_writer::bound_constraints::TableConstraints;
use crate::file_writer::cast::{self, ColumnPositions};
use crate::file_writer::constraints::IdentityColumn;
use crate::ops::create::{
    GENERATED, TableDefinition, checked_clustering, generated_value_key, schema_column_name,
    table_definition,
};
use crate::ops::rewrite::clustering_domain::{CLUSTERING, clustering_domain};
use crate::ops::rewrite::column_path::resolve_column_path;
use crate::ops::rewrite::start_state::{
    SaveMode, SchemaMode, TableOrPath, check_catalog, check_changeable, check_writable,
};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::evolution;
use crate::protocol::features;
use crate::protocol::iceberg;
use crate::protocol::properties;
use crate::protocol::schema::{StringLayout, StructField, StructType};
use crate::protocol::table::{self, TableChangeContext};
use crate::snapshot::Snapshot;
use rustc_hash::FxHashSet;
use serde_json::json;

fn schema_hint() -> String {
    format!(
        "pass {} to add it to the table",
        CallOption::SchemaModeMerge
    )
}

/// The definition of the table after the write, and whether it changes; `None` if there is nothing
/// to do.
pub(super) fn planned_definition(
    place: &TableOrPath,
    data: &StructType,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<(TableDefinition, bool)>> {
    let planned = match (place, options.mode) {
        (TableOrPath::Table(_), SaveMode::Ignore) => return Ok(None),
        (TableOrPath::Table(_), SaveMode::Error) => return Err(place.table_exists_error()),
        (TableOrPath::Table(snapshot), _) if options.as_select.is_some() => {
            check_writable(snapshot)?;
            check_changeable(snapshot)?;
            let definition = table_definition(data, &options.create_options(), Some(snapshot))?;
            (definition, true)
        }
        (TableOrPath::Table(snapshot), _) => {
            check_writable(snapshot)?;
            if options.mode == SaveMode::Overwrite {
                check_changeable(snapshot)?;
            }
            warn_ignored_properties(snapshot, options, warnings);
            let (protocol, metadata, domains) = evolved_definition(snapshot, data, options)?;
            let is_changed = metadata != *snapshot.metadata() || protocol != *snapshot.protocol();
            ((protocol, metadata, domains), is_changed)
        }
        (TableOrPath::EmptyPath(..), _) => {
            let definition = table_definition(data, &options.create_options(), None)?;
            (definition, true)
        }
    };
    let ((_, metadata, _), _) = &planned;
    check_catalog(place.log(), metadata)?;
    Ok(Some(planned))
}

/// Finds the columns of the data in the table; errors for additional columns have a hint if the
/// write may not add them.
pub(super) fn find_columns(
    data: &StructType,
    schema: &StructType,
    options: &WriteOptions,
) -> Result<ColumnPositions> {
    ColumnPositions::find(&data.to_arrow(StringLayout::Plain), schema).map_err(
        |error| match error {
            Error::SchemaMismatch {
                what,
                expected,
                found,
                context,
            } if options.schema_mode.is_none()
                && matches!(
                    context.code(),
                    Some(ErrorCode::FieldNotInTable | ErrorCode::FieldCountMismatch)
                ) =>
            {
                Error::SchemaMismatch {
                    what: format!("{what}; {}", schema_hint()),
                    expected,
                    found,
                    context,
                }
            }
            other => other,
        },
    )
}

/// Checks that every NOT NULL column that the data lacks has values from elsewhere: a default, an
/// expression or generated identities.
pub(super) fn check_not_null(
    schema: &StructType,
    lacks: impl Fn(&StructField) -> bool,
    constraints: &TableConstraints,
    identities: &[IdentityColumn],
) -> Result<()> {
    let filled: FxHashSet<&str> = constraints
        .generated
        .iter()
        .chain(&constraints.defaults)
        .map(|computed| computed.name.as_str())
        .chain(identities.iter().map(|identity| identity.column.as_str()))
        .collect();
    let missing = schema
        .fields
        .iter()
        .find(|field| !field.nullable && lacks(field) && !filled.contains(field.name.as_str()));
    match missing {
        None => Ok(()),
        Some(field) => {
            Err(cast::missing_not_null_error("column", &field.data_type).at_column(&field.name))
        }
    }
}

/// Warns that options for a new table have no effect on an existing one.
fn warn_ignored_properties(
    snapshot: &Snapshot,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) {
    let metadata = snapshot.metadata();
    let same = |key: &str, value: Option<&String>| {
        value.is_none_or(|value| {
            metadata.configuration.get(key) == Some(value) || key.starts_with(properties::FEATURE)
        })
    };
    let differ: Vec<&str> = options
        .configuration
        .iter()
        .filter(|(key, value)| !same(key, value.as_ref()))
        .map(|(key, _)| key.as_str())
        .collect();
    if !differ.is_empty() {
        warnings.push(format!("`configuration` is for new tables and was not applied to this one ({}); use `alter.set_table_properties`", differ.join(", ")));
    }
}

/// Protocol, metadata and changed domains of an existing table after writing data with this schema.
pub(in crate::ops) fn evolved_definition(
    snapshot: &Snapshot,
    data: &StructType,
    options: &WriteOptions,
) -> Result<TableDefinition> {
    let partly = options.is_partial();
    let replaces = options.schema_mode == Some(SchemaMode::Overwrite) && !partly;
    if !options.cluster_by.is_empty() && !replaces {
        check_same_clustering(snapshot, &options.cluster_by)?;
    }
    let partition_columns: Option<Vec<String>> = options.partition_by.as_ref().map(|names| {
        let schema = if replaces { data } else { snapshot.schema() };
        names
            .iter()
            .map(|name| schema_column_name(schema, name))
            .collect()
    });
    if let (false, Some(columns)) = (replaces, &partition_columns) {
        check_same_partitioning(snapshot.metadata(), columns)?;
    }
    match options.schema_mode {
        None => Ok(current_definition(snapshot)),
        Some(SchemaMode::Merge) => merged_definition(snapshot, data),
        // Some rows are kept, so the schema must be kept as well; callers that always set the mode
        // lose nothing.
        Some(SchemaMode::Overwrite) if partly => {
            check_same_columns(snapshot.schema(), data)?;
            Ok(current_definition(snapshot))
        }
        Some(SchemaMode::Overwrite) => {
            replaced_definition(snapshot, data, partition_columns, &options.cluster_by)
        }
    }
}

/// Checks that a write names the clustering columns that the table has.
fn check_same_clustering(snapshot: &Snapshot, columns: &[String]) -> Result<()> {
    let now = snapshot
        .non_file_actions()?
        .domains
        .get(CLUSTERING)
        .map(|domain| domain.configuration.clone());
    let paths = columns
        .iter()
        .map(|column| resolve_column_path(snapshot.schema(), column))
        .collect::<Result<Vec<_>>>()?;
    if now != Some(clustering_domain(snapshot.schema(), &paths)?.configuration) {
        return Err(Error::invalid(format!(
            "{} is not how the table is clustered; leave it out to write to the table as it is",
            CallOption::ClusterBy
        )));
    }
    Ok(())
}

/// Checks that a write names the partition columns that the table has.
fn check_same_partitioning(metadata: &Metadata, columns: &[String]) -> Result<()> {
    if columns != metadata.partition_columns {
        let (expected, found) = (json!(metadata.partition_columns), json!(columns));
        return Err(Error::invalid(format!(
            "Specified table partitioning does not match table partitioning: expected: {expected}, got: {found}; leave {} out, or replace the table with {} and {}",
            CallOption::PartitionBy,
            CallOption::ModeOverwrite,
            CallOption::SchemaModeOverwrite
        ))
        .with_code(
            ErrorCode::PartitioningMismatch,
            &[("expected", &expected), ("found", &found)],
        ));
    }
    Ok(())
}

/// Checks that the data has exactly the columns of the table, with their types.
fn check_same_columns(table: &StructType, data: &StructType) -> Result<()> {
    let same = |field: &StructField| {
        table
            .field(&field.name)
            .is_some_and(|known| known.data_type == field.data_type)
    };
    if data.fields.len() != table.fields.len() || !data.fields.iter().all(same) {
        return Err(Error::invalid(format!(
            "{} replaces the whole table: it cannot go with {}, keys or dynamic partitions",
            CallOption::SchemaModeOverwrite,
            CallOption::Predicate
        ))
        .with_code(ErrorCode::OverwriteSchemaWithPartialOverwrite, &[]));
    }
    Ok(())
}

/// The definition after new columns of the data were added.
fn merged_definition(snapshot: &Snapshot, data: &StructType) -> Result<TableDefinition> {
    let (protocol, metadata) = (snapshot.protocol(), snapshot.metadata());
    let widens = features::supported(protocol)
        .iter()
        .any(|name| name.starts_with("typeWidening"))
        && metadata.flag("delta.enableTypeWidening");
    for field in data
        .fields
        .iter()
        .filter(|field| snapshot.schema().field(&field.name).is_none())
    {
        if let Some(key) = generated_value_key(field) {
            let what = if key == GENERATED {
                "Schema evolved fields cannot have generated expressions. Recreate the table to achieve this"
            } else {
                "a column that is added while writing cannot have values made for it"
            };
            return Err(Error::schema_mismatch(
                what,
                format!("no `{key}`"),
                format!("`{}` with it", field.name),
            )
            .at_column(&field.name));
        }
    }
    let merged = evolution::merge(snapshot.schema(), data, widens);
    if merged == *snapshot.schema() {
        return Ok(current_definition(snapshot));
    }
    let (protocol, metadata) = with_schema(protocol, metadata, &merged)?;
    Ok((protocol, metadata, Vec::new()))
}

/// The definition after the schema was replaced by that of the data, and the partitioning and the
/// clustering by those of the write.
fn replaced_definition(
    snapshot: &Snapshot,
    data: &StructType,
    partition_columns: Option<Vec<String>>,
    cluster_by: &[String],
) -> Result<TableDefinition> {
    let (mut protocol, mut metadata) = (snapshot.protocol().clone(), snapshot.metadata().clone());
    metadata.partition_columns = partition_columns.unwrap_or(metadata.partition_columns);
    if !cluster_by.is_empty() {
        if !metadata.partition_columns.is_empty() {
            return Err(Error::invalid("a partitioned table cannot be clustered")
                .with_code(ErrorCode::ClusteredAndPartitioned, &[]));
        }
        protocol = features::with_features(&protocol, &["clustering".to_owned()].into());
    }
    let schema = evolution::replace(snapshot.schema(), data);
    if schema != *snapshot.schema()
        || metadata != *snapshot.metadata()
        || protocol != *snapshot.protocol()
    {
        (protocol, metadata) = with_schema(&protocol, &metadata, &schema)?;
    }
    iceberg::check_partitions(snapshot.metadata(), &metadata)?;
    let domains = clustering_domain_change(snapshot, &metadata, cluster_by)?;
    Ok((protocol, metadata, domains))
}

/// Protocol and metadata after the schema of a table was set.
fn with_schema(
    protocol: &Protocol,
    metadata: &Metadata,
    schema: &StructType,
) -> Result<(Protocol, Metadata)> {
    let mut context = TableChangeContext {
        allow_unknown: true,
        now_ms: now_ms(),
        generate_id: &mut uuid,
    };
    table::set_schema(protocol, metadata, schema, &mut context)
}

/// The clustering after all columns were replaced: that of the write, else an empty list, as
/// delta-spark writes it.
fn clustering_domain_change(
    snapshot: &Snapshot,
    metadata: &Metadata,
    columns: &[String],
) -> Result<Vec<DomainMetadata>> {
    let last = snapshot.non_file_actions()?.domains.get(CLUSTERING);
    if last.is_none() && columns.is_empty() {
        return Ok(Vec::new());
    }
    let schema = StructType::parse(&metadata.schema_string)?;
    let paths = checked_clustering(&schema, columns, metadata)?;
    let new = clustering_domain(&schema, &paths)?;
    Ok(if last == Some(&new) {
        Vec::new()
    } else {
        vec![new]
    })
}

/// The definition of the table as it is.
pub(super) fn current_definition(snapshot: &Snapshot) -> TableDefinition {
    (
        snapshot.protocol().clone(),
        snapshot.metadata().clone(),
        Vec::new(),
    )
}
