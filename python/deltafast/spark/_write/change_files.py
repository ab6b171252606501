"""The change files of a write that replaces some rows of files: the rows that end, and the new ones.

Where whole files end no change files are needed: readers take the feed from the log. New rows are read back as they
were written, so that rows which come out otherwise each time, and values that only the writing gave, are told right.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._expr.render import to_spark_sql
from deltafast.spark._scan.physical_columns import plain_type
from deltafast.spark._scan.row_positions import Rows
from deltafast.spark._session.session import ANSI
from deltafast.spark._write.physical_schema import cast_or_filled, physical
from deltafast.spark._write.staging_folder import write_folder
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["KIND", "tell"]

#: The column of a feed that says what happened to a row.
KIND = "_change_type"


def tell(
    session: Session,
    place: Place,
    version: int,
    replaced: Any,
    columns: Columns,
    new: tuple[str, Any] | None,
    folder: str,
    codec: str | None,
) -> None:
    """Have executors write the changes.

    Args:
        session: The session.
        place: The table.
        version: The version that is written to.
        replaced: The bound tree, as parsed JSON, that is true for the rows that end.
        columns: The table's columns after the write.
        new: The folder with the new rows, which Spark wrote, and their schema; None where others tell of them.
        folder: Where the changes go, below the table's folder.
        codec: How files are compressed.

    Raises:
        DeltaProtocolError: Spark's reader would not find some files of the table.
    """
    from pyspark.sql import functions

    with session.set(ANSI):
        told, partition = physical(_ended(session, place, version, replaced, columns), columns, functions, (KIND,))
        if new is not None and _has_files(place, new[0]):
            written = session.spark.read.schema(new[1]).parquet(f"{place.hadoop}/{new[0]}")
            told = told.unionByName(written.withColumn(KIND, functions.lit("insert")))
        write_folder(session, told, partition, place, folder, codec)


def _ended(session: Session, place: Place, version: int, replaced: Any, columns: Columns) -> Any:
    """The rows that end, with the columns that the table has from now on."""
    from pyspark.sql import functions

    tree = json.dumps(replaced)
    rows = Rows(session, DeltaTable(place.uri, version=version, storage_options=place.options or None))
    frame = rows.frame(rows.listing(tree), ()).where(to_spark_sql(tree))
    before = {field["name"].lower(): field for field in rows.columns.fields}
    wanted = {field["name"]: plain_type(field["type"]) for field in columns.fields}
    return frame.select(*cast_or_filled(session, before, wanted, ()), functions.lit("delete").alias(KIND))


def _has_files(place: Place, folder: str) -> bool:
    """Whether anything was written; Spark reads no folder that is not there."""
    files, folders = _core.Files.open(place.uri, place.options or None).list(folder)
    return bool(files or folders)
