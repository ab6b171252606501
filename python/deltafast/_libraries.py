"""Optional libraries: the error for one that is missing names the command that installs it."""

from __future__ import annotations

import sys
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from deltafast.exceptions import MissingLibraryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

__all__ = ["EXTRAS", "is_installed", "names_missing", "raise_named", "require"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: The extra of deltafast that installs a library.
EXTRAS = {
    "boto3": "glue",
    "duckdb": "duckdb",
    "matplotlib": "layout",
    "numpy": "pandas",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "pyspark": "spark",
    "rich": "cli",
    "urllib3": "catalogs",
}


def is_installed(library: str) -> bool:
    """Return whether a library can be imported, without importing it."""
    if library in sys.modules:
        # None is how a program forbids an import.
        return cast("ModuleType | None", sys.modules[library]) is not None
    package = library.rpartition(".")[0]
    return (not package or is_installed(package)) and find_spec(library) is not None


def require(library: str) -> None:
    """Import a library, so that its absence is an error before anything is done."""
    import_module(library)


def names_missing(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make a function that does not find a library say which extra installs it."""

    @wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        try:
            return function(*arguments, **options)
        except ModuleNotFoundError as error:
            raise_named(error, function.__qualname__)
            raise

    return call


def raise_named(error: ModuleNotFoundError, what: str) -> None:
    """Raise an error that names the extra, unless the error does so already or the library is of no extra.

    Args:
        error: The error of the import.
        what: The function that needs the library.

    Raises:
        MissingLibraryError: The library is one of `EXTRAS`.
    """
    library = (error.name or "").partition(".")[0]
    if library in EXTRAS and not isinstance(error, MissingLibraryError):
        message = f"{what} needs {library}, which is not installed: pip install 'deltafast[{EXTRAS[library]}]'"
        raise MissingLibraryError(message) from None
