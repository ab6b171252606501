"""DELETE and UPDATE: binds the caller's expressions, runs the core's operation, and returns its metrics."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from deltafast import _core
from deltafast._expr.constraints import bind_constraints, bind_rows, bind_updates
from deltafast._util.options import UPDATES, sql_strings
from deltafast._util.writer_properties import encoding
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltafast._core_types import CommitOptions, DmlOptions
    from deltafast._expr.tree import CastMode
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast._util.writer_properties import WriterProperties

__all__ = ["delete", "dml_metrics", "dml_options", "literal", "update"]


def delete(table: TableHandle, predicate: Predicate | None, options: DmlOptions) -> dict[str, Any]:
    """See `DeltaTable.delete`."""
    rows = None if predicate is None else bind_rows(predicate, table.schema().to_json(), table.expression_context)
    done = _core.delete(table.snapshot, options, rows)
    table.move(done.snapshot)
    metrics = dml_metrics(done.metrics, "num_deleted_rows", "rewrite_time_ms")
    # Unknown if a file without statistics was removed unread; `deltalake` leaves it out, too.
    return {name: value for name, value in metrics.items() if name != "num_deleted_rows" or value is not None}


def update(
    table: TableHandle,
    updates: Mapping[str, str] | None,
    new_values: Mapping[str, Any] | None,
    predicate: Predicate | None,
    mode: CastMode,
    options: DmlOptions,
) -> dict[str, Any]:
    """See `DeltaTable.update`; `mode` is that of `bind_updates`."""
    if updates is None and new_values is None:
        message = "Either updates or new_values need to be passed to update the table."
        raise InvalidArgumentError(message)
    if updates is not None and new_values is not None:
        message = "Passing updates and new_values at same time is not allowed, pick one."
        if isinstance(new_values, str):
            message += f" For a condition, write predicate={new_values!r:.100}"
        raise InvalidArgumentError(message)
    are_literals = updates is None
    if updates is None:
        updates = {name: literal(value) for name, value in cast("Mapping[str, Any]", new_values).items()}
    if not updates:
        message = "there is nothing to update: no column is given a value"
        raise InvalidArgumentError(message)
    schema, context = table.schema().to_json(), table.expression_context
    rows = None if predicate is None else bind_rows(predicate, schema, context)
    assignments = bind_updates(sql_strings(UPDATES, updates), schema, context, mode, are_literals=are_literals)
    constraints = bind_constraints(_core.table_constraints(table.snapshot), schema, context)
    done = _core.update(table.snapshot, options, assignments, constraints, rows)
    table.move(done.snapshot)
    return dml_metrics(done.metrics, "num_updated_rows")


def dml_options(
    table: TableHandle, writer_properties: WriterProperties | None, commit: CommitOptions, max_conflict_retries: int
) -> DmlOptions:
    """Return options for the core.

    Raises:
        InvalidArgumentError: One of them is invalid.
    """
    if max_conflict_retries < 0:
        message = f"max_conflict_retries must not be negative, it is {max_conflict_retries}"
        raise InvalidArgumentError(message)
    return {
        "encoding": encoding(writer_properties, table.time_zone),
        "commit_options": commit,
        "max_conflict_retries": max_conflict_retries,
    }


def dml_metrics(metrics: Mapping[str, str], *more: str) -> dict[str, Any]:
    """Return the metrics of a commit under the names of `deltalake`, as numbers."""
    names = ["num_added_files", "num_removed_files", "num_copied_rows", "execution_time_ms", "scan_time_ms", *more]
    out: dict[str, Any] = {}
    for name in names:
        first, *rest = name.split("_")
        value = metrics.get(first + "".join(part.capitalize() for part in rest))
        out[name] = None if value is None else int(value)
    return out


def literal(value: Any) -> str:
    """Return a Python value as a Spark SQL literal.

    Raises:
        InvalidArgumentError: Spark SQL has no literal of this type.
    """
    for kind, spell in _SPELLED:
        if isinstance(value, kind):
            return spell(value)
    message = f"a {type(value).__name__} cannot be written as SQL; give an expression in `updates`"
    raise InvalidArgumentError(message)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _number(value: float) -> str:
    return f"{value!r}D" if math.isfinite(value) else f"cast('{value!r}' as double)"


def _instant(value: datetime) -> str:
    kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
    return f"{kind} '{value.isoformat(' ')}'"


# The first match counts: to Python a bool is an int, and a datetime is a date.
_SPELLED: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (type(None), lambda _: "NULL"),
    (bool, lambda value: "TRUE" if value else "FALSE"),
    (int, str),
    (float, _number),
    (Decimal, lambda value: f"{value:f}BD"),
    (str, _text),
    (bytes, lambda value: f"X'{value.hex()}'"),
    (datetime, _instant),
    (date, lambda value: f"DATE '{value.isoformat()}'"),
    (list, lambda value: f"array({', '.join(map(literal, value))})"),
)
