"""The exceptions of the Spark API: deltafast's exceptions under the names that programs for delta-spark catch.

Each class here is also one of `deltafast.exceptions`, with its error context, and one that PySpark's users expect:
conflicts are a `DeltaConcurrentModificationException`, an invalid statement or table is PySpark's `AnalysisException`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    PySparkException,
    UnsupportedOperationException,
)

from deltafast import exceptions as ours
from deltafast._expr.errors import UnsupportedExpressionError
from deltafast.spark._conditions import CONFLICT_CONDITIONS, condition_of
from deltafast.spark._option_names import as_option

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from deltafast.spark._conditions import ErrorCondition, Operation

__all__ = [
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "as_spark_error",
    "conflict_from_java",
    "during",
    "set_failure",
    "translated",
]


class _SparkError(ours.DeltaError, PySparkException):
    """An error of deltafast that is also one of PySpark; message and context are deltafast's."""

    _sql_state: str | None = None

    @property
    def desc(self) -> str:
        """The message, as PySpark's captured exceptions call it."""
        return str(self._message)

    def __str__(self) -> str:
        return self.getMessage()

    def getMessage(self) -> str:  # noqa: N802 - PySpark's name
        """The message, after delta-spark's error condition and sentence where there is one."""
        condition = self.getCondition()
        return self.desc if condition is None else f"[{condition}] {self.desc}"

    def getSqlState(self) -> str | None:  # noqa: N802 - PySpark's name
        """The SQLSTATE of the error condition, if there is one."""
        return self._sql_state

    def set_condition(self, condition: ErrorCondition | None) -> None:
        """Set the error condition and the SQLSTATE."""
        if condition is not None:
            self._errorClass, self._sql_state = condition.name, condition.sql_state


class DeltaConcurrentModificationException(_SparkError, ours.CommitFailedError):  # noqa: N818 - delta-spark's names
    """Another writer committed first and this commit conflicts with it; the base class of the conflicts."""


class ConcurrentWriteException(DeltaConcurrentModificationException, ours.ConcurrentWriteError):
    """Other writers committed first on every attempt."""


class MetadataChangedException(DeltaConcurrentModificationException, ours.MetadataChangedError):
    """The other commit changed the table's metadata."""


class ProtocolChangedException(DeltaConcurrentModificationException, ours.ProtocolChangedError):
    """The other commit changed the table's protocol."""


class ConcurrentAppendException(DeltaConcurrentModificationException, ours.ConcurrentAppendError):
    """The other commit added files that this transaction should have read."""


class ConcurrentDeleteReadException(DeltaConcurrentModificationException, ours.ConcurrentDeleteReadError):
    """The other commit removed files that this transaction read."""


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException, ours.ConcurrentDeleteDeleteError):
    """The other commit removed files that this transaction removes as well."""


class ConcurrentTransactionException(DeltaConcurrentModificationException, ours.ConcurrentTransactionError):
    """The other commit wrote a transaction of the same application."""


class _TableNotFound(_SparkError, AnalysisException, ours.TableNotFoundError):  # noqa: N818 - shown as it is caught
    """There is no Delta table at the location."""


class _VersionNotFound(_SparkError, AnalysisException, ours.VersionNotFoundError):  # noqa: N818 - the same
    """The table has no such version."""


class _SchemaMismatch(_SparkError, AnalysisException, ours.SchemaMismatchError):  # noqa: N818 - the same
    """The schemas of the data and of the table do not match."""


class _ConstraintViolated(_SparkError, AnalysisException, ours.ConstraintViolatedError):  # noqa: N818 - the same
    """A row violates a constraint."""


class _ChangeDataNotRecorded(_SparkError, AnalysisException, ours.ChangeDataNotRecordedError):  # noqa: N818 - the same
    """The change data feed was not enabled at that version."""


class _DataFileNotFound(_SparkError, IllegalArgumentException, ours.DataFileNotFoundError):  # noqa: N818 - the same
    """A data file of the table does not exist."""


class _Unsupported(_SparkError, AnalysisException, UnsupportedExpressionError):  # noqa: N818 - the same
    """The expression or statement is not supported."""


class _Protocol(_SparkError, ours.DeltaProtocolError):  # noqa: N818 - the same
    """This release does not support a table feature or a protocol version of the table."""


class UnsupportedTypeException(_SparkError, UnsupportedOperationException, ours.InvalidArgumentError):  # noqa: N818 - the same
    """The type of an identity column is not supported."""


class UnsupportedChangeException(_SparkError, UnsupportedOperationException, ours.InvalidArgumentError):  # noqa: N818 - the same
    """The table accepts new rows only."""


class UnsupportedSchemaException(_SparkError, UnsupportedOperationException, ours.InvalidArgumentError):  # noqa: N818 - the same
    """The schema given to a reader is not the table's."""


class _Invalid(_SparkError, AnalysisException, IllegalArgumentException, ours.InvalidArgumentError):  # noqa: N818 - the same
    """An argument, option or predicate is invalid."""


#: By the exact class; other exceptions are raised unchanged.
_TRANSLATED: Final[dict[type[object], type[_SparkError]]] = {
    ours.CommitFailedError: DeltaConcurrentModificationException,
    ours.ConcurrentWriteError: ConcurrentWriteException,
    ours.MetadataChangedError: MetadataChangedException,
    ours.ProtocolChangedError: ProtocolChangedException,
    ours.ConcurrentAppendError: ConcurrentAppendException,
    ours.ConcurrentDeleteReadError: ConcurrentDeleteReadException,
    ours.ConcurrentDeleteDeleteError: ConcurrentDeleteDeleteException,
    ours.ConcurrentTransactionError: ConcurrentTransactionException,
    ours.TableNotFoundError: _TableNotFound,
    ours.VersionNotFoundError: _VersionNotFound,
    ours.SchemaMismatchError: _SchemaMismatch,
    ours.ConstraintViolatedError: _ConstraintViolated,
    ours.ChangeDataNotRecordedError: _ChangeDataNotRecorded,
    ours.DataFileNotFoundError: _DataFileNotFound,
    ours.DeltaProtocolError: _Protocol,
    ours.InvalidArgumentError: _Invalid,
    UnsupportedExpressionError: _Unsupported,
}

#: The conflicts by delta-spark's names, and the package of its Java classes.
CONFLICTS: Final = tuple(
    kind.__name__ for kind in _TRANSLATED.values() if issubclass(kind, DeltaConcurrentModificationException)
)
JAVA: Final = "io.delta.exceptions"
#: Subclasses of the conflicts by their names, which are also exceptions of Spark Connect; empty until it is used.
OVER_CONNECT: Final[dict[str, type[DeltaConcurrentModificationException]]] = {}


_P = ParamSpec("_P")
_R = TypeVar("_R")


def as_spark_error(error: BaseException, operation: Operation | None = None) -> BaseException:
    """Return an exception of deltafast as the corresponding class of this module, others unchanged.

    Args:
        error: The exception.
        operation: What was done, see `condition_of`; the innermost `during` takes precedence.
    """
    known = _TRANSLATED.get(type(error))
    if known is None or not isinstance(error, ours.DeltaError):
        return error
    message = error.message_with(as_option)
    condition = CONFLICT_CONDITIONS.get(known.__name__)
    if condition is None:
        condition = condition_of(error.code, error.parameters, getattr(error, "_operation", operation))
    if error.code is ours.ErrorCode.APPEND_ONLY_TABLE:
        known = UnsupportedChangeException
    sentence = "" if condition is None or not condition.sentence else f"{condition.sentence}. "
    known = OVER_CONNECT.get(known.__name__, known)
    raised = known(sentence + message, **{name: getattr(error, name) for name in ours.DETAILS})
    raised.set_condition(condition)
    raised.__cause__ = error
    return raised


def conflict_from_java(text: str) -> BaseException | None:
    """Return the conflict that Java raises as a class of `io.delta.exceptions`.

    Args:
        text: The exception as text, its class and message.

    Returns:
        None for other exceptions.
    """
    kind, _, message = text.partition(": ")
    package, _, name = kind.rpartition(".")
    if package != JAVA or name not in CONFLICTS:
        return None
    condition = CONFLICT_CONDITIONS.get(name)
    raised: _SparkError = globals()[name](
        message if condition is None else message.removeprefix(f"[{condition.name}] ")
    )
    raised.set_condition(condition)
    return raised


def set_failure(error: BaseException, failure: Any) -> tuple[BaseException, str] | None:
    """Give an exception to Java, which raises it in the thread of the query.

    Args:
        error: The exception.
        failure: Java's `FormatFailure`.

    Returns:
        The exception as a class of this module, and the message with which Java raises it; None for a conflict, which
        Java raises by its class, and for an exception of Java.
    """
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if origin is not None:
        failure.setCause(origin)
        return None
    raised = as_spark_error(error)
    if type(raised).__name__ in CONFLICTS:
        failure.setConflict(type(raised).__name__, str(raised))
        return None
    message = f"{type(error).__name__}: {raised}"
    if isinstance(error, ours.DeltaError) and not isinstance(error, ours.CommitFailedError | ours.StorageError):
        failure.setInvalid(message)
    else:
        failure.setFailed(message)
    return raised, message


@contextmanager
def during(operation: Operation) -> Generator[None]:
    """Note in exceptions of deltafast what was done, for `as_spark_error`."""
    try:
        yield
    except ours.DeltaError as error:
        if not hasattr(error, "_operation"):
            error._operation = operation  # pyright: ignore[reportAttributeAccessIssue]
        raise


class translated:  # noqa: N801 - used as a statement and as a decorator
    """Raise exceptions of deltafast under the names of this module: a context manager and a decorator.

    Args:
        operation: What is done, see `condition_of`.

    Raises:
        DeltaError: The exception that was raised, as the corresponding class of this module.
    """

    def __init__(self, operation: Operation | None = None) -> None:
        self._operation = operation

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            raised = as_spark_error(error, self._operation)
            if raised is not error:
                raise raised from error

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Decorate a function."""

        @wraps(function)
        def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return function(*args, **kwargs)

        return wrapped
