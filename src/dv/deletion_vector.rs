//! The rows of a file that a deletion vector marks as deleted.

use super::bitmap::RoaringBitmapArray;
use super::format;
use super::format::DvPath;
use crate::error::{Error, Result};
/// The descriptor of a deletion vector in the log.
use crate::protocol::commit_line::DeletionVectorDescriptor;
use arrow_buffer::BooleanBuffer;
use std::ops::Range;

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
    pub(super) fn decode(bytes: &[u8], descriptor: &DeletionVectorDescriptor) -> Result<Self> {
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
