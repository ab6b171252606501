//! Deletion vectors: [`DeletionVectorDescriptor`] -> [`DeletionVector`], the set of a file's
//! deleted rows.
//!
//! A vector is stored in the log itself or in a file, which may hold several. Its bytes are read by
//! range, neighbours in one file by one request, and verified: format version, size, CRC-32, magic
//! number and the cardinality in the log.
//!
//! Protocol: "Deletion Vectors", "Deletion Vector Format". Cost: one pass over the bytes.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub(crate) mod bitmap;
mod format;
pub mod z85;

pub use bitmap::RoaringBitmapArray;
pub use format::{DeletionVectorExtent, DeletionVectorFile, DeletionVectorFileWriter, DvPath};

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use rustc_hash::FxHashMap;

/// The descriptor of a deletion vector in the log.
pub use crate::protocol::commit_line::DeletionVectorDescriptor;

use crate::error::{Error, Result};
use crate::store::StoreObject;

impl DeletionVectorDescriptor {
    /// The file that contains it; `None` for an inline vector.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a descriptor without a valid file, [`Error::Unsupported`] for an
    /// unknown storage type.
    pub fn path(&self) -> Result<Option<DvPath>> {
        format::path(self)
    }
}

/// The deleted rows of one file, by position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeletionVector {
    positions: RoaringBitmapArray,
}

impl From<RoaringBitmapArray> for DeletionVector {
    fn from(positions: RoaringBitmapArray) -> Self {
        Self { positions }
    }
}

impl DeletionVector {
    /// The deleted rows.
    #[must_use]
    pub fn positions(&self) -> &RoaringBitmapArray {
        &self.positions
    }

    /// Number of deleted rows.
    #[must_use]
    pub fn cardinality(&self) -> u64 {
        self.positions.len()
    }

    /// Number of deleted rows among these rows.
    #[must_use]
    pub fn count(&self, rows: Range<u64>) -> u64 {
        self.positions.count(rows)
    }

    /// One bit for each of these rows, set if the row is kept; `None` if all are kept.
    #[must_use]
    pub fn live_row_mask(&self, rows: Range<u64>) -> Option<BooleanBuffer> {
        self.positions.live_row_mask(rows)
    }

    /// Decodes a vector's bytes and verifies them against the log.
    fn decode(bytes: &[u8], descriptor: &DeletionVectorDescriptor) -> Result<Self> {
        let positions = RoaringBitmapArray::deserialize(bytes)?;
        if i64::try_from(positions.len()) != Ok(descriptor.cardinality) {
            return Err(Error::corrupt_data(format!(
                "it deletes {} rows and the log says {}",
                positions.len(),
                descriptor.cardinality
            )));
        }
        Ok(Self { positions })
    }
}

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

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use crate::error::{Error, NotFoundKind, Result};
    use crate::store::{ObjectMeta, PendingResult, Store, StoreObject};

    /// A store of one file.
    #[derive(Debug)]
    pub(crate) struct Memory {
        pub url: &'static str,
        pub bytes: Bytes,
    }

    impl Memory {
        fn range(bytes: &Bytes, range: &std::ops::Range<u64>) -> Result<Bytes> {
            if range.start > range.end || range.end > bytes.len() as u64 {
                return Err(Error::corrupt_data("out of range"));
            }
            Ok(bytes.slice(range.start as usize..range.end as usize))
        }
    }

    impl Store for Memory {
        fn url(&self) -> &str {
            self.url
        }

        fn list_from(&self, _: &str, _: &str) -> Result<Vec<ObjectMeta>> {
            Ok(Vec::new())
        }

        fn head(&self, path: &str) -> Result<ObjectMeta> {
            Ok(ObjectMeta {
                path: path.to_owned(),
                size: self.bytes.len() as u64,
                modified_ms: 0,
            })
        }

        fn get(&self, _: &str) -> PendingResult<(Bytes, ObjectMeta)> {
            PendingResult::lazy(|| Err(Error::not_found(NotFoundKind::Object, "no")))
        }

        fn get_ranges(
            &self,
            _: &str,
            ranges: Vec<std::ops::Range<u64>>,
        ) -> PendingResult<Vec<Bytes>> {
            let bytes = self.bytes.clone();
            PendingResult::lazy(move || {
                ranges
                    .iter()
                    .map(|range| Self::range(&bytes, range))
                    .collect()
            })
        }
    }

    /// A file with these bytes in a store that is treated as remote.
    pub(crate) fn file_of(bytes: &[u8]) -> StoreObject {
        file_in("memory:///", bytes)
    }

    /// A file of these bytes in a store at `url`.
    pub(crate) fn file_in(url: &'static str, bytes: &[u8]) -> StoreObject {
        StoreObject {
            store: Arc::new(Memory {
                url,
                bytes: Bytes::copy_from_slice(bytes),
            }),
            path: "f.parquet".to_owned(),
            size: Some(bytes.len() as u64),
        }
    }
}
