"""The JSON API of Google Cloud Storage over `servers.Gcs`, which has only the XML API, and tokens that expire.

The Google Cloud Storage connector, Hadoop's client, speaks it.
"""

from __future__ import annotations

import base64
import datetime as dt
import email
import email.policy
import gzip
import hashlib
import itertools
import json
import time
import urllib.parse
from typing import Any, NamedTuple

import servers


class _Request(NamedTuple):
    """A request; `query` has one value a name."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, method: str, target: str, headers: dict[str, str], body: bytes) -> _Request:
        given = {name.lower(): value for name, value in headers.items()}
        path, _, query = target.partition("?")
        if given.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        fields = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        return cls(given.get("x-http-method-override", method), path, fields, given, body)


class CloudStorage(servers.Gcs):
    """A bucket that takes only tokens that it issued and that have not expired; it counts the other requests."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._tokens: dict[str, float] = {}
        self.refused: list[str] = []
        self.issued = 0

    def issue(self, life: float) -> tuple[str, float]:
        """Return a new token, and when it expires."""
        token, expires = f"ya29.SECRET-{next(self._numbers)}", time.time() + life
        self._tokens[token] = expires
        self.issued += 1
        return token, expires

    def forget(self) -> None:
        """Count from zero."""
        super().forget()
        self.refused.clear()
        self.issued = 0

    def answer(self, method, target, headers, body):
        """Answer one request of either API."""
        request = _Request.of(method, target, headers, body)
        if self._tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "), 0) < time.time():
            self.refused.append(f"{method} {request.path}")
            return _failure(401, "authError")
        if request.path.startswith("/batch/"):
            return self._batch(request)
        for start in ("/upload/storage/v1/b/", "/download/storage/v1/b/", "/storage/v1/b/"):
            if request.path.startswith(start):
                self.requests.append(f"{request.method} {target}")
                bucket, _, rest = request.path.removeprefix(start).partition("/")
                if urllib.parse.unquote(bucket) != self.bucket:
                    return _failure(404, "notFound")
                with self._lock:
                    return self._on_bucket(request, start.startswith("/upload/"), rest)
        # The tokens of this class are the one of the other.
        return super().answer(method, target, {**headers, "authorization": f"Bearer {self.token}"}, body)

    def _on_bucket(self, request: _Request, uploads: bool, rest: str) -> servers.Answer:
        if not rest:
            return _found({"kind": "storage#bucket", "id": self.bucket, "name": self.bucket})
        # `o`, the key, and for a copy `rewriteTo` and the other key.
        _, *names = (urllib.parse.unquote(name) for name in rest.split("/"))
        if uploads:
            return self._upload(request)
        return self._on_object_of(request, names) if names else self._page(request)

    def _on_object_of(self, request: _Request, names: list[str]) -> servers.Answer:
        key, *others = names
        if "rewriteTo" in others or "copyTo" in others:
            return self._copied(request, key, others[-1], rewritten="rewriteTo" in others)
        if request.method == "DELETE":
            return self._removed(request, key)
        found = self._objects.get(key)
        if found is None or request.query.get("generation", found.generation) != found.generation:
            return _failure(404, "notFound")
        if request.query.get("alt") == "media":
            return self._get(key, {}, request.headers)
        return _found(self._resource(key)) if request.method in ("GET", "PATCH") else _failure(405, "notAllowed")

    def _resource(self, key: str) -> dict[str, Any]:
        found = self._objects[key]
        modified = dt.datetime.fromtimestamp(found.modified, dt.UTC).isoformat(timespec="milliseconds")
        digest = base64.b64encode(hashlib.md5(found.data, usedforsecurity=False).digest()).decode()
        return {
            "kind": "storage#object",
            "id": f"{self.bucket}/{key}/{found.generation}",
            "bucket": self.bucket,
            "name": key,
            "size": str(len(found.data)),
            "md5Hash": digest,
            "etag": found.tag,
            "generation": found.generation,
            "metageneration": "1",
            "contentType": "application/octet-stream",
            "timeCreated": modified,
            "updated": modified,
        }

    def _is_other(self, request: _Request, key: str) -> bool:
        """Whether a condition on the generation does not hold; that of what is not there is 0."""
        wanted = request.query.get("ifGenerationMatch")
        return wanted is not None and wanted != (self._objects[key].generation if key in self._objects else "0")

    def _page(self, request: _Request) -> servers.Answer:
        """Give one page: keys in order, those behind a delimiter as one prefix; a token is the last entry given."""
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter")
        after, start = request.query.get("pageToken", ""), request.query.get("startOffset", "")
        entries: dict[str, bool] = {}
        for key in sorted(self._objects):
            if not key.startswith(prefix) or key < start:
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            entry = key if cut < 0 else key[: cut + 1]
            if cut == len(key) - 1 and request.query.get("includeTrailingDelimiter") == "true":
                entries.setdefault(key, True)
            elif entry > after:
                entries[entry] = cut < 0
        size = min(self.page, int(request.query.get("maxResults", self.page)))
        page = dict(itertools.islice(entries.items(), size))
        content: dict[str, Any] = {"kind": "storage#objects"}
        content["items"] = [self._resource(entry) for entry, is_object in page.items() if is_object]
        folders = {entry for entry in page if delimiter and entry.endswith(delimiter)}
        content["prefixes"] = sorted(folders - {prefix})
        if len(page) < len(entries):
            content["nextPageToken"] = list(page)[-1]
        return _found(content)

    def _upload(self, request: _Request) -> servers.Answer:
        query = request.query
        if "upload_id" in query:
            return self._continue(request)
        if query["uploadType"] == "resumable":
            key = query.get("name") or json.loads(request.body or b"{}")["name"]
            if self._is_other(request, key):
                return _failure(412, "conditionNotMet")
            upload = str(next(self._generations))
            self._uploads[upload] = {}
            more = {"upload_id": upload, "name": key}
            more |= {name: value for name, value in query.items() if name == "ifGenerationMatch"}
            return servers.Answer(200, {"Location": f"{self.url}{request.path}?{urllib.parse.urlencode(more)}"}, b"")
        if query["uploadType"] == "media":
            return self._stored(request, query["name"], request.body)
        (about, data) = _parts(request)
        return self._stored(request, query.get("name") or json.loads(about)["name"], data)

    def _stored(self, request: _Request, key: str, data: bytes) -> servers.Answer:
        if self._is_other(request, key):
            return _failure(412, "conditionNotMet")
        self._store(key, data)
        return _found(self._resource(key))

    def _continue(self, request: _Request) -> servers.Answer:
        """Take a piece of a resumable upload; the last one ends it."""
        parts = self._uploads.get(request.query["upload_id"])
        if parts is None:
            return _failure(404, "notFound")
        positions, _, total = request.headers["content-range"].removeprefix("bytes ").partition("/")
        if positions != "*":
            parts[int(positions.partition("-")[0])] = request.body
        data = b"".join(parts[start] for start in sorted(parts))
        if total == str(len(data)):
            del self._uploads[request.query["upload_id"]]
            return self._stored(request, request.query["name"], data)
        return servers.Answer(308, {"Range": f"bytes=0-{len(data) - 1}"} if data else {}, b"")

    def _copied(self, request: _Request, key: str, target: str, *, rewritten: bool) -> servers.Answer:
        found = self._objects.get(key)
        if found is None:
            return _failure(404, "notFound")
        answer = self._stored(request, target, found.data)
        if answer.status != 200 or not rewritten:
            return answer
        size = str(len(found.data))
        content = {"kind": "storage#rewriteResponse", "done": True, "objectSize": size, "totalBytesRewritten": size}
        return _found({**content, "resource": self._resource(target)})

    def _removed(self, request: _Request, key: str) -> servers.Answer:
        if key not in self._objects:
            return _failure(404, "notFound")
        if self._is_other(request, key):
            return _failure(412, "conditionNotMet")
        del self._objects[key]
        return servers.Answer(204, {}, b"")

    def _batch(self, request: _Request) -> servers.Answer:
        """Answer the requests that one request contains."""
        lines: list[bytes] = []
        for number, part in enumerate(_message(request).iter_parts(), 1):
            text = part.get_payload(decode=True)
            assert isinstance(text, bytes)
            head, _, body = text.partition(b"\r\n\r\n")
            line, _, fields = head.partition(b"\r\n")
            method, target, *_ = line.decode().split(" ")
            headers = dict(email.message_from_bytes(fields + b"\r\n\r\n").items())
            own = {**headers, "authorization": request.headers["authorization"]}
            answer = self.answer(method, target.removeprefix(self.url), own, body)
            named = {"Content-Type": "application/json", **answer.headers, "Content-Length": str(len(answer.body))}
            lines += [
                b"--batch",
                b"Content-Type: application/http",
                f"Content-ID: response-{number}".encode(),
                b"",
                f"HTTP/1.1 {answer.status} Said".encode(),
                *(f"{name}: {value}".encode() for name, value in named.items()),
                b"",
                answer.body,
            ]
        return servers.Answer(
            200, {"Content-Type": "multipart/mixed; boundary=batch"}, b"\r\n".join([*lines, b"--batch--", b""])
        )


def _message(request: _Request) -> email.message.EmailMessage:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    found = email.message_from_bytes(head + request.body, policy=email.policy.HTTP)
    assert isinstance(found, email.message.EmailMessage)
    return found


def _parts(request: _Request) -> list[bytes]:
    """Return the parts of a body with several."""
    boundary = str(_message(request).get_boundary()).encode()
    pieces = (b"\r\n" + request.body).split(b"\r\n--" + boundary)[1:-1]
    return [piece.partition(b"\r\n\r\n")[2] for piece in pieces]


def _found(content: dict[str, Any]) -> servers.Answer:
    return servers.Answer(200, {"Content-Type": "application/json; charset=UTF-8"}, json.dumps(content).encode())


def _failure(status: int, reason: str) -> servers.Answer:
    error = {"code": status, "message": reason, "errors": [{"domain": "global", "reason": reason, "message": reason}]}
    return servers.Answer(
        status, {"Content-Type": "application/json; charset=UTF-8"}, json.dumps({"error": error}).encode()
    )
