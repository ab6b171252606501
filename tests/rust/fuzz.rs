//! Fuzzing: every reader of foreign bytes, on mutations of a kept corpus (`fuzz/corpus/<target>/`).
//!
//! Plain tests on a stable toolchain, so that they run with all others: `FUZZ_SECONDS` seconds a
//! target (2; 60 for data files and checkpoints), from `FUZZ_SEED` (1). With a share of the proof
//! tier in `PROOF`, such as `2/5`, the 60 seconds become a fifth and the seed 2. An input that
//! panics or takes longer than a second is written to `fuzz/corpus/<target>/` under its hash, where
//! every later run begins with it, and fails the test. What the readers answer does not matter here;
//! that they answer does. Only of checkpoints and of data files whose pages have checksums the answer
//! counts: damage is an error or changes no value.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Array, RecordBatch, StringViewArray};
use bytes::Bytes;
use deltafast::dv::{DeletionVectorDescriptor, RoaringBitmapArray, z85};
use deltafast::exec::{CancellationToken, ItemSource};
use deltafast::expr::BoundExpr;
use deltafast::log::{
    CheckpointInstance, CheckpointKind, ChecksumFileContents, DeltaLog, LastCheckpointHint,
};
use deltafast::parse::checkpoint::{CheckpointReader, FileActionKind};
use deltafast::parse::commit::{self, ActionSelection};
use deltafast::parse::stats::{self, StatsLeafColumn, has_bounds};
use deltafast::parse::{FileActionProjection, FileBatch, StatsColumn};
use deltafast::pq::read;
use deltafast::pq::{FileSpec, FooterCache, open_raw};
use deltafast::protocol::calendar::TimeZoneSpec;
use deltafast::protocol::log_path::LogFile;
use deltafast::protocol::schema::{DataType, StringLayout, StructField, StructType};
use deltafast::protocol::{canonical_json, data_path, duration, partition_value, time};
use deltafast::snapshot::{ReadOptions, Snapshot};
use deltafast::store::{ExternalPaths, StorageOptions, Store, StoreObject, TableStores, open};

/// A small generator: reproducible, and good enough to choose mutations.
pub(crate) struct Random(u64);

impl Random {
    /// One that begins at `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        if limit == 0 {
            0
        } else {
            usize::try_from(self.next() % limit as u64).unwrap()
        }
    }
}

/// Pieces that readers of this format trip over.
const TOKENS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"\\\"",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-",
    b"0",
    b"9223372036854775808",
    b"1e999",
    b"NaN",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"%",
    b"%2F..",
    b"../",
    b"file:",
    b"s3://",
    b"0001-01-01",
    b"9999-12-31T23:59:59.999999999Z",
    b"+18:00",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
];

fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut out = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(out.len() + 1);
        match random.below(7) {
            0 if !out.is_empty() => {
                let at = random.below(out.len());
                out[at] ^= 1 << random.below(8);
            }
            1 if !out.is_empty() => {
                let at = random.below(out.len());
                out[at] = u8::try_from(random.below(256)).unwrap();
            }
            2 => drop(out.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
            3 => {
                let end = (at + random.below(16)).min(out.len());
                out.drain(at..end);
            }
            4 => out.truncate(at),
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let end = (from + random.below(64)).min(other.len());
                drop(out.splice(at..at, other[from..end].iter().copied()));
            }
            _ => {
                let end = (at + random.below(64)).min(out.len());
                let piece = out[at..end].to_vec();
                drop(out.splice(at..at, piece));
            }
        }
    }
    out.truncate(1 << 16);
    out
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// The kept inputs of a target, by name.
fn kept_inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus of {target} is empty");
    files
        .iter()
        .map(|file| {
            (
                file.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(file).unwrap(),
            )
        })
        .collect()
}

/// The number of the share of the proof tier that runs and the number of shares: `PROOF=2/5`.
pub(crate) fn proof_share() -> (u64, u64) {
    let Ok(share) = std::env::var("PROOF") else {
        return (1, 1);
    };
    if share == "all" {
        return (1, 1);
    }
    let numbers = share
        .split_once('/')
        .and_then(|(number, shares)| Some((number.parse().ok()?, shares.parse().ok()?)));
    match numbers {
        Some((number, shares)) if 0 < number && number <= shares => (number, shares),
        _ => panic!("PROOF={share}: must be `all`, or a share and the number of shares: 2/5"),
    }
}

pub(crate) fn seed() -> u64 {
    setting("FUZZ_SEED", proof_share().0)
}

/// The seconds of a target that runs for a minute, or for a share of it.
pub(crate) fn long_seconds() -> u64 {
    setting("FUZZ_SECONDS", 60_u64.div_ceil(proof_share().1))
}

fn seeded() -> Random {
    Random::new(seed())
}

/// Runs `read` on the corpus, then on mutations of it.
fn fuzz(target: &str, read: impl Fn(&[u8])) {
    fuzz_for(target, setting("FUZZ_SECONDS", 2), read);
}

/// The same for so many seconds.
fn fuzz_for(target: &str, seconds: u64, read: impl Fn(&[u8])) {
    let folder = corpus(target);
    let seeds: Vec<Vec<u8>> = kept_inputs(target)
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    let mut random = seeded();
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0_u64;
    let mut kept = seeds.iter();
    while runs < seeds.len() as u64 || Instant::now() < until {
        let input = kept
            .next()
            .cloned()
            .unwrap_or_else(|| mutate(&mut random, &seeds));
        let begun = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| read(&input)));
        let took = begun.elapsed();
        if outcome.is_err() || took > Duration::from_secs(1) {
            let name = format!(
                "found-{:016x}",
                input
                    .iter()
                    .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(*b))
                        .wrapping_mul(0x100_0000_01b3))
            );
            std::fs::write(folder.join(&name), &input).unwrap();
            panic!(
                "{target}: an input {} (kept as {name}): {}",
                if outcome.is_err() {
                    "panics"
                } else {
                    "takes too long"
                },
                String::from_utf8_lossy(&input)
            );
        }
        runs += 1;
    }
    println!("{target}: {runs} inputs");
    assert!(
        runs > 50,
        "{target}: only {runs} inputs, too slow to mean anything"
    );
}

fn leaves() -> Vec<StatsLeafColumn> {
    [
        "byte",
        "integer",
        "long",
        "float",
        "double",
        "decimal(9,2)",
        "string",
        "date",
        "timestamp",
        "timestamp_ntz",
        "boolean",
        "binary",
    ]
    .iter()
    .map(|name| {
        let data_type = DataType::from_name(name).unwrap();
        StatsLeafColumn {
            path: vec!["c".to_owned(), (*name).to_owned()],
            bounds: has_bounds(&data_type),
            data_type,
        }
    })
    .chain([StatsLeafColumn {
        path: vec!["id".to_owned()],
        data_type: DataType::Long,
        bounds: true,
    }])
    .collect()
}

fn wanted() -> FileActionProjection {
    let partition = vec!["day".to_owned(), "p".to_owned()];
    FileActionProjection {
        partition,
        stats: true,
        stats_text: false,
        leaves: leaves().into_iter().map(|leaf| leaf.path).collect(),
        tags: true,
        time: true,
        row_ids: true,
        data_change: true,
        clustering: true,
        batch_rows: None,
    }
}

fn look(batch: &FileBatch) {
    for row in 0..batch.len() {
        let _ = data_path::canonical(batch.path.value(row));
        let _ = batch.dv_unique_id(row);
    }
    if let Some(column) = &batch.stats {
        stats::parse(column, &leaves(), TimeZoneSpec::UTC).unwrap();
    }
    for values in &batch.partition {
        let _ = partition_value::parse(values, &DataType::Date, TimeZoneSpec::UTC);
    }
}

#[test]
fn commits() {
    let files = Some(wanted());
    let take = ActionSelection {
        adds: files.clone(),
        removes: files.clone(),
        cdc: files,
        protocol_and_metadata: true,
        transactions_and_domains: true,
        info: true,
        sidecars: true,
    };
    fuzz("commit", |input| {
        let text = Bytes::copy_from_slice(input);
        if let Ok(parsed) = commit::parse(&text, 0..text.len(), &take, &[0, text.len() / 2]) {
            for batch in [&parsed.adds, &parsed.removes, &parsed.cdc] {
                look(batch);
            }
        }
        let _ = commit::non_file_actions(&text, &take);
    });
}

#[test]
fn statistics() {
    fuzz("statistics", |input| {
        let text = String::from_utf8_lossy(input);
        let lines: StringViewArray = text.lines().map(Some).collect();
        for column in [
            StatsColumn::Json(lines.clone()),
            StatsColumn::EscapedJson(lines.clone()),
        ] {
            let stats = stats::parse(&column, &leaves(), TimeZoneSpec::UTC).unwrap();
            assert_eq!(stats.num_records.len(), lines.len());
        }
    });
}

#[test]
fn last_checkpoints_and_checksums() {
    fuzz("last_checkpoint", |input| {
        let _ = LastCheckpointHint::parse(input);
        let _ = ChecksumFileContents::parse(input);
        let _ = std::str::from_utf8(input).map(canonical_json::checksum);
    });
}

#[test]
fn deletion_vectors() {
    fuzz("deletion_vector", |input| {
        if let Ok(positions) = RoaringBitmapArray::deserialize(input) {
            let _ = positions.live_row_mask(0..100_000);
            let _ = positions.count(0..u64::MAX);
        }
        let text = String::from_utf8_lossy(input);
        let _ = z85::decode(&text);
        for storage_type in ["i", "u", "p"] {
            let descriptor = DeletionVectorDescriptor {
                storage_type: storage_type.into(),
                path_or_inline_dv: text.as_ref().into(),
                offset: Some(1),
                size_in_bytes: 40,
                cardinality: 6,
            };
            let _ = deltafast::dv::load(&descriptor, |_| {
                Err(deltafast::error::Error::invalid("no store"))
            });
        }
    });
}

#[test]
fn schemas() {
    fuzz("schema", |input| {
        if let Ok(schema) = StructType::parse(&String::from_utf8_lossy(input)) {
            let _ = schema.to_arrow(StringLayout::View);
            assert_eq!(
                StructType::parse(&schema.to_json().to_string()).unwrap(),
                schema
            );
        }
    });
}

#[test]
fn partition_values() {
    let types = [
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "decimal(38,10)",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "boolean",
        "void",
    ];
    let zone = TimeZoneSpec::parse("America/New_York").unwrap();
    fuzz("partition_value", |input| {
        let text = String::from_utf8_lossy(input);
        let values: StringViewArray = [Some(text.as_ref()), None].into_iter().collect();
        for name in types {
            let _ = partition_value::parse(&values, &DataType::from_name(name).unwrap(), zone);
        }
        let _ = time::parse_timestamp(input, zone);
        let _ = duration::parse_duration_ms(&text);
    });
}

#[test]
fn paths() {
    let table = TableStores::new(
        open("/table", &StorageOptions::new()).unwrap(),
        StorageOptions::new(),
        ExternalPaths::Refused,
    );
    fuzz("path", |input| {
        let text = String::from_utf8_lossy(input);
        let _ = LogFile::parse(&text);
        if let Ok(path) = data_path::canonical(&text)
            && let Ok(file) = table.file(&path, None)
        {
            assert!(
                !file.path.split('/').any(|part| part == ".."),
                "{} climbs to {}",
                text,
                file.path
            );
        }
    });
}

#[test]
fn expressions() {
    fuzz("expression", |input| {
        if let Ok(bound) = BoundExpr::from_json(&String::from_utf8_lossy(input)) {
            let _ = bound.to_string();
            let _ = bound.columns();
        }
    });
}

#[test]
fn checkpoints() {
    let folder = std::env::temp_dir().join(format!("deltafast-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store: Arc<dyn Store> = open(folder.to_str().unwrap(), &StorageOptions::new()).unwrap();
    fuzz("checkpoint", |input| {
        std::fs::write(folder.join("c.parquet"), input).unwrap();
        let file = StoreObject {
            store: Arc::clone(&store),
            path: "c.parquet".to_owned(),
            size: Some(input.len() as u64),
        };
        let checkpoint = CheckpointInstance {
            version: 1,
            kind: CheckpointKind::Classic,
            files: vec![file],
        };
        let Ok(open) = CheckpointReader::open(&checkpoint, &store, true) else {
            return;
        };
        let _ = open.non_file_actions(&ActionSelection {
            protocol_and_metadata: true,
            transactions_and_domains: true,
            ..ActionSelection::default()
        });
        for kind in [FileActionKind::Adds, FileActionKind::Removes] {
            let sources: Vec<ItemSource<FileBatch>> = open.files(kind, &Arc::new(wanted()));
            for batch in sources.into_iter().flatten() {
                let Ok(batch) = batch else { break };
                look(&batch);
            }
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
}

/// What a table says of itself: protocol, metadata, transactions, domains and live files.
fn said(folder: &Path) -> deltafast::error::Result<Vec<String>> {
    let stores = TableStores::new(
        open(folder.to_str().unwrap(), &StorageOptions::new())?,
        StorageOptions::new(),
        ExternalPaths::Refused,
    );
    let snapshot = Snapshot::open(
        DeltaLog::new(Arc::new(stores), Vec::new())?,
        None,
        ReadOptions::default(),
    )?;
    let mut files = Vec::new();
    let wanted = FileActionProjection {
        partition: vec!["day".to_owned()],
        ..FileActionProjection::default()
    };
    for batch in snapshot.files(FileActionKind::Adds, wanted, &CancellationToken::default())? {
        let batch = batch?;
        for row in 0..batch.len() {
            let day = batch.partition[0]
                .is_valid(row)
                .then(|| batch.partition[0].value(row));
            let path = data_path::canonical(batch.path.value(row))?;
            files.push(format!(
                "{path} {day:?} {} {:?}",
                batch.size.value(row),
                batch.deletion_vector(row)
            ));
        }
    }
    files.sort();
    let mut out = vec![format!(
        "{:?} {:?} {:?}",
        snapshot.protocol(),
        snapshot.metadata(),
        snapshot.non_file_actions()?
    )];
    out.extend(files);
    Ok(out)
}

/// Flips one bit of a checkpoint whose commits are all there: the table is the same as without the
/// checkpoint, or an error. No checksum covers the footer of a Parquet file: a bit there may only
/// change what no version checksum is there to contradict, and such bits are counted.
///
/// The checkpoints in `fuzz/corpus/checkpoint_flips/` have page checksums, as those of delta-spark
/// have, for a flipped bit of a path shows nowhere else. A bit that changes the answer is printed,
/// and is kept by adding it to `KEPT`.
#[test]
fn checkpoints_with_flipped_bits() {
    /// File of the corpus, byte, bit.
    const KEPT: &[(&str, usize, u8)] = &[];
    let corpus = corpus("checkpoint_flips");
    let folder = std::env::temp_dir().join(format!("deltafast-flips-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let names = |folder: &Path| -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder).map_or(Vec::new(), |all| {
            all.map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect()
        });
        names.sort();
        names
    };
    // A table for each form of checkpoint: without other witnesses, with a version checksum, with a
    // hint.
    let mut targets: Vec<(String, Vec<PathBuf>, Vec<u8>)> = Vec::new();
    let lay_out = |table: &Path, form: Option<&str>, witness: Option<&str>| {
        let log = table.join("_delta_log");
        std::fs::create_dir_all(log.join("_sidecars")).unwrap();
        let commits = names(&corpus.join("commits"))
            .into_iter()
            .filter(|name| name.ends_with(".json") || Some(name.as_str()) == witness);
        for name in commits {
            std::fs::copy(corpus.join("commits").join(&name), log.join(&name)).unwrap();
        }
        let mut files = Vec::new();
        for sub in ["", "_sidecars"] {
            let Some(form) = form else { continue };
            for name in names(&corpus.join(form).join(sub))
                .into_iter()
                .filter(|name| name.ends_with(".parquet"))
            {
                std::fs::copy(
                    corpus.join(form).join(sub).join(&name),
                    log.join(sub).join(&name),
                )
                .unwrap();
                files.push(Path::new(form).join(sub).join(name));
            }
        }
        files
    };
    let replayed = folder.join("replayed");
    lay_out(&replayed, None, None);
    let expected = said(&replayed).unwrap();
    let witnesses = [
        None,
        Some("00000000000000000004.crc"),
        Some("_last_checkpoint"),
    ];
    for form in names(&corpus).into_iter().filter(|name| name != "commits") {
        let table = |n: usize| folder.join(format!("{form}-{n}"));
        let mut files = Vec::new();
        for (n, witness) in witnesses.into_iter().enumerate() {
            files = lay_out(&table(n), Some(&form), witness);
            assert_eq!(said(&table(n)).unwrap(), expected, "{form}, {witness:?}");
        }
        for file in files {
            let bytes = std::fs::read(corpus.join(&file)).unwrap();
            let below = file.strip_prefix(&form).unwrap();
            let places = (0..witnesses.len())
                .map(|n| table(n).join("_delta_log").join(below))
                .collect();
            targets.push((file.to_str().unwrap().to_owned(), places, bytes));
        }
    }
    let (mut same, mut refused, mut unseen) = (0_u64, 0_u64, 0_u64);
    let mut wrong = Vec::new();
    let footer = |bytes: &[u8]| {
        let length = bytes.len();
        let size = u32::from_le_bytes(bytes[length - 8..length - 4].try_into().unwrap());
        length - 8 - usize::try_from(size).unwrap()
    };
    let mut flip =
        |target: &(String, Vec<PathBuf>, Vec<u8>), at: usize, bit: u8, witness: usize| {
            let (name, places, bytes) = target;
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let place = &places[witness];
            std::fs::write(place, &damaged).unwrap();
            let table = place
                .ancestors()
                .find(|above| above.join("_delta_log").is_dir())
                .unwrap();
            match catch_unwind(AssertUnwindSafe(|| said(table))) {
                Ok(Ok(answer)) if answer == expected => same += 1,
                Ok(Err(_)) => refused += 1,
                Ok(Ok(_))
                    if at >= footer(bytes)
                        && witnesses[witness].is_none_or(|name| !name.ends_with(".crc")) =>
                {
                    unseen += 1;
                }
                Ok(Ok(answer)) => {
                    let other = answer.iter().zip(&expected).find(|(a, b)| a != b);
                    wrong.push(format!(
                        "({name:?}, {at}, {bit}) with {:?}: {} of {} lines, {other:?}",
                        witnesses[witness],
                        answer.len(),
                        expected.len()
                    ));
                }
                Err(_) => wrong.push(format!("({name:?}, {at}, {bit}) panics")),
            }
            std::fs::write(place, bytes).unwrap();
        };
    for (name, at, bit) in KEPT {
        let target = targets.iter().find(|(file, ..)| file == name).unwrap();
        (0..witnesses.len()).for_each(|witness| flip(target, *at, *bit, witness));
    }
    let mut random = seeded();
    let until = Instant::now() + Duration::from_secs(long_seconds());
    while Instant::now() < until {
        let target = &targets[random.below(targets.len())];
        let length = target.2.len();
        let begin = footer(&target.2);
        // Pages have checksums, so every other flip is one of the footer's.
        let at = if random.below(2) == 0 {
            random.below(length)
        } else {
            begin + random.below(length - begin)
        };
        let bit = u8::try_from(random.below(8)).unwrap();
        let witness = random.below(witnesses.len());
        flip(target, at, bit, witness);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    println!(
        "checkpoint_flips: {same} answers as without the checkpoint, {refused} errors, {unseen} unseen in footers"
    );
    // Of a thousand bits some tens change no more than what nothing else says.
    assert!(
        unseen * 20 < same + refused,
        "{unseen} of {}",
        same + refused
    );
    assert!(
        wrong.is_empty(),
        "{} flipped bits change the answer:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(
        same + refused > 50,
        "only {} inputs, too slow to mean anything",
        same + refused
    );
}

/// Data files in a folder of their own, and the columns of the corpus.
struct DataFiles {
    folder: PathBuf,
    store: Arc<dyn Store>,
    columns: Vec<StructField>,
    filter: Arc<BoundExpr>,
}

impl DataFiles {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("deltafast-fuzz-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/data_file_schema.json");
        let schema: Vec<(String, serde_json::Value)> =
            serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
        let columns = schema
            .into_iter()
            .map(|(name, of)| StructField::new(&name, DataType::from_json(&of).unwrap(), true))
            .collect();
        let id = serde_json::json!({"column":{"path":["id"],"data_type":"long"}});
        let equal = serde_json::json!({"call":{"function":"=","arguments":[id, {"literal":{"value":17,"data_type":"long"}}],"data_type":"boolean"}});
        let filter = BoundExpr::from_json(
            &serde_json::json!({"expr": equal, "ansi": true, "zone": "UTC"}).to_string(),
        )
        .unwrap();
        Self {
            store: open(folder.to_str().unwrap(), &StorageOptions::new()).unwrap(),
            folder,
            columns,
            filter: Arc::new(filter),
        }
    }

    fn file(&self, bytes: &[u8]) -> StoreObject {
        std::fs::write(self.folder.join("f.parquet"), bytes).unwrap();
        StoreObject {
            store: Arc::clone(&self.store),
            path: "f.parquet".to_owned(),
            size: Some(bytes.len() as u64),
        }
    }

    /// All rows, or those that match.
    fn rows(
        &self,
        file: StoreObject,
        filtered: bool,
    ) -> deltafast::error::Result<Vec<RecordBatch>> {
        let filter = filtered.then(|| Arc::clone(&self.filter));
        let spec = FileSpec {
            filter,
            filter_rows: filtered,
            ..FileSpec::new(file, self.columns.clone())
        };
        read(spec, &Arc::new(FooterCache::default())).collect()
    }
}

impl Drop for DataFiles {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn data_files() {
    let files = DataFiles::new("data");
    fuzz_for("data_file", long_seconds(), |input| {
        let file = files.file(input);
        for filtered in [false, true] {
            for batch in files.rows(file.clone(), filtered).into_iter().flatten() {
                batch
                    .columns()
                    .iter()
                    .for_each(|column| column.to_data().validate_full().unwrap());
            }
        }
        let Ok(raw) = open_raw(&file) else { return };
        let groups: Vec<usize> = (0..raw.row_groups().len()).collect();
        for layout in [StringLayout::View, StringLayout::Plain] {
            if let Ok(batches) = raw.read(&groups, |_| true, layout, 1000, 1 << 20) {
                batches
                    .map_while(Result::ok)
                    .for_each(|batch| assert!(batch.num_rows() <= 1000));
            }
        }
    });
}

#[test]
fn damage_under_a_page_checksum_changes_no_value() {
    let files = DataFiles::new("checksum");
    let kept: Vec<_> = kept_inputs("data_file")
        .into_iter()
        .filter(|(name, _)| name.starts_with("checksum-"))
        .collect();
    assert!(kept.len() > 5);
    let whole: Vec<Vec<RecordBatch>> = kept
        .iter()
        .map(|(_, bytes)| files.rows(files.file(bytes), false).unwrap())
        .collect();
    let mut random = seeded();
    let until = Instant::now() + Duration::from_secs(setting("FUZZ_SECONDS", 2));
    let (mut runs, mut refused) = (0_u64, 0_u64);
    while runs < 200 || Instant::now() < until {
        let n = random.below(kept.len());
        let mut bytes = kept[n].1.clone();
        let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap())
            as usize;
        let end = bytes.len() - 8 - footer;
        // A bit of a page or of its header, as a disk or a wire flips it.
        let at = 4 + random.below(end - 4);
        bytes[at] ^= 1 << random.below(8);
        match files.rows(files.file(&bytes), false) {
            Ok(batches) => assert_eq!(
                batches, whole[n],
                "{} with a bit flipped at {at}",
                kept[n].0
            ),
            Err(_) => refused += 1,
        }
        runs += 1;
    }
    println!("{runs} flipped bits, {refused} refused");
    assert!(refused > runs / 2, "{refused} of {runs}");
}
