//! Records of the requests to object stores, for debug messages.
//!
//! The threads of a store must not call a program's logger: records wait in a bounded queue until a
//! thread of the program takes them.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, bounded};
use serde::Serialize;

use crate::process::PerProcess;

/// Records that wait at most.
const MOST_WAITING: usize = 10_000;

static RECORDING: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicUsize = AtomicUsize::new(0);
static WAITING: PerProcess<(Sender<RequestRecord>, Receiver<RequestRecord>)> = PerProcess::new();

/// One request and its answer; a request that is sent again has a record for each attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestRecord {
    /// The HTTP method.
    pub method: String,
    /// The URL without user name, password, signature and tokens.
    pub url: String,
    /// The header `Range`.
    pub range: Option<String>,
    /// The bytes of the request's body.
    pub sent_bytes: usize,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The bytes of the answer's body, if its headers say it.
    pub received_bytes: Option<u64>,
    /// The kind of error if there was no answer.
    pub error: Option<String>,
    /// Milliseconds until the headers of the answer.
    pub elapsed_ms: f64,
}

/// What was recorded since records were taken last.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequestLog {
    /// The records, in the order of the answers.
    pub records: Vec<RequestRecord>,
    /// The number of requests that were not recorded, since too many records waited.
    pub dropped: usize,
}

/// Starts or stops recording in this process.
pub fn record_requests(on: bool) {
    RECORDING.store(on, Ordering::Relaxed);
}

/// Takes what was recorded; empty where nothing was.
#[must_use]
pub fn take_requests() -> RequestLog {
    RequestLog {
        records: waiting().1.try_iter().collect(),
        dropped: DROPPED.swap(0, Ordering::Relaxed),
    }
}

/// Whether something was recorded.
#[must_use]
pub fn has_requests() -> bool {
    RECORDING.load(Ordering::Relaxed) && !waiting().1.is_empty()
}

/// Whether requests are recorded.
#[cfg(feature = "tls")]
pub(super) fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Adds a record; drops it if too many wait.
#[cfg(feature = "tls")]
pub(super) fn add(record: RequestRecord) {
    if waiting().0.try_send(record).is_err() {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn waiting() -> &'static (Sender<RequestRecord>, Receiver<RequestRecord>) {
    WAITING
        .get(|| Ok::<_, Infallible>(bounded(MOST_WAITING)))
        .unwrap_or_else(|never| match never {})
}
