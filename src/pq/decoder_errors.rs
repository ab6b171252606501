//! Errors of the decoder: panics become errors, and each error names its file.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use parquet::errors::ParquetError;

use crate::error::{Error, Result, ResultExt};
use crate::exec::{panic_error, panic_text};

thread_local! {
    /// Set while a panic will be turned into an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which calls into the decoder; names the file in its errors and turns its panics
/// into errors.
pub(super) fn catch_decoder_panic<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // A panic over a damaged file becomes an error like others and is not also printed to the
    // process's standard error.
    static HOOKED: AtomicBool = AtomicBool::new(false);
    if !HOOKED.load(Ordering::Relaxed) && !HOOKED.swap(true, Ordering::Relaxed) {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    }
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    let undecodable = |panic: &(dyn Any + Send)| match panic_error("the decoder", panic) {
        Error::Internal { .. } => Error::corrupt_data(format!(
            "the Parquet file cannot be decoded: {}",
            panic_text(panic)
        )),
        other => other,
    };
    result
        .unwrap_or_else(|panic| Err(undecodable(&*panic)))
        .at_file(file)
}

/// The error for a decoder's failure: a damaged file, unless the cause is an error of this crate.
pub(super) fn decode_error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => undecodable(&other),
        },
        ParquetError::NYI(what) => Error::unsupported(format!(
            "the Parquet file uses something that is not supported: {what}"
        )),
        other => undecodable(&other),
    }
}

fn undecodable(error: &impl std::fmt::Display) -> Error {
    let text = error.to_string();
    Error::library_without_memory(&text).unwrap_or_else(|| {
        Error::corrupt_data(format!("the Parquet file cannot be decoded: {text}"))
    })
}

/// The same for Arrow errors of the batch reader.
pub(super) fn batch_error(error: arrow_schema::ArrowError) -> Error {
    match error {
        arrow_schema::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => match other.downcast::<ParquetError>() {
                Ok(parquet) => decode_error(*parquet),
                Err(other) => undecodable(&other),
            },
        },
        arrow_schema::ArrowError::ParquetError(what) => undecodable(&what),
        other => undecodable(&other),
    }
}
