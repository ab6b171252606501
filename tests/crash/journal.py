"""What a writer is going to do, and what became of it: one JSON object a line, on disk before the writer goes on."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathlib

Entry = dict[str, Any]


class Journal:
    """A writer's journal, open for more."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        # An entry that a killed life left unfinished ends here.
        os.write(self._file, b"\n")

    def note(self, **entry: Any) -> None:
        """Write an entry; it is on the disk when this returns."""
        os.write(self._file, json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        os.fdatasync(self._file)


def entries(data: bytes) -> list[Entry]:
    """The whole entries of a journal."""
    out = []
    for line in data.splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            continue
    return out


class Journals:
    """All writers' journals, read as they grow."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._read: dict[pathlib.Path, int] = {}

    def more(self) -> list[Entry]:
        """The entries that were written since the last call; those of one writer in their order."""
        out: list[Entry] = []
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            out += [entry | {"writer": path.stem} for entry in entries(whole)]
        return out
