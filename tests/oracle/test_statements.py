"""Statements drawn at random over tables of every kind, by deltafast and by delta-spark on copies of one table.

Each leaves the same rows, change rows, schema, properties, protocol, domains and row ids, and says the same of itself
in its commit; or it fails on both sides. The cases are drawn from fixed seeds, and the answers of delta-spark to them
are recorded; `DELTAFAST_STATEMENTS=500` adds that many new ones for each command, by a running delta-spark.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import deltafast
from conformance import compare
from deltafast import DeltaTable, write_deltalake
from deltafast._expr.errors import UnsupportedExpressionError
from random_statements import Case, Choices, draw_case

from .recorded_answers import plain, refusal
from .test_sql import visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(0)

COMMANDS = ("delete", "update", "merge", "insert", "optimize")
#: How many cases are drawn for each command.
CASES = 5
MANY = int(os.environ.get("DELTAFAST_STATEMENTS", "0"))
#: Figures that follow from how rows are laid into files, how bytes are encoded, and how long it took.
OWN_METRICS = {
    "executionTimeMs",
    "scanTimeMs",
    "rewriteTimeMs",
    "materializeSourceTimeMs",
    # How many files rows go into; that a file whose rows all go needs no change file.
    "numAddedFiles",
    "numAddedChangeFiles",
    "numFiles",
    "numTargetFilesAdded",
    "numTargetChangeFilesAdded",
    "numOutputBytes",
    "numRemovedBytes",
    "numAddedBytes",
    "numTargetBytesAdded",
    "numTargetBytesRemoved",
    "minFileSize",
    "maxFileSize",
    "p25FileSize",
    "p50FileSize",
    "p75FileSize",
}
#: What is said of a commit.
OF_COMMITS = ("commit", "domains", "feed", "figures", "named figures", "parameters")
#: delta-spark also fails where several rows of the source match one of the table of which clauses take at most one.
AMBIGUOUS = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def make(case: Case, base: pathlib.Path) -> tuple[pathlib.Path, dict[str, str]]:
    """Write the table and the sources; their places in the texts."""
    table = base / "table"
    for n, rows in enumerate(case.files):
        if n:
            write_deltalake(table, rows, mode="append")
        else:
            write_deltalake(
                table,
                rows,
                partition_by=case.partition_by or None,
                cluster_by=case.cluster_by or None,
                configuration=case.configuration,
            )
    places = {}
    for n, rows in enumerate(case.sources):
        odd = {"delta.columnMapping.mode": "name"}
        write_deltalake(base / f"s{n}", rows, configuration=odd)
        places[f"s{n}"] = f"delta.`{base}/s{n}`"
    return table, places


def facts(folder: pathlib.Path, case: Case) -> dict[str, Any]:
    """Return what a table is, holds, and says of its newest commit."""
    table = DeltaTable(folder)
    schema = json.loads(table.schema().to_json())["fields"]
    metadata, version = table.metadata(), table.version()
    protocol = table.protocol()
    private = ("delta.rowTracking.", "delta.columnMapping.maxColumnId")
    found: dict[str, Any] = {
        "version": version,
        "schema": [visible(field) for field in schema],
        "partitions": metadata.partition_columns,
        "properties": {k: v for k, v in metadata.configuration.items() if not k.startswith(private)},
        "protocol": (
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(protocol.reader_features or ()),
            sorted(protocol.writer_features or ()),
        ),
        "rows": sorted(compare.row_strings(pa.table(table.scan()), schema)),
    }
    actions = [json.loads(line) for line in log(folder, version)]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    found["domains"] = {
        a["domainMetadata"]["domain"]: domain(a["domainMetadata"]) for a in actions if "domainMetadata" in a
    }
    metrics = info.get("operationMetrics") or {}
    found["figures"] = {key: value for key, value in metrics.items() if key not in OWN_METRICS}
    found["named figures"] = sorted(metrics)
    found["parameters"] = {key: parameter(key, value) for key, value in info["operationParameters"].items()}
    found["commit"] = {key: info.get(key) for key in ("operation", "isBlindAppend", "isolationLevel", "readVersion")}
    if metadata.configuration.get("delta.enableChangeDataFeed") == "true" and version:
        # From the newest version on, since the schema may be new.
        added = {"_change_type": "string", "_commit_version": "long"}
        fields = [*schema, *({"name": name, "type": kind} for name, kind in added.items())]
        feed = pa.table(table.load_cdf(starting_version=version, ending_version=version))
        found["feed"] = sorted(compare.row_strings(feed, fields))
    if metadata.configuration.get("delta.enableRowTracking") == "true":
        # New rows may get their ids in another order; those of the first ones stay.
        first = sum(rows.num_rows for rows in case.files)
        rows = pa.table(table.scan(columns=["id"], metadata_columns=["row_id"])).to_pylist()
        found["row ids"] = sorted((row["row_id"], row["id"]) for row in rows if row["row_id"] < first)
    return found


def settle(found: dict[str, Any], statement: str, case: Case) -> None:
    """Leave out what differs on purpose."""
    metrics = found["figures"]
    if "BY SOURCE" in statement:
        # Where a row is in no match, delta-spark copies its whole file, taken by a clause or not.
        for name in ("numTargetFilesRemoved", "numOutputRows", "numTargetRowsCopied"):
            metrics.pop(name, None)
    if "REPLACE WHERE" in statement and "delta.enableDeletionVectors" in case.configuration:
        # delta-spark counts rows that stay in files that it marks as copied and written.
        for name in ("numCopiedRows", "numOutputRows"):
            metrics.pop(name, None)
    if " ON false " in statement:
        # A source that cannot match is not read by delta-spark, if nothing is inserted of it.
        metrics.pop("numSourceRows", None)
    if case.cluster_by and statement.startswith("INSERT OVERWRITE"):
        # delta-spark's tables are clustered no longer after that; ours are.
        found["domains"].pop("delta.clustering", None)


def log(folder: pathlib.Path, version: int) -> list[str]:
    return (folder / "_delta_log" / f"{version:020}.json").read_text().splitlines()


def domain(action: dict[str, Any]) -> Any:
    """Return a domain's configuration; delta-spark repeats the name in it."""
    configuration = json.loads(action["configuration"])
    configuration.pop("domainName", None)
    return configuration, action["removed"]


def parameter(key: str, value: Any) -> Any:
    """Return a parameter without the text of conditions, which each side spells in its own way.

    A write names the partition columns of the table, as deltalake's does; an INSERT of delta-spark names none.
    """
    if key == "partitionBy":
        return None
    if key.endswith("redicates"):
        return [(c["actionType"], "predicate" in c) for c in json.loads(value)]
    if key in ("predicate", "mergePredicate"):
        return bool(value and value != "[]")
    return value


def run(text: str) -> str | None:
    """Run a statement by deltafast; what it fails with."""
    try:
        deltafast.sql(text)
    except UnsupportedExpressionError as error:
        # It would hide all else; what is drawn is supported.
        return f"unsupported: {error}"
    except Exception as error:  # noqa: BLE001 - that both sides fail is what is compared
        return str(error)[:500] or repr(error)
    return None


def done(
    spark: Reference, case: Case, table: pathlib.Path, other: pathlib.Path, statement: str, places: dict[str, str]
) -> dict[str, Any]:
    """Run a statement by the reference on a copy of the table; what it is refused with, or what the table is."""
    shutil.copytree(table, other)
    refused = refusal(spark.sql, statement.format(t=f"delta.`{other}`", **places))
    return {"refused": refused, "facts": None if refused else facts(other, case)}


def differences(case: Case, answers: Callable[..., Any], base: pathlib.Path) -> list[str]:
    """Return what differs after any of the statements."""
    table, places = make(case, base)
    out: list[str] = []
    for n, statement in enumerate(case.statements):
        # Each time from the same files, so that figures can be compared.
        answer = answers(f"{n}: {statement}", done, case, table, base / f"theirs-{n}", statement, places)
        ours, theirs = run(statement.format(t=f"delta.`{table}`", **places)), answer["refused"]
        if ours is None and theirs is not None and AMBIGUOUS in theirs:
            return out
        if (ours is None) != (theirs is None) or (ours or "").startswith("unsupported"):
            return [*out, f"{statement}\n  ours: {ours}\n  theirs: {theirs}"]
        if ours is not None:
            continue
        found, expected = plain(facts(table, case)), answer["facts"]
        # Where no clause takes a row of no match delta-spark writes its file anew all the same, and so a version.
        idle = "BY SOURCE" in statement and found["version"] == expected["version"] - 1
        for one in (found, expected):
            settle(one, statement, case)
            for key in ("version", *OF_COMMITS) if idle else ():
                one.pop(key, None)
        out += [
            f"{statement}\n  {key}, ours: {found.get(key)}\n  {key}, theirs: {expected.get(key)}"
            for key in sorted(found.keys() | expected.keys())
            if found.get(key) != expected.get(key)
        ]
    return out


def choices(command: str) -> Choices:
    """Return what may be drawn for a command; OPTIMIZE needs others before it."""
    return Choices(commands=(command,) if command != "optimize" else (*COMMANDS[:-1], command, command))


@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("command", COMMANDS)
def test_any_statement_does_the_same(command: str, number: int, answers: Answers, tmp_path: pathlib.Path) -> None:
    case = draw_case(random.Random(f"{command} {number}"), choices(command))
    assert not (found := differences(case, answers, tmp_path)), f"{case}\n" + "\n".join(found)


if MANY:

    @pytest.mark.spark
    @pytest.mark.proof
    @pytest.mark.parametrize("command", COMMANDS)
    def test_many_statements_do_the_same(command: str, spark: Reference) -> None:
        def ask(_: str, question: Callable[..., Any], *args: Any) -> Any:
            return plain(question(spark, *args))

        @settings(
            max_examples=MANY,
            deadline=None,
            database=None,
            # No shrinking: a case takes seconds.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(st.integers(0, 2**32))
        def check(seed: int) -> None:
            case = draw_case(random.Random(seed), choices(command))
            with tempfile.TemporaryDirectory() as folder:
                assert not (found := differences(case, ask, pathlib.Path(folder))), f"{case}\n" + "\n".join(found)

        check()
