"""Polars frames, eager and lazy."""

import datetime as dt
import subprocess
import sys

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from deltafast import DeltaTable

C = pl.col
# The last ones cannot be handed to the core and are left to Polars.
PREDICATES = [
    C("id") > 80,
    (C("id") == 3) | (C("id") >= 88),
    ~(C("id") > 3),
    C("day") == dt.date(2026, 1, 1),
    C("day").is_null() & (C("id") < 10),
    C("name").is_in(["name 1", "name 2"]),
    C("amount") > 100,
    C("amount").is_not_null(),
    C("id").is_between(3, 5),
    C("name").str.starts_with("name 3"),
    C("at") >= dt.datetime(2026, 1, 3, tzinfo=dt.UTC),
    C("tags").list.len() == 2,
    (C("id") % 2 == 1) & (C("tags").list.len() > 0),
]


@pytest.fixture
def expected(event_table):
    return pl.DataFrame(event_table)


def same(found, expected):
    assert_frame_equal(found, expected, check_row_order=False)


def test_an_eager_frame_holds_all_rows(events, expected):
    same(events.to_polars(), expected)
    same(events.to_polars(["name", "id"], "id < 10"), expected.filter(C("id") < 10).select("name", "id"))


def test_an_empty_table_keeps_its_schema(tmp_path):
    deltalake.DeltaTable.create(tmp_path, pa.schema([("x", pa.int64()), ("s", pa.string())]))
    table = DeltaTable(tmp_path)
    schema = {"x": pl.Int64, "s": pl.String}
    assert table.to_polars().schema == schema
    assert table.scan_polars().collect().schema == schema


def test_a_lazy_frame_knows_its_schema(events, expected):
    assert events.scan_polars().collect_schema() == expected.schema


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
class TestLazy:
    @pytest.mark.parametrize("predicate", PREDICATES, ids=str)
    def test_filters_as_polars_does(self, events, expected, predicate, engine):
        same(events.scan_polars().filter(predicate).collect(engine=engine), expected.filter(predicate))
        found = events.scan_polars().filter(predicate).select("name").collect(engine=engine)
        same(found, expected.filter(predicate).select("name"))

    @pytest.mark.parametrize("predicate", PREDICATES, ids=str)
    def test_a_limit_before_a_filter_stays_before_it(self, events, predicate, engine):
        everything = events.scan_polars().head(1000).filter(predicate).collect(engine=engine)
        assert everything.height == events.scan_polars().filter(predicate).collect().height
        assert events.scan_polars().head(7).filter(predicate).collect(engine=engine).height <= 7

    def test_limits_slices_and_aggregates(self, events, expected, engine):
        frame = events.scan_polars()
        assert frame.head(5).collect(engine=engine).height == 5
        assert frame.filter(C("id") > 80).head(5).collect(engine=engine).height == 5
        assert frame.slice(10, 5).collect(engine=engine).height == 5
        assert frame.tail(5).collect(engine=engine).height == 5
        assert frame.select(pl.len()).collect(engine=engine).item() == 90
        assert frame.sort("id", descending=True).head(3).collect(engine=engine)["id"].to_list() == [89, 88, 87]
        found = frame.group_by("day").agg(C("id").sum()).collect(engine=engine)
        same(found, expected.group_by("day").agg(C("id").sum()))

    def test_joins_with_itself(self, events, engine):
        frame = events.scan_polars()
        assert frame.join(frame.filter(C("id") < 5), on="id").collect(engine=engine).height == 5


def asked_of_the_core(monkeypatch, events):
    """What scans are asked for, as (columns, has predicate, limit)."""
    asked = []

    class Spy:
        def __init__(self, snapshot):
            self._snapshot = snapshot

        def scan(self, **options):
            asked.append((options["columns"], options["predicate"] is not None, options["limit"]))
            return self._snapshot.scan(**options)

        def __getattr__(self, name):
            return getattr(self._snapshot, name)

    monkeypatch.setattr(events._handle, "snapshot", Spy(events._handle.snapshot))
    return asked


def test_columns_predicates_and_limits_reach_the_core(monkeypatch, events):
    asked = asked_of_the_core(monkeypatch, events)
    frame = events.scan_polars()
    frame.filter(C("id") > 80).select("name").collect()
    frame.select("id").head(3).collect()
    (columns, has_predicate, limit), (more, _, top) = asked
    assert set(columns) <= {"id", "name"}
    assert has_predicate
    assert limit is None
    assert (more, top) == (["id"], 3)


def test_reading_can_stop_early(events):
    batches = events.scan_polars().head(1).collect()
    assert batches.height == 1


WITHOUT_PYARROW = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
hide = lambda cls, name, *rest: None if name.partition(".")[0] == "pyarrow" else find(name, *rest)
PathFinder.find_spec = classmethod(hide)
from deltafast import DeltaTable
"""


@pytest.mark.parametrize(
    "code",
    [
        "assert table.to_polars().height == 90",
        "import polars as pl; assert table.scan_polars().filter(pl.col('id') < 5).collect().height == 5",
        "import polars as pl; assert pl.DataFrame(table).height == 90",
        "assert len(table.to_duckdb().filter('id < 5').select('id').fetchall()) == 5",
    ],
)
def test_pyarrow_is_not_needed(events_path, code):
    script = f"{WITHOUT_PYARROW}\ntable = DeltaTable({str(events_path)!r})\n{code}"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
