"""The REST API of Azure Data Lake Storage before Azurite, which has only that of Blob Storage.

ABFS, Hadoop's client, speaks it. Each request becomes requests for blobs with the same shared access signature, so that
it is Azurite that checks signatures. A directory is an empty blob with the metadata `hdi_isfolder`, as in Azure.
"""

from __future__ import annotations

import base64
import json
import threading
import urllib.parse
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple

import servers

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = {"x-ms-version": "2021-08-06"}
_FOLDER = {"x-ms-meta-hdi_isfolder": "true"}
_BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
#: Fields of shared access signatures.
_SIGNATURE = ("sv", "ss", "srt", "sr", "sp", "st", "se", "spr", "sip", "sig")
#: Headers of a client that mean the same to both.
_KEPT = ("if-match", "if-none-match", "range")
_OWNER = {"x-ms-owner": "$superuser", "x-ms-group": "$superuser"}


class SignatureProxy(servers.Proxy):
    """A proxy that notes the requests that were refused for their signature."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.refused: list[str] = []

    def answer(self, method, target, headers, body):
        """Hand the request on."""
        answer = super().answer(method, target, headers, body)
        if answer.status == 403:
            self.refused.append(f"{method} {target.partition('?')[0]}")
        return answer


class _Request(NamedTuple):
    """A request for a path of a file system, which is a container."""

    container: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def signature(self) -> dict[str, str]:
        return {name: value for name, value in self.query.items() if name in _SIGNATURE}


class DataLakeProxy(SignatureProxy):
    """Azure Data Lake Storage, as far as Hadoop asks."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._lock = threading.Lock()
        #: Where the blocks of a file begin.
        self._blocks: dict[str, set[int]] = {}

    def answer(self, method, target, headers, body):
        """Answer one request."""
        parts = urllib.parse.urlsplit(target)
        _, account, container, *names = urllib.parse.unquote(parts.path).split("/")
        assert account == servers.Azure.account
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        given = {name.lower(): value for name, value in headers.items()}
        request = _Request(container, "/".join(filter(None, names)), query, given, body)
        method = given.get("x-http-method-override", method)
        if query.get("resource") == "filesystem":
            return self._list(request) if method == "GET" else servers.Answer(200, {}, b"")
        if method == "PUT":
            return self._rename(request) if "x-ms-rename-source" in given else self._create(request)
        if method == "PATCH":
            return self._update(request)
        return {"HEAD": self._status, "GET": self._read, "DELETE": self._delete}[method](request)

    def _blob(self, method, request, path, headers=None, body=b"", **query):
        """Send a request for a blob."""
        fields = urllib.parse.urlencode({**query, **request.signature})
        target = f"/{servers.Azure.account}/{request.container}/{urllib.parse.quote(path)}".rstrip("/")
        length = {"Content-Length": str(len(body))} if method == "PUT" else {}
        return super().answer(method, f"{target}?{fields}", {**_VERSION, **length, **(headers or {})}, body)

    def _create(self, request):
        kept = {name: value for name, value in request.headers.items() if name in _KEPT}
        if request.query["resource"] == "directory":
            found = self._blob("HEAD", request, request.path)
            if found.status == 200:
                kind = _type_of(found)
                return _failure(409, "PathAlreadyExists", {"x-ms-existing-resource-type": kind})
            kept |= _FOLDER
        with self._lock:
            self._blocks[request.path] = set()
        answer = self._blob("PUT", request, request.path, {**kept, **_BLOCK_BLOB})
        return _made(answer, 201) if answer.status == 201 else _failed(answer)

    def _update(self, request):
        action = request.query["action"]
        if action == "append":
            answer = self._append(request)
            if answer.status != 202 or request.query.get("flush") != "true":
                return answer
            return self._flush(request, int(request.query["position"]) + len(request.body))
        if action == "flush":
            return self._flush(request, int(request.query["position"]))
        # Owners, permissions and properties are not kept.
        return servers.Answer(200, {}, b"")

    def _append(self, request):
        position = int(request.query["position"])
        given = {"comp": "block", "blockid": _block(position)}
        answer = self._blob("PUT", request, request.path, body=request.body, **given)
        if answer.status != 201:
            return _failed(answer)
        with self._lock:
            self._blocks.setdefault(request.path, set()).add(position)
        return servers.Answer(202, {}, b"")

    def _flush(self, request, end):
        with self._lock:
            blocks = sorted(start for start in self._blocks.get(request.path, ()) if start < end)
        ids = "".join(f"<Latest>{_block(start)}</Latest>" for start in blocks)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{ids}</BlockList>'.encode()
        answer = self._blob("PUT", request, request.path, body=body, comp="blocklist")
        return _made(answer, 200) if answer.status == 201 else _failed(answer)

    def _status(self, request):
        found = self._blob("HEAD", request, request.path) if request.path else None
        if found is not None and found.status == 200:
            return servers.Answer(200, _properties(found), b"")
        if found is not None and found.status != 404:
            return _failed(found)
        page = self._page(request, f"{request.path}/" if request.path else "", maxresults="1")
        if page.status != 200:
            return _failed(page)
        if request.path and not list(_entries(page)):
            return _failure(404, "PathNotFound")
        folder = {"x-ms-resource-type": "directory", "x-ms-permissions": "rwxr-x---", "Content-Length": "0"}
        return servers.Answer(200, {**folder, **_OWNER, "ETag": '"0"', "Last-Modified": _EPOCH}, b"")

    def _read(self, request):
        kept = {name: value for name, value in request.headers.items() if name in _KEPT}
        answer = self._blob("GET", request, request.path, kept)
        if answer.status not in (200, 206):
            return _failed(answer)
        found = {**_properties(answer), "Content-Length": str(len(answer.body))}
        return servers.Answer(answer.status, found, answer.body)

    def _page(self, request, prefix, **more):
        return self._blob(
            "GET", request, "", restype="container", comp="list", include="metadata", prefix=prefix, **more
        )

    def _pages(self, request, prefix, **more):
        """Give the answer of each page of a list, and the last one where one fails."""
        marker = ""
        while True:
            page = self._page(request, prefix, **more, **({"marker": marker} if marker else {}))
            yield page
            marker = "" if page.status != 200 else (ET.fromstring(page.body).findtext("NextMarker") or "")
            if not marker:
                return

    def _list(self, request):
        folder = request.query.get("directory", "").strip("/")
        prefix = f"{folder}/" if folder else ""
        recursive = request.query.get("recursive") == "true"
        paths = []
        for page in self._pages(request, prefix, **({} if recursive else {"delimiter": "/"})):
            if page.status != 200:
                return _failed(page)
            paths += _entries(page)
        if folder and not paths and self._blob("HEAD", request, folder).status != 200:
            return _failure(404, "PathNotFound")
        # A directory may be there as its marker, and as the beginning of other names.
        found = {entry["name"]: entry for entry in paths}
        content = json.dumps({"paths": list(found.values())}).encode()
        return servers.Answer(200, {"Content-Type": "application/json"}, content)

    def _delete(self, request):
        deleted = 0
        if request.query.get("recursive") == "true":
            for page in list(self._pages(request, f"{request.path}/")):
                if page.status != 200:
                    return _failed(page)
                for entry in _entries(page):
                    deleted += self._blob("DELETE", request, entry["name"]).status == 202
        answer = self._blob("DELETE", request, request.path)
        if answer.status == 202 or (answer.status == 404 and deleted):
            return servers.Answer(200, {}, b"")
        return _failed(answer)

    def _rename(self, request):
        source = urllib.parse.urlsplit(request.headers["x-ms-rename-source"])
        query = dict(urllib.parse.parse_qsl(source.query))
        _, _, old = urllib.parse.unquote(source.path).lstrip("/").partition("/")
        origin = request._replace(path=old, query=query)
        names = [old] if self._blob("HEAD", origin, old).status == 200 else []
        for page in list(self._pages(origin, f"{old}/")):
            if page.status != 200:
                return _failed(page)
            names += [entry["name"] for entry in _entries(page)]
        if not names:
            return _failure(404, "SourcePathNotFound")
        for name in names:
            found = self._blob("GET", origin, name)
            kind = _FOLDER if _type_of(found) == "directory" else {}
            target = request.path + name[len(old) :]
            answer = self._blob("PUT", request, target, {**_BLOCK_BLOB, **kind}, found.body)
            if answer.status != 201:
                return _failed(answer)
            self._blob("DELETE", origin, name)
        return servers.Answer(201, {}, b"")


_EPOCH = "Thu, 01 Jan 1970 00:00:00 GMT"


def _block(position: int) -> str:
    return base64.b64encode(f"{position:016d}".encode()).decode()


def _header(answer: servers.Answer, name: str) -> str:
    return next((value for key, value in answer.headers.items() if key.lower() == name), "")


def _type_of(answer: servers.Answer) -> str:
    return "directory" if _header(answer, "x-ms-meta-hdi_isfolder") == "true" else "file"


def _properties(answer: servers.Answer) -> dict[str, str]:
    kept = {name: _header(answer, name) for name in ("content-length", "content-range", "etag", "last-modified")}
    given = {name: value for name, value in kept.items() if value}
    return {**given, **_OWNER, "x-ms-resource-type": _type_of(answer), "x-ms-permissions": "rw-r-----"}


def _made(answer: servers.Answer, status: int) -> servers.Answer:
    return servers.Answer(status, {name: _header(answer, name) for name in ("etag", "last-modified")}, b"")


#: Errors of Blob Storage that have another name here.
_CODES = {"BlobNotFound": "PathNotFound", "BlobAlreadyExists": "PathAlreadyExists"}


def _failed(answer: servers.Answer) -> servers.Answer:
    code = _header(answer, "x-ms-error-code") or ("BlobNotFound" if answer.status == 404 else "Failed")
    return _failure(answer.status, _CODES.get(code, code))


def _failure(status: int, code: str, headers: dict[str, str] | None = None) -> servers.Answer:
    content = json.dumps({"error": {"code": code, "message": code}}).encode()
    return servers.Answer(
        status, {"x-ms-error-code": code, "Content-Type": "application/json", **(headers or {})}, content
    )


def _entries(page: servers.Answer) -> Iterator[dict[str, str]]:
    """Give the paths of a page of a list of blobs."""
    root = ET.fromstring(page.body)
    for found in root.iterfind("Blobs/BlobPrefix"):
        name = (found.findtext("Name") or "").rstrip("/")
        yield {"name": name, "isDirectory": "true", "contentLength": "0", "etag": "0", "lastModified": _EPOCH}
    for found in root.iterfind("Blobs/Blob"):
        properties = found.find("Properties")
        assert properties is not None
        entry = {"name": found.findtext("Name") or "", "contentLength": properties.findtext("Content-Length") or "0"}
        if found.findtext("Metadata/hdi_isfolder") == "true":
            entry["isDirectory"] = "true"
        yield {
            **entry,
            "etag": properties.findtext("Etag") or "",
            "lastModified": properties.findtext("Last-Modified") or "",
        }
