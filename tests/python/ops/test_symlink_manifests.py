"""Symlink manifests that follow every commit (`delta.compatibility.symlinkFormatManifest.enabled`)."""

from __future__ import annotations

import concurrent.futures
import pathlib
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake
from deltafast.exceptions import DeltaWarning

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"


def listed(root: pathlib.Path) -> dict[str, list[str]]:
    """The data files that each manifest names, by the partition's folder."""
    folder = root / "_symlink_format_manifest"
    return {
        found.parent.relative_to(folder).as_posix(): sorted(
            line.removeprefix("file://") for line in found.read_text().splitlines()
        )
        for found in folder.rglob("manifest")
    }


def live(table: DeltaTable) -> dict[str, list[str]]:
    """The live files by the folder that their manifest is in."""
    out: dict[str, list[str]] = {} if table.metadata().partition_columns else {".": []}
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    for action in actions:
        folder = "/".join(
            f"{name}={'__HIVE_DEFAULT_PARTITION__' if value is None else value}"
            for name, value in ((name, action[f"partition.{name}"]) for name in table.metadata().partition_columns)
        )
        out.setdefault(folder or ".", []).append(
            f"{table.table_uri.removeprefix('file://').rstrip('/')}/{action['path']}"
        )
    return {folder: sorted(files) for folder, files in out.items()}


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_every_command_leaves_manifests_of_the_live_files(
    tmp_path: pathlib.Path, partition_by: list[str] | None
) -> None:
    root = tmp_path / "t"
    data = pa.table({"id": range(6), "p": ["a", "a", "b", "b", None, "c"]})
    write_deltalake(str(root), data, partition_by=partition_by, configuration={MANIFESTS: "true"})
    table = DeltaTable(str(root))
    commands: list[Callable[[], object]] = [
        lambda: write_deltalake(table, data, mode="append"),
        lambda: table.delete("p = 'b'"),
        lambda: table.update({"id": "id + 10"}, predicate="p = 'a'"),
        lambda: table.merge(data.slice(0, 2), "t.id = s.id", "s", "t").when_not_matched_insert_all().execute(),
        table.optimize.compact,
        lambda: write_deltalake(table, data.slice(3), mode="overwrite", predicate="p IS NULL OR p <> 'a'"),
        lambda: table.restore(1),
        lambda: write_deltalake(table, data.slice(5), mode="overwrite"),
        lambda: table.vacuum(0, dry_run=False, enforce_retention_duration=False),
    ]
    assert listed(root) == live(table)
    for command in commands:
        before = table.version()
        command()
        table.update_incremental()
        assert listed(root) == live(table), (before, table.version())
    assert all(pathlib.Path(file).exists() for files in listed(root).values() for file in files)


def test_setting_the_property_writes_the_manifests(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "t"
    write_deltalake(str(root), pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    table = DeltaTable(str(root))
    assert not (root / "_symlink_format_manifest").exists()
    table.alter.set_table_properties({MANIFESTS: "true"})
    assert listed(root) == live(table) != {}


def test_only_manifests_of_changed_partitions_are_written(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "t"
    data = pa.table({"id": [1, 2], "p": ["a", "b"]})
    write_deltalake(str(root), data, partition_by=["p"], configuration={MANIFESTS: "true"})
    untouched = root / "_symlink_format_manifest/p=a/manifest"
    untouched.write_text("kept")
    write_deltalake(str(root), data.slice(1), mode="append")
    assert untouched.read_text() == "kept"
    assert len((root / "_symlink_format_manifest/p=b/manifest").read_text().splitlines()) == 2


def test_writers_at_once_leave_the_manifest_of_the_newest_version(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "t"
    data = pa.table({"id": [1]})
    write_deltalake(str(root), data, configuration={MANIFESTS: "true"})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(write_deltalake, str(root), data, mode="append") for _ in range(24)]
        for job in jobs:
            job.result()
    table = DeltaTable(str(root))
    assert table.version() == 24
    assert listed(root) == live(table)


def test_a_manifest_that_cannot_be_written_is_a_warning(tmp_path: pathlib.Path) -> None:
    root = tmp_path / "t"
    data = pa.table({"id": [1]})
    write_deltalake(str(root), data, configuration={MANIFESTS: "true"})
    shutil.rmtree(root / "_symlink_format_manifest")
    (root / "_symlink_format_manifest").write_text("in the way")
    with pytest.warns(DeltaWarning, match=r"version 1 is committed.*manifests are out of date.*generate"):
        write_deltalake(str(root), data, mode="append")
    assert DeltaTable(str(root)).version() == 1


def test_deletion_vectors_and_manifests_are_not_both_enabled(tmp_path: pathlib.Path) -> None:
    vectors = "delta.enableDeletionVectors"
    with pytest.raises(ValueError, match="cannot both be true"):
        write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}), configuration={MANIFESTS: "true", vectors: "true"})
    for first, second in ((vectors, MANIFESTS), (MANIFESTS, vectors)):
        root = tmp_path / first
        write_deltalake(str(root), pa.table({"id": [1]}), configuration={first: "true"})
        with pytest.raises(ValueError, match="cannot both be true"):
            DeltaTable(str(root)).alter.set_table_properties({second: "true"})
