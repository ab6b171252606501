//! A newer or older snapshot, made from one by reading only the commits in between.

use super::snapshot_state::Snapshot;
use super::snapshot_warnings::SnapshotWarnings;
use super::table_reader::{CheckedTable, drop_expired_txns};
use crate::error::{Error, Result, ResultExt, invariant};
use crate::exec::CancellationToken;
use crate::log::{CommitFile, LogSegment, LogTail};
use crate::parse::checkpoint::FileActionKind;
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::action::Metadata;
use crate::protocol::log_path;
use crate::reconcile::{self, FileStreamRequest, SeenFileKeys, TableActions};
use std::sync::Arc;

impl Snapshot {
    /// The live files that commits after `version` added, and all keys that these commits contain.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NotFound`] name the file.
    pub fn files_since(
        &self,
        version: i64,
        like: &SeenFileKeys,
        wanted: FileActionProjection,
        cancel: &CancellationToken,
    ) -> Result<(Vec<FileBatch>, SeenFileKeys)> {
        let segment = self.segment();
        let commits: Vec<CommitFile> = segment
            .known_commits()
            .filter(|c| c.version > version)
            .cloned()
            .collect();
        let newer = LogSegment {
            checkpoint: None,
            replay: commits.clone(),
            commits,
            checksum: None,
            ..segment.as_ref().clone()
        };
        let request = FileStreamRequest {
            kind: FileActionKind::Adds,
            wanted: Arc::new(wanted),
            cancel: cancel.clone(),
        };
        let mut stream = reconcile::files_after(
            SeenFileKeys::with_same_seeds(like),
            &newer,
            &self.0.commit_cache,
            self.stores().root(),
            request,
        )?;
        let batches = stream.by_ref().collect::<Result<Vec<_>>>()?;
        Ok((batches, stream.into_seen()))
    }

    /// Whether every commit after `version` is in the segment.
    #[must_use]
    pub fn has_commits_since(&self, version: i64) -> bool {
        let segment = self.segment();
        version == segment.version
            || segment
                .known_commits()
                .next()
                .is_some_and(|c| c.version <= version + 1)
    }

    /// The snapshot of `version` (the newest if `None`); this snapshot if it already has that
    /// version.
    ///
    /// # Errors
    /// As [`Snapshot::open`]; [`Error::Invalid`] if the table at this location has been replaced by
    /// another one, or its version decreased.
    pub fn at(&self, version: Option<i64>) -> Result<Self> {
        let current = self.version();
        if version == Some(current) {
            return Ok(self.clone());
        }
        if version.is_none_or(|v| v > current)
            && let Some(newer) = self.advance_to(version)?
        {
            return Ok(newer);
        }
        let opened = Self::open(self.0.log.clone(), version, self.0.options)?;
        self.check_same(&opened.0.metadata)?;
        if version.is_none() {
            self.check_forward(&opened)?;
        }
        Ok(opened)
    }

    pub(super) fn check_same(&self, metadata: &Metadata) -> Result<()> {
        if metadata.id == self.0.metadata.id {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the table was replaced by another one (its id was `{}` and is `{}`); open it again",
            self.0.metadata.id, metadata.id
        )))
    }

    /// Reads the commits after this version one by one; `None` if that is not possible (too many
    /// commits, or a gap).
    fn advance_to(&self, version: Option<i64>) -> Result<Option<Self>> {
        /// For more commits than this, a new listing is made, which may find a newer checkpoint.
        const STEPS: i64 = 100;
        let segment = self.segment();
        let store = self.stores().root();
        let mut new: Vec<CommitFile> = Vec::new();
        let mut next = segment.version + 1;
        let tail = self
            .0
            .log
            .catalog()
            .map(|catalog| LogTail::from_catalog(catalog.as_ref()))
            .transpose()?;
        while version.is_none_or(|v| next <= v) {
            if next > segment.version + STEPS {
                return Ok(None);
            }
            if let Some(tail) = &tail {
                if tail.latest.is_none_or(|latest| next > latest) {
                    // A listing shows which versions exist.
                    if version.is_some() {
                        return Ok(None);
                    }
                    break;
                }
                if let Some(commit) = tail.get(next) {
                    new.push(self.0.log.tail_file(commit)?);
                    next += 1;
                    continue;
                }
            }
            let path = log_path::commit(next);
            match store.head(&path) {
                Ok(meta) => {
                    let file = crate::store::StoreObject {
                        store: Arc::clone(store),
                        path,
                        size: Some(meta.size),
                    };
                    new.push(CommitFile {
                        first: next,
                        version: next,
                        file,
                        modified_ms: meta.modified_ms,
                    });
                }
                Err(error) if error.is_not_found() && version.is_none() && tail.is_none() => break,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            }
            next += 1;
        }
        // The following commits may belong to another table, and missing ones may have been cleaned
        // up.
        let is_current = if self.0.log.is_authority() {
            self.is_in_log()?
        } else {
            !new.is_empty()
                || self
                    .0
                    .log
                    .hint()
                    .is_none_or(|hint| hint.version <= segment.version)
        };
        match new.is_empty() {
            _ if !is_current => Ok(None),
            true => Ok(Some(self.clone())),
            false => self.with_commits(new).map(Some),
        }
    }

    /// The snapshot with these commits applied: ascending, starting with the next version.
    ///
    /// # Errors
    /// As [`Snapshot::open`]; [`Error::Invalid`] if the table at this location has been replaced by
    /// another one.
    pub fn with_commits(&self, new: Vec<CommitFile>) -> Result<Self> {
        let segment = self.segment();
        let mut longer = segment.as_ref().clone();
        let mut table = TableActions {
            protocol: self.0.protocol.clone(),
            metadata: self.0.metadata.clone(),
        };
        let mut sets = self.0.non_file_actions.get().cloned();
        let take = ActionSelection {
            protocol_and_metadata: true,
            transactions_and_domains: sets.is_some(),
            ..ActionSelection::default()
        };
        for commit in &new {
            invariant!(
                commit.version == longer.version + 1,
                "commit {} cannot follow version {}",
                commit.version,
                longer.version
            );
            longer.version = commit.version;
            let text = self.0.commit_cache.get(commit)?;
            let singles = commit::non_file_actions(&text, &take)
                .at_file(&commit.file.path)
                .at_version(commit.version)?;
            if let Some(sets) = &mut sets {
                sets.advance(&singles);
            }
            for single in singles {
                match single {
                    NonFileAction::Protocol(protocol) => table.protocol = protocol,
                    NonFileAction::Metadata(metadata) => table.metadata = *metadata,
                    _ => {}
                }
            }
        }
        self.check_same(&table.metadata)?;
        longer.last_commit = new.last().cloned().or(longer.last_commit);
        longer.checksum = None;
        let table = CheckedTable::new(table, &self.0.log, longer.version)?;
        longer.commits.extend(new.iter().cloned());
        longer.replay.extend(new);
        let newer = Self::assemble(
            self.0.log.clone(),
            longer,
            self.0.options,
            Arc::clone(&self.0.commit_cache),
            table,
            (None, false),
            SnapshotWarnings::default(),
        )?;
        // A table that tracks rows again after the feature was dropped begins with new ids.
        if let Some(mark) = self.0.row_id_mark.get()
            && newer.0.protocol.has_writer_feature("rowTracking")
        {
            let _ = newer.0.row_id_mark.set(*mark);
        }
        if newer.0.metadata == self.0.metadata && newer.0.protocol == self.0.protocol {
            newer.plan_cache().clone_from(&self.plan_cache());
            // If the retention changed, actions that were dropped as expired would have to be read
            // again.
            if let Some(mut sets) = sets {
                drop_expired_txns(&mut sets, &newer.0.metadata);
                let _ = newer.0.non_file_actions.set(sets);
            }
        }
        Ok(newer)
    }
}
