//! A commit that took the version of a transaction, and the changes that the transaction takes over
//! from it.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use crate::error::{Result, ResultExt};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch};
use crate::protocol::action::{self, DomainMetadata, Metadata, Protocol, SetTransaction};
use crate::protocol::log_path;

/// The tag of commits whose metadata only moves identity columns' high-water marks.
pub(super) const IDENTITY_TAG: &str = "delta.identity.schemaUpdate";

/// The fields of `commitInfo` for the conflict check. Commits of other writers may lack any of
/// them.
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

/// A commit that preceded this transaction's.
#[derive(Debug)]
pub struct WinningCommit {
    /// Its version.
    pub version: i64,
    /// Modification time of its file, milliseconds since the epoch.
    pub modified_ms: i64,
    /// The id of its transaction, if recorded.
    pub txn_id: Option<String>,
    /// Its in-commit timestamp, if any.
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
    /// Reads a commit; file actions only if `adds` has their columns.
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
                // Values of other writers in another format are ignored.
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

    /// Its name in error messages.
    pub(super) fn description(&self) -> String {
        if self.operation.is_empty() {
            format!("version {}", self.version)
        } else {
            format!("version {} ({})", self.version, self.operation)
        }
    }
}

/// The changes that a transaction takes over from a commit that it may follow.
#[derive(Debug, Clone, Default)]
pub struct RebasedState {
    /// The new protocol.
    pub protocol: Option<Protocol>,
    /// The new metadata.
    pub metadata: Option<Metadata>,
    /// Whether row tracking was enabled: rows that were copied have lost their ids.
    pub row_ids_lost: bool,
    /// The new high-water mark of row ids.
    pub row_id_high_water_mark: Option<i64>,
    /// Row ids and versions that a backfill gave to files.
    pub backfilled: Vec<(String, i64, Option<i64>)>,
    /// Files that this transaction, a backfill, no longer has to add.
    pub superseded_files: Vec<String>,
    /// Domains that the table loses because it is replaced.
    pub orphaned_domains: Vec<DomainMetadata>,
}
