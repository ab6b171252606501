"""Reads a table's log as plain JSON and its files with pyarrow, version by version, and says what is wrong with it."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.parse
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tablekit import dv

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

    from .model import Row, Rows

Action = dict[str, Any]

#: Versions whose rows are remembered.
REMEMBERED = 200
_COMMIT = re.compile(r"(\d{20})\.json")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")


class ReplayError(Exception):
    """The log cannot be followed any farther."""


def vector_of(action: Action) -> str | None:
    """What tells the deletion vector of a file from its others."""
    vector = action.get("deletionVector")
    return vector and f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def vector_file(action: Action) -> str | None:
    """The file that an action's deletion vector stands in, below the table."""
    vector = action.get("deletionVector")
    return dv.path_of(vector["pathOrInlineDv"]) if vector and vector["storageType"] == "u" else None


@dataclass
class Commit:
    """A commit as it was read first."""

    version: int
    digest: str
    actions: list[Action]

    def of(self, kind: str) -> list[Action]:
        """Its actions of a kind."""
        return [action[kind] for action in self.actions if kind in action]

    @property
    def info(self) -> Action:
        """What it says of itself."""
        return next(iter(self.of("commitInfo")), {})


@dataclass
class State:
    """What a table is at a version, by the rules of reconciliation."""

    active: dict[str, Action] = field(default_factory=dict)
    #: By path and vector.
    removed: dict[tuple[str, str | None], Action] = field(default_factory=dict)
    protocol: Action | None = None
    metadata: Action | None = None
    txns: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)

    def apply(self, commit: Commit) -> list[str]:
        """Go on by a commit; what is wrong with it."""
        wrong = []
        adds, removes = commit.of("add"), commit.of("remove")
        for name, several in (("adds", adds), ("removes", removes)):
            paths = [action["path"] for action in several]
            if len(paths) != len(set(paths)):
                wrong.append(f"two {name} of one path")
        for remove in removes:
            path, vector = remove["path"], vector_of(remove)
            if path not in self.active:
                wrong.append(f"removes {path}, which is not there")
            elif vector_of(self.active.pop(path)) != vector:
                wrong.append(f"removes {path} with another deletion vector than it has")
            self.removed[path, vector] = remove
        for add in adds:
            if add["path"] in self.active:
                wrong.append(f"adds {add['path']}, which is there already")
            self.active[add["path"]] = add
            self.removed.pop((add["path"], vector_of(add)), None)
        self._set(commit)
        wrong += [f"two {kind} actions" for kind in ("protocol", "metaData", "commitInfo") if len(commit.of(kind)) > 1]
        if self.protocol is None or self.metadata is None:
            wrong.append("no protocol or no metadata")
        return wrong

    def _set(self, commit: Commit) -> None:
        """Take over what is not about files."""
        self.protocol = next(iter(commit.of("protocol")), self.protocol)
        self.metadata = next(iter(commit.of("metaData")), self.metadata)
        self.txns |= {txn["appId"]: txn["version"] for txn in commit.of("txn")}
        for domain in commit.of("domainMetadata"):
            if domain.get("removed"):
                self.domains.pop(domain["domain"], None)
            else:
                self.domains[domain["domain"]] = domain["configuration"]


def parse(data: bytes) -> list[Action]:
    """The actions of a commit's text."""
    try:
        actions = [json.loads(line) for line in data.decode().split("\n") if line.strip()]
    except ValueError as error:
        raise ReplayError(f"is not whole: {error}") from error
    if not actions or not all(isinstance(action, dict) and len(action) == 1 for action in actions):
        raise ReplayError("is not whole: lines without one action each")
    return actions


def in_store(path: str) -> str:
    """The file of a path in the log."""
    return urllib.parse.unquote(path)


class Replay:
    """Follows a table. `complain` takes every violation, `commit` sees every version with its rows before and after."""

    def __init__(
        self,
        table: pathlib.Path,
        complain: Callable[[str], None],
        commit: Callable[[Commit, Rows, Rows], None],
    ) -> None:
        self.table, self.log = table, table / "_delta_log"
        self.complain, self.seen = complain, commit
        self.version = -1
        self.state = State()
        self.rows: Rows = {}
        self.past: deque[tuple[int, Rows]] = deque(maxlen=REMEMBERED)
        self.digests: dict[int, str] = {}
        self.known: set[str] = set()
        self._files: dict[str, list[Row]] = {}
        #: Those of them that no vector deletes, of active files.
        self._live: dict[str, list[Row]] = {}
        #: Commits of which checksum, checkpoint and compaction are still to be looked at, and the state before them.
        self.behind: deque[Commit] = deque()
        self._trailing = State()

    # --- going on ---------------------------------------------------------------------------------

    def advance(self) -> int:
        """Read the commits that are new; how many they were."""
        names = {path.name for path in self.log.iterdir()}
        newest = max((int(m[1]) for name in names if (m := _COMMIT.fullmatch(name))), default=-1)
        count = 0
        while (path := self.log / f"{self.version + 1:020}.json").exists():
            self._follow(path)
            count += 1
        if newest > self.version:
            raise ReplayError(f"version {self.version + 1} is missing below version {newest}")
        return count

    def _follow(self, path: pathlib.Path) -> None:
        version = self.version + 1
        data = path.read_bytes()
        try:
            commit = Commit(version, hashlib.sha256(data).hexdigest(), parse(data))
        except ReplayError as error:
            raise ReplayError(f"version {version} {error}") from error
        for wrong in self.state.apply(commit):
            self.complain(f"version {version} {wrong}")
        before, after = self.rows, dict(self.rows)
        for remove in commit.of("remove"):
            for row in self._live.pop(remove["path"], ()):
                after.pop(row[0], None)
        for add in commit.of("add"):
            self._live[add["path"]] = self._present(add, version)
            for row in self._live[add["path"]]:
                if row[0] in after:
                    self.complain(f"version {version} doubles the row {row[0]}")
                after[row[0]] = row
        self.version, self.rows = version, after
        self.digests[version] = commit.digest
        self.past.append((version, after))
        self.behind.append(commit)
        self.seen(commit, before, after)

    def rows_at(self, version: int) -> Rows | None:
        """The rows of one of the last versions."""
        return next((rows for number, rows in reversed(self.past) if number == version), None)

    def _present(self, add: Action, version: int) -> list[Row]:
        """The rows of a file that its deletion vector leaves."""
        rows = self._read(add, version)
        if not add.get("deletionVector"):
            return rows
        if file := vector_file(add):
            self.known.add(file)
        try:
            deleted = dv.deleted(self.table, add["deletionVector"])
        except (OSError, ValueError) as error:
            self.complain(f"version {version} marks {add['path']} by a vector that cannot be read: {error}")
            return rows
        if not deleted or max(deleted) >= len(rows):
            self.complain(f"version {version} deletes {len(deleted)} rows of {add['path']}, which has {len(rows)}")
        return [row for at, row in enumerate(rows) if at not in deleted]

    def _read(self, add: Action, version: int) -> list[Row]:
        """The rows of a file, which is checked against its action."""
        path = add["path"]
        self.known.add(in_store(path))
        file = self.table / in_store(path)
        if not file.exists():
            self.complain(f"version {version} adds {path}, which does not exist")
            return self._files.setdefault(path, [])
        if file.stat().st_size != add["size"]:
            self.complain(f"version {version} says {path} has {add['size']} bytes, it has {file.stat().st_size}")
        if path not in self._files:
            try:
                # Not `read_table`: that would guess partitions from the path.
                columns = pq.ParquetFile(file).read(use_threads=False).to_pydict()
            except Exception as error:  # noqa: BLE001 - whatever it is, the file is not whole
                self.complain(f"version {version} adds {path}, which cannot be read: {error}")
                return []
            partition = [add["partitionValues"]["p"]] * len(columns["id"])
            self._files[path] = list(zip(columns["id"], partition, columns["k"], columns["v"], strict=True))
        rows = self._files[path]
        stats = json.loads(add.get("stats") or "{}")
        if stats.get("numRecords") != len(rows):
            self.complain(f"version {version} says {path} has {stats.get('numRecords')} rows, it has {len(rows)}")
        for key, at in (("id", 0), ("k", 2), ("v", 3)):
            bounds = (stats.get("minValues", {}).get(key), stats.get("maxValues", {}).get(key))
            values = [row[at] for row in rows]
            if values and None not in bounds and not (bounds[0] <= min(values) and max(values) <= bounds[1]):
                self.complain(f"version {version} says {key} of {path} lies in {bounds}, it does not")
        return rows

    # --- what stands beside the commits -----------------------------------------------------------

    def settle(self, until: int) -> int:
        """Check what was derived of versions up to `until`; gives the last one checked."""
        done = -1
        # Listed once: a log of some thousand files is long.
        checkpoints: dict[str, list[pathlib.Path]] = {}
        for path in sorted(self.log.glob("*.checkpoint*")):
            checkpoints.setdefault(path.name[:20], []).append(path)
        while self.behind and self.behind[0].version <= until:
            commit = self.behind.popleft()
            self._trailing.apply(commit)
            done = commit.version
            self._check_crc(commit)
            for path in checkpoints.get(f"{done:020}", []):
                self._check_checkpoint(path, done)
        return done

    def _check_crc(self, commit: Commit) -> None:
        path, state = self.log / f"{commit.version:020}.crc", self._trailing
        if not path.exists():
            return
        try:
            crc = json.loads(path.read_bytes())
        except ValueError as error:
            self.complain(f"{path.name} is not whole: {error}")
            return
        sizes = [add["size"] for add in state.active.values()]
        wanted = {
            "numFiles": len(sizes),
            "tableSizeBytes": sum(sizes),
            "numMetadata": 1,
            "numProtocol": 1,
            "protocol": state.protocol,
            "metadata": state.metadata,
        }
        found = {key: crc.get(key) for key in wanted}
        if "setTransactions" in crc:
            wanted["txns"] = dict(state.txns)
            found["txns"] = {txn["appId"]: txn["version"] for txn in crc["setTransactions"]}
        if crc.get("txnId") is not None:
            wanted["txnId"], found["txnId"] = commit.info.get("txnId"), crc["txnId"]
        histogram = crc.get("fileSizeHistogram") or crc.get("histogramOpt")
        if histogram:
            wanted["histogram"] = (len(sizes), sum(sizes))
            found["histogram"] = (sum(histogram["fileCounts"]), sum(histogram["totalBytes"]))
        for key, value in wanted.items():
            if found[key] != value:
                self.complain(f"{path.name}: {key} is {found[key]}, by the log it is {value}")

    def _check_checkpoint(self, path: pathlib.Path, version: int) -> None:
        parts = re.fullmatch(r"\d{20}\.checkpoint\.(\d{10})\.(\d{10})\.parquet", path.name)
        if parts and parts[1] != "0000000001":
            return
        paths = [path]
        if parts:
            name = f"{version:020}.checkpoint.{{:010}}.{parts[2]}.parquet"
            paths = [self.log / name.format(part) for part in range(1, int(parts[2]) + 1)]
        # Sets that lack a part are nobody's; whoever wrote it was killed.
        if not all(part.exists() for part in paths):
            return
        try:
            rows = [row for part in paths for row in checkpoint_rows(part)]
        except Exception as error:  # noqa: BLE001 - whatever it is, the file is not whole
            self.complain(f"{path.name} cannot be read: {error}")
            return
        for key, (found, wanted) in compared(rows, self._trailing).items():
            if found != wanted:
                self.complain(f"{path.name}: {key} differ from the log: {first_difference(found, wanted)}")

    def check_compactions(self) -> None:
        """Check compacted files whose commits are all there."""
        for path in self.log.iterdir():
            match = _COMPACTED.fullmatch(path.name)
            commits = [self.log / f"{v:020}.json" for v in range(int(match[1]), int(match[2]) + 1)] if match else []
            if not commits or not all(commit.exists() for commit in commits):
                continue
            try:
                found = summary(parse(path.read_bytes()))
            except ReplayError as error:
                self.complain(f"{path.name} {error}")
                continue
            wanted = summary([action for commit in commits for action in parse(commit.read_bytes())])
            if found != wanted:
                self.complain(f"{path.name} is not what its commits come to: {first_difference(found, wanted)}")

    def check_digests(self) -> None:
        """Check that no commit was ever written again."""
        for version, digest in self.digests.items():
            path = self.log / f"{version:020}.json"
            if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                self.complain(f"version {version} was written again")

    def check_files(self) -> None:
        """Check that all files of the newest version are there."""
        for path, add in self.state.active.items():
            file = self.table / in_store(path)
            if not file.exists() or file.stat().st_size != add["size"]:
                self.complain(f"the file {path} of version {self.version} is gone or has another size")
            vector = vector_file(add)
            if vector and not (self.table / vector).exists():
                self.complain(f"the deletion vectors {vector} of version {self.version} are gone")


def summary(actions: list[Action]) -> tuple[Any, ...]:
    """What commits come to, whatever way it is written down: the last word on each thing."""
    files: dict[tuple[str, str | None], str] = {}
    txns: dict[str, int] = {}
    table: dict[str, Action] = {}
    for kind, body in (next(iter(action.items())) for action in actions):
        if kind in {"add", "remove"}:
            files[body["path"], vector_of(body)] = kind
        elif kind == "txn":
            txns[body["appId"]] = body["version"]
        elif kind in {"protocol", "metaData"}:
            table[kind] = body
    return files, txns, table


def compared(rows: list[Action], state: State) -> dict[str, tuple[Any, Any]]:
    """What a checkpoint says beside what the log says."""

    def of(kind: str) -> list[Action]:
        return [row[kind] for row in rows if row.get(kind) is not None]

    def file(add: Action) -> tuple[Any, ...]:
        values, stats = dict(add["partitionValues"]), json.loads(add.get("stats") or "null")
        content = tuple(sorted(values.items())), json.dumps(stats, sort_keys=True)
        return add["path"], vector_of(add) or "", add["size"], *content

    def shape(metadata: Action | None) -> Any:
        metadata = metadata or {}
        configuration = dict(metadata.get("configuration") or {})
        return metadata.get("id"), metadata.get("schemaString"), configuration, metadata.get("partitionColumns")

    def versions(protocol: Action | None) -> Any:
        return {key: value for key, value in (protocol or {}).items() if value is not None}

    return {
        "files": (sorted(map(file, of("add"))), sorted(map(file, state.active.values()))),
        "tombstones": (
            sorted((remove["path"], vector_of(remove) or "") for remove in of("remove")),
            sorted((path, vector or "") for path, vector in state.removed),
        ),
        "transactions": ({t["appId"]: t["version"] for t in of("txn")}, state.txns),
        "metadata": ([shape(m) for m in of("metaData")], [shape(state.metadata)]),
        "protocol": ([versions(p) for p in of("protocol")], [versions(state.protocol)]),
    }


def checkpoint_rows(path: pathlib.Path) -> list[Action]:
    """The actions of a checkpoint's file, with those of its sidecars."""
    if path.suffix == ".json":
        rows = parse(path.read_bytes())
    else:
        rows = pq.ParquetFile(path).read(use_threads=False).to_pylist()
    sidecars = [row["sidecar"]["path"] for row in rows if row.get("sidecar")]
    return rows + [row for name in sidecars for row in checkpoint_rows(path.parent / "_sidecars" / name)]


def first_difference(found: Any, wanted: Any) -> str:
    """One difference of two things, short."""
    if isinstance(found, (list, tuple)) and isinstance(wanted, (list, tuple)):
        extra = [item for item in found if item not in wanted][:1]
        lacking = [item for item in wanted if item not in found][:1]
        return f"has {str(extra)[:300]}, lacks {str(lacking)[:300]}"
    return f"{str(found)[:300]} for {str(wanted)[:300]}"
