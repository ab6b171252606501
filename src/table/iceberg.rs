//! Tables that Iceberg reads, too: what their files must be like when that is switched on.
//!
//! What protocol, metadata and schema must be like is `protocol::table`'s; new files are written accordingly. Files that
//! are there are not rewritten here: where one would have to be, the switch is refused.
//!
//! Protocol: "Writer Requirements for IcebergCompatV1", "Writer Requirements for IcebergCompatV2".
//! Cost: a pass over the live files; the footers of a partitioned table's for the first version.

use crate::commit::adds::all;
use crate::error::{Error, Result, ResultExt};
use crate::exec::{Cancel, map_all};
use crate::pq::survey;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::Add;
use crate::protocol::data_path;
use crate::protocol::schema::{StructField, StructType};
use crate::protocol::table::ICEBERG;
use crate::snapshot::Snapshot;

const FEATURES: [&str; 2] = ["icebergCompatV1", "icebergCompatV2"];

/// Checks the table's files where `metadata` newly promises them to Iceberg; whether it does, so that no other file may
/// come in between.
///
/// # Errors
/// [`Error::Unsupported`] names a file that would have to be rewritten, and how to have that done.
pub(super) fn check_files(snapshot: &Snapshot, metadata: &Metadata, cancel: &Cancel) -> Result<bool> {
    let newly = |key: &str| metadata.flag(key) && !snapshot.metadata().flag(key);
    let Some(version) = ICEBERG.iter().position(|key| newly(key)) else { return Ok(false) };
    let feature = FEATURES.get(version).copied().unwrap_or_default();
    let refuse = |path: &str, what: &str| {
        let what = format!("`{feature}` cannot be switched on: a file {what}");
        Err(Error::unsupported_feature(feature, what)).at_file(path)
    };
    let files = all(snapshot, cancel)?;
    for add in &files {
        if add.deletion_vector.is_some() {
            return refuse(&add.path, "has a deletion vector, which Iceberg would not see; drop the feature `deletionVectors`, which rewrites such files");
        }
        if version == 0 && add.num_records().is_none() {
            return refuse(&add.path, "has no `numRecords` in its statistics; rewrite the table (REORG TABLE in delta-spark, or overwrite it with itself)");
        }
    }
    let columns: Vec<String> = snapshot.partition_fields().into_iter().map(|field| in_files(snapshot, metadata, field)).collect::<Result<_>>()?;
    if version > 0 || columns.is_empty() {
        return Ok(true);
    }
    let stores = snapshot.stores().clone();
    let cancel = cancel.clone();
    let without = map_all(files, move |add: Add| {
        cancel.check()?;
        let path = data_path::canonical(&add.path)?;
        let schema = survey(&stores.file(&path, u64::try_from(add.size).ok())?)?.schema;
        let lacks = columns.iter().any(|name| !schema.fields.iter().any(|field| field.name == *name));
        Ok(lacks.then_some(add.path))
    })?;
    match without.into_iter().flatten().next() {
        Some(path) => refuse(&path, "does not hold the partition columns; rewrite the table (REORG TABLE in delta-spark, or overwrite it with itself)"),
        None => Ok(true),
    }
}

/// The name that a column has in files of the table once it has these metadata.
fn in_files(snapshot: &Snapshot, metadata: &Metadata, field: &StructField) -> Result<String> {
    let schema = StructType::parse(&metadata.schema_string)?;
    let found = schema.fields.iter().find(|other| other.name == field.name);
    Ok(found.map_or_else(|| snapshot.physical_name(field), StructField::physical_name).to_owned())
}
