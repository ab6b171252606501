//! Loading of deletion vectors, inline or from files.

use super::deletion_vector::DeletionVector;
use super::format;
use super::format::DvPath;
use crate::error::{Error, Result};
/// The descriptor of a deletion vector in the log.
use crate::protocol::commit_line::DeletionVectorDescriptor;
use crate::store::StoreObject;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Adds to an error that it concerns a deletion vector.
fn with_vector_context(error: Error) -> Error {
    match error {
        Error::Corrupt {
            kind: crate::error::CorruptionKind::Data,
            what,
            context: place,
        } => Error::Corrupt {
            kind: crate::error::CorruptionKind::Data,
            what: format!("damaged deletion vector: {what}"),
            context: place,
        },
        other => other,
    }
}

/// Loads one deletion vector. `resolve` turns its path into a file.
///
/// # Errors
/// [`Error::Corrupt`] names the file and the damage; errors of `resolve` and the store.
pub fn load(
    descriptor: &DeletionVectorDescriptor,
    resolve: impl Fn(&DvPath) -> Result<StoreObject>,
) -> Result<Arc<DeletionVector>> {
    match load_all(std::slice::from_ref(descriptor), resolve)?.pop() {
        Some(vector) => Ok(vector),
        None => Err(Error::internal("no deletion vector was loaded")),
    }
}

/// Loads several deletion vectors, those of one file together.
///
/// # Errors
/// As [`load`], for the first that fails.
pub fn load_all(
    descriptors: &[DeletionVectorDescriptor],
    resolve: impl Fn(&DvPath) -> Result<StoreObject>,
) -> Result<Vec<Arc<DeletionVector>>> {
    let mut out: Vec<Option<Arc<DeletionVector>>> = vec![None; descriptors.len()];
    let mut by_file: FxHashMap<DvPath, Vec<(usize, &DeletionVectorDescriptor)>> =
        FxHashMap::default();
    for (n, (descriptor, out)) in descriptors.iter().zip(&mut out).enumerate() {
        match format::path(descriptor).map_err(with_vector_context)? {
            Some(path) => by_file.entry(path).or_default().push((n, descriptor)),
            None => {
                *out = Some(Arc::new(
                    format::inline(descriptor)
                        .and_then(|bytes| DeletionVector::decode(&bytes, descriptor))
                        .map_err(with_vector_context)?,
                ));
            }
        }
    }
    // All reads are started before the first one is waited for.
    let fetches = by_file
        .iter()
        .map(|(path, wanted)| {
            let file = resolve(path)?;
            let descriptors: Vec<&DeletionVectorDescriptor> =
                wanted.iter().map(|(_, descriptor)| *descriptor).collect();
            let fetch = format::fetch(&file, &descriptors)
                .map_err(|e| with_vector_context(e).at_file(&file.path))?;
            Ok((wanted, file, fetch))
        })
        .collect::<Result<Vec<_>>>()?;
    for (wanted, file, fetch) in fetches {
        let vectors = fetch
            .wait()
            .map_err(|e| with_vector_context(e).at_file(&file.path))?;
        for ((n, descriptor), bytes) in wanted.iter().zip(vectors) {
            let vector = DeletionVector::decode(&bytes, descriptor)
                .map_err(|e| with_vector_context(e).at_file(&file.path))?;
            if let Some(out) = out.get_mut(*n) {
                *out = Some(Arc::new(vector));
            }
        }
    }
    out.into_iter()
        .map(|vector| vector.ok_or_else(|| Error::internal("a deletion vector was not loaded")))
        .collect()
}
