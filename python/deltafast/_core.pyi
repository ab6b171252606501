"""The seam: what the Rust extension offers to the Python layer.

Everything here is called by `deltafast` only. Predicates are bound expression trees as JSON text
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
    """Anything that hands over record batches through the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class ArrowBatch:
    """One record batch, owned by Rust until an Arrow library takes it over."""

    @property
    def num_rows(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class ArrowStream:
    """A one-shot stream of record batches; nothing behind it ever needs the GIL."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the whole stream over; afterwards this object is empty."""
    def __arrow_c_schema__(self) -> object: ...
    def interruptible(self) -> object:
        """The same for a library that lets go of the GIL while it pulls: Ctrl-C ends the stream, `check` raises it."""
    def __iter__(self) -> ArrowStream: ...
    def __next__(self) -> ArrowBatch:
        """The next batch; raises the typed error where the stream has failed."""
    def close(self) -> None:
        """Stop the work behind the stream and free what it holds; may be called twice."""
    def progress(self) -> tuple[int, int]:
        """Files done and files in all, as far as known."""
    def check(self) -> None:
        """Raise the typed error with which the exported stream ended, if it did."""

@final
class CommitFiles:
    """What one commit added and took away; files that are only laid out anew do not count."""

    @property
    def adds(self) -> list[tuple[str, int]]:
        """Path and bytes of each file whose rows are new."""
    @property
    def removes(self) -> bool:
        """Rows that were there ended."""
    @property
    def table_id(self) -> str | None:
        """The table's id, where the commit says what the table is."""
    @property
    def feed_files(self) -> int:
        """Files that the change data feed is read from."""
    @property
    def feed_bytes(self) -> int:
        """Their bytes."""

@final
class Commits:
    """The commits of a table from a version on."""

    @staticmethod
    def list(snapshot: Snapshot, start: int) -> Commits: ...
    def read(self, version: int) -> CommitFiles: ...

@final
class ArrowSchemaExport:
    """A schema to be taken over by an Arrow library."""

    def __arrow_c_schema__(self) -> object: ...

@final
class Files:
    """The files below a path or URL."""

    @staticmethod
    def open(uri: str, storage_options: dict[str, str] | None = None) -> Files: ...
    def head(self, path: str) -> tuple[int, int]:
        """Size and time (ms)."""
    def read(self, path: str, start: int, end: int) -> bytes: ...
    def begin(self, path: str) -> FileUpload: ...
    def delete(self, paths: list[str]) -> None: ...
    # Last: below it `list` would be this method.
    def list(self, folder: str) -> tuple[list[tuple[str, int, int]], list[str]]:
        """Files with size and time (ms), and folders, directly in a folder."""

@final
class FileUpload:
    """A file that is being written; dropped before it is finished it leaves nothing."""

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
        """The files as `uri`: where they are, or as the log has them, refused where they lead out of the stores."""
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
        """`commitInfo` of each commit with its version and timestamp.

        With `writers_time` the timestamp is the writer's of `commitInfo`, unless there is an in-commit timestamp.
        """

    def transactions_json(self) -> str: ...
    def domain_metadata_json(self) -> str: ...
    def tombstones(self) -> ArrowStream: ...
    def deletion_vectors(self, as_bitmaps: bool = False, paths: set[str] | None = None) -> ArrowStream:
        """Deleted rows by file: `filepath` and `selection_vector`, or `path` (as in the log) and `words` of bits.

        Bitmaps are given of the files at some paths, if any are said.
        """
    def ids_agree(self) -> bool:
        """Whether physical names find the same columns as field ids do, in every file; costs a footer each."""
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
        """Changes of rows; the columns are those of the last version where they are mapped, unless `as_opened`."""
    def cdf_range(
        self,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp_ms: int | None = None,
        ending_timestamp_ms: int | None = None,
        as_opened: bool = False,
    ) -> tuple[int, int] | None:
        """The versions that `cdf` would read, both ends included, after its checks."""
    def plan_json(self, predicate: str | None = None) -> str: ...

@final
class TableWrite:
    """A write that waits for its expressions; its options are those of `WriteOptions` in `src/table/write.rs`."""

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
        """Settle what the table will be; None where there is nothing to do.

        Rows come as `data`, or in files that are there as JSON lines of `actions`, with their `schema`.
        """
    @property
    def demands(self) -> str:
        """What is to be bound: JSON of `checks`, `generated`, `defaults` (lists of `name` and `sql`)."""
    @property
    def schema(self) -> str:
        """The table's schema after the write, against which it is bound."""
    @property
    def target(self) -> str:
        """JSON of the table's `protocol` and `metadata` after the write.

        And `identities` that the data gives no values of, and the `version` that is written to, null where none is.
        """
    def run(self, bound: str) -> tuple[Snapshot | None, str]:
        """Write and commit: the demands with a `tree` at each. Gives the new version, and a report as JSON."""
    def settle(self, bound: str) -> bool:
        """Settle what is replaced, for another engine that writes; whether it has to write changes, too."""
    def run_folder(self, bound: str, folder: str, changes: str | None = None) -> tuple[Snapshot | None, str]:
        """As `run` for files that another engine wrote into folders of the table; on an error they are deleted."""
    def run_written(self, bound: str, answers: list[str], changes: str | None = None) -> tuple[Snapshot | None, str]:
        """The same for files that `write_files` wrote elsewhere, by its answers (with the `steps` of identities)."""
    def abandon(self, folders: list[str]) -> None:
        """Delete such files, instead of a commit."""

@final
class TableMerge:
    """A merge on its way: settled, then its source read, then joined and run."""

    def __new__(cls, snapshot: Snapshot, source: ArrowStreamExportable) -> TableMerge:
        """Take the source, of which nothing is read yet."""
    @property
    def source_schema(self) -> str:
        """The source's schema, as a table would have it."""
    def settle(self, evolving: list[list[str]], lacking: list[str], options: str) -> tuple[str, str]:
        """Settle what the table will be: its schema, and what is to be bound against it, as JSON.

        `evolving` are columns of the source that may add to the schema, `lacking` columns of the table that new rows
        may lack; options are those of `MergeOptions` in `src/table/merge.rs`.
        """
    def read(self, plan: str) -> None:
        """Read the source for a `MergePlan`."""
    def source_keys(self) -> ArrowStream:
        """The keys of the source: `key` (int64 or binary) and `source_row` (int64)."""
    def target_keys(self) -> ArrowStream:
        """The keys of rows of the table that may match: `key`, `file` (int32) and `row` (int64)."""
    def outlook(self) -> tuple[bool, int, int]:
        """Whether keys are to be joined, how many files are looked at, and bytes of memory that the join may take.

        Of the version that it is run on now.
        """
    def run(self, pairs: ArrowStreamExportable | None = None) -> tuple[Snapshot | None, str] | None:
        """Write and commit. `pairs` has `file`, `row` and `source_row` of each pair of equal keys.

        None where another writer changed rows that it read: it is to be run again, with the keys joined anew.
        """
    def job(self, plan: str, facts: str, keys: ArrowStreamExportable) -> str:
        """Go on as a job of another engine, which reads the source: JSON of `MergeOutlook` in `src/table/merge_job.rs`.

        `facts` is JSON of `SourceFacts`, `keys` has a column for each equality of the plan.
        """
    def find(self, files: str, read: list[str], marks: ArrowStreamExportable) -> list[str]:
        """Take the places of rows: `file`, `word`, `bits`, `kind`. Paths of files that lose all their rows.

        `files` is JSON of paths by number, `read` are paths of files that had rows which match.
        """
    def run_folders(self, rows: str | None = None, changes: str | None = None) -> tuple[Snapshot | None, str]:
        """Commit what lies in these folders of the table."""

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
    """Make a table without rows; `bound` are its demands, options those of `CreateOptions` in `src/table`."""

def demands_of(snapshot: Snapshot) -> str:
    """What the table demands of its rows, as JSON; defaults are left out."""

def delete(snapshot: Snapshot, options: str, predicate: str | None = None) -> tuple[Snapshot | None, str]:
    """Delete rows; `options` is JSON of `ChangeOptions` in `src/table/change.rs`, `predicate` of a bound demand."""

def update(
    snapshot: Snapshot, options: str, assignments: str, bound: str, predicate: str | None = None
) -> tuple[Snapshot | None, str]:
    """Give columns other values; as `delete`, `assignments` is a list of `ValuePlan`s, `bound` the table's demands."""

@final
class ChangeJob:
    """A DELETE or an UPDATE whose rows another engine finds and writes; see `src/table/job.rs`."""

    def __new__(cls, snapshot: Snapshot, verb: str, commit_options: str, predicate: str | None = None) -> ChangeJob: ...
    def outlook(self) -> str:
        """JSON of `JobOutlook`: what the engine has to know."""

    def find(self, files: str, marks: ArrowStreamExportable | None = None) -> str:
        """Take the places of rows: `file`, `word`, `bits`; `files` is JSON of paths by number. JSON of `JobFound`."""

    def run(self, rows: str | None = None, changes: str | None = None) -> tuple[Snapshot | None, str]:
        """Commit what lies in these folders of the table."""

@final
class OptimizeJob:
    """An OPTIMIZE whose rows another engine copies; see `src/table/optimize_job.rs`."""

    def __new__(cls, snapshot: Snapshot, options: str, predicate: str | None = None) -> OptimizeJob: ...
    def outlook(self) -> str:
        """JSON of `OptimizeOutlook`: what the engine has to know."""

    def curve(self, sample: ArrowStreamExportable) -> ArrowStream:
        """How rows are placed along the curve, a row a bin, for some rows of `bin` and the curve's columns."""

    def run(self, folder: str | None = None) -> tuple[Snapshot | None, str]:
        """Commit what lies in this folder of the table."""

def abandon_folders(snapshot: Snapshot, folders: list[str]) -> None:
    """Delete what another engine left in folders of the table that no version names."""

@final
class Counter:
    """How far the calls are that a thread makes within its `with` block, to be looked at from another thread."""

    def __new__(cls) -> Counter: ...
    def __enter__(self) -> None: ...
    def __exit__(self, _kind: object, _error: object, _trace: object, /) -> None: ...
    def expect(self, units: int) -> None:
        """Announce more units."""
    def progress(self) -> tuple[int, int]:
        """Done, and all."""

def optimize(snapshot: Snapshot, options: str, predicate: str | None = None) -> tuple[Snapshot | None, str]:
    """Lay files out anew; `options` is JSON of `OptimizeOptions` in `src/table/optimize.rs`. Gives counts and sizes."""

def check_retention(properties: dict[str, str]) -> None:
    """Refuse properties, set by a statement of SQL, that keep commits for a shorter time than removed files."""

def alter(snapshot: Snapshot, change: str, bound: str, commit_options: str) -> tuple[Snapshot | None, str]:
    """Change what a table is; `change` is one of `Change` in `src/table/alter.rs`, `bound` its demands with trees."""

def drop_feature(
    snapshot: Snapshot, name: str, truncate_history: bool, commit_options: str
) -> tuple[Snapshot | None, str]:
    """Make a table do without a feature, in as many commits as that takes."""

def demands(schema: str, configuration: str) -> str:
    """What rows of a new table with this schema and these properties must satisfy, as JSON."""

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
    """Try whether a store is safe to commit to: JSON of `url`, `safe` and `findings`; options are `CheckOptions`'s."""

def expand_address(address: str) -> str:
    """An address with `~` expanded where it is a local path."""

def is_url(address: str) -> bool:
    """Whether an address is meant as a URL."""

def option_warnings(options: dict[str, str]) -> list[str]:
    """Warnings about storage options: unknown names, and options without effect."""

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
    """Write batches as data files of the table at `uri` and return what came of it; the log is not touched.

    `schema` is the table's `schemaString`. `options` is a JSON object, see `src/py/write.rs`. The
    answer is one too: `files` and `changes` (path, partitionValues, size, modificationTime, numRecords, stats),
    `rows` and `identities` (column to last value given out). On an error no file is left.
    """
