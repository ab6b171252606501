//! Byte storage: where a table is stored. Paths in, ranges of bytes and listings out; new objects
//! in.
//!
//! [`Store`] is synchronous on purpose: the rest of the crate is plain code on its own threads, and
//! operations that must overlap (remote reads) return a [`PendingResult`] that is already in
//! progress. The calling thread reads files on local disks with positioned reads; all other stores
//! go through `object_store` on the I/O runtime.
//!
//! Paths are relative to the store's root, decoded, with `/` between parts.

mod address;
mod check;
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
mod client;
mod credentials;
mod external_paths;
#[cfg(any(test, feature = "testing"))]
pub mod fault;
mod hadoop;
mod local;
mod local_file;
mod one_object;
mod options;
mod pending_result;
mod put;
#[cfg(feature = "tls")]
mod recorded_request;
mod remote;
mod remote_error;
#[cfg(feature = "tls")]
mod renewed_credentials;
mod request_log;
mod resolve;
mod single_attempt;
mod store_object;
mod table_path;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod unlink;
mod upload;
mod writer_queue;

pub use address::{SCHEMES, TableAddress, expand, is_url};
pub use check::{CheckOptions, ProbeFinding, ProbeVerdict, StoreCheckReport, check};
pub use credentials::{CredentialSource, RegisteredSource, TemporaryCredentials, has_source};
pub use external_paths::ExternalPaths;
pub use local::{LocalPutStep, LocalStore};
pub use one_object::StoreObject;
pub use options::{StorageOptions, option_warnings};
pub use pending_result::PendingResult;
pub use put::{make, make_unique, put_with_retries, replace};
pub use request_log::{RequestLog, RequestRecord, has_requests, record_requests, take_requests};
pub use resolve::{TableStores, open};
pub use store_object::{FolderListing, ObjectMeta, ObjectReader, ObjectRole, PutOutcome, Store};
pub(crate) use store_object::{LONGEST_OBJECT, check_length, outside_table_error};
pub use table_path::TablePath;
pub use upload::ObjectUpload;
pub use writer_queue::WriterQueueLock;
