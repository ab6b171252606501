"""Progress of scans and operations.

The core counts in atomics, which a daemon thread reads ten times a second. The core never calls
Python for it, and a consumer that holds the GIL cannot be blocked by its own bar.
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
    """A source of progress."""

    def progress(self) -> tuple[int, int]:
        """Return the units done, and their total."""
        ...


class TqdmLike(Protocol):
    """The interface of a tqdm-like bar."""

    total: Any

    def update(self, n: int) -> Any:
        """Advance by `n`."""
        ...

    def close(self) -> Any:
        """Finish the bar."""
        ...


#: False: none; True: a bar on standard error; a function of (done, total); or a tqdm-like bar. The total is 0 while
#: it is unknown, and grows if an operation reads files more than once.
Progress: TypeAlias = bool | Callable[[int, int], object] | TqdmLike


class Bar:
    """A one-line bar on standard error.

    Args:
        unit: The counted unit.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> from deltafast.progress import Bar
        >>> write_deltalake("cities", {"id": [1, 2]})
        >>> rows = DeltaTable("cities").to_pyarrow_table(progress=Bar("files"))
    """

    _WIDTH = 30

    def __init__(self, unit: str = "files") -> None:
        self._start = time.monotonic()
        self._unit = unit
        self._has_drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Draw the progress, if there is any."""
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
    """A thread that reports progress until its source is deleted or `stop` is called, or until a stream ends."""

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
    """Start reporting according to `progress`; returns None if nothing is to be reported."""
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
    """Report the progress of calls of the core within the block.

    Args:
        progress: See `Progress`. If it is False, an enclosing block continues to count.
        unit: The counted unit, for deltafast's own bar.

    Returns:
        The counter; None if `progress` is False.
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
