"""A server of Delta Sharing, as far as the protocol's description says what it does: every request is checked.

It reads logs of JSON commits by itself. It was not compared with a real server.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import pathlib
import re
import threading
import time
import urllib.parse
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = "/delta-sharing"
TOKEN = "a word of the recipient"
#: Parameters of requests, by the last part of their paths.
_QUERY = {
    "version": {"startingTimestamp"},
    "metadata": set[str](),
    "query": set[str](),
    "changes": {
        "startingVersion",
        "startingTimestamp",
        "endingVersion",
        "endingTimestamp",
        "includeHistoricalMetadata",
        "pageToken",
    },
}
_BODY = {
    "predicateHints": list,
    "jsonPredicateHints": str,
    "limitHint": int,
    "version": int,
    "timestamp": str,
    "startingVersion": int,
    "endingVersion": int,
    "pageToken": str,
    "refreshToken": str,
    "includeRefreshToken": bool,
}
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


class RefusalError(Exception):
    """An answer with an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Commit(NamedTuple):
    """A version of a log."""

    version: int
    timestamp: int
    actions: list[dict[str, Any]]


class SharingServer(servers.Server):
    """A server with the share `retail` and its schema `sales`.

    Args:
        form: The format of answers where the client takes both: `delta` or `parquet`.
        has_history: Whether older versions and changes are shared.
        life: Seconds for which signed URLs are valid.
        page: The most files of an answer; all if None.
        has_refresh_tokens: Whether it gives tokens to renew URLs of the same version.
    """

    def __init__(
        self,
        *,
        form: str = "delta",
        has_history: bool = True,
        life: float = 3600.0,
        page: int | None = None,
        has_refresh_tokens: bool = True,
    ) -> None:
        super().__init__()
        self.form, self.has_history, self.life, self.page = form, has_history, life, page
        self.has_refresh_tokens = has_refresh_tokens
        self.tables: dict[tuple[str, str, str], pathlib.Path] = {}
        self.names = {"retail": {"sales"}}
        #: What is wrong in requests.
        self.violations: list[str] = []
        #: Called with method and target; may answer instead.
        self.disturb: Callable[[str], servers.Answer | None] | None = None
        #: Leaves out the last line of answers.
        self.cuts = False
        self.signatures: dict[str, float] = {}
        self._lock = threading.Lock()

    def share(self, folder: pathlib.Path, name: str = "retail.sales.orders") -> None:
        """Share the table in a folder."""
        share, schema, table = name.split(".")
        self.tables[share, schema, table] = folder

    def profile(self, path: pathlib.Path, **more: object) -> str:
        """Write a profile file; returns its path."""
        content = {"shareCredentialsVersion": 1, "endpoint": f"{self.url}{ROOT}/", "bearerToken": TOKEN}
        path.write_text(json.dumps(content | more), encoding="utf-8")
        return str(path)

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> servers.Answer:
        """Answer a request."""
        path = urllib.parse.urlsplit(target).path
        with self._lock:
            self.requests.append(f"{method} {path.removeprefix(ROOT)}")
        if self.disturb is not None and (instead := self.disturb(f"{method} {path}")) is not None:
            return instead
        given = {name.lower(): value for name, value in headers.items()}
        if path.startswith("/files/"):
            return self._file(method, target, given)
        try:
            return self._answer(method, target, given, body)
        except RefusalError as refusal:
            content = {"errorCode": refusal.code, "message": str(refusal)}
            return servers.Answer(refusal.status, {"Content-Type": "application/json"}, json.dumps(content).encode())

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> servers.Answer:
        if headers.get("authorization") != f"Bearer {TOKEN}":
            raise RefusalError(401, "UNAUTHENTICATED", "the token is missing or incorrect")
        url = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        parts = [urllib.parse.unquote(part) for part in url.path.removeprefix(f"{ROOT}/").split("/")]
        match parts:
            case ["shares"]:
                return self._listing(query, [{"name": name} for name in sorted(self.names)])
            case ["shares", share, "schemas"]:
                schemas = sorted(self._schemas(share))
                return self._listing(query, [{"name": name, "share": share} for name in schemas])
            case ["shares", share, "schemas", schema, "tables"]:
                found = sorted(name for *place, name in self.tables if place == [share, schema])
                self._schemas(share)
                return self._listing(query, [{"name": name, "schema": schema, "share": share} for name in found])
            case ["shares", share, "schemas", schema, "tables", table, what] if what in _QUERY:
                folder = self.tables.get((share, schema, table))
                if folder is None:
                    raise RefusalError(404, "RESOURCE_DOES_NOT_EXIST", "no such table")
                content = json.loads(body) if body else {}
                self._check(method, what, query, content)
                return self._table(_Table(folder), what, query, content, headers)
            case _:
                self.violations.append(f"{method} {target}: no such request")
                raise RefusalError(404, "RESOURCE_DOES_NOT_EXIST", "no such request")

    def _schemas(self, share: str) -> set[str]:
        if share not in self.names:
            raise RefusalError(404, "RESOURCE_DOES_NOT_EXIST", "no such share")
        return self.names[share]

    def _listing(self, query: dict[str, str], items: list[dict[str, str]]) -> servers.Answer:
        # Two to a page.
        start = int(query.get("pageToken") or 0)
        page: dict[str, Any] = {"items": items[start : start + 2]} if items else {}
        page["nextPageToken"] = str(start + 2) if start + 2 < len(items) else ""
        return servers.Answer(200, {"Content-Type": "application/json"}, json.dumps(page).encode())

    def _check(self, method: str, what: str, query: dict[str, str], body: dict[str, Any]) -> None:
        wrong = []
        if method != ("POST" if what == "query" else "GET"):
            wrong.append("the method")
        wrong += sorted(query.keys() - _QUERY[what])
        wrong += [name for name, value in body.items() if not isinstance(value, _BODY.get(name, ()))]
        if len({"version", "timestamp", "startingVersion", "includeRefreshToken"} & body.keys()) > 1:
            wrong.append("fields that exclude each other")
        if len({"startingVersion", "startingTimestamp"} & query.keys()) > 1:
            wrong.append("two beginnings")
        times = [value for name, value in {**query, **body}.items() if name.lower().endswith("timestamp")]
        wrong += [value for value in times if not _TIMESTAMP.fullmatch(value)]
        if wrong:
            self.violations.append(f"{method} {what}: {wrong}")
            raise RefusalError(400, "INVALID_PARAMETER_VALUE", f"not as the protocol says: {wrong}")

    def _table(
        self, table: _Table, what: str, query: dict[str, str], body: dict[str, Any], headers: dict[str, str]
    ) -> servers.Answer:
        form = self._form(headers, table)
        is_delta = form == "delta"
        if what == "version":
            return _lines(table.newest, [], form)
        if what == "changes":
            if not self.has_history:
                raise RefusalError(400, "INVALID_PARAMETER_VALUE", "the history of the table is not shared")
            first, last = table.range(query)
            protocol, metadata = table.head(last)
            lines = [_protocol(protocol, is_delta), _metadata(metadata, is_delta)]
            lines += [_metadata(found, is_delta, version) for version, found in table.metadata(first, last)]
            lines += [
                self._encoded(table, {"cdc": "cdf"}.get(kind, kind), action, commit, is_delta)
                for commit in table.commits
                if first <= commit.version <= last
                for kind, action in commit_changes(commit)
            ]
            return self._ended(first, lines, query.get("pageToken"), form)
        version = table.newest
        if "version" in body or "timestamp" in body:
            if not self.has_history:
                raise RefusalError(400, "INVALID_PARAMETER_VALUE", "the history of the table is not shared")
            version = body.get("version", table.at(body.get("timestamp")))
            if version > table.newest:
                raise RefusalError(400, "INVALID_PARAMETER_VALUE", f"the newest version is {table.newest}")
        if token := body.get("refreshToken"):
            version = int(token.removeprefix("refresh-"))
        protocol, metadata = table.head(version)
        commit = table.commits[version] if "version" in body or "timestamp" in body else None
        lines = [_protocol(protocol, is_delta), _metadata(metadata, is_delta)]
        lines += [self._encoded(table, "file", action, commit, is_delta) for action in table.files(version)]
        refresh = f"refresh-{version}" if body.get("includeRefreshToken") and self.has_refresh_tokens else None
        return self._ended(version, lines, body.get("pageToken"), form, refresh)

    def _form(self, headers: dict[str, str], table: _Table) -> str:
        pairs = [part.split("=") for part in headers.get("delta-sharing-capabilities", "").lower().split(";") if part]
        found = {name: value.split(",") for name, value in pairs}
        forms = found.get("responseformat", ["parquet"])
        form = self.form if self.form in forms else forms[0]
        protocol, _ = table.head(table.newest)
        if protocol["minReaderVersion"] > 1:
            if "delta" not in forms:
                raise RefusalError(400, "DS_UNSUPPORTED_DELTA_TABLE_FEATURES", "the table needs the format delta")
            missing = {one.lower() for one in protocol.get("readerFeatures", [])} - set(found.get("readerfeatures", []))
            if missing:
                raise RefusalError(400, "DS_UNSUPPORTED_DELTA_TABLE_FEATURES", f"the client lacks {missing}")
            return "delta"
        return form

    def _ended(
        self, version: int, lines: list[Any], token: str | None, form: str, refresh: str | None = None
    ) -> servers.Answer:
        head, files = lines[:2], lines[2:]
        end: dict[str, Any] = {"minUrlExpirationTimestamp": round((time.time() + self.life) * 1000)}
        if refresh:
            end["refreshToken"] = refresh
        if self.page is not None:
            start = int(token or 0)
            if start + self.page < len(files):
                end["nextPageToken"] = str(start + self.page)
            files = files[start : start + self.page]
        return _lines(version, [*head, *files, *([] if self.cuts else [{"endStreamAction": end}])], form)

    def _encoded(
        self, table: _Table, name: str, action: dict[str, Any], commit: Commit | None, is_delta: bool
    ) -> dict[str, Any]:
        """Return the line of a file: `file`, or of changes `add`, `remove`, `cdf`."""
        identity = _identity(action["path"])
        url = self._sign(table.folder / urllib.parse.unquote(action["path"]))
        more: dict[str, Any] = {"expirationTimestamp": round((time.time() + self.life) * 1000)}
        if commit is not None:
            more |= {"version": commit.version, "timestamp": commit.timestamp}
        if is_delta:
            single = {**action, "path": url}
            if vector := action.get("deletionVector"):
                single["deletionVector"], more["deletionVectorFileId"] = self._vector(table, vector)
            kind = {"file": "add", "cdf": "cdc"}.get(name, name)
            return {"file": {"id": identity, **more, "deltaSingleAction": {kind: single}}}
        values = {column: value or "" for column, value in action["partitionValues"].items()}
        found = {"url": url, "id": identity, "partitionValues": values, "size": action["size"], **more}
        return {name: found | ({"stats": action["stats"]} if action.get("stats") else {})}

    def _vector(self, table: _Table, vector: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if vector["storageType"] == "i":
            return vector, "inline"
        text = vector["pathOrInlineDv"]
        raw = base64.b85decode(text[-20:].translate(str.maketrans(_Z85, _B85)))
        name = f"deletion_vector_{uuid.UUID(bytes=raw)}.bin"
        file = table.folder / text[:-20] / name
        assert file.exists(), file
        return {**vector, "storageType": "p", "pathOrInlineDv": self._sign(file)}, _identity(name)

    def _sign(self, file: pathlib.Path) -> str:
        signature = uuid.uuid4().hex
        self.signatures[signature] = time.time() + self.life
        return f"{self.url}/files{urllib.parse.quote(str(file))}?X-Signature={signature}"

    def _file(self, method: str, target: str, headers: dict[str, str]) -> servers.Answer:
        url = urllib.parse.urlsplit(target)
        signature = urllib.parse.parse_qs(url.query).get("X-Signature", [""])[0]
        if method != "GET" or self.signatures.get(signature, 0) < time.time() or "authorization" in headers:
            return servers.Answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
        file = pathlib.Path(urllib.parse.unquote(url.path.removeprefix("/files")))
        if not file.exists():
            return servers.Answer(404, {}, b"")
        content = file.read_bytes()
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", ""))
        if found is None:
            return servers.Answer(200, {}, content)
        start, end = int(found[1]), min(int(found[2]) + 1, len(content))
        return servers.Answer(206, {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"}, content[start:end])


class _Table:
    """A table with a log of JSON commits from version 0 on."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.commits = []
        for file in sorted((folder / "_delta_log").glob("????????????????????.json")):
            actions = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
            self.commits.append(Commit(int(file.stem), round(file.stat().st_mtime * 1000), actions))
        self.newest = self.commits[-1].version

    def at(self, text: str | None) -> int:
        """Return the version that was current at a timestamp."""
        if text is None:
            return self.newest
        versions = [commit.version for commit in self.commits if commit.timestamp <= _milliseconds(text)]
        if not versions:
            raise RefusalError(400, "INVALID_PARAMETER_VALUE", "the timestamp is before the first version")
        return versions[-1]

    def range(self, query: dict[str, str]) -> tuple[int, int]:
        """Return the versions of a request for changes."""
        if "startingTimestamp" in query:
            wanted = _milliseconds(query["startingTimestamp"])
            first = next((commit.version for commit in self.commits if commit.timestamp >= wanted), None)
            if first is None:
                raise RefusalError(400, "INVALID_PARAMETER_VALUE", "the timestamp is after the newest version")
        else:
            first = int(query["startingVersion"])
        if "endingTimestamp" in query:
            return first, self.at(query["endingTimestamp"])
        return first, int(query.get("endingVersion", self.newest))

    def head(self, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return protocol and metadata of a version."""
        found: dict[str, Any] = {}
        for commit in self.commits[: version + 1]:
            for action in commit.actions:
                found |= {name: action[name] for name in ("protocol", "metaData") if name in action}
        return found["protocol"], found["metaData"]

    def metadata(self, first: int, last: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Return the metadata of a range: that of the first version, and each later one."""
        yield first, self.head(first)[1]
        for commit in self.commits[first + 1 : last + 1]:
            for action in commit.actions:
                if "metaData" in action:
                    yield commit.version, action["metaData"]

    def files(self, version: int) -> list[dict[str, Any]]:
        """Return the live files of a version."""
        live: dict[tuple[str, str], dict[str, Any]] = {}
        for commit in self.commits[: version + 1]:
            for kind in ("remove", "add"):
                for action in (action[kind] for action in commit.actions if kind in action):
                    key = action["path"], json.dumps(action.get("deletionVector"))
                    if kind == "add":
                        live[key] = action
                    else:
                        live.pop(key, None)
        return list(live.values())


def commit_changes(commit: Commit) -> list[tuple[str, dict[str, Any]]]:
    """Return the file actions that have the changes of a commit."""
    found = [(kind, action[kind]) for action in commit.actions for kind in ("add", "remove", "cdc") if kind in action]
    if any(kind == "cdc" for kind, _ in found):
        return [(kind, action) for kind, action in found if kind == "cdc"]
    return [(kind, action) for kind, action in found if action["dataChange"]]


def _protocol(found: dict[str, Any], is_delta: bool) -> dict[str, Any]:
    return {"protocol": {"deltaProtocol": found} if is_delta else {"minReaderVersion": 1}}


def _metadata(found: dict[str, Any], is_delta: bool, version: int | None = None) -> dict[str, Any]:
    more = {} if version is None else {"version": version}
    if is_delta:
        return {"metaData": {"deltaMetadata": found, **more}}
    names = ("id", "name", "description", "schemaString", "partitionColumns")
    known = {name: found[name] for name in names if found.get(name) is not None}
    return {"metaData": {**known, "format": {"provider": "parquet"}, **more}}


def _lines(version: int, lines: list[Any], form: str) -> servers.Answer:
    headers = {
        "Content-Type": "application/x-ndjson; charset=utf-8",
        "Delta-Table-Version": str(version),
        "delta-sharing-capabilities": f"responseformat={form};includeEndStreamAction=true",
    }
    return servers.Answer(http.client.OK, headers, b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def _identity(path: str) -> str:
    return hashlib.md5(path.encode(), usedforsecurity=False).hexdigest()


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)
