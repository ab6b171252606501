"""Progress of a running scan.

The core counts files in atomics; a daemon thread looks at them ten times a second. So nothing in the
stream itself ever calls Python, and a consumer that holds the GIL cannot be blocked by its own bar.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

__all__ = ["Bar", "Progress", "Watch", "watch"]

_INTERVAL = 0.1


class Counted(Protocol):
    """Something that knows how far it is."""

    def progress(self) -> tuple[int, int]:
        """Done, and all."""
        ...


class TqdmLike(Protocol):
    """What is needed of a tqdm-like bar."""

    total: Any

    def update(self, n: int) -> Any:
        """Advance by `n`."""
        ...

    def close(self) -> Any:
        """Finish the bar."""
        ...


#: False: none; True: a bar on standard error; a function of (done, total); or a tqdm-like bar.
Progress: TypeAlias = bool | Callable[[int, int], object] | TqdmLike


class Bar:
    """A one-line bar on standard error."""

    _WIDTH = 30

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Draw the state; a line of its own once all is done."""
        full = self._WIDTH if total == 0 else self._WIDTH * done // total
        seconds = time.monotonic() - self._start
        bar = "#" * full + "." * (self._WIDTH - full)
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r[{bar}] {done}/{total} files, {seconds:.1f} s{end}")
        sys.stderr.flush()


class Watch:
    """A thread that reports a stream's progress until it is done, stopped or gone."""

    def __init__(self, counted: Counted, report: Callable[[int, int], object], finish: Callable[[], object]) -> None:
        self._counted = weakref.ref(counted)
        self._report = report
        self._finish = finish
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deltafast-progress", daemon=True)
        self._thread.start()

    def _state(self) -> tuple[int, int] | None:
        counted = self._counted()
        return None if counted is None else counted.progress()

    def _run(self) -> None:
        last: tuple[int, int] | None = None
        while not self._stopped.wait(_INTERVAL):
            state = self._state()
            if state is None:
                break
            if state != last:
                self._report(*state)
                last = state
            if 0 < state[1] <= state[0]:
                break
        state = self._state()
        if state is not None and state != last:
            self._report(*state)
        self._finish()

    def stop(self) -> None:
        """Report the last state and end the thread."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()


def watch(counted: Counted, progress: Progress) -> Watch | None:
    """Start reporting as `progress` asks; None where it asks for nothing."""
    if progress is False:
        return None
    if progress is True:
        return Watch(counted, Bar(), _nothing)
    if hasattr(progress, "update") and hasattr(progress, "close"):
        return _watch_tqdm(counted, progress)  # pyright: ignore[reportArgumentType]
    if callable(progress):
        return Watch(counted, progress, _nothing)
    message = "progress must be True, False, a function of (done, total) or a tqdm-like bar"
    raise TypeError(message)


def _nothing() -> None:
    pass


def _watch_tqdm(counted: Counted, bar: TqdmLike) -> Watch:
    seen = 0

    def report(done: int, total: int) -> None:
        nonlocal seen
        bar.total = total
        bar.update(done - seen)
        seen = done

    return Watch(counted, report, bar.close)
