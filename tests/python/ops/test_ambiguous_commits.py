"""Commits whose answer is lost, late or wrong: one commit in the log, and the caller is told what the log says.

The first attempt at every version that an operation makes is spoilt, after the store has done it or before. The result
must be that of the same operation on an undisturbed local disk.

All operations meet all faults in a store of this process. Over HTTP, where a proxy spoils the requests, every cloud
sees every fault, and the operations take turns; the proofs run all of them with all faults on all clouds.
"""

from __future__ import annotations

import itertools
import json
import pathlib
import re
import shutil
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import fsspec
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
import servers
from deltafast import CommitProperties, DeltaTable, Transaction, convert_to_deltalake, write_deltalake
from deltafast.catalog import FolderCommitter
from deltafast.stores import FsspecStore, ObstoreStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What follows a commit may time out as well, which is a warning.
pytestmark = pytest.mark.filterwarnings("ignore::deltafast.DeltaWarning")

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def rows(start: int, end: int, part: str = "a") -> pa.Table:
    return pa.table({"id": range(start, end), "p": [part] * (end - start)}, schema=SCHEMA)


# --- operations ------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where an operation happens: the table, and how it is reached."""

    table: str
    given: dict[str, Any]

    def open(self) -> DeltaTable:
        return DeltaTable(self.table, **self.given)


def append(place):
    table = place.open()
    write_deltalake(table, rows(100, 110), mode="append")
    return table


def append_once(place):
    table = place.open()
    properties = CommitProperties(app_transactions=[Transaction("app", 1)])
    write_deltalake(table, rows(100, 110), mode="append", commit_properties=properties)
    assert table.transaction_version("app") == 1
    return table


def overwrite(place):
    table = place.open()
    write_deltalake(table, rows(100, 110), mode="overwrite")
    return table


def replace_where(place):
    table = place.open()
    write_deltalake(table, rows(3, 5), mode="overwrite", predicate="id < 5")
    return table


def replace_partitions(place):
    table = place.open()
    write_deltalake(table, rows(100, 110), mode="overwrite", partition_overwrite_mode="dynamic")
    return table


def replace_schema(place):
    table = place.open()
    write_deltalake(table, pa.table({"x": [1.5]}), mode="overwrite", schema_mode="overwrite")
    return table


def delete(place):
    table = place.open()
    assert table.delete("id % 3 = 1")["num_deleted_rows"] > 0
    return table


def update(place):
    table = place.open()
    assert table.update({"p": "'x'"}, predicate="id between 5 and 12")["num_updated_rows"] == 8
    return table


def create(place):
    return DeltaTable.create(place.table, SCHEMA, **place.given)


def create_by_writing(place):
    write_deltalake(place.table, rows(0, 10), partition_by="p", **place.given)
    return place.open()


def add_columns(place):
    table = place.open()
    table.alter.add_columns([deltafast.Field("more", "string")])
    return table


def set_properties(place):
    table = place.open()
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    return table


def add_constraint(place):
    table = place.open()
    table.alter.add_constraint({"positive": "id >= 0"})
    return table


def restore(place):
    table = place.open()
    table.restore(0)
    return table


def repair(place):
    table = place.open()
    assert len(table.repair()["files_removed"]) == 1
    return table


def vacuum(place):
    table = place.open()
    assert table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    return table


def clone(place):
    target = place.table.removesuffix("t") + "clone"
    return place.open().clone(target)


def convert(place):
    convert_to_deltalake(place.table, **place.given)
    return place.open()


def none(folder):
    """There is nothing yet."""


def base(folder):
    """Two versions, two partitions."""
    write_deltalake(folder, rows(0, 30), partition_by="p")
    write_deltalake(folder, rows(30, 40, "b"), mode="append")


def flat(folder):
    write_deltalake(folder, rows(0, 30))


def with_vectors(folder):
    write_deltalake(folder, rows(0, 30), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(folder).delete("id in (7, 20)")
    write_deltalake(folder, rows(20, 21), mode="append")
    write_deltalake(folder, rows(7, 8), mode="append")


def with_a_hole(folder):
    base(folder)
    next(folder.glob("p=b/*.parquet")).unlink()


def with_leavings(folder):
    base(folder)
    write_deltalake(folder, rows(50, 55), mode="overwrite")
    time.sleep(0.01)


def files(folder):
    folder.mkdir(parents=True)
    for n in range(3):
        pq.write_table(rows(n, n + 1), folder / f"{n}.parquet")


OPERATIONS: dict[str, tuple[Callable[[pathlib.Path], None], Callable[[Place], DeltaTable]]] = {
    "append": (base, append),
    "append once": (base, append_once),
    "overwrite": (base, overwrite),
    "replaceWhere": (flat, replace_where),
    "dynamic overwrite": (base, replace_partitions),
    "overwriteSchema": (flat, replace_schema),
    "delete": (base, delete),
    "delete by vectors": (with_vectors, delete),
    "update": (base, update),
    "update by vectors": (with_vectors, update),
    "create": (none, create),
    "create by writing": (none, create_by_writing),
    "add columns": (base, add_columns),
    "set properties": (base, set_properties),
    "add constraint": (base, add_constraint),
    "restore": (base, restore),
    "repair": (with_a_hole, repair),
    "vacuum": (with_leavings, vacuum),
    "clone": (base, clone),
    "convert": (files, convert),
}


class Expected(NamedTuple):
    """What an operation comes to undisturbed, and the folder that it begins with."""

    folder: pathlib.Path
    operations: list[str]
    version: int
    rows: list[str]
    protocol: Any
    properties: dict[str, str]


def facts(table: DeltaTable) -> tuple[Any, ...]:
    """What another handle says of the table, from the version on."""
    newest = DeltaTable(table.table_uri, storage_options=table._handle.storage_options, store=table._handle.store)
    read = sorted(map(repr, newest.to_pyarrow_table().to_pylist()))
    return newest.version(), read, newest.protocol(), newest.metadata().configuration


def commits_of(folder: pathlib.Path) -> list[tuple[int, dict[str, Any]]]:
    """Return versions and commitInfos of a local table."""
    files = sorted((folder / "_delta_log").glob("0*.json"))
    return [(int(file.stem), commit_info(file.read_bytes())) for file in files]


def commit_info(text: bytes) -> dict[str, Any]:
    lines = [json.loads(line) for line in text.decode().splitlines()]
    return next(line["commitInfo"] for line in lines if "commitInfo" in line)


def operations(commits: list[tuple[int, dict[str, Any]]]) -> list[str]:
    assert [version for version, _ in commits] == list(range(len(commits)))
    return [info["operation"] for _, info in commits]


def copy(before: pathlib.Path, place: pathlib.Path) -> None:
    if before.exists():
        shutil.copytree(before, place)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """By operation: the folder that it begins with, and what it comes to."""
    known: dict[str, Expected] = {}

    def of(name: str) -> Expected:
        if name not in known:
            prepare, run = OPERATIONS[name]
            before, place = (tmp_path_factory.mktemp("quiet") / part for part in ("before", "t"))
            prepare(before)
            copy(before, place)
            table = run(Place(str(place), {}))
            made = operations(commits_of(pathlib.Path(table.table_uri.removeprefix("file://"))))
            known[name] = Expected(before, made, *facts(table))
        return known[name]

    return of


# --- faults ----------------------------------------------------------------------------------------

#: The one that takes longest first, so that others go on beside it.
FAULTS = ["delayed", "dropped", "500", "503", "429"]
TIMINGS = ["after", "before"]
CASES = [(fault, timing) for timing in TIMINGS for fault in FAULTS]
CLOUDS = ["s3", "azure", "gcs"]
#: Seconds until a client gives up, and until a delayed request or answer goes on.
PATIENCE, DELAY = 0.8, 1.2
COMMIT = re.compile(r"^PUT .*/(ambiguous/[^/?]+)/[^/?]+/_delta_log/(\d{20})\.json(\?|$)")
LOOK = re.compile(r"^GET .*/(ambiguous/[^/?]+)/[^/?]+/_delta_log/(\d{20})\.json(\?|$)")


def in_turn(cloud: str, names: Sequence[str], cases: Sequence[Any]) -> list[tuple[str, Any]]:
    """Pair each case of a cloud with an operation; the next cloud goes on with the operation where this one ends."""
    start = CLOUDS.index(cloud) * len(cases)
    return [(names[(start + number) % len(names)], case) for number, case in enumerate(cases)]


def all_at_once(attempt: Callable[..., object], cases: Sequence[tuple[Any, ...]], workers: int = 6) -> None:
    """Call a function with each case, several at once, and name all cases that fail."""
    with ThreadPoolExecutor(workers) as pool:
        waiting = {case: pool.submit(attempt, *case) for case in cases}
        wrong = {case: error for case, done in waiting.items() if (error := done.exception())}
    assert not wrong, wrong


class Plan:
    """What happens to the first attempt at each version below a key."""

    def __init__(self, fault: str, timing: str, meanwhile: Callable[[], object] | None = None) -> None:
        self.fault, self.timing, self.meanwhile = fault, timing, meanwhile
        self.seen: dict[str, int] = {}
        self.statuses: list[int] = []
        self.open = 0
        self.lock = threading.Condition()

    def __call__(self, version: str, behind: Callable[[], servers.Answer]) -> servers.Answer:
        with self.lock:
            self.seen[version] = self.seen.get(version, 0) + 1
            spoilt = self.seen[version] == 1
            self.open += 1
        try:
            return self.spoil(behind) if spoilt else behind()
        finally:
            with self.lock:
                self.open -= 1
                self.lock.notify_all()

    def spoil(self, behind: Callable[[], servers.Answer]) -> servers.Answer:
        answer = None
        if self.timing == "after":
            answer = behind()
            self.statuses.append(answer.status)
            if self.meanwhile is not None:
                self.meanwhile()
        if self.fault == "dropped":
            return servers.DROPPED
        if self.fault == "delayed":
            time.sleep(DELAY)
            # A request that was held back reaches the store when the client has long tried again.
            return answer or behind()
        return servers.Answer(int(self.fault), {}, b"<Error><Code>InternalError</Code></Error>")

    def settle(self) -> None:
        """Wait until nothing is under way any more."""
        with self.lock:
            assert self.lock.wait_for(lambda: self.open == 0, 30)


class Answered(NamedTuple):
    """What the store does with an attempt at a version, and the status that it answers."""

    is_done: bool
    #: A status; `None` for a connection that breaks, 200 for the truth.
    status: int | None


class Denials:
    """The answers to attempts at versions below a key: the last entry holds for all that follow."""

    def __init__(self, *attempts: Answered, is_read: bool = True) -> None:
        self.attempts, self.is_read = attempts, is_read
        #: Requests for each version in order: `put` and `get`.
        self.seen: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def __call__(self, version: str, behind: Callable[[], servers.Answer]) -> servers.Answer:
        with self.lock:
            number = self.seen.setdefault(version, []).count("put")
            self.seen[version].append("put")
        now = self.attempts[min(number, len(self.attempts) - 1)]
        answer = behind() if now.is_done else servers.Answer(404, {}, b"")
        if now.status is None:
            return servers.DROPPED
        return answer if now.status == 200 else denial(now.status)

    def look(self, version: str, behind: Callable[[], servers.Answer]) -> servers.Answer:
        """Answer a read of a version that was tried."""
        with self.lock:
            if version not in self.seen:
                return behind()
            self.seen[version].append("get")
        return behind() if self.is_read else denial(403)


def denial(status: int) -> servers.Answer:
    code = {401: "Unauthorized", 403: "ExpiredToken", 404: "NoSuchBucket", 500: "InternalError"}.get(status, "SlowDown")
    return servers.Answer(status, {"Content-Type": "application/xml"}, f"<Error><Code>{code}</Code></Error>".encode())


class Saboteur:
    """A proxy that does what plans say."""

    def __init__(self, cloud: servers.Cloud) -> None:
        self.bucket, self.root, self._options = cloud.bucket, cloud.root, cloud.options
        self.name = {"s3": "s3", "az": "azure", "gs": "gcs"}[cloud.root.partition(":")[0]]
        self.plans: dict[str, Plan | Denials] = {}
        # Tests of several tiers try the same cases, each on a table of its own.
        self._numbers = itertools.count()
        cloud.proxy.disturb = self.disturb

    def disturb(self, request: str, behind: Callable[[], servers.Answer]) -> servers.Answer:
        request = urllib.parse.unquote(request)
        if (found := COMMIT.match(request)) and (plan := self.plans.get(found[1])):
            return plan(found[2], behind)
        if (found := LOOK.match(request)) and isinstance(plan := self.plans.get(found[1]), Denials):
            return plan.look(found[2], behind)
        return behind()

    def options(self, plan: Plan) -> dict[str, str]:
        # The client's own repetition of a request is one way to a second commit, ours another.
        retries = {"dropped": "0", "500": "0", "503": "2", "429": "2", "delayed": "4"}[plan.fault]
        quick = {"max_retries": retries, "backoff_config.init_backoff": "5ms", "backoff_config.max_backoff": "50ms"}
        if plan.fault == "delayed":
            quick["timeout"] = f"{round(PATIENCE * 1000)}ms"
        return self._options(**quick)

    def case(self, name: str, folder: pathlib.Path, plan: Plan | Denials) -> tuple[str, str]:
        """Return key and URL of a new copy of a folder to which the plan applies."""
        key = f"ambiguous/{name}-{next(self._numbers)}"
        if folder.exists():
            self.bucket.upload(folder, f"{key}/t")
        self.plans[key] = plan
        return key, f"{self.root}/{key}/t"

    def log(self, key: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the commits of the table at a key, as another client reads them."""
        paths = self.bucket.keys(f"{key.rstrip('/')}/_delta_log")
        commits = [path for path in paths if re.search(r"_delta_log/\d{20}\.json$", path)]
        return [(int(path[-25:-5]), commit_info(self.bucket.get(path))) for path in commits]


@pytest.fixture(scope="module")
def saboteur(cloud) -> Saboteur:
    return Saboteur(cloud)


def made_once(saboteur: Saboteur, quiet: Callable[[str], Expected], name: str, fault: str, timing: str) -> None:
    """Run an operation whose commits meet a fault, and compare with the same operation undisturbed."""
    expected = quiet(name)
    plan = Plan(fault, timing)
    key, url = saboteur.case(f"{name}-{fault}-{timing}".replace(" ", "_"), expected.folder, plan)
    before = {version for version, _ in saboteur.log(f"{key}/t")} if name != "clone" else set()
    table = OPERATIONS[name][1](Place(url, {"storage_options": saboteur.options(plan)}))
    plan.settle()
    assert plan.seen, "the fault happened"
    assert table.version() == expected.version
    assert facts(table) == expected[2:]
    commits = saboteur.log(table.table_uri.removeprefix(f"{saboteur.root}/"))
    assert operations(commits) == expected.operations
    made = {version: info["txnId"] for version, info in commits if version not in before}
    assert len(set(made.values())) == len(made)
    assert {f"{version:020}" for version in made} == set(plan.seen), "each attempt is one commit"
    if timing == "after":
        assert all(200 <= status < 300 for status in plan.statuses)
        assert len(plan.statuses) == len(plan.seen), "each was there before its answer was lost"


def test_the_clouds_together_see_every_operation_and_each_of_them_every_fault():
    shares = {cloud: in_turn(cloud, list(OPERATIONS), CASES) for cloud in CLOUDS}
    assert {name for share in shares.values() for name, _ in share} == set(OPERATIONS)
    for share in shares.values():
        assert {case for _, case in share} == {(fault, timing) for fault in FAULTS for timing in TIMINGS}


def test_a_commit_without_a_clear_answer_is_made_once(saboteur, quiet):
    share = [(name, *case) for name, case in in_turn(saboteur.name, list(OPERATIONS), CASES)]
    for name, _, _ in share:
        quiet(name)
    all_at_once(lambda *case: made_once(saboteur, quiet, *case), share)


@pytest.mark.parametrize("cloud", ["gcs"], indirect=True)
@pytest.mark.parametrize("name", ["clone", "convert"])
def test_an_operation_that_takes_no_store_of_python_is_made_once_after_every_fault(saboteur, quiet, name):
    quiet(name)
    all_at_once(lambda *case: made_once(saboteur, quiet, name, *case), CASES)


@pytest.mark.proof
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_made_once_after_every_fault_on_every_cloud(saboteur, quiet, name):
    quiet(name)
    all_at_once(lambda *case: made_once(saboteur, quiet, name, *case), CASES, workers=5)


#: Repetitions of the client, of which a commit must have none.
REPEATING = {"max_retries": "3", "backoff_config.init_backoff": "5ms", "backoff_config.max_backoff": "20ms"}
DONE_THEN_DENIED = {
    f"{first or 'dropped'} then {then}": (Answered(True, first), Answered(False, then))
    for first in (500, 503, None)
    for then in (401, 403, 404)
} | {f"{status} after it was done": (Answered(True, status), Answered(False, status)) for status in (401, 403, 404)}
#: One operation of each way to write: data, change files, vectors, metadata alone, a new table.
SOME = ["append", "update", "delete by vectors", "add columns", "create by writing"]


def objects(saboteur: Saboteur, key: str) -> set[str]:
    """Return the data files of a table."""
    return {path for path in saboteur.bucket.keys(f"{key}/t/") if "_delta_log" not in path}


def made_though_denied(saboteur: Saboteur, quiet: Callable[[str], Expected], name: str, case: str) -> None:
    """A token that expires, or a policy that arrives late, between a request and its repetition."""
    expected = quiet(name)
    plan = Denials(*DONE_THEN_DENIED[case])
    key, url = saboteur.case(f"{name}-{case}".replace(" ", "_"), expected.folder, plan)
    table = OPERATIONS[name][1](Place(url, {"storage_options": saboteur._options(**REPEATING)}))
    assert plan.seen
    assert facts(table) == expected[2:]
    assert operations(saboteur.log(f"{key}/t")) == expected.operations


def test_a_commit_that_was_made_and_then_denied_is_made(saboteur, quiet):
    share = in_turn(saboteur.name, SOME, list(DONE_THEN_DENIED))
    assert {name for name, _ in share} == set(SOME)
    for name in SOME:
        quiet(name)
    all_at_once(lambda *case: made_though_denied(saboteur, quiet, *case), share)


@pytest.mark.proof
@pytest.mark.parametrize("name", SOME)
def test_every_kind_of_commit_that_was_made_and_then_denied_is_made(saboteur, quiet, name):
    quiet(name)
    all_at_once(lambda *case: made_though_denied(saboteur, quiet, *case), [(name, case) for case in DONE_THEN_DENIED])


def denied(saboteur: Saboteur, quiet: Callable[[str], Expected], name: str, status: int) -> None:
    """Nothing was done, and the answer says so."""
    expected = quiet(name)
    plan = Denials(Answered(False, status))
    key, url = saboteur.case(f"{name}-denied-{status}".replace(" ", "_"), expected.folder, plan)
    before = objects(saboteur, key)
    with pytest.raises(deltafast.StorageError, match=r"no such bucket|access denied") as caught:
        OPERATIONS[name][1](Place(url, {"storage_options": saboteur._options(**REPEATING)}))
    assert "credentials" in str(caught.value)
    assert "\n" not in str(caught.value)
    # One attempt, and one look; the operation itself may have looked before.
    assert [asked for version in plan.seen.values() for asked in version] == ["put", "get"]
    assert objects(saboteur, key) == before
    assert not set(plan.seen) & {f"{version:020}" for version, _ in saboteur.log(f"{key}/t")}


DENIALS = [401, 403, 404]


def test_a_denial_that_is_one_says_so_and_leaves_nothing(saboteur, quiet):
    for name, status in in_turn(saboteur.name, SOME, DENIALS):
        denied(saboteur, quiet, name, status)


@pytest.mark.proof
@pytest.mark.parametrize("status", DENIALS)
@pytest.mark.parametrize("name", SOME)
def test_every_denial_of_every_kind_of_commit_says_so_and_leaves_nothing(saboteur, quiet, name, status):
    denied(saboteur, quiet, name, status)


def unread(saboteur: Saboteur, quiet: Callable[[str], Expected], name: str, case: tuple[bool, int | None]) -> None:
    """The attempt is not answered, and the version cannot be read."""
    expected = quiet(name)
    is_done, first = case
    plan = Denials(Answered(is_done, first), Answered(False, 403), is_read=False)
    key, url = saboteur.case(f"{name}-unread-{first}-{is_done}".replace(" ", "_"), expected.folder, plan)
    before = objects(saboteur, key)
    with pytest.raises(deltafast.CommitUnknownError, match=r"cannot be found out: access denied"):
        OPERATIONS[name][1](Place(url, {"storage_options": saboteur._options(**REPEATING)}))
    assert objects(saboteur, key) > before, "the new files stay"
    del saboteur.plans[key]
    table = DeltaTable(url, storage_options=saboteur._options())
    if is_done:
        assert facts(table) == expected[2:]
    else:
        assert table.version() == expected.version - 1
        assert table.to_pyarrow_table().num_rows > 0


UNREAD = ["append", "update", "delete by vectors"]
UNANSWERED = [(is_done, first) for is_done in (True, False) for first in (500, None, 403)]


def test_where_a_version_cannot_be_read_nothing_is_deleted(saboteur, quiet):
    share = in_turn(saboteur.name, UNREAD, UNANSWERED)
    assert {name for name, _ in share} == set(UNREAD)
    for name in UNREAD:
        quiet(name)
    all_at_once(lambda *case: unread(saboteur, quiet, *case), share)


@pytest.mark.proof
@pytest.mark.parametrize("name", UNREAD)
def test_where_a_version_cannot_be_read_nothing_is_deleted_by_any_operation(saboteur, quiet, name):
    quiet(name)
    all_at_once(lambda *case: unread(saboteur, quiet, *case), [(name, case) for case in UNANSWERED])


def test_the_client_does_not_repeat_a_commit_by_itself(saboteur, quiet):
    """Its repetition would be answered for the first attempt; the version is read between any two."""
    expected = quiet("append")

    def attempt(status: int | None) -> None:
        plan = Denials(Answered(False, status), Answered(False, status), Answered(True, 200))
        key, url = saboteur.case(f"once-{status}", expected.folder, plan)
        table = OPERATIONS["append"][1](Place(url, {"storage_options": saboteur._options(**REPEATING)}))
        assert facts(table) == expected[2:]
        asked = next(iter(plan.seen.values()))
        assert asked[:5] == ["put", "get", "put", "get", "put"]
        assert asked.count("put") == 3
        assert operations(saboteur.log(f"{key}/t")) == expected.operations

    all_at_once(attempt, [(500,), (503,), (429,), (None,)])


def deleted_meanwhile(saboteur: Saboteur, quiet: Callable[[str], Expected], name: str, fault: str) -> None:
    """A commit that was made, then built upon, must not be made again for want of an answer."""
    expected = quiet(name)

    def delete() -> None:
        direct = saboteur.bucket.options()
        write_deltalake(url, rows(0, 0), mode="overwrite", storage_options=direct)

    plan = Plan(fault, "after", meanwhile=delete)
    key, url = saboteur.case(f"{name}-deleted-{fault}", expected.folder, plan)
    OPERATIONS[name][1](Place(url, {"storage_options": saboteur.options(plan)}))
    plan.settle()
    commits = saboteur.log(f"{key}/t")
    assert [version for version, _ in commits] == list(range(expected.version + 2))
    table = DeltaTable(url, storage_options=saboteur.bucket.options())
    assert table.version() == expected.version + 1
    assert table.count() == 0


DELETED = ["append", "replaceWhere", "update by vectors"]


def test_rows_that_others_deleted_meanwhile_stay_deleted(saboteur, quiet):
    share = in_turn(saboteur.name, DELETED, FAULTS)
    assert {name for name, _ in share} == set(DELETED)
    for name in DELETED:
        quiet(name)
    all_at_once(lambda *case: deleted_meanwhile(saboteur, quiet, *case), share)


@pytest.mark.proof
@pytest.mark.parametrize("name", DELETED)
def test_rows_that_others_deleted_meanwhile_stay_deleted_by_any_operation(saboteur, quiet, name):
    quiet(name)
    all_at_once(lambda *case: deleted_meanwhile(saboteur, quiet, *case), [(name, fault) for fault in FAULTS])


@pytest.mark.parametrize("cloud", ["gcs"], indirect=True)
def test_two_writers_of_whom_both_lose_their_answers_both_commit_once(saboteur, quiet):
    expected = quiet("append")

    def spoil_all(fault):
        plan = Plan(fault, "after")
        plan.seen = _Never()
        return plan

    plan = spoil_all("dropped")
    key, url = saboteur.case("two-writers", expected.folder, plan)

    def write(number: int) -> None:
        write_deltalake(url, rows(number, number + 1, "c"), mode="append", storage_options=saboteur.options(plan))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(1000, 1008)))
    table = DeltaTable(url, storage_options=saboteur.bucket.options())
    found = table.to_pyarrow_table(filters="p = 'c'").column("id").to_pylist()
    assert sorted(found) == list(range(1000, 1008))
    ids = [info["txnId"] for _, info in saboteur.log(f"{key}/t")]
    assert len(ids) == len(set(ids)) == 10


class _Never(dict):
    """Forgets what it is told, so that every attempt is the first."""

    def __setitem__(self, key, value):
        super().__setitem__(key, 1)

    def get(self, key, default=None):
        return default


# --- stores made in Python: in memory, and on a local disk -------------------------------------------


class LosingAnswers:
    """A layer above a store that loses the answer to the first attempt at each version."""

    def __init__(self, store: Any, root: str, fault: type[Exception], timing: str) -> None:
        super().__init__(store, root)
        self.fault, self.timing = fault, timing
        self.seen: set[str] = set()
        self.late: list[threading.Thread] = []

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if not re.search(r"_delta_log/\d{20}\.json$", path) or path in self.seen:
            return super().put_if_absent(path, data)
        self.seen.add(path)
        if self.timing == "after":
            assert super().put_if_absent(path, data)
        elif self.timing == "late":
            put = super().put_if_absent
            self.late.append(threading.Timer(0.03, lambda: put(path, data)))
            self.late[-1].start()
        message = "no answer"
        raise self.fault(message)


class UnreliableMemory(LosingAnswers, ObstoreStore):
    """Objects in memory."""


class UnreliableDisk(LosingAnswers, FsspecStore):
    """A local disk."""


def on_disk(root: pathlib.Path, fault: type[Exception], timing: str) -> UnreliableDisk:
    return UnreliableDisk(fsspec.filesystem("file"), str(root), fault, timing)


#: What clients raise for the faults of a network, of which none says whether the object was made.
EXCEPTIONS = {
    "delayed": TimeoutError,
    "dropped": ConnectionResetError,
    "500": OSError,
    "503": obstore.exceptions.GenericError,
    "429": RuntimeError,
}
#: Of those that take stores made in Python.
STORED = [name for name in OPERATIONS if name not in ("clone", "convert")]


@pytest.mark.parametrize("name", STORED)
def test_every_operation_is_made_once_after_every_fault_of_a_store_in_memory(quiet, name):
    """The address is that of a cloud, so that a writer waits and reads as it does there."""
    expected = quiet(name)
    address = "s3://bucket/t"

    def attempt(fault: str, timing: str) -> None:
        memory = obstore.store.MemoryStore()
        for file in sorted(path for path in expected.folder.rglob("*") if path.is_file()):
            obstore.put(memory, f"t/{file.relative_to(expected.folder).as_posix()}", file.read_bytes())
        # A vacuum deletes what is older than the instant at which it begins.
        time.sleep(0.01)
        before = set(memory_log(memory))
        store = UnreliableMemory(memory, address, EXCEPTIONS[fault], timing)
        table = OPERATIONS[name][1](Place(address, {"store": store}))
        for thread in store.late:
            thread.join()
        assert table.version() == expected.version
        assert facts(table) == expected[2:]
        commits = memory_log(memory)
        assert operations(list(commits.items())) == expected.operations
        made = {version: info["txnId"] for version, info in commits.items() if version not in before}
        assert len(set(made.values())) == len(made) > 0
        assert {f"_delta_log/{version:020}.json" for version in made} == store.seen, "each attempt is one commit"

    all_at_once(attempt, [(fault, timing) for timing in ("late", *TIMINGS) for fault in EXCEPTIONS])


def memory_log(memory: Any) -> dict[int, dict[str, Any]]:
    """Return the commits of the table by version, as another client reads them."""
    paths = sorted(entry["path"] for entry in obstore.list(memory, "t/_delta_log").collect())
    commits = [path for path in paths if re.search(r"/\d{20}\.json$", path)]
    return {int(path[-25:-5]): commit_info(bytes(obstore.get(memory, path).bytes())) for path in commits}


DISK_FAULTS = [TimeoutError, ConnectionResetError, OSError, RuntimeError]


def made_once_on_disk(expected: Expected, name: str, root: pathlib.Path, fault: type[Exception], timing: str) -> None:
    """Run an operation on a local disk whose answers are lost."""
    copy(expected.folder, root)
    store = on_disk(root, fault, timing)
    table = OPERATIONS[name][1](Place(str(root), {"store": store}))
    for thread in store.late:
        thread.join()
    assert store.seen
    assert table.version() == expected.version
    assert facts(DeltaTable(root)) == expected[2:]
    assert operations(commits_of(root)) == expected.operations
    assert not list(root.rglob("*.tmp"))


@pytest.mark.parametrize("name", STORED)
def test_a_commit_to_a_local_disk_without_a_clear_answer_is_made_once(quiet, name, tmp_path):
    """The operations take turns with the faults."""
    for number, timing in enumerate(("late", *TIMINGS)):
        fault = DISK_FAULTS[(STORED.index(name) + number) % len(DISK_FAULTS)]
        made_once_on_disk(quiet(name), name, tmp_path / timing, fault, timing)


@pytest.mark.proof
@pytest.mark.parametrize("timing", ["late", *TIMINGS])
@pytest.mark.parametrize("name", STORED)
def test_every_operation_is_made_once_after_every_fault_of_a_local_disk(quiet, name, timing, tmp_path):
    for fault in DISK_FAULTS:
        made_once_on_disk(quiet(name), name, tmp_path / fault.__name__, fault, timing)


@pytest.mark.parametrize("fault", [PermissionError, FileNotFoundError, NotImplementedError])
@pytest.mark.parametrize("name", ["append", "update", "create by writing"])
def test_a_python_store_that_denies_what_it_did_has_committed(quiet, name, fault, tmp_path):
    expected = quiet(name)
    root = tmp_path / "done"
    copy(expected.folder, root)
    OPERATIONS[name][1](Place(str(root), {"store": on_disk(root, fault, "after")}))
    assert facts(DeltaTable(root)) == expected[2:]
    assert operations(commits_of(root)) == expected.operations

    root = tmp_path / "denied"
    copy(expected.folder, root)
    before = {path for path in root.rglob("*") if path.is_file()}
    with pytest.raises(deltafast.DeltaError, match=r"no answer|no such folder"):
        OPERATIONS[name][1](Place(str(root), {"store": on_disk(root, fault, "before")}))
    assert {path for path in root.rglob("*") if path.is_file()} == before


class Unpublished(FolderCommitter):
    """A catalog that denies what it ratified."""

    def ratify(self, commit, text):
        assert super().ratify(commit, text)
        message = "the token has expired"
        raise PermissionError(message)


def test_a_catalog_that_denies_what_it_ratified_has_committed(tmp_path):
    folder = str(tmp_path / "t")
    known = tmp_path / "catalog"
    table = DeltaTable.create(folder, SCHEMA, committer=FolderCommitter(known))
    write_deltalake(DeltaTable(folder, committer=Unpublished(known)), rows(0, 5), mode="append")
    table.update_incremental()
    assert (table.version(), table.count()) == (1, 5)
