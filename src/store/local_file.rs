//! Files of the local disk: identity, metadata, directory entries on stable storage, errors.

use super::ObjectMeta;
use crate::error::{Error, NotFoundKind, Result};
use std::fs::{self, Metadata};
use std::io::{self};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Device and inode of a file: the same for all names of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// The identity of a file; `None` where the system has none.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(Self {
                device: metadata.dev(),
                number: metadata.ino(),
            })
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            None
        }
    }

    /// Whether the file of this name is certainly this one.
    pub(super) fn is_at(self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|metadata| Self::of(&metadata) == Some(self))
    }
}

/// Whether an error means that the file system does not support the operation.
pub(super) fn has_no_links(error: &io::Error) -> bool {
    // Linux returns EPERM for hard links on file systems without them.
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TooManyLinks
            | io::ErrorKind::InvalidInput
    )
}

/// Makes the entries of a directory survive a loss of power.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    // Elsewhere directories cannot be opened, and their changes are journalled.
    if cfg!(unix) {
        fs::File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}

/// An error of writing that certainly had no effect.
pub(super) fn write_failure(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    if let Some(exhausted) = Error::exhausted(&shown.to_string(), error) {
        return exhausted;
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::storage(format!("no permission to write {shown}"), false)
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::storage(format!("no space left on the disk for {shown}"), false)
        }
        _ => Error::storage(format!("cannot write {shown}: {error}"), false),
    }
}

/// The error of a deletion whose path leads through a link.
pub(super) fn link() -> io::Error {
    io::Error::other("a folder on its way is a link, which is not followed")
}

pub(super) fn failure(path: &Path, error: &io::Error) -> Error {
    let shown = path.display().to_string();
    if let Some(exhausted) = inner_error(error).or_else(|| Error::exhausted(&shown, error)) {
        return exhausted;
    }
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::not_found(NotFoundKind::Object, format!("no such file: {shown}"))
        }
        io::ErrorKind::PermissionDenied => {
            Error::storage(format!("permission denied: {shown}"), false)
        }
        io::ErrorKind::UnexpectedEof => {
            Error::corrupt_data(format!("the file is shorter than the log says: {shown}"))
        }
        _ => Error::storage(format!("cannot read {shown}: {error}"), false),
    }
}

/// The [`Error`] inside of an I/O error.
pub(super) fn inner_error(error: &io::Error) -> Option<Error> {
    error.get_ref()?.downcast_ref::<Error>().cloned()
}

pub(super) fn modified_ms(metadata: &Metadata) -> i64 {
    let Ok(time) = metadata.modified() else {
        return 0;
    };
    match time.duration_since(UNIX_EPOCH) {
        // 0 would mean that the time is not known.
        Ok(since) => i64::try_from(since.as_millis()).map_or(i64::MAX, |ms| ms.max(1)),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

pub(super) fn object_meta(path: &str, file: &Path, metadata: &Metadata) -> Result<ObjectMeta> {
    if !metadata.is_file() {
        return Err(Error::storage(
            format!("is not a regular file: {}", file.display()),
            false,
        ));
    }
    Ok(ObjectMeta {
        path: path.to_owned(),
        size: metadata.len(),
        modified_ms: modified_ms(metadata),
    })
}
