//! Actions that stand alone: the newest protocol and metadata, transactions and domains of a segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::replay::Texts;
use crate::error::{Error, Result, ResultExt};
use crate::exec::map_all;
use crate::log::{CommitFile, Segment};
use crate::parse::checkpoint::OpenCheckpoint;
use crate::parse::commit::{self, Single, Take};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol, Txn};
use crate::store::Store;

/// Commits looked at together: with a good guess of where the newest metadata is, fewer than all are read.
const CHUNK: usize = 64;

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

/// The single actions of each commit, newest commit first, in chunks; `found` ends the walk.
fn newest_first(commits: &[CommitFile], texts: &Arc<Texts>, take: &Take, mut found: impl FnMut(i64, Vec<Single>) -> Result<bool>) -> Result<bool> {
    let newest: Vec<CommitFile> = commits.iter().rev().cloned().collect();
    for chunk in newest.chunks(CHUNK) {
        let (texts, take) = (Arc::clone(texts), take.clone());
        let parsed = map_all(chunk.to_vec(), move |commit| {
            let text = texts.get(&commit)?;
            let singles = commit::singles(&text, &take).at_file(&commit.file.path).at_version(commit.version)?;
            Ok((commit, singles))
        })?;
        for (commit, singles) in parsed {
            if found(commit.version, singles)? {
                return Ok(true);
            }
        }
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
    let complete = newest_first(&segment.replay, texts, &take, |version, singles| {
        let aggregated = segment.replay.iter().any(|c| c.version == version && c.is_compaction());
        keep(version, singles, aggregated)
    })?;
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
