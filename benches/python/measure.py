"""One sample: a fresh process that does one piece of work with one library.

A job as JSON on the command line -> wall seconds, CPU seconds (user and system, all
threads) and peak memory of each phase, as JSON on standard output. Imports and
preparations are outside of the phases; memory is the process's whole resident size, so
each library pays for what it loads. A phase that makes a result still holds it
when its peak is read, unless the form is `stream`, which drops each batch.
`deltafast` and `deltalake` run the same code, for their names are the same.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clock import Clock, Facts, Job, peak_mb, resident_mb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_WORK: dict[tuple[str, str], Callable[[Clock, Job], Facts]] = {}


def does(work: str, *peers: str) -> Callable[[Callable[[Clock, Job], Facts]], Callable[[Clock, Job], Facts]]:
    """Register how peers do a piece of work.

    Args:
        work: The kind of work.
        *peers: Who does it in this way.
    """

    def register(function: Callable[[Clock, Job], Facts]) -> Callable[[Clock, Job], Facts]:
        _WORK.update({(work, peer): function for peer in peers})
        return function

    return register


def _delta(job: Job) -> Any:
    if job["peer"] == "deltafast":
        importlib.import_module("deltafast._expr")  # loaded by the first predicate otherwise; an import, so not timed
    return importlib.import_module(job["peer"]).DeltaTable


def _drain(stream: Any) -> int:
    """Pull a stream to its end and drop the batches.

    Args:
        stream: Anything with `__arrow_c_stream__`, or an iterable of batches.

    Returns:
        The number of rows.
    """
    rows = 0
    for batch in stream:
        rows += batch.num_rows
    return rows


def _held(stream: Any) -> Any:
    """Read a stream to its end into a `pyarrow.Table` (`pa.table` would import pandas).

    Args:
        stream: Anything with `__arrow_c_stream__`.
    """
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(stream).read_all()


def _sum(table: Any, column: str) -> int | None:
    import pyarrow.compute as pc

    return pc.sum(table[column]).as_py() if column in table.column_names else None


# --- open -------------------------------------------------------------------------------


@does("open", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    table_class = _delta(job)
    with clock.phase("open"):
        table = table_class(job["table"], **job.get("options", {}))
        version, fields = table.version(), len(table.schema().fields)
    return {"version": version, "fields": fields}


@does("open", "polars scan_delta")
def _(clock: Clock, job: Job) -> Facts:
    import deltalake  # noqa: F401  what Polars opens tables with
    import polars as pl

    with clock.phase("open"):
        fields = len(pl.scan_delta(job["table"]).collect_schema())
    return {"fields": fields}


def _duckdb() -> Any:
    import duckdb
    import duckdb_extension_delta

    folder = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
    connection = duckdb.connect()
    connection.load_extension(str(folder / "delta.duckdb_extension"))
    return connection


@does("open", "duckdb")
def _(clock: Clock, job: Job) -> Facts:
    connection = _duckdb()
    with clock.phase("open"):
        fields = connection.execute(f"DESCRIBE SELECT * FROM delta_scan('{job['table']}')").fetchall()
    return {"fields": len(fields)}


# --- all files --------------------------------------------------------------------------


@does("files", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    table_class = _delta(job)
    import pyarrow.compute  # noqa: F401  what batches are given as; not timed

    if job.get("form") == "stream":
        with clock.phase("files"):
            files = _drain(table_class(job["table"]).add_actions_stream(True))
        return {"files": files}

    with clock.phase("files"):
        actions = _held(table_class(job["table"]).get_add_actions(flatten=True))
    return {
        "files": actions.num_rows,
        "columns": actions.num_columns,
        "size_bytes": _sum(actions, "size_bytes"),
        "rows": _sum(actions, "num_records"),
    }


@does("files", "duckdb")
def _(clock: Clock, job: Job) -> Facts:
    import pyarrow as pa  # noqa: F401  what results are given as; not timed

    connection = _duckdb()
    with clock.phase("files"):
        files = connection.execute(f"SELECT * FROM delta_list_files('{job['table']}')").to_arrow_table()
    return {"files": files.num_rows, "columns": files.num_columns}


@does("files", "pyarrow")
def _(clock: Clock, job: Job) -> Facts:
    """Decode the checkpoint's `add` columns; no statistics are parsed."""
    import pyarrow.parquet as pq

    paths = sorted(Path(job["table"]).rglob("*.parquet"))
    with clock.phase("files"):
        tables = [pq.read_table(path, columns=["add"]) for path in paths]
    return {"files": sum(len(table) - table["add"].null_count for table in tables)}


# --- plan -------------------------------------------------------------------------------


@does("plan", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    table_class = _delta(job)
    first, second = job["predicates"]
    with clock.phase("cold"):
        table = table_class(job["table"])
        cold = table.file_uris(file_pruning_predicate=first)
    with clock.phase("again"):
        again = table.file_uris(file_pruning_predicate=second)
    return {"kept": len(cold), "kept_again": len(again)}


@does("plan", "duckdb")
def _(clock: Clock, job: Job) -> Facts:
    connection = _duckdb()
    with clock.phase("cold"):
        connection.execute(f"EXPLAIN SELECT * FROM delta_scan('{job['table']}') WHERE {job['predicates'][0]}")
    return {}


# --- refresh ----------------------------------------------------------------------------

_SETTLED = 10  # refreshes before the memory that later ones are compared with is read


def _commit(version: int) -> str:
    statistics_text = json.dumps(
        {
            "numRecords": 1000,
            "minValues": {"id": version, "score": 0.5, "city": "Oslo", "amount": 1.25},
            "maxValues": {"id": version + 1, "score": 9.5, "city": "Perth", "amount": 2.5},
            "nullCount": {"id": 0, "score": 1, "city": 2, "event_time": 1000, "ship_date": 1000, "amount": 0},
        },
        separators=(",", ":"),
    )
    add = {
        "path": f"date=2025-01-01/part-00000-{version:08}-0000-4000-8000-000000000000.c000.snappy.parquet",
        "partitionValues": {"date": "2025-01-01"},
        "size": 1_000_000,
        "modificationTime": 1_735_690_000_000 + version,
        "dataChange": True,
        "stats": statistics_text,
    }
    info = {"timestamp": 1_735_690_000_000 + version, "operation": "WRITE", "operationParameters": {}}
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in ({"commitInfo": info}, {"add": add}))


@contextlib.contextmanager
def _copied(job: Job) -> Iterator[Path]:
    """A copy of the table that may be written to, of hard links, for as long as it is used."""
    copy = Path(job["copy"])
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(job["table"], copy, copy_function=lambda old, new: Path(new).hardlink_to(old))
    try:
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@does("refresh", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    table_class = _delta(job)
    with _copied(job) as copy:
        return _refresh(clock, job, table_class, copy)


@does("checkpoint", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    table_class = _delta(job)
    with _copied(job) as copy:
        if job.get("new_commit"):
            version = table_class(str(copy)).version() + 1
            (copy / "_delta_log" / f"{version:020}.json").write_text(_commit(version))
        with clock.phase("checkpoint"):
            table_class(str(copy)).create_checkpoint()
        hint = json.loads((copy / "_delta_log" / "_last_checkpoint").read_text())
        written = copy / "_delta_log" / f"{hint['version']:020}.checkpoint.parquet"
        return {"added": hint["numOfAddFiles"], "checkpoint_mb": written.stat().st_size / 1e6}


def _refresh(clock: Clock, job: Job, table_class: Any, copy: Path) -> Facts:
    table = table_class(str(copy))
    day = "date = '2025-01-01'"
    before = len(table.file_uris(file_pruning_predicate=day))
    refresh: list[float] = []
    plan: list[float] = []
    start = table.version()
    settled = 0.0
    with clock.phase("all"):
        for number in range(1, job["count"] + 1):
            (copy / "_delta_log" / f"{start + number:020}.json").write_text(_commit(start + number))
            begun = time.perf_counter()
            table.update_incremental()
            refreshed = time.perf_counter()
            found = len(table.file_uris(file_pruning_predicate=day))
            planned = time.perf_counter()
            if table.version() != start + number or found != before + number:
                message = f"refresh {number}: version {table.version()}, {found} files of the new day"
                raise RuntimeError(message)
            refresh.append(refreshed - begun)
            plan.append(planned - begun)
            if number == min(_SETTLED, job["count"]):
                gc.collect()
                settled = resident_mb()
        gc.collect()
    whole = clock.phases.pop("all")
    share = whole["cpu"] / job["count"]
    clock.phases["refresh"] = {"wall": statistics.median(refresh), "cpu": share, "peak_mb": whole["peak_mb"]}
    clock.phases["plan"] = {"wall": statistics.median(plan), "cpu": share, "peak_mb": whole["peak_mb"]}
    return {
        "refreshes": job["count"],
        "slowest": max(refresh),
        "growth_mb": resident_mb() - settled,
        "new_files": len(table.file_uris(file_pruning_predicate=day)) - before,
    }


# --- scan -------------------------------------------------------------------------------


def _rows(table: Any) -> Facts:
    return {"rows": table.num_rows, "columns": table.num_columns, "id_sum": _sum(table, "id")}


@does("scan", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    table_class = _delta(job)
    # deltalake gives strings as views; the same is asked of deltafast.
    views = {"string_view": True} if job["peer"] == "deltafast" else {}
    asked = {"columns": job.get("columns"), "predicate": job.get("predicate"), **views}
    import pyarrow.compute  # noqa: F401  what batches are given as; not timed

    if job.get("form") == "stream":
        with clock.phase("scan"):
            rows = _drain(table_class(job["table"]).scan(**asked))
        return {"rows": rows}

    with clock.phase("scan"):
        table = _held(table_class(job["table"]).scan(**asked))
    return _rows(table)


@does("feed", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Read the change data feed of all versions, each batch being dropped."""
    table_class = _delta(job)
    import pyarrow.compute  # noqa: F401  what batches are given as; not timed

    with clock.phase("feed"):
        rows = _drain(table_class(job["table"]).load_cdf(starting_version=1, **job.get("options", {})))
    return {"rows": rows}


@does("scan", "polars scan_parquet", "polars scan_delta", "deltafast scan_polars")
def _(clock: Clock, job: Job) -> Facts:
    import polars as pl

    predicate = pl.sql_expr(job["predicate"]) if job.get("predicate") else None
    if job["peer"] != "polars scan_parquet":
        table_class = _delta({"peer": "deltafast" if job["peer"].startswith("deltafast") else "deltalake"})
    with clock.phase("scan"):
        if job["peer"] == "polars scan_parquet":
            frame = pl.scan_parquet(f"{job['table']}/*.parquet")
        elif job["peer"] == "polars scan_delta":
            frame = pl.scan_delta(job["table"])
        else:
            frame = table_class(job["table"]).scan_polars()
        frame = frame if predicate is None else frame.filter(predicate)
        frame = frame.select(job["columns"]) if job.get("columns") else frame
        if job.get("form") == "stream":
            rows = sum(batch.height for batch in frame.collect_batches(maintain_order=False))
            whole = None
        else:
            whole = frame.collect()
            rows = whole.height
    if whole is None:
        return {"rows": rows}
    total = whole["id"].sum() if "id" in whole.columns else None
    return {"rows": rows, "columns": whole.width, "id_sum": total}


@does("scan", "duckdb", "deltafast to_duckdb")
def _(clock: Clock, job: Job) -> Facts:
    import pyarrow.compute  # noqa: F401  what results are given as; not timed

    columns = ", ".join(job["columns"]) if job.get("columns") else "*"
    if job["peer"] == "duckdb":
        connection = _duckdb()
        where = f" WHERE {job['predicate']}" if job.get("predicate") else ""
        with clock.phase("scan"):
            result = connection.sql(f"SELECT {columns} FROM delta_scan('{job['table']}'){where}")
            if job.get("form") == "stream":
                rows = _drain(result.to_arrow_reader(122_880))
                return {"rows": rows}
            table = result.to_arrow_table()
        return _rows(table)
    import duckdb  # noqa: F401  loaded by the call otherwise

    table_class = _delta({"peer": "deltafast"})
    with clock.phase("scan"):
        relation = table_class(job["table"]).to_duckdb()
        relation = relation.filter(job["predicate"]) if job.get("predicate") else relation
        table = relation.project(columns).to_arrow_table()
    return _rows(table)


@does("scan", "pyarrow")
def _(clock: Clock, job: Job) -> Facts:
    import pyarrow as pa
    import pyarrow.dataset as ds

    paths = [str(path) for path in sorted(Path(job["table"]).glob("*.parquet"))]
    asked: dict[str, Any] = {"columns": job.get("columns")}
    if job.get("predicate"):
        column, value = job["predicate"].split(" = ")
        asked["filter"] = ds.field(column) == int(value)
    with clock.phase("scan"):
        scanner = ds.dataset(paths, format="parquet").scanner(**asked)
        if job.get("form") == "stream":
            return {"rows": _drain(scanner.to_batches())}
        table: pa.Table = scanner.to_table()
    return _rows(table)


# --- deletion vectors -------------------------------------------------------------------


@does("vectors", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    import pyarrow as pa

    table_class = _delta(job)
    files = 0
    with clock.phase("vectors"):
        for path in job["tables"]:
            for batch in table_class(path).deletion_vectors():
                files += batch.num_rows
    deleted = 0
    for path in job["tables"]:
        for batch in table_class(path).deletion_vectors():
            keep = pa.record_batch(batch)["selection_vector"].flatten()
            deleted += len(keep) - keep.true_count
    return {"files": files, "deleted": deleted}


# --- writes -----------------------------------------------------------------------------


def _state(folder: Path, column: str) -> Facts:
    """What a table holds after a write, read by one reader whoever wrote it."""
    import deltafast

    table = deltafast.DeltaTable(str(folder))
    rows = _held(table.scan(columns=[column]))
    return {"written": rows.num_rows, "sum": float(_sum(rows, column) or 0), "data_files": len(table.file_uris())}


@does("append", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Write all rows of the table as a new one; they are in memory before the clock starts."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    write = importlib.import_module(job["peer"]).write_deltalake
    rows = pa.concat_tables([pq.read_table(path) for path in sorted(Path(job["table"]).glob("*.parquet"))])
    partition_by = None
    if job.get("partitions"):
        part = np.arange(rows.num_rows, dtype=np.int32) % job["partitions"]
        rows, partition_by = rows.append_column("part", pa.array(part)), ["part"]
    batches = rows.to_batches(max_chunksize=1 << 20)
    folder = Path(job["copy"])
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with clock.phase("append"):
            reader = pa.RecordBatchReader.from_batches(rows.schema, iter(batches))
            write(str(folder), reader, mode="append", partition_by=partition_by)
        return _state(folder, "id")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@does("appends", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Append 100 rows a commit from several processes to one table; the time is that of a commit."""
    import contend

    return _raced(clock, contend.appends(job["peer"], job["writers"], job["seconds"]))


@does("counter", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Count on in one row from several processes; the time is that of an UPDATE that was made."""
    import contend

    return _raced(clock, contend.counter(job["peer"], job["writers"], job["seconds"]))


def _raced(clock: Clock, found: dict[str, float]) -> Facts:
    wall, cpu = 1 / found["per_second"], found.pop("cpu_ms") / 1000
    clock.phases["commit"] = {"wall": wall, "cpu": cpu, "peak_mb": peak_mb()}
    return dict(found)


@does("many", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Append 100 rows a commit from one process, commit after commit; the time is that of a commit."""
    import contend

    with clock.phase("commit"):
        found = contend.many(job["peer"], job["count"], resident_mb)
    whole = clock.phases["commit"]
    clock.phases["commit"] |= {"wall": found.pop("commit_ms") / 1000, "cpu": whole["cpu"] / job["count"]}
    return {"commits": job["count"], **found}


@does("convert", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Make a folder of Parquet files a table."""
    convert = importlib.import_module(job["peer"]).convert_to_deltalake
    with _copied(job) as copy:
        with clock.phase("convert"):
            convert(str(copy))
        state = _state(copy, "id")
        return {"files": state["data_files"], "rows": state["written"], "sum": state["sum"]}


@does("vacuum", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Plan a vacuum of all that is not a version's, from the handle to the list."""
    table_class = _delta(job)
    with clock.phase("plan"):
        gone = table_class(job["table"]).vacuum(dry_run=True, full=True)
    return {"deleted": len(gone)}


@does("delete", "deltafast", "deltalake")
@does("update", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Delete or update the rows of a predicate, from the handle to the commit."""
    table_class = _delta(job)
    with _copied(job) as copy:
        if job.get("vectors"):
            import deltafast

            properties = {"delta.enableDeletionVectors": "true"}
            deltafast.DeltaTable(str(copy)).alter.set_table_properties(properties)
        with clock.phase("change"):
            table = table_class(str(copy))
            if job["work"] == "delete":
                table.delete(job["where"])
            else:
                table.update(updates=job["updates"], predicate=job["where"])
        return _state(copy, "quantity")


@does("merge", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Upsert some rows, an eighth of them new, from the handle to the commit; the source is in memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    import deltafast

    table_class = _delta(job)
    with _copied(job) as copy:
        handle = deltafast.DeltaTable(str(copy))
        if job.get("vectors"):
            handle.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
        rows = pa.table(handle.scan(predicate=job["where"]))
        place = rows.column_names.index
        more = pc.add(rows["quantity"], pa.scalar(1, rows.field("quantity").type))
        rows = rows.set_column(place("quantity"), rows.field("quantity"), more)
        # An eighth of the keys is beyond those that are there.
        new = pc.equal(pc.bit_wise_and(pc.divide(rows["id"], job["every"]), 7), 5)
        ids = pc.if_else(new, pc.add(rows["id"], job["rows"]), rows["id"])
        rows = rows.set_column(place("id"), rows.field("id"), ids).combine_chunks()
        del handle
        with clock.phase("change"):
            merger = table_class(str(copy)).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
        return _state(copy, "quantity")


def _row_sums(folder: Path) -> Facts:
    """How many rows a table holds, and a sum over all of them that does not depend on their order."""
    import duckdb

    import deltafast

    table = deltafast.DeltaTable(str(folder)).to_pyarrow_table()
    with duckdb.connect() as connection:
        connection.register("held", table)
        rows, total = connection.execute("SELECT count(*), sum(hash(held)) FROM held").fetchall()[0]
    return {"written": rows, "sum": str(total)}


@does("returns", "deltafast")
def _(clock: Clock, job: Job) -> Facts:
    """Merge as the cases of Delta's benchmark do."""
    import deltafast
    import returns

    importlib.import_module("deltafast._sql.run")
    importlib.import_module("deltafast._ops.merge")
    found: list[Facts] = []
    for case in returns.CASES:
        with _copied(job | {"table": f"{job['table']}/target"}) as copy:
            statement = case.statement(str(copy), f"{job['table']}/{case.source}")
            with clock.phase(case.name):
                deltafast.sql(statement)
            found.append(_row_sums(copy))
    return _of_all(found)


@does("returns", "delta-spark")
def _(clock: Clock, job: Job) -> Facts:
    """Merge as the cases of Delta's benchmark do, in a Spark that has done so before on other copies."""
    import returns
    import sparks

    found: list[Facts] = []
    with sparks.running() as spark:
        for is_timed in (False, True):
            for number, case in enumerate(returns.CASES):
                of_case = {"table": f"{job['table']}/target", "copy": f"{job['copy']}-{is_timed}-{number}"}
                with _copied(job | of_case) as copy:
                    timing = spark.timed(case.statement(str(copy), f"{job['table']}/{case.source}"))
                    if is_timed:
                        clock.phases[case.name] = timing
                        found.append(_row_sums(copy))
    return _of_all(found)


def _of_all(found: Sequence[Facts]) -> Facts:
    """Facts of several tables as those of one."""
    sums = hashlib.sha256(" ".join(str(facts["sum"]) for facts in found).encode())
    return {"written": sum(facts["written"] for facts in found), "sum": sums.hexdigest()}


@does("compact", "deltafast", "deltalake")
def _(clock: Clock, job: Job) -> Facts:
    """Lay files out anew, from the handle to the commit. A folder without a log becomes a table before."""
    table_class = _delta(job)
    with _copied(job) as copy:
        if not (copy / "_delta_log").is_dir():
            import deltafast

            deltafast.convert_to_deltalake(str(copy))
        column = job["column"]
        before = _state(copy, column)
        with clock.phase("compact"):
            optimizer = table_class(str(copy)).optimize
            if "z_order_by" in job:
                optimizer.z_order(job["z_order_by"], target_size=job["target_mb"] << 20)
            else:
                optimizer.compact(target_size=job["target_mb"] << 20)
        state = _state(copy, column)
        if (state["written"], state["sum"]) != (before["written"], before["sum"]):
            message = f"{job['peer']} changed rows: {before} became {state}"
            raise RuntimeError(message)
        return state


@does("cluster", "deltafast")
def _(clock: Clock, job: Job) -> Facts:
    """Cluster a table by some columns for the first time."""
    import deltafast

    importlib.import_module("deltafast._sql.run")
    with _copied(job) as copy:
        deltafast.sql(f"ALTER TABLE delta.`{copy}` CLUSTER BY ({', '.join(job['by'])})")
        with clock.phase("cluster"):
            deltafast.DeltaTable(str(copy)).optimize.cluster(target_size=job["target_mb"] << 20)
        return _state(copy, job["column"])


@does("cluster", "delta-spark")
def _(clock: Clock, job: Job) -> Facts:
    """The same in a Spark that has done so before on another copy."""
    import sparks

    with sparks.running() as spark:
        spark.sql(f"SET spark.databricks.delta.optimize.maxFileSize = {job['target_mb'] << 20}")
        for copies in ("-warming", "-timed"):
            with _copied(job | {"copy": job["copy"] + copies}) as copy:
                spark.sql(f"ALTER TABLE delta.`{copy}` CLUSTER BY ({', '.join(job['by'])})")
                clock.phases["cluster"] = spark.timed(f"OPTIMIZE delta.`{copy}`")
                state = _state(copy, job["column"])
        return state


def main() -> None:
    """Do the job given on the command line."""
    job = json.loads(sys.argv[1])
    clock = Clock()
    if job["work"].startswith("spark-"):
        from spark_work import WORK

        work = WORK.get(job["work"])
    else:
        work = _WORK.get((job["work"], job["peer"]))
    if work is None:
        sys.exit(f"{job['peer']} does not do {job['work']}")
    facts = work(clock, job)
    sys.stdout.write(json.dumps({"phases": clock.phases, "facts": facts}) + "\n")
    sys.stdout.flush()
    # All is measured. Threads of a library may abort a process that ends in the usual way (seen with deltalake).
    os._exit(0)


if __name__ == "__main__":
    main()
