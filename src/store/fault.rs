//! A store that fails on demand, for tests: the failures of networks and services, at a chosen
//! call.
//!
//! It wraps any store. A plan is consulted before every call and may return an [`InjectedFault`]
//! for it; the call log lets a test fail "at call n, for every n". It is used only in tests.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::{
    FolderListing, ObjectMeta, ObjectRole, ObjectUpload, PendingResult, PutOutcome, Store,
    TablePath,
};
use crate::error::{Error, Result};

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreOperation {
    /// [`Store::list_from`]
    List,
    /// [`Store::head`]
    Head,
    /// [`Store::get`]
    Get,
    /// [`Store::get_ranges`]
    GetRanges,
    /// [`Store::put_if_absent`]
    PutIfAbsent,
    /// [`Store::upload`]
    Upload,
    /// [`ObjectUpload::finish`]
    Finish,
    /// [`Store::delete_batch`]
    Delete,
}

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreCall {
    /// Its number, from 0.
    pub number: usize,
    /// Its kind.
    pub operation: StoreOperation,
    /// Its path.
    pub path: String,
}

/// The injected failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// The request never arrives.
    ErrorBefore,
    /// The request is executed, and its answer reports a failure.
    ErrorAfter,
    /// The request is executed, and the connection breaks before the answer.
    LostAnswer,
    /// The service answers with this status (429, 503) and does nothing.
    Status(u16),
    /// The request is executed, and the answer has this status all the same: a client or a gateway
    /// sent it twice.
    StatusAfter(u16),
    /// Reads return half of the bytes, with the right size.
    TornRead,
    /// Reads return half of the bytes, with the size of this half.
    ShortBody,
    /// A byte in the middle of the data read is changed.
    CorruptByte,
    /// Listings lack their newest entry; an object that was just made is not found.
    Stale,
    /// Listings come in reverse order.
    Reordered,
    /// The call takes this long, then succeeds.
    Delay(Duration),
}

type FaultPlan = dyn FnMut(&StoreCall) -> Option<InjectedFault> + Send;

/// A store that fails as planned, see the module's documentation.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Box<FaultPlan>>,
    calls: AtomicUsize,
    log: Mutex<Vec<StoreCall>>,
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl FaultStore {
    /// Wraps `inner`; calls fail according to `plan`.
    pub fn new(
        inner: Arc<dyn Store>,
        plan: impl FnMut(&StoreCall) -> Option<InjectedFault> + Send + 'static,
    ) -> Self {
        Self {
            inner,
            plan: Mutex::new(Box::new(plan)),
            calls: AtomicUsize::new(0),
            log: Mutex::default(),
        }
    }

    /// Wraps `inner`; only call `n` fails.
    pub fn at_call(inner: Arc<dyn Store>, n: usize, fault: InjectedFault) -> Self {
        Self::new(inner, move |call| (call.number == n).then_some(fault))
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<StoreCall> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn fault(&self, operation: StoreOperation, path: &str) -> Option<InjectedFault> {
        let call = StoreCall {
            number: self.calls.fetch_add(1, Ordering::SeqCst),
            operation,
            path: path.to_owned(),
        };
        let fault = (self.plan.lock().unwrap_or_else(PoisonError::into_inner))(&call);
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
        if let Some(InjectedFault::Delay(time)) = fault {
            std::thread::sleep(time);
        }
        fault
    }
}

fn error(fault: InjectedFault, path: &str) -> Error {
    let what = match fault {
        InjectedFault::Status(status @ (401 | 403))
        | InjectedFault::StatusAfter(status @ (401 | 403)) => {
            format!("access denied to {path} ({status}); check the credentials")
        }
        InjectedFault::Status(status) | InjectedFault::StatusAfter(status) => {
            format!("the service answered {status} for {path}")
        }
        InjectedFault::LostAnswer => {
            format!("the connection broke while waiting for the answer about {path}")
        }
        _ => format!("the request for {path} failed"),
    };
    Error::storage(what, true)
}

/// Applies a fault to the bytes of a read.
fn apply_read_fault(fault: Option<InjectedFault>, bytes: Bytes) -> Bytes {
    match fault {
        Some(InjectedFault::TornRead | InjectedFault::ShortBody) => bytes.slice(..bytes.len() / 2),
        Some(InjectedFault::CorruptByte) => {
            let mut damaged = bytes.to_vec();
            let middle = damaged.len() / 2;
            if let Some(byte) = damaged.get_mut(middle) {
                *byte ^= 0x80;
            }
            damaged.into()
        }
        _ => bytes,
    }
}

/// The faults of a read that end it.
fn ends_read(fault: Option<InjectedFault>) -> Option<InjectedFault> {
    fault.filter(|f| {
        matches!(
            f,
            InjectedFault::ErrorBefore
                | InjectedFault::ErrorAfter
                | InjectedFault::LostAnswer
                | InjectedFault::Status(_)
                | InjectedFault::StatusAfter(_)
        )
    })
}

/// The result of a put with this fault.
fn put_failure(fault: InjectedFault, path: &str) -> PutOutcome {
    match fault {
        InjectedFault::Status(401 | 403 | 404) | InjectedFault::StatusAfter(401 | 403 | 404) => {
            PutOutcome::Refused(error(fault, path))
        }
        _ => PutOutcome::Unknown(error(fault, path)),
    }
}

impl Store for FaultStore {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn can_list(&self) -> bool {
        self.inner.can_list()
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let fault = self.fault(StoreOperation::List, dir);
        if let Some(fault) = ends_read(fault) {
            return Err(error(fault, dir));
        }
        let mut listed = self.inner.list_from(dir, after)?;
        match fault {
            Some(InjectedFault::Stale) => _ = listed.pop(),
            Some(InjectedFault::Reordered) => listed.reverse(),
            _ => {}
        }
        Ok(listed)
    }

    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<FolderListing> {
        let fault = self.fault(StoreOperation::List, dir);
        if let Some(fault) = ends_read(fault) {
            return Err(error(fault, dir));
        }
        let mut listed = self.inner.list_folder(dir, take)?;
        match fault {
            Some(InjectedFault::Stale) => _ = listed.objects.pop(),
            Some(InjectedFault::Reordered) => listed.objects.reverse(),
            _ => {}
        }
        Ok(listed)
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let fault = self.fault(StoreOperation::Head, path);
        match ends_read(fault) {
            Some(fault) => Err(error(fault, path)),
            None if fault == Some(InjectedFault::Stale) => Err(Error::not_found(
                crate::error::NotFoundKind::Object,
                format!("no such object: {path}"),
            )),
            None => self.inner.head(path),
        }
    }

    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        let fault = self.fault(StoreOperation::Get, path);
        let path = path.to_owned();
        if let Some(fault) = ends_read(fault) {
            return PendingResult::lazy(move || Err(error(fault, &path)));
        }
        if fault == Some(InjectedFault::Stale) {
            return PendingResult::lazy(move || {
                Err(Error::not_found(
                    crate::error::NotFoundKind::Object,
                    format!("no such object: {path}"),
                ))
            });
        }
        let read = self.inner.get(&path);
        PendingResult::lazy(move || {
            let (bytes, mut meta) = read.wait()?;
            let bytes = apply_read_fault(fault, bytes);
            if fault == Some(InjectedFault::ShortBody) {
                meta.size = bytes.len() as u64;
            }
            Ok((bytes, meta))
        })
    }

    fn get_within(&self, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
        let (bytes, meta) = self.get(path).wait()?;
        super::check_length(path, meta.size, limit).map(|()| (bytes, meta))
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> PendingResult<Vec<Bytes>> {
        let fault = self.fault(StoreOperation::GetRanges, path);
        let path = path.to_owned();
        if let Some(fault) = ends_read(fault) {
            return PendingResult::lazy(move || Err(error(fault, &path)));
        }
        let read = self.inner.get_ranges(&path, ranges);
        PendingResult::lazy(move || {
            Ok(read
                .wait()?
                .into_iter()
                .map(|bytes| apply_read_fault(fault, bytes))
                .collect())
        })
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, role: ObjectRole) -> Result<PutOutcome> {
        match self.fault(StoreOperation::PutIfAbsent, path) {
            // The caller cannot distinguish a request that never arrived from one that did.
            Some(fault @ (InjectedFault::ErrorBefore | InjectedFault::Status(_))) => {
                Ok(put_failure(fault, path))
            }
            Some(
                fault @ (InjectedFault::ErrorAfter
                | InjectedFault::LostAnswer
                | InjectedFault::StatusAfter(_)),
            ) => {
                self.inner.put_if_absent(path, bytes, role)?;
                Ok(put_failure(fault, path))
            }
            _ => self.inner.put_if_absent(path, bytes, role),
        }
    }

    fn upload(&self, path: &str, role: ObjectRole) -> Result<Box<dyn ObjectUpload>> {
        match ends_read(self.fault(StoreOperation::Upload, path)) {
            Some(fault) => Err(error(fault, path)),
            None => {
                // The fault at the end is chosen at the beginning.
                let end = ends_read(self.fault(StoreOperation::Finish, path));
                Ok(Box::new(FaultUpload {
                    inner: self.inner.upload(path, role)?,
                    end,
                    path: path.to_owned(),
                }))
            }
        }
    }

    fn owns(&self, dir: &str) -> bool {
        self.inner.owns(dir)
    }

    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        let first = paths.first().map_or("", TablePath::as_str);
        let fault = self.fault(StoreOperation::Delete, first);
        if let Some(fault @ (InjectedFault::ErrorBefore | InjectedFault::Status(_))) = fault {
            return Err(error(fault, first));
        }
        let failed = self.inner.delete_inside(paths)?;
        match fault {
            Some(
                fault @ (InjectedFault::ErrorAfter
                | InjectedFault::LostAnswer
                | InjectedFault::StatusAfter(_)),
            ) => Err(error(fault, first)),
            _ => Ok(failed),
        }
    }

    fn remove_folder(&self, dir: &str) -> Result<()> {
        self.inner.remove_folder(dir)
    }

    fn authority_root(&self) -> Option<Arc<dyn Store>> {
        self.inner.authority_root()
    }
}

/// An upload that fails in [`ObjectUpload::finish`].
struct FaultUpload {
    inner: Box<dyn ObjectUpload>,
    end: Option<InjectedFault>,
    path: String,
}

impl ObjectUpload for FaultUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write(bytes)
    }

    fn finish(self: Box<Self>) -> PendingResult<ObjectMeta> {
        let Self { inner, end, path } = *self;
        match end {
            Some(fault @ (InjectedFault::ErrorBefore | InjectedFault::Status(_))) => {
                PendingResult::lazy(move || Err(error(fault, &path)))
            }
            Some(fault) => PendingResult::lazy(move || {
                inner.finish().wait()?;
                Err(error(fault, &path))
            }),
            None => inner.finish(),
        }
    }
}
