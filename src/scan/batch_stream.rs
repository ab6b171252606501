//! The batches of a scan.

use crate::error::Result;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// A stream of batches of one schema.
pub struct BatchStream {
    /// Schema of every batch.
    pub schema: SchemaRef,
    /// The batches.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    /// Number of files done and in total.
    pub progress: crate::exec::ProgressCounter,
}

impl std::fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}
