//! The interface of a store: objects by path below a root.

use super::pending_result::PendingResult;
use super::table_path::TablePath;
use super::upload::ObjectUpload;
use super::writer_queue::WriterQueueLock;
use crate::error::{Error, Result};
use crate::exec::CancellationToken;
use bytes::Bytes;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

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
pub(crate) const LONGEST_OBJECT: u64 = u32::MAX as u64;

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

/// The error of a deletion that would leave the table's folder.
pub(crate) fn outside_table_error(url: &str, path: &str) -> Error {
    Error::storage(
        format!("refused to delete `{path}`: it is not inside {url}"),
        false,
    )
}

pub(crate) fn read_only(url: &str, path: &str) -> Error {
    Error::unsupported(format!(
        "{url} can only be read here; {path} cannot be changed"
    ))
}
