"""A program that uses Delta tables through Polars. It imports nothing of deltafast."""

import datetime as dt
import sys
from pathlib import Path

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from polars.testing import assert_frame_equal

folder = Path(sys.argv[1])
frame = pl.DataFrame(
    {
        "id": [1, 2, 3],
        "name": ["a", None, "c"],
        "at": [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)],
        "tags": [["x"], [], None],
        "two words": [1.5, None, 2.5],
        "day": [dt.date(2026, 1, day) for day in (1, 2, 2)],
    }
)
frame = frame.with_columns(pl.col("at").cast(pl.Datetime("us", "UTC")))
place = str(folder / "t")


def read(**options):
    return pl.read_delta(place, **options).sort("id")


# Every mode of writing.
frame.write_delta(place, delta_write_options={"partition_by": ["day"]})
assert_frame_equal(read(), frame)
try:
    frame.write_delta(place, mode="error")
except DeltaError:
    pass
else:
    raise AssertionError
frame.write_delta(place, mode="ignore")
assert DeltaTable(place).version() == 0
frame.with_columns(pl.col("id") + 10).write_delta(place, mode="append")
assert read()["id"].to_list() == [1, 2, 3, 11, 12, 13]
frame.filter(pl.col("id") > 1).write_delta(
    place, mode="overwrite", delta_write_options={"predicate": "day = '2026-01-02'"}
)
assert read()["id"].to_list() == [1, 2, 3, 11]
more = frame.with_columns(pl.lit(7).alias("more"))
more.write_delta(place, mode="append", delta_write_options={"schema_mode": "merge"})
assert read()["more"].drop_nulls().to_list() == [7, 7, 7]
more.write_delta(DeltaTable(place), mode="overwrite", delta_write_options={"schema_mode": "overwrite"})
assert_frame_equal(read(), more)

# Lazily, with what is asked for pushed down; time travel; through pyarrow.
lazy = (
    pl.scan_delta(place).filter((pl.col("day") == dt.date(2026, 1, 2)) & (pl.col("id") > 2)).select("id", "two words")
)
assert lazy.collect().rows() == [(3, 2.5)]
assert pl.scan_delta(DeltaTable(place)).select(pl.len()).collect().item() == 3
assert read(version=0).columns == frame.columns
assert_frame_equal(read(version=0), frame)
assert_frame_equal(read(use_pyarrow=True), more)
assert_frame_equal(read(version=dt.datetime.now(dt.UTC)), more)
assert pl.scan_delta(place).filter(pl.col("name").is_null()).collect()["id"].to_list() == [2]

# A lazy frame as source.
if hasattr(pl.LazyFrame, "sink_delta"):
    pl.scan_delta(place).with_columns(pl.col("id") * 2).sink_delta(folder / "sunk", mode="error")
    assert sorted(pl.read_delta(folder / "sunk")["id"].to_list()) == [2, 4, 6]
    more.lazy().sink_delta(folder / "sunk", mode="append")
    assert pl.read_delta(folder / "sunk").height == 6

# Rows that are deleted by deletion vectors.
if len(sys.argv) > 2:
    deleted = pl.scan_delta(sys.argv[2])
    assert deleted.collect()["id"].sort().to_list() == [0, 3, 4, 5, 6, 7]
    assert deleted.filter(pl.col("id") < 4).collect()["id"].sort().to_list() == [0, 3]

if hasattr(DeltaTable, "merge"):
    merger = frame.write_delta(
        place,
        mode="merge",
        delta_merge_options={"predicate": "s.id = t.id", "source_alias": "s", "target_alias": "t"},
    )
    merger.when_matched_delete().execute()
    assert read().is_empty()
print("done")
