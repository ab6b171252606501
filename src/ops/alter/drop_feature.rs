//! DROP FEATURE: first removes all uses of a table feature, then removes it from the protocol.
//!
//! Uses of the feature are removed in commits of their own: properties, rewritten files, domains,
//! row ids. Older versions still use the feature. For a writer feature that is harmless. For a
//! reader feature, either readers that do not support it must not read versions before the drop,
//! which the feature `checkpointProtection` ensures together with three empty versions with
//! checkpoints; or the history that uses the feature is deleted once it is old enough
//! (`truncate_history`).
//!
//! The same features can be dropped as with delta-spark 4.4, in the same steps and under the same
//! operation names.
//!
//! Protocol: "Table Features", "Checkpoint Protection", and the sections of the features. Cost: a
//! few commits, the files that are rewritten, three checkpoints; with `truncate_history` all
//! commits are read.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arrow_array::Array;
use serde_json::{Value, json};

use crate::checkpoint::{self, CleanupOptions};
use crate::commit::adds::{all_live_adds, matching_live_adds};
use crate::commit::finish::{CommitOptions, CommitResult, json_string_list};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::dv::DvPath;
use crate::error::{
    CallOption, ConflictKind, Error, ErrorCode, Result, ResultExt, invariant, shown,
};
use crate::exec::now_ms;
use crate::exec::{CancellationToken, map_all};
use crate::ops::alter::multi_commit::MultiCommitCommand;
use crate::ops::alter::{feature_usage, row_id_backfill};
use crate::ops::rewrite::clustering_domain::{clustering_columns, clustering_domain};
use crate::ops::rewrite::start_state::check_writable;
use crate::ops::rewrite::target_table::{DataFileOptions, TargetTable};
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::pq::infer_schema;
use crate::protocol::action::{DomainMetadata, Metadata};
use crate::protocol::commit_line::{Action, Add, Remove};
use crate::protocol::evolution::TYPE_CHANGES;
use crate::protocol::features::{self, ColumnMapping};
use crate::protocol::properties::{self, PROTECTED};
use crate::protocol::schema::{DataType, StructField, StructType};
use crate::protocol::schema_change::{for_each_field, is_mapping, without_metadata};
use crate::protocol::{data_path, table};
use crate::snapshot::Snapshot;

/// How a feature is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DropMode {
    /// History may still use the feature: readers need not support it.
    KeepHistory,
    /// History must be protected, or truncated.
    ProtectHistory,
    /// History must be truncated.
    TruncateHistory,
    /// The feature cannot be dropped; the string says what to do instead.
    NotDroppable(&'static str),
}

const BARRIERS: usize = 3;
const PROTECTION: &str = "checkpointProtection";
const RETENTION: &str = "delta.dropFeatureTruncateHistory.retentionDuration";
/// Characters that are not allowed in names of columns without column mapping.
const NOT_IN_NAMES: &str = " ,;{}()\n\t=";

fn drop_mode(name: &str) -> DropMode {
    match name {
        "checkConstraints"
        | "domainMetadata"
        | "inCommitTimestamp"
        | "materializePartitionColumns"
        | "rowTracking" => DropMode::KeepHistory,
        "columnMapping"
        | "deletionVectors"
        | "typeWidening"
        | "typeWidening-preview"
        | "v2Checkpoint"
        | "vacuumProtocolCheck" => DropMode::ProtectHistory,
        PROTECTION => DropMode::TruncateHistory,
        "appendOnly" => DropMode::NotDroppable("set `delta.appendOnly` to `false` instead"),
        "changeDataFeed" => {
            DropMode::NotDroppable("set `delta.enableChangeDataFeed` to `false` instead")
        }
        "clustering" => DropMode::NotDroppable("cluster by no columns instead"),
        "icebergCompatV1" => {
            DropMode::NotDroppable("set `delta.enableIcebergCompatV1` to `false` instead")
        }
        "icebergCompatV2" => {
            DropMode::NotDroppable("set `delta.enableIcebergCompatV2` to `false` instead")
        }
        "allowColumnDefaults" | "generatedColumns" | "identityColumns" | "invariants" => {
            DropMode::NotDroppable(
                "it asks nothing of writers where no column uses it; take it away from the columns, or drop them, instead",
            )
        }
        "catalogManaged" => DropMode::NotDroppable("the table is its catalog's"),
        "timestampNtz"
        | "variantType"
        | "variantType-preview"
        | "variantShredding"
        | "variantShredding-preview"
        | "collations"
        | "collations-preview" => DropMode::NotDroppable(
            "files and history hold what its readers have to know; copy the rows into a new table instead",
        ),
        _ => DropMode::NotDroppable("this release does not know what it leaves behind"),
    }
}

/// Drops a feature of the table's newest version.
///
/// # Errors
/// [`Error::Unsupported`] for a feature that can never be dropped, [`Error::Invalid`] for one that
/// the table lacks, that another feature requires, whose uses only the user can remove, or whose
/// history has not expired yet; [`Error::CommitFailed`] if another writer used it concurrently. The
/// commits before an error remain; they are harmless.
pub fn drop_feature(
    snapshot: &Snapshot,
    name: &str,
    truncate_history: bool,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    let snapshot = snapshot.at(None)?;
    check_writable(&snapshot)?;
    let name = check_droppable(
        &features::supported(snapshot.protocol()),
        name,
        truncate_history,
    )?;
    let mut steps = MultiCommitCommand::new(snapshot, commit_options, cancel);
    let before = steps.snapshot().version();
    remove_feature_usage(name, &mut steps)?;
    let protects = drop_mode(name) == DropMode::ProtectHistory && !truncate_history;
    if protects {
        for _ in 0..BARRIERS {
            steps.commit_barrier()?;
        }
    } else if drop_mode(name) == DropMode::ProtectHistory {
        let changed = steps.snapshot().version() != before;
        steps.commit_barrier()?;
        require_truncated_history(name, changed, &steps)?;
    }
    downgrade(name, protects, truncate_history, steps)
}

/// The canonical name of the feature, if it can be dropped in this way.
fn check_droppable(
    supported: &BTreeSet<String>,
    name: &str,
    truncate_history: bool,
) -> Result<&'static str> {
    let Some(known) = supported
        .iter()
        .find(|known| known.eq_ignore_ascii_case(name))
    else {
        return Err(Error::invalid(format!(
            "the table does not have the feature `{}`",
            shown(name)
        ))
        .with_code(
            if features::feature(name).is_some() {
                ErrorCode::FeatureNotPresent
            } else {
                ErrorCode::FeatureUnknownToDrop
            },
            &[("feature", &name)],
        ));
    };
    let name = features::feature(known)
        .ok_or_else(|| Error::internal("a table with an unknown feature was writable"))?
        .name;
    let way = drop_mode(name);
    if let DropMode::NotDroppable(instead) = way {
        return Err(Error::unsupported_feature(
            name,
            format!("the feature `{name}` cannot be dropped, not by delta-spark either; {instead}"),
        )
        .with_code(ErrorCode::FeatureNotDroppable, &[]));
    }
    let needs_it = |other: &&String| {
        features::feature(other).is_some_and(|feature| feature.dependencies.contains(&name))
    };
    if let Some(other) = supported.iter().find(needs_it) {
        return Err(Error::invalid(format!(
            "the feature `{name}` cannot be dropped while the table has `{other}`, which needs it"
        ))
        .with_code(
            ErrorCode::FeatureNeededByOther,
            &[("feature", &name), ("other_feature", other)],
        ));
    }
    if supported.contains("catalogManaged") && way != DropMode::KeepHistory {
        return Err(Error::unsupported_feature(
            "catalogManaged",
            format!(
                "the feature `{name}` cannot be dropped here: files and history of a table with the feature `catalogManaged` are its catalog's to rewrite"
            ),
        ));
    }
    match way {
        DropMode::KeepHistory if truncate_history => Err(Error::invalid(format!(
            "the feature `{name}` is dropped without truncating history: only writers have to know it; leave {} out",
            CallOption::TruncateHistory
        ))
        .with_code(
            ErrorCode::FeatureDropWithoutTruncation,
            &[("feature", &name)],
        )),
        DropMode::TruncateHistory if !truncate_history => Err(Error::invalid(format!(
            "the feature `{name}` protects history of other dropped features: it is dropped together with it; pass {}",
            CallOption::TruncateHistoryTrue
        ))
        .with_code(ErrorCode::FeatureDropNeedsTruncation, &[("feature", &name)])),
        _ => Ok(name),
    }
}

/// Removes all uses of the feature from the table's newest version, and prevents writers from
/// adding new ones.
fn remove_feature_usage(name: &'static str, steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    if feature_usage::in_version(name, steps.snapshot(), steps.cancel())?.is_none() {
        return if name == "deletionVectors" {
            add_vector_tombstones(steps)
        } else {
            Ok(())
        };
    }
    match name {
        "deletionVectors" => {
            unset_properties(steps, &["delta.enableDeletionVectors"], None)?;
            purge_deletion_vectors(steps)?;
            add_vector_tombstones(steps)
        }
        "columnMapping" => steps.retry_on_conflict(remove_mapping),
        "typeWidening" | "typeWidening-preview" => {
            unset_properties(steps, &["delta.enableTypeWidening"], None)?;
            rewrite_widened(steps)?;
            remove_type_changes(steps)
        }
        "v2Checkpoint" => set_properties(steps, name, &[("delta.checkpointPolicy", "classic")]),
        "inCommitTimestamp" => {
            let keys = [
                "delta.inCommitTimestampEnablementTimestamp",
                "delta.inCommitTimestampEnablementVersion",
            ];
            unset_properties(steps, &keys, Some("delta.enableInCommitTimestamps"))
        }
        "rowTracking" => {
            set_properties(
                steps,
                name,
                &[
                    ("delta.enableRowTracking", "false"),
                    ("delta.rowTrackingSuspended", "true"),
                ],
            )?;
            row_id_backfill::unbackfill(steps)
        }
        "domainMetadata" => remove_domains(steps),
        PROTECTION => remove_protection(steps),
        // Constraints are part of the table's definition; the other features leave nothing to
        // remove.
        _ => Ok(()),
    }
}

/// Commits changed properties.
fn commit_properties(
    steps: &mut MultiCommitCommand<'_>,
    operation: CommitOperation,
    change: impl FnOnce(&mut BTreeMap<String, String>),
) -> Result<()> {
    let mut metadata = steps.snapshot().metadata().clone();
    change(&mut metadata.configuration);
    if metadata == *steps.snapshot().metadata() {
        return Ok(());
    }
    let mut transaction = OptimisticTransaction::new(steps.snapshot());
    transaction.push(Action::MetaData(Box::new(metadata)));
    steps.commit_step(transaction, operation)
}

/// Sets properties if the metadata use the feature.
fn set_properties(
    steps: &mut MultiCommitCommand<'_>,
    name: &str,
    values: &[(&str, &str)],
) -> Result<()> {
    let snapshot = steps.snapshot();
    if feature_usage::in_metadata(name, snapshot.metadata(), snapshot.schema()).is_none() {
        return Ok(());
    }
    let map: BTreeMap<String, String> = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let said = json!(map).to_string();
    commit_properties(
        steps,
        CommitOperation::with_parameters("SET TBLPROPERTIES", [("properties", said.into())]),
        |configuration| configuration.extend(map),
    )
}

/// Unsets properties; `off` is set to false if it is enabled.
fn unset_properties(
    steps: &mut MultiCommitCommand<'_>,
    keys: &[&str],
    off: Option<&str>,
) -> Result<()> {
    let off = off.filter(|key| steps.snapshot().metadata().flag(key));
    let named: Vec<String> = keys.iter().copied().chain(off).map(str::to_owned).collect();
    let operation = CommitOperation::with_parameters(
        "UNSET TBLPROPERTIES",
        [
            ("properties", json_string_list(&named)),
            ("ifExists", Value::Bool(true)),
        ],
    );
    commit_properties(steps, operation, |configuration| {
        configuration.retain(|key, _| !keys.contains(&key.as_str()));
        configuration.extend(off.map(|key| (key.to_owned(), "false".to_owned())));
    })
}

fn reorg_operation() -> CommitOperation {
    CommitOperation::with_parameters(
        "REORG",
        [
            ("predicate", json_string_list(&[])),
            ("applyPurge", Value::Bool(true)),
        ],
    )
}

fn target_table(snapshot: &Snapshot) -> TargetTable {
    TargetTable::of(snapshot, DataFileOptions::default())
}

/// Rewrites the files that have deletion vectors.
fn purge_deletion_vectors(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    steps.retry_on_conflict(|steps| {
        let snapshot = steps.snapshot();
        let files = matching_live_adds(snapshot, steps.cancel(), |batch| {
            Ok(feature_usage::files_using_feature("deletionVectors", batch))
        })?;
        let target = target_table(snapshot);
        if files.is_empty() {
            Ok(())
        } else {
            steps.rewrite(files, &target, Vec::new(), reorg_operation())
        }
    })
}

/// Adds tombstones for the files of deletion vectors that tombstones reference: writers that do not
/// support deletion vectors would delete them with the next vacuum.
fn add_vector_tombstones(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    let snapshot = steps.snapshot();
    let retention = properties::retention_ms(
        &snapshot.metadata().configuration,
        "delta.deletedFileRetentionDuration",
    )?;
    let now = now_ms();
    let oldest = now.saturating_sub(retention);
    let (mut vectors, mut named) = (BTreeSet::new(), HashSet::new());
    for batch in snapshot.files(
        FileActionKind::Removes,
        FileActionProjection {
            time: true,
            ..FileActionProjection::default()
        },
        steps.cancel(),
    )? {
        let batch = batch?;
        for row in 0..batch.len() {
            let recent = batch
                .time
                .as_ref()
                .is_none_or(|time| !time.is_valid(row) || time.value(row) >= oldest);
            let path = batch.path.value(row);
            match batch.deletion_vector(row) {
                Some(vector) if recent => {
                    vectors.extend(
                        vector
                            .path()
                            .at_file(path)?
                            .map(|(DvPath::InTable(path) | DvPath::Given(path))| path),
                    );
                }
                None if data_path::canonical(path)?.ends_with(".bin") => {
                    _ = named.insert(path.to_owned());
                }
                _ => {}
            }
        }
    }
    vectors.retain(|path| !named.contains(path));
    if vectors.is_empty() {
        return Ok(());
    }
    let mut transaction = OptimisticTransaction::new(snapshot);
    transaction.extend(vectors.into_iter().map(|path| {
        Action::Remove(Remove {
            path,
            deletion_timestamp: Some(now),
            ..Remove::default()
        })
    }));
    steps.commit_step(
        transaction,
        CommitOperation::new("Deletion Vector Tombstones"),
    )
}

/// Rewrites all files with logical column names.
fn remove_mapping(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    let snapshot = steps.snapshot();
    if feature_usage::in_metadata("columnMapping", snapshot.metadata(), snapshot.schema()).is_none()
    {
        return Ok(());
    }
    check_names(snapshot.schema())?;
    let schema = without_metadata(snapshot.schema(), &is_mapping);
    let mut metadata = Metadata {
        schema_string: schema.to_json_string(),
        ..snapshot.metadata().clone()
    };
    metadata
        .configuration
        .retain(|key, _| !key.starts_with("delta.columnMapping."));
    let mut actions = Vec::new();
    let clustered = clustering_columns(snapshot)?;
    if !clustered.is_empty() {
        // Clustering columns are named as in files.
        actions.push(Action::DomainMetadata(clustering_domain(
            &schema, &clustered,
        )?));
    }
    let is_mapped =
        features::column_mapping(snapshot.protocol(), snapshot.metadata())? != ColumnMapping::None;
    let target = TargetTable {
        metadata: metadata.clone(),
        schema,
        ..target_table(snapshot)
    };
    actions.push(Action::MetaData(Box::new(metadata)));
    // If the mode is already `none`, files have the logical names, and only the schema differs.
    let files = if is_mapped {
        all_live_adds(snapshot, steps.cancel())?
    } else {
        Vec::new()
    };
    steps.rewrite(
        files,
        &target,
        actions,
        CommitOperation::new("REMOVE COLUMN MAPPING"),
    )
}

fn check_names(schema: &StructType) -> Result<()> {
    let mut wrong = None;
    for_each_field(schema, &mut |field| {
        if field.name.contains(|c| NOT_IN_NAMES.contains(c)) {
            wrong.get_or_insert_with(|| field.name.clone());
        }
    });
    match wrong {
        Some(name) => Err(Error::invalid(format!(
            "the feature `columnMapping` cannot be dropped: the column `{}` has one of the characters ` ,;{{}}()=`, a tab or a line end in its name; rename it first",
            shown(&name)
        ))
        .at_column(&name)),
        None => Ok(()),
    }
}

/// Rewrites the files that have columns with a type before widening.
fn rewrite_widened(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    steps.retry_on_conflict(|steps| {
        let snapshot = steps.snapshot().clone();
        let widened: Vec<StructField> = snapshot
            .schema()
            .fields
            .iter()
            .filter(|field| is_widened(field))
            .cloned()
            .collect();
        let partition = &snapshot.metadata().partition_columns;
        let widened: Vec<StructField> = widened
            .into_iter()
            .filter(|field| !partition.contains(&field.name))
            .collect();
        if widened.is_empty() {
            return Ok(());
        }
        let files = all_live_adds(&snapshot, steps.cancel())?;
        let by_id = snapshot.mapping() == ColumnMapping::Id;
        let (looked, cancel) = (snapshot.clone(), steps.cancel().clone());
        let old = map_all(files, move |add: Add| {
            cancel.check()?;
            let path = data_path::canonical(&add.path)?;
            let file = looked.stores().file(&path, u64::try_from(add.size).ok())?;
            let is_old = match infer_schema(&file) {
                Ok(found) => widened.iter().any(|field| {
                    let name = looked.physical_name(field);
                    found
                        .schema
                        .fields
                        .iter()
                        .find(|other| other.name == name)
                        .map_or(by_id, |other| {
                            has_other_type(&looked, &field.data_type, &other.data_type, by_id)
                        })
                }),
                // A file with a type that tables do not have.
                Err(Error::Unsupported { .. }) => true,
                Err(error) => return Err(error),
            };
            Ok(is_old.then_some(add))
        })?;
        let old: Vec<Add> = old.into_iter().flatten().collect();
        if old.is_empty() {
            Ok(())
        } else {
            steps.rewrite(old, &target_table(&snapshot), Vec::new(), reorg_operation())
        }
    })
}

fn is_widened(field: &StructField) -> bool {
    let mut found = false;
    for_each_field(
        &StructType {
            fields: vec![field.clone()].into(),
        },
        &mut |field| found |= field.metadata.contains_key(TYPE_CHANGES),
    );
    found
}

/// Whether a file has a column of another type than the table. Missing columns are not a
/// difference, unless files identify columns by id, which is not checked: they may exist under
/// another name.
fn has_other_type(snapshot: &Snapshot, table: &DataType, file: &DataType, by_id: bool) -> bool {
    match (table, file) {
        (DataType::Struct(table), DataType::Struct(file)) => table.fields.iter().any(|field| {
            let name = snapshot.physical_name(field);
            file.fields
                .iter()
                .find(|other| other.name == name)
                .map_or(by_id, |other| {
                    has_other_type(snapshot, &field.data_type, &other.data_type, by_id)
                })
        }),
        (DataType::Array(table), DataType::Array(file)) => {
            has_other_type(snapshot, &table.element, &file.element, by_id)
        }
        (DataType::Map(table), DataType::Map(file)) => {
            has_other_type(snapshot, &table.key, &file.key, by_id)
                || has_other_type(snapshot, &table.value, &file.value, by_id)
        }
        (DataType::Variant, DataType::Struct(_)) => false,
        (table, file) => table != file,
    }
}

/// Removes the type changes from the schema.
fn remove_type_changes(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    let snapshot = steps.snapshot();
    let widened: Vec<Value> = snapshot
        .schema()
        .fields
        .iter()
        .filter(|field| is_widened(field))
        .map(|field| json!({"name": field.name, "type": field.data_type.to_json(), "nullable": field.nullable, "metadata": field.metadata}))
        .collect();
    if widened.is_empty() {
        return Ok(());
    }
    let schema = without_metadata(snapshot.schema(), &|key| key == TYPE_CHANGES);
    let mut transaction = OptimisticTransaction::new(snapshot);
    transaction.push(Action::MetaData(Box::new(Metadata {
        schema_string: schema.to_json_string(),
        ..snapshot.metadata().clone()
    })));
    steps.commit_step(
        transaction,
        CommitOperation::with_parameters(
            "DROP FEATURE",
            [("columns", json!(widened).to_string().into())],
        ),
    )
}

fn remove_domains(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    let mut transaction = OptimisticTransaction::new(steps.snapshot());
    let domains: Vec<DomainMetadata> = steps
        .snapshot()
        .non_file_actions()?
        .domains
        .values()
        .cloned()
        .collect();
    if domains.is_empty() {
        return Ok(());
    }
    let count = domains.len();
    transaction.extend(domains.into_iter().map(|domain| {
        Action::DomainMetadata(DomainMetadata {
            removed: true,
            ..domain
        })
    }));
    steps.commit_step(
        transaction,
        CommitOperation::with_parameters(
            "DOMAIN METADATA CLEANUP",
            [("domainMetadataRemovedCount", count.into())],
        ),
    )
}

/// How long history that uses a dropped feature is kept, as the table's property says it.
fn retention_text(snapshot: &Snapshot) -> String {
    properties::value(&snapshot.metadata().configuration, RETENTION)
        .unwrap_or_default()
        .trim_start_matches("interval ")
        .to_owned()
}

/// Deletes history that has expired.
fn delete_expired_history(steps: &MultiCommitCommand<'_>) -> Result<()> {
    let options = CleanupOptions {
        retention_ms: Some(properties::retention_ms(
            &steps.snapshot().metadata().configuration,
            RETENTION,
        )?),
        to_the_minute: true,
        ..CleanupOptions::default()
    };
    checkpoint::cleanup(steps.snapshot(), &options, steps.cancel()).map(|_| ())
}

/// Checks that the remaining history does not use the feature.
fn require_truncated_history(
    name: &'static str,
    changed: bool,
    steps: &MultiCommitCommand<'_>,
) -> Result<()> {
    let text = retention_text(steps.snapshot());
    let wait = |what: String| {
        Error::invalid(format!(
            "the feature `{name}` is no longer in use but {what}: drop it again once the history that uses it is older than {text} (`{RETENTION}`), or now with {}",
            CallOption::TruncateHistoryFalse
        ))
    };
    if changed {
        return Err(wait("was until now".to_owned()).with_code(
            ErrorCode::FeatureDropWaitsForRetention,
            &[("feature", &name)],
        ));
    }
    delete_expired_history(steps)?;
    match feature_usage::in_history(name, steps.snapshot(), steps.cancel())? {
        Some(version) => Err(
            wait(format!("older versions up to {version} use it")).with_code(
                ErrorCode::FeatureInHistory,
                &[("feature", &name), ("version", &version)],
            ),
        ),
        None => Ok(()),
    }
}

/// Deletes the protected history and the property that protects it.
fn remove_protection(steps: &mut MultiCommitCommand<'_>) -> Result<()> {
    if !is_truncated(steps.snapshot())? {
        steps.commit_barrier()?;
        delete_expired_history(steps)?;
        if !is_truncated(steps.snapshot())? {
            let text = retention_text(steps.snapshot());
            let before =
                properties::protected_before_version(&steps.snapshot().metadata().configuration)?;
            return Err(Error::invalid(format!(
                "the feature `{PROTECTION}` cannot be dropped yet: the history before version {before} is to be deleted with it and not all older than {text} (`{RETENTION}`); drop it again later"
            )));
        }
    }
    unset_properties(steps, &[PROTECTED], None)
}

/// Whether none of the protected history remains.
fn is_truncated(snapshot: &Snapshot) -> Result<bool> {
    let before = properties::protected_before_version(&snapshot.metadata().configuration)?;
    if before <= 0 {
        return Ok(true);
    }
    let listing = snapshot.log().list(0)?;
    let oldest_commit = listing.commits.keys().next().copied();
    let oldest_checkpoint = listing
        .checkpoints
        .iter()
        .map(|checkpoint| checkpoint.version)
        .min();
    Ok(oldest_checkpoint.is_some_and(|version| version >= before)
        && oldest_commit.is_none_or(|version| version >= before))
}

/// Commits the protocol without the feature.
fn downgrade(
    name: &'static str,
    protects: bool,
    truncate_history: bool,
    steps: MultiCommitCommand<'_>,
) -> Result<CommitResult> {
    let snapshot = steps.snapshot();
    if let Some(trace) = feature_usage::in_version(name, snapshot, steps.cancel())? {
        return Err(Error::invalid(format!(
            "the feature `{name}` is in use: {trace}"
        )));
    }
    let mut metadata = snapshot.metadata().clone();
    let mut transaction = OptimisticTransaction::new(snapshot);
    match name {
        "rowTracking" => {
            metadata.configuration.retain(|key, _| {
                !key.starts_with("delta.rowTracking") && key != "delta.enableRowTracking"
            });
            let mark = snapshot
                .non_file_actions()?
                .domains
                .get("delta.rowTracking")
                .cloned();
            transaction.extend(mark.map(|mark| {
                Action::DomainMetadata(DomainMetadata {
                    removed: true,
                    ..mark
                })
            }));
        }
        "materializePartitionColumns" => {
            _ = metadata
                .configuration
                .remove("delta.enableMaterializePartitionColumnsFeature");
        }
        _ => {}
    }
    let mut protocol = snapshot.protocol().clone();
    if protects {
        protocol = features::with_features(&protocol, &[PROTECTION.to_owned()].into());
        // The commit replaces it by its version.
        metadata
            .configuration
            .insert(PROTECTED.to_owned(), (snapshot.version() + 1).to_string());
    }
    let protocol = features::without_feature(&protocol, name);
    invariant!(
        !table::required_features(&metadata, snapshot.schema())?.contains(name),
        "the feature `{name}` was found unused and is required"
    );
    transaction.push(Action::Protocol(protocol));
    if metadata != *snapshot.metadata() {
        transaction.push(Action::MetaData(Box::new(metadata)));
    }
    let cancel = steps.cancel().clone();
    transaction.revalidate(
        move |now| match feature_usage::in_version(name, now, &cancel)? {
            Some(trace) => Err(Error::commit_failed(
                ConflictKind::ProtocolChanged,
                format!("another writer used the feature `{name}` while it was dropped: {trace}"),
            )),
            None => Ok(()),
        },
    );
    let parameters = [
        ("featureName", name.into()),
        ("truncateHistory", Value::Bool(truncate_history)),
    ];
    steps.commit_last(
        transaction,
        CommitOperation::with_parameters("DROP FEATURE", parameters),
        protects,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::features::{FEATURES, READER_FEATURES};

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_feature_has_a_way() {
        for feature in FEATURES {
            let way = drop_mode(feature.name);
            assert_ne!(
                way,
                DropMode::NotDroppable("this release does not know what it leaves behind"),
                "{}",
                feature.name
            );
            // Reader features are never dropped without regard to the history.
            assert!(
                way != DropMode::KeepHistory || !READER_FEATURES.contains(&feature.name),
                "{}",
                feature.name
            );
            assert!(
                way != DropMode::ProtectHistory || READER_FEATURES.contains(&feature.name),
                "{}",
                feature.name
            );
        }
    }

    #[test]
    fn what_is_asked_for_is_checked_before_anything_is_done() {
        let refused = |supported: &[&str], name: &str, truncate| {
            check_droppable(&names(supported), name, truncate)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            check_droppable(&names(&["deletionVectors"]), "DELETIONVECTORS", false).unwrap(),
            "deletionVectors"
        );
        assert_eq!(
            check_droppable(&names(&["deletionVectors"]), "deletionVectors", true).unwrap(),
            "deletionVectors"
        );
        assert!(refused(&[], "deletionVectors", false).contains("does not have the feature"));
        assert!(
            refused(
                &["columnMapping", "icebergCompatV2"],
                "columnMapping",
                false
            )
            .contains("while the table has `icebergCompatV2`")
        );
        assert!(
            refused(&["rowTracking"], "rowTracking", true).contains("leave `truncate_history` out")
        );
        assert!(refused(&[PROTECTION], PROTECTION, false).contains("truncate_history=true"));
        assert!(
            refused(
                &["catalogManaged", "deletionVectors"],
                "deletionVectors",
                false
            )
            .contains("its catalog's to rewrite")
        );
        assert!(
            refused(&["appendOnly"], "appendOnly", false)
                .contains("set `delta.appendOnly` to `false` instead")
        );
    }

    #[test]
    fn names_that_only_a_mapping_allows_are_found_at_any_depth() {
        let schema = |name: &str| {
            let inner = DataType::Struct(std::sync::Arc::new(StructType {
                fields: vec![StructField::new(name, DataType::Long, true)].into(),
            }));
            StructType {
                fields: vec![StructField::new("s", inner, true)].into(),
            }
        };
        assert!(check_names(&schema("plain.name-ü")).is_ok());
        for name in ["a b", "a,b", "a=b", "a\tb", "(a)"] {
            assert!(
                check_names(&schema(name))
                    .unwrap_err()
                    .to_string()
                    .contains("rename it first"),
                "{name}"
            );
        }
    }
}
