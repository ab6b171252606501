"""Statements drawn at random, by deltafast and by `deltalake` on copies of one table: the same rows, feed and figures.

The expressions are those that mean the same in Spark and in DataFusion, and the tables those that `deltalake` writes
right: without deletion vectors, column mapping, empty texts in partitions, columns that a MERGE adds.
"""

from __future__ import annotations

import collections
import datetime as dt
import os
import pathlib
import random
import shutil
import tempfile
from decimal import Decimal
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import deltafast
from deltafast._ops.merge_clause import MergeAction
from deltafast._sql import tree
from deltafast._sql.reading import read_statement
from random_statements import Case, Choices, Kind, draw_case

#: Draws that many cases anew, not the usual.
MANY = int(os.environ.get("DELTAFAST_STATEMENTS", "0"))
KINDS = {
    "long": Kind(pa.int64(), "bigint", (-7, 0, 1, 2, 2**40), str, ("{c} + 1", "{c} - 7"), True, ("{c} % 3 = 1",)),
    "int": Kind(pa.int32(), "int", (-2, -1, 0, 1, 2), str, ("abs({c})",), True, ("{c} % 2 = 0",)),
    "string": Kind(
        pa.string(),
        "string",
        ("a", "B", "zz", "x/y %=", "\N{SNOWMAN}é"),
        "'{}'".format,
        ("upper({c})", "coalesce({c}, 'none')"),
        True,
        ("{c} like '%z%'", "lower({c}) = 'b'"),
    ),
    "boolean": Kind(pa.bool_(), "boolean", (True, False), lambda v: str(v).lower(), ("not {c}",), True, ("{c}",)),
    "date": Kind(pa.date32(), "date", (dt.date(1999, 12, 31), dt.date(2024, 2, 29)), "date '{}'".format, (), True),
    "decimal": Kind(
        pa.decimal128(9, 2), "decimal(9,2)", (Decimal("-1.25"), Decimal("3.50")), "cast({} as decimal(9,2))".format
    ),
}
METRICS = {
    "delete": ("num_deleted_rows",),
    "update": ("num_updated_rows",),
    "merge": ("num_source_rows", "num_target_rows_inserted", "num_target_rows_updated", "num_target_rows_deleted"),
}


def spelled(text: tree.Expression | None, package: Any) -> str | None:
    """An expression in the words of a package."""
    if text is None or package is deltafast:
        return None if text is None else text.text
    return text.text.replace("`", '"').replace("<=>", "is not distinct from")


def run(package: Any, folder: pathlib.Path, text: str, sources: list[pa.Table]) -> dict[str, Any]:
    """Run a statement by a package's methods; the figures."""
    statement = read_statement(text)
    table = package.DeltaTable(folder)
    match statement:
        case tree.Delete():
            return table.delete(spelled(statement.where, package))
        case tree.Update():
            values = {one.column[-1]: spelled(one.value, package) for one in statement.assignments}
            return table.update(values, predicate=spelled(statement.where, package))
        case tree.Merge():
            source = sources[int(statement.source.name[1:])]
            merger = table.merge(
                source,
                spelled(statement.on, package),
                source_alias="s",
                target_alias="t",
                merge_schema=statement.evolve,
            )
            for clause in statement.clauses:
                when = getattr(merger, f"when_{clause.kind.name.lower()}_{clause.action}" + "_all" * _takes_all(clause))
                condition = spelled(clause.condition, package)
                if clause.assignments is None:
                    merger = when(condition)
                else:
                    merger = when({a.column[-1]: spelled(a.value, package) for a in clause.assignments}, condition)
            return merger.execute()
        case _:
            table.optimize.compact()
            return {}


def _takes_all(clause: tree.Clause) -> bool:
    return clause.assignments is None and clause.action is not MergeAction.DELETE


def rows(table: Any) -> Any:
    return collections.Counter(repr(sorted(row.items())) for row in pa.table(table).to_pylist())


def state(folder: pathlib.Path, feed: bool) -> dict[str, Any]:
    table = deltafast.DeltaTable(folder)
    schema = [(field.name, str(field.type), field.nullable) for field in table.schema().fields]
    out = {"version": table.version(), "schema": schema, "rows": rows(table.scan())}
    if feed and table.version():
        found = pa.table(table.load_cdf(table.version(), table.version())).drop_columns(["_commit_timestamp"])
        out["feed"] = rows(found)
    return out


def differences(case: Case, base: pathlib.Path) -> list[str]:
    """What differs after any of the statements."""
    ours, out = base / "ours", []
    feed = bool(case.configuration)
    for rows_ in case.files:
        deltalake.write_deltalake(
            ours, rows_, mode="append", partition_by=case.partition_by or None, configuration=case.configuration
        )
    for number, text in enumerate(case.statements):
        statement = text.format(t="t", **{f"s{n}": f"s{n}" for n in range(len(case.sources))})
        theirs = base / f"theirs-{number}"
        shutil.copytree(ours, theirs)
        metrics: list[Any] = []
        for package, folder in ((deltafast, ours), (deltalake, theirs)):
            try:
                metrics.append(run(package, folder, statement, case.sources))
            except Exception as error:  # noqa: BLE001 - compared
                metrics.append(error)
        failed = [isinstance(one, Exception) for one in metrics]
        if failed == [True, False]:
            return [*out, f"{statement}\n  ours: {metrics[0]!r}\n  theirs: {metrics[1]!r}"]
        if failed[1]:
            # It cannot plan some expressions; what ours makes of them is compared with delta-spark.
            continue
        # The feed of an UPDATE of deltalake tells of whole files.
        with_changes = feed and not statement.startswith("UPDATE")
        found, expected = state(ours, with_changes), state(theirs, with_changes)
        if statement.startswith("OPTIMIZE"):
            # deltalake rewrites some files for nothing.
            found["version"] = expected["version"]
        for name in METRICS.get(statement.split()[0].lower(), ()):
            found[name], expected[name] = metrics[0].get(name), metrics[1].get(name)
        out += [
            f"{statement}\n  {key}, ours: {found[key]}\n  {key}, theirs: {expected[key]}"
            for key in found
            if found[key] != expected[key]
        ]
    return out


@pytest.mark.timeout(0 if MANY else 300)
@pytest.mark.parametrize("command", ["delete", "update", "merge", "optimize"])
def test_any_statement_does_the_same(command: str) -> None:
    commands = (command,) if command != "optimize" else ("delete", "update", "merge", command)
    choices = Choices(commands, KINDS, features=False, ambiguous=False, evolves=False)

    @settings(
        max_examples=MANY or 12,
        derandomize=not MANY,
        deadline=None,
        database=None,
        # No shrinking: on tables it takes longer than a test may.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32), st.booleans())
    def check(seed: int, feed: bool) -> None:
        case = draw_case(random.Random(seed), choices)
        case = case._replace(configuration={"delta.enableChangeDataFeed": "true"} if feed else {})
        with tempfile.TemporaryDirectory() as folder:
            assert not (found := differences(case, pathlib.Path(folder))), f"{case}\n" + "\n".join(found)

    check()


#: What the two packages have a method for and a statement has not.
CALLS: dict[str, Any] = {
    "z_order": lambda package, folder, _: package.DeltaTable(folder).optimize.z_order(["n", "s"]),
    "z_order of a partition": lambda package, folder, _: package.DeltaTable(folder).optimize.z_order(
        ["n"], partition_filters=[("p", "=", "1")]
    ),
    "overwrite": lambda package, folder, rows: package.write_deltalake(folder, rows, mode="overwrite"),
    "replace": lambda package, folder, rows: package.write_deltalake(
        folder, rows, mode="overwrite", predicate="id >= 10 and id < 40"
    ),
    "replace a partition": lambda package, folder, rows: package.write_deltalake(
        folder, rows.filter(pc.field("p") == 1), mode="overwrite", predicate="p = 1"
    ),
}


@pytest.mark.parametrize("feed", [False, True], ids=["", "feed"])
@pytest.mark.parametrize("by", [None, ["p"]], ids=["plain", "partitioned"])
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_statement_does_the_same(
    call: str, by: list[str] | None, feed: bool, tmp_path: pathlib.Path
) -> None:
    if by is None and call == "z_order of a partition":
        by = ["p", "q"]
    made = tmp_path / "made"
    for start in range(0, 60, 20):
        ids = range(start, start + 20)
        data = {"id": ids, "n": [i * 7919 % 31 for i in ids], "s": [f"s{i % 5}" if i % 4 else None for i in ids]}
        rows_ = pa.table(data | {"p": [i % 2 for i in ids], "q": [i % 3 for i in ids]})
        configuration = {"delta.enableChangeDataFeed": "true"} if feed else {}
        deltalake.write_deltalake(made, rows_, mode="append", partition_by=by, configuration=configuration)
    new = rows_.slice(0, 20).set_column(0, "id", pa.array(range(15, 35), pa.int64()))
    found: list[Any] = []
    for package in (deltafast, deltalake):
        folder = tmp_path / package.__name__
        shutil.copytree(made, folder)
        metrics = CALLS[call](package, folder, new)
        removed = None if metrics is None else metrics["numFilesRemoved"]
        found.append((state(folder, feed and metrics is None), removed))
    assert found[0] == found[1]
    assert found[0][0]["version"] == 3
