"""Commits of existing files: paths, sizes and values of actions, natively and under the name `deltalake`."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import DeltaTable, Schema, create_table_with_add_actions, write_deltalake
from deltafast._deltalake import table as dropin
from deltafast.exceptions import DataFileNotFoundError, InvalidArgumentError
from deltafast.filesystem import DeltaStorageHandler
from deltafast.transaction import AddAction, RemoveAction

if TYPE_CHECKING:
    from collections.abc import Callable

deltalake = pytest.importorskip("deltalake")

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
#: Values as hive-style writers put them into folder names, as they stand or encoded by the writer itself.
VALUES = [
    "a b",
    "c:d",
    "a%20b",
    "k=v",
    "ü",
    "日本",
    "%",
    "%zz",
    "#",
    "?",
    "a+b",
    "a&b",
    "'",
    '"',
    "~!@$()*,;[]{}|^`<>\\",
]
#: Paths that are not those of a data file of the table, as they stand in the log.
WRONG_PATHS = [
    "../victim.parquet",
    "%2e%2e/victim.parquet",
    "%2E%2E%2Fvictim.parquet",
    "a/../../victim.parquet",
    "a/../f.parquet",
    "./f.parquet",
    "%2e/f.parquet",
    "a//f.parquet",
    ".",
    "..",
    "/",
    "folder",
    "folder/",
    "http://host/f.parquet",
    "https://user:secret@host/f.parquet",
    "s3://bucket/f.parquet",
    "file:///etc/passwd",
    "/etc/passwd",
    "_delta_log/00000000000000000000.json",
    "_delta_log/x.parquet",
    "_DELTA_LOG/x.parquet",
    "%5fdelta_log/x.parquet",
    "missing.parquet",
    "",
    "f.parquet%00",
    "f.parquet%ff",
]


def data_file(root: pathlib.Path, path: str, ids: list[int]) -> int:
    """Write a data file without the partition column; return its size."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), file)
    return file.stat().st_size


def logged(root: pathlib.Path, version: int) -> list[dict[str, Any]]:
    """The file actions of a commit."""
    lines = (root / "_delta_log" / f"{version:020}.json").read_text("utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    return [action[kind] for action in actions for kind in ("add", "remove") if kind in action]


def hive_table(root: pathlib.Path, values: list[str], create: Callable[..., None], encode: bool) -> list[str]:
    """Create a table of a file per value in a folder `k=value`; return the plain paths."""
    paths = [f"k={value}/f.parquet" for value in values]
    actions: list[Any] = []
    for n, (path, value) in enumerate(zip(paths, values, strict=True)):
        size = data_file(root, path, [n])
        logged_path = quote(path, safe="/=") if encode else path
        actions.append(AddAction(logged_path, size, {"k": value}, 1, True, '{"numRecords":1}'))
    create(str(root), Schema.from_arrow(SCHEMA), actions, "error", ["k"])
    return paths


def answers(root: pathlib.Path) -> dict[str, list[tuple[int, str]]]:
    """The rows of a table as each reader sees them."""
    table = deltalake.DeltaTable(root)
    found: dict[str, Any] = {
        "deltafast": DeltaTable(root).to_pyarrow_table(),
        "deltafast as deltalake": dropin.DeltaTable(root).to_pyarrow_table(),
        "deltafast as a dataset": DeltaTable(root).to_pyarrow_dataset().to_table(),
        "deltafast by SQL": pa.table(deltafast.sql(f"SELECT id, k FROM delta.`{root}`").read_all()),
        "deltafast for polars": DeltaTable(root).scan_polars().collect().to_arrow(),
        "deltalake": table.to_pyarrow_table(),
        "deltalake by SQL": pa.table(
            deltalake.QueryBuilder().register("t", table).execute("SELECT id, k FROM t").read_all()
        ),
    }
    return {name: sorted((row["id"], row["k"]) for row in rows.to_pylist()) for name, rows in found.items()}


@pytest.mark.parametrize("native", [True, False], ids=["encoded natively", "plain under the name deltalake"])
def test_files_in_folders_of_any_value_are_found_by_every_reader(native: bool, tmp_path: pathlib.Path) -> None:
    create = create_table_with_add_actions if native else dropin.create_table_with_add_actions
    hive_table(tmp_path, VALUES, create, encode=native)
    expected = sorted(enumerate(VALUES))
    assert answers(tmp_path) == dict.fromkeys(answers(tmp_path), expected)


def test_polars_finds_the_files_of_values_that_it_can_read_from_folder_names(tmp_path: pathlib.Path) -> None:
    # Polars parses the folder names, with any writer: it decodes them, and loses a value with `=`.
    values = [value for value in VALUES if "%" not in value and "=" not in value and "^" not in value]
    hive_table(tmp_path, values, dropin.create_table_with_add_actions, encode=False)
    assert sorted(pl.read_delta(str(tmp_path)).rows()) == sorted(enumerate(values))


def test_the_name_deltalake_logs_the_paths_that_deltalake_logs(tmp_path: pathlib.Path) -> None:
    draw = random.Random(7)
    letters = [chr(code) for code in (*range(0x20, 0x2F), *range(0x30, 0x7F), 0xE9, 0x4E2D, 0x1F600)]
    values = VALUES + ["".join(draw.choices(letters, k=6)) + "x" for _ in range(40)]
    paths = {}
    for name, create in (("ours", dropin.create_table_with_add_actions), ("real", None)):
        root = tmp_path / name
        if create is not None:
            hive_table(root, values, create, encode=False)
        else:
            actions = [
                deltalake.transaction.AddAction(
                    f"k={value}/f.parquet", data_file(root, f"k={value}/f.parquet", [n]), {"k": value}, 1, True, "{}"
                )
                for n, value in enumerate(values)
            ]
            schema = deltalake.Schema.from_arrow(SCHEMA)
            deltalake.transaction.create_table_with_add_actions(str(root), schema, actions, "error", ["k"])
        paths[name] = sorted(action["path"] for action in logged(root, 0))
    assert paths["ours"] == paths["real"]


@pytest.mark.parametrize("path", WRONG_PATHS)
@pytest.mark.parametrize("creates", [True, False])
def test_a_path_that_is_not_that_of_a_data_file_is_refused(path: str, creates: bool, tmp_path: pathlib.Path) -> None:
    data_file(tmp_path, "victim.parquet", [666])
    root = tmp_path / "t"
    size = data_file(root, "f.parquet", [1])
    data_file(root, "a/f.parquet", [1])
    data_file(root, "folder/f.parquet", [1])
    action = AddAction(path, size, {}, 1, True, '{"numRecords":1}')
    schema = SCHEMA.remove(1)
    if creates:
        data_file(root, "_delta_log/x.parquet", [1])

        def commit() -> None:
            create_table_with_add_actions(root, schema, [action])
    else:
        write_deltalake(root, pa.table({"id": pa.array([1], pa.int64())}))
        data_file(root, "_delta_log/x.parquet", [1])
        table = DeltaTable(root)

        def commit() -> None:
            table.create_write_transaction([action], "append", schema)

    with pytest.raises((InvalidArgumentError, DataFileNotFoundError, deltafast.DeltaError)):
        commit()
    assert not (root / "_delta_log" / f"{0 if creates else 1:020}.json").exists()


@pytest.mark.parametrize("path", ["k=a b/f.parquet", "k=a#b/f.parquet", "k=a?b/f.parquet", "k=100%/f.parquet", "%2"])
def test_a_plain_path_is_refused_with_its_encoded_form(path: str, tmp_path: pathlib.Path) -> None:
    size = data_file(tmp_path, path, [1])
    action = AddAction(path, size, {"k": "x"}, 1, True)
    with pytest.raises(InvalidArgumentError, match="not URI-encoded") as caught:
        create_table_with_add_actions(tmp_path, SCHEMA, [action], partition_by="k")
    right = AddAction(str(caught.value).split("`")[-2], size, {"k": "x"}, 1, True)
    create_table_with_add_actions(tmp_path, SCHEMA, [right], partition_by="k")
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == [{"id": 1, "k": "x"}]


def test_a_plain_path_that_is_another_uri_is_refused_with_its_encoded_form(tmp_path: pathlib.Path) -> None:
    size = data_file(tmp_path, "k=a%20b/f.parquet", [1])
    action = AddAction("k=a%20b/f.parquet", size, {"k": "a b"}, 1, True)
    with pytest.raises(DataFileNotFoundError, match=r"is `k=a%2520b/f\.parquet`"):
        create_table_with_add_actions(tmp_path, SCHEMA, [action], partition_by="k")


@pytest.mark.parametrize("size", [0, 1, -1, "one more"])
def test_a_size_that_is_not_the_files_is_refused(size: Any, tmp_path: pathlib.Path) -> None:
    true = data_file(tmp_path, "f.parquet", [1])
    wrong = true + 1 if size == "one more" else size
    with pytest.raises(InvalidArgumentError):
        create_table_with_add_actions(tmp_path, SCHEMA.remove(1), [AddAction("f.parquet", wrong, {}, 1, True)])
    create_table_with_add_actions(tmp_path, SCHEMA.remove(1), [AddAction("f.parquet", true, {}, 1, True)])


@pytest.mark.parametrize("form", ["path", "URL"])
def test_an_absolute_path_below_the_table_becomes_relative(form: str, tmp_path: pathlib.Path) -> None:
    root = tmp_path / "my table"
    size = data_file(root, "k=a b/f.parquet", [1])
    whole = quote((root / "k=a b" / "f.parquet").as_posix())
    action = AddAction(whole if form == "path" else f"file://{whole}", size, {"k": "a b"}, 1, True)
    create_table_with_add_actions(root, SCHEMA, [action], partition_by="k")
    assert DeltaTable(root).files() == ["k=a%20b/f.parquet"]


def test_a_file_outside_is_committed_only_where_the_caller_allows_it(tmp_path: pathlib.Path) -> None:
    size = data_file(tmp_path, "other/f.parquet", [1])
    action = AddAction(f"file://{quote((tmp_path / 'other/f.parquet').as_posix())}", size, {}, 1, True)
    schema = SCHEMA.remove(1)
    with pytest.raises(InvalidArgumentError, match="below the table's folder"):
        create_table_with_add_actions(tmp_path / "t", schema, [action])
    create_table_with_add_actions(tmp_path / "t", schema, [])
    with pytest.raises(InvalidArgumentError, match="below the table's folder"):
        DeltaTable(tmp_path / "t").create_write_transaction([action], "append", schema)
    allowed = DeltaTable(tmp_path / "t", allow_external_paths=[(tmp_path / "other").as_posix()])
    allowed.create_write_transaction([action], "append", schema)
    assert allowed.count() == 1


def test_many_files_are_looked_up_and_the_missing_one_is_named(tmp_path: pathlib.Path) -> None:
    size = data_file(tmp_path, "0.parquet", [1])
    for n in range(1, 700):
        os.link(tmp_path / "0.parquet", tmp_path / f"{n}.parquet")
    actions = [AddAction(f"{n}.parquet", size, {}, 1, True, '{"numRecords":1}') for n in range(700)]
    (tmp_path / "523.parquet").unlink()
    with pytest.raises(DataFileNotFoundError, match=r"523\.parquet"):
        create_table_with_add_actions(tmp_path, SCHEMA.remove(1), actions)
    del actions[523]
    create_table_with_add_actions(tmp_path, SCHEMA.remove(1), actions)
    assert DeltaTable(tmp_path).count() == 699


@pytest.mark.parametrize("count", [3, 1100], ids=["one request each", "one listing"])
def test_files_of_an_object_store_are_looked_up(count: int) -> None:
    url = f"memory://{uuid.uuid4()}/t"
    store = pafs.PyFileSystem(DeltaStorageHandler(url))
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), buffer)
    content = buffer.getvalue().to_pybytes()
    actions: list[AddAction] = []
    for n in range(count):
        with store.open_output_stream(f"k=a b/{n}.parquet") as file:
            file.write(content)
        actions.append(AddAction(f"k=a%20b/{n}.parquet", len(content), {"k": "a b"}, 1, True, '{"numRecords":1}'))
    for wrong in ("k=a%20b/missing.parquet", "k=a%20b", f"k=a%20b/{count}.parquet"):
        action = AddAction(wrong, len(content), {"k": "a b"}, 1, True)
        with pytest.raises(DataFileNotFoundError, match=r"no such file in the table"):
            create_table_with_add_actions(url, SCHEMA, [*actions, action], partition_by="k")
    create_table_with_add_actions(url, SCHEMA, actions, partition_by="k")
    assert DeltaTable(url).to_pyarrow_table().num_rows == count


@pytest.mark.parametrize("native", [True, False], ids=["encoded natively", "plain under the name deltalake"])
def test_a_removal_removes_the_file_that_it_names_or_is_refused(native: bool, tmp_path: pathlib.Path) -> None:
    create = create_table_with_add_actions if native else dropin.create_table_with_add_actions
    kind = DeltaTable if native else dropin.DeltaTable
    paths = hive_table(tmp_path, VALUES, create, encode=native)
    table = kind(tmp_path)
    schema: Any = table.schema()
    wrong = ["nope.parquet", "../victim.parquet", "k=a%2520b/f.parquet" if native else "k=a%20b%20/f.parquet"]
    for path in wrong[: 2 if native else 3]:
        with pytest.raises(ValueError, match="does not have this file"):
            table.create_write_transaction([RemoveAction(path)], "append", schema, ["k"])
    for n, path in enumerate(paths):
        given = quote(path, safe="/=") if native else path
        table.create_write_transaction([RemoveAction(given, deletion_timestamp=5)], "append", schema, ["k"])
        (remove,) = logged(tmp_path, n + 1)
        assert (remove["deletionTimestamp"], remove["partitionValues"]) == (5, {"k": VALUES[n]})
        with pytest.raises(ValueError, match="does not have this file"):
            table.create_write_transaction([RemoveAction(given)], "append", schema, ["k"])
    assert kind(tmp_path).count() == 0
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 0


def test_a_removal_of_a_file_with_deleted_rows_has_its_deletion_vector(tmp_path: pathlib.Path) -> None:
    rows = pa.table({"id": range(10)})
    write_deltalake(tmp_path, rows, configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(tmp_path)
    table.delete("id = 3")
    table.create_write_transaction([RemoveAction(table.files()[0])], "append", table.schema())
    assert DeltaTable(tmp_path).count() == 0
    assert logged(tmp_path, 2)[0]["deletionVector"]["cardinality"] == 1


def test_a_value_that_stands_for_null_in_folder_names_is_refused(tmp_path: pathlib.Path) -> None:
    size = data_file(tmp_path, "f.parquet", [1])
    action = AddAction("f.parquet", size, {"k": "__HIVE_DEFAULT_PARTITION__"}, 1, True)
    with pytest.raises(InvalidArgumentError, match="stands for null"):
        create_table_with_add_actions(tmp_path, SCHEMA, [action], partition_by="k")


@pytest.mark.parametrize(
    ("kind", "nullable", "value"),
    [
        (pa.int64(), True, "x"),
        (pa.date32(), True, "2024-13-01"),
        (pa.bool_(), True, "yes"),
        (pa.string(), False, None),
        (pa.string(), False, ""),
        (pa.int64(), False, None),
    ],
)
def test_a_partition_value_that_no_reader_could_read_is_refused(
    kind: pa.DataType, nullable: bool, value: str | None, tmp_path: pathlib.Path
) -> None:
    size = data_file(tmp_path, "f.parquet", [1])
    action = AddAction("f.parquet", size, {"k": value}, 1, True)
    schema = pa.schema([("id", pa.int64()), pa.field("k", kind, nullable=nullable)])
    with pytest.raises(InvalidArgumentError, match="partition value"):
        create_table_with_add_actions(tmp_path, schema, [action], partition_by="k")


def ray_style(create: Any, kinds: Any, root: pathlib.Path, rows: pa.Table) -> None:
    """Write as Ray Data's `write_delta` does: hive folders, paths relative to the table, then one transaction."""
    actions: list[Any] = []

    def visit(file: Any) -> None:
        path = os.path.relpath(file.path, root)
        # pyarrow encodes the value in the folder's name, so the path has `%` of its own.
        value = unquote(pathlib.PurePath(path).parts[0].partition("=")[2])
        actions.append(kinds.AddAction(path, file.size, {"k": value}, 1, True, '{"numRecords":1}'))

    written = pads.HivePartitioning(pa.schema([("k", pa.string())]))
    pads.write_dataset(rows, root, format="parquet", partitioning=written, file_visitor=visit)
    create(str(root), kinds.Schema.from_arrow(rows.schema), actions, mode="error", partition_by=["k"])


@pytest.mark.parametrize("name", ["deltalake", "deltafast"])
def test_writers_of_hive_folders_commit_files_that_every_reader_finds(name: str, tmp_path: pathlib.Path) -> None:
    values = [value for value in VALUES if "\\" not in value]
    rows = pa.table({"id": range(len(values)), "k": values})
    if name == "deltalake":
        ray_style(deltalake.transaction.create_table_with_add_actions, _Real, tmp_path, rows)
    else:
        ray_style(dropin.create_table_with_add_actions, _Ours, tmp_path, rows)
    expected = sorted(enumerate(values))
    assert answers(tmp_path) == dict.fromkeys(answers(tmp_path), expected)


class _Real:
    AddAction, Schema = deltalake.transaction.AddAction, deltalake.Schema


class _Ours:
    AddAction, Schema = AddAction, Schema


def test_a_program_under_the_name_deltalake_gets_encoded_paths(tmp_path: pathlib.Path) -> None:
    """Through the package of that name, including the inner table whose method libraries call."""
    data_file(tmp_path, "k=a b/f.parquet", [1])
    size = data_file(tmp_path, "k=c d/f.parquet", [2])
    program = f"""
import deltafast
deltafast.install_as_deltalake()
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
import pyarrow as pa
schema = Schema.from_arrow(pa.schema([("id", pa.int64()), ("k", pa.string())]))
action = lambda value: AddAction(f"k={{value}}/f.parquet", {size}, {{"k": value}}, 1, True, "")
create_table_with_add_actions({str(tmp_path)!r}, schema, [action("a b")], "error", ["k"])
table = DeltaTable({str(tmp_path)!r})
table._table.create_write_transaction([action("c d")], "append", ["k"], schema, None)
print(sorted(DeltaTable({str(tmp_path)!r}).to_pyarrow_table()["id"].to_pylist()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[1, 2]", "")
