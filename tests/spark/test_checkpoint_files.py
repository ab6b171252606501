"""Checkpoints of streams on local disks: deltafast's class for their files, and Spark's own."""

from __future__ import annotations

import pytest
from pyspark.sql.functions import count

from deltafast import write_deltalake
from deltafast.spark._session.session import Session
from deltafast.spark._streaming.stream_source import stream_format

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

KEY = "spark.sql.streaming.checkpointFileManagerClass"
THEIRS = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


@pytest.fixture
def source(spark, tmp_path):
    """The stream of a table of which each version has one row more."""
    spark.conf.unset(KEY)
    for n in range(3):
        write_deltalake(tmp_path / "t", {"id": [n], "kind": [n % 2]}, mode="append")
    yield lambda: spark.readStream.format(stream_format(Session(spark))).load(str(tmp_path / "t"))
    spark.conf.unset(KEY)


def run(stream, checkpoint, mode="append"):
    rows = []

    def each(frame, _number):
        rows.extend(tuple(row) for row in frame.collect())

    writer = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint)).outputMode(mode)
    writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(rows)


def checksums(checkpoint):
    return {path.parent.name for path in checkpoint.rglob(".*.crc")}


def test_a_query_goes_on_with_either_class(spark, source, tmp_path):
    checkpoint = tmp_path / "c"
    assert run(source(), checkpoint) == [(0, 0), (1, 1), (2, 0)]
    assert spark.conf.get(KEY).endswith(".LocalCheckpointFiles")
    assert (checkpoint / "offsets" / "0").exists()
    assert (checkpoint / "commits" / "0").exists()
    assert checksums(checkpoint) == set()
    write_deltalake(tmp_path / "t", {"id": [3], "kind": [1]}, mode="append")
    spark.conf.set(KEY, THEIRS)
    assert run(source(), checkpoint) == [(3, 1)]
    # The class that the program chooses stays.
    assert spark.conf.get(KEY) == THEIRS
    assert checksums(checkpoint) == {"offsets", "commits"}
    spark.conf.unset(KEY)
    write_deltalake(tmp_path / "t", {"id": [4], "kind": [0]}, mode="append")
    assert run(source(), checkpoint) == [(4, 0)]


def test_state_is_kept(spark, source, tmp_path):
    def counted():
        return run(source().groupBy("kind").agg(count("*")), tmp_path / "c", "update")

    assert counted() == [(0, 2), (1, 1)]
    for n, theirs in ((3, True), (5, False)):
        if theirs:
            spark.conf.set(KEY, THEIRS)
        else:
            spark.conf.unset(KEY)
        write_deltalake(tmp_path / "t", {"id": [n], "kind": [1]}, mode="append")
        assert counted() == [(1, 2 if theirs else 3)]
