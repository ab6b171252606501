"""Conditions as PySpark's columns, classic or Connect, whose meaning in the core is compared with Spark's."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.functions import col, expr, lit

import deltafast.spark
from deltafast._expr.syntax_sql import sql_text
from deltafast.spark._commands.column_syntax import as_condition
from deltafast.spark._session.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONDITIONS", "check_conditions"]

_ROWS = [
    "cast(id as int) i",
    "element_at(array('a', 'b', 'ab', 'it''s \\\\ \"q\"', null, 'c%'), cast(id as int) + 1) t",
    "if(id = 1, null, named_struct('x', id)) s",
    "map('k', id) m",
    "array(named_struct('x', id)) a",
    "date_add(date'2020-01-01', cast(id as int)) d",
    "timestamp'2020-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) z",
    "timestamp_ntz'2020-01-01 00:00:00' + make_interval(0, 0, 0, cast(id as int)) w",
    "cast(id as decimal(10, 2)) n",
    "if(id = 2, double('NaN'), id / 2) f",
    "cast(id / 10 as float) g",
    "unhex(concat('0', id)) b",
    "id % 2 = 0 e",
    "concat('o', if(id = 4, null, id)) `odd name`",
    "named_struct('c d', id, 'q`', id) `x.y`",
]

CONDITIONS: list[Callable[[], Any]] = [
    lambda: (col("i") == 3) & ~(col("t") == 'it\'s \\ "q"'),
    lambda: (col("i") + 1) * 2 - col("i") % 3 > 4.5,
    lambda: (5 - col("i") >= 2) & (10 / (col("i") + 1) != 5),
    lambda: col("i").between(2, 4) | col("t").isin("a", "b"),
    lambda: col("i").isin(*range(2, 60)) | col("t").isin(*map(chr, range(97, 140))),
    lambda: col("d").isin(*(dt.date(2020, 1, 2) + dt.timedelta(days=n) for n in range(0, 80, 2))),
    lambda: ~col("n").isin(1, decimal.Decimal("2.00"), None) | col("n").isNull(),
    lambda: ~col("t").isin([]) & ~col("i").isin(0, 2),
    lambda: col("s.x").isNull() | (col("s")["x"] > 2),
    lambda: (col("m")["k"] == 4) | (col("a")[0]["x"] == 1) | (col("a").getItem(0).getField("x") == 2),
    lambda: F.when(col("i") > 3, "big").when(col("i") > 1, "mid").otherwise(col("t")) == "mid",
    lambda: F.when(col("i") > 3, lit(1)).isNull(),
    lambda: col("t").cast("string").like("_%") & col("t").startswith("a"),
    lambda: F.like("t", lit("%!%"), lit("!")) | col("t").rlike("^ab$") | col("t").ilike("B"),
    lambda: col("t").contains("s") | col("t").endswith("b") | (col("t").substr(1, 1) == "c"),
    lambda: F.coalesce("t", lit("none")) == "none",
    lambda: col("d") >= dt.date(2020, 1, 3),
    lambda: (col("d") == dt.date(1000, 1, 1)) | (F.extract(lit("day"), "d") == 3) | (F.date_add("d", 1) == dt.date(2020, 1, 5)),
    lambda: col("z") > dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC),
    lambda: col("z") > lit(dt.datetime(1960, 1, 2, 12, 0, 0, 5, tzinfo=dt.UTC)),
    lambda: col("w") == lit(dt.datetime(2020, 1, 2)).cast("timestamp_ntz"),  # noqa: DTZ001 - in the zone of the session
    lambda: col("n") < decimal.Decimal("3.50"),
    lambda: (col("n") == decimal.Decimal(2)) | (col("n") / 3 > decimal.Decimal("1.333")),
    lambda: (col("f") == lit(float("nan"))) | F.isnan("f") | (col("f") > float("inf")),
    lambda: (col("g") == 0.2) | (col("g") == lit(np.float32(0.3))) | (col("i") == lit(np.int8(4))),
    lambda: col("b") == lit(b"\x01"),
    lambda: col("t").eqNullSafe(None),
    lambda: lit(None).isNull() & (col("t") == lit(None)).isNull() & col("e"),
    lambda: lit(True) & ~lit(False) & (col("e") == True),  # noqa: E712 - a column
    lambda: -col("i") < lit(-(2**40)) + 2**40,
    lambda: (lit(-3) == -col("i")) | (lit(2**31) == col("i") + 2**31),
    lambda: (col("i").bitwiseAND(1) == 1) | (col("i").bitwiseXOR(2) == 0) | (col("i").bitwiseOR(4) == 4),
    lambda: F.bitwise_not("i") == -3,
    lambda: F.upper(F.substring("t", 1, 1)) == "A",
    lambda: F.struct("i", col("t").alias("u")).isNotNull() & (col("i").alias("j") > 3),
    lambda: expr('i > 2 or t = "a"') & (col("i") < 5),
    lambda: ~expr("d in (date'2020-01-02', date'2020-01-03') and z < timestamp'2020-01-03 00:00:00'"),
    lambda: col("`odd name`").isNotNull() & (F.length("odd name") > 1),
    lambda: (col("`x.y`.`c d`") > 3) | (col("`x.y`")["q`"] == 1) | (col("`x.y`.`q```") == 2),
    lambda: (col("i").cast("double") / 2 >= 1.5) & (col("i").try_cast("decimal(3, 2)").isNotNull()),
    lambda: functools.reduce(operator.or_, [col("i") == n for n in range(3, 40)]),
    lambda: functools.reduce(operator.and_, [col("i") != n for n in range(3)]),
]  # fmt: skip


def check_conditions(spark: Any, folder: str) -> None:
    """Write a table, and compare for each condition the rows that Spark, the text and the core find."""
    session = Session(spark)
    frame = spark.range(0, 6, 1, 1).selectExpr(*_ROWS)
    deltafast.spark.write(frame, folder, configuration={"delta.columnMapping.mode": "name"})
    table = deltafast.DeltaTable(folder, time_zone=session.zone)
    frame = deltafast.spark.read(spark, folder)
    for make in CONDITIONS:
        condition: Any = as_condition(make(), session)
        text = sql_text(condition)
        expected = sorted(row.i for row in frame.where(make()).select("i").collect())
        assert sorted(row.i for row in frame.where(text).select("i").collect()) == expected, text
        assert sorted(table.to_pyarrow_table(filters=condition).column("i").to_pylist()) == expected, text
