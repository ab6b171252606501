//! Addresses -> stores: a table's URL, and the paths that its log names.
//!
//! A log may name files anywhere. Relative paths that climb out of the table, and stores other than the table's own, are
//! refused here, when they would be opened and not before: a foreign path of a removed file must not stop a snapshot.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::hadoop::{self, Hadoop};
use super::remote::{Commits, Remote, Service};
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use super::single_attempt::SingleAttemptConnector;
use super::{File, Local, Store};
use crate::error::{Error, Result};

/// `storage_options` of the caller: keys as `object_store` and `deltalake` take them.
pub type Options = HashMap<String, String>;

/// Opens the store whose root is `uri`: a path, or a `file:`, `s3:`, `gs:`, `az:`, `abfss:`, `http(s):`, `memory:` URL; any
/// URL of Hadoop where the options say how its file systems are reached.
///
/// # Errors
/// [`Error::Invalid`] for a URL or option that cannot be used.
pub fn open(uri: &str, options: &Options) -> Result<Arc<dyn Store>> {
    if uri.is_empty() {
        return Err(Error::invalid("the table's location is empty"));
    }
    // Whoever gives the address of a driver's Java wants all files by way of it.
    if let ([Some(address), Some(secret), Some(configuration)], Some(_)) = (hadoop::OPTIONS.map(|name| option(options, &[name])), scheme_of(uri)) {
        return Ok(Arc::new(Hadoop::new(uri, [address, secret, configuration], unsafe_rename(options))?));
    }
    match Url::parse(uri) {
        // One letter before the colon is a drive, not a scheme.
        Ok(url) if url.scheme().len() > 1 && uri.contains(":/") => open_url(&url, options),
        _ => open_local(PathBuf::from(uri), options),
    }
}

/// An option, by any of its names, without case.
fn option<'a>(options: &'a Options, names: &[&str]) -> Option<&'a str> {
    options.iter().find(|(key, _)| names.iter().any(|name| key.eq_ignore_ascii_case(name))).map(|(_, value)| value.trim())
}

fn unsafe_rename(options: &Options) -> bool {
    let names = ["allow_unsafe_rename", "aws_s3_allow_unsafe_rename", "mount_allow_unsafe_rename"];
    option(options, &names).is_some_and(|text| text.eq_ignore_ascii_case("true") || text == "1")
}

/// How commits are made in an object store.
fn commits(url: &Url, options: &Options, environment: impl Fn(&str) -> Option<String>) -> Commits {
    const LOCKING: &str = "AWS_S3_LOCKING_PROVIDER";
    if is_plain_http(url) {
        return Commits::Refused("a table behind a plain HTTP server can only be read".to_owned());
    }
    if matches!(url.scheme(), "s3" | "s3a") {
        let provider = option(options, &[LOCKING, "s3_locking_provider"]).map(str::to_owned).or_else(|| environment(LOCKING)).unwrap_or_default();
        if !provider.is_empty() && !provider.eq_ignore_ascii_case("none") {
            return Commits::Refused(format!(
                "{LOCKING} is `{provider}`, and deltafast has no such lock: writers with and without it would overwrite each other; when every writer of the table uses conditional requests, unset it or set it to `none`"
            ));
        }
        let conditional = option(options, &["aws_conditional_put", "conditional_put"]).map(str::to_owned).or_else(|| environment("AWS_CONDITIONAL_PUT"));
        if conditional.is_some_and(|text| text.eq_ignore_ascii_case("disabled")) && unsafe_rename(options) {
            return Commits::Unsafe;
        }
    }
    Commits::Conditional
}

fn open_local(path: PathBuf, options: &Options) -> Result<Arc<dyn Store>> {
    let root = std::path::absolute(&path).map_err(|e| Error::invalid(format!("not a usable path: {}: {e}", path.display())))?;
    Ok(Arc::new(Local::new(root).allow_unsafe_rename(unsafe_rename(options))))
}

fn open_url(url: &Url, options: &Options) -> Result<Arc<dyn Store>> {
    if url.scheme() == "file" {
        return match url.to_file_path() {
            Ok(path) => open_local(path, options),
            Err(()) => Err(Error::invalid(format!("not a local path: {url}"))),
        };
    }
    let (inner, prefix) = build(url, options)?;
    let mut shown = url.clone();
    // Neither can fail for a URL with an authority; without one there is nothing to hide.
    let _ = shown.set_username(if matches!(url.scheme(), "abfs" | "abfss") { url.username() } else { "" });
    let _ = shown.set_password(None);
    shown.set_query(None);
    let can_list = !is_plain_http(url);
    let commits = commits(url, options, |name| std::env::var(name).ok());
    Ok(Arc::new(Remote::new(inner, prefix, shown.to_string(), can_list, commits)))
}

fn is_plain_http(url: &Url) -> bool {
    matches!(object_store::ObjectStoreScheme::parse(url), Ok((object_store::ObjectStoreScheme::Http, _)))
}

type Built = (Service, object_store::path::Path);

/// Keys are matched without case; the environment fills what the caller does not give.
#[allow(unused_macros)]
macro_rules! configured {
    ($builder:expr, $url:expr, $options:expr) => {{
        let mut builder = $builder.with_url($url.to_string()).with_retry(retries($options)).with_http_connector(SingleAttemptConnector);
        for (key, value) in $options {
            // Keys of other layers (locking, unsafe rename) are not for the store.
            if let Ok(key) = key.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        Arc::new(builder.build().map_err(|e| Error::invalid(format!("cannot use {}: {e}", $url)))?)
    }};
}

fn build(url: &Url, options: &Options) -> Result<Built> {
    use object_store::ObjectStoreScheme as Scheme;
    if url.scheme() == "memory" {
        return Ok((
            plain(memory(url)),
            object_store::path::Path::from_url_path(url.path()).map_err(|e| Error::invalid(format!("not a usable URL: {url}: {e}")))?,
        ));
    }
    check_endpoints(options)?;
    let (scheme, prefix) = Scheme::parse(url).map_err(|e| Error::invalid(format!("no store for `{url}`: {e}")))?;
    let service = match scheme {
        #[cfg(feature = "s3")]
        Scheme::AmazonS3 => {
            let store = configured!(object_store::aws::AmazonS3Builder::from_env(), url, options);
            // Directory buckets, which have this suffix, cannot list from a name on.
            let express = url.host_str().is_some_and(|bucket| bucket.ends_with("--x-s3"));
            Service { pages: (!express).then(|| Arc::clone(&store) as _), store, batch: 1_000 }
        }
        #[cfg(feature = "azure")]
        Scheme::MicrosoftAzure => {
            let store = configured!(object_store::azure::MicrosoftAzureBuilder::from_env(), url, options);
            Service { pages: Some(Arc::clone(&store) as _), store, batch: 256 }
        }
        #[cfg(feature = "gcs")]
        Scheme::GoogleCloudStorage => {
            let store = configured!(object_store::gcp::GoogleCloudStorageBuilder::from_env(), url, options);
            Service { pages: Some(Arc::clone(&store) as _), store, batch: 1_000 }
        }
        #[cfg(feature = "http")]
        Scheme::Http => {
            let mut client = object_store::ClientOptions::new();
            for (key, value) in options {
                if let Ok(key) = key.to_ascii_lowercase().parse() {
                    client = client.with_config(key, value);
                }
            }
            if url.scheme() == "http" {
                client = client.with_allow_http(true);
            }
            let root = &url[..url::Position::BeforePath];
            let builder = object_store::http::HttpBuilder::new().with_url(root).with_client_options(client).with_retry(retries(options));
            plain(Arc::new(builder.build().map_err(|e| Error::invalid(format!("cannot use {url}: {e}")))?))
        }
        _ => {
            let _ = options;
            return Err(Error::invalid(format!("this build of deltafast has no store for `{}:` URLs", url.scheme())));
        }
    };
    Ok((service, prefix))
}

fn plain(store: Arc<dyn object_store::ObjectStore>) -> Service {
    Service { store, pages: None, batch: 1_000 }
}

/// Enough for a throttled service, not so much that a wrong address seems to hang.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
fn retries(options: &Options) -> object_store::RetryConfig {
    let time = |name: &str| option(options, &[name]).and_then(duration);
    let usual = object_store::BackoffConfig::default();
    object_store::RetryConfig {
        max_retries: option(options, &["max_retries"]).and_then(|text| text.parse().ok()).unwrap_or(6),
        retry_timeout: time("retry_timeout").unwrap_or(std::time::Duration::from_secs(60)),
        backoff: object_store::BackoffConfig {
            init_backoff: time("backoff_config.init_backoff").unwrap_or(usual.init_backoff),
            max_backoff: time("backoff_config.max_backoff").unwrap_or(usual.max_backoff),
            base: option(options, &["backoff_config.base"]).and_then(|text| text.parse().ok()).filter(|base| *base >= 1.0).unwrap_or(usual.base),
        },
    }
}

/// `15s`, `100ms`, `2m`; seconds without a unit.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
fn duration(text: &str) -> Option<std::time::Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let millis = match unit.trim() {
        "ms" => 1,
        "" | "s" | "sec" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    Some(std::time::Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?))
}

/// Refuses endpoints that are no URLs: the client would stumble over them much later.
fn check_endpoints(options: &Options) -> Result<()> {
    for (key, value) in options {
        if key.to_ascii_lowercase().contains("endpoint") && !Url::parse(value).is_ok_and(|url| url.has_host()) {
            return Err(Error::invalid(format!("the storage option `{key}` is no URL; give one like `http://host:9000`")));
        }
    }
    Ok(())
}

/// `memory://name/…`: one store for each name, alive as long as the process. For tests and examples.
fn memory(url: &Url) -> Arc<dyn object_store::ObjectStore> {
    static STORES: Mutex<Option<HashMap<String, Arc<object_store::memory::InMemory>>>> = Mutex::new(None);
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let store = stores.get_or_insert_with(HashMap::new).entry(url.host_str().unwrap_or_default().to_owned()).or_default();
    Arc::<object_store::memory::InMemory>::clone(store)
}

/// Which files outside of the table's own store a caller allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Foreign {
    /// None.
    #[default]
    Refused,
    /// All.
    Allowed,
    /// Those whose URL or absolute path begins so.
    Prefixes(Vec<String>),
}

impl Foreign {
    /// `"true"`, `"false"`, or prefixes separated by commas.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "" | "false" => Self::Refused,
            "true" => Self::Allowed,
            list => Self::Prefixes(list.split(',').map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect()),
        }
    }

    fn allows(&self, path: &str) -> bool {
        match self {
            Self::Refused => false,
            Self::Allowed => true,
            Self::Prefixes(prefixes) => prefixes.iter().any(|p| path.starts_with(p.as_str())),
        }
    }
}

/// The stores of one table: its own, and those that its log leads to.
#[derive(Debug)]
pub struct Stores {
    root: Arc<dyn Store>,
    options: Options,
    foreign: Foreign,
    opened: Mutex<HashMap<String, Arc<dyn Store>>>,
}

impl Stores {
    /// A table at the root of `root`.
    #[must_use]
    pub fn new(root: Arc<dyn Store>, options: Options, foreign: Foreign) -> Self {
        Self { root, options, foreign, opened: Mutex::default() }
    }

    /// The store whose root is the table.
    #[must_use]
    pub fn root(&self) -> &Arc<dyn Store> {
        &self.root
    }

    /// The file that a canonical path of the log means: relative to the table, an absolute path, or a URL.
    ///
    /// # Errors
    /// [`Error::Storage`] for a path that is refused, naming the option that would allow it.
    pub fn file(&self, path: &str, size: Option<u64>) -> Result<File> {
        let (store, path) = self.locate(path)?;
        Ok(File { store, path, size })
    }

    fn refuse(path: &str, why: &str) -> Error {
        Error::storage(format!("refused to open `{path}`: {why}; if the file is to be trusted, allow it with the option `allow_foreign_paths`"), false)
    }

    fn locate(&self, path: &str) -> Result<(Arc<dyn Store>, String)> {
        if let Some((scheme, rest)) = scheme_of(path) {
            let (authority, inside) = rest.split_once('/').unwrap_or((rest, ""));
            if same_authority(self.root.url(), scheme, authority) {
                return self.in_own_store(path, inside);
            }
            if !self.foreign.allows(path) {
                return Err(Self::refuse(path, "it lies in another store than the table"));
            }
            return self.other(&format!("{scheme}://{authority}/"), inside);
        }
        if let Some(absolute) = path.strip_prefix('/') {
            let local = self.root.url().starts_with("file:");
            return if local || self.root.authority_root().is_some() {
                self.in_own_store(path, absolute)
            } else if self.foreign.allows(path) {
                self.other("file:///", absolute)
            } else {
                Err(Self::refuse(path, "it is an absolute path and the table's store has none"))
            };
        }
        match normalised(path) {
            Some(inside) => Ok((Arc::clone(&self.root), inside)),
            None if self.foreign.allows(path) => Ok((Arc::clone(&self.root), path.to_owned())),
            None => Err(Self::refuse(path, "it climbs out of the table by `..`")),
        }
    }

    fn in_own_store(&self, path: &str, inside: &str) -> Result<(Arc<dyn Store>, String)> {
        let root = self.root.authority_root().ok_or_else(|| Self::refuse(path, "the table's store has no absolute paths"))?;
        let inside = normalised(inside).ok_or_else(|| Self::refuse(path, "it climbs out of its store by `..`"))?;
        Ok((root, inside))
    }

    fn other(&self, root: &str, inside: &str) -> Result<(Arc<dyn Store>, String)> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match opened.get(root) {
            Some(store) => Arc::clone(store),
            None => {
                let store = open(root, &self.options)?;
                opened.insert(root.to_owned(), Arc::clone(&store));
                store
            }
        };
        Ok((store, inside.to_owned()))
    }
}

/// `scheme://rest` of a URL.
fn scheme_of(path: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = path.split_once("://")?;
    let is_scheme = scheme.len() > 1
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    is_scheme.then_some((scheme, rest))
}

fn same_authority(root: &str, scheme: &str, authority: &str) -> bool {
    let same_scheme = |a: &str, b: &str| {
        let family = |s: &str| match s {
            "s3a" | "s3n" => "s3".to_owned(),
            "abfs" | "wasb" | "wasbs" => "abfss".to_owned(),
            other => other.to_ascii_lowercase(),
        };
        family(a) == family(b)
    };
    scheme_of(root).is_some_and(|(own, rest)| same_scheme(own, scheme) && rest.split('/').next() == Some(authority))
}

/// `path` without `.`, `..` and empty parts; `None` when it climbs out.
fn normalised(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
    #[test]
    fn retries_are_as_often_and_as_late_as_the_options_say() {
        let of = |pairs: &[(&str, &str)]| retries(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
        let millis = std::time::Duration::from_millis;
        let config = of(&[
            ("max_retries", "2"),
            ("RETRY_TIMEOUT", "15s"),
            ("backoff_config.init_backoff", "5ms"),
            ("backoff_config.max_backoff", "2m"),
            ("backoff_config.base", "1.5"),
        ]);
        assert_eq!((config.max_retries, config.retry_timeout), (2, millis(15_000)));
        assert_eq!((config.backoff.init_backoff, config.backoff.max_backoff), (millis(5), millis(120_000)));
        assert!((config.backoff.base - 1.5).abs() < 1e-9);
        let usual = of(&[("retry_timeout", "soon"), ("backoff_config.base", "0")]);
        assert_eq!((usual.max_retries, usual.retry_timeout), (6, millis(60_000)));
        assert!(usual.backoff.base >= 1.0);
        assert_eq!(of(&[("retry_timeout", "7")]).retry_timeout, millis(7_000));
    }

    #[test]
    fn a_lock_that_is_not_there_is_refused_and_never_ignored() {
        let url = Url::parse("s3://b/t").unwrap();
        let of = |pairs: &[(&str, &str)], env: Option<&str>| {
            let options: Options = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            commits(&url, &options, |name| env.filter(|_| name == "AWS_S3_LOCKING_PROVIDER").map(str::to_owned))
        };
        assert_eq!(of(&[], None), Commits::Conditional);
        for refused in
            [of(&[("aws_s3_locking_provider", "dynamodb")], None), of(&[], Some("dynamodb")), of(&[("allow_unsafe_rename", "true")], Some("dynamodb"))]
        {
            assert!(matches!(refused, Commits::Refused(why) if why.contains("dynamodb")));
        }
        assert_eq!(of(&[("AWS_S3_LOCKING_PROVIDER", "none")], Some("dynamodb")), Commits::Conditional);
        assert_eq!(of(&[("allow_unsafe_rename", "true")], None), Commits::Conditional);
        assert_eq!(of(&[("aws_s3_allow_unsafe_rename", "true"), ("conditional_put", "disabled")], None), Commits::Unsafe);
    }
}
