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
    assert_eq!(stores("/t", Foreign::Allowed).file("../x", None).unwrap().path, "../x");
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
