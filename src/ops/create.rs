//! CREATE TABLE: a new empty table, or an empty one that replaces an existing table.
//!
//! Protocol: "Table Features for New and Existing Tables", "Change Metadata", "Clustered Table".

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::commit::CommitOperation;
use crate::commit::adds::all_live_adds;
use crate::commit::finish::{CommitOptions, CommitResult, commit, json_string_list};
use crate::error::{CallOption, Error, ErrorCode, Result};
use crate::exec::CancellationToken;
use crate::exec::now_ms;
use crate::exec::uuid;
use crate::file_writer::bound_constraints::TableConstraints;
use crate::ops::optimize::clustering::clustering_columns_json;
use crate::ops::rewrite::clustering_domain::{CLUSTERING, clustering_domain};
use crate::ops::rewrite::column_path::resolve_column_path;
use crate::ops::rewrite::start_state::SaveMode;
use crate::ops::rewrite::start_state::{TableOrPath, check_writable};
use crate::parse::stats::has_bounds;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::Action;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::table::{self, NewTable, TableChangeContext};
use crate::protocol::{iceberg, properties};
use crate::snapshot::Snapshot;

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
        return Err(Error::invalid(format!(
            "a table cannot be both partitioned and clustered; give {} or {}",
            CallOption::PartitionBy,
            CallOption::ClusterBy
        ))
        .with_code(ErrorCode::ClusteredAndPartitioned, &[]));
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
        let paths = checked_clustering(&schema, &options.cluster_by, &metadata)?;
        domains.push(clustering_domain(&schema, &paths)?);
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

/// The paths of clustering columns, after a check that they can be ordered and have statistics in
/// every file.
pub(super) fn checked_clustering(
    schema: &StructType,
    columns: &[String],
    metadata: &Metadata,
) -> Result<Vec<Vec<String>>> {
    if columns.len() > MOST_CLUSTERING {
        return Err(Error::invalid(format!(
            "a table can be clustered by at most {MOST_CLUSTERING} columns, not {}",
            columns.len()
        ))
        .with_code(
            ErrorCode::TooManyClusteringColumns,
            &[("count", &columns.len()), ("most", &MOST_CLUSTERING)],
        ));
    }
    let indexed = IndexedColumns::new(schema, metadata);
    let mut paths: Vec<Vec<String>> = Vec::new();
    for column in columns {
        let refused = |what: String| Err(Error::invalid(what).at_column(column));
        let path = resolve_column_path(schema, column)?;
        if paths.contains(&path) {
            return refused(format!("the clustering column `{column}` is named twice"));
        }
        let data_type = check_ordered(schema, &path)?;
        if !has_bounds(data_type) || *data_type == DataType::Boolean {
            return refused(format!(
                "a table cannot be clustered by `{column}` of type {data_type}"
            ));
        }
        if !indexed.contains(&path) {
            return refused(format!(
                "the clustering column `{column}` has no statistics; move it among the first {} columns or name it in `delta.dataSkippingStatsColumns`",
                indexed.first
            ));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// The type of a column, after a check that each field on the path is ordered by its bytes. For
/// parts of lists and maps it is that of the list or map, by which no table is clustered.
fn check_ordered<'a>(schema: &'a StructType, path: &[String]) -> Result<&'a DataType> {
    let (mut fields, mut data_type) = (Some(schema), &DataType::Void);
    for name in path {
        let Some(field) = fields.and_then(|fields| fields.field(name)) else {
            break;
        };
        field.check_byte_order("clustering by the column")?;
        data_type = &field.data_type;
        fields = match data_type {
            DataType::Struct(inner) => Some(inner),
            _ => None,
        };
    }
    Ok(data_type)
}

/// The columns of which files have statistics.
struct IndexedColumns {
    /// Those that the table's properties name.
    named: Option<Vec<Vec<String>>>,
    /// The number of leaf columns that have statistics otherwise; all if negative.
    first: i64,
    leaves: Vec<Vec<String>>,
}

impl IndexedColumns {
    fn new(schema: &StructType, metadata: &Metadata) -> Self {
        fn add_leaves(schema: &StructType, parent: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
            for field in &schema.fields {
                parent.push(field.name.clone());
                match &field.data_type {
                    DataType::Struct(inner) => add_leaves(inner, parent, out),
                    _ => out.push(parent.clone()),
                }
                parent.pop();
            }
        }
        let mut leaves = Vec::new();
        add_leaves(schema, &mut Vec::new(), &mut leaves);
        Self {
            named: metadata
                .configuration
                .get("delta.dataSkippingStatsColumns")
                .and_then(|text| properties::columns(text)),
            first: properties::value(&metadata.configuration, "delta.dataSkippingNumIndexedCols")
                .and_then(|n| n.parse::<i64>().ok())
                .unwrap_or(32),
            leaves,
        }
    }

    fn contains(&self, path: &[String]) -> bool {
        match &self.named {
            Some(named) => named.iter().any(|named| path.starts_with(named)),
            None => {
                let place = self.leaves.iter().position(|leaf| leaf == path);
                self.first < 0
                    || place
                        .and_then(|place| i64::try_from(place).ok())
                        .is_some_and(|place| place < self.first)
            }
        }
    }
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
    let mut operation = CommitOperation::new(if options.mode == SaveMode::Overwrite {
        "CREATE OR REPLACE TABLE"
    } else {
        "CREATE TABLE"
    });
    operation.parameters = operation_parameters(&metadata, &options.cluster_by)?;
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
) -> Result<serde_json::Map<String, Value>> {
    let mut out = serde_json::Map::new();
    let mut set = |key: &str, value: Value| out.insert(key.to_owned(), value);
    set("isManaged", Value::from("false"));
    if let Some(description) = &metadata.description {
        set("description", Value::from(description.as_str()));
    }
    set("partitionBy", json_string_list(&metadata.partition_columns));
    set("clusterBy", clustering_columns_json(metadata, cluster_by)?);
    set(
        "properties",
        Value::String(serde_json::json!(metadata.configuration).to_string()),
    );
    Ok(out)
}
