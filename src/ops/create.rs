//! CREATE TABLE: a new empty table, or an empty one that replaces an existing table.
//!
//! Protocol: "Table Features for New and Existing Tables", "Change Metadata", "Clustered Table".

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::commit::CommitOperation;
use crate::commit::adds::all_live_adds;
use crate::commit::finish::{CommitOptions, CommitResult, commit, json_string_list};
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::ops::access::SaveMode;
use crate::ops::access::{TableOrPath, check_writable};
use crate::ops::clustering_domain::{CLUSTERING, clustering_domain};
use crate::ops::optimize::clustering::clustering_columns_json;
use crate::parse::stats::has_bounds;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::Action;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::table::{self, NewTable, TableChangeContext};
use crate::protocol::{iceberg, properties};
use crate::snapshot::Snapshot;
use crate::write::bound_constraints::TableConstraints;

/// The definition of a new table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CreateOptions {
    /// What to do if the table exists.
    pub mode: SaveMode,
    /// Names of the partition columns.
    pub partition_by: Vec<String>,
    /// The clustering columns; nested ones with dots.
    pub cluster_by: Vec<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its properties; those without a value are left out.
    pub configuration: BTreeMap<String, Option<String>>,
    /// Whether unknown `delta.` properties may be set.
    pub allow_unknown: bool,
    /// How it is committed.
    pub commit_options: CommitOptions,
}

/// Protocol, metadata and domains of a table.
pub(super) type TableDefinition = (Protocol, Metadata, Vec<DomainMetadata>);

/// The definition of a table with this schema, new or replacing `old`.
pub(super) fn table_definition(
    schema: &StructType,
    options: &CreateOptions,
    old: Option<&Snapshot>,
) -> Result<TableDefinition> {
    let mut features = BTreeSet::new();
    if !options.cluster_by.is_empty() {
        features.insert("clustering".to_owned());
    }
    let new = NewTable {
        schema: schema.clone(),
        partition_columns: options
            .partition_by
            .iter()
            .map(|name| schema_column_name(schema, name))
            .collect(),
        name: options.name.clone(),
        description: options.description.clone(),
        configuration: configured_properties(options),
        features,
    };
    if !options.cluster_by.is_empty() && !options.partition_by.is_empty() {
        return Err(Error::invalid(
            "a table cannot be both partitioned and clustered; give `partition_by` or `cluster_by`",
        ));
    }
    let mut context = TableChangeContext {
        allow_unknown: options.allow_unknown,
        now_ms: now_ms(),
        generate_id: &mut uuid,
    };
    let (protocol, metadata) = match old {
        Some(old) => {
            let (protocol, metadata) =
                table::replace(old.protocol(), old.metadata(), &new, &mut context)?;
            iceberg::check_partitions(old.metadata(), &metadata)?;
            (protocol, metadata)
        }
        None => table::create(&new, &mut context)?,
    };
    let mut domains = Vec::new();
    if !options.cluster_by.is_empty() {
        let schema = StructType::parse(&metadata.schema_string)?;
        check_clustering(&schema, &options.cluster_by, &metadata)?;
        domains.push(clustering_domain(&schema, &options.cluster_by)?);
    } else if let Some(old) = old
        && let Some(last) = old.non_file_actions()?.domains.get(CLUSTERING)
    {
        domains.push(DomainMetadata {
            removed: true,
            ..last.clone()
        });
    }
    Ok((protocol, metadata, domains))
}

/// The properties of a new table.
fn configured_properties(options: &CreateOptions) -> BTreeMap<String, String> {
    options
        .configuration
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.clone()?)))
        .collect()
}

/// A column's name, spelled as in the schema.
pub(super) fn schema_column_name(schema: &StructType, name: &str) -> String {
    schema
        .field(name)
        .map_or_else(|| name.to_owned(), |field| field.name.clone())
}

/// The key of a field's metadata for the expression of a generated column.
pub(super) const GENERATED: &str = "delta.generationExpression";

/// The metadata key of a new column for which existing rows would require values.
pub(super) fn generated_value_key(field: &StructField) -> Option<&'static str> {
    ["CURRENT_DEFAULT", GENERATED, "delta.identity.start"]
        .into_iter()
        .find(|key| field.metadata.contains_key(*key))
}

/// The maximum number of clustering columns, as in delta-spark.
const MOST_CLUSTERING: usize = 4;

/// Checks that clustering columns have statistics in every file.
pub(super) fn check_clustering(
    schema: &StructType,
    columns: &[String],
    metadata: &Metadata,
) -> Result<()> {
    fn leaves(schema: &StructType, prefix: &str, out: &mut Vec<(String, DataType)>) {
        for field in &schema.fields {
            let name = format!("{prefix}{}", field.name);
            match &field.data_type {
                DataType::Struct(inner) => leaves(inner, &format!("{name}."), out),
                other => out.push((name, other.clone())),
            }
        }
    }
    if columns.len() > MOST_CLUSTERING {
        return Err(Error::invalid(format!(
            "a table can be clustered by at most {MOST_CLUSTERING} columns, not {}",
            columns.len()
        )));
    }
    let mut all = Vec::new();
    leaves(schema, "", &mut all);
    let named = metadata
        .configuration
        .get("delta.dataSkippingStatsColumns")
        .and_then(|text| properties::columns(text));
    let indexed = properties::value(&metadata.configuration, "delta.dataSkippingNumIndexedCols")
        .and_then(|n| n.parse::<i64>().ok())
        .unwrap_or(32);
    for (n, column) in columns.iter().enumerate() {
        if columns
            .iter()
            .take(n)
            .any(|other| other.eq_ignore_ascii_case(column))
        {
            return Err(
                Error::invalid(format!("the clustering column `{column}` is named twice"))
                    .at_column(column),
            );
        }
        let Some((place, (_, data_type))) =
            all.iter().enumerate().find(|(_, (name, _))| name == column)
        else {
            return Err(Error::invalid(format!(
                "the clustering column `{column}` is not in the schema"
            ))
            .at_column(column));
        };
        if !has_bounds(data_type) || *data_type == DataType::Boolean {
            return Err(Error::invalid(format!(
                "a table cannot be clustered by `{column}` of type {data_type}"
            ))
            .at_column(column));
        }
        let mut fields = schema;
        for part in column.split('.') {
            let Some(field) = fields.field(part) else {
                break;
            };
            field.check_byte_order("clustering by the column")?;
            let DataType::Struct(inner) = &field.data_type else {
                break;
            };
            fields = inner;
        }
        let has_statistics = match &named {
            Some(named) => named.iter().any(|path| {
                column == &path.join(".") || column.starts_with(&format!("{}.", path.join(".")))
            }),
            None => indexed < 0 || i64::try_from(place).is_ok_and(|place| place < indexed),
        };
        if !has_statistics {
            return Err(Error::invalid(format!(
                "the clustering column `{column}` has no statistics; move it among the first {indexed} columns or name it in `delta.dataSkippingStatsColumns`"
            ))
            .at_column(column));
        }
    }
    Ok(())
}

/// Creates a table without rows. `bound` are its constraints, bound to its schema.
///
/// # Errors
/// [`Error::Invalid`] if the table exists and must not be replaced, and for an invalid definition;
/// [`Error::Unsupported`]; as
/// [`OptimisticTransaction::commit`](crate::commit::OptimisticTransaction::commit).
pub fn create(
    place: &TableOrPath,
    schema: &StructType,
    bound: &TableConstraints,
    options: &CreateOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    let old = match (place, options.mode) {
        (_, SaveMode::Append) => {
            return Err(Error::invalid(
                "a table cannot be created in the mode `append`; use `error`, `overwrite` or `ignore`",
            ));
        }
        (TableOrPath::Table(snapshot), SaveMode::Ignore) => {
            return Ok(CommitResult::unchanged(snapshot));
        }
        (TableOrPath::Table(_), SaveMode::Error) => return Err(place.table_exists_error()),
        (TableOrPath::Table(snapshot), SaveMode::Overwrite) => Some(snapshot),
        (TableOrPath::EmptyPath(..), _) => None,
    };
    let mut transaction = match place.transaction() {
        Err(error) => return place.resolve_create_race(error, options.mode),
        Ok(transaction) => transaction,
    };
    if let Some(old) = old {
        check_writable(old)?;
        transaction.read_whole_table();
        let ended = all_live_adds(old, cancel)?;
        transaction.extend(
            ended
                .iter()
                .map(|add| Action::Remove(add.to_remove(now_ms(), true))),
        );
    }
    // No rows could be written to a table whose constraints cannot be evaluated.
    bound.rules(
        &TableConstraints::for_new_table(schema, configured_properties(options))?,
        Vec::new(),
    )?;
    let (protocol, metadata, domains) = table_definition(schema, options, old)?;
    let mut operation = CommitOperation::new(if old.is_some() {
        "CREATE OR REPLACE TABLE"
    } else {
        "CREATE TABLE"
    });
    operation.parameters = operation_parameters(&metadata, &options.cluster_by);
    transaction.push(Action::Protocol(protocol));
    transaction.push(Action::MetaData(Box::new(metadata)));
    transaction.extend(domains.into_iter().map(Action::DomainMetadata));
    commit(transaction, operation, &options.commit_options, cancel)
        .or_else(|error| place.resolve_create_race(error, options.mode))
}

/// The parameters of the commit that creates a table, as in delta-spark.
pub(super) fn operation_parameters(
    metadata: &Metadata,
    cluster_by: &[String],
) -> serde_json::Map<String, Value> {
    let mut out = serde_json::Map::new();
    let mut set = |key: &str, value: Value| out.insert(key.to_owned(), value);
    set("isManaged", Value::from("false"));
    if let Some(description) = &metadata.description {
        set("description", Value::from(description.as_str()));
    }
    set("partitionBy", json_string_list(&metadata.partition_columns));
    set("clusterBy", clustering_columns_json(cluster_by));
    set(
        "properties",
        Value::String(serde_json::json!(metadata.configuration).to_string()),
    );
    out
}
