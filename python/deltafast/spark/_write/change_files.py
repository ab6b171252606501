"""The change data files of a write that replaces some rows of files: the deleted rows and the inserted ones.

No change data files are needed if whole files are removed: readers derive the changes from the log. New rows are read
back from the files that were written, so that rows of a non-deterministic query and values that only the write
generated are reported correctly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltafast import _core
from deltafast._expr.render import to_spark_sql
from deltafast.spark._scan.physical_columns import plain_type
from deltafast.spark._scan.row_positions import Rows
from deltafast.spark._session.storage import core_access
from deltafast.spark._write.physical_schema import cast_or_filled, physical
from deltafast.spark._write.staging_folder import write_folder
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltafast._core_types import BoundTree
    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place

__all__ = ["KIND", "deleted_rows", "write_change_data"]

#: The column of the change data feed with the type of change.
KIND = "_change_type"


def write_change_data(
    session: Session,
    place: Place,
    deleted_frame: Any,
    columns: Columns,
    new: tuple[str, Any] | None,
    folder: str,
    options: Mapping[str, str],
) -> None:
    """Write the changes on the executors.

    Args:
        session: The session.
        place: The table.
        deleted_frame: The result of `deleted_rows`.
        columns: The table's columns after the write.
        new: The folder with the new rows, which Spark wrote, and their schema; None if they are reported elsewhere.
        folder: The folder for the changes, relative to the table's.
        options: Options of Spark's writer for the table's files.
    """
    from pyspark.sql import functions

    changed, partition = physical(deleted_frame, columns, functions, (KIND,))
    if new is not None and _has_files(place, new[0]):
        written = session.spark.read.schema(new[1]).parquet(f"{place.hadoop}/{new[0]}")
        changed = changed.unionByName(written.withColumn(KIND, functions.lit("insert")))
    write_folder(session, changed, partition, place, folder, options)


def deleted_rows(session: Session, place: Place, version: int, replaced: BoundTree, columns: Columns) -> Any:
    """Return the rows that a write deletes, as changes with the columns of the table's new schema.

    Args:
        session: The session.
        place: The table.
        version: The version that is read.
        replaced: The bound tree that is true for these rows.
        columns: The table's columns after the write.

    Raises:
        DeltaProtocolError: Spark's reader would not find some files of the table.
    """
    from pyspark.sql import functions

    rows = Rows(session, DeltaTable(place.uri, version=version, storage_options=place.options or None))
    frame = rows.frame(rows.listing(replaced), ()).where(to_spark_sql(replaced))
    before = {field["name"].lower(): field for field in rows.columns.fields}
    wanted = {field["name"]: plain_type(field["type"]) for field in columns.fields}
    return frame.select(*cast_or_filled(session, before, wanted, ()), functions.lit("delete").alias(KIND))


def _has_files(place: Place, folder: str) -> bool:
    """Return whether any files were written; Spark cannot read a folder that does not exist."""
    access = core_access(place)
    files, folders = _core.Files.open(access.uri, access.options).list(folder)
    return bool(files or folders)
