//! Work on batches in the thread pool, in the order of the batches.

use crate::error::Result;
use crate::exec::{CancellationToken, ItemSource, ordered_prefetch, parallelism};
use arrow_array::RecordBatch;
use std::sync::Arc;

/// Applies a function to each batch on the pool and keeps their order.
pub(super) fn map_on_pool(
    batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
    work: impl Fn(RecordBatch) -> Result<RecordBatch> + Send + Sync + 'static,
    cancel: &CancellationToken,
) -> impl Iterator<Item = Result<RecordBatch>> + Send + 'static {
    let work = Arc::new(work);
    let jobs = batches.map(move |batch: Result<RecordBatch>| {
        let work = Arc::clone(&work);
        Box::new(std::iter::once_with(move || work(batch?))) as ItemSource<RecordBatch>
    });
    ordered_prefetch(jobs, parallelism() + 1, 1, cancel)
}
