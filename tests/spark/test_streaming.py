"""Streams out of tables and into them, beside delta-spark's own in one session."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import InvalidArgumentError, SchemaMismatchError, VersionNotFoundError
from deltafast.spark._session.session import Session
from deltafast.spark._streaming.batch_planner import BEGINNING, StreamPlan
from deltafast.spark._streaming.options import StreamOptions, stream_options
from deltafast.spark._streaming.stream_source import stream_format
from oracle.reference import arrow

from . import killed_stream
from .helpers import usual_and_proof

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = {"availableNow": True}


class Followed:
    """The batches that queries made, which run at the same time.

    The ways are delta-spark, `readStream.format("delta")` of enabled sessions (`source`), `stream` (`native`), and the
    data source `deltafast`.
    """

    def __init__(self, spark, checkpoints: pathlib.Path, ways=("delta", "source", "native")) -> None:
        self.spark, self.checkpoints, self.ways = spark, checkpoints, ways

    def run(self, folder, options, name="c") -> dict[str, list[list[str]]]:
        """The rows of each batch up to now; or what went wrong."""
        found: dict[str, list[list[str]]] = {way: [] for way in self.ways}
        queries = {way: self.start(way, folder, options, found[way], name) for way in self.ways}
        for query in queries.values():
            # What went wrong is asked for below.
            with contextlib.suppress(Exception):
                query.awaitTermination()
        self.errors = {way: query.exception() for way, query in queries.items()}
        return found

    def start(self, way, folder, options, found, name="c", trigger=None):
        def each(frame, number):
            rows = [{key: row[key] for key in sorted(row)} for row in arrow(frame).to_pylist()]
            found.append(sorted(map(repr, rows)))

        checkpoint = str(self.checkpoints / f"{name}-{way}")
        trigger = NOW if trigger is None else trigger
        if way == "native":
            return deltafast.spark.stream(self.spark, folder, each, checkpoint, trigger=trigger, **options)
        # In a session with Delta's jar, the source has no name but that of its class.
        reader = self.spark.readStream.format(stream_format(Session(self.spark)) if way == "source" else way)
        for key, value in options.items():
            reader = reader.option(key, value)
        writer = reader.load(str(folder)).writeStream.foreachBatch(each)
        return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()

    def same(self, folder, options, name="c") -> list[list[str]]:
        """The batches, which are the same in every way; those without rows count nowhere."""
        found = {way: [batch for batch in batches if batch] for way, batches in self.run(folder, options, name).items()}
        assert not any(self.errors.values()), self.errors
        for way in self.ways:
            assert found[way] == found[self.ways[0]], (options, way)
        return found[self.ways[0]]

    def keep(self, batches: int, checkpoint: str, copy: str) -> None:
        """Copy a checkpoint as it was after some batches."""
        shutil.copytree(self.checkpoints / checkpoint, self.checkpoints / copy)
        for kept in ("offsets", "commits"):
            for file in (self.checkpoints / copy / kept).iterdir():
                if int(file.name.strip(".").partition(".")[0]) >= batches:
                    file.unlink()


@pytest.fixture(scope="module", autouse=True)
def registered(spark):
    deltafast.spark.register(spark)


@pytest.fixture
def followed(spark, tmp_path):
    return Followed(spark, tmp_path / "checkpoints")


def ids(*values) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "word": [f"w{value}" for value in values]})


def numbers(batches) -> list[list[int]]:
    """The column `id` of each batch."""
    return [sorted(int(re.search(r"'id': (\d+)", row)[1]) for row in batch) for batch in batches]


@pytest.fixture(scope="module")
def appended(tmp_path_factory) -> pathlib.Path:
    """Versions 0 to 3 of a file each with two rows, and version 4 of three files."""
    folder = tmp_path_factory.mktemp("appended")
    for n in range(4):
        write_deltalake(folder, ids(10 * n, 10 * n + 1), mode="append", partition_by="id")
    write_deltalake(folder, ids(100, 101, 102), mode="append")
    for n in range(5):
        os.utime(folder / "_delta_log" / f"{n:020}.json", (1_700_000_000 + n, 1_700_000_000 + n))
    return folder


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> pathlib.Path:
    """Versions: 0 and 1 append, 2 deletes a file, 3 appends, 4 changes rows, 5 appends, with a change feed."""
    folder = tmp_path_factory.mktemp("changed")
    write_deltalake(folder, ids(1, 2), configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(folder, ids(3, 4), mode="append")
    DeltaTable(folder).delete("id < 3")
    write_deltalake(folder, ids(5, 6), mode="append")
    DeltaTable(folder).update({"word": "'new'"}, predicate="id = 5")
    write_deltalake(folder, ids(7), mode="append")
    return folder


@pytest.mark.proof
def test_batches_are_bounded_as_delta_spark_bounds_them(followed, appended):
    followed.ways = ("delta", "source", "native", "deltafast")
    assert len(followed.same(appended, {"maxFilesPerTrigger": 4}, "files")) == 3
    size = max(DeltaTable(appended).get_add_actions().column("size_bytes").to_pylist())
    assert len(followed.same(appended, {"maxBytesPerTrigger": f"{5 * size}b"}, "bytes")) == 2
    # delta-spark ignores options that it does not have.
    followed.ways = ("delta", "source")
    assert len(followed.same(appended, {"maxFilesPerTrigger": 4, "withEventTimeOrder": "true"}, "unknown")) == 3
    followed.ways = ("delta", "source", "native", "deltafast")
    versions = {"startingVersion": 1, "maxFilesPerTrigger": 7}
    assert numbers(followed.same(appended, versions, "version")) == [[10, 11, 20, 21, 30, 31, 100], [101, 102]]


def test_a_stream_begins_where_its_options_say_and_leaves_out_what_they_say(followed, appended):
    at = dt.datetime.fromtimestamp(1_700_000_003, dt.UTC)
    options = {"startingTimestamp": f"{at:%Y-%m-%d %H:%M:%S}", "excludeRegex": "id=10[01]"}
    assert numbers(followed.same(appended, options, "time")) == [[30, 31, 102]]


def test_commits_that_change_rows_are_what_the_options_make_of_them(followed, changed):
    found = followed.run(changed, {"startingVersion": 0}, "none")
    assert not any(any(batches) for batches in found.values())
    assert "version 2" in str(followed.errors["source"])
    assert "deletes rows" in str(followed.errors["native"])
    assert followed.errors["delta"] is not None
    options = {"startingVersion": 0, "ignoreDeletes": "true", "maxFilesPerTrigger": 2}
    found = followed.run(changed, options, "deletes")
    assert "version 4" in str(followed.errors["source"])
    assert "changes rows" in str(followed.errors["source"])
    assert followed.errors["delta"] is not None
    assert numbers(found["source"]) == numbers(found["native"]) == [[1, 2, 3, 4]]
    skip = {"startingVersion": 0, "skipChangeCommits": "true"}
    assert numbers(followed.same(changed, skip, "skip")) == [[1, 2, 3, 4, 5, 6, 7]]
    ignore = {"startingVersion": 0, "ignoreChanges": "true"}
    assert numbers(followed.same(changed, ignore, "changes")) == [[1, 2, 3, 4, 5, 5, 6, 6, 7]]


def test_the_change_feed_streams(followed, changed):
    feed = {"readChangeFeed": "true", "startingVersion": 1, "maxFilesPerTrigger": 2}
    found = followed.same(changed, feed, "feed")
    assert len(found) > 1
    kinds = [re.search("_change_type': '([a-z_]+)'", row)[1] for batch in found for row in batch]
    assert sorted(kinds) == ["delete"] * 2 + ["insert"] * 5 + ["update_postimage", "update_preimage"]
    found = followed.same(changed, {"readChangeFeed": "true"}, "feed-snapshot")
    assert len(found) == 1
    assert len(found[0]) == 5


@pytest.mark.proof
@pytest.mark.parametrize("way", ["commits", "vectors"])
def test_the_change_feed_leaves_out_files(followed, tmp_path, way):
    folder = tmp_path / "t"
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": str(way == "vectors").lower()}
    rows = pa.table({"id": pa.array(range(12), pa.int64()), "part": [n % 3 for n in range(12)]})
    write_deltalake(folder, rows, partition_by="part", configuration=properties)
    DeltaTable(folder).update({"id": "id + 100"}, predicate="id < 2")
    DeltaTable(folder).delete("id > 9")
    write_deltalake(folder, rows.slice(0, 3), mode="append")
    options = {"readChangeFeed": "true", "startingVersion": 0, "excludeRegex": "part=1/"}
    # Files that are left out do not count; the files of appended rows are read one by one.
    few = {**options, "maxFilesPerTrigger": 1}
    assert len(whole := followed.same(folder, few, "few")) == 6
    assert len(followed.same(folder, {**options, "maxFilesPerTrigger": 3}, "more")) == 3
    followed.ways = ("source",)
    for batches in (1, 3):
        followed.keep(batches, "few-delta", f"few{batches}-source")
        # delta-spark makes a batch without rows of the end of a version.
        rest = followed.same(folder, few, f"few{batches}")
        assert rest == whole[len(whole) - len(rest) :]
        assert 6 - batches <= len(rest) < 6
    followed.ways = ("delta", "source", "native")
    assert sorted({n for batch in numbers(followed.same(folder, options, "all")) for n in batch}) == [
        *(0, 2, 3, 5, 6, 8, 9, 11, 100),
    ]
    followed.ways = ("deltafast",)
    followed.run(folder, options, "python")
    assert "without excludeRegex" in str(followed.errors["deltafast"])


@pytest.mark.parametrize("batches", usual_and_proof([1], [2]))
@pytest.mark.parametrize(
    "options",
    [
        {"maxFilesPerTrigger": 1, "skipChangeCommits": "true"},
        {"maxFilesPerTrigger": 2, "readChangeFeed": "true", "startingVersion": 1},
    ],
    ids=["rows", "changes"],
)
def test_a_stream_continues_from_a_checkpoint_of_delta_spark(followed, changed, options, batches):
    followed.ways = ("delta",)
    whole = followed.same(changed, options)
    assert len(whole) > batches
    followed.keep(batches, "c-delta", "c-source")
    followed.ways = ("source",)
    assert followed.same(changed, options) == whole[batches:]


def test_a_stream_goes_on_from_its_checkpoint_and_stops_where_the_schema_changes(followed, tmp_path):
    folder = tmp_path / "t"
    write_deltalake(folder, ids(1, 2))
    assert numbers(followed.same(folder, {})) == [[1, 2]]
    assert followed.same(folder, {}) == []
    write_deltalake(folder, ids(3), mode="append")
    DeltaTable(folder).optimize.compact()
    assert numbers(followed.same(folder, {})) == [[3]]
    write_deltalake(folder, ids(4), mode="append")
    # The queries of deltafast have the table's new columns, and rows that had them not yet.
    wider = pa.table({"id": pa.array([5], pa.int64()), "word": ["w5"], "more": [0.5]})
    write_deltalake(folder, wider, mode="append", schema_mode="merge")
    assert [len(batch) for batch in followed.same(folder, {})] == [2]
    write_deltalake(folder, ids(6), mode="append")
    assert numbers(followed.same(folder, {})) == [[6]]
    # A table that was made anew in the same place is another one.
    shutil.rmtree(folder)
    write_deltalake(folder, ids(1))
    followed.ways = ("source", "native")
    followed.run(folder, {})
    assert all("another table" in str(error) for error in followed.errors.values())


def test_a_running_stream_follows_and_stops_where_the_schema_changes(followed, tmp_path):
    folder = tmp_path / "t"
    write_deltalake(folder, ids(1), configuration={"delta.enableDeletionVectors": "true"})
    found: dict[str, list[list[str]]] = {"source": [], "native": [], "delta": []}
    options = {"startingVersion": "latest", "ignoreChanges": "true"}
    often = {"processingTime": "0 seconds"}
    queries = [followed.start(way, folder, options, batches, trigger=often) for way, batches in found.items()]
    for query in queries:
        query.processAllAvailable()
    write_deltalake(folder, ids(2, 3), mode="append")
    DeltaTable(folder).delete("id = 2")
    for query in queries:
        query.processAllAvailable()
    for batches in found.values():
        rows = [row for batch in numbers(batches) for row in batch]
        assert sorted(set(rows)) in ([2, 3], [3])
    wider = pa.table({"id": pa.array([5], pa.int64()), "word": ["w5"], "more": [0.5]})
    write_deltalake(folder, wider, mode="append", schema_mode="merge")
    for query in queries:
        with pytest.raises(Exception, match=r"(?i)schema"):
            query.processAllAvailable()
    assert "(more): start the query again" in str(queries[0].exception())
    assert "start the query again" in str(queries[1].exception())


def test_rows_of_every_kind_of_table_arrive(spark, followed, tmp_path):
    folder = tmp_path / "t"
    frame = spark.sql(
        "select id, cast(id % 2 as byte) p, timestamp_micros(id * 1000000) at, cast(id as decimal(20, 3)) d,"
        " cast('2020-02-02' as timestamp_ntz) n, date'2024-01-01' day, map('k', named_struct('x', id)) m,"
        " array(null, id) a, cast('b' as binary) b, named_struct('y', if(id = 1, null, id)) s from range(0, 6, 1, 2)"
    )
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    deltafast.spark.write(frame, folder, partition_by=["p"], configuration=properties)
    DeltaTable(folder).delete("id = 3")
    assert sorted(numbers(followed.same(folder, {"maxFilesPerTrigger": 1}))) == [[0, 2], [1], [4], [5]]
    with_schema = spark.readStream.format("deltafast").schema("d decimal(20,3), id bigint").load(str(folder))
    found: list[list[int]] = []
    query = with_schema.writeStream.foreachBatch(lambda frame, _: found.append([row[1] for row in frame.collect()]))
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(**NOW).start().awaitTermination()
    assert sorted(row for batch in found for row in batch) == [0, 1, 2, 4, 5]


def test_options_that_are_wrong_are_refused():
    for options, message in {
        ("maxFilesPerTrigger", "0"): "at least 1",
        ("maxBytesPerTrigger", "much"): "such as 1000 or 10m",
        ("startingVersion", "-3"): "a version or 'latest'",
        ("ignoreDeletes", "perhaps"): "true or false",
        ("excludeRegex", "("): "regular expression",
        ("schemaTrackingLocation", "/x"): "only readStream.format",
        ("withEventTimeOrder", "true"): "no option 'withEventTimeOrder'",
        ("versionAsOf", "1"): "startingVersion",
        ("maxFiles", "1"): "no option 'maxFiles'",
    }.items():
        with pytest.raises(InvalidArgumentError, match=message):
            stream_options(dict([options]))
    with pytest.raises(InvalidArgumentError, match="not both"):
        stream_options({"startingVersion": 1, "startingTimestamp": "2020-01-01"})
    assert stream_options({"MAXBYTESPERTRIGGER": "2kb"}) == StreamOptions(max_files=None, max_bytes=2048)


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_batches_are_read_at_the_newest_version_where_it_has_the_same_files(tmp_path, vectors):
    folder = tmp_path / "t"
    for n in range(6):
        properties = {"delta.enableDeletionVectors": vectors} if n == 0 else None
        write_deltalake(folder, ids(n), mode="append", configuration=properties)

    def versions(**options) -> list[int]:
        plan = StreamPlan(DeltaTable(folder), stream_options({"maxFilesPerTrigger": 1, **options}))
        place, found = BEGINNING, []
        while (end := plan.next(place)) != place:
            found += [piece.version for piece in plan.pieces(place, end)]
            place = end
        return found

    own = [0, 1, 2, 3, 4, 5]
    assert versions(startingVersion=0) == ([5] * 6 if vectors == "false" else own)
    DeltaTable(folder).alter.set_table_properties({"custom": "x"})
    assert versions(startingVersion=0) == own
    write_deltalake(folder, ids(7), mode="append")
    DeltaTable(folder).alter.set_table_properties({"custom": "y"})
    DeltaTable(folder).alter.set_table_properties({"custom": "x"})
    assert versions(startingVersion=6) == ([9] if vectors == "false" else [7])
    # A batch of before is planned again.
    plan = StreamPlan(DeltaTable(folder), stream_options({"maxFilesPerTrigger": 1, "startingVersion": 5}))
    first = plan.next(BEGINNING)
    plan.pieces(first, plan.next(first))
    assert [piece.version for piece in plan.pieces(BEGINNING, first)] == [5]
    # Files that are no longer there keep their versions.
    DeltaTable(folder).optimize.compact()
    assert versions(startingVersion=6, ignoreChanges=True) == [7]


def test_places_in_the_log_hold_whatever_happens_meanwhile(tmp_path):
    folder = tmp_path / "t"
    for n in range(6):
        write_deltalake(folder, ids(n), mode="append")
        if n == 3:
            DeltaTable(folder).create_checkpoint()

    def plan(**options) -> StreamPlan:
        return StreamPlan(DeltaTable(folder), stream_options(options))

    first = plan(maxFilesPerTrigger=4)
    end = first.next(BEGINNING)
    pieces = first.pieces(BEGINNING, end)
    assert [(piece.version, len(piece.files), piece.snapshot) for piece in pieces] == [(5, 4, True)]
    write_deltalake(folder, ids(6), mode="append")
    # A query that starts again before its first batch was through has its end only, and the beginning with it.
    assert plan().pieces(BEGINNING, json.loads(json.dumps(end))) == pieces
    later = first.next(end)
    assert [len(piece.files) for piece in first.pieces(end, later)] == [2, 1]
    assert first.next(later) == later
    # Many commits are read as one version, but for files that were laid out anew.
    begin = plan(startingVersion=0)
    DeltaTable(folder).optimize.compact()
    write_deltalake(folder, ids(8), mode="append")
    files = [(piece.version, len(piece.files)) for piece in begin.pieces(BEGINNING, begin.next(BEGINNING))]
    assert sum(count for _, count in files) == 8
    assert files[-1] == (8, 1)
    with pytest.raises(VersionNotFoundError, match="9"):
        plan(startingVersion=9).next(BEGINNING)
    with pytest.raises(VersionNotFoundError, match="startingTimestamp"):
        plan(startingTimestamp="2200-01-01").next(BEGINNING)
    assert plan(startingTimestamp="2000-01-01").next(BEGINNING)["begin"]["version"] == 0
    os.utime(folder / "_delta_log" / f"{8:020}.json", (4_000_000_000, 4_000_000_000))
    at = dt.datetime.fromtimestamp(4_000_000_000, dt.UTC)
    for zone, hours in (("UTC", 0), ("Etc/GMT-5", 5)):
        options = stream_options({"startingTimestamp": f"{at + dt.timedelta(hours=hours):%Y-%m-%d %H:%M:%S}"})
        assert StreamPlan(DeltaTable(folder, time_zone=zone), options).next(BEGINNING)["begin"]["version"] == 8
    # What the log has lost.
    for n in range(3):
        (folder / "_delta_log" / f"{n:020}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="failOnDataLoss"):
        plan(startingVersion=0).next(BEGINNING)
    lossy = plan(startingVersion=0, failOnDataLoss=False)
    assert sum(len(piece.files) for piece in lossy.pieces(BEGINNING, lossy.next(BEGINNING))) == 5
    # Columns that are gone.
    DeltaTable(folder).alter.set_table_properties({"delta.columnMapping.mode": "name"})
    renamed = plan(startingVersion=4)
    DeltaTable(folder).alter.drop_columns(["word"])
    with pytest.raises(SchemaMismatchError, match=r"version 10|changed"):
        renamed.next(BEGINNING)
    again = plan(startingVersion=4)
    with pytest.raises(SchemaMismatchError, match="dropped or renamed"):
        again.pieces(BEGINNING, again.next(BEGINNING))


def test_a_checkpoint_without_positions_is_one_error(spark, followed, appended):
    followed.ways = ("source", "native")
    followed.same(appended, {"maxFilesPerTrigger": 4}, "c")
    for way in followed.ways:
        checkpoint = followed.checkpoints / f"c-{way}"
        for file in (checkpoint / "commits").iterdir():
            file.unlink()
        (last,) = (file for file in (checkpoint / "offsets").iterdir() if file.name == "1")
        last.write_text(last.read_text().rpartition("\n")[0] + '\n{"other": 1}')
        (checkpoint / "offsets" / ".1.crc").unlink(missing_ok=True)
        (checkpoint / "offsets" / "2").unlink()
    followed.run(appended, {}, "c")
    for error in followed.errors.values():
        assert 'holds no position of a stream of a Delta table: {"other": 1}' in str(error)


def test_the_format_reads_and_writes_tables(reference, spark, tmp_path):
    folder = str(tmp_path / "t")
    rows = spark.range(0, 100, 1, 4).selectExpr("id", "id % 2 p")
    rows.write.format("deltafast").mode("append").option("partitionBy", "p").save(folder)
    DeltaTable(folder).delete("id > 50")
    spark.range(1000, 1001).selectExpr("id", "0L p", "'x' more").write.format("deltafast").mode("append").option(
        "mergeSchema", "true"
    ).save(folder)
    frame = spark.read.format("deltafast").load(folder)
    overwrite = spark.range(7, 8).selectExpr("id", "1L p").write.format("deltafast").mode("overwrite")
    overwrite.option("replaceWhere", "p = 1").option("userMetadata", "mine").save(folder)
    assert DeltaTable(folder).history()[0]["userMetadata"] == "mine"
    # A frame stays at its version.
    assert frame.count() == 52
    assert frame.where("p = 1 and id < 4").count() == 2
    assert frame.where("id > 2000").count() == 0
    expected = sorted(tuple(row) for row in reference._load(folder).collect())
    assert sorted(tuple(row) for row in spark.read.format("deltafast").load(folder).collect()) == expected
    past = spark.read.format("deltafast").option("versionAsOf", 0).load(folder)
    assert (past.columns, past.count()) == (["id", "p"], 100)
    with pytest.raises(Exception, match="no option"):
        spark.read.format("deltafast").option("versionAs", 0).load(folder).collect()
    with pytest.raises(Exception, match="no option"):
        rows.write.format("deltafast").mode("append").option("other", 0).save(folder)
    with pytest.raises(Exception, match="TableNotFoundError"):
        spark.read.format("deltafast").load(str(tmp_path / "none"))
    for _ in range(2):
        twice = spark.range(1).selectExpr("id", "id p").write.format("deltafast").mode("append")
        twice.option("txnAppId", "job").option("txnVersion", 1).save(folder)
    assert DeltaTable(folder).version() == 4
    assert not list(pathlib.Path(folder).rglob("*.arrows"))


@pytest.mark.proof
def test_sinks_write_each_batch_once(reference, spark, tmp_path):
    source = tmp_path / "source"
    for n in range(3):
        write_deltalake(source, ids(n), mode="append")

    def streams(checkpoint):
        read = spark.readStream.format("deltafast").option("maxFilesPerTrigger", 1).load(str(source))
        by_format = read.writeStream.format("deltafast").option("path", str(tmp_path / "format"))
        by_function = read.writeStream.foreachBatch(deltafast.spark.sink(tmp_path / "function"))
        queries = [
            query.option("checkpointLocation", str(tmp_path / name)).trigger(**NOW).start()
            for name, query in ((f"{checkpoint}-format", by_format), (f"{checkpoint}-function", by_function))
        ]
        for query in queries:
            query.awaitTermination()
        return [str(query.id) for query in queries]

    names = streams("a")
    for name, app in zip(("format", "function"), names, strict=True):
        assert sorted(row[0] for row in reference._load(tmp_path / name).collect()) == [0, 1, 2]
        assert DeltaTable(tmp_path / name).transaction_version(app) == 2
        # Spark did not get to write down that the last batch was through.
        for file in (tmp_path / f"a-{name}" / "commits").glob("*2*"):
            file.unlink()
    write_deltalake(source, ids(3), mode="append")
    assert streams("a") == names
    for name in ("format", "function"):
        table = DeltaTable(tmp_path / name)
        assert (table.version(), table.count()) == (3, 4)
        live = {pathlib.Path(uri) for uri in table.file_uris()}
        assert {file for file in (tmp_path / name).rglob("*.*") if "_delta_log" not in file.parts} == live
    counts = spark.readStream.format("deltafast").load(str(source)).groupBy("word").count()
    whole = deltafast.spark.sink(tmp_path / "counts", "counts", mode="overwrite")
    query = counts.writeStream.outputMode("complete").foreachBatch(whole).trigger(**NOW)
    query.option("checkpointLocation", str(tmp_path / "b")).start().awaitTermination()
    assert sorted(tuple(row) for row in reference._load(tmp_path / "counts").collect()) == [
        ("w0", 1),
        ("w1", 1),
        ("w2", 1),
        ("w3", 1),
    ]
    # Options are named, not arguments.
    wider = spark.readStream.format("deltafast").load(str(source)).selectExpr("id", "word", "1 more").writeStream
    function = wider.foreachBatch(deltafast.spark.sink(tmp_path / "function"))
    for writer in (function, wider.format("deltafast").option("path", str(tmp_path / "format"))):
        query = writer.option("checkpointLocation", str(tmp_path / f"d{writer is function}")).trigger(**NOW).start()
        with pytest.raises(Exception, match="pass the option mergeSchema=true to add it to the table"):
            query.awaitTermination()
    with pytest.raises(InvalidArgumentError, match="counts its batches itself"):
        deltafast.spark.sink("/x", options={"txnVersion": 3})
    with pytest.raises(InvalidArgumentError, match="give app_id"):
        deltafast.spark.sink(tmp_path / "x")(spark.range(1), 0)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_query_that_is_killed_between_rows_and_commit_loses_and_doubles_none(reference, spark, tmp_path):
    program = pathlib.Path(__file__).with_name("killed_stream.py")
    source = tmp_path / "source"
    for n in range(4):
        write_deltalake(source, ids(n), mode="append")

    def killed(way: str) -> int:
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "DEADLY": str(tmp_path / f"{way}-pid")}
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(program.parent / "killing"), str(pathlib.Path(deltafast.__file__).parents[1])]
        )
        command = [sys.executable, str(program), way, str(tmp_path)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=270, check=False, env=environment)
        assert ran.returncode != 0, ran.stderr[-3000:]
        return ran.returncode

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(killed, ("format", "function")))
    for way in ("format", "function"):
        assert DeltaTable(tmp_path / way).version() == 0
        staged = {file for file in (tmp_path / way).rglob("spark-*/*") if not file.name.startswith(".")}
        live = {pathlib.Path(uri) for uri in DeltaTable(tmp_path / way).file_uris()}
        assert staged - live, "rows of the second batch lie there, and no version has them"
    for way in ("format", "function"):
        killed_stream.follow(spark, way, tmp_path)
        assert sorted(row[0] for row in reference._load(tmp_path / way).collect()) == [0, 1, 2, 3]
        assert DeltaTable(tmp_path / way).version() == 3
