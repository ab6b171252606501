"""Rows -> Parquet files in a staging folder of the table, written by Spark's own writer.

Spark's commit protocol ensures that the output of only one attempt of each task is kept.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from deltafast.spark._session.file_options import file_options
from deltafast.spark._write.row_errors import raised_by_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["gathered", "gathering", "of_format", "remove", "write_folder"]

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
_UNSHREDDED = {"spark.sql.variant.writeShredding.enabled": "false"}

#: The option by which Spark, from 4.1 on, shreds variants according to their values; its default is true from 4.2 on.
_INFERS_SHREDDING = "spark.sql.variant.inferShreddingSchema"
_SHREDDING = frozenset(("variantShredding", "variantShredding-preview"))


def of_format(
    properties: Mapping[str, str | None], features: Collection[str], codec: str | None = None
) -> dict[str, str]:
    """Return the options of Spark's writer for the data files of a table.

    Args:
        properties: The table's properties: compression codec, version of the Parquet format, shredding of variants.
        features: The features that its protocol supports.
        codec: The codec of the write, which overrides the table's; with neither, it is Spark's default.
    """
    found = {_INFERS_SHREDDING: str(_shreds(properties, features)).lower()}
    major = (properties.get("delta.parquet.format.version") or "1").partition(".")[0].strip()
    if major.isdecimal() and int(major) > 1:
        found["parquet.writer.version"] = "v2"
    codec = codec or properties.get("delta.parquet.compression.codec")
    return found | ({"compression": codec} if codec else {})


def _shreds(properties: Mapping[str, str | None], features: Collection[str]) -> bool:
    """Return whether writers may shred variants: other readers of the table do not expect it."""
    asked = properties.get("delta.enableVariantShredding") or "false"
    return asked.lower() == "true" and not _SHREDDING.isdisjoint(features)


def write_folder(
    session: Session,
    rows: Any,
    partition: Sequence[str],
    place: Place,
    folder: str,
    options: Mapping[str, str],
    name: str = "parquet",
) -> None:
    """Write rows with Spark's writer.

    Args:
        session: The session.
        rows: A frame with physical columns, from `physical`.
        partition: Names of the partition columns in it.
        place: The table.
        folder: The folder's path relative to the table's; files in it are kept.
        options: Options of the writer: those of `of_format` and others.
        name: The name of the format.

    Raises:
        ConstraintViolatedError: A row violates a constraint of the table.
        InvalidArgumentError: An identity column has no further values, or a partition value is the text for null in
            folder names.
    """
    settings = _SETTINGS
    if options[_INFERS_SHREDDING] == "false" and '"variant"' in rows.schema.json():
        # Spark shreds by a schema of the session, too, which the option does not override.
        settings = _SETTINGS | _UNSHREDDED
    given = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false", **options}
    given |= file_options(session, place, "READ_WRITE")
    with session.set(settings), raised_by_rows():
        writer = rows.write.mode("append").options(**given).partitionBy(*partition)
        writer.format(name).save(f"{place.hadoop}/{folder}")


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
