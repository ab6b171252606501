"""The layout of a table: file sizes, partitions, bounds of files and their overlap, deleted rows, and their history.

The result is plain data, computed by DuckDB from the list of files; `deltafast._layout.picture` draws it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltafast._handle import handle_of
from deltafast._layout.layout_data import LayoutData, Overlap, Part, Ranges, Scale, Size, State
from deltafast._libraries import names_missing
from deltafast.exceptions import DeltaError, MissingLibraryError
from deltafast.table import DeltaTable, pinned

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["Layout", "measure"]

#: Largest number of columns whose overlap is measured.
MAX_COLUMNS = 32
#: Largest number of columns whose ranges are listed, and of files in each list.
MAX_RANGES, MAX_RANGE_FILES = 4, 400
#: Size in bytes below which a file is small.
SMALL = 16 << 20


@dataclass(frozen=True)
class Layout(LayoutData):
    """The layout of one version of a table; a notebook shows its picture.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> from deltafast.layout import measure
        >>> write_deltalake("towns", {"id": [1, 2]})
        >>> layout = measure(DeltaTable("towns"))
        >>> layout.files, [version.version for version in layout.versions]
        (1, [0])
    """

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        from deltafast._layout.picture import svg

        try:
            return {"text/plain": repr(self), "image/svg+xml": svg(self)}
        except MissingLibraryError:
            return {"text/plain": repr(self)}


@names_missing
def measure(table: DeltaTable, *, versions: int = 20) -> Layout:
    """Measure the layout of the version that a handle points at.

    Args:
        table: The table.
        versions: Number of versions up to this one to include, spread over those that are still readable.

    Returns:
        The layout; sizes in bytes.

    Raises:
        TypeError: The table is not a `DeltaTable`.
        DeltaError: As `DeltaTable.get_add_actions`.
        MissingLibraryError: DuckDB is not installed.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> from deltafast.layout import measure
        >>> write_deltalake("cities", {"id": [1, 2]})
        >>> measure(DeltaTable("cities")).files
        1
    """
    from deltafast._interop.duckdb_query import connect

    handle_of(table)  # refuses a path, for which the method would find no attribute
    files = DeltaTable.get_add_actions(table, flatten=True)
    connection = connect()
    connection.register("files", files)
    totals = _totals(connection)
    columns = _columns(connection, files, set(table.detail()["clusteringColumns"]))
    return Layout(
        uri=table.table_uri,
        name=table.metadata().name or table.table_uri.rstrip("/").rpartition("/")[2],
        version=table.version(),
        files=totals["files"],
        bytes=totals["bytes"],
        rows=None if totals["unknown"] else totals["rows"],
        deleted_rows=totals["deleted"],
        files_with_vectors=totals["vectors"],
        files_without_rows=totals["unknown"],
        sizes=_sizes(connection),
        partitions=_partitions(connection, table.metadata().partition_columns),
        columns=columns,
        ranges=_ranges(connection, files, columns),
        versions=_versions(table, versions),
    )


_TOTALS = """
SELECT count(*), coalesce(sum(size_bytes), 0)::BIGINT, coalesce(sum(num_records), 0)::BIGINT,
       count(*) FILTER (num_records IS NULL), count("deletion_vector.cardinality"),
       coalesce(sum("deletion_vector.cardinality"), 0)::BIGINT
FROM files
"""


def _totals(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    names = ("files", "bytes", "rows", "unknown", "vectors", "deleted")
    return dict(zip(names, _rows(connection, _TOTALS)[0], strict=True))


def _rows(connection: duckdb.DuckDBPyConnection, text: str) -> list[tuple[Any, ...]]:
    from deltafast._interop.duckdb_query import interruptible

    return interruptible(connection, lambda: connection.execute(text).fetchall())


def _sizes(connection: duckdb.DuckDBPyConnection) -> list[Size]:
    text = """
        SELECT (2 ** (floor(log2(greatest(size_bytes, 1))) + 1))::BIGINT AS below, count(*), sum(size_bytes)::BIGINT
        FROM files GROUP BY 1 ORDER BY 1
    """
    return [Size(*row) for row in _rows(connection, text)]


def _partitions(connection: duckdb.DuckDBPyConnection, columns: list[str]) -> list[Part]:
    parts = [f"'{_text(name)}=' || coalesce({_quoted(f'partition.{name}')}::VARCHAR, 'null')" for name in columns]
    name = " || '/' || ".join(parts) or "''"
    text = f"""
        SELECT {name} AS name, count(*), sum(size_bytes)::BIGINT, sum(num_records)::BIGINT,
               count(*) FILTER (size_bytes < {SMALL})
        FROM files GROUP BY 1 ORDER BY 3 DESC, 1
    """  # noqa: S608 - names are quoted
    return [Part(*row) for row in _rows(connection, text)]


def _columns(connection: duckdb.DuckDBPyConnection, files: pa.Table, clustered: set[str]) -> list[Overlap]:
    bounded = [name.removeprefix("min.") for name in files.column_names if name.startswith("min.")]
    ranked = sorted(bounded, key=lambda name: (name not in clustered, bounded.index(name)))
    out: list[Overlap] = []
    for name in ranked[:MAX_COLUMNS]:
        low, high = _quoted(f"min.{name}"), _quoted(f"max.{name}")
        # Of all files, those that begin at or before this one's end, less those that end before it begins.
        text = f"""
            WITH bounds AS (
                SELECT row_number() OVER () AS file, {low} AS low, {high} AS high
                FROM files WHERE {low} IS NOT NULL AND {high} IS NOT NULL
            ),
            edges AS (
                SELECT file, low AS edge, 0 AS kind FROM bounds UNION ALL SELECT file, high, 1 FROM bounds
            ),
            passed AS (
                SELECT file, kind,
                       sum(1 - kind) OVER (ORDER BY edge, kind RANGE UNBOUNDED PRECEDING) AS begun,
                       sum(kind) OVER (ORDER BY edge, kind RANGE UNBOUNDED PRECEDING) AS ended
                FROM edges
            ),
            depths AS (
                SELECT sum(CASE kind WHEN 1 THEN begun ELSE -ended END) AS depth FROM passed GROUP BY file
            )
            SELECT count(*), coalesce(avg(depth), 0)::DOUBLE, coalesce(max(depth), 0)::BIGINT FROM depths
        """  # noqa: S608 - names are quoted
        count, depth, deepest = _rows(connection, text)[0]
        if count:
            out.append(Overlap(name, name in clustered, count, depth, deepest))
    return out


def _ranges(connection: duckdb.DuckDBPyConnection, files: pa.Table, columns: list[Overlap]) -> list[Ranges]:
    schema: Any = files.schema
    chosen = sorted(columns, key=lambda column: (not column.clustered, column.share))[:MAX_RANGES]
    return [_ranges_of(connection, column.name, schema.field(f"min.{column.name}").type) for column in chosen]


def _ranges_of(connection: duckdb.DuckDBPyConnection, name: str, kind: pa.DataType) -> Ranges:
    import pyarrow.types as kinds

    scale, number = Scale.RANK, "rank"
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
        scale, number = Scale.NUMBER, "value::DOUBLE"
    elif kinds.is_date(kind) or kinds.is_timestamp(kind):
        scale, number = Scale.TIME, "epoch(value::TIMESTAMP) / 86400"
    low, high = _quoted(f"min.{name}"), _quoted(f"max.{name}")
    text = f"""
        WITH bounds AS (
            SELECT row_number() OVER (ORDER BY {low}, {high}) - 1 AS file, count(*) OVER () AS files,
                   {low} AS low, {high} AS high
            FROM files WHERE {low} IS NOT NULL AND {high} IS NOT NULL
        ),
        edges AS (
            SELECT file, files, 0 AS kind, low AS value FROM bounds
            UNION ALL SELECT file, files, 1, high FROM bounds
        ),
        ranked AS (
            SELECT *, dense_rank() OVER (ORDER BY value) - 1 AS rank,
                   min(value) OVER () AS least, max(value) OVER () AS greatest
            FROM edges
        )
        SELECT min({number}) FILTER (kind = 0), max({number}) FILTER (kind = 1),
               any_value(least)::VARCHAR, any_value(greatest)::VARCHAR
        FROM ranked WHERE file % greatest(1, ceil(files / {MAX_RANGE_FILES}))::BIGINT = 0 GROUP BY file ORDER BY file
    """  # noqa: S608 - names are quoted
    rows = _rows(connection, text)
    lows, highs = [float(row[0]) for row in rows], [float(row[1]) for row in rows]
    return Ranges(name, scale, rows[0][2], rows[0][3], lows, highs)


def _versions(table: DeltaTable, count: int) -> list[State]:
    from deltafast._interop.duckdb_query import connect

    if count < 1:
        return []
    newest = table.version()
    operations = {entry["version"]: entry.get("operation") for entry in table.history()}
    readable = sorted({version for version in operations if version <= newest} | {newest})
    step = max(1, -(-len(readable) // count))
    chosen = readable[::-1][::step][::-1]
    out: list[State] = []
    there = pinned(table)
    for version in chosen:
        try:
            there.load_as_version(version)
        except DeltaError:
            continue
        connection = connect()
        names = ["size_bytes", "num_records", "deletion_vector.cardinality"]
        try:
            files = there.get_add_actions(flatten=True, columns=names)
        except DeltaError:
            continue
        connection.register("files", files)
        totals = _totals(connection)
        rows = None if totals["unknown"] else totals["rows"]
        out.append(State(version, operations.get(version), totals["files"], totals["bytes"], rows, totals["deleted"]))
    return out


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(name: str) -> str:
    return name.replace("'", "''")
