//! Checkpoints: Parquet files and V2 manifests -> the same columns as those of commits.
//!
//! Only the columns that are needed are decoded, and the footer's null counts exclude row groups
//! without actions of the wanted kind. Strings stay views of the decoded pages. Each row group is a
//! source of its own, so that all cores decode.
//!
//! Protocol: "Checkpoints", "V2 Spec", "Sidecar Files", "Checkpoint Schema". Cost: one footer per
//! file at opening, then the wanted column chunks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, MapArray, RecordBatch, StringViewArray,
    StructArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::DataType as Arrow;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::batch::{DvColumns, FileActionProjection, FileBatch, StatsColumn};
use super::commit::{self, ActionSelection, NonFileAction};
use super::json_lines;
use crate::error::{Error, Result, ResultExt};
use crate::exec::{ItemSource, map_all};
use crate::log::{CheckpointInstance, CheckpointKind};
use crate::pq::{RawFile, RawGroup, open_raw};
use crate::protocol::action::{self, Sidecar};
use crate::protocol::data_path;
use crate::protocol::log_path::SIDECAR_DIR;
use crate::protocol::schema::StringLayout;
use crate::store::{Store, StoreObject};

/// Rows decoded at once: fewer cost more per batch, more do not fit into the caches.
const BATCH_ROWS: usize = 8 * 1024;
/// Bytes of strings in one batch.
const BATCH_BYTES: u64 = 64 << 20;

/// The kind of file actions to read of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileActionKind {
    /// Live files.
    Adds,
    /// Tombstones.
    Removes,
}

impl FileActionKind {
    fn column(self) -> &'static str {
        match self {
            Self::Adds => "add",
            Self::Removes => "remove",
        }
    }
}

/// An open checkpoint: its manifest and footers are read.
#[derive(Debug, Clone)]
pub struct CheckpointReader {
    version: i64,
    /// A JSON manifest.
    json: Option<(Bytes, String)>,
    /// The checkpoint's own Parquet files.
    own: Vec<Arc<RawFile>>,
    /// Files with file actions only.
    sidecars: Vec<Arc<RawFile>>,
}

impl CheckpointReader {
    /// Reads the manifest and the footers of the checkpoint's own files; with `files`, those of
    /// sidecars too.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file that is damaged or missing.
    pub fn open(
        checkpoint: &CheckpointInstance,
        store: &Arc<dyn Store>,
        files: bool,
    ) -> Result<Self> {
        let mut out = Self {
            version: checkpoint.version,
            json: None,
            own: Vec::new(),
            sidecars: Vec::new(),
        };
        let mut sidecars: Vec<Sidecar> = Vec::new();
        if checkpoint.kind == CheckpointKind::UuidJson {
            let (bytes, path) = manifest(checkpoint)?;
            sidecars = sidecars_of_json(&bytes, &path)?;
            out.json = Some((bytes, path));
        } else {
            out.own = map_all(checkpoint.files.clone(), |file| {
                with_log_error(open_raw(&file).map(Arc::new))
            })?;
            if files && checkpoint.kind != CheckpointKind::MultiPart {
                sidecars = sidecars_of_parquet(&out.own)?;
            }
        }
        if files {
            sidecars.dedup_by(|a, b| a.path == b.path);
            let sidecars = sidecars
                .iter()
                .map(|s| sidecar_file(s, store))
                .collect::<Result<Vec<_>>>()?;
            out.sidecars = map_all(sidecars, |file| {
                with_log_error(open_raw(&file).map(Arc::new))
            })?;
        }
        Ok(out)
    }

    /// The checkpoint's version.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version
    }

    /// The largest possible number of live files in it.
    #[must_use]
    pub fn max_file_count(&self) -> u64 {
        let live = |group: RawGroup<'_>| {
            let nulls = group
                .statistics(&["add", "path"])
                .and_then(|statistics| statistics.null_count)
                .unwrap_or(0);
            group.num_rows().saturating_sub(nulls)
        };
        let of_json = self
            .json
            .as_ref()
            .map_or(0, |(text, _)| commit::estimated_adds(text.len() as u64));
        of_json
            + self
                .own
                .iter()
                .chain(&self.sidecars)
                .flat_map(|raw| raw.row_groups().map(live))
                .sum::<u64>()
    }

    /// The number of actions in it if it equals the number of rows: not for a V2 checkpoint, whose
    /// actions writers count differently.
    #[must_use]
    pub fn num_actions(&self) -> Option<u64> {
        let is_v1 = |raw: &Arc<RawFile>| {
            raw.leaves()
                .all(|leaf| leaf.first() != Some(&"checkpointMetadata"))
        };
        let counts = self.json.is_none() && self.sidecars.is_empty() && self.own.iter().all(is_v1);
        counts.then(|| self.own.iter().map(|raw| raw.num_rows()).sum())
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn size(&self) -> u64 {
        let of_json = self.json.as_ref().map_or(0, |(text, _)| text.len() as u64);
        of_json
            + self
                .own
                .iter()
                .chain(&self.sidecars)
                .map(|raw| raw.size())
                .sum::<u64>()
    }

    /// Whether it has statistics of live files only as JSON text.
    #[must_use]
    pub fn has_json_stats_only(&self) -> bool {
        self.own.iter().chain(&self.sidecars).all(|raw| {
            raw.row_groups()
                .all(|group| !stats_are_parsed(&group, FileActionKind::Adds, false))
        })
    }

    /// Whether it is a V2 checkpoint, whatever its name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the file.
    pub fn is_v2(&self) -> Result<bool> {
        if self.json.is_some() || !self.sidecars.is_empty() {
            return Ok(true);
        }
        for raw in &self.own {
            if !rows_as_json(raw, "checkpointMetadata", "version")?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Actions other than file actions, of the kinds in `take`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the file.
    pub fn non_file_actions(&self, take: &ActionSelection) -> Result<Vec<NonFileAction>> {
        if let Some((bytes, path)) = &self.json {
            let take = ActionSelection {
                adds: None,
                removes: None,
                cdc: None,
                ..take.clone()
            };
            return Ok(commit::parse(bytes, 0..bytes.len(), &take, &[])
                .at_file(path)?
                .non_file_actions);
        }
        let mut out = Vec::new();
        for raw in &self.own {
            if take.protocol_and_metadata {
                for json in rows_as_json(raw, "protocol", "minReaderVersion")? {
                    out.push(NonFileAction::Protocol(action::from_json(
                        "protocol",
                        &json.to_string(),
                    )?));
                }
                for json in rows_as_json(raw, "metaData", "id")? {
                    out.push(NonFileAction::Metadata(Box::new(action::from_json(
                        "metaData",
                        &json.to_string(),
                    )?)));
                }
            }
            if take.transactions_and_domains {
                for json in rows_as_json(raw, "txn", "appId")? {
                    out.push(NonFileAction::Txn(action::from_json(
                        "txn",
                        &json.to_string(),
                    )?));
                }
                for json in rows_as_json(raw, "domainMetadata", "domain")? {
                    out.push(NonFileAction::Domain(action::from_json(
                        "domainMetadata",
                        &json.to_string(),
                    )?));
                }
            }
        }
        Ok(out)
    }

    /// File actions, a source for each piece that can be decoded on its own.
    pub fn files(
        &self,
        kind: FileActionKind,
        wanted: &Arc<FileActionProjection>,
    ) -> Vec<ItemSource<FileBatch>> {
        let mut out: Vec<ItemSource<FileBatch>> = Vec::new();
        if let Some((bytes, path)) = &self.json {
            let (bytes, path, wanted) = (bytes.clone(), path.clone(), Arc::clone(wanted));
            out.push(Box::new(std::iter::once_with(move || {
                let mut take = ActionSelection::default();
                match kind {
                    FileActionKind::Adds => take.adds = Some(wanted.as_ref().clone()),
                    FileActionKind::Removes => take.removes = Some(wanted.as_ref().clone()),
                }
                let parsed = commit::parse(&bytes, 0..bytes.len(), &take, &[]).at_file(&path)?;
                Ok(match kind {
                    FileActionKind::Adds => parsed.adds,
                    FileActionKind::Removes => parsed.removes,
                })
            })));
        }
        for raw in self.own.iter().chain(&self.sidecars) {
            let column = kind.column();
            let (mut any, mut path) = (false, false);
            for leaf in raw.leaves().filter(|leaf| leaf.first() == Some(&column)) {
                any = true;
                path |= leaf == [column, "path"];
                if leaf == [column, "partitionValues"] {
                    let error = wrong_type("partitionValues").at_file(raw.path());
                    out.push(Box::new(std::iter::once_with(move || Err(error))));
                }
            }
            if any && !path {
                let file = raw.path().to_owned();
                let what = format!("the checkpoint's column `{column}` has no field `path`");
                out.push(Box::new(std::iter::once_with(move || {
                    Err(Error::corrupt(what).at_file(file))
                })));
                continue;
            }
            for (index, group) in raw.row_groups().enumerate() {
                let lacks =
                    |field| group.is_all_null(&[column, field]) && group.accounts_for_rows();
                if lacks("path") && (column == "remove" || lacks("size")) {
                    continue;
                }
                let (raw, wanted) = (Arc::clone(raw), Arc::clone(wanted));
                let parsed_stats = stats_are_parsed(&group, kind, wanted.stats_text);
                out.push(Box::new(LazyIterator::new(move || {
                    group_batches(&raw, index, kind, &wanted, parsed_stats)
                })));
            }
        }
        out
    }
}

/// A sidecar on its own.
#[derive(Debug, Clone)]
pub struct SidecarReader {
    /// The sidecar action.
    pub action: Sidecar,
    /// The file.
    pub raw: Arc<RawFile>,
    version: i64,
}

impl SidecarReader {
    /// Opens the sidecars of a checkpoint; an empty list if it holds its file actions itself.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file that is damaged or missing.
    pub fn open_all(checkpoint: &CheckpointInstance, store: &Arc<dyn Store>) -> Result<Vec<Self>> {
        if checkpoint.kind == CheckpointKind::MultiPart {
            return Ok(Vec::new());
        }
        let files = sidecars_of(checkpoint)?
            .into_iter()
            .map(|action| Ok((sidecar_file(&action, store)?, action)))
            .collect::<Result<Vec<_>>>()?;
        let version = checkpoint.version;
        map_all(files, move |(file, action)| {
            Ok(Self {
                action,
                raw: with_log_error(open_raw(&file).map(Arc::new))?,
                version,
            })
        })
    }

    /// Its file actions, a source for each piece that can be decoded on its own.
    #[must_use]
    pub fn files(
        &self,
        kind: FileActionKind,
        wanted: &Arc<FileActionProjection>,
    ) -> Vec<ItemSource<FileBatch>> {
        let alone = CheckpointReader {
            version: self.version,
            json: None,
            own: Vec::new(),
            sidecars: vec![Arc::clone(&self.raw)],
        };
        alone.files(kind, wanted)
    }
}

/// The names of a checkpoint's sidecars, which are not opened.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::NotFound`] name the file that is damaged or missing.
pub fn sidecar_names(checkpoint: &CheckpointInstance) -> Result<Vec<String>> {
    sidecars_of(checkpoint)?.iter().map(sidecar_name).collect()
}

fn sidecars_of(checkpoint: &CheckpointInstance) -> Result<Vec<Sidecar>> {
    if checkpoint.kind == CheckpointKind::UuidJson {
        let (bytes, path) = manifest(checkpoint)?;
        return sidecars_of_json(&bytes, &path);
    }
    let own = checkpoint
        .files
        .iter()
        .map(|file| with_log_error(open_raw(file).map(Arc::new)))
        .collect::<Result<Vec<_>>>()?;
    sidecars_of_parquet(&own)
}

/// A JSON manifest and its path.
fn manifest(checkpoint: &CheckpointInstance) -> Result<(Bytes, String)> {
    let [file] = checkpoint.files.as_slice() else {
        return Err(Error::internal("a JSON checkpoint has one file"));
    };
    Ok((json_lines::read(file)?, file.path.clone()))
}

fn sidecars_of_json(bytes: &Bytes, path: &str) -> Result<Vec<Sidecar>> {
    let take = ActionSelection {
        sidecars: true,
        ..ActionSelection::default()
    };
    let singles = commit::parse(bytes, 0..bytes.len(), &take, &[])
        .at_file(path)?
        .non_file_actions;
    Ok(singles
        .into_iter()
        .filter_map(|single| {
            if let NonFileAction::Sidecar(sidecar) = single {
                Some(sidecar)
            } else {
                None
            }
        })
        .collect())
}

fn sidecars_of_parquet(files: &[Arc<RawFile>]) -> Result<Vec<Sidecar>> {
    let mut out = Vec::new();
    for raw in files {
        for json in rows_as_json(raw, "sidecar", "path")? {
            out.push(
                serde_json::from_value(json)
                    .map_err(|e| Error::corrupt(format!("a sidecar action is malformed: {e}")))?,
            );
        }
    }
    Ok(out)
}

/// Damage to a checkpoint is damage to the log.
fn with_log_error<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        // A checkpoint with features that the decoder does not support is as useless as a damaged
        // one.
        Error::Corrupt {
            what,
            context: place,
            ..
        }
        | Error::Unsupported {
            what,
            context: place,
            ..
        } => Error::Corrupt {
            kind: crate::error::CorruptionKind::Log,
            what,
            context: place,
        },
        other => other,
    })
}

/// Sidecars are always in their own folder, whatever the rest of a full URI.
fn sidecar_name(sidecar: &Sidecar) -> Result<String> {
    let path = data_path::canonical(&sidecar.path)?;
    let name = path
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty() && *name != "..");
    name.map(ToOwned::to_owned)
        .ok_or_else(|| Error::corrupt(format!("`{path}` names no sidecar")))
}

fn sidecar_file(sidecar: &Sidecar, store: &Arc<dyn Store>) -> Result<StoreObject> {
    let name = sidecar_name(sidecar)?;
    Ok(StoreObject {
        store: Arc::clone(store),
        path: format!("{SIDECAR_DIR}/{name}"),
        size: u64::try_from(sidecar.size_in_bytes).ok(),
    })
}

/// Whether `stats_parsed` covers every file of a row group that `stats` covers; with `text_first`,
/// whether it covers one that `stats` does not.
fn stats_are_parsed(group: &RawGroup<'_>, kind: FileActionKind, text_first: bool) -> bool {
    let nulls = |path: &[&str]| group.statistics(path).map(|s| s.null_count);
    let parsed = nulls(&[kind.column(), "stats_parsed", "numRecords"]);
    match (parsed, nulls(&[kind.column(), "stats"])) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(Some(parsed)), Some(Some(text))) if text_first => parsed < text,
        (Some(Some(parsed)), Some(Some(text))) => parsed <= text,
        (Some(None), Some(_)) | (Some(Some(_)), Some(None)) => false,
    }
}

/// An iterator that is created when first pulled.
struct LazyIterator<F, I> {
    make: Option<F>,
    made: Option<I>,
}

impl<F, I> LazyIterator<F, I> {
    fn new(make: F) -> Self {
        Self {
            make: Some(make),
            made: None,
        }
    }
}

impl<T, F: FnOnce() -> Result<I>, I: Iterator<Item = Result<T>>> Iterator for LazyIterator<F, I> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(make) = self.make.take() {
            match make() {
                Ok(made) => self.made = Some(made),
                Err(error) => return Some(Err(error)),
            }
        }
        self.made.as_mut()?.next()
    }
}

fn is_projected(
    wanted: &FileActionProjection,
    kind: FileActionKind,
    parsed_stats: bool,
    path: &[&str],
) -> bool {
    let [column, field, rest @ ..] = path else {
        return false;
    };
    if *column != kind.column() {
        return false;
    }
    match *field {
        "path" | "size" | "deletionVector" => true,
        "partitionValues" => !wanted.partition.is_empty(),
        "modificationTime" => wanted.time && kind == FileActionKind::Adds,
        "deletionTimestamp" => wanted.time && kind == FileActionKind::Removes,
        "stats" => wanted.stats && !parsed_stats,
        "stats_parsed" => {
            wanted.stats
                && parsed_stats
                && match rest {
                    ["numRecords" | "tightBounds"] => true,
                    ["minValues" | "maxValues" | "nullCount", leaf @ ..] => wanted
                        .leaves
                        .iter()
                        .any(|l| l.iter().map(String::as_str).eq(leaf.iter().copied())),
                    _ => false,
                }
        }
        "tags" => wanted.tags,
        "baseRowId" | "defaultRowCommitVersion" => wanted.row_ids,
        "dataChange" => wanted.data_change,
        "clusteringProvider" => wanted.clustering,
        _ => false,
    }
}

fn group_batches(
    raw: &RawFile,
    group: usize,
    kind: FileActionKind,
    wanted: &Arc<FileActionProjection>,
    parsed_stats: bool,
) -> Result<impl Iterator<Item = Result<FileBatch>> + use<>> {
    let rows = wanted.batch_rows.unwrap_or(BATCH_ROWS);
    let batches = with_log_error(raw.read(
        &[group],
        |path| is_projected(wanted, kind, parsed_stats, path),
        StringLayout::View,
        rows,
        BATCH_BYTES,
    ))?;
    let (wanted, path) = (Arc::clone(wanted), raw.path().to_owned());
    Ok(batches
        .map(move |batch| file_batch(&with_log_error(batch)?, kind, &wanted).at_file(&path))
        .filter(|batch| !matches!(batch, Ok(batch) if batch.is_empty())))
}

/// The columns of one batch, rows of other actions left out.
fn file_batch(
    batch: &RecordBatch,
    kind: FileActionKind,
    wanted: &FileActionProjection,
) -> Result<FileBatch> {
    let actions = batch.column(0).as_struct_opt().ok_or_else(|| {
        Error::corrupt(format!(
            "the checkpoint's column `{}` is not a struct",
            kind.column()
        ))
    })?;
    let filtered = without_other_actions(actions)?;
    let actions = match &filtered {
        Some(filtered) => filtered.as_struct(),
        None => actions,
    };
    let rows = actions.len();
    let size = size_column(actions, kind)?;
    let partition = partition_columns(actions, &wanted.partition)?;
    let stats = if wanted.stats {
        Some(stats_column(actions)?)
    } else {
        None
    };
    let tags = wanted.tags.then(|| tags_column(actions));
    let time = match kind {
        FileActionKind::Adds => "modificationTime",
        FileActionKind::Removes => "deletionTimestamp",
    };
    let row_id = |name: &str| -> Result<Option<Int64Array>> {
        let ids = if wanted.row_ids {
            Some(int_column(actions, name, rows)?)
        } else {
            None
        };
        Ok(ids.filter(|ids| ids.null_count() < rows))
    };
    Ok(FileBatch {
        path: string_column(actions, "path", rows)?,
        dv: dv_columns(actions)?,
        partition,
        size,
        time: wanted
            .time
            .then(|| int_column(actions, time, rows))
            .transpose()?,
        stats,
        tags,
        base_row_id: row_id("baseRowId")?,
        default_row_commit_version: row_id("defaultRowCommitVersion")?,
        data_change: wanted
            .data_change
            .then(|| boolean_column(actions, "dataChange", rows))
            .transpose()?,
        clustering: wanted
            .clustering
            .then(|| string_column(actions, "clusteringProvider", rows))
            .transpose()?,
        order: Vec::new(),
    })
}

/// The struct of file actions without the rows of other actions; `None` if it has no such rows.
fn without_other_actions(actions: &StructArray) -> Result<Option<ArrayRef>> {
    let path = string_column(actions, "path", actions.len())?;
    if let Some(size) = actions.column_by_name("size")
        && (0..actions.len())
            .any(|row| actions.is_valid(row) && path.is_null(row) && size.is_valid(row))
    {
        return Err(Error::corrupt("a file action has no `path`"));
    }
    match NullBuffer::union(actions.nulls(), path.nulls()) {
        Some(valid) if valid.null_count() > 0 => {
            let keep = BooleanArray::new(valid.inner().clone(), None);
            Ok(Some(arrow_select::filter::filter(actions, &keep)?))
        }
        _ => Ok(None),
    }
}

/// The sizes of files, which are not negative; every `add` has one.
fn size_column(actions: &StructArray, kind: FileActionKind) -> Result<Int64Array> {
    let size = int_column(actions, "size", actions.len())?;
    if size.iter().flatten().any(|size| size < 0) {
        return Err(Error::corrupt("a file action has a negative `size`"));
    }
    if kind == FileActionKind::Adds && size.null_count() > 0 {
        return Err(Error::corrupt("an `add` has no `size`"));
    }
    Ok(size)
}

/// The values of the partition columns `names`.
fn partition_columns(actions: &StructArray, names: &[String]) -> Result<Vec<StringViewArray>> {
    match actions.column_by_name("partitionValues") {
        Some(map) if !names.is_empty() => {
            let map = map
                .as_map_opt()
                .ok_or_else(|| wrong_type("partitionValues"))?;
            map_columns(map, names)
        }
        _ => Ok(names
            .iter()
            .map(|_| StringViewArray::new_null(actions.len()))
            .collect()),
    }
}

/// The statistics: parsed where they were read, otherwise as JSON.
fn stats_column(actions: &StructArray) -> Result<StatsColumn> {
    match actions.column_by_name("stats_parsed") {
        Some(parsed) => Ok(StatsColumn::Parsed(
            parsed
                .as_struct_opt()
                .ok_or_else(|| wrong_type("stats_parsed"))?
                .clone(),
        )),
        // Null in every row if the checkpoint has no column `stats`.
        None => Ok(StatsColumn::Json(string_column(
            actions,
            "stats",
            actions.len(),
        )?)),
    }
}

/// The tags as JSON.
fn tags_column(actions: &StructArray) -> StringViewArray {
    let rows = actions.len();
    match actions.column_by_name("tags") {
        Some(tags) => (0..rows)
            .map(|row| (!tags.is_null(row)).then(|| json_value(tags, row).to_string()))
            .collect(),
        None => StringViewArray::new_null(rows),
    }
}

fn boolean_column(actions: &StructArray, name: &str, rows: usize) -> Result<BooleanArray> {
    match actions.column_by_name(name) {
        Some(array) => array
            .as_boolean_opt()
            .cloned()
            .ok_or_else(|| wrong_type(name)),
        None => Ok(BooleanArray::new_null(rows)),
    }
}

fn wrong_type(column: &str) -> Error {
    Error::corrupt(format!(
        "the checkpoint's column `{column}` has a wrong type"
    ))
}

fn column_of_type(
    actions: &StructArray,
    name: &str,
    data_type: &Arrow,
    rows: usize,
) -> Result<ArrayRef> {
    match actions.column_by_name(name) {
        None => Ok(new_null_array(data_type, rows)),
        Some(array) if array.data_type() == data_type => Ok(Arc::clone(array)),
        Some(array) if is_compatible_type(array.data_type(), data_type) => {
            cast(array, data_type).map_err(|_| wrong_type(name))
        }
        Some(_) => Err(wrong_type(name)),
    }
}

/// Whether a column of one type may replace another: only the width may differ.
fn is_compatible_type(found: &Arrow, wanted: &Arrow) -> bool {
    match wanted {
        Arrow::Utf8View => matches!(found, Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Null),
        Arrow::Int64 | Arrow::Int32 => found.is_integer() || *found == Arrow::Null,
        _ => false,
    }
}

fn string_column(actions: &StructArray, name: &str, rows: usize) -> Result<StringViewArray> {
    Ok(column_of_type(actions, name, &Arrow::Utf8View, rows)?
        .as_string_view()
        .clone())
}

fn int_column(actions: &StructArray, name: &str, rows: usize) -> Result<Int64Array> {
    Ok(column_of_type(actions, name, &Arrow::Int64, rows)?
        .as_primitive::<Int64Type>()
        .clone())
}

fn dv_columns(actions: &StructArray) -> Result<Option<DvColumns>> {
    let Some(dv) = actions.column_by_name("deletionVector") else {
        return Ok(None);
    };
    let dv = dv
        .as_struct_opt()
        .ok_or_else(|| wrong_type("deletionVector"))?;
    let rows = dv.len();
    let storage_type = string_column(dv, "storageType", rows)?;
    // Some writers write a struct of nulls for a missing action.
    let present = NullBuffer::union(dv.nulls(), storage_type.nulls())
        .map_or_else(|| BooleanBuffer::new_set(rows), NullBuffer::into_inner);
    if present.count_set_bits() == 0 {
        return Ok(None);
    }
    let int32 = |name: &str| -> Result<Int32Array> {
        Ok(column_of_type(dv, name, &Arrow::Int32, rows)?
            .as_primitive::<Int32Type>()
            .clone())
    };
    Ok(Some(DvColumns {
        present,
        storage_type,
        path_or_inline: string_column(dv, "pathOrInlineDv", rows)?,
        offset: int32("offset")?,
        size_in_bytes: int32("sizeInBytes")?,
        cardinality: int_column(dv, "cardinality", rows)?,
    }))
}

/// The values of some keys of a string map, each as a column of views into the map's own values.
fn map_columns(map: &MapArray, names: &[String]) -> Result<Vec<StringViewArray>> {
    let text = |array: &ArrayRef| -> Result<StringViewArray> {
        let array = if array.data_type() == &Arrow::Utf8View {
            Arc::clone(array)
        } else {
            cast(array, &Arrow::Utf8View).map_err(|_| wrong_type("partitionValues"))?
        };
        Ok(array.as_string_view().clone())
    };
    let (keys, values) = (text(map.keys())?, text(map.values())?);
    let rows = map.len();
    let mut views: Vec<Vec<u128>> = names.iter().map(|_| Vec::with_capacity(rows)).collect();
    let mut valid: Vec<Vec<bool>> = names.iter().map(|_| Vec::with_capacity(rows)).collect();
    for row in 0..rows {
        let (start, end) = match (
            map.offsets().get(row),
            map.offsets().get(row + 1),
            map.is_null(row),
        ) {
            (Some(start), Some(end), false) => (
                usize::try_from(*start).unwrap_or(0),
                usize::try_from(*end).unwrap_or(0),
            ),
            _ => (0, 0),
        };
        for ((name, views), valid) in names.iter().zip(&mut views).zip(&mut valid) {
            let entry = (start..end)
                .find(|entry| !keys.is_null(*entry) && keys.value(*entry) == name)
                .filter(|entry| !values.is_null(*entry));
            views.push(
                entry
                    .and_then(|entry| values.views().get(entry).copied())
                    .unwrap_or(0),
            );
            valid.push(entry.is_some());
        }
    }
    Ok(views
        .into_iter()
        .zip(valid)
        .map(|(views, valid)| {
            // SAFETY: every view comes from `values` and keeps its buffers; a zero view is the
            // empty string.
            unsafe {
                StringViewArray::new_unchecked(
                    ScalarBuffer::from(views),
                    Arc::clone(values.data_buffers()),
                    super::batch::validity(BooleanBuffer::from(valid)),
                )
            }
        })
        .collect())
}

/// The rows of a column in which `key` is set, as JSON objects.
fn rows_as_json(raw: &RawFile, column: &str, key: &str) -> Result<Vec<Value>> {
    let groups: Vec<usize> = raw
        .row_groups()
        .enumerate()
        .filter(|(_, group)| !(group.is_all_null(&[column, key]) && group.accounts_for_rows()))
        .map(|(n, _)| n)
        .collect();
    let mut out = Vec::new();
    if groups.is_empty() {
        return Ok(out);
    }
    for batch in with_log_error(raw.read(
        &groups,
        |path| path.first() == Some(&column),
        StringLayout::View,
        BATCH_ROWS,
        BATCH_BYTES,
    ))? {
        let batch = with_log_error(batch)?;
        // A file may lack the column.
        let Some(values) = batch.columns().first() else {
            continue;
        };
        let actions = values.as_struct_opt().ok_or_else(|| wrong_type(column))?;
        let Some(keys) = actions.column_by_name(key) else {
            continue;
        };
        for row in 0..actions.len() {
            if actions.is_valid(row) && keys.is_valid(row) {
                out.push(json_value(values, row));
            }
        }
    }
    Ok(out)
}

/// A value as JSON; nulls inside of structs are left out.
#[must_use]
pub fn json_value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        Arrow::Utf8View => Value::from(array.as_string_view().value(row)),
        Arrow::Utf8 => Value::from(array.as_string::<i32>().value(row)),
        Arrow::Int32 => Value::from(array.as_primitive::<Int32Type>().value(row)),
        Arrow::Int64 => Value::from(array.as_primitive::<Int64Type>().value(row)),
        Arrow::Boolean => Value::from(array.as_boolean().value(row)),
        Arrow::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|n| json_value(&items, n)).collect()
        }
        Arrow::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let mut out = Map::new();
            for n in 0..entries.len() {
                if let Value::String(key) = json_value(keys, n) {
                    out.insert(key, json_value(values, n));
                }
            }
            Value::Object(out)
        }
        Arrow::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut out = Map::new();
            for (field, column) in fields.iter().zip(columns) {
                let value = json_value(column, row);
                if !value.is_null() {
                    out.insert(field.name().clone(), value);
                }
            }
            Value::Object(out)
        }
        // Columns that are converted to JSON have no other type.
        _ => Value::Null,
    }
}
