"""The grid of writes: each statement and call x table x partition overwrite mode x where the mode is set.

`dev/make_spark_writes.py` records the tables that delta-spark leaves in `tests/golden/spark_writes.json`; deltafast must
leave the same rows, columns in the same order, and partition columns, or refuse the same cases.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltafast import DeltaTable, write_deltalake

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Iterator

MODE: Final = "spark.sql.sources.partitionOverwriteMode"
#: The new rows, which are in the partition `x` of the tables.
ROWS: Final = "SELECT 9 id, 'x' p, 'n' v"
#: Views of the new rows: whole, and without the partition column.
VIEWS: Final = {"new_rows": ROWS, "new_values": "SELECT 9 id, 'n' v"}

#: By table: the order of its columns, and its partition columns.
TABLES: Final = {
    "partitioned": (("id", "p", "v"), ["p"]),
    "partition column first": (("p", "id", "v"), ["p"]),
    "two partition columns": (("id", "p", "v"), ["v", "p"]),
    "unpartitioned": (("id", "p", "v"), []),
}
VALUES: Final = {"id": [1, 2, 3, 4], "p": ["x", "x", "y", None], "v": ["a", "b", "c", "n"]}

#: By setting: settings of the session, and statements that set them.
SETTINGS: Final[dict[str, tuple[dict[str, str], list[str]]]] = {
    "default": ({}, []),
    "static in the session": ({MODE: "STATIC"}, []),
    "dynamic in the session": ({MODE: "dynamic"}, []),
    "dynamic by SET": ({}, [f"SET {MODE} = Dynamic"]),
    "dynamic partitions not allowed": (
        {MODE: "dynamic", "spark.databricks.delta.dynamicPartitionOverwrite.enabled": "false"},
        [],
    ),
}

STATEMENTS: Final = {
    "VALUES": "INSERT OVERWRITE {t} VALUES (9, 'x', 'n')",
    "SELECT": "INSERT OVERWRITE {t} SELECT 9, 'x', 'n'",
    "TABLE": "INSERT OVERWRITE {t} TABLE new_rows",
    "FROM": "INSERT OVERWRITE {t} FROM new_rows SELECT id, p, v",
    "FROM first": "FROM new_rows INSERT OVERWRITE {t} SELECT id, p, v",
    "WITH": "INSERT OVERWRITE {t} WITH c AS (SELECT * FROM new_rows) SELECT * FROM c",
    "WITH first": "WITH c AS (SELECT * FROM new_rows) INSERT OVERWRITE {t} SELECT * FROM c",
    "columns, VALUES": "INSERT OVERWRITE {t} (v, p, id) VALUES ('n', 'x', 9)",
    "columns, SELECT": "INSERT OVERWRITE {t} (v, p, id) SELECT 'n', 'x', 9",
    "some columns, VALUES": "INSERT OVERWRITE {t} (p, id) VALUES ('x', 9)",
    "BY NAME": "INSERT OVERWRITE {t} BY NAME SELECT 'n' v, 'x' p, 9 id",
    "DEFAULT": "INSERT OVERWRITE {t} VALUES (9, 'x', DEFAULT)",
    "no rows": "INSERT OVERWRITE {t} SELECT 9, 'x', 'n' WHERE false",
    "partition, SELECT": "INSERT OVERWRITE {t} PARTITION (p = 'x') SELECT 9, 'n'",
    "partition, VALUES": "INSERT OVERWRITE {t} PARTITION (p = 'x') VALUES (9, 'n')",
    "partition, TABLE": "INSERT OVERWRITE {t} PARTITION (p = 'x') TABLE new_values",
    "partition, no rows": "INSERT OVERWRITE {t} PARTITION (p = 'x') SELECT 9, 'n' WHERE false",
    "partition, columns": "INSERT OVERWRITE {t} PARTITION (p = 'x') (v, id) SELECT 'n', 9",
    "partition, columns, VALUES": "INSERT OVERWRITE {t} PARTITION (p = 'x') (v, id) VALUES ('n', 9)",
    "partition, BY NAME": "INSERT OVERWRITE {t} PARTITION (p = 'x') BY NAME SELECT 'n' v, 9 id",
    "new partition": "INSERT OVERWRITE {t} PARTITION (p = 'new') SELECT 9, 'n'",
    "partition of null": "INSERT OVERWRITE {t} PARTITION (p = NULL) SELECT 9, 'n'",
    "partition of another column": "INSERT OVERWRITE {t} PARTITION (id = 1) SELECT 'x', 'n'",
    "all partition columns": "INSERT OVERWRITE {t} PARTITION (p = 'x', v = 'a') SELECT 9",
    "dynamic partition": "INSERT OVERWRITE {t} PARTITION (p) SELECT 9, 'n', 'x'",
    "dynamic partition, VALUES": "INSERT OVERWRITE {t} PARTITION (p) VALUES (9, 'n', 'x')",
    "partly dynamic partition": "INSERT OVERWRITE {t} PARTITION (p = 'x', v) SELECT 9, 'a'",
    "partly dynamic partition, VALUES": "INSERT OVERWRITE {t} PARTITION (p = 'x', v) VALUES (9, 'a')",
    "REPLACE WHERE, SELECT": "INSERT INTO {t} REPLACE WHERE p = 'x' SELECT 9, 'x', 'n'",
    "REPLACE WHERE, VALUES": "INSERT INTO {t} REPLACE WHERE p = 'x' VALUES (9, 'x', 'n')",
    "REPLACE WHERE, TABLE": "INSERT INTO {t} REPLACE WHERE p = 'x' TABLE new_rows",
    "REPLACE WHERE of rows": "INSERT INTO {t} REPLACE WHERE id < 3 SELECT 1, 'x', 'n'",
    "INTO, VALUES": "INSERT INTO {t} VALUES (9, 'x', 'n')",
    "INTO, partition": "INSERT INTO {t} PARTITION (p = 'x') SELECT 9, 'n'",
    "INTO, partition, VALUES": "INSERT INTO {t} PARTITION (p = 'x') VALUES (9, 'n')",
    "INTO, dynamic partition": "INSERT INTO {t} PARTITION (p) SELECT 9, 'n', 'x'",
}


def _rows(spark: Any) -> Any:
    return spark.sql(ROWS)


def _overwriting(spark: Any, **options: Any) -> Any:
    return _rows(spark).write.format("delta").mode("overwrite").options(**options)


def _condition(text: str) -> Any:
    from pyspark.sql import functions

    return functions.expr(text)


#: Calls of writers; they get the session, the name of a table, and its path.
CALLS: Final[dict[str, Callable[[Any, str, str], Any]]] = {
    "save": lambda s, _, p: _overwriting(s).save(p),
    "save, partitionBy": lambda s, _, p: _overwriting(s).partitionBy("p").save(p),
    "save, dynamic": lambda s, _, p: _overwriting(s, partitionOverwriteMode="DYNAMIC").save(p),
    "save, static": lambda s, _, p: _overwriting(s, partitionoverwritemode="static").save(p),
    "save, another mode": lambda s, _, p: _overwriting(s, partitionOverwriteMode="other").save(p),
    "save, replaceWhere": lambda s, _, p: _overwriting(s, replaceWhere="p = 'x'").save(p),
    "save, replaceWhere, static": lambda s, _, p: _overwriting(
        s, replaceWhere="p = 'x'", partitionOverwriteMode="static"
    ).save(p),
    "save, replaceWhere, dynamic": lambda s, _, p: _overwriting(
        s, replaceWhere="p = 'x'", partitionOverwriteMode="dynamic"
    ).save(p),
    "save, overwriteSchema": lambda s, _, p: _overwriting(s, overwriteSchema=True).save(p),
    "save, overwriteSchema, partitionBy": lambda s, _, p: (
        _overwriting(s, overwriteSchema=True).partitionBy("p").save(p)
    ),
    "save, overwriteSchema, dynamic": lambda s, _, p: (
        _overwriting(s, overwriteSchema=True, partitionOverwriteMode="dynamic").partitionBy("p").save(p)
    ),
    "save, mergeSchema": lambda s, _, p: (
        s.sql(f"{ROWS}, 1 w").write.format("delta").mode("overwrite").option("mergeSchema", True).save(p)
    ),
    "save, append": lambda s, _, p: _rows(s).write.format("delta").mode("append").save(p),
    "saveAsTable": lambda s, n, _: _overwriting(s).saveAsTable(n),
    "saveAsTable, partitionBy": lambda s, n, _: _overwriting(s).partitionBy("p").saveAsTable(n),
    "saveAsTable, dynamic": lambda s, n, _: _overwriting(s, partitionOverwriteMode="dynamic").saveAsTable(n),
    "saveAsTable, static": lambda s, n, _: _overwriting(s, partitionOverwriteMode="static").saveAsTable(n),
    "saveAsTable, replaceWhere": lambda s, n, _: _overwriting(s, replaceWhere="p = 'x'").saveAsTable(n),
    "saveAsTable, overwriteSchema": lambda s, n, _: _overwriting(s, overwriteSchema=True).saveAsTable(n),
    "saveAsTable, overwriteSchema, partitionBy": lambda s, n, _: (
        _overwriting(s, overwriteSchema=True).partitionBy("p").saveAsTable(n)
    ),
    "insertInto": lambda s, n, _: _overwriting(s).insertInto(n),
    "insertInto, True": lambda s, n, _: _rows(s).write.insertInto(n, True),
    "insertInto, dynamic": lambda s, n, _: _overwriting(s, partitionOverwriteMode="dynamic").insertInto(n),
    "insertInto, static": lambda s, n, _: _overwriting(s, partitionOverwriteMode="static").insertInto(n),
    "insertInto, replaceWhere": lambda s, n, _: _overwriting(s, replaceWhere="p = 'x'").insertInto(n),
    "insertInto, other order": lambda s, n, _: _rows(s).select("v", "p", "id").write.insertInto(n, True),
    "overwrite": lambda s, n, _: _rows(s).writeTo(n).overwrite(_condition("p = 'x'")),
    "overwrite of all": lambda s, n, _: _rows(s).writeTo(n).overwrite(_condition("true")),
    "overwritePartitions": lambda s, n, _: _rows(s).writeTo(n).overwritePartitions(),
    "writeTo, append": lambda s, n, _: _rows(s).writeTo(n).append(),
    "writeTo, createOrReplace": lambda s, n, _: _rows(s).writeTo(n).using("delta").createOrReplace(),
    "writeTo, createOrReplace, partitionedBy": lambda s, n, _: (
        _rows(s).writeTo(n).using("delta").partitionedBy(_condition("p")).createOrReplace()
    ),
    "CREATE OR REPLACE": lambda s, n, _: s.sql(f"CREATE OR REPLACE TABLE {n} USING delta PARTITIONED BY (p) AS {ROWS}"),
}


def _named(spark: Any) -> Any:
    """Return a writer of rows whose columns are not in the order of the partition columns."""
    return spark.sql("SELECT 'x' p, 9 id, 'a' q, 'n' v").write.format("delta")


def _named_v2(spark: Any, name: str) -> Any:
    return spark.sql("SELECT 'x' p, 9 id, 'a' q, 'n' v").writeTo(name).using("delta")


def _stream(spark: Any, name: str, path: str) -> None:
    _named(spark).save(f"{path}-source")
    rows = spark.readStream.format("delta").load(f"{path}-source")
    writer = rows.writeStream.option("checkpointLocation", f"{path}-checkpoint").trigger(availableNow=True)
    writer.toTable(name, format="delta", partitionBy="p").awaitTermination()


#: Writers that create a table of a name from a frame whose partition columns are not its last ones.
CREATIONS: Final[dict[str, Callable[[Any, str, str], Any]]] = {
    "saveAsTable": lambda s, n, _: _named(s).saveAsTable(n),
    "saveAsTable, partitionBy": lambda s, n, _: _named(s).partitionBy("p").saveAsTable(n),
    "saveAsTable, partitionBy as an argument": lambda s, n, _: _named(s).saveAsTable(n, partitionBy="p"),
    "saveAsTable, partitionBy of two": lambda s, n, _: _named(s).partitionBy("q", "p").saveAsTable(n),
    "saveAsTable, partitionBy in capitals": lambda s, n, _: _named(s).partitionBy("P").saveAsTable(n),
    "saveAsTable, clusterBy": lambda s, n, _: _named(s).clusterBy("p").saveAsTable(n),
    "saveAsTable, path": lambda s, n, p: _named(s).partitionBy("p").option("path", p).saveAsTable(n),
    "saveAsTable, overwrite": lambda s, n, _: _named(s).partitionBy("p").mode("overwrite").saveAsTable(n),
    "saveAsTable, append": lambda s, n, _: _named(s).partitionBy("p").mode("append").saveAsTable(n),
    "saveAsTable, ignore": lambda s, n, _: _named(s).partitionBy("p").mode("ignore").saveAsTable(n),
    "save": lambda s, n, p: (
        _named(s).partitionBy("p").save(p),
        s.sql(f"CREATE TABLE {n} USING delta LOCATION '{p}'"),
    ),
    "create": lambda s, n, _: _named_v2(s, n).partitionedBy(_condition("p")).create(),
    "createOrReplace": lambda s, n, _: _named_v2(s, n).partitionedBy(_condition("p")).createOrReplace(),
    "CREATE AS": lambda s, n, _: s.sql(
        f"CREATE TABLE {n} USING delta PARTITIONED BY (p) AS SELECT 'x' p, 9 id, 'a' q, 'n' v"
    ),
    "CREATE": lambda s, n, _: s.sql(
        f"CREATE TABLE {n} (p STRING, id INT, q STRING, v STRING) USING delta PARTITIONED BY (p)"
    ),
    "CREATE with a partition column": lambda s, n, _: s.sql(
        f"CREATE TABLE {n} (id INT, q STRING, v STRING) USING delta PARTITIONED BY (p STRING)"
    ),
    "toTable": _stream,
}


class Case(NamedTuple):
    """A write."""

    name: str
    #: One of `TABLES`.
    table: str
    #: One of `SETTINGS`.
    setting: str
    #: Gets the session, the name of the table in SQL, and its path.
    run: Callable[[Any, str, str], Any]
    #: Whether the table has a name in the catalog, and is not only a path.
    is_named: bool


def _by_statement(text: str) -> Callable[[Any, str, str], Any]:
    return lambda spark, name, _: spark.sql(text.format(t=name)).collect()


def _cases() -> Iterator[Case]:
    tables = [
        ("partitioned", "dynamic in the session", None),
        ("partitioned", "default", None),
        ("partitioned", "static in the session", ("VALUES", "SELECT", "save")),
        ("partitioned", "dynamic by SET", ("VALUES", "SELECT", "save")),
        ("partitioned", "dynamic partitions not allowed", ("VALUES", "SELECT", "save")),
        ("partition column first", "dynamic in the session", ("columns, VALUES", "BY NAME", "partition, VALUES")),
        (
            "two partition columns",
            "dynamic in the session",
            ("VALUES", "SELECT", "partition, ", "all", "partly", "save"),
        ),
        ("unpartitioned", "dynamic in the session", ("VALUES", "SELECT", "no rows", "REPLACE WHERE, VALUES", "save")),
    ]
    for table, setting, beginnings in tables:
        for name, text in STATEMENTS.items():
            if beginnings is None or name.startswith(beginnings):
                # By name and by path in turn.
                is_named = name in ("VALUES", "partition, SELECT", "dynamic partition, VALUES")
                yield Case(f"{table}: {name}: {setting}", table, setting, _by_statement(text), is_named)
        for name, call in CALLS.items():
            if beginnings is None or name in beginnings:
                yield Case(
                    f"{table}: {name}: {setting}", table, setting, call, not name.startswith("save,") and name != "save"
                )


CASES: Final = {case.name: case for case in _cases()}


def outcome(spark: Any, folder: pathlib.Path, case: Case) -> dict[str, Any]:
    """Run a case on a table of its own; return the table's columns and rows, and whether the case was refused."""
    number = list(CASES).index(case.name)
    name, path = f"grid_{number}", folder / f"table-{number}"
    for view, text in VIEWS.items():
        spark.sql(text).createOrReplaceTempView(view)
    shutil.copytree(_template(folder, case.table), path)
    if case.is_named:
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{path}'")
    is_refused = _is_refused(spark, case, name if case.is_named else f"delta.`{path}`", str(path))
    found = state_of(path)
    shutil.rmtree(path)
    if case.is_named:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    return {"is refused": is_refused, "table": found}


def state_of(path: pathlib.Path) -> dict[str, Any]:
    """Return the columns, the partition columns and the rows of a table."""
    table = DeltaTable(path)
    return {
        "columns": {field.name: str(field.type) for field in table.schema().fields},
        "partition columns": list(table.metadata().partition_columns),
        "rows": sorted(([*row.values()] for row in table.to_pyarrow_table().to_pylist()), key=repr),
    }


def _is_refused(spark: Any, case: Case, name: str, path: str) -> bool:
    settings, statements = SETTINGS[case.setting]
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        for statement in statements:
            spark.sql(statement)
        case.run(spark, name, path)
    except Exception:  # noqa: BLE001 - the classes of errors have tests of their own
        return True
    finally:
        for key in (MODE, *settings):
            spark.conf.unset(key)
    return False


def _template(folder: pathlib.Path, table: str) -> pathlib.Path:
    """Return a table to copy."""
    path = folder / f"template of {table}"
    if not path.exists():
        columns, partition = TABLES[table]
        types = {"id": pa.int32()}
        data = pa.table({name: pa.array(VALUES[name], types.get(name, pa.string())) for name in columns})
        write_deltalake(path, data, partition_by=partition or None)
    return path
