"""A lock that is free in a forked child process."""

from __future__ import annotations

import os
import threading

__all__ = ["ForkLock"]


class ForkLock:
    """A lock for `with`. A child process has a new one: the thread that held it at the fork does not exist there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._lock, self._process = threading.Lock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
