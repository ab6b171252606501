"""`write`: the rows of a data frame -> a version of a table.

The core determines the new schema and properties of the table. Spark's own Parquet writer then writes into a staging
folder of the table; its commit protocol ensures that the output of only one attempt of each task is kept. The core
reads the footers of the files there and commits them. Until then nothing is visible to readers, and the files of a
failed write are deleted.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from deltafast import _core
from deltafast._expr.constraints import bind_rows, expressions
from deltafast._expr.render import to_spark_sql
from deltafast._handle import OpenOptions
from deltafast._util.column_mapping import MappingMode
from deltafast._util.dialect import Dialect
from deltafast._util.options import commit_options, names
from deltafast._util.write_modes import AS_SELECT_MODES, OverwriteScope, WriteMode
from deltafast.exceptions import CommitUnknownError, DeltaProtocolError, ErrorCode, InvalidArgumentError, warn
from deltafast.spark._option_names import with_option_names
from deltafast.spark._scan.physical_columns import (
    check_names,
    field_of,
    plain_type,
    string_collations,
    with_collations,
)
from deltafast.spark._session.cached_rows import refresh_dependents
from deltafast.spark._session.commit_settings import CommitSettings
from deltafast.spark._session.session import Session, frame_alias, whole_number
from deltafast.spark._session.storage import core_access, place_of, transaction_version
from deltafast.spark._write.change_files import deleted_rows, write_change_data
from deltafast.spark._write.core_writer import FileSettings, mapping_of, only_core_writes, write_direct
from deltafast.spark._write.physical_schema import logical, physical
from deltafast.spark._write.staging_folder import gathered, gathering, of_format, remove, write_folder
from deltafast.table import DeltaTable

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Mapping, Sequence

    from deltafast._core_types import (
        AsSelect,
        ReplaceKey,
        SchemaMode,
        WriteOptions,
        WrittenFiles,
    )
    from deltafast._util.filters import Predicate
    from deltafast.spark._session.storage import Place

__all__ = ["WriteRequest", "defaults", "described", "write", "write_as_select", "write_rows"]

#: delta-spark's options, in lower case.
_OPTIONS = (
    "mergeschema",
    "overwriteschema",
    "replacewhere",
    "partitionoverwritemode",
    "txnappid",
    "txnversion",
    "usermetadata",
    "maxrecordsperfile",
    "compression",
    "optimizewrite",
    "replaceusing",
    "replaceon",
    "targetalias",
    "datachange",
)
_CONF = "spark.databricks.delta."


class WriteRequest(NamedTuple):
    """What a caller asks of a write."""

    #: What to do if the table exists.
    mode: str
    #: The condition on the rows to replace.
    replace_where: Predicate | None
    #: delta-spark's options.
    options: Mapping[str, Any] | None
    #: The result of `described`; and `batch`, the batch of a stream to which the rows belong.
    table: WriteOptions
    #: The writer of the files.
    writer: str = "auto"
    #: The core's storage options.
    storage_options: Mapping[str, str] | None = None


class _FrameWrite(NamedTuple):
    """The rows of a frame on their way to a table."""

    session: Session
    frame: Any
    place: Place
    #: Options of the core.
    settings: WriteOptions
    #: The condition on the rows to replace.
    replace_where: Predicate | None
    #: delta-spark's options, by their names in lower case.
    options: Mapping[str, Any]


class WriteEngine(StrEnum):
    """What writes the rows, see `write`."""

    AUTO = "auto"
    JVM = "jvm"
    ARROW = "arrow"
    DRIVER = "driver"


def write(
    frame: Any,
    path: str | os.PathLike[str],
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    partition_by: Sequence[str] | str | None = None,
    replace_where: Predicate | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    cluster_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    writer: Literal["auto", "jvm", "arrow", "driver"] = "auto",
    storage_options: Mapping[str, str] | None = None,
) -> int | None:
    """Write a data frame to a table, which is created if it does not exist.

    Columns are matched by name, ignoring case. Values are cast to the table's types where Spark's ANSI rules
    allow it; columns that the frame lacks are generated, get their default or are null. NOT NULL, CHECK
    constraints and generated columns are enforced; if a row violates one, the table is not changed.

    Args:
        frame: The rows, of a classic or Connect session.
        path: A path or URL (`s3a://`, `abfss://`, `gs://`).
        mode: What to do if the table exists: raise an `error`, `append`, `overwrite` its rows, or `ignore` the
            write.
        partition_by: Partition columns of a new table.
        replace_where: With mode overwrite, only rows for which it is true are replaced, and the rows must
            match it.
        options: delta-spark's options by name: `mergeSchema`, `overwriteSchema`, `replaceWhere`,
            `partitionOverwriteMode`, `replaceUsing`, `replaceOn` with `targetAlias`, `txnAppId` with `txnVersion`,
            `userMetadata`, `maxRecordsPerFile`, `compression`, `optimizeWrite`, `dataChange`.
        cluster_by: Clustering columns of a new table; files are not clustered before OPTIMIZE.
        name: Name of a new table.
        description: Description of a new table.
        configuration: Properties of a new table.
        writer: `jvm`: the executors write with Spark's own writer. `auto`: the same, and `driver` with a warning for
            tables that Spark's writer cannot write. `arrow`: they write through the core, directly to
            the final location, and need deltafast; for stores where a rename is a copy. `driver`: the driver collects
            the rows for the core; for small results.
        storage_options: The core's storage options, which override Hadoop's settings; derived from those if None.

    Returns:
        The new version; None if nothing was written: mode ignore, or a `txnVersion` that is already committed.

    Raises:
        InvalidArgumentError: The mode forbids the write, or an argument is invalid.
        SchemaMismatchError: The frame does not match the schema.
        ConstraintViolatedError: A row violates a constraint.
        DeltaProtocolError: The table needs something that this writer does not support; the message names it.
        CommitFailedError: A concurrent commit of another writer conflicts.
        CommitUnknownError: The outcome of the commit cannot be determined.

    Examples:
        >>> import deltafast.spark
        >>> deltafast.spark.write(spark.range(3), "numbers")
        0
        >>> deltafast.spark.write(spark.range(3, 5), "numbers", mode="append")
        1
        >>> deltafast.spark.read(spark, "numbers").count()
        5
    """
    table = described(partition_by, cluster_by, name, description, configuration)
    return write_rows(frame, path, WriteRequest(mode, replace_where, options, table, writer, storage_options))


def described(
    partition_by: Sequence[str] | str | None = None,
    cluster_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
) -> WriteOptions:
    """Return the definition of a new table from the arguments of `write`, as options of the core."""
    return {
        "partition_by": names(partition_by),
        "cluster_by": names(cluster_by) or [],
        "name": name,
        "description": description,
        "configuration": dict(configuration or {}),
    }


@with_option_names()
def write_rows(
    frame: Any,
    path: str | os.PathLike[str],
    request: WriteRequest,
    *,
    fits: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
) -> int | None:
    """Write as `write` does.

    Args:
        frame: The rows.
        path: The table.
        request: What the write is to do.
        fits: Raises if the frame's schema may not be cast to the table's.

    Returns:
        The new version.

    Raises:
        DeltaError: As `write`.
    """
    session = Session(frame.sparkSession)
    mode, replace_where, options, table, writer, storage_options = request
    if mode not in tuple(WriteMode) or writer not in tuple(WriteEngine):
        message = (
            f"mode must be one of {', '.join(WriteMode)} and writer auto, jvm, arrow or driver, "
            f"not {mode!r} and {writer!r}"
        )
        raise InvalidArgumentError(message)
    write_mode, engine = WriteMode(mode), WriteEngine(writer)
    given = _given(session, options)
    place = place_of(session, path, storage_options)
    if "replacewhere" in given:
        if replace_where is not None:
            message = "the rows that are replaced are given twice, as replace_where and as an option"
            raise InvalidArgumentError(message)
        replace_where = given["replacewhere"]
    commit = CommitSettings.of(session, given)
    if commit.is_committed(lambda app_id: transaction_version(place, app_id)):
        commit.end()
        return None
    settings: WriteOptions = {
        **table,
        "mode": write_mode.value,
        "configuration": defaults(session) | table.get("configuration", {}),
        "schema_mode": _schema_mode(given),
        "has_predicate": replace_where is not None,
        "dynamic_partitions": write_mode is WriteMode.OVERWRITE
        and _replaces_partitions(session, place, given, replace_where, table.get("partition_by")),
        "keys": _keys(frame, given) if write_mode is WriteMode.OVERWRITE else [],
        "data_change": str(given.get("datachange", "true")).lower() != "false",
        "commit_options": commit_options(commit.properties, commit.hooks),
    }
    frame_write = _FrameWrite(session, frame, place, settings, replace_where, given)
    if engine is WriteEngine.DRIVER or settings["keys"]:
        # The core finds the rows that have the keys of the new ones.
        before = _schema_before(place) if fits is not None else None
        if fits is not None and before is not None:
            fits(_collated(json.loads(frame.schema.json())), _collated(before))
        version = _through_driver(frame_write)
    else:
        plan = _planned(frame_write)
        if plan is None:
            return None
        if fits is not None:
            fits(*(_collated(schema) for schema in (json.loads(frame.schema.json()), json.loads(plan.schema))))
        version = _written(frame_write, plan, engine)
    refresh_dependents(session, place.hadoop)
    commit.end()
    return version


@with_option_names()
def write_as_select(
    frame: Any,
    place: Place,
    statement: AsSelect,
    *,
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    description: str | None,
    configuration: Mapping[str, str],
) -> None:
    """Create a table from a frame as CREATE TABLE AS SELECT does; an existing table is replaced completely.

    Raises:
        DeltaError: As `write`.
    """
    session = Session(frame.sparkSession)
    commit = CommitSettings.of(session)
    if commit.is_committed(lambda app_id: transaction_version(place, app_id)):
        commit.end()
        return
    settings: WriteOptions = {
        "mode": AS_SELECT_MODES[statement],
        "partition_by": list(partition_by),
        "cluster_by": list(cluster_by),
        "description": description,
        "configuration": defaults(session) | dict(configuration),
        "as_select": statement,
        "commit_options": commit_options(commit.properties, commit.hooks),
    }
    frame_write = _FrameWrite(session, frame, place, settings, None, {})
    plan = _planned(frame_write)
    if plan is not None:
        _written(frame_write, plan, WriteEngine.AUTO)
        refresh_dependents(session, place.hadoop)
    commit.end()


def _planned(frame_write: _FrameWrite) -> _core.TableWrite | None:
    """Return the core's plan of the write; None if there is nothing to write."""
    frame, place = frame_write.frame, frame_write.place
    access = core_access(place)
    plan = _core.TableWrite.plan(
        access.uri,
        frame_write.settings,
        actions=[],
        schema=json.dumps(_schema(frame)),
        snapshot=access.snapshot,
        storage_options=access.options,
        open_options=OpenOptions(time_zone=frame_write.session.zone).core_options(),
        committer=access.committer,
    )
    if plan is not None:
        if mapping_of(plan.target) is MappingMode.NONE:
            check_names(json.loads(plan.schema), lambda: _schema_before(place))
        _check_collations(frame, plan.schema, place)
    return plan


def _collated(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"fields": [with_collations(field) for field in schema["fields"]]}


def _collations_of(schema: Any) -> dict[str, str | None]:
    found = _collated(schema or {"fields": []})["fields"]
    return {path.lower(): name for field in found for path, name in string_collations(field).items()}


def _check_collations(frame: Any, schema: str | None, place: Place) -> None:
    """Reject collated data of columns that are created without a collation.

    Args:
        frame: The data.
        schema: The table's schema after the write; if None, as it was before, if the table exists.
        place: The table.

    Raises:
        InvalidArgumentError: There is such a column.
    """
    given = {path: name for path, name in _collations_of(json.loads(frame.schema.json())).items() if name is not None}
    if not given:
        return
    before = _collations_of(_schema_before(place))
    there = before if schema is None else _collations_of(json.loads(schema))
    for path, name in given.items():
        if there.get(path) is None and (path not in before or before[path] is not None):
            message = (
                f"the column `{path}` has the collation {name}: deltafast creates no columns with a collation; cast "
                "it to STRING COLLATE UTF8_BINARY"
            )
            raise InvalidArgumentError(
                message, code=ErrorCode.UNSUPPORTED_COLLATION, parameters={"column": path, "collation": name}
            )


def _schema_before(place: Place) -> Any:
    options = place.options or None
    if not DeltaTable.is_deltatable(place.uri, options):
        return None
    return json.loads(DeltaTable(place.uri, storage_options=options).schema().to_json())


def _written(frame_write: _FrameWrite, plan: _core.TableWrite, engine: WriteEngine) -> int | None:
    """Write the rows on the executors or, with `AUTO` and a table that Spark's writer cannot write, in the driver.

    Raises:
        DeltaProtocolError: Spark's writer cannot write the table, and `engine` is `JVM`.
    """
    reason = None if engine is WriteEngine.ARROW else only_core_writes(plan.target, json.loads(plan.schema))
    if reason is None:
        try:
            return _by_executors(frame_write, plan, by_core=engine is WriteEngine.ARROW)
        except DeltaProtocolError as error:
            # Spark's reader would not find the removed rows; the new files are deleted already.
            if engine is not WriteEngine.AUTO:
                raise
            reason = str(error)
    elif engine is not WriteEngine.AUTO:
        message = f"{reason}: write with writer='arrow' or writer='driver'"
        raise DeltaProtocolError(message)
    ignored = [
        name for name in ("compression", "maxRecordsPerFile", "optimizeWrite") if name.lower() in frame_write.options
    ]
    without = f", without effect of {' and '.join(ignored)}" if ignored else ""
    warn(f"the driver collects the rows and writes them{without}: {reason}")
    return _through_driver(frame_write)


def _by_executors(frame_write: _FrameWrite, plan: _core.TableWrite, *, by_core: bool = False) -> int | None:
    """Write the rows on the executors, with Spark's writer or the core, then commit."""
    from pyspark.sql import functions

    session, frame, place, _, replace_where, given = frame_write
    target = plan.target
    metadata, properties = target["metadata"], target["metadata"]["configuration"]
    table: dict[str, Any] = {
        "schema": json.loads(plan.schema),
        "partition": metadata["partitionColumns"],
        "mapped": mapping_of(target) is not MappingMode.NONE,
        "identities": target["identities"],
    }
    replaced = None if replace_where is None else bind_rows(replace_where, plan.schema, session.expression_context)
    constraints = expressions(predicate=replaced)
    # The core refuses a predicate that is not bound.
    writes_change_data = plan.plan_replacement(constraints)
    tree = None if replaced is None else replaced.get("tree")
    predicate = None if tree is None else to_spark_sql(tree)
    gather = gathered(session, properties, given.get("optimizewrite"))
    most = max(whole_number("maxRecordsPerFile", given.get("maxrecordsperfile") or 0), 0)
    codec = given.get("compression")
    format_options = of_format(properties, target["protocol"].get("writerFeatures") or (), codec)
    folder, changes = f"spark-{uuid.uuid4()}", f"_change_data/spark-{uuid.uuid4()}" if writes_change_data else None
    written: list[WrittenFiles] = []
    with _left_clean(plan, place, [name for name in (folder, changes) if name]) as left:
        with session.set(gathering(session, gather)):
            rows, columns = logical(
                session, frame, table, plan.constraints, predicate, gather=gather is not None, by_core=by_core
            )
            new = None
            if by_core:
                settings = FileSettings(codec, most, writes_change_data)
                written = write_direct(session, rows, columns, place, plan, settings)
            else:
                rows, partition = physical(rows, columns, functions)
                options = {"maxRecordsPerFile": str(most)} if "maxrecordsperfile" in given else {}
                write_folder(session, rows, partition, place, folder, format_options | options)
                new = (folder, rows.schema)
        if changes is not None and tree is not None and target["version"] is not None:
            deleted_frame = deleted_rows(session, place, target["version"], tree, columns)
            write_change_data(session, place, deleted_frame, columns, new, changes, format_options)
        left.clear()
        if by_core:
            return plan.run_written(constraints, written, changes).version
        return plan.run_folder(constraints, folder, changes).version


@contextmanager
def _left_clean(plan: _core.TableWrite, place: Place, folders: list[str]) -> Generator[list[str]]:
    """Delete the written files if nothing is committed.

    Yields:
        The folders that the plan is to abandon; once it commits it does so itself.
    """
    left = list(folders)
    try:
        yield left
    except CommitUnknownError:
        raise
    except BaseException:
        if left:
            plan.abandon(left)
        for folder in folders:
            remove(place, folder)
        raise


def _through_driver(frame_write: _FrameWrite) -> int | None:
    """Collect the rows for the core, which writes them."""
    from deltafast._util.writer_properties import encoding
    from deltafast.writer import run_write

    place, zone = frame_write.place, frame_write.session.zone
    _check_collations(frame_write.frame, None, place)
    options: WriteOptions = {"keys": [], **frame_write.settings, "encoding": encoding(None, zone)}
    opening = OpenOptions(place.options or None, time_zone=zone)
    run_write(
        place.uri, frame_write.frame.toArrow(), options, opening, frame_write.replace_where, dialect=Dialect.SPARK
    )
    return DeltaTable(place.uri, storage_options=place.options or None).version()


def _given(session: Session, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return options by their names in lower case, with the session's settings as defaults."""
    found: dict[str, Any] = {}
    for key, value in (options or {}).items():
        if key.lower() not in _OPTIONS:
            message = f"there is no option {key!r} for writing; there are {', '.join(_OPTIONS)}"
            raise InvalidArgumentError(message)
        found[key.lower()] = value
    if (merges := session.conf(_CONF + "schema.autoMerge.enabled")) is not None:
        found.setdefault("mergeschema", merges)
    return found


def _replaces_partitions(
    session: Session,
    place: Place,
    given: Mapping[str, Any],
    replace_where: Predicate | None,
    new_partition: Sequence[str] | None,
) -> bool:
    """Return whether an overwrite replaces the partitions of the new rows, by an option or the session's setting.

    Args:
        session: The session.
        place: The table.
        given: The options.
        replace_where: The condition on the rows to replace.
        new_partition: The partition columns of a new or replaced table; those of the existing one if None.

    Raises:
        InvalidArgumentError: The option has another value, or the options contradict each other.
    """
    mode = given.get("partitionoverwritemode")
    if mode is not None and str(mode).lower() not in tuple(OverwriteScope):
        message = f"partitionOverwriteMode must be static or dynamic, not {str(mode)!r:.50}"
        raise InvalidArgumentError(
            message,
            code=ErrorCode.INVALID_OPTION_VALUE,
            parameters={"option": "partitionOverwriteMode", "value": mode, "values": "'STATIC' or 'DYNAMIC'"},
        )
    if replace_where is not None or given.keys() & {"replaceusing", "replaceon"}:
        # As in delta-spark, the session's setting has no effect where the write itself chooses the replaced rows.
        if str(mode).lower() == OverwriteScope.DYNAMIC:
            message = (
                "replaceWhere and partitionOverwriteMode=dynamic exclude each other: both determine the replaced rows"
            )
            raise InvalidArgumentError(message, code=ErrorCode.REPLACE_WHERE_WITH_DYNAMIC_PARTITIONS)
        return False
    is_dynamic = session.replaces_partitions if mode is None else str(mode).lower() == OverwriteScope.DYNAMIC
    if not is_dynamic:
        return False
    replaces_schema = _replaces_schema(given)
    # Without partition columns an overwrite replaces the whole table, also one without rows.
    partition = new_partition if replaces_schema and new_partition is not None else _partition_columns(place)
    if replaces_schema and partition:
        message = (
            "overwriteSchema and partitionOverwriteMode=dynamic exclude each other: the rows of other partitions would "
            "keep the old schema"
        )
        raise InvalidArgumentError(message, code=ErrorCode.OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITIONS)
    return bool(partition)


def _partition_columns(place: Place) -> list[str]:
    """Return the partition columns of an existing table; none if there is no table."""
    options = place.options or None
    if not DeltaTable.is_deltatable(place.uri, options):
        return []
    return list(DeltaTable(place.uri, storage_options=options).metadata().partition_columns)


def _keys(frame: Any, given: Mapping[str, Any]) -> list[ReplaceKey]:
    """Return the columns by which rows are replaced, from the options `replaceUsing` and `replaceOn`."""
    from deltafast._sql.expressions import plain
    from deltafast._sql.tree import Expression
    from deltafast.writer import replace_keys

    using, condition, alias = (given.get(key) for key in ("replaceusing", "replaceon", "targetalias"))
    if using is not None and condition is not None:
        message = "give either replaceUsing or replaceOn, not both"
        raise InvalidArgumentError(message)
    if alias is not None and condition is None:
        message = "targetAlias is the table's name in replaceOn, which is missing"
        raise InvalidArgumentError(message)
    if using is not None:
        columns = [name.strip().strip("`") for name in str(using).split(",")]
        if not all(columns):
            message = f"replaceUsing takes names of columns, separated by commas, not {str(using)!r:.100}"
            raise InvalidArgumentError(message)
        return replace_keys(columns, None)
    if condition is None:
        return []
    sides = {(str(alias or "target").lower(),): "target"}
    source = frame_alias(frame)
    if source is not None:
        sides[(source.lower(),)] = "source"
    return replace_keys(None, plain(Expression(str(condition), 0), (), sides, dialect=Dialect.SPARK))


def _replaces_schema(given: Mapping[str, Any]) -> bool:
    return str(given.get("overwriteschema", "false")).lower() == "true"


def _schema_mode(given: Mapping[str, Any]) -> SchemaMode | None:
    if _replaces_schema(given):
        return "overwrite"
    return "merge" if str(given.get("mergeschema", "false")).lower() == "true" else None


def defaults(session: Session) -> dict[str, str | None]:
    """Return the session's default properties of new tables."""
    found = session.settings(f"{_CONF}properties.defaults.")
    return {f"delta.{key}": value for key, value in found.items()}


def _schema(frame: Any) -> dict[str, Any]:
    """Return the frame's schema as that of a table: all columns are nullable, only comments are kept as metadata."""
    fields = json.loads(frame.schema.json())["fields"]
    seen: set[str] = set()
    for field in fields:
        name = field["name"].lower()
        if name in seen:
            message = f"the data has the column `{name}` twice (names are compared without case)"
            raise InvalidArgumentError(message, code=ErrorCode.DUPLICATE_COLUMN_IN_DATA, parameters={"column": name})
        seen.add(name)
    return {
        "type": "struct",
        "fields": [
            field_of(
                field["name"],
                plain_type(field["type"]),
                {key: value for key, value in field["metadata"].items() if key == "comment"},
            )
            for field in fields
        ],
    }
