"""Forks writers off, kills them, forks new ones; a process of its own, so that nothing else delays a kill.

    python -m crash.herd '{"module": "crash.operations", "table": ..., "journals": ..., "writers": 16, ...}'

The writers' modules are imported once, before the first fork, and not used: no thread runs here. Every start and every
kill is told on standard output, a JSON object a line. It ends, and all writers with it, when standard input is closed.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pathlib
import random
import select
import signal
import struct
import sys
import time
import traceback
from typing import Any, NoReturn

_CREATE, _MOVED_TO, _DELETE = 0x100, 0x80, 0x200
_DIE_WITH_PARENT = 1


class Watch:
    """The log's folder, seen by the kernel (inotify)."""

    def __init__(self, folder: pathlib.Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.file = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.file < 0 or libc.inotify_add_watch(self.file, bytes(folder), _CREATE | _MOVED_TO | _DELETE) < 0:
            raise OSError(ctypes.get_errno(), f"cannot watch {folder}")

    def wait(self, seconds: float) -> str | None:
        """The next change from now on: the name of what changed, None if nothing does."""
        try:
            while os.read(self.file, 1 << 16):
                pass
        except BlockingIOError:
            pass
        if not select.select([self.file], [], [], seconds)[0]:
            return None
        data = os.read(self.file, 1 << 16)
        _, _, _, length = struct.unpack_from("iIII", data)
        return data[16 : 16 + length].rstrip(b"\0").decode()


class Herd:
    """The writers and their lives."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.random = random.Random(f"herd/{options['seed']}")
        self.module = importlib.import_module(options["module"])
        self.table, self.journals = pathlib.Path(options["table"]), pathlib.Path(options["journals"])
        self.living: dict[int, int] = {}
        self.lives = 0

    def send(self, **what: Any) -> None:
        """Say what happened."""
        print(json.dumps(what), flush=True)

    def fork(self, writer: int | None) -> int:
        """Start a writer, or (None) have the table made."""
        self.lives += 1
        pid = os.fork()
        if pid == 0:
            self._child(writer)
        return pid

    def _child(self, writer: int | None) -> NoReturn:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        os.close(0)
        try:
            if writer is None:
                self.module.create(self.table, self.journals, self.options)
            else:
                self.module.live(self.table, self.journals, self.options, writer, self.lives)
        except BaseException:  # noqa: BLE001 - nothing of the parent's may run on in the child
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def start(self, writer: int) -> None:
        """Start a writer."""
        # Told before: no file of this life is older.
        self.send(start=writer, life=self.lives + 1, time=time.time())
        self.living[writer] = self.fork(writer)

    def bury(self) -> None:
        """Take note of writers that ended by themselves, which they should not."""
        for writer, pid in list(self.living.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.send(died=writer)
                self.start(writer)

    def kill(self, name: str | None) -> None:
        """Kill the writer that has the file of the log in the making, else any."""
        victims = list(self.living)
        self.random.shuffle(victims)
        victim = next((w for w in victims if name is not None and _holds(self.living[w])), None)
        held, victim = victim is not None, victims[0] if victim is None else victim
        os.kill(self.living[victim], signal.SIGKILL)
        os.waitpid(self.living.pop(victim), 0)
        self.send(kill=victim, at_commit=name is not None, held=held, time=time.time())
        self.start(victim)

    def run(self) -> None:
        """Go on until standard input ends."""
        _, status = os.waitpid(self.fork(None), 0)
        if status:
            self.send(failed="the table could not be made")
            return
        watch = Watch(self.table / "_delta_log")
        for writer in range(self.options["writers"]):
            self.start(writer)
        rate = self.options["kills_per_second"]
        while True:
            pause = self.random.expovariate(rate) if rate else 1.0
            if select.select([0], [], [], pause)[0]:
                break
            self.bury()
            if rate:
                self.kill(watch.wait(0.3) if self.random.random() < 0.5 else None)
        for pid in self.living.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.send(stopped=True)


def _holds(pid: int) -> bool:
    """Whether a process has a file of the log open that has no name yet."""
    try:
        return any("/_delta_log/." in str(file.readlink()) for file in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


if __name__ == "__main__":
    Herd(json.loads(sys.argv[1])).run()
