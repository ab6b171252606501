use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check::DAY;
use super::*;
use crate::exec::{CancellationToken, now_ms};
use crate::log::DeltaLog;
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::snapshot::ReadOptions;
use crate::snapshot::Snapshot;
use crate::store::{ExternalPaths, StorageOptions, TableStores, open};

/// A table without data files.
struct Table(PathBuf);

impl Drop for Table {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn protocol(features: &[&str]) -> Value {
    match features {
        [] => json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        _ => {
            let readers: Vec<&&str> = features
                .iter()
                .filter(|f| crate::protocol::features::READER_FEATURES.contains(f))
                .collect();
            json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": features}})
        }
    }
}

fn metadata(configuration: Value) -> Value {
    let schema = json!({"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": true, "metadata": {}}, {"name": "p", "type": "string", "nullable": true, "metadata": {}}]});
    json!({"metaData": {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": schema.to_string(),
        "partitionColumns": ["p"], "configuration": configuration, "createdTime": 7}})
}

fn vector(cardinality: i64) -> Value {
    json!({"storageType": "u", "pathOrInlineDv": format!("ab^-aqEH.-t@S}}K{{vb[*{cardinality:02}"), "offset": 1, "sizeInBytes": 36, "cardinality": cardinality})
}

fn add(path: &str, size: i64) -> Value {
    json!({"add": {"path": path, "partitionValues": {"p": "a b"}, "size": size, "modificationTime": 5, "dataChange": true,
        "stats": format!("{{\"numRecords\":{size},\"minValues\":{{\"id\":1}},\"maxValues\":{{\"id\":{size}}},\"nullCount\":{{\"id\":0}}}}")}})
}

fn remove(path: &str, size: i64, time: i64) -> Value {
    json!({"remove": {"path": path, "deletionTimestamp": time, "dataChange": true, "extendedFileMetadata": true, "partitionValues": {"p": "a b"}, "size": size}})
}

impl Table {
    fn new(test: &str, features: &[&str], configuration: Value) -> Self {
        let root = std::env::temp_dir().join(format!(
            "deltafast-checkpoint-{}-{test}",
            std::process::id()
        ));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("_delta_log")).unwrap();
        let table = Self(root);
        table.commit(
            0,
            &[protocol(features), metadata(configuration), add("f0", 10)],
        );
        table
    }

    /// A table of versions 0 to `last`, each of which adds a file.
    fn of(test: &str, last: i64, features: &[&str], configuration: Value) -> Self {
        let table = Self::new(test, features, configuration);
        for version in 1..=last {
            table.commit(version, &[add(&format!("f{version}"), 10 + version)]);
        }
        table
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join("_delta_log").join(name)
    }

    fn sidecar(&self, name: &str) -> PathBuf {
        self.path("_sidecars").join(name)
    }

    fn commit(&self, version: i64, actions: &[Value]) {
        let text: String = actions.iter().map(|action| format!("{action}\n")).collect();
        std::fs::write(self.path(&format!("{version:020}.json")), text).unwrap();
    }

    /// Sets the modification time of files of the log to this number of days ago.
    fn age(&self, days: impl Fn(i64) -> i64) {
        for entry in std::fs::read_dir(self.0.join("_delta_log")).unwrap() {
            let path = entry.unwrap().path();
            let Some(file) = path
                .file_name()
                .and_then(|n| n.to_str())
                .and_then(crate::protocol::log_path::LogFile::parse)
            else {
                continue;
            };
            set_age(&path, days(file.version()));
        }
    }

    fn snapshot_of(root: &Path, version: Option<i64>) -> Snapshot {
        let store = open(root.to_str().unwrap(), &StorageOptions::new()).unwrap();
        let log = DeltaLog::new(
            Arc::new(TableStores::new(
                store,
                StorageOptions::new(),
                ExternalPaths::Refused,
            )),
            Vec::new(),
        )
        .unwrap();
        Snapshot::open(log, version, ReadOptions::default()).unwrap()
    }

    fn at(&self, version: i64) -> Snapshot {
        Self::snapshot_of(&self.0, Some(version))
    }

    fn newest(&self) -> Snapshot {
        Self::snapshot_of(&self.0, None)
    }

    fn checkpoint(&self, version: i64, options: &CheckpointOptions) -> CheckpointInfo {
        write(&self.at(version), options, &CancellationToken::default()).unwrap()
    }

    fn names(&self) -> BTreeSet<String> {
        std::fs::read_dir(self.0.join("_delta_log"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn hint(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("_last_checkpoint")).unwrap()).unwrap()
    }
}

fn set_age(path: &Path, days: i64) {
    let seconds = u64::try_from(days * 86_400).unwrap();
    std::fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(seconds))
        .unwrap();
}

fn files(snapshot: &Snapshot, kind: FileActionKind) -> BTreeMap<String, Option<i64>> {
    let wanted = FileActionProjection {
        stats: true,
        time: true,
        partition: vec!["p".into()],
        ..FileActionProjection::default()
    };
    let batches = snapshot
        .files(kind, wanted, &CancellationToken::default())
        .unwrap()
        .collect::<crate::error::Result<Vec<_>>>()
        .unwrap();
    let mut out = BTreeMap::new();
    for batch in batches {
        for row in 0..batch.len() {
            assert_eq!(batch.partition[0].value(row), "a b");
            let size =
                arrow_array::Array::is_valid(&batch.size, row).then(|| batch.size.value(row));
            out.insert(
                format!("{} {:?}", batch.path.value(row), batch.dv_unique_id(row)),
                size,
            );
        }
    }
    out
}

fn adds(snapshot: &Snapshot) -> BTreeMap<String, Option<i64>> {
    files(snapshot, FileActionKind::Adds)
}

const V2: CheckpointOptions = CheckpointOptions {
    form: CheckpointSpec::V2,
    parts: 1,
    json: true,
    sidecars: true,
    classic_name: false,
    sidecar_rows: 3,
};

fn every_form() -> Vec<(&'static [&'static str], CheckpointOptions)> {
    let mut out: Vec<(&'static [&'static str], CheckpointOptions)> = vec![
        (&[], CheckpointOptions::default()),
        (
            &[],
            CheckpointOptions {
                parts: 3,
                ..CheckpointOptions::default()
            },
        ),
    ];
    for (json, sidecars, classic_name) in [
        (true, true, false),
        (true, false, false),
        (false, true, false),
        (false, false, false),
        (false, true, true),
    ] {
        out.push((
            &["v2Checkpoint", "deletionVectors"],
            CheckpointOptions {
                json,
                sidecars,
                classic_name,
                ..V2
            },
        ));
    }
    out
}

#[test]
fn every_form_stands_for_the_commits_before_it() {
    let now = now_ms();
    for (n, (features, options)) in every_form().into_iter().enumerate() {
        let table = Table::of(&format!("form{n}"), 6, features, json!({}));
        table.commit(
            7,
            &[
                remove("f1", 11, now - 1000),
                remove("f2", 12, now - 8 * DAY),
                json!({"remove": {"path": "f3", "deletionTimestamp": now, "dataChange": true}}),
                json!({"txn": {"appId": "app", "version": 3, "lastUpdated": 4}}),
                json!({"domainMetadata": {"domain": "d", "configuration": "{}", "removed": false}}),
                json!({"domainMetadata": {"domain": "gone", "configuration": "", "removed": true}}),
                json!({"commitInfo": {"operation": "x"}}),
                json!({"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": false}}),
            ],
        );
        let before = table.newest();
        let (live, sets) = (adds(&before), before.non_file_actions().unwrap().clone());
        let info = table.checkpoint(7, &options);
        assert_eq!(
            (info.num_add_files, info.num_remove_files, info.is_last),
            (4, 2, true),
            "{options:?}"
        );
        for version in 0..=7 {
            std::fs::remove_file(table.path(&format!("{version:020}.json"))).unwrap();
        }
        let after = table.newest();
        assert_eq!(
            (
                after.version(),
                adds(&after),
                after.non_file_actions().unwrap()
            ),
            (7, live, &sets),
            "{options:?}"
        );
        assert_eq!(
            (after.protocol(), after.metadata()),
            (before.protocol(), before.metadata())
        );
        let removed = files_without_partition(&after);
        assert_eq!(
            removed,
            BTreeMap::from([("f1".to_owned(), Some(11)), ("f3".to_owned(), None)]),
            "{options:?}"
        );
        let hint = table.hint();
        assert_eq!(hint["version"], 7);
        assert_eq!(hint["numOfAddFiles"], 4);
        assert_eq!(hint["size"], info.num_actions);
        assert_eq!(
            hint["checksum"].as_str(),
            crate::protocol::canonical_json::checksum(&hint.to_string()).as_deref()
        );
        assert_eq!(
            hint.get("parts").and_then(Value::as_u64),
            (options.parts > 1).then_some(3)
        );
        // A checkpoint made from a checkpoint alone has the same content.
        let again = table.checkpoint(7, &options);
        assert_eq!(
            (again.num_add_files, again.num_actions),
            (info.num_add_files, info.num_actions)
        );
        assert!(!table.names().iter().any(|name| name.ends_with(".tmp")));
    }
}

fn files_without_partition(snapshot: &Snapshot) -> BTreeMap<String, Option<i64>> {
    let stream = snapshot
        .files(
            FileActionKind::Removes,
            FileActionProjection::default(),
            &CancellationToken::default(),
        )
        .unwrap();
    stream
        .flat_map(|batch| {
            let batch = batch.unwrap();
            let sizes: Vec<Option<i64>> = batch.size.iter().collect();
            (0..batch.len())
                .map(|row| (batch.path.value(row).to_owned(), sizes[row]))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_field_of_many_files_stays_with_its_file() {
    let table = Table::new(
        "many",
        &[
            "deletionVectors",
            "rowTracking",
            "domainMetadata",
            "clustering",
        ],
        json!({"delta.checkpoint.writeStatsAsStruct": "true"}),
    );
    let actions: Vec<Value> = (0..9_000_i64)
        .map(|n| {
            let mut action = add(&format!("part-{n}"), n);
            let file = action["add"].as_object_mut().unwrap();
            file.insert("baseRowId".into(), json!(n * 100));
            file.insert("defaultRowCommitVersion".into(), json!(n % 7));
            // Some ranges of the rows have none.
            if n % 3 == 0 && n / 1000 % 2 == 0 {
                file.insert("deletionVector".into(), vector(n % 90));
                file.insert("tags".into(), json!({"n": n.to_string()}));
                file.insert("clusteringProvider".into(), json!(format!("p{n}")));
            }
            action
        })
        .collect();
    table.commit(1, &actions);
    let every = |snapshot: &Snapshot| {
        let wanted = FileActionProjection {
            stats: true,
            stats_text: true,
            time: true,
            tags: true,
            row_ids: true,
            clustering: true,
            partition: vec!["p".into()],
            ..FileActionProjection::default()
        };
        let batches = snapshot
            .files(FileActionKind::Adds, wanted, &CancellationToken::default())
            .unwrap()
            .collect::<crate::error::Result<Vec<_>>>()
            .unwrap();
        let mut out = BTreeMap::new();
        for files in batches {
            let text = |column: Option<&arrow_array::StringViewArray>, row| {
                column
                    .filter(|c| arrow_array::Array::is_valid(*c, row))
                    .map(|c| c.value(row).to_owned())
            };
            let stats = super::stats::stats_json(files.stats.as_ref(), files.len());
            for row in 0..files.len() {
                let ids = [&files.base_row_id, &files.default_row_commit_version].map(|c| {
                    c.as_ref()
                        .filter(|c| arrow_array::Array::is_valid(*c, row))
                        .map(|c| c.value(row))
                });
                let texts = [
                    text(files.tags.as_ref(), row),
                    text(files.clustering.as_ref(), row),
                    text(Some(&stats), row),
                ];
                let rest = (
                    files.size.value(row),
                    files.deletion_vector(row),
                    files.time.as_ref().map(|c| c.value(row)),
                    ids,
                    texts,
                );
                assert!(
                    out.insert(files.path.value(row).to_owned(), format!("{rest:?}"))
                        .is_none()
                );
            }
        }
        out
    };
    let before = every(&table.newest());
    assert_eq!(before.len(), 9_001);
    assert!(
        before["part-6"].contains("p6")
            && before["part-6"].contains("cardinality: 6")
            && !before["part-1002"].contains("p1002")
    );
    table.checkpoint(1, &CheckpointOptions::default());
    std::fs::remove_file(table.path(&format!("{:020}.json", 0))).unwrap();
    std::fs::remove_file(table.path(&format!("{:020}.json", 1))).unwrap();
    let after = every(&table.newest());
    assert_eq!(after.len(), before.len());
    for (path, file) in &before {
        assert_eq!(after.get(path), Some(file), "{path}");
    }
}

#[test]
fn sidecars_are_as_large_as_asked_and_all_named() {
    let table = Table::of(
        "sidecars",
        1,
        &["v2Checkpoint"],
        json!({"delta.checkpointPolicy": "v2"}),
    );
    let many: Vec<Value> = (0..70_000).map(|n| add(&format!("part-{n}"), n)).collect();
    for version in 2..=5 {
        let actions: Vec<Value> = many
            .iter()
            .map(|add| {
                serde_json::from_str(&add.to_string().replace("part-", &format!("v{version}-")))
                    .unwrap()
            })
            .collect();
        table.commit(version, &actions);
    }
    let options = CheckpointOptions {
        sidecar_rows: 100_000,
        ..CheckpointOptions::default()
    };
    let info = table.checkpoint(5, &options);
    assert_eq!(info.num_add_files, 280_002);
    // Each is closed once it is large enough, so there are at most two full ones and a remainder.
    assert!((2..=3).contains(&info.sidecars.len()));
    let hint = table.hint();
    assert_eq!(
        hint["v2Checkpoint"]["sidecarFiles"]
            .as_array()
            .unwrap()
            .len(),
        info.sidecars.len()
    );
    assert_eq!(
        hint["v2Checkpoint"]["nonFileActions"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let total: u64 = info
        .sidecars
        .iter()
        .map(|s| s["sizeInBytes"].as_u64().unwrap())
        .sum();
    assert_eq!(
        total + hint["v2Checkpoint"]["sizeInBytes"].as_u64().unwrap(),
        info.size_in_bytes
    );
    let after = table.newest();
    assert!(after.segment().checkpoint.is_some());
    assert_eq!(adds(&after).len(), 280_002);
}

#[test]
fn sidecars_that_nothing_touched_are_named_again() {
    let table = Table::of("reuse", 0, &["v2Checkpoint", "deletionVectors"], json!({}));
    let now = now_ms();
    let block = |version: i64| {
        (0..1000)
            .map(|n| add(&format!("v{version}-{n}"), n))
            .collect::<Vec<_>>()
    };
    for version in 1..=3 {
        table.commit(version, &block(version));
        // A checkpoint after each commit: each block becomes a sidecar of its own, the first with
        // the file of version 0.
        let info = table.checkpoint(
            version,
            &CheckpointOptions {
                sidecar_rows: 1000,
                ..V2
            },
        );
        assert_eq!(info.sidecars.len(), usize::try_from(version).unwrap());
    }
    let paths = |info: &CheckpointInfo| {
        info.sidecars
            .iter()
            .map(|s| s["path"].as_str().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    let options = CheckpointOptions {
        sidecar_rows: 1000,
        ..V2
    };
    let before = table.checkpoint(3, &options);
    let mut deleted = add("v2-7", 7);
    deleted["add"]["deletionVector"] = vector(3);
    table.commit(
        4,
        &[
            remove("v1-5", 5, now),
            remove("v2-7", 7, now),
            deleted,
            add("new", 1),
        ],
    );
    let live = adds(&table.newest());
    let info = table.checkpoint(4, &options);
    assert_eq!(
        paths(&before).intersection(&paths(&info)).count(),
        1,
        "only the third block is as it was"
    );
    assert_eq!((info.num_add_files, info.num_remove_files), (3001, 2));
    let total: u64 = std::fs::read_dir(table.path("_sidecars"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| paths(&info).contains(entry.file_name().to_str().unwrap()))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!(
        total,
        info.sidecars
            .iter()
            .map(|s| s["sizeInBytes"].as_u64().unwrap())
            .sum::<u64>()
    );
    for version in 0..=4 {
        std::fs::remove_file(table.path(&format!("{version:020}.json"))).unwrap();
    }
    assert_eq!(adds(&table.newest()), live);
    // Other columns, expired tombstones: everything is written again.
    table.commit(5, &[metadata(json!({"delta.checkpoint.writeStatsAsJson": "false", "delta.deletedFileRetentionDuration": "interval 0 days"}))]);
    let anew = table.checkpoint(5, &options);
    assert_eq!(paths(&info).intersection(&paths(&anew)).count(), 0);
    assert_eq!((anew.num_add_files, anew.num_remove_files), (3001, 0));
    assert_eq!(adds(&table.newest()), live);
}

#[test]
fn the_hint_never_goes_back_unless_it_lies() {
    let table = Table::of("hint", 5, &[], json!({}));
    assert!(table.checkpoint(4, &CheckpointOptions::default()).is_last);
    assert!(!table.checkpoint(2, &CheckpointOptions::default()).is_last);
    assert_eq!(table.hint()["version"], 4);
    std::fs::remove_file(table.path("00000000000000000004.checkpoint.parquet")).unwrap();
    assert!(table.checkpoint(2, &CheckpointOptions::default()).is_last);
    assert_eq!(table.hint()["version"], 2);
}

#[test]
fn what_must_not_be_written_is_refused() {
    let refused = |features: &[&str], options: &CheckpointOptions| {
        let table = Table::of("refused", 1, features, json!({}));
        let error = write(&table.newest(), options, &CancellationToken::default())
            .unwrap_err()
            .to_string();
        assert!(
            !table.names().iter().any(|name| name.contains("checkpoint")),
            "{error}"
        );
        error
    };
    let default = CheckpointOptions::default();
    assert!(
        refused(
            &["v2Checkpoint"],
            &CheckpointOptions {
                parts: 2,
                ..default.clone()
            }
        )
        .contains("several parts")
    );
    assert!(refused(&[], &V2).contains("v2Checkpoint"));
    assert!(refused(&["appendOnly", "someFutureFeature"], &default).contains("someFutureFeature"));
    let table = Table::of("refused-unpublished", 1, &[], json!({}));
    let snapshot = table.newest();
    std::fs::remove_file(table.path("00000000000000000001.json")).unwrap();
    assert!(
        write(&snapshot, &default, &CancellationToken::default())
            .unwrap_err()
            .to_string()
            .contains("went back from 1 to 0")
    );
}

#[test]
fn expired_transactions_are_left_out() {
    let table = Table::new(
        "txn",
        &[],
        json!({"delta.setTransactionRetentionDuration": "interval 1 day"}),
    );
    let txn = |app: &str, updated: Option<i64>| json!({"txn": {"appId": app, "version": 1, "lastUpdated": updated}});
    table.commit(
        1,
        &[
            txn("new", Some(now_ms())),
            txn("old", Some(now_ms() - 2 * DAY)),
            txn("never", None),
        ],
    );
    table.checkpoint(1, &CheckpointOptions::default());
    table.commit(2, &[metadata(json!({}))]);
    std::fs::remove_file(table.path("00000000000000000001.json")).unwrap();
    assert_eq!(
        table
            .newest()
            .non_file_actions()
            .unwrap()
            .transactions
            .keys()
            .collect::<Vec<_>>(),
        ["new"]
    );
}

#[test]
fn a_checkpoint_is_due_by_interval_and_weight() {
    let named = Table::of(
        "due-named",
        6,
        &[],
        json!({"delta.checkpointInterval": "3"}),
    );
    assert_eq!(
        (0..=6)
            .map(|v| is_due(&named.at(v)).unwrap())
            .collect::<Vec<_>>(),
        [false, false, false, true, false, false, true]
    );
    named.checkpoint(3, &CheckpointOptions::default());
    assert!(
        is_due(&named.newest()).unwrap(),
        "what the table says is done, whatever it weighs"
    );
    let unnamed = Table::of("due-unnamed", 10, &[], json!({}));
    assert!(is_due(&unnamed.newest()).unwrap());
    let many: Vec<Value> = (0..100_000)
        .map(|n| add(&format!("{n:040}-{}", n * 7919 % 100_003), n))
        .collect();
    unnamed.commit(10, &many);
    unnamed.checkpoint(10, &CheckpointOptions::default());
    for version in 11..=110 {
        unnamed.commit(version, &[add(&format!("g{version}"), 1)]);
    }
    assert!(
        !is_due(&unnamed.at(20)).unwrap(),
        "ten small commits after a large checkpoint"
    );
    assert!(is_due(&unnamed.at(110)).unwrap(), "a hundred of them");
    unnamed.commit(
        20,
        &many
            .iter()
            .map(|add| {
                serde_json::from_str(&add.to_string().replace("\"path\":\"", "\"path\":\"x"))
                    .unwrap()
            })
            .collect::<Vec<_>>(),
    );
    assert!(is_due(&unnamed.at(20)).unwrap(), "a heavy commit");
}

// --- cleanup
// -------------------------------------------------------------------------------------------------------------

fn cleaned(table: &Table, options: &CleanupOptions) -> CleanupPlan {
    cleanup(&table.newest(), options, &CancellationToken::default()).unwrap()
}

/// Versions 0 to 12, a day apart, the newest 25 days old; checkpoints at 3, 6 and 9, checksums,
/// compactions.
fn aged(test: &str) -> Table {
    let table = Table::of(test, 12, &[], json!({}));
    for version in [3, 6, 9] {
        table.checkpoint(version, &CheckpointOptions::default());
    }
    for version in 0..=12 {
        write_checksum(&table.at(version), &CancellationToken::default()).unwrap();
    }
    for (first, last) in [(2, 5), (5, 8), (7, 8)] {
        compact(&table.newest(), first, last, &CancellationToken::default()).unwrap();
    }
    table.age(|version| 25 + 12 - version);
    table
}

#[test]
fn a_cleanup_keeps_the_newest_expired_checkpoint_and_what_follows() {
    let table = aged("cleanup");
    // Version 7 is 30 days old, so with the midnight before the 30th day the newest expired version
    // is 6 (or 7 at exactly midnight).
    let dry = cleaned(
        &table,
        &CleanupOptions {
            dry_run: true,
            ..CleanupOptions::default()
        },
    );
    assert_eq!(dry.kept_from, Some(6));
    let short = |path: &String| {
        path.trim_start_matches("_delta_log/")
            .replace("00000000000000000", "")
    };
    let expected = [
        "002.005.compacted.json",
        "005.008.compacted.json",
        "000.json",
        "001.json",
        "002.json",
        "003.json",
        "004.json",
        "005.json",
        "000.crc",
        "001.crc",
        "002.crc",
        "003.crc",
        "004.crc",
        "005.crc",
        "003.checkpoint.parquet",
    ];
    assert_eq!(dry.files.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(
        table.names().len(),
        13 + 3 + 13 + 3 + 1,
        "a dry run deletes nothing"
    );
    let live: Vec<_> = (6..=12).map(|version| adds(&table.at(version))).collect();
    // After every single deletion, in this order, every kept version is unchanged.
    for path in &dry.files {
        std::fs::remove_file(table.0.join(path)).unwrap();
        for (version, live) in (6..=12).zip(&live) {
            assert_eq!(
                &adds(&table.at(version)),
                live,
                "version {version} after {path} went"
            );
        }
        assert_eq!(table.newest().version(), 12);
    }
    assert_eq!(
        cleaned(&table, &CleanupOptions::default()),
        CleanupPlan::default(),
        "nothing is left to do"
    );
}

#[test]
fn a_cleanup_does_what_its_plan_says() {
    let table = aged("cleanup-done");
    let before = table.names();
    let plan = cleaned(
        &table,
        &CleanupOptions {
            dry_run: true,
            ..CleanupOptions::default()
        },
    );
    assert_eq!(cleaned(&table, &CleanupOptions::default()), plan);
    let gone: BTreeSet<String> = plan
        .files
        .iter()
        .map(|path| path.rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(table.names(), before.difference(&gone).cloned().collect());
}

#[test]
fn a_cleanup_takes_along_what_killed_writers_left_in_the_making() {
    let table = aged("cleanup-unfinished");
    let old = table.path(".00000000000000000013.json.5e86da40-1b3f-4a8e-a7b1-7bd16fd2ee3a.tmp");
    let young = table.path(".00000000000000000014.crc.5e86da40-1b3f-4a8e-a7b1-7bd16fd2ee3a.tmp");
    for path in [&old, &young] {
        std::fs::write(path, b"{").unwrap();
    }
    let days = std::time::Duration::from_millis(u64::try_from(3 * DAY).unwrap());
    std::fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(std::time::SystemTime::now() - days)
        .unwrap();
    cleaned(&table, &CleanupOptions::default());
    assert!(!old.exists() && young.exists());
}

#[test]
fn the_retention_counts_from_midnight() {
    let table = aged("midnight");
    let modified = |version: i64| table.at(version).timestamp_ms().unwrap();
    let kept = |now: i64| {
        cleaned(
            &table,
            &CleanupOptions {
                dry_run: true,
                now_ms: Some(now),
                retention_ms: Some(DAY),
                ..CleanupOptions::default()
            },
        )
        .kept_from
    };
    // The day after version 9's own day has begun, at any hour.
    let next_midnight = (modified(9).div_euclid(DAY) + 1) * DAY;
    assert_eq!(
        (
            kept(next_midnight + DAY - 1),
            kept(next_midnight + DAY),
            kept(next_midnight + 2 * DAY - 1)
        ),
        (Some(6), Some(9), Some(9))
    );
    // With minute precision the hour counts.
    let options = |now: i64| CleanupOptions {
        dry_run: true,
        now_ms: Some(now),
        retention_ms: Some(DAY),
        to_the_minute: true,
        ..CleanupOptions::default()
    };
    let minute = (modified(9).div_euclid(60_000) + 1) * 60_000;
    assert_eq!(
        (
            cleaned(&table, &options(minute + DAY - 1)).kept_from,
            cleaned(&table, &options(minute + DAY)).kept_from
        ),
        (Some(6), Some(9))
    );
}

#[test]
fn nothing_is_deleted_that_only_a_bad_checkpoint_would_replace() {
    let all = CleanupOptions {
        retention_ms: Some(0),
        now_ms: Some(now_ms() + 2 * DAY),
        ..CleanupOptions::default()
    };
    let without = Table::of("cleanup-none", 5, &[], json!({}));
    assert_eq!(cleaned(&without, &all), CleanupPlan::default());
    let table = aged("cleanup-bad");
    std::fs::write(
        table.path("00000000000000000009.checkpoint.parquet"),
        b"PAR1 nonsense PAR1",
    )
    .unwrap();
    assert_eq!(cleaned(&table, &all).kept_from, Some(6));
    let parts = Table::of("cleanup-parts", 5, &[], json!({}));
    parts.checkpoint(2, &CheckpointOptions::default());
    let info = parts.checkpoint(
        4,
        &CheckpointOptions {
            parts: 2,
            ..CheckpointOptions::default()
        },
    );
    std::fs::remove_file(parts.0.join(&info.files[1])).unwrap();
    assert_eq!(cleaned(&parts, &all).kept_from, Some(2));
}

#[test]
fn cleanups_that_nobody_asked_for_heed_the_table() {
    let all = CleanupOptions {
        retention_ms: Some(0),
        now_ms: Some(now_ms() + 2 * DAY),
        automatic: true,
        dry_run: true,
        ..CleanupOptions::default()
    };
    let table = Table::of(
        "automatic",
        4,
        &[],
        json!({"delta.enableExpiredLogCleanup": "false"}),
    );
    table.checkpoint(3, &CheckpointOptions::default());
    assert_eq!(cleaned(&table, &all), CleanupPlan::default());
    assert_eq!(
        cleaned(
            &table,
            &CleanupOptions {
                automatic: false,
                ..all.clone()
            }
        )
        .kept_from,
        Some(3)
    );
    let protected = Table::of(
        "protected",
        4,
        &["checkpointProtection", "v2Checkpoint"],
        json!({"delta.requireCheckpointProtectionBeforeVersion": "4"}),
    );
    protected.checkpoint(3, &CheckpointOptions::default());
    assert_eq!(cleaned(&protected, &all), CleanupPlan::default());
    protected.checkpoint(4, &CheckpointOptions::default());
    assert_eq!(cleaned(&protected, &all).kept_from, Some(4));
}

#[test]
fn sidecars_go_when_old_and_unnamed_and_old_readers_get_a_checkpoint_they_can_open() {
    let table = Table::of("unnamed", 6, &["v2Checkpoint"], json!({}));
    // Changes the first sidecar, which would be reused otherwise.
    table.commit(4, &[remove("f1", 11, now_ms()), add("f4", 14)]);
    let first = table.checkpoint(2, &V2);
    let second = table.checkpoint(5, &V2);
    let young = table.sidecar("young.parquet");
    let stray = table.sidecar("stray.parquet");
    for path in [&young, &stray] {
        std::fs::write(path, b"x").unwrap();
    }
    for sidecar in first.sidecars.iter().chain(&second.sidecars) {
        set_age(&table.sidecar(sidecar["path"].as_str().unwrap()), 9);
    }
    set_age(&stray, 9);
    let all = CleanupOptions {
        retention_ms: Some(0),
        now_ms: Some(now_ms() + DAY),
        ..CleanupOptions::default()
    };
    let plan = cleaned(&table, &all);
    assert_eq!(plan.kept_from, Some(5));
    let gone: BTreeSet<&str> = plan
        .files
        .iter()
        .filter_map(|path| path.strip_prefix("_delta_log/_sidecars/"))
        .collect();
    let mut expected: BTreeSet<&str> = first
        .sidecars
        .iter()
        .map(|s| s["path"].as_str().unwrap())
        .collect();
    expected.insert("stray.parquet");
    assert_eq!(gone, expected);
    assert!(young.exists());
    assert!(
        table
            .path("00000000000000000005.checkpoint.parquet")
            .exists(),
        "a twin under the name that readers without V2 look for"
    );
    for version in [5, 6] {
        assert_eq!(
            adds(&table.at(version)).len(),
            usize::try_from(version).unwrap()
        );
    }
    std::fs::remove_file(table.0.join(&second.files[0])).unwrap();
    assert_eq!(adds(&table.newest()).len(), 6, "the twin says the same");
}

// --- checksums
// -----------------------------------------------------------------------------------------------------------

/// The actions of a random commit.
#[derive(Debug, Clone)]
enum Step {
    Add(i64, Option<i64>),
    /// Removes the live file at this index, modulo their number.
    Remove(usize),
    /// Gives the live file at this index a deletion vector.
    Delete(usize, i64),
    Txn(u8, i64),
    Domain(u8, bool),
    Vectors,
    Rename(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_i64..400 << 20, prop::option::weighted(0.2, 0_i64..3_000_000_000)).prop_map(|(size, dv)| Step::Add(size, dv)),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => (any::<usize>(), 1_i64..20_000_000).prop_map(|(n, dv)| Step::Delete(n, dv)),
        1 => (0_u8..3, any::<i64>()).prop_map(|(app, version)| Step::Txn(app, version)),
        1 => (0_u8..3, any::<bool>()).prop_map(|(domain, removed)| Step::Domain(domain, removed)),
        1 => Just(Step::Vectors),
        1 => any::<u8>().prop_map(Step::Rename),
    ]
}

/// Writes random commits; returns the version of the last one.
fn play(table: &Table, commits: &[Vec<Step>]) -> i64 {
    let mut live: Vec<(String, i64, Option<i64>)> = vec![("f0".to_owned(), 10, None)];
    let (mut named, mut vectors) = (0, false);
    let file = |kind: &str, (path, size, dv): &(String, i64, Option<i64>)| {
        let mut action = if kind == "add" {
            add(path, *size)
        } else {
            remove(path, *size, 9)
        };
        if let Some(dv) = dv {
            action[kind]["deletionVector"] = vector(*dv);
        }
        action
    };
    let mut version = 0;
    for steps in commits {
        version += 1;
        let mut actions =
            vec![json!({"commitInfo": {"operation": "WRITE", "txnId": format!("t{version}")}})];
        let mut touched: BTreeSet<String> = BTreeSet::new();
        let mut once: BTreeSet<String> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Add(size, dv) => {
                    named += 1;
                    let new = (format!("n{named}"), *size, dv.filter(|_| vectors));
                    actions.push(file("add", &new));
                    touched.insert(new.0.clone());
                    live.push(new);
                }
                Step::Remove(n) | Step::Delete(n, _) if !live.is_empty() => {
                    let n = n % live.len();
                    if !touched.insert(live[n].0.clone()) {
                        continue;
                    }
                    actions.push(file("remove", &live[n]));
                    match step {
                        Step::Delete(_, dv) if vectors && live[n].2 != Some(*dv) => {
                            live[n].2 = Some(*dv);
                            actions.push(file("add", &live[n]));
                        }
                        _ => _ = live.remove(n),
                    }
                }
                Step::Txn(app, v) if once.insert(format!("txn{app}")) => {
                    actions.push(json!({"txn": {"appId": format!("a{app}"), "version": v}}));
                }
                Step::Domain(domain, removed) if once.insert(format!("domain{domain}")) => {
                    actions.push(json!({"domainMetadata": {"domain": format!("d{domain}"), "configuration": format!("{version}"), "removed": removed}}));
                }
                Step::Vectors if once.insert("protocol".into()) => {
                    vectors = true;
                    actions.push(protocol(&["deletionVectors", "domainMetadata"]));
                }
                Step::Rename(name) if once.insert("metaData".into()) => {
                    actions.push(metadata(json!({"user.name": name.to_string()})));
                }
                _ => {}
            }
        }
        table.commit(version, &actions);
    }
    version
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_checksum_made_of_the_one_before_is_that_of_all_files(commits in prop::collection::vec(prop::collection::vec(step(), 0..7), 1..9)) {
        let table = Table::new("crc", &[], json!({}));
        let last = play(&table, &commits);
        let mut previous = compute_checksum(&table.at(0), &CancellationToken::default()).unwrap();
        for version in 1..=last {
            let text = Bytes::from(std::fs::read(table.path(&format!("{version:020}.json"))).unwrap());
            // Through the file's content, as the next writer reads it.
            let read = VersionChecksum::parse(previous.to_json().unwrap().as_bytes()).unwrap();
            prop_assert_eq!(&read, &previous);
            let next = next_checksum(&read, &text).unwrap().unwrap();
            let whole = compute_checksum(&table.at(version), &CancellationToken::default()).unwrap();
            prop_assert_eq!(&next, &whole, "version {}", version);
            previous = next;
        }
    }
}

#[test]
fn where_the_short_way_could_differ_it_is_not_taken() {
    let table = Table::new("crc-long", &[], json!({}));
    let base = compute_checksum(&table.at(0), &CancellationToken::default()).unwrap();
    let next = |actions: &[Value]| {
        let text: String = actions.iter().map(|action| format!("{action}\n")).collect();
        next_checksum(&base, &Bytes::from(text)).unwrap()
    };
    let mut again = add("f0", 10);
    again["add"]["dataChange"] = false.into();
    assert!(next(&[again]).is_none(), "a live file named again");
    assert!(
        next(&[json!({"remove": {"path": "f0", "dataChange": true}})]).is_none(),
        "a remove without a size"
    );
    assert!(
        next(&[remove("f0", 10, 1), remove("f1", 10, 1)]).is_none(),
        "more removes than files"
    );
    assert!(
        next(&[
            json!({"commitInfo": {"operation": "COMPUTE STATS"}}),
            add("f0", 10)
        ])
        .is_none()
    );
    let retained = next(&[metadata(
        json!({"delta.setTransactionRetentionDuration": "1 day"}),
    )])
    .unwrap();
    assert_eq!(retained.facts.set_transactions, None);
}

#[test]
fn a_checksum_is_written_once_and_has_no_nulls() {
    let table = Table::of("crc-file", 2, &[], json!({}));
    for version in 0..=2 {
        assert!(write_checksum(&table.at(version), &CancellationToken::default()).unwrap());
    }
    let path = table.path("00000000000000000002.crc");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(":null"), "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (
            json["numFiles"].as_i64(),
            json["tableSizeBytes"].as_i64(),
            json["numMetadata"].as_i64()
        ),
        (Some(3), Some(33), Some(1))
    );
    assert_eq!(json["fileSizeHistogram"]["fileCounts"][0], 3);
    std::fs::write(&path, "mine").unwrap();
    assert!(!write_checksum(&table.at(2), &CancellationToken::default()).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn the_histogram_name_of_older_writers_is_read() {
    let table = Table::new("crc-alias", &[], json!({}));
    let own = compute_checksum(&table.newest(), &CancellationToken::default()).unwrap();
    let text = own.to_json().unwrap();
    assert_eq!(
        VersionChecksum::parse(text.replace("fileSizeHistogram", "histogramOpt").as_bytes())
            .unwrap(),
        own
    );
    assert!(
        VersionChecksum::parse(
            text.replace("\"fileCounts\":[1,", "\"fileCounts\":[")
                .as_bytes()
        )
        .is_none(),
        "bins that do not match"
    );
}

#[test]
fn a_snapshot_goes_on_from_the_checkpoints_that_it_writes() {
    let forms: [(&str, &[&str], CheckpointOptions); 6] = [
        ("classic", &[], CheckpointOptions::default()),
        (
            "parts",
            &[],
            CheckpointOptions {
                parts: 3,
                ..CheckpointOptions::default()
            },
        ),
        (
            "json",
            &["v2Checkpoint"],
            CheckpointOptions {
                form: CheckpointSpec::V2,
                ..CheckpointOptions::default()
            },
        ),
        (
            "inline",
            &["v2Checkpoint"],
            CheckpointOptions {
                form: CheckpointSpec::V2,
                sidecars: false,
                ..CheckpointOptions::default()
            },
        ),
        (
            "parquet",
            &["v2Checkpoint"],
            CheckpointOptions {
                form: CheckpointSpec::V2,
                json: false,
                ..CheckpointOptions::default()
            },
        ),
        (
            "named",
            &["v2Checkpoint"],
            CheckpointOptions {
                form: CheckpointSpec::V2,
                classic_name: true,
                ..CheckpointOptions::default()
            },
        ),
    ];
    for (name, features, options) in forms {
        let table = Table::of(&format!("goes-on-{name}"), 12, features, json!({}));
        let snapshot = table.newest();
        write(&snapshot, &options, &CancellationToken::default()).unwrap();
        let segment = snapshot.segment();
        let listed = table.newest().segment();
        let (own, listed) = (
            segment.checkpoint.as_ref().unwrap(),
            listed.checkpoint.as_ref().unwrap(),
        );
        assert_eq!(
            (own.version, own.kind),
            (listed.version, listed.kind),
            "{name}"
        );
        let paths = |checkpoint: &crate::log::CheckpointInstance| {
            checkpoint
                .files
                .iter()
                .map(|file| file.path.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(own), paths(listed), "{name}");
        assert!(
            own.files
                .iter()
                .zip(&listed.files)
                .all(|(own, listed)| own.size.is_none_or(|size| Some(size) == listed.size)),
            "{name}"
        );
        assert!(
            segment.commits.is_empty() && segment.replay.is_empty(),
            "{name}"
        );
        for version in 13..=15 {
            table.commit(
                version,
                &[
                    add(&format!("f{version}"), 10 + version),
                    remove(&format!("f{}", version - 10), version, 1),
                ],
            );
        }
        let newer = snapshot.at(None).unwrap();
        assert_eq!(
            (newer.version(), newer.segment().commits.len()),
            (15, 3),
            "{name}"
        );
        assert_eq!(
            files(&newer, FileActionKind::Adds),
            files(&table.newest(), FileActionKind::Adds),
            "{name}"
        );
        // Readers that have the files of a version before the checkpoint continue from there.
        assert!(newer.has_commits_since(5), "{name}");
        let (added, touched) = newer
            .files_since(
                10,
                &crate::reconcile::SeenFileKeys::default(),
                FileActionProjection::default(),
                &CancellationToken::default(),
            )
            .unwrap();
        assert_eq!(
            added
                .iter()
                .map(crate::parse::FileBatch::len)
                .sum::<usize>(),
            5,
            "{name}"
        );
        assert!(!touched.is_empty());
    }
}

#[test]
fn what_a_snapshot_holds_does_not_grow_with_its_commits() {
    let table = Table::of("flat", 0, &[], json!({}));
    let mut snapshot = table.newest();
    let first = snapshot.segment().last_commit.clone().unwrap();
    let mut most = 0;
    for version in 1..=600 {
        table.commit(version, &[add(&format!("f{version}"), 10 + version)]);
        snapshot = snapshot.at(None).unwrap();
        if version % 10 == 0 {
            write(
                &snapshot,
                &CheckpointOptions::default(),
                &CancellationToken::default(),
            )
            .unwrap();
        }
        most = most.max(snapshot.segment().known_commits().count());
    }
    assert!(most <= 140, "{most} commits are held");
    assert_eq!(files(&snapshot, FileActionKind::Adds).len(), 601);
    // Their contents were dropped, too: this one would have to be read.
    std::fs::remove_file(table.path(&format!("{:020}.json", 0))).unwrap();
    assert!(snapshot.commit_bytes(&first).is_err());
}

#[test]
fn nothing_is_written_into_the_log_of_another_table() {
    let table = Table::of("replaced", 3, &[], json!({}));
    let old = table.newest();
    let listed = {
        // At a checkpoint the version's own commit is listed and not read.
        table.checkpoint(3, &CheckpointOptions::default());
        table.newest()
    };
    for name in table.names() {
        std::fs::remove_file(table.path(&name)).unwrap();
    }
    let mut other = metadata(json!({}));
    other["metaData"]["id"] = "other".into();
    table.commit(0, &[protocol(&[]), other, add("g0", 10)]);
    for version in 1..=4 {
        table.commit(version, &[add(&format!("gone{version}"), 10 + version)]);
    }
    let names = table.names();
    let cancel = CancellationToken::default();
    for snapshot in [&old, &listed] {
        let results = [
            write(snapshot, &CheckpointOptions::default(), &cancel).map(|_| ()),
            write_checksum(snapshot, &cancel).map(|_| ()),
            compact(snapshot, 0, 3, &cancel).map(|_| ()),
            snapshot.at(None).map(|_| ()),
            snapshot.check_in_log(),
        ];
        for result in results {
            assert!(
                result
                    .unwrap_err()
                    .to_string()
                    .contains("replaced by another one (its id was `t` and is `other`)")
            );
        }
    }
    assert_eq!(table.names(), names);
}

#[test]
fn a_hint_that_cannot_be_read_is_no_obstacle() {
    let table = Table::of("unreadable-hint", 12, &[], json!({}));
    table.checkpoint(10, &CheckpointOptions::default());
    let hint = table.path("_last_checkpoint");
    let store = open(table.0.to_str().unwrap(), &StorageOptions::new()).unwrap();
    for retryable in [true, false] {
        let failing = Arc::new(NoHint {
            inner: Arc::clone(&store),
            retryable,
        });
        let log = DeltaLog::new(
            Arc::new(TableStores::new(
                failing,
                StorageOptions::new(),
                ExternalPaths::Refused,
            )),
            Vec::new(),
        )
        .unwrap();
        let snapshot = Snapshot::open(log, None, ReadOptions::default()).unwrap();
        assert_eq!(
            (
                snapshot.version(),
                snapshot.segment().checkpoint.as_ref().map(|c| c.version)
            ),
            (12, Some(10))
        );
        assert!(is_due(&table.at(10)).is_ok());
    }
    assert!(hint.exists());
}

/// A store that cannot read the hint.
#[derive(Debug)]
struct NoHint {
    inner: Arc<dyn crate::store::Store>,
    retryable: bool,
}

impl crate::store::Store for NoHint {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn list_from(
        &self,
        dir: &str,
        after: &str,
    ) -> crate::error::Result<Vec<crate::store::ObjectMeta>> {
        self.inner.list_from(dir, after)
    }

    fn head(&self, path: &str) -> crate::error::Result<crate::store::ObjectMeta> {
        self.inner.head(path)
    }

    fn get(&self, path: &str) -> crate::store::PendingResult<(Bytes, crate::store::ObjectMeta)> {
        if path.ends_with("_last_checkpoint") {
            let error = crate::error::Error::storage("the disk failed", self.retryable);
            return crate::store::PendingResult::lazy(move || Err(error));
        }
        self.inner.get(path)
    }

    fn get_ranges(
        &self,
        path: &str,
        ranges: Vec<std::ops::Range<u64>>,
    ) -> crate::store::PendingResult<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges)
    }
}
