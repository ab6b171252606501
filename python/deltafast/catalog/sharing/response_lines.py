"""The lines of an answer about a table, of both formats, as actions of a Delta log.

Actions have paths below the table in place of signed URLs, which are kept in `SignedUrls`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast.catalog.rest_client import CatalogError
from deltafast.exceptions import DeltaProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from deltafast.catalog.sharing.client import TableAnswer

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
            DeltaProtocolError: It is not a URL of HTTP.
        """
        name = identity if _PLAIN_ID.fullmatch(identity) else hashlib.sha256(identity.encode()).hexdigest()
        return self._add(f"files/{name}.parquet", url)

    def add_vector(self, identity: str, url: str) -> str:
        """Keep the URL of a file with deletion vectors; returns its id as the log has it: a UUID in Z85.

        Raises:
            DeltaProtocolError: It is not a URL of HTTP.
        """
        number = hashlib.sha256(identity.encode()).digest()[:16]
        self._add(f"deletion_vector_{uuid.UUID(bytes=number)}.bin", url)
        return base64.b85encode(number).decode().translate(_TO_Z85)

    def _add(self, path: str, url: str) -> str:
        if not url.startswith(("https://", "http://")):
            message = f"the sharing server gives a file a URL that is not one of HTTP: {url.partition(':')[0]}:..."
            raise DeltaProtocolError(message)
        self.by_path[path] = url
        return path

    def expire(self, expires_ms: int | None) -> None:
        """Take notice of the end of a URL."""
        if expires_ms:
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
        CatalogError: The server reports an error, or the answer is cut off.
        DeltaProtocolError: A line is not one of the protocol.
    """
    first = ask(asked)
    return first.version, _read_pages(first, ask, asked, urls)


def _read_pages(
    answer: TableAnswer,
    ask: Callable[[Mapping[str, Any]], TableAnswer],
    asked: Mapping[str, Any],
    urls: SignedUrls,
) -> Iterator[ProtocolLine | MetadataLine | FileLine]:
    while True:
        end = yield from _read_page(answer, urls)
        if end.get("errorMessage"):
            message = f"the sharing server reports: {str(end['errorMessage']).splitlines()[0][:300]}"
            raise CatalogError(message)
        urls.expire(end.get("minUrlExpirationTimestamp"))
        urls.refresh_token = end.get("refreshToken") or urls.refresh_token
        token = end.get("nextPageToken")
        if not token:
            return
        answer = ask({**asked, "pageToken": token})


def _read_page(
    answer: TableAnswer, urls: SignedUrls
) -> Generator[ProtocolLine | MetadataLine | FileLine, None, Mapping[str, Any]]:
    """Yield the lines of a page; returns `endStreamAction`."""
    end: Mapping[str, Any] | None = None
    for number, text in enumerate(answer.lines, 1):
        try:
            line: dict[str, Any] = json.loads(text)
            if "endStreamAction" in line:
                end = line["endStreamAction"] or {}
                continue
            found = _read(line, urls)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"it lacks {error}" if isinstance(error, KeyError) else "it is not a JSON object of the protocol"
            message = f"line {number} of the sharing server's answer cannot be read: {what}"
            raise DeltaProtocolError(message) from None
        if found is not None:
            yield found
    if end is None and answer.has_end:
        message = "the sharing server's answer is cut off: its last line is missing; try again"
        raise CatalogError(message)
    return end or {}


def _read(line: dict[str, Any], urls: SignedUrls) -> ProtocolLine | MetadataLine | FileLine | None:
    """Return a line as an action; None for lines that this release does not know."""
    if protocol := line.get("protocol"):
        return ProtocolLine(_protocol(protocol))
    if metadata := line.get("metaData"):
        return MetadataLine(_metadata(metadata), metadata.get("version"))
    for kind, of_log in _PARQUET_ACTIONS.items():
        if (found := line.get(kind)) is not None:
            urls.expire(found.get("expirationTimestamp"))
            if "deltaSingleAction" in found:
                return _delta_file(found, urls)
            return _parquet_file(of_log, found, urls)
    return None


def _protocol(found: dict[str, Any]) -> dict[str, Any]:
    if "deltaProtocol" not in found:
        if int(found["minReaderVersion"]) > _PARQUET_VERSION:
            message = f"the share needs version {found['minReaderVersion']} of the protocol; this release has 1"
            raise DeltaProtocolError(message)
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    protocol = dict(found["deltaProtocol"])
    for features in ("readerFeatures", "writerFeatures"):
        if protocol.get(features):
            protocol[features] = [feature for feature in protocol[features] if feature != _OF_COMMITTERS]
    return protocol


def _metadata(found: dict[str, Any]) -> dict[str, Any]:
    if "deltaMetadata" in found:
        metadata = dict(found["deltaMetadata"])
    else:
        names = ("id", "name", "description", "format", "schemaString", "partitionColumns", "configuration")
        metadata = {name: found[name] for name in names if found.get(name) is not None}
    metadata["format"] = {"options": {}, **metadata.get("format", {"provider": "parquet"})}
    metadata["configuration"] = dict(metadata.get("configuration") or {})
    metadata.setdefault("partitionColumns", [])
    return metadata


def _delta_file(found: dict[str, Any], urls: SignedUrls) -> FileLine:
    (kind, given), *_ = found["deltaSingleAction"].items()
    action = dict(given)
    action["path"] = urls.add_file(found["id"], action["path"])
    if vector := action.get("deletionVector"):
        action["deletionVector"] = _vector(vector, found.get("deletionVectorFileId"), urls)
    return _file(kind, action, found)


def _vector(vector: dict[str, Any], identity: str | None, urls: SignedUrls) -> dict[str, Any]:
    if vector["storageType"] != "p":
        return vector
    url = vector["pathOrInlineDv"]
    return {**vector, "storageType": "u", "pathOrInlineDv": urls.add_vector(identity or url.partition("?")[0], url)}


def _parquet_file(kind: str, found: dict[str, Any], urls: SignedUrls) -> FileLine:
    path = urls.add_file(found["id"], found["url"])
    # This format writes null as an empty text.
    given: dict[str, str] = found.get("partitionValues") or {}
    values = {name: value or None for name, value in given.items()}
    action: dict[str, Any] = {"path": path, "partitionValues": values, "size": found["size"]}
    if found.get("stats"):
        action["stats"] = found["stats"]
    return _file(kind, action, found)


def _file(kind: str, action: dict[str, Any], found: dict[str, Any]) -> FileLine:
    timestamp = found.get("timestamp")
    action.setdefault("size", found.get("size"))
    action.setdefault("dataChange", kind != "cdc")
    if kind == "add":
        action.setdefault("modificationTime", timestamp or 0)
    elif kind == "remove":
        action.setdefault("deletionTimestamp", timestamp or 0)
        action["extendedFileMetadata"] = True
    return FileLine(kind, action, found.get("version"), timestamp)
