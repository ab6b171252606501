//! Puts that are tried again, and folders with unique names.

use super::store_object::{ObjectRole, PutOutcome, Store};
use crate::error::{Error, Result};
use crate::exec::{RuntimeEnv, SystemEnv};
use bytes::Bytes;
use std::time::Duration;

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
