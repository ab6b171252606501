"""`writer="arrow"`: executors write the table's files through the core, directly to their final location.

Each task returns the files that it wrote; the results of the successful attempts are collected once and committed.
Nothing is renamed. No version refers to the files of failed attempts, and a vacuum deletes them.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from deltafast._util.writer_properties import WriterProperties, writer_options
from deltafast.spark._session.executor_package import shipped
from deltafast.spark._session.session import quiet
from deltafast.spark._write.staging_folder import telling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["write_direct"]

#: Rows per batch that Spark passes to a task.
_ROWS = "65536"

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def write_direct(
    session: Session,
    rows: Any,
    columns: Columns,
    place: Place,
    table: dict[str, Any],
    codec: str | None,
    most: int,
    *,
    has_change_data: bool,
) -> list[str]:
    """Write the rows on the executors.

    Args:
        session: The session.
        rows: A frame with the table's columns, from `logical`.
        columns: The table's columns.
        place: The table.
        table: The table's `schema` as a string, `protocol` and `metadata`, the column mapping mode `mapped`, and the
            `identities` for which the rows have new values.
        codec: The compression codec of files; the table's if None.
        most: Maximum number of rows in a file; unlimited if 0.
        has_change_data: Whether the rows are also written as inserts of the change data feed.

    Returns:
        The argument of `TableWrite.run_written`.

    Raises:
        ConstraintViolatedError: A row violates a constraint of the table.
        InvalidArgumentError: An identity column has no further values.
    """
    properties: dict[str, str] = table["metadata"].get("configuration") or {}
    features = {*(table["protocol"].get("writerFeatures") or ())}
    options = {
        "partition_by": [field["name"] for field in columns.partition],
        "column_mapping": table["mapped"],
        "properties": properties,
        "materialize_partition_columns": "materializePartitionColumns" in features
        or any(properties.get(f"delta.enableIcebergCompatV{n}") == "true" for n in (1, 2))
        or (properties.get("delta.writePartitionColumnsToParquet") or "").lower() == "true",
        "writer_properties": {} if codec is None else _properties(codec),
        "target_file_size": _bytes(properties.get("delta.targetFileSize")),
        "most_rows": most or None,
        "has_change_data": has_change_data,
        "time_zone": session.zone,
    }
    steps = {identity["column"]: identity["step"] for identity in table["identities"]}
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": _ROWS}
    write = shipped(_writer(place.uri, table["schema"], options, dict(place.options), steps))
    with session.set(settings), telling(), quiet():
        answers = rows.mapInArrow(write, "answer string").collect()
    return [row.answer for row in answers]


def _writer(
    uri: str, schema: str, options: dict[str, Any], storage: dict[str, str], steps: dict[str, int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task; `steps` are those of the identity columns that have new values."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        from deltafast import _core

        compute: Any = pc
        last: dict[str, int] = {}

        def noted(batch: pa.RecordBatch) -> pa.RecordBatch:
            for column, step in steps.items():
                values = compute.min_max(batch.column(column)).as_py()
                ends = [values["max" if step > 0 else "min"], *([last[column]] if column in last else [])]
                last[column] = max(ends) if step > 0 else min(ends)
            return batch

        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        filled = (noted(batch) for batch in chain([first], batches) if batch.num_rows)
        stream = pa.RecordBatchReader.from_batches(first.schema, filled)
        answer = json.loads(_core.write_files(uri, schema, stream, json.dumps(options), storage or None))
        answer |= {"identities": last, "steps": steps}
        yield cast("Any", pa.RecordBatch).from_pydict({"answer": [json.dumps(answer)]})

    return write


def _properties(codec: str) -> dict[str, Any]:
    """Return the core's writer properties; Spark's names of codecs are case-insensitive."""
    name: Any = {"NONE": "UNCOMPRESSED", "LZ4_RAW": "LZ4"}.get(codec.upper(), codec.upper())
    return writer_options(WriterProperties(compression=name))


def _bytes(text: str | None) -> int | None:
    found = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", (text or "").strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else None
