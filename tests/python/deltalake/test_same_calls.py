"""The same calls on deltalake and on deltafast: the same outcomes, and tables that both read alike."""

from __future__ import annotations

import datetime as dt
import functools
import shutil
import tempfile
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import deltafast

# No shrinking: on tables it takes longer than a test may, and the drawn ones are small.
SETTINGS = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_KINDS = {"id": pa.int64(), "name": pa.string(), "two words": pa.float64(), "on": pa.date32(), "part": pa.string()}


@st.composite
def frames(draw: st.DrawFn, extra: bool = False) -> pa.Table:
    rows = draw(st.integers(0, 4))
    values: dict[str, st.SearchStrategy[Any]] = {
        "id": st.integers(-3, 9),
        "name": st.none() | st.sampled_from(["a", "b", "Name", ""]),
        "two words": st.none() | st.sampled_from([-1.5, 0.0, 2.5]),
        "on": st.none() | st.dates(dt.date(2026, 1, 1), dt.date(2026, 1, 3)),
        "part": st.none() | st.sampled_from(["x", "y z", "a=b"]),
    }
    columns = {n: pa.array(draw(st.lists(v, min_size=rows, max_size=rows)), _KINDS[n]) for n, v in values.items()}
    if extra:
        columns["more"] = pa.array(range(rows), pa.int32())
    return pa.table(columns)


_WHERE = ['"two words" > 1', "part = 'y z'", "part IS NULL", "id >= 3 AND name = 'a'", "on = DATE '2026-01-02'"]
_PROPERTIES = ["delta.logRetentionDuration", "delta.deletedFileRetentionDuration"]
_CALLS = st.one_of(
    st.tuples(st.just("append"), frames()),
    st.tuples(st.just("overwrite"), frames()),
    st.tuples(st.just("ignore"), frames()),
    st.tuples(st.just("error"), frames()),
    st.tuples(st.just("evolve"), frames(extra=True)),
    st.tuples(st.just("replace schema"), frames(extra=True)),
    st.tuples(st.sampled_from(_WHERE), frames()),
    st.tuples(st.just("delete"), st.none() | st.sampled_from(_WHERE)),
    st.tuples(st.just("update"), st.sampled_from(_WHERE)),
    st.tuples(st.just("constraint"), st.sampled_from(["id >= 0", '"two words" < 2', "part <> 'x' OR name IS NULL"])),
    st.tuples(st.just("column"), st.sampled_from(["note", "two more"])),
    st.tuples(st.just("restore"), st.integers(0, 2)),
    st.tuples(
        st.just("properties"),
        st.sampled_from(_PROPERTIES),
    ),
)


def _whole(package: Any, place: str, data: pa.Table) -> pa.Table:
    """The data with nulls for columns that it lacks: deltalake refuses such, deltafast fills them in."""
    schema = pa.schema(package.DeltaTable(place).schema())
    for field in schema:
        if field.name not in data.column_names:
            data = data.append_column(field.with_nullable(True), pa.nulls(data.num_rows, field.type))
    return data


def _call(package: Any, place: str, what: str, argument: Any) -> None:
    if isinstance(argument, pa.Table) and what != "replace schema":
        argument = _whole(package, place, argument)
    write = functools.partial(package.write_deltalake, place, argument)
    if what in ("append", "overwrite", "ignore", "error"):
        write(mode=what)
    elif what == "evolve":
        write(mode="append", schema_mode="merge")
    elif what == "replace schema":
        write(mode="overwrite", schema_mode="overwrite")
    elif what in _WHERE:
        write(mode="overwrite", predicate=what)
    else:
        _change(package, package.DeltaTable(place), what, argument)


def _change(package: Any, table: Any, what: str, argument: Any) -> None:
    if what == "constraint":
        table.alter.add_constraint({f"c{table.version()}": argument})
    elif what == "column":
        table.alter.add_columns([package.Field(f"{argument} {table.version()}", "string")])
    elif what == "delete":
        table.delete(argument)
    elif what == "update":
        table.update(updates={"id": "id + 1", "name": "'new'"}, predicate=argument)
    elif what == "restore":
        # deltalake refuses to restore the newest version, deltafast has nothing to do then.
        if argument < table.version():
            table.restore(argument)
    else:
        assert what == "properties"
        # The same value again is a version for deltalake and none for deltafast; so is a column that is there.
        table.alter.set_table_properties({argument: f"interval {table.version() + 9} days"})


def _state(table: Any) -> tuple[Any, ...]:
    rows = pa.table(table.to_pyarrow_table())
    # Where deltalake puts the partition columns when a schema grows is its own affair.
    rows = rows.select(sorted(rows.column_names))
    return (
        table.version(),
        sorted(map(repr, rows.to_pylist())),
        sorted(field.to_json() for field in table.schema().fields),
        table.metadata().partition_columns,
        sorted(sorted(map(repr, values.items())) for values in table.partitions()),
    )


Calls = list[tuple[str, Any]]
_DRAWN = (frames(), st.sampled_from([None, ["part"], ["on", "part"]]), st.lists(_CALLS, min_size=1, max_size=6))


@settings(SETTINGS, max_examples=12)
@given(*_DRAWN)
def test_the_same_calls_make_the_same_tables(first: pa.Table, partitions: list[str] | None, calls: Calls) -> None:
    the_same_calls(first, partitions, calls)


@pytest.mark.proof
@settings(SETTINGS, max_examples=120)
@given(*_DRAWN)
def test_the_same_calls_make_the_same_tables_many_times(
    first: pa.Table, partitions: list[str] | None, calls: Calls
) -> None:
    the_same_calls(first, partitions, calls)


def the_same_calls(first: pa.Table, partitions: list[str] | None, calls: Calls) -> None:
    """deltalake and deltafast are called alike; each reads its own table and the other's."""
    folder = tempfile.mkdtemp(prefix="calls-")
    try:
        places = {package: f"{folder}/{package.__name__}" for package in (deltalake, deltafast)}
        for package, place in places.items():
            package.write_deltalake(place, first, partition_by=partitions)
        for what, argument in calls:
            outcomes = {}
            for package, place in places.items():
                try:
                    _call(package, place, what, argument)
                    outcomes[package] = None
                except (package.exceptions.DeltaError, ValueError) as error:
                    outcomes[package] = error
            assert (outcomes[deltalake] is None) == (outcomes[deltafast] is None), (what, outcomes)
            states = [_state(reader.DeltaTable(place)) for place in places.values() for reader in places]
            assert states[0] == states[1] == states[2] == states[3], what
    finally:
        shutil.rmtree(folder)
