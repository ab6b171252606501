"""Rows of data frames in a form that compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from oracle.reference import arrow

if TYPE_CHECKING:
    import pathlib

    import pyarrow as pa


def usual_and_proof(usual: list[Any], proof: list[Any]) -> list[Any]:
    """Values of a parameter; tests with those of `proof` belong to the proof tier."""
    return [*usual, *(pytest.param(value, marks=pytest.mark.proof) for value in proof)]


#: Names that are legal in a log and that Spark would pass over, expand, or spell otherwise; without those that it hides.
ODD_NAMES = (
    "a b.parquet",
    "a%25b.parquet",
    "a+b.parquet",
    "a#b.parquet",
    "{a}[b]*?.parquet",
    "é ü.parquet",
    "a^b|c`.parquet",
    "d=1/e.parquet",
    "_folder/f.parquet",
)


def rows(frame: Any) -> list[str]:
    """Rows in any order, each with the names of its columns."""
    return sorted(map(repr, arrow(frame).to_pylist()))


def ids(frame: Any) -> list[Any]:
    """The first column, sorted."""
    return sorted(row[0] for row in frame.collect())


def plan(frame: Any) -> str:
    """What Spark does for the frame."""
    return frame._jdf.queryExecution().executedPlan().toString()


def scans_of(frame: Any) -> list[Any]:
    """The nodes of the frame's plan that read files."""
    nodes = [frame._jdf.queryExecution().executedPlan()]
    found = []
    while nodes:
        node = nodes.pop()
        if "FileSourceScan" in node.getClass().getSimpleName():
            found.append(node)
        children = node.children()
        nodes += [children.apply(n) for n in range(children.size())]
    assert found, plan(frame)
    return found


def scan_of(frame: Any) -> Any:
    """The only node of the frame's plan that reads files."""
    (found,) = scans_of(frame)
    return found


def files_read(frame: Any) -> int:
    """How many files the frame reads."""
    return sum(scan.selectedPartitions().totalNumberOfFiles() for scan in scans_of(frame))


def odd_table(folder: pathlib.Path, table: pa.Table, names: tuple[str, ...]) -> None:
    """Make a table with one copy of the rows in each file."""
    from deltafast import create_table_with_add_actions
    from deltafast.transaction import AddAction

    adds = []
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
        adds.append(AddAction(quote(name), file.stat().st_size, {}, 0, data_change=True))
    create_table_with_add_actions(str(folder), table.schema, adds)
