//! HTTP clients of object stores: the redirects that they follow, and the timeout of a machine's
//! metadata service.
//!
//! The default client follows redirects to any host and, apart from the header `Authorization`,
//! sends along everything that identifies the caller: session tokens, customer keys, signed queries
//! as a referer, the bodies of commits.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::net::ToSocketAddrs;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::redirect::{Attempt, Policy};
use url::Url;

use super::options::{parse_duration, parse_flag};
use super::recorded_request;

/// Redirects of one request.
const MOST_REDIRECTS: usize = 10;
/// Timeout: a metadata service answers at once, or the machine has none.
const METADATA_WAIT: Duration = Duration::from_secs(2);
/// The most bytes of an answer that the library collects, whatever the service sends: a listing of
/// a thousand names has at most a few megabytes. An object is read up to its announced size.
const LONGEST_ANSWER: usize = 64 << 20;
/// The clouds' metadata services, and the paths of their credentials.
const METADATA_HOSTS: [&str; 4] = [
    "169.254.169.254",
    "[fd00:ec2::254]",
    "metadata.google.internal",
    "metadata",
];
const METADATA_PATHS: [&str; 4] = [
    "/latest/api/token",
    "/latest/meta-data/iam/",
    "/metadata/identity/oauth2/",
    "/computeMetadata/v1/",
];

/// Whether a client's error message concerns a request for the credentials of the machine.
pub(super) fn is_about_metadata(text: &str) -> bool {
    text.contains(NO_CREDENTIALS) || METADATA_PATHS.iter().any(|path| text.contains(path))
}

const NO_CREDENTIALS: &str = "the metadata service of this machine gives no credentials";

/// The factory of one store's clients.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientFactory {
    /// Whether requests are anonymous, so that redirects may lead to other origins.
    pub(super) is_anonymous: bool,
    /// Metadata services that the options name.
    pub(super) metadata_endpoints: Vec<Url>,
    /// Whether the metadata service must not be asked.
    pub(super) without_metadata: bool,
}

impl HttpConnector for ClientFactory {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client =
            build(options, self.is_anonymous).map_err(|error| object_store::Error::Generic {
                store: "HTTP client",
                source: error,
            })?;
        Ok(HttpClient::new(GuardedClient {
            inner: HttpClient::new(client),
            factory: self.clone(),
        }))
    }
}

type BoxedError = Box<dyn StdError + Send + Sync>;

/// The library's client with another redirect policy: the library exposes its settings, but not the
/// client.
fn build(options: &ClientOptions, is_anonymous: bool) -> Result<reqwest::Client, BoxedError> {
    use ClientConfigKey as Key;
    let text = |key: Key| options.get_config_value(&key);
    let flag = |key: Key| text(key).is_some_and(|value| parse_flag(&value) == Some(true));
    let time = |key: Key| text(key).and_then(|value| parse_duration(&value));
    // An error means that the program has already chosen a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::ClientBuilder::new()
        .redirect(redirects(is_anonymous))
        .referer(false)
        .https_only(!flag(Key::AllowHttp))
        .user_agent(
            text(Key::UserAgent)
                .unwrap_or_else(|| concat!("deltafast/", env!("CARGO_PKG_VERSION")).to_owned()),
        );
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(url) = text(Key::ProxyUrl) {
        let mut proxy = reqwest::Proxy::all(url)?;
        if let Some(excludes) = text(Key::ProxyExcludes) {
            proxy = proxy.no_proxy(reqwest::NoProxy::from_string(&excludes));
        }
        if let Some(certificate) = text(Key::ProxyCaCertificate) {
            builder = builder
                .tls_certs_merge([reqwest::tls::Certificate::from_pem(certificate.as_bytes())?]);
        }
        builder = builder.proxy(proxy);
    }
    if flag(Key::NoSystemCertificates) {
        builder = builder.tls_certs_only([]);
    }
    if let Some(time) = time(Key::Timeout) {
        builder = builder.timeout(time);
    }
    if let Some(time) = time(Key::ConnectTimeout) {
        builder = builder.connect_timeout(time);
    }
    if let Some(time) = time(Key::ReadTimeout) {
        builder = builder.read_timeout(time);
    }
    if let Some(time) = time(Key::PoolIdleTimeout) {
        builder = builder.pool_idle_timeout(time);
    }
    if let Some(most) = text(Key::PoolMaxIdlePerHost).and_then(|value| value.parse().ok()) {
        builder = builder.pool_max_idle_per_host(most);
    }
    if let Some(time) = time(Key::Http2KeepAliveInterval) {
        builder = builder.http2_keep_alive_interval(time);
    }
    if let Some(time) = time(Key::Http2KeepAliveTimeout) {
        builder = builder.http2_keep_alive_timeout(time);
    }
    if flag(Key::Http2KeepAliveWhileIdle) {
        builder = builder.http2_keep_alive_while_idle(true);
    }
    if let Some(size) = text(Key::Http2MaxFrameSize).and_then(|value| value.parse().ok()) {
        builder = builder.http2_max_frame_size(Some(size));
    }
    if flag(Key::Http1Only) {
        builder = builder.http1_only();
    }
    if flag(Key::Http2Only) {
        builder = builder.http2_prior_knowledge();
    }
    if flag(Key::AllowInvalidCertificates) {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    if flag(Key::RandomizeAddresses) {
        builder = builder.dns_resolver(ShuffledAddresses);
    }
    // The sizes of objects are those of their stored bytes.
    Ok(builder
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .build()?)
}

fn redirects(is_anonymous: bool) -> Policy {
    Policy::custom(move |attempt: Attempt| {
        let stays = attempt
            .previous()
            .first()
            .is_some_and(|first| first.origin() == attempt.url().origin());
        if attempt.previous().len() > MOST_REDIRECTS {
            attempt.error("too many redirects")
        } else if stays || is_anonymous {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Resolves a host to its addresses in random order, so that requests spread over the machines of a
/// service.
struct ShuffledAddresses;

impl reqwest::dns::Resolve for ShuffledAddresses {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || {
                (name.as_str(), 0).to_socket_addrs().map(Vec::from_iter)
            })
            .await;
            let mut addresses = found??;
            addresses.sort_by_cached_key(|_| crate::exec::uuid());
            Ok(Box::new(addresses.into_iter()) as reqwest::dns::Addrs)
        })
    }
}

/// A client that checks the library's assumptions, and limits the time of requests for metadata.
#[derive(Debug)]
struct GuardedClient {
    inner: HttpClient,
    factory: ClientFactory,
}

impl GuardedClient {
    /// Whether a request is for the credentials of the machine.
    fn is_for_metadata(&self, url: &Url) -> bool {
        let known = || {
            METADATA_HOSTS
                .iter()
                .any(|host| url.host_str() == Some(host))
                && METADATA_PATHS
                    .iter()
                    .any(|path| url.path().starts_with(path))
        };
        let named = |service: &Url| {
            let path = service.path().trim_end_matches('/');
            let within = if path.is_empty() {
                METADATA_PATHS
                    .iter()
                    .any(|path| url.path().starts_with(path))
            } else {
                url.path().starts_with(path)
            };
            service.origin() == url.origin() && within
        };
        known() || self.factory.metadata_endpoints.iter().any(named)
    }

    async fn execute_guarded(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |what: String| HttpError::new(HttpErrorKind::Unknown, RefusedRequest(what));
        // The library panics for an address that is not a URL.
        let url = Url::parse(&request.uri().to_string())
            .map_err(|error| failed(format!("not a URL: {error}")))?;
        let is_object = is_object_read(&request, &url);
        if !self.is_for_metadata(&url) {
            let response = self.inner.execute(request).await?;
            return Ok(if is_object && response.status().is_success() {
                response
            } else {
                limited(response)
            });
        }
        // Sent once and with a short timeout: most machines have no such service.
        if self.factory.without_metadata {
            return Err(failed(format!("{NO_CREDENTIALS}: it is switched off")));
        }
        match tokio::time::timeout(METADATA_WAIT, self.inner.execute(request)).await {
            Ok(Ok(response)) => Ok(limited(response)),
            Ok(Err(error)) => Err(failed(format!("{NO_CREDENTIALS}: {error}"))),
            Err(_) => Err(failed(format!("{NO_CREDENTIALS}: it does not answer"))),
        }
    }
}

/// Whether the answer to a request is an object, which is not collected before its size is known.
fn is_object_read(request: &HttpRequest, url: &Url) -> bool {
    let lists = |(name, _): (Cow<'_, str>, Cow<'_, str>)| {
        matches!(&*name, "list-type" | "comp" | "uploads")
    };
    request.method() == "GET" && !url.query_pairs().any(lists)
}

/// The response with a body that fails when it has too many bytes.
fn limited(response: HttpResponse) -> HttpResponse {
    response.map(|body| {
        let body = Limited::new(body, LONGEST_ANSWER);
        HttpResponseBody::new(body.map_err(|error| match error.downcast::<HttpError>() {
            Ok(error) => *error,
            Err(_) => HttpError::new(
                HttpErrorKind::Decode,
                RefusedRequest(format!("the answer has more than {LONGEST_ANSWER} bytes")),
            ),
        }))
    })
}

impl HttpService for GuardedClient {
    fn call<'client, 'request>(
        &'client self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'request>>
    where
        'client: 'request,
        Self: 'request,
    {
        Box::pin(async move {
            let Some(started) = recorded_request::start(&request) else {
                return self.execute_guarded(request).await;
            };
            let answer = self.execute_guarded(request).await;
            started.end(&answer);
            answer
        })
    }
}

/// A request that was not sent, or not answered.
#[derive(Debug)]
struct RefusedRequest(String);

impl fmt::Display for RefusedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for RefusedRequest {}
