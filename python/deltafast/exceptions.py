"""The exceptions of deltafast.

Each class derives from `DeltaError` and from the builtin with the same meaning, so both
`except FileNotFoundError` and `except DeltaError` work. `code` and `parameters` say what is wrong, the other attributes
where (file, version, column): programs branch on these, since messages are for people and change. Pickling preserves
them, also through process pools and Spark executors. The names of `deltalake.exceptions` are included.
"""

from __future__ import annotations

import errno
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

from deltafast._call_options import MARKS, as_argument, spelled
from deltafast._error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "ChangeDataNotRecordedError",
    "CommitFailedError",
    "CommitUnknownError",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConcurrentWriteError",
    "ConstraintViolatedError",
    "CorruptDataError",
    "CorruptLogError",
    "DataFileNotFoundError",
    "DeltaError",
    "DeltaProtocolError",
    "DeltaWarning",
    "ErrorCode",
    "InternalError",
    "InvalidArgumentError",
    "MetadataChangedError",
    "MissingLibraryError",
    "ProtocolChangedError",
    "ResourceError",
    "SchemaMismatchError",
    "StorageError",
    "TableNotFoundError",
    "VersionNotFoundError",
]

#: Unicode categories of characters that a terminal obeys or hides: controls, formats, surrogates, line separators.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def printable(text: str, *, keep: str = "") -> str:
    r"""Return text for people, in which characters that a terminal obeys or hides are escapes: `\x1b`, `\u202e`.

    Names, values, paths and answers of servers come from others. Raw, their escape sequences would change a terminal's
    title, clipboard or lines above, and marks of direction would show another order of characters.

    Args:
        text: Any text.
        keep: Such characters to leave, for text with lines or tabs of our own.
    """
    if text.isprintable():
        return text
    from unicodedata import category  # rarely needed

    return "".join(
        character.encode("unicode_escape").decode()
        if category(character) in _HIDDEN and character not in keep
        else character
        for character in text
    )


#: Optional attributes of an error, in addition to its message.
DETAILS = ("file", "version", "line", "column", "feature", "path", "constraint", "resource", "code", "parameters")


class DeltaError(Exception):
    """Base class of the errors of deltafast.

    Args:
        message: One line: what is wrong, where, and what to do. Control characters become escapes; line ends stay,
            since a few messages end with a preview of rows.
        file: The file that was read, relative to the table if it is below it.
        version: The table version that the error is about.
        line: Line in `file`, counted from 1.
        column: The table column that the error is about.
        feature: The table feature that the error is about.
        path: The table or path that was requested.
        constraint: The constraint that a row violates.
        resource: The exhausted resource: `memory`, `threads` or `file descriptors`.
        code: The family of the message; that of the class if None. It is stable: programs may branch on it.
        parameters: The values in the message by name, as text; `ErrorCode` has the names.

    Examples:
        >>> from deltafast import DeltaTable
        >>> from deltafast.exceptions import DeltaError, ErrorCode
        >>> try:
        ...     DeltaTable("/no/table/here")
        ... except DeltaError as error:
        ...     assert error.code is ErrorCode.TABLE_NOT_FOUND
        ...     print(error.code, error.parameters)
        TABLE_NOT_FOUND {'path': 'file:///no/table/here/'}
    """

    #: The code of errors of the class that have no code of their own.
    _code: ClassVar = ErrorCode.INTERNAL

    file: str | None
    version: int | None
    line: int | None
    column: str | None
    feature: str | None
    path: str | None
    constraint: str | None
    resource: str | None
    code: ErrorCode
    parameters: dict[str, str]

    def __init__(
        self,
        message: str = "",
        *,
        file: str | None = None,
        version: int | None = None,
        line: int | None = None,
        column: str | None = None,
        feature: str | None = None,
        path: str | None = None,
        constraint: str | None = None,
        resource: str | None = None,
        code: ErrorCode | str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(printable(spelled(message, as_argument), keep="\n"))
        if MARKS[0] in message:
            self._marked = message
        self.file = file
        self.version = version
        self.line = line
        self.column = column
        self.feature = feature
        self.path = path
        self.constraint = constraint
        self.resource = resource
        self.code = self._code if code is None else ErrorCode(code)
        self.parameters = {name: str(value) for name, value in (parameters or {}).items()}

    @property
    def message(self) -> str:
        """The message of the error."""
        return str(self)

    def message_with(self, spelling: Callable[[str, str | None], str]) -> str:
        """Return the message with its options as a surface spells them, see `deltafast._call_options`."""
        marked: str | None = getattr(self, "_marked", None)
        return str(self) if marked is None else printable(spelled(marked, spelling), keep="\n")

    def respell(self, spelling: Callable[[str, str | None], str]) -> None:
        """Spell the message's options as a surface does, for good."""
        self.args = (self.message_with(spelling), *self.args[1:])
        self.__dict__.pop("_marked", None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from message and attributes; the rest of `__dict__` (notes) is the state."""
        place = {name: getattr(self, name) for name in DETAILS}
        return _rebuild, (type(self), str(self), place), dict(self.__dict__)


def _rebuild(cls: type[DeltaError], message: str, place: dict[str, Any]) -> DeltaError:
    return cls(message, **place)


class _MissingError(DeltaError, FileNotFoundError):
    """Something is missing in the store; `errno` is set as for the builtin."""

    def __init__(self, message: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        # Only the number: with strerror or filename set, OSError would print a message of its own.
        self.errno = errno.ENOENT


class TableNotFoundError(_MissingError):
    """There is no Delta table at the location."""

    _code = ErrorCode.TABLE_NOT_FOUND


class DataFileNotFoundError(_MissingError):
    """A data file or deletion vector that the log lists is missing in the store."""

    _code = ErrorCode.DATA_FILE_NOT_FOUND


class VersionNotFoundError(DeltaError, ValueError):
    """The table has no such version, or the commits of the version were deleted."""

    _code = ErrorCode.VERSION_NOT_FOUND


class CorruptLogError(DeltaError, ValueError):
    """The transaction log violates the protocol: gaps, invalid JSON, missing actions or checkpoint parts."""

    _code = ErrorCode.CORRUPT_LOG


class CorruptDataError(DeltaError, ValueError):
    """A Parquet file or a deletion vector is damaged or contradicts the log."""

    _code = ErrorCode.CORRUPT_DATA


class DeltaProtocolError(DeltaError, NotImplementedError):
    """The table needs a protocol version or table feature that this release does not support."""

    _code = ErrorCode.UNSUPPORTED


class InvalidArgumentError(DeltaError, ValueError):
    """An argument, option or predicate is invalid."""

    _code = ErrorCode.INVALID_ARGUMENT


class SchemaMismatchError(DeltaError, ValueError):
    """The schema of the data does not match the schema of the table."""

    _code = ErrorCode.SCHEMA_MISMATCH


class ConstraintViolatedError(DeltaError, ValueError):
    """A row violates a constraint of the table: NOT NULL, CHECK, or a generated column's expression."""

    _code = ErrorCode.CONSTRAINT_VIOLATED


class StorageError(DeltaError, OSError):
    """A request to the store failed: network, permission, credentials, disk."""

    _code = ErrorCode.STORAGE_FAILED


_EXHAUSTED = {"memory": errno.ENOMEM, "threads": errno.EAGAIN, "file descriptors": errno.EMFILE}


class ResourceError(DeltaError, OSError):
    """The process ran out of memory, threads or file descriptors.

    The message names the resource and the setting that raises its limit; `resource` and `errno` identify it.
    """

    _code = ErrorCode.MEMORY_EXHAUSTED

    def __init__(self, message: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.errno = _EXHAUSTED.get(place.get("resource", ""))


class CommitFailedError(DeltaError):
    """A concurrent commit conflicts with this one. Nothing was committed; the operation can be run again.

    The subclasses give the reason; `version` is that of the other commit.
    """

    _code = ErrorCode.COMMIT_FAILED


class ConcurrentAppendError(CommitFailedError):
    """The other commit added files that this transaction should have read."""

    _code = ErrorCode.CONCURRENT_APPEND


class ConcurrentDeleteReadError(CommitFailedError):
    """The other commit removed files that this transaction read."""

    _code = ErrorCode.CONCURRENT_DELETE_READ


class ConcurrentDeleteDeleteError(CommitFailedError):
    """The other commit removed files that this transaction removes, too."""

    _code = ErrorCode.CONCURRENT_DELETE_DELETE


class ConcurrentTransactionError(CommitFailedError):
    """The other commit wrote an application's transaction, or a metadata domain, on which this one depends."""

    _code = ErrorCode.CONCURRENT_TRANSACTION


class MetadataChangedError(CommitFailedError):
    """The other commit changed the table's metadata: its schema or properties."""

    _code = ErrorCode.METADATA_CHANGED


class ProtocolChangedError(CommitFailedError):
    """The other commit changed the table's protocol."""

    _code = ErrorCode.PROTOCOL_CHANGED


class ConcurrentWriteError(CommitFailedError):
    """Other writers created the next version first, more often than `max_commit_retries` allows."""

    _code = ErrorCode.CONCURRENT_WRITE


class CommitUnknownError(DeltaError, OSError):
    """The outcome of the commit is unknown: check the table before running the operation again."""

    _code = ErrorCode.COMMIT_UNKNOWN


class ChangeDataNotRecordedError(DeltaError, ValueError):
    """The change data feed was disabled in a requested version."""

    _code = ErrorCode.CHANGE_DATA_NOT_RECORDED


class MissingLibraryError(DeltaError, ModuleNotFoundError):
    """A call needs a library that is not installed; the message has the command that installs it."""

    _code = ErrorCode.MISSING_LIBRARY


class InternalError(DeltaError, RuntimeError):
    """A bug in deltafast; please report it with the message."""


class DeltaWarning(UserWarning):
    """A file of the log is invalid, but the table could be read without it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


def warn_of_commit(message: str) -> None:
    """Emit a warning about a version that is committed.

    Where warnings are errors it goes to the logger `deltafast` instead: an exception would look like a failed write,
    and a program that tries again would write its rows twice.
    """
    try:
        warn(message)
    except DeltaWarning:
        import logging

        logging.getLogger(__package__).warning("%s", printable(message))


def warn(message: str, category: type[Warning] = DeltaWarning) -> None:
    """Emit a warning at the first stack frame outside of this package."""
    import inspect  # takes as long as the rest of this package

    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
