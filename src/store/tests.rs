use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::error::Error;

fn stores(root: &str, foreign: ExternalPaths) -> TableStores {
    TableStores::new(
        open(root, &StorageOptions::new()).unwrap(),
        StorageOptions::new(),
        foreign,
    )
}

#[test]
fn a_relative_path_stays_in_the_table() {
    let file = stores("/t", ExternalPaths::Refused)
        .file("a=1/./b/../c d.parquet", None)
        .unwrap();
    assert_eq!(
        (file.path.as_str(), file.url().as_str()),
        ("a=1/c d.parquet", "file:///t/a=1/c d.parquet")
    );
}

#[test]
fn climbing_and_other_stores_are_refused_unless_allowed() {
    let table = stores("/t", ExternalPaths::Refused);
    for path in ["../x", "a/../../x", "s3://b/x", "http://h/x"] {
        let error = table.file(path, None).unwrap_err();
        assert!(
            error.to_string().contains("allow_external_paths"),
            "{error}"
        );
    }
    assert_eq!(
        stores("/a/t", ExternalPaths::Allowed)
            .file("../x", None)
            .unwrap()
            .url(),
        "file:///a/x"
    );
    assert!(
        stores("/t", ExternalPaths::parse("memory://m/ok, s3://y"))
            .file("memory://m/ok/x", None)
            .is_ok()
    );
    assert!(
        stores("/t", ExternalPaths::parse("memory://m/ok, s3://y"))
            .file("memory://m/no/x", None)
            .is_err()
    );
}

#[test]
fn absolute_paths_of_the_own_store_are_fine() {
    let file = stores("/t", ExternalPaths::Refused)
        .file("/u/x", None)
        .unwrap();
    assert_eq!(file.url(), "file:///u/x");
    let file = stores("memory://m/t", ExternalPaths::Refused)
        .file("memory://m/u/x", None)
        .unwrap();
    assert_eq!(file.url(), "memory://m/u/x");
    assert!(
        stores("memory://m/t", ExternalPaths::Refused)
            .file("file:///etc/passwd", None)
            .is_err()
    );
}

#[test]
fn a_local_directory_lists_sorted_from_a_name() {
    let root = std::env::temp_dir().join(format!("deltafast-store-{}", std::process::id()));
    std::fs::create_dir_all(root.join("d")).unwrap();
    for name in ["b", "a", "c"] {
        std::fs::write(root.join("d").join(name), name).unwrap();
    }
    let store = LocalStore::new(root.clone());
    let names: Vec<_> = store
        .list_from("d", "a")
        .unwrap()
        .into_iter()
        .map(|m| m.path)
        .collect();
    assert_eq!(names, ["d/b", "d/c"]);
    assert!(store.list_from("missing", "").unwrap().is_empty());
    assert_eq!(
        store
            .get_ranges("d/b", std::iter::once(0..1).collect())
            .wait()
            .unwrap()[0]
            .as_ref(),
        b"b"
    );
    assert!(
        store
            .get_ranges("d/b", std::iter::once(0..2).collect())
            .wait()
            .is_err()
    );
    assert!(store.get("d/zzz").wait().unwrap_err().is_not_found());
    std::fs::remove_dir_all(root).unwrap();
}

/// A temporary folder, removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("deltafast-{name}-{}", crate::exec::uuid()));
        std::fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.join(dir))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_commit_is_durable_before_success_is_reported() {
    let folder = Folder::new("order");
    let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let store = LocalStore::new(folder.0.join("new/table")).with_put_observer(move |step| {
        seen.lock().unwrap().push(step);
        Ok(())
    });
    assert!(matches!(
        store
            .put_if_absent("_delta_log/0.json", "a".into(), ObjectRole::Essential)
            .unwrap(),
        PutOutcome::Created
    ));
    assert_eq!(
        *steps.lock().unwrap(),
        [
            LocalPutStep::Write,
            LocalPutStep::Sync,
            LocalPutStep::Link,
            LocalPutStep::Linked,
            LocalPutStep::SyncDirectory,
            LocalPutStep::Unlink
        ]
    );
    assert!(matches!(
        store
            .put_if_absent("_delta_log/0.json", "b".into(), ObjectRole::Essential)
            .unwrap(),
        PutOutcome::Exists
    ));
    assert_eq!(
        store.get("_delta_log/0.json").wait().unwrap().0.as_ref(),
        b"a"
    );
    assert_eq!(folder.names("new/table/_delta_log"), ["0.json"]);
}

#[test]
fn a_step_that_fails_leaves_nothing_or_the_whole() {
    for (fails, visible) in [
        (LocalPutStep::Write, false),
        (LocalPutStep::Sync, false),
        (LocalPutStep::Link, false),
        (LocalPutStep::SyncDirectory, true),
    ] {
        let folder = Folder::new("fails");
        let store = LocalStore::new(folder.0.clone()).with_put_observer(move |step| {
            if step == fails {
                Err(std::io::ErrorKind::StorageFull.into())
            } else {
                Ok(())
            }
        });
        let put = store.put_if_absent("d/x", "abc".into(), ObjectRole::Essential);
        assert_eq!(
            folder.names("d"),
            if visible { vec!["x"] } else { vec![] },
            "{fails:?}"
        );
        match put {
            Err(error) => assert!(
                !visible && error.to_string().contains("no space left"),
                "{error}"
            ),
            Ok(PutOutcome::Unsynced(_)) => assert!(visible),
            Ok(other) => panic!("{fails:?}: {other:?}"),
        }
    }
}

#[cfg(unix)]
#[test]
fn a_name_that_was_given_though_the_answer_is_an_error_counts() {
    let errors = [
        libc::EIO,
        libc::ETIMEDOUT,
        libc::EACCES,
        libc::EPERM,
        libc::EEXIST,
        libc::ESTALE,
        libc::EOPNOTSUPP,
    ];
    for code in errors {
        let folder = Folder::new("linked");
        let fail = move |step| {
            if step == LocalPutStep::Linked {
                Err(std::io::Error::from_raw_os_error(code))
            } else {
                Ok(())
            }
        };
        let store = LocalStore::new(folder.0.clone()).with_put_observer(fail);
        let put = store
            .put_if_absent("d/x", "abc".into(), ObjectRole::Essential)
            .unwrap();
        assert!(matches!(put, PutOutcome::Created), "{code}: {put:?}");
        assert_eq!(folder.names("d"), ["x"]);
        assert_eq!(store.get("d/x").wait().unwrap().0.as_ref(), b"abc");
    }
}

#[cfg(unix)]
#[test]
fn a_name_that_cannot_be_seen_after_an_error_is_not_known() {
    for (code, is_refused) in [
        (libc::EIO, false),
        (libc::ETIMEDOUT, false),
        (libc::ESTALE, false),
        (libc::EROFS, true),
        (libc::ENOSPC, true),
    ] {
        let folder = Folder::new("unseen");
        let (seen, hidden) = (folder.0.join("d/x"), folder.0.join("elsewhere"));
        // As with a network file system's cache: the name exists, but is not visible from here.
        let fail = move |step| {
            if step == LocalPutStep::Linked {
                std::fs::rename(&seen, &hidden)?;
                return Err(std::io::Error::from_raw_os_error(code));
            }
            Ok(())
        };
        let put = LocalStore::new(folder.0.clone())
            .with_put_observer(fail)
            .put_if_absent("d/x", "abc".into(), ObjectRole::Essential)
            .unwrap();
        match &put {
            PutOutcome::Refused(error) => assert!(
                is_refused && error.to_string().contains("d/x"),
                "{code}: {error}"
            ),
            PutOutcome::Unknown(error) => assert!(
                !is_refused && error.to_string().contains("cannot write"),
                "{code}: {error}"
            ),
            _ => panic!("{code}: {put:?}"),
        }
        assert!(folder.names("d").is_empty());
    }
}

#[test]
fn nothing_outside_of_the_root_is_deleted() {
    let folder = Folder::new("inside");
    let victims = ["victim/f", "f", "t2/f"];
    for path in ["victim", "t", "t2"] {
        std::fs::create_dir_all(folder.0.join(path)).unwrap();
    }
    for path in victims.iter().chain(&["t/f"]) {
        std::fs::write(folder.0.join(path), "1").unwrap();
    }
    let absolute = folder.0.join("victim/f").to_str().unwrap().to_owned();
    let paths = [
        "../victim/f",
        "../f",
        "a/../../f",
        "./f",
        "/f",
        "..",
        ".",
        "",
        "a//f",
        "../t2/f",
        "file:///f",
        absolute.as_str(),
        "f\0",
    ];
    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
    for store in [
        Arc::new(LocalStore::new(folder.0.join("t"))) as Arc<dyn Store>,
        open("memory://inside/t", &StorageOptions::new()).unwrap(),
    ] {
        if !store.url().starts_with("file:") {
            let around = open("memory://inside/", &StorageOptions::new()).unwrap();
            for path in victims.iter().chain(&["t/f"]) {
                around
                    .put_if_absent(path, "1".into(), ObjectRole::Essential)
                    .unwrap();
            }
        }
        let mut all = paths.clone();
        all.insert(3, "f".to_owned());
        let refused = store.delete_batch(&all).unwrap();
        assert_eq!(
            refused.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            paths.iter().collect::<Vec<_>>()
        );
        assert!(
            refused
                .iter()
                .all(|(_, error)| error.to_string().contains("is not inside")),
            "{refused:?}"
        );
        assert!(store.head("f").unwrap_err().is_not_found());
        assert!(
            paths
                .iter()
                .filter(|path| !path.is_empty())
                .all(|path| !store.owns(path))
        );
        let around = store.authority_root().unwrap();
        let above = if store.url().starts_with("file:") {
            folder
                .0
                .to_str()
                .unwrap()
                .trim_start_matches('/')
                .to_owned()
                + "/"
        } else {
            String::new()
        };
        for path in victims {
            assert!(around.head(&format!("{above}{path}")).is_ok(), "{path}");
        }
    }
    LocalStore::new(folder.0.join("t"))
        .remove_folder("../t2")
        .unwrap();
    assert_eq!(folder.names("t2"), ["f"]);
}

#[cfg(unix)]
#[test]
fn a_deletion_follows_no_link_below_the_root() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("links");
    for path in ["table/own/deep", "outside/deep"] {
        std::fs::create_dir_all(folder.0.join(path)).unwrap();
    }
    for path in [
        "table/own/f",
        "table/own/deep/f",
        "table/g",
        "outside/f",
        "outside/deep/f",
        "outside/g",
    ] {
        std::fs::write(folder.0.join(path), "1").unwrap();
    }
    symlink("../outside", folder.0.join("table/link")).unwrap();
    symlink(
        folder.0.join("outside/deep"),
        folder.0.join("table/own/link"),
    )
    .unwrap();
    symlink("../outside/g", folder.0.join("table/file-link")).unwrap();
    // The root itself may be a link.
    symlink("table", folder.0.join("t")).unwrap();
    let store = LocalStore::new(folder.0.join("t"));
    let paths = [
        "link/f",
        "link/deep/f",
        "own/f",
        "own/link/f",
        "own/deep/f",
        "own/gone/f",
        "g/f",
        "file-link",
        "g",
    ]
    .map(ToOwned::to_owned);
    let failed = store.delete_batch(&paths).unwrap();
    let names: Vec<&str> = failed.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        names,
        ["link/f", "link/deep/f", "own/link/f", "g/f"],
        "{failed:?}"
    );
    assert!(
        failed.iter().take(3).all(|(_, error)| error
            .to_string()
            .contains("is a link, which is not followed")),
        "{failed:?}"
    );
    assert_eq!(folder.names("outside"), ["deep", "f", "g"]);
    assert_eq!(folder.names("outside/deep"), ["f"]);
    assert_eq!(folder.names("table"), ["link", "own"]);
    assert_eq!(folder.names("table/own"), ["deep", "link"]);
    assert!(store.owns("") && store.owns("own/deep") && store.owns("own/gone"));
    assert!(!store.owns("link") && !store.owns("link/deep") && !store.owns("own/link"));
    store.remove_folder("own/deep").unwrap();
    assert!(store.remove_folder("own/link").is_err() && store.remove_folder("link/deep").is_err());
    assert_eq!(folder.names("table/own"), ["link"]);
    assert!(
        LocalStore::new(folder.0.join("no-table"))
            .delete_batch(&paths)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn of_twenty_writers_at_once_one_succeeds() {
    let folder = Folder::new("race");
    let stores: [Arc<dyn Store>; 2] = [
        Arc::new(LocalStore::new(folder.0.clone())),
        open("memory://race/t", &StorageOptions::new()).unwrap(),
    ];
    for store in stores {
        for round in 0..20 {
            let path = format!("_delta_log/{round:020}.json");
            let outcomes: Vec<(usize, bool)> = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..20)
                    .map(|n| {
                        let (store, path) = (Arc::clone(&store), path.clone());
                        scope.spawn(move || {
                            (
                                n,
                                matches!(
                                    store
                                        .put_if_absent(
                                            &path,
                                            format!("{n}").into(),
                                            ObjectRole::Essential
                                        )
                                        .unwrap(),
                                    PutOutcome::Created
                                ),
                            )
                        })
                    })
                    .collect();
                racers
                    .into_iter()
                    .map(|racer| racer.join().unwrap())
                    .collect()
            });
            let winners: Vec<usize> = outcomes
                .iter()
                .filter(|(_, won)| *won)
                .map(|(n, _)| *n)
                .collect();
            assert_eq!(winners.len(), 1, "{outcomes:?}");
            assert_eq!(
                store.get(&path).wait().unwrap().0.as_ref(),
                winners[0].to_string().as_bytes()
            );
        }
    }
    assert_eq!(folder.names("_delta_log").len(), 20);
}

#[test]
fn deleting_what_is_not_there_is_no_failure() {
    let folder = Folder::new("delete");
    for store in [
        Arc::new(LocalStore::new(folder.0.clone())) as Arc<dyn Store>,
        open("memory://delete/t", &StorageOptions::new()).unwrap(),
    ] {
        store
            .put_if_absent("a", "1".into(), ObjectRole::Essential)
            .unwrap();
        store
            .put_if_absent("d/b", "1".into(), ObjectRole::Essential)
            .unwrap();
        assert!(
            store
                .delete_batch(&["a".to_owned(), "nothing".to_owned(), "d/b".to_owned()])
                .unwrap()
                .is_empty()
        );
        assert!(
            store.get("a").wait().unwrap_err().is_not_found()
                && store.get("d/b").wait().unwrap_err().is_not_found()
        );
    }
}

#[cfg(feature = "http")]
#[test]
fn a_plain_http_server_can_only_be_read() {
    let store = open("http://localhost:1/t", &StorageOptions::new()).unwrap();
    let error = store
        .put_if_absent("x", Bytes::new(), ObjectRole::Essential)
        .unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported { .. }) && error.to_string().contains("only be read"),
        "{error}"
    );
}

#[test]
fn a_new_file_appears_when_it_is_finished_and_is_never_replaced() {
    let root = std::env::temp_dir().join(format!("deltafast-upload-{}", std::process::id()));
    let store = LocalStore::new(root.clone());
    let mut upload = store.upload("a/b/x.bin", ObjectRole::Essential).unwrap();
    upload.write(b"one").unwrap();
    upload.write(b"two").unwrap();
    assert!(store.head("a/b/x.bin").unwrap_err().is_not_found());
    let meta = upload.finish().wait().unwrap();
    assert_eq!((meta.path.as_str(), meta.size), ("a/b/x.bin", 6));
    assert_eq!(store.get("a/b/x.bin").wait().unwrap().0.as_ref(), b"onetwo");

    let mut again = store.upload("a/b/x.bin", ObjectRole::Essential).unwrap();
    again.write(b"three").unwrap();
    let error = again.finish().wait().unwrap_err();
    assert!(error.to_string().contains("never replaced"), "{error}");
    assert_eq!(store.get("a/b/x.bin").wait().unwrap().0.as_ref(), b"onetwo");

    drop(store.upload("a/b/y.bin", ObjectRole::Essential).unwrap());
    let left: Vec<_> = std::fs::read_dir(root.join("a/b"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(
        left,
        ["x.bin"],
        "nothing of what failed or was dropped stays"
    );
    for _ in 0..2 {
        assert!(
            store
                .delete_batch(&["a/b/x.bin".to_owned()])
                .unwrap()
                .is_empty()
        );
    }
    assert!(store.head("a/b/x.bin").unwrap_err().is_not_found());
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn large_objects_go_in_parts_and_small_ones_whole() {
    let store = open("memory:///upload-parts", &StorageOptions::default()).unwrap();
    for size in [0, 5, (8 << 20) - 1, 8 << 20, (8 << 20) + 1, 45 << 20] {
        let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let mut upload = store.upload("o", ObjectRole::Essential).unwrap();
        for piece in bytes.chunks(3_000_001) {
            upload.write(piece).unwrap();
        }
        assert_eq!(upload.finish().wait().unwrap().size, size as u64);
        assert!(store.get("o").wait().unwrap().0.as_ref() == bytes, "{size}");
    }
    for _ in 0..2 {
        assert!(store.delete_batch(&["o".to_owned()]).unwrap().is_empty());
    }
    assert!(store.head("o").unwrap_err().is_not_found());
}

#[test]
fn a_range_beyond_the_end_is_an_error_everywhere() {
    let folder = Folder::new("ranges");
    for store in [
        Arc::new(LocalStore::new(folder.0.clone())) as Arc<dyn Store>,
        open("memory://ranges/t", &StorageOptions::new()).unwrap(),
    ] {
        store
            .put_if_absent("a", "12345".into(), ObjectRole::Essential)
            .unwrap();
        assert_eq!(
            store.get_ranges("a", vec![0..5, 3..5]).wait().unwrap(),
            ["12345", "45"]
        );
        for ranges in [vec![0..1, 3..6], vec![0..1, 4..9], vec![5..6, 0..2]] {
            let error = store.get_ranges("a", ranges.clone()).wait().unwrap_err();
            assert!(!error.is_not_found(), "{ranges:?}: {error}");
        }
    }
}

#[test]
fn deletions_are_told_of_object_by_object() {
    let store = open("memory://many-deletions/t", &StorageOptions::new()).unwrap();
    let paths: Vec<String> = (0..2_500).map(|n| format!("d/{n}")).collect();
    for path in &paths {
        store
            .put_if_absent(path, "1".into(), ObjectRole::Derived)
            .unwrap();
    }
    store
        .put_if_absent("kept", "1".into(), ObjectRole::Derived)
        .unwrap();
    assert!(store.delete_batch(&paths).unwrap().is_empty());
    assert!(store.list_from("d", "").unwrap().is_empty() && store.head("kept").is_ok());
}

fn quick() -> CheckOptions {
    CheckOptions {
        rounds: 3,
        writers: 4,
        objects: 20,
    }
}

fn verdict(checked: &StoreCheckReport, name: &str) -> ProbeVerdict {
    checked
        .findings
        .iter()
        .find(|finding| finding.name == name)
        .unwrap()
        .verdict
}

#[test]
fn a_check_leaves_nothing_behind() {
    let folder = Folder::new("check");
    for store in [
        Arc::new(LocalStore::new(folder.0.clone())) as Arc<dyn Store>,
        open("memory://check/t", &StorageOptions::new()).unwrap(),
    ] {
        let checked = check(&store, &quick(), &crate::exec::CancellationToken::default()).unwrap();
        assert!(
            checked.safe
                && checked
                    .findings
                    .iter()
                    .all(|finding| finding.verdict == ProbeVerdict::Passed),
            "{checked:?}"
        );
        let left = store.list_folder("", &|_| true).unwrap();
        assert!(
            left.objects.is_empty() && left.folders.is_empty(),
            "{left:?}"
        );
    }
}

#[test]
fn a_check_that_is_cancelled_leaves_nothing_behind() {
    let folder = Folder::new("check-cancelled");
    let cancel = crate::exec::CancellationToken::default();
    let (asked, inner) = (cancel.clone(), Arc::new(LocalStore::new(folder.0.clone())));
    let store: Arc<dyn Store> = Arc::new(fault::FaultStore::new(inner, move |call| {
        if call.path.contains("/pages/") {
            asked.cancel();
        }
        None
    }));
    assert!(matches!(
        check(&store, &quick(), &cancel),
        Err(Error::Cancelled)
    ));
    assert!(folder.names("").is_empty());
}

#[test]
fn a_check_tells_what_a_store_does_wrong() {
    use fault::{FaultStore, InjectedFault, StoreCall, StoreOperation};
    let run = |plan: fn(&StoreCall) -> Option<InjectedFault>| {
        let store: Arc<dyn Store> = Arc::new(FaultStore::new(
            open(
                &format!("memory://{}/t", crate::exec::uuid()),
                &StorageOptions::new(),
            )
            .unwrap(),
            plan,
        ));
        check(&store, &quick(), &crate::exec::CancellationToken::default()).unwrap()
    };
    let stale = run(|call| {
        (call.operation == StoreOperation::List && call.path.ends_with("/list"))
            .then_some(InjectedFault::Stale)
    });
    assert!(
        !stale.safe && verdict(&stale, "list after write") == ProbeVerdict::Unsafe,
        "{stale:?}"
    );
    let torn = run(|call| {
        (call.operation == StoreOperation::Get && call.path.contains("/read/"))
            .then_some(InjectedFault::TornRead)
    });
    assert!(!torn.safe && verdict(&torn, "read after write") == ProbeVerdict::Unsafe);
    let refusing = run(|call| {
        (call.operation == StoreOperation::Delete).then_some(InjectedFault::Status(503))
    });
    assert!(refusing.safe && verdict(&refusing, "delete") == ProbeVerdict::Failed);
    assert!(
        refusing
            .findings
            .last()
            .unwrap()
            .detail
            .contains("is left behind")
    );
    let lists_badly =
        run(|call| (call.operation == StoreOperation::List).then_some(InjectedFault::ErrorBefore));
    assert!(
        !lists_badly.safe
            && verdict(&lists_badly, "ordered listing") == ProbeVerdict::Unsafe
            && verdict(&lists_badly, "put-if-absent") == ProbeVerdict::Passed
    );
    // Commits are designed for lost answers.
    let losing = run(|call| {
        (call.operation == StoreOperation::PutIfAbsent && call.number % 3 == 0)
            .then_some(InjectedFault::LostAnswer)
    });
    assert!(losing.safe, "{losing:?}");
}
