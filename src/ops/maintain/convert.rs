//! CONVERT TO DELTA: creates a table from a folder of Parquet files.
//!
//! Only the log is written. The schema is the union of the files' columns, in the order of the
//! sorted paths, all of them nullable; if a column has two types the command fails and names both
//! files. Partition values are taken from the names of folders: `column=value` as in Hive, or
//! values in the order of the columns. Statistics are taken from the footers.
//!
//! Protocol: "Add File and Remove File", "Per-file Statistics". Cost: one listing of each folder,
//! one footer per file.

use std::collections::BTreeMap;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commit::OptimisticTransaction;
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::error::{CallOption, Error, ErrorCode, Result, ResultExt, shown};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv, map_all, uuid};
use crate::file_writer::partition::log_path;
use crate::file_writer::stats::StatsPlan;
use crate::log::DeltaLog;
use crate::ops::maintain::commit_command::commit_command;
use crate::ops::maintain::data_files::{
    HiddenPaths, file_name, has_iceberg_metadata, walk_folders,
};
use crate::pq::FooterSchema;
use crate::pq::infer_schema;
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::commit_line::{Action, Add, PartitionValues};
use crate::protocol::partition_value::{self, HIVE_NULL};
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::table::{self, NewTable, TableChangeContext};
use crate::snapshot::ReadOptions;
use crate::store::{ObjectMeta, Store, StoreObject};

/// Options of a conversion.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvertOptions {
    /// The partition columns with their types, as a schema in Delta's JSON, in the order of the
    /// folders.
    pub partition_schema: Option<Value>,
    /// Whether folders are named `column=value`, or by the value alone.
    pub hive: bool,
    /// Name of the table.
    pub name: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its properties.
    pub configuration: BTreeMap<String, String>,
    /// Whether statistics are collected.
    pub collect_stats: bool,
    /// Do nothing if the table exists.
    pub ignore_existing: bool,
    /// How it is committed.
    pub commit_options: CommitOptions,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            partition_schema: None,
            hive: true,
            name: None,
            description: None,
            configuration: BTreeMap::new(),
            collect_stats: true,
            ignore_existing: false,
            commit_options: CommitOptions::default(),
        }
    }
}

/// The result of a conversion.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ConvertResult {
    /// The number of files of the table; 0 if the table existed already.
    pub num_files: u64,
    /// The committed version, if any.
    #[serde(skip)]
    pub done: Option<CommitResult>,
}

/// Creates a table from the Parquet files below the root of `log`.
///
/// # Errors
/// [`Error::Invalid`] for a folder that is a table, has no files, or has folders that do not match
/// the partition columns; [`Error::SchemaMismatch`] for files that contradict each other;
/// [`Error::Corrupt`] names a file that is not Parquet.
pub fn convert(
    log: DeltaLog,
    options: &ConvertOptions,
    cancel: &CancellationToken,
) -> Result<ConvertResult> {
    let root = Arc::clone(log.stores().root());
    if log.list(0)?.newest().is_some() {
        return existing_table(&root, options);
    }
    check_properties(&options.configuration)?;
    let partition = match &options.partition_schema {
        Some(schema) => StructType::parse(&schema.to_string())?,
        None => StructType::default(),
    };
    let found = inspect_files(&log, &partition, options.hive, cancel)?;
    let partition_columns: Vec<String> = partition
        .fields
        .iter()
        .map(|field| field.name.clone())
        .collect();
    let (protocol, metadata) =
        table_definition(&found.columns, &partition, &partition_columns, options)?;
    let plan = StatsPlan::new(
        &found.columns,
        &partition_columns,
        &metadata.configuration,
        |field| field.name.clone(),
    )?;
    let mut tx = match OptimisticTransaction::create(log, ReadOptions::default()) {
        // Another writer created the table while the files were listed and read.
        Err(Error::Invalid { .. }) => return existing_table(&root, options),
        other => other?,
    };
    tx.push(Action::Protocol(protocol));
    tx.push(Action::MetaData(Box::new(metadata)));
    let num_files = found.files.len();
    add_files(&mut tx, found, options.collect_stats.then_some(&plan));
    let parameters = json!({
        "numFiles": num_files,
        "partitionedBy": Value::from(partition_columns).to_string(),
        "collectStats": options.collect_stats,
        "sourceFormat": "parquet",
    });
    let done = match commit_command(
        tx,
        "CONVERT",
        parameters,
        json!({"numConvertedFiles": num_files}),
        &options.commit_options,
        cancel,
    ) {
        Err(Error::CommitFailed { .. }) => return existing_table(&root, options),
        other => other?,
    };
    Ok(ConvertResult {
        num_files: num_files as u64,
        done: Some(done),
    })
}

/// The result for a folder that is a table already: nothing to do with `ignore_existing`, otherwise
/// an error.
fn existing_table(root: &Arc<dyn Store>, options: &ConvertOptions) -> Result<ConvertResult> {
    if options.ignore_existing {
        return Ok(ConvertResult::default());
    }
    let path = root.url();
    Err(Error::invalid(format!(
        "there is a table at {path} already; with {} that is not an error",
        CallOption::ModeIgnore
    ))
    .with_code(ErrorCode::TableExists, &[("path", &path)]))
}

/// The Parquet files that become the table's files.
struct ParquetFileSet {
    files: Vec<ObjectMeta>,
    /// The partition values of each file.
    partition_values: Vec<PartitionValues>,
    /// The footer of each file.
    footers: Vec<FooterSchema>,
    /// The columns of all files, without the partition columns.
    columns: StructType,
}

/// Lists the Parquet files, checks their partition values and reads their footers.
fn inspect_files(
    log: &DeltaLog,
    partition: &StructType,
    hive: bool,
    cancel: &CancellationToken,
) -> Result<ParquetFileSet> {
    let root = log.stores().root();
    let files = list_parquet_files(log, partition, cancel)?;
    if files.is_empty() {
        return Err(Error::invalid(format!(
            "there are no Parquet files below {}",
            root.url()
        )));
    }
    let partition_values = files
        .iter()
        .map(|file| partition_values(&file.path, partition, hive))
        .collect::<Result<Vec<_>>>()?;
    check_partition_values(&files, &partition_values, partition)?;
    let stop = cancel.clone();
    cancel.progress().expect(files.len() as u64);
    let footers = map_all(
        files.iter().map(|file| StoreObject {
            store: Arc::clone(root),
            path: file.path.clone(),
            size: Some(file.size),
        }),
        move |file| {
            stop.check()?;
            stop.progress().advance(1);
            infer_schema(&file)
        },
    )?;
    let columns = merge_file_schemas(&files, &footers, partition)?;
    Ok(ParquetFileSet {
        files,
        partition_values,
        footers,
        columns,
    })
}

/// Protocol and metadata of the new table.
fn table_definition(
    columns: &StructType,
    partition: &StructType,
    partition_columns: &[String],
    options: &ConvertOptions,
) -> Result<(Protocol, Metadata)> {
    let schema = StructType {
        fields: columns
            .fields
            .iter()
            .chain(&partition.fields)
            .cloned()
            .collect(),
    };
    let table = NewTable {
        schema,
        partition_columns: partition_columns.to_vec(),
        name: options.name.clone(),
        description: options.description.clone(),
        configuration: options.configuration.clone(),
        ..NewTable::default()
    };
    let mut unique = uuid;
    let mut context = TableChangeContext {
        allow_unknown: false,
        now_ms: SystemEnv.now_ms(),
        generate_id: &mut unique,
    };
    table::create(&table, &mut context)
}

/// Adds the files, with statistics if there is a plan for them.
fn add_files(tx: &mut OptimisticTransaction, found: ParquetFileSet, plan: Option<&StatsPlan>) {
    let plan = plan.map(|plan| (plan, plan.requested_statistics()));
    let columns = &found.columns;
    for ((file, footer), partition_values) in found
        .files
        .iter()
        .zip(&found.footers)
        .zip(found.partition_values)
    {
        tx.push(Action::Add(Add {
            path: log_path(&file.path),
            partition_values,
            size: i64::try_from(file.size).unwrap_or(i64::MAX),
            modification_time: file.modified_ms,
            data_change: true,
            stats: plan.as_ref().map(|(plan, wanted)| {
                plan.json(
                    footer.num_rows(),
                    &footer.column_statistics(columns, wanted),
                )
            }),
            ..Add::default()
        }));
    }
}

/// Refuses properties that would also have to apply to existing files.
fn check_properties(configuration: &BTreeMap<String, String>) -> Result<()> {
    let is = |key: &str, wanted: &str| key.eq_ignore_ascii_case(wanted);
    for (key, value) in configuration {
        let lower = key.to_ascii_lowercase();
        let refused = (is(key, "delta.columnMapping.mode") && !value.eq_ignore_ascii_case("none"))
            || (lower.starts_with("delta.enableicebergcompat")
                && value.eq_ignore_ascii_case("true"))
            || lower.starts_with("delta.constraints.");
        if refused {
            return Err(Error::invalid(format!(
                "`{}` cannot be set by a conversion, since nobody has looked at the rows; set it on the table",
                shown(key)
            )));
        }
    }
    Ok(())
}

/// The Parquet files below the root, sorted.
fn list_parquet_files(
    log: &DeltaLog,
    partition: &StructType,
    cancel: &CancellationToken,
) -> Result<Vec<ObjectMeta>> {
    let root = log.stores().root();
    let hidden = HiddenPaths::new(
        partition.fields.iter().map(|field| field.name.as_str()),
        has_iceberg_metadata(root)?,
    );
    let hidden_files = hidden.clone();
    let mut files = Vec::new();
    walk_folders(
        root,
        move |path| {
            !hidden_files.is_hidden(path)
                && file_name(path)
                    .rsplit_once('.')
                    .is_some_and(|(_, end)| end.eq_ignore_ascii_case("parquet"))
        },
        |folder, listed| {
            if !folder.is_empty()
                && listed
                    .folders
                    .iter()
                    .any(|inner| file_name(inner) == "_delta_log")
            {
                return Err(Error::invalid(format!(
                    "the folder `{}` is a Delta table itself; convert the other folders",
                    shown(folder)
                )));
            }
            files.extend(listed.objects);
            Ok(listed
                .folders
                .into_iter()
                .filter(|path| !hidden.is_hidden(path))
                .collect())
        },
        cancel,
    )?;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The partition values in the folder names of a file.
fn partition_values(path: &str, partition: &StructType, hive: bool) -> Result<PartitionValues> {
    let folders: Vec<&str> = path
        .rsplit_once('/')
        .map_or(Vec::new(), |(folders, _)| folders.split('/').collect());
    let decode = |text: &str| -> Result<Option<String>> {
        let text = percent_decode_str(text).decode_utf8().map_err(|_| {
            Error::invalid("the name of a partition folder is not UTF-8").at_file(path)
        })?;
        Ok(Some(text.into_owned()).filter(|text| !text.is_empty() && text != HIVE_NULL))
    };
    let names = || {
        partition
            .fields
            .iter()
            .map(|field| field.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !hive {
        if folders.len() != partition.fields.len() {
            return Err(Error::invalid(format!(
                "the file is in {} folders and there are {} partition columns ({})",
                folders.len(),
                partition.fields.len(),
                names()
            )))
            .at_file(path);
        }
        return partition
            .fields
            .iter()
            .zip(folders)
            .map(|(field, folder)| Ok((field.name.clone(), decode(folder)?)))
            .collect();
    }
    let mut out = PartitionValues::new();
    for folder in folders {
        // Folders without `=` have no partition value.
        let Some((column, value)) = folder.split_once('=') else {
            continue;
        };
        let column = decode(column)?.unwrap_or_default();
        let Some(field) = partition
            .fields
            .iter()
            .find(|field| field.name.to_lowercase() == column.to_lowercase())
        else {
            return Err(Error::invalid(format!(
                "the folder `{}` is one of a partition column that is not named; name it with its type in {}",
                shown(folder),
                CallOption::PartitionBy
            ))
            .with_code(ErrorCode::PartitionColumnUnnamed, &[("folder", &folder)]))
            .at_file(path);
        };
        if out.insert(field.name.clone(), decode(value)?).is_some() {
            return Err(Error::invalid(format!(
                "the file is in two folders of the partition column `{}`",
                field.name
            )))
            .at_file(path);
        }
    }
    if let Some(missing) = partition
        .fields
        .iter()
        .find(|field| !out.contains_key(&field.name))
    {
        return Err(Error::invalid(format!(
            "the file is in no folder of the partition column `{0}`, such as `{0}=...`",
            missing.name
        )))
        .at_file(path);
    }
    Ok(out)
}

/// Checks that every partition value can be parsed as its column's type.
fn check_partition_values(
    files: &[ObjectMeta],
    values: &[PartitionValues],
    partition: &StructType,
) -> Result<()> {
    for field in &partition.fields {
        for (file, values) in files.iter().zip(values) {
            let column =
                std::iter::once(values.get(&field.name).and_then(Option::as_deref)).collect();
            let parsed = partition_value::parse(
                &column,
                &field.data_type,
                crate::protocol::calendar::TimeZoneSpec::UTC,
            );
            parsed.map_err(|error| {
                error
                    .into_invalid()
                    .at_column(&field.name)
                    .at_file(&file.path)
            })?;
        }
    }
    Ok(())
}

/// The columns of all files, without the partition columns.
fn merge_file_schemas(
    files: &[ObjectMeta],
    surveys: &[FooterSchema],
    partition: &StructType,
) -> Result<StructType> {
    // The position and the first file of each column, by name in lower case.
    let mut first: FxHashMap<String, (usize, &str)> = FxHashMap::default();
    let partition: FxHashSet<String> = partition
        .fields
        .iter()
        .map(|column| column.name.to_lowercase())
        .collect();
    let mut columns: Vec<StructField> = Vec::new();
    for (file, survey) in files.iter().zip(surveys) {
        for field in &survey.schema.fields {
            let key = field.name.to_lowercase();
            if partition.contains(&key) {
                continue;
            }
            let first_file = first.get(&key).copied();
            match first_file.and_then(|(n, _)| columns.get_mut(n)) {
                None => {
                    first.insert(key, (columns.len(), &file.path));
                    columns.push(field.clone());
                }
                Some(known) => {
                    let clash = |what: &str, expected: &str, found: &str| {
                        let other = first_file.map(|(_, path)| path).unwrap_or_default();
                        let what = format!(
                            "the column `{}` {what} than in the file {}",
                            known.name,
                            shown(other)
                        );
                        Error::schema_mismatch(what, expected, found).at_file(&file.path)
                    };
                    if known.name != field.name {
                        return Err(clash("has other letters", &known.name, &field.name));
                    }
                    let joined = merge_data_types(&known.data_type, &field.data_type);
                    let joined = joined.ok_or_else(|| {
                        clash(
                            "has another type",
                            &known.data_type.to_string(),
                            &field.data_type.to_string(),
                        )
                    })?;
                    known.data_type = joined;
                }
            }
        }
    }
    Ok(StructType {
        fields: columns.into(),
    })
}

/// The common type of a column that has different types in two files; structs may have more fields.
fn merge_data_types(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        (DataType::Void, other) | (other, DataType::Void) => Some(other.clone()),
        (DataType::Struct(a), DataType::Struct(b)) => {
            let mut fields = Vec::from(a.fields.clone());
            for field in &b.fields {
                let known = a.fields.position(&field.name);
                match known.and_then(|n| fields.get_mut(n)) {
                    Some(known) => {
                        known.data_type = merge_data_types(&known.data_type, &field.data_type)?;
                    }
                    None => fields.push(field.clone()),
                }
            }
            Some(DataType::Struct(Arc::new(StructType {
                fields: fields.into(),
            })))
        }
        (a, b) => (a == b).then(|| a.clone()),
    }
}
