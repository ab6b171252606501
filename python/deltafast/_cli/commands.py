"""The commands that inspect and maintain a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltafast._cli import show
from deltafast._cli.opening import UsageError, column_names, is_watched
from deltafast._display import size_text
from deltafast._doctor.finding import FindingLevel
from deltafast._libraries import is_installed, require
from deltafast._util.values import from_epoch_ms

if TYPE_CHECKING:
    import pyarrow as pa

    from deltafast._cli.opening import CommonArguments
    from deltafast._core_types import VacuumOptions
    from deltafast._sql.query_result import QueryResult

__all__ = [
    "checkpoint",
    "doctor",
    "explain",
    "files",
    "head",
    "history",
    "info",
    "layout",
    "optimize",
    "sql",
    "vacuum",
]

#: Arguments of `sql` that are not tables.
_OF_SQL = {"storage_options", "commit_properties", "time_zone", "progress", "external_access"}


def info(common: CommonArguments) -> None:
    """Show schema, size, properties and features of a table."""
    opened = common.open()
    detail: dict[str, Any] = opened.detail()
    detail["version"] = opened.version()
    fields = [
        {
            "name": field.name,
            "type": _type_text(field),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
        }
        for field in opened.schema().fields
    ]
    if common.as_json:
        show.machine(detail | {"schema": fields})
        return
    said = {
        "table": detail["location"],
        "name": detail["name"],
        "description": detail["description"],
        "version": f"{detail['version']} of {show.text(detail['lastModified'])} UTC",
        "files": f"{detail['numFiles']:,}",
        "size": size_text(detail["sizeInBytes"]),
        "partitioned by": ", ".join(detail["partitionColumns"]),
        "clustered by": ", ".join(detail["clusteringColumns"]),
        "protocol": f"reader {detail['minReaderVersion']}, writer {detail['minWriterVersion']}",
        "features": ", ".join(detail["tableFeatures"]),
        # A property of any name keeps its own line.
        **{f"property {key}": value for key, value in detail["properties"].items()},
    }
    show.facts({name: value for name, value in said.items() if value})
    values = [[f["name"], f["type"], "" if f["nullable"] else "NOT NULL", f["comment"]] for f in fields]
    show.rows(["column", "type", "", "comment"], values)


def _type_text(field: Any) -> str:
    from deltafast._expr.types import sql_name, type_from_json
    from deltafast.schema import tree_of

    return sql_name(type_from_json(tree_of(field.type)))


def history(common: CommonArguments, limit: int | None) -> None:
    """Show the operations on a table, newest first."""
    entries = common.open().history(limit)
    if common.as_json:
        show.machine(entries)
        return
    names = ["version", "time", "operation", "parameters", "metrics"]
    values = [
        [
            entry.get("version"),
            None if entry.get("timestamp") is None else from_epoch_ms(entry["timestamp"]),
            entry.get("operation"),
            _pairs(entry.get("operationParameters")),
            _pairs(entry.get("operationMetrics"), brief=True),
        ]
        for entry in entries
    ]
    show.rows(names, values)


def _pairs(values: dict[str, Any] | None, *, brief: bool = False) -> str:
    """Format names and values, without empty values; `brief` leaves out zeros and times, too."""
    given = {key: value for key, value in (values or {}).items() if value not in (None, "", "[]", "{}")}
    if brief:
        given = {key: value for key, value in given.items() if value != "0" and not key.endswith("Ms")}
    return ", ".join(f"{key}={value}" for key, value in given.items())


def files(common: CommonArguments, where: str | None, limit: int) -> None:
    """Show the files of a table, with partition values, rows and deleted rows."""
    require("pyarrow")

    opened = common.open()
    parts = [f"partition.{name}" for name in opened.metadata().partition_columns]
    wanted = ["path", "size_bytes", "num_records", "deletion_vector.cardinality", *parts]
    found = opened.get_add_actions(flatten=True, columns=wanted, predicate=where).select(wanted)
    shown = ["path", "bytes", "rows", "deleted", *opened.metadata().partition_columns]
    _table(found.rename_columns(shown).slice(0, limit), common.as_json, more=found.num_rows - limit)


def head(common: CommonArguments, rows: int, columns: str | None, where: str | None) -> None:
    """Show some rows of a table."""
    opened = common.open()
    _table(opened.to_pyarrow_table(columns=column_names(columns), filters=where, limit=rows), common.as_json)


def sql(
    text: str,
    named: dict[str, str] | None,
    limit: int,
    external_access: bool,
    storage: dict[str, str] | None,
    as_json: bool,
) -> None:
    """Run one statement: Delta's SQL, or a DuckDB query.

    Tables are written as delta.`PLACE`, with a path or URL, or as a NAME that --table defines.
    """
    from deltafast._sql.run import sql as run_sql

    tables: dict[str, Any] = {**(named or {})}
    if taken := tables.keys() & _OF_SQL:
        message = f"a table cannot be called {min(taken)}"
        raise UsageError(message)
    watched = is_watched(as_json)
    reader = run_sql(text, storage_options=storage, progress=watched, external_access=external_access, **tables)
    if as_json:
        show.machine([row for batch in reader for row in batch.to_pylist()])
        return
    found, more = _first(reader, limit)
    if found.column_names:
        _table(found, False, more=more)
    else:
        show.line("done")


def _first(reader: QueryResult, limit: int) -> tuple[pa.Table, int]:
    """Return the first rows, and how many more were read (at most a batch)."""
    import pyarrow as pa

    batches: list[Any] = []
    rows = 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows > limit:
            break
    return pa.Table.from_batches(batches, reader.schema).slice(0, limit), rows - limit


def _table(found: pa.Table, as_json: bool, more: int = 0) -> None:
    if as_json:
        show.machine(found.to_pylist())
        return
    columns = [column.to_pylist() for column in found.columns]
    show.rows(found.column_names, zip(*columns, strict=True) if columns else [])
    if more > 0:
        show.line(f"... and more; --limit shows them (rows shown: {found.num_rows})")


def optimize(
    common: CommonArguments, where: str | None, columns: str | None, full: bool, purge: bool, target_size: int | None
) -> None:
    """Compact small files into large ones, cluster a clustered table, or Z-order a table."""
    if (columns is not None) + full + purge > 1 or (full and where is not None):
        message = "--z-order, --full and --purge exclude each other, --full and --where too"
        raise UsageError(message)
    opened, progress = common.open(), common.is_watched
    if full:
        metrics = opened.optimize.cluster(full=True, target_size=target_size, progress=progress)
    elif purge:
        metrics = opened.optimize.purge(where, target_size=target_size, progress=progress)
    elif columns is None:
        metrics = opened.optimize.compact(where, target_size, progress=progress)
    else:
        metrics = opened.optimize.z_order(column_names(columns) or [], where, target_size, progress=progress)
    if common.as_json:
        show.machine(metrics | {"version": opened.version()})
        return
    removed, added = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    done = f"{removed:,} files became {added:,}, in version {opened.version()}" if removed else "nothing to pack"
    show.line(done)


def vacuum(common: CommonArguments, dry_run: bool, hours: float | None, force: bool, lite: bool) -> None:
    """Delete files that no version needs any more."""
    from deltafast._handle import handle_of
    from deltafast._ops.vacuum import vacuum as delete_files

    opened = common.open()
    options: VacuumOptions = {"dry_run": dry_run, "enforce_retention": not force, "full": not lite}
    paths = delete_files(handle_of(opened), hours, options, progress=common.is_watched)
    if common.as_json:
        show.machine({"dry_run": dry_run, "files": paths})
        return
    for path in paths:
        show.line(path)
    show.line(f"{len(paths):,} files {'would be' if dry_run else 'were'} deleted", err=True)


def checkpoint(common: CommonArguments) -> None:
    """Write a checkpoint, so that readers need no older commits."""
    opened = common.open()
    opened.create_checkpoint(progress=common.is_watched)
    if common.as_json:
        show.machine({"version": opened.version()})
    else:
        show.line(f"checkpoint of version {opened.version()} written")


def doctor(common: CommonArguments, deep: bool) -> int:
    """Find defects of a table, and suggest remedies. Exits with 1 if there is a problem."""
    from deltafast.doctor import examine

    found = examine(common.table, common.storage, deep=deep)
    if common.as_json:
        show.machine([dataclasses.asdict(finding) for finding in found])
    else:
        show.findings(found, common.table)
    return 1 if any(finding.level is FindingLevel.PROBLEM for finding in found) else 0


def explain(
    common: CommonArguments, where: str | None, columns: str | None, footers: bool, min_pruning: float | None
) -> int:
    """Show which files and row groups a condition excludes, by what, and what would exclude more."""
    found = common.open().explain(where, column_names(columns), row_groups=footers)
    if common.as_json:
        show.machine(found.to_dict())
    else:
        show.lines(str(found))
    if min_pruning is None or 100 * found.pruning >= min_pruning:
        return 0
    show.problem(
        "error:", "red", f"the condition excludes {100 * found.pruning:.1f} % of the bytes, less than {min_pruning:g} %"
    )
    return 1


def layout(common: CommonArguments, output: str | None, versions: int) -> None:
    """Show the layout of a table: file sizes, partitions, overlap of bounds, deleted rows, over versions."""
    from deltafast.layout import measure

    if output is not None:
        _need_plots()
        _need_folder(output)
    found = measure(common.open(), versions=versions)
    if output is not None:
        from deltafast._layout.picture import draw

        draw(found, output)
    if common.as_json:
        show.machine(found.to_dict())
    elif output is None:
        show.layout(found)
    else:
        show.line(f"{output} written")


def _need_folder(output: str) -> None:
    """Refuse a picture in a folder that does not exist, before the layout is measured."""
    folder = Path(output).absolute().parent
    if not folder.is_dir():
        message = f"the picture {output} cannot be written: there is no folder {folder}"
        raise UsageError(message)


def _need_plots() -> None:
    if not is_installed("matplotlib"):
        message = (
            "pictures need matplotlib: pip install 'deltafast[layout]'; without --output the layout is shown as text"
        )
        raise UsageError(message)
