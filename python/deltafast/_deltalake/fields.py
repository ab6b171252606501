"""NOT NULL and field metadata in the schema of rows, as `deltalake` returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from deltafast.exceptions import CorruptDataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

__all__ = ["described_reader", "described_table"]


def described_table(rows: pa.Table, fields: Mapping[str, pa.Field[Any]]) -> pa.Table:
    """Return the rows with nullability and metadata of the table's fields; columns that have nulls stay nullable."""
    unchanged = rows.schema  # pyarrow makes a new object at each access
    schema = _described(unchanged, fields)
    if schema is unchanged:
        return rows
    columns: list[Any] = list(cast("Any", rows.columns))
    for place, (field, column) in enumerate(zip(cast("Any", schema), columns, strict=True)):
        if not field.nullable and column.null_count:
            schema = cast("Any", schema).set(place, field.with_nullable(True))
    return cast("Any", type(rows)).from_arrays(columns, schema=schema)


def described_reader(rows: pa.RecordBatchReader, fields: Mapping[str, pa.Field[Any]]) -> pa.RecordBatchReader:
    """Return the rows with nullability and metadata of the table's fields, by the names of the columns.

    A null in a column that is NOT NULL in the table raises `CorruptDataError` when its batch is read.
    """
    import pyarrow as pa

    unchanged = rows.schema
    schema = _described(unchanged, fields)
    if schema is unchanged:
        return rows
    return pa.RecordBatchReader.from_batches(schema, _batches(rows, schema))


def _batches(rows: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    required = [(place, field.name) for place, field in enumerate(cast("Any", schema)) if not field.nullable]
    for batch in rows:
        columns: list[Any] = list(cast("Any", batch).columns)
        for place, name in required:
            if columns[place].null_count:
                message = f"the column is NOT NULL in the table, but a file has null in it (column `{name}`)"
                raise CorruptDataError(message)
        yield cast("Any", pa.RecordBatch).from_arrays(columns, schema=schema)


def _described(schema: pa.Schema, fields: Mapping[str, pa.Field[Any]]) -> pa.Schema:
    """Return the schema with the known properties of its fields; the same object if none is known."""
    import pyarrow as pa

    def described(field: Any) -> Any:
        known: Any = fields.get(field.name)
        if known is None or (known.nullable and not known.metadata):
            return field
        return field.with_nullable(known.nullable).with_metadata(known.metadata)

    old: list[Any] = list(cast("Any", schema))
    new = [described(field) for field in old]
    if all(field is before for field, before in zip(new, old, strict=True)):
        return schema
    return pa.schema(new, cast("Any", schema.metadata))
