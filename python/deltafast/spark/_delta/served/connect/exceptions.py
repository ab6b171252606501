"""`delta.connect.exceptions`: importing it makes PySpark raise these classes."""

from typing import Any

from deltafast.spark._session import connect_exceptions

#: The conflicts that a server reports, by delta-spark's names.
__all__ = list(connect_exceptions.__all__)  # pyright: ignore[reportUnsupportedDunderAll]
#: As in delta-spark, whose tests look at it.
_delta_exception_registered = True


def __getattr__(name: str) -> Any:
    return getattr(connect_exceptions, name)
