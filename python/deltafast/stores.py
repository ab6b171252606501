"""Stores made in Python: fsspec, obstore and pyarrow.fs file systems under one small protocol.

The core reads local disks, S3, Azure, GCS and HTTP itself, and much faster. A Python store is for what
it cannot reach: HDFS, Kerberos, vended credentials, caches. The core calls it from one thread of its
own, with paths relative to the table's root. A store needs three methods:

    list_from(prefix, offset) -> iterable of (path, size, modified_ms)
        The files directly inside the folder `prefix` whose path sorts after `offset` (exclusive; None
        for all), in order of path. A folder that is not there is empty.
    get_range(path, start, end) -> bytes
        Bytes `start` to `end` (exclusive). A missing file raises FileNotFoundError.
    size(path) -> int
        Length in bytes. A missing file raises FileNotFoundError.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import unquote, urlsplit

from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["FsspecStore", "ObstoreStore", "PyarrowStore", "Store", "adapt_store"]

Entry = tuple[str, int, int]


@runtime_checkable
class Store(Protocol):
    """What the core asks of a Python store; paths are relative to the table's root."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """Files directly inside `prefix` after `offset`, as (path, size, modified in ms)."""
        ...

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`, the latter exclusive."""
        ...

    def size(self, path: str) -> int:
        """The length of the file in bytes."""
        ...


def adapt_store(store: object, uri: str) -> Store:
    """The store for the table at `uri` inside the given file system or object store.

    Args:
        store: An fsspec file system, an obstore store, a pyarrow file system, or a ready `Store`
            (which must itself be rooted at the table).
        uri: The table's location. Its path is the root inside fsspec and pyarrow file systems. An
            obstore store that was made with the table's prefix takes "" or "/".

    Raises:
        InvalidArgumentError: The object is none of these.
    """
    if isinstance(store, Store):
        return store
    modules = {cls.__module__.partition(".")[0] for cls in type(store).__mro__}
    names = {cls.__name__ for cls in type(store).__mro__}
    if "AbstractFileSystem" in names:
        return FsspecStore(store, uri)
    if "pyarrow" in modules:
        return PyarrowStore(store, uri)
    if "obstore" in modules:
        return ObstoreStore(store, uri)
    message = (
        f"store={type(store).__name__} is not understood: give an fsspec file system, an obstore store, a pyarrow file "
        "system, or an object with list_from, get_range and size"
    )
    raise InvalidArgumentError(message)


def _path_of(uri: str) -> str:
    """The path of a URI, or the text itself where it has no scheme."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    host = "" if parts.scheme == "file" else parts.netloc
    return f"{host}{unquote(parts.path)}"


def _milliseconds(moment: object) -> int:
    """Whatever a file system calls a modification time, in ms since the epoch; 0 where it has none."""
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    if isinstance(moment, (int, float)):
        return int(moment * 1000)
    if isinstance(moment, str):
        try:
            return _milliseconds(datetime.fromisoformat(moment))
        except ValueError:
            return 0
    return 0


def _after(entries: Iterable[Entry], offset: str | None) -> Iterator[Entry]:
    chosen = entries if offset is None else (entry for entry in entries if entry[0] > offset)
    yield from sorted(chosen)


class _Rooted:
    """A root inside a file system, and the translation of paths to and from it."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def _full(self, path: str) -> str:
        path = path.strip("/")
        if not self._root:
            return path
        return f"{self._root}/{path}" if path else self._root

    def _relative(self, full: str) -> str:
        prefix = f"{self._root.lstrip('/')}/"
        bare = full.lstrip("/")
        return bare[len(prefix) :] if prefix != "/" and bare.startswith(prefix) else bare


class FsspecStore(_Rooted):
    """An fsspec file system."""

    _TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")

    def __init__(self, fs: Any, uri: str) -> None:
        super().__init__(str(fs._strip_protocol(uri)) if "://" in uri else uri)
        self._fs = fs

    def list_from(self, prefix: str, offset: str | None) -> Iterator[Entry]:
        """See `Store`."""
        try:
            # Never from fsspec's directory cache: a commit of a minute ago must be seen.
            found = self._fs.ls(self._full(prefix), detail=True, refresh=True)
        except FileNotFoundError:
            return iter(())
        except TypeError:  # a file system whose ls takes no refresh
            self._fs.invalidate_cache()
            found = self._fs.ls(self._full(prefix), detail=True)
        return _after((self._entry(info) for info in found if info["type"] == "file"), offset)

    def _entry(self, info: dict[str, Any]) -> Entry:
        moment = next((info[key] for key in self._TIMES if info.get(key) is not None), None)
        return self._relative(str(info["name"])), int(info["size"] or 0), _milliseconds(moment)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Store`."""
        return bytes(self._fs.cat_file(self._full(path), start=start, end=end))

    def size(self, path: str) -> int:
        """See `Store`."""
        return int(self._fs.size(self._full(path)))


class PyarrowStore(_Rooted):
    """A pyarrow file system, such as HDFS."""

    def __init__(self, fs: Any, uri: str) -> None:
        super().__init__(_path_of(uri))
        self._fs = fs

    def list_from(self, prefix: str, offset: str | None) -> Iterator[Entry]:
        """See `Store`."""
        import pyarrow.fs as pafs

        selector = pafs.FileSelector(self._full(prefix), allow_not_found=True, recursive=False)
        found = self._fs.get_file_info(selector)
        files = (info for info in found if info.type == pafs.FileType.File)
        entries = ((self._relative(info.path), int(info.size or 0), _milliseconds(info.mtime)) for info in files)
        return _after(entries, offset)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Store`."""
        with self._fs.open_input_file(self._full(path)) as file:
            return bytes(file.read_at(end - start, start))

    def size(self, path: str) -> int:
        """See `Store`."""
        import pyarrow.fs as pafs

        info = self._fs.get_file_info(self._full(path))
        if info.type != pafs.FileType.File:
            raise FileNotFoundError(path)
        return int(info.size)


class ObstoreStore(_Rooted):
    """An obstore store."""

    def __init__(self, store: Any, uri: str) -> None:
        # The bucket or container of a URL is the store's own; only the path below it is left.
        super().__init__(unquote(urlsplit(uri).path).strip("/") if "://" in uri else uri.strip("/"))
        self._store = store

    def list_from(self, prefix: str, offset: str | None) -> Iterator[Entry]:
        """See `Store`."""
        import obstore

        found = obstore.list_with_delimiter(self._store, self._full(prefix))["objects"]
        entries = (
            (self._relative(item["path"]), int(item["size"]), _milliseconds(item["last_modified"])) for item in found
        )
        return _after(entries, offset)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Store`."""
        import obstore

        return bytes(obstore.get_range(self._store, self._full(path), start=start, end=end))

    def size(self, path: str) -> int:
        """See `Store`."""
        import obstore

        return int(obstore.head(self._store, self._full(path))["size"])
