//! Log compaction: merges the commits of a range into one file of their newest actions.
//!
//! Lines are copied exactly as they were written, including unknown fields. The file holds the
//! newest line of each logical file, application and domain, and the newest protocol and metadata.
//! Tombstones of files and of domains are kept since they hide actions before the range.
//!
//! Protocol: "Log Compaction Files", "Action Reconciliation". Cost: memory for the commits of the
//! range and a key for each of their files.

use std::collections::HashSet;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::check::check;
use crate::error::{Error, Result, ResultExt};
use crate::exec::{CancellationToken, map_all};
use crate::parse::json_lines;
use crate::protocol::{data_path, log_path};
use crate::snapshot::Snapshot;
use crate::store::make;

/// A line of a commit; actions that a compaction drops have no variant.
#[derive(Deserialize)]
struct CompactionLine<'a> {
    #[serde(borrow, default)]
    add: Option<&'a RawValue>,
    #[serde(borrow, default)]
    remove: Option<&'a RawValue>,
    #[serde(borrow, default)]
    txn: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "domainMetadata")]
    domain: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "metaData")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    protocol: Option<&'a RawValue>,
}

/// The identity of an action of any kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ActionIdentity {
    path: Option<String>,
    deletion_vector: Option<DeletionVectorKey>,
    app_id: Option<String>,
    domain: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeletionVectorKey {
    storage_type: String,
    path_or_inline_dv: String,
    offset: Option<i64>,
}

/// The key of an action; actions with the same key concern the same entity.
#[derive(PartialEq, Eq, Hash)]
enum ActionKey {
    File(String, Option<String>),
    Txn(String),
    Domain(String),
    Metadata,
    Protocol,
}

fn key(kind: &str, body: &RawValue) -> Result<ActionKey> {
    match kind {
        "metaData" => return Ok(ActionKey::Metadata),
        "protocol" => return Ok(ActionKey::Protocol),
        _ => {}
    }
    let lacks = |what: &str| Error::corrupt(format!("the action `{kind}` has no `{what}`"));
    let identity: ActionIdentity = serde_json::from_str(body.get())
        .map_err(|e| Error::corrupt(format!("the action `{kind}` is malformed: {e}")))?;
    Ok(match kind {
        "txn" => ActionKey::Txn(identity.app_id.ok_or_else(|| lacks("appId"))?),
        "domainMetadata" => ActionKey::Domain(identity.domain.ok_or_else(|| lacks("domain"))?),
        _ => {
            let path = identity.path.ok_or_else(|| lacks("path"))?;
            let vector = identity.deletion_vector.map(|v| match v.offset {
                Some(offset) => format!("{}{}@{offset}", v.storage_type, v.path_or_inline_dv),
                None => format!("{}{}", v.storage_type, v.path_or_inline_dv),
            });
            ActionKey::File(data_path::canonical(&path)?.into_owned(), vector)
        }
    })
}

/// The newest actions of commits, which are given newest first, as lines.
fn reconciled(commits: &[(i64, Bytes)]) -> Result<String> {
    let (mut seen, mut out) = (HashSet::new(), String::new());
    for (version, text) in commits {
        let text = std::str::from_utf8(text)
            .map_err(|_| Error::corrupt("not UTF-8").at_version(*version))?;
        for (n, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let placed = |error: Error| {
                error
                    .at_file(log_path::commit(*version))
                    .at_version(*version)
                    .at_line(n as u64 + 1)
            };
            let parsed: CompactionLine<'_> = serde_json::from_str(line)
                .map_err(|e| placed(Error::corrupt(format!("not a JSON action: {e}"))))?;
            let bodies = [
                ("add", parsed.add),
                ("remove", parsed.remove),
                ("txn", parsed.txn),
                ("domainMetadata", parsed.domain),
                ("metaData", parsed.metadata),
                ("protocol", parsed.protocol),
            ];
            for (kind, body) in bodies
                .into_iter()
                .filter_map(|(kind, body)| Some((kind, body?)))
            {
                if seen.insert(key(kind, body).map_err(placed)?) {
                    out.push_str("{\"");
                    out.push_str(kind);
                    out.push_str("\":");
                    out.push_str(body.get());
                    out.push_str("}\n");
                }
            }
        }
    }
    Ok(out)
}

/// Writes the compaction of versions `first` to `last`; returns its path relative to the table
/// root.
///
/// # Errors
/// [`Error::Invalid`] for an empty range or one with missing commits, and if the table was replaced
/// by another one; [`Error::Unsupported`] for a table that this release cannot write;
/// [`Error::Storage`].
pub fn compact(
    snapshot: &Snapshot,
    first: i64,
    last: i64,
    cancel: &CancellationToken,
) -> Result<String> {
    check(snapshot)?;
    if first < 0 || first >= last {
        return Err(Error::invalid(format!(
            "a compaction holds at least two versions, in ascending order, not {first} to {last}"
        )));
    }
    if last > snapshot.version() {
        return Err(Error::invalid(format!(
            "there is no version {last} to compact; the newest here is {}",
            snapshot.version()
        )));
    }
    snapshot.check_in_log()?;
    let listing = snapshot.log().list(first)?;
    let commits = (first..=last)
        .rev()
        .map(|version| {
            let commit = listing.commits.get(&version).cloned();
            commit.ok_or_else(|| {
                Error::invalid(format!(
                    "version {version} cannot be compacted: `{}` is not there",
                    log_path::commit(version)
                ))
            })
        })
        .collect::<Result<Vec<_>>>()?;
    cancel.check()?;
    let texts = map_all(commits, |commit| {
        Ok((
            commit.version,
            json_lines::read(&commit.file).at_version(commit.version)?,
        ))
    })?;
    cancel.check()?;
    let path = log_path::compaction(first, last);
    // Another writer of the same range has written the same content.
    make(
        snapshot.stores().root().as_ref(),
        &path,
        &Bytes::from(reconciled(&texts)?),
    )?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compacted(newest_first: &[&str]) -> Result<Vec<String>> {
        let commits: Vec<(i64, Bytes)> = (0..)
            .zip(newest_first)
            .map(|(n, text)| (9 - n, Bytes::copy_from_slice(text.as_bytes())))
            .collect();
        reconciled(&commits).map(|text| {
            let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            lines.sort();
            lines
        })
    }

    #[test]
    fn the_worked_example_of_the_protocol_holds() {
        let four = "{\"commitInfo\":{}}\n{\"add\":{\"path\":\"f2\",\"x\":1}}\n{\"remove\":{\"path\":\"f1\"}}";
        let five = "{\"commitInfo\":{}}\n{\"add\":{\"path\":\"f3\"}}\n{\"add\":{\"path\":\"f4\"}}\n{\"txn\":{\"appId\":\"3ae45b72\",\"version\":4389}}\n";
        let six = "{\"commitInfo\":{}}\n{\"remove\":{\"path\":\"f3\"}}\n{\"txn\":{\"appId\":\"3ae45b72\",\"version\":4390}}";
        assert_eq!(
            compacted(&[six, five, four]).unwrap(),
            [
                "{\"add\":{\"path\":\"f2\",\"x\":1}}",
                "{\"add\":{\"path\":\"f4\"}}",
                "{\"remove\":{\"path\":\"f1\"}}",
                "{\"remove\":{\"path\":\"f3\"}}",
                "{\"txn\":{\"appId\":\"3ae45b72\",\"version\":4390}}"
            ]
        );
    }

    #[test]
    fn files_are_told_apart_by_their_deletion_vectors_and_spellings_are_one() {
        let dv = r#"{"add":{"path":"a%20b","deletionVector":{"storageType":"u","pathOrInlineDv":"x","offset":1,"sizeInBytes":1,"cardinality":1}}}"#;
        let both = format!("{dv}\n{}", r#"{"remove":{"path":"a%20b"}}"#);
        assert_eq!(
            compacted(&[&both, r#"{"add":{"path":"a b"}}"#]).unwrap(),
            [dv, r#"{"remove":{"path":"a%20b"}}"#]
        );
    }

    #[test]
    fn removed_domains_stay_and_a_broken_line_is_named() {
        let removed = r#"{"domainMetadata":{"domain":"d","configuration":"","removed":true}}"#;
        let set = r#"{"domainMetadata":{"domain":"d","configuration":"","removed":false}}"#;
        assert_eq!(
            compacted(&[removed, set, r#"{"cdc":{"path":"c"}}"#]).unwrap(),
            [removed]
        );
        let error = compacted(&["{\"txn\":null}\n{\"add\":{}}"]).unwrap_err();
        assert!(
            error.to_string().contains("`path`") && error.context().unwrap().line == Some(2),
            "{error}"
        );
    }
}
