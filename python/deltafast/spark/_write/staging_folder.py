"""Rows -> Parquet files in a staging folder of the table, written by Spark's own writer.

Spark's commit protocol ensures that the output of only one attempt of each task is kept.
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

__all__ = ["gathered", "gathering", "of_format", "one_line_row_errors", "remove", "write_folder"]

_CONF = "spark.databricks.delta.optimizeWrite."
#: Minimum number of shuffle partitions by which rows are distributed before Spark coalesces them into tasks.
_TASKS = 200

_SETTINGS = {
    # Other timestamp types have no statistics in the footer; other modes rebase dates to the Julian calendar.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}


def of_format(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options by which Spark writes the Parquet format version of a table's properties."""
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
    """Write rows with Spark's writer.

    Args:
        session: The session.
        rows: A frame with physical columns, from `physical`.
        partition: Names of the partition columns in it.
        place: The table.
        folder: The folder's path relative to the table's.
        codec: The compression codec of files; Spark's default if None.
        options: Further options of the writer.

    Raises:
        ConstraintViolatedError: A row violates a constraint of the table.
        InvalidArgumentError: An identity column has no further values.
    """
    given = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    given |= ({"compression": codec} if codec else {}) | dict(options or {})
    with session.set(_SETTINGS), one_line_row_errors():
        rows.write.options(**given).partitionBy(*partition).parquet(f"{place.hadoop}/{folder}")


@contextmanager
def one_line_row_errors() -> Generator[None]:
    """Raise errors of rows that the table does not accept with a message of one line.

    Raises:
        ConstraintViolatedError: A row violates a constraint.
        InvalidArgumentError: An identity column has no further values.
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
    """Return the bytes of rows per task of an optimized write, as in delta-spark; None if writes are not optimized.

    Args:
        session: The session, whose settings override the table's.
        properties: The table's properties.
        option: The option of the write, which overrides both.
    """
    asked = option if option is not None else session.conf(_CONF + "enabled")
    if asked is None:
        asked = properties.get("delta.autoOptimize.optimizeWrite", properties.get("delta.autoOptimize"))
    if str(asked).lower() != "true":
        return None
    size = str(session.conf(_CONF + "binSize", "512"))
    return f"{size}m" if size.isdigit() else size


def gathering(session: Session, size: str | None) -> dict[str, str]:
    """Return the settings by which Spark repartitions rows by partition, in tasks of about this size; none for None."""
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
    """Remove the empty folders of a local folder whose files were deleted.

    A file that still exists is kept: a version may refer to it.
    """
    if place.folder is not None:
        for found, _, _ in os.walk(place.folder / folder, topdown=False):
            with contextlib.suppress(OSError):  # not empty
                os.rmdir(found)  # noqa: PTH106 - as `os.walk` gives it
