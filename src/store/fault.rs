//! A store that fails on demand, for tests: what networks and services do, at a chosen call.
//!
//! Wraps any store. A plan is asked before every call and may name a [`Fault`] for it; the call log
//! lets a test fail "at call n, for every n". Nothing outside of tests makes one.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::{Folder, ObjectMeta, Pending, Put, Role, Store, TablePath, Upload};
use crate::error::{Error, Result};

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
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
    /// [`Upload::finish`]
    Finish,
    /// [`Store::delete_batch`]
    Delete,
}

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its number, from 0.
    pub number: usize,
    /// What it is.
    pub operation: Operation,
    /// Its path.
    pub path: String,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request never arrives.
    ErrorBefore,
    /// The request is done, and its answer says that it failed.
    ErrorAfter,
    /// The request is done, and the connection breaks before the answer.
    LostAnswer,
    /// The service answers with this status (429, 503) and does nothing.
    Status(u16),
    /// The request is done, and the answer has this status all the same: a client or a gateway
    /// below sent it twice.
    StatusAfter(u16),
    /// Reads give half of the bytes, under the right size.
    TornRead,
    /// Reads give half of the bytes, and say that this is all.
    ShortBody,
    /// A byte in the middle of what is read is another one.
    CorruptByte,
    /// Listings lack their newest entry; an object that was made a moment ago is not found.
    Stale,
    /// Listings come in reverse order.
    Reordered,
    /// The call takes this long, then goes well.
    Delay(Duration),
}

type Plan = dyn FnMut(&Call) -> Option<Fault> + Send;

/// See the module's text.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Box<Plan>>,
    calls: AtomicUsize,
    log: Mutex<Vec<Call>>,
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl FaultStore {
    /// `inner`, failing as `plan` says.
    pub fn new(
        inner: Arc<dyn Store>,
        plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> Self {
        Self {
            inner,
            plan: Mutex::new(Box::new(plan)),
            calls: AtomicUsize::new(0),
            log: Mutex::default(),
        }
    }

    /// `inner`, failing at call `n` only.
    pub fn at_call(inner: Arc<dyn Store>, n: usize, fault: Fault) -> Self {
        Self::new(inner, move |call| (call.number == n).then_some(fault))
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn fault(&self, operation: Operation, path: &str) -> Option<Fault> {
        let call = Call {
            number: self.calls.fetch_add(1, Ordering::SeqCst),
            operation,
            path: path.to_owned(),
        };
        let fault = (self.plan.lock().unwrap_or_else(PoisonError::into_inner))(&call);
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
        if let Some(Fault::Delay(time)) = fault {
            std::thread::sleep(time);
        }
        fault
    }
}

fn error(fault: Fault, path: &str) -> Error {
    let what = match fault {
        Fault::Status(status @ (401 | 403)) | Fault::StatusAfter(status @ (401 | 403)) => {
            format!("access denied to {path} ({status}); check the credentials")
        }
        Fault::Status(status) | Fault::StatusAfter(status) => {
            format!("the service answered {status} for {path}")
        }
        Fault::LostAnswer => {
            format!("the connection broke while waiting for the answer about {path}")
        }
        _ => format!("the request for {path} failed"),
    };
    Error::storage(what, true)
}

/// What happens to the bytes of a read.
fn damage(fault: Option<Fault>, bytes: Bytes) -> Bytes {
    match fault {
        Some(Fault::TornRead | Fault::ShortBody) => bytes.slice(..bytes.len() / 2),
        Some(Fault::CorruptByte) => {
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
fn ends_read(fault: Option<Fault>) -> Option<Fault> {
    fault.filter(|f| {
        matches!(
            f,
            Fault::ErrorBefore
                | Fault::ErrorAfter
                | Fault::LostAnswer
                | Fault::Status(_)
                | Fault::StatusAfter(_)
        )
    })
}

/// The result of a put with this fault.
fn put_failure(fault: Fault, path: &str) -> Put {
    match fault {
        Fault::Status(401 | 403 | 404) | Fault::StatusAfter(401 | 403 | 404) => {
            Put::Refused(error(fault, path))
        }
        _ => Put::Unknown(error(fault, path)),
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
        let fault = self.fault(Operation::List, dir);
        if let Some(fault) = ends_read(fault) {
            return Err(error(fault, dir));
        }
        let mut listed = self.inner.list_from(dir, after)?;
        match fault {
            Some(Fault::Stale) => _ = listed.pop(),
            Some(Fault::Reordered) => listed.reverse(),
            _ => {}
        }
        Ok(listed)
    }

    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<Folder> {
        let fault = self.fault(Operation::List, dir);
        if let Some(fault) = ends_read(fault) {
            return Err(error(fault, dir));
        }
        let mut listed = self.inner.list_folder(dir, take)?;
        match fault {
            Some(Fault::Stale) => _ = listed.objects.pop(),
            Some(Fault::Reordered) => listed.objects.reverse(),
            _ => {}
        }
        Ok(listed)
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        let fault = self.fault(Operation::Head, path);
        match ends_read(fault) {
            Some(fault) => Err(error(fault, path)),
            None if fault == Some(Fault::Stale) => Err(Error::not_found(
                crate::error::Missing::Object,
                format!("no such object: {path}"),
            )),
            None => self.inner.head(path),
        }
    }

    fn get(&self, path: &str) -> Pending<(Bytes, ObjectMeta)> {
        let fault = self.fault(Operation::Get, path);
        let path = path.to_owned();
        if let Some(fault) = ends_read(fault) {
            return Pending::lazy(move || Err(error(fault, &path)));
        }
        if fault == Some(Fault::Stale) {
            return Pending::lazy(move || {
                Err(Error::not_found(
                    crate::error::Missing::Object,
                    format!("no such object: {path}"),
                ))
            });
        }
        let read = self.inner.get(&path);
        Pending::lazy(move || {
            let (bytes, mut meta) = read.wait()?;
            let bytes = damage(fault, bytes);
            if fault == Some(Fault::ShortBody) {
                meta.size = bytes.len() as u64;
            }
            Ok((bytes, meta))
        })
    }

    fn get_within(&self, path: &str, limit: u64) -> Result<(Bytes, ObjectMeta)> {
        let (bytes, meta) = self.get(path).wait()?;
        super::check_length(path, meta.size, limit).map(|()| (bytes, meta))
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> Pending<Vec<Bytes>> {
        let fault = self.fault(Operation::GetRanges, path);
        let path = path.to_owned();
        if let Some(fault) = ends_read(fault) {
            return Pending::lazy(move || Err(error(fault, &path)));
        }
        let read = self.inner.get_ranges(&path, ranges);
        Pending::lazy(move || {
            Ok(read
                .wait()?
                .into_iter()
                .map(|bytes| damage(fault, bytes))
                .collect())
        })
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, role: Role) -> Result<Put> {
        match self.fault(Operation::PutIfAbsent, path) {
            // From here a request that never arrived looks like one that did.
            Some(fault @ (Fault::ErrorBefore | Fault::Status(_))) => Ok(put_failure(fault, path)),
            Some(fault @ (Fault::ErrorAfter | Fault::LostAnswer | Fault::StatusAfter(_))) => {
                self.inner.put_if_absent(path, bytes, role)?;
                Ok(put_failure(fault, path))
            }
            _ => self.inner.put_if_absent(path, bytes, role),
        }
    }

    fn upload(&self, path: &str, role: Role) -> Result<Box<dyn Upload>> {
        match ends_read(self.fault(Operation::Upload, path)) {
            Some(fault) => Err(error(fault, path)),
            None => {
                // What goes wrong at the end is known at the beginning; only then there is
                // something to go wrong with.
                let end = ends_read(self.fault(Operation::Finish, path));
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
        let fault = self.fault(Operation::Delete, first);
        if let Some(fault @ (Fault::ErrorBefore | Fault::Status(_))) = fault {
            return Err(error(fault, first));
        }
        let failed = self.inner.delete_inside(paths)?;
        match fault {
            Some(fault @ (Fault::ErrorAfter | Fault::LostAnswer | Fault::StatusAfter(_))) => {
                Err(error(fault, first))
            }
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

/// An upload that fails at its end.
struct FaultUpload {
    inner: Box<dyn Upload>,
    end: Option<Fault>,
    path: String,
}

impl Upload for FaultUpload {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write(bytes)
    }

    fn finish(self: Box<Self>) -> Pending<ObjectMeta> {
        let Self { inner, end, path } = *self;
        match end {
            Some(fault @ (Fault::ErrorBefore | Fault::Status(_))) => {
                Pending::lazy(move || Err(error(fault, &path)))
            }
            Some(fault) => Pending::lazy(move || {
                inner.finish().wait()?;
                Err(error(fault, &path))
            }),
            None => inner.finish(),
        }
    }
}
