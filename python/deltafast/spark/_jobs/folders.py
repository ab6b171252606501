"""The folders that a job writes rows and changes into; they are deleted unless a version refers to them."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any, Self

from deltafast import _core
from deltafast.exceptions import CommitUnknownError, DeltaError
from deltafast.spark._jobs.file_formats import file_format
from deltafast.spark._jobs.row_groups import copy_row_groups
from deltafast.spark._scan.row_positions import refuse
from deltafast.spark._write.change_files import KIND
from deltafast.spark._write.physical_schema import brought_together, physical
from deltafast.spark._write.staging_folder import gathered, gathering, of_format, remove, write_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from deltafast._core_types import TableRequirements
    from deltafast.spark._jobs.row_groups import Source
    from deltafast.spark._scan.physical_columns import Columns
    from deltafast.spark._scan.row_positions import Rows

__all__ = ["Folders"]


class Folders:
    """The output of a job; deletes it when left with an exception and nothing was committed.

    Args:
        rows: The version that the job reads.
        columns: The table's columns after the job.
        requirements: The core's requirements of the table.
    """

    def __init__(self, rows: Rows, columns: Columns, requirements: TableRequirements) -> None:
        self._rows, self._columns, self._requirements = rows, columns, requirements
        #: The folder with rows, relative to the table; None if no rows were written.
        self.rows: str | None = None
        #: The folder with change data.
        self.changes: str | None = None
        self._is_handed_over = False

    def write(self, frame: Any) -> None:
        """Write new rows: the table's columns and, if they are materialized, row id and commit version."""
        self.rows = _new_folder()
        gather = gathered(self._rows.session, self._rows.version.properties)
        self._write(frame, self.rows, self._rows.row_tracking_columns, gather)

    def write_changes(self, frame: Any) -> None:
        """Write changes: the table's columns and `_change_type`."""
        self.changes = f"_change_data/spark-{uuid.uuid4()}"
        self._write(frame, self.changes, (KIND,))

    def hand_over(self) -> tuple[str | None, str | None]:
        """Return both folders to be committed by the core.

        From then on a version may refer to their files: only the core knows which of them it may delete.
        """
        self._is_handed_over = True
        return self.rows, self.changes

    def copy(self, frame: Any, part: str, more: Sequence[str], arranged: Callable[[Any], Any]) -> None:
        """Write unchanged rows into one folder for each part.

        Args:
            frame: The table's columns, the row tracking columns, the part and more.
            part: The column with the number of the part; the partition values of a part are known.
            more: Other columns, which `arranged` uses; they are not written.
            arranged: Sends rows to their tasks, in order.
        """
        self._check()
        self.rows = self.rows or _new_folder()
        self._copy(frame, [part], more, arranged, self.rows)

    def copy_pieces(
        self, frame: Any, more: Sequence[str], arranged: Callable[[Any], Any], join: Callable[[str], None]
    ) -> None:
        """Write unchanged rows as the pieces of parts, one for each task, which exist only until they are joined.

        Args:
            frame: As for `copy`; the part is not needed.
            more: As for `copy`.
            arranged: As for `copy`.
            join: Copies the pieces in a folder into one folder for each part.
        """
        self._check()
        pieces = _new_folder()
        try:
            self._copy(frame, [], more, arranged, pieces)
            join(pieces)
        finally:
            self._delete(pieces)

    def copy_row_groups(
        self, name: str, part: str, sources: Sequence[tuple[int, Sequence[Source]]], sizes: Sequence[int]
    ) -> None:
        """Copy row groups into one folder for each part; as the function of this name."""
        self._check()
        self.rows = self.rows or _new_folder()
        copy_row_groups(self._rows.session, name, self._rows.place, self.rows, part, sources, sizes)

    def _copy(
        self, frame: Any, partition: Sequence[str], more: Sequence[str], arranged: Callable[[Any], Any], folder: str
    ) -> None:
        from pyspark.sql import functions

        session, place = self._rows.session, self._rows.place
        kept = (*self._rows.row_tracking_columns, *partition, *more)
        frame, _ = physical(frame, self._columns, functions, kept, partitions=False)
        written = len(frame.columns) - len(partition) - len(more)
        frame = arranged(frame)
        options = {"maxRecordsPerFile": "0"} | self._format()
        name = file_format(session, "LeadingColumnsFormat")
        if name is None:
            write_folder(session, frame.drop(*more), partition, place, folder, options)
        else:
            write_folder(session, frame, partition, place, folder, options | {"columns": str(written)}, name)

    def _check(self) -> None:
        if self._requirements["materializes_partition_columns"]:
            refuse("the table's files hold the partition columns, too")

    def _format(self) -> dict[str, str]:
        return of_format(self._rows.version.properties, self._rows.version.features)

    def _write(self, frame: Any, folder: str, more: tuple[str, ...], gather: str | None = None) -> None:
        from pyspark.sql import functions

        self._check()
        for field in self._columns.partition:
            if field["type"] == "binary":
                refuse(f"{field['name']!r} is a binary partition column")
        session, place = self._rows.session, self._rows.place
        frame, partition = physical(frame, self._columns, functions, more)
        with session.set(gathering(session, gather)):
            if gather is not None:
                frame = brought_together(frame, partition)
            write_folder(session, frame, partition, place, folder, self._format())

    def __enter__(self) -> Self:
        """Nothing is written yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Delete the output, unless a version may refer to it."""
        if error is None or isinstance(error, CommitUnknownError):
            return
        for folder in (self.rows, self.changes):
            if folder is not None and not self._is_handed_over:
                self._delete(folder)
            elif folder is not None:
                remove(self._rows.place, folder)

    def _delete(self, folder: str) -> None:
        """Delete a folder that no version refers to."""
        # VACUUM deletes what remains; the first error is the one to raise.
        with contextlib.suppress(DeltaError):
            _core.abandon_folders(self._rows.version.snapshot, [folder])
        remove(self._rows.place, folder)


def _new_folder() -> str:
    return f"spark-{uuid.uuid4()}"
