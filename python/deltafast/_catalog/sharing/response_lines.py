"""The lines of an answer about a table, of both formats, as actions of a Delta log.

Actions have paths below the table in place of signed URLs, which are kept in `SignedUrls`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast
from urllib.parse import urlsplit

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.json_answer import AnswerSource, JsonObject, parse_json
from deltafast._catalog.server_text import has_control, server_text
from deltafast.exceptions import DeltaProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from deltafast._catalog.sharing.client import TableAnswer

__all__ = ["FileLine", "MetadataLine", "ProtocolLine", "SignedUrls", "read_pages"]

#: Ids that may be part of a path as they are.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
#: Of the alphabets of Base85 in RFC 1924, which Python has, and of Z85, in which the log has UUIDs.
_TO_Z85 = str.maketrans(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)
#: The feature of which only writers and the server take notice: recipients do not commit.
_OF_COMMITTERS = "catalogManaged"
#: Of the format `parquet`: the newest version of its protocol, and the names of its file actions in a log.
_PARQUET_VERSION = 1
_PARQUET_ACTIONS = {"file": "add", "add": "add", "remove": "remove", "cdf": "cdc"}
#: Names of the file actions of a log.
_FILE_ACTIONS = ("add", "remove", "cdc")
#: The most pages of an answer: a server that always names a next one would be asked for ever.
_PAGES = 100_000
#: The most blank lines of a page.
_BLANK_LINES = 10_000
#: The most bytes of a deletion vector in the log.
_LONGEST_INLINE = 1 << 20


class ProtocolLine(NamedTuple):
    """The action `protocol`."""

    action: dict[str, Any]


class MetadataLine(NamedTuple):
    """The action `metaData`, with its version if it is one of the history."""

    action: dict[str, Any]
    version: int | None


class FileLine(NamedTuple):
    """The action `add`, `remove` or `cdc`."""

    kind: str
    action: dict[str, Any]
    version: int | None
    #: Milliseconds since the Unix epoch.
    timestamp: int | None


class SignedUrls:
    """The signed URLs of the files of a table."""

    def __init__(self) -> None:
        #: By path below the table.
        self.by_path: dict[str, str] = {}
        #: Milliseconds since the Unix epoch when the first one expires; None if the server does not say.
        self.expires_ms: int | None = None
        #: A token with which URLs of the same version are asked for again.
        self.refresh_token: str | None = None

    def add_file(self, identity: str, url: str) -> str:
        """Keep the URL of a data file; returns the path.

        Raises:
            ValueError: It is not a URL of HTTP.
        """
        name = identity if _PLAIN_ID.fullmatch(identity) else hashlib.sha256(identity.encode()).hexdigest()
        return self._add(f"files/{name}.parquet", url)

    def add_vector(self, identity: str, url: str) -> str:
        """Keep the URL of a file with deletion vectors; returns its id as the log has it: a UUID in Z85.

        Raises:
            ValueError: It is not a URL of HTTP.
        """
        number = hashlib.sha256(identity.encode()).digest()[:16]
        self._add(f"deletion_vector_{uuid.UUID(bytes=number)}.bin", url)
        return base64.b85encode(number).decode().translate(_TO_Z85)

    def _add(self, path: str, url: str) -> str:
        try:
            parts = urlsplit(url)
            is_http = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_http = False
        if not is_http or has_control(url) or not url.isascii():
            # Only its scheme is shown: the rest may be a signature.
            scheme = server_text(url.partition(":")[0], most=20)
            message = f"a file has a URL that is not one of HTTP: {scheme}:..."
            raise ValueError(message)
        self.by_path[path] = url
        return path

    def expire(self, expires_ms: int | None) -> None:
        """Take notice of the end of a URL."""
        if expires_ms is not None and expires_ms > 0:
            self.expires_ms = min(self.expires_ms or expires_ms, expires_ms)


def read_pages(
    ask: Callable[[Mapping[str, Any]], TableAnswer], asked: Mapping[str, Any], urls: SignedUrls
) -> tuple[int, Iterator[ProtocolLine | MetadataLine | FileLine]]:
    """Return the version of an answer, and its lines; those of all pages if the server divides it.

    Args:
        ask: Sends the request.
        asked: Its fields.
        urls: Takes the URLs while the lines are read.

    Raises:
        CatalogError: The server reports an error, the answer is cut off, or a line is not one of the protocol.
        DeltaProtocolError: The share needs a newer release.
    """
    first = ask(asked)
    version = asked.get("version")
    if version is not None and first.version != version:
        first.close()
        message = f"{first.source} with version {first.version} where version {version} was asked for"
        raise CatalogError(message)
    return first.version, _read_pages(first, ask, asked, urls)


def _read_pages(
    answer: TableAnswer,
    ask: Callable[[Mapping[str, Any]], TableAnswer],
    asked: Mapping[str, Any],
    urls: SignedUrls,
) -> Iterator[ProtocolLine | MetadataLine | FileLine]:
    version, seen_tokens = answer.version, {""}
    while True:
        end = yield from _read_page(answer, urls)
        if error := end.optional_text("errorMessage"):
            message = f"the sharing server reports: {server_text(error.strip().partition(chr(10))[0])}"
            raise CatalogError(message)
        urls.expire(end.optional_integer("minUrlExpirationTimestamp"))
        urls.refresh_token = end.optional_text("refreshToken") or urls.refresh_token
        token = end.optional_text("nextPageToken") or ""
        if not token:
            return
        if token in seen_tokens or len(seen_tokens) > _PAGES:
            problem = "the same page twice" if token in seen_tokens else f"more than {_PAGES} pages"
            message = f"{answer.source} with {problem}"
            raise CatalogError(message)
        seen_tokens.add(token)
        answer = ask({**asked, "pageToken": token})
        if answer.version != version:
            answer.close()
            message = f"{answer.source} with pages of the versions {version} and {answer.version}"
            raise CatalogError(message)


def _read_page(
    answer: TableAnswer, urls: SignedUrls
) -> Generator[ProtocolLine | MetadataLine | FileLine, None, JsonObject]:
    """Yield the lines of a page; returns `endStreamAction`."""
    end: JsonObject | None = None
    blank_lines = 0
    for number, text in enumerate(answer.lines, 1):
        if not text.strip():
            blank_lines += 1
            if blank_lines > _BLANK_LINES:
                _refuse(number, f"it is the last of {blank_lines} that are blank")
            continue
        if end is not None:
            _refuse(number, "it follows the last line, endStreamAction")
        found = _read_line(number, text, urls)
        if isinstance(found, JsonObject):
            end = found
        else:
            yield found
    if end is None and answer.has_end:
        message = "the sharing server's answer is cut off: its last line is missing; try again"
        raise CatalogError(message)
    return JsonObject({}, AnswerSource(answer.source)) if end is None else end


def _read_line(number: int, text: bytes, urls: SignedUrls) -> ProtocolLine | MetadataLine | FileLine | JsonObject:
    """Return a line as an action, or `endStreamAction`."""
    # Its values have URLs with signatures.
    source = AnswerSource(f"line {number} of the sharing server's answer cannot be read: it comes", is_secret=True)
    problem = ""
    try:
        parsed: Any = parse_json(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        _refuse(number, "it is not a JSON object of the protocol")
    line = cast("dict[str, Any]", parsed)
    members = {name: value for name, value in line.items() if value is not None}
    if len(members) != 1:
        # A skipped action may be that of a file, so that rows would be missing.
        names = ", ".join(server_text(name, most=40) for name in line) or "nothing"
        _refuse(number, f"it must have one action, and has {len(members)} that are not null of: {names}")
    (name,) = members
    if name not in ("protocol", "metaData", "endStreamAction", *_PARQUET_ACTIONS):
        _refuse(number, f"this release does not know its action {server_text(name, most=40)!r}")
    action = JsonObject(members, source).object(name)
    try:
        return _read_action(name, action, urls)
    except ValueError as error:
        problem = str(error)
    _refuse(number, problem)


def _refuse(number: int, what: str) -> NoReturn:
    message = f"line {number} of the sharing server's answer cannot be read: {what}"
    raise CatalogError(message)


def _read_action(
    name: str, action: JsonObject, urls: SignedUrls
) -> ProtocolLine | MetadataLine | FileLine | JsonObject:
    """Return an action.

    Raises:
        ValueError: It is not one of the protocol.
    """
    if name == "protocol":
        return ProtocolLine(_protocol(action))
    if name == "metaData":
        return MetadataLine(_metadata(action), action.optional_integer("version"))
    if name == "endStreamAction":
        return action
    urls.expire(action.optional_integer("expirationTimestamp"))
    if "deltaSingleAction" in action:
        return _delta_file(action, urls)
    return _parquet_file(_PARQUET_ACTIONS[name], action, urls)


def _protocol(line: JsonObject) -> dict[str, Any]:
    action = line.optional_object("deltaProtocol")
    if action is None:
        version = line.integer("minReaderVersion")
        if version > _PARQUET_VERSION:
            message = f"the share needs version {version} of the protocol; this release has 1"
            raise DeltaProtocolError(message)
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    protocol = dict(action.members)
    for name in ("minReaderVersion", "minWriterVersion"):
        action.integer(name)
    for features in ("readerFeatures", "writerFeatures"):
        if names := action.strings(features):
            protocol[features] = [feature for feature in names if feature != _OF_COMMITTERS]
    return protocol


def _metadata(line: JsonObject) -> dict[str, Any]:
    action = line.optional_object("deltaMetadata") or line
    if action is line:
        names = ("id", "name", "description", "format", "schemaString", "partitionColumns", "configuration")
        metadata = {name: line.members[name] for name in names if name in line}
    else:
        metadata = dict(action.members)
    for name in ("id", "schemaString"):
        action.text(name)
    form = action.optional_object("format")
    metadata["format"] = {"options": {}, **({"provider": "parquet"} if form is None else form.members)}
    metadata["configuration"] = action.text_map("configuration")
    metadata["partitionColumns"] = action.strings("partitionColumns")
    return metadata


def _delta_file(line: JsonObject, urls: SignedUrls) -> FileLine:
    actions = line.object("deltaSingleAction")
    kinds = [name for name, value in actions.members.items() if value is not None]
    if len(kinds) != 1 or kinds[0] not in _FILE_ACTIONS:
        names = ", ".join(server_text(name, most=40) for name in actions.members) or "nothing"
        message = f"its deltaSingleAction must be one file, and it has: {names}"
        raise ValueError(message)
    action = actions.object(kinds[0])
    members = dict(action.members)
    members["path"] = urls.add_file(line.text("id"), action.text("path"))
    members["partitionValues"] = _partition_values(action, "partitionValues")
    if "deletionVector" in action:
        identity = line.optional_text("deletionVectorFileId")
        members["deletionVector"] = _vector(action.object("deletionVector"), identity, urls)
    action.optional_text("stats")
    for name in ("size", "modificationTime", "deletionTimestamp", "baseRowId", "defaultRowCommitVersion"):
        action.optional_integer(name)
    return _file(kinds[0], members, line)


def _vector(vector: JsonObject, identity: str | None, urls: SignedUrls) -> dict[str, Any]:
    kind, url = vector.text("storageType"), vector.text("pathOrInlineDv")
    for name in ("sizeInBytes", "cardinality"):
        if vector.integer(name) < 0:
            message = f"the {name} of its deletion vector is negative"
            raise ValueError(message)
    vector.optional_integer("offset")
    if kind == "i" and len(url) <= _LONGEST_INLINE:
        return dict(vector.members)
    if kind != "p":
        # Others are paths below the table, which a share does not have.
        message = f"its deletion vector is stored as {server_text(kind, most=40)!r}, not behind a URL or in the line"
        raise ValueError(message)
    path = urls.add_vector(identity or url.partition("?")[0], url)
    return {**vector.members, "storageType": "u", "pathOrInlineDv": path}


def _parquet_file(kind: str, line: JsonObject, urls: SignedUrls) -> FileLine:
    path = urls.add_file(line.text("id"), line.text("url"))
    # This format writes null as an empty text.
    values = {name: value or None for name, value in _partition_values(line, "partitionValues").items()}
    action: dict[str, Any] = {"path": path, "partitionValues": values, "size": line.integer("size")}
    if stats := line.optional_text("stats"):
        action["stats"] = stats
    return _file(kind, action, line)


def _partition_values(action: JsonObject, name: str) -> dict[str, str | None]:
    """Return the values of partition columns, which are strings or null."""
    values = action.optional_object(name)
    return {} if values is None else {column: values.optional_text(column) for column in values.members}


def _file(kind: str, action: dict[str, Any], line: JsonObject) -> FileLine:
    timestamp = line.optional_integer("timestamp")
    action.setdefault("size", line.optional_integer("size"))
    if action["size"] is None and kind != "remove":
        message = "its file has no size"
        raise ValueError(message)
    if (action["size"] or 0) < 0:
        message = "the size of its file is negative"
        raise ValueError(message)
    action.setdefault("dataChange", kind != "cdc")
    if kind == "add":
        action.setdefault("modificationTime", timestamp or 0)
    elif kind == "remove":
        action.setdefault("deletionTimestamp", timestamp or 0)
        action["extendedFileMetadata"] = True
    return FileLine(kind, action, line.optional_integer("version"), timestamp)
