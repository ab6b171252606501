//! Reads that start over without a damaged checkpoint, and the warnings about it.

use crate::error::{Error, ExhaustedResource, NotFoundKind, Result};
use crate::log::{DeltaLog, LogListing, LogSegment};
use crate::protocol::log_path;

pub(super) fn checksum_warning(version: i64, fields: &[&str]) -> String {
    let named = fields
        .iter()
        .map(|field| format!("`{field}`"))
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "the version checksum {} contradicts the log in {named} and is ignored; it can be deleted",
        log_path::checksum(version)
    )
}

pub(super) fn fallback_warning(damage: &Error) -> String {
    format!("{damage}; the table was read without this file")
}

/// The result of [`with_fallback`].
pub(super) struct FallbackResult<T> {
    pub(super) value: T,
    /// The segment that could be read.
    pub(super) segment: LogSegment,
    /// The error of the first segment.
    pub(super) damage: Option<Error>,
}

/// Runs `work` on `segment`, then on fallback segments as long as it fails because of damage.
pub(super) fn with_fallback<T>(
    log: &DeltaLog,
    listing: Option<&LogListing>,
    segment: LogSegment,
    work: impl Fn(&LogSegment) -> Result<T>,
) -> Result<FallbackResult<T>> {
    let first = match work(&segment) {
        Ok(done) => {
            return Ok(FallbackResult {
                value: done,
                segment,
                damage: None,
            });
        }
        Err(error) => error,
    };
    let hints = segment.checkpoint.is_some() || segment.replay.len() != segment.commits.len();
    if !is_damage(&first) || !hints {
        return Err(as_log_damage(first));
    }
    let full;
    let listing = match listing {
        Some(listing) if listing.from == 0 => listing,
        _ => {
            full = log.list(0)?;
            &full
        }
    };
    let paths = |segment: &LogSegment| -> Vec<String> {
        let of_checkpoint = segment
            .checkpoint
            .iter()
            .flat_map(|checkpoint| &checkpoint.files);
        of_checkpoint
            .chain(segment.replay.iter().map(|commit| &commit.file))
            .map(|file| file.path.clone())
            .collect()
    };
    let tried = paths(&segment);
    let mut skip = segment.skip;
    loop {
        // First without compactions, then with one checkpoint less.
        if skip.compactions {
            skip.checkpoints += 1;
        } else {
            skip.compactions = true;
        }
        let Ok(mut weaker) = listing.segment(Some(segment.version), skip) else {
            if skip.checkpoints > listing.checkpoints.len() {
                return Err(as_log_damage(first));
            }
            continue;
        };
        // The same files would give the same error.
        if paths(&weaker) == tried {
            continue;
        }
        let of = |segment: &LogSegment| {
            segment
                .checkpoint
                .as_ref()
                .map(|checkpoint| checkpoint.version)
        };
        if of(&weaker) == of(&segment) {
            weaker.counts = segment.counts;
        }
        match work(&weaker) {
            Ok(done) => {
                return Ok(FallbackResult {
                    value: done,
                    segment: weaker,
                    damage: Some(as_log_damage(first)),
                });
            }
            Err(error) if is_damage(&error) && weaker.checkpoint.is_some() => {}
            Err(_) => return Err(as_log_damage(first)),
        }
    }
}

/// Whether an error may be caused by a file that can be left out: one that is damaged or missing, or
/// that expands beyond the memory limit.
pub(super) fn is_damage(error: &Error) -> bool {
    error.is_corrupt()
        || matches!(
            error,
            Error::NotFound {
                kind: NotFoundKind::Object,
                ..
            } | Error::Storage {
                retryable: false,
                ..
            } | Error::Resource {
                resource: ExhaustedResource::Memory,
                ..
            }
        )
}

/// A file of the log that is listed or referenced but missing is damage of the log.
pub(super) fn as_log_damage(error: Error) -> Error {
    match error {
        Error::NotFound {
            kind: NotFoundKind::Object,
            what,
            context: place,
        } => Error::Corrupt {
            kind: crate::error::CorruptionKind::Log,
            what,
            context: place,
        },
        other => other,
    }
}
