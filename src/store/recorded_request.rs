//! The record of an HTTP request: what may be shown of it, and its answer.

use std::time::Instant;

use object_store::client::{HttpError, HttpRequest, HttpResponse};
use url::Url;

use super::request_log::{self, RequestRecord};

/// Parameters of a query that are recorded; others may be signatures or tokens.
const PARAMETERS: [&str; 13] = [
    "alt",
    "blockid",
    "comp",
    "delete",
    "delimiter",
    "list-type",
    "partNumber",
    "prefix",
    "restype",
    "start-after",
    "startOffset",
    "uploadType",
    "uploads",
];

/// A request that was sent and is not answered yet.
pub(super) struct StartedRequest {
    record: RequestRecord,
    start: Instant,
}

/// Begins a record if requests are recorded.
pub(super) fn start(request: &HttpRequest) -> Option<StartedRequest> {
    if !request_log::is_recording() {
        return None;
    }
    let range = request.headers().get("range");
    Some(StartedRequest {
        record: RequestRecord {
            method: request.method().to_string(),
            url: public_url(&request.uri().to_string()),
            range: range
                .and_then(|range| range.to_str().ok())
                .map(str::to_owned),
            sent_bytes: request.body().content_length(),
            status: None,
            received_bytes: None,
            error: None,
            elapsed_ms: 0.0,
        },
        start: Instant::now(),
    })
}

impl StartedRequest {
    /// Records the answer.
    pub(super) fn end(self, answer: &Result<HttpResponse, HttpError>) {
        let mut record = self.record;
        record.elapsed_ms = self.start.elapsed().as_secs_f64() * 1e3;
        match answer {
            Ok(response) => {
                let length = response.headers().get("content-length");
                record.status = Some(response.status().as_u16());
                record.received_bytes = length
                    .and_then(|length| length.to_str().ok())
                    .and_then(|length| length.parse().ok());
            }
            Err(error) => record.error = Some(format!("{:?}", error.kind())),
        }
        request_log::add(record);
    }
}

/// A URL without what gives access.
fn public_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return "(not a URL)".to_owned();
    };
    // A URL without a host has no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    let shown: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| PARAMETERS.contains(&&**name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.set_query(None);
    if !shown.is_empty() {
        url.query_pairs_mut().extend_pairs(shown);
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_what_gives_access() {
        for (given, shown) in [
            (
                "https://user:word@host/bucket/t/_delta_log/0.json?X-Amz-Signature=s&sig=s#f",
                "https://host/bucket/t/_delta_log/0.json",
            ),
            (
                "https://host/bucket?list-type=2&prefix=t%2F_delta_log%2F&continuation-token=c&sv=1",
                "https://host/bucket?list-type=2&prefix=t%2F_delta_log%2F",
            ),
            (
                "https://host/c/b?comp=block&blockid=AA%3D%3D&se=2026&sig=s",
                "https://host/c/b?comp=block&blockid=AA%3D%3D",
            ),
            ("word", "(not a URL)"),
        ] {
            assert_eq!(public_url(given), shown);
        }
    }

    #[test]
    fn nothing_is_recorded_unless_asked_for() {
        let request = HttpRequest::new(object_store::client::HttpRequestBody::empty());
        assert!(start(&request).is_none());
    }
}
