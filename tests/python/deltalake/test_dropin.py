"""deltafast under the name `deltalake`: for one process, and as the distribution that `compat/deltalake/` builds."""

import ast
import datetime as dt
import importlib
import importlib.metadata
import json
import math
import os
import pickle
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.acero as pac
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake.writer import properties as deltalake_properties

import deltafast
from deltafast._deltalake import files as dropin_files
from deltafast._deltalake import install as dropin
from deltafast._deltalake import properties as dropin_properties
from deltafast._deltalake import query as dropin_query
from deltafast._deltalake import table as dropin_table
from deltafast._ops.alter import TableFeatures
from deltafast.transaction import AddAction, RemoveAction
from tablekit import dv, log

ROOT = Path(__file__).parents[3]
#: Of the package that is installed: the source tree, or a wheel.
PACKAGE = Path(deltafast.__file__).resolve().parent / "_deltalake" / "served"
USERS = sorted((Path(__file__).parent / "users").glob("with_*.py"))
INSTALL = "import deltafast; deltafast.install_as_deltalake()\n"

# Names of deltalake's modules that have no meaning here: what its own Python code calls of its own extension.
OWN = {
    "deltalake._internal": {
        "DeltaDataChecker",
        "DeltaFileSystemHandler",
        "ObjectInputFile",
        "ObjectOutputStream",
        "PyMergeBuilder",
        "PyQueryBuilder",
        "RawDeltaTableMetaData",
        "convert_to_deltalake",
        "create_deltalake",
        "create_table_with_add_actions",
        "get_num_idx_cols_and_stats_columns",
        "write_to_deltalake",
    },
    "deltalake.fs.fs_handler": {"PYARROW_AVAILABLE"},
}
#: Modules that nobody but deltalake itself imports.
INNER = {"deltalake.fs._base_handler"}
#: What a release of deltafast may lack; it is refused in one line, and comes by itself with its class.
LATER = {"TableMerger", "TableOptimizer"}


def run(code, *arguments, path=(), cwd=None):
    """The output of a program in a process of its own."""
    places = [*map(str, path), *(os.environ.get("PYTHONPATH") or "").split(os.pathsep)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(Path(place).absolute()) for place in places if place),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
    }
    done = subprocess.run(
        [sys.executable, *code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=cwd,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    return done.stdout


def served(code, **options):
    return run(["-c", INSTALL + code], **options)


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder with the distribution in it, built and installed by pip without looking anywhere else."""
    folder = tmp_path_factory.mktemp("compat")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    only = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", *only, "--no-build-isolation", "-w", folder, ROOT / "compat" / "deltalake"],
        check=True,
        timeout=100,
    )
    (wheel,) = folder.glob("*.whl")
    assert wheel.name == f"deltalake-{deltalake.__version__}-py3-none-any.whl"
    subprocess.run([*pip, "install", *only, "--target", folder / "site", wheel], check=True, timeout=100)
    return folder / "site"


# --- the names -----------------------------------------------------------------------------------


def modules():
    folder = Path(deltalake.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        yield ".".join(["deltalake", *parts]).removesuffix(".__init__")
    yield "deltalake._internal"


def names_of(module):
    """Public names that a module of deltalake defines, or takes over from itself."""
    found = importlib.import_module(module)
    declared = getattr(found, "__all__", None)
    if declared is not None:
        return sorted(name for name in declared if name == "__version__" or not name.startswith("_"))
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", None) == module]
    plain = [name for name in vars(found) if name.isupper() or name.endswith(("FilterType", "LiteralType", "DNFType"))]
    return sorted(name for name in {*own, *plain} - {"TYPE_CHECKING"} if not name.startswith("_"))


def test_every_module_and_name_of_deltalake_is_served_or_refused_in_one_line():
    wanted = {
        module: [name for name in names_of(module) if name not in OWN.get(module, ())]
        for module in modules()
        if module not in INNER
    }
    assert {"deltalake", "deltalake.table", "deltalake.writer.properties", "deltalake._internal"} <= set(wanted)
    assert sum(map(len, wanted.values())) > 80
    code = f"""
import importlib
for module, names in {wanted!r}.items():
    found = importlib.import_module(module)
    assert found.__file__.startswith({str(PACKAGE)!r}), found
    for name in names:
        try:
            getattr(found, name)
        except AttributeError as error:
            print(f"{{module}}.{{name}}: {{error}}")
"""
    lacking = [line.split(": ", 1) for line in served(code).splitlines()]
    assert {name.rpartition(".")[2] for name, _ in lacking} <= LATER
    assert all("is not there yet" in message for _, message in lacking)


def test_all_names_of_the_served_modules_are_there():
    code = f"""
import importlib, pathlib
root = pathlib.Path({str(PACKAGE)!r})
for file in root.rglob("*.py"):
    module = ".".join(["deltalake", *file.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
    names = importlib.import_module(module).__all__
    assert all(getattr(importlib.import_module(module), name) is not None for name in names), module
    print(module, len(names))
"""
    assert len(served(code).splitlines()) >= 16


def test_the_served_files_import_nothing_but_deltafast():
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert str(node.module).partition(".")[0] in {"deltafast", "deltalake", "typing"}, (file, node.module)
            assert not isinstance(node, ast.Import), file


def test_classes_are_deltafasts_own(tmp_path):
    code = """
import deltalake.exceptions, deltalake.table, deltalake.writer.properties, deltalake._internal
assert deltalake.DeltaTable is deltalake.table.DeltaTable
table = deltalake.DeltaTable.create("t", deltalake.Schema([deltalake.Field("id", "long")]))
for handle in (table, deltafast.DeltaTable("t")):
    assert isinstance(handle, deltalake.DeltaTable) and isinstance(handle, deltafast.DeltaTable)
class Mine(deltalake.DeltaTable):
    pass
assert isinstance(Mine("t"), deltalake.DeltaTable) and not isinstance(table, Mine)
assert not isinstance("t", deltalake.DeltaTable)
import inspect, pickle
again = pickle.loads(pickle.dumps(table))
assert type(again) is deltalake.DeltaTable and again == table
assert pickle.loads(pickle.dumps(deltalake.write_deltalake)) is deltalake.write_deltalake
assert inspect.signature(deltalake.write_deltalake) == inspect.signature(deltafast.write_deltalake)
assert deltalake.exceptions.DeltaError is deltalake._internal.DeltaError is deltafast.DeltaError
assert deltalake.writer.properties.WriterProperties is deltafast.WriterProperties
assert deltalake.rust_core_version() == deltafast.__version__
print(deltalake.__version__)
"""
    assert served(code, cwd=tmp_path).strip() == deltalake.__version__


def test_what_is_missing_says_so_in_one_line(tmp_path):
    code = """
import deltalake
table = deltalake.DeltaTable.create("t", deltalake.Schema([deltalake.Field("id", "long")]))
import warnings
for call in (lambda: deltalake.enable_nanosecond_timestamps(), lambda: deltalake.init_tracing("http://x")):
    with warnings.catch_warnings(record=True, action="always") as caught:
        call()
    print(*[each.message for each in caught])
for call in (lambda: deltalake.nothing, lambda: table.nothing, lambda: table._table.nothing):
    try:
        call()
    except AttributeError as error:
        print(error)
for name in ("delete", "update", "merge", "optimize"):
    try:
        getattr(deltalake.DeltaTable("t"), name) if not hasattr(deltalake.DeltaTable, name) else None
    except AttributeError as error:
        print(error)
"""
    lines = served(code, cwd=tmp_path).splitlines()
    assert lines[0].startswith("deltafast writes timestamps of microseconds: values with nanoseconds are refused")
    assert lines[1].startswith("deltafast sends no OpenTelemetry traces")
    assert lines[2] == "module 'deltalake' has no attribute 'nothing'"
    assert lines[3] == "'DeltaTable' object has no attribute 'nothing'"
    assert lines[4].startswith("DeltaTable._table.nothing is not offered")
    present = [name for name in ("delete", "update", "merge", "optimize") if hasattr(deltafast.DeltaTable, name)]
    assert lines[5:] == [
        f"DeltaTable.{name} is not there yet: this release of deltafast cannot {name}"
        for name in ("delete", "update", "merge", "optimize")
        if name not in present
    ]


# --- serving -------------------------------------------------------------------------------------


def test_installing_twice_is_installing_once():
    code = """
import sys
before = list(sys.meta_path)
deltafast.install_as_deltalake()
import deltalake
deltafast.install_as_deltalake()
assert list(sys.meta_path) == before
print(deltalake.__file__)
"""
    assert served(code).strip() == str(PACKAGE / "__init__.py")


def test_a_deltalake_that_was_imported_before_is_left_alone():
    code = """
import deltalake, deltafast
try:
    deltafast.install_as_deltalake()
except ImportError as error:
    print(error)
assert deltalake.DeltaTable is not deltafast.DeltaTable
"""
    out = run(["-c", code])
    assert out.startswith(f"the package deltalake (version {deltalake.__version__}, ")
    assert out.rstrip().endswith("call deltafast.install_as_deltalake() before anything imports it")


def test_package_metadata_and_finders_know_it():
    code = """
import importlib.metadata, importlib.util
assert importlib.util.find_spec("deltalake").loader is not None
assert importlib.util.find_spec("deltalake.table").origin.startswith(%r)
assert importlib.metadata.distribution("DeltaLake").metadata["Summary"] == "served by deltafast"
assert importlib.metadata.version("pyarrow")
print(importlib.metadata.version("deltalake"))
"""
    assert served(code % str(PACKAGE)).strip() == deltalake.__version__


def test_serving_loads_nothing_heavy():
    code = """
import sys
import deltalake, deltalake.table, deltalake.writer, deltalake.transaction, deltalake._internal
print([name for name in ("pyarrow", "duckdb", "polars", "pandas", "numpy", "sqlglot") if name in sys.modules])
"""
    assert served(code).strip() == "[]"


def test_the_distribution_has_the_served_files_and_no_others(installed):
    theirs = {file.relative_to(PACKAGE): file.read_bytes() for file in PACKAGE.rglob("*.py")}
    ours = {file.relative_to(installed / "deltalake"): file for file in (installed / "deltalake").rglob("*.py")}
    assert {name: file.read_bytes() for name, file in ours.items()} == theirs
    assert (installed / "deltalake" / "py.typed").exists()
    code = """
import deltafast, deltalake, importlib.metadata
assert issubclass(deltalake.DeltaTable, deltafast.DeltaTable)
deltafast.install_as_deltalake()
found = importlib.metadata.distribution("deltalake")
assert "deltafast[duckdb,pyarrow]" in found.requires
print(found.version, deltalake.__file__)
"""
    expected = f"{deltalake.__version__} {installed / 'deltalake' / '__init__.py'}"
    assert run(["-c", code], path=[installed]).strip() == expected


# --- libraries -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def with_vectors(tmp_path_factory):
    """Two files of four rows, of which a deletion vector deletes two; and statistics as Spark writes them."""
    table = log.Table(tmp_path_factory.mktemp("vectors") / "t")
    stats = '{"numRecords":4}'
    first = table.data(
        "a b/0.parquet",
        pa.table({"id": pa.array(range(4), pa.int64())}),
        add_deletionVector=dv.inline([1, 2]),
        add_stats=stats,
    )
    second = table.data("1.parquet", pa.table({"id": pa.array(range(4, 8), pa.int64())}), add_stats=stats)
    table.commit(0, log.protocol(features=["deletionVectors"]), log.metadata([("id", "long")]), first, second)
    return str(table)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["process", "installed"])
@pytest.mark.parametrize("program", USERS, ids=lambda program: program.stem)
def test_programs_of_others_run_unchanged(program, way, tmp_path, installed, with_vectors):
    assert "deltafast" not in program.read_text("utf-8").partition('"""\n')[2]
    if way == "process":
        code = INSTALL + "import runpy, sys\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
        out = run(["-c", code], program, tmp_path, with_vectors, cwd=tmp_path)
    else:
        out = run([program], tmp_path, with_vectors, path=[installed], cwd=tmp_path)
    assert out.splitlines()[-1] == "done"


def test_what_became_a_keyword_is_taken_by_position_with_a_warning(tmp_path):
    schema = deltafast.Schema([deltafast.Field("id", "long")])
    me = deltafast.CommitProperties(custom_metadata={"who": "me"})
    hooks = deltafast.PostCommitHookProperties(create_checkpoint=False)
    with pytest.warns(DeprecationWarning, match=r"create\(\) takes commit_properties by keyword"):
        table = deltafast.DeltaTable.create(tmp_path, schema, "error", None, None, None, None, None, me)
    deltafast.write_deltalake(table, pa.table({"id": [1, 2]}), mode="append")
    # Some of deltalake's methods have the hooks first.
    with pytest.warns(DeprecationWarning, match="post_commithook_properties, commit_properties by keyword"):
        table.delete("id = 1", None, hooks, me)
    with pytest.warns(DeprecationWarning, match="by keyword"):
        table.alter.set_table_properties({"custom": "x"}, True, me, hooks)
    with pytest.warns(DeprecationWarning, match="full, keep_versions by keyword"):
        assert len(table.vacuum(0, True, False, None, None, True, [])) == 1
    assert [entry.get("who") for entry in table.history()] == ["me", "me", None, "me"]
    with pytest.raises(TypeError, match="multiple values for 'commit_properties'"):
        table.delete("id = 1", None, hooks, me, commit_properties=me)
    with pytest.raises(TypeError, match=r"at most 4 arguments by position, not 5"):
        table.delete("id = 1", None, hooks, me, me)
    assert table.version() == 3


def test_private_helpers_that_libraries_import_are_there():
    code = """
import warnings
import pyarrow as pa
from arro3.core import Schema
from deltalake._util import deprecate_positional_commit_args as late
from deltalake.writer._conversion import _convert_arro3_schema_to_delta as convert

with warnings.catch_warnings(record=True, action="always") as caught:
    assert late("f", (), None, 2) == (None, 2) and not caught
    assert late("f", (1,), None, 2) == (1, 2)
    assert late("f", (2, 1), legacy_order=("post_commithook_properties", "commit_properties")) == (1, 2)
assert str(caught[0].message).startswith("f() takes commit_properties by keyword"), caught
for args in (((1,), 1), ((1, 2, 3),)):
    try:
        late("f", *args)
    except TypeError as error:
        print(error)
def schema(name, small, fixed, moment, none):
    inner = pa.struct([pa.field("a", small, nullable=False), ("t", moment)])
    return pa.schema(
        [pa.field(name, pa.large_list(inner), metadata={"k": "v"}), ("f", pa.list_(fixed, 2)), ("n", none)]
    )
given = schema("l", pa.uint8(), pa.binary(3), pa.timestamp("ns", "Asia/Tokyo"), pa.null())
found = convert(Schema.from_arrow(given), Schema.from_arrow(pa.schema([("n", pa.timestamp("s"))])))
assert isinstance(found, Schema)
wanted = schema("l", pa.int8(), pa.binary(), pa.timestamp("us", "UTC"), pa.timestamp("us"))
assert pa.schema(found).equals(wanted, check_metadata=True), found
assert convert(given).field("n").type == pa.null()
"""
    assert served(code).splitlines() == [
        "f() got multiple values for 'commit_properties'",
        "f() takes at most 2 arguments by position, not 3",
    ]


def test_the_history_has_the_writers_timestamps(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}))
    file = tmp_path / "_delta_log/00000000000000000000.json"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    (said,) = [json.loads(line)["commitInfo"]["timestamp"] for line in file.read_text().splitlines() if "Info" in line]
    assert dropin_table.DeltaTable(tmp_path).history()[0]["timestamp"] == said
    assert deltafast.DeltaTable(tmp_path).history()[0]["timestamp"] == 1_700_000_000_000


def test_the_history_has_strings_for_parameters(tmp_path):
    deltafast.write_deltalake(tmp_path, pa.table({"id": [1]}))
    for _ in range(2):
        deltafast.write_deltalake(tmp_path, pa.table({"id": [1]}), mode="overwrite")
    table = deltafast.DeltaTable(tmp_path)
    table.vacuum(0, False, False)
    assert table.history()[1]["operationParameters"] == {
        "retentionCheckEnabled": "false",
        "specifiedRetentionMillis": "0",
        "defaultRetentionMillis": "604800000",
    }
    with pytest.raises(deltafast.InvalidArgumentError, match=r"RemoveAction cannot be given with mode='overwrite'"):
        table.create_write_transaction([RemoveAction("x.parquet")], "overwrite", table.schema())


def test_vectors_are_as_long_as_their_files(with_vectors):
    ours = deltafast.DeltaTable(with_vectors).deletion_vectors().read_all().to_pylist()
    assert [row["selection_vector"] for row in ours] == [[True, False, False, True]]
    assert [row["filepath"] for row in ours] == [
        uri for uri in deltafast.DeltaTable(with_vectors).file_uris() if uri.endswith("0.parquet")
    ]


# --- what differs under the name -----------------------------------------------------------------

BOTH = pytest.mark.parametrize("package", [deltalake, dropin_table], ids=["deltalake", "dropin"])


def three_versions(folder):
    for ids in ([1], [2], [3]):
        deltafast.write_deltalake(folder, pa.table({"id": ids}), mode="append")
    for version in range(3):
        # A day apart, from 2026-01-01 on.
        noon = dt.datetime(2026, 1, 1 + version, 12, tzinfo=dt.UTC).timestamp()
        os.utime(folder / "_delta_log" / f"{version:020}.json", (noon, noon))
    return str(folder)


@BOTH
def test_a_timestamp_before_the_first_version_is_the_first_version(package, tmp_path):
    place = three_versions(tmp_path)
    early = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    for timestamp, version in ((early, 0), ("2020-01-01T00:00:00Z", 0), ("2026-01-02T13:00:00.5+01:00", 1)):
        table = package.DeltaTable(place)
        table.load_as_version(timestamp)
        assert table.version() == version
    table = package.DeltaTable(place)
    table.restore(early)
    assert table.version() == 3
    assert pa.table(table.to_pyarrow_table()).to_pydict() == {"id": [1]}
    with pytest.raises(deltafast.VersionNotFoundError):
        deltafast.DeltaTable(place).load_as_version(early)
    # SQL is the library's own, whatever the handle.
    handle = dropin_table.DeltaTable(place)
    for statement in ("SELECT * FROM t TIMESTAMP AS OF '2020-01-01'", "RESTORE t TO TIMESTAMP AS OF '2020-01-01'"):
        with pytest.raises(deltafast.VersionNotFoundError):
            deltafast.sql(statement, t=handle)


def test_a_timestamp_before_the_first_version_left_is_that_one(tmp_path):
    place = three_versions(tmp_path)
    deltafast.DeltaTable(place, 1).create_checkpoint()
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    table = dropin_table.DeltaTable(place)
    table.load_as_version(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    assert table.version() == 1
    for call in (table.load_as_version, table.restore):
        with pytest.raises(deltafast.VersionNotFoundError):
            call(0)
    assert table.version() == 1


@BOTH
@pytest.mark.parametrize("text", ["2026-01-02", "2026-01-02T00:00:00", "2026-01-02T00:00:00+08", "yesterday"])
def test_strings_of_timestamps_without_a_zone_are_refused(package, text, tmp_path):
    table = package.DeltaTable(three_versions(tmp_path))
    for call in (table.load_as_version, table.restore):
        with pytest.raises(ValueError, match="Failed to parse datetime string:"):
            call(text)
    assert table.version() == 2


@BOTH
def test_names_and_descriptions_have_a_length(package, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    table = package.DeltaTable(str(tmp_path))
    table.alter.set_table_name("n" * 255)
    table.alter.set_table_description("d" * 4000)
    errors = (deltalake.exceptions.DeltaError, deltafast.DeltaError)
    for wrong in ("", "n" * 256):
        with pytest.raises(errors, match="name: Table name cannot be empty and cannot exceed 255 characters"):
            table.alter.set_table_name(wrong)
    with pytest.raises(errors, match="description: Table description cannot exceed 4000 characters"):
        table.alter.set_table_description("d" * 4001)
    found = package.DeltaTable(str(tmp_path)).metadata()
    assert (found.name, found.description, table.version()) == ("n" * 255, "d" * 4000, 2)


def test_metrics_of_our_commits_are_numbers(tmp_path):
    for _ in range(2):
        deltafast.write_deltalake(tmp_path, pa.table({"id": [1, 2]}), mode="overwrite")
    table = dropin_table.DeltaTable(tmp_path)
    # What was removed in this very millisecond stays.
    time.sleep(0.01)
    table.vacuum(0, False, False)
    metrics = [entry["operationMetrics"] for entry in table.history(3)]
    assert [m.get("numDeletedFiles") for m in metrics] == [1, None, None]
    assert [m.get("numFilesToDelete") for m in metrics] == [None, 1, None]
    assert [m.get("numOutputRows") for m in metrics] == [None, None, 2]
    assert deltafast.DeltaTable(tmp_path).history(1)[0]["operationMetrics"]["numDeletedFiles"] == "1"
    # The library reads texts whatever the handle.
    rows = deltafast.sql("DESCRIBE HISTORY t LIMIT 1", t=table).read_all().to_pylist()
    assert dict(rows[0]["operationMetrics"])["numDeletedFiles"] == "1"


def test_metrics_of_other_writers_stay_as_they_are(tmp_path):
    table = log.Table(tmp_path / "t")
    commit_info = {
        "commitInfo": {"operation": "WRITE", "engineInfo": "Apache-Spark/4", "operationMetrics": {"numFiles": "1"}}
    }
    table.commit(0, log.protocol(), log.metadata([("id", "long")]), commit_info)
    assert dropin_table.DeltaTable(str(table)).history()[0]["operationMetrics"] == {"numFiles": "1"}


@BOTH
@pytest.mark.filterwarnings("ignore:`partition_filters` is deprecated")
@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (("p", "=>", "3"), 'Invalid partition filter found: ("p", "=>", "3").'),
        (("p", "=", ["3", "20"]), 'Invalid partition filter found: ("p", "=", ["3", "20"]).'),
        (
            ("q", "=", "3"),
            "Data does not match the schema or partitions of the table: Field 'q' is not a root table field.",
        ),
    ],
)
def test_wrong_filters_are_refused_in_the_same_words(package, clause, message, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"p": ["3"], "id": [1]}), partition_by="p")
    table = package.DeltaTable(str(tmp_path))
    with pytest.raises(Exception, match=f"^{re.escape(message)}$"):
        table.file_uris([clause])
    assert len(table.file_uris([("p", "in", ["3", "20"])])) == 1


@BOTH
def test_a_mapping_as_a_new_value_is_refused_in_the_same_words(package, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    with pytest.raises((TypeError, ValueError), match="Invalid datatype provided in new_values, only int, float"):
        package.DeltaTable(str(tmp_path)).update(new_values={"id": {}})


STATISTICS = pa.table(
    {
        "a": [1, None],
        "f": [1.0, float("inf")],
        "s": [{"x": float("-inf"), "y": 2}, {"x": 0.0, "y": 3}],
        "t": ["u", "v"],
        "p": ["1", "1"],
    }
)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.dataSkippingNumIndexedCols": "0"},
        {"delta.dataSkippingNumIndexedCols": "3"},
        {"delta.dataSkippingNumIndexedCols": "-1"},
        {"delta.dataSkippingStatsColumns": "f, `a`"},
        {"delta.dataSkippingStatsColumns": "s"},
        {"delta.dataSkippingStatsColumns": "`s`.`y`,a"},
    ],
    ids=str,
)
def test_statistics_are_listed_of_the_same_columns_as_by_deltalake(properties, tmp_path):
    deltalake.write_deltalake(str(tmp_path), STATISTICS, partition_by="p", configuration=properties)
    theirs = pa.table(deltalake.DeltaTable(str(tmp_path)).get_add_actions(True))
    ours = dropin_table.DeltaTable(tmp_path).get_add_actions(True)
    assert ours.select(theirs.column_names).to_pylist() == theirs.to_pylist()
    more = {name for name in ours.column_names if name.startswith(("null_count.", "min.", "max."))}
    assert more <= set(theirs.column_names)


def test_bounds_that_are_infinite_are_null_and_statistics_of_ours_are_cut_alike(tmp_path):
    deltafast.write_deltalake(tmp_path, STATISTICS, configuration={"delta.dataSkippingNumIndexedCols": "3"})
    table = dropin_table.DeltaTable(tmp_path)
    (row,) = table.get_add_actions().to_pylist()
    assert row["null_count"] == {"a": 1, "f": 0, "s": {"x": 0}}
    assert row["min"] == {"a": 1, "f": 1.0, "s": {"x": None}}
    assert row["max"] == {"a": 1, "f": None, "s": {"x": 0.0}}
    plain = deltafast.DeltaTable(tmp_path).get_add_actions(flatten=True)
    assert plain.column("max.f").to_pylist() == [float("inf")]
    assert plain.column("null_count.t").to_pylist() == [None]
    assert table.get_add_actions(flatten=True, columns=["max.f"]).column("max.f").to_pylist() == [float("inf")]
    table.delete()
    assert table.get_add_actions().num_rows == table.get_add_actions(flatten=True).num_rows == 0


@BOTH
def test_a_feed_has_unsigned_versions_and_times_without_a_zone(package, tmp_path):
    feed = {"delta.enableChangeDataFeed": "true"}
    package.write_deltalake(str(tmp_path), pa.table({"id": [1, 2]}), configuration=feed)
    table = package.DeltaTable(str(tmp_path))
    found = table.load_cdf(columns=["id", "_commit_version", "_commit_timestamp"])
    kinds = [("id", pa.int64()), ("_commit_version", pa.uint64()), ("_commit_timestamp", pa.timestamp("ms"))]
    assert pa.schema(found.schema) == pa.schema(kinds)
    rows = pa.table(found).to_pylist()
    assert [(row["id"], row["_commit_version"]) for row in rows] == [(1, 0), (2, 0)]
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    assert all(now - dt.timedelta(minutes=5) < row["_commit_timestamp"] <= now for row in rows)


def test_a_feed_keeps_its_methods_and_its_errors(tmp_path):
    deltafast.write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"})
    deltafast.write_deltalake(tmp_path, pa.table({"id": [2]}), mode="append")
    table = dropin_table.DeltaTable(tmp_path)
    with table.load_cdf(1) as feed:
        assert feed.schema.field("_commit_version").type == pa.uint64()
        assert [batch.column("id").to_pylist() for batch in feed] == [[2]]
        assert feed.progress()[0] == feed.progress()[1]
    # A stream of changes has the library's types, whatever the handle.
    (batch,) = table.stream_changes(change_data_feed=True, starting_version=1)
    assert batch.rows.schema.field("_commit_version").type == pa.int64()
    assert batch.rows.read_all().column("_commit_timestamp").type == pa.timestamp("us", "UTC")
    Path(table.file_uris()[0]).unlink()
    with pytest.raises(deltafast.DataFileNotFoundError):
        table.load_cdf().read_all()


def nanoseconds(values):
    kind = pa.timestamp("ns")
    return pa.table(
        {
            "at": pa.array(values, kind),
            "nested": pa.array([[{"at": value}] for value in values], pa.list_(pa.struct([("at", kind)]))),
            "by": pa.array([[("k", value)] for value in values], pa.map_(pa.string(), kind)),
        }
    )


@BOTH
@pytest.mark.parametrize("form", ["table", "batches", "reader", "pandas"])
def test_nanoseconds_are_cut_off(package, form, tmp_path):
    data = nanoseconds([1_999, -1_999, None])
    expected = nanoseconds([1_000, -1_000, None])
    if form == "pandas":
        data, expected = data.select(["at"]), expected.select(["at"])
    forms = {
        "table": lambda: data,
        # deltalake takes no iterators of batches.
        "batches": lambda: iter(data.to_batches()) if package is dropin_table else data,
        "reader": data.to_reader,
        "pandas": data.to_pandas,
    }
    package.write_deltalake(str(tmp_path), forms[form]())
    rows = pa.table(package.DeltaTable(str(tmp_path)).to_pyarrow_table())
    assert rows.schema.field("at").type == pa.timestamp("us")
    assert rows.to_pylist() == expected.to_pylist()


@BOTH
def test_nanoseconds_of_a_merge_are_cut_off(package, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    source = pa.table({"id": [2], "at": pa.array([1_999], pa.timestamp("ns", "UTC"))})
    table = package.DeltaTable(str(tmp_path))
    table.merge(source, "target.id = source.id", "source", "target", True).when_not_matched_insert_all().execute()
    rows = pa.table(table.to_pyarrow_table()).sort_by("id").to_pylist()
    assert [(row["id"], row["at"] and row["at"].microsecond) for row in rows] == [(1, None), (2, 1)]


def test_other_values_that_a_cast_would_change_are_refused_still(tmp_path):
    deltafast.write_deltalake(
        tmp_path, nanoseconds([1_000]).select(["at"]).append_column("id", pa.array([1], pa.int32()))
    )
    data = nanoseconds([1_999]).select(["at"]).append_column("id", pa.array([2**40]))
    with pytest.raises(deltafast.SchemaMismatchError, match="id"):
        dropin_table.write_deltalake(tmp_path, data, mode="append")
    with pytest.raises(deltafast.SchemaMismatchError, match="nanoseconds"):
        deltafast.write_deltalake(tmp_path, data.set_column(1, "id", pa.array([2], pa.int32())), mode="append")


def test_a_small_buffer_of_a_file_system_is_reported(tmp_path):
    handler = dropin_files.DeltaStorageHandler(str(tmp_path), {"max_buffer_size": "4096"})
    with pytest.warns(UserWarning, match=f"`max_buffer_size` of 4096 bits less than {5 << 20} bits"):
        handler.open_output_stream("f").close()
    large = dropin_files.DeltaStorageHandler(str(tmp_path), {"max_buffer_size": str(5 << 20)})
    with warnings.catch_warnings(action="error"):
        large.open_output_stream("g").close()
    assert (tmp_path / "f").exists()
    assert (tmp_path / "g").exists()


# --- pyarrow's C++ and other engines -------------------------------------------------------------


def plain_and_other(folder):
    """A table that pyarrow reads right, and one with deleted rows, which it does not."""
    rows = pa.table({"id": [1, 2, 3, 4], "p": ["x", "x", "y", None], "s": ["a", "b", "c", "d"]})
    dropin_table.write_deltalake(folder / "plain", rows, partition_by="p")
    vectors = {"delta.enableDeletionVectors": "true"}
    dropin_table.write_deltalake(folder / "other", rows, configuration=vectors)
    dropin_table.DeltaTable(folder / "other").delete("id = 1")
    return dropin_table.DeltaTable(folder / "plain"), dropin_table.DeltaTable(folder / "other")


def acero(dataset):
    node = pac.Declaration("scan", pac.ScanNodeOptions(dataset, columns={"id": pc.field("id")}))
    return node.to_table()["id"].to_pylist()


CPLUSPLUS = {
    "scanner": lambda ds: pads.Scanner.from_dataset(ds, columns=["id"]).to_table()["id"].to_pylist(),
    "acero": acero,
    "fragments": lambda ds: [i for f in ds.get_fragments() for i in f.to_table(ds.schema)["id"].to_pylist()],
    "union": lambda ds: sorted(pads.dataset([ds, ds]).to_table()["id"].to_pylist())[::2],
    "files": lambda ds: pads.dataset(ds.files, filesystem=ds.filesystem).to_table()["id"].to_pylist(),
}


@pytest.mark.parametrize("way", CPLUSPLUS)
def test_a_dataset_of_a_plain_table_is_one_of_parquet_files_too(way, tmp_path):
    plain, other = plain_and_other(tmp_path)
    dataset = plain.to_pyarrow_dataset()
    assert sorted(CPLUSPLUS[way](dataset)) == [1, 2, 3, 4]
    assert sorted(CPLUSPLUS[way](pickle.loads(pickle.dumps(dataset)))) == [1, 2, 3, 4]
    # Never rows that are deleted.
    with pytest.raises((OSError, deltafast.DeltaProtocolError)):
        CPLUSPLUS[way](other.to_pyarrow_dataset())


def test_filters_and_schemas_of_a_dataset_reach_the_cplusplus(tmp_path):
    plain, other = plain_and_other(tmp_path)
    for table, ids in ((plain, [1, 2, 3, 4]), (other, [2, 3, 4])):
        dataset = table.to_pyarrow_dataset()
        wider = pa.schema([("s", pa.large_string()), ("new", pa.int32()), ("id", pa.float64())])
        found = dataset.replace_schema(wider)
        assert found.schema == wider
        rows = found.to_table().sort_by("id")
        assert rows.schema == wider
        assert rows["id"].to_pylist() == ids
        assert rows["new"].to_pylist() == [None] * len(ids)
        assert found.to_table(filter=pc.field("new").is_null() & (pc.field("id") > 3.0))["s"].to_pylist() == ["d"]
        assert found.count_rows() == len(ids)
        assert dataset.replace_schema(dataset.schema).to_table(columns=["id"]).sort_by("id")["id"].to_pylist() == ids
    filtered = plain.to_pyarrow_dataset().filter(pc.field("p") == "x")
    assert sorted(pads.Scanner.from_dataset(filtered).to_table()["id"].to_pylist()) == [1, 2]
    assert sorted(acero(filtered)) == [1, 2]
    assert len(list(filtered.get_fragments())) == 1
    narrow = plain.to_pyarrow_dataset().replace_schema(pa.schema([("s", pa.string())]))
    assert sorted(pads.Scanner.from_dataset(narrow).to_table()["s"].to_pylist()) == ["a", "b", "c", "d"]


def test_the_file_system_of_a_dataset_is_a_plain_one(tmp_path):
    plain, _ = plain_and_other(tmp_path)
    dataset = plain.to_pyarrow_dataset()
    assert isinstance(dataset.filesystem, pafs.SubTreeFileSystem)
    infos = dataset.filesystem.get_file_info(dataset.files)
    assert len(infos) == 3
    assert all(info.size > 0 for info in infos)
    # Without asking for the name `deltalake`, no files are listed before they are needed.
    assert deltafast.DeltaTable(tmp_path / "plain").to_pyarrow_dataset().filesystem.type_name == "py::deltafast"


def test_filters_under_their_old_names_warn(tmp_path):
    plain, _ = plain_and_other(tmp_path)
    old = [("p", "=", "x")]
    for call in (plain.file_uris, plain.partitions, plain.to_pyarrow_dataset):
        with pytest.warns(DeprecationWarning, match="is deprecated; pass the filters to `file_pruning_predicate`"):
            call(old)
        with pytest.raises(ValueError, match="is deprecated; pass only `file_pruning_predicate`"):
            call(old, file_pruning_predicate="p = 'x'")
        call(file_pruning_predicate="p = 'x'")
    for call in (plain.to_pyarrow_table, plain.to_pandas):
        with pytest.warns(DeprecationWarning, match="`partitions` is deprecated; use `filters` instead"):
            assert len(call(old)) == 2


def test_options_on_loading_are_ignored_with_a_warning(tmp_path):
    plain, _ = plain_and_other(tmp_path)
    for option in ({"without_files": True}, {"skip_stats": True}, {"log_buffer_size": 1}):
        with pytest.warns(DeprecationWarning, match="deprecated and ignored"):
            table = dropin_table.DeltaTable(tmp_path / "plain", **option)
        assert table.file_uris() == plain.file_uris()
        assert table.get_add_actions(flatten=True) == plain.get_add_actions(flatten=True)
        with pytest.warns(DeprecationWarning, match="table_config"):
            assert table.table_config == deltafast.DeltaTable(tmp_path / "plain").table_config
    assert pickle.loads(pickle.dumps(plain)) == plain


def test_a_lock_table_is_named_in_a_warning_and_not_refused(monkeypatch):
    named = {"AWS_REGION": "us-east-1", "s3_locking_provider": "DynamoDB"}
    with pytest.warns(deltafast.DeltaWarning, match="writers that use the lock table must not write to this table"):
        found = dropin.without_lock_table("s3://bucket/t", named)
    assert found == {"AWS_REGION": "us-east-1", "AWS_S3_LOCKING_PROVIDER": "none"}
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    with pytest.warns(deltafast.DeltaWarning, match="dynamodb"):
        assert dropin.without_lock_table("s3a://bucket/t", None) == {"AWS_S3_LOCKING_PROVIDER": "none"}
    for uri, options in (("/data/t", None), ("gs://b/t", {}), ("s3://b/t", {"aws_s3_locking_provider": "none"})):
        assert dropin.without_lock_table(uri, options) == options
    # Another provider is refused as before.
    assert dropin.without_lock_table("s3://b/t", {"AWS_S3_LOCKING_PROVIDER": "other"}) == {
        "AWS_S3_LOCKING_PROVIDER": "other"
    }


def test_nanoseconds_are_refused_where_they_are_asked_for(tmp_path):
    data = nanoseconds([1_999]).select(["at"])
    with pytest.warns(deltafast.DeltaWarning, match="values with nanoseconds are refused from here on, not cut"):
        dropin.enable_nanosecond_timestamps()
    try:
        assert dropin.nanosecond_timestamps_enabled()
        with pytest.raises(deltafast.SchemaMismatchError, match="nanoseconds"):
            dropin_table.write_deltalake(tmp_path, data)
    finally:
        dropin.disable_nanosecond_timestamps()
    dropin_table.write_deltalake(tmp_path, data)


@pytest.mark.parametrize("name", ["Compression", "Encoding"])
def test_codecs_and_encodings_are_those_of_deltalake(name):
    theirs, ours = getattr(deltalake_properties, name), getattr(dropin_properties, name)
    assert [member.value for member in ours] == [member.value for member in theirs]
    assert ours.from_str("plain" if name == "Encoding" else "zstd").value in {"PLAIN", "ZSTD"}
    with pytest.raises(ValueError, match="nothing is not a valid"):
        ours.from_str("nothing")
    if name == "Compression":
        for codec in ("GZIP", "BROTLI", "ZSTD"):
            assert ours(codec).get_level_range() == theirs(codec).get_level_range()
            assert ours(codec).get_default_level() == theirs(codec).get_default_level()
            assert ours(codec).check_valid_level(theirs(codec).get_default_level())
        with pytest.raises(ValueError, match="should fall between 1-22"):
            ours.ZSTD.check_valid_level(23)
        with pytest.raises(KeyError, match="SNAPPY"):
            ours.SNAPPY.get_level_range()


def test_handlers_are_compared(tmp_path):
    one, same = (dropin_files.DeltaStorageHandler(str(tmp_path)) for _ in range(2))
    assert one.equals(same)
    assert not one.equals(dropin_files.DeltaStorageHandler(str(tmp_path / "other")))


def test_datafusion_learns_how_to_read_a_table(tmp_path, monkeypatch):
    plain, _ = plain_and_other(tmp_path)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "55.0.0")
    with pytest.raises(RuntimeError, match=r"session.register_table\(name, table.to_pyarrow_dataset\(\)\)"):
        plain.__datafusion_table_provider__(object())
    monkeypatch.undo()


@BOTH
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda package, place: package.write_deltalake(
                place, pa.table({"id": [1]}), mode="append", partition_by="id"
            ),
            "Generic error: Specified table partitioning does not match table partitioning",
        ),
        (lambda package, place: package.DeltaTable(place).vacuum(-1), "The retention periods should be positive."),
        (
            lambda package, place: package.write_deltalake(
                place, pa.table({"id": [1]}), mode="overwrite", predicate="nope = 1"
            ),
            "No field named nope",
        ),
        (lambda package, place: package.DeltaTable(place).alter.drop_column_not_null("id"), "Generic DeltaTable error"),
    ],
    ids=["partitioning", "retention", "column", "nullable"],
)
def test_messages_that_programs_look_for_are_the_same(package, call, message, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    with pytest.raises(Exception, match=re.escape(message)):
        call(package, str(tmp_path))


def test_an_append_only_table_refuses_as_deltalakes_does(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    with pytest.raises(deltafast.CommitFailedError, match="append-only"):
        dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}), mode="overwrite")


# --- rows, errors and private names as those of deltalake -----------------------------------------


REQUIRED = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string(), metadata={"comment": "a string"})]
)


@BOTH
def test_rows_have_not_null_and_the_metadata_of_fields(package, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"id": [1, 2], "s": ["a", None]}, schema=REQUIRED))
    found = package.DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert found.schema.equals(REQUIRED, check_metadata=True)
    narrow = package.DeltaTable(str(tmp_path)).to_pyarrow_table(columns=["s"])
    assert narrow.schema.equals(pa.schema([REQUIRED.field("s")]), check_metadata=True)


def test_null_in_a_column_that_is_not_null_stays_nullable(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1], "s": ["a"]}, schema=REQUIRED))
    table = dropin_table.DeltaTable(tmp_path)
    pq.write_table(pa.table({"id": pa.array([None], pa.int64()), "s": ["b"]}), table.file_uris()[0])
    rows = dropin_table.DeltaTable(tmp_path).to_pyarrow_table()
    assert rows.schema.field("id").nullable
    assert rows["id"].to_pylist() == [None]
    query = dropin_query.QueryBuilder().register("t", table)
    with pytest.raises(Exception, match="NOT NULL in the table, but a file has null in it \\(column `id`\\)"):
        pa.table(query.execute("SELECT * FROM t").read_all())


@pytest.mark.parametrize(
    ("sql", "required", "described"),
    [
        ("SELECT * FROM t", {"id"}, {"s"}),
        ("select s, ID as x from T where id > 0 order by s limit 3", {"x"}, {"s"}),
        ("SELECT id + 1 AS id, s FROM t", set(), {"s"}),
        ("SELECT id AS s, s AS id FROM t", {"s"}, {"id"}),
        ("SELECT id, max(s) AS s FROM t GROUP BY ROLLUP (id)", set(), set()),
        ("SELECT a.id, b.s FROM t a LEFT JOIN t b ON a.id = b.id", set(), set()),
        ("SELECT * FROM t UNION ALL SELECT NULL, 'a'", set(), set()),
        ("WITH t AS (SELECT NULL AS id, 'b' AS s) SELECT * FROM t", set(), set()),
        ("SELECT * REPLACE (NULL AS id) FROM t", set(), set()),
        ("SELECT * EXCLUDE (s), NULL AS s FROM t", {"id"}, set()),
        ("SELECT NULL AS id, * FROM t", set(), {"s"}),
    ],
)
def test_columns_that_a_query_takes_as_they_are_keep_their_fields(sql, required, described, tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1, 2], "s": ["a", None]}, schema=REQUIRED))
    query = dropin_query.QueryBuilder().register("t", dropin_table.DeltaTable(tmp_path))
    schema = pa.table(query.execute(sql).read_all()).schema
    assert {field.name for field in schema if not field.nullable} == required
    assert {field.name for field in schema if field.metadata} == described


def test_settings_of_datafusion_are_known(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}))
    given = {
        "datafusion.execution.batch_size": "7",
        "datafusion.execution.target_partitions": "1",
        "datafusion.runtime.memory_limit": "512M",
        "datafusion.runtime.max_temp_directory_size": "1G",
        "datafusion.runtime.temp_directory": "/nowhere",
    }
    query = dropin_query.QueryBuilder(given).register("t", dropin_table.DeltaTable(tmp_path))
    names = ("threads", "memory_limit", "max_temp_directory_size")
    chosen = ", ".join(f"current_setting('{name}') AS {name}" for name in names)
    (row,) = pa.table(query.execute(f"SELECT {chosen}").read_all()).to_pylist()
    assert (row["threads"], row["memory_limit"], row["max_temp_directory_size"]) == (1, "488.2 MiB", "953.6 MiB")
    for package in (dropin_query, deltalake):
        with pytest.raises(Exception, match=r"datafusion\.execution\.bogus"):
            package.QueryBuilder({"datafusion.execution.bogus": "1"})


@BOTH
def test_errors_of_features_and_casts_have_the_same_words(package, tmp_path):
    place = str(tmp_path)
    package.write_deltalake(place, pa.table({"id": pa.array([1], pa.int8()), "b": [True], "n": [1]}))
    table = package.DeltaTable(place)
    features = TableFeatures if package is dropin_table else deltalake.TableFeatures
    for feature, match in (
        (features.ChangeDataFeed, "writer feature"),
        (features.DeletionVectors, "reader and writer feature"),
    ):
        with pytest.raises(Exception, match=f"Table feature enables {match}, .* allow_protocol_versions_increase"):
            table.alter.add_feature(feature)
    with pytest.raises(Exception, match="Arrow error: Cast error: Cannot cast value 'x' to value of Boolean"):
        table.update({"b": "'x'"})
    source = pa.table({"id": pa.array([1], pa.int8()), "n": ["abc"]})
    merge = table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"n": "s.n"})
    with pytest.raises(Exception, match="Cannot cast string 'abc' to value of Int64 type"):
        merge.execute()
    for values, match in (
        (pa.array(["1", "hello"]), "Cast error: Cannot cast string 'hello' to value of Int8 type"),
        (pa.array([1000], pa.int32()), "Cast error: Can't cast value 1000 to type Int8"),
    ):
        with pytest.raises(Exception, match=match):
            package.write_deltalake(place, pa.table({"id": values}), mode="append", schema_mode="merge")
    assert package.DeltaTable(place).version() == 0
    rows = pa.table({"id": ["2", None], "n": ["3", "4"]})
    package.write_deltalake(place, rows, mode="append", schema_mode="merge")
    found = pa.table(package.DeltaTable(place).to_pyarrow_table()).sort_by("n")
    assert found["id"].to_pylist() == [1, 2, None]
    assert found["n"].to_pylist() == [1, 3, 4]


def test_a_writer_feature_of_a_table_with_reader_features_is_one_of_the_writer(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.columnMapping.mode": "name"})
    table = dropin_table.DeltaTable(tmp_path)
    assert table.protocol()[:2] == (2, 5)
    with pytest.raises(deltafast.InvalidArgumentError, match=r"enables writer feature, .* the table has \(2, 5\)"):
        table.alter.add_feature(TableFeatures.DomainMetadata)


def test_data_that_is_read_once_is_cast(tmp_path):
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}))
    dropin_table.write_deltalake(tmp_path, pa.table({"id": ["2"]}).to_reader(), mode="append")
    assert sorted(deltafast.DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [1, 2]
    with pytest.raises(deltafast.SchemaMismatchError, match="expected long, found Utf8"):
        deltafast.write_deltalake(tmp_path, pa.table({"id": ["2"]}), mode="append")


def test_a_plain_import_has_the_submodules_and_features_of_deltalake():
    script = """
import json, types, deltalake
def modules(of):
    return sorted(name for name in dir(of) if isinstance(getattr(of, name), types.ModuleType))
print(json.dumps([
    modules(deltalake), deltalake.exceptions.DeltaError.__name__, deltalake.writer.properties.__name__,
    sorted(name for name in dir(deltalake.TableFeatures) if not name.startswith("_")),
]))
"""
    real, ours = (
        json.loads(subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, text=True).stdout)
        for text in (script, INSTALL + script)
    )
    assert set(real[0]) - set(ours[0]) == {"atexit"}
    assert real[1:3] == ours[1:3]
    assert set(real[3]) <= set(ours[3])


def file_is_missing(path: Path) -> dropin_table.DeltaTable:
    """A table that has lost its data file."""
    dropin_table.write_deltalake(path, pa.table({"a": [1, 2]}))
    for file in path.glob("*.parquet"):
        file.unlink()
    return dropin_table.DeltaTable(path)


@pytest.mark.parametrize(
    "read",
    [
        lambda table: table.to_pyarrow_table(),
        lambda table: table.to_pandas(),
        lambda table: table.to_pyarrow_dataset().to_table(),
        lambda table: list(table.to_pyarrow_dataset().to_batches()),
        lambda table: table.to_pyarrow_dataset().head(1),
        lambda table: table.to_pyarrow_dataset().count_rows(pc.field("a") > 1),
        lambda table: table.delete("a = 1"),
        lambda table: table.update({"a": "2"}, predicate="a = 1"),
        lambda table: table.merge(pa.table({"a": [1]}), "t.a = s.a", "s", "t").when_matched_delete().execute(),
    ],
)
def test_a_missing_data_file_raises_one_class_from_each_call(tmp_path, read):
    with pytest.raises(deltafast.DataFileNotFoundError, match="no such file") as raised:
        read(file_is_missing(tmp_path))
    assert isinstance(raised.value, FileNotFoundError)


def test_a_stream_of_a_missing_file_fails_as_a_read(tmp_path):
    with pytest.raises(OSError, match="no such file"):
        pads.Scanner.from_batches(file_is_missing(tmp_path).to_pyarrow_dataset().scanner().to_reader()).to_table()


@BOTH
def test_classes_of_errors_on_each_method(package, tmp_path):
    place = str(tmp_path)
    package.write_deltalake(place, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    for change in (
        lambda table: table.delete(),
        lambda table: table.update({"id": "2"}),
        lambda table: table.merge(pa.table({"id": [1]}), "t.id = s.id", "s", "t").when_matched_delete().execute(),
    ):
        with pytest.raises(Exception, match="table is append-only") as raised:
            change(package.DeltaTable(place))
        assert type(raised.value).__name__ == "CommitFailedError"
    with pytest.raises(Exception, match="s4") as raised:
        package.DeltaTable("s4://bucket/table")
    assert type(raised.value).__name__ == "TableNotFoundError"


@BOTH
def test_answers_that_programs_store_or_compare(package, tmp_path):
    place = str(tmp_path / "t")
    numbers = {
        1.0: "1",
        1.5: "1.5",
        -0.0: "-0",
        1e20: "1" + 20 * "0",
        1e-7: "0.0000001",
        -math.inf: "-inf",
        math.nan: "NaN",
    }
    rows = pa.table({"a": list(numbers), "b": list(range(1, len(numbers) + 1))})
    package.write_deltalake(place, rows, partition_by=["a"])
    table = package.DeltaTable(place)
    assert sorted(values["a"] for values in table.partitions()) == sorted(numbers.values())
    table.merge(pa.table({"b": [1]}), "t.b = s.b", "s", "t").when_matched_delete().execute()
    assert table.history(1)[0]["operationParameters"]["mergePredicate"].replace("`", "").strip("()") == "t.b = s.b"
    plain = str(tmp_path / "plain")
    package.write_deltalake(plain, pa.table({"b": [1]}))
    files = pa.table(package.DeltaTable(plain).get_add_actions())
    pq.write_table(files, tmp_path / "files.parquet")
    assert not {"partition", "deletion_vector"} & set(files.column_names)


@BOTH
def test_filters_that_are_no_conjunctions_are_refused(package, tmp_path):
    package.write_deltalake(str(tmp_path), pa.table({"p": ["x"], "id": [1]}), partition_by=["p"])
    table = package.DeltaTable(str(tmp_path))
    with pytest.warns(DeprecationWarning, match="deprecated"), pytest.raises(ValueError, match="empty conjunction"):
        table.file_uris([[("p", "=", "x")], []])
    with pytest.warns(DeprecationWarning, match="deprecated"), pytest.raises(ValueError, match="not a mix"):
        table.file_uris([("p", "=", "x"), [("p", "=", "y")]])


def test_paths_that_begin_with_a_slash_are_below_the_table(tmp_path):
    data = pa.table({"p": ["x"], "id": [1]})
    dropin_table.write_deltalake(tmp_path, data, partition_by="p")
    (tmp_path / "p=y").mkdir()
    pq.write_table(data.select(["id"]), tmp_path / "p=y" / "f.parquet")
    size = (tmp_path / "p=y" / "f.parquet").stat().st_size
    table = dropin_table.DeltaTable(tmp_path)
    add = AddAction("/p=y/f.parquet", size, {"p": "y"}, 0, True)
    table.create_write_transaction([add], "append", table.schema(), ["p"])
    assert table.to_pyarrow_table().sort_by("p").to_pylist() == [{"p": "x", "id": 1}, {"p": "y", "id": 1}]
    assert "p=y/f.parquet" in table.files()
    for form in ("below", "absolute"):
        other = tmp_path / form
        (other / "p=y").mkdir(parents=True)
        pq.write_table(data.select(["id"]), other / "p=y" / "f.parquet")
        path = str(other / "p=y" / "f.parquet") if form == "absolute" else "/p=y/f.parquet"
        add = AddAction(path, size, {"p": "y"}, 0, True)
        dropin_table.create_table_with_add_actions(str(other), table.schema(), [add], partition_by=["p"])
        assert dropin_table.DeltaTable(other).files() == ["p=y/f.parquet"]


def test_the_inner_table_may_be_replaced(tmp_path):
    class Inner:
        def vacuum(self, *arguments):
            self.given = arguments
            return ["file"]

        def history(self, limit):
            return ['{"version": 7}'] * limit

    table = object.__new__(dropin_table.DeltaTable)
    table._table = Inner()
    with pytest.warns(DeprecationWarning, match="positionally"):
        assert table.vacuum(None, True, True, None, "commit") == ["file"]
    assert table._table.given == (True, None, True, "commit", None, False, None)
    assert table.history(2) == [{"version": 7}] * 2
    with pytest.raises(TypeError, match="multiple values for 'full'"):
        table.vacuum(None, True, True, None, "commit", False, full=True)
    dropin_table.write_deltalake(tmp_path, pa.table({"id": [1]}))
    assert dropin_table.DeltaTable(tmp_path)._table.vacuum(True, None, True) == []
    assert len(dropin_table.DeltaTable(tmp_path)._table.history(5)) == 1


def test_removes_are_shown_as_by_deltalake():
    remove = RemoveAction("a.parquet", True, 456, size=10, partition_values={"p": "x"})
    assert repr(remove) == (
        "RemoveAction(path=a.parquet, data_change=True, deletion_timestamp=456, size=10, partition_values={'p': 'x'})"
    )
