//! Commands that keep a table in order, with a store that fails at every call in turn: whatever
//! happens, the table is the old one or the new one, and no file that it needs is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use deltafast::checkpoint::{self, CheckpointOptions};
use deltafast::commit::{CommitOperation, OptimisticTransaction};
use deltafast::error::{Error, Result};
use deltafast::exec::{CancellationToken, RuntimeEnv, SystemEnv};
use deltafast::ops::maintain::{
    self, CloneOptions, ConvertOptions, RepairOptions, RestoreOptions, VacuumOptions,
};
use deltafast::protocol::commit_line::Action;
use deltafast::store::fault::{FaultStore, InjectedFault};
use deltafast::store::{ObjectRole, StorageOptions, Store, open};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use super::super::tables::{
    create_table, file, infos, live, log, memory, options, snapshot, versions,
};

const FAULTS: [InjectedFault; 4] = [
    InjectedFault::ErrorBefore,
    InjectedFault::ErrorAfter,
    InjectedFault::LostAnswer,
    InjectedFault::Status(503),
];

fn put(store: &Arc<dyn Store>, path: &str, bytes: &[u8]) {
    store
        .put_if_absent(path, bytes.to_vec().into(), ObjectRole::Essential)
        .unwrap();
}

/// A table of `a` and `b`, of which `a` was replaced by `c`; `stray` belongs to nobody.
fn table() -> Arc<dyn Store> {
    let store = memory();
    for name in ["a", "b", "c", "stray"] {
        put(&store, name, b"data");
    }
    let [a, b, c] =
        [("a", 0), ("b", 10), ("c", 20)].map(|(name, low)| file(name, "p", low, low + 9));
    create_table(&store, &[], &[a.clone(), b]).unwrap();
    let mut tx = OptimisticTransaction::new(&snapshot(&store));
    tx.read_files(["a"]).unwrap();
    tx.extend([Action::Remove(a.to_remove(1, true)), Action::Add(c)]);
    tx.set_operation(CommitOperation::new("UPDATE"));
    tx.commit(&options(1)).unwrap();
    store
}

fn paths(store: &Arc<dyn Store>) -> BTreeSet<String> {
    live(&versions(store)).into_keys().collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Fails a command at every call of its in turn. `check` is told whether it succeeded.
fn at_every_call(
    make: impl Fn() -> Arc<dyn Store>,
    run: impl Fn(&Arc<dyn Store>) -> Result<()>,
    check: impl Fn(&Arc<dyn Store>, bool),
) {
    let mut most = 0;
    for n in 0.. {
        for fault in FAULTS {
            let store = make();
            let faulty = Arc::new(FaultStore::at_call(Arc::clone(&store), n, fault));
            let done = run(&(Arc::clone(&faulty) as Arc<dyn Store>));
            check(&store, done.is_ok());
            most = faulty.calls().len();
        }
        if n > most {
            assert!(n > 3, "the command makes calls");
            return;
        }
    }
}

fn week_later() -> Option<i64> {
    Some(SystemEnv.now_ms() + 8 * 86_400_000)
}

fn vacuum_options(full: bool) -> VacuumOptions {
    VacuumOptions {
        full,
        now_ms: week_later(),
        ..VacuumOptions::default()
    }
}

#[test]
fn a_vacuum_that_fails_anywhere_deletes_nothing_that_is_needed() {
    for full in [false, true] {
        let run = |store: &Arc<dyn Store>| {
            let snapshot = deltafast::snapshot::Snapshot::open(
                log(store),
                None,
                deltafast::snapshot::ReadOptions::default(),
            )?;
            maintain::vacuum(
                &snapshot,
                &vacuum_options(full),
                None,
                &CancellationToken::default(),
            )
            .map(|_| ())
        };
        let check = |store: &Arc<dyn Store>, done: bool| {
            assert_eq!(paths(store), set(&["b", "c"]));
            for name in ["b", "c"] {
                assert!(store.head(name).is_ok());
            }
            let (all, gone) = (versions(store), store.head("a").is_err());
            let operations: Vec<&str> = infos(&all)
                .iter()
                .map(|info| info["operation"].as_str().unwrap())
                .collect();
            if gone {
                assert!(
                    operations.contains(&"VACUUM START"),
                    "what was deleted was told first: {operations:?}"
                );
            }
            if done {
                assert!(
                    gone && operations.ends_with(&["VACUUM START", "VACUUM END"]),
                    "{operations:?}"
                );
                assert_eq!(store.head("stray").is_err(), full);
            }
            assert!(
                operations.iter().filter(|o| **o == "VACUUM START").count() <= 1,
                "{operations:?}"
            );
        };
        at_every_call(table, run, check);
    }
}

#[test]
fn a_vacuum_keeps_what_came_back_while_it_looked() {
    let store = table();
    let before = snapshot(&store);
    maintain::restore(
        &before,
        &RestoreOptions {
            version: Some(0),
            ..RestoreOptions::default()
        },
        &CancellationToken::default(),
    )
    .unwrap();
    // Its snapshot is from before the restore, when `a` was to go.
    let done = maintain::vacuum(
        &before,
        &vacuum_options(false),
        None,
        &CancellationToken::default(),
    )
    .unwrap();
    assert!(store.head("a").is_ok(), "{:?}", done.files);
    assert_eq!(paths(&store), set(&["a", "b"]));
}

#[test]
fn two_vacuums_at_once_are_safe() {
    let store = table();
    let seen = snapshot(&store);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                maintain::vacuum(
                    &seen,
                    &vacuum_options(true),
                    None,
                    &CancellationToken::default(),
                )
                .unwrap()
            });
        }
    });
    assert!(store.head("a").is_err() && store.head("stray").is_err());
    assert!(store.head("b").is_ok() && store.head("c").is_ok());
    assert_eq!(paths(&store), set(&["b", "c"]));
}

#[test]
fn deletions_that_fail_are_reported_in_the_log() {
    let store = table();
    let faulty: Arc<dyn Store> = Arc::new(FaultStore::new(Arc::clone(&store), |call| {
        (call.operation == deltafast::store::fault::StoreOperation::Delete)
            .then_some(InjectedFault::ErrorBefore)
    }));
    let error = maintain::vacuum(
        &snapshot(&faulty),
        &vacuum_options(false),
        None,
        &CancellationToken::default(),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("deleted 0 of 1 files"),
        "{error}"
    );
    let all = versions(&store);
    assert_eq!(
        infos(&all).last().unwrap()["operationParameters"]["status"],
        "FAILED"
    );
}

#[test]
fn a_vacuum_goes_on_without_a_commit_that_a_cleanup_takes_away() {
    let store = table();
    checkpoint::write(
        &snapshot(&store),
        &CheckpointOptions::default(),
        &CancellationToken::default(),
    )
    .unwrap();
    let asked = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = Arc::clone(&asked);
    let cleaned: Arc<dyn Store> = Arc::new(FaultStore::new(Arc::clone(&store), move |call| {
        let gone = call.operation == deltafast::store::fault::StoreOperation::Get
            && call.path.ends_with("00000.json");
        seen.fetch_or(gone, std::sync::atomic::Ordering::SeqCst);
        gone.then_some(InjectedFault::Stale)
    }));
    let done = maintain::vacuum(
        &snapshot(&cleaned),
        &vacuum_options(false),
        None,
        &CancellationToken::default(),
    )
    .unwrap();
    assert!(
        asked.load(std::sync::atomic::Ordering::SeqCst),
        "the commit was looked for"
    );
    assert_eq!(
        (done.files.as_slice(), store.head("a").is_err()),
        (["a".to_owned()].as_slice(), true)
    );
    assert_eq!(paths(&store), set(&["b", "c"]));
}

#[test]
fn a_vacuum_says_that_it_ended_whatever_the_table_is_by_then() {
    let store = table();
    let (inner, mut changed) = (Arc::clone(&store), false);
    let meddled: Arc<dyn Store> = Arc::new(FaultStore::new(Arc::clone(&store), move |call| {
        if call.operation == deltafast::store::fault::StoreOperation::Delete
            && !std::mem::replace(&mut changed, true)
        {
            let now = snapshot(&inner);
            let mut metadata = now.metadata().clone();
            metadata
                .configuration
                .insert("delta.checkpointInterval".into(), "50".into());
            let mut tx = OptimisticTransaction::new(&now);
            tx.push(Action::MetaData(Box::new(metadata)));
            tx.set_operation(CommitOperation::new("SET TBLPROPERTIES"));
            tx.commit(&options(1)).unwrap();
        }
        None
    }));
    let done = maintain::vacuum(
        &snapshot(&meddled),
        &vacuum_options(false),
        None,
        &CancellationToken::default(),
    )
    .unwrap();
    assert_eq!(
        (done.files.as_slice(), store.head("a").is_err()),
        (["a".to_owned()].as_slice(), true)
    );
    let all = versions(&store);
    let operations: Vec<&str> = infos(&all)
        .iter()
        .map(|info| info["operation"].as_str().unwrap())
        .collect();
    assert!(
        operations.ends_with(&["VACUUM START", "SET TBLPROPERTIES", "VACUUM END"]),
        "{operations:?}"
    );
    assert_eq!(done.done.unwrap().version, Some(snapshot(&store).version()));
}

#[test]
fn a_restore_that_fails_anywhere_leaves_the_old_version_or_the_new() {
    let run = |store: &Arc<dyn Store>| {
        let snapshot = deltafast::snapshot::Snapshot::open(
            log(store),
            None,
            deltafast::snapshot::ReadOptions::default(),
        )?;
        let options = RestoreOptions {
            version: Some(0),
            ..RestoreOptions::default()
        };
        maintain::restore(&snapshot, &options, &CancellationToken::default()).map(|_| ())
    };
    let check = |store: &Arc<dyn Store>, done: bool| {
        let found = paths(store);
        assert!(
            found == set(&["a", "b"]) || (!done && found == set(&["b", "c"])),
            "{found:?}"
        );
        assert!(versions(store).len() <= 3, "it commits once");
    };
    at_every_call(table, run, check);
}

#[test]
fn a_restore_beside_an_append_is_refused() {
    let store = table();
    let before = snapshot(&store);
    let mut tx = OptimisticTransaction::new(&before);
    tx.push(Action::Add(file("d", "p", 30, 39)));
    tx.set_operation(CommitOperation::new("WRITE"));
    tx.commit(&options(2)).unwrap();
    let error = maintain::restore(
        &before,
        &RestoreOptions {
            version: Some(0),
            ..RestoreOptions::default()
        },
        &CancellationToken::default(),
    )
    .unwrap_err();
    assert!(matches!(error, Error::CommitFailed { .. }), "{error}");
    assert_eq!(paths(&store), set(&["b", "c", "d"]));
}

#[test]
fn a_repair_believes_only_clear_answers() {
    let make = || {
        let store = table();
        assert!(store.delete_batch(&["c".to_owned()]).unwrap().is_empty());
        store
    };
    let run = |store: &Arc<dyn Store>| {
        let snapshot = deltafast::snapshot::Snapshot::open(
            log(store),
            None,
            deltafast::snapshot::ReadOptions::default(),
        )?;
        maintain::repair(
            &snapshot,
            &RepairOptions::default(),
            &CancellationToken::default(),
        )
        .map(|_| ())
    };
    let check = |store: &Arc<dyn Store>, done: bool| {
        let found = paths(store);
        assert!(
            found == set(&["b"]) || (!done && found == set(&["b", "c"])),
            "{found:?}"
        );
    };
    at_every_call(make, run, check);
}

fn parquet(values: Vec<i64>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([(
        "id",
        Arc::new(Int64Array::from(values)) as arrow_array::ArrayRef,
    )])
    .unwrap();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

#[test]
fn a_conversion_makes_a_whole_table_or_none() {
    let make = || {
        let store = memory();
        put(&store, "x/1.parquet", &parquet(vec![1, 2]));
        put(&store, "2.parquet", &parquet(vec![3]));
        store
    };
    let run = |store: &Arc<dyn Store>| {
        maintain::convert(
            log(store),
            &ConvertOptions::default(),
            &CancellationToken::default(),
        )
        .map(|_| ())
    };
    let check = |store: &Arc<dyn Store>, done: bool| {
        let all = versions(store);
        assert!(all.len() == 1 || (!done && all.is_empty()), "{}", all.len());
        if done {
            assert_eq!(paths(store), set(&["2.parquet", "x/1.parquet"]));
            let stats: Value =
                serde_json::from_str(live(&all)["x/1.parquet"]["stats"].as_str().unwrap()).unwrap();
            assert_eq!(
                (&stats["numRecords"], &stats["maxValues"]["id"]),
                (&2.into(), &2.into())
            );
        }
    };
    at_every_call(make, run, check);
}

#[test]
fn a_clone_is_whole_or_not_there() {
    let source = table();
    // A place beside the source, in the same store.
    let at = |n: usize| {
        let url = source.url().trim_end_matches('/').to_owned();
        open(&format!("{url}-clone-{n}"), &StorageOptions::new()).unwrap()
    };
    let seen = snapshot(&source);
    for n in 0..20 {
        for (m, fault) in FAULTS.into_iter().enumerate() {
            let target = at(n * 10 + m);
            let faulty: Arc<dyn Store> =
                Arc::new(FaultStore::at_call(Arc::clone(&target), n, fault));
            let done = maintain::clone(
                &seen,
                log(&faulty),
                &CloneOptions::default(),
                &CancellationToken::default(),
            );
            let all = versions(&target);
            assert!(
                all.len() == 1 || (done.is_err() && all.is_empty()),
                "{n} {fault:?}: {:?}",
                done.err()
            );
            if let Ok(done) = done {
                assert_eq!(done.source_num_of_files, 2);
                let expected: BTreeSet<String> = ["b", "c"]
                    .map(|name| format!("{}{name}", source.url()))
                    .into();
                assert_eq!(paths(&target), expected);
            }
        }
    }
}
