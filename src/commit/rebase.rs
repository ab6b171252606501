//! The state of the table on which a transaction is based while it is tried, and the content of its
//! commit for that state.
//!
//! The content is made again for every version: row ids start after the current high-water mark,
//! new files get the version, and the timestamp follows the previous one. So rebasing a transaction
//! only takes over the changes of the other commit.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;

use super::intent::{
    PreparedTransaction, ROW_TRACKING, canonical, parse_high_water_mark, row_id_domain,
};
use super::winning_commit::{IDENTITY_TAG, RebasedState, WinningCommit};
use crate::error::{Error, Result};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::{Action, Add, CommitInfo, push_line};
use crate::protocol::features;
use crate::protocol::properties::PROTECTED;

const ENABLED_VERSION: &str = "delta.inCommitTimestampEnablementVersion";
const ENABLED_TIMESTAMP: &str = "delta.inCommitTimestampEnablementTimestamp";

/// The state of the table before the next attempt.
#[derive(Debug, Clone)]
pub struct CommitBaseState {
    /// Its version; -1 for a new table.
    pub version: i64,
    /// The current protocol.
    pub protocol: Protocol,
    /// The current metadata.
    pub metadata: Metadata,
    /// The protocol that the transaction read.
    pub read_protocol: Protocol,
    /// The highest row id assigned so far.
    pub row_id_high_water_mark: i64,
    /// Time of the version, milliseconds since the epoch.
    pub timestamp_ms: i64,
    row_ids_lost: bool,
    backfilled: HashMap<String, (i64, Option<i64>)>,
    superseded_files: HashSet<String>,
    orphaned_domains: BTreeMap<String, DomainMetadata>,
}

/// Whether in-commit timestamps are enabled.
pub(super) fn has_in_commit_timestamps(protocol: &Protocol, metadata: &Metadata) -> bool {
    protocol.has_writer_feature("inCommitTimestamp")
        && metadata.flag("delta.enableInCommitTimestamps")
}

/// Whether new files get row ids.
pub(super) fn assigns_row_ids(protocol: &Protocol, metadata: &Metadata) -> bool {
    protocol.has_writer_feature("rowTracking") && !metadata.flag("delta.rowTrackingSuspended")
}

impl CommitBaseState {
    /// The state of the table as it was read.
    #[must_use]
    pub fn new(
        version: i64,
        protocol: Protocol,
        metadata: Metadata,
        row_id_mark: i64,
        timestamp_ms: i64,
    ) -> Self {
        Self {
            version,
            read_protocol: protocol.clone(),
            protocol,
            metadata,
            row_id_high_water_mark: row_id_mark,
            timestamp_ms,
            row_ids_lost: false,
            backfilled: HashMap::new(),
            superseded_files: HashSet::new(),
            orphaned_domains: BTreeMap::new(),
        }
    }

    /// The state of the table after `winner`, which does not conflict.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the winner lacks a required timestamp.
    pub fn rebased_onto(mut self, winner: &WinningCommit, adopted: RebasedState) -> Result<Self> {
        self.version = winner.version;
        if let Some(protocol) = adopted.protocol {
            self.protocol = protocol;
        }
        if let Some(metadata) = adopted.metadata {
            self.metadata = metadata;
        }
        self.timestamp_ms = if has_in_commit_timestamps(&self.protocol, &self.metadata) {
            winner.in_commit_timestamp.ok_or_else(|| {
                Error::corrupt("the table has in-commit timestamps but the commit has no `commitInfo.inCommitTimestamp`").at_version(winner.version)
            })?
        } else {
            winner.modified_ms
        };
        self.row_id_high_water_mark = adopted
            .row_id_high_water_mark
            .unwrap_or(self.row_id_high_water_mark)
            .max(self.row_id_high_water_mark);
        self.row_ids_lost |= adopted.row_ids_lost;
        self.backfilled.extend(
            adopted
                .backfilled
                .into_iter()
                .map(|(path, base, version)| (path, (base, version))),
        );
        self.superseded_files.extend(adopted.superseded_files);
        self.orphaned_domains.extend(
            adopted
                .orphaned_domains
                .into_iter()
                .map(|d| (d.domain.clone(), d)),
        );
        Ok(self)
    }

    /// The content of the commit of the next version. `now_ms` is the writer's clock.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a new file requires row ids and its statistics lack the number of
    /// rows.
    pub fn commit_bytes(&self, intent: &PreparedTransaction, now_ms: i64) -> Result<Bytes> {
        let version = self.version + 1;
        let protocol = intent.protocol.as_ref().unwrap_or(&self.protocol);
        let mut metadata = intent.metadata.clone();
        let effective = metadata.as_ref().unwrap_or(&self.metadata);
        let timestamp = has_in_commit_timestamps(protocol, effective)
            .then(|| now_ms.max(self.timestamp_ms.saturating_add(1)));
        if let (Some(timestamp), Some(metadata)) = (timestamp, &mut metadata)
            && version > 0
            && !has_in_commit_timestamps(&self.protocol, &self.metadata)
        {
            metadata
                .configuration
                .insert(ENABLED_VERSION.to_owned(), version.to_string());
            metadata
                .configuration
                .insert(ENABLED_TIMESTAMP.to_owned(), timestamp.to_string());
        }
        if let Some(metadata) = &mut metadata
            && let Some(protected) = metadata.configuration.get_mut(PROTECTED)
            && self.metadata.configuration.get(PROTECTED) != Some(&*protected)
        {
            // It concerns the history before this commit, so it is set to the version that is
            // tried.
            *protected = version.to_string();
        }
        let gives_row_ids = assigns_row_ids(protocol, metadata.as_ref().unwrap_or(&self.metadata));
        let given = intent
            .domains()
            .find(|d| d.domain == ROW_TRACKING && !d.removed)
            .and_then(|d| parse_high_water_mark(&d.configuration));
        let mut mark = self.row_id_high_water_mark.max(given.unwrap_or(-1));
        let mut moved = given.is_some();
        let mut lines: Vec<u8> = Vec::with_capacity(512 * (intent.actions.len() + 3));
        for action in &intent.actions {
            match action {
                Action::Add(add) => {
                    if self.is_superseded_file(&add.path)? {
                        continue;
                    }
                    let fresh = self.with_row_ids(add, gives_row_ids, &mut mark, version)?;
                    moved |= fresh.base_row_id.is_some() && add.base_row_id.is_none();
                    push_line(&mut lines, &Action::Add(fresh))?;
                }
                Action::Remove(remove) => {
                    let mut remove = remove.clone();
                    if let Some((base, version)) = self.backfilled(&remove.path)? {
                        remove.base_row_id = Some(base);
                        remove.default_row_commit_version = version;
                    }
                    push_line(&mut lines, &Action::Remove(remove))?;
                }
                // Written below, with the current high-water mark.
                Action::DomainMetadata(domain)
                    if domain.domain == ROW_TRACKING && !domain.removed => {}
                other => push_line(&mut lines, other)?,
            }
        }
        let mut out: Vec<u8> = Vec::with_capacity(lines.len() + 4096);
        push_line(
            &mut out,
            &CommitInfoLine {
                commit_info: self.commit_info(intent, timestamp, now_ms),
            },
        )?;
        if let Some(protocol) = &intent.protocol {
            push_line(&mut out, &Action::Protocol(protocol.clone()))?;
        }
        if let Some(metadata) = metadata {
            push_line(&mut out, &Action::MetaData(Box::new(metadata)))?;
        }
        if moved {
            push_line(&mut out, &Action::DomainMetadata(row_id_domain(mark)))?;
        }
        for domain in self.orphaned_domains.values() {
            push_line(&mut out, &Action::DomainMetadata(domain.clone()))?;
        }
        out.append(&mut lines);
        Ok(out.into())
    }

    fn backfilled(&self, path: &str) -> Result<Option<(i64, Option<i64>)>> {
        if self.backfilled.is_empty() {
            Ok(None)
        } else {
            Ok(self.backfilled.get(&canonical(path)?).copied())
        }
    }

    fn is_superseded_file(&self, path: &str) -> Result<bool> {
        Ok(!self.superseded_files.is_empty() && self.superseded_files.contains(&canonical(path)?))
    }

    fn with_row_ids(
        &self,
        add: &Add,
        gives_row_ids: bool,
        mark: &mut i64,
        version: i64,
    ) -> Result<Add> {
        let mut add = add.clone();
        if let Some((base, version)) = self.backfilled(&add.path)? {
            add.base_row_id = Some(base);
            add.default_row_commit_version = version;
        }
        if gives_row_ids {
            if add.base_row_id.is_none() {
                let rows = add.num_records().ok_or_else(|| {
                    Error::invalid(format!(
                        "the file {} needs `numRecords` in its statistics: the table tracks rows",
                        add.path
                    ))
                })?;
                let last_id = (rows >= 0).then(|| mark.checked_add(rows)).flatten();
                let last_id = last_id.ok_or_else(|| {
                    Error::invalid(format!(
                        "no row ids are left for the {rows} rows of a file: the highest one assigned is {mark}"
                    ))
                    .at_file(&add.path)
                })?;
                add.base_row_id = Some(last_id - rows + 1);
                *mark = last_id;
            }
            add.default_row_commit_version.get_or_insert(version);
        }
        Ok(add)
    }

    fn commit_info(
        &self,
        intent: &PreparedTransaction,
        in_commit_timestamp: Option<i64>,
        now_ms: i64,
    ) -> CommitInfo {
        let operation = &intent.operation;
        let mut tags = BTreeMap::new();
        if operation.identity_only {
            tags.insert(IDENTITY_TAG.to_owned(), "true".to_owned());
        }
        let metadata = intent.metadata.as_ref().unwrap_or(&self.metadata);
        let protocol = intent.protocol.as_ref().unwrap_or(&self.protocol);
        if features::supported(protocol).contains("rowTracking")
            && metadata.flag("delta.enableRowTracking")
        {
            let preserved = !self.row_ids_lost
                && operation
                    .row_ids_preserved
                    .unwrap_or(intent.removed.is_empty());
            tags.insert(
                "delta.rowTracking.preserved".to_owned(),
                preserved.to_string(),
            );
        }
        CommitInfo {
            in_commit_timestamp,
            timestamp: in_commit_timestamp.unwrap_or(now_ms),
            operation: operation.name.clone(),
            operation_parameters: operation.parameters.clone(),
            read_version: (intent.read_version >= 0).then_some(intent.read_version),
            isolation_level: intent.isolation.name().to_owned(),
            is_blind_append: intent.is_blind_append,
            data_change: intent.actions.iter().any(Action::changes_rows),
            operation_metrics: operation.metrics.clone(),
            user_metadata: operation.user_metadata.clone(),
            tags,
            engine_info: concat!("deltafast/", env!("CARGO_PKG_VERSION")).to_owned(),
            txn_id: intent.txn_id.clone(),
            extra: operation.extra.clone(),
        }
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct CommitInfoLine {
    commit_info: CommitInfo,
}
