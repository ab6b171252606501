"""The layout of a table: file sizes, partitions, overlap of file bounds, deleted rows, and their history.

The result is plain data, computed by DuckDB from the list of files; `deltafast.layout.picture` draws it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from deltafast._interop.duckdb_query import connect, interruptible
from deltafast.exceptions import DeltaError
from deltafast.table import DeltaTable, pinned

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["Layout", "Overlap", "Part", "Size", "State", "measure"]

#: Largest number of columns whose overlap is measured.
MAX_COLUMNS = 32
#: Size in bytes below which a file is small.
SMALL = 16 << 20


@dataclass(frozen=True)
class Size:
    """The files of less than `below` and at least `below / 2` bytes."""

    below: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Part:
    """One partition; a table without partition columns is one partition with an empty name."""

    name: str
    files: int
    bytes: int
    rows: int | None
    small_files: int


@dataclass(frozen=True)
class Overlap:
    """Overlap of the file bounds in one column."""

    name: str
    clustered: bool
    #: Number of files that have bounds.
    files: int
    #: Number of files whose bounds overlap those of a file, itself included: on average and at most; 1 is ideal.
    depth: float
    max_depth: int

    @property
    def share(self) -> float:
        """The share of the files that the average file overlaps, itself included."""
        return self.depth / self.files if self.files else 0.0


@dataclass(frozen=True)
class State:
    """One version."""

    version: int
    operation: str | None
    files: int
    bytes: int
    rows: int | None
    deleted_rows: int


@dataclass(frozen=True)
class Layout:
    """The layout of one version of a table."""

    uri: str
    version: int
    files: int
    bytes: int
    #: Number of stored rows, deleted ones included; None if it is unknown for a file.
    rows: int | None
    deleted_rows: int
    files_with_vectors: int
    files_without_rows: int
    sizes: list[Size]
    #: By size, the largest first.
    partitions: list[Part]
    columns: list[Overlap]
    #: The oldest first.
    versions: list[State]

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain values."""
        return asdict(self)


def measure(table: DeltaTable, *, versions: int = 20) -> Layout:
    """Measure the layout of the version that a handle points at.

    Args:
        table: The table.
        versions: Number of versions up to this one to include, spread over those that are still readable.

    Returns:
        The layout; sizes in bytes.

    Raises:
        DeltaError: As `DeltaTable.get_add_actions`.
    """
    files = DeltaTable.get_add_actions(table, flatten=True)
    connection = connect()
    connection.register("files", files)
    totals = _totals(connection)
    return Layout(
        uri=table.table_uri,
        version=table.version(),
        files=totals["files"],
        bytes=totals["bytes"],
        rows=None if totals["unknown"] else totals["rows"],
        deleted_rows=totals["deleted"],
        files_with_vectors=totals["vectors"],
        files_without_rows=totals["unknown"],
        sizes=_sizes(connection),
        partitions=_partitions(connection, table.metadata().partition_columns),
        columns=_columns(connection, files, set(table.detail()["clusteringColumns"])),
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


def _versions(table: DeltaTable, count: int) -> list[State]:
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
