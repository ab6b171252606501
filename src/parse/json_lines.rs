//! JSON files of the log, read whole: [`StoreObject`] -> bytes.
//!
//! A long file is read in pieces, and reading ends at the first piece with a byte that JSON never
//! contains: a file of zeros, which a crash or a sparse copy leaves behind, costs one piece however
//! long it is. A file shorter than its listed size is an error, because the cut may be at the end
//! of a line.
//!
//! Cost: one request for a file of usual length.

use bytes::Bytes;

use crate::error::{CorruptionKind, Error, Result, ResultExt};
use crate::store::{LONGEST_OBJECT, PendingResult, StoreObject};

/// The longest file that is read whole: views of strings have 32 bits for an offset.
pub const LONGEST: u64 = LONGEST_OBJECT;
/// Longer files are read in pieces of this size.
pub const PIECE: u64 = 64 << 20;

/// Starts to read a file.
#[must_use]
pub fn start_read(file: &StoreObject) -> PendingResult<Bytes> {
    let file = file.clone();
    match file.size {
        Some(size) if size > LONGEST => {
            PendingResult::lazy(move || Err(oversize_error(&file, size)))
        }
        Some(size) if size > PIECE => PendingResult::lazy(move || read_in_chunks(&file, size)),
        _ => file
            .store
            .get(&file.path)
            .map(move |(bytes, _)| check_length(&file, bytes)),
    }
}

/// Reads a file.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::NotFound`], [`Error::Storage`] name it.
pub fn read(file: &StoreObject) -> Result<Bytes> {
    start_read(file).wait()
}

/// Reads a range of a file.
///
/// # Errors
/// As [`read`].
pub fn read_range(file: &StoreObject, start: u64, end: u64) -> Result<Bytes> {
    let ranges = file
        .store
        .get_ranges(&file.path, std::iter::once(start..end).collect())
        .wait();
    let bytes = ranges
        .map_err(as_log_error)
        .at_file(&file.path)?
        .into_iter()
        .next()
        .unwrap_or_default();
    if bytes.len() as u64 == end - start {
        Ok(bytes)
    } else {
        Err(truncated_error(file, start + bytes.len() as u64))
    }
}

/// Refuses bytes that are not allowed in JSON text.
///
/// # Errors
/// [`Error::Corrupt`].
pub fn check_is_text(bytes: &[u8]) -> Result<()> {
    match memchr::memchr(0, bytes) {
        Some(_) => Err(Error::corrupt(
            "not a JSON action: the file holds zero bytes, as a crash of its file system leaves them",
        )),
        None => Ok(()),
    }
}

fn read_in_chunks(file: &StoreObject, size: u64) -> Result<Bytes> {
    let mut out: Vec<u8> = Vec::new();
    let mut start = 0;
    while start < size {
        let end = (start + PIECE).min(size);
        let bytes = read_range(file, start, end)?;
        check_is_text(&bytes).at_file(&file.path)?;
        if out.try_reserve(bytes.len()).is_err() {
            return Err(Error::storage(
                format!("there is no memory for the {size} bytes of the file"),
                false,
            )
            .at_file(&file.path));
        }
        out.extend_from_slice(&bytes);
        start = end;
    }
    Ok(out.into())
}

fn check_length(file: &StoreObject, bytes: Bytes) -> Result<Bytes> {
    match file.size {
        Some(size) if (bytes.len() as u64) < size => Err(truncated_error(file, bytes.len() as u64)),
        _ => Ok(bytes),
    }
}

fn truncated_error(file: &StoreObject, found: u64) -> Error {
    let size = file.size.unwrap_or(0);
    Error::corrupt(format!("the file has {found} bytes where the listing of the log says {size}; it was read or written in part")).at_file(&file.path)
}

fn oversize_error(file: &StoreObject, size: u64) -> Error {
    Error::corrupt(format!(
        "the file is {size} bytes long, more than the {LONGEST} that are read at once"
    ))
    .at_file(&file.path)
}

/// Damage to a file of the log is damage to the log.
fn as_log_error(error: Error) -> Error {
    match error {
        Error::Corrupt {
            what,
            context: place,
            ..
        } => Error::Corrupt {
            kind: CorruptionKind::Log,
            what,
            context: place,
        },
        other => other,
    }
}
