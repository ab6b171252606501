"""Errors that rows raise in Spark's tasks: a code, its parameters and a message, which reach the driver as text.

Spark's `raise_error` takes a string, and the driver receives it within the message of the failed job. So the string is
a mark and a document of JSON, from which the error is made again.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltafast import exceptions
from deltafast.exceptions import ConstraintViolatedError, DeltaError, ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["RowCheck", "raised_by_rows", "row_error", "sent_by_task"]

_MARK: Final = "deltafast-error:"


class RowCheck(NamedTuple):
    """A condition that every written row must satisfy, in Spark SQL."""

    code: ErrorCode
    #: The constraint, as messages name it.
    constraint: str
    sql: str
    #: The values of the code's parameters.
    parameters: dict[str, str]

    @classmethod
    def check(cls, name: str, sql: str) -> RowCheck:
        """Return a CHECK constraint or a column's invariant."""
        return cls(ErrorCode.CHECK_VIOLATED, name, sql, {"constraint": name, "expression": sql})

    @classmethod
    def length(cls, name: str, sql: str) -> RowCheck:
        """Return the limit of a `char(n)` or `varchar(n)`."""
        return cls(ErrorCode.LENGTH_CHECK_VIOLATED, name, sql, {"constraint": name, "expression": sql})

    @classmethod
    def generated(cls, column: str, sql: str) -> RowCheck:
        """Return the check that the value of a generated column is that of its expression."""
        name = f"Generated Column {column}"
        return cls(ErrorCode.GENERATED_COLUMN_VIOLATED, name, sql, {"constraint": name, "expression": sql})

    @classmethod
    def not_null(cls, column: str, sql: str) -> RowCheck:
        """Return the check that a column or field is not null."""
        name = f"NOT NULL {column}"
        return cls(ErrorCode.NOT_NULL_VIOLATED, name, sql, {"constraint": "NOT NULL", "column": column})

    @classmethod
    def replacement(cls, sql: str) -> RowCheck:
        """Return the check that a row is among those that it replaces."""
        return cls(ErrorCode.REPLACEMENT_VIOLATED, "replaceWhere", sql, {"constraint": "predicate", "expression": sql})

    @property
    def message(self) -> str:
        """The message about rows that do not satisfy it."""
        return f"the rows break {self.constraint}: {self.sql}"

    @property
    def error(self) -> str:
        """The text with which a task raises the error."""
        return row_error(self.message, self.code, ConstraintViolatedError, **self.parameters)


def row_error(
    message: str,
    code: ErrorCode = ErrorCode.INVALID_ARGUMENT,
    kind: type[DeltaError] = InvalidArgumentError,
    **parameters: str,
) -> str:
    """Return the text with which a task raises an error, for Spark's `raise_error`."""
    document = {"class": kind.__name__, "code": code, "parameters": parameters, "message": message}
    return _MARK + json.dumps(document)


@contextmanager
def sent_by_task() -> Generator[None]:
    """Raise errors of the core in a Python worker so that `raised_by_rows` makes them again in the driver."""
    try:
        yield
    except DeltaError as error:
        raise RuntimeError(row_error(str(error), error.code, type(error), **error.parameters)) from error


@contextmanager
def raised_by_rows() -> Generator[None]:
    """Raise errors of rows that the table does not accept with their message, instead of that of Spark's job.

    Raises:
        DeltaError: A row violates a constraint, an identity column has no further values, a partition value is the
            text for null in folder names, or the core cannot write the rows in a task.
    """
    try:
        yield
    except Exception as error:
        _, mark, document = str(error).partition(_MARK)
        if not mark:
            raise
        raised: dict[str, Any] = json.JSONDecoder().raw_decode(document)[0]
        kind: type[DeltaError] = getattr(exceptions, raised["class"])
        parameters = raised["parameters"]
        # Spark's text has the row.
        raise kind(
            raised["message"],
            code=raised["code"],
            parameters=parameters,
            constraint=parameters.get("constraint"),
            column=parameters.get("column"),
        ) from None
