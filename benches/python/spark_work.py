"""What Spark does with tables: through deltafast, through delta-spark, and with bare Parquet files.

Each sample is a Spark of its own, the same for all. A phase is done once for Java to know it and three times for the
figures, of which the medians count; CPU seconds and memory are Java's and Python's together.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sparks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clock import Clock, Facts, Job

__all__ = ["WORK"]

_TIMES = 3


def _frame(session: Any, peer: str, folder: str) -> Any:
    """The rows of a folder."""
    if peer == "deltafast":
        import deltafast.spark

        return deltafast.spark.read(session, folder)
    if peer == "delta-spark":
        return session.read.format("delta").load(folder)
    return session.read.parquet(folder)


def _phase(clock: Clock, spark: sparks.Spark, name: str, work: Callable[[], Any], times: int = _TIMES) -> Any:
    """Time a piece of work, and give its last answer."""
    answer = work()
    found: list[dict[str, float]] = []
    for _ in range(times):
        timing, answer = spark.taken(work)
        found.append(timing)
    clock.phases[name] = {key: statistics.median(one[key] for one in found) for key in found[0]}
    return answer


def _read(clock: Clock, job: Job) -> Facts:
    """Queries, from the handle to the answer."""
    peer, folder = job["peer"], str(job["table"])
    with sparks.running() as spark:
        session = spark.session

        def frame() -> Any:
            return _frame(session, peer, folder)

        def whole() -> None:
            # Rows are made and dropped. delta-spark does not write tables with deletion vectors to nowhere.
            if job.get("vectors"):
                frame()._jdf.queryExecution().toRdd().count()
            else:
                frame().write.format("noop").mode("overwrite").save()

        def two() -> None:
            frame().selectExpr("bit_xor(xxhash64(id, price))").collect()

        def some() -> Any:
            return frame().where(job["where"]).selectExpr("count(*)", "sum(id)").collect()[0]

        def groups() -> Any:
            grouped = frame().groupBy("status").agg({"price": "max", "quantity": "sum"})
            return sorted(tuple(row) for row in grouped.collect())

        _phase(clock, spark, "whole", whole)
        _phase(clock, spark, "two", two)
        found = _phase(clock, spark, "filter", some)
        grouped = _phase(clock, spark, "aggregate", groups)
        count = _phase(clock, spark, "count", lambda: frame().count())
    return {"rows": count, "written": found[0], "sum": f"{found[1]} {grouped}"}


def _plan(clock: Clock, job: Job) -> Facts:
    """The plan of a point query on a table of very many files, which are not there."""
    peer, folder = job["peer"], str(job["table"])
    with sparks.running() as spark:

        def planned() -> int:
            frame = _frame(spark.session, peer, folder).where(job["where"])
            nodes = [frame._jdf.queryExecution().executedPlan()]
            while nodes:
                node = nodes.pop()
                if "FileSourceScan" in node.getClass().getSimpleName():
                    return int(node.selectedPartitions().totalNumberOfFiles())
                children = node.children()
                nodes += [children.apply(n) for n in range(children.size())]
            message = "the plan reads no files"
            raise RuntimeError(message)

        # The first plan is the one that counts: nothing of the table is known yet.
        timing, first = spark.taken(planned)
        clock.phases["first"] = timing
        clock.phases["again"], again = spark.taken(planned)
    return {"sum": first, "written": again}


@contextlib.contextmanager
def _empty(job: Job) -> Iterator[str]:
    folder = Path(job["copy"])
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _append(clock: Clock, job: Job) -> Facts:
    """Make a table of the rows of Parquet files."""
    peer, by = job["peer"], job["by"]

    def write(frame: Any, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if peer == "deltafast":
            import deltafast.spark

            deltafast.spark.write(frame, folder, mode="append", partition_by=by or None)
            return
        writer = frame.write.partitionBy(*by)
        if peer == "delta-spark":
            writer.format("delta").mode("append").save(folder)
        else:
            writer.parquet(folder)

    with _empty(job) as folder, sparks.running() as spark:
        rows = spark.session.read.parquet(str(job["table"]))
        write(rows.limit(100_000), folder)
        timing, _ = spark.taken(lambda: write(rows, folder))
        clock.phases["write"] = timing
        found = _frame(spark.session, peer, folder).selectExpr("count(*)", "sum(id)").collect()[0]
    return {"rows": found[0], "written": found[0], "sum": str(found[1])}


def _change(clock: Clock, job: Job) -> Facts:
    """DELETE, UPDATE and MERGE of one row in a hundred, and OPTIMIZE where the job asks for it."""
    sums: list[str] = []
    optimizes = (_optimize, _z_order) if job.get("optimizes") else ()
    with sparks.running(workers=job.get("workers", 0)) as spark, _empty(job) as base:
        if job.get("workers"):
            spark.session.conf.set("spark.deltafast.engine", "jobs")
        source = f"{base}/source"
        rows = spark.session.read.parquet(str(job["table"])).where("id % 100 = 3")
        rows = rows.selectExpr("if(id % 800 = 3, id + 20000000, id) id", *(f"`{name}`" for name in rows.columns[1:]))
        rows.write.parquet(source)
        files = sorted(path.name for path in Path(job["table"]).glob("*.parquet"))
        for work in (_delete, _update, _merge, *optimizes):
            name = work.__name__[1:]
            for vectors in (False,) if work in optimizes else (True, False):
                # Once on a table of one file, so that Java knows the way.
                for count in (1, len(files)):
                    table = f"{base}/{name}-{vectors}-{count}"
                    _made(Path(job["table"]), table, files[:count], vectors=vectors)
                    timing, _ = spark.taken(
                        lambda work=work, table=table: work(spark.session, job["peer"], table, source)
                    )
                phase = f"{name}-vectors" if vectors else name
                clock.phases[phase] = timing
                of_all = _frame(spark.session, job["peer"], table).selectExpr("count(*)", "sum(id)", "sum(quantity)")
                sums.append(str(tuple(of_all.collect()[0])))
                shutil.rmtree(table)
    return {"written": len(sums), "sum": " ".join(sums)}


def _made(origin: Path, table: str, files: list[str], *, vectors: bool) -> None:
    """Make a table of links to some files."""
    import deltafast

    folder = Path(table)
    folder.mkdir(parents=True)
    for name in files:
        (folder / name).hardlink_to(origin / name)
    deltafast.convert_to_deltalake(table)
    if vectors:
        deltafast.DeltaTable(table).alter.set_table_properties({"delta.enableDeletionVectors": "true"})


def _delete(session: Any, peer: str, table: str, source: str) -> None:
    del source
    if peer == "deltafast":
        from deltafast.spark import DeltaTable

        DeltaTable.forPath(session, table).delete("id % 100 = 7")
    else:
        session.sql(f"DELETE FROM delta.`{table}` WHERE id % 100 = 7").collect()


def _update(session: Any, peer: str, table: str, source: str) -> None:
    del source
    if peer == "deltafast":
        from deltafast.spark import DeltaTable

        DeltaTable.forPath(session, table).update("id % 100 = 7", {"quantity": "quantity + 1"})
    else:
        session.sql(f"UPDATE delta.`{table}` SET quantity = quantity + 1 WHERE id % 100 = 7").collect()


def _merge(session: Any, peer: str, table: str, source: str) -> None:
    rows = session.read.parquet(source)
    if peer == "deltafast":
        from deltafast.spark import DeltaTable

        merger = DeltaTable.forPath(session, table).alias("t").merge(rows.alias("s"), "t.id = s.id")
        merger.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    else:
        rows.createOrReplaceTempView("changes")
        session.sql(
            f"MERGE INTO delta.`{table}` t USING changes s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()


def _optimize(session: Any, peer: str, table: str, source: str) -> None:
    del source
    if peer == "deltafast":
        from deltafast.spark import DeltaTable

        DeltaTable.forPath(session, table).optimize().executeCompaction()
    else:
        session.sql(f"OPTIMIZE delta.`{table}`").collect()


def _z_order(session: Any, peer: str, table: str, source: str) -> None:
    del source
    if peer == "deltafast":
        from deltafast.spark import DeltaTable

        DeltaTable.forPath(session, table).optimize().executeZOrderBy("price", "quantity")
    else:
        session.sql(f"OPTIMIZE delta.`{table}` ZORDER BY (price, quantity)").collect()


def _feed(clock: Clock, job: Job) -> Facts:
    """The change data feed of all versions, whose rows are dropped."""
    peer, folder = job["peer"], str(job["table"])
    options = {"readChangeFeed": "true", "startingVersion": "1"}
    with sparks.running() as spark:

        def frame() -> Any:
            if peer == "deltafast":
                import deltafast.spark

                return deltafast.spark.read(spark.session, folder, options=options)
            return spark.session.read.format("delta").options(**options).load(folder)

        _phase(clock, spark, "feed", lambda: frame().write.format("noop").mode("overwrite").save())
        frame().createOrReplaceTempView("feed")
        kinds = spark.session.sql("SELECT _change_type, sum(id), count(*) FROM feed GROUP BY 1 ORDER BY 1").collect()
    return {"rows": sum(kind[2] for kind in kinds), "sum": str([tuple(kind) for kind in kinds])}


def _stream(clock: Clock, job: Job) -> Facts:
    """Stream a table into nothing and into another table, as much as there is."""
    with sparks.running() as spark, _empty(job) as base:

        def run(sink: str, number: int) -> str:
            target = f"{base}/{sink}-{number}"
            writer = _source(spark.session, job["peer"], str(job["table"])).writeStream
            if sink == "noop":
                writer = writer.format("noop")
            elif job["peer"] == "deltafast":
                import deltafast.spark

                writer = writer.foreachBatch(deltafast.spark.sink(target))
            else:
                writer = writer.format("delta").option("path", target)
            writer.option("checkpointLocation", f"{target}-c").trigger(availableNow=True).start().awaitTermination()
            return target

        for sink in ("noop", "table"):
            numbers = itertools.count()
            target = _phase(clock, spark, sink, lambda sink=sink, numbers=numbers: run(sink, next(numbers)))
        found = _frame(spark.session, job["peer"], target).selectExpr("count(*)", "sum(id)").collect()[0]
    return {"rows": found[0], "written": found[0], "sum": str(found[1])}


def _batches(clock: Clock, job: Job) -> Facts:
    """Stream tables of small versions, a file a batch: by their versions, and as the rows that were there before."""
    import pyarrow as pa

    import deltafast

    with sparks.running() as spark, _empty(job) as base:
        for table, count in (("versions", job["batches"]), ("initial", job["files"])):
            for n in range(count):
                deltafast.write_deltalake(f"{base}/{table}", pa.table({"id": [n]}), mode="append")

        # Of all batches: by default the progress of the last hundred is kept.
        spark.session.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000000")

        def run(table: str, **options: Any) -> list[Any]:
            stream = _source(spark.session, job["peer"], f"{base}/{table}", maxFilesPerTrigger=1, **options)
            checkpoint = f"{base}/c-{table}-{len(options)}-{options.get('startingVersion', 0)}"
            writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            return [batch for batch in query.recentProgress if batch["numInputRows"]]

        found: list[str] = []
        run("versions", startingVersion=job["batches"] - min(20, job["batches"] // 2))
        for table, count, options in (
            ("versions", job["batches"], {"startingVersion": 0}),
            ("initial", job["files"], {}),
        ):
            timing, batches = spark.taken(lambda table=table, options=options: run(table, **options))
            found.append(f"{table}: {len(batches)} batches of {sum(one['numInputRows'] for one in batches)} rows")
            clock.phases[table] = {key: timing[key] / (count if key in ("wall", "cpu") else 1) for key in timing}
    return {"sum": ", ".join(found)}


def _start(clock: Clock, job: Job) -> Facts:
    """Start a session, and ask it for a number."""
    since = time.perf_counter(), time.process_time()
    with sparks.running(has_delta=job["peer"] == "delta-spark") as spark:
        if job["peer"] == "deltafast":
            import deltafast.spark

            deltafast.spark.enable(spark.session)
        answer = spark.session.sql("SELECT 1").collect()[0][0]
        clock.phases["start"] = spark.used(since)
    return {"sum": answer}


def _source(session: Any, peer: str, folder: str, **options: Any) -> Any:
    """A stream of a table."""
    name = "delta"
    if peer == "deltafast":
        from deltafast.spark._session.session import Session
        from deltafast.spark._streaming.stream_source import stream_format

        # `delta` after `enable`; in a session with Delta's jar that is delta-spark.
        name = stream_format(Session(session))
    return session.readStream.format(name).options(**options).load(folder)


#: What the command line calls them.
WORK: dict[str, Callable[[Any, Any], Any]] = {
    "spark-read": _read,
    "spark-plan": _plan,
    "spark-append": _append,
    "spark-change": _change,
    "spark-feed": _feed,
    "spark-stream": _stream,
    "spark-batches": _batches,
    "spark-start": _start,
}
