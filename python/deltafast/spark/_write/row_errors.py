"""Errors that rows raise in Spark's tasks: a code, its parameters and a message, which reach the driver as text.

Spark's `raise_error` takes a string, and the driver receives it within the message of the failed job. So the string is
a mark and a document of JSON, from which the error is made again.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltafast.exceptions import ConstraintViolatedError, DeltaError, ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["RowCheck", "raised_by_rows", "row_error"]

_MARK: Final = "deltafast-error:"
#: The classes of errors that are not about a constraint.
_CLASSES: Final[dict[ErrorCode, type[DeltaError]]] = {ErrorCode.INVALID_ARGUMENT: InvalidArgumentError}


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
        return cls(ErrorCode.LENGTH_EXCEEDED, name, sql, {"constraint": name, "limit": sql})

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


def row_error(message: str, code: ErrorCode = ErrorCode.INVALID_ARGUMENT, **parameters: str) -> str:
    """Return the text with which a task raises an error, for Spark's `raise_error`."""
    return _MARK + json.dumps({"code": code, "parameters": parameters, "message": message})


@contextmanager
def raised_by_rows() -> Generator[None]:
    """Raise errors of rows that the table does not accept with their message, instead of that of Spark's job.

    Raises:
        ConstraintViolatedError: A row violates a constraint.
        InvalidArgumentError: An identity column has no further values, or a partition value is the text for null in
            folder names.
    """
    try:
        yield
    except Exception as error:
        _, mark, document = str(error).partition(_MARK)
        if not mark:
            raise
        raised: dict[str, Any] = json.JSONDecoder().raw_decode(document)[0]
        code, parameters = ErrorCode(raised["code"]), raised["parameters"]
        constraint = parameters.get("constraint")
        kind = _CLASSES.get(code, ConstraintViolatedError)
        # Spark's text has the row.
        raise kind(raised["message"], code=code, parameters=parameters, constraint=constraint) from None
