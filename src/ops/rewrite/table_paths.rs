//! Paths of the log as paths relative to the table root.

use std::borrow::Cow;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::dv::DvPath;
use crate::protocol::data_path;
use crate::store::{TablePath, TableStores};

/// Resolves paths of the log to paths relative to the table root.
#[derive(Debug, Clone)]
pub(in crate::ops) struct TablePathResolver {
    stores: Arc<TableStores>,
    /// The root's decoded URL; on a local disk also with symbolic links resolved.
    roots: Vec<String>,
}

impl TablePathResolver {
    pub(in crate::ops) fn new(stores: &Arc<TableStores>) -> Self {
        let url = percent_decoded(stores.root().url());
        let real = url
            .strip_prefix("file://")
            .and_then(|path| std::fs::canonicalize(path).ok());
        let real = real.and_then(|path| path.to_str().map(|path| format!("file://{path}/")));
        let roots = std::iter::once(url).chain(real).collect();
        Self {
            stores: Arc::clone(stores),
            roots,
        }
    }

    /// The relative path of a data file, given its path in the log; `None` for a file outside of
    /// the table root.
    pub(in crate::ops) fn resolve_log_path<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        self.resolve_canonical(data_path::canonical(path).ok()?)
    }

    fn resolve_canonical<'a>(&self, canonical: Cow<'a, str>) -> Option<Cow<'a, str>> {
        if is_simple_relative_path(&canonical) {
            return Some(canonical);
        }
        self.resolve_in_stores(&canonical)
            .filter(|place| TablePath::is_inside(place))
            .map(Cow::Owned)
    }

    fn resolve_in_stores(&self, canonical: &str) -> Option<String> {
        let file = self.stores.file(canonical, None).ok()?;
        if Arc::ptr_eq(&file.store, self.stores.root()) {
            return Some(file.path);
        }
        let url = format!("{}{}", percent_decoded(file.store.url()), file.path);
        if let Some(place) = self.strip_root(&url) {
            return Some(place);
        }
        // An absolute path may lead here through a symbolic link.
        let real = std::fs::canonicalize(url.strip_prefix("file://")?).ok()?;
        self.strip_root(&format!("file://{}", real.to_str()?))
    }

    fn strip_root(&self, url: &str) -> Option<String> {
        self.roots
            .iter()
            .find_map(|root| url.strip_prefix(root.as_str()))
            .map(ToOwned::to_owned)
    }

    /// The relative path of a deletion vector's file; its prefix may contain any path.
    pub(in crate::ops) fn resolve_deletion_vector<'a>(
        &self,
        path: &'a DvPath,
    ) -> Option<Cow<'a, str>> {
        match path {
            DvPath::InTable(path) => self.resolve_canonical(Cow::Borrowed(path)),
            DvPath::Given(path) => self.resolve_log_path(path),
        }
    }
}

fn percent_decoded(url: &str) -> String {
    percent_decode_str(url).decode_utf8_lossy().into_owned()
}

/// Whether a canonical path is relative and has no parts such as `..` to resolve. (`//` is part of
/// a URL.)
fn is_simple_relative_path(path: &str) -> bool {
    !path.starts_with(['/', '.'])
        && !path.contains("/.")
        && !path.contains("//")
        && TablePath::is_inside(path)
}
