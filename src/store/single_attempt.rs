//! Requests that the HTTP client sends only once.
//!
//! `object_store` repeats a request after a lost connection, 429 and 5xx by itself. The answer to a
//! repeated conditional put does not show the result of the first one: it may be refused because
//! the first one succeeded (412), or for reasons that arose since (an expired token). A request
//! with [`SingleAttempt`] among its extensions is not repeated: every answer and every broken
//! connection that the client would repeat becomes an error that it does not repeat. Connections
//! and credentials remain the store's.

use std::error::Error as StdError;
use std::fmt;

/// Marks a request to be sent once.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleAttempt;

/// A response without success to a request that was sent once.
#[derive(Debug)]
pub(super) struct RejectedRequest {
    status: u16,
    /// The status line and the body.
    message: String,
}

impl fmt::Display for RejectedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server returned non-2xx status code: {}", self.message)
    }
}

impl StdError for RejectedRequest {}

/// Whether the store refused a request, so that repeating it is useless.
pub(super) fn is_refusal(error: &object_store::Error) -> bool {
    use object_store::Error as E;
    if matches!(
        error,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } | E::NotFound { .. }
    ) {
        return true;
    }
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(rejected) = error.downcast_ref::<RejectedRequest>() {
            return rejected.status == 501
                || (400..500).contains(&rejected.status)
                    && !matches!(rejected.status, 408 | 425 | 429);
        }
        cause = error.source();
    }
    false
}

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
pub(super) use http::SingleAttemptConnector;

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
mod http {
    use std::pin::Pin;

    use object_store::ClientOptions;
    use object_store::client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    };

    use super::{RejectedRequest, SingleAttempt};

    /// Wraps the clients of another connector, so that they send marked requests once.
    #[derive(Debug)]
    pub(in crate::store) struct SingleAttemptConnector<C>(pub(in crate::store) C);

    impl<C: HttpConnector> HttpConnector for SingleAttemptConnector<C> {
        fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
            self.0
                .connect(options)
                .map(|client| HttpClient::new(SingleAttemptService(client)))
        }
    }

    #[derive(Debug)]
    struct SingleAttemptService(HttpClient);

    impl SingleAttemptService {
        async fn send_once(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
            // The client does not repeat after errors of this kind.
            let failed = |error: HttpError| HttpError::new(HttpErrorKind::Unknown, error);
            let response = self.0.execute(request).await.map_err(failed)?;
            let status = response.status();
            // The client returns errors for redirects and these statuses, and does not repeat the
            // request.
            if status.is_success()
                || status.is_redirection()
                || matches!(status.as_u16(), 401 | 403 | 404 | 409 | 412)
            {
                return Ok(response);
            }
            // The status is enough if the body is incomplete.
            let body = response.into_body().bytes().await.unwrap_or_default();
            let text = format!("{status}: {}", String::from_utf8_lossy(&body));
            Err(HttpError::new(
                HttpErrorKind::Unknown,
                RejectedRequest {
                    status: status.as_u16(),
                    message: text,
                },
            ))
        }
    }

    impl HttpService for SingleAttemptService {
        fn call<'s, 'f>(
            &'s self,
            request: HttpRequest,
        ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
        where
            's: 'f,
            Self: 'f,
        {
            if request.extensions().get::<SingleAttempt>().is_some() {
                Box::pin(self.send_once(request))
            } else {
                Box::pin(self.0.execute(request))
            }
        }
    }
}
