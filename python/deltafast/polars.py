"""Polars: its functions for Delta tables, with deltafast as reader and writer.

Names, parameters and defaults are those of Polars 2.1 (`pl.scan_delta`, `pl.read_delta`, `DataFrame.write_delta`,
`LazyFrame.sink_delta`), and the functions support all table features that deltafast supports. A parameter that has no
meaning here is accepted where the rows are the same with it, and otherwise refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast, overload

from deltafast._handle import handle_of
from deltafast._libraries import names_missing
from deltafast._util.arrow import lazy_frame_stream
from deltafast._util.options import names
from deltafast._util.values import to_epoch_ms
from deltafast.exceptions import InvalidArgumentError
from deltafast.table import DeltaTable, pinned
from deltafast.writer import write_deltalake

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from deltafast._interop.polars_arguments import CredentialProvider
    from deltafast._ops.merge import TableMerger
    from deltafast._util.arrow import ArrowStreamExportable

    _Source: TypeAlias = str | os.PathLike[str] | DeltaTable
    _Credentials: TypeAlias = CredentialProvider | Literal["auto"] | None
    _SaveMode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]

__all__ = ["read_delta", "scan_cdf", "scan_delta", "sink_delta", "write_delta"]

#: The mode of writes that only Polars has.
_MERGE: Final = "merge"


@names_missing
def scan_delta(
    source: _Source,
    *,
    version: int | str | datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: _Credentials = "auto",
    delta_table_options: Mapping[str, Any] | None = None,
    use_pyarrow: bool = False,  # noqa: ARG001  (the rows are the same)
    pyarrow_options: Mapping[str, Any] | None = None,
) -> pl.LazyFrame:
    """Return a table at one version as a lazy frame, with the meaning of `polars.scan_delta`.

    Columns, predicates and a limit are pushed into the scan, which skips files, row groups and pages;
    `LazyFrame.explain` shows them. Of a predicate that joins conditions by AND, those that deltafast cannot evaluate
    are left to Polars. The version is chosen now: the frame does not see later commits.

    Args:
        source: Path or URL of the table, or a `DeltaTable`, which stays at its version.
        version: A version number, or a timestamp (a datetime, UTC where it has no zone, or an ISO 8601 string): the
            newest version that was committed at or before it. None is the newest version, or that of the `DeltaTable`.
        storage_options: As for `DeltaTable`. Options of Polars' own reader, such as `file_cache_ttl`, have no effect.
            With a `DeltaTable`, options that differ from its own are refused.
        credential_provider: A function, or an object such as `pl.CredentialProviderAWS`, that returns further storage
            options and their expiry time. It is called once, now; the options are not renewed. `auto` and None: the
            core looks for credentials, as for `DeltaTable`. Refused with a `DeltaTable`.
        delta_table_options: Further arguments of `DeltaTable`. Refused with a `DeltaTable`.
        use_pyarrow: Accepted without effect: deltafast reads the rows in any case.
        pyarrow_options: Refused unless empty, because they may select rows (`partitions`) or types (`schema`): filter,
            select and cast the lazy frame instead.

    Returns:
        The table's columns, in its order; strings, lists, structs and timestamps (microseconds) with Polars' types.

    Raises:
        InvalidArgumentError: An argument is invalid, or is refused as described.
        TableNotFoundError: There is no table at the location.
        VersionNotFoundError: The version does not exist.
        DeltaProtocolError: The table needs a feature that this release does not support.
        StorageError: A request to the store failed.

    Examples:
        >>> import polars as pl
        >>> from deltafast.polars import scan_delta, write_delta
        >>> write_delta(pl.DataFrame({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]}), "cities")
        >>> scan_delta("cities").filter(pl.col("id") > 2).select("city").collect().item()
        'Lima'
    """
    from deltafast._interop import polars_scan

    _check_pyarrow_options(pyarrow_options)
    table = _open(source, version, storage_options, credential_provider, delta_table_options)
    return polars_scan.scan(handle_of(table))


@names_missing
def read_delta(
    source: _Source,
    *,
    version: int | str | datetime | None = None,
    columns: Sequence[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: _Credentials = "auto",
    delta_table_options: Mapping[str, Any] | None = None,
    use_pyarrow: bool = False,  # noqa: ARG001  (the rows are the same)
    pyarrow_options: Mapping[str, Any] | None = None,
) -> pl.DataFrame:
    """Return a table at one version as a data frame, with the meaning of `polars.read_delta`.

    Args:
        source: As for `scan_delta`.
        version: As for `scan_delta`.
        columns: The columns, in this order; all if None.
        storage_options: As for `scan_delta`.
        credential_provider: As for `scan_delta`.
        delta_table_options: As for `scan_delta`.
        use_pyarrow: As for `scan_delta`.
        pyarrow_options: As for `scan_delta`.

    Raises:
        InvalidArgumentError: A column does not exist; or as for `scan_delta`.
        DeltaError: The other errors of `scan_delta`.

    Examples:
        >>> import polars as pl
        >>> from deltafast.polars import read_delta, write_delta
        >>> write_delta(pl.DataFrame({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]}), "cities")
        >>> read_delta("cities", version=0, columns=["id"])["id"].to_list()
        [1, 2, 3]
    """
    from deltafast._interop import polars_scan

    _check_pyarrow_options(pyarrow_options)
    table = _open(source, version, storage_options, credential_provider, delta_table_options)
    return polars_scan.read(handle_of(table), names(columns), None)


@names_missing
def scan_cdf(
    source: _Source,
    *,
    starting_version: int | None = None,
    ending_version: int | None = None,
    starting_timestamp: str | datetime | None = None,
    ending_timestamp: str | datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: _Credentials = "auto",
    delta_table_options: Mapping[str, Any] | None = None,
) -> pl.LazyFrame:
    """Return the change data feed of a range of versions as a lazy frame.

    Columns and predicates are pushed into the scan, those over the three columns of the feed, too. The range is
    resolved now: the frame does not see later commits. If columns are mapped, they are named as in the last version of
    the range.

    Protocol: "Change Data Files".

    Args:
        source: Path or URL of the table, or a `DeltaTable`, whose version is then the last possible one.
        starting_version: First version, included; 0 if there is no `starting_timestamp`.
        ending_version: Last version, included; the newest if there is no `ending_timestamp`.
        starting_timestamp: Start with the first commit at or after this timestamp, instead of `starting_version`.
        ending_timestamp: End with the last commit at or before this timestamp, instead of `ending_version`.
        storage_options: As for `scan_delta`.
        credential_provider: As for `scan_delta`.
        delta_table_options: As for `scan_delta`.

    Returns:
        The table's columns, then `_change_type` (String: `insert`, `update_preimage`, `update_postimage`, `delete`),
        `_commit_version` (Int64) and `_commit_timestamp` (Datetime, microseconds, UTC).

    Raises:
        InvalidArgumentError: Both a version and a timestamp are given for one end, or the range is empty; or as for
            `scan_delta`.
        ChangeDataNotRecordedError: The change data feed was disabled in one of the versions.
        VersionNotFoundError: A version of the range does not exist, or its commit was deleted.
        DeltaError: The other errors of `scan_delta`.

    Examples:
        >>> import polars as pl
        >>> from deltafast import DeltaTable
        >>> from deltafast.polars import scan_cdf
        >>> settings = {"delta.enableChangeDataFeed": True}
        >>> table = DeltaTable.create("cities", {"id": "long"}, configuration=settings)
        >>> metrics = table.append({"id": [1, 2]}), table.delete("id = 2")
        >>> changes = scan_cdf("cities", starting_version=1)
        >>> changes.filter(pl.col("_change_type") == "delete").select("id").collect().item()
        2
    """
    from deltafast._interop import polars_scan

    start = _bound("starting", starting_version, starting_timestamp)
    end = _bound("ending", ending_version, ending_timestamp)
    table = _open(source, None, storage_options, credential_provider, delta_table_options)
    return polars_scan.scan_changes(handle_of(table), starting_version, ending_version, start, end)


@overload
def write_delta(
    frame: pl.DataFrame,
    target: _Source,
    *,
    mode: _SaveMode = ...,
    storage_options: Mapping[str, Any] | None = ...,
    credential_provider: _Credentials = ...,
    delta_write_options: Mapping[str, Any] | None = ...,
) -> None: ...


@overload
def write_delta(
    frame: pl.DataFrame,
    target: _Source,
    *,
    mode: Literal["merge"],
    storage_options: Mapping[str, Any] | None = ...,
    credential_provider: _Credentials = ...,
    delta_merge_options: Mapping[str, Any],
) -> TableMerger: ...


@names_missing
def write_delta(
    frame: pl.DataFrame,
    target: _Source,
    *,
    mode: _SaveMode | Literal["merge"] = "error",
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: _Credentials = "auto",
    delta_write_options: Mapping[str, Any] | None = None,
    delta_merge_options: Mapping[str, Any] | None = None,
) -> TableMerger | None:
    """Write a data frame to a table, with the meaning of `polars.DataFrame.write_delta`.

    Args:
        frame: The rows.
        target: The location of an existing or new table, or a `DeltaTable`, which afterwards points at the new version.
        mode: As for `write_deltalake`; `merge` returns the builder of a MERGE with the frame as its source.
        storage_options: As for `scan_delta`.
        credential_provider: As for `scan_delta`.
        delta_write_options: Further arguments of `write_deltalake`; refused with `mode="merge"`.
        delta_merge_options: Arguments of `DeltaTable.merge`, at least `predicate`; refused with other modes.

    Returns:
        The builder of a MERGE for `mode="merge"`, else None.

    Raises:
        InvalidArgumentError: A column has a type that Delta lacks (such as Null or Time), or an argument is invalid,
            missing or refused as described.
        TableNotFoundError: There is no table to merge into.
        DeltaError: As for `write_deltalake` and `DeltaTable.merge`.

    Examples:
        >>> import polars as pl
        >>> from deltafast.polars import read_delta, write_delta
        >>> write_delta(pl.DataFrame({"id": [1, 2]}), "numbers")
        >>> write_delta(pl.DataFrame({"id": [3]}), "numbers", mode="append")
        >>> read_delta("numbers").height
        3
    """
    import polars as pl

    if not isinstance(frame, pl.DataFrame):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"write_delta takes a Polars data frame, not a {type(frame).__name__}: sink_delta takes lazy frames"
        raise InvalidArgumentError(message)
    arguments = _WriteArguments(mode, storage_options, credential_provider, delta_write_options, delta_merge_options)
    return _write(lambda: frame, frame.schema, target, arguments)


@overload
def sink_delta(
    lazy_frame: pl.LazyFrame,
    target: _Source,
    *,
    mode: _SaveMode = ...,
    storage_options: Mapping[str, Any] | None = ...,
    credential_provider: _Credentials = ...,
    delta_write_options: Mapping[str, Any] | None = ...,
    engine: str | pl.GPUEngine = ...,
    optimizations: pl.QueryOptFlags | None = ...,
) -> None: ...


@overload
def sink_delta(
    lazy_frame: pl.LazyFrame,
    target: _Source,
    *,
    mode: Literal["merge"],
    storage_options: Mapping[str, Any] | None = ...,
    credential_provider: _Credentials = ...,
    delta_merge_options: Mapping[str, Any],
    engine: str | pl.GPUEngine = ...,
    optimizations: pl.QueryOptFlags | None = ...,
) -> TableMerger: ...


@names_missing
def sink_delta(
    lazy_frame: pl.LazyFrame,
    target: _Source,
    *,
    mode: _SaveMode | Literal["merge"] = "error",
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: _Credentials = "auto",
    delta_write_options: Mapping[str, Any] | None = None,
    delta_merge_options: Mapping[str, Any] | None = None,
    engine: str | pl.GPUEngine = "auto",
    optimizations: pl.QueryOptFlags | None = None,
) -> TableMerger | None:
    """Run the query of a lazy frame and write its rows to a table, with the meaning of `polars.LazyFrame.sink_delta`.

    The rows are written batch by batch, in their order, and never collected. (In releases of Polars whose batches have
    no Arrow C stream, the frame is collected first.)

    Args:
        lazy_frame: The query. It runs once: during this call, or in `execute` of the MERGE.
        target: As for `write_delta`.
        mode: As for `write_delta`.
        storage_options: As for `scan_delta`.
        credential_provider: As for `scan_delta`.
        delta_write_options: As for `write_delta`.
        delta_merge_options: As for `write_delta`.
        engine: Polars' engine for the query, as for `polars.LazyFrame.collect`.
        optimizations: Polars' optimizations of the query; its default if None.

    Returns:
        The builder of a MERGE for `mode="merge"`, else None.

    Raises:
        InvalidArgumentError: As for `write_delta`, or the query fails.
        DeltaError: The other errors of `write_delta`.

    Examples:
        >>> import polars as pl
        >>> from deltafast.polars import read_delta, sink_delta
        >>> sink_delta(pl.LazyFrame({"id": [1, 2]}), "numbers")
        >>> read_delta("numbers").height
        2
    """
    import polars as pl

    if not isinstance(lazy_frame, pl.LazyFrame):  # pyright: ignore[reportUnnecessaryIsInstance]
        kind = type(lazy_frame).__name__
        message = f"sink_delta takes a Polars lazy frame, not a {kind}: write_delta takes data frames"
        raise InvalidArgumentError(message)
    options: dict[str, Any] = {"engine": engine}
    if optimizations is not None:
        options["optimizations"] = optimizations
    arguments = _WriteArguments(mode, storage_options, credential_provider, delta_write_options, delta_merge_options)
    return _write(lambda: lazy_frame_stream(lazy_frame, options), lazy_frame.collect_schema(), target, arguments)


class _WriteArguments(NamedTuple):
    """Arguments that `write_delta` and `sink_delta` share."""

    mode: _SaveMode | Literal["merge"]
    storage_options: Mapping[str, Any] | None
    credential_provider: _Credentials
    delta_write_options: Mapping[str, Any] | None
    delta_merge_options: Mapping[str, Any] | None


def _write(
    rows: Callable[[], ArrowStreamExportable],
    schema: Mapping[str, Any],
    target: _Source,
    arguments: _WriteArguments,
) -> TableMerger | None:
    """Write rows, or begin a MERGE; see `write_delta`."""
    from deltafast._interop.polars_arguments import check_own_options, check_types, with_credentials

    mode, storage_options, credential_provider, delta_write_options, delta_merge_options = arguments
    check_types(schema)
    if mode == _MERGE and not delta_merge_options:
        message = "a merge needs delta_merge_options with its predicate: {'predicate': 's.id = t.id', ...}"
        raise InvalidArgumentError(message)
    refused = ("delta_write_options", delta_write_options)
    if mode != _MERGE:
        refused = ("delta_merge_options", delta_merge_options)
    if refused[1]:
        message = f"{refused[0]} have no meaning with mode={mode!r}: leave them out"
        raise InvalidArgumentError(message)
    options = None
    if isinstance(target, DeltaTable):
        check_own_options(handle_of(target), storage_options, credential_provider)
    else:
        _check_location(target)
        options = with_credentials(storage_options, credential_provider)
    if mode != _MERGE:
        write_deltalake(target, rows(), mode=mode, storage_options=options, **(delta_write_options or {}))
        return None
    table = target if isinstance(target, DeltaTable) else DeltaTable(target, storage_options=options)
    return table.merge(rows(), **cast("Mapping[str, Any]", delta_merge_options))


def _open(
    source: _Source,
    version: int | str | datetime | None,
    storage_options: Mapping[str, Any] | None,
    credential_provider: _Credentials,
    delta_table_options: Mapping[str, Any] | None,
) -> DeltaTable:
    """Return the table of a source at a version, without moving a handle that is given; see `scan_delta`."""
    from deltafast._interop.polars_arguments import check_own_options, with_credentials

    if isinstance(source, DeltaTable):
        check_own_options(handle_of(source), storage_options, credential_provider)
        if delta_table_options:
            message = "delta_table_options cannot be given with a DeltaTable, which is open already"
            raise InvalidArgumentError(message)
        if version is None:
            return source
        table = pinned(source)
        table.load_as_version(version)
        return table
    _check_location(source)
    options = dict(delta_table_options or {})
    if isinstance(version, (str, datetime)):
        options["timestamp"] = version
        version = None
    return DeltaTable(source, version, with_credentials(storage_options, credential_provider), **options)


def _check_location(location: object) -> None:
    """Refuse a table of `deltalake`.

    Raises:
        InvalidArgumentError: The location is such a table.
    """
    if hasattr(location, "table_uri"):
        kind = f"{type(location).__module__}.{type(location).__qualname__}"
        message = f"the table must be a path, a URL or a deltafast.DeltaTable, not a {kind}: give its table_uri"
        raise InvalidArgumentError(message)


def _check_pyarrow_options(pyarrow_options: Mapping[str, Any] | None) -> None:
    """Refuse options of a pyarrow dataset.

    Raises:
        InvalidArgumentError: There are such options.
    """
    if pyarrow_options:
        named = ", ".join(f"`{name}`" for name in pyarrow_options)
        message = f"pyarrow_options ({named}) have no meaning here: filter, select and cast the frame instead"
        raise InvalidArgumentError(message)


def _bound(end: str, version: int | None, timestamp: str | datetime | None) -> int | None:
    """Return a timestamp in milliseconds since the epoch, or None.

    Raises:
        InvalidArgumentError: Both a version and a timestamp are given, or the string is not a timestamp.
    """
    if timestamp is None:
        return None
    if version is not None:
        message = f"give either {end}_version or {end}_timestamp, not both"
        raise InvalidArgumentError(message)
    return to_epoch_ms(timestamp)
