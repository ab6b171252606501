"""`writer="arrow"`: executors write the table's files by the core, straight to where they stay.

Each task answers what it wrote; the answers of the attempts that count are collected once and committed. Nothing is
renamed, and identity columns are given values here: a task has its own of every `_TASKS`, so that no two give the same.
What attempts leave that failed, no version names, and a vacuum takes it.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from deltafast.exceptions import InvalidArgumentError
from deltafast.spark.folder import gathering, telling
from deltafast.spark.session import quiet
from deltafast.writer import WriterProperties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from deltafast.spark.columns import Columns
    from deltafast.spark.session import Session
    from deltafast.spark.storage import Place

__all__ = ["write_direct"]

#: Tasks of a write that gives values of identity columns, at most; values lie as many steps apart.
_TASKS = 1000
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
    gather: str | None,
) -> list[str]:
    """Have executors write.

    Args:
        session: The session.
        rows: A frame of columns as the table has them, as `logical` makes it.
        columns: The table's columns.
        place: The table.
        table: The table's `schema` as text, `protocol` and `metadata`, and how its columns are `mapped`.
        codec: How files are compressed; as the table says if None.
        gather: As for `write_folder`.

    Returns:
        What `TableWrite.run_written` takes.

    Raises:
        ConstraintViolatedError: A row breaks a rule of the table.
        InvalidArgumentError: Executors lack deltafast.
    """
    properties: dict[str, str] = table["metadata"].get("configuration") or {}
    features = {*(table["protocol"].get("writerFeatures") or ())}
    options = {
        "partition_by": [field["name"] for field in columns.partition],
        "column_mapping": table["mapped"],
        "properties": properties,
        "materialize_partition_columns": "materializePartitionColumns" in features
        or any(properties.get(f"delta.enableIcebergCompatV{n}") == "true" for n in (1, 2)),
        "writer_properties": {} if codec is None else _properties(codec),
        "target_file_size": _bytes(properties.get("delta.targetFileSize")),
        "time_zone": session.zone,
    }
    identities = [_identity(field) for field in columns.fields if "delta.identity.start" in field.get("metadata", {})]
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": _ROWS}
    names = [field["name"] for field in columns.partition if field["name"] in rows.columns]
    with session.set(settings | ({} if gather is None else gathering(session, gather))), telling(), quiet():
        if gather is not None:
            from pyspark.sql import functions

            rows = rows.hint("rebalance", *(functions.col(f"`{name.replace('`', '``')}`") for name in names))
        if identities:
            rows = rows.coalesce(_TASKS)
        write = _writer(place.uri, table["schema"], options, dict(place.options), identities)
        try:
            answers = rows.mapInArrow(write, "answer string").collect()
        except Exception as error:
            if "No module named 'deltafast'" not in str(error):
                raise
            message = (
                "the executors' Python has no deltafast, which writer='arrow' needs: install it on all of them, or "
            )
            message += "write with writer='jvm'"
            raise InvalidArgumentError(message) from error
    return [row.answer for row in answers]


def _writer(
    uri: str, schema: str, options: dict[str, Any], storage: dict[str, str], identities: list[dict[str, Any]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        from deltafast import _core

        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        task = cast("Any", TaskContext.get()).partitionId()
        own = [
            known | {"next": known["next"] + known["step"] * task, "step": known["step"] * _TASKS}
            for known in identities
        ]
        stream = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        given = json.dumps(options | {"identities": own})
        answer = json.loads(_core.write_files(uri, schema, stream, given, storage or None))
        answer["steps"] = {known["column"]: known["step"] for known in identities}
        yield cast("Any", pa.RecordBatch).from_pydict({"answer": [json.dumps(answer)]})

    return write


def _identity(field: dict[str, Any]) -> dict[str, Any]:
    """An identity column as the core's writer takes it."""
    of = field["metadata"]
    step = of["delta.identity.step"]
    mark = of.get("delta.identity.highWaterMark")
    return {
        "column": field["name"],
        "next": of["delta.identity.start"] if mark is None else mark + step,
        "step": step,
        "allow_explicit": bool(of.get("delta.identity.allowExplicitInsert", False)),
    }


def _properties(codec: str) -> dict[str, Any]:
    """How files are encoded, as the core takes it; Spark's names of codecs in any case."""
    name: Any = {"NONE": "UNCOMPRESSED", "LZ4_RAW": "LZ4"}.get(codec.upper(), codec.upper())
    return WriterProperties(compression=name)._options()


def _bytes(text: str | None) -> int | None:
    found = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", (text or "").strip().lower())
    return int(found[1]) * _UNITS[found[2]] if found else None
