"""The first way of reading: a list of files compiled into the driver, over which Spark's own Parquet reader runs.

`index.java` is compiled by Spark's own compiler, Janino, so nothing is installed. Files are neither listed
nor looked at; their partition values come from the log. When Spark has pushed the user's filters down it
asks the index, which asks the core. The classes are internal to Spark; where they are not as expected, the
second way reads the same.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltafast.exceptions import DeltaError
from deltafast.spark.columns import array_of, field_of, spark_schema
from deltafast.spark.session import spill, spilled
from deltafast.spark.snapshot import VECTOR

if TYPE_CHECKING:
    from deltafast.spark.session import Session
    from deltafast.spark.snapshot import Listing, Version

__all__ = ["IndexUnavailableError", "scan"]

#: Seconds for which files are where the log said: no vacuum takes what was just there, and asking costs a listing.
_YOUNG = 10.0

#: The compiled class, by the Java it was compiled in.
_COMPILED: dict[int, Any] = {}


class IndexUnavailableError(DeltaError):
    """This Spark cannot take the index."""


class _Prune:
    """What Spark's planner calls where it knows all files."""

    def __init__(self, version: Version, paths: Any) -> None:
        self._version, self._paths, self._since = version, paths, time.monotonic()

    def apply(self, filters: str) -> str:
        """Say which files matter, or by `?` which may be gone; whatever goes wrong, all of them are there and do."""
        try:
            if filters == "?":
                is_young = time.monotonic() - self._since < _YOUNG
                return "" if is_young else self._version.ended(self._paths)
            return self._version.verdict(self._paths, filters)
        except Exception:  # noqa: BLE001 - an error in Java's thread would end the user's query for nothing
            return ""

    class Java:
        """The interface, as py4j wants to be told."""

        implements = ["java.util.function.Function"]  # noqa: RUF012


class _List:
    """What Spark's planner calls where it knows no file."""

    def __init__(self, version: Version, listing: Listing) -> None:
        self._version, self._listing, self._since = version, listing, time.monotonic()

    def apply(self, filters: str) -> str:
        """Spill the files that filters leave: a path; or `!` and what is wrong. `?` is to list them anew: any text."""
        if filters == "?":
            is_young = time.monotonic() - self._since < _YOUNG
            self._version.is_past |= not is_young
            return "" if is_young else "anew"
        try:
            return spilled(self._version.chosen(self._listing, filters).select(_names(self._listing)))
        except Exception as error:  # noqa: BLE001 - Java raises it in the thread of the query
            return f"!{error}"

    class Java:
        """The interface, as py4j wants to be told."""

        implements = ["java.util.function.Function"]  # noqa: RUF012


def _names(listing: Listing) -> list[str]:
    """The columns of the block of files, in the order in which Java reads them."""
    return ["path", "size", "time", "ended", *(field["name"] for field in listing.constants)]


def scan(version: Version, listing: Listing, data: list[dict[str, Any]]) -> Any:
    """A frame of physical columns and constants, deleted rows left out.

    Args:
        version: The version.
        listing: Its files.
        data: The columns of its files, in Delta's JSON.

    Raises:
        IndexUnavailableError: This Spark has not the classes that are needed.
    """
    from pyspark.sql import DataFrame

    session = version.session
    spark, jvm = session.spark, session.jvm
    java = spark._jsparkSession

    def schema(fields: list[dict[str, Any]]) -> Any:
        return java.parseDataType(spark_schema(version.columns.declared(fields)).json())

    try:
        kind = _compiled(session)
        constants = schema(listing.constants)
        with contextlib.ExitStack() as stack:
            arguments = spark._sc._gateway.new_array(jvm.java.lang.Object, 6)
            arguments[0] = version.place.hadoop
            arguments[1] = str(version.number)
            arguments[2] = constants
            files = listing.files
            arguments[3] = "" if files is None else stack.enter_context(spill(files.select(_names(listing))))
            arguments[4] = str(listing.size)
            arguments[5] = java.sessionState().newHadoopConf()
            index = kind.getConstructors()[0].newInstance(arguments)
        if files is None or len(files):
            from pyspark import java_gateway

            cast("Any", java_gateway).ensure_callback_server_started(spark._sc._gateway)
            paths = None if files is None else files.column("path").combine_chunks()
            index.setCore(_List(version, listing) if files is None else _Prune(version, paths))
        formats = jvm.org.apache.spark.sql.execution.datasources
        relation = formats.HadoopFsRelation(
            index,
            constants,
            schema(data),
            jvm.scala.Option.empty(),
            formats.parquet.ParquetFileFormat(),
            jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap()),
            java,
        )
        frame = DataFrame(java.baseRelationToDataFrame(relation), spark)
    except IndexUnavailableError:
        raise
    except Exception as error:
        message = f"this Spark does not take deltafast's list of files ({_short(error)})"
        raise IndexUnavailableError(message) from error
    if listing.vectors is None:
        return frame
    return without_deleted(frame, _small(session, kind, listing.vectors))


def without_deleted(frame: Any, vectors: Any) -> Any:
    """The rows that the bitmaps of `vectors` (`vector`, `words`) do not have, by their place in the file."""
    from pyspark.sql import functions

    joined = frame.join(functions.broadcast(vectors), functions.col(VECTOR) == functions.col("vector"), "left")
    return joined.where(kept("_metadata.row_index", "words"))


def kept(row: str, words: str) -> Any:
    """Whether a row's bit is not set; beyond the last word, or without words, nothing is deleted."""
    from pyspark.sql import functions

    # `get` gives null where an index would be an error under ANSI.
    word = f"get({words}, cast(shiftright({row}, 6) as int))"
    return functions.expr(f"coalesce(getbit({word}, cast({row} & 63 as int)), 0) = 0")


def _compiled(session: Session) -> Any:
    key = id(session.spark._sc._gateway)
    if key not in _COMPILED:
        jvm = session.jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
        try:
            compiler.cook(Path(__file__).with_name("index.java").read_text(encoding="utf-8"))
        except Exception as error:
            message = f"this Spark cannot compile deltafast's list of files ({_short(error)})"
            raise IndexUnavailableError(message) from error
        _COMPILED[key] = compiler.getClassLoader().loadClass("deltafast.DeltafastFileIndex")
    return _COMPILED[key]


def _small(session: Session, kind: Any, table: Any) -> Any:
    """A table as a frame whose rows are in the plan, so that no job is needed to look at it."""
    from pyspark.sql import DataFrame

    fields = [field_of("vector", "integer"), field_of("words", array_of("long"))]
    jvm, java = session.jvm, session.spark._jsparkSession
    frame = next(method for method in kind.getMethods() if method.getName() == "frame")
    with spill(table) as file:
        arguments = session.spark._sc._gateway.new_array(jvm.java.lang.Object, 3)
        arguments[0], arguments[2] = java, file
        arguments[1] = java.parseDataType(spark_schema(fields).json())
        return DataFrame(frame.invoke(None, arguments), session.spark)


def _short(error: Exception) -> str:
    """The first line of an error of Java."""
    cause: Any = getattr(error, "java_exception", None)
    text = str(cause.toString()) if cause is not None else str(error)
    return text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__
