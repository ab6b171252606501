"""A small writer that has nothing of deltafast in it: right, or wrong in one named way.

It appends and counts; every tenth version it writes a checksum and a checkpoint. The names in `SABOTAGE` say what a
wrong one does, and the harness has to find each of them out.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablekit import log as kit

from .journal import Entry, Journal
from .model import COUNTER
from .replay import Commit, ReplayError, State, parse

if TYPE_CHECKING:
    import pathlib

#: What is wrong, and what the checks must say of it.
SABOTAGE = {
    "overwrites versions": "written again|is not in the log|which is not there|which is there already|the table",
    "loses updates": "increment .*: the table",
    "tears commits": "is not whole",
    "commits twice": "in the log twice",
    "acknowledges early": "was acknowledged and is not in the log",
    "commits before the data": "which does not exist|which cannot be read",
    "skips versions": "is missing below",
    "refuses what it commits": "was refused and is in the log",
    "drops rows": "append .*: the table",
    "doubles rows": "doubles the row",
    "lies about sizes": "bytes, it has",
    "lies about counts": "rows, it has",
    "lies about bounds": "it does not",
    "removes what is not there": "removes .* not there",
    "dies": "ended by itself",
    "lies in checksums": "crc: numFiles",
    "lies in checkpoints": "checkpoint.parquet: files differ",
}

TYPES = {"id": pa.int64(), "k": pa.int32(), "v": pa.int64()}

# The first one imports pandas, where there is one: no forked writer should have to.
pa.array([0])


class Mini:
    """A life of the writer."""

    def __init__(self, table: pathlib.Path, journals: pathlib.Path, options: Entry, name: str, life: int) -> None:
        self.kit, self.wrong, self.name, self.life = kit.Table(table), options.get("wrong"), name, life
        self.random = random.Random(f"{options['seed']}/{name}/{life}")
        self.journal = Journal(journals / f"{name}.jsonl")
        self.version, self.state, self.value, self.count = -1, State(), 0, 0

    def is_(self, wrong: str) -> bool:
        """Whether this is what it does wrong."""
        return self.wrong == wrong

    def follow(self) -> None:
        """Read the new commits; the counter's file tells its value in its statistics."""
        while (path := self.kit.commit_file(self.version + 1)).exists():
            try:
                commit = Commit(self.version + 1, "", parse(path.read_bytes()))
            except ReplayError:
                # Torn by one of its like; to be found by the checks, not here.
                return
            self.version += 1
            self.state.apply(commit)
        for add in self.state.active.values():
            if add["partitionValues"]["p"] == COUNTER:
                self.value = json.loads(add["stats"])["maxValues"]["v"]

    def data(self, rows: list[list[Any]], partition: str) -> tuple[Entry, pa.Table]:
        """The action of a file and its rows."""
        columns = {
            name: pa.array([row[at] for row in rows], TYPES[name]) for name, at in (("id", 0), ("k", 2), ("v", 3))
        }
        table = pa.table(columns)
        bounds = {name: [f(column.to_pylist()) for f in (min, max)] for name, column in columns.items()}
        if self.is_("lies about bounds"):
            bounds["id"][1] -= 1
        stats = {
            "numRecords": len(rows) + self.is_("lies about counts"),
            "minValues": {name: low for name, (low, _) in bounds.items()},
            "maxValues": {name: high for name, (_, high) in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer)
        size = buffer.getvalue().size + self.is_("lies about sizes")
        path = f"p={partition}/{uuid.uuid4()}.parquet"
        return kit.add(path, size, partitionValues={"p": partition}, stats=json.dumps(stats)), table

    def store(self, add: Entry, table: pa.Table) -> None:
        """Write a data file."""
        file = self.kit.folder / add["add"]["path"]
        file.parent.mkdir(exist_ok=True)
        pq.write_table(table, file)

    def commit(self, version: int, actions: list[Entry], token: str, operation: str) -> bool:
        """Make a version; False if it is there already."""
        info = {
            "operation": operation,
            "userMetadata": token,
            "txnId": str(uuid.uuid4()),
            "timestamp": int(time.time() * 1000),
        }
        text = "".join(kit.dumps(action) + "\n" for action in ({"commitInfo": info}, *actions)).encode()
        target = self.kit.commit_file(version + self.is_("skips versions"))
        if self.is_("tears commits"):
            try:
                with target.open("xb", buffering=0) as file:
                    file.write(text[: len(text) // 2])
                    time.sleep(0.01)
                    file.write(text[len(text) // 2 :])
            except FileExistsError:
                return False
            return True
        staged = target.with_name(f".{uuid.uuid4()}.tmp")
        staged.write_bytes(text)
        if self.is_("overwrites versions"):
            staged.replace(target)
            return True
        try:
            os.link(staged, target)
        except FileExistsError:
            return False
        finally:
            staged.unlink()
        return True

    def begin(self, name: str, **args: Any) -> str:
        """Tell what is about to be done."""
        self.count += 1
        token = f"{self.name}-{self.life}-{self.count}"
        self.journal.note(at="begin", token=token, do=name, args=args)
        return token

    def end(self, token: str, name: str) -> None:
        """Tell that it is done."""
        self.journal.note(at="done", token=token, do=name)

    def append(self) -> None:
        """Add some rows."""
        base = int(self.name) << 44 | self.life << 28 | (self.count + 1) << 8
        rows = [[base + at + 1, "a", self.random.randrange(100), self.count] for at in range(self.random.randint(2, 4))]
        token = self.begin("append", rows=rows)
        if self.is_("drops rows"):
            rows = rows[1:]
        if self.is_("doubles rows"):
            rows = [[1, "a", 0, 0], *rows]
        self.publish(token, "append", [], *self.data(rows, "a"))

    def increment(self) -> None:
        """Count one on."""
        while True:
            self.follow()
            if self.is_("loses updates"):
                time.sleep(0.005)
            token = self.begin("increment")
            read = self.version
            add, table = self.data([[0, COUNTER, 0, self.value + 1]], COUNTER)
            if self.is_("loses updates"):
                self.follow()
            olds = [path for path in self.state.active if path.startswith(f"p={COUNTER}/")]
            if self.publish(token, "increment", [kit.remove(path) for path in olds], add, table, read):
                return

    def publish(
        self, token: str, name: str, removes: list[Entry], add: Entry, table: pa.Table, read: int | None = None
    ) -> bool:
        """Write the file, commit it, and tell; one that has read a version commits only right after it."""
        if self.is_("removes what is not there"):
            removes = [*removes, kit.remove("p=a/nothing.parquet")]
        late = self.is_("commits before the data")
        if not late:
            self.store(add, table)
        if self.is_("acknowledges early"):
            self.end(token, name)
            time.sleep(0.02)
        while not self.commit(self.version + 1, [*removes, add], token, name):
            if read is not None and not self.is_("loses updates"):
                self.journal.note(at="refused", token=token, do=name, error="ConcurrentDeleteReadError", text="")
                return False
            self.follow()
            if read is not None:
                olds = [path for path in self.state.active if path.startswith(f"p={COUNTER}/")]
                removes = [kit.remove(path) for path in olds]
        if late:
            time.sleep(0.02)
            self.store(add, table)
        if self.is_("commits twice"):
            self.follow()
            self.commit(self.version + 1, [], token, name)
        if self.is_("refuses what it commits"):
            self.journal.note(at="refused", token=token, do=name, error="ConcurrentWriteError", text="")
        else:
            self.end(token, name)
        return True

    def derive(self) -> None:
        """Write a checksum and a checkpoint of what was read last."""
        files = [{"add": add} for add in self.state.active.values()]
        table = [{"protocol": self.state.protocol}, {"metaData": self.state.metadata}]
        removes = [{"remove": remove} for remove in self.state.removed.values()]
        crc = {
            "numFiles": len(files) + self.is_("lies in checksums"),
            "tableSizeBytes": sum(file["add"]["size"] for file in files),
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": self.state.metadata,
            "protocol": self.state.protocol,
        }
        self._derived(f"{self.version:020}.crc").write_text(json.dumps(crc))
        listed = files[1:] if self.is_("lies in checkpoints") else files
        checkpoint = self.kit.checkpoint_file(self.version)
        staged = self._derived(checkpoint.name)
        pq.write_table(kit.checkpoint_table([*table, *listed, *removes]), staged)
        staged.replace(checkpoint)
        self._derived(f"{self.version:020}.crc").replace(self.kit.log / f"{self.version:020}.crc")

    def _derived(self, name: str) -> pathlib.Path:
        return self.kit.log / f".{name}.{self.name}.tmp"

    def go(self) -> None:
        """Work until killed."""
        self.follow()
        while True:
            if self.is_("dies") and self.random.random() < 0.1:
                return
            (self.increment if self.random.random() < 0.4 else self.append)()
            # So that a run of seconds has hundreds of versions, not thousands.
            time.sleep(self.random.random() * 0.05)
            self.follow()
            if self.version % 10 == 0:
                self.derive()


def create(table: pathlib.Path, journals: pathlib.Path, options: Entry) -> None:
    """Make the table, with its counter and the row 1."""
    mini = Mini(table, journals, {"seed": 0}, "create", 0)
    rows = [[0, COUNTER, 0, 0], [1, "a", 0, 0]]
    mini.journal.note(at="begin", token="create", do="create", args={"rows": rows})
    columns = [("id", "long"), ("p", "string"), ("k", "integer"), ("v", "long")]
    actions = [kit.protocol(), kit.metadata(columns, partition_by=["p"])]
    for row in rows:
        add, data = mini.data([row], row[1])
        mini.store(add, data)
        actions.append(add)
    mini.commit(0, actions, "create", "CREATE TABLE")


def live(table: pathlib.Path, journals: pathlib.Path, options: Entry, writer: int, life: int) -> None:
    """Be a writer until killed."""
    with contextlib.suppress(BrokenPipeError):
        Mini(table, journals, options, str(writer), life).go()
