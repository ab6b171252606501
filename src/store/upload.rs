//! New objects, written as a stream: the object exists under its name after success, and nothing
//! exists under it otherwise.
//!
//! Essential local files are written next to their destination under another name, synced, linked
//! to their own name (which fails if a file exists there), and the directories that changed are
//! synced: after [`ObjectUpload::finish`] the file survives a power failure. Derived files are only
//! renamed. In other stores a small object is put in one request, a larger one in parts, some of
//! them in parallel.
//!
//! The temporary name of an essential file does not begin with a dot or an underscore, so that
//! vacuum finds the file if the process is killed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::task::{JoinHandle, JoinSet};

use super::local_file::{FileIdentity, has_no_links, object_meta, sync_directory, write_failure};
use super::remote_error::failed;
use super::{ObjectMeta, ObjectRole, PendingResult};
use crate::error::{Error, Result};
use crate::exec::{self, RuntimeEnv, SystemEnv};

/// A new object that is being uploaded. Dropping it unfinished leaves nothing behind, as far as
/// possible.
pub trait ObjectUpload: Send {
    /// Appends bytes; waits when too many are in flight.
    ///
    /// # Errors
    /// [`Error::Storage`], perhaps for bytes written earlier.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the object durable and visible. The work is in progress when this returns.
    fn finish(self: Box<Self>) -> PendingResult<ObjectMeta>;
}

/// Bytes of a local file after which the operating system is asked to begin writing them to the
/// disk, so that little is left for the sync at the end.
const SYNC_AHEAD: u64 = 32 << 20;

/// A new local file.
pub(super) struct LocalUpload {
    path: String,
    target: PathBuf,
    role: ObjectRole,
    /// Present until the file has its name.
    staged: Option<PathBuf>,
    /// Directories to sync: the file's, and those above it that were made for it.
    changed: Vec<PathBuf>,
    file: fs::File,
    unsynced: u64,
    syncing: Option<JoinHandle<()>>,
}

impl LocalUpload {
    pub(super) fn new(path: &str, target: PathBuf, root: &Path, role: ObjectRole) -> Result<Self> {
        let parent = target.parent().unwrap_or(root).to_owned();
        let mut changed = Vec::new();
        if role == ObjectRole::Essential {
            changed.push(parent.clone());
            for above in parent.ancestors().take_while(|above| !above.exists()) {
                changed.extend(above.parent().map(Path::to_owned));
            }
        }
        fs::create_dir_all(&parent).map_err(|e| write_failure(&parent, &e))?;
        let name = target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let dot = if role == ObjectRole::Essential {
            ""
        } else {
            "."
        };
        let staged = parent.join(format!("{dot}{name}.{:016x}.tmp", exec::random()));
        let file = fs::File::options()
            .write(true)
            .create_new(true)
            .open(&staged)
            .map_err(|e| write_failure(&staged, &e))?;
        Ok(Self {
            path: path.to_owned(),
            target,
            role,
            staged: Some(staged),
            changed,
            file,
            unsynced: 0,
            syncing: None,
        })
    }

    fn publish(&mut self) -> Result<ObjectMeta> {
        let Some(staged) = self.staged.clone() else {
            return Err(Error::internal("a file was finished twice"));
        };
        if self.role == ObjectRole::Essential {
            self.file
                .sync_all()
                .map_err(|e| write_failure(&staged, &e))?;
        }
        let meta = self
            .file
            .metadata()
            .map_err(|e| write_failure(&staged, &e))?;
        self.name(&staged)?;
        self.staged = None;
        for directory in &self.changed {
            sync_directory(directory).map_err(|e| write_failure(directory, &e))?;
        }
        // A file system's time may be some milliseconds behind the clock: before the write began.
        Ok(ObjectMeta {
            modified_ms: SystemEnv.now_ms(),
            ..object_meta(&self.path, &self.target, &meta)?
        })
    }

    /// Whether the file with the name is certainly the one that was written.
    fn has_name(&self) -> bool {
        self.file
            .metadata()
            .ok()
            .and_then(|metadata| FileIdentity::of(&metadata))
            .is_some_and(|own| own.is_at(&self.target))
    }

    /// Gives the file its name.
    fn name(&self, staged: &Path) -> Result<()> {
        let failed = |error: io::Error| write_failure(&self.target, &error);
        if self.role == ObjectRole::Derived {
            return fs::rename(staged, &self.target).map_err(failed);
        }
        let linked = fs::hard_link(staged, &self.target);
        // A network file system may have done it and still answer with an error.
        if linked.is_ok() || self.has_name() {
            // The file has its name; a hidden file that cannot be removed does no harm.
            let _ = fs::remove_file(staged);
            return Ok(());
        }
        match linked {
            // A file system without links. Names are unique, so no other writer can interfere.
            Err(error) if has_no_links(&error) && !self.target.exists() => {
                fs::rename(staged, &self.target).map_err(failed)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::storage(
                format!(
                    "there is a file already, which is never replaced: {}",
                    self.target.display()
                ),
                false,
            )),
            Err(error) => Err(failed(error)),
            Ok(()) => Ok(()),
        }
    }
}

impl ObjectUpload for LocalUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|e| write_failure(&self.target, &e))?;
        self.unsynced += bytes.len() as u64;
        if self.role == ObjectRole::Essential
            && self.unsynced >= SYNC_AHEAD
            && self.syncing.as_ref().is_none_or(JoinHandle::is_finished)
        {
            self.unsynced = 0;
            let file = self
                .file
                .try_clone()
                .map_err(|e| write_failure(&self.target, &e))?;
            // An error is reported at the end.
            self.syncing = Some(exec::runtime()?.spawn_blocking(move || drop(file.sync_data())));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> PendingResult<ObjectMeta> {
        match exec::runtime() {
            // Only a sync needs another thread.
            Ok(runtime) if self.role == ObjectRole::Essential => {
                PendingResult::task(runtime.spawn_blocking(move || self.publish()))
            }
            _ => PendingResult::lazy(move || self.publish()),
        }
    }
}

impl Drop for LocalUpload {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take() {
            // A file that cannot be removed is not part of any table.
            let _ = fs::remove_file(staged);
        }
    }
}

/// Bytes of a part. Some services require all parts except the last to be equally large.
const PART: usize = 8 << 20;
/// Parts in flight at once.
const PARTS_AT_ONCE: usize = 4;

/// A new object of a remote store.
pub(super) struct RemoteUpload {
    path: String,
    url: String,
    store: Arc<dyn ObjectStore>,
    location: object_store::path::Path,
    size: u64,
    buffer: Vec<u8>,
    parts: Option<MultipartParts>,
}

struct MultipartParts {
    upload: Box<dyn MultipartUpload>,
    sending: JoinSet<object_store::Result<()>>,
}

impl RemoteUpload {
    pub(super) fn new(
        path: &str,
        url: String,
        store: Arc<dyn ObjectStore>,
        location: object_store::path::Path,
    ) -> Self {
        Self {
            path: path.to_owned(),
            url,
            store,
            location,
            size: 0,
            buffer: Vec::new(),
            parts: None,
        }
    }

    /// Sends the buffer as a part.
    fn send(&mut self) -> Result<()> {
        let runtime = exec::runtime()?;
        let url = &self.url;
        if self.parts.is_none() {
            let (store, location) = (Arc::clone(&self.store), self.location.clone());
            let upload = PendingResult::task(runtime.spawn(async move {
                store
                    .put_multipart(&location)
                    .await
                    .map_err(|e| failed("write", location.as_ref(), &e))
            }));
            self.parts = Some(MultipartParts {
                upload: upload.wait()?,
                sending: JoinSet::new(),
            });
        }
        let Some(parts) = self.parts.as_mut() else {
            return Ok(());
        };
        while parts.sending.len() >= PARTS_AT_ONCE {
            if let Some(sent) = futures::executor::block_on(parts.sending.join_next()) {
                part_result(sent, url)?;
            }
        }
        let part = parts
            .upload
            .put_part(PutPayload::from(Bytes::from(std::mem::replace(
                &mut self.buffer,
                Vec::with_capacity(PART),
            ))));
        parts.sending.spawn_on(part, runtime.handle());
        Ok(())
    }
}

fn part_result(
    sent: std::result::Result<object_store::Result<()>, tokio::task::JoinError>,
    url: &str,
) -> Result<()> {
    sent.map_err(|e| Error::internal(format!("an I/O task ended early: {e}")))?
        .map_err(|e| failed("write", url, &e))
}

impl ObjectUpload for RemoteUpload {
    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.size += bytes.len() as u64;
        while !bytes.is_empty() {
            // A full buffer is sent when more bytes follow: the last part is never empty.
            if self.buffer.len() >= PART {
                self.send()?;
            }
            let (head, tail) = bytes.split_at(bytes.len().min(PART - self.buffer.len()));
            self.buffer.extend_from_slice(head);
            bytes = tail;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> PendingResult<ObjectMeta> {
        let begun = if self.parts.is_some() {
            self.send()
        } else {
            Ok(())
        };
        let runtime = match begun.and_then(|()| exec::runtime()) {
            Ok(runtime) => runtime,
            Err(error) => return PendingResult::lazy(move || Err(error)),
        };
        PendingResult::task(runtime.spawn(async move {
            let fault = |e: &object_store::Error| failed("write", &self.url, e);
            match self.parts.as_mut() {
                None => {
                    let payload = PutPayload::from(Bytes::from(std::mem::take(&mut self.buffer)));
                    self.store
                        .put(&self.location, payload)
                        .await
                        .map_err(|e| fault(&e))?;
                }
                Some(parts) => {
                    while let Some(sent) = parts.sending.join_next().await {
                        part_result(sent, &self.url)?;
                    }
                    parts.upload.complete().await.map_err(|e| fault(&e))?;
                }
            }
            self.parts = None;
            // The service's own clock would cost another request.
            Ok(ObjectMeta {
                path: self.path.clone(),
                size: self.size,
                modified_ms: SystemEnv.now_ms(),
            })
        }))
    }
}

impl Drop for RemoteUpload {
    fn drop(&mut self) {
        if let Some(MultipartParts {
            mut upload,
            mut sending,
        }) = self.parts.take()
            && let Ok(runtime) = exec::runtime()
        {
            runtime.spawn(async move {
                sending.shutdown().await;
                // Services also delete unfinished uploads by themselves, if they are configured to.
                let _ = upload.abort().await;
            });
        }
    }
}
