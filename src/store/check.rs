//! Probes whether commits to a store are safe. Emulators and gateways that ignore the condition of
//! a request, or honor it only for a single writer, look correct until the day they lose a commit,
//! so the store is tested instead of trusted.
//!
//! Every property that deltafast relies on is tested once in a folder of its own, which is removed
//! afterwards: put-if-absent, also by many concurrent writers; atomic objects; reads and listings
//! that see objects as soon as they are written; names, ranges, multipart uploads, deletions. The
//! tests access the store through this crate's client, so a weakness that the client works around
//! (a store that ignores the offset of a listing) is not reported.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{ObjectRole, PutOutcome, Store, replace};
use crate::error::{Error, Result};
use crate::exec::{self, CancellationToken, panic_error};

/// The extent of the check.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckOptions {
    /// Number of races for one object.
    pub rounds: u32,
    /// Writers in each race.
    pub writers: u32,
    /// Objects in a folder that is listed. The default is more than a page of any service but
    /// Azure's.
    pub objects: u32,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            rounds: 50,
            writers: 20,
            objects: 1_050,
        }
    }
}

/// The verdict of one probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeVerdict {
    /// The store behaves correctly.
    Passed,
    /// Commits may be lost or duplicated, or the bytes read may differ from those written.
    Unsafe,
    /// It does not work, but no data is at risk: maintenance that needs it fails or does less.
    Failed,
}

/// The result of one probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProbeFinding {
    /// The property that was probed.
    pub name: &'static str,
    /// The verdict.
    pub verdict: ProbeVerdict,
    /// The observation.
    pub detail: String,
}

/// The results of all probes of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreCheckReport {
    /// URL of the store, without credentials.
    pub url: String,
    /// Whether no probe found the store unsafe.
    pub safe: bool,
    /// The probes in their order. For a store that refuses commits there is only the first.
    pub findings: Vec<ProbeFinding>,
}

/// The reason that a probe failed.
enum ProbeFailure {
    /// The store behaved incorrectly.
    Wrong(String),
    /// The store returned an error.
    Error(Error),
}

impl From<Error> for ProbeFailure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

fn probe_failed<T>(text: impl Into<String>) -> Result<T, ProbeFailure> {
    Err(ProbeFailure::Wrong(text.into()))
}

/// A probe; returns its observation on success.
type StoreProbe = fn(&ScratchFolder<'_>) -> Result<String, ProbeFailure>;

/// Probes by name, and whether commits and reads depend on them: then an error is as serious as a
/// wrong answer.
const TRIALS: [(&str, bool, StoreProbe); 12] = [
    ("put-if-absent", true, put_if_absent),
    ("mutual exclusion", true, mutual_exclusion),
    ("atomic visibility", true, atomic_visibility),
    ("read after write", true, read_after_write),
    ("list after write", true, list_after_write),
    ("ordered listing", true, ordered_listing),
    ("folder listing", false, folder_listing),
    ("keys", true, keys),
    ("range reads", true, range_reads),
    ("multipart upload", true, multipart_upload),
    ("replacing", false, replacing),
    ("delete", false, delete),
];

/// Attempts of a request whose answer is lost.
const TRIES: usize = 3;

/// Runs all probes at the root of `store`.
///
/// # Errors
/// [`Error::Invalid`] for options; [`Error::Storage`] if the very first object cannot be written,
/// so that nothing can be probed; [`Error::Cancelled`]. A store that cannot commit is a result, not
/// an error.
pub fn check(
    store: &Arc<dyn Store>,
    options: &CheckOptions,
    cancel: &CancellationToken,
) -> Result<StoreCheckReport> {
    if options.rounds == 0 || options.writers < 2 || options.objects < 2 {
        return Err(Error::invalid(
            "a check needs at least one round of at least two writers, and at least two objects",
        ));
    }
    let scratch = ScratchFolder {
        store: store.as_ref(),
        folder: format!("_deltafast_check_{}", exec::uuid()),
        rounds: options.rounds as usize,
        writers: options.writers as usize,
        objects: options.objects as usize,
        made: Mutex::default(),
        cancel,
    };
    let tried = scratch.run();
    let left = scratch.sweep();
    let mut findings = tried?;
    if let Err(error) = left
        && let Some(last) = findings.last_mut()
    {
        last.verdict = if last.verdict == ProbeVerdict::Unsafe {
            ProbeVerdict::Unsafe
        } else {
            ProbeVerdict::Failed
        };
        last.detail = format!(
            "{}; {}{} is left behind: {error}",
            last.detail,
            store.url(),
            scratch.folder
        );
    }
    let safe = findings
        .iter()
        .all(|finding| finding.verdict != ProbeVerdict::Unsafe);
    Ok(StoreCheckReport {
        url: store.url().to_owned(),
        safe,
        findings,
    })
}

/// The folder for all objects of the check.
struct ScratchFolder<'a> {
    store: &'a dyn Store,
    folder: String,
    rounds: usize,
    writers: usize,
    objects: usize,
    /// Objects that may exist and are not deleted yet.
    made: Mutex<BTreeSet<String>>,
    cancel: &'a CancellationToken,
}

impl ScratchFolder<'_> {
    fn run(&self) -> Result<Vec<ProbeFinding>> {
        let mut findings = Vec::new();
        for (name, essential, trial) in TRIALS {
            self.cancel.check()?;
            let (verdict, detail) = match trial(self) {
                Ok(detail) => (ProbeVerdict::Passed, detail),
                Err(ProbeFailure::Wrong(detail)) => (
                    if essential {
                        ProbeVerdict::Unsafe
                    } else {
                        ProbeVerdict::Failed
                    },
                    detail,
                ),
                Err(ProbeFailure::Error(Error::Cancelled)) => return Err(Error::Cancelled),
                // The safety of a store that cannot be reached or written cannot be determined.
                Err(ProbeFailure::Error(
                    error
                    @ (Error::Storage { .. } | Error::NotFound { .. } | Error::Invalid { .. }),
                )) if findings.is_empty() => {
                    return Err(error);
                }
                Err(ProbeFailure::Error(error)) => (
                    if essential {
                        ProbeVerdict::Unsafe
                    } else {
                        ProbeVerdict::Failed
                    },
                    error.to_string(),
                ),
            };
            let refused =
                findings.is_empty() && verdict == ProbeVerdict::Unsafe && self.made().is_empty();
            findings.push(ProbeFinding {
                name,
                verdict,
                detail,
            });
            if refused {
                break;
            }
        }
        Ok(findings)
    }

    fn made(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn put(&self, path: &str, bytes: Bytes, role: ObjectRole) -> Result<PutOutcome> {
        self.made().insert(path.to_owned());
        let put = self.store.put_if_absent(path, bytes, role);
        if let Err(Error::Unsupported { .. }) = put {
            self.made().remove(path);
        }
        put
    }

    /// Creates an object with a unique name. If the answer is lost, the object is read, as for a
    /// commit.
    fn make(&self, path: &str, bytes: Bytes, role: ObjectRole) -> Result<(), ProbeFailure> {
        let mut lost = None;
        for _ in 0..TRIES {
            match self.put(path, bytes.clone(), role)? {
                PutOutcome::Created | PutOutcome::Unsynced(_) => return Ok(()),
                // Perhaps our own: the client may have sent the request twice.
                PutOutcome::Exists if self.read(path)?.is_some_and(|found| found == bytes) => {
                    return Ok(());
                }
                PutOutcome::Exists => {
                    return probe_failed(format!(
                        "a new object was said to be there already: {path}"
                    ));
                }
                PutOutcome::Unknown(_) | PutOutcome::Refused(_)
                    if self.read(path)?.is_some_and(|found| found == bytes) =>
                {
                    return Ok(());
                }
                PutOutcome::Unknown(error) => lost = Some(error),
                PutOutcome::Refused(error) => return Err(error.into()),
            }
        }
        Err(lost
            .unwrap_or_else(|| Error::internal("an object was not made"))
            .into())
    }

    fn read(&self, path: &str) -> Result<Option<Bytes>> {
        match self.store.get(path).wait() {
            Ok((bytes, _)) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn holds(&self, path: &str, bytes: &[u8]) -> Result<(), ProbeFailure> {
        match self.read(path)? {
            Some(found) if found.as_ref() == bytes => Ok(()),
            Some(found) => probe_failed(format!(
                "{path} has {} other bytes than the {} that were written",
                found.len(),
                bytes.len()
            )),
            None => probe_failed(format!("{path} was written and is not there")),
        }
    }

    /// Names in a folder of the scratch folder, in the order in which they are listed.
    fn list_names(&self, folder: &str, after: &str) -> Result<Vec<String>> {
        let dir = self.path(folder);
        let below = format!("{dir}/");
        Ok(self
            .store
            .list_from(&dir, after)?
            .into_iter()
            .map(|meta| {
                meta.path
                    .strip_prefix(&below)
                    .unwrap_or(&meta.path)
                    .to_owned()
            })
            .collect())
    }

    /// Runs `work` on every number below `count`, on one thread per writer, all started together.
    fn together<T: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<T, ProbeFailure> + Sync,
    ) -> Result<Vec<T>, ProbeFailure> {
        let threads = self.writers.min(count);
        let (next, gate) = (AtomicUsize::new(0), RwLock::new(()));
        let done = Mutex::new(Vec::with_capacity(count));
        let (next, gate, done, work) = (&next, &gate, &done, &work);
        let closed = gate.write().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| -> Result<(), ProbeFailure> {
            for _ in 0..threads {
                let writer = thread::Builder::new().spawn_scoped(scope, move || {
                    drop(gate.read());
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return;
                        }
                        let result = if self.cancel.check().is_err() {
                            Err(ProbeFailure::Error(Error::Cancelled))
                        } else {
                            work(number)
                        };
                        let failed = result.is_err();
                        done.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((number, result));
                        if failed {
                            next.store(count, Ordering::Relaxed);
                            return;
                        }
                    }
                });
                if let Err(error) = writer {
                    // Threads that wait at the gate are idle.
                    next.store(count, Ordering::Relaxed);
                    drop(closed);
                    return Err(ProbeFailure::Error(Error::no_thread(&error)));
                }
            }
            drop(closed);
            Ok(())
        })?;
        let mut done = std::mem::take(&mut *done.lock().unwrap_or_else(PoisonError::into_inner));
        done.sort_unstable_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// Deletes all created objects, and folders if the store has them.
    fn sweep(&self) -> Result<()> {
        let paths: Vec<String> = std::mem::take(&mut *self.made()).into_iter().collect();
        if paths.is_empty() {
            return Ok(());
        }
        if let Some((path, error)) = self.store.delete_batch(&paths)?.into_iter().next() {
            return Err(Error::storage(
                format!("{path} could not be deleted: {error}"),
                false,
            ));
        }
        let mut folders = BTreeSet::new();
        for path in &paths {
            let mut path = path.as_str();
            while let Some((folder, _)) = path.rsplit_once('/') {
                folders.insert(folder);
                path = folder;
            }
        }
        // Deeper ones first: a path sorts before the paths below it.
        folders
            .into_iter()
            .rev()
            .try_for_each(|folder| self.store.remove_folder(folder))
    }
}

/// Bytes in which no two ranges are equal.
fn pattern(length: usize, seed: usize) -> Bytes {
    (0..length)
        .map(|n| ((n.wrapping_mul(31) >> 3) ^ n ^ seed.wrapping_mul(77)) as u8)
        .collect::<Vec<u8>>()
        .into()
}

fn put_if_absent(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let path = scratch.path("put-if-absent.json");
    scratch.make(&path, "first".into(), ObjectRole::Essential)?;
    let mut second = scratch.put(&path, "second".into(), ObjectRole::Essential)?;
    for _ in 1..TRIES {
        if let PutOutcome::Unknown(_) = second {
            second = scratch.put(&path, "second".into(), ObjectRole::Essential)?;
        }
    }
    match second {
        PutOutcome::Exists => {}
        PutOutcome::Unknown(error) | PutOutcome::Refused(error) => return Err(error.into()),
        PutOutcome::Created | PutOutcome::Unsynced(_) => {
            return probe_failed(
                "the store reported success for a conditional put of an existing object: it ignores the condition of the request",
            );
        }
    }
    scratch.holds(&path, b"first")?;
    Ok("a second put of an object is refused and changes nothing".to_owned())
}

/// The body of a writer's put: as long as a small commit, all different and of different lengths.
fn commit_body(round: usize, writer: usize) -> Bytes {
    format!(
        "{{\"commitInfo\":{{\"txnId\":\"{round}-{writer}\",\"padding\":\"{}\"}}}}\n",
        "x".repeat(400 + writer)
    )
    .into()
}

fn mutual_exclusion(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let (rounds, writers) = (scratch.rounds, scratch.writers);
    let (mut doubled, mut replaced, mut unanswered) = (0, 0, 0);
    let mut owners = Vec::new();
    for round in 0..rounds {
        let path = scratch.path(&format!("race/{round:020}.json"));
        let outcomes = scratch.together(writers, |writer| {
            Ok(scratch.put(&path, commit_body(round, writer), ObjectRole::Derived)?)
        })?;
        let winners: Vec<usize> = outcomes
            .iter()
            .enumerate()
            .filter(|(_, put)| matches!(put, PutOutcome::Created | PutOutcome::Unsynced(_)))
            .map(|(n, _)| n)
            .collect();
        let unknown = outcomes
            .iter()
            .filter(|put| matches!(put, PutOutcome::Unknown(_) | PutOutcome::Refused(_)))
            .count();
        let owner = match scratch.read(&path)? {
            Some(found) => match (0..writers).find(|writer| commit_body(round, *writer) == found) {
                Some(owner) => owner,
                None => {
                    return probe_failed(format!(
                        "of {writers} writers at once none has written what is there: {} bytes",
                        found.len()
                    ));
                }
            },
            None if winners.is_empty() && unknown > 0 => {
                unanswered += 1;
                continue;
            }
            None => {
                return probe_failed(format!(
                    "of {writers} concurrent puts of one object the store reported success to {}, and the object does not exist",
                    winners.len()
                ));
            }
        };
        match winners.as_slice() {
            // The answer was lost, or the client sent the request twice.
            [] => {}
            [winner] if *winner == owner => {}
            [_] => replaced += 1,
            _ => doubled += 1,
        }
        owners.push((path, round, owner));
    }
    if doubled > 0 {
        return probe_failed(format!(
            "in {doubled} of {rounds} rounds the store reported success to more than one of {writers} concurrent writers"
        ));
    }
    if replaced > 0 {
        return probe_failed(format!(
            "in {replaced} of {rounds} rounds of {writers} writers the winner's object was replaced by a loser's"
        ));
    }
    if unanswered == rounds {
        return probe_failed(format!(
            "none of {rounds} rounds of {writers} writers was answered"
        ));
    }
    scratch.together(owners.len(), |n| match owners.get(n) {
        Some((path, round, owner)) => scratch.holds(path, &commit_body(*round, *owner)),
        None => Ok(()),
    })?;
    let lost = if unanswered > 0 {
        format!(", {unanswered} without any answer")
    } else {
        String::new()
    };
    Ok(format!(
        "{rounds} rounds of {writers} writers at once, one winner in each{lost}"
    ))
}

fn atomic_visibility(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    const ROUNDS: usize = 4;
    let size = 2 << 20;
    let mut looks = 0;
    for round in 0..ROUNDS {
        let (path, bytes) = (
            scratch.path(&format!("atomic/{round}")),
            pattern(size, round),
        );
        let done = AtomicBool::new(false);
        let look = || -> Result<usize, ProbeFailure> {
            let mut looks = 0;
            while !done.load(Ordering::Acquire) {
                match scratch.read(&path)? {
                    Some(found) if found != bytes => {
                        return probe_failed(format!(
                            "a reader saw {} of {size} bytes of an object that was being written",
                            found.len()
                        ));
                    }
                    _ => looks += 1,
                }
                if let Some(meta) = scratch
                    .store
                    .list_from(&scratch.path("atomic"), "")?
                    .into_iter()
                    .find(|meta| meta.path == path && meta.size != size as u64)
                {
                    return probe_failed(format!(
                        "a listing reported {} of {size} bytes of an object that was being written",
                        meta.size
                    ));
                }
            }
            Ok(looks)
        };
        let (put, seen) = thread::scope(|scope| {
            let reader = thread::Builder::new()
                .spawn_scoped(scope, look)
                .map_err(|error| ProbeFailure::Error(Error::no_thread(&error)));
            let put = scratch.make(&path, bytes.clone(), ObjectRole::Derived);
            done.store(true, Ordering::Release);
            let seen = reader.and_then(|reader| {
                reader.join().unwrap_or_else(|panic| {
                    Err(ProbeFailure::Error(panic_error(
                        "a reader of the check",
                        &*panic,
                    )))
                })
            });
            (put, seen)
        });
        put?;
        looks += seen?;
        scratch.holds(&path, &bytes)?;
    }
    Ok(format!(
        "{looks} reads while {ROUNDS} objects of {} MiB were written saw nothing or the whole",
        size >> 20
    ))
}

fn read_after_write(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let count = scratch.writers.max(20);
    scratch.together(count, |n| {
        let (path, bytes) = (
            scratch.path(&format!("read/{n:020}.json")),
            commit_body(n, n),
        );
        // Some stores cache for a while that an object does not exist.
        if scratch.read(&path)?.is_some() {
            return probe_failed(format!("{path} is there before it was written"));
        }
        scratch.make(&path, bytes.clone(), ObjectRole::Essential)?;
        scratch.holds(&path, &bytes)?;
        let size = scratch.store.head(&path)?.size;
        if size == bytes.len() as u64 {
            Ok(())
        } else {
            probe_failed(format!(
                "{path} has {} bytes, and its metadata says {size}",
                bytes.len()
            ))
        }
    })?;
    Ok(format!(
        "{count} objects were read right after they were written"
    ))
}

fn list_after_write(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let count = scratch.writers.max(20);
    let listed = |name: &str| -> Result<bool, ProbeFailure> {
        Ok(scratch
            .list_names("list", "")?
            .iter()
            .any(|found| found == name))
    };
    scratch.together(count, |n| {
        let name = format!("{n:020}.json");
        let path = scratch.path(&format!("list/{name}"));
        scratch.make(&path, commit_body(n, n), ObjectRole::Derived)?;
        if listed(&name)? {
            Ok(())
        } else {
            probe_failed(format!(
                "{path} was written, and the next listing did not have it"
            ))
        }
    })?;
    let last = format!("{:020}.json", count - 1);
    // Deletion has a probe of its own.
    let deleted = scratch
        .store
        .delete_batch(&[scratch.path(&format!("list/{last}"))])
        .is_ok_and(|failed| failed.is_empty());
    if deleted && listed(&last)? {
        return probe_failed(format!(
            "{last} was deleted, and the next listing still had it"
        ));
    }
    Ok(format!(
        "{count} objects were listed right after they were written"
    ))
}

fn ordered_listing(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let (many, half) = (scratch.objects, scratch.objects / 2);
    let name = |n: usize| format!("{n:020}.json");
    scratch.together(many, |n| {
        scratch.make(
            &scratch.path(&format!("pages/{}", name(n))),
            name(n).into(),
            ObjectRole::Derived,
        )
    })?;
    scratch.make(
        &scratch.path("pages/below/0.json"),
        "0".into(),
        ObjectRole::Derived,
    )?;
    let all: Vec<String> = (0..many).map(name).collect();
    for (after, first) in [
        (String::new(), 0),
        (name(half - 1), half),
        (format!("{}~", name(many - 2)), many - 1),
        (name(many), many),
    ] {
        let found = scratch.list_names("pages", &after)?;
        if all.get(first..).is_none_or(|expected| found != expected) {
            return probe_failed(format!(
                "a listing of {many} objects after `{after}` gave {} where {} in order were due, the first `{}`",
                found.len(),
                many - first,
                found.first().map_or("", String::as_str)
            ));
        }
    }
    if !scratch.list_names("nothing", "")?.is_empty() {
        return probe_failed("a folder that is not there was not empty");
    }
    Ok(format!(
        "{many} objects in order, from the beginning and from a name on"
    ))
}

fn folder_listing(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let listed = scratch
        .store
        .list_folder(&scratch.path("pages"), &|_| true)?;
    let below = [scratch.path("pages/below")];
    if listed.objects.len() != scratch.objects || listed.folders != below {
        return probe_failed(format!(
            "a folder of {} objects and a folder listed as {} and {}",
            scratch.objects,
            listed.objects.len(),
            listed.folders.len()
        ));
    }
    Ok("a folder's objects and folders".to_owned())
}

/// Names that writers derive from partition values, and others that a layer may mistake for
/// escapes.
const KEYS: [&str; 15] = [
    "a b",
    "%20",
    "a%20b",
    "%2520",
    "100%",
    "a%2Fb",
    "ü",
    "é",
    "日本",
    "+",
    "a+b=c&d",
    "x=1,y=2",
    "#a",
    "~!'()@$;",
    "p=a%3Ab/part-0 ü.parquet",
];

fn keys(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    for key in KEYS {
        scratch.make(
            &scratch.path(&format!("keys/{key}")),
            key.into(),
            ObjectRole::Derived,
        )?;
    }
    for key in KEYS {
        scratch.holds(&scratch.path(&format!("keys/{key}")), key.as_bytes())?;
    }
    let found: BTreeSet<String> = scratch.list_names("keys", "")?.into_iter().collect();
    let due: BTreeSet<String> = KEYS
        .iter()
        .filter(|key| !key.contains('/'))
        .map(ToString::to_string)
        .collect();
    match found.symmetric_difference(&due).next() {
        None => Ok(format!(
            "{} names with spaces, signs, escapes and letters",
            KEYS.len()
        )),
        Some(name) => probe_failed(format!(
            "objects were listed under other names than they were given, such as `{name}`"
        )),
    }
}

fn range_reads(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let size: u64 = 3 << 20;
    let (path, bytes) = (scratch.path("ranges"), pattern(size as usize, 3));
    scratch.make(&path, bytes.clone(), ObjectRole::Derived)?;
    let ranges = vec![
        0..1,
        size - 1..size,
        1_000..1_010,
        1_005..2_000,
        2_000_000..2_000_001,
        size - 8..size,
        0..size,
    ];
    let due = |range: &Range<u64>| bytes.get(range.start as usize..range.end as usize);
    // One by one, and together: neighbouring ranges become one request.
    let mut found = scratch.store.get_ranges(&path, ranges.clone()).wait()?;
    for range in &ranges {
        found.extend(
            scratch
                .store
                .get_ranges(&path, vec![range.clone()])
                .wait()?,
        );
    }
    for (range, found) in ranges.iter().cycle().zip(&found) {
        if due(range) != Some(found.as_ref()) {
            return probe_failed(format!(
                "the range {}..{} of an object of {size} bytes gave {} other bytes",
                range.start,
                range.end,
                found.len()
            ));
        }
    }
    if found.len() != 2 * ranges.len() {
        return probe_failed(format!(
            "{} ranges gave {} answers",
            2 * ranges.len(),
            found.len()
        ));
    }
    match scratch
        .store
        .get_ranges(&path, std::iter::once(size - 5..size + 5).collect())
        .wait()
    {
        Err(Error::Cancelled) => Err(Error::Cancelled.into()),
        Err(_) => Ok(format!(
            "{} ranges of an object, the last byte and the whole among them",
            ranges.len()
        )),
        Ok(found) => probe_failed(format!(
            "a range beyond the end gave {} bytes and no error",
            found.first().map_or(0, Bytes::len)
        )),
    }
}

fn multipart_upload(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let size = (20 << 20) + 1;
    let (path, bytes) = (scratch.path("multipart"), pattern(size, 5));
    let begin = |path: &str| {
        scratch.made().insert(path.to_owned());
        scratch.store.upload(path, ObjectRole::Essential)
    };
    let absent = |path: &str, when: &str| match scratch.store.head(path) {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => probe_failed(format!("an object in parts was there {when}")),
    };
    let mut upload = begin(&path)?;
    for piece in bytes.chunks(3_000_001) {
        scratch.cancel.check()?;
        upload.write(piece)?;
    }
    absent(&path, "before it was finished")?;
    let told = upload.finish().wait()?.size;
    if told != size as u64 || scratch.store.head(&path)?.size != told {
        return probe_failed(format!(
            "an object of {size} bytes in parts has another size"
        ));
    }
    scratch.holds(&path, &bytes)?;
    let given_up = scratch.path("given up");
    let mut upload = begin(&given_up)?;
    upload.write(bytes.get(..10 << 20).unwrap_or_default())?;
    drop(upload);
    absent(&given_up, "though it was given up")?;
    Ok(format!(
        "{} MiB in parts appeared when they were complete",
        size >> 20
    ))
}

fn replacing(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let path = scratch.path("_last_checkpoint");
    scratch.made().insert(path.clone());
    for n in 0..3 {
        let bytes = commit_body(n, n);
        replace(scratch.store, &path, &bytes)?;
        scratch.holds(&path, &bytes)?;
    }
    Ok("an object was read as it was last written".to_owned())
}

fn delete(scratch: &ScratchFolder<'_>) -> Result<String, ProbeFailure> {
    let made: Vec<String> = scratch.made().iter().cloned().collect();
    let mut paths = made.clone();
    paths.extend([scratch.path("nothing"), scratch.path("nothing/here")]);
    if let Some((path, error)) = scratch.store.delete_batch(&paths)?.into_iter().next() {
        return Err(Error::storage(format!("{path} could not be deleted: {error}"), false).into());
    }
    for path in [
        scratch.path("put-if-absent.json"),
        scratch.path("keys/a%20b"),
        scratch.path(&format!("pages/{:020}.json", scratch.objects - 1)),
    ] {
        if scratch.read(&path)?.is_some() {
            return probe_failed(format!("{path} was deleted and is there"));
        }
    }
    if let Some(name) = scratch.list_names("pages", "")?.first() {
        return probe_failed(format!("pages/{name} was deleted and is still listed"));
    }
    scratch.make(
        &scratch.path("put-if-absent.json"),
        "third".into(),
        ObjectRole::Essential,
    )?;
    Ok(format!(
        "{} objects at once, and two that were not there",
        made.len()
    ))
}
