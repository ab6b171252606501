//! The files of a version; the type guarantees their invariants.

use crate::store::StoreObject;

/// One commit, published or staged, or a compaction that replaces several.
#[derive(Debug, Clone)]
pub struct CommitFile {
    /// First version that the file holds.
    pub first: i64,
    /// Last version that the file holds; equal to `first` for a commit.
    pub version: i64,
    /// Its location.
    pub file: StoreObject,
    /// Time of its last change, milliseconds since the epoch; 0 where unknown.
    pub modified_ms: i64,
}

impl CommitFile {
    /// Whether it is a log compaction.
    #[must_use]
    pub fn is_compaction(&self) -> bool {
        self.first != self.version
    }
}

/// The form of a checkpoint. All of them except the multi-part one may follow the V2 spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckpointKind {
    /// One Parquet file named by version.
    Classic,
    /// A Parquet manifest named by UUID.
    UuidParquet,
    /// A JSON manifest named by UUID.
    UuidJson,
    /// Several Parquet files.
    MultiPart,
}

/// A complete checkpoint.
#[derive(Debug, Clone)]
pub struct CheckpointInstance {
    /// Its version.
    pub version: i64,
    /// Its form.
    pub kind: CheckpointKind,
    /// Its files: one, or all parts in order.
    pub files: Vec<StoreObject>,
}

/// The counts in `_last_checkpoint` of its checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckpointCounts {
    /// Number of live files in it.
    pub adds: Option<i64>,
    /// Number of actions in it.
    pub actions: Option<i64>,
}

impl CheckpointCounts {
    /// Whether a checkpoint with these numbers of live files and actions (if known) matches the
    /// counts. The number of actions is compared only if that of files is missing: writers disagree
    /// about its meaning for V2 checkpoints.
    #[must_use]
    pub fn agree(&self, adds: u64, actions: Option<u64>) -> bool {
        let same = |said: i64, found: u64| u64::try_from(said) == Ok(found);
        match (self.adds, self.actions, actions) {
            (Some(said), ..) => same(said, adds),
            (None, Some(said), Some(found)) => same(said, found),
            _ => true,
        }
    }
}

/// The hints that a segment must not use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Number of checkpoints to skip, from the newest.
    pub checkpoints: usize,
    /// Whether to skip compactions.
    pub compactions: bool,
}

/// The files of one version. Invariants: `commits` are ascending and without gaps, begin right
/// after the checkpoint (at 0 without one) and end at `version`; there is at least a checkpoint or
/// a commit.
#[derive(Debug, Clone)]
pub struct LogSegment {
    /// The version.
    pub version: i64,
    /// The checkpoint to start from.
    pub checkpoint: Option<CheckpointInstance>,
    /// Commits after it, one for each version.
    pub commits: Vec<CommitFile>,
    /// The same with compactions in place of the commits that they contain.
    pub replay: Vec<CommitFile>,
    /// Listed commits that the checkpoint contains: ascending and without gaps, right before the
    /// others. Readers that have the files of an older version continue from there.
    pub earlier: Vec<CommitFile>,
    /// The commit of `version` itself, also if the checkpoint contains it.
    pub last_commit: Option<CommitFile>,
    /// The version checksum of `version`.
    pub checksum: Option<StoreObject>,
    /// The hint's counts, if the hint is about this checkpoint.
    pub counts: Option<CheckpointCounts>,
    /// The hints that were skipped.
    pub skip: SegmentOptions,
}

/// The most commits before a checkpoint that are kept.
const MOST_EARLIER: usize = 128;

impl LogSegment {
    /// The same version, read from its own checkpoint.
    #[must_use]
    pub fn on_checkpoint(&self, checkpoint: CheckpointInstance) -> Self {
        let known = self.earlier.len() + self.commits.len();
        let earlier = self
            .known_commits()
            .skip(known.saturating_sub(MOST_EARLIER))
            .cloned()
            .collect();
        Self {
            version: self.version,
            checkpoint: Some(checkpoint),
            commits: Vec::new(),
            replay: Vec::new(),
            earlier,
            last_commit: self.last_commit.clone(),
            checksum: self.checksum.clone(),
            counts: None,
            skip: SegmentOptions::default(),
        }
    }

    /// All commits that are known, ascending and without gaps up to the version.
    pub fn known_commits(&self) -> impl Iterator<Item = &CommitFile> {
        self.earlier.iter().chain(&self.commits)
    }
}
