"""The Rust extension module, as the Python layer uses it.

Only `deltafast` itself calls it. Predicates are bound expression trees as JSON strings
(see `deltafast._expr`), never SQL. Errors are the classes of `deltafast.exceptions`. Every blocking
call releases the GIL and reacts to Ctrl-C.
"""

from typing import Protocol, final

from deltafast.catalog import Committer

__all__ = [
    "ArrowBatch",
    "ArrowSchemaExport",
    "ArrowStream",
    "ChangeJob",
    "CommitFiles",
    "Commits",
    "Counter",
    "FileUpload",
    "Files",
    "OptimizeJob",
    "Snapshot",
    "TableMerge",
    "TableWrite",
    "abandon_folders",
    "alter",
    "build_profile",
    "check_retention",
    "check_store",
    "cleanup_metadata",
    "clone_table",
    "compact_logs",
    "convert_to_delta",
    "create_checkpoint",
    "create_table",
    "delete",
    "demands",
    "demands_of",
    "drop_feature",
    "evaluate",
    "expand_address",
    "generate",
    "is_deltatable",
    "is_url",
    "optimize",
    "option_warnings",
    "repair",
    "restore",
    "update",
    "vacuum",
    "version",
    "write_checksum",
    "write_files",
]

class ArrowStreamExportable(Protocol):
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
class ArrowStream:
    """A stream of record batches that can be read once; its producers never need the GIL."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the whole stream; afterwards this object is empty."""
    def __arrow_c_schema__(self) -> object: ...
    def interruptible(self) -> object:
        """Export it for a library that releases the GIL while it pulls: Ctrl-C ends the stream, `check` raises it."""
    def __iter__(self) -> ArrowStream: ...
    def __next__(self) -> ArrowBatch:
        """Return the next batch, or raise the typed error if the stream has failed."""
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
        options: dict[str, str] | None = None,
        committer: Committer | None = None,
    ) -> Snapshot: ...
    @property
    def uri(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    def protocol_json(self) -> str: ...
    def metadata_json(self) -> str: ...
    def arrow_schema(self, string_view: bool = False) -> ArrowSchemaExport: ...
    def update(self, version: int | None = None) -> Snapshot: ...
    def at_version(self, version: int) -> Snapshot: ...
    def at_timestamp(self, timestamp_ms: int) -> Snapshot: ...
    def num_files(self) -> int: ...
    def size_in_bytes(self) -> int: ...
    def files(
        self,
        columns: list[str] | None = None,
        predicate: str | None = None,
        flatten: bool = False,
        partition_filter_only: bool = False,
        paths: set[str] | None = None,
    ) -> ArrowStream: ...
    def file_uris(
        self, predicate: str | None = None, as_in_log: bool = False, paths: set[str] | None = None
    ) -> ArrowStream:
        """Return the files as `uri`, resolved or as in the log; paths that lead out of the stores are an error."""
    def partitions(self, predicate: str | None = None) -> ArrowStream: ...
    def scan(
        self,
        columns: list[str] | None = None,
        predicate: str | None = None,
        limit: int | None = None,
        batch_size: int | None = None,
        string_view: bool = True,
        metadata_columns: list[str] | None = None,
        files: list[str] | None = None,
        filter_rows: bool = True,
    ) -> ArrowStream: ...
    def count(self, predicate: str | None = None) -> int: ...
    def history_json(self, limit: int | None = None, writers_time: bool = False) -> list[str]:
        """Return the `commitInfo` of each commit with its version and timestamp.

        With `writers_time` it is the timestamp in `commitInfo`, unless there is an in-commit timestamp.
        """

    def transactions_json(self) -> str: ...
    def domain_metadata_json(self) -> str: ...
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
        predicate: str | None = None,
        allow_out_of_range: bool = False,
        string_view: bool = False,
        as_opened: bool = False,
    ) -> ArrowStream:
        """Read row changes; mapped columns are named as in the last version, unless `as_opened`."""
    def cdf_range(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp_ms: int | None = None,
        ending_timestamp_ms: int | None = None,
        as_opened: bool = False,
    ) -> tuple[int, int] | None:
        """Return the versions that `cdf` would read, both ends included, after the same checks."""
    def plan_json(self, predicate: str | None = None) -> str: ...

@final
class TableWrite:
    """A planned write, to be run with bound expressions; options are `WriteOptions` in `src/ops/write/mod.rs`."""

    @staticmethod
    def plan(
        uri: str,
        options: str,
        data: ArrowStreamExportable | None = None,
        actions: str | None = None,
        schema: str | None = None,
        snapshot: Snapshot | None = None,
        storage_options: dict[str, str] | None = None,
        store: object | None = None,
        open_options: dict[str, str] | None = None,
        committer: Committer | None = None,
    ) -> TableWrite | None:
        """Determine the table's schema and properties after the write; None if there is nothing to do.

        Rows come as `data`, or in existing files as JSON lines of `actions`, with their `schema`.
        """
    @property
    def demands(self) -> str:
        """The expressions to bind: JSON of `checks`, `generated`, `defaults` (lists of `name` and `sql`)."""
    @property
    def schema(self) -> str:
        """The table's schema after the write, against which the expressions are bound."""
    @property
    def target(self) -> str:
        """JSON of the table's `protocol` and `metadata` after the write.

        It also has the `identities` for which the data has no values, and the `version` that is written to, null for a
        new table.
        """
    def run(self, bound: str) -> tuple[Snapshot | None, str]:
        """Write and commit; `bound` are the `demands` with a `tree` each. Returns the new version and a JSON report."""
    def settle(self, bound: str) -> bool:
        """Determine the replaced rows for another engine that writes; returns whether it must write changes, too."""
    def run_folder(self, bound: str, folder: str, changes: str | None = None) -> tuple[Snapshot | None, str]:
        """Commit as `run` files that another engine wrote into folders of the table; on an error they are deleted."""
    def run_written(self, bound: str, answers: list[str], changes: str | None = None) -> tuple[Snapshot | None, str]:
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
    def settle(self, evolving: list[list[str]], lacking: list[str], options: str) -> tuple[str, str]:
        """Determine the table's schema after the MERGE, and the expressions to bind against it, as JSON.

        `evolving` are columns of the source that may be added to the schema, `lacking` columns of the table that new
        rows may lack; options are those of `MergeOptions` in `src/ops/merge/mod.rs`.
        """
    def read(self, plan: str) -> None:
        """Read the source for a `MergePlan`."""
    def source_keys(self) -> ArrowStream:
        """Return the keys of the source: `key` (int64 or binary) and `source_row` (int64)."""
    def target_keys(self) -> ArrowStream:
        """Return the keys of rows of the table that may match: `key`, `file` (int32) and `row` (int64)."""
    def outlook(self) -> tuple[bool, int, int]:
        """Return whether keys are to be joined, the number of files to read, and the memory limit of the join in bytes.

        The values are those of the version that the MERGE is run on now.
        """
    def run(self, pairs: ArrowStreamExportable | None = None) -> tuple[Snapshot | None, str] | None:
        """Write and commit. `pairs` has `file`, `row` and `source_row` of each pair of equal keys.

        Returns None if another writer changed rows that were read: the keys must be joined again before the next run.
        """
    def job(self, plan: str, facts: str, keys: ArrowStreamExportable) -> str:
        """Continue as a job of another engine, which reads the source: JSON of `MergeOutlook` in `src/py/table.rs`.

        `facts` is JSON of `SourceFacts`, `keys` has a column for each equality of the plan.
        """
    def find(self, files: str, read: list[str], marks: ArrowStreamExportable) -> list[str]:
        """Record the matched rows (`file`, `word`, `bits`, `kind`). Returns paths of files that lose all their rows.

        `files` is JSON of paths by number, `read` are paths of files with matching rows.
        """
    def run_folders(self, rows: str | None = None, changes: str | None = None) -> tuple[Snapshot | None, str]:
        """Commit the files in these folders of the table."""

def create_table(
    uri: str,
    schema: str,
    bound: str,
    options: str,
    storage_options: dict[str, str] | None = None,
    store: object | None = None,
    open_options: dict[str, str] | None = None,
    committer: Committer | None = None,
) -> tuple[Snapshot | None, str]:
    """Create a table without rows; `bound` are its `demands`, options are `CreateOptions` in `src/ops/create.rs`."""

def demands_of(snapshot: Snapshot) -> str:
    """Return the table's constraints and generated columns as JSON, without defaults."""

def delete(snapshot: Snapshot, options: str, predicate: str | None = None) -> tuple[Snapshot | None, str]:
    """Delete rows; `options` is JSON of `DmlOptions` in `src/ops/dml/delete_update.rs`, `predicate` a bound tree."""

def update(
    snapshot: Snapshot, options: str, assignments: str, bound: str, predicate: str | None = None
) -> tuple[Snapshot | None, str]:
    """Set columns to new values, as `delete`; `assignments` is a list of `ValuePlan`s, `bound` the table's demands."""

@final
class ChangeJob:
    """A DELETE or an UPDATE whose rows another engine finds and writes; see `src/py/job.rs`."""

    def __new__(cls, snapshot: Snapshot, verb: str, commit_options: str, predicate: str | None = None) -> ChangeJob: ...
    def outlook(self) -> str:
        """Return JSON of `JobOutlook`: the input of the engine."""

    def find(self, files: str, marks: ArrowStreamExportable | None = None) -> str:
        """Record the matched rows (`file`, `word`, `bits`). Returns JSON of `JobFound`.

        `files` is JSON of paths by number.
        """

    def run(self, rows: str | None = None, changes: str | None = None) -> tuple[Snapshot | None, str]:
        """Commit the files in these folders of the table."""

@final
class OptimizeJob:
    """An OPTIMIZE whose rows another engine copies; see `src/ops/external/optimize.rs`."""

    def __new__(cls, snapshot: Snapshot, options: str, predicate: str | None = None) -> OptimizeJob: ...
    def outlook(self) -> str:
        """Return JSON of `OptimizeOutlook`: the input of the engine."""

    def curve(self, sample: ArrowStreamExportable) -> ArrowStream:
        """Return the order of rows along the curve, a row for each bin; `sample` has `bin` and the curve's columns."""

    def run(self, folder: str | None = None) -> tuple[Snapshot | None, str]:
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

def optimize(snapshot: Snapshot, options: str, predicate: str | None = None) -> tuple[Snapshot | None, str]:
    """Compact or cluster files; `options` is JSON of `OptimizeOptions` in `src/ops/optimize/mod.rs`.

    Returns the new version, and counts and sizes as JSON.
    """

def check_retention(properties: dict[str, str]) -> None:
    """Refuse properties of a SQL statement that retain commits for a shorter time than removed files."""

def alter(snapshot: Snapshot, change: str, bound: str, commit_options: str) -> tuple[Snapshot | None, str]:
    """Alter a table; `change` is JSON of `TableChange` in `src/ops/alter/mod.rs`, `bound` its demands with trees."""

def drop_feature(
    snapshot: Snapshot, name: str, truncate_history: bool, commit_options: str
) -> tuple[Snapshot | None, str]:
    """Remove a feature from a table, in as many commits as needed."""

def demands(schema: str, configuration: str) -> str:
    """Return the constraints and expressions of a new table with this schema and these properties, as JSON."""

def create_checkpoint(snapshot: Snapshot, options_json: str) -> str: ...
def write_checksum(snapshot: Snapshot) -> bool: ...
def cleanup_metadata(snapshot: Snapshot, options_json: str) -> str: ...
def compact_logs(snapshot: Snapshot, starting_version: int, ending_version: int) -> str: ...
def vacuum(
    snapshot: Snapshot, options_json: str, inventory: ArrowStreamExportable | None = None
) -> tuple[Snapshot | None, str]: ...
def restore(snapshot: Snapshot, options_json: str) -> tuple[Snapshot | None, str]: ...
def repair(snapshot: Snapshot, options_json: str) -> tuple[Snapshot | None, str]: ...
def generate(snapshot: Snapshot) -> str: ...
def clone_table(
    snapshot: Snapshot, uri: str, options_json: str, storage_options: dict[str, str] | None = None
) -> str: ...
def convert_to_delta(uri: str, options_json: str, storage_options: dict[str, str] | None = None) -> str: ...
def check_store(
    uri: str,
    options_json: str,
    storage_options: dict[str, str] | None = None,
    store: object | None = None,
) -> str:
    """Test whether commits to a store are safe: JSON of `url`, `safe` and `findings`; options are `CheckOptions`."""

def expand_address(address: str) -> str:
    """Expand `~` in an address that is a local path."""

def is_url(address: str) -> bool:
    """Return whether an address is a URL, and not a local path."""

def option_warnings(options: dict[str, str]) -> list[str]:
    """Return warnings about storage options: unknown names, and options without effect."""

def is_deltatable(uri: str, storage_options: dict[str, str] | None = None) -> bool: ...
def version() -> str: ...
def build_profile() -> str: ...
def evaluate(tree: str, stream: ArrowStreamExportable) -> ArrowStream: ...
def write_files(
    uri: str,
    schema: str,
    data: ArrowStreamExportable,
    options: str = "{}",
    storage_options: dict[str, str] | None = None,
) -> str:
    """Write batches as data files of the table at `uri`, without a commit, and return their description.

    `schema` is the table's `schemaString`. `options` is a JSON object, see `src/py/write.rs`. The result is a JSON
    object, too: `files` and `changes` (path, partitionValues, size, modificationTime, numRecords, stats),
    `rows` and `identities` (column to last assigned value). On an error no file is left.
    """
