//! Uses of a table feature: in a version, and in the remaining history.
//!
//! Protocol: the sections of the features, "Checkpoint Protection". Cost: most uses are found in
//! the metadata; deletion vectors and row ids require a pass over the live files' keys, the history
//! one over all commits.

use arrow_array::{Array, BooleanArray};

use crate::error::{Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::log::{CheckpointInstance, CheckpointKind};
use crate::parse::checkpoint::{CheckpointReader, FileActionKind};
use crate::parse::commit::{self, ActionSelection, NonFileAction};
use crate::parse::{FileActionProjection, FileBatch, mask};
use crate::protocol::action::Metadata;
use crate::protocol::evolution::TYPE_CHANGES;
use crate::protocol::properties::{self, CONSTRAINTS};
use crate::protocol::schema::StructType;
use crate::protocol::schema_change::{for_each_field, is_mapping};
use crate::reconcile::CommitCache;
use crate::snapshot::Snapshot;

/// A use of a feature in metadata, if any.
pub(in crate::ops) fn in_metadata(
    name: &str,
    metadata: &Metadata,
    schema: &StructType,
) -> Option<String> {
    let on = |key: &str| {
        properties::flag(&metadata.configuration, key).then(|| format!("`{key}` is on"))
    };
    let is_set = |key: &str| {
        metadata
            .configuration
            .contains_key(key)
            .then(|| format!("`{key}` is set"))
    };
    let in_field = |test: &dyn Fn(&str) -> bool| {
        let mut found = None;
        for_each_field(schema, &mut |field| {
            if field.metadata.keys().any(|key| test(key)) {
                found
                    .get_or_insert_with(|| format!("the column `{}` has its metadata", field.name));
            }
        });
        found
    };
    match name {
        "checkConstraints" => {
            let names: Vec<&str> = metadata
                .configuration
                .keys()
                .filter_map(|key| key.strip_prefix(CONSTRAINTS))
                .collect();
            (!names.is_empty()).then(|| {
                format!(
                    "there are the constraints `{}`; drop them first",
                    names.join("`, `")
                )
            })
        }
        "columnMapping" => {
            let mode = properties::value(&metadata.configuration, "delta.columnMapping.mode")
                .filter(|mode| !mode.eq_ignore_ascii_case("none"));
            mode.map(|mode| format!("`delta.columnMapping.mode` is `{mode}`"))
                .or_else(|| in_field(&is_mapping))
        }
        "deletionVectors" => on("delta.enableDeletionVectors"),
        "typeWidening" | "typeWidening-preview" => {
            on("delta.enableTypeWidening").or_else(|| in_field(&|key| key == TYPE_CHANGES))
        }
        "v2Checkpoint" => {
            let policy = properties::value(&metadata.configuration, "delta.checkpointPolicy");
            policy
                .filter(|policy| policy.eq_ignore_ascii_case("v2"))
                .map(|_| "`delta.checkpointPolicy` is `v2`".to_owned())
        }
        "inCommitTimestamp" => on("delta.enableInCommitTimestamps")
            .or_else(|| is_set("delta.inCommitTimestampEnablementVersion"))
            .or_else(|| is_set("delta.inCommitTimestampEnablementTimestamp")),
        "rowTracking" => on("delta.enableRowTracking").or_else(|| {
            let suspended = metadata.flag("delta.rowTrackingSuspended");
            (!suspended).then(|| "new files get row ids".to_owned())
        }),
        "checkpointProtection" => is_set("delta.requireCheckpointProtectionBeforeVersion"),
        _ => None,
    }
}

/// A use of a feature in a version, if any.
pub(in crate::ops) fn in_version(
    name: &str,
    snapshot: &Snapshot,
    cancel: &CancellationToken,
) -> Result<Option<String>> {
    let metadata = in_metadata(name, snapshot.metadata(), snapshot.schema());
    if metadata.is_some() {
        return Ok(metadata);
    }
    match name {
        "deletionVectors" | "rowTracking" => {
            let found = first_file(name, snapshot, cancel)?;
            Ok(found.map(|path| {
                format!(
                    "the file {path} has {}",
                    if name == "rowTracking" {
                        "row ids"
                    } else {
                        "a deletion vector"
                    }
                )
            }))
        }
        "domainMetadata" => Ok(snapshot
            .non_file_actions()?
            .domains
            .keys()
            .next()
            .map(|domain| format!("there is the domain `{domain}`"))),
        "v2Checkpoint" => {
            // A new listing of the log: a snapshot made from an older one still uses the checkpoint
            // of that one.
            let listing = snapshot.log().list(0)?;
            let newest = listing
                .checkpoints
                .iter()
                .filter(|checkpoint| checkpoint.version <= snapshot.version())
                .max_by_key(|checkpoint| checkpoint.version);
            match newest {
                Some(checkpoint) if is_v2(checkpoint, snapshot)? => Ok(Some(format!(
                    "the checkpoint of version {} is one of V2",
                    checkpoint.version
                ))),
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// The rows of a batch with files that use a feature.
pub(in crate::ops) fn files_using_feature(name: &str, batch: &FileBatch) -> BooleanArray {
    match name {
        "deletionVectors" => batch.dv.as_ref().map_or_else(
            || mask(vec![false; batch.len()]),
            |dv| BooleanArray::new(dv.present.clone(), None),
        ),
        "rowTracking" => {
            let there = |column: &Option<arrow_array::Int64Array>, row: usize| {
                column.as_ref().is_some_and(|column| column.is_valid(row))
            };
            mask(
                (0..batch.len())
                    .map(|row| {
                        there(&batch.base_row_id, row)
                            || there(&batch.default_row_commit_version, row)
                    })
                    .collect(),
            )
        }
        _ => mask(vec![false; batch.len()]),
    }
}

fn first_file(
    name: &str,
    snapshot: &Snapshot,
    cancel: &CancellationToken,
) -> Result<Option<String>> {
    snapshot.with_segment(|segment| {
        for batch in snapshot.files_in(
            segment,
            FileActionKind::Adds,
            FileActionProjection {
                row_ids: name == "rowTracking",
                ..FileActionProjection::default()
            },
            cancel,
        )? {
            let batch = batch?;
            if let Some(row) = files_using_feature(name, &batch)
                .values()
                .set_indices()
                .next()
            {
                return Ok(Some(batch.path.value(row).to_owned()));
            }
        }
        Ok(None)
    })
}

fn is_v2(checkpoint: &CheckpointInstance, snapshot: &Snapshot) -> Result<bool> {
    match checkpoint.kind {
        CheckpointKind::UuidJson | CheckpointKind::UuidParquet => Ok(true),
        CheckpointKind::MultiPart => Ok(false),
        CheckpointKind::Classic => {
            CheckpointReader::open(checkpoint, snapshot.stores().root(), true)?.is_v2()
        }
    }
}

/// The newest version of the remaining history that uses a reader feature. Tombstones of the oldest
/// checkpoint do not count: readers of that version only read live files.
pub(in crate::ops) fn in_history(
    name: &'static str,
    snapshot: &Snapshot,
    cancel: &CancellationToken,
) -> Result<Option<i64>> {
    let listing = snapshot.log().list(0)?;
    let newest = snapshot.version();
    let commits: Vec<_> = listing
        .commits
        .range(..=newest)
        .map(|(_, commit)| commit.clone())
        .collect();
    let files = Some(FileActionProjection::default()).filter(|_| name == "deletionVectors");
    let take = ActionSelection {
        adds: files.clone(),
        removes: files.clone(),
        cdc: files,
        protocol_and_metadata: true,
        ..ActionSelection::default()
    };
    let found = map_all(commits, move |commit| {
        let text = CommitCache::default().get(&commit)?;
        let parsed = if take.adds.is_some() {
            let parsed = commit::parse(&text, 0..text.len(), &take, &[])
                .at_file(&commit.file.path)
                .at_version(commit.version)?;
            if [&parsed.adds, &parsed.removes, &parsed.cdc]
                .into_iter()
                .any(|batch| files_using_feature(name, batch).true_count() > 0)
            {
                return Ok(Some(commit.version));
            }
            parsed.non_file_actions
        } else {
            commit::non_file_actions(&text, &take)
                .at_file(&commit.file.path)
                .at_version(commit.version)?
        };
        for single in parsed {
            if let NonFileAction::Metadata(metadata) = single {
                let schema =
                    StructType::parse(&metadata.schema_string).at_version(commit.version)?;
                if in_metadata(name, &metadata, &schema).is_some() {
                    return Ok(Some(commit.version));
                }
            }
        }
        Ok(None)
    })?;
    let by_commit = found.into_iter().flatten().max();
    let checkpoints = listing
        .checkpoints
        .iter()
        .filter(|checkpoint| checkpoint.version <= newest);
    if name == "v2Checkpoint" {
        let mut last = None;
        for checkpoint in checkpoints {
            cancel.check()?;
            if is_v2(checkpoint, snapshot)? {
                last = Some(checkpoint.version);
            }
        }
        return Ok(by_commit.max(last));
    }
    // The oldest checkpoint represents all earlier versions, which were deleted.
    let Some(oldest) = checkpoints.map(|checkpoint| checkpoint.version).min() else {
        return Ok(by_commit);
    };
    if by_commit.is_some_and(|version| version >= oldest) {
        return Ok(by_commit);
    }
    let at_oldest = in_version(name, &snapshot.at(Some(oldest))?, cancel)?;
    Ok(by_commit.max(at_oldest.map(|_| oldest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::action::FormatSpecification;

    fn metadata(schema: &str, configuration: &[(&str, &str)]) -> Metadata {
        Metadata {
            id: "t".to_owned(),
            name: None,
            description: None,
            format: FormatSpecification::default(),
            schema_string: schema.to_owned(),
            partition_columns: Vec::new(),
            configuration: configuration
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            created_time: None,
        }
    }

    #[test]
    fn metadata_tell_what_they_have_of_a_feature() {
        const PLAIN: &str = r#"{"type":"struct","fields":[{"name":"a","type":"long"}]}"#;
        const MAPPED: &str = r#"{"type":"struct","fields":[{"name":"s","type":{"type":"struct","fields":[
            {"name":"a","type":"long","metadata":{"delta.columnMapping.id":1}}]}}]}"#;
        const WIDENED: &str = r#"{"type":"struct","fields":[{"name":"a","type":"long","metadata":{"delta.typeChanges":[]}}]}"#;
        type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Option<&'a str>);
        let cases: &[Case<'_>] = &[
            (
                "checkConstraints",
                PLAIN,
                &[("delta.constraints.c", "a > 0")],
                Some("constraints `c`"),
            ),
            ("checkConstraints", PLAIN, &[], None),
            (
                "columnMapping",
                PLAIN,
                &[("delta.columnMapping.mode", "id")],
                Some("is `id`"),
            ),
            (
                "columnMapping",
                PLAIN,
                &[("delta.columnMapping.mode", "none")],
                None,
            ),
            ("columnMapping", MAPPED, &[], Some("the column `a`")),
            (
                "deletionVectors",
                PLAIN,
                &[("delta.enableDeletionVectors", "TRUE")],
                Some("is on"),
            ),
            (
                "deletionVectors",
                PLAIN,
                &[("delta.enableDeletionVectors", "false")],
                None,
            ),
            ("typeWidening", WIDENED, &[], Some("the column `a`")),
            (
                "typeWidening-preview",
                PLAIN,
                &[("delta.enableTypeWidening", "true")],
                Some("is on"),
            ),
            (
                "v2Checkpoint",
                PLAIN,
                &[("delta.checkpointPolicy", "V2")],
                Some("is `v2`"),
            ),
            (
                "v2Checkpoint",
                PLAIN,
                &[("delta.checkpointPolicy", "classic")],
                None,
            ),
            (
                "inCommitTimestamp",
                PLAIN,
                &[("delta.inCommitTimestampEnablementVersion", "3")],
                Some("is set"),
            ),
            (
                "inCommitTimestamp",
                PLAIN,
                &[("delta.enableInCommitTimestamps", "false")],
                None,
            ),
            ("rowTracking", PLAIN, &[], Some("new files get row ids")),
            (
                "rowTracking",
                PLAIN,
                &[("delta.rowTrackingSuspended", "true")],
                None,
            ),
            (
                "checkpointProtection",
                PLAIN,
                &[("delta.requireCheckpointProtectionBeforeVersion", "0")],
                Some("is set"),
            ),
            ("vacuumProtocolCheck", PLAIN, &[], None),
        ];
        for (name, schema, configuration, expected) in cases {
            let found = in_metadata(
                name,
                &metadata(schema, configuration),
                &StructType::parse(schema).unwrap(),
            );
            match expected {
                Some(text) => assert!(
                    found.as_ref().is_some_and(|found| found.contains(text)),
                    "{name} {configuration:?}: {found:?}"
                ),
                None => assert_eq!(found, None, "{name} {configuration:?}"),
            }
        }
    }
}
