//! Files that another engine wrote into a folder of the table: reads what their `add` actions need.
//!
//! The engine names columns as in the table's files and partition folders `column=value` as in
//! Hive, where a value is a string that can be parsed as its type (a timestamp with its zone).
//! Statistics are taken from the footers, which are read in parallel; files without rows are not
//! added. The last values of identity columns are taken from the footers as well.
//!
//! Protocol: "Add File and Remove File", "Per-file Statistics", "Partition Value Serialization".
//! Cost: one listing of each folder, one footer per file.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::partition::{canonical, log_path};
use super::stats::StatsPlan;
use super::{WriteRequest, WrittenDataFile};
use crate::error::{Error, Result, ResultExt, shown};
use crate::exec::{CancellationToken, map_all};
use crate::expr::Scalar;
use crate::file_writer::constraints::IdentityColumn;
use crate::file_writer::file_schema::file_name;
use crate::pq::infer_schema;
use crate::pq::{ColumnMappingMode, ColumnStatistics, StatisticsLevel};
use crate::protocol::calendar::TimeZoneSpec;
use crate::protocol::partition_value::HIVE_NULL;
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::store::{ObjectMeta, Store, StoreObject};

/// The files in a folder.
#[derive(Debug, Clone, Default)]
pub struct EngineFileSet {
    /// Data files with rows.
    pub files: Vec<WrittenDataFile>,
    /// All other files, by their paths relative to the table root: files without rows, markers,
    /// checksums of Hadoop.
    pub non_data_files: Vec<String>,
    /// The last value of each identity column of the request's rules.
    pub identities: Vec<(String, i64)>,
}

/// All files below a folder of the table.
///
/// # Errors
/// Errors of the store.
pub fn list_recursively(
    store: &Arc<dyn Store>,
    folder: &str,
    cancel: &CancellationToken,
) -> Result<Vec<ObjectMeta>> {
    let mut found = Vec::new();
    let mut level = vec![folder.trim_matches('/').to_owned()];
    while !level.is_empty() {
        cancel.check()?;
        let store = Arc::clone(store);
        for listed in map_all(std::mem::take(&mut level), move |folder| {
            store.list_folder(&folder, &|_| true)
        })? {
            found.extend(listed.objects);
            level.extend(listed.folders);
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Reads the files of a folder; `request` describes the table, and the identity columns for which
/// the engine generated values.
///
/// # Errors
/// [`Error::Corrupt`] names a file that is not Parquet or lacks bounds of an identity column,
/// [`Error::SchemaMismatch`] one with columns that the table does not have, [`Error::Invalid`] a
/// folder that is not a partition of the table.
pub fn inspect_external_files(
    store: &Arc<dyn Store>,
    request: &WriteRequest,
    folder: &str,
    cancel: &CancellationToken,
) -> Result<EngineFileSet> {
    let written = written_columns(request);
    let partition = partition_fields(request)?;
    let stats = StatsPlan::new(&written, &request.hidden, &request.properties, |field| {
        file_name(field, request.mapping).to_owned()
    })?;
    let reader = FooterReader {
        store: Arc::clone(store),
        columns: in_files(&written, request.mapping),
        levels: stats.requested_statistics(),
        identities: identity_columns(&written, request)?,
        with_ids: fields_with_ids(&written, request),
    };
    let mut out = EngineFileSet::default();
    let mut data = Vec::new();
    for object in list_recursively(store, folder, cancel)? {
        let name = object.path.rsplit('/').next().unwrap_or_default();
        if name.ends_with(".parquet") && !name.starts_with(['.', '_']) {
            data.push(object);
        } else {
            out.non_data_files.push(object.path);
        }
    }
    let stop = cancel.clone();
    let footers = map_all(data, move |object| {
        stop.check()?;
        reader.read(object)
    })?;
    for footer in footers {
        let (object, rows) = (footer.object, footer.rows);
        if rows == 0 {
            out.non_data_files.push(object.path);
            continue;
        }
        for (identity, facts) in request.rules.identities.iter().zip(&footer.identities) {
            update_last_identity(identity, facts, &mut out.identities).at_file(&object.path)?;
        }
        out.files.push(WrittenDataFile {
            partition_values: values(&object.path, folder, &partition, request.mapping)
                .at_file(&object.path)?,
            path: log_path(&object.path),
            size: object.size,
            modified_ms: object.modified_ms,
            num_records: rows,
            stats: Some(stats.json(rows, &footer.statistics)),
        });
    }
    Ok(out)
}

/// The columns that data files have: all but partition columns and columns without a type.
fn written_columns(request: &WriteRequest) -> StructType {
    let is_partition = |field: &StructField| request.partition_columns.contains(&field.name);
    StructType {
        fields: request
            .schema
            .fields
            .iter()
            .filter(|field| !is_partition(field) && field.data_type != DataType::Void)
            .cloned()
            .collect(),
    }
}

/// The fields of the partition columns, in the order of the folders.
fn partition_fields(request: &WriteRequest) -> Result<Vec<StructField>> {
    request
        .partition_columns
        .iter()
        .map(|name| {
            request
                .schema
                .field(name)
                .ok_or_else(|| {
                    Error::invalid("a partition column is not in the schema").at_column(name)
                })
                .cloned()
        })
        .collect()
}

/// The identity columns of the request's rules, with their names in files.
fn identity_columns(written: &StructType, request: &WriteRequest) -> Result<StructType> {
    let identities = &request.rules.identities;
    let fields: Vec<StructField> = identities
        .iter()
        .filter_map(|identity| written.field(&identity.column).cloned())
        .collect();
    if fields.len() < identities.len() {
        return Err(Error::unsupported(
            "a partition column cannot be an identity column whose values another engine gave",
        ));
    }
    Ok(in_files(
        &StructType {
            fields: fields.into(),
        },
        request.mapping,
    ))
}

/// The fields that must have ids in files, if the table's column mapping finds columns by id.
fn fields_with_ids(written: &StructType, request: &WriteRequest) -> Option<Vec<StructField>> {
    (request.mapping == ColumnMappingMode::Id).then(|| {
        written
            .fields
            .iter()
            .filter(|field| !request.hidden.contains(&field.name))
            .cloned()
            .collect()
    })
}

/// Reads and checks the footers of files.
struct FooterReader {
    store: Arc<dyn Store>,
    /// The columns, with their names in files.
    columns: StructType,
    /// The statistics to read of the columns.
    levels: Vec<StatisticsLevel>,
    /// The identity columns, with their names in files.
    identities: StructType,
    /// The fields that must have ids, if columns are found by id.
    with_ids: Option<Vec<StructField>>,
}

/// The footer of a file.
struct ExternalFooter {
    object: ObjectMeta,
    rows: u64,
    /// The statistics of the columns.
    statistics: Vec<ColumnStatistics>,
    /// The bounds of the identity columns.
    identities: Vec<ColumnStatistics>,
}

impl FooterReader {
    /// Reads the footer of a file, whose columns must be columns of the table.
    fn read(&self, object: ObjectMeta) -> Result<ExternalFooter> {
        let file = StoreObject {
            store: Arc::clone(&self.store),
            path: object.path.clone(),
            size: Some(object.size),
        };
        let found = infer_schema(&file)?;
        if let Some(fields) = &self.with_ids
            && !found.names_have_ids(&file, fields)?
        {
            let what =
                "the file lacks field ids, by which the table's column mapping finds columns";
            return Err(Error::schema_mismatch(
                what,
                "an id at each column",
                "columns without",
            ))
            .at_file(&object.path);
        }
        let known = |field: &StructField| self.columns.fields.named(&field.name).is_some();
        if let Some(field) = found.schema.fields.iter().find(|field| !known(field)) {
            let what = "the file has a column that the table does not have";
            return Err(Error::schema_mismatch(
                what,
                "no such column",
                format!("`{}`", shown(&field.name)),
            ))
            .at_file(&object.path);
        }
        let bounds = vec![StatisticsLevel::Bounds; self.identities.fields.len()];
        Ok(ExternalFooter {
            rows: found.num_rows(),
            statistics: found.column_statistics(&self.columns, &self.levels),
            identities: found.column_statistics(&self.identities, &bounds),
            object,
        })
    }
}

/// Records the last value of an identity column in a file, if it is the last of all files.
fn update_last_identity(
    identity: &IdentityColumn,
    facts: &ColumnStatistics,
    all: &mut Vec<(String, i64)>,
) -> Result<()> {
    let (Some(Scalar::Long(least)), Some(Scalar::Long(most))) = (&facts.min, &facts.max) else {
        return Err(
            Error::corrupt("the file's footer has no bounds of an identity column")
                .at_column(&identity.column),
        );
    };
    let rises = identity.step > 0;
    let last = if rises { *most } else { *least };
    match all
        .iter_mut()
        .find(|(column, _)| *column == identity.column)
    {
        Some((_, known)) => {
            *known = if rises {
                last.max(*known)
            } else {
                last.min(*known)
            }
        }
        None => all.push((identity.column.clone(), last)),
    }
    Ok(())
}

/// The columns with their names in files; fields within lists and maps have no statistics and need
/// no names.
fn in_files(columns: &StructType, mapping: ColumnMappingMode) -> StructType {
    let named = |field: &StructField| {
        let mut out = field.clone();
        file_name(field, mapping).clone_into(&mut out.name);
        if let DataType::Struct(inner) = &field.data_type {
            out.data_type = DataType::Struct(Arc::new(in_files(inner, mapping)));
        }
        out
    };
    StructType {
        fields: columns.fields.iter().map(named).collect(),
    }
}

/// The partition values in the folder names of a file, by the columns' names in the log.
fn values(
    path: &str,
    folder: &str,
    partition: &[StructField],
    mapping: ColumnMappingMode,
) -> Result<Vec<(String, Option<String>)>> {
    let below = path
        .strip_prefix(folder.trim_matches('/'))
        .unwrap_or(path)
        .trim_start_matches('/');
    let folders: Vec<&str> = below
        .rsplit_once('/')
        .map_or(Vec::new(), |(folders, _)| folders.split('/').collect());
    if folders.len() != partition.len() {
        return Err(Error::invalid(format!(
            "the file is in {} folders and the table has {} partition columns",
            folders.len(),
            partition.len()
        )));
    }
    let decode = |text: &str| {
        let text = percent_decode_str(text)
            .decode_utf8()
            .map_err(|_| Error::invalid("the name of a partition folder is not UTF-8"))?;
        Ok::<_, Error>(text.into_owned())
    };
    let value = |(field, folder): (&StructField, &str)| {
        let name = file_name(field, mapping);
        let (column, value) = folder.split_once('=').unwrap_or_default();
        if decode(column)? != name {
            return Err(Error::invalid(format!(
                "the folder `{}` is none of the partition column `{name}`",
                shown(folder)
            )));
        }
        let text = Some(decode(value)?).filter(|text| text != HIVE_NULL);
        Ok((
            name.to_owned(),
            canonical(text.as_deref(), &field.data_type, TimeZoneSpec::UTC)
                .map_err(|e| e.at_column(&field.name))?,
        ))
    };
    partition.iter().zip(folders).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_say_partition_values_whatever_they_are() {
        let fields = [
            StructField::new("p", DataType::String, true),
            StructField::new("at", DataType::Timestamp, true),
            StructField::new("n", DataType::Double, true),
        ];
        let found = values(
            "w/p=a%2Fb=c/at=2020-01-01T00%3A00%3A00.5Z/n=1/f.parquet",
            "w/",
            &fields,
            ColumnMappingMode::None,
        )
        .unwrap();
        let text = |n: usize| found[n].1.as_deref();
        assert_eq!(
            (text(0), text(1), text(2)),
            (
                Some("a/b=c"),
                Some("2020-01-01T00:00:00.500000Z"),
                Some("1.0")
            )
        );
        let nulls = values(
            "w/p=__HIVE_DEFAULT_PARTITION__/at=__HIVE_DEFAULT_PARTITION__/n=2.5/f.parquet",
            "w",
            &fields,
            ColumnMappingMode::None,
        )
        .unwrap();
        assert_eq!(
            (
                nulls[0].1.as_deref(),
                nulls[1].1.as_deref(),
                nulls[2].1.as_deref()
            ),
            (None, None, Some("2.5"))
        );
        assert!(values("w/f.parquet", "w", &fields, ColumnMappingMode::None).is_err());
        assert!(
            values(
                "w/p=1/x=2/n=3/f.parquet",
                "w",
                &fields,
                ColumnMappingMode::None
            )
            .is_err()
        );
    }
}
