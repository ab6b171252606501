//! Version checksums (`n.crc`), computed from all files of a version or from the previous version
//! and one commit.
//!
//! The incremental computation is used only where its result equals that of the full one. It is not
//! used for a commit that may add files again that are live already (statistics or row ids filled
//! in later), for removes without a file size, and for a checksum of another writer that lacks
//! fields that cannot be derived.
//!
//! The file size histogram has the protocol's name; `histogramOpt`, as older releases of
//! delta-spark call it, is read, too.
//!
//! Protocol: "Version Checksum File". Cost: reading one commit; or one pass over the version's
//! files.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::check::check;
use crate::error::{Error, Result, ResultExt};
use crate::exec::CancellationToken;
use crate::log::ChecksumFileContents;
use crate::parse::checkpoint::FileActionKind;
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::action::{Metadata, Protocol};
use crate::protocol::log_path;
use crate::snapshot::Snapshot;
use crate::store::make;

/// The maximum number of application transactions in a checksum, as in delta-spark.
const MOST_TRANSACTIONS: usize = 100;
/// The maximum size of a version checksum that is read, in bytes.
const LONGEST: u64 = 16 << 20;

/// The lower bounds of the bins of the file size histogram, in bytes: those of delta-spark.
const BINS: [i64; 95] = {
    const KB: i64 = 1 << 10;
    const MB: i64 = 1 << 20;
    const GB: i64 = 1 << 30;
    [
        0,
        8 * KB,
        16 * KB,
        32 * KB,
        64 * KB,
        128 * KB,
        256 * KB,
        512 * KB,
        MB,
        2 * MB,
        4 * MB,
        8 * MB,
        12 * MB,
        16 * MB,
        20 * MB,
        24 * MB,
        28 * MB,
        32 * MB,
        36 * MB,
        40 * MB,
        48 * MB,
        56 * MB,
        64 * MB,
        72 * MB,
        80 * MB,
        88 * MB,
        96 * MB,
        104 * MB,
        112 * MB,
        120 * MB,
        124 * MB,
        128 * MB,
        132 * MB,
        136 * MB,
        140 * MB,
        144 * MB,
        160 * MB,
        176 * MB,
        192 * MB,
        208 * MB,
        224 * MB,
        240 * MB,
        256 * MB,
        272 * MB,
        288 * MB,
        304 * MB,
        320 * MB,
        336 * MB,
        352 * MB,
        368 * MB,
        384 * MB,
        400 * MB,
        416 * MB,
        432 * MB,
        448 * MB,
        464 * MB,
        480 * MB,
        496 * MB,
        512 * MB,
        528 * MB,
        544 * MB,
        560 * MB,
        576 * MB,
        640 * MB,
        704 * MB,
        768 * MB,
        832 * MB,
        896 * MB,
        960 * MB,
        GB,
        1088 * MB,
        1152 * MB,
        1216 * MB,
        1280 * MB,
        1344 * MB,
        1408 * MB,
        1536 * MB,
        1664 * MB,
        1792 * MB,
        1920 * MB,
        2 * GB,
        2304 * MB,
        2560 * MB,
        2816 * MB,
        3 * GB,
        3328 * MB,
        3584 * MB,
        3840 * MB,
        4 * GB,
        8 * GB,
        16 * GB,
        32 * GB,
        64 * GB,
        128 * GB,
        256 * GB,
    ]
};

/// `fileSizeHistogram`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSizeHistogram {
    sorted_bin_boundaries: Vec<i64>,
    file_counts: Vec<i64>,
    total_bytes: Vec<i64>,
}

impl FileSizeHistogram {
    fn empty() -> Self {
        Self {
            sorted_bin_boundaries: BINS.to_vec(),
            file_counts: vec![0; BINS.len()],
            total_bytes: vec![0; BINS.len()],
        }
    }

    fn is_consistent(&self) -> bool {
        let bins = self.sorted_bin_boundaries.len();
        self.sorted_bin_boundaries.first() == Some(&0)
            && self.sorted_bin_boundaries.is_sorted()
            && self.file_counts.len() == bins
            && self.total_bytes.len() == bins
    }

    /// Adds `sign` to the bin of a file of this size.
    fn count(&mut self, size: i64, sign: i64) {
        let bin = self
            .sorted_bin_boundaries
            .partition_point(|start| *start <= size)
            .saturating_sub(1);
        if let (Some(count), Some(bytes)) =
            (self.file_counts.get_mut(bin), self.total_bytes.get_mut(bin))
        {
            *count += sign;
            *bytes += sign * size;
        }
    }
}

/// `deletedRecordCountsHistogramOpt`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletedRecordCountsHistogram {
    deleted_record_counts: Vec<i64>,
}

impl DeletedRecordCountsHistogram {
    const BINS: usize = 10;

    fn of_files(without_vectors: i64) -> Self {
        let mut counts = vec![0; Self::BINS];
        if let Some(first) = counts.first_mut() {
            *first = without_vectors;
        }
        Self {
            deleted_record_counts: counts,
        }
    }

    /// Adds `sign` to the bin of a file with this number of deleted rows.
    fn count(&mut self, deleted: i64, sign: i64) {
        let bin = match deleted {
            ..=0 => 0,
            1..=9 => 1,
            10..=99 => 2,
            100..=999 => 3,
            1000..=9999 => 4,
            10_000..=99_999 => 5,
            100_000..=999_999 => 6,
            1_000_000..=9_999_999 => 7,
            10_000_000..=2_147_483_646 => 8,
            _ => 9,
        };
        if let Some(count) = self.deleted_record_counts.get_mut(bin) {
            *count += sign;
        }
    }
}

/// A version checksum with every field that deltafast writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionChecksum {
    /// Identifier of the commit's transaction.
    #[serde(default)]
    pub txn_id: Option<String>,
    /// Number of metadata actions: one.
    pub num_metadata: i64,
    /// Number of protocol actions: one.
    pub num_protocol: i64,
    /// The sizes of the live files.
    #[serde(default, alias = "histogramOpt")]
    pub file_size_histogram: Option<FileSizeHistogram>,
    /// The numbers of rows of the live files that deletion vectors delete, if the table has the
    /// feature.
    #[serde(default)]
    pub deleted_record_counts_histogram_opt: Option<DeletedRecordCountsHistogram>,
    /// The fields that readers use.
    #[serde(flatten)]
    pub facts: ChecksumFileContents,
}

fn has_deletion_vectors(protocol: &Protocol) -> bool {
    protocol.has_reader_feature("deletionVectors")
}

/// Whether transactions expire. Expiry depends on the clock, so such transactions are in no
/// checksum.
fn expires(metadata: &Metadata) -> bool {
    metadata
        .configuration
        .contains_key("delta.setTransactionRetentionDuration")
}

impl VersionChecksum {
    /// Parses the file; `None` for a damaged one.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let parsed: Self = serde_json::from_slice(bytes).ok()?;
        let sound = parsed
            .file_size_histogram
            .as_ref()
            .is_none_or(FileSizeHistogram::is_consistent)
            && parsed
                .deleted_record_counts_histogram_opt
                .as_ref()
                .is_none_or(|h| {
                    h.deleted_record_counts.len() == DeletedRecordCountsHistogram::BINS
                });
        sound.then_some(parsed)
    }

    /// The content of the file.
    ///
    /// # Errors
    /// [`Error::Internal`].
    pub fn to_json(&self) -> Result<String> {
        let mut json = serde_json::to_value(self)
            .map_err(|e| Error::internal(format!("a checksum is not JSON: {e}")))?;
        if let Some(json) = json.as_object_mut() {
            json.retain(|_, value| !value.is_null());
        }
        Ok(json.to_string())
    }

    /// Adds the files of a batch, multiplied by `sign`; false if the size of one is unknown.
    fn count(&mut self, files: &FileBatch, sign: i64) -> bool {
        let facts = &mut self.facts;
        for row in 0..files.len() {
            let Some(size) = files.size.iter().nth(row).flatten() else {
                return false;
            };
            facts.table_size_bytes += sign * size;
            facts.num_files += sign;
            if let Some(histogram) = &mut self.file_size_histogram {
                histogram.count(size, sign);
            }
            let deleted = files
                .dv
                .as_ref()
                .filter(|dv| dv.present.value(row))
                .map(|dv| dv.cardinality.value(row));
            if let (Some(count), Some(_)) = (&mut facts.num_deletion_vectors_opt, deleted) {
                *count += sign;
            }
            if let (Some(count), Some(deleted)) = (&mut facts.num_deleted_records_opt, deleted) {
                *count += sign * deleted;
            }
            if let Some(histogram) = &mut self.deleted_record_counts_histogram_opt {
                histogram.count(deleted.unwrap_or(0), sign);
            }
        }
        true
    }

    /// Starts the counts of rows deleted by deletion vectors: no file has had one before.
    fn count_deletion_vectors(&mut self) {
        self.facts.num_deletion_vectors_opt = Some(0);
        self.facts.num_deleted_records_opt = Some(0);
        self.deleted_record_counts_histogram_opt =
            Some(DeletedRecordCountsHistogram::of_files(self.facts.num_files));
    }
}

/// The fields of `commitInfo` that a checksum contains.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChecksumCommitInfo {
    #[serde(default)]
    txn_id: Option<String>,
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    in_commit_timestamp: Option<i64>,
}

/// Computes the checksum of a version from all of its files.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::NotFound`] name the file of the log.
pub fn compute(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<VersionChecksum> {
    let (protocol, metadata) = (snapshot.protocol().clone(), snapshot.metadata().clone());
    let sets = snapshot.non_file_actions()?;
    let in_commit_timestamp_opt = snapshot
        .in_commit_timestamps_since()
        .map(|_| snapshot.timestamp_ms())
        .transpose()?;
    let transactions = (!expires(&metadata) && sets.transactions.len() <= MOST_TRANSACTIONS)
        .then(|| sets.transactions.values().cloned().collect());
    let info = commit_info(snapshot)?;
    let mut out = VersionChecksum {
        txn_id: info.txn_id,
        num_metadata: 1,
        num_protocol: 1,
        file_size_histogram: Some(FileSizeHistogram::empty()),
        deleted_record_counts_histogram_opt: None,
        facts: ChecksumFileContents {
            table_size_bytes: 0,
            num_files: 0,
            metadata,
            protocol,
            num_deletion_vectors_opt: None,
            num_deleted_records_opt: None,
            in_commit_timestamp_opt,
            set_transactions: transactions,
            domain_metadata: Some(sets.domains.values().cloned().collect()),
        },
    };
    if has_deletion_vectors(&out.facts.protocol) {
        out.count_deletion_vectors();
    }
    for files in snapshot.files(
        FileActionKind::Adds,
        FileActionProjection::default(),
        cancel,
    )? {
        cancel.check()?;
        if !out.count(&files?, 1) {
            return Err(
                Error::corrupt("a live file does not say its size").at_version(snapshot.version())
            );
        }
    }
    Ok(out)
}

/// The `commitInfo` of a snapshot's own commit.
fn commit_info(snapshot: &Snapshot) -> Result<ChecksumCommitInfo> {
    let segment = snapshot.segment();
    let Some(commit) = &segment.last_commit else {
        return Ok(ChecksumCommitInfo::default());
    };
    let text = snapshot.commit_bytes(commit)?;
    let take = ActionSelection {
        info: true,
        ..ActionSelection::default()
    };
    let singles = commit::non_file_actions(&text, &take)
        .at_file(&commit.file.path)
        .at_version(commit.version)?;
    let info = singles.iter().find_map(|single| {
        if let NonFileAction::CommitInfo(info) = single {
            serde_json::from_str(info).ok()
        } else {
            None
        }
    });
    Ok(info.unwrap_or_default())
}

/// Computes the checksum of the next version from the previous checksum and the commit; `None` if
/// only [`compute`] gives the result.
///
/// # Errors
/// [`Error::Corrupt`] names the line.
pub fn next(previous: &VersionChecksum, commit: &Bytes) -> Result<Option<VersionChecksum>> {
    let take = ActionSelection {
        adds: Some(FileActionProjection {
            data_change: true,
            ..FileActionProjection::default()
        }),
        removes: Some(FileActionProjection::default()),
        protocol_and_metadata: true,
        transactions_and_domains: true,
        info: true,
        ..ActionSelection::default()
    };
    let parsed = commit::parse(commit, 0..commit.len(), &take, &[])?;
    let mut out = previous.clone();
    let mut info = ChecksumCommitInfo::default();
    let expired = expires(&previous.facts.metadata);
    for single in parsed.non_file_actions {
        match single {
            NonFileAction::Protocol(protocol) => out.facts.protocol = protocol,
            NonFileAction::Metadata(metadata) => out.facts.metadata = *metadata,
            NonFileAction::CommitInfo(json) => {
                info = serde_json::from_str(&json).unwrap_or_default();
            }
            NonFileAction::Txn(txn) => {
                if let Some(all) = &mut out.facts.set_transactions {
                    all.retain(|known| known.app_id != txn.app_id);
                    all.push(txn);
                }
            }
            NonFileAction::Domain(domain) => {
                if let Some(all) = &mut out.facts.domain_metadata {
                    all.retain(|known| known.domain != domain.domain);
                    if !domain.removed {
                        all.push(domain);
                    }
                }
            }
            NonFileAction::Sidecar(_) => {}
        }
    }
    // Adds of files that exist already, to fill in missing values, are not new files.
    let again = parsed.removes.is_empty()
        && parsed
            .adds
            .data_change
            .as_ref()
            .is_some_and(|flags| flags.false_count() > 0);
    let filled_in = info.operation.as_deref().is_some_and(|name| {
        matches!(
            name,
            "COMPUTE STATS" | "ROW TRACKING BACKFILL" | "Manual Update"
        )
    });
    if again || filled_in {
        return Ok(None);
    }
    if has_deletion_vectors(&out.facts.protocol) {
        if !has_deletion_vectors(&previous.facts.protocol) {
            out.count_deletion_vectors();
        }
    } else {
        out.facts.num_deletion_vectors_opt = None;
        out.facts.num_deleted_records_opt = None;
        out.deleted_record_counts_histogram_opt = None;
    }
    if !out.count(&parsed.adds, 1)
        || !out.count(&parsed.removes, -1)
        || out.facts.num_files < 0
        || out.facts.table_size_bytes < 0
    {
        return Ok(None);
    }
    if let Some(all) = &mut out.facts.set_transactions {
        all.sort_by(|a, b| a.app_id.cmp(&b.app_id));
    }
    if let Some(all) = &mut out.facts.domain_metadata {
        all.sort_by(|a, b| a.domain.cmp(&b.domain));
    }
    match (expired, expires(&out.facts.metadata)) {
        // Which transactions have expired is unknown.
        (true, false) => return Ok(None),
        (_, true) => out.facts.set_transactions = None,
        (false, false) => {
            out.facts.set_transactions = out
                .facts
                .set_transactions
                .filter(|all| all.len() <= MOST_TRANSACTIONS);
        }
    }
    let facts = &mut out.facts;
    let timed = facts.protocol.has_writer_feature("inCommitTimestamp")
        && facts.metadata.flag("delta.enableInCommitTimestamps");
    facts.in_commit_timestamp_opt = info.in_commit_timestamp.filter(|_| timed);
    out.txn_id = info.txn_id;
    Ok(Some(out))
}

/// Writes the checksum of a snapshot's version, computed from the previous one if available, else
/// from all files; returns false if there is a checksum already, which is kept.
///
/// # Errors
/// [`Error::Unsupported`] for a table that this release cannot write; [`Error::Corrupt`],
/// [`Error::NotFound`], [`Error::Storage`].
pub fn write(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<bool> {
    check(snapshot)?;
    match snapshot
        .stores()
        .root()
        .head(&log_path::checksum(snapshot.version()))
    {
        Ok(_) => return Ok(false),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    snapshot.check_in_log()?;
    write_after_commit(snapshot, cancel)
}

/// As [`write`], for a version that was just committed and therefore has no checksum yet.
///
/// # Errors
/// As [`write`].
pub fn write_after_commit(snapshot: &Snapshot, cancel: &CancellationToken) -> Result<bool> {
    check(snapshot)?;
    let (store, path) = (
        snapshot.stores().root(),
        log_path::checksum(snapshot.version()),
    );
    let checksum = match from_previous(snapshot)? {
        Some(checksum) => checksum,
        None => compute(snapshot, cancel)?,
    };
    let is_new = make(store.as_ref(), &path, &Bytes::from(checksum.to_json()?))?;
    if !is_new {
        // Another writer may have made the file; a directory of that name is an error.
        store.head(&path)?;
    }
    Ok(is_new)
}

fn from_previous(snapshot: &Snapshot) -> Result<Option<VersionChecksum>> {
    let segment = snapshot.segment();
    let Some(commit) = segment
        .last_commit
        .as_ref()
        .filter(|commit| commit.version > 0)
    else {
        return Ok(None);
    };
    let read = snapshot
        .stores()
        .root()
        .get_within(&log_path::checksum(commit.version - 1), LONGEST);
    let Some(previous) = read
        .ok()
        .and_then(|(bytes, _)| VersionChecksum::parse(&bytes))
    else {
        return Ok(None);
    };
    let text = snapshot.commit_bytes(commit)?;
    let next = next(&previous, &text)
        .at_file(&commit.file.path)
        .at_version(commit.version)?;
    // The snapshot's own protocol and metadata were read from the log, so a checksum that differs
    // was wrong before.
    Ok(next.filter(|next| {
        next.facts.protocol == *snapshot.protocol() && next.facts.metadata == *snapshot.metadata()
    }))
}
