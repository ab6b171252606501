"""Servers that tests read tables from: S3 (moto), Azure (Azurite), GCS, plain HTTP, and a proxy before them."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import email.utils
import functools
import hashlib
import hmac
import http.client
import http.server
import itertools
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

import obstore
import obstore.store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

HOST = "127.0.0.1"


def closed_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return taken.getsockname()[1]


class Answer(NamedTuple):
    """What a server says; a handler leaves the body out for HEAD."""

    status: int
    headers: dict[str, str]
    body: bytes


#: Instead of an answer: the connection breaks.
DROPPED = Answer(0, {}, b"")


def _ask(port: int, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Answer:
    connection = http.client.HTTPConnection(HOST, port, timeout=30)
    try:
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


class _Bucket:
    """What tests want to know of a bucket, by a client that is not deltafast."""

    def client(self, prefix: str | None = None) -> Any:
        """Return an obstore client of the bucket, or of a prefix of it."""
        raise NotImplementedError

    @functools.cached_property
    def _own(self) -> Any:
        # Making one costs more than a hundred requests.
        return self.client()

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys below a prefix, in order."""
        return sorted(entry["path"] for entry in obstore.list(self._own, prefix or None).collect())

    def get(self, key: str) -> bytes:
        """Return an object."""
        return bytes(obstore.get(self._own, key).bytes())


@contextlib.contextmanager
def _process(command: Sequence[str], port: int, probe: str) -> Iterator[None]:
    """Run a server until the end of the block, which begins when `probe` is answered."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    _ask(port, "GET", probe, None, {})
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        message = f"no server came up: {' '.join(command)}"
                        raise RuntimeError(message) from None
                    time.sleep(0.05)
            yield
        finally:
            process.kill()


class S3(_Bucket):
    """A bucket of an S3 that runs in a process of its own."""

    bucket = "bucket"

    def __init__(self, port: int) -> None:
        self.port = port
        self.endpoint = f"http://{HOST}:{port}"
        assert _ask(port, "PUT", f"/{self.bucket}", None, {}).status == http.client.OK

    def client(self, prefix: str | None = None) -> Any:
        """See `_Bucket`."""
        config = {"endpoint": self.endpoint, "region": "eu-west-1"}
        config |= {"access_key_id": "someone", "secret_access_key": "something"}
        return obstore.store.S3Store(self.bucket, prefix=prefix, config=config, client_options={"allow_http": True})

    def put(self, key: str, data: bytes) -> None:
        """Store an object under exactly this key."""
        target = f"/{self.bucket}/{urllib.parse.quote(key)}"
        # Anyone may create an object; whoever replaces one must have a name. No signature is checked.
        name = "AWS4-HMAC-SHA256 Credential=someone/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        headers = {"Content-Type": "application/octet-stream", "Authorization": name}
        answer = _ask(self.port, "PUT", target, data, headers)
        assert answer.status == http.client.OK, answer

    def upload(self, folder: pathlib.Path, key: str) -> str:
        """Store all files of a folder; return the URL of the copy."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.put(f"{key}/{file.relative_to(folder).as_posix()}", file.read_bytes())
        return f"s3://{self.bucket}/{key}"

    def options(self, **more: str) -> dict[str, str]:
        """Return `storage_options` that lead here."""
        return {
            "aws_endpoint_url": self.endpoint,
            "aws_access_key_id": "someone",
            "aws_secret_access_key": "something",
            "aws_region": "eu-west-1",
            "allow_http": "true",
            "max_retries": "1",
        } | more


#: moto looks whether an object is there and stores it later: of 20 writers at once two win now and then (on a busy
#: machine in 8 of 200 rounds), which is not an S3 to test commits on. So it has to do one thing after the other.
_MOTO = """
import sys, threading
import moto.server as server

class OneByOne(server.DomainDispatcherApplication):
    turn = threading.Lock()

    def __call__(self, *request):
        with self.turn:
            return super().__call__(*request)

server.DomainDispatcherApplication = OneByOne
server.main(sys.argv[1:])
"""


@contextlib.contextmanager
def s3() -> Iterator[S3]:
    """Run moto's server; it answers unsigned requests too, which is how objects are put there."""
    port = closed_port()
    with _process([sys.executable, "-c", _MOTO, "-H", HOST, "-p", str(port)], port, "/moto-api/"):
        yield S3(port)


class Azure(_Bucket):
    """A container of an Azure Blob Storage that runs in a process of its own."""

    container = "container"
    #: Azurite's account, which everyone knows.
    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

    def __init__(self, port: int) -> None:
        self.port = port
        assert self._put(self.container, b"", {}, "restype=container").status == http.client.CREATED

    def client(self, prefix: str | None = None) -> Any:
        """See `_Bucket`."""
        config = {"account_name": self.account, "account_key": self.key}
        config |= {"endpoint": f"http://{HOST}:{self.port}/{self.account}"}
        options = {"allow_http": True}
        return obstore.store.AzureStore(self.container, prefix=prefix, config=config, client_options=options)

    def signature(self, life: float) -> str:
        """Return a shared access signature of the account for all operations, valid for so many seconds."""
        until = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=life)
        expiry = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        version, services, types, permissions = "2021-08-06", "b", "sco", "rwdlac"
        lines = [self.account, permissions, services, types, "", expiry, "", "https,http", version, "", ""]
        sign = hmac.digest(base64.b64decode(self.key), "\n".join(lines).encode(), "sha256")
        fields = {"sv": version, "ss": services, "srt": types, "sp": permissions, "se": expiry, "spr": "https,http"}
        return urllib.parse.urlencode({**fields, "sig": base64.b64encode(sign).decode()})

    def _put(self, path: str, data: bytes, headers: dict[str, str], query: str = "") -> Answer:
        """Send a signed PUT."""
        path = f"/{self.account}/{urllib.parse.quote(path)}"
        date = email.utils.formatdate(usegmt=True)
        headers = headers | {"x-ms-date": date, "x-ms-version": "2021-08-06"}
        named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        query_lines = "".join("\n" + part.replace("=", ":") for part in query.split("&") if part)
        length = len(data) or ""
        text = f"PUT\n\n\n{length}\n\n\n\n\n\n\n\n\n{named}/{self.account}{path}{query_lines}"
        sign = hmac.digest(base64.b64decode(self.key), text.encode(), "sha256")
        headers["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(sign).decode()}"
        return _ask(self.port, "PUT", f"{path}?{query}" if query else path, data, headers)

    def upload(self, folder: pathlib.Path, key: str) -> str:
        """Store all files of a folder; return the URL of the copy."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                name = f"{self.container}/{key}/{file.relative_to(folder).as_posix()}"
                answer = self._put(name, file.read_bytes(), {"x-ms-blob-type": "BlockBlob"})
                assert answer.status == http.client.CREATED, answer
        return f"az://{self.container}/{key}"

    def options(self, **more: str) -> dict[str, str]:
        """Return `storage_options` that lead here."""
        return {
            "azure_storage_account_name": self.account,
            "azure_storage_account_key": self.key,
            "azure_storage_endpoint": f"http://{HOST}:{self.port}/{self.account}",
            "allow_http": "true",
            "max_retries": "1",
        } | more


def azurite(cache: pathlib.Path) -> pathlib.Path:
    """Return Azurite's command, installed into `cache` where it is missing."""
    if found := shutil.which("azurite-blob"):
        return pathlib.Path(found)
    command = cache / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    if not command.exists():
        npm = shutil.which("npm")
        if npm is None:
            message = (
                "Azurite is missing and so is npm, which installs it: `make test` installs npm (dev/system_package)"
            )
            raise RuntimeError(message)
        cache.mkdir(parents=True, exist_ok=True)
        # Test processes running side by side may all install; the first to finish wins.
        with tempfile.TemporaryDirectory(dir=cache, prefix="azurite-") as scratch:
            install = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", scratch, "azurite@3.35.0"]
            subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
            with contextlib.suppress(OSError):
                pathlib.Path(scratch).rename(cache / "azurite")
                pathlib.Path(scratch).mkdir()
    return command


@contextlib.contextmanager
def azure(command: pathlib.Path) -> Iterator[Azure]:
    """Run Azurite, its blobs in memory."""
    port = closed_port()
    flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with _process([str(command), "--blobHost", HOST, "--blobPort", str(port), *flags], port, "/"):
        yield Azure(port)


class _Quiet(http.server.BaseHTTPRequestHandler):
    """A handler that answers each request by `Server.answer` and closes the connection."""

    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        pass

    def _handle(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Expect", "").lower() == "100-continue":
            # The AWS SDK for Java waits for it for three seconds.
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        is_chunked = self.headers.get("Transfer-Encoding", "").lower() == "chunked"
        body = self._chunks() if is_chunked else self.rfile.read(size)
        answer = self.server.answer(self.command, self.path, dict(self.headers.items()), body)
        self.close_connection = not self.server.keeps_connections
        if self.server.keeps_connections:
            self.protocol_version = "HTTP/1.1"
        if answer is DROPPED:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in {"connection", "transfer-encoding"}:
                self.send_header(name, value)
        if "content-length" not in map(str.lower, answer.headers):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PROPFIND = _handle  # noqa: N815 - as the base class looks for them


class Server(http.server.ThreadingHTTPServer):
    """An HTTP server in threads of this process; `requests` holds what it was asked since `forget`."""

    #: Whether a connection serves more than one request.
    keeps_connections = False
    #: Clients that may wait to be let in; the sixth of the default would be told to come back a second later.
    request_queue_size = 128

    def __init__(self) -> None:
        self.requests: list[str] = []
        super().__init__((HOST, 0), _Quiet)
        self.url = f"http://{HOST}:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer one request."""
        raise NotImplementedError

    def forget(self) -> None:
        """Count from zero."""
        self.requests.clear()

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        """Serve during the block."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


class Proxy(Server):
    """A proxy before another server; `disturb` may answer in its place or change its answer."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self.disturb: Callable[[str, Callable[[], Answer]], Answer] | None = None
        #: Headers that are not handed on, in lower case.
        self.withheld: set[str] = set()

    def forget(self) -> None:
        """Count from zero, undisturbed."""
        super().forget()
        self.disturb = None
        self.withheld = set()

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Hand the request on and note it."""
        self.requests.append(f"{method} {target}")

        headers = {name: value for name, value in headers.items() if name.lower() not in self.withheld}

        def behind() -> Answer:
            return _ask(self._port, method, target, body or None, headers)

        return behind() if self.disturb is None else self.disturb(f"{method} {target}", behind)


class Gcs(Server, _Bucket):
    """A bucket of Google Cloud Storage: the XML API as far as object stores' clients speak it, objects in memory.

    Conditions (`x-goog-if-generation-match`) are checked and met under one lock, as the real service does: of many
    writers that create the same object one wins and the others get 412. To hold answers back or lose them, put a
    `Proxy` before it.
    """

    bucket = "bucket"
    token = "someone's-token"

    def __init__(self) -> None:
        super().__init__()
        self.port: int = self.server_address[1]
        #: Whether requests without a name are taken.
        self.anonymous = False
        #: At most so many entries in one page of a listing.
        self.page = 1000
        self._objects: dict[str, _Object] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._lock = threading.Lock()
        self._generations = itertools.count(1_700_000_000_000_000)

    def upload(self, folder: pathlib.Path, key: str) -> str:
        """Store all files of a folder; return the URL of the copy."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                data = file.read_bytes()
                with self._lock:
                    self._store(f"{key}/{file.relative_to(folder).as_posix()}", data)
        return f"gs://{self.bucket}/{key}"

    def options(self, **more: str) -> dict[str, str]:
        """Return `storage_options` that lead here."""
        return {
            "google_base_url": self.url,
            "google_bearer_token": self.token,
            "allow_http": "true",
            "max_retries": "1",
        } | more

    def client(self, prefix: str | None = None) -> Any:
        """See `_Bucket`."""
        return obstore.store.GCSStore(
            self.bucket,
            prefix=prefix,
            config={"service_account_key": self.account()},
            credential_provider=lambda: {"token": self.token, "expires_at": None},
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )

    def account(self) -> str:
        """Return the JSON of a service account that leads here."""
        nobody = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        return json.dumps({"gcs_base_url": self.url, "disable_oauth": True, **nobody})

    def keys(self, prefix: str = "") -> list[str]:
        """See `_Bucket`; whatever the bucket's listings say."""
        with self._lock:
            return sorted(key for key in self._objects if key.startswith(prefix))

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer one request of the XML API."""
        self.requests.append(f"{method} {target}")
        said = {name.lower(): value for name, value in headers.items()}
        if said.get("authorization") != f"Bearer {self.token}" and not self.anonymous:
            return _refusal(401, "AuthenticationRequired")
        path, _, query = target.partition("?")
        bucket, _, key = path.lstrip("/").partition("/")
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if bucket != self.bucket:
            return _refusal(404, "NoSuchBucket")
        with self._lock:
            if not key:
                return self._list(asked) if method == "GET" else _refusal(405, "MethodNotAllowed")
            return self._on_object(method, urllib.parse.unquote(key), asked, said, body)

    def _on_object(  # noqa: PLR0911 - one line a request
        self, method: str, key: str, asked: dict[str, str], said: dict[str, str], body: bytes
    ) -> Answer:
        match method:
            case "GET" | "HEAD":
                return self._get(key, asked, said)
            case "PUT" if "uploadId" in asked:
                return self._put_part(asked, body)
            case "PUT":
                return self._put(key, said, body)
            case "POST" if "uploads" in asked:
                upload = str(next(self._generations))
                self._uploads[upload] = {}
                return Answer(200, {}, _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"))
            case "POST" if asked.get("uploadId") in self._uploads:
                return self._complete(key, asked["uploadId"], body)
            case "DELETE" if "uploadId" in asked:
                return Answer(204, {}, b"") if self._uploads.pop(asked["uploadId"], None) is not None else _NO_UPLOAD
            case "DELETE":
                return Answer(204, {}, b"") if self._objects.pop(key, None) is not None else _NO_KEY
            case _:
                return _NO_UPLOAD

    def _store(self, key: str, data: bytes) -> _Object:
        self._objects[key] = stored = _Object(data, next(self._generations), time.time())
        return stored

    def _get(self, key: str, asked: dict[str, str], said: dict[str, str]) -> Answer:
        found = self._objects.get(key)
        if found is None or asked.get("generation", found.generation) != found.generation:
            return _NO_KEY
        headers = found.headers | {"Last-Modified": email.utils.formatdate(found.modified, usegmt=True)}
        if "if-match" in said and said["if-match"] != found.tag:
            return _refusal(412, "PreconditionFailed")
        if said.get("if-none-match") == found.tag:
            return Answer(304, headers, b"")
        if "range" not in said:
            return Answer(200, headers, found.data)
        start, end = _range(said["range"], len(found.data))
        if start >= end:
            return _refusal(416, "InvalidRange")
        return Answer(
            206, headers | {"Content-Range": f"bytes {start}-{end - 1}/{len(found.data)}"}, found.data[start:end]
        )

    def _put(self, key: str, said: dict[str, str], body: bytes) -> Answer:
        wanted = said.get("x-goog-if-generation-match")
        # The generation of what is not there is 0.
        if wanted is not None and wanted != (self._objects[key].generation if key in self._objects else "0"):
            return _refusal(412, "PreconditionFailed")
        if source := said.get("x-goog-copy-source"):
            copied = self._objects.get(urllib.parse.unquote(source).partition("/")[2])
            if copied is None:
                return _NO_KEY
            body = copied.data
        return Answer(200, self._store(key, body).headers, b"")

    def _put_part(self, asked: dict[str, str], body: bytes) -> Answer:
        parts = self._uploads.get(asked["uploadId"])
        if parts is None:
            return _NO_UPLOAD
        parts[int(asked["partNumber"])] = body
        return Answer(200, {"ETag": f'"part-{asked["partNumber"]}"'}, b"")

    def _complete(self, key: str, upload: str, body: bytes) -> Answer:
        """Join the parts that the request names, in its order."""
        parts = self._uploads.pop(upload)
        numbers = [int(number) for number in re.findall(r"<PartNumber>(\d+)</PartNumber>", body.decode())]
        stored = self._store(key, b"".join(parts[number] for number in numbers))
        return Answer(200, stored.headers, _xml("CompleteMultipartUploadResult", f"<ETag>{escape(stored.tag)}</ETag>"))

    def _list(self, asked: dict[str, str]) -> Answer:
        """Give one page: keys in order, those behind a delimiter as one prefix; a token is the last entry given."""
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        entries: dict[str, _Object | None] = {}
        for key in sorted(self._objects):
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            entry = key if cut < 0 else key[: cut + 1]
            if key.startswith(prefix) and entry > after:
                entries[entry] = self._objects[key] if cut < 0 else None
        size = min(self.page, int(asked.get("max-keys", self.page)))
        page = dict(itertools.islice(entries.items(), size))
        lines = [found.listed(key) if found else _element("CommonPrefixes", Prefix=key) for key, found in page.items()]
        if len(page) < len(entries):
            lines.append(f"<NextContinuationToken>{escape(list(page)[-1])}</NextContinuationToken>")
        return Answer(200, {"Content-Type": "application/xml"}, _xml("ListBucketResult", "".join(lines)))


class _Object:
    """An object of a bucket; a new one each time its key is written."""

    def __init__(self, data: bytes, generation: int, modified: float) -> None:
        self.data = data
        self.generation = str(generation)
        self.modified = modified
        self.tag = f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
        self.headers = {"ETag": self.tag, "x-goog-generation": self.generation}

    def listed(self, key: str) -> str:
        """Return its entry in a listing."""
        timestamp = dt.datetime.fromtimestamp(self.modified, dt.UTC).isoformat(timespec="milliseconds")
        return _element("Contents", Key=key, Size=len(self.data), LastModified=timestamp, ETag=self.tag)


def _element(name: str, **parts: object) -> str:
    return f"<{name}>" + "".join(f"<{k}>{escape(str(v))}</{k}>" for k, v in parts.items()) + f"</{name}>"


def _xml(name: str, inner: str) -> bytes:
    return f"<?xml version='1.0' encoding='UTF-8'?><{name}>{inner}</{name}>".encode()


def _refusal(status: int, code: str) -> Answer:
    return Answer(status, {"Content-Type": "application/xml"}, _xml("Error", f"<Code>{code}</Code>"))


_NO_KEY = _refusal(404, "NoSuchKey")
_NO_UPLOAD = _refusal(404, "NoSuchUpload")


class Cloud(NamedTuple):
    """A bucket, a proxy before it that counts and disturbs, and how clients get there."""

    bucket: Any
    proxy: Proxy
    #: The URL of the bucket.
    root: str
    #: The options that lead through the proxy.
    address: dict[str, str]
    #: Those of `deltalake`, which lead past it.
    theirs: dict[str, str]

    def options(self, **more: str) -> dict[str, str]:
        """Return `storage_options` that lead through the proxy."""
        return self.bucket.options(**self.address, **more)


@contextlib.contextmanager
def cloud(name: str) -> Iterator[Cloud]:
    """Run S3, Azure or GCS (`s3`, `azure`, `gcs`) with a proxy before it."""
    with contextlib.ExitStack() as stack:
        bucket: Any
        if name == "s3":
            bucket = stack.enter_context(s3())
        elif name == "azure":
            bucket = stack.enter_context(azure(azurite(pathlib.Path(__file__).parent / ".cache")))
        else:
            bucket = stack.enter_context(Gcs().running())
        proxy = stack.enter_context(Proxy(bucket.port).running())
        if name == "s3":
            yield Cloud(bucket, proxy, "s3://bucket", {"aws_endpoint_url": proxy.url}, bucket.options())
        elif name == "azure":
            address = {"azure_storage_endpoint": f"{proxy.url}/{bucket.account}"}
            yield Cloud(bucket, proxy, "az://container", address, bucket.options())
        else:
            # deltalake reads a server's address from an account only, and then signs nothing.
            bucket.anonymous = True
            theirs = {"google_service_account_key": bucket.account(), "allow_http": "true"}
            yield Cloud(bucket, proxy, "gs://bucket", {"google_base_url": proxy.url}, theirs)


class CarelessGcs(Gcs):
    """A bucket that takes no notice of conditions."""

    def _put(self, key: str, said: dict[str, str], body: bytes) -> Answer:
        return super()._put(key, said | {"x-goog-if-generation-match": self._generation(key)}, body)

    def _generation(self, key: str) -> str:
        return self._objects[key].generation if key in self._objects else "0"


class RacyGcs(Gcs):
    """A bucket that looks whether a condition is met and writes a moment later: right as long as writers take turns."""

    #: Seconds between looking and writing.
    delay = 0.002

    def _put(self, key: str, said: dict[str, str], body: bytes) -> Answer:
        if "x-goog-if-generation-match" not in said:
            return super()._put(key, said, body)
        wanted, there = said["x-goog-if-generation-match"], self._objects.get(key)
        if wanted != (there.generation if there else "0"):
            return _refusal(412, "PreconditionFailed")
        self._lock.release()
        time.sleep(self.delay)
        self._lock.acquire()
        return Answer(200, self._store(key, body).headers, b"")


class TearingGcs(Gcs):
    """A bucket whose large objects can be seen before they are whole."""

    def _store(self, key: str, data: bytes) -> _Object:
        if len(data) > 1 << 20:
            super()._store(key, data[: len(data) // 2])
            self._lock.release()
            time.sleep(0.1)
            self._lock.acquire()
        return super()._store(key, data)


class ForgetfulGcs(Gcs):
    """A bucket whose listings lag behind."""

    #: Seconds.
    lag = 0.3

    def _list(self, asked: dict[str, str]) -> Answer:
        everything, before = self._objects, time.time() - self.lag
        self._objects = {key: found for key, found in everything.items() if found.modified < before}
        try:
            return super()._list(asked)
        finally:
            self._objects = everything


class OnePageGcs(Gcs):
    """A bucket whose listings end after a page."""

    def _list(self, asked: dict[str, str]) -> Answer:
        answer = super()._list(asked)
        return answer._replace(body=re.sub(b"<NextContinuationToken>.*</NextContinuationToken>", b"", answer.body))


class WholeGcs(Gcs):
    """A bucket that gives the beginning of an object, whatever range is asked for."""

    def _get(self, key: str, asked: dict[str, str], said: dict[str, str]) -> Answer:
        answer = super()._get(key, asked, said)
        return answer._replace(body=self._objects[key].data[: len(answer.body)]) if answer.status == 206 else answer


class UnescapingGcs(Gcs):
    """A bucket that takes escapes off keys once too often."""

    def _on_object(self, method: str, key: str, asked: dict[str, str], said: dict[str, str], body: bytes) -> Answer:
        return super()._on_object(method, urllib.parse.unquote(key), asked, said, body)


class KeepingGcs(Gcs):
    """A bucket that deletes nothing."""

    def _on_object(self, method: str, key: str, asked: dict[str, str], said: dict[str, str], body: bytes) -> Answer:
        if method == "DELETE":
            return _refusal(403, "AccessDenied")
        return super()._on_object(method, key, asked, said, body)


class JumblingGcs(Gcs):
    """A bucket that joins parts in the wrong order."""

    def _complete(self, key: str, upload: str, body: bytes) -> Answer:
        numbers = re.findall(rb"<PartNumber>\d+</PartNumber>", body)
        return super()._complete(key, upload, b"".join(reversed(numbers)))


class Folder(Server):
    """A folder over HTTP: no listings, ranges only if wanted."""

    def __init__(self, root: pathlib.Path, *, ranges: bool = True) -> None:
        super().__init__()
        self._root = root
        self._ranges = ranges

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Give a file or a part of it."""
        self.requests.append(f"{method} {target}")
        if method not in {"GET", "HEAD"}:
            return Answer(405, {}, b"")
        path = urllib.parse.unquote(urllib.parse.urlsplit(target).path).lstrip("/")
        file = self._root / path
        if ".." in pathlib.PurePosixPath(path).parts or not file.is_file():
            return Answer(404, {"Content-Type": "text/html"}, b"<html><body>There is no such file.</body></html>")
        data = file.read_bytes()
        said = {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        wanted = {name.lower(): value for name, value in headers.items()}.get("range")
        if self._ranges and wanted:
            start, end = _range(wanted, len(data))
            if start >= end:
                return Answer(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
            said["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
            return Answer(206, said, data[start:end])
        # The length of a HEAD's answer is that of the body left out; `_handle` counts it.
        return Answer(200, said, data)


def _range(text: str, size: int) -> tuple[int, int]:
    """Return the half-open range that a Range header means."""
    first, last = text.removeprefix("bytes=").split("-")
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


if __name__ == "__main__":
    # `make test` installs it while the compiler runs.
    azurite(pathlib.Path(__file__).parent / ".cache")
