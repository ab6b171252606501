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
mod deletion_vector;
mod format;
mod load;
#[cfg(test)]
pub(crate) mod tests;
pub mod z85;

pub use crate::protocol::commit_line::DeletionVectorDescriptor;
pub use bitmap::RoaringBitmapArray;
pub use deletion_vector::DeletionVector;
pub use format::{DeletionVectorExtent, DeletionVectorFile, DeletionVectorFileWriter, DvPath};
pub use load::{load, load_all};
