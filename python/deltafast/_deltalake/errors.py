"""Errors with the messages and classes of `deltalake`, where programs depend on them."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from deltafast.exceptions import DETAILS, CommitFailedError, DeltaError, ErrorCode, TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["in_their_words", "raises_their_errors"]

_T = TypeVar("_T")

#: Arrow's names of Spark's types.
_ARROW_NAMES: Final = {
    "TINYINT": "Int8",
    "SMALLINT": "Int16",
    "INT": "Int32",
    "BIGINT": "Int64",
    "FLOAT": "Float32",
    "DOUBLE": "Float64",
    "BOOLEAN": "Boolean",
    "DATE": "Date32",
}

#: Arrow's names of Delta's types of integers.
_DELTA_INTEGERS: Final = {"byte": "Int8", "short": "Int16", "integer": "Int32", "long": "Int64"}


class _Words(NamedTuple):
    """The message and class of an error in `deltalake`."""

    #: The message; {message} is that of deltafast, the others are the code's parameters.
    message: str | Callable[[DeltaError], str | None]
    #: The class, if it is another one than that of deltafast.
    kind: type[DeltaError] | None = None


def _protocol_upgrade(error: DeltaError) -> str:
    versions = error.parameters
    what = "reader and writer feature, but reader is not v3, and writer not v7"
    increase = "increase versions"
    if versions["reader_version"] == versions["table_reader_version"]:
        what, increase = "writer feature, but min_writer is not v7", "increase version"
    return (
        f"Generic DeltaTable error: Table feature enables {what}. Set allow_protocol_versions_increase or {increase} "
        f"explicitly through set_tbl_properties: {error}"
    )


def _invalid_cast(error: DeltaError) -> str | None:
    """Return the message of Arrow's Rust library about a string that cannot be cast to one of Spark's types."""
    values = error.parameters
    if values["source_type"] != "STRING":
        return None
    target = values["target_type"]
    what = "value" if target == "BOOLEAN" else "string"
    cast = f"Cast error: Cannot cast {what} '{values['value']}' to value of {_ARROW_NAMES.get(target, target)} type"
    # A cast of a constant is evaluated before any rows.
    if values["expression"] != f"CAST('{values['value']}' AS {target})":
        return f"{cast}: {error}"
    return f"Generic DeltaTable error: Optimizer rule 'simplify_expressions' failed\ncaused by\nArrow error: {cast}"


def _integer_out_of_range(error: DeltaError) -> str:
    values = error.parameters
    if not values["found"].startswith("UInt"):
        return f"Cast error: {values['reason']}: {error}"
    to = _DELTA_INTEGERS.get(values["expected"], values["expected"])
    return (
        "Cast error: Failed to convert into Arrow schema: Cast error: Failed to cast "
        f"{error.column} from {to} to {values['found']}: {values['reason']}"
    )


def _not_representable(error: DeltaError) -> str | None:
    """Return the message about a value that cannot be cast."""
    return _decimal_cast(error) or f"Cast error: {error.parameters['reason']}: {error}"


def _decimal_cast(error: DeltaError) -> str | None:
    """Return the message about a decimal of another precision or scale."""
    expected, found = error.parameters["expected"], error.parameters["found"]
    if not (expected.startswith("decimal(") and found.startswith("Decimal")):
        return None
    precision, scale = expected.removeprefix("decimal(").removesuffix(")").split(",")
    return f"Cannot cast field {error.column} from {found} to Decimal128({precision}, {scale}): {error}"


def _deleted_reads(error: DeltaError) -> str | None:
    if error.parameters.get("removes_read_files", "true") == "false":
        return None
    return f"Commit failed: a concurrent transaction deleted data this operation read: {error}"


#: The words of `deltalake` for the codes of deltafast.
_WORDS: Final[dict[ErrorCode, _Words]] = {
    ErrorCode.PARTITIONING_MISMATCH: _Words("Generic error: {message}"),
    ErrorCode.NEGATIVE_RETENTION: _Words("The retention periods should be positive."),
    ErrorCode.RETENTION_TOO_SHORT: _Words(
        "Generic error: Invalid retention period, minimum retention for vacuum is configured to be greater than "
        "{table_hours} hours, got {retention_hours} hours"
    ),
    ErrorCode.ADD_AND_REMOVE_OF_ONE_FILE: _Words("an add and a remove have the same file path: {message}"),
    ErrorCode.APPEND_ONLY_TABLE: _Words(
        "The transaction includes Remove action with data change but Delta table is append-only: {message}",
        CommitFailedError,
    ),
    ErrorCode.INVALID_PARTITION_STRATEGY: _Words("Partition strategy must be `hive` or `directory`: {message}"),
    ErrorCode.PROTOCOL_UPGRADE_NEEDED: _Words(_protocol_upgrade),
    ErrorCode.CONCURRENT_APPEND: _Words(_deleted_reads),
    ErrorCode.CONCURRENT_DELETE_READ: _Words(_deleted_reads),
    ErrorCode.CAST_INVALID_INPUT: _Words(_invalid_cast),
    ErrorCode.COLUMN_NOT_FOUND: _Words("Schema error: No field named {column}. {message}"),
    ErrorCode.PARTITION_COLUMN_UNNAMED: _Words(
        "Generic error: The schema of partition columns must be provided to convert a Parquet table to a Delta table. "
        "{message}"
    ),
    ErrorCode.TYPE_MISMATCH: _Words(_decimal_cast),
    ErrorCode.VALUE_NOT_REPRESENTABLE: _Words(_not_representable),
    ErrorCode.INTEGER_OUT_OF_RANGE: _Words(_integer_out_of_range),
    ErrorCode.TABLE_EXISTS: _Words("A table already exists at: {path}: {message}"),
    ErrorCode.UNKNOWN_STORE_SCHEME: _Words("{message}", TableNotFoundError),
}


@contextmanager
def in_their_words() -> Generator[None]:
    """Raise errors with the messages and classes of `deltalake` where programs depend on them."""
    try:
        yield
    except DeltaError as error:
        words = _WORDS.get(error.code)
        is_translated = isinstance(error.__cause__, DeltaError) and error.__cause__.code is error.code
        if words is None or is_translated:
            raise
        message = (
            words.message(error)
            if callable(words.message)
            else words.message.format_map({**error.parameters, "message": str(error)})
        )
        if message is None:
            raise
        raise (words.kind or type(error))(message, **{name: getattr(error, name) for name in DETAILS}) from error


def raises_their_errors(cls: type[_T]) -> type[_T]:
    """Give the public methods of a class, inherited ones included, the errors of `deltalake`."""
    for name in dir(cls):
        method: Any = inspect.getattr_static(cls, name)
        if name == "__init__" or not name.startswith("_"):
            if isinstance(method, FunctionType):
                setattr(cls, name, _translated(method))
            elif isinstance(method, classmethod):
                setattr(cls, name, classmethod(_translated(cast("Any", method).__func__)))
    return cls


def _translated(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        with in_their_words():
            return method(*arguments, **options)

    return call
