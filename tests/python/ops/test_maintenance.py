"""Vacuum, restore, repair, manifests, shallow clones and conversion, read back by `deltalake`."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import time
import uuid
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import DeltaTable, convert_to_deltalake, write_deltalake
from deltafast.exceptions import (
    DataFileNotFoundError,
    DeltaProtocolError,
    InvalidArgumentError,
    SchemaMismatchError,
)
from tablekit import dv, log

deltalake = pytest.importorskip("deltalake")
HOUR = 3600


def ids(table: Any) -> list[int]:
    """Return the sorted `id`s of a table, by deltafast and by deltalake alike."""
    path = str(getattr(table, "folder", table))
    ours = sorted(DeltaTable(path).to_pyarrow_table().column("id").to_pylist())
    theirs = pa.table(deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path)).execute("select id from t"))
    assert sorted(theirs.column("id").to_pylist()) == ours
    return ours


def write(path: pathlib.Path, values: list[int], part: str | None = None, **options: Any) -> None:
    """Write rows with deltalake."""
    columns: dict[str, Any] = {"id": pa.array(values, pa.int64())}
    if part is not None:
        columns["p"] = [part] * len(values)
        options["partition_by"] = ["p"]
    deltalake.write_deltalake(str(path), pa.table(columns), **options)


def age(root: pathlib.Path, hours: float, pattern: str = "**/*") -> None:
    """Make the files of a table that match older."""
    timestamp = time.time() - hours * HOUR
    for path in root.glob(pattern):
        if path.is_file() and "_delta_log" not in path.parts:
            os.utime(path, (timestamp, timestamp))


def data_files(root: pathlib.Path) -> set[str]:
    """Return all files beside the log."""
    found = (p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() or p.is_symlink())
    return {name for name in found if not name.startswith("_delta_log")}


def actions(root: pathlib.Path, version: int) -> list[dict[str, Any]]:
    """Return the actions of a commit."""
    return [json.loads(line) for line in (root / f"_delta_log/{version:020}.json").read_text().splitlines()]


def info(root: pathlib.Path, version: int) -> dict[str, Any]:
    """Return the commitInfo of a commit."""
    return next(action["commitInfo"] for action in actions(root, version) if "commitInfo" in action)


@pytest.fixture
def overwritten(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a table whose first file was replaced by another."""
    root = tmp_path / "t"
    write(root, [1, 2])
    write(root, [3], mode="overwrite")
    return root


class Victims:
    """A table, files around it that a vacuum must not touch, and actions that lead to them."""

    def __init__(self, place: pathlib.Path) -> None:
        self.root = place / "t"
        self.table = log.basic(self.root)
        self.identifier = uuid.uuid4()
        name = dv.file_name(self.identifier)
        (place / "victim").mkdir()
        (place / "victim" / "deep").mkdir()
        self.files = [
            place / "victim" / name,
            place / "victim" / "deep" / name,
            place / name,
            place / "victim" / "x.parquet",
        ]
        for path in self.files:
            path.write_bytes(b"precious")
            os.utime(path, (1, 1))
        (self.root / "link").symlink_to("../victim")
        (self.root / "own").mkdir()
        (self.root / "own" / "link").symlink_to(place / "victim" / "deep")
        # What is the table's own goes, so that the vacuum does something.
        (self.root / "old.parquet").write_bytes(b"PAR1")
        os.utime(self.root / "old.parquet", (1, 1))

    def vector(self, prefix: str, storage: str = "u") -> dict[str, Any]:
        """Return an action that ends a file with a vector elsewhere."""
        path = dv.relative(self.identifier, prefix) if storage == "u" else f"{prefix}/{dv.file_name(self.identifier)}"
        body = {"storageType": storage, "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 40, "cardinality": 1}
        return log.remove("old.parquet", deletionTimestamp=1, deletionVector=body)

    def actions(self) -> list[dict[str, Any]]:
        """Return every way out."""
        place = self.root.parent
        prefixes = [
            "../victim",
            "a/../../victim",
            "..",
            "link",
            "./link",
            "own/link",
            "own/../link/deep",
            str(place / "victim"),
        ]
        prefixes += ["%2e%2e/victim", "..//victim//deep", f"../{self.root.name}/link", "link/."]
        out = [self.vector(prefix) for prefix in prefixes]
        out += [
            self.vector(prefix, "p") for prefix in ["../victim", str(place / "victim"), (place / "victim").as_uri()]
        ]
        paths = [
            "../victim/x.parquet",
            "%2e%2e/victim/x.parquet",
            "..%2Fvictim%2Fx.parquet",
            "a/../../victim/x.parquet",
            "link/x.parquet",
            "own/../link/x.parquet",
            str(place / "victim" / "x.parquet"),
            (place / "victim" / "x.parquet").as_uri(),
            str(self.root / "link" / "x.parquet"),
            f"../{self.root.name}/../victim/x.parquet",
        ]
        out += [log.remove(path, deletionTimestamp=1) for path in paths]
        out += [{"cdc": {"path": path, "partitionValues": {}, "size": 8, "dataChange": False}} for path in paths]
        return [*out, log.remove("old.parquet", deletionTimestamp=1)]

    def check(self) -> None:
        """Nothing around the table is gone."""
        assert [path.read_bytes() for path in self.files] == [b"precious"] * len(self.files)
        assert (self.root / "link").is_symlink()
        assert (self.root / "own" / "link").is_symlink()
        assert len(list(self.root.glob("part-*.parquet"))) == 3


@pytest.fixture
def victims(tmp_path: pathlib.Path) -> Victims:
    """Return a table that is made to reach out of its folder."""
    made = Victims(tmp_path)
    made.table.commit(3, *made.actions())
    return made


class TestDeletionsStayInside:
    @pytest.mark.parametrize("full", [False, True])
    @pytest.mark.parametrize("foreign", [False, True])
    @pytest.mark.parametrize("kind", ["path", "fsspec", "pyarrow", "link"])
    def test_a_vacuum_deletes_nothing_outside_of_the_table(
        self, victims: Victims, full: bool, foreign: bool, kind: str
    ) -> None:
        place, store = victims.root, None
        if kind == "fsspec":
            store = fsspec.filesystem("file")
        elif kind == "pyarrow":
            store = pyarrow.fs.LocalFileSystem()
        elif kind == "link":
            # The table itself may be reached by a link.
            place = victims.root.parent / "to-table"
            place.symlink_to("t")
        table = DeltaTable(str(place), store=store, allow_external_paths=foreign)
        planned = table.vacuum(0, enforce_retention_duration=False, full=full)
        assert planned == ["old.parquet"]
        assert table.vacuum(0, False, False, full=full) == planned
        victims.check()
        assert not (victims.root / "old.parquet").exists()

    def test_an_inventory_leads_nowhere_else(self, victims: Victims) -> None:
        paths = [
            "old.parquet",
            "../victim/x.parquet",
            "link/x.parquet",
            "own/link/" + victims.files[1].name,
            "part-0.parquet",
        ]
        paths += [str(victims.files[3]), "a/../../victim/x.parquet", victims.files[3].as_uri()]
        inventory = pa.table(
            {
                "path": paths,
                "length": [8] * len(paths),
                "isDir": [False] * len(paths),
                "modificationTime": [1] * len(paths),
            }
        )
        table = DeltaTable(str(victims.root), allow_external_paths=True)
        assert table.vacuum(0, enforce_retention_duration=False, inventory=inventory) == ["old.parquet"]
        assert table.vacuum(0, False, False, inventory=inventory) == ["old.parquet"]
        victims.check()

    def test_a_linked_log_is_not_cleaned_up(self, tmp_path: pathlib.Path) -> None:
        root, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
        log.basic(root, versions=4)
        DeltaTable(str(root)).create_checkpoint()
        for file in (root / "_delta_log").iterdir():
            os.utime(file, (1, 1))
        copied = shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copy2)
        assert len(DeltaTable(str(copied)).cleanup_metadata(retention=timedelta(0), dry_run=True)) >= 3
        (root / "_delta_log").rename(elsewhere)
        (root / "_delta_log").symlink_to(elsewhere)
        before = sorted(elsewhere.iterdir())
        table = DeltaTable(str(root))
        assert table.cleanup_metadata(retention=timedelta(0), dry_run=True) == []
        assert table.cleanup_metadata(retention=timedelta(0)) == []
        assert sorted(elsewhere.iterdir()) == before

    def test_linked_manifests_stay(self, tmp_path: pathlib.Path) -> None:
        root, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
        write(root, [1], "a")
        elsewhere.mkdir()
        (elsewhere / "p=gone").mkdir()
        (elsewhere / "p=gone" / "manifest").write_text("precious")
        (root / "_symlink_format_manifest").symlink_to(elsewhere)
        DeltaTable(str(root)).generate()
        assert (elsewhere / "p=gone" / "manifest").read_text() == "precious"

    def test_a_file_system_of_a_table_deletes_below_it_alone(self, victims: Victims) -> None:
        files = deltafast._core.Files.open(str(victims.root))
        for path in ["../victim/x.parquet", "link/x.parquet", str(victims.files[3]), "a/../../victim/x.parquet"]:
            with pytest.raises(deltafast.StorageError, match=r"is not inside|is a link"):
                files.delete(["old.parquet", path])
        victims.check()
        assert not (victims.root / "old.parquet").exists()


class TestVacuum:
    @pytest.mark.parametrize("full", [False, True])
    def test_removed_files_go_when_the_retention_is_over(self, overwritten: pathlib.Path, full: bool) -> None:
        before = data_files(overwritten)
        table = DeltaTable(str(overwritten))
        assert table.vacuum(full=full) == []
        age(overwritten, 200)
        planned = table.vacuum(0, enforce_retention_duration=False, full=full)
        assert len(planned) == 1
        assert data_files(overwritten) == before
        assert table.version() == 1
        assert table.vacuum(0, False, False, full=full) == planned
        assert data_files(overwritten) == before - set(planned)
        assert table.version() == 3
        assert ids(overwritten) == [3]
        assert table.vacuum(0, False, False, full=full) == []

    @pytest.mark.parametrize("timestamp", [-86400, 0])
    def test_files_of_the_first_days_are_old(self, overwritten: pathlib.Path, timestamp: int) -> None:
        (overwritten / "orphan.parquet").write_bytes(b"PAR1")
        os.utime(overwritten / "orphan.parquet", (timestamp, timestamp))
        assert DeltaTable(str(overwritten)).vacuum(full=True) == ["orphan.parquet"]

    def test_the_commits_say_what_delta_spark_says(self, overwritten: pathlib.Path) -> None:
        age(overwritten, 200)
        properties = SimpleNamespace(
            custom_metadata={"who": "me", "userMetadata": "text"},
            max_commit_retries=3,
            app_transactions=[SimpleNamespace(app_id="app", version=7, last_updated=None)],
        )
        table = DeltaTable(str(overwritten))
        table.vacuum(0, False, False, commit_properties=properties)
        start, end = info(overwritten, 2), info(overwritten, 3)
        assert start["operation"] == "VACUUM START"
        week = 7 * 24 * HOUR * 1000
        assert start["operationParameters"] == {
            "retentionCheckEnabled": False,
            "defaultRetentionMillis": week,
            "specifiedRetentionMillis": 0,
        }
        assert start["operationMetrics"]["numFilesToDelete"] == "1"
        assert int(start["operationMetrics"]["sizeOfDataToDelete"]) > 0
        assert (start["who"], start["userMetadata"]) == ("me", "text")
        assert (end["operation"], end["operationParameters"]) == ("VACUUM END", {"status": "COMPLETED"})
        assert end["operationMetrics"] == {"numDeletedFiles": "1", "numVacuumedDirectories": "1"}
        assert table.transaction_version("app") == 7

    def test_a_checkpoint_follows_when_it_is_due(self, tmp_path: pathlib.Path) -> None:
        for n, hooks in enumerate((None, SimpleNamespace(create_checkpoint=False, cleanup_expired_logs=None))):
            root = tmp_path / f"t{n}"
            for value in range(9):
                write(root, [value], mode="overwrite")
            age(root, 200)
            table = DeltaTable(str(root))
            table.vacuum(0, False, False, post_commithook_properties=hooks)
            assert table.version() == 10
            assert (root / f"_delta_log/{10:020}.checkpoint.parquet").exists() == (hooks is None)
            assert ids(root) == [8]

    def test_a_short_retention_is_refused(self, overwritten: pathlib.Path) -> None:
        table = DeltaTable(str(overwritten))
        with pytest.raises(InvalidArgumentError, match=r"24 hours is shorter than the table's 168") as refused:
            table.vacuum(24)
        assert str(refused.value).endswith("; set enforce_retention_duration=False if there are none")
        with pytest.raises(InvalidArgumentError, match="negative"):
            table.vacuum(-1, enforce_retention_duration=False)

    def test_only_files_that_the_log_does_not_name_need_the_full_look(self, overwritten: pathlib.Path) -> None:
        (overwritten / "stray.parquet").write_bytes(b"x")
        (overwritten / "p=1").mkdir()
        (overwritten / "p=1/part.parquet.00aa.tmp").write_bytes(b"x")
        age(overwritten, 200)
        table = DeltaTable(str(overwritten))
        lite = table.vacuum(0, enforce_retention_duration=False)
        assert set(table.vacuum(0, enforce_retention_duration=False, full=True)) - set(lite) == {
            "stray.parquet",
            "p=1/part.parquet.00aa.tmp",
        }

    def test_young_files_stay_whatever_they_are(self, overwritten: pathlib.Path) -> None:
        (overwritten / "young.parquet").write_bytes(b"x")
        age(overwritten, 200, "part-*")
        assert "young.parquet" not in DeltaTable(str(overwritten)).vacuum(
            1, enforce_retention_duration=False, full=True
        )

    def test_hidden_things_and_other_tables_stay(self, overwritten: pathlib.Path) -> None:
        for folder in ("_hidden/a", ".git", "_p=1", "_change_data", "inner"):
            (overwritten / folder).mkdir(parents=True)
            (overwritten / folder / "x.parquet").write_bytes(b"x")
        unfinished = ".deletion_vector_0e7a.bin.1c2d.tmp"
        for name in (".file", "_file", ".x.tmp", unfinished):
            (overwritten / name).write_bytes(b"x")
        write(overwritten / "inner/table", [1])
        age(overwritten, 200)
        planned = DeltaTable(str(overwritten)).vacuum(0, enforce_retention_duration=False, full=True)
        assert [name for name in planned if not name.startswith("part-")] == [
            unfinished,
            "_change_data/x.parquet",
            "inner/x.parquet",
        ]

    def test_partition_columns_may_begin_with_an_underscore(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        table = pa.table({"id": pa.array([1], pa.int64()), "_p": ["a"]})
        deltalake.write_deltalake(str(root), table, partition_by=["_p"])
        deltalake.write_deltalake(str(root), table, mode="overwrite")
        age(root, 200)
        planned = DeltaTable(str(root)).vacuum(0, enforce_retention_duration=False, full=True)
        assert len(planned) == 1
        assert planned[0].startswith("_p=a/")

    def test_links_are_not_followed(self, overwritten: pathlib.Path, tmp_path: pathlib.Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "x.parquet").write_bytes(b"x")
        (overwritten / "link").symlink_to(outside)
        (overwritten / "one.parquet").symlink_to(outside / "x.parquet")
        age(overwritten, 200)
        old = time.time() - 200 * HOUR
        for name in ("one.parquet", "link"):
            os.utime(overwritten / name, (old, old), follow_symlinks=False)
        table = DeltaTable(str(overwritten))
        gone = table.vacuum(0, False, False, full=True)
        assert "one.parquet" in gone
        assert not any(name.startswith("link") for name in gone)
        assert (outside / "x.parquet").exists()

    @pytest.mark.parametrize("spelling", ["{root}/{path}", "file://{root}/{path}", "file:{root}/./{path}"])
    def test_a_live_file_that_is_named_by_an_absolute_path_stays(
        self, overwritten: pathlib.Path, spelling: str
    ) -> None:
        live = next(a["add"] for a in actions(overwritten, 1) if "add" in a)
        lines = [{"remove": {"path": live["path"], "deletionTimestamp": 1, "dataChange": False}}]
        lines.append({"add": {**live, "path": spelling.format(root=overwritten, path=live["path"])}})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (overwritten / f"_delta_log/{2:020}.json").write_text(text)
        age(overwritten, 200)
        for full in (False, True):
            planned = DeltaTable(str(overwritten)).vacuum(0, enforce_retention_duration=False, full=full)
            assert len(planned) == 1, full
            assert planned != [live["path"]]
        DeltaTable(str(overwritten)).vacuum(0, False, False, full=True)
        assert DeltaTable(str(overwritten)).to_pyarrow_table().column("id").to_pylist() == [3]

    def test_versions_that_are_kept_stay_readable(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        for n in range(4):
            write(root, [n], mode="overwrite")
        age(root, 200)
        table = DeltaTable(str(root))
        for full in (False, True):
            assert len(table.vacuum(0, enforce_retention_duration=False, keep_versions=[1], full=full)) == 2
        table.vacuum(0, False, False, keep_versions=[1])
        assert DeltaTable(str(root), version=1).to_pyarrow_table().column("id").to_pylist() == [1]
        assert ids(root) == [3]

    @pytest.mark.parametrize("full", [False, True])
    def test_vectors_of_live_files_stay_and_others_go(self, tmp_path: pathlib.Path, full: bool) -> None:
        table = log.Table(tmp_path / "t")
        add = table.ids("a.parquet", 0, 10)["add"]
        old, new = table.vector([1]), table.vector([1, 2])
        protocol = log.protocol(features=["deletionVectors"])
        table.commit(0, protocol, log.metadata(), {"add": {**add, "deletionVector": old}})
        removed = {"path": "a.parquet", "deletionTimestamp": 1, "dataChange": True, "deletionVector": old}
        table.commit(1, {"remove": removed}, {"add": {**add, "deletionVector": new}})
        age(table.folder, 200)
        gone = DeltaTable(str(table.folder)).vacuum(0, False, False, full=full)
        assert len(gone) == 1
        assert gone[0].endswith(".bin")
        assert DeltaTable(str(table.folder)).count() == 8
        assert DeltaTable(str(table.folder)).to_pyarrow_table().num_rows == 8

    def test_changes_go_with_their_time(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        write(root, [1, 2, 3], configuration={"delta.enableChangeDataFeed": "true"})
        deltalake.DeltaTable(str(root)).update(updates={"id": "id + 10"}, predicate="id = 1")
        assert any(name.startswith("_change_data/") for name in data_files(root))
        assert DeltaTable(str(root)).vacuum(1, enforce_retention_duration=False, full=True) == []
        age(root, 200)
        for full in (False, True):
            planned = DeltaTable(str(root)).vacuum(0, enforce_retention_duration=False, full=full)
            assert sum(name.startswith("_change_data/") for name in planned) == 1
            kept = DeltaTable(str(root)).vacuum(0, enforce_retention_duration=False, full=full, keep_versions=[0, 1])
            assert kept == []

    def test_an_inventory_stands_for_the_listing(self, overwritten: pathlib.Path) -> None:
        (overwritten / "stray.parquet").write_bytes(b"x")
        (overwritten / "unlisted.parquet").write_bytes(b"x")
        age(overwritten, 200)
        old = int((time.time() - 200 * HOUR) * 1000)
        names = [*data_files(overwritten) - {"unlisted.parquet"}]
        rows = [(name, 1, False, old) for name in names] + [(f"file://{overwritten}/stray.parquet", 1, False, old)]
        rows += [("folder", 0, True, old), ("/elsewhere/x.parquet", 1, False, old)]
        columns = ["path", "length", "isDir", "modificationTime"]
        inventory = pa.table({name: [row[n] for row in rows] for n, name in enumerate(columns)})
        table = DeltaTable(str(overwritten))
        planned = table.vacuum(0, enforce_retention_duration=False, inventory=inventory)
        assert "stray.parquet" in planned
        assert len(planned) == 2
        stamps = inventory.set_column(3, "modificationTime", inventory.column(3).cast(pa.timestamp("ms")))
        assert table.vacuum(0, enforce_retention_duration=False, inventory=stamps) == planned
        with pytest.raises(InvalidArgumentError, match="no column `length`"):
            table.vacuum(inventory=inventory.drop_columns(["length"]))

    def test_unknown_writer_features_stop_it_even_when_dry(self, tmp_path: pathlib.Path) -> None:
        table = log.basic(tmp_path / "t", 2)
        features = log.protocol(writer_only=["someFutureFeature"])
        table.commit(0, features, log.metadata(), table.actions(0, 0)[-1])
        with pytest.raises(DeltaProtocolError, match="someFutureFeature"):
            DeltaTable(str(table.folder)).vacuum()

    def test_the_oldest_tombstones_are_found_after_a_checkpoint_forgot_them(self, overwritten: pathlib.Path) -> None:
        remove = actions(overwritten, 1)
        for action in remove:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = 1
        text = "".join(json.dumps(action) + "\n" for action in remove)
        (overwritten / f"_delta_log/{1:020}.json").write_text(text)
        age(overwritten, 200)
        table = DeltaTable(str(overwritten))
        table.create_checkpoint()
        assert len(DeltaTable(str(overwritten)).vacuum()) == 1


class TestRestore:
    def test_an_older_version_comes_back(self, overwritten: pathlib.Path) -> None:
        write(overwritten, [4], mode="append")
        table = DeltaTable(str(overwritten))
        metrics = table.restore(0)
        assert (metrics["num_restored_file"], metrics["num_removed_file"]) == (1, 2)
        assert (metrics["num_of_files_after_restore"], table.version()) == (1, 3)
        assert ids(overwritten) == [1, 2]
        commit = info(overwritten, 3)
        assert (commit["operation"], commit["operationParameters"]) == ("RESTORE", {"version": 0})
        assert commit["operationMetrics"]["numRestoredFiles"] == "1"
        assert commit["operationMetrics"]["numRemovedFiles"] == "2"
        assert all(a["add"]["dataChange"] for a in actions(overwritten, 3) if "add" in a)
        table.restore(2)
        assert ids(overwritten) == [3, 4]

    def test_a_timestamp_is_a_version(self, overwritten: pathlib.Path) -> None:
        for version, day in ((0, 1), (1, 2)):
            timestamp = datetime(2026, 1, day, tzinfo=UTC).timestamp()
            os.utime(overwritten / f"_delta_log/{version:020}.json", (timestamp, timestamp))
        DeltaTable(str(overwritten)).restore("2026-01-01T12:00:00Z")
        assert ids(overwritten) == [1, 2]
        DeltaTable(str(overwritten)).restore(datetime(2026, 1, 2, 1, tzinfo=UTC))
        assert ids(overwritten) == [3]

    def test_a_timestamp_that_has_not_come_is_refused(self, overwritten: pathlib.Path) -> None:
        newest = datetime(2026, 1, 3, tzinfo=UTC)
        for version in range(2):
            seconds = newest.timestamp() - 86400 * (1 - version)
            os.utime(overwritten / f"_delta_log/{version:020}.json", (seconds, seconds))
        table = DeltaTable(str(overwritten))
        for later in ("2099-01-01T00:00:00Z", newest + timedelta(milliseconds=1)):
            with pytest.raises(InvalidArgumentError, match=r"cannot be restored to .*: its newest version 1 is of"):
                table.restore(later)
        assert DeltaTable(str(overwritten)).version() == 1
        table.restore(newest)
        assert ids(overwritten) == [3]

    def test_schema_and_properties_come_back_and_the_protocol_does_not(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        write(root, [1], configuration={"delta.logRetentionDuration": "interval 40 days"})
        deltalake.DeltaTable(str(root)).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
        rows = pa.table({"id": pa.array([2], pa.int64()), "extra": ["x"]})
        deltalake.write_deltalake(str(root), rows, mode="append", schema_mode="merge")
        table = DeltaTable(str(root))
        before = table.protocol()
        assert before.min_writer_version >= 4
        table.restore(0)
        assert [field.name for field in table.schema().fields] == ["id"]
        assert table.metadata().configuration == {"delta.logRetentionDuration": "interval 40 days"}
        assert table.protocol() == before
        assert ids(root) == [1]
        table.restore(0, protocol_downgrade_allowed=True)
        assert table.protocol().min_writer_version < before.min_writer_version
        assert ids(root) == [1]

    def test_missing_files_are_an_error_unless_they_may_be_missing(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        write(root, [1])
        write(root, [2], mode="append")
        write(root, [3], mode="overwrite")
        first = next(a["add"]["path"] for a in actions(root, 0) if "add" in a)
        (root / first).unlink()
        table = DeltaTable(str(root))
        with pytest.raises(DataFileNotFoundError, match="ignore_missing_files"):
            table.restore(1)
        assert (table.version(), ids(root)) == (2, [3])
        assert table.restore(1, ignore_missing_files=True)["num_restored_file"] == 1
        assert ids(root) == [2]

    def test_what_is_no_version_is_refused(self, overwritten: pathlib.Path) -> None:
        table = DeltaTable(str(overwritten))
        with pytest.raises(InvalidArgumentError, match="the newest one is 1"):
            table.restore(2)
        with pytest.raises(TypeError):
            table.restore(None)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            table.restore(True)

    def test_vectors_and_row_ids_come_back(self, tmp_path: pathlib.Path) -> None:
        table = log.Table(tmp_path / "t")
        add = table.ids("a.parquet", 0, 10)["add"]
        add |= {"baseRowId": 5, "defaultRowCommitVersion": 0}
        vector = table.vector([1])
        protocol = log.protocol(features=["deletionVectors"], writer_only=["rowTracking", "domainMetadata"])
        mark = {
            "domainMetadata": {
                "domain": "delta.rowTracking",
                "configuration": '{"rowIdHighWaterMark":30}',
                "removed": False,
            }
        }
        table.commit(0, protocol, log.metadata(), {"add": {**add, "deletionVector": vector}}, mark)
        removed = {"path": "a.parquet", "deletionTimestamp": 1, "dataChange": True, "deletionVector": vector}
        table.commit(1, {"remove": removed}, {"add": add})
        opened = DeltaTable(str(table.folder))
        assert opened.count() == 10
        opened.restore(0)
        assert opened.count() == 9
        back = next(a["add"] for a in actions(table.folder, 2) if "add" in a)
        assert (back["baseRowId"], back["defaultRowCommitVersion"], back["deletionVector"]) == (5, 0, vector)
        assert json.loads(opened.domain_metadata()["delta.rowTracking"]) == {"rowIdHighWaterMark": 30}


class TestRepair:
    def test_files_that_are_gone_leave_the_log(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        write(root, [1], part="a b")
        write(root, [2], part="c", mode="append")
        missing = next(a["add"]["path"] for a in actions(root, 0) if "add" in a)
        next(root.glob("p=a*/*.parquet")).unlink()
        table = DeltaTable(str(root))
        assert table.repair(dry_run=True) == {"dry_run": True, "files_removed": [missing]}
        assert table.version() == 1
        assert table.repair() == {"dry_run": False, "files_removed": [missing]}
        assert ids(root) == [2]
        assert (info(root, 2)["operation"], info(root, 2)["operationMetrics"]) == ("FSCK", {"numRemovedFiles": "1"})
        assert table.repair() == {"dry_run": False, "files_removed": []}
        assert table.version() == 2

    def test_deletion_vectors_that_are_gone_are_named_and_stay(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        properties = {"delta.enableDeletionVectors": "true"}
        deltafast.write_deltalake(root, pa.table({"id": range(10)}), configuration=properties)
        deltafast.write_deltalake(root, pa.table({"id": range(10, 20)}), mode="append")
        table = DeltaTable(str(root))
        table.delete("id = 1")
        assert table.repair(dry_run=True) == {"dry_run": True, "files_removed": []}
        vector = next(root.glob("*.bin"))
        vector.unlink()
        clone = table.clone(tmp_path / "clone")
        reported = clone.repair(dry_run=True)["vectors_missing"]
        assert [name.rpartition("/")[2] for name in reported] == [vector.name]
        assert table.repair() == {"dry_run": False, "files_removed": [], "vectors_missing": [vector.name]}
        assert table.version() == 2


class TestGenerate:
    def test_each_partition_has_a_manifest_of_its_files(self, tmp_path: pathlib.Path) -> None:
        root = tmp_path / "t"
        write(root, [1], part="a b")
        write(root, [2], part="c", mode="append")
        DeltaTable(str(root)).generate()
        folder = root / "_symlink_format_manifest"
        text = (folder / "p=a b/manifest").read_text()
        assert text.startswith(f"file://{root}/p=a")
        assert pathlib.Path(text.strip().removeprefix("file://")).exists()
        deltalake.DeltaTable(str(root)).delete("p = 'c'")
        DeltaTable(str(root)).generate()
        assert [p.relative_to(folder).as_posix() for p in folder.rglob("manifest")] == ["p=a b/manifest"]

    def test_a_table_without_partitions_has_one(self, overwritten: pathlib.Path) -> None:
        table = DeltaTable(str(overwritten))
        table.generate()
        lines = (overwritten / "_symlink_format_manifest/manifest").read_text().splitlines()
        assert [line.removeprefix("file://") for line in lines] == table.file_uris()

    def test_tables_that_readers_would_misread_are_refused(self, tmp_path: pathlib.Path) -> None:
        table = log.Table(tmp_path / "t")
        add = table.ids("a.parquet", 0, 10)["add"]
        vector = table.vector([1])
        table.commit(
            0, log.protocol(features=["deletionVectors"]), log.metadata(), {"add": {**add, "deletionVector": vector}}
        )
        with pytest.raises(DeltaProtocolError, match="deletion vectors"):
            DeltaTable(str(table.folder)).generate()
        assert not (table.folder / "_symlink_format_manifest").exists()


class TestClone:
    def test_a_clone_has_the_rows_and_a_life_of_its_own(
        self, overwritten: pathlib.Path, tmp_path: pathlib.Path
    ) -> None:
        source = DeltaTable(str(overwritten), version=0)
        clone = source.clone(tmp_path / "the clone", properties={"user.key": "1"})
        assert sorted(clone.to_pyarrow_table().column("id").to_pylist()) == [1, 2]
        assert clone.metadata().id != source.metadata().id
        assert clone.metadata().configuration["user.key"] == "1"
        commit = info(tmp_path / "the clone", 0)
        assert commit["operation"] == "CLONE"
        assert commit["operationParameters"]["sourceVersion"] == 0
        assert commit["operationMetrics"]["sourceNumOfFiles"] == "1"
        before = data_files(overwritten)
        age(overwritten, 200)
        assert clone.vacuum(0, False, False, full=True) == []
        assert data_files(overwritten) == before
        with pytest.raises(InvalidArgumentError, match="already"):
            source.clone(tmp_path / "the clone")

    def test_vectors_go_along(self, tmp_path: pathlib.Path) -> None:
        table = log.Table(tmp_path / "a table")
        add = table.ids("a b.parquet", 0, 10)["add"]
        vector = table.vector([1, 2])
        table.commit(
            0, log.protocol(features=["deletionVectors"]), log.metadata(), {"add": {**add, "deletionVector": vector}}
        )
        clone = DeltaTable(str(table.folder)).clone(tmp_path / "clone")
        assert clone.to_pyarrow_table().num_rows == 8
        assert (
            next(a["add"]["deletionVector"]["storageType"] for a in actions(tmp_path / "clone", 0) if "add" in a) == "p"
        )

    def test_a_table_without_rows_becomes_the_clone(self, overwritten: pathlib.Path, tmp_path: pathlib.Path) -> None:
        source = DeltaTable(str(overwritten), version=0)
        target = DeltaTable.create(
            tmp_path / "target",
            pa.schema([("x", pa.int32()), ("y", pa.string())]),
            partition_by="y",
            name="its name",
            description="its own",
            configuration={"delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true", "k": "v"},
        )
        rows = pa.table({"x": pa.array([1, 2, 3], pa.int32()), "y": ["a", "b", "b"]})
        deltafast.write_deltalake(target, rows, mode="append")
        with pytest.raises(InvalidArgumentError, match="empty table only"):
            source.clone(tmp_path / "target", replace=True)
        target.delete()
        before = DeltaTable(tmp_path / "target")
        clone = source.clone(tmp_path / "target", replace=True, properties={"new": "1"})
        assert clone.version() == before.version() + 1
        assert sorted(clone.to_pyarrow_table().column("id").to_pylist()) == [1, 2]
        now, then = clone.metadata(), before.metadata()
        assert (now.id, now.name, now.description) == (then.id, "its name", "its own")
        assert now.created_time == then.created_time
        assert now.partition_columns == source.metadata().partition_columns
        settings = source.metadata().configuration | {"new": "1"}
        materialized = {key: value for key, value in then.configuration.items() if "materialized" in key}
        assert now.configuration == settings | materialized
        assert clone.schema() == source.schema()
        # The rows are numbered on from those that were there.
        (add,) = (action["add"] for action in actions(tmp_path / "target", clone.version()) if "add" in action)
        assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (3, clone.version())
        assert set(before.protocol().writer_features or ()) <= set(clone.protocol().writer_features or ())
        assert source.clone(tmp_path / "new", replace=True).version() == 0

    def test_another_store_is_refused(self, overwritten: pathlib.Path) -> None:
        with pytest.raises(DeltaProtocolError, match="same store"):
            DeltaTable(str(overwritten)).clone("memory:///clone")


class TestConvert:
    @staticmethod
    def parquet(path: pathlib.Path, **columns: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)

    def test_plain_files_become_a_table(self, tmp_path: pathlib.Path) -> None:
        self.parquet(tmp_path / "b/two.parquet", id=pa.array([3], pa.int64()), late=["x"])
        self.parquet(tmp_path / "a one.parquet", id=pa.array([1, None], pa.int64()))
        (tmp_path / "_hidden.parquet").write_bytes(b"no parquet")
        (tmp_path / "notes.txt").write_bytes(b"no parquet")
        convert_to_deltalake(tmp_path, name="n", description="d", configuration={"user.key": "v"})
        table = DeltaTable(str(tmp_path))
        rows = table.to_pyarrow_table().sort_by("id").to_pylist()
        assert rows == [{"id": 1, "late": None}, {"id": 3, "late": "x"}, {"id": None, "late": None}]
        theirs = deltalake.DeltaTable(str(tmp_path))
        assert pa.table(theirs.to_pyarrow_table()).num_rows == 3
        assert (table.metadata().name, table.metadata().description) == ("n", "d")
        stats = {a["add"]["path"]: json.loads(a["add"]["stats"]) for a in actions(tmp_path, 0) if "add" in a}
        one = stats["a%20one.parquet"]
        assert (one["numRecords"], one["minValues"], one["maxValues"]) == (2, {"id": 1}, {"id": 1})
        assert one["nullCount"] == {"id": 1, "late": 2}
        commit = info(tmp_path, 0)
        assert commit["operation"] == "CONVERT"
        assert commit["operationParameters"] == {
            "numFiles": 2,
            "partitionedBy": "[]",
            "collectStats": True,
            "sourceFormat": "parquet",
        }
        assert commit["operationMetrics"] == {"numConvertedFiles": "2"}

    def test_hive_folders_are_partitions(self, tmp_path: pathlib.Path) -> None:
        for n, (p, day) in enumerate(
            [("a b", "2024-02-29"), ("%C3%BC%2F", "2024-03-01"), ("__HIVE_DEFAULT_PARTITION__", "2024-03-01")]
        ):
            self.parquet(tmp_path / f"p={p}/day={day}/x.parquet", id=pa.array([n], pa.int64()))
        partition = pa.schema([("p", pa.string()), ("day", pa.date32())])
        with pytest.raises(InvalidArgumentError, match="partition_by"):
            convert_to_deltalake(tmp_path)
        convert_to_deltalake(tmp_path, partition_by=partition, partition_strategy="hive")
        table = DeltaTable(str(tmp_path))
        assert table.metadata().partition_columns == ["p", "day"]
        rows = table.to_pyarrow_table().sort_by("id").to_pylist()
        assert [(row["id"], row["p"], str(row["day"])) for row in rows] == [
            (0, "a b", "2024-02-29"),
            (1, "ü/", "2024-03-01"),
            (2, None, "2024-03-01"),
        ]
        assert table.count("day = '2024-03-01'") == 2
        assert ids(tmp_path) == [0, 1, 2]

    def test_folders_may_be_values_alone(self, tmp_path: pathlib.Path) -> None:
        self.parquet(tmp_path / "7/x/a.parquet", id=pa.array([1], pa.int64()))
        partition = pa.schema([("n", pa.int32()), ("s", pa.string())])
        convert_to_deltalake(tmp_path, partition_by=partition, partition_strategy="directory")
        assert DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist() == [{"id": 1, "n": 7, "s": "x"}]

    @pytest.mark.parametrize(
        ("files", "partition", "message"),
        [
            ([], None, "no Parquet files"),
            (
                ["p=1/x", "y"],
                [("p", pa.int32())],
                r"no folder of the partition column `p`.*y\.parquet|y\.parquet.*no folder",
            ),
            (["p=x/x"], [("p", pa.int32())], "`x` is not of type integer"),
            (["p=1/q=2/x"], [("p", pa.int32())], "`q=2`"),
        ],
    )
    def test_folders_that_do_not_fit_are_refused(
        self, tmp_path: pathlib.Path, files: list[str], partition: Any, message: str
    ) -> None:
        for name in files:
            self.parquet(tmp_path / f"{name}.parquet", id=pa.array([1], pa.int64()))
        with pytest.raises(InvalidArgumentError, match=message):
            convert_to_deltalake(tmp_path, partition_by=None if partition is None else pa.schema(partition))
        assert not (tmp_path / "_delta_log").exists()

    def test_files_that_contradict_each_other_are_named(self, tmp_path: pathlib.Path) -> None:
        self.parquet(tmp_path / "a.parquet", id=pa.array([1], pa.int64()))
        self.parquet(tmp_path / "b.parquet", id=["text"])
        with pytest.raises(SchemaMismatchError, match=r"`id`.*a\.parquet"):
            convert_to_deltalake(tmp_path)
        (tmp_path / "b.parquet").write_bytes(b"PAR1 nonsense PAR1")
        with pytest.raises(deltafast.DeltaError, match=r"b\.parquet"):
            convert_to_deltalake(tmp_path)
        assert not (tmp_path / "_delta_log").exists()

    def test_a_table_that_is_there_stays(self, overwritten: pathlib.Path) -> None:
        with pytest.raises(InvalidArgumentError, match="already"):
            convert_to_deltalake(overwritten)
        convert_to_deltalake(overwritten, mode="ignore")
        assert DeltaTable(str(overwritten)).version() == 1
        with pytest.raises(InvalidArgumentError, match="mode"):
            convert_to_deltalake(overwritten, mode="append")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="is a Delta table itself"):
            convert_to_deltalake(overwritten.parent)

    def test_what_files_would_have_had_to_know_is_refused(self, tmp_path: pathlib.Path) -> None:
        self.parquet(tmp_path / "a.parquet", id=pa.array([1], pa.int64()))
        for key, value in (("delta.columnMapping.mode", "name"), ("delta.constraints.c", "id > 1")):
            with pytest.raises(InvalidArgumentError, match="conversion"):
                convert_to_deltalake(tmp_path, configuration={key: value})

    def test_every_type_is_read_back_and_bounds_hold(self, tmp_path: pathlib.Path) -> None:
        from decimal import Decimal

        timestamps = [
            datetime(2024, 1, 1, 2, 3, 4, 567_891, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=UTC),
        ]
        columns: dict[str, Any] = {
            "i8": pa.array([1, -2], pa.int8()),
            "u16": pa.array([1, 65535], pa.uint16()),
            "f": pa.array([1.5, float("nan")]),
            "dec": pa.array([Decimal("1.20"), Decimal("-7.25")], pa.decimal128(9, 2)),
            "big": pa.array([Decimal("1.20"), Decimal("-7.25")], pa.decimal128(30, 2)),
            "s": ["z" * 100, "ä"],
            "b": pa.array([b"x", b"y"]),
            "ok": [True, False],
            "d": pa.array([timestamps[0].date(), timestamps[1].date()]),
            "us": pa.array(timestamps, pa.timestamp("us", "UTC")),
            "ms": pa.array(timestamps, pa.timestamp("us", "UTC")).cast(pa.timestamp("ms", "UTC"), safe=False),
            "ns": pa.array(timestamps, pa.timestamp("ns", "UTC")),
            "st": [{"x": 1, "y": "a"}, {"x": None, "y": "b"}],
            "l": [[1, 2], None],
        }
        pq.write_table(pa.table(columns), tmp_path / "x.parquet")
        convert_to_deltalake(tmp_path)
        table = DeltaTable(str(tmp_path))
        rows = table.to_pyarrow_table()
        assert rows.column("us").to_pylist() == timestamps
        assert rows.column("u16").to_pylist() == [1, 65535]
        stats = json.loads(next(a["add"]["stats"] for a in actions(tmp_path, 0) if "add" in a))
        assert {"f", "u16", "b", "l"}.isdisjoint(stats["minValues"])
        assert stats["minValues"]["st"] == {"x": 1, "y": "a"}
        assert stats["nullCount"]["st"] == {"x": 1, "y": 0}
        assert "l" not in stats["nullCount"]
        assert stats["maxValues"]["s"] >= "z" * 32
        # No predicate that a row fulfils may lose it.
        for column, text in (("us", "2024-01-01T02:03:04.567891Z"), ("ns", "2024-01-01T02:03:04.567891Z")):
            assert table.count(f"{column} = timestamp'{text}'") == 1
        assert table.count("dec = -7.25") == table.count("big = -7.25") == table.count("i8 = -2") == 1
        assert table.count("s = 'ä'") == table.count("st.x = 1") == table.count("u16 = 65535") == 1

    def test_without_statistics_files_have_none(self, tmp_path: pathlib.Path) -> None:
        self.parquet(tmp_path / "a.parquet", id=pa.array([1], pa.int64()))
        convert_to_deltalake(tmp_path, collect_stats=False)
        assert "stats" not in next(a["add"] for a in actions(tmp_path, 0) if "add" in a)
        assert ids(tmp_path) == [1]


def test_every_maintenance_command_that_commits_leaves_a_checksum_and_reports_what_went_wrong(
    tmp_path: pathlib.Path,
) -> None:
    root = tmp_path / "t"
    write(root, [1])
    write(root, [2], mode="append")
    table = DeltaTable(str(root))
    table.restore(0)
    next(root.glob("part-*")).unlink()
    next(root.glob("part-*")).unlink()
    table.repair()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    DeltaTable(str(root)).clone(str(tmp_path / "clone"))
    for folder, version in ((root, table.version()), (tmp_path / "clone", 0)):
        checksum = json.loads((folder / f"_delta_log/{version:020}.crc").read_text())
        assert checksum["numFiles"] == len(DeltaTable(str(folder)).file_uris())

    (root / "_delta_log" / f"{table.version() + 1:020}.crc").mkdir()
    write_one = deltafast.CommitProperties(custom_metadata={"userMetadata": "again"})
    with pytest.warns(deltafast.exceptions.DeltaWarning, match="checksum"):
        table.restore(0, ignore_missing_files=True, commit_properties=write_one)
    assert table.history(1)[0]["userMetadata"] == "again"


def test_a_retention_of_zero_covers_the_commit_before(tmp_path):
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    for _ in range(100):
        write_deltalake(table, pa.table({"id": [1]}), mode="overwrite")
        assert len(table.vacuum(0, dry_run=False, enforce_retention_duration=False)) == 1
