//! Paths that may be deleted: below a store's root, by their names alone.
//!
//! A log can name any path, and `..`, an absolute path or an empty part would direct a deletion out
//! of the table. The type proves that this was checked: stores delete nothing else.

/// A path below a store's root, each part of which is a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TablePath(String);

impl TablePath {
    /// `path`, unless it may lead out of the root or means the root itself.
    #[must_use]
    pub fn new(path: &str) -> Option<Self> {
        Self::is_inside(path).then(|| Self(path.to_owned()))
    }

    /// Whether [`TablePath::new`] accepts a path.
    #[must_use]
    pub fn is_inside(path: &str) -> bool {
        let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        // A drive, a server or a backslash has a meaning on Windows only.
        let is_local_name = |part: &str| {
            let mut parts = std::path::Path::new(part).components();
            matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none()
        };
        path.split('/')
            .all(|part| is_name(part) && (cfg!(not(windows)) || is_local_name(part)))
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of its folder, `""` for the root, and its name in it.
    #[must_use]
    pub fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_root_are_inside() {
        for path in [
            "a",
            "a/b.parquet",
            "p=a:b/..c/...d",
            ".hidden",
            "_delta_log/0.json",
            "a b/%2e%2e",
        ] {
            assert_eq!(TablePath::new(path).unwrap().as_str(), path);
        }
        for path in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/./b",
            "a/..",
            "s3://b/a",
            "file:///a",
            "a\0b",
        ] {
            assert!(TablePath::new(path).is_none(), "{path}");
        }
        assert_eq!(TablePath::new("a/b/c").unwrap().split(), ("a/b", "c"));
        assert_eq!(TablePath::new("c").unwrap().split(), ("", "c"));
    }
}
