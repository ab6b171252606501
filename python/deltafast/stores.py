"""Python stores: an interface for fsspec, obstore and pyarrow.fs file systems.

The core itself reads and writes local disks, S3, Azure and GCS, and much faster. A Python store is for
everything else: HDFS, Kerberos, vended credentials, caches. The core calls it with paths relative
to the table's root, from threads of its own. A read-only store needs three methods:

    list_from(prefix, offset) -> iterable of (path, size, modified_ms)
        The files directly inside the folder `prefix` whose path sorts after `offset` (exclusive; None
        for all), in order of path. A folder that does not exist is empty.
    get_range(path, start, end) -> bytes
        Bytes `start` to `end` (exclusive). A missing file raises FileNotFoundError.
    size(path) -> int
        Length in bytes. A missing file raises FileNotFoundError.

A store for writing also has the methods of `WritableStore`. Safety depends on `put_if_absent`: of any
number of concurrent writers, on any machine, exactly one may succeed, and no reader may see a part of
the file. `deltafast.check_store(url, store=...)` tests this.

| store | writable | reason |
|---|---|---|
| obstore: S3, GCS, Azure, local, memory | yes | `mode="create"` is one conditional request |
| fsspec: `s3fs`, `gcsfs` (releases with `mode="create"`), `adlfs` | yes | the same |
| fsspec and pyarrow: local disks | yes | a synced file is linked to its name |
| fsspec: memory | yes | a lock, within this process |
| any other fsspec file system | no | `fsspec` checks first and then writes: two writers may both succeed |
| any other pyarrow file system | no | it replaces existing files |
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import secrets
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from deltafast import _core
from deltafast._util.locations import without_secrets
from deltafast.exceptions import InvalidArgumentError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["FsspecStore", "NewFile", "ObstoreStore", "PyarrowStore", "Store", "WritableStore", "adapt_store"]

Entry = tuple[str, int, int]


@runtime_checkable
class Store(Protocol):
    """Interface of a Python store for reading; paths are relative to the table's root."""

    def list_from(self, prefix: str, offset: str | None) -> Iterable[Entry]:
        """Return the files directly inside `prefix` after `offset`, as (path, size, modified in ms)."""
        ...

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end`, the latter exclusive."""
        ...

    def size(self, path: str) -> int:
        """Return the length of the file in bytes."""
        ...


class NewFile(Protocol):
    """A file that is being written, which becomes visible when it is closed."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""
        ...

    def close(self) -> object:
        """Make the whole file visible; an existing file with the name is replaced."""
        ...

    def discard(self) -> object:
        """Discard the file."""
        ...


@runtime_checkable
class WritableStore(Store, Protocol):
    """Interface of a Python store for writing. All methods may be called by several threads."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create the file atomically, unless it exists; returns False if it exists.

        After an exception the core reads the file to find out whether it was created. It does not retry after
        PermissionError, FileNotFoundError and NotImplementedError: if the file was not created, the commit then fails
        with the message of the exception.
        """
        ...

    def create(self, path: str) -> NewFile:
        """Begin a file with a name that no other writer uses."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file. A missing file may raise FileNotFoundError."""
        ...

    def list_folder(self, prefix: str) -> tuple[Iterable[Entry], Iterable[str]]:
        """Return the files directly inside `prefix`, as (path, size, modified in ms), and paths of the folders."""
        ...


def adapt_store(store: object, uri: str) -> Store:
    """Return the store for the table at `uri` inside the given file system or object store.

    Args:
        store: An fsspec file system, an obstore store, a pyarrow file system, or a ready `Store`
            (which must itself be rooted at the table).
        uri: The table's location. Its path is the root inside fsspec and pyarrow file systems. For an
            obstore store with the table's prefix, it is "" or "/". A full URL is resolved
            against the store's own bucket and prefix.

    Raises:
        InvalidArgumentError: The object is not one of these, or the URL is outside of the store.
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
    """Return the path of a URI, or the string itself if it has no scheme."""
    if "://" not in uri:
        return uri
    parts = urlsplit(uri)
    host = "" if parts.scheme == "file" else parts.netloc
    return f"{host}{unquote(parts.path)}"


def _below(prefix: str, full: str) -> str | None:
    """Return the rest of a path after a prefix of whole segments; None if the path has another prefix."""
    begins = [part for part in prefix.split("/") if part]
    parts = [part for part in full.split("/") if part]
    return "/".join(parts[len(begins) :]) if parts[: len(begins)] == begins else None


def _not_in_store(uri: str, store: object, has: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{without_secrets(uri)} is not in store={type(store).__name__}, which has {has}; give a URL below it, or the "
        "path relative to it"
    )


def _milliseconds(timestamp: object) -> int:
    """Convert a modification time of any file system to ms since the epoch; 0 if there is none."""
    if isinstance(timestamp, datetime):
        aware = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    if isinstance(timestamp, (int, float)):
        return int(timestamp * 1000)
    if isinstance(timestamp, str):
        try:
            return _milliseconds(datetime.fromisoformat(timestamp))
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


def _sync_folder(folder: Path) -> None:
    """Make the entries of a folder survive a power failure; only POSIX can open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _LocalFile:
    """A new file on a local disk: it has a hidden name in the same folder until it is closed."""

    def __init__(self, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self.target = target
        self.staged = target.parent / f".{target.name}.{secrets.token_hex(8)}.tmp"
        self._file = self.staged.open("xb")

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def sync(self) -> None:
        """Flush the bytes to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        self.sync()
        self.staged.replace(self.target)
        _sync_folder(self.target.parent)

    def discard(self) -> None:
        self._file.close()
        self.staged.unlink(missing_ok=True)


class _LocalDisk:
    """Atomic and exclusive creation of files on a local disk, which no file system library has."""

    def __init__(self, root: str) -> None:
        self._root = Path(os.path.abspath(root))  # noqa: PTH100 - links stay as they are

    def put_if_absent(self, path: str, data: bytes) -> bool:
        new = self.create(path)
        try:
            new.write(data)
            new.sync()
            # Fails if the file exists: of any number of writers exactly one succeeds.
            os.link(new.staged, new.target)
        except FileExistsError:
            return False
        finally:
            new.discard()
        _sync_folder(new.target.parent)
        return True

    def create(self, path: str) -> _LocalFile:
        return _LocalFile(self._root / path)

    def owns(self, path: str) -> bool:
        """Return whether no folder of the path is a link, which may lead out of the table."""
        folder, here = Path(path), self._root
        if folder.is_absolute() or ".." in folder.parts:
            return False
        for part in folder.parts:
            here /= part
            if here.is_symlink():
                return False
        return True

    def delete(self, path: str) -> None:
        if not self.owns(str(Path(path).parent)):
            message = f"refused to delete {path}: a folder on its way is a link, which is not followed"
            raise PermissionError(message)
        (self._root / path).unlink()

    def remove_folder(self, path: str) -> None:
        if self.owns(path):
            with contextlib.suppress(OSError):  # not empty
                (self._root / path).rmdir()

    def list_folder(self, prefix: str) -> tuple[list[Entry], list[str]]:
        entries: list[Entry] = []
        folders: list[str] = []
        below = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        with os.scandir(self._root / prefix) as found:
            for item in found:
                # Links to folders are not followed: their targets do not belong to the table.
                if item.is_dir(follow_symlinks=False):
                    folders.append(below + item.name)
                elif not item.is_dir():
                    status = item.stat(follow_symlinks=False)
                    entries.append((below + item.name, status.st_size, int(status.st_mtime * 1000)))
        return entries, folders


class _Discarded:
    """A new file of a library, which can be discarded."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.write: Callable[[bytes], object] = file.write
        self.close: Callable[[], object] = file.close

    def discard(self) -> None:
        try:
            if hasattr(self._file, "discard"):
                self._file.discard()
        finally:
            # Otherwise fsspec would finish the file on garbage collection.
            with contextlib.suppress(AttributeError):
                self._file.closed = True


class _Buffered(io.BytesIO):
    """A new file that is stored when it is closed."""

    def __init__(self, store: Callable[[bytes], object]) -> None:
        super().__init__()
        self._store = store

    def close(self) -> None:
        if not self.closed:
            self._store(self.getvalue())
        super().close()

    def discard(self) -> None:
        super().close()


#: fsspec has one file system in memory for the whole process.
_MEMORY = threading.Lock()


#: File systems with one connection or one open file, whose calls must not overlap, and the lock of each in use.
_IN_TURN = {"FTPFileSystem", "LibArchiveFileSystem", "TarFileSystem"}
_LOCKS: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()


def _innermost(fs: Any) -> Any:
    """Return the file system of fsspec to which folders given as file systems lead."""
    while "DirFileSystem" in {cls.__name__ for cls in type(fs).__mro__}:
        fs = fs.fs
    return fs


def _lock_of(fs: Any) -> contextlib.AbstractContextManager[object]:
    """Return what a thread holds while it calls a file system."""
    inner = _innermost(fs)
    if _IN_TURN.isdisjoint(cls.__name__ for cls in type(inner).__mro__):
        return contextlib.nullcontext()
    return _LOCKS.setdefault(inner, threading.Lock())


def _takes_mode(method: Callable[..., object]) -> bool:
    """Return whether a file system is new enough for exclusive creation; older ones would ignore the argument."""
    return "mode" in inspect.signature(method).parameters


class FsspecStore(_Rooted):
    """An fsspec file system.

    Examples:
        >>> import fsspec
        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1]})
        >>> DeltaTable("cities", store=fsspec.filesystem("file")).count()
        1
    """

    _TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")

    def __init__(self, fs: Any, uri: str) -> None:
        super().__init__(self._root_of(fs, uri))
        self._fs, self._lock = fs, _lock_of(fs)
        self._disk: _LocalDisk | None = None
        #: Arguments that create a file only if it does not exist.
        self._condition: dict[str, Any] = {}
        #: The reason why the store is read-only, if it is.
        self.read_only: str | None = None
        names = {cls.__name__ for cls in type(fs).__mro__}
        modules = {cls.__module__.partition(".")[0] for cls in type(fs).__mro__}
        self._memory = "MemoryFileSystem" in names
        #: Arguments with which `ls` bypasses its cache.
        self._fresh = {"invalidate_cache" if "adlfs" in modules else "refresh": True}
        if "LocalFileSystem" in names:
            self._disk = _LocalDisk(self._root or "/")
        elif "adlfs" in modules:
            self._condition = {"overwrite": False}
        elif self._memory or (modules & {"s3fs", "gcsfs"} and _takes_mode(fs._pipe_file)):  # noqa: SLF001 - fsspec documents it
            self._condition = {"mode": "create"}
        else:
            self.read_only = (
                f"fsspec's {type(fs).__name__} cannot make a file only if there is none, in one step, so two writers "
                "could both believe that they have committed"
            )

    @staticmethod
    def _root_of(fs: Any, uri: str) -> str:
        names = {cls.__name__ for cls in type(fs).__mro__}
        if "LocalFileSystem" in names:
            return str(fs._strip_protocol(uri))  # noqa: SLF001 - makes it absolute, and expands `~`
        if "://" not in uri:
            return uri
        inner = _innermost(fs)
        full = str(inner._strip_protocol(uri))  # noqa: SLF001 - fsspec documents it
        if "://" in full and inner.protocol != "abstract":
            raise _not_in_store(uri, fs, f"the protocol {inner.protocol!r}")
        if inner is fs:
            return full
        inside = _below(str(fs.path), full)
        if inside is None:
            raise _not_in_store(uri, fs, f"the root {fs.path!r}")
        return inside

    def _writable(self) -> None:
        if self.read_only is not None:
            raise NotImplementedError(self.read_only)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `WritableStore`."""
        self._writable()
        if self._disk is not None:
            return self._disk.put_if_absent(path, data)
        try:
            with _MEMORY if self._memory else contextlib.nullcontext():
                self._fs.pipe_file(self._full(path), data, **self._condition)
        except FileExistsError:
            return False
        return True

    def create(self, path: str) -> NewFile:
        """See `WritableStore`."""
        self._writable()
        if self._disk is not None:
            return self._disk.create(path)
        full = self._full(path)
        if self._memory:
            return _Buffered(lambda data: self._fs.pipe_file(full, data))
        return _Discarded(self._fs.open(full, "wb"))

    def delete(self, path: str) -> None:
        """See `WritableStore`."""
        self._writable()
        if self._disk is not None:
            self._disk.delete(path)
        else:
            self._fs.rm_file(self._full(path))

    def owns(self, path: str) -> bool:
        """Return whether the files of a folder may be deleted: no folder of the path is a link."""
        return self._disk is None or self._disk.owns(path)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder, if the file system has folders."""
        if self._disk is not None:
            self._disk.remove_folder(path)

    def list_folder(self, prefix: str) -> tuple[Iterable[Entry], Iterable[str]]:
        """See `WritableStore`."""
        if self._disk is not None:
            return self._disk.list_folder(prefix)
        found = self._ls(prefix)
        folders = [self._relative(str(info["name"]).rstrip("/")) for info in found if info["type"] == "directory"]
        return [self._entry(info) for info in found if info["type"] == "file"], folders

    def _ls(self, prefix: str) -> list[dict[str, Any]]:
        with self._lock:
            self._forget()
            try:
                return self._fs.ls(self._full(prefix), detail=True, **self._fresh)
            except TypeError:  # a file system whose `ls` has no such argument
                return self._fs.ls(self._full(prefix), detail=True)

    def _forget(self) -> None:
        # Nothing may come from fsspec's directory cache: the newest commit must be visible. Not every `ls` respects
        # its argument, and `info` uses the cache, too.
        self._fs.invalidate_cache()

    def list_from(self, prefix: str, offset: str | None) -> Iterator[Entry]:
        """See `Store`."""
        try:
            found = self._ls(prefix)
        except FileNotFoundError:
            return iter(())
        return _after((self._entry(info) for info in found if info["type"] == "file"), offset)

    def _entry(self, info: dict[str, Any]) -> Entry:
        timestamp = next((info[key] for key in self._TIMES if info.get(key) is not None), None)
        return self._relative(str(info["name"])), int(info["size"] or 0), _milliseconds(timestamp)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Store`."""
        with self._lock:
            return bytes(self._fs.cat_file(self._full(path), start=start, end=end))

    def size(self, path: str) -> int:
        """See `Store`."""
        with self._lock:
            self._forget()
            return int(self._fs.size(self._full(path)))


class PyarrowStore(_Rooted):
    """A pyarrow file system, such as HDFS.

    Examples:
        >>> import pyarrow.fs
        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1]})
        >>> DeltaTable("cities", store=pyarrow.fs.LocalFileSystem()).count()
        1
    """

    def __init__(self, fs: Any, uri: str) -> None:
        base, above = fs, ""
        while base.type_name == "subtree":
            above = f"{base.base_path.rstrip('/')}/{above}".rstrip("/")
            base = base.base_fs
        root = _path_of(uri)
        if base.type_name == "local" and root.startswith("~"):
            root = _core.expand_address(root)
        if above:
            inside = _below(above, root)
            if inside is None and "://" in uri:
                raise _not_in_store(uri, fs, f"the root {above!r}")
            root = root if inside is None else inside
        super().__init__(root)
        self._fs = fs
        self._disk: _LocalDisk | None = None
        #: The reason why the store is read-only, if it is.
        self.read_only: str | None = None
        root = f"{above}/{self._root.lstrip('/')}" if above else self._root
        if base.type_name == "local":
            self._disk = _LocalDisk(root)
        else:
            self.read_only = (
                f"pyarrow's {type(base).__name__} cannot make a file only if there is none, so two writers could both "
                "believe that they have committed"
            )

    def _local(self) -> _LocalDisk:
        if self._disk is None:
            raise NotImplementedError(self.read_only)
        return self._disk

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `WritableStore`."""
        return self._local().put_if_absent(path, data)

    def create(self, path: str) -> NewFile:
        """See `WritableStore`."""
        return self._local().create(path)

    def delete(self, path: str) -> None:
        """See `WritableStore`."""
        self._local().delete(path)

    def owns(self, path: str) -> bool:
        """Return whether the files of a folder may be deleted: no folder of the path is a link."""
        return self._disk is None or self._disk.owns(path)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        self._local().remove_folder(path)

    def list_folder(self, prefix: str) -> tuple[Iterable[Entry], Iterable[str]]:
        """See `WritableStore`."""
        return self._local().list_folder(prefix)

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
    """An obstore store.

    Examples:
        >>> import os
        >>> import obstore.store
        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1]})
        >>> DeltaTable("cities", store=obstore.store.LocalStore(os.getcwd())).count()
        1
    """

    def __init__(self, store: Any, uri: str) -> None:
        names = {cls.__name__ for cls in type(store).__mro__}
        super().__init__(self._root_of(store, uri, names))
        self._store = store
        plain = "HTTPStore" in names
        #: The reason why the store is read-only, if it is.
        self.read_only: str | None = "a plain HTTP server takes no commits" if plain else None

    #: URL schemes of the stores.
    _SCHEMES: ClassVar[dict[str, tuple[str, ...]]] = {
        "S3Store": ("s3", "s3a", "https"),
        "GCSStore": ("gs",),
        "AzureStore": ("az", "azure", "adl", "abfs", "abfss", "https"),
        "LocalStore": ("file",),
        "HTTPStore": ("http", "https"),
    }

    @classmethod
    def _root_of(cls, store: Any, uri: str, names: set[str]) -> str:
        """Return the path within the store for a URL or path."""
        own = getattr(store, "prefix", None)
        prefix = "" if own is None else str(own).strip("/")
        if _core.is_url(uri):
            if "HTTPStore" in names:
                own = str(store.url)
                prefix = unquote(urlsplit(own).path)
            inside = _below(prefix, cls._key_of(store, uri, names))
            if inside is None:
                raise _not_in_store(uri, store, f"the prefix {without_secrets(str(own))!r}")
            return inside
        if "LocalStore" not in names or not uri.startswith(("/", "~")):
            return uri.strip("/")
        # An absolute path of the disk, or a path relative to the prefix.
        path = _core.expand_address(uri)
        inside = _below(prefix, path)
        if inside is None and uri.startswith("~"):
            raise _not_in_store(uri, store, f"the prefix {own!r}")
        return path.strip("/") if inside is None else inside

    @classmethod
    def _key_of(cls, store: Any, uri: str, names: set[str]) -> str:
        """Return the path of a URL within its bucket or container, which must be that of the store."""
        parts = urlsplit(uri)
        path = unquote(parts.path)
        for name in names & cls._SCHEMES.keys():
            if parts.scheme not in cls._SCHEMES[name]:
                raise _not_in_store(uri, store, f"URLs of {', '.join(cls._SCHEMES[name])}")
        if "HTTPStore" in names:
            host = urlsplit(str(store.url)).netloc.rpartition("@")[2]
            if parts.netloc.rpartition("@")[2] != host:
                raise _not_in_store(uri, store, f"the host {host!r}")
            return path
        config: Any = getattr(store, "config", None) or {}
        bucket = config.get("bucket") or config.get("container_name")
        if bucket is None or (parts.scheme == "https" and parts.netloc.startswith(f"{bucket}.")):
            return path
        # In HTTPS URLs the name of the bucket is in the host or at the beginning of the path.
        if parts.scheme == "https" and (inside := _below(bucket, path)) is not None:
            return inside
        if parts.netloc.partition("@")[0] != bucket:
            raise _not_in_store(uri, store, f"the bucket {bucket!r}")
        return path

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `WritableStore`."""
        import obstore
        from obstore.exceptions import (
            AlreadyExistsError,
            NotSupportedError,
            PermissionDeniedError,
            PreconditionError,
            UnauthenticatedError,
        )

        try:
            # A multipart upload has no condition, and a commit is never that large.
            obstore.put(self._store, self._full(path), data, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        except (PermissionDeniedError, UnauthenticatedError) as error:
            message = printable(f"access denied; check the credentials: {error}")
            raise PermissionError(message) from None
        except NotSupportedError:
            message = "the store makes no conditional requests"
            raise NotImplementedError(message) from None
        return True

    def create(self, path: str) -> NewFile:
        """See `WritableStore`."""
        import obstore

        return _Discarded(obstore.open_writer(self._store, self._full(path)))

    def delete(self, path: str) -> None:
        """See `WritableStore`."""
        import obstore

        obstore.delete(self._store, self._full(path))

    def list_folder(self, prefix: str) -> tuple[Iterable[Entry], Iterable[str]]:
        """See `WritableStore`."""
        import obstore

        found = obstore.list_with_delimiter(self._store, self._full(prefix))
        return [self._item(item) for item in found["objects"]], [self._relative(f) for f in found["common_prefixes"]]

    def _item(self, item: Any) -> Entry:
        return self._relative(item["path"]), int(item["size"]), _milliseconds(item["last_modified"])

    def list_from(self, prefix: str, offset: str | None) -> Iterator[Entry]:
        """See `Store`."""
        import obstore

        found = obstore.list_with_delimiter(self._store, self._full(prefix))["objects"]
        return _after((self._item(item) for item in found), offset)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """See `Store`."""
        import obstore

        return bytes(obstore.get_range(self._store, self._full(path), start=start, end=end))

    def size(self, path: str) -> int:
        """See `Store`."""
        import obstore

        return int(obstore.head(self._store, self._full(path))["size"])
