"""The Rust extension module, as the Python layer uses it.

Only `deltafast` itself calls it. Predicates are bound expression trees (see `deltafast._expr`), never SQL; the shapes
of dicts are in `deltafast._core_types`. A `schema` is a string as in `schemaString`. Errors are the classes of
`deltafast.exceptions`. Every blocking call releases the GIL and reacts to Ctrl-C.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, final
from typing import Protocol as Interface

from deltafast._catalog.committer import Committer
from deltafast._core_types import (
    Action,
    BoundTree,
    CheckOptions,
    CheckpointInfo,
    CheckpointOptions,
    CleanupOptions,
    CleanupPlan,
    CloneOptions,
    CloneResult,
    CommitOptions,
    ConvertOptions,
    ConvertResult,
    CreateOptions,
    DmlKind,
    DmlOptions,
    FileWriteOptions,
    GeneratedManifests,
    MatchedRowsSummary,
    MergeOptions,
    MergePlan,
    MergeRequirements,
    MergeTarget,
    Metadata,
    NamedExpression,
    OpenOptions,
    OptimizeMetrics,
    OptimizeOptions,
    OptimizeRequirements,
    Protocol,
    RepairOptions,
    RepairResult,
    RequestLog,
    RestoreOptions,
    RestoreResult,
    ScanExplanation,
    ScanPlan,
    SegmentSummary,
    SetTransaction,
    SourceStatistics,
    SqlFunction,
    StoreCheckReport,
    TableChange,
    TableConstraints,
    TableRequirements,
    VacuumOptions,
    VacuumResult,
    ValuePlan,
    WriteOptions,
    WriteTarget,
    WrittenFiles,
)

__all__ = [
    "ArrowBatch",
    "ArrowSchemaExport",
    "ArrowStream",
    "ArrowTable",
    "ChangeJob",
    "CommitFiles",
    "CommitResult",
    "Commits",
    "Counter",
    "CredentialSource",
    "FileUpload",
    "Files",
    "OptimizeJob",
    "Snapshot",
    "TableMerge",
    "TableWrite",
    "abandon_folders",
    "alter",
    "build_profile",
    "cast_constants",
    "cast_stream",
    "check_retention",
    "check_store",
    "cleanup_metadata",
    "clone_table",
    "compact_logs",
    "convert_to_delta",
    "create_checkpoint",
    "create_table",
    "delete",
    "drop_feature",
    "evaluate",
    "expand_address",
    "function_names",
    "generate",
    "is_deltatable",
    "is_url",
    "new_table_constraints",
    "optimize",
    "option_warnings",
    "parse_byte_size",
    "python_batches",
    "repair",
    "restore",
    "retention_ms",
    "sql_functions",
    "store_schemes",
    "table_constraints",
    "take_requests",
    "update",
    "vacuum",
    "version",
    "write_checksum",
    "write_files",
]

_Metrics_co = TypeVar("_Metrics_co", covariant=True)

class ArrowStreamExportable(Interface):
    """Any producer of record batches through the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class ArrowBatch:
    """One record batch, owned by Rust until an Arrow library imports it."""

    @property
    def num_rows(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class ArrowTable:
    """Record batches in memory, owned by Rust until an Arrow library imports them."""

    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class ArrowStream:
    """A stream of record batches that can be read once; each batch goes to one of the threads that read."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the whole stream; afterwards this object is empty."""
    def __arrow_c_schema__(self) -> object: ...
    def interruptible(self) -> object:
        """Export it for a library that releases the GIL while it pulls: Ctrl-C ends the stream, `check` raises it.

        Several exports share the batches.
        """
    def __iter__(self) -> ArrowStream: ...
    def __next__(self) -> ArrowBatch:
        """Return the next batch, or raise the typed error if the stream has failed."""
    def read_all(self) -> ArrowTable:
        """Return the rest of the stream."""
    def strings(self, column: str) -> list[str]:
        """Return the values of a column of strings in the rest of the stream, without nulls."""
    def close(self) -> None:
        """Stop the producers of the stream and free its memory; may be called twice."""
    def progress(self) -> tuple[int, int]:
        """Return the number of files read, and their total as far as known."""
    def check(self) -> None:
        """Raise the typed error with which the exported stream ended, if it did."""

@final
class CommitFiles:
    """The rows that one commit added and removed, by file; rewrites that change no rows do not count."""

    @property
    def adds(self) -> list[tuple[str, int]]:
        """Path and bytes of each file whose rows are new."""
    @property
    def removes(self) -> bool:
        """Whether the commit removed rows."""
    @property
    def table_id(self) -> str | None:
        """The table's id, if the commit has a metadata action."""
    @property
    def feed_files(self) -> int:
        """Number of files that the change data feed is read from."""
    @property
    def feed_bytes(self) -> int:
        """Bytes of these files."""

@final
class Commits:
    """The commits of a table, starting with a version."""

    @staticmethod
    def list(snapshot: Snapshot, start: int) -> Commits: ...
    def read(self, version: int) -> CommitFiles: ...

@final
class ArrowSchemaExport:
    """A schema for export to an Arrow library."""

    def __arrow_c_schema__(self) -> object: ...

@final
class Files:
    """The files below a path or URL."""

    @staticmethod
    def open(uri: str, storage_options: dict[str, str] | None = None) -> Files: ...
    def head(self, path: str) -> tuple[int, int]:
        """Return size and modification time (ms)."""
    def read(self, path: str, start: int, end: int) -> bytes: ...
    def begin(self, path: str) -> FileUpload: ...
    def delete(self, paths: list[str]) -> None: ...
    # The last method: after it the name `list` means this method.
    def list(self, folder: str) -> tuple[list[tuple[str, int, int]], list[str]]:
        """Return the files with size and modification time (ms), and the folders, directly in a folder."""

@final
class FileUpload:
    """A file that is being written; if it is dropped before `finish`, no file is left."""

    def write(self, data: bytes) -> None: ...
    def finish(self) -> None: ...

@final
class Snapshot:
    """One version of a table. Immutable; safe to share between threads."""

    @staticmethod
    def open(
        uri: str,
        version: int | None = None,
        timestamp_ms: int | None = None,
        storage_options: dict[str, str] | None = None,
        log_tail: list[tuple[str, int, int]] | None = None,
        store: object | None = None,
        options: OpenOptions | None = None,
        committer: Committer | None = None,
    ) -> Snapshot: ...
    @property
    def uri(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    def segment_summary(self) -> SegmentSummary: ...
    def protocol(self) -> Protocol: ...
    def metadata(self) -> Metadata: ...
    def arrow_schema(self, string_view: bool = False) -> ArrowSchemaExport: ...
    def update(self, version: int | None = None) -> Snapshot: ...
    def at_version(self, version: int) -> Snapshot: ...
    def at_timestamp(self, timestamp_ms: int) -> Snapshot: ...
    def num_files(self) -> int: ...
    def size_in_bytes(self) -> int: ...
    def files(
        self,
        columns: list[str] | None = None,
        predicate: BoundTree | None = None,
        flatten: bool = False,
        partition_filter_only: bool = False,
        paths: set[str] | None = None,
    ) -> ArrowStream: ...
    def file_uris(
        self, predicate: BoundTree | None = None, as_in_log: bool = False, paths: set[str] | None = None
    ) -> ArrowStream:
        """Return the files as `uri`, resolved or as in the log; paths that lead out of the stores are an error."""
    def partitions(self, predicate: BoundTree | None = None) -> ArrowStream: ...
    def scan(
        self,
        columns: list[str] | None = None,
        predicate: BoundTree | None = None,
        limit: int | None = None,
        batch_size: int | None = None,
        string_view: bool = True,
        metadata_columns: list[str] | None = None,
        files: list[str] | None = None,
        filter_rows: bool = True,
    ) -> ArrowStream: ...
    def count(self, predicate: BoundTree | None = None) -> int: ...
    def history(self, limit: int | None = None, writers_time: bool = False) -> list[dict[str, Any]]:
        """Return the `commitInfo` of each commit with its version and timestamp.

        With `writers_time` it is the timestamp in `commitInfo`, unless there is an in-commit timestamp.
        """

    def transactions(self) -> dict[str, SetTransaction]:
        """Return the application transactions by application."""
    def domain_metadata(self) -> dict[str, str]:
        """Return the configurations by domain."""
    def tombstones(self) -> ArrowStream: ...
    def deletion_vectors(self, as_bitmaps: bool = False, paths: set[str] | None = None) -> ArrowStream:
        """Return deleted rows by file: `filepath` and `selection_vector`, or `path` (as in the log) and `words` (bits).

        With `paths`, bitmaps are returned for these files only.
        """
    def ids_agree(self) -> bool:
        """Return whether physical names and field ids resolve to the same columns in every file; reads all footers."""
    def cdf(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp_ms: int | None = None,
        ending_timestamp_ms: int | None = None,
        columns: list[str] | None = None,
        predicate: BoundTree | None = None,
        allow_out_of_range: bool = False,
        string_view: bool = False,
        as_opened: bool = False,
    ) -> ArrowStream:
        """Read row changes; mapped columns are named as in the last version, unless `as_opened`."""
    def change_files(self, starting_version: int, ending_version: int) -> ArrowStream:
        """List the files that hold the changes of some versions, for readers that open them themselves.

        Returns:
            `path` utf8 (as in the log), `size_bytes` int64, `modification_time` int64 (milliseconds since the epoch),
            `num_rows` int64 (of changes; null if the log lacks it), `excluded` list<int64> (a bit for each row that is
            not a change, the lowest first; null if all rows are changes), `change_type` utf8 (null if the file has the
            column `_change_type`), `commit_version` int64, `commit_timestamp` timestamp[us, UTC], `partition` struct
            by logical column.
        """
    def cdf_range(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp_ms: int | None = None,
        ending_timestamp_ms: int | None = None,
        as_opened: bool = False,
    ) -> tuple[int, int] | None:
        """Return the versions that `cdf` would read, both ends included, after the same checks."""
    def plan(self, predicate: BoundTree | None = None) -> ScanPlan: ...
    def explain(
        self, predicate: BoundTree | None = None, columns: list[str] | None = None, row_groups: bool = True
    ) -> ScanExplanation:
        """Return how many files and row groups a scan reads; with `row_groups`, the files' footers are read."""

@final
class CommitResult(Generic[_Metrics_co]):
    """The result of a command."""

    @property
    def version(self) -> int | None:
        """The version that was committed; None if there was nothing to do."""
    @property
    def attempts(self) -> int:
        """The number of attempts to commit."""
    @property
    def metrics(self) -> _Metrics_co: ...
    @property
    def snapshot(self) -> Snapshot | None:
        """The table at that version, or unchanged; None if it could not be opened afterwards."""

@final
class TableWrite:
    """A planned write, to be run with bound expressions."""

    @staticmethod
    def plan(
        uri: str,
        options: WriteOptions,
        data: ArrowStreamExportable | None = None,
        actions: list[Action] | None = None,
        schema: str | None = None,
        snapshot: Snapshot | None = None,
        storage_options: dict[str, str] | None = None,
        store: object | None = None,
        open_options: OpenOptions | None = None,
        committer: Committer | None = None,
    ) -> TableWrite | None:
        """Determine the table's schema and properties after the write; None if there is nothing to do.

        Rows come as `data`, or in existing files that `actions` add and remove, with their `schema`.
        """
    @property
    def constraints(self) -> TableConstraints:
        """The expressions to bind."""
    @property
    def schema(self) -> str:
        """The table's schema after the write, against which the expressions are bound."""
    @property
    def target(self) -> WriteTarget:
        """The table after the write."""
    def run(self, constraints: TableConstraints) -> CommitResult[dict[str, str]]:
        """Write and commit; each of the constraints has a bound expression."""
    def plan_replacement(self, constraints: TableConstraints) -> bool:
        """Determine the replaced rows for another engine that writes; returns whether it must write changes, too."""
    def run_folder(
        self, constraints: TableConstraints, folder: str, changes: str | None = None
    ) -> CommitResult[dict[str, str]]:
        """Commit as `run` files that another engine wrote into folders of the table; on an error they are deleted."""
    def run_written(
        self, constraints: TableConstraints, written: list[WrittenFiles], changes: str | None = None
    ) -> CommitResult[dict[str, str]]:
        """Commit files that `write_files` wrote elsewhere, by its results (with the `steps` of identities)."""
    def abandon(self, folders: list[str]) -> None:
        """Delete such files instead of committing them."""

@final
class TableMerge:
    """A MERGE in steps: determine the schema, read the source, join the keys, run."""

    def __new__(cls, snapshot: Snapshot, source: ArrowStreamExportable) -> TableMerge:
        """Accept the source without reading it."""
    @property
    def source_schema(self) -> str:
        """The source's schema, as a table schema."""
    def plan(self, evolving: list[list[str]], lacking: list[str], options: MergeOptions) -> MergeTarget:
        """Determine the table's schema after the MERGE, and the expressions to bind against it.

        `evolving` are columns of the source that may be added to the schema, `lacking` columns of the table that new
        rows may lack.
        """
    def read_source(self, plan: MergePlan) -> None:
        """Read the source."""
    def source_keys(self) -> ArrowStream:
        """Return the keys of the source: `key` (int64 or binary) and `source_row` (int64)."""
    def target_keys(self) -> ArrowStream:
        """Return the keys of rows of the table that may match: `key`, `file` (int32) and `row` (int64)."""
    def join_requirements(self) -> tuple[bool, int, int]:
        """Return whether keys are to be joined, the number of files to read, and the memory limit of the join in bytes.

        The values are those of the version that the MERGE is run on now.
        """
    def run(self, pairs: ArrowStreamExportable | None = None) -> CommitResult[dict[str, str]] | None:
        """Write and commit. `pairs` has `file`, `row` and `source_row` of each pair of equal keys.

        Returns None if another writer changed rows that were read: the keys must be joined again before the next run.
        """
    def plan_job(self, plan: MergePlan, statistics: SourceStatistics, keys: ArrowStreamExportable) -> MergeRequirements:
        """Continue as a job of another engine, which reads the source; returns the input of the engine.

        `keys` has a column for each equality of the plan.
        """
    def find_rows(self, files: dict[int, str], read: list[str], marks: ArrowStreamExportable) -> list[str]:
        """Record the matched rows (`file`, `word`, `bits`, `kind`). Returns paths of files that lose all their rows.

        `files` are paths by number, `read` are paths of files with matching rows.
        """
    def run_folders(self, rows: str | None = None, changes: str | None = None) -> CommitResult[dict[str, str]]:
        """Commit the files in these folders of the table."""

def create_table(
    uri: str,
    schema: str,
    constraints: TableConstraints,
    options: CreateOptions,
    storage_options: dict[str, str] | None = None,
    store: object | None = None,
    open_options: OpenOptions | None = None,
    committer: Committer | None = None,
) -> CommitResult[dict[str, str]]:
    """Create a table without rows; `constraints` are its `new_table_constraints` with bound expressions."""

def table_constraints(snapshot: Snapshot) -> TableConstraints:
    """Return the table's constraints and generated columns, without defaults."""

def new_table_constraints(schema: str, configuration: dict[str, str]) -> TableConstraints:
    """Return the constraints and expressions of a new table with this schema and these properties."""

def delete(
    snapshot: Snapshot, options: DmlOptions, predicate: NamedExpression | None = None
) -> CommitResult[dict[str, str]]:
    """Delete rows."""

def update(
    snapshot: Snapshot,
    options: DmlOptions,
    assignments: list[ValuePlan],
    constraints: TableConstraints,
    predicate: NamedExpression | None = None,
) -> CommitResult[dict[str, str]]:
    """Set columns to new values, as `delete`."""

@final
class ChangeJob:
    """A DELETE or an UPDATE whose rows another engine finds and writes; see `src/py/job.rs`."""

    def __new__(
        cls,
        snapshot: Snapshot,
        kind: DmlKind,
        commit_options: CommitOptions,
        predicate: NamedExpression | None = None,
    ) -> ChangeJob: ...
    def requirements(self) -> TableRequirements:
        """Return the input of the engine."""

    def find_rows(self, files: dict[int, str], marks: ArrowStreamExportable | None = None) -> MatchedRowsSummary:
        """Record the matched rows (`file`, `word`, `bits`); `files` are paths by number."""

    def run(self, rows: str | None = None, changes: str | None = None) -> CommitResult[dict[str, str]]:
        """Commit the files in these folders of the table."""

@final
class OptimizeJob:
    """An OPTIMIZE whose rows another engine copies; see `src/ops/external/optimize.rs`."""

    def __new__(
        cls, snapshot: Snapshot, options: OptimizeOptions, predicate: NamedExpression | None = None
    ) -> OptimizeJob: ...
    def requirements(self) -> OptimizeRequirements:
        """Return the input of the engine."""

    def bins_to_copy(self) -> list[int]:
        """Return the bins whose row groups the engine must copy, which only an engine that can do so asks for."""

    def rank_bits(self, ranges: list[int]) -> int:
        """Return the number of bits of a rank for these numbers of ranges of the bins."""

    def curve(self, sample: ArrowStreamExportable, ranges: list[int]) -> ArrowStream:
        """Return the order of rows along the curve and its ranges, a row for each bin.

        `sample` has `bin` and the curve's columns.
        """

    def run(self, folder: str | None = None) -> CommitResult[OptimizeMetrics]:
        """Commit the files in this folder of the table."""

def abandon_folders(snapshot: Snapshot, folders: list[str]) -> None:
    """Delete files that another engine left in folders of the table and that no version refers to."""

@final
class Counter:
    """Progress of the calls that a thread makes within its `with` block, readable from another thread."""

    def __new__(cls) -> Counter: ...
    def __enter__(self) -> None: ...
    def __exit__(self, _kind: object, _error: object, _trace: object, /) -> None: ...
    def expect(self, units: int) -> None:
        """Add to the total."""
    def progress(self) -> tuple[int, int]:
        """Return the units done, and their total."""

def optimize(
    snapshot: Snapshot, options: OptimizeOptions, predicate: NamedExpression | None = None
) -> CommitResult[OptimizeMetrics]:
    """Compact or cluster files."""

def check_retention(properties: dict[str, str]) -> None:
    """Refuse properties of a SQL statement that retain commits for a shorter time than removed files."""

def retention_ms(configuration: dict[str, str], key: str) -> int:
    """Return the effective value of a retention property in milliseconds; an unreadable one is an error."""

def parse_byte_size(size: str) -> int | None:
    """Return the bytes of a size such as `128m` (units are powers of 1024); None for other text."""

def alter(
    snapshot: Snapshot, change: TableChange, constraints: TableConstraints, commit_options: CommitOptions
) -> CommitResult[dict[str, str]]:
    """Alter a table; each of its constraints has a bound expression."""

def drop_feature(
    snapshot: Snapshot, name: str, truncate_history: bool, commit_options: CommitOptions
) -> CommitResult[dict[str, str]]:
    """Remove a feature from a table, in as many commits as needed."""

def create_checkpoint(snapshot: Snapshot, options: CheckpointOptions) -> CheckpointInfo: ...
def write_checksum(snapshot: Snapshot) -> bool: ...
def cleanup_metadata(snapshot: Snapshot, options: CleanupOptions) -> CleanupPlan: ...
def compact_logs(snapshot: Snapshot, starting_version: int, ending_version: int) -> str: ...
def vacuum(
    snapshot: Snapshot, options: VacuumOptions, inventory: ArrowStreamExportable | None = None
) -> CommitResult[VacuumResult]: ...
def restore(snapshot: Snapshot, options: RestoreOptions) -> CommitResult[RestoreResult]: ...
def repair(snapshot: Snapshot, options: RepairOptions) -> CommitResult[RepairResult]: ...
def generate(snapshot: Snapshot) -> GeneratedManifests: ...
def clone_table(
    snapshot: Snapshot, uri: str, options: CloneOptions, storage_options: dict[str, str] | None = None
) -> CommitResult[CloneResult]: ...
def convert_to_delta(
    uri: str, options: ConvertOptions, storage_options: dict[str, str] | None = None
) -> CommitResult[ConvertResult]: ...
def check_store(
    uri: str,
    options: CheckOptions,
    storage_options: dict[str, str] | None = None,
    store: object | None = None,
) -> StoreCheckReport:
    """Test whether commits to a store are safe."""

def expand_address(address: str) -> str:
    """Expand `~` in an address that is a local path."""

def is_url(address: str) -> bool:
    """Return whether an address is a URL, and not a local path."""

def store_schemes() -> list[str]:
    """Return the schemes of URLs that the core reads and writes."""

@final
class CredentialSource:
    """A source of credentials that storage options refer to while it exists.

    `ask` returns the credentials by name, and when they expire in milliseconds since the epoch.
    """

    def __new__(cls, ask: Callable[[], tuple[dict[str, str], int | None]]) -> CredentialSource: ...
    def option(self) -> tuple[str, str]: ...

def take_requests() -> RequestLog:
    """Take the requests to object stores that were recorded since the last call."""

def option_warnings(options: dict[str, str]) -> list[str]:
    """Return warnings about storage options: unknown names, and options without effect."""

def is_deltatable(uri: str, storage_options: dict[str, str] | None = None, store: object | None = None) -> bool: ...
def version() -> str: ...
def build_profile() -> str: ...
def function_names() -> list[str]:
    """Return the names of all functions that a bound expression can call."""

def sql_functions() -> list[SqlFunction]:
    """Return the functions of SQL that each mean one function of the core."""

def evaluate(tree: BoundTree, stream: ArrowStreamExportable) -> ArrowStream: ...
def cast_constants(
    values: list[Any], source: str | dict[str, Any], target: str | dict[str, Any], zone: str, exact: bool = False
) -> list[Any]:
    """Return constants as `try_cast` casts them; values and results are those of literals in a tree.

    Args:
        values: Constants of the source's type.
        source: Their type, as in `schemaString`.
        target: The type to cast to.
        zone: The session's time zone.
        exact: Return None also for a value that the type does not have exactly.
    """

def python_batches(batches: Iterator[object], schema: object, progress_of: ArrowStream | None = None) -> ArrowStream:
    """Return the batches of an iterator, which have an Arrow C array, cast to the types of a schema."""

def cast_stream(stream: ArrowStreamExportable, schema: object) -> ArrowStream:
    """Return a stream with its columns cast to the types of a schema; a value that does not fit is an error."""

def write_files(
    uri: str,
    schema: str,
    data: ArrowStreamExportable,
    options: FileWriteOptions | None = None,
    storage_options: dict[str, str] | None = None,
) -> WrittenFiles:
    """Write batches as data files of the table at `uri`, without a commit, and return their description.

    On an error no file is left.
    """
