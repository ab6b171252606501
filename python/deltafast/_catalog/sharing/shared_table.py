"""`SharedTable`: versions and changes of a shared table as a log that the core opens.

A version is a checkpoint (V2 spec, JSON) with the files that the server names; changes are a checkpoint without files
and one commit a version. The core then reads, prunes and reconciles as for any table.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from deltafast._catalog.catalog_error import CatalogError
from deltafast._catalog.sharing.client import SharingClient, timestamp_text
from deltafast._catalog.sharing.profile import ShareProfile
from deltafast._catalog.sharing.response_lines import FileLine, MetadataLine, ProtocolLine, SignedUrls, read_pages
from deltafast._catalog.sharing.signed_files import SignedFiles
from deltafast._delta_keys import ENABLE_CHANGE_DATA_FEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from deltafast._catalog.sharing.client import TableAnswer
    from deltafast._catalog.sharing.share_name import ShareName

__all__ = ["SharedSnapshot", "SharedTable"]

_LOG = "_delta_log"
#: Any: nobody else writes to this log.
_CHECKPOINT_ID = "00000000-0000-4000-8000-000000000000"
#: The most versions of a range: the log has a file for each.
_VERSIONS = 1_000_000


class SharedSnapshot(NamedTuple):
    """A version, and the store (see `deltafast.stores`) with its log and files."""

    version: int
    store: _SharedStore


class SharedTable:
    """A table of a share.

    Args:
        name: Its name.

    Raises:
        InvalidArgumentError: The profile cannot be used.
    """

    def __init__(self, name: ShareName) -> None:
        self.name = name
        self.client = _client(name.profile)
        host = self.client.server.partition("://")[2]
        #: The URL under which the core knows the table; nothing answers it.
        self.location = f"delta-sharing://{host}/{name}/"

    def newest_version(self) -> int:
        """Return the newest version that is shared.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request.
        """
        return self.client.version(self.name)

    def snapshot(self, version: int | None = None, timestamp_ms: int | None = None) -> SharedSnapshot:
        """Return a version, the newest one, or the one that was current at a timestamp.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request, does not share the version, or its answer is not as the
                protocol says.
            DeltaProtocolError: The share needs a newer release.
        """
        asked: dict[str, Any] = {}
        if version is not None:
            asked["version"] = version
        elif timestamp_ms is not None:
            asked["timestamp"] = timestamp_text(timestamp_ms)
        else:
            asked["includeRefreshToken"] = True
        urls = SignedUrls()
        found, lines = read_pages(self._query, asked, urls)
        head, adds, paths = _Head(), list[bytes](), set[str]()
        for line in lines:
            if not isinstance(line, FileLine):
                head.take(line)
                continue
            path = line.action["path"]
            # Of two actions for a path the log has one, so that rows would be missing.
            if line.kind != "add" or path in paths:
                problem = f"the action {line.kind}" if line.kind != "add" else "two files of one id"
                message = f"the sharing server's answer has {problem}, which no version of a table has"
                raise CatalogError(message)
            paths.add(path)
            adds.append(_line({line.kind: line.action}))
        log = {_checkpoint(found): b"\n".join([*head.checkpoint_lines(found), *adds])}

        def renew(last: SignedUrls) -> SignedUrls:
            if last.refresh_token is not None:
                return self._urls(self._query, {"refreshToken": last.refresh_token, "includeRefreshToken": True})
            # Without history the newest version is all there is: a file that it lacks is reported.
            return self._urls(self._query, asked if version is None and timestamp_ms is None else {"version": found})

        return SharedSnapshot(found, _SharedStore(log, {}, SignedFiles(urls, renew)))

    def changes(
        self, start: int | None, end: int | None, start_ms: int | None, end_ms: int | None
    ) -> SharedSnapshot | None:
        """Return the last version of a range, with a log that has the changes of the range.

        Args:
            start: The first version.
            end: The last one; the newest if None.
            start_ms: Begin with the first version at or after this timestamp, instead of at `start`.
            end_ms: End with the last version at or before this timestamp, instead of with `end`.

        Returns:
            None if the range begins after the newest version.

        Raises:
            TableNotFoundError: There is no such table.
            CatalogError: The server refused the request, does not share the changes, or its answer is not as the
                protocol says.
            DeltaProtocolError: The share needs a newer release.
        """
        newest = self.newest_version()
        if start is not None and start > newest:
            return None
        asked: dict[str, Any] = (
            {"startingTimestamp": timestamp_text(start_ms)} if start_ms is not None else {"startingVersion": start or 0}
        )
        if end_ms is not None:
            asked["endingTimestamp"] = timestamp_text(end_ms)
        else:
            end = newest if end is None else min(end, newest)
            asked["endingVersion"] = end
        urls = SignedUrls()
        first, lines = read_pages(self._changes, asked, urls)
        log = _ChangeLog(start if start_ms is None and start is not None else first, end)
        for line in lines:
            log.take(line)
        files, times = log.files()
        store = _SharedStore(files, times, SignedFiles(urls, lambda _: self._urls(self._changes, asked)))
        return SharedSnapshot(log.last, store)

    def _query(self, asked: Mapping[str, Any]) -> TableAnswer:
        return self.client.query(self.name, asked)

    def _changes(self, asked: Mapping[str, Any]) -> TableAnswer:
        return self.client.changes(self.name, asked)

    def _urls(self, ask: Callable[[Mapping[str, Any]], TableAnswer], asked: Mapping[str, Any]) -> SignedUrls:
        urls = SignedUrls()
        _, lines = read_pages(ask, asked, urls)
        for _ in lines:
            pass
        return urls


@lru_cache(maxsize=16)
def _client_of(profile: ShareProfile) -> SharingClient:
    """Return one client for a profile, which keeps its connections and tokens."""
    return SharingClient(profile)


def _client(path: str) -> SharingClient:
    # The file is read each time: it may have a new token.
    return _client_of(ShareProfile.read(path))


class _Head:
    """Protocol and metadata of an answer."""

    def __init__(self) -> None:
        self.protocol: dict[str, Any] | None = None
        self.metadata: dict[str, Any] | None = None

    def take(self, line: ProtocolLine | MetadataLine) -> None:
        """Keep a line; those of further pages are the same."""
        if isinstance(line, ProtocolLine):
            self.protocol = self.protocol or line.action
        else:
            self.metadata = self.metadata or line.action

    def lines(self) -> list[bytes]:
        """Return both actions.

        Raises:
            CatalogError: One is missing.
        """
        if self.protocol is None or self.metadata is None:
            message = "the sharing server's answer has no protocol or no metadata"
            raise CatalogError(message)
        return [_line({"protocol": self.protocol}), _line({"metaData": self.metadata})]

    def checkpoint_lines(self, version: int) -> list[bytes]:
        """Return the lines with which a checkpoint begins."""
        return [_line({"checkpointMetadata": {"version": version}}), *self.lines()]


class _ChangeLog:
    """A log of some versions.

    Args:
        first: The first one.
        last: The last one; the last with a line if None.
    """

    def __init__(self, first: int, last: int | None) -> None:
        self.first, self.last = first, first if last is None else last
        self._is_open = last is None
        self._head = _Head()
        self._metadata: dict[int, dict[str, Any]] = {}
        self._actions: dict[int, list[bytes]] = defaultdict(list)
        self._times: dict[int, int] = {}

    def take(self, line: ProtocolLine | MetadataLine | FileLine) -> None:
        """Add a line of the answer."""
        if isinstance(line, MetadataLine):
            # The server gives changes only where the feed is recorded.
            line.action["configuration"][ENABLE_CHANGE_DATA_FEED] = "true"
            if line.version is not None:
                self._metadata.setdefault(line.version, line.action)
        if not isinstance(line, FileLine):
            self._head.take(line)
            return
        if line.version is None or line.timestamp is None:
            message = "the sharing server's answer has a change without version or timestamp"
            raise CatalogError(message)
        if self._is_open:
            self.last = max(self.last, line.version)
        # The end of a range is only a hint for the server.
        if self.first <= line.version <= self.last:
            self._actions[line.version].append(_line({line.kind: line.action}))
            self._times[line.version] = line.timestamp

    def files(self) -> tuple[dict[str, bytes], dict[str, int]]:
        """Return the files of the log, and when they were modified, in milliseconds since the Unix epoch."""
        before = [version for version in self._metadata if version <= self.first]
        if before:
            self._head.metadata = self._metadata[max(before)]
        if self.last - self.first >= _VERSIONS:
            message = (
                f"the changes that the sharing server gives are those of the versions {self.first} to {self.last}; "
                f"ask for at most {_VERSIONS} at once"
            )
            raise CatalogError(message)
        files: dict[str, bytes] = {}
        times: dict[str, int] = {}
        timestamp = min(self._times.values(), default=0)
        if self.first:
            files[_checkpoint(self.first - 1)] = b"\n".join(self._head.checkpoint_lines(self.first - 1))
            times[_checkpoint(self.first - 1)] = timestamp
        for version in range(self.first, self.last + 1):
            timestamp = self._times.get(version, timestamp)
            info = {"timestamp": timestamp, "inCommitTimestamp": timestamp, "operation": "CHANGES"}
            lines = [_line({"commitInfo": info})]
            if version == 0:
                lines += self._head.lines()
            elif version > self.first and version in self._metadata:
                lines.append(_line({"metaData": self._metadata[version]}))
            name = f"{_LOG}/{version:020}.json"
            files[name], times[name] = b"\n".join([*lines, *self._actions[version]]), timestamp
        return files, times


class _SharedStore:
    """The store of one version of a shared table: its log is in memory, its files are behind signed URLs.

    Args:
        log: Contents by path.
        times: Milliseconds since the Unix epoch by path; now for a path that is missing.
        files: The files.
    """

    read_only = "tables of Delta Sharing are read-only"

    def __init__(self, log: Mapping[str, bytes], times: Mapping[str, int], files: SignedFiles) -> None:
        self._log, self._times, self._files = log, times, files
        self._now = int(time.time() * 1000)

    def list_from(self, prefix: str, offset: str | None) -> Iterable[tuple[str, int, int]]:
        """See `deltafast.stores`: only the log can be listed."""
        return iter(self._entries(offset)) if prefix.strip("/") == _LOG else iter(())

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `deltafast.stores`."""
        if path.startswith(f"{_LOG}/"):
            return self._logged(path)[start:end]
        return self._files.read(path, start, end)

    def size(self, path: str) -> int:
        """See `deltafast.stores`."""
        return len(self._logged(path)) if path.startswith(f"{_LOG}/") else self._files.size(path)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Refuse to write."""
        raise NotImplementedError(self.read_only)

    def _entries(self, offset: str | None) -> Iterator[tuple[str, int, int]]:
        for path, content in sorted(self._log.items()):
            if offset is None or path > offset:
                yield path, len(content), self._times.get(path, self._now)

    def _logged(self, path: str) -> bytes:
        found = self._log.get(path)
        if found is None:
            raise FileNotFoundError(path)
        return found


def _checkpoint(version: int) -> str:
    return f"{_LOG}/{version:020}.checkpoint.{_CHECKPOINT_ID}.json"


def _line(action: Mapping[str, Any]) -> bytes:
    return json.dumps(action, separators=(",", ":")).encode()
