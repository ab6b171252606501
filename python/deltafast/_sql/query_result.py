"""The result of a statement: a stream of Arrow batches that a shell and a notebook show as a table."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deltafast._display import table_html
from deltafast._interop.duckdb_query import connect
from deltafast.exceptions import InvalidArgumentError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    import pandas as pd

__all__ = ["QueryResult"]

#: Rows that are shown.
_ROWS = 20


class QueryResult:
    """The rows of a statement, to be read once; with the methods of a `pyarrow.RecordBatchReader`.

    Showing a result reads its first rows, which are kept: they come again when the result is read.

    Examples:
        >>> from deltafast import sql
        >>> result = sql("SELECT 1 AS a, 'x' AS b")
        >>> result.read_all().to_pylist()
        [{'a': 1, 'b': 'x'}]
    """

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader
        self._shown: list[pa.RecordBatch] = []
        self._process = os.getpid()

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._reader.schema

    def to_pyarrow(self) -> pa.RecordBatchReader:
        """Return the rest of the rows as a pyarrow reader."""
        self._check_process()
        if self._shown:
            batches = chain(self._shown, _rest(self._reader))
            self._reader, self._shown = pa.RecordBatchReader.from_batches(self._reader.schema, batches), []
        return self._reader

    def read_all(self) -> pa.Table:
        """Return the rest of the rows as a pyarrow table."""
        return self.to_pyarrow().read_all()

    def read_pandas(self, **options: Any) -> pd.DataFrame:
        """Return the rest of the rows as a pandas data frame; options as for `pyarrow.Table.to_pandas`."""
        reader: Any = self.to_pyarrow()
        return reader.read_pandas(**options)

    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next batch.

        Raises:
            StopIteration: There are no more.
        """
        return self.to_pyarrow().read_next_batch()

    def cast(self, target_schema: pa.Schema) -> pa.RecordBatchReader:
        """Return the rest of the rows in other types."""
        return self.to_pyarrow().cast(target_schema)

    def close(self) -> None:
        """Stop reading and free the resources of the query."""
        self._shown = []
        self._reader.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.to_pyarrow())

    def __next__(self) -> pa.RecordBatch:
        return self.read_next_batch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface; the result is empty afterwards."""
        reader: Any = self.to_pyarrow()
        return reader.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The Arrow PyCapsule interface."""
        return self.schema.__arrow_c_schema__()

    def __repr__(self) -> str:
        rows, more = self._first_rows()
        if not rows.column_names:
            return "<deltafast.QueryResult without columns>"
        with connect(external_access=False) as connection:
            text = printable(str(connection.from_arrow(rows)), keep="\n")
        return f"{text.rstrip()}\n... and more rows" if more else text.rstrip()

    def _repr_html_(self) -> str:
        rows, more = self._first_rows()
        columns = [column.to_pylist() for column in rows.columns]
        html = table_html("", rows.column_names, list(zip(*columns, strict=True)))
        return f"{html}<p>... and more rows</p>" if more else html

    def _check_process(self) -> None:
        """Refuse to read in a forked child, which does not have the threads of the query.

        Raises:
            InvalidArgumentError: The result is of a parent of this process.
        """
        if self._process != os.getpid():
            message = "the result was opened before the process was forked; run the statement in the child"
            raise InvalidArgumentError(message)

    def _first_rows(self) -> tuple[pa.Table, bool]:
        """Return the first rows that are left, and whether there are more."""
        self._check_process()
        count = sum(batch.num_rows for batch in self._shown)
        while count <= _ROWS:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                break
            self._shown.append(batch)
            count += batch.num_rows
        return pa.Table.from_batches(self._shown, self._reader.schema).slice(0, _ROWS), count > _ROWS


def _rest(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    yield from reader
