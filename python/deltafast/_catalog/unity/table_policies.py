"""Row filters and column masks of Unity Catalog: who reads the files of a table sees what they hide.

Source: `TableInfo.row_filter` and `ColumnInfo.mask` of the tables API, as databricks-sdk has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from deltafast._catalog.server_text import server_text
from deltafast.exceptions import DeltaProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltafast._catalog.unity.table_name import TableName

__all__ = ["refuse_policies"]

_ROW_FILTER = ("row_filter", "row-filter")
_MASK = ("mask", "column_mask", "column-mask")


def refuse_policies(name: TableName, table: Mapping[str, Any]) -> None:
    """Refuse a table whose rows or columns are hidden from some readers.

    Args:
        name: The table.
        table: The catalog's description of the table.

    Raises:
        DeltaProtocolError: It has a row filter or a column mask.
    """
    advice = "which deltafast cannot apply: read it through an engine of the catalog, or a view that it gives you"
    if function := _policy(table, _ROW_FILTER):
        message = f"{name} has the row filter {function}, {advice}"
        raise DeltaProtocolError(message, feature="row_filter")
    for column in _columns(table.get("columns")):
        if function := _policy(column, _MASK):
            column_name = server_text(str(column.get("name")), most=100)
            message = f"the column {column_name} of {name} has the mask {function}, {advice}"
            raise DeltaProtocolError(message, feature="mask")


def _columns(columns: Any) -> Iterator[Mapping[str, Any]]:
    """Yield columns, of the tables API or of a schema of the Delta API."""
    fields = cast("Any", columns).get("fields") if isinstance(columns, dict) else columns
    for field in cast("list[Any]", fields) if isinstance(fields, list) else []:
        if isinstance(field, dict):
            yield cast("dict[str, Any]", field)


def _policy(described: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the name of a policy's function; empty if there is none."""
    policy = next((described[name] for name in names if described.get(name) is not None), None)
    if policy is None:
        return ""
    function = cast("dict[str, Any]", policy).get("function_name") if isinstance(policy, dict) else policy
    return server_text(str(function or "of the catalog"), most=100)
