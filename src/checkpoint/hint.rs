//! The checkpoint hint `_last_checkpoint`.
//!
//! Protocol: "Last Checkpoint File", "Last Checkpoint File Schema", "JSON checksum".

use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::exec::now_ms;
use crate::protocol::canonical_json;
use crate::protocol::log_path::LAST_CHECKPOINT;
use crate::protocol::schema::StructType;
use crate::snapshot::Snapshot;
use crate::store::replace;

/// A checkpoint that was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointInfo {
    /// Its version.
    pub version: i64,
    /// Its files, relative to the table root: the manifest, or all parts in order.
    pub files: Vec<String>,
    /// The number of parts of a multi-part checkpoint.
    pub parts: Option<u32>,
    /// Live files in it.
    pub num_add_files: u64,
    /// Tombstones in it.
    pub num_remove_files: u64,
    /// Actions in it, including those of its sidecars.
    pub num_actions: u64,
    /// The total size of its files in bytes, including sidecars.
    pub size_in_bytes: u64,
    /// Its sidecars, as actions.
    pub sidecars: Vec<Value>,
    /// Whether `_last_checkpoint` references it; false if there was a newer one.
    pub is_last: bool,
}

/// Longer schemas are left out, as in delta-spark.
const LONGEST_SCHEMA: usize = 16 * 1024;
/// More actions than these are left out of the hint, as in delta-spark.
const MOST_ACTIONS: usize = 30;

/// The hint for a checkpoint.
pub(super) fn hint_json(info: &CheckpointInfo) -> Value {
    let mut hint = json!({
        "version": info.version,
        "size": info.num_actions,
        "sizeInBytes": info.size_in_bytes,
        "numOfAddFiles": info.num_add_files,
    });
    if let (Some(parts), Some(hint)) = (info.parts, hint.as_object_mut()) {
        hint.insert("parts".to_owned(), parts.into());
    }
    hint
}

/// The schema as JSON, unless it is too long for the hint, or nested so deep that readers cannot
/// parse it: their JSON libraries take about 125 levels, and the hint has some around the schema.
pub(super) fn small_schema(schema: &StructType) -> Option<Value> {
    const MOST_NESTED: usize = 30;
    if schema.nesting() > MOST_NESTED {
        return None;
    }
    let json = schema.to_json();
    (json.to_string().len() <= LONGEST_SCHEMA).then_some(json)
}

/// Adds the columns of the checkpoint.
pub(super) fn add_schema(hint: &mut Value, schema: &StructType) {
    if let (Some(schema), Some(hint)) = (small_schema(schema), hint.as_object_mut()) {
        hint.insert("checkpointSchema".to_owned(), schema);
    }
}

/// Adds the manifest of a V2 checkpoint, `bytes` long, and its actions if there are few.
pub(super) fn add_v2(hint: &mut Value, info: &CheckpointInfo, bytes: u64, non_file: Vec<Value>) {
    let name = info
        .files
        .first()
        .and_then(|path| path.rsplit('/').next())
        .unwrap_or_default();
    let mut v2 = json!({"path": name, "sizeInBytes": bytes, "modificationTime": now_ms()});
    if let Some(v2) = v2.as_object_mut() {
        if non_file.len() <= MOST_ACTIONS {
            v2.insert("nonFileActions".to_owned(), non_file.into());
        }
        if info.sidecars.len() <= MOST_ACTIONS {
            v2.insert("sidecarFiles".to_owned(), info.sidecars.clone().into());
        }
    }
    if let Some(hint) = hint.as_object_mut() {
        hint.insert("v2Checkpoint".to_owned(), v2);
    }
}

/// Writes the hint with its checksum; returns false if it references a newer checkpoint.
///
/// # Errors
/// [`Error::Storage`].
pub(super) fn write(snapshot: &Snapshot, hint: &Value) -> Result<bool> {
    let version = hint.get("version").and_then(Value::as_i64).unwrap_or(0);
    if let Some(known) = snapshot
        .log()
        .hint()
        .filter(|known| known.version > version)
    {
        // A hint that references a missing checkpoint is replaced.
        if snapshot
            .log()
            .list(known.version)?
            .checkpoints
            .iter()
            .any(|checkpoint| checkpoint.version >= known.version)
        {
            return Ok(false);
        }
    }
    let text = hint.to_string();
    let checksum = canonical_json::checksum(&text)
        .ok_or_else(|| Error::internal("a hint without a canonical form"))?;
    let mut hint = hint.clone();
    if let Some(hint) = hint.as_object_mut() {
        hint.insert("checksum".to_owned(), checksum.into());
    }
    replace(
        snapshot.stores().root().as_ref(),
        LAST_CHECKPOINT,
        hint.to_string().as_bytes(),
    )?;
    Ok(true)
}
