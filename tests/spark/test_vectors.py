"""Tables with deletion vectors give delta-spark's rows, by our reader and by the join that stands in for it."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import warnings
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
import deltafast.spark
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake
from deltafast.exceptions import DeltaWarning, InvalidArgumentError
from deltafast.spark._scan import file_index
from deltafast.spark._session import java_library
from deltafast.spark._session.session import Session
from deltafast.spark._streaming.stream_source import plan_streams

from .helpers import plan, rows, scan_of, usual_and_proof

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

ROWS = 24_000
BUILD = pathlib.Path(__file__).parents[2] / "dev" / "build_jar.py"

#: Columns of every type; some values are few, so that files have dictionaries, some are null.
COLUMNS = (
    "id",
    "id % 2 = 0 o",
    "cast(id % 100 as tinyint) b",
    "cast(id % 9000 as smallint) h",
    "cast(id as int) i",
    "if(id % 5 = 0, null, id * 1000003) l",
    "cast(id as float) f",
    "if(id % 7 = 0, null, id / 3D) d",
    "cast(id / 7 as decimal(9, 2)) n9",
    "cast(id / 7 as decimal(18, 4)) n18",
    "if(id % 3 = 0, null, cast(id / 7 as decimal(30, 6))) n30",
    "if(id % 11 = 0, null, concat('s', id)) s",
    "concat('k', id % 17) k",
    "cast(concat('y', id) as binary) y",
    "date_add(date'1960-01-01', cast(id % 40000 as int)) a",
    "timestamp_micros(id * 1000001) z",
    "cast(timestamp_micros(id * 1000001) as timestamp_ntz) w",
    "if(id % 4 = 0, null, named_struct('x', id, 'y', if(id % 6 = 0, null, concat('t', id)), 'z', named_struct('q', id % 3))) st",
    "if(id % 9 = 0, null, sequence(id, id + id % 4)) ar",
    "if(id % 8 = 0, null, map(concat('m', id % 3), named_struct('v', id))) m",
    "if(id % 10 = 0, array(), array(named_struct('e', id), null)) ae",
    "if(id % 13 = 0, null, 'n') p",
)

#: What is set, and what of Spark's it turns off.
SETTINGS: dict[str, dict[str, str]] = {
    "usual": {},
    "small batches": {"spark.sql.parquet.columnarReaderBatchSize": "7"},
    "no vectors": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "no vectors of nested types": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "no compiled plans": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "off the heap": {"spark.sql.columnVector.offheap.enabled": "true"},
    "many small splits": {"spark.sql.files.maxPartitionBytes": "100000", "spark.sql.files.openCostInBytes": "0"},
    "not ANSI, not adaptive": {"spark.sql.ansi.enabled": "false", "spark.sql.adaptive.enabled": "false"},
    "case matters": {"spark.sql.caseSensitive": "true"},
}


@pytest.fixture(scope="module", autouse=True)
def compiles(spark):
    """Let Spark compile plans, as it does where nobody says otherwise: only then do readers give vectors."""
    usual = {
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.adaptive.enabled": "true",
    }
    with _conf(spark, usual):
        yield


@pytest.fixture(params=usual_and_proof(["auto"], ["parquet"]))
def reader(request: pytest.FixtureRequest, spark):
    """Each way of leaving out rows."""
    spark.conf.set(file_index.READER, request.param)
    yield request.param
    spark.conf.unset(file_index.READER)


@pytest.fixture(scope="module")
def types(spark, tmp_path_factory) -> str:
    """Files of several row groups; of some the first rows are deleted, the last, all, a long stretch, some here and there."""
    folder = str(tmp_path_factory.mktemp("types") / "t")
    write = spark.range(0, ROWS, 1, 4).selectExpr(*COLUMNS).write.partitionBy("p")
    write.option("parquet.block.size", 100_000).option("parquet.page.size", 10_000).parquet(folder)
    convert_to_deltalake(folder, partition_by=pa.schema([("p", pa.string())]))
    table = DeltaTable(folder)
    table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    table.delete("id % 100 = 7 and id > 6000 and id < 23000")
    table.delete("id < 10 or id = 5999 or id between 7000 and 9000 or id % 10 = 3 and id > 12000 and id < 16000")
    # The last of the files, all of it but one row, and one of those without a partition value altogether.
    table.delete("id >= 18000 and id <> 20001 and p = 'n'")
    return folder


def _sums(frame: Any) -> list[Any]:
    """What tells rows from others: their number, and a sum of hashes of all columns but maps, which have none."""
    columns = ", ".join(f"`{name}`" for name in frame.columns if name != "m")
    return frame.selectExpr("count(*)", f"sum(cast(xxhash64({columns}) as decimal(38, 0)))").collect()


def _conf(spark: Any, settings: dict[str, str]) -> Any:
    return Session(spark).set(settings)


@pytest.mark.parametrize("setting", usual_and_proof(["usual"], [name for name in SETTINGS if name != "usual"]))
def test_all_types_are_those_of_the_reference(reference, spark, types, reader, setting):
    expected = _sums(reference._load(types))
    assert 10_000 < expected[0][0] < ROWS
    with _conf(spark, SETTINGS[setting]):
        frame = deltafast.spark.read(spark, types)
        assert _sums(frame) == expected
        assert frame.count() == expected[0][0]
        # Rows as they are, without anything computed over them.
        assert len({row.id for row in frame.collect()}) == expected[0][0]
        assert frame.selectExpr("sum(m['m1'].v)", "count(m)").collect() == (
            reference._load(types).selectExpr("sum(m['m1'].v)", "count(m)").collect()
        )


@pytest.mark.parametrize("setting", usual_and_proof(["usual"], ["small batches", "no compiled plans", "off the heap"]))
@pytest.mark.parametrize("column", ["few", "many", "all"])
def test_strings_of_dictionaries_are_those_of_arrow(spark, tmp_path, setting, column):
    count = 30_000
    numbers = range(count)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            # The row groups have dictionaries with other entries.
            "few": [None if n % 7 == 0 else f"{'left' if n < count / 2 else 'right'} {n % 5}" for n in numbers],
            # More entries than are kept.
            "many": ["" if n % 6000 == 0 else f"m{n % 6000}" for n in numbers],
            # The dictionary becomes too large, so that later pages have none.
            "all": [f"row {n}" for n in numbers],
        }
    )
    pq.write_table(
        table,
        tmp_path / "part.parquet",
        row_group_size=count // 2,
        data_page_size=8_000,
        dictionary_pagesize_limit=100_000,
    )
    convert_to_deltalake(str(tmp_path))

    def check(expected: pa.Table) -> None:
        grouped = expected.group_by(column).aggregate([("id", "count"), ("id", "sum")]).to_pylist()
        frame = deltafast.spark.read(spark, str(tmp_path)).groupBy(column).agg({"id": "sum", "*": "count"})
        with _conf(spark, SETTINGS[setting]):
            found = {row[column]: (row["count(1)"], row["sum(id)"]) for row in frame.collect()}
        assert found == {row[column]: (row["id_count"], row["id_sum"]) for row in grouped}

    check(table)
    handle = DeltaTable(str(tmp_path))
    handle.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    handle.delete("id % 10 = 3 or id < 5")
    check(table.filter(pa.array([n >= 5 and n % 10 != 3 for n in numbers])))


QUESTIONS = (
    "id between 6900 and 7010",
    "l = 77000231",
    "s in ('s20001', 's7001', 's9', 's12')",
    "k = 'k3' and id % 1000 < 20",
    "st.x > 23900 or st.z.q is null and id < 200",
    "p is null and n18 < 40",
    "z >= timestamp'1970-01-01 02:00:00' and a < date'1982-01-01'",
    "y = cast('y9001' as binary)",
    "ar[0] = 100",
    "id = -5",
)


@pytest.mark.proof
@pytest.mark.parametrize("setting", ["usual", "many small splits", "no vectors", "off the heap"])
def test_filters_skip_row_groups_but_count_rows_by_the_file(reference, spark, types, reader, setting):
    theirs = {text: _sums(reference._load(types).where(text)) for text in QUESTIONS}
    assert sum(found[0][0] > 0 for found in theirs.values()) == len(QUESTIONS) - 2
    with _conf(spark, SETTINGS[setting]):
        for text, expected in theirs.items():
            frame = deltafast.spark.read(spark, types).where(text)
            assert _sums(frame) == expected, text
        some = deltafast.spark.read(spark, types).where("id between 6900 and 7010")
        assert "PushedFilters: [IsNotNull(id)" in plan(some)


def test_metadata_columns_and_row_numbers_stay_right(reference, spark, types, reader):
    columns = ("id", "_metadata.row_index", "_metadata.file_name", "_metadata.file_size", "p")
    for setting in ("usual", "no vectors", "no compiled plans"):
        with _conf(spark, SETTINGS[setting]):
            found = deltafast.spark.read(spark, types).where("id % 50 < 10").selectExpr(*columns)
            # Of the files themselves, all rows.
            files = {
                (row[0], row[1], row[2])
                for row in spark.read.option("pathGlobFilter", "*.parquet")
                .parquet(types)
                .selectExpr(*columns[:3])
                .collect()
            }
            ids = {row[0] for row in reference._load(types).where("id % 50 < 10").select("id").collect()}
            got = found.collect()
            assert {row[0] for row in got} == ids
            assert len(got) == len(ids)
            assert {(row[0], row[1], row[2]) for row in got} <= files
            numbers = deltafast.spark.read(spark, types).selectExpr("_metadata.row_index r").agg({"r": "sum"}).collect()
            kept = reference._load(types).select("id").collect()
            known = {row: index for row, index, _ in files}
            assert numbers[0][0] == sum(known[row[0]] for row in kept)


@pytest.mark.proof
def test_queries_of_all_kinds(reference, spark, types, reader):
    deltafast.spark.read(spark, types).createOrReplaceTempView("ours")
    reference._load(types).createOrReplaceTempView("theirs")
    for text in (
        "select a.id, b.s from {t} a join {t} b on a.id = b.id + 1 where a.id % 1000 < 3",
        "select k, count(*), max(d), max(s), min(n30), sum(n9) from {t} group by k",
        "select count(*), count(l), sum(id) from {t} where id > (select avg(id) from {t})",
        "select id from {t} where id in (select id + 1 from {t} where b = 7)",
        "select p, count(*) from {t} group by p",
        "select count(*) from {t} where p = 'n'",
        "select count(*) from (select * from {t} limit 1000)",
        "select id, s from {t} order by id limit 20",
        "select id, row_number() over (partition by b order by id desc) n from {t} where id % 77 = 1",
        "select explode(ar) e, st.z.q from {t} where id < 300",
        "select count(*) from (select distinct input_file_name() from {t})",
        "select id from {t} union all select l from {t} where l is not null",
    ):
        assert rows(spark.sql(text.format(t="ours"))) == rows(spark.sql(text.format(t="theirs"))), text


def test_the_plan_is_one_scan(spark, types):
    frame = deltafast.spark.read(spark, types).where("id > 5").groupBy("k").count()
    text = plan(frame)
    assert "Join" not in text
    assert "Union" not in text
    assert "Batched: true" in text
    assert scan_of(deltafast.spark.read(spark, types).select("id")).requiredSchema().fieldNames()[0] == "id"
    assert len(scan_of(deltafast.spark.read(spark, types).select("id")).requiredSchema().fields()) == 1
    assert len(deltafast.spark.read(spark, types).columns) == len(COLUMNS)


@pytest.mark.proof
def test_a_table_of_delta_spark_after_a_merge(reference, spark, tmp_path, reader):
    path = str(tmp_path / "t")
    reference.sql(
        f"create table delta.`{path}` (id bigint, `a b` string, s struct<x: bigint, y: string>) using delta "
        "tblproperties ('delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true', "
        "'delta.enableRowTracking' = 'true')"
    )
    reference.sql(
        f"insert into delta.`{path}` select id, concat('a', id), named_struct('x', id, 'y', 'y') from range(0, 180000, 1, 2)"
    )
    spark.range(0, 200_000, 7).createOrReplaceTempView("changes")
    reference.sql(
        f"merge into delta.`{path}` t using changes c on t.id = c.id when matched and c.id % 2 = 0 then delete "
        "when matched then update set `a b` = 'new' when not matched then insert (id, `a b`) values (c.id, 'in')"
    )
    # More than 65,536 in one stretch, across what a bitmap has in one container.
    reference.sql(f"delete from delta.`{path}` where id between 10000 and 80000")
    frame = deltafast.spark.read(spark, path)
    assert _sums(frame) == _sums(reference._load(path))
    assert frame.count() == reference._load(path).count()
    with_ids = deltafast.spark.read(spark, path, metadata_columns=["row_id"]).select("id", "row_id")
    newest = DeltaTable(path).version()
    theirs = {
        (row["id"], row["row_id"]) for row in reference.row_ids(path, newest).select(["id", "row_id"]).to_pylist()
    }
    assert {tuple(row) for row in with_ids.collect()} == theirs
    for version in range(newest + 1):
        assert deltafast.spark.read(spark, path, version).count() == reference._load(path, versionAsOf=version).count()


# --- counts --------------------------------------------------------------------------------------


def _counted(tmp_path: pathlib.Path) -> tuple[str, list[pathlib.Path]]:
    path = str(tmp_path / "t")
    for n in range(4):
        table = pa.table({"id": range(n * 100, n * 100 + 100), "p": ["a", "b"][n % 2 :][:1] * 100})
        write_deltalake(
            path, table, mode="append", partition_by="p", configuration={"delta.enableDeletionVectors": "true"}
        )
    DeltaTable(path).delete("id % 10 = 1 or id > 350")
    return path, [pathlib.Path(uri) for uri in DeltaTable(path).file_uris()]


def test_counts_come_from_the_log(spark, tmp_path):
    path, files = _counted(tmp_path)
    frame = deltafast.spark.read(spark, path)
    for file in files:
        file.rename(f"{file}.away")
    assert frame.count() == 316
    assert sorted(map(tuple, frame.groupBy("p").count().collect())) == [("a", 180), ("b", 136)]
    assert frame.where("p = 'b'").count() == 136
    names = frame.selectExpr("_metadata.file_name n").groupBy("n").count().collect()
    assert sorted(row[1] for row in names) == [46, 90, 90, 90]
    with _conf(spark, SETTINGS["no compiled plans"]):
        assert frame.count() == 316
        assert frame.selectExpr("p", "1 one").groupBy("p").sum("one").orderBy("p").collect() == [("a", 180), ("b", 136)]
    with pytest.raises(Exception, match=r"(?i)does not exist|not found|no such"):
        frame.where("id > 3").count()
    for file in files:
        pathlib.Path(f"{file}.away").rename(file)
    assert frame.where("id > 3").count() == 313


def test_files_without_metrics_are_counted_by_reading(spark, tmp_path):
    path, _ = _counted(tmp_path)
    log = pathlib.Path(path, "_delta_log")
    for file in log.glob("0*.json"):
        file.write_text(file.read_text().replace('\\"numRecords\\":100,', ""))
    assert '"numRecords\\"' not in "".join(file.read_text() for file in log.glob("0*.json"))
    frame = deltafast.spark.read(spark, path)
    assert frame.count() == 316
    assert sorted(map(tuple, frame.groupBy("p").count().collect())) == [("a", 180), ("b", 136)]


# --- classes -------------------------------------------------------------------------------------


def test_sessions_and_processes_that_share_a_java_share_the_classes(spark, types, monkeypatch):
    expected = deltafast.spark.read(spark, types).selectExpr("sum(id)").collect()
    other = spark.newSession()
    assert deltafast.spark.read(other, types).selectExpr("sum(id)").collect() == expected
    # Another process knows nothing of what this one has compiled, but finds it.
    before = java_library.load(Session(spark), "ParquetFormat")
    monkeypatch.setattr(java_library, "_LOADED", {})
    again = java_library.load(Session(other), "ParquetFormat")
    assert again.equals(before)
    assert deltafast.spark.read(other, types).selectExpr("sum(id)").collect() == expected


_CLASSES = ("ParquetFormat", "DeltaFileIndex", "RowFormat")


@pytest.mark.proof
def test_releases_that_share_a_java_have_classes_of_their_own(spark, types, tmp_path, monkeypatch):
    frame = deltafast.spark.read(spark, types)
    expected = frame.selectExpr("sum(id)", "count(*)").collect()
    before = {name: java_library.load(Session(spark), name) for name in _CLASSES}
    other = tmp_path / "other.jar"
    subprocess.run([sys.executable, str(BUILD), "--out", str(other), "--release", "0.0.1"], check=True)
    assert other.read_bytes() != java_library._JAR.read_bytes()
    monkeypatch.setattr(java_library, "_JAR", other)
    monkeypatch.setattr(java_library, "_LOADED", {})
    java_library._library.cache_clear()
    try:
        for name in _CLASSES:
            assert not java_library.load(Session(spark), name).equals(before[name])
        assert deltafast.spark.read(spark, types).selectExpr("sum(id)", "count(*)").collect() == expected
        assert frame.selectExpr("sum(id)", "count(*)").collect() == expected
    finally:
        java_library._library.cache_clear()


@pytest.mark.proof
def test_a_build_of_the_same_sources_gives_the_same_bytes(tmp_path):
    subprocess.run([sys.executable, str(BUILD), "--out", str(tmp_path / "again.jar")], check=True)
    assert (tmp_path / "again.jar").read_bytes() == java_library._JAR.read_bytes()


@pytest.mark.proof
def test_janino_compiles_the_classes_where_a_link_error_is_met(spark, types, tmp_path, monkeypatch):
    expected = deltafast.spark.read(spark, types).selectExpr("sum(id)", "count(*)").collect()
    rows = sorted(map(str, deltafast.spark.read(spark, types).collect()))
    whole = java_library.call_static

    def incompatible(session: Any, kind: Any, name: str, *arguments: Any) -> Any:
        if name == "firstError":
            assert whole(session, kind, name, *arguments) == ""
            return "java.lang.NoSuchMethodError: org.apache.spark.Missing.method()"
        return whole(session, kind, name, *arguments)

    monkeypatch.setattr(java_library, "_LOADED", {})
    monkeypatch.setattr(java_library, "call_static", incompatible)
    with pytest.warns(DeltaWarning, match=r"NoSuchMethodError: org\.apache\.spark\.Missing\.method.*Janino") as warned:
        frame = deltafast.spark.read(spark, types)
    assert len(warned) == 1
    assert frame.selectExpr("sum(id)", "count(*)").collect() == expected
    assert sorted(map(str, frame.collect())) == rows
    counted: list[int] = []
    provider = java_library.construct(Session(spark), java_library.load(Session(spark), "DeltaProvider"))
    plan_streams(Session(spark), provider, "DeltaProvider")
    stream = spark.readStream.format(str(provider.getClass().getName())).load(types).writeStream
    stream = stream.foreachBatch(lambda batch, _: counted.append(batch.count()))
    stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
    assert sum(counted) == len(rows)
    for name in ("DeltaFileIndex", "DeltaProvider", "HadoopGateway", "ParquetFormat", "RowFormat", "RowTrackingRule"):
        assert java_library.load(Session(spark), name).getPackageName().endswith(f"_janino_{name.lower()}")


def test_a_missing_jar_says_how_to_build_it(spark, types, tmp_path, monkeypatch):
    monkeypatch.setattr(java_library, "_JAR", tmp_path / "deltafast-spark.jar")
    monkeypatch.setattr(java_library, "_LOADED", {})
    java_library._library.cache_clear()
    try:
        with pytest.raises(
            InvalidArgumentError, match=r"deltafast-spark\.jar is missing: .*`make build-jar` builds it"
        ):
            deltafast.spark.read(spark, types)
    finally:
        java_library._library.cache_clear()


def test_where_executors_cannot_have_the_reader_a_join_stands_in(spark, types, monkeypatch):
    expected = deltafast.spark.read(spark, types).selectExpr("sum(id)").collect()

    def refused(*_: Any) -> None:
        raise java_library.UnavailableError("no jar may be added here")

    monkeypatch.setattr(file_index, "on_executors", refused)
    with pytest.warns(DeltaWarning, match="no jar may be added here"):
        frame = deltafast.spark.read(spark, types)
    assert "Join" in plan(frame)
    assert frame.selectExpr("sum(id)").collect() == expected


def test_the_setting_is_checked(spark, types):
    spark.conf.set(file_index.READER, "fast")
    try:
        with pytest.raises(InvalidArgumentError, match=r"spark\.deltafast\.reader must be one of auto, parquet"):
            deltafast.spark.read(spark, types)
    finally:
        spark.conf.unset(file_index.READER)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeltaWarning)
        assert deltafast.spark.read(spark, types).count() > 0
