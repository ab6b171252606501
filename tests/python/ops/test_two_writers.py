"""Two writers at one table: whoever comes second either follows or is refused by name, and the rows tell that it is so.

Handle A is opened; B commits; then A does what it was about to do. Each cell of `VERDICTS` says what becomes of A:
delta-spark's answers, but for those with a star, where statistics show that B's files cannot have been what A read.
After each cell the table must be what the operations leave one after the other: in the order of the log, or where the
cell says so (`<`) in the other, which `WriteSerializable` allows for blind appends.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
import urllib.parse
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deltafast
from deltafast import CommitProperties, DeltaTable, Field, Transaction, convert_to_deltalake, write_deltalake
from deltafast.exceptions import (
    CommitFailedError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    DeltaError,
    InvalidArgumentError,
    MetadataChangedError,
    ProtocolChangedError,
)
from support import one_in
from tablekit import dv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = tuple[int, str, int]


@dataclass(frozen=True)
class State:
    """What a table is: the model that operations are compared with."""

    rows: frozenset[Row]
    properties: frozenset[tuple[str, str]] = frozenset()
    columns: tuple[str, ...] = ("id", "p", "v", "w")
    nullable: bool = True

    def without(self, test: Callable[[Row], bool]) -> State:
        return replace(self, rows=frozenset(row for row in self.rows if not test(row)))

    def plus(self, *rows: Row) -> State:
        return replace(self, rows=self.rows | set(rows))

    def changed(self, test: Callable[[Row], bool], v: int) -> State:
        return replace(self, rows=frozenset((*row[:2], v) if test(row) else row for row in self.rows))

    def property(self, key: str, value: str) -> State:
        return replace(self, properties=frozenset({*self.properties, (key, value)}))


FIRST = frozenset({(1, "a", 10), (2, "a", 20)})
BASE = State(FIRST | {(3, "a", 30), (4, "a", 40), (5, "b", 50), (6, "b", 60)})


def data(*rows: Row) -> pa.Table:
    ids, parts, values = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(parts), "v": pa.array(values, pa.int64())})


def in_partition(p: str) -> Callable[[Row], bool]:
    return lambda row: row[1] == p


def any_row(_: Row) -> bool:
    return True


def of_id(number: int) -> Callable[[Row], bool]:
    return lambda row: row[0] == number


@dataclass(frozen=True)
class Operation:
    """Something done to a table, and what it does to the model. `who` keeps two runs of one operation apart."""

    run: Callable[[DeltaTable, int], Any]
    effect: Callable[[State, int], State]


def write(*rows: tuple[int, str], **options: Any) -> Callable[[DeltaTable, int], None]:
    def run(table: DeltaTable, who: int) -> None:
        write_deltalake(table, data(*((who + n, p, who) for n, p in rows)), **options)

    return run


def new(who: int, *rows: tuple[int, str]) -> list[Row]:
    return [(who + n, p, who) for n, p in rows]


def once(table: DeltaTable, who: int) -> None:
    properties = CommitProperties(app_transactions=[Transaction("app", who)])
    write_deltalake(table, data(*new(who, (0, "a"))), mode="append", commit_properties=properties)


def create(mode: Any) -> Callable[[DeltaTable, int], Any]:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("w", pa.int64())])

    def run(table: DeltaTable, who: int) -> DeltaTable:
        return DeltaTable.create(table.table_uri, deltafast.Schema.from_arrow(schema), mode=mode, partition_by=["p"])

    return run


def clone(table: DeltaTable, who: int) -> None:
    table.clone(f"{table.table_uri.removeprefix('file://').rstrip('/')}-clone-{who}")


def delete(predicate: str | None) -> Callable[[DeltaTable, int], Any]:
    return lambda table, _who: table.delete(predicate)


def update(predicate: str) -> Callable[[DeltaTable, int], Any]:
    return lambda table, who: table.update({"v": str(who)}, predicate=predicate)


def merge(table: DeltaTable, who: int) -> None:
    """Give row 2 another value, and add one."""
    merger = table.merge(data((2, "a", who), (who, "a", who)), "t.id = s.id", "s", "t")
    merger.when_matched_update({"v": "s.v"}).when_not_matched_insert({n: f"s.{n}" for n in ("id", "p", "v")}).execute()


def keep(state: State, who: int) -> State:
    return state


#: Values from 100 on are the first writer's, from 200 on the second's.
OPERATIONS = {
    "append a": Operation(write((0, "a"), mode="append"), lambda s, w: s.plus(*new(w, (0, "a")))),
    "append b": Operation(write((0, "b"), mode="append"), lambda s, w: s.plus(*new(w, (0, "b")))),
    "app txn": Operation(once, lambda s, w: s.plus(*new(w, (0, "a")))),
    "overwrite": Operation(write((0, "a"), mode="overwrite"), lambda s, w: s.without(any_row).plus(*new(w, (0, "a")))),
    "replace a": Operation(
        write((0, "a"), mode="overwrite", predicate="p = 'a'"),
        lambda s, w: s.without(in_partition("a")).plus(*new(w, (0, "a"))),
    ),
    "replace b": Operation(
        write((0, "b"), mode="overwrite", predicate="p = 'b'"),
        lambda s, w: s.without(in_partition("b")).plus(*new(w, (0, "b"))),
    ),
    "replace id": Operation(
        lambda table, who: write_deltalake(table, data((1, "a", who)), mode="overwrite", predicate="id = 1"),
        lambda s, w: s.without(of_id(1)).plus((1, "a", w)),
    ),
    "dynamic a": Operation(
        write((0, "a"), mode="overwrite", partition_overwrite_mode="dynamic"),
        lambda s, w: s.without(in_partition("a")).plus(*new(w, (0, "a"))),
    ),
    "delete a": Operation(delete("p = 'a'"), lambda s, _w: s.without(in_partition("a"))),
    "delete all": Operation(delete(None), lambda s, _w: s.without(any_row)),
    "delete id": Operation(delete("id = 1"), lambda s, _w: s.without(of_id(1))),
    "update id": Operation(update("id = 2"), lambda s, w: s.changed(of_id(2), w)),
    "update b": Operation(update("p = 'b'"), lambda s, w: s.changed(in_partition("b"), w)),
    "merge": Operation(merge, lambda s, w: s.changed(of_id(2), w).plus((w, "a", w))),
    "optimize": Operation(lambda table, _who: table.optimize.compact(), keep),
    "set property": Operation(
        lambda table, who: table.alter.set_table_properties({"mine": str(who)}),
        lambda s, w: s.property("mine", str(w)),
    ),
    "add column": Operation(
        lambda table, who: table.alter.add_columns(Field(f"c{who}", "long")),
        lambda s, w: replace(s, columns=(*s.columns, f"c{w}")),
    ),
    "add check": Operation(
        lambda table, who: table.alter.add_constraint({f"c{who}": "id > 0"}),
        lambda s, w: s.property(f"delta.constraints.c{w}", "id > 0"),
    ),
    "drop column": Operation(
        lambda table, _who: table.alter.drop_columns("w"),
        lambda s, _w: replace(s, columns=tuple(c for c in s.columns if c != "w")),
    ),
    "not null": Operation(
        lambda table, _who: table.alter.set_column_not_null("id"), lambda s, _w: replace(s, nullable=False)
    ),
    "add feature": Operation(lambda table, _who: table.alter.add_feature("vacuumProtocolCheck", True), keep),
    "restore": Operation(lambda table, _who: table.restore(0), lambda _s, _w: State(FIRST)),
    "vacuum": Operation(
        lambda table, _who: table.vacuum(1, dry_run=False, enforce_retention_duration=False, full=True), keep
    ),
    "checkpoint": Operation(lambda table, _who: table.create_checkpoint(), keep),
    "compact": Operation(lambda table, _who: table.compact_logs(0, 1), keep),
    "cleanup": Operation(lambda table, _who: table.cleanup_metadata(), keep),
    "repair": Operation(lambda table, _who: table.repair(), keep),
    "clone": Operation(clone, keep),
    "create": Operation(create("error"), keep),
    "convert": Operation(lambda table, _who: convert_to_deltalake(table.table_uri), keep),
    "ignore": Operation(create("ignore"), keep),
    "put over": Operation(
        create("overwrite"), lambda _s, _w: State(frozenset(), columns=("id", "p", "v", "w"), nullable=True)
    ),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Tables at both isolation levels, and one with vectors, to be copied: two files in a, one in b, and an orphan."""
    out = {}
    for kind, properties in (
        ("Serializable", {}),
        ("WriteSerializable", {}),
        ("vectors", {"delta.isolationLevel": "Serializable", "delta.enableDeletionVectors": "true"}),
    ):
        path = tmp_path_factory.mktemp("base") / kind
        configuration = {"delta.isolationLevel": kind, "delta.columnMapping.mode": "name"} | properties
        rows = data((1, "a", 10), (2, "a", 20)).append_column("w", pa.array([0, 0], pa.int64()))
        write_deltalake(path, rows, partition_by="p", configuration=configuration)
        write_deltalake(path, data((3, "a", 30), (4, "a", 40), (5, "b", 50), (6, "b", 60)), mode="append")
        orphan = path / "orphan.parquet"
        orphan.write_bytes(b"PAR1")
        os.utime(orphan, (time.time() - 86400,) * 2)
        out[kind] = path
    return out


def state(path: Path) -> State:
    table = DeltaTable(path)
    rows = frozenset(tuple(row.values()) for row in table.to_pyarrow_table(columns=["id", "p", "v"]).to_pylist())
    assert table.count() == len(rows)
    theirs = {key for key in table.metadata().configuration if not key.startswith("delta.") or "constraints" in key}
    properties = frozenset((key, table.metadata().configuration[key]) for key in theirs)
    fields = table.schema().fields
    nullable = next(field.nullable for field in fields if field.name == "id")
    return State(rows, properties, tuple(field.name for field in fields), nullable)


ERRORS = {
    "CA": ConcurrentAppendError,
    "DR": ConcurrentDeleteReadError,
    "DD": ConcurrentDeleteDeleteError,
    "CT": ConcurrentTransactionError,
    "MC": MetadataChangedError,
    "PC": ProtocolChangedError,
    "IA": InvalidArgumentError,
}


def verdict(work: Callable[[], Any]) -> str:
    try:
        work()
    except tuple(ERRORS.values()) as error:
        return next(name for name, kind in ERRORS.items() if type(error) is kind)
    return "ok"


# --- everything against everything -------------------------------------------------------------------

#: Operations that look at the newest version themselves, or change nothing: what the handle saw before does not matter
#: to them, and they lose to nobody here.
LOOK_AGAIN = ("restore", "vacuum", "checkpoint", "compact", "cleanup", "repair", "clone", "ignore", "put over")
#: And these change nothing that others could have read.
CHANGE_NOTHING = ("vacuum", "checkpoint", "compact", "cleanup", "repair", "clone", "create", "convert", "ignore")
REFUSED = {"create": "IA", "convert": "IA"}

LOSERS = (
    "append a",
    "append b",
    "app txn",
    "overwrite",
    "replace a",
    "replace b",
    "replace id",
    "dynamic a",
    "delete a",
    "delete all",
    "delete id",
    "update id",
    "update b",
    "set property",
    "add column",
    "add check",
    "drop column",
    "not null",
    "add feature",
    "optimize",
    "merge",
)

#: Rows: what B commits; columns: what A tries, in the order of `LOSERS`. CA append, DR delete-read, CT application,
#: MC metadata, PC protocol. With a star: delta-spark, which does not look at statistics, says CA.
VERDICTS = {
    #                ap-a ap-b txn ov-* re-a re-b re-i dy-a de-a de-* de-i up-i up-b pr col chk dro nul fe op me
    "append a":     "ok   ok   ok  CA   CA   ok   ok*  CA   CA   CA   ok*  ok*  ok   ok ok  CA  ok  CA  ok ok ok*",
    "append b":     "ok   ok   ok  CA   ok   CA   ok*  ok   ok   CA   ok*  ok*  CA   ok ok  CA  ok  CA  ok ok ok*",
    "app txn":      "ok   ok   CT  CA   CA   ok   ok*  CA   CA   CA   ok*  ok*  ok   ok ok  CA  ok  CA  ok ok ok*",
    "overwrite":    "ok   ok   ok  CA   CA   DR   DR*  CA   CA   CA   DR*  DR*  DR   ok ok  CA  ok  CA  ok DR DR*",
    "replace a":    "ok   ok   ok  CA   CA   ok   DR*  CA   CA   CA   DR*  DR*  ok   ok ok  CA  ok  CA  ok DR DR*",
    "replace b":    "ok   ok   ok  CA   ok   CA   ok*  ok   ok   CA   ok*  ok*  CA   ok ok  CA  ok  CA  ok ok ok*",
    "replace id":   "ok   ok   ok  CA   CA   ok   CA   CA   CA   CA   CA   CA   ok   ok ok  CA  ok  CA  ok DR CA",
    "dynamic a":    "ok   ok   ok  CA   CA   ok   DR*  CA   CA   CA   DR*  DR*  ok   ok ok  CA  ok  CA  ok DR DR*",
    "delete a":     "ok   ok   ok  DR   DR   ok   DR   DR   DR   DR   DR   DR   ok   ok ok  DR  ok  DR  ok DR DR",
    "delete all":   "ok   ok   ok  DR   DR   DR   DR   DR   DR   DR   DR   DR   DR   ok ok  DR  ok  DR  ok DR DR",
    "delete id":    "ok   ok   ok  CA   CA   ok   DR*  CA   CA   CA   DR*  CA   ok   ok ok  CA  ok  CA  ok DR CA",
    "update id":    "ok   ok   ok  CA   CA   ok   CA   CA   CA   CA   CA   CA   ok   ok ok  CA  ok  CA  ok DR CA",
    "merge":        "ok   ok   ok  CA   CA   ok   CA   CA   CA   CA   CA   CA   ok   ok ok  CA  ok  CA  ok DR CA",
    "update b":     "ok   ok   ok  CA   ok   CA   ok*  ok   ok   CA   ok*  ok*  CA   ok ok  CA  ok  CA  ok ok ok*",
    "optimize":     "ok   ok   ok  CA   CA   ok   CA   CA   CA   CA   CA   CA   ok   ok ok  CA  ok  CA  ok DR CA",
    "restore":      "ok   ok   ok  DR   DR   DR   ok   DR   DR   DR   ok   ok   DR   ok ok  DR  ok  DR  ok DR ok",
    "add feature":  "ok   ok   ok  ok   ok   ok   ok   ok   ok   ok   ok   ok   ok   ok ok  ok  ok  ok  PC ok ok",
    "set property": "MC   MC   MC  MC   MC   MC   MC   MC   MC   MC   MC   MC   MC   MC MC  MC  MC  MC  MC MC MC",
    "add column":   "MC   MC   MC  MC   MC   MC   MC   MC   MC   MC   MC   MC   MC   MC MC  MC  MC  MC  MC MC MC",
    "add check":    "MC   MC   MC  MC   MC   MC   MC   MC   MC   MC   MC   MC   MC   MC MC  MC  MC  MC  MC MC MC",
    "drop column":  "MC   MC   MC  MC   MC   MC   MC   MC   MC   MC   MC   MC   MC   MC MC  MC  MC  MC  MC MC MC",
    "not null":     "MC   MC   MC  MC   MC   MC   MC   MC   MC   MC   MC   MC   MC   MC MC  MC  MC  MC  MC MC MC",
    "put over":     "MC   MC   MC  MC   MC   MC   MC   MC   MC   MC   MC   MC   MC   MC MC  MC  MC  MC  MC MC MC",
}  # fmt: skip

#: At WriteSerializable blind appends may come later than they stand in the log (`<`) unless metadata depends on them.
BLIND = {
    "append a":     "ok   ok   ok  ok<  ok<  ok   ok   ok<  ok<  ok<  ok   ok   ok   ok ok  CA  ok  CA  ok ok ok",
    "append b":     "ok   ok   ok  ok<  ok   ok<  ok   ok   ok   ok<  ok   ok   ok<  ok ok  CA  ok  CA  ok ok ok",
    "app txn":      "ok   ok   CT  ok<  ok<  ok   ok   ok<  ok<  ok<  ok   ok   ok   ok ok  CA  ok  CA  ok ok ok",
}  # fmt: skip

#: Where rows are marked by vectors, their file is added again with the bounds that it had.
VECTORS = {("delete id", "replace id"): "CA", ("delete id", "delete id"): "CA"}
#: What is done in another way there.
MARKING = ("delete a", "delete all", "delete id", "update id", "update b", "merge")


def cells(winner: str, level: str = "Serializable") -> dict[str, str]:
    """What becomes of every operation after this one."""
    table = VERDICTS | (BLIND if level == "WriteSerializable" else {})
    given = table[winner].split() if winner in table else ["ok"] * len(LOSERS)
    return dict(zip(LOSERS, given, strict=True)) | dict.fromkeys(LOOK_AGAIN, "ok") | REFUSED


def run_cell(path: Path, winner: str, loser: str, cell: str) -> None:
    mine, other = DeltaTable(path), DeltaTable(path)
    first, second = OPERATIONS[winner], OPERATIONS[loser]
    between = BASE
    if verdict(lambda: first.run(other, 100)) == "ok":
        between = first.effect(BASE, 100)
    else:
        assert winner in REFUSED
    version = DeltaTable(path).version()
    found = verdict(lambda: second.run(mine, 200))
    assert found == cell.rstrip("*<"), f"{winner}, then {loser}: {found}"
    expected = between
    if cell.startswith("ok"):
        expected = first.effect(second.effect(BASE, 200), 100) if cell.endswith("<") else second.effect(between, 200)
    assert state(path) == expected, f"{winner}, then {loser}"
    # An operation that is refused leaves no version and no file.
    if not cell.startswith("ok"):
        assert DeltaTable(path).version() == version
    newest = DeltaTable(path)
    strays = newest.vacuum(0, dry_run=True, enforce_retention_duration=False, full=True)
    assert {name for name in strays if name != "orphan.parquet"} <= named(path), f"{winner}, then {loser}"


def named(path: Path) -> set[str]:
    """Return all files that commits name."""
    lines = [line for file in (path / "_delta_log").glob("0*.json") for line in file.read_text().splitlines()]
    actions = [action for line in map(json.loads, lines) for action in line.values() if "path" in action]
    vectors = [action["deletionVector"]["pathOrInlineDv"] for action in actions if "deletionVector" in action]
    return {urllib.parse.unquote(action["path"]) for action in actions} | set(map(dv.path_of, vectors))


@pytest.mark.slow
@pytest.mark.parametrize("winner", one_in(3, OPERATIONS))
def test_every_operation_after_every_other(base, tmp_path, winner):
    for loser, cell in cells(winner).items():
        path = tmp_path / loser.replace(" ", "-")
        shutil.copytree(base["Serializable"], path)
        run_cell(path, winner, loser, cell)


@pytest.mark.slow
@pytest.mark.parametrize("winner", one_in(3, OPERATIONS))
def test_every_operation_after_every_other_where_blind_appends_may_come_later(base, tmp_path, winner):
    level = "WriteSerializable"
    changing = (
        set(LOSERS)
        if winner in BLIND
        else {"append a", "overwrite", "replace a", "replace id", "delete id", "update b"}
    )
    for loser, cell in cells(winner, level).items():
        if loser in changing:
            path = tmp_path / loser.replace(" ", "-")
            shutil.copytree(base[level], path)
            run_cell(path, winner, loser, cell)


@pytest.mark.slow
@pytest.mark.parametrize("winner", one_in(3, [winner for winner in OPERATIONS if winner in VERDICTS]))
def test_every_operation_alongside_those_that_mark_rows_by_vectors(base, tmp_path, winner):
    for loser, cell in cells(winner).items():
        if winner in MARKING or loser in MARKING:
            path = tmp_path / loser.replace(" ", "-")
            shutil.copytree(base["vectors"], path)
            run_cell(path, winner, loser, VECTORS.get((winner, loser), cell))


def test_every_operation_is_in_the_tables():
    assert set(OPERATIONS) == {*LOSERS, *LOOK_AGAIN, *REFUSED} == {*VERDICTS, *CHANGE_NOTHING}
    assert set(BLIND) <= set(VERDICTS)


def test_a_conflict_names_the_other_commit_and_what_to_do(base, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(base["Serializable"], path)
    mine, other = DeltaTable(path), DeltaTable(path)
    OPERATIONS["append a"].run(other, 100)
    with pytest.raises(
        ConcurrentAppendError, match=r"version 2 \(WRITE\) added the file .*=a/.*; nothing was committed"
    ) as caught:
        OPERATIONS["replace a"].run(mine, 200)
    assert caught.value.version == 2
    # The handle is where it was; on the newest version the operation goes through.
    assert mine.version() == 1
    mine.update_incremental()
    OPERATIONS["replace a"].run(mine, 200)
    assert state(path) == OPERATIONS["replace a"].effect(BASE, 200)


# --- at once -----------------------------------------------------------------------------------------

SCHEMA = deltafast.Schema.from_arrow(pa.schema([("id", pa.int64())]))


def at_once(count: int, work: Callable[[int], Any]) -> Counter[str]:
    """How many threads ended how: `ok`, or the error's class."""
    barrier = threading.Barrier(count)

    def one(n: int) -> str:
        barrier.wait()
        try:
            work(n)
        except DeltaError as error:
            return type(error).__name__
        return "ok"

    with ThreadPoolExecutor(count) as pool:
        return Counter(pool.map(one, range(count)))


def test_of_many_creations_one_wins(tmp_path):
    for n in range(3):
        ends = at_once(16, lambda _, n=n: DeltaTable.create(tmp_path / f"c{n}", SCHEMA))
        assert ends == {"ok": 1, "InvalidArgumentError": 15}
        ends = at_once(16, lambda _, n=n: DeltaTable.create(tmp_path / f"i{n}", SCHEMA, mode="ignore"))
        assert ends == {"ok": 16}
        assert DeltaTable(tmp_path / f"i{n}").version() == 0
        ends = at_once(16, lambda _, n=n: DeltaTable.create(tmp_path / f"o{n}", SCHEMA, mode="overwrite"))
        assert ends["ok"] >= 1
        assert set(ends) <= {"ok", "ProtocolChangedError", "MetadataChangedError"}
        assert DeltaTable(tmp_path / f"o{n}").version() == ends["ok"] - 1


@pytest.mark.parametrize("mode", ["error", "ignore", "append", "overwrite"])
def test_of_many_first_writes_the_mode_says_what_becomes(tmp_path, mode):
    for n in range(3):
        path = tmp_path / str(n)
        ends = at_once(16, lambda who: write_deltalake(path, pa.table({"id": [who]}), mode=mode))  # noqa: B023
        table = DeltaTable(path)
        wanted = {"error": {"ok": 1, "InvalidArgumentError": 15}, "ignore": {"ok": 16}, "append": {"ok": 16}}
        if mode == "overwrite":
            # Who saw no table loses to who made it, who saw one to who wrote to it.
            assert set(ends) <= {"ok", "ProtocolChangedError", "ConcurrentAppendError"}
            assert table.version() == ends["ok"] - 1
        else:
            assert ends == wanted[mode]
        assert table.count() == (16 if mode == "append" else 1)
        left = {file.relative_to(path).as_posix() for file in path.rglob("*.parquet") if "_delta_log" not in str(file)}
        assert left == {*table.files(), *(row["path"] for row in table.tombstones().read_all().to_pylist())}


def test_of_many_conversions_and_clones_one_wins(tmp_path):
    for name, mode in (("a", "error"), ("b", "ignore")):
        (tmp_path / name).mkdir()
        for n in range(4):
            pq.write_table(pa.table({"id": [n]}), tmp_path / name / f"{n}.parquet")
        ends = at_once(16, lambda _, name=name, mode=mode: convert_to_deltalake(tmp_path / name, mode))
        assert ends == ({"ok": 1, "InvalidArgumentError": 15} if mode == "error" else {"ok": 16})
        assert sorted(DeltaTable(tmp_path / name).to_pyarrow_table().column("id").to_pylist()) == [0, 1, 2, 3]
        assert DeltaTable(tmp_path / name).version() == 0
    source = DeltaTable(tmp_path / "a")
    assert at_once(16, lambda _: source.clone(tmp_path / "clone")) == {"ok": 1, "InvalidArgumentError": 15}
    assert DeltaTable(tmp_path / "clone").count() == 4


def test_no_row_is_lost_to_a_clone_in_the_place_of_a_table(base, tmp_path):
    source = DeltaTable(base["Serializable"])
    for n in range(4):
        path = tmp_path / str(n)
        DeltaTable.create(path, source.schema(), partition_by="p")

        def work(who, path=path):
            if who % 2:
                write_deltalake(path, data(*new(100 * who, (0, "a"))), mode="append")
            else:
                source.clone(path, replace=True)

        ends = at_once(8, work)
        assert not set(ends) - {"ok", "InvalidArgumentError", *(kind.__name__ for kind in ERRORS.values())}
        entries = DeltaTable(path).history()
        assert ends["ok"] == len(entries) - 1
        clones = [entry["version"] for entry in entries if entry["operation"] == "CLONE"]
        assert len(clones) <= 1
        assert all(DeltaTable(path, version=version - 1).count() == 0 for version in clones)
        assert DeltaTable(path).count() == len(entries) - 1 - len(clones) + len(BASE.rows) * len(clones)


def test_one_of_many_writers_of_one_application_wins(base, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(base["Serializable"], path)
    handles = [DeltaTable(path) for _ in range(8)]
    ends = at_once(8, lambda n: once(handles[n], 300))
    assert ends == {"ok": 1, "ConcurrentTransactionError": 7}
    assert DeltaTable(path).transaction_version("app") == 300
    assert state(path) == OPERATIONS["app txn"].effect(BASE, 300)


def test_maintenance_by_many_is_one_maintenance(base, tmp_path):
    path = tmp_path / "t"
    shutil.copytree(base["Serializable"], path)
    handles = [DeltaTable(path) for _ in range(8)]

    def work(n: int) -> None:
        names = ("vacuum", "checkpoint", "compact", "cleanup", "repair", "vacuum", "checkpoint", "compact")
        OPERATIONS[names[n]].run(handles[n], n)

    assert at_once(8, work) == {"ok": 8}
    assert state(path) == BASE
    assert not (path / "orphan.parquet").exists()


def test_a_counter_loses_nothing(tmp_path):
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"n": [0]}))
    lost = Counter()

    def work(who: int) -> None:
        table = DeltaTable(path)
        for _ in range(5):
            while True:
                table.update_incremental()
                value = table.to_pyarrow_table().column("n").to_pylist()[0]
                try:
                    write_deltalake(table, pa.table({"n": [value + 1]}), mode="overwrite")
                except CommitFailedError as error:
                    lost[type(error).__name__] += 1
                else:
                    break

    assert at_once(8, work) == {"ok": 8}
    assert DeltaTable(path).to_pyarrow_table().column("n").to_pylist() == [40]
    assert set(lost) <= {"ConcurrentAppendError"}


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_none_of_16_writers_of_a_hot_counter_gives_up_or_loses_an_update(tmp_path, vectors):
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": vectors}
    write_deltalake(path, pa.table({"name": ["other", "hot"], "n": [0, 0]}), configuration=properties)
    writers, each = 16, 5
    lost: list[list[int | None]] = [[] for _ in range(writers)]

    def work(who: int) -> None:
        table = DeltaTable(path)
        for _ in range(each):
            while True:
                table.update_incremental()
                try:
                    assert table.update({"n": "n + 1"}, predicate="name = 'hot'")["num_updated_rows"] == 1
                except CommitFailedError as error:
                    lost[who].append(error.version)
                else:
                    break

    assert at_once(writers, work) == {"ok": writers}
    table = DeltaTable(path)
    assert table.version() == writers * each
    found = sorted(tuple(row.values()) for row in table.to_pyarrow_table().to_pylist())
    assert found == [("hot", writers * each), ("other", 0)]
    # Whoever loses does so to a commit of another, and to each but once: so nobody waits for ever.
    assert all(len(set(versions)) == len(versions) <= (writers - 1) * each for versions in lost)


@pytest.mark.parametrize("tracking", ["false", "true"])
@pytest.mark.parametrize("second", ["delete", "update"])
@pytest.mark.parametrize("first", ["delete", "update"])
def test_changes_of_different_rows_of_one_file_by_vectors_conflict(tmp_path, first, second, tracking):
    # As docs/howto/writers.md says; of different files they do not.
    settings = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": tracking}
    write_deltalake(tmp_path, {"id": list(range(10))}, configuration=settings)
    write_deltalake(tmp_path, {"id": list(range(10, 20))}, mode="append")

    def change(table: DeltaTable, operation: str, id_: int) -> None:
        table.delete(f"id = {id_}") if operation == "delete" else table.update(
            {"id": "id + 100"}, predicate=f"id = {id_}"
        )

    ahead, behind, other = DeltaTable(tmp_path), DeltaTable(tmp_path), DeltaTable(tmp_path)
    change(ahead, first, 1)
    with pytest.raises(CommitFailedError):
        change(behind, second, 5)
    change(other, second, 15)
