//! The file actions of a segment as a stream: first the commits one by one, newest first, then the
//! checkpoint in parallel.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::counts::{EndCheck, FileCounts, SharedCounts};
use crate::error::{Error, Result, ResultExt};
use crate::exec::{CancellationToken, ItemSource, OrderedPrefetch, ordered_prefetch, parallelism};
use crate::log::{CommitFile, LogSegment};
use crate::parse::checkpoint::{CheckpointReader, FileActionKind};
use crate::parse::commit::{self, ActionSelection, NonFileAction, ParsedActions};
use crate::parse::{FileActionProjection, FileBatch, json_lines, mask};
use crate::process::ProcessMutex;
use crate::protocol::commit_line::LONGEST_LINE;
use crate::reconcile::seen_keys::{FileActionState, SeenFileKeys};
use crate::store::{PendingResult, Store};

/// Commits larger than this are read and parsed in pieces.
const PIECE: u64 = 4 << 20;
/// No commit is larger than this: such a size is an error of the store and is refused instead of
/// dividing the commit into a huge number of pieces.
const IMPLAUSIBLE: u64 = 1 << 40;
/// Small commits are parsed together up to this total size.
const GROUP_BYTES: u64 = 1 << 20;
/// And up to this number, so that there are groups for every core.
const GROUP_COMMITS: usize = 256;
/// The number of batches that a piece of a checkpoint may be ahead of its consumer. Pieces are
/// returned in order: the number must be large enough that all cores can work on the next pieces
/// while the first one is decoded.
const AHEAD: usize = 16;

/// The contents of small commits, cached so that opening and listing read each of them once.
#[derive(Debug, Default)]
pub struct CommitCache {
    entries: ProcessMutex<(HashMap<i64, Bytes>, u64)>,
}

impl CommitCache {
    /// The maximum size of the cache in bytes.
    const LIMIT: u64 = 32 << 20;

    /// The content of a commit.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Storage`] name the file.
    pub fn get(&self, commit: &CommitFile) -> Result<Bytes> {
        self.start_read(commit)
            .or_else(|coming| self.finish_read(commit, coming))
    }

    /// The content of a commit if it is in the cache.
    #[must_use]
    pub fn cached(&self, version: i64) -> Option<Bytes> {
        self.lock().0.get(&version).cloned()
    }

    /// Drops the contents of the commits before `version`.
    pub fn evict_before(&self, version: i64) {
        let mut kept = self.lock();
        let (texts, bytes) = &mut *kept;
        texts.retain(|of, text| {
            let stays = *of >= version;
            if !stays {
                *bytes -= text.len() as u64;
            }
            stays
        });
    }

    /// The content, or the request that reads it.
    fn start_read(&self, commit: &CommitFile) -> std::result::Result<Bytes, PendingResult<Bytes>> {
        let kept = self
            .lock()
            .0
            .get(&commit.version)
            .filter(|_| !commit.is_compaction())
            .cloned();
        kept.ok_or_else(|| json_lines::start_read(&commit.file))
    }

    fn finish_read(&self, commit: &CommitFile, coming: PendingResult<Bytes>) -> Result<Bytes> {
        let bytes = coming.wait().at_version(commit.version)?;
        let mut kept = self.lock();
        if !commit.is_compaction() && kept.1 + bytes.len() as u64 <= Self::LIMIT {
            kept.1 += bytes.len() as u64;
            kept.0.insert(commit.version, bytes.clone());
        }
        Ok(bytes)
    }

    /// The contents of commits, several of which are requested at once.
    pub fn get_all(&self, commits: &[CommitFile]) -> impl Iterator<Item = Result<Bytes>> {
        /// The number of requests in progress for each group of commits.
        const AT_ONCE: usize = 16;
        commits.chunks(AT_ONCE).flat_map(|commits| {
            let coming: Vec<_> = commits
                .iter()
                .map(|commit| self.start_read(commit))
                .collect();
            commits
                .iter()
                .zip(coming)
                .map(|(commit, coming)| coming.or_else(|coming| self.finish_read(commit, coming)))
        })
    }

    /// Adds the content of a commit that is known without reading it.
    pub fn insert(&self, version: i64, text: &Bytes) {
        let mut kept = self.lock();
        if kept.1 + text.len() as u64 <= Self::LIMIT
            && kept.0.insert(version, text.clone()).is_none()
        {
            kept.1 += text.len() as u64;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (HashMap<i64, Bytes>, u64)> {
        self.entries.lock()
    }
}

/// The files of a segment to stream.
#[derive(Debug, Clone)]
pub struct FileStreamRequest {
    /// Live files or tombstones.
    pub kind: FileActionKind,
    /// Their columns to read.
    pub wanted: Arc<FileActionProjection>,
    /// Stops the work.
    pub cancel: CancellationToken,
}

/// One piece of the commits: the contents of several small ones, newest first, or a part of a large
/// one.
struct CommitChunk {
    text: Bytes,
    /// The offset of each commit in the text.
    starts: Vec<usize>,
    /// The commits in the same order.
    commits: Vec<(i64, String)>,
    aggregated: bool,
    /// The offset of the text in the file, for the line number of an error.
    offset: u64,
}

struct ParsedCommitChunk {
    parsed: ParsedActions,
    commits: Vec<(i64, String)>,
    aggregated: bool,
}

/// The live files, or tombstones, of a segment. Batches are never empty.
pub struct FileStream {
    commits: Option<OrderedPrefetch<ParsedCommitChunk>>,
    /// The approximate number of files that the commits may add.
    estimated_commit_files: u64,
    /// The maximum number of files in the checkpoint.
    max_checkpoint_files: u64,
    has_text_only: bool,
    seen: SeenFileKeys,
    checkpoint: Option<CheckpointReader>,
    checkpoint_batches: Option<OrderedPrefetch<FileBatch>>,
    buffered_batches: Option<std::vec::IntoIter<FileBatch>>,
    request: FileStreamRequest,
    counts: SharedCounts,
    at_end: Option<EndCheck>,
}

/// Streams a segment's files. The checkpoint's footers are read here, so that a damaged one is
/// found before the first batch.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::NotFound`] name the file.
pub fn files(
    segment: &LogSegment,
    texts: &Arc<CommitCache>,
    store: &Arc<dyn Store>,
    request: FileStreamRequest,
) -> Result<FileStream> {
    files_after(SeenFileKeys::default(), segment, texts, store, request)
}

/// [`files`] with the fingerprints of `seen`, which must be empty.
///
/// # Errors
/// As [`files`].
pub fn files_after(
    seen: SeenFileKeys,
    segment: &LogSegment,
    texts: &Arc<CommitCache>,
    store: &Arc<dyn Store>,
    request: FileStreamRequest,
) -> Result<FileStream> {
    let checkpoint = segment
        .checkpoint
        .as_ref()
        .map(|c| CheckpointReader::open(c, store, true).at_version(c.version))
        .transpose()?;
    // A compaction replaces commits that still exist: damage of the compaction is found here, while
    // they can be used instead.
    for compaction in segment.replay.iter().filter(|c| c.is_compaction()) {
        check_compaction(&texts.get(compaction)?).at_file(&compaction.file.path)?;
    }
    let wanted = request.wanted.as_ref().clone();
    // For the other kind only the key is needed.
    let key_only = FileActionProjection::default();
    let take = Arc::new(match request.kind {
        FileActionKind::Adds => ActionSelection {
            adds: Some(wanted),
            removes: Some(key_only),
            ..ActionSelection::default()
        },
        FileActionKind::Removes => ActionSelection {
            adds: Some(key_only),
            removes: Some(wanted),
            ..ActionSelection::default()
        },
    });
    let sources = commit_sources(&segment.replay, texts, &take);
    let commits = (!sources.is_empty())
        .then(|| ordered_prefetch(sources.into_iter(), parallelism() * 2, 2, &request.cancel));
    let of_commits = commit::estimated_adds(
        segment
            .replay
            .iter()
            .map(|c| c.file.size.unwrap_or(0))
            .sum(),
    );
    let of_checkpoint = checkpoint
        .as_ref()
        .map_or(0, CheckpointReader::max_file_count);
    let has_text_only = checkpoint
        .as_ref()
        .is_none_or(CheckpointReader::has_json_stats_only);
    let counts = SharedCounts::new(checkpoint.as_ref().and_then(CheckpointReader::num_actions));
    Ok(FileStream {
        commits,
        estimated_commit_files: of_commits,
        max_checkpoint_files: of_checkpoint,
        has_text_only,
        seen,
        checkpoint,
        checkpoint_batches: None,
        buffered_batches: None,
        request,
        counts,
        at_end: None,
    })
}

/// Refuses a compaction that cannot be parsed or is not reconciled: if two of its actions concern
/// one logical file, the order of its lines would decide, and writers differ in this order.
fn check_compaction(text: &Bytes) -> Result<()> {
    if text.is_empty() {
        return Err(Error::corrupt("the log compaction is empty"));
    }
    let keys = ActionSelection {
        adds: Some(FileActionProjection::default()),
        removes: Some(FileActionProjection::default()),
        ..ActionSelection::default()
    };
    let parsed = commit::parse(text, 0..text.len(), &keys, &[])?;
    let mut seen = SeenFileKeys::default();
    seen.reserve(parsed.adds.len() + parsed.removes.len());
    for batch in [&parsed.adds, &parsed.removes] {
        for row in 0..batch.len() {
            let path = batch.path.value(row);
            if !seen.record(seen.key(batch, row)?, 0, FileActionState::Added, true, path)? {
                let path = crate::error::shown(path);
                return Err(Error::corrupt(format!(
                    "the log compaction is not reconciled: it has two actions of the file `{path}`"
                )));
            }
        }
    }
    Ok(())
}

/// The jobs for the commits, newest first.
fn commit_sources(
    commits: &[CommitFile],
    texts: &Arc<CommitCache>,
    take: &Arc<ActionSelection>,
) -> Vec<ItemSource<ParsedCommitChunk>> {
    let mut out: Vec<ItemSource<ParsedCommitChunk>> = Vec::new();
    let mut group: Vec<CommitFile> = Vec::new();
    let mut group_bytes = 0;
    let flush = |group: &mut Vec<CommitFile>, out: &mut Vec<ItemSource<ParsedCommitChunk>>| {
        if !group.is_empty() {
            let (commits, texts, take) =
                (std::mem::take(group), Arc::clone(texts), Arc::clone(take));
            out.push(Box::new(std::iter::once_with(move || {
                parse_piece(read_group(&commits, &texts)?, &take)
            })));
        }
    };
    for commit in commits.iter().rev() {
        let size = commit.file.size.unwrap_or(0);
        if commit.is_compaction() {
            flush(&mut group, &mut out);
            let (commit, texts, take) = (commit.clone(), Arc::clone(texts), Arc::clone(take));
            out.push(Box::new(std::iter::once_with(move || {
                let text = texts.get(&commit)?;
                let piece = CommitChunk {
                    text,
                    starts: vec![0],
                    commits: vec![(commit.version, commit.file.path.clone())],
                    aggregated: true,
                    offset: 0,
                };
                parse_piece(piece, &take)
            })));
        } else if size >= IMPLAUSIBLE {
            flush(&mut group, &mut out);
            let (commit, texts) = (commit.clone(), Arc::clone(texts));
            out.push(Box::new(std::iter::once_with(move || {
                Err(texts
                    .get(&commit)
                    .err()
                    .unwrap_or_else(|| Error::internal("a commit without end was read")))
            })));
        } else if size > PIECE {
            flush(&mut group, &mut out);
            let mut start = 0;
            while start < size {
                let end = (start + PIECE).min(size);
                let (commit, take) = (commit.clone(), Arc::clone(take));
                out.push(Box::new(std::iter::once_with(move || {
                    parse_piece(read_part(&commit, start, end, size)?, &take)
                })));
                start = end;
            }
        } else {
            if group.len() >= GROUP_COMMITS || group_bytes + size.min(PIECE) > GROUP_BYTES {
                flush(&mut group, &mut out);
                group_bytes = 0;
            }
            group_bytes += size.min(PIECE);
            group.push(commit.clone());
        }
    }
    flush(&mut group, &mut out);
    out
}

fn read_group(commits: &[CommitFile], texts: &CommitCache) -> Result<CommitChunk> {
    if let [commit] = commits {
        let text = texts.get(commit)?;
        return Ok(CommitChunk {
            text,
            starts: vec![0],
            commits: vec![(commit.version, commit.file.path.clone())],
            aggregated: false,
            offset: 0,
        });
    }
    let mut text = Vec::new();
    let mut starts = Vec::with_capacity(commits.len());
    for next in texts.get_all(commits) {
        starts.push(text.len());
        text.extend_from_slice(&next?);
        if text.last().is_some_and(|last| *last != b'\n') {
            text.push(b'\n');
        }
    }
    let commits = commits
        .iter()
        .map(|c| (c.version, c.file.path.clone()))
        .collect();
    Ok(CommitChunk {
        text: text.into(),
        starts,
        commits,
        aggregated: false,
        offset: 0,
    })
}

/// The lines of a large commit that begin in `start..end`.
fn read_part(commit: &CommitFile, start: u64, end: u64, size: u64) -> Result<CommitChunk> {
    // Longer than usual lines; a longer one costs another read.
    let mut reach = (end + (64 << 10)).min(size);
    let from = start.saturating_sub(1);
    loop {
        let bytes = json_lines::read_range(&commit.file, from, reach).at_version(commit.version)?;
        let local = |at: u64| usize::try_from(at - from).unwrap_or(usize::MAX);
        // A line that begins before `start` belongs to the previous part.
        let first = if start == 0 {
            0
        } else {
            memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |n| n + 1)
        };
        if first >= local(end) {
            return Ok(CommitChunk {
                text: Bytes::new(),
                starts: vec![0],
                commits: vec![(commit.version, commit.file.path.clone())],
                aggregated: false,
                offset: start,
            });
        }
        let last = match bytes
            .get(local(end) - 1..)
            .and_then(|tail| memchr::memchr(b'\n', tail))
        {
            Some(n) => local(end) + n,
            None if reach == size => bytes.len(),
            None => {
                json_lines::check_is_text(&bytes)
                    .at_file(&commit.file.path)
                    .at_version(commit.version)?;
                if reach - end >= LONGEST_LINE {
                    let what = format!(
                        "a line is longer than the {LONGEST_LINE} bytes that an action may have"
                    );
                    return Err(Error::corrupt(what)
                        .at_file(&commit.file.path)
                        .at_version(commit.version));
                }
                reach = (reach + (reach - end) * 4)
                    .min(end + LONGEST_LINE)
                    .min(size);
                continue;
            }
        };
        let text = bytes.slice(first..last.min(bytes.len()));
        return Ok(CommitChunk {
            text,
            starts: vec![0],
            commits: vec![(commit.version, commit.file.path.clone())],
            aggregated: false,
            offset: from + first as u64,
        });
    }
}

/// Whether a commit is so long that it is not read completely for its few non-file actions.
pub(super) fn is_large_commit(commit: &CommitFile) -> bool {
    commit
        .file
        .size
        .is_some_and(|size| size > json_lines::PIECE && size < IMPLAUSIBLE)
}

/// The non-file actions of a commit for which [`is_large_commit`] is true.
pub(super) fn large_commit_actions(
    commit: &CommitFile,
    take: &ActionSelection,
) -> Result<Vec<NonFileAction>> {
    let size = commit.file.size.unwrap_or(0);
    let mut out = Vec::new();
    let mut start = 0;
    while start < size {
        let end = (start + json_lines::PIECE).min(size);
        let CommitChunk {
            text,
            starts,
            commits,
            offset,
            ..
        } = read_part(commit, start, end, size)?;
        out.extend(
            commit::non_file_actions(&text, take)
                .map_err(|error| with_commit_position(error, &text, &starts, &commits, offset))?,
        );
        start = end;
    }
    Ok(out)
}

fn parse_piece(piece: CommitChunk, take: &ActionSelection) -> Result<ParsedCommitChunk> {
    let CommitChunk {
        text,
        starts,
        commits,
        aggregated,
        offset,
    } = piece;
    match commit::parse(&text, 0..text.len(), take, &starts) {
        Ok(parsed) => Ok(ParsedCommitChunk {
            parsed,
            commits,
            aggregated,
        }),
        Err(error) => Err(with_commit_position(
            error, &text, &starts, &commits, offset,
        )),
    }
}

/// Converts the line number in a piece to the line number in its commit.
fn with_commit_position(
    error: Error,
    text: &[u8],
    starts: &[usize],
    commits: &[(i64, String)],
    offset: u64,
) -> Error {
    let Some(line) = error.context().and_then(|place| place.line) else {
        return error;
    };
    let lines_before =
        |end: usize| memchr::memchr_iter(b'\n', text.get(..end).unwrap_or_default()).count() as u64;
    let which = starts
        .iter()
        .rposition(|start| lines_before(*start) < line)
        .unwrap_or(0);
    let before = starts.get(which).map_or(0, |start| lines_before(*start));
    let error = match error {
        Error::Corrupt {
            kind,
            what,
            context: mut place,
        } => {
            // Line numbers in a part of a large commit are only known if it is the first part.
            place.line = (offset == 0).then_some(line - before);
            Error::Corrupt {
                kind,
                what,
                context: place,
            }
        }
        other => other,
    };
    match commits.get(which) {
        Some((version, path)) => error.at_file(path).at_version(*version),
        None => error,
    }
}

impl FileStream {
    /// Reads all files now.
    ///
    /// # Errors
    /// The first error of the stream.
    pub fn read_to_end(mut self) -> Result<Self> {
        let batches = self.by_ref().collect::<Result<Vec<_>>>()?;
        // A reconciled checkpoint contains no file twice; this is checked here, where it costs
        // little.
        let mut seen = SeenFileKeys::default();
        for batch in &batches {
            for row in 0..batch.len() {
                let key = seen.key(batch, row)?;
                if !seen.record(key, 0, FileActionState::Added, false, "")? {
                    return Err(Error::corrupt(format!(
                        "the checkpoint names the file `{}` twice",
                        crate::error::shown(batch.path.value(row))
                    )));
                }
            }
        }
        self.buffered_batches = Some(batches.into_iter());
        self.checkpoint_batches = None;
        Ok(self)
    }

    /// The same stream; `check` runs after the last file, and its error is the stream's last item.
    #[must_use]
    pub fn with_end_check(
        self,
        check: impl FnOnce(FileCounts) -> Result<()> + Send + 'static,
    ) -> Self {
        Self {
            at_end: Some(Box::new(check)),
            ..self
        }
    }

    /// Counts of the files returned so far.
    #[must_use]
    pub fn counts(&self) -> FileCounts {
        self.counts.get()
    }

    /// The keys of the commits, after all of them were read.
    #[must_use]
    pub fn into_seen(self) -> SeenFileKeys {
        self.seen
    }

    /// The maximum number of files, as far as known in advance.
    #[must_use]
    pub fn max_files(&self) -> Option<u64> {
        if self.commits.is_some() {
            None
        } else {
            Some(self.max_checkpoint_files())
        }
    }

    /// The maximum number of live files in the checkpoint.
    #[must_use]
    pub fn max_checkpoint_files(&self) -> u64 {
        self.max_checkpoint_files
    }

    /// The size of the unread part of the checkpoint, with its sidecars.
    #[must_use]
    pub fn checkpoint_bytes(&self) -> Option<u64> {
        self.checkpoint.as_ref().map(CheckpointReader::size)
    }

    /// An estimate of the maximum number of files, based on the size of the commits.
    #[must_use]
    pub fn estimated_files(&self) -> u64 {
        self.max_checkpoint_files() + self.estimated_commit_files
    }

    /// Whether all statistics are JSON, not structs of a checkpoint.
    #[must_use]
    pub fn has_text_only(&self) -> bool {
        self.has_text_only
    }

    fn reconcile(&mut self, piece: &ParsedCommitChunk) -> Result<Option<FileBatch>> {
        let ParsedCommitChunk {
            parsed,
            commits,
            aggregated,
        } = piece;
        let (adds, removes) = (&parsed.adds, &parsed.removes);
        self.seen.reserve(adds.len() + removes.len());
        let version_of = |order: u32| {
            let which = parsed
                .actions_before_mark
                .partition_point(|mark| *mark < order)
                .saturating_sub(1);
            commits.get(which).map_or(0, |(version, _)| *version)
        };
        let kept = match self.request.kind {
            FileActionKind::Adds => adds,
            FileActionKind::Removes => removes,
        };
        let mut live = vec![false; kept.len()];
        let mut visit = |seen: &mut SeenFileKeys,
                         verdict: FileActionState,
                         row: usize,
                         order: u32|
         -> Result<()> {
            let batch = if verdict == FileActionState::Added {
                adds
            } else {
                removes
            };
            let version = version_of(order);
            let named = |error: Error| {
                let which = parsed
                    .actions_before_mark
                    .partition_point(|mark| *mark < order)
                    .saturating_sub(1);
                let error = error.at_version(version);
                commits
                    .get(which)
                    .map_or_else(|| error.clone(), |(_, path)| error.clone().at_file(path))
            };
            let key = seen.key(batch, row).map_err(named)?;
            let newest = seen
                .record(key, version, verdict, *aggregated, batch.path.value(row))
                .map_err(named)?;
            let wanted = match self.request.kind {
                FileActionKind::Adds => verdict == FileActionState::Added,
                FileActionKind::Removes => verdict == FileActionState::Removed,
            };
            if newest
                && wanted
                && let Some(slot) = live.get_mut(row)
            {
                *slot = true;
            }
            Ok(())
        };
        if removes.is_empty() {
            for (row, order) in adds.order.iter().enumerate() {
                visit(&mut self.seen, FileActionState::Added, row, *order)?;
            }
        } else {
            let mut all: Vec<(u32, FileActionState, usize)> =
                Vec::with_capacity(adds.len() + removes.len());
            all.extend(
                adds.order
                    .iter()
                    .enumerate()
                    .map(|(row, order)| (*order, FileActionState::Added, row)),
            );
            all.extend(
                removes
                    .order
                    .iter()
                    .enumerate()
                    .map(|(row, order)| (*order, FileActionState::Removed, row)),
            );
            all.sort_unstable_by_key(|(order, ..)| *order);
            for (order, verdict, row) in all {
                visit(&mut self.seen, verdict, row, order)?;
            }
        }
        let batch = kept.filter(&mask(live))?;
        self.counts.add(&batch, 0);
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }

    /// The batches that were read completely, or those of the commits.
    fn next_before_checkpoint(&mut self) -> Option<Result<FileBatch>> {
        if let Some(ready) = &mut self.buffered_batches {
            return ready.next().map(Ok);
        }
        while let Some(commits) = &mut self.commits {
            match commits.next() {
                Some(Ok(piece)) => {
                    if let Some(batch) = self.reconcile(&piece).transpose() {
                        return Some(batch);
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => self.commits = None,
            }
        }
        None
    }

    /// The pieces of the checkpoint, after the commits were read, without the rows with keys of the
    /// commits.
    fn checkpoint_sources(&mut self) -> Vec<ItemSource<FileBatch>> {
        let Some(checkpoint) = self
            .checkpoint
            .take()
            .filter(|_| self.buffered_batches.is_none())
        else {
            return Vec::new();
        };
        let seen = Arc::new(std::mem::take(&mut self.seen));
        let (version, counts) = (checkpoint.version(), self.counts.clone());
        let sources = checkpoint
            .files(self.request.kind, &self.request.wanted)
            .into_iter();
        let filtered = sources.map(move |source| {
            let (seen, counts) = (Arc::clone(&seen), counts.clone());
            let batches = source.map(move |batch| {
                let batch = batch?;
                let held = batch.len() as u64;
                let batch = seen.filter_unseen(batch).at_version(version)?;
                counts.add(&batch, held);
                Ok(batch)
            });
            Box::new(batches.filter(|batch| !matches!(batch, Ok(batch) if batch.is_empty())))
                as ItemSource<FileBatch>
        });
        filtered.collect()
    }

    /// The results of `finish` for the batches, in their order. It runs on the pool: for a batch of
    /// a checkpoint in the job that decodes it, so that decoded strings are still in the
    /// processor's cache and do not accumulate.
    pub fn finished<T: Send + 'static>(
        mut self,
        finish: impl Fn(FileBatch) -> Result<T> + Send + Sync + 'static,
    ) -> FinishedFiles<T> {
        let (cancel, counts, at_end) = (
            self.request.cancel.clone(),
            self.counts.clone(),
            self.at_end.take(),
        );
        let lanes = ordered_prefetch(
            FinishedSources {
                stream: self,
                finish: Arc::new(finish),
                checkpoint: None,
            },
            parallelism() + 1,
            AHEAD,
            &cancel,
        );
        FinishedFiles {
            lanes,
            counts,
            at_end,
        }
    }
}

/// The results for all batches of a [`FileStream`].
pub struct FinishedFiles<T> {
    lanes: OrderedPrefetch<T>,
    counts: SharedCounts,
    at_end: Option<EndCheck>,
}

impl<T: Send + 'static> Iterator for FinishedFiles<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.lanes.next();
        self.counts.at_end(&mut self.at_end, next)
    }
}

/// See [`FileStream::finished`].
struct FinishedSources<F> {
    stream: FileStream,
    finish: Arc<F>,
    checkpoint: Option<std::vec::IntoIter<ItemSource<FileBatch>>>,
}

impl<T: Send + 'static, F: Fn(FileBatch) -> Result<T> + Send + Sync + 'static> Iterator
    for FinishedSources<F>
{
    type Item = ItemSource<T>;

    fn next(&mut self) -> Option<ItemSource<T>> {
        let finish = Arc::clone(&self.finish);
        if self.checkpoint.is_none() {
            if let Some(batch) = self.stream.next_before_checkpoint() {
                return Some(Box::new(std::iter::once_with(move || finish(batch?))));
            }
            self.checkpoint = Some(self.stream.checkpoint_sources().into_iter());
        }
        let source = self.checkpoint.as_mut()?.next()?;
        Some(Box::new(source.map(move |batch| finish(batch?))))
    }
}

impl FileStream {
    fn next_unchecked(&mut self) -> Option<Result<FileBatch>> {
        if self.checkpoint_batches.is_none() {
            if let Some(batch) = self.next_before_checkpoint() {
                return Some(batch);
            }
            let sources = self.checkpoint_sources();
            self.checkpoint_batches = Some(ordered_prefetch(
                sources.into_iter(),
                parallelism() + 1,
                AHEAD,
                &self.request.cancel,
            ));
        }
        self.checkpoint_batches.as_mut()?.next()
    }
}

impl Iterator for FileStream {
    type Item = Result<FileBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_unchecked();
        self.counts.at_end(&mut self.at_end, next)
    }
}
