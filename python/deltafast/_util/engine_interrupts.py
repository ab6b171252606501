"""How a call of the core that reads rows of another engine stops that engine.

The core can cancel its own work, but not a query whose next row it waits for. So the thread that calls the core names
what stops the query, and the core calls it once the exception of a signal handler has ended the call.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["stop_engines", "stopped_by"]


class _Stops(threading.local):
    def __init__(self) -> None:
        self.stops: list[Callable[[], object]] = []


_CURRENT = _Stops()


@contextmanager
def stopped_by(stop: Callable[[], object]) -> Generator[None]:
    """Call `stop` repeatedly while an interrupted call of the core within the block does not end.

    Args:
        stop: Interrupts the query; it does not wait.
    """
    stops = _CURRENT.stops
    stops.append(stop)
    try:
        yield
    finally:
        stops.remove(stop)


def stop_engines() -> None:
    """Interrupt the queries of this thread; the core calls this."""
    for stop in tuple(_CURRENT.stops):
        stop()
