//! Errors of object stores, by what a user can do about them.

use crate::error::{CallOption, Error, NotFoundKind};

/// One line for an `object_store` error. Its message can contain request URLs (redacted when shown)
/// but never keys.
pub(super) fn failure(path: &str, error: &object_store::Error) -> Error {
    failed("read", path, error)
}

/// The same for an operation on `path`.
pub(super) fn failed(to: &str, path: &str, error: &object_store::Error) -> Error {
    use object_store::Error as E;
    if let E::NotFound { .. } = error {
        return Error::not_found(NotFoundKind::Object, format!("no such object: {path}"));
    }
    if let Some(exhausted) = exhausted(path, error) {
        return exhausted;
    }
    #[cfg(feature = "tls")]
    if let Some((what, retryable)) = super::renewed_credentials::failure_of(error) {
        return Error::storage(format!("cannot {to} {path}: {what}"), retryable);
    }
    let text = match error {
        E::PermissionDenied { source, .. } | E::Unauthenticated { source, .. } => {
            source.to_string()
        }
        other => other.to_string(),
    };
    #[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
    if super::client::is_about_metadata(&text) {
        return no_credentials(path);
    }
    if text.contains("status code: 30") {
        return Error::storage(
            format!(
                "cannot {to} {path}: {}; a redirect to another origin is not followed with credentials: check the endpoint and the region",
                error_summary(&text)
            ),
            false,
        );
    }
    // A refused listing is a generic error, so its status is taken from the message.
    let refused = matches!(
        error,
        E::PermissionDenied { .. } | E::Unauthenticated { .. }
    ) || ["401 ", "403 "]
        .iter()
        .any(|status| text.contains(&format!("status code: {status}")));
    if refused {
        return Error::storage(
            format!(
                "access denied to {path}: {}; check the credentials in {} or the environment",
                error_summary(&text),
                CallOption::StorageOptions
            ),
            false,
        );
    }
    if text.contains("builder error") && text.contains(" http://") {
        return Error::storage(
            format!(
                "cannot {to} {path}: its endpoint is plain HTTP, which needs the storage option `allow_http`"
            ),
            false,
        );
    }
    Error::storage(
        format!("cannot {to} {path}: {}", error_summary(&text)),
        true,
    )
}

/// The resource whose exhaustion made a request fail.
pub(super) fn exhausted(path: &str, error: &object_store::Error) -> Option<Error> {
    let mut reason: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = reason {
        if let Some(exhausted) = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| Error::exhausted(path, error))
        {
            return Some(exhausted);
        }
        reason = error.source();
    }
    None
}

/// The error for missing credentials.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
pub(super) fn no_credentials(path: &str) -> Error {
    let (keys, other_sources, public) = match path.split(':').next() {
        Some("gs") => (
            "`google_service_account` or `google_application_credentials`",
            "",
            "`google_skip_signature=true` for a public bucket",
        ),
        Some("az" | "azure" | "adl" | "abfs" | "abfss") => (
            "`azure_storage_account_key`, `azure_storage_sas_token`, a service principal or `azure_use_azure_cli=true`",
            "",
            "`azure_skip_signature=true` for a public container",
        ),
        _ => (
            "`aws_access_key_id` and `aws_secret_access_key`",
            " (profiles of `~/.aws` need the Python library botocore)",
            "`aws_skip_signature=true` for a public bucket",
        ),
    };
    Error::storage(
        format!(
            "no credentials for {path}: none are given, and this machine has no role of its own; give {keys} in {} or the environment{other_sources}, or {public}",
            CallOption::StorageOptions
        ),
        false,
    )
}

/// The head of an HTTP client's message, which may carry a whole XML or HTML body, and the code
/// that a service gives there. Nothing else of the body: some services repeat the key's name and
/// what was signed.
pub(super) fn error_summary(text: &str) -> String {
    let head = text
        .split(['<', '\n'])
        .next()
        .unwrap_or(text)
        .trim_end_matches([' ', ':']);
    let head: String = head.chars().take(300).collect();
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"))
        .map(|(code, _)| code);
    match code.filter(|code| {
        !code.is_empty() && code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphanumeric())
    }) {
        Some(code) => format!("{head} ({code})"),
        None => head,
    }
}
