"""Checkpoint files as delta-spark writes them: batches of files -> Parquet.

V1 and multi-part checkpoints hold every kind of action, sidecars only adds and
removes. Statistics are JSON text, with typed structs beside it on request. Rows are
gathered into row groups of a size that parquet-mr would choose. Protocol:
"Checkpoint Schema", "Last Checkpoint File Schema".
"""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actions import COLUMNS, WRITTEN, Files, make_days, make_uuid, statistics
from textcols import constant, fixed

if TYPE_CHECKING:
    from pathlib import Path

_ROW_GROUP = 250_000
_STRING_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ],
)
TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _STRING_MAP),
        ("size", pa.int64()),
        ("deletionVector", _VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ],
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _STRING_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _STRING_MAP),
        ("createdTime", pa.int64()),
    ],
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ],
)
DOMAIN = pa.struct(
    [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())],
)


def add_type(*, parsed: bool) -> pa.StructType:
    """Give the type of a checkpoint's `add` column, with typed statistics if `parsed`."""
    fields: list[Any] = [
        ("path", pa.string()),
        ("partitionValues", _STRING_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", _STRING_MAP),
        ("deletionVector", _VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
        ("clusteringProvider", pa.string()),
        ("stats", pa.string()),
    ]
    if parsed:
        values = pa.struct(
            [
                ("id", pa.int64()),
                ("score", pa.float64()),
                ("city", pa.string()),
                ("event_time", pa.timestamp("us", tz="UTC")),
                ("ship_date", pa.date32()),
                ("amount", pa.decimal128(12, 2)),
            ],
        )
        fields += [
            ("partitionValues_parsed", pa.struct([("date", pa.date32())])),
            (
                "stats_parsed",
                pa.struct(
                    [
                        ("numRecords", pa.int64()),
                        ("minValues", values),
                        ("maxValues", values),
                        ("nullCount", pa.struct([(column, pa.int64()) for column in COLUMNS])),
                    ],
                ),
            ),
        ]
    return pa.struct(fields)


def _partition_map(files: Files) -> pa.Array:
    offsets = pa.array(np.arange(files.rows + 1, dtype=np.int32))
    keys = fixed(constant("date", files.rows))
    return pa.MapArray.from_arrays(offsets, keys, files.date)


def add_rows(files: Files, kind: pa.StructType) -> pa.Array:
    """Make the `add` column's rows for some files."""
    columns: dict[str, pa.Array] = {
        "path": files.path,
        "partitionValues": _partition_map(files),
        "size": pa.array(files.size),
        "modificationTime": pa.array(files.modified),
        "dataChange": pa.array(np.zeros(files.rows, dtype=bool)),
        "stats": statistics(files, '"'),
    }
    if kind.get_field_index("stats_parsed") >= 0:
        parsed = kind.field("stats_parsed").type
        columns["partitionValues_parsed"] = pa.StructArray.from_arrays([make_days(files.days)], names=["date"])
        columns["stats_parsed"] = pa.StructArray.from_arrays(
            [
                pa.array(files.records),
                pa.StructArray.from_arrays(
                    [files.bounds[column].low for column in COLUMNS],
                    fields=list(parsed.field("minValues").type),
                ),
                pa.StructArray.from_arrays(
                    [files.bounds[column].high for column in COLUMNS],
                    fields=list(parsed.field("maxValues").type),
                ),
                pa.StructArray.from_arrays(
                    [pa.array(files.nulls[column]) for column in COLUMNS],
                    names=list(COLUMNS),
                ),
            ],
            fields=list(parsed),
        )
    return pa.StructArray.from_arrays(
        [columns.get(field.name, pa.nulls(files.rows, field.type)) for field in kind],
        fields=list(kind),
    )


def remove_rows(files: Files) -> pa.Array:
    """Make the `remove` column's rows, tombstones, for some files."""
    columns: dict[str, pa.Array] = {
        "path": files.path,
        "deletionTimestamp": pa.array(np.full(files.rows, WRITTEN)),
        "dataChange": pa.array(np.zeros(files.rows, dtype=bool)),
        "extendedFileMetadata": pa.array(np.ones(files.rows, dtype=bool)),
        "partitionValues": _partition_map(files),
        "size": pa.array(files.size),
    }
    return pa.StructArray.from_arrays(
        [columns.get(field.name, pa.nulls(files.rows, field.type)) for field in REMOVE],
        fields=list(REMOVE),
    )


def _with_maps(action: dict[str, Any]) -> dict[str, Any]:
    """Turn the JSON form of a metaData action into what Arrow takes for maps.

    Args:
        action: The metaData action.

    Returns:
        The same with lists of pairs for maps.
    """
    return action | {
        "configuration": list(action["configuration"].items()),
        "format": action["format"] | {"options": []},
    }


class CheckpointFile:
    """Writes one Parquet file of actions, a row group every 250,000 rows."""

    def __init__(self, path: Path, columns: dict[str, pa.DataType]) -> None:
        self._schema = pa.schema(list(columns.items()))
        self._path = path
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression="snappy",
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_index=True,
        )
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def write(self, **columns: pa.Array) -> None:
        """Append rows of actions; what is not given is null."""
        rows = len(next(iter(columns.values())))
        arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in self._schema]
        self._waiting.append(pa.table(arrays, schema=self._schema))
        self._rows += rows
        if self._rows >= _ROW_GROUP:
            self._flush()

    def write_actions(self, metadata: dict[str, Any], protocol: dict[str, Any]) -> None:
        """Append protocol, metadata and one transaction."""
        self.write(protocol=pa.array([protocol], type=PROTOCOL))
        self.write(metaData=pa.array([_with_maps(metadata)], type=METADATA))
        txn = {"appId": str(make_uuid("app")), "version": 9, "lastUpdated": WRITTEN}
        self.write(txn=pa.array([txn], type=TXN))

    def _flush(self) -> None:
        if self._waiting:
            whole = pa.concat_tables(self._waiting)
            self._waiting = []
            self._rows = 0
            self._writer.write_table(whole, row_group_size=len(whole))

    def close(self) -> int:
        """Finish the file and give its size in bytes."""
        self._flush()
        self._writer.close()
        return self._path.stat().st_size


def _canonical(value: Any) -> list[tuple[str, str]]:
    """Flatten JSON into the path and value pairs of the `_last_checkpoint` checksum.

    Args:
        value: A JSON value.

    Returns:
        Pairs of a path, beginning with `+` unless empty, and a value.
    """
    if isinstance(value, dict):
        items = [(_quoted(str(key)), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(str(position), item) for position, item in enumerate(value)]
    else:
        return [("", _quoted(value) if isinstance(value, str) else json.dumps(value))]
    return [(f"+{key}{rest}", text) for key, item in items for rest, text in _canonical(item)]


def _quoted(text: str) -> str:
    return f'"{urllib.parse.quote(text, safe="-._~")}"'


def last_checkpoint_text(hint: dict[str, Any]) -> str:
    """Write `_last_checkpoint` with its checksum.

    Args:
        hint: The fields but the checksum.

    Returns:
        The content of the file.
    """
    pairs = sorted((path[1:], text) for path, text in _canonical(hint))
    canonical = ",".join(f"{path}={text}" for path, text in pairs)
    checksum = hashlib.md5(canonical.encode(), usedforsecurity=False).hexdigest()
    return json.dumps(hint | {"checksum": checksum}, separators=(",", ":"))
