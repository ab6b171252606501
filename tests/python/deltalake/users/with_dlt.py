"""A dlt pipeline that loads into Delta tables. It imports nothing of deltafast."""

import datetime as dt
import sys
from pathlib import Path

import dlt
from deltalake import DeltaTable
from dlt.common.libs.deltalake import get_delta_tables

folder = Path(sys.argv[1])
pipeline = dlt.pipeline(
    "load",
    destination=dlt.destinations.filesystem((folder / "bucket").as_uri()),
    dataset_name="data",
    pipelines_dir=str(folder / "pipelines"),
)


@dlt.resource(table_format="delta", write_disposition="append", name="events")
def events(count, **more):
    for i in range(count):
        yield {"id": i, "name": f"n{i}", "at": dt.datetime(2026, 1, 1, i, tzinfo=dt.UTC), **more}


@dlt.resource(table_format="delta", write_disposition="replace", name="state")
def state(*values):
    yield [{"value": value} for value in values]


@dlt.resource(
    table_format="delta",
    write_disposition={"disposition": "merge", "strategy": "upsert"},
    primary_key="id",
    name="latest",
)
def latest(value):
    yield [{"id": 1, "value": value}, {"id": 2, "value": value}]


# A run waits for more than a second by itself, so that all resources are loaded by one.
pipeline.run([events(5), state(1, 2, 3), latest("a")]).raise_on_failed_jobs()
again = [latest("b")] if hasattr(DeltaTable, "merge") else []
pipeline.run([events(3, more=1.5), state(4), *again]).raise_on_failed_jobs()
tables = get_delta_tables(pipeline)
assert tables["events"].to_pandas()["more"].count() == 3
assert tables["events"].to_pyarrow_table().num_rows == 8
assert tables["state"].to_pyarrow_table()["value"].to_pylist() == [4]
assert len(tables["latest"].to_pyarrow_table()) == 2
print("done")
