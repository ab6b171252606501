"""Files that are gone or wrong, changes between plan and read, settings of the session: right rows, or one clear error."""

from __future__ import annotations

import contextlib
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast.spark
from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import DataFileNotFoundError, InvalidArgumentError, SchemaMismatchError

from .helpers import rows, usual_and_proof

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # PySpark says so whenever a frame is collected.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

ZONES = ["Asia/Kathmandu", "UTC", "America/St_Johns"]
WAYS = usual_and_proof(["index"], ["arrow", "many", "join", "paths"])


@contextlib.contextmanager
def settings(spark, **given: str):
    """Set some of the session's settings (`ansi_enabled` is `spark.sql.ansi.enabled`) for a while."""
    names = {"ansi": "spark.sql.ansi.enabled", "zone": "spark.sql.session.timeZone", "case": "spark.sql.caseSensitive"}
    before = {names[key]: spark.conf.get(names[key]) for key in given}
    try:
        for key, value in given.items():
            spark.conf.set(names[key], value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def ids(frame) -> list[int]:
    """The first column, sorted."""
    return sorted(row[0] for row in frame.collect())


def said(call) -> str | list[str]:
    """Rows, or of an error the first line's condition: `[DIVIDE_BY_ZERO]`."""
    try:
        return rows(call())
    except Exception as error:  # noqa: BLE001 - its words are compared
        text = str(error)
        return text[text.index("[") : text.index("]") + 1] if "[" in text else text


@pytest.fixture
def replaced(tmp_path) -> str:
    """Give a table of two versions, of which the newer has none of the older one's files."""
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by="p")
    write_deltalake(path, pa.table({"id": [3], "p": ["a"]}), mode="overwrite")
    return path


def vacuum(path: str) -> None:
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


@pytest.mark.proof
def test_a_version_that_was_vacuumed_is_named(spark, replaced, way):
    assert ids(deltafast.spark.read(spark, replaced, 0, read_mode=way)) == [1, 2]
    vacuum(replaced)
    wanted = "vacuum" if way == "arrow" else r"version 0 of the Delta table at .* cannot be read any more.*vacuum"
    with pytest.raises(Exception, match=wanted):
        deltafast.spark.read(spark, replaced, 0, read_mode=way).collect()
    assert ids(deltafast.spark.read(spark, replaced, read_mode=way)) == [3]


def test_explicit_paths_that_are_gone_are_deltafasts_error(spark, replaced):
    vacuum(replaced)
    with pytest.raises(DataFileNotFoundError, match=r"its data file .*\.parquet is gone, as a vacuum has it"):
        deltafast.spark.read(spark, replaced, 0, read_mode="paths")


def test_what_changes_between_plan_and_read_is_not_seen(spark, tmp_path, way, monkeypatch):
    monkeypatch.setattr("deltafast.spark._scan.file_index._YOUNG", 0.0)
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]}), partition_by="p")
    frame = deltafast.spark.read(spark, path, read_mode=way)
    write_deltalake(path, pa.table({"id": [4], "p": ["a"]}), mode="append")
    DeltaTable(path).delete("id = 1")
    assert ids(frame) == [1, 2, 3]
    assert ids(frame.where("p = 'a'")) == [1, 2]
    write_deltalake(path, pa.table({"id": [5], "p": ["c"]}), mode="overwrite")
    assert ids(frame.where("id > 1")) == [2, 3]
    vacuum(path)
    if way == "index":
        with pytest.raises(Exception, match=r"version 0 of the Delta table at .* cannot be read any more.*vacuum"):
            frame.where("id > 2").collect()
    else:
        # Spark or the core name the file.
        with pytest.raises(Exception, match=r"\.parquet"):
            frame.where("id > 2").collect()
    assert ids(deltafast.spark.read(spark, path, read_mode=way)) == [5]


def test_a_file_that_is_missing_without_a_reason_is_named(spark, tmp_path, way):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}))
    (file,) = DeltaTable(path).file_uris()
    pathlib.Path(file).unlink()
    with pytest.raises(Exception, match=pathlib.Path(file).name):
        deltafast.spark.read(spark, path, read_mode=way).collect()


def test_files_that_have_other_types_than_the_log_give_no_rows(spark, tmp_path, way):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1], "v": [2]}))
    (file,) = DeltaTable(path).file_uris()
    for wrong in (pa.array(["x"]), pa.array([1.5]), pa.array([{"x": 1}])):
        pq.write_table(pa.table({"id": pa.array([1]), "v": wrong}), file)
        with pytest.raises(Exception, match=pathlib.Path(file).name):
            deltafast.spark.read(spark, path, read_mode=way).collect()
    pathlib.Path(file).write_bytes(b"PAR1 is how it begins")
    with pytest.raises(Exception, match=pathlib.Path(file).name):
        deltafast.spark.read(spark, path, read_mode=way).collect()


FILTERS = (
    "a + 1 > 0",
    "a + 1 < 0",
    "cast(w as int) = 7",
    "cast(w as int) is null",
    "cast(w as date) = date'2020-01-01'",
    "a / (a - 1) = 2",
    "p / 0 > 1",
    "cast(p as string) = '1'",
    "p = '1'",
    "p = 'x'",
    "w = 7",
    "element_at(array(1, 2), p) = 2",
)


@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_filters_mean_what_the_session_says(reference, spark, tmp_path, way, ansi):
    # Spark filters what comes by way of Arrow as it filters anything.
    filters = FILTERS[:3] if way == "arrow" else FILTERS
    path = str(tmp_path / "t")
    columns = {"a": pa.array([1, 2, 2147483647, None], pa.int32()), "w": ["7", "x", "2020-01-01", None]}
    write_deltalake(path, pa.table(columns | {"p": pa.array([1, 2, 9, None], pa.int32())}), partition_by="p")
    with settings(spark, ansi=ansi):
        found = {
            text: said(lambda t=text: deltafast.spark.read(spark, path, read_mode=way).where(t)) for text in filters
        }
        given = {
            text: said(lambda t=text: deltafast.spark.read(spark, path, read_mode=way, filters=t)) for text in filters
        }
        wanted = {text: said(lambda t=text: reference._load(path).where(t)) for text in filters}
    assert found == given == wanted
    assert any("[" in str(value)[:1] and isinstance(value, str) for value in wanted.values()) == (ansi == "true")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_do_not_fit_are_refused_whatever_the_session_says(spark, tmp_path, ansi):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": pa.array([1], pa.int32()), "d": pa.array(["x"])}))
    with settings(spark, ansi=ansi):
        deltafast.spark.write(spark.sql("select 5S id, 6 d"), path, "append")
        for wrong in ("5000000000L id, 'y' d", "'five' id, 'y' d", "double('NaN') id, 'y' d"):
            with pytest.raises(Exception, match=r"CAST_OVERFLOW|CAST_INVALID_INPUT|does not fit integer"):
                deltafast.spark.write(spark.sql(f"select {wrong}"), path, "append")
        with pytest.raises((SchemaMismatchError, InvalidArgumentError), match="id"):
            deltafast.spark.write(spark.sql("select array(1) id"), path, "append")
    assert rows(deltafast.spark.read(spark, path)) == ["{'id': 1, 'd': 'x'}", "{'id': 5, 'd': '6'}"]
    assert len(list(pathlib.Path(path).rglob("*.parquet"))) == 2


@pytest.mark.parametrize("zone", usual_and_proof(ZONES[:1], ZONES[1:]))
def test_timestamps_are_those_of_the_sessions_zone(reference, spark, tmp_path, way, zone):
    path = str(tmp_path / "t")
    with settings(spark, zone=zone):
        frame = spark.range(0, 48, 1, 4).selectExpr(
            "id",
            "timestamp'2020-03-08 00:00:00' + make_interval(0, 0, 0, 0, cast(id as int)) z",
            "timestamp'2020-01-01 00:30:00' + make_interval(0, 0, 0, 0, cast(id % 3 as int)) p",
        )
        deltafast.spark.write(frame, path, partition_by=["p"])
        for text in (
            "z >= '2020-03-08 22:15:00'",
            "z < timestamp'2020-03-08 03:00:00'",
            "date(z) = '2020-03-09'",
            "p = timestamp'2020-01-01 01:30:00'",
            "p > '2020-01-01 00:30:00' and z < '2020-03-08 05:00:00'",
            "hour(p) = 2 and hour(z) = 4",
            "z = timestamp'2020-03-08T12:00:00Z'",
        ):
            found = rows(deltafast.spark.read(spark, path, read_mode=way).where(text))
            assert found == rows(reference._load(path).where(text)), text
            assert found == rows(deltafast.spark.read(spark, path, filters=text, read_mode=way)), text
    # The same moments are read in another zone.
    with settings(spark, zone="Pacific/Apia"):
        assert rows(deltafast.spark.read(spark, path, read_mode=way)) == rows(reference._load(path))


@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize("case", ["true", "false"])
def test_names_are_as_exact_as_the_session_wants_them(reference, spark, tmp_path, way, case):
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"Id": [1, 2], "S": [{"X": 1}, {"X": 2}], "Part": ["a", "b"]}), partition_by="Part")
    queries = ("Id = 2", "ID = 2", "part = 'b'", "Part = 'b'", "s.x = 2", "S.X = 2", "S.x = 2 and PART = 'b'")
    with settings(spark, case=case):
        found = {
            text: said(lambda t=text: deltafast.spark.read(spark, path, read_mode=way).where(t)) for text in queries
        }
        wanted = {text: said(lambda t=text: reference._load(path).where(t)) for text in queries}
        assert found == wanted
        # Names of Delta's columns differ by more than case, whatever the session says.
        row = spark.sql("select 3L ID, named_struct('x', 3L) s, 'c' PART")
        deltafast.spark.write(row, path, "append")
    assert rows(reference._load(path).where("Id = 3")) == ["{'Id': 3, 'S': {'X': 3}, 'Part': 'c'}"]
    assert len(DeltaTable(path).schema().fields) == 3


def test_older_releases_of_pyspark_are_refused(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    for call in (
        lambda: deltafast.spark.read(spark, tmp_path),
        lambda: deltafast.spark.write(spark.range(1), tmp_path),
        lambda: deltafast.spark.sql(spark, "select 1"),
        lambda: deltafast.spark.register(spark),
    ):
        with pytest.raises(InvalidArgumentError, match=r"PySpark 4\.0 or later, not 3\.5\.9: pip install"):
            call()
