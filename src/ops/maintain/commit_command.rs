//! The commit of a command that copies no rows.

use serde_json::Value;

use crate::commit::finish::{self, Choices, Done};
use crate::commit::{Operation, Transaction};
use crate::error::Result;
use crate::exec::Cancel;

/// Commits a command. None here copies rows, so those that there are keep their ids.
pub(super) fn commit_command(
    tx: Transaction,
    name: &str,
    parameters: Value,
    metrics: Value,
    choices: &Choices,
    cancel: &Cancel,
) -> Result<Done> {
    finish::commit(
        tx,
        Operation {
            row_ids_preserved: Some(true),
            ..finish::operation(name, parameters, metrics)
        },
        choices,
        cancel,
    )
}
