use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::exec::CancellationToken;
use crate::log::{CommitFile, LogSegment, SegmentOptions};
use crate::parse::FileActionProjection;
use crate::parse::checkpoint::FileActionKind;
use crate::store::{ObjectMeta, PendingResult, Store, StoreObject};

/// Files in memory, by name.
#[derive(Debug)]
struct Memory(Vec<(String, Bytes)>);

impl Store for Memory {
    fn url(&self) -> &'static str {
        "memory:///"
    }

    fn list_from(&self, _: &str, _: &str) -> crate::error::Result<Vec<ObjectMeta>> {
        Ok(Vec::new())
    }

    fn head(&self, path: &str) -> crate::error::Result<ObjectMeta> {
        let bytes = self.0.iter().find(|(name, _)| name == path).unwrap();
        Ok(ObjectMeta {
            path: path.to_owned(),
            size: bytes.1.len() as u64,
            modified_ms: 0,
        })
    }

    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        let (meta, bytes) = (
            self.head(path),
            self.0
                .iter()
                .find(|(name, _)| name == path)
                .unwrap()
                .1
                .clone(),
        );
        PendingResult::lazy(move || Ok((bytes, meta?)))
    }

    fn get_ranges(
        &self,
        path: &str,
        ranges: Vec<std::ops::Range<u64>>,
    ) -> PendingResult<Vec<Bytes>> {
        let bytes = self
            .0
            .iter()
            .find(|(name, _)| name == path)
            .unwrap()
            .1
            .clone();
        let cut = |n: u64| usize::try_from(n).unwrap().min(bytes.len());
        let found = ranges
            .into_iter()
            .map(|range| bytes.slice(cut(range.start)..cut(range.end)))
            .collect();
        PendingResult::lazy(move || Ok(found))
    }
}

/// A segment of commits, or of compactions if the first version is given.
fn segment(files: &[(i64, i64, String)]) -> (LogSegment, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(Memory(
        files
            .iter()
            .map(|(a, b, text)| (format!("{a}-{b}"), Bytes::from(text.clone())))
            .collect(),
    ));
    let commits: Vec<CommitFile> = files
        .iter()
        .map(|(first, version, text)| CommitFile {
            first: *first,
            version: *version,
            file: StoreObject {
                store: Arc::clone(&store),
                path: format!("{first}-{version}"),
                size: Some(text.len() as u64),
            },
            modified_ms: 0,
        })
        .collect();
    let version = commits.last().unwrap().version;
    (
        LogSegment {
            version,
            checkpoint: None,
            replay: commits.clone(),
            commits,
            earlier: Vec::new(),
            last_commit: None,
            checksum: None,
            counts: None,
            skip: SegmentOptions::default(),
        },
        store,
    )
}

fn run(files: &[(i64, i64, String)], kind: FileActionKind) -> crate::error::Result<Vec<String>> {
    let (segment, store) = segment(files);
    let request = FileStreamRequest {
        kind,
        wanted: Arc::new(FileActionProjection::default()),
        cancel: CancellationToken::default(),
    };
    let mut out = Vec::new();
    for batch in super::files(&segment, &Arc::new(CommitCache::default()), &store, request)? {
        out.extend(batch?.path.iter().flatten().map(str::to_owned));
    }
    out.sort();
    Ok(out)
}

fn add(path: &str) -> String {
    format!(
        "{{\"add\":{{\"path\":\"{path}\",\"partitionValues\":{{}},\"size\":1,\"modificationTime\":0,\"dataChange\":true}}}}\n"
    )
}

fn remove(path: &str) -> String {
    format!("{{\"remove\":{{\"path\":\"{path}\",\"dataChange\":true}}}}\n")
}

#[test]
fn the_newest_action_of_a_file_decides() {
    let commits = [
        (0, 0, add("a") + &add("b") + &add("file:///x%20y")),
        (1, 1, remove("a") + &add("c")),
        (2, 2, add("a") + &remove("b") + &remove("/x y")),
    ];
    assert_eq!(run(&commits, FileActionKind::Adds).unwrap(), ["a", "c"]);
    assert_eq!(
        run(&commits, FileActionKind::Removes).unwrap(),
        ["/x y", "b"]
    );
}

#[test]
fn an_add_and_a_remove_of_one_logical_file_in_one_commit_are_corrupt() {
    let error = run(
        &[(0, 0, add("z")), (1, 1, add("a") + &remove("a"))],
        FileActionKind::Adds,
    )
    .unwrap_err();
    assert!(
        error.is_corrupt() && error.context().unwrap().version == Some(1),
        "{error}"
    );
}

#[test]
fn one_path_with_two_deletion_vectors_is_two_files() {
    let dv = |id: &str| {
        format!(
            ",\"deletionVector\":{{\"storageType\":\"i\",\"pathOrInlineDv\":\"{id}\",\"sizeInBytes\":1,\"cardinality\":1}}"
        )
    };
    let with = |action: &str, id: &str| {
        format!(
            "{{\"{action}\":{{\"path\":\"a\",\"size\":1{}}}}}\n",
            if id.is_empty() { String::new() } else { dv(id) }
        )
    };
    let commits = [
        (0, 0, with("add", "")),
        (1, 1, with("remove", "") + &with("add", "one")),
        (2, 2, with("remove", "one") + &with("add", "two")),
    ];
    assert_eq!(run(&commits, FileActionKind::Adds).unwrap(), ["a"]);
    assert_eq!(run(&commits, FileActionKind::Removes).unwrap(), ["a", "a"]);
}

#[test]
fn a_reconciled_compaction_equals_its_commits_in_any_order() {
    let commits = [
        (0, 0, add("a") + &add("b")),
        (1, 1, remove("a") + &add("c")),
        (2, 2, remove("c") + &add("a")),
    ];
    for lines in [
        [add("a"), add("b"), remove("c")],
        [remove("c"), add("b"), add("a")],
    ] {
        let compacted = [(0, 2, lines.concat())];
        assert_eq!(
            run(&compacted, FileActionKind::Adds).unwrap(),
            run(&commits, FileActionKind::Adds).unwrap()
        );
    }
}

#[test]
fn a_compaction_with_two_actions_of_a_file_is_refused_in_any_order() {
    for lines in [
        [add("a"), remove("a")],
        [remove("a"), add("a")],
        [add("a"), add("a")],
        [remove("a"), remove("a")],
    ] {
        let error = run(&[(0, 2, lines.concat())], FileActionKind::Adds).unwrap_err();
        assert!(
            error.is_corrupt()
                && error.to_string().contains("not reconciled")
                && error.to_string().contains("0-2"),
            "{error}"
        );
    }
    let escaped = [(0, 2, add("a%20b") + &remove("a b"))];
    assert!(
        run(&escaped, FileActionKind::Removes)
            .unwrap_err()
            .to_string()
            .contains("not reconciled")
    );
}

#[test]
fn a_compaction_with_two_actions_of_one_identity_is_refused() {
    let (protocol, metadata) = (
        r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
        r#"{"metaData":{"id":"i","format":{"provider":"parquet"},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{}}}"#,
    );
    let txn = |version: i64| format!("{{\"txn\":{{\"appId\":\"app\",\"version\":{version}}}}}");
    let domain = |text: &str| {
        format!(
            "{{\"domainMetadata\":{{\"domain\":\"d\",\"configuration\":\"{text}\",\"removed\":false}}}}"
        )
    };
    let of = |lines: &[&str]| segment(&[(0, 2, lines.join("\n"))]);
    let texts = Arc::new(CommitCache::default());
    let (sound, store) = of(&[protocol, metadata, &txn(1), &domain("x")]);
    assert!(!read_table_actions(&sound, &texts, &store).unwrap().1);
    assert_eq!(
        read_non_file_actions(&sound, &texts, &store)
            .unwrap()
            .transactions["app"]
            .version,
        1
    );
    for lines in [
        [protocol, metadata, protocol],
        [protocol, metadata, metadata],
    ] {
        let (twice, store) = of(&lines);
        assert!(
            read_table_actions(&twice, &texts, &store)
                .unwrap_err()
                .to_string()
                .contains("not reconciled")
        );
    }
    for lines in [
        [txn(2), txn(1)],
        [txn(1), txn(2)],
        [domain("x"), domain("y")],
    ] {
        let (twice, store) = of(&lines.each_ref().map(String::as_str));
        assert!(
            read_non_file_actions(&twice, &texts, &store)
                .unwrap_err()
                .to_string()
                .contains("not reconciled")
        );
    }
}

#[test]
fn a_commit_that_is_shorter_than_its_listing_says_is_an_error() {
    let text = add("a") + &add("b") + &add("c");
    for (extra, whole) in [(0, true), (1, false), (5 << 20, false), (1 << 45, false)] {
        let (mut segment, store) = segment(&[(0, 0, add("z")), (1, 1, text.clone())]);
        for commits in [&mut segment.commits, &mut segment.replay] {
            commits[1].file.size = Some(text.len() as u64 + extra);
        }
        let request = FileStreamRequest {
            kind: FileActionKind::Adds,
            wanted: Arc::new(FileActionProjection::default()),
            cancel: CancellationToken::default(),
        };
        let batches: crate::error::Result<Vec<_>> =
            super::files(&segment, &Arc::new(CommitCache::default()), &store, request)
                .unwrap()
                .collect();
        match batches {
            Ok(batches) => assert!(
                whole
                    && batches
                        .iter()
                        .map(crate::parse::FileBatch::len)
                        .sum::<usize>()
                        == 4
            ),
            Err(error) => assert!(
                !whole && error.is_corrupt() && error.context().unwrap().version == Some(1),
                "{error}"
            ),
        }
    }
}

#[test]
fn what_comes_of_a_stream_is_counted_and_checked_once_at_its_end() {
    let (segment, store) = segment(&[
        (0, 0, add("a") + &add("b") + &add("c")),
        (1, 1, remove("a")),
    ]);
    let stream = |fails: bool| {
        let request = FileStreamRequest {
            kind: FileActionKind::Adds,
            wanted: Arc::new(FileActionProjection::default()),
            cancel: CancellationToken::default(),
        };
        super::files(&segment, &Arc::new(CommitCache::default()), &store, request)
            .unwrap()
            .with_end_check(move |counts| {
                assert_eq!(
                    (counts.live.files, counts.live.bytes, counts.in_checkpoint),
                    (2, 2, 0)
                );
                if fails {
                    Err(crate::error::Error::corrupt("no"))
                } else {
                    Ok(())
                }
            })
    };
    assert!(stream(false).all(|batch| batch.is_ok()));
    assert_eq!(stream(true).filter(Result::is_err).count(), 1);
    assert_eq!(stream(true).finished(Ok).filter(Result::is_err).count(), 1);
    assert!(stream(true).read_to_end().is_err());
    assert!(
        stream(false)
            .read_to_end()
            .unwrap()
            .all(|batch| batch.is_ok())
    );
}

#[test]
fn a_large_commit_is_read_in_parts() {
    let long = "x".repeat(3000);
    let text: String = (0..9000).map(|n| add(&format!("{long}{n}"))).collect();
    assert!(text.len() > 24 << 20);
    assert_eq!(
        run(
            &[(0, 0, text), (1, 1, remove(&format!("{long}77")))],
            FileActionKind::Adds
        )
        .unwrap()
        .len(),
        8999
    );
}

#[test]
fn the_line_of_an_error_is_that_of_its_commit() {
    let error = run(
        &[
            (0, 0, add("a")),
            (1, 1, add("b") + "\n" + "oops\n"),
            (2, 2, add("c")),
        ],
        FileActionKind::Adds,
    )
    .unwrap_err();
    let place = error.context().unwrap();
    assert_eq!(
        (place.version, place.line, place.file.as_deref()),
        (Some(1), Some(3), Some("1-1"))
    );
}

#[test]
fn any_split_of_the_history_gives_the_same_table() {
    // Whether commits are parsed together or individually, the result equals that of a simple
    // replay.
    let mut live = std::collections::BTreeSet::new();
    let mut commits = Vec::new();
    for version in 0..600_i64 {
        let mut text = String::new();
        for n in 0..3 {
            let name = format!("f{}", (version * 7 + n * 13) % 50);
            if live.remove(&name) {
                text += &remove(&name);
            } else {
                live.insert(name.clone());
                text += &add(&name);
            }
        }
        commits.push((version, version, text));
    }
    assert_eq!(
        run(&commits, FileActionKind::Adds).unwrap(),
        live.into_iter().collect::<Vec<_>>()
    );
}
