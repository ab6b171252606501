"""Rows -> Parquet files in a folder of the table that nobody else knows, written by Spark's own writer.

Spark's committer sees to it that only one attempt of each task counts.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deltafast.exceptions import ConstraintViolatedError, InvalidArgumentError
from deltafast.spark._write.identity_columns import ENDED
from deltafast.spark._write.physical_schema import BROKEN

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["gathered", "gathering", "of_format", "remove", "telling", "write_folder"]

_CONF = "spark.databricks.delta.optimizeWrite."
#: Heaps into which rows are thrown by their partition, before Spark makes tasks of them.
_TASKS = 200

_SETTINGS = {
    # Others have no statistics in their footers, or count days as Julius Caesar did.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}


def of_format(properties: Mapping[str, str]) -> dict[str, str]:
    """Options by which Spark writes the version of the Parquet format that a table's properties ask for."""
    major = properties.get("delta.parquet.format.version", "1").partition(".")[0].strip()
    return {"parquet.writer.version": "v2"} if major.isdecimal() and int(major) > 1 else {}


def write_folder(
    session: Session,
    rows: Any,
    partition: Sequence[str],
    place: Place,
    folder: str,
    codec: str | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Have Spark write.

    Args:
        session: The session.
        rows: A frame of columns as files have them, as `physical` makes it.
        partition: Names of the partition columns in it.
        place: The table.
        folder: The folder's path below the table's.
        codec: How files are compressed; Spark's default if None.
        options: Further options of the writer.

    Raises:
        ConstraintViolatedError: A row breaks a rule of the table.
        InvalidArgumentError: An identity column has come to the end of its numbers.
    """
    given = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    given |= ({"compression": codec} if codec else {}) | dict(options or {})
    with session.set(_SETTINGS), telling():
        rows.write.options(**given).partitionBy(*partition).parquet(f"{place.hadoop}/{folder}")


@contextmanager
def telling() -> Generator[None]:
    """Tell in one line why a row cannot be one of the table's.

    Raises:
        ConstraintViolatedError: It breaks a rule.
        InvalidArgumentError: An identity column has no value for it.
    """
    try:
        yield
    except Exception as error:
        text = str(error)
        for begin, kind in ((BROKEN, ConstraintViolatedError), (ENDED, InvalidArgumentError)):
            if begin in text:
                line = text[text.index(begin) :].splitlines()[0].partition(" SQLSTATE: ")[0]
                raise kind(line.removeprefix("deltafast: ")) from error
        raise


def gathered(session: Session, properties: Mapping[str, str | None], option: Any = None) -> str | None:
    """How many bytes of rows a task writes where a table's writes are optimized, as delta-spark has it; else None.

    Args:
        session: The session; what it is set to wins over the table.
        properties: The table's.
        option: What the write says, which wins over both.
    """
    asked = option if option is not None else session.conf(_CONF + "enabled")
    if asked is None:
        asked = properties.get("delta.autoOptimize.optimizeWrite", properties.get("delta.autoOptimize"))
    if str(asked).lower() != "true":
        return None
    size = str(session.conf(_CONF + "binSize", "512"))
    return f"{size}m" if size.isdigit() else size


def gathering(session: Session, size: str | None) -> dict[str, str]:
    """Settings by which Spark brings the rows of a partition together, in tasks of about this size; none for None."""
    if size is None:
        return {}
    tasks = max(int(session.conf("spark.sql.shuffle.partitions", "1") or 1), _TASKS)
    return {
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": size,
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(tasks),
        "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
    }


def remove(place: Place, folder: str) -> None:
    """Remove the empty folders that are left of a local folder whose files are deleted.

    A file that is still there stays: a version may name it.
    """
    if place.folder is not None:
        for found, _, _ in os.walk(place.folder / folder, topdown=False):
            with contextlib.suppress(OSError):  # not empty
                os.rmdir(found)  # noqa: PTH106 - as `os.walk` gives it
