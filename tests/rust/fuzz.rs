//! Fuzzing: every reader of foreign bytes, on mutations of a kept corpus (`fuzz/corpus/<target>/`).
//!
//! The readers are those of the targets of cargo-fuzz (`fuzz/src/readers.rs`). These are plain tests
//! on a stable toolchain, so that they run with all others: `FUZZ_SECONDS` seconds a
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

use arrow_array::{Array, RecordBatch};
use deltafast::exec::CancellationToken;
use deltafast::log::DeltaLog;
use deltafast::parse::FileActionProjection;
use deltafast::parse::checkpoint::FileActionKind;
use deltafast::protocol::data_path;
use deltafast::snapshot::{ReadOptions, Snapshot};
use deltafast::store::{ExternalPaths, StorageOptions, TableStores, open};

use super::fuzz_readers as readers;

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

#[test]
fn commits() {
    fuzz("commit", readers::commit());
}

#[test]
fn statistics() {
    fuzz("statistics", readers::statistics());
}

#[test]
fn last_checkpoints_and_checksums() {
    fuzz("last_checkpoint", readers::last_checkpoint());
}

#[test]
fn deletion_vectors() {
    fuzz("deletion_vector", readers::deletion_vector());
}

#[test]
fn schemas() {
    fuzz("schema", readers::schema());
}

#[test]
fn partition_values() {
    fuzz("partition_value", readers::partition_value());
}

#[test]
fn paths() {
    fuzz("path", readers::path());
}

#[test]
fn expressions() {
    fuzz("expression", readers::expression());
}

#[test]
fn checkpoints() {
    fuzz("checkpoint", readers::checkpoint());
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

#[test]
fn data_files() {
    fuzz_for("data_file", long_seconds(), readers::data_file());
}

#[test]
fn damage_under_a_page_checksum_changes_no_value() {
    let files = readers::DataFiles::new("checksum");
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
