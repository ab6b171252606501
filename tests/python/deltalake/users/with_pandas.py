"""A script of somebody who uses pandas and deltalake's own names. It imports nothing of deltafast."""

import datetime as dt
import sys
from pathlib import Path

import deltalake
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, SchemaMismatchError, TableNotFoundError
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType
from deltalake.table import FilterLiteralType, ProtocolVersions
from deltalake.transaction import AddAction, create_table_with_add_actions
from deltalake.writer import BloomFilterProperties, ColumnProperties, WriterProperties

folder = Path(sys.argv[1])
place = folder / "prices"
assert deltalake.__version__.startswith("1.")
assert isinstance(deltalake.rust_core_version(), str)
assert issubclass(CommitFailedError, DeltaError)
assert FilterLiteralType
try:
    DeltaTable(place)
except TableNotFoundError:
    pass
else:
    raise AssertionError
assert not DeltaTable.is_deltatable(str(place))

days = pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-02"])
prices = pd.DataFrame({"ticker": ["A", "B", None], "close": [1.5, 2.5, 3.5], "day": days, "my column": [1, 2, 3]})
write_deltalake(
    place,
    prices,
    partition_by="ticker",
    name="prices",
    description="closing prices",
    configuration={"delta.logRetentionDuration": "interval 7 days"},
    writer_properties=WriterProperties(
        compression="ZSTD",
        compression_level=3,
        column_properties={"close": ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, fpp=0.01))},
    ),
    commit_properties=CommitProperties({"userName": "me"}, app_transactions=[Transaction("job", 1)]),
    post_commithook_properties=PostCommitHookProperties(create_checkpoint=False),
)
table = DeltaTable(str(place))
assert DeltaTable.is_deltatable(str(place))
metadata = table.metadata()
assert (metadata.name, metadata.description, metadata.partition_columns) == ("prices", "closing prices", ["ticker"])
assert metadata.configuration == {"delta.logRetentionDuration": "interval 7 days"}
assert isinstance(table.protocol(), ProtocolVersions)
assert table.history()[0]["userName"] == "me"
assert table.history(1)[0]["version"] == 0
assert table.transaction_version("job") == 1
assert [field.name for field in table.schema().fields] == list(prices.columns)

# pandas' own dtypes come back, in any order of rows.
back = table.to_pandas().sort_values("my column", ignore_index=True)
assert back["close"].tolist() == [1.5, 2.5, 3.5]
assert [day.date().day for day in back["day"]] == [1, 2, 2]
assert table.to_pandas(filters=[("close", ">", 2.0)], columns=["my column"])["my column"].sort_values().tolist() == [
    2,
    3,
]
assert table.to_pandas(partitions=[("ticker", "=", "A")])["close"].tolist() == [1.5]
assert table.to_pyarrow_table(filters=pc.field("my column") == 2).num_rows == 1
assert len(table.file_uris([("ticker", "in", ["A", "B"])])) == 2
assert len(table.file_uris([("ticker", "=", "")])) == 1
assert sorted(p["ticker"] or "" for p in table.partitions()) == ["", "A", "B"]
actions = pa.table(table.get_add_actions(flatten=True))
assert sorted(actions["num_records"].to_pylist()) == [1, 1, 1]
assert set(actions["partition.ticker"].to_pylist()) == {"A", "B", None}

# Changes of the table, and back in time.
write_deltalake(table, prices.assign(close=0.0), mode="append")
assert table.version() == 1
try:
    write_deltalake(table, prices.assign(other=1), mode="append")
except (SchemaMismatchError, ValueError):
    pass
else:
    raise AssertionError
table.alter.add_columns([Field("note", "string")])
table.alter.add_constraint({"positive": '"my column" > 0'})
table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
write_deltalake(table, prices.assign(note="new"), mode="append")
try:
    write_deltalake(table, prices.assign(**{"my column": -1}), mode="append")
except DeltaError:
    pass
else:
    raise AssertionError
changes = table.load_cdf(starting_version=table.version()).read_all()
assert set(pa.table(changes)["_change_type"].to_pylist()) == {"insert"}
table.load_as_version(0)
assert table.to_pandas()["close"].sum() == 7.5
table.load_as_version(dt.datetime.now(dt.UTC))
table.restore(0)
assert DeltaTable(place).to_pandas()["close"].sum() == 7.5
table.create_checkpoint()
table.cleanup_metadata()
assert isinstance(table.vacuum(retention_hours=0, enforce_retention_duration=False), list)
assert DeltaTable(place).to_pyarrow_table().num_rows == 3

# Schemas by hand, and a table of files that are there.
schema = Schema(
    [
        Field("id", PrimitiveType("long"), nullable=False),
        Field("s", StructType([Field("a", "integer")])),
        Field("l", ArrayType("string", True)),
        Field("m", MapType("string", "double", True)),
    ]
)
assert Schema.from_json(schema.to_json()) == schema
assert Schema.from_arrow(pa.schema(schema)) == schema
made = DeltaTable.create(folder / "made", schema, mode="error", partition_by=["id"])
assert made.schema() == schema
file = Path(table.file_uris()[0])
action = AddAction(file.name, file.stat().st_size, {}, 0, True, "{}")
(folder / "taken").mkdir()
(folder / "taken" / file.name).write_bytes(file.read_bytes())
columns = pa.schema([("close", pa.float64()), ("my column", pa.int64())])
create_table_with_add_actions(str(folder / "taken"), Schema.from_arrow(columns), [action])
assert DeltaTable(folder / "taken").to_pandas().shape == (1, 2)
print("done")
