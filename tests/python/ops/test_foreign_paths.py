"""Paths of the log that a read refuses: no operation turns them into paths that can be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import DeltaError, StorageError

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
SPELLINGS = [
    "../victim/v.parquet",
    "%2e%2e/victim/v.parquet",
    "%2E%2E%2Fvictim%2Fv.parquet",
    "a/../../victim/v.parquet",
    "./../victim/v.parquet",
    "a/%2e%2e/..//../t/../victim/v.parquet",
    "s3://bucket/v.parquet",
    "http://host/v.parquet",
]
#: What gives paths to others, or reads by them.
OPERATIONS: dict[str, Callable[[DeltaTable, pathlib.Path], object]] = {
    "read": lambda table, _: table.to_pyarrow_table(),
    "clone": lambda table, other: table.clone(other),
    "generate": lambda table, _: table.generate(),
    "file_uris": lambda table, _: table.file_uris(),
    "files of a dataset": lambda table, _: table.to_pyarrow_dataset().files,
    "rows of a dataset": lambda table, _: table.to_pyarrow_dataset().to_table(),
    "polars": lambda table, _: table.scan_polars().collect(),
    "optimize": lambda table, _: table.optimize.compact(),
    "update": lambda table, _: table.update({"id": "id + 1"}),
    "deletion vectors": lambda table, _: table.deletion_vectors().read_all(),
}


def with_file(root: pathlib.Path, path: str, **fields: object) -> DeltaTable:
    """A table whose second version adds a file at this path of the log."""
    (root.parent / "victim").mkdir(exist_ok=True)
    victim = root.parent / "victim" / "v.parquet"
    pq.write_table(pa.table({"id": [666]}), victim)
    write_deltalake(root, pa.table({"id": [1]}), configuration={"delta.enableDeletionVectors": "true"})
    add = {
        "path": path,
        "partitionValues": {},
        "size": victim.stat().st_size,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":1}',
        **fields,
    }
    (root / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}) + "\n")
    return DeltaTable(root)


@pytest.mark.parametrize("path", SPELLINGS)
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "deletion vectors"])
def test_no_operation_passes_on_a_path_that_a_read_refuses(name: str, path: str, tmp_path: pathlib.Path) -> None:
    table = with_file(tmp_path / "t", path)
    with pytest.raises((StorageError, pa.ArrowInvalid), match="refused to open"):
        OPERATIONS[name](table, tmp_path / "other")
    assert not (tmp_path / "other" / "_delta_log").exists()
    assert not (tmp_path / "t" / "_symlink_format_manifest" / "manifest").exists()


@pytest.mark.parametrize("path", ["ab^-aqEH.-t@S}K{vb[*k^", "../victim/ab^-aqEH.-t@S}K{vb[*k^"])
@pytest.mark.parametrize("kind", ["u", "p"])
def test_no_clone_passes_on_a_deletion_vector_that_a_read_refuses(kind: str, path: str, tmp_path: pathlib.Path) -> None:
    place = path if kind == "u" else "../victim/" + path
    vector = {"storageType": kind, "pathOrInlineDv": place, "offset": 1, "sizeInBytes": 36, "cardinality": 1}
    table = with_file(tmp_path / "t", "../t/v.parquet" if kind == "u" else "v.parquet", deletionVector=vector)
    with pytest.raises(DeltaError):
        table.clone(tmp_path / "other")
    assert not (tmp_path / "other" / "_delta_log").exists()


@pytest.mark.parametrize("end", ["%0A", "%0D", "%0d%0a", "\n", "\r"])
@pytest.mark.parametrize("update", ["generate", "a commit"])
def test_a_path_with_a_line_end_is_no_line_of_a_manifest(end: str, update: str, tmp_path: pathlib.Path) -> None:
    root = tmp_path / "t"
    file = f"x{end}file:///etc/passwd".replace("/", "_")
    table = with_file(root, file)
    if update == "generate":
        with pytest.raises(DeltaError, match="line end"):
            table.generate()
    else:
        # A commit stays valid without its manifests.
        with pytest.warns(match="line end"):
            table.alter.set_table_properties({MANIFESTS: "true", "delta.enableDeletionVectors": "false"})
    assert not (root / "_symlink_format_manifest" / "manifest").exists()


def test_files_of_a_clone_can_be_cloned_again(tmp_path: pathlib.Path) -> None:
    write_deltalake(tmp_path / "my table", pa.table({"id": [1, 2]}))
    DeltaTable(tmp_path / "my table").clone(tmp_path / "b")
    DeltaTable(tmp_path / "b").clone(tmp_path / "c")
    clone = DeltaTable(tmp_path / "c")
    assert clone.count() == 2
    assert pq.read_table(clone.file_uris()[0]).num_rows == 2
    clone.generate()
    assert (tmp_path / "c" / "_symlink_format_manifest" / "manifest").read_text().count("\n") == 1
