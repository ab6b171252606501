"""A lock that is free in a forked child process, and that its thread may take again."""

from __future__ import annotations

import os
import threading

__all__ = ["ForkLock"]


class ForkLock:
    """A lock for `with`, to be held for a few instructions.

    A child process has a new one: the thread that held it at the fork does not exist there. A thread that holds it may
    take it again: a signal handler or a finalizer can run between any two instructions.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._lock, self._process = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
