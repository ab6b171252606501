//! Spilling batches to disk, in one temporary file that is created on first use.
//!
//! If the system supports it, the file is unlinked immediately, so that it is deleted when the
//! process ends in any way; otherwise it is deleted with its owner.
//!
//! Cost: one copy to disk for each batch, and one back for each read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_select::concat::concat_batches;

use crate::error::{Error, Result};
use crate::exec::uuid;

/// The location of a batch in the file.
#[derive(Debug, Clone, Copy)]
pub struct SpillOffset {
    start: u64,
    length: u64,
}

/// The temporary file. Reads and writes are serialized by a lock.
#[derive(Debug, Default)]
pub struct SpillFile(Mutex<SpillState>);

#[derive(Debug, Default)]
struct SpillState {
    file: Option<TempFile>,
    end: u64,
}

#[derive(Debug)]
struct TempFile {
    /// `None` after it was closed.
    file: Option<File>,
    /// Its path, if it could not be unlinked.
    path: Option<PathBuf>,
}

impl TempFile {
    fn new(path: &Path) -> std::io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Self {
            file: Some(file),
            path: std::fs::remove_file(path).err().map(|_| path.to_owned()),
        })
    }

    /// Calls a function at a position of the file.
    fn with_seek<T>(
        &mut self,
        start: u64,
        work: impl FnOnce(&mut File) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        let file = self
            .file
            .as_mut()
            .ok_or_else(|| std::io::Error::other("it is closed"))?;
        file.seek(SeekFrom::Start(start))?;
        work(file)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Closed before it is deleted, as some systems require.
        drop(self.file.take());
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl SpillFile {
    fn state(&self) -> MutexGuard<'_, SpillState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of bytes that were written.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.state().end
    }

    /// Writes batches with the same schema as one batch; returns its location.
    ///
    /// # Errors
    /// [`Error::Storage`] if the disk is full.
    pub fn write(&self, batches: &[RecordBatch]) -> Result<SpillOffset> {
        let whole;
        let batch = match batches {
            [] => return Err(Error::internal("no rows are to be put on disk")),
            [only] => only,
            [first, ..] => {
                whole = concat_batches(first.schema_ref(), batches)?;
                &whole
            }
        };
        let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref())?;
        writer.write(batch)?;
        let bytes = writer.into_inner()?;
        let mut state = self.state();
        let start = state.end;
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(
                TempFile::new(&std::env::temp_dir().join(format!("deltafast-{}", uuid())))
                    .map_err(|e| failed("put into", &e))?,
            ),
        };
        file.with_seek(start, |file| file.write_all(&bytes))
            .map_err(|e| failed("put into", &e))?;
        let place = SpillOffset {
            start,
            length: bytes.len() as u64,
        };
        state.end += place.length;
        Ok(place)
    }

    /// Reads the batch at this location.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn read(&self, place: SpillOffset) -> Result<RecordBatch> {
        let lost = || Error::internal("rows were looked for on disk where none are");
        let mut bytes = vec![0; usize::try_from(place.length).map_err(|_| lost())?];
        let mut state = self.state();
        let file = state.file.as_mut().ok_or_else(lost)?;
        file.with_seek(place.start, |file| file.read_exact(&mut bytes))
            .map_err(|e| failed("read from", &e))?;
        drop(state);
        Ok(StreamReader::try_new(bytes.as_slice(), None)?
            .next()
            .ok_or_else(lost)??)
    }
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    let folder = std::env::temp_dir();
    if let Some(exhausted) = Error::exhausted("a temporary file", error) {
        return exhausted;
    }
    Error::storage(
        format!(
            "rows that do not fit into memory cannot be {what} {}: {error}; give room there, or another folder in TMPDIR",
            folder.display()
        ),
        false,
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    fn batch(from: i64) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 10));
        let texts: ArrayRef = Arc::new(
            (from..from + 10)
                .map(|n| (n % 3 != 0).then(|| format!("t{n}")))
                .collect::<StringArray>(),
        );
        RecordBatch::try_from_iter_with_nullable(vec![("id", ids, true), ("s", texts, true)])
            .unwrap()
    }

    #[test]
    fn batches_come_back_in_any_order() {
        let spill = SpillFile::default();
        assert_eq!(spill.size(), 0);
        let first = spill.write(&[batch(0)]).unwrap();
        let both = spill.write(&[batch(10), batch(20)]).unwrap();
        assert_eq!(
            spill.read(both).unwrap(),
            concat_batches(&batch(0).schema(), &[batch(10), batch(20)]).unwrap()
        );
        assert_eq!(spill.read(first).unwrap(), batch(0));
        assert_eq!(spill.size(), both.start + both.length);
        assert!(matches!(spill.write(&[]), Err(Error::Internal { .. })));
        assert!(SpillFile::default().read(first).is_err());
    }

    #[test]
    fn the_file_is_gone_with_its_owner_at_the_latest() {
        let name = |of: &str| std::env::temp_dir().join(format!("deltafast-spill-{}-{of}", uuid()));
        let (path, other) = (name("f"), name("g"));
        let mut file = TempFile::new(&path).unwrap();
        assert_eq!(path.exists(), file.path.is_some());
        assert!(cfg!(not(unix)) || !path.exists());
        file.with_seek(0, |file| file.write_all(b"abc")).unwrap();
        file.path = Some(other.clone());
        std::fs::write(&other, "").unwrap();
        drop(file);
        assert!(!other.exists());
    }
}
