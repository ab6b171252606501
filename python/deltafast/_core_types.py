"""Shapes of the dicts that `deltafast._core` takes and returns; written by `dev/make_core_types.py`."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class FormatSpecification(TypedDict):
    """`metaData.format`."""

    provider: str
    """Encoding of the data files; only `parquet` exists."""
    options: dict[str, str]
    """Its options."""


class Metadata(TypedDict):
    """`metaData`."""

    id: str
    """Identifier of the table, which never changes."""
    name: NotRequired[str | None]
    """Name given by a user."""
    description: NotRequired[str | None]
    """Description given by a user."""
    format: FormatSpecification
    """Format of the data files."""
    schemaString: str
    """The schema as JSON text."""
    partitionColumns: list[str]
    """Names of the partition columns, in order."""
    configuration: dict[str, str]
    """Table properties."""
    createdTime: NotRequired[int | None]
    """Time of creation, milliseconds since the epoch."""


class Protocol(TypedDict):
    """`protocol`."""

    minReaderVersion: int
    """Lowest reader version that may read the table."""
    minWriterVersion: int
    """Lowest writer version that may write the table."""
    readerFeatures: NotRequired[list[str] | None]
    """Features that a reader must support; the list exists exactly at reader version 3."""
    writerFeatures: NotRequired[list[str] | None]
    """Features that a writer must support; the list exists exactly at writer version 7."""


class ColumnNode(TypedDict):
    """A column, or a field within struct columns."""

    path: list[str]
    """Logical names, from the top."""
    data_type: str | dict[str, Any]
    """Type of the values."""


class LiteralNode(TypedDict):
    """A constant."""

    value: Any
    """A boolean, a whole number (of dates days, of timestamps microseconds since 1970), a number or `NaN`,
    `Infinity` or `-Infinity`, text (of decimals the digits, of binary values hexadecimal), or null.
    """
    data_type: str | dict[str, Any]
    """Its type."""


class CallNode(TypedDict):
    """A call of a function."""

    function: str
    """The function's name."""
    arguments: list[ExpressionNode]
    """Its arguments, of exactly the types that it accepts."""
    data_type: str | dict[str, Any]
    """Type of the result."""


CastMode: TypeAlias = Literal["ansi", "legacy", "try"]
"""The behaviour of a cast for a value that the target type cannot hold."""


class CastNode(TypedDict):
    """A conversion."""

    argument: ExpressionNode
    """The operand."""
    data_type: str | dict[str, Any]
    """Type of the result."""
    mode: CastMode
    """What happens to values that the type cannot hold."""


class InListNode(TypedDict):
    """A test whether a value is in a list of constants; three-valued."""

    argument: ExpressionNode
    """The operand."""
    values: list[Any]
    """Constants of the operand's type, each as in a `LiteralNode`."""


ExpressionNode: TypeAlias = (
    dict[Literal["column"], ColumnNode]
    | dict[Literal["literal"], LiteralNode]
    | dict[Literal["call"], CallNode]
    | dict[Literal["session_call"], CallNode]
    | dict[Literal["cast"], CastNode]
    | dict[Literal["in_list"], InListNode]
)
"""A node of a bound expression."""


class BoundTree(TypedDict):
    """A bound expression: names are resolved, implicit casts are inserted, all types are determined."""

    expr: ExpressionNode
    """The root."""
    ansi: bool
    """Whether Spark's ANSI mode is on."""
    zone: str
    """The session's time zone."""


class NamedExpression(TypedDict):
    """A name (of a constraint or a column) with an SQL expression."""

    name: str
    """The constraint's or the column's name."""
    sql: str
    """Spark SQL over the table's columns."""
    tree: NotRequired[BoundTree | None]
    """The expression that the caller bound; for a column of exactly its type."""


class TableConstraints(TypedDict):
    """The expressions to bind for a write."""

    checks: list[NamedExpression]
    """CHECK constraints and invariants."""
    generated: list[NamedExpression]
    """Generated columns."""
    defaults: list[NamedExpression]
    """Defaults of columns that the data lacks."""
    predicate: NamedExpression | None
    """The predicate for the rows that a write replaces, if any."""
    lengths: list[NamedExpression]
    """Limits of `char(n)` and `varchar(n)`, for engines that check rows themselves; not to be bound."""


class SetTransaction(TypedDict):
    """`txn`."""

    appId: str
    """Identifier of the application."""
    version: int
    """The application's version."""
    lastUpdated: NotRequired[int | None]
    """Time of the transaction, milliseconds since the epoch."""


class CheckOption(TypedDict):
    """A CHECK constraint with its bound expression."""

    name: str
    sql: str
    tree: BoundTree


class CheckOptions(TypedDict):
    """The extent of the check."""

    rounds: NotRequired[int]
    """Number of races for one object."""
    writers: NotRequired[int]
    """Writers in each race."""
    objects: NotRequired[int]
    """Objects in a folder that is listed. The default is more than a page of any service but Azure's."""


class CheckpointInfo(TypedDict):
    """A checkpoint that was written."""

    version: int
    """Its version."""
    files: list[str]
    """Its files, relative to the table root: the manifest, or all parts in order."""
    parts: int | None
    """The number of parts of a multi-part checkpoint."""
    numAddFiles: int
    """Live files in it."""
    numRemoveFiles: int
    """Tombstones in it."""
    numActions: int
    """Actions in it, including those of its sidecars."""
    sizeInBytes: int
    """The total size of its files in bytes, including sidecars."""
    sidecars: list[Any]
    """Its sidecars, as actions."""
    isLast: bool
    """Whether `_last_checkpoint` references it; false if there was a newer one."""


CheckpointSpec: TypeAlias = Literal["auto", "v1", "v2"]
"""The specification of a checkpoint."""


class CheckpointOptions(TypedDict):
    """Options of a checkpoint."""

    form: NotRequired[CheckpointSpec]
    """Its specification."""
    parts: NotRequired[int]
    """The number of files of a V1 checkpoint; more than one only where V2 is not allowed."""
    json: NotRequired[bool]
    """Whether a V2 manifest is JSON, as delta-spark writes it, or Parquet."""
    sidecars: NotRequired[bool]
    """Whether the file actions of a V2 checkpoint are in sidecars, or all in the manifest."""
    classic_name: NotRequired[bool]
    """Whether a V2 checkpoint has the file name of a V1 one, so that readers without V2 support find it and report
    the feature that they lack.
    """
    sidecar_rows: NotRequired[int]
    """The approximate number of file actions in a sidecar."""


class CleanupOptions(TypedDict):
    """Options of a cleanup."""

    dry_run: NotRequired[bool]
    """Only plan, delete nothing."""
    retention_ms: NotRequired[int | None]
    """How long commits are kept, in milliseconds; `delta.logRetentionDuration` (30 days where unset) if None."""
    now_ms: NotRequired[int | None]
    """The current time, in milliseconds since the epoch; the system clock's if None."""
    automatic: NotRequired[bool]
    """Do nothing if the table has `delta.enableExpiredLogCleanup=false`: for cleanups that were not requested
    explicitly.
    """
    to_the_minute: NotRequired[bool]
    """Round the end of the retention down to the minute; otherwise to the start of the day (UTC)."""


class CleanupPlan(TypedDict):
    """What a cleanup deletes."""

    keptFrom: int | None
    """The oldest version that remains readable; None if nothing is deleted."""
    files: list[str]
    """Paths relative to the table root, in the order of deletion."""


class AutoCompactOptions(TypedDict):
    """When and how small files are compacted after a commit."""

    enabled: NotRequired[bool | None]
    """Whether small files are compacted; default: the table's `delta.autoOptimize.autoCompact`."""
    min_files: NotRequired[int | None]
    """The number of small files in a partition from which they are compacted; default: 50."""
    max_file_size: NotRequired[int | None]
    """The size of a new file in bytes; default: 128 MiB."""
    min_file_size: NotRequired[int | None]
    """The size in bytes below which a file is small; default: half of `max_file_size`."""


class CommitOptions(TypedDict):
    """How an operation is committed, and the maintenance after it."""

    custom_metadata: NotRequired[dict[str, Any]]
    """Additional keys for `commitInfo`; `userMetadata` is a string in the protocol."""
    max_commit_retries: NotRequired[int | None]
    """The maximum number of retries after another writer committed first."""
    app_transactions: NotRequired[list[SetTransaction]]
    """Application transactions to record with the commit."""
    create_checkpoint: NotRequired[bool | None]
    """Whether a checkpoint is written when it is due; default: yes."""
    cleanup_expired_logs: NotRequired[bool | None]
    """Whether the log is cleaned up after a checkpoint; default: the table's `delta.enableExpiredLogCleanup`."""
    log_compaction_interval: NotRequired[int | None]
    """The number of versions whose commits are compacted into one file, if no checkpoint was written; default:
    never.
    """
    auto_compact: NotRequired[AutoCompactOptions]
    """Auto compaction after the version."""


class CloneOptions(TypedDict):
    """Options of a clone."""

    properties: NotRequired[dict[str, str]]
    """Properties of the clone, in addition to those of the source."""
    replace: NotRequired[bool]
    """Whether it may replace a table without files."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""


class CloneResult(TypedDict):
    """The result of a clone."""

    source_num_of_files: int
    """The number of files of the source, all of which the clone references."""
    source_table_size: int
    """Their size in bytes."""


class ConvertOptions(TypedDict):
    """Options of a conversion."""

    partition_schema: NotRequired[Any | None]
    """The partition columns with their types, as a schema in Delta's JSON, in the order of the folders."""
    hive: NotRequired[bool]
    """Whether folders are named `column=value`, or by the value alone."""
    name: NotRequired[str | None]
    """Name of the table."""
    description: NotRequired[str | None]
    """Its description."""
    configuration: NotRequired[dict[str, str]]
    """Its properties."""
    collect_stats: NotRequired[bool]
    """Whether statistics are collected."""
    ignore_existing: NotRequired[bool]
    """Do nothing if the table exists."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""


class ConvertResult(TypedDict):
    """The result of a conversion."""

    num_files: int
    """The number of files of the table; 0 if the table existed already."""


SaveMode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
"""What to do if the table exists."""


class CreateOptions(TypedDict):
    """The definition of a new table."""

    mode: NotRequired[SaveMode]
    """What to do if the table exists."""
    partition_by: NotRequired[list[str]]
    """Names of the partition columns."""
    cluster_by: NotRequired[list[str]]
    """The clustering columns; nested ones with dots."""
    name: NotRequired[str | None]
    """Its name."""
    description: NotRequired[str | None]
    """Its description."""
    configuration: NotRequired[dict[str, str | None]]
    """Its properties; those without a value are left out."""
    allow_unknown: NotRequired[bool]
    """Whether unknown `delta.` properties may be set."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""


DmlKind: TypeAlias = Literal["delete", "update"]
"""The kind of change."""


class BloomFilterProperties(TypedDict):
    """Settings of a bloom filter."""

    set_bloom_filter_enabled: NotRequired[bool | None]
    """Whether there is one."""
    fpp: NotRequired[float | None]
    """Share of false positives."""
    ndv: NotRequired[int | None]
    """Distinct values to expect."""


class ColumnProperties(TypedDict):
    """Settings of one column."""

    dictionary_enabled: NotRequired[bool | None]
    """Whether dictionary encoding is tried."""
    statistics_enabled: NotRequired[str | None]
    """`NONE`, `CHUNK` or `PAGE`: the statistics inside of the file. Those of the table do not depend on it."""
    bloom_filter_properties: NotRequired[BloomFilterProperties | None]
    """A bloom filter."""
    encoding: NotRequired[str | None]
    """Encoding of values that are not in a dictionary."""


class WriterProperties(TypedDict):
    """Settings of the Parquet writer; an absent setting has the writer's default."""

    data_page_size_limit: NotRequired[int | None]
    """Bytes of a data page at most."""
    dictionary_page_size_limit: NotRequired[int | None]
    """Bytes of a dictionary page at most; a column with more distinct values is written without a dictionary."""
    data_page_row_count_limit: NotRequired[int | None]
    """Rows of a data page at most."""
    write_batch_size: NotRequired[int | None]
    """Rows encoded at a time."""
    max_row_group_size: NotRequired[int | None]
    """Rows of a row group at most (1,048,576)."""
    compression: NotRequired[str | None]
    """`ZSTD(3)`, `SNAPPY`, `GZIP(6)`, `BROTLI(1)`, `LZ4`, `LZ4_RAW`, `UNCOMPRESSED`; the level may be left out."""
    statistics_truncate_length: NotRequired[int | None]
    """Bytes of strings that bounds in the footer and the page index keep (64). Bounds in the footer keep more where
    the table's own statistics need it.
    """
    default_column_properties: NotRequired[ColumnProperties | None]
    """For all columns."""
    column_properties: NotRequired[dict[str, ColumnProperties | None] | None]
    """By column; a nested field is named with dots."""


StoreAssignment: TypeAlias = Literal["exact", "convert"]
"""The values that a table's columns take besides those of their own types."""


class DataFileOptions(TypedDict):
    """How files are written."""

    target_file_size: NotRequired[int | None]
    """The size in bytes after which the next file is begun."""
    writer_properties: NotRequired[WriterProperties]
    """How files are encoded."""
    max_open_files: NotRequired[int | None]
    """The maximum number of files that are written at the same time."""
    memory: NotRequired[int | None]
    """Bytes of memory for rows that are not written yet."""
    time_zone: NotRequired[str | None]
    """The time zone for timestamps without a zone in columns with a zone; UTC if None, refused if an empty string."""
    store_assignment: NotRequired[StoreAssignment]
    """Which values the columns take besides those of their own types."""


class DmlOptions(TypedDict):
    """Options of DELETE and UPDATE."""

    encoding: NotRequired[DataFileOptions]
    """How new files are made."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""
    max_conflict_retries: NotRequired[int]
    """The maximum number of retries on the newest version after another writer changed rows that were read."""


class FileSizeStatistics(TypedDict):
    """The number and the sizes in bytes of files that an OPTIMIZE added or removed."""

    count: int
    sum: int
    min: int
    max: int


class IdentityOption(TypedDict):
    """An identity column whose values the write generates."""

    column: str
    next: int
    step: int
    allow_explicit: bool


class FileWriteOptions(TypedDict):
    """Options of `write_files`, all optional. Expressions are bound trees."""

    partition_by: NotRequired[list[str]]
    column_mapping: NotRequired[str | None]
    """`none`, `name` or `id`."""
    properties: NotRequired[dict[str, str]]
    materialize_partition_columns: NotRequired[bool]
    writer_properties: NotRequired[WriterProperties]
    target_file_size: NotRequired[int | None]
    max_open_files: NotRequired[int | None]
    most_rows: NotRequired[int | None]
    """The maximum number of rows in a file."""
    memory: NotRequired[int | None]
    time_zone: NotRequired[str | None]
    """The time zone for timestamps without a zone; an empty string refuses them."""
    change_data: NotRequired[bool]
    has_change_data: NotRequired[bool]
    """Whether the rows are also written as change data for inserts."""
    checks: NotRequired[list[CheckOption]]
    defaults: NotRequired[list[tuple[str, BoundTree]]]
    generated: NotRequired[list[tuple[str, BoundTree]]]
    identities: NotRequired[list[IdentityOption]]


class GeneratedManifests(TypedDict):
    """Manifests that were written and deleted."""

    manifests: list[str]
    """Manifests that were written, relative to the table root."""
    deleted: list[str]
    """Manifests that were deleted."""


class MatchedRowsSummary(TypedDict):
    """A summary of the matched rows."""

    rows: int | None
    """Their number, if known."""
    has_partial_files: bool
    """Whether there is a file with remaining rows."""
    emptied_files: list[str]
    """Paths of the files without remaining rows."""


class MergeOptions(TypedDict):
    """Options of a merge."""

    encoding: NotRequired[DataFileOptions]
    """How new files are made."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""
    max_spill_size: NotRequired[int | None]
    """Bytes of the source to keep in memory."""
    max_temp_directory_size: NotRequired[int | None]
    """The maximum size of temporary files in bytes."""
    max_conflict_retries: NotRequired[int]
    """The maximum number of retries on the newest version after another writer changed rows that were read."""


class EqualityPlan(TypedDict):
    """An equality of a `MergePlan`."""

    target: BoundTree
    """Expression over the table's columns."""
    source: BoundTree
    """Expression over the source's columns."""
    null_safe: bool
    """Whether null equals null."""


ClauseAction: TypeAlias = Literal["update", "delete", "insert"]
"""The action of a clause."""


class ValuePlan(TypedDict):
    """A value as the caller bound it."""

    path: list[str]
    """The column, and the field in it."""
    tree: BoundTree
    """The bound expression."""


class ClausePlan(TypedDict):
    """A clause as the caller bound it."""

    action: ClauseAction
    """Its action."""
    condition: NotRequired[NamedExpression | None]
    """The condition; the clause applies to all rows if None."""
    values: NotRequired[list[ValuePlan]]
    """The assigned values."""


class MergePlan(TypedDict):
    """The bound expressions of a merge."""

    on: str
    """The condition, as written by the caller."""
    equalities: list[EqualityPlan]
    """Its equalities between an expression of the table and one of the source."""
    target_only: NotRequired[BoundTree | None]
    """Its conjuncts over the table's columns only."""
    source_only: NotRequired[BoundTree | None]
    """Its conjuncts over the source's columns only."""
    residual: NotRequired[BoundTree | None]
    """The remaining conjuncts, over the structs `target` and `source`."""
    matched: list[ClausePlan]
    """Clauses for matched rows, over these structs."""
    not_matched: list[ClausePlan]
    """Clauses for rows of the source that match no row of the table, over the source's columns."""
    by_source: list[ClausePlan]
    """Clauses for rows of the table that no row of the source matches, over the table's columns."""
    constraints: TableConstraints
    """The table's constraints."""


class TableRequirements(TypedDict):
    """What an engine must know of a table whose rows it changes."""

    selects_whole_files: bool
    """Whether rows are matched by partition values alone, so that none has to be searched."""
    uses_deletion_vectors: bool
    """Whether rows are deleted by deletion vectors."""
    writes_change_data: bool
    """Whether change data files are written."""
    materializes_partition_columns: bool
    """Whether data files contain the partition columns."""
    row_tracking_columns: list[str]
    """The names in files of the columns for a row's id and commit version, if row tracking keeps them."""


class IdentityColumn(TypedDict):
    """An identity column."""

    column: str
    """The column, of type long."""
    next: int
    """The next value to generate."""
    step: int
    """The distance between values, not 0."""
    allow_explicit: bool
    """Whether the data may have values for the column."""


class MergeRequirements(TableRequirements):
    """What an engine must know of a table that it merges into."""

    allows_multiple_matches: bool
    """Whether the result does not depend on which of several source rows matches a row of the table."""
    files: list[str]
    """Paths of the files to read."""
    identities: list[IdentityColumn]
    """Identity columns of new rows; a clause that sets no value for them gives the value of the row's number."""


class MergeTarget(TypedDict):
    """The table after a merge."""

    schema: str
    """The schema, as in the log."""
    constraints: TableConstraints
    """The expressions to bind."""


ExternalPathsOption: TypeAlias = bool | list[str]


class OpenOptions(TypedDict):
    """How a table is opened."""

    time_zone: NotRequired[str | None]
    """The time zone of timestamps without one, `UTC` or `Europe/Paris`."""
    max_table_version: NotRequired[int | None]
    """The newest version that the catalog has ratified."""
    allow_external_paths: NotRequired[ExternalPathsOption | None]
    """Whether paths may lead out of the table's store, or the prefixes that they may have."""


class FileMetrics(TypedDict):
    """A metric of some files."""

    numFiles: int
    """Their number."""
    size: int
    """Their size in bytes."""


class ClusteringMetrics(TypedDict):
    """Metrics of clustering, as in delta-spark."""

    inputZCubeFiles: FileMetrics
    """Files of cubes with the table's clustering columns; of any cubes in a full clustering."""
    inputOtherFiles: FileMetrics
    """The other files."""
    inputNumZCubes: int
    """The number of existing cubes."""
    mergedFiles: FileMetrics
    """Files that are rewritten."""
    numOutputZCubes: int
    """The number of new cubes."""


class OptimizeMetrics(TypedDict):
    """What an OPTIMIZE considered and rewrote."""

    added: FileSizeStatistics
    removed: FileSizeStatistics
    partitions: int
    """The number of partitions with rewritten files."""
    considered: int
    """The number of files that the predicate selects."""
    largest_bin: int
    """The maximum number of files that were combined, or laid out along one curve."""
    layout: str
    """The layout of the rows: `packed`, `zOrder`, `clustered`."""
    clustering: ClusteringMetrics | None


OptimizeTask: TypeAlias = Literal["optimize", "cluster", "cluster_full", "purge", "upgrade"]
"""Which files are rewritten, and how."""


class OptimizeOptions(TypedDict):
    """Options of OPTIMIZE."""

    encoding: NotRequired[DataFileOptions]
    """How new files are written; files are packed up to its target size."""
    min_commit_interval_ms: NotRequired[int | None]
    """Milliseconds after which finished files are committed while others are still rewritten; all in one commit if
    None.
    """
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""
    z_order_by: NotRequired[list[str]]
    """Columns, with dots before the names of fields, by which all rows of a partition are laid out in Z-order."""
    task: NotRequired[OptimizeTask]
    """The task."""
    min_cube_size: NotRequired[int | None]
    """The size in bytes from which a group of files that were clustered together is kept; 100 GiB if None."""
    cube_size: NotRequired[int | None]
    """The size in bytes of the files that are clustered together; 150 GiB if None."""


class OptimizeRequirements(TableRequirements):
    """What an engine must know to rewrite files."""

    bins: list[list[str]]
    """The files of each bin."""
    parts: list[int]
    """The number of parts of each bin; parts are numbered bin after bin."""
    bytes: list[int]
    """The total size of each bin's files in bytes."""
    rows: int
    """The number of rows of the files, as far as known."""
    columns: list[list[str]]
    """The columns of the curve, as paths of names."""
    is_hilbert: bool
    """Whether the curve is a Hilbert curve."""
    part: str
    """The name of the column by which rows are partitioned into folders."""


class RepairOptions(TypedDict):
    """Options of a repair."""

    dry_run: NotRequired[bool]
    """Only report missing files."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""


class RepairResult(TypedDict):
    """The result of a repair or its dry run."""

    dry_run: bool
    """Whether it was a dry run."""
    files_removed: list[str]
    """Missing files, as in the log."""
    vectors_missing: NotRequired[list[str]]
    """Missing deletion vectors: paths relative to the table root, or as in the log."""


class RequestRecord(TypedDict):
    """One request and its answer; a request that is sent again has a record for each attempt."""

    method: str
    """The HTTP method."""
    url: str
    """The URL without user name, password, signature and tokens."""
    range: str | None
    """The header `Range`."""
    sent_bytes: int
    """The bytes of the request's body."""
    status: int | None
    """The status of the answer."""
    received_bytes: int | None
    """The bytes of the answer's body, if its headers say it."""
    error: str | None
    """The kind of error if there was no answer."""
    elapsed_ms: float
    """Milliseconds until the headers of the answer."""


class RequestLog(TypedDict):
    """What was recorded since records were taken last."""

    records: list[RequestRecord]
    """The records, in the order of the answers."""
    dropped: int
    """The number of requests that were not recorded, since too many records waited."""


class RestoreOptions(TypedDict):
    """Options of a restore: either `version` or `timestamp_ms`."""

    version: NotRequired[int | None]
    """The version to restore."""
    timestamp_ms: NotRequired[int | None]
    """Restore the version at this timestamp, milliseconds since the epoch."""
    ignore_missing_files: NotRequired[bool]
    """Leave out files that no longer exist."""
    protocol_downgrade_allowed: NotRequired[bool]
    """Restore the older version's protocol even if it is lower."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""


class RestoreResult(TypedDict):
    """The result of a restore."""

    num_restored_file: int
    """The number of restored files."""
    num_removed_file: int
    """The number of removed files."""
    restored_files_size: int
    """The size of the restored files in bytes."""
    removed_files_size: int
    """The size of the removed files in bytes."""
    num_of_files_after_restore: int
    """The number of files of the table after the restore."""
    table_size_after_restore: int
    """The size of the table after the restore in bytes."""


class ScanPlan(TypedDict):
    """The outcome of planning."""

    files_total: int
    """Number of live files."""
    files_after_partition: int
    """Number of files that remain after pruning by partition values alone."""
    files: int
    """Number of files that remain."""


class RowGroupPlan(TypedDict):
    """Row groups of data files, and what excludes them from a scan."""

    row_groups: int
    """Number of row groups."""
    excluded_by_deletion_vector: int
    """Number of row groups of which deletion vectors delete all rows."""
    excluded_by_statistics: int
    """Number of row groups that their statistics exclude."""
    excluded_by_bloom_filter: int
    """Number of further row groups that their bloom filters exclude."""
    excluded_by_page_index: int
    """Number of further row groups of which the page index excludes all pages."""
    row_groups_read: int
    """Number of row groups that are read, or some of their pages."""
    rows: int
    """Number of stored rows."""
    rows_read: int
    """Number of rows in the pages that are read."""
    bytes: int
    """Compressed bytes of the columns that the scan needs."""
    bytes_read: int
    """Bytes of these in the pages that are read."""


class ColumnOverlap(TypedDict):
    """Overlap of the files' bounds in one column."""

    column: list[str]
    """Path of the column."""
    files_with_bounds: int
    """Number of files that have bounds."""
    overlapping_files: float
    """Number of files whose bounds overlap those of a file, itself included, on average; 1 is ideal."""


class ScanExplanation(TypedDict):
    """The files and row groups that a scan reads."""

    plan: ScanPlan
    """Number of files, by what excludes them."""
    bytes_total: int
    """Bytes of all live files."""
    bytes: int
    """Bytes of the files that remain."""
    row_groups: RowGroupPlan | None
    """Row groups of the files that remain; None if their footers were not read."""
    overlaps: list[ColumnOverlap]
    """Overlap of all live files in the columns of the predicate that have bounds."""


class SegmentSummary(TypedDict):
    """From which files of the log a version was read."""

    checkpoint_version: int | None
    """The version of the checkpoint."""
    checkpoint_files: int
    """The number of its files."""
    commits: int
    """The number of commits after it."""
    commit_files: int
    """The number of files that have them; a compaction has several."""


class SourceStatistics(TypedDict):
    """Statistics of a source."""

    rows: int
    """The number of its rows."""
    matchable_rows: int
    """The number of rows that can match any row of the table."""
    complete: list[bool]
    """For each key, whether the given values are all values, not only their bounds."""
    max_new_rows: NotRequired[int]
    """An upper bound of the numbers of new rows, from which identity columns are computed."""


ProbeVerdict: TypeAlias = Literal["passed", "unsafe", "failed"]
"""The verdict of one probe."""


class ProbeFinding(TypedDict):
    """The result of one probe."""

    name: str
    """The property that was probed."""
    verdict: ProbeVerdict
    """The verdict."""
    detail: str
    """The observation."""


class StoreCheckReport(TypedDict):
    """The results of all probes of a store."""

    url: str
    """URL of the store, without credentials."""
    safe: bool
    """Whether no probe found the store unsafe."""
    findings: list[ProbeFinding]
    """The probes in their order. For a store that refuses commits there is only the first."""


class AddColumns(TypedDict):
    """Adds columns, or fields of struct columns."""

    kind: Literal["add_columns"]
    fields: list[dict[str, Any]]
    """The columns, as in a schema."""
    positions: NotRequired[list[tuple[str, str | None]]]
    """The positions of columns that are not added at the end, in this order: the column's path, and the name of the
    column or field after which it is placed; None for the first position.
    """


class MoveColumn(TypedDict):
    """Moves a column or field among its siblings."""

    kind: Literal["move_column"]
    column: str
    """Its path."""
    after: NotRequired[str | None]
    """The sibling after which it is placed; None for the first position."""


class SyncIdentity(TypedDict):
    """Sets the next value of an identity column after the existing values."""

    kind: Literal["sync_identity"]
    column: str
    """Its name."""


class ReplaceColumns(TypedDict):
    """Gives the table these columns: reorders and drops existing ones, adds the others."""

    kind: Literal["replace_columns"]
    fields: list[dict[str, Any]]
    """The columns, as in a schema; for existing ones, the comment and the type count."""


class DropColumns(TypedDict):
    """Drops columns or fields; their values remain in the files."""

    kind: Literal["drop_columns"]
    columns: list[str]
    """Their paths."""


class RenameColumn(TypedDict):
    """Renames a column or field."""

    kind: Literal["rename_column"]
    column: str
    """Its path."""
    name: str
    """The last part of the new path."""


class ChangeType(TypedDict):
    """Widens the type of a column, field, element, key or value."""

    kind: Literal["change_type"]
    column: str
    """Its path."""
    data_type: Any
    """The new type, as in a schema."""
    length: NotRequired[str | None]
    """The new length of a string, such as `varchar(10)`; None for any length."""


class SetNullable(TypedDict):
    """Sets whether a column, field, element or value may be null."""

    kind: Literal["set_nullable"]
    column: str
    """Its path."""
    nullable: bool
    """Whether it may be null."""


class ChangeColumns(TypedDict):
    """Several changes of columns, each applied to the result of the previous ones."""

    kind: Literal["change_columns"]
    changes: list[TableChange]
    """Changes of columns. Successive changes of the same column are recorded as one."""


class SetColumnMetadata(TypedDict):
    """Sets keys of a column's metadata; keys with null are removed."""

    kind: Literal["set_column_metadata"]
    column: str
    """Its path."""
    metadata: dict[str, Any]
    """The keys."""


class AddConstraints(TypedDict):
    """Adds CHECK constraints, which all rows must satisfy."""

    kind: Literal["add_constraints"]
    constraints: list[NamedExpression]
    """Names and bound expressions."""


class DropConstraint(TypedDict):
    """Drops a CHECK constraint."""

    kind: Literal["drop_constraint"]
    name: str
    """Its name."""
    if_exists: bool
    """Whether a missing constraint is not an error."""


class SetProperties(TypedDict):
    """Sets properties and enables the features that they require."""

    kind: Literal["set_properties"]
    properties: dict[str, str]
    """Keys and values."""
    allow_unknown: bool
    """Whether unknown `delta.` keys may be set."""


class UpgradeUniform(TypedDict):
    """Enables a version of Iceberg compatibility; existing files are not rewritten here."""

    kind: Literal["upgrade_uniform"]
    version: int
    """The version."""


class UnsetProperties(TypedDict):
    """Unsets properties; features remain."""

    kind: Literal["unset_properties"]
    keys: list[str]
    """Their keys."""
    if_exists: bool
    """Whether missing properties are not an error."""


class SetName(TypedDict):
    """Sets the table's name."""

    kind: Literal["set_name"]
    name: str
    """The new name."""


class SetDescription(TypedDict):
    """Sets the table's description."""

    kind: Literal["set_description"]
    description: str
    """The new description."""


class AddFeatures(TypedDict):
    """Adds table features."""

    kind: Literal["add_features"]
    names: list[str]
    """Their names."""
    allow_versions: bool
    """Whether the protocol versions may be raised for them."""


class SetDomain(TypedDict):
    """Sets or removes the configuration of a user domain."""

    kind: Literal["set_domain"]
    domain: str
    """Its name."""
    configuration: NotRequired[str | None]
    """Any string; None to remove it."""


class ClusterBy(TypedDict):
    """Sets the clustering columns; an empty list ends clustering."""

    kind: Literal["cluster_by"]
    columns: list[str]
    """Their paths."""


TableChange: TypeAlias = (
    AddColumns
    | MoveColumn
    | SyncIdentity
    | ReplaceColumns
    | DropColumns
    | RenameColumn
    | ChangeType
    | SetNullable
    | ChangeColumns
    | SetColumnMetadata
    | AddConstraints
    | DropConstraint
    | SetProperties
    | UpgradeUniform
    | UnsetProperties
    | SetName
    | SetDescription
    | AddFeatures
    | SetDomain
    | ClusterBy
)
"""A change of a table's definition."""


class VacuumOptions(TypedDict):
    """Options of a vacuum."""

    retention_ms: NotRequired[int | None]
    """How long removed files are kept, in milliseconds; `delta.deletedFileRetentionDuration` (default: a week) if
    None.
    """
    dry_run: NotRequired[bool]
    """Only plan, delete nothing."""
    enforce_retention: NotRequired[bool]
    """Refuse a retention shorter than the table's."""
    full: NotRequired[bool]
    """List all files below the root instead of the removed files in the log."""
    keep_versions: NotRequired[list[int]]
    """Versions that remain readable regardless of their age."""
    now_ms: NotRequired[int | None]
    """The current time, in milliseconds since the epoch; the system clock's if None."""
    commit_options: NotRequired[CommitOptions]
    """How its two versions are committed."""


class VacuumResult(TypedDict):
    """The result of a vacuum or its dry run."""

    files: list[str]
    """Paths relative to the table root, sorted."""
    bytes: int
    """Their total size in bytes."""
    folders: int
    """The number of folders that were listed."""


class DeletionVectorDescriptor(TypedDict):
    """Descriptor of a deletion vector."""

    storageType: str
    """`u`, `i` or `p`."""
    pathOrInlineDv: str
    """Its location, or the inline vector."""
    offset: NotRequired[int | None]
    """Start in its file."""
    sizeInBytes: int
    """Size in bytes."""
    cardinality: int
    """Rows that it deletes."""


class Add(TypedDict):
    """`add`."""

    path: str
    """URI-encoded path, relative to the table or absolute."""
    partitionValues: NotRequired[dict[str, str | None]]
    """A value for every partition column."""
    size: int
    """Size in bytes."""
    modificationTime: int
    """Time of the file's creation, milliseconds since the epoch."""
    dataChange: bool
    """False if the rows were in the table before."""
    stats: NotRequired[str | None]
    """Statistics, as JSON text."""
    tags: NotRequired[dict[str, str | None] | None]
    """Further metadata of the file by the writer."""
    deletionVector: NotRequired[DeletionVectorDescriptor | None]
    """The rows that are deleted."""
    baseRowId: NotRequired[int | None]
    """Row id of the first row; None for a new file, the commit gives it one where the table tracks rows."""
    defaultRowCommitVersion: NotRequired[int | None]
    """Version in which the file was first added; None for a new file, as for the row id."""
    clusteringProvider: NotRequired[str | None]
    """The implementation that clustered the file."""


class Remove(TypedDict):
    """`remove`."""

    path: str
    """As in the add."""
    deletionTimestamp: NotRequired[int | None]
    """Milliseconds since the epoch."""
    dataChange: bool
    """False if the rows stay in the table."""
    extendedFileMetadata: NotRequired[bool | None]
    """Whether partition values and size are present."""
    partitionValues: NotRequired[dict[str, str | None] | None]
    """As in the add."""
    size: NotRequired[int | None]
    """As in the add."""
    tags: NotRequired[dict[str, str | None] | None]
    """As in the add."""
    deletionVector: NotRequired[DeletionVectorDescriptor | None]
    """As in the add."""
    baseRowId: NotRequired[int | None]
    """As in the add."""
    defaultRowCommitVersion: NotRequired[int | None]
    """As in the add."""
    stats: NotRequired[str | None]
    """As in the add."""


class Cdc(TypedDict):
    """`cdc`."""

    path: str
    """URI-encoded path below `_change_data`."""
    partitionValues: NotRequired[dict[str, str | None]]
    """A value for every partition column."""
    size: int
    """Size in bytes."""
    tags: NotRequired[dict[str, str | None] | None]
    """Further metadata of the file by the writer."""
    dataChange: NotRequired[bool]
    """Always false."""


class DomainMetadata(TypedDict):
    """`domainMetadata`."""

    domain: str
    """Name of the domain."""
    configuration: NotRequired[str]
    """Its configuration, a string in the domain's own format."""
    removed: NotRequired[bool]
    """True for a tombstone."""


Action: TypeAlias = (
    dict[Literal["add"], Add]
    | dict[Literal["remove"], Remove]
    | dict[Literal["cdc"], Cdc]
    | dict[Literal["metaData"], Metadata]
    | dict[Literal["protocol"], Protocol]
    | dict[Literal["txn"], SetTransaction]
    | dict[Literal["domainMetadata"], DomainMetadata]
)
"""One line of a commit."""


class FunctionParameter(TypedDict):
    """A parameter as callers that convert arguments need it."""

    types: str
    """The types as in the table, for example `string | binary`."""
    default: Any | None
    """The value of an argument that is left out."""


class SqlFunction(TypedDict):
    """A name in SQL that means exactly one function of the core."""

    name: str
    """The name in SQL."""
    function: str
    """The function's name in a tree."""
    parameters: list[FunctionParameter]
    """The parameters; arguments are converted to their types."""
    result: str
    """The type of the result."""


class WrittenFile(TypedDict):
    """A file that `write_files` wrote."""

    path: str
    partitionValues: dict[str, str | None]
    size: int
    """Bytes."""
    modificationTime: int
    """Milliseconds since the epoch."""
    numRecords: int
    stats: str | None
    """The statistics of the `add` action, as in the log."""


class WrittenFiles(TypedDict):
    """The result of `write_files`."""

    files: list[WrittenFile]
    changes: list[WrittenFile]
    """Files with change data."""
    rows: int
    identities: dict[str, int]
    """The last value that was assigned to each identity column."""
    steps: dict[str, int]
    """The steps of the identity columns, whose sign determines the last value of several."""


SchemaMode: TypeAlias = Literal["merge", "overwrite"]
"""How the data may change the table's schema."""


class ReplaceKey(TypedDict):
    """A column of the table that must equal one of the data."""

    target: str
    """The table's column."""
    source: str
    """The data's column."""
    null_safe: NotRequired[bool]
    """Whether null equals null; otherwise a row with a null matches nothing."""
    exact_target: NotRequired[bool]
    """Whether the table's column has exactly this name, not another case of it."""
    exact_source: NotRequired[bool]
    """Whether the data's column has exactly this name."""


AsSelect: TypeAlias = Literal["create", "create_or_replace", "replace"]
"""A statement that creates a table from a query."""


class StreamingBatch(TypedDict):
    """A micro-batch of a streaming query."""

    query_id: str
    """The id of the streaming query."""
    epoch_id: int
    """The number of the batch."""


class WriteOptions(TypedDict):
    """Options of a write."""

    mode: NotRequired[SaveMode]
    """What to do if the table exists."""
    partition_by: NotRequired[list[str] | None]
    """Partition columns of a new table; for an existing table they must be its own, unless its schema is replaced."""
    cluster_by: NotRequired[list[str]]
    """Clustering columns of a new table."""
    name: NotRequired[str | None]
    """Name of a new table."""
    description: NotRequired[str | None]
    """Description of a new table."""
    configuration: NotRequired[dict[str, str | None]]
    """Properties of a new table."""
    allow_unknown: NotRequired[bool]
    """Whether unknown `delta.` properties may be set."""
    schema_mode: NotRequired[SchemaMode | None]
    """How the data may change the schema; not at all if None."""
    has_predicate: NotRequired[bool]
    """Whether only the rows that match a predicate are replaced; the predicate is bound later."""
    dynamic_partitions: NotRequired[bool]
    """Whether only the partitions are replaced that the data contains."""
    keys: NotRequired[list[ReplaceKey]]
    """Replace only the rows that equal a row of the data in these columns; all rows if empty."""
    as_select: NotRequired[AsSelect | None]
    """The statement that creates or replaces a table from a query, if any; an existing table is replaced including
    its definition.
    """
    data_change: NotRequired[bool | None]
    """Whether the write changes the rows of the table. `Some(false)`: it replaces files by others with the same
    rows, so that streams and change data feeds skip the version (`dataChange` of the log).
    """
    batch: NotRequired[StreamingBatch | None]
    """The micro-batch of a streaming query that is written."""
    encoding: NotRequired[DataFileOptions]
    """How files are made."""
    commit_options: NotRequired[CommitOptions]
    """How it is committed."""


class WriteTarget(TypedDict):
    """The table after a write."""

    protocol: Protocol
    metadata: Metadata
    materializes_partition_columns: bool
    """Whether data files also hold the partition columns."""
    identities: list[IdentityColumn]
    """The identity columns for which the data has no values."""
    version: int | None
    """The version that is written to; None for a new table."""
