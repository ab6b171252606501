"""Rows that violate a constraint in the error message, as in `deltalake`; see `table`."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, cast

from deltafast import _core
from deltafast._delta_keys import GENERATION_EXPRESSION, IDENTITY
from deltafast._expr import bind_expression, read_schema
from deltafast._expr.context import ExpressionContext
from deltafast._expr.stored import constraint_sql
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._util.arrow import as_stream
from deltafast.exceptions import DETAILS, ConstraintViolatedError, DeltaError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from deltafast._util.arrow import Data
    from deltafast.table import DeltaTable

__all__ = ["with_preview"]

#: Largest number of rows in a preview.
_SHOWN = 5
_CONSTRAINT = "delta.constraints."
#: Metadata of fields whose values are generated if the data does not have them.
_GENERATED = (GENERATION_EXPRESSION, IDENTITY, "CURRENT_DEFAULT")


def with_preview(
    error: ConstraintViolatedError, open_table: Callable[[], DeltaTable], data: Data
) -> ConstraintViolatedError:
    """Return the error of a write with a preview of the rows, or the error itself if they cannot be shown.

    Args:
        error: The error of the write, which has the name of the constraint.
        open_table: Function that opens the table.
        data: The data of the write, which must be readable again.
    """
    try:
        table = open_table()
        rows = _of_table(cast("Any", as_stream(data)), table)
        wrong = None if rows is None else _violating(rows, table)
    except (DeltaError, ValueError, TypeError, NotImplementedError):  # pyarrow's errors are among them
        return error
    if wrong is None or not wrong.num_rows:
        return error
    cells = [[_cell(value, kind) for value in column] for column, kind in _columns(wrong.slice(0, _SHOWN))]
    if any("\n" in cell for column in cells for cell in column):
        return error
    message = (
        "Generic DeltaTable error: External error: "
        f"Invalid data found: {wrong.num_rows} rows failed validation check.\n"
        f"Preview of invalid data:\n\n{_drawn(wrong.schema.names, cells)}"
    )
    return ConstraintViolatedError(message, **{name: getattr(error, name) for name in DETAILS})


def _of_table(data: Any, table: DeltaTable) -> pa.Table | None:
    """Return the data with the table's columns and types, partition columns last; None if values are generated."""
    import pyarrow as pa

    given: Any = pa.table(data)
    partition = table.metadata().partition_columns
    fields = sorted(table.schema().fields, key=lambda field: field.name in partition)
    columns: list[Any] = []
    for field in fields:
        kind: Any = field.type.to_arrow()
        place = given.schema.get_field_index(field.name)
        if place >= 0:
            columns.append(given.column(place).cast(kind))
        elif any(key.startswith(_GENERATED) for key in field.metadata):
            return None
        else:
            columns.append(pa.nulls(given.num_rows, kind))
    if not set(given.schema.names) <= {field.name for field in fields}:
        return None
    return pa.table(dict(zip([field.name for field in fields], columns, strict=True)))


def _violating(rows: pa.Table, table: DeltaTable) -> Any:
    """Return the rows for which a CHECK constraint is not true, or that are null in a NOT NULL column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    columns: Any = rows
    schema = table.schema()
    struct = read_schema(schema.to_json())
    context = ExpressionContext(zone=handle_of(table).time_zone)
    wrong: Any = pa.array([False] * rows.num_rows)
    for name, sql in table.metadata().configuration.items():
        if name.startswith(_CONSTRAINT):
            tree = bind_expression(constraint_sql(sql, struct), struct, context)
            found: Any = RecordBatchReader(_core.evaluate(tree, columns)).read_all().column(0)
            wrong = compute.or_(wrong, compute.invert(compute.fill_null(found, False)))
    for field in schema.fields:
        if not field.nullable:
            wrong = compute.or_(wrong, compute.is_null(columns.column(field.name)))
    return columns.filter(wrong)


# --- the drawing ---------------------------------------------------------------------------------


def _columns(rows: Any) -> list[tuple[list[Any], Any]]:
    return [(list(column), column.type) for column in rows.columns]


def _cell(value: Any, kind: Any) -> str:
    """Format a value as Arrow's Rust library does."""
    import pyarrow as pa

    is_: Any = pa.types
    if not value.is_valid:
        return ""
    if is_.is_struct(kind):
        parts = [f"{field.name}: {_cell(value[field.name], field.type)}" for field in kind]
        return "{" + ", ".join(parts) + "}"
    if is_.is_map(kind):
        pairs = [(pair["key"], pair["value"]) for pair in value.values]
        parts = [f"{_cell(key, kind.key_type)}: {_cell(item, kind.item_type)}" for key, item in pairs]
        return "{" + ", ".join(parts) + "}"
    if is_.is_list(kind):
        return "[" + ", ".join(_cell(item, kind.value_type) for item in value.values) + "]"
    return _scalar(value, kind)


def _scalar(value: Any, kind: Any) -> str:
    import pyarrow as pa

    is_: Any = pa.types
    plain = value.as_py()
    if is_.is_floating(kind):
        shown = _number(str(value.cast(pa.string())))
    elif is_.is_timestamp(kind):
        spec = "seconds" if not plain.microsecond else "microseconds" if plain.microsecond % 1000 else "milliseconds"
        shown = plain.replace(tzinfo=None).isoformat(timespec=spec) + ("" if kind.tz is None else "Z")
    elif is_.is_binary(kind):
        shown = plain.hex()
    else:
        shown = str(plain).lower() if is_.is_boolean(kind) else str(plain)
    return shown


def _number(text: str) -> str:
    """Format a floating-point number as Rust does."""
    text = text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    return {"nan": "NaN"}.get(text, text if set(text) & {".", "e", "n"} else f"{text}.0")


def _drawn(names: list[str], columns: list[list[str]]) -> str:
    """Format cells as a table."""
    widths = [max(map(_width, [name, *cells])) for name, cells in zip(names, columns, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def line(cells: Any) -> str:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
        return "| " + " | ".join(padded) + " |"

    return "\n".join([rule, line(names), rule, *map(line, zip(*columns, strict=True)), rule])


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1 for char in text)
