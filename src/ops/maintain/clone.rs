//! CLONE: a table that shares the files of another table: its log references them by absolute
//! paths.
//!
//! A clone is a new table, or replaces a table without files, whose id and history are kept. It has
//! the columns of the source with their ids; rows get new row ids, as in delta-spark. Vacuum of the
//! clone never deletes shared files, since it only lists files below its own root; vacuum of the
//! source deletes them when the source no longer needs them, so clones are meant for limited use.
//!
//! Protocol: "Add File and Remove File" (absolute paths), "Deletion Vectors" (storage type `p`).
//! Cost: the adds of the source in one commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::commit::OptimisticTransaction;
use crate::commit::adds::{all_add_columns, batch_to_adds};
use crate::commit::finish::{CommitOptions, CommitResult};
use crate::dv::DvPath;
use crate::error::{Error, NotFoundKind, Result, ResultExt};
use crate::exec::{CancellationToken, RuntimeEnv, SystemEnv, uuid};
use crate::file_writer::partition::log_path;
use crate::log::DeltaLog;
use crate::ops::maintain::commit_command::commit_command;
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::protocol::action::DomainMetadata;
use crate::protocol::commit_line::{Action, Add};
use crate::protocol::table::{self, TableChangeContext};
use crate::protocol::{data_path, features};
use crate::scan::vector_file;
use crate::snapshot::Snapshot;
use crate::store::TableStores;

/// The domain that describes the clustering of the files, which is copied.
const CLUSTERING: &str = "delta.clustering";

/// Options of a clone.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloneOptions {
    /// Properties of the clone, in addition to those of the source.
    pub properties: BTreeMap<String, String>,
    /// Whether it may replace a table without files.
    pub replace: bool,
    /// How it is committed.
    pub commit_options: CommitOptions,
}

/// The result of a clone.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CloneResult {
    /// The number of files of the source, all of which the clone references.
    pub source_num_of_files: u64,
    /// Their size in bytes.
    pub source_table_size: u64,
    /// The committed version, if any.
    #[serde(skip)]
    pub done: Option<CommitResult>,
}

/// Creates a table at the root of `target` that references the files of `source`.
///
/// # Errors
/// [`Error::Invalid`] if a table exists that may not or cannot be replaced; [`Error::Unsupported`]
/// for a source whose files cannot be referenced from there; as [`OptimisticTransaction::commit`].
pub fn clone(
    source: &Snapshot,
    target: DeltaLog,
    options: &CloneOptions,
    cancel: &CancellationToken,
) -> Result<CloneResult> {
    let root = source.stores().root();
    features::check_writable(source.protocol())
        .at_file(root.url())
        .at_version(source.version())?;
    if source.protocol().has_writer_feature("catalogManaged") {
        return Err(Error::unsupported_feature(
            "catalogManaged",
            "a table whose commits are managed by a catalog is cloned by its catalog",
        ));
    }
    let target_url = target.stores().root().url().to_owned();
    let base = SourceRoot::new(source.stores(), &target_url)?;
    let old = if options.replace {
        replaceable(&target, source, cancel)?
    } else {
        None
    };
    let mut tx = match &old {
        Some(old) => OptimisticTransaction::new(old),
        None => OptimisticTransaction::create(target, source.options())?,
    };
    let mut out = CloneResult::default();
    let mut unique = uuid;
    let mut context = TableChangeContext {
        allow_unknown: false,
        now_ms: SystemEnv.now_ms(),
        generate_id: &mut unique,
    };
    let replaced = old.as_ref().map(|old| (old.protocol(), old.metadata()));
    let (protocol, metadata) = table::clone(
        (source.protocol(), source.metadata()),
        replaced,
        &options.properties,
        &mut context,
    )?;
    tx.push(Action::Protocol(protocol));
    tx.push(Action::MetaData(Box::new(metadata)));
    if old.is_some() {
        tx.read_whole_table();
    }
    let clustered = source.non_file_actions()?.domains.get(CLUSTERING).cloned();
    let ended = match &old {
        Some(old) => old
            .non_file_actions()?
            .domains
            .get(CLUSTERING)
            .map(|last| DomainMetadata {
                removed: true,
                ..last.clone()
            }),
        None => None,
    };
    tx.extend(clustered.or(ended).map(Action::DomainMetadata));
    let wanted = all_add_columns(source);
    let partition = wanted.partition.clone();
    for batch in source.files(FileActionKind::Adds, wanted, cancel)? {
        let batch = batch?;
        cancel.progress().advance(batch.len() as u64);
        for add in batch_to_adds(&batch, &partition)? {
            out.source_num_of_files += 1;
            out.source_table_size += u64::try_from(add.size).unwrap_or(0);
            // Rows get new row ids.
            tx.push(Action::Add(base.with_absolute_paths(Add {
                base_row_id: None,
                default_row_commit_version: None,
                ..add
            })?));
        }
    }
    let parameters = json!({"source": format!("delta.`{}`", base.display_url), "sourceVersion": source.version(), "isShallow": true});
    let metrics = json!({
        "sourceTableSize": out.source_table_size,
        "sourceNumOfFiles": out.source_num_of_files,
        "numRemovedFiles": 0,
        "removedFilesSize": 0,
        "numCopiedFiles": 0,
        "copiedFilesSize": 0,
    });
    let done = match commit_command(
        tx,
        "CLONE",
        parameters,
        metrics,
        &options.commit_options,
        cancel,
    ) {
        // Another writer committed first: the same result as if its table had existed before.
        Err(Error::CommitFailed { .. }) if old.is_none() => {
            return Err(Error::invalid(format!(
                "there is a table at {target_url} already"
            )));
        }
        other => other?,
    };
    Ok(CloneResult {
        done: Some(done),
        ..out
    })
}

/// The table at `target`, if there is one; it must not have files, as in delta-spark.
fn replaceable(
    target: &DeltaLog,
    source: &Snapshot,
    cancel: &CancellationToken,
) -> Result<Option<Snapshot>> {
    let old = match Snapshot::open(target.clone(), None, source.options()) {
        Ok(old) => old,
        Err(Error::NotFound {
            kind: NotFoundKind::Table,
            ..
        }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let url = target.stores().root().url();
    features::check_writable(old.protocol())
        .at_file(url)
        .at_version(old.version())?;
    for batch in old.files(
        FileActionKind::Adds,
        FileActionProjection::default(),
        cancel,
    )? {
        if !batch?.is_empty() {
            return Err(Error::invalid(format!(
                "a clone takes the place of an empty table only, and the one at {url} has rows; delete them first"
            )));
        }
    }
    Ok(Some(old))
}

/// The source's root, as other tables reference its files.
struct SourceRoot {
    stores: Arc<TableStores>,
    /// The URL, decoded, ending in `/`.
    url: String,
    display_url: String,
}

impl SourceRoot {
    fn new(stores: &Arc<TableStores>, target: &str) -> Result<Self> {
        let source = stores.root().url();
        let url = percent_decode_str(source).decode_utf8_lossy().into_owned();
        let scheme = |url: &str| {
            url.split_once("://").map(|(scheme, rest)| {
                (
                    scheme.to_owned(),
                    rest.split('/').next().unwrap_or_default().to_owned(),
                )
            })
        };
        if scheme(source) != scheme(target) {
            return Err(Error::unsupported(format!(
                "a shallow clone must be in the same store as its source: {target} is not where {source} is, and readers refuse files of other stores"
            )));
        }
        Ok(Self {
            stores: Arc::clone(stores),
            display_url: url.trim_end_matches('/').to_owned(),
            url,
        })
    }

    /// The same file with absolute paths.
    ///
    /// # Errors
    /// As the scan for a path that it refuses to open: an absolute path in the clone would be
    /// within the store, and readable.
    fn with_absolute_paths(&self, mut add: Add) -> Result<Add> {
        add.path = self.absolute_path(&add.path)?;
        let Some(vector) = &mut add.deletion_vector else {
            return Ok(add);
        };
        if let Some(path) = vector.path().at_file(&add.path)? {
            vector_file(&self.stores, &path).at_file(&add.path)?;
            if let DvPath::InTable(path) = path {
                "p".clone_into(&mut vector.storage_type);
                vector.path_or_inline_dv = log_path(&format!("{}{path}", self.url));
            }
        }
        Ok(add)
    }

    fn absolute_path(&self, path: &str) -> Result<String> {
        let canonical = data_path::canonical(path)?;
        self.stores.file(&canonical, None)?;
        if canonical.starts_with('/') || canonical.contains("://") {
            return Ok(path.to_owned());
        }
        Ok(log_path(&format!("{}{canonical}", self.url)))
    }
}
