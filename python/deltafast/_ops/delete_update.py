"""DELETE and UPDATE: binds the caller's expressions, runs the core's operation, and returns its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._expr.constraints import bind_constraints, bind_rows, bind_updates
from deltafast._expr.python_values import expression
from deltafast._expr.syntax import NODES
from deltafast._util.options import UPDATES, sql_strings
from deltafast._util.writer_properties import encoding
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._core_types import CommitOptions, DmlOptions
    from deltafast._expr.syntax import Syntax
    from deltafast._expr.tree import CastMode
    from deltafast._handle import TableHandle
    from deltafast._util.filters import Predicate
    from deltafast._util.writer_properties import WriterProperties

__all__ = ["delete", "dml_metrics", "dml_options", "update"]


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
    updates: Mapping[str, str | Syntax] | None,
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
    if new_values is not None:
        updates = {name: expression(value) for name, value in new_values.items()}
    if not updates:
        message = "there is nothing to update: no column is given a value"
        raise InvalidArgumentError(message)
    schema, context = table.schema().to_json(), table.expression_context
    rows = None if predicate is None else bind_rows(predicate, schema, context)
    assignments = bind_updates(sql_strings(UPDATES, updates, NODES), schema, context, mode)
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
        "encoding": {
            **encoding(writer_properties, table.time_zone),
            "store_assignment": table.dialect.store_assignment,
        },
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
