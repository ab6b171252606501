//! The commit that took the version a transaction wanted, and what the transaction takes over.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use crate::error::{Result, ResultExt};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::action::{self, DomainMetadata, Metadata, Protocol, SetTransaction};
use crate::protocol::log_path;

/// The tag of commits whose metadata only moves identity columns' marks.
pub(super) const IDENTITY_TAG: &str = "delta.identity.schemaUpdate";

/// What conflict checking wants to know of `commitInfo`. Anything may be missing in other writers'
/// commits.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WinningCommitInfo {
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    is_blind_append: Option<bool>,
    #[serde(default)]
    in_commit_timestamp: Option<i64>,
    #[serde(default)]
    txn_id: Option<String>,
    #[serde(default)]
    tags: Option<BTreeMap<String, serde_json::Value>>,
}

/// A commit that came before this transaction's.
#[derive(Debug)]
pub struct WinningCommit {
    /// Its version.
    pub version: i64,
    /// Time of its file, milliseconds since the epoch.
    pub modified_ms: i64,
    /// The transaction that made it, if it says so.
    pub txn_id: Option<String>,
    /// Its time, where it has one inside.
    pub in_commit_timestamp: Option<i64>,
    /// The new protocol.
    pub protocol: Option<Protocol>,
    /// The new metadata.
    pub metadata: Option<Metadata>,
    pub(super) operation: String,
    pub(super) is_blind_append: bool,
    pub(super) identity_only: bool,
    pub(super) txns: Vec<SetTransaction>,
    pub(super) domains: Vec<DomainMetadata>,
    pub(super) files: Option<(FileBatch, FileBatch)>,
}

impl WinningCommit {
    /// Reads a commit; its file actions only where `adds` says with which columns.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the line.
    pub fn parse(
        version: i64,
        text: &Bytes,
        modified_ms: i64,
        adds: Option<FileActionProjection>,
    ) -> Result<Self> {
        let mut out = Self {
            version,
            modified_ms,
            txn_id: None,
            in_commit_timestamp: None,
            protocol: None,
            metadata: None,
            operation: String::new(),
            is_blind_append: false,
            identity_only: false,
            txns: Vec::new(),
            domains: Vec::new(),
            files: None,
        };
        let take = ActionSelection {
            protocol_and_metadata: true,
            transactions_and_domains: true,
            info: true,
            ..ActionSelection::default()
        };
        let parsed = match adds {
            None => commit::non_file_actions(text, &take),
            Some(wanted) => {
                let take = ActionSelection {
                    adds: Some(FileActionProjection {
                        row_ids: true,
                        ..wanted
                    }),
                    removes: Some(FileActionProjection::default()),
                    ..take
                };
                commit::parse(text, 0..text.len(), &take, &[]).map(|parsed| {
                    out.files = Some((parsed.adds, parsed.removes));
                    parsed.non_file_actions
                })
            }
        };
        let mut info = WinningCommitInfo::default();
        for single in parsed
            .at_file(&log_path::commit(version))
            .at_version(version)?
        {
            match single {
                NonFileAction::Protocol(protocol) => out.protocol = Some(protocol),
                NonFileAction::Metadata(metadata) => out.metadata = Some(*metadata),
                NonFileAction::Txn(txn) => out.txns.push(txn),
                NonFileAction::Domain(domain) => out.domains.push(domain),
                // What other writers put there in another form says nothing.
                NonFileAction::CommitInfo(text) => {
                    info = action::from_json("commitInfo", &text).unwrap_or_default();
                }
                NonFileAction::Sidecar(_) => {}
            }
        }
        out.identity_only = info
            .tags
            .as_ref()
            .and_then(|tags| tags.get(IDENTITY_TAG))
            .is_some_and(|tag| tag.as_str() == Some("true"));
        out.operation = info.operation.unwrap_or_default();
        out.is_blind_append = info.is_blind_append.unwrap_or(false);
        out.in_commit_timestamp = info.in_commit_timestamp;
        out.txn_id = info.txn_id;
        Ok(out)
    }

    pub(super) fn is_backfill(&self) -> bool {
        self.operation == "ROW TRACKING BACKFILL"
    }

    pub(super) fn is_unbackfill(&self) -> bool {
        self.operation == "ROW TRACKING UNBACKFILL"
    }

    pub(super) fn adds(&self) -> Option<&FileBatch> {
        self.files.as_ref().map(|(adds, _)| adds)
    }

    pub(super) fn removes(&self) -> Option<&FileBatch> {
        self.files.as_ref().map(|(_, removes)| removes)
    }

    /// How messages name it.
    pub(super) fn description(&self) -> String {
        if self.operation.is_empty() {
            format!("version {}", self.version)
        } else {
            format!("version {} ({})", self.version, self.operation)
        }
    }
}

/// What a transaction takes over from a commit that it may follow.
#[derive(Debug, Clone, Default)]
pub struct RebasedState {
    /// The protocol now in force.
    pub protocol: Option<Protocol>,
    /// The metadata now in force.
    pub metadata: Option<Metadata>,
    /// Row tracking was switched on: rows that were copied have lost their ids.
    pub row_ids_lost: bool,
    /// The new high-water mark of row ids.
    pub row_id_high_water_mark: Option<i64>,
    /// Row ids and versions that a backfill gave to files.
    pub backfilled: Vec<(String, i64, Option<i64>)>,
    /// Files that this transaction, a backfill, has nothing to do with any more.
    pub superseded_files: Vec<String>,
    /// Domains that the table, being replaced, loses.
    pub orphaned_domains: Vec<DomainMetadata>,
}
