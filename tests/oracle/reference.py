"""delta-spark, the reference implementation, in a session of this machine: it writes tables and is asked about them.

Only the tests' own questions are here; each returns plain values or Arrow, so that no test touches the JVM.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from conformance import compare

if TYPE_CHECKING:
    import datetime as dt
    import pathlib
    from collections.abc import Iterator, Sequence

#: What is resolved from Maven Central by Spark itself; the Python package of the same name is not needed.
PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

_CONFIGURATION = {
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Jobs are short: compiling by Spark and many partitions cost more than they give; so does verifying classes that
    # everybody uses. Java compiles for speed here, since this process lives long: its jobs take two thirds of the time.
    "spark.driver.extraJavaOptions": "-Xmn800m -Duser.timezone=UTC -XX:TieredStopAtLevel=4 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    # Retention is for tables that others read.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


@contextlib.contextmanager
def running() -> Iterator[Reference]:
    """Start Spark with delta-spark, once for a test run; what is missing is an error that says so."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        message = "PySpark is missing: `make test` installs it (pip install --group test --group spark)"
        raise RuntimeError(message) from error
    with tempfile.TemporaryDirectory(prefix="warehouse-") as warehouse:
        builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", warehouse)
        for key, value in _CONFIGURATION.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except Exception as error:
            message = (
                f"Spark did not start; it needs Java 17 (dev/system_package java) and {PACKAGE} from Maven Central"
            )
            raise RuntimeError(message) from error
        try:
            yield Reference(session)
        finally:
            session.stop()


class Reference:
    """A running Spark; tables are named by their folder."""

    def __init__(self, session: Any) -> None:
        self._spark = session
        self._jvm = session._jvm
        self._none = self._jvm.scala.Option.empty()
        self._java = self._jvm.scala.jdk.javaapi.CollectionConverters

    @property
    def spark_version(self) -> str:
        """The version of Spark."""
        return self._spark.version

    # What it is told

    def sql(self, text: str) -> None:
        """Run a statement."""
        self._spark.sql(text).collect()

    def answer(self, text: str) -> pa.Table:
        """Run a statement and give what it answers."""
        return arrow(self._spark.sql(text))

    @contextlib.contextmanager
    def configured(self, settings: dict[str, str]) -> Iterator[None]:
        """Set these session settings during the block."""
        before = {key: self._spark.conf.get(key, None) for key in settings}
        try:
            for key, value in settings.items():
                self._spark.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                self._spark.conf.unset(key) if old is None else self._spark.conf.set(key, old)

    def checkpoint(self, folder: pathlib.Path) -> None:
        """Write a checkpoint of the newest version."""
        self._log(folder).checkpoint()

    # What it is asked

    def _log(self, folder: pathlib.Path) -> Any:
        return self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, str(folder))

    def _load(self, folder: pathlib.Path, **options: Any) -> Any:
        reader = self._spark.read.format("delta")
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader.load(str(folder))

    def forget(self) -> None:
        """Drop what it remembers of tables, so that the next question reads the files."""
        self._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def newest(self, folder: pathlib.Path) -> int:
        """Return the newest version."""
        return self._log(folder).update(False, self._none, self._none).version()

    def facts(self, folder: pathlib.Path, version: int) -> dict[str, Any]:
        """Return a version's facts in the form of the corpus' manifest (see `conformance.corpus`)."""
        return self._version(folder, version)[0]

    def version(self, folder: pathlib.Path, version: int) -> tuple[dict[str, Any], pa.Table]:
        """Return a version's facts and its rows."""
        facts, snapshot, adds = self._version(folder, version)
        frame = self._log(folder).createDataFrame(snapshot, self._java.asScala(adds).toSeq(), False, self._none)
        return facts, self._collect(frame)

    def _version(self, folder: pathlib.Path, version: int) -> tuple[dict[str, Any], Any, list[Any]]:
        snapshot = self._log(folder).getSnapshotAt(version, self._none, self._none, self._none, False)
        # All actions at once: each other way to ask for some makes Spark work out figures that nobody asks for.
        actions = [action.unwrap() for action in snapshot.stateDS().collectAsList()]
        kinds: dict[str, list[dict[str, Any]]] = {}
        adds = []
        for action in actions:
            kind, body = next(iter(json.loads(action.json()).items()))
            kinds.setdefault(kind, []).append(body)
            if kind == "add":
                adds.append(action)
        files = [_file(add) for add in kinds.get("add", ())]
        facts = {
            "protocol": kinds["protocol"][0],
            "metadata": kinds["metaData"][0],
            "num_files": len(files),
            "total_size": sum(file["size"] for file in files),
            "files": files,
            "set_transactions": kinds.get("txn", []),
            "domain_metadata": kinds.get("domainMetadata", []),
        }
        return facts, snapshot, adds

    def _collect(self, frame: Any) -> pa.Table:
        from pyspark.sql import DataFrame

        return arrow(DataFrame(frame, self._spark))

    def matching(self, folder: pathlib.Path, conditions: Sequence[str]) -> pa.Table:
        """Return all rows of the newest version, each with whether it matches, in columns named by number."""
        marks = [f"({condition}) as `{number}`" for number, condition in enumerate(conditions)]
        return arrow(self._load(folder).selectExpr("*", *marks))

    def planned(self, folder: pathlib.Path, where: str) -> int:
        """Return how many files of the newest version it reads for a predicate."""
        return len(self._load(folder).where(where).inputFiles())

    def row_ids(self, folder: pathlib.Path, version: int) -> pa.Table:
        """Return `id` with each row's id and commit version."""
        frame = self._load(folder, versionAsOf=version)
        return arrow(frame.selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version"))

    def changes(self, folder: pathlib.Path, start: int, end: int) -> pa.Table:
        """Return the change data feed, both ends included."""
        return arrow(self._load(folder, readChangeFeed="true", startingVersion=start, endingVersion=end))

    def history(self, folder: pathlib.Path) -> list[dict[str, Any]]:
        """Return what DESCRIBE HISTORY says, newest first; maps as dictionaries."""
        found = arrow(self._spark.sql(f"describe history delta.`{folder}`")).to_pylist()
        maps = ("operationParameters", "operationMetrics")
        return [row | {name: dict(row[name]) for name in maps if row[name] is not None} for row in found]

    def version_at(self, folder: pathlib.Path, timestamp: dt.datetime) -> int:
        """Return the version that was current at a moment."""
        stamp = self._jvm.java.sql.Timestamp(round(timestamp.timestamp() * 1000))
        commit = self._log(folder).history().getActiveCommitAtTime(stamp, self._none, True, True, False)
        return commit.version()


def arrow(frame: Any) -> pa.Table:
    """Collect a data frame. `toArrow` itself would refuse null variants, by a cast to what the data are already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        batches = frame._collect_as_arrow()
        return pa.Table.from_batches(batches) if batches else frame.toArrow()


def _file(add: dict[str, Any]) -> dict[str, Any]:
    """Return an add action in the manifest's form."""
    path = add["path"].replace("file:/", "file:///", 1) if add["path"].startswith("file:/") else add["path"]
    file = {"path": path, "size": add["size"], "partition_values": add["partitionValues"]}
    if vector := add.get("deletionVector"):
        offset = f"@{vector['offset']}" if "offset" in vector else ""
        file["dv_unique_id"] = f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"
        file["dv_cardinality"] = vector["cardinality"]
    return file


def same(found: pa.Table, expected: pa.Table, fields: list[dict[str, Any]]) -> None:
    """Both hold the same rows, in columns of these Delta fields."""
    assert found.column_names == expected.column_names
    got, want = compare.row_strings(found, fields), compare.row_strings(expected, fields)
    assert sorted(got) == sorted(want), compare.difference(got, want)
