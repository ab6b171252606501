//! Writing the checkpoint of a version: the choice of its form, the streams of its actions, and its
//! files.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray, RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::check::check;
use super::hint::{self, CheckpointInfo};
use super::parts::{part_of_non_file_actions, parts_of};
use super::reuse::{self, FileBatchIterator, SidecarReuse};
use super::rows::{BATCH_ROWS, CheckpointFileKind, CheckpointLayout, repeats};
use crate::error::{CallOption, Error, Result, ResultExt};
use crate::exec::now_ms;
use crate::exec::{CancellationToken, ItemSource, ordered_prefetch, parallelism, uuid};
use crate::log::{CheckpointInstance, CheckpointKind};
use crate::parse::checkpoint::{FileActionKind, json_value};
use crate::parse::{FileBatch, StatsColumn};
use crate::pq::{EncodedRowGroup, ParquetSink, RowGroupEncoderFactory, SinkCodec};
use crate::protocol::log_path::{self, SIDECAR_DIR};
use crate::protocol::properties;
use crate::snapshot::Snapshot;
use crate::store::{ObjectRole, Store, StoreObject, make};

/// The maximum number of rows in a row group.
const GROUP_ROWS: usize = 64 * 1024;
/// The maximum size of the strings in a row group.
const GROUP_BYTES: u64 = 24 << 20;
/// The number of file actions in a sidecar, unless the caller sets another one.
const SIDECAR_ROWS: u64 = 100_000;
/// The maximum number of parts of a checkpoint: each has an open file while all are written.
const MOST_PARTS: u32 = 1000;

/// The specification of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointSpec {
    /// V2 if the table's `delta.checkpointPolicy` requires it and its protocol allows it, else V1.
    #[default]
    Auto,
    /// V1, which every reader supports.
    V1,
    /// V2; requires the table feature `v2Checkpoint`.
    V2,
}

/// Options of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointOptions {
    /// Its specification.
    pub form: CheckpointSpec,
    /// The number of files of a V1 checkpoint; more than one only where V2 is not allowed.
    pub parts: u32,
    /// Whether a V2 manifest is JSON, as delta-spark writes it, or Parquet.
    pub json: bool,
    /// Whether the file actions of a V2 checkpoint are in sidecars, or all in the manifest.
    pub sidecars: bool,
    /// Whether a V2 checkpoint has the file name of a V1 one, so that readers without V2 support
    /// find it and report the feature that they lack.
    pub classic_name: bool,
    /// The approximate number of file actions in a sidecar.
    pub sidecar_rows: u64,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self {
            form: CheckpointSpec::Auto,
            parts: 1,
            json: true,
            sidecars: true,
            classic_name: false,
            sidecar_rows: SIDECAR_ROWS,
        }
    }
}

/// Writes the checkpoint of a snapshot's version, then `_last_checkpoint`.
///
/// # Errors
/// [`Error::Unsupported`] for a table that this release cannot write, or a form that its protocol
/// does not allow; [`Error::Invalid`] for a version that is not published; [`Error::Storage`].
pub fn write(
    snapshot: &Snapshot,
    options: &CheckpointOptions,
    cancel: &CancellationToken,
) -> Result<CheckpointInfo> {
    check(snapshot)?;
    let is_v2 = is_v2(snapshot, options)?;
    check_published(snapshot)?;
    let task = CheckpointWriter {
        snapshot,
        store: snapshot.stores().root(),
        version: snapshot.version(),
        tombstone_cutoff_ms: tombstone_cutoff_ms(snapshot),
        cancel,
    };
    let (mut info, hint, checkpoint) = if is_v2 {
        task.v2(options)?
    } else {
        task.v1(options.parts)?
    };
    info.is_last = hint::write(snapshot, &hint)?;
    snapshot.use_checkpoint(checkpoint);
    Ok(info)
}

/// Tombstones that are older have expired. None has if the retention cannot be read: a vacuum
/// deletes files that no tombstone protects.
fn tombstone_cutoff_ms(snapshot: &Snapshot) -> i64 {
    properties::retention_ms(
        &snapshot.metadata().configuration,
        "delta.deletedFileRetentionDuration",
    )
    .map_or(i64::MIN, |retention| now_ms().saturating_sub(retention))
}

fn is_v2(snapshot: &Snapshot, options: &CheckpointOptions) -> Result<bool> {
    let has_v2 = snapshot.protocol().has_writer_feature("v2Checkpoint");
    let is_v2 = match options.form {
        CheckpointSpec::V2 if !has_v2 => {
            return Err(Error::unsupported_feature(
                "v2Checkpoint",
                "a V2 checkpoint needs the table feature `v2Checkpoint`, which this table does not have",
            ));
        }
        CheckpointSpec::V2 => true,
        CheckpointSpec::V1 => false,
        CheckpointSpec::Auto => {
            has_v2
                && snapshot
                    .metadata()
                    .configuration
                    .get("delta.checkpointPolicy")
                    .is_some_and(|policy| policy.eq_ignore_ascii_case("v2"))
        }
    };
    if options.parts > 1 && has_v2 {
        return Err(Error::invalid(format!(
            "a table with the feature `v2Checkpoint` must not have checkpoints in several parts; use {} with sidecars",
            CallOption::FormV2
        )));
    }
    if options.parts == 0 || options.parts > MOST_PARTS {
        return Err(Error::invalid(format!(
            "{} must be from 1 to {MOST_PARTS}, not {}",
            CallOption::Parts,
            options.parts
        )));
    }
    if options.sidecar_rows == 0 {
        return Err(Error::invalid(format!(
            "{} must be positive",
            CallOption::SidecarRows
        )));
    }
    if !is_v2 && options.classic_name {
        return Err(Error::invalid(format!(
            "{} is for V2 checkpoints; those of V1 have that name",
            CallOption::ClassicName
        )));
    }
    Ok(is_v2)
}

/// Checks that the snapshot's commit is published and still the one that was read, as a checkpoint
/// of it requires.
fn check_published(snapshot: &Snapshot) -> Result<()> {
    let version = snapshot.version();
    if snapshot.log().is_authority() {
        return snapshot.check_in_log();
    }
    match snapshot.stores().root().head(&log_path::commit(version)) {
        Ok(_) => Ok(()),
        // The commit may have been cleaned up if a checkpoint holds its version.
        Err(error)
            if error.is_not_found()
                && snapshot
                    .segment()
                    .checkpoint
                    .as_ref()
                    .is_some_and(|c| c.version == version) =>
        {
            Ok(())
        }
        Err(error) if error.is_not_found() => Err(Error::invalid(format!(
            "version {version} is not published: `{}` is not there; publish it before its checkpoint",
            log_path::commit(version)
        ))),
        Err(error) => Err(error),
    }
}

/// The input of a job that makes a row group.
enum CheckpointBatch {
    NonFile(Vec<Value>),
    Adds(FileBatch),
    Removes(FileBatch),
}

impl CheckpointBatch {
    fn rows(&self) -> usize {
        match self {
            Self::NonFile(actions) => actions.len(),
            Self::Adds(files) | Self::Removes(files) => files.len(),
        }
    }

    /// The batch in slices of few rows.
    fn slices(self) -> Vec<Self> {
        let cut = |files: &FileBatch| {
            (0..files.len())
                .step_by(BATCH_ROWS)
                .map(|start| files.slice(start, BATCH_ROWS))
                .collect::<Vec<_>>()
        };
        match self {
            Self::NonFile(_) => vec![self],
            Self::Adds(files) => cut(&files).into_iter().map(Self::Adds).collect(),
            Self::Removes(files) => cut(&files).into_iter().map(Self::Removes).collect(),
        }
    }

    /// The approximate size of its strings.
    fn bytes(&self) -> u64 {
        // The lowest quarter of a view is its length.
        #[allow(clippy::cast_possible_truncation)]
        let text = |array: &arrow_array::StringViewArray| {
            array
                .views()
                .iter()
                .map(|view| u64::from(*view as u32))
                .sum::<u64>()
        };
        match self {
            Self::NonFile(_) => 0,
            Self::Adds(files) | Self::Removes(files) => {
                text(&files.path)
                    + match &files.stats {
                        Some(StatsColumn::Json(stats) | StatsColumn::EscapedJson(stats)) => {
                            text(stats)
                        }
                        Some(StatsColumn::Parsed(stats)) => stats.get_buffer_memory_size() as u64,
                        None => 0,
                    }
            }
        }
    }
}

/// A row group, or one for each part, with the counts of its actions.
struct EncodedActions {
    groups: Vec<(u32, EncodedRowGroup)>,
    adds: u64,
    removes: u64,
    rows: u64,
}

/// Sums over the encoded actions.
#[derive(Default)]
struct ActionCounts {
    adds: u64,
    removes: u64,
    rows: u64,
    bytes: u64,
}

impl ActionCounts {
    fn add(&mut self, encoded: &EncodedActions) {
        self.adds += encoded.adds;
        self.removes += encoded.removes;
        self.rows += encoded.rows;
    }
}

/// Encodes row groups.
struct CheckpointEncoder {
    layout: CheckpointLayout,
    encoder: RowGroupEncoderFactory,
    parts: u32,
}

impl CheckpointEncoder {
    fn new(layout: CheckpointLayout, parts: u32) -> Result<Arc<Self>> {
        let encoder =
            RowGroupEncoderFactory::new(Arc::clone(&layout.schema), SinkCodec::Snappy, repeats)?;
        Ok(Arc::new(Self {
            layout,
            encoder,
            parts,
        }))
    }

    fn batch(&self, piece: &CheckpointBatch) -> Result<RecordBatch> {
        match piece {
            CheckpointBatch::NonFile(actions) => self.layout.singles(actions),
            CheckpointBatch::Adds(files) => self.layout.adds(files),
            CheckpointBatch::Removes(files) => self.layout.removes(files),
        }
    }

    /// Encodes batches; for a single file slice by slice: each slice is dropped before the next one
    /// is converted.
    fn encode(
        &self,
        pieces: impl Iterator<Item = Result<CheckpointBatch>>,
    ) -> Result<EncodedActions> {
        let mut out = EncodedActions {
            groups: Vec::new(),
            adds: 0,
            removes: 0,
            rows: 0,
        };
        let mut only = self.encoder.row_group_encoder()?;
        let mut batches: Vec<Vec<RecordBatch>> = (0..self.parts).map(|_| Vec::new()).collect();
        for piece in pieces {
            let piece = piece?;
            let rows = piece.rows() as u64;
            out.rows += rows;
            match &piece {
                CheckpointBatch::Adds(_) => out.adds += rows,
                CheckpointBatch::Removes(_) => out.removes += rows,
                CheckpointBatch::NonFile(_) => {}
            }
            if self.parts == 1 {
                piece
                    .slices()
                    .iter()
                    .try_for_each(|slice| only.write(&self.batch(slice)?))?;
                continue;
            }
            let batch = self.batch(&piece)?;
            let part_of: UInt32Array = match &piece {
                CheckpointBatch::NonFile(actions) => {
                    vec![part_of_non_file_actions(self.parts); actions.len()].into()
                }
                CheckpointBatch::Adds(files) | CheckpointBatch::Removes(files) => {
                    parts_of(&files.path, self.parts)
                }
            };
            for (part, batches) in (0..).zip(&mut batches) {
                let rows: UInt32Array = (0..)
                    .zip(part_of.values())
                    .filter(|(_, of)| **of == part)
                    .map(|(row, _)| row)
                    .collect();
                if !rows.is_empty() {
                    batches.push(take_record_batch(&batch, &rows)?);
                }
            }
        }
        if self.parts == 1 {
            out.groups.push((0, only.close()?));
            return Ok(out);
        }
        for (part, batches) in (0..).zip(&batches) {
            if !batches.is_empty() {
                out.groups.push((part, self.encoder.encode(batches)?));
            }
        }
        Ok(out)
    }
}

type CheckpointBatches = Box<dyn Iterator<Item = Result<CheckpointBatch>> + Send>;

struct CheckpointWriter<'a> {
    snapshot: &'a Snapshot,
    store: &'a Arc<dyn Store>,
    version: i64,
    /// Tombstones up to this time have expired.
    tombstone_cutoff_ms: i64,
    cancel: &'a CancellationToken,
}

impl CheckpointWriter<'_> {
    /// The non-file actions.
    fn non_file_actions(&self) -> Result<Vec<Value>> {
        let value = |value: serde_json::Result<Value>| {
            value.map_err(|e| Error::internal(format!("an action is not JSON: {e}")))
        };
        let mut protocol = self.snapshot.protocol().clone();
        // A list is present exactly where the protocol versions require one.
        let list = |wanted: bool, list: Option<Vec<String>>| {
            if wanted {
                Some(list.unwrap_or_default())
            } else {
                None
            }
        };
        protocol.reader_features = list(protocol.min_reader_version >= 3, protocol.reader_features);
        protocol.writer_features = list(protocol.min_writer_version >= 7, protocol.writer_features);
        let sets = self.snapshot.non_file_actions()?;
        let mut out = vec![
            json!({"protocol": value(serde_json::to_value(protocol))?}),
            json!({"metaData": value(serde_json::to_value(self.snapshot.metadata()))?}),
        ];
        for txn in sets.transactions.values() {
            out.push(json!({"txn": value(serde_json::to_value(txn))?}));
        }
        for domain in sets.domains.values() {
            out.push(json!({"domainMetadata": value(serde_json::to_value(domain))?}));
        }
        Ok(out)
    }

    /// The version's actions: `singles`, tombstones, live files; without those of reused sidecars.
    fn pieces(
        &self,
        layout: &CheckpointLayout,
        singles: Vec<Value>,
        reuse: Option<&Arc<SidecarReuse>>,
    ) -> CheckpointBatches {
        let stream = |kind: FileActionKind| {
            let (snapshot, cancel, layout, reuse) = (
                self.snapshot.clone(),
                self.cancel.clone(),
                layout.clone(),
                reuse.cloned(),
            );
            let open = move || -> Result<FileBatchIterator> {
                match (&reuse, kind) {
                    (Some(reuse), _) => reuse.files(&snapshot, kind, &layout, &cancel),
                    (None, FileActionKind::Adds) => Ok(Box::new(snapshot.files(
                        kind,
                        layout.add_columns(),
                        &cancel,
                    )?)),
                    (None, FileActionKind::Removes) => Ok(Box::new(snapshot.files(
                        kind,
                        layout.remove_columns(),
                        &cancel,
                    )?)),
                }
            };
            // Opened lazily, after the previous stream has ended: each one holds its own keys.
            std::iter::once_with(open).flat_map(|opened| {
                opened.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
            })
        };
        let oldest = self.tombstone_cutoff_ms;
        let removes = stream(FileActionKind::Removes).map(move |files| {
            let files = files?;
            let kept: BooleanArray = match &files.time {
                Some(times) => times
                    .iter()
                    .map(|time| Some(time.is_some_and(|time| time > oldest)))
                    .collect(),
                None => BooleanArray::from(vec![false; files.len()]),
            };
            files.filter(&kept).map(CheckpointBatch::Removes)
        });
        let counted = self.cancel.clone();
        let adds = stream(FileActionKind::Adds).map(move |files| {
            let files = files?;
            counted.progress().advance(files.len() as u64);
            Ok(CheckpointBatch::Adds(files))
        });
        let all = std::iter::once(Ok(CheckpointBatch::NonFile(singles)))
            .chain(removes)
            .chain(adds);
        Box::new(all.filter(|piece| !matches!(piece, Ok(piece) if piece.rows() == 0)))
    }

    /// Row groups of `pieces`, in order. The first one is encoded as its pieces arrive, so that a
    /// process that writes the checkpoints of a growing table holds one slice of its files in
    /// memory instead of all; the following ones are collected and then encoded on all cores.
    fn encode_row_groups(
        &self,
        maker: &Arc<CheckpointEncoder>,
        pieces: CheckpointBatches,
    ) -> impl Iterator<Item = Result<EncodedActions>> + use<> {
        let (maker, cancel, mut pieces) = (
            Arc::clone(maker),
            self.cancel.clone(),
            RowGroupInput::new(pieces),
        );
        let first = pieces.begin_row_group().then(|| maker.encode(&mut pieces));
        let rest = std::iter::from_fn(move || {
            pieces
                .begin_row_group()
                .then(|| pieces.by_ref().collect::<Result<Vec<CheckpointBatch>>>())
        });
        let jobs = rest.map(move |group| {
            let maker = Arc::clone(&maker);
            Box::new(std::iter::once_with(move || {
                maker.encode(group?.into_iter().map(Ok))
            })) as ItemSource<EncodedActions>
        });
        let is_whole = !matches!(first, Some(Err(_)));
        first.into_iter().chain(
            is_whole
                .then(|| ordered_prefetch(jobs, parallelism() + 1, 1, &cancel))
                .into_iter()
                .flatten(),
        )
    }

    fn v1(&self, parts: u32) -> Result<(CheckpointInfo, Value, CheckpointInstance)> {
        let layout = CheckpointLayout::new(self.snapshot, CheckpointFileKind::V1);
        let maker = CheckpointEncoder::new(layout, parts)?;
        let files: Vec<String> = match parts {
            1 => vec![log_path::classic_checkpoint(self.version)],
            _ => (1..=parts)
                .map(|part| log_path::checkpoint_part(self.version, part, parts))
                .collect(),
        };
        let counts = self.write_parts(
            &maker,
            self.pieces(&maker.layout, self.non_file_actions()?, None),
            &files,
        )?;
        let parts = (parts > 1).then_some(parts);
        let info = self.info(files, parts, &counts);
        let mut hint = hint::hint_json(&info);
        hint::add_schema(&mut hint, &maker.layout.delta_schema);
        let (kind, size) = if parts.is_some() {
            (CheckpointKind::MultiPart, None)
        } else {
            (CheckpointKind::Classic, Some(info.size_in_bytes))
        };
        let checkpoint = self.checkpoint(&info, kind, size);
        Ok((info, hint, checkpoint))
    }

    /// The written checkpoint, as a listing would return it; `size` is that of a single file.
    fn checkpoint(
        &self,
        info: &CheckpointInfo,
        kind: CheckpointKind,
        size: Option<u64>,
    ) -> CheckpointInstance {
        let file = |path: &String| StoreObject {
            store: Arc::clone(self.store),
            path: path.clone(),
            size,
        };
        CheckpointInstance {
            version: self.version,
            kind,
            files: info.files.iter().map(file).collect(),
        }
    }

    fn info(
        &self,
        files: Vec<String>,
        parts: Option<u32>,
        counts: &ActionCounts,
    ) -> CheckpointInfo {
        CheckpointInfo {
            version: self.version,
            files,
            parts,
            num_add_files: counts.adds,
            num_remove_files: counts.removes,
            num_actions: counts.rows,
            size_in_bytes: counts.bytes,
            sidecars: Vec::new(),
            is_last: false,
        }
    }

    /// Writes actions into files, one for each part.
    fn write_parts(
        &self,
        maker: &Arc<CheckpointEncoder>,
        pieces: CheckpointBatches,
        files: &[String],
    ) -> Result<ActionCounts> {
        let open = |file: &String| {
            ParquetSink::new(
                &maker.encoder,
                self.store.upload(file, ObjectRole::Derived)?,
            )
            .at_file(file)
        };
        let mut sinks = files
            .iter()
            .map(open)
            .collect::<Result<Vec<ParquetSink>>>()?;
        let mut counts = ActionCounts::default();
        for encoded in self.encode_row_groups(maker, pieces) {
            let encoded = encoded?;
            counts.add(&encoded);
            for (part, group) in encoded.groups {
                let sink = usize::try_from(part)
                    .ok()
                    .and_then(|part| sinks.get_mut(part))
                    .ok_or_else(|| Error::internal("a part without a file"))?;
                sink.append(group)?;
            }
        }
        for sink in sinks {
            counts.bytes += sink.finish()?;
        }
        Ok(counts)
    }

    fn v2(
        &self,
        options: &CheckpointOptions,
    ) -> Result<(CheckpointInfo, Value, CheckpointInstance)> {
        let json = options.json && !options.classic_name;
        let path = if options.classic_name {
            log_path::classic_checkpoint(self.version)
        } else {
            log_path::uuid_checkpoint(self.version, &uuid(), json)
        };
        let mut singles = self.non_file_actions()?;
        let manifest = CheckpointLayout::new(self.snapshot, CheckpointFileKind::V2);
        let (mut counts, mut sidecars, mut tags) = (ActionCounts::default(), Vec::new(), json!({}));
        if options.sidecars {
            let maker = CheckpointEncoder::new(
                CheckpointLayout::new(self.snapshot, CheckpointFileKind::Sidecar),
                1,
            )?;
            (counts, sidecars) = self.sidecars(&maker, options.sidecar_rows)?;
            tags = json!({
                "sidecarNumActions": counts.rows.to_string(),
                "sidecarSizeInBytes": counts.bytes.to_string(),
                "numOfAddFiles": counts.adds.to_string(),
            });
            if let Some(schema) = hint::small_schema(&maker.layout.delta_schema) {
                set(&mut tags, "sidecarFileSchema", schema.to_string().into());
            }
        }
        let metadata = json!({"checkpointMetadata": {"version": self.version, "tags": tags}});
        let mut non_file = singles.clone();
        non_file.push(metadata.clone());
        singles.insert(0, metadata);
        singles.extend(sidecars.iter().map(|sidecar| json!({"sidecar": sidecar})));
        let pieces: CheckpointBatches = if options.sidecars {
            Box::new(std::iter::once(Ok(CheckpointBatch::NonFile(singles))))
        } else {
            self.pieces(&manifest, singles, None)
        };
        let in_sidecars = counts.bytes;
        let maker = CheckpointEncoder::new(manifest, 1)?;
        let top = if json {
            self.write_json_manifest(&maker, pieces, &path)?
        } else {
            self.write_parts(&maker, pieces, std::slice::from_ref(&path))?
        };
        counts.adds += top.adds;
        counts.removes += top.removes;
        counts.rows += top.rows;
        counts.bytes += top.bytes;
        let mut info = self.info(vec![path], None, &counts);
        info.sidecars = sidecars;
        let mut hint = hint::hint_json(&info);
        if !options.classic_name {
            hint::add_v2(&mut hint, &info, counts.bytes - in_sidecars, non_file);
        }
        if !json {
            hint::add_schema(&mut hint, &maker.layout.delta_schema);
        }
        let kind = match (options.classic_name, json) {
            (true, _) => CheckpointKind::Classic,
            (false, true) => CheckpointKind::UuidJson,
            (false, false) => CheckpointKind::UuidParquet,
        };
        let checkpoint = self.checkpoint(&info, kind, Some(top.bytes));
        Ok((info, hint, checkpoint))
    }

    /// Writes the version's file actions into sidecars; returns the actions that reference them.
    fn sidecars(
        &self,
        maker: &Arc<CheckpointEncoder>,
        most_rows: u64,
    ) -> Result<(ActionCounts, Vec<Value>)> {
        let (mut counts, mut out) = (ActionCounts::default(), Vec::new());
        let mut open: Option<(String, ParquetSink, u64)> = None;
        let mut finish = |(name, sink, _): (String, ParquetSink, u64),
                          counts: &mut ActionCounts|
         -> Result<()> {
            let size = sink.finish()?;
            counts.bytes += size;
            out.push(json!({"path": name, "sizeInBytes": size, "modificationTime": now_ms(), "tags": {}}));
            Ok(())
        };
        // Smaller ones are merged with new actions, so that their number does not grow with the
        // number of checkpoints.
        let reuse = reuse::find_reusable_sidecars(
            self.snapshot,
            &maker.encoder,
            most_rows.div_ceil(2),
            self.tombstone_cutoff_ms,
            self.cancel,
        )
        .map(Arc::new);
        for encoded in self.encode_row_groups(
            maker,
            self.pieces(&maker.layout, Vec::new(), reuse.as_ref()),
        ) {
            let encoded = encoded?;
            counts.add(&encoded);
            let (name, mut sink, rows) = match open.take() {
                Some(open) => open,
                None => {
                    let name = format!("{}.parquet", uuid());
                    let path = format!("{SIDECAR_DIR}/{name}");
                    (
                        name,
                        ParquetSink::new(
                            &maker.encoder,
                            self.store.upload(&path, ObjectRole::Derived)?,
                        )
                        .at_file(&path)?,
                        0,
                    )
                }
            };
            for (_, group) in encoded.groups {
                sink.append(group)?;
            }
            let rows = rows + encoded.rows;
            if rows >= most_rows {
                finish((name, sink, rows), &mut counts)?;
            } else {
                open = Some((name, sink, rows));
            }
        }
        if let Some(open) = open {
            finish(open, &mut counts)?;
        }
        if let Some(reuse) = reuse {
            counts.adds += reuse.adds;
            counts.removes += reuse.removes;
            counts.rows += reuse.adds + reuse.removes;
            counts.bytes += reuse.bytes;
            for sidecar in &reuse.reused_sidecars {
                out.push(json!({
                    "path": sidecar.path,
                    "sizeInBytes": sidecar.size_in_bytes,
                    "modificationTime": sidecar.modification_time.unwrap_or_else(now_ms),
                    "tags": {},
                }));
            }
        }
        Ok((counts, out))
    }

    /// Writes actions as JSON lines.
    fn write_json_manifest(
        &self,
        maker: &CheckpointEncoder,
        pieces: CheckpointBatches,
        path: &str,
    ) -> Result<ActionCounts> {
        let mut counts = ActionCounts::default();
        let mut upload = self.store.upload(path, ObjectRole::Derived)?;
        for piece in pieces {
            let piece = piece?;
            let mut text = String::new();
            match &piece {
                CheckpointBatch::NonFile(actions) => {
                    for action in actions {
                        push_json_line(action, &mut text);
                    }
                }
                CheckpointBatch::Adds(files) => {
                    counts.adds += files.len() as u64;
                    push_file_lines("add", &maker.layout.adds(files)?, &mut text);
                }
                CheckpointBatch::Removes(files) => {
                    counts.removes += files.len() as u64;
                    push_file_lines("remove", &maker.layout.removes(files)?, &mut text);
                }
            }
            counts.rows += piece.rows() as u64;
            counts.bytes += text.len() as u64;
            upload.write(text.as_bytes())?;
        }
        upload.finish().wait()?;
        Ok(counts)
    }
}

fn push_json_line(action: &Value, out: &mut String) {
    out.push_str(&action.to_string());
    out.push('\n');
}

fn push_file_lines(name: &str, batch: &RecordBatch, out: &mut String) {
    let Some(actions) = batch.column_by_name(name) else {
        return;
    };
    for row in 0..actions.len() {
        let mut action = json_value(actions, row);
        if let Some(action) = action.as_object_mut() {
            // Values that JSON has as strings are not written a second time as structs.
            action.retain(|name, _| !name.ends_with("_parsed"));
            let stats = actions
                .as_struct()
                .column_by_name("stats_parsed")
                .filter(|_| !action.contains_key("stats"));
            if let Some(parsed) = stats.filter(|parsed| parsed.is_valid(row)) {
                action.insert(
                    "stats".to_owned(),
                    super::stats::row_json(parsed.as_struct(), row).into(),
                );
            }
        }
        push_json_line(&json!({ name: action }), out);
    }
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

/// The pieces of a stream, as many as make a row group after each
/// [`RowGroupInput::begin_row_group`].
struct RowGroupInput {
    pieces: CheckpointBatches,
    /// The first piece of the next group.
    lookahead: Option<Result<CheckpointBatch>>,
    rows: usize,
    bytes: u64,
}

impl RowGroupInput {
    fn new(pieces: CheckpointBatches) -> Self {
        Self {
            pieces,
            lookahead: None,
            rows: 0,
            bytes: 0,
        }
    }

    /// Begins the next group; false at the end of the stream.
    fn begin_row_group(&mut self) -> bool {
        (self.rows, self.bytes) = (0, 0);
        self.lookahead = self.lookahead.take().or_else(|| self.pieces.next());
        self.lookahead.is_some()
    }
}

impl Iterator for RowGroupInput {
    type Item = Result<CheckpointBatch>;

    fn next(&mut self) -> Option<Result<CheckpointBatch>> {
        let piece = self.lookahead.take().or_else(|| self.pieces.next())?;
        let (rows, bytes) = piece
            .as_ref()
            .map_or((0, 0), |piece| (piece.rows(), piece.bytes()));
        let is_full =
            self.rows > 0 && (self.rows + rows > GROUP_ROWS || self.bytes + bytes > GROUP_BYTES);
        if is_full {
            self.lookahead = Some(piece);
            return None;
        }
        (self.rows, self.bytes) = (self.rows + rows, self.bytes + bytes);
        Some(piece)
    }
}

/// Copies the checkpoint of `version`, if it is a V2 one named by UUID, to the file name of a V1
/// one if there is none: where the first commit was deleted, readers without V2 support find it and
/// report which feature they lack.
///
/// # Errors
/// As [`write`].
pub(super) fn classic_copy(
    snapshot: &Snapshot,
    version: i64,
    cancel: &CancellationToken,
) -> Result<()> {
    let listing = snapshot.log().list(version)?;
    let all: Vec<_> = listing
        .checkpoints
        .iter()
        .filter(|c| c.version == version)
        .collect();
    let is_classic = |c: &&CheckpointInstance| {
        matches!(c.kind, CheckpointKind::Classic | CheckpointKind::MultiPart)
    };
    let Some(file) = all
        .first()
        .and_then(|c| c.files.first())
        .filter(|_| !all.iter().any(is_classic))
    else {
        return Ok(());
    };
    let (bytes, _) = file.store.get(&file.path).wait()?;
    let (store, path) = (
        snapshot.stores().root(),
        log_path::classic_checkpoint(version),
    );
    if !file.path.ends_with(".json") {
        return make(store.as_ref(), &path, &bytes).map(|_| ());
    }
    let parse = |line: &[u8]| {
        serde_json::from_slice::<Value>(line)
            .map_err(|e| Error::corrupt(format!("not a JSON action: {e}")).at_file(&file.path))
    };
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty());
    let actions = lines.map(parse).collect::<Result<Vec<Value>>>()?;
    if actions
        .iter()
        .any(|action| action.get("add").is_some() || action.get("remove").is_some())
    {
        let options = CheckpointOptions {
            form: CheckpointSpec::V2,
            classic_name: true,
            sidecars: false,
            ..CheckpointOptions::default()
        };
        return write(&snapshot.at(Some(version))?, &options, cancel).map(|_| ());
    }
    let maker = CheckpointEncoder::new(CheckpointLayout::new(snapshot, CheckpointFileKind::V2), 1)?;
    let group = maker.encoder.encode(&[maker.layout.singles(&actions)?])?;
    let mut sink = ParquetSink::new(&maker.encoder, store.upload(&path, ObjectRole::Derived)?)?;
    sink.append(group)?;
    sink.finish().map(|_| ())
}

/// Whether a checkpoint is due after the commit of a snapshot's version: at every
/// `delta.checkpointInterval`th version.
///
/// The default is every tenth version. With the default, no checkpoint is due as long as the
/// commits since the last checkpoint have less than a twentieth of its size and are fewer than a
/// hundred: reading them costs less than writing the checkpoint again.
///
/// # Errors
/// [`Error::Storage`].
pub fn is_due(snapshot: &Snapshot) -> Result<bool> {
    const INTERVAL: i64 = 10;
    const MOST_COMMITS: usize = 100;
    let version = snapshot.version();
    let interval = snapshot
        .metadata()
        .configuration
        .get("delta.checkpointInterval")
        .and_then(|text| text.trim().parse::<i64>().ok())
        .filter(|n| *n > 0);
    if version <= 0 || version % interval.unwrap_or(INTERVAL) != 0 {
        return Ok(false);
    }
    let segment = snapshot.segment();
    let Some(last) = segment.checkpoint.as_ref().filter(|_| interval.is_none()) else {
        return Ok(true);
    };
    let mut size: u64 = last.files.iter().map(|file| file.size.unwrap_or(0)).sum();
    if matches!(
        last.kind,
        CheckpointKind::UuidJson | CheckpointKind::UuidParquet
    ) {
        // The hint contains the total size of the files of a manifest.
        let hint = snapshot.log().hint();
        size = size.max(
            hint.filter(|hint| hint.version == last.version)
                .and_then(|hint| hint.size_in_bytes)
                .unwrap_or(0),
        );
    }
    let commits: u64 = segment
        .commits
        .iter()
        .map(|commit| commit.file.size.unwrap_or(0))
        .sum();
    Ok(segment.commits.len() >= MOST_COMMITS || commits.saturating_mul(20) >= size)
}
