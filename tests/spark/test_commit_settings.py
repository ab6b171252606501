"""delta-spark's session settings and write options of a commit: the same tables with delta-spark and with deltafast."""

from __future__ import annotations

import contextlib
import json
import pathlib

import pytest

import deltafast.spark
from deltafast import DeltaTable
from deltafast.exceptions import InvalidArgumentError

from .helpers import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

CONF = "spark.databricks.delta."
APP_ID, VERSION, AUTO_RESET = (
    CONF + "write.txnAppId",
    CONF + "write.txnVersion",
    CONF + "write.txnVersion.autoReset.enabled",
)


@contextlib.contextmanager
def settings(spark, **values):
    """Set some of Delta's settings of the session; dots are double underscores."""
    keys = {CONF + key.replace("__", "."): str(value) for key, value in values.items()}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in keys:
            spark.conf.unset(key)


def last_actions(folder: str, kind: str) -> list[dict]:
    """Return the actions of a kind in the newest commit."""
    newest = max(pathlib.Path(folder, "_delta_log").glob("*.json"))
    return [action[kind] for action in map(json.loads, newest.read_text().splitlines()) if kind in action]


@pytest.fixture(params=[pytest.param("delta-spark", marks=pytest.mark.proof), "deltafast"])
def engine(request: pytest.FixtureRequest, spark):
    """Give `write(frame, folder, mode, **options)` and `sql(text)` of both implementations."""

    def write(frame, folder: str, mode: str, **options) -> None:
        if request.param == "deltafast":
            deltafast.spark.write(frame, folder, mode, options=options)
        else:
            frame.write.format("delta").mode(mode).options(**options).save(folder)

    def sql(text: str):
        return deltafast.spark.sql(spark, text) if request.param == "deltafast" else spark.sql(text)

    return write, sql


@pytest.fixture
def folder(spark, tmp_path) -> str:
    """Give a table of four rows."""
    path = str(tmp_path / "t")
    deltafast.spark.write(spark.range(4).selectExpr("id", "id % 2 AS part", "'old' AS text"), path)
    return path


def new_rows(spark, *ids: int):
    return spark.createDataFrame([(number, number % 2, "new") for number in ids], "id long, part long, text string")


@pytest.mark.parametrize("auto_reset", [None, "false", "true"])
def test_the_session_writes_a_transaction_once(engine, spark, folder, auto_reset):
    write, sql = engine
    extra = {} if auto_reset is None else {"write__txnVersion__autoReset__enabled": auto_reset}
    with settings(spark, write__txnAppId="job", write__txnVersion=7, **extra):
        write(new_rows(spark, 10), folder, "append")
        assert DeltaTable(folder).transaction_version("job") == 7
        assert spark.conf.get(VERSION, None) == (None if auto_reset == "true" else "7")
        if auto_reset == "true":
            # One of the two settings alone is an error; nothing is dropped silently.
            with pytest.raises(Exception, match=r"(?i)both .*txn.* must be specified for"):
                write(new_rows(spark, 11), folder, "append")
        else:
            write(new_rows(spark, 11), folder, "append")
            sql(f"DELETE FROM delta.`{folder}`")
            sql(f"UPDATE delta.`{folder}` SET text = 'lost'")
            sql(f"MERGE INTO delta.`{folder}` t USING (SELECT 0 id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
        assert (DeltaTable(folder).count(), DeltaTable(folder).version()) == (5, 1)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {} WHERE id = 1",
        "UPDATE {} SET text = 'x' WHERE id = 1",
        "MERGE INTO {} t USING (SELECT 1L id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO {} VALUES (9, 1, 'nine')",
        "INSERT INTO {} SELECT 9L, 1L, 'nine'",
    ],
)
def test_a_statement_records_the_transaction(engine, spark, folder, statement):
    _, sql = engine
    text = statement.format(f"delta.`{folder}`")
    with settings(spark, write__txnAppId="job", write__txnVersion=7, write__txnVersion__autoReset__enabled="true"):
        sql(text)
        assert spark.conf.get(VERSION, None) is None
        assert (DeltaTable(folder).version(), DeltaTable(folder).transaction_version("job")) == (1, 7)
        spark.conf.set(VERSION, "7")
        sql(text)
        assert spark.conf.get(VERSION, None) is None, "the version that was skipped is reset, too"
        assert DeltaTable(folder).version() == 1


def test_options_precede_the_session(engine, spark, folder):
    write, _ = engine
    with settings(spark, write__txnAppId="job", write__txnVersion=7, write__txnVersion__autoReset__enabled="true"):
        write(new_rows(spark, 10), folder, "append", txnAppId="other", txnVersion="1")
        assert spark.conf.get(VERSION) == "7"
        assert DeltaTable(folder).transaction_version("other") == 1
        assert DeltaTable(folder).transaction_version("job") is None
        with pytest.raises(Exception, match=r"(?i)both .*txn.* must be specified for"):
            write(new_rows(spark, 11), folder, "append", txnAppId="other")


@pytest.mark.parametrize("value", ["-1", "1.5", "x", ""])
def test_a_wrong_transaction_version_is_named(spark, folder, value):
    with pytest.raises(InvalidArgumentError, match="txnVersion must be a whole number"):
        deltafast.spark.write(new_rows(spark, 10), folder, "append", options={"txnAppId": "job", "txnVersion": value})
    assert DeltaTable(folder).version() == 0


@pytest.mark.parametrize(
    ("given", "is_compacted"),
    [
        ({}, False),
        ({"autoCompact__enabled": "true", "autoCompact__minNumFiles": 4}, True),
        ({"autoCompact__enabled": "false", "autoCompact__minNumFiles": 2}, False),
        # All files are larger than half of this size.
        ({"autoCompact__enabled": "true", "autoCompact__minNumFiles": 2, "autoCompact__maxFileSize": 100}, False),
        (
            {
                "autoCompact__enabled": "true",
                "autoCompact__minNumFiles": 2,
                "autoCompact__maxFileSize": 100,
                "autoCompact__minFileSize": 1 << 20,
            },
            False,
        ),
    ],
)
def test_the_session_determines_auto_compaction(engine, spark, tmp_path, given, is_compacted):
    write, _ = engine
    path = str(tmp_path / "t")
    with settings(spark, **given):
        write(spark.range(0, 400, 1, 4), path, "append")
    table = DeltaTable(path)
    assert len(table.file_uris()) == (1 if is_compacted else 4)
    if is_compacted:
        assert table.history(1)[0]["operation"] == "OPTIMIZE"
    assert table.count() == 400


@pytest.mark.parametrize("given", [{}, {"autoCompact__minNumFiles": 5}])
def test_too_few_files_are_not_compacted(spark, tmp_path, given):
    # delta-spark also compacts after the first write of a driver to a partition, however few files there are.
    path = str(tmp_path / "t")
    with settings(spark, autoCompact__enabled="true", **given):
        deltafast.spark.write(spark.range(0, 400, 1, 4), path, "append")
    assert len(DeltaTable(path).file_uris()) == 4


@pytest.mark.parametrize("per_file", [2, *(pytest.param(count, marks=pytest.mark.proof) for count in (1, 4))])
def test_the_session_determines_the_size_of_optimized_files(engine, spark, tmp_path, per_file):
    _, sql = engine
    path = str(tmp_path / "t")
    deltafast.spark.write(spark.range(0, 400, 1, 4), path, "append")
    size = max(DeltaTable(path).get_add_actions().column("size_bytes").to_pylist())
    with settings(spark, optimize__maxFileSize=size * per_file + 10):
        sql(f"OPTIMIZE delta.`{path}`")
    assert len(DeltaTable(path).file_uris()) == 4 // per_file
    assert DeltaTable(path).count() == 400


@pytest.mark.parametrize("name", ["minNumFiles", "maxFileSize"])
def test_a_wrong_setting_of_auto_compaction_is_named(spark, folder, name):
    # delta-spark rejects it when it is set, so only a session without its jar gets this far.
    from deltafast.spark._session.commit_settings import _number, _size

    with pytest.raises(InvalidArgumentError, match=rf"autoCompact\.{name} must be"):
        (_size if name == "maxFileSize" else _number)(f"{CONF}autoCompact.{name}", "many")
    assert _size("maxFileSize", " 128MB ") == 128 << 20


def test_the_session_overrides_the_property(engine, spark, tmp_path):
    write, _ = engine
    path = str(tmp_path / "t")
    write(spark.range(0, 4, 1, 4), path, "append")
    DeltaTable(path).alter.set_table_properties({"delta.autoOptimize.autoCompact": "true"})
    with settings(spark, autoCompact__minNumFiles=2, autoCompact__enabled="false"):
        write(spark.range(0, 4, 1, 4), path, "append")
    assert len(DeltaTable(path).file_uris()) == 8
    with settings(spark, autoCompact__minNumFiles=2):
        write(spark.range(0, 4, 1, 4), path, "append")
    assert len(DeltaTable(path).file_uris()) == 1


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_files_are_rearranged_without_a_data_change(engine, spark, folder, mode):
    write, _ = engine
    before = rows(spark.read.format("delta").load(folder))
    frame = spark.createDataFrame(spark.read.format("delta").load(folder).collect(), "id long, part long, text string")
    write(frame.repartition(1), folder, mode, dataChange="false")
    adds, removes = last_actions(folder, "add"), last_actions(folder, "remove")
    assert adds
    assert bool(removes) == (mode == "overwrite")
    assert not any(action["dataChange"] for action in adds + removes)
    if mode == "overwrite":
        assert rows(spark.read.format("delta").load(folder)) == before
    with pytest.raises(Exception, match=r"(?i)dataChange"):
        write(frame.withColumn("more", frame.id), folder, mode, dataChange="false", mergeSchema="true")
    with pytest.raises(Exception, match=r"(?i)dataChange"):
        write(frame, folder + "-new", mode, dataChange="false")
    assert not DeltaTable.is_deltatable(folder + "-new")


def test_part_of_a_file_cannot_be_rearranged(spark, folder):
    with pytest.raises(InvalidArgumentError, match="whole files"):
        deltafast.spark.write(
            new_rows(spark, 1), folder, "overwrite", options={"dataChange": "false", "replaceWhere": "id = 1"}
        )
    with pytest.raises(InvalidArgumentError, match="dataChange=false"):
        deltafast.spark.write(
            new_rows(spark, 1), folder, "overwrite", options={"dataChange": "false", "replaceUsing": "id"}
        )
    assert DeltaTable(folder).version() == 0


@pytest.mark.parametrize(
    "options",
    [
        {"replaceUsing": "part"},
        {"replaceUsing": "part, text"},
        {"replaceOn": "target.part = s.part"},
        {"replaceOn": "t.part <=> s.part", "targetAlias": "t"},
        {"replaceOn": "s.id = t.id AND t.`part` = s.part", "targetAlias": "t"},
    ],
    ids=str,
)
def test_rows_are_replaced_by_keys(spark, folder, options):
    deltafast.spark.write(new_rows(spark, 1, 5).alias("s"), folder, "overwrite", options=options)
    kept = {
        "part": [0, 2],
        "part, text": [0, 1, 2, 3],
        "target.part = s.part": [0, 2],
        "t.part <=> s.part": [0, 2],
    }.get(next(iter(options.values())), [0, 2, 3])
    found = sorted((row.id, row.text) for row in spark.read.format("delta").load(folder).collect())
    assert found == sorted([(number, "old") for number in kept] + [(1, "new"), (5, "new")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replaceUsing": "id", "replaceOn": "target.id = s.id"}, "not both"),
        ({"replaceUsing": "id,,part"}, "names of columns"),
        ({"replaceUsing": "nothing"}, "nothing"),
        ({"targetAlias": "t"}, "targetAlias"),
        ({"replaceOn": "t.id > s.id", "targetAlias": "t"}, "equalities"),
        ({"replaceUsing": "id", "replaceWhere": "id = 1"}, "which rows are replaced"),
    ],
    ids=str,
)
def test_wrong_keys_are_refused(spark, folder, options, message):
    with pytest.raises(Exception, match=message):
        deltafast.spark.write(new_rows(spark, 1).alias("s"), folder, "overwrite", options=options)
    assert DeltaTable(folder).version() == 0
