//! Hadoop's file systems (HDFS, and every other one with a Java class), through the JVM of a Spark
//! driver.
//!
//! The server is `HadoopGateway` in `java/`, which listens on the loopback interface: a connection
//! sends a secret, then carries one request after another. Idle connections are kept;
//! each request has a connection of its own, so many can be in flight at once. Numbers are
//! big-endian; strings and blocks are prefixed with their length.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{
    FolderListing, ObjectMeta, ObjectRole, ObjectUpload, PendingResult, PutOutcome, Store,
    TablePath,
};
use crate::error::{Error, NotFoundKind, Result};
use crate::exec;
use crate::process::ProcessMutex;

/// Idle connections that are kept.
const IDLE: usize = 16;
/// The largest piece that is sent at once.
const PIECE: usize = 1 << 20;
/// Files that are deleted by one request, and concurrent requests.
const BATCH: usize = 64;
const BATCHES_AT_ONCE: usize = 8;
/// The length that marks the following bytes as an error.
const BROKEN: u32 = u32::MAX;

/// Statuses of the gateway: the first byte of an answer.
mod status {
    pub(super) const OK: u8 = 0;
    pub(super) const MISSING: u8 = 1;
    pub(super) const DENIED: u8 = 2;
    pub(super) const UNSUPPORTED: u8 = 3;
    pub(super) const SHORT: u8 = 5;
    pub(super) const UNKNOWN: u8 = 6;
    pub(super) const WRONG: u8 = 7;
    pub(super) const REFUSED: u8 = 8;
}

/// The address of the driver's Java gateway, and the parameters that requests to it need.
#[derive(Debug)]
struct JavaGateway {
    address: String,
    secret: SecretString,
    /// The configuration with which the gateway opens file systems.
    configuration: String,
    idle: ProcessMutex<Vec<GatewayConnection>>,
}

/// A string that is never shown.
struct SecretString(String);

impl std::fmt::Debug for SecretString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// The names of the options for a gateway: its address, its secret, and a configuration.
pub(super) const OPTIONS: [&str; 3] = [
    "hadoop_gateway",
    "hadoop_gateway_secret",
    "hadoop_gateway_configuration",
];

/// A folder of a Hadoop file system.
#[derive(Debug, Clone)]
pub(super) struct HadoopStore {
    gateway: Arc<JavaGateway>,
    scheme: String,
    authority: String,
    /// Decoded, without a slash at either end.
    root: String,
    url: String,
    /// Whether files may be created by an existence check first.
    risk: bool,
}

impl HadoopStore {
    /// The folder at `uri` in Hadoop's form: nothing in it is encoded. The other arguments are the
    /// values of [`OPTIONS`].
    pub(super) fn new(
        uri: &str,
        [address, secret, configuration]: [&str; 3],
        risk: bool,
    ) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "not a URL of Hadoop, which is scheme://authority/path: {}",
                super::address::safe(uri)
            ))
        };
        let (scheme, rest) = uri.split_once("://").ok_or_else(bad)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if scheme.is_empty() || parts.iter().any(|part| matches!(*part, "." | "..")) {
            return Err(bad());
        }
        let root = parts.join("/");
        Ok(Self {
            gateway: Arc::new(JavaGateway {
                address: address.to_owned(),
                secret: SecretString(secret.to_owned()),
                configuration: configuration.to_owned(),
                idle: ProcessMutex::default(),
            }),
            scheme: scheme.to_owned(),
            authority: authority.to_owned(),
            url: format!(
                "{scheme}://{authority}/{root}{}",
                if root.is_empty() { "" } else { "/" }
            ),
            root,
            risk,
        })
    }

    fn full(&self, path: &str) -> String {
        let mut full = format!("/{}", self.root);
        if !path.is_empty() {
            if !self.root.is_empty() {
                full.push('/');
            }
            full.push_str(path);
        }
        full
    }

    fn request(&self, operation: u8, path: &str) -> GatewayRequest {
        let mut bytes = vec![operation];
        for text in [
            &self.gateway.configuration,
            &self.scheme,
            &self.authority,
            &self.full(path),
        ] {
            put_text(&mut bytes, text);
        }
        GatewayRequest {
            bytes,
            url: format!("{}{path}", self.url),
            action: "read",
        }
    }

    /// A write request; it also has the flags for an existence check first and for durability.
    fn write_request(&self, operation: u8, path: &str, role: ObjectRole) -> GatewayRequest {
        let mut request = self.request(operation, path);
        request
            .bytes
            .extend([u8::from(self.risk), u8::from(role == ObjectRole::Essential)]);
        request.action = "write";
        request
    }

    /// Sends a request and lets `read` read the rest of the answer after the status.
    fn send_request<T>(
        &self,
        request: &GatewayRequest,
        read: impl Fn(&mut GatewayConnection) -> GatewayResult<T>,
    ) -> Result<T> {
        exec::blocking(|| self.read_response(request, read)).map_err(|fault| request.failed(fault))
    }

    fn read_response<T>(
        &self,
        request: &GatewayRequest,
        read: impl Fn(&mut GatewayConnection) -> GatewayResult<T>,
    ) -> GatewayResult<T> {
        let mut connection = self.gateway.send(&request.bytes)?;
        connection.status()?;
        let found = read(&mut connection);
        // After an error that was reported in a complete response the connection can be used again.
        if !matches!(found, Err(GatewayError::Torn(_))) {
            self.gateway.return_connection(connection);
        }
        found
    }

    fn list_entries(&self, dir: &str, after: &str) -> Result<Vec<(bool, ObjectMeta)>> {
        let mut request = self.request(b'L', dir);
        put_text(&mut request.bytes, after);
        request.action = "list";
        let found = self.send_request(&request, |connection| {
            let mut out = Vec::new();
            loop {
                let is_folder = match connection.byte()? {
                    0 => return Ok(out),
                    1 => false,
                    2 => true,
                    _ => {
                        connection.status()?;
                        return Err(GatewayError::Torn(io::ErrorKind::InvalidData.into()));
                    }
                };
                let name = connection.text()?;
                let path = if dir.is_empty() {
                    name
                } else {
                    format!("{dir}/{name}")
                };
                out.push((
                    is_folder,
                    ObjectMeta {
                        path,
                        size: connection.number()?,
                        modified_ms: connection.signed()?,
                    },
                ));
            }
        });
        match found {
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            found => found,
        }
    }

    fn spawn<T: Send + 'static>(
        &self,
        request: GatewayRequest,
        read: impl Fn(&mut GatewayConnection) -> GatewayResult<T> + Send + 'static,
    ) -> PendingResult<T> {
        let this = self.clone();
        match exec::runtime() {
            Ok(runtime) => PendingResult::task(
                runtime.spawn_blocking(move || this.send_request(&request, read)),
            ),
            Err(error) => PendingResult::lazy(move || Err(error)),
        }
    }

    fn delete_some(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        // The request's own path is the root, below which the gateway follows no links.
        let mut request = self.request(b'D', "");
        request.action = "delete";
        put_length(&mut request.bytes, paths.len());
        for path in paths {
            put_text(&mut request.bytes, &self.full(path.as_str()));
        }
        self.send_request(&request, |connection| {
            let mut out = Vec::new();
            for path in paths {
                match connection.status() {
                    Ok(()) => {}
                    Err(fault @ GatewayError::Told(..)) => {
                        let path = path.as_str();
                        out.push((
                            path.to_owned(),
                            GatewayRequest {
                                bytes: Vec::new(),
                                url: format!("{}{path}", self.url),
                                action: "delete",
                            }
                            .failed(fault),
                        ));
                    }
                    Err(fault) => return Err(fault),
                }
            }
            Ok(out)
        })
    }
}

/// A request, with the context for its error messages.
struct GatewayRequest {
    bytes: Vec<u8>,
    url: String,
    action: &'static str,
}

impl GatewayRequest {
    fn failed(&self, fault: GatewayError) -> Error {
        let Self {
            url, action: doing, ..
        } = self;
        match fault {
            GatewayError::Told(status::MISSING, _) => {
                Error::not_found(NotFoundKind::Object, format!("no such object: {url}"))
            }
            GatewayError::Told(status::DENIED | status::REFUSED, why) => Error::storage(
                format!("access denied to {url}: {}", without_secrets(&why)),
                false,
            ),
            GatewayError::Told(status::UNSUPPORTED, why) => {
                Error::unsupported(format!("cannot {doing} {url}: {}", without_secrets(&why)))
            }
            GatewayError::Told(status::WRONG, why) => {
                Error::invalid(format!("cannot {doing} {url}: {}", without_secrets(&why)))
            }
            GatewayError::Told(status::SHORT, _) => {
                Error::corrupt_data(format!("the file is shorter than the log says: {url}"))
            }
            GatewayError::Told(_, why) => Error::storage(
                format!("cannot {doing} {url}: {}", without_secrets(&why)),
                true,
            ),
            GatewayError::Unreachable(why) => Error::storage(
                format!(
                    "cannot {doing} {url}: the Java of the Spark driver, which has its file system, is not reached from here ({why}); it listens on the driver's machine alone, while its session runs"
                ),
                false,
            ),
            GatewayError::Torn(why) => Error::storage(
                format!(
                    "cannot {doing} {url}: the connection to the Java of the Spark driver broke off: {why}"
                ),
                true,
            ),
        }
    }
}

/// Hadoop's messages may hold signed URLs and settings.
fn without_secrets(text: &str) -> String {
    const NAMES: [&str; 8] = [
        "sig=",
        "signature=",
        "token=",
        "secret=",
        "password=",
        "secret.key=",
        "account.key=",
        "access.key=",
    ];
    let mut out = crate::error::shown(text);
    for name in NAMES {
        let mut from = 0;
        while let Some(at) = out[from..].to_ascii_lowercase().find(name) {
            let start = from + at + name.len();
            let end = out[start..]
                .find(|c: char| {
                    c.is_whitespace() || matches!(c, '&' | ',' | '"' | '\'' | ')' | ';')
                })
                .map_or(out.len(), |at| start + at);
            out.replace_range(start..end, "…");
            from = start;
        }
    }
    out
}

/// The reason that there is no answer.
#[derive(Debug)]
enum GatewayError {
    /// The gateway reported an error; the connection can be used again.
    Told(u8, String),
    /// There was no connection, so nothing was requested.
    Unreachable(String),
    /// The connection broke after the request was sent, at least in part.
    Torn(io::Error),
}

impl From<io::Error> for GatewayError {
    fn from(error: io::Error) -> Self {
        Self::Torn(error)
    }
}

type GatewayResult<T> = std::result::Result<T, GatewayError>;

impl JavaGateway {
    fn connect(&self) -> GatewayResult<GatewayConnection> {
        let unreachable = |error: io::Error| GatewayError::Unreachable(error.to_string());
        let stream = TcpStream::connect(&self.address).map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let mut connection = GatewayConnection {
            process: std::process::id(),
            stream: BufReader::with_capacity(1 << 16, stream),
        };
        let mut hello = Vec::new();
        put_text(&mut hello, &self.secret.0);
        connection.send(&hello).map_err(unreachable)?;
        Ok(connection)
    }

    /// A connection that has sent `bytes` and waits for the answer.
    fn send(&self, bytes: &[u8]) -> GatewayResult<GatewayConnection> {
        while let Some(mut connection) = self.idle.lock().pop() {
            // A connection inherited by a fork belongs to another process; one that the gateway has
            // closed is at its end.
            if connection.process == std::process::id() && connection.is_alive() {
                connection.send(bytes)?;
                return Ok(connection);
            }
        }
        let mut connection = self.connect()?;
        connection.send(bytes)?;
        Ok(connection)
    }

    fn return_connection(&self, connection: GatewayConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE {
            idle.push(connection);
        }
    }
}

#[derive(Debug)]
struct GatewayConnection {
    process: u32,
    stream: BufReader<TcpStream>,
}

impl GatewayConnection {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Whether the connection has no unexpected data, in particular not its end.
    fn is_alive(&self) -> bool {
        let stream = self.stream.get_ref();
        if stream.set_nonblocking(true).is_err() {
            return false;
        }
        let waiting = matches!(stream.peek(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).is_ok() && waiting
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn length(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.stream.read_exact(&mut bytes)?;
        Ok(u32::from_be_bytes(bytes))
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.stream.read_exact(&mut bytes)?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn signed(&mut self) -> io::Result<i64> {
        self.number().map(u64::cast_signed)
    }

    fn text(&mut self) -> io::Result<String> {
        let length = self.length()?;
        let mut bytes = Vec::new();
        self.stream
            .by_ref()
            .take(u64::from(length))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 != u64::from(length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The first byte of an answer, and the message after it if it is an error.
    fn status(&mut self) -> GatewayResult<()> {
        match self.byte()? {
            status::OK => Ok(()),
            kind => Err(GatewayError::Told(kind, self.text()?)),
        }
    }

    /// Blocks up to the empty one, which ends the sequence.
    fn blocks(&mut self) -> GatewayResult<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.length()? {
                0 => return Ok(out),
                BROKEN => {
                    self.status()?;
                    return Err(GatewayError::Torn(io::ErrorKind::InvalidData.into()));
                }
                length => {
                    let read = self
                        .stream
                        .by_ref()
                        .take(u64::from(length))
                        .read_to_end(&mut out)?;
                    if read as u64 != u64::from(length) {
                        return Err(GatewayError::Torn(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "no path and no commit comes near 4 GiB; blocks are cut before"
)]
fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend((length as u32).to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend(text.as_bytes());
}

impl Store for HadoopStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn list_from(&self, dir: &str, after: &str) -> Result<Vec<ObjectMeta>> {
        let mut out: Vec<ObjectMeta> = self
            .list_entries(dir, after)?
            .into_iter()
            .filter(|(is_folder, _)| !is_folder)
            .map(|(_, meta)| meta)
            .collect();
        // Java compares strings by UTF-16, and file systems list in orders of their own.
        let folder = if dir.is_empty() { 0 } else { dir.len() + 1 };
        out.retain(|meta| meta.path.get(folder..).is_some_and(|name| name > after));
        out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(out)
    }

    fn list_folder(&self, dir: &str, take: &dyn Fn(&str) -> bool) -> Result<FolderListing> {
        let mut out = FolderListing::default();
        for (is_folder, meta) in self.list_entries(dir, "")? {
            if is_folder {
                out.folders.push(meta.path);
            } else if take(meta.path.rsplit('/').next().unwrap_or_default()) {
                out.objects.push(meta);
            }
        }
        Ok(out)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn head(&self, path: &str) -> Result<ObjectMeta> {
        self.send_request(&self.request(b'H', path), |connection| {
            Ok(ObjectMeta {
                path: path.to_owned(),
                size: connection.number()?,
                modified_ms: connection.signed()?,
            })
        })
    }

    fn get(&self, path: &str) -> PendingResult<(Bytes, ObjectMeta)> {
        let name = path.to_owned();
        self.spawn(self.request(b'G', path), move |connection| {
            let modified_ms = connection.signed()?;
            let bytes = Bytes::from(connection.blocks()?);
            let meta = ObjectMeta {
                path: name.clone(),
                size: bytes.len() as u64,
                modified_ms,
            };
            Ok((bytes, meta))
        })
    }

    fn get_ranges(&self, path: &str, ranges: Vec<Range<u64>>) -> PendingResult<Vec<Bytes>> {
        let mut request = self.request(b'R', path);
        put_length(&mut request.bytes, ranges.len());
        for range in &ranges {
            request.bytes.extend(range.start.to_be_bytes());
            request.bytes.extend(range.end.to_be_bytes());
        }
        let url = request.url.clone();
        let found = self.spawn(request, GatewayConnection::blocks);
        found.map(move |bytes| {
            let mut rest = Bytes::from(bytes);
            let mut out = Vec::with_capacity(ranges.len());
            for range in ranges {
                let wanted =
                    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
                if wanted > rest.len() {
                    return Err(Error::corrupt_data(format!(
                        "the file is shorter than the log says: {url}"
                    )));
                }
                out.push(rest.split_to(wanted));
            }
            Ok(out)
        })
    }

    fn put_if_absent(&self, path: &str, bytes: Bytes, role: ObjectRole) -> Result<PutOutcome> {
        let mut request = self.write_request(b'P', path, role);
        put_length(&mut request.bytes, bytes.len());
        request.bytes.extend(&bytes);
        match exec::blocking(|| {
            self.read_response(&request, |connection| Ok(connection.byte()? != 0))
        }) {
            Ok(true) => Ok(PutOutcome::Created),
            Ok(false) => Ok(PutOutcome::Exists),
            Err(fault @ (GatewayError::Torn(_) | GatewayError::Told(status::UNKNOWN, _))) => {
                Ok(PutOutcome::Unknown(request.failed(fault)))
            }
            Err(fault @ GatewayError::Told(status::REFUSED, _)) => {
                Ok(PutOutcome::Refused(request.failed(fault)))
            }
            // The name was not requested yet, or the gateway was not reached.
            Err(fault) => Err(request.failed(fault)),
        }
    }

    fn upload(&self, path: &str, role: ObjectRole) -> Result<Box<dyn ObjectUpload>> {
        let request = self.write_request(b'U', path, role);
        let begun = exec::blocking(|| {
            let mut connection = self.gateway.send(&request.bytes)?;
            connection.status()?;
            Ok(connection)
        });
        let connection = begun.map_err(|fault| request.failed(fault))?;
        Ok(Box::new(HadoopUpload {
            store: self.clone(),
            path: path.to_owned(),
            request,
            connection: Some(connection),
            buffer: Vec::new(),
        }))
    }

    fn delete_inside(&self, paths: &[TablePath]) -> Result<Vec<(String, Error)>> {
        let runtime = exec::runtime()?;
        let mut out = Vec::new();
        for some in paths.chunks(BATCH * BATCHES_AT_ONCE) {
            let tasks: Vec<_> = some
                .chunks(BATCH)
                .map(|batch| {
                    let (this, batch) = (self.clone(), batch.to_vec());
                    PendingResult::task(runtime.spawn_blocking(move || this.delete_some(&batch)))
                })
                .collect();
            for task in tasks {
                out.extend(task.wait()?);
            }
        }
        Ok(out)
    }

    fn remove_folder(&self, dir: &str) -> Result<()> {
        if TablePath::new(dir).is_none() {
            return Ok(());
        }
        let mut request = self.request(b'X', dir);
        request.action = "remove";
        self.send_request(&request, |_| Ok(()))
    }

    fn authority_root(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(Self {
            root: String::new(),
            url: format!("{}://{}/", self.scheme, self.authority),
            ..self.clone()
        }))
    }
}

/// A new file, which the gateway removes if the connection ends before the file is complete.
struct HadoopUpload {
    store: HadoopStore,
    path: String,
    request: GatewayRequest,
    /// Present until the file is finished.
    connection: Option<GatewayConnection>,
    buffer: Vec<u8>,
}

impl HadoopUpload {
    fn send(&mut self) -> Result<()> {
        let Some(connection) = self.connection.as_mut() else {
            return Err(Error::internal("a file was written after its end"));
        };
        let mut length = Vec::with_capacity(4);
        put_length(&mut length, self.buffer.len());
        let sent = exec::blocking(|| {
            connection
                .send(&length)
                .and_then(|()| connection.send(&self.buffer))
        });
        self.buffer.clear();
        sent.map_err(|error| self.request.failed(GatewayError::Torn(error)))
    }
}

impl ObjectUpload for HadoopUpload {
    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (head, tail) = bytes.split_at(bytes.len().min(PIECE - self.buffer.len()));
            self.buffer.extend_from_slice(head);
            bytes = tail;
            if self.buffer.len() >= PIECE {
                self.send()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> PendingResult<ObjectMeta> {
        let work = move || {
            if !self.buffer.is_empty() {
                self.send()?;
            }
            let Some(mut connection) = self.connection.take() else {
                return Err(Error::internal("a file was finished twice"));
            };
            let ended = (|| {
                connection.send(&0_u32.to_be_bytes())?;
                connection.status()?;
                Ok((connection.number()?, connection.signed()?))
            })();
            let (size, modified_ms) = ended.map_err(|fault| self.request.failed(fault))?;
            self.store.gateway.return_connection(connection);
            Ok(ObjectMeta {
                path: self.path.clone(),
                size,
                modified_ms,
            })
        };
        match exec::runtime() {
            Ok(runtime) => PendingResult::task(runtime.spawn_blocking(work)),
            Err(error) => PendingResult::lazy(move || Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_java_says_is_told_without_secrets() {
        let told = without_secrets(
            "Denied: https://h/c?sig=abc&se=1 fs.s3a.secret.key=xyz, token=t1;\n\tat x",
        );
        assert_eq!(
            told,
            "Denied: https://h/c fs.s3a.secret.key=…, token=…;  at x"
        );
        assert_eq!(without_secrets("Signature=é"), "Signature=…");
    }

    #[test]
    fn urls_are_as_hadoop_spells_them() {
        let store =
            HadoopStore::new("hdfs://nn:8020/a b%25c//t/", ["x:1", "s", "c"], false).unwrap();
        assert_eq!(
            (store.url(), store.full("d/é").as_str()),
            ("hdfs://nn:8020/a b%25c/t/", "/a b%25c/t/d/é")
        );
        let root = store.authority_root().unwrap();
        assert_eq!(root.url(), "hdfs://nn:8020/");
        let mount = HadoopStore::new("viewfs:///t", ["x:1", "s", "c"], false).unwrap();
        assert_eq!(
            (
                mount.url(),
                mount.authority.as_str(),
                mount.full("").as_str()
            ),
            ("viewfs:///t/", "", "/t")
        );
        assert!(!format!("{store:?}").contains("\"s\""));
        for bad in ["hdfs:/t", "/t", "hdfs://nn/a/../b"] {
            assert!(
                HadoopStore::new(bad, ["x:1", "s", "c"], false).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn nobody_listening_is_an_error_that_says_where() {
        let store = HadoopStore::new("hdfs://nn/t", ["127.0.0.1:1", "secret", "c"], false).unwrap();
        let error = store.head("f").unwrap_err().to_string();
        assert!(
            error.contains("hdfs://nn/t/f")
                && error.contains("Spark driver")
                && !error.contains("secret"),
            "{error}"
        );
    }
}
