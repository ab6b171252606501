//! The commit of a command that copies no rows.

use serde_json::Value;

use crate::commit::finish::{self, CommitOptions, CommitResult};
use crate::commit::{CommitOperation, OptimisticTransaction};
use crate::error::Result;
use crate::exec::CancellationToken;

/// Commits a command. Maintenance commands copy no rows, so existing row ids are kept.
pub(super) fn commit_command(
    tx: OptimisticTransaction,
    name: &str,
    parameters: Value,
    metrics: Value,
    commit_options: &CommitOptions,
    cancel: &CancellationToken,
) -> Result<CommitResult> {
    finish::commit(
        tx,
        CommitOperation {
            row_ids_preserved: Some(true),
            ..finish::operation(name, parameters, metrics)
        },
        commit_options,
        cancel,
    )
}
