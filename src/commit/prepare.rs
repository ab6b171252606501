//! Validation of a transaction before anything is written: from a draft to a prepared transaction.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Array;

use super::intent::{
    CommitOperation, IsolationLevel, PreparedTransaction, ROW_TRACKING, ReadSet, canonical,
};
use super::rebase::{CommitBaseState, assigns_row_ids, has_in_commit_timestamps};
use super::row_id_mark;
use crate::error::{Error, ErrorCode, Result, ResultExt, shown};
use crate::exec::{CancellationToken, RuntimeEnv};
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::protocol::action::{DomainMetadata, Metadata, Protocol};
use crate::protocol::commit_line::{Action, Add, CommitInfo, PartitionValues};
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::properties::MAX_COLUMN_ID;
use crate::protocol::schema::StructType;
use crate::protocol::{iceberg, properties, schema_change, stored_expressions, table};
use crate::snapshot::Snapshot;

/// The property that must be enabled in catalog-managed tables.
const TIMESTAMPS: &str = "delta.enableInCommitTimestamps";

/// The transaction as the caller built it.
#[derive(Debug, Clone, Default)]
pub(super) struct TransactionDraft {
    pub reads: ReadSet,
    pub actions: Vec<Action>,
    pub operation: CommitOperation,
    pub isolation: Option<IsolationLevel>,
    pub revalidate: Option<RevalidationHook>,
}

/// A check of the table.
type SnapshotValidator = dyn Fn(&Snapshot) -> Result<()> + Send + Sync;

/// Checks the table again before an attempt that follows concurrent commits.
#[derive(Clone)]
pub(super) struct RevalidationHook(pub Arc<SnapshotValidator>);

impl std::fmt::Debug for RevalidationHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Revalidate")
    }
}

/// Validates a draft against the table it was made from (`None` for a new one); returns the
/// prepared transaction and the state of the table that it is based on.
pub(super) fn prepare(
    mut draft: TransactionDraft,
    base: Option<&Snapshot>,
    is_catalog: bool,
    env: &dyn RuntimeEnv,
    cancel: &CancellationToken,
) -> Result<(PreparedTransaction, CommitBaseState)> {
    let now = env.now_ms();
    check_operation(&draft.operation)?;
    let (mut protocol, mut metadata) = take_protocol_metadata(&mut draft.actions)?;
    if is_catalog {
        // Tables that a catalog creates are catalog-managed, and catalog-managed tables have
        // in-commit timestamps.
        if base.is_none() {
            protocol = protocol.map(|protocol| {
                features::with_features(&protocol, &BTreeSet::from(["catalogManaged".to_owned()]))
            });
        }
        if let Some(new) = &mut metadata {
            new.configuration
                .entry(TIMESTAMPS.to_owned())
                .or_insert_with(|| "true".to_owned());
        }
    }
    check_unique_actions(&draft.actions)?;
    let table = TableTransition::new(base, protocol, metadata)?;
    if table.protocol.has_writer_feature("catalogManaged") != is_catalog {
        return Err(if is_catalog {
            Error::invalid(
                "a committer was given for a table without the feature `catalogManaged`; open it without one",
            )
        } else {
            features::committer_needed_error()
        });
    }
    if is_catalog && !table.metadata.flag(TIMESTAMPS) {
        return Err(Error::invalid(format!(
            "`{TIMESTAMPS}` must stay true: a catalog manages the table"
        )));
    }
    fill_action_defaults(&mut draft.actions, now);
    let removed = table.check_files(base, &draft.actions)?;
    table.check_domains(&draft.actions)?;
    if let Some(base) = base
        && table.starts_row_tracking(base)
        && !draft.operation.is_backfill()
    {
        check_backfilled(base, &draft.actions, cancel)?;
    }

    let mut reads = draft.reads;
    // Writing an application transaction depends on the previous version of the application.
    reads
        .apps
        .extend(draft.actions.iter().filter_map(|action| match action {
            Action::Txn(txn) => Some(txn.app_id.clone()),
            _ => None,
        }));
    let files = || {
        draft
            .actions
            .iter()
            .filter(|a| matches!(a, Action::Add(_) | Action::Remove(_) | Action::Cdc(_)))
    };
    let only_adds = files().all(|a| matches!(a, Action::Add(_)));
    let is_blind_append = only_adds && !reads.reads_rows();
    let isolation = match draft.isolation {
        _ if changes_no_rows(&draft.actions)
            && table.new_metadata.is_none()
            && table.new_protocol.is_none() =>
        {
            IsolationLevel::Snapshot
        }
        Some(level) => level,
        None => IsolationLevel::parse(
            properties::value(&table.read_metadata.configuration, "delta.isolationLevel")
                .unwrap_or_default(),
        )
        .unwrap_or(IsolationLevel::Serializable),
    };
    let view = table.base_state(base, &draft.actions, cancel)?;
    let intent = PreparedTransaction {
        txn_id: env.uuid(),
        read_version: base.map_or(-1, Snapshot::version),
        reads,
        actions: draft.actions,
        protocol: table.new_protocol,
        metadata: table.new_metadata,
        operation: draft.operation,
        isolation,
        is_blind_append,
        removed,
        revalidates: draft.revalidate.is_some(),
    };
    Ok((intent, view))
}

fn check_operation(operation: &CommitOperation) -> Result<()> {
    if operation.name.is_empty() {
        return Err(Error::invalid("a commit needs the name of its operation"));
    }
    match operation
        .extra
        .keys()
        .find(|key| CommitInfo::is_reserved(key))
    {
        Some(key) => Err(Error::invalid(format!(
            "custom commit metadata cannot have the key `{}`, which is the protocol's",
            shown(key)
        ))),
        None => Ok(()),
    }
}

/// Removes protocol and metadata from the actions.
fn take_protocol_metadata(
    actions: &mut Vec<Action>,
) -> Result<(Option<Protocol>, Option<Metadata>)> {
    let (mut protocol, mut metadata) = (None, None);
    let mut rest = Vec::with_capacity(actions.len());
    let twice = |name: &str| {
        Err(Error::invalid(format!(
            "a commit can hold one `{name}` action, not two"
        )))
    };
    for action in actions.drain(..) {
        match action {
            Action::Protocol(_) if protocol.is_some() => return twice("protocol"),
            Action::MetaData(_) if metadata.is_some() => return twice("metaData"),
            Action::Protocol(new) => protocol = Some(new),
            Action::MetaData(new) => metadata = Some(*new),
            other => rest.push(other),
        }
    }
    *actions = rest;
    Ok((protocol, metadata))
}

/// Checks that there is one transaction per application and one action per domain.
fn check_unique_actions(actions: &[Action]) -> Result<()> {
    let (mut apps, mut domains) = (HashSet::new(), HashSet::new());
    for action in actions {
        match action {
            Action::Txn(txn) if !apps.insert(&txn.app_id) => {
                return Err(Error::invalid(format!(
                    "a commit can hold one `txn` action of the application `{}`, not two",
                    shown(&txn.app_id)
                )));
            }
            Action::DomainMetadata(domain) if !domains.insert(&domain.domain) => {
                return Err(Error::invalid(format!(
                    "a commit can hold one action of the domain `{}`, not two",
                    shown(&domain.domain)
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds the fields that every writer writes.
fn fill_action_defaults(actions: &mut [Action], now: i64) {
    // A file that gets another deletion vector is still the same file.
    let kept: HashMap<String, (Option<i64>, Option<i64>)> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Remove(remove) => Some((
                remove.path.clone(),
                (remove.base_row_id, remove.default_row_commit_version),
            )),
            _ => None,
        })
        .collect();
    for action in actions {
        match action {
            Action::Remove(remove) => {
                remove.deletion_timestamp.get_or_insert(now);
                if remove.partition_values.is_some() && remove.size.is_some() {
                    remove.extended_file_metadata.get_or_insert(true);
                }
            }
            Action::Txn(txn) => _ = txn.last_updated.get_or_insert(now),
            Action::Add(add) => {
                if let Some((base, version)) = kept.get(&add.path) {
                    add.base_row_id = add.base_row_id.or(*base);
                    add.default_row_commit_version = add.default_row_commit_version.or(*version);
                }
            }
            _ => {}
        }
    }
}

fn changes_no_rows(actions: &[Action]) -> bool {
    actions.iter().all(|action| match action {
        Action::Add(add) => !add.data_change,
        Action::Remove(remove) => !remove.data_change,
        Action::Cdc(_) => true,
        Action::DomainMetadata(domain) => domain.domain == ROW_TRACKING,
        _ => false,
    })
}

/// The state of the table before and after the transaction.
struct TableTransition {
    read_protocol: Protocol,
    read_metadata: Metadata,
    new_protocol: Option<Protocol>,
    new_metadata: Option<Metadata>,
    /// In force after the commit.
    protocol: Protocol,
    metadata: Metadata,
    partition_columns: BTreeSet<String>,
}

impl TableTransition {
    fn new(
        base: Option<&Snapshot>,
        protocol: Option<Protocol>,
        metadata: Option<Metadata>,
    ) -> Result<Self> {
        let (read_protocol, read_metadata) = match (base, &protocol, &metadata) {
            (Some(base), ..) => (base.protocol().clone(), base.metadata().clone()),
            (None, Some(protocol), Some(metadata)) => (protocol.clone(), metadata.clone()),
            (None, ..) => {
                return Err(Error::invalid(
                    "the first commit of a table needs a `protocol` and a `metaData` action",
                ));
            }
        };
        if base.is_some() {
            features::check_writable(&read_protocol)?;
        }
        let effective = metadata.as_ref().unwrap_or(&read_metadata);
        properties::check_switches(&effective.configuration)?;
        let schema = StructType::parse(&effective.schema_string)?;
        let asked = protocol.as_ref().unwrap_or(&read_protocol);
        // Features that the metadata enables are added to the protocol.
        let sufficient = if metadata.is_some() || protocol.is_some() {
            table::sufficient(asked, effective, &schema)?
        } else {
            asked.clone()
        };
        features::check_writable(&sufficient)?;
        let new_protocol = if base.is_none() || sufficient != read_protocol {
            Some(sufficient.clone())
        } else {
            None
        };
        let mapping = features::column_mapping(&sufficient, effective)?;
        if let Some(new) = &metadata {
            check_metadata(base.map(Snapshot::metadata), new, &schema, mapping)?;
        }
        let physical = |name: &String| match schema.field(name) {
            Some(field) if mapping != ColumnMapping::None => field.physical_name().to_owned(),
            _ => name.clone(),
        };
        let partition_columns = effective.partition_columns.iter().map(physical).collect();
        Ok(Self {
            read_protocol,
            protocol: sufficient,
            metadata: effective.clone(),
            new_protocol,
            new_metadata: metadata,
            read_metadata,
            partition_columns,
        })
    }

    /// Checks the file actions; returns the canonical paths of the removed files.
    fn check_files(&self, base: Option<&Snapshot>, actions: &[Action]) -> Result<HashSet<String>> {
        let (vectors, tracks_rows) = (
            self.supports_feature("deletionVectors"),
            self.supports_feature("rowTracking"),
        );
        let row_ids = assigns_row_ids(&self.protocol, &self.metadata);
        let removes_rows = actions
            .iter()
            .any(|action| matches!(action, Action::Remove(remove) if remove.data_change));
        let appends_only = removes_rows && self.is_append_only()?;
        let iceberg = iceberg::enabled_iceberg_compat(&self.metadata).is_some();
        let mut adds: HashMap<String, Option<String>> = HashMap::new();
        let mut removes: HashMap<String, Option<String>> = HashMap::new();
        for action in actions {
            match action {
                Action::Add(add) => {
                    let path = canonical(&add.path)?;
                    let refuse = |what: String| Err(Error::invalid(what).at_file(&add.path));
                    self.check_partition(&add.path, &add.partition_values)?;
                    if add.size < 0 {
                        return refuse(format!("a file cannot have a size of {}", add.size));
                    }
                    if add.deletion_vector.is_some() && !vectors {
                        return Err(Error::unsupported_feature(
                            "deletionVectors",
                            "a file has a deletion vector and the table has not the feature `deletionVectors`",
                        )
                        .at_file(&add.path));
                    }
                    let counted = add.num_records().is_some();
                    if !counted
                        && (add.deletion_vector.is_some()
                            || iceberg
                            || (row_ids && add.base_row_id.is_none()))
                    {
                        return refuse(
                            "the file needs `numRecords` in its statistics: the table tracks rows, deletes them by vectors or is read by Iceberg".to_owned(),
                        );
                    }
                    if add.base_row_id.is_some() && !tracks_rows {
                        return Err(Error::unsupported_feature(
                            "rowTracking",
                            "a file has row ids and the table has not the feature `rowTracking`",
                        )
                        .at_file(&add.path));
                    }
                    if adds.insert(path, deletion_vector_id(add)).is_some() {
                        return refuse("a commit can add a file once, not twice".to_owned());
                    }
                }
                Action::Remove(remove) => {
                    let path = canonical(&remove.path)?;
                    if base.is_none() {
                        return Err(Error::invalid(
                            "the first commit of a table cannot remove files",
                        )
                        .at_file(&remove.path));
                    }
                    if appends_only && remove.data_change {
                        return Err(properties::append_only_error().at_file(&remove.path));
                    }
                    let vector = remove
                        .deletion_vector
                        .as_ref()
                        .map(crate::protocol::commit_line::DeletionVectorDescriptor::unique_id);
                    if removes.insert(path, vector).is_some() {
                        return Err(Error::invalid("a commit can remove a file once, not twice")
                            .at_file(&remove.path));
                    }
                }
                Action::Cdc(cdc) => self.check_partition(&cdc.path, &cdc.partition_values)?,
                _ => {}
            }
        }
        if let Some((path, _)) = removes
            .iter()
            .find(|(path, vector)| adds.get(*path) == Some(*vector))
        {
            return Err(Error::invalid(
                "a commit cannot both add and remove a file with the same deletion vector",
            )
            .with_code(ErrorCode::AddAndRemoveOfOneFile, &[("path", path)])
            .at_file(path));
        }
        Ok(removes.into_keys().collect())
    }

    /// Whether the table is append-only before or after the commit.
    fn is_append_only(&self) -> Result<bool> {
        properties::check_switches(&self.read_metadata.configuration)?;
        Ok(self.supports_feature("appendOnly")
            && [&self.read_metadata, &self.metadata]
                .iter()
                .any(|metadata| metadata.flag("delta.appendOnly")))
    }

    fn supports_feature(&self, feature: &str) -> bool {
        features::supported(&self.protocol).contains(feature)
    }

    fn check_partition(&self, path: &str, values: &PartitionValues) -> Result<()> {
        let exact = values.len() == self.partition_columns.len()
            && values
                .keys()
                .all(|key| self.partition_columns.contains(key));
        if exact {
            return Ok(());
        }
        let list = |names: Vec<&String>| {
            if names.is_empty() {
                "none".to_owned()
            } else {
                names
                    .into_iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", ")
            }
        };
        Err(Error::invalid(format!(
            "a file's partition values must be those of the partition columns ({}), not of {}",
            list(self.partition_columns.iter().collect()),
            list(values.keys().collect())
        ))
        .at_file(path))
    }

    fn check_domains(&self, actions: &[Action]) -> Result<()> {
        let domain = actions.iter().find_map(|action| match action {
            Action::DomainMetadata(domain) => Some(domain),
            _ => None,
        });
        match domain {
            Some(DomainMetadata { domain, .. }) if !self.supports_feature("domainMetadata") => {
                Err(Error::unsupported_feature(
                    "domainMetadata",
                    format!(
                        "the domain `{}` needs the table feature `domainMetadata`; set `delta.feature.domainMetadata` to `supported` first",
                        shown(domain)
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether this commit enables row tracking.
    fn starts_row_tracking(&self, base: &Snapshot) -> bool {
        const KEY: &str = "delta.enableRowTracking";
        self.metadata.flag(KEY)
            && !(base.metadata().flag(KEY)
                && features::supported(base.protocol()).contains("rowTracking"))
    }

    fn base_state(
        &self,
        base: Option<&Snapshot>,
        actions: &[Action],
        cancel: &CancellationToken,
    ) -> Result<CommitBaseState> {
        let Some(base) = base else {
            return Ok(CommitBaseState::new(
                -1,
                self.read_protocol.clone(),
                self.read_metadata.clone(),
                -1,
                i64::MIN,
            ));
        };
        let mark = if self.supports_feature("rowTracking") && actions.iter().any(needs_row_id_mark)
        {
            row_id_mark::row_id_high_water_mark(base, cancel)?
        } else {
            -1
        };
        let time = if has_in_commit_timestamps(&self.protocol, &self.metadata) {
            base.timestamp_ms()?
        } else {
            i64::MIN
        };
        Ok(CommitBaseState::new(
            base.version(),
            self.read_protocol.clone(),
            self.read_metadata.clone(),
            mark,
            time,
        ))
    }
}

/// Whether the highest assigned row id decides what is written for the action.
fn needs_row_id_mark(action: &Action) -> bool {
    match action {
        Action::Add(add) => add.base_row_id.is_none(),
        Action::DomainMetadata(domain) => domain.domain == ROW_TRACKING,
        _ => false,
    }
}

fn deletion_vector_id(add: &Add) -> Option<String> {
    add.deletion_vector
        .as_ref()
        .map(crate::protocol::commit_line::DeletionVectorDescriptor::unique_id)
}

/// Checks new metadata, compared to the old metadata if there is any.
fn check_metadata(
    old: Option<&Metadata>,
    new: &Metadata,
    schema: &StructType,
    mapping: ColumnMapping,
) -> Result<()> {
    let change_feed = [
        "delta.enableChangeDataFeed",
        "delta.enableChangeDataCapture",
    ]
    .iter()
    .any(|key| new.flag(key));
    schema_change::check(schema, &new.partition_columns, change_feed)?;
    let is_mapped = mapping != ColumnMapping::None;
    let max_id = if is_mapped {
        properties::max_column_id(&new.configuration)?
    } else {
        0
    };
    let max_schema_id = schema_change::max_column_id(schema);
    if is_mapped && max_id < max_schema_id {
        return Err(Error::invalid(format!(
            "`{MAX_COLUMN_ID}` is {max_id} and the schema has the column id {max_schema_id}"
        )));
    }
    let Some(old) = old else { return Ok(()) };
    if old.id != new.id {
        return Err(Error::invalid(format!(
            "the table's id must stay `{}`, the new metadata has `{}`",
            shown(&old.id),
            shown(&new.id)
        )));
    }
    iceberg::check_partitions(old, new)?;
    stored_expressions::check_new_columns(old, new, schema)?;
    // Ids are never reused, even after column mapping was disabled.
    if is_mapped && max_id < properties::max_column_id(&old.configuration)? {
        return Err(Error::invalid(format!(
            "`{MAX_COLUMN_ID}` can only grow: it is {} and the new metadata has {max_id}",
            properties::max_column_id(&old.configuration)?
        )));
    }
    Ok(())
}

/// Checks that every file has row ids before row tracking is enabled: files of the table, and files
/// that this commit adds.
fn check_backfilled(base: &Snapshot, actions: &[Action], cancel: &CancellationToken) -> Result<()> {
    let touched: HashSet<String> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Add(add) => Some(canonical(&add.path)),
            Action::Remove(remove) => Some(canonical(&remove.path)),
            _ => None,
        })
        .collect::<Result<_>>()?;
    for batch in base.files(
        FileActionKind::Adds,
        FileActionProjection {
            row_ids: true,
            ..FileActionProjection::default()
        },
        cancel,
    )? {
        let batch = batch?;
        for row in 0..batch.len() {
            let has_ids = batch
                .base_row_id
                .as_ref()
                .is_some_and(|ids| ids.is_valid(row));
            if !has_ids && !touched.contains(&canonical(batch.path.value(row))?) {
                return Err(Error::invalid(
                    "`delta.enableRowTracking` can be set once every file has row ids; add the feature `rowTracking` and backfill them first",
                ))
                .at_file(batch.path.value(row));
            }
        }
    }
    Ok(())
}
