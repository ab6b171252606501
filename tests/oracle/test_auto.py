"""Auto compaction and optimized writes beside delta-spark's: to which files they happen, and what they say.

A partition that delta-spark has not packed since its process began is packed however few small files it has, and `auto`
means nothing to it: neither is compared.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from deltafast import DeltaTable, write_deltalake

from .recorded_answers import plain

if TYPE_CHECKING:
    import pathlib

    from .recorded_answers import Answers
    from .reference import Reference

pytestmark = pytest.mark.timeout(600)

#: Files of a partition below which nothing is packed, in both.
LEAST = 50


def rows(start: int, count: int = 2, part: int = 0) -> pa.Table:
    """Return rows of one partition."""
    return pa.table(
        {"id": pa.array(range(start, start + count), pa.int64()), "p": pa.array([part] * count, pa.int64())}
    )


def twins(
    tmp_path: pathlib.Path, files: dict[int, int], properties: dict[str, str], **options: Any
) -> list[pathlib.Path]:
    """Make two equal tables with that many files in each part, and the properties."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    number = 0
    for part, count in files.items():
        for _ in range(count):
            write_deltalake(ours, rows(number * 2, part=part), mode="append", **(options if number == 0 else {}))
            number += 1
    DeltaTable(ours).alter.set_table_properties(properties)
    shutil.copytree(ours, theirs)
    return [ours, theirs]


def state(folder: pathlib.Path) -> tuple[list[int], Counter[Any]]:
    """Return all `id`s, and how many files each partition has."""
    table = DeltaTable(folder)
    values = table.get_add_actions(flatten=True)
    parts = values["partition.p"].to_pylist() if "partition.p" in values.schema.names else [None] * values.num_rows
    return sorted(table.to_pyarrow_table()["id"].to_pylist()), Counter(parts)


def said(folder: pathlib.Path) -> dict[str, Any]:
    """Return what the newest commit says of what was done, but for bytes and times."""
    newest = max((folder / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    changes = {
        next(iter(body for key, body in action.items()))["dataChange"]
        for action in actions
        if "commitInfo" not in action
    }
    kept = ("numAddedFiles", "numRemovedFiles", "numDeletionVectorsRemoved")
    # Partitions are named in an expression of Spark's own parser: `('p <=> cast(0 as bigint))`.
    parameters = info["operationParameters"]
    return {
        "version": int(newest.stem),
        "operation": info["operation"],
        "parameters": parameters | {"predicate": parameters.get("predicate", "[]") != "[]"},
        "figures": {key: info["operationMetrics"].get(key) for key in kept},
        "data_change": changes,
    }


CASES: dict[str, tuple[dict[int, int], dict[str, str], dict[str, Any], bool]] = {
    # Files by part, properties, options of the table, whether the 51st write packs them.
    "true": ({0: LEAST - 1}, {"delta.autoOptimize.autoCompact": "true"}, {}, True),
    "off": ({0: LEAST - 1}, {"delta.autoOptimize.autoCompact": "false"}, {}, False),
    "one part": ({0: LEAST - 1, 1: 3}, {"delta.autoOptimize.autoCompact": "true"}, {"partition_by": "p"}, True),
    "vectors": (
        {0: LEAST - 1},
        {"delta.autoOptimize.autoCompact": "true", "delta.enableDeletionVectors": "true"},
        {},
        True,
    ),
}


def inserted(spark: Reference, folder: pathlib.Path, statement: str) -> dict[str, Any]:
    """Run an INSERT of the reference, and return what it says and what the table then is."""
    spark.sql(statement.format(t=f"delta.`{folder}`"))
    return {"said": said(folder), "state": state(folder)}


@pytest.mark.parametrize("case", list(CASES))
def test_the_same_write_packs_the_same_files(answers: Answers, tmp_path: pathlib.Path, case: str) -> None:
    """Both pack, or do not, and say the same."""
    files, properties, options, packs = CASES[case]
    ours, theirs = twins(tmp_path, files, properties, **options)
    before = DeltaTable(ours).version()
    new = 1_000_000
    statement = f"INSERT INTO {{t}} VALUES ({new}, 0)"
    answer = answers(statement, inserted, theirs, statement)
    write_deltalake(ours, rows(new, 1), mode="append")
    assert plain(said(ours)) == answer["said"]
    assert plain(state(ours)) == answer["state"]
    assert (said(ours)["operation"] == "OPTIMIZE") == packs
    assert DeltaTable(ours).version() == before + 1 + packs


def test_optimized_writes_gather_partitions(answers: Answers, tmp_path: pathlib.Path) -> None:
    """Each partition gets one file, however the rows come."""
    properties = {"delta.autoOptimize.optimizeWrite": "true"}
    ours, theirs = twins(tmp_path, {0: 1, 1: 1}, properties, partition_by="p")
    new = pa.concat_tables(rows(1000 + n * 10, 10, part=n % 5) for n in range(40))
    batches = pa.RecordBatchReader.from_batches(new.schema, new.to_batches(max_chunksize=10))
    statement = "INSERT INTO {t} SELECT /*+ REPARTITION(4) */ 1000 + id, CAST(id DIV 10 % 5 AS BIGINT) FROM range(400)"
    answer = answers(statement, inserted, theirs, statement)
    write_deltalake(ours, batches, mode="append")
    # A write names the partition columns of the table, an INSERT of delta-spark none.
    for found in (commit := plain(said(ours)), answer["said"]):
        del found["parameters"]["partitionBy"]
    assert commit == answer["said"]
    assert plain(state(ours)) == answer["state"]
    assert state(ours)[1] == {0: 2, 1: 2, 2: 1, 3: 1, 4: 1}
