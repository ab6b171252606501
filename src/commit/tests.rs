//! Verdicts on metadata, row ids and domains, where no table is needed. The matrix of operations is
//! in `tests/rust`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::error::{ConflictKind, Error, Result};
use crate::protocol::action::{DomainMetadata, FormatSpecification, Metadata, Protocol};
use crate::protocol::commit_line::{Action, Add};

fn protocol(features: &[&str]) -> Protocol {
    let list: Vec<String> = features.iter().map(ToString::to_string).collect();
    let of_readers = list
        .iter()
        .filter(|f| {
            matches!(
                f.as_str(),
                "columnMapping" | "deletionVectors" | "v2Checkpoint"
            )
        })
        .cloned()
        .collect();
    Protocol {
        min_reader_version: 3,
        min_writer_version: 7,
        reader_features: Some(of_readers),
        writer_features: Some(list),
    }
}

const FEATURES: &[&str] = &[
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "inCommitTimestamp",
    "rowTracking",
    "v2Checkpoint",
];

fn metadata(configuration: &[(&str, &str)], field: Value) -> Metadata {
    Metadata {
        id: "i".into(),
        name: None,
        description: None,
        format: FormatSpecification::default(),
        schema_string: json!({"type": "struct", "fields": [field]}).to_string(),
        partition_columns: vec![],
        configuration: configuration
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        created_time: Some(1),
    }
}

fn plain() -> Value {
    json!({"name": "a", "type": "long", "nullable": true, "metadata": {}})
}

fn view() -> CommitBaseState {
    CommitBaseState::new(
        0,
        protocol(FEATURES),
        metadata(&[("owner", "me")], plain()),
        9,
        0,
    )
}

fn intent(name: &str, actions: Vec<Action>) -> PreparedTransaction {
    PreparedTransaction {
        txn_id: "mine".into(),
        read_version: 0,
        reads: ReadSet::default(),
        actions,
        protocol: None,
        metadata: None,
        operation: CommitOperation::new(name),
        isolation: IsolationLevel::Serializable,
        is_blind_append: false,
        removed: std::collections::HashSet::default(),
        revalidates: false,
    }
}

fn winner(info: Value, lines: &[Value]) -> WinningCommit {
    let mut text = json!({"commitInfo": info}).to_string() + "\n";
    for line in lines {
        text += &(line.to_string() + "\n");
    }
    WinningCommit::parse(
        1,
        &text.into(),
        5,
        Some(crate::parse::FileActionProjection::default()),
    )
    .unwrap()
}

fn with_metadata(metadata: &Metadata) -> WinningCommit {
    winner(
        json!({"operation": "SET TBLPROPERTIES"}),
        &[json!({"metaData": metadata})],
    )
}

fn lost(result: Result<RebasedState>) -> Option<ConflictKind> {
    match result {
        Ok(_) => None,
        Err(Error::CommitFailed { conflict, .. }) => Some(conflict),
        Err(error) => panic!("{error}"),
    }
}

fn lines(view: &CommitBaseState, intent: &PreparedTransaction) -> Vec<Value> {
    let text = view.commit_bytes(intent, 100).unwrap();
    std::str::from_utf8(&text)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn add(path: &str) -> Add {
    Add {
        path: path.into(),
        size: 1,
        data_change: true,
        stats: Some(r#"{"numRecords":5}"#.into()),
        ..Add::default()
    }
}

#[test]
fn switching_on_what_needs_no_rewrite_is_no_conflict() {
    let mapped = json!({"name": "a", "type": "long", "nullable": true, "metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "a"}});
    let names = [
        ("delta.rowTracking.materializedRowIdColumnName", "x"),
        (
            "delta.rowTracking.materializedRowCommitVersionColumnName",
            "y",
        ),
    ];
    type Case<'a> = (bool, Vec<(&'a str, &'a str)>, Value);
    let cases: Vec<Case<'_>> = vec![
        (
            true,
            [&[("delta.enableRowTracking", "true")][..], &names[..]].concat(),
            plain(),
        ),
        (true, vec![("delta.enableDeletionVectors", "true")], plain()),
        (true, vec![("delta.checkpointPolicy", "v2")], plain()),
        (
            true,
            vec![
                ("delta.columnMapping.mode", "name"),
                ("delta.columnMapping.maxColumnId", "1"),
            ],
            mapped.clone(),
        ),
        (
            false,
            vec![
                ("delta.columnMapping.mode", "id"),
                ("delta.columnMapping.maxColumnId", "1"),
            ],
            mapped.clone(),
        ),
        (false, vec![], mapped),
        (
            false,
            vec![("delta.enableDeletionVectors", "false")],
            plain(),
        ),
        (
            false,
            vec![
                ("delta.enableDeletionVectors", "true"),
                ("delta.appendOnly", "true"),
            ],
            plain(),
        ),
        (false, names.to_vec(), plain()),
        (
            false,
            vec![],
            json!({"name": "a", "type": "string", "nullable": true, "metadata": {}}),
        ),
    ];
    for (harmless, mut changes, field) in cases {
        changes.push(("owner", "me"));
        let after = metadata(&changes, field);
        let adopted = check(
            &intent("WRITE", vec![]),
            &view(),
            &with_metadata(&after),
            None,
        );
        assert_eq!(
            lost(adopted),
            (!harmless).then_some(ConflictKind::MetadataChanged),
            "{changes:?}"
        );
    }
    // A key that was removed.
    assert_eq!(
        lost(check(
            &intent("WRITE", vec![]),
            &view(),
            &with_metadata(&metadata(&[], plain())),
            None
        )),
        Some(ConflictKind::MetadataChanged)
    );
    // Without the feature the property has no effect yet, but it will.
    let view = CommitBaseState::new(
        0,
        protocol(&["domainMetadata"]),
        metadata(&[], plain()),
        -1,
        0,
    );
    let on = metadata(&[("delta.enableDeletionVectors", "true")], plain());
    assert_eq!(
        lost(check(
            &intent("WRITE", vec![]),
            &view,
            &with_metadata(&on),
            None
        )),
        Some(ConflictKind::MetadataChanged)
    );
}

#[test]
fn metadata_taken_over_holds_for_the_commit() {
    let after = metadata(
        &[
            ("owner", "me"),
            ("delta.enableInCommitTimestamps", "true"),
            ("delta.inCommitTimestampEnablementVersion", "1"),
        ],
        plain(),
    );
    let other = winner(
        json!({"operation": "SET TBLPROPERTIES", "inCommitTimestamp": 500}),
        &[json!({"metaData": after})],
    );
    let mine = intent("WRITE", vec![Action::Add(add("x"))]);
    let adopted = check(&mine, &view(), &other, None).unwrap();
    let lines = lines(&view().rebased_onto(&other, adopted).unwrap(), &mine);
    assert_eq!(
        lines[0]["commitInfo"]["inCommitTimestamp"], 501,
        "after the other's, though our clock is behind"
    );
    assert!(lines.iter().all(|line| line.get("metaData").is_none()));

    let rows = metadata(
        &[
            ("owner", "me"),
            ("delta.enableRowTracking", "true"),
            ("delta.rowTracking.materializedRowIdColumnName", "x"),
        ],
        plain(),
    );
    let other = with_metadata(&rows);
    let adopted = check(&mine, &view(), &other, None).unwrap();
    let lines = self::lines(&view().rebased_onto(&other, adopted).unwrap(), &mine);
    assert_eq!(
        lines[0]["commitInfo"]["tags"]["delta.rowTracking.preserved"],
        "false"
    );
}

#[test]
fn identity_marks_of_others_are_no_conflict_unless_one_writes_metadata_too() {
    let after = metadata(
        &[("owner", "me")],
        json!({"name": "a", "type": "long", "nullable": true, "metadata": {"delta.identity.highWaterMark": 7}}),
    );
    let other = winner(
        json!({"operation": "WRITE", "tags": {"delta.identity.schemaUpdate": "true"}}),
        &[json!({"metaData": after})],
    );
    assert_eq!(
        lost(check(&intent("WRITE", vec![]), &view(), &other, None)),
        None
    );
    let mine = PreparedTransaction {
        metadata: Some(metadata(&[], plain())),
        ..intent("WRITE", vec![])
    };
    assert_eq!(
        lost(check(&mine, &view(), &other, None)),
        Some(ConflictKind::MetadataChanged)
    );
}

#[test]
fn protocols_that_drop_or_cannot_be_written_end_the_transaction() {
    let with = |features: &[&str]| winner(json!({}), &[json!({"protocol": protocol(features)})]);
    let mine = || intent("WRITE", vec![]);
    assert_eq!(
        lost(check(&mine(), &view(), &with(&FEATURES[..5]), None)),
        Some(ConflictKind::ProtocolChanged)
    );
    assert_eq!(
        lost(check(
            &mine(),
            &view(),
            &with(&[FEATURES, &["clustering"][..]].concat()),
            None
        )),
        None
    );
    let unknown = check(
        &mine(),
        &view(),
        &with(&[FEATURES, &["future"][..]].concat()),
        None,
    )
    .unwrap_err();
    assert!(matches!(unknown, Error::Unsupported { feature: Some(f), .. } if f == "future"));
    let dropping = PreparedTransaction {
        protocol: Some(protocol(&FEATURES[..5])),
        ..mine()
    };
    assert_eq!(
        lost(check(&dropping, &view(), &winner(json!({}), &[]), None)),
        Some(ConflictKind::ProtocolChanged)
    );
}

#[test]
fn row_ids_follow_the_mark_of_the_newest_commit() {
    let mark = json!({"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{\"rowIdHighWaterMark\":19}", "removed": false}});
    let mine = intent(
        "WRITE",
        vec![
            Action::Add(add("x")),
            Action::Add(Add {
                base_row_id: Some(3),
                default_row_commit_version: Some(0),
                ..add("kept")
            }),
            Action::Add(add("y")),
        ],
    );
    let ids = |view: &CommitBaseState| -> Vec<(i64, i64)> {
        let lines = lines(view, &mine);
        lines
            .iter()
            .filter_map(|l| l.get("add"))
            .map(|a| {
                (
                    a["baseRowId"].as_i64().unwrap(),
                    a["defaultRowCommitVersion"].as_i64().unwrap(),
                )
            })
            .collect()
    };
    assert_eq!(ids(&view()), [(10, 1), (3, 0), (15, 1)]);
    let other = winner(json!({}), &[mark]);
    let view = view()
        .rebased_onto(&other, check(&mine, &view(), &other, None).unwrap())
        .unwrap();
    assert_eq!(ids(&view), [(20, 2), (3, 0), (25, 2)]);
    assert_eq!(
        lines(&view, &mine)[1]["domainMetadata"]["configuration"],
        "{\"rowIdHighWaterMark\":29}"
    );
    let uncounted = intent(
        "WRITE",
        vec![Action::Add(Add {
            stats: None,
            ..add("x")
        })],
    );
    assert!(
        view.commit_bytes(&uncounted, 1)
            .unwrap_err()
            .to_string()
            .contains("numRecords")
    );
}

#[test]
fn a_backfill_and_what_it_meets_agree_on_row_ids() {
    let filled = json!({"add": {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": false, "baseRowId": 4, "defaultRowCommitVersion": 1}});
    let other = winner(json!({"operation": "ROW TRACKING BACKFILL"}), &[filled]);
    let mine = PreparedTransaction {
        removed: std::iter::once("x".to_owned()).collect(),
        ..intent("DELETE", vec![Action::Remove(add("x").to_remove(1, true))])
    };
    let mine = PreparedTransaction {
        reads: ReadSet {
            whole_table: true,
            ..ReadSet::default()
        },
        ..mine
    };
    let adopted = check(&mine, &view(), &other, None).unwrap();
    let remove = lines(&view().rebased_onto(&other, adopted).unwrap(), &mine)
        .pop()
        .unwrap();
    assert_eq!(
        (
            &remove["remove"]["baseRowId"],
            &remove["remove"]["defaultRowCommitVersion"]
        ),
        (&json!(4), &json!(1))
    );

    let gone = winner(
        json!({"operation": "DELETE"}),
        &[json!({"remove": {"path": "x", "dataChange": true}})],
    );
    let backfill = intent(
        "ROW TRACKING BACKFILL",
        vec![Action::Add(add("x")), Action::Add(add("y"))],
    );
    let backfill = PreparedTransaction {
        reads: ReadSet {
            files: ["x".to_owned(), "y".to_owned()].into_iter().collect(),
            ..ReadSet::default()
        },
        ..backfill
    };
    let adopted = check(&backfill, &view(), &gone, None).unwrap();
    let lines = lines(&view().rebased_onto(&gone, adopted).unwrap(), &backfill);
    let paths: Vec<&str> = lines
        .iter()
        .filter_map(|l| l.get("add"))
        .map(|a| a["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["y"], "a file that was removed must not come back");
    assert_eq!(
        lost(check(
            &intent("ROW TRACKING UNBACKFILL", vec![]),
            &view(),
            &gone,
            None
        )),
        Some(ConflictKind::ConcurrentWrite)
    );
}

#[test]
fn a_replaced_table_loses_domains_that_came_meanwhile() {
    let domain = DomainMetadata {
        domain: "theirs".into(),
        configuration: "c".into(),
        removed: false,
    };
    let other = winner(json!({}), &[json!({"domainMetadata": domain})]);
    let mine = intent("REPLACE TABLE", vec![]);
    let adopted = check(&mine, &view(), &other, None).unwrap();
    let lines = lines(&view().rebased_onto(&other, adopted).unwrap(), &mine);
    assert_eq!(
        lines[1]["domainMetadata"],
        json!({"domain": "theirs", "configuration": "c", "removed": true})
    );
}

#[test]
fn waits_are_random_and_bounded() {
    let backoff = BackoffPolicy {
        base: Duration::from_millis(10),
        cap: Duration::from_millis(100),
    };
    let longest = |losses| {
        (0..1000_u64)
            .map(|n| backoff.delay(losses, n.wrapping_mul(7919)))
            .max()
            .unwrap()
    };
    assert!(
        longest(1) <= Duration::from_millis(10)
            && longest(3) <= Duration::from_millis(40)
            && longest(1000) <= Duration::from_millis(100)
    );
    assert!(longest(3) > Duration::from_millis(5));
    assert_eq!(backoff.delay(5, 0), Duration::ZERO);
    assert_eq!(
        backoff.for_store_errors(),
        BackoffPolicy {
            base: Duration::from_millis(50),
            cap: Duration::from_millis(800)
        }
    );
}

#[test]
fn commit_information_is_complete() {
    let mut mine = intent("DELETE", vec![]);
    mine.operation = CommitOperation::from_json(
        r#"{"name":"DELETE","parameters":{"predicate":"[\"a = 1\"]"},"metrics":{"numRemovedFiles":"1"},"userMetadata":"u","extra":{"mykey":1}}"#,
    )
    .unwrap();
    let info = lines(&view(), &mine).remove(0)["commitInfo"].clone();
    let expected: BTreeMap<&str, Value> = [
        ("timestamp", json!(100)),
        ("operation", json!("DELETE")),
        ("operationParameters", json!({"predicate": "[\"a = 1\"]"})),
        ("readVersion", json!(0)),
        ("isolationLevel", json!("Serializable")),
        ("isBlindAppend", json!(false)),
        ("dataChange", json!(false)),
        ("operationMetrics", json!({"numRemovedFiles": "1"})),
        ("userMetadata", json!("u")),
        (
            "engineInfo",
            json!(concat!("deltafast/", env!("CARGO_PKG_VERSION"))),
        ),
        ("txnId", json!("mine")),
        ("mykey", json!(1)),
    ]
    .into();
    assert_eq!(info, json!(expected));
}
