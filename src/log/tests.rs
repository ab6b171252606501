use std::sync::Arc;

use super::*;
use crate::error::{Error, Result};
use crate::store::{ExternalPaths, StorageOptions, TableStores, open};

/// A log of empty files with these names.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(test: &str, names: &[&str]) -> Self {
        let root =
            std::env::temp_dir().join(format!("deltafast-log-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(root.join("_delta_log")).unwrap();
        for name in names {
            std::fs::write(root.join("_delta_log").join(name), b"").unwrap();
        }
        Self(root)
    }

    fn log(&self) -> DeltaLog {
        let store = open(self.0.to_str().unwrap(), &StorageOptions::new()).unwrap();
        DeltaLog::new(
            Arc::new(TableStores::new(
                store,
                StorageOptions::new(),
                ExternalPaths::Refused,
            )),
            Vec::new(),
        )
        .unwrap()
    }

    fn hint(self, json: &str) -> Self {
        std::fs::write(self.0.join("_delta_log/_last_checkpoint"), json).unwrap();
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn commit(version: i64) -> String {
    format!("{version:020}.json")
}

fn names(commits: &[i64], more: &[&str]) -> Vec<String> {
    commits
        .iter()
        .map(|v| commit(*v))
        .chain(more.iter().map(ToString::to_string))
        .collect()
}

fn folder(test: &str, commits: &[i64], more: &[&str]) -> Folder {
    let names = names(commits, more);
    Folder::new(test, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_lying_hint_means_a_full_listing() {
    for (n, json) in [
        r#"{"version":9,"size":1}"#,
        r#"{"version":1,"size":1}"#,
        "{",
        r#"{"version":2,"checksum":"no"}"#,
    ]
    .iter()
    .enumerate()
    {
        let table = folder(&format!("hint{n}"), &[0, 1, 2], &[]).hint(json);
        let (listing, segment) = table.log().segment(None).unwrap();
        assert_eq!(
            (listing.from, segment.version, segment.commits.len()),
            (0, 2, 3),
            "{json}"
        );
    }
}

#[test]
fn the_newest_complete_checkpoint_is_used_and_can_be_done_without() {
    let v2 = "00000000000000000002.checkpoint.parquet";
    let part = "00000000000000000003.checkpoint.0000000001.0000000002.parquet";
    let table = folder("checkpoints", &[0, 1, 2, 3, 4], &[v2, part]);
    let (listing, segment) = table.log().segment(None).unwrap();
    assert_eq!(
        (
            segment.checkpoint.as_ref().unwrap().version,
            segment.commits.len()
        ),
        (2, 2)
    );
    let without = listing
        .segment(
            None,
            SegmentOptions {
                checkpoints: 1,
                compactions: true,
            },
        )
        .unwrap();
    assert!(without.checkpoint.is_none() && without.commits.len() == 5);
}

#[test]
fn a_gap_below_the_checkpoint_is_harmless_and_one_above_is_an_error() {
    let v3 = "00000000000000000003.checkpoint.parquet";
    assert_eq!(
        folder("below", &[0, 3, 4], &[v3])
            .log()
            .segment(None)
            .unwrap()
            .1
            .commits
            .len(),
        1
    );
    let error = folder("above", &[3, 5], &[v3])
        .log()
        .segment(None)
        .unwrap_err();
    assert!(
        error.is_corrupt() && error.to_string().contains("00000000000000000004.json"),
        "{error}"
    );
    let error = folder("start", &[1, 2], &[])
        .log()
        .segment(None)
        .unwrap_err();
    assert!(
        error.is_corrupt() && error.to_string().contains("00000000000000000000.json"),
        "{error}"
    );
}

#[test]
fn compactions_stand_for_the_commits_they_hold() {
    let compacted = "00000000000000000001.00000000000000000003.compacted.json";
    let table = folder("compacted", &[0, 1, 2, 3, 4], &[compacted]);
    let versions = |s: &LogSegment| {
        s.replay
            .iter()
            .map(|c| (c.first, c.version))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        versions(&table.log().segment(None).unwrap().1),
        [(0, 0), (1, 3), (4, 4)]
    );
    assert_eq!(
        versions(&table.log().segment(Some(2)).unwrap().1),
        [(0, 0), (1, 1), (2, 2)]
    );
}

#[test]
fn what_is_not_there_is_named() {
    let error = folder("none", &[], &[]).log().segment(None).unwrap_err();
    assert!(
        matches!(
            error,
            crate::error::Error::NotFound {
                kind: crate::error::NotFoundKind::Table,
                ..
            }
        ),
        "{error}"
    );
    let error = folder("version", &[0, 1], &[])
        .log()
        .segment(Some(7))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no version 7; it has versions 0 to 1"),
        "{error}"
    );
}

/// A catalog with one commit, of version 7.
#[derive(Debug)]
struct OneCommit(String);

impl CatalogClient for OneCommit {
    fn tail(&self) -> Result<LogTail> {
        Ok(LogTail {
            latest: Some(7),
            commits: vec![TailCommit {
                version: 7,
                path: self.0.clone(),
                size: None,
            }],
        })
    }

    fn ratify(&self, _: &TailCommit, _: &bytes::Bytes) -> Result<crate::store::PutOutcome> {
        Err(Error::unsupported("ratify"))
    }

    fn published(&self, _: i64) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_catalog_names_commit_files_of_the_version_in_the_log() {
    let named = |path: &str| LogTail::from_catalog(&OneCommit(path.to_owned()));
    for path in [
        "00000000000000000007.a-b.json",
        "00000000000000000007.json",
        "_delta_log/_staged_commits/00000000000000000007.a-b.json",
        "_delta_log/00000000000000000007.json",
    ] {
        named(path).unwrap();
    }
    for path in [
        "",
        "/etc/passwd",
        "/home/user/.databrickscfg",
        "../00000000000000000007.a-b.json",
        "_delta_log/_staged_commits/../../00000000000000000007.a-b.json",
        "_delta_log/_staged_commits//00000000000000000007.a-b.json",
        "a/00000000000000000007.a-b.json",
        "/00000000000000000007.a-b.json",
        "\\00000000000000000007.a-b.json",
        "file:///00000000000000000007.a-b.json",
        "s3://bucket/_delta_log/_staged_commits/00000000000000000007.a-b.json",
        "00000000000000000008.a-b.json",
        "00000000000000000008.json",
        "7.a-b.json",
        "00000000000000000007.checkpoint.parquet",
        "00000000000000000007.a/b.json",
        "%2e%2e/00000000000000000007.a-b.json",
        "x.parquet",
    ] {
        let error = named(path).unwrap_err();
        assert!(
            error.to_string().contains("as the commit of version 7"),
            "{path}: {error}"
        );
    }
}
