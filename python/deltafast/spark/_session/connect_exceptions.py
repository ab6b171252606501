"""Conflicts over Spark Connect: subclasses of those of `deltafast.spark.exceptions` and of PySpark's exceptions there.

Once this module is imported, PySpark raises them for a server's errors, and deltafast for its own, as
`delta.connect.exceptions` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.errors.exceptions.connect import EXCEPTION_CLASS_MAPPING, SparkConnectGrpcException

from deltafast.exceptions import DETAILS, DeltaError
from deltafast.spark import exceptions

if TYPE_CHECKING:
    from deltafast.spark._conditions import ErrorCondition

__all__ = list(exceptions.CONFLICTS)  # pyright: ignore[reportUnsupportedDunderAll]


def _init(self: Any, message: str | None = None, **given: Any) -> None:
    """Keep everything that the server reported."""
    place = {name: given.pop(name) for name in DETAILS if name in given}
    DeltaError.__init__(self, message or "", **place)
    SparkConnectGrpcException.__init__(self, message, **given)


def _set_condition(self: Any, condition: ErrorCondition | None) -> None:
    """Set the condition of an error of deltafast; the message of a server's error already names its condition."""
    if condition is not None:
        self._errorClass, self._sql_state = condition.name, condition.sql_state
        self._message = f"[{condition.name}] {self._message}"


def _from_server(name: str) -> type[Any]:
    """Return an exception class that derives from the one of classic sessions and from Connect's."""
    base: type[Any] = getattr(exceptions, name)
    methods = {"__init__": _init, "getMessage": SparkConnectGrpcException.getMessage, "set_condition": _set_condition}
    return type(name, (base, SparkConnectGrpcException), {"__doc__": base.__doc__, "__module__": __name__, **methods})


_CLASSES: Final[dict[str, type[Any]]] = {name: _from_server(name) for name in exceptions.CONFLICTS}
globals().update(_CLASSES)
exceptions.OVER_CONNECT.update(_CLASSES)
EXCEPTION_CLASS_MAPPING.update({f"{exceptions.JAVA}.{name}": kind for name, kind in _CLASSES.items()})
