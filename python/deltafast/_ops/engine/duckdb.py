"""The embedded engine: DuckDB on a connection of its own, which spills to disk beyond its memory limit."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

import duckdb

from deltafast._core import ArrowStream
from deltafast._interop.duckdb_query import connect, interruptible
from deltafast._util.engine_interrupts import stopped_by

if TYPE_CHECKING:
    from collections.abc import Generator

    from deltafast._util.arrow import ArrowStreamExportable

__all__ = ["DuckDBEngine"]


class DuckDBEngine:
    """See `Engine`.

    Args:
        memory: Bytes of memory that DuckDB may use; its own choice if None.
        temporary: Bytes of temporary files that it may use; its own choice if None.
    """

    def __init__(self, memory: int | None = None, temporary: int | None = None) -> None:
        self._memory = memory
        self._temporary = temporary

    @contextmanager
    def join(self, source: ArrowStreamExportable, target: ArrowStreamExportable) -> Generator[ArrowStreamExportable]:
        """See `Engine.join`."""
        # DuckDB creates it on demand.
        folder = str(Path(tempfile.gettempdir()) / f"deltafast-join-{uuid4()}")
        settings = {
            "temp_directory": folder,
            "preserve_insertion_order": "false",
            # The size of a stream is unknown to DuckDB: the source is always the build side.
            "disabled_optimizers": "join_order,build_side_probe_side",
        }
        if self._memory is not None:
            # The least that DuckDB needs.
            settings["memory_limit"] = f"{max(self._memory, 64 << 20)}B"
        if self._temporary is not None:
            settings["max_temp_directory_size"] = f"{self._temporary}B"
        try:
            with connect(settings) as connection:
                pairs = interruptible(connection, lambda: _joined(connection, source, target))
                with stopped_by(connection.interrupt):
                    yield pairs
        except duckdb.Error:
            # DuckDB has only the messages of the streams' errors.
            for stream in (source, target):
                if isinstance(stream, ArrowStream):
                    stream.check()
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _joined(
    connection: duckdb.DuckDBPyConnection, source: ArrowStreamExportable, target: ArrowStreamExportable
) -> ArrowStreamExportable:
    """Return the pairs of rows with equal keys."""
    connection.from_arrow(source).create_view("source")
    connection.from_arrow(target).create_view("target")
    found = connection.sql("SELECT t.file, t.row, s.source_row FROM target t JOIN source s ON t.key = s.key")
    return cast("ArrowStreamExportable", found.to_arrow_reader())
