"""The writers under test: every operation of deltafast that changes or looks after a table, as one small function each.

A writer does one after the other until it is killed. Most of its handles are not the newest, as in real life, so
conflicts are checked all the time; what loses is tried again from a newer version.
"""

from __future__ import annotations

import datetime as dt
import random
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset

from deltafast import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltafast.exceptions import CommitFailedError, CommitUnknownError, InvalidArgumentError, VersionNotFoundError

from .journal import Entry, Journal, entries
from .model import COUNTER

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

Args = dict[str, Any]

PARTITIONS = ("a", "b", "c", "d")
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("k", pa.int32()), ("v", pa.int64())])
#: Attempts of a caller that has lost a race, each on a newer version, and the longest pause before one, in seconds.
ATTEMPTS = 100
PAUSE = 0.1
#: Retention of the vacuum: no file of a writer that lives, or of a version that is restored, is that old.
RETENTION_HOURS = 1.0


class NothingToDoError(Exception):
    """There is nothing to do for the operation just now."""


def table_of(rows: list[list[Any]]) -> pa.Table:
    """Rows as they stand in the journal, as data."""
    columns = zip(*rows, strict=True) if rows else [[]] * len(SCHEMA)
    return pa.table(dict(zip(SCHEMA.names, map(list, columns), strict=True)), schema=SCHEMA)


# The first one imports pandas, where there is one.
table_of([])


def sql(where: Args) -> str:
    """The predicate of the rows that an operation is about."""
    partition = f"p = '{where['p']}'" if "p" in where else f"p <> '{COUNTER}'"
    return f"{partition} AND k >= {where['low']} AND k < {where['high']}"


class Life:
    """A writer between its start and its end."""

    def __init__(self, table: pathlib.Path, journals: pathlib.Path, writer: int, life: int, seed: int) -> None:
        self.place, self.writer, self.life = str(table), writer, life
        self.random = random.Random(f"{seed}/{writer}/{life}")
        path = journals / f"{writer}.jsonl"
        before = entries(path.read_bytes()) if path.exists() else []
        self.unfinished = _unfinished(before)
        begun = [entry for entry in before if entry["at"] == "begin" and entry["do"] == "append_once"]
        self.once = max((entry["args"]["number"] for entry in begun), default=0)
        self.journal = Journal(path)
        self.count = 0
        self.table = DeltaTable(self.place)
        self.journal.note(at="start", life=life, time=time.time())

    def go(self) -> None:
        """Do one thing after the other."""
        names = [name for name in OPERATIONS for _ in range(OPERATIONS[name].weight)]
        while True:
            self.attempt(OPERATIONS["append_once" if self.unfinished else self.random.choice(names)])

    def attempt(self, operation: Operation) -> None:
        """Do one thing, on newer and newer versions where others were first."""
        chance = self.random.random()
        if chance < 0.6:
            self.table.update_incremental()
        elif chance < 0.7:
            self.table = DeltaTable(self.place)
        for _ in range(ATTEMPTS):
            if self._once(operation):
                return
            time.sleep(self.random.random() * PAUSE)
            self.table.update_incremental()
        self.journal.note(at="gave up", op=operation.name)

    def _once(self, operation: Operation) -> bool:
        """Whether it is done with."""
        try:
            args = operation.prepare(self)
        except NothingToDoError:
            return True
        self.count += 1
        token = args.pop("token", None) or f"{self.writer}-{self.life}-{self.count}"
        self.journal.note(at="begin", token=token, do=operation.name, args=args)
        end: Entry
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                end = {"at": "done"} | (operation.run(self, token, args) or {})
            except CommitUnknownError as error:
                end = {"at": "unknown", "error": str(error)}
            except operation.refusals as error:
                end = {"at": "refused", "error": type(error).__name__, "text": str(error)}
            except Exception as error:  # noqa: BLE001 - a violation, told by the checks
                end = {"at": "broken", "error": f"{type(error).__name__}: {error}"}
        self.journal.note(token=token, do=operation.name, warned=[str(w.message) for w in caught], **end)
        if operation.name == "append_once":
            # Only an answer ends it: after anything else it is tried again under the same number.
            self.unfinished = None if end["at"] == "done" else {"token": token, "args": args}
        return end["at"] != "refused" or not operation.retried

    # --- what operations are made of -------------------------------------------------------------

    def new_rows(self, most: int, partition: str | None = None, low: int = 0, high: int = 100) -> list[list[Any]]:
        """Rows that never were."""
        # The next token's number, so that rows tell where they come from.
        base = self.writer << 44 | self.life << 28 | (self.count + 1) << 8
        choose = self.random
        return [
            [base + at + 1, partition or choose.choice(PARTITIONS), choose.randrange(low, high), choose.randrange(1000)]
            for at in range(choose.randint(1, most))
        ]

    def where(self) -> Args:
        """Rows to be about: mostly some keys of one partition, seldom of all."""
        low = self.random.randrange(100)
        where: Args = {"low": low, "high": min(100, low + self.random.randint(1, 40))}
        if self.random.random() < 0.1:
            where = {"low": 0, "high": 100}
        if self.random.random() < 0.9:
            where["p"] = self.random.choice(PARTITIONS)
        return where

    def how(self, token: str, *transactions: Transaction) -> Args:
        """The arguments that put a commit under the token; seldom it cleans the log up."""
        hooks = PostCommitHookProperties(cleanup_expired_logs=True) if self.random.random() < 0.2 else None
        properties = CommitProperties({"userMetadata": token}, app_transactions=list(transactions))
        return {"commit_properties": properties, "post_commithook_properties": hooks}

    def write(self, token: str, rows: list[list[Any]], *transactions: Transaction, **options: Any) -> None:
        """Write rows on this handle, under the token."""
        write_deltalake(self.table, table_of(rows), **self.how(token, *transactions), **options)

    def change(self, run: Callable[[DeltaTable], Any]) -> Entry | None:
        """Run what commits nothing where it finds nothing to do, which says of which version."""
        before = self.table.version()
        run(self.table)
        return {"idle": before} if self.table.version() == before else None


def _unfinished(before: list[Entry]) -> Entry | None:
    """The append that a former life has to bring to an end."""
    mine = [entry for entry in before if entry.get("do") == "append_once"]
    if not mine or mine[-1]["at"] == "done":
        return None
    begun = [entry for entry in mine if entry["at"] == "begin"][-1]
    return {"token": begun["token"], "args": begun["args"]}


# --- the operations ----------------------------------------------------------------------------------


def _rows(life: Life) -> Args:
    return {"rows": life.new_rows(20)}


def _append(life: Life, token: str, args: Args) -> None:
    life.write(token, args["rows"], mode="append")


def _once_args(life: Life) -> Args:
    if life.unfinished is not None:
        return dict(life.unfinished["args"]) | {"token": life.unfinished["token"]}
    life.once += 1
    return {"rows": life.new_rows(5), "number": life.once, "token": f"{life.writer}-once-{life.once}"}


def _append_once(life: Life, token: str, args: Args) -> Entry | None:
    app = f"writer-{life.writer}"
    life.table.update_incremental()
    if (life.table.transaction_version(app) or 0) >= args["number"]:
        return {"before": True}
    life.write(token, args["rows"], Transaction(app, args["number"]), mode="append")
    return None


def _range_args(life: Life) -> Args:
    where = life.where()
    return {"where": where, "rows": life.new_rows(10, where.get("p"), where["low"], where["high"])}


def _partition_args(life: Life) -> Args:
    where = {"p": life.random.choice(PARTITIONS), "low": 0, "high": 100}
    return {"where": where, "rows": life.new_rows(10, where["p"])}


def _replace_range(life: Life, token: str, args: Args) -> None:
    life.write(token, args["rows"], mode="overwrite", predicate=sql(args["where"]))


def _replace_partition(life: Life, token: str, args: Args) -> None:
    life.write(token, args["rows"], mode="overwrite", predicate=f"p = '{args['where']['p']}'")


def _replace_partitions(life: Life, token: str, args: Args) -> None:
    life.write(token, args["rows"], mode="overwrite", partition_overwrite_mode="dynamic")


def _overwrite_args(life: Life) -> Args:
    return {"rows": [[0, COUNTER, 0, counter(life.table)], *life.new_rows(30)]}


def _overwrite(life: Life, token: str, args: Args) -> None:
    life.write(token, args["rows"], mode="overwrite")


def _delete_range(life: Life, token: str, args: Args) -> None:
    life.write(token, [], mode="overwrite", predicate=sql(args["where"]))


def _delete(life: Life, token: str, args: Args) -> Entry | None:
    return life.change(lambda table: table.delete(sql(args["where"]), **life.how(token)))


def _update(life: Life, token: str, args: Args) -> Entry | None:
    return life.change(lambda table: table.update({"v": "v + 1"}, predicate=sql(args["where"]), **life.how(token)))


def _merge_args(life: Life) -> Args:
    low = life.random.randrange(97)
    where = {"p": life.random.choice(PARTITIONS), "low": low, "high": low + 3}
    return {"where": where, "rows": life.new_rows(5)}


def _merge(life: Life, token: str, args: Args) -> Entry | None:
    """The rows of three keys grow by one, and others are added."""
    where, rows = args["where"], args["rows"]
    keys = [[0, where["p"], k, 0] for k in range(where["low"], where["high"])]
    fresh = pa.array([True] * len(rows) + [False] * len(keys))
    source = table_of(rows + keys).append_column("fresh", fresh)
    on = "t.p = s.p AND t.k = s.k AND NOT s.fresh"

    def merge(table: DeltaTable) -> Any:
        merger = table.merge(source, on, "s", "t", **life.how(token)).when_matched_update({"v": "t.v + 1"})
        return merger.when_not_matched_insert_all("s.fresh").execute()

    return life.change(merge)


def _optimize(life: Life, token: str, args: Args) -> Entry | None:
    return life.change(lambda table: table.optimize.compact(**life.how(token)))


def _where(life: Life) -> Args:
    return {"where": life.where()}


def counter(table: DeltaTable) -> int:
    """The counter at the handle's version."""
    rows = table.to_pyarrow_table(columns=["v"], filters=f"p = '{COUNTER}'").column("v").to_pylist()
    if len(rows) != 1:
        raise AssertionError(f"the counter has {len(rows)} rows at version {table.version()}")
    return rows[0]


def _increment(life: Life, token: str, args: Args) -> Entry | None:
    where = f"p = '{COUNTER}'"
    return life.change(lambda table: table.update({"v": "v + 1"}, predicate=where, **life.how(token)))


def _increment_by_hand(life: Life, token: str, args: Args) -> None:
    row = [0, COUNTER, 0, args["from"] + 1]
    life.write(token, [row], mode="overwrite", predicate=f"p = '{COUNTER}'")


def _set_property(life: Life, token: str, args: Args) -> None:
    properties = CommitProperties({"userMetadata": token})
    life.table.alter.set_table_properties({"crash.token": token}, commit_properties=properties)


def _restore_args(life: Life) -> Args:
    newest = life.table.version()
    return {"version": life.random.randint(max(0, newest - 10), newest)}


def _restore(life: Life, token: str, args: Args) -> None:
    life.table.restore(args["version"], commit_properties=CommitProperties({"userMetadata": token}))


def _checkpoint(life: Life, token: str, args: Args) -> None:
    life.table.create_checkpoint(parts=args["parts"])


def _compact_args(life: Life) -> Args:
    last = life.table.version()
    first = last - life.random.randint(1, 12)
    if first < 1:
        raise NothingToDoError
    return {"first": first, "last": last}


def _compact_logs(life: Life, token: str, args: Args) -> None:
    life.table.compact_logs(args["first"], args["last"])


def _cleanup(life: Life, token: str, args: Args) -> Entry:
    return {"deleted": len(life.table.cleanup_metadata(retention=dt.timedelta(days=1)))}


def _vacuum(life: Life, token: str, args: Args) -> Entry:
    gone = life.table.vacuum(
        retention_hours=RETENTION_HOURS,
        dry_run=False,
        enforce_retention_duration=False,
        full=args["full"],
        commit_properties=CommitProperties({"userMetadata": token}),
    )
    return {"deleted": len(gone)}


def _read(life: Life, token: str, args: Args) -> Entry:
    table = life.table
    rows = sorted(tuple(row.values()) for row in table.to_pyarrow_table(columns=SCHEMA.names).to_pylist())
    return {"version": table.version(), "rows": rows, "count": table.count()}


@dataclass(frozen=True)
class Operation:
    """One thing that writers do."""

    name: str
    #: How often it is chosen, against the others.
    weight: int
    #: What it is going to do, for the journal.
    prepare: Callable[[Life], Args]
    #: Does it; what it gives goes to the journal.
    run: Callable[[Life, str, Args], Entry | None]
    #: Errors that are no harm.
    refusals: tuple[type[Exception], ...] = (CommitFailedError,)
    #: Whether the caller tries again after such an error.
    retried: bool = False


def _nothing(_: Life) -> Args:
    return {}


#: Versions that a cleanup took away meanwhile.
_GONE = (CommitFailedError, VersionNotFoundError, InvalidArgumentError)

OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("append", 16, _rows, _append, retried=True),
        Operation("append_once", 6, _once_args, _append_once, retried=True),
        Operation("replace_range", 5, _range_args, _replace_range),
        Operation("replace_partition", 3, _partition_args, _replace_partition),
        Operation("replace_partitions", 3, _rows, _replace_partitions),
        Operation("overwrite", 1, _overwrite_args, _overwrite, retried=True),
        Operation("delete_range", 4, _where, _delete_range),
        Operation("delete", 6, _where, _delete),
        Operation("update", 6, _where, _update),
        Operation("merge", 5, _merge_args, _merge),
        Operation("optimize", 3, _nothing, _optimize, retried=True),
        Operation("increment", 7, _nothing, _increment, retried=True),
        Operation("increment_by_hand", 3, lambda life: {"from": counter(life.table)}, _increment_by_hand, retried=True),
        Operation("set_property", 1, _nothing, _set_property),
        Operation("restore", 2, _restore_args, _restore, _GONE, retried=True),
        Operation("checkpoint", 2, lambda life: {"parts": life.random.choice((1, 1, 2))}, _checkpoint),
        Operation("compact_logs", 2, _compact_args, _compact_logs, _GONE),
        Operation("cleanup", 2, _nothing, _cleanup),
        Operation("vacuum", 2, lambda life: {"full": life.random.random() < 0.7}, _vacuum),
        Operation("read", 4, _nothing, _read),
    )
}


def create(table: pathlib.Path, journals: pathlib.Path, options: Entry) -> None:
    """Make the table, with its counter."""
    rows = [[0, COUNTER, 0, 0]]
    Journal(journals / "create.jsonl").note(at="begin", token="create", do="create", args={"rows": rows})
    write_deltalake(
        str(table),
        table_of(rows),
        partition_by=["p"],
        configuration=options.get("configuration"),
        commit_properties=CommitProperties({"userMetadata": "create"}),
    )


def live(table: pathlib.Path, journals: pathlib.Path, options: Entry, writer: int, life: int) -> None:
    """Be a writer until killed."""
    # Those of operations are noted; nobody looks at the others.
    warnings.simplefilter("ignore")
    Life(table, journals, writer, life, options["seed"]).go()
