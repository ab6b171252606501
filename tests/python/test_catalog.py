"""Tables whose commits a catalog manages: every operation, writers beside each other, and catalogs that fail."""

import contextlib
import json
import multiprocessing
import os
import pickle
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import fsspec
import pyarrow as pa
import pytest

from deltafast import DeltaTable, Field, Schema, _core, write_deltalake
from deltafast.catalog import FolderCommitter, LogTail, StagedCommit
from deltafast.exceptions import (
    CommitUnknownError,
    ConcurrentAppendError,
    DeltaProtocolError,
    DeltaWarning,
    InvalidArgumentError,
    MetadataChangedError,
    StorageError,
    TableNotFoundError,
)
from support import same_rows

ROWS = pa.table({"id": range(6), "p": ["a", "b"] * 3})


def numbers(table):
    return sorted(row["id"] for row in table.to_pyarrow_table().to_pylist())


@pytest.fixture
def place(tmp_path):
    return tmp_path / "table"


@pytest.fixture
def committer(tmp_path):
    return FolderCommitter(tmp_path / "catalog")


class Stubborn(FolderCommitter):
    """A catalog whose methods fail as told: for each call what to do, `None` for nothing."""

    def __init__(self, folder, **plans):
        super().__init__(folder)
        self.plans = {name: list(plan) for name, plan in plans.items()}
        self.calls = []

    def _next(self, name):
        self.calls.append(name)
        plan = self.plans.get(name, [])
        return plan.pop(0) if plan else None

    def log_tail(self):
        if fault := self._next("log_tail"):
            raise fault
        return super().log_tail()

    def ratify(self, commit, text):
        fault = self._next("ratify")
        if isinstance(fault, tuple):
            # It is done, and the answer lost.
            super().ratify(commit, text)
            raise fault[0]
        if fault:
            raise fault
        return super().ratify(commit, text)

    def published(self, version):
        if fault := self._next("published"):
            raise fault
        super().published(version)


class Keeping(FolderCommitter):
    """A catalog that is never told what is published, so it names every commit for ever."""

    def published(self, version):
        pass


def staged(place):
    folder = place / "_delta_log" / "_staged_commits"
    return sorted(folder.iterdir()) if folder.exists() else []


def published(place):
    return sorted(int(path.stem) for path in (place / "_delta_log").glob("*.json") if path.stem.isdecimal())


def test_a_table_that_a_committer_makes_is_the_catalogs(place, committer):
    write_deltalake(place, ROWS, partition_by="p", committer=committer)
    table = DeltaTable(place, committer=committer)
    protocol = table.protocol()
    assert {"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"} <= set(protocol.writer_features)
    assert {"catalogManaged", "vacuumProtocolCheck"} <= set(protocol.reader_features)
    assert table.metadata().configuration == {"delta.enableInCommitTimestamps": "true"}
    first = json.loads((place / "_delta_log" / f"{0:020}.json").read_text().splitlines()[0])
    assert first["commitInfo"]["txnId"]
    assert first["commitInfo"]["inCommitTimestamp"] > 0
    # What was ratified is what was published, byte for byte.
    [commit] = staged(place)
    assert commit.name.startswith(f"{0:020}.")
    assert commit.read_bytes() == (place / "_delta_log" / f"{0:020}.json").read_bytes()
    assert committer.log_tail() == LogTail(0, [])
    same_rows(table.to_pyarrow_table(), ROWS)


def test_nobody_reads_or_writes_it_past_the_catalog(place, committer):
    write_deltalake(place, ROWS, committer=committer)
    with pytest.raises(DeltaProtocolError, match=r"catalogManaged.*`committer`"):
        DeltaTable(place)
    with pytest.raises(DeltaProtocolError, match="catalogManaged"):
        write_deltalake(place, ROWS, mode="append")
    reader = DeltaTable(place, max_table_version=0)
    same_rows(reader.to_pyarrow_table(), ROWS)
    with pytest.raises(DeltaProtocolError, match=r"managed by a catalog; open it with a `committer`"):
        write_deltalake(reader, ROWS, mode="append")
    with pytest.raises(DeltaProtocolError, match="managed by a catalog"):
        reader.delete()
    assert published(place) == [0]


def test_every_operation_commits_through_the_catalog(place, committer):
    fields = Schema([Field("id", "long"), Field("p", "string")])
    table = DeltaTable.create(
        place,
        fields,
        partition_by="p",
        configuration={"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"},
        committer=committer,
    )
    write_deltalake(table, ROWS, mode="append")
    write_deltalake(place, ROWS.slice(0, 2), mode="overwrite", predicate="id < 2", committer=committer)
    table.update_incremental()
    table.delete("id = 5")
    table.update({"id": "id + 100"}, predicate="id = 4")
    table.alter.add_columns([Field("more", "string")])
    table.alter.add_constraint({"small": "id < 1000"})
    table.alter.set_table_properties({"custom": "x"})
    table.alter.add_feature("v2Checkpoint", allow_protocol_versions_increase=True)
    table.alter.add_feature("domainMetadata")
    table.alter.set_domain_metadata("mine", "{}")
    table.create_checkpoint()
    table.compact_logs(0, 2)
    table.restore(4)
    assert numbers(DeltaTable(place, version=4, committer=committer)) == numbers(table) == [0, 1, 2, 3, 104]
    (place / table.file_uris()[0].rsplit("/table/")[1]).unlink()
    assert len(table.repair()["files_removed"]) == 1
    newest = table.version()
    assert newest == 12
    assert published(place) == list(range(newest + 1))
    assert [int(path.name[:20]) for path in staged(place)] == list(range(newest + 1))
    assert len(list((place / "_delta_log").glob("*.checkpoint*.parquet"))) == 5
    assert [entry["version"] for entry in table.history()] == list(range(newest, -1, -1))
    again = DeltaTable(place, committer=committer)
    assert again.version() == newest
    assert numbers(again) == numbers(table)
    # A version's schema and properties came back with it.
    assert "delta.constraints.small" not in again.metadata().configuration
    write_deltalake(table, ROWS, mode="overwrite", schema_mode="overwrite")
    same_rows(DeltaTable(place, committer=committer).to_pyarrow_table(), ROWS)


def test_vacuum_and_cleanup_need_the_catalogs_leave(place, tmp_path):
    strict = FolderCommitter(tmp_path / "catalog")
    write_deltalake(place, ROWS, committer=strict, configuration={"delta.checkpointInterval": "1"})
    table = DeltaTable(place, committer=strict)
    for _ in range(3):
        write_deltalake(table, ROWS, mode="overwrite")
    with pytest.raises(DeltaProtocolError, match=r"`vacuum` is up to its catalog.*`permits` holds `vacuum`"):
        table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(DeltaProtocolError, match="`cleanup_metadata` is up to its catalog"):
        table.cleanup_metadata()
    with pytest.raises(DeltaProtocolError, match="`optimize` is up to its catalog"):
        table.optimize.compact()
    kind = FolderCommitter(tmp_path / "catalog", permits=["vacuum", "cleanup_metadata", "optimize"])
    table = DeltaTable(place, committer=kind)
    assert len(table.vacuum(0, enforce_retention_duration=False, dry_run=False)) == 3
    old = 40 * 86_400
    for path in (place / "_delta_log").rglob("*"):
        os.utime(path, (path.stat().st_mtime - old,) * 2)
    # Commits of a table with in-commit timestamps have their own time, and the cutoff is at midnight.
    assert table.cleanup_metadata() == []
    options = {"retention_ms": 0, "now_ms": round((time.time() + 2 * 86_400) * 1000)}
    gone = _core.cleanup_metadata(table._handle.snapshot, options)["files"]
    away = sorted(path.rpartition("/")[2] for path in gone if path.startswith("_delta_log/_staged_commits/"))
    assert [int(name[:20]) for name in away] == list(range(table.version()))
    assert [int(path.name[:20]) for path in staged(place)] == [table.version()]
    same_rows(DeltaTable(place, committer=kind).to_pyarrow_table(), ROWS)


def test_two_writers_race(place, committer):
    write_deltalake(place, ROWS, committer=committer)
    one, two, three, four = (DeltaTable(place, committer=committer) for _ in range(4))
    one.delete("id = 0")
    write_deltalake(two, ROWS.slice(0, 1), mode="append")
    assert two.version() == 2
    with pytest.raises(ConcurrentAppendError):
        three.delete("id = 1")
    one.update_incremental()
    one.alter.set_table_properties({"custom": "x"})
    with pytest.raises(MetadataChangedError):
        write_deltalake(four, ROWS, mode="append")
    assert numbers(DeltaTable(place, committer=committer)) == [0, 1, 2, 3, 4, 5]
    # Losing leaves a staged commit behind, never a published one.
    assert published(place) == [0, 1, 2, 3]


def _append(place, folder):
    for _ in range(10):
        write_deltalake(place, ROWS.slice(0, 1), mode="append", committer=FolderCommitter(folder))


def test_many_writers_lose_and_double_nothing(place, tmp_path):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=FolderCommitter(folder))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: _append(place, folder), range(4)))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(_append, [(place, folder)] * 2)
    committer = FolderCommitter(folder)
    table = DeltaTable(place, committer=committer)
    assert (table.version(), table.count()) == (60, 66)
    assert committer.log_tail() == LogTail(60, [])
    assert published(place)[-1] == 60


@pytest.mark.parametrize("lost", [RuntimeError("no answer"), ConnectionResetError("gone"), ValueError(), KeyError("x")])
@pytest.mark.parametrize("was_done", [True, False])
def test_a_lost_answer_is_looked_up(place, tmp_path, lost, was_done):
    committer = Stubborn(tmp_path / "catalog", ratify=[None, (lost,) if was_done else lost])
    write_deltalake(place, ROWS, committer=committer)
    table = DeltaTable(place, committer=committer)
    write_deltalake(table, ROWS, mode="append")
    assert (table.version(), table.count()) == (1, 12)
    assert committer.calls.count("ratify") == (2 if was_done else 3)
    assert published(place) == [0, 1]


class FailingAt(FolderCommitter):
    """A catalog of which one call fails: before it does anything, or after."""

    def __init__(self, folder, at, *, after, lasting):
        super().__init__(folder)
        self.calls, self.at, self.after, self.lasting = 0, at, after, lasting

    def _call(self, work):
        self.calls += 1
        fails = self.calls == self.at or (self.lasting and self.calls > self.at)
        if fails and not self.after:
            raise ConnectionError
        done = work()
        if fails:
            raise ConnectionError
        return done

    def log_tail(self):
        return self._call(super().log_tail)

    def ratify(self, commit, text):
        parent = super()
        return self._call(lambda: parent.ratify(commit, text))

    def published(self, version):
        parent = super()
        return self._call(lambda: parent.published(version))


@pytest.mark.filterwarnings("ignore::deltafast.DeltaWarning")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("operation", ["append", "delete", "alter"])
def test_whichever_call_fails_the_table_is_old_or_new_and_the_answer_true(place, tmp_path, operation, after, lasting):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=FolderCommitter(folder))
    work = {
        "append": lambda table: write_deltalake(table, ROWS, mode="append"),
        "delete": lambda table: table.delete("id = 0 or id > 5"),
        "alter": lambda table: table.alter.set_table_properties({"custom": str(table.version())}),
    }[operation]
    outcomes, at = set(), 1
    while True:
        before = DeltaTable(place, committer=FolderCommitter(folder))
        if operation == "delete":
            write_deltalake(before, ROWS.slice(0, 1), mode="append")
        committer = FailingAt(folder, at, after=after, lasting=lasting)
        version = before.version()
        try:
            table = DeltaTable(place, committer=committer)
            work(table)
            outcomes.add("done")
            known = version + 1
        except CommitUnknownError:
            outcomes.add("unknown")
            known = None
        except StorageError:
            outcomes.add("failed")
            known = version
        now = DeltaTable(place, committer=FolderCommitter(folder))
        assert now.version() in ({version, version + 1} if known is None else {known}), at
        assert now.to_pyarrow_table().num_rows == now.count()
        if operation == "append":
            assert now.count() == 6 * (now.version() + 1)
        if committer.calls < at:
            break
        at += 1
    assert at > 4
    assert "done" in outcomes
    assert ("unknown" in outcomes) == lasting
    assert committer.calls == at - 1


@pytest.mark.parametrize("operation", ["append", "delete", "update", "alter", "overwrite"])
def test_nobody_guesses_what_a_catalog_does_not_report(place, tmp_path, operation):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=FolderCommitter(folder))
    down = TimeoutError("the catalog is down")
    committer = Stubborn(folder, ratify=[(down,)], log_tail=[None, *[down] * 50])
    table = DeltaTable(place, committer=committer)
    work = {
        "append": lambda: write_deltalake(table, ROWS, mode="append"),
        "overwrite": lambda: write_deltalake(table, ROWS.slice(0, 1), mode="overwrite"),
        "delete": lambda: table.delete("id = 1"),
        "update": lambda: table.update({"id": "7"}, predicate="id = 1"),
        "alter": lambda: table.alter.set_table_properties({"custom": "x"}),
    }
    with pytest.raises(CommitUnknownError, match=r"version 1 .*TimeoutError: the catalog is down"):
        work[operation]()
    # It was made, and whoever asks the catalog sees it whole: no file of it was deleted.
    now = DeltaTable(place, committer=FolderCommitter(folder))
    assert now.version() == 1
    expected = {"append": 12, "overwrite": 1, "delete": 5}
    assert now.to_pyarrow_table().num_rows == expected.get(operation, 6)


def test_a_catalog_that_says_no_says_no(place, tmp_path):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=FolderCommitter(folder))
    files = sorted(path.name for path in place.glob("*.parquet"))
    for fault in (PermissionError("not yours"), NotImplementedError("not here")):
        committer = Stubborn(folder, ratify=[fault])
        error = StorageError if isinstance(fault, PermissionError) else DeltaProtocolError
        with pytest.raises(error, match=rf"`ratify` of the committer failed with {type(fault).__name__}: not "):
            write_deltalake(place, ROWS, mode="append", committer=committer)
    # Nothing was committed, so what was written is gone.
    assert sorted(path.name for path in place.glob("*.parquet")) == files
    assert FolderCommitter(folder).log_tail() == LogTail(0, [])


def test_a_crash_between_staging_and_ratifying_leaves_the_old_table(place, tmp_path):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=FolderCommitter(folder))
    before = pa.table(ROWS)

    child = multiprocessing.get_context("spawn").Process(target=_die_in, args=("ratify", place, folder))
    child.start()
    child.join()
    assert child.exitcode == 9
    assert [int(path.name[:20]) for path in staged(place)] == [0, 1]
    table = DeltaTable(place, committer=FolderCommitter(folder))
    assert table.version() == 0
    same_rows(table.to_pyarrow_table(), before)
    # The next one takes the version, and the orphan stays nobody's.
    write_deltalake(table, ROWS.slice(0, 1), mode="append")
    assert (table.version(), table.count()) == (1, 7)


def test_a_crash_between_ratifying_and_publishing_leaves_the_new_table(place, tmp_path):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=FolderCommitter(folder))
    child = multiprocessing.get_context("spawn").Process(target=_die_in, args=("publish", place, folder))
    child.start()
    child.join()
    assert child.exitcode == 9
    assert published(place) == [0]
    committer = FolderCommitter(folder)
    assert [commit.version for commit in committer.log_tail().commits] == [1]
    table = DeltaTable(place, committer=committer)
    assert (table.version(), table.count()) == (1, 12)
    assert [entry["version"] for entry in table.history()] == [1, 0]
    # A checkpoint waits for the log; whoever commits next publishes in order.
    with pytest.raises(InvalidArgumentError, match="not published"):
        table.create_checkpoint()
    write_deltalake(table, ROWS, mode="append")
    assert published(place) == [0, 1, 2]
    assert committer.log_tail() == LogTail(2, [])
    table.create_checkpoint()


class _Dying(FolderCommitter):
    when = ""

    def ratify(self, commit, text):
        if self.when == "ratify":
            os._exit(9)
        super().ratify(commit, text)
        os._exit(9)


def _die_in(when, place, folder):
    committer = _Dying(folder)
    committer.when = when
    write_deltalake(place, ROWS, mode="append", committer=committer)


def _append_until_killed(place, folder, who, acknowledged):
    """Append one number after the other; note each only when its append was told to be done."""
    table = DeltaTable(place, committer=FolderCommitter(folder))
    number = who * 1_000_000
    while True:
        write_deltalake(table, pa.table({"id": [number], "p": ["x"]}), mode="append")
        acknowledged.send(number)
        number += 1


@pytest.mark.proof
def test_writers_that_are_killed_lose_and_double_nothing(place, tmp_path):
    folder, chance = tmp_path / "catalog", random.Random(20261122)
    configuration = {"delta.checkpointInterval": "7"}
    write_deltalake(place, ROWS.slice(0, 0), committer=FolderCommitter(folder), configuration=configuration)
    spawn, noted = multiprocessing.get_context("spawn"), []
    for round_ in range(3):
        writers = []
        for n in range(3):
            ours, theirs = spawn.Pipe(duplex=False)
            arguments = (place, folder, 1 + 3 * round_ + n, theirs)
            writers.append((spawn.Process(target=_append_until_killed, args=arguments, daemon=True), ours))
            writers[-1][0].start()
            theirs.close()
        # Every one of them is at work before the first is killed.
        noted.extend(pipe.recv() for _, pipe in writers)
        for process, _ in writers:
            time.sleep(chance.uniform(0.02, 0.4))
            process.kill()
        for process, pipe in writers:
            process.join()
            with contextlib.suppress(EOFError, OSError):
                while True:
                    noted.append(pipe.recv())
        table = DeltaTable(place, committer=FolderCommitter(folder))
        there = numbers(table)
        assert len(there) == len(set(there)), "a row is there twice"
        assert set(noted) <= set(there), "a row that was told to be committed is lost"
        # Of each writer at most the last row was committed without its being told.
        assert len(there) <= len(noted) + 3 * (round_ + 1)
        assert table.version() == len(there)
    assert len(noted) >= 9
    # Whoever comes next publishes what the killed ones left.
    write_deltalake(table, ROWS.slice(0, 0), mode="append")
    assert published(place) == list(range(table.version() + 1))


def test_what_cannot_be_published_is_a_warning(place, tmp_path):
    committer = Stubborn(tmp_path / "catalog", published=[None, OSError("no disk")])
    write_deltalake(place, ROWS, committer=committer)
    table = DeltaTable(place, committer=committer)
    with pytest.warns(DeltaWarning, match=r"version 1 is committed, but .*`published` .* OSError: no disk"):
        write_deltalake(table, ROWS, mode="append")
    assert (table.version(), table.count()) == (1, 12)
    write_deltalake(table, ROWS, mode="append")
    assert committer.log_tail() == LogTail(2, [])


def test_a_file_that_was_written_past_the_catalog_is_not_believed(place, committer):
    write_deltalake(place, ROWS, committer=committer)
    rogue = place / "_delta_log" / f"{1:020}.json"
    rogue.write_text(json.dumps({"commitInfo": {"operation": "ROGUE"}}) + "\n")
    (place / "_delta_log" / "_last_checkpoint").write_text('{"version": 7, "size": 1}')
    table = DeltaTable(place, committer=committer)
    assert table.version() == 0
    table.update_incremental()
    assert table.version() == 0
    with pytest.warns(DeltaWarning, match="somebody wrote past it"):
        write_deltalake(table, ROWS, mode="append")
    again = DeltaTable(place, committer=committer)
    assert (again.version(), again.count()) == (1, 12)


def test_handles_follow_the_catalog(place, tmp_path):
    folder = tmp_path / "catalog"
    write_deltalake(place, ROWS, committer=Keeping(folder))
    reader = DeltaTable(place, committer=Keeping(folder))
    for _ in range(3):
        write_deltalake(place, ROWS, mode="append", committer=Keeping(folder))
    reader.update_incremental()
    assert (reader.version(), reader.count()) == (3, 24)
    reader.load_as_version(1)
    assert reader.count() == 12
    with pytest.raises(Exception, match="no version 9"):
        reader.load_as_version(9)
    copy = pickle.loads(pickle.dumps(reader))
    assert (copy.version(), copy.count()) == (1, 12)
    copy.update_incremental()
    write_deltalake(copy, ROWS, mode="append")
    assert copy.version() == 4
    # Published files alone are enough for whoever was told the newest version.
    shutil.rmtree(place / "_delta_log" / "_staged_commits")
    assert DeltaTable(place, max_table_version=4).count() == 30


def test_arguments_that_make_no_sense_are_refused(place, committer, tmp_path):
    write_deltalake(place, ROWS, committer=committer)
    with pytest.raises(InvalidArgumentError, match="either committer, or log_tail"):
        DeltaTable(place, committer=committer, max_table_version=0)
    with pytest.raises(InvalidArgumentError, match="knows of no commit"):
        DeltaTable(place, committer=FolderCommitter(tmp_path / "other"))
    with pytest.raises(TableNotFoundError):
        DeltaTable(tmp_path / "nothing", committer=FolderCommitter(tmp_path / "other"))
    plain = tmp_path / "plain"
    write_deltalake(plain, ROWS)
    one = FolderCommitter(tmp_path / "one")
    assert one.ratify(StagedCommit(0, "x.y.json"), b"")
    one.published(0)
    with pytest.raises(InvalidArgumentError, match="without the feature `catalogManaged`"):
        write_deltalake(plain, ROWS, mode="append", committer=one)


@pytest.mark.parametrize(
    ("tail", "error"),
    [
        (LogTail(5, []), "neither in its `log_tail` nor published"),
        (LogTail(1, [StagedCommit(0, "x.y.json")]), "ends with version 0 and says that the newest version is 1"),
        (LogTail(2, [StagedCommit(0, "x.y.json"), StagedCommit(2, "x.y.json")]), "not contiguous"),
        (LogTail(-1), "it must be None"),
        (LogTail(0, [StagedCommit(0, "../../x.json")]), "x.json"),
        ("nonsense", "`log_tail` of the committer failed with"),
        (None, "`log_tail` of the committer failed with"),
    ],
)
def test_tails_that_make_no_sense_are_one_clear_error(place, committer, tail, error):
    write_deltalake(place, ROWS, committer=committer)

    class Liar(FolderCommitter):
        def log_tail(self):
            return tail

    with pytest.raises(Exception, match=error) as raised:
        DeltaTable(place, committer=Liar(place.parent / "liar"))
    assert type(raised.value).__module__ == "deltafast.exceptions"
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("turn", ["open", "publish"])
@pytest.mark.parametrize(
    "name",
    [
        "{folder}/secret.json",
        "file://{folder}/secret.json",
        "../../secret.json",
        "../secret.json",
        "secret.json",
        "_delta_log/../../secret.json",
        "_delta_log/_staged_commits/../../../secret.json",
        "{version:020}.a/../../../../secret.json",
        "/{version:020}.a.json",
        "{other:020}.a.json",
    ],
)
def test_a_catalog_has_no_other_file_published(place, tmp_path, name, turn):
    """What it names as a commit is copied to the log, where everybody reads it."""
    (tmp_path / "secret.json").write_text('{"commitInfo": {"secret": "SECRET"}}\n')

    class Liar(FolderCommitter):
        lies = False
        held = False

        def published(self, version):
            if not self.held:
                super().published(version)

        def log_tail(self):
            tail = super().log_tail()
            if not self.lies:
                return tail
            versions = [commit.version for commit in tail.commits]
            names = [name.format(folder=tmp_path, version=version, other=version + 1) for version in versions]
            return LogTail(tail.latest, [StagedCommit(*pair) for pair in zip(versions, names, strict=True)])

    catalog = Liar(tmp_path / "catalog")
    write_deltalake(place, ROWS, committer=catalog)
    catalog.held = True
    write_deltalake(place, ROWS, mode="append", committer=catalog)
    table = DeltaTable(place, committer=catalog)
    (place / "_delta_log" / f"{1:020}.json").unlink()
    catalog.lies = True
    if turn == "open":
        with pytest.raises(StorageError, match="as the commit of version 1"):
            DeltaTable(place, committer=catalog)
    else:
        with pytest.warns(DeltaWarning, match="as the commit of version"):
            table.delete("id = 1")
    assert not [file for file in place.rglob("*.json") if "SECRET" in file.read_text()]


def test_streams_are_read_while_the_catalog_is_asked(place, committer):
    write_deltalake(place, ROWS, committer=committer)
    table = DeltaTable(place, committer=committer)
    reader = pa.RecordBatchReader.from_stream(table.scan())
    assert reader.read_all().num_rows == 6


@pytest.mark.parametrize("where", ["memory", "fsspec"])
def test_the_table_may_lie_anywhere(tmp_path, where):
    committer = FolderCommitter(tmp_path / "catalog")
    store = None if where == "memory" else fsspec.filesystem("memory")
    place = f"memory:///{tmp_path.name}" if store is None else f"memory://{tmp_path.name}/t"
    write_deltalake(place, ROWS, committer=committer, store=store)
    table = DeltaTable(place, committer=committer, store=store)
    table.delete("id < 3")
    write_deltalake(table, ROWS, mode="append")
    again = DeltaTable(place, committer=committer, store=store)
    assert numbers(again) == [0, 1, 2, 3, 3, 4, 4, 5, 5]
    assert committer.log_tail() == LogTail(2, [])


def test_auto_compaction_that_the_catalog_forbids_is_skipped_quietly(place, tmp_path):
    """Warnings are errors here."""
    strict = FolderCommitter(tmp_path / "catalog")
    compact = {"delta.autoOptimize.autoCompact": "true", "delta.checkpointInterval": "100"}
    write_deltalake(place, ROWS, committer=strict, configuration=compact)
    table = DeltaTable(place, committer=strict)
    for _ in range(50):
        write_deltalake(table, ROWS.slice(0, 1), mode="append")
    assert [entry["operation"] for entry in table.history(1)] == ["WRITE"]
    table = DeltaTable(place, committer=FolderCommitter(tmp_path / "catalog", permits=["optimize"]))
    write_deltalake(table, ROWS.slice(0, 1), mode="append")
    assert [entry["operation"] for entry in table.history(1)] == ["OPTIMIZE"]
