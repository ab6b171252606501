"""`DeltaStorageHandler`: a table's folder as a pyarrow file system, for libraries that read and write Parquet.

The core's stores read and write the files, so the same URLs and `storage_options` work as for tables. A new file
becomes visible as a whole when it is closed, and replaces an existing one. A folder exists if there are files in it.
"""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.fs as pafs

from deltafast import _core
from deltafast._util.locations import address, local_path, location
from deltafast._util.options import text_options
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from deltafast._handle import TableHandle

__all__ = ["DeltaStorageHandler"]


class _Inner(Protocol):
    """`DeltaTable._table`."""

    @property
    def handle(self) -> TableHandle:
        """The handle of the table."""
        ...


class DeltaStorageHandler(pafs.FileSystemHandler):
    """The handler of a `pyarrow.fs.PyFileSystem` whose root is a table.

    Args:
        table_uri: Path or URL.
        options: Storage options, as for `DeltaTable`.
        known_sizes: Bytes of files by path, which saves requests.

    Examples:
        >>> import pyarrow.fs
        >>> from deltafast import write_deltalake
        >>> from deltafast.filesystem import DeltaStorageHandler
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> files = pyarrow.fs.PyFileSystem(DeltaStorageHandler("cities"))
        >>> files.get_file_info("_delta_log/00000000000000000000.json").is_file
        True
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._uri = address(table_uri)
        self._given = None if options is None else dict(options)
        self._options = text_options(options, self._uri)
        self._sizes = dict(known_sizes or {})
        self._files = _core.Files.open(self._uri, self._options)
        root = location(self._uri)
        self._local = Path(local_path(root)) if root.startswith("file://") else None

    @classmethod
    def from_table(
        cls,
        table: _Inner,
        options: Mapping[str, str] | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> DeltaStorageHandler:
        """Return the handler of an open table; `options` are those of the table if None."""
        handle = table.handle
        return cls(handle.given_uri, handle.storage_options if options is None else options, known_sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._uri, self._given, self._sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeltaStorageHandler):
            return NotImplemented
        return (self._uri, self._options) == (other._uri, other._options)

    def __hash__(self) -> int:
        return hash(self._uri)

    def equals(self, other: object) -> bool:
        """Return whether the other one is a handler of the same table with the same options."""
        return self == other

    def get_type_name(self) -> str:
        """Return pyarrow's name of this kind of file system."""
        return "object-store"

    def normalize_path(self, path: str) -> str:
        """Return the path without redundant slashes."""
        return _inside(path) + ("/" if path.endswith("/") and _inside(path) else "")

    # --- listing ---------------------------------------------------------------------------------

    def get_file_info(self, paths: str | list[str]) -> list[pafs.FileInfo]:
        """Return type, size and modification time of these paths."""
        return [self._info(_inside(path)) for path in ([paths] if isinstance(paths, str) else paths)]

    def _info(self, path: str) -> pafs.FileInfo:
        if not path:
            return pafs.FileInfo(path, pafs.FileType.Directory)
        try:
            return self._file(path, *self._files.head(path))
        except OSError as error:
            # On a local disk the path may be a folder; in an object store folders do not exist as objects.
            if any(self._files.list(path)):
                return pafs.FileInfo(path, pafs.FileType.Directory)
            if not isinstance(error, FileNotFoundError):
                raise
        return pafs.FileInfo(path, pafs.FileType.NotFound)

    def _file(self, path: str, size: int, modified_ms: int) -> pafs.FileInfo:
        time = modified_ms * 1_000_000
        if self._local is not None:
            # The core has milliseconds, as stores and the log; local disks have nanoseconds.
            with suppress(OSError):
                time = (self._local / path).stat().st_mtime_ns
        return pafs.FileInfo(path, pafs.FileType.File, size=size, mtime_ns=time)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Return the contents of a folder, with `recursive` at any depth."""
        base = _inside(selector.base_dir)
        out: list[pafs.FileInfo] = []
        waiting = [base]
        while waiting:
            objects, folders = self._files.list(waiting.pop())
            out += [pafs.FileInfo(folder, pafs.FileType.Directory) for folder in folders]
            out += [self._file(*found) for found in objects]
            waiting += folders if selector.recursive else []
        if not out and base and not selector.allow_not_found:
            raise FileNotFoundError(base)
        return out

    # --- changes ---------------------------------------------------------------------------------

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Do nothing: folders are created together with files."""

    def delete_dir(self, path: str) -> None:
        """Delete all files below a folder."""
        found = self.get_file_info_selector(pafs.FileSelector(_inside(path), allow_not_found=True, recursive=True))
        self._files.delete([info.path for info in found if info.type == pafs.FileType.File])

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Delete all files below a folder."""
        if not _inside(path):
            message = "delete_dir_contents does not delete the whole table: name a folder"
            raise ValueError(message)
        found = self._info(_inside(path))
        if found.type == pafs.FileType.NotFound and not missing_dir_ok:
            raise FileNotFoundError(path)
        self.delete_dir(path)

    def delete_root_dir_contents(self) -> None:
        """Delete all files below the root."""
        self.delete_dir("")

    def delete_file(self, path: str) -> None:
        """Delete a file."""
        self._files.delete([_inside(path)])

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file, replacing an existing one."""
        source = _Reader(self._files, _inside(src), None)
        target = self._files.begin(_inside(dest))
        while piece := source.read(8 << 20):
            target.write(piece)
        target.finish()

    def move(self, src: str, dest: str) -> None:
        """Copy a file and delete the original, since object stores cannot rename."""
        self.copy_file(src, dest)
        self.delete_file(src)

    # --- bytes -----------------------------------------------------------------------------------

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Open a file for random access."""
        reader = _Reader(self._files, _inside(path), self._sizes.get(path))
        return pa.PythonFile(cast("Any", reader), mode="r")

    def open_input_stream(self, path: str) -> pa.PythonFile:
        """Open a file for sequential reading."""
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.PythonFile:  # noqa: ARG002
        """Create a file."""
        writer = _Writer(self._files.begin(_inside(path)))
        return pa.PythonFile(cast("Any", writer), mode="w")

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.PythonFile:
        """Raise `NotImplementedError`: object stores cannot append to a file."""
        message = f"appending to a file is not supported: {path}"
        raise NotImplementedError(message)


def _inside(path: str) -> str:
    parts = [part for part in path.split("/") if part]
    for part in parts:
        if part in (".", ".."):
            message = f"a path below the table cannot have the part {part!r}: {path}"
            raise InvalidArgumentError(message, path=path)
    return "/".join(parts)


class _Reader(io.RawIOBase):
    def __init__(self, files: _core.Files, path: str, size: int | None) -> None:
        super().__init__()
        self._files = files
        self._path = path
        self._size = files.head(path)[0] if size is None else size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        found = self._files.read(self._path, self._at, self._at + wanted)
        self._at += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class _Writer(io.RawIOBase):
    def __init__(self, upload: _core.FileUpload) -> None:
        super().__init__()
        self._upload: _core.FileUpload | None = upload
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        if self._upload is None:
            message = "the file is closed"
            raise ValueError(message)
        piece = bytes(data)
        self._upload.write(piece)
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.finish()
        super().close()

    def __del__(self) -> None:
        # A file that is garbage-collected before it is closed must not be finished.
        self._upload = None
