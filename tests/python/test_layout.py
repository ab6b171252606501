"""What a layout has besides sizes and overlap: names, the bounds of files, and a picture for notebooks."""

import datetime as dt
import json
import sys

import polars as pl
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast._layout.measure import MAX_RANGE_FILES, MAX_RANGES
from deltafast.layout import measure
from deltafast.layout.picture import draw, svg

DAY = dt.date(2026, 1, 1)


@pytest.fixture
def table(tmp_path):
    """Three files; `id` has disjoint bounds, `name` overlaps."""
    for i, names in enumerate((["b", "z"], ["a", "y"], ["c", "c"])):
        rows = {"id": [2 * i, 2 * i + 1], "day": [DAY + dt.timedelta(i)] * 2, "name": names, "x": [0.5, 1.5]}
        write_deltalake(tmp_path / "sales", pl.DataFrame(rows), mode="append")
    return DeltaTable(tmp_path / "sales")


def test_ranges_are_the_bounds_of_files(table):
    found = {ranges.name: ranges for ranges in measure(table).ranges}
    assert list(found) == ["id", "day", "name", "x"]
    assert (found["id"].scale, found["id"].low, found["id"].high) == ("number", [0, 2, 4], [1, 3, 5])
    days = [20_454 + i for i in range(3)]
    assert (found["day"].scale, found["day"].low, found["day"].high) == ("time", days, days)
    assert (found["day"].least, found["day"].greatest) == ("2026-01-01", "2026-01-03")
    # Ranks of a, b, c, y, z.
    assert (found["name"].scale, found["name"].low, found["name"].high) == ("rank", [0, 1, 2], [3, 4, 2])
    assert (found["name"].least, found["name"].greatest) == ("a", "z")


def test_clustering_columns_come_first(table):
    table.alter.cluster_by(["x"])
    assert measure(table).ranges[0].name == "x"


def test_many_files_are_sampled(tmp_path):
    rows = pl.DataFrame({"id": range(MAX_RANGE_FILES * 2 + 10)} | {f"c{i}": [0] * 810 for i in range(6)})
    write_deltalake(tmp_path / "t", rows.with_columns(part=pl.col("id")), partition_by=["part"])
    ranges = measure(DeltaTable(tmp_path / "t")).ranges
    assert len(ranges) == MAX_RANGES
    assert MAX_RANGE_FILES // 2 <= len(ranges[0].low) <= MAX_RANGE_FILES


def test_a_layout_is_named_and_becomes_json(table):
    assert measure(table).name == "sales"
    table.alter.set_table_name("orders")
    assert json.loads(json.dumps(measure(table).to_dict()))["name"] == "orders"


def test_notebooks_show_the_picture(table, monkeypatch):
    layout = measure(table)
    bundle = layout._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "sales" in bundle["image/svg+xml"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert list(layout._repr_mimebundle_()) == ["text/plain"]


@pytest.mark.parametrize("argument", ["sales", 5, None])
def test_only_a_table_is_measured_and_only_a_layout_drawn(argument, tmp_path):
    kind = type(argument).__name__
    with pytest.raises(TypeError, match=f"the table must be a DeltaTable, not a {kind}$"):
        measure(argument)
    for function in (svg, lambda layout: draw(layout, tmp_path / "x.svg")):
        with pytest.raises(TypeError, match=rf"a result of deltafast\.layout\.measure, not a {kind}$"):
            function(argument)
