"""`writer="arrow"`: executors write the table's files by the core, straight to where they stay.

Each task answers what it wrote; the answers of the attempts that count are collected once and committed. Nothing is
renamed. What attempts leave that failed, no version names, and a vacuum takes it.
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

#: Rows that Spark hands over at a time.
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
    told: bool,
) -> list[str]:
    """Have executors write.

    Args:
        session: The session.
        rows: A frame of columns as the table has them, as `logical` makes it.
        columns: The table's columns.
        place: The table.
        table: The table's `schema` as text, `protocol` and `metadata`, how its columns are `mapped`, and `identities`
            that the rows have new values of.
        codec: How files are compressed; as the table says if None.
        most: Rows of a file at most; any number if 0.
        told: Whether the rows are also written as changes that insert them.

    Returns:
        What `TableWrite.run_written` takes.

    Raises:
        ConstraintViolatedError: A row breaks a rule of the table.
        InvalidArgumentError: An identity column has come to the end of its numbers.
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
        "told": told,
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
    """What a task does; `steps` are those of the identity columns that have new values."""

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
    """How files are encoded, as the core takes it; Spark's names of codecs in any case."""
    name: Any = {"NONE": "UNCOMPRESSED", "LZ4_RAW": "LZ4"}.get(codec.upper(), codec.upper())
    return writer_options(WriterProperties(compression=name))


def _bytes(text: str | None) -> int | None:
    found = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", (text or "").strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else None
