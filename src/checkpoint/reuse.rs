//! Sidecars of the last checkpoint that are still current: they are referenced again instead of
//! being rewritten.
//!
//! A sidecar is reused if no later commit contains one of its files, none of its tombstones has
//! expired, it has the columns that a new one would have, and it is large enough that small
//! sidecars do not accumulate. Only paths and deletion vectors are read to decide that. The
//! remaining actions of the other sidecars are written together with the actions of the commits.
//!
//! Protocol: "Sidecar Files". Cost: the key columns of all sidecars, all columns of those that
//! change.

use std::sync::Arc;

use arrow_array::BooleanArray;

use super::rows::CheckpointLayout;
use crate::error::Result;
use crate::exec::{CancellationToken, ItemSource, map_all, ordered_prefetch, parallelism};
use crate::log::LogSegment;
use crate::parse::checkpoint::{FileActionKind, SidecarReader};
use crate::parse::{FileActionProjection, FileBatch};
use crate::pq::RowGroupEncoderFactory;
use crate::protocol::action::Sidecar;
use crate::reconcile::{self, CommitCache, FileStreamRequest, SeenFileKeys};
use crate::snapshot::Snapshot;

/// Files of a version, without those of reused sidecars.
pub(super) type FileBatchIterator = Box<dyn Iterator<Item = Result<FileBatch>> + Send>;

/// Sidecars of the last checkpoint that can be reused.
pub(super) struct SidecarReuse {
    /// The reused sidecars.
    pub(super) reused_sidecars: Vec<Sidecar>,
    /// Their size in bytes.
    pub(super) bytes: u64,
    /// Live files in them.
    pub(super) adds: u64,
    /// Tombstones in them.
    pub(super) removes: u64,
    segment: LogSegment,
    other_sidecars: Vec<SidecarReader>,
    seen: Arc<SeenFileKeys>,
}

/// The content of a sidecar that can be reused.
struct SidecarCounts {
    adds: u64,
    removes: u64,
}

/// Finds sidecars that can be reused; `None` if there are none, or if an inconsistency is found:
/// the whole version is read then, which handles it.
pub(super) fn find_reusable_sidecars(
    snapshot: &Snapshot,
    encoder: &RowGroupEncoderFactory,
    least_rows: u64,
    oldest: i64,
    cancel: &CancellationToken,
) -> Option<SidecarReuse> {
    let segment = snapshot.segment();
    let checkpoint = segment.checkpoint.as_ref()?;
    let store = snapshot.stores().root();
    let sidecars = SidecarReader::open_all(checkpoint, store)
        .ok()
        .filter(|all| !all.is_empty())?;
    // The keys of the commits since then are those of the segment without its checkpoint.
    let newer = LogSegment {
        checkpoint: None,
        checksum: None,
        ..segment.as_ref().clone()
    };
    let mut stream = reconcile::files(
        &newer,
        &Arc::new(CommitCache::default()),
        store,
        request(
            FileActionKind::Adds,
            FileActionProjection::default(),
            cancel,
        ),
    )
    .ok()?;
    for batch in stream.by_ref() {
        batch.ok()?;
    }
    let seen = Arc::new(stream.into_seen());
    let (encoder, keys) = (encoder.clone(), Arc::clone(&seen));
    let looked_at = map_all(sidecars, move |sidecar| {
        let fits = sidecar.raw.num_rows() >= least_rows && encoder.has_schema_of(&sidecar.raw);
        let kept = if fits {
            count_if_unchanged(&sidecar, &keys, oldest)?
        } else {
            None
        };
        Ok((sidecar, kept))
    })
    .ok()?;
    cancel.check().ok()?;
    let mut out = SidecarReuse {
        reused_sidecars: Vec::new(),
        bytes: 0,
        adds: 0,
        removes: 0,
        segment: newer,
        other_sidecars: Vec::new(),
        seen,
    };
    for (sidecar, kept) in looked_at {
        match kept {
            Some(kept) => {
                out.adds += kept.adds;
                out.removes += kept.removes;
                out.bytes += sidecar.raw.size();
                out.reused_sidecars.push(sidecar.action);
            }
            None => out.other_sidecars.push(sidecar),
        }
    }
    (!out.reused_sidecars.is_empty()).then_some(out)
}

fn request(
    kind: FileActionKind,
    wanted: FileActionProjection,
    cancel: &CancellationToken,
) -> FileStreamRequest {
    FileStreamRequest {
        kind,
        wanted: Arc::new(wanted),
        cancel: cancel.clone(),
    }
}

/// Counts a sidecar's actions; `None` if one of them has changed.
fn count_if_unchanged(
    sidecar: &SidecarReader,
    seen: &SeenFileKeys,
    oldest: i64,
) -> Result<Option<SidecarCounts>> {
    let mut kept = SidecarCounts {
        adds: 0,
        removes: 0,
    };
    for kind in [FileActionKind::Adds, FileActionKind::Removes] {
        let wanted = Arc::new(FileActionProjection {
            time: kind == FileActionKind::Removes,
            ..FileActionProjection::default()
        });
        for batch in sidecar.files(kind, &wanted).into_iter().flatten() {
            let batch = batch?;
            for row in 0..batch.len() {
                if seen.contains(seen.key(&batch, row)?) {
                    return Ok(None);
                }
            }
            if let Some(times) = batch
                .time
                .as_ref()
                .filter(|_| kind == FileActionKind::Removes)
                && times
                    .iter()
                    .any(|time| time.is_none_or(|time| time <= oldest))
            {
                return Ok(None);
            }
            match kind {
                FileActionKind::Adds => kept.adds += batch.len() as u64,
                FileActionKind::Removes => kept.removes += batch.len() as u64,
            }
        }
    }
    Ok(Some(kept))
}

impl SidecarReuse {
    /// Live files or tombstones that are in none of the reused sidecars.
    pub(super) fn files(
        &self,
        snapshot: &Snapshot,
        kind: FileActionKind,
        layout: &CheckpointLayout,
        cancel: &CancellationToken,
    ) -> Result<FileBatchIterator> {
        let wanted = match kind {
            FileActionKind::Adds => layout.add_columns(),
            FileActionKind::Removes => layout.remove_columns(),
        };
        let shared = Arc::new(wanted.clone());
        let commits = reconcile::files(
            &self.segment,
            &Arc::new(CommitCache::default()),
            snapshot.stores().root(),
            request(kind, wanted, cancel),
        )?;
        let sources: Vec<ItemSource<FileBatch>> = self
            .other_sidecars
            .iter()
            .flat_map(|sidecar| sidecar.files(kind, &shared))
            .collect();
        let seen = Arc::clone(&self.seen);
        let unseen = sources.into_iter().map(move |source| {
            let seen = Arc::clone(&seen);
            Box::new(source.map(move |batch| {
                let batch = batch?;
                let keep = (0..batch.len())
                    .map(|row| seen.key(&batch, row).map(|key| !seen.contains(key)))
                    .collect::<Result<Vec<bool>>>()?;
                batch.filter(&BooleanArray::from(keep))
            })) as ItemSource<FileBatch>
        });
        Ok(Box::new(commits.chain(ordered_prefetch(
            unseen,
            parallelism() + 1,
            2,
            cancel,
        ))))
    }
}
