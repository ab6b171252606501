//! The conflict check: decides whether a transaction may follow a commit that took its version. A
//! pure function with the same results as delta-spark:
//!
//! | the other commit has | and this transaction | conflict |
//! |---|---|---|
//! | a protocol | writes one too; or the other dropped a feature | `ProtocolChanged` |
//! | metadata | writes some too | `MetadataChanged` |
//! | metadata that only moved identity columns' high-water marks, or only enabled what needs no rewrite | writes none | (none) |
//! | any other metadata | any | `MetadataChanged` |
//! | a domain | writes or read the same, except row tracking's | `ConcurrentTransaction` |
//! | an application's transaction | read or writes the same application's | `ConcurrentTransaction` |
//! | added files, unless a blind append or at `Serializable` | read rows that they may hold | `ConcurrentAppend` |
//! | removed files | read them, or the whole table | `ConcurrentDeleteRead` |
//! | removed files | removes them too | `ConcurrentDeleteDelete` |
//!
//! The check finds fewer conflicts than delta-spark's in two cases: files added by the other commit
//! are compared with the complete read predicate, by partition values *and* by statistics
//! (delta-spark: by partition values, and not at all on unpartitioned tables); and nested fields
//! may get their column mapping as well when it is enabled.
//!
//! A transaction that drops a feature is committed only if its caller checks again that the feature
//! is still unused.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{Array, StringViewArray};

use super::intent::{
    IsolationLevel, PreparedTransaction, ROW_TRACKING, canonical, parse_high_water_mark,
};
use super::rebase::CommitBaseState;
use super::winning_commit::{RebasedState, WinningCommit};
use crate::error::{ConflictKind, Error, ErrorCode, Result, ResultExt};
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::schema::{DataType, StructType};
use crate::scan::FileMatcher;

/// Whether `mine`, for which the table is in the state `view`, may follow `winner`, the next
/// commit; returns the changes that it takes over.
///
/// # Errors
/// [`Error::CommitFailed`] for a conflict, naming the other commit; [`Error::Unsupported`] if
/// deltafast cannot write the table after the other commit.
pub fn check(
    mine: &PreparedTransaction,
    view: &CommitBaseState,
    winner: &WinningCommit,
    lens: Option<&FileMatcher>,
) -> Result<RebasedState> {
    let comparison = CommitComparison {
        mine,
        view,
        winner,
        own: &mine.operation.name,
        other: winner.description(),
    };
    let mut adopted = RebasedState {
        protocol: comparison.check_protocol()?,
        ..RebasedState::default()
    };
    let protocol = winner.protocol.as_ref().unwrap_or(&view.protocol);
    comparison.check_metadata(protocol, &mut adopted)?;

    let supported = features::supported(protocol);
    if supported.contains("domainMetadata") {
        comparison.check_domains(&mut adopted)?;
    }
    comparison.check_transactions()?;

    adopted.row_id_high_water_mark = winner
        .domains
        .iter()
        .find(|d| d.domain == ROW_TRACKING && !d.removed)
        .and_then(|d| parse_high_water_mark(&d.configuration));
    if supported.contains("rowTracking") {
        check_backfill(mine, winner, &mut adopted)?;
    }
    comparison.check_added_files(lens)?;
    comparison.check_removed_files(&adopted.superseded_files)?;
    Ok(adopted)
}

/// A transaction and the commit that took its version.
struct CommitComparison<'a> {
    mine: &'a PreparedTransaction,
    view: &'a CommitBaseState,
    winner: &'a WinningCommit,
    /// The name of the transaction in error messages.
    own: &'a str,
    /// The name of the other commit in error messages.
    other: String,
}

impl CommitComparison<'_> {
    /// The error of a conflict.
    fn lost<T>(&self, conflict: ConflictKind, what: String) -> Result<T> {
        Err(Error::commit_failed(
            conflict,
            format!("{what}; nothing was committed, run the operation again on the newest version"),
        )
        .at_version(self.winner.version))
    }

    /// Checks the protocols of both; returns the one that the transaction takes over.
    fn check_protocol(&self) -> Result<Option<Protocol>> {
        let (mine, view, winner) = (self.mine, self.view, self.winner);
        let (own, other) = (self.own, &self.other);
        if let Some(protocol) = &winner.protocol {
            features::check_writable(protocol).at_version(winner.version)?;
            let dropped: Vec<String> = features::supported(&view.read_protocol)
                .difference(&features::supported(protocol))
                .cloned()
                .collect();
            if mine.protocol.is_some() || mine.read_version < 0 {
                return self.lost(
                    ConflictKind::ProtocolChanged,
                    format!("{own} changes the table's protocol, and so did {other}"),
                );
            }
            if !dropped.is_empty() {
                return self.lost(
                    ConflictKind::ProtocolChanged,
                    format!(
                        "{other} dropped the feature `{}` while {own} was under way",
                        dropped.join("`, `")
                    ),
                );
            }
        }
        if let Some(own_protocol) = &mine.protocol
            && mine.read_version >= 0
            && !mine.revalidates
            && !features::supported(&view.read_protocol)
                .is_subset(&features::supported(own_protocol))
        {
            return self.lost(
                ConflictKind::ProtocolChanged,
                format!("{own} drops a table feature, and {other} came in between"),
            );
        }
        Ok(winner.protocol.clone())
    }

    /// Checks the metadata of both under the newest `protocol`.
    fn check_metadata(&self, protocol: &Protocol, adopted: &mut RebasedState) -> Result<()> {
        let (mine, view, winner) = (self.mine, self.view, self.winner);
        let (own, other) = (self.own, &self.other);
        let Some(metadata) = &winner.metadata else {
            return Ok(());
        };
        if mine.read_version >= 0 && metadata.id != view.metadata.id {
            return Err(Error::invalid(format!(
                "the table was replaced by another one (its id was `{}` and is `{}`) while {own} was under way; open it again",
                view.metadata.id, metadata.id
            ))
            .at_version(winner.version));
        }
        if mine.metadata.is_some() {
            return self.lost(
                ConflictKind::MetadataChanged,
                format!("{own} changes the table's metadata, and so did {other}"),
            );
        }
        if !winner.identity_only {
            let Some(changed) = enables_only(&view.metadata, metadata, protocol) else {
                return self.lost(
                    ConflictKind::MetadataChanged,
                    format!("{other} changed the table's metadata while {own} was under way"),
                );
            };
            adopted.row_ids_lost = changed.contains("delta.enableRowTracking");
        }
        adopted.metadata = Some(metadata.clone());
        Ok(())
    }

    /// Checks that no domain is used by both, and finds those that a replaced table loses.
    fn check_domains(&self, adopted: &mut RebasedState) -> Result<()> {
        let (mine, winner) = (self.mine, self.winner);
        let own_domains: BTreeSet<&str> = mine
            .domains()
            .map(|d| d.domain.as_str())
            .chain(mine.reads.domains.iter().map(String::as_str))
            .collect();
        let others = || winner.domains.iter().filter(|d| d.domain != ROW_TRACKING);
        if let Some(both) = others().find(|d| own_domains.contains(d.domain.as_str())) {
            return self.lost(
                ConflictKind::ConcurrentTransaction,
                format!(
                    "{} and {} both use the domain `{}`",
                    self.own, self.other, both.domain
                ),
            );
        }
        if mine.operation.replaces_table() {
            adopted.orphaned_domains = others()
                .filter(|d| !d.removed)
                .map(|d| DomainMetadata {
                    removed: true,
                    ..d.clone()
                })
                .collect();
        }
        Ok(())
    }

    /// Checks that the other commit wrote no version of an application that the transaction read.
    fn check_transactions(&self) -> Result<()> {
        let (own, other) = (self.own, &self.other);
        let apps = &self.mine.reads.apps;
        match self
            .winner
            .txns
            .iter()
            .find(|txn| apps.contains(&txn.app_id))
        {
            Some(txn) => self.lost(
                ConflictKind::ConcurrentTransaction,
                format!(
                    "{other} wrote version {} of the application `{}`, which {own} depends on",
                    txn.version, txn.app_id
                ),
            ),
            None => Ok(()),
        }
    }

    /// Checks that the other commit added no file that the transaction should have read.
    fn check_added_files(&self, lens: Option<&FileMatcher>) -> Result<()> {
        let (mine, winner) = (self.mine, self.winner);
        let (own, other) = (self.own, &self.other);
        let backfills = winner.is_backfill()
            || winner.is_unbackfill()
            || mine.operation.is_backfill()
            || mine.operation.is_unbackfill();
        if !backfills && let Some(at) = unseen_add(mine, winner, lens) {
            let file = winner.adds().map_or("", |adds| path_at(&adds.path, at));
            let removes_read_files = removes_reads(mine, winner)?;
            let also = if removes_read_files {
                ", and removed files that it read"
            } else {
                ""
            };
            return self
                .lost(
                    ConflictKind::ConcurrentAppend,
                    format!("{other} added the file {file}, which {own} should have read{also}"),
                )
                .map_err(|error| {
                    error.with_code(
                        ErrorCode::ConcurrentAppend,
                        &[("removes_read_files", &removes_read_files)],
                    )
                });
        }
        Ok(())
    }

    /// Checks that the other commit removed no file that the transaction read, unless it is among
    /// the `superseded` ones, or removes.
    fn check_removed_files(&self, superseded: &[String]) -> Result<()> {
        let (mine, own, other) = (self.mine, self.own, &self.other);
        let Some(removes) = self.winner.removes() else {
            return Ok(());
        };
        let settled: BTreeSet<&String> = superseded.iter().collect();
        let mut deleted_twice = None;
        for at in 0..removes.len() {
            let path = canonical(removes.path.value(at))?;
            if mine.reads.files.contains(&path) && !settled.contains(&path) {
                return self.lost(
                    ConflictKind::ConcurrentDeleteRead,
                    format!("{other} removed the file {path}, which {own} read"),
                );
            }
            if mine.removed.contains(&path) {
                deleted_twice.get_or_insert(path);
            }
        }
        if !removes.is_empty() && mine.reads.whole_table {
            return self.lost(
                ConflictKind::ConcurrentDeleteRead,
                format!(
                    "{other} removed the file {}, and {own} read the whole table",
                    path_at(&removes.path, 0)
                ),
            );
        }
        if let Some(path) = deleted_twice {
            return self.lost(
                ConflictKind::ConcurrentDeleteDelete,
                format!("{other} removed the file {path}, which {own} removes too"),
            );
        }
        Ok(())
    }
}

fn path_at(paths: &StringViewArray, at: usize) -> &str {
    if at < paths.len() {
        paths.value(at)
    } else {
        ""
    }
}

/// Whether the other commit removed files that the transaction read.
fn removes_reads(mine: &PreparedTransaction, winner: &WinningCommit) -> Result<bool> {
    let Some(removes) = winner.removes() else {
        return Ok(false);
    };
    if mine.reads.whole_table {
        return Ok(!removes.is_empty());
    }
    for at in 0..removes.len() {
        let path = canonical(removes.path.value(at))?;
        if mine.reads.files.contains(&path) || mine.removed.contains(&path) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first file that the transaction should have read but did not see.
fn unseen_add(
    mine: &PreparedTransaction,
    winner: &WinningCommit,
    lens: Option<&FileMatcher>,
) -> Option<usize> {
    let adds = winner.adds().filter(|adds| !adds.is_empty())?;
    let counts = match mine.isolation {
        IsolationLevel::Snapshot => false,
        IsolationLevel::WriteSerializable => !winner.is_blind_append || mine.metadata.is_some(),
        IsolationLevel::Serializable => true,
    };
    if mine.is_blind_append || !counts {
        return None;
    }
    if mine.reads.whole_table {
        return Some(0);
    }
    // A predicate that cannot be evaluated counts as true.
    lens.and_then(|lens| lens.first_match(adds).unwrap_or(Some(0)))
}

/// Row ids assigned to existing files: by the other commit, or by this one.
fn check_backfill(
    mine: &PreparedTransaction,
    winner: &WinningCommit,
    adopted: &mut RebasedState,
) -> Result<()> {
    if mine.operation.is_unbackfill()
        && (winner.adds().is_some_and(|a| !a.is_empty())
            || winner.removes().is_some_and(|r| !r.is_empty()))
    {
        return Err(Error::commit_failed(
            ConflictKind::ConcurrentWrite,
            format!("{} changed files while row ids were taken away from them; run the operation again on the newest version", winner.description()),
        )
        .at_version(winner.version));
    }
    let Some(adds) = winner.adds() else {
        return Ok(());
    };
    if mine.operation.is_backfill() {
        // Every newer commit assigns row ids to its own files.
        for paths in [Some(adds), winner.removes()]
            .into_iter()
            .flatten()
            .map(|batch| &batch.path)
        {
            for at in 0..paths.len() {
                adopted.superseded_files.push(canonical(paths.value(at))?);
            }
        }
    }
    if winner.is_backfill() {
        let number = |column: &Option<arrow_array::Int64Array>, at: usize| {
            column
                .as_ref()
                .filter(|c| c.is_valid(at))
                .map(|c| c.value(at))
        };
        for at in 0..adds.len() {
            if let Some(base) = number(&adds.base_row_id, at) {
                adopted.backfilled.push((
                    canonical(adds.path.value(at))?,
                    base,
                    number(&adds.default_row_commit_version, at),
                ));
            }
        }
    }
    Ok(())
}

/// The properties that changed, if the metadata changed only by enabling features that do not
/// affect concurrent transactions: their actions remain valid.
fn enables_only(
    before: &Metadata,
    after: &Metadata,
    protocol: &Protocol,
) -> Option<BTreeSet<String>> {
    let same = |m: &Metadata| Metadata {
        configuration: BTreeMap::new(),
        schema_string: String::new(),
        ..m.clone()
    };
    if same(before) != same(after)
        || before
            .configuration
            .keys()
            .any(|key| !after.configuration.contains_key(key))
    {
        return None;
    }
    let changed: BTreeSet<String> = after
        .configuration
        .iter()
        .filter(|(key, value)| before.configuration.get(*key) != Some(value))
        .map(|(k, _)| k.clone())
        .collect();
    let supported = features::supported(protocol);
    let maps = features::column_mapping(protocol, before).ok()? == ColumnMapping::None
        && features::column_mapping(protocol, after).ok()? == ColumnMapping::Name;
    for key in &changed {
        let harmless = match key.as_str() {
            "delta.enableRowTracking" => supported.contains("rowTracking") && after.flag(key),
            "delta.rowTracking.materializedRowIdColumnName"
            | "delta.rowTracking.materializedRowCommitVersionColumnName" => {
                after.flag("delta.enableRowTracking")
            }
            "delta.columnMapping.mode" | "delta.columnMapping.maxColumnId" => maps,
            "delta.enableDeletionVectors" => {
                supported.contains("deletionVectors") && after.flag(key)
            }
            "delta.checkpointPolicy" => {
                supported.contains("v2Checkpoint")
                    && after
                        .configuration
                        .get(key)
                        .is_some_and(|v| v.eq_ignore_ascii_case("v2"))
            }
            "delta.enableInCommitTimestamps" => {
                supported.contains("inCommitTimestamp") && after.flag(key)
            }
            "delta.inCommitTimestampEnablementVersion"
            | "delta.inCommitTimestampEnablementTimestamp" => {
                after.flag("delta.enableInCommitTimestamps")
            }
            "io.unitycatalog.tableId" | "ucTableId" => true,
            _ => false,
        };
        if !harmless {
            return None;
        }
    }
    if before.schema_string != after.schema_string {
        let (old, new) = (
            StructType::parse(&before.schema_string).ok()?,
            StructType::parse(&after.schema_string).ok()?,
        );
        let unmapped =
            |schema: StructType| without_mapping(&DataType::Struct(std::sync::Arc::new(schema)));
        if unmapped(old.clone()) != unmapped(new.clone()) || (old != new && !maps) {
            return None;
        }
    }
    Some(changed)
}

/// A type without the ids and physical names of its fields.
fn without_mapping(data_type: &DataType) -> DataType {
    use crate::protocol::schema::{ArrayType, MapType};
    match data_type {
        DataType::Struct(inner) => {
            let mut out = inner.as_ref().clone();
            for field in &mut out.fields {
                field
                    .metadata
                    .retain(|key, _| !key.starts_with("delta.columnMapping."));
                field.data_type = without_mapping(&field.data_type);
            }
            DataType::Struct(out.into())
        }
        DataType::Array(array) => DataType::Array(
            ArrayType {
                element: without_mapping(&array.element),
                contains_null: array.contains_null,
            }
            .into(),
        ),
        DataType::Map(map) => {
            let (key, value) = (without_mapping(&map.key), without_mapping(&map.value));
            DataType::Map(
                MapType {
                    key,
                    value,
                    value_contains_null: map.value_contains_null,
                }
                .into(),
            )
        }
        other => other.clone(),
    }
}
