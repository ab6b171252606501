//! Files on local disks, by plain reads and writes of the calling thread.
//!
//! A commit is atomic across a crash at any instant: it is written under a hidden name next to its
//! destination, synced, linked to its name (which fails if the name is taken), and the directory is
//! synced before success is reported. Where a file system has no links, a rename that refuses to
//! replace is used instead.
//!
//! A network file system may create the name of a file and still answer with an error. So after an
//! error the file with that name is compared with the one that was written; where they are not
//! certainly the same, the result is unknown.

use std::fmt;
use std::fs::{self};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

#[cfg(unix)]
use super::local_file::{
    FileIdentity, failure, has_no_links, modified_ms, object_meta, sync_directory, write_failure,
};
use super::unlink::DeletionRoot;
use super::upload::LocalUpload;
use super::{
    FolderListing, LONGEST_OBJECT, ObjectMeta, ObjectReader, ObjectRole, ObjectUpload,
    PendingResult, PutOutcome, Store, TablePath, WriterQueueLock, check_length,
};
use crate::error::{Error, Result};
use crate::exec::{self, CancellationToken, filled};

/// A step of [`Store::put_if_absent`] on a local disk, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalPutStep {
    /// The hidden file is about to be written.
    Write,
    /// The hidden file is about to be synced.
    Sync,
    /// It is about to get its name.
    Link,
    /// It has its name, by a link or a rename, and the call is about to return.
    Linked,
    /// The directory is about to be synced.
    SyncDirectory,
    /// The hidden name is about to be removed.
    Unlink,
}

/// Called before every step; may make it fail.
type LocalPutObserver = Arc<dyn Fn(LocalPutStep) -> io::Result<()> + Send + Sync>;

/// A directory as a store.
pub struct LocalStore {
    root: PathBuf,
    url: String,
    unsafe_rename: bool,
    observer: Option<LocalPutObserver>,
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl LocalStore {
    /// The directory `root`, which need not exist.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        let mut url = url::Url::from_directory_path(&root)
            .map_or_else(|()| format!("file://{}", root.display()), String::from);
        if !url.ends_with('/') {
            url.push('/');
        }
        Self {
            root,
            url,
            unsafe_rename: false,
            observer: None,
        }
    }

    /// The same, with plain renames where the file system has neither links nor renames that refuse
    /// to replace: two concurrent writers may then both believe that they have committed.
    #[must_use]
    pub fn allow_unsafe_rename(self, allow: bool) -> Self {
        Self {
            unsafe_rename: allow,
            ..self
        }
    }

    /// The same, with every step of a commit shown to `watch` first.
    #[cfg(test)]
    #[must_use]
    pub fn with_put_observer(
        self,
        watch: impl Fn(LocalPutStep) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            observer: Some(Arc::new(watch)),
            ..self
        }
    }

    fn step(&self, step: LocalPutStep) -> io::Result<()> {
        self.observer.as_ref().map_or(Ok(()), |watch| watch(step))
    }

    /// Writes the hidden file, and syncs it if it is essential; returns its identity.
    fn write_staged(
        &self,
        staged: &Path,
        bytes: &[u8],
        role: ObjectRole,
    ) -> io::Result<Option<FileIdentity>> {
        self.step(LocalPutStep::Write)?;
        let mut file = fs::File::create_new(staged)?;
        file.write_all(bytes)?;
        let identity = FileIdentity::of(&file.metadata()?);
        if role == ObjectRole::Derived {
            return Ok(identity);
        }
        self.step(LocalPutStep::Sync)?;
        file.sync_all()?;
        Ok(identity)
    }

    /// The outcome for a file that has its name.
    fn put_outcome(&self, directory: &Path, role: ObjectRole) -> PutOutcome {
        if role == ObjectRole::Derived {
            return PutOutcome::Created;
        }
        match self
            .step(LocalPutStep::SyncDirectory)
            .and_then(|()| sync_directory(directory))
        {
            Ok(()) => PutOutcome::Created,
            Err(error) => PutOutcome::Unsynced(write_failure(directory, &error)),
        }
    }

    /// Gives the hidden file its name.
    fn name(&self, staged: &Path, target: &Path, own: Option<FileIdentity>) -> NamingResult {
        let named =
            |result: io::Result<()>| match result.and_then(|()| self.step(LocalPutStep::Linked)) {
                Ok(()) => NamingResult::Named,
                Err(_) if own.is_some_and(|own| own.is_at(target)) => NamingResult::Named,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => NamingResult::Taken,
                Err(error) if has_no_links(&error) => NamingResult::NoSuchOperation(error),
                Err(error) => NamingResult::Unconfirmed(error),
            };
        match named(fs::hard_link(staged, target)) {
            NamingResult::NoSuchOperation(_) => {}
            settled => return settled,
        }
        match named(rename_no_replace(staged, target)) {
            NamingResult::NoSuchOperation(_) if self.unsafe_rename => match target.try_exists() {
                Ok(true) => NamingResult::Taken,
                Ok(false) => named(fs::rename(staged, target)),
                Err(error) => NamingResult::Unconfirmed(error),
            },
            settled => settled,
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

/// The result of giving a file its name.
enum NamingResult {
    Named,
    /// Another file has that name.
    Taken,
    /// The file system does not support the operation.
    NoSuchOperation(io::Error),
    /// An error; the file may have its name nevertheless.
    Unconfirmed(io::Error),
}

/// Whether an error of naming a file is a refusal, and not a failure during the operation.
fn is_refusal(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(
        error.kind(),
        K::PermissionDenied
            | K::ReadOnlyFilesystem
            | K::StorageFull
            | K::QuotaExceeded
            | K::NotFound
            | K::NotADirectory
            | K::InvalidFilename
    )
}

/// A rename that fails if the target exists.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let from = std::ffi::CString::new(from.as_os_str().as_bytes())?;
    let to = std::ffi::CString::new(to.as_os_str().as_bytes())?;
    // SAFETY: both pointers are to zero-terminated strings that live until the call returns.
    #[cfg(target_os = "linux")]
    let result = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    // SAFETY: as above.
    #[cfg(target_os = "macos")]
    let result = unsafe { libc::renamex_np(from.as_ptr(), to.as_ptr(), libc::RENAME_EXCL) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_no_replace(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a directory and its parents, synced.
fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_directory(parent)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => parent.map_or(Ok(()), sync_directory),
    }
}

fn delete_failure(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::storage(format!("no permission to delete {shown}"), false)
        }
        _ => Error::storage(format!("cannot delete {shown}: {error}"), false),
    }
}

/// Reads `range`, checked against the file's length first: a false footer must not cause an
/// allocation.
fn read_range(file: &fs::File, length: u64, range: &Range<u64>) -> io::Result<Bytes> {
    if range.start > range.end || range.end > length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = usize::try_from(range.end - range.start)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    // Into a buffer that was in use before: zeroing a new one costs as much as reading from the
    // page cache.
    let mut failed = None;
    let bytes = filled(size, |buffer| {
        failed = read_at(file, buffer, range.start).err();
        Ok(())
    });
    match (failed, bytes) {
        (None, Ok(bytes)) => Ok(bytes),
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(io::Error::other(error)),
    }
}

/// Reads a file of at most `limit` bytes.
fn read_whole(file: &Path, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
    // Looked at before it is opened: opening a pipe would wait for its other end.
    let metadata = fs::metadata(file).map_err(|e| failure(file, &e))?;
    let meta = object_meta(path, file, &metadata)?;
    check_length(path, meta.size, limit)?;
    let opened = fs::File::open(file).map_err(|e| failure(file, &e))?;
    let bytes = read_range(&opened, meta.size, &(0..meta.size)).map_err(|e| failure(file, &e))?;
    Ok((bytes, meta))
}

/// Fills `buffer` from a position; the file's own is not used, so that threads may share it.
fn read_at(file: &fs::File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, position)
    }
    #[cfg(windows)]
    {
        let (mut rest, mut position) = (buffer, position);
        while !rest.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(file, rest, position) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    (rest, position) = (rest.split_at_mut(count).1, position + count as u64)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A file and its size when it was opened.
#[derive(Debug)]
struct LocalObjectReader {
    path: PathBuf,
    file: fs::File,
    size: u64,
}

impl LocalObjectReader {
    fn open(path: PathBuf) -> Result<Self> {
        // Looked at before it is opened: opening a pipe would wait for its other end.
        let metadata = fs::metadata(&path).map_err(|e| failure(&path, &e))?;
        object_meta("", &path, &metadata)?;
        let file = fs::File::open(&path).map_err(|e| failure(&path, &e))?;
        Ok(Self {
            path,
            file,
            size: metadata.len(),
        })
    }
}

impl ObjectReader for LocalObjectReader {
    fn range(&self, range: Range<u64>) -> Result<Bytes> {
        read_range(&self.file, self.size, &range).map_err(|e| failure(&self.path, &e))
    }
}

impl Store for LocalStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let folder = self.path(dir);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failure(&folder, &error)),
        };
        let mut out = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| failure(&folder, &e))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if name.as_str() <= after {
                continue;
            }
            let path = if dir.is_empty() {
                name
            } else {
                format!("{dir}/{name}")
            };
            match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_file() => out.push(ObjectMeta {
                    path,
                    size: metadata.len(),
                    modified_ms: modified_ms(&metadata),
                }),
                // An entry with the name of a log file that is not a regular file is listed all the
                // same, so that reading it fails by its name; otherwise the log would silently end
                // before it.
                _ if path.contains('.') => out.push(ObjectMeta {
                    path,
                    size: 0,
                    modified_ms: 0,
                }),
                _ => {}
            }
        }
        out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(out)
    }

    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<FolderListing> {
        let folder = self.path(dir);
        let mut out = FolderListing::default();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(out),
            Err(error) => return Err(failure(&folder, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|e| failure(&folder, &e))?;
            // A name that is not valid UTF-8 is not one of the table's: all of these are UTF-8.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if dir.is_empty() {
                name.clone()
            } else {
                format!("{dir}/{name}")
            };
            let kind = entry.file_type().map_err(|e| failure(&folder, &e))?;
            if kind.is_dir() {
                out.folders.push(path);
            } else if kind.is_symlink()
                && fs::metadata(entry.path()).is_ok_and(|target| target.is_dir())
            {
                // Not followed, and never returned: it may lead to files of the table.
            } else if (kind.is_file() || kind.is_symlink()) && take(&name) {
                // Of a link this is the link itself, not what it leads to.
                match entry.metadata() {
                    Ok(metadata) => out.objects.push(ObjectMeta {
                        path,
                        size: metadata.len(),
                        modified_ms: modified_ms(&metadata),
                    }),
                    // Gone since it was listed.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(failure(&entry.path(), &error)),
                }
            }
        }
        Ok(out)
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let file = self.path(path);
        let metadata = fs::metadata(&file).map_err(|e| failure(&file, &e))?;
        object_meta(path, &file, &metadata)
    }

    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        let (file, path) = (self.path(path), path.to_owned());
        PendingResult::lazy(move || read_whole(&file, &path, LONGEST_OBJECT))
    }

    fn get_within(&self, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
        read_whole(&self.path(path), path, limit)
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> PendingResult<Vec<Bytes>> {
        let path = self.path(path);
        PendingResult::lazy(move || {
            let opened = LocalObjectReader::open(path)?;
            ranges
                .into_iter()
                .map(|range| opened.range(range))
                .collect()
        })
    }

    fn open_reader(&self, path: &str) -> Result<Option<Arc<dyn ObjectReader>>> {
        Ok(Some(Arc::new(LocalObjectReader::open(self.path(path))?)))
    }

    fn lock_writer_queue(&self, dir: &str, cancel: &CancellationToken) -> Option<WriterQueueLock> {
        WriterQueueLock::wait(&self.path(dir), cancel)
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, role: ObjectRole) -> Result<PutOutcome> {
        let target = self.path(path);
        let directory = target.parent().unwrap_or(&self.root);
        let name = target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        // Checked first only to save a write and a sync; the link decides.
        if fs::symlink_metadata(&target).is_ok() {
            return Ok(PutOutcome::Exists);
        }
        make_directory(directory).map_err(|e| write_failure(&target, &e))?;
        let staged = directory.join(format!(".{name}.{}.tmp", exec::uuid()));
        let outcome = match self
            .write_staged(&staged, &bytes, role)
            .and_then(|own| self.step(LocalPutStep::Link).map(|()| own))
        {
            Ok(own) => match self.name(&staged, &target, own) {
                NamingResult::Named => Ok(self.put_outcome(directory, role)),
                NamingResult::Taken => Ok(PutOutcome::Exists),
                NamingResult::NoSuchOperation(error)
                    if error.kind() != io::ErrorKind::PermissionDenied && staged.exists() =>
                {
                    Err(Error::unsupported(format!(
                        "the file system of {} has neither hard links nor renames that refuse to replace, so commits are not safe on it; if there is only ever one writer, say so with the option `allow_unsafe_rename`",
                        target.display()
                    )))
                }
                NamingResult::NoSuchOperation(error) | NamingResult::Unconfirmed(error)
                    if is_refusal(&error) =>
                {
                    Ok(PutOutcome::Refused(write_failure(&target, &error)))
                }
                NamingResult::NoSuchOperation(error) | NamingResult::Unconfirmed(error) => {
                    Ok(PutOutcome::Unknown(write_failure(&target, &error)))
                }
            },
            // The name was never requested.
            Err(error) => Err(write_failure(&target, &error)),
        };
        // A hidden file that remains has no effect.
        let _ = self
            .step(LocalPutStep::Unlink)
            .and_then(|()| fs::remove_file(&staged));
        outcome
    }

    fn upload(&self, path: &str, role: ObjectRole) -> Result<Box<dyn ObjectUpload>> {
        Ok(Box::new(LocalUpload::new(
            path,
            self.path(path),
            &self.root,
            role,
        )?))
    }

    #[cfg(unix)]
    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        let mut root = match DeletionRoot::open(&self.root) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(delete_failure(&self.root, &error)),
        };
        let delete = |path: &TablePath| match root.unlink(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Some((
                path.as_str().to_owned(),
                delete_failure(&self.path(path.as_str()), &error),
            )),
            _ => None,
        };
        Ok(paths.iter().filter_map(delete).collect())
    }

    #[cfg(not(unix))]
    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        let remove = |path: &TablePath| {
            if self.owns(path.split().0) {
                fs::remove_file(self.path(path.as_str()))
            } else {
                Err(link())
            }
        };
        let delete = |path: &TablePath| match remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Some((
                path.as_str().to_owned(),
                delete_failure(&self.path(path.as_str()), &error),
            )),
            _ => None,
        };
        Ok(paths.iter().filter_map(delete).collect())
    }

    fn owns(&self, dir: &str) -> bool {
        let is_link = |folder: &Path| {
            fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink())
        };
        let mut folder = self.root.clone();
        dir.is_empty()
            || TablePath::is_inside(dir)
                && dir.split('/').all(|part| {
                    folder.push(part);
                    !is_link(&folder)
                })
    }

    fn remove_folder(&self, dir: &str) -> Result<()> {
        let Some(path) = TablePath::new(dir) else {
            return Ok(());
        };
        let folder = self.path(dir);
        #[cfg(unix)]
        let removed = DeletionRoot::open(&self.root).and_then(|mut root| root.remove_folder(&path));
        #[cfg(not(unix))]
        let removed = if self.owns(path.as_str()) {
            fs::remove_dir(&folder)
        } else {
            Ok(())
        };
        match removed {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                Err(delete_failure(&folder, &error))
            }
            _ => Ok(()),
        }
    }

    fn authority_root(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(
            Self::new(PathBuf::from("/")).allow_unsafe_rename(self.unsafe_rename),
        ))
    }
}
