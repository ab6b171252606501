//! Operations end to end on a store that fails: after a fault at any call the table is old or new,
//! the answer says which, and nothing lies around that nobody names.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use deltafast::commit::finish::{CommitOptions, CommitResult};
use deltafast::error::Error;
use deltafast::exec::CancellationToken;
use deltafast::file_writer::bound_constraints::TableConstraints;
use deltafast::log::DeltaLog;
use deltafast::ops::{SaveMode, TableChange, TableOrPath, WriteCommand, WriteOptions, alter};
use deltafast::protocol::evolution;
use deltafast::snapshot::ReadOptions;
use deltafast::store::fault::{FaultStore, InjectedFault, StoreOperation as Call};
use deltafast::store::{ExternalPaths, StorageOptions, Store, TableStores};

use super::super::tables::{infos, live, log, memory, versions};

fn batch(from: i64) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 10));
    let parts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..10).map(|n| if n % 2 == 0 { "a" } else { "b" }),
    ));
    RecordBatch::try_from_iter(vec![("id", ids), ("p", parts)]).unwrap()
}

fn place(store: &Arc<dyn Store>) -> Result<TableOrPath, Error> {
    let stores = TableStores::new(
        Arc::clone(store),
        StorageOptions::new(),
        ExternalPaths::Refused,
    );
    TableOrPath::open(
        DeltaLog::new(Arc::new(stores), Vec::new())?,
        ReadOptions::default(),
    )
}

fn put(store: &Arc<dyn Store>, mode: SaveMode) -> Result<CommitResult, Error> {
    let data = batch(100);
    let configuration = [("delta.checkpointInterval".to_owned(), Some("1".to_owned()))].into();
    let options = WriteOptions {
        mode,
        partition_by: Some(vec!["p".to_owned()]),
        configuration,
        ..WriteOptions::default()
    };
    let write = WriteCommand::plan(
        place(store)?,
        &evolution::from_arrow_schema(&data.schema())?,
        options,
    )?
    .unwrap();
    let constraints = write.table_constraints().clone();
    write.run(
        &constraints,
        std::iter::once(Ok(data)),
        &CancellationToken::default(),
    )
}

fn set_property(store: &Arc<dyn Store>) -> Result<CommitResult, Error> {
    let TableOrPath::Table(snapshot) = place(store)? else {
        panic!("there is no table")
    };
    let change: TableChange = serde_json::from_str(
        r#"{"kind":"set_properties","properties":{"k":"v"},"allow_unknown":false}"#,
    )
    .unwrap();
    alter(
        &snapshot,
        &change,
        &TableConstraints::default(),
        &CommitOptions::default(),
        &CancellationToken::default(),
    )
}

type Work = fn(&Arc<dyn Store>) -> Result<CommitResult, Error>;

const WORKS: [(&str, Work, bool); 4] = [
    ("create", |store| put(store, SaveMode::Error), false),
    ("append", |store| put(store, SaveMode::Append), true),
    ("overwrite", |store| put(store, SaveMode::Overwrite), true),
    ("alter", set_property, true),
];

const FAULTS: [InjectedFault; 8] = [
    InjectedFault::ErrorBefore,
    InjectedFault::ErrorAfter,
    InjectedFault::LostAnswer,
    InjectedFault::Status(503),
    InjectedFault::Status(403),
    InjectedFault::StatusAfter(403),
    InjectedFault::StatusAfter(500),
    InjectedFault::TornRead,
];

/// Data files in the store, below the folders of partitions.
fn data_files(store: &Arc<dyn Store>) -> BTreeSet<String> {
    let folders = ["", "p=a", "p=b"];
    let all = folders
        .iter()
        .flat_map(|folder| store.list_from(folder, "").unwrap());
    all.map(|object| object.path)
        .filter(|path| path.ends_with(".parquet"))
        .collect()
}

#[test]
fn a_fault_at_any_call_leaves_the_old_version_or_the_new_one() {
    for (name, work, exists) in WORKS {
        for fault in FAULTS {
            let mut n = 0;
            loop {
                let inner = memory();
                if exists {
                    put(&inner, SaveMode::Error).unwrap();
                }
                let (before, files) = (versions(&inner).len(), data_files(&inner));
                let faulty = Arc::new(FaultStore::at_call(Arc::clone(&inner), n, fault));
                let store: Arc<dyn Store> = Arc::clone(&faulty) as Arc<dyn Store>;
                let result = work(&store);
                let place = format!("{name}, {fault:?} at call {n}: {result:?}");
                let after = versions(&inner);
                match &result {
                    Ok(done) => {
                        assert_eq!(after.len(), before + 1, "{place}");
                        assert_eq!(done.version, Some(before as i64), "{place}");
                    }
                    // Nobody knows, and says so.
                    Err(Error::CommitUnknown { .. }) => {
                        assert!(after.len() <= before + 1, "{place}");
                    }
                    Err(_) => {
                        assert_eq!(after.len(), before, "{place}");
                        let deletes = faulty
                            .calls()
                            .iter()
                            .any(|call| call.number == n && call.operation == Call::Delete);
                        let unfinished = faulty.calls().iter().any(|call| {
                            call.number == n
                                && matches!(call.operation, Call::Upload | Call::Finish)
                        });
                        // A file whose making failed may be there all the same; vacuum takes it.
                        assert!(
                            deletes || unfinished || data_files(&inner) == files,
                            "{place}: {:?}",
                            data_files(&inner).difference(&files)
                        );
                    }
                }
                // Every transaction is there at most once, and what is live is there to be read.
                let ids: Vec<&str> = infos(&after)
                    .iter()
                    .map(|info| info["txnId"].as_str().unwrap())
                    .collect();
                assert_eq!(
                    ids.iter().collect::<BTreeSet<_>>().len(),
                    ids.len(),
                    "{place}"
                );
                let there = data_files(&inner);
                for path in live(&after).keys() {
                    assert!(
                        there.contains(path),
                        "{place}: {path} is live and not there"
                    );
                }
                if !after.is_empty() {
                    let snapshot = deltafast::snapshot::Snapshot::open(
                        log(&inner),
                        None,
                        ReadOptions::default(),
                    )
                    .unwrap();
                    assert_eq!(snapshot.version(), after.len() as i64 - 1, "{place}");
                    let rows =
                        deltafast::scan::count(&snapshot, None, &CancellationToken::default())
                            .unwrap();
                    assert_eq!(rows, 10 * live(&after).len() as u64 / 2, "{place}");
                }
                // The work was done before that many calls: all of them have failed once.
                if faulty.calls().len() <= n {
                    assert!(n > 5, "{place}: only {n} calls");
                    break;
                }
                n += 1;
            }
        }
    }
}

#[test]
fn maintenance_that_fails_is_a_warning_and_the_version_stays() {
    let inner = memory();
    put(&inner, SaveMode::Error).unwrap();
    let refuse = |call: &deltafast::store::fault::StoreCall| {
        let upkeep = call.path.contains(".crc")
            || call.path.contains(".checkpoint")
            || call.path.contains("_last_checkpoint");
        (upkeep && !matches!(call.operation, Call::Head | Call::Get))
            .then_some(InjectedFault::ErrorBefore)
    };
    let store: Arc<dyn Store> = Arc::new(FaultStore::new(Arc::clone(&inner), refuse));
    let done = put(&store, SaveMode::Append).unwrap();
    assert_eq!(done.version, Some(1));
    assert_eq!(
        done.snapshot
            .as_ref()
            .map(deltafast::snapshot::Snapshot::version),
        Some(1)
    );
    assert_eq!(done.warnings.len(), 2, "{:?}", done.warnings);
    assert!(
        done.warnings
            .iter()
            .all(|warning| warning.starts_with("version 1 is committed, but its c")),
        "{:?}",
        done.warnings
    );
    assert_eq!(versions(&inner).len(), 2);
}
