//! The credentials of a source in the form of a client of `object_store`.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use object_store::client::CredentialProvider;

use super::credentials::{CredentialCache, TemporaryCredentials};
use crate::error::{Error, Result};

/// The credentials of a store; each request asks for them.
pub(super) struct RenewedCredentials<C> {
    cache: Arc<CredentialCache>,
    convert: fn(&TemporaryCredentials) -> Result<C>,
}

impl<C> fmt::Debug for RenewedCredentials<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RenewedCredentials")
            .field(&self.cache)
            .finish()
    }
}

impl<C> RenewedCredentials<C> {
    /// Credentials of a source; `convert` gives them the form of the client.
    pub(super) fn new(
        cache: Arc<CredentialCache>,
        convert: fn(&TemporaryCredentials) -> Result<C>,
    ) -> Self {
        Self { cache, convert }
    }

    async fn get(&self) -> object_store::Result<Arc<C>> {
        let given = match self.cache.fresh() {
            Some(given) => given,
            None => {
                let cache = Arc::clone(&self.cache);
                // The source may wait for a network.
                tokio::task::spawn_blocking(move || cache.renew())
                    .await
                    .map_err(client_error)?
                    .map_err(|error| client_error(SourceFailure(error)))?
            }
        };
        (self.convert)(&given)
            .map(Arc::new)
            .map_err(|error| client_error(SourceFailure(error)))
    }
}

fn client_error(cause: impl StdError + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic {
        store: "credentials",
        source: Box::new(cause),
    }
}

impl<C: Send + Sync + 'static> CredentialProvider for RenewedCredentials<C> {
    type Credential = C;

    fn get_credential<'provider, 'answer>(
        &'provider self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<C>>> + Send + 'answer>>
    where
        'provider: 'answer,
        Self: 'answer,
    {
        Box::pin(self.get())
    }
}

/// The failure of a source, as the cause of a client's error.
#[derive(Debug)]
struct SourceFailure(Error);

impl fmt::Display for SourceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for SourceFailure {}

/// The failure of a source that made a request fail: its message, and whether to try again.
pub(super) fn failure_of(error: &object_store::Error) -> Option<(String, bool)> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(SourceFailure(failure)) = error.downcast_ref() {
            let retryable = matches!(
                failure,
                Error::Storage {
                    retryable: true,
                    ..
                }
            );
            return Some((failure.to_string(), retryable));
        }
        cause = error.source();
    }
    None
}
