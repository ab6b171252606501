//! Protocol, metadata and other single actions of a version, compared with its checksum.

use super::arbitration::{ArbitrationResult, arbitrate, checkpoint_path, contradiction_error};
use super::commit_tail::{CHECKED_COMMIT, check_commit_tail};
use super::log_damage::{FallbackResult, fallback_warning, with_fallback};
use super::snapshot_warnings::SnapshotWarnings;
use crate::error::{Error, Result, ResultExt};
use crate::exec::now_ms;
use crate::log::{ChecksumFileContents, DeltaLog, LogListing, LogSegment};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::protocol::action::Metadata;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::properties;
use crate::protocol::schema::{DataType, StructType};
use crate::reconcile::{self, CommitCache, NonFileActions, TableActions};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// Reads protocol and metadata from the log and compares them with the version checksum.
pub(super) struct TableReader<'a> {
    pub(super) log: &'a DeltaLog,
    pub(super) commit_cache: &'a Arc<CommitCache>,
    pub(super) checksum: Option<&'a ChecksumFileContents>,
}

/// Protocol and metadata as the log has them.
pub(super) struct LoggedTable {
    pub(super) table: CheckedTable,
    /// The segment that could be read.
    pub(super) segment: LogSegment,
    /// The fields in which the version checksum differs.
    pub(super) contradicted: Vec<&'static str>,
}

impl TableReader<'_> {
    /// Reads a segment, or a weaker one if a checkpoint or compaction is damaged or wrong.
    pub(super) fn read(
        &self,
        listing: &LogListing,
        segment: LogSegment,
        warnings: &mut SnapshotWarnings,
    ) -> Result<LoggedTable> {
        let refused: RefCell<Option<Error>> = RefCell::new(None);
        let used = with_fallback(self.log, Some(listing), segment, |segment: &LogSegment| {
            self.read_checked(segment, &refused)
        });
        let FallbackResult {
            value: (table, is_from_checkpoint),
            segment,
            damage,
        } = used.map_err(|error| refused.take().unwrap_or(error))?;
        if let Some(damage) = damage {
            warnings.add(fallback_warning(&damage));
        }
        let contradicted = self.contradictions(&table.actions);
        if is_from_checkpoint
            && !contradicted.is_empty()
            && let Some((replayed, weaker)) =
                self.refute_checkpoint(&table.actions, &segment, warnings)?
        {
            return Ok(LoggedTable {
                contradicted: self.contradictions(&replayed),
                table: CheckedTable::new(replayed, self.log, weaker.version)?,
                segment: weaker,
            });
        }
        Ok(LoggedTable {
            table,
            segment,
            contradicted,
        })
    }

    /// The protocol and metadata of a segment, and whether one of them comes from the checkpoint.
    fn read_actions(&self, segment: &LogSegment) -> Result<(TableActions, bool)> {
        reconcile::read_table_actions(segment, self.commit_cache, self.log.stores().root())
    }

    /// The same, checked; `refused` keeps the first error that is treated as damage.
    fn read_checked(
        &self,
        segment: &LogSegment,
        refused: &RefCell<Option<Error>>,
    ) -> Result<(CheckedTable, bool)> {
        let (actions, is_from_checkpoint) = self.read_actions(segment)?;
        match (
            CheckedTable::check(&actions, self.log, segment.version),
            &segment.checkpoint,
        ) {
            (Ok((mapping, schema)), _) => {
                let table = CheckedTable {
                    actions,
                    mapping,
                    schema,
                };
                Ok((table, is_from_checkpoint))
            }
            // Invalid values are treated as damage of the checkpoint, unless the version checksum
            // has the same values.
            (Err(error), Some(checkpoint))
                if is_from_checkpoint
                    && (self.checksum.is_none() || !self.contradictions(&actions).is_empty()) =>
            {
                let damage = Error::corrupt(format!("the checkpoint has invalid values: {error}"));
                refused.borrow_mut().get_or_insert(error);
                Err(damage
                    .at_file(checkpoint_path(checkpoint))
                    .at_version(checkpoint.version))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The fields in which the version checksum, if there is one, contradicts the log.
    fn contradictions(&self, actions: &TableActions) -> Vec<&'static str> {
        self.checksum
            .map(|checksum| checksum.against_table(&actions.protocol, &actions.metadata))
            .unwrap_or_default()
    }

    /// Reads again without a checkpoint that the version checksum contradicts; returns the result
    /// if it differs.
    fn refute_checkpoint(
        &self,
        actions: &TableActions,
        segment: &LogSegment,
        warnings: &mut SnapshotWarnings,
    ) -> Result<Option<(TableActions, LogSegment)>> {
        let Some(checkpoint) = &segment.checkpoint else {
            return Ok(None);
        };
        let ruling = arbitrate(
            self.log,
            segment.version,
            (checkpoint, segment.skip),
            |segment: &LogSegment| self.read_actions(segment).map(|(actions, _)| actions),
            |other: &TableActions| actions.differences(other).is_empty(),
            |other: &TableActions| self.contradictions(other).is_empty(),
        )?;
        let ArbitrationResult::Refuted(replayed, weaker) = ruling else {
            return Ok(None);
        };
        let fields = actions.differences(&replayed).join("`, `");
        warnings.add(fallback_warning(&contradiction_error(
            checkpoint,
            &format!("the commits that it stands for in `{fields}`"),
        )));
        Ok(Some((replayed, *weaker)))
    }
}

/// Protocol and metadata that were checked to be readable by this release.
pub(super) struct CheckedTable {
    pub(super) actions: TableActions,
    pub(super) mapping: ColumnMapping,
    pub(super) schema: StructType,
}

impl CheckedTable {
    pub(super) fn new(actions: TableActions, log: &DeltaLog, version: i64) -> Result<Self> {
        let (mapping, schema) = Self::check(&actions, log, version)?;
        Ok(Self {
            actions,
            mapping,
            schema,
        })
    }

    /// The column mapping and schema, if everything required for reading is valid.
    fn check(
        actions: &TableActions,
        log: &DeltaLog,
        version: i64,
    ) -> Result<(ColumnMapping, StructType)> {
        let TableActions { protocol, metadata } = actions;
        features::check_readable(protocol)
            .at_file(log.stores().root().url())
            .at_version(version)?;
        if !metadata.format.provider.eq_ignore_ascii_case("parquet") {
            return Err(Error::unsupported(format!(
                "the table's data files are `{}`; only parquet is supported",
                metadata.format.provider
            ))
            .at_version(version));
        }
        let mapping = features::column_mapping(protocol, metadata).at_version(version)?;
        let schema = StructType::parse(&metadata.schema_string).at_version(version)?;
        validate_mapping(&schema, mapping).at_version(version)?;
        for (n, column) in metadata.partition_columns.iter().enumerate() {
            if metadata
                .partition_columns
                .iter()
                .take(n)
                .any(|other| other == column)
            {
                return Err(Error::corrupt(format!(
                    "the partition column `{column}` is named twice"
                ))
                .at_version(version));
            }
            if schema.field(column).is_none() {
                return Err(Error::corrupt(format!(
                    "the partition column `{column}` is not in the schema"
                ))
                .at_version(version));
            }
        }
        Ok((mapping, schema))
    }
}

/// Checks that every field has the id or name that the mapping mode requires, and that it is
/// unique.
fn validate_mapping(schema: &StructType, mapping: ColumnMapping) -> Result<()> {
    fn fields(data_type: &DataType, visit: &dyn Fn(&StructType) -> Result<()>) -> Result<()> {
        match data_type {
            DataType::Struct(inner) => {
                visit(inner)?;
                inner
                    .fields
                    .iter()
                    .try_for_each(|field| fields(&field.data_type, visit))
            }
            DataType::Array(array) => fields(&array.element, visit),
            DataType::Map(map) => {
                fields(&map.key, visit)?;
                fields(&map.value, visit)
            }
            _ => Ok(()),
        }
    }
    if mapping == ColumnMapping::None {
        return Ok(());
    }
    fields(&DataType::Struct(Arc::new(schema.clone())), &|parent| {
        let (mut ids, mut names) = (HashSet::new(), HashSet::new());
        for field in &parent.fields {
            if !field
                .metadata
                .get("delta.columnMapping.physicalName")
                .is_some_and(serde_json::Value::is_string)
            {
                return Err(Error::corrupt(format!(
                    "the column `{}` has no `delta.columnMapping.physicalName`",
                    field.name
                ))
                .at_column(&field.name));
            }
            if !names.insert(field.physical_name()) {
                return Err(Error::corrupt(format!(
                    "two columns have the physical name `{}`",
                    field.physical_name()
                ))
                .at_column(&field.name));
            }
            match field.field_id() {
                Some(id) if !ids.insert(id) => {
                    return Err(Error::corrupt(format!(
                        "two columns have the `delta.columnMapping.id` {id}"
                    ))
                    .at_column(&field.name));
                }
                None if mapping == ColumnMapping::Id => {
                    return Err(Error::corrupt(format!(
                        "the column `{}` has no `delta.columnMapping.id` of 32 bits",
                        field.name
                    ))
                    .at_column(&field.name));
                }
                _ => {}
            }
        }
        Ok(())
    })
}

/// Removes application transactions that are older than the table's retention. If that cannot be
/// read all are kept: without its transaction a batch would be written a second time.
pub(super) fn drop_expired_txns(sets: &mut NonFileActions, metadata: &Metadata) {
    const RETENTION: &str = "delta.setTransactionRetentionDuration";
    if metadata.configuration.contains_key(RETENTION)
        && let Ok(retention) = properties::retention_ms(&metadata.configuration, RETENTION)
    {
        let oldest = now_ms().saturating_sub(retention);
        sets.transactions
            .retain(|_, txn| txn.last_updated.is_some_and(|updated| updated > oldest));
    }
}

/// Whether protocol and metadata of a version checksum are used: if the log is remote or long,
/// unless the version's own commit contradicts it.
pub(super) fn is_checksum_credible(
    checksum: &ChecksumFileContents,
    log: &DeltaLog,
    segment: &LogSegment,
    texts: &Arc<CommitCache>,
) -> Result<bool> {
    // Reading a small local log is cheap and more reliable than a version checksum.
    if log.stores().root().url().starts_with("file:")
        && segment
            .commits
            .iter()
            .map(|c| c.file.size.unwrap_or(0))
            .sum::<u64>()
            <= LOOKED_AT
    {
        return Ok(false);
    }
    if features::check_readable(&checksum.protocol).is_err()
        || StructType::parse(&checksum.metadata.schema_string).is_err()
    {
        return Ok(false);
    }
    let Some(commit) = &segment.last_commit else {
        return Ok(true);
    };
    match commit.file.size {
        Some(size) if size <= CHECKED_COMMIT => {}
        size => {
            check_commit_tail(commit, size.unwrap_or(0))?;
            return Ok(true);
        }
    }
    let text = texts.get(commit)?;
    let take = ActionSelection {
        protocol_and_metadata: true,
        ..ActionSelection::default()
    };
    let (mut protocol, mut metadata) = (checksum.protocol.clone(), checksum.metadata.clone());
    for single in commit::non_file_actions(&text, &take)
        .at_file(&commit.file.path)
        .at_version(commit.version)?
    {
        match single {
            NonFileAction::Protocol(written) => protocol = written,
            NonFileAction::Metadata(written) => metadata = *written,
            _ => {}
        }
    }
    Ok(checksum.against_table(&protocol, &metadata).is_empty())
}

/// Up to this size the commits of a local log are read instead of trusting the version checksum.
pub(super) const LOOKED_AT: u64 = 16 << 20;
