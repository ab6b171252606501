"""The rows of a data frame as an Arrow stream for the core."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from deltafast.spark._session.session import quiet

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import pyarrow as pa

__all__ = ["streamed"]


@contextmanager
def streamed(frame: Any) -> Generator[Any]:
    """Yield the rows of a data frame, each partition's as soon as its task is complete.

    On Connect, and if PySpark does not provide batches incrementally, all rows are collected first.

    Yields:
        An object with an Arrow C stream, to be read once.

    Raises:
        PySparkException: Spark failed; Spark's own error, not the one of the consumer of the stream.
    """
    with quiet():
        source = _Batches(frame) if _can_stream(frame) else frame.toArrow()
    try:
        yield source.reader() if isinstance(source, _Batches) else source
    except Exception as error:
        if isinstance(source, _Batches) and source.failure is not None:
            raise source.failure from error
        raise


def _can_stream(frame: Any) -> bool:
    """Return whether this is a classic frame of a PySpark that provides batches incrementally."""
    if not hasattr(frame, "_jdf"):
        return False
    import pyspark

    # Until 4.1 the socket is read by another function.
    return tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 2)


class _Batches:
    """Batches from the socket to which Java writes them, in the order in which tasks end."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.failure: Exception | None = None

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches as a stream."""
        import pyarrow as pa
        from pyspark.sql.pandas import types

        schema = cast("Any", types).to_arrow_schema(
            self._frame.schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC"
        )
        return pa.RecordBatchReader.from_batches(schema, self._cast(schema))

    def _cast(self, schema: pa.Schema) -> Iterator[Any]:
        import pyarrow as pa

        try:
            for batch in self._batches():
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
        except Exception as error:
            self.failure = error
            raise

    def _batches(self) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark.errors.exceptions import captured
        from pyspark.sql.pandas import serializers
        from pyspark.util import _load_from_socket  # pyright: ignore[reportPrivateUsage]

        port, secret, server = self._frame._jdf.collectAsArrowToPython()

        def finish() -> None:
            with cast("Any", captured).unwrap_spark_exception():
                server.getResult()

        try:
            with cast("Any", _load_from_socket)((port, secret), serializers.ArrowCollectSerializer()) as stream:
                # The last item is the order of the batches.
                yield from (item for item in stream if isinstance(item, pa.RecordBatch))
        except Exception:
            # If the socket breaks, Java knows the reason. A consumer that stops reading is not such a case.
            finish()
            raise
        finish()
