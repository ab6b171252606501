"""Views of strings and binaries in data of pyarrow.

pyarrow before 25 ends the process when it exports views that a cast made of short values (apache/arrow#49740): such
data is exported with large strings and binaries.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from deltafast._util.arrow_types import with_leaves
from deltafast.exceptions import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["exportable"]

#: The first release of pyarrow that exports every view.
_FIRST_SAFE_RELEASE = 25


def exportable(data: Any) -> Any:
    """Return a stream of pyarrow or pandas without views, if pyarrow cannot export them; other streams as they are.

    Raises:
        InvalidArgumentError: A column has views that cannot be cast, in dictionaries.
    """
    pa = sys.modules.get("pyarrow")
    if pa is None or int(pa.__version__.partition(".")[0]) >= _FIRST_SAFE_RELEASE:
        return data
    if hasattr(data, "dtypes") and any(_has_view(getattr(kind, "pyarrow_dtype", None)) for kind in data.dtypes):
        # As pandas itself exports.
        data = pa.Table.from_pandas(data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if not isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    schema: Any = data.schema
    if not any(_has_view(field.type) for field in schema):
        return data
    try:
        if isinstance(data, pa.Table):
            return _plain_table(data)
        return data.cast(pa.schema([field.with_type(_plain(field.type)) for field in schema], schema.metadata))
    except pa.ArrowNotImplementedError as error:
        message = (
            f"pyarrow {pa.__version__} cannot export views within dictionaries; cast the column to string: {error}"
        )
        raise InvalidArgumentError(message) from None


def _has_view(kind: Any) -> bool:
    return kind is not None and "_view" in str(kind) and _plain(kind) != kind


def _plain(kind: Any) -> Any:
    """Return the type with large strings and binaries instead of views."""
    import pyarrow as pa

    arrow: Any = pa

    def leaf(kind: Any) -> Any:
        if arrow.types.is_dictionary(kind):
            return arrow.dictionary(kind.index_type, _plain(kind.value_type), kind.ordered)
        if kind == arrow.string_view():
            return arrow.large_string()
        return arrow.large_binary() if kind == arrow.binary_view() else kind

    return with_leaves(kind, leaf)


def _plain_table(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    arrow: Any = pa
    fields: list[Any] = []
    columns: list[Any] = []
    for field, column in zip(cast("list[Any]", list(table.schema)), table.columns, strict=True):
        kind = _plain(field.type)
        fields.append(field.with_type(kind))
        columns.append(_plain_dictionary(column, kind) if arrow.types.is_dictionary(kind) else column.cast(kind))
    return arrow.Table.from_arrays(columns, schema=arrow.schema(fields, table.schema.metadata))


def _plain_dictionary(column: Any, kind: Any) -> Any:
    """Return a column of dictionaries whose values are cast; pyarrow casts no dictionary of views."""
    import pyarrow as pa

    arrow: Any = pa
    if column.type == kind:
        return column
    chunks = [
        arrow.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(kind.value_type), ordered=kind.ordered)
        for chunk in column.chunks
    ]
    return arrow.chunked_array(chunks, kind)
