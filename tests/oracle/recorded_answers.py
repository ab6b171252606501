"""The answers of delta-spark to statements, recorded in `tests/golden/oracle` and replayed where there is no Java.

A test that takes the fixture `answers` runs twice. The variant `recorded` compares deltafast with the stored answers,
without PySpark and Java. The variant `live` asks delta-spark again, fails if a stored answer is out of date, and also
lets delta-spark read what deltafast wrote. `dev/make_oracle_answers.py` records all answers again.

A file has one line for each answer, and the versions of Spark and delta-spark in its first line. The key of an answer
includes the statement, so that a changed statement never meets the answer to another one. Tables of delta-spark from
which tests start are stored in the same way.
"""

from __future__ import annotations

import base64
import functools
import json
import pathlib
import re
import shutil
import time
from typing import TYPE_CHECKING, Any

from .reference import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reference import Reference

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "oracle"
SCRIPT = "python dev/make_oracle_answers.py"

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


def plain(value: Any) -> Any:
    """Return a value as JSON gives it back: tuples are lists, keys are strings, sets are sorted lists."""

    def default(found: Any) -> Any:
        return sorted(found, key=str) if isinstance(found, set | frozenset) else str(found)

    return json.loads(json.dumps(value, default=default))


def without_uuids(value: Any) -> Any:
    """Return a plain value in which every UUID is the same, because a writer draws them at random."""
    return json.loads(_UUID.sub("uuid", json.dumps(plain(value))))


_TIMES = re.compile(
    r'"(timestamp|inCommitTimestamp|inCommitTimestampOpt|deletionTimestamp|modificationTime|createdTime)":(\d+)'
)


def packed(folder: pathlib.Path) -> dict[str, str]:
    """Return the files of a small table by path: the log as text, data in Base64."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {
        name: path.read_text(encoding="utf-8")
        if path.suffix in (".json", ".crc")
        else base64.b64encode(path.read_bytes()).decode()
        for name, path in files.items()
        # Checksums of Hadoop, which are of the files as they were.
        if not path.name.startswith(".")
    }


def unpack(files: dict[str, str], folder: pathlib.Path) -> None:
    """Write the files of a packed table, moved in time as if its newest commit were of now.

    Retention, time travel and log cleanup go by the time, and the tests are about young tables.
    """
    strings = {name: text for name, text in files.items() if name.endswith((".json", ".crc"))}
    newest = max(int(stamp) for text in strings.values() for _, stamp in _TIMES.findall(text))
    shift = int(time.time() * 1000) - newest
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in strings:
            moved = _TIMES.sub(lambda found: f'"{found[1]}":{int(found[2]) + shift}', text)
            path.write_text(moved, encoding="utf-8")
        else:
            path.write_bytes(base64.b64decode(text))


def refusal(run: Callable[..., Any], *args: Any) -> str | None:
    """Run a statement of Spark and return the error condition that it fails with, or None."""
    try:
        run(*args)
    except Exception as error:  # noqa: BLE001 - whether and how it fails is the answer
        found = _CONDITION.search(str(error))
        return found[1] if found else type(error).__name__
    return None


class Recording:
    """The file of one test module: tables by name, answers by test and key."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.header: dict[str, str] = {}
        self.tables: dict[str, dict[str, str]] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        #: Tables that were recorded by this process.
        self.made: set[str] = set()
        if path.exists():
            # Not `splitlines`: strings may contain what else it takes for the end of a line.
            header, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
            self.header = json.loads(header)
            for line in lines:
                entry = json.loads(line)
                if "table" in entry:
                    self.tables[entry["table"]] = entry["files"]
                    continue
                self.tests.setdefault(entry["test"], {})[entry["key"]] = entry["answer"]

    def write(self, spark: str) -> None:
        """Write the file; `spark` is the version of Spark that answered."""
        self.header = {"delta-spark": PACKAGE, "spark": spark, "recorded by": f"{SCRIPT} {self.path.stem}"}
        lines: list[dict[str, Any]] = [self.header]
        lines += [{"table": name, "files": files} for name, files in self.tables.items()]
        for test, answers in self.tests.items():
            lines += [{"test": test, "key": key, "answer": answer} for key, answer in answers.items()]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        self.path.write_text(text, encoding="utf-8")


@functools.cache
def recording(module: str) -> Recording:
    """Return the recording of a test module, read once."""
    return Recording(FOLDER / f"{module}.jsonl")


class Answers:
    """Gives the answers of delta-spark to one test."""

    def __init__(self, stored: Recording, test: str, spark: Reference | None, *, record: bool = False) -> None:
        self.spark = spark
        self._recording = stored
        self._test = test
        self._record = record
        self._stored = stored.tests.get(test, {})
        self._asked: dict[str, Any] = {}

    def __call__(
        self, key: str, ask: Callable[..., Any], *args: Any, agree: Callable[[Any, Any], bool] | None = None
    ) -> Any:
        """Return the answer to a question, as a plain value.

        Args:
            key: What is asked; it must differ from the other keys of the test.
            ask: Asks delta-spark; called with it and `args`, in the live variant only.
            args: What `ask` needs.
            agree: Whether the stored and the live answer agree, where they need not be equal.
        """
        assert key not in self._asked, f"the key {key!r} is used twice"
        found = self._recorded(key) if self.spark is None else plain(ask(self.spark, *args))
        # A copy, since tests take answers apart.
        self._asked[key] = plain(found)
        if self.spark is not None and not self._record:
            recorded = self._recorded(key)
            if agree is None or not agree(recorded, found):
                assert found == recorded, f"delta-spark no longer answers {key!r} as recorded: run {self._command}"
        return found

    def table(self, name: str, folder: pathlib.Path, make: Callable[..., Any], *args: Any) -> None:
        """Put a table of delta-spark into a folder: the stored one, in both variants.

        Args:
            name: What the table is called among those of the module, which tests may share.
            folder: Where it is to be.
            make: Has delta-spark make it; called with it, the folder and `args` when answers are recorded.
            args: What `make` needs.
        """
        tables, made = self._recording.tables, self._recording.made
        if self._record and name not in made:
            assert self.spark is not None
            make(self.spark, folder, *args)
            self.spark.forget()
            tables[name] = packed(folder)
            made.add(name)
            shutil.rmtree(folder)
        assert name in tables, f"the table {name!r} is not recorded: run {self._command}"
        unpack(tables[name], folder)

    def _recorded(self, key: str) -> Any:
        assert key in self._stored, f"no answer is recorded for {self._test} {key!r}: run {self._command}"
        return plain(self._stored[key])

    @property
    def _command(self) -> str:
        return f"{SCRIPT} {self._recording.path.stem}"

    def finish(self) -> None:
        """Check that all stored answers were asked for; or store the new ones."""
        if self._record:
            assert self.spark is not None
            self._recording.tests[self._test] = self._asked
            self._recording.write(self.spark.spark_version)
        else:
            unused = [key for key in self._stored if key not in self._asked]
            assert not unused, f"recorded answers that {self._test} does not ask for: {unused}; run {self._command}"
