"""Readers, and the features of tables that each of them supports.

What a reader cannot read is decided here and by nothing else: an error of a reader that should support a table is a
failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import deltalake
import duckdb
import polars as pl
import pyarrow as pa

import deltafast

if TYPE_CHECKING:
    from collections.abc import Callable

#: Features of a table that some reader lacks.
FEATURES = (
    "columnMapping",
    "deletionVectors",
    "v2Checkpoint",
    "typeWidening",
    "variantType",
    "partitioned",
    "decimalPartitions",
    "escapedPartitionNames",
    "noColumns",
    "schemaChanged",
)


class Reader(NamedTuple):
    """A way to read a whole table."""

    read: Callable[[str], pa.Table]
    unsupported: frozenset[str] = frozenset()
    #: Whether the Arrow types must be exactly those of the log; others are converted.
    exact_types: bool = False


def _scan(path: str) -> pa.Table:
    return pa.table(deltafast.DeltaTable(path).scan())


def _pyarrow_table(path: str) -> pa.Table:
    return deltafast.DeltaTable(path).to_pyarrow_table()


def _pyarrow_dataset(path: str) -> pa.Table:
    return deltafast.DeltaTable(path).to_pyarrow_dataset().to_table()


def _polars(path: str) -> pa.Table:
    return deltafast.DeltaTable(path).scan_polars().collect().to_arrow()


def _duckdb(path: str) -> pa.Table:
    return pa.table(deltafast.DeltaTable(path).to_duckdb().to_arrow_table())


def _sql(path: str) -> pa.Table:
    return deltafast.sql("SELECT * FROM t", t=deltafast.DeltaTable(path)).read_all()


def _deltalake_query(path: str) -> pa.Table:
    table = deltalake.DeltaTable(path)
    return pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all())


def _deltalake_dataset(path: str) -> pa.Table:
    return deltalake.DeltaTable(path).to_pyarrow_table()


def _polars_delta(path: str) -> pa.Table:
    return pl.scan_delta(path).collect().to_arrow()


def memory_database() -> duckdb.DuckDBPyConnection:
    """Return an empty database whose timestamps are in UTC."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _duckdb_parquet(path: str) -> pa.Table:
    """Return the rows of the data files as DuckDB reads them, without the log."""
    table = deltafast.DeltaTable(path)
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    if not files:
        return table.schema().to_arrow().empty_table()
    with memory_database() as connection:
        relation = connection.read_parquet(files, hive_partitioning=False, union_by_name=True)
        # Files of tables with row tracking have two more columns, whose names the table's properties hold.
        columns = ['"' + field.name.replace('"', '""') + '"' for field in table.schema().fields]
        return pa.table(relation.project(", ".join(columns)).to_arrow_table())


_OF_DELTAFAST = {
    "scan": Reader(_scan, exact_types=True),
    "pyarrow table": Reader(_pyarrow_table, exact_types=True),
    "pyarrow dataset": Reader(_pyarrow_dataset, exact_types=True),
    "polars": Reader(_polars),
    # DuckDB has no relations without columns.
    "duckdb": Reader(_duckdb, frozenset({"noColumns"})),
    "sql": Reader(_sql, frozenset({"noColumns"})),
}
_OF_OTHERS = {
    "deltalake query": Reader(_deltalake_query, frozenset({"typeWidening", "variantType", "noColumns"})),
    "deltalake pyarrow": Reader(
        _deltalake_dataset,
        # deltalake reads the partition value -1.5 as `-1.-5`, also in tables of its own.
        frozenset(
            {
                "columnMapping",
                "decimalPartitions",
                "deletionVectors",
                "noColumns",
                "typeWidening",
                "v2Checkpoint",
                "variantType",
            }
        ),
    ),
    "polars delta": Reader(
        _polars_delta,
        # Polars takes the names of partition columns from the folders and does not unescape them.
        frozenset(
            {"columnMapping", "v2Checkpoint", "typeWidening", "variantType", "escapedPartitionNames", "noColumns"}
        ),
    ),
    "duckdb parquet": Reader(
        _duckdb_parquet,
        frozenset(
            {
                "columnMapping",
                "deletionVectors",
                "typeWidening",
                "variantType",
                "partitioned",
                "noColumns",
                "schemaChanged",
            }
        ),
    ),
}
READERS = _OF_DELTAFAST | _OF_OTHERS


def readers_of(features: frozenset[str]) -> dict[str, Reader]:
    """Return the readers that support a table with these features."""
    return {name: reader for name, reader in READERS.items() if not reader.unsupported & features}


def as_type(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return values of another library in the type that holds the same values here.

    Polars has lists of structs for maps, DuckDB and Polars their own layouts of strings. The conversion changes no
    value.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type == wanted:
        return array
    if not pa.types.is_nested(wanted) or (pa.types.is_list(wanted) and not pa.types.is_nested(wanted.value_type)):
        return array.cast(wanted)
    return pa.array([_as_value(value, wanted) for value in array.to_pylist()], wanted)


def _as_value(value: Any, wanted: Any) -> Any:
    """Return a Python value as pyarrow converts it to the type."""
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        return {field.name: _as_value(value[field.name], field.type) for field in wanted}
    if pa.types.is_map(wanted):
        pairs = [tuple(pair.values()) if isinstance(pair, dict) else pair for pair in value]
        return [(key, _as_value(item, wanted.item_type)) for key, item in pairs]
    if pa.types.is_list(wanted):
        return [_as_value(item, wanted.value_type) for item in value]
    return value
