//! Files on local disks, by plain reads of the calling thread.

use std::fs::{self, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::{ObjectMeta, Pending, Store};
use crate::error::{Error, Missing, Result};
use crate::exec::filled;

/// A directory as a store.
#[derive(Debug)]
pub struct Local {
    root: PathBuf,
    url: String,
}

impl Local {
    /// The directory `root`, which need not exist.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        let mut url = url::Url::from_directory_path(&root).map_or_else(|()| format!("file://{}", root.display()), String::from);
        if !url.ends_with('/') {
            url.push('/');
        }
        Self { root, url }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

fn failure(path: &Path, error: &io::Error) -> Error {
    let shown = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::not_found(Missing::Object, format!("no such file: {shown}")),
        io::ErrorKind::PermissionDenied => Error::storage(format!("permission denied: {shown}"), false),
        io::ErrorKind::UnexpectedEof => Error::corrupt_data(format!("the file is shorter than the log says: {shown}")),
        _ => Error::storage(format!("cannot read {shown}: {error}"), false),
    }
}

fn modified_ms(metadata: &Metadata) -> i64 {
    let Ok(time) = metadata.modified() else { return 0 };
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

fn object_meta(path: &str, file: &Path, metadata: &Metadata) -> Result<ObjectMeta> {
    if !metadata.is_file() {
        return Err(Error::storage(format!("is no regular file: {}", file.display()), false));
    }
    Ok(ObjectMeta { path: path.to_owned(), size: metadata.len(), modified_ms: modified_ms(metadata) })
}

/// Reads `range`, checked against the file's length first: a lying footer must not make us allocate.
fn read_range(file: &fs::File, length: u64, range: &Range<u64>) -> io::Result<Bytes> {
    if range.start > range.end || range.end > length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = usize::try_from(range.end - range.start).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    // By position into a buffer that was in use before: zeroing a new one costs as much as reading from the page cache.
    let mut file = file;
    file.seek(SeekFrom::Start(range.start))?;
    let mut failed = None;
    let bytes = filled(size, |buffer| {
        failed = file.read_exact(buffer).err();
        Ok(())
    });
    match (failed, bytes) {
        (None, Ok(bytes)) => Ok(bytes),
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(io::Error::other(error)),
    }
}

impl Store for Local {
    fn url(&self) -> &str {
        &self.url
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let folder = self.path(dir);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
            Err(error) => return Err(failure(&folder, &error)),
        };
        let mut out = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| failure(&folder, &e))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.as_str() <= after {
                continue;
            }
            let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
            match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_file() => out.push(ObjectMeta { path, size: metadata.len(), modified_ms: modified_ms(&metadata) }),
                // Something under the name of a file that is none is listed all the same, so that reading it fails by its
                // name instead of the log ending silently before it.
                _ if path.contains('.') => out.push(ObjectMeta { path, size: 0, modified_ms: 0 }),
                _ => {}
            }
        }
        out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(out)
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let file = self.path(path);
        let metadata = fs::metadata(&file).map_err(|e| failure(&file, &e))?;
        object_meta(path, &file, &metadata)
    }

    fn get(&self, path: &str) -> Pending<(Bytes, ObjectMeta)> {
        let (file, path) = (self.path(path), path.to_owned());
        Pending::lazy(move || {
            // Looked at before it is opened: opening a pipe would wait for its other end.
            let metadata = fs::metadata(&file).map_err(|e| failure(&file, &e))?;
            let meta = object_meta(&path, &file, &metadata)?;
            let opened = fs::File::open(&file).map_err(|e| failure(&file, &e))?;
            let bytes = read_range(&opened, meta.size, &(0..meta.size)).map_err(|e| failure(&file, &e))?;
            Ok((bytes, meta))
        })
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let file = self.path(path);
        Pending::lazy(move || {
            let metadata = fs::metadata(&file).map_err(|e| failure(&file, &e))?;
            object_meta("", &file, &metadata)?;
            let opened = fs::File::open(&file).map_err(|e| failure(&file, &e))?;
            ranges.iter().map(|range| read_range(&opened, metadata.len(), range)).collect::<io::Result<_>>().map_err(|e| failure(&file, &e))
        })
    }

    fn authority_root(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Self::new(PathBuf::from("/"))))
    }
}
