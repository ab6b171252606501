"""The commands that read rows and changes of a table, and add rows to it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltafast._cli import show
from deltafast._cli.opening import UsageError, column_names
from deltafast._delta_keys import ENABLE_CHANGE_DATA_FEED
from deltafast.exceptions import TableNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    import pyarrow as pa

    from deltafast._cli.opening import CommonArguments
    from deltafast._interop.record_batch_reader import RecordBatchReader
    from deltafast.table import DeltaTable

__all__ = ["append", "diff", "export", "merge", "tail"]


#: Formats of files with rows, by suffix, as `pyarrow.dataset` calls them.
class FileFormat(StrEnum):
    """The format of a file that rows are written to."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    IPC = "ipc"


_FORMATS = {
    ".parquet": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
    ".arrow": FileFormat.IPC,
    ".feather": FileFormat.IPC,
}


def diff(common: CommonArguments, older: int, newer: int) -> None:
    """Show what changed between two versions: columns, properties, features, files and, by the change feed, rows."""
    before, after = (common._replace(version=version).open() for version in (older, newer))
    facts = [_facts(before), _facts(after)]
    names = list(dict.fromkeys([*facts[0], *facts[1]]))
    changed = {
        name: [facts[0].get(name), facts[1].get(name)] for name in names if facts[0].get(name) != facts[1].get(name)
    }
    changes = _changed_rows(after, older, newer)
    if common.as_json:
        show.machine({"older": older, "newer": newer, "changed": changed, "rows": changes})
        return
    show.rows(["", f"version {older}", f"version {newer}"], [[name, *values] for name, values in changed.items()])
    if changes is None:
        show.line("the table has no change data feed for these versions: rows cannot be compared", err=True)
    else:
        show.rows(["change", "rows"], list(changes.items()))


def _facts(table: DeltaTable) -> dict[str, Any]:
    """Return all of a version that can be compared, by name."""
    from deltafast._sql.ddl import sql_type

    detail = table.detail()
    columns = {}
    for field in json.loads(table.schema().to_json())["fields"]:
        facts = {key: value for key, value in field["metadata"].items() if not key.startswith("delta.columnMapping.")}
        text = f"{sql_type(field['type'])}{'' if field['nullable'] else ' NOT NULL'}"
        columns[f"column {field['name']}"] = f"{text} {json.dumps(facts, ensure_ascii=False)}" if facts else text
    return {
        **columns,
        **{f"property {key}": value for key, value in detail["properties"].items()},
        "description": detail["description"],
        "partitioned by": detail["partitionColumns"],
        "clustered by": detail["clusteringColumns"],
        "features": detail["tableFeatures"],
        "files": detail["numFiles"],
        "bytes": detail["sizeInBytes"],
    }


def _changed_rows(table: DeltaTable, older: int, newer: int) -> dict[str, int] | None:
    """Return the number of changes of each type after `older`; None where the feed was not recorded."""
    from deltafast.exceptions import ChangeDataNotRecordedError

    if newer <= older:
        return {}
    counts: dict[str, int] = {}
    try:
        for batch in table.load_cdf(older + 1, newer, columns=["_change_type"]):
            for pair in cast("Any", batch).column(0).value_counts().to_pylist():
                counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
    except ChangeDataNotRecordedError:
        return None
    return counts


def tail(
    common: CommonArguments, starting_version: int | None, where: str | None, follow: bool, interval: float
) -> None:
    """Show changed rows: of the newest version, or from a version on; with --follow until Ctrl-C.

    The rows are those of the change data feed, or without one those that commits append. With --json each row is one
    line.
    """
    opened = common.open()
    feed = opened.metadata().configuration.get(ENABLE_CHANGE_DATA_FEED, "").lower() == "true"
    start = opened.version() if starting_version is None else starting_version
    cursor: Any = None
    head: list[str] | None = None
    while True:
        first: Any = start if cursor is None else None
        changes = opened.stream_changes(
            cursor, change_data_feed=feed, starting_version=first, on_change="skip", predicate=where
        )
        for change in changes:
            for batch in change.rows:
                head = _print_rows(batch, head, common.as_json)
            cursor = change.cursor
        sys.stdout.flush()
        if not follow:
            return
        time.sleep(interval)
        opened.update_incremental()


def _print_rows(batch: pa.RecordBatch, head: list[str] | None, as_json: bool) -> list[str]:
    """Print rows as lines, below the names of their columns where these are new; returns the names."""
    names = batch.schema.names
    rows = batch.to_pylist()
    if as_json:
        for row in rows:
            show.machine(row)
    elif rows:
        if names != head:
            show.cells(names)
        for row in rows:
            show.cells(map(show.text, row.values()))
    return names if rows else head or []


def export(common: CommonArguments, output: str, columns: str | None, where: str | None, force: bool) -> None:
    """Write rows to a file: .parquet, .csv, .jsonl, .arrow or .feather; `-` is CSV on standard output.

    The file is complete when it appears under its name.
    """
    opened = common.open()
    rows = opened.scan(columns=column_names(columns), predicate=where, progress=common.is_watched and output != "-")
    if output == "-":
        if common.as_json:
            message = "--json describes the file, which standard output is not; give a file"
            raise UsageError(message)
        _write(FileFormat.CSV, rows, sys.stdout.buffer)
        return
    target = Path(output)
    kind = _format(target)
    if target.exists() and not force:
        message = f"{output} exists; --force replaces it"
        raise UsageError(message)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            count = _write(kind, rows, file)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if common.as_json:
        show.machine({"file": output, "rows": count, "version": opened.version()})
    else:
        show.line(f"{count:,} rows of version {opened.version()} written to {output}")


def _format(file: Path) -> FileFormat:
    kind = _FORMATS.get(file.suffix.lower())
    if kind is None:
        message = f"{file} has none of the suffixes {', '.join(_FORMATS)}"
        raise UsageError(message)
    return kind


def _write(kind: FileFormat, rows: RecordBatchReader, file: Any) -> int:
    """Write rows batch by batch; returns their number.

    Raises:
        UsageError: The format has no such type.
    """
    import pyarrow as pa

    count = 0
    try:
        with _writer(kind, rows.schema, file) as write:
            for batch in rows:
                write(batch)
                count += batch.num_rows
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        message = f"the rows cannot be written as {kind}: {error}"
        raise UsageError(message) from error
    return count


@contextlib.contextmanager
def _writer(kind: FileFormat, schema: pa.Schema, file: Any) -> Generator[Callable[[pa.RecordBatch], Any]]:
    """Give the function that writes a batch."""
    if kind is FileFormat.JSON:

        def write(batch: pa.RecordBatch) -> None:
            for row in batch.to_pylist():
                file.write(json.dumps(show.plain(row), ensure_ascii=False, allow_nan=False).encode() + b"\n")

        yield write
    elif kind is FileFormat.PARQUET:
        from pyarrow import parquet

        with parquet.ParquetWriter(file, schema) as writer:
            yield writer.write_batch
    else:
        from pyarrow import csv, ipc

        opened: Any = csv.CSVWriter(file, schema) if kind is FileFormat.CSV else ipc.RecordBatchFileWriter(file, schema)
        with opened as writer:
            yield writer.write


def append(common: CommonArguments, files: list[str], create: bool, merge_schema: bool) -> None:
    """Append the rows of files (Parquet, CSV, JSON lines, Arrow) in one commit."""
    from deltafast.writer import write_deltalake

    rows = _rows_of(files)
    mode: Any = "merge" if merge_schema else None
    try:
        opened = common.open()
    except TableNotFoundError:
        if not create:
            raise
        write_deltalake(common.table, rows, storage_options=common.storage, progress=common.is_watched)
        opened = common.open()
        metrics = dict(opened.history(1)[0].get("operationMetrics") or {})
    else:
        metrics = opened.append(rows, schema_mode=mode, progress=common.is_watched)
    _report(metrics, opened, common.as_json)


def merge(common: CommonArguments, files: list[str], keys: str, merge_schema: bool) -> None:
    """Update the rows that have the keys of a row of files, and insert the other rows of the files."""
    opened = common.open()
    metrics = opened.upsert(
        _rows_of(files), column_names(keys) or [], merge_schema=merge_schema, progress=common.is_watched
    )
    _report(metrics, opened, common.as_json)


def _rows_of(files: Iterable[str]) -> Any:
    """Return the rows of files of one format, streamed."""
    import pyarrow.dataset

    paths = [Path(file) for file in files]
    kinds = {_format(path) for path in paths}
    if len(kinds) > 1:
        message = f"the files have several formats ({', '.join(sorted(kinds))}); append them one after the other"
        raise UsageError(message)
    for path in paths:
        if not path.is_file():
            message = f"there is no file {path}"
            raise UsageError(message)
    dataset: Any = pyarrow.dataset
    try:
        return dataset.dataset([str(path) for path in paths], format=kinds.pop()).scanner().to_reader()
    except pyarrow.ArrowException as error:
        message = f"{', '.join(map(str, paths))} cannot be read: {error}"
        raise UsageError(message) from error


def _report(metrics: dict[str, Any], opened: DeltaTable, as_json: bool) -> None:
    if as_json:
        show.machine(metrics | {"version": opened.version()})
    else:
        show.facts({"version": opened.version(), **metrics})
