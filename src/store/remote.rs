//! All stores that `object_store` supports: S3, Azure, GCS, HTTP, memory.
//!
//! S3, Azure and GCS can list a single folder, from a name on. Directory buckets of S3 and stores
//! in memory do not support such a request here: their listing includes subfolders (such as
//! `_sidecars`), whose objects are filtered out afterwards.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{ListResult, ObjectStore, ObjectStoreExt, PutOptions};

use super::remote_error::{failed, failure};
use super::single_attempt::{SingleAttempt, is_refusal};
use super::upload::RemoteUpload;
use super::{
    FolderListing, LONGEST_OBJECT, ObjectMeta, ObjectRole, ObjectUpload, PendingResult, PutOutcome,
    Store, TablePath, check_length, outside_table_error,
};
use crate::error::{Error, Result};
use crate::exec;

/// A service with its capabilities for listings.
#[derive(Clone)]
pub(super) struct ObjectService {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Lists a single folder, if the service supports it.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// Objects that are deleted by one request.
    pub(super) batch: usize,
}

impl std::fmt::Debug for ObjectService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}

/// Delete requests in flight at once.
const BATCHES_AT_ONCE: usize = 4;
/// The wait before one is repeated.
const DELETE_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);

/// Whether and how commits may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PutIfAbsentSupport {
    /// By a conditional request.
    Conditional,
    /// By an existence check first: two concurrent writers may both believe that they have
    /// committed.
    Unsafe,
    /// Not at all, for this reason.
    Refused(String),
}

/// A prefix of an object store.
#[derive(Debug, Clone)]
pub(super) struct RemoteStore {
    inner: ObjectService,
    prefix: Path,
    url: String,
    can_list: bool,
    commits: PutIfAbsentSupport,
}

impl RemoteStore {
    pub(super) fn new(
        inner: ObjectService,
        prefix: Path,
        mut url: String,
        can_list: bool,
        commits: PutIfAbsentSupport,
    ) -> Self {
        if !url.ends_with('/') {
            url.push('/');
        }
        Self {
            inner,
            prefix,
            url,
            can_list,
            commits,
        }
    }

    /// The same store at its own root; `url` is that root.
    pub(super) fn at_root(&self, url: String) -> Self {
        Self::new(
            self.inner.clone(),
            Path::default(),
            url,
            self.can_list,
            self.commits.clone(),
        )
    }

    fn path(&self, path: &str) -> Result<Path> {
        // `parse` keeps special characters as they are; `from` would percent-encode them a second
        // time.
        let relative = Path::parse(path).map_err(|e| {
            Error::storage(format!("not a path of an object store: {path}: {e}"), false)
        })?;
        Ok(if self.prefix.as_ref().is_empty() {
            relative
        } else {
            self.prefix.parts().chain(relative.parts()).collect()
        })
    }
}

fn object_meta(path: String, meta: &object_store::ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        path,
        size: meta.size,
        modified_ms: meta.last_modified.timestamp_millis(),
    }
}

/// The objects directly in `prefix` whose names sort after `after`, in the order of the service.
async fn names(
    service: &ObjectService,
    prefix: &Path,
    folder: &str,
    after: &str,
) -> object_store::Result<Vec<ObjectMeta>> {
    let mut out = Vec::new();
    // The offset only saves pages: not every service honours it, so names are compared again here.
    let mut take = |meta: &object_store::ObjectMeta| {
        let Some(mut parts) = meta.location.prefix_match(prefix) else {
            return;
        };
        let (Some(name), None) = (parts.next(), parts.next()) else {
            return;
        };
        let name = name.as_ref();
        if name > after {
            out.push(object_meta(
                if folder.is_empty() {
                    name.to_owned()
                } else {
                    format!("{folder}/{name}")
                },
                meta,
            ));
        }
    };
    if let Some(pages) = &service.pages {
        let directory = directory_of(prefix);
        let offset = (!after.is_empty()).then(|| format!("{directory}{after}"));
        list_pages(pages.as_ref(), &directory, offset, |page| {
            page.objects.iter().for_each(&mut take);
        })
        .await?;
        return Ok(out);
    }
    let mut stream = if after.is_empty() {
        service.store.list(Some(prefix))
    } else {
        service.store.list_with_offset(
            Some(prefix),
            &Path::from_iter(prefix.parts().chain(Path::from(after).parts())),
        )
    };
    while let Some(meta) = stream.try_next().await? {
        take(&meta);
    }
    Ok(out)
}

/// The prefix of the objects in a folder.
fn directory_of(folder: &Path) -> String {
    if folder.as_ref().is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    }
}

/// Lists a folder page by page. A page that names one before it would be listed for ever: it is an
/// error.
async fn list_pages(
    pages: &dyn PaginatedListStore,
    directory: &str,
    offset: Option<String>,
    mut take: impl FnMut(ListResult),
) -> object_store::Result<()> {
    let mut page_tokens = HashSet::new();
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            offset: offset.clone(),
            delimiter: Some("/".into()),
            page_token,
            ..Default::default()
        };
        let page = pages.list_paginated(Some(directory), options).await?;
        take(page.result);
        match page.page_token {
            None => return Ok(()),
            Some(token) if page_tokens.insert(token.clone()) => page_token = Some(token),
            Some(_) => {
                return Err(object_store::Error::Generic {
                    store: "listing",
                    source: "the service names the same page of a listing twice".into(),
                });
            }
        }
    }
}

/// Deletes a batch; returns the objects that remain, with the reasons.
async fn delete_once(
    service: &ObjectService,
    batch: Vec<(String, Path)>,
    url: &str,
) -> Vec<(String, Path, Error)> {
    let locations: Vec<object_store::Result<Path>> = batch
        .iter()
        .map(|(_, location)| Ok(location.clone()))
        .collect();
    // In the requested order.
    let mut results: Vec<Option<Error>> = service
        .store
        .delete_stream(futures::stream::iter(locations).boxed())
        .map(|result| match result {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => None,
            Err(error) => Some(failed("delete", url, &error)),
        })
        .collect()
        .await;
    if results.len() != batch.len() {
        let error = results.into_iter().flatten().next().unwrap_or_else(|| {
            Error::storage(format!("not every deletion below {url} was answered"), true)
        });
        results = vec![Some(error); batch.len()];
    }
    batch
        .into_iter()
        .zip(results)
        .filter_map(|((name, location), error)| Some((name, location, error?)))
        .collect()
}

impl RemoteStore {
    /// Starts `work` on the I/O runtime.
    fn begin<T, F>(
        &self,
        path: &str,
        work: impl FnOnce(ObjectService, Path) -> F,
    ) -> PendingResult<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let url = format!("{}{path}", self.url);
        let (runtime, location) = match (exec::runtime(), self.path(path)) {
            (Ok(runtime), Ok(location)) => (runtime, location),
            (Err(error), _) | (_, Err(error)) => return PendingResult::lazy(move || Err(error)),
        };
        let work = work(self.inner.clone(), location);
        PendingResult::task(runtime.spawn(async move { work.await.map_err(|e| failure(&url, &e)) }))
    }

    /// Starts to read an object of at most `limit` bytes.
    fn whole(&self, path: &str, limit: u64) -> PendingResult<(Bytes, ObjectMeta)> {
        let name = path.to_owned();
        let read = self.begin(path, move |service, location| async move {
            let result = service.store.get(&location).await?;
            let meta = object_meta(name, &result.meta);
            // The size arrives before the bytes.
            let bytes = if meta.size <= limit {
                result.bytes().await?
            } else {
                Bytes::new()
            };
            Ok((bytes, meta))
        });
        read.map(move |(bytes, meta)| {
            check_length(&meta.path, meta.size, limit).map(|()| (bytes, meta))
        })
    }
}

impl Store for RemoteStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn can_list(&self) -> bool {
        self.can_list
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let after_name = after.to_owned();
        let folder = dir.to_owned();
        let mut found = self
            .begin(dir, |service, prefix| async move {
                // The client repeats a request that fails, but not a listing whose answer is
                // incomplete.
                let mut again = 3;
                loop {
                    match names(&service, &prefix, &folder, &after_name).await {
                        Err(error)
                            if again > 0 && error.to_string().contains("list response body") =>
                        {
                            again -= 1;
                        }
                        listed => return listed,
                    }
                }
            })
            .wait()?;
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        Ok(found)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<FolderListing> {
        let (objects, folders) = self
            .begin(dir, |service, prefix| async move {
                let Some(pages) = &service.pages else {
                    let listed = service.store.list_with_delimiter(Some(&prefix)).await?;
                    return Ok((listed.objects, listed.common_prefixes));
                };
                let (mut objects, mut folders) = (Vec::new(), Vec::new());
                list_pages(pages.as_ref(), &directory_of(&prefix), None, |page| {
                    objects.extend(page.objects);
                    folders.extend(page.common_prefixes);
                })
                .await?;
                Ok((objects, folders))
            })
            .wait()?;
        let below = |location: &Path| -> Option<String> {
            let relative: Path = location.prefix_match(&self.prefix)?.collect();
            Some(relative.to_string()).filter(|path| !path.is_empty())
        };
        let wanted = objects
            .iter()
            .filter(|meta| meta.location.filename().is_some_and(take));
        Ok(FolderListing {
            objects: wanted
                .filter_map(|meta| Some(object_meta(below(&meta.location)?, meta)))
                .collect(),
            folders: folders.iter().filter_map(below).collect(),
        })
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let meta = self
            .begin(path, |service, location| async move {
                service.store.head(&location).await
            })
            .wait()?;
        Ok(object_meta(path.to_owned(), &meta))
    }

    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        self.whole(path, LONGEST_OBJECT)
    }

    fn get_within(&self, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
        self.whole(path, limit).wait()
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> PendingResult<Vec<Bytes>> {
        let url = format!("{}{path}", self.url);
        let wanted: Vec<u64> = ranges
            .iter()
            .map(|range| range.end.saturating_sub(range.start))
            .collect();
        // `object_store` joins neighbouring ranges and asks for the rest at once.
        let found = self.begin(path, |service, location| async move {
            service.store.get_ranges(&location, &ranges).await
        });
        found.map(move |found| {
            // A service truncates a range that goes beyond the end.
            if found.iter().map(|bytes| bytes.len() as u64).eq(wanted) {
                Ok(found)
            } else {
                Err(Error::corrupt_data(format!(
                    "the file is shorter than the log says: {url}"
                )))
            }
        })
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, _: ObjectRole) -> Result<PutOutcome> {
        use object_store::Error as E;
        if let PutIfAbsentSupport::Refused(why) = &self.commits {
            return Err(Error::unsupported(format!(
                "cannot commit to {}: {why}",
                self.url
            )));
        }
        let mode = if self.commits == PutIfAbsentSupport::Unsafe {
            match self.head(path) {
                Ok(_) => return Ok(PutOutcome::Exists),
                Err(error) if error.is_not_found() => object_store::PutMode::Overwrite,
                Err(error) => return Err(error),
            }
        } else {
            object_store::PutMode::Create
        };
        let url = format!("{}{path}", self.url);
        let put = self.begin(path, |service, location| async move {
            // The client must not repeat it: the answer to a repeated request does not show the
            // result of the first. The caller reads the object and repeats the request.
            let mut extensions = object_store::Extensions::new();
            extensions.insert(SingleAttempt);
            let options = PutOptions { mode, extensions, ..PutOptions::default() };
            // Decided here, because the error of the request assumes a read.
            Ok(match service.store.put_opts(&location, bytes.into(), options).await {
                Ok(_) => Ok(PutOutcome::Created),
                Err(E::AlreadyExists { .. } | E::Precondition { .. } | E::NotModified { .. }) => Ok(PutOutcome::Exists),
                Err(E::NotImplemented { .. } | E::NotSupported { .. }) => Err(Error::unsupported(format!(
                    "the store of {url} makes no conditional requests, so commits are not safe in it; enable them (`aws_conditional_put=etag`), or, if there is only ever one writer, say so with the option `allow_unsafe_rename`"
                ))),
                Err(E::InvalidPath { source }) => Err(Error::storage(format!("not a path of an object store: {url}: {source}"), false)),
                Err(E::NotFound { .. }) => Ok(PutOutcome::Refused(Error::storage(
                    format!("cannot write {url}: the store knows no such bucket or container (404); check the URL, and whether the credentials may see it"),
                    false,
                ))),
                Err(error) if is_refusal(&error) => Ok(PutOutcome::Refused(failed("write", &url, &error))),
                Err(error) => Ok(PutOutcome::Unknown(failed("write", &url, &error))),
            })
        });
        match put.wait() {
            Ok(settled) => settled,
            // The task ended early, after its request may have been sent.
            Err(error @ Error::Internal { .. }) => Ok(PutOutcome::Unknown(error)),
            Err(error) => Err(error),
        }
    }

    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        if let PutIfAbsentSupport::Refused(why) = &self.commits {
            return Err(Error::unsupported(format!(
                "cannot delete from {}: {why}",
                self.url
            )));
        }
        let url = self.url.clone();
        let (mut named, mut refused) = (Vec::with_capacity(paths.len()), Vec::new());
        for path in paths {
            match self.path(path.as_str()) {
                Ok(location) if location.prefix_matches(&self.prefix) => {
                    named.push((path.as_str().to_owned(), location));
                }
                Ok(_) => refused.push((
                    path.as_str().to_owned(),
                    outside_table_error(&url, path.as_str()),
                )),
                Err(error) => refused.push((path.as_str().to_owned(), error)),
            }
        }
        // In batches of the service's own size: one that fails as a whole has a single answer for
        // all of its objects.
        let batches: Vec<Vec<(String, Path)>> = named
            .chunks(self.inner.batch.max(1))
            .map(<[_]>::to_vec)
            .collect();
        let deleted = self.begin("", |service, _| async move {
            let delete = |batch: Vec<(String, Path)>| {
                let (service, url) = (service.clone(), url.clone());
                async move {
                    // Clients do not repeat delete requests, although deletion is idempotent.
                    let first = delete_once(&service, batch, &url).await;
                    let (again, mut failed): (Vec<_>, Vec<_>) =
                        first.into_iter().partition(|(_, _, error)| {
                            matches!(
                                error,
                                Error::Storage {
                                    retryable: true,
                                    ..
                                }
                            )
                        });
                    if !again.is_empty() {
                        tokio::time::sleep(DELETE_AGAIN).await;
                        failed.extend(
                            delete_once(
                                &service,
                                again
                                    .into_iter()
                                    .map(|(name, location, _)| (name, location))
                                    .collect(),
                                &url,
                            )
                            .await,
                        );
                    }
                    failed
                        .into_iter()
                        .map(|(name, _, error)| (name, error))
                        .collect::<Vec<_>>()
                }
            };
            Ok(futures::stream::iter(batches)
                .map(delete)
                .buffered(BATCHES_AT_ONCE)
                .collect::<Vec<_>>()
                .await
                .concat())
        });
        refused.extend(deleted.wait()?);
        Ok(refused)
    }

    fn upload(&self, path: &str, role: ObjectRole) -> Result<Box<dyn ObjectUpload>> {
        if let (PutIfAbsentSupport::Refused(why), ObjectRole::Essential) = (&self.commits, role) {
            return Err(Error::unsupported(format!(
                "cannot write to {}: {why}",
                self.url
            )));
        }
        Ok(Box::new(RemoteUpload::new(
            path,
            format!("{}{path}", self.url),
            Arc::clone(&self.inner.store),
            self.path(path)?,
        )))
    }

    fn authority_root(&self) -> Option<Arc<dyn Store>> {
        let url = url::Url::parse(&self.url).ok()?;
        let root = format!(
            "{}://{}/",
            url.scheme(),
            &url[url::Position::BeforeUsername..url::Position::AfterPort]
        );
        Some(Arc::new(self.at_root(root)))
    }
}
