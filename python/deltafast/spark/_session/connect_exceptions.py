"""Conflicts that a Spark Connect server reports, as the exceptions of `deltafast.spark.exceptions`.

Importing this module makes PySpark raise them, as `delta.connect.exceptions` does.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.errors.exceptions.connect import EXCEPTION_CLASS_MAPPING, SparkConnectGrpcException

from deltafast.exceptions import DETAILS, DeltaError
from deltafast.spark import exceptions

__all__ = list(exceptions.CONFLICTS)  # pyright: ignore[reportUnsupportedDunderAll]


def _init(self: Any, message: str | None = None, **given: Any) -> None:
    """Keep everything that the server reported."""
    place = {name: given.pop(name) for name in DETAILS if name in given}
    DeltaError.__init__(self, message or "", **place)
    SparkConnectGrpcException.__init__(self, message, **given)


def _from_server(name: str) -> type[Any]:
    """Return an exception class that derives from the one of classic sessions and from Connect's."""
    base: type[Any] = getattr(exceptions, name)
    methods = {"__init__": _init, "getMessage": SparkConnectGrpcException.getMessage}
    return type(name, (base, SparkConnectGrpcException), {"__doc__": base.__doc__, "__module__": __name__, **methods})


_CLASSES: Final = {name: _from_server(name) for name in exceptions.CONFLICTS}
globals().update(_CLASSES)
EXCEPTION_CLASS_MAPPING.update({f"{exceptions.JAVA}.{name}": kind for name, kind in _CLASSES.items()})
