"""`writer="arrow"`: executors write the table's files through the core, directly to their final location.

Each task returns the files that it wrote; the results of the successful attempts are collected once and committed.
Nothing is renamed. No version refers to the files of failed attempts, and a vacuum deletes them.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from deltafast import _core
from deltafast._delta_keys import TARGET_FILE_SIZE
from deltafast._util.writer_properties import WriterProperties, writer_options
from deltafast.spark._scan.physical_columns import mapping_mode
from deltafast.spark._session.executor_package import shipped
from deltafast.spark._session.session import quiet
from deltafast.spark._session.storage import core_access
from deltafast.spark._write.row_errors import raised_by_rows, sent_by_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from deltafast import _core_types
    from deltafast._core_types import FileWriteOptions, WriteTarget, WrittenFiles
    from deltafast._util.column_mapping import MappingMode
    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["FileSettings", "mapping_of", "only_core_writes", "write_direct"]

#: Rows per batch that Spark passes to a task.
_ROWS = "65536"


class FileSettings(NamedTuple):
    """How files are written."""

    #: The compression codec; the table's if None.
    codec: str | None
    #: Maximum number of rows in a file; unlimited if 0.
    most_rows: int
    #: Whether the rows are also written as inserts of the change data feed.
    has_change_data: bool


def mapping_of(target: WriteTarget) -> MappingMode:
    """Return the column mapping mode of a table after a write."""
    protocol, properties = target["protocol"], target["metadata"]["configuration"]
    return mapping_mode(protocol["minReaderVersion"], protocol.get("readerFeatures"), properties)


def write_direct(
    session: Session, rows: Any, columns: Columns, place: Place, plan: _core.TableWrite, settings: FileSettings
) -> list[WrittenFiles]:
    """Write the rows on the executors.

    Args:
        session: The session.
        rows: A frame with the table's columns, from `logical`.
        columns: The table's columns.
        place: The table.
        plan: The core's plan; the rows have new values for the `identities` of its target.
        settings: How files are written.

    Returns:
        The files of each task, for `TableWrite.run_written`.

    Raises:
        ConstraintViolatedError: A row violates a constraint of the table.
        InvalidArgumentError: An identity column has no further values.
    """
    target = plan.target
    properties = target["metadata"]["configuration"]
    options: FileWriteOptions = {
        "partition_by": [field["name"] for field in columns.partition],
        "column_mapping": mapping_of(target).value,
        "properties": properties,
        "materialize_partition_columns": target["materializes_partition_columns"],
        "writer_properties": {} if settings.codec is None else _properties(settings.codec),
        "target_file_size": _core.parse_byte_size(properties.get(TARGET_FILE_SIZE, "")),
        "most_rows": settings.most_rows or None,
        "has_change_data": settings.has_change_data,
        "time_zone": session.zone,
    }
    steps = {identity["column"]: identity["step"] for identity in target["identities"]}
    batch_size = {"spark.sql.execution.arrow.maxRecordsPerBatch": _ROWS}
    access = core_access(place)
    write = shipped(_writer(access.uri, plan.schema, options, access.options or {}, steps))
    with session.set(batch_size), raised_by_rows(), quiet():
        found = rows.mapInArrow(write, "written string").collect()
    return [json.loads(row.written) for row in found]


def only_core_writes(target: WriteTarget, schema: dict[str, Any]) -> str | None:
    """Return why Spark's own writer cannot write the files of a table; None if it can.

    Args:
        target: The table after the write.
        schema: Its schema.
    """
    partition = target["metadata"]["partitionColumns"]
    if partition and target["materializes_partition_columns"]:
        return "the table's data files also hold the partition columns, which Spark's writer leaves out"
    binary = [field["name"] for field in schema["fields"] if field["name"] in partition and field["type"] == "binary"]
    return f"Spark's writer cannot write the binary partition column `{binary[0]}`" if binary else None


def _writer(
    uri: str, schema: str, options: FileWriteOptions, storage: dict[str, str], steps: dict[str, int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task, whose result is one row with the JSON text of `WrittenFiles`.

    `steps` are those of the identity columns that have new values.
    """

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
        with sent_by_task():
            written = _core.write_files(uri, schema, stream, options, storage or None)
        written["identities"], written["steps"] = last, steps
        yield cast("Any", pa.RecordBatch).from_pydict({"written": [json.dumps(written)]})

    return write


def _properties(codec: str) -> _core_types.WriterProperties:
    """Return the core's writer properties; Spark's names of codecs are case-insensitive."""
    name: Any = {"NONE": "UNCOMPRESSED", "LZ4_RAW": "LZ4"}.get(codec.upper(), codec.upper())
    return writer_options(WriterProperties(compression=name))
