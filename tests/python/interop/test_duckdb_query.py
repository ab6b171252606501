"""SQL with DuckDB."""

import datetime as dt
import gc
from pathlib import Path

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pytest

import deltafast
from deltafast import DeltaTable, QueryBuilder, exceptions, write_deltalake
from deltafast._interop.duckdb_query import ViewQueryBuilder, connect
from support import same_rows


@pytest.fixture
def builder(events):
    return QueryBuilder().register("events", events)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 80", lambda row: row["id"] > 80),
        ("id = 3 OR id >= 88", lambda row: row["id"] == 3 or row["id"] >= 88),
        ("NOT id > 3", lambda row: not row["id"] > 3),
        ("day = DATE '2026-01-01'", lambda row: row["day"] == dt.date(2026, 1, 1)),
        ("day IS NULL AND id < 10", lambda row: row["day"] is None and row["id"] < 10),
        ("name IN ('name 1', 'name 2')", lambda row: row["name"] in ("name 1", "name 2")),
        ("name NOT IN ('name 1', 'name 2')", lambda row: row["name"] not in ("name 1", "name 2", None)),
        ("amount > 100", lambda row: row["amount"] is not None and row["amount"] > 100),
        ("amount <> 3.0", lambda row: row["amount"] not in (None, 3.0)),
        ("id BETWEEN 3 AND 5", lambda row: 3 <= row["id"] <= 5),
        ("name LIKE 'name 3%'", lambda row: row["name"] == "name 3"),
        (
            "\"at\" >= TIMESTAMPTZ '2026-01-03 00:00:00+00'",
            lambda row: row["at"] >= dt.datetime(2026, 1, 3, tzinfo=dt.UTC),
        ),
        ("len(tags) = 2", lambda row: len(row["tags"]) == 2),
        ("id % 2 = 1 AND id > 80", lambda row: row["id"] % 2 == 1 and row["id"] > 80),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_queries_filter_as_duckdb_does(builder, event_table, events, where, expected):
    wanted = sorted(row["id"] for row in event_table.to_pylist() if expected(row))
    found = builder.execute(f"SELECT id FROM events WHERE {where} ORDER BY id").read_all()
    assert found.column("id").to_pylist() == wanted
    assert sorted(row[0] for row in events.to_duckdb().filter(where).select("id").fetchall()) == wanted


def test_values_come_through_unchanged(builder, event_table):
    found = builder.execute("SELECT * FROM events").read_all()
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    same_rows(found, event_table)


def test_columns_and_filters_reach_the_scan(builder, monkeypatch):
    asked = []
    source = builder._tables["events"]
    scanner = type(source).scanner

    def spy(self, columns=None, **options):
        asked.append((columns, str(options["filter"])))
        return scanner(self, columns=columns, **options)

    monkeypatch.setattr(type(source), "scanner", spy)
    builder.execute("SELECT name FROM events WHERE id > 85").read_all()
    assert set(asked[-1][0]) <= {"id", "name"}
    assert "85" in asked[-1][1]


def test_tables_join_and_results_may_be_open_at_once(builder, events_path):
    builder.register("first", DeltaTable(events_path, 0))
    one = builder.execute("SELECT id FROM events JOIN first USING (id)")
    two = builder.execute("SELECT count(*) AS n FROM events")
    assert two.read_all().column("n").to_pylist() == [90]
    assert one.read_all().num_rows == 30


def test_a_registered_table_stays_at_its_version(builder, events):
    events.load_as_version(0)
    assert builder.execute("SELECT count(*) AS n FROM events").read_all()["n"].to_pylist() == [90]


def test_results_outlive_the_builder(events_path):
    reader = QueryBuilder().register("t", DeltaTable(events_path)).execute("SELECT * FROM t")
    gc.collect()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().num_rows == 90


def test_polars_pulls_a_result(builder):
    assert pl.DataFrame(builder.execute("SELECT * FROM events")).height == 90


def test_settings_are_duckdbs_and_those_of_datafusion_are_passed_over(events):
    config = {"datafusion.execution.batch_size": "1024", "threads": "1"}
    builder = QueryBuilder(config).register("t", events)
    assert builder.execute(
        "SELECT current_setting('threads')::INT AS n, count(*) AS c FROM t"
    ).read_all().to_pylist() == [{"n": 1, "c": 90}]
    with pytest.raises(exceptions.InvalidArgumentError, match="no_such"):
        QueryBuilder({"no_such": "1"})


def test_strings_are_views_for_programs_of_deltalake(tmp_path):
    rows = pa.table({"s": ["a", None], "b": [b"x", None], "l": [["y"], []], "n": [1, 2]})
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    plain = QueryBuilder().register("t", table).execute("SELECT * FROM t ORDER BY n").read_all()
    assert (plain.schema.types[:2], plain.to_pydict()) == ([pa.string(), pa.binary()], rows.to_pydict())
    views = ViewQueryBuilder({"threads": "1"}).register("t", table).execute("SELECT * FROM t ORDER BY n").read_all()
    assert (views.schema.types[:2], views.to_pydict()) == ([pa.string_view(), pa.binary_view()], rows.to_pydict())
    theirs = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path)).execute("SELECT s, b, n FROM t")
    assert pa.schema(theirs.schema) == views.select(["s", "b", "n"]).schema


def test_statements_without_rows_give_none(builder):
    assert builder.execute("CREATE TABLE x (a INT)").read_all().num_rows == 0


def test_wrong_sql_is_duckdbs_error(builder):
    with pytest.raises(duckdb.Error, match="nothing"):
        builder.execute("SELECT nothing FROM events")


class TestRelation:
    def test_is_read_as_often_as_asked(self, events):
        relation = events.to_duckdb()
        assert relation.aggregate("count(*)").fetchall() == [(90,)]
        assert relation.aggregate("sum(id)").fetchall() == [(sum(range(90)),)]

    def test_lives_on_the_connection_given(self, events):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE small AS SELECT 3 AS id")
        relation = events.to_duckdb(connection).set_alias("e")
        assert relation.join(connection.table("small"), "id").select("id").fetchall() == [(3,)]

    def test_a_variable_can_be_queried(self, events):  # DuckDB finds it by name
        assert duckdb.sql("SELECT count(*) FROM events").fetchall() == [(90,)]


#: Ways out of a query, each with the file that it would read or make in the folder.
WAYS_OUT = [
    "SELECT * FROM '{0}/f.csv'",
    "SELECT * FROM read_csv('{0}/f.csv')",
    "SELECT * FROM read_text('{0}/f.csv')",
    "SELECT * FROM glob('{0}/*')",
    "SELECT * FROM parquet_metadata('{0}/f.parquet')",
    "COPY (SELECT 1 AS a) TO '{0}/out.csv'",
    "EXPORT DATABASE '{0}/export'",
    "ATTACH '{0}/out.duckdb' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'x')",
    "SET profiling_output = '{0}/profile.json'",
    "SET log_query_path = '{0}/log.txt'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET memory_limit = '1TB'",
]
if not duckdb.__version__.startswith("1."):
    # Releases before 2 refuse it when the connection ends, which ends the process, with any connection of DuckDB.
    WAYS_OUT.append("CALL enable_logging(storage = 'file', storage_config = {{'path': '{0}/log'}})")


class TestExternalAccess:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "f.csv").write_text("a\n1\n")
        return tmp_path

    @pytest.mark.parametrize("way", WAYS_OUT)
    @pytest.mark.parametrize("kind", [QueryBuilder, ViewQueryBuilder])
    def test_queries_have_none_unless_asked_for(self, kind, way, folder):
        with pytest.raises(duckdb.Error, match=r"QueryBuilder\(external_access=True\) allows it"):
            kind().execute(way.format(folder)).read_all()
        assert [path.name for path in folder.iterdir()] == ["f.csv"]

    def test_is_given_when_asked_for(self, folder, events):
        builder = QueryBuilder(external_access=True).register("events", events)
        assert builder.execute(f"SELECT a FROM '{folder}/f.csv'").read_all().to_pylist() == [{"a": 1}]
        builder.execute(f"COPY (SELECT count(*) AS n FROM events) TO '{folder}/out.csv'").read_all()
        assert (folder / "out.csv").read_text() == "n\n90\n"
        assert builder.execute("SELECT current_setting('TimeZone') AS z").read_all().to_pylist() == [{"z": "UTC"}]

    def test_a_setting_does_not_open_it(self):
        with pytest.raises(exceptions.InvalidArgumentError, match="enable_external_access"):
            QueryBuilder({"enable_external_access": "true"})

    def test_a_relation_has_none_unless_asked_for(self, events, folder):
        relation = events.to_duckdb()
        with pytest.raises(duckdb.PermissionException):
            relation.write_csv(str(folder / "out.csv"))
        with pytest.raises(duckdb.Error):
            relation.query("t", f"SELECT * FROM read_csv('{folder}/f.csv')").fetchall()
        events.to_duckdb(external_access=True).aggregate("count(*) AS n").write_csv(str(folder / "out.csv"))
        assert (folder / "out.csv").read_text() == "n\n90\n"

    def test_every_connection_of_ours_is_closed_and_spills(self, tmp_path):
        settings = {"memory_limit": "100MB", "threads": "1", "temp_directory": str(tmp_path / "spill")}
        with connect(settings) as connection:
            for way in WAYS_OUT:
                with pytest.raises(duckdb.Error):
                    connection.execute(way.format(tmp_path)).fetchall()
            rows = "SELECT i, row_number() OVER (ORDER BY hash(i)) AS r, repeat('x', 50) FROM range(2000000) t(i)"
            assert connection.execute(f"SELECT count(*) FROM ({rows}) WHERE r > 0").fetchall() == [(2_000_000,)]
            assert (tmp_path / "spill").exists()

    def test_all_connections_are_made_in_one_place(self):
        package = Path(deltafast.__file__).parent
        found = [path.name for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text("utf-8")]
        assert found == ["duckdb_query.py"]


@pytest.mark.parametrize("kind", [QueryBuilder, ViewQueryBuilder])
@pytest.mark.parametrize("table", [5, "events", None, pa.table({"id": [1]})], ids=lambda table: type(table).__name__)
def test_only_a_delta_table_can_be_registered(kind, table):
    with pytest.raises(TypeError, match=f"the table must be a DeltaTable, not a {type(table).__name__}$"):
        kind().register("t", table)


def test_an_unknown_table_is_named_with_what_is_registered(builder):
    with pytest.raises(duckdb.CatalogException, match=r"there is no table `nothing` \(registered: events\); use Query"):
        builder.execute("SELECT * FROM nothing")
