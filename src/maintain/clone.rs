//! CLONE: a new table that shares another's files: its log names them by absolute paths.
//!
//! The new table has an id and a history of its own and goes on from the source's marks of row ids and columns. Files that
//! it shares are never deleted by its own vacuum, which only looks below its root; the source's vacuum deletes them when the
//! source no longer needs them, so a clone is for a limited time.
//!
//! Protocol: "Add File and Remove File" (absolute paths), "Deletion Vectors" (storage type `p`). Cost: the adds of the source
//! in one commit.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::record;
use crate::command::{Choices, Done};
use crate::commit::Transaction;
use crate::commit::adds::{adds, whole};
use crate::dv::DvPath;
use crate::error::{Error, Result, ResultExt};
use crate::exec::{Cancel, Env, SystemEnv, uuid};
use crate::log::Log;
use crate::parse::checkpoint::FileKind;
use crate::protocol::action::Metadata;
use crate::protocol::commit_line::{Action, Add};
use crate::protocol::table::{self, Context};
use crate::protocol::{data_path, features};
use crate::snapshot::Snapshot;
use crate::write::partition::log_path;

/// Domains that describe the rows and so go along.
const DOMAINS: [&str; 2] = ["delta.clustering", "delta.rowTracking"];
/// Properties that are about the source's own log.
const OF_THE_LOG: [&str; 3] =
    ["delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp", "delta.requireCheckpointProtectionBeforeVersion"];

/// What a caller decides of a clone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloneOptions {
    /// Properties of the new table, beside the source's.
    pub properties: BTreeMap<String, String>,
    /// How it is committed.
    pub choices: Choices,
}

/// What a clone made.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cloned {
    /// Files of the source, all of which the clone has.
    pub source_num_of_files: u64,
    /// Their bytes.
    pub source_table_size: u64,
    /// The version that was made, where one was.
    #[serde(skip)]
    pub done: Option<Done>,
}

/// Makes a table at the root of `target` that has the files of `source`.
///
/// # Errors
/// [`Error::Invalid`] when there is a table already; [`Error::Unsupported`] for a source whose files cannot be named from
/// there; as [`Transaction::commit`].
pub fn clone(source: &Snapshot, target: Log, options: &CloneOptions, cancel: &Cancel) -> Result<Cloned> {
    let root = source.stores().root();
    features::check_writable(source.protocol()).at_file(root.url()).at_version(source.version())?;
    if source.protocol().has_writer_feature("catalogManaged") {
        return Err(Error::unsupported_feature("catalogManaged", "a table whose commits are managed by a catalog is cloned by its catalog"));
    }
    let target_url = target.stores().root().url().to_owned();
    let base = Base::new(root.url(), &target_url)?;
    let mut tx = Transaction::create(target, source.options())?;
    let mut out = Cloned::default();
    let mut metadata = Metadata { id: uuid(), created_time: Some(SystemEnv.now_ms()), description: None, ..source.metadata().clone() };
    metadata.configuration.retain(|key, _| !OF_THE_LOG.contains(&key.as_str()));
    let mut unique = uuid;
    let mut context = Context { allow_unknown: false, now_ms: SystemEnv.now_ms(), unique: &mut unique };
    let (protocol, metadata) = table::set_properties(source.protocol(), &metadata, &options.properties, &mut context)?;
    tx.push(Action::Protocol(protocol));
    tx.push(Action::MetaData(Box::new(metadata)));
    let domains: BTreeSet<&str> = DOMAINS.into_iter().collect();
    tx.extend(source.sets()?.domains.values().filter(|domain| domains.contains(domain.domain.as_str())).cloned().map(Action::DomainMetadata));
    let wanted = whole(source);
    let partition = wanted.partition.clone();
    for batch in source.files(FileKind::Adds, wanted, cancel)? {
        for add in adds(&batch?, &partition)? {
            out.source_num_of_files += 1;
            out.source_table_size += u64::try_from(add.size).unwrap_or(0);
            tx.push(Action::Add(base.absolute(add)?));
        }
    }
    let parameters = json!({"source": format!("delta.`{}`", base.shown), "sourceVersion": source.version(), "isShallow": true});
    let metrics = json!({
        "sourceTableSize": out.source_table_size,
        "sourceNumOfFiles": out.source_num_of_files,
        "numRemovedFiles": 0,
        "removedFilesSize": 0,
        "numCopiedFiles": 0,
        "copiedFilesSize": 0,
    });
    let done = match record(tx, "CLONE", parameters, metrics, &options.choices, cancel) {
        // Another writer was first, as if it had been there from the beginning.
        Err(Error::CommitFailed { .. }) => return Err(Error::invalid(format!("there is a table at {target_url} already"))),
        other => other?,
    };
    Ok(Cloned { done: Some(done), ..out })
}

/// The source's root, as its files are named from elsewhere.
struct Base {
    /// The URL, decoded, ending in `/`.
    url: String,
    shown: String,
}

impl Base {
    fn new(source: &str, target: &str) -> Result<Self> {
        let url = percent_decode_str(source).decode_utf8_lossy().into_owned();
        let scheme = |url: &str| url.split_once("://").map(|(scheme, rest)| (scheme.to_owned(), rest.split('/').next().unwrap_or_default().to_owned()));
        if scheme(source) != scheme(target) {
            return Err(Error::unsupported(format!(
                "a shallow clone must be in the same store as its source: {target} is not where {source} is, and readers refuse files of other stores"
            )));
        }
        Ok(Self { shown: url.trim_end_matches('/').to_owned(), url })
    }

    /// The same file by absolute paths.
    fn absolute(&self, mut add: Add) -> Result<Add> {
        add.path = self.path(&add.path)?;
        if let Some(vector) = &mut add.deletion_vector
            && let Some(DvPath::InTable(path)) = vector.path().at_file(&add.path)?
        {
            "p".clone_into(&mut vector.storage_type);
            vector.path_or_inline_dv = log_path(&format!("{}{path}", self.url));
        }
        Ok(add)
    }

    fn path(&self, path: &str) -> Result<String> {
        let canonical = data_path::canonical(path)?;
        if canonical.starts_with('/') || canonical.contains("://") {
            return Ok(path.to_owned());
        }
        Ok(log_path(&format!("{}{canonical}", self.url)))
    }
}
