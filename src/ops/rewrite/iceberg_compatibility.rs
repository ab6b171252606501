//! Iceberg compatibility of a table's files.
//!
//! The requirements for protocol, metadata and schema are in `protocol::iceberg`; new files are
//! written accordingly. Enabling the property alone fails if existing files would have to be
//! rewritten. An upgrade enables it first and then rewrites all files without the tag of compatible
//! files: [`files_to_upgrade`].
//!
//! Protocol: "Writer Requirements for IcebergCompatV1", "Writer Requirements for IcebergCompatV2";
//! the upgrade and the tag are those of delta-spark. Cost: a pass over the live files; for version
//! 1 the footers of a partitioned table's files.

use std::collections::BTreeMap;

use crate::commit::adds::all_live_adds;
use crate::error::{Error, Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::pq::infer_schema;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::data_path;
use crate::protocol::iceberg::{TAG, enabled_iceberg_compat};
use crate::protocol::schema::{StructField, StructType};
use crate::snapshot::Snapshot;

/// Checks the table's files if `metadata` newly enables Iceberg compatibility; returns whether it
/// does, so that no concurrent commit may add other files.
///
/// # Errors
/// [`Error::Unsupported`] names a file that would have to be rewritten, and the command that does
/// it.
pub(in crate::ops) fn check_files(
    snapshot: &Snapshot,
    metadata: &Metadata,
    cancel: &CancellationToken,
) -> Result<bool> {
    let Some((_, version)) =
        enabled_iceberg_compat(metadata).filter(|(key, _)| !snapshot.metadata().flag(key))
    else {
        return Ok(false);
    };
    let feature = if version == 1 {
        "icebergCompatV1"
    } else {
        "icebergCompatV2"
    };
    let refuse = |path: &str, what: &str| {
        let what = format!("`{feature}` cannot be switched on: a file {what}");
        Err(Error::unsupported_feature(feature, what)).at_file(path)
    };
    let files = all_live_adds(snapshot, cancel)?;
    for add in &files {
        if add.deletion_vector.is_some() {
            return refuse(
                &add.path,
                "has a deletion vector, which Iceberg would not see; REORG TABLE .. APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2)) rewrites such files",
            );
        }
        if version == 1 && add.num_records().is_none() {
            return refuse(
                &add.path,
                "has no `numRecords` in its statistics; rewrite the table (REORG TABLE in delta-spark, or overwrite it with itself)",
            );
        }
    }
    let columns: Vec<String> = snapshot
        .partition_fields()
        .into_iter()
        .map(|field| name_in_files(snapshot, metadata, field))
        .collect::<Result<_>>()?;
    if version > 1 || columns.is_empty() {
        return Ok(true);
    }
    let stores = snapshot.stores().clone();
    let cancel = cancel.clone();
    let without = map_all(files, move |add: Add| {
        cancel.check()?;
        let path = data_path::canonical(&add.path)?;
        let schema = infer_schema(&stores.file(&path, u64::try_from(add.size).ok())?)?.schema;
        let lacks = columns
            .iter()
            .any(|name| !schema.fields.iter().any(|field| field.name == *name));
        Ok(lacks.then_some(add.path))
    })?;
    match without.into_iter().flatten().next() {
        Some(path) => refuse(
            &path,
            "does not hold the partition columns; rewrite the table (REORG TABLE in delta-spark, or overwrite it with itself)",
        ),
        None => Ok(true),
    }
}

/// The tags of a new file of a table with these metadata.
pub(in crate::ops) fn tags(metadata: &Metadata) -> Option<BTreeMap<String, Option<String>>> {
    let version = required_tag(metadata)?;
    Some(BTreeMap::from([(TAG.to_owned(), Some(version))]))
}

/// The files that were not written for the table's version of Iceberg compatibility.
pub(in crate::ops) fn files_to_upgrade(snapshot: &Snapshot, mut files: Vec<Add>) -> Vec<Add> {
    let Some(version) = required_tag(snapshot.metadata()) else {
        return Vec::new();
    };
    files
        .retain(|add| add.tags.as_ref().and_then(|tags| tags.get(TAG)?.as_ref()) != Some(&version));
    files
}

/// The value of the tag of compatible files; none for version 1.
fn required_tag(metadata: &Metadata) -> Option<String> {
    enabled_iceberg_compat(metadata)
        .filter(|(_, version)| *version > 1)
        .map(|(_, version)| version.to_string())
}

/// The name of a column in files of the table once it has these metadata.
fn name_in_files(snapshot: &Snapshot, metadata: &Metadata, field: &StructField) -> Result<String> {
    let schema = StructType::parse(&metadata.schema_string)?;
    let found = schema.fields.iter().find(|other| other.name == field.name);
    Ok(found
        .map_or_else(|| snapshot.physical_name(field), StructField::physical_name)
        .to_owned())
}
