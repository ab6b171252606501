"""deltafast under the name `deltalake`: for one process, and as the distribution that `compat/` builds."""

import ast
import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import deltafast
from deltafast.transaction import RemoveAction
from tablekit import dv, log

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "deltafast" / "_deltalake"
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
        "init_tracing",
        "shutdown_tracing",
        "write_to_deltalake",
    },
    "deltalake.fs.fs_handler": {"PYARROW_AVAILABLE"},
    "deltalake.writer.properties": {"Compression", "Encoding"},
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
        [*pip, "wheel", *only, "--no-build-isolation", "-w", folder, ROOT / "compat"], check=True, timeout=100
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


def test_classes_are_deltafasts_own():
    code = """
import deltalake.exceptions, deltalake.table, deltalake.writer.properties, deltalake._internal
assert deltalake.DeltaTable is deltalake.table.DeltaTable is deltafast.DeltaTable
assert deltalake.exceptions.DeltaError is deltalake._internal.DeltaError is deltafast.DeltaError
assert deltalake.writer.properties.WriterProperties is deltafast.WriterProperties
assert deltalake.rust_core_version() == deltafast.__version__
print(deltalake.__version__)
"""
    assert served(code).strip() == deltalake.__version__


def test_what_is_missing_says_so_in_one_line(tmp_path):
    code = """
import deltalake
table = deltalake.DeltaTable.create("t", deltalake.Schema([deltalake.Field("id", "long")]))
for call in (lambda: deltalake.enable_nanosecond_timestamps(), lambda: deltalake.init_tracing("http://x")):
    try:
        call()
    except NotImplementedError as error:
        print(error)
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
    assert lines[0].startswith("nanosecond timestamps are not there yet")
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
assert deltalake.DeltaTable is deltafast.DeltaTable
deltafast.install_as_deltalake()
found = importlib.metadata.distribution("deltalake")
assert found.requires == ["deltafast"] or "deltafast" in found.requires
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


def test_the_history_has_texts_for_parameters(tmp_path):
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
