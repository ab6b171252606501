"""Rows that executors stage in a table's folder for one commit, as `format("deltafast")` writes.

A task writes an Arrow stream to a folder of the table; the commit passes those of successful tasks to the core, which
casts, checks, partitions and encodes the rows, and deletes the streams. So all features of the core's writer are
available, such as identity columns and constraints, at the cost of writing rows twice; `deltafast.spark.write` has the
executors write the table's own files. Until the commit nothing is visible to readers; no log entry refers to the files
of failed tasks, and a vacuum deletes them.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.fs as pafs

from deltafast.exceptions import InvalidArgumentError
from deltafast.filesystem import DeltaStorageHandler
from deltafast.spark._option_names import with_option_names
from deltafast.spark._session.storage import is_done
from deltafast.transaction import CommitProperties, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltafast._core_types import WriteOptions
    from deltafast.spark._session.storage import Place

__all__ = ["commit", "discard", "query_id", "stage", "text_of"]


def _files(place: Place) -> pafs.PyFileSystem:
    return pafs.PyFileSystem(DeltaStorageHandler(place.uri, place.options or None))


def stage(place: Place, folder: str, rows: Iterator[pa.RecordBatch]) -> str | None:
    """Write the rows of a task.

    Returns:
        The file, relative to the table's root; None if there are no rows.
    """
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return None
    path = f"{folder}/{uuid.uuid4()}.arrows"
    choice = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        _files(place).open_output_stream(path) as out,
        pa.ipc.new_stream(out, first.schema, options=choice) as opened,
    ):
        writer: Any = opened
        writer.write_batch(first)
        for batch in rows:
            writer.write_batch(batch)
    return path


def discard(place: Place, paths: Iterable[str | None]) -> None:
    """Delete files of tasks, ignoring those that do not exist."""
    held = [path for path in paths if path]
    if held:
        from deltafast import _core

        _core.Files.open(place.uri, place.options or None).delete(held)
        _remove_folders(place, {path.rpartition("/")[0] for path in held})


def _remove_folders(place: Place, folders: set[str]) -> None:
    if place.folder is not None:
        for folder in folders:
            try:
                (place.folder / folder).rmdir()
            except OSError:
                # A task whose output is not used is still writing there.
                continue


@with_option_names()
def commit(
    place: Place, schema: pa.Schema, paths: list[str], settings: dict[str, Any], replace_where: str | None, zone: str
) -> bool:
    """Commit the rows of the files as one version, and delete the files.

    Args:
        place: The table.
        schema: The schema of the rows.
        paths: The results of `stage`.
        settings: How to write: `app_transaction`, `user_metadata` and the core's `WriteOptions`.
        replace_where: With mode overwrite, the condition on the rows to replace.
        zone: The session's time zone.

    Returns:
        Whether a version was committed; false if the transaction was committed before.
    """
    from deltafast._handle import OpenOptions
    from deltafast._util.dialect import Dialect
    from deltafast._util.options import commit_options
    from deltafast._util.writer_properties import encoding
    from deltafast.writer import run_write

    settings = dict(settings)
    app: tuple[str, int] | None = settings.pop("app_transaction")
    metadata = settings.pop("user_metadata")
    try:
        if app is not None and is_done(place, *app):
            return False
        properties = CommitProperties(
            custom_metadata=None if metadata is None else {"userMetadata": metadata},
            app_transactions=None if app is None else [Transaction(*app)],
        )
        options: WriteOptions = {
            **cast("WriteOptions", settings),
            "has_predicate": replace_where is not None,
            "commit_options": commit_options(properties),
            "encoding": encoding(None, zone),
            "keys": [],
        }
        rows = pa.RecordBatchReader.from_batches(schema, _rows(place, schema, paths))
        opening = OpenOptions(place.options or None, time_zone=zone)
        run_write(place.uri, rows, options, opening, replace_where, dialect=Dialect.SPARK)
    finally:
        discard(place, paths)
    return True


def _rows(place: Place, schema: pa.Schema, paths: list[str]) -> Iterator[pa.RecordBatch]:
    files = _files(place)
    for path in paths:
        with files.open_input_stream(path) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield cast("Any", batch).cast(schema)


def text_of(place: Place, name: str) -> str:
    """Return the contents of a file of a folder.

    Raises:
        OSError: The file cannot be read.
    """
    with _files(place).open_input_stream(name) as source:
        return bytes(source.read()).decode()


def query_id(place: Place) -> str:
    """Return the id of a streaming query, which its checkpoint holds for its whole lifetime.

    Args:
        place: The checkpoint.

    Raises:
        InvalidArgumentError: There is no id.
    """
    try:
        return str(json.loads(text_of(place, "metadata"))["id"])
    except (OSError, ValueError, KeyError) as error:
        message = f"the checkpoint {place.uri} has no id of a query, which the commits are known by; give the option "
        message += "txnAppId: a name that only this query has"
        raise InvalidArgumentError(message) from error
