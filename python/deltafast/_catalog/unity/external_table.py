"""Registration of external tables in Unity Catalog: a table that exists at a location gets a name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from deltafast._catalog.unity.log_actions import columns_of, protocol_of
from deltafast._types import PRIMITIVES, spark_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._catalog.unity.table_name import TableName

__all__ = ["DescribedTable", "delta_definition", "tables_definition"]

#: The names of the tables API for types of the log.
_TYPE_NAMES = {name: name.upper() for name in PRIMITIVES if name != "void"} | {"integer": "INT"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


class DescribedTable(Protocol):
    """What a `DeltaTable` says of itself."""

    @property
    def table_uri(self) -> str:
        """The location."""
        ...

    def schema(self) -> Any:
        """Return the schema."""
        ...

    def metadata(self) -> Any:
        """Return the metadata."""
        ...

    def protocol(self) -> Any:
        """Return the protocol."""
        ...

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the newest commits."""
        ...


def delta_definition(name: TableName, location: str, table: DescribedTable) -> dict[str, Any]:
    """Return the request of the Delta API for an external table."""
    metadata, protocol = table.metadata(), table.protocol()
    action = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    }
    newest = table.history(1)
    body = {
        "name": name.table,
        "location": location,
        "table-type": "EXTERNAL",
        "columns": columns_of(_fields(table)),
        "partition-columns": metadata.partition_columns,
        "protocol": protocol_of(action),
        "properties": metadata.configuration,
        "last-commit-timestamp-ms": newest[0]["timestamp"] if newest else metadata.created_time or 0,
    }
    return body | ({} if metadata.description is None else {"comment": metadata.description})


def tables_definition(name: TableName, location: str, table: DescribedTable) -> dict[str, Any]:
    """Return the request of the tables API for an external table."""
    metadata, fields = table.metadata(), _fields(table)["fields"]
    partitions = {column: index for index, column in enumerate(metadata.partition_columns)}
    body = {
        "name": name.table,
        "catalog_name": name.catalog,
        "schema_name": name.schema,
        "table_type": "EXTERNAL",
        "data_source_format": "DELTA",
        "columns": [_column(position, field, partitions) for position, field in enumerate(fields)],
        "storage_location": location,
        "properties": metadata.configuration,
    }
    return body | ({} if metadata.description is None else {"comment": metadata.description})


def _fields(table: DescribedTable) -> dict[str, Any]:
    return json.loads(table.schema().to_json())


def _column(position: int, field: Mapping[str, Any], partitions: Mapping[str, int]) -> dict[str, Any]:
    data_type: str | dict[str, Any] = field["type"]
    text = str(data_type["type"]).upper() if isinstance(data_type, dict) else _TYPE_NAMES.get(data_type)
    decimal = _DECIMAL.fullmatch(data_type) if isinstance(data_type, str) else None
    column: dict[str, Any] = {
        "name": field["name"],
        "type_text": spark_name(data_type),
        "type_json": json.dumps(field),
        "type_name": "DECIMAL" if decimal else text or "USER_DEFINED_TYPE",
        "position": position,
        "nullable": field["nullable"],
    }
    if decimal:
        column |= {"type_precision": int(decimal[1]), "type_scale": int(decimal[2])}
    if field["name"] in partitions:
        column["partition_index"] = partitions[field["name"]]
    details: dict[str, Any] = field.get("metadata") or {}
    comment = details.get("comment")
    return column | ({} if comment is None else {"comment": comment})
