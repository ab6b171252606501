"""The exceptions of deltafast.

Each derives from `DeltaError` and from the builtin that fits, so `except FileNotFoundError` works as
well as `except DeltaError`. They carry the place of the trouble as attributes and survive pickling,
so they cross process pools and Spark executors whole. The names of `deltalake.exceptions` are here.
"""

from __future__ import annotations

import errno
import inspect
import warnings
from typing import Any

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
    "InternalError",
    "InvalidArgumentError",
    "MetadataChangedError",
    "ProtocolChangedError",
    "ResourceError",
    "SchemaMismatchError",
    "StorageError",
    "TableNotFoundError",
    "VersionNotFoundError",
]

#: What an error may say beside its message.
DETAILS = ("file", "version", "line", "column", "feature", "path", "constraint", "resource")


class DeltaError(Exception):
    """Base of every error that deltafast raises on its own account.

    Args:
        message: What is wrong, where, and what to do, in one line.
        file: The file that was being read, relative to the table where it lies inside.
        version: The table version in question.
        line: Line in `file`, counted from 1.
        column: The table column in question.
        feature: The table feature in question.
        path: The table or path that was asked for.
        constraint: The constraint that a row breaks.
        resource: What the process ran out of: `memory`, `threads` or `file descriptors`.
    """

    file: str | None
    version: int | None
    line: int | None
    column: str | None
    feature: str | None
    path: str | None
    constraint: str | None
    resource: str | None

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
    ) -> None:
        super().__init__(message)
        self.file = file
        self.version = version
        self.line = line
        self.column = column
        self.feature = feature
        self.path = path
        self.constraint = constraint
        self.resource = resource

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from message and place; the rest of `__dict__` (notes) follows as state."""
        place = {name: getattr(self, name) for name in DETAILS}
        return _rebuild, (type(self), str(self), place), dict(self.__dict__)


def _rebuild(cls: type[DeltaError], message: str, place: dict[str, Any]) -> DeltaError:
    return cls(message, **place)


class _MissingError(DeltaError, FileNotFoundError):
    """Something that should be in the store is not: `errno` says so, as for the builtin."""

    def __init__(self, message: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        # Only the number: with strerror or filename set, OSError would print its own text.
        self.errno = errno.ENOENT


class TableNotFoundError(_MissingError):
    """There is no Delta table at the location."""


class DataFileNotFoundError(_MissingError):
    """The log names a data or deletion-vector file that the store does not have."""


class VersionNotFoundError(DeltaError, ValueError):
    """The table has no such version, or its commits are gone."""


class CorruptLogError(DeltaError, ValueError):
    """The transaction log breaks the protocol: gaps, bad JSON, missing actions or checkpoint parts."""


class CorruptDataError(DeltaError, ValueError):
    """A Parquet file or a deletion vector is damaged or contradicts the log."""


class DeltaProtocolError(DeltaError, NotImplementedError):
    """The table needs a protocol version or table feature that this release does not have."""


class InvalidArgumentError(DeltaError, ValueError):
    """An argument, option or predicate is wrong."""


class SchemaMismatchError(DeltaError, ValueError):
    """Data and table schema do not fit together."""


class ConstraintViolatedError(DeltaError, ValueError):
    """A row breaks a constraint of the table: NOT NULL, CHECK, or a generated column's expression."""


class StorageError(DeltaError, OSError):
    """The store failed: network, permission, credentials, disk."""


_EXHAUSTED = {"memory": errno.ENOMEM, "threads": errno.EAGAIN, "file descriptors": errno.EMFILE}


class ResourceError(DeltaError, OSError):
    """The process ran out of memory, threads or file descriptors.

    The message names what ran out and the setting that gives more of it; `resource` and `errno` say what
    it was.
    """

    def __init__(self, message: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.errno = _EXHAUSTED.get(place.get("resource", ""))


class CommitFailedError(DeltaError):
    """Another writer's commit came first and this one cannot follow it. Nothing was committed; run it again.

    The subclasses say why; `version` is that of the other commit.
    """


class ConcurrentAppendError(CommitFailedError):
    """The other commit added files that this transaction should have read."""


class ConcurrentDeleteReadError(CommitFailedError):
    """The other commit removed files that this transaction read."""


class ConcurrentDeleteDeleteError(CommitFailedError):
    """The other commit removed files that this transaction removes, too."""


class ConcurrentTransactionError(CommitFailedError):
    """The other commit wrote an application's transaction, or a metadata domain, on which this one depends."""


class MetadataChangedError(CommitFailedError):
    """The other commit changed the table's metadata: its schema or properties."""


class ProtocolChangedError(CommitFailedError):
    """The other commit changed the table's protocol."""


class ConcurrentWriteError(CommitFailedError):
    """Other writers were first as often as `max_commit_retries` allows."""


class CommitUnknownError(DeltaError, OSError):
    """Whether the commit was made cannot be found out: look at the table before running the operation again."""


class ChangeDataNotRecordedError(DeltaError, ValueError):
    """The change data feed was off in a version that was asked for."""


class InternalError(DeltaError, RuntimeError):
    """A bug in deltafast; please report it with the message."""


class DeltaWarning(UserWarning):
    """A file of the log is wrong, but the table could be read without it."""


def warn(message: str, category: type[Warning] = DeltaWarning) -> None:
    """Warn in the name of the first caller outside of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
