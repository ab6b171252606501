"""Values of a statement with Spark's semantics: bound, cast by store assignment, evaluated by the core."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from deltafast import _core
from deltafast._expr import types
from deltafast._expr.binder import Binder
from deltafast._expr.constraints import bound_value
from deltafast._expr.context import ExpressionContext
from deltafast._expr.parser import parse
from deltafast._expr.tree import Lit
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltafast._expr.syntax import Syntax
    from deltafast._expr.types import DataType
    from deltafast._sql.tree import Expression

__all__ = ["cell", "column", "timestamp_value"]

_NOTHING: Final = types.Struct(())


def timestamp_value(value: Expression, zone: str) -> datetime:
    """Return the timestamp of TIMESTAMP AS OF.

    Raises:
        InvalidArgumentError: The value is not a timestamp, or is null.
    """
    message = f"{value.text!r} is not a timestamp"
    try:
        found = cell(value.text, types.TIMESTAMP, ExpressionContext(zone=zone))
    except InvalidArgumentError as error:
        if error.code is not ErrorCode.CAST_INVALID_INPUT:
            raise
        found = None
    if found is None:
        raise InvalidArgumentError(message, code=ErrorCode.INVALID_TIMESTAMP, parameters={"timestamp": value.text})
    return cast("datetime", found)


def cell(text: str, kind: DataType, context: ExpressionContext) -> Any:
    """Return one value of a type as a Python value."""
    node = parse(text, dialect=Dialect.SPARK, zone=context.zone)
    return _cell(node, text, kind, Binder(_NOTHING, text, context))


def column(strings: Sequence[str | None], kind: DataType, arrow: pa.DataType, context: ExpressionContext) -> Any:
    """Return values of a type as an Arrow array, None for null."""
    return pa.array([None if text is None else cell(text, kind, context) for text in strings], arrow)


def _cell(node: Syntax, text: str, kind: DataType, binder: Binder) -> Any:
    bound = bound_value(binder, node, text, kind)
    if isinstance(bound.expr, Lit):
        try:
            return _python(bound.expr)
        except (OverflowError, ValueError):  # a year that Python does not have
            pass
    one = cast("Any", pa.table({"nothing": pa.nulls(1)}))
    return RecordBatchReader(_core.evaluate(bound.to_tree(), one)).read_all().column(0)[0].as_py()


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _python(lit: Lit) -> Any:
    """Return the value of a literal, in which days and microseconds are numbers."""
    if isinstance(lit.value, int):
        if lit.type == types.DATE:
            return _EPOCH.date() + timedelta(lit.value)
        if types.is_timestamp(lit.type):
            found = _EPOCH + timedelta(microseconds=lit.value)
            return found if lit.type == types.TIMESTAMP else found.replace(tzinfo=None)
    return lit.value
