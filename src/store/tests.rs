use super::*;

fn stores(root: &str, foreign: Foreign) -> Stores {
    Stores::new(open(root, &Options::new()).unwrap(), Options::new(), foreign)
}

#[test]
fn a_relative_path_stays_in_the_table() {
    let file = stores("/t", Foreign::Refused).file("a=1/./b/../c d.parquet", None).unwrap();
    assert_eq!((file.path.as_str(), file.url().as_str()), ("a=1/c d.parquet", "file:///t/a=1/c d.parquet"));
}

#[test]
fn climbing_and_other_stores_are_refused_unless_allowed() {
    let table = stores("/t", Foreign::Refused);
    for path in ["../x", "a/../../x", "s3://b/x", "http://h/x"] {
        let error = table.file(path, None).unwrap_err();
        assert!(error.to_string().contains("allow_foreign_paths"), "{error}");
    }
    assert_eq!(stores("/a/t", Foreign::Allowed).file("../x", None).unwrap().url(), "file:///a/x");
    assert!(stores("/t", Foreign::parse("memory://m/ok, s3://y")).file("memory://m/ok/x", None).is_ok());
    assert!(stores("/t", Foreign::parse("memory://m/ok, s3://y")).file("memory://m/no/x", None).is_err());
}

#[test]
fn absolute_paths_of_the_own_store_are_fine() {
    let file = stores("/t", Foreign::Refused).file("/u/x", None).unwrap();
    assert_eq!(file.url(), "file:///u/x");
    let file = stores("memory://m/t", Foreign::Refused).file("memory://m/u/x", None).unwrap();
    assert_eq!(file.url(), "memory://m/u/x");
    assert!(stores("memory://m/t", Foreign::Refused).file("file:///etc/passwd", None).is_err());
}

#[test]
fn a_local_directory_lists_sorted_from_a_name() {
    let root = std::env::temp_dir().join(format!("deltafast-store-{}", std::process::id()));
    std::fs::create_dir_all(root.join("d")).unwrap();
    for name in ["b", "a", "c"] {
        std::fs::write(root.join("d").join(name), name).unwrap();
    }
    let store = Local::new(root.clone());
    let names: Vec<_> = store.list_from("d", "a").unwrap().into_iter().map(|m| m.path).collect();
    assert_eq!(names, ["d/b", "d/c"]);
    assert!(store.list_from("missing", "").unwrap().is_empty());
    assert_eq!(store.get_ranges("d/b", std::iter::once(0..1).collect()).wait().unwrap()[0].as_ref(), b"b");
    assert!(store.get_ranges("d/b", std::iter::once(0..2).collect()).wait().is_err());
    assert!(store.get("d/zzz").wait().unwrap_err().is_not_found());
    std::fs::remove_dir_all(root).unwrap();
}

/// A folder of its own, gone when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("deltafast-{name}-{}", crate::exec::uuid()));
        std::fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.join(dir)).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
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
    let store = Local::new(folder.0.join("new/table")).watched(move |step| {
        seen.lock().unwrap().push(step);
        Ok(())
    });
    assert!(matches!(store.put_if_absent("_delta_log/0.json", "a".into(), Role::Essential).unwrap(), Put::Created));
    assert_eq!(*steps.lock().unwrap(), [Step::Write, Step::Sync, Step::Link, Step::SyncDirectory, Step::Unlink]);
    assert!(matches!(store.put_if_absent("_delta_log/0.json", "b".into(), Role::Essential).unwrap(), Put::Exists));
    assert_eq!(store.get("_delta_log/0.json").wait().unwrap().0.as_ref(), b"a");
    assert_eq!(folder.names("new/table/_delta_log"), ["0.json"]);
}

#[test]
fn a_step_that_fails_leaves_nothing_or_the_whole() {
    for (fails, visible) in [(Step::Write, false), (Step::Sync, false), (Step::Link, false), (Step::SyncDirectory, true)] {
        let folder = Folder::new("fails");
        let store = Local::new(folder.0.clone()).watched(move |step| if step == fails { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) });
        let put = store.put_if_absent("d/x", "abc".into(), Role::Essential);
        assert_eq!(folder.names("d"), if visible { vec!["x"] } else { vec![] }, "{fails:?}");
        match put {
            Err(error) => assert!(!visible && error.to_string().contains("no space left"), "{error}"),
            Ok(Put::Unsynced(_)) => assert!(visible),
            Ok(other) => panic!("{fails:?}: {other:?}"),
        }
    }
}

#[test]
fn of_twenty_writers_at_once_one_succeeds() {
    let folder = Folder::new("race");
    let stores: [Arc<dyn Store>; 2] = [Arc::new(Local::new(folder.0.clone())), open("memory://race/t", &Options::new()).unwrap()];
    for store in stores {
        for round in 0..20 {
            let path = format!("_delta_log/{round:020}.json");
            let outcomes: Vec<(usize, bool)> = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..20)
                    .map(|n| {
                        let (store, path) = (Arc::clone(&store), path.clone());
                        scope.spawn(move || (n, matches!(store.put_if_absent(&path, format!("{n}").into(), Role::Essential).unwrap(), Put::Created)))
                    })
                    .collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            let winners: Vec<usize> = outcomes.iter().filter(|(_, won)| *won).map(|(n, _)| *n).collect();
            assert_eq!(winners.len(), 1, "{outcomes:?}");
            assert_eq!(store.get(&path).wait().unwrap().0.as_ref(), winners[0].to_string().as_bytes());
        }
    }
    assert_eq!(folder.names("_delta_log").len(), 20);
}

#[test]
fn deleting_what_is_not_there_is_no_failure() {
    let folder = Folder::new("delete");
    for store in [Arc::new(Local::new(folder.0.clone())) as Arc<dyn Store>, open("memory://delete/t", &Options::new()).unwrap()] {
        store.put_if_absent("a", "1".into(), Role::Essential).unwrap();
        store.put_if_absent("d/b", "1".into(), Role::Essential).unwrap();
        assert!(store.delete_batch(&["a".to_owned(), "nothing".to_owned(), "d/b".to_owned()]).unwrap().is_empty());
        assert!(store.get("a").wait().unwrap_err().is_not_found() && store.get("d/b").wait().unwrap_err().is_not_found());
    }
}

#[cfg(feature = "http")]
#[test]
fn a_plain_http_server_can_only_be_read() {
    let store = open("http://localhost:1/t", &Options::new()).unwrap();
    let error = store.put_if_absent("x", Bytes::new(), Role::Essential).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { .. }) && error.to_string().contains("only be read"), "{error}");
}

#[test]
fn a_new_file_appears_when_it_is_finished_and_is_never_replaced() {
    let root = std::env::temp_dir().join(format!("deltafast-upload-{}", std::process::id()));
    let store = Local::new(root.clone());
    let mut upload = store.upload("a/b/x.bin", Role::Essential).unwrap();
    upload.write(b"one").unwrap();
    upload.write(b"two").unwrap();
    assert!(store.head("a/b/x.bin").unwrap_err().is_not_found());
    let meta = upload.finish().wait().unwrap();
    assert_eq!((meta.path.as_str(), meta.size), ("a/b/x.bin", 6));
    assert_eq!(store.get("a/b/x.bin").wait().unwrap().0.as_ref(), b"onetwo");

    let mut again = store.upload("a/b/x.bin", Role::Essential).unwrap();
    again.write(b"three").unwrap();
    let error = again.finish().wait().unwrap_err();
    assert!(error.to_string().contains("never replaced"), "{error}");
    assert_eq!(store.get("a/b/x.bin").wait().unwrap().0.as_ref(), b"onetwo");

    drop(store.upload("a/b/y.bin", Role::Essential).unwrap());
    let left: Vec<_> = std::fs::read_dir(root.join("a/b")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["x.bin"], "nothing of what failed or was dropped stays");
    for _ in 0..2 {
        assert!(store.delete_batch(&["a/b/x.bin".to_owned()]).unwrap().is_empty());
    }
    assert!(store.head("a/b/x.bin").unwrap_err().is_not_found());
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn large_objects_go_in_parts_and_small_ones_whole() {
    let store = open("memory:///upload-parts", &Options::default()).unwrap();
    for size in [0, 5, (8 << 20) - 1, 8 << 20, (8 << 20) + 1, 45 << 20] {
        let bytes: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let mut upload = store.upload("o", Role::Essential).unwrap();
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
    for store in [Arc::new(Local::new(folder.0.clone())) as Arc<dyn Store>, open("memory://ranges/t", &Options::new()).unwrap()] {
        store.put_if_absent("a", "12345".into(), Role::Essential).unwrap();
        assert_eq!(store.get_ranges("a", vec![0..5, 3..5]).wait().unwrap(), ["12345", "45"]);
        for ranges in [vec![0..1, 3..6], vec![0..1, 4..9], vec![5..6, 0..2]] {
            let error = store.get_ranges("a", ranges.clone()).wait().unwrap_err();
            assert!(!error.is_not_found(), "{ranges:?}: {error}");
        }
    }
}

#[test]
fn deletions_are_told_of_object_by_object() {
    let store = open("memory://many-deletions/t", &Options::new()).unwrap();
    let paths: Vec<String> = (0..2_500).map(|n| format!("d/{n}")).collect();
    for path in &paths {
        store.put_if_absent(path, "1".into(), Role::Derived).unwrap();
    }
    store.put_if_absent("kept", "1".into(), Role::Derived).unwrap();
    assert!(store.delete_batch(&paths).unwrap().is_empty());
    assert!(store.list_from("d", "").unwrap().is_empty() && store.head("kept").is_ok());
}

fn quick() -> CheckOptions {
    CheckOptions { rounds: 3, writers: 4, objects: 20 }
}

fn verdict(checked: &Checked, name: &str) -> Verdict {
    checked.findings.iter().find(|finding| finding.name == name).unwrap().verdict
}

#[test]
fn a_check_leaves_nothing_behind() {
    let folder = Folder::new("check");
    for store in [Arc::new(Local::new(folder.0.clone())) as Arc<dyn Store>, open("memory://check/t", &Options::new()).unwrap()] {
        let checked = check(&store, &quick(), &crate::exec::Cancel::default()).unwrap();
        assert!(checked.safe && checked.findings.iter().all(|finding| finding.verdict == Verdict::Passed), "{checked:?}");
        let left = store.list_folder("", &|_| true).unwrap();
        assert!(left.objects.is_empty() && left.folders.is_empty(), "{left:?}");
    }
}

#[test]
fn a_check_that_is_cancelled_leaves_nothing_behind() {
    let folder = Folder::new("check-cancelled");
    let cancel = crate::exec::Cancel::default();
    let (asked, inner) = (cancel.clone(), Arc::new(Local::new(folder.0.clone())));
    let store: Arc<dyn Store> = Arc::new(fault::FaultStore::new(inner, move |call| {
        if call.path.contains("/pages/") {
            asked.cancel();
        }
        None
    }));
    assert!(matches!(check(&store, &quick(), &cancel), Err(Error::Cancelled)));
    assert!(folder.names("").is_empty());
}

#[test]
fn a_check_tells_what_a_store_does_wrong() {
    use fault::{Call, Fault, FaultStore, Operation};
    let run = |plan: fn(&Call) -> Option<Fault>| {
        let store: Arc<dyn Store> = Arc::new(FaultStore::new(open(&format!("memory://{}/t", crate::exec::uuid()), &Options::new()).unwrap(), plan));
        check(&store, &quick(), &crate::exec::Cancel::default()).unwrap()
    };
    let stale = run(|call| (call.operation == Operation::List && call.path.ends_with("/list")).then_some(Fault::Stale));
    assert!(!stale.safe && verdict(&stale, "list after write") == Verdict::Unsafe, "{stale:?}");
    let torn = run(|call| (call.operation == Operation::Get && call.path.contains("/read/")).then_some(Fault::TornRead));
    assert!(!torn.safe && verdict(&torn, "read after write") == Verdict::Unsafe);
    let refusing = run(|call| (call.operation == Operation::Delete).then_some(Fault::Status(503)));
    assert!(refusing.safe && verdict(&refusing, "delete") == Verdict::Failed);
    assert!(refusing.findings.last().unwrap().detail.contains("is left behind"));
    let lists_badly = run(|call| (call.operation == Operation::List).then_some(Fault::ErrorBefore));
    assert!(!lists_badly.safe && verdict(&lists_badly, "ordered listing") == Verdict::Unsafe && verdict(&lists_badly, "put-if-absent") == Verdict::Passed);
    // Lost answers are what commits are made for.
    let losing = run(|call| (call.operation == Operation::PutIfAbsent && call.number % 3 == 0).then_some(Fault::LostAnswer));
    assert!(losing.safe, "{losing:?}");
}
