"""Results of commands as data frames."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from deltafast import _core
from deltafast._sql.run_describe import commits
from deltafast.spark._session.session import quiet
from deltafast.spark._session.storage import core_access

if TYPE_CHECKING:
    import pyarrow as pa

    from deltafast.spark._session.session import Session
    from deltafast.spark._session.storage import Place
    from deltafast.table import DeltaTable

__all__ = ["answered", "history_of", "nothing", "plan_of"]

_COMMIT: Final = re.compile(r"(\d{20})\.json")


def answered(session: Session, rows: pa.RecordBatchReader) -> Any:
    """Return a result of `deltafast._sql` as a data frame, with locations in Hadoop's form."""
    found: Any = rows.read_all()
    if not found.column_names:
        return nothing(session)
    for name in ("location", "path"):
        if name in found.column_names:
            import pyarrow as pa

            column = [_as_hadoop(text) for text in found.column(name).to_pylist()]
            found = found.set_column(found.column_names.index(name), name, pa.array(column, pa.string()))
    if not found.num_rows:
        # Without rows, Spark Connect finds no types in Arrow's.
        with quiet():
            from pyspark.sql.pandas.types import from_arrow_schema

            return session.spark.createDataFrame([], from_arrow_schema(found.schema))
    return session.frame(found)


def history_of(session: Session, place: Place, table: DeltaTable, limit: int | None) -> Any:
    """Return the commits of a table as a data frame, each with the timestamp by which time travel finds it.

    As in delta-spark, that is the in-commit timestamp or else the modification time of the commit file, not the clock
    of the writer. No commit is older than the one before.
    """
    history = table.history(limit)
    access = core_access(place)
    log, _ = _core.Files.open(access.uri, access.options).list("_delta_log")
    names = ((_COMMIT.fullmatch(path.rpartition("/")[2]), time) for path, _, time in log)
    times = {int(match[1]): time for match, time in names if match}
    newest: int | None = None
    for entry in reversed(history):
        time = int(entry.get("inCommitTimestamp") or times.get(entry["version"]) or entry["timestamp"])
        newest = time if newest is None or time > newest else newest + 1
        entry["timestamp"] = newest
    return answered(session, commits(history))


def nothing(session: Session) -> Any:
    """Return a frame without rows and columns."""
    from pyspark.sql.types import StructType

    return session.spark.createDataFrame([], StructType([]))


def plan_of(frame: Any, mode: str) -> str:
    """Return the output of EXPLAIN for a frame in a mode."""
    if hasattr(frame, "_explain_string"):
        return str(frame._explain_string(mode=mode))
    return str(frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))


def _as_hadoop(text: str | None) -> str | None:
    if text is None or not ("://" in text or text.startswith("/")):
        return text
    return re.sub("^(?:file://)?/", "file:/", text).rstrip("/")
