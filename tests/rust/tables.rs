//! Tables for tests of commits: made without data files, replayed by plain JSON.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use deltafast::commit::{
    CommitOperation, CommittedVersion, OptimisticTransaction, TransactionOptions,
};
use deltafast::error::Result;
use deltafast::exec::RuntimeEnv;
use deltafast::expr::{BoundExpr, Expr, Function, Scalar};
use deltafast::log::DeltaLog;
use deltafast::protocol::calendar::TimeZoneSpec;
use deltafast::protocol::commit_line::{Action, Add};
use deltafast::protocol::schema::{DataType, StructField, StructType};
use deltafast::protocol::table::{NewTable, TableChangeContext, create};
use deltafast::snapshot::{ReadOptions, Snapshot};
use deltafast::store::{ExternalPaths, StorageOptions, Store, TableStores, open};
use serde_json::Value;

/// A clock that a test moves, sleep that takes no time, random numbers from a seed.
#[derive(Debug)]
pub struct TestEnv {
    now: AtomicI64,
    random: AtomicU64,
}

impl TestEnv {
    pub fn new(seed: u64) -> Self {
        Self {
            now: AtomicI64::new(1_000_000),
            random: AtomicU64::new(seed),
        }
    }
}

/// One step of a well-known generator (splitmix64).
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl RuntimeEnv for TestEnv {
    fn now_ms(&self) -> i64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    fn sleep(&self, time: Duration) {
        self.now
            .fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn random(&self) -> u64 {
        mix(self.random.fetch_add(1, Ordering::SeqCst))
    }
}

pub fn options(seed: u64) -> TransactionOptions {
    TransactionOptions {
        env: Arc::new(TestEnv::new(seed)),
        ..TransactionOptions::default()
    }
}

/// A store in memory of its own.
pub fn memory() -> Arc<dyn Store> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    open(
        &format!("memory://commit-{}/t", COUNT.fetch_add(1, Ordering::SeqCst)),
        &StorageOptions::new(),
    )
    .unwrap()
}

pub fn log(store: &Arc<dyn Store>) -> DeltaLog {
    DeltaLog::new(
        Arc::new(TableStores::new(
            Arc::clone(store),
            StorageOptions::new(),
            ExternalPaths::Refused,
        )),
        Vec::new(),
    )
    .unwrap()
}

pub fn snapshot(store: &Arc<dyn Store>) -> Snapshot {
    Snapshot::open(log(store), None, ReadOptions::default()).unwrap()
}

/// `id long, p string`, partitioned by `p`, with these properties.
pub fn new_table(configuration: &[(&str, &str)]) -> Vec<Action> {
    let fields = vec![
        StructField::new("id", DataType::Long, true),
        StructField::new("p", DataType::String, true),
    ];
    let table = NewTable {
        schema: StructType {
            fields: fields.into(),
        },
        partition_columns: vec!["p".into()],
        configuration: configuration
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        ..NewTable::default()
    };
    let mut n = 0;
    let mut unique = || {
        n += 1;
        format!("unique-{n}")
    };
    let (protocol, metadata) = create(
        &table,
        &mut TableChangeContext {
            allow_unknown: false,
            now_ms: 1,
            generate_id: &mut unique,
        },
    )
    .unwrap();
    vec![
        Action::Protocol(protocol),
        Action::MetaData(Box::new(metadata)),
    ]
}

/// Makes the table; `files` are in its first version.
pub fn create_table(
    store: &Arc<dyn Store>,
    configuration: &[(&str, &str)],
    files: &[Add],
) -> Result<CommittedVersion> {
    let mut transaction = OptimisticTransaction::create(log(store), ReadOptions::default())?;
    transaction.extend(new_table(configuration));
    transaction.extend(files.iter().cloned().map(Action::Add));
    transaction.set_operation(CommitOperation::new("CREATE TABLE"));
    transaction.commit(&options(0))
}

/// A file of partition `p` with the ids `low..=high`.
pub fn file(path: &str, p: &str, low: i64, high: i64) -> Add {
    Add {
        path: path.to_owned(),
        partition_values: [("p".to_owned(), Some(p.to_owned()))].into(),
        size: 100,
        modification_time: 1,
        data_change: true,
        stats: Some(format!(
            r#"{{"numRecords":{},"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}}}"#,
            high - low + 1
        )),
        ..Add::default()
    }
}

fn equals(column: &str, data_type: DataType, value: Scalar) -> BoundExpr {
    let args = vec![
        Expr::Column {
            path: vec![column.to_owned()],
            data_type: data_type.clone(),
        },
        Expr::Literal { value, data_type },
    ];
    BoundExpr {
        expr: Expr::call(Function::Equal, args, DataType::Boolean).unwrap(),
        ansi: true,
        zone: TimeZoneSpec::UTC,
    }
}

pub fn p_is(p: &str) -> BoundExpr {
    equals("p", DataType::String, Scalar::Text(p.into()))
}

pub fn id_is(id: i64) -> BoundExpr {
    equals("id", DataType::Long, Scalar::Long(id))
}

/// Every version's actions, read without deltafast.
pub fn versions(store: &Arc<dyn Store>) -> Vec<Vec<Value>> {
    let mut out = Vec::new();
    while let Ok((bytes, _)) = store
        .get(&format!("_delta_log/{:020}.json", out.len()))
        .wait()
    {
        out.push(
            std::str::from_utf8(&bytes)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        );
    }
    out
}

/// Live files by path, with their deletion vector; a plain replay that also refuses what no log may
/// hold.
pub fn live(versions: &[Vec<Value>]) -> BTreeMap<String, Value> {
    let mut out: BTreeMap<String, Value> = BTreeMap::new();
    for (version, actions) in versions.iter().enumerate() {
        let path = |action: &Value| action["path"].as_str().unwrap().to_owned();
        for remove in actions.iter().filter_map(|a| a.get("remove")) {
            assert!(
                out.remove(&path(remove)).is_some(),
                "version {version} removes {}, which is not there",
                path(remove)
            );
        }
        for add in actions.iter().filter_map(|a| a.get("add")) {
            assert!(
                out.insert(path(add), add.clone()).is_none(),
                "version {version} adds {} twice",
                path(add)
            );
        }
    }
    out
}

/// `commitInfo` of each version.
pub fn infos(versions: &[Vec<Value>]) -> Vec<&Value> {
    versions
        .iter()
        .map(|actions| &actions[0]["commitInfo"])
        .collect()
}
