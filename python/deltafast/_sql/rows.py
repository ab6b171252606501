"""The rows of an INSERT, with the names and types of the table's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from deltafast import _core
from deltafast._delta_keys import GENERATION_EXPRESSION, IDENTITY
from deltafast._expr import coercion, read_schema, syntax, types
from deltafast._expr.binder import Binder
from deltafast._expr.constraints import bound_value
from deltafast._expr.context import ExpressionContext
from deltafast._expr.stored import with_single_quotes
from deltafast._expr.tree import CastMode
from deltafast._handle import handle_of
from deltafast._interop.record_batch_reader import RecordBatchReader
from deltafast._sql.tree import Default, Expression, Query, TableName, Values
from deltafast._sql.values import cell, column
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from deltafast._core_types import BoundTree
    from deltafast._sql.tables import Tables
    from deltafast._sql.tree import Insert, Source
    from deltafast.schema import Field
    from deltafast.table import DeltaTable

__all__ = ["constants", "default_of", "inserted_rows", "names_of", "source_rows"]


def source_rows(source: Source, tables: Tables) -> pa.RecordBatchReader:
    """Return the rows of a query or table, unchanged."""
    if isinstance(source, Values):
        message = "VALUES have no types of their own here; write SELECT * FROM (VALUES ..)"
        raise InvalidArgumentError(message)
    return tables.rows(_everything(source) if isinstance(source, TableName) else source)


def _everything(table: TableName) -> Query:
    """Return a query for all rows of a table."""
    return Query(f"TABLE {table.name}", ("FROM ", table), frozenset())


def inserted_rows(insert: Insert, table: DeltaTable, tables: Tables) -> pa.Table | pa.RecordBatchReader:
    """Return the rows with named columns, cast by Spark's store assignment.

    Raises:
        InvalidArgumentError: The number of columns differs from the table's, or the table does not have a name.
    """
    fixed = constants(insert.partition, table, tables.zone)
    if isinstance(insert.source, Values):
        if insert.by_name:
            message = "VALUES have no names: leave BY NAME out"
            raise InvalidArgumentError(message)
        return _literal_rows(insert.source, insert, table, fixed, tables.zone)
    rows = source_rows(insert.source, tables)
    names = rows.schema.names if insert.by_name else names_of(insert, table, fixed, rows.schema.names)
    return _typed(rows, names, table, fixed, tables.zone)


def constants(partition: Iterable[tuple[str, Expression | None]], table: DeltaTable, zone: str) -> dict[str, Any]:
    """Return the values of PARTITION, by column."""
    schema = read_schema(table.schema().to_json())
    partitions = {name.lower(): name for name in table.metadata().partition_columns}
    out: dict[str, Any] = {}
    for given, value in partition:
        name = partitions.get(given.lower())
        if name is None:
            message = f"`{given}` is not a partition column; the table has {', '.join(partitions.values()) or 'none'}"
            code = ErrorCode.NOT_A_PARTITION_COLUMN
            raise InvalidArgumentError(message, code=code, parameters={"column": given})
        if value is not None:
            kind = schema.named(name)[0].type
            out[name] = cell(value.text, kind, ExpressionContext(zone=zone, ansi=handle_of(table).ansi))
    return out


def names_of(insert: Insert, table: DeltaTable, fixed: dict[str, Any], given: Sequence[str]) -> list[str]:
    """Return the column of each value, by position.

    Args:
        insert: The statement.
        table: The table.
        fixed: The columns with a value in PARTITION.
        given: Column names of the rows; with schema evolution they name new columns of the table.

    Raises:
        InvalidArgumentError: The number of columns differs from the table's, or a name is unknown or exists already.
    """
    if insert.columns:
        known = {field.name.lower(): field.name for field in table.schema().fields}
        missing = next((name for name in insert.columns if name.lower() not in known), None)
        if missing is not None and not insert.evolve:
            message = f"the table has no column `{missing}`; it has {', '.join(known.values())}"
            raise InvalidArgumentError(message, code=ErrorCode.COLUMN_NOT_FOUND, parameters={"column": missing})
        names = [known.get(name.lower(), name) for name in insert.columns]
        twice = next((name for name in names if name in fixed), None)
        if twice is not None:
            message = f"`{twice}` has a value in PARTITION and is in the list of columns, too; leave it out of the list"
            raise InvalidArgumentError(
                message, code=ErrorCode.PARTITION_COLUMN_IN_INSERT_LIST, parameters={"column": twice}
            )
    else:
        own = [field.name for field in table.schema().fields]
        names = [name for name in own if name not in fixed]
        if insert.evolve:
            for name in given[len(names) :]:
                if name.lower() in {known.lower() for known in (*own, *names)}:
                    message = f"the rows' column `{name}` is to be added, and the table has it; give it another name"
                    raise InvalidArgumentError(message)
                names.append(name)
    if len(names) != len(given):
        message = (
            f"{len(names)} columns ({', '.join(names)}) are to get values, the rows have {len(given)}; name the "
            "columns: INSERT INTO t (a, b) .."
        )
        raise InvalidArgumentError(
            message, code=ErrorCode.INSERT_ARITY_MISMATCH, parameters={"columns": len(names), "values": len(given)}
        )
    return names


def default_of(field: Field) -> str | None:
    """Return the SQL expression of a column's default; None for null.

    Raises:
        InvalidArgumentError: The column is a generated or identity column.
    """
    if _is_generated(field):
        message = f"the values of `{field.name}` are made by the table: leave the column out"
        raise InvalidArgumentError(message)
    default = field.metadata.get("CURRENT_DEFAULT")
    return None if default is None else with_single_quotes(str(default))


def _is_generated(field: Field) -> bool:
    """Return whether a column is a generated or identity column."""
    return any(key.startswith((GENERATION_EXPRESSION, IDENTITY)) for key in field.metadata)


def _literal_rows(
    values: Values,
    insert: Insert,
    table: DeltaTable,
    fixed: dict[str, Any],
    zone: str,
) -> pa.Table:
    # Spark's names.
    names = names_of(insert, table, fixed, [f"col{place}" for place, _ in enumerate(values.rows[0], start=1)])
    schema = read_schema(table.schema().to_json())
    kinds = {field.name: field.type for field in schema.fields}
    fields = {field.name: field for field in table.schema().fields}
    arrow: Any = handle_of(table).arrow_schema()
    context = ExpressionContext(zone=zone, ansi=handle_of(table).ansi)
    columns: dict[str, Any] = {}
    for place, name in enumerate(names):
        given = [row[place] for row in values.rows]
        if all(isinstance(value, Default) for value in given):
            continue
        if name not in fields:
            message = f"the type of the new column `{name}` is not known from VALUES; insert a query"
            raise InvalidArgumentError(message)
        strings = [value.text if isinstance(value, Expression) else default_of(fields[name]) for value in given]
        try:
            columns[name] = column(strings, kinds[name], arrow.field(name).type, context)
        except InvalidArgumentError as error:
            error.args = (f"a value of `{name}`: {error}",)
            raise
    if not columns and not fixed:
        # A row needs a column, other than those that the table generates.
        name = next((name for name, field in fields.items() if not _is_generated(field)), None)
        if name is None:
            message = "the table generates the values of all columns: give at least one a value"
            raise InvalidArgumentError(message)
        strings = [default_of(fields[name])] * len(values.rows)
        columns[name] = column(strings, kinds[name], arrow.field(name).type, context)
    for name, value in fixed.items():
        columns[name] = pa.array([value] * len(values.rows), arrow.field(name).type)
    return pa.table(columns)


def _typed(
    rows: pa.RecordBatchReader,
    names: Sequence[str],
    table: DeltaTable,
    fixed: dict[str, Any],
    zone: str,
) -> pa.RecordBatchReader:
    """Return the stream with its columns named and cast, batch by batch."""
    target: Any = handle_of(table).arrow_schema()
    wanted = read_schema(table.schema().to_json())
    trees: list[BoundTree | None] = []
    fields: list[Any] = []
    for name, field in zip(names, cast("Any", rows.schema), strict=True):
        column = wanted.find(name)
        tree = None if column is None else _cast(field, column.type, zone)
        trees.append(tree)
        kind = field.type if tree is None or column is None else target.field(column.name).type
        fields.append(pa.field(name, kind))
    fields += [pa.field(name, target.field(name).type) for name in fixed]
    schema = pa.schema(fields)

    def batches() -> Iterator[Any]:
        for batch in rows:
            arrays: list[Any] = [
                _evaluated(tree, array) for tree, array in zip(trees, cast("Any", batch).columns, strict=True)
            ]
            arrays += [pa.array([value] * batch.num_rows, target.field(name).type) for name, value in fixed.items()]
            plain = [array.cast(field.type) for array, field in zip(arrays, fields, strict=True)]
            yield cast("Any", pa.RecordBatch).from_arrays(plain, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


_INPUT = "value"


def _cast(field: Any, wanted: types.DataType, zone: str) -> BoundTree | None:
    """Return the tree of the cast of a column by store assignment; None if the writer casts or refuses it."""
    try:
        found = read_schema(Schema.from_arrow(pa.schema([pa.field(_INPUT, field.type)])).to_json())
    except InvalidArgumentError:
        return None
    given = found.fields[0].type
    nested = isinstance(given, types.NESTED)
    if given == wanted or nested or not coercion.can_cast(given, wanted, CastMode.ANSI):
        return None
    binder = Binder(found, _INPUT, ExpressionContext(zone=zone))
    return bound_value(binder, syntax.Name((_INPUT,)), _INPUT, wanted).to_tree()


def _evaluated(tree: BoundTree | None, array: Any) -> Any:
    if tree is None:
        return array
    batch = cast("Any", pa.table({_INPUT: array}))
    found: Any = RecordBatchReader(_core.evaluate(tree, batch)).read_all().column(0).combine_chunks()
    return pa.concat_arrays(cast("Any", found).chunks) if isinstance(found, pa.ChunkedArray) else found
