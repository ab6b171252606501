//! What callers decide of a command's commits.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::checkpoint::{self, Upkeep};
use crate::commit::{CommitOptions, Committed, Operation, Transaction};
use crate::error::Result;
use crate::exec::Cancel;
use crate::protocol::action::Txn;
use crate::protocol::commit_line::Action;

/// A caller's wishes for a commit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommitWish {
    /// Further keys for `commitInfo`; `userMetadata` among them is the protocol's own.
    pub custom_metadata: Map<String, Value>,
    /// How often to try again after another writer was first.
    pub max_commit_retries: Option<u32>,
    /// Versions of applications that the commit records.
    pub app_transactions: Vec<Txn>,
    /// Whether a checkpoint is made when it is due; yes, unless said otherwise.
    pub create_checkpoint: Option<bool>,
    /// Whether the log is cleaned up after a checkpoint; if not said, the table decides.
    pub cleanup_expired_logs: Option<bool>,
}

impl CommitWish {
    /// Commits a transaction as `name`. `parameters` and `metrics` that are null are left out. No command here copies rows, so
    /// those that there are keep their ids.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub(super) fn commit(&self, mut tx: Transaction, name: &str, parameters: Value, metrics: Value, cancel: &Cancel) -> Result<Committed> {
        let mut extra = self.custom_metadata.clone();
        let user_metadata = match extra.remove("userMetadata") {
            Some(Value::String(text)) => Some(text),
            Some(other) => Some(other.to_string()),
            None => None,
        };
        tx.set_operation(Operation {
            parameters: present(parameters),
            metrics: texts(metrics),
            user_metadata,
            extra,
            row_ids_preserved: Some(true),
            ..Operation::new(name)
        });
        tx.extend(self.app_transactions.iter().cloned().map(Action::Txn));
        let usual = CommitOptions::default();
        let options = CommitOptions { max_retries: self.max_commit_retries.unwrap_or(usual.max_retries), cancel: cancel.clone(), ..usual };
        let committed = tx.commit(&options)?;
        // Nothing of this can undo the version.
        if let Some(snapshot) = &committed.snapshot {
            let upkeep = Upkeep { create_checkpoint: self.create_checkpoint, cleanup_expired_logs: self.cleanup_expired_logs };
            for warning in checkpoint::keep_up(snapshot, upkeep, cancel) {
                snapshot.warn(warning);
            }
        }
        Ok(committed)
    }

    /// The same wishes for a further commit of the same command, which records no application a second time.
    pub(super) fn without_transactions(&self) -> Self {
        Self { app_transactions: Vec::new(), ..self.clone() }
    }
}

fn present(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

/// Figures are texts in `commitInfo`.
fn texts(value: Value) -> Map<String, Value> {
    present(value).into_iter().map(|(key, value)| (key, if value.is_string() { value } else { value.to_string().into() })).collect()
}
