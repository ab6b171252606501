//! Actions that stand alone: the newest protocol and metadata, transactions and domains of a segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::replay::Texts;
use crate::error::{Error, Result, ResultExt};
use crate::exec::map_all;
use crate::log::{CommitFile, Segment};
use crate::parse::checkpoint::OpenCheckpoint;
use crate::parse::commit::{self, Single, Take};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol, Txn};
use crate::store::Store;

/// Commits looked at together, at first and at most: with a good guess of where the newest metadata is, fewer than all are
/// read.
const CHUNK: (usize, usize) = (64, 1024);
/// Commits that one job reads.
const JOB: usize = 16;

/// The newest protocol and metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableActions {
    /// `protocol`
    pub protocol: Protocol,
    /// `metaData`
    pub metadata: Metadata,
}

/// Transactions by application and domains by name, removed domains left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sets {
    /// `txn`
    pub transactions: BTreeMap<String, Txn>,
    /// `domainMetadata`
    pub domains: BTreeMap<String, DomainMetadata>,
}

impl Sets {
    /// Takes over what newer actions say, the oldest first.
    pub fn advance(&mut self, singles: &[Single]) {
        for single in singles {
            match single {
                Single::Txn(txn) => _ = self.transactions.insert(txn.app_id.clone(), txn.clone()),
                Single::Domain(domain) if domain.removed => _ = self.domains.remove(&domain.domain),
                Single::Domain(domain) => _ = self.domains.insert(domain.domain.clone(), domain.clone()),
                _ => {}
            }
        }
    }
}

/// The single actions of each commit, newest commit first, in chunks; `found` ends the walk.
fn newest_first(commits: &[CommitFile], texts: &Arc<Texts>, take: &Take, mut found: impl FnMut(&CommitFile, Vec<Single>) -> Result<bool>) -> Result<bool> {
    let mut newest: Vec<CommitFile> = commits.iter().rev().cloned().collect();
    let mut size = CHUNK.0;
    while !newest.is_empty() {
        let rest = newest.split_off(size.min(newest.len()));
        let jobs: Vec<Vec<CommitFile>> = newest.chunks(JOB).map(<[_]>::to_vec).collect();
        let (texts, take) = (Arc::clone(texts), take.clone());
        let parsed = map_all(jobs, move |commits| {
            let singles = |(commit, text): (&CommitFile, Result<Bytes>)| {
                let singles = commit::singles(&text?, &take).at_file(&commit.file.path).at_version(commit.version)?;
                Ok((commit.clone(), singles))
            };
            Ok(commits.iter().zip(texts.get_all(&commits)).map(singles).collect::<Vec<Result<_>>>())
        })?;
        // What is wrong with an older commit does not matter once a newer one has everything.
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

/// Reads protocol and metadata of a segment.
///
/// # Errors
/// [`Error::Corrupt`] when there is none, or two in one commit.
pub fn read_table(segment: &Segment, texts: &Arc<Texts>, store: &Arc<dyn Store>) -> Result<TableActions> {
    let (mut protocol, mut metadata) = (None, None);
    let take = Take { table: true, ..Take::default() };
    let mut keep = |version: i64, singles: Vec<Single>, aggregated: bool| -> Result<bool> {
        let (mut protocols, mut metadatas) = (0, 0);
        let (had_protocol, had_metadata) = (protocol.is_some(), metadata.is_some());
        for single in singles {
            match single {
                Single::Protocol(p) => {
                    protocols += 1;
                    if !had_protocol {
                        protocol = Some(p);
                    }
                }
                Single::Metadata(m) => {
                    metadatas += 1;
                    if !had_metadata {
                        metadata = Some(*m);
                    }
                }
                _ => {}
            }
        }
        if !aggregated && (protocols > 1 || metadatas > 1) {
            let name = if metadatas > 1 { "metaData" } else { "protocol" };
            return Err(Error::corrupt(format!("the commit has more than one `{name}` action"))
                .at_file(crate::protocol::log_path::commit(version))
                .at_version(version));
        }
        Ok(protocol.is_some() && metadata.is_some())
    };
    let complete = newest_first(&segment.replay, texts, &take, |commit, singles| keep(commit.version, singles, commit.is_compaction()))?;
    if !complete && let Some(checkpoint) = &segment.checkpoint {
        let open = OpenCheckpoint::open(checkpoint, store, false).at_version(checkpoint.version)?;
        keep(checkpoint.version, open.singles(&take)?, true)?;
    }
    let lacks = |what: &str| Error::corrupt(format!("no `{what}` action in the log up to version {}", segment.version)).at_version(segment.version);
    Ok(TableActions { protocol: protocol.ok_or_else(|| lacks("protocol"))?, metadata: metadata.ok_or_else(|| lacks("metaData"))? })
}

/// Reads transactions and domains of a segment.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::NotFound`] name the file.
pub fn read_sets(segment: &Segment, texts: &Arc<Texts>, store: &Arc<dyn Store>) -> Result<Sets> {
    let take = Take { sets: true, ..Take::default() };
    let mut transactions: BTreeMap<String, Txn> = BTreeMap::new();
    let mut domains: BTreeMap<String, DomainMetadata> = BTreeMap::new();
    let mut keep = |singles: Vec<Single>| {
        // Within one file the later line is the newer one.
        for single in singles.into_iter().rev() {
            match single {
                Single::Txn(txn) => _ = transactions.entry(txn.app_id.clone()).or_insert(txn),
                Single::Domain(domain) => _ = domains.entry(domain.domain.clone()).or_insert(domain),
                _ => {}
            }
        }
    };
    newest_first(&segment.replay, texts, &take, |_, singles| {
        keep(singles);
        Ok(false)
    })?;
    if let Some(checkpoint) = &segment.checkpoint {
        keep(OpenCheckpoint::open(checkpoint, store, false).at_version(checkpoint.version)?.singles(&take)?);
    }
    domains.retain(|_, domain| !domain.removed);
    Ok(Sets { transactions, domains })
}
