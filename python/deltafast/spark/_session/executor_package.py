"""Code for the Python of executors, shipped so that an executor without deltafast raises a helpful error.

Without this an executor would fail with a missing module, deep in Spark's unpickling. Functions are shipped as bytes,
which are unpickled only after a check that deltafast is installed in the driver's release.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Shipped", "register_at_driver", "shipped", "shipped_format"]


def _opener() -> Callable[[bytes, str], Any]:
    """Return a new function that unpickles shipped bytes; one of this module would be pickled by the module's name."""

    def opened(payload: bytes, version: str) -> Any:
        import pickle
        import sys

        try:
            import deltafast

            found = deltafast.__version__
        except ImportError:
            found = "not there"
        if found != version:
            raise RuntimeError(
                f"deltafast {version} is needed in the Python of Spark's executors ({sys.executable}), where it is "
                f"{found}: read_mode='arrow', writer='arrow', format('deltafast') and, over Connect, change data feeds "
                f"run there. Install deltafast=={version} on every node, or ship it with spark.archives. "
                "deltafast.spark.read by index or paths, write, stream, sink and the commands need nothing there"
            )
        return pickle.loads(payload)  # noqa: S301 - pickled by the driver

    return opened


def _packed(what: Any) -> tuple[bytes, str]:
    from pyspark import cloudpickle

    import deltafast

    pickler: Any = cloudpickle
    return pickler.dumps(what), deltafast.__version__


def shipped(function: Callable[[Iterator[Any]], Iterator[Any]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for `mapInArrow`, to be called by executors."""
    (payload, version), opened = _packed(function), _opener()

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        yield from opened(payload, version)(batches)

    return run


class Shipped:
    """A wrapper of a Python data source that executors unpickle only after the check."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return its class and its state, as bytes."""
        payload, version = _packed((type(self), self.__getstate__()))
        opened = _opener()

        def made(payload: bytes, version: str) -> Any:
            kind, state = opened(payload, version)
            out = object.__new__(kind)
            out.__dict__.update(state or {})
            return out

        return made, (payload, version)


def shipped_format(kind: type[Any]) -> type[Any]:
    """Return a Python data source, to be registered."""
    from pyspark.sql.datasource import DataSource

    (payload, version), opened, called = _packed(kind), _opener(), kind.name()

    class Registered(DataSource):
        @classmethod
        def name(cls) -> str:
            return called

        def __new__(cls, options: Any) -> Any:
            return opened(payload, version)(options)

    return Registered


class _Instead:
    """An object with some attributes replaced."""

    def __init__(self, of: Any, **attributes: Any) -> None:
        self._of = of
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


def register_at_driver(spark: Any, kind: type[Any]) -> None:
    """Register a Python data source whose code runs on the driver only, in the driver's own Python.

    Spark would run it in the executors' Python, which may not exist on the driver's machine, or lack deltafast.

    Args:
        spark: A classic session.
        kind: The data source.
    """
    from pyspark.sql.datasource import DataSourceRegistration

    context = _Instead(spark.sparkContext, pythonExec=sys.executable)
    session: Any = _Instead(spark, sparkContext=context)
    DataSourceRegistration(session).register(kind)
