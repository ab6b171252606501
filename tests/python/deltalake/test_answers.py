"""deltafast under the name `deltalake`: answers that are compared with those of the installed `deltalake`."""

import ctypes
import datetime as dt
import decimal
import json
import os
import subprocess
import sys
import warnings

import deltalake
import deltalake.table
import pyarrow as pa
import pytest

import deltafast
from deltafast._deltalake import schema as dropin_schema
from deltafast._deltalake import table as dropin_table

BOTH = pytest.mark.parametrize("package", [deltalake, dropin_table], ids=["deltalake", "dropin"])
FIELDS = pytest.mark.parametrize("field", [deltalake.Field, dropin_schema.Field], ids=["deltalake", "dropin"])
VECTORS = {"delta.enableDeletionVectors": "true"}
STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def raised(call, kind=Exception):
    with pytest.raises(kind) as caught:
        call()
    return caught.value


# --- creating ------------------------------------------------------------------------------------

CREATE = """
import sys
import deltalake, deltalake.table, warnings

calls = []
deltalake.table._create_deltalake = lambda *arguments: calls.append(arguments)
deltalake.DeltaTable.__init__ = lambda self, *arguments, **options: None
schema = deltalake.Schema([deltalake.Field("id", "long")])
commit = deltalake.CommitProperties(custom_metadata={"by": "me"})
with warnings.catch_warnings(record=True, action="always") as caught:
    deltalake.DeltaTable.create("t", schema, "error", "id", "n", "d", {"delta.appendOnly": "true"}, None, commit)
print([each.category.__name__ for each in caught if "positionally" in str(each.message)])
deltalake.DeltaTable.create("t", schema, raise_if_key_not_exists=False, storage_options={"a": "b"})
for arguments in calls:
    print([("commit" if each is commit else "schema" if each is schema else each) for each in arguments])
try:
    deltalake.DeltaTable.create(
        "t", schema, "error", None, None, None, None, None, commit, None, False, raise_if_key_not_exists=True
    )
except TypeError as error:
    print(error)
"""


def test_the_private_function_that_creates_tables_may_be_replaced(tmp_path):
    def output(code):
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=110
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.splitlines()

    theirs = output(CREATE)
    assert output(f"import deltafast; deltafast.install_as_deltalake()\n{CREATE}") == theirs
    assert len(theirs) == 4
    assert not list(tmp_path.iterdir())


def test_the_function_of_the_installed_package_is_not_called(tmp_path, monkeypatch):
    monkeypatch.setattr(deltalake.table, "_create_deltalake", None)
    schema = pa.schema({"id": pa.int64(), "s": pa.string()})
    table = dropin_table.DeltaTable.create(tmp_path, schema, partition_by="id", time_zone="Europe/Paris")
    assert type(table) is dropin_table.DeltaTable
    assert table.metadata().partition_columns == ["id"]
    assert table._handle.time_zone == "Europe/Paris"

    class Mine(dropin_table.DeltaTable):
        pass

    again = Mine.create(tmp_path, schema, "overwrite", time_zone="Europe/Rome")
    assert (type(again), again.version(), again._handle.time_zone) == (Mine, 1, "Europe/Rome")
    with pytest.raises(deltafast.InvalidArgumentError, match="there is a table"):
        dropin_table.DeltaTable.create(tmp_path, schema)


# --- fields --------------------------------------------------------------------------------------

METADATA = {"x": {"y": 3}, "l": [1, {"z": "é"}], "s": "text", "i": 5}


@FIELDS
def test_objects_in_the_metadata_of_fields_are_json(field):
    made = field("id", "long", True, METADATA)
    assert made.metadata == {"x": '{"y":3}', "l": '[1,{"z":"é"}]', "s": "text", "i": 5}
    assert field.from_json(made.to_json()) == made
    assert field.from_json(made.to_json()).metadata == made.metadata
    arrow = pa.field(made.to_arrow())
    assert arrow.metadata == {key.encode(): str(value).encode() for key, value in made.metadata.items()}
    plain = field("id", "long", False)
    assert plain.metadata == {}
    assert field.from_arrow(plain.to_arrow()) == plain


def test_the_log_keeps_objects_in_the_metadata_of_fields(tmp_path):
    made = dropin_schema.Field("id", "long", True, METADATA)
    plain = deltafast.Field("id", "long", True, METADATA)
    assert made == plain
    assert plain == made
    assert plain.metadata == METADATA
    assert isinstance(plain, dropin_schema.Field)
    assert isinstance(made, deltafast.Field)
    assert not isinstance("id", dropin_schema.Field)
    for name, field in (("served", made), ("plain", plain)):
        table = dropin_table.DeltaTable.create(tmp_path / name, deltafast.Schema([field]))
        assert json.loads(table._handle.snapshot.metadata()["schemaString"])["fields"][0]["metadata"] == METADATA
    made.metadata = {"y": {}}
    assert json.loads(made.to_json())["metadata"] == {"y": {}}


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pruned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    rows = pa.table({"p": ["2020", "2021", "x", None], "q": [1, 2, 3, 4], "v": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})
    deltalake.write_deltalake(folder, rows, partition_by=["p", "q"])
    return folder


REFUSED = [
    "p LIKE '20%'",
    "p NOT LIKE '20%'",
    "q = 1 AND p ILIKE '2%'",
    "abs(q) = 1",
    "upper(p) = 'X' OR q = 1",
    "coalesce(q, 0) = 1",
    "p || 'x' = '2020x'",
    "q % 2 = 0",
    "-q = -1",
    "(p = '2020') IS NOT TRUE",
    "s LIKE 'a%'",
]


@BOTH
@pytest.mark.parametrize("predicate", REFUSED)
def test_predicates_that_do_not_choose_files_are_refused(package, predicate, pruned):
    table = package.DeltaTable(pruned)
    for call in (table.file_uris, table.partitions):
        message = str(raised(lambda call=call: call(file_pruning_predicate=predicate)))
        assert f'Cannot use predicate "{predicate}" for file skipping' in message
    assert deltafast.DeltaTable(pruned).file_uris(file_pruning_predicate=predicate) is not None


CHOSEN = [
    "p = '2020' OR q = 2",
    "p IS NULL",
    "q BETWEEN 1 AND 2",
    "q NOT IN (1)",
    "NOT q = 1",
    "q > -1",
    "q = 1 + 1",
    "p = concat('20', '20')",
    "cast(q AS string) = '1'",
    "v = 1",
    "q <=> 1",
    "true",
]


@pytest.mark.parametrize("predicate", CHOSEN)
def test_other_predicates_choose_the_same_files(predicate, pruned):
    theirs = deltalake.DeltaTable(pruned).file_uris(file_pruning_predicate=predicate)
    ours = dropin_table.DeltaTable(pruned).file_uris(file_pruning_predicate=predicate)
    assert sorted(ours) == sorted(theirs)


def with_vectors(path):
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["x", "x", "a b", "a b"]})
    deltafast.write_deltalake(path, rows, partition_by="p", configuration=VECTORS)
    deltafast.DeltaTable(path).delete("id in (1, 3)")
    return path


def test_deletion_vectors_are_of_the_urls_of_files(tmp_path):
    path = with_vectors(tmp_path / "t")
    theirs = {
        row["filepath"]: row
        for row in deltalake.DeltaTable(path).deletion_vectors().read_all().to_struct_array().to_pylist()
    }
    reader = dropin_table.DeltaTable(path).deletion_vectors()
    assert reader.schema.names == ["filepath", "selection_vector"]
    ours = {row["filepath"]: row for row in reader.read_all().to_pylist()}
    (plain,) = [url for url in theirs if "/p=x/" in url]
    assert ours[plain] == theirs[plain]
    assert plain.startswith("file://")
    # A path that its URL would encode is found among the files of the table, as it stands.
    uris = set(dropin_table.DeltaTable(path).file_uris())
    assert {url.removeprefix("file://") for url in ours} == uris
    assert {row["filepath"] for row in deltafast.DeltaTable(path).deletion_vectors().read_all().to_pylist()} == uris


def test_polars_reads_deletion_vectors_by_urls(tmp_path):
    with_vectors(tmp_path / "t")
    code = """
import deltafast
deltafast.install_as_deltalake()
import polars
print(sorted(polars.scan_delta("t").collect()["id"].to_list()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=110
    )
    assert done.stdout.strip() == "[2, 4]", done.stderr[-3000:]


#: How to make a table that Polars refuses, and the reason.
REFUSED_BY_POLARS = {
    "column mapping": {"delta.columnMapping.mode": "name"},
    "columnMapping": {"delta.columnMapping.mode": "name", **VECTORS},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
}


def test_polars_refuses_tables_by_their_protocol_and_reads_their_datasets(tmp_path):
    for number, configuration in enumerate(REFUSED_BY_POLARS.values()):
        is_mapped = "delta.columnMapping.mode" in configuration
        rows = pa.table({"old" if is_mapped else "key": pa.array([1, 2, 3], pa.int32()), "s": ["a", "b", "c"]})
        deltafast.write_deltalake(tmp_path / str(number), rows, configuration=configuration)
        table = deltafast.DeltaTable(tmp_path / str(number))
        if is_mapped:
            table.alter.rename_column("old", "key")
        if "delta.enableTypeWidening" in configuration:
            table.alter.set_column_type("key", "long")
    code = f"""
import deltafast
deltafast.install_as_deltalake()
import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError
for number, reason in enumerate({list(REFUSED_BY_POLARS)!r}):
    for options in ({{}}, {{"use_pyarrow": True}}):
        try:
            rows = pl.scan_delta(str(number), **options).collect()
        except DeltaProtocolError as error:
            assert reason in str(error), error
        else:
            raise AssertionError(rows)
    lazy = pl.scan_pyarrow_dataset(DeltaTable(str(number)).to_pyarrow_dataset()).filter(pl.col("key") > 1)
    assert sorted(lazy.select("key", "s").collect().rows()) == [(2, "b"), (3, "c")]
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path, timeout=110
    )
    assert done.stdout.strip() == "done", done.stderr[-3000:]


# --- statistics ----------------------------------------------------------------------------------

PARTITIONED = pa.table({"p": [1], "a": [1], "b": [2]})


def create(package, path, listed):
    package.DeltaTable.create(path, PARTITIONED.schema, partition_by=["p"], configuration={STATS_COLUMNS: listed})
    package.write_deltalake(path, PARTITIONED, mode="append")


def write(package, path, listed):
    package.write_deltalake(path, PARTITIONED, partition_by=["p"], configuration={STATS_COLUMNS: listed})


def alter(package, path, listed):
    package.DeltaTable.create(path, PARTITIONED.schema, partition_by=["p"])
    package.DeltaTable(path).alter.set_table_properties({STATS_COLUMNS: listed})
    package.write_deltalake(path, PARTITIONED, mode="append")


@pytest.mark.parametrize("setting", [create, write, alter])
@pytest.mark.parametrize(("listed", "stored"), [("p,a", "a"), ("a,`p`", "a"), ("b, P ,a", "b,a"), ("a,b", "a,b")])
def test_partition_columns_are_left_out_of_the_columns_with_statistics(setting, listed, stored, tmp_path):
    setting(deltalake, tmp_path / "theirs", listed)
    with warnings.catch_warnings(record=True, action="always") as caught:
        setting(dropin_table, tmp_path / "ours", listed)
    said = [each for each in caught if each.category is deltafast.DeltaWarning and STATS_COLUMNS in str(each.message)]
    assert len(said) == (listed != stored)
    found = []
    for package, name in ((deltalake, "theirs"), (dropin_table, "ours")):
        actions = pa.table(package.DeltaTable(tmp_path / name).get_add_actions(flatten=True))
        found.append({column for column in actions.schema.names if column.startswith(("min.", "max."))})
    assert found[0] == found[1]
    configuration = dropin_table.DeltaTable(tmp_path / "ours").metadata().configuration
    assert configuration[STATS_COLUMNS].replace(" ", "") == stored


@pytest.mark.parametrize("setting", [create, write, alter])
def test_columns_with_statistics_need_one_that_can_have_them(setting, tmp_path):
    for name, package, listed in [("a", dropin_table, "p"), ("b", dropin_table, "zz"), ("c", deltafast, "p,a")]:
        with pytest.raises(deltafast.InvalidArgumentError, match=STATS_COLUMNS):
            setting(package, tmp_path / name, listed)


# --- updates -------------------------------------------------------------------------------------

UPDATES = [
    {"new_values": {"nope": 1, "a": 5}, "predicate": "a > 1"},
    {"updates": {"a": "a + 1", "nope": "1", "other": "2"}},
]


@BOTH
@pytest.mark.parametrize("options", UPDATES)
def test_an_update_ignores_columns_that_the_table_lacks(package, options, tmp_path):
    package.write_deltalake(tmp_path, pa.table({"a": [1, 2]}))
    table = package.DeltaTable(tmp_path)
    with warnings.catch_warnings(record=True, action="always") as caught:
        assert table.update(**options)["num_updated_rows"] == (1 if "predicate" in options else 2)
    expected = [1, 5] if "predicate" in options else [2, 3]
    assert sorted(table.to_pyarrow_table()["a"].to_pylist()) == expected
    said = [str(each.message) for each in caught if each.category is deltafast.DeltaWarning]
    assert len(said) == (package is dropin_table)
    assert all("`nope`" in message for message in said)


def test_an_update_of_no_known_column_is_refused(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"a": [1], "s": [{"x": 1}]}))
    table = dropin_table.DeltaTable(tmp_path)
    for wrong in ({"nope": "1"}, {"a": "2", "s.y": "1"}):
        with pytest.raises(deltafast.InvalidArgumentError, match=r"`nope`|`y`"):
            table.update(wrong)
    with pytest.raises(deltafast.InvalidArgumentError, match="`nope`"):
        deltafast.DeltaTable(tmp_path).update({"nope": "1", "a": "2"})
    table.update({"A": "3", "`s`.x": "4"})
    assert table.to_pyarrow_table().to_pylist() == [{"a": 3, "s": {"x": 4}}]


# --- change feeds --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fed(tmp_path_factory):
    """A table whose files are older than their commits say."""
    folder = tmp_path_factory.mktemp("fed")
    configuration = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(folder, pa.table({"id": [1, 2]}), configuration=configuration)
    deltalake.write_deltalake(folder, pa.table({"id": [3]}), mode="append")
    deltalake.DeltaTable(folder).delete("id = 1")
    for commit in (folder / "_delta_log").glob("*.json"):
        os.utime(commit, (1_000_000_000, 1_000_000_000))
    return folder


@BOTH
def test_a_feed_has_the_times_of_the_history(package, fed):
    table = package.DeltaTable(fed)
    epoch = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (as in the feed)
    said = {entry["version"]: epoch + dt.timedelta(milliseconds=entry["timestamp"]) for entry in table.history()}
    assert min(said.values()) > dt.datetime(2020, 1, 1)  # noqa: DTZ001
    rows = pa.table(table.load_cdf()).to_pylist()
    assert sorted(row["_commit_version"] for row in rows) == [0, 0, 1, 2]
    assert all(row["_commit_timestamp"] == said[row["_commit_version"]] for row in rows)
    for start in (1, 2):
        found = pa.table(table.load_cdf(start, columns=["_commit_timestamp"]))
        assert found.schema.names == ["_commit_timestamp"]
        assert sorted(set(found.column(0).to_pylist())) == sorted(said[version] for version in range(start, 3))


def test_times_of_a_feed_are_those_of_its_predicate(fed):
    table = dropin_table.DeltaTable(fed)
    rows = pa.table(table.load_cdf(predicate="_commit_timestamp < '2002-01-01'")).to_pylist()
    assert len(rows) == 4
    assert {row["_commit_timestamp"].year for row in rows} == {2001}
    assert pa.table(table.load_cdf(columns=["id"], predicate="id = 3")).to_pylist() == [{"id": 3}]
    older = dropin_table.DeltaTable(fed, version=1)
    assert pa.table(older.load_cdf(1)) == pa.table(table.load_cdf(1, 1))


def test_times_of_a_feed_are_in_commit_timestamps_where_there_are_any(tmp_path):
    configuration = {"delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true"}
    deltafast.write_deltalake(tmp_path, pa.table({"id": [1]}), configuration=configuration)
    actions = (tmp_path / "_delta_log" / f"{0:020}.json").read_text("utf-8").splitlines()
    (info,) = [json.loads(line)["commitInfo"] for line in actions if "commitInfo" in json.loads(line)]
    for package in (deltalake, dropin_table):
        (time,) = pa.table(package.DeltaTable(tmp_path).load_cdf())["_commit_timestamp"].cast(pa.int64()).to_pylist()
        assert time == info["inCommitTimestamp"]


# --- constraints ---------------------------------------------------------------------------------

DAY = dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
MANY = pa.table(
    {
        "id": pa.array([-1, 2, None], pa.int64()),
        "high price": [1.0, 1e20, -0.5],
        "single": pa.array([0.1, 100, None], pa.float32()),
        "flag": [True, False, None],
        "name": ["héllo", "日本", ""],
        "day": [dt.date(2020, 1, 2), None, dt.date(1, 1, 1)],
        "at": pa.array([DAY, DAY + dt.timedelta(microseconds=6000), DAY + dt.timedelta(microseconds=7)]),
        "local": pa.array([DAY.replace(tzinfo=None)] * 3, pa.timestamp("us")),
        "raw": [b"ab\x01", b"", None],
        "exact": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-0.01")], pa.decimal128(10, 2)),
        "list": [["a", None], [], None],
        "pair": [{"x": 1, "y": None}, None, {"x": None, "y": "b"}],
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    }
)


@pytest.fixture(scope="module")
def constrained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("constrained")
    dropin_table.write_deltalake(folder, MANY.slice(0, 0), partition_by=["name"])
    dropin_table.DeltaTable(folder).alter.add_constraint({"first": "id > 0"})
    dropin_table.DeltaTable(folder).alter.add_constraint({"second": '"high price" < 10'})
    return folder


def many(ids):
    rows = MANY.take(pa.array([0] * len(ids)))
    return rows.set_column(0, "id", pa.array(ids, pa.int64())).combine_chunks()


@pytest.mark.parametrize(
    "rows",
    [
        MANY,
        MANY.slice(1, 1),
        MANY.select(["map", "name", "id", *[name for name in MANY.column_names if name not in {"map", "name", "id"}]]),
        many([1, -1, 2]),
        many([-number for number in range(9)]),
    ],
    ids=["all", "second", "reordered", "one", "nine"],
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_rows_that_break_a_constraint_are_previewed(rows, mode, constrained):
    theirs = raised(lambda: deltalake.write_deltalake(constrained, rows, mode=mode))
    for target in (constrained, dropin_table.DeltaTable(constrained)):
        ours = raised(lambda target=target: dropin_table.write_deltalake(target, rows, mode=mode))
        assert str(ours) == str(theirs)
        assert isinstance(ours, deltafast.ConstraintViolatedError)
        assert ours.constraint in {"first", "second"}
        assert ours.constraint in str(ours.__cause__)
    assert deltafast.DeltaTable(constrained).version() == 2


@BOTH
def test_null_in_a_column_that_is_not_null_is_previewed(package, tmp_path):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    deltafast.write_deltalake(tmp_path, pa.table({"a": [1], "b": ["x"]}, schema=schema))
    rows = pa.table({"a": pa.array([2, None], pa.int64()), "b": ["y", "z"]})
    error = raised(lambda: package.write_deltalake(tmp_path, rows, mode="append"))
    drawn = ["+---+---+", "| a | b |", "+---+---+", "|   | z |", "+---+---+"]
    assert str(error).splitlines()[-5:] == drawn


def test_rows_that_cannot_be_previewed_leave_the_error_as_it_is(constrained, tmp_path):
    def message(package, path, rows):
        error = raised(lambda: package.write_deltalake(path, rows, mode="append"), deltafast.ConstraintViolatedError)
        return str(error)

    wrong = many([-1])
    expected = message(deltafast, constrained, wrong)
    assert "Preview" not in expected
    assert message(dropin_table, constrained, wrong.to_reader()) == expected
    lines = wrong.set_column(wrong.schema.get_field_index("name"), "name", pa.array(["a\nb"]))
    assert message(dropin_table, constrained, lines) == message(deltafast, constrained, lines)
    generated = deltafast.Field("b", "long", metadata={"delta.generationExpression": "a + 1"})
    deltafast.DeltaTable.create(tmp_path / "made", deltafast.Schema([deltafast.Field("a", "long"), generated]))
    deltafast.DeltaTable(tmp_path / "made").alter.add_constraint({"c": "b > 0"})
    rows = pa.table({"a": [-5]})
    assert message(dropin_table, tmp_path / "made", rows) == message(deltafast, tmp_path / "made", rows)


# --- DataFusion ----------------------------------------------------------------------------------


@BOTH
def test_a_session_that_is_none_of_datafusion_is_refused(package, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "55.1.0")
    package.write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = package.DeltaTable(tmp_path)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class Session:
        def __datafusion_task_context_provider__(self):
            return new(ctypes.c_void_p(1), b"other", None)

    with pytest.raises(ValueError, match="incorrect name"):
        table.__datafusion_table_provider__(session=Session())
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "54.0.0")
    with pytest.raises(RuntimeError, match="datafusion==55"):
        table.__datafusion_table_provider__(session=Session())


def test_a_session_of_datafusion_gets_the_dataset(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "55.1.0")
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}))
    name = b"datafusion_task_context_provider"
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

    class Session:
        def __datafusion_task_context_provider__(self):
            return new(ctypes.c_void_p(1), name, None)

    for session in (None, object(), Session()):
        with pytest.raises(RuntimeError, match="to_pyarrow_dataset"):
            dropin_table.DeltaTable(tmp_path).__datafusion_table_provider__(session=session)
