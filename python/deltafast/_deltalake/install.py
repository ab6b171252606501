"""The name `deltalake`: for one process by `install_as_deltalake`, permanently by that of `compat/deltalake/`.

Both load the files of `served`, which bind the names of `deltalake` to those of deltafast. Names of `deltalake` that
deltafast does not have yet are refused here, until a class or method of that name exists.
"""

from __future__ import annotations

import os
import re
import sys
from datetime import date
from importlib import import_module
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltafast._util.arguments import COMMIT_ARGUMENTS, late_arguments
from deltafast._util.arrow_types import with_leaves
from deltafast._util.values import partition_text
from deltafast.exceptions import warn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = [
    "convert_arrow_schema",
    "deprecate_positional_commit_args",
    "disable_nanosecond_timestamps",
    "enable_nanosecond_timestamps",
    "encode_partition_value",
    "init_tracing",
    "install_as_deltalake",
    "missing",
    "nanosecond_timestamps_enabled",
    "served_attribute",
    "shutdown_tracing",
    "without_lock_table",
]

_NAME = "deltalake"
_FILES = Path(__file__).with_name("served")
#: Keys of storage options that name the locking provider.
_LOCKING = {"aws_s3_locking_provider", "s3_locking_provider"}

#: Names of `deltalake` that deltafast does not have yet.
_LATER = frozenset({"PyMergeBuilder"})


def install_as_deltalake() -> None:
    """Make `import deltalake` import deltafast in this process, for libraries that use `deltalake`.

    Call it before anything imports `deltalake`: best at the beginning of the program, also before the import of Polars,
    which looks for `deltalake`. A second call does nothing. New processes (spawned workers) have to call it themselves;
    if that is not possible, install the distribution of `compat/deltalake/` instead, which provides the package.

    Raises:
        ImportError: The package `deltalake` itself was already imported.
    """
    found = sys.modules.get(_NAME)
    if found is not None and not _is_ours(found):
        version, place = getattr(found, "__version__", "unknown"), getattr(found, "__file__", None)
        message = (
            f"the package deltalake (version {version}, {place}) was imported already: "
            "call deltafast.install_as_deltalake() before anything imports it"
        )
        raise ImportError(message, name=_NAME)
    if found is None and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _is_ours(module: ModuleType) -> bool:
    """Return whether a module `deltalake` was loaded from these files; `compat/deltalake/` has a copy of them."""
    return getattr(module, "__served_by__", None) == "deltafast"


class _Finder(DistributionFinder):
    """Finds the package `deltalake` in `served`, its submodules through its path, and its version for metadata."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of the package itself."""
        if fullname != _NAME:
            return None
        return spec_from_file_location(_NAME, _FILES / "__init__.py", submodule_search_locations=[str(_FILES)])

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        """Return the distribution of `deltalake` for `importlib.metadata`."""
        name = getattr(context, "name", None)
        return [_Served()] if name is None or re.sub(r"[-_.]+", "-", name).lower() == _NAME else []


class _Served(Distribution):
    """Package metadata as of an installed `deltalake`."""

    def read_text(self, filename: str) -> str | None:
        """Return the minimal metadata."""
        if filename != "METADATA":
            return None
        found = re.search(r'^__version__ = "(.+)"$', (_FILES / "__init__.py").read_text("utf-8"), re.MULTILINE)
        version = found[1] if found else "0"
        return f"Metadata-Version: 2.1\nName: {_NAME}\nVersion: {version}\nSummary: served by deltafast\n"

    def locate_file(self, path: Any) -> Any:
        """Return the location of a file of the package."""
        return _FILES.parent / path


#: Submodules that `import deltalake` loads, by package.
SUBMODULES = {
    "deltalake": ("_internal", "_util", "exceptions", "query", "schema", "table", "transaction", "writer"),
    "deltalake.writer": ("_conversion", "_utils", "convert_to", "properties", "writer"),
}


def missing(module: str, name: str) -> Any:
    """Return a submodule, or a name that a served module lacks from deltafast, if it exists there.

    Raises:
        AttributeError: deltafast does not have the name, either.
    """
    if name in SUBMODULES.get(module, ()):
        return import_module(f"{module}.{name}")
    if name in _LATER:
        for home in _homes():
            if hasattr(home, name):
                return getattr(home, name)
        message = f"{module}.{name} is not there yet: this release of deltafast lacks it"
        raise AttributeError(message, name=name)
    message = f"module {module!r} has no attribute {name!r}"
    raise AttributeError(message, name=name)


def _homes() -> Iterator[ModuleType]:
    yield import_module("deltafast")
    yield import_module("deltafast.table")


def served_attribute(module: str, name: str, plain: Any) -> Any:
    """Return an attribute of a module of the served `deltalake`, which programs may have replaced.

    Args:
        module: Full name of the module.
        name: Name of the attribute.
        plain: The value if the module is not loaded, or belongs to the package `deltalake` itself.
    """
    package = sys.modules.get(_NAME)
    found = None if package is None or not _is_ours(package) else sys.modules.get(module)
    return getattr(found, name, plain)


def encode_partition_value(val: Any) -> str:
    """Return a partition value as a string; a function of `deltalake`.

    Raises:
        ValueError: The type has no string form.
    """
    if not isinstance(val, (str, bool, int, float, date, bytes)):
        message = f"Could not encode partition value for type: {val}"
        raise ValueError(message)  # noqa: TRY004  (deltalake's)
    return cast(
        "str", val.decode("unicode_escape", "backslashreplace") if isinstance(val, bytes) else partition_text(val)
    )


def deprecate_positional_commit_args(
    method_name: str,
    args: Sequence[Any],
    commit_properties: Any = None,
    post_commithook_properties: Any = None,
    legacy_order: Sequence[str] = COMMIT_ARGUMENTS,
) -> tuple[Any, Any]:
    """Return commit and hook properties that may be given by position; a function of `deltalake`.

    Raises:
        TypeError: There are too many arguments, or one is given twice.
    """
    values = (commit_properties, post_commithook_properties)
    given = {name: value for name, value in zip(COMMIT_ARGUMENTS, values, strict=True) if value is not None}
    if args:
        given |= late_arguments(method_name, legacy_order, args, given.keys())
    return given.get(COMMIT_ARGUMENTS[0]), given.get(COMMIT_ARGUMENTS[1])


def convert_arrow_schema(schema: Any, existing_schema: Any = None) -> Any:
    """Convert an Arrow schema of any library to types that Delta has; returns a schema of that library.

    Columns of type null get their type in `existing_schema`. Libraries import this function from
    `deltalake.writer._conversion`.
    """
    import pyarrow as pa

    found: Any = pa.schema(schema)
    known: Any = pa.schema([]) if existing_schema is None else pa.schema(existing_schema)

    def wanted(field: Any) -> Any:
        place = known.get_field_index(field.name) if pa.types.is_null(field.type) else -1
        return field.with_type(_delta_type(field.type if place < 0 else known.field(place).type))

    converted = pa.schema([wanted(field) for field in found], metadata=found.metadata)
    return converted if isinstance(schema, pa.Schema) else cast("Any", type(schema)).from_arrow(converted)


def _delta_type(kind: Any) -> Any:
    """Return the Arrow type for values of this type in a Delta table."""
    import pyarrow as pa

    arrow: Any = pa

    def leaf(kind: Any) -> Any:
        if arrow.types.is_timestamp(kind):
            return arrow.timestamp("us", None if kind.tz is None else "UTC")
        if arrow.types.is_unsigned_integer(kind):
            return getattr(arrow, f"int{kind.bit_width}")()
        return arrow.binary() if arrow.types.is_fixed_size_binary(kind) else kind

    return with_leaves(kind, leaf)


#: Whether a program has enabled nanoseconds; see `enable_nanosecond_timestamps`.
_NANOSECONDS = {"asked for": False}


def enable_nanosecond_timestamps() -> None:
    """Refuse timestamps with nanoseconds instead of truncating them; Delta's timestamps stay microseconds."""
    if not _NANOSECONDS["asked for"]:
        warn("deltafast writes timestamps of microseconds: values with nanoseconds are refused from here on, not cut")
    _NANOSECONDS["asked for"] = True


def disable_nanosecond_timestamps() -> None:
    """Undo `enable_nanosecond_timestamps`: nanoseconds are truncated again."""
    _NANOSECONDS["asked for"] = False


def nanosecond_timestamps_enabled() -> bool:
    """Return whether nanoseconds are refused instead of truncated."""
    return _NANOSECONDS["asked for"]


def init_tracing(endpoint: str | None = None) -> None:
    """Warn that deltafast sends no OpenTelemetry traces."""
    warn(f"deltafast sends no OpenTelemetry traces (to {endpoint or 'the default endpoint'})")


def shutdown_tracing() -> None:
    """Do nothing: no traces are sent."""


def without_lock_table(uri: object, options: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return storage options for a table in S3 without a DynamoDB lock table, which deltafast does not use.

    A warning names the writers that must not be used concurrently.
    """
    given = None if options is None else dict(options)
    if not str(uri).lower().startswith(("s3://", "s3a://")):
        return given
    named = {key: value for key, value in (given or {}).items() if key.lower() in _LOCKING}
    provider = str(next(iter(named.values()), os.environ.get("AWS_S3_LOCKING_PROVIDER") or "none")).strip()
    if provider.lower() != "dynamodb":
        return given
    warn(
        "AWS_S3_LOCKING_PROVIDER=dynamodb: deltafast commits with conditional puts and uses no lock table; writers "
        "that use the lock table must not write to this table at the same time"
    )
    return {key: value for key, value in (given or {}).items() if key not in named} | {
        "AWS_S3_LOCKING_PROVIDER": "none"
    }
