"""Rows of a version with their positions: the number of the file and the row's position in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from deltafast._handle import handle_of
from deltafast._util.column_mapping import MappingMode
from deltafast.exceptions import DeltaProtocolError
from deltafast.spark._scan.path_scan import PathsUnavailableError
from deltafast.spark._scan.physical_columns import field_of, quoted
from deltafast.spark._scan.reader import physical_rows, row_tracking
from deltafast.spark._scan.snapshot import Listing, Version
from deltafast.spark._session.storage import place_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from deltafast._core_types import BoundTree
    from deltafast.spark._session.session import Session
    from deltafast.table import DeltaTable

__all__ = ["FILE", "ROW", "Rows", "refuse"]

#: Columns in addition to the table's: a file's number in the listing, a row's position in the file.
FILE, ROW = "__deltafast_file_number", "__deltafast_row"

_ROW_TRACKING = ("row_id", "row_commit_version")


def refuse(what: str, feature: str | None = None) -> NoReturn:
    """Reject a table that only the core can change."""
    message = f"{what}, which Spark jobs cannot do: set spark.deltafast.engine to driver, or use deltafast.DeltaTable"
    raise DeltaProtocolError(message, feature=feature)


class Rows:
    """The rows of a version, to be read by Spark.

    Args:
        session: The session.
        table: A handle on the version.
        row_tracking_columns: The physical names of the columns that materialize a row's id and commit version; empty
            if they are not materialized.
    """

    def __init__(self, session: Session, table: DeltaTable, row_tracking_columns: Sequence[str] = ()) -> None:
        self.session, self.row_tracking_columns = session, tuple(row_tracking_columns)
        self.place = place_of(session, handle_of(table).given_uri, handle_of(table).storage_options)
        self.version = Version(session, self.place, table)
        self.columns = self.version.columns
        if self.version.mapping is MappingMode.ID and not self.version.snapshot.ids_agree():
            refuse("field ids and physical names of some files of the table disagree", "columnMapping")

    def listing(self, tree: BoundTree | None, only: Collection[str] | None = None) -> Listing:
        """Return the numbered files that may hold rows for which a bound tree is true; with `only`, of these paths."""
        import pyarrow as pa

        found = self.version.listing(tree, _ROW_TRACKING if self.row_tracking_columns else (), only=only)
        numbers = pa.array(range(len(found.files)), pa.int32())
        files = found.files.append_column(FILE, numbers)
        return found._replace(files=files, constants=[*found.constants, field_of(FILE, "integer")])

    def frame(self, listing: Listing, constants: Sequence[str] | None = None) -> Any:
        """Return the table's columns and, if they are materialized, row id and commit version.

        Args:
            listing: The files.
            constants: Constants of the listing to add; `FILE` and `ROW` if None.
        """
        from pyspark.sql import functions

        data = self.columns.physical(self.columns.data)
        added: list[Any] = [functions.col(name) for name in (FILE,) if constants is None]
        added += (
            [functions.col("_metadata.row_index").alias(ROW)] if constants is None else map(functions.col, constants)
        )
        for name, column in zip(_ROW_TRACKING, self.row_tracking_columns, strict=False):
            data.append(field_of(column, "long"))
            constant = self.version.materialized(name)[1]
            added.append(row_tracking(name, column, constant).alias(column))
        try:
            frame = physical_rows(self.version, listing, data)
        except PathsUnavailableError as error:
            refuse(error.reason)
        return frame.select(*self.columns.project(pads=False), *added)

    def names(self) -> list[str]:
        """Return the table's columns, quoted."""
        return [quoted(field["name"]) for field in self.columns.fields]
