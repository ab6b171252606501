"""`read`: a version of a table, or its changes, as a data frame."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from deltafast._handle import handle_of
from deltafast._util.column_mapping import MappingMode
from deltafast._util.dialect import Dialect
from deltafast.exceptions import InvalidArgumentError, warn
from deltafast.spark._scan import file_index, path_scan, python_scan
from deltafast.spark._scan.change_scan import changes
from deltafast.spark._scan.physical_columns import field_of, quoted, spark_schema
from deltafast.spark._scan.snapshot import Version, change_data_range, check_timestamp
from deltafast.spark._session.session import Session, timestamp_in_zone, version_number
from deltafast.spark._session.storage import place_of
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from deltafast._core_types import BoundTree
    from deltafast._util.filters import Predicate
    from deltafast.spark._scan.snapshot import Listing

__all__ = ["ReadMode", "files_frame", "followed", "physical_rows", "read", "row_tracking"]


class ReadMode(StrEnum):
    """How the rows of a table are read, see `read`."""

    AUTO = "auto"
    INDEX = "index"
    PATHS = "paths"
    ARROW = "arrow"


#: Which schema the feed of a table with column mapping has; by default the last version's, as in delta-spark.
_CHANGE_DATA_SCHEMA_MODE = "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable"

#: Whether a feed that starts after the newest version is empty, instead of an error.
_CHANGE_DATA_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"

#: delta-spark's options in lower case, and their names here.
_OPTIONS = {
    "versionasof": "version",
    "timestampasof": "timestamp",
    "readchangefeed": "change_feed",
    "readchangedata": "change_feed",
    "startingversion": "starting_version",
    "endingversion": "ending_version",
    "startingtimestamp": "starting_timestamp",
    "endingtimestamp": "ending_timestamp",
}


def read(
    spark: Any,
    path: str | os.PathLike[str] | DeltaTable,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    filters: Predicate | None = None,
    read_mode: Literal["auto", "index", "paths", "arrow"] = "auto",
    metadata_columns: Sequence[Literal["row_id", "row_commit_version"]] = (),
    storage_options: Mapping[str, str] | None = None,
    allow_external_paths: bool | Sequence[str] = False,
) -> Any:
    """Read a table as a Spark data frame.

    Args:
        spark: The session, classic or Connect.
        path: A path, a URL (`s3a://`, `abfss://`, `gs://`, `hdfs://`), or a handle, which is read at its version.
        version: The version to read; the newest if None.
        timestamp: Read the version at this timestamp: a datetime, or an ISO 8601 string, in the session's time zone if
            it has none.
        options: delta-spark's options by name: `versionAsOf`, `timestampAsOf`; `readChangeFeed` with
            `startingVersion`, `endingVersion`, `startingTimestamp`, `endingTimestamp` for the change data
            feed.
        filters: Only rows for which it is true: Spark SQL or tuples in disjunctive normal form. Files are
            skipped when the frame is created; in mode `index`, filters on the frame skip files as well.
        read_mode: How rows are read. `index`: Spark's Parquet reader over a file index compiled into the
            driver, which asks the core which files the frame's filters need (classic only). `paths`: the
            same reader over explicit paths. `arrow`: executors read with the Rust reader and need
            deltafast. `auto`: the first of them that is available.
        metadata_columns: `row_id`, `row_commit_version`: columns to add, of tables with row tracking.
            `_metadata` is available as for any file source, except with `arrow`; with `index` it also has these
            two, and `base_row_id` and `default_row_commit_version`.
        storage_options: The core's storage options, which override Hadoop's settings; derived from those if None.
        allow_external_paths: See `DeltaTable`.

    Returns:
        A lazy frame with the table's columns, pinned to the version.

    Raises:
        TableNotFoundError: There is no table.
        VersionNotFoundError: There is no such version.
        InvalidArgumentError: An option or a filter is invalid, or the mode cannot read these files.
        DeltaProtocolError: The table needs a feature that this release does not support.

    Examples:
        >>> import deltafast.spark
        >>> from deltafast import write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> deltafast.spark.read(spark, "cities").where("id > 1").count()
        2
    """
    session = Session(spark)
    if read_mode not in tuple(ReadMode):
        message = f"read_mode must be one of {', '.join(ReadMode)}, not {read_mode!r}"
        raise InvalidArgumentError(message)
    given = _given(options)
    version = _one("version", version, given.pop("version", None))
    timestamp = _one("timestamp", timestamp, given.pop("timestamp", None))
    if isinstance(timestamp, str):
        timestamp = timestamp_in_zone(timestamp, session.zone)
    change_data_feed = str(given.pop("change_feed", "false")).lower() == "true"
    if given and not change_data_feed:
        message = f"{', '.join(given)} belong to the change data feed: give readChangeFeed too"
        raise InvalidArgumentError(message)
    if isinstance(path, DeltaTable):
        if version is not None or timestamp is not None:
            message = "a handle is read at its version; give its path to read another"
            raise InvalidArgumentError(message)
        place = place_of(session, handle_of(path).given_uri, handle_of(path).storage_options)
        table, is_past = path, True
    else:
        place = place_of(session, path, storage_options)
        table = DeltaTable(
            place.uri,
            version=None if version is None else version_number("versionAsOf", version),
            timestamp=timestamp,
            storage_options=place.options or None,
            time_zone=session.zone,
            allow_external_paths=allow_external_paths,
        )
        handle_of(table).ansi = session.is_ansi
        is_past = version is not None or timestamp is not None
        if timestamp is not None:
            check_timestamp(table, timestamp)
    pinned = Version(session, place, table, is_past=is_past)
    if change_data_feed:
        return _changes(pinned, given, version, timestamp)
    metadata = tuple(metadata_columns)
    for name in metadata:
        pinned.materialized(name)
    filtered = handle_of(table).pinned()
    filtered.dialect = Dialect.SPARK
    tree = filtered.bind(filters)
    frame = _frame(pinned, tree, metadata, ReadMode(read_mode))
    return frame if tree is None else frame.where(_sql(tree))


def followed(spark: Any, path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> Any:
    """Return a frame on a table, each query of which reads the newest version at that time, as in delta-spark.

    If rows are not read through the file index in the driver (Connect, `spark.deltafast.reader` is `parquet`), the
    frame is pinned to the current version.

    Args:
        spark: The session, classic or Connect.
        path: A path or a URL.
        storage_options: As for `read`.

    Raises:
        TableNotFoundError: There is no table.
        DeltaProtocolError: The table needs a feature that this release does not support.
    """
    session = Session(spark)
    place = place_of(session, path, storage_options)
    table = DeltaTable(place.uri, storage_options=place.options or None, time_zone=session.zone)
    return _frame(Version(session, place, table, follows=True), None, (), ReadMode.AUTO)


def files_frame(version: Version, paths: Sequence[str]) -> Any:
    """Return the rows of some files of a version, given by their paths in the log, in the first available mode."""
    return _frame(version, None, (), ReadMode.AUTO, frozenset(paths))


def _frame(
    version: Version,
    tree: BoundTree | None,
    metadata: tuple[str, ...],
    read_mode: ReadMode,
    only: frozenset[str] | None = None,
) -> Any:
    """Return the table's columns, read in the first available mode."""
    from deltafast.spark._scan.path_scan import PathsUnavailableError

    if version.session.is_connect and read_mode is ReadMode.INDEX:
        message = "read_mode='index' needs a classic session: Spark Connect has no Java objects; use read_mode='paths'"
        raise InvalidArgumentError(message)
    if read_mode is ReadMode.ARROW or not _names_will_do(version, read_mode):
        return python_scan.scan(version, tree, metadata, only)
    lazy = only is None and read_mode is not ReadMode.PATHS and not version.session.is_connect
    listing = version.listing(tree, metadata, lazy=lazy, only=only)._replace(is_whole=tree is None and only is None)
    data = version.columns.physical(version.columns.data)
    materialized = [(name, *version.materialized(name)) for name in metadata]
    data += [field_of(column, "long") for _, column, _ in materialized if column]
    try:
        frame = physical_rows(version, listing, data, read_mode)
    except PathsUnavailableError as error:
        if read_mode is ReadMode.PATHS:
            raise InvalidArgumentError(str(error)) from error
        return python_scan.scan(version, tree, metadata, only)
    added = [row_tracking(name, column, constant) for name, column, constant in materialized]
    if added or not version.columns.is_plain or frame.columns != [field["name"] for field in version.columns.fields]:
        frame = frame.select(*version.columns.project(pads=version.session.pads_chars), *added)
    if version.session.is_connect and not added:
        # Spark's reader regards all columns of files as nullable; the frame's schema is the one of the table.
        # Newer releases keep it pickled, too, once it was asked for.
        frame._cached_schema, frame._cached_schema_serialized = spark_schema(version.columns.seen()), None
    return frame


def physical_rows(
    version: Version, listing: Listing, data: list[dict[str, Any]], read_mode: ReadMode = ReadMode.AUTO
) -> Any:
    """Return the rows of files as read by Spark's reader: physical columns and constants, without deleted rows.

    Raises:
        PathsUnavailableError: Spark would not read these files.
    """
    from deltafast.spark._scan.file_index import IndexUnavailableError

    if read_mode is not ReadMode.PATHS and not version.session.is_connect:
        try:
            return file_index.scan(version, listing, data)
        except IndexUnavailableError as error:
            if read_mode is ReadMode.INDEX:
                raise
            warn(f"{error}; reading by explicit paths instead, which leaves out files only by `filters`")
    if listing.files is None:
        listing = version.listing(listing.predicate, listing.wanted)
    return path_scan.scan(version, listing, data)


def _names_will_do(version: Version, read_mode: ReadMode) -> bool:
    """Return whether Spark's reader, which finds columns by name only, finds the table's columns in its files."""
    if version.mapping is not MappingMode.ID or version.snapshot.ids_agree():
        return True
    if read_mode is not ReadMode.AUTO:
        message = "column mapping by id: field ids and physical names of some files disagree; use read_mode='arrow'"
        raise InvalidArgumentError(message)
    return False


def row_tracking(name: str, column: str | None, constant: str) -> Any:
    """Return a row's id or commit version: the one in its file if it is materialized, else the default."""
    from pyspark.sql import functions

    value = functions.col(quoted(constant))
    if name == "row_id":
        value = value + functions.col("_metadata.row_index")
    return (functions.coalesce(functions.col(quoted(column)), value) if column else value).alias(name)


def _changes(version: Version, given: dict[str, Any], number: Any, timestamp: Any) -> Any:
    """Return the change data feed."""
    if number is not None or timestamp is not None:
        message = "a change data feed has startingVersion and endingVersion, not versionAsOf or timestampAsOf"
        raise InvalidArgumentError(message)
    starts = (given.get("starting_version"), given.get("starting_timestamp"))
    ends = (given.get("ending_version"), given.get("ending_timestamp"))
    newest = (
        str(version.session.conf(_CHANGE_DATA_SCHEMA_MODE, "endVersion")).lower() != "endversion"
        or version.mapping is MappingMode.NONE
    )
    out_of_range = str(version.session.conf(_CHANGE_DATA_OUT_OF_RANGE, "false")).lower() == "true"
    first, last = change_data_range(
        version.snapshot, starts, ends, version.session.zone, allow_out_of_range=out_of_range, as_opened=newest
    )
    if not newest and first <= last < version.number:
        place, zone = version.place, version.session.zone
        ended = DeltaTable(place.uri, version=last, storage_options=place.options or None, time_zone=zone)
        version = Version(version.session, place, ended, is_past=True)
    return changes(version, first, last)


def _given(options: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in (options or {}).items():
        name = _OPTIONS.get(key.lower())
        if name is None:
            message = f"there is no option {key!r} for reading; there are versionAsOf, timestampAsOf, readChangeFeed, "
            message += "startingVersion, endingVersion, startingTimestamp and endingTimestamp"
            raise InvalidArgumentError(message)
        found[name] = value
    return found


def _one(name: str, first: Any, second: Any) -> Any:
    if first is not None and second is not None:
        message = f"the {name} is given twice, as an argument and as an option"
        raise InvalidArgumentError(message)
    return second if first is None else first


def _sql(tree: BoundTree) -> str:
    from deltafast._expr.render import to_spark_sql

    return to_spark_sql(tree)
