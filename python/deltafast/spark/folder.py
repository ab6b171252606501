"""Rows -> Parquet files in a folder of the table that nobody else knows, written by Spark's own writer.

Spark's committer sees to it that only one attempt of each task counts.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltafast.exceptions import ConstraintViolatedError
from deltafast.spark.fitting import BROKEN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltafast.spark.session import Session
    from deltafast.spark.storage import Place

__all__ = ["remove", "write_folder"]

_SETTINGS = {
    # Others have no statistics in their footers, or count days as Julius Caesar did.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}


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
        rows: A frame of columns as files have them, as `fitted` makes it.
        partition: Names of the partition columns in it.
        place: The table.
        folder: The folder's path below the table's.
        codec: How files are compressed; Spark's default if None.
        options: Further options of the writer.

    Raises:
        ConstraintViolatedError: A row breaks a rule of the table.
    """
    given = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
    given |= ({"compression": codec} if codec else {}) | dict(options or {})
    try:
        with session.set(_SETTINGS):
            rows.write.options(**given).partitionBy(*partition).parquet(f"{place.hadoop}/{folder}")
    except Exception as error:
        text = str(error)
        if BROKEN not in text:
            raise
        line = text[text.index(BROKEN) :].splitlines()[0].partition(" SQLSTATE: ")[0]
        raise ConstraintViolatedError(line.removeprefix("deltafast: ")) from error


def remove(place: Place, folder: str) -> None:
    """Remove what is left of a local folder whose files are deleted."""
    if place.hadoop.startswith("file:"):
        shutil.rmtree(Path(place.uri) / folder, ignore_errors=True)
