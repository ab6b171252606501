//! Byte storage: where a table is stored. Paths in, ranges of bytes and listings out; new objects
//! in.
//!
//! [`Store`] is synchronous on purpose: the rest of the crate is plain code on its own threads, and
//! operations that must overlap (remote reads) return a [`PendingResult`] that is already in
//! progress. The calling thread reads files on local disks with positioned reads; all other stores
//! go through `object_store` on the I/O runtime.
//!
//! Paths are relative to the store's root, decoded, with `/` between parts.

mod address;
mod check;
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
mod client;
mod credentials;
mod external_paths;
#[cfg(any(test, feature = "testing"))]
pub mod fault;
mod hadoop;
mod local;
mod local_file;
mod options;
#[cfg(feature = "tls")]
mod recorded_request;
mod remote;
mod remote_error;
#[cfg(feature = "tls")]
mod renewed_credentials;
mod request_log;
mod resolve;
mod single_attempt;
mod table_path;
#[cfg(unix)]
mod unlink;
mod upload;
mod writer_queue;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use address::{SCHEMES, TableAddress, expand, is_url};
pub use check::{CheckOptions, ProbeFinding, ProbeVerdict, StoreCheckReport, check};
pub use credentials::{CredentialSource, RegisteredSource, TemporaryCredentials, has_source};
pub use external_paths::ExternalPaths;
pub use local::{LocalPutStep, LocalStore};
pub use options::{StorageOptions, option_warnings};
pub use request_log::{RequestLog, RequestRecord, has_requests, record_requests, take_requests};
pub use resolve::{TableStores, open};
pub use table_path::TablePath;
pub use upload::ObjectUpload;
pub use writer_queue::WriterQueueLock;

use crate::error::{Error, Result};
use crate::exec::{self, CancellationToken, RuntimeEnv, SystemEnv};

/// Metadata of an object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Path below the store's root.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, milliseconds since the epoch.
    pub modified_ms: i64,
}

/// A result that is being fetched, or will be when waited for.
pub struct PendingResult<T>(PendingState<T>);

enum PendingState<T> {
    Lazy(Box<dyn FnOnce() -> Result<T> + Send>),
    Task(tokio::task::JoinHandle<Result<T>>),
}

impl<T> PendingResult<T> {
    /// Work that the waiting thread does itself.
    pub fn lazy(work: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self(PendingState::Lazy(Box::new(work)))
    }

    pub(crate) fn task(task: tokio::task::JoinHandle<Result<T>>) -> Self {
        Self(PendingState::Task(task))
    }

    /// The result with `then` applied to it by the waiting thread.
    pub(crate) fn map<U>(
        self,
        then: impl FnOnce(T) -> Result<U> + Send + 'static,
    ) -> PendingResult<U>
    where
        T: Send + 'static,
    {
        PendingResult::lazy(move || then(self.wait()?))
    }

    /// Waits for the result. Never called on a thread of the I/O runtime.
    ///
    /// # Errors
    /// The error of the fetch.
    pub fn wait(self) -> Result<T> {
        match self.0 {
            PendingState::Lazy(work) => work(),
            PendingState::Task(task) => exec::blocking(|| futures::executor::block_on(task))
                .map_err(|e| Error::internal(format!("an I/O task ended early: {e}")))?,
        }
    }
}

/// The outcome of a [`Store::put_if_absent`].
#[derive(Debug)]
pub enum PutOutcome {
    /// The object exists, whole, and survives a crash.
    Created,
    /// The object existed already. It may be our own: the client may have sent the request twice.
    Exists,
    /// The outcome is unknown: the request was sent and its answer is missing or inconclusive. The
    /// object may still appear.
    Unknown(Error),
    /// The store refused the request (no permission, no such bucket) after it was sent. A gateway
    /// or the client may have sent it before, so only a read shows whether the object exists; no
    /// request is still in flight.
    Refused(Error),
    /// The object is visible, but it is not known whether it survives a power failure.
    Unsynced(Error),
}

/// The role of an object in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectRole {
    /// The table is incorrect without it: commits, data files, deletion vectors. It is on stable
    /// storage before success is reported.
    Essential,
    /// It can be made again from the rest, and readers do not need it: checkpoints, hints,
    /// checksums. Not synced to disk.
    Derived,
}

/// The direct entries of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderListing {
    /// Objects.
    pub objects: Vec<ObjectMeta>,
    /// Paths of the folders in it.
    pub folders: Vec<String>,
}

/// An open object, from which any thread may read.
pub trait ObjectReader: Debug + Send + Sync {
    /// The bytes of a range, which must not go beyond the end.
    ///
    /// # Errors
    /// [`Error::Storage`].
    fn range(&self, range: Range<u64>) -> Result<Bytes>;
}

/// A store of objects. Implementations are shared between threads.
pub trait Store: Debug + Send + Sync {
    /// URL of the root, without credentials, ending in `/`.
    fn url(&self) -> &str;

    /// Objects directly in directory `dir` (`""` is the root) whose name sorts after `after`,
    /// sorted by name. A directory that does not exist is empty.
    ///
    /// # Errors
    /// [`Error::Storage`].
    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>>;

    /// The direct entries of directory `dir`, in no order. Objects whose name `take` rejects are
    /// left out, and cost less than the others. Links to directories are not folders: their targets
    /// do not belong to the table.
    ///
    /// # Errors
    /// [`Error::Storage`]; [`Error::Unsupported`] for a store that cannot list folders.
    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<FolderListing> {
        let (_, _) = (dir, take);
        Err(Error::unsupported(format!(
            "the folders of {} cannot be listed here",
            self.url()
        )))
    }

    /// Whether [`Store::list_from`] works; a plain HTTP server cannot list.
    fn can_list(&self) -> bool {
        true
    }

    /// The object opened for many reads, where that saves work; `None` where each read is a
    /// separate [`Store::get_ranges`].
    ///
    /// # Errors
    /// As for reading.
    fn open_reader(&self, path: &str) -> Result<Option<Arc<dyn ObjectReader>>> {
        let _ = path;
        Ok(None)
    }

    /// Whether reading is mostly waiting, so that many requests should be in flight at once.
    fn is_remote(&self) -> bool {
        false
    }

    /// Size and time of one object.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Storage`].
    fn head(&self, path: &str) -> Result<ObjectMeta>;

    /// The whole object, with its metadata; one longer than [`LONGEST_OBJECT`] is an error.
    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)>;

    /// The whole object, unless it is longer than `limit` bytes, which is checked without reading
    /// it.
    ///
    /// # Errors
    /// [`Error::Storage`] for a longer one, and as for reading.
    fn get_within(&self, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
        check_length(path, self.head(path)?.size, limit)?;
        self.get(path).wait()
    }

    /// Several ranges of one object. Ranges beyond its end are an error.
    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> PendingResult<Vec<Bytes>>;

    /// Waits for the queue lock among the writers of this machine that want to make the next object
    /// in `dir`, where the store supports it. Correctness does not depend on it.
    fn lock_writer_queue(&self, dir: &str, cancel: &CancellationToken) -> Option<WriterQueueLock> {
        let _ = (dir, cancel);
        None
    }

    /// Creates the object atomically if none exists at `path`: of any number of concurrent writers,
    /// one succeeds.
    ///
    /// # Errors
    /// Only if the object's name was never requested, so that certainly nothing was created:
    /// [`Error::Unsupported`] for a store that cannot do this, [`Error::Storage`] for a full disk
    /// and the like. Every error after the request may have been sent is [`PutOutcome::Unknown`] or
    /// [`PutOutcome::Refused`].
    fn put_if_absent(&self, path: &str, bytes: Bytes, role: ObjectRole) -> Result<PutOutcome> {
        let _ = (bytes, role);
        Err(read_only(self.url(), path))
    }

    /// Begins a new object, which appears under its name atomically when its [`ObjectUpload`] is
    /// finished.
    ///
    /// The name of an essential object must be unique: a local file is never replaced, but other
    /// stores cannot guarantee that. A derived object replaces an existing one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for read-only stores, [`Error::Storage`].
    fn upload(&self, path: &str, role: ObjectRole) -> Result<Box<dyn ObjectUpload>> {
        let _ = role;
        Err(read_only(self.url(), path))
    }

    /// Deletes these objects; missing ones count as deleted. Returns the objects that could not be
    /// deleted, with the reasons.
    ///
    /// All deletions go through this function: a path that is not inside the root is refused, and
    /// implementations of [`Store::delete_inside`] follow no links.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a store that cannot delete.
    fn delete_batch(&self, paths: &[String]) -> Result<Vec<(String, Error)>> {
        let (mut inside, mut refused) = (Vec::with_capacity(paths.len()), Vec::new());
        for path in paths {
            match TablePath::new(path) {
                Some(path) => inside.push(path),
                None => refused.push((path.clone(), outside_table_error(self.url(), path))),
            }
        }
        if !inside.is_empty() {
            refused.splice(0..0, self.delete_inside(&inside)?);
        }
        Ok(refused)
    }

    /// [`Store::delete_batch`] of paths that are inside the root by their names; a folder on the
    /// way that is a link is not followed.
    ///
    /// # Errors
    /// As [`Store::delete_batch`].
    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        paths.first().map_or(Ok(Vec::new()), |path| {
            Err(read_only(self.url(), path.as_str()))
        })
    }

    /// Whether the objects of directory `dir` belong to the table and may be deleted: the path
    /// contains no links.
    fn owns(&self, dir: &str) -> bool {
        dir.is_empty() || TablePath::new(dir).is_some()
    }

    /// Removes an empty folder, if the store has folders; one that is not empty stays, as does one
    /// outside of the root.
    ///
    /// # Errors
    /// [`Error::Storage`].
    fn remove_folder(&self, dir: &str) -> Result<()> {
        let _ = dir;
        Ok(())
    }

    /// The same store at the root of its disk, bucket or container, where absolute paths begin.
    fn authority_root(&self) -> Option<Arc<dyn Store>> {
        None
    }
}

/// The longest object that is read in one piece.
pub const LONGEST_OBJECT: u64 = u32::MAX as u64;

/// Refuses an object that is too long to be read in one piece.
pub(crate) fn check_length(path: &str, size: u64, limit: u64) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(Error::storage(
        format!("{path} is {size} bytes long, more than the {limit} that are read at once"),
        false,
    ))
}

/// Writes a derived object, replacing an existing one.
///
/// # Errors
/// As [`Store::upload`].
pub fn replace(store: &dyn Store, path: &str, bytes: &[u8]) -> Result<()> {
    let mut upload = store.upload(path, ObjectRole::Derived)?;
    upload.write(bytes)?;
    upload.finish().wait().map(|_| ())
}

/// Attempts to put an object that is not a commit while the results are unknown.
const ATTEMPTS: u32 = 5;

/// [`Store::put_if_absent`] of an object that is not a commit, repeated while the result is
/// unknown. (Clients send such a request once. Commits have a state machine of their own, which
/// reads the version between attempts.)
///
/// # Errors
/// As [`Store::put_if_absent`].
pub fn put_with_retries(
    store: &dyn Store,
    path: &str,
    bytes: &Bytes,
    role: ObjectRole,
) -> Result<PutOutcome> {
    let is_near = ["file:", "memory:"]
        .iter()
        .any(|scheme| store.url().starts_with(scheme));
    let mut wait = Duration::from_millis(if is_near { 1 } else { 100 });
    for _ in 1..ATTEMPTS {
        match store.put_if_absent(path, bytes.clone(), role)? {
            PutOutcome::Unknown(_) => {}
            settled => return Ok(settled),
        }
        // Half of it is random, so that writers do not repeat their requests at the same time.
        let micros = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX) / 2;
        SystemEnv.sleep(Duration::from_micros(
            micros + SystemEnv.random() % micros.max(1),
        ));
        wait *= 2;
    }
    store.put_if_absent(path, bytes.clone(), role)
}

/// Creates an essential object under a unique name.
///
/// # Errors
/// As [`Store::put_if_absent`], and the error of an unknown result.
pub fn make_unique(store: &dyn Store, path: &str, bytes: &Bytes) -> Result<()> {
    let (other, error) = match put_with_retries(store, path, bytes, ObjectRole::Essential)? {
        PutOutcome::Created => return Ok(()),
        PutOutcome::Unsynced(error) => return Err(error),
        PutOutcome::Exists => (
            true,
            Error::internal(format!("an object named {path} was there already")),
        ),
        PutOutcome::Unknown(error) | PutOutcome::Refused(error) => (false, error),
    };
    // An earlier attempt may have succeeded.
    match store.get(path).wait() {
        Ok((found, _)) if found == *bytes => Ok(()),
        Err(unread) if other => Err(unread),
        _ => Err(error),
    }
}

/// Creates a derived object if none exists; false if one exists.
///
/// # Errors
/// As [`Store::put_if_absent`], and the error of an unknown result.
pub fn make(store: &dyn Store, path: &str, bytes: &Bytes) -> Result<bool> {
    match put_with_retries(store, path, bytes, ObjectRole::Derived)? {
        PutOutcome::Created | PutOutcome::Unsynced(_) => Ok(true),
        PutOutcome::Exists => Ok(false),
        PutOutcome::Unknown(error) | PutOutcome::Refused(error) => Err(error),
    }
}

/// The error of a deletion that would leave the table's folder.
fn outside_table_error(url: &str, path: &str) -> Error {
    Error::storage(
        format!("refused to delete `{path}`: it is not inside {url}"),
        false,
    )
}

fn read_only(url: &str, path: &str) -> Error {
    Error::unsupported(format!(
        "{url} can only be read here; {path} cannot be changed"
    ))
}

/// One object of a store.
#[derive(Debug, Clone)]
pub struct StoreObject {
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Its path in the store.
    pub path: String,
    /// Its size in bytes, where the caller knows it.
    pub size: Option<u64>,
}

impl StoreObject {
    /// Its size, requested from the store if unknown.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Storage`].
    pub fn size(&self) -> Result<u64> {
        match self.size {
            Some(size) => Ok(size),
            None => self.store.head(&self.path).map(|meta| meta.size),
        }
    }

    /// Its URL, for messages.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.store.url(), self.path)
    }
}

#[cfg(test)]
mod tests;
