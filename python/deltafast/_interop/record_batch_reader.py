"""The record batch reader that scans return.

It has the methods of a pyarrow `RecordBatchReader` and exports the Arrow C stream, so any Arrow
consumer (pyarrow, Polars, DuckDB, pandas, nanoarrow) accepts it. Its own methods raise errors with
their type and attributes, and Ctrl-C works between and within batches; a library that pulls the C
stream gets the same errors as strings, since that interface has only messages.

Batches and tables are pyarrow's; where pyarrow is not installed, they are the core's `ArrowBatch` and
`ArrowTable`, which every Arrow consumer accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from deltafast._libraries import is_installed, names_missing
from deltafast.progress import Progress, watch

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import pandas as pd
    import pyarrow as pa

    from deltafast._core import ArrowStream

__all__ = ["RecordBatchReader", "stream_of"]


class _Interruptible:
    """The stream for pyarrow, which releases the GIL while it pulls."""

    def __init__(self, stream: ArrowStream) -> None:
        # The core begins here, so that it reads while pyarrow is imported.
        self._stream = stream.interruptible()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream


class RecordBatchReader:
    """A stream of record batches, which can be read once.

    Threads may share it: each batch goes to exactly one of them, and all of them get the error that ends it.

    Examples:
        >>> from deltafast import DeltaTable, write_deltalake
        >>> write_deltalake("cities", {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Lima"]})
        >>> reader = DeltaTable("cities").scan(columns=["id"])
        >>> for batch in reader:
        ...     print(batch.num_rows)
        3
    """

    def __init__(self, stream: ArrowStream, progress: Progress = False) -> None:
        self._stream = stream
        self._watch = watch(self, progress)
        self._schema: pa.Schema | None = None
        self._reader: pa.RecordBatchReader | None = None
        self._closed = False

    @property
    @names_missing
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        if self._schema is None:
            import pyarrow as pa

            self._schema = pa.schema(cast("Any", self._stream))
        return self._schema

    @property
    def closed(self) -> bool:
        """Whether the reader was closed or exported."""
        return self._closed

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        return self._pull("read_next_batch")

    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next batch.

        Raises:
            StopIteration: There are no more.
        """
        return next(self)

    def read_all(self) -> pa.Table:
        """Return the rest of the stream as a pyarrow table; as an `ArrowTable` where pyarrow is not installed."""
        table = self._pull("read_all")
        self._finish()
        return table

    @names_missing
    def read_pandas(self, **options: Any) -> pd.DataFrame:
        """Return the rest of the stream as a pandas data frame; options as for `pyarrow.Table.to_pandas`."""
        import pyarrow as pa

        return cast("Any", pa.table(self.read_all())).to_pandas(**options)

    @names_missing
    def to_pyarrow(self) -> pa.RecordBatchReader:
        """Export the rest of the stream as a pyarrow reader."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self)

    def progress(self) -> tuple[int, int]:
        """Return the number of files read, and their total."""
        return self._stream.progress()

    def check(self) -> None:
        """Raise the typed error with which the stream ended, for use after another library read it."""
        self._stream.check()

    def close(self) -> None:
        """Stop reading and free the resources of the stream."""
        self._closed = True
        self._finish()
        self._reader = None
        self._stream.close()

    def _pull(self, method: Literal["read_next_batch", "read_all"]) -> Any:
        """Read with pyarrow, which imports the schema of the stream only once; errors keep type and attributes."""
        try:
            reader = self._reader
            if reader is None:
                if not is_installed("pyarrow"):
                    return next(self._stream) if method == "read_next_batch" else self._stream.read_all()
                stream = _Interruptible(self._stream)
                import pyarrow as pa

                # Threads that begin at once have a reader each; all of them read the same batches.
                reader = self._reader = pa.RecordBatchReader.from_stream(stream)
            return getattr(reader, method)()
        except StopIteration:
            self._finish()
            raise
        except BaseException:
            self._finish()
            self._stream.check()
            raise

    def _finish(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface; the reader is empty afterwards."""
        self._closed = True
        return self._stream.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow PyCapsule interface."""
        return self._stream.__arrow_c_schema__()

    def __repr__(self) -> str:
        done, total = self._stream.progress()
        return f"<deltafast.RecordBatchReader, {done} of {total} files read>"


def stream_of(reader: RecordBatchReader) -> ArrowStream:
    """Return the core's stream of a reader."""
    return reader._stream  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
