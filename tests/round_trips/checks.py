"""Checks of a table against its model: schema, counts, rows by each reader, predicates by each surface."""

from __future__ import annotations

import collections
import contextlib
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs
import pyarrow as pa

import deltafast
from conformance import compare
from deltafast import DeltaTable

from .model import describe, row_strings
from .predicates import duckdb_name
from .readers import as_type, memory_database, readers_of
from .types import json_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .coverage import Coverage
    from .model import Model
    from .predicates import Predicate

#: The name of a column that no table has.
_INDEX = "index of the row"
#: From so many rows on, tables are compared as Arrow data: texts would take seconds.
_MANY_ROWS = 1000


def check_table(path: str, model: Model, expected: pa.Table, operation: str, coverage: Coverage) -> None:
    """Check that each reader returns the rows of the model, with their types."""
    table = DeltaTable(path)
    fields = json.loads(table.schema().to_json())["fields"]
    assert _without_metadata(fields) == _without_metadata(json_fields(model.columns))
    assert table.count() == len(model.rows)
    for name, reader in readers_of(model.features).items():
        with _named(f"reader {name}"):
            rows = reader.read(path)
            _check_names(rows, list(model.columns))
            if reader.exact_types:
                problems = list(compare.fields_problems(list(rows.schema), json_fields(model.columns)))
                assert not problems, problems
            _check_rows(rows, expected, model)
        coverage.add_read(model.families, operation, name)


def _check_names(rows: pa.Table, columns: list[str]) -> None:
    assert rows.column_names == columns, f"columns {rows.column_names} for {columns}"


def _without_metadata(value: Any) -> Any:
    """Return a schema without ids of columns and the like."""
    if isinstance(value, dict):
        return {key: _without_metadata(part) for key, part in value.items() if key != "metadata"}
    return [_without_metadata(part) for part in value] if isinstance(value, list) else value


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Add to an error what was checked."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise


def _check_rows(rows: pa.Table, expected: pa.Table, model: Model) -> None:
    """Check that rows are the expected ones, in any order; values are compared with the types of the expected."""
    assert rows.num_rows == expected.num_rows, f"{rows.num_rows} rows for {expected.num_rows}"
    names = expected.column_names
    arrays = [
        as_type(column.combine_chunks(), kind) for column, kind in zip(rows.columns, expected.schema.types, strict=True)
    ]
    columns = {name: model.columns[name] for name in names}
    rows = pa.Table.from_arrays(arrays, names=names)
    if len(model.rows) >= _MANY_ROWS and model.key in names:
        left, right = (table.take(_order(table, model.key)) for table in (rows, expected))
        for name in names:
            assert left[name].equals(right[name]) or _strings_of(left, name, model) == _strings_of(
                right, name, model
            ), name
    elif names and len(model.rows) < _MANY_ROWS:
        found_rows, expected_rows = (collections.Counter(row_strings(table, columns)) for table in (rows, expected))
        assert found_rows == expected_rows, _difference(found_rows, expected_rows)


def _difference(found: collections.Counter[str], expected: collections.Counter[str]) -> str:
    unexpected, missing = list((found - expected).elements()), list((expected - found).elements())
    lines = [f"{len(unexpected)} rows are wrong"]
    lines += [f"  unexpected {describe(text, 1500)}" for text in unexpected[:3]]
    return "\n".join([*lines, *(f"  missing    {describe(text, 1500)}" for text in missing[:3])])


def _order(table: pa.Table, key: str) -> pa.Array:
    keys = table.column(table.column_names.index(key)).to_pylist()
    return pa.array(sorted(range(len(keys)), key=keys.__getitem__))


def _strings_of(table: pa.Table, name: str, model: Model) -> list[str]:
    column = table.column(table.column_names.index(name)).combine_chunks()
    return compare.strings(column, model.columns[name].delta)


def check_counts(path: str, model: Model) -> None:
    """Check the number of rows where no column is read."""
    table, count = DeltaTable(path), len(model.rows)
    counts: dict[str, Callable[[], int]] = {
        "scan": lambda: pa.table(table.scan(columns=[])).num_rows,
        "scan limit": lambda: pa.table(table.scan(columns=[], limit=2)).num_rows + max(count - 2, 0),
        "pyarrow table": lambda: table.to_pyarrow_table(columns=[]).num_rows,
        "pyarrow dataset": lambda: table.to_pyarrow_dataset().to_table(columns=[]).num_rows,
        "pyarrow count": table.to_pyarrow_dataset().count_rows,
        "polars len": lambda: table.scan_polars().select(pl.len()).collect().item(),
        "polars index": lambda: table.scan_polars().with_row_index(_INDEX).select(_INDEX).collect().height,
        "polars literal": lambda: table.scan_polars().select(pl.int_range(pl.len())).collect().height,
        "duckdb": lambda: table.to_duckdb().aggregate("count(*)").fetchall()[0][0],
        "sql": lambda: deltafast.sql("SELECT * FROM t", t=table).read_all().num_rows,
    }
    if not model.columns:
        # Neither Polars nor DuckDB has tables without columns.
        counts = {name: counts[name] for name in ("scan", "pyarrow table", "pyarrow dataset", "pyarrow count")}
    for name, read in counts.items():
        with _named(f"count by {name}"):
            found = read()
            assert found == count, f"{found} rows for {count}"


def check_projection(path: str, model: Model, in_memory: pa.Table, columns: list[str]) -> None:
    """Check that some columns, in their order, are those of the model."""
    table, expected = DeltaTable(path), in_memory.select(columns)
    reads: dict[str, Callable[[], pa.Table]] = {
        "scan": lambda: pa.table(table.scan(columns=columns)),
        "pyarrow dataset": lambda: table.to_pyarrow_dataset().to_table(columns=columns),
        "polars": lambda: table.scan_polars().select([cs.by_name(name) for name in columns]).collect().to_arrow(),
        "duckdb": lambda: pa.table(table.to_duckdb().project(", ".join(map(duckdb_name, columns))).to_arrow_table()),
    }
    for name, read in reads.items():
        with _named(f"columns {columns} by {name}"):
            rows = read()
            _check_names(rows, columns)
            _check_rows(rows, expected, model)


def check_predicate(
    path: str, model: Model, in_memory: pa.Table, predicate: Predicate, first: str, coverage: Coverage
) -> None:
    """Check that a predicate chooses the same rows on each surface as over the data in memory."""
    family = model.columns[first].family
    for surface, found, expected in _chosen_keys(path, model, in_memory, predicate):
        with _named(f"predicate {describe(predicate.sql())} by {surface}"):
            assert sorted(found()) == sorted(expected())
        coverage.add_predicate(family, surface)


def _chosen_keys(path: str, model: Model, in_memory: pa.Table, predicate: Predicate) -> Iterator[tuple[str, Any, Any]]:
    """Yield the surfaces, with the keys that each chooses in the table, and in memory."""
    key = model.key
    assert key is not None
    table = DeltaTable(path)

    def by_model() -> list[int]:
        return [row[key] for row in model.matches(predicate)]

    def keys(rows: Any) -> list[int]:
        rows = pa.table(rows)
        return rows.column(rows.column_names.index(key)).to_pylist()

    sql = predicate.sql()
    yield "scan", lambda: keys(table.scan(columns=[key], predicate=sql)), by_model
    yield "count", lambda: [table.count(sql)], lambda: [len(by_model())]
    expression = predicate.polars()
    yield (
        "polars",
        lambda: keys(table.scan_polars().filter(expression).select(cs.by_name(key)).collect().to_arrow()),
        lambda: keys(pl.DataFrame(in_memory).filter(expression).select(cs.by_name(key)).to_arrow()),
    )
    condition = predicate.pyarrow()
    yield (
        "pyarrow",
        lambda: keys(table.to_pyarrow_dataset().to_table(columns=[key], filter=condition)),
        lambda: keys(in_memory.filter(condition)),
    )
    filters = predicate.filters()
    if filters is not None:
        # Filters have the semantics of pyarrow, for which NaN equals nothing.
        yield (
            "filters",
            lambda: keys(table.scan(columns=[key], predicate=filters)),
            lambda: keys(in_memory.filter(condition)),
        )
    text, selected = predicate.duckdb(), duckdb_name(key)
    with memory_database() as connection:
        memory = connection.from_arrow(in_memory)
        yield (
            "duckdb",
            lambda: keys(table.to_duckdb().filter(text).project(selected).to_arrow_table()),
            lambda: keys(memory.filter(text).project(selected).to_arrow_table()),
        )
        yield (
            "sql",
            lambda: keys(deltafast.sql(f"select {selected} from t where {text}", t=table).read_all()),
            lambda: keys(memory.filter(text).project(selected).to_arrow_table()),
        )
