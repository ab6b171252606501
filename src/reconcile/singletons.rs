//! Non-file actions: the newest protocol and metadata, transactions and domains of a segment.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::replay::{CommitCache, is_large_commit, large_commit_actions};
use crate::error::{Error, Result, ResultExt, shown};
use crate::exec::map_all;
use crate::log::{ChecksumFileContents, CommitFile, LogSegment};
use crate::parse::checkpoint::CheckpointReader;
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol, SetTransaction};
use crate::store::Store;

/// The number of commits in a chunk, at first and at most: if the newest metadata is found early,
/// the remaining commits are not read.
const CHUNK: (usize, usize) = (64, 1024);
/// The number of commits that one job reads.
const JOB: usize = 16;

/// The newest protocol and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableActions {
    /// `protocol`
    pub protocol: Protocol,
    /// `metaData`
    pub metadata: Metadata,
}

impl TableActions {
    /// The fields that differ in `other`.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        ChecksumFileContents::differences(
            (&self.protocol, &self.metadata),
            (&other.protocol, &other.metadata),
        )
    }
}

/// Transactions by application and domains by name, without removed domains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NonFileActions {
    /// `txn`
    pub transactions: BTreeMap<String, SetTransaction>,
    /// `domainMetadata`
    pub domains: BTreeMap<String, DomainMetadata>,
}

impl NonFileActions {
    /// Applies newer actions, the oldest first.
    pub fn advance(&mut self, singles: &[NonFileAction]) {
        for single in singles {
            match single {
                NonFileAction::Txn(txn) => {
                    _ = self.transactions.insert(txn.app_id.clone(), txn.clone());
                }
                NonFileAction::Domain(domain) if domain.removed => {
                    _ = self.domains.remove(&domain.domain);
                }
                NonFileAction::Domain(domain) => {
                    _ = self.domains.insert(domain.domain.clone(), domain.clone());
                }
                _ => {}
            }
        }
    }
}

/// The non-file actions of each commit, newest commit first, in chunks; `found` ends the iteration.
fn newest_first(
    commits: &[CommitFile],
    texts: &Arc<CommitCache>,
    take: &ActionSelection,
    mut found: impl FnMut(&CommitFile, Vec<NonFileAction>) -> Result<bool>,
) -> Result<bool> {
    let mut newest: Vec<CommitFile> = commits.iter().rev().cloned().collect();
    let mut size = CHUNK.0;
    while !newest.is_empty() {
        let rest = newest.split_off(size.min(newest.len()));
        let jobs: Vec<Vec<CommitFile>> = newest.chunks(JOB).map(<[_]>::to_vec).collect();
        let (texts, take) = (Arc::clone(texts), take.clone());
        let parsed = map_all(jobs, move |commits| {
            let singles = |(commit, text): (&CommitFile, Result<Bytes>)| {
                let singles = commit::non_file_actions(&text?, &take)
                    .at_file(&commit.file.path)
                    .at_version(commit.version)?;
                Ok((commit.clone(), singles))
            };
            let mut out: Vec<Result<_>> = Vec::with_capacity(commits.len());
            // Commits between those that are too long to be read completely are requested together.
            for run in commits.chunk_by(|a, b| !is_large_commit(a) && !is_large_commit(b)) {
                match run {
                    [commit] if is_large_commit(commit) => out.push(
                        large_commit_actions(commit, &take)
                            .map(|singles| (commit.clone(), singles)),
                    ),
                    run => out.extend(run.iter().zip(texts.get_all(run)).map(singles)),
                }
            }
            Ok(out)
        })?;
        // An error in an older commit does not matter once newer ones have everything.
        for parsed in parsed.into_iter().flatten() {
            let (commit, singles) = parsed?;
            if found(&commit, singles)? {
                return Ok(true);
            }
        }
        newest = rest;
        size = (size * 2).min(CHUNK.1);
    }
    Ok(false)
}

/// Reads protocol and metadata of a segment, and whether one of them comes from the checkpoint.
///
/// # Errors
/// [`Error::Corrupt`] if one is missing, or if there are two in one commit.
pub fn read_table_actions(
    segment: &LogSegment,
    texts: &Arc<CommitCache>,
    store: &Arc<dyn Store>,
) -> Result<(TableActions, bool)> {
    let (mut protocol, mut metadata) = (None, None);
    let take = ActionSelection {
        protocol_and_metadata: true,
        ..ActionSelection::default()
    };
    let mut keep =
        |version: i64, singles: Vec<NonFileAction>, in_checkpoint: bool| -> Result<bool> {
            let (mut protocols, mut metadatas) = (0, 0);
            let (had_protocol, had_metadata) = (protocol.is_some(), metadata.is_some());
            for single in singles {
                match single {
                    NonFileAction::Protocol(p) => {
                        protocols += 1;
                        if !had_protocol {
                            protocol = Some(p);
                        }
                    }
                    NonFileAction::Metadata(m) => {
                        metadatas += 1;
                        if !had_metadata {
                            metadata = Some(*m);
                        }
                    }
                    _ => {}
                }
            }
            if !in_checkpoint && (protocols > 1 || metadatas > 1) {
                let name = if metadatas > 1 {
                    "metaData"
                } else {
                    "protocol"
                };
                return Err(Error::corrupt(format!(
                    "the commit has more than one `{name}` action"
                ))
                .at_file(crate::protocol::log_path::commit(version))
                .at_version(version));
            }
            Ok(protocol.is_some() && metadata.is_some())
        };
    let complete = newest_first(&segment.replay, texts, &take, |commit, singles| {
        check_reconciled(commit, &singles)?;
        keep(commit.version, singles, false)
    })?;
    let mut from_checkpoint = false;
    if !complete && let Some(checkpoint) = &segment.checkpoint {
        let open =
            CheckpointReader::open(checkpoint, store, false).at_version(checkpoint.version)?;
        keep(checkpoint.version, open.non_file_actions(&take)?, true)?;
        from_checkpoint = true;
    }
    let lacks = |what: &str| {
        Error::corrupt(format!(
            "no `{what}` action in the log up to version {}",
            segment.version
        ))
        .at_version(segment.version)
    };
    let table = TableActions {
        protocol: protocol.ok_or_else(|| lacks("protocol"))?,
        metadata: metadata.ok_or_else(|| lacks("metaData"))?,
    };
    Ok((table, from_checkpoint))
}

/// Refuses a compaction with two actions with the same identity: the order of its lines would
/// decide, and writers differ in this order. The commits that it replaces still exist.
fn check_reconciled(commit: &CommitFile, singles: &[NonFileAction]) -> Result<()> {
    if !commit.is_compaction() {
        return Ok(());
    }
    let mut seen = HashSet::new();
    let identity = |single: &NonFileAction| match single {
        NonFileAction::Protocol(_) => Some(("protocol", String::new())),
        NonFileAction::Metadata(_) => Some(("metaData", String::new())),
        NonFileAction::Txn(txn) => Some(("txn", txn.app_id.clone())),
        NonFileAction::Domain(domain) => Some(("domainMetadata", domain.domain.clone())),
        _ => None,
    };
    for (kind, name) in singles.iter().filter_map(identity) {
        if !seen.insert((kind, name.clone())) {
            let of = if name.is_empty() {
                String::new()
            } else {
                format!(" of `{}`", shown(&name))
            };
            return Err(Error::corrupt(format!(
                "the log compaction is not reconciled: it has two actions `{kind}`{of}"
            ))
            .at_file(&commit.file.path));
        }
    }
    Ok(())
}

/// Reads transactions and domains of a segment.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::NotFound`] name the file.
pub fn read_non_file_actions(
    segment: &LogSegment,
    texts: &Arc<CommitCache>,
    store: &Arc<dyn Store>,
) -> Result<NonFileActions> {
    let take = ActionSelection {
        transactions_and_domains: true,
        ..ActionSelection::default()
    };
    let mut transactions: BTreeMap<String, SetTransaction> = BTreeMap::new();
    let mut domains: BTreeMap<String, DomainMetadata> = BTreeMap::new();
    let mut keep = |singles: Vec<NonFileAction>| {
        // Within one file the later line is the newer one.
        for single in singles.into_iter().rev() {
            match single {
                NonFileAction::Txn(txn) => {
                    _ = transactions.entry(txn.app_id.clone()).or_insert(txn);
                }
                NonFileAction::Domain(domain) => {
                    _ = domains.entry(domain.domain.clone()).or_insert(domain);
                }
                _ => {}
            }
        }
    };
    newest_first(&segment.replay, texts, &take, |commit, singles| {
        check_reconciled(commit, &singles)?;
        keep(singles);
        Ok(false)
    })?;
    if let Some(checkpoint) = &segment.checkpoint {
        keep(
            CheckpointReader::open(checkpoint, store, false)
                .at_version(checkpoint.version)?
                .non_file_actions(&take)?,
        );
    }
    domains.retain(|_, domain| !domain.removed);
    Ok(NonFileActions {
        transactions,
        domains,
    })
}
