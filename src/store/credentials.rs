//! Temporary credentials: a source that the program supplies is asked again before they expire,
//! once for all threads and stores.
//!
//! A source is passed to a store's constructor by its key in the storage options, which are strings
//! everywhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::options::{StorageOptions, check_credential, option};
use crate::error::{Error, Result};
use crate::exec::now_ms;
use crate::process::{ProcessMutex, RaceOnce};

/// The storage option with the key of a [`RegisteredSource`].
const KEY: &str = "credential_source";

/// A source of credentials; asked from any thread, one at a time for each store.
pub trait CredentialSource: fmt::Debug + Send + Sync {
    /// New credentials.
    ///
    /// # Errors
    /// [`Error::Storage`]: its source failed.
    fn credentials(&self) -> Result<TemporaryCredentials>;
}

/// Credentials of one service, by the names that `object_store` gives them.
#[derive(Clone, Default)]
pub struct TemporaryCredentials {
    /// S3: `access_key_id`, `secret_access_key` and `token`; Azure: `access_key`, `sas_token` or
    /// `token`; Google: `token`.
    pub values: HashMap<String, String>,
    /// When they expire, milliseconds since the epoch; `None` for never.
    pub expires_at_ms: Option<i64>,
}

impl fmt::Debug for TemporaryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&String> = self.values.keys().collect();
        names.sort_unstable();
        f.debug_struct("TemporaryCredentials")
            .field("values", &names)
            .field("expires_at_ms", &self.expires_at_ms)
            .finish()
    }
}

/// Credentials are renewed this long before they expire, or a fifth of their life before.
const MARGIN_MS: i64 = 300_000;

/// Credentials are used at least so long: with an expiry in the past, as clocks that differ make
/// it, the source would be asked before each request.
const LEAST_LIFE_MS: i64 = 1_000;

/// The credentials of a source, for all stores that use it.
#[derive(Debug)]
pub(super) struct CredentialCache {
    source: Box<dyn CredentialSource>,
    held: ProcessMutex<Option<HeldCredentials>>,
    /// Locked while the source is asked.
    asking: ProcessMutex<()>,
}

#[derive(Debug)]
struct HeldCredentials {
    credentials: Arc<TemporaryCredentials>,
    renew_at_ms: i64,
    expires_at_ms: i64,
}

impl CredentialCache {
    fn new(source: Box<dyn CredentialSource>) -> Self {
        Self {
            source,
            held: ProcessMutex::default(),
            asking: ProcessMutex::default(),
        }
    }

    fn held_until(
        &self,
        limit: impl Fn(&HeldCredentials) -> i64,
    ) -> Option<Arc<TemporaryCredentials>> {
        let held = self.held.lock();
        held.as_ref()
            .filter(|held| now_ms() < limit(held))
            .map(|held| Arc::clone(&held.credentials))
    }

    /// Credentials that need not be renewed yet.
    pub(super) fn fresh(&self) -> Option<Arc<TemporaryCredentials>> {
        self.held_until(|held| held.renew_at_ms)
    }

    /// Asks the source, unless another thread has just done so; blocks.
    pub(super) fn renew(&self) -> Result<Arc<TemporaryCredentials>> {
        let _asking = self.asking.lock();
        if let Some(credentials) = self.fresh() {
            return Ok(credentials);
        }
        match self
            .source
            .credentials()
            .and_then(TemporaryCredentials::checked)
        {
            Ok(given) => {
                let expires_at_ms = given.expires_at_ms.unwrap_or(i64::MAX);
                let margin = (expires_at_ms.saturating_sub(now_ms()) / 5).clamp(0, MARGIN_MS);
                let credentials = Arc::new(given);
                *self.held.lock() = Some(HeldCredentials {
                    credentials: Arc::clone(&credentials),
                    renew_at_ms: expires_at_ms
                        .saturating_sub(margin)
                        .max(now_ms().saturating_add(LEAST_LIFE_MS)),
                    expires_at_ms,
                });
                Ok(credentials)
            }
            // The old ones are valid for some time still.
            Err(error) => self.held_until(|held| held.expires_at_ms).ok_or(error),
        }
    }
}

type Sources = ProcessMutex<HashMap<u64, Weak<CredentialCache>>>;

static SOURCES: RaceOnce<Sources> = RaceOnce::new();
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A source that storage options can refer to, as long as this value exists.
#[derive(Debug)]
pub struct RegisteredSource {
    key: u64,
    cache: Arc<CredentialCache>,
}

impl RegisteredSource {
    /// Registers a source.
    #[must_use]
    pub fn new(source: Box<dyn CredentialSource>) -> Self {
        Self {
            key: NEXT.fetch_add(1, Ordering::Relaxed),
            cache: Arc::new(CredentialCache::new(source)),
        }
    }

    /// The storage option that refers to the source.
    #[must_use]
    pub fn option(&self) -> (String, String) {
        // Again for each use: a forked child has a registry of its own.
        sources()
            .lock()
            .insert(self.key, Arc::downgrade(&self.cache));
        (KEY.to_owned(), self.key.to_string())
    }
}

impl Drop for RegisteredSource {
    fn drop(&mut self) {
        sources().lock().remove(&self.key);
    }
}

fn sources() -> &'static Sources {
    SOURCES.get_or_make(ProcessMutex::default)
}

/// Whether storage options refer to a source.
#[must_use]
pub fn has_source(options: &StorageOptions) -> bool {
    option(options, &[KEY]).is_some()
}

/// The source that storage options refer to.
pub(super) fn source_of(options: &StorageOptions) -> Result<Option<Arc<CredentialCache>>> {
    let Some(key) = option(options, &[KEY]) else {
        return Ok(None);
    };
    key.parse()
        .ok()
        .and_then(|key: u64| sources().lock().get(&key).and_then(Weak::upgrade))
        .map(Some)
        .ok_or_else(|| {
            Error::invalid(format!(
                "`{KEY}` is not an option to set: give `credential_provider`"
            ))
        })
}

impl TemporaryCredentials {
    /// The values as storage options have theirs: without white space around them. The client
    /// libraries panic at a control character within one.
    ///
    /// # Errors
    /// [`Error::Invalid`] names a value that no request can carry.
    fn checked(mut self) -> Result<Self> {
        for (name, value) in &mut self.values {
            let what = format!("`{name}` of the credential provider");
            *value = check_credential(&what, value)?;
        }
        Ok(self)
    }

    /// A value.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is missing.
    #[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
    pub(super) fn value(&self, name: &str, service: &str) -> Result<&str> {
        self.optional(name).ok_or_else(|| {
            Error::invalid(format!(
                "the credential provider gave no `{name}`, which {service} needs"
            ))
        })
    }

    /// A value that may be missing.
    #[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// Answers lives in milliseconds from a list, the last one first.
    #[derive(Debug)]
    struct ListedLives(Mutex<Vec<Option<i64>>>);

    impl CredentialSource for ListedLives {
        fn credentials(&self) -> Result<TemporaryCredentials> {
            let next = self.0.lock().unwrap().pop().expect("asked too often");
            let life = next.ok_or_else(|| Error::storage("broken", true))?;
            Ok(TemporaryCredentials {
                values: HashMap::from([("token".to_owned(), life.to_string())]),
                expires_at_ms: Some(now_ms() + life),
            })
        }
    }

    fn cache(lives: Vec<Option<i64>>) -> CredentialCache {
        CredentialCache::new(Box::new(ListedLives(Mutex::new(lives))))
    }

    fn token(cache: &CredentialCache) -> String {
        cache.renew().unwrap().values["token"].clone()
    }

    #[test]
    fn credentials_are_asked_for_once_while_they_are_fresh() {
        let cache = cache(vec![Some(3_600_000)]);
        for _ in 0..3 {
            assert_eq!(token(&cache), "3600000");
        }
    }

    #[test]
    fn credentials_are_renewed_before_they_expire() {
        let cache = cache(vec![Some(3_600_000), Some(5_000)]);
        assert_eq!(token(&cache), "5000");
        assert!(cache.fresh().is_some());
        sleep(Duration::from_millis(4_010));
        assert!(cache.fresh().is_none());
        assert_eq!(token(&cache), "3600000");
    }

    #[test]
    fn credentials_that_have_expired_already_are_used_for_a_second() {
        let cache = cache(vec![Some(-5_000), Some(-60_000)]);
        assert_eq!(token(&cache), "-60000");
        assert_eq!(token(&cache), "-60000");
        sleep(Duration::from_millis(1_010));
        assert_eq!(token(&cache), "-5000");
    }

    #[test]
    fn valid_credentials_are_used_while_the_source_fails() {
        let cache = cache(vec![None, None, Some(5_000)]);
        assert_eq!(token(&cache), "5000");
        sleep(Duration::from_millis(4_010));
        assert_eq!(token(&cache), "5000");
        sleep(Duration::from_secs(1));
        assert_eq!(cache.renew().unwrap_err().to_string(), "broken");
    }

    #[test]
    fn options_refer_to_a_source_while_it_is_registered() {
        let registered = RegisteredSource::new(Box::new(ListedLives(Mutex::default())));
        let options = StorageOptions::from([registered.option()]);
        assert!(has_source(&options));
        assert!(source_of(&options).unwrap().is_some());
        drop(registered);
        assert!(source_of(&options).is_err());
        assert!(source_of(&StorageOptions::new()).unwrap().is_none());
    }

    /// Answers one value.
    #[derive(Debug)]
    struct OneValue(&'static str);

    impl CredentialSource for OneValue {
        fn credentials(&self) -> Result<TemporaryCredentials> {
            Ok(TemporaryCredentials {
                values: HashMap::from([("token".to_owned(), self.0.to_owned())]),
                expires_at_ms: None,
            })
        }
    }

    #[test]
    fn values_are_checked_as_those_of_options_are() {
        let renewed = |value| CredentialCache::new(Box::new(OneValue(value))).renew();
        for value in ["word", " word", "word\n", "\r\nword\t"] {
            assert_eq!(renewed(value).unwrap().values["token"], "word");
        }
        for value in [
            "wo\nrd",
            "wo\rrd",
            "wo\0rd",
            "wo\u{7f}rd",
            "wo\u{85}rd",
            "w\u{f6}rd",
        ] {
            let error = renewed(value).unwrap_err().to_string();
            assert!(
                error.starts_with("`token` of the credential provider has"),
                "{error}"
            );
            assert!(!error.contains("wo"), "{error}");
        }
    }

    #[test]
    fn values_are_not_shown() {
        let cache = cache(vec![Some(98_765)]);
        token(&cache);
        assert!(!format!("{cache:?}").contains("98765"));
    }
}
