"""What a vacuum, a conversion and the doctor leave alone."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake
from deltafast.doctor import examine
from deltafast.exceptions import CorruptLogError

if TYPE_CHECKING:
    import pathlib

pytestmark = pytest.mark.filterwarnings("ignore:.*deltafast makes no metadata")

FORMATS = "delta.universalFormat.enabledFormats"
UNIFORM = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name", FORMATS: "iceberg"}
#: Names of files in the metadata folder of an Iceberg table.
ICEBERG_FILES = ["v1.metadata.json", "snap-1-2-3.avro", "0b5c-m0.avro", "version-hint.text", "stats.puffin", "x/y.avro"]


def age(root: pathlib.Path) -> None:
    for file in root.rglob("*"):
        if file.is_file():
            age_file(file)


def age_file(file: pathlib.Path) -> None:
    timestamp = time.time() - 30 * 86_400
    os.utime(file, (timestamp, timestamp))


def put(root: pathlib.Path, names: list[str]) -> list[pathlib.Path]:
    paths = [root / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return paths


def vacuum(root: pathlib.Path) -> list[str]:
    return DeltaTable(root).vacuum(full=True, dry_run=False, retention_hours=0, enforce_retention_duration=False)


@pytest.mark.parametrize("state", ["on", "unset", "off in the history", "only the files"])
def test_the_metadata_of_iceberg_stay(tmp_path, state):
    root = tmp_path / "t"
    write_deltalake(root, {"id": [1]}, configuration={} if state == "only the files" else UNIFORM)
    if state in ("unset", "off in the history"):
        DeltaTable(root).alter.set_table_properties({FORMATS: ""})
    if state == "off in the history":
        DeltaTable(root).alter.set_table_properties({"delta.enableIcebergCompatV2": "false"})
    names = ICEBERG_FILES if state == "only the files" else ICEBERG_FILES[1:]
    metadata = put(root / "metadata", names)
    (orphan,) = put(root, ["orphan.parquet"])
    (nested,) = put(root, ["other/metadata/orphan.parquet"])
    age(root)
    findings = "".join(finding.message for finding in examine(str(root)))
    assert "orphan.parquet" in findings
    assert not any(f"metadata/{name}" in findings for name in names)
    listing = pa.table(
        {
            "path": [path.relative_to(root).as_posix() for path in (*metadata, orphan)],
            "length": [1] * (len(metadata) + 1),
            "isDir": [False] * (len(metadata) + 1),
            "modificationTime": [0] * len(metadata) + [1],
        }
    )
    assert DeltaTable(root).vacuum(inventory=listing) == ["orphan.parquet"]
    assert sorted(vacuum(root)) == ["orphan.parquet", "other/metadata/orphan.parquet"]
    assert all(path.exists() for path in metadata)
    assert not orphan.exists()
    assert not nested.exists()


def test_a_folder_called_metadata_of_a_table_without_iceberg_is_a_folder(tmp_path):
    root = tmp_path / "t"
    write_deltalake(root, {"id": [1]})
    put(root, ["metadata/orphan.parquet"])
    age(root)
    assert vacuum(root) == ["metadata/orphan.parquet"]


def test_a_conversion_leaves_the_metadata_of_iceberg_alone(tmp_path):
    root = tmp_path / "t"
    root.mkdir()
    pq.write_table(pa.table({"id": [1]}), root / "a.parquet")
    put(root / "metadata", ["v1.metadata.json", "snap-1.avro"])
    pq.write_table(pa.table({"file_path": ["s3://b/f"]}), root / "metadata" / "position-stats.parquet")
    convert_to_deltalake(root)
    assert DeltaTable(root).to_pyarrow_table().to_pylist() == [{"id": 1}]


SPELLINGS = [
    "{name}",
    "./{name}",
    "{root}/{name}",
    "file:{root}/{name}",
    "file://{root}/{name}",
    "a/../{name}",
    "{link}/{name}",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_live_file_stays_however_its_path_is_spelt(tmp_path, spelling):
    root = tmp_path / "t"
    write_deltalake(root, {"id": [1]})
    link = tmp_path / "link"
    link.symlink_to(root)
    commit = root / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    name = next(line["add"]["path"] for line in lines if "add" in line)
    for line in lines:
        if "add" in line:
            line["add"]["path"] = spelling.format(name=name, root=root, link=link)
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shutil.rmtree(root / "_delta_log" / "x", ignore_errors=True)
    put(root, ["orphan.parquet"])
    age(root)
    assert vacuum(root) == ["orphan.parquet"]
    assert (root / name).exists()


@pytest.mark.parametrize("path", ["%ff.parquet", "%00.parquet"])
def test_a_live_file_whose_path_cannot_be_decoded_stops_a_vacuum(tmp_path, path):
    root = tmp_path / "t"
    write_deltalake(root, {"id": [1]})
    add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    (root / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": add}) + "\n")
    put(root, ["orphan.parquet"])
    age(root)
    with pytest.raises(CorruptLogError):
        vacuum(root)
    assert (root / "orphan.parquet").exists()


def test_sql_and_the_api_keep_the_same(tmp_path):
    root = tmp_path / "t"
    write_deltalake(root, {"id": [1]}, configuration=UNIFORM)
    kept = put(root / "metadata", ICEBERG_FILES)
    age(root)
    deltafast.sql(f"VACUUM delta.`{root}` FULL")
    assert all(path.exists() for path in kept)


def vacuumed(root: pathlib.Path, way: str, hours: int) -> list[str]:
    """The files that a vacuum of a retention deletes."""
    if way == "sql":
        before = {file.name for file in root.rglob("*.parquet")}
        deltafast.sql(f"VACUUM delta.`{root}` RETAIN {hours} HOURS")
        return sorted(before - {file.name for file in root.rglob("*.parquet")})
    arguments = {"inventory": inventory(root)} if way == "inventory" else {"full": way == "full"}
    return DeltaTable(root).vacuum(hours, dry_run=False, **arguments)


def inventory(root: pathlib.Path) -> pa.Table:
    files = [file for file in root.rglob("*.parquet") if "_delta_log" not in file.parts]
    columns = {
        "path": [str(file.relative_to(root)) for file in files],
        "length": [file.stat().st_size for file in files],
        "isDir": [False] * len(files),
        "modificationTime": [int(file.stat().st_mtime * 1000) for file in files],
    }
    return pa.table(columns)


@pytest.mark.parametrize("way", ["full", "lite", "inventory", "sql"])
@pytest.mark.parametrize("vectors", [False, True])
def test_a_longer_retention_than_the_tables_keeps_what_checkpoints_have_forgotten(tmp_path, way, vectors):
    settings = {"delta.deletedFileRetentionDuration": "interval 1 second"}
    if vectors:
        settings["delta.enableDeletionVectors"] = "true"
    write_deltalake(tmp_path, {"id": [1, 2, 3]}, configuration=settings)
    table = DeltaTable(tmp_path)
    table.delete("id = 2")
    write_deltalake(table, {"id": [4]}, mode="overwrite")
    time.sleep(1.1)
    DeltaTable(tmp_path).create_checkpoint()
    for file in tmp_path.glob("*"):
        if file.is_file():
            age_file(file)
    put(tmp_path, ["orphan.parquet"])
    age_file(tmp_path / "orphan.parquet")
    vacuumed(tmp_path, way, 48)
    assert DeltaTable(tmp_path, version=1).to_pyarrow_table()["id"].to_pylist() == [1, 3]
    assert (tmp_path / "orphan.parquet").exists() == (way == "lite")
    vacuumed(tmp_path, way, 1)
    assert DeltaTable(tmp_path, version=1).to_pyarrow_table()["id"].to_pylist() == [1, 3]
