"""DELETE and UPDATE: rows, actions, figures and feed, read back by `deltalake` where it can."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltafast import DeltaTable, Field, Schema, WriterProperties, write_deltalake
from deltafast._expr.syntax_sql import literal
from deltafast.exceptions import (
    CommitFailedError,
    ConcurrentAppendError,
    ConstraintViolatedError,
    InvalidArgumentError,
    MetadataChangedError,
)
from wide import chunks, large, whole

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

deltalake = pytest.importorskip("deltalake")

VECTORS = {"delta.enableDeletionVectors": "true"}
PLAIN: dict[str, str] = {}
Row = dict[str, Any]


def rows(count: int = 100) -> pa.Table:
    """Return rows with two numbers, a text with nulls and a partition."""
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "n": pa.array([i % 10 for i in range(count)], pa.int32()),
            "s": [None if i % 7 == 0 else f"s{i}" for i in range(count)],
            "p": ["even" if i % 2 == 0 else "odd" for i in range(count)],
        }
    )


def named(value: object) -> str:
    """Return a name of a parameter that is the same in every process."""
    return "" if callable(value) else str(value)


def made(path: pathlib.Path, configuration: dict[str, str], **options: Any) -> DeltaTable:
    """Write a table of two versions with rows."""
    data = rows()
    write_deltalake(str(path), data.slice(0, 60), configuration=configuration, **options)
    write_deltalake(str(path), data.slice(60), mode="append")
    return DeltaTable(str(path))


def of(table: DeltaTable) -> list[Row]:
    """Return the rows of a fresh handle by `id`."""
    fresh, moved = (
        sorted(handle.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
        for handle in (DeltaTable(table.table_uri), table)
    )
    assert fresh == moved
    return fresh


def last(table: DeltaTable) -> list[dict[str, Any]]:
    """Return the actions of the newest commit."""
    import pathlib

    log = pathlib.Path(table.table_uri.removeprefix("file://")) / "_delta_log" / f"{table.version():020}.json"
    return [json.loads(line) for line in log.read_text().splitlines()]


def theirs(table: DeltaTable) -> list[Row]:
    """Return the rows as deltalake's own engine reads them."""
    path = table.table_uri
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select * from t")
    return sorted(pa.table(found).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
@pytest.mark.parametrize(
    ("predicate", "gone"),
    [
        ("id % 3 = 0", lambda row: row["id"] % 3 == 0),
        ("s is null", lambda row: row["s"] is None),
        ("s > 's5'", lambda row: row["s"] is not None and row["s"] > "s5"),
        ("id < 60", lambda row: row["id"] < 60),
        ("p = 'odd'", lambda row: row["p"] == "odd"),
        ("p = 'odd' and n = 3", lambda row: row["p"] == "odd" and row["n"] == 3),
        ("id > 1000", lambda _row: False),
        (None, lambda _row: True),
        ([("n", "in", [1, 2])], lambda row: row["n"] in (1, 2)),
    ],
    ids=named,
)
@pytest.mark.parametrize("partition", [None, ["p"]], ids=["whole", "partitioned"])
def test_delete(
    tmp_path: pathlib.Path,
    configuration: dict[str, str],
    predicate: Any,
    gone: Callable[[Row], bool],
    partition: list[str] | None,
) -> None:
    table = made(tmp_path / "t", configuration, partition_by=partition)
    before = of(table)
    metrics = table.delete(predicate)
    expected = [row for row in before if not gone(row)]
    assert of(table) == expected == theirs(table)
    assert metrics["num_deleted_rows"] == len(before) - len(expected)
    if len(expected) == len(before):
        assert table.version() == 1
        return
    assert table.version() == 2
    history = table.history(1)[0]
    assert history["operation"] == "DELETE"
    adds = [action["add"] for action in last(table) if "add" in action]
    assert all(("deletionVector" in add) == bool(configuration) for add in adds)
    if configuration:
        assert metrics["num_added_files"] == 0
        assert all(json.loads(add["stats"])["tightBounds"] is False for add in adds)
    assert metrics["num_added_files"] == sum("deletionVector" not in add for add in adds)


def test_statistics_stay_where_a_checkpoint_has_them_as_columns_alone(tmp_path: pathlib.Path) -> None:
    stats = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    made(tmp_path, VECTORS | stats).create_checkpoint()
    for log in (tmp_path / "_delta_log").glob("*.json"):
        log.unlink()
    table = DeltaTable(str(tmp_path))
    table.delete("id = 3")
    (add,) = (action["add"] for action in last(table) if "add" in action)
    kept = json.loads(add["stats"])
    assert (kept["numRecords"], kept["tightBounds"]) == (60, False)
    assert (kept["minValues"]["id"], kept["maxValues"]["id"], kept["nullCount"]["s"]) == (0, 59, 9)


def test_deleted_rows_that_the_log_does_not_report_are_left_out(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path, rows(), partition_by="p")
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_text("\n".join(map(json.dumps, lines)))
    metrics = DeltaTable(tmp_path).delete("p = 'odd'")
    assert (metrics["num_removed_files"], "num_deleted_rows" in metrics) == (1, False)
    assert DeltaTable(tmp_path).delete("id < 10")["num_deleted_rows"] == 5


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
def test_many_deletes_leave_what_no_predicate_chose(tmp_path: pathlib.Path, configuration: dict[str, str]) -> None:
    chance = random.Random(5)
    table = made(tmp_path / "t", configuration)
    model = of(table)
    while model:
        low = chance.randrange(100)
        table.delete(f"id between {low} and {low + chance.randrange(40)} and n <> {chance.randrange(12)}")
        upper = of(table)
        assert {row["id"] for row in upper} <= {row["id"] for row in model}
        assert theirs(table) == upper
        model = upper
        if table.version() > 12:
            table.delete()
            model = of(table)
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().num_rows == 0
    assert not DeltaTable(str(tmp_path / "t")).file_uris()


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
@pytest.mark.parametrize("partition", [None, ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize(
    ("updates", "predicate", "chosen", "changed"),
    [
        ({"n": "n + id"}, "id % 5 = 1", lambda r: r["id"] % 5 == 1, lambda r: {"n": r["n"] + r["id"]}),
        (
            {"s": "upper(s)", "n": "0"},
            "n = 4",
            lambda r: r["n"] == 4,
            lambda r: {"s": r["s"] and r["s"].upper(), "n": 0},
        ),
        ({"S": "null"}, None, lambda _r: True, lambda _r: {"s": None}),
        ({"p": "'new'"}, "id < 10", lambda r: r["id"] < 10, lambda _r: {"p": "new"}),
        ({"n": "id"}, "id >= 60", lambda r: r["id"] >= 60, lambda r: {"n": r["id"]}),
        ({"n": "100 div n"}, "n > 0", lambda r: r["n"] > 0, lambda r: {"n": 100 // r["n"]}),
        ({"n": "1"}, "id = -1", lambda _r: False, lambda r: r),
    ],
    ids=named,
)
def test_update(
    tmp_path: pathlib.Path,
    configuration: dict[str, str],
    partition: list[str] | None,
    updates: dict[str, str],
    predicate: str | None,
    chosen: Callable[[Row], bool],
    changed: Callable[[Row], Row],
) -> None:
    table = made(tmp_path / "t", configuration, partition_by=partition)
    before = of(table)
    metrics = table.update(updates, predicate=predicate)
    expected = [row | changed(row) if chosen(row) else row for row in before]
    assert of(table) == expected == theirs(table)
    assert metrics["num_updated_rows"] == sum(map(chosen, before))
    assert table.version() == (2 if any(map(chosen, before)) else 1)
    if configuration:
        assert metrics["num_copied_rows"] == 0
    if table.version() == 2:
        assert table.history(1)[0]["operation"] == "UPDATE"


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
def test_the_feed_reports_every_change(tmp_path: pathlib.Path, configuration: dict[str, str]) -> None:
    table = made(tmp_path / "t", configuration | {"delta.enableChangeDataFeed": "true"})
    table.delete("id in (3, 70)")
    table.update({"n": "-1"}, predicate="id = 4")
    table.delete("id >= 60")
    table.delete()
    feed = table.load_cdf(starting_version=2)
    found = sorted(
        (row["_commit_version"], row["_change_type"], row["id"], row["n"]) for row in pa.table(feed).to_pylist()
    )
    by_version: dict[int, list[tuple[str, int, int]]] = {}
    for version, kind, number, n in found:
        by_version.setdefault(version, []).append((kind, number, n))
    assert by_version[2] == [("delete", 3, 3), ("delete", 70, 0)]
    assert by_version[3] == [("update_postimage", 4, -1), ("update_preimage", 4, 4)]
    assert [entry[1] for entry in by_version[4]] == [i for i in range(60, 100) if i != 70]
    assert {entry[0] for entry in by_version[5]} == {"delete"}
    assert [entry[1] for entry in by_version[5]] == [i for i in range(60) if i != 3]


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
def test_row_ids_stay_and_versions_follow_changes(tmp_path: pathlib.Path, configuration: dict[str, str]) -> None:
    table = made(tmp_path / "t", configuration | {"delta.enableRowTracking": "true"})

    def tracked() -> dict[int, tuple[int, int]]:
        found = pa.table(table.scan(metadata_columns=["row_id", "row_commit_version"])).to_pylist()
        return {row["id"]: (row["row_id"], row["row_commit_version"]) for row in found}

    before = tracked()
    table.update({"s": "'x'"}, predicate="n = 2")
    table.delete("n = 3")
    after = tracked()
    assert set(after) == {i for i in before if i % 10 != 3}
    for number, (row_id, version) in after.items():
        assert row_id == before[number][0]
        assert version == (2 if number % 10 == 2 else before[number][1])


def test_the_constraints_of_the_table_hold_for_new_values(tmp_path: pathlib.Path) -> None:
    fields = [
        Field("id", "long", nullable=False),
        Field("n", "integer"),
        Field("twice", "long", metadata={"delta.generationExpression": "id * 2"}),
    ]
    table = DeltaTable.create(str(tmp_path / "t"), Schema(fields), configuration={"delta.constraints.small": "n < 100"})
    write_deltalake(
        table, pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([1, 2, 3], pa.int32())}), mode="append"
    )
    table.update({"id": "id + 10"}, predicate="n >= 2")
    found = {row["id"]: row["twice"] for row in table.to_pyarrow_table().to_pylist()}
    assert found == {1: 2, 12: 24, 13: 26}
    for updates, message in (
        ({"n": "n + 98"}, "`small`"),
        ({"id": "null"}, "id"),
        ({"twice": "7"}, "generated column"),
    ):
        files = sorted(path.name for path in (tmp_path / "t").glob("*.parquet"))
        with pytest.raises(ConstraintViolatedError, match=message):
            table.update(updates)
        assert sorted(path.name for path in (tmp_path / "t").glob("*.parquet")) == files
    table.alter.set_table_properties({"delta.appendOnly": "true"})
    with pytest.raises(InvalidArgumentError, match="append-only"):
        table.delete("id = 1")
    with pytest.raises(InvalidArgumentError, match="append-only"):
        table.update({"n": "1"})


def test_wrong_updates_are_refused(tmp_path: pathlib.Path) -> None:
    table = made(tmp_path / "t", {})
    for arguments, message in (
        ({"updates": {"x": "1"}}, "no column `x`"),
        ({"updates": {"n": "1", "N": "2"}}, "twice"),
        ({"updates": {"n": "m + 1"}}, "m"),
        ({"updates": {"n": "date '2026-01-01'"}}, "type"),
        ({"updates": {}}, "nothing to update"),
        ({}, "Either updates or new_values"),
        ({"updates": {"n": "1"}, "new_values": {"n": 1}}, "updates and new_values at same time"),
        ({"new_values": {"n": object()}}, "object"),
        ({"new_values": {"n": [1]}}, "`n`"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            table.update(**arguments)
    with pytest.raises(InvalidArgumentError, match="`s` has no field `x`"):
        table.update({"s.x": "1"})
    with pytest.raises(InvalidArgumentError, match="nope"):
        table.delete("nope = 1")
    assert table.version() == 1


def test_values_that_do_not_fit_are_null_where_asked_as_in_deltalake(tmp_path: pathlib.Path) -> None:
    data = pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32()), "s": ["many", "5"]})
    for name, package in (("ours", None), ("theirs", deltalake)):
        path = str(tmp_path / name)
        write_deltalake(path, data)
        table = DeltaTable(path) if package is None else package.DeltaTable(path)
        table.update({"n": "s"}, error_on_type_mismatch=False)
        assert [row["n"] for row in of(DeltaTable(path))] == [None, 5], name
    with pytest.raises(InvalidArgumentError, match="'many'"):
        DeltaTable(tmp_path / "ours").update({"n": "s"})


def test_python_values_become_literals(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "t")
    timestamp = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    values: dict[str, Any] = {
        "i": 7, "f": 1.5, "d": Decimal("1.25"), "t": "it's a \\ 'text'", "b": b"\x00\xff", "z": True,
        "at": timestamp, "local": timestamp.replace(tzinfo=None), "day": date(2026, 3, 4), "none": None,
        "l": ["it's", None], "empty": [], "deep": [[1, 2], []],
    }  # fmt: skip
    types = {
        "i": pa.int64(), "f": pa.float64(), "d": pa.decimal128(10, 2), "t": pa.string(), "b": pa.binary(),
        "z": pa.bool_(), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "day": pa.date32(),
        "none": pa.string(), "l": pa.list_(pa.string()), "empty": pa.list_(pa.int64()),
        "deep": pa.list_(pa.list_(pa.int64())),
    }  # fmt: skip
    write_deltalake(path, pa.table({name: pa.array([None], kind) for name, kind in types.items()}))
    table = DeltaTable(path)
    table.update(new_values=values)
    assert table.to_pyarrow_table().to_pylist() == [values]
    assert literal(float("inf")) == "CAST('Infinity' AS DOUBLE)"


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
def test_stale_handles(tmp_path: pathlib.Path, configuration: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    base = {"delta.isolationLevel": "WriteSerializable"} | configuration
    made(tmp_path / "t", base)
    append = rows(3)
    stale = DeltaTable(path)
    DeltaTable(path).delete("id = 5")
    write_deltalake(stale, append, mode="append")
    assert len(of(stale)) == 102

    stale = DeltaTable(path)
    write_deltalake(path, append, mode="append")
    stale.delete("id = 6")
    assert len(of(stale)) == 104, "a blind append does not disturb a delete"

    stale = DeltaTable(path)
    DeltaTable(path).delete("id = 7")
    with pytest.raises(ConcurrentAppendError):
        stale.delete("id = 8")
    stale = DeltaTable(path)
    DeltaTable(path).update({"n": "n"}, predicate="id = 9")
    with pytest.raises(ConcurrentAppendError):
        stale.update({"n": "1"}, predicate="id = 10")
    assert len(of(stale)) == 103


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
def test_a_command_that_lost_runs_again_when_asked_to(tmp_path: pathlib.Path, configuration: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    made(tmp_path / "t", configuration)
    stale = DeltaTable(path)
    DeltaTable(path).update({"n": "n + 1"}, predicate="id = 8")
    before = {row["id"]: row["n"] for row in of(DeltaTable(path))}
    assert stale.update({"n": "n + 1"}, predicate="id = 8", max_conflict_retries=1)["num_updated_rows"] == 1
    assert {row["id"]: row["n"] for row in of(stale)} == before | {8: (before[8] or 0) + 1}

    stale = DeltaTable(path)
    DeltaTable(path).delete("id = 8")
    assert stale.delete("id in (8, 9)", max_conflict_retries=1)["num_deleted_rows"] == 1, "one of them is gone already"

    stale = DeltaTable(path)
    DeltaTable(path).alter.set_table_properties({"delta.logRetentionDuration": "interval 40 days"})
    with pytest.raises(MetadataChangedError):
        stale.delete("id = 10", max_conflict_retries=5)
    stale = DeltaTable(path)
    DeltaTable(path).delete("id = 11")
    DeltaTable(path).alter.set_table_properties({"delta.logRetentionDuration": "interval 50 days"})
    with pytest.raises(CommitFailedError):
        stale.delete("id = 11", max_conflict_retries=5)
    with pytest.raises(InvalidArgumentError, match="max_conflict_retries"):
        stale.delete("id = 10", max_conflict_retries=-1)


@pytest.mark.parametrize("configuration", [PLAIN, VECTORS], ids=["copy", "vectors"])
def test_a_hot_counter_loses_nothing_and_gives_nothing_up(
    tmp_path: pathlib.Path, configuration: dict[str, str]
) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"name": ["other", "hot"], "n": [0, 0]}), configuration=configuration)

    def count(_: int) -> None:
        table = DeltaTable(path)
        for _ in range(5):
            table.update({"n": "n + 1"}, predicate="name = 'hot'", max_conflict_retries=30)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert {row["name"]: row["n"] for row in DeltaTable(path).to_pyarrow_table().to_pylist()} == {"other": 0, "hot": 40}


def test_deletes_of_deltalake_and_ours_join(tmp_path: pathlib.Path) -> None:
    table = made(tmp_path / "t", {})
    deltalake.DeltaTable(table.table_uri).delete("id < 5")
    table = DeltaTable(table.table_uri)
    table.delete("id < 10")
    deltalake.DeltaTable(table.table_uri).update(updates={"n": "n + 1"}, predicate="id = 10")
    table = DeltaTable(table.table_uri)
    table.update({"n": "n + 1"}, predicate="id = 10")
    assert [(row["id"], row["n"]) for row in of(table)][:2] == [(10, 2), (11, 1)]


#: Rows that make a row group of 5 MB; from 4 MiB on the columns that stay are copied as bytes.
ENOUGH = 150_000


@pytest.mark.slow
def test_columns_that_an_update_leaves_alone_are_copied_as_bytes(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "t")
    for n in range(3):
        write_deltalake(path, large(n, ENOUGH), mode="append", writer_properties=WriterProperties(compression="SNAPPY"))
    table = DeltaTable(path)
    before = table.to_pyarrow_table().sort_by("id")
    sizes = {group.column(2).total_compressed_size for group in chunks(table)}
    metrics = table.update({"price": "price + 1", "p": "p + 10"}, predicate="id % 100 = 7")
    assert metrics["num_updated_rows"] == 3 * ENOUGH // 100
    assert metrics["num_copied_rows"] == 3 * ENOUGH * 99 // 100
    hit = pc.equal(pc.subtract(before["id"], pc.multiply(pc.divide(before["id"], 100), 100)), 7)
    price = pc.add(before["price"], pa.scalar(Decimal(1), before.schema.field("price").type))
    price = pc.if_else(hit, price.cast(before.schema.field("price").type), before["price"])
    wanted = before.set_column(before.column_names.index("price"), "price", price)
    wanted = wanted.set_column(
        wanted.column_names.index("p"), "p", pc.if_else(hit, pc.add(before["p"], 10), before["p"])
    )
    assert whole(DeltaTable(path).to_pyarrow_table()).equals(whole(wanted))
    groups = chunks(table)
    assert {group.column(2).total_compressed_size for group in groups} == sizes
    codecs = {
        group.column(n).path_in_schema: group.column(n).compression
        for group in groups
        for n in range(group.num_columns)
    }
    assert {name for name, codec in codecs.items() if codec == "ZSTD"} == {"price", "p"}
    actions = pa.table(table.get_add_actions(flatten=True))
    assert max(actions["max.p"].to_pylist()) == 11
    assert (min(actions["min.id"].to_pylist()), max(actions["max.id"].to_pylist())) == (0, 3 * ENOUGH - 1)
    assert sum(actions["null_count.value"].to_pylist()) == before["value"].null_count
    read = pa.table(deltalake.DeltaTable(path).scan()).select(before.column_names).cast(before.schema)
    assert whole(read).equals(whole(wanted))


def test_what_an_update_of_columns_must_mind(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "t")
    fields = [*Schema.from_arrow(large(0).schema).fields]
    fields.append(Field("twice", "long", metadata={"delta.generationExpression": "p * 2"}))
    fields.append(Field("day", "date", metadata={"delta.generationExpression": "cast(at as date)"}))
    DeltaTable.create(path, Schema(fields), configuration={"delta.enableChangeDataFeed": "true"})
    for n in range(2):
        write_deltalake(path, large(n, ENOUGH), mode="append", writer_properties=WriterProperties(compression="SNAPPY"))
    table = DeltaTable(path)
    table.alter.add_constraint({"low": "p < 1000", "known": "noise >= 0"})
    with pytest.raises(ConstraintViolatedError, match="low"):
        table.update({"p": "id"}, predicate="id >= 999 and id < 1002")
    assert table.update({"p": "id"}, predicate="id >= 900 and id < 902")["num_updated_rows"] == 2
    found = (
        table.to_pyarrow_table(filters="id >= 899 and id < 903", columns=["id", "p", "twice"]).sort_by("id").to_pylist()
    )
    assert [(row["p"], row["twice"]) for row in found] == [(0, 0), (900, 1800), (901, 1802), (0, 0)]
    changed = pa.table(table.load_cdf(starting_version=table.version())).to_pylist()
    assert sorted((row["id"], row["_change_type"], row["twice"]) for row in changed) == [
        (900, "update_postimage", 1800),
        (900, "update_preimage", 0),
        (901, "update_postimage", 1802),
        (901, "update_preimage", 0),
    ]
    codecs = {
        group.column(n).path_in_schema: group.column(n).compression
        for group in chunks(table)
        for n in range(group.num_columns)
    }
    assert {"p", "twice"} <= {name for name, codec in codecs.items() if codec == "ZSTD"}
    assert codecs["noise"] == "SNAPPY"
    assert table.update({"text": "NULL"}, predicate="id = 5")["num_updated_rows"] == 1
    assert table.to_pyarrow_table(filters="text is null", columns=["id"])["id"].to_pylist() == [5]
    assert table.update({"value": "-1D"})["num_updated_rows"] == 2 * ENOUGH
    assert table.to_pyarrow_table(filters="value = -1", columns=["id"]).num_rows == 2 * ENOUGH
