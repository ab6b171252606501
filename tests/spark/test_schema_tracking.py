"""Streams that follow changes of the schema with a schema log, beside delta-spark's own in one session."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from deltafast.exceptions import DeltaProtocolError, InvalidArgumentError
from deltafast.spark._conditions import condition_of
from deltafast.spark._session.session import Session
from deltafast.spark._streaming.checkpoint_files import CheckpointFolder
from deltafast.spark._streaming.delta_spark_offsets import offset_of, without_offset
from deltafast.spark._streaming.schema_changes import changes_between, checkpoint_hash
from deltafast.spark._streaming.schema_log import SchemaLog, TrackedMetadata
from deltafast.spark._streaming.stream_source import stream_format
from oracle.reference import arrow

if TYPE_CHECKING:
    import pathlib

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
ALLOWED = {f"allowSourceColumn{name}": "always" for name in ("Rename", "Drop", "TypeChange")}
PROPERTIES = "tblproperties ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"


class Run:
    """What one run of a query read, how it ended, and its schema log."""

    def __init__(self, batches: list[list[str]], error: str | None, log: list[dict[str, Any]]) -> None:
        found = None if error is None else re.search(r"\[(D[A-Z_]+)\]", error)
        self.batches, self.log = batches, log
        self.condition = error if found is None else found[1]
        self.hashes = re.findall(r"\.ckpt_(-?\d+)", error or "")
        self.kind = re.findall(r"non-additive schema change\(s\) \((.+?)\)", error or "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"{self.condition}: {self.batches} {[entry['deltaCommitVersion'] for entry in self.log]}"

    __hash__ = None

    @property
    def ids(self) -> list[int]:
        """The column `id` of all rows."""
        return sorted(int(re.search(r"'id': (\d+)", row)[1]) for batch in self.batches for row in batch)


class Streams:
    """Runs of queries with both libraries, each with a checkpoint of its own, or with a common one."""

    def __init__(self, spark, folder: pathlib.Path) -> None:
        self.spark, self.folder = spark, folder
        self._formats = {"delta": "delta", "source": stream_format(Session(spark))}

    def run(self, way: str, table: pathlib.Path, name: str, location: str | None = None, **options: str) -> Run:
        """Run a query of one library up to now."""
        batches: list[list[str]] = []

        def each(frame, number):
            rows = [{key: row[key] for key in sorted(row)} for row in arrow(frame).to_pylist()]
            batches.append(sorted(map(repr, rows)))

        checkpoint = self.folder / name
        reader = self.spark.readStream.format(self._formats[way]).options(**options)
        if location != "":
            reader = reader.option("schemaTrackingLocation", location or str(checkpoint))
        error = None
        try:
            writer = reader.load(str(table)).writeStream.foreachBatch(each).trigger(availableNow=True)
            writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
        except Exception as raised:  # noqa: BLE001 - it is compared
            error = str(raised)
        return Run([batch for batch in batches if batch], error, list(map(_plain, self.log(name))))

    def log(self, name: str) -> list[str]:
        """The entries of the schema log of a checkpoint."""
        files = [file for file in (self.folder / name).glob("_schema_log_*/*") if file.name.isdigit()]
        return [file.read_text() for file in sorted(files, key=lambda file: int(file.name))]

    def both(self, table: pathlib.Path, name: str, **options: str) -> Run:
        """Run the query with both libraries, each with its own checkpoint; the runs are equal but for the hashes."""
        theirs, ours = (self.run(way, table, f"{name}-{way}", **options) for way in self._formats)
        assert bool(theirs.hashes) == bool(ours.hashes)
        theirs.hashes = ours.hashes
        assert theirs == ours
        return ours

    def set(self, table: pathlib.Path, *statements: str) -> Any:
        """Change the table, and return a frame of it."""
        for statement in statements:
            self.spark.sql(statement.format(t=f"delta.`{table}`")).collect()
        return self.spark.read.format("delta").load(str(table))


def _plain(text: str) -> dict[str, Any]:
    """An entry without what differs between checkpoints, and without the order of sets."""
    version, _, line = text.partition("\n")
    assert version == "v1"
    entry = json.loads(line)
    assert re.search(r"/sources/0$", entry.pop("sourceMetadataPath"))
    for key in ("dataSchemaJson", "partitionSchemaJson", "protocolJson"):
        entry[key] = json.loads(entry[key])
    for key in ("readerFeatures", "writerFeatures"):
        entry["protocolJson"]["protocol"].get(key, []).sort()
    return entry


@pytest.fixture
def streams(spark, tmp_path):
    return Streams(spark, tmp_path / "checkpoints")


@pytest.fixture
def table(streams, tmp_path):
    folder = tmp_path / "t"
    streams.set(
        folder,
        f"create table {{t}} (id bigint, word string, p int) using delta partitioned by (p) {PROPERTIES},"
        " 'delta.enableChangeDataFeed' = 'true', 'own' = 'x')",
        "insert into {t} values (1, 'a', 0)",
    )
    return folder


def test_a_renamed_column_stops_the_query_until_it_is_allowed(streams, table):
    assert streams.both(table, "c").ids == [1]
    streams.set(table, "insert into {t} values (2, 'b', 0)", "alter table {t} rename column word to term")
    streams.set(table, "insert into {t} values (3, 'c', 0)")
    found = streams.both(table, "c")
    assert (found.condition, found.ids) == (EVOLUTION, [2])
    for _ in range(2):
        found = streams.both(table, "c", allowSourceColumnDrop="always", allowSourceColumnRename="2")
        assert (found.condition, found.kind) == (BLOCKED, ["RENAME COLUMN"])
    found = streams.both(table, "c", allowSourceColumnRename="3")
    assert (found.condition, found.ids) == (None, [3])
    assert "'term': 'c'" in found.batches[0][0]
    assert [entry["deltaCommitVersion"] for entry in found.log] == [1, 3]


@pytest.mark.proof
def test_settings_of_the_session_allow_changes_of_one_stream(streams, table):
    streams.both(table, "c")
    streams.set(table, "alter table {t} drop column word", "insert into {t} values (2, 0)")
    assert streams.both(table, "c").condition == EVOLUTION
    blocked = {way: streams.run(way, table, f"c-{way}") for way in ("delta", "source")}
    assert {found.kind[0] for found in blocked.values()} == {"DROP COLUMN"}
    conf, name = streams.spark.conf, "spark.databricks.delta.streaming.allowSourceColumn"
    try:
        for way, found in blocked.items():
            (stream,) = set(found.hashes)
            source = json.loads(streams.log(f"c-{way}")[0].partition("\n")[2])["sourceMetadataPath"]
            assert int(stream) == checkpoint_hash(source)
            conf.set(f"{name}Drop.ckpt_{stream}", "1")
            assert streams.run(way, table, f"c-{way}").condition == BLOCKED
            conf.set(f"{name}Drop.ckpt_{stream}", "2")
            assert streams.run(way, table, f"c-{way}").ids == [2]
            conf.unset(f"{name}Drop.ckpt_{stream}")
        assert streams.both(table, "c").condition == BLOCKED
        conf.set(f"{name}RenameAndDrop", "always")
        assert streams.both(table, "c").condition is None
    finally:
        for key in (f"{name}RenameAndDrop", *(f"{name}Drop.ckpt_{found.hashes[0]}" for found in blocked.values())):
            conf.unset(key)


@pytest.mark.proof
@pytest.mark.parametrize("ways", [("source", "delta"), ("delta", "source")])
def test_a_query_continues_with_the_other_library(streams, table, ways):
    first, second = ways
    steps = (
        "insert into {t} values (2, 'x', 0)",
        "alter table {t} rename column word to term",
        "alter table {t} add column more int",
        "alter table {t} drop column term",
    )
    for at, step in enumerate(steps):
        columns = streams.set(table, step).columns
        values = ({"id": str(10 + at), "p": "0"}.get(name, "null") for name in columns)
        streams.set(table, f"insert into {{t}} values ({', '.join(values)})")
        # Each library takes over where the other stopped: in front of the change, and after it.
        for way in (first, second, first):
            theirs, mixed = streams.run("delta", table, "pure", **ALLOWED), streams.run(way, table, "mixed", **ALLOWED)
            assert (theirs.batches, theirs.condition, theirs.log) == (mixed.batches, mixed.condition, mixed.log), way
        first, second = second, first
    assert len(mixed.log) == len(steps)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_the_versions_of_a_table_are_followed_one_by_one(streams, table):
    streams.set(table, "alter table {t} rename column word to term", "insert into {t} values (2, 'b', 0)")
    streams.set(table, "insert into {t} values (3, 'c', 0)", "alter table {t} add column more int")
    streams.set(table, "alter table {t} alter column more type bigint", "alter table {t} drop column term")
    streams.set(table, "insert into {t} values (4, 0, 44)", "update {t} set more = 45 where id = 4")
    streams.set(table, "alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'true')")
    streams.set(table, "insert into {t} values (5, 0, 46)")
    feed = {"readChangeFeed": "true", "startingVersion": "1"}
    rows = {"startingVersion": "1", "maxFilesPerTrigger": "1", "ignoreChanges": "true"}
    for name, options, expected in (("feed", feed, [1, 2, 3, 4, 4, 4, 5]), ("rows", rows, [1, 2, 3, 4, 4, 5])):
        ids: list[int] = []
        for _ in range(8):
            found = streams.both(table, name, **ALLOWED, **options)
            ids += found.ids
            if found.condition is None:
                break
            assert found.condition == EVOLUTION
        assert found.condition is None
        assert ids == expected
        # Changes without rows between them are followed at once.
        assert [entry.get("previousMetadataSeqNum") for entry in found.log] == [None, None, None, 1, None]


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_log_can_be_added_to_a_query(streams, table):
    for way in ("delta", "source"):
        assert streams.run(way, table, f"c-{way}", location="").ids == [1]
        # This query has planned its batch, but not completed it.
        streams.run(way, table, f"planned-{way}", location="")
        shutil.rmtree(streams.folder / f"planned-{way}" / "commits")
    streams.set(table, "insert into {t} values (2, 'b', 0)", "alter table {t} rename column word to term")
    streams.set(table, "insert into {t} values (3, 'c', 0)")
    for name, first in (("c", []), ("planned", [1])):
        found = [streams.both(table, name, **ALLOWED) for _ in range(3)]
        assert [run.condition for run in found].count(EVOLUTION) == 2
        assert [number for run in found for number in run.ids] + streams.both(table, name, **ALLOWED).ids == [
            *first,
            2,
            3,
        ]


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_a_protocol_a_lost_checkpoint_and_a_replaced_type(streams, table, tmp_path):
    for way in ("delta", "source"):
        streams.run(way, table, f"lost-{way}")
        for kept in ("offsets", "commits"):
            shutil.rmtree(streams.folder / f"lost-{way}" / kept)
    streams.both(table, "protocol")
    java = streams.spark._jvm.io.delta.tables.DeltaTable.forPath(streams.spark._jsparkSession, str(table))
    java.addFeatureSupport("deletionVectors")
    streams.set(table, "insert into {t} values (2, 'b', 0)")
    assert [streams.both(table, "protocol").condition for _ in range(2)] == [EVOLUTION, None]
    found = [streams.both(table, "lost") for _ in range(2)]
    assert (found[0].condition, found[1].ids) == (EVOLUTION, [1, 2])
    assert found[0].log[1]["previousMetadataSeqNum"] == -1
    other = tmp_path / "other"
    for kind, mode in (("string", "append"), ("int", "overwrite")):
        frame = streams.spark.range(3).selectExpr("id", f"cast(id as {kind}) v")
        frame.write.format("delta").mode(mode).option("overwriteSchema", str(mode == "overwrite")).save(str(other))
        found = streams.both(other, "type", **ALLOWED, ignoreChanges="true")
    assert found.condition == EVOLUTION
    assert streams.both(other, "type", **ALLOWED).condition == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_locations_that_are_wrong_are_refused(streams, table, tmp_path):
    for way in ("delta", "source"):
        found = streams.run(way, table, f"c-{way}", location=str(tmp_path / "elsewhere"))
        assert found.condition == "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
    assert "leave failOnDataLoss out" in streams.run("source", table, "loss", failOnDataLoss="false").condition
    streams.both(table, "c", streamingSourceTrackingId="left")
    (folder,) = (streams.folder / "c-source").glob("_schema_log_*")
    assert folder.name.endswith("_left")
    # A log that was copied from another query.
    shutil.copytree(folder, streams.folder / "copy" / folder.name)
    found = streams.run("source", table, "copy", streamingSourceTrackingId="left")
    assert "belongs to the source" in found.condition


def test_two_queries_do_not_share_a_log(spark, tmp_path):
    folder = CheckpointFolder(Session(spark), str(tmp_path / "log"))
    assert folder.names() == []
    entry = TrackedMetadata("t", 3, [_field("a", "long")], [], "s", {}, {"minReaderVersion": 1, "minWriterVersion": 2})
    one, two = SchemaLog(folder, "t", "table"), SchemaLog(folder, "t", "table")
    assert (one.current, one.previous) == (None, None)
    one.add(entry)
    one.add(entry)
    assert [name for name in folder.names() if name.isdigit()] == ["0"]
    with pytest.raises(InvalidArgumentError, match="another query uses"):
        two.add(entry)
    assert SchemaLog(folder, "t", "table").current == entry
    with pytest.raises(InvalidArgumentError, match=r"of another table \(t, not u\)"):
        SchemaLog(folder, "u", "table")
    folder.create("1", "v2\n{}")
    with pytest.raises(DeltaProtocolError, match="unknown format 'v2'"):
        SchemaLog(folder, "t", "table")
    folder = CheckpointFolder(Session(spark), str(tmp_path / "damaged"))
    folder.create("0", "v1\n{")
    with pytest.raises(DeltaProtocolError, match=r"entry 0 of the schema log file:.*damaged is damaged") as raised:
        SchemaLog(folder, "t", "table")
    error = raised.value
    assert condition_of(error.code, error.parameters).name == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"


def _field(name, kind, physical=None, nullable=True):
    metadata = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def _struct(*fields):
    return {"type": "struct", "fields": list(fields)}


def test_changes_of_schemas_have_kinds():
    old = [
        _field("a", "integer", "1"),
        _field("b", _struct(_field("x", "date", "3"), _field("y", "void", "4")), "2"),
        _field("c", {"type": "map", "keyType": "string", "valueType": "decimal(4,2)", "valueContainsNull": True}),
    ]
    assert changes_between(old, [*old, _field("new", "string")]).kind is None
    assert changes_between(old, old[1:]).kind == "DROP COLUMN"
    found = changes_between(
        old,
        [
            _field("z", "double", "1"),
            _field("b", _struct(_field("w", "timestamp_ntz", "3"), _field("y", "string", "4")), "2"),
            _field("c", {"type": "map", "keyType": "string", "valueType": "decimal(6,3)", "valueContainsNull": True}),
        ],
    )
    assert found.kind == "RENAME AND TYPE WIDENING"
    assert found.description() == (
        "'a' -> 'z', 'b.x' -> 'b.w', 'z' integer -> double, 'b.w' date -> timestamp_ntz, "
        "'c.value' decimal(4,2) -> decimal(6,3)"
    )
    assert not found.incompatible
    for before, after in (
        ("long", "double"),
        ("long", "integer"),
        ("string", "integer"),
        ("integer", "decimal(11,2)"),
        ("decimal(4,2)", "decimal(4,3)"),
        ("string", _struct(_field("x", "string"))),
    ):
        assert changes_between([_field("a", before)], [_field("a", after)]).incompatible == ["a"], (before, after)
    assert changes_between([_field("a", "long")], [_field("a", "long", nullable=False)]).incompatible == ["a"]
    # Each option allows its own kind, once for a version or always.
    both = changes_between(old, [_field("z", "integer", "1"), old[1]])
    assert both.kind == "RENAME AND DROP COLUMN"
    settings: dict[str, str] = {}
    assert both.blocked({}, settings.get, 5, 7) == ["allowSourceColumnRename", "allowSourceColumnDrop"]
    assert both.blocked({"allowsourcecolumndrop": "7"}, settings.get, 5, 7) == ["allowSourceColumnRename"]
    settings["spark.databricks.delta.streaming.allowSourceColumnRename"] = "7"
    assert len(both.blocked({"allowsourcecolumndrop": "6"}, settings.get, 5, 7)) == 2
    settings["spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop.ckpt_5"] = "7"
    assert both.blocked({}, settings.get, 5, 7) == []
    assert both.blocked({}, settings.get, 6, 7) != []


def test_hashes_are_those_of_java(spark):
    for text in ("", "file:/tmp/c/sources/0", "s3a://b\u00fccket/\U0001f600/sources/0"):
        assert checkpoint_hash(text) == spark._jvm.java.util.Objects.hashCode(text)


def test_positions_contain_offsets_of_delta_spark():
    at = {"table": "t", "version": 4, "index": 3, "snapshot": False}
    position = {"begin": at, "at": at}
    expected = {"reservoirId": "t", "reservoirVersion": 4, "isStartingVersion": False}
    assert offset_of(position) == {**expected, "sourceVersion": 1, "index": 2}
    assert offset_of({**position, "at": {**at, "index": 0}})["index"] == -1
    assert offset_of({**position, "barrier": -20}) == {**expected, "sourceVersion": 3, "index": -20}
    assert without_offset({**offset_of(position), **position}) == position
