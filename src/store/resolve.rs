//! Resolves addresses to stores: a table's URL, and the paths in its log.
//!
//! A log may name files anywhere. Relative paths that climb out of the table, and stores other than
//! the table's own, are refused when they are opened, not before: an external path of a removed
//! file must not make a snapshot fail.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use url::Url;

use super::address::{TableAddress, safe};
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
use super::client::ClientFactory;
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use super::credentials::{self, TemporaryCredentials};
use super::external_paths::{ExternalPaths, FileLocation, StoreOrigin, normalised, scheme_of};
use super::hadoop::{self, HadoopStore};
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
use super::options::{ServiceSettings, number, time};
use super::options::{StorageOptions, flag, option};
use super::remote::{ObjectService, PutIfAbsentSupport, RemoteStore};
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use super::renewed_credentials::RenewedCredentials;
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use super::single_attempt::SingleAttemptConnector;
use super::{LocalStore, Store, StoreObject};
use crate::error::{CallOption, Error, Result};
use crate::process::ProcessMutex;

/// Opens the store whose root is `uri`: a path, or a `file:`, `s3:`, `gs:`, `az:`, `abfss:`,
/// `http(s):`, `memory:` URL; any Hadoop URL if the options name a gateway to its file systems.
///
/// # Errors
/// [`Error::Invalid`] for a URL or option that cannot be used.
pub fn open(uri: &str, options: &StorageOptions) -> Result<Arc<dyn Store>> {
    // With the address of a driver's JVM all files are accessed through it.
    if let ([Some(address), Some(secret), Some(configuration)], Some(_)) = (
        hadoop::OPTIONS.map(|name| option(options, &[name])),
        scheme_of(uri),
    ) {
        return Ok(Arc::new(HadoopStore::new(
            uri,
            [address, secret, configuration],
            unsafe_rename(options),
        )?));
    }
    match TableAddress::parse(uri)? {
        TableAddress::Url(url) => open_url(&url, options),
        TableAddress::Path(path) => open_local(path, options),
    }
}

fn unsafe_rename(options: &StorageOptions) -> bool {
    flag(
        options,
        &[
            "allow_unsafe_rename",
            "aws_s3_allow_unsafe_rename",
            "mount_allow_unsafe_rename",
        ],
    )
}

/// The support for put-if-absent in an object store.
fn commits(
    url: &Url,
    options: &StorageOptions,
    environment: impl Fn(&str) -> Option<String>,
) -> PutIfAbsentSupport {
    const LOCKING: &str = "AWS_S3_LOCKING_PROVIDER";
    if is_plain_http(url) {
        return PutIfAbsentSupport::Refused(
            "a table behind a plain HTTP server can only be read".to_owned(),
        );
    }
    if matches!(url.scheme(), "s3" | "s3a") {
        let provider = option(options, &[LOCKING, "s3_locking_provider"])
            .map(str::to_owned)
            .or_else(|| environment(LOCKING))
            .unwrap_or_default();
        if !provider.is_empty() && !provider.eq_ignore_ascii_case("none") {
            return PutIfAbsentSupport::Refused(format!(
                "{LOCKING} is `{provider}`, and deltafast has no such lock: writers with and without it would overwrite each other; when every writer of the table uses conditional requests, unset it or set it to `none`"
            ));
        }
        let conditional = option(options, &["aws_conditional_put", "conditional_put"])
            .map(str::to_owned)
            .or_else(|| environment("AWS_CONDITIONAL_PUT"));
        if conditional.is_some_and(|text| text.eq_ignore_ascii_case("disabled"))
            && unsafe_rename(options)
        {
            return PutIfAbsentSupport::Unsafe;
        }
    }
    PutIfAbsentSupport::Conditional
}

fn open_local(path: PathBuf, options: &StorageOptions) -> Result<Arc<dyn Store>> {
    let root = std::path::absolute(&path)
        .map_err(|e| Error::invalid(format!("not a usable path: {}: {e}", path.display())))?;
    Ok(Arc::new(
        LocalStore::new(root).allow_unsafe_rename(unsafe_rename(options)),
    ))
}

fn open_url(url: &Url, options: &StorageOptions) -> Result<Arc<dyn Store>> {
    if url.scheme() == "file" {
        return match url.to_file_path() {
            Ok(path) => open_local(path, options),
            Err(()) => Err(Error::invalid(format!(
                "not a local path: {}",
                safe(url.as_str())
            ))),
        };
    }
    let (inner, prefix) = build(url, options)?;
    let mut shown = url.clone();
    // Neither can fail for a URL with an authority; a URL without one has no credentials.
    let _ = shown.set_username(if matches!(url.scheme(), "az" | "abfs" | "abfss") {
        url.username()
    } else {
        ""
    });
    let _ = shown.set_password(None);
    shown.set_query(None);
    let can_list = !is_plain_http(url);
    let commits = commits(url, options, |name| std::env::var(name).ok());
    Ok(Arc::new(RemoteStore::new(
        inner,
        prefix,
        shown.to_string(),
        can_list,
        commits,
    )))
}

fn is_plain_http(url: &Url) -> bool {
    matches!(
        object_store::ObjectStoreScheme::parse(url),
        Ok((object_store::ObjectStoreScheme::Http, _))
    )
}

type ServiceAndPrefix = (ObjectService, object_store::path::Path);

/// A client of a service: settings of the environment first, then those of the options.
#[allow(unused_macros)]
macro_rules! configured {
    ($builder:ty, $url:expr, $options:expr, $prefix:literal, $metadata:expr, $convert:expr) => {{
        let settings = ServiceSettings::new($options, $prefix, environment())?;
        let clients = clients(&settings, $options, $metadata);
        let mut builder = <$builder>::new()
            .with_url($url.to_string())
            .with_retry(retries($options)?)
            .with_http_connector(SingleAttemptConnector(clients));
        for (key, value) in &settings.values {
            builder = builder.with_config(*key, value);
        }
        if let Some(cache) = credentials::source_of($options)? {
            builder = builder.with_credentials(Arc::new(RenewedCredentials::new(cache, $convert)));
        }
        let failed = |error: object_store::Error| {
            Error::invalid(format!(
                "cannot use {}: {}",
                safe($url.as_str()),
                settings.redacted(&error.to_string())
            ))
        };
        Arc::new(builder.build().map_err(failed)?)
    }};
}

/// Variables of the environment that are UTF-8.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The factory of a store's HTTP clients; `metadata` is the setting that names its metadata
/// service.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
fn clients<K: std::str::FromStr + AsRef<str> + PartialEq + Copy>(
    settings: &ServiceSettings<K>,
    options: &StorageOptions,
    metadata: &str,
) -> ClientFactory {
    const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";
    let endpoint = settings
        .get(metadata)
        .and_then(|text| Url::parse(text).ok());
    let given = option(options, &[DISABLED])
        .map(str::to_owned)
        .or_else(|| std::env::var(DISABLED).ok());
    let is_disabled = metadata.starts_with("aws_")
        && given.is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    ClientFactory {
        is_anonymous: false,
        metadata_endpoints: endpoint.into_iter().collect(),
        without_metadata: is_disabled,
    }
}

/// The service of a URL, and the path of the table in it.
fn build(url: &Url, options: &StorageOptions) -> Result<ServiceAndPrefix> {
    use object_store::ObjectStoreScheme as Scheme;
    let bad = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("not a usable URL: {}: {error}", safe(url.as_str())))
    };
    if url.scheme() == "memory" {
        return Ok((
            plain(memory(url)),
            object_store::path::Path::from_url_path(url.path()).map_err(|error| bad(&error))?,
        ));
    }
    let (scheme, prefix) = Scheme::parse(url).map_err(|error| bad(&error))?;
    let service = match scheme {
        #[cfg(feature = "s3")]
        Scheme::AmazonS3 => s3_service(url, options)?,
        #[cfg(feature = "azure")]
        Scheme::MicrosoftAzure => azure_service(url, options)?,
        #[cfg(feature = "gcs")]
        Scheme::GoogleCloudStorage => gcs_service(url, options)?,
        #[cfg(feature = "http")]
        Scheme::Http => http_service(url, options)?,
        _ => {
            let _ = options;
            return Err(Error::invalid(format!(
                "this build of deltafast has no store for `{}:` URLs",
                url.scheme()
            )));
        }
    };
    Ok((service, prefix))
}

#[cfg(feature = "s3")]
fn aws_credential(given: &TemporaryCredentials) -> Result<object_store::aws::AwsCredential> {
    Ok(object_store::aws::AwsCredential {
        key_id: given.value("access_key_id", "S3")?.to_owned(),
        secret_key: given.value("secret_access_key", "S3")?.to_owned(),
        token: given.optional("token").map(str::to_owned),
    })
}

#[cfg(feature = "azure")]
fn azure_credential(given: &TemporaryCredentials) -> Result<object_store::azure::AzureCredential> {
    use object_store::azure::{AzureAccessKey, AzureCredential};

    if let Some(key) = given.optional("access_key") {
        // The client's message may have a part of the key.
        return AzureAccessKey::try_new(key)
            .map(AzureCredential::AccessKey)
            .map_err(|_| {
                Error::invalid("the `access_key` of the credential provider is not base64")
            });
    }
    if let Some(token) = given.optional("sas_token") {
        let pairs = url::form_urlencoded::parse(token.trim_start_matches('?').as_bytes());
        return Ok(AzureCredential::SASToken(pairs.into_owned().collect()));
    }
    let token = given.value(
        "token",
        "Azure unless there is an `access_key` or a `sas_token`",
    )?;
    Ok(AzureCredential::BearerToken(token.to_owned()))
}

#[cfg(feature = "gcs")]
fn google_credential(given: &TemporaryCredentials) -> Result<object_store::gcp::GcpCredential> {
    Ok(object_store::gcp::GcpCredential {
        bearer: given.value("token", "Google Cloud Storage")?.to_owned(),
    })
}

/// A bucket of Amazon S3 or of a compatible service.
#[cfg(feature = "s3")]
fn s3_service(url: &Url, options: &StorageOptions) -> Result<ObjectService> {
    let store = configured!(
        object_store::aws::AmazonS3Builder,
        url,
        options,
        "AWS_",
        "aws_metadata_endpoint",
        aws_credential
    );
    // Directory buckets, which have this suffix, cannot list from a name on.
    let express = url
        .host_str()
        .is_some_and(|bucket| bucket.ends_with("--x-s3"));
    Ok(ObjectService {
        pages: (!express).then(|| Arc::clone(&store) as _),
        store,
        batch: 1_000,
    })
}

/// A container of Azure Blob Storage.
#[cfg(feature = "azure")]
fn azure_service(url: &Url, options: &StorageOptions) -> Result<ObjectService> {
    let store = configured!(
        object_store::azure::MicrosoftAzureBuilder,
        url,
        options,
        "AZURE_",
        "azure_msi_endpoint",
        azure_credential
    );
    Ok(ObjectService {
        pages: Some(Arc::clone(&store) as _),
        store,
        batch: 256,
    })
}

/// A bucket of Google Cloud Storage.
#[cfg(feature = "gcs")]
fn gcs_service(url: &Url, options: &StorageOptions) -> Result<ObjectService> {
    let store = configured!(
        object_store::gcp::GoogleCloudStorageBuilder,
        url,
        options,
        "GOOGLE_",
        "",
        google_credential
    );
    Ok(ObjectService {
        pages: Some(Arc::clone(&store) as _),
        store,
        batch: 1_000,
    })
}

/// An HTTP server.
#[cfg(feature = "http")]
fn http_service(url: &Url, options: &StorageOptions) -> Result<ObjectService> {
    let settings =
        ServiceSettings::<object_store::ClientConfigKey>::new(options, "", std::iter::empty())?;
    let mut client = object_store::ClientOptions::new();
    for (key, value) in &settings.values {
        client = client.with_config(*key, value);
    }
    if url.scheme() == "http" {
        client = client.with_allow_http(true);
    }
    let root = &url[..url::Position::BeforePath];
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    let clients = ClientFactory {
        is_anonymous,
        ..ClientFactory::default()
    };
    let builder = object_store::http::HttpBuilder::new()
        .with_url(root)
        .with_client_options(client)
        .with_retry(retries(options)?);
    let failed = |error: object_store::Error| {
        Error::invalid(format!(
            "cannot use {}: {}",
            safe(url.as_str()),
            settings.redacted(&error.to_string())
        ))
    };
    Ok(plain(Arc::new(
        builder
            .with_http_connector(clients)
            .build()
            .map_err(failed)?,
    )))
}

fn plain(store: Arc<dyn object_store::ObjectStore>) -> ObjectService {
    ObjectService {
        store,
        pages: None,
        batch: 1_000,
    }
}

/// Enough for a throttled service, but not so many that a wrong address seems to hang.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
fn retries(options: &StorageOptions) -> Result<object_store::RetryConfig> {
    let usual = object_store::BackoffConfig::default();
    let base = number(options, "backoff_config.base")?.unwrap_or(usual.base);
    if !(1.0..=1_000.0).contains(&base) {
        return Err(Error::invalid(
            "the storage option `backoff_config.base` must be at least 1",
        ));
    }
    Ok(object_store::RetryConfig {
        max_retries: number(options, "max_retries")?.unwrap_or(6),
        retry_timeout: time(options, "retry_timeout")?
            .unwrap_or(std::time::Duration::from_secs(60)),
        backoff: object_store::BackoffConfig {
            init_backoff: time(options, "backoff_config.init_backoff")?
                .unwrap_or(usual.init_backoff),
            max_backoff: time(options, "backoff_config.max_backoff")?.unwrap_or(usual.max_backoff),
            base,
        },
    })
}

/// `memory://name/…`: one store for each name, for the lifetime of the process. For tests and
/// examples.
fn memory(url: &Url) -> Arc<dyn object_store::ObjectStore> {
    static STORES: Mutex<Option<HashMap<String, Arc<object_store::memory::InMemory>>>> =
        Mutex::new(None);
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let store = stores
        .get_or_insert_with(HashMap::new)
        .entry(url.host_str().unwrap_or_default().to_owned())
        .or_default();
    Arc::<object_store::memory::InMemory>::clone(store)
}

/// The stores of one table: its own, and those that its log refers to.
#[derive(Debug)]
pub struct TableStores {
    root: Arc<dyn Store>,
    origin: Option<StoreOrigin>,
    options: StorageOptions,
    external: ExternalPaths,
    opened: ProcessMutex<HashMap<String, Arc<dyn Store>>>,
}

impl TableStores {
    /// A table at the root of `root`.
    #[must_use]
    pub fn new(root: Arc<dyn Store>, options: StorageOptions, foreign: ExternalPaths) -> Self {
        Self {
            origin: StoreOrigin::of_url(root.url()),
            root,
            options,
            external: foreign,
            opened: ProcessMutex::default(),
        }
    }

    /// The store whose root is the table.
    #[must_use]
    pub fn root(&self) -> &Arc<dyn Store> {
        &self.root
    }

    /// The file at a canonical path of the log: relative to the table, an absolute path, or a URL.
    ///
    /// # Errors
    /// [`Error::Storage`] for a path that is refused, naming the option that would allow it.
    pub fn file(&self, path: &str, size: Option<u64>) -> Result<StoreObject> {
        let (store, path) = self.locate(path)?;
        Ok(StoreObject { store, path, size })
    }

    /// Whether the caller allows the file at a canonical path of the log although it may be outside
    /// of the table (`allow_external_paths`).
    #[must_use]
    pub fn allows_external(&self, path: &str) -> bool {
        FileLocation::parse(path, self.root.url())
            .is_some_and(|file| self.external.allows(&file, self.root.url()))
    }

    fn path_refused(path: &str, why: &str) -> Error {
        Error::storage(
            format!(
                "refused to open `{path}`: {why}; if the file is to be trusted, allow it with the option {}",
                CallOption::AllowExternalPaths
            ),
            false,
        )
    }

    fn locate(&self, path: &str) -> Result<(Arc<dyn Store>, String)> {
        let allowed = |file: &FileLocation| self.external.allows(file, self.root.url());
        if let Some((scheme, rest)) = scheme_of(path) {
            let (authority, inside) = rest.split_once('/').unwrap_or((rest, ""));
            let Some(origin) = StoreOrigin::parse(scheme, authority) else {
                return Err(Self::path_refused(path, "its URL is malformed"));
            };
            if self.origin.as_ref() == Some(&origin) {
                return self.in_own_store(path, inside);
            }
            let Some(file) = FileLocation::new(origin, inside) else {
                return Err(Self::path_refused(
                    path,
                    "it climbs out of its store by `..`",
                ));
            };
            if !allowed(&file) {
                return Err(Self::path_refused(
                    path,
                    "it is in another store than the table",
                ));
            }
            return self.other(
                &format!("{scheme}://{authority}/"),
                &file.segments.join("/"),
            );
        }
        if let Some(absolute) = path.strip_prefix('/') {
            let local = self.root.url().starts_with("file:");
            if local || self.root.authority_root().is_some() {
                return self.in_own_store(path, absolute);
            }
            let file = StoreOrigin::parse("file", "")
                .and_then(|origin| FileLocation::new(origin, absolute));
            return match file.filter(allowed) {
                Some(file) => self.other("file:///", &file.segments.join("/")),
                None => Err(Self::path_refused(
                    path,
                    "it is an absolute path and the table's store has none",
                )),
            };
        }
        if let Some(inside) = normalised(path) {
            return Ok((Arc::clone(&self.root), inside));
        }
        match FileLocation::below(self.root.url(), path).filter(allowed) {
            Some(file) => self.in_own_store(path, &file.segments.join("/")),
            None => Err(Self::path_refused(
                path,
                "it climbs out of the table by `..`",
            )),
        }
    }

    fn in_own_store(&self, path: &str, inside: &str) -> Result<(Arc<dyn Store>, String)> {
        let root = self
            .root
            .authority_root()
            .ok_or_else(|| Self::path_refused(path, "the table's store has no absolute paths"))?;
        let inside = normalised(inside)
            .ok_or_else(|| Self::path_refused(path, "it climbs out of its store by `..`"))?;
        Ok((root, inside))
    }

    fn other(&self, root: &str, inside: &str) -> Result<(Arc<dyn Store>, String)> {
        let mut opened = self.opened.lock();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
    #[test]
    fn retries_are_as_often_and_as_late_as_the_options_say() {
        let parsed = |pairs: &[(&str, &str)]| {
            retries(
                &pairs
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect(),
            )
        };
        let of = |pairs: &[(&str, &str)]| parsed(pairs).unwrap();
        let millis = std::time::Duration::from_millis;
        let config = of(&[
            ("max_retries", "2"),
            ("RETRY_TIMEOUT", "15s"),
            ("backoff_config.init_backoff", "5ms"),
            ("backoff_config.max_backoff", "2m"),
            ("backoff_config.base", "1.5"),
        ]);
        assert_eq!(
            (config.max_retries, config.retry_timeout),
            (2, millis(15_000))
        );
        assert_eq!(
            (config.backoff.init_backoff, config.backoff.max_backoff),
            (millis(5), millis(120_000))
        );
        assert!((config.backoff.base - 1.5).abs() < 1e-9);
        let usual = of(&[]);
        assert_eq!(
            (usual.max_retries, usual.retry_timeout),
            (6, millis(60_000))
        );
        for (name, value) in [
            ("retry_timeout", "soon"),
            ("backoff_config.base", "0"),
            ("backoff_config.base", "NaN"),
            ("max_retries", "-1"),
        ] {
            let error = parsed(&[(name, value)]).unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
        assert_eq!(of(&[("retry_timeout", "7")]).retry_timeout, millis(7_000));
    }

    #[test]
    fn a_lock_that_is_not_there_is_refused_and_never_ignored() {
        let url = Url::parse("s3://b/t").unwrap();
        let of = |pairs: &[(&str, &str)], env: Option<&str>| {
            let options: StorageOptions = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            commits(&url, &options, |name| {
                env.filter(|_| name == "AWS_S3_LOCKING_PROVIDER")
                    .map(str::to_owned)
            })
        };
        assert_eq!(of(&[], None), PutIfAbsentSupport::Conditional);
        for refused in [
            of(&[("aws_s3_locking_provider", "dynamodb")], None),
            of(&[], Some("dynamodb")),
            of(&[("allow_unsafe_rename", "true")], Some("dynamodb")),
        ] {
            assert!(
                matches!(refused, PutIfAbsentSupport::Refused(why) if why.contains("dynamodb"))
            );
        }
        assert_eq!(
            of(&[("AWS_S3_LOCKING_PROVIDER", "none")], Some("dynamodb")),
            PutIfAbsentSupport::Conditional
        );
        assert_eq!(
            of(&[("allow_unsafe_rename", "true")], None),
            PutIfAbsentSupport::Conditional
        );
        assert_eq!(
            of(
                &[
                    ("aws_s3_allow_unsafe_rename", "true"),
                    ("conditional_put", "disabled")
                ],
                None
            ),
            PutIfAbsentSupport::Unsafe
        );
    }
}
