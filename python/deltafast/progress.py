"""Progress of scans and commands.

The core counts in atomics; a daemon thread looks at them ten times a second. So nothing in the
core's work ever calls Python, and a consumer that holds the GIL cannot be blocked by its own bar.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from deltafast import _core

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Bar", "Progress", "Watch", "counted", "watch"]

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


#: False: none; True: a bar on standard error; a function of (done, total); or a tqdm-like bar. The total is 0 as long
#: as it is not known, and grows where a command goes over files more than once.
Progress: TypeAlias = bool | Callable[[int, int], object] | TqdmLike


class Bar:
    """A one-line bar on standard error.

    Args:
        unit: What is counted.
    """

    _WIDTH = 30

    def __init__(self, unit: str = "files") -> None:
        self._start = time.monotonic()
        self._unit = unit
        self._has_drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Draw the state, once there is one."""
        if not done and not total:
            return
        seconds = time.monotonic() - self._start
        full = min(self._WIDTH, self._WIDTH * done // total) if total else 0
        bar = "#" * full + "." * (self._WIDTH - full)
        state = f"[{bar}] {done}/{total}" if total else f"{done}"
        sys.stderr.write(f"\r{state} {self._unit}, {seconds:.1f} s")
        sys.stderr.flush()
        self._has_drawn = True

    def close(self) -> None:
        """End the line."""
        if self._has_drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()


class Watch:
    """A thread that reports how far something is until it is stopped or gone, a stream also until it is done."""

    def __init__(
        self,
        counted: Counted,
        report: Callable[[int, int], object],
        finish: Callable[[], object],
        *,
        is_stream: bool,
    ) -> None:
        self._counted = weakref.ref(counted)
        self._is_stream = is_stream
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
            if self._is_stream and 0 < state[1] <= state[0]:
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


def watch(counted: Counted, progress: Progress, unit: str = "files", *, is_stream: bool = True) -> Watch | None:
    """Start reporting as `progress` asks; None where it asks for nothing."""
    if progress is False:
        return None
    if progress is True:
        bar = Bar(unit)
        return Watch(counted, bar, bar.close, is_stream=is_stream)
    if hasattr(progress, "update") and hasattr(progress, "close"):
        return _watch_tqdm(counted, progress, is_stream=is_stream)  # pyright: ignore[reportArgumentType]
    if callable(progress):
        return Watch(counted, progress, _nothing, is_stream=is_stream)
    message = "progress must be True, False, a function of (done, total) or a tqdm-like bar"
    raise TypeError(message)


def _nothing() -> None:
    pass


@contextmanager
def counted(progress: Progress, unit: str = "files") -> Generator[_core.Counter | None]:
    """Report what the calls of the core within the block do, as `progress` asks.

    Args:
        progress: See `Progress`. Where it asks for nothing, a block around this one goes on counting.
        unit: What is counted, for a bar of our own.

    Returns:
        What counts; None where nobody asked.
    """
    counter = _core.Counter()
    watching = watch(counter, progress, unit, is_stream=False)
    if watching is None:
        yield None
        return
    try:
        with counter:
            yield counter
    finally:
        watching.stop()


def _watch_tqdm(counted: Counted, bar: TqdmLike, *, is_stream: bool) -> Watch:
    seen = 0

    def report(done: int, total: int) -> None:
        nonlocal seen
        bar.total = total or None
        bar.update(done - seen)
        seen = done

    return Watch(counted, report, bar.close, is_stream=is_stream)
