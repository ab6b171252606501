"""The Spark session: its kind, its settings, and where it keeps its credentials.

Nothing here imports PySpark before a session is given.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from contextlib import contextmanager
from datetime import datetime
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from deltafast._expr.context import ExpressionContext
from deltafast._expr.literals import time_zone
from deltafast._util.dialect import Dialect
from deltafast.exceptions import ErrorCode, InvalidArgumentError
from deltafast.spark._session import gateway
from deltafast.spark._session.java_calls import marked, strings_of

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import pyarrow as pa

__all__ = ["Session", "frame_alias", "quiet", "spill", "spilled", "timestamp_in_zone", "version_number", "whole_number"]

_OLDEST = (4, 0)
_DYNAMIC_PARTITIONS = "spark.databricks.delta.dynamicPartitionOverwrite.enabled"


class Session:
    """A checked session.

    Args:
        spark: A `SparkSession`, classic or Connect.
        hadoop: Settings of Hadoop's file systems that override the session's.

    Raises:
        InvalidArgumentError: It is not a session, it was stopped, or its PySpark is too old.
    """

    def __init__(self, spark: Any, hadoop: Mapping[str, str] | None = None) -> None:
        kind = cast("type[Any]", type(spark))
        if kind.__name__ != "SparkSession" or not kind.__module__.startswith("pyspark.sql"):
            message = f"spark must be a SparkSession of PySpark 4, not a {kind.__name__}"
            raise InvalidArgumentError(message)
        import pyspark

        found = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
        if found < _OLDEST:
            message = f"deltafast needs PySpark 4.0 or later, not {pyspark.__version__}: pip install 'pyspark>=4.0'"
            raise InvalidArgumentError(message)
        self.spark = spark
        self._hadoop = dict(hadoop or {})
        #: Whether it is a client of Spark Connect, which has no Java objects.
        self.is_connect = kind.__module__.startswith("pyspark.sql.connect")
        if not self.is_connect and (spark._sc._jsc is None or spark._sc._jsc.sc().isStopped()):
            message = "the Spark session was stopped; start another one"
            raise InvalidArgumentError(message)

    @property
    def jvm(self) -> Any:
        """The driver's Java."""
        return self.spark._jvm

    @property
    def zone(self) -> str:
        """The session's time zone."""
        return str(self.conf("spark.sql.session.timeZone", "UTC"))

    @property
    def is_ansi(self) -> bool:
        """Whether expressions follow ANSI SQL."""
        return str(self.conf("spark.sql.ansi.enabled", "true")).lower() == "true"

    @property
    def expression_context(self) -> ExpressionContext:
        """How the session's expressions are read and evaluated."""
        return ExpressionContext(Dialect.SPARK, self.zone, self.is_ansi)

    @property
    def pads_chars(self) -> bool:
        """Whether strings of CHAR(n) are padded when they are read."""
        return str(self.conf("spark.sql.readSideCharPadding", "true")).lower() == "true"

    @property
    def merges_schemas(self) -> bool:
        """Whether writes may add columns to a table without a clause or option for it in the statement."""
        return str(self.conf("spark.databricks.delta.schema.autoMerge.enabled", "false")).lower() == "true"

    @property
    def replaces_partitions(self) -> bool:
        """Whether an overwrite that does not choose its rows replaces only the partitions of the new rows.

        Raises:
            InvalidArgumentError: The session also disallows that.
        """
        if str(self.conf("spark.sql.sources.partitionOverwriteMode", "static")).lower() != "dynamic":
            return False
        if str(self.conf(_DYNAMIC_PARTITIONS, "true")).lower() == "false":
            message = (
                f"the session's partitionOverwriteMode is dynamic, which {_DYNAMIC_PARTITIONS}=false disables: "
                "set one of them otherwise"
            )
            raise InvalidArgumentError(message, code=ErrorCode.DYNAMIC_PARTITIONS_DISABLED)
        return True

    def conf(self, key: str, default: str | None = None) -> str | None:
        """Return a setting of the session."""
        return self.spark.conf.get(key, default)

    @contextmanager
    def set(self, settings: dict[str, str]) -> Generator[None]:
        """Set some of the session's settings temporarily."""
        before = {key: self.conf(key) for key in settings}
        try:
            for key, value in settings.items():
                self.spark.conf.set(key, value)
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, value)

    def hadoop(self, prefix: str) -> dict[str, str]:
        """Return the settings of Hadoop's file systems that begin with `prefix`."""
        found: dict[str, str] = {}
        if not self.is_connect:
            there = strings_of(self, self.spark._jsc.hadoopConfiguration().getPropsWithPrefix(prefix))
            found = {prefix + key: value for key, value in there.items()}
        return found | {prefix + key: value for key, value in self.settings(f"spark.hadoop.{prefix}").items()}

    @property
    def via_hadoop(self) -> bool:
        """Whether the core is to access all stores through Hadoop; the storage option is `via_hadoop`."""
        return str(self.conf("spark.deltafast.viaHadoop", "false")).lower() == "true"

    def home(self) -> str | None:
        """The folder to which paths without a scheme are relative; None for a local one."""
        default = self.conf("spark.hadoop.fs.defaultFS")
        if default is None and not self.is_connect:
            default = self.spark._jsc.hadoopConfiguration().get("fs.defaultFS")
        if not default or str(default).startswith("file:"):
            return None
        if self.is_connect:
            return str(default).rstrip("/") + "/"
        return gateway.home(self)

    def gateway(self, path: str) -> dict[str, str]:
        """Return the options with which the core accesses a path through Hadoop.

        Raises:
            InvalidArgumentError: It cannot.
        """
        if self.is_connect:
            message = (
                f"{path} is accessed through the driver's Java, which Spark Connect does not expose: use a classic "
                "session, or give storage_options for the core's own store"
            )
            raise InvalidArgumentError(message)
        return gateway.options(self)

    def settings(self, prefix: str) -> dict[str, str]:
        """Return the session's settings that begin with `prefix`, without it."""
        if self.is_connect:
            everything: Any = self.spark.conf.getAll
            everything = everything() if callable(everything) else everything
        else:
            everything = strings_of(self, self.spark._jsparkSession.conf().getAllAsJava())
        return {key[len(prefix) :]: value for key, value in everything.items() if key.startswith(prefix)}

    def run(self, statement: str, args: Any = None, **frames: Any) -> Any:
        """Run a statement of Spark in a session with or without `enable`.

        Args:
            statement: The statement.
            args: Its parameters.
            frames: The frames that it names in braces.
        """
        sql: Any = unwrap(cast("Any", type(self.spark)).sql)
        return sql(self.spark, marked(self.spark, statement), args, **frames)

    def frame(self, table: pa.Table, schema: Any = None) -> Any:
        """Return a small table as a data frame; `schema` keeps timestamps without a zone from becoming instants."""
        with quiet():
            return self.spark.createDataFrame(table, schema=schema)


def timestamp_in_zone(text: str, zone: str) -> str:
    """Return a date and time, in the session's time zone if it has none.

    Raises:
        InvalidArgumentError: The string is not a date and time.
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"not a date and time: {text!r:.60}"
        raise InvalidArgumentError(
            message, code=ErrorCode.INVALID_TIMESTAMP, parameters={"timestamp": repr(text)}
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=time_zone(zone))).isoformat()


def whole_number(option: str, value: object, what: str = "a whole number") -> int:
    """Return the value of an option that is a number of 64 bits, as delta-spark reads it.

    Args:
        option: Name of the option.
        value: Its value, as a number or as text.
        what: The meaning of the number, for the message.

    Raises:
        InvalidArgumentError: The value is not such a number.
    """
    number = _read_number(value)
    if number is None:
        raise InvalidArgumentError(_not_a_number(option, value, what))
    return number


def version_number(option: str, value: object) -> int:
    """Return the version that an option names; see `whole_number`."""
    number = _read_number(value)
    if number is None:
        message = _not_a_number(option, value, "the number of a version")
        raise InvalidArgumentError(
            message, code=ErrorCode.INVALID_VERSION, parameters={"option": option, "version": value}
        )
    return number


def _read_number(value: object) -> int | None:
    """Return a number of 64 bits; None if the value is not one."""
    text = str(value).strip()
    if not re.fullmatch(r"[+-]?\d{1,19}", text) or not -(1 << 63) <= int(text) < 1 << 63:
        return None
    return int(text)


def _not_a_number(option: str, value: object, what: str) -> str:
    return f"{option} must be {what}, not {str(value)!r:.50}"


def frame_alias(frame: Any) -> str | None:
    """Return the alias by which SQL refers to the columns of a data frame, or None if they have different ones."""
    if not hasattr(frame, "_jdf"):
        return getattr(frame._plan, "_alias", None)
    output = frame._jdf.queryExecution().analyzed().output()
    qualifiers = [output.apply(n).qualifier() for n in range(output.size())]
    aliases = {str(parts.last()) if parts.nonEmpty() else None for parts in qualifiers}
    return aliases.pop() if len(aliases) == 1 else None


@contextmanager
def quiet() -> Generator[None]:
    """Suppress PySpark's warning about the version of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def spill(table: pa.Table) -> Generator[str]:
    """Write a table to a file as an Arrow stream, which Java reads without a call for each row.

    Yields:
        The file's path. The driver's Java runs on the machine of its Python.
    """
    name = spilled(table)
    try:
        yield name
    finally:
        Path(name).unlink(missing_ok=True)


def spilled(table: pa.Table) -> str:
    """Write a table as `spill` does, for a reader that deletes the file itself."""
    import pyarrow as pa

    handle, name = tempfile.mkstemp(prefix="deltafast-", suffix=".arrows")
    try:
        with os.fdopen(handle, "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return name
