"""A run of the crash harness: a herd of writers, and the checks during and after it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .journal import Entry, Journals
from .model import EFFECTS, Rows
from .replay import Commit, Replay, ReplayError, first_difference

TESTS = pathlib.Path(__file__).resolve().parent.parent

#: Versions that stay as they are at the log's end; older ones are made to look a month old, so that cleanups find work.
FRESH = 60
#: Seconds between two makings old.
AGEING = 4.0
#: Commits that one token may have, by operation: a vacuum says when it begins and when it ends.
COMMITS = {"vacuum": {"VACUUM START", "VACUUM END"}}
#: Errors that no append may ever end with.
NEVER_OF_APPENDS = {
    "ConcurrentAppendError",
    "ConcurrentDeleteReadError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentWriteError",
}
#: A version that a cleanup takes away, which makes the log's beginning a month old within seconds here.
ALLOWED_WARNINGS = r"^no such file: .*; the table was read without this file$"
NUMBERS = re.compile(r"\d{5,}")
MOST_VIOLATIONS = 20


@dataclass
class Options:
    """What to run."""

    seconds: float = 75.0
    writers: int = 16
    kills_per_second: float = 6.0
    seed: int = 0
    module: str = "operations"
    #: End at the first violation, as is wanted of sabotaged writers.
    stop_early: bool = False
    #: End when so many writers have been killed and the time is over.
    least_kills: int = 0
    #: What else the writers are told.
    more: Entry = field(default_factory=dict)
    #: Whether deltafast and deltalake read the table at the end.
    readers: bool = True


@dataclass
class Report:
    """What came of it."""

    seed: int
    violations: list[str] = field(default_factory=list)
    kills: int = 0
    kills_at_commits: int = 0
    kills_holding: int = 0
    commits: int = 0
    counter: int = 0
    increments: int = 0
    rows: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    warned: Counter[str] = field(default_factory=Counter)
    checkpoints: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.seconds:.0f} s, {self.commits} commits, {self.rows} rows",
            f"{self.kills} kills, {self.kills_at_commits} at a change of the log, {self.kills_holding} of who made it",
            f"counter {self.counter} after {self.increments} increments and the restores",
            *(f"  {count:6} {end}" for end, count in sorted(self.ends.items())),
            *(f"  {count:6} warned: {text}" for text, count in self.warned.most_common(10)),
            f"{len(self.violations)} violations",
            *(f"  {violation}" for violation in self.violations[:MOST_VIOLATIONS]),
        ]
        return "\n".join(lines)


class Run:
    """One run in a folder of its own."""

    def __init__(self, options: Options, folder: pathlib.Path) -> None:
        self.options, self.report = options, Report(options.seed)
        self.table, self.journals = folder / "table", folder / "journals"
        self.journals.mkdir(parents=True)
        self.random = random.Random(f"run/{options.seed}")
        self.reader = Journals(self.journals)
        self.replay = Replay(self.table, self.complain, self._commit)
        self.intents: dict[str, Entry] = {}
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self.committed: dict[str, list[tuple[int, str]]] = {}
        self.transactions: set[str] = set()
        self.reads: list[Entry] = []
        self.idle: list[Entry] = []
        self.alive: dict[int, float] = {}
        self.lock = threading.Lock()
        self.begun = threading.Event()
        self.ended = threading.Event()

    def complain(self, text: str) -> None:
        """Note a violation."""
        self.report.violations.append(text)

    # --- the herd ---------------------------------------------------------------------------------

    def go(self) -> Report:
        """Run, check, report."""
        begun = time.monotonic()
        message = {
            "module": f"crash.{self.options.module}",
            "table": str(self.table),
            "journals": str(self.journals),
            "writers": self.options.writers,
            "kills_per_second": self.options.kills_per_second,
            "seed": self.options.seed,
        } | self.options.more
        herd = subprocess.Popen(
            [sys.executable, "-m", "crash.herd", json.dumps(message)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        listener = threading.Thread(target=self._listen, args=(herd,))
        listener.start()
        try:
            # The herd's imports are nobody's time.
            self.begun.wait(60)
            self._watch(time.monotonic() + self.options.seconds)
        finally:
            assert herd.stdin is not None
            herd.stdin.close()
            try:
                herd.wait(30)
            except subprocess.TimeoutExpired:
                herd.kill()
            listener.join()
            assert herd.stdout is not None
            herd.stdout.close()
        if not (self.options.stop_early and self.report.violations):
            with contextlib.suppress(ReplayError):
                self._finish()
        self.report.seconds = time.monotonic() - begun
        return self.report

    def _listen(self, herd: subprocess.Popen[str]) -> None:
        for line in herd.stdout or ():
            message = json.loads(line)
            with self.lock:
                if "start" in message:
                    self.alive[message["start"]] = message["time"]
                    self.begun.set()
                elif "kill" in message:
                    self.report.kills += 1
                    self.report.kills_at_commits += message["at_commit"]
                    self.report.kills_holding += message["held"]
                elif "died" in message:
                    self.complain(f"writer {message['died']} ended by itself")
                elif "failed" in message:
                    self.complain(message["failed"])
                elif "stopped" in message:
                    self.alive.clear()
        self.begun.set()
        self.ended.set()

    def _watch(self, end: float) -> None:
        """Check while the writers work."""
        aged = time.monotonic()
        while not self.ended.is_set():
            now = time.monotonic()
            if now >= end and self.report.kills >= self.options.least_kills:
                return
            if self.options.stop_early and self.report.violations:
                return
            try:
                self._step()
                if now - aged > AGEING:
                    aged = now
                    self._age()
            except ReplayError:
                return
            self.ended.wait(0.25)

    # --- the checks -------------------------------------------------------------------------------

    def _step(self) -> None:
        """Follow the log as far as it goes."""
        if not (self.replay.log / f"{0:020}.json").exists() and self.replay.version < 0:
            return
        # In this order: what is acknowledged now must be in the log that is read next, and what is in that log must
        # have been in the journals that are read after it.
        self._note(self.reader.more())
        acknowledged = set(self.acknowledged)
        try:
            self.replay.advance()
        except ReplayError as error:
            self.complain(str(error))
            raise
        for token in acknowledged:
            if token not in self.committed:
                self.complain(f"{self._shown(token)} was acknowledged and is not in the log")
        self.acknowledged -= acknowledged
        self._compare_reads()
        self._compare_idle()

    def _note(self, entries: list[Entry]) -> None:
        for entry in entries:
            at, token = entry["at"], entry.get("token", "")
            if at == "begin":
                self.intents[token] = entry
                # The same thing, tried again.
                self.refused.discard(token)
                continue
            name = entry.get("do") or entry.get("op", "")
            self.report.ends[" ".join(filter(None, (name, at, entry.get("error", "") if at == "refused" else "")))] += 1
            for text in entry.get("warned", ()):
                self.report.warned[NUMBERS.sub("N", text.replace(str(self.table), "TABLE"))[:150]] += 1
                if not re.search(ALLOWED_WARNINGS, text):
                    self.complain(f"{self._shown(token)} warned: {text}")
            if at == "broken":
                self.complain(f"{self._shown(token)} failed: {entry['error']}")
            elif at == "refused":
                self.refused.add(token)
                if name.startswith("append") and entry["error"] in NEVER_OF_APPENDS:
                    self.complain(f"{self._shown(token)} was refused: {entry['text']}")
            elif at == "done":
                self._done(name, token, entry)

    def _done(self, name: str, token: str, entry: Entry) -> None:
        """Take note of what was acknowledged."""
        if name == "read":
            self.reads.append(entry)
        elif "idle" in entry:
            self.idle.append(entry)
        elif name in EFFECTS and not (name == "vacuum" and not entry.get("deleted")):
            self.acknowledged.add(token)
            self.refused.discard(token)

    def _shown(self, token: str) -> str:
        return f"{self.intents.get(token, {}).get('do', 'something')} {token}"

    def _commit(self, commit: Commit, before: Rows, after: Rows) -> None:
        """Compare a version with what its operation should have made of the one before."""
        version, token = commit.version, commit.info.get("userMetadata")
        if not isinstance(token, str) or not token:
            self.complain(f"version {version} says nothing of who made it")
            return
        if token not in self.intents:
            self._note(self.reader.more())
        intent = self.intents.get(token)
        if intent is None:
            self.complain(f"version {version} is by {token}, which nobody meant to do")
            return
        name = intent["do"]
        earlier = self.committed.setdefault(token, [])
        operation = str(commit.info.get("operation"))
        if any(other == operation or name not in COMMITS for _, other in earlier):
            self.complain(f"{self._shown(token)} is in the log twice, as {earlier[0][0]} and {version}")
        if name in COMMITS and operation not in COMMITS[name]:
            self.complain(f"version {version} of {self._shown(token)} is a {operation}")
        earlier.append((version, operation))
        if token in self.refused:
            self._note(self.reader.more())
        if token in self.refused:
            self.complain(f"{self._shown(token)} was refused and is in the log, as version {version}")
        transaction = commit.info.get("txnId")
        if transaction is None or transaction in self.transactions:
            self.complain(f"version {version} has the transaction id {transaction}, which is none or another's")
        self.transactions.add(str(transaction))
        self.report.increments += name.startswith("increment")
        try:
            self._compare(commit, intent, before, after)
        except LookupError:
            # So old a version is not remembered.
            return

    def _compare(self, commit: Commit, intent: Entry, before: Rows, after: Rows) -> None:
        """Compare the rows of a version with those that its operation should leave."""
        # An operation that finds nothing to do is at snapshot isolation, as delta-spark has it: it did nothing to the
        # version that it read, and does not look at what came after.
        idle = not any(action["dataChange"] for kind in ("add", "remove") for action in commit.of(kind))
        start = self._past(commit.info.get("readVersion", commit.version - 1)) if idle else before
        expected = EFFECTS[intent["do"]](start, intent["args"], self._past)
        found = start if idle and after == before else after
        if expected != found:
            difference = first_difference(sorted(found.values()), sorted(expected.values()))
            self.complain(f"version {commit.version}, {self._shown(intent['token'])}: the table {difference}")

    def _past(self, version: int) -> Rows:
        rows = self.replay.rows_at(version)
        if rows is None:
            raise LookupError(version)
        return rows

    def _compare_reads(self) -> None:
        """Compare what writers read with the log."""
        for entry in self.reads:
            rows = self.replay.rows_at(entry["version"])
            if rows is None:
                if entry["version"] > self.replay.version:
                    self.complain(f"writer {entry['writer']} read version {entry['version']}, which is not there")
                continue
            found, wanted = [tuple(row) for row in entry["rows"]], sorted(rows.values())
            if found != wanted or entry["count"] != len(wanted):
                difference = first_difference(found, wanted)
                self.complain(f"writer {entry['writer']} read version {entry['version']}, which {difference}")
        self.reads.clear()

    def _compare_idle(self) -> None:
        """Look whether what found nothing to do had nothing to do."""
        for entry in self.idle:
            rows = self.replay.rows_at(entry["idle"])
            intent = self.intents[entry["token"]]
            if entry["token"] in self.committed:
                self.complain(f"{self._shown(entry['token'])} found nothing to do and is in the log")
            if rows is not None and EFFECTS[intent["do"]](rows, intent["args"], self._past) != rows:
                self.complain(f"{self._shown(entry['token'])} found nothing to do at version {entry['idle']}")
        self.idle.clear()

    # --- time -------------------------------------------------------------------------------------

    def _age(self) -> None:
        """Make old what is no longer anybody's: orphans of the dead, and the log's beginning, once it is checked."""
        with self.lock:
            oldest = min(self.alive.values(), default=0.0) - 1
        listed = []
        for path in self._data_files():
            with contextlib.suppress(FileNotFoundError):
                listed += [path] if path.stat().st_mtime < oldest else []
        # Whoever wrote these is dead, so what the log does not know by now it never will.
        self._step()
        long_ago = time.time() - 2 * 86400
        for path in listed:
            if path.relative_to(self.table).as_posix() not in self.replay.known:
                with contextlib.suppress(FileNotFoundError):
                    os.utime(path, (long_ago, long_ago))
        first = self.replay.behind[0].version if self.replay.behind else 0
        last = self.replay.settle(self.replay.version - FRESH)
        month = time.time() - 40 * 86400
        for version in range(first, last + 1):
            with contextlib.suppress(FileNotFoundError):
                os.utime(self.replay.log / f"{version:020}.json", (month + version, month + version))

    def _data_files(self) -> list[pathlib.Path]:
        out = []
        for folder, folders, names in os.walk(self.table):
            folders[:] = [name for name in folders if name != "_delta_log"]
            out += [pathlib.Path(folder, name) for name in names]
        return out

    # --- the end ----------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Check everything once more, now that all is quiet."""
        self._step()
        self._step()
        replay, report = self.replay, self.report
        if replay.version < 0:
            self.complain("there is no table")
            return
        replay.settle(replay.version)
        replay.check_compactions()
        replay.check_digests()
        replay.check_files()
        for token in self.refused:
            if token in self.committed:
                self.complain(f"{self._shown(token)} was refused and is in the log")
        report.commits = replay.version + 1
        report.rows, report.counter = len(replay.rows), replay.rows.get(0, (0, "", 0, -1))[3]
        report.checkpoints = len(list(replay.log.glob("*.checkpoint*")))
        if self.options.readers:
            self._read()
            self._clear()

    def _read(self) -> None:
        """Have deltafast and deltalake read the newest version and some older ones."""
        readable = [version for version, _ in self.replay.past if version > self.replay.version - FRESH // 2]
        chosen = sorted({self.replay.version, *self.random.sample(readable, min(4, len(readable)))})
        found = reading(self.table, *map(str, chosen))
        for reader, versions in found.items():
            for version, rows in versions.items():
                wanted = sorted(list(row) for row in (self.replay.rows_at(int(version)) or {}).values())
                if rows != wanted:
                    self.complain(f"{reader} reads version {version}, which {first_difference(rows, wanted)}")

    def _clear(self) -> None:
        """Vacuum what the dead left behind: all that is not a version's must go, all else must stay."""
        long_ago = time.time() - 2 * 86400
        for path in self._data_files():
            os.utime(path, (long_ago, long_ago))
        reading(self.table, "--vacuum", "1")
        left = {path.relative_to(self.table).as_posix() for path in self._data_files()}
        if strange := left - self.replay.known:
            self.complain(f"a vacuum leaves {len(strange)} files that no version has, {min(strange)} for one")
        self.replay.check_files()


def environment() -> dict[str, str]:
    """The environment of processes that use these modules, and deltafast where this process has it from."""
    paths = [str(TESTS), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def reading(*arguments: object) -> Any:
    """What `readers` answers."""
    command = [sys.executable, "-m", "crash.readers", *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{command} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def run(options: Options, keep: pathlib.Path | None = None) -> Report:
    """Run in a folder that goes when nothing is wrong; one that stays is named."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="crash-", dir=keep))
    report = Run(options, folder).go()
    if report.violations and not options.stop_early:
        print(f"the table and its journals are kept in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return report
