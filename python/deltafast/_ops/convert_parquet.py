"""`convert_to_deltalake`: conversion of a folder of Parquet files to a table; names are those of `deltalake`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from deltafast import _core
from deltafast._catalog_tables.table_handle import refuse_name
from deltafast._credentials.provider import with_provider
from deltafast._util.locations import address
from deltafast._util.options import commit_options, property_strings, text_options
from deltafast._util.write_modes import WriteMode
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.progress import Progress, counted
from deltafast.schema import Schema

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from deltafast._core_types import ConvertOptions
    from deltafast.credentials import CredentialProvider
    from deltafast.schema import ArrowSchemaExportable
    from deltafast.transaction import CommitProperties, PostCommitHookProperties

__all__ = ["convert_to_deltalake"]


class PartitionStrategy(StrEnum):
    """How the names of folders have the values of partition columns."""

    #: `column=value`.
    HIVE = "hive"
    #: The value alone.
    DIRECTORY = "directory"


def convert_to_deltalake(
    uri: str | os.PathLike[str],
    mode: Literal["error", "ignore"] = "error",
    partition_by: Schema | ArrowSchemaExportable | None = None,
    partition_strategy: Literal["hive", "directory"] | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | bool | int | None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    progress: Progress = False,
    credential_provider: CredentialProvider | None = None,
) -> None:
    """Convert all Parquet files below a folder to a table, without rewriting them.

    The schema has the columns of all files; columns that are missing in a file are null there. Statistics come from
    the footers. Hidden files and folders (names beginning with `_` or `.`) are ignored.

    Protocol: "Add File and Remove File", "Per-file Statistics".

    Args:
        uri: The folder: a path, or a URL of S3, Azure, GCS or memory.
        mode: Handling of an existing table: `error`, or `ignore` (nothing is done).
        partition_by: The partition columns with their types, in the order of the folders.
        partition_strategy: Naming of folders: `hive` for `column=value` (also if None), `directory` for the value
            alone.
        name: Name of the table.
        description: Description of the table.
        configuration: Properties of the table.
        storage_options: As for `DeltaTable`.
        commit_properties: See `CommitProperties`.
        post_commithook_properties: See `PostCommitHookProperties`.
        collect_stats: Whether to add statistics of the files to the log.
        progress: True for a bar on standard error, a function of (done, total), or a tqdm-like bar; counts files.
        credential_provider: As for `DeltaTable`.

    Raises:
        InvalidArgumentError: The table exists already, there are no files, the folders do not match the partition
            columns, or the location is a name in a catalog.
        SchemaMismatchError: A column has two types; the error names a file of each.
        CorruptDataError: A file is not a Parquet file.

    Examples:
        >>> import os
        >>> import pyarrow as pa
        >>> import pyarrow.parquet as pq
        >>> from deltafast import DeltaTable, convert_to_deltalake
        >>> os.makedirs("sales/day=mon")
        >>> pq.write_table(pa.table({"sold": [1, 2]}), "sales/day=mon/a.parquet")
        >>> convert_to_deltalake("sales", partition_by=pa.schema({"day": pa.string()}))
        >>> DeltaTable("sales").partitions()
        [{'day': 'mon'}]
    """
    from deltafast._expr.stored import refuse_quoted_constraints

    if mode not in (WriteMode.ERROR, WriteMode.IGNORE):
        message = f"mode must be error or ignore, not {mode!r}"
        raise InvalidArgumentError(message)
    if partition_strategy not in (None, *PartitionStrategy):
        message = f"partition_strategy must be hive or directory, not {partition_strategy!r}"
        raise InvalidArgumentError(
            message, code=ErrorCode.INVALID_PARTITION_STRATEGY, parameters={"strategy": partition_strategy}
        )
    properties = property_strings(configuration)
    refuse_quoted_constraints(properties)
    partition: Any = None
    if partition_by is not None:
        schema = partition_by if isinstance(partition_by, Schema) else Schema.from_arrow(partition_by)
        partition = json.loads(schema.to_json())
    options: ConvertOptions = {
        "partition_schema": partition,
        "hive": partition_strategy != PartitionStrategy.DIRECTORY,
        "name": name,
        "description": description,
        "configuration": {key: value for key, value in properties.items() if value is not None},
        "collect_stats": collect_stats,
        "ignore_existing": mode == WriteMode.IGNORE,
        "commit_options": commit_options(commit_properties, post_commithook_properties),
    }
    refuse_name(uri, "convert_to_deltalake")
    place, storage = address(uri), with_provider(storage_options, credential_provider)
    with counted(progress):
        _core.convert_to_delta(place, options, text_options(storage, place))
