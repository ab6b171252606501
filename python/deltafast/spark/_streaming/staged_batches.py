"""Rows that executors leave beside a table for one commit, as `format("deltafast")` writes.

A task leaves an Arrow stream in a folder of the table; the commit gives those that counted to the core, which casts,
checks, splits and encodes, and deletes them. So identity columns, constraints and all else that the core can write is
there, at the price of writing rows twice; `deltafast.spark.write` has the executors write the table's own files.
Until the commit no reader sees anything; what tasks leave that failed, no log names, and a vacuum takes it.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.fs as pafs

from deltafast.exceptions import InvalidArgumentError
from deltafast.filesystem import DeltaStorageHandler
from deltafast.spark._session.storage import is_done
from deltafast.transaction import CommitProperties, Transaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from deltafast.spark._session.storage import Place

__all__ = ["commit", "discard", "query_id", "stage", "text_of"]


def _files(place: Place) -> pafs.PyFileSystem:
    return pafs.PyFileSystem(DeltaStorageHandler(place.uri, place.options or None))


def stage(place: Place, folder: str, rows: Iterator[pa.RecordBatch]) -> str | None:
    """Write the rows of a task.

    Returns:
        The file, below the table's root; None where there are no rows.
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
    """Delete files of tasks, without an error for those that are gone."""
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
                # A task that does not count is still writing there.
                continue


def commit(
    place: Place, schema: pa.Schema, paths: list[str], settings: dict[str, Any], replace_where: str | None, zone: str
) -> bool:
    """Commit the rows of the files as one version, and delete the files.

    Args:
        place: The table.
        schema: That of the rows.
        paths: What `stage` returned.
        settings: How to write; `app_transaction`, `user_metadata` and what the core's `WriteOptions` knows.
        replace_where: With mode overwrite, what is replaced.
        zone: The session's time zone.

    Returns:
        Whether a version was made; not where the transaction was committed before.
    """
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
        settings |= {
            "has_predicate": replace_where is not None,
            "commit_options": commit_options(properties),
            "encoding": encoding(None, zone),
            "keys": [],
        }
        rows = pa.RecordBatchReader.from_batches(schema, _rows(place, schema, paths))
        run_write(place.uri, rows, settings, replace_where, zone, place.options or None, None, None)
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
    """A file of a folder.

    Raises:
        OSError: It cannot be read.
    """
    with _files(place).open_input_stream(name) as source:
        return bytes(source.read()).decode()


def query_id(place: Place) -> str:
    """The id of a streaming query, which its checkpoint holds for as long as it lives.

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
